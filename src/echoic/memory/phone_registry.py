"""The phone registry: events of telephone lines, kept apart from the memory of the callers.

Records of a line belong to the deployment and are stored under a hash of the line's identity. A user's own
scope has only pointers to the lines that name them. So no export of one user names another, and forgetting
one caller removes their name without affecting the others' access to their memory.
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
"""Anonymous, restricted, blocked, unknown, unavailable: Twilio's placeholders, spelled on a keypad."""
PIN_GUESSES: Final = "pin:"
"""Prefix of the ids of counts of wrong PINs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhoneLine:
    """The state of a line, derived from its records."""

    people: Mapping[str, str]
    """Other people who call from it: name -> user."""
    linked: str | None
    """The user whose line it is, if a caller proved to be that user."""
    linked_before: str | None
    """The last linked user, even if that was undone."""
    linked_at: datetime | None
    """When it was last linked."""
    may_prove: tuple[str, ...]
    """Users who gave a code in an unattested call from here; their PIN is valid here too."""
    changed: bool
    """Whether it was linked or unlinked and no caller was told yet."""


def identity_of(number: str, salt: str | None) -> str | None:
    """The identity of the line of `number`, hashed with `salt` (None: readable).

    None if the number is withheld or not in E.164.
    """
    bare = re.sub(r"[\s().-]", "", number)
    if not _NUMBER.fullmatch(bare) or bare in _WITHHELD:
        return None
    if salt is None:
        return f"phone:{bare}"
    return f"phone:{hmac.new(salt.encode(), bare.encode(), hashlib.sha256).hexdigest()[:32]}"


def line_key(line: str) -> str:
    """The key of the records of `line`: a hash, since a line's identity may be a user id."""
    return memory_id(PHONE_LINE, line)


def holding(key: str) -> str:
    """The user id for calls from a line before the caller's identity is proven."""
    return f"unproven:{key}"


def happened(key: str, what: str, at: datetime, **data: str) -> Record:
    """The record of an event of a line."""
    noted = {"what": what, "at": at.isoformat(), **data, "nonce": nonce(data.values())}
    return Record(kind=PHONE_LINE, id=uuid4().hex, key=key, data=noted)


def nonce(strings: Iterable[str]) -> str:
    """A random string, longer than any of `strings`.

    An erasure is verified by searching for the longest string of a removed record. Without a nonce that would
    be the user's id, which occurs in other records until they are removed too.
    """
    return secrets.token_hex(max([32, *map(len, strings)]))


def line_of(records: Sequence[Record]) -> PhoneLine:
    """The state of a line from its records, in order."""
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
    """The keys of the lines that may name the user of `scope`, and the key of their own line."""
    named = [record.id for record in await scan_all(store, scope, PHONE_OF)]
    return [*named, line_key(scope.user or "")]


async def forget_on_lines(store: Store, scope: Scope, keys: Sequence[str], at: datetime) -> list[Erased]:
    """Remove the user of `scope` from the lines `keys`, with the unproven calls from there.

    What identifies other callers stays. A line that was linked to the user is unlinked, and does not return
    to its earlier owner.
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
