"""Whatever is said, sent or lies in a file, a parser answers or refuses it by name; none of them raises else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import scale
from echoic.adapters.browser.socket import read
from echoic.english.listener import listen
from echoic.errors import InvalidInput, StoreCorrupt
from echoic.partition import MEMORY, Entry, Segment
from echoic.secrets.masking import mask
from echoic.temporal import dated, dates_in, spans_of_phrase
from echoic.text import content_words

pytestmark = pytest.mark.examples
NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
SAID = st.lists(
    st.sampled_from(
        "I my name is was not no live in on at the 31 of February next last Monday week ago 2026 25:61 four one "
        "double oh seven forget that please PIN card number 4111 1111 at dot com , . ? ' \" \n \0 \u202e ’ é 東京 ½ ²".split(
            " "
        )
    )
    | st.text(st.characters(), max_size=6),
    max_size=30,
).map(" ".join)
MESSAGES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries(
            {"type": st.sampled_from(["played", "text", "mute", "barge_in", "hang_up"]) | inner},
            optional={"bytes": inner, "flushed": inner, "text": inner, "muted": inner},
        )
    ),
    max_leaves=8,
)


def fuzzed(most: int) -> Any:
    def around(test: Any) -> Any:
        how = settings(
            max_examples=scale.many(scale.many(most), least=30),
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        return seed(scale.SEED)(how(test))

    return around


@fuzzed(800)
@given(SAID)
def test_what_is_said_is_read_whatever_it_is(said: str) -> None:
    listen(said)
    masked = mask(said)
    assert isinstance(masked.text, str)
    content_words(said)
    dates_in(said)
    dated([said], NOW)
    spans_of_phrase(said, NOW, UTC)


@fuzzed(800)
@given(MESSAGES.map(json.dumps) | st.text(st.characters(), max_size=40) | st.just("[" * 100_000))
def test_a_pages_message_is_read_or_refused(message: str) -> None:
    try:
        read(message)
    except InvalidInput as refused:
        assert len(str(refused)) < 300


@fuzzed(800)
@given(st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 255)), max_size=6), st.integers(0, 1 << 12))
def test_a_damaged_segment_is_read_or_refused(changes: list[tuple[int, int]], cut: int) -> None:
    segment = Segment()
    for slot in range(3):
        words = Entry.counted(content_words(f"the harbour lantern number {slot} and thunder"))
        segment.put(slot, Entry(text="", kind=MEMORY, words=words))
        segment.attach(slot, np.ones(4, np.float32) / 2)
    data = bytearray(segment.to_bytes())
    for place, value in changes:
        data[place % len(data)] = value
    try:
        Segment.from_bytes(bytes(data[: max(1, len(data) - cut % 40)]), segment.vectors.tobytes())
    except StoreCorrupt as refused:
        assert len(str(refused)) < 300
