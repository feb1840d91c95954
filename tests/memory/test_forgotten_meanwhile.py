"""What was forgotten while somebody worked on it comes back through none of them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import echoic
from echoic import InvalidInput, Turn
from echoic.embedding import LexicalEmbedder
from echoic.memory.extraction.reconciliation import Add, Fact
from echoic.memory.service import MemoryService
from echoic.memory.sharing import Verdict
from echoic.stores import store_from
from echoic.stores.base import Put

HOURS = ("store_hours", "The store is open Monday to Friday, nine to five.")


class TestForgottenAndWrittenAnew:
    """Versions begin anew with a record: who read the forgotten one writes nothing over the new one."""

    SATURDAYS = "The store is open on Saturdays only."

    @pytest.fixture
    def overtaking(self, url, monkeypatch):
        """A store, and the means to have something done just before the next write that `when` chooses."""
        store = store_from(url)
        write = store.write

        def overtake(when, do):
            done = asyncio.Event()

            async def overtaken(scope, changes):
                if when(scope, changes):
                    monkeypatch.setattr(store, "write", write)
                    await do()
                    done.set()
                return await write(scope, changes)

            monkeypatch.setattr(store, "write", overtaken)
            return done

        return store, overtake

    @pytest.mark.parametrize("mode", ["auto", "propose"])
    @pytest.mark.parametrize("shared", [False, True], ids=["before it is shared", "after"])
    async def test_while_a_second_judge_shares_it(self, overtaking, mode, shared):
        store, overtake = overtaking
        was_shared = []

        class Second:
            async def classify(self, text, key):
                return Verdict("global" if text == HOURS[1] else "private", "model")

        def sharing(scope, _changes):
            if scope.user is None:
                was_shared.append(True)
                return not shared
            return bool(was_shared)

        made = MemoryService(store, LexicalEmbedder(), global_writes=mode, second_judge=Second())
        async with made as memory:
            ana = memory.user("ana")

            async def anew():
                assert (await ana.forget(key="store_hours")).verified
                await ana.set("store_hours", self.SATURDAYS)

            overtaken = overtake(sharing, anew)
            await ana.set(*HOURS)
            async with asyncio.timeout(60):
                await overtaken.wait()  # it may be the write of a vector that was overtaken
            await memory._parts.judge.settle()
            assert was_shared
            assert await memory.user("bob").get("store_hours") is None
            assert await memory.proposals().list() == []
            assert [m.text for m in await ana.history("store_hours")] == [self.SATURDAYS]

    @pytest.mark.parametrize("approved", [False, True], ids=["before it is adopted", "after"])
    async def test_while_it_is_approved(self, overtaking, approved):
        store, overtake = overtaking
        async with MemoryService(store, LexicalEmbedder()) as memory:
            ana = memory.user("ana")
            await ana.set(*HOURS)
            (waiting,) = await memory.proposals().list()

            async def anew():
                assert (await ana.forget()).verified
                await ana.set("store_hours", self.SATURDAYS)

            overtake(lambda scope, changes: (scope.user is not None) == approved and _holds(changes), anew)
            if approved:
                await memory.proposals().approve(waiting.id)
            else:
                with pytest.raises(InvalidInput, match="changed by its author"):
                    await memory.proposals().approve(waiting.id)
                assert await memory.user("bob").get("store_hours") is None
            assert [p.text for p in await memory.proposals().list()] == [self.SATURDAYS]
            assert [m.text for m in await ana.history("store_hours")] == [self.SATURDAYS]

    @pytest.mark.parametrize("what", [{"conversation": "call"}, {}], ids=["conversation", "everything"])
    async def test_while_something_is_learned_of_it(self, overtaking, what):
        store, overtake = overtaking
        async with MemoryService(store, LexicalEmbedder()) as memory:
            ana = memory.user("ana")
            call = await ana.conversation("call")

            async def anew():
                assert (await ana.forget(**what)).verified
                again = await ana.conversation("call")
                await again.append(Turn(speaker="user", text="My sister is called Noa.", id="2"))

            overtake(lambda _scope, changes: _holds(changes), anew)
            await call.append(Turn(speaker="user", text="My name is Pavel.", id="1"))
            await memory.settle(20)
            await memory.distil()
            assert [m.text for m in await ana.facts()] == ["Noa"]

    async def test_while_an_answer_is_cut_off(self, overtaking):
        store, overtake = overtaking
        async with MemoryService(store, LexicalEmbedder()) as memory:
            ana = memory.user("ana")
            call = await ana.conversation("call")
            await call.append(Turn(speaker="agent", text="Your diagnosis is diabetes.", id="1"))

            async def anew():
                assert (await ana.forget()).verified
                again = await ana.conversation("call")
                await again.append(Turn(speaker="agent", text="Welcome.", id="1"))

            overtake(lambda _scope, changes: _holds(changes, "turn"), anew)
            with pytest.raises(InvalidInput, match="does not begin"):
                await call.truncate("Your diagnosis")
            assert [turn.text for turn in await call.turns()] == ["Welcome."]

    async def test_while_what_is_expired_goes(self, overtaking):
        store, overtake = overtaking
        start = datetime(2026, 11, 20, 9, tzinfo=UTC)
        now = start
        async with MemoryService(store, LexicalEmbedder(), clock=lambda: now) as memory:
            revocations = memory.revocations()
            await revocations.revoke("ana's", start + timedelta(minutes=1))
            now = start + timedelta(minutes=2)

            async def anew():
                await revocations.revoke("carol's", start + timedelta(days=1))
                await revocations.revoke("ana's", start + timedelta(days=1))

            overtake(lambda _scope, _changes: True, anew)
            await revocations.revoke("bob's", start + timedelta(days=1))
            assert [await revocations.revoked(f"{name}'s") for name in ("ana", "bob", "carol")] == [True] * 3


def _holds(changes, kind="memory"):
    return any(isinstance(change, Put) and change.record.kind == kind for change in changes)


class TestForgottenBeforeItWasRead:
    """The rules hear at once and a model reads later: what was forgotten in between is not learned again."""

    SAID = ("I live in Lisbon.", "I have a cello.")

    @pytest.fixture
    async def slow(self, url):
        """A memory whose model keeps every turn as a fact; it waits for `let_go`, once it is cleared."""

        class Reader:
            name, timeout_s = "reader", 10.0

            def __init__(self):
                self.asked, self.let_go = asyncio.Event(), asyncio.Event()
                self.let_go.set()

            async def open(self): ...

            async def aclose(self): ...

            async def extract(self, reading):
                self.asked.set()
                await self.let_go.wait()
                return [Add(fact=Fact(text=turn.text), source=(turn.id,)) for turn in reading.turns]

        reader = Reader()
        async with MemoryService(store_from(url), LexicalEmbedder(), extractor=reader) as memory:
            yield memory, reader

    async def talked(self, memory):
        """A call that the rules have heard and the model has not read."""
        ana = memory.user("ana")
        call = await ana.conversation("call")
        await call.append(*(Turn(speaker="user", text=text) for text in self.SAID))
        await call.learn()
        return ana, call

    async def test_the_turns_it_was_heard_in_teach_nothing_and_the_others_do(self, slow):
        memory, _ = slow
        ana, call = await self.talked(memory)
        assert (await ana.get("home")).text == "Lisbon"
        await ana.forget(key="home")
        await call.distil()
        assert [m.text for m in await ana.facts()] == ["I have a cello."]
        assert [turn.text for turn in await call.turns()] == ["[forgotten].", *self.SAID[1:]]

    async def test_nor_does_a_turn_that_says_what_a_tool_had_kept(self, slow):
        memory, _ = slow
        ana = memory.user("ana")
        call = await ana.conversation("call")
        await ana.set("city", "Lisbon")
        await call.append(Turn(speaker="user", text="The weather of Lisbon suits me."))
        await ana.forget(key="city")
        await call.distil()
        assert await ana.facts() == []

    async def test_nor_while_the_model_is_asked(self, slow):
        memory, reader = slow
        ana, call = await self.talked(memory)
        reader.let_go.clear()
        reading = asyncio.create_task(call.distil())
        await reader.asked.wait()
        await ana.forget(key="home")
        reader.let_go.set()
        await reading
        assert [m.text for m in await ana.facts()] == ["I have a cello."]

    async def test_nor_in_the_moment_of_writing(self, slow, monkeypatch):
        memory, _ = slow
        ana = memory.user("ana")
        call = await ana.conversation("call")
        await call.append(Turn(speaker="user", text="I live in Lisbon. The kitchen of the flat is tiny."))
        await call.learn()
        write = ana.backing_store.write

        async def overtaken(scope, changes):
            learned = [
                c.record.data["text"] for c in changes if isinstance(c, Put) and c.record.kind == "memory"
            ]
            if any("kitchen" in text for text in learned):
                monkeypatch.undo()
                assert (await ana.forget(key="home")).memories == 1
            await write(scope, changes)

        monkeypatch.setattr(ana.backing_store, "write", overtaken)
        await call.distil()
        assert ana.backing_store.write == write, "it was forgotten in that moment"
        assert await ana.facts() == []

    async def test_it_is_learned_when_it_is_said_again(self, slow):
        memory, _ = slow
        ana = memory.user("ana")
        call = await ana.conversation("call")
        await call.append(Turn(speaker="user", text=self.SAID[0]))
        await call.learn()
        await ana.forget(key="home")
        await call.append(Turn(speaker="user", text="By the way, I live in Lisbon."))
        await call.learn()
        assert (await ana.get("home")).text == "Lisbon"

    async def test_it_stays_so_in_another_store(self, slow, tmp_path):
        memory, reader = slow
        ana, _ = await self.talked(memory)
        await ana.forget(key="home")
        exported = await ana.export()
        other = store_from(f"sqlite:///{tmp_path}/other.db")
        async with MemoryService(other, LexicalEmbedder(), extractor=reader) as elsewhere:
            moved = elsewhere.user("ana")
            await moved.restore(exported)
            await (await moved.conversation("call")).distil()
            assert [m.text for m in await moved.facts()] == ["I have a cello."]


@pytest.mark.parametrize("steps", [0, 5, 20, 60, 120])
async def test_nothing_is_learned_from_a_turn_that_was_taken_back_before_or_while_it_is_read(steps):
    async with echoic.open("memory://", embedder="lexical") as memory:
        ana = memory.user("ana")
        call = await ana.conversation("call")
        await call.append(Turn(id="t1", speaker="user", text="I am allergic to peanuts."))
        for _ in range(steps):
            await asyncio.sleep(0)
        assert await ana.delete(id="t1")
        await call.append(Turn(id="t2", speaker="user", text="I live in Porto."))
        await memory.distil()
        assert [fact.text for fact in await ana.facts()] == ["Porto"]
        found = await ana.recall("am I allergic to peanuts?", min_relevance=0)
        assert "peanuts" not in str([hit.text for hit in found.hits])
