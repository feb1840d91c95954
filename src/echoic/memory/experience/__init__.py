"""Agent experience: lessons that an agent learned by serving users, shared with all users of a deployment.

Rules check every lesson before it is stored, whoever wrote it, so that it reveals no user's secrets. The same
text always gets the same answer, and any doubt is an objection: losing a lesson costs little, revealing a
secret costs much.

Anybody can call under a new identity, so a lesson learned from conversations enters a prompt only after an
operator approved it, however many users taught it. Its teachers are stored as hashes of their scopes; a
lesson that only they taught is removed when they are forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from echoic.english.lexicon import COMMON
from echoic.errors import InvalidInput, NotAllowed, brief
from echoic.memory.concurrency import until_written
from echoic.memory.consent import keeps_nothing
from echoic.memory.extraction.known_facts import same_words
from echoic.memory.proposals import Decided, Decision, decider, put_decision
from echoic.memory.records import EXPERIENCE, MEMORY, memory_id, memory_of, scan_all
from echoic.memory.service_context import Parts
from echoic.memory.sharing import LESSON
from echoic.memory.sharing.gate import contacts, hides_something, holds_secret
from echoic.memory.sharing.person_names import (
    LISTS,
    NAMES,
    VOCABULARY,
    JudgedWord,
    about_a_person,
    names_among,
    stem,
    stems,
    words_of,
)
from echoic.stores.base import Change, Drop, Put, Record, Store
from echoic.text import STOP, content_words, cut, word_lists
from echoic.types import (
    EXPERIENCE_KINDS,
    Experience,
    ExperienceKind,
    Lesson,
    LessonState,
    Memory,
    Scope,
    checked_name,
    checked_text,
)

MAX_LESSONS_PER_KIND: Final = 12
"""The most lessons kept in each of four groups: approved by an operator, approved since enough users taught
them, pending and withdrawn. In a full group the one of the fewest teachers is removed, of these the least
often taught, the oldest of them first. So no pending lesson displaces an approved one."""
ALIKE: Final = 0.8
"""The share of stems (Jaccard) from which two lessons of a kind count as the same."""
_TEACHERS: Final = 1000
"""Digests of teachers kept for a lesson; its count goes on beyond them. Once all of these are forgotten the
lesson is destroyed, since nobody can tell whether another taught it."""
_NAMES: Final = ("user_name", "last_name")
_OWN_KEYS: Final = frozenset(
    "home address origin birthplace grew_up_in employer workplace email phone birthday".split()
)


@dataclass(frozen=True, slots=True)
class _StoredLesson:
    lesson: Lesson
    taught_by: tuple[str, ...]
    """Digests of users' scopes."""
    adopted: bool
    """Whether an operator wrote or approved it."""
    withdrawn: bool
    seq: int
    version: int

    @property
    def name(self) -> str:
        """The id of its record."""
        return self.lesson.id.rpartition("-")[0]

    @property
    def stems(self) -> frozenset[str]:
        return _lesson_stems(self.lesson.text)


class AgentExperience:
    """The lessons of one agent in one deployment. Created by `MemoryService.experience`.

    If lessons are among the service's `global_kinds`, one takes effect without an operator once enough users
    taught it: then callers can teach the agent. `words` are ordinary words of the deployment's trade that
    lessons may use.
    """

    def __init__(self, parts: Parts, everyone: Scope, agent: str, *, words: Collection[str] = ()) -> None:
        if isinstance(words, str):  # otherwise each letter would count as a word
            raise InvalidInput("words must be several texts, not one: put it into a list")
        self._store, self._clock, self._everyone = parts.store, parts.clock, everyone
        self._teachers = parts.global_kinds.get(LESSON)
        """How many users' teaching makes a lesson take effect without an operator; None: no number does."""
        self._words = frozenset(word for text in words for word in cut(text))
        self.agent = checked_name(agent, "agent")

    async def get(self) -> Experience:
        """Every lesson, including pending and withdrawn ones. For operators."""
        return self._shown(await self._kept())

    async def seen_by(self, user: Scope) -> Experience:
        """The lessons the agent may use with this user: the approved ones, whoever taught them."""
        if user.deployment != self._everyone.deployment:
            raise InvalidInput("this user is of another deployment than the agent")
        return self._shown([kept for kept in await self._kept() if self._state(kept) == "approved"])

    async def add(
        self, kind: ExperienceKind, text: str, *, author: Scope | None = None, said: Iterable[str] = ()
    ) -> Lesson:
        """Store a lesson. The same lesson in another order or form is counted and stored once.

        What an operator writes is stored in these words: it replaces what users taught in other words.

        Args:
            kind: one of `EXPERIENCE_KINDS`.
            text: the lesson, in one sentence of ordinary words.
            author: the user whose conversations taught it; then an operator must approve it. None: an
                operator wrote it.
            said: what the author said there: a lesson must not repeat five words in a row of it.

        Raises:
            InvalidInput: an unknown kind, or a text that cannot be stored.
            NotAllowed: the text may be about a person; nothing was stored. The message does not quote it.
        """
        if kind not in EXPERIENCE_KINDS:
            raise InvalidInput(
                f"unknown kind {brief(kind)} of lesson: use one of {', '.join(EXPERIENCE_KINDS)}"
            )
        text = " ".join(checked_text(text, "lesson").split())
        if author is not None and author.deployment != self._everyone.deployment:
            raise InvalidInput(
                f"{brief(author.deployment)} is another deployment than {brief(self._everyone.deployment)}"
            )
        if repeats(text, said):
            raise NotAllowed("this lesson may not be kept for everyone: it repeats what somebody said")
        if author is not None and await keeps_nothing(self._store, author):
            raise NotAllowed("this lesson may not be kept: its author chose that nothing of them is")
        await self._check(text, author)
        name = memory_id(EXPERIENCE, self.agent, kind, *sorted(_lesson_stems(text)))
        lesson = Lesson(id=_shown_id(name, text), kind=kind, text=text)
        return await until_written(lambda: self._add(lesson, author), "the agent's experience")

    async def adopt(self, lesson_id: str, *, by: str | None = None) -> Lesson:
        """Approve a lesson for use with every user, whoever taught it. For operators.

        Args:
            lesson_id: the listed id, which stands for this exact wording.
            by: who decides, for `Proposals.decisions`.

        Raises:
            InvalidInput: there is no such lesson.
        """
        return await self._decide("approved", lesson_id, by)

    async def withdraw(self, lesson_id: str, *, by: str | None = None) -> Lesson:
        """Remove a lesson from prompts, even if it is taught again; otherwise as `adopt`."""
        return await self._decide("withdrawn", lesson_id, by)

    async def remove(self, lesson_id: str, *, by: str | None = None) -> None:
        """Delete a lesson, as when rejecting a pending one. It may be taught again. For operators.

        Arguments and errors as for `adopt`.
        """
        noted = self._noted("rejected", None, decider(by))
        kept = await self._named(lesson_id)
        await self._store.write(self._everyone, [noted])
        await self._store.erase(self._everyone, [Drop(kind=EXPERIENCE, id=kept.name)])

    # -- inside

    async def _decide(self, what: Decided, lesson_id: str, by: str | None) -> Lesson:
        by, adopted = decider(by), what == "approved"

        async def attempt() -> Lesson:
            kept = await self._named(lesson_id)
            # from now on the lesson is the deployment's own, like an approved proposal
            decided = replace(kept, adopted=adopted, withdrawn=not adopted, taught_by=())
            moved = self._group(decided) != self._group(kept)
            surplus = self._surplus(await self._kept(), decided) if moved else []
            noted = self._noted(what, kept.lesson.text, by)
            await self._store.write(self._everyone, [_put(decided, self.agent), *surplus, noted])
            return self._told(decided)

        return await until_written(attempt, "the lesson")

    async def _check(self, text: str, author: Scope | None) -> None:
        own = await self._own_words(author) if author is not None else frozenset()
        # only words that the deployment allows, or capitalised ones, could be a name
        doubtful = any(word.stem and word.text in self._words for word in words_of(text))
        names = await self._names() if doubtful else frozenset()
        against = objection(text, words=self._words, own=own, names=names)
        if against is not None:
            raise NotAllowed(
                f"this lesson may not be kept for everyone: {against}. "
                "Say it in general, in ordinary words, of nobody in particular."
            )

    async def _own_words(self, author: Scope) -> frozenset[str]:
        """Words of the author's names, places and the like, current and past."""
        records = await scan_all(self._store, author, MEMORY)
        return frozenset(
            word
            for record in records
            if _is_own(memory := memory_of(record))
            for word in cut(memory.text)
            if word not in STOP
        )

    async def _names(self) -> frozenset[str]:
        """The words of all names of the deployment's users."""
        found: set[str] = set()
        for scope in await self._store.scopes(self._everyone.deployment):
            for key in _NAMES if scope.user is not None else ():
                for record in await self._store.scan(scope, MEMORY, key=key, limit=4, newest_first=True):
                    found.update(cut(memory_of(record).text))
        return frozenset(found - STOP)

    async def _add(self, lesson: Lesson, author: Scope | None) -> Lesson:
        kept = await self._kept()
        same = _same(lesson, kept)
        if same is not None and (author is not None or _is_confirmed(same, lesson)):
            again = _again(same, lesson, author)
            moved = self._surplus(kept, again) if self._group(again) != self._group(same) else []
            await self._store.write(self._everyone, [_put(again, self.agent), *moved])
            return self._told(again)
        taught_by = () if author is None else (teacher(author),)
        new = _StoredLesson(lesson, taught_by, adopted=author is None, withdrawn=False, seq=-1, version=0)
        replaced: list[Change] = []
        if same is not None and same.name == new.name:
            new = replace(new, seq=same.seq, version=same.version)
        elif same is not None and not (same.adopted or same.withdrawn):
            replaced = [Drop(kind=EXPERIENCE, id=same.name)]
        await self._store.write(self._everyone, [_put(new, self.agent), *replaced, *self._surplus(kept, new)])
        return self._told(new)

    async def _kept(self) -> list[_StoredLesson]:
        records = await scan_all(self._store, self._everyone, EXPERIENCE, key=self.agent)
        return [_kept_of(record) for record in records]

    async def _named(self, lesson_id: str) -> _StoredLesson:
        name = checked_name(lesson_id, "lesson id").rpartition("-")[0]
        records = await self._store.read(self._everyone, EXPERIENCE, [name]) if name else ()
        # operators decide about the wording they saw: another wording has another id
        if not records or records[0].key != self.agent or _kept_of(records[0]).lesson.id != lesson_id:
            raise InvalidInput(f"agent {brief(self.agent)} has no lesson {brief(lesson_id)}")
        return _kept_of(records[0])

    def _surplus(self, kept: Sequence[_StoredLesson], new: _StoredLesson) -> list[Change]:
        """The changes that make room for `new`."""
        beside = sorted(
            (k for k in kept if self._group(k) == self._group(new) and k.name != new.name),
            key=lambda k: (len(k.taught_by), k.lesson.times, k.seq),
        )
        gone = beside[: max(0, len(beside) - MAX_LESSONS_PER_KIND + 1)]
        return [Drop(kind=EXPERIENCE, id=one.name) for one in gone]

    def _group(self, kept: _StoredLesson) -> tuple[ExperienceKind, bool, LessonState]:
        """The group of lessons with which it competes for space."""
        return (kept.lesson.kind, kept.adopted, self._state(kept))

    def _state(self, kept: _StoredLesson) -> LessonState:
        if kept.withdrawn:
            return "withdrawn"
        taught = self._teachers is not None and max(1, len(kept.taught_by)) >= self._teachers
        return "approved" if kept.adopted or taught else "waiting"

    def _told(self, kept: _StoredLesson) -> Lesson:
        return replace(kept.lesson, state=self._state(kept))

    def _shown(self, kept: Sequence[_StoredLesson]) -> Experience:
        ordered = sorted(kept, key=lambda k: (EXPERIENCE_KINDS.index(k.lesson.kind), k.seq))
        return Experience(agent=self.agent, lessons=tuple(self._told(k) for k in ordered))

    def _noted(self, what: Decided, text: str | None, by: str) -> Put:
        at = self._clock()
        return put_decision(Decision(what=what, of="lesson", key=self.agent, text=text, by=by, at=at))


async def agents_with_lessons(store: Store, everyone: Scope) -> list[str]:
    """The names of a deployment's agents that have lessons, in order."""
    return sorted({record.key or "" for record in await scan_all(store, everyone, EXPERIENCE)})


def teacher(scope: Scope) -> str:
    """A digest of the scope whose conversations taught a lesson; it does not reveal the user."""
    return memory_id("teacher", scope.deployment, scope.user or "")


async def unlearn(
    store: Store, author: Scope, says: Callable[[str], bool] = lambda _: True
) -> tuple[list[Drop], int]:
    """Remove `author` as a teacher of the lessons whose text `says` selects.

    Returns the drops of lessons that nobody else taught or approved, and how many others stay.
    """
    digest = teacher(author)

    async def attempt() -> tuple[list[Drop], int]:
        records = await scan_all(store, author.everyone, EXPERIENCE)
        taught = [
            (kept, record)
            for record in records
            if digest in (kept := _kept_of(record)).taught_by and says(kept.lesson.text)
        ]
        drops: list[Drop] = []
        puts: list[Change] = []
        for kept, record in taught:
            others = tuple(other for other in kept.taught_by if other != digest)
            if others or kept.adopted or kept.withdrawn:
                puts.append(_put(replace(kept, taught_by=others), record.key or ""))
            else:
                drops.append(Drop(kind=EXPERIENCE, id=record.id))
        if puts:
            await store.write(author.everyone, puts)
        return drops, len(puts)

    return await until_written(attempt, "the agents' experience")


def _is_own(memory: Memory) -> bool:
    key = memory.key or ""
    return memory.category == "entity" or key in _OWN_KEYS or key.endswith("name")


def _lesson_stems(text: str) -> frozenset[str]:
    words = content_words(text)
    return frozenset(word.stem for word in words) or frozenset(cut(text))


def _same(lesson: Lesson, kept: Sequence[_StoredLesson]) -> _StoredLesson | None:
    """The one of `kept` that says the same as `lesson`."""
    stems = _lesson_stems(lesson.text)
    alike = [
        (len(stems & other.stems) / max(1, len(stems | other.stems)), other)
        for other in kept
        if other.lesson.kind == lesson.kind
    ]
    best = max(alike, key=lambda pair: (pair[0], -pair[1].seq), default=(0.0, None))
    return best[1] if best[0] >= ALIKE else None


def _is_confirmed(kept: _StoredLesson, lesson: Lesson) -> bool:
    """Whether an operator's `lesson` approves `kept`. Of operators' own lessons another order is the same."""
    same = _is_worded(kept, lesson)
    return same or (kept.adopted and same_words(kept.lesson.text, lesson.text))


def _is_worded(kept: _StoredLesson, lesson: Lesson) -> bool:
    """Whether `lesson` supports `kept`: only in the same words, since the opposite has nearly the same
    stems.
    """
    return kept.lesson.text.casefold().rstrip(" .!") == lesson.text.casefold().rstrip(" .!")


def _again(kept: _StoredLesson, taught: Lesson, author: Scope | None) -> _StoredLesson:
    lesson = replace(kept.lesson, times=kept.lesson.times + 1)
    if author is None:
        return replace(kept, lesson=lesson, adopted=True, withdrawn=False)
    # keep the words that an operator read; nobody counts as a teacher of what may be the opposite
    if kept.adopted or kept.withdrawn or not _is_worded(kept, taught):
        return replace(kept, lesson=lesson)
    taught_by = tuple(dict.fromkeys((*kept.taught_by, teacher(author))))[:_TEACHERS]
    return replace(kept, lesson=lesson, taught_by=taught_by)


def _shown_id(name: str, text: str) -> str:
    """The id of a lesson's current wording; `name` is the id of its record."""
    return f"{name}-{memory_id(text)}"


def _put(kept: _StoredLesson, agent: str) -> Put:
    data: dict[str, Any] = {
        "kind": kept.lesson.kind,
        "text": kept.lesson.text,
        "times": kept.lesson.times,
        "taught_by": list(kept.taught_by),
        "adopted": kept.adopted,
        **({"withdrawn": True} if kept.withdrawn else {}),
    }
    record = Record(kind=EXPERIENCE, id=kept.name, key=agent, data=data)
    return Put(record=record, expect=kept.version)


def _kept_of(record: Record) -> _StoredLesson:
    data = record.data
    name = _shown_id(record.id, data["text"])
    lesson = Lesson(id=name, kind=data["kind"], text=data["text"], times=data["times"])
    return _StoredLesson(
        lesson=lesson,
        taught_by=tuple(data["taught_by"]),
        adopted=data["adopted"],
        withdrawn=data.get("withdrawn", False),
        seq=record.seq,
        version=record.version,
    )


# -- whether a lesson may be shared: general, in ordinary words, and about no particular person

MAX_LESSON_CHARACTERS: Final = 240
"""One sentence, two at most. The limit also bounds the cost of checking a hostile text."""

_SIGNS = re.compile(r"[^\w\s.,;:!?'’\"“”()/&%+–—-]")
_DIGITS = re.compile(r"[^\W\d_]*\d[\w.,:/-]*\d|\d{2,}")
_IDENTIFIER = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
# A lesson may mention callers in general; these words mean a particular person.
_SOMEONE = frozenset("he him his himself she her hers herself i me my mine myself i'm i've i'd i'll".split())
_ANYBODY = frozenset(
    """we us our ours ourselves you your yours yourself yourselves they them their theirs themselves who whom
    whose someone somebody everybody nobody""".split()
)
_SERVED = frozenset("user caller customer client guest person patient member visitor".split())
_SOMEBODY = _SERVED | frozenset(
    """tenant resident passenger traveler traveller student pupil driver rider buyer seller shopper viewer
    subscriber listener regular neighbor neighbour lawyer teacher doctor nurse engineer owner employee
    colleague man woman lady gentleman boy girl guy child kid baby teenager couple family""".split()
)
_BESIDE = frozenset("from in at of with on by upstairs downstairs next".split())
_DEFINITE = frozenset("the this that our".split())
_SUPPOSING = frozenset(
    """when whenever if once until unless after before while whether what whatever which how why where
    because since as than""".split()
)
_STATES = frozenset(
    """is was are were isn't wasn't has had hasn't hadn't does doesn't did didn't will would can can't cannot
    could may might must should said told asked went came lives works wants likes loves hates prefers
    """.split()
)
_PAST = frozenset("was were wasn't had hadn't did didn't said told asked went came".split())
_DEFINING = frozenset("who whose".split())
_REASONS = frozenset("because since as".split())
_AT_ALL_TIMES = frozenset("when whenever if once until unless before while whether".split())
"""Words that introduce what holds every time; "because" would tell of one time."""
_OF_THE_SERVICE: Final = {
    stem: (stems(before), stems(after))
    for stem, before, after in (
        ("relat", "", "date day time size position term price order importance weight path phrase"),
        ("pain", "", "point"),
        (
            "partner",
            "",
            "programme program discount offer hotel airline restaurant store shop site api service",
        ),
        (
            "oper",
            "retry repeat batch undo cancel memory search set get delete query write read tool fail slow",
            "fail return time succeed",
        ),
    )
}
"""Stems that name families and health, with words before and after that make them terms of the service:
"relative dates", "pain points", "retry the operation"."""
_BETROTHED: Final = frozenset("to ring party dinner gift photo announcement".split())
_ITS: Final = frozenset("a an the this that their your our his her my whose".split())
_NUMBERS = frozenset(
    """zero oh one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred
    thousand double triple""".split()
)
_TENS = frozenset("twenty thirty forty fifty sixty seventy eighty ninety".split())
_UNITS = frozenset("one two three four five six seven eight nine".split())
_QUOTE: Final = 5
"""Words in a row that count as quoting somebody."""
_RUN: Final = 3
"""Number words in a row, as many as a short code has."""
_CAPITALS = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april june july august
    september october november december english ok api json faq id url urls iso sms tv pdf""".split()
)

_LISTS: Final = word_lists("echoic.memory.experience")
_STEMS: Final = stems(
    " ".join((*_LISTS.values(), *COMMON, *VOCABULARY, LISTS["known function"].replace("'", "")))
)
"""Stems of the words lessons are written in. A name that is on no list does not pass."""
_DERIVED: Final = re.compile(
    r"[a-z]{3,}[st]ions?|[a-z]{4,}i[sz]ations?|[a-z]{5,}ments?|[a-z]{4,}[ai]bilit(?:y|ies)"
    r"|[a-z]{3,}(?:i|ed|ful|ive|less|ous)ness|[a-z]{3,}(?:al|ing|ous|ive|ful|ed|less)ly"
)
"""Endings of derived nouns and adverbs. The minimum length before them excludes the names "Clement",
"Inverness" and "Kelly"."""

_PREFIXED: Final = re.compile(r"(?:re|un|mis|non|pre)([a-z]{4,})")


def objection(
    text: str, *, words: Collection[str] = (), own: Collection[str] = (), names: Collection[str] = ()
) -> str | None:
    """Why `text` may not be shared as a lesson; None if it may.

    All words are folded: `words` are additional ordinary words, `own` come from its author's memory, and
    `names` are those of the deployment's users.
    """
    if len(text) > MAX_LESSON_CHARACTERS:
        return f"it has {len(text)} characters, {MAX_LESSON_CHARACTERS} at most"
    if _SIGNS.search(text) or hides_something(text):
        return "it holds markup or hidden characters"
    if _DIGITS.search(text) or contacts(text) or holds_secret(text):
        return "it holds a number, an address or a secret"
    # the name of a tool is not personal
    said = words_of(_IDENTIFIER.sub(lambda found: found.group().replace("_", " "), text))
    return _of_a_person(said) or _of_words(said, frozenset(words), frozenset(own), frozenset(names))


def repeats(text: str, said: Iterable[str]) -> bool:
    """Whether `text` has `_QUOTE` words in a row from one of the texts in `said`."""
    words = cut(text)
    runs = {tuple(words[at : at + _QUOTE]) for at in range(len(words) - _QUOTE + 1)}
    return bool(runs) and any(
        tuple(other[at : at + _QUOTE]) in runs
        for other in map(cut, said)
        for at in range(len(other) - _QUOTE + 1)
    )


def _of_a_person(said: Sequence[JudgedWord]) -> str | None:
    texts = [word.text for word in said]
    if not _SOMEONE.isdisjoint(texts):
        return "it speaks of a person"
    # "friendly" has the stem of "friend" but is not a relation
    impersonal = [
        word
        for place, word in enumerate(said)
        if word.text.split("'")[0] not in _ANYBODY | {"friendly"} and not _is_of_the_service(said, place)
    ]
    if about_a_person(impersonal) in {"relation", "health"}:
        return "it speaks of somebody's family or health"
    if any(_tells(texts, place) for place in range(len(texts))):
        return "it tells of one person"
    run = 0
    for before, text in zip(["", *texts], texts, strict=False):
        run = run + 1 if text in _NUMBERS else 0
        if run >= _RUN or (before in _TENS and text in _UNITS):
            return "it holds a number, an address or a secret"
    return None


def _is_of_the_service(said: Sequence[JudgedWord], place: int) -> bool:
    """Whether a word that could be about family or health is about the service here."""
    word = said[place]
    before = [other for other in said[max(0, place - 2) : place] if other.stem]
    after = said[place + 1 : place + 2]
    if word.stem == "engag":  # "pays attention": no article and no owner
        owned = any(other.text in _ITS or other.text.endswith("'s") for other in before[-1:])
        return not owned and not any(other.text in _BETROTHED for other in after)
    if word.stem == "relat" and word.text not in {"relative", "relatives"}:
        return True
    around = _OF_THE_SERVICE.get(word.stem)
    return around is not None and (
        any(other.stem in around[0] for other in before) or any(other.stem in around[1] for other in after)
    )


def _tells(texts: Sequence[str], place: int) -> bool:
    """Whether "the caller" at `place` is a particular person, rather than any caller."""
    bare = texts[place].removesuffix("'s")
    if bare not in _SOMEBODY or place == 0 or texts[place - 1] not in _DEFINITE:
        return False
    if place > 1 and texts[place - 2] in _SUPPOSING:
        return False
    # "the caller wants", "the caller's order was", "the caller always asks"
    behind = texts[place + 1 : place + 4]
    if not _BESIDE.isdisjoint(behind[:1]):  # "the lawyer from the second floor is"
        behind = texts[place + 1 : place + 8]
        if place == 1 and any(text.endswith("s") and ordinary(text) for text in behind):
            return True  # "the tenant in apartment two pays"
    if not _DEFINING.isdisjoint(behind[:1]):  # "the caller who complained": that one
        return True
    # "asking the caller works", "wait for the caller when they are busy": any caller, every time
    doing = texts[0].endswith("ing") and ordinary(texts[0]) and _REASONS.isdisjoint(texts)
    each_time = place > 1 and not _AT_ALL_TIMES.isdisjoint(behind[:1])
    if (doing or each_time) and _PAST.isdisjoint(texts):
        return False
    return any(text in _STATES for text in behind) or (
        bool(behind) and behind[0].endswith("s") and ordinary(behind[0]) and texts[place] == bare
    )


def _of_words(
    said: Sequence[JudgedWord], words: frozenset[str], own: frozenset[str], names: frozenset[str]
) -> str | None:
    doubtful = set(names_among(said))
    for word in said:
        bare = word.text.removesuffix("'s").removesuffix("'")
        if not word.stem or (bare in words and bare not in own | names):
            continue
        if bare in own:
            return "it holds a word from its author's own memory"
        if word.capital and not word.opens and bare not in _CAPITALS:
            return "it holds what may be a name"
        if bare in NAMES and word.text in doubtful:
            return "it holds what may be a name"
        if bare in words or not ordinary(word.text):
            return "it holds a word that is not known to be an ordinary one"
    return None


def ordinary(word: str) -> bool:
    """Whether a folded word belongs to the ordinary vocabulary of lessons."""
    bare = word.removesuffix("'s").removesuffix("'")
    parts = [part for part in bare.replace(".", "-").split("-") if part]
    return all(_is_known(part) for part in parts)


def _is_known(part: str) -> bool:
    if stem(part) in _STEMS or _DERIVED.fullmatch(part):
        return True
    again = _PREFIXED.fullmatch(part)
    return again is not None and stem(again[1]) in _STEMS
