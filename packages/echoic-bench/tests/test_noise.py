from __future__ import annotations

import random
from dataclasses import replace

import pytest

from echoic.embedding import embedder_from
from echoic.errors import InvalidInput
from echoic.text import sound
from echoic.types import Turn
from echoic_bench.callers import dataset_of
from echoic_bench.exchanges import EXCHANGES
from echoic_bench.hearing import measure_noise, misheard, recogniser_of
from echoic_bench.labelled import Dataset, Labelled, Question
from echoic_bench.noise import STRENGTHS, Errors, Recogniser, word_errors

TEXTS = [
    "Did Melanie call the bank? Yes, and Melanie said that Jon was there.",
    "We told Jon to join the team in June, and he won one game.",
    "The melon was mean, but the main meal was fine.",
]


@pytest.fixture(scope="module")
def said():
    """Many sentences of made-up calls, no two alike."""
    people = dataset_of(20, turns=100).users
    texts = dict.fromkeys(item.text for each in people for item in each.items if isinstance(item, Turn))
    return list(texts)


def rate(recogniser, texts, strength):
    return sum((word_errors(t, recogniser.hear(t, strength)) for t in texts), Errors(0, 0)).rate


def test_the_same_text_is_always_heard_the_same(said):
    first, second = Recogniser(said), Recogniser(said)
    for strength in STRENGTHS:
        assert [first.hear(t, strength) for t in said[:50]] == [second.hear(t, strength) for t in said[:50]]


def test_another_seed_hears_otherwise(said):
    one, other = Recogniser(said, seed=1), Recogniser(said, seed=2)
    assert [one.hear(t, "wer24") for t in said[:50]] != [other.hear(t, "wer24") for t in said[:50]]


def test_clean_changes_not_a_character(said):
    recogniser = Recogniser(said)
    assert all(recogniser.hear(text, "clean") == text for text in said)


@pytest.mark.parametrize(("strength", "aimed"), [("wer13", 0.13), ("wer24", 0.24)])
def test_the_word_error_rate_that_is_aimed_at_is_reached(said, strength, aimed):
    assert rate(Recogniser(said), said, strength) == pytest.approx(aimed, abs=0.02)


def test_what_is_heard_has_no_capitals_and_no_punctuation(said):
    recogniser = Recogniser(said)
    for text in said[:80]:
        heard = recogniser.hear(text, "wer13")
        assert heard == heard.lower()
        assert not set(heard) & set(".,?!;:")


def test_every_name_is_misheard_and_no_other_word():
    recogniser = Recogniser(TEXTS)
    assert {"melanie", "jon"} <= recogniser.names
    heard = recogniser.hear(TEXTS[0], "names").split()
    said = "did melanie call the bank yes and melanie said that jon was there".split()
    assert [a == b for a, b in zip(heard, said, strict=True)] == [w not in {"melanie", "jon"} for w in said]


def test_what_is_heard_in_place_of_a_word_sounds_like_it():
    recogniser = Recogniser(TEXTS)
    for name in ("melanie", "jon"):
        assert recogniser.confusions(name)
        assert name not in recogniser.confusions(name)
        onsets = {code[0] for code in sound(name)}
        for other in recogniser.confusions(name):
            assert {code[0] for code in sound(other)} & onsets, other


def test_nobody_else_is_named_by_mistake():
    recogniser = Recogniser([*TEXTS, "Joan knows John, and so does Jonah."], names=["Joan", "John", "Jonah"])
    heard = {recogniser.hear(f"So Jon {n} left.", "names").split()[1] for n in range(40)}
    assert not heard & {"joan", "jonah"}


def test_an_unknown_strength_is_refused():
    with pytest.raises(InvalidInput, match="wer99"):
        Recogniser(TEXTS).hear("hello", "wer99")


def test_errors_are_counted_over_words_and_nothing_else():
    assert word_errors("Where's the Bank?", "wheres the bank") == Errors(3, 1)
    assert word_errors("one two three", "one three") == Errors(3, 1)
    assert word_errors("one two", "uh one two") == Errors(2, 1)
    assert word_errors("ONE, two!", "one two").rate == 0


def test_transcripts_misheard_keep_ids_speakers_and_times(talks):
    heard = misheard(talks, recogniser_of(talks), "wer24")
    for before, after in zip(talks.users, heard.users, strict=True):
        assert [item.id for item in before.items] == [item.id for item in after.items]
        assert before.answerable == after.answerable
    texts = [[item.text for each in data.users for item in each.items] for data in (talks, heard)]
    assert texts[0] != texts[1]


@pytest.mark.parametrize("heard", ["questions", "transcripts"])
async def test_mishearing_costs_and_clean_words_cost_nothing(heard):
    turns = [
        Turn(speaker="user", text=text.format(who="Mira", thing="tent", place="Ghent", day="May", time="ten"))
        for _, pair in EXCHANGES
        for text in pair
    ]
    turns = [replace(turn, id=f"t{n}", conversation=f"c{n}") for n, turn in enumerate(turns)]
    asked = [Question(text=turn.text, evidence=frozenset([turn.id])) for turn in turns]
    user = Labelled(user="ana", items=tuple(turns), questions=tuple(asked), sessions={})
    dataset = Dataset(name="said", users=(user,))
    found = await measure_noise(
        dataset, embedder_from("lexical"), fusions=["text"], strengths=["clean", "wer24"], heard=heard
    )
    assert found.errors["clean"].rate == 0
    assert found.errors["wer24"].rate > 0.15
    clean, noisy = (found.tallies["text"][s].percent()["hit@1"] for s in ("clean", "wer24"))
    assert clean > noisy
    assert found.losses("text")["wer24"]["hit@1"].mean > 0
    assert found.as_json()["leaks"] == 0


def test_the_global_source_of_chance_is_left_alone(said):
    random.seed(1)
    before = random.getstate()
    Recogniser(said).hear(said[0], "wer24")
    assert random.getstate() == before
