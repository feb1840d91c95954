"""What a process that serves calls limits: how many go on at once, and pauses of the garbage collector.

A full collection looks at every object there is, and nothing else runs meanwhile. With the providers' clients
loaded that is a quarter of a million objects and 0.15 to 0.3 s (`benchmarks/voice.py`): a gap that a caller
hears, often when a line is opened for another agent.
"""

from __future__ import annotations

import gc
from collections import Counter

from echoic.errors import InvalidInput, NotAllowed, brief
from echoic.types import Scope


class CallLimits:
    """Shared by the sessions of a server.

    Args:
        per_user: calls of one user at once.
        total: calls at once.

    Raises:
        InvalidInput: a limit below 1.
    """

    def __init__(self, *, per_user: int = 2, total: int = 100) -> None:
        if per_user < 1 or total < 1:
            raise InvalidInput(
                f"limits must be at least 1, not per_user={brief(per_user)}, total={brief(total)}"
            )
        self.per_user = per_user
        self.total = total
        self._held: Counter[Scope] = Counter()

    @property
    def calls(self) -> int:
        """How many are going on."""
        return self._held.total()

    def enter(self, scope: Scope) -> None:
        """Count a call that begins.

        Raises:
            NotAllowed: there are as many as there may be.
        """
        self.check_user(scope)
        if self._held.total() >= self.total:
            raise NotAllowed(f"there are {self.total} calls already; try again in a moment")
        self._held[scope] += 1

    def check_user(self, scope: Scope) -> None:
        """See whether one more call of a user may begin.

        Raises:
            NotAllowed: they have as many as they may.
        """
        if self._held[scope] >= self.per_user:
            raise NotAllowed(f"this user has {self.per_user} calls already; end one first")

    def leave(self, scope: Scope) -> None:
        """Count it no longer."""
        self._held[scope] -= 1
        if self._held[scope] <= 0:
            del self._held[scope]


def freeze_heap() -> int:
    """Collect once, then leave what is alive out of all later collections; how many objects that spares.

    Call it when everything is loaded and memory is open, and before the first call: it takes as long as the
    pause it prevents. What is freed by itself later is freed as ever; only what was alive now and becomes
    garbage in a cycle stays until the process ends. `gc.unfreeze()` takes it back. It concerns the whole
    process, which is why nothing in the library calls it unasked.
    """
    gc.collect()
    gc.freeze()
    return gc.get_freeze_count()
