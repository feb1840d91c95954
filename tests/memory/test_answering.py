"""An answer as a model gets it, from a memory."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from echoic import InvalidInput, Turn
from echoic.memory.block import LIST_HITS, hits_for
from echoic.memory.recall import Deadline
from echoic.prompt.answer import NOTHING_KNOWN
from echoic.stores.in_memory import InMemoryStore

START = datetime(2026, 5, 4, 9, tzinfo=UTC)


SEATS = (
    ("agent", "Where on the train would you like to sit?"),
    ("user", "The quiet coach, by the window."),
)


async def talk(user, name, *said):
    call = await user.conversation(name)
    turns = [
        Turn(speaker=who, text=text, id=f"{name}:{n}", said_at=START + timedelta(seconds=n))
        for n, (who, text) in enumerate(said)
    ]
    for turn in turns:
        await call.append(turn)
    return call


async def test_a_short_answer_is_given_with_the_question_before_it(memory):
    ana = memory.user("ana")
    await talk(ana, "train", *SEATS)
    made = await ana.brief("which coach was it, the quiet one?", budget_tokens=200)
    asked = made.text.index("Where on the train")
    assert asked < made.text.index("The quiet coach")
    assert "4 May 2026" in made.text


async def test_neighbours_are_of_the_same_conversation_only(memory):
    ana = memory.user("ana")
    await talk(ana, "one", ("agent", "Which colour should the fence be?"))
    await talk(ana, "two", ("user", "Turquoise."))
    made = await ana.brief("turquoise", budget_tokens=200)
    assert "Turquoise" in made.text
    assert "fence" not in made.text


async def test_a_turn_that_is_left_out_is_no_neighbour_either(memory):
    ana = memory.user("ana")
    await talk(ana, "train", *SEATS)
    made = await ana.brief("which coach was it, the quiet one?", besides="train:0")
    assert "The quiet coach" in made.text
    assert "Where on the train" not in made.text


@pytest.mark.parametrize("url", ["memory://"])
async def test_a_brief_keeps_its_deadline_while_the_store_hangs(memory, monkeypatch):
    ana = memory.user("ana")
    await ana.set("timezone", "Hawaii")
    await talk(ana, "train", *SEATS)
    await memory.settle()
    asked = "which coach was it, the quiet one?"
    assert "Where on the train" in (await ana.brief(asked, deadline_ms=60_000)).text

    async def hanging(*given, **options):
        await asyncio.Event().wait()

    for verb in ("read", "scan"):
        monkeypatch.setattr(InMemoryStore, verb, hanging)
    async with asyncio.timeout(30):
        made = await ana.brief(asked, deadline_ms=2_000)
    assert "The quiet coach" in made.text
    assert "Where on the train" not in made.text
    assert "3 May 2026" in made.text, "days are told in the zone known last"
    with pytest.raises(InvalidInput):
        await ana.brief(asked, deadline_ms="soon")


async def test_a_brief_whose_embedding_is_late_tells_days_in_the_users_zone(memory, monkeypatch):
    ana = memory.user("ana")
    await ana.set("timezone", "Hawaii")
    await talk(ana, "call", ("user", "I water the ferns on the balcony."))
    recaller, loop, zone_read = memory._parts.recaller, asyncio.get_running_loop(), asyncio.Event()
    wait, zone, begin, deadlines = recaller._wait, ana._times.zone, Deadline.__init__, []

    def begun(self, after_ms):
        begin(self, after_ms)
        deadlines.append(self)

    async def read(*given):
        found = await zone(*given)
        zone_read.set()
        return found

    async def late(_, until):
        """The embedding uses up the deadline, however long a machine takes to read the zone beside it."""
        async with asyncio.timeout(30):
            await zone_read.wait()
        for one in deadlines:
            one._at = loop.time()
        return await wait([loop.create_future()], until)

    monkeypatch.setattr(Deadline, "__init__", begun)
    monkeypatch.setattr(ana._times, "zone", read)
    monkeypatch.setattr(recaller, "_wait", late)
    assert "3 May 2026" in (await ana.brief("ferns", deadline_ms=60_000)).text


async def test_a_memory_stands_for_the_turn_it_was_learned_from(memory):
    ana = memory.user("ana")
    call = await talk(ana, "call", ("user", "My dog is called Rex."))
    await call.distil()
    made = await ana.brief("what is my dog called?", budget_tokens=200)
    assert made.text.count("Rex") == 1
    assert made.shown[0].memory is not None


async def test_days_are_told_where_the_users_clocks_stand(memory):
    ana = memory.user("ana")
    await talk(ana, "call", ("user", "I water the ferns on the balcony."))
    assert "4 May 2026" in (await ana.brief("ferns")).text
    assert "3 May 2026" in (await ana.brief("ferns", timezone="Pacific/Honolulu")).text
    await ana.set("timezone", "Hawaii")
    assert "3 May 2026" in (await ana.brief("ferns")).text


@pytest.mark.parametrize("url", ["memory://"])  # what is chosen depends on no store
async def test_the_budget_holds_whatever_is_known(memory):
    ana = memory.user("ana")
    await talk(ana, "call", *[("user", f"Fern number {n} wants water on day {n}.") for n in range(40)])
    for budget in (1, 15, 60, 200):
        made = await ana.brief("which ferns want water?", budget_tokens=budget)
        assert made.tokens <= budget
        assert made.left_out > 0 or budget == 200
    with pytest.raises(InvalidInput, match="budget_tokens"):
        await ana.brief("ferns", budget_tokens=0)


async def test_nothing_known_is_said_and_anothers_memory_is_never_in_it(memory):
    await memory.user("bob").set("dog_name", "Fido")
    ana = memory.user("ana")
    assert (await ana.brief("what is my dog called")).text == NOTHING_KNOWN
    theirs = await memory.user("bob").recall("dog name")
    assert theirs.hits
    with pytest.raises(InvalidInput, match="another user"):
        await ana.pack(theirs)


async def test_what_was_heard_while_speaking_is_packed_like_any_recall(memory):
    ana = memory.user("ana")
    await ana.set("dog_name", "Rex")
    async with ana.listen() as listening:
        listening.partial("dog name")
        made = await ana.pack(await listening.final("dog name"), budget_tokens=100)
    assert '"dog name: Rex"' in made.text


def test_a_list_is_looked_for_further():
    assert hits_for("what books did I read?", 300) == LIST_HITS > hits_for("what is my name?", 300)
