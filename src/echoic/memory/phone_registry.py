"""Telephone lines: what happened to each, apart from the memory of anybody who calls from it.

The records of a line belong to the deployment and are kept under a hash of the line's identity. A user's own
scope holds only pointers to the lines that name them. So nobody's export names anybody else, and forgetting
one caller removes what names them without taking the others' way to their memory along.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import uuid4

from echoic.memory.records import CONVERSATION, LINK_GUESSES, PHONE_LINE, PHONE_OF, memory_id, scan_all
from echoic.stores.base import Drop, Erased, Put, Record, Store
from echoic.types import Scope

_NUMBER = re.compile(r"\+[1-9][0-9]{5,14}")
_WITHHELD: Final = frozenset({"+266696687", "+7378742833", "+2562533", "+8656696", "+86282452253"})
"""Anonymous, restricted, blocked, unknown, unavailable: Twilio's stand-ins, as their letters are dialled."""
PIN_GUESSES: Final = "pin:"
"""Before the id of a count of wrong PINs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhoneLine:
    """What the records of a line come to."""

    people: Mapping[str, str]
    """Who calls from it besides its first caller: name -> user."""
    linked: str | None
    """The user whose line it is, where somebody proved to be that user."""
    linked_before: str | None
    """To whom it was linked last, also where that was undone."""
    linked_at: datetime | None
    """When that was."""
    may_prove: tuple[str, ...]
    """Users who gave a code in a call from here whose number was not proven; their PIN is good here, too."""
    changed: bool
    """It was linked or unlinked, and nobody who called from it was told yet."""


def identity_of(number: str, salt: str | None) -> str | None:
    """The identity of the line of `number`; None where it is withheld, or is not a number in E.164.

    It is hashed with `salt`; None leaves it readable.
    """
    bare = re.sub(r"[\s().-]", "", number)
    if not _NUMBER.fullmatch(bare) or bare in _WITHHELD:
        return None
    if salt is None:
        return f"phone:{bare}"
    return f"phone:{hmac.new(salt.encode(), bare.encode(), hashlib.sha256).hexdigest()[:32]}"


def line_key(line: str) -> str:
    """What the records of `line` are kept under: without the line's identity, which may be somebody's id."""
    return memory_id(PHONE_LINE, line)


def holding(key: str) -> str:
    """The user whose scope holds what was said in calls from a line by nobody who proved who they are."""
    return f"unproven:{key}"


def happened(key: str, what: str, at: datetime, **data: str) -> Record:
    """A record that `what` happened to a line."""
    noted = {"what": what, "at": at.isoformat(), **data, "nonce": nonce(data.values())}
    return Record(kind=PHONE_LINE, id=uuid4().hex, key=key, data=noted)


def nonce(strings: Iterable[str]) -> str:
    """Bytes that stand nowhere else, more of them than any of `strings` has.

    An erasure is verified by looking for the longest string of what was removed. A record that names a user
    would be looked for by the user's id, which stands in all that is theirs until that is gone as well.
    """
    return secrets.token_hex(max([32, *map(len, strings)]))


def line_of(records: Sequence[Record]) -> PhoneLine:
    """What the records of one line, in their order, come to."""
    people: dict[str, str] = {}
    may_prove: list[str] = []
    linked = before = at = None
    changed = False
    for record in records:
        data = record.data
        what = data["what"]
        if what == "person":
            people[data["name"]] = data["user"]
        elif what == "linked":
            linked = before = data["user"]
            at, changed = datetime.fromisoformat(data["at"]), True
        elif what == "unlinked":
            linked, changed = None, True
        elif what == "told":
            changed = False
        elif what == "may_prove":
            may_prove.append(data["user"])
    return PhoneLine(
        people=people,
        linked=linked,
        linked_before=before,
        linked_at=at,
        may_prove=tuple(may_prove),
        changed=changed,
    )


async def lines_of(store: Store, scope: Scope) -> list[str]:
    """The keys of the lines that may name the user of `scope`, and of the one that is their own."""
    named = [record.id for record in await scan_all(store, scope, PHONE_OF)]
    return [*named, line_key(scope.user or "")]


async def forget_on_lines(store: Store, scope: Scope, keys: Sequence[str], at: datetime) -> list[Erased]:
    """Remove the user of `scope` from the lines `keys`, with the calls from there that nobody proved to own.

    What others need to be found there stays. A line that was linked to the user is nobody's then, and not
    again whose it was before them.
    """
    user, everyone = scope.user or "", scope.everyone
    erased: list[Erased] = []
    drops: list[Drop] = []
    for key in keys:
        records = await scan_all(store, everyone, PHONE_LINE, key=key)
        if records and line_of(records).linked == user:
            unlinked = happened(key, "unlinked", at)
            await store.write(everyone, [Put(record=unlinked)])
            records.append(unlinked)
        others = [record for record in records if record.data.get("user") != user]
        line = line_of(others)
        needed = key != line_key(user) or line.people or line.linked or line.may_prove
        gone = [record for record in records if not needed or record not in others]
        drops += [Drop(kind=record.kind, id=record.id) for record in gone]
        held = Scope(scope.deployment, holding(key))
        if await store.scan(held, CONVERSATION, limit=1):
            erased.append(await store.erase(held))
    guesses = await store.read(everyone, LINK_GUESSES, [PIN_GUESSES + line_key(user)])
    drops += [Drop(kind=LINK_GUESSES, id=record.id) for record in guesses]
    if drops:
        erased.append(await store.erase(everyone, drops))
    return erased
