"""Who has the telephone, as far as they say so."""

from __future__ import annotations

import pytest

from echoic.english.sentences import hands_over, is_back, takes_over
from echoic.memory.extraction.turns import of_another_voice
from echoic.types import Turn


@pytest.mark.parametrize(
    "text",
    [
        "I'll hand you over to Mei, she has the thing about the damp.",
        "I'll just pass you to my wife.",
        "Let me put him on.",
        "i'll put my daughter on for you",
        "I'll pass the phone to Tom.",
        "Hang on, here's Tom.",
        "I'll put her on. She's not fond of the telephone.",
        "I give you Aoife again.",
        "And we've a cat. I'm going to hand you back to my mum now.",
        "look ill put my grandson on hes better with these things",
        "Okay, I give you back.",
        "I'll give you back to herself.",
    ],
)
def test_who_gives_the_telephone_away_says_so(text):
    assert hands_over(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'll pass you to my wife, no, never mind.",
        "I'll pass you to Tom. No, never mind.",
        "I'll put the kettle on.",
        "Put me on the list.",
        "I'll put it on the calendar.",
        "Can you put me through to billing?",
        "I'll give you my number.",
        "Here's my number.",
        "Here's the thing.",
        "I gave it to my wife.",
        "You put me on losartan.",
        "I'll put you on speaker.",
        "I'd put him on, but he's asleep.",
        "Oh, here she is now.",
        "",
    ],
)
def test_who_keeps_the_telephone_says_no_such_thing(text):
    assert not hands_over(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hello, Mei Tanaka here, I'm the other tenant.",
        "Yes, this is Tom.",
        "Right. It's Mei.",
        "Tom Baker speaking.",
        "hiya yeah its luke im his grandson",
        "Hey! Set a timer! I'm Alfie and I love dinosaurs!",
    ],
)
def test_who_was_given_the_telephone_says_a_name(text):
    assert takes_over(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hello? Hello?",
        "Hi, she's busy.",
        "So where were we?",
        "It's Tuesday I want.",
        "it's broken",
        "She's out.",
        "",
    ],
)
def test_who_goes_on_says_none(text):
    assert not takes_over(text)


@pytest.mark.parametrize(
    "text",
    [
        "Me again. Did you get that?",
        "Hi, it's me.",
        "I'm back.",
        "Hello, it's Aoife again.",
        "okay, me again",
        "Hi, she doesn't want to talk, so it's still me.",
        "Sorry, that was my wife.",
        "Okay, I've got the phone back.",
        "Sorry about that. Pay no heed.",
        "No, you're not. Cancel that. Sorry, that was my six-year-old.",
        "She's a good girl. Mondays she comes.",
    ],
)
def test_who_has_it_back_says_so(text):
    assert is_back(text)


@pytest.mark.parametrize("text", ["It's happened again.", "I have asthma.", "Hello, Mei here.", "Not again."])
def test_who_does_not_say_so_is_not_back(text):
    assert not is_back(text)


@pytest.mark.parametrize(
    ("said", "others"),
    [
        ("Hello, it's Ada Byron. | I'm diabetic. | Hello, Frank here. | I've strips. | It's me again. | Bye.", [2, 3]),
        (">Can I take your name? | Byron. Mrs Ada Byron. | Hello! I'm Nia and I'm four! | Sorry about that. | No.", [2]),
        ("Hiya Gemma, it's Ada Byron. | Here. | Hello Gemma, it's Bernadette. | I'll give you back. | Right.", [2, 3]),
        ("Morning, Ada Byron here. | Hello? It's Ada still. | Hi, it's Ada Byron again.", []),
        ("Hello, it's Ada. | Hi, this is Mrs Byron. | Hello, this is Ada Byron.", []),
        ("Hello there. | I'm a vet. | Hello, this is Ada Byron.", []),
        ("Hello, it's Ada. | It's Friday I want. | Hello, it's Friday, not Monday.", []),
        ("Hello, it's Ada. | Hello, it's broken again. | Hi, I'm diabetic. | Hello, I'm Polish.", []),
        ("Hello, it's Ada. | My husband is Frank. | Frank said hello. | It's Frank's birthday.", []),
        (">Your name? | Ada. | Hello, is that Frank? | Frank, stop it.", []),
    ],
)  # fmt: skip
def test_who_greets_with_another_name_is_another_voice(said, others):
    turns = [
        Turn(id=str(at), speaker="agent" if line.startswith(">") else "user", text=line.removeprefix(">"))
        for at, line in enumerate(said.split(" | "))
    ]
    assert of_another_voice(turns) == {str(at) for at in others}
