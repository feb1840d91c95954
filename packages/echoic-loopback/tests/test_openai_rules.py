"""What the OpenAI stand-in refuses, and that a test sees it: as an `error` event and as a failure at the end."""

# ruff: noqa: PT012 - it is leaving the server that raises
from __future__ import annotations

import asyncio
import base64
import json

import pytest

from echoic_loopback.openai_realtime.protocol import Refused, check_event
from echoic_loopback.realtime import Calls, LoopbackFailure, Says, Script, ToolCall, UserSays, silence
from loopback_agents import append, of_kind, sdk

MODEL = "gpt-realtime"


def update(**session):
    return {"type": "session.update", "session": {"type": "realtime", **session}}


def item(**fields):
    return {"type": "conversation.item.create", "item": fields}


def message(role, *content, **fields):
    return item(type="message", role=role, content=list(content), **fields)


TEXT = {"type": "input_text", "text": "hello"}
VAD = {"type": "server_vad", "create_response": None}
REFUSED = [
    # event, code, param
    ("not json", "invalid_json", None),
    ([1], "invalid_json", None),
    ({"event_id": "x"}, "missing_required_parameter", "type"),
    ({"type": "session.create"}, "invalid_value", "type"),
    ({"type": "response.cancel", "reason": "x"}, "unknown_parameter", "reason"),
    ({"type": "response.cancel", "event_id": "x" * 513}, "string_above_max_length", "event_id"),
    (
        {"type": "session.update", "session": {"instructions": "x"}},
        "missing_required_parameter",
        "session.type",
    ),
    (update(voice="marin"), "unknown_parameter", "session.voice"),
    (update(temperature=0.8), "unknown_parameter", "session.temperature"),
    (update(turn_detection=None), "unknown_parameter", "session.turn_detection"),
    (
        update(audio={"input": {"turn_detection": VAD}}),
        "invalid_type",
        "session.audio.input.turn_detection.create_response",
    ),
    (
        update(audio={"input": {"format": {"type": "audio/pcm", "rate": 16000}}}),
        "invalid_value",
        "session.audio.input.format.rate",
    ),
    (update(output_modalities=["audio", "text"]), "invalid_value", "session.output_modalities"),
    (update(max_output_tokens=5000), "integer_above_max_value", "session.max_output_tokens"),
    (
        update(tools=[{"type": "function", "name": "f", "strict": True}]),
        "unknown_parameter",
        "session.tools[0].strict",
    ),
    (
        {"type": "session.update", "session": {"type": "transcription"}},
        "invalid_session_type",
        "session.type",
    ),
    ({"type": "input_audio_buffer.append", "audio": "not base64!"}, "invalid_value", "audio"),
    ({"type": "input_audio_buffer.append"}, "missing_required_parameter", "audio"),
    ({"type": "input_audio_buffer.append", "audio": [1]}, "invalid_type", "audio"),
    ({"type": "input_audio_buffer.commit"}, "input_audio_buffer_commit_empty", None),
    ({"type": "output_audio_buffer.clear"}, "invalid_value", "type"),
    (message("user", {**TEXT, "colour": "red"}), "unknown_parameter", "item.content[0].colour"),
    (message("user", {"type": "output_text", "text": "x"}), "invalid_value", "item.content[0].type"),
    (
        message("assistant", {"type": "output_audio", "transcript": "x"}),
        "invalid_value",
        "item.content[0].type",
    ),
    (message("system", {"type": "input_audio", "audio": ""}), "invalid_value", "item.content[0].type"),
    (message("user", TEXT, id="i" * 33), "string_above_max_length", "item.id"),
    (item(type="note"), "invalid_value", "item.type"),
    (item(type="function_call_output", call_id="call_x", output="x"), "invalid_tool_call_id", None),
    (item(type="function_call_output", call_id="a/b", output="x"), "invalid_value", "item.call_id"),
    (
        item(type="function_call_output", call_id="c" * 33, output="x"),
        "string_above_max_length",
        "item.call_id",
    ),
    (item(type="function_call_output", call_id="call_x", output={}), "invalid_type", "item.output"),
    (
        {**message("user", TEXT), "previous_item_id": "item_x"},
        "item_create_invalid_previous_item_id",
        "previous_item_id",
    ),
    ({"type": "conversation.item.retrieve", "item_id": "x"}, "item_retrieve_invalid_item_id", "item_id"),
    ({"type": "conversation.item.delete", "item_id": "x"}, "item_delete_invalid_item_id", "item_id"),
    (
        {"type": "conversation.item.truncate", "item_id": "x", "content_index": 0, "audio_end_ms": 1},
        "item_truncate_invalid_item_id",
        "item_id",
    ),
    (
        {"type": "conversation.item.truncate", "item_id": "x", "content_index": 0, "audio_end_ms": 1.5},
        "invalid_type",
        "audio_end_ms",
    ),
    ({"type": "response.cancel"}, "response_cancel_not_active", None),
    (
        {"type": "response.create", "response": {"modalities": ["text"]}},
        "unknown_parameter",
        "response.modalities",
    ),
    ({"type": "response.create", "response": {"metadata": {"a": 1}}}, "invalid_type", "response.metadata.a"),
    (
        {"type": "response.create", "response": {"metadata": {"a": "v" * 513}}},
        "string_above_max_length",
        "response.metadata.a",
    ),
    (
        {"type": "response.create", "response": {"metadata": {str(n): "" for n in range(17)}}},
        "object_above_max_properties",
        "response.metadata",
    ),
]


@pytest.mark.parametrize(("event", "code", "param"), REFUSED, ids=lambda value: str(value)[:60])
async def test_what_the_provider_refuses_is_answered_with_its_error_and_fails_the_test(
    openai_server, event, code, param
):
    with pytest.raises(LoopbackFailure) as failure:
        async with (
            openai_server(Script()) as server,
            sdk(server).realtime.connect(model=MODEL) as connection,
        ):
            raw = event if isinstance(event, str) else json.dumps(event)
            await connection._connection.send(raw)
            error = (await of_kind(connection, "error"))[-1].error
    assert (error.code, error.param, error.type) == (code, param, "invalid_request_error")
    assert [violation.code for violation in failure.value.violations] == [code]


async def test_an_error_names_the_event_it_refuses_but_not_an_unknown_tool_call(openai_server):
    tolerated = {"response_cancel_not_active", "invalid_tool_call_id"}
    async with (
        openai_server(Script(), tolerate=tolerated) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.response.cancel(event_id="mine_1")
        assert (await of_kind(connection, "error"))[-1].error.event_id == "mine_1"
        output = {"type": "function_call_output", "call_id": "call_x", "output": "x"}
        await connection.conversation.item.create(item=output, event_id="mine_2")
        assert (await of_kind(connection, "error"))[-1].error.event_id is None


async def test_a_second_response_is_refused_while_one_is_under_way(openai_server):
    code = "conversation_already_has_active_response"
    async with (
        openai_server(Script(open_ended=True), tolerate={code}) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.response.create()
        created = (await of_kind(connection, "response.created"))[-1]
        await connection.response.create()
        error = (await of_kind(connection, "error"))[-1].error
    assert error.code == code
    assert created.response.id in error.message


async def test_a_response_apart_from_the_conversation_waits_its_turn_and_stays_apart(openai_server):
    async with (
        openai_server(Script(Says("aloud"), Says("apart"))) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.response.create()
        await connection.response.create(response={"conversation": "none", "metadata": {"topic": "summary"}})
        events = await of_kind(connection, "response.done", 2)
        assert len(server.sessions[0].conversation) == 1
    last = events[-1].response
    assert (last.conversation_id, last.metadata) == (None, {"topic": "summary"})


async def test_more_audio_cannot_be_cut_off_than_there_is(openai_server):
    async with (
        openai_server(Script(Says("one two", word_ms=200)), tolerate={"invalid_value"}) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.response.create()
        item_id = (await of_kind(connection, "response.done"))[-1].response.output[0].id
        await connection.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=401)
        error = (await of_kind(connection, "error"))[-1].error
        assert error.message == "Audio content of 400ms is already shorter than 401ms"
        await connection.conversation.item.truncate(item_id=item_id, content_index=0, audio_end_ms=400)
        await of_kind(connection, "conversation.item.truncated")


async def test_the_users_words_cannot_be_truncated(openai_server):
    async with (
        openai_server(Script(), tolerate={"invalid_value"}) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.conversation.item.create(
            item={"type": "message", "role": "user", "id": "u1", "content": [TEXT]}
        )
        await connection.conversation.item.truncate(item_id="u1", content_index=0, audio_end_ms=0)
        error = (await of_kind(connection, "error"))[-1].error
    assert error.message == "Only model output audio messages can be truncated"


async def test_the_voice_stays_once_it_was_heard(openai_server):
    voice = {"type": "realtime", "audio": {"output": {"voice": "marin"}}}
    other = {"type": "realtime", "audio": {"output": {"voice": "cedar"}}}
    async with (
        openai_server(Script(Says("one")), tolerate={"cannot_update_voice"}) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.session.update(session=voice)
        await connection.response.create()
        await of_kind(connection, "response.done")
        await connection.session.update(session=voice)
        await of_kind(connection, "session.updated")
        await connection.session.update(session=other)
        assert (await of_kind(connection, "error"))[-1].error.code == "cannot_update_voice"
        assert server.sessions[0].settings["audio"]["output"]["voice"] == "marin"


async def test_what_is_refused_changes_nothing(openai_server):
    async with (
        openai_server(Script(), tolerate={"unknown_parameter"}) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.send(update(instructions="new", voice="marin"))
        await of_kind(connection, "error")
        assert server.sessions[0].settings["instructions"] != "new"


async def test_an_update_leaves_alone_what_it_does_not_name(openai_server):
    async with (
        openai_server(Script()) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.send(
            update(instructions="Be kind.", audio={"input": {"transcription": {"model": "whisper-1"}}})
        )
        await connection.send(update(audio={"input": {"turn_detection": None}}))
        session = (await of_kind(connection, "session.updated", 2))[-1].session
    assert session.instructions == "Be kind."
    assert session.audio.input.transcription.model == "whisper-1"
    assert session.audio.input.turn_detection is None


async def test_items_are_kept_in_the_order_the_client_gives(openai_server):
    async with (
        openai_server(Script()) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        for name, after in (("a", None), ("b", None), ("c", "a"), ("d", "root")):
            new = {"type": "message", "role": "user", "id": name, "content": [TEXT]}
            extra = {} if after is None else {"previous_item_id": after}
            await connection.conversation.item.create(item=new, **extra)
        added = [
            e for e in await of_kind(connection, "conversation.item.done", 4) if e.type.endswith("added")
        ]
        await connection.conversation.item.delete(item_id="b")
        await of_kind(connection, "conversation.item.deleted")
        assert [item.id for item in server.sessions[0].conversation] == ["d", "a", "c"]
    assert [(e.item.id, e.previous_item_id) for e in added] == [
        ("a", None),
        ("b", "a"),
        ("c", "a"),
        ("d", None),
    ]


async def test_a_commit_of_a_tenth_of_a_second_is_enough(openai_server):
    async with (
        openai_server(Script(), tolerate={"input_audio_buffer_commit_empty"}) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await append(connection, silence(90, 24_000))
        await connection.input_audio_buffer.commit()
        error = (await of_kind(connection, "error"))[-1].error
        assert error.message.endswith("but buffer only has 90.00ms of audio.")
        await append(connection, silence(10, 24_000))
        await connection.input_audio_buffer.commit()
        await of_kind(connection, "input_audio_buffer.committed")


def test_no_effort_is_taken_though_the_published_types_do_not_list_it():
    check_event(update(reasoning={"effort": "none"}))
    with pytest.raises(Refused, match="Invalid value: 'huge'"):
        check_event(update(reasoning={"effort": "huge"}))


async def test_what_the_provider_takes_is_taken(openai_server):
    """Every field of the reference's session that this client can send, so that strictness is not mere refusal."""
    tool = {"type": "function", "name": "recall", "description": "d", "parameters": {"type": "object"}}
    full = update(
        instructions="x",
        output_modalities=["audio"],
        max_output_tokens=4096,
        tools=[tool],
        tool_choice={"type": "function", "name": "recall"},
        tracing="auto",
        truncation={"type": "retention_ratio", "retention_ratio": 0.5},
        include=["item.input_audio_transcription.logprobs"],
        reasoning={"effort": "low"},
        audio={
            "input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "noise_reduction": {"type": "near_field"},
                "transcription": {"model": "gpt-4o-transcribe", "language": "en"},
                "turn_detection": {"type": "semantic_vad", "eagerness": "low"},
            },
            "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "marin", "speed": 1.2},
        },
    )
    call = {"type": "function_call", "call_id": "call_1", "name": "recall", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
    async with (
        openai_server(Script(UserSays("hello"), Calls(ToolCall("recall")), open_ended=True)) as server,
        sdk(server).realtime.connect(model=MODEL) as connection,
    ):
        await connection.send(full)
        for new in (call, output):
            await connection.conversation.item.create(item=new)
        image = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
        await connection.send(message("user", TEXT, image))
        await connection.send(message("assistant", {"type": "output_text", "text": "x"}))
        await connection.send(message("system", TEXT))
        audio = base64.b64encode(silence(400, 24_000)).decode()
        await connection.send({"type": "input_audio_buffer.append", "audio": audio, "event_id": "e"})
        await of_kind(connection, "response.done")
        await connection.input_audio_buffer.clear()
        await of_kind(connection, "input_audio_buffer.cleared")
        await asyncio.sleep(0)
        assert not server.violations
