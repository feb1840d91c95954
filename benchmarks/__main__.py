"""Every measurement, one after another: `python -m benchmarks`. LoCoMo needs ECHOIC_LOCOMO (a path)."""

from __future__ import annotations

import os
import subprocess
import sys

RUNS = [
    ["speed", "--million"],
    ["latency"],
    ["listening"],
    ["sharing"],
    ["keyvalue"],
    ["distilling"],
    ["stores"],
    ["store_costs"],
    ["phone"],
    ["load"],
]

if __name__ == "__main__":
    if os.environ.get("ECHOIC_LOCOMO"):
        RUNS += [["locomo"], ["weights"], ["noise"], ["peers"], ["speculation"], ["packing"]]
    else:
        print("ECHOIC_LOCOMO is not set: what needs LoCoMo is left out", file=sys.stderr)
    for name, *flags in RUNS:
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *flags], check=True)
