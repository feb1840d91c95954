"""A restaurant's reservations with Pipecat: the line books tables, and knows its guests when they call again.

    pip install 'echoic[pipecat,local]' 'pipecat-ai[openai,runner,webrtc]'
    OPENAI_API_KEY=... GUEST=ana python examples/restaurant_pipecat.py

Open the page that it prints and speak. GUEST is who calls. A service of yours knows that from a login: what
a browser or a caller says about itself proves nothing. Reservations and turns are kept in restaurant.db.
"""

# ruff: noqa: INP001, D417 - a program; Pipecat fills in `params`
from __future__ import annotations

import asyncio
import os
from datetime import date
from typing import Any

from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import (
    LLMContextAggregatorPair,
    LLMUserAggregatorParams,
)
from pipecat.runner.run import main
from pipecat.runner.types import RunnerArguments
from pipecat.runner.utils import create_transport
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.openai.stt import OpenAIRealtimeSTTService
from pipecat.services.openai.tts import OpenAITTSService
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

import echoic
from echoic.integrations.pipecat import EchoicMemory

TABLES, HOURS, MOST_PEOPLE = 2, range(18, 22), 8
PROMPT = (
    "You take reservations for the restaurant Olive on the telephone. Be brief. Use what you are told of the "
    "guest, such as allergies and the table they like, and do not ask for it again. Today is {today}."
)


class Book:
    """The reservations of the house, as far as one guest reaches them: the model cannot name another."""

    turn = asyncio.Lock()  # one call at a time looks for a table and takes it

    def __init__(self, service: echoic.MemoryService, guest: str) -> None:
        self.guest, self.pages = guest, service.user("the-house", "reservations").items("tables")

    async def book_table(self, params: FunctionCallParams, day: str, hour: int, people: int) -> None:
        """Book a table for the guest on the line, or change how many they are.

        Args:
            day: the day, as YYYY-MM-DD.
            hour: the full hour, from 18 to 21.
            people: how many come, from 1 to 8.
        """
        await params.result_callback(await self._book(day, hour, people))

    async def reservations(self, params: FunctionCallParams) -> None:
        """Look up the reservations of the guest on the line."""
        own = {p.name: p.value[self.guest] for p in await self.pages.all() if self.guest in p.value}
        await params.result_callback({"people_by_day_and_hour": own})

    async def _book(self, day: str, hour: int, people: int) -> dict[str, str]:
        try:
            past = date.fromisoformat(day) < date.today()  # noqa: DTZ011 - the day at the restaurant
        except ValueError:
            return {"error": "The day is not a date such as 2026-05-01."}
        if past or hour not in HOURS or not 1 <= people <= MOST_PEOPLE:
            return {"error": "We seat 1 to 8 people, from 18 to 21 o'clock, from today on."}
        async with self.turn:
            taken = page.value if (page := await self.pages.get(f"{day} {hour}:00")) else {}
            if self.guest not in taken and len(taken) >= TABLES:
                return {"error": "No table is free at that hour."}
            await self.pages.set(f"{day} {hour}:00", {**taken, self.guest: people})
        return {"booked": f"{day} at {hour}:00 for {people}"}


async def serve(guest: str, transport: Any, speech: list[Any], ears: LLMUserAggregatorParams) -> None:
    """Answer one call of `guest`."""
    stt, llm, tts = speech
    async with echoic.open("sqlite:///restaurant.db") as service:
        book = Book(service, guest)
        context = LLMContext(tools=[book.book_table, book.reservations])
        pair = LLMContextAggregatorPair(context, user_params=ears)
        memory = EchoicMemory(service.user(guest), pair, agent="olive")
        heard = [transport.input(), stt, memory.ear, pair.user(), memory]
        spoken = [llm, memory.mouth, tts, transport.output(), pair.assistant()]
        worker, runner = PipelineWorker(Pipeline([*heard, *spoken])), WorkerRunner(handle_sigint=False)

        @transport.event_handler("on_client_disconnected")
        async def hung_up(_transport: Any, _client: Any) -> None:
            await worker.cancel()

        await runner.add_workers(worker)
        await runner.run()  # every turn is kept when it returns


def services() -> list[Any]:
    """Recogniser, model and voice. Any others of Pipecat's will do."""
    told = PROMPT.format(today=f"{date.today():%A, %Y-%m-%d}")  # noqa: DTZ011
    model = OpenAILLMService(settings=OpenAILLMService.Settings(system_instruction=told))
    return [OpenAIRealtimeSTTService(api_key=os.environ["OPENAI_API_KEY"]), model, OpenAITTSService()]


async def bot(arguments: RunnerArguments) -> None:
    """What Pipecat's runner calls for each browser that connects."""
    sound = {"webrtc": lambda: TransportParams(audio_in_enabled=True, audio_out_enabled=True)}
    transport = await create_transport(arguments, sound)
    ears = LLMUserAggregatorParams(vad_analyzer=SileroVADAnalyzer())
    await serve(os.environ.get("GUEST", "guest"), transport, services(), ears)


if __name__ == "__main__":
    main()
