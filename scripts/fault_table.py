"""Write into PROMISES.md how often each fault was injected into simulated histories; --check only compares.

.venv/bin/python scripts/fault_table.py

The counts are those of benchmarks/results/faults.json, which `python -m simulation --save` writes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "PROMISES.md"
BEGIN = "<!-- faults: written by scripts/fault_table.py -->\n"
END = "<!-- end of faults -->\n"


def table() -> str:
    """The table of faults, and what the run was."""
    told = json.loads((ROOT / "benchmarks/results/faults.json").read_text())
    machine = told["machine"]
    rows = [(of["kind"], of["injected"], of["histories"], of["acknowledged"]) for of in told["kinds"]]
    injected = sum(of["injected"] for of in told["kinds"])
    rows.append(("**all**", injected, told["histories"], told["acknowledged"]))
    cells = [
        f"| {kind} | {' | '.join(f'{count:,}' for count in counts)} | {told['lost']} |"
        for kind, *counts in rows
    ]
    return "\n".join(
        [
            f"{told['histories']:,} histories of {told['processes']:,} processes, on "
            f"{machine['cores_used']} cores of {machine['cpu']}, "
            f"Python {machine['python']}, apsw {machine['packages']['apsw']}. "
            "A run that finds a loss stops there with its seed and saves no counts:",
            "",
            "| fault | times injected | histories with it | acknowledged in these | lost |",
            "|---|--:|--:|--:|--:|",
            *cells,
            "",
        ]
    )


def main() -> int:
    """Write it, or compare."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    written = before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]
    if "--check" not in sys.argv:
        PAGE.write_text(written, encoding="utf-8")
    elif written != page:
        sys.stderr.write("PROMISES.md has other counts of faults: run scripts/fault_table.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
