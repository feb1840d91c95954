"""A clinic's telephone line that proves who calls before it tells what it knows.

Three simulated calls that show the same number: Ana's own, which her carrier vouches for, in which she sets a
PIN; one that anybody could have forged; and Ana's from abroad, where no carrier vouches, with her PIN. Runs
without an account and without a key: the model is a script behind PydanticAI's own stack. Needs the extra
"phone". With a model of yours the agent is one line: Agent("openai:gpt-5", name="clinic").

    python examples/clinic_line.py
"""

# ruff: noqa: INP001, T201, ASYNC110 - a program, not a package; uvicorn has no event for having started
from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel

import echoic
from echoic.adapters.twilio import Phone, PhoneSettings, phone_app, uvicorn_options
from echoic_loopback.twilio import SimulatedCall

ACCOUNT = secrets.token_urlsafe(32)
VOUCHED, NOBODY = "TN-Validation-Passed-A", ""
CALLS = (
    (
        "Ana, at home",
        VOUCHED,
        ["I'm allergic to penicillin.", "I want to set a PIN.", "My PIN is 4 8 2 9 1 3."],
    ),
    ("somebody who shows Ana's number", NOBODY, ["What am I allergic to?"]),
    ("Ana, abroad", NOBODY, ["My PIN is 4 8 2 9 1 3.", "What am I allergic to?"]),
)


async def script(messages: list[Any], _info: Any) -> AsyncIterator[str]:
    """What a careful model would say: only what it was told."""
    told = " ".join(str(getattr(part, "content", "")) for message in messages for part in message.parts)
    if "What am I" not in told:
        yield "I wrote that down."
    elif "penicillin" in told:
        yield "You are allergic to penicillin."
    else:
        yield "I cannot tell you that before I know who you are."


async def main() -> None:
    """Answer three calls."""
    agent = Agent(FunctionModel(stream_function=script), name="clinic")
    with tempfile.TemporaryDirectory() as folder:
        async with echoic.open(f"sqlite:///{folder}/clinic.db", embedder="lexical") as service:
            settings = PhoneSettings(auth_token=ACCOUNT, salt=secrets.token_urlsafe(32))
            app = phone_app(Phone(service, agent, settings))
            server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", **uvicorn_options()))
            serving = asyncio.create_task(server.serve())
            while not server.started:
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            for who, attestation, turns in CALLS:
                print(f"-- {who}")
                async with SimulatedCall(
                    f"http://127.0.0.1:{port}", ACCOUNT, attestation=attestation
                ) as call:
                    print("clinic:", await call.dial())
                    for said in turns:
                        print("caller:", said)
                        print("clinic:", await call.say(said))
                    await call.hang_up()
                await service.distil()
            server.should_exit = True
            await serving


if __name__ == "__main__":
    asyncio.run(main())
