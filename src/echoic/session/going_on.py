"""Taking up what another process was in the middle of: a call, or the words of one that nobody resumes."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pydantic_ai.messages import ModelMessage
from pydantic_ai.realtime import RealtimeModel

from echoic.errors import EchoicError
from echoic.memory.checkpoints import Checkpoint, PendingTool
from echoic.memory.records import scan_all
from echoic.memory.user import UserMemory
from echoic.session.agents import CallContext, VoiceAgent
from echoic.session.checkpoints import CHECKPOINT, from_json, store_of
from echoic.session.digest import with_summary
from echoic.session.history import read, run_again, settled
from echoic.session.live import Live
from echoic.session.shield import LATE
from echoic.stores.base import Put, Record

log = logging.getLogger(__name__)

_MISSED: Final = 5
"""Checkpoints that did not come, after which a call with words on its way is taken for dead."""


async def kept_of_earlier_calls(memory: UserMemory, session_id: str, every_s: float) -> None:
    """Keep what was said on calls of this caller whose process died before it kept it, and learn from it.

    Who is cut off calls again, and seldom resumes. While words are on their way a call that lives saves a
    checkpoint every time. What could not be kept now is kept at a later call.

    Args:
        memory: the caller's.
        session_id: of the call that begins; it takes up its own.
        every_s: how often a call saves a checkpoint.
    """
    dead = datetime.now(UTC) - timedelta(seconds=_MISSED * every_s)
    try:
        for record in await scan_all(store_of(memory), memory.scope, CHECKPOINT):
            checkpoint = from_json(record.data)
            if checkpoint.unkept and checkpoint.saved_at < dead and checkpoint.session != session_id:
                await _keep(memory, checkpoint, record)
    except EchoicError as error:
        log.warning("what was said on an earlier call is not kept yet: %s", type(error).__name__)


async def _keep(memory: UserMemory, checkpoint: Checkpoint, record: Record) -> None:
    if await memory.find_conversation(checkpoint.conversation) is not None:  # else it was forgotten
        conversation = await memory.conversation(checkpoint.conversation)
        await conversation.append(*checkpoint.unkept, learn=checkpoint.learns)
        await conversation.learn()
    data = {**record.data, "unkept": [], "cursor": checkpoint.cursor + len(checkpoint.unkept)}
    await store_of(memory).write(memory.scope, [Put.over(record, replace(record, data=data))])


async def taken_up(
    checkpoint: Checkpoint, live: Live, agent: VoiceAgent, context: CallContext, model: RealtimeModel
) -> list[ModelMessage]:
    """The history to go on with; what was said and not yet kept is kept, and what may be is run again.

    Raises:
        InvalidInput: the checkpoint cannot be read.
        WriteConflict: the call goes on in another process.
        StoreUnavailable: what was said could not be kept.
    """
    history = read(checkpoint.messages)
    # whoever still goes on with this call finds at its next write that it is no longer theirs
    await live.sessions.save(live.memory.scope, replace(checkpoint, saved_at=datetime.now(UTC)))
    live.digest.take_up(checkpoint)
    live.kept = checkpoint.cursor
    if checkpoint.unkept:
        kept = await live.conversation.append(*checkpoint.unkept, learn=checkpoint.learns)
        live.kept += len(kept)
        live.turns |= {turn.id: turn for turn in kept}
    # what the other process kept and died before learning from: the model is to know it from its first word
    if live.settings.memory:
        await live.conversation.learn()
    again = [tool for tool in checkpoint.pending if tool.idempotent and tool.name in agent.toolbox]
    results = await asyncio.gather(*(_again(tool, agent, context, model) for tool in again))
    by_call: dict[str, Any] = {tool.call: result for tool, result in zip(again, results, strict=True)}
    return with_summary(settled(history, by_call, checkpoint.pending), checkpoint.summary)


async def _again(tool: PendingTool, agent: VoiceAgent, context: CallContext, model: RealtimeModel) -> Any:
    try:
        async with asyncio.timeout(agent.tool_timeout_s):
            return await run_again(agent.toolbox[tool.name], tool, context, model)
    except TimeoutError:
        return LATE


__all__ = ["kept_of_earlier_calls", "taken_up"]
