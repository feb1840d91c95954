"""How words are cut and how spoken values are read, each reader by itself."""

from __future__ import annotations

import pytest

from echoic.english import names, phrases
from echoic.english.sentences import sentences


def said(text):
    (sentence,) = sentences(text)
    return sentence


def lines(text):
    return [sentence.line.strip() for sentence in sentences(text)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("um I uh live er in Rome", "i live in rome"),
        ("I, I'm, I'm not sure", "i'm not sure"),
        ("my name my name is Ana", "my name is ana"),
        ("I live in Bos- uh in Boston", "i live in boston"),
        ("I live in San, sorry, in Santa Fe", "i live in santa fe"),
        ("I live in, you know, New York New York", "i live in new york new york"),
        ("do you know my name", "do you know my name"),
        ("I\u2019m José", "i'm jose"),
    ],
)
def test_fillers_and_false_starts_are_left_out_and_names_said_twice_are_not(text, line):
    assert lines(text) == [line]


def test_a_sentence_ends_at_its_stop_and_not_at_an_abbreviation():
    assert lines("I'm Dr. Smith. I live in St. Paul! Do you?") == [
        "i'm dr smith",
        "i live in st paul",
        "do you",
    ]


def test_a_name_that_is_spelled_ends_at_its_stop_and_initials_go_on():
    assert lines("Temi, T E M I. I live in Hull.") == ["temi t e m i", "i live in hull"]
    assert lines("It's T, E, M, I. I live in Hull.") == ["it's t e m i", "i live in hull"]
    assert lines("I'm J. R. R. Tolkien. Ask for George W. Bush.") == [
        "i'm j r r tolkien",
        "ask for george w bush",
    ]


def test_what_stands_in_quotation_marks_is_known_to_stand_there():
    quoted = [token.text for token in said("he said 'I am Bob' and left").tokens if token.quoted]
    assert quoted == ["I", "am", "Bob"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("34", 34),
        ("thirty four", 34),
        ("thirty-four", 34),
        ("a hundred and two", 102),
        ("nineteen", 19),
        ("an apple", None),
    ],
)
def test_numbers_are_read_in_words_and_digits(text, value):
    found = phrases.number(said(text), 0)
    assert (found.value if found else None) == value


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("May 3rd", "May 3"),
        ("the third of may", "May 3"),
        ("march twenty second", "March 22"),
        ("12th of December 1999", "December 12, 1999"),
        ("june fifth two thousand and five", "June 5, 2005"),
        ("03/05/1990", "03/05/1990"),
        ("May 42nd", None),
        ("tomorrow", None),
    ],
)
def test_dates_are_read_in_any_order_and_impossible_ones_are_not(text, date):
    found = phrases.date(said(text), 0)
    assert (found.text if found else None) == date


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("five five five one two three four", "5551234"),
        ("(415) 555-2671", "4155552671"),
        ("oh seven nine one one double two three", "07911223"),
        ("eight hundred five five five twelve thirteen", "8005551213"),
        ("plus one four one five triple five oh one two three", "+14155550123"),
        ("one two three", None),
        ("1234567890123456", None),
    ],
)
def test_a_phone_number_is_all_its_digits_or_none(text, digits):
    found = phrases.phone(said(text), 0)
    assert (found.text if found else None) == digits


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ana at gmail dot com", "ana@gmail.com"),
        ("k smith forty two at yahoo dot co dot uk thanks", "ksmith42@yahoo.co.uk"),
        ("a n a underscore b at mail dash box dot org", "ana_b@mail-box.org"),
        ("Ana.Lopez@Example.org", "ana.lopez@example.org"),
        ("not working", None),
        ("ana at gmail", None),
    ],
)
def test_an_address_is_read_to_its_last_label_or_not_at_all(text, address):
    found = phrases.email(said(text), 0)
    assert (found.text if found else None) == address


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("tel aviv and i work", "Tel Aviv"),
        ("salt lake city with my dog", "Salt Lake City"),
        ("Salt Lake City, Utah", "Salt Lake City, Utah"),
        ("rio de janeiro", "Rio de Janeiro"),
        ("the netherlands", "the Netherlands"),
        ("downtown Dallas now", "downtown Dallas"),
        ("l a", "LA"),
        ("fear of spiders", None),
        ("a small town", None),
        ("the city", None),
        ("Ana's house", None),
    ],
)
def test_a_place_ends_where_its_name_does_and_ordinary_words_are_none(text, place):
    found = names.place(said(text), 0)
    assert (found.text if found else None) == place


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ana maria lopez and i", "Ana Maria Lopez"),
        ("p a v e l", "Pavel"),
        ("Siobhan, that's S-I-O-B-H-A-N", "Siobhan"),
        ("jon with no h", "Jon"),
        ("steven spelled s t e p h e n", "Stephen"),
        ("walter walter prentiss", "Walter Prentiss"),
        ("caitlin okonkwo caitlin with a c", "Caitlin Okonkwo"),
        ("duran duran", "Duran Duran"),
        ("bond james bond", "James Bond"),
        ("arthur pemberton p e m b for bravo e r t o n", "Arthur Pemberton"),
        ("emeka e m e k a emeka nwosu", "Emeka Nwosu"),
        ("Fergus, M, A, C, K, A, Y, not an I in sight", "Fergus Mackay"),
        ("tom n h s number is nine", "Tom"),
        ("Ann, R S V P for two", "Ann"),
        ("ann b y r o n", "Ann Byron"),
        ("Ada, A, B, C, it's easy", "Ada"),
        ("Ada Vasquez-Holt, V A S Q U E Z, hyphen, Holt", "Ada Vasquez-Holt"),
        ("Zara Malik", "Zara Malik"),
        ("joao e silva", "Joao e Silva"),
        ("Jean, Jean Hollis", "Jean Hollis"),
        ("Mrs Pemberton, Dorothy Pemberton", "Dorothy Pemberton"),
        ("Ada, Ada Lovelace is my mother", "Ada"),
        ("Ada, Ada Byron's daughter", "Ada"),
        ("bob tanner fourth of may", "Bob Tanner"),
        ("kaylee hargrove h a r g", "Kaylee Hargrove"),
        ("netta gilhooly", "Netta Gilhooly"),
        ("dan chilly in here", "Dan"),
        ("priya really sorry", "Priya"),
        ("on the list", None),
        ("hard to say", None),
    ],
)
def test_a_stated_name_ends_where_it_does_and_a_spelling_settles_it(text, name):
    found = names.stated(said(text), 0)
    assert (found.text if found else None) == name


@pytest.mark.parametrize(
    ("text", "greeted", "name"),
    [
        ("zbigniew", True, "Zbigniew"),
        ("zbigniew", False, None),
        ("zbigniew i live here", False, "Zbigniew"),
        ("pavel", False, "Pavel"),
        ("siobhan devlin", False, "Siobhan Devlin"),
        ("emeka from leeds", False, "Emeka"),
        ("rich", False, None),
        ("flabbergasted", True, None),
        ("Ana and I", False, "Ana"),
        ("John's mother", True, None),
    ],
)
def test_a_name_after_i_am_needs_evidence(text, greeted, name):
    found = names.claimed(said(text), 0, greeted=greeted)
    assert (found.text if found else None) == name
