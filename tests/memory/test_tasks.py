"""The task history: what was worked on, for whom, by whom, how it stands, and what came out."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from echoic import InvalidInput, Turn
from echoic.embedding import embedder_from
from echoic.memory.service import MemoryService
from echoic.stores import store_from


@pytest.fixture
async def history(url, later):
    """Conversations of two users, begun a minute after one another; which minute is in the name."""
    minute = 0
    service = MemoryService(store_from(url), embedder_from("lexical"), clock=lambda: later(minute))
    async with service:
        for user, agent in (("ana", "films"), ("ana", "trips"), ("bob", "films"), ("ana", "films")):
            await service.user(user).conversation(f"task-{minute}", agent=agent)
            minute += 1
        yield service


async def test_they_are_found_by_agent_status_and_time(history, later):
    ana = history.user("ana")
    await (await ana.conversation("task-0")).complete()
    await ana.fail("task-1")

    async def found(**chosen):
        return [c.id for c in await ana.conversations(**chosen)]

    assert await found() == ["task-0", "task-1", "task-3"]
    assert await found(agent="films") == ["task-0", "task-3"]
    assert await found(status="failed") == ["task-1"]
    assert await found(status="active") == ["task-3"]
    assert await found(since=later(1)) == ["task-1", "task-3"]
    assert await found(since=later(1), until=later(3)) == ["task-1"]
    assert await found(agent="films", since=later(1)) == ["task-3"]
    assert await found(agent="nobody") == []


async def test_operators_look_through_those_of_all_users_and_of_no_other_deployment(history, later):
    await history.user("ana", deployment="other").conversation("task-9", agent="films")

    async def found(**chosen):
        return [(user, c.id) for user, c in await history.conversations(**chosen)]

    assert sorted(await found()) == [
        ("ana", "task-0"),
        ("ana", "task-1"),
        ("ana", "task-3"),
        ("bob", "task-2"),
    ]
    assert sorted(await found(agent="films", until=later(3))) == [("ana", "task-0"), ("bob", "task-2")]
    assert await found(user="bob") == [("bob", "task-2")]
    assert await found(deployment="other") == [("ana", "task-9")]


@pytest.mark.parametrize(
    ("bad", "names"),
    [
        ({"status": "great"}, "unknown status 'great'"),
        ({"since": datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)}, "time zone"),
        ({"until": "yesterday"}, "must be a datetime"),
        ({"agent": ""}, "agent is empty"),
    ],
)
async def test_a_question_that_means_nothing_is_refused(memory, bad, names):
    with pytest.raises(InvalidInput, match=names):
        await memory.user("ana").conversations(**bad)
    with pytest.raises(InvalidInput, match=names):
        await memory.conversations(**bad)


async def test_a_task_holds_all_that_was_said_and_what_came_out(memory):
    ana = memory.user("ana")
    call = await ana.conversation("trip", agent="trips")
    await call.append(Turn(speaker="user", text="Find me a train"), Turn(speaker="agent", text="At nine."))
    first = await ana.add_result(
        "trip", "search_trains", {"found": [1, 2], "note": "naïve “quote” \U0001f680"}
    )
    await ana.add_result("trip", "book", None)
    task = await ana.task("trip")
    assert task.user == "ana"
    assert task.conversation.agent == "trips"
    assert [turn.text for turn in task.turns] == ["Find me a train", "At nine."]
    assert [(r.name, r.value) for r in task.results] == [("search_trains", first.value), ("book", None)]
    assert await ana.task("nothing") is None
    assert await memory.user("bob").task("trip") is None


async def test_the_same_result_again_changes_nothing(memory):
    ana = memory.user("ana")
    await ana.conversation("trip")
    first = await ana.add_result("trip", "search", {"b": 1, "a": [2]})
    assert await ana.add_result("trip", "search", {"a": [2], "b": 1}) == first
    assert await ana.add_result("trip", "search", "other", id=first.id) == first
    await asyncio.gather(*(ana.add_result("trip", "count", n % 4) for n in range(16)))
    values = [r.value for r in (await ana.task("trip")).results if r.name == "count"]
    assert sorted(values) == [0, 1, 2, 3]


async def test_the_name_of_a_step_stays_where_it_looks_like_a_secret(memory):
    ana = memory.user("ana")
    await ana.conversation("trip")
    keys = [f"{letter}B3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zC" for letter in "ab"]
    names = ["15550100088", "4242424242424242", *keys]
    for name in names:
        await ana.add_result("trip", name, "done", arguments={"told": f"my CPF is {name}"})
    results = (await ana.task("trip")).results
    assert [result.name for result in results] == names
    assert not [result for result in results if result.name in str(result.arguments)]
    bob = memory.user("bob")
    await bob.restore(await ana.export())
    assert (await bob.task("trip")).results == results


async def test_a_result_under_the_id_of_another_tasks_is_refused_and_not_swallowed(memory):
    ana = memory.user("ana")
    for name in ("trip", "film"):
        await ana.conversation(name)
    await ana.add_result("trip", "search", "trains", id="1")
    with pytest.raises(InvalidInput, match="'1' is taken in conversation 'trip'"):
        await ana.add_result("film", "search", "Heat", id="1")


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (object(), "is not JSON"),
        (float("nan"), "is not JSON"),
        ("x" * 40000, "40002 bytes"),
        ({"a": ["b\0"]}, "NUL"),
        ("half \ud800", "is not JSON"),
    ],
)
async def test_what_is_no_json_is_refused(memory, value, names):
    ana = memory.user("ana")
    await ana.conversation("trip")
    with pytest.raises(InvalidInput, match=names):
        await ana.add_result("trip", "search", value)
    assert (await ana.task("trip")).results == ()


async def test_json_nested_without_end_is_refused_and_not_a_crash(memory):
    ana = memory.user("ana")
    await ana.conversation("trip")
    deep = 600
    value = json.loads("[" * deep + "]" * deep)
    with pytest.raises(InvalidInput, match="nested deeper than 100 levels"):
        await ana.add_result("trip", "search", value)
    with pytest.raises(InvalidInput, match="nested deeper than 100 levels"):
        await ana.items("notes").set("deep", {"in": value})
    with pytest.raises(InvalidInput, match="nested deeper than 100 levels"):
        await ana.items("notes").append([value])
    flat = json.loads("[" * 99 + "]" * 99)
    assert (await ana.add_result("trip", "search", flat)).value == flat
    text = "[" * 5000 + "]" * 5000
    assert (await ana.set("brackets", text)).text == text


async def test_an_old_result_makes_no_conversation_old(history, later):
    ana = history.user("ana")
    before = await ana.find_conversation("task-0")
    await ana.add_result("task-0", "search", {"found": 3}, at=later(0) - timedelta(days=400))
    assert (await ana.find_conversation("task-0")).updated_at == before.updated_at
    await ana.add_result("task-0", "search", {"found": 4}, at=later(60))
    assert (await ana.find_conversation("task-0")).updated_at == later(60)


async def test_what_a_result_was_told_at_most_is_imported(memory):
    ana, bob = memory.user("ana"), memory.user("bob")
    await ana.conversation("trip")
    await ana.at("attested").add_result("trip", "search", {"found": 3})
    exported = await ana.export()
    await bob.restore(exported)
    there = (await bob.export())["conversations"][0]["results"]
    assert there == exported["conversations"][0]["results"]
    assert "told" in there[0]


async def test_a_result_brings_no_forgotten_conversation_back(memory):
    ana = memory.user("ana")
    await ana.conversation("trip")
    await ana.add_result("trip", "search", "kept until forgotten")
    receipt = await ana.forget(conversation="trip")
    assert (receipt.conversations, receipt.other, receipt.verified) == (1, 1, True)
    with pytest.raises(InvalidInput, match="no conversation 'trip'"):
        await ana.add_result("trip", "search", "too late")
    with pytest.raises(InvalidInput, match="no conversation 'trip'"):
        await ana.fail("trip")
    await ana.conversation("trip")
    assert (await ana.task("trip")).results == ()


async def test_a_result_does_not_make_turns_be_learned_twice(memory):
    ana = memory.user("ana")
    call = await ana.conversation("trip")
    await call.append(Turn(speaker="user", text="My name is Ana"))
    await call.distil()
    await ana.add_result("trip", "search", 1)
    await ana.fail("trip")
    assert (await call.distil()).turns == 0
    assert len(await ana.history("user_name")) == 1


async def test_results_are_searched_and_learned_from_by_nobody(memory):
    ana = memory.user("ana")
    call = await ana.conversation("trip")
    await ana.add_result("trip", "search", "My name is Zanzibar")
    await call.distil()
    assert await ana.query("Zanzibar") == []
    assert await ana.facts() == []


async def test_an_export_takes_them_along_and_older_exports_are_read(memory):
    ana, eva = memory.user("ana"), memory.user("eva")
    call = await ana.conversation("trip")
    await call.append(Turn(speaker="user", text="hello", said_at=datetime(2026, 1, 1, tzinfo=UTC)))
    await ana.add_result("trip", "search", {"found": 3})
    exported = json.loads(json.dumps(await ana.export()))
    assert await eva.restore(exported) == 3
    assert (await eva.task("trip")).results == (await ana.task("trip")).results
    assert await eva.restore(exported) == 0
    del exported["directives"]
    for conversation in exported["conversations"]:
        del conversation["results"]
    assert await memory.user("zoe").restore(exported) == 2
