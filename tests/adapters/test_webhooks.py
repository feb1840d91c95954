"""Every webhook is answered at once and once, whatever the model does, and only if it is Twilio's."""

from __future__ import annotations

import asyncio
import html
import re
import time

import aiohttp
import pytest

from adapters.conftest import AUTH_TOKEN
from echoic.adapters.twilio import Pace
from echoic.adapters.twilio.settings import FILLERS
from echoic.session.recorder import CallRecorder
from echoic.session.text_call import TextCall
from echoic_loopback.twilio import CallFailed, SimulatedCall

STORE = ("store_conversation", {"key": "blue harvest", "summary": "PlannedActions."})
RECALL = ("recall_conversation", {"key": "old ship"})
CHAINED = ("recall_conversation", {"key": "old harbour"})


def bare(heard):
    """A reply without what a busy machine may have said to pass the time, and without blanks."""
    for filler in FILLERS:
        heard = heard.replace(filler, "")
    return "".join(heard.split())


async def stored(memory, key, *words):
    opened = await memory.conversation(agent="robin")
    from echoic import Turn

    await opened.append(*(Turn(speaker="user", text=text) for text in words))
    await opened.store(key, f"About the {key}.")


async def test_several_tools_in_one_reply_and_a_chained_one_are_all_run_and_answered_once(line):
    def answer(said, given):
        if "do it all" in said:
            return {
                0: ("Let me see to that.", [STORE, RECALL]),
                2: ("One more thing.", [CHAINED]),
            }.get(
                len(given),
                f"Stored, and {given[1]['result']['turns'][0]['text']}." if len(given) == 3 else "?",
            )
        return "Hello."

    phone = await line(answer)
    await stored(phone.memory(), "old ship", "the ship is called Nellie")
    await stored(phone.memory(), "old harbour", "the harbour is Boston")
    call = await phone.call()
    heard = await call.say("Please do it all.")
    assert bare(heard) == bare("Let me see to that. One more thing. Stored, and the ship is called Nellie.")
    await call.hang_up()
    assert "blue harvest" in [c.recall_key for c in await phone.memory().conversations()]
    turns = (await phone.turns(call)).turns
    assert [(turn.speaker, turn.text.count("Stored")) for turn in turns] == [("user", 0), ("agent", 1)]


async def test_while_a_model_thinks_every_webhook_is_answered_and_something_is_said(line):
    thinking = asyncio.Event()

    phone = await line(lambda _said, _given: (thinking, "The answer is nine."))
    call = await phone.call()
    waiting = asyncio.create_task(call.say("How many?"))
    while len(call.webhooks) < 5:
        await asyncio.sleep(0.05)
    thinking.set()
    heard = await waiting
    assert heard.startswith(FILLERS[0])
    assert heard.endswith("The answer is nine. ")
    assert call.said.count("The answer is nine. ") == 1
    # pauses take no time here, so that three webhooks are asked in the time of one pause
    mute = ["<Say" not in hook.text for hook in call.webhooks[1:]]
    assert not any(all(mute[n : n + 4]) for n in range(len(mute) - 3))


async def test_a_webhook_that_comes_again_gets_the_same_answer_and_changes_nothing(line):
    phone = await line(lambda said, _given: f"You said {said}.")
    call = await phone.call()
    await call.say("one")
    again = []
    for hook in list(call.webhooks):
        again += await asyncio.gather(*(call.post(hook.path, hook.params) for _ in range(3)))
        assert {text for _, text in again[-3:]} == {hook.text}
    await call.say("two")
    late = await call.post(call.webhooks[1].path, call.webhooks[1].params)
    assert late[1] == call.webhooks[1].text
    await call.hang_up()
    await call.hang_up()
    assert len(phone.script.requests) == 2
    turns = (await phone.turns(call)).turns
    assert [turn.text.strip() for turn in turns] == ["one", "You said one.", "two", "You said two."]


async def test_two_deliveries_of_one_turn_at_the_same_time_are_one_turn(line):
    phone = await line(lambda said, _given: f"You said {said}.")
    call = await phone.call()
    action, params = call._action, {"CallSid": call.sid, "SpeechResult": "once", "From": call._number}
    answers = await asyncio.gather(*(call.post(action, params) for _ in range(8)))
    assert len({text for _, text in answers}) == 1
    assert len(phone.script.requests) == 1


@pytest.mark.parametrize(
    "path", ["voice", "turn?step=1&token=x", "poll?step=1&token=x", "connected", "status"]
)
async def test_a_forged_webhook_is_refused_before_anything_is_read(line, path):
    phone = await line(lambda _said, _given: "Hello.")
    call = await phone.caller()
    params = {"CallSid": call.sid, "From": "+15550100001"}
    for signature in ("", "bm90IGEgc2lnbmF0dXJl", "\u00fc"):
        try:
            status, text = await call.post(f"/phone/{path}", params, signature=signature)
        except ValueError:
            continue
        assert (status, text) == (403, "")
    assert phone.phone.known(call.sid) is None


async def test_a_signature_of_other_words_or_another_place_is_refused(line):
    phone = await line(lambda _said, _given: "Hello.")
    call = await phone.call()
    hook = call.webhooks[0]
    other = {**hook.params, "From": "+15550100099"}
    assert (await call.post(hook.path, other, signature=hook.signature))[0] == 403
    assert (await call.post("/phone/status", hook.params, signature=hook.signature))[0] == 403


async def test_a_step_of_another_call_or_without_its_token_is_refused(line):
    phone = await line(lambda _said, _given: "Secret.")
    ours, theirs = await phone.call(), await phone.call("+15550100002")
    params = {"CallSid": theirs.sid, "SpeechResult": "hello"}
    assert (await theirs.post(ours._action, params))[0] == 403
    assert (
        await ours.post(re.sub("token=[^&]*", "token=1.2", ours._action), {**params, "CallSid": ours.sid})
    )[0] == 403
    assert phone.script.requests == []


@pytest.mark.parametrize(
    "params",
    [{}, {"CallSid": ""}, {"CallSid": "../../etc"}, {"CallSid": "CA" + "\u0661" * 32}],
    ids=["none", "empty", "path", "digits"],
)
async def test_a_malformed_webhook_is_refused(line, params):
    phone = await line(lambda _said, _given: "Hello.")
    call = await phone.caller()
    assert (await call.post("/phone/voice", params))[0] == 400
    assert (await call.post("/phone/turn?step=no&token=", {"CallSid": call.sid}))[0] == 400
    assert (await call.post("/phone/voice", {"CallSid": call.sid, "x": "y" * 70_000}))[0] == 413


@pytest.mark.parametrize("host", ["x:99999", "x:y", "[", "[::1"])
async def test_a_request_to_what_is_no_host_is_refused(line, host):
    phone = await line(lambda _said, _given: "Hello.", channel="relay")
    call = await phone.caller()
    headers = {"Host": host, "X-Twilio-Signature": "bm90IGEgc2lnbmF0dXJl"}
    async with call._http.post(
        f"{phone.url}/phone/voice", data={"CallSid": call.sid}, headers=headers
    ) as answer:
        assert answer.status == 403
    with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
        await call._http.ws_connect(f"{phone.url}/phone/relay/token", headers=headers)


async def test_forwarded_headers_count_only_where_a_proxy_is_trusted(line):
    public = "https://phone.example.com"
    for trusted, status in ((False, 403), (True, 200)):
        phone = await line(lambda _said, _given: "Hello.", trust_forwarded=trusted)
        call = await phone.caller()
        params = {"CallSid": call.sid, "From": "+15550100001"}
        signature = call._validator.compute_signature(f"{public}/phone/voice", params)
        headers = {
            "X-Twilio-Signature": signature,
            "X-Forwarded-Proto": "https",
            "X-Forwarded-Host": "phone.example.com",
        }
        async with call._http.post(f"{phone.url}/phone/voice", data=params, headers=headers) as answer:
            assert answer.status == status


async def test_behind_a_public_url_only_that_url_is_good(line):
    phone = await line(lambda _said, _given: "Hello.", public_url="https://phone.example.com")
    good = await phone.caller(public_url="https://phone.example.com")
    assert await good.dial()
    bad = await phone.caller()
    with pytest.raises(CallFailed, match="403"):
        await bad.dial()


async def test_a_hang_up_cancels_the_reply_and_keeps_what_was_said(line):
    thinking = asyncio.Event()
    phone = await line(lambda _said, _given: (thinking, "never heard"))
    call = await phone.call()
    waiting = asyncio.create_task(call.say("My name is Ana, and I like opera."))
    while len(call.webhooks) < 2:
        await asyncio.sleep(0.05)
    await call.hang_up()
    await waiting
    thinking.set()
    task = await phone.turns(call)
    assert [turn.text for turn in task.turns] == ["My name is Ana, and I like opera."]
    assert task.conversation.status == "completed"


async def test_a_tool_that_writes_when_the_line_goes_dead_writes_to_its_end(line, monkeypatch):
    from echoic.memory.conversation import OpenConversation

    begun, storing = asyncio.Event(), OpenConversation.store

    async def slow(self, key, summary=None):
        begun.set()
        await asyncio.sleep(0.3)
        return await storing(self, key, summary)

    monkeypatch.setattr(OpenConversation, "store", slow)
    phone = await line(lambda _said, given: "Done." if given else [STORE], retention="never")
    call = await phone.call()
    waiting = asyncio.create_task(call.say("Store this."))
    await begun.wait()
    await call.hang_up()
    await waiting
    kept = [c for c in await phone.memory().conversations() if c.id == f"call:{call.sid}"]
    assert [c.recall_key for c in kept] == ["blue harvest"]


@pytest.mark.parametrize("channel", ["gather", "relay"])
async def test_the_end_of_a_call_is_answered_though_something_is_still_being_written(
    line, channel, monkeypatch
):
    from echoic.memory.conversation import OpenConversation

    begun, may = asyncio.Event(), asyncio.Event()
    storing = OpenConversation.store

    async def slow(self, key, summary=None):
        begun.set()
        await may.wait()
        return await storing(self, key, summary)

    monkeypatch.setattr(OpenConversation, "store", slow)
    phone = await line(lambda _said, given: "Done." if given else [STORE], channel=channel)
    call = await phone.call()
    waiting = asyncio.create_task(call.say("Store this."))
    await begun.wait()
    await call.hang_up()
    assert not phone.phone.known(call.sid).opened.cancelled()
    assert call.figures is None or call.figures["turns"] == 1
    may.set()
    await asyncio.gather(waiting, return_exceptions=True)
    await phone.phone.known(call.sid).hang_up()
    kept = [c for c in await phone.memory().conversations() if c.id == f"call:{call.sid}"]
    assert [c.recall_key for c in kept] == ["blue harvest"]


async def test_a_model_that_fails_is_heard_as_a_sentence_and_the_call_goes_on(line):
    def answer(said, _given):
        if "boom" in said:
            raise RuntimeError("planted")
        return "Fine."

    phone = await line(answer)
    call = await phone.call()
    assert "went wrong" in await call.say("boom")
    assert "Fine." in await call.say("and now?")


@pytest.mark.parametrize("word", ["&&&&&&&&& ", "💥💥💥 ", "and then. ", "endless"])
async def test_a_reply_longer_than_any_answer_may_be_is_heard_in_several(line, word):
    """Twilio refuses TwiML of more than 64 KB, and hangs up."""
    sizes = []

    class Counting(SimulatedCall):
        async def post(self, path, params):
            status, text = await super().post(path, params)
            sizes.append(len(text.encode()))
            return status, text

    reply = word * (60_000 // len(word))
    phone = await line(lambda _said, _given: reply)
    async with Counting(phone.url, AUTH_TOKEN) as call:
        await call.dial()
        heard = await call.say("Tell me everything.")
        assert bare(heard) == bare(reply)
        await call.hang_up()
    assert max(sizes) < 64_000
    assert len(sizes) > 6


async def test_silence_is_asked_about_and_ended_after_the_third(line):
    phone = await line(lambda _said, _given: "Hello.")
    call = await phone.call()
    assert [await call.silence() for _ in range(3)] == [
        "Are you still there?",
        "Are you still there?",
        "I can't hear you. Goodbye!",
    ]
    assert call.over
    assert phone.script.requests == []


async def test_more_calls_than_there_are_lines_are_told_so(line):
    phone = await line(lambda _said, _given: "Hello.", max_calls=1)
    first = await phone.call()
    second = await phone.caller("+15550100002")
    assert "busy" in await second.dial()
    await first.hang_up()
    assert "busy" not in await (await phone.caller("+15550100002")).dial()


async def test_no_call_is_taken_while_those_under_way_are_served_late(line):
    phone = await line(lambda _said, _given: "Hello.")
    first = await phone.call()

    async def overload():
        while True:
            time.sleep(0.3)
            await asyncio.sleep(0)

    hog = asyncio.create_task(overload())
    while not phone.phone.busy:
        await asyncio.sleep(0)
    second = await phone.caller("+15550100002")
    assert "busy" in await second.dial()
    hog.cancel()
    while phone.phone.busy:
        await asyncio.sleep(0.01)
    assert "busy" not in await (await phone.caller("+15550100003")).dial()
    await first.hang_up()


async def test_a_call_whose_end_fails_holds_no_line_and_says_nothing_in_the_log(line, monkeypatch, caplog):
    async def broken(_log):
        raise RuntimeError("zanzibar")

    phone = await line(lambda _said, _given: "Noted.", max_calls=1)
    call = await phone.call()
    await call.say("Hello.")
    monkeypatch.setattr(CallRecorder, "complete", broken)
    await call.hang_up()
    assert not phone.phone.busy
    assert "RuntimeError" in caplog.text
    assert "zanzibar" not in caplog.text


async def test_a_call_goes_on_after_the_server_was_started_again(line):
    phone = await line(lambda _said, _given: "Noted.")
    call = await phone.call()
    await call.say("I live in Porto.")
    after = await line(lambda _said, _given: "Still here.", service=phone.service)
    call._url = after.url
    call._action = call._action.replace(phone.url, after.url)
    call._public = after.url
    assert "Still here." in await call.say("Are you there?")
    assert "I live in Porto." in after.script.sent[-1], "what was said before is known"
    await call.hang_up()
    turns = (await phone.turns(call)).turns
    assert [turn.text.strip() for turn in turns][:1] + [turn.text.strip() for turn in turns][-2:] == [
        "I live in Porto.",
        "Are you there?",
        "Still here.",
    ]


async def test_what_is_said_after_a_process_died_in_mid_reply_is_kept(line):
    never = asyncio.Event()
    phone = await line(lambda said, _given: (never, "") if said == "three" else f"You said {said}.")
    call = await phone.call()
    await call.say("one")
    await call.say("two")
    params = {"CallSid": call.sid, "From": call._number, "StirVerstat": call._attestation}
    _, waits = await call.post(call._action, {**params, "SpeechResult": "three"})
    async with asyncio.timeout(60):
        while len(phone.script.requests) < 3:
            await asyncio.sleep(0.01)
    after = await line(lambda said, _given: f"You said {said}.", service=phone.service)
    call._url = call._public = after.url
    redirect = html.unescape(re.search("<Redirect[^>]*>([^<]*)", waits)[1])
    assert await call._follow(redirect.removeprefix(phone.url), {})
    for said in ("four", "five"):
        assert f"You said {said}." in await call.say(said)
    await call.hang_up()
    turns = [turn.text.strip() for turn in (await phone.turns(call)).turns]
    assert [text for text in turns if "You" not in text] == ["one", "two", "three", "four", "five"]
    assert turns[-4:] == ["four", "You said four.", "five", "You said five."]


async def test_a_process_that_wrote_no_checkpoint_yet_cannot_take_the_call_back(line, monkeypatch):
    phone = await line(lambda _said, _given: "Noted.")
    recorders, other_begins, wrote = [], asyncio.Event(), asyncio.Event()
    follow = TextCall._follow

    async def in_order(self, recorder):
        """The first process writes between the second's taking over and its first checkpoint."""
        if recorder not in recorders:
            recorders.append(recorder)
        if recorder is recorders[0]:
            await other_begins.wait()
            await follow(self, recorder)
            wrote.set()
        else:
            other_begins.set()
            await wrote.wait()
            await follow(self, recorder)

    monkeypatch.setattr(TextCall, "_follow", in_order)
    call = await phone.call()
    await call.say("I live in Porto.")
    after = await line(lambda _said, _given: "Still here.", service=phone.service)
    call._url = call._public = after.url
    call._action = call._action.replace(phone.url, after.url)
    assert "Still here." in await call.say("Are you there?")
    await asyncio.wait_for(wrote.wait(), 30)
    await call.say("Good.")
    await call.hang_up()
    turns = [turn.text.strip() for turn in (await phone.turns(call)).turns]
    assert turns == ["I live in Porto.", "Are you there?", "Still here.", "Good.", "Still here."]


async def test_who_was_not_believed_is_not_believed_after_the_server_was_started_again(line):
    """The carrier says that the number is not the caller's, with every webhook."""
    phone = await line(lambda _said, _given: "Noted.")
    victim = await phone.call()
    await victim.say("My name is Ana and I live in Porto.")
    await victim.hang_up()
    call = await phone.call(attestation="TN-Validation-Failed-C")
    after = await line(lambda _said, _given: "Still here.", service=phone.service)
    call._url = call._public = after.url
    call._action = call._action.replace(phone.url, after.url)
    assert "Still here." in await call.say("What do you know of me?")
    assert "Porto" not in after.script.sent[-1]


async def test_a_call_that_is_over_is_not_begun_again_by_another_process(line):
    phone = await line(lambda _said, _given: "Noted.")
    call = await phone.call()
    await call.say("My secret is blue.")
    await call.hang_up()
    after = await line(lambda _said, _given: "Leaked.", service=phone.service)
    call._url = call._public = after.url
    assert await call.dial() == ""
    assert after.script.requests == []


def test_a_pace_that_cannot_keep_its_promises_is_refused():
    with pytest.raises(ValueError, match="within 2 s"):
        Pace(answer_within_s=3)
    with pytest.raises(ValueError, match="not asked more often"):
        Pace(sound_every_s=2)


@pytest.mark.parametrize("channel", ["gather", "relay"])
async def test_what_a_call_writes_is_logged_as_the_telephones_under_the_callers_pseudonym(line, channel):
    phone = await line(lambda said, given: "Gladly.", channel=channel, audit=True)
    call = await phone.call()
    await call.say("I live in zanqtown")
    await call.hang_up()
    await phone.phone.aclose()
    await phone.service.audit.flush()
    whom = phone.service.pseudonym(phone.phone.callers.line_of("+15550100001"))
    entries = [e for e in phone.service.audit.log.entries() if e["scope"] == whom and e["kind"] == "turn"]
    written = [e for e in entries if e["did"] == "write"]
    assert written
    assert {(e["role"], e["who"]) for e in written} == {("telephone", "")}
    assert all(e["why"].startswith("phone ") for e in written)
    assert "zanq" not in str(entries)
