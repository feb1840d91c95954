"""The history that the ready-made agent shows its model."""

from __future__ import annotations

from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from echoic import Turn
from echoic.capability.talker import Talker, history_of


async def test_a_deleted_word_is_in_no_later_prompt_of_its_conversation(memory):
    seen = []

    async def stream(messages, _info):
        seen.append(str(messages))
        yield "Right."

    ana = memory.user("ana")
    call = await ana.conversation("c")
    await call.append(Turn(speaker="user", text="My husband is called Bartholomew. I like tea."))
    await call.distil()
    for fact in await ana.facts():
        if "Bartholomew" in fact.text:
            await ana.delete(fact.key)
    async with Talker(memory, FunctionModel(stream_function=stream)) as talker:
        async for _piece in talker.reply(ana, call, "What do I like?"):
            pass
    assert "I like tea" in seen[0]
    assert "Bartholomew" not in seen[0]


def test_other_peoples_words_are_not_the_models():
    history = history_of(
        [
            Turn(speaker="agent", text="Hello."),
            Turn(speaker="Ana", text='I live in "Porto".'),
            Turn(speaker="agent", text="Noted."),
            Turn(speaker="user", text="So do I."),
        ]
    )
    assert [type(message) for message in history] == [ModelRequest, ModelResponse, ModelRequest]
    assert [part.content for message in history for part in message.parts] == [
        '"Ana" said: "I live in \'Porto\'."',
        "Noted.",
        "So do I.",
    ]
    assert isinstance(history[1].parts[0], TextPart)
