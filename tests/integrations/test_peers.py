"""Other products' released plug-ins and Echoic's in the same calls, each with a store that takes 300 ms a look-up.

The peers' clients are replaced by stand-ins that answer after 300 ms and note what they are given to keep; Echoic
keeps its real store and has an embedder that takes 300 ms a question. What comes out is printed as a table
(`pytest -s`), and stands in docs/integrations.md. Nothing here fails because of what a peer does.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import types
from importlib.metadata import version

import pytest
from hindsight_pipecat import HindsightMemoryService
from pipecat.frames.frames import EndFrame, LLMContextFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.mem0.memory import Mem0MemoryService
from pipecat.workers.runner import WorkerRunner
from supermemory_pipecat import SupermemoryPipecatService
from zep_livekit import ZepUserAgent

import echoic
from echoic.embedding import LexicalEmbedder
from echoic.integrations.pipecat import EchoicMemory
from integrations import test_livekit as lk
from integrations import test_pipecat as pc

LOOK_UP_S = 0.3
SAID = ["My name is Ana and I'm allergic to peanuts.", "What am I allergic to?", "And what is my name again?"]


class SlowQuestions(LexicalEmbedder):
    """An embedder whose answer to a question takes as long as the peers' stores."""

    async def embed(self, texts, kind):
        if kind == "query":
            await asyncio.sleep(LOOK_UP_S)
        return await super().embed(texts, kind)


class Tap(FrameProcessor):
    """Notes when a context passes, and what is in it."""

    def __init__(self):
        super().__init__()
        self.at, self.messages = [], []

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMContextFrame):
            self.at.append(time.perf_counter())
            self.messages.append(len(frame.context.get_messages()))
        await self.push_frame(frame, direction)


def _hindsight(kept):
    async def arecall(**_asked):
        await asyncio.sleep(LOOK_UP_S)
        return types.SimpleNamespace(results=[types.SimpleNamespace(text="Ana likes jazz")])

    async def aretain(**given):
        kept.append(given["content"])

    client = types.SimpleNamespace(arecall=arecall, aretain=aretain)
    return HindsightMemoryService(client=client, bank_id="ana")


def _supermemory(kept):
    service = SupermemoryPipecatService(api_key="x", user_id="ana", session_id="c")

    async def retrieve(_query):
        await asyncio.sleep(LOOK_UP_S)
        return {"profile": {"static": ["Ana likes jazz"], "dynamic": []}, "search_results": []}

    async def store(messages, *_more, **_options):
        kept.append(str(messages))

    service._retrieve_memories, service._store_messages = retrieve, store
    return service


def _mem0(kept):
    service = Mem0MemoryService.__new__(Mem0MemoryService)
    FrameProcessor.__init__(service)
    options = Mem0MemoryService.InputParams()

    def search(*_asked, **_options):
        time.sleep(LOOK_UP_S)
        return {"results": [{"memory": "Ana likes jazz"}]}

    def add(**given):
        kept.append(str(given["messages"]))

    service.memory_client = types.SimpleNamespace(search=search, add=add)
    service.user_id, service.agent_id, service.run_id = "ana", None, None
    service.search_limit, service.search_threshold = options.search_limit, options.search_threshold
    service.system_prompt, service.add_as_system_message = (
        options.system_prompt,
        options.add_as_system_message,
    )
    service.position, service.last_query = options.position, None
    return service


PIPECAT = {
    "hindsight-pipecat": _hindsight,
    "supermemory-pipecat": _supermemory,
    "pipecat-ai": _mem0,
    "echoic": None,
}


@contextlib.asynccontextmanager
async def _pipeline(endpoint, make):
    """A call with one plug-in where its documentation puts it."""
    call = pc.Call(endpoint, None)
    before, behind = Tap(), Tap()
    memory = make(call)
    chain = [before, memory, behind, call.llm]
    if isinstance(memory, EchoicMemory):
        chain = [before, memory, behind, call.llm, memory.mouth]
    ear = [memory.ear] if isinstance(memory, EchoicMemory) else []
    chain = [*ear, call.aggregators.user(), *chain, call.voice, call.aggregators.assistant()]
    call.worker = PipelineWorker(Pipeline(chain), cancel_on_idle_timeout=False, enable_rtvi=False)
    started = asyncio.Event()

    async def begun(_worker, _frame):
        started.set()

    call.worker.add_event_handler("on_pipeline_started", begun)
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(call.worker)
    running = asyncio.ensure_future(runner.run())
    await asyncio.wait_for(started.wait(), 20)
    try:
        yield call, before, behind
    finally:
        await call.worker.queue_frame(EndFrame())
        await running
        await asyncio.sleep(0.3)  # what a plug-in still keeps behind the end


def _kept_of(kept, said):
    """How many of the turns that were said stand in what was given to keep."""
    return sum(any(text.rstrip(".?! ") in each for each in kept) for text in said)


ANSWERS = ["Noted, peanuts it is.", "You are allergic to peanuts.", "You are called Ana."]


async def _talk(endpoint, name, count, service):
    """A call of `count` exchanges; what came of it."""
    kept = []
    endpoint.answers, endpoint.requests = [*ANSWERS[:count]], []
    user = service.user(f"ana-{count}")

    def make(call):
        if PIPECAT[name] is not None:
            return PIPECAT[name](kept)
        return EchoicMemory(user, call.aggregators, call="call", deadline_ms=pc.PATIENT_MS)

    async with _pipeline(endpoint, make) as (call, before, behind):
        for text in SAID[:count]:
            await call.utter(text, pace_s=0.15)  # some 400 words a minute: faster than people speak
            answered = call.answered
            await call.until(lambda seen=answered: call.answered > seen)
        context = len(call.context.get_messages())
    if PIPECAT[name] is None:
        kept = [turn.text for turn in await pc.turns(user, "call")]
    said = [text for pair in zip(SAID[:count], ANSWERS[:count], strict=True) for text in pair]
    return {
        "kept": f"{_kept_of(kept, said)} of {2 * count}",
        "added_ms": [round((b - a) * 1000) for a, b in zip(before.at, behind.at, strict=False)],
        "requests": len(endpoint.requests),
        "context": context - (1 + 2 * count),
        "roles": [message["role"] for message in endpoint.requests[-1]][-2:],
    }


endpoint = pc.endpoint


@pytest.fixture
async def service(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder=SlowQuestions()) as opened:
        yield opened


async def test_in_the_same_pipecat_calls_ours_keeps_every_turn_and_adds_no_look_up(endpoint, service):
    rows = {}
    for name in PIPECAT:
        one, three = await _talk(endpoint, name, 1, service), await _talk(endpoint, name, 3, service)
        rows[name] = one, three
        print(
            f"| {name} {version(name)} | {one['kept']} | {three['kept']} | {three['added_ms']} ms | "
            f"{three['context']} | {', '.join(three['roles'])} | {three['requests']} |"
        )
    one, three = rows["echoic"]
    assert (one["kept"], three["kept"]) == ("2 of 2", "6 of 6")
    assert three["requests"] == 3
    assert three["context"] == 0
    # in ratio to what a peer that looks up at the end adds, in the same run
    assert 3 * max(three["added_ms"]) < max(rows["hindsight-pipecat"][1]["added_ms"])


class _Zep:
    """A client that answers everything after a while."""

    def __getattr__(self, _name):
        return _Zep()

    async def __call__(self, *_given, **_options):
        await asyncio.sleep(LOOK_UP_S)
        return types.SimpleNamespace(context="Ana likes jazz", items=[], uuid="u")


async def test_in_the_same_livekit_call_ours_asks_the_model_once_a_turn(service):
    zep = {
        "user_uuid": "6e7d0000-0000-0000-0000-000000000000",
        "thread_uuid": "1f2a0000-0000-0000-0000-000000000000",
    }

    def zep_agent(_memory):
        return ZepUserAgent(zep_client=_Zep(), instructions="You are Pip.", **zep)

    agents = {
        "zep-livekit": lambda: lk.calling(zep_agent),
        "echoic": lambda: lk.with_echoic(service.user("ana")),
    }
    requests = {}
    for name, calling in agents.items():
        async with calling() as call:
            for text in SAID:
                await call.exchange(text)
            requests[name] = len(call.model.requests)
            waited = [
                item.metrics.get("on_user_turn_completed_delay")
                for item in call.items
                if getattr(item, "role", "") == "user"
            ]
        shown = [None if seconds is None else round(seconds * 1000) for seconds in waited]
        print(f"| {name} {version(name)} | {requests[name]} for {len(SAID)} turns | {shown} ms |")
    assert requests["echoic"] == len(SAID)
