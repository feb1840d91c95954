"""LiveKit Agents with Echoic: a real AgentSession, with speech recognition, model and speech output as stand-ins."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import runpy
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from livekit import rtc
from livekit.agents import Agent, AgentSession, LanguageCode, function_tool, llm, stt, tts, utils
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN
from livekit.agents.voice.io import AudioInput, AudioOutput, AudioOutputCapabilities, TextOutput
from livekit.agents.voice.transcription.synchronizer import TranscriptSynchronizer

import echoic
from echoic.embedding import LexicalEmbedder
from echoic.errors import NotOpen, StoreUnavailable
from echoic.integrations.livekit import EchoicAgent, remember, with_memory
from echoic.prompt.answer import NOT_ALL_SEEN, UNREAD

TEACHES = "Hi I'm Ana and I'm allergic to peanuts."
ASKS = "What am I allergic to?"
LONG = " ".join(["Nice to meet you Ana, I will remember that you are allergic to peanuts."] * 3)
WORD_S = 0.08  # as fast as speech output speaks here
PATIENT_MS = 5000.0


class Model(llm.LLM):
    def __init__(self, answer):
        super().__init__()
        self.answer, self.requests, self.tool_calls = answer, [], []

    def chat(self, *, chat_ctx, tools=None, conn_options=DEFAULT_API_CONNECT_OPTIONS, **_options):
        return Completion(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)

    @property
    def sent(self):
        """What the model was asked last: roles and texts."""
        return self.requests[-1]


class Completion(llm.LLMStream):
    async def _run(self):
        messages = [item for item in self._chat_ctx.items if item.type == "message"]
        self._llm.requests.append([(item.role, item.text_content) for item in messages])
        if self._llm.tool_calls:
            name, arguments = self._llm.tool_calls.pop()
            call = llm.FunctionToolCall(name=name, arguments=json.dumps(arguments), call_id="tool-1")
            delta = llm.ChoiceDelta(role="assistant", tool_calls=[call])
            self._event_ch.send_nowait(llm.ChatChunk(id="x", delta=delta))
            return
        for word in self._llm.answer.split(" "):
            delta = llm.ChoiceDelta(role="assistant", content=f"{word} ")
            self._event_ch.send_nowait(llm.ChatChunk(id="x", delta=delta))


class Recogniser(stt.STT):
    """Hears what it is told: (kind of event, text)."""

    def __init__(self):
        super().__init__(capabilities=stt.STTCapabilities(streaming=True, interim_results=True))
        self.events = asyncio.Queue()

    async def _recognize_impl(self, *_args, **_options):
        raise NotImplementedError

    def stream(self, **_options):
        return Recognition(stt=self, conn_options=DEFAULT_API_CONNECT_OPTIONS)

    async def utter(self, text, pace_s=0.06):
        """`text` is spoken: interim transcripts, a guess at the whole, and the whole."""
        self.events.put_nowait(("start_of_speech", ""))
        words = text.split()
        for count in (*range(2, len(words), 2), len(words)):
            self.events.put_nowait(("interim_transcript", " ".join(words[:count]).rstrip(".?!")))
            await asyncio.sleep(pace_s)
        await asyncio.sleep(pace_s)  # a recogniser waits for more before it takes an utterance for whole
        self.events.put_nowait(("preflight_transcript", text))
        await asyncio.sleep(2 * pace_s)
        self.events.put_nowait(("final_transcript", text))
        self.events.put_nowait(("end_of_speech", ""))


class Recognition(stt.RecognizeStream):
    async def _run(self):
        while True:
            kind, text = await self._stt.events.get()
            data = stt.SpeechData(language=LanguageCode("en"), text=text, confidence=0.93)
            self._event_ch.send_nowait(
                stt.SpeechEvent(type=stt.SpeechEventType(kind), alternatives=[data] if text else [])
            )


class Voice(tts.TTS):
    def __init__(self):
        super().__init__(capabilities=tts.TTSCapabilities(streaming=False), sample_rate=24000, num_channels=1)

    def synthesize(self, text, *, conn_options=DEFAULT_API_CONNECT_OPTIONS):
        return Speech(tts=self, input_text=text, conn_options=conn_options)


class Speech(tts.ChunkedStream):
    async def _run(self, emitter):
        emitter.initialize(request_id="r", sample_rate=24000, num_channels=1, mime_type="audio/pcm")
        emitter.push(b"\0\0" * int(24000 * WORD_S * len(self._input_text.split())))
        emitter.flush()


class Microphone(AudioInput):
    def __init__(self):
        super().__init__(label="microphone")
        self._frames = utils.aio.Chan()

    async def __anext__(self):
        return await self._frames.__anext__()

    def push(self):
        self._frames.send_nowait(rtc.AudioFrame(b"\0\0" * 1600, 16000, 1, 1600))


class Speaker(AudioOutput):
    """Plays in real time, and says how much it had played when it was stopped."""

    def __init__(self):
        super().__init__(label="speaker", capabilities=AudioOutputCapabilities(pause=False))
        self._length_s, self._began_s, self._end = 0.0, 0.0, None

    @property
    def played_s(self):
        return min(self._length_s, time.time() - self._began_s) if self._length_s else 0.0

    async def capture_frame(self, frame):
        await super().capture_frame(frame)
        if not self._length_s:
            self._began_s = time.time()
            self.on_playback_started(created_at=self._began_s)
        self._length_s += frame.duration

    def flush(self):
        super().flush()
        if self._length_s:
            left_s = max(0.0, self._length_s - (time.time() - self._began_s))
            self._end = asyncio.get_running_loop().call_later(left_s, self._finish, False)

    def clear_buffer(self):
        if self._length_s:
            if self._end is not None:
                self._end.cancel()
            self._finish(True)

    def _finish(self, interrupted):
        played_s, self._length_s = self.played_s, 0.0
        self.on_playback_finished(playback_position=played_s, interrupted=interrupted)


class Captions(TextOutput):
    def __init__(self):
        super().__init__(label="captions", next_in_chain=None)

    async def capture_text(self, text):
        pass

    def flush(self):
        pass


class Call:
    """A call that a test speaks in."""

    def __init__(self, session, recogniser, model, speaker):
        self.session, self.model, self.speaker = session, model, speaker
        self.utter = recogniser.utter
        self.items, self.closed = [], asyncio.Event()
        session.on("conversation_item_added", lambda event: self.items.append(event.item))
        session.on("close", lambda _event: self.closed.set())

    @property
    def said(self):
        return [(item.role, item.text_content) for item in self.items if item.type == "message"]

    async def until(self, ready):
        async with asyncio.timeout(20):
            while not ready():
                await asyncio.sleep(0.01)

    async def exchange(self, text):
        """`text` is spoken, and answered to the end."""
        before = len(self.said)
        await self.utter(text)
        await self.until(lambda: ("user", text) in self.said[before:-1] and self.said[-1][0] == "assistant")


TURNS = {
    "turn_detection": "stt",  # there is no voice activity detection here; all else that matters is at its default
    "endpointing": {"min_delay": 0.3, "max_delay": 1.0},
    "interruption": {"min_duration": 0.0, "mode": "vad"},
}


@contextlib.asynccontextmanager
async def calling(agent_of, answer="Noted.", setup=lambda _session: None):
    """A call with the agent that `agent_of` makes of what `setup` returned."""
    recogniser, model, speaker = Recogniser(), Model(answer), Speaker()
    session = AgentSession(vad=None, stt=recogniser, llm=model, tts=Voice(), turn_handling=TURNS)
    microphone = Microphone()
    synchronizer = TranscriptSynchronizer(next_in_chain_audio=speaker, next_in_chain_text=Captions())
    session.input.audio = microphone
    session.output.audio, session.output.transcription = synchronizer.audio_output, synchronizer.text_output
    call = Call(session, recogniser, model, speaker)
    call.memory = setup(session)
    await session.start(agent_of(call.memory))

    async def listen():
        while True:
            microphone.push()
            await asyncio.sleep(0.1)

    listening = asyncio.ensure_future(listen())
    try:
        yield call
    finally:
        await session.aclose()
        listening.cancel()
        await synchronizer.aclose()
        if call.memory is not None:
            await call.memory.aclose()


def with_echoic(user, answer="Noted.", name="call-1", **options):
    options = {"deadline_ms": PATIENT_MS, **options}
    return calling(
        lambda memory: EchoicAgent(memory=memory, instructions="You are Pip."),
        answer,
        lambda session: remember(session, user, call=name, agent="pip", **options),
    )


@pytest.fixture
async def service(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical") as opened:
        yield opened


@pytest.fixture
async def ana(service):
    return service.user("ana")


async def turns(user, name="call-1"):
    return await (await user.conversation(name)).turns()


async def test_what_was_taught_in_one_call_is_known_in_the_next_and_to_nobody_else(service, ana):
    async with with_echoic(ana) as call:
        await call.exchange(TEACHES)
    asked = {}
    for user in (ana, service.user("bob"), service.user("ana", "elsewhere")):
        async with with_echoic(user, "Peanuts.", "call-2") as call:
            await call.exchange(ASKS)
            asked[user.scope] = call.model.sent
    knows, *others = asked.values()
    assert [role for role, _ in knows] == ["system", "user", "user"], "memory speaks for nobody but users"
    assert "peanuts" in knows[1][1]
    assert knows[2] == ("user", ASKS)
    assert others == [[("system", "You are Pip."), ("user", ASKS)]] * 2


async def test_a_turn_is_one_request_with_preemptive_generation_as_it_is_by_default(ana):
    async with with_echoic(ana) as call:
        assert call.session.options.preemptive_generation["enabled"]
        for text in (TEACHES, "I live in Lisbon.", ASKS):
            await call.exchange(text)
        assert len(call.model.requests) == 3
        assert call.memory.statistics.finals == 3


async def test_an_answer_that_was_cut_off_is_kept_whole_with_what_was_heard_of_it(ana):
    async with with_echoic(ana, LONG) as call:
        await call.utter(TEACHES)
        await call.until(lambda: call.speaker.played_s > 8 * WORD_S)
        call.model.answer = "I see."
        await call.exchange("Wait, I moved to Porto last week.")
    first, answer, second, _ = await turns(ana)
    assert [first.text, second.text] == [TEACHES, "Wait, I moved to Porto last week."]
    assert first.confidence == pytest.approx(0.93)
    assert answer.text == LONG
    assert LONG.startswith(answer.heard)
    assert 0 < len(answer.heard) < len(LONG)
    async with with_echoic(ana, "Peanuts.", "call-2") as call:
        await call.exchange("What did you say about my allergy to peanuts?")
        memory = call.model.sent[1][1]
    assert LONG not in memory


async def test_of_an_answer_with_markup_for_its_voice_the_words_are_kept_with_what_was_heard(ana):
    half = LONG.index(" ", len(LONG) // 2)
    warm, pause = '<expr type="expression" label="warm"/> ', ' <expr type="break" label="1s"/>'
    async with with_echoic(ana, warm + LONG[:half] + pause + LONG[half:]) as call:
        await call.utter(TEACHES)
        await call.until(lambda: call.speaker.played_s > 8 * WORD_S)
        call.model.answer = "I see."
        await call.exchange("Wait, I moved to Porto last week.")
    _, answer, _, _ = await turns(ana)
    assert answer.text.split() == LONG.split()
    assert answer.text.startswith(answer.heard)
    assert 0 < len(answer.heard) < len(LONG)


async def test_hanging_up_in_mid_answer_keeps_both_turns(ana):
    async with with_echoic(ana, LONG) as call:
        await call.utter(TEACHES)
        await call.until(lambda: call.speaker.played_s > 5 * WORD_S)
    user, agent = await turns(ana)
    assert user.text == TEACHES
    assert agent.text == LONG
    assert 0 < len(agent.heard) < len(LONG)
    assert (await ana.find_conversation("call-1")).status == "completed"


async def test_the_sessions_own_history_is_the_same_with_memory_as_without(ana):
    await ana.remember("The user is allergic to peanuts.")
    histories = []
    for talk in (
        with_echoic(ana, "Peanuts."),
        calling(lambda _: Agent(instructions="You are Pip."), "Peanuts."),
    ):
        async with talk as call:
            for text in (TEACHES, ASKS):
                await call.exchange(text)
            kept = [call.session.history.to_dict(), call.session.current_agent.chat_ctx.to_dict()]
        assert "<memory>" not in str(kept)
        own = [[(item["role"], item["content"]) for item in each["items"] if "role" in item] for each in kept]
        histories.append(own)
    assert histories[0] == histories[1]


async def test_what_is_delivered_twice_is_kept_once(ana):
    async with with_echoic(ana) as call:
        await call.exchange(TEACHES)
        for item in [each for each in call.items if each.type == "message"]:
            call.session._conversation_item_added(item)
    assert [turn.text for turn in await turns(ana)] == [TEACHES, "Noted."]


async def test_what_is_asked_is_looked_up_before_the_user_has_ended(service, ana):
    await ana.remember("The user is allergic to peanuts.")
    questions = [
        "What am I allergic to, do you know?",
        "So is there anything that I am allergic to at all?",
        "And what was it again that I am allergic to?",
        "Tell me once more what it is I am allergic to.",
    ]
    async with with_echoic(ana, "Peanuts.") as call:
        for text in questions:
            await call.exchange(text)
            assert "peanuts" in call.model.sent[-2][1]
        statistics = call.memory.statistics
    assert statistics.finals == len(questions)
    assert statistics.ready >= 0.9 * statistics.finals


async def test_a_session_in_another_event_loop_than_the_memorys_is_refused(ana):
    async def begin():
        remember(AgentSession(), ana)

    with pytest.raises(NotOpen, match="event loop"):
        await asyncio.to_thread(lambda: asyncio.run(begin()))


@pytest.mark.parametrize("filler", ["Okay.", "Thanks, bye!", "Can you hear me?"])
async def test_fillers_call_nothing_to_mind(ana, filler):
    for text in ("I moved to Lisbon.", "I'm allergic to peanuts.", "Okay.", "Thanks!"):
        await ana.remember(text)
    async with with_echoic(ana) as call:
        await call.exchange(filler)
        assert call.model.sent == [("system", "You are Pip."), ("user", filler)]


async def test_an_embedder_that_hangs_costs_the_deadline_and_the_model_is_told(tmp_path):
    class Hangs(LexicalEmbedder):
        async def embed(self, texts, kind):
            if kind == "query":
                await asyncio.Event().wait()
            return await super().embed(texts, kind)

    async with echoic.open(f"sqlite:///{tmp_path}/slow.db", embedder=Hangs()) as service:
        ana = service.user("ana")
        await ana.remember("The user is allergic to peanuts.")
        async with with_echoic(ana, "Peanuts.", deadline_ms=1500) as call:
            await call.exchange(ASKS)
            assert "peanuts" in call.model.sent[1][1]  # by its words
            assert NOT_ALL_SEEN in call.model.sent[1][1]


async def test_without_its_store_a_call_goes_on_and_the_model_is_told(ana, monkeypatch):
    async with with_echoic(ana, "I cannot look it up.") as call:

        async def gone(*_args, **_options):
            raise StoreUnavailable("the disk is gone")

        with monkeypatch.context() as broken:
            broken.setattr(type(call.memory._recall._listening), "final", gone)
            broken.setattr("echoic.memory.conversation.OpenConversation.append", gone)
            await call.exchange(ASKS)
            assert UNREAD in call.model.sent[1][1]
    assert [turn.text for turn in await turns(ana)] == [ASKS, "I cannot look it up."]


async def test_after_a_tool_the_model_is_given_the_same_memory(ana):
    await ana.remember("The user is allergic to peanuts.")

    @function_tool
    async def look() -> str:
        """Looks."""
        return "nothing"

    def made(memory):
        return EchoicAgent(memory=memory, instructions="You are Pip.", tools=[look])

    async with calling(
        made, "Peanuts.", lambda session: remember(session, ana, deadline_ms=PATIENT_MS)
    ) as call:
        call.model.tool_calls = [("look", {})]
        await call.exchange(ASKS)
        first, second = call.model.requests
        assert "peanuts" in first[1][1]
        assert second[: len(first)] == first
        assert call.memory.statistics.finals == 1


async def test_a_greeting_is_told_who_is_calling_and_nobody_else_is(service, ana):
    await ana.set("name", "Ana")
    for user, known in ((ana, True), (service.user("bob"), False)):
        async with with_echoic(user, "Hello.") as call:
            await call.session.generate_reply(instructions="Greet the caller by name.")
            assert ("Ana" in str(call.model.sent)) is known
            assert [role for role, _ in call.model.sent] == ["system", "system", *["user"][:known]]
            assert [role for role, _ in call.said] == ["assistant"]


async def test_an_agent_with_a_node_of_its_own_asks_for_memory_itself(ana):
    await ana.remember("The user is allergic to peanuts.")

    class Own(Agent):
        async def llm_node(self, chat_ctx, tools, model_settings):
            request = await with_memory(chat_ctx, self.memory)
            async for chunk in Agent.default.llm_node(self, request, tools, model_settings):
                yield chunk

    def made(memory):
        agent = Own(instructions="You are Pip.")
        agent.memory = memory
        return agent

    setup = lambda session: remember(session, ana, deadline_ms=PATIENT_MS)  # noqa: E731
    async with calling(made, "Peanuts.", setup) as call:
        await call.exchange(ASKS)
        assert "peanuts" in call.model.sent[1][1]


# -- a realtime model, which hears and answers by itself


class Realtime(llm.RealtimeModel):
    def __init__(self, *, mutable=True):
        super().__init__(
            capabilities=llm.RealtimeCapabilities(
                message_truncation=True,
                turn_detection=True,
                user_transcription=True,
                auto_tool_reply_generation=False,
                audio_output=True,
                manual_function_calls=False,
                mutable_chat_context=mutable,
            )
        )
        self.sessions = []

    def session(self, **_options):
        self.sessions.append(Conversation(self))
        return self.sessions[-1]

    async def aclose(self):
        pass


class Conversation(llm.RealtimeSession):
    """A provider's session, as far as a test tells it what was said."""

    def __init__(self, model):
        super().__init__(model)
        self._context, self._tools = llm.ChatContext.empty(), llm.ToolContext.empty()
        self.instructions, self.truncated = "", []
        self.updating, self.answering = asyncio.Event(), asyncio.Event()
        self.answering.set()

    chat_ctx = property(lambda self: self._context.copy())
    tools = property(lambda self: self._tools)

    async def update_instructions(self, instructions):
        self.instructions = instructions

    async def update_chat_ctx(self, chat_ctx):
        before = {item.id for item in self._context.items}
        self._context = chat_ctx.copy()
        if not self.answering.is_set():
            self.updating.set()
            await self.answering.wait()  # as a provider's answer is waited for
        ids = [None, *(item.id for item in chat_ctx.items)]
        for previous, item in zip(ids, chat_ctx.items, strict=False):
            if item.id not in before:
                self._added(previous, item)

    def _added(self, previous, item):
        self.emit("remote_item_added", llm.RemoteItemAddedEvent(previous_item_id=previous, item=item))

    async def update_tools(self, tools):
        self._tools = llm.ToolContext(tools)

    def update_options(self, **_options):
        pass

    def push_audio(self, frame):
        pass

    def push_video(self, frame):
        pass

    def generate_reply(self, **_options):
        raise NotImplementedError

    def commit_audio(self):
        pass

    def clear_audio(self):
        pass

    def interrupt(self):
        pass

    def truncate(self, *, audio_transcript="", **_options):
        self.truncated.append(audio_transcript)

    async def aclose(self):
        pass

    def hears(self, text, name):
        """The user said `text`."""
        last = self._context.items[-1].id if self._context.items else None
        self._context.add_message(role="user", content=text, id=name)
        self._added(last, self._context.items[-1])
        self.emit("input_speech_started", llm.InputSpeechStartedEvent())
        self.emit("input_speech_stopped", llm.InputSpeechStoppedEvent(user_transcription_enabled=True))
        done = llm.InputTranscriptionCompleted(item_id=name, transcript=text, is_final=True, confidence=0.9)
        self.emit("input_audio_transcription_completed", done)

    def answers(self, text, name):
        """The model says `text`, all of it at once."""
        words, frames, messages, functions = (utils.aio.Chan() for _ in range(4))
        modalities = asyncio.get_running_loop().create_future()
        modalities.set_result(["text", "audio"])
        self._context.add_message(role="assistant", content=text, id=name)
        messages.send_nowait(llm.MessageGeneration(name, words, frames, modalities))
        for word in text.split(" "):
            words.send_nowait(f"{word} ")
            frames.send_nowait(rtc.AudioFrame(b"\0\0" * int(24000 * WORD_S), 24000, 1, int(24000 * WORD_S)))
        for channel in (words, frames, messages, functions):
            channel.close()
        self.emit("generation_created", llm.GenerationCreatedEvent(messages, functions, user_initiated=False))

    @property
    def notes(self):
        """What it was given of memory: roles and texts."""
        messages = [item for item in self._context.items if item.type == "message"]
        return [(item.role, item.text_content) for item in messages if "<memory" in item.text_content]


@contextlib.asynccontextmanager
async def calling_realtime(user, model):
    speaker = Speaker()
    session = AgentSession(llm=model)
    synchronizer = TranscriptSynchronizer(next_in_chain_audio=speaker, next_in_chain_text=Captions())
    session.output.audio, session.output.transcription = synchronizer.audio_output, synchronizer.text_output
    call = Call(session, Recogniser(), model, speaker)
    call.memory = remember(session, user, call="call-1", deadline_ms=PATIENT_MS)
    await session.start(EchoicAgent(memory=call.memory, instructions="You are Pip."))
    try:
        yield call, model.sessions[0]
    finally:
        await session.aclose()
        await synchronizer.aclose()
        await call.memory.aclose()


async def test_a_realtime_model_is_told_who_calls_and_what_is_known_of_what_they_say(ana):
    await ana.set("user_name", "Ana")
    await ana.remember("My boat in the harbour is called Nellie.")
    async with calling_realtime(ana, Realtime()) as (call, provider):
        await call.until(lambda: provider.notes)
        ((role, caller),) = provider.notes
        assert role == "user"
        assert "Ana" in caller
        provider.hears("What is my boat in the harbour called?", "item_1")
        await call.until(lambda: len(provider.notes) == 2)
        assert "Nellie" in provider.notes[1][1]
        provider.hears("Okay.", "item_2")
        await call.until(lambda: provider.notes == [(role, caller)])
        assert provider.instructions == "You are Pip."
        assert "<memory>" not in str(call.session.history.to_dict())
    assert [turn.text for turn in await turns(ana)] == ["What is my boat in the harbour called?", "Okay."]


async def test_what_is_told_of_the_caller_and_of_a_turn_at_once_is_both_there(ana):
    await ana.set("user_name", "Ana")
    await ana.remember("My boat in the harbour is called Nellie.")
    async with calling_realtime(ana, Realtime()) as (call, provider):
        await call.until(lambda: provider.notes)
        agent = call.session.current_agent
        await agent._tell("caller", "")
        provider.answering.clear()
        entering = asyncio.create_task(agent.on_enter())
        await asyncio.wait_for(provider.updating.wait(), 20)
        provider.hears("What is my boat in the harbour called?", "item_1")
        await call.memory.memory_for("What is my boat in the harbour called?")
        await asyncio.sleep(0)  # what was found is told next
        provider.answering.set()
        await entering
        await call.until(lambda: len(provider.notes) == 2)
        assert ["Ana" in provider.notes[0][1], "Nellie" in provider.notes[1][1]] == [True, True]
        provider.hears("Okay.", "item_2")
        await call.until(lambda: len(provider.notes) == 1)
        assert "Ana" in provider.notes[0][1]


async def test_what_is_told_of_a_turn_goes_when_the_next_one_comes_while_it_is_told(ana):
    await ana.set("user_name", "Ana")
    await ana.remember("My boat in the harbour is called Nellie.")
    async with calling_realtime(ana, Realtime()) as (call, provider):
        await call.until(lambda: provider.notes)
        caller = provider.notes
        provider.answering.clear()
        provider.hears("What is my boat in the harbour called?", "item_1")
        await asyncio.wait_for(provider.updating.wait(), 20)
        provider.hears("Okay.", "item_2")
        await call.memory.memory_for("Okay.")
        provider.answering.set()
        await call.until(lambda: provider.notes == caller)
        agent = call.session.current_agent
        await call.until(lambda: not agent._tellings)
        assert provider.notes == caller
        assert list(agent._notes) == ["caller"]


async def test_of_a_realtime_answer_that_was_cut_off_all_is_kept_and_what_was_heard(ana):
    async with calling_realtime(ana, Realtime()) as (call, provider):
        provider.hears(TEACHES, "item_1")
        provider.answers(LONG, "item_2")
        await call.until(lambda: call.speaker.played_s > 6 * WORD_S)
        await call.session.interrupt()
        await call.until(lambda: len(call.said) == 2)
    user, agent = await turns(ana)
    assert (user.text, agent.text) == (TEACHES, LONG)
    assert LONG.startswith(agent.heard)
    assert 0 < len(agent.heard) < len(LONG)


async def test_a_realtime_model_that_takes_no_messages_is_left_alone(ana, caplog):
    await ana.set("user_name", "Ana")
    async with calling_realtime(ana, Realtime(mutable=False)) as (call, provider):
        await call.until(lambda: "takes no messages" in caplog.text)
        provider.hears(TEACHES, "item_1")
        await call.until(lambda: call.said)
        assert provider.notes == []
    assert [turn.text for turn in await turns(ana)] == [TEACHES]


class Job:
    """A job whose participant is `identity`, and the session that an entrypoint makes for it."""

    room = NOT_GIVEN

    def __init__(self, identity):
        self.identity, self.callbacks, self.session_made = identity, [], None
        self.add_shutdown_callback = self.callbacks.append

    async def connect(self):
        pass

    async def wait_for_participant(self):
        return SimpleNamespace(identity=self.identity)

    def session(self, **options):
        self.session_made = AgentSession(**options)
        return self.session_made

    async def end(self):
        await self.session_made.aclose()
        for callback in self.callbacks:
            await callback()


async def test_the_entrypoint_in_the_documents_keeps_what_is_said_until_the_job_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job = Job("ana")
    monkeypatch.setattr("livekit.agents.AgentSession", job.session)
    page = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text()
    program = re.search(r"```python\n(.*?)```", page.partition("### LiveKit Agents")[2], re.DOTALL)[1]
    assert len(program.partition("entrypoint(ctx):\n")[2].split("\n    ")) <= 12, (
        "ten lines of the user's own"
    )
    names = {"stt": Recogniser(), "model": Model("Noted."), "tts": Voice()}
    exec(program, names)
    await names["entrypoint"](job)
    await job.session_made.run(user_input=TEACHES)
    await job.end()
    async with echoic.open("sqlite:///echoic.db") as service:
        (kept,) = await service.user("ana").conversations()
        assert [turn.text for turn in await turns(service.user("ana"), kept.id)] == [TEACHES, "Noted."]


@pytest.mark.timeout(150)
async def test_the_support_example_knows_its_customer_their_tickets_and_what_holds_for_all(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    example = Path(__file__).parents[2] / "examples" / "support_livekit.py"
    names = runpy.run_path(str(example))["answer"].__globals__
    for key in ("LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET"):
        monkeypatch.setenv(key, f"ws://127.0.0.1:1/{'x' * 32}")
    assert AgentSession(**names["voice"]()).llm is not None, "LiveKit knows these names"
    model = Model("Noted.")
    names["voice"] = lambda: {"stt": Recogniser(), "llm": model, "tts": Voice()}
    names["remember"] = partial(remember, deadline_ms=PATIENT_MS)

    async def call(identity, said, *tool_calls):
        """What the model was sent last, and what its tools answered."""
        job = Job(identity)
        names["AgentSession"] = job.session
        model.tool_calls = list(tool_calls)
        await names["answer"](job)
        await job.session_made.run(user_input=said)
        results = [
            item.output for item in job.session_made.history.items if item.type == "function_call_output"
        ]
        await job.end()
        return str(model.sent), results

    summary = "The router in the attic restarts every night."
    said = "My router is an Aurora 9 in the attic, and it restarts every night."
    _, results = await call("ana", said, ("open_ticket", {"summary": summary}))
    assert results == ["Opened ticket T-1."]
    sent, results = await call(
        "ana", "My router in the attic restarts again.", ("find_tickets", {"about": "attic router"})
    )
    assert results == [f"T-1 (open): {summary}"]
    assert "Aurora 9" in sent
    sent, results = await call(
        "bob", "What does the red light on my router mean?", ("find_tickets", {"about": "router"})
    )
    assert results == ["There is none."]
    assert "it has no line" in sent
    assert "Aurora" not in sent
