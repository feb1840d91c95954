"""How much personal data the rules find, how much they touch by mistake, what they share, and what it costs.

    python -m benchmarks.redaction

Both labelled sets of tests/memory/sharing in two parts: the rules were developed on `redaction.jsonl` and
`classification.jsonl`; the held-out parts were written afterwards and are only counted: once its errors are
looked at a part belongs to development. Something personal is found if every letter and digit of it is gone,
under its own name. Hostile texts have the greatest length a value may have,
and half of it: where time grows with length, the second figure is about twice the first.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import machine
from echoic.memory.sharing import KINDS, classify, redact
from echoic.types import MAX_TEXT_BYTES

LABELLED = Path(__file__).parents[1] / "tests" / "memory" / "sharing"
PARTS = {"development": "", "held_out": "_held_out"}
REPEATS = 20
HOSTILE = {
    "one letter": "a",
    "signs of an address": "a@",
    "single digits": "1 ",
    "digits and dots": "1.",
    "digits in fours": "4444 ",
    "numbers said": "five, ",
    "thousands said": "one thousand ",
    "cues without values": "password is ",
    "places and dots": "at x dot com ",
    "starts of addresses": "12 maple ",
    "starts of web addresses": "http://a",
    "starts of keys": "eyJaaaaaaaaa.",
    "starts of IBANs": "GB82 ",
    "colons": "1::",
    "phones": "01 23 45 67 89 ",
    "zero-width characters": "\u200b1",
    "everything": "my pin is 4471, call 212-555-0187 or ana@example.com; ",
}


def lines(name: str, part: str) -> list[dict[str, Any]]:
    text = (LABELLED / f"{name}{PARTS[part]}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def spans(line: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    place = 0
    for personal in line["personal"]:
        start = line["text"].index(personal["value"], place)
        place = start + len(personal["value"])
        yield personal["kind"], start, place


def is_found(line: dict[str, Any], kind: str, start: int, end: int) -> bool:
    found = redact(line["text"]).found
    gone = {place for finding in found for place in range(finding.start, finding.end)}
    named = any(f.kind == kind and f.start < end and f.end > start for f in found)
    return named and all(place in gone for place in range(start, end) if line["text"][place].isalnum())


def redaction(part: str) -> dict[str, Any]:
    labelled = lines("redaction", part)
    expected, found = Counter[str](), Counter[str]()
    for line in labelled:
        for kind, start, end in spans(line):
            for name in (kind, line["form"]):
                expected[name] += 1
                found[name] += is_found(line, kind, start, end)
    harmless = [line["text"] for line in labelled if not line["personal"]]
    touched = sum(bool(redact(text).found) for text in harmless)
    kinds = {kind: rate(found[kind], expected[kind]) for kind in sorted(KINDS) if expected[kind]}
    total = [sum(counts[form] for form in ("written", "spoken")) for counts in (found, expected)]
    return {
        "lines": len(labelled),
        "recall": rate(*total),
        "recall_by_form": {form: rate(found[form], expected[form]) for form in ("written", "spoken")},
        "recall_by_kind": kinds,
        "harmless_lines_touched": rate(touched, len(harmless)),
    }


def classification(part: str) -> dict[str, Any]:
    labelled = lines("classification", part)
    verdicts = [(line["visibility"], classify(line["text"], line["key"]).visibility) for line in labelled]
    shared = [meant for meant, judged in verdicts if judged == "global"]
    facts = sum(meant == "global" for meant, _ in verdicts)
    right = shared.count("global")
    return {
        "lines": len(labelled),
        "global_precision": rate(right, len(shared)),
        "global_recall": rate(right, facts),
        "private_lines_shared": shared.count("private"),
    }


def rate(part: int, whole: int) -> dict[str, float | int]:
    return {"count": part, "of": whole, "share": round(part / whole, 4) if whole else 0.0}


def timed(text: str) -> float:
    """Seconds of processor time: nothing here waits, and others may use the machine."""
    start = time.process_time()
    redact(text)
    return time.process_time() - start


def hostile() -> dict[str, Any]:
    result = {}
    for name, unit in HOSTILE.items():
        times = MAX_TEXT_BYTES // len(unit.encode())
        half, full = (min(timed(unit * count) for _ in range(3)) for count in (times // 2, times))
        result[name] = {"half_ms": round(half * 1e3, 1), "full_ms": round(full * 1e3, 1)}
    return result


def cost() -> dict[str, Any]:
    texts = [line["text"] for part in PARTS for line in lines("redaction", part)]
    for text in texts:
        redact(text)  # numbering plans are read from disk at first use
    return {
        "characters": round(sum(map(len, texts)) / len(texts)),
        **machine.percentiles([timed(text) for text in texts for _ in range(REPEATS)]),
    }


def main() -> None:
    machine.one_core()
    redacted = {part: redaction(part) for part in PARTS}
    classified = {part: classification(part) for part in PARTS}
    one_line, worst = cost(), hostile()
    for part in PARTS:
        report(part, redacted[part], classified[part])
    slowest = max(worst, key=lambda name: worst[name]["full_ms"])
    print(
        f"a line of {one_line['characters']} characters: {one_line['p50_ms']} ms (p95 {one_line['p95_ms']}); "
        f"32 KiB of {slowest}: {worst[slowest]['full_ms']} ms, of half that {worst[slowest]['half_ms']} ms"
    )
    measured = {"redaction": redacted, "classification": classified}
    print(machine.save("redaction", {**measured, "redact_line": one_line, "hostile_32_KiB": worst}))


def report(part: str, found: dict[str, Any], judged: dict[str, Any]) -> None:
    touched = found["harmless_lines_touched"]
    print(
        f"{part}: recall {found['recall']['share']:.3f} of {found['recall']['of']} "
        f"(cards {found['recall_by_kind']['CARD']['share']:.3f}), "
        f"{touched['count']} of {touched['of']} harmless lines touched; "
        f"global precision {judged['global_precision']['share']:.3f}, "
        f"recall {judged['global_recall']['share']:.3f} of {judged['global_recall']['of']}"
    )


if __name__ == "__main__":
    main()
