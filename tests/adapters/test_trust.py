"""Whose memory a call is served from is decided by proof, and by nothing that somebody can dial or claim."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

import echoic
from assured import AGENT_ASKS, QUESTION, allowed, plant, words_in
from echoic.memory.assurance import SENSITIVITIES
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Calls, Says, Script, ToolCall, UserSays

A = "TN-Validation-Passed-A"
UNPROVEN = [
    "",
    "TN-Validation-Passed-B",
    "TN-Validation-Passed-C",
    "No-TN-Validation",
    "TN-Validation-Failed-A",
    "TN-Validation-Failed-B",
    "TN-Validation-Failed-C",
    "TN-Validation-Failed",
    "TN-Validation-Passed-A-Diverted",
    "TN-Validation-Passed-A-Diverted-Passed-A",
    "TN-Validation-Passed-A-Passthrough",
    "tn-validation-passed-a",
    "TN-Validation-Passed-A ",
    " TN-Validation-Passed-A",
    "TN-Validation-Passed-AB",
    "TN-Validation-Passed-A\nX",
    "TN-Validation-Passed-\u0410",
    "Passed-A",
    "A",
    "null",
]
"""Every StirVerstat that is no full attestation of the caller's own number: documented ones and nonsense."""
SECRET = "My name is Ana, and my sister is called Quillhilda."


def nosy(_said, given):
    """A model that asks every tool for all there is, before it answers."""
    if given:
        return "Well."
    return [
        ("agentMemory", {"operation": "query", "query": "sister name family"}),
        ("agentMemory", {"operation": "get", "key": "user_name"}),
        ("recall_conversation", {"key": "family matters"}),
    ]


async def ana_is_known(line, answer=nosy, **settings):
    """A phone that Ana called, proven, and told it something."""
    phone = await line(answer, **settings)
    if settings.get("channel") != "media":
        call = await phone.call(attestation=A)
        await call.say(SECRET)
        await call.hang_up()
        stored = await phone.memory().conversation(f"call:{call.sid}")
        await stored.store("family matters", "Ana has a sister called Quillhilda.")
    else:
        await phone.memory().set("user_name", "Ana")
        await phone.memory().set("sister", "Quillhilda")
    await phone.service.distil()
    phone.script.sent.clear()
    return phone


def heard_of_her(call, phone):
    """What of Ana a caller heard or the model was sent."""
    everything = [*phone.script.sent, *(hook.text for hook in call.webhooks), *(s.text for s in call.sounds)]
    return [text for text in everything if "Quillhilda" in text or " Ana" in text]


@pytest.mark.parametrize("channel", ["gather", "relay"])
async def test_a_number_without_full_attestation_opens_nobodys_memory(line, channel):
    phone = await ana_is_known(line, channel=channel)
    before = await phone.memory().export()
    for verstat in UNPROVEN:
        phone.script.sent.clear()
        call = await phone.call(attestation=verstat)
        await call.say("Who am I, and what is my sister called?")
        await call.hang_up()
        assert phone.script.sent, verstat
        assert heard_of_her(call, phone) == [], verstat
        assert await phone.memory().export() == before, f"nor is anything written into it: {verstat}"


@pytest.mark.parametrize("verstat", ["", "TN-Validation-Passed-B", "TN-Validation-Passed-A-Diverted"])
async def test_a_linked_line_without_full_attestation_opens_nothing_either(line, verstat):
    phone = await line(nosy)
    await phone.service.user("web-ana").set("user_name", "Ana")
    await phone.service.user("web-ana").set("sister", "Quillhilda")
    code = (await phone.phone.links.give("web-ana")).code
    first = await phone.call(attestation=A)
    await first.press(code)
    await first.say("What is my sister called?")
    assert "Quillhilda" in phone.script.sent[-1]
    await first.hang_up()
    phone.script.sent.clear()
    call = await phone.call(attestation=verstat)
    await call.say("What is my sister called?")
    assert heard_of_her(call, phone) == []


async def test_a_spoofed_call_gets_no_code_for_a_strangers_page(line):
    answers = []

    def answer(_said, given):
        answers.extend(given)
        return "Well." if given else [("browser_code", {})]

    phone = await ana_is_known(line)
    phone.script.answer = answer
    call = await phone.call(attestation="TN-Validation-Passed-B")
    await call.say("Give me a code for my browser.")
    assert [given["success"] for given in answers] == [False]
    assert not any(character.isdigit() for character in str(answers))


async def test_who_was_forgotten_is_in_nobody_elses_records_and_takes_nobody_along(line, tmp_path):
    phone = await ana_is_known(line, lambda _said, _given: "Yes.")
    call = await phone.call(attestation=A)
    await call.say("This is Zebulon speaking. I play the bassoon.")
    await call.hang_up()
    await phone.service.distil()
    people = (await phone.phone.callers.identify("+15550100001", A)).people
    zebulon = people["Zebulon"]
    assert "Zebulon" not in str(await phone.memory().export())
    assert zebulon not in str(await phone.memory().export())

    assert (await phone.memory().forget()).verified
    known = await phone.phone.callers.identify("+15550100001", A)
    assert known.people == {"Zebulon": zebulon}, "the second caller is still found"
    again = await phone.call(attestation=A)
    await again.say("This is Zebulon speaking.")
    met = phone.phone.known(again.sid).caller
    assert met.user == zebulon
    assert "bassoon" in str([hit.text for hit in await phone.service.user(met.user).query("What do I play?")])
    await again.hang_up()

    assert (await phone.service.user(zebulon).forget()).verified
    await phone.service.settle()
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("echoic.db*") if path.is_file())
    assert b"Zebulon" not in kept
    assert zebulon.encode() not in kept


@pytest.mark.parametrize("channel", ["gather", "relay"])
@pytest.mark.parametrize("most", SENSITIVITIES)
async def test_no_call_tells_anything_above_what_its_caller_may_be_told(line, tmp_path, channel, most):
    def asks(_said, given):
        return "Well." if given else AGENT_ASKS

    url = f"sqlite:///{tmp_path}/matrix.db"
    async with echoic.open(url, embedder="lexical", assurance={"attested": most}) as service:
        phone = await line(asks, channel=channel, service=service)
        first = await phone.call(attestation=A)
        await first.hang_up()
        await plant(service, phone.memory().scope.user)
        phone.script.sent.clear()
        call = await phone.call(attestation=A)
        await call.say(QUESTION)
        await call.hang_up()
        told = [*phone.script.sent, *(hook.text for hook in call.webhooks), *call.said]
        assert words_in(told) == allowed(most)


@pytest.mark.parametrize("most", SENSITIVITIES)
async def test_no_call_as_audio_tells_anything_above_what_its_caller_may_be_told(line, tmp_path, most):
    calls = Calls(*(ToolCall(name, ask) for name, ask in AGENT_ASKS))
    script = Script(UserSays(QUESTION, after_ms=200), calls, Says("well", word_ms=50), open_ended=True)
    url = f"sqlite:///{tmp_path}/matrix.db"
    async with (
        echoic.open(url, embedder="lexical", assurance={"attested": most}) as service,
        OpenAIRealtimeServer(script) as server,
    ):
        phone = await line(None, channel="media", service=service)
        provider = OpenAIProvider(base_url=server.base_url, api_key="none")
        phone.phone.realtime = OpenAIRealtimeModel("gpt-realtime", provider=provider)
        await plant(service, phone.memory().scope.user)
        call = await phone.call(attestation=A)
        async with asyncio.timeout(60):
            while not call.stream.played:  # which follows what the tools gave
                await asyncio.sleep(0.02)
        await call.hang_up()
        told = [*server.sessions[0].record.received(), *(hook.text for hook in call.webhooks), *call.said]
        assert words_in(told) == allowed(most)
