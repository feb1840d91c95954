"""Write the figures of benchmarks/results into the README, so that none is ever typed.

.venv/bin/python scripts/figures.py          # rewrite
.venv/bin/python scripts/figures.py --check  # exit 1 if the README says something else
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"


def result(name: str) -> dict:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def ms(sample: dict) -> str:
    return f"{sample['p50_ms']:.2f} / {sample['p95_ms']:.2f} ms"


def speed_rows(speed: dict) -> list[str]:
    by_size = {row["memories"]: row for row in speed["one_user"]}
    many = speed["many_users"]
    encoded = speed["with_encoding"]
    raw = speed["raw_4k_append_fdatasync"]
    return [
        f"| query, 10,000 memories of one user | {ms(by_size[10_000]['query'])} |",
        "| the same with MiniLM encoding the question (fp32; int8) | "
        f"{ms(encoded['local'])}; {ms(encoded['local:int8'])} |",
        f"| query, 100,000 memories of one user | {ms(by_size[100_000]['query'])} |",
        f"| query, {many['memories']:,} memories of {many['users']:,} users | {ms(many['query'])} |",
        f"| first query of a user: 1,000; 10,000 memories | {ms(by_size[1000]['cold_first_query'])}; "
        f"{ms(by_size[10_000]['cold_first_query'])} |",
        f"| durable write (a raw 4 KiB append and fdatasync in the same run: {ms(raw)}) | "
        f"{ms(by_size[1000]['durable_write'])} |",
        f"| `import echoic` | {ms(speed['import_echoic'])} |",
    ]


def table() -> str:
    speed = result("speed")
    machine = speed["machine"]
    lines = [
        f"One core of {machine['cpu']}, Python {machine['python']}, SQLite store; p50 / p95:",
        "",
        "| | |",
        "|---|---|",
        *speed_rows(speed),
    ]
    return "\n".join([*lines, *recall_lines(), *listening_lines()])


def recall_lines() -> list[str]:
    turns = result("locomo")["turns"]
    names = {
        "text": "words alone (BM25, stemmed)",
        "vector": "vectors alone (MiniLM)",
        "hybrid": "their 0.7 / 0.3 reciprocal rank fusion",
        "echoic": "Echoic",
    }
    rows = [
        f"| {label} | {turns[name]['R@5']:.1f} | {turns[name]['R@10']:.1f} | {turns[name]['nDCG@10']:.1f} |"
        for name, label in names.items()
    ]
    return [
        "",
        "Evidence found on LoCoMo (development half, transcripts, no language model), percent:",
        "",
        "| | R@5 | R@10 | nDCG@10 |",
        "|---|---|---|---|",
        *rows,
    ]


def listening_lines() -> list[str]:
    heldout = result("listening")["held_out"]
    return [
        "",
        f"Rules that listen, on {heldout['utterances']} held-out utterances: precision "
        f"{heldout['precision']:.3f}, recall {heldout['recall']:.3f}.",
    ]


def main() -> int:
    text = README.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    wanted = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if "--check" in sys.argv:
        return int(wanted != text)
    README.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
