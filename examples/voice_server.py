"""A web page on which callers talk with your own agent, which remembers them.

    OPENAI_API_KEY=… python examples/voice_server.py openai:gpt-realtime
    GOOGLE_API_KEY=… python examples/voice_server.py google:gemini-3.8-live

Needs the extras server and voice. What the page and the server say to each other: docs/voice_page.md.
"""

# ruff: noqa: INP001, T201 - a program, not a package
from __future__ import annotations

import asyncio
import os
import secrets
import sys

from pydantic_ai import RunContext

import echoic
from echoic.server import MemoryServer, ServerSettings, create_app, uvicorn_config
from echoic.session import CallContext, VoiceAgent

ORDERS = {"1207": "on its way, due tomorrow", "1208": "packed"}


async def order(ctx: RunContext[CallContext], number: str) -> str:
    """Look an order up.

    Args:
        ctx: the call; its `deps.user` is the caller's memory.
        number: of the order.
    """
    state = ORDERS.get(number)
    if state is None:
        return "There is no such order."
    await ctx.deps.user.set("last_order", number)
    return f"Order {number} is {state}."


FRONT = VoiceAgent(
    name="robin",
    instructions="You answer the calls of a parcel service. Be brief and kind.",
    greeting="Greet the caller, by name if you know it, and ask what you can do.",
    tools=[order],
    idempotent=frozenset({"order"}),  # may be run again when a server died before it answered
)
CLAIMS = VoiceAgent(
    name="casey",
    instructions="You take claims about damaged parcels. Ask for the order's number first.",
    greeting="Say who you are, and ask what happened.",
)


async def main(model: str, port: int = 8300) -> None:
    """Serve until interrupted."""
    settings = ServerSettings(
        # keep yours: with another secret nobody is known again
        secret=os.environ.get("ECHOIC_SECRET") or secrets.token_urlsafe(32),
        voice_model=model,
        voice_agents=[FRONT, CLAIMS],  # each may hand the call to the other
    )
    memory = echoic.open("sqlite:///voice.db", embedder=os.environ.get("ECHOIC_EMBEDDER", "local"))
    app = create_app(memory, settings)  # opens the memory when it starts, and closes it
    print(f"http://127.0.0.1:{port}/", flush=True)
    await MemoryServer(uvicorn_config(app, port=port)).serve()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:3])))
