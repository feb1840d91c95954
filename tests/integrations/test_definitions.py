"""The four tools, without any framework: what they are said to be, and what they do."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

import echoic
import forked
from echoic.integrations.tools import FORMATS, TOOLS, call, exported, refusal


@pytest.fixture
async def memory():
    async with echoic.open("memory://", embedder="lexical") as opened:
        yield opened


def echoic_command(*words):
    return forked.run(
        [sys.executable, "-m", "echoic.cli", *words], check=False, capture_output=True, text=True
    )


@pytest.mark.parametrize("shape", FORMATS)
def test_every_format_is_printed_as_json_with_all_four_tools(shape):
    ran = echoic_command("tools", "--format", shape)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == exported(shape)
    assert [json.dumps(each).count(tool.name) >= 1 for each, tool in zip(exported(shape), TOOLS, strict=True)]


def test_an_unknown_format_is_refused_with_those_there_are():
    ran = echoic_command("tools", "--format", "cobol")
    assert ran.returncode == 64
    assert "openai" in ran.stderr
    with pytest.raises(echoic.InvalidInput, match="openai-strict"):
        exported("cobol")


def test_without_its_packages_the_server_says_which_extra_to_install():
    hidden = (
        "import sys; sys.modules['mcp'] = None; from echoic.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    for words in (["mcp", "--user", "ana"], ["--store", "memory://", "serve", "--mcp", "--port", "0"]):
        ran = forked.run([sys.executable, "-c", hidden, *words], check=False, capture_output=True, text=True)
        assert ran.returncode == 64
        assert "pip install 'echoic[mcp]'" in ran.stderr


def test_a_strict_schema_requires_every_argument_and_has_no_bounds():
    for each in exported("openai-strict"):
        parameters = each["function"]["parameters"]
        assert parameters["required"] == list(parameters["properties"])
        assert parameters["additionalProperties"] is False
        assert not {"minimum", "maximum", "default"} & {
            n for p in parameters["properties"].values() for n in p
        }


async def test_what_a_tool_keeps_another_finds_gets_and_takes_back(memory):
    ana = memory.user("ana")
    kept = await call(ana, "set_memory", {"key": "pet", "value": "a dog called Bruno"})
    assert kept["memory"]["key"] == "pet"
    assert (await ana.get("pet")).visibility == "private"
    found = await call(ana, "search_memory", {"query": "what is my dog called?", "limit": None})
    assert found["outcome"] == "complete"
    assert found["memories"][0]["id"] == kept["memory"]["id"]
    assert (await call(memory.user("bob"), "search_memory", {"query": "dog"}))["memories"] == []
    assert await call(ana, "delete_memory", {"id": kept["memory"]["id"]}) == {"deleted": True}
    assert (await call(ana, "get_memory", {"key": "pet"}))["memory"] is None


async def test_an_answer_has_exactly_the_fields_that_its_schema_names(memory):
    ana = memory.user("ana")
    await (await ana.conversation("c")).append(
        echoic.Turn(speaker="user", text="The gate code is on the fridge.")
    )
    given = {
        "search_memory": {"query": "where is the gate code?"},
        "get_memory": {"key": "pet"},
        "set_memory": {"key": "pet", "value": "a dog"},
        "delete_memory": {"key": "pet"},
    }
    for tool in TOOLS:
        answer = await call(ana, tool.name, given[tool.name])
        assert set(answer) == set(tool.result["properties"])
        json.dumps(answer)


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("drop_memory", {}, "no tool"),
        ("search_memory", {}, "needs 'query'"),
        ("search_memory", {"query": None}, "needs 'query'"),
        ("search_memory", {"query": "x", "limit": True}, "of type integer"),
        ("search_memory", {"query": "x", "limit": 0}, "from 1 to 50"),
        ("get_memory", {"key": "a", "user": "bob"}, "takes no 'user'"),
        ("set_memory", {"key": "a", "value": ["x"]}, "of type string"),
        ("set_memory", [1], "JSON object"),
        ("delete_memory", {}, "either a key or an id"),
        ("delete_memory", {"key": "a", "id": "b"}, "either a key or an id"),
    ],
)
async def test_a_call_that_does_not_fit_is_refused_with_the_way_out(memory, name, arguments, why):
    with pytest.raises(echoic.InvalidInput, match=why) as refused:
        await call(memory.user("ana"), name, arguments)
    assert refusal(refused.value) == str(refused.value)


def test_a_model_is_not_told_where_a_store_is():
    told = refusal(echoic.StoreUnavailable("/var/lib/somewhere cannot be written"))
    assert "somewhere" not in told
    assert "does not mean that nothing is known" in told


async def test_hooks_are_told_what_a_model_asked_for_and_what_came_of_it(memory):
    seen = []
    memory.on_tool_use(seen.append)
    ana = memory.user("ana")
    await call(ana, "set_memory", {"key": "pin", "value": "my PIN is 4711"})
    with pytest.raises(echoic.InvalidInput):
        await call(ana, "delete_memory", {})
    while len(seen) < 2:
        await asyncio.sleep(0)
    assert [(used.operation, used.outcome) for used in seen] == [("set", "done"), ("delete", "failed")]
    assert "4711" not in str(seen[0].value)


async def test_a_hanging_embedder_delays_a_search_by_its_deadline_at_most():
    class Hanging:
        spec, semantic = echoic.EmbeddingSpec("hanging", 8), True

        async def open(self):
            pass

        async def aclose(self):
            pass

        async def embed(self, texts, kind):
            await asyncio.Event().wait()

    async with echoic.open("memory://", embedder=Hanging()) as memory:
        ana = memory.user("ana")
        await ana.set("pet", "a dog called Bruno")
        found = await asyncio.wait_for(call(ana, "search_memory", {"query": "dog Bruno"}), 20)
        assert found["outcome"] != "complete"
        assert "Bruno" in found["memories"][0]["text"]


def documented(heading):
    page = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text()
    names = {}
    exec(re.search(r"```python\n(.*?)```", page.partition(heading)[2], re.DOTALL)[1], names)
    return names


async def test_the_documented_way_to_carry_out_calls_answers_or_says_why_not(memory):
    carry_out = documented("### Tools for any other model")["carry_out"]
    kept = await carry_out(memory.user("ana"), "set_memory", {"key": "pet", "value": "a dog"})
    assert kept["memory"]["text"] == "a dog"
    assert "needs 'key'" in (await carry_out(memory.user("ana"), "get_memory", {}))["error"]


async def test_the_documented_items_are_found(memory):
    found = await documented("## Values of your own")["notes_of"](memory.user("ana"))
    assert found == ("complete", [("trip", {"to": "Lisbon", "days": 4})])


def test_every_check_that_the_documents_name_is_there():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "integrations.md").read_text()
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", page)
    assert len(named) > 50
    sources = [(path.name, path.read_text()) for path in (root / "tests").rglob("test_*.py")]
    there = {(file, name) for file, text in sources for name in re.findall(r"def (test_\w+)\(", text)}
    assert set(named) - there == set()
