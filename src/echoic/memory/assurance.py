"""Assurance levels: how sure the caller's identity is, and what they may be told at each level.

The sensitivity of a memory follows from its content, so it is the same on every surface and in every store.
Writing is not limited: what a caller says is stored at any level.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from echoic.errors import InvalidInput, NotAllowed, brief
from echoic.memory.profile import DIRECTIVES
from echoic.memory.records import MEMORY, SAID, TOLD
from echoic.memory.sharing.gate import contacts
from echoic.secrets.masking import MARKER
from echoic.stores.apply import strings
from echoic.stores.base import Change, Record, Store
from echoic.text import END, START, any_of, word_lists
from echoic.types import Hit, Recall, Scope

Level = Literal["device", "unattested", "attested", "linked", "proved", "account"]
"""The evidence for the caller's identity.

- "device": an anonymous identity, such as that of a web page.
- "unattested": a telephone number that no carrier vouches for.
- "attested": a number that the carrier vouches for, or a name given on such a line.
- "linked": an attested number that a code linked to the user.
- "proved": the caller gave a PIN or a code in this call.
- "account": your own sign-in, an agent key's token, or code that calls the library directly.
"""
Sensitivity = Literal["open", "personal", "sensitive"]
"""- "open": not about a person: global memories, and how the user wants to be served.
- "personal": everything else.
- "sensitive": health, money, addresses, credentials."""

LEVELS: Final[Sequence[Level]] = get_args(Level)
SENSITIVITIES: Final[Sequence[Sensitivity]] = get_args(Sensitivity)
TABLE: Final[Mapping[Level, Sensitivity]] = MappingProxyType(
    {
        "device": "sensitive",
        "unattested": "open",
        "attested": "personal",
        "linked": "sensitive",
        "proved": "sensitive",
        "account": "sensitive",
    }
)
"""The most sensitive content each level is told by default; see docs/threats.md."""

PROVE: Final = "this needs a proof of who is asking: a PIN, a code, or an account"

_LISTS: Final = word_lists("echoic.memory.sharing")
# an unknown allergy does more harm than one that another caller hears of
_SENSITIVE: Final = f"{_LISTS['sensitive']} {_LISTS['touched by medical']}".split()
_WORDS: Final = re.compile(
    START + any_of(" ".join(w for w in _SENSITIVE if w not in _LISTS["allergy"].split())) + END, re.IGNORECASE
)


def table_from(given: str | Mapping[str, str] | None) -> Mapping[Level, Visibility]:
    """What each level is told, with changes such as "attested=sensitive,device=open"; raises InvalidInput."""
    if isinstance(given, str):
        given = dict(pair.strip().partition("=")[::2] for pair in given.split(",") if pair.strip())
    table: dict[Level, Sensitivity] = dict(TABLE)
    for level, most in (given or {}).items():
        if level not in LEVELS or most not in SENSITIVITIES:
            raise InvalidInput(
                f"assurance has no {brief(f'{level}={most}')}: levels are {', '.join(LEVELS)}, and what "
                f"they are told is one of {', '.join(SENSITIVITIES)}"
            )
        table[level] = most  # type: ignore[index,assignment] # checked above
    return {level: Visibility(most) for level, most in table.items()}


@lru_cache(maxsize=8192)
def is_sensitive(text: str) -> bool:
    """Whether `text` mentions health, money, an address or a credential, by rules."""
    return bool(
        _WORDS.search(text.replace("_", " ")) or MARKER.search(text) or any(s.kind for s in contacts(text))
    )


class Visibility:
    """What one caller may be told: content up to the sensitivity `most`."""

    def __init__(self, most: Sensitivity) -> None:
        self.most = most
        self.is_whole = most == "sensitive"
        """Whether nothing is withheld."""
        self.hints = most == "personal"
        """Whether the caller may learn that more is known; a stranger must not."""

    def shows(self, *texts: str | None) -> bool:
        """Whether content of the user that consists of `texts` may be told."""
        if self.is_whole:
            return True
        return self.most == "personal" and not any(map(is_sensitive, filter(None, texts)))

    def recall(self, recall: Recall) -> Recall:
        """`recall` without what the caller may not be told."""
        if self.is_whole:
            return recall
        hits = tuple(each for hit in recall.hits for each in self.shown(hit))
        if hits == recall.hits:
            return recall
        return replace(recall, hits=hits, pipeline=(), withheld=self.hints)

    def record(self, scope: Scope, record: Record) -> bool:
        """Whether what is kept in a record may be told."""
        if self.is_whole or scope.user is None or record.kind == DIRECTIVES:
            return True
        fields = SAID.get(record.kind, record.data)  # in kinds not listed every text counts
        key = record.key if record.kind == MEMORY else None
        return self.shows(key, *strings([record.data.get(field) for field in fields]))

    def covers(self, told: object) -> bool:
        """Whether whoever was told content up to the sensitivity `told` was told no more than this caller."""
        return told in SENSITIVITIES[: SENSITIVITIES.index(self.most) + 1]

    def added(self, record: Record) -> bool:
        """Whether `TOLD` says that whoever added a turn or result was told no more than this caller."""
        return self.covers(record.data.get(TOLD))

    def needed(self, what: str) -> None:
        """Raise NotAllowed for the operation `what` if anything is withheld from the caller."""
        if not self.is_whole:
            raise NotAllowed(f"{what}: {PROVE}")

    def shown(self, hit: Hit) -> Sequence[Hit]:
        """The part of a hit that may be told: all of it, some of its memories, or nothing."""
        if hit.scope.user is None:
            return [hit]
        apart = hit.apart()
        shown = [each for each in apart if self.shows(*_said(each))]
        return [hit] if len(shown) == len(apart) else shown


class VisibleStore:
    """A store whose reads are limited to what one caller may be told; writes pass unchanged."""

    def __init__(self, store: Store, visibility: Visibility) -> None:
        self._store, self.visibility = store, visibility

    def __getattr__(self, name: str) -> Any:
        if name == "latest":  # it would pass by what is withheld; `scan` does not
            raise AttributeError(name)
        return getattr(self._store, name)

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        await self._store.write(scope, changes)

    async def read(self, scope: Scope, kind: str, ids: Sequence[str]) -> list[Record]:
        return self._seen(scope, await self._store.read(scope, kind, ids))

    async def rows(self, scope: Scope, rows: Sequence[int]) -> list[Record]:
        return self._seen(scope, await self._store.rows(scope, rows))

    async def scan(
        self, scope: Scope, kind: str, *, after: int = -1, limit: int = 1000, **narrowed: Any
    ) -> list[Record]:
        """See `Store`. Withheld records do not shorten a page."""
        found: list[Record] = []
        while len(found) < limit:
            page = await self._store.scan(scope, kind, after=after, limit=limit, **narrowed)
            found += self._seen(scope, page)
            if len(page) < limit:
                break
            after = page[-1].seq
        return found[:limit]

    def _seen(self, scope: Scope, records: Iterable[Record]) -> list[Record]:
        return [record for record in records if self.visibility.record(scope, record)]


def visibility_of(store: Store) -> Visibility:
    """What may be told of what is in `store`: everything, unless it is a `VisibleStore`."""
    return store.visibility if isinstance(store, VisibleStore) else Visibility("sensitive")


def _said(hit: Hit) -> list[str | None]:
    memory, turn = hit.memory, hit.turn
    if memory is not None:
        return [memory.key, memory.text, memory.statement, memory.context]
    return [turn.text, turn.heard] if turn is not None else [hit.text]
