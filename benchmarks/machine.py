"""Where and with what a figure was measured, and the file it is kept in."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("apsw", "numpy", "onnxruntime", "rapidfuzz", "PyStemmer", "echoic-kernel")


def facts() -> dict[str, Any]:
    """The machine and the versions that matter to a figure."""
    return {
        "cpu": _cpu(),
        "cores_used": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_average_1m": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def one_core() -> None:
    """Begin again on one core, with one thread for arithmetic: more would only wait for each other."""
    if hasattr(os, "sched_setaffinity") and os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, sys.orig_argv)


def percentiles(samples_s: list[float]) -> dict[str, float]:
    """p10, p50 and p95 of seconds, in milliseconds."""
    ordered = sorted(samples_s)

    def at(share: float) -> float:
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 4)

    return {"n": len(ordered), "p10_ms": at(0.10), "p50_ms": at(0.50), "p95_ms": at(0.95)}


def save(name: str, measured: dict[str, Any]) -> Path:
    """Write a result with its machine."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": facts(), **measured}, indent=1) + "\n")
    return path


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
