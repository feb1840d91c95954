"""What of a call is kept for whoever goes on with it."""

from __future__ import annotations

from pydantic_ai.messages import ModelRequest, ModelResponse, SpeechPart, ToolCallPart, ToolReturnPart

from echoic.session.history import as_heard, masked_messages, read, recent, tokens_of, written
from echoic.session.recorder import CallRecorder
from echoic.types import Turn


def exchange(number):
    """A question, a tool that is asked, its answer, and a reply."""
    call = f"call-{number}"
    return [
        ModelRequest(parts=[SpeechPart(speaker="user", transcript=f"question {number}")]),
        ModelResponse(parts=[ToolCallPart(tool_name="look", args={}, tool_call_id=call)]),
        ModelRequest(parts=[ToolReturnPart(tool_name="look", content="found", tool_call_id=call)]),
        ModelResponse(parts=[SpeechPart(speaker="assistant", transcript=f"answer {number}")]),
    ]


MESSAGES = [message for number in range(10) for message in exchange(number)]


def test_a_short_call_is_kept_whole():
    assert recent(MESSAGES, 40) == MESSAGES


def test_a_long_call_is_kept_from_where_the_caller_says_something():
    for most in range(1, 40):
        kept = recent(MESSAGES, most)
        if most >= 4:
            assert len(kept) <= most
            assert len(kept) > most - 4
            assert kept[0].parts[0].transcript.startswith("question")
        assert kept == MESSAGES[-len(kept) :]


def test_no_result_stands_without_its_call():
    for most in range(1, 40):
        calls = set()
        for message in recent(MESSAGES, most):
            for part in message.parts:
                if isinstance(part, ToolCallPart):
                    calls.add(part.tool_call_id)
                elif isinstance(part, ToolReturnPart):
                    assert part.tool_call_id in calls


def test_where_the_caller_said_nothing_lately_everything_is_kept():
    silent = [*exchange(0), *[exchange(number)[3] for number in range(1, 9)]]
    assert recent(silent, 4) == silent


def test_what_is_written_is_read_back():
    assert [message.parts[0].part_kind for message in read(written(MESSAGES))] == [
        message.parts[0].part_kind for message in MESSAGES
    ]


async def test_answers_that_nobody_heard_take_no_turns_out_of_the_summary(memory):
    """They are turns of the call, but no messages: what is evicted is counted in messages."""
    said = [(number, who) for number in range(1, 5) for who in ("user", "agent")]
    messages = [
        ModelRequest(parts=[SpeechPart(speaker="user", transcript=f"question {number}")])
        if who == "user"
        else ModelResponse(parts=[SpeechPart(speaker="assistant", transcript=f"answer {number}")])
        for number, who in said
        if who == "user" or number > 2
    ]
    budget = sum(map(tokens_of, messages[-2:]))
    recorder = CallRecorder(memory.user("ana"), "call", "robin", history_tokens=budget)
    for number, who in said:
        text = f"question {number}" if who == "user" else f"answer {number}"
        heard = "" if who == "agent" and number <= 2 else None
        recorder.note(Turn(speaker=who, text=text, heard=heard, id=f"{who}-{number}"))
    condensed = recorder.call_summary.condensed(messages)
    assert condensed.messages == messages[-2:]
    await recorder.call_summary.summarize(condensed.evicted)
    summary = recorder.call_summary.text
    assert "question 3" in summary
    assert "answer 3" in summary
    assert "answer 1" not in summary
    assert "question 4" not in summary, "it is in the messages"


def test_messages_that_nothing_is_taken_from_are_not_copied():
    """A checkpoint looks at all of them, several times a turn."""
    kept = masked_messages(as_heard(MESSAGES, (), so_far=True), str)
    assert all(one is other for one, other in zip(kept, MESSAGES, strict=True))
    question, *others = masked_messages(MESSAGES, lambda said: said.replace("question 0", "…"))
    assert question.parts[0].transcript == "…"
    assert others == MESSAGES[1:]
