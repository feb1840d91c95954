"""How long ranking takes, the embedding of the question and the reading of hits not counted.

    python -m benchmarks.ranking

Turns of made-up calls (benchmarks.keyvalue), made distinct by some of 20,000 made-up words with the
frequencies of speech, and random unit vectors of 384 dimensions. `first` is the first question after a scope
was loaded, when neighbours, buckets of words and the vocabulary are laid out; `after_a_turn` the first one
after a turn was appended and its segment patched. `kernel` compares the compiled kernel with numpy: each
question goes to one and then to the other, with random word pieces, 8 to 40 a turn.
"""

from __future__ import annotations

import argparse
import re
import time
from datetime import timedelta
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.keyvalue import ATTRIBUTES, START, people
from echoic.partition import AXES, SEGMENT_ROWS, Flag, Partition, Pieces, Segment
from echoic.ranking import FUSIONS, channels, entry_of_turn, kernel, query_of, rank
from echoic.types import Turn

DIMENSIONS = 384
SIZES = (1_000, 10_000, 100_000)
PAIRED = (700, 10_000)
FIRSTS = 5


class Loaded:
    """The segments of a scope as a store would read them."""

    def __init__(self, rows: int, seed: int = 7) -> None:
        draw = np.random.default_rng(seed)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
        words = ["".join(draw.choice(letters, draw.integers(3, 10))) for _ in range(20_000)]
        said = [turn for person in people(2) for turn in person.turns]
        self.rows, self.segments = rows, {}
        for row in range(rows):
            call, place = divmod(row, 20)
            rare = " ".join(words[min(place_, len(words)) - 1] for place_ in draw.zipf(1.2, 5))
            turn = Turn(
                speaker=said[row % len(said)].speaker,
                text=f"{said[row % len(said)].text} {rare}",
                conversation=f"call-{call}",
                said_at=START + timedelta(hours=call, seconds=5 * place),
            )
            segment = self.segments.setdefault(row // SEGMENT_ROWS, Segment())
            segment.put(row % SEGMENT_ROWS, entry_of_turn(turn))
        for segment in self.segments.values():
            vectors = draw.standard_normal((SEGMENT_ROWS, DIMENSIONS)).astype(np.float32)
            segment.vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            segment.rows["flags"] |= np.where(segment.rows["kind"] != 0, int(Flag.EMBEDDED), 0).astype(
                np.uint8
            )
        self.words = words

    def partition(self) -> Partition:
        made = Partition(DIMENSIONS)
        made.patch(sorted(self.segments.items()))
        return made

    def append(self, partition: Partition) -> None:
        last = max(self.segments)
        with partition.lock:
            partition.patch([(last, self.segments[last])])


def questions(loaded: Loaded, count: int) -> list[Any]:
    """Of a few words each, one of them rare, with a vector near to some row's."""
    draw = np.random.default_rng(1)
    texts = [text for attribute in ATTRIBUTES for text in (*attribute.plain, *attribute.paraphrased)]
    found = []
    for number in range(count):
        row = int(draw.integers(loaded.rows))
        vector = loaded.segments[row // SEGMENT_ROWS].vectors[row % SEGMENT_ROWS]
        noise = draw.standard_normal(DIMENSIONS).astype(np.float32) / 20
        text = f"{texts[number % len(texts)]} {loaded.words[int(draw.integers(2000))]}"
        found.append(query_of(text, vector + noise))
    return found


def measure(rows: int, repeats: int) -> dict[str, Any]:
    loaded = Loaded(rows)
    asked = questions(loaded, 100)
    first = [_timed(asked[i], loaded.partition(), "blend") for i in range(FIRSTS)]
    partition = loaded.partition()
    for query in asked:
        rank(query, [partition])
    later = {
        name: machine.percentiles([_timed(q, partition, name) for _ in range(repeats) for q in asked])
        for name in FUSIONS
    }
    after_a_turn = []
    for query in asked[:30]:
        loaded.append(partition)
        after_a_turn.append(_timed(query, partition, "blend"))
    return {
        "rows": rows,
        **later,
        "first": machine.percentiles(first),
        "after_a_turn": machine.percentiles(after_a_turn),
        "bytes_a_row": round(partition.nbytes / rows),
    }


def paired(rows: int, repeats: int) -> dict[str, Any]:
    """The same questions by numpy and by the kernel, one after the other, each in a partition of its own."""
    loaded, draw, compiled = Loaded(rows), np.random.default_rng(3), kernel.compiled
    asked = [query_of(q.text, q.vector, pieces=_pieces(draw, q.text)) for q in questions(loaded, 100)]
    tokens = {row: _axes(draw, int(draw.integers(8, 41))).packed() for row in range(rows)}
    partitions = {None: loaded.partition(), compiled: loaded.partition()}
    channels._simsimd = lambda: None  # numpy alone: the extra "fast" is no part of the comparison
    for partition in partitions.values():
        partition.add_tokens(tokens)
    times: dict[Any, list[float]] = {None: [], compiled: []}
    other_orders = 0
    for repeat in range(repeats + 1):
        for query in asked:
            orders = []
            for module, partition in partitions.items():
                kernel.compiled = module
                began = time.perf_counter()
                found = rank(query, [partition])
                if repeat:  # the first round lays out what is kept
                    times[module].append(time.perf_counter() - began)
                orders.append([hit.row for hit in found])
            other_orders += repeat == repeats and orders[0] != orders[1]
    ratios = np.array(times[compiled]) / np.array(times[None])
    return {
        "rows": rows,
        "instructions": kernel.name(),
        "numpy": machine.percentiles(times[None]),
        "compiled": machine.percentiles(times[compiled]),
        "ratio_p50": round(float(np.median(ratios)), 3),
        "questions_in_another_order": f"{other_orders} of {len(asked)}",
    }


def _pieces(draw: np.random.Generator, text: str) -> Pieces:
    spans = tuple(found.span() for found in re.finditer(r"\w+|[^\w\s]", text))
    hidden = draw.standard_normal((len(spans), DIMENSIONS)).astype(np.float32)
    return Pieces(_axes(draw, len(spans)).axes, hidden, spans)


def _axes(draw: np.random.Generator, count: int) -> Pieces:
    axes = draw.standard_normal((count, AXES)).astype(np.float32)
    return Pieces(axes / np.linalg.norm(axes, axis=1, keepdims=True), np.zeros((count, 0), np.float32), ())


def _timed(query: Any, partition: Partition, fusion: str) -> float:
    began = time.perf_counter()
    rank(query, [partition], fusion=fusion)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dry", action="store_true", help="small sizes; print, and write nothing to results/"
    )
    args = parser.parse_args()
    machine.one_core()
    sizes = SIZES[:2] if args.dry else SIZES
    measured = {"by_rows": [measure(rows, 2 if args.dry else 5) for rows in sizes]}
    if kernel.compiled is not None:
        measured["kernel"] = [paired(rows, 2 if args.dry else 5) for rows in PAIRED]
    print(measured if args.dry else machine.save("ranking", measured))


if __name__ == "__main__":
    main()
