"""Handing over a call whose audio goes elsewhere: the next agent takes the place beside it, the media stay.

Two sidebands see the same events, and both would act on them. So the first agent falls silent at the very
moment the second listens, and finishes its sentence before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from pydantic_ai.realtime import RealtimeEvent

from echoic.session.agents import VoiceAgent
from echoic.session.leg import Leg
from echoic.session.lines import Lines
from echoic.session.live import Live

_TOOLS_S: Final = 2.0
_REPLY_S: Final = 1.0
"""How long the sentence that follows on a tool may take to begin."""
_LOOK_S: Final = 0.02


async def reattach(
    live: Live, lines: Lines, agent: VoiceAgent, on_event: Callable[[Leg, RealtimeEvent], None]
) -> None:
    """Have `agent` go on with the call, where it is.

    Args:
        live: the call.
        lines: opens the new one.
        agent: who goes on.
        on_event: told what happens on the new line.

    Raises:
        RealtimeError: the new line could not be opened; the old one goes on.
    """
    old = live.leg
    await _until(lambda: not old.pending_tools(), _TOOLS_S)
    await _until(lambda: not old.owes_reply or not old.is_open, _REPLY_S)
    await _until(lambda: not old.speaking or not old.is_open, live.settings.farewell_s)
    context = await lines.context(agent)
    new = await lines.open(agent, context, [], live.playback, on_event)
    new.before = old
    old.fall_silent()
    live.legs.append(new)
    live.log.call.agents.append(agent.name)
    live.log.call.gaps_ms.append(0.0)  # no frame of the caller's passes here, so none waits
    live.log.changed()
    live.hooks.tell(context, "transfer", **{"from": old.setup.agent.name, "to": agent.name, "gap_ms": 0.0})
    live.dirty.set()
    await lines.leave(old)
    await old.stop()
    await lines.enter(new, history=())
    live.dirty.set()


async def _until(done: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not done() and time.monotonic() < until:  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(_LOOK_S)


__all__ = ["reattach"]
