"""Grade a memory by the corpus: what it finds, when it is silent, what it learns, keeps and forgets.

Takes callers and a `System`, gives `Marks`. Pure but for a stopwatch, and it knows no system. Calls are
played in their order; a question is asked when its call begins, of what was said before it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from echoic_corpus.checking import words
from echoic_corpus.marks import Marks
from echoic_corpus.model import EVERYTHING, Call, Caller, Fact, Forget, Question, Trap, Turn
from echoic_corpus.noise import RATES, Recogniser

VERSIONS = ("clean", *RATES)
LIMIT = 10
"""Hits of a query that are looked at."""
SOURCES = 3
"""Of the turns that one hit names, so many count: naming all of them is not finding."""
_TURN_S = 6
_SAME = 0.5
"""Share of the content words that two texts must have in common to say the same."""
_EMPTY = frozenset(
    "a an and are as at be but by caller do does for from had has have he her his i i'm i've in is it it's"
    " its me my no not of on or our she so that that's the their them they this to user was we were with you"
    " your".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A turn as a system gets it, without labels."""

    id: str
    call: str
    """The id of the call it belongs to."""
    speaker: str
    role: str
    """`caller`, `agent` or `other`."""
    text: str
    """Of a caller, what the recogniser wrote; of an agent, what was generated."""
    heard: str | None
    """What of an interrupted agent's words was heard; None where all was."""
    at: datetime
    confidence: float | None
    """The recogniser's, 0 to 1; None where the text is what was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One thing that a system hands out."""

    text: str
    """All that it shows."""
    turns: tuple[str, ...]
    """Ids of the turns it shows or was learned from, the most telling first."""
    score: float = 0.0
    """Higher is more relevant; compared between queries."""


class System(Protocol):
    """A memory under test. A system that cannot do one of these does nothing there."""

    async def open(self, caller: str, zone: str) -> None:
        """The caller of this id, in this time zone, calls for the first time. Callers share one system."""
        ...

    async def add(self, said: Said) -> None:
        """Keep a turn. Timed: it returns when the turn is kept as well as this system keeps things."""
        ...

    async def hang_up(self) -> None:
        """The call is over: learn from it. From here on all of it can be found. Not timed."""
        ...

    async def query(self, text: str, at: datetime, limit: int) -> Sequence[Found]:
        """What is known for `text`, asked at that time, best first; empty where nothing is. Timed."""
        ...

    async def facts(self) -> Sequence[Found] | None:
        """What was learned of the caller and still holds; None: this system learns nothing."""
        ...

    async def forget(self, turns: Sequence[str]) -> None:
        """The caller wants what these turns say to be forgotten."""
        ...


def heard_by(
    caller: Caller, call: Call, version: str, recogniser: Recogniser | None = None
) -> Iterator[Said]:
    """The turns of a call as `version` has them. What an agent says is known and never misheard."""
    for place, turn in enumerate(call.turns):
        text, sure = turn.text, None
        if version != "clean" and turn.role != "agent":
            heard = _recogniser(recogniser).hear(caller, turn, version)
            text = heard.text
            sure = sum(word.confidence for word in heard.words) / max(1, len(heard.words))
        if text:  # a recogniser may write nothing
            yield Said(
                id=turn.id,
                call=f"{caller.id}/{call.number}",
                speaker=turn.speaker,
                role=turn.role,
                text=text,
                heard=None if turn.heard is None else turn.heard_text,
                at=call.at + timedelta(seconds=_TURN_S * place),
                confidence=sure,
            )


def asked_as(caller: Caller, question: Question, version: str, recogniser: Recogniser | None = None) -> str:
    """The words of a question as `version` has them."""
    if version == "clean":
        return question.text
    return _recogniser(recogniser).hear(caller, question, version).text


async def grade(
    system: System,
    callers: Iterable[Caller],
    *,
    version: str = "clean",
    recogniser: Recogniser | None = None,
    marks: Marks | None = None,
) -> Marks:
    """Play every caller to `system` and mark what it does.

    Args:
        system: one that knows nothing of these callers.
        callers: who calls, one after the other.
        version: "clean", or one that `recogniser` hears. Learning, forgetting, secrets and unheard words are
            marked in the clean version only, where words can be compared.
        recogniser: made of the whole corpus, so that it mishears alike whoever is chosen.
        marks: of earlier callers, to go on with.
    """
    marks = Marks() if marks is None else marks
    for caller in callers:
        grading = _Grading(system, caller, version, recogniser, marks)
        await grading.play()
        if version == "clean":
            await grading.probe()
    return marks


class _Grading:
    """One caller played to one system."""

    def __init__(
        self, system: System, caller: Caller, version: str, recogniser: Recogniser | None, marks: Marks
    ) -> None:
        self._system, self._caller, self._version, self._recogniser = system, caller, version, recogniser
        self._marks = marks
        self._end = caller.calls[-1].at + timedelta(days=1)

    async def play(self) -> None:
        caller = self._caller
        await self._system.open(caller.id, caller.about["zone"])
        for call in caller.calls:
            await self._ask([q for q in caller.questions if q.at_call == call.number])
            for said in heard_by(caller, call, self._version, self._recogniser):
                began = time.perf_counter()
                await self._system.add(said)
                self._marks.add_s.append(time.perf_counter() - began)
            await self._system.hang_up()
        await self._ask([q for q in caller.questions if q.at_call > len(caller.calls)])
        for remark in caller.silence:
            self._silence(await self._query(remark, self._end), "remark")

    async def _ask(self, questions: Sequence[Question]) -> None:
        for question in questions:
            text = asked_as(self._caller, question, self._version, self._recogniser)
            began = time.perf_counter()
            found = await self._query(text, self._caller.asked_at(question))
            if question.answerable:
                self._marks.query_s.append(time.perf_counter() - began)
                self._retrieval(found, question)
            else:
                self._silence(found, question.kind)

    async def _query(self, text: str, at: datetime) -> list[Found]:
        if not text:
            return []
        found = list(await self._system.query(text, at, LIMIT))[:LIMIT]
        named = {turn for each in found for turn in each.turns}
        self._marks.leaks += len(named - self._caller.turns.keys())
        return found

    def _note(self, measure: str, value: float, kind: str = "") -> None:
        self._marks.note(self._caller.id, measure, float(value), kind)

    def _retrieval(self, found: Sequence[Found], question: Question) -> None:
        gold, left, gained = set(question.turns), set(question.turns), 0.0
        for place, each in enumerate(found, 1):
            new = left & set(each.turns[:SOURCES])
            gained += 1 / math.log2(place + 1) if new else 0.0
            left -= new
        early = {turn for each in found[: LIMIT // 2] for turn in each.turns[:SOURCES]}
        self._note("R@5", len(gold & early) / len(gold), question.kind)
        ideal = sum(1 / math.log2(place + 1) for place in range(1, min(LIMIT, len(gold)) + 1))
        self._note("R@10", 1 - len(left) / len(gold), question.kind)
        self._note("nDCG@10", gained / ideal, question.kind)
        self._note("words", sum(len(words(each.text)) for each in found))
        self._note("wrongly silent", not found)
        self._marks.score("answer", found[0].score if found else -math.inf)

    def _silence(self, found: Sequence[Found], kind: str) -> None:
        what = "remark" if kind == "remark" else "no answer"
        self._note("silent", not found, kind)
        self._note(f"silent, {what}", not found)
        for name in dict.fromkeys((what, kind)):
            self._marks.score(name, found[0].score if found else -math.inf)

    async def probe(self) -> None:
        """What only the clean version tells, after the last call."""
        facts = await self._system.facts()
        if facts is not None:
            self._learning(facts)
        for trap in self._caller.traps:
            if trap.reason == "secret":
                await self._secret(trap, facts or ())
            elif trap.reason == "unheard":
                found = await self._query(trap.span.quote, self._end)
                self._note("unheard recalled", _any_shows(found, trap.turn, trap.span.quote))
        await self._forgetting("as spoken")
        for forget in self._caller.forgets:
            await self._system.forget(self._reached(forget))
        await self._forgetting("told to")

    def _learning(self, facts: Sequence[Found]) -> None:
        replaced = {old: fact for fact in self._caller.facts for old in fact.replaces}
        reached = {turn for forget in self._caller.forgets for turn in self._reached(forget)}
        end = self._end.date().isoformat()
        for fact in self._caller.facts:
            known = any(self._says(each, fact) for each in facts)
            if fact.id in replaced:
                newer = replaced[fact.id]
                self._note(
                    "outdated held", any(self._says(f, fact) and not self._says(f, newer) for f in facts)
                )
            elif fact.turn not in reached and not (fact.until and fact.until < end[: len(fact.until)]):
                self._note("facts found", known, fact.category)
        for each in facts:
            self._note("learned is labelled", any(self._says(each, fact) for fact in self._caller.facts))
        for trap in self._caller.traps:
            if trap.reason != "secret":
                self._note("traps stored", any(self._fell_for(each, trap) for each in facts), trap.reason)

    def _says(self, found: Found, fact: Fact) -> bool:
        """Whether `found` says the fact: learned where it was said, in the words of value or quote."""
        named = {turn.name: turn.id for turn in self._caller.turns.values() if turn.name}
        if not {fact.turn, *(named.get(name, "") for name in fact.also)} & set(found.turns):
            return False
        told, quoted = _content(found.text), _content(" ".join(span.quote for span in fact.spans))
        return _share(_content(fact.value), told) >= _SAME or _share(told, quoted) >= _SAME

    def _fell_for(self, found: Found, trap: Trap) -> bool:
        if trap.turn not in found.turns:
            return False
        told, bait = _content(found.text), _content(trap.span.quote)
        if _share(bait, told) >= _SAME:
            return True
        return _share(told, bait) >= _SAME and not any(self._says(found, fact) for fact in self._caller.facts)

    async def _secret(self, trap: Trap, facts: Sequence[Found]) -> None:
        text = self._caller.turns[trap.turn].text
        around = f"{text[: trap.span.start]} {text[trap.span.end :]}".strip()
        found = await self._query(around or text, self._end)
        self._note("secrets kept", _any_shows([*found, *facts], trap.turn, trap.span.quote))

    async def _forgetting(self, how: str) -> None:
        """Whether what was to go is recalled, by its question or its own words, and what was to stay."""
        for question in self._caller.questions:
            if question.kind == "forgotten" and question.turns:
                said = self._quotes(question.facts, question.turns)
                found = await self._query(question.text, self._end)
                for quote in (quote for _, quote in said):
                    found += await self._query(quote, self._end)
                recalled = any(_any_shows(found, turn, quote) for turn, quote in said)
                self._note(f"forgotten recalled, {how}", recalled)
        for forget in self._caller.forgets:
            for turn, quote in self._named(forget.keeps):
                found = await self._query(quote, self._end)
                self._note(f"kept beside it, {how}", _any_shows(found, turn, quote))

    def _quotes(self, facts: Sequence[str], turns: Sequence[str]) -> list[tuple[str, str]]:
        """Turn and words of every fact, and of every turn that is none of theirs."""
        said = [(f.turn, span.quote) for f in map(self._caller.fact.__getitem__, facts) for span in f.spans]
        theirs = {turn for turn, _ in said}
        return said + [(turn, self._caller.turns[turn].heard_text) for turn in turns if turn not in theirs]

    def _named(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        turns: Mapping[str | None, Turn] = {turn.name: turn for turn in self._caller.turns.values()}
        facts = [name for name in ids if name in self._caller.fact]
        return self._quotes(facts, ()) + [(turns[n].id, turns[n].heard_text) for n in ids if n in turns]

    def _reached(self, forget: Forget) -> list[str]:
        order = list(self._caller.turns)
        if EVERYTHING in forget.reaches:
            return order[: order.index(forget.turn)]
        return list(dict.fromkeys(turn for turn, _ in self._named(forget.reaches)))


def _any_shows(found: Iterable[Found], turn: str, quote: str) -> bool:
    """Whether anything that is of `turn` has the words of `quote` in a row."""
    said = f" {' '.join(words(quote))} "
    return any(turn in each.turns and said in f" {' '.join(words(each.text))} " for each in found)


def _content(text: str) -> frozenset[str]:
    return frozenset(words(text)) - _EMPTY


def _share(part: frozenset[str], whole: frozenset[str]) -> float:
    return len(part & whole) / len(part) if part else 0.0


def _recogniser(given: Recogniser | None) -> Recogniser:
    if given is None:
        raise ValueError("a version that is misheard needs a recogniser: Recogniser(read_all()[0])")
    return given


__all__ = ["LIMIT", "SOURCES", "VERSIONS", "Found", "Said", "System", "asked_as", "grade", "heard_by"]
