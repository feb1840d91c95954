"""How much of what a user says the rules hear, and how much of what they hear was said.

    python -m benchmarks.listening

Both labelled parts of tests/english: the rules were developed on `utterances.jsonl`; `heldout.jsonl`
was written apart and is only ever counted: once its errors are looked at it belongs to development, and a new
one has to be written. An entry counts as right if its key, its
value and whether it is taken back all are. About half of the utterances must yield nothing; a memory made of
one of those is `invented`.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import machine
from echoic.english import SelfStatement, listen

LABELLED = Path(__file__).parents[1] / "tests" / "english"
PARTS = {"development": "utterances.jsonl", "held_out": "heldout.jsonl"}
REPEATS = 20


def labels(part: str) -> list[dict[str, Any]]:
    lines = (LABELLED / PARTS[part]).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def before(label: dict[str, Any]) -> list[SelfStatement]:
    previous: list[SelfStatement] = []
    for earlier in label.get("previous", ()):
        previous = listen(earlier, previous) or previous
    return previous


def measure(part: str) -> dict[str, Any]:
    right, wrong, missed = Counter[str](), Counter[str](), Counter[str]()
    silent = invented = 0
    samples = []
    for label in labels(part):
        previous = before(label)
        heard = {(one.key, one.text, one.retracts) for one in listen(label["text"], previous)}
        meant = {(one["key"], one["text"], one["retracts"]) for one in label["expect"]}
        right.update(_slots(heard & meant))
        wrong.update(_slots(heard - meant))
        missed.update(_slots(meant - heard))
        silent += not meant
        invented += not meant and bool(heard)
        samples += [_timed(label["text"], previous) for _ in range(REPEATS)]
    return {
        "utterances": len(labels(part)),
        "must_yield_nothing": silent,
        "invented": invented,
        **_scores(right.total(), wrong.total(), missed.total()),
        "listen": machine.percentiles(samples),
        "by_slot": {
            slot: _scores(right[slot], wrong[slot], missed[slot]) for slot in sorted(right | wrong | missed)
        },
    }


def _timed(text: str, previous: list[SelfStatement]) -> float:
    began = time.perf_counter()
    listen(text, previous)
    return time.perf_counter() - began


def _slots(entries: set[tuple[str, str, bool]]) -> list[str]:
    return [key.partition(":")[0] for key, _, _ in entries]


def _scores(right: int, wrong: int, missed: int) -> dict[str, Any]:
    return {
        "right": right,
        "wrong": wrong,
        "missed": missed,
        "precision": round(right / (right + wrong), 4) if right + wrong else None,
        "recall": round(right / (right + missed), 4) if right + missed else None,
    }


def main() -> None:
    machine.one_core()
    measured = {part: measure(part) for part in PARTS}
    for part, found in measured.items():
        print(
            f"{part}: {found['utterances']} utterances ({found['must_yield_nothing']} must yield nothing, "
            f"{found['invented']} of them did not); {found['right']} right, {found['wrong']} wrong, "
            f"{found['missed']} missed; precision {found['precision']:.3f}, recall {found['recall']:.3f}; "
            f"{found['listen']['p50_ms']} ms an utterance (p95 {found['listen']['p95_ms']})"
        )
    print(machine.save("listening", measured))


if __name__ == "__main__":
    main()
