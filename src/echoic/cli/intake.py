"""How what a reader found is kept: counted first, then written in batches, and once however often it comes.

Everything taken in becomes data of one user's own. What it means is decided where live turns are understood.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from echoic.cli.importers import Directed, Exported, Item, Known, Said, Skipped
from echoic.cli.output import Progress
from echoic.errors import InvalidInput
from echoic.types import MAX_FREE_DIRECTIVES, PRESETS, Turn

if TYPE_CHECKING:
    from echoic.memory.service import MemoryService
    from echoic.memory.user import UserMemory

BATCH = 200
"""Items of one write to the store."""
LISTED = 1000
"""Reasons kept of what was skipped; their number is always whole."""


@dataclass(slots=True)
class Survey:
    """What a source holds."""

    turns: int = 0
    memories: int = 0
    directives: int = 0
    conversations: set[tuple[str | None, str]] = field(default_factory=set)
    users: Counter[str | None] = field(default_factory=Counter)
    """Items by the user the source names."""
    skipped: int = 0
    reasons: list[Skipped] = field(default_factory=list)
    """Of the first `LISTED`."""

    @property
    def items(self) -> int:
        """How many items can be read."""
        return self.users.total()

    def add(self, item: Item) -> None:
        """Count `item`."""
        if isinstance(item, Skipped):
            self.skipped += 1
            self.reasons += [item] if self.skipped <= LISTED else []
            return
        self.users[item.user] += 1
        if isinstance(item, Said):
            self.turns += 1
            self.conversations.add((item.user, item.turn.conversation))
        elif isinstance(item, Known):
            self.memories += 1
        elif isinstance(item, Directed):
            self.directives += 1
        else:
            self._add_export(item)

    def _add_export(self, item: Exported) -> None:
        memories, conversations = (item.document.get(name) for name in ("memories", "conversations"))
        self.memories += len(memories) if isinstance(memories, list) else 0
        for each in conversations if isinstance(conversations, list) else []:
            if isinstance(each, Mapping):
                self.conversations.add((item.user, str(each.get("id"))))
                turns = each.get("turns")
                self.turns += len(turns) if isinstance(turns, list) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """Under which user an item is kept."""

    user: str
    """The one the command works for."""
    chosen: bool
    """Whether that one was given, rather than left at its default."""

    def check(self, survey: Survey) -> None:
        """Refuse to make one person's memory out of several people's.

        Raises:
            InvalidInput: a user was given, and the source names several.
        """
        named = sorted(name for name in survey.users if name is not None)
        if self.chosen and len(named) > 1:
            raise InvalidInput(
                f"the file holds what {len(named)} users said ({', '.join(named[:3])}, …), which must not "
                f"become one memory of {self.user!r}: leave out --user and ECHOIC_USER to keep each apart"
            )

    def of(self, item: Said | Known | Directed | Exported) -> str:
        """The user given; else the one the source names; else the default."""
        return self.user if self.chosen or item.user is None else item.user


class Intake:
    """Writes items to a memory. `new` and `learned` say what came of it."""

    def __init__(self, memory: MemoryService, deployment: str, whose: Whose) -> None:
        self._memory = memory
        self._deployment = deployment
        self._whose = whose
        self._known: dict[str, set[str]] = {}
        self._talks: dict[tuple[str, str], None] = {}
        self.new = 0
        """Records that were not there before: memories, turns and conversations."""
        self.learned = 0
        """Memories the rules formed from what users said in the turns."""

    async def take_in(self, items: Iterable[Item], progress: Progress, total: int) -> None:
        """Keep `items`; what is known already is left as it is. A batch is durable before the next is read.

        Raises:
            InvalidInput: an export that cannot be read.
            StoreUnavailable: the batches before this one are kept; import again to go on.
        """
        done = 0
        readable = (item for item in items if not isinstance(item, Skipped))
        while batch := list(islice(readable, BATCH)):
            for user in dict.fromkeys(self._whose.of(item) for item in batch):
                await self._keep(user, [item for item in batch if self._whose.of(item) == user])
            done += len(batch)
            progress(done, total)

    async def listen(self) -> None:
        """Learn from what was said in the conversations taken in, as at the end of a call."""
        for user, name in self._talks:
            conversation = await self._user(user).conversation(name)
            self.learned += len((await conversation.learn()).kept)

    async def _keep(self, user: str, items: Sequence[Said | Known | Directed | Exported]) -> None:
        turns = [item.turn for item in items if isinstance(item, Said)]
        documents = [item.document for item in items if isinstance(item, Exported)]
        if turns:
            documents.append(_document(user, turns))
            self._talks |= dict.fromkeys((user, turn.conversation) for turn in turns)
        for document in documents:
            self.new += await self._user(user).restore(document)
        known = [item for item in items if isinstance(item, Known)]
        if known:
            self.new += await self._remember(self._user(user), known)
        self.new += await _directed(self._user(user), [item for item in items if isinstance(item, Directed)])

    async def _remember(self, user: UserMemory, items: Sequence[Known]) -> int:
        """Keep `items`; how many were new."""
        name = user.scope.user or ""
        before = self._known.get(name) or {memory.id for memory in await user.facts()}
        # at once: the store's writer commits together what is waiting together
        kept = set(await asyncio.gather(*(_remembered(user, item) for item in items)))
        self._known[name] = before | kept
        return len(kept - before)

    def _user(self, user: str) -> UserMemory:
        return self._memory.user(user, self._deployment)


async def _directed(user: UserMemory, items: Sequence[Directed]) -> int:
    """Set the directives that are not set yet: whoever set one since knows better; how many were new."""
    if not items:
        return 0
    there = await user.directives()
    known = {*there.free, *(name for name in (*PRESETS, "language") if getattr(there, name) is not None)}
    room = MAX_FREE_DIRECTIVES - len(there.free)
    new = {item.name: item.text for item in items if item.name not in known}
    free = [name for name in new if name not in {*PRESETS, "language"}]
    new = {name: text for name, text in new.items() if name not in free[room:]}
    if new:
        await user.set_directives(**new)
    return len(new)


async def _remembered(user: UserMemory, item: Known) -> str:
    """The id of the memory that holds `item`."""
    if item.key is None:
        return (await user.remember(item.text, category=item.category, said_at=item.said_at)).id
    # whoever corrected it since, or took it back, knows better than an older file
    versions = await user.history(item.key)
    return versions[-1].id if versions else (await user.set(item.key, item.text, category=item.category)).id


def survey_of(items: Iterable[Item], progress: Progress) -> Survey:
    """What `items` hold, without keeping any of them."""
    survey = Survey()
    for number, item in enumerate(items, 1):
        survey.add(item)
        if number % BATCH == 0:
            progress(number)
    return survey


def _document(user: str, turns: Sequence[Turn]) -> dict[str, Any]:
    """`turns` as an export of ours: so a conversation keeps the times it took place at."""
    from echoic.memory.portable import FORMAT, VERSION

    return {
        "format": FORMAT,
        "version": VERSION,
        "user": user,
        "memories": [],
        "conversations": list(_conversations(turns)),
    }


def _conversations(turns: Sequence[Turn]) -> Iterator[dict[str, Any]]:
    for name in dict.fromkeys(turn.conversation for turn in turns):
        said = [turn for turn in turns if turn.conversation == name]
        yield {
            "id": name,
            "status": "completed",
            "started_at": min(turn.said_at for turn in said).isoformat(),
            "updated_at": max(turn.said_at for turn in said).isoformat(),
            "turns": [_fields(turn) for turn in said],
        }


def _fields(turn: Turn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "speaker": turn.speaker,
        "text": turn.text,
        "said_at": turn.said_at.isoformat(),
        "heard": turn.heard,
        "confidence": turn.confidence,
    }


__all__ = ["BATCH", "LISTED", "Intake", "Survey", "Whose", "survey_of"]
