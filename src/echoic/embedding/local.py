"""The default embedder: all-MiniLM-L6-v2 on this machine's CPU, without torch and without a network.

`Runner` is one thread that runs texts through the encoder, queries first. A person waits for a query; nobody
waits for a document. So documents run in small batches, a query stops the batch in progress (which is run
again later, in halves), and no batch is started while a recall ranks. Documents that were postponed too often
run to their end, ahead of queries. After some seconds without a query, two batches run in parallel.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, get_args

import numpy as np

from echoic.embedding.base import Embedded, Kind, Vectors, checked_texts
from echoic.embedding.encoder import DIMENSIONS, Abort, Aborted, CutText, Encoder, TokenIds
from echoic.embedding.weights import MODEL, ModelFiles, Variant, discard, find
from echoic.errors import EmbedderMissing, EmbedderUnavailable, InvalidInput, NotOpen
from echoic.partition import Pieces
from echoic.types import EmbeddingSpec

TEXTS_PER_RUN = 16
TOKENS_PER_RUN = 128
"""Tokens of a batch, padding included; only a longer text exceeds it, alone. Larger batches are no faster,
and lose more work when a query stops them."""
HOLD_S = 0.05
"""How long a recall may hold documents back: longer than ranking takes, and short in case it waits for its
store."""
PATIENCE: Final = 50
"""How often in a row documents are postponed, by a query and while its result is ranked. With continuous
queries, one in about 25 waits for documents."""

QUIET_S = 5.0
"""Seconds without a query after which documents run in parallel: a call may need the other processor."""
_PADDING_WORTH_A_RUN = 16
"""Tokens of padding that cost as much as starting another batch (2 ms, fp32, one core)."""


LEAST_CLOSENESS: Final = 0.97
"""The least cosine between the vectors of a question in fp32 and in int8."""
MOST_SHARE: Final = 0.8
"""The largest share of the fp32 time that a question may take in int8: without 8-bit dot products it is no
faster."""
_PROBES = ("What did I say about the dentist?", "When is my daughter's appointment at the clinic in Porto?")
_ROUNDS: Final = 3

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Submission:
    """One call of `submit`, with its result and its future."""

    vectors: Vectors
    left: int
    pieces: dict[int, Pieces] | None
    """The word pieces by row; None if not requested."""
    kind: Kind
    future: Future[Embedded] = field(default_factory=Future)

    def settle(self) -> None:
        made = self.pieces
        pieces = None if made is None else [made[row] for row in range(len(self.vectors))]
        _settle(self.future, Embedded(self.vectors, pieces))


@dataclass(slots=True, eq=False)
class _PendingText:
    """One text of a call."""

    call: _Submission
    row: int
    text: str
    tokens: CutText = field(default_factory=lambda: CutText([], ()))


class Runner:
    """Owns the thread. `submit` is thread-safe and never waits."""

    def __init__(
        self,
        encoder: Encoder,
        dimensions: int,
        texts_per_run: int = TEXTS_PER_RUN,
        side_by_side: int = 1,
        questions: Encoder | None = None,
    ) -> None:
        """Start the thread.

        At most `texts_per_run` texts share a run (1 if batching changes a vector), and at most `side_by_side`
        runs of documents are in progress without queries. `questions` runs queries, one at a time; None uses
        `encoder`.
        """
        self._encoder = encoder
        self._questions = questions
        self._dimensions = dimensions
        self._texts_per_run = texts_per_run
        # A SimpleQueue takes no lock that the event loop could wait for.
        self._inbox: SimpleQueue[tuple[Kind, list[_PendingText]] | None] = SimpleQueue()
        self._side_by_side = side_by_side
        self._aborts: Sequence[Abort] = ()
        """Handles of the document runs in progress."""
        self._finishing = threading.Lock()
        self._asked_at = float("-inf")
        self._holds: dict[object, float] = {}
        """The holds on documents, with their start."""
        self._awaits_release = False
        self._put_off = 0
        """How often in a row documents were postponed."""
        self._queries: deque[_PendingText] = deque()
        self._documents: deque[_PendingText] = deque()
        self._runs: deque[list[_PendingText]] = deque()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="echoic-embedding", daemon=True)
        self._thread.start()

    def submit(self, texts: Sequence[str], kind: Kind, *, pieces: bool = False) -> Future[Embedded]:
        """A future of the vectors of `texts` (at least one), and of their word pieces if requested.

        Cancelling the future drops what has not run yet. It fails with NotOpen if the runner is closed first,
        and with EmbedderUnavailable if the model fails.
        """
        vectors = np.empty((len(texts), self._dimensions), np.float32)
        call = _Submission(vectors, len(texts), {} if pieces else None, kind)
        waiting = [_PendingText(call, row, text) for row, text in enumerate(texts)]
        waiting.sort(key=lambda item: len(item.text))  # neighbours in length share runs: little padding
        self._inbox.put((kind, waiting))
        if kind == "query":
            self._asked_at = time.monotonic()
            for (
                running
            ) in self._aborts:  # after the query was added: the thread checks both in the other order
                running.set()
        if self._ended.is_set():  # the thread may have emptied the inbox for the last time already
            self._refuse_rest()
        return call.future

    def hold(self) -> Callable[[], None]:
        """Start no documents until the returned function is called, which may be repeated; at most for
        `HOLD_S`.

        For code that needs the processor for some milliseconds while a caller waits.
        """
        holder = object()
        self._holds[holder] = self._asked_at = time.monotonic()

        def release() -> None:
            self._holds.pop(holder, None)
            if self._awaits_release and not self._holds:
                self._inbox.put(("document", []))

        return release

    def close(self) -> None:
        """End the thread after its current run; pending texts fail with NotOpen. Blocks; repeatable."""
        self._inbox.put(None)
        self._thread.join()

    def abandon(self) -> None:
        """`close` on garbage collection or at exit.

        Waits for the thread, which must not be running the model when the interpreter exits; but not in an
        event loop, nor in the thread itself.
        """
        self._inbox.put(None)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if threading.current_thread() is not self._thread:
                self._thread.join()

    def _work(self) -> None:
        while self._collect():
            self._step()
        self._ended.set()
        self._refuse_rest()

    def _collect(self) -> bool:
        """Take everything out of the inbox, waiting while there is nothing to do; False once closed."""
        idle = not (self._queries or self._documents or self._runs)
        wait_s = None if idle else self._held_for_s()
        if wait_s:
            self._put_off += 1
        with contextlib.suppress(Empty):
            while True:
                arrived = self._inbox.get(block=wait_s != 0, timeout=wait_s)
                wait_s = 0
                if arrived is None:
                    return False
                kind, texts = arrived
                (self._queries if kind == "query" else self._documents).extend(texts)
        self._awaits_release = False
        return True

    def _held_for_s(self) -> float:
        """Seconds for which documents, if nothing else is pending, are still held back."""
        if self._queries or self._put_off >= PATIENCE:
            return 0
        self._awaits_release = True  # before checking: a release checks it afterwards
        since = tuple(self._holds.values())
        return max(0.0, max(since) + HOLD_S - time.monotonic()) if since else 0

    def _step(self) -> None:
        """One piece of work, small enough for a query that arrives now to wait for it."""
        documents = bool(self._runs or self._documents)
        overdue = documents and self._put_off >= PATIENCE
        if self._queries and not overdue:
            self._put_off += documents
            for batch in self._tokenised(self._queries):
                self._run(batch)
        elif self._runs:
            self._run_documents(abortable=not overdue)
        else:
            self._runs.extend(self._tokenised(self._documents))

    def _run_documents(self, *, abortable: bool) -> None:
        quiet = abortable and time.monotonic() - self._asked_at >= QUIET_S
        count = min(self._side_by_side if quiet else 1, len(self._runs))
        batches = [self._runs.popleft() for _ in range(count)] if abortable else [self._whole()]
        aborts = self._aborts = [self._encoder.abortable() for _ in batches] if abortable else []
        done: list[list[_PendingText]] = []

        def run(place: int) -> None:
            with contextlib.suppress(Aborted):
                # a query that arrived before this handle existed could not set it
                if not aborts or self._inbox.empty():
                    self._run(batches[place], aborts[place] if aborts else None)
                    done.append(batches[place])

        beside = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(1, len(batches))]
        for thread in beside:
            thread.start()
        run(0)
        for thread in beside:
            thread.join()
        self._aborts = ()
        # in halves: on a slow machine the next query would stop all of it again
        stopped = [half for batch in batches if batch not in done for half in _halves(batch)]
        self._runs.extendleft(reversed(stopped))
        if done:
            self._put_off = 0

    def _whole(self) -> list[_PendingText]:
        """The next run with following ones that fit: nothing stops it, so halves may be joined again."""
        run = self._runs.popleft()
        while self._runs:
            more = [*run, *self._runs[0]]
            longest = max(len(item.tokens.ids) for item in more)
            if len(more) > self._texts_per_run or len(more) * longest > TOKENS_PER_RUN:
                break
            run = more
            self._runs.popleft()
        return run

    def _tokenised(self, waiting: deque[_PendingText]) -> list[list[_PendingText]]:
        """The next texts of `waiting`, grouped into runs of similar length."""
        taken = [waiting.popleft() for _ in range(min(TEXTS_PER_RUN, len(waiting)))]
        ready = []
        for item in taken:
            if item.call.future.done():
                continue
            with _failing([item]):
                item.tokens = self._encoder.tokenise(item.text, item.call.kind)
                ready.append(item)
        ready.sort(key=lambda item: len(item.tokens.ids))
        asked = bool(ready) and ready[0].call.kind == "query"
        return list(_cut(ready, 1 if asked and self._questions else self._texts_per_run))

    def _run(self, batch: list[_PendingText], abort: Abort | None = None) -> None:
        wanted = [item for item in batch if not item.call.future.done()]
        if not wanted:
            return
        with _failing(wanted):
            hidden = any(item.call.pieces is not None for item in wanted)
            encoder = (
                self._encoder
                if self._questions is None or wanted[0].call.kind != "query"
                else self._questions
            )
            made = encoder.run([item.tokens.ids for item in wanted], hidden=hidden, abort=abort)
            for place, item in enumerate(wanted):
                item.call.vectors[item.row] = made.pooled[place]
                if item.call.pieces is not None and made.hidden is not None:
                    item.call.pieces[item.row] = self._encoder.pieces(made.hidden[place], item.tokens)
                with self._finishing:  # parallel runs may belong to one call
                    item.call.left -= 1
                    ready = not item.call.left
                if ready:
                    item.call.settle()

    def _refuse_rest(self) -> None:
        rest = [*self._queries, *self._documents, *(item for run in self._runs for item in run)]
        with contextlib.suppress(Empty):
            while True:
                arrived = self._inbox.get(block=False)
                rest += arrived[1] if arrived else []
        refusal = NotOpen("the embedder was closed while texts were waiting; open it again")
        for item in rest:
            _settle(item.call.future, refusal)


def _cut(texts: Sequence[_PendingText], most: int) -> Iterator[list[_PendingText]]:
    """`texts`, sorted by length, in runs of at most `most` texts and about `TOKENS_PER_RUN` tokens."""
    run: list[_PendingText] = []
    for item in texts:
        length = len(item.tokens.ids)
        full = len(run) == most or (len(run) + 1) * length > TOKENS_PER_RUN
        if run and (full or len(run) * (length - len(run[-1].tokens.ids)) > _PADDING_WORTH_A_RUN):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


def _halves(run: list[_PendingText]) -> list[list[_PendingText]]:
    """`run` in two, if it is of several texts."""
    middle = len(run) // 2
    return [run[:middle], run[middle:]] if middle else [run]


@contextlib.contextmanager
def _failing(texts: Iterable[_PendingText]) -> Iterator[None]:
    try:
        yield
    except Aborted:
        raise
    # The outermost loop of the thread: whatever goes wrong belongs to those who wait for these texts, and the
    # thread goes on for the others. Only the type is told, because a message may quote the text.
    except Exception as error:  # noqa: BLE001
        failure = EmbedderUnavailable(f"the local model failed: {type(error).__name__}")
        for item in texts:
            _settle(item.call.future, failure)


def _settle(future: Future[Embedded], outcome: Embedded | Exception) -> None:
    with contextlib.suppress(InvalidStateError):  # cancelled or failed already
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


def _compared(exact: Encoder, other: Encoder, texts: Sequence[TokenIds]) -> tuple[float, float]:
    """The least cosine between both encoders' vectors, and the other one's share of the time."""
    closeness, share = 1.0, 0.0
    for text in texts:
        # the fastest of several rounds: other load slows some of them
        (one, exact_s), (two, other_s) = (
            min((_timed(encoder, text) for _ in range(_ROUNDS)), key=itemgetter(1))
            for encoder in (exact, other)
        )
        closeness, share = min(closeness, float(one @ two)), max(share, other_s / exact_s)
    return closeness, share


def _timed(encoder: Encoder, text: TokenIds) -> tuple[Vectors, float]:
    began = time.perf_counter()
    return encoder.run([text]).pooled[0], time.perf_counter() - began


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEmbedder:
    """all-MiniLM-L6-v2 (Reimers and Gurevych 2019; 384 dimensions, English, the first 256 tokens of a text).

    Texts run in a thread of their own, so the event loop never waits; queries overtake documents. Several
    event loops may use it at once.
    """

    def __init__(
        self,
        model_dir: Path | None = None,
        variant: Variant = "fp32",
        cache_dir: Path | None = None,
        threads: int = 1,
        questions: str | None = None,
    ) -> None:
        """Reads nothing before `open()`.

        Args:
            model_dir: a directory with model.onnx and tokenizer.json, or with model.safetensors,
                tokenizer.json and config.json; None searches for the weights (see `weights.find`).
            variant: "fp32" is exact; "int8" is two to three times as fast, with vectors at a cosine of about
                0.99 to the exact ones, and differing slightly between kinds of CPU.
            cache_dir: the folder of converted weights; None is the user's cache directory.
            threads: how many threads one run may use.
            questions: "int8" embeds questions with 8-bit weights, while stored vectors stay fp32. If that is
                not faster here, or its vectors are inexact, `open()` uses fp32. None is `variant`.

        Raises:
            InvalidInput: an unknown variant, or fewer than one thread.
        """
        if variant not in get_args(Variant):
            raise InvalidInput(f"unknown variant {variant!r} of the local model: use one of fp32, int8")
        if questions not in {None, *get_args(Variant)}:
            raise InvalidInput(f"unknown variant {questions!r} for questions: use one of fp32, int8")
        if threads < 1:
            raise InvalidInput(f"threads must be at least 1, not {threads!r}")
        self._model_dir = model_dir
        self._variant: Variant = variant
        self._cache_dir = cache_dir
        self._threads = threads
        self._quickly = questions == "int8" and variant == "fp32"
        self.spec = EmbeddingSpec(f"local:{MODEL}:{variant}", DIMENSIONS)
        self._runner: Runner | None = None
        self._opening = threading.Lock()

    @property
    def semantic(self) -> bool:
        """True: vectors represent meaning."""
        return True

    async def open(self) -> None:
        """Find, convert (once on a machine, about 3 s) and load the weights (0.2 s).

        Raises:
            EmbedderMissing: packages or weights are not on this machine, or are not those of the model.
        """
        if self._runner is None:
            await asyncio.to_thread(self._load)

    async def aclose(self) -> None:
        """End the thread and release the model. Pending texts fail with NotOpen."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await asyncio.to_thread(runner.close)
            self._abandon.detach()

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Vectors of `texts`: float32 [len(texts), 384], unit length, in order.

        Cancelling it drops what has not been computed yet.

        Raises:
            InvalidInput: `texts` are not strings that can be encoded.
            NotOpen: before `open()`, or closed meanwhile.
            EmbedderUnavailable: the model failed.
        """
        return (await self._embed(texts, kind, pieces=False)).vectors

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """As `embed`, with the word pieces of each text, from the same run of the model."""
        return await self._embed(texts, kind, pieces=True)

    async def _embed(self, texts: Sequence[str], kind: Kind, *, pieces: bool) -> Embedded:
        checked = checked_texts(texts, kind)
        runner = self._runner
        if runner is None:
            raise NotOpen("the local embedder is not open: await its open() first")
        if not checked:
            return Embedded(np.empty((0, self.spec.dimensions), np.float32), [] if pieces else None)
        return await asyncio.wrap_future(runner.submit(checked, kind, pieces=pieces))

    def hold_documents(self) -> Callable[[], None]:
        """Start no documents until the returned function is called, at most for some 50 ms; queries go on."""
        return (lambda: None) if self._runner is None else self._runner.hold()

    def count_tokens(self, text: str) -> int | None:
        """How many word pieces `text` has in full; None before `open()`. Takes about 1 µs a word."""
        return None if self._runner is None else self._encoder_in_use.count(text)

    def _load(self) -> None:
        with self._opening:  # of two concurrent calls the second finds it done
            if self._runner is not None:
                return
            encoder = self._encoder_in_use = self._encoder()
            # Batching changes the int8 vector of a text (cosine down to 0.95 to the vector without),
            # because activations are scaled by the largest of the batch: each runs alone, a quarter slower.
            together = TEXTS_PER_RUN if self._variant == "fp32" else 1
            beside = 2 if self._threads == 1 and _processors() > 1 else 1
            questions = self._quicker(encoder) if self._quickly else None
            runner = Runner(encoder, self.spec.dimensions, together, beside, questions)
            # An embedder nobody closed must not leave a thread behind, nor a run under way at exit.
            self._abandon = weakref.finalize(self, runner.abandon)
            self._runner = runner

    def _encoder(self) -> Encoder:
        files = self._files()
        try:
            return self._loaded(files)
        except EmbedderMissing:
            if not files.made:
                raise
            discard(files)  # the cache may be damaged, and can be created again
            return self._loaded(self._files())

    def _loaded(self, files: ModelFiles) -> Encoder:
        return Encoder(files, self._variant, self._threads)

    def _files(self) -> ModelFiles:
        return find(self._model_dir, self._variant, self._cache_dir)

    def _quicker(self, exact: Encoder) -> Encoder | None:
        """The int8 encoder; None if it is not available, not faster, or too inexact here."""
        try:
            found = Encoder(find(self._model_dir, "int8", self._cache_dir), "int8", self._threads)
        except EmbedderMissing as missing:
            _log.warning("questions are embedded in fp32: %s", missing)
            return None
        texts = [exact.tokenise(text).ids for text in _PROBES]
        closeness, share = _compared(exact, found, texts)
        if closeness >= LEAST_CLOSENESS and share <= MOST_SHARE:
            return found
        _log.warning(
            "questions are embedded in fp32: with int8 they take %.2f of the time here, at a cosine of %.3f",
            share,
            closeness,
        )
        return None


class DefaultEmbedder(LocalEmbedder):
    """The local embedder used by default: it also opens without packages or weights, with a warning.

    Records then wait for their vectors, and a process that finds the weights embeds them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._missing = ""

    @property
    def semantic(self) -> bool:
        """Whether vectors represent meaning: False once it was opened without weights."""
        return not self._missing

    async def open(self) -> None:
        """Load the weights, or warn if they are missing."""
        try:
            await super().open()
        except EmbedderMissing as missing:
            self._missing = str(missing)
            warnings.warn(
                "Echoic searches by words and sounds only, and embeds what is written once the local "
                f"embedder can be opened: {missing}",
                stacklevel=2,
            )
        else:
            self._missing = ""

    async def _embed(self, texts: Sequence[str], kind: Kind, *, pieces: bool) -> Embedded:
        if self._missing:
            raise EmbedderMissing(self._missing)
        return await super()._embed(texts, kind, pieces=pieces)
