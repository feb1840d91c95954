"""What a session is opened with: its memory warm, its record begun, and where it resumes, what was before.

Opens no line to the provider; see `Lines`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic_ai.realtime import RealtimeModel

from echoic.memory.checkpoints import Checkpoint
from echoic.memory.distilling import Summarizer
from echoic.session.agents import VoiceAgent
from echoic.session.calls import Call, CallLog, read_call, read_exchanges
from echoic.session.checkpoints import SessionStore, store_of
from echoic.session.confidence import Confidences
from echoic.session.digest import Digest
from echoic.session.hooks import Hooks, Listener
from echoic.session.live import Live
from echoic.session.playback import Playback
from echoic.session.recalling import CallRecall
from echoic.session.whole import Session


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

    async def live(self, confidences: Confidences, playback: Playback, given: Callable[[], str]) -> Live:
        """The parts of the call, once both partitions, the encoder and the dates' parser are warm.

        Args:
            confidences: what the recogniser says of itself.
            playback: where audio goes.
            given: the block, as the model has it.

        Raises:
            StoreUnavailable: could not look, or could not keep that the call began.
        """
        session = self.session
        _, conversation = await asyncio.gather(
            session.memory.warm() if session.settings.memory else asyncio.sleep(0),
            session.memory.conversation(session.conversation_id, agent=self.agent.name),
        )
        return Live(
            session_id=session.session_id,
            settings=session.settings,
            memory=session.memory,
            conversation=conversation,
            store=store_of(session.memory),
            sessions=self.sessions,
            playback=playback,
            log=await self._log(),
            hooks=Hooks(self.listener),
            recall=CallRecall(
                session.memory,
                session.conversation_id,
                given,
                deadline_ms=session.settings.recall_deadline_ms,
            ),
            confidences=confidences,
            digest=Digest(
                session.memory,
                conversation,
                self.summarizer,
                budget_tokens=session.settings.history_tokens,
            ),
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

    async def _call(self) -> Call:
        session = self.session
        known = await read_call(store_of(session.memory), session.memory.scope, session.session_id)
        if self.resumed is not None and known is not None:
            return known
        model = self.agent.model or self.model
        return Call(
            id=session.session_id,
            conversation=session.conversation_id,
            provider=model.system,
            model=model.model_name,
            started_at=datetime.now(UTC),
            agents=[self.agent.name],
        )


__all__ = ["Beginning"]
