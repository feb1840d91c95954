"""Whether what an export holds can be kept, and read again: a file may have been cut, edited or forged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import get_args

from echoic.errors import InvalidInput, brief
from echoic.memory.records import MEMORY, conversation_of, memory_of
from echoic.stores.base import Record
from echoic.types import (
    STATUSES,
    Conversation,
    Memory,
    Visibility,
    checked_category,
    checked_name,
    checked_text,
    checked_time,
)


def check_record(record: Record) -> None:
    """Refuse `record`, of any kind, if it cannot be kept, or could not be read again by all that reads it.

    Raises:
        InvalidInput: an id, a key or a value is wrong; or, as what reads it: TypeError, ValueError, KeyError.
    """
    checked_name(record.id, f"the id of a {record.kind}")
    if record.key is not None:
        checked_name(record.key, f"the key of {record.kind} {brief(record.id)}")
    # half characters and numbers that are none go into no JSON that a store would give back
    json.dumps(record.data, ensure_ascii=False, allow_nan=False).encode()


def check_memory(record: Record) -> None:
    """The same for a memory.

    Raises:
        InvalidInput: likewise.
    """
    check_record(record)
    for name in ("source", "redacted"):  # a text would be taken for a list of its letters
        if not isinstance(record.data.get(name) or [], list):
            raise InvalidInput(f"{name} of {MEMORY} {brief(record.id)} must be a list")
    memory: Memory = memory_of(record)
    checked_text(memory.text, f"the text of {MEMORY} {brief(memory.id)}")
    checked_category(memory.category)
    _check_one_of(memory.visibility, get_args(Visibility), "visibility")
    named = (memory.author, memory.supersedes, memory.superseded_by, *memory.source, *memory.redacted)
    _check_texts((memory.statement, memory.context, memory.reason, *named), memory.id)
    _check_times((memory.valid_from, memory.valid_until, memory.last_said_at), memory.id)
    if not isinstance(memory.times_said, int) or not isinstance(memory.confirmed, bool):
        raise InvalidInput(
            f"times_said of {MEMORY} {brief(memory.id)} must be a number, confirmed true or false"
        )
    if type(record.data.get("number", 0)) is not int:  # the next version of its key is counted on from it
        raise InvalidInput(f"number of {MEMORY} {brief(memory.id)} must be a whole number")


def check_conversation(record: Record) -> None:
    """The same for a conversation.

    Raises:
        InvalidInput: likewise.
    """
    check_record(record)
    conversation: Conversation = conversation_of(record)
    _check_one_of(conversation.status, STATUSES, "status")
    _check_texts((conversation.agent, conversation.recall_key, conversation.summary), conversation.id)
    _check_times((conversation.started_at, conversation.updated_at), conversation.id)


def _check_one_of(value: object, allowed: Sequence[str], what: str) -> None:
    if value not in allowed:
        raise InvalidInput(f"{what} must be one of {', '.join(allowed)}")


def _check_texts(values: Sequence[object], whose: str) -> None:
    for value in values:
        if value is not None and value != "":
            checked_text(value, f"a text of {brief(whose)}")


def _check_times(moments: Sequence[datetime | None], whose: str) -> None:
    for moment in moments:
        if moment is not None:
            checked_time(moment, f"a time of {brief(whose)}")


__all__ = ["check_conversation", "check_memory", "check_record"]
