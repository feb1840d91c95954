"""From an encoder's token vectors to the word pieces that are kept: projected to a few axes, unit length.

The axes are the first right singular vectors, not centred, of token vectors of lines of random words, which
scripts/axes.py made: no conversation is in them. MiniLM's tokens live in far fewer directions than it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import Kind, Vectors, unit
from echoic.embedding.weights import MODEL, ModelFiles, Variant
from echoic.embedding.word_pieces import WordPieces
from echoic.errors import EmbedderMissing
from echoic.partition import AXES, Pieces


@cache
def axes() -> NDArray[np.float32]:
    """[dimensions, AXES] The shipped axes of all-MiniLM-L6-v2, for its fp32 and int8 variants alike."""
    with (files("echoic.embedding") / "axes.npy").open("rb") as stream:
        found: NDArray[np.float32] = np.load(stream, allow_pickle=False).astype(np.float32)
    assert found.shape[1] == AXES
    return found


def pieces_of(hidden: NDArray[np.float32], spans: tuple[tuple[int, int], ...]) -> Pieces:
    """The word pieces of one text.

    Args:
        hidden: [pieces, dimensions], as they leave the encoder, without those of [CLS] and [SEP].
        spans: the characters each stands for.
    """
    # a copy: a view would keep the whole batch in memory
    return Pieces(axes=unit(hidden @ axes()), hidden=hidden.copy(), spans=spans)


if TYPE_CHECKING:
    from onnxruntime import InferenceSession, RunOptions

DIMENSIONS = 384
MAX_TOKENS = 256
"""The tokens of a text that are read, [CLS] and [SEP] included: the length the model was trained for."""

_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_POOLED = "sentence_embedding"
_HIDDEN = ("token_embeddings", "last_hidden_state")  # ours, and the name the Hugging Face exporters use

_MARKS = 2  # [CLS] and [SEP]

_PROBE = "Ana's sister moved to Porto in March and keeps two dogs."
# The first components of the probe's vector, computed once from the published weights in float32.
_PROBE_VECTOR = np.fromstring(
    "0.0323 -0.0500 0.0369 0.0416 -0.0048 0.0568 0.0008 -0.0574 "
    "-0.0024 0.0588 0.0976 -0.0838 0.0308 -0.0021 -0.0465 0.0825",
    dtype=np.float32,
    sep=" ",
)
# fp32 sums in another order on another CPU; int8 rounds, and coarser on CPUs without 8-bit dot products.
_PROBE_TOLERANCE: dict[Variant, float] = {"fp32": 1e-3, "int8": 0.04}

TokenIds = list[int]


class Aborted(Exception):
    """A run was stopped by its `Abort`."""


class Abort:
    """Stops one run, from any thread: it raises `Aborted` between two operators of the model."""

    def __init__(self, options: RunOptions) -> None:
        self.options = options

    def set(self) -> None:
        """Stop it."""
        self.options.terminate = True

    def is_set(self) -> bool:
        """Whether it is to stop."""
        return bool(self.options.terminate)


class CutText(NamedTuple):
    """A text cut up."""

    ids: TokenIds
    """[CLS] and [SEP] included."""
    spans: tuple[tuple[int, int], ...]
    """The characters of the text that each word piece stands for, without [CLS] and [SEP]."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """What one run of the model gives for a batch of texts."""

    pooled: Vectors
    """One vector a text: float32 [batch, 384], unit length."""
    hidden: NDArray[np.float32] | None
    """One vector a token: float32 [batch, tokens, 384], as they leave the last layer; None unless asked for.
    Of a text's row only the first len(ids) are its own; the rest is padding."""


class Encoder:
    """A loaded model. Any threads may use it."""

    _pools = True
    """Whether the graph's own pooled output is the vector of a text."""

    def __init__(self, files: ModelFiles, variant: Variant, threads: int) -> None:
        """Load the model and make sure that it is the one it should be.

        Args:
            files: as `weights.find` found them.
            variant: what `files.onnx` holds.
            threads: how many threads one run may use.

        Raises:
            EmbedderMissing: packages are not installed, a file cannot be read, or it is another model.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise EmbedderMissing(
                f'embedder "local" needs a package that is not installed ({error.name}): '
                "pip install 'echoic[local]'"
            ) from error
        self._tokenizer = _load_tokenizer(files)
        self._session = _load_session(onnxruntime, files, threads)
        self._run_options = onnxruntime.RunOptions
        self._inputs = {given.name for given in self._session.get_inputs()}
        self._outputs = {given.name for given in self._session.get_outputs()}
        self._hidden = next((name for name in _HIDDEN if name in self._outputs), None)
        if self._hidden is None or not self._inputs <= _INPUTS:
            raise EmbedderMissing(
                f"{files.onnx} is no sentence encoder: it takes {sorted(self._inputs)} and gives "
                f"{sorted(self._outputs)}; one of {', '.join(_HIDDEN)} is needed"
            )
        self._recognise(files, variant)

    def tokenise(self, text: str, kind: Kind = "query") -> CutText:
        """`text` cut up, at most `MAX_TOKENS`, [CLS] and [SEP] included. No more of it is read."""
        del kind  # this model reads both alike
        return self._cut(text, MAX_TOKENS)

    def _cut(self, text: str, most: int) -> CutText:
        cut = list(islice(self._tokenizer.cut(text), most - _MARKS))
        ids = [self._tokenizer.start, *(piece.id for piece in cut), self._tokenizer.end]
        return CutText(ids, tuple(piece.span for piece in cut))

    def count(self, text: str) -> int:
        """How many word pieces `text` has, all of them. Any thread may ask."""
        return sum(1 for _ in self._tokenizer.cut(text))

    def pieces(self, hidden: NDArray[np.float32], tokens: CutText) -> Pieces:
        """The word pieces of a text, from its row of `Encoded.hidden`."""
        return pieces_of(hidden[1 : len(tokens.ids) - 1], tokens.spans)

    def abortable(self) -> Abort:
        """What stops a run it is given to."""
        options = self._run_options()
        options.log_severity_level = 4  # that it was stopped is no error to be printed
        return Abort(options)

    def run(self, batch: Sequence[TokenIds], *, hidden: bool = False, abort: Abort | None = None) -> Encoded:
        """Encode `batch`, shorter texts padded to the longest.

        Args:
            batch: token ids by text.
            hidden: whether the token vectors are asked for too.
            abort: stops the run.

        Raises:
            Aborted: `abort` was set before the run was over.
        """
        longest = max(map(len, batch))
        ids = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(batch):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = [_POOLED] if _POOLED in self._outputs and self._pools else []
        if hidden or not wanted:
            wanted.append(str(self._hidden))
        try:
            results = self._session.run(
                wanted, {name: feed[name] for name in self._inputs}, abort and abort.options
            )
        except Exception as error:  # its errors share no base below this
            if abort is not None and abort.is_set():
                raise Aborted from error
            raise
        found = dict(zip(wanted, results, strict=True))
        tokens = found.get(str(self._hidden))
        pooled = found[_POOLED] if _POOLED in found else self._pooled(tokens, mask)
        return Encoded(unit(pooled), tokens if hidden else None)

    def _pooled(self, hidden: Any, mask: NDArray[np.int64]) -> Vectors:
        return _mean(hidden, mask)

    def _recognise(self, files: ModelFiles, variant: Variant) -> None:
        # A file of another model would give vectors that look right and mean something else, under this
        # model's name. The same run also makes the first real query as fast as the others.
        vector = self.run([self.tokenise(_PROBE).ids]).pooled[0]
        if vector.shape != (DIMENSIONS,):
            raise EmbedderMissing(f"{files.onnx} makes {vector.size} dimensions: it is not {MODEL}")
        apart = float(np.abs(vector[: _PROBE_VECTOR.size] - _PROBE_VECTOR).max())
        if not apart <= _PROBE_TOLERANCE[variant]:
            raise EmbedderMissing(
                f"{files.onnx} is not {MODEL} in {variant}: the vector of a known sentence is off by "
                f"{apart:.4f}, {_PROBE_TOLERANCE[variant]} at most. Vectors of two models are never mixed."
            )


def _mean(hidden: Any, mask: NDArray[np.int64]) -> Vectors:
    present = mask[:, :, None].astype(np.float32)
    mean: Vectors = (hidden * present).sum(axis=1) / present.sum(axis=1)
    return mean


def _load_tokenizer(files: ModelFiles) -> WordPieces:
    try:
        return WordPieces(files.tokenizer)
    except (OSError, ValueError) as error:
        raise EmbedderMissing(f"{files.tokenizer} cannot be read as a tokenizer: {error}") from error


def _load_session(onnxruntime: Any, files: ModelFiles, threads: int) -> InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Waiting threads sleep instead of turning: between two queries of a call lie seconds.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Just as fast without its own pool, which would keep the memory of the largest run for good.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3  # errors; its warnings are about optimisations
    try:
        return onnxruntime.InferenceSession(str(files.onnx), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors share no base below this
        raise EmbedderMissing(f"{files.onnx} cannot be loaded as an ONNX model: {error}") from error
