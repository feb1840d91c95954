"""Codes that link a telephone to an identity of a browser: given there, said or typed here, good once.

Held by the process that gave them: a code lives for minutes, and one that is lost is asked for again.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from echoic.adapters.twilio.claims import CODE_DIGITS
from echoic.types import checked_name

LIFETIME_S: Final = 600.0
MAX_GUESSES: Final = 20
"""Wrong codes of all callers within `LIFETIME_S`; then none is good until it is quieter. With a hundred codes
out, guessing succeeds once in five hundred such times.
"""
MAX_CODES: Final = 1000


@dataclass(frozen=True, slots=True)
class _Given:
    user: str
    until: float


class LinkCodes:
    """Gives out codes and takes them.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._given: dict[bytes, _Given] = {}
        self._wrong: deque[float] = deque(maxlen=MAX_GUESSES)

    def give(self, user: str) -> str:
        """A new code for `user`; the one given before is good no longer."""
        checked_name(user, "user")
        self._tidy()
        self._given = {mark: given for mark, given in self._given.items() if given.user != user}
        while len(self._given) >= MAX_CODES:
            del self._given[next(iter(self._given))]
        while True:
            code = f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"
            if self._mark(code) not in self._given:
                break
        self._given[self._mark(code)] = _Given(user, self._clock() + LIFETIME_S)
        return code

    @property
    def waiting(self) -> bool:
        """Whether any code is out."""
        self._tidy()
        return bool(self._given)

    def take(self, code: str) -> str | None:
        """Whose `code` is; None: nobody's. It is good once."""
        self._tidy()
        if len(self._wrong) == MAX_GUESSES:
            return None
        given = self._given.pop(self._mark(code), None)
        if given is None:
            self._wrong.append(self._clock())
            return None
        return given.user

    def _mark(self, code: str) -> bytes:
        # looked up by a keyed hash, so that how long it takes tells nothing of the codes that are out
        return hmac.digest(self._key, code.encode(), hashlib.sha256)

    def _tidy(self) -> None:
        now = self._clock()
        self._given = {mark: given for mark, given in self._given.items() if given.until > now}
        while self._wrong and self._wrong[0] < now - LIFETIME_S:
            self._wrong.popleft()


__all__ = ["LIFETIME_S", "MAX_GUESSES", "LinkCodes"]
