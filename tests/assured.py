"""What is planted for the tests of who is told what, and what to ask for to be told all of it."""

from __future__ import annotations

from echoic.memory.assurance import SENSITIVITIES
from echoic.types import Turn

PLANTED = {"open": "quokka", "personal": "numbat", "sensitive": "bilby"}
ABOUT = {"personal": "my {} likes jazz", "sensitive": "my {} has diabetes and takes insulin"}
QUESTION = "what about the bilby and the numbat and the quokka"
AGENT_ASKS = [
    ("agentMemory", {"operation": "query", "query": QUESTION}),
    *(("agentMemory", {"operation": "get", "key": f"{each}_pet"}) for each in ABOUT),
    *(("recall_conversation", {"key": f"the {each} chat"}) for each in ABOUT),
]
"""Tools that an agent of Echoic's own has, and what it asks them."""
TOOL_ASKS = [
    ("search_memory", {"query": QUESTION}),
    *(("get_memory", {"key": f"{each}_pet"}) for each in ABOUT),
]
"""Likewise, of those that integrations hand to a model."""


async def plant(service, user="ana", deployment="default"):
    ana = service.user(user, deployment)
    await ana.set_directives(tone=f"like a {PLANTED['open']}")
    for sensitivity, sentence in ABOUT.items():
        word = PLANTED[sensitivity]
        await ana.set(f"{sensitivity}_pet", sentence.format(word))
        await ana.remember(f"Of old, {sentence.format(word)}.")
        call = await ana.conversation(f"old-{sensitivity}")
        await call.append(
            Turn(speaker="user", text=f"Well, {sentence.format(word)}.", id=f"said-{sensitivity}"),
            Turn(speaker="agent", text=f"So {sentence.format(word)}.", id=f"answered-{sensitivity}"),
        )
        await call.store(f"the {sensitivity} chat", sentence.format(word))
        await ana.add_result(f"old-{sensitivity}", "look_up", {"found": sentence.format(word)})


def words_in(told):
    """The sensitivities of what was told."""
    text = str(told).replace(QUESTION, "")
    return {sensitivity for sensitivity, word in PLANTED.items() if word in text}


def allowed(most):
    """The sensitivities that may be told to whoever is told `most` at most."""
    return set(SENSITIVITIES[: SENSITIVITIES.index(most) + 1])
