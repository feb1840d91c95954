"""From an encoder's token vectors to the stored word pieces: projected to a few axes, unit length.

The axes are the first right singular vectors, not centred, of token vectors of lines of random words, made by
scripts/axes.py: they contain no conversation. MiniLM's tokens use far fewer directions than it has
dimensions.

`WordPieces` cuts a text into the pieces of a BERT vocabulary (Devlin et al. 2018), as an uncased
tokenizer.json describes. "[SEP]" in a text is a word in brackets, not a mark.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category, normalize

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import Kind, Vectors, unit
from echoic.embedding.weights import MODEL, ModelFiles, Variant
from echoic.errors import EmbedderMissing
from echoic.partition import AXES, Pieces

_LONGEST_WORD = 100  # characters; a longer word is one unknown piece
_INSIDE = "##"  # prefix of a piece that does not begin its word
_ASCII = re.compile(r"[\t\n\r -~]*")
_ASCII_WORD = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")  # or one sign of punctuation
_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


class Piece(NamedTuple):
    """A word piece."""

    id: int
    span: tuple[int, int]
    """The span of the text that it covers."""


class _Folded(dict[str, str]):
    """The folded form of a character: lower case without accents, a blank, or nothing. Caches common ones."""

    def __missing__(self, character: str) -> str:
        folded = _fold(character)
        if ord(character) < 0x250:
            self[character] = folded
        return folded


def _fold(character: str) -> str:
    if character in "\t\n\r":
        return " "
    if character == "\ufffd" or category(character) in {"Cc", "Cf", "Co", "Cs"}:
        return ""
    if character.isspace():
        return " "
    bare = "".join(part for part in normalize("NFD", character) if category(part) != "Mn")
    lower = "".join(part.lower() for part in bare)
    return f" {lower} " if any(low <= ord(character) <= high for low, high in _IDEOGRAPHS) else lower


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or category(character)[0] == "P"


class WordPieces:
    """The pieces of one vocabulary. Thread-safe."""

    def __init__(self, file: Path) -> None:
        """Raises ValueError if `file` is no tokenizer.json of an uncased WordPiece model."""
        try:
            stated = json.loads(file.read_text(encoding="utf-8"))
            model, normalizer = stated["model"], stated["normalizer"]
            if (model["type"], normalizer["type"], normalizer["lowercase"]) != (
                "WordPiece",
                "BertNormalizer",
                True,
            ):
                raise ValueError("it is not of an uncased WordPiece model")
            self._vocabulary: dict[str, int] = model["vocab"]
            self._unknown = self._vocabulary[model["unk_token"]]
            self.start, self.end = self._vocabulary["[CLS]"], self._vocabulary["[SEP]"]
        except (KeyError, TypeError) as error:
            raise ValueError(f"it does not say {error}") from error
        self._folded = _Folded()

    def words(self) -> list[str]:
        """Every piece that may begin a word, in the order of their numbers."""
        return [
            piece
            for piece in sorted(self._vocabulary, key=self._vocabulary.__getitem__)
            if piece[:2] != _INSIDE
        ]

    def number(self, piece: str) -> int:
        """The number of `piece`, which may be a mark; raises KeyError if it has none."""
        return self._vocabulary[piece]

    def cut(self, text: str) -> Iterator[Piece]:
        """The pieces of `text` in order, created lazily, without [CLS] and [SEP]."""
        word: list[str] = []
        places: list[int] = []
        for place, character in enumerate(text):
            for part in self._folded[character]:
                alone = not part.isalnum() and _is_punctuation(part)
                if part != " " and not alone:
                    word.append(part)
                    places.append(place)
                    continue
                yield from self._pieces("".join(word), places)
                word, places = [], []
                if alone:
                    yield from self._pieces(part, [place])
        yield from self._pieces("".join(word), places)

    def count(self, text: str) -> int:
        """How many pieces `text` has. Words of ASCII are found without looking at each character."""
        if _ASCII.fullmatch(text):
            words = _ASCII_WORD.findall(text.lower())
            known = self._vocabulary
            return sum(1 if word in known else len(self._pieces(word, range(len(word)))) for word in words)
        if " " in text:
            return sum(map(self.count, text.split(" ")))
        return sum(1 for _ in self.cut(text))

    def _pieces(self, word: str, places: Sequence[int]) -> list[Piece]:
        found: list[Piece] = []
        start = 0
        while start < len(word) <= _LONGEST_WORD:
            # the longest piece first
            for end in range(len(word), start, -1):
                number = self._vocabulary.get((_INSIDE if start else "") + word[start:end])
                if number is not None:
                    found.append(Piece(number, (places[start], places[end - 1] + 1)))
                    start = end
                    break
            else:
                break
        if word and start < len(word):
            return [Piece(self._unknown, (places[0], places[-1] + 1))]
        return found


@cache
def axes() -> NDArray[np.float32]:
    """[dimensions, AXES] The shipped axes of all-MiniLM-L6-v2, for its fp32 and int8 variants alike."""
    with (files("echoic.embedding") / "axes.npy").open("rb") as stream:
        found: NDArray[np.float32] = np.load(stream, allow_pickle=False).astype(np.float32)
    assert found.shape[1] == AXES
    return found


def pieces_of(hidden: NDArray[np.float32], spans: tuple[tuple[int, int], ...]) -> Pieces:
    """The word pieces of encoder outputs [pieces, dimensions] without [CLS] and [SEP]."""
    # a copy, since a view would keep the whole batch in memory
    return Pieces(axes=unit(hidden @ axes()), hidden=hidden.copy(), spans=spans)


if TYPE_CHECKING:
    from onnxruntime import InferenceSession, RunOptions

DIMENSIONS = 384
MAX_TOKENS = 256
"""Tokens of a text that are read, [CLS] and [SEP] included: the length the model was trained for."""

_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_POOLED = "sentence_embedding"
_HIDDEN = ("token_embeddings", "last_hidden_state")  # our name, and that of the Hugging Face exporters

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
    """Stops one run from any thread: it raises `Aborted` between two operators of the model."""

    def __init__(self, options: RunOptions) -> None:
        self.options = options

    def set(self) -> None:
        self.options.terminate = True

    def is_set(self) -> bool:
        return bool(self.options.terminate)


class CutText(NamedTuple):
    """A tokenised text."""

    ids: TokenIds
    """[CLS] and [SEP] included."""
    spans: tuple[tuple[int, int], ...]
    """The span of the text of each word piece, without [CLS] and [SEP]."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The model's output for a batch of texts."""

    pooled: Vectors
    """One vector for each text: float32 [batch, 384], unit length."""
    hidden: NDArray[np.float32] | None
    """One vector for each token: float32 [batch, tokens, 384], of the last layer; None unless requested. Only
    the first len(ids) of a text's row are its own; the rest is padding."""


class Encoder:
    """A loaded model. Thread-safe."""

    _pools = True
    """Whether the graph's own pooled output is the vector of a text."""

    def __init__(self, files: ModelFiles, variant: Variant, threads: int) -> None:
        """Load and check the model; EmbedderMissing without packages or files, or for another model."""
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
                f"{files.onnx} is not a sentence encoder: it takes {sorted(self._inputs)} and gives "
                f"{sorted(self._outputs)}; one of {', '.join(_HIDDEN)} is needed"
            )
        self._recognise(files, variant)

    def tokenise(self, text: str, kind: Kind = "query") -> CutText:
        """The first `MAX_TOKENS` tokens of `text`, [CLS] and [SEP] included."""
        del kind  # this model treats both kinds alike
        return self._cut(text, MAX_TOKENS)

    def _cut(self, text: str, most: int) -> CutText:
        cut = list(islice(self._tokenizer.cut(text), most - _MARKS))
        ids = [self._tokenizer.start, *(piece.id for piece in cut), self._tokenizer.end]
        return CutText(ids, tuple(piece.span for piece in cut))

    def count(self, text: str) -> int:
        """How many word pieces `text` has in full. Thread-safe."""
        return self._tokenizer.count(text)

    def pieces(self, hidden: NDArray[np.float32], tokens: CutText) -> Pieces:
        """The word pieces of a text, from its row of `Encoded.hidden`."""
        return pieces_of(hidden[1 : len(tokens.ids) - 1], tokens.spans)

    def abortable(self) -> Abort:
        """A handle that stops the run it is passed to."""
        options = self._run_options()
        options.log_severity_level = 4  # do not print an error when it is stopped
        return Abort(options)

    def run(self, batch: Sequence[TokenIds], *, hidden: bool = False, abort: Abort | None = None) -> Encoded:
        """Encode token ids by text, with token vectors if `hidden`; raises Aborted once `abort` is set."""
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
        # A file of another model would give plausible vectors that mean something else, under this
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
