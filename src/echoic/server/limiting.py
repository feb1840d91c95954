"""How often somebody may ask, counted in this process. Behind the `RateLimiter` seam of the settings.

It is the generic cell rate algorithm (ITU-T I.371, annex A): a number for each who asks, no queue, no timer,
no task. Several servers that should count together need a limiter of their own behind the same seam.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from echoic.errors import InvalidInput, brief

_SECONDS: Final = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_RATE: Final = re.compile(r"([0-9]{1,9})/(second|minute|hour)")
_SWEEP: Final = 1024
"""Principals kept before those who have not asked for long are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """So many requests in so long a time, all at once or spread over it."""

    requests: int
    seconds: float

    @classmethod
    def of(cls, text: str) -> Self:
        """A rate as it is written: "600/minute".

        Raises:
            InvalidInput: it is not written so, or lets nobody pass.
        """
        read = _RATE.fullmatch(text.strip().lower())
        if read is None or int(read[1]) == 0:
            raise InvalidInput(f"{brief(text)} is no rate: write '600/minute', or /second or /hour")
        return cls(requests=int(read[1]), seconds=_SECONDS[read[2]])


USER: Final = Rate(requests=600, seconds=60.0)
"""Of one caller: ten a second, sustained. A voice agent asks once or twice a turn."""
ADDRESS: Final = Rate(requests=60, seconds=60.0)
"""Of one address, for what needs no identity: asking for one. Behind one address may be an office."""
OPERATOR: Final = Rate(requests=600, seconds=60.0)
REFUSED: Final = Rate(requests=30, seconds=60.0)
"""Tokens and keys of one address that are not good."""


class CellLimiter:
    """Lets each principal ask at a rate, and makes whoever asks more wait.

    Args:
        user: of one caller; None: as often as they like.
        address: of one address that named nobody.
        operator: of the operator.
        refused: of tokens and keys from one address that are not good.
        clock: seconds, never going back.
    """

    def __init__(
        self,
        *,
        user: Rate | None = USER,
        address: Rate = ADDRESS,
        operator: Rate = OPERATOR,
        refused: Rate = REFUSED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rates = {
            "user": user,
            "address": address,
            "operator": operator,
            "refused": refused,
        }
        self._clock = clock
        self._due: dict[str, float] = {}
        self._sweep_at = _SWEEP

    async def retry_after_s(self, principal: str) -> float | None:
        """Count one request of `principal`; how long it must wait, in seconds, or None to let it pass.

        A request that is refused is not counted: whoever waits as long as told is let pass.
        """
        rate = self._rates.get(principal.partition(":")[0], self._rates["address"])
        if rate is None:
            return None
        now = self._clock()
        each_s = rate.seconds / rate.requests
        due = max(self._due.get(principal, now), now)
        wait_s = due - now - (rate.seconds - each_s)
        if wait_s > each_s * 1e-6:  # less is what adding up fractions leaves
            return wait_s
        self._due[principal] = due + each_s
        if len(self._due) > self._sweep_at:
            self._sweep(now)
        return None

    def _sweep(self, now: float) -> None:
        """Let go of everyone whose time has come: they are as if they had never asked."""
        self._due = {principal: due for principal, due in self._due.items() if due > now}
        self._sweep_at = max(_SWEEP, 2 * len(self._due))


__all__ = ["ADDRESS", "OPERATOR", "REFUSED", "USER", "CellLimiter", "Rate"]
