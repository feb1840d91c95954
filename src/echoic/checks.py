"""Checks of names, texts, times and speakers at the boundary, so that inner layers can rely on them.

Text is any Unicode except NUL and lone surrogates, and is stored exactly; times are aware.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, get_args

from echoic.errors import InvalidInput

MAX_KEY_CHARACTERS = 256
RESERVED: Final = "echoic."
"""How the names of deployments begin that hold Echoic's own records."""
MAX_TEXT_BYTES = 32 * 1024
"""The largest value or utterance, in bytes of UTF-8. Longer texts belong in documents, not in memory."""
MAX_SEARCHED_CHARACTERS: Final = 2000
"""The characters of a message that it is searched by."""
MIN_DISTINCT_CHARACTERS: Final = 8
"""The least number of different characters in a secret. 32 random hexadecimal digits have fewer once in 27
million times."""
_NESTING: Final = (Mapping, list, tuple)
_ORDERS: Final = ("abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS: Final = frozenset(
    pair for order in _ORDERS for a, b in pairwise(order) for pair in (a + b, b + a)
)


def has_members(value: object, protocol: type) -> bool:
    """Whether `value` has the members of a runtime-checkable protocol, also by `__getattr__`.

    From Python 3.12 on, `isinstance` overlooks those, as of an object that wraps another.
    """
    if isinstance(value, protocol):
        return True
    members = getattr(protocol, "__protocol_attrs__", None)
    # a MagicMock, or a database of PyMongo, has whatever it is asked for
    answers_all = hasattr(value, "no_member_of_any_protocol")
    return members is not None and not answers_all and all(hasattr(value, name) for name in members)


def checked_name(value: object, what: str) -> str:
    """`value` as a name (user, deployment, key, id): 1 to 256 characters of any Unicode without NUL.

    Raises:
        InvalidInput: it is empty, too long, or cannot be stored exactly.
    """
    name = _storable(value, what, "Nothing is read or written without one.")
    if len(name) > MAX_KEY_CHARACTERS:
        raise InvalidInput(
            f"{what} has {len(name)} characters, {MAX_KEY_CHARACTERS} at most. Use a shorter one."
        )
    return name


def checked_text(
    value: object, what: str, *, if_empty: str = "To take something back use delete or forget."
) -> str:
    """`value` as a text: not blank, at most 32 KiB of UTF-8, any Unicode without NUL.

    `what` names it in messages; `if_empty` says what to do if it is blank.

    Raises:
        InvalidInput: it is blank, too long, or cannot be stored exactly.
    """
    text = _storable(value, what, if_empty)
    if len(text) > MAX_TEXT_BYTES // 4 and len(text.encode()) > MAX_TEXT_BYTES:
        raise InvalidInput(
            f"{what} has {len(text.encode())} bytes, {MAX_TEXT_BYTES} at most. Shorten or split it."
        )
    return text


MAX_DEPTH: Final = 100
"""How deep lists and objects of a JSON value may be nested: what reads it calls itself at each level."""


def checked_depth(value: object, what: str) -> None:
    """Raise InvalidInput if the JSON `value` is nested deeper than `MAX_DEPTH`; `what` names it."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner = (
            one.values() if isinstance(one, Mapping) else one for one in level if isinstance(one, _NESTING)
        )
        level = [each for values in inner for each in values]
        if not level:
            return
    raise InvalidInput(
        f"{what} is nested deeper than {MAX_DEPTH} levels: make it flatter, or store it as text"
    )


def checked_query(value: object) -> str:
    """`value` as a search query.

    Raises:
        InvalidInput: it is blank, too long, or cannot be stored exactly.
    """
    return checked_text(value, "query", if_empty="There is nothing to search for.")


def checked_time(value: datetime, what: str) -> datetime:
    """`value` in UTC.

    Raises:
        InvalidInput: it has no time zone, or is out of range in UTC.
    """
    if not isinstance(value, datetime):
        raise InvalidInput(f"{what} must be a datetime, not {type(value).__name__:.80}")
    if value.tzinfo is UTC:
        return value
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidInput(f"{what} has no time zone. Say which, for example datetime.now(timezone.utc).")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput(f"{what} is outside the years 1 to 9999 in UTC") from error


_CLOCK_AHEAD: Final = timedelta(hours=14)
"""How far ahead a clock may seem to be: what sends its local time as UTC is ahead by up to 14 hours."""


def not_ahead(times: Sequence[datetime], now: datetime) -> list[datetime]:
    """`times` as a clock gives them that is right: until they have come, nothing could correct what was said.

    Those up to 14 hours ahead go back together, so that the last of them is `now`, and none goes before what
    is not ahead. What lies farther ahead has times of its own, such as the calls of a simulation.
    """
    ahead = max((at - now for at in times if now < at <= now + _CLOCK_AHEAD), default=timedelta())
    before = max((at for at in times if at <= now), default=datetime.min.replace(tzinfo=UTC))
    return [max(at - ahead, before) if now < at <= now + ahead else at for at in times]


def checked_secrets(secrets: Mapping[str, str], address: str) -> list[str]:
    """Warnings about weak secrets, by name, of a server on `address`. Empty secrets count as not set.

    Raises:
        InvalidInput: a secret is weak, and `address` can be reached from other machines.
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
    """Why `secret` is easy to guess; None if nothing shows that it is. No word list is used."""
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
    """Whether a server listening on `host`, a name or an address, is reachable from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def storable(text: str) -> str:
    """A transcript as the text of one turn: without characters that no store can keep, and cut to the
    limit.
    """
    return text.replace("\0", "").encode(errors="replace").decode()[: MAX_TEXT_BYTES // 4]


def searchable(text: str) -> str:
    """A message as a query: its end, where the question is. Blank if it has no words to search for."""
    return storable(text.rstrip()[-MAX_SEARCHED_CHARACTERS:]).strip()


def _storable(value: object, what: str, if_empty: str) -> str:
    """`value` as a text that stores keep exactly, and that is not blank."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string, not {type(value).__name__:.80}")
    if not value.strip():
        raise InvalidInput(f"{what} is empty. {if_empty}")
    if "\0" in value:
        raise InvalidInput(f"{what} holds a NUL character. Remove it first.")
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{what} holds half a character (a lone surrogate) at position {error.start}. "
            "Decode the text again, and replace what cannot be decoded."
        ) from error
    return value


class AsDict:
    """Makes pydantic accept and serialise a mapping of any class; by itself it serialises only dicts."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Called by pydantic only, so that this module does not import it."""
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
"""What frameworks and transcripts call the two roles, in lower case with single spaces."""
_NOBODY: Final = frozenset(
    "system developer tool tools function memory context unknown speaker person participant".split()
)
"""Labels of what nobody said, and labels that do not name a speaker."""
_GAP: Final = re.compile(r"[\s_-]+")
_NUMBERED: Final = re.compile(r"(.*?)[ #]*[0-9]+")
_LABEL: Final = re.compile(r"[a-z0-9_.@+-]+")
"""An unknown role or an id. People's names have a capital, a space or non-Latin letters."""


def role_of(speaker: str) -> str | None:
    """The role, "user" or "agent", that `speaker` is another name of; None if it is not one."""
    return ROLES.get(_folded(speaker))


def checked_speaker(speaker: str) -> str:
    """`speaker` as it is stored: "user" or "agent" for any name of a role, or a person's name unchanged.

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


@lru_cache(maxsize=1024)  # few speakers say many turns
def _folded(speaker: str) -> str:
    return _GAP.sub(" ", speaker.strip().casefold())
