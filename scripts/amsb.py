"""Run OWASP's Agent Memory Security Benchmark against Echoic, by its own harness; print a table in Markdown.

    .venv/bin/python scripts/amsb.py [--version 0.3.3]

The package agent-memory-guard is installed into a folder of its own for the run. The benchmark writes through
`set` and reads through `get`, as a new user for each scenario: an attack is held if its words cannot be read
back, a benign case if its words come back as they were. Echoic has its defaults. Exits with 1 if anything is
not held.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections import defaultdict
from itertools import count
from typing import Any

import echoic
from echoic import InvalidInput
from echoic.memory.service import MemoryService


def adapter(base: type, outcomes: Any, loop: asyncio.Runner, service: MemoryService) -> type:
    """Echoic as the benchmark drives it; `base` and `outcomes` are the benchmark's."""
    users = count()

    class Echoic(base):  # type: ignore[misc]
        name, version = "echoic", echoic.__version__

        def __init__(self) -> None:
            self._name = f"user{next(users)}"

        def remember(self, key: str, value: Any, **_options: object) -> Any:
            try:
                kept = loop.run(service.user(self._name).set(key, str(value)))
            except InvalidInput:
                return outcomes.BLOCKED
            return outcomes.STORED if kept.text == value else outcomes.REDACTED

        def recall(self, key: str) -> str | None:
            kept = loop.run(service.user(self._name).get(key))
            return None if kept is None else kept.text

    return Echoic


def run(version: str) -> int:
    """The table of one version of the benchmark; 1 if anything is not held."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = f"agent-memory-guard=={version}"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, wanted]
        subprocess.run(pip, check=True)
        sys.path.append(folder)
        from agent_memory_guard.bench import adapter as theirs
        from agent_memory_guard.bench import harness, scoring

        with asyncio.Runner() as loop:
            service = loop.run(echoic.open("memory://", embedder="lexical").open())
            parts = theirs.MemorySystemAdapter, theirs.RememberOutcome
            report = harness.run_suite(adapter(*parts, loop, service))
            loop.run(service.aclose())
        card = scoring.score_report(report)
    print(f"agent-memory-guard {version}, Echoic {echoic.__version__}, defaults, through `set` and `get`\n")
    print("| scenarios of AMSB | held | how |\n|---|---|---|")
    by_kind: dict[str, list[Any]] = defaultdict(list)
    for one in report.runs:
        by_kind[one.category].append(one)
    for kind, runs in by_kind.items():
        how = ", ".join(sorted({one.final_outcome for one in runs}))
        print(f"| {kind.replace('_', ' ')} | {sum(one.passed for one in runs)} of {len(runs)} | {how} |")
    print(
        f"\nscore {card.score:.1f}, grade {card.grade.value}: {card.defended_total} of "
        f"{card.malicious_total} attacks held, {card.false_positives} of {card.benign_total} "
        "benign cases refused or changed"
    )
    for one in report.runs:
        if not one.passed:
            print(f"not held: {one.scenario_id} ({one.detail})")
    return int(any(not one.passed for one in report.runs))


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--version", default="0.3.3", help="of the package agent-memory-guard")
    return run(parser.parse_args().version)


if __name__ == "__main__":
    sys.exit(main())
