"""Checks of names, texts, times and speakers where they enter, so that no layer below has to doubt them.

Text is any Unicode except NUL and lone surrogates, and comes back exactly as it went in; times are aware.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final, get_args

from echoic.errors import InvalidInput

MAX_KEY_CHARACTERS = 256
MAX_TEXT_BYTES = 32 * 1024
"""The largest value or utterance, in UTF-8. Longer texts belong in documents, not in memory."""
MIN_DISTINCT_CHARACTERS: Final = 8
"""The least number of different characters in a secret. Of 32 random hexadecimal digits fewer differ once in
27 million times."""
_ORDERS: Final = ("abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS: Final = frozenset(
    pair for order in _ORDERS for a, b in pairwise(order) for pair in (a + b, b + a)
)


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


def checked_secrets(secrets: Mapping[str, str], address: str) -> list[str]:
    """Warnings about secrets that are easy to guess, for a server that only this machine can reach.

    Args:
        secrets: by what they are called. Empty ones are not set.
        address: what the server listens on.

    Raises:
        InvalidInput: one is easy to guess, and `address` can be reached from other machines.
    """
    warnings = list[str]()
    for what, secret in secrets.items():
        weakness = _weakness(secret) if secret else None
        if weakness is None:
            continue
        if not is_loopback(address):
            raise InvalidInput(
                f"{what} is easy to guess: {weakness}. Other machines can reach {address}: set a random one, "
                "as `python -c 'import secrets; print(secrets.token_urlsafe(32))'` prints it"
            )
        warnings.append(f"{what} is easy to guess: {weakness}. It is refused on any address but loopback")
    return warnings


def _weakness(secret: str) -> str | None:
    """Why `secret` is easy to guess; None: nothing shows that it is. No list of words is looked at."""
    text, seen, foreseen = secret.lower(), set[str](), 0
    distinct = len(set(text))
    if distinct < MIN_DISTINCT_CHARACTERS:
        return f"it has {distinct} different characters, {MIN_DISTINCT_CHARACTERS} at least"
    for before, last, this in zip(f" {text}", text, text[1:], strict=False):
        three = before + last + this
        foreseen += last == this or last + this in _NEIGHBOURS or three in seen
        seen.add(three)
    if foreseen * 3 < len(text) * 2:  # of random hexadecimal digits a fifth are foreseen
        return None
    return "it repeats itself, or follows an order such as 'abc' or '123'"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on `host`, a name or an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


USER: Final = "user"
AGENT: Final = "agent"

_NAMES: Final = {
    USER: ("user", "human", "caller", "customer", "client", "end user"),
    AGENT: (
        *("agent", "assistant", "ai", "bot", "chatbot", "voicebot", "model", "llm", "language model"),
        *(f"{kind} {role}" for kind in ("ai", "voice", "virtual") for role in ("agent", "assistant")),
    ),
}
ROLES: Final = {name: role for role, names in _NAMES.items() for name in names}
"""What frameworks and transcripts call the two roles, in small letters with single spaces."""
_NOBODY: Final = frozenset(
    "system developer tool tools function memory context unknown speaker person participant".split()
)
"""What is no utterance of anybody's, and labels that do not say whose it is."""
_GAP: Final = re.compile(r"[\s_-]+")
_NUMBERED: Final = re.compile(r"(.*?)[ #]*[0-9]+")
_LABEL: Final = re.compile(r"[a-z0-9_.@+-]+")
"""A role nobody told us of, or an id: people's names have a capital, a space or letters of another script."""


def role_of(speaker: str) -> str | None:
    """The role, "user" or "agent", that goes by the name `speaker`; None: it is no name of a role."""
    return ROLES.get(_folded(speaker))


def checked_speaker(speaker: str) -> str:
    """`speaker` as it is kept: "user" or "agent" by whatever name, or a person's own name as it is written.

    Raises:
        InvalidInput: it names neither a role nor a person.
    """
    folded = _folded(speaker)
    if folded in ROLES:
        return ROLES[folded]
    numbered = _NUMBERED.fullmatch(folded)
    without_number = numbered[1] if numbered else folded
    if (numbered and without_number in ROLES) or without_number in _NOBODY or _LABEL.fullmatch(speaker):
        raise InvalidInput(
            f"speaker {speaker!r:.40} is neither a role nor a person's name. Say 'user' (also "
            f"{', '.join(_NAMES[USER][1:])}) for whoever is remembered, 'agent' (also "
            f"{', '.join(_NAMES[AGENT][1:9])}), or, where several people talk, a name with a capital such as "
            "'Ana'. Nothing is learned from other people's turns; what a system or a tool says is not a turn"
        )
    return speaker


def _folded(speaker: str) -> str:
    return _GAP.sub(" ", speaker.strip().casefold())
