"""One thread that runs texts through an encoder, queries first. It knows order, not models or files.

A person waits for a query; nobody waits for a document. So documents run in small pieces, and whatever
queries have arrived meanwhile run, together, before the next piece.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import Embedded, Kind, Vectors
from echoic.embedding.encoder import Encoded, TokenIds, Tokens
from echoic.errors import EmbedderUnavailable, NotOpen
from echoic.partition import Pieces

TEXTS_PER_RUN = 16
TOKENS_PER_RUN = 256
"""Padding included. As much as one text of full length, which cannot be cut: 0.1 s on one core. Larger runs
would make queries wait longer and are no faster."""

_PADDING_WORTH_A_RUN = 16
"""Tokens of padding that take about as long as starting a run of its own (2 ms, fp32, one core)."""


class SupportsRun(Protocol):
    """What the runner asks of an encoder; called by one thread at a time."""

    def tokenise(self, text: str) -> Tokens:
        """One text cut up, never into nothing."""
        ...

    def run(self, batch: Sequence[TokenIds], *, hidden: bool = False) -> Encoded:
        """The vectors of a batch."""
        ...

    def pieces(self, hidden: NDArray[np.float32], tokens: Tokens) -> Pieces:
        """The word pieces of a text, from its row of `Encoded.hidden`."""
        ...


@dataclass(slots=True, eq=False)
class _Call:
    """One call of `submit`: where its vectors go, and who waits for them."""

    vectors: Vectors
    left: int
    pieces: dict[int, Pieces] | None
    """By row; None where nobody asked for them."""
    future: Future[Embedded] = field(default_factory=Future)

    def settle(self) -> None:
        made = self.pieces
        pieces = None if made is None else [made[row] for row in range(len(self.vectors))]
        _settle(self.future, Embedded(self.vectors, pieces))


@dataclass(slots=True, eq=False)
class _Text:
    """One text of a call."""

    call: _Call
    row: int
    text: str
    tokens: Tokens = field(default_factory=lambda: Tokens([], ()))


class Runner:
    """Owns the thread. `submit` may be called from any thread and never waits."""

    def __init__(self, encoder: SupportsRun, dimensions: int, texts_per_run: int = TEXTS_PER_RUN) -> None:
        """Start the thread.

        Args:
            encoder: what runs the texts.
            dimensions: of the vectors it makes.
            texts_per_run: how many texts may share a run; 1 where company changes a vector.
        """
        self._encoder = encoder
        self._dimensions = dimensions
        self._texts_per_run = texts_per_run
        # A SimpleQueue takes no lock that the event loop could wait for.
        self._inbox: SimpleQueue[tuple[Kind, list[_Text]] | None] = SimpleQueue()
        self._queries: deque[_Text] = deque()
        self._documents: deque[_Text] = deque()
        self._runs: deque[list[_Text]] = deque()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="echoic-embedding", daemon=True)
        self._thread.start()

    def submit(self, texts: Sequence[str], kind: Kind, *, pieces: bool = False) -> Future[Embedded]:
        """What becomes of `texts` (at least one), in time: vectors, and word pieces if they are asked for.

        Cancelling the future drops what has not run yet. It fails with NotOpen when the runner is closed
        first and with EmbedderUnavailable when the model fails.
        """
        vectors = np.empty((len(texts), self._dimensions), np.float32)
        call = _Call(vectors, len(texts), {} if pieces else None)
        waiting = [_Text(call, row, text) for row, text in enumerate(texts)]
        waiting.sort(key=lambda item: len(item.text))  # neighbours in length share runs: little padding
        self._inbox.put((kind, waiting))
        if self._ended.is_set():  # the thread may have looked into the inbox for the last time before
            self._refuse_rest()
        return call.future

    def close(self) -> None:
        """End the thread after its current run; what still waits fails with NotOpen. Blocks; repeatable."""
        self._inbox.put(None)
        self._thread.join()

    def abandon(self) -> None:
        """`close` for when nobody called it: by the garbage collector or at exit.

        Waits for the thread, which must not be in a run while the interpreter goes; but not where an event
        loop would wait with it, nor in the thread itself.
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
        """Take everything out of the inbox, waiting while there is nothing to do; False when closed."""
        idle = not (self._queries or self._documents or self._runs)
        with contextlib.suppress(Empty):
            while True:
                arrived = self._inbox.get(block=idle)
                idle = False
                if arrived is None:
                    return False
                kind, texts = arrived
                (self._queries if kind == "query" else self._documents).extend(texts)
        return True

    def _step(self) -> None:
        """One piece of work, small enough that a query arriving now may wait for it."""
        if self._queries:
            for batch in self._tokenised(self._queries):
                self._run(batch)
        elif self._runs:
            self._run(self._runs.popleft())
        else:
            self._runs.extend(self._tokenised(self._documents))

    def _tokenised(self, waiting: deque[_Text]) -> list[list[_Text]]:
        """The next texts of `waiting`, cut into runs of similar length."""
        taken = [waiting.popleft() for _ in range(min(TEXTS_PER_RUN, len(waiting)))]
        ready = []
        for item in taken:
            if item.call.future.done():
                continue
            with _failing([item]):
                item.tokens = self._encoder.tokenise(item.text)
                ready.append(item)
        ready.sort(key=lambda item: len(item.tokens.ids))
        return list(_cut(ready, self._texts_per_run))

    def _run(self, batch: list[_Text]) -> None:
        wanted = [item for item in batch if not item.call.future.done()]
        if not wanted:
            return
        with _failing(wanted):
            hidden = any(item.call.pieces is not None for item in wanted)
            made = self._encoder.run([item.tokens.ids for item in wanted], hidden=hidden)
            for place, item in enumerate(wanted):
                item.call.vectors[item.row] = made.pooled[place]
                if item.call.pieces is not None and made.hidden is not None:
                    item.call.pieces[item.row] = self._encoder.pieces(made.hidden[place], item.tokens)
                item.call.left -= 1
                if not item.call.left:
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


def _cut(texts: Sequence[_Text], most: int) -> Iterator[list[_Text]]:
    """`texts`, sorted by length, in runs of at most `most` texts and about `TOKENS_PER_RUN` tokens."""
    run: list[_Text] = []
    for item in texts:
        length = len(item.tokens.ids)
        full = len(run) == most or (len(run) + 1) * length > TOKENS_PER_RUN
        if run and (full or len(run) * (length - len(run[-1].tokens.ids)) > _PADDING_WORTH_A_RUN):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


@contextlib.contextmanager
def _failing(texts: Iterable[_Text]) -> Iterator[None]:
    try:
        yield
    # The outermost loop of the thread: whatever goes wrong belongs to those who wait for these texts, and the
    # thread goes on for the others. Only the type is told, because a message may quote the text.
    except Exception as error:  # noqa: BLE001
        failure = EmbedderUnavailable(f"the local model failed: {type(error).__name__}")
        for item in texts:
            _settle(item.call.future, failure)


def _settle(future: Future[Embedded], outcome: Embedded | Exception) -> None:
    with contextlib.suppress(InvalidStateError):  # cancelled or already failed: nobody waits for it
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


__all__ = ["TEXTS_PER_RUN", "TOKENS_PER_RUN", "Runner", "SupportsRun"]
