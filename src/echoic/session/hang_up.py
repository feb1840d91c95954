"""The end of a call: when it comes, and what is done so that nothing of what was heard is lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from echoic.errors import EchoicError
from echoic.session.call_state import CallState
from echoic.session.provider_connections import ProviderConnections
from echoic.session.recorder import Keeper

log = logging.getLogger(__name__)

GOES_ON: Final = frozenset({"left", "lost", "suspended"})
"""Ends of this session that are not the call's: agents do not take their leave."""
STAYS_UP: Final = frozenset({"lost", "suspended", "taken over"})
"""Ends after which the provider's call may have somebody else beside it."""


class Plans:
    """What a tool or hook asked for, done when the call has a pause.

    Args:
        live: the call.
        transfer: hands it over.
        end: ends it.
    """

    def __init__(
        self, live: CallState, *, transfer: Callable[[str], Awaitable[None]], end: Callable[[str], None]
    ) -> None:
        self._live = live
        self._transfer = transfer
        self._end = end
        self.agent: str | None = None
        """Who is to go on."""
        self.reason: str | None = None
        """Why it is to end."""

    def carry_out(self) -> None:
        """Do what was planned, if anything was."""
        live = self._live
        if self.agent is not None:
            agent, self.agent = self.agent, None
            live.spawn(self._hand_over(agent))
        if self.reason is not None and not live.leg.speaking:
            reason, self.reason = self.reason, None
            live.spawn(self._end_when_played(reason))

    async def _hand_over(self, agent: str) -> None:
        live = self._live
        try:
            await self._transfer(agent)
        except Exception as error:  # noqa: BLE001 - whatever a provider's client raises: who served goes on
            log.warning("on a call: %s", type(error).__name__)
            live.hooks.tell(live.leg.setup.context, "error", kind=type(error).__name__)

    async def _end_when_played(self, reason: str) -> None:
        playback = self._live.playback
        while not playback.idle:
            playback.moved.clear()
            await playback.moved.wait()
        self._end(reason)


async def line_lost(live: CallState) -> str:
    """Wait until the line of whoever serves is gone for good; the kind of what happened."""
    while True:
        leg = live.leg
        await leg.ended.wait()
        if leg is live.leg:
            return type(leg.error).__name__ if leg.error is not None else "closed by the provider"
        await asyncio.sleep(0)


async def wind_up(
    live: CallState,
    lines: ProviderConnections,
    keeper: Keeper | None,
    tasks: Sequence[asyncio.Task[Any] | None],
    *,
    reason: str,
    keep_checkpoint: bool,
) -> None:
    """End everything that goes on, and keep what was heard.

    Args:
        live: the call.
        lines: to the provider.
        keeper: what keeps it; None: it did not come so far.
        tasks: of the session, to be ended with those of the call.
        reason: for hooks and the record.
        keep_checkpoint: the call is to be taken up again.
    """
    if live.legs and reason not in GOES_ON:
        await lines.leave(live.leg)
    for task in [*tasks, *live.tasks]:
        if task is not None and task is not asyncio.current_task():
            task.cancel()
    for leg in live.legs:
        await leg.stop()
    if reason not in STAYS_UP:
        await lines.hang_up()
    live.playback.close()
    live.log.call.ended_at, live.log.call.reason = datetime.now(UTC), reason
    live.log.changed()
    kept = await keeper.finish(keep_checkpoint=keep_checkpoint) if keeper is not None else False
    if kept and not keep_checkpoint and not live.lost:
        with contextlib.suppress(EchoicError):  # it is distilled by the next process then
            await live.conversation.complete()
    if live.legs:
        live.hooks.tell(live.leg.setup.context, "session_end", reason=reason, kept=kept)


__all__ = ["GOES_ON", "Plans", "line_lost", "wind_up"]
