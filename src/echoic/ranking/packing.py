"""What of a recall goes to a model: few lines, each said once, with its age, within a budget of tokens. Pure.

Decides what is shown and in which order, not how a text is quoted or what a token is: both are told. Nothing
is summarised or reworded; a line is what was said or is kept, and where it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache

from echoic.errors import InvalidInput, brief
from echoic.partition import Flag
from echoic.ranking.cues import flags_of
from echoic.ranking.saying import Saying
from echoic.ranking.telling import NOT_ALL_SEEN, Piece, Quote, Teller
from echoic.types import Hit, Outcome, Recall, Turn
from echoic.words import content_words, cut

_SHORT_WORDS = 4
"""A turn with no more content words says little by itself."""
_LEANING = frozenset(
    "yes yeah yep no nope nah sure ok okay right exactly true it it's its that that's those these this they "
    "they're he he's she she's there then because so both neither maybe probably absolutely".split()
)

WITH_COMPANY = 2
"""So many of the best are shown with their neighbours before others are shown at all. To do so for all would
leave out 2 points of the evidence at 600 tokens, on LoCoMo's development half."""

Count = Callable[[str], int]
"""Tokens of a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Where a turn stands in its conversation."""

    place: int
    """Turns of one conversation stand in the order of their places."""
    before: Turn | None = None
    """What was said right before it."""
    after: Turn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What goes to the model."""

    text: str
    """Lines; empty where the budget does not even hold the words that nothing is known."""
    tokens: int
    """Of `text`, as they were counted; never above the budget."""
    shown: tuple[Hit, ...] = ()
    """The hits that stand in it, best first."""
    merged: int = 0
    """Hits that were left out because others say the same."""
    left_out: int = 0
    """Hits that did not fit."""
    outcome: Outcome = "complete"
    """Of the recall: whether all could be looked through. Empty and complete: nothing is known."""


def pack(
    recall: Recall,
    budget_tokens: int,
    *,
    count: Count,
    quote: Quote,
    now: datetime,
    zone: tzinfo = UTC,
    around: Mapping[str, Around] | None = None,
) -> Packed:
    """`recall` in lines for a model, the best first, as many as fit. The same answer each time.

    A turn that says what a memory says is left out, and of two that say the same the worse. What was said in
    one conversation on one day stands together, in order. A turn that leans on its neighbour is shown with
    it: an answer with its question, a question with its answer. Where nothing was found, or not all could be
    looked through, the text says so.

    Args:
        recall: hits, best first.
        budget_tokens: of the whole text.
        count: of tokens.
        quote: makes a text data.
        now: the moment of speaking, aware; ages are told from it.
        zone: in which days are told.
        around: of the turns among the hits, by their ids; None shows no neighbours.

    Raises:
        InvalidInput: the budget is below 1.
    """
    if budget_tokens < 1:
        raise InvalidInput(f"budget_tokens must be at least 1, not {brief(budget_tokens)}")
    # a memory and the sentence that said it are told one by one, and the sentence only where it says more
    hits = recall.apart().hits
    kept, merged = _distinct(hits)
    pieces = _pieces(hits, kept, around or {})
    teller = Teller(quote, now, zone, closing=() if recall.outcome == "complete" else (NOT_ALL_SEEN,))
    chosen = _chosen(pieces, budget_tokens, teller, count)
    text = teller.text(chosen)
    # a counter may find more in the whole than in its lines
    while chosen and count(text) > budget_tokens:
        chosen.pop()
        text = teller.text(chosen)
    if (tokens := count(text)) > budget_tokens:
        text, tokens = "", 0
    shown = tuple(piece.hit for piece in chosen)
    return Packed(
        text=text,
        tokens=tokens,
        shown=shown,
        merged=merged,
        left_out=len(pieces) - len(shown),
        outcome=recall.outcome,
    )


def _chosen(pieces: Sequence[Piece], budget_tokens: int, teller: Teller, count: Count) -> list[Piece]:
    """The best that fit; what is shown beside them comes last, but for the first `WITH_COMPANY`."""
    counted = cache(count)

    def fit(some: Sequence[Piece]) -> bool:
        # line by line: most lines stay the same from one try to the next
        lines = teller.text(some).split("\n")
        return sum(map(counted, lines)) + counted("\n") * (len(lines) - 1) <= budget_tokens

    chosen: list[tuple[Piece, Piece]] = []
    for number, piece in enumerate(pieces):
        for tried in (piece, piece.alone) if number < WITH_COMPANY else (piece.alone,):
            if fit([*(shown for shown, _ in chosen), tried]):
                chosen.append((tried, piece))
                break
    told = [shown for shown, _ in chosen]
    for number, (shown, whole) in enumerate(chosen):
        if shown != whole and fit(more := [*told[:number], whole, *told[number + 1 :]]):
            told = more
    return told


def _distinct(hits: Sequence[Hit]) -> tuple[list[int], int]:
    """Places of the hits that say something of their own, and how many do not."""
    # a memory says it shorter and knows whether it still holds: it stands for a turn even if it ranks below
    first = sorted(range(len(hits)), key=lambda place: (hits[place].memory is None, place))
    kept: list[tuple[int, Saying]] = []
    for place in first:
        saying = Saying.of(hits[place])
        if not any(saying.adds_nothing_to(other) for _, other in kept):
            kept.append((place, saying))
    return sorted(place for place, _ in kept), len(hits) - len(kept)


def _pieces(hits: Sequence[Hit], kept: Sequence[int], around: Mapping[str, Around]) -> list[Piece]:
    shown = {turn.id for place in kept if (turn := hits[place].turn) is not None}
    pieces = []
    for place in kept:
        hit = hits[place]
        at = around.get(hit.turn.id) if hit.turn else None
        if hit.turn is None or at is None:
            pieces.append(Piece(hit, place))
            continue
        before = at.before if at.before and at.before.id not in shown else None
        after = at.after if at.after and at.after.id not in shown else None
        piece = Piece(
            hit,
            at.place,
            before=before if before and _leans_on(hit.turn, before) else None,
            after=after if after and _asks(hit.turn) else None,
        )
        pieces.append(piece)
    return pieces


def _leans_on(turn: Turn, before: Turn) -> bool:
    """Whether `turn` says little without what another said before it."""
    if turn.speaker == before.speaker or not before.heard_text:
        return False
    words = cut(turn.heard_text)
    is_short = len(content_words(turn.heard_text)) <= _SHORT_WORDS
    is_answer = _asks(before) and not _asks(turn)
    return is_answer or is_short or (bool(words) and words[0] in _LEANING)


def _asks(turn: Turn) -> bool:
    return bool(flags_of(turn.heard_text) & Flag.ASKING)


__all__ = ["WITH_COMPANY", "Around", "Count", "Packed", "pack"]
