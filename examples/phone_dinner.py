"""Two phone calls: the first stores a menu, the second recalls it by a misheard key.

Runs without an account and without a key: the calls are simulated, signatures included, and the model is a
script behind PydanticAI's own stack. Needs the extra "phone". With a model of yours the agent is one line:
Agent("openai:gpt-5", name="robin").

    python examples/phone_dinner.py
    echoic phone serve --agent examples.phone_dinner:agent      # the same agent, to call by yourself
"""

# ruff: noqa: INP001, T201, ASYNC110 - a program, not a package; uvicorn has no event for having started
from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from pydantic_ai import Agent
from pydantic_ai.messages import ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, DeltaToolCalls, FunctionModel

import echoic
from echoic.adapters.twilio import Phone, PhoneSettings, phone_app, uvicorn_options
from echoic_loopback.twilio import SimulatedCall

MENU = "mushroom soup, roast duck with plums, and lemon tart"
ACCOUNT = "any text, on both ends"


async def script(messages: list[Any], _info: Any) -> AsyncIterator[str | DeltaToolCalls]:
    """What a model might do with this conversation."""
    parts = [part for message in messages for part in message.parts]
    prompts = [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
    said = next(text for text in reversed(prompts) if not text.startswith(("<system>", "<memory"))).lower()
    results = [
        json.loads(part.model_response_str())
        for part in messages[-1].parts
        if isinstance(part, ToolReturnPart)
    ]
    if results and "remember" in said:
        yield f"I stored it. Call it your {results[0]['result']['key']}."
    elif results:
        turns = " ".join(turn.get("text", "") for turn in (results[0].get("result") or {}).get("turns", []))
        yield f"You planned {MENU}." if MENU in turns else results[0].get("say", "I found nothing.")
    elif "remember" in said:
        arguments = {"key": "dinner menu", "summary": "The menu for Saturday's dinner."}
        yield {0: DeltaToolCall("store_conversation", json.dumps(arguments))}
    elif "my " in said:
        yield "Let me see. "
        yield {0: DeltaToolCall("recall_conversation", json.dumps({"key": said.rpartition("my ")[2]}))}
    else:
        for word in f"How about {MENU}?".split():
            yield f"{word} "


agent = Agent(FunctionModel(stream_function=script), name="robin")


async def main() -> None:
    """Answer two calls."""
    with tempfile.TemporaryDirectory() as folder:
        async with echoic.open(f"sqlite:///{folder}/phone.db", embedder="lexical") as service:
            settings = PhoneSettings(auth_token=ACCOUNT, salt="keep this: numbers are hashed with it")
            app = phone_app(Phone(service, agent, settings))
            server = uvicorn.Server(uvicorn.Config(app, port=8377, **uvicorn_options()))
            serving = asyncio.create_task(server.serve())
            while not server.started:
                await asyncio.sleep(0.01)
            for turns in (
                ["Plan a dinner for six on Saturday.", "Please remember that."],
                ["What was in my diner menue"],
            ):
                async with SimulatedCall("http://127.0.0.1:8377", ACCOUNT) as call:
                    print("robin:", await call.dial())
                    for said in turns:
                        print("you:  ", said)
                        print("robin:", await call.say(said))
                    await call.hang_up()
            server.should_exit = True
            await serving


if __name__ == "__main__":
    asyncio.run(main())
