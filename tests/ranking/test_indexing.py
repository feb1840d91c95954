from __future__ import annotations

from datetime import UTC, datetime

import pytest

from echoic.partition import MEMORY, TURN, Flag, number_of
from echoic.ranking.indexing import (
    entry_of_memory,
    entry_of_turn,
    flags_of,
    key_facet,
    key_words,
    speaker_facet,
    speaker_of_facet,
)
from echoic.text import content_words


def counts(entry):
    return {word.text: count for word, count in entry.words if count}


@pytest.mark.parametrize(
    "key", ["pet_name", "petName", "pet-name", "pet.name", "pet:name", "pet/name", "Pet Name"]
)
def test_a_key_is_read_as_one_would_say_it(key):
    assert key_words(key) == "pet name"


def test_a_key_without_words_is_left_as_it_is():
    assert key_words("___") == "___"
    assert key_words("名前") == "名前"


def test_a_value_is_embedded_with_its_key(memory):
    assert entry_of_memory(memory("Tel Aviv", "home_city")).text == "home city: Tel Aviv"


def test_whose_a_value_is_goes_without_saying(memory):
    assert entry_of_memory(memory("Pavel", "user_name")).text == "name: Pavel"
    assert entry_of_memory(memory("Pavel", "user")).text == "user: Pavel"


def test_a_statement_is_embedded_alone_and_found_by_key_and_value_too(memory):
    entry = entry_of_memory(memory("Lisbon", "home_city", statement="The user lives in Lisbon."))
    assert entry.text == "The user lives in Lisbon."
    assert counts(entry) == {"home": 1, "city": 1, "lisbon": 1, "user": 1, "lives": 1}


def test_a_memory_is_found_by_the_condition_it_holds_under_and_by_a_category_people_say(memory):
    entry = entry_of_memory(memory("tea", context="in the evening", category="preference"))
    assert counts(entry) == {"tea": 1, "evening": 1, "preference": 1}
    assert counts(entry_of_memory(memory("tea", category="fact"))) == {"tea": 1}


def test_a_word_repeated_by_the_statement_counts_once(memory):
    entry = entry_of_memory(memory("Rex", "dogs_name", statement="The dog's name is Rex, Rex the third."))
    assert [count for word, count in entry.words if word.stem == "rex"] == [2]
    assert [count for word, count in entry.words if word.stem == "dog"] == [1]
    assert [count for word, count in entry.words if word.stem == "name"] == [1]


def test_only_what_no_longer_holds_is_past(memory):
    ended = memory("Rome", "home", valid_until=datetime(2026, 5, 1, tzinfo=UTC))
    assert entry_of_memory(ended).flags & Flag.PAST
    assert not entry_of_memory(memory("Rome", "home")).flags & Flag.PAST


def test_a_short_value_under_a_key_is_marked_and_a_long_text_is_not(memory):
    assert entry_of_memory(memory("aisle, near the front", "seat")).flags & Flag.KEYED
    assert not entry_of_memory(memory("aisle, near the front")).flags & Flag.KEYED
    report = "kitchen lights flicker whenever dishwasher heats water after midnight"
    assert not entry_of_memory(memory(report, "report")).flags & Flag.KEYED


def test_a_memory_has_its_author_as_speaker_and_no_session(memory):
    entry = entry_of_memory(memory("tea", author="Renée"))
    assert (entry.kind, entry.session, entry.speaker) == (MEMORY, 0, number_of("renee"))
    assert speaker_facet("renee") in dict(entry.words)
    assert entry_of_memory(memory("tea")).speaker == 0


def test_what_a_role_says_is_embedded_as_it_was_said(turn):
    entry = entry_of_turn(turn("My dog is called Rex.", conversation="c-1"))
    assert entry.text == "My dog is called Rex."
    assert (entry.kind, entry.session, entry.speaker) == (TURN, number_of("c-1"), number_of("user"))
    assert counts(entry) == {"dog": 1, "called": 1, "rex": 1}


def test_what_a_person_says_carries_the_name(turn):
    entry = entry_of_turn(turn("I ran again.", speaker="Melanie"))
    assert entry.text == "Melanie: I ran again."
    assert counts(entry) == {"melanie": 1, "ran": 1}
    assert entry.speaker == number_of("melanie")
    assert entry.characters == len("I ran again.")


def test_only_what_was_heard_is_indexed(turn):
    entry = entry_of_turn(turn("Your code is 4471, keep it safe.", speaker="agent", heard="Your code is"))
    assert entry.text == "Your code is"
    assert counts(entry) == {"code": 1}


@pytest.mark.parametrize("text", ["whats your address", "And who's calling", "wheres the car", "what is it"])
def test_a_question_is_known_without_its_mark_and_its_apostrophe(text):
    assert flags_of(text) & Flag.ASKING


@pytest.mark.parametrize("speaker", ["agent", "Melanie"])
def test_a_turn_of_which_nothing_was_heard_has_no_words(turn, speaker):
    entry = entry_of_turn(turn("Your code is 4471.", speaker=speaker, heard=""))
    assert (entry.text, entry.words, entry.flags) == ("", (), Flag.UNHEARD)


def test_a_speakers_name_comes_back_out_of_its_facet():
    number, name = speaker_of_facet(speaker_facet("mary-ann o'brien").text)
    assert (number, name) == (number_of("mary-ann o'brien"), ("mary", "ann", "o'brien"))
    assert speaker_of_facet(speaker_facet("???").text) == (number_of("???"), ())
    assert "\n" not in speaker_facet("mary\nann").text


def test_a_key_is_named_in_any_order_and_form():
    assert key_facet(content_words("names of my dog")) == key_facet(
        content_words("dog_name".replace("_", " "))
    )
    assert key_facet(content_words("cat name")) != key_facet(content_words("dog name"))


@pytest.mark.parametrize(
    ("key", "question"),
    [
        ("home", "where do I live?"),
        ("employer", "where do I work?"),
        ("age", "how old am I?"),
        ("birthday", "when was I born?"),
        ("occupation", "what's my job?"),
        ("wife_name", "who am I married to?"),
        ("user_employer", "where do I work?"),
    ],
)
def test_a_value_that_a_tool_set_is_found_by_the_words_of_questions_for_it(memory, key, question):
    asked = {word.stem for word in content_words(question)}
    assert asked & {word.stem for word, count in entry_of_memory(memory("a value", key)).words if count}


@pytest.mark.parametrize(
    ("key", "question"),
    [
        ("email_address", "where do I live?"),
        ("ip_address", "where do I live?"),
        ("home_phone", "where do I live?"),
        ("home_insurance", "where do I live?"),
        ("occupation", "where do I live?"),
        ("child_seat", "what's my son called?"),
        ("wife_birthday", "when was I born?"),
        ("dog_age", "how old am I?"),
        ("job_interview", "where do I work?"),
        ("birthday", "what date is my appointment?"),
        ("phone", "what's the flight number?"),
        ("medication", "how long will it take?"),
    ],
)
def test_a_value_is_not_found_by_questions_for_something_else(memory, key, question):
    asked = {word.stem for word in content_words(question)}
    assert not asked & {word.stem for word, count in entry_of_memory(memory("a value", key)).words if count}


def test_a_memory_with_a_sentence_is_found_by_its_own_words(memory):
    assert "town" not in counts(entry_of_memory(memory("York", "home", statement="The user lives in York.")))
