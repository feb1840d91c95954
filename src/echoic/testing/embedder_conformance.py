"""Conformance suite for embedders. Subclass it and override one fixture.

    class TestMine(EmbedderConformance):
        @pytest.fixture
        def embedder(self) -> Embedder:
            return MyEmbedder()

Tests the contract of `echoic.embedding.base.Embedder`, not quality. Needs pytest and pytest-asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import get_args

import numpy as np
import pytest

from echoic.embedding.base import Embedder, Kind, Vectors
from echoic.errors import InvalidInput
from echoic.types import EmbeddingSpec

KINDS: tuple[Kind, ...] = get_args(Kind)

TEXTS = (
    "My sister Ana moved to Porto in March.",
    "ok",
    "I am allergic to peanuts, and so is my youngest; please never suggest a recipe that has any in it.",
    "The rent is due on the first.",
    "José's dog is called Bruno",
    "What time does my flight to Berlin leave?",
)

ODD_TEXTS = (
    "e\u0301 and é",
    "日本語のテキストです",
    "مرحبا بالعالم",
    "👩‍👩‍👧‍👦 🇵🇹",
    "\u200bzero\u200bwidth\ufeff",
    "tab\tline\nfeed\r\u2028end",
    "…",
    "[CLS] [SEP] [PAD] <|endoftext|>",
    "ß ﬁ Ǆ ﷺ",
    "Z̴͔a̸l̷g̶o̵",
    "\U0010ffff",
)

CLOSE = 1 - 1e-4
"""The least cosine of one vector computed twice, possibly summed in another order."""


@asynccontextmanager
async def opened(embedder: Embedder) -> AsyncIterator[Embedder]:
    """`embedder`, open."""
    await embedder.open()
    try:
        yield embedder
    finally:
        await embedder.aclose()


def assert_vectors(embedder: Embedder, vectors: Vectors, texts: Sequence[str]) -> None:
    """Assert that vectors have the promised type and shape, and that every row has length 1."""
    assert isinstance(vectors, np.ndarray)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(texts), embedder.spec.dimensions)
    assert np.isfinite(vectors).all()
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max(initial=0) < 1e-5


def assert_same(left: Vectors, right: Vectors) -> None:
    """Assert that the vectors are the same, row by row."""
    assert left.shape == right.shape
    assert (left * right).sum(axis=1).min() >= CLOSE


@pytest.mark.asyncio
class EmbedderConformance:
    """The suite. Each test opens and closes the embedder it is given."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """The embedder under test, not yet open."""
        raise NotImplementedError("override the fixture `embedder` with one that returns your embedder")

    async def test_it_is_an_embedder(self, embedder: Embedder) -> None:
        assert isinstance(embedder, Embedder)
        assert isinstance(embedder.semantic, bool)

    async def test_its_spec_is_known_before_it_is_open_and_never_changes(self, embedder: Embedder) -> None:
        before = embedder.spec
        assert isinstance(before, EmbeddingSpec)
        assert before.model.strip()
        assert before.dimensions > 0
        async with opened(embedder):
            await embedder.embed(TEXTS[:1], "query")
            assert embedder.spec == before

    @pytest.mark.parametrize("kind", KINDS)
    async def test_vectors_are_float32_one_row_a_text_at_unit_length(
        self, embedder: Embedder, kind: Kind
    ) -> None:
        async with opened(embedder):
            assert_vectors(embedder, await embedder.embed(TEXTS, kind), TEXTS)

    @pytest.mark.parametrize("kind", KINDS)
    async def test_no_texts_give_no_rows(self, embedder: Embedder, kind: Kind) -> None:
        async with opened(embedder):
            assert_vectors(embedder, await embedder.embed([], kind), [])

    @pytest.mark.parametrize("kind", KINDS)
    async def test_company_and_order_do_not_change_a_vector(self, embedder: Embedder, kind: Kind) -> None:
        async with opened(embedder):
            together = await embedder.embed(TEXTS, kind)
            alone = np.concatenate([await embedder.embed([text], kind) for text in TEXTS])
            turned = await embedder.embed(TEXTS[::-1], kind)
        assert_same(together, alone)
        assert_same(together, turned[::-1])

    async def test_different_texts_have_different_vectors(self, embedder: Embedder) -> None:
        async with opened(embedder):
            vectors = await embedder.embed(TEXTS, "document")
        likeness = vectors @ vectors.T - np.eye(len(TEXTS))
        assert likeness.max() < 0.95

    async def test_the_same_text_has_the_same_vector_each_time(self, embedder: Embedder) -> None:
        async with opened(embedder):
            first = await embedder.embed([TEXTS[0]] * 2, "document")
            again = await embedder.embed([TEXTS[0]] * 2, "document")
        assert_same(first, again)
        assert_same(first[:1], first[1:])

    async def test_closing_and_opening_again_changes_no_vector(self, embedder: Embedder) -> None:
        async with opened(embedder):
            before = await embedder.embed(TEXTS, "document")
        async with opened(embedder):
            after = await embedder.embed(TEXTS, "document")
        assert_same(before, after)

    async def test_a_question_is_nearest_to_the_text_that_answers_it_in_its_own_words(
        self, embedder: Embedder
    ) -> None:
        async with opened(embedder):
            documents = await embedder.embed(TEXTS, "document")
            query = await embedder.embed(["is my sister Ana in Porto since March"], "query")
        assert int((documents @ query[0]).argmax()) == 0

    async def test_a_text_of_32_kib_is_embedded(self, embedder: Embedder) -> None:
        text = ("My sister Ana moved to Porto in March. " * 1000)[: 32 * 1024]
        async with opened(embedder):
            assert_vectors(embedder, await embedder.embed([text, "ok"], "document"), [text, "ok"])

    async def test_one_endless_word_is_embedded(self, embedder: Embedder) -> None:
        text = "aé" * 5000
        async with opened(embedder):
            assert_vectors(embedder, await embedder.embed([text], "document"), [text])

    @pytest.mark.parametrize("kind", KINDS)
    async def test_any_unicode_is_embedded(self, embedder: Embedder, kind: Kind) -> None:
        async with opened(embedder):
            together = await embedder.embed(ODD_TEXTS, kind)
            alone = await embedder.embed(ODD_TEXTS[3:4], kind)
        assert_vectors(embedder, together, ODD_TEXTS)
        assert_same(together[3:4], alone)

    async def test_many_calls_at_once_each_get_their_own_vectors(self, embedder: Embedder) -> None:
        texts = [f"note {number}: {TEXTS[number % len(TEXTS)]}" for number in range(40)]
        async with opened(embedder):
            apart = await asyncio.gather(*(embedder.embed([text], "query") for text in texts))
            documents, together = await asyncio.gather(
                embedder.embed(texts, "document"), embedder.embed(texts, "query")
            )
        assert_vectors(embedder, documents, texts)
        assert_same(np.concatenate(apart), together)

    async def test_what_a_caller_does_to_its_vectors_stays_with_it(self, embedder: Embedder) -> None:
        async with opened(embedder):
            mine = await embedder.embed(TEXTS[:2], "query")
            kept = mine.copy()
            mine[:] = 0
            assert_same(await embedder.embed(TEXTS[:2], "query"), kept)

    async def test_opening_and_closing_twice_does_no_harm(self, embedder: Embedder) -> None:
        await embedder.open()
        await asyncio.gather(embedder.open(), embedder.open())
        assert_vectors(embedder, await embedder.embed(TEXTS[:1], "query"), TEXTS[:1])
        await embedder.aclose()
        await embedder.aclose()

    async def test_closing_what_was_never_opened_does_no_harm(self, embedder: Embedder) -> None:
        await embedder.aclose()

    @pytest.mark.parametrize("texts", ["one string", ["half \ud83d"], [b"bytes"]])
    async def test_what_cannot_be_encoded_is_refused(self, embedder: Embedder, texts: Sequence[str]) -> None:
        async with opened(embedder):
            with pytest.raises(InvalidInput):
                await embedder.embed(texts, "document")


__all__ = ["EmbedderConformance", "opened"]
