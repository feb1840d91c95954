"""The items of an OpenAI Realtime conversation, as the server holds them. No transport, no clock."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from echoic_loopback.openai_realtime.protocol import Refused, refuse_longer
from echoic_loopback.realtime.audio import Speech, pcm_ms

MAX_ID = 32
"""Characters of an item's or a call's id."""
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
CONTENT = {
    "user": {"input_text", "input_audio", "input_image"},
    "assistant": {"output_text"},
    "system": {"input_text"},
}
"""What a client may put into a message. An assistant's audio can only be made by the model."""
RATE_HZ = 24_000


@dataclass(slots=True)
class Item:
    """One item: what the client sees of it, and what only the server knows."""

    wire: dict[str, Any]
    audio: bytearray = field(default_factory=bytearray)
    """PCM16 at 24 kHz that was generated or received, where the server keeps it."""
    audio_bytes: int = 0
    """How much it was, kept or not."""
    spoken: Speech | None = None
    """Which words sound when, where it is speech of the script."""
    truncated_ms: int | None = None
    """How much of it the client says was played."""

    @property
    def id(self) -> str:
        return str(self.wire["id"])

    @property
    def audio_ms(self) -> int:
        return pcm_ms(self.audio_bytes, RATE_HZ)

    def add_audio(self, pcm: bytes) -> None:
        """More of its audio."""
        self.audio += pcm
        self.audio_bytes += len(pcm)

    def forget_audio(self) -> None:
        """Keeps of its audio only how long it was, and which words sounded when."""
        self.audio = bytearray()
        if self.spoken is not None:
            self.spoken = replace(self.spoken, pcm=b"")

    @property
    def heard(self) -> str:
        """The words that were played, by what the client said; all that was generated, if it said nothing."""
        if self.spoken is None:
            return ""
        return self.spoken.heard(self.audio_ms if self.truncated_ms is None else self.truncated_ms)


class Conversation:
    """Items in order. Every change is checked first; what is refused changes nothing."""

    def __init__(self, new_id: Callable[[str], str], *, keep_audio: bool = True) -> None:
        self._new_id = new_id
        self._keep_audio = keep_audio
        self._items: dict[str, Item] = {}
        self._order: list[str] = []

    def __iter__(self) -> Iterator[Item]:
        return (self._items[item_id] for item_id in self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._items

    def __getitem__(self, item_id: str) -> Item:
        return self._items[item_id]

    @property
    def has_spoken(self) -> bool:
        """The model's audio is in it."""
        return any(item.audio_bytes and item.wire.get("role") == "assistant" for item in self)

    @property
    def calls(self) -> dict[str, str]:
        """Names of the functions called so far, by call id."""
        wires = (item.wire for item in self)
        return {wire["call_id"]: wire["name"] for wire in wires if wire["type"] == "function_call"}

    @property
    def outputs(self) -> dict[str, str]:
        """Results of functions so far, by call id."""
        wires = (item.wire for item in self)
        return {wire["call_id"]: wire["output"] for wire in wires if wire["type"] == "function_call_output"}

    def before(self, item_id: str) -> str | None:
        """The id of the item before this one."""
        index = self._order.index(item_id)
        return self._order[index - 1] if index else None

    def append(self, item: Item) -> Item:
        """Adds what the server made."""
        self._items[item.id] = item
        self._order.append(item.id)
        return item

    def finish(self, item: Item) -> None:
        """Notes that an item is whole."""
        if not self._keep_audio:
            item.forget_audio()

    def create(self, wire: Mapping[str, Any], after: str | None) -> Item:
        """Adds what a client made, behind the item `after`, at the beginning if that is `root`, else at the
        end.

        Raises:
            Refused: an id is taken or malformed, `after` or a call is not there, or a client may not make it.
        """
        self._check(wire)
        if after not in (None, "root") and after not in self._items:
            raise Refused(
                "item_create_invalid_previous_item_id",
                f"Error inserting item: the previous item with id '{after}' does not exist.",
                param="previous_item_id",
            )
        item = Item(
            {"id": self._new_id("item"), "object": "realtime.item", "status": "completed", **_kept(wire)}
        )
        if item.wire["type"] == "function_call":
            item.wire.setdefault("call_id", self._new_id("call"))
        self._items[item.id] = item
        place = len(self._order) if after is None else 0 if after == "root" else self._order.index(after) + 1
        self._order.insert(place, item.id)
        return item

    def retrieve(self, item_id: str) -> dict[str, Any]:
        """The item with its audio, where it has one.

        Raises:
            Refused: there is no such item.
        """
        item = self._known(item_id, "retrieve", "retrieving")
        wire = dict(item.wire)
        if item.audio and wire["content"]:
            first, *rest = wire["content"]
            wire["content"] = [{**first, "audio": base64.b64encode(bytes(item.audio)).decode()}, *rest]
        return wire

    def delete(self, item_id: str) -> None:
        """Takes an item out.

        Raises:
            Refused: there is no such item.
        """
        self._known(item_id, "delete", "deleting")
        del self._items[item_id]
        self._order.remove(item_id)

    def truncate(self, item_id: str, content_index: int, audio_end_ms: int) -> Item:
        """Cuts the model's audio where playback stopped; its transcript goes with it.

        Raises:
            Refused: there is no such item, it is not the model's audio, or it is shorter than that.
        """
        item = self._known(item_id, "truncate", "truncating")
        if item.wire.get("role") != "assistant" or not item.audio_bytes:
            raise Refused("invalid_value", "Only model output audio messages can be truncated")
        if content_index != 0:
            raise Refused(
                "invalid_value", f"Content index {content_index} does not exist.", param="content_index"
            )
        if audio_end_ms < 0:
            raise Refused(
                "integer_below_min_value",
                "Invalid 'audio_end_ms': integer below minimum value. Expected a value >= 0, "
                f"but got {audio_end_ms} instead.",
                param="audio_end_ms",
            )
        if audio_end_ms > item.audio_ms:
            raise Refused(
                "invalid_value",
                f"Audio content of {item.audio_ms}ms is already shorter than {audio_end_ms}ms",
            )
        item.truncated_ms = audio_end_ms
        item.wire["content"] = [{**part, "transcript": ""} for part in item.wire["content"]]
        return item

    def _known(self, item_id: str, verb: str, doing: str) -> Item:
        if item_id not in self._items:
            raise Refused(
                f"item_{verb}_invalid_item_id",
                f"Error {doing} item: the item with id '{item_id}' does not exist.",
                param="item_id",
            )
        return self._items[item_id]

    def _check(self, wire: Mapping[str, Any]) -> None:
        if (item_id := wire.get("id")) is not None:
            refuse_longer("item.id", MAX_ID, item_id)
            if item_id in self._items:
                raise Refused(
                    "item_create_item_already_exists",
                    f"Error adding item: an item with id '{item_id}' already exists.",
                    param="item.id",
                )
        match wire["type"]:
            case "message":
                _check_content(wire)
            case "function_call" | "function_call_output":
                self._check_call(wire)
            case kind:
                raise Refused(
                    "not_modelled", f"The stand-in has no items of type {kind!r}.", param="item.type"
                )

    def _check_call(self, wire: Mapping[str, Any]) -> None:
        call_id = wire.get("call_id")
        if call_id is None:
            if wire["type"] == "function_call_output":
                raise Refused(
                    "missing_required_parameter",
                    "Missing required parameter: 'item.call_id'.",
                    param="item.call_id",
                )
            return
        refuse_longer("item.call_id", MAX_ID, call_id)
        if not CALL_ID.fullmatch(call_id):
            raise Refused(
                "invalid_value",
                "Invalid 'item.call_id': string does not match pattern. Expected a string that matches "
                f"the pattern '^{CALL_ID.pattern}$'.",
                param="item.call_id",
            )
        if wire["type"] == "function_call_output" and call_id not in self.calls:
            raise Refused(
                "invalid_tool_call_id", f"Tool call ID '{call_id}' not found in conversation.", echo=False
            )


def _check_content(wire: Mapping[str, Any]) -> None:
    for index, part in enumerate(wire["content"]):
        allowed = CONTENT[wire["role"]]
        if part.get("type", next(iter(allowed))) not in allowed:
            names = " and ".join(f"'{name}'" for name in sorted(allowed))
            raise Refused(
                "invalid_value",
                f"Invalid value: '{part['type']}'. Supported values are: {names}.",
                param=f"item.content[{index}].type",
            )


def _kept(wire: Mapping[str, Any]) -> dict[str, Any]:
    """A client's item as the server tells it: without nulls, without audio."""
    kept = {key: value for key, value in wire.items() if value is not None}
    if kept["type"] == "message":
        kept["content"] = [
            {key: value for key, value in part.items() if key not in {"audio", "image_url"}}
            for part in kept["content"]
        ]
    return kept


__all__ = ["Conversation", "Item"]
