"""Pipecat with Echoic: real pipelines with a real OpenAI service, which talks to an endpoint on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import runpy
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from loguru import logger
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    CancelFrame,
    EndFrame,
    EndWorkerFrame,
    InputAudioRawFrame,
    InterimTranscriptionFrame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMRunFrame,
    LLMTextFrame,
    StartFrame,
    TranscriptionFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import (
    LLMContextAggregatorPair,
    LLMUserAggregatorParams,
)
from pipecat.processors.filters.identity_filter import IdentityFilter
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.tests.utils import SleepFrame, run_test
from pipecat.turns.user_start import TranscriptionUserTurnStartStrategy
from pipecat.turns.user_stop import SpeechTimeoutUserTurnStopStrategy
from pipecat.turns.user_turn_strategies import UserTurnStrategies
from pipecat.utils.text.base_text_aggregator import TextType
from pipecat.utils.time import time_now_iso8601
from pipecat.workers.runner import WorkerRunner

import echoic
from echoic.embedding import LexicalEmbedder
from echoic.errors import NotOpen, StoreUnavailable
from echoic.integrations.pipecat import EchoicMemory, with_memory
from echoic.prompt.answer import NOT_ALL_SEEN, UNREAD
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Says, Script, UserSays, silence

logger.remove()
logger.add(sys.stderr, level="WARNING")

TEACHES = "Hi I'm Ana and I'm allergic to peanuts."
ASKS = "What am I allergic to?"
LONG = " ".join(["Nice to meet you Ana, I will remember that you are allergic to peanuts."] * 3)
WORD_S = 0.03  # as fast as speech output speaks here
PATIENT_MS = 5000.0
SYSTEM = {"role": "system", "content": "You are Pip."}


class Endpoint:
    """A chat-completions endpoint that answers as it is told: with words, or with a tool call."""

    def __init__(self):
        self.answers, self.requests = ["Noted."], []
        app = FastAPI()

        @app.post("/v1/chat/completions")
        async def complete(request: Request):
            self.requests.append((await request.json())["messages"])
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            return StreamingResponse(self._stream(answer), media_type="text/event-stream")

        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error")
        self.server = uvicorn.Server(config)

    async def _stream(self, answer):
        if isinstance(answer, dict):
            function = {"name": answer["name"], "arguments": json.dumps(answer["arguments"])}
            calls = [{"index": 0, "id": "tool-1", "type": "function", "function": function}]
            deltas, reason = [{"role": "assistant", "tool_calls": calls}], "tool_calls"
        else:
            deltas = [{"role": "assistant", "content": f"{word} "} for word in answer.split(" ")]
            reason = "stop"
        for delta in deltas:
            yield self._chunk(delta, None)
        yield self._chunk({}, reason) + "data: [DONE]\n\n"

    @staticmethod
    def _chunk(delta, reason):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        whole = {
            "id": "x",
            "created": 1,
            "model": "m",
            "object": "chat.completion.chunk",
            "choices": [choice],
        }
        return f"data: {json.dumps(whole)}\n\n"

    @property
    def sent(self):
        """What the model was asked last: roles and texts."""
        return [(message["role"], message.get("content")) for message in self.requests[-1]]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}/v1"


@pytest.fixture
async def endpoint():
    made = Endpoint()
    serving = asyncio.ensure_future(made.server.serve())
    while not made.server.started:
        await asyncio.sleep(0.01)
    yield made
    made.server.should_exit = True
    await serving


class Voice(FrameProcessor):
    """Speaks a word at a time and reports each as it is spoken, as speech output with word times does."""

    def __init__(self):
        super().__init__()
        self._text, self._speaking, self.spoken = "", None, 0

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, InterruptionFrame | CancelFrame):
            if self._speaking is not None:
                await self.cancel_task(self._speaking)
                self._speaking = None
            self._text = ""
            await self.push_frame(frame, direction)
        elif isinstance(frame, EndFrame):
            if self._speaking is not None:
                await self._speaking
            await self.push_frame(frame, direction)
        elif isinstance(frame, LLMTextFrame):
            self._text += frame.text
        elif isinstance(frame, LLMFullResponseEndFrame):
            text, self._text = self._text, ""
            self._speaking = self.create_task(self._speak(text, frame))
        else:
            await self.push_frame(frame, direction)

    async def _speak(self, text, end):
        await self.broadcast_frame(BotStartedSpeakingFrame)
        for word in text.split():
            await asyncio.sleep(WORD_S)
            await self.push_frame(TTSTextFrame(word, TextType.WORD))
            self.spoken += 1
        await self.push_frame(end)
        await self.broadcast_frame(BotStoppedSpeakingFrame)


class Call:
    """A call that a test speaks in."""

    def __init__(self, endpoint, memory, tools=None):
        self.memory, self.endpoint = memory, endpoint
        self.context = LLMContext([SYSTEM], **({"tools": tools} if tools else {}))
        strategies = UserTurnStrategies(
            start=[TranscriptionUserTurnStartStrategy()],
            stop=[SpeechTimeoutUserTurnStopStrategy(user_speech_timeout=0.2)],
        )
        self.aggregators = LLMContextAggregatorPair(
            self.context, user_params=LLMUserAggregatorParams(user_turn_strategies=strategies)
        )
        self.llm = OpenAILLMService(api_key="x", base_url=endpoint.url)
        self.voice, self.answered = Voice(), 0

        async def stopped(_aggregator, message):
            self.answered += bool(message.content) and not message.interrupted

        self.aggregators.assistant().add_event_handler("on_assistant_turn_stopped", stopped)

    async def until(self, ready):
        async with asyncio.timeout(20):
            while not ready():
                await asyncio.sleep(0.01)

    async def utter(self, text, pace_s=0.06):
        """`text` is spoken: interim transcripts, and the whole."""
        words = text.split()
        for count in (*range(2, len(words), 2), len(words)):
            said = " ".join(words[:count]).rstrip(".?!")
            await self.worker.queue_frame(InterimTranscriptionFrame(said, "ana", time_now_iso8601()))
            await asyncio.sleep(pace_s)
        await asyncio.sleep(pace_s)  # a recogniser waits for more before it takes an utterance for whole
        final = TranscriptionFrame(text, "ana", time_now_iso8601(), finalized=True)
        await self.worker.queue_frame(final)

    async def exchange(self, text):
        """`text` is spoken, and answered to the end."""
        answered = self.answered
        await self.utter(text)
        await self.until(lambda: self.answered > answered)


@contextlib.asynccontextmanager
async def calling(endpoint, user, name="call-1", *, tools=None, hang_up=False, **options):
    """A call with the memory of `user`; None: without any."""
    call = Call(endpoint, None, tools)
    own = [call.aggregators.user(), call.llm, call.voice, call.aggregators.assistant()]
    if user is not None:
        options = {"deadline_ms": PATIENT_MS, "agent": "pip", **options}
        memory = call.memory = EchoicMemory(user, call.aggregators, call=name, **options)
        own[0:2] = [memory.ear, call.aggregators.user(), memory, call.llm, memory.mouth]
    call.worker = PipelineWorker(Pipeline(own), cancel_on_idle_timeout=False, enable_rtvi=False)
    started = asyncio.Event()

    async def begun(_worker, _frame):
        started.set()

    call.worker.add_event_handler("on_pipeline_started", begun)
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(call.worker)
    running = asyncio.ensure_future(runner.run())
    await asyncio.wait_for(started.wait(), 20)
    try:
        yield call
    finally:
        if hang_up:
            await call.worker.cancel()
        else:
            await call.worker.queue_frame(EndFrame())
        await running


@pytest.fixture
async def service(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical") as opened:
        yield opened


@pytest.fixture
async def ana(service):
    return service.user("ana")


async def turns(user, name="call-1"):
    return await (await user.conversation(name)).turns()


async def test_what_was_taught_in_one_call_is_known_in_the_next_and_to_nobody_else(endpoint, service, ana):
    async with calling(endpoint, ana) as call:
        await call.exchange(TEACHES)
    asked = []
    for user in (ana, service.user("bob"), service.user("ana", "elsewhere")):
        async with calling(endpoint, user, "call-2") as call:
            await call.exchange(ASKS)
            asked.append(endpoint.sent)
    knows, *others = asked
    assert [role for role, _ in knows] == ["system", "user", "user"], "memory speaks for nobody but users"
    assert "peanuts" in knows[1][1]
    assert knows[2] == ("user", ASKS)
    assert others == [[("system", "You are Pip."), ("user", ASKS)]] * 2


async def test_a_turn_is_one_request(endpoint, ana):
    async with calling(endpoint, ana) as call:
        for text in (TEACHES, "I live in Lisbon.", ASKS):
            await call.exchange(text)
        assert len(endpoint.requests) == 3
        assert call.memory.call.statistics.finals == 3


async def test_an_answer_that_was_cut_off_is_kept_whole_with_what_was_heard_of_it(endpoint, ana):
    endpoint.answers = [LONG, "I see."]
    async with calling(endpoint, ana) as call:
        await call.utter(TEACHES)
        await call.until(lambda: call.voice.spoken > 6)
        await call.exchange("Wait, I moved to Porto last week.")
    first, answer, second, last = await turns(ana)
    assert [first.text, second.text] == [TEACHES, "Wait, I moved to Porto last week."]
    assert (answer.speaker, answer.text) == ("agent", LONG)
    assert LONG.startswith(answer.heard)
    assert 0 < len(answer.heard) < len(LONG)
    assert (last.text, last.heard) == ("I see.", None)
    async with calling(endpoint, ana, "call-2") as call:
        await call.exchange("What did you say about my allergy to peanuts?")
        assert LONG not in endpoint.sent[1][1]


@pytest.mark.parametrize("hang_up", [False, True], ids=["ended", "cancelled"])
async def test_a_call_of_one_exchange_keeps_both_turns(endpoint, ana, hang_up):
    endpoint.answers = [LONG]
    async with calling(endpoint, ana, hang_up=hang_up) as call:
        await call.utter(TEACHES)
        await call.until(lambda: call.voice.spoken > 4)
    user, agent = await turns(ana)
    assert (user.text, agent.text) == (TEACHES, LONG)
    if hang_up:
        assert 0 < len(agent.heard) < len(LONG)
    else:
        assert agent.heard is None
    assert (await ana.find_conversation("call-1")).status == "completed"


async def test_the_pipelines_own_context_is_the_same_with_memory_as_without(endpoint, ana):
    await ana.remember("The user is allergic to peanuts.")
    contexts = []
    for user in (ana, None):
        async with calling(endpoint, user) as call:
            for text in (TEACHES, ASKS):
                await call.exchange(text)
        assert ("<memory>" in str(endpoint.sent)) == (user is not None)
        contexts.append(json.dumps(call.context.messages))
    assert contexts[0] == contexts[1]


async def test_what_is_delivered_twice_is_kept_once(endpoint, ana):
    async with calling(endpoint, ana) as call:
        call.memory._follow(call.aggregators)  # as a restarted pipeline might
        await call.exchange(TEACHES)
    assert [turn.text for turn in await turns(ana)] == [TEACHES, "Noted."]


async def test_what_is_asked_is_looked_up_before_the_user_has_ended(endpoint, ana):
    await ana.remember("The user is allergic to peanuts.")
    questions = [
        "What am I allergic to, do you know?",
        "So is there anything that I am allergic to at all?",
        "And what was it again that I am allergic to?",
        "Tell me once more what it is I am allergic to.",
    ]
    async with calling(endpoint, ana) as call:
        for text in questions:
            await call.exchange(text)
            assert "peanuts" in endpoint.sent[-2][1]
        statistics = call.memory.call.statistics
    assert statistics.finals == len(questions)
    assert statistics.ready >= 0.9 * statistics.finals


async def test_a_pipeline_in_another_event_loop_than_the_memorys_is_refused(ana):
    async def begin():
        EchoicMemory(ana, LLMContextAggregatorPair(LLMContext()))

    with pytest.raises(NotOpen, match="event loop"):
        await asyncio.to_thread(lambda: asyncio.run(begin()))


@pytest.mark.parametrize("filler", ["Okay.", "Thanks, bye!", "Can you hear me?"])
async def test_fillers_call_nothing_to_mind(endpoint, ana, filler):
    for text in ("I moved to Lisbon.", "I'm allergic to peanuts.", "Okay.", "Thanks!"):
        await ana.remember(text)
    async with calling(endpoint, ana) as call:
        await call.exchange(filler)
    assert endpoint.sent == [("system", "You are Pip."), ("user", filler)]


async def test_after_a_tool_the_model_is_given_the_same_memory(endpoint, ana):
    await ana.remember("The user is allergic to peanuts.")
    endpoint.answers = [{"name": "look", "arguments": {}}, "Peanuts."]
    look = FunctionSchema(name="look", description="Looks.", properties={}, required=[])
    async with calling(endpoint, ana, tools=ToolsSchema(standard_tools=[look])) as call:

        async def looked(params):
            await params.result_callback({"seen": "nothing"})

        call.llm.register_function("look", looked)
        await call.exchange(ASKS)
        assert call.memory.call.statistics.finals == 1
    first, second = endpoint.requests
    assert "<memory>" in first[1]["content"]
    assert second[: len(first)] == first, "what was sent before stays the beginning of what is sent next"


async def test_a_speculative_request_is_given_memory_and_nothing_of_it_is_kept(service, ana):
    await ana.remember("The user is allergic to peanuts.")
    pair = LLMContextAggregatorPair(LLMContext())
    memory = EchoicMemory(ana, pair, call="call-1", deadline_ms=PATIENT_MS)
    context = LLMContext([{"role": "user", "content": ASKS}])
    frames = [
        LLMContextFrame(context=context, speculation=True),
        SleepFrame(),
        LLMContextFrame(context=context),
    ]
    down, _ = await run_test(memory, frames_to_send=[*frames, SleepFrame()])
    sent = [frame for frame in down if isinstance(frame, LLMContextFrame)]
    assert [frame.speculation for frame in sent] == [True, False]
    assert [["peanuts" in str(m["content"]) for m in frame.context.messages] for frame in sent] == [
        [True, False]
    ] * 2
    assert context.messages == [{"role": "user", "content": ASKS}]
    assert memory.call.statistics.finals == 1
    assert await ana.conversations() == []


async def test_an_embedder_that_hangs_costs_the_deadline_and_the_model_is_told(endpoint, tmp_path):
    class Hangs(LexicalEmbedder):
        async def embed(self, texts, kind):
            if kind == "query":
                await asyncio.Event().wait()
            return await super().embed(texts, kind)

    async with echoic.open(f"sqlite:///{tmp_path}/slow.db", embedder=Hangs()) as service:
        ana = service.user("ana")
        await ana.remember("The user is allergic to peanuts.")
        async with calling(endpoint, ana, deadline_ms=1500) as call:
            await call.exchange(ASKS)
        assert "peanuts" in endpoint.sent[1][1]  # by its words
        assert NOT_ALL_SEEN in endpoint.sent[1][1]


async def test_without_its_store_a_call_goes_on_and_the_model_is_told(endpoint, ana, monkeypatch):
    async with calling(endpoint, ana) as call:

        async def gone(*_args, **_options):
            raise StoreUnavailable("the disk is gone")

        with monkeypatch.context() as broken:
            broken.setattr(type(call.memory.call._recall._listening), "final", gone)
            broken.setattr("echoic.memory.conversation.OpenConversation.append", gone)
            await call.exchange(ASKS)
        assert UNREAD in endpoint.sent[1][1]
    assert [turn.text for turn in await turns(ana)] == [ASKS, "Noted."]


async def test_what_has_no_words_of_a_user_is_sent_as_it_is(ana):
    memory = EchoicMemory(ana, LLMContextAggregatorPair(LLMContext()))
    for messages in ([], [SYSTEM], [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]):
        context = LLMContext(messages)
        assert await with_memory(context, memory.call) is context
    await ana.remember("The user is allergic to peanuts.")
    parts = [{"type": "text", "text": ASKS}, {"type": "image_url", "image_url": {}}]
    known = await with_memory(LLMContext([{"role": "user", "content": parts}]), memory.call)
    assert "peanuts" in known.messages[0]["content"]
    await memory.call.aclose()


async def test_a_greeting_is_told_who_is_calling_and_nobody_else_is(endpoint, service, ana):
    await ana.set("name", "Ana")
    for user, known in ((ana, True), (service.user("bob"), False)):
        async with calling(endpoint, user) as call:
            await call.worker.queue_frame(LLMRunFrame())
            await call.until(lambda call=call: call.answered)
        assert ("Ana" in str(endpoint.sent)) is known
        assert [role for role, _ in endpoint.sent] == ["system", *["user"][:known]]


class Caller(FrameProcessor):
    """A transport whose caller says one thing and hangs up."""

    def input(self):
        return self

    def output(self):
        return IdentityFilter()

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        await self.push_frame(frame, direction)
        if isinstance(frame, StartFrame):
            await self.push_frame(TranscriptionFrame(TEACHES, "ana", time_now_iso8601(), finalized=True))
            await self.push_frame(EndWorkerFrame(), FrameDirection.UPSTREAM)


@pytest.mark.timeout(60)
async def test_the_pipeline_in_the_documents_keeps_what_is_said(endpoint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text()
    program = re.search(r"```python\n(.*?)```", page.partition("### Pipecat")[2], re.DOTALL)[1]
    assert len(program.partition("serve(caller):\n")[2].splitlines()) <= 10, "ten lines of the user's own"
    model = OpenAILLMService(api_key="x", base_url=endpoint.url)
    names = {"transport": Caller(), "stt": IdentityFilter(), "llm": model, "tts": Voice()}
    exec(program, names)
    await names["serve"]("ana")
    async with echoic.open("sqlite:///echoic.db") as service:
        (kept,) = await service.user("ana").conversations()
        assert [turn.text for turn in await turns(service.user("ana"), kept.id)] == [TEACHES, "Noted."]


class Line(FrameProcessor):
    """A transport whose caller says one thing after the other, each when the last was answered, and hangs up."""

    def __init__(self, *says):
        super().__init__()
        self.says = list(says)
        self._register_event_handler("on_client_disconnected")

    def input(self):
        return self

    def output(self):
        return IdentityFilter()

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        await self.push_frame(frame, direction)
        if not isinstance(frame, StartFrame | BotStoppedSpeakingFrame):
            return
        if self.says:
            said = TranscriptionFrame(self.says.pop(0), "", time_now_iso8601(), finalized=True)
            await self.push_frame(said)
        else:
            await self._call_event_handler("on_client_disconnected", None)


class Tongue(Voice):
    """Is silent where the model only calls a tool."""

    async def _speak(self, text, end):
        await (super()._speak(text, end) if text.strip() else self.push_frame(end))


@pytest.mark.timeout(150)
async def test_the_restaurants_example_books_for_its_guest_alone_and_knows_them_again(
    endpoint, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    example = Path(__file__).parents[2] / "examples" / "restaurant_pipecat.py"
    names = runpy.run_path(str(example))["serve"].__globals__
    names["EchoicMemory"] = partial(EchoicMemory, deadline_ms=PATIENT_MS)
    stop = SpeechTimeoutUserTurnStopStrategy(user_speech_timeout=0.2)
    turns_end = UserTurnStrategies(start=[TranscriptionUserTurnStartStrategy()], stop=[stop])
    ears = LLMUserAggregatorParams(user_turn_strategies=turns_end)
    day = f"{datetime.now(UTC).year + 1}-05-01"

    async def call(guest, said, *answers):
        """What the model was sent, request by request."""
        endpoint.answers, endpoint.requests = list(answers), []
        _, model, _ = names["services"]()
        async with asyncio.timeout(60):
            await names["serve"](guest, Line(*said), [IdentityFilter(), model, Tongue()], ears)
        return [str(request) for request in endpoint.requests]

    def books(people, hour=19, on=day):
        return {"name": "book_table", "arguments": {"day": on, "hour": hour, "people": people}}

    nuts = "A table for four on the first of May at seven, please. I'm allergic to peanuts."
    _, booked = await call("ana", [nuts], books(4), "Done.")
    assert f"{day} at 19:00 for 4" in booked
    again = ["Which dishes can I eat with my allergy?", "And when am I coming?"]
    known, _, own = await call(
        "ana", again, "No peanuts.", {"name": "reservations", "arguments": {}}, "Soon."
    )
    assert "peanuts" in known
    assert f"{day} 19:00" in own
    _, taken = await call("bob", [again[1]], books(2), "Done.")
    assert "booked" in taken
    sent = await call("eve", again, books(2), "Full.", books(2, on="tomorrow"), "When?")
    assert "peanuts" not in str(sent)
    assert "No table is free" in sent[1]
    assert "not a date" in sent[-1]


# -- speech to speech


@contextlib.asynccontextmanager
async def speaking(script, user, name):
    """A call with OpenAI's own service for speech to speech, against a server that plays `script`."""
    transcription = events.InputAudioTranscription(model="whisper-1")
    audio = events.AudioConfiguration(input=events.AudioInput(transcription=transcription))
    settings = OpenAIRealtimeLLMService.Settings(
        model="gpt-realtime", session_properties=events.SessionProperties(audio=audio)
    )
    async with OpenAIRealtimeServer(script) as server:
        url = f"{server.base_url.replace('http', 'ws', 1)}/realtime"
        model = OpenAIRealtimeLLMService(api_key="x", base_url=url, settings=settings)
        aggregators = LLMContextAggregatorPair(LLMContext([SYSTEM]))
        memory = EchoicMemory(user, aggregators, call=name, agent="pip")
        chain = [memory.ear, aggregators.user(), memory, model, memory.mouth, aggregators.assistant()]
        worker = PipelineWorker(Pipeline(chain), cancel_on_idle_timeout=False, enable_rtvi=False)

        async def speak():
            await worker.queue_frame(LLMRunFrame())
            while True:
                await worker.queue_frame(InputAudioRawFrame(silence(100, 24_000), 24_000, 1))
                await asyncio.sleep(0.1)

        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        running, speaking = asyncio.ensure_future(runner.run()), asyncio.ensure_future(speak())
        try:
            yield server
        finally:
            speaking.cancel()
            await worker.queue_frame(EndFrame())
            await running


async def until_kept(user, name, count):
    async with asyncio.timeout(60):
        while await user.find_conversation(name) is None or len(await turns(user, name)) < count:
            await asyncio.sleep(0.05)


@pytest.mark.timeout(150)
async def test_a_speech_to_speech_service_is_told_who_calls_and_its_turns_are_kept(service, ana):
    taught = Script(Says("Good morning."), UserSays(TEACHES), Says("Noted, no peanuts."))
    async with speaking(taught, ana, "call-1") as server:
        await until_kept(ana, "call-1", 3)
        first = next(iter((await server.session(0)).conversation)).wire
        assert first["role"] == "assistant", "nothing is known yet, so nothing is told"
    said = [("agent", "Good morning."), ("user", TEACHES), ("agent", "Noted, no peanuts.")]
    assert [(turn.speaker, turn.text) for turn in await turns(ana)] == said
    await service.distil()
    async with speaking(Script(Says("Welcome back, Ana.")), ana, "call-2") as server:
        await until_kept(ana, "call-2", 1)
        told = next(iter((await server.session(0)).conversation)).wire
    assert told["role"] == "user", "memory speaks for nobody but users"
    assert "peanuts" in told["content"][0]["text"]
