"""What was said is read as what is meant: digits, letters and signs."""

from __future__ import annotations

import pytest

from echoic.text.spoken_numbers import readings, tokens, written


def said(text: str) -> list[str]:
    view = written(text)
    return [reading.text for reading in readings(view, tokens(view.text))]


@pytest.mark.parametrize(
    ("spoken", "meant"),
    [
        ("double seven oh three", "7703"),
        ("triple five one", "5551"),
        ("seven o three", "703"),
        ("j o h n two", "john2"),
        ("five five five, one two three, four five six seven", "555 123 4567"),
        ("eight hundred five five five one two one two", "800 5551212"),
        ("eight hundred and five", "805"),
        ("five thousand six hundred and one", "5601"),
        ("nineteen eighty four", "19 84"),
        ("twenty-one", "21"),
        ("one thousand two thousand", "1000 2000"),
        ("plus four four seven", "+447"),
        ("d e eight nine", "de89"),
        ("capital A b double u", "Abw"),
        ("b as in boy two", "b2"),
        ("d n i one two", "dni 12"),
        ("one nine two dot one six eight", "192.168"),
        ("5 5 5 1 2", "55512"),
        ("um five, uh six", "um 5 6"),
        ("a four star hotel", "a 4 star hotel"),
        ("pound four four", "#44"),
    ],
)
def test_english_is_read_as_digits(spoken, meant):
    assert said(spoken)[0] == meant


@pytest.mark.parametrize(
    ("spoken", "meant"),
    [
        ("seis uno dos tres cuatro cinco", "612345"),
        ("cuarenta y dos, treinta y uno, once, doce", "42 31 11 12"),
        ("z\u00e9ro six, quatre-vingt-dix-sept, soixante et onze, vingt", "06 97 71 20"),
        ("null eins sieben sechs f\u00fcnf", "01765"),
        ("zweiundvierzig einundzwanzig drei\u00dfig neun", "42 21 30 9"),
        ("tre quattro ventuno ventotto", "34 21 28"),
        ("um dois meia sete vinte e um", "1267 21"),
    ],
)
def test_other_languages_are_read_as_digits(spoken, meant):
    assert meant in said(spoken)


@pytest.mark.parametrize("text", ["", "the dog barks", "he has it", "oh", "a b"])
def test_what_says_no_number_has_no_other_reading(text):
    assert said(text) in ([], ["0"])


def test_a_reading_points_back_to_the_words():
    view = written("pin four double seven one")
    [reading] = readings(view, tokens(view.text))
    assert reading.text == "pin 4771"
    start = reading.text.index("77")
    assert reading.origin(start, start + 2) == (9, 21)
    assert reading.origin(4, 8) == (4, 25)
