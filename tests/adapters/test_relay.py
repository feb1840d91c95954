"""A call over ConversationRelay: tokens as they come, and nothing remembered that was not heard."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
import pytest

from echoic import StoreUnavailable, Turn
from echoic.adapters.twilio import Pace
from echoic.adapters.twilio.relay import Relay
from echoic.adapters.twilio.settings import FILLERS
from echoic.memory.conversation import OpenConversation
from echoic.session.turn_recall import CallRecall
from echoic_loopback.twilio import CallFailed

LONG = "Your train leaves at nine from platform four and the last word is zanzibar so do not be late"


def heard_by_model(script):
    return "".join(
        part.content
        for message in script.requests[-1]
        if message.kind == "response"
        for part in message.parts
        if part.part_kind == "text"
    )


@pytest.fixture
def relay(line):
    async def start(answer, **settings):
        return await line(answer, channel="relay", **settings)

    return start


async def test_words_come_as_the_model_finds_them(relay):
    rest = asyncio.Event()
    phone = await relay(lambda _said, _given: "unused")

    async def stream(_messages, _info):
        yield "The first words "
        await rest.wait()
        yield "and the rest."

    phone.phone.agent.model.stream_function = stream
    call = await phone.call()
    await call.send({"type": "prompt", "voicePrompt": "go on", "lang": "en-US", "last": True})
    assert (await call._receive())["token"] == "The first words "
    rest.set()
    assert "and the rest." in await call._reply(0.0, None)


async def test_who_cuts_in_has_not_heard_the_rest_and_neither_model_nor_memory_believes_so(relay):
    phone = await relay(lambda said, _given: LONG if "train" in said else "Fine.")
    call = await phone.call()
    heard = await call.say("When is my train?", cut_in_after="platform four")
    assert heard.endswith("platform four")
    await call.say("Thank you.")
    assert "platform four" in heard_by_model(phone.script)
    assert "zanzibar" not in phone.script.sent[-1]
    await call.hang_up()
    task = await phone.turns(call)
    assert task.turns[1].heard_text == "Your train leaves at nine from platform four"
    assert "zanzibar" not in str(await phone.memory().export())


async def test_who_cuts_in_while_the_model_still_speaks_ends_the_run(relay):
    never = asyncio.Event()
    ended = asyncio.Event()
    phone = await relay(lambda _said, _given: "Fine.")
    plain = phone.phone.agent.model.stream_function

    async def stream(messages, info):
        if "story" not in str(messages[-1]):
            async for word in plain(messages, info):
                yield word
            return
        try:
            yield "Once upon a time there was "
            await never.wait()
        finally:
            ended.set()

    phone.phone.agent.model.stream_function = stream
    call = await phone.call()
    assert await call.say("Tell me a story.", cut_in_after="Once upon a time") == "Once upon a time"
    await asyncio.wait_for(ended.wait(), 60)
    await call.say("Stop, that will do.")
    assert heard_by_model(phone.script) == "Once upon a time"
    await call.hang_up()
    assert [t.heard_text.strip() for t in (await phone.turns(call)).turns][1] == "Once upon a time"


async def test_a_tool_that_ran_before_the_interruption_stays_in_the_history(relay):
    def answer(said, given):
        if "note" not in said:
            return "Fine."
        if not given:
            return "I will note that. ", [
                ("agentMemory", {"operation": "set", "key": "seat", "value": "aisle"})
            ]
        return LONG

    phone = await relay(answer)
    call = await phone.call()
    await call.say("Please note: an aisle seat.", cut_in_after="Your train")
    await call.say("Go on.")
    kinds = [p.part_kind for m in phone.script.requests[-1] for p in m.parts]
    assert kinds.count("tool-call") == kinds.count("tool-return") == 1
    assert heard_by_model(phone.script).split() == "I will note that. Your train".split()
    assert (await phone.memory().get("seat")).text == "aisle"


async def test_a_hang_up_in_mid_sentence_keeps_what_the_line_played(relay):
    phone = await relay(lambda _said, _given: LONG)
    call = await phone.call()
    await call.say("When is my train?")
    await call.send({"type": "info", "name": "tokensPlayed", "value": "Your train leaves at nine"})
    await asyncio.sleep(0.1)
    await call.hang_up()
    assert (await phone.turns(call)).turns[1].heard_text == "Your train leaves at nine"


async def test_a_hang_up_right_after_a_reply_keeps_no_more_than_can_have_been_spoken(relay):
    phone = await relay(lambda _said, _given: " ".join([LONG] * 5), pace=Pace())
    call = await phone.call()
    await call.say("When is my train?")
    await call.hang_up()
    said = (await phone.turns(call)).turns
    assert len(said) == 1 or len(said[1].heard_text) < len(LONG), "five lines take half a minute to say"


async def test_what_waited_for_an_answer_at_the_hang_up_is_kept(relay):
    answering, never = asyncio.Event(), asyncio.Event()
    phone = await relay(lambda _said, _given: "unused")

    async def stream(_messages, _info):
        answering.set()
        yield "Let me look. "
        await never.wait()

    phone.phone.agent.model.stream_function = stream
    call = await phone.call()
    for said in ("I need a taxi", "And cancel order seven"):
        await call.send({"type": "prompt", "voicePrompt": said, "lang": "en-US", "last": True})
        await answering.wait()
    await call.hang_up()
    users = [t.text for t in (await phone.turns(call)).turns if t.speaker == "user"]
    assert users == ["I need a taxi", "And cancel order seven"]


async def test_what_was_said_last_is_kept_though_memory_was_still_searched_at_the_hang_up(relay, monkeypatch):
    searching, never = asyncio.Event(), asyncio.Event()
    phone = await relay(lambda _said, _given: "Fine.")
    call = await phone.call()
    await call.say("hello")

    async def final(*_given):
        searching.set()
        await never.wait()

    monkeypatch.setattr(CallRecall, "in_turn", final)
    await call.send({"type": "prompt", "voicePrompt": "my number is 555 0199", "lang": "en-US", "last": True})
    await searching.wait()
    await call.hang_up()
    said = [t.text for t in (await phone.turns(call)).turns if t.speaker == "user"]
    assert said == ["hello", "my number is 555 0199"]


async def test_what_an_interruption_stopped_is_kept_though_the_next_is_being_answered(relay, monkeypatch):
    searching, follows, never, plain = asyncio.Event(), asyncio.Event(), asyncio.Event(), CallRecall.in_turn
    phone = await relay(lambda _said, _given: "Fine.")
    call = await phone.call()
    await call.say("hello")
    known = phone.phone.known(call.sid)
    end_replies = known._end_replies

    async def in_turn(recall, said):
        if said == "the first thing":
            searching.set()
            await never.wait()
        follows.set()
        return await plain(recall, said)

    async def ended(replies):
        await follows.wait()
        await end_replies(replies)

    monkeypatch.setattr(CallRecall, "in_turn", in_turn)
    monkeypatch.setattr(known, "_end_replies", ended)
    prompt = {"type": "prompt", "lang": "en-US", "last": True}
    await call.send({**prompt, "voicePrompt": "the first thing"})
    await searching.wait()
    await call.send({**prompt, "voicePrompt": "the second thing"})
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": "Fi", "durationUntilInterruptMs": 100})
    async with asyncio.timeout(60):
        while known._unanswered or known._replying:
            await asyncio.sleep(0.01)
    await call.hang_up()
    said = [t.text for t in (await phone.turns(call)).turns if t.speaker == "user"]
    assert said == ["hello", "the first thing", "the second thing"]


async def test_keys_that_are_pressed_are_one_thing_that_was_said(relay):
    phone = await relay(lambda said, _given: f"You pressed {said}.")
    call = await phone.call()
    assert await call.press("42#") == "You pressed 42."


async def test_the_line_changes_to_the_language_of_the_caller(relay):
    phone = await relay(lambda said, _given: f"Si, {said}.", languages=("es-ES",), detect_language=True)
    call = await phone.call()
    await call.send({"type": "prompt", "voicePrompt": "hola", "lang": "es-ES", "last": True})
    assert await call._receive() == {"type": "language", "ttsLanguage": "es-ES"}
    assert "Si, hola." in await call._reply(0.0, None)
    await call.send({"type": "prompt", "voicePrompt": "x", "lang": "xx-XX", "last": True})
    assert (await call._receive())["type"] == "text"


async def test_a_socket_that_breaks_is_taken_up_again_with_all_that_was_said(relay):
    phone = await relay(lambda said, _given: f"You said {said}.")
    call = await phone.call()
    await call.say("I live in Porto")
    assert "cut off" in await call.drop()
    await call.say("and I like fado")
    assert "I live in Porto" in phone.script.sent[-1]
    await call.hang_up()
    users = [t.text for t in (await phone.turns(call)).turns if t.speaker == "user"]
    assert users == ["I live in Porto", "and I like fado"]


async def test_where_sockets_keep_breaking_webhooks_take_over(relay):
    phone = await relay(lambda said, _given: f"You said {said}.")
    call = await phone.call()
    for _ in range(4):
        await call.drop()
    assert call._socket is None
    assert "You said hello." in await call.say("hello")


@pytest.mark.parametrize("breaks", [1, 4], ids=["the next socket", "webhooks"])
async def test_a_socket_whose_end_comes_late_stops_no_reply_of_what_came_after_it(relay, breaks, monkeypatch):
    thinking, runs, ends, begun, ended = asyncio.Event(), Relay.run, Relay.aclose, [], []

    async def run(self):
        begun.append(self)
        await runs(self)

    async def aclose(self):
        await ends(self)
        ended.append(self)

    monkeypatch.setattr(Relay, "run", run)
    monkeypatch.setattr(Relay, "aclose", aclose)
    phone = await relay(lambda said, _given: (thinking, "It is nine.") if "many" in said else "Fine.")
    call = await phone.call()
    await call.say("Hello.")
    broken = []
    for n in range(breaks):
        async with asyncio.timeout(60):
            while len(begun) <= n:
                await asyncio.sleep(0.01)
        broken.append(call._socket)
        call._socket = None
        await call._follow(call._after, {"SessionStatus": "failed", "CallStatus": "in-progress"})
    answering = asyncio.create_task(call.say("How many?"))
    async with asyncio.timeout(60):
        while len(phone.script.requests) < 2:
            await asyncio.sleep(0.01)
        for socket in broken:
            await socket.close()
        while len(ended) < breaks:
            await asyncio.sleep(0.01)
    thinking.set()
    assert "It is nine." in await answering
    assert (await heard_in(phone, call)) == ["Hello.", "Fine.", "How many?", "It is nine."]


async def test_things_said_in_a_row_are_answered_in_order_once_each(relay):
    phone = await relay(lambda said, _given: f"Answer {said}.")
    call = await phone.call()
    for n in range(5):
        await call.send({"type": "prompt", "voicePrompt": f"{n}", "lang": "en-US", "last": True})
    heard = [await call._reply(0.0, None) for _ in range(5)]
    # a busy machine may have said that it takes a moment
    assert [text.replace(FILLERS[0], "").strip() for text in heard] == [f"Answer {n}." for n in range(5)]


async def said_while_it_thinks(relay, *spoken):
    """What the caller's turns hold if all of this is said while the model thinks about the first."""
    thinking = asyncio.Event()
    phone = await relay(lambda said, _given: (thinking, f"Answer {said}."))
    call = await phone.call()
    for said in spoken:
        await call.send({"type": "prompt", "voicePrompt": said, "lang": "en-US", "last": True})
        async with asyncio.timeout(60):
            while not phone.script.requests:
                await asyncio.sleep(0.01)
    async with asyncio.timeout(60):
        while spoken[-1] not in " ".join(phone.phone.known(call.sid)._unanswered.values()):
            await asyncio.sleep(0.01)
    thinking.set()
    await call.hang_up()
    return [turn.text for turn in (await phone.turns(call)).turns if turn.speaker == "user"]


async def test_whatever_is_said_while_a_reply_takes_long_is_kept_in_order(relay):
    words = [f"Thing {name}." for name in "abcdefghijklmn"]
    turns = await said_while_it_thinks(relay, *words)
    assert " ".join(turns) == " ".join(words)
    assert len(turns) == 9, "one that is answered and eight that wait"


async def test_digits_are_joined_to_no_words_and_no_text_grows_without_end(relay):
    words, long = [f"Thing {name}." for name in "abcdefghi"], ["x" * 3000, "y" * 3000]
    turns = await said_while_it_thinks(relay, *words, "12", "one two three four", "More.", *long)
    assert turns == [*words, "12", "one two three four", f"More. {long[0]}", long[1]]


async def test_a_long_wait_is_filled_and_the_filler_is_no_part_of_the_reply(relay):
    thinking = asyncio.Event()
    phone = await relay(lambda _said, _given: (thinking, LONG))
    call = await phone.call()
    await call.send({"type": "prompt", "voicePrompt": "well?", "lang": "en-US", "last": True})
    assert (await call._receive())["token"].strip() == FILLERS[0]
    thinking.set()
    assert "Your train leaves" in await call._reply(0.0, None)
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": f"{FILLERS[0]} Your train leaves"})
    await asyncio.sleep(0.2)
    await call.hang_up()
    assert (await phone.turns(call)).turns[1].heard_text == "Your train leaves"


async def test_a_token_opens_one_socket_once_and_only_for_twilio(relay):
    phone = await relay(lambda _said, _given: "Hello.")
    call = await phone.call()
    url = call._socket._response.url
    public = str(url).replace("http", "ws", 1)
    good = call._validator.compute_signature(public, {})
    for headers in ({}, {"X-Twilio-Signature": "forged"}, {"X-Twilio-Signature": good}):
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await call._http.ws_connect(public, headers=headers)


@pytest.mark.parametrize(
    "message", ["", "{", "[]", "null", '{"type":"setup","callSid":"CA1"}', '{"type":"prompt"}', "[" * 9000]
)
async def test_a_socket_that_does_not_begin_as_it_should_is_closed(relay, message):
    phone = await relay(lambda _said, _given: "Hello.")
    call = await phone.caller()
    await call.dial()
    token = phone.phone.socket_token(call.sid)
    url = f"ws{phone.url[4:]}/phone/relay/{token}"
    headers = {"X-Twilio-Signature": call._validator.compute_signature(url, {})}
    async with call._http.ws_connect(url, headers=headers) as socket:
        await socket.send_str(message)
        closing = await socket.receive(timeout=60)
        assert closing.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}
    assert phone.script.requests == []


async def test_neither_what_is_said_on_a_socket_nor_its_token_is_logged(relay, caplog):
    caplog.set_level(logging.DEBUG)
    phone = await relay(lambda _said, _given: "Zanzibar it is.")
    call = await phone.call()
    token = str(call._socket._response.url).rsplit("/", 1)[1]
    assert "Zanzibar" in await call.say("I live in Zanzibar.")
    await call.hang_up()
    text = "\n".join(r.getMessage() for r in caplog.records if r.name.startswith(("uvicorn", "echoic")))
    assert token not in text
    assert "Zanzibar" not in text


async def test_malformed_messages_in_a_call_hurt_nobody(relay):
    phone = await relay(lambda said, _given: f"You said {said}.")
    call = await phone.call()
    for message in (
        {"type": "prompt", "voicePrompt": 7, "last": True},
        {"type": "prompt", "voicePrompt": "   ", "last": True},
        {"type": "interrupt"},
        {"type": "interrupt", "utteranceUntilInterrupt": {"a": 1}},
        {"type": "dtmf", "digit": "\u0661"},
        {"type": "info", "name": "tokensPlayed", "value": None},
        {"type": "error", "description": "x"},
        {"type": ["prompt"]},
        {},
    ):
        await call.send(message)
    assert await call.say("hello") == "You said hello."
    await call.send({"type": "prompt", "voicePrompt": "x" * 70_000, "last": True})
    with pytest.raises(CallFailed):
        await call._receive()


async def test_who_cuts_in_before_a_word_was_heard_heard_nothing_and_the_call_goes_on(relay):
    phone = await relay(lambda said, _given: LONG if "train" in said else "Fine.")
    call = await phone.call()
    await call.say("When is my train?")
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": ""})
    assert await call.say("Never mind.") == "Fine."
    assert "zanzibar" not in phone.script.sent[-1]
    assert "When is my train?" in phone.script.sent[-1]
    await call.hang_up()
    assert [t.text.strip() for t in (await phone.turns(call)).turns] == [
        "When is my train?",
        "Never mind.",
        "Fine.",
    ]


@pytest.mark.parametrize(("until", "interrupts"), [("", True), ("Your train leaves", True), (LONG, False)])
async def test_who_speaks_after_the_last_word_interrupted_nothing_and_turn_record_and_figures_agree(
    relay, until, interrupts
):
    phone = await relay(lambda _said, _given: LONG)
    told = []
    phone.phone._ended = told.append
    call = await phone.call()
    await call.say("When?")
    exchange = phone.phone.known(call.sid).recorder.log.exchanges[-1]
    async with asyncio.timeout(60):
        while "generated" not in exchange.stages:
            await asyncio.sleep(0.01)
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": until})
    await call.say("Where?")
    await call.hang_up()
    assert told[0].interruptions == int(interrupts)
    assert ("barge_in" in exchange.stages) == interrupts
    said = [turn.heard_text for turn in (await phone.turns(call)).turns]
    assert said[0] == "When?"
    assert said[1] == (until or "Where?")


async def test_a_call_says_at_its_end_what_it_took(relay):
    phone = await relay(lambda _said, _given: LONG)
    told = []
    phone.phone._ended = told.append
    call = await phone.call()
    await call.say("When?", cut_in_after="nine")
    await call.say("Where?")
    await call.hang_up()
    figures = told[0]
    assert (len(told), figures.turns, figures.interruptions, figures.kept) == (1, 2, 1, True)
    assert figures.input_tokens > 0
    assert figures.cached_share == figures.cached_tokens / figures.input_tokens


async def test_a_call_whose_socket_is_open_is_not_idle_however_long_nobody_speaks(relay):
    at_once = Pace(characters_per_s=1e9, idle_s=0.2, reconnect_s=0.1)
    phone = await relay(lambda _said, _given: "Fine.", pace=at_once)
    call = await phone.call()
    await asyncio.sleep(0.6)
    assert not phone.phone.known(call.sid).over
    await call._socket.close()
    call._socket = None
    async with asyncio.timeout(60):
        while not phone.phone.known(call.sid).over:
            await asyncio.sleep(0.05)


WEATHER = "It will rain all day in the north and the other last word is timbuktu"


async def asked_twice(relay, first=LONG, second=WEATHER, **settings):
    """A call in which two things were said in a row, and both replies are on their way at the speed of speech."""
    both = asyncio.Event()
    replies = {"train": (both, first), "weather": second}
    phone = await relay(lambda said, _given: replies.get(said, "Fine."), **settings)
    call = await phone.call()
    for said in ("train", "weather"):
        await call.send({"type": "prompt", "voicePrompt": said, "lang": "en-US", "last": True})
    async with asyncio.timeout(60):
        while "weather" not in phone.phone.known(call.sid)._unanswered.values():
            await asyncio.sleep(0.01)
    both.set()
    for _ in range(2):
        await call._reply(0.0, None)
    return phone, call


async def heard_in(phone, call):
    """What was said in the call and heard, once it is over."""
    await call.hang_up()
    return [turn.heard_text.strip() for turn in (await phone.turns(call)).turns]


@pytest.mark.parametrize("retention", ["keep", "ask"])
async def test_who_cuts_in_on_a_reply_with_another_waiting_behind_it_heard_neither_rest(relay, retention):
    phone, call = await asked_twice(relay, pace=Pace(), retention=retention)
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": "Your train leaves at nine"})
    await call.say("Thank you.")
    assert "Your train leaves at nine" in phone.script.sent[-1]
    assert "zanzibar" not in phone.script.sent[-1]
    assert "timbuktu" not in phone.script.sent[-1]
    assert "'weather'" in phone.script.sent[-1]
    if retention == "ask":
        assert await phone.phone.known(call.sid).recorder.keep()
    heard = await heard_in(phone, call)
    assert heard[:4] == ["train", "Your train leaves at nine", "weather", "Thank you."]
    await phone.service.settle()
    assert not [hit for hit in await phone.memory().query("zanzibar") if "zanzibar" in hit.text]


async def test_who_cuts_in_on_the_second_of_two_replies_heard_the_first(relay):
    phone, call = await asked_twice(relay, pace=Pace())
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": "It will rain all day"})
    await call.say("Thank you.")
    assert "zanzibar" in phone.script.sent[-1]
    assert "timbuktu" not in phone.script.sent[-1]
    assert (await heard_in(phone, call))[:4] == ["train", LONG, "weather", "It will rain all day"]


async def test_a_reply_that_another_follows_was_heard_where_the_caller_let_it_be_said(relay):
    phone = await relay(lambda said, _given: LONG if "train" in said else WEATHER, pace=Pace())
    call = await phone.call()
    await call.say("train")
    await call.say("weather")  # who speaks while it sounds cuts in
    heard = await heard_in(phone, call)
    assert heard[:3] == ["train", LONG, "weather"]


async def test_of_two_replies_with_the_same_words_the_one_that_can_still_sound_was_cut_in_on(relay):
    phone, call = await asked_twice(relay, second=LONG, pace=Pace())
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": "Your train leaves"})
    await call.say("Thank you.")
    assert (await heard_in(phone, call))[:4] == ["train", "Your train leaves", "weather", "Thank you."]


async def test_a_hang_up_with_two_replies_on_their_way_keeps_what_the_line_played_of_the_first(relay):
    phone, call = await asked_twice(relay, pace=Pace())
    await call.send({"type": "info", "name": "tokensPlayed", "value": "Your train leaves at nine"})
    await asyncio.sleep(0.1)
    assert await heard_in(phone, call) == ["train", "Your train leaves at nine", "weather"]


async def test_what_is_cut_while_the_store_is_away_is_cut_with_the_next_that_is_said(relay, monkeypatch):
    phone, call = await asked_twice(relay, pace=Pace())
    truncate = OpenConversation.truncate
    tried = []

    async def unreachable(*_given, **_more):
        tried.append(True)
        raise StoreUnavailable("away")

    monkeypatch.setattr(OpenConversation, "truncate", unreachable)
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": "Your train"})
    async with asyncio.timeout(60):
        while not tried:
            await asyncio.sleep(0.01)
    monkeypatch.setattr(OpenConversation, "truncate", truncate)
    await call.say("Thank you.")
    assert (await heard_in(phone, call))[1] == "Your train"


async def test_a_prompt_whose_reply_is_stopped_before_it_began_is_known_to_the_next(relay, monkeypatch):
    searching, never = asyncio.Event(), asyncio.Event()
    phone = await relay(lambda _said, _given: LONG)
    call = await phone.call()
    await call.say("hello")
    final = CallRecall.in_turn

    async def slow(*_given):
        searching.set()
        await never.wait()

    monkeypatch.setattr(CallRecall, "in_turn", slow)
    await call.send({"type": "prompt", "voicePrompt": "A taxi, please", "lang": "en-US", "last": True})
    await searching.wait()
    monkeypatch.setattr(CallRecall, "in_turn", final)
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": "Your train"})
    await call._reply(0.0, None)
    await call.say("For two")
    assert "A taxi, please" in phone.script.sent[-1]
    said = await heard_in(phone, call)
    assert said[:4] == ["hello", "Your train", "A taxi, please", "For two"]


async def test_what_waited_for_an_answer_when_the_socket_broke_is_known_to_the_next(relay):
    answering, never = asyncio.Event(), asyncio.Event()
    phone = await relay(lambda said, _given: f"You said {said}.")
    plain = phone.phone.agent.model.stream_function

    async def stream(messages, info):
        if not answering.is_set():
            answering.set()
            await never.wait()
        async for word in plain(messages, info):
            yield word

    phone.phone.agent.model.stream_function = stream
    call = await phone.call()
    for said in ("I need a taxi", "And cancel order seven"):
        await call.send({"type": "prompt", "voicePrompt": said, "lang": "en-US", "last": True})
    await answering.wait()
    await call.drop()
    await call.say("Hello?")
    assert "I need a taxi" in phone.script.sent[-1]
    assert "And cancel order seven" in phone.script.sent[-1]
    assert (await heard_in(phone, call))[:3] == ["I need a taxi", "And cancel order seven", "Hello?"]


async def test_a_reply_that_no_model_made_is_cut_without_touching_the_one_before(relay):
    phone = await relay(lambda _said, _given: LONG)
    await phone.phone.links.give("web-ana")  # somebody waits for a code to be said
    call = await phone.call()
    await call.say("When is my train?")
    assert await call.say("0 0 0 0 0 0")
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": "That"})
    await call.say("Thank you.")
    assert "zanzibar" in phone.script.sent[-1]


async def test_who_cuts_in_on_a_call_that_another_process_began_has_not_heard_the_rest(relay):
    phone = await relay(lambda said, _given: LONG if "train" in said else "Fine.")
    call = await phone.caller()
    before = await phone.memory().conversation(f"call:{call.sid}", agent="robin")
    await before.append(*(Turn(speaker="user", text=f"thing {n}") for n in range(4)))
    await call.dial()
    await call.say("When is my train?")
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": "Your train leaves at nine"})
    await call.say("Thank you.")
    assert "thing 3" in phone.script.sent[-1]
    assert "zanzibar" not in phone.script.sent[-1]
