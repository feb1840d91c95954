"""What the keyless agent does with a turn, on the in-memory store: stores are tested elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import echoic
from echoic.errors import EmbedderUnavailable, StoreUnavailable
from echoic.memory.keyless import (
    ASK_NAME,
    CONFIRM_ERASURE,
    CONFIRM_FORGETTING,
    NOT_LOOKED,
    NOTHING_LIKE_IT,
    UNCLEAR,
    UNKNOWN,
    KeylessAgent,
    of_hits,
    of_slot,
)
from echoic.memory.keyless.intents import asked_of, said_back
from echoic.types import Hit, Memory, Rank, Recall, Scope, Turn


def memory(text, **fields):
    return Memory(id=text, text=text, valid_from=datetime(2026, 1, 1, tzinfo=UTC), **fields)


async def test_what_is_told_is_learned_said_back_and_answered(talk):
    told = await talk.say("I'm Pavel and I live in Tel Aviv")
    assert told.text == "Nice to meet you, Pavel. Noted: you live in Tel Aviv."
    assert {(memory.key, memory.text) for memory in told.stored} == {
        ("user_name", "Pavel"),
        ("home", "Tel Aviv"),
    }
    assert (await talk.say("Where do I live?")).text == "You live in Tel Aviv."
    assert (await talk.say("what's my name")).text == "Your name is Pavel."


@pytest.mark.parametrize(
    ("told", "asked", "answer"),
    [
        ("I work at Acme", "Who do I work for?", "You work at Acme."),
        ("I'm a nurse", "What do I do for a living?", "You're a nurse."),
        ("I'm an engineer", "What's my job?", "You're an engineer."),
        ("I'm 34 years old", "How old am I?", "You are 34 years old."),
        ("My birthday is May 3rd", "When is my birthday?", "Your birthday is May 3."),
        ("I have two sons", "Do I have any kids?", "You have two sons."),
        ("I have two sons", "How many children do I have?", "You have two sons."),
        ("I'm allergic to peanuts", "What am I allergic to?", "You are allergic to peanuts."),
        ("I'm vegan", "Am I vegan?", "You're vegan."),
        ("I love jazz", "Do I like jazz?", "You love jazz."),
        ("I hate flying", "What do I hate?", "You hate flying."),
        ("I don't like mushrooms", "Do I like mushrooms?", "You don't like mushrooms."),
        ("My favourite colour is green", "What's my favourite colour?", "Your favourite colour is green."),
        ("My sister is called Maya", "What is my sister's name?", "Your sister is called Maya."),
        ("My mum's name is Anna", "What's my mum called?", "Your mother is called Anna."),
        ("I have a dog named Rex", "What is my dog's name?", "You have a dog called Rex."),
        ("I speak German", "Which languages do I speak?", "You speak German."),
        ("My email is ana at gmail dot com", "What is my email?", "Your e-mail address is ana@gmail.com."),
        (
            "Remember that the car is on level 3",
            "Where is the car?",
            "You asked me to remember: the car is on level 3.",
        ),
        ("We're open nine to five", "When are you open?", "The opening hours are nine to five."),
    ],
)
async def test_a_question_is_answered_in_the_second_person(talk, told, asked, answer):
    await talk.say(told)
    assert (await talk.say(asked)).text == answer


async def test_a_correction_supersedes_and_the_past_can_be_asked_for(talk):
    await talk.say("I live in Tel Aviv")
    moved = await talk.say("Actually I moved to Lisbon")
    assert moved.text == "Noted: you live in Lisbon. Before, it was Tel Aviv; I keep that as history."
    assert [memory.text for memory in moved.superseded] == ["Tel Aviv"]
    assert (await talk.say("Where do I live?")).text == "You live in Lisbon."
    assert (await talk.say("Where did I live before?")).text == "Before, you told me: you live in Tel Aviv."


async def test_what_is_known_already_is_not_learned_again(talk):
    await talk.say("I live in Oslo")
    again = await talk.say("I live in Oslo")
    assert again.text == "I know: you live in Oslo."
    assert (again.stored, [memory.text for memory in again.known]) == ((), ["Oslo"])


async def test_telling_and_asking_at_once_is_answered_at_once(talk):
    reply = await talk.say("My name is Pavel. Where do I live?")
    assert reply.text == f"Nice to meet you, Pavel. {UNKNOWN}"
    reply = await talk.say("I live in Oslo. What's my name?")
    assert reply.text == "Noted: you live in Oslo. Your name is Pavel."


@pytest.mark.parametrize(
    "question",
    [
        "Where do I live?",
        "What is the capital of France?",
        "What colour is my car?",
        "Who is the president?",
        "Why?",
    ],
)
async def test_nothing_is_made_up(talk, question):
    await talk.say("I love jazz")
    reply = await talk.say(question)
    assert reply.text == UNKNOWN
    assert reply.recall.outcome == "complete"


async def test_what_is_only_close_is_not_given_as_the_answer(talk):
    await talk.say("Remember that the car is parked on level 3")
    reply = await talk.say("What colour is the parked car?")
    assert reply.text.startswith("The closest I remember: ")


async def test_what_no_rule_understood_can_be_asked_for_and_is_quoted(talk):
    told = await talk.say("I went to Rome with my aunt last summer")
    assert told.stored == ()
    assert "word for word" in told.text
    asked = await talk.say("Where did I go last summer?")
    assert asked.text == "You told me, “I went to Rome with my aunt last summer.”"


async def test_nothing_is_quoted_that_no_longer_holds(talk):
    await talk.say("I live in Tel Aviv")
    await talk.say("Forget where I live")
    for question in ("Where do I live?", "Do I live in Tel Aviv?", "What did I say of Tel Aviv?"):
        assert "live in Tel Aviv" not in (await talk.say(question)).text


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("I'm allergic to nuts", "Is my wife allergic to nuts?"),
        ("I'm allergic to nuts", "What is my daughter allergic to?"),
        ("I live in Rome", "Where does my sister live?"),
        ("My birthday is May 3rd", "When is my mother's birthday?"),
        ("My phone number is 555 123 4567", "What's my boss's phone number?"),
        ("I'm 34", "How old is my dog?"),
        ("I speak French", "What languages does my husband speak?"),
        ("My brother is called Tom", "What's my brother's wife's name?"),
        ("My name is Pavel", "Who am I married to?"),
        ("I have a dog named Rex", "What's my cat's name?"),
        ("I have a dog named Rex", "Do I have a cat?"),
        ("I have a son called Tom", "Do I have a daughter?"),
        ("My mother-in-law is in hospital", "Is my mother in hospital?"),
        ("My son is at college", "Is my grandson at college?"),
        ("I am at college", "Are my children at college?"),
    ],
)
async def test_what_is_so_of_one_is_not_the_answer_for_another(talk, told, asked):
    await talk.say(told)
    assert (await talk.say(asked)).text == UNKNOWN


@pytest.mark.parametrize(
    ("told", "asked", "answer"),
    [
        (
            "My wife is allergic to nuts",
            "Is my wife allergic to nuts?",
            "You told me, “My wife is allergic to nuts.”",
        ),
        (
            "My mum lives in Bath",
            "Where does my mother live?",
            "The closest I remember: you told me, “My mum lives in Bath.”",
        ),
        (
            "Our kids are at college",
            "Are my children at college?",
            "The closest I remember: you told me, “Our kids are at college.”",
        ),
        (
            "My son is at college",
            "Are my children at college?",
            "The closest I remember: you told me, “My son is at college.”",
        ),
        (
            "My sister's dog bit Rex",
            "Has my dog bit Rex?",
            "The closest I remember: you told me, “My sister's dog bit Rex.”",
        ),
        ("I have a cat named Tofu", "What's my cat's name?", "You have a cat called Tofu."),
        ("My best friend is called Jo", "What's my best friend's name?", "Your best friend is called Jo."),
    ],
)
async def test_what_was_said_of_somebody_else_is_the_answer_for_them(talk, told, asked, answer):
    await talk.say(told)
    assert (await talk.say(asked)).text == answer


@pytest.mark.parametrize("told", ["i used to live in madrid", "my wife lives in madrid"])
async def test_words_like_those_of_a_question_for_oneself_are_close_and_no_more(talk, told):
    await talk.say(told)
    assert (await talk.say("where do i live")).text == f"The closest I remember: you told me, “{told}.”"


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("My sister drives a lorry", "What do I drive?"),
        ("My partner eats everything", "What do I eat?"),
        ("My husband's a coeliac", "Am I a coeliac?"),
    ],
)
async def test_what_is_so_of_another_is_close_and_no_more_for_oneself(talk, told, asked):
    await talk.say(told)
    assert (await talk.say(asked)).text == f"The closest I remember: you told me, “{told}.”"


async def test_what_one_told_of_oneself_comes_before_what_is_so_of_another(talk):
    await talk.say("My sister drives a lorry to work")
    await talk.say("I went by lorry, I drive it myself")
    asked = await talk.say("What lorry do I drive?")
    assert asked.text == "You told me, “I went by lorry, I drive it myself.”"
    await talk.say("I was told to drive less")
    asked = await talk.say("What tram do I drive?")
    assert asked.text == "The closest I remember: you told me, “I was told to drive less.”"


@pytest.mark.parametrize(
    ("said", "more"),
    [
        ("I need an early check-in", True),
        ("My wife needs a ramp", False),
        ("We come by train", False),
    ],
)
def test_a_list_holds_what_was_said_of_oneself_without_a_key(said, more):
    room = memory("a room upstairs", key="requirement:a room upstairs", source=("1",))
    facts = [room, memory(said, source=("2",)), memory("I need a room upstairs", source=("1",))]
    told = of_slot(asked_of("What do I need?"), "What do I need?", facts)
    besides = f"; you told me, “{said}”." if more else "."
    assert told == said_back(room).removesuffix(".") + besides


SPANIEL = "I've got a spaniel called Biscuit"


@pytest.mark.parametrize(
    ("told", "cosine", "asked", "answer"),
    [
        (SPANIEL, 0.6, "What's my dog called?", f"The closest I remember: you told me, “{SPANIEL}.”"),
        (SPANIEL, 0.3, "What's my dog called?", UNKNOWN),
        # about others, or about oneself
        ("My sister is called Maya", 0.6, "What's my dog called?", UNKNOWN),
        ("We have a cat called Tofu", 0.6, "What's my dog called?", UNKNOWN),
        ("Our rabbit is called Tofu", 0.6, "What's my dog called?", UNKNOWN),
        (SPANIEL, 0.6, "What's my parrot called?", f"The closest I remember: you told me, “{SPANIEL}.”"),
        ("We have a cat called Tofu", 0.6, "What's my parrot called?", UNKNOWN),
        ("I eat everything", 0.6, "What does my dog eat?", UNKNOWN),
        ("I live in Rome", 0.6, "Where does my dog live?", UNKNOWN),
        (SPANIEL, 0.6, "What's my sister called?", UNKNOWN),
    ],
)
def test_an_animal_may_be_named_by_its_breed_where_the_search_finds_the_meaning(told, cosine, asked, answer):
    ranks = {"vector": Rank(rank=1, score=cosine)}
    turn = Turn(speaker="user", text=told)
    hit = Hit(text=told, score=1.0, ranks=ranks, scope=Scope("desk", "pavel"), turn=turn)
    recall = Recall(hits=(hit,), outcome="complete")
    assert of_hits(asked_of(asked), asked, recall, holding=[]) == answer


async def test_what_was_said_in_a_period_is_told_without_what_was_said_since(talk):
    conversation = await talk.memory.conversation()
    yesterday = datetime.now(UTC) - timedelta(days=1)
    for text in ("hello", "I live in Oslo", "The lift is broken", "Is it mended?", "I sold the boat"):
        await conversation.append(Turn(speaker="user", text=text, said_at=yesterday))
    await conversation.learn()
    await talk.say("I love jazz")
    for asked in ("What did I tell you yesterday?", "what did we talk about yesterday"):
        assert (await talk.say(asked)).text == (
            "You told me, “I live in Oslo”; “The lift is broken”; “I sold the boat”."
        )
    assert (await talk.say("What did I say last year?")).text == UNKNOWN
    for number in range(20):
        note = Turn(
            speaker="user", text=f"Part {number} came", said_at=yesterday + timedelta(milliseconds=number + 1)
        )
        await conversation.append(note)
    told = (await talk.say("Do you remember what I said yesterday?")).text
    assert told.startswith(
        "You told me, “I live in Oslo”; “The lift is broken”; “I sold the boat”; “Part 0 came”; "
    )
    assert told.endswith("“Part 8 came”. And 11 more.")


async def test_questions_and_requests_are_not_quoted_as_what_was_told(talk):
    for text in ("is dana a doctor", "do i have a boat", "forget my boat", "can i eat peanuts"):
        await talk.say(text)
    for text in ("am i a doctor", "is there a boat", "what about peanuts"):
        assert (await talk.say(text)).text == UNKNOWN


async def test_what_holds_now_is_not_given_for_what_held_before(talk):
    await talk.say("My phone number is 555 123 4567")
    now = "I know only how it is now: your phone number is 5551234567."
    assert (await talk.say("What's my old phone number?")).text == now
    assert (await talk.say("What was my previous phone number?")).text == now
    await talk.say("My phone number is 555 999 4567")
    asked = await talk.say("What's my old phone number?")
    assert asked.text == "Before, you told me: your phone number is 5551234567."
    assert (await talk.say("How old am I?")).text == UNKNOWN


async def test_what_was_told_of_the_past_comes_before_what_holds_now(talk):
    await talk.say("i used to work at google")
    await talk.say("i work at apple")
    asked = await talk.say("where did i work before")
    assert asked.text == "The closest I remember: you told me, “i used to work at google.”"
    assert (await talk.say("where do i work")).text == "You work at Apple."


async def test_nobody_is_told_what_another_said(talk, another):
    await talk.say("I'm Pavel and I live in Tel Aviv. My cat is called Tofu.")
    for question in (
        "Where do I live?",
        "What do you know about me?",
        "Who lives in Tel Aviv?",
        "What is Tofu?",
    ):
        reply = await another.say(question)
        assert not {"Pavel", "Tel", "cat"} & set(reply.text.replace(".", " ").split()), reply.text
        assert reply.recall.hits == () or all(hit.scope.user == "eve" for hit in reply.recall.hits)


async def test_everything_known_is_told_on_request(talk):
    assert (await talk.say("What do you know about me?")).text.startswith("Nothing yet.")
    await talk.say("I'm Pavel and I live in Oslo")
    told = await talk.say("What do you remember?")
    assert told.text == "I remember this: your name is Pavel and you live in Oslo."


async def test_a_long_list_is_cut_and_says_so(talk):
    for number in range(15):
        await talk.memory.set(f"fact_{number}", f"value {number}")
    told = (await talk.say("What do you know about me?")).text
    assert "value 14" in told
    assert "value 2;" not in told
    assert "And 3 more" in told


# -- greetings


async def test_a_stranger_is_asked_for_a_name_and_a_bare_answer_is_one(talk):
    assert await talk.begin() == ASK_NAME
    reply = await talk.say("Siobhán")
    assert reply.text == "Nice to meet you, Siobhán."
    assert (await talk.memory.get("user_name")).text == "Siobhán"
    assert await talk.begin() == "Welcome back, Siobhán."


async def test_a_bare_word_is_no_name_unless_it_was_asked_for(talk):
    await talk.begin()
    await talk.say("I live in Oslo")
    await talk.say("Pavel")
    assert await talk.memory.get("user_name") is None


async def test_somebody_known_without_a_name_is_greeted_with_what_is_known(talk):
    await talk.memory.set("home", "Oslo")
    assert await talk.agent.greeting() == "Welcome back. I remember 1 thing about you."
    await talk.memory.set("age", "34")
    assert await talk.agent.greeting() == "Welcome back. I remember 2 things about you."


async def test_nobody_is_greeted_by_the_name_another_made_global(service, talk, another):
    await talk.memory.set("user_name", "Pavel")
    assert "Pavel" not in await another.agent.greeting()


async def test_courtesies_are_returned_and_nothing_is_searched_for(talk):
    await talk.say("I'm Pavel")
    for said, answer in (
        ("hello", "Hello, Pavel."),
        ("thanks a lot", "You're welcome."),
        ("goodbye", "Goodbye, Pavel. I'll remember."),
    ):
        reply = await talk.say(said)
        assert (reply.text, reply.recall) == (answer, None)


async def test_it_says_that_it_is_rules(talk):
    for question in ("Who are you?", "Are you a robot?", "What can you do?"):
        assert "not a language model" in (await talk.say(question)).text


# -- taking back and erasing


async def test_forgetting_one_thing_takes_it_back_and_says_what_stays(talk):
    await talk.say("I live in Oslo and I love jazz")
    reply = await talk.say("Forget where I live")
    assert [memory.text for memory in reply.retracted] == ["Oslo"]
    assert "stays in your history" in reply.text
    assert await talk.memory.get("home") is None
    assert (await talk.say("Where do I live?")).text == "You asked me to no longer hold on to that."
    assert (await talk.say("Do I love jazz?")).text == "You love jazz."


async def test_forgetting_what_was_set_under_a_key_finds_the_key(talk):
    await talk.memory.set("locker_code", "4471")
    reply = await talk.say("Please forget the locker code")
    assert [memory.key for memory in reply.retracted] == ["locker_code"]
    assert await talk.memory.get("locker_code") is None


async def test_forgetting_what_is_not_known_changes_nothing(talk):
    await talk.say("I live in Oslo")
    reply = await talk.say("Forget my passport number")
    assert reply.retracted == ()
    assert "nothing like that" in reply.text
    assert (await talk.memory.get("home")).text == "Oslo"


async def test_what_no_rule_has_a_key_for_is_taken_back_if_it_was_said_alone(talk):
    await talk.say("I'm saving up for a narrowboat")
    await talk.say("I love jazz")
    reply = await talk.say("Actually forget about the narrowboat, would you?")
    assert "no longer go by that" in reply.text
    assert (await talk.say("What am I saving up for?")).text == UNKNOWN
    assert (await talk.say("Do I love jazz?")).text == "You love jazz."
    await talk.say("I have a barge. I live in Oslo.")
    assert (await talk.say("Forget the barge")).text == UNCLEAR
    await talk.say("I'm diabetic and my cupboard is full of chocolate")
    assert (await talk.say("Forget the chocolate")).text == UNCLEAR
    assert (await talk.memory.get("home")).text == "Oslo"


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("I have epilepsy", "Forget that."),
        ("I love jazz", "Forget that."),
        ("I live in Oslo", "Please forget where I live"),
        ("I have epilepsy", "Please forget everything I said today."),
    ],
)
async def test_what_is_taken_back_is_erased_for_good_once_it_is_confirmed(talk, told, asked):
    await talk.say(told)
    assert (await talk.say(asked)).text.endswith(CONFIRM_FORGETTING)
    assert (await talk.say("Yes")).receipt.rewritten
    assert told not in str(await talk.memory.export())


async def test_what_is_said_beside_a_request_to_forget_is_still_read_back(talk):
    await talk.say("I live in Oslo and I love jazz")
    reply = await talk.say("Please forget where I live. My name is Bob.")
    assert reply.text.startswith("Nice to meet you, Bob. All right, I no longer go by that")
    assert reply.text.endswith(CONFIRM_FORGETTING)


async def test_what_was_forgotten_before_it_is_confirmed_is_not_told_to_be_erased(talk):
    await talk.say("I had a stroke")
    heard = (await talk.say("I have epilepsy")).heard
    await talk.say("Forget that.")
    await talk.memory.forget(id=heard.id)
    reply = await talk.say("Yes")
    assert (reply.receipt, reply.text) == (None, NOTHING_LIKE_IT)
    assert "stroke" in str(await talk.memory.export())


async def test_erasing_everything_is_asked_back_and_then_done_with_a_receipt(talk):
    await talk.say("I'm Pavel and I live in Oslo")
    assert (await talk.say("Forget everything about me")).text == CONFIRM_ERASURE
    assert len(await talk.memory.facts()) == 2
    done = await talk.say("Yes, erase everything")
    assert done.receipt.memories == 2
    assert done.receipt.verified
    assert done.text.startswith("Done. Erased: 2 memories, ")
    assert done.heard is None
    assert await talk.memory.facts() == []
    assert await talk.memory.conversations() == []


async def test_what_is_answered_while_all_is_erased_is_said_and_not_kept(talk, monkeypatch):
    await talk.say("I'm Pavel and I live in Oslo")
    recall = talk.memory.recall

    async def erased_meanwhile(*args, **kwargs):
        found = await recall(*args, **kwargs)
        assert (await talk.memory.forget()).verified
        return found

    monkeypatch.setattr(talk.memory, "recall", erased_meanwhile)
    assert (await talk.say("What rhymes with Oslo?")).text
    assert await talk.conversation.turns() == []


@pytest.mark.parametrize(
    "answer",
    [
        "no",
        "No, don't!",
        "never mind",
        "forget it",
        "ok I live in Rome",
        "yes but keep my name",
        "please don't",
        "yes and no",
        "what?",
        "I'm sure it was Monday",
    ],
)
async def test_nothing_but_a_plain_yes_erases(talk, answer):
    await talk.say("I live in Oslo")
    await talk.say("Delete all my data")
    reply = await talk.say(answer)
    assert reply.receipt is None
    assert await talk.memory.facts() != []
    assert (
        await talk.say("yes")
    ).receipt is None  # the question was answered; a later yes means something else


async def test_a_yes_erases_nothing_that_was_not_asked_about(talk, another):
    await talk.say("I live in Oslo")
    assert (await talk.say("yes")).receipt is None
    await talk.say("Forget everything about me")
    assert (await another.say("yes")).receipt is None
    assert len(await talk.memory.facts()) == 1


async def test_a_question_asked_back_outlives_the_agent_that_asked(service, talk):
    await talk.say("I live in Oslo")
    await talk.say("Forget everything about me")
    talk.agent = KeylessAgent(talk.memory)
    assert (await talk.say("yes")).receipt.memories == 1


# -- what is kept, and how it ends when something is wrong


async def test_both_sides_are_kept_in_order(talk):
    begun = await talk.begin()
    first = await talk.say("I live in Oslo")
    turns = await talk.conversation.turns()
    assert [(turn.speaker, turn.text) for turn in turns] == [
        ("agent", begun),
        ("user", "I live in Oslo"),
        ("agent", first.text),
    ]
    assert first.heard == turns[1]


async def test_nothing_is_learned_from_what_the_agent_says(talk):
    await talk.begin()
    await talk.conversation.append(Turn(speaker="agent", text="My name is Echo and I live in Rome."))
    assert (await talk.say("Hello")).stored == ()
    assert await talk.memory.facts() == []


async def test_the_turn_that_asks_is_not_its_own_answer(talk):
    reply = await talk.say("Where is the green umbrella?")
    assert all(hit.turn is None or hit.turn.id != reply.heard.id for hit in reply.recall.hits)
    assert reply.text == UNKNOWN


async def test_every_step_is_timed_in_order(talk):
    await talk.say("I live in Oslo")
    reply = await talk.say("Where do I live?")
    assert list(reply.timings) == ["append", "distil", "recall", "answer", "append answer"]
    assert all(elapsed_ms > 0 for elapsed_ms in reply.timings.values())


async def test_could_not_look_is_not_said_as_nothing_known(service, talk, monkeypatch):
    await talk.say("I love jazz")

    async def unreachable(texts, kind):
        raise EmbedderUnavailable("no route to the model")

    monkeypatch.setattr(service.embedder, "embed", unreachable)
    reply = await talk.say("What is the meaning of all this?")
    assert reply.recall.outcome == "unavailable"
    assert reply.text == NOT_LOOKED
    assert (await talk.say("Do I love jazz?")).text == "You love jazz."  # words find it


async def test_a_store_that_is_gone_raises_and_nothing_is_answered(tmp_path):
    service = echoic.open("memory://", embedder="lexical")
    async with service:
        memory = service.user("pavel")
        conversation = await memory.conversation()
        agent = KeylessAgent(memory)
    with pytest.raises((StoreUnavailable, echoic.NotOpen)):
        await agent.reply(conversation, "I live in Oslo")
    with pytest.raises((StoreUnavailable, echoic.NotOpen)):
        await agent.greeting()


@pytest.mark.parametrize("text", ["", "  ", "a\0b", "x" * 32_769])
async def test_what_cannot_be_kept_is_refused(talk, text):
    with pytest.raises(echoic.InvalidInput):
        await talk.say(text)


async def test_what_is_for_everyone_is_proposed_or_shared_as_the_service_is_set(service, talk, another):
    told = await talk.say("We're open nine to five")
    assert [memory.visibility for memory in told.stored] == ["proposed"]
    assert "until the operator approves" in told.text
    assert (await another.say("When are you open?")).text == UNKNOWN
    async with echoic.open("memory://", embedder="lexical", global_writes="auto") as auto:
        one, two = type(talk)(auto), type(talk)(auto, "eve")
        told = await one.say("We're open nine to five")
        assert told.text == "Noted for everyone who calls: the opening hours are nine to five."
        assert (await two.say("When are you open?")).text == "The opening hours are nine to five."


async def test_what_moves_from_ones_own_to_everyone_is_superseded_and_not_taken_back(talk):
    async with echoic.open("memory://", embedder="lexical", global_writes="auto") as auto:
        one = type(talk)(auto)
        own = await one.memory.set("opening hours", "ask my sister Ana Lopez, 415-555-0134")
        assert own.visibility == "private"
        told = await one.say("We're open nine to five")
        assert [memory.visibility for memory in told.stored] == ["global"]
        assert [memory.id for memory in told.superseded] == [own.id]
        assert told.retracted == ()


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of France?",
        "When is my flight?",
        "What's my shoe size?",
        "Which school did I go to?",
        "Do I like sushi?",
        "Is my passport valid?",
        "Who won the world cup?",
    ],
)
async def test_where_nothing_is_known_it_says_so_and_shows_no_unrelated_memory(talk, question):
    for told in (
        "I'm Pavel and I live in Oslo.",
        "I take the bus to work every morning.",
        "I booked a table at Luigi's for Friday.",
        "Last summer we went hiking in the Alps.",
    ):
        await talk.say(told)
    answer = await talk.say(question)
    assert answer.text == UNKNOWN
    assert answer.recall.hits == ()
    assert answer.recall.outcome == "complete"
