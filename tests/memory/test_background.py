"""Written at once, embedded when it can be: an embedder that is slow, down or gone loses nothing."""

from __future__ import annotations

import asyncio
import contextlib

import apsw
import numpy as np
import pytest

import echoic
from echoic import Turn
from echoic.embedding import LexicalEmbedder
from echoic.errors import (
    EmbedderUnavailable,
    InvalidInput,
    NotOpen,
    StoreCorrupt,
    StoreFull,
    StoreUnavailable,
)
from echoic.memory import background, concurrency
from echoic.memory.concurrency import Sweeper
from echoic.memory.records import CONVERSATION, TURN
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.base import Attach, Put, Record
from echoic.stores.sqlite.writer import Writer


class Moody:
    """A real embedder whose connection comes and goes."""

    def __init__(self) -> None:
        self._inner = LexicalEmbedder()
        self.spec, self.semantic = self._inner.spec, False
        self.down = False
        self.error: Exception | None = None
        self.asked = asyncio.Event()
        self.hangs: asyncio.Event | None = None
        self.texts: list[str] = []
        self.requests = 0
        self.refuses = lambda text: not text.strip()

    async def open(self) -> None:
        await self._inner.open()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def embed(self, texts, kind):
        if kind == "document":
            self.asked.set()
        if self.hangs is not None:
            await self.hangs.wait()
        if self.error is not None:
            raise self.error
        if self.down:
            raise EmbedderUnavailable("the line is dead")
        self.requests += 1
        if any(self.refuses(text) for text in texts):
            raise InvalidInput("refused (status 400)")  # as hosted models say: of one text for all
        self.texts += texts if kind == "document" else []
        return await self._inner.embed(texts, kind)


@pytest.fixture
def moody():
    return Moody()


@pytest.fixture
def quick_retries(monkeypatch):
    monkeypatch.setattr(background, "FIRST_RETRY_S", 0.01)
    monkeypatch.setattr(background, "LAST_RETRY_S", 0.02)


async def test_a_write_is_found_by_its_words_before_it_is_embedded(url, moody):
    moody.hangs = asyncio.Event()
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        await ana.set("dog", "a beagle called Biscuit")
        recall = await ana.recall("is Biscuit a beagle?", deadline_ms=2000)
        assert recall.outcome == "deadline"
        assert recall.cut == ("vector",)
        assert [hit.text for hit in recall.hits] == ["a beagle called Biscuit"]
        assert "vector" not in recall.hits[0].ranks
        moody.hangs.set()
        assert await memory.settle(20)
        recall = await ana.recall("is Biscuit a beagle?")
        assert recall.outcome == "complete"
        assert "vector" in recall.hits[0].ranks


async def test_who_settles_beside_closing_is_let_go_and_hurries_nobody_afterwards(url, moody, monkeypatch):
    monkeypatch.setattr("echoic.memory.service.SETTLE_S", 0.01)
    moody.hangs = asyncio.Event()
    memory = await MemoryService(store_from(url), moody).open()
    await memory.user("ana").set("dog", "a beagle called Biscuit")
    settling = asyncio.create_task(memory.settle(600))
    await moody.asked.wait()
    await memory.aclose()
    await memory.open()
    try:
        async with asyncio.timeout(30):
            assert await settling is False
        moody.hangs.set()
        assert await memory.settle(20)
        assert not memory._parts.background._hurry.is_set()
    finally:
        await memory.aclose()


class Unclosable:
    """A model, judge and summariser whose client fails to close."""

    name, timeout_s = "unclosable", 10.0

    async def open(self): ...

    async def extract(self, reading):
        return []

    async def aclose(self):
        raise RuntimeError("the line is dead")


@pytest.mark.parametrize("which", ["extractor", "second_judge", "summarizer"])
async def test_a_model_that_fails_to_close_keeps_nothing_open(tmp_path, which):
    url = f"sqlite:///{tmp_path / 'e.db'}"
    store = store_from(url)
    memory = MemoryService(store, LexicalEmbedder(), **{which: Unclosable()})
    await memory.open()
    await memory.user("ana").set("dog", "a beagle called Biscuit")
    closed, close = [], store.aclose

    async def noted():
        closed.append("store")
        await close()

    store.aclose = noted
    with pytest.raises(RuntimeError, match="the line is dead"):
        await memory.aclose()
    assert closed == ["store"]
    assert memory._home._loop is None


async def test_a_recall_holds_documents_back_from_its_question_to_its_answer(url, moody):
    """Whoever ranks needs the processor; what it held is let go of however the recall ends."""
    held: list[str] = []
    told: list[str] = []

    def hold_documents():
        held.append("held")
        return lambda: held and held.pop()

    async def embed(texts, kind, embed=moody.embed):
        if kind == "query":
            told.append(f"{len(held)} while embedding")
        return await embed(texts, kind)

    moody.hold_documents, moody.embed = hold_documents, embed
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        await ana.set("dog", "a beagle called Biscuit")
        rows = memory._parts.recaller._store.rows

        async def read(*asked):
            told.append(f"{len(held)} while reading hits")
            return await rows(*asked)

        memory._parts.recaller._store.rows = read
        assert await ana.query("is Biscuit a beagle?")
        assert told == ["1 while embedding", "1 while reading hits"]
        assert held == []
        moody.down = True
        assert (await ana.recall("where is the beagle?")).outcome == "unavailable"
        assert held == []
        moody.down, moody.hangs = False, asyncio.Event()
        assert (await ana.recall("who is called Biscuit?", deadline_ms=1)).outcome == "deadline"
        assert held == []
        cancelled = asyncio.ensure_future(ana.recall("and whose is the beagle?"))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert held == []
        moody.hangs.set()


async def test_a_text_that_is_refused_keeps_no_other_waiting(url, moody, caplog):
    moody.refuses = lambda text: len(text) > 500 or "forbidden" in text
    long = "the boat was named after her grandmother " + "and so on " * 60
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        moody.down = True
        texts = [
            "a beagle called Biscuit",
            long.strip(),
            "a forbidden word",
            *(f"the number {n}" for n in range(29)),
        ]
        for n, text in enumerate(texts):
            await ana.set(f"k{n}", text)
        moody.down, moody.requests = False, 0
        assert await memory.settle(20)
        assert moody.requests < 32, "as many as there are texts: they might have been sent one by one"
        for asked, found in [("is Biscuit a beagle?", texts[0]), ("named after grandmother", texts[1])]:
            (hit, *_) = await ana.query(asked)
            assert hit.text == found
            assert "vector" in hit.ranks
        (hit, *_) = await ana.query("which word is it that is not allowed, a forbidden one?")
        assert hit.text == texts[2]
        assert (await memory.check())["embedding_failure"] is None
        assert (await memory.check())["waiting"] == 0
    assert "grandmother" not in caplog.text
    assert "forbidden" not in caplog.text


async def test_a_text_on_which_the_model_fails_each_time_keeps_no_other_waiting(url, moody, caplog):
    async def embed(texts, kind, embed=moody.embed):
        if any("cursed" in text for text in texts):
            raise EmbedderUnavailable("status 500")
        return await embed(texts, kind)

    moody.embed = embed
    async with MemoryService(store_from(url), moody) as memory:
        bob = memory.user("bob")
        moody.down = True
        await bob.set("word", "a cursed word")
        for n in range(40):
            await memory.user(f"user {n % 4}").set(f"k{n}", f"a beagle called Biscuit {n}")
        moody.down = False
        assert await memory.settle(20)
        facts = await memory.check()
        assert (facts["embedding_failure"], facts["waiting"]) == (None, 0)
        assert len({text for text in moody.texts if "Biscuit" in text}) == 40
        for n in range(4):
            (hit, *_) = await memory.user(f"user {n}").query("is Biscuit a beagle?")
            assert "vector" in hit.ranks
        assert (await bob.query("which word is cursed?"))[0].text == "a cursed word"
    assert "cursed" not in caplog.text


async def test_in_an_outage_no_text_is_given_up(url, moody, quick_retries):
    embed = moody.embed

    async def breaks(texts, kind):
        if any("cursed" in text for text in texts):
            # the line breaks while one text after the other is tried
            moody.down = moody.down or len(texts) == 1
            raise EmbedderUnavailable("status 500")
        return await embed(texts, kind)

    moody.embed, moody.down = breaks, True
    async with MemoryService(store_from(url), moody) as memory:
        await memory.user("bob").set("word", "a cursed word")
        await memory.user("ana").set("dog", "a beagle called Biscuit")
        moody.down = False
        async with asyncio.timeout(20):
            while not moody.down:
                await asyncio.sleep(0.005)
        assert await memory.settle(30) is False
        facts = await memory.check()
        assert (facts["embedding_failure"], facts["waiting"]) == ("EmbedderUnavailable", 2)
        moody.embed, moody.down = embed, False
        async with asyncio.timeout(60):
            while not await memory.settle(1):
                await asyncio.sleep(0.01)
        assert "word: a cursed word" in moody.texts
        assert "vector" in (await memory.user("bob").query("a cursed word"))[0].ranks


async def test_a_request_that_is_refused_whatever_the_text_is_no_reason_to_give_up_on_vectors(
    url, moody, quick_retries
):
    moody.refuses = lambda _text: True  # a setting is wrong
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        await ana.set("dog", "a beagle called Biscuit")
        assert await memory.settle(30) is False
        assert (await memory.check())["embedding_failure"] == "InvalidInput"
        assert (await memory.check())["waiting"] == 1
        moody.refuses = lambda _text: False
        assert await memory.settle(20)
        assert "vector" in (await ana.query("is Biscuit a beagle?"))[0].ranks


async def test_a_question_that_is_refused_is_answered_by_its_words(url, moody):
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        await ana.set("dog", "a beagle called Biscuit")
        assert await memory.settle(20)
        moody.refuses = lambda _text: True
        recall = await ana.recall("Biscuit")
        assert (recall.outcome, recall.cut) == ("unavailable", ("vector",))
        assert recall.hits[0].text == "a beagle called Biscuit"


async def test_an_embedder_that_is_down_loses_nothing_and_catches_up(url, moody, quick_retries):
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        moody.down = True
        await ana.set("dog", "a beagle called Biscuit")
        recall = await ana.recall("Biscuit")
        assert recall.outcome == "unavailable"
        assert recall.hits[0].text == "a beagle called Biscuit"
        assert await memory.settle(30) is False
        facts = await memory.check()
        assert facts["embedding_failure"] == "EmbedderUnavailable"
        moody.down = False
        for _ in range(200):
            if await memory.settle(1):
                break
            await asyncio.sleep(0.01)
        assert (await memory.check())["embedding_failure"] is None
        assert "vector" in (await ana.query("Biscuit"))[0].ranks


async def test_what_one_process_left_waiting_the_next_one_embeds(tmp_path, moody, monkeypatch):
    monkeypatch.setattr("echoic.memory.service.SETTLE_S", 0.01)
    url = f"sqlite:///{tmp_path}/echoic.db"
    moody.down = True
    async with MemoryService(store_from(url), moody) as memory:
        for i in range(70):
            await memory.user("ana").remember(f"sentence number {i}")
    later = Moody()
    async with MemoryService(store_from(url), later) as memory:
        assert await memory.settle(20)
        assert (await memory.check()).get("waiting") == 0
    assert len(later.texts) == 70


async def test_only_changed_words_are_embedded_again(url, moody):
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        await ana.set("home", "Boston")
        await memory.settle(20)
        moody.texts.clear()
        await ana.set("home", "Haifa")  # supersedes Boston, whose words stay as they are
        await memory.settle(20)
        await ana.delete("home")
        await memory.settle(20)
    assert len(moody.texts) == 1


async def test_reindexing_embeds_everything_anew_with_another_model(tmp_path):
    url = f"sqlite:///{tmp_path}/echoic.db"
    async with echoic.open(url, embedder="lexical") as memory:
        await memory.user("ana").set("home", "Boston")
    other = LexicalEmbedder(dimensions=256)
    with pytest.raises(echoic.EmbeddingMismatch, match="echoic reindex"):
        await MemoryService(store_from(url), other).open()
    async with echoic.open(url, embedder="lexical") as memory:
        assert (await memory.user("ana").get("home")).text == "Boston"


async def test_a_conversation_that_cannot_be_heard_waits_and_keeps_nobody_back(url, moody, monkeypatch):
    monkeypatch.setattr(background, "FIRST_RETRY_S", 60.0)
    async with MemoryService(store_from(url), moody) as memory:
        ana, bob = memory.user("ana"), memory.user("bob")
        heard = []
        listen = memory._parts.distiller.apply_rules

        async def broken_for_ana(scope, conversation):
            heard.append(scope.user)
            if scope.user == "ana":
                raise StoreCorrupt("somebody wrote into her file")
            return await listen(scope, conversation)

        with monkeypatch.context() as broken:
            broken.setattr(memory._parts.distiller, "apply_rules", broken_for_ana)
            for user, name in ((ana, "Ana"), (bob, "Bob")):
                call = await user.conversation("call")
                await call.append(Turn(speaker="user", text=f"My name is {name}."))
            await bob.remember("plays the violin")
            assert await memory.settle(30) is False
            assert memory.embedding_failure is None, "texts are embedded"
            assert memory.learning_failures() == {"StoreCorrupt": 1}
            assert "vector" in (await bob.query("violin"))[0].ranks
            assert (await bob.get("user_name")).text == "Bob"
            assert len(heard) < 20, "it was tried again without a pause"
        assert await memory.settle(20)
        assert memory.learning_failures() == {}
        assert (await ana.get("user_name")).text == "Ana"


async def test_a_user_who_cannot_be_read_keeps_nobody_else_from_being_learned_from(moody, monkeypatch):
    store = store_from("memory://")
    scan, listed, unread = store.scan, store.scopes, {"ana", "cat", "eve"}

    async def scanned(scope, kind, **options):
        if scope.user in unread:
            raise StoreUnavailable("the file of this user could not be read: Permission denied")
        return await scan(scope, kind, **options)

    async with MemoryService(store, moody) as memory:
        await memory._parts.background.stop()
        for name in ("ana", "bob", "cat", "dan", "eve", "fay"):
            call = await memory.user(name).conversation("call")
            await call.append(Turn(speaker="user", text="I live in Oslo."))
        monkeypatch.setattr(store, "scan", scanned)
        for name, learn in (("bob", memory.distil_due), ("fay", memory.distil)):
            with pytest.raises(StoreUnavailable):
                await learn()
            assert (await memory.user(name).get("home")).text == "Oslo"
            await memory.user(name).forget()
        monkeypatch.setattr(store, "scan", scan)
        assert (await memory.distil_due()).turns == 3, "those who can be read again"

        asked = []

        async def gone(deployment=None):
            if asked:
                raise StoreUnavailable("the server is away")
            return await listed(deployment)

        async def counted(scope, kind, **options):
            asked.append(scope.user)
            raise StoreUnavailable("the server is away")

        monkeypatch.setattr(store, "scopes", gone)
        monkeypatch.setattr(store, "scan", counted)
        with pytest.raises(StoreUnavailable):
            await memory.distil()
        assert asked == ["ana"], "no other user is tried"


async def test_a_conversation_that_cannot_be_read_keeps_no_other_of_its_user_back(moody, monkeypatch):
    store = store_from("memory://")
    scan = store.scan

    async def scanned(scope, kind, **options):
        if kind == TURN and options.get("key") == "damaged":
            raise StoreCorrupt("a turn cannot be read")
        return await scan(scope, kind, **options)

    async with MemoryService(store, moody) as memory:
        running, ana = memory._parts.background, memory.user("ana")
        await running.stop()
        for name in ("damaged", "sound"):
            call = await ana.conversation(name)
            await call.append(Turn(speaker="user", text=f"My {name} bike is red. I live in Oslo."))
        monkeypatch.setattr(store, "scan", scanned)
        with pytest.raises(StoreCorrupt):
            await memory.distil_due()
        assert (await ana.get("home")).text == "Oslo"
        running.start()
        await running._swept(None)
        assert await memory.settle(30) is False
        assert memory.learning_failures() == {"StoreCorrupt": 1}, "it is tried, and counted"
        monkeypatch.setattr(store, "scan", scan)
        assert await memory.settle(20)
        assert memory.learning_failures() == {}


@pytest.mark.parametrize("data", [{}, {"status": "open", "cursor": "x"}])
async def test_a_damaged_conversation_is_counted_and_keeps_no_other_user_back(moody, caplog, data):
    store = store_from("memory://")
    async with MemoryService(store, moody) as memory:
        await memory._parts.background.stop()
        for name in ("ana", "bob", "cleo"):
            call = await memory.user(name).conversation("call")
            await call.append(Turn(speaker="user", text="I live in Oslo."))
        bob = memory.user("bob").scope
        await store.write(bob, [Put(record=Record(kind=CONVERSATION, id="call", data=data))])
        with pytest.raises(StoreCorrupt, match="echoic doctor"):
            await memory.distil()
        assert (await memory.user("cleo").get("home")).text == "Oslo"
        jobs = await memory.jobs()
        assert (jobs.unreadable, jobs.waiting) == (1, 0)
        await memory.jobs()
        assert caplog.text.count("what is kept of a user cannot be read") == 1, "not once a poll"


@pytest.mark.parametrize("data", ['{"te', "{}", "[1]"])
async def test_a_damaged_record_that_waits_keeps_nobody_else_from_vectors(tmp_path, moody, data):
    url = f"sqlite:///{tmp_path}/echoic.db"
    async with MemoryService(store_from(url), moody) as memory:
        await memory._parts.background.stop()
        for name in ("bob", "ana"):
            await memory.user(name).set("home", "Oslo")
    connection = apsw.Connection(str(tmp_path / "echoic.db"))
    bob = "scope = (select id from scopes where user = 'bob') and kind = 'memory'"
    connection.execute(f"update records set data = ? where {bob}", (data,))
    connection.close()
    async with MemoryService(store_from(url), moody) as memory:
        await memory.settle(5)
        assert (await memory.check())["waiting"] == 1
        assert (await memory.user("ana").query("Oslo", min_relevance=0))[0].ranks["vector"]


async def test_who_cannot_be_read_at_the_start_is_read_later_and_keeps_no_other_back(
    tmp_path, moody, monkeypatch
):
    monkeypatch.setattr(background, "SWEEP_AFTER_S", 0.01)
    monkeypatch.setattr(background, "LAST_RETRY_S", 0.05)
    url = f"sqlite:///{tmp_path}/echoic.db"
    async with MemoryService(store_from(url), moody) as memory:
        await memory._parts.background.stop()
        for name in ("ana", "bob"):
            call = await memory.user(name).conversation("call")
            await call.append(Turn(speaker="user", text="I live in Oslo."))

    async def home(user):
        async with asyncio.timeout(60):
            while (found := await user.get("home")) is None:
                await asyncio.sleep(0.01)
        return found.text

    memory = MemoryService(store_from(url), moody)
    unfinished, unread = memory._parts.distiller.unfinished, {"ana"}

    async def listed(scope):
        if scope.user in unread:
            raise StoreUnavailable("the file of this user could not be read: Permission denied")
        return await unfinished(scope)

    monkeypatch.setattr(memory._parts.distiller, "unfinished", listed)
    async with memory:
        assert await home(memory.user("bob")) == "Oslo"
        assert await memory.user("ana").get("home") is None
        assert memory.learning_failures() == {"StoreUnavailable": 1}
        assert memory.learning_failures("default") == {"StoreUnavailable": 1}
        unread.clear()
        assert await home(memory.user("ana")) == "Oslo"
        assert memory.learning_failures() == {}


async def test_a_user_to_whom_no_vector_can_be_written_keeps_nobody_elses_back(moody, monkeypatch):
    monkeypatch.setattr(background, "FIRST_RETRY_S", 60.0)
    store = store_from("memory://")
    write, tried = store.write, []

    async def broken_for_ana(scope, changes):
        if scope.user == "ana" and any(isinstance(change, Attach) for change in changes):
            tried.append(len(changes))
            raise StoreUnavailable("this scope is being embedded anew by another process")
        await write(scope, changes)

    async with MemoryService(store, moody) as memory:
        ana, bob = memory.user("ana"), memory.user("bob")
        with monkeypatch.context() as broken:
            broken.setattr(store, "write", broken_for_ana)
            for n in range(3 * background.BATCH):
                await ana.remember(f"sentence number {n}")
            await bob.remember("plays the violin")
            assert await memory.settle(30) is False
            assert memory.embedding_failure == "StoreUnavailable"
            assert "vector" in (await bob.query("violin"))[0].ranks
            before = len(tried)
            for n in range(3):
                await bob.set("instrument", f"violin number {n}")
                await asyncio.sleep(0.1)
            assert len(tried) == before, "it was tried again without a pause"
            assert "vector" in (await bob.query("violin"))[0].ranks
        assert await memory.settle(20)
        assert memory.embedding_failure is None
        assert (await memory.check())["waiting"] == 0


async def test_a_write_reads_few_of_the_many_to_whom_no_vector_can_be_written(moody, monkeypatch):
    monkeypatch.setattr(background, "FIRST_RETRY_S", 60.0)
    monkeypatch.setattr(background, "BATCH", 2)
    monkeypatch.setattr(background, "_MOST_ASIDE", 32)
    store = store_from("memory://")
    write, waiting, read = store.write, store.waiting, []

    async def broken_for_ana(scope, changes):
        if scope.user == "ana" and any(isinstance(change, Attach) for change in changes):
            raise StoreUnavailable("this scope is being embedded anew by another process")
        await write(scope, changes)

    async def counted(limit):
        found = await waiting(limit)
        read.append(len(found))
        return found

    async with MemoryService(store, moody) as memory:
        ana, bob = memory.user("ana"), memory.user("bob")
        monkeypatch.setattr(store, "write", broken_for_ana)
        for n in range(400):
            await ana.remember(f"sentence number {n}")
        assert await memory.settle(30) is False
        monkeypatch.setattr(store, "waiting", counted)
        await bob.remember("plays the violin")
        await asyncio.sleep(0.2)
        assert 0 < sum(read) < 200, read
        for n in range(20):
            await bob.remember(f"practises piece number {n}")
        read.clear()
        assert await memory.settle(30) is False
        assert "vector" in (await bob.query("violin"))[0].ranks, "a retry reads past all of them"
        assert (await memory.check())["waiting"] == 400
        assert sum(read) < 3000, "all of them were read again for each batch"
        monkeypatch.setattr(store, "write", write)
        assert await memory.settle(20)


async def test_a_store_that_takes_no_vectors_is_not_embedded_for_in_vain(moody, monkeypatch):
    monkeypatch.setattr(background, "FIRST_RETRY_S", 60.0)
    monkeypatch.setattr(background, "BATCH", 2)
    store = store_from("memory://")
    write = store.write

    async def full(scope, changes):
        if any(isinstance(change, Attach) for change in changes):
            raise StoreFull("no space left")
        await write(scope, changes)

    async with MemoryService(store, moody) as memory:
        monkeypatch.setattr(store, "write", full)
        moody.down = True
        for n in range(100):
            await memory.user(f"user {n}").remember("plays the violin")
        assert await memory.settle(30) is False
        moody.down = False
        assert await memory.settle(30) is False
        assert memory.embedding_failure == "StoreFull"
        assert len(moody.texts) <= 2 * background._VAIN
        monkeypatch.setattr(store, "write", write)
        assert await memory.settle(20)


async def test_an_error_that_is_not_echoics_ends_nothing_either(url, moody, quick_retries):
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        moody.error = ConnectionResetError("peer")
        await ana.set("dog", "a beagle called Biscuit")
        assert await memory.settle(30) is False
        assert memory.embedding_failure == "ConnectionResetError"
        moody.error = None
        for _ in range(200):
            if await memory.settle(1):
                break
            await asyncio.sleep(0.01)
        assert memory.embedding_failure is None
        assert "vector" in (await ana.query("Biscuit"))[0].ranks


async def test_whatever_ended_what_goes_on_behind_closing_closes_all(url, moody, monkeypatch):
    monkeypatch.setattr(background, "SWEEP_AFTER_S", 0)
    swept = asyncio.Event()

    async def sweep(_scopes):
        swept.set()
        raise OSError(24, "Too many open files")

    store = store_from(url)
    memory = MemoryService(store, moody)
    monkeypatch.setattr(memory._parts.background, "_swept", sweep)
    async with memory:
        await swept.wait()
    with pytest.raises(NotOpen):
        await store.scopes()


async def test_an_embedder_that_loses_a_cancellation_keeps_no_service_open(url, moody, monkeypatch):
    monkeypatch.setattr(concurrency, "_CANCEL_AGAIN_S", 0.01)
    monkeypatch.setattr(background, "BATCH", 2)
    monkeypatch.setattr("echoic.memory.service.SETTLE_S", 0.01)
    embed, asked = moody.embed, asyncio.Event()

    async def loses(texts, kind):
        if kind == "document":
            asked.set()
            with contextlib.suppress(
                asyncio.CancelledError
            ):  # as asyncio.wait_for of Python 3.11 does at times
                await asyncio.Event().wait()
        return await embed(texts, kind)

    moody.embed = loses
    memory = MemoryService(store_from(url), moody)
    await memory.open()
    for number in range(6):
        await memory.user("ana").remember(f"plays piece number {number}")
    await asked.wait()
    closing = asyncio.create_task(memory.aclose())
    await asyncio.wait([closing], timeout=30)
    assert closing.done()


async def test_a_sweep_that_loses_a_cancellation_keeps_nobody_waiting(monkeypatch):
    monkeypatch.setattr(concurrency, "_CANCEL_AGAIN_S", 0.01)
    begun = asyncio.Event()

    async def loses():
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    sweeper = Sweeper(loses, after_s=0, every_s=3600, later="again", job="sweeping")
    sweeper.start()
    await begun.wait()
    closing = asyncio.create_task(sweeper.aclose())
    await asyncio.wait([closing], timeout=30)
    assert closing.done()


async def test_whoever_stops_a_sweep_and_is_cancelled_meanwhile_ends_as_cancelled():
    begun, cleaned = asyncio.Event(), asyncio.Event()

    async def takes_long_to_end():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await cleaned.wait()

    sweeper = Sweeper(takes_long_to_end, after_s=0, later="again", job="sweeping")
    sweeper.start()
    await begun.wait()
    closing = asyncio.create_task(sweeper.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing], timeout=30)
    assert closing.cancelled()
    cleaned.set()
    await sweeper.aclose()


@pytest.mark.parametrize(
    "broken",
    [
        lambda vectors: vectors[:, :5],
        lambda vectors: np.concatenate([vectors, vectors], axis=1),
        lambda vectors: vectors[:-1],
        lambda vectors: vectors * np.float32("nan"),
    ],
    ids=["too few dimensions", "too many", "one missing", "no numbers"],
)
async def test_vectors_that_are_none_of_its_spec_are_kept_by_no_store(url, moody, quick_retries, broken):
    embed = moody.embed

    async def wrongly(texts, kind):
        return broken(await embed(texts, kind))

    moody.embed = wrongly
    async with MemoryService(store_from(url), moody) as memory:
        ana = memory.user("ana")
        await ana.set("dog", "a beagle called Biscuit")
        assert not await memory.settle(30)
        assert memory.embedding_failure == "EmbedderUnavailable"
        recall = await ana.recall("is Biscuit a beagle?")
        assert ([hit.text for hit in recall.hits], recall.cut[0]) == (["a beagle called Biscuit"], "vector")
        moody.embed = embed
        await ana.set("cat", "a tabby called Crumb")
        assert await memory.settle(20)
        recall = await ana.recall("is Biscuit a beagle?")
        assert (recall.outcome, "vector" in recall.hits[0].ranks) == ("complete", True)


@pytest.mark.parametrize("opens", [True, False])
async def test_an_embedder_that_cannot_be_closed_keeps_no_store_open(url, moody, monkeypatch, opens):
    store = store_from(url)

    async def fails():
        raise RuntimeError("the connection is gone already")

    monkeypatch.setattr(moody, "aclose", fails)
    if not opens:
        monkeypatch.setattr(moody, "open", fails)
    memory = MemoryService(store, moody)
    if opens:
        await memory.open()
    with pytest.raises(RuntimeError, match="gone already"):
        await (memory.aclose() if opens else memory.open())
    with pytest.raises(NotOpen):
        await store.check()


async def test_an_answer_of_which_nothing_was_heard_keeps_nobodys_vector_back(url, moody):
    async with MemoryService(store_from(url), moody) as memory:
        ana, bob = memory.user("ana"), memory.user("bob")
        call = await ana.conversation("call")
        await call.append(Turn(speaker="user", text="Hello?", id="asked"))
        await call.append(Turn(speaker="agent", text="Good morning, what can I do?", id="answer"))
        await call.truncate("", after="asked")
        await bob.remember("plays the violin")
        assert await memory.settle(30)
        assert "vector" in (await bob.query("violin"))[0].ranks
        hits = await ana.query("silence", limit=50)
        assert "answer" not in [hit.turn.id for hit in hits]


@pytest.mark.parametrize("what", [{"key": "diagnosis"}, {}], ids=["key", "everything"])
async def test_what_is_forgotten_while_it_is_embedded_leaves_no_vector_to_what_comes_after(url, moody, what):
    moody.hangs = asyncio.Event()
    store = store_from(url)
    async with MemoryService(store, moody) as memory:
        ana = memory.user("ana")
        await ana.set("diagnosis", "Multiple sclerosis, since March.")
        await moody.asked.wait()
        assert (await ana.forget(**what)).verified
        await ana.set("diagnosis", "Perfectly healthy again.")
        moody.hangs.set()
        assert await memory.settle(20)
        assert len(moody.texts) == 2, "the new words were not embedded"
        [vector] = [row for row in (await store.load(ana.scope)).vectors if row.any()]
        [made] = await LexicalEmbedder().embed(moody.texts[1:], "document")
        assert np.allclose(vector, made, atol=1e-6)


async def test_settling_reports_how_many_texts_have_their_vector_of_those_that_waited(moody):
    moody.hangs, told = asyncio.Event(), []

    def tell(done, total):
        told.append((done, total))
        moody.hangs.set()

    async with MemoryService(store_from("memory://"), moody) as memory:
        call = await memory.user("ana").conversation("c")
        await call.append(*(Turn(speaker="agent", text=f"Tulip number {n}.") for n in range(100)))
        assert await memory.settle(30, progress=tell)
        assert told[0] == (0, 100)
        assert told[-1] == (100, 100)
        assert told == sorted(told)
        assert await memory.settle(30, progress=tell)
        assert told[-1] == (0, 0)


async def test_a_report_of_progress_that_fails_ends_the_waiting_and_not_the_embedding(moody):
    def fail(_done, _total):
        raise LookupError

    async with MemoryService(store_from("memory://"), moody) as memory:
        await memory.user("ana").set("flower", "tulips")
        with pytest.raises(LookupError):
            await memory.settle(30, progress=fail)
        assert await memory.settle(30)
        assert memory.embedding_failure is None


async def test_vectors_of_many_users_share_a_commit(tmp_path, moody, monkeypatch):
    commits: list[int] = []
    commit = Writer._commit

    def counted(self, connection, jobs):
        commits.append(len(jobs))
        commit(self, connection, jobs)

    moody.hangs = asyncio.Event()
    async with MemoryService(store_from(f"sqlite:///{tmp_path}/a.db"), moody) as memory:
        for number in range(1 + 24):  # the first is asked for alone
            await memory.user(f"user {number}").remember(f"likes tea number {number}")
        monkeypatch.setattr(Writer, "_commit", counted)
        moody.hangs.set()
        assert await memory.settle(20)
    assert len(moody.texts) == 25
    assert max(commits) > 10


async def test_embedding_waits_for_a_pause_between_writes_and_not_where_somebody_waits_for_it(
    url, moody, monkeypatch
):
    monkeypatch.setattr(background, "QUIET_S", 3600.0)
    monkeypatch.setattr(background, "BUSY_S", 3600.0)
    async with MemoryService(store_from(url), moody) as memory:
        for number in range(3):
            await memory.user(f"user-{number}").set("dog", f"a beagle called Biscuit {number}")
        assert [hit.text for hit in (await memory.user("user-1").recall("Biscuit")).hits] == [
            "a beagle called Biscuit 1"
        ]
        assert not moody.texts
        assert await memory.settle(20)
        assert len(moody.texts) == 3
        assert moody.requests == 2  # one for the question


async def test_where_there_is_no_pause_a_batch_is_embedded_all_the_same(url, moody, monkeypatch):
    monkeypatch.setattr(background, "QUIET_S", 3600.0)
    monkeypatch.setattr(background, "BUSY_S", 0.0)
    async with MemoryService(store_from(url), moody) as memory:
        await memory.user("ana").set("dog", "a beagle called Biscuit")
        await asyncio.wait_for(moody.asked.wait(), 20)
