"""Who said a turn: under whatever name the two roles go, their words are learned from, or refused aloud."""

from __future__ import annotations

import logging

import pytest

import echoic
from echoic import InvalidInput, Turn
from echoic.errors import StoreCorrupt
from echoic.memory.records import record_of_turn, turn_of

USERS = [
    "user",
    "User",
    "USER",
    " user ",
    "human",
    "Human",
    "caller",
    "CALLER",
    "customer",
    "client",
    "end-user",
]
AGENTS = ["agent", "assistant", "Assistant", "AI", "bot", "model", "ai_assistant", "Voice Agent", "ChatBot"]
PEOPLE = [
    *(
        "Ana",
        "Caroline",
        "José María",
        "Mary-Ann O'Brien",
        "de la Cruz",
        "李雷",
        "Анна",
        "שרה",
        "DJ",
        "J. R.",
    ),
    *("Toolan", "Modele", "Usher", "Botond", "Aida", "Agentina Smith"),
]
NOBODY = [
    *("system", "System", "developer", "tool", "Tools", "function", "memory", "unknown", "narrator", "xyz"),
    *("speaker", "SPEAKER_00", "Speaker 1", "speaker#2", "user_1", "Caller 2", "agent-3", "ana@example.com"),
]


@pytest.fixture
async def memory(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/s.db", embedder="lexical") as opened:
        yield opened


@pytest.mark.parametrize("speaker", USERS)
async def test_what_the_user_says_is_learned_by_whatever_name_they_go(memory, speaker):
    ana = memory.user("ana")
    call = await ana.conversation("c")
    (kept,) = await call.append(Turn(speaker=speaker, text="I live in Lisbon."))
    await call.learn()
    assert kept.speaker == "user"
    assert [fact.text for fact in await ana.facts()] == ["Lisbon"]


@pytest.mark.parametrize("speaker", AGENTS)
async def test_what_the_agent_says_is_never_taken_for_the_users(memory, speaker):
    ana = memory.user("ana")
    call = await ana.conversation("c")
    (kept,) = await call.append(Turn(speaker=speaker, text="I live in Lisbon."))
    await call.learn()
    assert kept.speaker == "agent"
    assert await ana.facts() == []


@pytest.mark.parametrize("speaker", PEOPLE)
def test_people_are_called_by_their_names(speaker):
    assert Turn(speaker=speaker, text="Hello").speaker == speaker


@pytest.mark.parametrize("speaker", NOBODY)
def test_a_speaker_nobody_can_mean_is_refused_with_the_names_there_are(speaker):
    with pytest.raises(InvalidInput) as refused:
        Turn(speaker=speaker, text="Hello")
    message = str(refused.value)
    assert all(
        f"{name}" in message for name in ("'user'", "human", "caller", "'agent'", "assistant", "'Ana'")
    )
    assert len(message) < 600


def test_a_refusal_is_short_however_long_the_speaker():
    with pytest.raises(InvalidInput) as refused:
        Turn(speaker="x" * 256, text="Hello")
    assert len(str(refused.value)) < 600


async def test_that_nothing_is_learned_from_another_person_is_said_once_and_without_their_name(
    memory, caplog
):
    call = await memory.user("ana").conversation("c")
    with caplog.at_level(logging.WARNING, logger="echoic"):
        await call.append(Turn(speaker="user", text="Hello"), Turn(speaker="agent", text="Hello"))
        assert caplog.records == []
        for _ in range(3):
            await call.append(Turn(speaker="Marta", text="I live in Porto."))
    (record,) = caplog.records
    assert "Marta" not in record.getMessage()
    assert "Porto" not in record.getMessage()
    assert (await memory.user("ana").query("Porto"))[0].turn.speaker == "Marta"


@pytest.mark.parametrize(("kept", "read"), [("tool", "tool"), ("assistant", "agent"), ("xyz", "xyz")])
def test_what_an_earlier_version_kept_is_still_read(kept, read):
    record = record_of_turn(Turn(speaker="user", text="Hello", id="t", conversation="c"))
    record.data["speaker"] = kept
    assert turn_of(record).speaker == read


@pytest.mark.parametrize("kept", [["user"], None, ""])
def test_a_damaged_speaker_is_refused_as_such(kept):
    record = record_of_turn(Turn(speaker="user", text="Hello", id="t", conversation="c"))
    record.data["speaker"] = kept
    with pytest.raises(StoreCorrupt, match="turn 't' is damaged"):
        turn_of(record)


async def told(memory, *lines):
    """What is known of Ana after a call; an agent's line begins with "A:"."""
    ana = memory.user("ana")
    call = await ana.conversation()
    for line in lines:
        speaker, text = ("agent", line[2:]) if line.startswith("A:") else ("user", line)
        await call.append(Turn(speaker=speaker, text=text.strip()))
        await call.learn()
    return {fact.key: fact.text for fact in await ana.facts()}


async def test_nothing_is_learned_of_somebody_who_was_given_the_telephone(memory):
    known = await told(
        memory,
        "My name is Aoife Brennan. I'll hand you over to Mei, she has the thing about the damp.",
        "A: Sure.",
        "Hello, Mei Tanaka here. I live in Osaka.",
        *["A: And?", "I'm allergic to nuts."] * 10,
        "I give you Aoife again.",
        "A: Thanks, Mei.",
        "So, I work for Deloitte.",
    )
    assert known == {"user_name": "Aoife Brennan", "employer": "Deloitte"}


@pytest.mark.parametrize(
    "lines",
    [
        ("I live in Cork.", "My daughter will talk to you now.", "Hi, I'm allergic to latex."),
        (
            "I live in Cork.",
            "Putting you on to Mike now.",
            "A: Sure.",
            "Hi it's Mike.",
            "I'm allergic to nuts.",
        ),
        (
            "A: Am I speaking to Mr Jones?",
            "No, this is his wife.",
            "A: Hello.",
            "I'm vegan. I'll get him.",
            "A: Thank you.",
            "Hello, Jones here.",
            "I live in Cork.",
        ),
    ],
)
async def test_nothing_is_learned_of_who_is_announced_or_answers_for_the_caller(memory, lines):
    known = await told(memory, *lines)
    assert {key: text for key, text in known.items() if key != "user_name"} == {"home": "Cork"}


async def test_who_says_that_it_is_them_again_is_learned_of_again(memory):
    known = await told(
        memory, "I'll put my wife on.", "Hi, this is Mei.", "I live in Osaka.", "Me again.", "I live in Cork."
    )
    assert known == {"home": "Cork"}


@pytest.mark.parametrize(
    "lines",
    [
        (
            "Frank wants a word.",
            "Hello, Frank here. I'm vegan.",
            "A: Okay.",
            "I live in Rome.",
            "It's me again.",
        ),
        ("Go on, say hello to the man.", "Hello. I'm four. I love trains.", "A: Hi!", "Sorry about him."),
    ],
)
async def test_nothing_is_learned_of_who_wants_a_word_and_answers(memory, lines):
    known = await told(memory, "A: Your name?", "Ivy Hill.", *lines, "I live in Cork.")
    assert known == {"user_name": "Ivy Hill", "home": "Cork"}


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ("Hello, I'm ringing for Maria Lopez.", "Hi, this is Maria Lopez, sorry the line is bad."),
        ("Hi Maria, how are you?", "Hi, it's Maria Lopez from number nine."),
        ("Sorry, one second. Maria, stop it.", "Hi, it's Maria Lopez."),
        ("Maria Lopez calling about the boiler.", "Hello? It's Maria Lopez."),
        ("My boss wants a word with you about the outage.", "My name is Maria Lopez."),
    ],
)
async def test_a_caller_who_says_their_name_in_the_next_turn_is_no_other(memory, before, says):
    known = await told(memory, before, f"{says} I live in Cork.")
    assert known == {"user_name": "Maria Lopez", "home": "Cork"}


async def test_who_says_their_own_name_again_is_the_same(memory):
    known = await told(
        memory, "A: Your name?", "Ivy. Ivy Hill, hold on.", "Hello, it's Ivy Hill.", "I live in Cork."
    )
    assert known == {"user_name": "Ivy Hill", "home": "Cork"}


@pytest.mark.parametrize(
    "lines",
    [
        ("I'll put my wife on.", "A: Okay.", "She's out. I live in Cork."),
        ("Hang on, that's my boss, Priya.", "Hello? Where were we? I live in Cork."),
        ("I'll pass you to Tom. No, never mind.", "Hello? I live in Cork."),
        ("I'll put my wife on.", "A: Sure.", "Hello? Hello?", "I live in Cork."),
        ("I'll put my wife on.", "A: Sure.", "Hi, she's busy.", "I live in Cork."),
        ("I'll put my wife on.", "Hi, it's Sue.", "Sorry, that was my wife.", "I live in Cork."),
        ("I will give the phone to my wife for her birthday.", "Hello, yes.", "I live in Cork."),
        ("Oh here she is now.", "Hello, this is Tom's class.", "I live in Cork."),
    ],
)
async def test_who_offers_the_telephone_and_goes_on_has_kept_it(memory, lines):
    assert await told(memory, *lines) == {"home": "Cork"}


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (("A: Your name?", "Ruth Baker.", "A: Yes?", "Hang on, he wants a word.", "Hello, Frank here."), "Ruth Baker"),
        (("It's Ruth, call me Ruth.", "A: Yes?", "Wait.", "Hello, it's Tamsin, I'm the carer."), "Ruth"),
        (("my name is ruth baker", "A: and", "good afternoon i am tom i have pain in my leg"), "Ruth Baker"),
        (("I'm Ruth Baker.", *["A: Yes?", "Hello?"] * 20, "Hello! I'm Mei and I'm four!"), "Ruth Baker"),
        (("My name is Ruth Baker.", "A: Yes?", "Hello, Maureen Baker here."), "Ruth Baker"),
        (("I'm Ruth.", "A: I'll put you through.", "Hello, it's Ruth Baker."), "Ruth Baker"),
        (("My name is Katherine.", "A: Yes?", "Hi, this is Catherine."), "Catherine"),
        (("A: Your name?", "Baker.", "A: Yes?", "Hello, it's Mrs Baker."), "Mrs Baker"),
        (("Hi, it's Jon Baker.", "A: Hi John.", "No, it's Don Baker."), "Don Baker"),
        (("I'm Ruth.", "A: And the account?", "Actually my name is Anna."), "Anna"),
        (("I'm Ruth.", "A: Hello?", "You can call me Anna."), "Anna"),
        (("I'm Ruth.", "A: Sorry, your name was?", "It's Anna."), "Anna"),
    ],
)  # fmt: skip
async def test_who_introduces_themselves_by_another_name_later_in_a_call_is_not_the_caller(
    memory, lines, name
):
    assert (await told(memory, *lines))["user_name"] == name


async def test_who_introduces_themselves_by_another_name_in_another_call_may_be_the_caller(memory):
    assert await told(memory, "Hello, it's Ruth.") == {"user_name": "Ruth"}
    assert await told(memory, "Hello, it's Anna.") == {"user_name": "Anna"}
