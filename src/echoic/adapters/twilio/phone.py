"""A telephone with memory, and its calls.

A `Phone` has an agent, the memory it serves from, and its calls. A `PhoneCall` is one of them: a `TextCall`
for the caller that `CallerSession` identifies, and over a media stream the host of a `VoiceSession`.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from hashlib import blake2b
from typing import Any, Final, cast

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, Caching
from pydantic_ai.exceptions import UserError
from pydantic_ai.realtime import RealtimeError, RealtimeModel
from pydantic_ai.settings import ModelSettings

from echoic.adapters.connections import LoopLag
from echoic.adapters.twilio.caller_session import CallerSession
from echoic.adapters.twilio.callers import AGENT, RECORD, Caller, Callers
from echoic.adapters.twilio.phone_tools import AnotherCaller, PhoneMemory
from echoic.adapters.twilio.proofs import LinkCodes, masked
from echoic.adapters.twilio.settings import CacheFor, PhoneSettings, Phrases
from echoic.adapters.twilio.signatures import Signatures
from echoic.capability.talker import history_of
from echoic.errors import InvalidInput, NotOpen
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.session.agents import Restart, VoiceAgent
from echoic.session.call_state import SessionSettings
from echoic.session.hooks import Caption
from echoic.session.text_call import Excuse, TextCall, turn_of
from echoic.session.voice_call import VoiceSession
from echoic.types import Turn

log = logging.getLogger(__name__)

_RECALL_SHARE: Final = 0.5
"""The share of a tool's time limit that the recall for a turn may take."""
_VOICE: Final = SessionSettings(frame_ms=100, idle_timeout_s=None, max_duration_s=None)
"""Settings of a voice session: playback is known to 100 ms, and the phone itself ends idle calls."""
_LATE_S: Final = 0.1
"""Lag of the event loop above which no further call is taken: those under way are answered late already."""
_SAY: Final = "Say this to the caller now, in these words, and nothing else: {words}"
_TAKE_OVER: Final = "The call was handed over to you. Go on with it, and say who you are."
_KEEP_S: Final = 2.0
"""How long to wait until what was said is stored, before the caller changes."""


class PhoneCall(TextCall):
    """A call from its first ring to its end. Made by `Phone`, with the number and attestation as received."""

    def __init__(self, phone: Phone, sid: str, number: str, attestation: str) -> None:
        settings, captions = phone.settings, phone.captions
        super().__init__(
            f"call:{sid}",
            phone.agents,
            characters_per_s=settings.pace.characters_per_s,
            give_up_s=settings.pace.give_up_s,
            recall_ms=settings.timeout_s * 1000 * _RECALL_SHARE,
            summarizer=phone.service.summarizer,
            captions=None if captions is None else lambda caption: captions(self, caption),
        )
        self.sid = sid
        self._phone = phone
        self.caller_session = CallerSession(phone, self, number, attestation)
        """Who is calling."""
        self.dialogue: Any = None
        """State of the webhooks."""
        self.voice: VoiceSession | None = None
        """The session of a voice model, over a media stream."""
        self.voice_played = 0
        """How many bytes of its audio the caller has heard."""
        self._served = self.recorder
        """The recorder of the caller whom the voice session serves."""
        self.touched = time.monotonic()
        self.lines = 0
        """Number of sockets of this call."""
        self._line: asyncio.Future[None] | None = None
        """Cancelled to end the socket that was opened last."""
        self._carrying = asyncio.Lock()

    # -- properties

    @property
    def caller(self) -> Caller:
        return self.caller_session.caller

    @property
    def language(self) -> str:
        """The current language of the line."""
        return self.caller_session.language

    @property
    def phrases(self) -> Phrases:
        return self._phone.settings.phrases_in(self.language)

    @property
    def figures(self) -> Figures:
        usage = self.talk.usage
        return Figures(
            turns=self._turns,
            interruptions=self._interruptions,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
            recalls=sum(recall.statistics.finals for recall in self._recalls),
            recalls_ready=sum(recall.statistics.ready for recall in self._recalls),
            language=self.language,
            kept=self.recorder.keeping,
        )

    def heard_in(self, language: str) -> None:
        """Switch to `language`, which the line detected, if the phone speaks it.

        This is not stored as a preference. A line without detection only repeats what it was told.
        """
        settings = self._phone.settings
        tag = settings.spoken_as(language) if language and settings.detect_language else None
        if tag is not None:
            self.caller_session.language = tag

    # -- its sockets

    async def carry(
        self,
        serve: Callable[[], Coroutine[Any, Any, None]],
        end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Serve the call over one socket: ends the one before, runs `serve` until it returns or the next
        socket replaces it, and then `end`.

        The end of a socket that the network lost is noticed late: what it would stop then, or take the sound
        of, is already the next one's.
        """
        self._drop_line()
        line = self._line = asyncio.get_running_loop().create_future()
        self.lines += 1
        try:
            async with self._carrying:
                serving = asyncio.ensure_future(serve())
                line.add_done_callback(lambda _: serving.cancel())
                try:
                    await serving
                except asyncio.CancelledError:
                    if not line.cancelled():
                        raise
                finally:
                    if end is not None:
                        await end()
        finally:
            self.lines -= 1

    async def end_line(self, within_s: float) -> None:
        """End the socket that carries the call, if there is one; returns when it has, or at the timeout."""
        self._drop_line()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self._carrying:
                pass

    def _drop_line(self) -> None:
        if self._line is not None:
            self._line.cancel()

    # -- the voice session

    async def open_voice(self, model: RealtimeModel) -> VoiceSession:
        """The session in which a voice model serves the caller; it outlives the socket it began on.

        Raises:
            RealtimeError, ModelAPIError, UserError: the model could not be reached, or refused.
            StoreUnavailable: the store could not be read.
        """
        await asyncio.shield(self.opened)
        while self.voice is None or self.voice.state == "closed":
            if self.voice is not None and self._served is self.recorder:  # its connection was lost
                self.talk.resume(self.talk.current, history_of(self.recorder.turns))
            self._served, self.voice_played = self.recorder, 0
            self.voice = self._new_voice(model)
            try:
                await self.voice.__aenter__()  # closed by `_hush`, or by itself
            except NotOpen:
                if self._served is self.recorder:
                    raise
            if self._served is not self.recorder:  # keys proved somebody else while it was opened
                await self._change_voice()
        await self.say_own(respond=True)
        return self.voice

    def _new_voice(self, model: RealtimeModel) -> VoiceSession:
        settings = self._phone.settings
        agents = [
            VoiceAgent(
                name=name, base=agent, instructions=lambda _: self.talk.instructions, greeting=_TAKE_OVER
            )
            for name, agent in self._phone.agents.items()
        ]
        return VoiceSession(
            self._phone.service,
            user=self.caller.user,
            agents=agents,
            model=model,
            deployment=settings.deployment,
            start=self.talk.current,
            session_id=self.name,
            deps=self.talk.deps,
            settings=_VOICE,
            captions=self._captions,
            host=self,
        )

    async def say_own(self, *, respond: bool) -> None:
        """Have the voice model say the phone's own answer to a proof."""
        words, self.to_say = self.to_say, ""
        if words and self.voice is not None:
            told = _SAY.format(words=words)
            with suppress(NotOpen, RealtimeError, UserError):
                await (self.voice.prompt(told) if respond else self.voice.inject(told))

    async def caller_said(self, turn: Turn) -> Turn:
        """See `TextCall`. If the caller proved to be somebody else, the next session tells them so."""
        kept = await super().caller_said(turn)
        if self._served is self.recorder:
            await self.say_own(respond=False)  # the model is already answering what it heard
        return kept

    async def keyed(self, keys: str) -> None:
        """Process keys pressed during a voice session; the model does not get them."""
        turn = f"keys{secrets.token_hex(6)}"  # another process may have stored earlier ones of this call
        await super().caller_said(turn_of(keys, "user", f"{self._id(turn)}:user"))
        if self._served is self.recorder:
            await self.say_own(respond=True)
        else:
            await self._change_voice()

    async def restarted(self, why: Restart) -> None:
        """See `TextCall`. What was said is stored first, so that it follows the caller whose it turns out to
        be.
        """
        self.leaving.clear()
        if self.voice is not None:
            await self.voice.caught_up(_KEEP_S)
        if self._served is self.recorder:  # otherwise the caller has already changed
            await super().restarted(why)
        await self._change_voice()

    async def _change_voice(self) -> None:
        if self.voice is not None:
            await self.voice.close("another caller")

    async def _hush(self) -> None:
        if self.voice is not None:
            await self.voice.close("ended")

    def forget_words(self) -> None:
        super().forget_words()
        self.dialogue = None

    # -- overridden

    async def _open(self) -> None:
        await self.caller_session.identify()
        await super()._open()

    async def _close(self) -> None:
        self._phone.ended(self)

    async def _screened(self, said: str) -> tuple[str, str]:
        await self.caller_session.meet_next()
        return await self.caller_session.before(said)

    def masked(self, said: str) -> str:
        return masked(said, self.language)

    async def _restarted(self, why: Restart) -> None:
        await self.caller_session.change_to(why.name if isinstance(why, AnotherCaller) else None)

    def _excuse(self, why: Excuse) -> str:
        phrases = self.phrases
        return {"failed": phrases.sorry, "too_long": phrases.too_long, "left": phrases.farewell}[why]

    async def _ended(self) -> None:
        await self.recorder.add_result(RECORD, {**self.figures.as_json(), **self.caller_session.origin})
        await self.caller_session.forget_guest()

    def _memory(self, memory: UserMemory, agent: str) -> PhoneMemory:
        settings = self._phone.settings
        return PhoneMemory(
            self._phone.service,
            user=lambda _deps: self.caller.user,
            deployment=settings.deployment,
            agent=agent,
            budget_tokens=settings.budget_tokens,
            timeout_s=settings.timeout_s,
            capture=False,
            memory=memory,
            call=self,
            caller=self.caller_session,
            settings=settings,
        )

    def _more(self, agent: str) -> Sequence[AbstractCapability[Any]]:
        more = self._phone.capabilities
        return [
            *caching_of(self.talk.agents[agent], more, self._phone.settings.prompt_cache, self.name),
            *more,
        ]


@dataclass
class CallCaching(Caching):
    """PydanticAI's `Caching`, and for OpenAI a key that routes the requests of a call to one cache."""

    _: KW_ONLY
    conversation: str
    """The call's id, of which a hash is sent."""

    def get_model_settings(self) -> ModelSettings | None:
        key = blake2b(self.conversation.encode(), digest_size=16).hexdigest()
        settings = {**(super().get_model_settings() or {}), "openai_prompt_cache_key": key}
        return cast("ModelSettings", settings)  # a provider's own settings are no part of the common type


def caching_of(
    agent: Agent[Any, str], more: Sequence[AbstractCapability[Any]], asked: CacheFor, conversation: str
) -> list[AbstractCapability[Any]]:
    """Prompt-caching settings for a call; empty if caching is off or one of the capabilities sets it."""
    own: list[AbstractCapability[Any]] = []
    for capability in (agent.root_capability, *more):
        capability.apply(own.append)
    if not asked or any(isinstance(capability, Caching) for capability in own):
        return []
    return [CallCaching(asked, conversation=conversation)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Token and recall counts of a call. No content."""

    turns: int
    interruptions: int
    input_tokens: int
    """Tokens sent to the model, cached ones included."""
    cached_tokens: int
    """Input tokens that the provider had cached."""
    output_tokens: int = 0
    recalls: int = 0
    """Turns with interim transcripts, so that memory was searched ahead."""
    recalls_ready: int = 0
    """Recalls whose result was ready when the turn ended."""
    language: str = ""
    """The line's language at the end."""
    kept: bool

    @property
    def cached_share(self) -> float:
        """The share of input tokens that the provider had cached; 0 if none were sent."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else 0.0

    def as_json(self) -> dict[str, Any]:
        """The figures as they are recorded and reported."""
        counts = {name: getattr(self, name) for name in Figures.__slots__}
        return {**counts, "cached_share": round(self.cached_share, 4)}


_REMEMBERED: Final = 1000
"""Ended calls that are still known, so that a late or repeated webhook changes nothing."""
_SOCKET_TOKEN_S: Final = 60.0


class Phone:
    """Answers calls with an agent that remembers the caller.

    Args:
        service: the open memory service.
        agent: the agent; it gets its memory here, so give it none.
        settings: settings of the phone.
        deps: makes the agent's dependencies for a call.
        capabilities: more capabilities for each run of the agent.
        realtime: the voice model for calls with streamed audio (channel "media").
        colleagues: more agents, with different names, that a call can be transferred to.
        captions: receives what is being said in a call, while it is said; must not wait.
        ended: called with the counts of a call once it is over.

    Raises:
        InvalidInput: two agents have the same name.
    """

    def __init__(
        self,
        service: MemoryService,
        agent: Agent[Any, str],
        settings: PhoneSettings,
        *,
        deps: Callable[[PhoneCall], Any] | None = None,
        capabilities: Sequence[AbstractCapability[Any]] = (),
        realtime: RealtimeModel | None = None,
        colleagues: Sequence[Agent[Any, str]] = (),
        captions: Callable[[PhoneCall, Caption], None] | None = None,
        ended: Callable[[Figures], None] | None = None,
    ) -> None:
        self.service = service
        self.agent = agent
        self.settings = settings
        self.capabilities = tuple(capabilities)
        self.realtime = realtime
        self.colleagues = tuple(colleagues)
        self.captions = captions
        if len(self.agents) <= len(self.colleagues):
            raise InvalidInput("the agents of a phone must have different names")
        self.callers = Callers(service, settings)
        self.links = LinkCodes(service, settings.deployment)
        """Codes that link a telephone to a user; see `LinkCodes.give`."""
        self.signatures = Signatures(settings)
        self._deps = deps
        self._ended = ended
        self._calls: dict[str, PhoneCall] = {}
        self._over: OrderedDict[str, PhoneCall] = OrderedDict()
        self._lag = LoopLag(lambda: bool(self._calls))
        self._sockets: dict[str, tuple[str, float]] = {}
        self._idle: asyncio.Task[None] | None = None
        self._later: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """The agent's name, under which calls and experience are stored."""
        return self.agent.name or AGENT

    @property
    def agents(self) -> Mapping[str, Agent[Any, str]]:
        """The agents that may serve, by name; the first one begins."""
        return {self.name: self.agent} | {agent.name or AGENT: agent for agent in self.colleagues}

    @property
    def busy(self) -> bool:
        """Whether the limit of calls is reached, or those under way take all the time there is."""
        if len(self._calls) >= self.settings.max_calls:
            return True
        return bool(self._calls) and self._lag.lasting_s() > _LATE_S

    def memory_of(self, user: str) -> UserMemory:
        return self.service.user(user, self.settings.deployment)

    def deps_of(self, call: PhoneCall) -> Any:
        return self._deps(call) if self._deps else None

    def call(self, sid: str, *, number: str = "", attestation: str = "") -> PhoneCall:
        """The call with that id, created if it is new."""
        known = self._calls.get(sid) or self._over.get(sid)
        if known is None:
            known = self._calls[sid] = PhoneCall(self, sid, number, attestation)
            self._lag.lasting_s()  # is measured from now on
            if self._idle is None or self._idle.done():
                self._idle = asyncio.ensure_future(self._end_idle())
        known.touched = time.monotonic()
        return known

    def known(self, sid: str) -> PhoneCall | None:
        """The call with that id, active or ended, if there is one."""
        return self._calls.get(sid) or self._over.get(sid)

    def socket_token(self, sid: str) -> str:
        """A token that opens one socket for one call, once, within a minute."""
        now = time.monotonic()
        self._sockets = {token: given for token, given in self._sockets.items() if given[1] > now}
        token = secrets.token_urlsafe(24)
        self._sockets[token] = (sid, now + _SOCKET_TOKEN_S)
        return token

    def take_socket(self, token: str) -> PhoneCall | None:
        """The call a token opens a socket for, which uses the token up; None if it is invalid."""
        sid, until = self._sockets.pop(token, ("", 0.0))
        return self._calls.get(sid) if until > time.monotonic() else None

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in the background, until the phone is closed."""
        task = asyncio.ensure_future(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    def ended(self, call: PhoneCall) -> None:
        """Record that `call` is over."""
        self._calls.pop(call.sid, None)
        self._over[call.sid] = call
        call.forget_words()
        while len(self._over) > _REMEMBERED:
            self._over.popitem(last=False)
        figures = call.figures
        log.info(
            "a call ended: %d turns, %d interruptions, %d of %d recalls ready, %d tokens sent, "
            "%.0f %% of them cached",
            figures.turns,
            figures.interruptions,
            figures.recalls_ready,
            figures.recalls,
            figures.input_tokens,
            figures.cached_share * 100,
        )
        if self._ended is not None:
            self._ended(figures)

    async def aclose(self) -> None:
        """End every call and store its turns as usual. May be called twice."""
        waiting = [*self._later, *([self._idle] if self._idle else [])]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.gather(*(call.hang_up() for call in list(self._calls.values())))

    async def _end_idle(self) -> None:
        """End calls without a sign of life, since a webhook may get lost."""
        idle_s = self.settings.pace.idle_s
        while self._calls:
            await asyncio.sleep(min(10.0, idle_s / 4))
            before = time.monotonic() - idle_s
            late = [c for c in self._calls.values() if c.lines == 0 and c.touched < before]
            await asyncio.gather(*(call.hang_up() for call in late), return_exceptions=True)
