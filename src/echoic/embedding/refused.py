"""Documents that a model refuses, and what is embedded in their place: they keep no others waiting.

A provider refuses a whole batch for one text: it is longer than the model reads, or the provider's filter
does not like it. Asked again it refuses again, so that nothing behind it would ever get a vector.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from echoic.embedding.base import Embedded, Embedder, embedded
from echoic.errors import InvalidInput

log = logging.getLogger(__name__)

NOTHING_SAID = "(silence)"
"""Embedded for what has no words that a model takes: it is found by its words alone, but waits no longer."""
BEGINNINGS = (2_000, 400)
"""Characters of a refused text that are tried then: 400 are fewer than the 512 tokens that the smallest
models read, whatever the language."""


async def embedded_documents(embedder: Embedder, texts: Sequence[str]) -> Embedded:
    """What `embedder` makes of `texts`; where it refuses one, of its beginning, or of `NOTHING_SAID`.

    Raises:
        EmbedderUnavailable: after retries; nothing was embedded.
        InvalidInput: it refuses not a text but the request, whatever the text.
    """
    given = [text if text.strip() else NOTHING_SAID for text in texts]
    try:
        return await embedded(embedder, given, "document")
    except InvalidInput:
        await embedded(embedder, [NOTHING_SAID], "document")  # refused too: then it is not for the text
    made = await _halved(embedder, given)
    pieces = [piece for one in made for piece in one.pieces or ()]
    whole = len(pieces) == len(texts)
    return Embedded(np.concatenate([one.vectors for one in made]), pieces if whole else None)


async def _halved(embedder: Embedder, texts: Sequence[str]) -> list[Embedded]:
    """All that is not refused in as few requests as that takes."""
    try:
        return [await embedded(embedder, texts, "document")]
    except InvalidInput:
        if len(texts) == 1:
            return [await _instead(embedder, texts[0])]
        half = len(texts) // 2
        return [*await _halved(embedder, texts[:half]), *await _halved(embedder, texts[half:])]


async def _instead(embedder: Embedder, refused: str) -> Embedded:
    for most in BEGINNINGS:
        beginning = refused[:most]
        if len(beginning) < len(refused) and beginning.strip():
            try:
                made = await embedded(embedder, [beginning], "document")
            except InvalidInput:
                continue
            log.warning("a text of %d characters was refused: its first %d were embedded", len(refused), most)
            return made
    log.warning("a text of %d characters was refused: it is found by its words alone", len(refused))
    return await embedded(embedder, [NOTHING_SAID], "document")


__all__ = ["BEGINNINGS", "NOTHING_SAID", "embedded_documents"]
