"""A support agent on LiveKit Agents that knows its customers, their tickets, and what holds for everybody.

    pip install 'echoic[livekit,local]'
    LIVEKIT_URL=... LIVEKIT_API_KEY=... LIVEKIT_API_SECRET=... python examples/support_livekit.py dev

Join a room of your project, from your app or LiveKit's playground, and speak. Recogniser, model and voice are
LiveKit Inference's, so no other keys are needed. A customer is the identity in the participant's token, which
your server signs. What customers say is kept in support.db.
"""

# ruff: noqa: INP001 - a program, not a package
from __future__ import annotations

from typing import Any

from livekit.agents import AgentServer, AgentSession, JobContext, cli, function_tool

import echoic
from echoic.integrations.livekit import EchoicAgent, remember
from echoic.memory.global_facts import GlobalFact
from echoic.memory.user import UserMemory

INSTRUCTIONS = (
    "You are the support line of Northwind, which makes routers. Your words are spoken: be brief. Use what "
    "you are told of the customer and do not ask for it again. Open a ticket when you cannot solve something."
)
KNOWN_TO_ALL = [
    GlobalFact(key="red_light", text="A red light on the router means that it has no line: check the cable."),
    GlobalFact(key="warranty", text="Northwind's warranty on routers is three years from the invoice."),
]


def voice() -> dict[str, Any]:
    """Recogniser, model and voice, by their names at LiveKit Inference; plugins of your own go here too."""
    return {"stt": "deepgram/nova-3", "llm": "openai/gpt-4.1-mini", "tts": "cartesia/sonic-3"}


class Support(EchoicAgent):
    """The agent of one call. Its tools reach the tickets of its customer only."""

    def __init__(self, customer: UserMemory, **options: Any) -> None:
        super().__init__(instructions=INSTRUCTIONS, **options)
        self.tickets = customer.items("tickets", searchable=True)

    @function_tool
    async def open_ticket(self, summary: str) -> str:
        """Open a ticket for the customer.

        Args:
            summary: the problem in one sentence, with the device.
        """
        name = f"T-{len(await self.tickets.all()) + 1}"
        await self.tickets.set(name, {"summary": summary, "state": "open"}, text=summary)
        return f"Opened ticket {name}."

    @function_tool
    async def find_tickets(self, about: str) -> str:
        """Find the customer's earlier tickets.

        Args:
            about: what they are about.
        """
        found = await self.tickets.search(about, limit=3)
        told = [f"{item.name} ({item.value['state']}): {item.value['summary']}" for item in found.items]
        if not told and found.outcome != "complete":  # not the same as there being none
            return "The tickets could not be searched just now."
        return "\n".join(told) or "There is none."


server = AgentServer()


@server.rtc_session()
async def answer(ctx: JobContext) -> None:
    """Serve the customer who has joined the room, until they leave."""
    await ctx.connect()
    customer = (await ctx.wait_for_participant()).identity
    service = await echoic.open("sqlite:///support.db").open()
    await service.global_facts().fill(KNOWN_TO_ALL)
    user = service.user(customer)
    session = AgentSession(**voice())
    call = remember(session, user, agent="support")

    async def hang_up() -> None:
        await call.aclose()  # every turn is kept now
        await service.aclose()

    ctx.add_shutdown_callback(hang_up)
    await session.start(Support(user, memory=call), room=ctx.room)


if __name__ == "__main__":
    cli.run_app(server)
