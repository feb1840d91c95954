"""What is kept of a call, and as which turn."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, SpeechPart, ToolReturnPart, UserPromptPart

from echoic.memory import concurrency
from echoic.session.history import turns_in
from echoic.session.hooks import CallHooks
from echoic.session.playback import Utterance
from echoic.session.provider import CallerUtterance
from echoic.session.speech_alignment import SpeechTrace
from echoic.session.turn_collector import TurnCollector

WHOLE = "where do I live"


@pytest.fixture
def provider():
    message = ModelRequest(parts=[SpeechPart(speaker="user", transcript=WHOLE)])
    return SimpleNamespace(
        name="leg",
        kept=0,
        said={},
        utterances={},
        silent=False,
        ended=asyncio.Event(),
        new_messages=lambda: [message],
        setup=SimpleNamespace(opening_texts=[]),
    )


@pytest.fixture
def collector(provider):
    live = SimpleNamespace(
        providers=[provider],
        provider=provider,
        confidences=SimpleNamespace(of=lambda _: None),
        undecided=set(),
        playback=SimpleNamespace(idle=True),
        host=None,
    )
    return TurnCollector(live, lambda _: None, lambda _: None)


def kept(collector):
    return [(ripe.turn.id, ripe.turn.text) for ripe in collector._ripe()]


async def test_words_that_were_shown_are_kept_as_the_turn_they_were_shown_as(collector, provider):
    """The history may have the end of an utterance before the event of it was taken in."""
    provider.said[0] = CallerUtterance("shown", "where do I")
    assert kept(collector) == []
    provider.said[0].text, provider.said[0].final = WHOLE, True
    assert kept(collector) == [("shown", WHOLE)]


@pytest.mark.parametrize("speaker", ["user", "assistant"])
async def test_what_is_recorded_before_its_events_were_taken_in_is_kept_once_they_were(
    collector, provider, speaker
):
    """Else it would be kept as another turn than it is shown as, and an answer as if all of it was heard."""
    kind = ModelRequest if speaker == "user" else ModelResponse
    message = kind(parts=[SpeechPart(speaker=speaker, transcript=WHOLE)])
    provider.new_messages = lambda: [message]
    assert kept(collector) == []
    if speaker == "user":
        provider.said[0] = CallerUtterance("shown", WHOLE, final=True)
    else:
        trace = SpeechTrace(24_000)
        trace.wrote(WHOLE)
        provider.utterances[0] = Utterance("shown", "agent", trace, ended=True)
    assert kept(collector) == [("shown", WHOLE)]


async def test_what_was_given_at_the_beginning_is_noted_before_the_caller_can_speak(collector, provider):
    """Else a busy machine counts it to the caller's first turn."""
    given = []
    collector._live.log = SimpleNamespace(give=lambda *what: given.append(what))
    provider.setup.opening_texts = [("memories", "likes tea")]
    collector.start()
    assert given == [("instructions", "memories", "likes tea")]
    collector._task.cancel()


async def test_what_happens_together_is_stored_at_once(collector, monkeypatch):
    """The end of a reply is several events, and each is a reason to store."""
    monkeypatch.setattr("echoic.session.turn_collector._TOGETHER_S", 0.5)
    live, cycles = collector._live, []

    async def cycle(*, checkpoint):
        cycles.append(checkpoint)

    monkeypatch.setattr(collector, "_cycle", cycle)
    live.dirty = asyncio.Event()
    live.settings = SimpleNamespace(checkpoint_every_s=60, idle_timeout_s=None, max_duration_s=None)
    collector.start()
    for _ in range(3):
        live.dirty.set()
        await asyncio.sleep(0.001)
    await collector.caught_up(30)
    await collector._stop()
    assert cycles == [True]


async def test_a_store_that_loses_a_cancellation_keeps_no_call_from_ending(collector, monkeypatch):
    monkeypatch.setattr(concurrency, "_CANCEL_AGAIN_S", 0.01)
    live, begun = collector._live, asyncio.Event()

    async def cycle(*, checkpoint):
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):  # as asyncio.wait_for of Python 3.11 does at times
            await asyncio.Event().wait()

    monkeypatch.setattr(collector, "_cycle", cycle)
    live.dirty = asyncio.Event()
    live.settings = SimpleNamespace(checkpoint_every_s=60, idle_timeout_s=None, max_duration_s=None)
    collector.start()
    live.dirty.set()
    await begun.wait()
    async with asyncio.timeout(30):
        await collector._stop()


async def test_a_listener_that_loses_a_cancellation_keeps_no_call_from_ending(monkeypatch):
    monkeypatch.setattr(concurrency, "_CANCEL_AGAIN_S", 0.01)

    async def loses(_context, _event):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    hooks = CallHooks(loses)
    hooks.tell(None, "state")
    hooks.tell(None, "state")
    async with asyncio.timeout(30):
        await hooks.aclose(timeout_s=0.01)


async def test_a_line_that_took_in_nothing_or_ended_is_waited_for_no_longer(collector, provider, monkeypatch):
    monkeypatch.setattr("echoic.session.turn_collector._UNSEEN_S", 0)
    assert kept(collector) == [("leg-0", WHOLE)]
    provider.said[0] = CallerUtterance("next", "and what about")
    assert kept(collector) == [("leg-0", WHOLE)]
    provider.said[0] = CallerUtterance("shown", "where do I")
    provider.ended.set()
    assert kept(collector) == [("leg-0", WHOLE)]


async def test_what_a_tool_has_the_model_read_is_no_turn_and_what_the_caller_typed_is_one(
    collector, provider
):
    typed = ModelRequest(parts=[UserPromptPart("My name is Pavel.")])
    enqueued = ModelRequest(parts=[UserPromptPart("My name is Mallory.")])
    result = ToolReturnPart(tool_name="look", content="ok", tool_call_id="1")
    returned = ModelRequest(parts=[result, UserPromptPart("My name is Pavel.")])
    provider.said[-1] = CallerUtterance("typed", "My name is Pavel.", final=True)
    provider.new_messages = lambda: [returned, enqueued, typed]
    assert [ripe.turn and (ripe.turn.id, ripe.turn.text) for ripe in collector._ripe()] == [
        None,
        ("typed", "My name is Pavel."),
    ]
    assert turns_in([returned, typed]) == 1
