"""A recalled call is paid for once: providers' own clients, against caches that count by their rules."""

from __future__ import annotations

import importlib
import json
import logging
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import Caching

from echoic import Turn
from echoic.adapters.twilio.callers import RECORD

ROOT = str(Path(__file__).parents[2])
LONG = [
    f"course {n}: duck number {n} with plums, juniper and a sauce that takes {n} hours" for n in range(60)
]


@pytest.fixture(params=["claude", "gpt"])
def client(request):
    if request.param == "claude":
        pytest.importorskip("anthropic")
    return request.param


@pytest.fixture
def caching(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    yield importlib.import_module("benchmarks.phone_caching")
    sys.modules.pop("benchmarks.phone_caching", None)


def recall_first(said, given):
    if "menu" in said[-1] and not given:
        return ("recall_conversation", {"key": "dinner menu", "part": 1})
    return f"Answer {len(said)}: the duck was with plums and juniper, and the sauce took its time."


@pytest.fixture
async def call_with(line, caching, client):
    """A phone to an agent behind a real client, and a caller of it who has stored a long call."""
    async with AsyncExitStack() as stack:

        async def start(step=recall_first, **more):
            provider = await stack.enter_async_context(caching.serving(step))
            phone = await line(lambda _said, _given: "unused", recall_tokens=2000, **more)
            phone.phone.agent = Agent(getattr(caching, client)(provider), name="robin")
            opened = await phone.memory().conversation(agent="robin")
            await opened.append(*(Turn(speaker="user", text=text) for text in LONG))
            await opened.store("dinner menu", "A dinner of sixty courses.")
            return phone, provider

        yield start


async def talk(phone, turns=6):
    call = await phone.call()
    await call.say("What was in my dinner menu?")
    for n in range(turns):
        await call.say(f"And what about course {n}?")
    return call


async def test_what_was_recalled_is_read_from_the_cache_in_every_request_after(call_with):
    phone, provider = await call_with()
    told = []
    phone.phone._ended = told.append
    call = await talk(phone)
    await call.hang_up()
    assert len(provider.requests) == 8
    assert "duck number 40" in json.dumps(provider.requests[1]["messages"])
    assert min(provider.shares[2:]) > 0.85, "only what is new is paid for"
    figures = told[0]
    assert figures.cached_tokens > 0
    whole = sum(provider.shares) / len(provider.shares)
    assert abs(figures.cached_share - whole) < 0.2, "as the provider counts"


async def test_the_cached_share_is_in_the_record_of_the_call_the_log_and_the_answer_to_its_end(
    call_with, caplog
):
    caplog.set_level(logging.INFO)
    phone, _ = await call_with()
    told = []
    phone.phone._ended = told.append
    call = await talk(phone, turns=2)
    await call.hang_up()
    share = round(told[0].cached_share, 4)
    assert share > 0.3
    results = (await phone.turns(call)).results
    assert [result.value["cached_share"] for result in results if result.name == RECORD] == [share]
    assert call.figures["cached_share"] == share
    assert f"{share * 100:.0f} % of them cached" in caplog.text


async def test_a_fact_that_is_learned_meanwhile_leaves_the_cache_as_it_is(call_with):
    def step(said, given):
        if "sister" in said[-1] and not given:
            return ("agentMemory", {"operation": "set", "key": "sister", "value": "Nora"})
        return recall_first(said, given)

    phone, provider = await call_with(step)
    call = await talk(phone, turns=2)
    await call.say("Remember that my sister is called Nora.")
    await call.say("And what about course 9?")
    assert min(provider.shares[2:]) > 0.85
    await call.hang_up()


async def test_an_interruption_leaves_what_was_sent_before_in_the_cache(call_with):
    phone, provider = await call_with(channel="relay")
    call = await phone.call()
    await call.say("What was in my dinner menu?")
    await call.say("And course 3?", cut_in_after="the duck")
    await call.say("And course 4?", cut_in_after="with plums")
    await call.say("Thanks.")
    assert "the sauce took" not in json.dumps(provider.requests[-1]["messages"][-4:])
    assert min(provider.shares[2:]) > 0.85
    await call.hang_up()


async def test_two_callers_share_no_more_than_what_is_everybodys(call_with):
    phone, provider = await call_with()
    await (await talk(phone, turns=1)).hang_up()
    before = len(provider.requests)
    other = await phone.call("+15550100002")
    await other.say("Hello.")
    assert "duck" not in json.dumps(provider.requests[before])
    assert "sixty courses" not in json.dumps(provider.requests[before])


async def test_control_without_a_stable_prefix_or_marks_little_is_read(call_with, client, monkeypatch):
    if client == "claude":
        phone, provider = await call_with(prompt_cache=False)
    else:
        from echoic.adapters.twilio.caller_session import CallerSession

        phone, provider = await call_with()
        settled = CallerSession.before
        count = iter(range(100))

        async def unstable(self, said):
            self._call.talk.instructions = f"{next(count)} {self._call.talk.instructions}"
            return await settled(self, said)

        monkeypatch.setattr(CallerSession, "before", unstable)
    call = await talk(phone)
    await call.hang_up()
    assert max(provider.shares[2:]) < 0.7


async def test_requests_of_one_call_are_brought_to_one_cache_by_a_key_that_tells_nothing(call_with, client):
    if client == "claude":
        pytest.skip("Anthropic has no such key")
    phone, provider = await call_with()
    calls = [await talk(phone, turns=1), await talk(phone, turns=1)]
    keys = [request["prompt_cache_key"] for request in provider.requests]
    assert len(keys) == 6
    assert len(set(keys[:3])) == len(set(keys[3:])) == 1
    assert keys[0] != keys[3]
    assert not any(secret in key for key in keys for secret in (calls[0].sid, calls[1].sid, "5550100001"))


@pytest.mark.parametrize("place", ["phone", "agent"])
async def test_an_integrators_own_caching_takes_the_place_of_ours(call_with, client, place):
    if client == "gpt":
        pytest.skip("OpenAI caches by itself; nothing is asked for")
    phone, provider = await call_with(prompt_cache="5m")
    if place == "phone":
        phone.phone.capabilities = (Caching("1h"),)
    else:
        phone.phone.agent = Agent(phone.phone.agent.model, name="robin", capabilities=[Caching("1h")])
    await (await talk(phone, turns=1)).hang_up()
    assert provider.requests[0]["cache_control"]["ttl"] == "1h"
