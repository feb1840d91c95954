"""Telephone calls that were really made, in the Calls view of a real browser."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import expect
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

from adapters.conftest import lines
from echoic.adapters.twilio import Pace
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Calls, Says, Script, ToolCall, UserSays
from server.browsing import signed_in, visiting
from server.conftest import OPERATOR_KEY, serving, settings_of

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

BOAT = "the boat in the harbour is called Nellie"
ASKED = "what is the name of my boat in the harbour"
TRAIN = "your train leaves at nine from platform four and the last word is zanzibar"


async def by_media_stream(line):
    """A caller whose audio goes to a voice model asks, is answered with a tool's help, and cuts in."""
    call = None

    async def has_heard_some(session):
        await session.until(lambda: len(call.stream.played) > heard + 4_000, "half a second played")

    async def now_it_speaks(_session):
        nonlocal heard
        heard = len(call.stream.played)

    heard = 0
    script = Script(
        UserSays(ASKED, after_ms=300),
        Calls(ToolCall("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"})),
        Says("she is called nellie"),
        UserSays("when is my train", after_ms=900),
        now_it_speaks,
        Says(TRAIN, pace=0.4).at(2500, has_heard_some, UserSays("thank you", after_ms=0)),
        open_ended=True,
    )
    async with OpenAIRealtimeServer(script) as provider:
        phone = await line(lambda _said, _given: "unused", channel="media", pace=Pace())
        client = OpenAIProvider(base_url=provider.base_url, api_key="none")
        phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=client)
        await phone.memory().set("boat", BOAT)
        call = await phone.call()
        async with asyncio.timeout(60):
            while not provider.sessions or not provider.sessions[0].script_over:
                await asyncio.sleep(0.02)
        await call.hang_up()
        await phone.phone.known(call.sid).hang_up()
    return phone


async def by_relay(line, service):
    """A caller whose words go to a language model asks, and cuts in."""
    number = "+15550100002"
    phone = await line(
        lambda said, _given: TRAIN if "train" in said else "Fine.", channel="relay", service=service
    )
    await phone.memory(number).set("boat", BOAT)
    call = await phone.call(number)
    await call.say(f"{ASKED}?")
    await call.say("When is my train?", cut_in_after="platform four")
    await call.say("Thank you.")
    await call.hang_up()


async def test_a_telephone_call_is_shown_as_it_sounded_and_with_what_its_model_was_given(browser, tmp_path):
    async with lines(tmp_path) as line:
        phone = await by_media_stream(line)
        await by_relay(line, phone.service)
        async with (
            serving(phone.service, settings_of()) as server,
            visiting(
                browser, server, **await signed_in(server, OPERATOR_KEY), at="#/calls?channel=phone"
            ) as page,
        ):
            rows = page.locator("a.row")
            await expect(rows).to_have_count(2)
            await expect(rows.filter(has_text="Telephone")).to_have_count(2)
            await rows.nth(1).click()  # the media stream: the older one
            await expect(page.locator(".call-head")).to_contain_text("Telephone · robin · gpt-realtime")
            await expect(page.get_by_text("What the model was given at the beginning")).to_be_visible()
            asked = page.locator(".exchange", has_text=ASKED)
            await expect(asked.locator(".hit", has_text="Nellie")).to_contain_text("given before")
            stages = await asked.locator(".stage-name").all_inner_texts()
            assert stages[:4] == ["caller speaks", "transcript", "recall", "tool agentMemory"]
            cut = page.locator(".exchange", has_text="when is my train")
            said = await cut.locator(".turn.agent").inner_text()
            assert re.search(r"Agent, at 0:0[1-9], cut off after \d\.\d s of \d\.\d s", said)
            assert "zanzibar" not in said
            await expect(cut.locator(".waterfall li", has_text="caller cuts in")).to_be_visible()
            await page.reload()
            await expect(page.locator(".exchange")).to_have_count(3)

            await page.go_back()
            await rows.nth(0).click()  # the relay
            await expect(page.locator(".call-head")).to_contain_text("Telephone · robin")
            await expect(page.locator(".exchange").nth(0).locator(".stage-name")).to_have_text(
                ["kept, read", "recall", "model, first word", "answer, whole"]
            )
            cut = page.locator(".exchange", has_text="When is my train?")
            await expect(cut.locator(".waterfall li", has_text="caller cuts in")).to_be_visible()
            assert "zanzibar" not in await page.locator("main").inner_text()
            page.seen.assert_nothing()
