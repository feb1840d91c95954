"""Tools as a call needs them: bounded in time, failing in words, and run once for each call id.

A capability of PydanticAI. Nothing a tool does or does not do ends the call.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ToolCallPart

log = logging.getLogger(__name__)

FAILED: Final = (
    "That did not work just now. Tell the caller so in a few words, and offer to try something else."
)
LATE: Final = (
    "That is taking longer than it should. Tell the caller so, and that you cannot say yet how it ends."
)
_KEPT: Final = 256
"""Results that are at hand for a call that is made again."""


@dataclass
class ToolShield(AbstractCapability[Any]):
    """Around every tool of one agent on one call."""

    timeout_s: float = 10.0
    id: str | None = "tool-shield"
    _runs: dict[str, asyncio.Task[Any]] = field(default_factory=dict, init=False, repr=False)
    _stopped: bool = field(default=False, init=False, repr=False)

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: it belongs to one call."""
        return None

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """Run a tool once for its call id; what takes too long goes on, and the model is told so."""
        del ctx
        run = self._runs.get(call.tool_call_id)
        if run is None:
            run = asyncio.ensure_future(handler(args))
            self._keep(call.tool_call_id, run)
        done, _ = await asyncio.wait({run}, timeout=self.timeout_s)
        if done:
            if run.cancelled() and not self._stopped:  # by its own doing: nobody here asked for it
                raise RuntimeError("the tool was cancelled")
            return run.result()
        log.warning("the tool %s has not answered within %.1f s", tool_def.name, self.timeout_s)
        return LATE

    async def on_tool_execute_error(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: Any,
        error: Exception,
    ) -> Any:
        """Say that it failed instead of ending the call."""
        del ctx, args
        # its message may quote what was said
        log.warning("the tool %s failed: %s", tool_def.name, type(error).__name__)
        self._runs.pop(call.tool_call_id, None)  # the same call made again is tried again
        return FAILED

    def stop(self) -> None:
        """End what still runs, as when the call is over."""
        self._stopped = True
        for run in self._runs.values():
            run.cancel()

    def _keep(self, call: str, run: asyncio.Task[Any]) -> None:
        self._runs[call] = run
        run.add_done_callback(_asked)
        done = [name for name, kept in self._runs.items() if kept.done()]
        for name in done[: max(0, len(self._runs) - _KEPT)]:
            del self._runs[name]


def _asked(run: asyncio.Task[Any]) -> None:
    if not run.cancelled():
        run.exception()  # a late failure is nobody's any more; asking keeps the loop from complaining


__all__ = ["FAILED", "LATE", "ToolShield"]
