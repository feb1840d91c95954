"""The embedder seam: texts in, unit vectors out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from echoic.errors import EmbedderUnavailable, InvalidInput
from echoic.partition import Pieces
from echoic.types import EmbeddingSpec

Kind = Literal["query", "document"]
Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    A constructor does no I/O; `open()` loads or connects and may be awaited again; `aclose()` may be
    called twice.
    """

    @property
    def spec(self) -> EmbeddingSpec:
        """Known before `open()`, so that a store can be checked first."""
        ...

    @property
    def semantic(self) -> bool:
        """Whether it knows meaning. False for "lexical", which knows only words, spelling and sound."""
        ...

    async def open(self) -> None:
        """Make ready.

        Raises:
            EmbedderMissing: packages or weights are not on this machine.
            EmbedderUnavailable: the model could not be reached.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what `open()` took."""
        ...

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Vectors of `texts`: float32 [len(texts), dimensions], unit length, in order. Never blocks the loop.

        Raises:
            EmbedderUnavailable: after retries; nothing was embedded.
        """
        ...


@dataclass(frozen=True, slots=True)
class Embedded:
    """Everything an embedder makes of some texts."""

    vectors: Vectors
    """[texts, dimensions], unit length."""
    pieces: Sequence[Pieces] | None = None
    """One a text; None where the embedder does not hand them out, as no remote one does."""


@runtime_checkable
class PieceEmbedder(Embedder, Protocol):
    """An embedder that hands out its word pieces too. They cost it nothing: the vector is their mean."""

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """`embed`, with the word pieces that the vectors were made of; under the same rules."""
        ...


async def embedded(embedder: Embedder, texts: Sequence[str], kind: Kind) -> Embedded:
    """All that `embedder` makes of `texts`: with word pieces where it has them.

    Raises:
        EmbedderUnavailable: after retries, or what it made is not of its `spec`; nothing was embedded.
    """
    # not isinstance: against a protocol it takes as long as a quarter of a search
    with_pieces: PieceEmbedder | None = embedder if hasattr(embedder, "embed_pieces") else None  # type: ignore[assignment]
    if with_pieces is None:
        made = Embedded(await embedder.embed(texts, kind))
    else:
        made = await with_pieces.embed_pieces(texts, kind)
    _check(made.vectors, (len(texts), embedder.spec.dimensions), embedder.spec.model)
    return made


def _check(vectors: Vectors, shape: tuple[int, int], model: str) -> None:
    """Anybody's embedder may be at fault: one vector of other dimensions, and a scope is read no more."""
    if np.shape(vectors) != shape:
        raise EmbedderUnavailable(
            f"{model!r} made vectors of shape {np.shape(vectors)} where its spec promises {shape}"
        )
    if not np.isfinite(vectors).all():
        raise EmbedderUnavailable(f"{model!r} made a vector that holds what is no finite number")


KINDS: tuple[Kind, ...] = get_args(Kind)


def checked_texts(texts: Sequence[str], kind: Kind, *, blank: bool = True) -> list[str]:
    """`texts` as a list of strings that can be encoded.

    Args:
        texts: any Unicode, of any length.
        kind: what they are.
        blank: whether a text without a visible character is let through.

    Raises:
        InvalidInput: a single string was given, a value is no string or holds half a character, a text is
            blank where that is not allowed, or `kind` is neither "query" nor "document".
    """
    if kind not in KINDS:
        raise InvalidInput(f"unknown kind {kind!r}: use one of {', '.join(KINDS)}")
    if isinstance(texts, str):
        raise InvalidInput("texts must be a sequence of strings, not one string: write embed([text], kind)")
    return [_checked(text, position, blank=blank) for position, text in enumerate(texts)]


def _checked(text: object, position: int, *, blank: bool) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"text {position} must be a string, not {type(text).__name__}")
    if not blank and not text.strip():
        raise InvalidInput(f"text {position} is blank: a hosted model has no vector for it. Leave it out.")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"text {position} holds half a character (a lone surrogate) at position {error.start}. "
                "Decode it again, with errors='replace' if need be."
            ) from None  # the cause would carry the text itself
    return text


def unit(vectors: Vectors) -> Vectors:
    """`vectors` [n, dimensions] with each row at length 1. A row of zeros has no direction and stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = np.divide(vectors, np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)
    return scaled


log = logging.getLogger(__name__)

NOTHING_SAID = "(silence)"
"""Embedded for what has no words that a model takes: it is found by its words alone, but waits no longer."""
BEGINNINGS = (2_000, 400)
"""Characters of a refused text that are tried then: 400 are fewer than the 512 tokens that the smallest
models read, whatever the language."""


async def embedded_documents(embedder: Embedder, texts: Sequence[str]) -> Embedded:
    """What `embedder` makes of `texts`; where it refuses one, of its beginning, or of `NOTHING_SAID`.

    Raises:
        EmbedderUnavailable: after retries; nothing was embedded.
        InvalidInput: it refuses not a text but the request, whatever the text.
    """
    given = [text if text.strip() else NOTHING_SAID for text in texts]
    try:
        return await embedded(embedder, given, "document")
    except InvalidInput:
        await embedded(embedder, [NOTHING_SAID], "document")  # refused too: then it is not for the text
    made = await _halved(embedder, given)
    pieces = [piece for one in made for piece in one.pieces or ()]
    whole = len(pieces) == len(texts)
    return Embedded(np.concatenate([one.vectors for one in made]), pieces if whole else None)


async def _halved(embedder: Embedder, texts: Sequence[str]) -> list[Embedded]:
    """All that is not refused in as few requests as that takes."""
    try:
        return [await embedded(embedder, texts, "document")]
    except InvalidInput:
        if len(texts) == 1:
            return [await _instead(embedder, texts[0])]
        half = len(texts) // 2
        return [*await _halved(embedder, texts[:half]), *await _halved(embedder, texts[half:])]


async def _instead(embedder: Embedder, refused: str) -> Embedded:
    for most in BEGINNINGS:
        beginning = refused[:most]
        if len(beginning) < len(refused) and beginning.strip():
            try:
                made = await embedded(embedder, [beginning], "document")
            except InvalidInput:
                continue
            log.warning("a text of %d characters was refused: its first %d were embedded", len(refused), most)
            return made
    log.warning("a text of %d characters was refused: it is found by its words alone", len(refused))
    return await embedded(embedder, [NOTHING_SAID], "document")


__all__ = [
    "BEGINNINGS",
    "KINDS",
    "NOTHING_SAID",
    "Embedded",
    "Embedder",
    "EmbeddingSpec",
    "Kind",
    "PieceEmbedder",
    "Vectors",
    "checked_texts",
    "embedded",
    "embedded_documents",
    "unit",
]
