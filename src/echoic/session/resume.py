"""How a session begins or resumes: its memory warm, its record begun, and what was said before taken up.

Opens no connection to the provider; see `ProviderConnections`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.realtime import RealtimeModel

from echoic.memory.checkpoints import Checkpoint, PendingTool
from echoic.memory.conversation import OpenConversation
from echoic.memory.distilling import Summarizer
from echoic.session.agents import LATE, CallContext, VoiceAgent
from echoic.session.asr_confidence import Confidences
from echoic.session.call_record import CallLog, CallRecord, read_call, read_exchanges
from echoic.session.call_state import CallState, Session
from echoic.session.call_summary import Digest, with_summary
from echoic.session.checkpoints import SessionStore, store_of
from echoic.session.history import read, run_again, settled
from echoic.session.hooks import CallHooks, Listener
from echoic.session.playback import Playback
from echoic.session.turn_recall import CallRecall


@dataclass(slots=True, kw_only=True)
class Beginning:
    """Of one session."""

    session: Session
    agent: VoiceAgent
    """Who begins."""
    model: RealtimeModel
    sessions: SessionStore
    listener: Listener | None
    resumed: Checkpoint | None
    summarizer: Summarizer | None = None
    """A language model's, for a long call."""

    async def live(self, confidences: Confidences, playback: Playback, given: Callable[[], str]) -> CallState:
        """The parts of the call, once both partitions, the encoder and the dates' parser are warm.

        Args:
            confidences: what the recogniser says of itself.
            playback: where audio goes.
            given: the block, as the model has it.

        Raises:
            StoreUnavailable: could not look, or could not keep that the call began.
        """
        session = self.session
        host = session.host
        _, conversation = await asyncio.gather(
            session.memory.warm() if session.settings.memory else asyncio.sleep(0), self._conversation()
        )
        memory = session.memory if host is None else host.recorder.memory
        return CallState(
            session_id=session.session_id,
            settings=session.settings,
            memory=memory,
            opened=conversation,
            store=store_of(memory),
            sessions=self.sessions,
            playback=playback,
            log=await self._log() if host is None else host.recorder.log,
            hooks=CallHooks(self.listener),
            recall=CallRecall(
                session.memory,
                session.conversation_id,
                given,
                deadline_ms=session.settings.recall_deadline_ms,
            ),
            confidences=confidences,
            digest=self._digest(conversation),
            host=host,
            kept=len(host.recorder.turns) if host is not None and host.history else 0,
        )

    async def _conversation(self) -> OpenConversation | None:
        session = self.session
        if session.host is not None:  # it is opened with the first words that are kept, if any are
            return None
        return await session.memory.conversation(session.conversation_id, agent=self.agent.name)

    def _digest(self, conversation: OpenConversation | None) -> Digest:
        session = self.session
        if session.host is not None:
            return session.host.recorder.digest
        assert conversation is not None
        return Digest(
            session.memory,
            conversation.turns,
            self.summarizer,
            budget_tokens=session.settings.history_tokens,
        )

    async def _log(self) -> CallLog:
        session, first = self.session, 0
        if self.resumed is not None:  # what was written down of it so far stays
            before = await read_exchanges(
                store_of(session.memory), session.memory.scope, session.conversation_id, session.session_id
            )
            first = max((exchange.number for exchange in before), default=-1) + 1
        recorded = session.settings.record and session.settings.history
        return CallLog(await self._call(), enabled=recorded, first=first)

    async def _call(self) -> CallRecord:
        session = self.session
        known = await read_call(store_of(session.memory), session.memory.scope, session.session_id)
        if self.resumed is not None and known is not None:
            return known
        model = self.agent.model or self.model
        return CallRecord(
            id=session.session_id,
            conversation=session.conversation_id,
            provider=model.system,
            model=model.model_name,
            started_at=datetime.now(UTC),
            agents=[self.agent.name],
        )


log = logging.getLogger(__name__)


async def taken_up(
    checkpoint: Checkpoint, live: CallState, agent: VoiceAgent, context: CallContext, model: RealtimeModel
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
