"""What operators decided about what all may know: who decided what, and when. Kept; nothing searches it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from echoic.memory.ledger import memory_id
from echoic.memory.records import scan_all
from echoic.stores.base import Put, Record, Store
from echoic.types import Scope, checked_name

DECISION: Final = "decision"
_NAMELESS: Final = "operator"

Decided = Literal["approved", "rejected", "withdrawn", "written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One thing an operator decided."""

    what: Decided
    of: Literal["fact", "lesson"]
    key: str
    """Of a fact its key, of a lesson its agent."""
    text: str | None
    """What it was about; None where it was rejected: that is destroyed."""
    by: str
    """Who decided, as they were named."""
    at: datetime
    """When (aware, UTC)."""


def put_decision(decision: Decision) -> Put:
    """The change that keeps `decision`, to be written together with what it does."""
    data: dict[str, Any] = {
        "what": decision.what,
        "of": decision.of,
        "agent": decision.key if decision.of == "lesson" else None,
        "text": decision.text,
        "by": decision.by,
        "at": decision.at.isoformat(),
    }
    name = memory_id(DECISION, decision.of, decision.key, decision.what, decision.text or "", data["at"])
    kept = {field: value for field, value in data.items() if value is not None}
    key = decision.key if decision.of == "fact" else None
    return Put(record=Record(kind=DECISION, id=name, key=key, data=kept))


async def decisions(store: Store, everyone: Scope) -> list[Decision]:
    """All of a deployment, oldest first."""
    return [_decision_of(record) for record in await scan_all(store, everyone, DECISION)]


async def is_decided(store: Store, everyone: Scope, key: str) -> bool:
    """Whether what is known under `key` is an operator's to say: they last wrote, rejected or withdrew it."""
    last = await store.scan(everyone, DECISION, key=key, limit=1, newest_first=True)
    return bool(last) and last[0].data["what"] != "approved"


def decider(by: str | None) -> str:
    """The name of who decides.

    Raises:
        InvalidInput: it cannot be kept.
    """
    return _NAMELESS if by is None else checked_name(by, "by")


def _decision_of(record: Record) -> Decision:
    data = record.data
    return Decision(
        what=data["what"],
        of=data["of"],
        key=record.key if record.key is not None else data.get("agent", ""),
        text=data.get("text"),
        by=data["by"],
        at=datetime.fromisoformat(data["at"]),
    )
