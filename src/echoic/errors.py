"""What can go wrong, as one tree. A message says what happened, to which value, and the way out.

EchoicError
├── InvalidInput (also ValueError)      the caller's value cannot be kept; nothing was written
├── NotAllowed                          the value is fine, the caller may not do this
├── NotOpen                             used before open() or after aclose()
├── StoreError
│   ├── StoreUnavailable                could not look or could not keep; safe to retry
│   │   └── StoreFull                   no space left; reads go on, writes resume when space returns
│   ├── QuotaExceeded                   as much is kept as may be; nothing was written
│   ├── WriteConflict                   someone else wrote first; nothing was written; retry
│   ├── StoreCorrupt                    the bytes are not what was written; left untouched
│   └── StoreTooNew                     written by a newer version; left untouched
└── EmbedderError
    ├── EmbedderMissing (also ImportError)   an extra or the weights are not installed
    ├── EmbedderUnavailable             the model could not be reached; safe to retry
    └── EmbeddingMismatch               the store holds vectors of another model
"""

from __future__ import annotations


class EchoicError(Exception):
    """Anything Echoic raises on purpose. Never raised directly."""


class InvalidInput(EchoicError, ValueError):
    """The value cannot be kept as it is. The message names the value and the way out; nothing was written."""


class NotAllowed(EchoicError):
    """The value is fine, but the caller may not do this to it."""


class NotOpen(EchoicError):
    """Used before `open()` or after `aclose()`."""


class StoreError(EchoicError):
    """Anything a store raises. Never raised directly."""


class StoreUnavailable(StoreError):
    """The store could not be reached or could not make a write durable. Nothing was acknowledged.

    Safe to retry.
    """


class StoreFull(StoreUnavailable):
    """There is no space left. Reads go on; writes resume by themselves when space returns."""


class QuotaExceeded(StoreError):
    """As much is kept of a user or a deployment as may be. Nothing was written; a retry does not help.

    What is there can be read, corrected, taken back and forgotten.
    """


class WriteConflict(StoreError):
    """A record was not at the version the write expected. Nothing was written; read again and retry."""


class StoreCorrupt(StoreError):
    """The stored bytes are not what was written. They are left untouched for a person to look at."""


class StoreTooNew(StoreError):
    """The file was written by a newer version of Echoic and is left untouched."""


class EmbedderError(EchoicError):
    """Anything an embedder raises. Never raised directly."""


class EmbedderMissing(EmbedderError, ImportError):
    """The embedder's packages or weights are not on this machine. The message says how to get them."""


class EmbedderUnavailable(EmbedderError):
    """The model could not be reached or failed. Nothing is lost; what waits is embedded when it returns."""


class EmbeddingMismatch(EmbedderError):
    """The store holds vectors of another model. Vectors of two models are never mixed."""

    def __init__(self, message: str, *, model: str | None = None, dimensions: int = 0) -> None:
        """`model` and `dimensions` are the store's, where it is a store that refuses."""
        super().__init__(message)
        self.model = model
        self.dimensions = dimensions


__all__ = [
    "EchoicError",
    "EmbedderError",
    "EmbedderMissing",
    "EmbedderUnavailable",
    "EmbeddingMismatch",
    "InvalidInput",
    "NotAllowed",
    "NotOpen",
    "QuotaExceeded",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreTooNew",
    "StoreUnavailable",
    "WriteConflict",
]
