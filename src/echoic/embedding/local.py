"""The default embedder: all-MiniLM-L6-v2 on this machine's CPU, without torch and without a network."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from echoic.embedding.base import Embedded, EmbeddingSpec, Kind, Vectors, checked_texts
from echoic.embedding.encoder import DIMENSIONS, Encoder
from echoic.embedding.runner import TEXTS_PER_RUN, Runner
from echoic.embedding.weights import MODEL, ModelFiles, Variant, discard, find
from echoic.errors import EmbedderMissing, InvalidInput, NotOpen


class LocalEmbedder:
    """all-MiniLM-L6-v2 (Reimers and Gurevych 2019; 384 dimensions, English, the first 256 tokens of a text).

    Texts run on one thread of their own, so the event loop never waits; queries overtake documents. May be
    used from several event loops at once.
    """

    def __init__(
        self,
        model_dir: Path | None = None,
        variant: Variant = "fp32",
        cache_dir: Path | None = None,
        threads: int = 1,
    ) -> None:
        """Nothing is read before `open()`.

        Args:
            model_dir: a directory with model.onnx and tokenizer.json, or with model.safetensors,
                tokenizer.json and config.json; None finds the weights by itself (see `weights.find`).
            variant: "fp32" is exact; "int8" is two to three times as fast, with vectors at a cosine of about
                0.99 to the exact ones, and differing slightly between kinds of CPU.
            cache_dir: where converted weights are kept; None is the user's cache directory.
            threads: how many threads one run may use.

        Raises:
            InvalidInput: an unknown variant, or fewer than one thread.
        """
        if variant not in get_args(Variant):
            raise InvalidInput(f"unknown variant {variant!r} of the local model: use one of fp32, int8")
        if threads < 1:
            raise InvalidInput(f"threads must be at least 1, not {threads!r}")
        self._model_dir = model_dir
        self._variant: Variant = variant
        self._cache_dir = cache_dir
        self._threads = threads
        self._spec = EmbeddingSpec(f"local:{MODEL}:{variant}", DIMENSIONS)
        self._runner: Runner | None = None
        self._opening = threading.Lock()

    @property
    def spec(self) -> EmbeddingSpec:
        """Model, variant and 384 dimensions."""
        return self._spec

    @property
    def semantic(self) -> bool:
        """True: it knows meaning."""
        return True

    async def open(self) -> None:
        """Find, convert (once on a machine, about 3 s) and load the weights (0.2 s).

        Raises:
            EmbedderMissing: packages or weights are not on this machine, or are not those of the model.
        """
        if self._runner is None:
            await asyncio.to_thread(self._load)

    async def aclose(self) -> None:
        """End the thread and let go of the model. Texts still waiting fail with NotOpen."""
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
        """`embed`, with the word pieces of each text. The same run of the model makes both."""
        return await self._embed(texts, kind, pieces=True)

    async def _embed(self, texts: Sequence[str], kind: Kind, *, pieces: bool) -> Embedded:
        checked = checked_texts(texts, kind)
        runner = self._runner
        if runner is None:
            raise NotOpen("the local embedder is not open: await its open() first")
        if not checked:
            return Embedded(np.empty((0, DIMENSIONS), np.float32), [] if pieces else None)
        return await asyncio.wrap_future(runner.submit(checked, kind, pieces=pieces))

    def hold_documents(self) -> Callable[[], None]:
        """Begin no documents until what is returned is called, for some 50 ms at most; queries go on."""
        return (lambda: None) if self._runner is None else self._runner.hold()

    def count_tokens(self, text: str) -> int | None:
        """How many word pieces `text` has, all of them; None before `open()`. Takes about 10 µs a word."""
        return None if self._runner is None else self._encoder_in_use.count(text)

    def _load(self) -> None:
        with self._opening:  # of two that open at once the second finds it done
            if self._runner is not None:
                return
            encoder = self._encoder_in_use = self._encoder()
            # Company in a run changes the int8 vector of a text (cosine down to 0.95 to itself alone),
            # because activations are scaled by the largest of the batch: each runs alone, a quarter slower.
            runner = Runner(encoder, DIMENSIONS, TEXTS_PER_RUN if self._variant == "fp32" else 1)
            # An embedder nobody closed must not leave a thread behind, nor a run under way at exit.
            self._abandon = weakref.finalize(self, runner.abandon)
            self._runner = runner

    def _encoder(self) -> Encoder:
        files = self._files()
        try:
            return Encoder(files, self._variant, self._threads)
        except EmbedderMissing:
            if not files.made:
                raise
            discard(files)  # a cache can be damaged; what was made from good weights can be made again
            return Encoder(self._files(), self._variant, self._threads)

    def _files(self) -> ModelFiles:
        return find(self._model_dir, self._variant, self._cache_dir)


__all__ = ["LocalEmbedder"]
