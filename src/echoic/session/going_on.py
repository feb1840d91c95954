"""Taking up a call that another process was in the middle of."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.realtime import RealtimeModel

from echoic.session.agents import CallContext, VoiceAgent
from echoic.session.history import read, run_again, settled
from echoic.session.live import Live
from echoic.session.shield import LATE
from echoic.types import Checkpoint, PendingTool


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
    live.summary = checkpoint.summary
    live.kept = checkpoint.cursor
    if checkpoint.unkept:
        kept = await live.conversation.append(*checkpoint.unkept)
        live.kept += len(kept)
        live.turns |= {turn.id: turn for turn in kept}
    # what the other process kept and died before learning from: the model is to know it from its first word
    await live.conversation.listen()
    again = [tool for tool in checkpoint.pending if tool.idempotent and tool.name in agent.toolbox]
    results = await asyncio.gather(*(_again(tool, agent, context, model) for tool in again))
    by_call: dict[str, Any] = {tool.call: result for tool, result in zip(again, results, strict=True)}
    return settled(history, by_call, checkpoint.pending)


async def _again(tool: PendingTool, agent: VoiceAgent, context: CallContext, model: RealtimeModel) -> Any:
    try:
        async with asyncio.timeout(agent.tool_timeout_s):
            return await run_again(agent.toolbox[tool.name], tool, context, model)
    except TimeoutError:
        return LATE


__all__ = ["taken_up"]
