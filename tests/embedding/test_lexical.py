from __future__ import annotations

import hashlib

import numpy as np
import pytest

from echoic.embedding import Embedder, LexicalEmbedder
from echoic.embedding.base import CachedEmbedder
from echoic.errors import InvalidInput
from echoic.testing.embedder_conformance import EmbedderConformance

PINNED = (
    "My sister Ana moved to Porto in March.",
    "José's dog is called Bruno",
    "日本語のテキストです",
    "who are you",
    "…",
)


class TestLexicalConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return LexicalEmbedder()


class TestSmallLexicalConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return LexicalEmbedder(dimensions=256)


class TestCachedConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return CachedEmbedder(LexicalEmbedder(), entries=3)


async def likeness(left: str, right: str) -> float:
    vectors = await LexicalEmbedder().embed([left, right], "document")
    return float(vectors[0] @ vectors[1])


async def test_vectors_are_the_same_on_every_machine_and_python() -> None:
    vectors = await LexicalEmbedder().embed(PINNED, "document")
    rounded = np.round(vectors.astype(np.float64) * 10_000).astype("<i2")
    assert hashlib.sha256(rounded.tobytes()).hexdigest() == (
        "4f45a9a6f235f09dfb82db382ca52c23f228aa23a96bb119f38564c502b2b471"
    ), "the features have changed: raise _LEXICAL_REVISION, because stores hold vectors of the old ones"


def test_it_says_that_it_knows_no_meaning() -> None:
    embedder = LexicalEmbedder()
    assert embedder.semantic is False
    assert embedder.spec.model == "lexical:2"
    assert embedder.spec.dimensions == 768


@pytest.mark.parametrize(
    ("heard", "meant", "other"),
    [
        ("Catherine", "Katherine", "Christopher"),
        ("call Steven", "call Stephen", "call Susan"),
        ("restaurnt in Lisbon", "restaurant in Lisbon", "museum in Lisbon"),
        ("Jose", "José", "Joan"),
        ("my dentists", "the dentist", "my accountant"),
        ("allergick to penuts", "allergic to peanuts", "afraid of spiders"),
    ],
)
async def test_typos_and_misheard_names_stay_near(heard: str, meant: str, other: str) -> None:
    assert await likeness(heard, meant) > await likeness(heard, other) + 0.1


async def test_stop_words_count_only_where_there_is_nothing_else() -> None:
    assert await likeness("what is the name of my dog", "dog name") == pytest.approx(1.0, abs=0.05)
    assert await likeness("who are you", "where is it") < 0.5


async def test_repeating_a_word_shifts_the_weight_to_it_but_not_in_proportion() -> None:
    once = await likeness("porto lisbon", "porto")
    thrice = await likeness("porto porto porto lisbon", "porto")
    proportional = 3 / np.sqrt(10)  # two unrelated words, one said three times, without damping
    assert once < thrice < proportional


async def test_texts_without_words_share_one_vector_far_from_any_other() -> None:
    vectors = await LexicalEmbedder().embed(["…", "👍", "", "   ", "Porto"], "document")
    assert (vectors[:4] == vectors[0]).all()
    assert abs(float(vectors[0] @ vectors[4])) < 0.3


async def test_unrelated_texts_are_nearly_orthogonal() -> None:
    rng = np.random.default_rng(7)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    texts = [" ".join("".join(rng.choice(letters, 7)) for _ in range(8)) for _ in range(60)]
    vectors = await LexicalEmbedder().embed(texts, "document")
    off = (vectors @ vectors.T)[~np.eye(60, dtype=bool)]
    assert abs(float(off.mean())) < 0.02  # signs cancel: hashing adds no likeness on average
    assert float(np.abs(off).max()) < 0.3


async def test_a_large_batch_gives_the_same_vectors_as_small_ones() -> None:
    texts = [f"note {number} about Ana and the dentist in Porto" for number in range(200)]
    embedder = LexicalEmbedder()
    large = await embedder.embed(texts, "document")  # off the event loop
    small = np.concatenate([await embedder.embed(texts[i : i + 10], "document") for i in range(0, 200, 10)])
    assert (large == small).all()


def test_too_few_dimensions_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 64"):
        LexicalEmbedder(dimensions=16)
