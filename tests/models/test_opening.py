"""`echoic.open(model=…)`: which models are taken, when what is missing is said, and that both uses work."""

from __future__ import annotations

import subprocess
import sys

import pytest

import echoic
from echoic.types import Turn

HOURS = ("store_hours", "The store is open Monday to Friday, nine to five.")


async def test_a_ready_made_model_forms_memories_and_judges_what_may_be_global(url, model, provider, reply):
    def answer(request):
        if "Who may see" in str(request["tools"]):
            return reply(arguments={"who": "everyone", "sure": True})
        lamp = {"action": "add", "turns": ["t1"], "sentence": "The user collects old lamps."}
        return reply(arguments={"read_up_to": "t1", "changes": [lamp]})

    provider.answer(answer)
    async with echoic.open(url, embedder="lexical", model=model, global_writes="auto") as memory:
        ana = memory.user("ana")
        await ana.set(*HOURS)
        call = await ana.conversation("c")
        await call.append(Turn(speaker="user", text="Old lamps are what I collect", id="1"))
        await call.complete()
        await memory.settle(20)
        assert [m.text for m in await ana.facts() if m.source] == ["The user collects old lamps."]
        assert (await memory.user("bob").get(HOURS[0])).text == HOURS[1]
        assert (await call.info()).distilled


async def test_a_model_by_name_uses_its_providers_usual_settings(url, provider, reply, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    provider.answer(reply(arguments={"read_up_to": "t1", "changes": []}))
    async with echoic.open(url, embedder="lexical", model="openai-chat:gpt-test") as memory:
        call = await memory.user("ana").conversation("c")
        await call.append(Turn(speaker="user", text="Hello", id="1"))
        await call.distil()
    assert [request["model"] for request in provider.requests] == ["gpt-test"]


async def test_a_missing_key_is_said_when_it_is_opened_and_the_store_is_let_go(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    url = f"sqlite:///{tmp_path}/e.db"
    with pytest.raises(echoic.InvalidInput, match="OPENAI_API_KEY"):
        await echoic.open(url, embedder="lexical", model="openai:gpt-test").open()
    async with echoic.open(url, embedder="lexical") as memory:
        assert await memory.users() == []


@pytest.mark.parametrize("bad", ["psychic:x", "gpt-5", "openai:", "", 7])
def test_what_is_no_model_is_refused_at_once(bad):
    with pytest.raises(echoic.InvalidInput):
        echoic.open("memory://", embedder="lexical", model=bad)


def test_without_a_model_nothing_of_one_is_imported():
    code = (
        "import sys, asyncio, echoic\n"
        "async def main():\n"
        "    async with echoic.open('memory://', embedder='lexical') as memory:\n"
        "        await memory.user('ana').set('a', 'b')\n"
        "asyncio.run(main())\n"
        "print([m for m in ('pydantic_ai', 'pydantic', 'openai', 'echoic.models') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
