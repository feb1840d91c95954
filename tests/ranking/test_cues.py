from __future__ import annotations

import pytest

from echoic.partition import Flag
from echoic.ranking.indexing import flags_of
from echoic.ranking.query import asks_many, asks_when


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("I like tea.", Flag.NONE),
        ("Where did you go?", Flag.QUESTION | Flag.ASKING),
        ("Really? I had no idea.", Flag.QUESTION),
        ("¿Dónde vives? Yo, en Lima.", Flag.QUESTION),
        ("ここですか？", Flag.QUESTION | Flag.ASKING),
        ("where did you go", Flag.QUESTION | Flag.ASKING),
        ("so do you have a table", Flag.QUESTION | Flag.ASKING),
        ("When I was small we moved.", Flag.NONE),
        ("which reminds me of home.", Flag.NONE),
        ("I went there last week.", Flag.TIME),
        ("It was in October.", Flag.TIME),
        ("I may march on.", Flag.NONE),
        ("Back in 1998 we met.", Flag.TIME | Flag.NUMBER),
        ("I have three cats.", Flag.NUMBER),
        ("My daughter is 4 years old.", Flag.TIME | Flag.NUMBER),
    ],
)
def test_flags_say_whether_a_text_asks_says_when_or_counts(text, flags):
    assert flags_of(text) == flags


def test_a_question_for_a_moment_or_a_number_is_known_as_one():
    assert all(
        map(asks_when, ["When did she leave?", "what year was it", "How long did it take?", "How old am I?"])
    )
    assert not any(map(asks_when, ["What did she do?", "Who whens?", "What dates well with cheese?"]))
    assert all(map(asks_many, ["How many cats?", "how much is it", "How often do I run?"]))
    assert not any(map(asks_many, ["Which cats?", "How do I run?"]))
