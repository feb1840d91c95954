"""Checks of names, texts and times where they enter, so that no layer below has to doubt them.

Text is any Unicode except NUL and lone surrogates, and comes back exactly as it went in; times are aware.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args

from echoic.errors import InvalidInput

MAX_KEY_CHARACTERS = 256
MAX_TEXT_BYTES = 32 * 1024
"""Of one value or utterance, in UTF-8. Longer texts belong in documents, not in memory."""


def checked_name(value: object, what: str) -> str:
    """`value` as a name (user, deployment, key, id): 1 to 256 characters of any Unicode without NUL.

    Raises:
        InvalidInput: it is empty, too long, or cannot be stored exactly.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string, not {type(value).__name__:.80}")
    if not value.strip():
        raise InvalidInput(f"{what} is empty. Nothing is read or written without one.")
    if len(value) > MAX_KEY_CHARACTERS:
        raise InvalidInput(
            f"{what} has {len(value)} characters, {MAX_KEY_CHARACTERS} at most. "
            "Use a shorter name and put the rest in the value."
        )
    return _storable(value, what)


def checked_text(
    value: object, what: str, *, if_empty: str = "To take something back use delete or forget."
) -> str:
    """`value` as a text: not blank, at most 32 KiB of UTF-8, any Unicode without NUL.

    Args:
        value: anything.
        what: what it is, for the message.
        if_empty: the way out where it is blank.

    Raises:
        InvalidInput: it is blank, too long, or cannot be stored exactly.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string, not {type(value).__name__:.80}")
    if not value.strip():
        raise InvalidInput(f"{what} is empty. {if_empty}")
    _storable(value, what)
    if len(value) > MAX_TEXT_BYTES // 4 and len(value.encode()) > MAX_TEXT_BYTES:
        raise InvalidInput(
            f"{what} has {len(value.encode())} bytes, {MAX_TEXT_BYTES} at most. "
            "Split it into several memories."
        )
    return value


def checked_query(value: object) -> str:
    """`value` as something to search for.

    Raises:
        InvalidInput: it is blank, too long, or cannot be stored exactly.
    """
    return checked_text(value, "query", if_empty="There is nothing to search for.")


def checked_time(value: datetime, what: str) -> datetime:
    """`value` in UTC.

    Raises:
        InvalidInput: it carries no time zone, so the moment it means is unknown, or is none in UTC.
    """
    if not isinstance(value, datetime):
        raise InvalidInput(f"{what} must be a datetime, not {type(value).__name__:.80}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidInput(f"{what} has no time zone. Say which, for example datetime.now(timezone.utc).")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(f"{what} is outside the years 1 to 9999 in UTC") from error


def storable(text: str) -> str:
    """What can be kept of a transcript as one turn: all of it, but for what no store can hold exactly."""
    return text.replace("\0", "").encode(errors="replace").decode()[: MAX_TEXT_BYTES // 4]


def _storable(value: str, what: str) -> str:
    if "\0" in value:
        raise InvalidInput(f"{what} holds a NUL character. Remove it first.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{what} holds half a character (a lone surrogate) at position {error.start}. "
            "Decode the text again, with errors='replace' if need be."
        ) from error
    return value


class AsDict:
    """Marks a mapping of any class for pydantic, which serialises only dicts by itself."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Called by pydantic alone, so that nothing here has to import it."""
        from pydantic_core import core_schema

        keys, values = get_args(source)
        schema = handler.generate_schema(dict[keys, values])  # type: ignore[valid-type]
        plain = core_schema.wrap_serializer_function_ser_schema(lambda value, dump: dump(dict(value)))
        return core_schema.no_info_before_validator_function(dict, schema, serialization=plain)
