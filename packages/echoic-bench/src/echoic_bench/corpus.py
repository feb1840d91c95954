"""A data set in a store of its own, every user apart, embedded, and asked as an application asks.

What is measured is `MemoryService.user(…).recall`, over SQLite. A folder that is kept makes the next run of
the same data quick: what was embedded once is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import CachedEmbedder, Embedded, Embedder, Kind, PieceEmbedder, Vectors
from echoic.errors import EmbedderUnavailable, InvalidInput
from echoic.memory.records import record_of_memory, record_of_turn
from echoic.memory.service import MemoryService
from echoic.partition import Pieces
from echoic.stores.base import Put, Record
from echoic.stores.sqlite import SQLiteStore
from echoic.text import ANALYSIS
from echoic.types import EmbeddingSpec, Memory, Recall, Scope
from echoic_bench.labelled import Dataset, Item, Labelled, Question
from echoic_bench.metrics import DEPTH, Tally

DEPLOYMENT = "bench"
_BATCH = 1000
"""Records of one write."""
_LOOK_S = 1.0
_STALLED_S = 120.0
"""A batch of long texts takes a slow machine some seconds; nobody waits for more."""
REMEMBERED = 4_000
"""Texts of either kind: with their word pieces up to 60 KB each."""


class Progress(Protocol):
    """How far a long task is."""

    def __call__(self, done: int, total: int | None = None) -> None:
        """Show that `done` of `total` are done."""
        ...


def silent(done: int, total: int | None = None) -> None:
    """Show nothing."""
    del done, total


class HeldEmbedder(CachedEmbedder):
    """An embedder that several services in turn may open and close, and that remembers what it was told.

    Made-up calls repeat themselves, and several fusions are asked the same questions.
    """

    def __init__(self, inner: Embedder, remember: int = REMEMBERED) -> None:
        """Takes `inner` over, and remembers `remember` texts of either kind."""
        super().__init__(inner, entries=max(1, remember))
        self._remember = remember
        self._documents: dict[str, tuple[NDArray[np.float32], Pieces | None]] = {}

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """As the embedder does, each text once."""
        if kind == "query":
            return await super().embed(texts, kind)
        return (await self.embed_pieces(texts, kind)).vectors

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """As the embedder does, each text once."""
        if kind == "query":
            return await super().embed_pieces(texts, kind)
        known = {text: self._documents[text] for text in texts if text in self._documents}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            made = await super().embed_pieces(new, kind)
            each: Sequence[Pieces | None] = made.pieces or [None] * len(new)
            known |= dict(zip(new, zip(made.vectors, each, strict=True), strict=True))
            if len(self._documents) < self._remember:
                self._documents |= known
        found = [known[text] for text in texts]
        pieces = [one for _, one in found if one is not None]
        vectors = np.stack([vector for vector, _ in found])
        return Embedded(vectors, pieces if len(pieces) == len(found) else None)

    @property
    def has_pieces(self) -> bool:
        """Whether the embedder inside returns word pieces."""
        return isinstance(self._inner, PieceEmbedder)

    async def aclose(self) -> None:
        """Nothing: the next service goes on with it. See `release`."""

    async def stop(self) -> None:
        """Likewise: a service that closes forgets nothing of it."""

    async def release(self) -> None:
        """Close it."""
        await super().stop()
        await self._inner.aclose()


class VectorsOnly:
    """An embedder that hands out no word pieces, as no remote one does."""

    def __init__(self, inner: Embedder) -> None:
        """Takes `inner` over."""
        self._inner = inner

    @property
    def spec(self) -> EmbeddingSpec:
        """Of `inner`: the vectors are its own."""
        return self._inner.spec

    @property
    def semantic(self) -> bool:
        """Of `inner`."""
        return self._inner.semantic

    async def open(self) -> None:
        """Open `inner`."""
        await self._inner.open()

    async def aclose(self) -> None:
        """Close `inner`."""
        await self._inner.aclose()

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """As `inner` does."""
        return await self._inner.embed(texts, kind)


class Corpus:
    """A data set that can be asked. Made by `corpus_of`."""

    def __init__(self, dataset: Dataset, embedder: HeldEmbedder, path: Path) -> None:
        """`path` is the store's file, filled."""
        self.dataset = dataset
        self.embedder = embedder
        self.path = path

    @contextlib.asynccontextmanager
    async def opened(self, fusion: str = "blend") -> AsyncIterator[MemoryService]:
        """The memory over what is kept."""
        async with MemoryService(SQLiteStore(self.path), self.embedder, fusion=fusion) as memory:
            yield memory

    async def ask(
        self,
        fusion: str,
        *,
        wording: Callable[[Labelled, Question], str] | None = None,
        progress: Progress = silent,
    ) -> Tally:
        """Every question of the data set to one fusion.

        Args:
            fusion: a name that `MemoryService` knows.
            wording: what is asked instead of the question's own words, such as what a recogniser heard.
            progress: told after every question.

        Raises:
            EmbedderUnavailable: a question could not be embedded; without it the figures would be of another
                system.
        """
        tally = Tally()
        async with self.opened(fusion) as memory:
            for number, (whose, question) in enumerate(self.dataset.asked(), 1):
                text = question.text if wording is None else wording(whose, question)
                recall = await memory.user(whose.user, DEPLOYMENT).recall(text, limit=DEPTH, min_relevance=0)
                tally.add(ids_of(recall), whose, question)
                progress(number, self.dataset.questions)
        return tally


def ids_of(recall: Recall) -> list[tuple[str, ...]]:
    """The ids of what was found, best first: of one hit those of its memories and of its turn.

    Raises:
        EmbedderUnavailable: it was not looked everywhere.
    """
    if recall.outcome != "complete":
        raise EmbedderUnavailable(
            f"a question was answered without {', '.join(recall.cut)}: {recall.outcome}"
        )
    return [tuple(one.id for one in (*hit.memories, hit.turn) if one is not None) for hit in recall.hits]


@contextlib.asynccontextmanager
async def corpus_of(
    dataset: Dataset, embedder: Embedder, folder: Path | None = None, progress: Progress = silent
) -> AsyncIterator[Corpus]:
    """`dataset` in a store, embedded.

    Args:
        dataset: what is kept.
        embedder: makes its vectors; closed at the end.
        folder: where the store's file is put and left for the next run; None: it is gone afterwards.
        progress: told while records wait for their vectors.

    Raises:
        EmbedderMissing: the embedder's packages or weights are not on this machine.
        EmbedderUnavailable: it could not be reached.
        InvalidInput: `folder` cannot be made.
    """
    held = HeldEmbedder(embedder)
    await held.open()
    try:
        with _kept(folder) as place:
            model = re.sub(r"\W+", "-", f"{embedder.spec.model}-{embedder.spec.dimensions}")
            pieces = "-pieces" if isinstance(embedder, PieceEmbedder) else ""
            # what is made of a text by another version may be something else
            made = f"{model}{pieces}-{version('echoic')}-{ANALYSIS}"
            path = place / f"{dataset.name}-{dataset.fingerprint()}-{made}.db"
            if not _marker(path).exists():
                await _fill(path, dataset, held, progress)
                _marker(path).touch()
            yield Corpus(dataset, held, path)
    finally:
        await held.release()


@contextlib.contextmanager
def _kept(folder: Path | None) -> Iterator[Path]:
    if folder is None:
        with TemporaryDirectory(prefix="echoic-bench-") as name:
            yield Path(name)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the folder {str(folder)!r} cannot be made: {error.strerror}") from error
    yield folder


def _marker(path: Path) -> Path:
    """Stands beside a store that holds everything with its vectors."""
    return path.with_suffix(".filled")


async def _fill(path: Path, dataset: Dataset, embedder: HeldEmbedder, progress: Progress) -> None:
    store = SQLiteStore(path)
    async with MemoryService(store, embedder) as memory:
        for whose in dataset.users:
            scope = Scope(DEPLOYMENT, whose.user)
            for records in _batched([record_of(item) for item in whose.items], _BATCH):
                await store.write(scope, [Put(record=record) for record in records])
        await settled(memory, dataset.rows, progress)


def record_of(item: Item) -> Record:
    """`item` as a store keeps it."""
    return record_of_memory(item) if isinstance(item, Memory) else record_of_turn(item)


async def settled(memory: MemoryService, rows: int, progress: Progress = silent) -> None:
    """Wait until all of `rows` records have their vectors.

    Raises:
        EmbedderUnavailable: embedding does not get on.
    """
    least, fell_at = rows + 1, time.monotonic()
    while waiting := int((facts := await memory.check())["waiting"]):
        if waiting < least:
            least, fell_at = waiting, time.monotonic()
        if facts["embedding_failure"] or time.monotonic() - fell_at > _STALLED_S:
            trouble = facts["embedding_failure"] or f"nothing happened for {_STALLED_S:g} s"
            raise EmbedderUnavailable(f"{waiting} records wait to be embedded, and do not get on: {trouble}")
        progress(max(0, rows - waiting), rows)
        if not await memory.settle(_LOOK_S):
            await asyncio.sleep(_LOOK_S / 10)


def _batched(records: Sequence[Record], size: int) -> Iterator[Sequence[Record]]:
    return (records[first : first + size] for first in range(0, len(records), size))


__all__ = [
    "DEPLOYMENT",
    "Corpus",
    "HeldEmbedder",
    "Progress",
    "VectorsOnly",
    "corpus_of",
    "ids_of",
    "record_of",
    "settled",
    "silent",
]
