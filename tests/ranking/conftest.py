"""Memories, turns and partitions in a line each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from echoic.partition import SEGMENT_ROWS, Partition, Segment
from echoic.ranking import entry_of_memory, entry_of_turn
from echoic.types import Memory, Turn

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def memory():
    def make(text, key=None, **fields):
        fields = {"id": f"{key}-{text}", "valid_from": NOON} | fields
        return Memory(text=text, key=key, **fields)

    return make


@pytest.fixture
def turn():
    def make(text, speaker="user", conversation="call", minute=0, **fields):
        said_at = NOON + timedelta(minutes=minute)
        return Turn(speaker=speaker, text=text, conversation=conversation, said_at=said_at, **fields)

    return make


@pytest.fixture
def segments():
    """Memories, turns or entries as the segments of a scope, with one vector each or None."""

    def make(items, vectors=None):
        found = {}
        for row, item in enumerate(items):
            segment = found.setdefault(row // SEGMENT_ROWS, Segment())
            entry = (
                entry_of_memory(item)
                if isinstance(item, Memory)
                else entry_of_turn(item)
                if isinstance(item, Turn)
                else item
            )
            segment.put(row % SEGMENT_ROWS, entry)
            if vectors is not None and vectors[row] is not None:
                segment.attach(row % SEGMENT_ROWS, np.asarray(vectors[row], np.float32))
        return found

    return make


@pytest.fixture
def partition(segments):
    """Likewise as a partition."""

    def make(items, vectors=None, dimensions=0):
        made = Partition(dimensions)
        made.patch(sorted(segments(items, vectors).items()))
        return made

    return make
