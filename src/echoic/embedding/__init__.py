"""Embedders: texts in, unit vectors out. `embedder_from` creates one from its name.

Importing this loads no model runtime, no provider and no HTTP client; opening an embedder does.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray

from echoic.checks import has_members
from echoic.embedding.base import Embedder, Kind, Vectors, checked_texts, unit
from echoic.errors import InvalidInput
from echoic.text import ANALYSIS, STOP, cut, word_of
from echoic.types import EmbeddingSpec

if TYPE_CHECKING:
    from echoic.embedding.weights import Variant

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


def default_embedder() -> Embedder:
    """The local embedder, which also opens without its packages or weights, with a warning."""
    from echoic.embedding.local import DefaultEmbedder

    return DefaultEmbedder()


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
    from echoic.embedding.hosted_model import KEYS

    return (
        'known are "local", "local:int8", "local:<folder or hub id>", "lexical", "voyageai:<model>", such as '
        '"voyageai:voyage-3.5-lite", '
        f'and "<provider>:<model>", such as "openai:text-embedding-3-small", of {", ".join(KEYS)}'
    )


def _as_it_is(embedder: object, given: Mapping[str, Any]) -> Embedder:
    if not has_members(embedder, Embedder):
        raise InvalidInput(f"expected an embedder or its name, not {type(embedder).__name__}: {_known()}")
    if given:
        raise InvalidInput(
            f"the embedder was passed as an object: set {', '.join(sorted(given))} on it instead"
        )
    return cast("Embedder", embedder)


# -- vectors from words, spelling and sound

# Shares of a word's squared length: enough in the stem that whole words decide, enough in spelling and sound
# that a word heard or typed wrongly still finds its like.
_STEM = 0.5
_SPELLING = 0.35
_SOUND = 0.15

_LEXICAL_REVISION = -2  # raise it when features or weights change (analyses 3 and 4 changed none)
_LONGEST_WORD = 64  # characters; anything longer is not a word, and would fill the cache
_INLINE_CHARACTERS = 2_000  # about 0.5 ms of unseen words; more goes to a thread


class LexicalEmbedder:
    """Hashed features of words: stems, character 3- to 5-grams with word boundaries, Double Metaphone codes.

    It needs no weights, and tolerates typos and misheard names. It does not represent meaning: "car" and
    "automobile" have nothing in common. Features are hashed into a fixed number of dimensions with a sign
    (Weinberger et al. 2009), so there is no vocabulary, and a text's vector never depends on other texts.

    Stop words count only in a text without other words. A word said n times has the weight 1 + ln n.
    """

    semantic = False

    def __init__(self, dimensions: int = 768) -> None:
        """Ready at once; `open()` has nothing to do.

        Args:
            dimensions: with more, fewer features collide; memory grows with them.

        Raises:
            InvalidInput: fewer than 64 dimensions, with which unrelated words would look alike.
        """
        if dimensions < 64:
            raise InvalidInput(f"a lexical embedding needs at least 64 dimensions, not {dimensions!r}")
        # The sum grows with either version, so that vectors of two versions are never mixed.
        self.spec = EmbeddingSpec(f"lexical:{ANALYSIS + _LEXICAL_REVISION}", dimensions)

    async def open(self) -> None:
        """Do nothing: there is nothing to load."""

    async def aclose(self) -> None:
        """Do nothing: there is nothing to load."""

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """See `Embedder`; raises InvalidInput if `texts` are not strings that can be encoded."""
        checked = checked_texts(texts, kind)
        if sum(map(len, checked)) <= _INLINE_CHARACTERS:
            return _lexical_vectors(checked, self.spec.dimensions)
        return await asyncio.to_thread(_lexical_vectors, checked, self.spec.dimensions)


def _lexical_vectors(texts: Sequence[str], dimensions: int) -> Vectors:
    vectors = np.zeros((len(texts), dimensions))
    for row, text in enumerate(texts):
        for word, count in _counted(text).items():
            places, values = _hashed_features(word, dimensions)
            np.add.at(vectors[row], places, values * (1 + math.log(count)))
        if not vectors[row].any():
            # A text without words ("…", "👍") still gets a unit vector, and all such texts the same one: a
            # row of zeros would become NaN as soon as someone divides by its length.
            vectors[row, 0] = 1.0
    return unit(vectors.astype(np.float32))


def _counted(text: str) -> Counter[str]:
    found = [word[:_LONGEST_WORD] for word in cut(text)]
    return Counter([word for word in found if word not in STOP] or found)


@lru_cache(maxsize=16_384)
def _hashed_features(word: str, dimensions: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The indices and weights of a folded word's features; an index may occur twice."""
    hashed = [(*_place(feature, dimensions), weight) for feature, weight in _features(word)]
    places = np.array([place for place, _, _ in hashed], np.intp)
    values = np.array([sign * weight for _, sign, weight in hashed])
    return places, values


def _features(word: str) -> Iterator[tuple[str, float]]:
    """The features of a word; the squares of their weights sum to at most 1."""
    analysed = word_of(word)
    yield f"w:{analysed.stem}", math.sqrt(_STEM)
    bounded = f"<{word}>"
    grams = [bounded[i : i + n] for n in (3, 4, 5) for i in range(len(bounded) - n + 1)]
    for gram in grams:
        yield f"g:{gram}", math.sqrt(_SPELLING / len(grams))
    for code in analysed.codes:
        yield f"s:{code}", math.sqrt(_SOUND / len(analysed.codes))


def _place(feature: str, dimensions: int) -> tuple[int, float]:
    """The index and sign of `feature`, the same in every process, unlike Python's own hash."""
    number = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
    return (number >> 1) % dimensions, 1.0 if number & 1 else -1.0
