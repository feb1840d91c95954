"""Nothing personal of one user is in any prompt of another, whatever they say and whatever models propose."""

from __future__ import annotations

import json
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import echoic
from echoic.capability import Memory, reflect
from echoic.types import EXPERIENCE_KINDS
from scale import many

# Each user has their own: names a list knows and names none does, addresses, numbers.
PLANTED = {
    "ana": {
        "name": ["Zorvath", "Ottilie", "Okonkwo"],
        "mail": ["zorvath.o@example.com", "ottilie_77@mail.example"],
        "number": ["054 555 1234", "4111 1111 1111 1111", "8853"],
        "place": ["Quxbury", "Haifa"],
    },
    "bob": {
        "name": ["Brandal", "Priyanka", "Fenwick"],
        "mail": ["fenwick@firm.example", "p.brandal@post.example"],
        "number": ["+44 20 7946 0958", "DE89 3704 0044 0532 0130 00", "6142"],
        "place": ["Vellmoor", "Lisbon"],
    },
    "eva": {
        "name": ["Tamsinda", "Yusuf"],
        "mail": ["t@x.example"],
        "number": ["7719"],
        "place": ["Dunmarrow"],
    },
}
SAID = [
    "My name is {name}.",
    "I'm {name} and I live in {place}.",
    "My sister is called {name}, her number is {number}.",
    "You can reach me at {mail} or {number}.",
    "Please remember that {name} has the code {number}.",
    "I prefer action movies, like {name} does.",
    "Opening hours are nine to five, ask {name}.",
    "The store in {place} is open Monday to Friday, call {number}.",
    "Refunds are sent to {mail}.",
    "Recommend me a movie.",
]
KEYS = ["user_name", "store_hours", "refund_policy", "note", "contact", "menu", "return_policy", "{name}"]
LESSONS = [
    "Ask for the genre before recommending a movie.",
    "Ask {name} for the genre first.",
    "{name} likes action movies.",
    "Call {number} when a caller is unsure.",
    "Send the summary to {mail}.",
    "People in {place} want short answers.",
    "people from {place} ask for {name}",
]


def filled(template, user, draw):
    kinds = set(re.findall(r"\{(\w+)\}", template))
    return template.format(**{kind: draw(st.sampled_from(PLANTED[user][kind])) for kind in kinds})


@st.composite
def lives(draw):
    """For each user: what they say, what the model sets of it under which key, and what it proposes to learn."""
    return {
        user: [
            (
                filled(draw(st.sampled_from(SAID)), user, draw),
                filled(draw(st.sampled_from(KEYS)), user, draw),
                filled(draw(st.sampled_from(LESSONS)), user, draw),
            )
            for _ in range(draw(st.integers(1, 4)))
        ]
        for user in PLANTED
    }


def words(message):
    """All that stands in a message, without its ids and times."""
    spoken = [(getattr(part, "content", None), getattr(part, "args", None)) for part in message.parts]
    # instructions as they first were stand among the parts, changes of them are parts with content
    first = [
        [i.content for i in part.instructions if hasattr(i, "content")]
        for part in message.parts
        if hasattr(part, "instructions")
    ]
    return json.dumps([spoken, first], ensure_ascii=False, default=str)


class Model:
    """Sets what it hears under a key of its script, asks memory for everything, and keeps what it was sent."""

    def __init__(self):
        self.key = ""
        self.sent = []

    def answer(self, messages, info):
        self.sent.append("\n".join([str(info.instructions), *(words(m) for m in messages)]))
        last = messages[-1].parts[-1]
        if not any(part.part_kind == "tool-return" for part in messages[-1].parts):
            arguments = {"operation": "set", "key": self.key, "value": str(last.content)}
            asking = [
                {"operation": "query", "query": q} for q in ("name number address", "opening hours refund")
            ]
            asking += [{"operation": "get", "key": key} for key in ("store_hours", "user_name", "contact")]
            calls = [ToolCallPart("agentMemory", each) for each in (arguments, *asking)]
            return ModelResponse(
                parts=[*calls, ToolCallPart("recall_conversation", {"key": "the last talk"})]
            )
        return ModelResponse(parts=[TextPart("I see.")])


async def live(service, model, user, life):
    agent = Agent(
        FunctionModel(model.answer), deps_type=str, name="films", capabilities=[Memory(service, user=str)]
    )
    for said, key, _ in life:
        model.key = key
        await agent.run(said, deps=user, conversation_id=f"{user}-talk")
    call = await service.user(user).conversation(f"{user}-talk")
    await call.store("the last talk", life[0][0])
    await call.complete()
    proposed = [
        {"kind": EXPERIENCE_KINDS[n % len(EXPERIENCE_KINDS)], "text": text}
        for n, (_, _, text) in enumerate(life)
    ]

    def review(messages, info):
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"lessons": proposed})])

    await reflect(service, f"{user}-talk", user=user, model=FunctionModel(review))
    await service.distil()


def found(text, user):
    """What is planted of `user` and stands in `text`, however it is written."""
    plain = re.sub(r"[^a-z0-9@]", "", json.dumps(text, ensure_ascii=False).lower())
    return [
        value
        for values in PLANTED[user].values()
        for value in values
        if re.sub(r"[^a-z0-9@]", "", value.lower()) in plain
    ]


@settings(max_examples=many(16, least=4), deadline=None, suppress_health_check=list(HealthCheck))
@given(lives())
async def test_nobodys_prompt_holds_anything_personal_of_another(life):
    # shared at once: the stricter setting holds back more
    async with echoic.open("memory://", embedder="lexical", global_writes="auto") as service:
        models = {user: Model() for user in life}
        for _ in range(2):  # the second time everybody else has a history and experience
            for user, model in models.items():
                await live(service, model, user, life[user])
        for user, model in models.items():
            assert model.sent
            for sent in model.sent:
                for other in PLANTED:
                    leaked = found(sent, other) if other != user else []
                    assert not leaked, f"{user} was shown {leaked} of {other}"


async def test_control_one_memory_for_all_shows_everybody_everything():
    """The same check bites where two callers are taken for one."""
    async with echoic.open("memory://", embedder="lexical") as service:
        model = Model()
        life = [("My name is Zorvath.", "user_name", LESSONS[0])]
        await live(service, model, "same", life)
        await live(service, model, "same", [("Hello there", "note", LESSONS[0])])
        assert found(model.sent[-1], "ana") == ["Zorvath"]
