"""What was forgotten while somebody worked on it comes back through none of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from echoic import InvalidInput, Turn
from echoic.embedding.lexical import LexicalEmbedder
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
            async def overtaken(scope, changes):
                if when(scope, changes):
                    monkeypatch.setattr(store, "write", write)
                    await do()
                return await write(scope, changes)

            monkeypatch.setattr(store, "write", overtaken)

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

            overtake(sharing, anew)
            await ana.set(*HOURS)
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
