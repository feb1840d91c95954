"""LoCoMo's layout (Maharana et al. 2024) as labelled questions. The data is no part of Echoic.

Every sample is a user, every session a conversation with the session's date, every question of the categories
1 to 4 that names its evidence a question; adversarial ones (category 5) are
questions without an answer. Captions
of shared photos stand in brackets behind the text. Observations, short facts that a model wrote, are kept
instead of the turns, or behind them as after learning, where that is asked for; each stands for the turns it
was taken from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from echoic.errors import InvalidInput
from echoic.types import Memory, Turn
from echoic_bench.labelled import Labelled, Question

CATEGORIES: Mapping[int, str] = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
ADVERSARIAL = "adversarial"
_ADVERSARIAL = 5
_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
"""A `dia_id`; "D8:6; D9:17" and "D:11:26" occur in the data."""
_TIME = "%I:%M %p on %d %B, %Y"
"""As in "1:56 pm on 8 May, 2023"; the zone is not said and read as UTC."""


def is_locomo(document: object) -> bool:
    """Whether `document` is laid out as LoCoMo is: a list of samples with a conversation and questions."""
    return isinstance(document, list) and all(
        isinstance(sample, Mapping) and {"sample_id", "conversation", "qa"} <= sample.keys()
        for sample in document
    )


Kept = Literal["turns", "facts", "both"]
"""What is kept of every sample."""


def users_of(samples: Sequence[Mapping[str, Any]], kept: Kept) -> Iterator[Labelled]:
    """Each sample as a user.

    Args:
        samples: the parsed data.
        kept: the turns, the observations, or the observations behind the turns.

    Raises:
        InvalidInput: a sample lacks what the layout has; the message names sample and field.
    """
    for sample in samples:
        name = str(sample["sample_id"])
        try:
            yield _user(name, sample, kept)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InvalidInput(
                f"sample {name!r} is not in LoCoMo's layout ({type(error).__name__}: {error!s:.80}); take "
                "the file as snap-research/LoCoMo has it"
            ) from error


def _user(name: str, sample: Mapping[str, Any], kept: Kept) -> Labelled:
    talk = sample["conversation"]
    sessions = sorted((found for found in talk if _SESSION.fullmatch(found)), key=lambda s: int(s[8:]))
    dates = {s: datetime.strptime(talk[f"{s}_date_time"], _TIME).replace(tzinfo=UTC) for s in sessions}
    turns = [_turn(name, said, s, dates[s]) for s in sessions for said in talk[s]]
    facts = [m for s in sessions for m in _facts(name, sample, s, dates[s])] if kept != "turns" else []
    known = {turn.id: turn.conversation for turn in turns}
    return Labelled(
        user=name,
        items=(*(turns if kept != "facts" else ()), *facts),
        questions=tuple(_questions(name, sample["qa"], known)),
        sessions=known,
        unanswered=tuple(
            Question(text=fields["question"], evidence=frozenset(), category=ADVERSARIAL)
            for fields in sample["qa"]
            if fields["category"] == _ADVERSARIAL
        ),
        names=((talk["speaker_a"],), (talk["speaker_b"],)),
    )


def _turn(user: str, said: Mapping[str, Any], session: str, said_at: datetime) -> Turn:
    caption = said.get("blip_caption")
    text = f"{said['text']} [shares a photo: {caption}]" if caption else said["text"]
    name = f"{user}/{said['dia_id']}"
    return Turn(speaker=said["speaker"], text=text, id=name, conversation=session, said_at=said_at)


def _facts(user: str, sample: Mapping[str, Any], session: str, said_at: datetime) -> Iterator[Memory]:
    observed = sample.get("observation", {}).get(f"{session}_observation", {})
    for speaker, facts in observed.items():
        for number, (text, source) in enumerate(facts):
            ids = tuple(_turn_ids(user, source if isinstance(source, list) else [source]))
            name = f"{user}/{session}-{speaker}-{number}"
            yield Memory(id=name, text=text, author=speaker, source=ids, valid_from=said_at)


def _questions(user: str, asked: Sequence[Mapping[str, Any]], known: Mapping[str, str]) -> Iterator[Question]:
    for fields in asked:
        evidence = frozenset(_turn_ids(user, fields["evidence"])) & known.keys()
        if fields["category"] in CATEGORIES and evidence:
            category = CATEGORIES[fields["category"]]
            yield Question(text=fields["question"], evidence=frozenset(evidence), category=category)


def _turn_ids(user: str, written: Sequence[str]) -> list[str]:
    return [f"{user}/D{int(a)}:{int(b)}" for text in written for a, b in _EVIDENCE.findall(text)]


__all__ = ["ADVERSARIAL", "CATEGORIES", "Kept", "is_locomo", "users_of"]
