"""Telephone lines, and to whom they are linked: a log of what happened to each, in a scope of its own.

A line is known by an identity made of its number, not by the number. What happened is never overwritten: who
called from it, to whom it was linked, that the link was undone. So all of it can be undone and forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from echoic.memory.service import MemoryService
from echoic.types import checked_name

LOG: Final = "phone-identity"
"""The conversation of a scope that holds its log; nothing is said in it."""
AGENT: Final = "phone"


@dataclass(frozen=True, slots=True)
class Line:
    """What the log of a line comes to."""

    people: Mapping[str, str]
    """Who calls from it besides its first caller: name -> user."""
    linked: str | None
    """Whose it is, where somebody proved to be."""


class Lines:
    """The lines of one deployment.

    Args:
        service: where their logs are kept.
        deployment: whose callers.
    """

    def __init__(self, service: MemoryService, deployment: str) -> None:
        self._service = service
        self._deployment = deployment

    async def read(self, line: str) -> Line:
        """What is known of `line`.

        Raises:
            StoreUnavailable: could not look.
        """
        people: dict[str, str] = {}
        linked: str | None = None
        for name, value in await self._log(line):
            if name == "person":
                people[value["name"]] = value["user"]
            elif name in {"linked", "unlinked"}:
                linked = value.get("user")
        return Line(people, linked)

    async def add_person(self, line: str, name: str, user: str) -> None:
        """Somebody called `name` calls from `line` as well, with `user` for a memory."""
        await self._note(line, "person", {"name": name, "user": user})

    async def link(self, line: str, user: str) -> None:
        """From now on `line` is `user`'s. Whoever calls this has seen a proof of it.

        Raises:
            InvalidInput: no name of a user.
            StoreUnavailable: it is not linked, or not known to be; try again.
        """
        checked_name(user, "user")
        # first where it is undone from: a link that could not be undone must never be
        await self._note(user, "line", {"line": line})
        await self._note(line, "linked", {"user": user})

    async def unlink(self, line: str) -> None:
        """`line` is again whose it was before; both memories are as they were."""
        await self._note(line, "unlinked", {})

    async def linked_to(self, user: str) -> list[str]:
        """The lines that are linked to `user`."""
        noted = sorted({value["line"] for name, value in await self._log(user) if name == "line"})
        return [line for line in noted if (await self.read(line)).linked == user]

    async def unlink_user(self, user: str) -> int:
        """Undo every link to `user`, as from their browser; how many lines that were."""
        lines = await self.linked_to(user)
        for line in lines:
            await self.unlink(line)
        return len(lines)

    async def _log(self, user: str) -> list[tuple[str, Any]]:
        task = await self._service.user(user, self._deployment).task(LOG)
        return [(result.name, result.value) for result in task.results] if task else []

    async def _note(self, user: str, name: str, value: dict[str, Any]) -> None:
        memory = self._service.user(user, self._deployment)
        await memory.conversation(LOG, agent=AGENT)
        await memory.add_result(LOG, name, value, id=f"{LOG}:{uuid4().hex}")


__all__ = ["AGENT", "LOG", "Line", "Lines"]
