"""From ranked rows to the hits that are returned: in time, relevant, without an agent's own phrases. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from echoic.memory.records import MEMORY, memory_of, recalled_turn
from echoic.partition import MEMORY as MEMORY_ROW
from echoic.partition import Flag, Partition, number_of
from echoic.ranking.indexing import AGENT, USER, ends_asking
from echoic.ranking.query import Query
from echoic.ranking.rank import RankedRow
from echoic.ranking.relevance import SILENCE, TIMED, is_phatic
from echoic.stores.base import Record
from echoic.temporal import Spans
from echoic.temporal.rules import milliseconds
from echoic.text import content_stems, fold
from echoic.types import Hit, Memory, Rank, Scope, Turn

_SUBJECT: Final = re.compile(r"\b(?:did|have|had|was|were) (?P<who>i|you|we)\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"[^.!?…]+[.!?…]*")
_KNOWS_NOTHING: Final = re.compile(
    r"\W*(?:(?:sorry|i'm sorry|i'm afraid|so far|no|well|hm+)\W+)*(?:i|we)(?: really| still)?"
    r" (?:know nothing|(?:do not|don't) (?:know|remember|recall)\b|have no (?:record|memory|idea|note)\b"
    r"|(?:do not|don't) have (?:any |a )?(?:records?|memory|notes?|information)\b)",
    re.IGNORECASE,
)
_OPENS: Final = re.compile(
    r"\W*(?:hello|hi|hey|good (?:morning|afternoon|evening)|welcome|thanks? (?:you )?for calling)\b"
    r"|.{0,60}\b(?:speaking|here)[.!]*\s*$",
    re.IGNORECASE | re.DOTALL,
)
_OPENING_WORDS: Final = 8
_SAME: Final = 0.6
"""Share of a question's words from which another question asks the same."""
_ACKNOWLEDGED: Final = content_stems("noted written saved remembered understood confirmed okay got thanks")
_ASKING_WORDS: Final = content_stems("whats wheres whos hows please")
"""Words that are only asked with, in a transcript without apostrophes."""

Found = TypeVar("Found", RankedRow, Hit)


def chosen(
    found: Sequence[RankedRow],
    query: Query,
    partitions: Sequence[Partition],
    spans: Spans,
    *,
    limit: int,
    min_relevance: float | None,
    without: Collection[int] = (),
) -> list[RankedRow]:
    """The rows of `found` whose records are worth reading, with their positions in the store.

    At most `limit`, not counting other versions of the same memory. `partitions` begin with the caller's own;
    `without` are numbers of sessions whose turns are left out.
    """
    if spans.bare:
        kept = filled(found, query, partitions, spans, without)[:limit]
    else:
        kept = _with_versions(found, partitions, limit)
    floor = found[0].floor if found else SILENCE
    return as_stored(relevant(kept, min_relevance, floor), partitions)


def told(
    hits: Sequence[Hit],
    question: str,
    spans: Spans,
    scope: Scope,
    *,
    limit: int,
    left_out: Collection[str],
    own_phrases: bool,
) -> tuple[Hit, ...]:
    """`hits`, best first, in the order and form in which the caller in `scope` gets them.

    At most `limit` are used. `left_out` are ids of memories, turns and conversations to skip; `own_phrases`
    keeps an agent's own phrases, see `worth_telling`.
    """
    if not hits:
        return ()
    ordered = in_time(hits, spans)
    if not own_phrases:
        ordered = worth_telling(ordered, question)
    return _unsigned(tuple(map(_as_found, _without(ordered[:limit], left_out))), scope)


def as_stored(found: Sequence[RankedRow], partitions: Sequence[Partition]) -> list[RankedRow]:
    """Convert row numbers to those of the store, if a partition has numbers of its own."""
    origins = [partition.origin for partition in partitions]
    return [
        one
        if (origin := origins[one.place]) is None
        else one._replace(
            row=int(origin[one.row]),
            beside=tuple(int(origin[row]) for row in one.beside),
            outdated=tuple(int(origin[row]) for row in one.outdated),
        )
        for one in found
    ]


def filled(
    found: Sequence[RankedRow],
    query: Query,
    partitions: Sequence[Partition],
    spans: Spans,
    without: Collection[int],
) -> list[RankedRow]:
    """`found`, preceded by what the person in question said in the time ranges.

    A question such as "what did I say last Tuesday" shares no words with its answers, so ranking finds
    little; the rows themselves record when they were said.
    """
    said = _said(query, partitions, spans, without)
    inside = [one._replace(relevance=TIMED) for one in found if _any_of(one, said)]
    known = {(one.place, row) for one in found for row in (one.row, *one.beside)}
    score = inside[-1].score if inside else 0.0
    more = [
        RankedRow(place, row, score, {"date": Rank(rank=number, score=1.0)}, relevance=TIMED)
        for number, (place, row) in enumerate(said, 1)
        if (place, row) not in known
    ]
    outside = [one for one in found if not _any_of(one, said)]
    return [*inside, *more, *outside]


def _any_of(one: RankedRow, said: Mapping[tuple[int, int], None]) -> bool:
    return any((one.place, row) in said for row in (one.row, *one.beside))


def rooted(spans: Spans, partitions: Sequence[Partition], without: Collection[int]) -> Spans:
    """`spans` without ranges guessed from a date without a year, if nothing was said in them.

    Then the question's own words mean that date in every year. Turns of the sessions `without` do not count.
    """
    if not spans.loose or any(_in_ranges(partition, spans, without).any() for partition in partitions):
        return spans
    return replace(spans, ranges=(), bare=False)


def _said(
    query: Query, partitions: Sequence[Partition], spans: Spans, without: Collection[int]
) -> dict[tuple[int, int], None]:
    """(partition, row) of what the person in question said in the ranges, oldest first."""
    said: list[tuple[int, int, int]] = []
    for place, partition in enumerate(partitions):
        with partition.lock:
            rows = np.flatnonzero(_eligible(query, partition, spans, without, own=place == 0))
            moments = partition.rows["said_at"][rows]
            said += [(int(at), place, int(row)) for row, at in zip(rows, moments, strict=True)]
    return dict.fromkeys((place, row) for _, place, row in sorted(said))


def _eligible(
    query: Query, partition: Partition, spans: Spans, without: Collection[int], *, own: bool
) -> NDArray[np.bool_]:
    rows = partition.rows
    hidden = Flag.UNHEARD if query.include_past else Flag.UNHEARD | Flag.PAST
    eligible: NDArray[np.bool_] = (rows["kind"] != 0) & (rows["flags"] & int(hidden) == 0)
    eligible &= _in_ranges(partition, spans, without)
    role = _whose(query)
    if role is None:
        return eligible
    theirs = eligible & (rows["speaker"] == number_of(role))
    # among people called by their names nobody is "user"; what is global or shared, others said
    return eligible if own and not theirs.any() else theirs


def _whose(query: Query) -> str | None:
    """Whose words are meant: the agent's in "what did you tell me"."""
    said = _SUBJECT.search(query.text)
    subject = said["who"].lower() if said else ""
    return {"i": USER, "you": AGENT, "we": None}.get(subject, query.role)


def _in_ranges(partition: Partition, spans: Spans, without: Collection[int]) -> NDArray[np.bool_]:
    said_at, inside = partition.rows["said_at"], np.zeros(partition.size, np.bool_)
    for first, last in spans.ranges:
        inside |= (said_at >= first) & (said_at <= last)
    inside &= partition.rows["kind"] != 0
    return inside & ~partition.turns_of(without) if without else inside


def in_time(hits: Sequence[Hit], spans: Spans) -> tuple[Hit, ...]:
    """`hits`, with the versions of each key reordered among the places they occupy.

    Ranking knows which versions are current, not from when until when; versions of one key contain nearly the
    same words, so only time decides which one answers. First comes what held in the time asked for; if only
    the past is asked for, then what no longer holds; else what holds. Of equals the later comes first.
    """
    places = defaultdict[tuple[Scope, str], list[int]](list)
    for place, hit in enumerate(hits):
        if hit.memory is not None and hit.memory.key is not None:
            places[hit.scope, hit.memory.key].append(place)
    ordered = list(hits)
    for taken in places.values():
        if len(taken) == 1:
            continue
        versions = sorted((hits[place] for place in taken), key=lambda hit: _order(hit, spans))
        for place, version in zip(taken, versions, strict=True):
            ordered[place] = version
    return tuple(ordered)


_SUCCEEDS, _SUCCEEDS_WHAT_HOLDS = 0.3, 0.5
"""Share of a hit's relevance that what replaced a part of its turn must have to come before it, and before
one that leads with a fact that holds."""
_SAYS_MORE: Final = re.compile(r"[,;:.!?…]\s+\S|\b(?:and|but|so|because|while|whose|which)\b", re.IGNORECASE)
"""A turn of more than one clause."""


def behind_successors(hits: Sequence[Hit], outdated: Sequence[Sequence[Memory]]) -> tuple[Hit, ...]:
    """`hits`, best first, with a turn that says what no longer holds directly behind what replaced it.

    `outdated` are, by hit, the memories that its turn says and that no longer hold. A turn stays as it was
    said, so it answers a question no worse than the sentence that corrects it. What replaced a value is what
    now holds under its key, whatever did in between; and without a key, what names it or is named by it.
    """
    replaced = {memory.id: memory.superseded_by for ended in outdated for memory in ended}
    if not replaced:
        return tuple(hits)
    places: dict[object, int] = {}
    for place, hit in enumerate(hits):
        for memory in hit.memories:
            for name in (memory.id, memory.supersedes, _key(hit, memory)):
                places.setdefault(name, place)
    behind: list[tuple[int, bool, int]] = []
    for place, ended in enumerate(outdated):
        hit = hits[place]
        names = [name for m in ended for name in (_last(m.id, replaced), _key(hit, m)) if name]
        first = min((places[name] for name in names if name in places), default=place)
        moves = first > place and _is_about(hit, hits[first].relevance)
        behind.append((first, True, place) if moves else (place, False, place))
    return tuple(hits[place] for *_, place in sorted(behind))


def _is_about(hit: Hit, relevance: float) -> bool:
    """Whether `hit` was found for what no longer holds, whose successor has this `relevance`.

    A turn of several clauses may say something else that is asked for.
    """
    if hit.turn is not None and not _SAYS_MORE.search(hit.turn.heard_text):
        return True
    holds = hit.memory is not None and hit.text == hit.memory.text
    return relevance >= (_SUCCEEDS_WHAT_HOLDS if holds else _SUCCEEDS) * hit.relevance


def _key(hit: Hit, memory: Memory) -> object:
    return (hit.scope, memory.author, memory.key) if memory.key else None


def _last(name: str, replaced: Mapping[str, str | None]) -> str:
    """The id of the memory that replaced the one named in the end, as far as `replaced` tells.

    That of the one named itself if nothing did: what supersedes it may name it.
    """
    last = name
    for _ in replaced:  # never more steps than there are: two may replace each other
        last = replaced.get(last) or last
    return last


def _order(hit: Hit, spans: Spans) -> tuple[int, int]:
    memory = hit.memory
    assert memory is not None
    first = -milliseconds(memory.valid_from)
    if spans.ranges:
        return (not _held(memory, spans), first)
    if spans.past:
        # a corrected memory was true once; a retracted one perhaps never
        return (2 if memory.current else 1 if memory.superseded_by is None else 0, first)
    return (not memory.current, first)


def _held(memory: Memory, spans: Spans) -> bool:
    begins = milliseconds(memory.valid_from)
    ends = milliseconds(memory.valid_until) if memory.valid_until else None
    return any(begins <= last and (ends is None or ends > first) for first, last in spans.ranges)


def relevant(found: Sequence[Found], min_relevance: float | None, floor: float) -> list[Found]:
    """Those of `found`, best first, whose relevance is at least `min_relevance`.

    None is the default: all of them, or nothing if the best one is below `floor`. Of several right answers
    the last ones may score low.
    """
    if min_relevance is None:
        return list(found) if any(one.relevance >= floor for one in found) else []
    return [one for one in found if one.relevance >= min_relevance]


def worth_telling(hits: Sequence[Hit], question: str) -> tuple[Hit, ...]:
    """`hits`, best first, without an agent's own phrases; questions like the one asked come last.

    An agent's own phrases are greetings, "I know nothing about you yet", questions back, and what only
    repeats another hit. Anything else an agent says stays, since no other hit has it.
    """
    told = hits
    if any(map(_of_agent, hits)):
        others = [(fold(hit.text), hit.text) for hit in hits if not _of_agent(hit)]
        told = [
            hit for hit in hits if not (_of_agent(hit) and (_is_own_phrase(hit) or _repeats(hit, others)))
        ]
    asked = content_stems(question)
    return tuple(sorted(told, key=lambda hit: _asks_the_same(hit, asked)))


def _of_agent(hit: Hit) -> bool:
    return hit.memory is None and hit.turn is not None and hit.turn.speaker.casefold() == AGENT


def _is_own_phrase(hit: Hit) -> bool:
    sentences = [sentence for sentence in _SENTENCE.findall(hit.text) if sentence.strip()]
    return bool(sentences) and all(map(_says_nothing, sentences))


def _says_nothing(sentence: str) -> bool:
    if sentence.rstrip().endswith("?") or _KNOWS_NOTHING.match(sentence) or is_phatic(sentence):
        return True
    return len(sentence.split()) <= _OPENING_WORDS and _OPENS.match(sentence) is not None


def _repeats(hit: Hit, others: Sequence[tuple[str, str]]) -> bool:
    """Whether every word of an agent's turn is in one of `others`, hits of others: folded, and as told."""
    said = content_stems(hit.text) - _ACKNOWLEDGED
    for stem in said:  # all of it but the last two letters is in its word: few texts need to be stemmed
        others = [other for other in others if stem[:-2] in other[0]]
        if not others:
            return False
    return any(said <= content_stems(text) for _, text in others)


def _asks_the_same(hit: Hit, asked: frozenset[str]) -> bool:
    """Whether a turn is only a question with the words of the one asked."""
    text = hit.text.strip()
    if hit.memory is not None or not asked or not ends_asking(text) or len(_SENTENCE.findall(text)) > 1:
        return False
    said = content_stems(text) - _ASKING_WORDS
    # without its mark, "where i live is hull" begins like a question as well
    return len(asked & said) >= _SAME * len(asked) and (text.endswith("?") or said <= asked)


def _as_found(hit: Hit) -> Hit:
    """`hit` without its memories, if its turn answers by other words than theirs.

    After "She's called Brenda. I'm a nurse", "What is my mother-in-law called?" is not answered by the memory
    of the nurse.
    """
    memory, turn = hit.memory, hit.turn
    if memory is None or turn is None or hit.text == memory.text or hit.text != turn.heard_text:
        return hit
    return replace(hit, memory=None, also=())


def _without(hits: Sequence[Hit], names: Collection[str]) -> tuple[Hit, ...]:
    """`hits` without the memories, turns and turns of conversations with the ids `names`."""
    if not names:
        return tuple(hits)
    left = []
    for hit in hits:
        memories = [memory for memory in hit.memories if memory.id not in names]
        turn = None if hit.turn is None or {hit.turn.id, hit.turn.conversation} & set(names) else hit.turn
        if turn is hit.turn and len(memories) == len(hit.memories):
            left.append(hit)
        elif memories:
            text = memories[0].text
            left.append(replace(hit, text=text, memory=memories[0], also=tuple(memories[1:]), turn=turn))
        elif turn is not None:
            left.append(replace(hit, text=turn.heard_text, memory=None, also=(), turn=turn))
    return tuple(left)


def _with_versions(
    found: Sequence[RankedRow], partitions: Sequence[Partition], limit: int
) -> list[RankedRow]:
    """The first `limit`, and of the rest only possible versions of them, because reading takes time."""
    first, rest = list(found[:limit]), found[limit:]
    if any(one.outdated for one in first):
        return list(found)  # one of the rest may come to be among the first
    if not rest or not any(_is_memory(one, partitions) for one in first):
        return first
    return first + [one for one in rest if _is_memory(one, partitions)]


def _is_memory(one: RankedRow, partitions: Sequence[Partition]) -> bool:
    kinds = partitions[one.place].rows["kind"]
    return any(kinds[row] == MEMORY_ROW for row in (one.row, *one.beside))


def _as_heard(turn: Turn) -> Turn:
    """`turn` cut to the words that were heard."""
    return replace(turn, text=turn.heard) if turn.heard and turn.heard.strip() else turn


def hit_of(scope: Scope, records: Sequence[Record], found: RankedRow) -> Hit:
    """One hit for rows that share a place: a turn, memories learned from it, or a single memory."""
    memories = [memory_of(record) for record in records if record.kind == MEMORY]
    turns = [_as_heard(recalled_turn(record)) for record in records if record.kind != MEMORY]
    turn = turns[0] if turns else None
    by_turn = turn is not None and (not memories or (found.by_turn and not _is_most(memories[0], turn)))
    return Hit(
        text=turn.heard_text if turn and by_turn else memories[0].text if memories else "",
        score=found.score,
        relevance=found.relevance,
        ranks=found.ranks,
        scope=scope,
        memory=memories[0] if memories else None,
        turn=turn,
        also=tuple(memories[1:]),
    )


def _is_most(memory: Memory, turn: Turn) -> bool:
    """Whether `memory` has most words of `turn`, which then answers by no others."""
    said = content_stems(turn.heard_text)
    return 2 * len(said & content_stems(memory.text)) > len(said)


def _unsigned(hits: Sequence[Hit], scope: Scope) -> tuple[Hit, ...]:
    """`hits` without the speaker, if they come from another deployment than `scope`."""
    return tuple(
        replace(hit, memory=unsigned(hit.memory), also=tuple(map(unsigned, hit.also)))
        if hit.memory is not None and hit.scope.deployment != scope.deployment
        else hit
        for hit in hits
    )


def unsigned(memory: Memory) -> Memory:
    """`memory` as another deployment gets it: without its author and source turns."""
    return replace(memory, author=None, source=())
