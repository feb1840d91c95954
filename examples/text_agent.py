"""A text agent that remembers its users from one run of this program to the next.

    python examples/text_agent.py ana "I prefer action movies"
    python examples/text_agent.py ana "Recommend me a movie"

ECHOIC_MODEL names the model, such as "openai:gpt-5". Without it a stand-in answers that says back what it was
told before the first word: what any model would know of its caller.
"""

# ruff: noqa: INP001 - a program, not a package
from __future__ import annotations

import argparse
import asyncio
import os
from dataclasses import dataclass

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import echoic
from echoic.capability import Memory, reflect


@dataclass
class Caller:
    """The user being served; in a real service this comes from a login, never from the conversation."""

    user_id: str


def stand_in(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """No model: says what a model would have been told before the user's words."""
    told = [part.content for part in messages[-1].parts[:-1] if isinstance(part, UserPromptPart)]
    return ModelResponse(
        parts=[TextPart(f"Before you spoke I was told:\n{info.instructions}\n{''.join(map(str, told))}")]
    )


async def main(user: str, words: str) -> None:
    """One conversation of one turn."""
    store = os.environ.get("ECHOIC_STORE", "sqlite:///example.db")
    model = os.environ.get("ECHOIC_MODEL")
    async with echoic.open(store, embedder=os.environ.get("ECHOIC_EMBEDDER", "local")) as service:
        agent = Agent(
            model or FunctionModel(stand_in),
            name="films",
            deps_type=Caller,
            instructions="You recommend films. Be brief.",
            capabilities=[Memory(service, user="user_id")],
        )
        ran = await agent.run(words, deps=Caller(user))
        print(ran.output)  # noqa: T201 - this is the program's answer
        await (await service.user(user).conversation(ran.conversation_id)).complete()
        await service.distil()
        await reflect(service, ran.conversation_id, user=user, model=model)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Say something to an agent that remembers you.")
    parser.add_argument("user", help="who you are, such as ana")
    parser.add_argument("words", help='what you say, such as "I prefer action movies"')
    args = parser.parse_args()
    asyncio.run(main(args.user, args.words))
