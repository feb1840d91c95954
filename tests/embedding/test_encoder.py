"""The graph and the encoder against the model's definition, computed in numpy from the published weights."""

from __future__ import annotations

import math
import random
import string
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from echoic.embedding import weights
from echoic.embedding.encoder import MAX_TOKENS, Aborted, Encoder, WordPieces, axes
from echoic.embedding.onnx_graph import Architecture, build, read_safetensors
from echoic.errors import EmbedderMissing
from echoic.partition import AXES, MAX_PIECES, as_packed

LAYERS, HEADS, WIDTH = 6, 12, 384

TEXTS = [
    "ok",
    "",
    "Ana",
    "I am allergic to peanuts.",
    "José's dog is called Bruno",
    "日本語のテキスト and English",
    "What time does my flight to Berlin leave, and from which terminal?",
    "👍 … \u200b !!!",
    "My sister moved to Porto in March. " * 3,
    "a" * 120,
    "The rent is due on the first of the month. " * 12,
    "supercalifragilistic " * 6,
    "word " * 400,
]
BATCH = TEXTS[:-1]
"""Without the text that is longer than a model reads: what runs together is padded to the longest."""


# Between these, `erf` is a straight line to 1e-8; a call of Python a number takes seconds.
GRID = np.linspace(-6, 6, 12 * 4096 + 1)
ERF = np.array([math.erf(value) for value in GRID])


def gelu(values: np.ndarray) -> np.ndarray:
    place = np.clip((values / math.sqrt(2) - GRID[0]) / (GRID[1] - GRID[0]), 0, len(GRID) - 1.001)
    below = place.astype(np.int64)
    erf = ERF[below] + (place - below) * (ERF[below + 1] - ERF[below])
    return values * 0.5 * (1 + erf)


def published_tokenizer(folder: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class Reference:
    """A BERT encoder after Devlin et al. 2018, one text at a time, in float64."""

    def __init__(self, folder: Path) -> None:
        self.tensors = {
            name: array.astype(np.float64)
            for name, array in read_safetensors(folder / "model.safetensors").items()
        }
        self.tokenizer = published_tokenizer(folder)
        self.tokenizer.enable_truncation(MAX_TOKENS)

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return centred / spread * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def attention(self, x: np.ndarray, name: str) -> np.ndarray:
        def heads(part: str) -> np.ndarray:
            return self.linear(x, f"{name}.{part}").reshape(len(x), HEADS, WIDTH // HEADS).swapaxes(0, 1)

        query, key, value = heads("query"), heads("key"), heads("value")
        scores = query @ key.swapaxes(1, 2) / math.sqrt(WIDTH / HEADS)
        weight = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weight /= weight.sum(axis=-1, keepdims=True)
        return (weight @ value).swapaxes(0, 1).reshape(len(x), WIDTH)

    def hidden(self, text: str) -> np.ndarray:
        ids = self.tokenizer.encode(text).ids
        x = self.tensors["embeddings.word_embeddings.weight"][ids]
        x = x + self.tensors["embeddings.position_embeddings.weight"][: len(ids)]
        x = self.norm(x + self.tensors["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            attended = self.linear(
                self.attention(x, f"{name}.attention.self"), f"{name}.attention.output.dense"
            )
            x = self.norm(x + attended, f"{name}.attention.output.LayerNorm")
            inner = gelu(self.linear(x, f"{name}.intermediate.dense"))
            x = self.norm(x + self.linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        return x


@pytest.fixture(scope="module")
def reference(published: Path) -> Reference:
    return Reference(published)


@pytest.fixture(scope="module")
def expected(reference: Reference) -> list[np.ndarray]:
    """The last hidden state of each text."""
    return [reference.hidden(text) for text in TEXTS]


@pytest.fixture(scope="module")
def pooled(expected: list[np.ndarray]) -> np.ndarray:
    means = np.stack([hidden.mean(axis=0) for hidden in expected])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def encoder(model_cache: Path) -> Encoder:
    return Encoder(weights.find(None, "fp32", model_cache), "fp32", threads=1)


def test_fp32_vectors_equal_the_definition_alone(encoder: Encoder, pooled: np.ndarray) -> None:
    alone = np.concatenate([encoder.run([encoder.tokenise(text).ids]).pooled for text in TEXTS])
    assert np.abs(alone - pooled).max() < 1e-5


def test_fp32_vectors_equal_the_definition_in_a_padded_batch(encoder: Encoder, pooled: np.ndarray) -> None:
    batch = encoder.run([encoder.tokenise(text).ids for text in BATCH])
    assert np.abs(batch.pooled - pooled[: len(BATCH)]).max() < 1e-5
    assert batch.hidden is None


def test_token_vectors_equal_the_definition(encoder: Encoder, expected: list[np.ndarray]) -> None:
    several = [TEXTS.index(text) for text in ("ok", "", *TEXTS[3:7], TEXTS[-1])]
    hidden = encoder.run([encoder.tokenise(TEXTS[n]).ids for n in several], hidden=True).hidden
    assert hidden is not None
    assert hidden.shape == (len(several), MAX_TOKENS, WIDTH)
    for row, n in zip(hidden, several, strict=True):
        assert np.abs(row[: len(expected[n])] - expected[n]).max() < 1e-4


def test_a_run_can_be_aborted_and_made_again(encoder: Encoder, capfd: pytest.CaptureFixture[str]) -> None:
    ids = [encoder.tokenise(text).ids for text in TEXTS[:7]]
    before = encoder.run(ids, hidden=True)
    stop = encoder.abortable()
    assert not stop.is_set()
    stop.set()
    with pytest.raises(Aborted):
        encoder.run(ids, hidden=True, abort=stop)
    again = encoder.run(ids, hidden=True, abort=encoder.abortable())
    assert np.array_equal(before.pooled, again.pooled)
    assert np.array_equal(before.hidden, again.hidden)
    assert capfd.readouterr().err == "", "what was asked for is no error to be printed"


def test_what_fails_by_itself_is_not_taken_for_aborted(encoder: Encoder) -> None:
    with pytest.raises(Exception, match="indices element out of data bounds"):
        encoder.run([[10**9]], abort=encoder.abortable())


@pytest.mark.parametrize(
    "text",
    [
        "My sister Ana moved to Porto in March. " * 800,
        "a" * 20_000,
        "a" * 5_000 + " and then words" * 2_000,
        "x " * 90 + "y" * 10_000,
        " " * 10_000 + "far away",
        "日本語" * 4_000,
        # A word that is one unknown token whole, and many where it is cut.
        " " * 3_816 + "!" * 200 + "zqxj" * 40 + " and more" * 1_000,
        "q" * 101 + " " + "z" * 99 + " " * 3_900 + "tail " * 3_000,
    ],
)
def test_a_long_text_gives_the_tokens_that_reading_it_whole_gives(
    encoder: Encoder, reference: Reference, text: str
) -> None:
    assert encoder.tokenise(text).ids == reference.tokenizer.encode(text).ids


def test_word_pieces_are_a_texts_tokens_on_the_shipped_axes(
    encoder: Encoder, expected: list[np.ndarray]
) -> None:
    for text, wanted in zip(TEXTS, expected, strict=True):
        tokens = encoder.tokenise(text)
        if not tokens.spans:
            continue
        made = encoder.run([tokens.ids, encoder.tokenise("short").ids], hidden=True).hidden
        assert made is not None
        pieces = encoder.pieces(made[0], tokens)
        assert np.abs(pieces.hidden - wanted[1:-1]).max() < 1e-4
        assert len(pieces.axes) == len(pieces.spans) == len(tokens.ids) - 2
        projected = wanted[1:-1] @ axes()
        projected /= np.linalg.norm(projected, axis=1, keepdims=True)
        assert np.abs(pieces.axes - projected).max() < 1e-4
        assert [text[first:last].strip() == text[first:last] for first, last in pieces.spans].count(
            False
        ) == 0


def test_any_text_is_cut_as_the_published_tokenizer_cuts_it(published: Path) -> None:
    pieces, reference = WordPieces(published / "tokenizer.json"), published_tokenizer(published)

    def is_same(text: str) -> bool:
        whole = reference.encode(text, add_special_tokens=False)
        return [tuple(piece) for piece in pieces.cut(text)] == list(
            zip(whole.ids, whole.offsets, strict=True)
        )

    # its tables are those of an older Unicode: what has become a mark or a punctuation since is a letter to it
    known = [chr(code) for code in [*range(0x61D), *range(0x1E00, 0x2C00), *range(0x3000, 0x9FFF, 7)]]
    alike = [character for character in known if is_same(f"a{character}b")]
    assert len(known) - len(alike) < 100
    assert set(map(chr, range(0x61D))) <= set(alike)
    draw = random.Random(7)
    for _ in range(500):
        text = (
            "".join(draw.choices(alike, k=draw.randrange(40)))
            + " "
            + "".join(draw.choices(alike[:128], k=30))
        )
        assert is_same(text), ascii(text)


def test_the_graph_is_valid_onnx(small: Path) -> None:
    """It is written the same way for weights of any size."""
    import onnx

    for int8 in (False, True):
        made = build(small / "model.safetensors", small / "config.json", int8=int8)
        onnx.checker.check_model(onnx.load_from_string(made), full_check=True)


@pytest.mark.parametrize("content", [b"", b"x" * 40, (9).to_bytes(8, "little") + b'{"a": [1]}', b"\xff" * 99])
def test_weights_that_are_no_safetensors_are_refused(published: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"safetensors"):
        build(tmp_path / "model.safetensors", published / "config.json")


def test_tokens_are_counted_to_the_end_of_any_text(encoder: Encoder, published: Path) -> None:
    whole = published_tokenizer(published)
    mixed = " ".join([string.printable, *TEXTS, string.punctuation.join(TEXTS), "x" * 101])
    for text in (*TEXTS, mixed, "My sister Ana moved to Porto in March. " * 300):
        assert encoder.count(text) == len(whole.encode(text, add_special_tokens=False).ids)


def test_a_packed_word_piece_keeps_its_direction(encoder: Encoder) -> None:
    tokens = encoder.tokenise("My sister Ana moved to Porto in March. " * 40)
    made = encoder.run([tokens.ids], hidden=True).hidden
    assert made is not None
    pieces = encoder.pieces(made[0], tokens)
    axes, scale = as_packed([pieces.packed()])
    kept = axes * scale
    assert kept.shape == (MAX_PIECES, AXES)
    kept /= np.linalg.norm(kept, axis=1, keepdims=True)
    assert np.vecdot(kept, pieces.axes[:MAX_PIECES]).min() > 0.999


def test_a_model_as_the_hugging_face_exporters_write_it_is_read_the_same(
    published: Path, model_cache: Path, pooled: np.ndarray, tmp_path: Path
) -> None:
    """Three inputs, the last hidden state as the only output: pooling is then done outside of the graph."""
    import onnx

    made = onnx.load(weights.find(None, "fp32", model_cache).onnx)
    graph = made.graph
    graph.input.append(
        onnx.helper.make_tensor_value_info("token_type_ids", onnx.TensorProto.INT64, ["b", "s"])
    )
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = ["last_hidden_state" if name == "token_embeddings" else name for name in names]
    hidden = next(output for output in graph.output if output.name == "token_embeddings")
    hidden.name = "last_hidden_state"
    graph.output.remove(next(output for output in graph.output if output.name == "sentence_embedding"))
    onnx.save(made, tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_bytes((published / "tokenizer.json").read_bytes())

    encoder = Encoder(weights.find(tmp_path, "fp32", None), "fp32", threads=1)
    batch = encoder.run([encoder.tokenise(text).ids for text in BATCH])
    assert np.abs(batch.pooled - pooled[: len(BATCH)]).max() < 1e-5


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ('{"model_type": "mpnet", "hidden_act": "gelu"}', "'mpnet'"),
        ('{"model_type": "bert", "hidden_act": "relu"}', "'relu'"),
        ('{"model_type": "bert", "hidden_act": "gelu"}', "num_hidden_layers"),
    ],
)
def test_a_config_of_another_architecture_is_refused(tmp_path: Path, config: str, complaint: str) -> None:
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    with pytest.raises(ValueError, match=complaint):
        Architecture.read(tmp_path / "config.json")


def test_a_file_that_is_no_sentence_encoder_is_refused_by_what_it_takes(
    published: Path, tmp_path: Path
) -> None:
    import onnx
    from onnx import TensorProto, helper

    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("sound", "words")]
    graph = helper.make_graph([helper.make_node("Identity", ["sound"], ["words"])], "g", value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_bytes((published / "tokenizer.json").read_bytes())
    with pytest.raises(EmbedderMissing, match="it takes \\['sound'\\]"):
        Encoder(weights.find(tmp_path, "fp32", None), "fp32", threads=1)
