"""Logical sessions: which transaction a command belongs to, and what was answered to a write sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from echoic_loopback.mongodb.refusals import (
    ILLEGAL_OPERATION,
    INVALID_OPTIONS,
    NO_SUCH_TRANSACTION,
    NOT_SUPPORTED_IN_TRANSACTION,
    TRANSACTION_COMMITTED,
    TRANSACTION_TOO_OLD,
    TRANSIENT,
    Refusal,
)
from echoic_loopback.mongodb.storage import Storage, Transaction

_ENDING = {"commitTransaction", "abortTransaction"}
_ALLOWED = {
    "insert",
    "update",
    "delete",
    "findAndModify",
    "find",
    "aggregate",
    "getMore",
    "killCursors",
    *_ENDING,
}


@dataclass(slots=True)
class Session:
    """One client's session. `state` is that of the transaction `number`."""

    number: int = -1
    state: str = "none"
    transaction: Transaction | None = None
    replies: dict[int, Any] = field(default_factory=dict)

    def abort(self) -> None:
        """End the transaction, if one is open."""
        if self.transaction is not None:
            self.transaction.abort()
            self.transaction, self.state = None, "aborted"


class Sessions:
    """All sessions of a server."""

    def __init__(self, storage: Storage, *, replicated: bool, lifetime_s: float) -> None:
        self._storage, self._lifetime_s = storage, lifetime_s
        self._replicated = replicated
        self._sessions: dict[bytes, Session] = {}

    def of(self, command: Mapping[str, Any]) -> Session | None:
        """The session a command names."""
        lsid = command.get("lsid")
        return self._sessions.setdefault(bytes(lsid["id"]), Session()) if lsid else None

    def end(self, ids: list[Mapping[str, Any]]) -> None:
        """Forget sessions; what they left open is aborted."""
        for lsid in ids:
            session = self._sessions.pop(bytes(lsid["id"]), None)
            if session is not None:
                session.abort()

    def check(self, name: str, command: Mapping[str, Any]) -> None:
        """Refuse what a command may not say of sessions and transactions.

        Raises:
            Refusal: so it is.
        """
        if "txnNumber" not in command:
            if "autocommit" in command or "startTransaction" in command or name in _ENDING:
                raise Refusal(INVALID_OPTIONS, "'autocommit' and 'startTransaction' require a 'txnNumber'")
            return
        if not self._replicated:
            raise Refusal(
                ILLEGAL_OPERATION, "Transaction numbers are only allowed on a replica set member or mongos"
            )
        if "lsid" not in command:
            raise Refusal(INVALID_OPTIONS, "Transaction number requires a session ID to also be specified")
        if "autocommit" in command:
            if command["autocommit"] is not False:
                raise Refusal(INVALID_OPTIONS, "Specifying autocommit=true is not allowed.")
            if name not in _ALLOWED:
                raise Refusal(
                    NOT_SUPPORTED_IN_TRANSACTION, f"Cannot run '{name}' in a multi-document transaction."
                )
            if not command.get("startTransaction") and "readConcern" in command:
                raise Refusal(
                    INVALID_OPTIONS, "Only the first command in a transaction may specify a readConcern"
                )
            if name not in _ENDING and "writeConcern" in command:
                raise Refusal(
                    INVALID_OPTIONS, "writeConcern is not allowed within a multi-statement transaction"
                )

    def transaction(self, name: str, command: Mapping[str, Any]) -> Transaction | None:
        """The transaction `command` runs in, begun if it says so; None if it runs in none.

        Raises:
            Refusal: there is no such transaction any more.
        """
        session = self.of(command)
        if session is None or command.get("autocommit") is not False:
            return None
        number = command["txnNumber"]
        if number < session.number:
            raise Refusal(TRANSACTION_TOO_OLD, f"Cannot start transaction {number}: a newer one has started")
        if command.get("startTransaction"):
            session.abort()
            session.number, session.state = number, "open"
            session.transaction = Transaction(self._storage, explicit=True)
            asyncio.get_running_loop().call_later(
                self._lifetime_s, self._expire, session, session.transaction
            )
        elif number != session.number or session.state == "aborted":
            raise Refusal(
                NO_SUCH_TRANSACTION,
                f"Given transaction number {number} does not match any in-progress transactions.",
                labels=[] if name == "abortTransaction" else [TRANSIENT],
            )
        elif session.state == "committed" and name != "commitTransaction":
            raise Refusal(TRANSACTION_COMMITTED, f"Transaction {number} has been committed.")
        return session.transaction

    @staticmethod
    def _expire(session: Session, transaction: Transaction) -> None:
        if session.transaction is transaction:
            session.abort()

    def commit(self, command: Mapping[str, Any]) -> None:
        """Commit the transaction of `command`; a second time changes nothing."""
        session = self.of(command)
        if session is not None and session.transaction is not None:
            session.transaction.commit()
            session.transaction, session.state = None, "committed"

    def abort(self, command: Mapping[str, Any]) -> None:
        """Abort the transaction of `command`."""
        session = self.of(command)
        if session is not None:
            session.abort()

    def repeated(self, command: Mapping[str, Any]) -> Any:
        """What was answered to this very write before; None if it is new."""
        session = self.of(command)
        if session is None or "txnNumber" not in command or "autocommit" in command:
            return None
        number = command["txnNumber"]
        if number < session.number:
            raise Refusal(
                TRANSACTION_TOO_OLD, f"Retryable write with txnNumber {number} is prohibited: too old"
            )
        if number > session.number:
            session.abort()
            session.number, session.state, session.replies = number, "none", {}
        return session.replies.get(number)

    def answered(self, command: Mapping[str, Any], reply: Any) -> None:
        """Keep the answer to a write that may be sent again."""
        session = self.of(command)
        if session is not None and "txnNumber" in command and "autocommit" not in command:
            session.replies[command["txnNumber"]] = reply


__all__ = ["Session", "Sessions"]
