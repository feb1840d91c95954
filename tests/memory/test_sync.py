"""The blocking façade beyond single verbs: speculation, hooks, threads, and what it refuses."""

from __future__ import annotations

import ast
import asyncio
import queue
import sys
import threading
from pathlib import Path

import pytest

import echoic
import echoic.sync
import forked
from echoic import blocking
from echoic.embedding import Embedder, embedder_from
from echoic.memory.service import MemoryService
from echoic.memory.speculation import Speculation
from echoic.stores.base import Store


@pytest.fixture
def memory(tmp_path):
    with echoic.sync.open(f"sqlite:///{tmp_path}/sync.db", embedder="lexical") as opened:
        yield opened


def test_listening_finds_while_somebody_still_speaks(memory):
    ana = memory.user("ana")
    ana.set("dog", "Her dog is called Rex")
    memory.settle()
    found = queue.Queue()
    with ana.listen(limit=3) as listening:
        assert {name for name in dir(Speculation) if not name.startswith("_")} <= set(dir(listening))
        listening.on_found = found.put
        listening.partial("what is the dog")
        assert found.get(timeout=60).hits[0].text == "Her dog is called Rex"
        recall = listening.final("What is the dog?", deadline_ms=60_000)
        assert recall.hits[0].text == "Her dog is called Rex"
        assert listening.statistics.ready == 1
    with pytest.raises(echoic.NotOpen):
        listening.partial("and the cat")


def test_threads_that_share_it_lose_nothing(memory):
    ana = memory.user("ana")
    threads = [
        threading.Thread(target=lambda n=n: ana.remember(f"Her number {n} is a number")) for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ana.facts()) == 20


def test_every_handle_it_returns_blocks(memory):
    from datetime import UTC, datetime, timedelta

    revocations = memory.revocations()
    revocations.revoke("token-1", datetime.now(UTC) + timedelta(days=1))
    assert revocations.revoked("token-1") is True
    assert memory.proposals().list() == []
    assert memory.experience("concierge").get().agent == "concierge"
    ana = memory.user("ana")
    assert ana.backing_store.scan(ana.scope, "memory") == []
    assert memory.embedder.embed(["a dog"], "query").shape[0] == 1


def test_hooks_are_told_and_one_that_would_wait_for_itself_is_refused(memory):
    told, refused = queue.Queue(), queue.Queue()
    ana = memory.user("ana")

    @memory.on_recall
    def asks_again(event):
        told.put(event.recall.outcome)
        try:
            ana.get("dog")
        except echoic.NotAllowed as error:
            refused.put(str(error))

    ana.query("dog")
    assert told.get(timeout=60) == "complete"
    assert "wait for itself" in refused.get(timeout=60)
    assert ana.get("dog") is None, "it goes on"


class Silent:
    """The lexical embedder, but for one question it never answers."""

    def __init__(self):
        self._embedder = embedder_from("lexical")
        self.spec, self.semantic = self._embedder.spec, False
        self.asked = threading.Event()

    async def open(self):
        await self._embedder.open()

    async def aclose(self):
        await self._embedder.aclose()

    async def embed(self, texts, kind):
        if list(texts) == ["for ever?"]:
            self.asked.set()
            await asyncio.Event().wait()
        return await self._embedder.embed(texts, kind)


def test_a_thread_that_waits_while_it_is_closed_is_told_so():
    silent, ended = Silent(), queue.Queue()

    def wait(memory):
        try:
            memory.embedder.embed(["for ever?"], "query")
        except echoic.NotOpen as error:
            ended.put(str(error))

    with echoic.sync.open("memory://", embedder=silent) as memory:
        threading.Thread(target=wait, args=(memory,), daemon=True).start()
        assert silent.asked.wait(30)
    assert "closed" in ended.get(timeout=30)


def test_what_is_not_open_says_so_and_does_not_wait_for_ever(tmp_path):
    memory = echoic.sync.open(f"sqlite:///{tmp_path}/x.db", embedder="lexical")
    with pytest.raises(echoic.NotOpen, match="with"):
        memory.user("ana")
    with memory:
        ana = memory.user("ana")
    with pytest.raises(echoic.NotOpen):
        ana.get("dog")
    with pytest.raises(echoic.NotOpen, match="another"):
        memory.__enter__()


def test_bad_arguments_are_refused_as_by_open():
    with pytest.raises(echoic.InvalidInput, match="redis"):
        echoic.sync.open("redis://x")
    with pytest.raises(TypeError):
        echoic.sync.open("memory://", nonsense=1)


def test_the_types_of_what_is_handed_out_are_those_of_the_asynchronous_classes():
    script = Path(__file__).parents[2] / "scripts" / "blocking.py"
    done = forked.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("handle", sorted(blocking.__all__))
def test_the_types_leave_nothing_out_that_can_be_called(handle):
    asynchronous = {
        each.__name__: each for each in (*echoic.sync._HANDLES, Speculation, MemoryService, Store, Embedder)
    }
    stub = ast.parse(Path(blocking.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    (typed,) = (node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == handle)
    members = {
        getattr(node, "name", None) or node.target.id for node in typed.body if not isinstance(node, ast.Expr)
    }
    ours = asynchronous[handle.removeprefix("Blocking")]
    assert {name for name in dir(ours) if not name.startswith("_")} <= members
    assert getattr(blocking, handle).__name__ == handle, "it can be imported"
