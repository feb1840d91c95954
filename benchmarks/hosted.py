"""How long a hosted platform waits for a knowledge base's answer.

    python -m benchmarks.hosted [--calls 16] [--questions 20]

Each call has a caller of its own with 200 memories, and asks a question a second of Vapi's webhook, which
is more than people do. Server and callers share a process, over a loopback socket, with SQLite and the local
embedder. Questions differ, so that no vector is known before.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import hmac
import json
import random
import tempfile
import time

import httpx
import uvicorn
from fastapi import FastAPI

import echoic
from benchmarks import machine
from echoic.integrations.hosted_agents import webhooks

SECRET = "a secret of this benchmark alone"
THINGS = (
    "boat car dentist garden invoice kettle lamp mirror piano roof sofa ticket umbrella violin yacht".split()
)
PLACES = "Aberdeen Bristol Cork Dundee Exeter Fowey Galway Hull Ipswich Jarrow Kendal Leeds Margate".split()


async def filled(service: echoic.MemoryService, caller: str) -> None:
    user = service.user(caller)
    for n in range(200):
        thing, place = THINGS[n % len(THINGS)], PLACES[n * 5 % len(PLACES)]
        await user.remember(f"The user left the {thing} number {n} in {place}.")


async def asked(http: httpx.AsyncClient, caller: str, questions: int) -> list[float]:
    took = []
    for n in range(questions):
        await asyncio.sleep(random.uniform(0.5, 1.5))
        said = [
            {
                "role": "user",
                "content": f"Where did I leave {THINGS[n % len(THINGS)]} number {n * 7} of {caller}?",
            }
        ]
        call = {"id": caller, "type": "inboundPhoneCall", "customer": {"number": caller}}
        body = json.dumps(
            {"message": {"type": "knowledge-base-request", "call": call, "messages": said}}
        ).encode()
        signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        begun = time.perf_counter()
        answer = await http.post("/vapi", content=body, headers={"x-vapi-signature": f"sha256={signature}"})
        took.append(time.perf_counter() - begun)
        if not answer.json()["documents"]:
            raise RuntimeError("a question that memory answers brought nothing")
    return took


async def measured(calls: int, questions: int) -> list[float]:
    async def whose(caller):
        return caller.number

    with tempfile.TemporaryDirectory() as folder:
        async with echoic.open(f"sqlite:///{folder}/echoic.db", embedder="local") as service:
            callers = [f"+1555000{n:04}" for n in range(calls)]
            for caller in callers:
                await filled(service, caller)
            while not await service.settle():
                pass
            app = FastAPI()
            app.include_router(webhooks(service, whose=whose, level="account", vapi_secret=SECRET))
            server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
            serving = asyncio.create_task(server.serve())
            while not server.started:
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
                await asyncio.gather(*(asked(http, caller, 2) for caller in callers))
                runs = await asyncio.gather(*(asked(http, caller, questions) for caller in callers))
            server.should_exit = True
            await serving
    return [each for run in runs for each in run]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=16)
    parser.add_argument("--questions", type=int, default=20)
    given = parser.parse_args()
    samples = asyncio.run(measured(given.calls, given.questions))
    print(
        json.dumps(
            {"calls": given.calls, **machine.percentiles(samples), "machine": machine.facts()}, indent=1
        )
    )
