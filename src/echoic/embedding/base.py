"""The embedder seam: texts in, unit vectors out; and a cache of recent queries.

In a call the same texts are embedded again: the last partial transcript equals the final one, and tools
repeat questions. The cache is for one event loop and holds what users said: `clear()` forgets it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from echoic.errors import EmbedderUnavailable, InvalidInput, NotOpen
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

    @property
    def semantic(self) -> bool:
        """Whether its vectors represent meaning; False for "lexical" (words, spelling, sound)."""

    async def open(self) -> None:
        """Prepare it for use.

        Raises:
            EmbedderMissing: packages or weights are not on this machine.
            EmbedderUnavailable: the model could not be reached.
        """

    async def aclose(self) -> None:
        """Release what `open()` acquired."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Vectors of `texts`: float32 [len(texts), dimensions], unit length, in order. Never blocks the loop.

        Raises:
            EmbedderUnavailable: after retries; nothing was embedded.
        """


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors and word pieces of some texts."""

    vectors: Vectors
    """[texts, dimensions], unit length."""
    pieces: Sequence[Pieces] | None = None
    """One for each text; None if the embedder returns none, as remote ones do."""


@runtime_checkable
class PieceEmbedder(Embedder, Protocol):
    """An embedder that also returns its word pieces, at no extra cost: the vector is their mean."""

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """As `embed`, with the word pieces of the vectors."""


async def embedded(embedder: Embedder, texts: Sequence[str], kind: Kind) -> Embedded:
    """The vectors of `texts`, with word pieces if `embedder` returns them.

    Raises:
        EmbedderUnavailable: it failed, or its result does not match its `spec`; nothing was embedded.
    """
    # not isinstance, which on a protocol takes as long as a quarter of a search
    with_pieces: PieceEmbedder | None = embedder if hasattr(embedder, "embed_pieces") else None  # type: ignore[assignment]
    if with_pieces is None:
        made = Embedded(await embedder.embed(texts, kind))
    else:
        made = await with_pieces.embed_pieces(texts, kind)
    spec = embedder.spec
    _check(made.vectors, (len(texts), spec.dimensions), spec.model)
    return made


def _check(vectors: Vectors, shape: tuple[int, int], model: str) -> None:
    """Validate the result: one vector with other dimensions would make a scope unreadable."""
    if np.shape(vectors) != shape:
        raise EmbedderUnavailable(
            f"{model!r} made vectors of shape {np.shape(vectors)} instead of {shape}, as in its spec"
        )
    if not np.isfinite(vectors).all():
        raise EmbedderUnavailable(f"{model!r} made a vector with a number that is not finite")


KINDS: tuple[Kind, ...] = get_args(Kind)


def checked_texts(texts: Sequence[str], kind: Kind, *, blank: bool = True) -> list[str]:
    """`texts` as a list of strings that can be encoded; with `blank`, blank ones are allowed.

    Raises:
        InvalidInput: a single string was given, a value is not a string or has a lone surrogate, a text is
            blank though that is not allowed, or `kind` is neither "query" nor "document".
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
            ) from None  # the cause would contain the text
    return text


def unit(vectors: Vectors) -> Vectors:
    """`vectors` [n, dimensions] with each row at length 1. A row of zeros stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = np.divide(vectors, np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)
    return scaled


log = logging.getLogger(__name__)

NOTHING_SAID = "(silence)"
"""Embedded in place of a text without usable words, so that it is not pending for ever; words still find it.
"""
BEGINNINGS = (2_000, 400)
"""Characters of a refused text that are tried instead: 400 are fewer than the 512 tokens that the smallest
models read, in any language."""


_TRIES = 3
"""How often a text must fail, alone and each time just before another is embedded, to count as refused."""


async def embedded_documents(embedder: Embedder, texts: Sequence[str]) -> Embedded:
    """The vectors of `texts`. A text that the embedder refuses, or fails on while it embeds others, is
    replaced by its beginning, or by `NOTHING_SAID`.

    Raises:
        EmbedderUnavailable: after retries, whatever the text; nothing was embedded.
        InvalidInput: it refuses the request whatever the text.
    """
    given = [text if text.strip() else NOTHING_SAID for text in texts]
    try:
        return await embedded(embedder, given, "document")
    except (InvalidInput, EmbedderUnavailable):
        await embedded(embedder, [NOTHING_SAID], "document")  # fails too: then not because of the text
    made = await _halved(embedder, given)
    pieces = [piece for one in made for piece in one.pieces or ()]
    whole = len(pieces) == len(texts)
    return Embedded(np.concatenate([one.vectors for one in made]), pieces if whole else None)


async def _halved(embedder: Embedder, texts: Sequence[str]) -> list[Embedded]:
    """Embed everything that is not refused, in few requests."""
    if (made := await _unless_refused(embedder, texts)) is not None:
        return [made]
    if len(texts) == 1:
        return [await _instead(embedder, texts[0])]
    half = len(texts) // 2
    return [*await _halved(embedder, texts[:half]), *await _halved(embedder, texts[half:])]


async def _unless_refused(embedder: Embedder, texts: Sequence[str]) -> Embedded | None:
    """The vectors of `texts`; None if they are refused.

    Some hosted models answer a text they cannot embed like an outage, with status 500 or no numbers.
    """
    for _ in range(_TRIES if len(texts) == 1 else 1):
        try:
            return await embedded(embedder, texts, "document")
        except InvalidInput:
            return None
        except EmbedderUnavailable:
            await embedded(embedder, [NOTHING_SAID], "document")  # fails too: then it is an outage
    return None


async def _instead(embedder: Embedder, refused: str) -> Embedded:
    for most in BEGINNINGS:
        beginning = refused[:most]
        shorter = len(beginning) < len(refused) and beginning.strip()
        if shorter and (made := await _unless_refused(embedder, [beginning])) is not None:
            log.warning("a text of %d characters was refused: its first %d were embedded", len(refused), most)
            return made
    log.warning("a text of %d characters was refused: it is found by its words alone", len(refused))
    return await embedded(embedder, [NOTHING_SAID], "document")


class CachedEmbedder:
    """An embedder that calls `inner` once for each query among the last `entries` different ones."""

    def __init__(self, inner: Embedder, entries: int = 1024) -> None:
        """Take over `inner`: opening and closing this opens and closes it.

        An entry takes 4 bytes a dimension, for the text and for each word piece. Raises InvalidInput if
        `entries` is below 1.
        """
        if entries < 1:
            raise InvalidInput(f"entries must be at least 1, not {entries!r}")
        self._inner = inner
        self.semantic = inner.semantic
        self.hold_documents: Callable[[], Callable[[], None]] = getattr(
            inner, "hold_documents", lambda: lambda: None
        )
        """Has `inner`, if it runs on this machine, start no documents until the returned function is called.
        For a recall: ranking needs the processor while a caller waits."""
        self._entries = entries
        self._known: OrderedDict[str, Embedded] = OrderedDict()  # some 20 KB each, with word pieces
        self._coming: dict[str, asyncio.Future[Embedded]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._cleared = 0

    @property
    def spec(self) -> EmbeddingSpec:
        return self._inner.spec

    def count_tokens(self, text: str) -> int | None:
        """How many tokens the model of `inner` makes of `text`; None if it cannot say."""
        counting = getattr(self._inner, "count_tokens", None)
        return counting(text) if counting else None

    async def open(self) -> None:
        await self._inner.open()

    async def aclose(self) -> None:
        """Forget everything and close `inner`."""
        await self.stop()
        await self._inner.aclose()

    async def stop(self) -> None:
        """Cancel the embeddings in progress and forget everything; `inner` stays open."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.clear()

    def clear(self) -> None:
        """Forget every query and its vector."""
        self._known.clear()
        self._cleared += 1

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """See `Embedder`. Equal queries that arrive while the first is being embedded wait for it.

        Cancelling a caller does not stop the embedding: its result is cached for the next one.
        """
        checked = checked_texts(texts, kind)
        if kind != "query" or not checked:
            return await self._inner.embed(checked, kind)
        return (await self._joined(checked)).vectors

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """As `embed`, with the word pieces of each text if `inner` returns them."""
        checked = checked_texts(texts, kind)
        if kind != "query" or not checked:
            return await embedded(self._inner, checked, kind)
        return await self._joined(checked)

    def begin(self, text: str) -> asyncio.Future[Embedded]:
        """The vector of a query: at once if it is cached, else when it is embedded.

        Other callers may wait for the same query: shield it, and do not cancel it.
        """
        self._ask([text])
        return self._of(text)

    async def _joined(self, texts: list[str]) -> Embedded:
        self._ask(texts)
        coming = [self._of(text) for text in texts]
        found = [await _outcome(one) for one in coming]
        pieces = [piece for one in found for piece in one.pieces or ()]
        vectors = np.concatenate([one.vectors for one in found])
        return Embedded(vectors, pieces if len(pieces) == len(found) else None)

    def _ask(self, texts: list[str]) -> None:
        """Ensure that each of `texts` is cached or in progress."""
        missing = [t for t in dict.fromkeys(texts) if t not in self._known and t not in self._coming]
        if not missing:
            return
        loop = asyncio.get_running_loop()
        coming = {text: loop.create_future() for text in missing}
        self._coming |= coming
        task = loop.create_task(self._fetch(missing))
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._ended(task, coming))

    def _ended(self, task: asyncio.Task[None], coming: Mapping[str, asyncio.Future[Embedded]]) -> None:
        self._tasks.discard(task)
        for text, one in coming.items():
            if not one.done():  # cancelled before it started
                one.cancel()
                if self._coming.get(text) is one:
                    del self._coming[text]

    def _of(self, text: str) -> asyncio.Future[Embedded]:
        known = self._known.get(text)
        if known is None:
            return self._coming[text]
        self._known.move_to_end(text)
        there: asyncio.Future[Embedded] = asyncio.get_running_loop().create_future()
        there.set_result(known)
        return there

    async def _fetch(self, texts: list[str]) -> None:
        cleared = self._cleared
        try:
            made = await embedded(self._inner, texts, "query")
        except asyncio.CancelledError:
            for text in texts:
                self._coming.pop(text).cancel()
            raise
        except Exception as error:  # noqa: BLE001 - it is told to everybody who waits
            for text in texts:
                coming = self._coming.pop(text)
                coming.set_exception(error)
                coming.exception()  # mark the exception as retrieved if nobody waits any more
            return
        for i, text in enumerate(texts):
            # a copy, since a view would keep the whole batch in memory
            one = Embedded(made.vectors[i : i + 1].copy(), [made.pieces[i]] if made.pieces else None)
            if self._cleared == cleared:  # otherwise it was cleared while in progress
                self._known[text] = one
            self._coming.pop(text).set_result(one)
        while len(self._known) > self._entries:
            self._known.popitem(last=False)


async def _outcome(coming: asyncio.Future[Embedded]) -> Embedded:
    try:
        return await asyncio.shield(coming)
    except asyncio.CancelledError:
        if not coming.cancelled():
            raise  # the caller was cancelled; the embedding goes on
        raise NotOpen("the embedder was closed while a query was waiting; open it again") from None
