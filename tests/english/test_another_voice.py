"""Who has the telephone, as far as they say so."""

from __future__ import annotations

import pytest

from echoic.english.sentences import hands_over, is_asked_for, is_back, speaks_of_them, stands_in, takes_over


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
        "My daughter will talk to you now.",
        "My daughter will speak to you now, okay?",
        "my mum will talk to you",
        "She'll speak to you instead.",
        "I'm passing the phone to grandad.",
        "I'm just putting you on to Mike.",
        "I'm handing you over to my carer.",
        "Putting you on to Mike now.",
        "I'm putting my husband on now.",
        "My partner's taking over.",
        "My husband is taking over from here.",
        "Speak to my wife, she knows better.",
        "Talk to my son, he's got the details.",
        "Here, talk to my mum.",
        "I'll let you speak to my husband.",
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
        "My daughter will talk to you tomorrow about the booking.",
        "My daughter will talk to you about it.",
        "My daughter will be talking to the school.",
        "I'll speak to my husband and call back.",
        "I'll talk to my wife.",
        "Can I speak to my doctor?",
        "I need to speak to my doctor.",
        "I want to talk to my son.",
        "Talk to my doctor about the dose.",
        "Speak to my solicitor in future.",
        "Did you speak to my wife?",
        "My partner's taking over the business.",
        "My boss is taking over our team.",
        "I'm putting my son on the list.",
        "I'm putting my husband on the policy.",
        "I'm passing my exam to become a nurse.",
        "I'm giving you to understand that it's wrong.",
        "I'm putting you on speaker.",
        "Putting it to my boss now.",
        "My son can't talk to you now.",
        "My husband won't speak to you.",
        "My daughter will talk to you people no more.",
        "I'm putting her on a diet.",
        "I'm putting him on now and then.",
        "I'll let you know.",
        "I'll let you speak to your manager.",
        "I told him to speak to my wife.",
    ],
)
def test_who_keeps_the_telephone_says_no_such_thing(text):
    assert not hands_over(text)


@pytest.mark.parametrize(
    "text",
    [
        "My boss wants a word with you.",
        "She wants to speak to you.",
        "My wife will talk to you.",
        "Talk to my son.",
    ],
)
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


@pytest.mark.parametrize("text", ["Hi, I live in Derby.", "Hello love. I take warfarin."])
def test_nor_is_who_greets_and_tells_of_themselves_the_same(text):
    assert takes_over(text, at_once=True)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Am I speaking to Mr Jones?", "No, this is his wife."),
        ("Good morning. Is that Clare?", "No, it's her daughter."),
        ("Is this Tom Baker?", "no sorry it's his mum he's at work"),
        ("Are you the policy holder?", "I'm her husband, hang on."),
        ("Am I talking to Clare Reid?", "She's out, it's her sister speaking."),
        ("Is that Clare?", "It's not Clare, it's her sister."),
    ],
)
def test_who_answers_for_whom_was_asked_for_stands_in(asked, text):
    assert stands_in(text, asked)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Am I speaking to Mr Jones?", "Speaking."),
        ("Am I speaking to Mrs Jones?", "Yes, I'm Tom's mother."),
        ("Is that your husband picking it up?", "No, it's his brother."),
        ("Is Tom picking it up?", "No, it's his wife."),
        ("Who is it for?", "It's her daughter."),
        ("Are you vegan?", "No, it's his wife."),
        ("Is that all right?", "No, his wife's allergic."),
        ("Is that Clare?", "Yes, and her daughter's here."),
        ("Is that Clare?", "No, it's Anna, her daughter is out."),
        ("Is that for you?", "No, for his wife."),
        ("Whose number is that?", "It's his wife's."),
        ("How are you?", "It's his wife."),
        ("", "No, this is his wife."),
    ],
)
def test_who_speaks_of_relations_stands_in_for_nobody(asked, text):
    assert not stands_in(text, asked)


def test_who_was_asked_for_says_their_name():
    assert is_asked_for("Hello, Clare here.", "Is that Clare?")
    assert is_asked_for("Hi, this is Clare.", "Good morning. Am I speaking to Clare Reid?")
    assert not is_asked_for("Hello, Anna here.", "Is that Clare?")


@pytest.mark.parametrize(
    "text",
    [
        "Hello?",
        "hello hello",
        "Hello, I take it nobody's there.",
        "Hello, yes.",
        "Hi, sorry, I'm still here.",
        "I'm four.",
        "Hi, are you there?",
    ],
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
