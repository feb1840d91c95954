"""The state shared by the parts of one voice session, and the session's settings. No behaviour."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from pydantic_ai.messages import ModelMessage

from echoic.errors import InvalidInput, brief
from echoic.memory.block import DEFAULT_BUDGET_TOKENS
from echoic.memory.extraction.turns import THRESHOLD
from echoic.session.agents import InCall, VoiceAgent
from echoic.session.asr_confidence import Confidences
from echoic.session.call_record import CallLog
from echoic.session.history import masked_messages
from echoic.session.hooks import CallHooks
from echoic.session.playback import Playback
from echoic.session.provider import ProviderSession
from echoic.session.recorder import HISTORY_TOKENS, CallRecorder
from echoic.session.turn_recall import DEFAULT_DEADLINE_MS, CallRecall
from echoic.session.webrtc_control import ProviderCall

if TYPE_CHECKING:
    from echoic.session.text_call import TextCall

State = Literal["created", "connecting", "active", "reconnecting", "transferring", "closed"]
RecallMode = Literal["before_reply", "beside", "off"]
"""before_reply: where the provider can be made to wait for it; elsewhere as "beside". beside: found and
recorded while the model answers, and told to it for its next response. off: the block and the tools alone.
"""
CHECKPOINT_EVERY_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """How a session behaves.

    Raises:
        InvalidInput: a time that leaves no time.
    """

    recall: RecallMode = "before_reply"
    recall_deadline_ms: float = DEFAULT_DEADLINE_MS
    transcript_wait_s: float = 2.0
    """How long a reply waits for the transcript of what it answers, where recall comes first."""
    checkpoint_every_s: float = CHECKPOINT_EVERY_S
    """While nothing happens that would be a reason for one."""
    idle_timeout_s: float | None = 300.0
    """After which a call where nobody says anything is ended."""
    max_duration_s: float | None = 3600.0
    frame_ms: int = 20
    """Length of the audio frames handed out."""
    cut_grace_s: float = 0.3
    """How long after an interruption a device may take to say how much it played."""
    farewell_s: float = 3.0
    """How long an agent that hands the call over may take to finish its sentence."""
    doubt_below: float = THRESHOLD
    block_tokens: int = DEFAULT_BUDGET_TOKENS
    history_tokens: int = HISTORY_TOKENS
    """Token budget for the messages given word for word to an agent that resumes the call or takes it over. A
    summary stands for earlier messages.
    """
    record: bool = True
    """Whether the call is written down for `echoic calls` and `echoic why`."""
    history: bool = True
    """Whether what is said is kept. Without, no word of the call is: nothing is learned from it, none of it
    is found again, and it is not written down. What a tool is asked to remember is kept.
    """
    checkpoints: bool = True
    """Whether another process could go on with the call. Without, it ends with its process."""
    memory: bool = True
    """Whether the agents remember. Without, they get no block, no recall, no directives and no memory tools,
    and nothing is learned from the call.
    """

    def __post_init__(self) -> None:
        for name in (
            "recall_deadline_ms",
            "transcript_wait_s",
            "checkpoint_every_s",
            "frame_ms",
            "history_tokens",
        ):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"{name} must be above 0, not {brief(getattr(self, name))}")
        for name in ("idle_timeout_s", "max_duration_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidInput(f"{name} must be above 0 or None, not {brief(value)}")

    @property
    def recalls(self) -> bool:
        """Whether memory is searched for what the caller says."""
        return self.memory and self.recall != "off"

    @property
    def recalls_first(self) -> bool:
        """Whether a reply waits for that, where the provider can be made to wait."""
        return self.memory and self.recall == "before_reply"


@dataclass(slots=True, kw_only=True)
class CallState:
    """One call while it goes on."""

    settings: SessionSettings
    recorder: CallRecorder
    """Keeps the turns, checkpoints and record of the call in the caller's memory."""
    playback: Playback
    hooks: CallHooks
    recall: CallRecall
    confidences: Confidences
    providers: list[ProviderSession] = field(default_factory=list)
    """The provider session that is listening, last; before it, sessions whose words are not all kept yet."""
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    sending: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a frame is handed to a line."""
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    recalls: set[asyncio.Task[Any]] = field(default_factory=set)
    """Those under way: what they are about is not yet in the memory they search."""
    cut_at_s: float = 0.0
    sound_at_s: float = field(default_factory=time.monotonic)
    lost: bool = False
    """Whether nothing more is kept by this session."""
    host: TextCall | None = None
    """The call that this is the voice of: it finds out who is speaking, and keeps its own words. Another
    `recorder` of it means that it serves somebody else, and the session is over."""
    provider_call: ProviderCall | None = None
    """The provider's, where the audio goes between it and the caller."""

    @property
    def provider(self) -> ProviderSession:
        """The provider session that is listening."""
        return self.providers[-1]

    @property
    def log(self) -> CallLog:
        """When what happened in the call."""
        return self.recorder.log

    def masked(self, said: str) -> str:
        """The caller's words with secrets masked, for keeping and for searching."""
        return said if self.host is None else self.host.masked(said)

    def history_so_far(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """`messages` as they may be kept and shown to another model."""
        return list(messages) if self.host is None else masked_messages(messages, self.host.masked)

    def sounds(self) -> None:
        """Note that somebody makes a sound now."""
        self.sound_at_s = time.monotonic()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something beside everything else."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


class Session(InCall, Protocol):
    """The whole that a part belongs to."""

    agents: Mapping[str, VoiceAgent]
    """The agents that may serve, by name."""
    settings: SessionSettings
    deps: Any
    """The application's own."""
    recorder: CallRecorder
    """Keeps the turns, checkpoints and record of the call."""
    host: TextCall | None
    """The call that the session is the voice of, if it is part of one."""

    def agent(self, name: str) -> VoiceAgent:
        """One of the session's agents.

        Raises:
            InvalidInput: there is none of that name.
        """
        ...
