"""Cursors and change streams: what is handed over batch by batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bson.timestamp import Timestamp

from echoic_loopback.mongodb.matching import Document, compiled, order
from echoic_loopback.mongodb.pipelines import projected, stage_of
from echoic_loopback.mongodb.refusals import (
    HISTORY_LOST,
    NO_REPLICA_SET,
    NOT_IMPLEMENTED,
    Refusal,
    unknown_fields,
)
from echoic_loopback.mongodb.storage import Storage

FIRST_BATCH = 101
_BATCH_BYTES_ROWS = 5000
_LOOK_UP = {"updateLookup", "default"}


class Cursor:
    """Documents that wait to be fetched."""

    def __init__(self, namespace: str, documents: Sequence[Document]) -> None:
        self.namespace = namespace
        self._rest = list(documents)

    async def take(self, size: int | None, _wait_ms: int) -> list[Document]:
        """The next batch."""
        n = size or _BATCH_BYTES_ROWS
        batch, self._rest = self._rest[:n], self._rest[n:]
        return batch

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return not self._rest

    def token(self) -> Document | None:
        """Where a change stream may go on; None for others."""
        return None


class ChangeStream(Cursor):
    """What happens to a collection or a database from now, or from a token, on."""

    def __init__(
        self,
        storage: Storage,
        namespace: str,
        pipeline: Sequence[Mapping[str, Any]],
        look_up: Callable[[str, Any], Document | None],
        *,
        replicated: bool,
    ) -> None:
        super().__init__(namespace, [])
        if not replicated:
            raise Refusal(NO_REPLICA_SET, "The $changeStream stage is only supported on replica sets")
        options = pipeline[0]["$changeStream"]
        known = {"fullDocument", "resumeAfter", "startAfter", "startAtOperationTime", "allChangesForCluster"}
        unknown_fields(list(options), known, "$changeStream")
        self._full = options.get("fullDocument", "default")
        if self._full not in _LOOK_UP:
            raise Refusal(NOT_IMPLEMENTED, f"the stand-in has no fullDocument: {self._full}")
        self._storage, self._look_up = storage, look_up
        self._stages = [_stage(stage) for stage in pipeline[1:]]
        self._at = self._from(options.get("resumeAfter") or options.get("startAfter"))

    def _from(self, token: Mapping[str, Any] | None) -> int:
        if token is None:
            return self._storage.log_start + len(self._storage.log)
        at = int(token["_data"], 16) + 1
        if at < self._storage.log_start:
            raise Refusal(
                HISTORY_LOST,
                "Resume of change stream was not possible: the resume point may no longer be in the oplog.",
            )
        return at

    async def take(self, size: int | None, wait_ms: int) -> list[Document]:
        """What happened since; waits for something to happen, `wait_ms` at most."""
        batch = self._taken(size)
        if not batch and wait_ms:
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    while not batch:
                        grew = self._storage.grew
                        await grew.wait()
                        batch = self._taken(size)
            except TimeoutError:
                pass
        return batch

    def _taken(self, size: int | None) -> list[Document]:
        batch: list[Document] = []
        if self._at < self._storage.log_start:
            raise Refusal(HISTORY_LOST, "the change stream fell behind the oplog")
        while self._at < self._storage.log_start + len(self._storage.log) and len(batch) < (size or 1000):
            event = self._storage.log[self._at - self._storage.log_start]
            if event["ns"] == self.namespace or (
                self.namespace.endswith(".$cmd.aggregate")
                and event["ns"].startswith(self.namespace.removesuffix("$cmd.aggregate"))
            ):
                told: Document | None = self._told(event)
                for stage in self._stages:
                    told = stage(told) if told is not None else None
                if told is not None:
                    batch.append(told)
            self._at += 1
        return batch

    def _told(self, event: Mapping[str, Any]) -> Document:
        database, _, collection = event["ns"].partition(".")
        told = {
            "_id": {"_data": f"{self._at:016x}"},
            "operationType": event["operationType"],
            "clusterTime": Timestamp(1 + self._at, 1),
            "wallTime": datetime.now(UTC),
            "ns": {"db": database, "coll": collection},
            "documentKey": event["documentKey"],
        }
        told.update({name: event[name] for name in ("fullDocument", "updateDescription") if name in event})
        if self._full == "updateLookup" and event["operationType"] == "update":
            told["fullDocument"] = self._look_up(event["ns"], order(event["documentKey"]["_id"]))
        return told

    @property
    def done(self) -> bool:
        """Never."""
        return False

    def token(self) -> Document:
        """Where the next stream has to begin to miss nothing."""
        return {"_data": f"{self._at - 1:016x}" if self._at else "-1"}


def _stage(stage: Any) -> Callable[[Document], Document | None]:
    name, argument = stage_of(stage)
    if name == "$match":
        test = compiled(argument)
        return lambda event: event if test(event) else None
    if name == "$project":
        return lambda event: projected(event, argument)
    raise Refusal(NOT_IMPLEMENTED, f"the stand-in has no {name} behind $changeStream")


__all__ = ["FIRST_BATCH", "ChangeStream", "Cursor"]
