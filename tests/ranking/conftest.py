"""Memories, turns and partitions in a line each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from echoic.partition import AXES, SEGMENT_ROWS, Partition, Pieces, Segment
from echoic.ranking import entry_of_memory, entry_of_turn, kernel, query_of
from echoic.types import Memory, Turn

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def by_numpy(monkeypatch):
    """These tests are of the definition; test_kernel compares the compiled kernel with it."""
    monkeypatch.setattr(kernel, "compiled", None)


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


@pytest.fixture
def closely():
    """Items as a partition with the word pieces of each, all with one vector; and a query of such pieces."""
    vector = np.eye(8, dtype=np.float32)[0]

    def pieces(axes):
        rows = np.eye(AXES, dtype=np.float32)[list(axes)]
        return Pieces(axes=rows, hidden=rows, spans=tuple((n, n + 1) for n in range(len(rows))))

    def make(items, axes):
        segment = Segment()
        for row, (item, each) in enumerate(zip(items, axes, strict=True)):
            entry = entry_of_turn(item) if isinstance(item, Turn) else entry_of_memory(item)
            segment.put(row % SEGMENT_ROWS, entry)
            segment.attach(row % SEGMENT_ROWS, vector, pieces(each).packed())
        made = Partition(8)
        made.patch([(0, segment)])
        return made

    return make, lambda text, axes: query_of(text, vector, pieces=pieces(axes))
