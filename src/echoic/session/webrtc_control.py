"""A WebRTC call, whose audio goes directly between provider and caller, controlled over a sideband
connection.

PydanticAI's sideband runs tools, instructions and history, but does not pass on at which millisecond playback
stopped, and numbers its items from 1 on every connection, so that the ids of a second sideband collide with
those of the first. The model here changes only that: it shows the session those events and makes the ids
unique. It overrides the two methods of the connection that read and write a frame;
`tests/session/test_sideband.py` fails when an upgrade moves them.

The provider reports when a response begins to play, when it was played or dropped, and at which millisecond
an item was cut off, but not how long the words of an item last: `RemotePlayback` estimates that from the pace
of what was played in full on this call before.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_ai.realtime import RealtimeModel

from echoic.errors import InvalidInput
from echoic.memory.checkpoints import Checkpoint
from echoic.session.playback import SAMPLE_BYTES, Playback, Utterance
from echoic.session.speech_alignment import DEFAULT_MS_PER_UNIT, PAUSE_CHARACTERS

_TOLD: Final = (
    "response.content_part.added",
    "output_audio_buffer.started",
    "output_audio_buffer.stopped",
    "output_audio_buffer.cleared",
    "conversation.item.truncated",
)
_OWN_ITEM: Final = "pydantic_ai_"
"""Prefix of PydanticAI's item ids. The provider allows 32 characters."""
_HANDLE: Final = re.compile(r"call:([\w-]{1,200})")


@dataclass(slots=True, kw_only=True)
class ProviderCall:
    """A WebRTC call of the provider."""

    id: str
    knows: bool = False
    """Whether it already has the history."""

    @property
    def handle(self) -> str:
        """The id as stored in a checkpoint for another process; see `call_of`."""
        return f"call:{self.id}"


def observed(model: RealtimeModel, told: Callable[[Mapping[str, Any]], None]) -> RealtimeModel:
    """`model`, with sidebands that report playback to `told`; raises `InvalidInput` if it has no
    sidebands.
    """
    if not model.profile.get("supports_webrtc"):
        raise InvalidInput(
            f"{model.model_name!r} cannot be steered from beside a call; send its audio through the session"
        )
    seeing: Any = copy.copy(model)
    seeing._connection_type = _observed_connection(seeing._connection_class({}), told)  # noqa: SLF001 - see above
    return seeing  # type: ignore[no-any-return]


def _observed_connection(base: Any, told: Callable[[Mapping[str, Any]], None]) -> type:
    own = f"e{secrets.token_hex(2)}_{_OWN_ITEM}"

    async def _decode_frame(connection: Any, raw: str) -> Any:
        if any(kind in raw for kind in _TOLD):
            with suppress(ValueError, KeyError, TypeError):  # PydanticAI says what is wrong with a frame
                told(json.loads(raw))
        return await base._decode_frame(connection, raw.replace(own, _OWN_ITEM))  # noqa: SLF001 - overridden here

    async def _send_event(connection: Any, event: dict[str, Any]) -> None:
        sent = dict(event)
        if str(sent.get("item_id", "")).startswith(_OWN_ITEM):
            sent["item_id"] = sent["item_id"].replace(_OWN_ITEM, own, 1)
        if str((sent.get("item") or {}).get("id", "")).startswith(_OWN_ITEM):
            sent["item"] = {**sent["item"], "id": sent["item"]["id"].replace(_OWN_ITEM, own, 1)}
        await base._send_event(connection, sent)  # noqa: SLF001 - overridden here

    return type("ObservedConnection", (base,), {"_decode_frame": _decode_frame, "_send_event": _send_event})


def call_of(checkpoint: Checkpoint) -> str | None:
    """The provider's call that a checkpoint names; None if its audio went through the session."""
    found = _HANDLE.fullmatch(checkpoint.resumption or "")
    return found[1] if found else None


_SILENT_S: Final = 5.0
"""How long a finished utterance may take to become audible before it counts as never played."""
_KEPT: Final = 64


@dataclass(slots=True)
class _Sound:
    """The playback of one response."""

    items: list[str] = field(default_factory=list)
    began_s: float | None = None
    """Monotonic time at which it began to play, while it plays."""
    before_ms: float = 0.0
    """Milliseconds that were played before the pause."""
    begun: bool = False

    @property
    def ms(self) -> float:
        now_ms = 0.0 if self.began_s is None else 1000 * (time.monotonic() - self.began_s)
        return self.before_ms + now_ms


class RemotePlayback(Playback):
    """Follows the playback of a call whose audio the provider sends itself."""

    def __init__(self) -> None:
        super().__init__()
        self._sounds: dict[str, _Sound] = {}
        """By response."""
        self._response_of: dict[str, str] = {}
        """By item."""
        self._utterances: dict[str, Utterance] = {}
        """By item; only the latest."""
        self._truncated: dict[str, float] = {}
        """By item, where the provider reports that it was cut off."""
        self._cut_elsewhere: list[Utterance] = []
        """Utterances that the provider cut off by itself, as when it hears the caller."""
        self._paces: list[float] = []
        """Milliseconds per unit of text, for items that were played in full."""

        # -- reports of the provider

    def take_event(self, event: Mapping[str, Any]) -> None:
        """Process an event of any kind. It may arrive twice, and before the words."""
        kind, response = event.get("type"), str(event.get("response_id", ""))
        if kind == "response.content_part.added" and event.get("part", {}).get("type") == "audio":
            self._sound(response).items.append(str(event["item_id"]))
            self._response_of[str(event["item_id"])] = response
        elif kind == "output_audio_buffer.started":
            sound = self._sound(response)
            sound.begun = True
            sound.began_s = time.monotonic() if sound.began_s is None else sound.began_s
        elif kind == "output_audio_buffer.stopped":
            self._stopped(response)
        elif kind == "output_audio_buffer.cleared":
            self._cleared(response)
        elif kind == "conversation.item.truncated":
            self._truncate(str(event["item_id"]), float(event["audio_end_ms"]))
        else:
            return
        self.moved.set()

    # -- as a `Playback`

    @property
    def idle(self) -> bool:
        """Whether nothing is playing or about to."""
        return all(said.settled for said in self._utterances.values())

    @property
    def sounding(self) -> Utterance | None:
        """The item the caller hears now, or would hear next."""
        return next((said for said in self._utterances.values() if not said.settled), None)

    def announced(self, utterance: Utterance) -> None:
        if utterance.item is None or utterance.item in self._utterances:
            return
        self._cut_elsewhere.clear()  # nobody spoke when they were cut off: another reply follows
        utterance.elsewhere = True
        utterance.pace_ms = self._pace
        utterance.sounds_ms = lambda: self.progress(utterance)
        self._utterances[utterance.item] = utterance
        while len(self._utterances) > _KEPT:
            del self._utterances[next(iter(self._utterances))]
        if utterance.item in self._truncated:
            self._truncate(utterance.item, self._truncated[utterance.item])

    def finished(self, utterance: Utterance) -> None:
        sound = self._sound_of(utterance)
        if sound is not None and sound.begun and sound.began_s is None:
            self._whole(utterance, sound)
        elif sound is None or not sound.begun:
            asyncio.get_running_loop().call_later(_SILENT_S, self._given_up, utterance)

    def reconnected(self) -> None:
        """Settle what is playing when it should be over: its end may have been reported meanwhile."""
        for said in self._utterances.values():
            if not said.settled and self.progress(said):
                self._await_end(said)

    def awaits(self, cut: Utterance) -> bool:
        """Whether the provider has yet to report where it truncated `cut`."""
        return cut.item not in self._truncated

    def progress(self, utterance: Utterance) -> float:
        sound = self._sound_of(utterance)
        return 0.0 if sound is None else max(0.0, sound.ms - self._ahead_ms(utterance, sound))

    def feed(self, utterance: Utterance, pcm: bytes) -> None:
        """Do nothing: no audio comes here."""

    def played(self, total_bytes: int, *, flushed: bool = False) -> None:
        """Do nothing: the provider reports what was played, not the device."""

    def cut(self) -> list[Utterance]:
        """Cut what is playing now; the provider's own report replaces this estimate."""
        cut = [said for said in self._utterances.values() if not said.settled]
        for said in cut:
            self._cut_at(said, self.progress(said))
        self.moved.set()
        return cut

    def take_cut_elsewhere(self) -> list[Utterance]:
        cut, self._cut_elsewhere = self._cut_elsewhere, []
        return cut

    def close(self) -> None:
        self.cut()
        super().close()

    # -- inside

    @property
    def _pace(self) -> float:
        return sum(self._paces) / len(self._paces) if self._paces else DEFAULT_MS_PER_UNIT

    def _sound(self, response: str) -> _Sound:
        while len(self._sounds) > _KEPT:
            del self._sounds[next(iter(self._sounds))]
        return self._sounds.setdefault(response, _Sound())

    def _sound_of(self, utterance: Utterance) -> _Sound | None:
        return self._sounds.get(self._response_of.get(utterance.item or "", ""))

    def _ahead_ms(self, utterance: Utterance, sound: _Sound) -> float:
        """Milliseconds of the same response that are played before this item."""
        before = sound.items[: sound.items.index(utterance.item)] if utterance.item in sound.items else []
        return sum(self._length_ms(self._utterances[item]) for item in before if item in self._utterances)

    def _length_ms(self, utterance: Utterance) -> float:
        return utterance.trace.audio_ms or _units(utterance.trace.text) * self._pace

    def _stopped(self, response: str) -> None:
        sound = self._sound(response)
        sound.before_ms, sound.began_s = sound.ms, None
        for item in sound.items:
            said = self._utterances.get(item)
            if said is not None and said.ended:  # otherwise it only paused: more is being generated
                self._whole(said, sound)

    def _cleared(self, response: str) -> None:
        sound = self._sound(response)
        for item in sound.items:
            said = self._utterances.get(item)
            if said is not None and item not in self._truncated and (said.elsewhere or said.cut):
                self._cut_by_provider(said, self.progress(said))
        sound.before_ms, sound.began_s = sound.ms, None

    def _truncate(self, item: str, ms: float) -> None:
        self._truncated[item] = ms
        while len(self._truncated) > _KEPT:
            del self._truncated[next(iter(self._truncated))]
        if (said := self._utterances.get(item)) is not None:
            self._cut_by_provider(said, ms)

    def _whole(self, said: Utterance, sound: _Sound) -> None:
        if said.cut or not said.elsewhere:
            return
        alone = len(sound.items) == 1
        ms = sound.ms if alone else self._length_ms(said)
        said.trace.audio_bytes = said.played_bytes = _bytes(said, ms)
        said.elsewhere = False
        if alone and (units := _units(said.trace.text)):
            self._paces.append(ms / units)
        self.moved.set()

    def _cut_by_provider(self, said: Utterance, ms: float) -> None:
        if not said.settled:
            self._cut_elsewhere.append(said)
        self._cut_at(said, ms)

    def _cut_at(self, said: Utterance, ms: float) -> None:
        said.cut, said.elsewhere = True, False
        said.played_bytes = _bytes(said, ms)

    def _await_end(self, said: Utterance) -> None:
        length_ms = self._length_ms(said)
        late_s = _SILENT_S + (length_ms - self.progress(said)) / 1000  # the length is an estimate
        asyncio.get_running_loop().call_later(late_s, self._assumed_played, said, length_ms)

    def _assumed_played(self, said: Utterance, length_ms: float) -> None:
        if said.elsewhere and not said.cut and self._length_ms(said) > length_ms:
            self._await_end(said)  # more was generated meanwhile
        elif said.elsewhere and not said.cut:
            said.trace.audio_bytes = said.played_bytes = _bytes(said, self._length_ms(said))
            said.elsewhere = False
            self.moved.set()

    def _given_up(self, said: Utterance) -> None:
        sound = self._sound_of(said)
        if said.elsewhere and (sound is None or not sound.begun):
            self._cut_at(said, 0.0)
            self.moved.set()


def _bytes(said: Utterance, ms: float) -> int:
    return SAMPLE_BYTES * int(ms * said.trace.rate_hz / 1000)


def _units(text: str) -> int:
    """The spoken length of a text, in the units of `speech_alignment`."""
    words = text.split()
    return sum(map(len, words)) + PAUSE_CHARACTERS * len(words)
