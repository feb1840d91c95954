"""Embedders: texts in, unit vectors out. `embedder_from` creates one from its name.

Importing this loads no model runtime, no provider and no HTTP client; opening an embedder does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import parse_qsl

from echoic.embedding.base import (
    CachedEmbedder,
    Embedded,
    Embedder,
    EmbeddingSpec,
    Kind,
    PieceEmbedder,
    Vectors,
    embedded,
)
from echoic.embedding.lexical import LexicalEmbedder
from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.embedding.hosted_model import HostedEmbedder
    from echoic.embedding.local import DefaultEmbedder, LocalEmbedder
    from echoic.embedding.remote import VoyageEmbedder
    from echoic.embedding.weights import Variant

_LAZY = {
    "DefaultEmbedder": "echoic.embedding.local",
    "HostedEmbedder": "echoic.embedding.hosted_model",
    "LocalEmbedder": "echoic.embedding.local",
    "VoyageEmbedder": "echoic.embedding.remote",
}
"""Imported on first use: a program uses one of them."""
_VARIANTS: dict[str, Variant] = {"": "fp32", "fp32": "fp32", "int8": "int8"}
_LOCAL = frozenset({"model_dir", "cache_dir", "threads"})
_SHIPPED = _LOCAL | {"questions"}
_REMOTE = frozenset({"dimensions", "api_key", "base_url", "timeout_s", "attempts", "backoff_s"})
_CUSTOM = frozenset({"query_prefix", "document_prefix", "pooling"})
_IN_NAME = ("dimensions", "base_url", "questions", *sorted(_CUSTOM))
"""Options that a name may contain, for programs that take only a name."""


class EmbedderOptions(TypedDict, total=False):
    """Options of `embedder_from`. None is the same as leaving an option out.

    Attributes:
        model_dir: local: the folder of the weights.
        cache_dir: local: the folder of converted weights.
        threads: local: how many one run may use.
        questions: local: "int8" embeds questions in less than half the time (docs/ranking.md).
        dimensions: lexical and hosted: dimensions of the vectors.
        api_key: hosted; by default the provider's usual environment variable is read on opening.
        base_url: hosted: another address of the service.
        timeout_s: hosted: time limit of one request.
        attempts: hosted: attempts of a request.
        backoff_s: hosted: the longest pause after the first failure.
        query_prefix: your own model: text before a question, if its files do not state it.
        document_prefix: likewise before a document.
        pooling: likewise "mean" or "cls".
    """

    model_dir: Path | None
    cache_dir: Path | None
    threads: int | None
    questions: str | None
    dimensions: int | None
    api_key: str | None
    base_url: str | None
    timeout_s: float | None
    attempts: int | None
    backoff_s: float | None
    query_prefix: str | None
    document_prefix: str | None
    pooling: str | None


def embedder_from(spec: str | Embedder, **options: Unpack[EmbedderOptions]) -> Embedder:
    """The embedder that `spec` names, not opened yet. An embedder is returned unchanged.

    The `EmbeddingSpec.model` that a store has recorded is a name too.

    Args:
        spec: "local", "local:int8", "local:<folder or hub id>" (docs/ranking.md), "lexical",
            "voyageai:<model>" or "<provider>:<model>". A hosted one may contain dimensions and base_url:
            "openai:my-model?dimensions=768&base_url=http://127.0.0.1:8080/v1".
        options: see `EmbedderOptions`.

    Raises:
        InvalidInput: the name is unknown, or an option does not belong to it.
        EmbedderMissing: your own model does not exist or cannot be read.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if not isinstance(spec, str):
        return _as_it_is(spec, given)
    name, carried = _parted(spec)
    for option in carried.keys() & given.keys():
        raise InvalidInput(f"embedder {spec!r}: {option} was passed as an argument as well; pass it once")
    given |= carried
    make, allowed = _maker(name)
    foreign = sorted(given.keys() - allowed)
    if foreign:
        raise InvalidInput(
            f"embedder {spec!r} does not take {' or '.join(foreign)}; it takes {', '.join(sorted(allowed))}"
        )
    return make(**given)


def _parted(spec: str) -> tuple[str, dict[str, Any]]:
    """The name alone, and the options after its question mark."""
    name, mark, query = spec.partition("?")
    carried: dict[str, Any] = {}
    for option, value in parse_qsl(query, keep_blank_values=True):
        if option not in _IN_NAME or option in carried or not (value or option in _CUSTOM):
            raise InvalidInput(f"embedder {spec!r}: a name may contain {', '.join(_IN_NAME)}, each once")
        if option == "dimensions" and not (value.isascii() and value.isdigit()):
            raise InvalidInput(f"embedder {spec!r}: dimensions must be a whole number, not {value!r}")
        carried[option] = int(value) if option == "dimensions" else value
    if mark and not carried:
        raise InvalidInput(f"embedder {spec!r}: nothing follows the question mark")
    return name, carried


def _maker(spec: str) -> tuple[Callable[..., Embedder], frozenset[str]]:
    family, _, rest = spec.partition(":")
    if spec in {"lexical", LexicalEmbedder().spec.model}:
        return LexicalEmbedder, frozenset({"dimensions"})
    if family == "local":
        from echoic.embedding.local import LocalEmbedder
        from echoic.embedding.weights import MODEL, is_published

        if variant := _VARIANTS.get(rest.removeprefix(f"{MODEL}:")):
            return lambda **given: LocalEmbedder(variant=variant, **given), _SHIPPED
        plain, hash_, recorded = rest.partition("#")
        name = plain.removesuffix(":int8")
        if is_published(name):
            from echoic.embedding.custom_model import CustomEmbedder

            variant = "fp32" if name == plain else "int8"
            whole = f"{name}{hash_}{recorded}"
            return lambda **given: CustomEmbedder(whole, variant=variant, **given), _LOCAL | _CUSTOM
    if family == "voyageai" and rest:
        from echoic.embedding.remote import VoyageEmbedder

        return lambda **given: VoyageEmbedder(rest, **given), _REMOTE
    from echoic.embedding.hosted_model import ALIASES, KEYS, HostedEmbedder

    if ALIASES.get(family, family) in KEYS and rest:
        return lambda **given: HostedEmbedder(spec, **given), _REMOTE
    raise InvalidInput(f"unknown embedder {spec!r}: {_known()}")


def _known() -> str:
    """The known names."""
    from echoic.embedding.hosted_model import KEYS

    return (
        'known are "local", "local:int8", "local:<folder or hub id>", "lexical", "voyageai:<model>", such as '
        '"voyageai:voyage-3.5-lite", '
        f'and "<provider>:<model>", such as "openai:text-embedding-3-small", of {", ".join(KEYS)}'
    )


def _as_it_is(embedder: object, given: Mapping[str, Any]) -> Embedder:
    if not isinstance(embedder, Embedder):
        raise InvalidInput(f"expected an embedder or its name, not {type(embedder).__name__}: {_known()}")
    if given:
        raise InvalidInput(
            f"the embedder was passed as an object: set {', '.join(sorted(given))} on it instead"
        )
    return embedder


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "CachedEmbedder",
    "DefaultEmbedder",
    "Embedded",
    "Embedder",
    "EmbeddingSpec",
    "HostedEmbedder",
    "Kind",
    "LexicalEmbedder",
    "LocalEmbedder",
    "PieceEmbedder",
    "Vectors",
    "VoyageEmbedder",
    "embedded",
    "embedder_from",
]
