"""What a model does with the tools of memory is told to hooks, whatever becomes of it, and to nobody else."""

from __future__ import annotations

import asyncio
import json

import pytest

from echoic import InvalidInput, StoreUnavailable
from echoic.capability.tools import WRITING, MemoryTools
from echoic.memory.hooks import ToolUsed
from echoic.server.routes.memories import Used


@pytest.fixture
def used(memory):
    told = []
    memory.on_tool_use(told.append)
    return told


def tools_of(user):
    async def changed():
        pass

    return MemoryTools(user, lambda: "c", lambda: "films", timeout_s=20, changed=changed)


async def test_each_use_is_told_with_what_came_of_it(memory, used):
    ana = memory.user("ana")
    tools = tools_of(ana)
    await tools.agent_memory("set", key="drink", value="green tea")
    await tools.agent_memory("get", key="drink")
    await tools.agent_memory("query", query="tea")
    await tools.agent_memory("delete", key="drink")
    await tools.agent_memory("delete", key="drink")
    await memory.settle()
    assert [(use.operation, use.outcome, use.conversation) for use in used] == [
        (operation, "done", "c") for operation in ("set", "get", "query", "delete", "delete")
    ]
    assert {use.scope for use in used} == {ana.scope}
    kept, got, found, gone, nothing = used
    assert (kept.key, kept.value, kept.memory.visibility) == ("drink", "green tea", "private")
    assert got.memory.text == "green tea"
    assert [hit.text for hit in found.recall.hits] == ["green tea"]
    assert found.recall.pipeline
    assert (gone.deleted, nothing.deleted) == (True, False)


async def test_the_answer_whether_a_conversation_may_be_kept_is_told(memory, used):
    ana = memory.user("ana")
    await ana.conversation("c")
    await tools_of(ana).remember_conversation(True)
    await memory.settle()
    assert [(use.tool, use.value, use.outcome) for use in used] == [("remember_conversation", "true", "done")]


async def test_a_write_that_fails_after_the_answer_is_logged_without_content(memory, monkeypatch, caplog):
    async def late(*_args, **_options):
        await asyncio.sleep(0.1)
        raise StoreUnavailable("green tea")

    async def changed():
        pass

    ana = memory.user("ana")
    monkeypatch.setattr(type(ana), "set", late)
    tools = MemoryTools(ana, lambda: "c", lambda: "films", timeout_s=0.01, changed=changed)
    answer = await tools.agent_memory("set", key="drink", value="green tea")
    assert answer["say"] == WRITING
    await asyncio.sleep(0.3)
    assert "a late write of a memory tool failed: StoreUnavailable" in caplog.text
    assert "green tea" not in caplog.text


async def test_what_could_not_be_done_is_told_as_that(memory, used):
    tools = tools_of(memory.user("ana"))
    answer = await tools.agent_memory("set", key="", value="green tea")
    assert answer["success"] is False
    answer = await tools.recall_conversation("no such call")
    assert answer["result"] is None
    await memory.settle()
    assert [(use.operation, use.outcome) for use in used] == [
        ("set", "failed"),
        ("recall_conversation", "done"),
    ]


@pytest.mark.parametrize(
    ("asked", "secret"),
    [
        ({"operation": "set", "key": "pin", "value": "4831"}, "4831"),
        ({"operation": "set", "key": "note", "value": "my password is hunter2!x"}, "hunter2!x"),
        ({"operation": "query", "query": "is 4111 1111 1111 1111 my card number"}, "4111 1111"),
        ({"operation": "get", "key": "4111 1111 1111 1111"}, "4111 1111"),
        ({"operation": "set", "key": "", "value": "my PIN is 4831"}, "4831"),
    ],
)
async def test_a_secret_in_what_was_asked_for_stands_as_a_marker(memory, used, asked, secret):
    await tools_of(memory.user("ana")).agent_memory(**asked)
    await memory.settle()
    assert len(used) == 1
    assert secret not in repr(used[0])


async def test_nobody_tells_of_another_users_memory(memory, used):
    use = ToolUsed(scope=memory.user("eve").scope, tool="t", operation="t", duration_ms=1.0)
    with pytest.raises(InvalidInput):
        memory.user("ana").tell_tool_use(use)
    assert used == []


async def test_what_a_model_made_up_can_be_sent_whatever_it_is(memory, used):
    await tools_of(memory.user("ana")).agent_memory("query", query="\ud83d tea " * 5000)
    await memory.settle()
    sent = json.loads(Used.of(used[0]).model_dump_json(by_alias=True))
    assert sent["outcome"] == "failed"
    assert len(sent["query"]) < 2100
