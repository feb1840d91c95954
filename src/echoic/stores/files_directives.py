"""Directives as other programs write them, a name and a text each, and as the record they are. Pure.

The one record that holds in every session stands where people and other programs look for it. What is no
directive of ours, such as an object or a long text, is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from echoic.errors import InvalidInput
from echoic.stores.base import Record
from echoic.types import MAX_FREE_DIRECTIVES, PRESETS, Directives

DIRECTIVES: Final = "directives"
"""The kind of their record, and its id."""
_NAMED: Final = (*PRESETS, "language")


def is_directives(record: Record) -> bool:
    """Whether `record` is the one that a file shows."""
    return (record.kind, record.id) == (DIRECTIVES, DIRECTIVES)


def directives_in(shown: Any) -> dict[str, str]:
    """Those of `shown` that can be directives of ours, in their order."""
    found: dict[str, str] = {}
    for name, value in shown.items() if isinstance(shown, Mapping) else ():
        free = [other for other in found if other not in _NAMED]
        if _is_directive(name, value) and (name in _NAMED or len(free) < MAX_FREE_DIRECTIVES):
            found[name] = value
    return found


def data_of(directives: Mapping[str, str]) -> dict[str, Any]:
    """The data of the record that says the same."""
    named = {name: directives[name] for name in _NAMED if name in directives}
    return {**named, "free": {name: text for name, text in directives.items() if name not in _NAMED}}


def shown_by(data: Mapping[str, Any]) -> dict[str, str]:
    """The inverse of `data_of`."""
    free = data.get("free")
    named = {name: data[name] for name in _NAMED if data.get(name) is not None}
    return named | (dict(free) if isinstance(free, Mapping) else {})


def changed_in(shown: Any, data: Mapping[str, Any] | None) -> Any:
    """`shown` once it says what the record's `data` says, the rest of it as it was; None: no record."""
    before, now = directives_in(shown), shown_by(data or {})
    if before == now or not isinstance(shown, Mapping | None):
        return shown
    shown = shown or {}
    kept = {name: now.get(name, value) for name, value in shown.items() if name not in before or name in now}
    return kept | now


def _is_directive(name: str, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        record = data_of({name: value})
        Directives(**record)
    except InvalidInput:
        return False
    return True


__all__ = ["DIRECTIVES", "changed_in", "data_of", "directives_in", "is_directives", "shown_by"]
