"""Targets of a spoken request to forget: what it refers to, hidden until the user confirms the erasure.

The rarest words of the request are looked up in everything the user said, with a high bar: a sentence is a
target if it, its turn or the question before it contains enough of them. A request that only points back
("rub that out") refers to what was said last, and one that names only a call or a time ("what I said
yesterday") to all of it. What an agent repeated of a target is a target too. If many turns match about
equally well, the request is ambiguous and nothing changes: ask the user.

Because the rules that read a request may be wrong, its targets are only hidden; `UserMemory.forget(asked=…)`
destroys them once the user confirms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Final

from echoic.english import SelfStatement, listen
from echoic.english.forget_requests import SENTENCE, ForgetRequest, forget_request
from echoic.english.slots import is_of
from echoic.memory.extraction.turns import (
    EMPTY,
    OF_SELF,
    PART,
    PREFIX,
    REACH,
    REASON,
    SAID,
    SLIP,
    WHY,
    Stretch,
    hushes,
    names_it,
    of_user,
    said_last,
    stems_of,
    takes_back,
    told_beside,
)
from echoic.memory.mentions import Span, TextPassage, joined, subject_of
from echoic.memory.profile import remembered_zone
from echoic.memory.records import MEMORY, TURN, memory_of, scan_all, turn_of
from echoic.memory.retraction import hide
from echoic.ranking.indexing import AGENT, USER
from echoic.stores.base import Store
from echoic.temporal import spans_of_phrase
from echoic.temporal.expressions import find_expressions
from echoic.temporal.rules import Calendar, milliseconds
from echoic.text import MARKER, fold, sound
from echoic.types import Memory, Scope, Turn

MAX_TURNS: Final = 4
"""The most turns of people a request may match. A word like "work" matches more: then it is ambiguous."""
_BAR: Final = 4.5
"""Total rarity (natural logarithm of one in so many sentences) of the words a sentence must share."""
_BAR_THEN: Final = 3.0
"""The same for sentences from a month that the request names, which leaves fewer candidates."""
_RARE: Final = 2.0
"""Rarity of a word that identifies one of the user's last utterances."""
_PLAIN: Final = 8.5
"""Rarity from which an older sentence outweighs what was said last."""
_COVERED: Final = 0.5
"""Share of the request's words, of those said before, that a sentence must have."""
_ECHOED: Final = 2.5
"""Rarity of the words an agent must repeat to be an echo."""
_CLOSE: Final = 0.8
"""Share of the best score from which another sentence is a target as well."""
_SAME_TURN, _TURN_BEFORE = 0.5, 0.4
"""Weights of words in the same turn, and in the turn it answers."""
_NEARBY: Final = 0.4
"""Weight of words around the request."""
_NAME: Final = re.compile(r"(?<=[a-z,] )[A-Z][\w'’-]{3,}")
_OF_TIME: Final = re.compile(r"\b(?:for|about|by|regarding|to|until|till|of)(?: the)? $", re.IGNORECASE)
"""Before a time that was spoken of: "what I said for Monday"."""
_OF_WHAT: Final = re.compile(r"\b(?:about|regarding|to do with|as for|if|and) (?=\w)", re.IGNORECASE)
"""Before what of a call is meant, in words that may all be empty: "this call about the booking"."""
_NOT_TO_KEEP: Final = re.compile(r"n['’]t\b|\b(?:not|never|no need|rather)\b", re.IGNORECASE)
_ABOUT_IT: Final = re.compile(r"\b(?:about|of) (?:him|her|them|it|this|that)\b", re.IGNORECASE)
_WORDS: Final = 2
"""Words of a request that a sentence must share, counting its turn and what it answers."""
_CLAUSE: Final = 4
"""Words before a request in the same sentence that make a statement of their own."""
_ECHO_WITHIN: Final = 2
"""Turns after a target, and after the request, in which an agent may repeat it."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What a request to forget refers to."""

    spans: Mapping[str, list[Span]] = field(default_factory=dict)
    """By turn, the spans of its heard words to forget."""
    memories: tuple[Memory, ...] = ()
    """Memories learned from these spans, or that say the same."""
    said: tuple[Turn, ...] = ()
    """The turns of people in `spans`; that of the request only if nothing was said elsewhere."""
    until: str | None = None
    """The turn after which saying it again stores it again; None: the request's own."""
    unclear: bool = False
    """Whether too much matches, so that the user must be asked."""
    nothing: bool = False
    """Whether there is nothing that it refers to, so that nothing may be told to be gone."""
    of_all: bool = False
    """Whether it is all of a call or of a time, so that the same words said at another time stay."""


@dataclass(slots=True)
class _SentencePlace:
    """One sentence of a turn."""

    place: int
    span: Span
    stems: frozenset[str]


def targets(
    turns: Sequence[Turn], asked: Turn, memories: Sequence[Memory], zone: tzinfo = UTC
) -> Targets | None:
    """The targets of the request in `asked`, one of `turns`; None if it has none.

    `turns` are all turns of the user, in spoken order; `zone` is the user's, in which days begin.
    """
    request = forget_request(asked.heard_text)
    place = next((at for at, turn in enumerate(turns) if turn.id == asked.id), None)
    return None if request is None or place is None else _Search(turns, place, request, zone).found(memories)


class _Search:
    """The resolution of one request."""

    def __init__(self, turns: Sequence[Turn], place: int, request: ForgetRequest, zone: tzinfo) -> None:
        self._turns, self._place, self._request, self._zone = turns, place, request, zone
        self._lines = [line for at, turn in enumerate(turns) for line in _lines(at, turn.heard_text)]
        counts: dict[str, int] = {}
        for line in self._lines:
            for stem in line.stems if line.place < place else ():
                counts[stem] = counts.get(stem, 0) + 1
        self._counts = counts
        self._of_turn: dict[int, frozenset[str]] = {}
        for line in self._lines:
            self._of_turn[line.place] = self._of_turn.get(line.place, frozenset()) | line.stems
        self._named = self._as_heard(stems_of(" ".join(request.topic)) - EMPTY)
        self._topic = self._weights(request)
        self._known = sum(
            worth for stem, worth in self._topic.items() if stem in self._named and counts.get(stem)
        )
        self._spared = stems_of(request.spared) - stems_of(" ".join(request.topic))

    def _as_heard(self, named: frozenset[str]) -> frozenset[str]:
        """`named`, with a name that was never said replaced by similar-sounding ones: "Catherine"."""
        names = (stems_of(name) for name in _NAME.findall(" ".join(self._request.topic)))
        for stem in frozenset[str]().union(*names) & named:
            codes = set(sound(stem))
            alike = {known for known in self._counts if len(known) > 3 and codes & set(sound(known))}
            if not self._counts.get(stem) and alike:
                named = (named - {stem}) | alike
        return named

    def found(self, memories: Sequence[Memory]) -> Targets:
        all_of_it = self._all_said()
        chosen, unclear = (all_of_it, False) if all_of_it is not None else self._chosen()
        if all_of_it is None and not self._request.ahead:
            chosen = [self._without_others(line) for line in chosen]
        lines = [*chosen, *self._echoes(chosen)]
        if all_of_it is not None and self._request.of_all != "said":
            # a call is also what the agent said in it
            talks = {self._turns[line.place].conversation for line in chosen}
            lines += [line for line in self._lines if self._is_agents(line, talks) and line not in lines]
        spans: dict[str, list[Span]] = {}
        for line in [*lines, *self._own(chosen)]:
            spans.setdefault(self._turns[line.place].id, []).append(line.span)
        if not chosen:
            spans = {name: joined(where) for name, where in spans.items()}
            said_alike = self._memories(memories, [], unclear)
            # "don't keep that I snore" holds itself what it means
            itself = _NOT_TO_KEEP.search(self._turns[self._place].heard_text) is not None
            itself = itself or any(not self._asks(line) for line in self._own(chosen))
            nothing = not said_alike and not itself
            return Targets(memories=said_alike, unclear=unclear, spans=spans, nothing=nothing)
        places = dict.fromkeys(line.place for line in chosen)
        said = [at for at in places if at != self._place] or list(places)
        learned = self._memories(memories, lines, unclear)
        if all_of_it is not None:
            told = {self._turns[line.place].id for line in lines}
            # what another call told as well stays
            learned = tuple(memory for memory in memories if memory.source and told >= {*memory.source})
        return Targets(
            spans={name: joined(where) for name, where in spans.items()},
            memories=learned,
            of_all=all_of_it is not None,
            said=tuple(self._turns[at] for at in said),
            until=self._turns[max(said)].id if said and self._request.ahead else None,
            unclear=unclear,
        )

    # -- what is meant

    def _all_said(self) -> list[_SentencePlace] | None:
        """What the user said in the call or at the time that is the request's whole object; None if it names
        something else, such as a subject.
        """
        beside = self._beside() if self._request.of_all is not None else None
        if beside is None:
            return None
        asked = self._turns[self._place]
        ranges = spans_of_phrase(f"I said {beside}", asked.said_at, self._zone).ranges
        talk = asked.conversation
        if self._request.of_all == "call before" and not ranges:
            others = (turn.conversation for turn in reversed(self._turns[: self._place]))
            talk = next((other for other in others if other != talk), "")
        elif self._request.of_all == "said" and not ranges:
            return None
        return [
            line
            for line in self._lines
            if (line.place < self._place or (line.place == self._place and self._is_before(line)))
            and self._turns[line.place].speaker == USER
            and (self._is_within(line, ranges) if ranges else self._turns[line.place].conversation == talk)
            and line.stems
            and not line.stems & self._spared - EMPTY
        ]

    def _beside(self) -> str | None:
        """What the request says beside a call or what was said, without its reasons ("I was upset"): only
        times. None if it names a subject.
        """
        calendar = Calendar(self._turns[self._place].said_at, self._zone)
        every = [part.strip().partition(" because ") for part in PART.split(self._request.beside)]
        parts = [part for part, _, _ in every if not WHY.match(part)]
        reasons = [part for part, _, _ in every if WHY.match(part)] + [tail for _, _, tail in every]
        if any((stems_of(reason) - EMPTY) & self._counts.keys() for reason in reasons):
            return None  # "… because I got the peanuts wrong" says what is meant
        for part in parts:
            rest = part
            for time in reversed(find_expressions(part, calendar)):
                if _OF_TIME.search(part[: time.start]):
                    return None
                rest = f"{rest[: time.start]} {rest[time.end :]}"
            if stems_of(rest) - EMPTY or _OF_WHAT.search(rest):
                return None
        return ". ".join(parts)

    def _is_within(self, line: _SentencePlace, ranges: Sequence[tuple[int, int]]) -> bool:
        at = milliseconds(self._turns[line.place].said_at)
        return any(first <= at <= last for first, last in ranges)

    def _is_agents(self, line: _SentencePlace, talks: Collection[str]) -> bool:
        turn = self._turns[line.place]
        return line.place < self._place and turn.speaker == AGENT and turn.conversation in talks

    def _weights(self, request: ForgetRequest) -> dict[str, float]:
        """The words that identify the target, with their weights."""
        near = stems_of(" ".join(request.nearby)) - EMPTY - self._named
        nearby = _NEARBY if len(self._named) >= _WORDS else 1.0
        weights = {stem: self._rarity(stem) for stem in self._named}
        return weights | {stem: nearby * self._rarity(stem) for stem in near}

    def _rarity(self, stem: str) -> float:
        total = max(40, sum(line.place < self._place for line in self._lines))
        return math.log((total + 1) / (self._counts.get(stem, 0) + 0.5))

    def _chosen(self) -> tuple[list[_SentencePlace], bool]:
        """The target sentences of people, and whether the request is ambiguous."""
        if self._request.ahead:
            return self._said_next(), False
        that = _takes_back_that(self._turns[self._place])
        of_it = not self._named and _ABOUT_IT.search(" ".join(self._request.topic))
        far = self._request.far and not that and not of_it
        if not far:
            rare = {stem for stem in self._topic if self._counts.get(stem) and self._rarity(stem) > _RARE}
            near = (self._in_breath() or self._just_named()) + self._told_in_it()
            points = self._request.points_back or self._request.far or that
            if not near and points and len(rare) < _WORDS:
                near = self._last()
            if near:
                return near, False
        close, unclear = self._anywhere(self._candidates())
        if not close and not unclear and not far and self._request.points_back:
            return self._last(), False
        return close, unclear

    def _said_next(self) -> list[_SentencePlace]:
        """What was said after the request: in the same turn, else in the user's next one."""
        last = max((last for _, last in self._request.asking), default=0)
        own = [line for line in self._lines if line.place == self._place and line.span[0] >= last]
        here = self._turns[self._place].conversation
        after = (
            at
            for at in range(self._place + 1, len(self._turns))
            if self._turns[at].conversation == here and self._turns[at].speaker == USER
        )
        behind = next(after, None)
        return own or [line for line in self._lines if line.place == behind]

    def _told_in_it(self) -> list[_SentencePlace]:
        """The rest of the request's turn, if it says what not to keep: "he is ill, don't note this"."""
        asked = self._turns[self._place].heard_text
        if not self._request.points_back and not hushes(asked):
            return []
        return [line for line in self._lines if line.place == self._place and told_beside(asked)]

    def _anywhere(self, candidates: Sequence[_SentencePlace]) -> tuple[list[_SentencePlace], bool]:
        """The best matches among `candidates`, and whether there are too many."""
        if self._request.months:
            then = [c for c in candidates if self._turns[c.place].said_at.month in self._request.months]
            scores = [(self._score(line, words=1), line) for line in then]
            if max((score for score, _ in scores), default=0.0) >= _BAR_THEN:
                return self._close(scores), False
        scores = [(self._score(line, words=_WORDS), line) for line in candidates]
        if max((score for score, _ in scores), default=0.0) < self._bar():
            return [], False
        close = self._close(scores)
        unclear = len({line.place for line in close}) > MAX_TURNS
        return ([], True) if unclear else (close, False)

    def _in_breath(self) -> list[_SentencePlace]:
        """Sentences directly before the request, in the same turn, that have its words."""
        asking = [line for line in self._lines if line.place == self._place and self._asks(line)]
        named = frozenset[str]().union(*(line.stems for line in asking)) - EMPTY
        return [
            line
            for line in self._lines
            if line.place == self._place and self._is_before(line) and line.stems & named
        ]

    def _asks(self, line: _SentencePlace) -> bool:
        return any(line.span[0] < last and first < line.span[1] for first, last in self._request.asking)

    def _bar(self) -> float:
        """The score a sentence needs: all words of the request suffice, if most of them were ever said."""
        known = [stem for stem in self._named if self._counts.get(stem)]
        rare = max((self._rarity(stem) for stem in known), default=0.0)
        names_it = 2 * len(known) > len(self._named) and rare > _RARE
        return min(_BAR, 0.95 * self._known) if names_it else _BAR

    def _just_named(self) -> list[_SentencePlace]:
        """The user's last utterances that contain the words of the request."""
        named = {stem: worth for stem, worth in self._topic.items() if stem in self._named and worth > _RARE}
        fits: dict[int, float] = {
            at: sum(named[stem] for stem in self._of_turn.get(at, frozenset()) & named.keys())
            for at in self._recent()
        }
        best = max(fits, key=lambda at: fits[at], default=None)
        if best is not None and fits[best]:
            return [
                line for line in self._lines if line.place == best and not line.stems & self._spared - EMPTY
            ]
        return []

    def _close(self, scores: Sequence[tuple[float, _SentencePlace]]) -> list[_SentencePlace]:
        """Sentences that score about as well as the best one."""
        best = max((score for score, _ in scores), default=0.0)
        return [line for score, line in scores if score >= _CLOSE * best]

    def _candidates(self) -> list[_SentencePlace]:
        return [
            line
            for line in self._lines
            if line.place < self._place and self._turns[line.place].speaker != AGENT and line.stems
        ]

    def _score(self, line: _SentencePlace, *, words: int) -> float:
        around = self._of_turn[line.place]
        before = self._before(line.place)
        score, shared = 0.0, 0
        for stem, worth in self._topic.items():
            near = 1.0 if stem in line.stems else _SAME_TURN if stem in around else 0.0
            near = near or (_TURN_BEFORE if stem in before else 0.0)
            score += near * worth
            shared += near > 0
        telling = any(self._rarity(stem) >= _BAR for stem in line.stems & self._named)
        few = shared < min(words, len(self._topic)) and not telling
        if few or score < _COVERED * self._known:
            return 0.0
        if sum(self._rarity(s) for s in line.stems & self._spared) > sum(
            self._rarity(s) for s in line.stems & self._topic.keys()
        ):
            return 0.0
        return score

    def _before(self, place: int) -> frozenset[str]:
        """The stems of the agent's words directly before, which the turn may answer."""
        turn = self._turns[place]
        if place and self._turns[place - 1].conversation == turn.conversation:
            return self._of_turn.get(place - 1, frozenset())
        return frozenset()

    def _last(self) -> list[_SentencePlace]:
        """What was said last: earlier in the same turn, else in the user's previous turn."""
        own = [line for line in self._lines if line.place == self._place and self._is_before(line)]
        if sum(len(line.stems - EMPTY) for line in own) >= 2 * _CLAUSE:
            return own
        if sum(len(line.stems - EMPTY) for line in own) < _CLAUSE:
            own = [line for line in own if line.stems - EMPTY - SLIP]
            # "I have epilepsy. Forget that." means no earlier turn; "I was upset. Forget that." does
            if any(self._states(line) for line in own):
                return own
        asked = self._turns[self._place]
        here = [turn for turn in self._turns[: self._place] if turn.conversation == asked.conversation]
        says = said_last(asked, here)
        said = [
            line
            for line in self._lines
            if self._turns[line.place].id in says and not line.stems & self._spared
        ]
        return [*said, *own]

    def _states(self, line: _SentencePlace) -> bool:
        """Whether a sentence says something of the speaker, which is no reason for the request."""
        said = self._turns[line.place].heard_text[slice(*line.span)].strip()
        reason = REASON.match(said) or WHY.match(said) or SAID.search(said)
        return OF_SELF.search(said) is not None and not reason

    def _without_others(self, line: _SentencePlace) -> _SentencePlace:
        """`line` from the first to the last clause that may be meant: "I live in Leeds and I'm divorced".

        Only a clause in which a rule reads something else of the speaker is certainly another matter.
        """
        passage = TextPassage(self._turns[line.place].heard_text, USER)
        meant = [clause for clause in passage.divided(line.span) if not self._says_else(passage, clause)]
        if line.stems.isdisjoint(self._topic) or not meant:
            return line
        span = (meant[0][0], meant[-1][1])
        return _SentencePlace(line.place, span, stems_of(passage.text[slice(*span)]))

    def _says_else(self, passage: TextPassage, clause: Span) -> bool:
        """Whether `clause` says something of the speaker, and nothing that the request names."""
        said = passage.text[slice(*clause)]
        heard = listen(said)
        about = set[str]().union(*(subject_of(one.key) for one in heard))
        return bool(heard) and stems_of(said).union(stem[:PREFIX] for stem in about).isdisjoint(self._topic)

    def _recent(self) -> list[int]:
        """The user's previous turns, latest first."""
        here = self._turns[self._place].conversation
        return [
            at
            for at in range(self._place - 1, -1, -1)
            if self._turns[at].conversation == here and self._turns[at].speaker == USER
        ][:REACH]

    def _is_before(self, line: _SentencePlace) -> bool:
        return any(line.span == before for before in self._request.before)

    # -- what goes with it

    def _echoes(self, chosen: Sequence[_SentencePlace]) -> list[_SentencePlace]:
        """What agents repeated of it, directly after it or after the request, and paraphrases."""
        if not chosen:
            return []
        told = frozenset[str]().union(*(line.stems for line in chosen)) - EMPTY
        topic = stems_of(" ".join(self._request.topic)) - EMPTY
        places = {line.place for line in chosen} | {self._place}
        behind = {
            at
            for place in places
            for at in range(place + 1, min(len(self._turns), place + 1 + _ECHO_WITHIN))
            if self._turns[at].speaker == AGENT and self._same_talk(at, place)
        }
        found = []
        for line in self._lines:
            if self._turns[line.place].speaker != AGENT:
                continue
            again = line.stems & told
            if line.place in behind:
                echoes = sum(map(self._rarity, line.stems & (told | topic))) >= _ECHOED
            else:
                echoes = len(again) > _WORDS and sum(map(self._rarity, again)) >= _PLAIN
            if echoes:
                found.append(line)
        return found

    def _same_talk(self, one: int, other: int) -> bool:
        return self._turns[one].conversation == self._turns[other].conversation

    def _own(self, chosen: Sequence[_SentencePlace]) -> list[_SentencePlace]:
        """The sentences of the request's turn that ask, or repeat the target."""
        told = frozenset[str]().union(*(line.stems for line in chosen)) - EMPTY if chosen else frozenset()
        found = []
        for line in self._lines:
            if line.place != self._place:
                continue
            asks = self._asks(line)
            pointed = self._request.points_back and not chosen and self._is_before(line)
            if asks or pointed or line.stems & told:
                found.append(line)
        return found

    def _memories(
        self, memories: Iterable[Memory], lines: Sequence[_SentencePlace], unclear: bool
    ) -> tuple[Memory, ...]:
        """Memories learned from the targets, or that say the same without citing a turn."""
        if unclear:
            return ()
        told: dict[str, frozenset[str]] = {}
        for line in lines:
            name = self._turns[line.place].id
            told[name] = told.get(name, frozenset()) | line.stems
        found = []
        for memory in memories:
            said = stems_of(memory.text)
            behind = [told[name] for name in memory.source if name in told]
            if any(said & stems for stems in behind) or (not behind and self._says(memory)):
                found.append(memory)
        return tuple(found)

    def _says(self, memory: Memory) -> bool:
        about = stems_of(
            f"{memory.key or ''} {memory.statement or memory.text}".replace("_", " ").replace(":", " ")
        )
        own = stems_of(" ".join(self._request.topic)) - EMPTY
        return bool(own) and own <= about


def _lines(place: int, text: str) -> list[_SentencePlace]:
    visible = MARKER.sub(lambda found: " " * len(found.group()), text)
    return [
        _SentencePlace(place, (found.start(), found.end()), stems_of(found.group()))
        for found in SENTENCE.finditer(visible)
        if found.group().strip()
    ]


_BEHIND: Final = 3
"""Turns after a request in which an agent may still repeat what is to be forgotten."""


async def obey(store: Store, scope: Scope, stretch: Stretch, kept: Sequence[Memory]) -> list[Memory]:
    """Hide what the user asked to forget in the turns of a stretch, or directly before it.

    `kept` was learned from them and is not written yet. Returns the memories to delete.
    """
    gone: list[Memory] = []
    for asked in (*stretch.context[-_BEHIND:], *stretch.turns):
        if not _asks(asked):
            continue
        turns = [turn_of(record) for record in await scan_all(store, scope, TURN)]
        memories = [*(memory_of(record) for record in await scan_all(store, scope, MEMORY)), *kept]
        if _takes_back_that(asked):
            memories = []  # the rules for "forget that" end them
        elif _is_obeyed(asked, memories):
            continue
        found = _reached(turns, asked, memories, await _zone(store, scope, asked))
        if found is not None:
            said = [*found.memories, *said_by(found)]
            # what the user says afterwards counts again
            until, at = found.until or asked.id, asked.said_at
            await hide(store, scope, said, parts=found.spans, until=until, at=at, deleted=True)
            gone += found.memories
    return gone


async def reached(store: Store, scope: Scope, asked: Turn) -> Targets | None:
    """The targets of the request in `asked`, also if `obey` leaves it to other rules; None without one."""
    if not _asks(asked):
        return None
    turns = [turn_of(record) for record in await scan_all(store, scope, TURN)]
    memories = [memory_of(record) for record in await scan_all(store, scope, MEMORY)]
    found = _reached(turns, asked, memories, await _zone(store, scope, asked))
    slots = [one for one in listen(asked.heard_text) if one.retracts]
    keyed = [one for one in memories if one.valid_from <= asked.said_at and _is_in(one, slots, asked)]
    if found is None or not keyed:
        return found
    sources = {name for one in keyed for name in one.source} - {asked.id}
    said = tuple(turn for turn in turns if turn.id in sources)
    # the words of "forget where I live" also fit where somebody else lives: what the slot held is meant
    own = {name: spans for name, spans in found.spans.items() if name == asked.id}
    return Targets(spans=own, memories=tuple(keyed), said=said)


def _is_in(memory: Memory, slots: Sequence[SelfStatement], asked: Turn) -> bool:
    """Whether the request in `asked` empties the slot of `memory`, or denies what it says."""
    return asked.id not in memory.source and any(
        is_of(memory.key, slot.key) and (not slot.text or fold(slot.text) == fold(memory.text))
        for slot in slots
    )


async def _zone(store: Store, scope: Scope, asked: Turn) -> tzinfo:
    request = forget_request(asked.heard_text)
    named = request is not None and request.of_all is not None
    return (await remembered_zone(store, scope) if named else None) or UTC


def _reached(turns: Sequence[Turn], asked: Turn, memories: Sequence[Memory], zone: tzinfo) -> Targets | None:
    request = forget_request(asked.heard_text)
    if request is None or not request.ahead:
        memories = [memory for memory in memories if memory.valid_from <= asked.said_at]
    return targets(turns, asked, memories, zone)


def said_by(found: Targets) -> list[Memory]:
    """The target sentences as memories, to find where they were repeated."""
    if found.of_all:
        return []
    return [
        Memory(id="", text=turn.heard_text[first:last].strip(), valid_from=turn.said_at, source=(turn.id,))
        for turn in found.said
        for first, last in found.spans.get(turn.id, ())
    ]


def _takes_back_that(asked: Turn) -> bool:
    return takes_back(asked.heard_text) and not names_it(asked.heard_text)


def _is_obeyed(asked: Turn, memories: Sequence[Memory]) -> bool:
    """Whether the rules for slots ("my address") carry out the request in `asked`."""
    slots = [one.key for one in listen(asked.heard_text) if one.retracts]
    return any(is_of(memory.key, slot) for memory in memories for slot in slots)


def _asks(turn: Turn) -> bool:
    return of_user(turn) and forget_request(turn.heard_text) is not None
