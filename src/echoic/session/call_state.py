"""The state shared by the parts of one voice session, and the session's settings. No behaviour."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from pydantic_ai.messages import ModelMessage

from echoic.errors import InvalidInput, brief
from echoic.memory.block import DEFAULT_BUDGET_TOKENS
from echoic.memory.extraction.turns import THRESHOLD
from echoic.session.agents import InCall, VoiceAgent
from echoic.session.call_record import CallLog
from echoic.session.history import masked_messages
from echoic.session.hooks import CallHooks
from echoic.session.playback import Playback, Utterance
from echoic.session.provider import ProviderSession
from echoic.session.recorder import HISTORY_TOKENS, CallRecorder
from echoic.session.turn_recall import DEFAULT_DEADLINE_MS, CallRecall
from echoic.session.webrtc_control import ProviderCall

if TYPE_CHECKING:
    from echoic.session.text_call import TextCall

State = Literal["created", "connecting", "active", "reconnecting", "transferring", "closed"]
RecallMode = Literal["before_reply", "beside", "off"]
"""before_reply: a reply waits for recall, if the provider supports that; otherwise as "beside". beside:
recall runs while the model answers, which gets the results for its next reply. off: only the block and the
tools."""
CHECKPOINT_EVERY_S: Final = 2.0
_TRANSCRIPTS_KEPT: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Settings of a session.

    Raises:
        InvalidInput: a duration or budget that is not above 0.
    """

    recall: RecallMode = "before_reply"
    recall_deadline_ms: float = DEFAULT_DEADLINE_MS
    transcript_wait_s: float = 2.0
    """How long a reply waits for the transcript of what it answers, if recall comes first."""
    checkpoint_every_s: float = CHECKPOINT_EVERY_S
    """Interval of checkpoints while nothing happens."""
    idle_timeout_s: float | None = 300.0
    """How long nobody may speak before the call is ended."""
    max_duration_s: float | None = 3600.0
    frame_ms: int = 20
    """Length of the audio frames handed out."""
    cut_grace_s: float = 0.3
    """How long after an interruption a device may take to report how much it played."""
    farewell_s: float = 3.0
    """How long an agent may take to finish its sentence before a transfer."""
    doubt_below: float = THRESHOLD
    block_tokens: int = DEFAULT_BUDGET_TOKENS
    history_tokens: int = HISTORY_TOKENS
    """Token budget of the messages given unchanged to the agent after a transfer or resume; a summary
    replaces earlier ones."""
    record: bool = True
    """Whether the call is recorded for `echoic calls` and `echoic why`."""
    history: bool = True
    """Whether what is said is stored. If not, nothing is learned from the call or found again, and it is not
    recorded; only what a tool is asked to remember is stored."""
    checkpoints: bool = True
    """Whether another process can resume the call. If not, it ends with its process."""
    memory: bool = True
    """Whether the agents remember. If not, they get no block, recall, directives or memory tools, and nothing
    is learned from the call."""

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
        """Whether a reply waits for recall, if the provider supports that."""
        return self.memory and self.recall == "before_reply"


class Confidences:
    """The speech recogniser's confidence in recent transcripts."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, float] = OrderedDict()

    def heard(self, transcript: str, confidence: float) -> None:
        self._of[transcript.strip()] = confidence
        while len(self._of) > _TRANSCRIPTS_KEPT:
            self._of.popitem(last=False)

    def of(self, transcript: str) -> float | None:
        """The confidence in a transcript; None if the recogniser gave none."""
        return self._of.get(transcript.strip())


@dataclass(slots=True, kw_only=True)
class CallState:
    """The state of one call, shared by its parts."""

    settings: SessionSettings
    recorder: CallRecorder
    """Stores the turns, checkpoints and record of the call in the caller's memory."""
    playback: Playback
    hooks: CallHooks
    recall: CallRecall
    confidences: Confidences
    providers: list[ProviderSession] = field(default_factory=list)
    """The current provider session, last; before it, sessions whose words are not all stored yet."""
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    sending: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a frame is sent to a provider."""
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    recalls: set[asyncio.Task[Any]] = field(default_factory=set)
    """Recalls in progress: the turns they are for are not stored yet."""
    undecided: set[Utterance] = field(default_factory=set)
    """Utterances that were cut off, and of which it may still be reported that more was heard."""
    sound_at_s: float = field(default_factory=time.monotonic)
    lost: bool = False
    """Whether this session stores nothing more."""
    host: TextCall | None = None
    """The call that this session is the voice of, if any: it identifies the caller and stores what is said.
    If its `recorder` changes it serves somebody else, and the session is over."""
    provider_call: ProviderCall | None = None
    """The provider's WebRTC call, if audio goes directly between provider and caller."""

    @property
    def provider(self) -> ProviderSession:
        return self.providers[-1]

    @property
    def log(self) -> CallLog:
        return self.recorder.log

    def masked(self, said: str) -> str:
        """The caller's words with secrets masked, for storing and searching."""
        return said if self.host is None else self.host.masked(said)

    def history_so_far(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """`messages` with secrets masked, as they may be stored and shown to another model."""
        return list(messages) if self.host is None else masked_messages(messages, self.host.masked)

    def sounds(self) -> None:
        self.sound_at_s = time.monotonic()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


class Session(InCall, Protocol):
    """The session that a part of a call belongs to."""

    agents: Mapping[str, VoiceAgent]
    """The agents that may serve, by name."""
    settings: SessionSettings
    deps: Any
    """The application's dependencies."""
    recorder: CallRecorder
    """Stores the turns, checkpoints and record of the call."""
    host: TextCall | None
    """The call that the session is the voice of, if any."""

    def agent(self, name: str) -> VoiceAgent:
        """The session's agent with this name; raises `InvalidInput` if there is none."""
