"""A call whose audio goes between the provider and the caller, steered from beside it.

PydanticAI's sideband runs tools, instructions and history. It passes on that the provider plays, not at
which millisecond it stopped. And it numbers the items it creates from 1 on every connection, so that the
second sideband of one call is refused what the first has made already. The model here is theirs in all else:
it lets the session see those events and makes the numbers the connection's own. It overrides the two methods
of the connection that read and write a frame; `tests/session/test_sideband.py` fails when an upgrade moves
them.
"""

from __future__ import annotations

import copy
import json
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic_ai.realtime import RealtimeModel

from echoic.errors import InvalidInput
from echoic.memory.checkpoints import Checkpoint
from echoic.session.checkpoints import SessionStore
from echoic.types import Scope

_TOLD: Final = (
    "response.content_part.added",
    "output_audio_buffer.started",
    "output_audio_buffer.stopped",
    "output_audio_buffer.cleared",
    "conversation.item.truncated",
)
_OWN_ITEM: Final = "pydantic_ai_"
"""What PydanticAI's ids of items begin with. The provider takes 32 characters."""
_HANDLE: Final = re.compile(r"call:([\w-]{1,200})")


@dataclass(slots=True, kw_only=True)
class ProviderCall:
    """A provider's call."""

    id: str
    knows: bool = False
    """Whether it has the history already, so that nobody tells it again."""


def observed(model: RealtimeModel, told: Callable[[Mapping[str, Any]], None]) -> RealtimeModel:
    """`model`, whose sidebands tell what the provider plays.

    Raises:
        InvalidInput: its provider has no sidebands.
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


class CallCheckpoints:
    """A session store whose checkpoints name the provider's call, so that another process finds it."""

    def __init__(self, sessions: SessionStore, call: ProviderCall) -> None:
        self._sessions = sessions
        self._call = call

    async def save(self, scope: Scope, checkpoint: Checkpoint) -> None:
        """See `SessionStore`."""
        await self._sessions.save(scope, replace(checkpoint, resumption=f"call:{self._call.id}"))

    async def load(self, scope: Scope, session: str) -> Checkpoint | None:
        """See `SessionStore`."""
        return await self._sessions.load(scope, session)

    async def delete(self, scope: Scope, session: str) -> None:
        """See `SessionStore`."""
        await self._sessions.delete(scope, session)


def call_of(checkpoint: Checkpoint) -> str | None:
    """The provider's call that a checkpoint names; None: its audio came through the session."""
    found = _HANDLE.fullmatch(checkpoint.resumption or "")
    return found[1] if found else None


__all__ = ["CallCheckpoints", "ProviderCall", "call_of", "observed"]
