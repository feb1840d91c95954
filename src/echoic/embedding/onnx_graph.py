"""The BERT encoder as an ONNX graph, written directly from a safetensors file. It runs nothing.

Two outputs: the last hidden state (one vector for each token) and its mean over the unmasked tokens at unit
length, as all-MiniLM-L6-v2 was trained. Standard operators only: any ONNX runtime can run it. The layers are
those of Devlin et al. 2018 (post-norm, exact GELU); the weights keep their names.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

INPUTS = ("input_ids", "attention_mask")
POOLED = "sentence_embedding"
"""Output, float32 [batch, dimensions], unit length."""
HIDDEN = "token_embeddings"
"""Output, float32 [batch, tokens, dimensions]; rows where the mask is 0 are meaningless."""

_OPSET = 20  # the first opset with Gelu as one operator
_TYPES = {np.dtype(name): code for name, code in (("f4", 1), ("i1", 3), ("i8", 7))}  # ONNX type numbers
_FLOAT = _TYPES[np.dtype("f4")]
_STORED = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}  # supported types of a safetensors file
_IR_VERSION = 9  # readable by onnxruntime 1.20, the oldest supported
_MASKED = np.float32(-1e9)  # added to the score of a padded token: its weight after softmax is exactly 0


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of the encoder, as its config.json states it."""

    layers: int
    heads: int
    width: int
    epsilon: float
    """The epsilon of the layer norms."""

    @classmethod
    def read(cls, config: Path) -> Self:
        """Read a Hugging Face config.json; raises ValueError if it is no BERT with exact GELU."""
        stated = json.loads(config.read_text(encoding="utf-8"))
        if stated.get("model_type") != "bert" or stated.get("hidden_act") != "gelu":
            raise ValueError(
                f"{config} describes a {stated.get('model_type')!r} model with {stated.get('hidden_act')!r} "
                "activation, not a BERT with 'gelu'"
            )
        try:
            return cls(
                layers=int(stated["num_hidden_layers"]),
                heads=int(stated["num_attention_heads"]),
                width=int(stated["hidden_size"]),
                epsilon=float(stated["layer_norm_eps"]),
            )
        except KeyError as error:
            raise ValueError(f"{config} does not say {error}") from error


def read_safetensors(file: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file by name; raises ValueError if it is none, or incomplete."""
    with file.open("rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        try:
            listed = json.loads(opened.read(size if size < file.stat().st_size else 0))
            listed.pop("__metadata__", None)
            data = np.frombuffer(opened.read(), np.uint8)
            return {
                name: data[slice(*each["data_offsets"])].view(_STORED[each["dtype"]]).reshape(each["shape"])
                for name, each in listed.items()
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{file} cannot be read as safetensors: {error}") from error


def _field(number: int, value: float | str | bytes) -> bytes:
    """A field of a Protocol Buffers message; an ONNX file is a sequence of them."""
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    encoded = value.encode() if isinstance(value, str) else value
    return b"".join((_varint(number << 3 | 2), _varint(len(encoded)), encoded))


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _attribute(name: str, value: float | Sequence[int]) -> bytes:
    if isinstance(value, float):
        return _field(1, name) + _field(2, value) + _field(20, 1)
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, 2)
    return _field(1, name) + b"".join(_field(8, each) for each in value) + _field(20, 7)


def _described(name: str, kind: int, *axes: str | int) -> bytes:
    dimensions = b"".join(_field(1, _field(1 if isinstance(axis, int) else 2, axis)) for axis in axes)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, dimensions)))


class _GraphWriter:
    """Appends nodes and weights to a graph and returns the names of their outputs."""

    def __init__(self, weights: dict[str, NDArray[Any]], shape: Architecture, *, int8: bool) -> None:
        self.nodes: list[bytes] = []
        self.constants: list[bytes] = []
        self.shape = shape
        self._weights = {name.removeprefix("bert."): array for name, array in weights.items()}
        self._int8 = int8

    def weight(self, name: str) -> NDArray[np.float32]:
        return self._weights[name].astype(np.float32, copy=False)

    def constant(self, array: NDArray[Any] | np.generic) -> str:
        name = f"constant_{len(self.constants)}"
        kept: NDArray[Any] = np.ascontiguousarray(array).reshape(array.shape)
        shape = b"".join(_field(1, size) for size in kept.shape)
        self.constants.append(
            b"".join((shape, _field(2, _TYPES[kept.dtype]), _field(8, name), _field(9, kept.tobytes())))
        )
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def node(
        self,
        operator: str,
        *inputs: str,
        output: str | Sequence[str] = "",
        **attributes: float | Sequence[int],
    ) -> str:
        output = output or f"value_{len(self.nodes)}"
        outputs = [output] if isinstance(output, str) else output
        self.nodes.append(
            b"".join(
                (
                    *(_field(1, name) for name in inputs),
                    *(_field(2, name) for name in outputs),
                    _field(3, f"node_{len(self.nodes)}"),
                    _field(4, operator),
                    *(_field(5, _attribute(*each)) for each in attributes.items()),
                )
            )
        )
        return outputs[0]

    def linear(self, x: str, *names: str) -> str:
        """[rows, width] -> [rows, width of all `names`], concatenated: one product for all of them."""
        weights = np.concatenate([self.weight(f"{name}.weight") for name in names])
        biases = self.constant(np.concatenate([self.weight(f"{name}.bias") for name in names]))
        if not self._int8:
            return self.node("Gemm", x, self.constant(weights.T), biases)
        scales = (np.abs(weights).max(axis=1) / 127).clip(np.finfo(np.float32).tiny)
        rounded = np.rint(weights / scales[:, None]).astype(np.int8)
        levels, scale, zero = self.several("DynamicQuantizeLinear", x, 3)
        product = self.node("MatMulInteger", levels, self.constant(rounded.T), zero)
        factor = self.node("Mul", scale, self.constant(scales))
        values = self.node("Mul", self.node("Cast", product, to=_FLOAT), factor)
        return self.node("Add", values, biases)

    def several(self, operator: str, x: str, count: int, **attributes: int) -> list[str]:
        """The `count` outputs of one operator."""
        parts = [f"value_{len(self.nodes)}_{part}" for part in range(count)]
        self.node(operator, x, output=parts, **attributes)
        return parts

    def norm(self, x: str, name: str) -> str:
        scale = self.constant(self.weight(f"{name}.weight"))
        shift = self.constant(self.weight(f"{name}.bias"))
        return self.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=self.shape.epsilon)

    def heads(self, x: str, places: str, order: tuple[int, ...]) -> str:
        """[batch * tokens, width] split into heads, with the axes (batch, tokens, head, rest) in `order`."""
        heads = self.integers(self.shape.heads, self.shape.width // self.shape.heads)
        cut = self.node("Concat", places, heads, axis=0)
        return self.node("Transpose", self.node("Reshape", x, cut), perm=order)


def build(safetensors: Path, config: Path, *, int8: bool = False) -> bytes:
    """The encoder in `safetensors` as an ONNX model with inputs `INPUTS` and outputs `POOLED` and `HIDDEN`.

    With `int8` the matrix weights have 8 bits, with a scale for each channel, and activations are quantised
    at run time (dynamic); the embedding table stays float32. The cosine to the fp32 vector is about 0.99.
    Raises ValueError if the files hold no BERT encoder.
    """
    shape = Architecture.read(config)
    try:
        writer = _GraphWriter(read_safetensors(safetensors), shape, int8=int8)
        _encoder(writer)
    except KeyError as error:
        raise ValueError(f"{safetensors} holds no tensor {error}: it is not a BERT encoder") from error
    graph = b"".join(
        (
            *(_field(1, node) for node in writer.nodes),
            _field(2, "encoder"),
            *(_field(5, constant) for constant in writer.constants),
            *(_field(11, _described(name, _TYPES[np.dtype("i8")], "batch", "tokens")) for name in INPUTS),
            _field(12, _described(POOLED, _FLOAT, "batch", shape.width)),
            _field(12, _described(HIDDEN, _FLOAT, "batch", "tokens", shape.width)),
        )
    )
    opset = _field(1, "") + _field(2, _OPSET)
    return b"".join((_field(1, _IR_VERSION), _field(2, "echoic"), _field(7, graph), _field(8, opset)))


def _encoder(write: _GraphWriter) -> None:
    mask = write.node("Cast", "attention_mask", to=_FLOAT)
    present = write.node("Unsqueeze", mask, write.integers(1, 2))
    absent = write.node("Sub", write.constant(np.float32(1)), present)
    bias = write.node("Mul", absent, write.constant(_MASKED))
    places = write.node("Shape", "input_ids")  # [batch, tokens]
    flat = write.integers(-1, write.shape.width)  # a product of two axes and its sum are one operator
    x = write.node("Reshape", _embeddings(write), flat)
    for layer in range(write.shape.layers):
        x = _layer(write, x, places, bias, f"encoder.layer.{layer}")
    whole = write.node("Concat", places, write.integers(write.shape.width), axis=0)
    _mean(write, write.node("Reshape", x, whole, output=HIDDEN), mask)


def _embeddings(write: _GraphWriter) -> str:
    # One text is always segment 0, so its segment vector is folded into the positions.
    segment = write.weight("embeddings.token_type_embeddings.weight")[0]
    positions = write.weight("embeddings.position_embeddings.weight") + segment
    tokens = write.node("Slice", write.node("Shape", "input_ids"), write.integers(1), write.integers(2))
    places = write.node("Slice", write.constant(positions), write.integers(0), tokens, write.integers(0))
    table = write.constant(write.weight("embeddings.word_embeddings.weight"))
    words = write.node("Gather", table, "input_ids")
    return write.norm(write.node("Add", words, places), "embeddings.LayerNorm")


def _layer(write: _GraphWriter, x: str, places: str, bias: str, name: str) -> str:
    mixed = _attention(write, x, places, bias, f"{name}.attention.self")
    attended = write.linear(mixed, f"{name}.attention.output.dense")
    x = write.norm(write.node("Add", x, attended), f"{name}.attention.output.LayerNorm")
    inner = write.node("Gelu", write.linear(x, f"{name}.intermediate.dense"))
    return write.norm(
        write.node("Add", x, write.linear(inner, f"{name}.output.dense")), f"{name}.output.LayerNorm"
    )


def _attention(write: _GraphWriter, x: str, places: str, bias: str, name: str) -> str:
    joined = write.linear(x, f"{name}.query", f"{name}.key", f"{name}.value")
    every = write.several("Split", joined, 3, axis=1, num_outputs=3)
    orders = ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
    query, key, value = (write.heads(part, places, order) for part, order in zip(every, orders, strict=True))
    scale = write.constant(np.float32((write.shape.width // write.shape.heads) ** -0.5))
    scores = write.node("Add", write.node("Mul", write.node("MatMul", query, key), scale), bias)
    mixed = write.node("MatMul", write.node("Softmax", scores, axis=-1), value)
    together = write.node("Transpose", mixed, perm=[0, 2, 1, 3])
    return write.node("Reshape", together, write.integers(-1, write.shape.width))


def _mean(write: _GraphWriter, x: str, mask: str) -> None:
    present = write.node("Unsqueeze", mask, write.integers(2))
    total = write.node("ReduceSum", write.node("Mul", x, present), write.integers(1), keepdims=0)
    count = write.node("ReduceSum", present, write.integers(1), keepdims=0)
    write.node("LpNormalization", write.node("Div", total, count), output=POOLED, axis=1, p=2)
