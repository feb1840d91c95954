"""Recall in a call: ready when the turn ends, before the model answers, and accounted for afterwards."""

# ruff: noqa: SIM117 - a provider's life encloses the calls that are made to it
from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from echoic import StoreUnavailable
from echoic.prompt.block import memory_line
from echoic.session import SessionSettings, VoiceAgent, VoiceSession, read_exchanges, read_given
from echoic.session.call_record import exchange_with, found_in, why
from echoic.session.turn_recall import CallRecall
from echoic_loopback.realtime import ClientSends, Drop, Pause, Says, Script, SendsRaw, Together, UserSays

ROBIN = VoiceAgent(name="robin", instructions="Be Robin.")
ASKS = UserSays(
    "what is the name of my dog",
    after_ms=300,
    partials=("what is", " the name", " of my dog"),
    early=True,
)
SPEECH_STARTED = "input_audio_buffer.speech_started"


async def one_turn(
    memory, serve, provider, phone, eventually, *, settings=None, asks=ASKS, name="r", deployment="default"
):
    """A call of one question; its first exchange and the stand-in."""
    assert await memory.settle(60)
    script = Script(asks, Says("let me see"), open_ended=True)
    async with serve(provider, script) as (server, model):
        session = VoiceSession(
            memory,
            user="ana",
            agents=[ROBIN],
            model=model,
            session_id=name,
            settings=settings,
            deployment=deployment,
        )
        async with session, phone(session):
            await eventually(lambda: server.sessions and server.sessions[0].script_over)
            await eventually(lambda: session.recorder.kept == 2)
    ana = memory.user("ana", deployment)
    exchanges = await read_exchanges(ana.backing_store, ana.scope, name)
    return next(e for e in exchanges if e.user_turn), server


async def fill(ana):
    await ana.remember("The user's dog is called Rex.")
    for number in range(30):
        await ana.set(f"errand {number}", f"errand number {number} was to buy paper clips of size {number}")


async def test_what_is_recalled_reaches_the_model_before_it_answers(memory, serve, phone, eventually):
    ana = memory.user("ana")
    await fill(ana)
    settings = SessionSettings(block_tokens=40, recall_deadline_ms=30_000)
    exchange, server = await one_turn(memory, serve, "openai", phone, eventually, settings=settings)
    record = server.sessions[0].record
    told = next(
        i
        for i, e in enumerate(record.events)
        if e.kind == "conversation.item.create" and "Rex" in str(e.body)
    )
    asked = next(i for i, e in enumerate(record.events) if e.kind == "response.create" and e.by == "client")
    answered = next(i for i, e in enumerate(record.events) if e.kind == "response.created")
    assert told < asked < answered
    assert exchange.recall.outcome == "complete"
    assert [hit.fate for hit in exchange.recall.found].count("shown") >= 1
    stages = exchange.stages
    assert stages["speech_ended"] <= stages["recalled"] <= stages["handed_over"] <= stages["first_audio"]
    assert stages["first_partial"] <= stages["transcript"] <= stages["recall_began"]


async def test_where_a_provider_cannot_wait_it_is_told_for_the_next_answer(memory, serve, phone, eventually):
    await fill(memory.user("ana"))
    settings = SessionSettings(block_tokens=40, recall_deadline_ms=30_000)
    exchange, _ = await one_turn(memory, serve, "gemini", phone, eventually, settings=settings)
    assert exchange.recall.outcome == "complete"
    assert "handed_over" not in exchange.stages


@pytest.mark.parametrize("final", ["missing", "failed", "held"])
async def test_a_transcript_that_does_not_come_leaves_nobody_without_an_answer(
    memory, serve, phone, eventually, final
):
    script = Script(UserSays("are you there", after_ms=300, final=final), Says("yes I am"), open_ended=True)
    settings = SessionSettings(transcript_wait_s=0.1)
    async with serve("openai", script) as (server, model):
        async with (
            VoiceSession(memory, user="ana", agents=[ROBIN], model=model, settings=settings) as session,
            phone(session),
        ):
            await eventually(lambda: server.sessions and server.sessions[0].script_over)


async def test_a_transcript_sent_twice_is_one_turn_and_asks_for_one_reply(
    memory, provider, serve, phone, eventually
):
    asks = UserSays("my dog is called Rex", after_ms=300, copies=2)
    await one_turn(memory, serve, provider, phone, eventually, asks=asks, name="twice")
    turns = (await memory.user("ana").task("twice")).turns
    assert [turn.text for turn in turns] == ["my dog is called Rex", "let me see"]


async def test_a_caller_who_goes_on_after_a_pause_is_answered_once_at_the_end(
    memory, serve, phone, eventually
):
    async def begins_again(stage):
        await stage.until(lambda: stage.record.kinds("server").count(SPEECH_STARTED) == 2, "the second part")
        await stage.release_transcripts()

    script = Script(
        UserSays("I would like", final="held", after_ms=300),
        Together(UserSays("a table for two", after_ms=100, lasts_ms=5000), begins_again),
        Says("gladly"),
        open_ended=True,
    )
    async with serve("openai", script) as (server, model):
        session = VoiceSession(memory, user="ana", agents=[ROBIN], model=model, session_id="pause")
        async with session, phone(session):
            await eventually(lambda: server.sessions and server.sessions[0].script_over)
            await eventually(lambda: session.recorder.kept == 3)
            kinds = [event.kind for event in server.sessions[0].record.events]
    assert kinds.count("response.create") == 1
    stopped = [place for place, kind in enumerate(kinds) if kind == "input_audio_buffer.speech_stopped"]
    assert kinds.index("response.create") > stopped[1]
    turns = (await memory.user("ana").task("pause")).turns
    assert [turn.text for turn in turns] == ["I would like", "a table for two", "gladly"]


@pytest.mark.parametrize("then", [(), (Drop(),)], ids=["goes on", "is restored"])
async def test_speech_without_an_end_leaves_nothing_that_waits_for_a_transcript(
    memory, serve, phone, eventually, then
):
    burst = {"type": SPEECH_STARTED, "event_id": "e", "audio_start_ms": 0, "item_id": "burst"}
    first = [ClientSends("session.update"), Pause(0.2), SendsRaw(burst)]
    second = [UserSays("my dog is called Rex", after_ms=900), Says("a fine name")]
    scripts = [Script(*first, *then), Script(*second)] if then else [Script(*first, *second)]
    async with serve("openai", *scripts) as (server, model):
        session = VoiceSession(memory, user="ana", agents=[ROBIN], model=model, session_id="burst")
        async with session, phone(session):
            await eventually(lambda: len(server.sessions) == len(scripts) and server.sessions[-1].script_over)
            await eventually(lambda: session.recorder.kept == 2)
            await eventually(lambda: session._at().handler.at_rest(session.live.provider))
            said = next(one for one in session.recorder.log.exchanges if one.user_turn)
    assert "speech_ended" in said.stages, "it is the exchange of what was said, not of the burst"


async def test_a_memory_that_cannot_be_read_does_not_hold_up_the_reply(
    memory, serve, phone, eventually, monkeypatch
):
    script = Script(ASKS, Says("let me see"), open_ended=True)
    async with serve("openai", script) as (server, model):
        session = VoiceSession(memory, user="ana", agents=[ROBIN], model=model)
        async with session, phone(session):

            async def broken(*_args, **_options):
                raise StoreUnavailable("gone")

            monkeypatch.setattr(session.live.recall._listening, "final", broken)
            await eventually(lambda: server.sessions and server.sessions[0].script_over)
            recalls = [exchange.recall for exchange in session.recorder.log.exchanges if exchange.recall]
            assert [recall.outcome for recall in recalls] == ["unavailable"]


async def test_the_call_remembers_every_hit_and_why_each_was_shown_or_not(memory, serve, phone, eventually):
    ana, ben = memory.user("ana"), memory.user("ben")
    await fill(ana)
    dog = (await ana.facts())[0]
    old = await ana.set("dog food", "the dog of the user eats beef, its name is on the bowl")
    await asyncio.sleep(0.01)
    new = await ana.set("dog food", "the dog of the user eats fish, its name is on the bowl")
    gone = await ana.set("dog bed", "the name of the dog is on its bed")
    others = await ben.set("dog lead", "the dog of ben is called Fido")
    settings = SessionSettings(block_tokens=40, recall_deadline_ms=30_000)
    exchange, _ = await one_turn(memory, serve, "openai", phone, eventually, settings=settings)
    await ana.forget(key="dog bed")
    later = await ana.set("dog age", "the dog of the user is four")
    store, scope = ana.backing_store, ana.scope
    turn = exchange.user_turn
    again = await exchange_with(store, scope, turn)
    reasons = {
        "dog": (await why(store, scope, again, dog.id)).reason,
        "old": (await why(store, scope, again, old.id)).reason,
        "gone": (await why(store, scope, again, gone.id)).reason,
        "others": (await why(store, scope, again, others.id)).reason,
        "later": (await why(store, scope, again, later.id)).reason,
        "errand": (await why(store, scope, again, "errand 7")).reason,
    }
    assert reasons == {
        "dog": "shown",
        "old": "superseded",
        "gone": "forgotten",
        "others": "other_scope",
        "later": "later",
        "errand": "ranked_below",
    }
    assert (await why(store, scope, again, new.id)).reason in {"shown", "over_budget", "repeated"}
    ranked = await found_in(store, scope, again)
    assert [answer.rank for answer in ranked] == list(range(1, len(ranked) + 1))
    assert any(answer.text == dog.text for answer in ranked)


async def test_a_hit_that_does_not_fit_or_comes_too_late_is_told_as_that(memory, monkeypatch):
    ana = memory.user("ana")
    for number in range(5):
        await ana.remember(f"The dog of friend {number} is a {'very ' * 60}big dog number {number}.")
    recall = CallRecall(ana, "c", lambda: "", deadline_ms=5000)
    found = await recall.final("tell me about the dogs of my friends")
    assert {hit.fate for hit in found.found} == {"shown", "over_budget"}
    await recall.aclose()

    async def slow(*_args, **_options):
        await asyncio.sleep(5)

    late = CallRecall(ana, "c", lambda: "", deadline_ms=1500)
    monkeypatch.setattr(ana, "pack", slow)
    found = await late.final("tell me about the dogs of my friends")
    assert found.text == ""
    assert {hit.fate for hit in found.found} == {"late"}
    await late.aclose()


async def test_what_was_found_while_the_caller_spoke_is_packed_by_the_time_they_end(
    memory, eventually, monkeypatch
):
    ana = memory.user("ana")
    await ana.remember("The user's dog is called Rex.")
    await memory.settle(30)
    recall = CallRecall(ana, "c", lambda: "", deadline_ms=2000)
    recall.partial("what is the name of my dog")
    await eventually(lambda: recall._prepared is not None and recall._prepared.packing.done())

    async def hangs(*_args, **_options):
        await asyncio.Event().wait()

    monkeypatch.setattr(ana, "pack", hangs)
    found = await recall.final("What is the name of my dog?")
    assert found.ready
    assert "Rex" in found.text
    assert [hit.fate for hit in found.found] == ["shown"]
    await recall.aclose()


async def test_what_was_packed_of_something_that_changed_meanwhile_is_not_handed_over(memory, eventually):
    ana = memory.user("ana")
    await ana.set("dog", "The dog is called Rex")
    recall = CallRecall(ana, "c", lambda: "", deadline_ms=5000)
    for heard in ("what is the name of my", "what is the name of my dog"):
        recall.partial(heard)
        await eventually(lambda: recall._prepared is not None and recall._prepared.packing.done())
    await ana.set("dog", "The dog is called Bello")
    found = await recall.final("what is the name of my dog")
    assert "Bello" in found.text
    assert "Rex" not in found.text
    await recall.aclose()


async def test_what_was_found_before_the_caller_proved_who_they_are_is_looked_up_again(memory):
    ana = memory.user("ana", level="attested")
    await memory.user("ana").remember("The user takes insulin.")
    recall = CallRecall(ana, "c", lambda: "", deadline_ms=60_000)
    asked = "what do I know about insulin"
    assert "takes insulin" not in (await recall.final(asked)).text
    recall.partial(asked)
    await asyncio.gather(*recall._listening._running)
    ana.step_up("proved")
    assert "takes insulin" in (await recall.final(asked)).text
    await recall.aclose()


async def test_what_the_model_was_given_while_the_caller_spoke_is_not_given_again(memory, eventually):
    ana = memory.user("ana")
    dog = await ana.remember("The user's dog is called Rex.")
    block = ""
    recall = CallRecall(ana, "c", lambda: block, deadline_ms=5000)
    recall.partial("what is the name of my dog")
    await eventually(lambda: recall._prepared is not None and recall._prepared.packing.done())
    block = memory_line(dog)
    found = await recall.final("what is the name of my dog")
    assert (found.text, [hit.fate for hit in found.found]) == ("", ["in_block"])
    await recall.aclose()


async def test_no_time_to_look_is_not_the_same_as_ranked_below(memory, serve, phone, eventually):
    ana = memory.user("ana")
    dog = await ana.remember("The user's dog is called Rex.")
    exchange, _ = await one_turn(memory, serve, "openai", phone, eventually)
    store, scope = ana.backing_store, ana.scope
    none_in_time = replace(exchange, recall=replace(exchange.recall, outcome="deadline", found=()))
    assert (await why(store, scope, none_in_time, dog.id)).reason == "not_looked"
    before = replace(exchange, recall=None, at=datetime.now(UTC) - timedelta(days=1))
    assert (await why(store, scope, before, dog.id)).reason == "later"


async def test_what_the_model_was_given_is_kept_as_it_was_sent(memory, provider, serve, phone, eventually):
    ana = memory.user("ana")
    await ana.set("home", "Lisbon")
    _, server = await one_turn(memory, serve, provider, phone, eventually)
    given = await read_given(ana.backing_store, ana.scope, "r", "r")
    sent = str(server.sessions[0].record.received())
    assert any("Lisbon" in each.text for each in given)
    for each in given:
        if "Lisbon" in each.text:
            line = next(line for line in each.text.splitlines() if "Lisbon" in line)
            assert line.replace('"', '\\"') in sent or line in sent


async def test_a_call_that_is_not_to_be_written_down_is_not(memory, serve, phone, eventually):
    script = Script(ASKS, Says("let me see"), open_ended=True)
    async with serve("openai", script) as (server, model):
        session = VoiceSession(
            memory,
            user="ana",
            agents=[ROBIN],
            model=model,
            session_id="q",
            settings=SessionSettings(record=False),
        )
        async with session, phone(session):
            await eventually(lambda: server.sessions and server.sessions[0].script_over)
    ana = memory.user("ana")
    assert await read_exchanges(ana.backing_store, ana.scope, "q") == []
    assert (await ana.task("q")).turns
