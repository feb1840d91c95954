"""The line speaks the caller's language: as they prefer it, as they ask for it, as it is found out."""

from __future__ import annotations

import asyncio
import re

import pytest

from echoic.adapters.twilio.settings import ENGLISH, KNOWN, PhoneSettings, Phrases, matching, phrases_of

SPANISH = KNOWN["es"]
LANGUAGES = {"languages": ("es-ES", "de-DE")}


def switching(said, given):
    if "Spanish" in said and not given:
        return [("speak_language", {"language": "es"})]
    return "Claro." if given else f"You said {said}."


@pytest.mark.parametrize("channel", ["gather", "relay"])
async def test_who_asks_for_another_language_is_spoken_to_in_it_and_greeted_in_it_next_time(line, channel):
    phone = await line(switching, channel=channel, **LANGUAGES)
    call = await phone.call()
    assert call.language == "en-US"
    assert "Claro." in await call.say("Let us speak Spanish, please.")
    assert call.language == "es-ES"
    await call.hang_up()
    assert (await phone.memory().directives()).language == "es-ES"
    again = await phone.caller()
    assert SPANISH.greeting in await again.dial()
    assert again.language == "es-ES"
    await again.say("Hola.")
    assert "es-ES" in phone.script.sent[-1], "the model is told"


async def test_a_webhook_hears_and_speaks_the_language_with_the_voice_for_it(line):
    voices = {"es": "Polly.Lucia-Neural"}
    phone = await line(switching, voice="Polly.Joanna", voices=voices, **LANGUAGES)
    call = await phone.call()
    await call.say("Let us speak Spanish, please.")
    last = call.webhooks[-1].text
    assert re.search(r'<Gather [^>]*language="es-ES"', last)
    assert re.search(r'<Say language="es-ES" voice="Polly.Lucia-Neural">Claro', last)
    assert 'voice="Polly.Joanna"' in call.webhooks[0].text


async def test_a_relay_is_set_up_for_every_language_and_told_when_it_changes(line):
    phone = await line(switching, channel="relay", voices={"es-ES": "Lucia"}, **LANGUAGES)
    call = await phone.call()
    twiml = call.webhooks[0].text
    assert '<Language code="es-ES" voice="Lucia"' in twiml
    assert 'partialPrompts="true"' in twiml
    told = []
    receive = call._receive

    async def noting():
        told.append(await receive())
        return told[-1]

    call._receive = noting
    await call.say("Let us speak Spanish, please.")
    change = {"type": "language", "ttsLanguage": "es-ES", "transcriptionLanguage": "es-ES"}
    assert told[0] == change, "before the first word that is said in it"
    await call.say("Gracias.")
    assert told.count(change) == 1


async def test_a_line_that_finds_out_answers_in_the_language_that_was_spoken_and_keeps_no_preference(line):
    phone = await line(switching, channel="relay", detect_language=True, **LANGUAGES)
    call = await phone.call(speaks="es")
    assert 'transcriptionLanguage="multi"' in call.webhooks[0].text
    await call.say("Hola.")
    assert call.language == "es-ES"
    await call.hang_up()
    assert (await phone.memory().directives()).language is None


async def test_a_language_the_line_does_not_speak_changes_nothing(line):
    def answer(said, given):
        return given[0]["say"] if given else [("speak_language", {"language": "tlh"})]

    phone = await line(answer, **LANGUAGES)
    call = await phone.call()
    assert "en-US, es-ES, de-DE" in await call.say("Speak Klingon.")
    assert call.language == "en-US"


async def test_an_agent_of_one_language_has_no_tool_to_change_it(line):
    phone = await line(lambda _said, _given: "Yes.")
    await (await phone.call()).say("Hello.")
    assert "speak_language" not in phone.script.sent[0]


async def test_a_guest_changes_the_line_and_nothing_is_kept(line):
    phone = await line(switching, **LANGUAGES)
    call = await phone.call("anonymous")
    await call.say("Let us speak Spanish, please.")
    assert call.language == "es-ES"
    await call.hang_up()
    assert await phone.service.users() == []


async def test_somebody_else_on_the_line_is_spoken_to_as_they_prefer(line):
    phone = await line(switching, **LANGUAGES)
    call = await phone.call()
    await call.say("My name is Ana. Let us speak Spanish, please.")
    await call.hang_up()
    await phone.service.distil()
    call = await phone.call()
    await call.say("This is not Ana, this is Ben speaking.")
    ben = (await phone.phone.callers.identify("+15550100001", "TN-Validation-Passed-A")).people["Ben"]
    assert (await phone.service.user(ben).directives()).language is None


async def test_fillers_are_said_in_the_language_of_the_line_and_are_no_part_of_the_reply(line):
    thinking = asyncio.Event()

    def answer(said, given):
        return (thinking, "El tren sale a las nueve") if "tren" in said else switching(said, given)

    phone = await line(answer, channel="relay", **LANGUAGES)
    call = await phone.call()
    await call.say("Let us speak Spanish, please.")
    await call.send({"type": "prompt", "voicePrompt": "¿y mi tren?", "lang": "es-ES", "last": True})
    assert (await call._receive())["token"].strip() == SPANISH.fillers[0]
    thinking.set()
    await call._reply(0.0, None)
    heard = f"{SPANISH.fillers[0]} El tren sale"
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": heard})
    await asyncio.sleep(0.2)
    await call.hang_up()
    assert (await phone.turns(call)).turns[-1].heard_text == "El tren sale"


def test_phrases_are_ones_own_then_ours_then_english():
    own = {"es-MX": KNOWN["de"]}
    assert phrases_of("es-MX", own) is KNOWN["de"]
    assert phrases_of("es-ES", own) is SPANISH
    assert phrases_of("xx", own) is ENGLISH
    assert matching("es", ("en-US", "es-ES", "es-MX")) == "es-ES"
    assert matching("ES-mx", ("en-US", "es-ES", "es-MX")) == "es-MX"
    assert matching("fr", ("en-US",)) is None


@pytest.mark.parametrize("tag", KNOWN)
def test_every_language_has_all_phrases_of_its_own(tag):
    phrases = KNOWN[tag]
    for name in Phrases.__slots__:
        assert tag == "en" or getattr(phrases, name) != getattr(ENGLISH, name)
    assert len(phrases.fillers) == len(ENGLISH.fillers)
    assert "Ana" in phrases.greeting_known.replace("{name}", "Ana")


def test_settings_refuse_what_no_line_can_speak():
    good = {"auth_token": "x", "salt": "x" * 32}
    for bad in ({"languages": ("Spanish",)}, {"voices": {"Spanish": "Lucia"}}, {"greeting": " "}):
        with pytest.raises(ValueError, match=r"tag|greeting"):
            PhoneSettings(**good, **bad)
    with pytest.raises(ValueError, match="name"):
        Phrases(**{**{n: getattr(ENGLISH, n) for n in Phrases.__slots__}, "greeting_known": "Welcome!"})
