"""The types the providers publish for what a server sends, read strictly."""

from __future__ import annotations

import typing

from google.genai import types
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter


def _events():
    union, *_ = typing.get_args(RealtimeServerEvent)
    return {
        typing.get_args(event.model_fields["type"].annotation)[0]: TypeAdapter(event)
        for event in typing.get_args(union)
    }


EVENTS = _events()


def check_openai(session):
    """Every event sent is one the provider sends, with the fields it has."""
    for sent in session.record.sent():
        if sent.kind == "raw":
            continue
        assert sent.kind in EVENTS, f"{sent.kind} is no event of the provider's"
        body = dict(sent.body)
        if sent.kind == "response.output_audio.delta":
            body["delta"] = ""  # the record has its size
        read = EVENTS[sent.kind].validate_python(body)
        assert not read.model_extra, f"{sent.kind} has unknown fields {read.model_extra}"


def check_gemini(session):
    """Every message sent is one the provider sends."""
    for sent in session.record.sent():
        if sent.kind != "raw":
            types.LiveServerMessage.model_validate(_with_audio(sent.body))


def _with_audio(message):
    """The record has the size of audio; here it is bytes again."""
    if isinstance(message, dict):
        return {key: b"" if key == "data" else _with_audio(inner) for key, inner in message.items()}
    return [_with_audio(inner) for inner in message] if isinstance(message, list) else message
