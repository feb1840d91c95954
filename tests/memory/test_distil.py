"""When conversations are read, by whom, and what of what was said comes to be known."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import echoic
from echoic.embedding import LexicalEmbedder
from echoic.memory import background
from echoic.memory.extraction import Add, Fact, Retract, Supersede
from echoic.memory.extraction.model_reader import Leases
from echoic.memory.extraction.turns import conversation_record, standing
from echoic.memory.records import Ledger
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.types import Memory, Scope, Turn

ANA = Scope("default", "ana")


class Listener:
    """An extractor that keeps each turn as a fact; it can be held, and says what it was asked."""

    name = "listener"
    timeout_s = 10.0

    def __init__(self) -> None:
        self.readings: list[list[str]] = []
        self.texts: list[str] = []
        self.held: asyncio.Event | None = None
        self.reading = 0
        self.most = 0

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...

    async def extract(self, reading):
        self.readings.append([turn.id for turn in reading.turns])
        self.texts += [turn.text for turn in (*reading.context, *reading.turns)]
        self.reading += 1
        self.most = max(self.most, self.reading)
        try:
            if self.held is not None:
                await self.held.wait()
        finally:
            self.reading -= 1
        return [
            Add(fact=Fact(text=turn.text), source=(turn.id,))
            for turn in reading.turns
            if turn.speaker == "user"
        ]

    async def asked(self, times: int) -> None:
        async with asyncio.timeout(60):
            while len(self.readings) < times:
                await asyncio.sleep(0.002)


@pytest.fixture
def listener():
    return Listener()


@pytest.fixture
def worker(url, listener):
    """Makes services on one store, all with the extractor."""
    return lambda **options: MemoryService(store_from(url), LexicalEmbedder(), extractor=listener, **options)


async def say(call, *texts, speaker="user", start=0):
    for at, text in enumerate(texts, start):
        await call.append(Turn(speaker=speaker, text=text, id=f"{call.id}-{at}"))


class TestTriggers:
    async def test_a_model_reads_after_every_five_user_turns_and_not_before(self, worker, listener):
        async with worker() as memory:
            call = await memory.user("ana").conversation("c")
            await say(call, *[f"word {n}" for n in "abcd"])
            await say(call, "I am an agent", speaker="agent", start=50)
            await memory.settle(20)
            assert listener.readings == []
            await say(call, "word e", start=4)
            await memory.settle(20)
            assert [len(reading) for reading in listener.readings] == [6]
            await say(call, *[f"more {n}" for n in "abcd"], start=5)
            await memory.settle(20)
            assert len(listener.readings) == 1
            await say(call, "more e", start=9)
            await memory.settle(20)
            assert [len(reading) for reading in listener.readings] == [6, 5]

    async def test_a_task_that_failed_is_over_and_is_read(self, worker, listener):
        async with worker() as memory:
            ana = memory.user("ana")
            call = await ana.conversation("c")
            await call.append(Turn(speaker="user", text="I keep bees.", id="1"))
            await ana.fail("c")
            await listener.asked(1)
            assert await memory.settle(30)
        assert listener.readings == [["1"]]

    @pytest.mark.parametrize("steps", range(4))
    async def test_it_is_settled_however_the_end_of_a_reading_meets_the_end_of_an_embedding(
        self, listener, steps, monkeypatch
    ):
        """A reading is let go, and so many steps of the event loop later a round of the embedding is over."""
        embed = background.Background.embed_waiting

        async def ends_with_it(self):
            done = await embed(self)
            await asyncio.sleep(0.01)  # so that whoever settles waits
            listener.held.set()
            for _ in range(steps):
                await asyncio.sleep(0)
            return done

        async with MemoryService(store_from("memory://"), LexicalEmbedder(), extractor=listener) as memory:
            await say(await memory.user("ana").conversation("c"), "I keep bees.")
            assert await memory.settle(30)
            listener.held = asyncio.Event()
            await memory.learn_soon("ana", "c")
            await listener.asked(1)
            monkeypatch.setattr(background.Background, "embed_waiting", ends_with_it)
            assert await memory.settle(30)
            assert (await memory.check())["waiting"] == 0

    async def test_a_checkpoint_the_end_of_the_call_and_a_demand_make_it_read_at_once(self, worker, listener):
        async with worker() as memory:
            call = await memory.user("ana").conversation("c")
            await say(call, "first")
            await memory.learn_soon("ana", "c")
            await memory.settle(20)
            assert listener.readings == [["c-0"]]
            await say(call, "second", start=1)
            await call.distil()
            assert listener.readings[1:] == [["c-1"]]
            await say(call, "third", start=2)
            await call.complete()
            await memory.settle(20)
            assert listener.readings[2:] == [["c-2"]]
            assert (await call.info()).distilled

    async def test_a_model_that_fails_is_asked_again_after_its_pause_and_not_by_each_checkpoint(
        self, worker, listener, monkeypatch
    ):
        moment, failed = [datetime.now(UTC)], []

        async def fails(reading):
            failed.append(reading)
            raise ConnectionError

        async with worker(clock=lambda: moment[0]) as memory:
            ana = memory.user("ana")
            await say(await ana.conversation("c"), "I keep bees.")
            with monkeypatch.context() as broken:
                broken.setattr(listener, "extract", fails)
                for _ in range(6):
                    await memory.learn_soon("ana", "c")
                    await memory.settle(20)
            assert len(failed) == 1
            jobs = await memory.jobs()
            assert (jobs.failing, jobs.parked) == (1, ())
            moment[0] += timedelta(seconds=31)
            await memory.learn_soon("ana", "c")
            await memory.settle(20)
            assert [fact.text for fact in await ana.facts() if fact.source] == ["I keep bees."]

    async def test_triggers_during_a_run_make_exactly_one_more_and_none_is_dropped(self, worker, listener):
        listener.held = asyncio.Event()
        async with worker() as memory:
            ana = memory.user("ana")
            call = await ana.conversation("c")
            await say(call, *[f"word {n}" for n in "abcde"])
            await listener.asked(1)
            for n in range(30):
                await say(call, f"later {n}", start=5 + n)
                await memory.learn_soon("ana", "c")
            listener.held.set()
            await memory.settle(20)
            assert [len(reading) for reading in listener.readings] == [5, 30]
            assert len([m for m in await ana.facts() if m.source]) == 35

    async def test_one_run_at_a_time_for_a_user_and_users_side_by_side(self, worker, listener):
        listener.held = asyncio.Event()
        async with worker() as memory:
            for name in ("ana", "bob"):
                for number in range(3):
                    call = await memory.user(name).conversation(f"{name}-{number}")
                    await say(call, f"word {number}")
                    await call.complete()
            await listener.asked(2)
            await asyncio.sleep(0.05)
            assert listener.reading == 2
            listener.held.set()
            await memory.settle(20)
            assert len(listener.readings) == 6
            assert listener.most == 2

    async def test_what_a_process_left_behind_is_found_at_the_next_start(
        self, url, worker, listener, monkeypatch
    ):
        monkeypatch.setattr(background, "SWEEP_AFTER_S", 0.01)
        async with echoic.open(
            url, embedder="lexical"
        ) as memory:  # it has no model, and marks what it has read
            call = await memory.user("ana").conversation("done")
            await say(call, "first")
            await call.complete()
            await memory.settle(20)
            going = await memory.user("ana").conversation("going on")
            await say(going, "second")
            dead = await memory.user("ana").conversation("its process died")
            long_ago = datetime.now(UTC) - timedelta(hours=2)
            await dead.append(Turn(speaker="user", text="third", id="dead-0", said_at=long_ago))
            if url == "memory://":
                pytest.skip("memory:// is gone when the process ends")
        async with worker() as memory:
            await listener.asked(2)
            await memory.settle(20)
            assert sorted(listener.readings) == [["dead-0"], ["done-0"]]

    async def test_the_rules_do_not_wait_for_the_model(self, worker, listener):
        listener.held = asyncio.Event()
        async with worker() as memory:
            ana = memory.user("ana")
            call = await ana.conversation("c")
            await say(call, *[f"word {n}" for n in "abcde"])
            await listener.asked(1)
            await say(call, "My name is Pavel", start=5)
            async with asyncio.timeout(60):
                while await ana.get("user_name") is None:
                    await asyncio.sleep(0.005)
            listener.held.set()


class TestLeases:
    async def test_another_worker_waits_and_then_reads_what_is_left(self, url, worker, listener):
        if url == "memory://":
            pytest.skip("memory:// is one process's own")
        listener.held = asyncio.Event()
        async with worker() as one, worker() as two:
            call = await one.user("ana").conversation("c")
            await say(call, "first")
            first = asyncio.create_task(call.distil())
            await listener.asked(1)
            other = await two.user("ana").conversation("c")
            await say(other, "second", start=1)
            second = asyncio.create_task(other.distil())
            await asyncio.sleep(0.3)
            assert listener.readings == [["c-0"]], "the lease spares the second worker the same work"
            listener.held.set()
            await asyncio.gather(first, second)
            assert sorted(turn for reading in listener.readings for turn in reading) == ["c-0", "c-1"]
            assert len([m for m in await one.user("ana").facts() if m.source]) == 2

    async def test_a_lease_holds_until_its_time_and_is_then_taken_over(self, url):
        store = store_from(url)
        await store.open(LexicalEmbedder().spec, background.index)
        async with MemoryService(store, LexicalEmbedder()) as memory:
            await memory.user("ana").conversation("c")
            moment = datetime.now(UTC)
            record = await conversation_record(store, ANA, "c")

            async def take(name, later, seconds=30.0):
                nonlocal record
                leases = Leases(store, name, lambda: moment + timedelta(seconds=later))
                record = await conversation_record(store, ANA, "c")
                return await leases.take(ANA, "model", seconds, standing=standing(record))

            assert await take("one", 0) == 0.0
            assert await take("one", 1) == 0.0, "its own is no obstacle"
            assert await take("two", 2) == pytest.approx(29)
            assert await take("two", 32) == 0.0, "the dead are not waited for"
            assert await take("one", -86_400) == 0.0, "nor is a lease from a clock that is a day ahead"
            await Leases(store, "one", lambda: moment).give_back(ANA, "model")
            assert await take("three", -86_400) == 0.0
            await Leases(store, "one", lambda: moment).give_back(ANA, "model")
            assert await take("four", -86_400) > 0, "nobody gives back what is another's"

    async def test_a_reader_that_was_overtaken_changes_nothing(self, url, worker, listener):
        if url == "memory://":
            pytest.skip("memory:// is one process's own")
        listener.held = asyncio.Event()
        async with worker() as slow, worker(clock=lambda: datetime.now(UTC) + timedelta(minutes=5)) as quick:
            call = await slow.user("ana").conversation("c")
            await say(call, "first")
            asking = asyncio.create_task(call.distil())
            await listener.asked(1)
            taking_over = asyncio.create_task((await quick.user("ana").conversation("c")).distil())
            await listener.asked(2)  # by its clock the first one's lease has run out
            listener.held.set()
            done = await asyncio.gather(asking, taking_over)
            assert sum(len(distilled.kept) for distilled in done) == 1
            assert len([m for m in await slow.user("ana").facts() if m.source]) == 1


class TestFacts:
    async def test_what_is_said_again_is_confirmed_and_counted_not_kept_twice(self, memory, later):
        ana = memory.user("ana")
        call = await ana.conversation("c")
        for number in range(12):
            text = "I'm allergic to Peanuts." if number % 2 else "I'm allergic to peanuts."
            await call.append(Turn(speaker="user", text=text, id=str(number), said_at=later(number)))
        await call.distil()
        await memory.settle(20)
        facts = [m for m in await ana.facts() if m.key == "allergy:peanuts"]
        assert len(facts) == 1
        assert len(await ana.history("allergy:peanuts")) == 1
        assert facts[0].times_said == 12
        assert (facts[0].valid_from, facts[0].last_said_at) == (later(0), later(11))
        assert facts[0].source[0] == "0"
        assert facts[0].source[-1] == "11"
        assert len(facts[0].source) <= 8

    async def test_a_move_ends_the_old_home_and_history_still_tells(self, memory, later):
        ana = memory.user("ana")
        call = await ana.conversation("c")
        for at, text in enumerate(["I live in New York.", "I just moved to Boston."]):
            await call.append(Turn(speaker="user", text=text, id=str(at), said_at=later(at)))
        await call.distil()
        await memory.settle(20)
        old, new = await ana.history("home")
        assert (old.text, old.valid_until, old.superseded_by) == ("New York", later(1), new.id)
        assert (new.text, new.valid_until, new.supersedes) == ("Boston", None, old.id)
        assert [m.text for m in await ana.facts() if m.key == "home"] == ["Boston"]
        assert "New York" in [
            h.memory.text for h in await ana.query("where did I live before", include_past=True) if h.memory
        ]

    @pytest.mark.parametrize("ahead", [timedelta(minutes=5), timedelta(hours=11)])
    @pytest.mark.parametrize("read", ["by rules", "by a model", "late"])
    async def test_a_correction_counts_after_words_of_a_clock_that_runs_ahead(self, later, ahead, read):
        class Reader(Listener):
            async def extract(self, reading):
                return [
                    Add(fact=Fact(text=turn.text.split()[-1], key="berth"), source=(turn.id,))
                    for turn in reading.turns
                ]

        minute = 0
        store, key = store_from("memory://"), "home" if read == "by rules" else "berth"
        says = "I live in" if read == "by rules" else "The boat lies off"
        service = MemoryService(store, LexicalEmbedder(), extractor=Reader(), clock=lambda: later(minute))
        async with service as memory:
            ana = memory.user("ana")
            assert (await ana.remember("She rows", said_at=later(0) + ahead)).valid_from == later(0)
            for minute, place in enumerate(("Lisbon", "Porto")):
                call = await ana.conversation(place)
                said_at = later(minute) if minute else later(0) + ahead
                (kept,) = await call.append(Turn(speaker="user", text=f"{says} {place}", said_at=said_at))
                assert kept.said_at == later(minute)
                if read != "late":
                    await call.distil()
            minute = 30
            await memory.distil()
            await ana.set(key, "Madrid")
            assert [(each.text, each.valid_from, each.valid_until) for each in await ana.history(key)] == [
                ("Lisbon", later(0), later(1)),
                ("Porto", later(1), later(30)),
                ("Madrid", later(30), None),
            ]

    async def test_what_a_clock_that_runs_ahead_gave_in_one_batch_keeps_its_order(self, memory):
        ana, now = memory.user("ana"), datetime.now(UTC)
        call = await ana.conversation("c")
        kept = await call.append(
            Turn(speaker="user", text="I've moved to York.", said_at=now + timedelta(hours=2)),
            Turn(speaker="user", text="I live in Leeds.", said_at=now + timedelta(hours=1)),
        )
        assert kept[0].said_at - kept[1].said_at == timedelta(hours=1)
        assert now <= kept[0].said_at <= datetime.now(UTC)
        await memory.distil()
        assert (await ana.get("home")).text == "York"

    async def test_a_relative_day_is_kept_with_the_day_it_meant(self, memory, later):
        ana = memory.user("ana")  # said on Monday, 4 May 2026
        call = await ana.conversation("c")
        said = "Please remember that my sister arrives tomorrow with two dogs"
        await call.append(Turn(speaker="user", text=said, id="1", said_at=later(0)))
        await call.distil()
        await memory.settle(20)
        assert [m.text for m in await ana.facts()] == [
            "my sister arrives tomorrow (5 May 2026) with two dogs"
        ]
        await ana.set("timezone", "Pacific/Auckland")
        await call.append(
            Turn(speaker="user", text="Remember that my car is due tomorrow", id="2", said_at=later(800))
        )
        await call.distil()
        await memory.settle(20)
        assert any("6 May 2026" in m.text for m in await ana.facts()), "tomorrow where the user is"

    @pytest.mark.parametrize("whose", ["the user's wish", "everyone's"])
    async def test_the_day_is_that_of_the_time_zone_recall_goes_by(self, memory, later, whose):
        ana = memory.user("ana")
        if whose == "everyone's":
            zone = Memory(id="", key="time_zone", text="Pacific/Auckland", valid_from=later(0))
            ledger = Ledger(ana.backing_store, ana.scope.everyone)
            await ledger.set(zone)
            await ana.backing_store.write(ana.scope.everyone, ledger.changes)
        else:
            await ana.set_directives(time_zone="Pacific/Auckland")
        call = await ana.conversation("c")
        at = datetime(2026, 5, 4, 20, 0, tzinfo=UTC)  # the 5th, there
        await call.append(Turn(speaker="user", text="Remember that my car is due tomorrow", said_at=at))
        await call.distil()
        assert [m.text for m in await ana.facts()] == ["my car is due tomorrow (6 May 2026)"]

    async def test_only_the_users_own_words_that_were_heard_are_learned(self, memory, later):
        ana = memory.user("ana")
        call = await ana.conversation("c")
        fact = "My name is Zelda and I live in Gotham."
        for at, speaker in enumerate(["agent", "assistant", "Bob"]):
            await call.append(Turn(speaker=speaker, text=fact, id=str(at), said_at=later(at)))
        await call.append(Turn(speaker="user", text=fact, heard="", id="unheard", said_at=later(9)))
        await call.append(Turn(speaker="user", text=fact, heard="My name is", id="half", said_at=later(10)))
        await call.distil()
        await memory.settle(20)
        assert await ana.facts() == []

    async def test_forget_that_and_do_not_remember_this_are_obeyed(self, memory, later):
        ana = memory.user("ana")
        call = await ana.conversation("c")
        said = [
            "My name is Pavel.",
            "What time is it?",
            "I'm allergic to walnuts.",
            "Forget that.",
            "My dog is called Rex, but don't remember this.",
            "I live in Lisbon.",
        ]
        for at, text in enumerate(said):
            await call.append(Turn(speaker="user", text=text, id=str(at), said_at=later(at)))
            await call.distil()
        await memory.settle(20)
        assert {m.text for m in await ana.facts()} == {"Pavel", "Lisbon"}

    @pytest.mark.parametrize("ending", [Retract, Supersede])
    async def test_an_old_call_read_late_brings_back_nothing_that_ended_since(self, url, later, ending):
        class Reader(Listener):
            async def extract(self, reading):
                (turn,) = reading.turns
                if not reading.known or turn.id == "late":
                    return [Add(fact=Fact(text=turn.text), source=(turn.id,))]
                new = {} if ending is Retract else {"fact": Fact(text=turn.text)}
                return [ending(known=(reading.known[0].id,), source=(turn.id,), **new)]

        async with MemoryService(store_from(url), LexicalEmbedder(), extractor=Reader()) as memory:
            ana = memory.user("ana")
            for name, text, minute in (
                ("first", "I keep bees on the roof", 0),
                ("last", "The bees left the roof", 20),
                ("late", "I keep bees on the roof", 10),
            ):
                call = await ana.conversation(name)
                await call.append(Turn(speaker="user", text=text, id=name, said_at=later(minute)))
                await call.complete()
                await call.distil()
            holds = [] if ending is Retract else ["The bees left the roof"]
            assert [m.text for m in await ana.facts()] == holds

    @pytest.mark.parametrize("has_it", [0, 1])
    @pytest.mark.parametrize("key", [None, "drink"])
    async def test_of_two_superseded_by_what_one_of_them_says_that_one_stays_and_the_other_ends(
        self, url, later, has_it, key
    ):
        class Reader(Listener):
            async def extract(self, reading):
                fact = Fact(text="Green tea", key=key)  # as it is kept, but for its case
                return [Supersede(known=tuple(known), fact=fact, source=(reading.turns[0].id,))]

        told = []
        service = MemoryService(
            store_from(url), LexicalEmbedder(), extractor=Reader(), clock=lambda: later(5)
        )
        service.on_memory_extraction(told.append)
        async with service as memory:
            ana = memory.user("ana")
            same = await (ana.set(key, "green tea") if key else ana.remember("green tea"))
            other = await ana.remember("coffee, black")
            known = [other.id, same.id] if has_it else [same.id, other.id]
            call = await ana.conversation("c")
            said = "It is green tea now, no more coffee"
            await call.append(Turn(speaker="user", text=said, id="t", said_at=later(5)))
            await call.distil()
            await memory.settle(20)
            (stays,) = await ana.facts()
            (ended,) = await ana.past()
        assert (stays.id, stays.text, stays.source, stays.last_said_at) == (
            same.id,
            "green tea",
            ("t",),
            later(5),
        )
        assert (ended.id, ended.valid_until, ended.superseded_by) == (other.id, later(5), same.id)
        assert stays.supersedes == other.id
        (event,) = told
        assert [memory.id for memory in event.confirmed] == [same.id]
        assert [memory.id for memory in event.superseded] == [other.id]
        assert (event.added, event.retracted) == ((), ())

    async def test_what_a_key_holds_is_superseded_under_that_key_though_another_memory_says_the_same(
        self, later
    ):
        class Reader(Listener):
            async def extract(self, reading):
                fact = Fact(text="Green tea", key="drink")
                return [Supersede(known=tuple(known), fact=fact, source=(reading.turns[0].id,))]

        service = MemoryService(
            store_from("memory://"), LexicalEmbedder(), extractor=Reader(), clock=lambda: later(0)
        )
        async with service as memory:
            ana = memory.user("ana")
            known = [(await ana.remember("green tea")).id, (await ana.set("drink", "coffee, black")).id]
            call = await ana.conversation("c")
            said = "It is green tea now, no more coffee"
            await call.append(Turn(speaker="user", text=said, id="t", said_at=later(5)))
            await call.distil()
            drink = await ana.get("drink")
            assert drink is not None
            assert (drink.text, drink.source) == ("Green tea", ("t",))
            assert await ana.facts() == [drink]
            assert {memory.superseded_by for memory in await ana.past()} == {drink.id}

    async def test_what_stands_under_a_key_stays_there_though_the_reader_names_no_key(self, later):
        class Reader(Listener):
            async def extract(self, reading):
                fact = Fact(text="Green tea")
                return [Supersede(known=tuple(known), fact=fact, source=(reading.turns[0].id,))]

        service = MemoryService(
            store_from("memory://"), LexicalEmbedder(), extractor=Reader(), clock=lambda: later(0)
        )
        async with service as memory:
            ana = memory.user("ana")
            known = [(await ana.remember("coffee, black")).id, (await ana.set("drink", "green tea")).id]
            call = await ana.conversation("c")
            said = "It is green tea now, no more coffee"
            await call.append(Turn(speaker="user", text=said, id="t", said_at=later(5)))
            await call.distil()
            assert [(fact.key, fact.id) for fact in await ana.facts()] == [("drink", known[1])]

    @pytest.mark.parametrize("rest", ["", " I keep two dogs."])
    async def test_no_model_is_given_what_was_taken_back(self, worker, listener, later, rest):
        async with worker(clock=lambda: later(2)) as memory:
            ana = memory.user("ana")
            call = await ana.conversation("c")
            await call.append(Turn(speaker="user", text=f"I live in Leeds.{rest}", id="1", said_at=later(0)))
            await call.learn()
            assert await ana.delete("home")
            await call.append(Turn(speaker="user", text="Good, thanks.", id="2", said_at=later(1)))
            await call.complete()
            await call.distil()
            assert "Leeds" not in str(listener.texts)
            assert rest in str(listener.texts)
            exported = await ana.export()
            listener.texts.clear()
            bob = memory.user("bob")
            await bob.restore(exported)
            await memory.distil()
            assert listener.texts == [], "it was read before"
            exported["conversations"][0].pop("distilled")
            cat = memory.user("cat")
            await cat.restore(exported)
            await memory.distil()
            assert listener.texts
            assert "Leeds" not in str(listener.texts)
            assert "Leeds" not in str([*await cat.facts(), *await bob.facts(), *await ana.facts()])

    async def test_what_is_taken_back_while_a_model_reads_it_does_not_come_back(self, later):
        class Paraphrasing(Listener):
            async def extract(self, reading):
                await super().extract(reading)
                return [Add(fact=Fact(text="The user's flat is in Leeds"), source=("1",))]

        model = Paraphrasing()
        model.held = asyncio.Event()
        async with MemoryService(store_from("memory://"), LexicalEmbedder(), extractor=model) as memory:
            ana = memory.user("ana")
            call = await ana.conversation("c")
            await call.append(Turn(speaker="user", text="I live in Leeds.", id="1", said_at=later(0)))
            await call.learn()
            reading = asyncio.create_task(call.distil())
            await model.asked(1)
            assert await ana.delete("home")
            model.held.set()
            await reading
            assert await ana.facts() == []

    async def test_two_readers_have_cursors_of_their_own(self, url, listener):
        other = Listener()
        other.name = "another"
        if url == "memory://":
            pytest.skip("memory:// is one process's own")
        for extractor in (listener, other):
            async with MemoryService(store_from(url), LexicalEmbedder(), extractor=extractor) as memory:
                call = await memory.user("ana").conversation("c")
                await say(call, "first", "second")
                await call.distil()
        assert listener.readings == other.readings == [["c-0", "c-1"]]

    @pytest.mark.parametrize("url", ["memory://"])  # how it is cut depends on no store
    async def test_a_long_conversation_is_read_in_stretches_a_model_can_attend_to(self, worker, listener):
        async with worker(distil_every=10_000) as memory:
            call = await memory.user("ana").conversation("c")
            await call.append(
                *[Turn(speaker="user", text=f"word number {n}", id=f"{n:03}") for n in range(130)]
            )
            await call.append(*[Turn(speaker="user", text="long " * 3000, id=f"long-{n}") for n in range(3)])
            await call.distil()
        read = [turn for reading in listener.readings for turn in reading]
        assert read == sorted(read)
        assert len(read) == len(set(read)) == 133
        assert [len(reading) for reading in listener.readings] == [60, 60, 11, 1, 1]
