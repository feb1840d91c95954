"""`open`: from a URL and the name of an embedder to a memory service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import unquote

from echoic.errors import InvalidInput, brief

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from echoic.embedding.base import Embedder
    from echoic.memory.service import MemoryOptions, MemoryService
    from echoic.ranking.fusion import Fusion, FusionWeights
    from echoic.stores.base import Store
    from echoic.stores.documents import Documents

FORMAT = "echoic.weights"
"""The `format` of a weights file written by `echoic tune`."""
VERSION = 1


def open(  # noqa: A001 - echoic.open is the way in
    url: str | Store | Documents = "sqlite:///echoic.db",
    *,
    embedder: str | Embedder | None = None,
    model: str | Model | None = None,
    fusion: str = "blend",
    compliance: str | Path | None = None,
    **options: Unpack[MemoryOptions],
) -> MemoryService:
    """A memory service for the store at `url`. Nothing is opened until `async with` or `await
    service.open()`.

    Args:
        url: "sqlite:///echoic.db" (relative; four slashes for an absolute path), "files:///dir",
            "postgresql://…", "mongodb://…", "memory://"; or your own `Store` or `Documents`.
        embedder: "local" (MiniLM on this machine), "local:int8", "lexical" (words and sounds only), a hosted
            one such as "voyageai:voyage-3.5-lite" or "openai:my-model?dimensions=768", or your own
            `Embedder`. None: "local"; if its packages or weights are not installed, a warning says so, search
            uses words and sounds, and records are embedded once they are installed.
        model: a language model, "provider:model" as in PydanticAI or a PydanticAI model. In addition to the
            rules it forms memories, decides what may be global, and summarises long calls, always after the
            caller was answered. None: rules only.
        fusion: "blend", "rrf" (MongoDB's $rankFusion formula), or a weights file written by `echoic tune`.
        compliance: the folder of the erasure log, which a restored backup replays (docs/backup.md), and of
            the key that signs receipts. None: "echoic.db.compliance" beside a SQLite file or a folder of
            files; no folder for other stores.
        options: what is stored, shared, masked and destroyed; see `echoic.MemoryOptions`.

    Raises:
        InvalidInput: an argument has an invalid value, or two arguments contradict each other.
    """
    from echoic.embedding import default_embedder, embedder_from
    from echoic.memory.compliance import Compliance
    from echoic.memory.service import MemoryService
    from echoic.stores import store_of

    folder = compliance if compliance is not None else compliance_folder(url)
    return MemoryService(
        store_of(url),
        default_embedder() if embedder is None else embedder_from(embedder),
        fusion=fusion_from(fusion),
        compliance=None if folder is None else Compliance(folder),
        **_of_model(model),
        **options,
    )


def compliance_folder(url: object) -> Path | None:
    """The compliance folder beside the store at `url`; None if the store has no local path."""
    scheme, _, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    place = unquote(rest.partition("?")[0].removeprefix("/")).rstrip("/")
    if scheme.lower() not in {"sqlite", "files"} or not place:
        return None
    return Path(place).with_name(Path(place).name + ".compliance")


def _of_model(model: str | Model | None) -> dict[str, Any]:
    """The parts of a service that use a language model."""
    if model is None:
        return {}
    from echoic.models import classifier_from, extractor_from, summarizer_from

    return {
        "extractor": extractor_from(model),
        "second_judge": classifier_from(model),
        "summarizer": summarizer_from(model),
    }


def fusion_from(name: str) -> Fusion:
    """The fusion called `name`: "blend", "rrf", "text", "vector", or the path of a file written by `echoic
    tune`.

    Raises:
        InvalidInput: the fusion or file does not exist, or the file has other content.
    """
    from echoic.ranking.fusion import FUSIONS, Fusion, blend

    if name in FUSIONS:
        return FUSIONS[name]
    if not name.endswith(".json"):
        raise InvalidInput(
            f"unknown fusion {name!r}: use {', '.join(FUSIONS)}, or a .json file that `echoic tune` wrote"
        )
    try:
        given = json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the weights in {brief(name)} cannot be read: {error}") from error
    if not isinstance(given, dict) or (given.get("format"), given.get("version")) != (FORMAT, VERSION):
        raise InvalidInput(
            f"{brief(name)} holds no weights of version {VERSION}: write it with `echoic tune`"
        )
    broad, close = (_weights(given.get(part), f"{part} of {brief(name)}") for part in ("broad", "close"))
    return Fusion(partial(blend, broad=broad, close=close), FUSIONS["blend"].finding)


def _weights(given: Any, what: str) -> FusionWeights:
    from echoic.ranking.fusion import FusionWeights

    names = {field.name for field in fields(FusionWeights)}
    if not isinstance(given, Mapping) or set(given) != names:
        raise InvalidInput(f"{what} must name exactly the weights {', '.join(sorted(names))}")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
            raise InvalidInput(f"the weight {name} in {what} is not a finite number: {brief(value)}")
    return FusionWeights(**given)
