"""Collects what is said on a voice call, turn by turn, and stores it, learns from it and saves checkpoints.

One task does all of it, in order. Nothing that carries audio waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SpeechPart,
    UserPromptPart,
)
from pydantic_ai.realtime import RealtimeError

from echoic.checks import storable
from echoic.errors import EchoicError, NotOpen, StoreUnavailable, WriteConflict
from echoic.memory.checkpoints import SIGN_EVERY_S
from echoic.memory.concurrency import stop_tasks
from echoic.memory.extraction.turns import THRESHOLD, affirms, delicate, is_sure, mentions
from echoic.memory.records import MEMORY, memory_of, record_of_memory
from echoic.session.call_record import Exchange, Spoken
from echoic.session.call_state import CallState
from echoic.session.history import given_in, said_in, utterance_of
from echoic.session.playback import Utterance
from echoic.session.provider import CallerUtterance, ProviderSession
from echoic.stores.base import Put, Record, Store
from echoic.types import Memory, Scope, Turn

log = logging.getLogger(__name__)


def resumption_of(provider: ProviderSession) -> str | None:
    """The handle Gemini gave for this session, if any. Nothing depends on it.

    PydanticAI keeps it private; `tests/session/test_resume.py` fails when an upgrade moves it.
    """
    connection = getattr(provider.session if provider.is_open else None, "_connection", None)
    handle = getattr(connection, "_resumption_handle", None)
    return handle if isinstance(handle, str) else None


def parts_of(messages: Sequence[ModelMessage]) -> list[tuple[ModelMessage, Any]]:
    """The spoken or typed parts of a response, in order."""
    return [(message, part) for message in messages for part in said_in(message)]


def whose(
    part: Any, spoken: list[Utterance], said: list[CallerUtterance]
) -> tuple[Utterance | None, CallerUtterance | None]:
    """The utterance of the agent or the caller that a part of the history represents, removed from its
    list.
    """
    if isinstance(part, SpeechPart) and part.speaker == "assistant":
        return utterance_of(part, spoken), None
    text = text_of(part)
    typed = isinstance(part, UserPromptPart)
    alike = next((one for one in said if one.text == text and one.final), None)
    found = alike or (None if typed else next((one for one in said if one.final), None))
    if found is not None:
        said.remove(found)
    return None, found


def _new_parts(
    provider: ProviderSession, said: list[CallerUtterance], spoken: list[Utterance]
) -> Iterator[tuple[int, ModelMessage, Any, Utterance | None, CallerUtterance | None]]:
    """Each part that is not stored yet: its place, message, part, and `whose` it is."""
    for place, (message, part) in enumerate(parts_of(provider.new_messages())):
        utterance, who = whose(part, spoken, said)
        if place >= provider.kept:
            yield place, message, part, utterance, who


def agent_turn(text: str, utterance: Utterance | None, provider: ProviderSession, place: int) -> Turn | None:
    """The agent's turn, divided into heard and unheard; None if nothing was said."""
    text = storable(text)
    if not text.strip():
        return None
    if utterance is None:
        return Turn(speaker="agent", text=text, id=f"{provider.name}-{place}")
    divided = utterance.divided()
    whole = divided.source == "whole" or divided.heard == text
    return Turn(
        speaker="agent",
        text=text,
        heard=None if whole else storable(divided.heard),
        said_at=utterance.started_at,
        id=utterance.turn_id,
    )


def unrecorded(provider: ProviderSession) -> list[ModelMessage]:
    """What is being said now, for the history of an agent that continues the call."""
    recorded = list(provider.utterances.values()), list(provider.said.values())
    for _, part in parts_of(provider.new_messages()):
        whose(part, *recorded)
    spoken, said = recorded
    open_: list[tuple[datetime, ModelMessage]] = [
        (one.at, ModelRequest(parts=[SpeechPart(speaker="user", transcript=one.text)]))
        for one in said
        if one.text.strip()
    ]
    for one in spoken:
        heard = one.divided().heard
        if heard.strip():
            part = SpeechPart(speaker="assistant", transcript=heard)
            open_.append((one.started_at, ModelResponse(parts=[part], state="interrupted")))
    return [message for _, message in sorted(open_, key=lambda pair: pair[0])]


def note_turn(exchange: Exchange, turn: Turn, utterance: Utterance | None) -> None:
    """Record in `exchange` that `turn` was stored."""
    if turn.speaker == "user":
        exchange.user_turn = turn.id
        if exchange.recall is not None:
            exchange.recall = replace(exchange.recall, turn_id=turn.id)
        return
    rate = 2 * utterance.trace.rate_hz / 1000 if utterance else 1.0
    exchange.spoken.append(
        Spoken(
            turn=turn.id,
            played_ms=utterance.played_bytes / rate if utterance else 0.0,
            generated_ms=utterance.trace.audio_ms if utterance else 0.0,
            source=utterance.divided().source if utterance else "whole",
        )
    )


def text_of(part: Any) -> str:
    if isinstance(part, SpeechPart):
        return part.transcript or ""
    content = part.content
    return (
        content if isinstance(content, str) else " ".join(each for each in content if isinstance(each, str))
    )


_FINISH_S: Final = 10.0
"""How long ending a call waits for the store to take what was said."""
_RETRY_S: Final = 0.5
_LOOK_S: Final = 0.02
_TOGETHER_S: Final = 0.05
"""How long what happens together, such as the last events of a reply, is collected to be stored at once."""
_TURNS: Final = 200
_UNSEEN_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Ripe:
    """A turn that may be stored, and where it came from. `turn` is None for a part without words."""

    turn: Turn | None
    provider: ProviderSession
    place: int
    """How many parts of the provider session's history are kept with it."""
    utterance: Utterance | None = None


class TurnCollector:
    """Runs the task that stores the turns of one call.

    It calls `end` if the caller is silent for too long, or the call was forgotten or continues in another
    process or for another caller.
    """

    def __init__(
        self, live: CallState, exchange_of: Callable[[str], Exchange | None], end: Callable[[str], None]
    ) -> None:
        self._live = live
        self._exchange_of, self._end = exchange_of, end
        self._task: asyncio.Task[None] | None = None
        self._begun_s = time.monotonic()
        self._noted: dict[str, int] = {}
        """By provider session, how many messages were searched for text given to the model."""
        self._finishing = False
        self._cycling = asyncio.Lock()
        self._untold: list[tuple[Turn, _Ripe]] = []
        """Stored turns that listeners have not been told of yet."""
        self._unlearned = False
        """Whether the caller said something that is stored and was not learned from yet."""
        self._unseen: dict[tuple[str, int], float] = {}
        """By provider session and place, since when a part is recorded without its events."""

    def start(self) -> None:
        self._note_given()  # before the caller speaks, to whose first turn it would else be counted
        self._task = asyncio.create_task(self._run(), name="echoic-turns")

    async def caught_up(self, within_s: float) -> None:
        """Wait until everything said so far is stored, or until the timeout."""
        self._live.dirty.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._live.dirty.is_set():  # noqa: ASYNC110 - whoever clears it holds the lock from then on
                    await asyncio.sleep(_LOOK_S)
                async with self._cycling:
                    return

    async def finish(self, *, keep_checkpoint: bool) -> bool:
        """Store what is left, now that nobody speaks; returns whether all of it was.

        If `keep_checkpoint`, the call can be resumed.
        """
        await self._stop()
        self._finishing = True
        until = time.monotonic() + _FINISH_S
        while True:
            try:
                await self._cycle(checkpoint=keep_checkpoint)
                if not keep_checkpoint and not self._live.lost and self._live.host is None:
                    await self._live.recorder.end()
            except EchoicError as error:
                log.warning("the end of a call is not kept yet: %s", type(error).__name__)
                if isinstance(error, NotOpen) or time.monotonic() > until:
                    return False
                await asyncio.sleep(_RETRY_S)
            else:
                return True

    async def _stop(self) -> None:
        if self._task is not None:
            await stop_tasks([self._task])

    async def _run(self) -> None:
        while True:
            live = self._live
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(live.settings.checkpoint_every_s, SIGN_EVERY_S)):
                    await live.dirty.wait()
                    await asyncio.sleep(_TOGETHER_S)
            # also where there is always something to store, or storing fails
            self._look_at_the_clock()
            try:
                async with self._cycling:
                    live.dirty.clear()
                    await self._cycle(checkpoint=True)
            except Exception as error:  # noqa: BLE001 - nobody else would keep the rest of the call
                log.warning("a call is not kept yet: %s", type(error).__name__)
                live.hooks.tell(live.provider.setup.context, "error", kind=type(error).__name__)
                await asyncio.sleep(_RETRY_S)
                live.dirty.set()

    def _look_at_the_clock(self) -> None:
        settings, now = self._live.settings, time.monotonic()
        if not self._live.playback.idle:
            self._live.sounds()
        if settings.idle_timeout_s is not None and now - self._live.sound_at_s > settings.idle_timeout_s:
            self._end("idle")
        elif settings.max_duration_s is not None and now - self._begun_s > settings.max_duration_s:
            self._end("too long")

    async def _cycle(self, *, checkpoint: bool) -> None:
        if self._live.lost:
            return
        if self._live.recalls and checkpoint:
            await self._save()  # words are durable before anything is awaited
        if self._live.recalls:  # some may have started meanwhile
            # a turn must not be found by its own recall
            await asyncio.wait(set(self._live.recalls), timeout=1.0)
        await self._keep_turns()
        if checkpoint and not self._live.lost:
            await self._save()

    # -- turns

    async def _keep_turns(self) -> None:
        """Store what was said. From it the host may find that another caller is speaking."""
        live, host = self._live, self._live.host
        ripe = self._ripe()
        self._note_given()
        for each in ripe:
            if self._is_anothers():
                break
            if (turn := each.turn) is not None:
                if host is None:
                    live.recorder.note(turn)
                elif turn.speaker == "user":
                    turn = await host.caller_said(turn)
                else:
                    await host.agent_said(turn)
                self._untold.append((turn, each))
            # only now: if this is cancelled, what is not stored comes again
            each.provider.kept = each.place
        if not self._is_anothers():
            await live.recorder.flush()
        told, self._untold = self._untold, []
        for turn, each in told:
            self._kept(turn, each)
        self._unlearned = self._unlearned or any(turn.speaker == "user" for turn, _ in told)
        if self._is_lost():
            return
        self._drop_providers()
        if self._unlearned and live.recorder.words and live.settings.memory:
            await self._learn_if_possible()

    def _is_anothers(self) -> bool:
        return self._live.host is not None and self._live.host.recorder is not self._live.recorder

    def _is_lost(self) -> bool:
        """Whether the session stores nothing more and therefore ends; a host's call continues without it."""
        if self._is_anothers():
            self._lose("another caller")
        elif self._live.recorder.lost and self._live.host is None:
            self._lose(self._live.recorder.lost)
        return self._live.lost

    def _ripe(self) -> list[_Ripe]:
        """Turns in spoken order, up to the first of which more may yet be heard."""
        ripe: list[_Ripe] = []
        for provider in self._live.providers:
            said, spoken = list(provider.said.values()), list(provider.utterances.values())
            for place, message, part, utterance, who in _new_parts(provider, said, spoken):
                if utterance is not None and not self._is_settled(utterance, message):
                    return ripe
                if who is None and self._is_ending(part, said, provider):
                    return ripe
                if utterance is None and who is None and self._is_unseen(part, said, provider, place):
                    return ripe
                turn = self._turn(part, utterance, who, provider, place)
                ripe.append(_Ripe(turn, provider, place + 1, utterance))
            if provider is not self._live.provider and not provider.ended.is_set():
                return ripe  # it may still say something that comes before the next session's words
        return ripe

    def _is_ending(self, part: Any, said: list[CallerUtterance], provider: ProviderSession) -> bool:
        """Whether the end of the caller's utterance is recorded but its event is still to be processed."""
        by_user = isinstance(part, SpeechPart) and part.speaker == "user"
        if not by_user or self._finishing or provider.ended.is_set():
            return False
        text = text_of(part)
        return any(one.text and not one.final and text.startswith(one.text) for one in said)

    def _is_unseen(
        self, part: Any, said: list[CallerUtterance], provider: ProviderSession, place: int
    ) -> bool:
        """Whether a part is recorded but its events have not been processed yet.

        Without them it is not known how much was heard, or as which turn it was shown.
        """
        if not isinstance(part, SpeechPart) or self._finishing or provider.ended.is_set() or provider.silent:
            return False
        if part.speaker == "user" and said:
            return False
        now = time.monotonic()
        since = self._unseen.setdefault((provider.name, place), now)
        return now - since < _UNSEEN_S

    def _is_settled(self, utterance: Utterance, message: ModelMessage) -> bool:
        lost = isinstance(message, ModelResponse) and message.state == "interrupted"
        if lost and not utterance.cut and utterance.trace.complete:
            utterance.trace.complete = False  # it broke off: there may be more text than audio
        if not utterance.settled and not (self._finishing and self._live.playback.idle):
            return False
        return self._finishing or utterance not in self._live.undecided

    def _turn(
        self,
        part: Any,
        utterance: Utterance | None,
        said: CallerUtterance | None,
        provider: ProviderSession,
        place: int,
    ) -> Turn | None:
        if isinstance(part, SpeechPart) and part.speaker == "assistant":
            return agent_turn(part.transcript or "", utterance, provider, place)
        if said is None and isinstance(part, UserPromptPart):
            return None  # a tool enqueued it: what the caller types is noted before it is sent
        text = storable(text_of(part))
        if not text.strip():
            return None
        return Turn(
            speaker="user",
            text=text,
            said_at=said.at if said else datetime.now(UTC),
            confidence=self._live.confidences.of(text) if isinstance(part, SpeechPart) else None,
            id=said.turn_id if said else f"{provider.name}-{place}",
        )

    def _kept(self, turn: Turn, ripe: _Ripe) -> None:
        live = self._live
        exchange = self._exchange_of(turn.id)
        unheard = turn.text[len(turn.heard_text) :]
        if exchange is not None:
            note_turn(exchange, turn, ripe.utterance)
            live.log.touched(exchange)
        live.hooks.tell(
            ripe.provider.setup.context,
            "turn",
            speaker=turn.speaker,
            text=turn.text,
            heard=turn.heard_text,
            unheard=unheard,
            id=turn.id,
        )

    async def _learn_if_possible(self) -> None:
        try:
            await self._learn()
        except (StoreUnavailable, WriteConflict):
            raise  # learned from in the next cycle
        except Exception as error:  # noqa: BLE001 - the rest of the call would be neither kept nor ended
            self._unlearned = False
            log.warning("nothing was learned from a turn: %s", type(error).__name__)
            self._live.hooks.tell(self._live.provider.setup.context, "error", kind=type(error).__name__)

    async def _learn(self) -> None:
        """Apply the rules to what the caller said, and tell the model before its next response."""
        live = self._live
        recorder = live.recorder
        if recorder.opened is None:
            return
        learned = await recorder.opened.learn()
        last = recorder.turns[-_TURNS:]
        doubted = await weigh(
            recorder.memory.backing_store,
            recorder.memory.scope,
            {turn.id: turn for turn in last},
            _affirmed(last),
            threshold=live.settings.doubt_below,
        )
        self._unlearned = False  # a call that ended before learns from it as it ends
        if learned.kept or learned.retracted or doubted:
            live.hooks.tell(
                live.provider.setup.context,
                "memory_extracted",
                kept=[memory.id for memory in learned.kept],
                retracted=[memory.id for memory in learned.retracted],
            )
        try:
            await live.provider.refresh()
        except RealtimeError as error:  # the provider session's own task handles a broken connection
            log.warning("what was learned could not be told: %s", type(error).__name__)

    def _drop_providers(self) -> None:
        for provider in self._live.providers[:-1]:
            if not provider.ended.is_set() or provider.kept < len(parts_of(provider.new_messages())):
                return
            self._live.providers.remove(provider)

    # -- what the model was given

    def _note_given(self) -> None:
        for provider in self._live.providers:
            messages = provider.new_messages()
            if provider.name not in self._noted:
                for name, text in provider.setup.opening_texts:
                    self._live.log.give("instructions", name, text)
            for role, name, text in given_in(messages[self._noted.get(provider.name, 0) :]):
                self._live.log.give(role, name, text)
            self._noted[provider.name] = len(messages)

    # -- checkpoints

    async def _save(self) -> None:
        live, provider = self._live, self._live.provider
        await live.recorder.save(
            provider.setup.agent.name,
            live.history_so_far([*provider.heard_messages(so_far=True), *unrecorded(provider)]),
            self._saying(),
            pending=provider.pending_tools(),
            resumption=live.provider_call.handle if live.provider_call else resumption_of(provider),
        )
        self._is_lost()

    def _lose(self, reason: str) -> None:
        self._live.lost = True
        self._end(reason)

    def _saying(self) -> list[Turn]:
        """What is being said and is no turn yet, or waits for a turn that is not settled."""
        turns: list[Turn | None] = []
        for provider in self._live.providers:
            said, spoken = list(provider.said.values()), list(provider.utterances.values())
            turns += [
                self._turn(part, utterance, who, provider, place)
                for place, _, part, utterance, who in _new_parts(provider, said, spoken)
            ]
            turns += [agent_turn(open_.trace.text, open_, provider, 0) for open_ in spoken]
            turns += [
                Turn(speaker="user", text=storable(open_.text), said_at=open_.at, id=open_.turn_id)
                for open_ in said
                if open_.text.strip()
            ]
        masked = self._live.masked
        known = {turn.id for turn in self._live.recorder.turns}
        new = [
            replace(turn, text=masked(turn.text)) if turn.speaker == "user" else turn
            for turn in turns
            if turn is not None and turn.id not in known
        ]
        return sorted(new, key=lambda turn: turn.said_at)


def _affirmed(turns: Sequence[Turn]) -> list[str]:
    """What the agent said, the caller heard and then affirmed."""
    return [
        before.heard_text
        for before, after in itertools.pairwise(turns)
        if before.speaker == "agent" and after.speaker == "user" and affirms(after.text)
    ]


# -- memories that rest on doubtful transcripts are unconfirmed


async def weigh(
    store: Store,
    scope: Scope,
    turns: Mapping[str, Turn],
    affirmed: Sequence[str] = (),
    *,
    threshold: float = THRESHOLD,
) -> list[Memory]:
    """Mark memories that rest on doubtful turns, and unmark those that no longer do; returns the changed
    ones.

    Memories are also checked when they are learned (`memory/extraction/turns.py`), with a global threshold. A
    call may have its own threshold, and the caller may affirm what the agent reads back many turns later.

    `turns` are those of the call so far, by id; a turn is doubtful with a confidence below `threshold`.

    Raises:
        StoreUnavailable: nothing was changed.
    """
    if all(is_sure(turn, threshold) for turn in turns.values()):
        return []
    changed: list[Memory] = []
    for record in await store.scan(scope, MEMORY, newest_first=True):
        memory = memory_of(record)
        cited = [turns[name] for name in memory.source if name in turns]
        if not cited or not memory.current or not delicate(memory):
            continue
        others = len(cited) < len(memory.source)
        sure = others or any(is_sure(turn, threshold) for turn in cited)
        sure = sure or any(mentions(text, memory) for text in affirmed)
        if memory.confirmed != sure and await _mark_confirmed(store, scope, record, memory, sure=sure):
            changed.append(replace(memory, confirmed=sure))
    return changed


async def _mark_confirmed(store: Store, scope: Scope, record: Record, memory: Memory, *, sure: bool) -> bool:
    marked = record_of_memory(replace(memory, confirmed=sure))
    number = record.data.get("number")
    data = dict(marked.data) | ({"number": number} if number is not None else {})
    try:
        await store.write(scope, [Put.over(record, replace(marked, data=data))])
    except WriteConflict:
        return False  # changed meanwhile; the next turn checks again
    return True
