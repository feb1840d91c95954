from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np
import pytest

from echoic.ranking.channels import Channels
from echoic.ranking.layout import Candidates
from echoic.ranking.query import query_of


def rows(signal, text, *partitions, **how):
    places = [Candidates.of(partition) for partition in partitions]
    channels = Channels(query_of(text, **how), places, 0.1)
    found = channels.get(signal)
    if found is None:
        return None
    return [values.tolist() for values in np.split(found, channels.starts[1:-1])]


@pytest.fixture
def talk(partition, turn):
    return partition(
        [turn("hello", "Melanie"), turn("hi there", "Jon", minute=1), turn("well", "Mary Lou", minute=2)]
    )


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("What did Melanie buy?", [1, 0, 0]),
        ("What is melanie's job?", [1, 0, 0]),
        ("What did Mel buy?", [1, 0, 0]),
        ("What did Lou buy?", [0, 0, 1]),
        ("What did Mary Lou buy?", [0, 0, 1]),
        ("What did Jons reply mean?", [0, 1, 0]),
    ],
)
def test_the_one_person_named_is_the_one_whose_words_count(talk, text, who):
    assert rows("speaker", text, talk)[0][:3] == who


@pytest.mark.parametrize(
    "text", ["What did Melanie and Jon buy?", "Who bought melons?", "What was marching there?"]
)
def test_nobodys_words_count_where_nobody_or_more_than_one_is_named(talk, text):
    assert rows("speaker", text, talk) is None


def test_a_name_spelled_right_outweighs_one_that_sounds_alike(partition, turn):
    talk = partition([turn("a", "John"), turn("b", "Jon", minute=1)])
    assert rows("speaker", "What did Jon say?", talk)[0][:2] == [0, 1]


def test_i_means_what_the_caller_said_and_what_is_kept_about_the_caller(partition, turn, memory):
    own = partition([turn("a", "user"), turn("b", "agent", minute=1), memory("Rex", "dog")])
    everyones = partition([memory("9 to 5", "hours")])
    assert rows("speaker", "Where do I live?", own, everyones) == [[1, 0, 1] + [0] * 29, [0] * 32]
    assert rows("speaker", "What did you promise?", own, everyones)[0][:3] == [0, 1, 0]
    assert rows("speaker", "opening hours", own, everyones) is None


def test_a_date_fades_by_the_day_on_both_sides(partition, turn):
    days = [1, 7, 8, 8, 9, 22]
    said = [
        datetime(2023, 5, day, hour, tzinfo=UTC)
        for day, hour in zip(days, [9, 23, 0, 23, 1, 12], strict=True)
    ]
    talk = partition([turn_at(turn, moment) for moment in said])
    found = rows("date", "What did I say on 8 May 2023?", talk)[0][:6]
    assert found == pytest.approx([math.exp(-gap / 7) for gap in (7, 1, 0, 0, 1, 14)], rel=1e-6)


def turn_at(turn, moment):
    from echoic.types import Turn

    return Turn(speaker="user", text="x", conversation="c", said_at=moment)


def test_a_month_without_a_year_is_looked_for_in_each_year_there_is(partition, turn):
    said = [
        datetime(2021, 5, 3, tzinfo=UTC),
        datetime(2022, 8, 3, tzinfo=UTC),
        datetime(2023, 5, 30, tzinfo=UTC),
    ]
    found = rows("date", "What did I plan in May?", partition([turn_at(turn, at) for at in said]))[0]
    assert found[0] == found[2] == 1
    assert found[1] < 0.01


def test_a_row_of_long_ago_takes_no_year_from_a_date_without_one(partition, turn):
    said = [datetime(1, 1, 3, tzinfo=UTC), datetime(2023, 5, 30, tzinfo=UTC)]
    found = rows("date", "What did I plan in May?", partition([turn_at(turn, at) for at in said]))[0]
    assert found[1] == 1


def test_spans_worked_out_by_the_caller_stand_in_for_dates_in_the_text(partition, turn):
    moment = datetime(2023, 5, 3, 12, tzinfo=UTC)
    ms = int(moment.timestamp() * 1000)
    talk = partition([turn_at(turn, moment)])
    text = "What did I say in June 2020, I mean last Tuesday?"
    assert rows("date", text, talk, spans=((ms - 5, ms + 5),))[0][0] == 1
    assert rows("date", text, talk)[0][0] < 1e-9
    assert rows("date", "What did I say?", talk) is None


def test_a_key_counts_by_the_share_of_the_question_that_names_it(partition, memory):
    held = partition([memory("Pavel", "user_name"), memory("Beatrix", "wife_name"), memory("Rex", "dog")])
    assert rows("key", "What's my name?", held)[0][:3] == [1, 0, 0]
    assert rows("key", "What's the name of my wife?", held)[0][:3] == [0.5, 1, 0]
    assert rows("key", "wife", held) is None
    assert rows("key", "name", partition([])) is None
    assert rows("key", "Where does my dog sleep?", held)[0][:3] == [0, 0, 0.5]
