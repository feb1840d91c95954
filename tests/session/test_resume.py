"""A process dies in the middle of a call, and another goes on with it."""

# ruff: noqa: SIM117 - a provider's life encloses the calls that are made to it
from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic_ai.realtime.google import GoogleRealtimeConnection

import echoic
import forked
from echoic import InvalidInput
from echoic.embedding import embedder_from
from echoic.errors import StoreUnavailable, WriteConflict
from echoic.memory.background import Background
from echoic.memory.checkpoints import Checkpoint, PendingTool, RecordSessionStore
from echoic.memory.records import CHECKPOINT
from echoic.memory.service import MemoryService
from echoic.session import SessionSettings, VoiceAgent, VoiceSession, as_json, from_json, read_call, recorder
from echoic.session.history import UNFINISHED
from echoic.stores import store_from
from echoic.types import Turn
from echoic_loopback.realtime import Calls, Says, Script, ToolCall, UserSays
from session import calling
from session.conftest import BY_ONE_PROVIDER

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
PROGRAM = Path(__file__).parent / "calling.py"


class Child:
    """The call in a process of its own."""

    def __init__(self, provider, server, store, ledger):
        self.arguments = [provider, server.base_url, store, str(ledger)]
        self.trusting = server.trusted() if provider == "gemini" else contextlib.nullcontext()
        self.process = None

    async def __aenter__(self):
        self.trusting.__enter__()  # its file is there for as long as the child is
        command = [sys.executable, str(PROGRAM), *self.arguments]
        self.process = await asyncio.to_thread(forked.Popen, command, env=dict(os.environ))
        return self

    async def kill(self):
        self.process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self.process.wait)

    async def __aexit__(self, *_):
        if self.process.poll() is None:
            await self.kill()
        self.trusting.__exit__(None, None, None)


async def checkpoint_in(service):
    records = await service.user("ana").backing_store.read(service.user("ana").scope, CHECKPOINT, ["call"])
    return from_json(records[0].data) if records else None


@pytest.mark.crash
async def test_a_call_killed_in_mid_sentence_is_gone_on_with_by_another_process(
    tmp_path, provider, serve, phone, eventually
):
    store = f"sqlite:///{tmp_path}/echoic.db"
    ledger = tmp_path / "ledger"
    first = Script(
        UserSays("my name is Pavel", after_ms=300),
        Says("hello Pavel"),
        UserSays("count for me", after_ms=4000),
        Says(LONG),
        open_ended=True,
    )
    second = Script(Says("where was I"), UserSays("thank you", after_ms=2000), Says("goodbye Pavel"))
    async with (
        serve(provider, first, second) as (server, model),
        echoic.open(store, embedder="lexical") as memory,
    ):
        async with Child(provider, server, store, ledger) as child:

            async def in_mid_sentence():
                checkpoint = await checkpoint_in(memory)
                spoken = [turn for turn in checkpoint.unkept if turn.text == LONG] if checkpoint else []
                return bool(spoken) and 3 <= len((spoken[0].heard or "").split()) < 12

            await eventually(in_mid_sentence, 30)
            await child.kill()
        session = await VoiceSession.resume(
            memory, "call", user="ana", agents=calling.agents_with(ledger, hang=False), model=model
        )
        async with session, phone(session):
            assert session.current_agent == "desk"
            await eventually(lambda: server.sessions[1].script_over, 60)
            await eventually(lambda: session.live.playback.idle)
            seeded = str(server.sessions[1].record.received())
        turns = (await memory.user("ana").task("call")).turns
        assert await checkpoint_in(memory) is None, "a clean end leaves none"
    assert [turn.text for turn in turns] == [
        "my name is Pavel",
        "hello Pavel",
        "count for me",
        LONG,
        "where was I",
        "thank you",
        "goodbye Pavel",
    ]
    heard = turns[3].heard
    assert heard is not None
    assert LONG.startswith(heard)
    assert len(heard.split()) < 15
    assert "my name is Pavel" in seeded
    assert "fifteen" not in seeded, "what was not heard is not in the history it goes on with"
    assert "order desk" in seeded


@BY_ONE_PROVIDER
@pytest.mark.crash
async def test_what_was_being_said_on_a_killed_call_is_kept_when_the_caller_calls_anew(
    tmp_path, provider, serve, eventually
):
    store, ledger = f"sqlite:///{tmp_path}/echoic.db", tmp_path / "ledger"
    first = Script(UserSays("count for me", after_ms=300), Says(LONG), open_ended=True)
    async with (
        serve(provider, first, *[Script(open_ended=True)] * 3) as (server, model),
        echoic.open(store, embedder="lexical") as memory,
    ):
        ana = memory.user("ana")
        async with Child(provider, server, store, ledger) as child:

            async def in_mid_sentence():
                checkpoint = await checkpoint_in(memory)
                spoken = [turn for turn in checkpoint.unkept if turn.text == LONG] if checkpoint else []
                return bool(spoken) and len((spoken[0].heard or "").split()) >= 3

            await eventually(in_mid_sentence, 30)
            await child.kill()
        before = await checkpoint_in(memory)
        agents = calling.agents_with(ledger, hang=False)
        options = {"user": "ana", "agents": agents, "model": model, "settings": calling.SETTINGS}
        patient = {**options, "settings": SessionSettings(checkpoint_every_s=60)}
        async with VoiceSession(memory, session_id="at once", **patient):
            assert (await checkpoint_in(memory)) == before, "it may live: its next checkpoint is not due"
        await asyncio.sleep(10 * calling.SETTINGS.checkpoint_every_s)
        async with VoiceSession(memory, session_id="another", **options):
            assert (await checkpoint_in(memory)).unkept == ()
            kept = (await ana.task("call")).turns
        async with await VoiceSession.resume(memory, "call", **options) as resumed:
            assert resumed.recorder.kept == before.cursor + len(before.unkept) == 2
        assert (await ana.task("call")).turns == kept
    assert [turn.text for turn in kept] == ["count for me", LONG]
    assert kept[1].heard == before.unkept[-1].heard


@pytest.mark.crash
async def test_a_killed_call_that_nobody_ever_takes_up_is_closed_as_at_its_end(tmp_path, serve, eventually):
    store, ledger = f"sqlite:///{tmp_path}/echoic.db", tmp_path / "ledger"
    first = Script(UserSays("my name is Pavel", after_ms=300), Says(LONG), open_ended=True)

    def opened(hours):
        """Memory, by whose clock so many hours have passed."""
        return MemoryService(
            store_from(store),
            embedder_from("lexical"),
            clock=lambda: datetime.now(UTC) + timedelta(hours=hours),
        )

    async with serve("openai", first) as (server, model):
        async with opened(0) as memory, Child("openai", server, store, ledger) as child:

            async def in_mid_sentence():
                checkpoint = await checkpoint_in(memory)
                spoken = [turn for turn in checkpoint.unkept if turn.text == LONG] if checkpoint else []
                return bool(spoken) and len((spoken[0].heard or "").split()) >= 3

            await eventually(in_mid_sentence, 30)
            await child.kill()
        async with opened(23) as memory:
            await memory.distil()
            before = await checkpoint_in(memory)
            assert before is not None, "it can still be taken up"
        async with opened(25) as memory:
            await memory.distil()
            assert await checkpoint_in(memory) is None
            ana = memory.user("ana")
            task = await ana.task("call")
            call = await read_call(ana.backing_store, ana.scope, "call")
            agents = calling.agents_with(ledger, hang=False)
            with pytest.raises(InvalidInput, match="to resume; start a new one"):
                await VoiceSession.resume(memory, "call", user="ana", agents=agents, model=model)
            assert (await ana.get("user_name")).text == "Pavel"
    assert [turn.text for turn in task.turns] == ["my name is Pavel", LONG]
    assert task.turns[1].heard == before.unkept[-1].heard
    assert task.conversation.distilled
    assert (call.ended_at, call.reason) == (before.saved_at, "abandoned")


async def test_a_call_in_which_nobody_says_anything_gives_signs_of_life(
    memory, serve, eventually, monkeypatch
):
    monkeypatch.setattr(recorder, "SIGN_EVERY_S", 0.05)
    robin = VoiceAgent(name="robin")
    async with serve("openai", Script(open_ended=True)) as (_, model):
        session = VoiceSession(memory, user="ana", agents=[robin], model=model, session_id="call")
        signs = {}
        async with session:

            async def signs_and_nothing_new():
                checkpoint = await checkpoint_in(memory)
                if checkpoint is not None:
                    state = as_json(replace(checkpoint, saved_at=datetime.min.replace(tzinfo=UTC)))
                    signs.setdefault(str(state), set()).add(checkpoint.saved_at)
                return any(len(times) > 2 for times in signs.values())

            await eventually(signs_and_nothing_new)


async def test_who_calls_beside_a_call_that_waits_for_the_end_of_a_sentence_does_not_take_it_over(
    memory, serve, phone, eventually
):
    options = {"user": "ana", "agents": [VoiceAgent(name="robin")], "settings": calling.SETTINGS}
    stuck = UserSays("my name is Pavel", partials=("my name",), final="held")
    async with serve("openai", Script(stuck, open_ended=True), Script(open_ended=True)) as (_, model):
        session = VoiceSession(memory, session_id="call", model=model, **options)
        signs = {}
        async with session, phone(session):

            async def signs_while_words_are_on_their_way():
                checkpoint = await checkpoint_in(memory)
                if checkpoint is not None and checkpoint.unkept:
                    state = as_json(replace(checkpoint, saved_at=datetime.min.replace(tzinfo=UTC)))
                    signs.setdefault(str(state), set()).add(checkpoint.saved_at)
                return any(len(times) > 7 for times in signs.values())

            await eventually(signs_while_words_are_on_their_way)
            before = await checkpoint_in(memory)
            async with VoiceSession(memory, session_id="another", model=model, **options):
                assert (await checkpoint_in(memory)).unkept == before.unkept
            assert not session.live.lost


@pytest.mark.crash
async def test_a_pending_tool_is_run_again_only_where_that_does_no_harm(
    tmp_path, provider, serve, phone, eventually
):
    store, ledger = f"sqlite:///{tmp_path}/echoic.db", tmp_path / "ledger"
    first = Script(
        UserSays("check and pay order four", after_ms=300),
        Calls(ToolCall("check", {"order": "four"}), ToolCall("pay", {"order": "four"})),
        open_ended=True,
    )
    async with serve(provider, first, Script(Says("it is on its way"))) as (server, model):
        async with echoic.open(store, embedder="lexical") as memory:
            async with Child(provider, server, store, ledger) as child:

                async def both_pending():
                    checkpoint = await checkpoint_in(memory)
                    return checkpoint is not None and len(checkpoint.pending) == 2

                await eventually(both_pending, 30)
                await child.kill()
            assert sorted(ledger.read_text().split("\n")[:-1]) == ["check four", "pay four"]
            session = await VoiceSession.resume(
                memory, "call", user="ana", agents=calling.agents_with(ledger, hang=False), model=model
            )
            async with session, phone(session):
                await eventually(lambda: server.sessions[1].script_over, 60)
                seeded = str(server.sessions[1].record.received())
    assert sorted(ledger.read_text().split("\n")[:-1]) == ["check four", "check four", "pay four"]
    assert "order four is on its way" in seeded
    assert UNFINISHED[:40] in seeded


async def test_a_call_can_be_gone_on_with_on_another_provider(memory, serve, phone, eventually):
    robin = VoiceAgent(name="robin", instructions="Be Robin.")
    first = Script(UserSays("I like jazz", after_ms=300), Says("so do I"), open_ended=True)
    async with serve("openai", first) as (server, model):
        session = VoiceSession(memory, user="ana", agents=[robin], model=model, session_id="moves")
        async with session, phone(session):
            await eventually(lambda: session.recorder.kept == 2)
            await session.suspend()
        assert session.reason == "suspended"
    async with serve("gemini", Script(UserSays("what do I like", after_ms=300), Says("jazz"))) as (
        server,
        model,
    ):
        again = await VoiceSession.resume(memory, "moves", user="ana", agents=[robin], model=model)
        async with again, phone(again):
            await eventually(lambda: server.sessions[0].script_over)
            await eventually(lambda: again.live.playback.idle)
        assert "I like jazz" in str(server.sessions[0].record.received())
    turns = (await memory.user("ana").task("moves")).turns
    assert [turn.text for turn in turns] == ["I like jazz", "so do I", "what do I like", "jazz"]


@BY_ONE_PROVIDER
async def test_what_a_process_died_before_learning_from_is_known_from_the_first_word(
    memory, provider, serve, phone, eventually, monkeypatch
):
    monkeypatch.setattr(Background, "poke", lambda *_, **__: None)  # as if it died at once
    robin = VoiceAgent(name="robin")
    talk = await memory.user("ana").conversation("talk")
    said = Turn(speaker="user", text="my name is Pavel", id="talk-1", conversation="talk")
    await talk.append(replace(said, id="talk-0", text="I live in Lisbon"))
    ours = memory.user("ana")
    checkpoint = Checkpoint(
        session="died",
        conversation="talk",
        agent="robin",
        messages="[]",
        unkept=(said,),
        saved_at=datetime.now(UTC),
    )
    assert not await ours.facts()
    await RecordSessionStore(ours.backing_store).save(ours.scope, checkpoint)
    async with serve(provider, Script(open_ended=True)) as (server, model):
        again = await VoiceSession.resume(memory, "died", user="ana", agents=[robin], model=model)
        async with again:
            await eventually(server.sessions[0].record.received)
            first = str(await eventually(lambda: server.sessions[0].record.received()[:2][1:]))
    assert "Pavel" in first
    assert "Lisbon" in first


async def test_a_call_of_another_user_or_one_that_ended_is_not_found(memory, serve):
    robin = VoiceAgent(name="robin")
    async with serve("openai", Script(open_ended=True)) as (_, model):
        session = VoiceSession(memory, user="ana", agents=[robin], model=model, session_id="mine")
        async with session:
            await session.suspend()
        with pytest.raises(InvalidInput, match="to resume; start a new one"):
            await VoiceSession.resume(memory, "mine", user="ben", agents=[robin], model=model)
        with pytest.raises(InvalidInput, match="to resume; start a new one"):
            await VoiceSession.resume(
                memory, "mine", user="ana", deployment="other", agents=[robin], model=model
            )
        await VoiceSession.resume(memory, "mine", user="ana", agents=[robin], model=model)


async def test_a_call_that_another_process_took_over_writes_nothing_more(memory, serve, phone, eventually):
    robin = VoiceAgent(name="robin")
    script = Script(UserSays("hello", after_ms=300), Says("hi"), open_ended=True)
    async with serve("openai", script, Script(open_ended=True)) as (_, model):
        session = VoiceSession(memory, user="ana", agents=[robin], model=model, session_id="two")
        async with session, phone(session):
            await eventually(lambda: session.recorder.kept == 2)
            await asyncio.sleep(0.3)
            other = await VoiceSession.resume(memory, "two", user="ana", agents=[robin], model=model)
            async with other:
                await eventually(lambda: other.recorder.kept)
                await asyncio.sleep(0.2)
                session.recorder._before += 1
                session.live.dirty.set()
                async with asyncio.timeout(60):
                    assert await session.wait_closed() == "taken over"
                assert other.state == "active"


async def test_a_process_that_ends_leaves_the_call_to_whoever_took_it_over(memory, serve):
    robin = VoiceAgent(name="robin")
    ours = memory.user("ana")
    async with serve("openai", Script(open_ended=True), Script(open_ended=True)) as (_, model):
        session = VoiceSession(memory, user="ana", agents=[robin], model=model, session_id="call")
        async with session:
            recorder = session._running._collector
            await recorder._stop()  # it hangs, and does not notice
            await recorder._cycle(checkpoint=True)
            other = await VoiceSession.resume(memory, "call", user="ana", agents=[robin], model=model)
            async with other:
                await other._running._collector._stop()
                await other._running._collector._cycle(checkpoint=True)
                await session.close("idle")
                assert await checkpoint_in(memory) is not None
                assert (await ours.find_conversation("call")).status == "active"
                other.recorder._before = 99
                await other._running._collector._cycle(checkpoint=True)
                assert (await checkpoint_in(memory)).cursor == 99
                assert other.state == "active"
    assert await checkpoint_in(memory) is None, "whoever has the call ends it"


class Unanswered:
    """A store that does what it is asked to, and says once that it is not there."""

    def __init__(self, store):
        self._store, self._left = store, 1

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def write(self, *given):
        await self._store.write(*given)
        if self._left:
            self._left = 0
            raise StoreUnavailable("the answer got lost")


def of_a_call(summary):
    now = datetime.now(UTC)
    return Checkpoint(
        session="call", conversation="call", agent="robin", messages="[]", summary=summary, saved_at=now
    )


async def test_a_checkpoint_whose_answer_was_lost_is_not_taken_for_a_takeover(memory):
    ours = memory.user("ana")
    await ours.conversation("call")
    sessions = RecordSessionStore(Unanswered(ours.backing_store))
    with pytest.raises(StoreUnavailable):
        await sessions.save(ours.scope, of_a_call("first"))
    for summary in ("second", "third"):
        await sessions.save(ours.scope, of_a_call(summary))
        assert (await checkpoint_in(memory)).summary == summary
    await sessions.delete(ours.scope, "call")
    assert await checkpoint_in(memory) is None


async def test_a_takeover_is_noticed_even_by_who_did_not_hear_of_its_own_checkpoint(memory):
    ours = memory.user("ana")
    await ours.conversation("call")
    sessions, others = (
        RecordSessionStore(Unanswered(ours.backing_store)),
        RecordSessionStore(ours.backing_store),
    )
    with pytest.raises(StoreUnavailable):
        await sessions.save(ours.scope, of_a_call("first"))
    await others.load(ours.scope, "call")
    await others.save(ours.scope, of_a_call("theirs"))
    with pytest.raises(WriteConflict):
        await sessions.save(ours.scope, of_a_call("second"))
    with pytest.raises(WriteConflict):
        await sessions.delete(ours.scope, "call")
    assert (await checkpoint_in(memory)).summary == "theirs"


async def test_forgetting_the_caller_in_mid_call_brings_nothing_back(memory, serve, phone, eventually):
    robin = VoiceAgent(name="robin")
    script = Script(UserSays("my name is Pavel", after_ms=300), Says("hello"), open_ended=True)
    async with serve("openai", script) as (_, model):
        session = VoiceSession(memory, user="ana", agents=[robin], model=model, session_id="gone")
        async with session, phone(session):
            await eventually(lambda: session.recorder.kept == 2)
            await eventually(lambda: not session.live.dirty.is_set())
            await asyncio.sleep(0.2)
            await memory.user("ana").forget()
            session.recorder._before += 1
            session.live.dirty.set()
            async with asyncio.timeout(60):
                assert await session.wait_closed() == "forgotten"
    assert "ana" not in await memory.users()


async def test_a_checkpoint_that_was_on_its_way_while_all_was_forgotten_is_not_kept(memory):
    ours = memory.user("ana")
    for forgotten in ({}, {"conversation": "call"}):
        await ours.conversation("call")
        await ours.forget(**forgotten)
        with pytest.raises(WriteConflict):
            await RecordSessionStore(ours.backing_store).save(ours.scope, of_a_call("what was said"))
        assert await checkpoint_in(memory) is None
    assert "ana" not in await memory.users()


def test_a_checkpoint_comes_back_from_json_as_it_was():
    at = datetime(2026, 11, 20, 12, tzinfo=UTC)
    checkpoint = Checkpoint(
        session="s",
        conversation="c",
        agent="robin",
        messages="[]",
        unkept=(
            Turn(
                id="t",
                conversation="c",
                speaker="agent",
                text="one two",
                heard="one",
                said_at=at,
                confidence=0.5,
            ),
        ),
        pending=(PendingTool(call="1", name="check", arguments={"order": "four"}, idempotent=True),),
        summary="about order four",
        cursor=3,
        saved_at=at,
    )
    assert from_json(as_json(checkpoint)) == checkpoint
    with pytest.raises(InvalidInput, match="not a checkpoint"):
        from_json({"session": "s"})


def test_geminis_handle_is_still_where_it_is_read():
    assert "_resumption_handle" in GoogleRealtimeConnection.__init__.__code__.co_names
