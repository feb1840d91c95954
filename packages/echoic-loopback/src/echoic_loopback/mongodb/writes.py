"""Commands that change documents: `insert`, `update`, `delete` and `findAndModify`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from bson.objectid import ObjectId

from echoic_loopback.mongodb.changing import changed, check_update, checked
from echoic_loopback.mongodb.matching import Document, order, sorted_by
from echoic_loopback.mongodb.pipelines import projected
from echoic_loopback.mongodb.refusals import (
    DUPLICATE_KEY,
    FAILED_TO_PARSE,
    MISSING_FIELD,
    Refusal,
    unknown_fields,
)
from echoic_loopback.mongodb.storage import Busy, Storage, Transaction, namespace_of

T = TypeVar("T")


class Writes:
    """What changes documents, statement by statement; outside of a transaction each is one of its own."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    async def _once(self, transaction: Transaction | None, work: Callable[[Transaction], T]) -> T:
        """`work` in the given transaction, or in one of its own as soon as nobody is in its way."""
        if transaction is not None:
            transaction.begin()
            return work(transaction)
        while True:
            own = Transaction(self.storage, explicit=False)
            try:
                result = work(own)
                own.commit()
            except Busy as busy:
                own.abort()
                await busy.holder.ended.wait()
            except BaseException:
                own.abort()
                raise
            else:
                return result

    async def insert(self, command: Mapping[str, Any], transaction: Transaction | None) -> Document:
        namespace = namespace_of(command)

        def one(document: Document, inside: Transaction) -> int:
            made = checked({"_id": document.get("_id", ObjectId()), **document})
            if inside.get(namespace, order(made["_id"])) is not None:
                raise Refusal(
                    DUPLICATE_KEY, f"E11000 duplicate key error collection: {namespace} index: _id_"
                )
            inside.put(namespace, made)
            return 1

        return await self._each(command, "documents", transaction, one)

    async def delete(self, command: Mapping[str, Any], transaction: Transaction | None) -> Document:
        namespace = namespace_of(command)

        def one(statement: Document, inside: Transaction) -> int:
            unknown_fields(list(statement), {"q", "limit"}, "delete.deletes")
            if statement.get("limit") not in {0, 1}:
                raise Refusal(FAILED_TO_PARSE, "The limit field in delete objects must be 0 or 1.")
            found = inside.find(namespace, statement["q"])[: statement["limit"] or None]
            for document in found:
                inside.remove(namespace, order(document["_id"]))
            return len(found)

        return await self._each(command, "deletes", transaction, one)

    async def update(self, command: Mapping[str, Any], transaction: Transaction | None) -> Document:
        namespace = namespace_of(command)
        modified, upserted = 0, []

        def one(statement: Document, inside: Transaction) -> tuple[int, int, Any]:
            unknown_fields(list(statement), {"q", "u", "multi", "upsert"}, "update.updates")
            check_update(statement["u"])
            found = inside.find(namespace, statement["q"])
            if not found and statement.get("upsert"):
                made = self._upserted(namespace, statement["q"], statement["u"], inside)
                return 1, 0, made["_id"]
            differing = 0
            for document in found if statement.get("multi") else found[:1]:
                after = changed(document, statement["u"])
                if after != document:
                    inside.put(namespace, after)
                    differing += 1
            return (len(found) if statement.get("multi") else min(1, len(found))), differing, None

        n, errors = 0, []
        for place, statement in enumerate(command["updates"]):
            try:
                matched, differing, made = await self._once(transaction, partial(one, statement))
            except Refusal as refusal:
                errors.append(self._write_error(place, refusal, transaction))
                if command.get("ordered", True):
                    break
                continue
            n, modified = n + matched, modified + differing
            if made is not None:
                upserted.append({"index": place, "_id": made})
        reply: Document = {"n": n, "nModified": modified}
        return {
            **reply,
            **({"upserted": upserted} if upserted else {}),
            **({"writeErrors": errors} if errors else {}),
        }

    async def _each(
        self,
        command: Mapping[str, Any],
        field: str,
        transaction: Transaction | None,
        one: Callable[[Document, Transaction], int],
    ) -> Document:
        if field not in command:
            raise Refusal(MISSING_FIELD, f"BSON field '{field}' is missing but a required field")
        n, errors = 0, []
        for place, statement in enumerate(command[field]):
            try:
                n += await self._once(transaction, partial(one, statement))
            except Refusal as refusal:
                errors.append(self._write_error(place, refusal, transaction))
                if command.get("ordered", True):
                    break
        return {"n": n, **({"writeErrors": errors} if errors else {})}

    @staticmethod
    def _write_error(place: int, refusal: Refusal, transaction: Transaction | None) -> Document:
        if transaction is not None and refusal.labels:
            raise refusal  # who has to begin the transaction anew is told at once
        return {"index": place, "code": refusal.code, "errmsg": refusal.message}

    @staticmethod
    def _upserted(namespace: str, query: Mapping[str, Any], update: Any, inside: Transaction) -> Document:
        base = dict(_bound(query))
        made = changed(base, update, inserting=True)
        made = {"_id": made.pop("_id", ObjectId()), **made}
        if inside.get(namespace, order(made["_id"])) is not None:
            raise Refusal(DUPLICATE_KEY, f"E11000 duplicate key error collection: {namespace} index: _id_")
        inside.put(namespace, made)
        return made

    async def find_and_modify(self, command: Mapping[str, Any], transaction: Transaction | None) -> Document:
        namespace = namespace_of(command)
        if bool(command.get("remove")) == ("update" in command):
            raise Refusal(FAILED_TO_PARSE, "Either an update or remove=true must be specified")

        def work(inside: Transaction) -> Document:
            found = inside.find(namespace, command.get("query", {}))
            if command.get("sort"):
                found = sorted_by(found, command["sort"])
            if not found:
                return self._nothing_found(namespace, command, inside)
            if command.get("remove"):
                inside.remove(namespace, order(found[0]["_id"]))
                return {"value": found[0], "lastErrorObject": {"n": 1}}
            after = changed(found[0], command["update"])
            inside.put(namespace, after)
            value = after if command.get("new") else found[0]
            return {"value": value, "lastErrorObject": {"n": 1, "updatedExisting": True}}

        reply = await self._once(transaction, work)
        if reply["value"] is not None and command.get("fields"):
            reply["value"] = projected(reply["value"], command["fields"])
        return reply

    def _nothing_found(self, namespace: str, command: Mapping[str, Any], inside: Transaction) -> Document:
        if not command.get("upsert"):
            return {"value": None, "lastErrorObject": {"n": 0, "updatedExisting": False}}
        made = self._upserted(namespace, command.get("query", {}), command["update"], inside)
        told = {"n": 1, "updatedExisting": False, "upserted": made["_id"]}
        return {"value": made if command.get("new") else None, "lastErrorObject": told}


def _bound(query: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What an upsert takes over from its filter: the fields it binds to one value."""
    for name, condition in query.items():
        if name == "$and":
            for part in condition:
                yield from _bound(part)
        elif not name.startswith("$"):
            if not (isinstance(condition, Mapping) and any(key.startswith("$") for key in condition)):
                yield name, condition
            elif "$eq" in condition:
                yield name, condition["$eq"]


__all__ = ["Writes"]
