"""Transfer of a call from one agent to another.

Where audio goes through the session (`hand_over`), the new connection is opened before the old one is closed:
the caller's frames go to the first agent until the next is ready, then to that one, in order, and what the
first was saying is played to its end. Where it goes elsewhere (`reattach`), the next agent takes the place
beside the provider's call. Both sidebands see the same events and would act on them: the first agent falls
silent at the moment the second listens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from pydantic_ai.messages import SpeechPart
from pydantic_ai.realtime import RealtimeEvent

from echoic.prompt import quoted
from echoic.prompt.block import framed
from echoic.session.agents import CallContext, VoiceAgent
from echoic.session.call_state import CallState
from echoic.session.call_summary import with_summary
from echoic.session.history import settled, without_requests
from echoic.session.provider_connections import ProviderConnections
from echoic.session.provider_session import Leg

_TOOLS_S: Final = 2.0
"""How long the other tools of the same reply may take to answer before the call moves on without them."""
_LOOK_S: Final = 0.02


async def hand_over(
    live: CallState,
    lines: ProviderConnections,
    agent: VoiceAgent,
    sending: asyncio.Lock,
    on_event: Callable[[Leg, RealtimeEvent], None],
) -> None:
    """Have `agent` go on with the call.

    Args:
        live: the call.
        lines: opens the new one.
        agent: who goes on.
        sending: held while a frame is handed to a line.
        on_event: told what happens on the new line.

    Raises:
        RealtimeError: the new line could not be opened; the old one goes on.
    """
    old = live.leg
    await _until(lambda: not old.pending_tools(), _TOOLS_S)
    known = len(old.new_messages())
    history = settled(without_requests(old.heard_messages()), {}, old.pending_tools())
    condensed = live.digest.condensed(live.history_so_far(history))
    await live.digest.summarize(condensed.evicted, live.kept)
    history = with_summary(condensed.messages, live.digest.text)
    context = await lines.context(agent)
    new = await lines.open(agent, context, history, live.playback, on_event)
    began = time.perf_counter()
    try:
        async with sending:
            live.legs.append(new)
            live.digest.handed_on(condensed)
    except BaseException:
        await new.stop()  # hung up meanwhile: nobody else knows of it yet
        raise
    _note_transfer(live, old, context, 1000 * (time.perf_counter() - began))
    await _leave(live, lines, old)
    await _tell_farewell(old, new, known)
    await lines.enter(new, history=history)
    live.dirty.set()


def _note_transfer(live: CallState, old: Leg, context: CallContext, gap_ms: float) -> None:
    live.log.call.agents.append(context.agent)
    live.log.call.gaps_ms.append(round(gap_ms, 3))
    live.log.changed()
    if live.host is not None:
        live.host.transferred(context.agent)
    live.hooks.tell(
        context, "transfer", **{"from": old.setup.agent.name, "to": context.agent, "gap_ms": gap_ms}
    )
    live.dirty.set()


async def _leave(live: CallState, lines: ProviderConnections, old: Leg) -> None:
    """The one who hands over finishes its sentence."""
    await _until(lambda: not old.speaking or not old.is_open, live.settings.farewell_s)
    await lines.leave(old)
    await old.stop()


async def _tell_farewell(old: Leg, new: Leg, known: int) -> None:
    """Let the next agent know what was said while its line was being opened."""
    said = [
        ("You" if old.setup.agent.name == new.setup.agent.name else "Your colleague", part)
        if part.speaker == "assistant"
        else ("The caller", part)
        for message in old.new_messages()[known:]
        for part in message.parts
        if isinstance(part, SpeechPart) and part.transcript
    ]
    if said:
        lines = [f"{who} said: {quoted(part.transcript or '')}" for who, part in said]
        await new.session.send(framed("meanwhile", lines), respond=False)


async def _until(done: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + seconds
    while not done() and time.monotonic() < until:  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(_LOOK_S)


_REPLY_S: Final = 1.0
"""How long the sentence that follows on a tool may take to begin."""


async def reattach(
    live: CallState,
    lines: ProviderConnections,
    agent: VoiceAgent,
    on_event: Callable[[Leg, RealtimeEvent], None],
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
    _note_transfer(live, old, context, 0.0)  # no frame of the caller's passes here, so none waits
    await lines.leave(old)
    await old.stop()
    await lines.enter(new, history=())
    live.dirty.set()
