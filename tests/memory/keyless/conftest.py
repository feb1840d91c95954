from __future__ import annotations

import pytest

import echoic
from echoic.memory.keyless import KeylessAgent


class Talk:
    """One user talking to the agent."""

    def __init__(self, service, user="pavel"):
        self.memory = service.user(user)
        self.agent = KeylessAgent(self.memory)
        self.conversation = None

    async def say(self, text):
        if self.conversation is None:
            await self.begin()
        return await self.agent.reply(self.conversation, text)

    async def begin(self):
        self.conversation = await self.memory.conversation()
        return await self.agent.greet(self.conversation)


@pytest.fixture
async def service():
    async with echoic.open("memory://", embedder="lexical") as opened:
        yield opened


@pytest.fixture
def talk(service):
    return Talk(service)


@pytest.fixture
def another(service):
    """Somebody else of the same deployment."""
    return Talk(service, "eve")
