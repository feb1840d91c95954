"""The comparison: every peer keeps the same texts, answers the same questions, and is timed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from echoic.embedding.base import Embedder
from echoic.errors import InvalidInput
from echoic.memory.records import index
from echoic.ranking import kernel
from echoic_bench.corpus import HeldEmbedder, Progress, record_of, silent
from echoic_bench.labelled import Dataset, Labelled, Question
from echoic_bench.metrics import DEPTH, Interval, Tally, gain, percentiles, table
from echoic_bench.peers.base import About, Kept, Peer, Vector
from echoic_bench.peers.chroma import Chroma
from echoic_bench.peers.langgraph import LangGraph
from echoic_bench.peers.mem0 import Mem0
from echoic_bench.peers.ours import Echoic, EchoicAlike, EchoicNumpy
from echoic_bench.recall import COMPARED

NAMES = ("echoic", "mem0", "chroma", "langgraph")
LIMIT = 10
"""Hits of a timed search."""
_BATCH = 64
_BLOCK = 20
"""Questions asked of one before the next has its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What one peer did."""

    about: About
    tally: Tally
    add: Mapping[str, float]
    """Percentiles of keeping one thing, until it is acknowledged."""
    search: Mapping[str, float]
    """Percentiles of finding `LIMIT`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All of them, ours first."""

    dataset: Dataset
    embedder: str
    peers: Sequence[Compared]
    alike: Compared
    """Ours once more, searching by vectors alone as the others do: the rest of its time goes into finding
    more."""
    numpy: Compared | None
    """Ours once more, ranked by numpy; None where there is no compiled kernel, and ours is that already."""
    ranking: str
    """What ranked ours: "numpy", or the instructions of the compiled kernel."""
    left_out: Mapping[str, str]
    """By name: why, and how to have it the next time."""

    @property
    def every(self) -> Sequence[Compared]:
        """All of them, and ours in its other forms behind."""
        return (*self.peers, self.alike, *([self.numpy] if self.numpy is not None else []))

    def gains(self) -> dict[str, dict[str, Interval]]:
        """By peer and metric: what ours finds more."""
        ours, *others = self.peers
        return {o.about.name: {m: gain(ours.tally, o.tally, m) for m in COMPARED} for o in others}

    def faster(self, ours: Compared | None = None) -> dict[str, dict[str, float]]:
        """By peer: how many times as long its search takes as ours, in its default or another form."""
        search = (ours or self.peers[0]).search
        return {
            other.about.name: {p: round(other.search[p] / search[p], 1) for p in ("p50_ms", "p95_ms")}
            for other in self.peers[1:]
        }

    def as_json(self) -> dict[str, Any]:
        """Everything."""
        return {
            "data": self.dataset.name,
            "users": len(self.dataset.users),
            "rows": self.dataset.rows,
            "questions": self.dataset.questions,
            "embedder": self.embedder,
            "ranking": self.ranking,
            "peers": {
                one.about.name: {
                    "versions": dict(one.about.versions()),
                    "form": one.about.form,
                    "durable": one.about.durable,
                    "search": dict(one.search),
                    "add": dict(one.add),
                    **table(one.tally, self.dataset.categories),
                }
                for one in self.every
            },
            "echoic over": {n: {m: i.points() for m, i in by.items()} for n, by in self.gains().items()},
            "times as long as echoic's search": self.faster(),
            "times as long as echoic's search by vectors alone": self.faster(self.alike),
            **({"times as long as echoic's search by numpy": self.faster(self.numpy)} if self.numpy else {}),
            "left out": dict(self.left_out),
            "leaks": sum(one.tally.leaks for one in self.every),
        }


async def measure_peers(
    dataset: Dataset,
    embedder: Embedder,
    *,
    names: Sequence[str] = NAMES,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Let every peer that is installed keep and find the same.

    Args:
        dataset: what is kept and asked.
        embedder: makes the vectors all of them get; closed at the end.
        names: who is compared with; ours always is.
        folder: on the disk they are to write to; None: where temporary files are. Nothing is left in it.
        progress: told after every question.

    Raises:
        InvalidInput: there is no such peer.
        EmbedderUnavailable: something could not be embedded.
    """
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise InvalidInput(f"unknown peer {unknown[0]!r}: known are {', '.join(NAMES)}")
    held = HeldEmbedder(embedder, remember=dataset.rows + dataset.questions)
    await held.open()
    try:
        kept, vectors = await _embedded(dataset, held)
        ours, *wanted = _peers(held, names)
        there = [peer for peer in wanted if peer.about.missing() is None]
        with TemporaryDirectory(prefix="echoic-peers-", dir=folder) as place:
            forms = [EchoicAlike(held), *([EchoicNumpy(held)] if kernel.compiled is not None else [])]
            compared = await _side_by_side(
                [ours, *there, *forms], Path(place), dataset, kept, vectors, progress=progress
            )
    finally:
        await held.release()
    left_out = {
        peer.about.name: f"{missing} is not installed: {peer.about.install}"
        for peer in wanted
        if (missing := peer.about.missing()) is not None
    }
    alike, *others = compared[1 + len(there) :]
    return Comparison(
        dataset=dataset,
        embedder=held.spec.model,
        peers=compared[: 1 + len(there)],
        alike=alike,
        numpy=others[0] if others else None,
        ranking=kernel.name(),
        left_out=left_out,
    )


def _peers(held: HeldEmbedder, names: Sequence[str]) -> list[Peer]:
    others: dict[str, type[Mem0 | Chroma | LangGraph]] = {
        "mem0": Mem0,
        "chroma": Chroma,
        "langgraph": LangGraph,
    }
    return [Echoic(held), *(others[name]() for name in dict.fromkeys(names) if name in others)]


async def _embedded(dataset: Dataset, held: HeldEmbedder) -> tuple[dict[str, list[Kept]], dict[str, Vector]]:
    """By user what is kept, and the vector of every text and question."""
    vectors: dict[str, Vector] = {}
    texts = [
        (each.user, item, entry.text)
        for each in dataset.users
        for item in each.items
        if (entry := index(record_of(item))) is not None
    ]
    for first in range(0, len(texts), _BATCH):
        some = [text for _, _, text in texts[first : first + _BATCH]]
        vectors |= dict(zip(some, await held.embed(some, "document"), strict=True))
    asked = list(dict.fromkeys(question.text for _, question in dataset.asked()))
    for first in range(0, len(asked), _BATCH):
        some = asked[first : first + _BATCH]
        vectors |= dict(zip(some, await held.embed(some, "query"), strict=True))
    kept: dict[str, list[Kept]] = {each.user: [] for each in dataset.users}
    for user, item, text in texts:
        kept[user].append(Kept(item, text, vectors[text]))
    return kept, vectors


async def _side_by_side(
    peers: Sequence[Peer],
    folder: Path,
    dataset: Dataset,
    kept: Mapping[str, Sequence[Kept]],
    vectors: Mapping[str, Vector],
    *,
    progress: Progress,
) -> list[Compared]:
    """Fill them one after another; then a few questions at a time to each of them in turn."""
    names = [peer.about.name for peer in peers]
    tallies = {name: Tally() for name in names}
    added: dict[str, list[float]] = {}
    searched: dict[str, list[float]] = {name: [] for name in names}
    async with AsyncExitStack() as opened:
        for peer in peers:
            own = folder / peer.about.name
            own.mkdir()
            await peer.open(own, vectors, len(next(iter(vectors.values()))))
            opened.push_async_callback(peer.aclose)
            added[peer.about.name] = await _filled(peer, dataset, kept)
        asked = list(dataset.asked())
        for first in range(0, len(asked), _BLOCK):
            block = asked[first : first + _BLOCK]
            # what the machine does besides hits all of them alike, and no one is always first
            turn = first // _BLOCK % len(peers)
            for peer in (*peers[turn:], *peers[:turn]):
                searched[peer.about.name] += await _asked(peer, block, tallies[peer.about.name])
            progress(first + len(block), len(asked))
    return [
        Compared(
            about=peer.about,
            tally=tallies[name],
            add=percentiles(added[name]),
            search=percentiles(searched[name]),
        )
        for name, peer in zip(names, peers, strict=True)
    ]


async def _asked(peer: Peer, block: Sequence[tuple[Labelled, Question]], tally: Tally) -> list[float]:
    """Seconds of each search; what is found is counted beforehand, which also warms whatever can be."""
    for whose, question in block:
        found = await peer.search(whose.user, question.text, DEPTH)
        tally.add([name for name, _ in found], whose, question)
    samples = []
    for whose, question in block:
        began = time.perf_counter()
        await peer.search(whose.user, question.text, LIMIT)
        samples.append(time.perf_counter() - began)
    return samples


async def _filled(peer: Peer, dataset: Dataset, kept: Mapping[str, Sequence[Kept]]) -> list[float]:
    """Seconds that keeping each thing took."""
    samples = []
    for whose in dataset.users:
        for one in kept[whose.user]:
            began = time.perf_counter()
            await peer.add(whose.user, one)
            samples.append(time.perf_counter() - began)
    await peer.ready()
    return samples


__all__ = ["LIMIT", "NAMES", "Compared", "Comparison", "measure_peers"]
