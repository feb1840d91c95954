"""How many calls may be going on at once, for one user and in all. Of one process."""

from __future__ import annotations

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


__all__ = ["CallLimits"]
