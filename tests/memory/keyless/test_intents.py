from __future__ import annotations

from datetime import UTC, datetime

import pytest

from echoic.english.slots import SLOTS
from echoic.memory.keyless.intents import (
    acknowledged,
    asked_of,
    intent_of,
    listed,
    of_somebody,
    receipt_in_words,
    said_back,
    second_person,
    somebody_in,
)
from echoic.types import Memory, Receipt


def memory(text, **fields):
    return Memory(id="1", text=text, valid_from=datetime(2026, 1, 1, tzinfo=UTC), **fields)


@pytest.mark.parametrize(
    ("sentence", "turned"),
    [
        ("The user lives in Tel Aviv.", "You live in Tel Aviv."),
        ("The user's name is Pavel.", "Your name is Pavel."),
        ("The user has two children.", "You have two children."),
        ("The user is from Oslo.", "You are from Oslo."),
        ("The user was born in 1990.", "You were born in 1990."),
        ("The user does not eat pork.", "You do not eat pork."),
        ("The user watches birds.", "You watch birds."),
        ("The user hates flying.", "You hate flying."),
        ("The user carries a cane.", "You carry a cane."),
        ("The user passes by.", "You pass by."),
        ("The user doesn't like mushrooms.", "You don't like mushrooms."),
        ("The user isn’t from Rome.", "You aren't from Rome."),
        ("The user can't stand jazz.", "You can't stand jazz."),
        ("The user grew up in Rome.", "You grew up in Rome."),
        ("The user asked to remember: buy milk.", "You asked me to remember: buy milk."),
        ("Rome is far.", "Rome is far."),
        ("The users meet here.", "The users meet here."),
        ("The user", "The user."),
    ],
)
def test_a_sentence_about_the_user_is_turned_to_them(sentence, turned):
    assert second_person(sentence) == turned


@pytest.mark.parametrize("slot", sorted(SLOTS))
def test_every_slot_can_be_said_back(slot):
    sentence = SLOTS[slot].sentence.replace("{}", "something")
    said = said_back(memory("something", key=SLOTS[slot].key.replace("{}", "thing"), statement=sentence))
    assert said.startswith("You")
    assert said.endswith(".")
    assert "the user" not in said.lower()


@pytest.mark.parametrize(
    ("key", "fields", "said"),
    [
        ("home", {}, "You live in flat white."),
        ("favourite_coffee", {}, "Your favourite coffee is flat white."),
        ("opening hours", {"visibility": "global"}, "The opening hours are flat white."),
        ("bus", {"visibility": "proposed"}, "The bus is flat white."),
        ("glass", {}, "Your glass is flat white."),
        (None, {}, "flat white."),
    ],
)
def test_what_was_set_under_a_key_is_read_out(key, fields, said):
    assert said_back(memory("flat white", key=key, **fields)) == said


SAID = {"source": ("turn",)}


@pytest.mark.parametrize(
    ("text", "fields", "said"),
    [
        ("I drive a van", SAID, "You told me, “I drive a van.”"),
        ("My husband's a coeliac.", SAID, "You told me, “My husband's a coeliac.”"),
        ("I drive", SAID | {"context": "when it rains"}, "You told me, “I drive”, when it rains."),
        ("drives a van", SAID | {"statement": "The user drives a van."}, "You drive a van."),
        ("The user drives a van", SAID, "You drive a van."),
        # nobody said it, or somebody else may have
        ("I drive a van", {}, "I drive a van."),
        ("I drive a van", SAID | {"visibility": "global"}, "I drive a van."),
    ],
)
def test_what_the_caller_said_is_quoted_and_not_said_as_of_the_agent(text, fields, said):
    assert said_back(memory(text, **fields)) == said


def test_what_was_just_said_is_repeated_in_quotation_marks():
    assert acknowledged(memory("I drive a van", **SAID)) == "“I drive a van.”"


@pytest.mark.parametrize(
    ("sentences", "said"),
    [
        (
            ["You ski.", "You told me, “I drive.”", "You told me, “I sing.”", "You knit."],
            "you ski; you told me, “I drive”; “I sing”; you knit.",
        ),
        ([], "."),
        (["You love jazz."], "you love jazz."),
        (["You love jazz.", "Your name is Pavel."], "you love jazz and your name is Pavel."),
        (["You love jazz.", "Pavel is here.", "You ski."], "you love jazz, Pavel is here, and you ski."),
        (["You asked me: why.", "You ski."], "you asked me: why; you ski."),
    ],
)
def test_several_are_one_sentence(sentences, said):
    assert listed(sentences) == said


def test_a_receipt_says_what_went_and_whether_that_was_checked():
    said = receipt_in_words(Receipt(memories=1, turns=2, conversations=1, vectors=3, verified=True))
    assert said.startswith("Done. Erased: 1 memory, 2 turns, 1 conversation, 3 vectors. ")
    assert "none of it is left" in said
    assert "could not verify" in receipt_in_words(Receipt(memories=1))
    assert "nothing was kept" in receipt_in_words(Receipt(verified=True))


@pytest.mark.parametrize(
    ("question", "key"),
    [
        ("Where do I live?", "home"),
        ("so where do I currently live", "home"),
        ("Do you know which city I'm in? My city.", "home"),
        ("Do I live in Boston?", "home"),
        ("Who am I?", "user_name"),
        ("Do you remember me?", "user_name"),
        ("What’s my name?", "user_name"),
        ("What's my wife's name?", "wife_name"),
        ("Who is my best friend?", "best_friend_name"),
        ("What is my dad called?", "father_name"),
        ("what's my cat called", "pet:"),
        ("How many kids do I have? My kids?", "child:"),
        ("What's my favourite ice cream?", "favourite:ice cream"),
        ("What are my favorites?", "favourite:"),
        ("Do I have any allergies?", "allergy:"),
        ("What music do I like?", "preference:"),
        ("When can you call me?", "user_name"),
        ("What's the best time to reach me?", "contact_time"),
        ("What is the capital of France?", None),
        ("Where is the library?", None),
    ],
)
def test_a_question_asks_for_a_slot(question, key):
    assert asked_of(question).key == key


@pytest.mark.parametrize(
    "question",
    [
        "What do you know about me?",
        "Tell me everything you know",
        "What do you remember?",
        "what have I told you",
        "Do you know anything about me?",
    ],
)
def test_a_question_for_everything_is_one(question):
    assert asked_of(question).everything


@pytest.mark.parametrize(
    "question",
    [
        "What did I tell you yesterday?",
        "what did i say last tuesday",
        "What did we talk about last week?",
        "What have I told you this week?",
        "Did I mention anything on Monday?",
        "Do you remember what I said yesterday?",
    ],
)
def test_a_question_may_ask_for_what_was_said_in_a_period(question):
    assert asked_of(question).period
    assert not asked_of(question).everything


@pytest.mark.parametrize(
    "question",
    [
        "What did I tell you about my van yesterday?",
        "What did I tell you about June?",
        "What did my wife say yesterday?",
        "What have I told you?",
        "What day was yesterday?",
        "How was your day yesterday?",
        "Did I call last week?",
        "What did you tell me yesterday?",
        "What do I do on Monday?",
    ],
)
def test_a_question_that_names_a_subject_or_asks_for_no_words_asks_for_no_period(question):
    assert not asked_of(question).period


@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        ("My sister drives a lorry", True),
        ("And my husband's lorry is red", True),
        ("She drives a lorry", True),
        ("I'm vegetarian. My partner drives a lorry.", True),
        ("My grandchildren drive a lorry", True),
        ("The user's sister drives a lorry.", True),
        ("I walk, but my wife drives a lorry", True),
        ("Tom drives a lorry", True),
        ("Tom's lorry is red", True),
        ("Tom here, I drive a lorry", False),
        ("Tom and I drive a lorry", False),
        ("Lorries are what I drive", False),
        ("My wife and I drive a lorry", False),
        ("I drive a lorry, my wife doesn't", False),
        ("My sister called. I drive a lorry.", False),
        ("My lorry is red", False),
        ("The lorry is red", False),
        ("", False),
    ],
)
def test_what_is_said_may_speak_of_somebody_else(text, theirs):
    assert of_somebody(text, "What lorry do I drive?") is theirs


@pytest.mark.parametrize(
    ("text", "question", "theirs"),
    [
        ("Max is my dog's name", "What's my name?", True),
        ("Saturday is our daughter's birthday", "When is my birthday?", True),
        ("My dentist moved my check-up to May", "When is my check-up?", False),
        ("They have my old phone", "Where is my old phone?", False),
        ("My boss has her old phone", "Where is my old phone?", True),
        ("He says I need a brace", "What do I need?", False),
        ("My doctor says I'm diabetic", "Am I diabetic?", False),
        ("My doctor says she's diabetic", "Am I diabetic?", True),
    ],
)
def test_what_is_the_callers_is_theirs_whoever_is_spoken_of(text, question, theirs):
    assert of_somebody(text, question) is theirs


def test_what_is_said_may_speak_of_what_belongs_to_somebody_else():
    asked = "What is my dog called?"
    assert of_somebody("My sister's dog is called Rex", asked, frozenset(["dog"]))
    assert not of_somebody("My sister's dog is called Rex", asked, frozenset(["sister", "dog"]))
    assert not of_somebody("My dog is called Rex", asked, frozenset(["dog"]))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("my mother-in-law and my mum", {"mother-in-law", "mother"}),
        ("my sister in law's stepson", {"sister-in-law", "stepson"}),
        ("my ex wife, our grandson", {"ex-wife", "grandson"}),
        ("our children, our kids", {"child"}),
        ("my daughter", {"daughter", "child"}),
    ],
)
def test_each_relative_is_somebody_else(text, named):
    assert somebody_in(text) == named


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("Where do I live?", "question", "Where do I live?"),
        ("tell me where I live", "question", "tell me where I live?"),
        ("I live in Oslo.", "question", None),
        ("Can you remember that I like tea?", "question", None),
        ("Forget that I like jazz", "forget", "i like jazz"),
        ("please forget about the opening hours", "forget", "the opening hours"),
        ("please delete the locker code", "forget", "the locker code"),
        ("Delete my phone number", "forget", "my phone number"),
        ("Erase what I told you about Bo", "forget", "what i told you about bo"),
        ("Actually forget about the narrowboat, would you?", "forget", "the narrowboat"),
        ("Actually forget about the narrowboat, would you?", "question", None),
        ("Don't forget that I'm vegan", "forget", None),
        ("forget it", "forget", None),
        ("Forget it, I'll call back.", "forget", None),
        ("Remove the onions.", "forget", None),
        ("Please remove the peanuts.", "forget", None),
        ("Can you delete the second item from my order?", "forget", None),
        ("Forget everything about me", "erase", True),
        ("please delete all my data", "erase", True),
        ("Forget me", "erase", True),
        ("I forget everything", "erase", False),
        ("Forget everything I said about jazz", "erase", False),
        ("Forget everything you know about me, please", "erase", True),
        ("Forget everything I've told you.", "erase", True),
        ("Forget everything I told you today.", "erase", False),
        ("Don't forget me", "erase", False),
        ("yes", "yes", True),
        ("Yes, please do it.", "yes", True),
        ("yes I live in Oslo", "yes", False),
        ("forget it", "yes", False),
        ("We're open nine to five", "ours", (("opening hours", "nine to five"),)),
        ("So our return policy is thirty days.", "ours", (("return policy", "thirty days"),)),
        ("We close at nine", "ours", (("closing time", "nine"),)),
        ("Are we open nine to five?", "ours", ()),
        ("Our daughter is ill", "ours", ()),
        ("Our flight is late", "ours", ()),
        ("We're open to suggestions?", "ours", ()),
        ("Good morning!", "courtesy", "greeting"),
        ("hello I'm Pavel", "courtesy", None),
        ("thank you so much", "courtesy", "thanks"),
    ],
)
def test_what_is_wanted_is_told_from_what_is_said(text, field, value):
    assert getattr(intent_of(text), field) == value
