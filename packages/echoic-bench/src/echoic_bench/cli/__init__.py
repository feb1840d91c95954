"""The commands `echoic bench` and `echoic tune`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from echoic.cli.settings import Settings
    from echoic.embedding.base import Embedder


def embedder_of(settings: Settings, *, vectors_only: bool = False) -> Embedder:
    """The embedder of the settings itself: what is missing must end a measurement, not limit it."""
    from echoic.embedding import embedder_from
    from echoic_bench.corpus import VectorsOnly

    local = settings.embedder.partition("?")[0].partition(":")[0] == "local"
    embedder = embedder_from(settings.embedder, model_dir=settings.weights if local else None)
    return VectorsOnly(embedder) if vectors_only else embedder


__all__ = ["embedder_of"]
