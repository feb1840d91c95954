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

import re
from typing import Final

MESSAGE_CHARACTERS: Final = 1000
"""A message is cut here, whatever was put into it."""
NAMED_CHARACTERS: Final = 80
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def brief(name: object) -> str:
    """`name` as a message may show it: a key, an id, a setting or a number; quoted, escaped and shortened.

    Never pass a text, a value or a question: messages must not contain what was said.
    """
    if name is None or isinstance(name, bool | int | float):
        return f"{name!r:.{NAMED_CHARACTERS}}"
    if not isinstance(name, str):
        return f"a value of type {type(name).__name__:.{NAMED_CHARACTERS}}"
    shown = f"{name[:NAMED_CHARACTERS]!r:.{2 * NAMED_CHARACTERS}}"
    return f"{shown}…" if len(name) > NAMED_CHARACTERS or not shown.endswith(shown[0]) else shown


def bounded(message: str) -> str:
    """`message` on one line, without characters that change how a terminal or a log shows it."""
    if len(message) > MESSAGE_CHARACTERS:
        message = f"{message[: MESSAGE_CHARACTERS - 1]}…"
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), message)


class EchoicError(Exception):
    """Anything Echoic raises on purpose. Never raised directly."""

    def __init__(self, message: str = "", *more: object) -> None:
        """`message` is bounded, whoever made it of whatever."""
        super().__init__(bounded(str(message)), *more)


class InvalidInput(EchoicError, ValueError):
    """The value cannot be kept as it is. The message names the value and the way out; nothing was written."""


class NotAllowed(EchoicError):
    """The value is valid, but the caller may not do this to it."""


class NotKept(NotAllowed):
    """The user wants it not kept, or not before they are asked; nothing was written."""

    def __init__(self, message: str = "", *, say: str = "") -> None:
        """`say` is the same in words an agent can say."""
        super().__init__(message)
        self.say = say


class NotOpen(EchoicError):
    """Something was used before `open()` or after `aclose()`."""


class StoreError(EchoicError):
    """Anything a store raises. Never raised directly."""


class StoreUnavailable(StoreError):
    """The store could not be reached or could not make a write durable. Nothing was acknowledged.

    Safe to retry.
    """


class StoreFull(StoreUnavailable):
    """There is no space left. Reads go on; writes resume by themselves when space returns."""


class QuotaExceeded(StoreError):
    """The quota of a user or a deployment is used up. Nothing was written; a retry does not help.

    What is there can be read, corrected, taken back and forgotten.
    """


class WriteConflict(StoreError):
    """A record was not at the version the write expected. Nothing was written; read again and retry."""


class StoreCorrupt(StoreError):
    """The stored bytes were changed or damaged. They are left untouched for a person to look at."""


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
    "bounded",
    "brief",
]
