"""Names of speakers that were misheard, and words that only look like it."""

from __future__ import annotations

import pytest

from echoic.ranking import query_of, rank
from echoic.ranking.channels import Channels
from echoic.ranking.layout import Candidates
from echoic.ranking.query import heard_right
from echoic.text import word_of


@pytest.fixture
def talk(partition, turn):
    lines = [("Caroline", "I went to Porto in May."), ("Melanie", "I stayed at home."), ("Jon", "I danced.")]
    return partition([turn(text, speaker, minute=i) for i, (speaker, text) in enumerate(lines)])


def heard(text, partition):
    return dict(heard_right(query_of(text), Candidates.of(partition).names).meant)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("when did garlic go to porto", {"garlic": "caroline"}),
        ("where has main been", {"main": "melanie"}),
        ("what was curling's plan", {"curling's": "caroline's"}),
        ("What did Melany buy?", {"melany": "melanie"}),
        ("would john like it", {"john": "jon"}),
        ("did john tell melany", {"john": "jon"}),
        ("tell me of carolyne", {"carolyne": "caroline"}),
    ],
)
def test_what_sounds_like_a_speaker_is_taken_for_the_speaker(talk, text, meant):
    found = heard(text, talk)
    assert meant.items() <= found.items()
    assert set(found.values()) <= {"caroline", "caroline's", "melanie", "jon"}


@pytest.mark.parametrize(
    "text",
    [
        "when did Caroline meet the main team",  # somebody is named as they are spelled
        "when did Mel go",  # a name cut short is a name
        "who likes garlic",  # no person stands there, and it is spelled otherwise
        "what is the weather like",
        "did we go to Paris",
        "",
    ],
)
def test_other_words_are_left_alone(talk, text):
    assert heard(text, talk) == {}


def test_nobody_is_put_into_the_mouth_of_a_caller_who_talks_to_an_agent(partition, turn):
    plain = partition([turn("I like garlic"), turn("Noted.", "agent", minute=1)])
    query = query_of("when did garlic go up")
    assert heard_right(query, Candidates.of(plain).names) is query


def test_a_name_put_right_counts_in_every_channel(talk):
    query = heard_right(query_of("when did garlic go to porto"), Candidates.of(talk).names)
    assert word_of("caroline") in query.words
    assert word_of("garlic") not in query.words
    assert query.text == "when did garlic go to porto", "word pieces are of what was heard"
    first, *_ = rank(query_of("when did garlic travel"), [talk])
    assert first.row == 0


def test_a_name_put_right_says_whose_words_are_asked_for(talk):
    channels = Channels(query_of("when did garlic travel"), [Candidates.of(talk)], 0.1)
    assert channels["speaker"][:3].tolist() == [1, 0, 0]
    assert "speaker" not in Channels(query_of("when did anybody travel"), [Candidates.of(talk)], 0.1)


def test_two_names_that_are_equally_near_are_not_chosen_between(partition, turn):
    both = partition([turn("hello", "Jon"), turn("hi", "Jan", minute=1)])
    assert heard("what did june say", both) == {}


def test_in_a_call_a_word_that_was_said_is_not_taken_for_the_caller(partition, turn, memory):
    def meant(asked, *rows):
        return dict(Channels(query_of(asked), [Candidates.of(partition(rows))], 0.1).query.meant)

    kept = [memory("The user likes tea.", author="ana"), turn("I flew to India in May.", minute=1)]
    assert meant("Have I been to India?", *kept) == {}
    assert meant("Have I been to India?", kept[0], turn("I flew to Rome in May.", minute=1)) == {
        "india": "ana"
    }
