"""The voice-memory corpus played to Echoic and its peers, caller by caller, in one run."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from echoic.embedding.base import Embedder
from echoic.errors import InvalidInput
from echoic_bench.corpus import HeldEmbedder, Progress, silent
from echoic_bench.peers.base import Peer
from echoic_bench.peers.chroma import Chroma
from echoic_bench.peers.langgraph import LangGraph
from echoic_bench.peers.lexical import Article, Bm25, stemmed
from echoic_bench.peers.mem0 import Mem0
from echoic_bench.peers.systems import EchoicSystem, PeerSystem, SidecarSystem, Vectors, text_of
from echoic_corpus import Caller, Recogniser, read_all, splits
from echoic_corpus.grading import VERSIONS, System, asked_as, grade, heard_by
from echoic_corpus.marks import Marks, difference

OURS = "echoic"
BEST = ", best"
PEERS: Mapping[str, Callable[[], Peer]] = {
    "mem0": lambda: Mem0(threshold=0.1),
    f"mem0{BEST}": Mem0,
    "chroma": Chroma,
    f"chroma{BEST}": Chroma,
    "langgraph": LangGraph,
    f"langgraph{BEST}": LangGraph,
    "bm25": Bm25,
    f"bm25{BEST}": lambda: Bm25(stemmed),
    "article": Article,
    f"article{BEST}": lambda: Article(stemmed, vector_weight=0.5),
}
"""At their defaults, and as well as they can be set cheaply: with the speaker before what was heard, stems,
no threshold, both legs alike. None of this was chosen on the corpus."""
SYSTEMS = (OURS, *PEERS)
RULES_ALONE = f"{OURS}, rules"
"""Echoic without its reader of sentences: what the rules learn alone. Played where it is asked for."""
SIDECAR = "sidecar"
_REMEMBERED = 8_000
"""Questions and turns whose word pieces are held: some 30 KB each."""
_BATCH = 64
COMPARED = ("R@5", "R@10", "nDCG@10")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What of the corpus is played."""

    split: str
    callers: Sequence[Caller]
    recogniser: Recogniser

    @classmethod
    def of(
        cls,
        split: str,
        callers: Sequence[str] = (),
        limit: int | None = None,
        data: Path | None = None,
        *,
        ask: bool = True,
    ) -> Chosen:
        """The callers of `split`, of them those named, the first `limit`; with `ask`, with their questions.

        Raises:
            InvalidInput: there are none, or the data is not what it must be.
        """
        everybody, problems = read_all(data) if data else read_all()
        if problems:
            raise InvalidInput(f"the corpus has {len(problems)} problems, the first is {problems[0]}")
        side = splits(data) if data else splits()
        chosen = [c for c in everybody if side.get(c.id) == split and (not callers or c.id in callers)][
            :limit
        ]
        if not chosen or (len(chosen) < len(set(callers)) and limit is None):
            raise InvalidInput(f"not all of {', '.join(callers) or 'the callers'} are in the split {split!r}")
        if not ask:
            chosen = [replace(caller, questions=(), silence=()) for caller in chosen]
        # of everybody's words, so that it mishears alike whoever is chosen
        return cls(split=split, callers=chosen, recogniser=Recogniser(everybody))


async def measure_corpus(
    chosen: Chosen,
    embedder: Embedder,
    *,
    systems: Sequence[str] = SYSTEMS,
    versions: Sequence[str] = VERSIONS,
    sidecar: str | None = None,
    folder: Path | None = None,
    progress: Progress = silent,
    keep: Callable[[dict[str, Any]], object] | None = None,
) -> dict[str, Any]:
    """Play `chosen` to every system that is installed, in every version of what was said.

    Args:
        chosen: who calls.
        embedder: makes the vectors all of them get; closed at the end.
        systems: some of `SYSTEMS`, or `RULES_ALONE`.
        versions: some of `VERSIONS`.
        sidecar: the URL of one more system, which speaks the sidecar protocol.
        folder: on the disk they are to write to; None: where temporary files are. Nothing is left in it.
        progress: told after every caller of every version.
        keep: given what is known after each version, in case that the run does not reach its end.

    Returns:
        everything as JSON; see `echoic_corpus.report`.

    Raises:
        InvalidInput: there is no such system or version.
    """
    unknown = [name for name in (*systems, *versions) if name not in {*SYSTEMS, RULES_ALONE, *VERSIONS}]
    if unknown or not versions or not (systems or sidecar):
        raise InvalidInput(
            f"not known: {'; '.join(unknown) or 'nothing to play to'}. "
            f"Systems are {'; '.join((*SYSTEMS, RULES_ALONE))}; versions are {', '.join(VERSIONS)}"
        )
    left_out = {
        name: f"{missing} is not installed: {about.install}"
        for name in systems
        if name in PEERS and (missing := (about := PEERS[name]().about).missing())
    }
    names = [name for name in dict.fromkeys(systems) if name not in left_out]
    began, held = time.monotonic(), HeldEmbedder(embedder, remember=_REMEMBERED)
    marks: dict[str, dict[str, Marks]] = {}
    await held.open()
    try:
        for spoken in versions:
            with TemporaryDirectory(prefix="echoic-corpus-", dir=folder) as place:
                stage = _Stage(chosen, spoken, held, Path(place), sidecar)
                marks[spoken] = await stage.play([name for name in names if name not in left_out], progress)
            left_out |= stage.failed
            made = _as_json(chosen, marks, held.spec.model, left_out, time.monotonic() - began)
            if keep:
                keep(made)
    finally:
        await held.release()
    return made


@dataclass(frozen=True, slots=True)
class _Stage:
    """Where one version of what was said is played."""

    chosen: Chosen
    spoken: str
    held: HeldEmbedder
    folder: Path
    sidecar: str | None
    failed: dict[str, str] = field(default_factory=dict)
    """Peers that broke off, and by which error."""

    async def play(self, names: Sequence[str], progress: Progress) -> dict[str, Marks]:
        """One caller after the other, each to every system in turn, so that other work hits all alike."""
        vectors = Vectors(self.held)
        names = [*names, SIDECAR] if self.sidecar else names
        marks = {name: Marks() for name in names}
        async with AsyncExitStack() as opened:
            systems = {name: self._system(name, vectors) for name in names}
            for name, system in systems.items():
                opened.push_async_callback(self._tried, name, "the end", system.aclose)
                await self._tried(name, "the start", system.start)
            for number, caller in enumerate(self.chosen.callers):
                await self._encode(caller, vectors, names)
                turn = number % len(names)
                for name in (*names[turn:], *names[:turn]):
                    await self._tried(
                        name, caller.id, partial(self._grade, systems[name], caller, marks[name])
                    )
                progress(number + 1, len(self.chosen.callers))
        return {name: found for name, found in marks.items() if name not in self.failed}

    async def _grade(self, system: System, caller: Caller, marks: Marks) -> None:
        recogniser = self.chosen.recogniser
        await grade(system, [caller], version=self.spoken, recogniser=recogniser, marks=marks)

    async def _tried(self, name: str, where: str, step: Callable[[], Awaitable[None]]) -> None:
        """Do a step of one system, unless it broke off before."""
        if name in self.failed:
            return
        try:
            await step()
        except Exception as error:  # whatever somebody else's software raises: the others go on
            if name not in PEERS:
                raise
            self.failed[name] = f"broke off at {where}, {self.spoken}: {type(error).__name__}: {error!s:.200}"

    def _system(self, name: str, vectors: Vectors) -> EchoicSystem | PeerSystem | SidecarSystem:
        if name == SIDECAR:
            return SidecarSystem(self.sidecar or "")
        own = self.folder / name.replace(BEST, "-best")
        own.mkdir()
        if name in {OURS, RULES_ALONE}:
            return EchoicSystem(self.held, own, sentences=name == OURS)
        dimensions = self.held.spec.dimensions
        return PeerSystem(PEERS[name](), vectors, own, dimensions, best=name.endswith(BEST))

    async def _encode(self, caller: Caller, vectors: Vectors, names: Sequence[str]) -> None:
        """Encode beforehand what will be kept and asked: that is the same for all, and is not timed."""
        recogniser = self.chosen.recogniser
        asked = [asked_as(caller, question, self.spoken, recogniser) for question in caller.questions]
        asked = [text for text in asked if text]
        if {OURS, RULES_ALONE} & set(names):
            for first in range(0, len(asked), _BATCH):
                await self.held.embed_pieces(asked[first : first + _BATCH], "query")
        if any(name in PEERS for name in names):
            said = [each for call in caller.calls for each in heard_by(caller, call, self.spoken, recogniser)]
            texts = [text_of(each, best=best) for each in said for best in (False, True)]
            await vectors.need(texts, "document")
            await vectors.need(asked, "query")


def _as_json(
    chosen: Chosen,
    marks: Mapping[str, Mapping[str, Marks]],
    embedder: str,
    left_out: Mapping[str, str],
    wall_s: float,
) -> dict[str, Any]:
    first = dict.fromkeys(name for by_name in marks.values() for name in by_name)
    others = [name for name in first if name != OURS]
    return {
        "corpus": _corpus_version(),
        "split": chosen.split,
        "callers": [caller.id for caller in chosen.callers],
        "turns": sum(len(caller.turns) for caller in chosen.callers),
        "questions": sum(len(caller.questions) for caller in chosen.callers),
        "embedder": embedder,
        "systems": {
            name: {
                "versions": dict(PEERS[name]().about.versions()) if name in PEERS else {},
                **{spoken: by_name[name].as_json() for spoken, by_name in marks.items() if name in by_name},
            }
            for name in first
        },
        "echoic over": {
            name: {
                spoken: {m: difference(by_name[OURS], by_name[name], m) for m in COMPARED}
                for spoken, by_name in marks.items()
                if name in by_name
            }
            for name in others
            if OURS in first
        },
        "left out": dict(left_out),
        "leaks": sum(by_name[OURS].leaks for by_name in marks.values() if OURS in by_name),
        "wall_s": round(wall_s),
    }


def _corpus_version() -> str:
    try:
        return version("echoic-corpus")
    except PackageNotFoundError:  # run from a checkout
        return "checkout"


__all__ = ["BEST", "OURS", "PEERS", "RULES_ALONE", "SYSTEMS", "Chosen", "measure_corpus"]
