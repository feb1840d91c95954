"""Your own encoders: BERT models as published, from a folder or from the model hub.

A model's own files are read: how its token vectors become one (`modules.json`, `1_Pooling`), which text
precedes a question and a document (`config_sentence_transformers.json`), how much of a text is read, and for
ColBERT its projection and marks (`artifact.metadata`, or PyLate's `1_Dense`). A text has one vector, and each
of its word pieces `AXES` numbers: the directions in which this encoder's pieces of random words differ most.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from echoic.embedding.base import Kind, unit
from echoic.embedding.encoder import CutText, Encoder, TokenIds
from echoic.embedding.local import LocalEmbedder
from echoic.embedding.onnx_graph import read_safetensors
from echoic.embedding.weights import ModelFiles, PublishedModel, Variant
from echoic.errors import EmbedderMissing, InvalidInput
from echoic.partition import AXES, Pieces
from echoic.types import EmbeddingSpec

Pooling = Literal["mean", "cls", "tokens"]
"""How token vectors become one: their mean, that of [CLS], or the mean of ColBERT's projected ones."""

_FOR_SEARCH: Final = "Represent this sentence for searching relevant passages: "
_PREFIXES: Final = (
    (re.compile(r"\be5-"), ("query: ", "passage: ")),
    (re.compile(r"\bbge-(?:small|base|large)-en"), (_FOR_SEARCH, "")),
)
"""Prefixes of models that state them only in a README."""
_POOLINGS: Final[Mapping[str, Pooling]] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
}
_TOKENS: Final = 512
_LINES, _WORDS = 128, 20
"""Lines of random words, and words in each, used to find the axes."""


@dataclass(frozen=True, slots=True)
class Described:
    """The description of a model in its files."""

    dimensions: int
    pooling: Pooling
    tokens: int
    """Tokens of a text that are read, marks included."""
    query_prefix: str = ""
    document_prefix: str = ""
    query_mark: str = ""
    """The token after [CLS] of a question, in ColBERT."""
    document_mark: str = ""

    @classmethod
    def read(cls, model: PublishedModel, given: Mapping[str, str]) -> Described:
        """The description in a model's files, overridden by `given`; EmbedderMissing if unsupported."""
        config = model.json("config.json")
        if not config:
            raise EmbedderMissing(f"{model.name} has no config.json: it is not a published model")
        sentences, most = (
            model.json("config_sentence_transformers.json"),
            config.get("max_position_embeddings"),
        )
        colbert = model.json("artifact.metadata")
        dense = model.json("1_Dense/config.json")
        length = model.json("sentence_bert_config.json").get("max_seq_length")
        length = length or colbert.get("doc_maxlen") or sentences.get("document_length")
        prompts = sentences.get("prompts") or {}
        known = next((found for pattern, found in _PREFIXES if pattern.search(model.name)), ("", ""))
        late = bool(colbert) or bool(dense)
        fields: dict[str, Any] = {
            "dimensions": colbert.get("dim") or dense.get("out_features") or config.get("hidden_size"),
            "pooling": given.get("pooling") or ("tokens" if late else _pooling(model)),
            "tokens": min(int(value) for value in (length, most, _TOKENS) if value),
        }
        if late:
            fields["query_mark"] = (
                colbert.get("query_token_id") or str(sentences.get("query_prefix", "")).strip()
            )
            fields["document_mark"] = (
                colbert.get("doc_token_id") or str(sentences.get("document_prefix", "")).strip()
            )
        else:
            query = prompts.get("query") or known[0]
            document = prompts.get("document") or prompts.get("passage") or known[1]
            fields["query_prefix"] = given.get("query_prefix", query)
            fields["document_prefix"] = given.get("document_prefix", document)
        return cls(**fields)

    def fingerprint(self, weights: str) -> str:
        """Eight digits that change with anything that vectors depend on."""
        told = json.dumps({**asdict(self), "weights": weights}, sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:8]


def _pooling(model: PublishedModel) -> Pooling:
    stated = model.json("1_Pooling/config.json")
    if not stated:
        return "cls" if re.search(r"\bbge-", model.name) else "mean"
    wanted = {name for name, value in stated.items() if name.startswith("pooling_mode_") and value is True}
    if len(wanted) != 1 or not wanted <= _POOLINGS.keys():
        raise EmbedderMissing(
            f"{model.name} pools by {', '.join(sorted(wanted)) or 'nothing'}: mean and cls are known"
        )
    return _POOLINGS[wanted.pop()]


class CustomEncoder(Encoder):
    """A published encoder, used as its files describe."""

    _pools = False

    def __init__(
        self, files: ModelFiles, variant: Variant, threads: int, model: PublishedModel, described: Described
    ) -> None:
        """Load the model; raises EmbedderMissing as `Encoder`, or if its tensors do not match its files."""
        self._about, self._name = described, model.name
        self._projection = _projection(model) if described.pooling == "tokens" else None
        self._marks: dict[Kind, TokenIds] = {"query": [], "document": []}
        super().__init__(files, variant, threads)
        try:
            self._marks = {
                "query": self._mark(described.query_mark),
                "document": self._mark(described.document_mark),
            }
        except KeyError as error:
            raise EmbedderMissing(f"the vocabulary of {model.name} has no {error}") from error
        self._axes = self._kept_axes(files)

    def _mark(self, piece: str) -> TokenIds:
        return [self._tokenizer.number(piece)] if piece else []

    def tokenise(self, text: str, kind: Kind = "query") -> CutText:
        """`text` after the model's prefix; the spans are those of `text` alone."""
        about = self._about
        prefix = about.query_prefix if kind == "query" else about.document_prefix
        marks = self._marks[kind]
        cut = self._cut(prefix + text, about.tokens - len(marks))
        ids = [cut.ids[0], *marks, *cut.ids[1:]]
        own = [(first - len(prefix), last - len(prefix)) for first, last in cut.spans if first >= len(prefix)]
        return CutText(ids, tuple(own))

    def pieces(self, hidden: NDArray[np.float32], tokens: CutText) -> Pieces:
        """The word pieces of a text without prefix and marks."""
        end = len(tokens.ids) - 1
        own = self._projected(hidden[end - len(tokens.spans) : end])
        # a [CLS] vector is not a mean of pieces, so there is none without some of the words
        kept = own if self._about.pooling != "cls" else own[:, :0]
        return Pieces(axes=unit(unit(own) @ self._axes), hidden=kept.copy(), spans=tokens.spans)

    def _projected(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        return hidden if self._projection is None else unit(hidden @ self._projection.T)

    def _pooled(self, hidden: Any, mask: NDArray[np.int64]) -> NDArray[np.float32]:
        if self._about.pooling == "cls":
            first: NDArray[np.float32] = hidden[:, 0]
            return first
        if self._projection is not None:
            flat = self._projected(hidden.reshape(-1, hidden.shape[-1]))
            hidden = flat.reshape(*hidden.shape[:2], -1)
        return super()._pooled(hidden, mask)

    def _recognise(self, files: ModelFiles, variant: Variant) -> None:
        del variant
        made = self.run([self._cut("one two", self._about.tokens).ids]).pooled[0]
        if made.shape != (self._about.dimensions,):
            raise EmbedderMissing(
                f"{files.onnx} makes {made.size} dimensions where the files of {self._name} promise "
                f"{self._about.dimensions}"
            )

    def _kept_axes(self, files: ModelFiles) -> NDArray[np.float32]:
        """[dimensions, AXES] Cached beside converted weights: finding them takes seconds."""
        kept = files.onnx.with_name(f"{files.onnx.stem}-{self._about.fingerprint('')}.npy")
        with contextlib.suppress(OSError, ValueError, EOFError):
            axes: NDArray[np.float32] = np.load(kept, allow_pickle=False)
            return axes
        axes = self._found_axes()
        if files.made:
            with tempfile.NamedTemporaryFile(dir=kept.parent, suffix=".npy", delete=False) as made:
                np.save(made, axes)
            Path(made.name).replace(kept)
        return axes

    def _found_axes(self) -> NDArray[np.float32]:
        """[dimensions, AXES] The first right singular vectors of token vectors of lines of random words."""
        words = [w for w in self._tokenizer.words() if w.isascii() and w.isalpha() and len(w) > 2]
        if not words:
            raise EmbedderMissing(f"the vocabulary of {self._name} has no words")
        draw = random.Random(64)  # noqa: S311 - the same for everybody is meant
        rows = []
        for _ in range(_LINES):
            tokens = self.tokenise(" ".join(draw.choices(words, k=_WORDS)), "document")
            hidden = self.run([tokens.ids], hidden=True).hidden
            assert hidden is not None
            rows.append(unit(self._projected(hidden[0, 1 : len(tokens.ids) - 1])))
        turned = np.linalg.svd(np.concatenate(rows), full_matrices=False)[2][:AXES]
        # fix the sign, which the decomposition leaves open
        signs = np.sign(turned[np.arange(len(turned)), np.abs(turned).argmax(axis=1)])
        axes = np.zeros((turned.shape[1], AXES), np.float32)
        axes[:, : len(turned)] = (turned * signs[:, None]).T
        return axes


def _projection(model: PublishedModel) -> NDArray[np.float32]:
    """[dimensions, width] ColBERT's last layer."""
    for file in ("1_Dense/model.safetensors", "model.safetensors"):
        found = model.path(file)
        if found is not None:
            tensors = read_safetensors(found)
            if "linear.weight" in tensors:
                return tensors["linear.weight"].astype(np.float32)
    raise EmbedderMissing(
        f"{model.name} has no tensor linear.weight: ColBERT models are read from safetensors"
    )


class CustomEmbedder(LocalEmbedder):
    """Your own BERT model. Otherwise like `LocalEmbedder`."""

    def __init__(
        self,
        name: str,
        model_dir: Path | None = None,
        variant: Variant = "fp32",
        cache_dir: Path | None = None,
        threads: int = 1,
        **given: str,
    ) -> None:
        """Read the model's description, downloading it from the hub if needed. Weights are loaded by `open`.

        Args:
            name: a folder, or an id of the model hub such as "BAAI/bge-small-en-v1.5"; after a # the
                fingerprint that a store recorded.
            model_dir: the folder, if `name` is only a name.
            variant: "fp32", or "int8".
            cache_dir: the folder of downloaded and converted weights; None is the user's cache directory.
            threads: how many threads one run may use.
            given: `query_prefix`, `document_prefix` and `pooling` ("mean" or "cls"), if no file states them.

        Raises:
            EmbedderMissing: it does not exist, or is no supported encoder.
            InvalidInput: an unknown pooling, or a fingerprint other than the recorded one.
        """
        super().__init__(model_dir, variant, cache_dir, threads)
        if given.get("pooling", "mean") not in _POOLINGS.values():
            raise InvalidInput(f"unknown pooling {given['pooling']!r:.40}: use mean or cls")
        plain, _, recorded = name.partition("#")
        self._model = PublishedModel.find(str(model_dir or plain), cache_dir)
        self.described = Described.read(self._model, given)
        """The description in the model's files."""
        fingerprint = self.described.fingerprint(self._model.digest())
        if recorded and recorded != fingerprint:
            raise InvalidInput(
                f"the model {plain!r:.200} is another than the one that was recorded ({fingerprint}, not "
                f"{recorded}): take that one, or run `echoic reindex` with this one"
            )
        suffix = "" if variant == "fp32" else f":{variant}"
        options = f"?{urlencode(given)}" if given else ""
        self.spec = EmbeddingSpec(f"local:{plain}{suffix}#{fingerprint}{options}", self.described.dimensions)

    def _files(self) -> ModelFiles:
        return self._model.files(self._variant, self._cache_dir)

    def _loaded(self, files: ModelFiles) -> Encoder:
        return CustomEncoder(files, self._variant, self._threads, self._model, self.described)
