"""The BERT encoder as an ONNX graph, written straight from a safetensors file. It runs nothing.

Two outputs: the last hidden state (one vector for each token) and its mean over the unmasked tokens at unit
length, which is how all-MiniLM-L6-v2 was trained to be read. Standard operators only: any ONNX runtime can
run it. The layers are those of Devlin et al. 2018 (post-norm, exact GELU); the weights keep their names.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

INPUTS = ("input_ids", "attention_mask")
POOLED = "sentence_embedding"
"""Output, float32 [batch, dimensions], unit length."""
HIDDEN = "token_embeddings"
"""Output, float32 [batch, tokens, dimensions]; rows where the mask is 0 mean nothing."""

_OPSET = 20  # the first with Gelu as one operator
_IR_VERSION = 9  # what onnxruntime 1.20, the oldest allowed, can read
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
        """The architecture in a Hugging Face config.json.

        Raises:
            ValueError: it is no BERT with exact GELU, or says too little.
        """
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


class _GraphWriter:
    """Appends nodes and weights to a graph and hands back the names of their outputs."""

    def __init__(self, weights: dict[str, NDArray[Any]], shape: Architecture) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.shape = shape
        self._weights = {name.removeprefix("bert."): array for name, array in weights.items()}

    def weight(self, name: str) -> NDArray[np.float32]:
        return self._weights[name].astype(np.float32, copy=False)

    def constant(self, array: NDArray[Any] | np.generic) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        output = output or f"value_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(operator, list(inputs), [output], name=f"node_{len(self.nodes)}", **attributes)
        )
        return output

    def linear(self, x: str, *names: str) -> str:
        """[rows, width] -> [rows, width of all `names`], side by side: one product for all of them."""
        weights = np.concatenate([self.weight(f"{name}.weight") for name in names])
        biases = np.concatenate([self.weight(f"{name}.bias") for name in names])
        return self.node("Gemm", x, self.constant(weights.T), self.constant(biases))

    def split(self, x: str, count: int) -> list[str]:
        """Equal parts of the columns of `x`."""
        parts = [f"value_{len(self.nodes)}_{part}" for part in range(count)]
        self.nodes.append(
            helper.make_node("Split", [x], parts, name=f"node_{len(self.nodes)}", axis=1, num_outputs=count)
        )
        return parts

    def norm(self, x: str, name: str) -> str:
        scale = self.constant(self.weight(f"{name}.weight"))
        shift = self.constant(self.weight(f"{name}.bias"))
        return self.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=self.shape.epsilon)

    def heads(self, x: str, places: str, order: tuple[int, ...]) -> str:
        """[batch * tokens, width] cut into heads, its axes (batch, tokens, head, rest) in `order`."""
        heads = self.integers(self.shape.heads, self.shape.width // self.shape.heads)
        cut = self.node("Concat", places, heads, axis=0)
        return self.node("Transpose", self.node("Reshape", x, cut), perm=list(order))


def build(safetensors: Path, config: Path) -> onnx.ModelProto:
    """The encoder in `safetensors` as an ONNX model with inputs `INPUTS` and outputs `POOLED` and `HIDDEN`.

    Raises:
        ValueError: the files hold no BERT encoder.
    """
    shape = Architecture.read(config)
    try:
        writer = _GraphWriter(load_file(safetensors), shape)
        _encoder(writer)
    except KeyError as error:
        raise ValueError(f"{safetensors} holds no tensor {error}: it is not a BERT encoder") from error
    graph = helper.make_graph(
        writer.nodes,
        "encoder",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in INPUTS],
        [
            helper.make_tensor_value_info(POOLED, TensorProto.FLOAT, ["batch", shape.width]),
            helper.make_tensor_value_info(HIDDEN, TensorProto.FLOAT, ["batch", "tokens", shape.width]),
        ],
        writer.constants,
    )
    model: onnx.ModelProto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION, producer_name="echoic"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _encoder(write: _GraphWriter) -> None:
    mask = write.node("Cast", "attention_mask", to=TensorProto.FLOAT)
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
    every = write.split(write.linear(x, f"{name}.query", f"{name}.key", f"{name}.value"), 3)
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


def save_fp32(safetensors: Path, config: Path, target: Path) -> None:
    """Write the encoder of `safetensors` to `target` in float32.

    Raises:
        ValueError: the files hold no BERT encoder.
    """
    onnx.save(build(safetensors, config), target)


def save_int8(fp32: Path, target: Path) -> None:
    """Write the float32 model `fp32` to `target` with its matrix weights in 8 bits, a scale for each channel.

    Activations are quantised as they arrive (dynamic); the embedding table stays float32. Against fp32 the
    cosine of a vector is about 0.99.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(fp32)
    # The quantiser asks, through the root logger, for a preparation whose work (shape inference) it does
    # itself. This entry says that it was done.
    helper.set_model_props(model, {"onnx.quant.pre_process": "onnxruntime.quant"})
    quantize_dynamic(
        model, target, op_types_to_quantize=["MatMul"], per_channel=True, weight_type=QuantType.QInt8
    )
