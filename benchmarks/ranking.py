"""How long ranking takes, the embedding of the question and the reading of hits not counted.

    python -m benchmarks.ranking

Turns of made-up calls (benchmarks.keyvalue), made distinct by some of 20,000 made-up words with the
frequencies of speech, and random unit vectors of 384 dimensions. `first` is the first question after a scope
was loaded, when neighbours, buckets of words and the vocabulary are laid out; `after_a_turn` the first one
after a turn was appended and its segment patched.
"""

from __future__ import annotations

import argparse
import time
from datetime import timedelta
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.keyvalue import ATTRIBUTES, START, people
from echoic.partition import SEGMENT_ROWS, Flag, Partition, Segment
from echoic.ranking import FUSIONS, entry_of_turn, query_of, rank
from echoic.types import Turn

DIMENSIONS = 384
SIZES = (1_000, 10_000, 100_000)
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
    print(measured if args.dry else machine.save("ranking", measured))


if __name__ == "__main__":
    main()
