"""What is told of the hits of a search, and in which order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from echoic import Hit, Memory, Scope, Turn
from echoic.memory.hits import behind_successors, worth_telling
from echoic.text import STOP, cut, sections, word_of


def hit(text, speaker="agent"):
    turn = Turn(speaker=speaker, text=text)
    return Hit(text=text, score=1.0, ranks={}, scope=Scope("demo", "ana"), turn=turn)


@pytest.mark.parametrize("asked", ["whats your address", "Where is your address"])
def test_a_question_with_the_words_of_the_one_asked_comes_last_without_its_mark_too(asked):
    hits = worth_telling([hit(asked), hit("nine lime street", "user")], "What is my address?")
    assert [one.text for one in hits] == ["nine lime street", asked]


@pytest.mark.parametrize("told", ["where i live is hull", "what i teach is history"])
def test_what_only_begins_like_a_question_keeps_its_place(told):
    hits = worth_telling([hit(told, "user"), hit("nine lime street", "user")], "Where do I live?")
    assert hits[0].text == told


def memory(name, *, by=None, after=None, key=None):
    at = datetime(2026, 3, 4, tzinfo=UTC)
    ends = {"valid_until": at if by else None, "superseded_by": by, "supersedes": after}
    return Memory(id=name, text=name, valid_from=at, key=key, **ends)


def order(turns, current, outdated):
    """The texts of `turns` as they are told; `current` and `outdated` are the memories of some."""
    hits = [replace(hit(text, "user"), memory=current.get(text)) for text in turns]
    return [one.text for one in behind_successors(hits, [outdated.get(text, []) for text in turns])]


def test_a_turn_is_told_directly_behind_what_replaced_it():
    current, outdated = {"new": memory("york")}, {"old": [memory("leeds", by="york")]}
    assert order(["old", "other", "new", "last"], current, outdated) == ["other", "new", "old", "last"]
    assert order(["new", "old"], current, outdated) == ["new", "old"]


def test_a_turn_that_was_replaced_twice_is_behind_both():
    current = {"new": memory("bath")}
    outdated = {"older": [memory("leeds", by="york")], "old": [memory("york", by="bath")]}
    assert order(["older", "old", "new"], current, outdated) == ["new", "older", "old"]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (memory("bath", after="york"), memory("leeds", by="york")),
        (memory("bath", key="home"), memory("leeds", by="york", key="home")),
        (memory("bath", key="home"), memory("leeds", key="home")),
    ],
    ids=["replaced again", "replaced again under its key", "taken back before"],
)
def test_a_turn_is_behind_what_holds_now_whatever_held_in_between(new, old):
    assert order(["old", "new"], {"new": new}, {"old": [old]}) == ["new", "old"]


def test_a_turn_keeps_its_place_before_what_another_key_holds():
    old = memory("leeds", by="york", key="home")
    assert order(["old", "new"], {"new": memory("bath", key="origin")}, {"old": [old]}) == ["old", "new"]


def test_a_turn_whose_replacement_was_not_found_keeps_its_place():
    assert order(["old", "new"], {}, {"old": [memory("leeds", by="york")]}) == ["old", "new"]


@pytest.mark.parametrize(
    ("repeated", "said"),
    [
        ("Noted: he is dying, and lying.", "He lies there and dies."),
        ("The skies cried.", "the sky cries"),
        ("A possible relation!", "Relational possibilities"),
        ("Bob’s D'Arcy.", "D’Arcy's Bob"),
        ("JOSÉ", "jose lives here"),
        ("東京に住んでいますね", "私は東京に住んでいますね。"),
    ],
)
def test_an_agents_turn_is_left_out_that_has_only_words_of_another_hit_in_any_form(repeated, said):
    hits = [hit(repeated), hit("Hull is on the Humber", "user"), hit(said, "user")]
    assert [one.text for one in worth_telling(hits, "Where was I?")] == [hits[1].text, said]


def test_an_agents_turn_stays_if_each_other_hit_lacks_one_of_its_words():
    hits = [hit("He lies there, dying in Hull."), hit("He lies there and dies.", "user"), hit("Hull", "user")]
    assert worth_telling(hits, "Where was I?") == tuple(hits)


def test_a_word_has_all_of_its_stem_but_the_last_two_letters():
    endings = (
        "s es ies ed eed ing ying ational ization biliti iviti fulness ousness li logi ement y ie 's".split()
    )
    lists = sections("echoic.english", "data/words.txt").values()
    words = (
        {word for lines in lists for line in lines for word in cut(line)}
        | STOP
        | {"dying", "skis", "skies", "idly", "news"}
    )
    formed = {word + ending for word in sorted(words)[::8] for ending in ["", *endings]}
    formed |= words
    assert len(formed) > 10_000
    assert [word for word in formed if word_of(word).stem[:-2] not in word] == []
