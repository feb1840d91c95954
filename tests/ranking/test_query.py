from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import InvalidInput
from echoic.ranking.query import MAX_WORDS, query_of


def words(text):
    return [word.text for word in query_of(text).words]


@pytest.mark.parametrize(
    "text",
    [
        "Can you tell me my dog's name?",
        "Okay, um, do you remember my dog's name?",
        "could you please remind me, my dog's name?",
        "I forgot my dog's name",
        "I'd like to know my dog's name",
    ],
)
def test_how_a_question_is_wrapped_is_not_what_it_asks(text):
    assert words(text) == ["dog's", "name"]
    assert query_of(text).role == "user"


def test_a_question_that_is_all_wrapping_is_kept():
    assert words("Do you remember?") == ["remember"]


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("What's my name?", "user"),
        ("Where do I live?", "user"),
        ("the user's home town", "user"),
        ("What did you recommend?", "agent"),
        ("What did you tell me?", None),
        ("What did Melanie buy?", None),
    ],
)
def test_i_and_you_say_whose_words_are_asked_for(text, role):
    assert query_of(text).role == role


def test_capitals_mark_names_and_stop_words_never_are_any():
    assert query_of("When did Caroline meet Jean-Luc in São Paulo?").names == {
        "caroline",
        "jean",
        "luc",
        "sao",
        "paulo",
    }
    assert query_of("when did caroline go").names == frozenset()


def test_a_vector_is_brought_to_unit_length():
    vector = query_of("tea", np.array([3.0, 4.0])).vector
    assert vector.dtype == np.float32
    assert vector.tolist() == pytest.approx([0.6, 0.8])
    assert query_of("tea", np.zeros(2)).vector.tolist() == [0, 0]


@pytest.mark.parametrize(
    "vector", [np.array([[1.0]]), np.array([]), np.array([np.nan]), np.array([1.0, np.inf])]
)
def test_what_is_no_vector_is_refused(vector):
    with pytest.raises(InvalidInput, match="query vector"):
        query_of("tea", vector)


def test_a_span_that_ends_before_it_begins_is_refused():
    with pytest.raises(InvalidInput, match=r"\(2, 1\)"):
        query_of("tea", spans=((2, 1),))


def test_a_pasted_document_is_cut():
    assert len(query_of(" ".join(f"word{i}" for i in range(5000))).words) == MAX_WORDS


@given(st.text(max_size=300))
def test_any_text_is_a_query(text):
    query = query_of(text)
    assert query.text == text
    assert {word.text for word in query.words} <= set(query.folded)
