"""The tree of exceptions. A message says what happened, to which value, and what to do.

EchoicError
├── InvalidInput (also ValueError)      the value cannot be stored; nothing was written
├── NotAllowed                          the value is valid, the caller may not do this
│   └── NotKept                         the user does not consent to storing it, or has to be asked first
├── NotOpen                             used before open() or after aclose()
├── StoreError
│   ├── StoreUnavailable                the store could not read or write; safe to retry
│   │   └── StoreFull                   no space left; reads go on, writes resume when space returns
│   ├── QuotaExceeded                   the quota is used up; nothing was written
│   ├── WriteConflict                   someone else wrote first; nothing was written; retry
│   ├── StoreCorrupt                    the bytes are not what was written; left untouched
│   └── StoreTooNew                     written by a newer version; left untouched
└── EmbedderError
    ├── EmbedderMissing (also ImportError)   an extra or the weights are not installed
    ├── EmbedderUnavailable             the model could not be reached; safe to retry
    └── EmbeddingMismatch               the store has vectors of another model
"""

from __future__ import annotations

import re
from typing import Final

MESSAGE_CHARACTERS: Final = 1000
"""The longest message; longer ones are cut."""
NAMED_CHARACTERS: Final = 80
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def brief(name: object) -> str:
    """`name` as a message may show it: a key, an id, a setting or a number; quoted, escaped and shortened.

    Never pass a text, a value or a query: messages must not contain what was said.
    """
    if name is None or isinstance(name, bool | int | float):
        return f"{name!r:.{NAMED_CHARACTERS}}"
    if not isinstance(name, str):
        return f"a value of type {type(name).__name__:.{NAMED_CHARACTERS}}"
    shown = f"{name[:NAMED_CHARACTERS]!r:.{2 * NAMED_CHARACTERS}}"
    return f"{shown}…" if len(name) > NAMED_CHARACTERS or not shown.endswith(shown[0]) else shown


def bounded(message: str) -> str:
    """`message` on one line, without control characters that would affect a terminal or a log."""
    if len(message) > MESSAGE_CHARACTERS:
        message = f"{message[: MESSAGE_CHARACTERS - 1]}…"
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), message)


class EchoicError(Exception):
    """Base class of all exceptions that Echoic raises on purpose. Never raised directly."""

    def __init__(self, message: str = "", *more: object) -> None:
        """`message` is cut to `MESSAGE_CHARACTERS` and put on one line."""
        super().__init__(bounded(str(message)), *more)


class InvalidInput(EchoicError, ValueError):
    """The value cannot be stored as it is. The message says which value and what to do; nothing was
    written.
    """

    def __init__(self, message: str = "", *more: object, field: str | None = None) -> None:
        """`field` names the argument, for a server that answers with its place in the request."""
        super().__init__(message, *more)
        self.field = field


class NotAllowed(EchoicError):
    """The value is valid, but the caller may not do this."""


class NotKept(NotAllowed):
    """The user does not consent to storing it, or has to be asked first; nothing was written."""

    def __init__(self, message: str = "", *, say: str = "") -> None:
        """`say` is the message in words an agent can say."""
        super().__init__(message)
        self.say = say


class NotOpen(EchoicError):
    """It was used before `open()` or after `aclose()`."""


class StoreError(EchoicError):
    """Base class of the exceptions of stores. Never raised directly."""


class StoreUnavailable(StoreError):
    """The store could not be reached or could not make a write durable. Nothing was acknowledged; safe to
    retry.
    """


class StoreFull(StoreUnavailable):
    """There is no space left. Reads go on; writes resume by themselves when there is space again."""


class QuotaExceeded(StoreError):
    """The quota of a user or a deployment is used up. Nothing was written; a retry does not help.

    Stored records can still be read, corrected, retracted and forgotten.
    """


class WriteConflict(StoreError):
    """A record was not at the version the write expected. Nothing was written; read again and retry."""


class StoreCorrupt(StoreError):
    """The stored bytes were changed or damaged. They are left untouched for a person to examine."""


class StoreTooNew(StoreError):
    """The file was written by a newer version of Echoic and is left untouched."""


class EmbedderError(EchoicError):
    """Base class of the exceptions of embedders. Never raised directly."""


class EmbedderMissing(EmbedderError, ImportError):
    """The embedder's packages or weights are not installed. The message says how to install them."""


class EmbedderUnavailable(EmbedderError):
    """The model could not be reached or failed. Nothing is lost; records are embedded when it is back."""


class EmbeddingMismatch(EmbedderError):
    """The store has vectors of another model. Vectors of two models are never mixed."""

    def __init__(self, message: str, *, model: str | None = None, dimensions: int = 0) -> None:
        """`model` and `dimensions` are the store's, if a store raises it."""
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
    "NotKept",
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
