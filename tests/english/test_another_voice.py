"""Who has the telephone, as far as they say so."""

from __future__ import annotations

import pytest

from echoic.english.sentences import hands_over, is_back, speaks_of_them, takes_over


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
        "I'll put Maureen on, she does the computer. Maureen!",
        "i'll put my son on he's better with these things",
        "I will give you my daughter, she has the diary.",
        "And tomorrow Marek, wait, I give him to you. Marek!",
        "Hang on, he's pulling at my sleeve. Frank wants a word.",
        "Hold on, Mammy's wanting on. Here.",
        "She wants to say something.",
        "Oh, go on, say hello to the man.",
        "I'll hand you back.",
        "Here's himself back.",
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
        "I'll put my son on the list, he's eligible.",
        "I'll put her on Monday.",
        "I'll give you my wife's number.",
        "I'll give you back the money.",
        "She wants to speak to a doctor.",
        "He wants a word with his doctor.",
        "My daughter wants on the team.",
        "Say hello to the team for me.",
        "My boss wants to have a word with you about the outage.",
        "My accountant wants to talk to you about the loan next week.",
        "She wants to say something at the funeral, my sister.",
        "Say hi to the doctor from me.",
        "Yes, he said I'll hand you back.",
        "",
    ],
)
def test_who_keeps_the_telephone_says_no_such_thing(text):
    assert not hands_over(text)


@pytest.mark.parametrize("text", ["My boss wants a word with you.", "She wants to speak to you."])
def test_who_wants_a_word_has_not_got_the_telephone_where_the_caller_is_asked_for_a_name(text):
    assert hands_over(text, "Sure.")
    assert not hands_over(text, "Sure. Can I take your name?")
    assert not hands_over(text, "Sure, name please?")
    assert hands_over("I'll put my boss on.", "Can I take your name?")


@pytest.mark.parametrize(
    "text",
    [
        "Hello, Mei Tanaka here, I'm the other tenant.",
        "Yes, this is Tom.",
        "Right. It's Mei.",
        "Tom Baker speaking.",
    ],
)
def test_who_was_given_the_telephone_says_a_name(text):
    assert takes_over(text)


@pytest.mark.parametrize("text", ["Hello. I'm four and I've got a digger.", "hello good morning i am ready"])
def test_who_greets_right_after_it_was_given_away_is_somebody_else(text):
    assert takes_over(text, at_once=True)
    assert not takes_over(text)


@pytest.mark.parametrize(
    "text",
    ["Hello?", "hello hello", "Hello, yes.", "Hi, sorry, I'm still here.", "I'm four.", "Hi, are you there?"],
)
def test_who_asks_whether_somebody_is_there_is_the_same(text):
    assert not takes_over(text, at_once=True)


@pytest.mark.parametrize(
    "text",
    [
        "Sorry about that. He's covered in spots.",
        "She's a good girl. Mondays she comes.",
        "Has she told you her life story?",
        "Sorry about him.",
        "Right, where were we?",
    ],
)
def test_who_speaks_of_them_has_the_telephone_back(text):
    assert speaks_of_them(text)


@pytest.mark.parametrize(
    "text",
    ["She's a bit deaf.", "Sorry about that, I dropped it.", "She's had her breakfast.", "He lives here."],
)
def test_who_speaks_of_the_user_is_not_back(text):
    assert not speaks_of_them(text)


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
        "hi again can you put my number too",
        "Hi, she doesn't want to talk, so it's still me.",
        "Sorry, that was my wife.",
        "No you're not. Cancel that. Sorry, that was my six-year-old.",
        "Okay, I've got the phone back.",
    ],
)
def test_who_has_it_back_says_so(text):
    assert is_back(text)


@pytest.mark.parametrize("text", ["It's happened again.", "I have asthma.", "Hello, Mei here.", "Not again."])
def test_who_does_not_say_so_is_not_back(text):
    assert not is_back(text)
