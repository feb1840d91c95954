"""What an application is told, and that nothing it does about it reaches memory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

import echoic
from echoic.embedding import LexicalEmbedder
from echoic.errors import EmbedderUnavailable
from echoic.memory import concurrency
from echoic.memory.extraction.reconciliation import Add, Fact
from echoic.memory.hooks import BACKLOG, Failure, Hooks
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.types import Turn


async def say(user, *texts):
    call = await user.conversation("call")
    for text in texts:
        await call.append(Turn(speaker="user", text=text))
        await call.learn()
    return call


async def told(memory):
    await memory.settle(30)  # what was said may be read in the background, whose event comes a moment later
    assert await memory._parts.hooks.settle()


async def test_what_was_learned_is_told_with_whose_it_is_and_how_long_it_took(memory):
    events = []
    memory.on_memory_extraction(events.append)
    await say(memory.user("ana"), "I live in Haifa.", "I live in Haifa.", "Actually I moved to Jaffa.")
    await told(memory)
    assert [(e.scope.user, e.conversation, e.reader, e.turns) for e in events] == [
        ("ana", "call", "rules", 1)
    ] * 3
    first, again, moved = events
    assert [m.text for m in first.added] == ["Haifa"]
    assert [m.text for m in again.confirmed] == ["Haifa"]
    assert [m.text for m in moved.added] == ["Jaffa"]
    assert [(m.text, m.current) for m in moved.superseded] == [("Haifa", False)]
    assert all(event.duration_ms > 0 for event in events)


async def test_what_was_taken_back_is_told(memory):
    events = []
    memory.on_memory_extraction(events.append)
    await say(memory.user("ana"), "I live in Haifa.", "I don't live in Haifa anymore.")
    await told(memory)
    assert [m.text for m in events[-1].retracted] == ["Haifa"]


async def test_a_turn_that_taught_nothing_is_not_told(memory):
    events = []
    memory.on_memory_extraction(events.append)
    await say(memory.user("ana"), "Hello there.")
    await told(memory)
    assert events == []


async def test_what_is_told_is_durable_by_then(memory):
    held = []

    @memory.on_memory_extraction
    async def look(event):
        held.extend(await memory.user(event.scope.user).facts())

    await say(memory.user("ana"), "I live in Haifa.")
    await told(memory)
    assert [m.text for m in held] == ["Haifa"]


async def test_a_recall_is_told_with_its_outcome_and_an_erasure_with_its_receipt(memory):
    recalls, erasures = [], []
    memory.on_recall(recalls.append)
    memory.on_forgotten(erasures.append)
    ana = memory.user("ana")
    await ana.set("home", "Haifa")
    recall = await ana.recall("home")
    await ana.forget(key="home")
    receipt = await ana.forget()
    await told(memory)
    assert [(e.scope.user, e.recall) for e in recalls] == [("ana", recall)]
    assert [e.what for e in erasures] == ["key", "everything"]
    assert erasures[-1].receipt == receipt
    assert recalls[0].duration_ms > 0


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_hook_that_raises_harms_nothing_and_is_logged_without_what_it_said(memory, caplog, kind):
    def plain(event):
        raise RuntimeError(event.added[0].text)

    async def later(event):
        await asyncio.sleep(0)
        plain(event)

    events = []
    memory.on_memory_extraction(plain if kind == "plain" else later)
    memory.on_memory_extraction(events.append)
    ana = memory.user("ana")
    await say(ana, "I live in Haifa.", "I'm allergic to peanuts.")
    await told(memory)
    assert {m.text for m in await ana.facts()} == {"Haifa", "peanuts"}
    assert len(events) == 2
    assert caplog.text.count("a hook raised RuntimeError on Extraction") == 2
    assert "Haifa" not in caplog.text


async def test_a_hook_that_hangs_holds_up_neither_memory_nor_other_hooks(url):
    events = []
    async with echoic.open(url, embedder="lexical") as memory:

        @memory.on_memory_extraction
        async def hangs(_event):
            await asyncio.Event().wait()

        memory.on_memory_extraction(events.append)
        ana = memory.user("ana")
        await say(ana, "I live in Haifa.", "I'm allergic to peanuts.")
        assert len(await ana.facts()) == 2
        await asyncio.sleep(0)
        assert not await memory._parts.hooks.settle(0.05)
        assert len(events) == 2
    # and closing does not wait for it for ever: this line is reached


@pytest.fixture
def impatient(monkeypatch):
    """Hooks whose closing waits for none that is in progress."""

    async def in_no_time(_hooks):
        return False

    monkeypatch.setattr(Hooks, "settle", in_no_time)
    return Hooks()


FAILED = Failure(what="embedding", reason="x")


async def test_a_hook_that_loses_its_cancellation_keeps_closing_from_nothing(impatient, monkeypatch):
    monkeypatch.setattr(concurrency, "_CANCEL_AGAIN_S", 0.01)

    async def loses(_event):
        with contextlib.suppress(asyncio.CancelledError):  # as asyncio.wait_for of Python 3.11 does at times
            await asyncio.Event().wait()

    impatient.add(Failure, loses)
    for _ in range(3):
        impatient.emit(FAILED)
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await impatient.aclose()


async def test_a_hook_may_close_the_hooks_and_goes_on(impatient):
    closed = []

    async def closes(_event):
        await impatient.aclose()
        closed.append(True)

    impatient.add(Failure, closes)
    impatient.emit(FAILED)
    await asyncio.wait(impatient._tasks(), timeout=30)
    assert closed == [True]


async def test_whoever_closes_the_hooks_and_is_cancelled_meanwhile_ends_as_cancelled(impatient):
    cleaned = asyncio.Event()

    async def takes_long_to_end(_event):
        try:
            await asyncio.Event().wait()
        finally:
            await cleaned.wait()

    impatient.add(Failure, takes_long_to_end)
    impatient.emit(FAILED)
    await asyncio.sleep(0)
    closing = asyncio.create_task(impatient.aclose())
    for _ in range(5):
        await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing], timeout=30)
    assert closing.cancelled()


async def test_a_hook_far_behind_is_told_of_no_more_than_it_can_hold(caplog):
    hooks, seen, gate = Hooks(), [], asyncio.Event()

    async def slow(event):
        await gate.wait()
        seen.append(event.again_s)

    hooks.add(Failure, slow)
    for number in range(BACKLOG + 10):
        hooks.emit(Failure(what="embedding", reason="x", again_s=number))
    gate.set()
    assert await hooks.settle()
    assert seen == list(range(BACKLOG))
    assert caplog.text.count("events behind") == 1
    hooks.emit(Failure(what="embedding", reason="x", again_s=-1))
    assert await hooks.settle()
    assert seen[-1] == -1


async def test_a_hook_that_was_removed_is_told_of_nothing_more(memory):
    events = []
    memory.on_recall(events.append)
    await memory.user("ana").query("anything")
    await told(memory)
    memory.remove_hook(events.append)
    await memory.user("ana").query("anything")
    await told(memory)
    assert len(events) == 1


async def test_what_cannot_be_called_is_no_hook(memory):
    with pytest.raises(echoic.InvalidInput, match="not str"):
        memory.on_recall("print")


class Down(LexicalEmbedder):
    """Cannot embed documents until it is told that it can."""

    up = False

    async def embed(self, texts, kind):
        if kind == "document" and not self.up:
            raise EmbedderUnavailable("the line is down")
        return await super().embed(texts, kind)


async def test_an_embedder_that_is_down_is_told_as_trouble(url, caplog):
    caplog.set_level(logging.ERROR)
    embedder, troubles = Down(), []
    async with MemoryService(store_from(url), embedder) as memory:
        memory.on_failure(troubles.append)
        await memory.user("ana").set("home", "Haifa")
        assert not await memory.settle(30)
        await told(memory)
        embedder.up = True
    assert (troubles[0].what, troubles[0].reason) == ("embedding", "EmbedderUnavailable")


class Scripted:
    """An extractor that does as it is told."""

    name = "scripted"
    timeout_s = 5.0

    def __init__(self, *, fails=False):
        self.fails = fails

    async def open(self):
        pass

    async def aclose(self):
        pass

    async def extract(self, reading):
        if self.fails:
            raise TimeoutError
        turn = reading.turns[0]
        fact = Fact(text="The user plays the accordion.", category="fact")
        return [Add(fact=fact, source=(turn.id,))]


async def test_an_extractor_is_named_where_it_learned_and_where_it_failed(url):
    for fails in (False, True):
        learned, troubles = [], []
        async with MemoryService(
            store_from(url), LexicalEmbedder(), extractor=Scripted(fails=fails)
        ) as memory:
            memory.on_memory_extraction(learned.append)
            memory.on_failure(troubles.append)
            call = await memory.user(f"ana {fails}").conversation("call")
            await call.append(Turn(speaker="user", text="I play the accordion on Thursdays."))
            await call.distil()
            await told(memory)
            jobs = await memory.user(f"ana {fails}").jobs()
        assert (jobs.failing, jobs.parked) == (int(fails), ())
        if fails:
            (trouble,) = troubles
            assert (trouble.what, trouble.reason, trouble.conversation) == (
                "distilling",
                "TimeoutError",
                "call",
            )
            assert trouble.again_s > 0
        else:
            assert [(e.reader, e.added[0].text) for e in learned if e.reader != "rules"] == [
                ("scripted", "The user plays the accordion.")
            ]
            assert troubles == []


async def test_what_holds_no_longer_is_listed_until_it_is_destroyed(memory):
    ana = memory.user("ana")
    await ana.set("home", "Haifa")
    await ana.set("home", "Jaffa")
    await ana.set("pet", "a cat")
    await ana.delete("pet")
    assert [(m.text, bool(m.superseded_by)) for m in await ana.past()] == [("Haifa", True), ("a cat", False)]
    assert await memory.user("eve").past() == []
    await ana.forget(key="pet")
    assert [m.text for m in await ana.past()] == ["Haifa"]


def test_the_program_of_the_document_prints_what_the_document_says(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "observability.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    promised = re.search(r"```text\n(.*?)```", page, re.DOTALL)[1]
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout == promised
