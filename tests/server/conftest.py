from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import jwt
import pytest
import pytest_asyncio

import echoic
from echoic.server import MemoryServer, ServerSettings, create_app, uvicorn_config

SECRET = "of these tests, and long enough for HS256"
OPERATOR_KEY = "the operator of these tests, and no other"
AGENT_KEY = "the backend of these tests, for its own users"
ACME_KEY = "the backend of another deployment, as long"


@dataclass(frozen=True)
class Identity:
    token: str
    user: str
    deployment: str

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}

    def operation(self, operation, **fields):
        """The body of POST /api/memory."""
        named = {"deploymentId": self.deployment, "userCookie": self.token}
        return {"operation": operation, **named, **fields}


class Server:
    """A running server and a client of it."""

    def __init__(self, url, client, memory, app, uvicorn):
        self.url, self.client, self.memory, self.app, self.uvicorn = url, client, memory, app, uvicorn

    async def identity(self, deployment="default"):
        answer = await self.client.post("/api/identity", json={"deploymentId": deployment})
        assert answer.status_code == 200, answer.text
        given = answer.json()
        return Identity(given["userCookie"], given["user"], given["deploymentId"])

    async def memory_of(self, identity, operation, **fields):
        return await self.client.post("/api/memory", json=identity.operation(operation, **fields))

    async def say(self, identity, text, **fields):
        answer = await self.client.post("/api/chat", json={"text": text, **fields}, headers=identity.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()


def settings_of(**changes):
    return ServerSettings(
        **{
            "secret": SECRET,
            "operator_key": OPERATOR_KEY,
            "agent_keys": {AGENT_KEY: "default", ACME_KEY: "acme"},
            "deployments": frozenset({"default", "acme"}),
            # a busy machine would search by words alone, and find something else
            "recall_deadline_ms": None,
            **changes,
        }
    )


@asynccontextmanager
async def serving(memory, settings):
    """The app behind a real uvicorn on a real socket."""
    app = create_app(memory, settings)
    # named TCP, or asyncio leaves Nagle's algorithm on and every answer waits 40 ms for an acknowledgement
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = MemoryServer(uvicorn_config(app))
        running = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            if running.done():
                await running
                raise AssertionError("the server ended before it began")
            await asyncio.sleep(0.01)
        try:
            async with httpx.AsyncClient(base_url=url, timeout=30, verify=False) as client:
                yield Server(url, client, memory, app, server)
        finally:
            server.should_exit = True
            await running


def started(
    url,
    *,
    global_writes="propose",
    distils_with=None,
    embedder="lexical",
    quota=None,
    secrets="mask",
    **changes,
):
    """A server on the store at `url`, with the embedder that needs nothing."""
    memory = echoic.open(
        url,
        embedder=embedder,
        model=distils_with,
        global_writes=global_writes,
        quota=quota,
        secrets=secrets,
    )
    return serving(memory, settings_of(**changes))


@pytest.fixture
def start(tmp_path):
    """Start a server; store and settings as asked."""

    def start(*, url=f"sqlite:///{tmp_path}/echoic.db", **changes):
        return started(url, **changes)

    return start


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory):
    """One for all tests of a module: they are different callers, and nobody sees anybody."""
    async with started(f"sqlite:///{tmp_path_factory.mktemp('server')}/echoic.db") as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def own(start):
    """A server for one test alone."""
    async with start() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def ana(server):
    """A caller nobody has met."""
    return await server.identity()


@pytest.fixture
def forge():
    """Tokens nobody gave out: any claims, any key, any algorithm."""

    def forged(claims, *, key=SECRET, algorithm="HS256"):
        return jwt.encode(claims, key, algorithm=algorithm)

    return forged


@pytest.fixture
def operator():
    return {"Authorization": f"Bearer {OPERATOR_KEY}"}
