"""What waits for a second judgement is judged, whoever dies when, and however many work at it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import echoic
import forked
from echoic.memory import proposals
from echoic.memory.proposals import JUDGEMENT, Judge
from echoic.memory.service import MemoryService
from echoic.memory.sharing import Verdict
from echoic.stores import store_from
from scale import SEED, many

POINTS = many(15, least=5)
KILLED = -9
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
AGREED = {f"{day}_hours" for day in DAYS[::2]}


@pytest.fixture
def workers(tmp_path):
    """Runs processes that judge; what came of each point."""

    def run(what: str, mode: str, times: int) -> list[dict]:
        print(f"{what}: {times} points, seed {SEED}")
        script = Path(__file__).parent / "judging_workers.py"
        source = str(Path(echoic.__file__).parent.parent)
        done = forked.run(
            [sys.executable, str(script), str(tmp_path), what, mode, str(times), str(SEED)],
            env={**os.environ, "PYTHONPATH": source, "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def shared(point: dict, mode: str) -> list[str]:
    return point["global"] if mode == "auto" else point["proposed"]


@pytest.mark.crash
@pytest.mark.parametrize("mode", ["auto", "propose"])
def test_a_process_killed_at_any_point_loses_no_judgement(workers, mode):
    points = workers("kill", mode, POINTS)
    assert len(points) == POINTS
    assert {point["code"] for point in points} == {KILLED}
    for point in points:
        assert set(point["heard"]) <= set(point["kept"]), point
        assert set(shared(point, mode)) == set(point["kept"]) & AGREED, point
        assert point["known"] == len(point["kept"]), "each is there once, wherever it is"
        assert point["versions"] == len(point["global"])
        assert point["waiting"] == 0


@pytest.mark.crash
def test_control_what_waits_written_by_itself_loses_judgements(workers):
    points = workers("split", "auto", len(DAYS))
    assert {point["code"] for point in points} == {KILLED}
    lost = [set(point["kept"]) & AGREED - set(point["global"]) for point in points]
    assert any(lost)


@pytest.mark.crash
def test_two_processes_on_one_store_share_each_memory_once(workers):
    for one in workers("share", "auto", many(6, least=3)):
        assert one["codes"] == [0, 0]
        assert set(one["global"]) == AGREED, one
        assert one["versions"] == len(AGREED)
        assert one["known"] == len(DAYS)
        assert one["waiting"] == 0


class Wavering:
    """Agrees the first time it is asked, and never again."""

    def __init__(self) -> None:
        self.asked = 0

    async def classify(self, text: str, key: str | None) -> Verdict:
        self.asked += 1
        return Verdict("global" if self.asked == 1 else "private", "model")


@pytest.fixture(params=["sqlite", "files"])
def judged(request, tmp_path):
    """Makes services with a second judge on one store, as several processes would."""
    url = f"sqlite:///{tmp_path}/x.db" if request.param == "sqlite" else f"files:///{tmp_path}/people"

    def make(judge, **options) -> MemoryService:
        embedder = echoic.embedding.embedder_from("lexical")
        options = {"second_judge": judge, "global_writes": "auto"} | options
        return MemoryService(store_from(url), embedder, **options)

    return make


class Failing:
    """Cannot be reached the first times it is asked."""

    def __init__(self, times: int) -> None:
        self.left = times

    async def classify(self, text: str, key: str | None) -> Verdict:
        self.left -= 1
        if self.left >= 0:
            raise ConnectionError("nobody there")
        return Verdict("global", "model")


async def test_what_failed_is_asked_about_by_the_next_process_when_it_is_time_and_counted_on(judged):
    start = datetime(2026, 11, 20, 9, tzinfo=UTC)
    judge = Failing(2)
    for minutes, attempts in ((0, 1), (0, 1), (1, 2)):
        clock = lambda at=minutes: start + timedelta(minutes=at)  # noqa: E731
        async with judged(judge, clock=clock) as memory:
            ana = memory.user("ana")
            if not await ana.get("store_hours"):
                await ana.set("store_hours", "The store is open Monday to Friday, nine to five.")
                await memory.settle()
            await memory.distil_due()
            (waiting,) = await ana.backing_store.scan(ana.scope, JUDGEMENT)
            assert waiting.data["attempts"] == attempts
            assert "store" not in str(waiting.data)
    async with judged(judge, clock=lambda: start + timedelta(minutes=2)) as memory:
        await memory.distil_due()
        assert (await memory.user("bob").get("store_hours")).visibility == "global"
        ana = memory.user("ana")
        assert await ana.backing_store.scan(ana.scope, JUDGEMENT) == []


async def test_a_judge_that_never_answers_leaves_it_private_and_is_left_alone(judged, monkeypatch):
    monkeypatch.setattr(proposals, "RETRY_S", 0.01)
    judge = Failing(100)
    async with judged(judge) as memory:
        ana = memory.user("ana")
        await ana.set("store_hours", "The store is open Monday to Friday, nine to five.")
        while await ana.backing_store.scan(ana.scope, JUDGEMENT):
            await asyncio.sleep(0.01)
        assert judge.left == 100 - proposals.ATTEMPTS
        assert (await ana.get("store_hours")).visibility == "private"
        assert await memory.user("bob").get("store_hours") is None


async def test_what_was_agreed_on_is_shared_whole_whatever_the_judge_says_later(judged, monkeypatch):
    judge = Wavering()
    async with judged(judge) as memory:
        with monkeypatch.context() as dying:
            dying.setattr(Judge, "_unless_changed", _dies)
            await memory.user("ana").set("store_hours", "The store is open Monday to Friday, nine to five.")
            await memory.settle()
        assert await memory.user("bob").get("store_hours"), "half shared: its author's is still private"
        assert (await memory.user("ana").get("store_hours")).visibility == "private"
    async with judged(judge) as memory:
        await memory.distil()
        assert (await memory.user("bob").get("store_hours")).visibility == "global"
        assert [m.visibility for m in await memory.user("ana").facts()] == ["global"]
    assert judge.asked == 1


async def _dies(*_: object) -> None:
    raise RuntimeError("as if the process ended here")


async def test_forgetting_a_key_destroys_what_waits_for_its_judgement(judged):
    memory = judged(Wavering())
    await memory.open()
    memory._parts.judge.want = lambda *_: None
    ana = memory.user("ana")
    await ana.set("store_hours", "The store is open Monday to Friday, nine to five.")
    await ana.set("garden_hours", "The garden is open Monday to Friday, nine to five.")
    assert len(await ana.backing_store.scan(ana.scope, JUDGEMENT)) == 2
    receipt = await ana.forget(key="store_hours")
    assert [record.key for record in await ana.backing_store.scan(ana.scope, JUDGEMENT)] == ["garden_hours"]
    assert (receipt.memories, receipt.other) == (1, 1)
    await memory.aclose()
