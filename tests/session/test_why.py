"""`why` after calls that were really made: for each way in which a memory may not be before the model, one.

What is common to recall and record stands in `test_recall.py`; here every reason is planted, and asked for
as `echoic why` asks, from what was written down.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from echoic.session import SessionSettings, VoiceAgent, VoiceSession
from echoic.session.call_record import CallLog, CallRecord, exchange_with, why
from echoic_loopback.realtime import Says, Script, UserSays
from session.conftest import BY_ONE_PROVIDER

ROBIN = VoiceAgent(name="robin", instructions="Be Robin.")
QUESTION = "tell me about the dogs of my friends"
PATIENT = SessionSettings(block_tokens=40, recall_deadline_ms=60_000)


async def asked(memory, serve, phone, eventually, provider, *, settings=PATIENT, before_recall=None):
    """A call of one question; its user turn, as it is kept."""
    said = UserSays(QUESTION, after_ms=300, partials=("tell me", " about the dogs"), early=True)
    async with serve(provider, Script(said, Says("let me see"), open_ended=True)) as (server, model):
        session = VoiceSession(
            memory, user="ana", agents=[ROBIN], model=model, session_id="w", settings=settings
        )
        async with session, phone(session):
            if before_recall is not None:
                before_recall(session)
            await eventually(lambda: server.sessions and server.sessions[0].script_over)
            await eventually(lambda: session.recorder.kept == 2)
    return (await memory.user("ana").task("w")).turns[0].id


async def reason(memory, turn, name):
    ana = memory.user("ana")
    exchange = await exchange_with(ana.backing_store, ana.scope, turn)
    return (await why(ana.backing_store, ana.scope, exchange, name)).reason


async def with_long_ones(ana):
    return [
        await ana.remember(f"The dog of friend {number} is a {'very ' * 60}big dog number {number}.")
        for number in range(5)
    ]


@BY_ONE_PROVIDER
async def test_what_does_not_fit_is_over_budget(memory, provider, serve, phone, eventually):
    long = await with_long_ones(memory.user("ana"))
    turn = await asked(memory, serve, phone, eventually, provider)
    reasons = [await reason(memory, turn, each.id) for each in long]
    assert set(reasons) == {"shown", "over_budget"}


@BY_ONE_PROVIDER
async def test_what_was_corrected_before_the_turn_is_superseded(memory, provider, serve, phone, eventually):
    ana = memory.user("ana")
    old = await ana.set("dog", "the dog of my friend Jo is Rex")
    new = await ana.set("dog", "the dog of my friend Jo is Bello")
    turn = await asked(memory, serve, phone, eventually, provider)
    assert await reason(memory, turn, old.id) == "superseded"
    assert await reason(memory, turn, new.id) in {"shown", "in_block"}


@BY_ONE_PROVIDER
async def test_what_is_anothers_is_in_another_scope(memory, provider, serve, phone, eventually):
    theirs = await memory.user("ben").remember("The dog of my friend is called Fido.")
    turn = await asked(memory, serve, phone, eventually, provider)
    assert await reason(memory, turn, theirs.id) == "other_scope"


@BY_ONE_PROVIDER
async def test_what_was_shown_and_then_forgotten_is_forgotten(memory, provider, serve, phone, eventually):
    ana = memory.user("ana")
    gone = await ana.set("friends", "the dogs of my friends are called Rex and Bello")
    turn = await asked(memory, serve, phone, eventually, provider)
    assert await reason(memory, turn, gone.id) in {"shown", "in_block"}
    await ana.forget(key="friends")
    assert await reason(memory, turn, gone.id) == "forgotten"
    assert await reason(memory, turn, "what was never known") == "forgotten"


@BY_ONE_PROVIDER
async def test_what_was_found_when_there_was_no_time_left_is_late(
    memory, provider, serve, phone, eventually, monkeypatch
):
    long = await with_long_ones(memory.user("ana"))

    def hang(session):
        async def never(*_args, **_options):
            await asyncio.Event().wait()

        monkeypatch.setattr(session.memory, "pack", never)

    settings = SessionSettings(block_tokens=40, recall_deadline_ms=600)
    turn = await asked(memory, serve, phone, eventually, provider, settings=settings, before_recall=hang)
    assert {await reason(memory, turn, each.id) for each in long} == {"late"}


@BY_ONE_PROVIDER
@pytest.mark.parametrize("settings", [SessionSettings(recall="off")])
async def test_where_nothing_is_recalled_that_is_the_reason(
    memory, provider, serve, phone, eventually, settings
):
    dog = await memory.user("ana").remember("The dog of my friend is called Rex.")
    turn = await asked(memory, serve, phone, eventually, provider, settings=settings)
    assert await reason(memory, turn, dog.id) == "no_recall"


def test_a_call_that_another_process_began_goes_on_counting_from_its_beginning():
    began = datetime.now(UTC) - timedelta(minutes=1)
    call = CallRecord(id="w", conversation="w", provider="", model="", started_at=began, agents=["robin"])
    log = CallLog(call, first=3)
    assert log.stamp("transcript", log.begin("robin")) >= 60_000


def test_a_stage_that_was_reached_before_is_not_written_again():
    """Every frame that is played reaches one."""
    call = CallRecord(
        id="w", conversation="w", provider="", model="", started_at=datetime.now(UTC), agents=["robin"]
    )
    log = CallLog(call)
    reached = log.stamp("first_played", log.begin("robin"))
    with log.news() as news:
        assert news
    assert log.stamp("first_played") == reached
    with log.news() as news:
        assert not news
