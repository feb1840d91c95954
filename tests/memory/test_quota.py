"""Nobody keeps more than they may, on whatever way it comes; what is there stays usable."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import echoic
from echoic import InvalidInput, Quota, QuotaExceeded, Turn
from echoic.embedding import LexicalEmbedder
from echoic.memory.extraction import Add, Fact
from echoic.memory.guarded_store import Meter
from echoic.memory.records import CALL_PARTS
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.base import Put, Record


@pytest.fixture(params=["sqlite:///{}/q.db", "files:///{}/q", "memory://"])
def url(request, tmp_path):
    return request.param.format(tmp_path)


def opened(url, **limits):
    return echoic.open(url, embedder="lexical", quota=Quota(**limits))


async def kept_until_refused(write, most):
    for number in range(most):
        try:
            await write(number)
        except QuotaExceeded:
            return number
    return most


async def test_a_user_has_so_many_memories_and_no_more(url):
    async with opened(url, user_memories=20) as memory:
        ana, eve = memory.user("ana"), memory.user("eve")
        count = await kept_until_refused(lambda n: eve.remember(f"Likes tea number {n}"), 100)
        assert count == 20
        with pytest.raises(QuotaExceeded, match="20 memories"):
            await eve.set("home", "Oslo")
        assert len(await eve.facts()) == 20
        assert (await ana.set("home", "Oslo")).text == "Oslo", "another's quota is another's"


async def test_versions_of_one_key_count(url):
    async with opened(url, user_memories=5) as memory:
        eve = memory.user("eve")
        assert await kept_until_refused(lambda n: eve.set("home", f"place {n}"), 100) == 5
        assert len(await eve.history("home")) == 5


async def test_a_user_has_so_many_bytes_of_memories_and_turns_and_no_more(url):
    async with opened(url, user_bytes=20_000) as memory:
        eve = memory.user("eve")
        call = await eve.conversation("c")
        count = await kept_until_refused(
            lambda n: call.append(Turn(speaker="user", text=f"{n} " + "long story " * 80)), 100
        )
        assert 10 < count < 25
        with pytest.raises(QuotaExceeded, match="20000 bytes"):
            await eve.remember("x" * 2000)
        assert len(await call.turns()) == count, "what was refused is not kept in part"


async def test_summaries_are_no_way_past_it(url):
    async with opened(url, user_bytes=20_000) as memory:
        eve = memory.user("eve")
        calls = [await eve.conversation(f"c{n}") for n in range(20)]
        count = await kept_until_refused(lambda n: calls[n].store(f"call {n}", "x" * 3000), 20)
        assert 3 <= count <= 6
        assert (await calls[19].complete()).status == "completed"


@pytest.mark.parametrize("searchable", [True, False])
async def test_an_item_does_not_grow_past_it(url, searchable):
    async with opened(url, user_bytes=20_000) as memory:
        items = memory.user("eve").items("note", searchable=searchable)
        await items.set("one", "x")
        with pytest.raises(QuotaExceeded):
            await items.set("one", "x" * 30_000)
        assert (await items.get("one")).value == "x"
        await items.set("one", "x" * 15_000)
        with pytest.raises(QuotaExceeded):
            await items.set("one", "x" * 25_000)
        await items.set("one", "y" * 15_000)
        assert (await items.set("one", "less")).value == "less"


async def test_directives_are_no_way_past_it(url):
    async with opened(url, user_bytes=20_000) as memory:
        eve = memory.user("eve")
        free = {f"rule_{n}": "x" * 200 for n in range(10)}
        count = await kept_until_refused(lambda n: eve.set_directives(for_agent=f"agent {n}", **free), 50)
        assert 3 <= count <= 10
        await eve.set_directives(for_agent="agent 0", rule_0="shorter")
        await eve.set_directives(for_agent="agent 0", rule_1=None)
        await eve.set_directives(language="de")


async def test_what_becomes_smaller_or_is_erased_needs_no_room(tmp_path):
    url = f"sqlite:///{tmp_path}/q.db"
    async with echoic.open(url, embedder="lexical") as memory:
        eve = memory.user("eve")
        await eve.set("home", "Leeds")
        await eve.items("note").set("one", "x" * 5000)
        await eve.set_directives(for_agent="agent", rule="x" * 200)
        call = await eve.conversation("c")
        await call.append(Turn(speaker="user", text="I like tea. I live in Leeds."))
    async with opened(url, user_bytes=1000) as memory:
        eve = memory.user("eve")
        await eve.items("note").set("one", "x" * 4000)
        await eve.set_directives(for_agent="agent", rule="brief")
        assert (await eve.forget(key="home")).verified


async def test_what_is_written_over_and_over_is_not_taken_for_more(url):
    """Up to the last tenth it may look like more than it is, and is counted again before it is refused."""
    async with opened(url, user_bytes=20_000) as memory:
        eve = memory.user("eve")
        await eve.remember("x" * 18_500)
        store = memory._parts.store
        record = Record(kind=CALL_PARTS[0], id="call", data={"text": "y" * 500})
        for _ in range(50):
            await store.write(eve.scope, [Put(record=record)])


async def test_bytes_are_bytes_in_whatever_script(url):
    async with opened(url, user_bytes=4000) as memory:
        with pytest.raises(QuotaExceeded):
            await memory.user("eve").remember("雨" * 1500)


async def test_who_is_full_can_read_correct_take_back_and_forget(url):
    async with opened(url, user_memories=10) as memory:
        eve = memory.user("eve")
        await kept_until_refused(lambda n: eve.set(f"key {n}", f"tea number {n}"), 100)
        call = await eve.conversation("c")
        await call.append(Turn(speaker="user", text="Turns are no memories"))
        assert await eve.query("tea")
        assert await eve.delete("key 1")
        assert await call.complete()
        assert await eve.export()
        await eve.forget(key="key 2")
        await eve.set("home", "Oslo")
        with pytest.raises(QuotaExceeded):
            await eve.set("work", "Oslo")
        await eve.forget()
        assert await kept_until_refused(lambda n: eve.remember(f"fact {n}"), 100) == 10


async def test_a_new_process_counts_what_was_there(url):
    if url == "memory://":
        return
    async with opened(url, user_memories=10) as memory:
        await kept_until_refused(lambda n: memory.user("eve").remember(f"fact {n}"), 6)
    async with opened(url, user_memories=10) as memory:
        assert await kept_until_refused(lambda n: memory.user("eve").remember(f"more {n}"), 100) == 4


async def test_writes_of_one_moment_do_not_pass_together(url):
    async with opened(url, user_memories=10) as memory:
        eve = memory.user("eve")
        done = await asyncio.gather(*(eve.remember(f"fact {n}") for n in range(50)), return_exceptions=True)
        # one that looks while others are being written may be refused early, but never kept beyond it
        assert sum(isinstance(one, QuotaExceeded) for one in done) >= 40
        kept = len(await eve.facts())
        assert kept + await kept_until_refused(lambda n: eve.remember(f"later {n}"), 20) == 10


async def test_several_processes_exceed_it_by_a_tenth_for_each_at_most(tmp_path):
    url = f"sqlite:///{tmp_path}/q.db"
    async with opened(url, user_memories=50) as first, opened(url, user_memories=50) as second:
        wrote = refused = 0
        for n in range(200):
            try:
                await (first, second)[n % 2].user("eve").remember(f"fact {n}")
                wrote += 1
            except QuotaExceeded:
                refused += 1
        assert 50 <= wrote <= 55
        assert refused == 200 - wrote


async def test_a_deployment_has_so_many_bytes_and_its_neighbour_its_own(url):
    async with opened(url, deployment_bytes=30_000) as memory:
        await memory.user("ana").remember("The first write has it counted")
        meter = memory._meter
        await asyncio.gather(*meter._behind.values())

        async def write(number):
            await memory.user(f"user {number}").remember("x" * 1000)

        count = await kept_until_refused(write, 100)
        assert 15 < count < 30
        with pytest.raises(QuotaExceeded, match="this deployment"):
            await memory.user("ben").remember("x" * 1000)
        assert (await memory.user("ben", "other").set("home", "Oslo")).text == "Oslo"
        await memory.user("user 1").forget()
        await asyncio.gather(*meter._behind.values())
        await memory.user("ben").remember("x" * 500)


async def test_a_restored_export_counts_as_well(url, tmp_path):
    async with echoic.open("memory://", embedder="lexical") as memory:
        for n in range(30):
            await memory.user("eve").remember(f"fact {n}")
        exported = await memory.user("eve").export()
    async with opened(url, user_memories=10) as memory:
        with pytest.raises(QuotaExceeded):
            await memory.user("eve").restore(exported)
        assert await memory.user("eve").facts() == []


async def test_an_import_that_does_not_fit_writes_nothing_and_one_that_just_fits_is_whole(url):
    async with echoic.open("memory://", embedder="lexical") as memory:
        old = memory.user("bea")
        await old.set("home", "London")
        for n in range(230):
            await old.remember(f"note {n}")
        exported = await old.export()
    async with opened(url, user_memories=232) as memory:
        bea = memory.user("bea")
        await bea.set("home", "Bristol")
        await bea.remember("plays the cello")
        with pytest.raises(QuotaExceeded, match="nothing was written"):
            await bea.restore(exported)
        assert len(await bea.facts()) == 2
        fits = {**exported, "memories": exported["memories"][:-1]}
        assert await bea.restore(fits) == 230
        assert (await bea.get("home")).text == "Bristol"
        assert [m.text for m in await bea.facts() if m.key == "home"] == ["Bristol"]


async def test_who_is_full_keeps_nobody_from_being_learned_from(url, monkeypatch):
    async with opened(url, user_memories=1) as memory:
        ana, bob = memory.user("ana"), memory.user("bob")
        await ana.remember("is full")
        read, asked = memory._parts.distiller.apply_rules, []

        async def counted(scope, conversation):
            asked.append(scope.user)
            return await read(scope, conversation)

        monkeypatch.setattr(memory._parts.distiller, "apply_rules", counted)
        call = await ana.conversation("a")
        await call.append(Turn(speaker="user", text="My name is Ana and I live in Oslo."))
        assert await memory.settle(20)
        assert memory.embedding_failure is None
        before = asked.count("ana")
        talk = await bob.conversation("b")
        for n in range(10):
            await talk.append(Turn(speaker="user", text=f"Thing number {n} went well."))
            assert await memory.settle(20)
        assert asked.count("ana") == before <= 3


async def test_what_is_due_of_others_is_learned_beside_who_is_full(url):
    async with opened(url, user_memories=1) as memory:
        for name in ("ana", "bob"):
            user = memory.user(name)
            if name == "ana":
                await user.remember("is full")
            call = await user.conversation(name)
            await memory._parts.background.stop()
            await call.append(Turn(speaker="user", text="I live in Oslo."))
        for learn in (memory.distil_due, memory.distil):
            await learn()
            assert [m.text for m in await memory.user("bob").facts()] == ["Oslo"]
            await memory.user("bob").forget()
            call = await memory.user("bob").conversation("again")
            await call.append(Turn(speaker="user", text="I live in Oslo."))


class Noting:
    """An extractor that keeps each turn as a fact, and counts how often it is asked."""

    name, timeout_s, asked = "noting", 10.0, 0

    async def open(self): ...

    async def aclose(self): ...

    async def extract(self, reading):
        self.asked += 1
        return [Add(fact=Fact(text=turn.text), source=(turn.id,)) for turn in reading.turns]


async def test_a_model_is_not_asked_for_ever_for_who_is_full(url):
    now, model = [datetime(2026, 5, 4, tzinfo=UTC)], Noting()
    service = MemoryService(
        store_from(url),
        LexicalEmbedder(),
        extractor=model,
        quota=Quota(user_memories=1),
        clock=lambda: now[0],
    )
    async with service as memory:
        ana = memory.user("ana")
        await ana.remember("is full")
        call = await ana.conversation("a")
        await call.append(Turn(speaker="user", text="Thing number one went well."))
        await call.complete()
        assert await memory.settle(20)
        for _ in range(20):
            now[0] += timedelta(hours=1)
            await memory.distil_due()
        assert model.asked == 5
        (parked,) = (await ana.jobs()).parked
        assert (parked.conversation, parked.reason) == ("a", "QuotaExceeded")


async def test_what_is_learned_from_speech_counts_and_a_full_user_still_talks(url):
    async with opened(url, user_memories=2) as memory:
        eve = memory.user("eve")
        call = await eve.conversation("c")
        for text in (
            "I live in Oslo.",
            "My favourite tea is sencha.",
            "I work as a nurse.",
            "My name is Eve.",
        ):
            await call.append(Turn(speaker="user", text=text))
        await memory.settle(30)
        assert len(await eve.facts()) <= 2
        assert len(await call.turns()) == 4


async def test_without_a_quota_nothing_is_counted(url, monkeypatch):
    async def never(*_):
        raise AssertionError

    monkeypatch.setattr(Meter, "_count", never)
    async with echoic.open(url, embedder="lexical") as memory:
        await memory.user("eve").remember("anything")


async def test_counting_is_no_scan_per_write(tmp_path, monkeypatch):
    counted = []
    count = Meter._count

    async def noted(self, scope):
        counted.append(scope)
        return await count(self, scope)

    monkeypatch.setattr(Meter, "_count", noted)
    async with opened(f"sqlite:///{tmp_path}/q.db", user_memories=200) as memory:
        for n in range(300):
            await kept_until_refused(lambda _, n=n: memory.user("eve").remember(f"fact {n}"), 1)
    assert len(counted) <= 14


@pytest.mark.parametrize("limit", [0, 1.5, "x", True])
@pytest.mark.parametrize("field", ["user_memories", "user_bytes", "deployment_bytes"])
def test_a_quota_of_nothing_or_of_no_whole_number_is_refused(field, limit):
    with pytest.raises(InvalidInput, match=field):
        Quota(**{field: limit})


async def test_what_its_author_could_not_keep_is_proposed_to_nobody(url):
    async with opened(url, user_memories=1) as memory:
        eve = memory.user("eve")
        await eve.set("opening hours", "nine to five")
        with pytest.raises(QuotaExceeded):
            await eve.set("parking", "behind the building")
        assert [proposal.key for proposal in await memory.proposals().list()] == ["opening hours"]
