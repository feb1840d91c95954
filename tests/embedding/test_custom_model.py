"""Encoders that users bring, as small random models of each published shape, against the definition."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echoic.embedding import embedder_from
from echoic.embedding.base import Embedded, Kind
from echoic.embedding.custom_model import CustomEmbedder
from echoic.embedding.onnx_graph import build
from echoic.errors import EmbedderMissing, EmbeddingMismatch, InvalidInput
from echoic.memory.records import index
from echoic.memory.service import MemoryService
from echoic.partition import AXES
from echoic.stores import store_from

WIDTH, HEADS, LAYERS, POSITIONS = 32, 4, 2, 48
MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[unused0]", "[unused1]", "[Q]", "[D]")
WORDS = """represent this sentence for searching relevant passages query passage : ana lives in oslo with two dogs
and a cat she drinks green tea every morning before work her sister moved to porto last march""".split()
VOCABULARY = {piece: number for number, piece in enumerate((*MARKS, *dict.fromkeys(WORDS)))}
TEXTS = ["ana lives in oslo", "tea", "her sister moved to porto last march with two dogs and a cat " * 6]


def write_safetensors(file: Path, tensors: Mapping[str, np.ndarray]) -> None:
    listed, data = {}, b""
    for name, array in tensors.items():
        raw = array.astype("<f4").tobytes()
        places = [len(data), len(data) + len(raw)]
        listed[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": places}
        data += raw
    header = json.dumps(listed).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(len(header).to_bytes(8, "little") + header + data)


def write_config(folder: Path) -> None:
    stated = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "hidden_size": WIDTH,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": POSITIONS,
    }
    (folder / "config.json").write_text(json.dumps(stated))


def random_tensors(seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    sizes = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), WIDTH),
        "embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        inside = [f"attention.self.{part}" for part in ("query", "key", "value")]
        for name in (*inside, "attention.output.dense"):
            sizes |= {f"{at}.{name}.weight": (WIDTH, WIDTH), f"{at}.{name}.bias": (WIDTH,)}
        sizes |= {f"{at}.intermediate.dense.weight": (64, WIDTH), f"{at}.intermediate.dense.bias": (64,)}
        sizes |= {f"{at}.output.dense.weight": (WIDTH, 64), f"{at}.output.dense.bias": (WIDTH,)}
        norms += [f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"]
    tensors = {name: draw.standard_normal(size) / 4 for name, size in sizes.items()}
    for name in norms:
        tensors |= {
            f"{name}.weight": 1 + draw.standard_normal(WIDTH) / 9,
            f"{name}.bias": draw.standard_normal(WIDTH),
        }
    return {name: array.astype(np.float32) for name, array in tensors.items()}


@dataclass
class Shape:
    """How a model is published."""

    name: str
    pooling: str
    query: str = ""
    document: str = ""
    marks: tuple[str, str] = ("", "")
    files: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    """Of the names of its tensors."""
    projection: str = ""
    """The file with the projection."""
    onnx: bool = False
    tokens: int = POSITIONS

    def write(self, folder: Path, seed: int = 1) -> Path:
        home = folder / self.name
        tensors = random_tensors(seed)
        named = {f"{self.prefix}{name}": array for name, array in tensors.items()}
        projection = np.random.default_rng(seed + 1).standard_normal((16, WIDTH)).astype(np.float32)
        if self.projection == "model.safetensors":
            named["linear.weight"] = projection
        elif self.projection:
            write_safetensors(home / self.projection, {"linear.weight": projection})
        write_safetensors(home / "model.safetensors", named)
        write_config(home)
        tokenizer = {
            "model": {"type": "WordPiece", "vocab": VOCABULARY, "unk_token": "[UNK]"},
            "normalizer": {"type": "BertNormalizer", "lowercase": True},
        }
        for file, stated in {"tokenizer.json": tokenizer, **self.files}.items():
            (home / file).parent.mkdir(exist_ok=True)
            (home / file).write_text(json.dumps(stated))
        if self.onnx:
            (home / "onnx").mkdir()
            (home / "onnx/model.onnx").write_bytes(build(home / "model.safetensors", home / "config.json"))
            (home / "model.safetensors").unlink()
        self.tensors = {name: array.astype(np.float64) for name, array in tensors.items()}
        self.matrix = projection.astype(np.float64)
        return home

    # the definition

    def ids(self, text: str, kind: Kind) -> tuple[list[int], int]:
        """Token ids, and how many of them stand before the text's own."""
        before = (self.query if kind == "query" else self.document).split()
        mark = self.marks[kind != "query"]
        start = ["[CLS]", *([mark] if mark else [])]
        words = [w for part in before for w in ([part[:-1], ":"] if part.endswith(":") else [part])]
        own = [word.lower() for word in (*words, *text.split())][: self.tokens - len(start) - 1]
        return [VOCABULARY[piece] for piece in (*start, *own, "[SEP]")], len(start) + len(words)

    def hidden(self, ids: list[int]) -> np.ndarray:
        x = self.tensors["embeddings.word_embeddings.weight"][ids]
        x = x + self.tensors["embeddings.position_embeddings.weight"][: len(ids)]
        x = self._norm(x + self.tensors["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}"
            q, k, v = (
                self._linear(x, f"{at}.attention.self.{part}").reshape(len(ids), HEADS, -1).swapaxes(0, 1)
                for part in ("query", "key", "value")
            )
            scores = np.exp(q @ k.swapaxes(1, 2) / math.sqrt(WIDTH / HEADS))
            mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ v
            mixed = mixed.swapaxes(0, 1).reshape(len(ids), WIDTH)
            x = self._norm(
                x + self._linear(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm"
            )
            inner = self._linear(x, f"{at}.intermediate.dense")
            inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
            x = self._norm(x + self._linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
        return x

    def vector(self, text: str, kind: Kind) -> np.ndarray:
        hidden = self.hidden(self.ids(text, kind)[0])
        if self.pooling == "cls":
            made = hidden[0]
        elif self.pooling == "mean":
            made = hidden.mean(axis=0)
        else:
            made = self.projected(hidden).mean(axis=0)
        return made / np.linalg.norm(made)

    def projected(self, hidden: np.ndarray) -> np.ndarray:
        found = hidden @ self.matrix.T
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return centred / spread * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]


FOR_SEARCH = "Represent this sentence for searching relevant passages:"
SENTENCES = {"sentence_bert_config.json": {"max_seq_length": 40}}
SHAPES = [
    Shape(
        "bge-small-en-v1.5",
        "cls",
        query=FOR_SEARCH,
        tokens=40,
        files=SENTENCES
        | {"1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}},
    ),
    Shape("e5-small-v2", "mean", query="query:", document="passage:"),
    Shape(
        "gte-small",
        "mean",
        tokens=40,
        files=SENTENCES | {"1_Pooling/config.json": {"pooling_mode_mean_tokens": True}},
    ),
    Shape(
        "with-prompts",
        "mean",
        query="query:",
        files={"config_sentence_transformers.json": {"prompts": {"query": "query: ", "document": ""}}},
    ),
    Shape(
        "colbert-small",
        "tokens",
        marks=("[unused0]", "[unused1]"),
        tokens=44,
        prefix="bert.",
        projection="model.safetensors",
        files={
            "artifact.metadata": {
                "dim": 16,
                "doc_maxlen": 44,
                "query_token_id": "[unused0]",
                "doc_token_id": "[unused1]",
            }
        },
    ),
    Shape(
        "pylate",
        "tokens",
        marks=("[Q]", "[D]"),
        tokens=44,
        projection="1_Dense/model.safetensors",
        files={
            "1_Dense/config.json": {"in_features": WIDTH, "out_features": 16, "bias": False},
            "config_sentence_transformers.json": {
                "query_prefix": "[Q] ",
                "document_prefix": "[D] ",
                "document_length": 44,
            },
        },
    ),
    Shape("exported", "mean", onnx=True),
]


def made_by(embedder: CustomEmbedder, texts: list[str], kind: Kind) -> Embedded:
    async def run() -> Embedded:
        await embedder.open()
        try:
            return await embedder.embed_pieces(texts, kind)
        finally:
            await embedder.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize("kind", ["query", "document"])
def test_a_published_model_makes_what_its_definition_says(shape: Shape, kind: Kind, tmp_path: Path) -> None:
    embedder = embedder_from(f"local:{shape.write(tmp_path)}", cache_dir=tmp_path / "cache")
    assert isinstance(embedder, CustomEmbedder)
    assert embedder.spec.dimensions == (16 if shape.projection else WIDTH)
    made = made_by(embedder, TEXTS, kind)
    assert made.pieces is not None
    for text, vector, pieces in zip(TEXTS, made.vectors, made.pieces, strict=True):
        assert np.abs(vector - shape.vector(text, kind)).max() < 1e-5
        ids, before = shape.ids(text, kind)
        own = shape.hidden(ids)[before:-1]
        assert [text[first:last] for first, last in pieces.spans] == text.split()[: len(own)]
        assert pieces.axes.shape == (len(own), AXES)
        assert np.allclose(np.linalg.norm(pieces.axes, axis=1), 1, atol=1e-5)
        wanted = shape.projected(own) if shape.projection else own
        if shape.pooling == "cls":
            assert pieces.hidden.shape == (len(own), 0)
        else:
            assert np.abs(pieces.hidden - wanted).max() < 1e-4
        # fewer directions than axes: nothing of how alike two pieces are is lost
        unit = wanted / np.linalg.norm(wanted, axis=1, keepdims=True)
        assert np.abs(pieces.axes @ pieces.axes.T - unit @ unit.T).max() < 1e-4


def test_what_a_store_records_names_the_very_model_and_what_was_said_beside_it(tmp_path: Path) -> None:
    shape = Shape("mine", "cls", query="query:")
    home, cache = shape.write(tmp_path), tmp_path / "cache"
    embedder = embedder_from(f"local:{home}?pooling=cls&query_prefix=query: ", cache_dir=cache)
    again = embedder_from(embedder.spec.model, cache_dir=cache)
    assert again.spec == embedder.spec
    assert (
        np.abs(made_by(again, TEXTS[:1], "query").vectors[0] - shape.vector(TEXTS[0], "query")).max() < 1e-5
    )
    assert embedder_from(f"local:{home}", cache_dir=cache).spec.model != embedder.spec.model
    shape.write(tmp_path, seed=5)
    with pytest.raises(InvalidInput, match="another than the one that was recorded"):
        embedder_from(embedder.spec.model, cache_dir=cache)


def test_axes_are_kept_beside_the_converted_weights_and_are_the_same_for_everybody(tmp_path: Path) -> None:
    home = SHAPES[1].write(tmp_path)
    first, again, elsewhere = (
        made_by(embedder_from(f"local:{home}", cache_dir=tmp_path / where), TEXTS, "document").pieces[0].axes
        for where in ("cache", "cache", "other")
    )
    assert np.array_equal(first, again)
    assert np.abs(first - elsewhere).max() < 1e-5
    assert len(list((tmp_path / "cache").glob("models/*/*.npy"))) == 1


def test_a_store_goes_from_one_model_to_another_by_reindexing(tmp_path: Path) -> None:
    one, other = (
        embedder_from(f"local:{SHAPES[n].write(tmp_path)}", cache_dir=tmp_path / "cache") for n in (4, 0)
    )
    url = f"sqlite:///{tmp_path / 'memory.db'}"

    async def run() -> None:
        async with MemoryService(store_from(url), one) as memory:
            await memory.user("ana").set("home", "ana lives in oslo")
            assert await memory.settle(60)
        with pytest.raises(EmbeddingMismatch):
            await MemoryService(store_from(url), other).open()
        store = store_from(url)
        await store.open(one.spec, index)
        assert await store.reindex(other.spec) == 1
        await store.aclose()
        async with MemoryService(store_from(url), other) as memory:
            assert await memory.settle(60)
            found = await memory.user("ana").recall("oslo", min_relevance=0)
            assert found.hits[0].text == "ana lives in oslo"
            assert "vector" in found.hits[0].ranks

    asyncio.run(run())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda home: (home / "config.json").unlink(), "no config.json"),
        (lambda home: (home / "tokenizer.json").unlink(), "no tokenizer.json"),
        (lambda home: (home / "model.safetensors").unlink(), "holds none of"),
        (lambda home: (home / "config.json").write_text('{"model_type": "xlm-roberta"}'), "xlm-roberta"),
        (lambda home: (home / "config.json").write_text("{"), "cannot be read"),
        (
            lambda home: (home / "1_Pooling/config.json").write_text('{"pooling_mode_max_tokens": true}'),
            "pools by pooling_mode_max_tokens",
        ),
    ],
)
def test_what_cannot_be_read_is_said(change: Callable[[Path], object], reason: str, tmp_path: Path) -> None:
    home = SHAPES[2].write(tmp_path)
    change(home)
    with pytest.raises(EmbedderMissing, match=reason):
        made_by(embedder_from(f"local:{home}", cache_dir=tmp_path / "cache"), TEXTS, "query")


def test_a_model_of_the_hub_is_fetched_once(
    tmp_path: Path, serve: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = SHAPES[5]
    shape.write(tmp_path / "hub")
    asked: list[str] = []

    async def hub(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        asked.append(scope["path"])
        owner, file = scope["path"].removeprefix("/").split("/resolve/main/")
        found = tmp_path / "hub" / owner.removeprefix("maker/") / file
        there = await asyncio.to_thread(found.is_file)
        body = await asyncio.to_thread(found.read_bytes) if there else b""
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200 if there else 404, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    with serve(hub) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        embedder = embedder_from("local:maker/pylate", cache_dir=tmp_path / "cache")
        assert not [path for path in asked if path.endswith("model.safetensors")], "weights come with open"
        vector = made_by(embedder, TEXTS[:1], "query").vectors[0]
    assert np.abs(vector - shape.vector(TEXTS[0], "query")).max() < 1e-5
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    again = embedder_from(embedder.spec.model, cache_dir=tmp_path / "cache")
    assert np.array_equal(made_by(again, TEXTS[:1], "query").vectors[0], vector)
    with pytest.raises(EmbedderMissing, match="HF_HUB_OFFLINE forbids"):
        embedder_from("local:maker/another", cache_dir=tmp_path / "cache")


@pytest.mark.parametrize("name", ["local:maker/../etc", "local:../nowhere", "local:./nowhere"])
def test_a_folder_that_is_not_there_is_said_and_nothing_is_fetched(name: str) -> None:
    with pytest.raises((EmbedderMissing, InvalidInput), match="no folder|unknown embedder"):
        embedder_from(name)
