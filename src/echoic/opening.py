"""The way in: from a URL and the name of an embedder to a memory service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.embedding.base import Embedder
    from echoic.memory.service import GlobalWrites, MemoryService
    from echoic.memory.sharing import Classifier


def open(  # noqa: A001 - echoic.open is the way in
    url: str = "sqlite:///echoic.db",
    *,
    embedder: str | Embedder = "local",
    model: object = None,
    global_writes: GlobalWrites = "propose",
    classifier: Classifier | None = None,
    fusion: str = "blend",
) -> MemoryService:
    """Memory kept at `url`. Nothing is opened until `async with`, or `await` of its `open()`.

    Args:
        url: "sqlite:///echoic.db" (relative; four slashes for an absolute path), "files:///dir",
            "memory://".
        embedder: "local" (MiniLM on this machine), "local:int8", "lexical" (words and sounds only, nothing
            to install), a hosted one such as "voyageai:voyage-3.5-lite", or one of your own.
        model: a language model that joins the rules in forming memories. Not in this version: None.
        global_writes: what a caller's global memory does: "propose" waits for an operator, "auto" does not.
        classifier: decides what may be global; rules by default.
        fusion: "blend", or "rrf" as MongoDB's $rankFusion computes it.

    Raises:
        InvalidInput: a URL, embedder, fusion or mode that is not known.
    """
    from echoic.embedding import embedder_from
    from echoic.memory.service import MemoryService
    from echoic.ranking.fusion import FUSIONS
    from echoic.stores import store_from

    if model is not None:
        raise InvalidInput(f"model={model!r}: this version forms memories by rules only; leave it out")
    if global_writes not in {"auto", "propose"}:
        raise InvalidInput(f"global_writes must be 'auto' or 'propose', not {global_writes!r}")
    if fusion not in FUSIONS:
        raise InvalidInput(f"unknown fusion {fusion!r}: use one of {', '.join(FUSIONS)}")
    return MemoryService(
        store_from(url),
        embedder_from(embedder),
        global_writes=global_writes,
        classifier=classifier,
        fusion=fusion,
    )
