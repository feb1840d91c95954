"""LoCoMo's layout (Maharana et al. 2024): a list of samples, each two people talking over many sessions.

The sample is the user, a session a conversation, a `dia_id` a turn's id. Times carry no zone and are read as
UTC. Observations are the data set's own, written by a model, and are read only where asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from echoic.cli.importers.base import FLAWS, Item, Known, Said, Skipped, Source, reason_of
from echoic.errors import InvalidInput
from echoic.types import Turn, checked_name, checked_text

_SESSION = re.compile(r"session_(\d+)")
_TIME = "%I:%M %p on %d %B, %Y"
"""As in "1:56 pm on 8 May, 2023"."""


def read_locomo(source: Source) -> Iterator[Item]:
    """The turns of every session of every sample."""
    for where, user, sample in _samples(source):
        if isinstance(sample, Skipped):
            yield sample
            continue
        talk = sample["conversation"]
        for name, turns in _sessions(talk):
            said_at = _time(talk.get(f"{name}_date_time"))
            if said_at is None:
                yield Skipped(where=f"{where} {name}", reason=f"{name}_date_time is no time such as {_TIME}")
                continue
            for place, fields in enumerate(turns):
                try:
                    yield Said(turn=_turn(fields, name, said_at), user=user)
                except FLAWS as error:
                    yield Skipped(where=f"{where} {name}[{place}]", reason=reason_of(error))


def read_locomo_facts(source: Source) -> Iterator[Item]:
    """The same, and the observations of every sample as facts."""
    yield from read_locomo(source)
    for where, user, sample in _samples(source):
        if isinstance(sample, Skipped) or not sample.get("observation"):
            continue
        for name, place, observed in _observations(sample["observation"]):
            try:
                said_at = _time(sample["conversation"].get(f"{name.removesuffix('_observation')}_date_time"))
                yield Known(text=checked_text(observed[0], "observation"), said_at=said_at, user=user)
            except FLAWS as error:
                yield Skipped(where=f"{where} {name}[{place}]", reason=reason_of(error))


def _observations(observed: Mapping[str, Any]) -> Iterator[tuple[str, int, Any]]:
    """Session, place and contents of each; what is no list of them counts as one that cannot be read."""
    for name, people in observed.items():
        lists = people.values() if isinstance(people, Mapping) else [[None]]
        entries = [entry for each in lists for entry in (each if isinstance(each, list) else [None])]
        for place, entry in enumerate(entries):
            yield name, place, entry


def _samples(source: Source) -> Iterator[tuple[str, str, Any]]:
    """Where, whose and what each sample is; a `Skipped` in place of one that is none."""
    samples = source.document
    if not isinstance(samples, list):
        raise InvalidInput(f"{source.name} is not in LoCoMo's layout: it is no list of samples")
    for place, sample in enumerate(samples):
        where = f"sample[{place}]"
        try:
            user = checked_name(sample["sample_id"], "sample_id")
            if not isinstance(sample["conversation"], Mapping):
                raise InvalidInput("its conversation is no object")
        except FLAWS as error:
            yield where, "", Skipped(where=where, reason=reason_of(error))
        else:
            yield f"sample {user!r}", user, sample


def _sessions(talk: Mapping[str, Any]) -> list[tuple[str, Sequence[Any]]]:
    """The sessions in the order they took place; a date without a session is none."""
    found = [(int(match[1]), name) for name in talk if (match := _SESSION.fullmatch(name))]
    return [(name, talk[name]) for _, name in sorted(found) if isinstance(talk[name], list)]


def _time(value: object) -> datetime | None:
    try:
        return datetime.strptime(str(value), _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _turn(fields: Mapping[str, Any], session: str, said_at: datetime) -> Turn:
    caption = fields.get("blip_caption")
    text = fields["text"]
    if caption and isinstance(text, str):
        text = f"{text} [shares a photo: {caption}]".strip()
    return Turn(
        speaker=fields["speaker"],
        text=text,
        said_at=said_at,
        id=checked_name(fields["dia_id"], "dia_id"),
        conversation=session,
    )


__all__ = ["read_locomo", "read_locomo_facts"]
