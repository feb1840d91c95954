"""Every figure of docs/scale.md comes from a result, and every constant that a measurement fixed is what it says."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from echoic.stores import postgres, store_from

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "scale.md"


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What computes the threshold from what was measured."""
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.store_threshold")


@pytest.fixture
def simulating(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.store_simulation")


@pytest.fixture(scope="module")
def stores() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks/results/stores.json").read_text())
    return found


def test_every_figure_on_the_page_comes_from_a_result() -> None:
    script = ROOT / "scripts" / "scale_figures.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True, timeout=60)


def test_control_a_figure_that_was_typed_is_found(tmp_path: Path) -> None:
    script = (ROOT / "scripts" / "scale_figures.py").read_text()
    page = tmp_path / "scale.md"
    page.write_text(re.sub(r"(\d) h of the server", r"\g<1>1 h of the server", PAGE.read_text(), count=1))
    changed = script.replace('PAGE = ROOT / "docs" / "scale.md"', f'PAGE = Path("{page}")')
    changed = changed.replace("Path(__file__).parent.parent", f'Path("{ROOT}")')
    ran = subprocess.run([sys.executable, "-c", changed, "--check"], check=False, timeout=60)
    assert ran.returncode == 1


def test_no_figure_of_a_measurement_stands_outside_of_the_marks() -> None:
    page = re.sub(r"<!-- ([\w ]+):begin -->.*?<!-- \1:end -->", "", PAGE.read_text(), flags=re.DOTALL)
    measured = re.findall(r"\d[\d,.]*\s?(?:ms\b|GB|TB|%|h of|writes a second)", page)
    assert measured == ["100 ms"], "the goal is given; everything else is measured"


def test_the_defaults_on_the_page_are_the_stores() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", PAGE.read_text(), re.MULTILINE))
    store = store_from("postgresql://host/database")
    assert told == {
        "pool": str(postgres.POOL),
        "cache_mb": str(postgres.CACHE_BYTES >> 20),
        "narrow_above": str(store.narrow_above),
        "wait_s": f"{postgres.WAIT_S:g}",
        "stale_s": f"{postgres.STALE_S:g}",
    }


def test_the_threshold_is_the_one_that_was_measured(stores: dict[str, Any], measuring: Any) -> None:
    rows = stores["postgresql"]["one_user"]
    assert [row["pays_from_question"] for row in rows] == [measuring.pays_from(row) for row in rows]
    found = measuring.threshold(rows, postgres.CACHE_BYTES)
    assert stores["postgresql"]["threshold"] == found
    assert found["narrow_above"] == postgres.NARROW_ABOVE
    sizes = [row["memories"] for row in rows]
    assert min(sizes) < postgres.NARROW_ABOVE < max(sizes), "it was measured on both sides"


def test_both_stores_were_measured_in_one_run_at_both_sizes(stores: dict[str, Any]) -> None:
    for engine in ("sqlite", "postgresql"):
        assert [of["memories"] for of in stores[engine]["users"]] == [100_000, 1_000_000]
        for of in stores[engine]["users"]:
            assert all(of[name]["n"] >= 200 for name in ("write", "query", "first_query"))


def test_what_another_process_wrote_was_seen_within_the_goal(stores: dict[str, Any]) -> None:
    for run in stores["postgresql"]["freshness"]:
        assert run["told"]["p95_ms"] <= 100
        assert run["asked"]["n"] == run["writes"]


def test_no_caller_who_was_drawn_has_more_than_is_loaded() -> None:
    costs = json.loads((ROOT / "benchmarks/results/store_costs.json").read_text())
    assert costs["simulated"]["callers"] == 10_000_000
    assert costs["simulated"]["most"] <= postgres.NARROW_ABOVE


def rows_of(measuring: Any, loaded_kb: float, narrow_ms: float) -> list[dict[str, Any]]:
    found = []
    for memories in (10_000, 100_000):
        cost = {"cold_load": memories / 50, "warm_load": 5.0, "narrow_200": narrow_ms}
        row: dict[str, Any] = {f"{name}_and_rank": {"cpu_mean_ms": ms} for name, ms in cost.items()}
        row |= {"memories": memories, "loaded_mb": memories * loaded_kb / 1000}
        found.append({**row, "pays_from_question": measuring.pays_from(row)})
    return found


def test_the_threshold_is_where_the_cache_ends_or_where_loading_stops_paying(measuring: Any) -> None:
    fits = measuring.threshold(rows_of(measuring, 5, 500), 256 << 20)
    assert (fits["fits_up_to"], fits["narrow_above"]) == (53_687, 50_000)
    pays = measuring.threshold(rows_of(measuring, 5, 60), 4096 << 20)
    assert (pays["pays_up_to"], pays["narrow_above"]) == (10_000, 10_000)
    assert rows_of(measuring, 5, 60)[1]["pays_from_question"] > measuring.QUESTIONS_A_CALL
    never = measuring.threshold(rows_of(measuring, 5, 4), 4096 << 20)
    assert (never["pays_up_to"], never["narrow_above"]) == (0, 0)


def test_the_simulation_spreads_all_callers_and_counts_every_call_once(simulating: Any) -> None:
    callers = simulating.Callers(count=20_000, deployments=50, calls_a_month=30)
    found = simulating.simulated(callers, (1, 4))
    one, four = found["shards"]
    assert one["callers_fullest_to_mean"] == one["memories_fullest_to_mean"] == 1
    assert one["calls_at_once_on_the_busiest"] == found["calls_at_once"]
    assert found["calls_at_once"] / 4 <= four["calls_at_once_on_the_busiest"] < found["calls_at_once"]
    assert 1 < four["memories_fullest_to_mean"] < four["memories_fullest_to_mean_by_deployment"]
    assert found["calls_a_day"] == pytest.approx(20_000 * 30 * 12 / 365, rel=0.05)
    assert simulating.simulated(callers, (1, 4)) == found, "the same seed draws the same"
