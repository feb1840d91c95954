"""Live calls from a web page: over a WebSocket, or over WebRTC with the session as a sideband.

Pass in accepted Starlette sockets and authenticated users. A ticket admits one caller to one call, once.
Calls of other users are reported as not found. Needs the extra "voice".
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast
from uuid import uuid4

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.realtime import RealtimeError, RealtimeModel, WebRTCSession

from echoic.adapters.browser.call import BrowserCall, IsKnown
from echoic.adapters.browser.socket import FAILED, SUBPROTOCOL, PageSettings, Transport
from echoic.errors import InvalidInput, NotAllowed, NotOpen, brief
from echoic.memory.assurance import Level, Sensitivity, Visibility
from echoic.memory.checkpoints import Checkpoint
from echoic.memory.service import MemoryService
from echoic.session import (
    CallLimits,
    ProviderProfile,
    RecordSessionStore,
    SessionSettings,
    VoiceAgent,
    VoiceSession,
)
from echoic.session.webrtc_control import call_of
from echoic.types import Scope, checked_name

_TICKETS: Final = 10_000
"""Limit of unused tickets; a new one replaces the oldest."""


class NoSuchCall(Exception):
    """This caller has no such call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAdmission:
    """An admitted call, and its ticket."""

    session: str
    conversation: str
    ticket: str


@dataclass(frozen=True, slots=True)
class _Ticket:
    call: BrowserCall
    until_s: float
    proof: str
    level: Level


class Switchboard:
    """The live calls of one server. For one event loop.

    Args:
        service: the memory service, opened and closed elsewhere.
        model: the default model of agents.
        agents: the agents that may serve.
        transport: how audio travels.
        settings: settings of sessions.
        page_settings: settings of the pages' sockets.
        limits: limits of simultaneous calls.
        per_address: limit of simultaneous calls from one address.
        deps: your application's dependencies, for tools and hooks.

    Raises:
        InvalidInput: no agents, two with the same name, or a model without WebRTC although that is requested.
    """

    def __init__(
        self,
        service: MemoryService,
        model: RealtimeModel,
        agents: Sequence[VoiceAgent],
        *,
        transport: Transport = "websocket",
        settings: SessionSettings | None = None,
        page_settings: PageSettings | None = None,
        limits: CallLimits | None = None,
        per_address: int | None = None,
        deps: Any = None,
    ) -> None:
        self.agents = {agent.name: agent for agent in agents}
        if not agents or len(self.agents) < len(agents):
            raise InvalidInput("`agents` must hold at least one agent, and their names must differ")
        if transport == "webrtc" and not model.profile.get("supports_webrtc"):
            raise InvalidInput(
                f"{brief(model.model_name)} does not support WebRTC; use transport 'websocket'"
            )
        self.model = model
        self.transport: Transport = transport
        self._service = service
        self._settings = settings or SessionSettings()
        self._page_settings = page_settings or PageSettings()
        self._limits = limits or CallLimits()
        self._per_address = per_address
        self._deps = deps
        self._calls: dict[tuple[Scope, str], BrowserCall] = {}
        self._tickets: dict[str, _Ticket] = {}
        self._closed = False

    @property
    def profile(self) -> ProviderProfile:
        return ProviderProfile.of(self.model)

    @property
    def greets(self) -> bool:
        """Whether the agent speaks first."""
        return next(iter(self.agents.values())).greeting is not None

    @property
    def calls(self) -> int:
        """How many calls are open or being opened."""
        return len(self._calls)

    async def admit(
        self,
        user: str,
        deployment: str,
        *,
        agent: str = "",
        resume: str = "",
        keeps_media: bool = False,
        is_known: IsKnown | None = None,
        level: Level = "device",
        address: str = "",
        proof: str = "",
    ) -> CallAdmission:
        """Admit a caller to a new call, or to one that they resume.

        At the limit, an admitted call that was not joined yet makes room: the oldest one of this caller, or
        of the address with the most of them. So unused tickets lock nobody out.

        Args:
            user: the user's id, from a token.
            deployment: the deployment.
            agent: the agent to begin with; by default the first one.
            resume: the session to resume.
            keeps_media: whether their audio still goes to the provider.
            is_known: whether their identity is still valid; called during the call.
            level: how certain their identity is.
            address: the address of the request.
            proof: a value that must be presented with the ticket.

        Raises:
            NoSuchCall: no such agent, or no call of this caller to resume; so is one in which a caller was
                told more than `level` is.
            NotAllowed: the limit of calls is reached.
            NotOpen: the server is shutting down.
            StoreUnavailable: the store could not be read.
        """
        if self._closed:
            raise NotOpen("the server is shutting down")
        if agent and agent not in self.agents:
            raise NoSuchCall("agent")
        scope = self._service.user(user, deployment).scope
        if resume:
            name = checked_name(resume, "resume")
            call = await self._resumed(scope, name, address, level, keeps_media=keeps_media)
        else:
            name = uuid4().hex
            call = self._placed(scope, name, name, address, agent=agent)
        call.is_known, call.level = is_known, level
        ticket = self._ticket(call, proof, level)
        return CallAdmission(session=call.name, conversation=call.conversation, ticket=ticket)

    def redeem(self, ticket: str, proof: str = "") -> BrowserCall | None:
        """The call a ticket opens, if it is valid and comes with the `proof` passed to `admit`. Uses the
        ticket up.
        """
        found = self._tickets.pop(ticket, None)
        if found is None or found.until_s < time.monotonic() or found.call.over or found.proof != proof:
            return None
        if not self._is_told_enough(found.level, found.call):  # somebody who is told more resumed it since
            return None
        found.call.awaited = False
        return found.call

    async def offer(
        self, user: str, deployment: str, session: str, sdp: str, *, level: Level = "device"
    ) -> str:
        """Answer a page's WebRTC offer: its media go to the provider, controlled by the session.

        `level` is how certain the identity of who sent it is.

        Raises:
            NoSuchCall: this caller has no such call that takes offers.
            InvalidInput: the provider does not accept this offer.
            RealtimeError, ModelAPIError, UserError: the provider could not be reached.
        """
        scope = self._service.user(user, deployment).scope
        call = self._calls.get((scope, session))
        if call is None or call.over or self.transport != "webrtc":
            raise NoSuchCall("call")
        self._joined(call, level)
        answer = opened = ""

        async def dialled() -> str:
            nonlocal answer, opened
            answer, opened = await answered(self.model, sdp, self._settings)
            return opened

        try:
            await call.exchange(dialled)
        except BaseException as error:
            if opened:  # nobody controls that call: it would cost, and never answer
                await hung_up(self.model, opened)
            if isinstance(error, NotOpen):
                raise NoSuchCall("call") from None
            raise
        return answer

    async def aclose(self) -> None:
        """Suspend every call, for the next process to resume."""
        self._closed = True
        self._tickets.clear()
        ending = [call.end("suspended", keep=True) for call in list(self._calls.values())]
        await asyncio.gather(*ending, return_exceptions=True)

    # -- inside

    def _visible(self, level: Level) -> Visibility:
        return Visibility(cast("Sensitivity", self._service.assurance[level]))

    def _is_told_enough(self, level: Level, call: BrowserCall) -> bool:
        """Whether callers of `level` are told at least as much as whoever `call` was opened for."""
        return self._visible(level).covers(self._visible(call.level).most)

    def _joined(self, call: BrowserCall, level: Level) -> BrowserCall:
        if not self._is_told_enough(level, call):
            raise NoSuchCall("call")
        return call

    async def _resumed(
        self, scope: Scope, name: str, address: str, level: Level, *, keeps_media: bool
    ) -> BrowserCall:
        known = self._calls.get((scope, name))
        if known is not None and not known.over:
            self._joined(known, level).expect_caller()
            return known
        checkpoint = await self._checkpoint(scope, name, level)
        if (again := self._calls.get((scope, name))) is not None:  # resumed meanwhile
            return self._joined(again, level)
        call = self._placed(scope, name, checkpoint.conversation, address, agent=checkpoint.agent)
        call.resumed = True
        call.keeps_media = self.transport == "webrtc" and keeps_media and call_of(checkpoint) is not None
        return call

    async def _checkpoint(self, scope: Scope, name: str, level: Level) -> Checkpoint:
        sessions = RecordSessionStore(self._service.user(scope.user or "", scope.deployment).backing_store)
        checkpoint = await sessions.load(scope, name)
        if (
            checkpoint is None
            or checkpoint.agent not in self.agents
            or datetime.now(UTC) - checkpoint.saved_at
            > timedelta(seconds=self._page_settings.resume_within_s)
            or not self._visible(level).covers(checkpoint.told)
        ):
            raise NoSuchCall("call")
        return checkpoint

    def _make_room(self, scope: Scope, address: str) -> None:
        """Withdraw a call that nobody joined if the user or `address` is at its limit.

        Raises:
            NotAllowed: there is none.
        """
        try:
            self._limits.check_user(scope)
        except NotAllowed:
            held = (call for (user, _), call in self._calls.items() if user == scope and call.awaited)
            if (unused := next(held, None)) is None:
                raise
            unused.withdraw()
        calls = list(self._calls.values())
        own = [call for call in calls if call.address == address]
        if self._per_address is not None and len(own) >= self._per_address:
            awaited = next((call for call in own if call.awaited), None)
            if awaited is None:
                raise NotAllowed(f"there are {self._per_address} calls from this address; end one first")
            awaited.withdraw()
        elif self._limits.calls >= self._limits.total:
            waiting = [call for call in calls if call.awaited]
            if waiting:
                crowd, _ = Counter(call.address for call in waiting).most_common(1)[0]
                next(call for call in waiting if call.address == crowd).withdraw()

    def _placed(self, scope: Scope, name: str, conversation: str, address: str, *, agent: str) -> BrowserCall:
        self._make_room(scope, address)
        self._limits.enter(scope)

        async def opens(call: BrowserCall) -> VoiceSession:
            return await self._session(scope, call, agent)

        def over(_call: BrowserCall) -> None:
            self._limits.leave(scope)
            self._calls.pop((scope, name), None)

        call = self._calls[scope, name] = BrowserCall(
            name,
            conversation,
            transport=self.transport,
            opens=opens,
            page_settings=self._page_settings,
            on_over=over,
        )
        call.address = address
        call.wait_for_caller(self._page_settings.ticket_s)
        return call

    async def _session(self, scope: Scope, call: BrowserCall, agent: str) -> VoiceSession:
        options: dict[str, Any] = {
            "deployment": scope.deployment,
            "agents": list(self.agents.values()),
            "model": self.model,
            "settings": self._settings,
            "deps": self._deps,
            "listener": call.listen,
            "captions": call.caption,
            "provider_call": call.provider_call,
            "level": call.level,
        }
        user = scope.user or ""
        if call.resumed:
            return await VoiceSession.resume(
                self._service, call.name, user=user, keep_media=call.keeps_media, **options
            )
        return VoiceSession(self._service, user=user, start=agent, session_id=call.name, **options)

    def _ticket(self, call: BrowserCall, proof: str, level: Level) -> str:
        now_s = time.monotonic()
        for ticket in [ticket for ticket, kept in self._tickets.items() if kept.until_s < now_s]:
            del self._tickets[ticket]
        while len(self._tickets) >= _TICKETS:
            del self._tickets[next(iter(self._tickets))]
        ticket = secrets.token_urlsafe(32)
        self._tickets[ticket] = _Ticket(call, now_s + self._page_settings.ticket_s, proof, level)
        return ticket


MAX_SDP_CHARACTERS: Final = 64 * 1024
_FROM_THE_PAGE: Final = frozenset({400, 422})


async def answered(model: RealtimeModel, sdp: str, settings: SessionSettings) -> tuple[str, str]:
    """The provider's answer to a WebRTC offer, as SDP, and the id of the call it opened.

    The model is silent until a session controls the call, which brings instructions and memory.

    Raises:
        InvalidInput: this is not an offer, or the provider rejects it.
        RealtimeError, ModelAPIError, UserError: the provider could not be reached, or refused.
    """
    if not sdp.startswith("v=0") or len(sdp) > MAX_SDP_CHARACTERS:
        raise InvalidInput("the body must be a WebRTC offer, as RTCPeerConnection.createOffer makes it")
    first, profile = settings.recalls_first, ProviderProfile.of(model)
    try:
        answer = await model.answer_webrtc_offer(
            sdp, model_settings=profile.settings(None, recall_first=first, own=model.settings)
        )
    except ModelHTTPError as error:
        if error.status_code in _FROM_THE_PAGE:
            raise InvalidInput("the provider does not take this offer; make a new one") from error
        raise
    except FAILED:
        raise
    except Exception as error:  # errors of PydanticAI's HTTP client
        raise RealtimeError(model_name=model.model_name, message=type(error).__name__) from error
    return answer.sdp, answer.session.session_id


async def hung_up(model: RealtimeModel, call: str) -> None:
    """End a call that nobody controls. One that cannot be reached ends when its caller leaves."""
    with contextlib.suppress(Exception):
        await model.hang_up(WebRTCSession(model.system, session_id=call))


__all__ = [
    "FAILED",
    "SUBPROTOCOL",
    "BrowserCall",
    "CallAdmission",
    "NoSuchCall",
    "PageSettings",
    "Switchboard",
    "Transport",
]
