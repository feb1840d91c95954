"""The telephone's agent ends a call by itself, and never before its last words were heard."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai.models.function import DeltaToolCall
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

from adapters.test_media import heard_words
from echoic.adapters.twilio import Pace
from echoic.adapters.twilio.settings import KNOWN
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Calls, Reply, Says, Script, ToolCall, UserSays
from echoic_loopback.twilio import CallFailed

HANG_UP = ("hang_up", {})
FORGET = ("remember_call", {"remember": False})
SLOW = Pace(characters_per_s=0.01)
"""So slow that only a report of the line, and no reckoning, can say that all was played."""


def leaves(said, given):
    """Hangs up at "bye": words first, the tool, words again."""
    if "bye" not in said:
        return "I am here."
    return "It was nice talking to you. Goodbye, Ana." if given else ("Very well.", [HANG_UP])


async def ended(phone, call):
    """Once the server knows that `call` is over."""
    async with asyncio.timeout(30):
        while not phone.phone.known(call.sid).over:
            await asyncio.sleep(0.01)


async def test_over_webhooks_the_last_words_are_said_and_then_the_line_hangs_up(line):
    phone = await line(leaves)
    call = await phone.call()
    assert (await call.say("Are you there?")).strip().endswith("I am here.")
    assert not call.over
    heard = await call.say("bye")
    assert " ".join(heard.split()).endswith("Very well. It was nice talking to you. Goodbye, Ana.")
    assert call.over
    last = call.webhooks[-1].text
    assert last.index("Goodbye, Ana.") < last.index("<Hangup")
    assert "<Gather" not in last
    await call.hang_up()
    turns = (await phone.turns(call)).turns
    assert turns[-1].heard_text.endswith("Goodbye, Ana."), "the last words are kept, as heard"


def silent_after(words):
    """A model that says `words` with the tool, and nothing when that was answered."""

    async def stream(messages, _info):
        if any(part.part_kind == "tool-return" for message in messages for part in message.parts):
            yield ""
            return
        if words:
            yield words
        yield {0: DeltaToolCall(name="hang_up", json_args="{}")}

    return stream


@pytest.mark.parametrize("language", sorted(KNOWN))
async def test_an_agent_that_hangs_up_without_a_word_still_says_goodbye(line, language):
    phone = await line(leaves, language=language)
    phone.phone.agent.model.stream_function = silent_after("")
    call = await phone.call()
    assert (await call.say("bye")).strip().endswith(KNOWN[language].farewell)
    assert call.over


async def test_an_agent_that_said_goodbye_before_it_hangs_up_need_not_say_it_again(line):
    phone = await line(leaves)
    phone.phone.agent.model.stream_function = silent_after("Goodbye, Ana. ")
    call = await phone.call()
    assert (await call.say("bye")).strip().endswith("Goodbye, Ana.")
    assert str(call.said).count("Goodbye") == 1
    assert call.over


async def test_over_a_relay_the_line_ends_once_it_reports_that_the_last_words_were_played(line):
    phone = await line(leaves, channel="relay", pace=SLOW)
    call = await phone.call()
    heard = await call.say("bye")
    assert heard.endswith("Goodbye, Ana.")
    assert not phone.phone.known(call.sid).over
    await call.send({"type": "info", "name": "tokensPlayed", "value": heard[: len(heard) // 2]})
    await call.send({"type": "info", "name": "tokensPlayed", "value": heard[len(heard) // 2 :]})
    assert await call.hung_up() == ""
    assert call.over
    assert "<Hangup" in call.webhooks[-1].text
    turns = (await phone.turns(call)).turns
    assert turns[-1].heard_text.endswith("Goodbye, Ana.")
    assert (await phone.turns(call)).conversation.status == "completed"


async def test_a_simulated_caller_who_talks_on_finds_that_the_call_is_over(line):
    phone = await line(leaves, channel="relay")
    call = await phone.call(reports=True)
    assert (await call.say("bye")).endswith("Goodbye, Ana.")
    await ended(phone, call)
    assert await call.say("hello?") == ""
    assert call.over


async def test_a_line_that_reports_nothing_is_given_the_time_that_speech_takes(line):
    phone = await line(leaves, channel="relay", pace=Pace(characters_per_s=200))
    call = await phone.call()
    await call.say("bye")
    await call.hung_up()
    assert call.over


@pytest.mark.parametrize(
    "more",
    [
        {"type": "prompt", "voicePrompt": "wait, one more", "lang": "en-US", "last": False},
        {"type": "interrupt", "utteranceUntilInterrupt": "Very well."},
        {"type": "dtmf", "digit": "1"},
    ],
    ids=["begins to speak", "cuts in", "presses a key"],
)
async def test_a_caller_who_says_more_before_the_end_is_not_hung_up_on(line, more):
    phone = await line(leaves, channel="relay", pace=SLOW)
    call = await phone.call()
    heard = await call.say("bye")
    await call.send(more)
    assert (await call.say("Are you there?")).strip() == "I am here."
    await call.send({"type": "info", "name": "tokensPlayed", "value": heard})
    assert (await call.say("Are you still there?")).strip() == "I am here."
    assert not phone.phone.known(call.sid).over


async def test_what_was_said_while_the_agent_takes_its_leave_is_answered_first(line):
    thinking = asyncio.Event()

    def answer(said, given):
        if "bye" in said:
            return "Goodbye." if given else (thinking, [HANG_UP])
        return "Of course."

    phone = await line(answer, channel="relay")
    call = await phone.call()
    await call.send({"type": "prompt", "voicePrompt": "bye", "lang": "en-US", "last": True})
    await call.send({"type": "prompt", "voicePrompt": "no, wait", "lang": "en-US", "last": True})
    async with asyncio.timeout(30):
        while len(phone.phone.known(call.sid)._unanswered) < 1 or not phone.script.requests:
            await asyncio.sleep(0.01)
    thinking.set()
    assert (await call._reply(0.0, None)).endswith("Goodbye.")
    assert (await call._reply(0.0, None)) == "Of course."
    assert not phone.phone.known(call.sid).over


async def test_a_model_that_fails_after_it_hung_up_does_not_ask_the_caller_to_say_that_again(line):
    def answer(_said, given):
        if given:
            raise RuntimeError("the provider is away")
        return [HANG_UP]

    phone = await line(answer)
    call = await phone.call()
    assert (await call.say("bye")).strip().endswith("Goodbye!")
    assert "say that again" not in str(call.said)
    assert call.over


async def test_a_model_that_fails_before_it_hung_up_keeps_the_line(line):
    def answer(said, _given):
        if "bye" in said:
            raise RuntimeError("the provider is away")
        return "Fine."

    phone = await line(answer)
    call = await phone.call()
    assert "something went wrong" in await call.say("bye")
    assert not call.over
    assert (await call.say("Hello?")).strip().endswith("Fine.")


@pytest.mark.parametrize("channel", ["gather", "relay"])
async def test_asked_to_forget_the_call_the_agent_says_goodbye_and_nothing_of_it_is_left(line, channel):
    told = []

    def answer(said, given):
        if "forget" not in said:
            return "Noted."
        if len(given) < 1:
            return [FORGET]
        told.append(given[0])
        return [HANG_UP] if len(given) < 2 else given[0]["say"]

    phone = await line(answer, channel=channel)
    call = await phone.call()
    await call.say("My sister is called Zuleika.")
    heard = await call.say("Please forget this call.")
    assert "Goodbye" in heard
    assert "hang_up" in told[0]["note"], "the model is told how the call ends"
    if channel == "relay":
        await call.hung_up()
    assert call.over
    await call.hang_up()
    await ended(phone, call)
    assert "Zuleika" not in str(await phone.memory().export())
    assert await phone.turns(call) is None


@pytest.mark.parametrize("together", [True, False], ids=["words with the tool", "words after the tool"])
@pytest.mark.parametrize("pace", [0.2, 1.0], ids=["made faster than it is played", "as it is played"])
async def test_over_a_media_stream_the_last_words_are_played_to_their_end(line, pace, together):
    last = "it was nice talking to you goodbye and take care of zanzibar"
    tool = Calls(ToolCall("hang_up", {}))
    words = Says(last, pace=pace)
    steps = [Reply(words, tool), Says("bye")] if together else [tool, words]
    async with OpenAIRealtimeServer(Script(UserSays("bye", after_ms=200), *steps, open_ended=True)) as server:
        phone = await line(lambda _said, _given: "unused", channel="media", pace=Pace())
        provider = OpenAIProvider(base_url=server.base_url, api_key="none")
        phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
        call = await phone.call()
        async with asyncio.timeout(60):
            await call.hung_up()
        assert call.over
        assert heard_words(call.stream, last) == last
        turns = (await phone.turns(call)).turns
        assert last in [turn.heard_text for turn in turns]
        assert (await phone.turns(call)).conversation.status == "completed"


async def test_a_caller_who_cuts_in_on_the_last_words_of_a_voice_model_is_served_on(line):
    last = "goodbye then and thank you for your call today it was very nice"
    steps = [
        UserSays("bye", after_ms=200),
        Calls(ToolCall("hang_up", {})),
        Says(last).at(700, UserSays("wait", after_ms=0)),
        Says("yes"),
    ]
    async with OpenAIRealtimeServer(Script(*steps, open_ended=True)) as server:
        phone = await line(lambda _said, _given: "unused", channel="media", pace=Pace())
        provider = OpenAIProvider(base_url=server.base_url, api_key="none")
        phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
        call = await phone.call()
        async with asyncio.timeout(60):
            while not (
                server.sessions
                and server.sessions[0].script_over
                and "yes" in heard_words(call.stream, "yes")
            ):
                await asyncio.sleep(0.05)
        assert not phone.phone.known(call.sid).over
        assert not call.stream.ended
        await call.hang_up()


async def test_a_caller_that_waits_for_a_hang_up_that_does_not_come_is_told(line):
    phone = await line(leaves)
    call = await phone.call()
    with pytest.raises(CallFailed, match="listening"):
        await call.hung_up()
