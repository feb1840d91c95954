"""The lessons of one agent in one deployment: counted when learned again, bounded, kept in the global scope.

Who taught a lesson is kept as a digest of their scope, so that what only they taught goes when they are
forgotten, and is shown to others only once somebody else taught the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from echoic.errors import InvalidInput, NotAllowed
from echoic.memory.experience.check import objection, repeats, suspects
from echoic.memory.ledger import memory_id
from echoic.memory.records import MEMORY, memory_of, scan_all
from echoic.memory.retry import until_written
from echoic.stores.base import Change, Drop, Put, Record, Store
from echoic.types import (
    EXPERIENCE_KINDS,
    Experience,
    ExperienceKind,
    Lesson,
    Memory,
    Scope,
    checked_name,
    checked_text,
)
from echoic.words import STOP, content_words, cut

EXPERIENCE: Final = "experience"
"""The kind of their records; they share their agent's name as key."""
MAX_LESSONS_PER_KIND: Final = 12
"""The least often learned of a kind makes room for a new one, the oldest of them first; before those that all
hear, those that not all do."""
ALIKE: Final = 0.8
"""Of the stems of two lessons of a kind, the share they have in common (Jaccard) to be the same lesson."""
_TEACHERS: Final = 32
"""Digests kept of those who taught the same; the count goes on."""
_NAMES: Final = ("user_name", "last_name")
_OWN_KEYS: Final = frozenset(
    "home address origin birthplace grew_up_in employer workplace email phone birthday".split()
)

Sharing = Literal["auto", "propose"]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A lesson as it is kept."""

    lesson: Lesson
    taught_by: tuple[str, ...]
    """Digests of users' scopes."""
    adopted: bool
    """An operator wrote it, or lets everyone hear it."""
    seq: int
    version: int

    @property
    def stems(self) -> frozenset[str]:
        return _stems(self.lesson.text)


class AgentExperience:
    """What one agent of one deployment learned. Made by `MemoryService.experience`; holds no state.

    Args:
        store: where it is kept.
        everyone: the global scope of the deployment.
        agent: whose.
        sharing: "propose": a lesson from one user's conversations is theirs until another's taught the same
            or an operator adopts it; "auto": all hear it at once.
        words: ordinary words of this deployment's trade that lessons may use.
    """

    def __init__(
        self, store: Store, everyone: Scope, agent: str, *, sharing: Sharing, words: Collection[str] = ()
    ) -> None:
        if isinstance(words, str):  # else each of its letters would be a word
            raise InvalidInput(f"words must be several texts, as [{words!r:.80}]")
        self._store = store
        self._everyone = everyone
        self._sharing = sharing
        self._words = frozenset(word for text in words for word in cut(text))
        self.agent = checked_name(agent, "agent")

    async def get(self) -> Experience:
        """All of it. For operators."""
        return self._shown(await self._kept())

    async def seen_by(self, user: Scope) -> Experience:
        """What the agent may use in front of this user."""
        digest = teacher(user)
        return self._shown([k for k in await self._kept() if self._is_shared(k) or digest in k.taught_by])

    async def add(
        self,
        kind: ExperienceKind,
        text: str,
        *,
        author: Scope | None = None,
        said: Iterable[str] = (),
    ) -> Lesson:
        """Keep a lesson. The same again, in other order or form, counts and is kept once.

        Args:
            kind: of what, one of `EXPERIENCE_KINDS`.
            text: the lesson, in a sentence of ordinary words.
            author: whose conversations taught it; None: an operator says so, and everyone may hear it.
            said: what the author said there: a lesson repeats no five words in a row of it.

        Raises:
            InvalidInput: an unknown kind, or a text that cannot be kept.
            NotAllowed: the text may speak of somebody; nothing was kept. The message says why, not what.
        """
        if kind not in EXPERIENCE_KINDS:
            raise InvalidInput(
                f"unknown kind {kind!r:.80} of lesson: use one of {', '.join(EXPERIENCE_KINDS)}"
            )
        text = " ".join(checked_text(text, "lesson").split())
        if author is not None and author.deployment != self._everyone.deployment:
            raise InvalidInput(
                f"{author.deployment!r} is another deployment than {self._everyone.deployment!r}"
            )
        if repeats(text, said):
            raise NotAllowed("this lesson may not be kept for everyone: it repeats what somebody said")
        await self._check(text, author)
        lesson = Lesson(
            id=memory_id(EXPERIENCE, self.agent, kind, *sorted(_stems(text))), kind=kind, text=text
        )
        return await until_written(lambda: self._add(lesson, author), "the agent's experience")

    async def adopt(self, lesson_id: str) -> Lesson:
        """Let everyone hear a lesson, whoever taught it. For operators.

        Raises:
            InvalidInput: there is no such lesson.
        """

        async def attempt() -> Lesson:
            kept = await self._named(lesson_id)
            # the deployment's own from now on, as an approved proposal is
            await self._store.write(
                self._everyone, [_put(replace(kept, adopted=True, taught_by=()), self.agent)]
            )
            return kept.lesson

        return await until_written(attempt, f"lesson {lesson_id!r}")

    async def remove(self, lesson_id: str) -> None:
        """Destroy a lesson. For operators.

        Raises:
            InvalidInput: there is no such lesson.
        """
        kept = await self._named(lesson_id)
        await self._store.erase(self._everyone, [Drop(kind=EXPERIENCE, id=kept.lesson.id)])

    # -- inside

    async def _check(self, text: str, author: Scope | None) -> None:
        own = await self._own_words(author) if author is not None else frozenset()
        # only what the deployment lets pass, or what is written large, could be somebody's name
        doubtful = bool(suspects(text, self._words))
        names = await self._names() if doubtful else frozenset()
        against = objection(text, words=self._words, own=own, names=names)
        if against is not None:
            raise NotAllowed(
                f"this lesson may not be kept for everyone: {against}. "
                "Say it in general, in ordinary words, of nobody in particular."
            )

    async def _own_words(self, author: Scope) -> frozenset[str]:
        """Words of the author's names, places and the like, past ones included."""
        records = await scan_all(self._store, author, MEMORY)
        return frozenset(
            word
            for record in records
            if _is_own(memory := memory_of(record))
            for word in cut(memory.text)
            if word not in STOP
        )

    async def _names(self) -> frozenset[str]:
        """Words of the names of all users of the deployment."""
        found: set[str] = set()
        for scope in await self._store.scopes(self._everyone.deployment):
            for key in _NAMES if scope.user is not None else ():
                for record in await self._store.scan(scope, MEMORY, key=key, limit=4, newest_first=True):
                    found.update(cut(memory_of(record).text))
        return frozenset(found - STOP)

    async def _add(self, lesson: Lesson, author: Scope | None) -> Lesson:
        kept = await self._kept()
        same = _same(lesson, kept)
        if same is not None:
            again = _again(same, author)
            await self._store.write(self._everyone, [_put(again, self.agent)])
            return again.lesson
        taught_by = () if author is None else (teacher(author),)
        new = _Kept(lesson, taught_by, adopted=author is None, seq=-1, version=0)
        changes: list[Change] = [_put(new, self.agent)]
        changes += [Drop(kind=EXPERIENCE, id=gone.lesson.id) for gone in self._surplus(kept, lesson.kind)]
        await self._store.write(self._everyone, changes)
        return lesson

    async def _kept(self) -> list[_Kept]:
        records = await scan_all(self._store, self._everyone, EXPERIENCE, key=self.agent)
        return [_kept_of(record) for record in records]

    async def _named(self, lesson_id: str) -> _Kept:
        records = await self._store.read(self._everyone, EXPERIENCE, [checked_name(lesson_id, "lesson id")])
        if not records or records[0].key != self.agent:
            raise InvalidInput(f"agent {self.agent!r} has no lesson {lesson_id!r}")
        return _kept_of(records[0])

    def _surplus(self, kept: Sequence[_Kept], kind: ExperienceKind) -> list[_Kept]:
        """Which of `kind` make room for one more."""
        # what one user's conversations taught costs all others at most one lesson
        of_kind = sorted(
            (k for k in kept if k.lesson.kind == kind),
            key=lambda k: (self._is_shared(k), k.lesson.times, k.seq),
        )
        return of_kind[: max(0, len(of_kind) - MAX_LESSONS_PER_KIND + 1)]

    def _is_shared(self, kept: _Kept) -> bool:
        return kept.adopted or self._sharing == "auto" or len(kept.taught_by) > 1

    def _shown(self, kept: Sequence[_Kept]) -> Experience:
        ordered = sorted(kept, key=lambda k: (EXPERIENCE_KINDS.index(k.lesson.kind), k.seq))
        return Experience(agent=self.agent, lessons=tuple(k.lesson for k in ordered))


def teacher(scope: Scope) -> str:
    """A digest of whose conversations taught something: it names nobody."""
    return memory_id("teacher", scope.deployment, scope.user or "")


async def unlearn(store: Store, author: Scope) -> list[Drop]:
    """Take `author` from among those who taught lessons.

    Returns:
        what goes with them: the lessons nobody else taught and nobody adopted.
    """
    digest = teacher(author)

    async def attempt() -> list[Drop]:
        records = await scan_all(store, author.everyone, EXPERIENCE)
        taught = [(kept, record) for record in records if digest in (kept := _kept_of(record)).taught_by]
        drops: list[Drop] = []
        puts: list[Change] = []
        for kept, record in taught:
            others = tuple(other for other in kept.taught_by if other != digest)
            if others or kept.adopted:
                puts.append(_put(replace(kept, taught_by=others), record.key or ""))
            else:
                drops.append(Drop(kind=EXPERIENCE, id=record.id))
        if puts:
            await store.write(author.everyone, puts)
        return drops

    return await until_written(attempt, "the agents' experience")


def _is_own(memory: Memory) -> bool:
    key = memory.key or ""
    return memory.category == "entity" or key in _OWN_KEYS or key.endswith("name")


def _stems(text: str) -> frozenset[str]:
    words = content_words(text)
    return frozenset(word.stem for word in words) or frozenset(cut(text))


def _same(lesson: Lesson, kept: Sequence[_Kept]) -> _Kept | None:
    """The one among `kept` that says what `lesson` says."""
    stems = _stems(lesson.text)
    alike = [
        (len(stems & other.stems) / max(1, len(stems | other.stems)), other)
        for other in kept
        if other.lesson.kind == lesson.kind
    ]
    best = max(alike, key=lambda pair: (pair[0], -pair[1].seq), default=(0.0, None))
    return best[1] if best[0] >= ALIKE else None


def _again(kept: _Kept, author: Scope | None) -> _Kept:
    lesson = replace(kept.lesson, times=kept.lesson.times + 1)
    if author is None:
        return replace(kept, lesson=lesson, adopted=True)
    if kept.adopted:
        return replace(kept, lesson=lesson)
    taught_by = tuple(dict.fromkeys((*kept.taught_by, teacher(author))))[:_TEACHERS]
    return replace(kept, lesson=lesson, taught_by=taught_by)


def _put(kept: _Kept, agent: str) -> Put:
    data: dict[str, Any] = {
        "kind": kept.lesson.kind,
        "text": kept.lesson.text,
        "times": kept.lesson.times,
        "taught_by": list(kept.taught_by),
        "adopted": kept.adopted,
    }
    record = Record(kind=EXPERIENCE, id=kept.lesson.id, key=agent, data=data)
    return Put(record=record, expect=kept.version)


def _kept_of(record: Record) -> _Kept:
    data = record.data
    lesson = Lesson(id=record.id, kind=data["kind"], text=data["text"], times=data["times"])
    return _Kept(
        lesson=lesson,
        taught_by=tuple(data["taught_by"]),
        adopted=data["adopted"],
        seq=record.seq,
        version=record.version,
    )


__all__ = ["ALIKE", "EXPERIENCE", "MAX_LESSONS_PER_KIND", "AgentExperience", "teacher", "unlearn"]
