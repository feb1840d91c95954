"""A telephone with a memory: an agent, whose memory it serves from, and the calls there are."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability

from echoic.adapters.twilio.callers import Callers
from echoic.adapters.twilio.linking import LinkCodes
from echoic.adapters.twilio.phone_call import Figures, PhoneCall
from echoic.adapters.twilio.phone_lines import AGENT
from echoic.adapters.twilio.settings import PhoneSettings
from echoic.adapters.twilio.signing import Signatures
from echoic.errors import InvalidInput
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.session.hooks import Caption

if TYPE_CHECKING:
    from pydantic_ai.realtime import RealtimeModel

log = logging.getLogger(__name__)

_REMEMBERED: Final = 1000
"""Calls that are over and still known, so that a webhook that comes late or again changes nothing."""
_SOCKET_TOKEN_S: Final = 60.0


class Phone:
    """Answers calls with an agent and what memory knows of the caller.

    Args:
        service: where memory is kept; opened and closed by whoever made it.
        agent: who speaks. It gets its memory here: give it none of its own.
        settings: how the phone answers, and what it keeps.
        deps: makes the agent's dependencies for a call; None: they are None.
        capabilities: more for each run of the agent.
        realtime: the voice model of calls whose audio is streamed (channel "media").
        colleagues: more agents, each with a name of its own, that a call can be handed to.
        captions: told what is being said in a call, while it is said; must not wait.
        ended: told what a call took once it is over.

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
            raise InvalidInput("the agents of a phone need names that differ")
        self.callers = Callers(service, settings)
        self.links = LinkCodes(service, settings.deployment)
        """Gives out codes that link a telephone to a user; see `LinkCodes.give`."""
        self.signatures = Signatures(settings)
        self._deps = deps
        self._ended = ended
        self._calls: dict[str, PhoneCall] = {}
        self._over: OrderedDict[str, PhoneCall] = OrderedDict()
        self._sockets: dict[str, tuple[str, float]] = {}
        self._idle: asyncio.Task[None] | None = None
        self._later: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        """Of the agent, under which its calls and its experience are kept."""
        return self.agent.name or AGENT

    @property
    def agents(self) -> Mapping[str, Agent[Any, str]]:
        """Who may serve, by name; the first one begins."""
        return {self.name: self.agent} | {agent.name or AGENT: agent for agent in self.colleagues}

    @property
    def busy(self) -> bool:
        """Whether there are as many calls as there may be."""
        return len(self._calls) >= self.settings.max_calls

    def memory_of(self, user: str) -> UserMemory:
        """The memory of one of the callers."""
        return self.service.user(user, self.settings.deployment)

    def deps_of(self, call: PhoneCall) -> Any:
        """What the agent depends on in `call`."""
        return self._deps(call) if self._deps else None

    def call(self, sid: str, *, number: str = "", attestation: str = "") -> PhoneCall:
        """The call of that id, begun if it is new."""
        known = self._calls.get(sid) or self._over.get(sid)
        if known is None:
            known = self._calls[sid] = PhoneCall(self, sid, number, attestation)
            if self._idle is None or self._idle.done():
                self._idle = asyncio.ensure_future(self._end_idle())
        known.touched = time.monotonic()
        return known

    def known(self, sid: str) -> PhoneCall | None:
        """The call of that id, if there is or was one."""
        return self._calls.get(sid) or self._over.get(sid)

    def socket_token(self, sid: str) -> str:
        """A token that opens one socket for one call, once, within a minute."""
        now = time.monotonic()
        self._sockets = {token: given for token, given in self._sockets.items() if given[1] > now}
        token = secrets.token_urlsafe(24)
        self._sockets[token] = (sid, now + _SOCKET_TOKEN_S)
        return token

    def take_socket(self, token: str) -> PhoneCall | None:
        """The call a token opens a socket for; it is good no longer. None: it is not good."""
        sid, until = self._sockets.pop(token, ("", 0.0))
        return self._calls.get(sid) if until > time.monotonic() else None

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work` beside everything else, unless the phone is closed before."""
        task = asyncio.ensure_future(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    def ended(self, call: PhoneCall) -> None:
        """Note that `call` is over."""
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
        """End every call; what was said in them is kept as it would be. May be called twice."""
        waiting = [*self._later, *([self._idle] if self._idle else [])]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.gather(*(call.hang_up() for call in list(self._calls.values())))

    async def _end_idle(self) -> None:
        """End calls that nobody said are over: a webhook may get lost."""
        idle_s = self.settings.pace.idle_s
        while self._calls:
            await asyncio.sleep(min(10.0, idle_s / 4))
            before = time.monotonic() - idle_s
            late = [c for c in self._calls.values() if c.lines == 0 and c.touched < before]
            await asyncio.gather(*(call.hang_up() for call in late), return_exceptions=True)
