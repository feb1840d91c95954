"""What the gate shares of the labelled sets, what each of its parts decides, and what it costs.

    python -m benchmarks.sharing

The sets are those of `tests/memory/sharing`, and all of them belong to development by now: their misses were
looked at. A part's figure is how many of the labelled calls end differently with it switched off; a call ends
privately, or with a text to share. Each line is weighed under its own key and under "store_info".
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import machine
from echoic.memory.sharing import MAX_FACT_CHARACTERS, gate
from echoic.memory.sharing.gate import Shareable, weigh

LABELLED = Path(__file__).parents[1] / "tests" / "memory" / "sharing"
SETS = ("classification", "classification_held_out", "business", "business_blind", "business_blind_2")
PERSONAL_SETS = ("redaction", "redaction_held_out")
REPEATS = 5
_NEVER = re.compile("(?!)")
PARTS = {
    "contacts": {name: (gate, name, _NEVER) for name in
                 ("_EMAIL", "_SAID_EMAIL", "_LONG", "_IDENTIFIER", "_ADDRESS", "_POSTCODE")}
    | {"said digits": (gate, "readings", lambda *_: ())},
    "gate": {
        "holds_secret": (gate, "holds_secret", lambda *_, **__: False),
        "about_a_person": (gate, "about_a_person", lambda *_: None),
        "personal_in": (gate, "personal_in", lambda *_: None),
        "names_among": (gate, "names_among", lambda *_: []),
        "fact_in": (gate, "fact_in", lambda *_, **__: None),
        "looks_like_business": (gate, "looks_like_business", lambda *_: False),
        "says_something": (gate, "says_something", lambda *_: True),
    },
}  # fmt: skip
HOSTILE = {
    "one letter": "a",
    "signs of an address": "a@",
    "single digits": "1 ",
    "digits and dots": "1.",
    "numbers said": "five, ",
    "letters and digits": "a1",
    "places and dots": "at x dot com ",
    "places without an end": "a at b dot ",
    "starts of addresses": "12 maple ",
    "zero-width characters": "\u200b1",
    "everything": "call 212-555-0187 or ana@example.com; ",
}


def lines(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (LABELLED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def calls() -> list[tuple[str, str | None]]:
    labelled = [line for name in (*SETS, *PERSONAL_SETS) for line in lines(name)]
    return [(line["text"], key) for line in labelled for key in (line.get("key"), "store_info")]


def ends(of: list[tuple[str, str | None]]) -> list[str | None]:
    weighed = [weigh(text, key) for text, key in of]
    return [one.text if isinstance(one, Shareable) else None for one in weighed]


def shared() -> Iterator[dict[str, Any]]:
    for name in SETS:
        labelled = lines(name)
        passed = [line for line in labelled if isinstance(weigh(line["text"], line["key"]), Shareable)]
        facts = sum(line["visibility"] != "private" for line in labelled)
        wrong = sum(line["visibility"] == "private" for line in passed)
        yield {
            "set": name,
            "facts_shared": len(passed) - wrong,
            "facts": facts,
            "personal_shared": wrong,
            "personal": len(labelled) - facts,
        }


@contextmanager
def without(part: tuple[Any, str, Any]) -> Iterator[None]:
    with mock.patch.object(*part):
        yield


def decided() -> dict[str, dict[str, int]]:
    """By part: calls that end differently without it, and those of them that then share."""
    of = calls()
    before = ends(of)
    found: dict[str, dict[str, int]] = {}
    for parts in PARTS.values():
        for name, part in parts.items():
            with without(part):
                after = ends(of)
            changed = [new for old, new in zip(before, after, strict=True) if old != new]
            found[name] = {
                "of": len(of),
                "changed": len(changed),
                "shared": len(changed) - changed.count(None),
            }
    return found


def hostile() -> dict[str, float]:
    """Milliseconds of processor time for the longest texts that are looked at."""
    found = {}
    for name, unit in HOSTILE.items():
        text = (unit * MAX_FACT_CHARACTERS)[:MAX_FACT_CHARACTERS]
        found[name] = round(min(_timed(text) for _ in range(3)) * 1e3, 1)
    return found


def _timed(text: str) -> float:
    start = time.process_time()
    weigh(text, None)
    return time.process_time() - start


def main() -> None:
    machine.one_core()
    sets, parts, worst = list(shared()), decided(), hostile()
    for one in sets:
        print(
            f"{one['set']}: {one['facts_shared']} of {one['facts']} facts shared, "
            f"{one['personal_shared']} of {one['personal']} personal lines"
        )
    for name, one in parts.items():
        print(f"without {name}: {one['changed']} of {one['of']} calls end differently, {one['shared']} share")
    texts = [text for text, _ in calls()]
    cost = machine.percentiles([_timed(text) for text in texts for _ in range(REPEATS)])
    slowest = max(worst, key=lambda name: worst[name])
    print(
        f"a line: {cost['p50_ms']} ms (p95 {cost['p95_ms']}); "
        f"1,000 characters of {slowest}: {worst[slowest]} ms"
    )
    print(machine.save("sharing", {"sets": sets, "decided": parts, "weigh_line": cost, "hostile_ms": worst}))


if __name__ == "__main__":
    main()
