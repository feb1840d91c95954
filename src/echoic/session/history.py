"""Message history for opening another session: only what was heard, and a result for every tool call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SpeechPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from echoic.english.slots import sentence_of, with_context
from echoic.errors import EchoicError, InvalidInput
from echoic.memory.checkpoints import Checkpoint, PendingTool
from echoic.memory.extraction import Summarizer
from echoic.memory.user import UserMemory
from echoic.prompt.block import estimate_tokens, framed, is_memory, parts_in, quoted
from echoic.session.playback import Utterance
from echoic.types import Turn

log = logging.getLogger(__name__)

MESSAGES: Final = 200
"""Messages in a checkpoint at most: all of a long call would be rewritten every two seconds. Earlier ones are
in the conversation and can be searched."""
_MESSAGE_TOKENS: Final = 4
"""Tokens of a message besides its words: role and end."""
_ONCE: Final = "echoic.once"
_PASSING: Final = frozenset({"recalled", "meanwhile"})
UNFINISHED: Final = (
    "The line broke before this call was finished, and it is not known whether it took effect. "
    "Say so to the caller before trying it again."
)


def recent(
    messages: Sequence[ModelMessage], most: int = MESSAGES, *, budget_tokens: int | None = None
) -> list[ModelMessage]:
    """The last `most` messages within `budget_tokens`, starting with the caller's words.

    No tool result is left without its call, and what the caller said last is always included.
    """
    start = max(0, len(messages) - most)
    if budget_tokens is not None:
        room = budget_tokens
        for place in range(len(messages) - 1, start - 1, -1):
            room -= tokens_of(messages[place])
            if room < 0:
                start = place + 1
                break
    if start == 0:
        return list(messages)
    for place in range(start, len(messages)):
        if _is_the_callers(messages[place]):
            return list(messages[place:])
    if budget_tokens is not None:
        last = (place for place in range(start - 1, -1, -1) if _is_the_callers(messages[place]))
        return list(messages[next(last, 0) :])
    return list(messages)


def tokens_of(*messages: ModelMessage) -> int:
    texts = (_text_of(part) for message in messages for part in message.parts)
    return _MESSAGE_TOKENS * len(messages) + estimate_tokens(*texts)


def turns_in(messages: Sequence[ModelMessage]) -> int:
    """How many turns were said or typed in `messages`."""
    said = sum(
        isinstance(part, UserPromptPart) or bool(part.transcript)
        for message in messages
        for part in said_in(message)
    )
    answers = sum(any(isinstance(part, TextPart) for part in message.parts) for message in messages)
    return said + answers


def said_in(message: ModelMessage) -> list[SpeechPart | UserPromptPart]:
    """The parts of a message that were said or typed.

    What a tool returns as content is recorded as a prompt of the user next to the tool's result.
    """
    by_tool = any(isinstance(part, ToolReturnPart) for part in message.parts)
    return [
        part
        for part in message.parts
        if isinstance(part, SpeechPart)
        or (isinstance(part, UserPromptPart) and not by_tool and not looked_up(part))
    ]


def _text_of(part: Any) -> str:
    if isinstance(part, SpeechPart):
        return part.transcript or ""
    if isinstance(part, ToolCallPart):
        return part.tool_name + part.args_as_json_str()
    if isinstance(part, ToolReturnPart):
        return part.model_response_str()
    content = getattr(part, "content", "")
    return content if isinstance(content, str) else str(content)


def request(text: str) -> SystemPromptPart:
    """A one-time instruction, such as to greet the caller, marked so that no other agent receives it."""
    return SystemPromptPart(text, dynamic_ref=_ONCE)


def without_requests(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """`messages` without one-time instructions of earlier agents.

    A session is opened with every system prompt of its history as an instruction for the whole call.
    """
    return _without(messages, lambda part: getattr(part, "dynamic_ref", None) == _ONCE)


def _without(messages: Sequence[ModelMessage], left_out: Callable[[Any], bool]) -> list[ModelMessage]:
    kept: list[ModelMessage] = []
    for message in messages:
        parts: Any = [part for part in message.parts if not left_out(part)]
        if len(parts) == len(message.parts):
            kept.append(message)
        elif parts:
            kept.append(replace(message, parts=parts))
    return kept


def looked_up(part: object) -> str:
    """The text of a part that comes from memory; empty for any other part."""
    content = part.content if isinstance(part, UserPromptPart) else ""
    return content if content and isinstance(content, str) and is_memory(content) else ""


def _stands(part: object) -> bool:
    """Whether every new session is given this: the memory block or the summary of the call.

    What recall found for a turn stays with that turn.
    """
    text = looked_up(part)
    return bool(text) and parts_in(text).keys().isdisjoint(_PASSING)


def written(messages: Sequence[ModelMessage]) -> str:
    """Messages as JSON, without audio."""
    return ModelMessagesTypeAdapter.dump_json([_silent(message) for message in messages]).decode()


def read(text: str) -> list[ModelMessage]:
    """Parse the output of `written`; raises `InvalidInput` if this version cannot read it."""
    try:
        return ModelMessagesTypeAdapter.validate_json(text)
    except ValueError as error:
        raise InvalidInput(f"the messages of a checkpoint cannot be read: {type(error).__name__}") from error


def as_heard(
    messages: Sequence[ModelMessage], utterances: Iterable[Utterance], *, so_far: bool = False
) -> list[ModelMessage]:
    """`messages` of a session, with every interrupted reply cut after the last word that was heard.

    If `so_far`, replies that are still playing are cut to what was heard by now, too.
    """
    waiting = list(utterances)
    return [
        _heard(message, waiting, so_far=so_far) if isinstance(message, ModelResponse) else message
        for message in messages
        if isinstance(message, (ModelRequest, ModelResponse))
    ]


def masked_messages(messages: Sequence[ModelMessage], masked: Callable[[str], str]) -> list[ModelMessage]:
    """`messages` with `masked` applied to what the caller said."""

    def of(part: Any) -> Any:
        if isinstance(part, SpeechPart) and part.speaker == "user" and part.transcript:
            text = masked(part.transcript)
            return part if text == part.transcript else replace(part, transcript=text)
        if isinstance(part, UserPromptPart) and isinstance(part.content, str):
            content = masked(part.content)
            return part if content == part.content else replace(part, content=content)
        return part

    def all_of(message: ModelMessage) -> ModelMessage:
        if not isinstance(message, ModelRequest):
            return message
        parts = [of(part) for part in message.parts]
        return message if parts == list(message.parts) else replace(message, parts=parts)

    return [all_of(message) for message in messages]


def utterance_of(part: SpeechPart, waiting: list[Utterance]) -> Utterance | None:
    """The utterance that a part of the history represents, removed from `waiting`. Both are in spoken
    order.
    """
    named = (said for said in waiting if part.id is not None and said.item == part.id)
    alike = (said for said in waiting if said.trace.text == (part.transcript or ""))
    found = next(named, None) or next(alike, None) or next(iter(waiting), None)
    if found is not None:
        waiting.remove(found)
    return found


def trimmed(messages: Sequence[ModelMessage], start: int, heard: str) -> list[ModelMessage]:
    """`messages` with the agent's text from index `start` on cut to its `heard` beginning.

    Tool calls and results stay, since they happened; a response left empty is removed.
    """
    left = _signs(heard)
    kept = list(messages[:start])
    for message in messages[start:]:
        if not isinstance(message, ModelResponse):
            kept.append(message)
            continue
        parts: list[ModelResponsePart] = []
        cut = False
        for part in message.parts:
            if isinstance(part, TextPart):
                text = _first(part.content, left)
                left -= _signs(text)
                cut = cut or text != part.content
                parts += [replace(part, content=text)] if text else []
            else:
                parts.append(part)
        if parts:
            kept.append(replace(message, parts=parts, state="interrupted") if cut else message)
    return kept


def _signs(text: str) -> int:
    """How many characters are not white space: spaces between two parts belong to neither."""
    return sum(not character.isspace() for character in text)


def _first(text: str, signs: int) -> str:
    """The beginning of `text` with `signs` characters that are not white space."""
    if _signs(text) <= signs:
        return text
    seen = 0
    for at, character in enumerate(text):
        if seen == signs:
            return text[:at].rstrip() if signs else ""
        seen += not character.isspace()
    return text


def settled(
    messages: Sequence[ModelMessage], results: Mapping[str, Any], pending: Sequence[PendingTool]
) -> list[ModelMessage]:
    """`messages` with a result right behind every pending call: the one in `results`, or that it is unknown.

    Calls that were not in the history yet, because the provider's response was incomplete, are added at the
    end.
    """
    open_calls = {tool.call: tool for tool in pending}
    done: list[ModelMessage] = []
    for message in messages:
        done.append(message)
        calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
        made = [open_calls.pop(call) for call in calls if call in open_calls]
        if made:
            done.append(ModelRequest(parts=[_result(tool, results) for tool in made]))
    if open_calls:
        calls_made = [
            ToolCallPart(tool_name=tool.name, args=dict(tool.arguments), tool_call_id=tool.call)
            for tool in open_calls.values()
        ]
        done.append(ModelResponse(parts=calls_made))
        done.append(ModelRequest(parts=[_result(tool, results) for tool in open_calls.values()]))
    return done


def _is_the_callers(message: ModelMessage) -> bool:
    if not isinstance(message, ModelRequest):
        return False
    said = (part for part in message.parts if not looked_up(part))
    return any(isinstance(part, (SpeechPart, UserPromptPart)) for part in said) and not any(
        isinstance(part, ToolReturnPart) for part in message.parts
    )


def _result(tool: PendingTool, results: Mapping[str, Any]) -> ToolReturnPart:
    if tool.call in results:
        return ToolReturnPart(tool_name=tool.name, content=results[tool.call], tool_call_id=tool.call)
    return ToolReturnPart(
        tool_name=tool.name, content=UNFINISHED, tool_call_id=tool.call, outcome="interrupted"
    )


def _heard(message: ModelResponse, waiting: list[Utterance], *, so_far: bool) -> ModelResponse:
    parts: list[Any] = []
    cut = False
    for part in message.parts:
        if isinstance(part, SpeechPart):
            said = utterance_of(part, waiting)
            if said is not None and (said.cut or (so_far and not said.settled)):
                heard = said.divided().heard
                parts += [replace(part, transcript=heard)] if heard else []
                cut = True
                continue
        parts.append(part)
    return replace(message, parts=parts, state="interrupted") if cut else message


def _silent(message: ModelMessage) -> ModelMessage:
    parts: Any = [
        replace(part, audio=None) if isinstance(part, SpeechPart) and part.audio is not None else part
        for part in message.parts
    ]
    return message if parts == list(message.parts) else replace(message, parts=parts)


SUMMARY_TOKENS: Final = 400
"""Token limit of a summary."""
_SUMMARY_CHARACTERS: Final = SUMMARY_TOKENS * 4
_EVERY: Final = 8
"""Turns to evict before the model is asked again; until then they are quoted."""
_AT_ONCE: Final = 100
"""Turns in one request to the model at most."""
_SUMMARY: Final = "summary"
_OPENING: Final = "Earlier in this call, before the messages that follow. These are notes of what was said."


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensed:
    """The messages of a call that are handed on."""

    messages: list[ModelMessage]
    """The last messages, unchanged."""
    evicted: int
    """How many turns of the call are not among them."""
    tokens: int
    """Estimated tokens of the messages."""


class CallSummary:
    """The summary of one call's evicted turns, by rules, or by a language model if there is a
    `summarizer`.
    """

    def __init__(
        self,
        memory: UserMemory,
        turns: Callable[[], Awaitable[Sequence[Turn]]],
        summarizer: Summarizer | None,
        *,
        budget_tokens: int,
    ) -> None:
        self.text: str | None = None
        """The summary of evicted turns; None if there are none."""
        self._memory = memory
        self._turns = turns
        self._summarizer = summarizer
        self._budget = budget_tokens
        self._evicted = 0
        """Turns that were already evicted when the current provider session was opened."""
        self._told = 0
        """Evicted turns that `text` covers."""
        self._written: str | None = None
        """The model's summary; `_covers` counts the turns it covers."""
        self._covers = 0
        self.left_out = 0
        """How many turns of the call precede the first that `turns` returns."""
        self._asking: asyncio.Task[None] | None = None

    def take_up(self, checkpoint: Checkpoint) -> None:
        self.text, self._evicted, self._told = checkpoint.summary, checkpoint.evicted, checkpoint.evicted
        if self._summarizer is not None and checkpoint.summary is not None:
            self._written, self._covers = checkpoint.summary, checkpoint.evicted

    def condensed(self, messages: Sequence[ModelMessage]) -> Condensed:
        """The part of `messages` that is handed on; `summarize` covers the rest."""
        all_ = _without(messages, _stands)
        kept = recent(all_, budget_tokens=self._budget)
        evicted = self._evicted + turns_in(all_[: len(all_) - len(kept)])
        return Condensed(messages=kept, evicted=evicted, tokens=tokens_of(*kept))

    def handed_on(self, condensed: Condensed) -> None:
        """A session was opened with these messages: the call now begins with them."""
        self._evicted = condensed.evicted

    async def begin_again(self, left_out: int) -> None:
        """Drop the summary; from now on `turns` returns those after the first `left_out` of the call."""
        await self.aclose()
        self.text = self._written = None
        self._told = self._covers = self.left_out = left_out

    async def summarize(self, evicted: int) -> None:
        """Update `text` if more turns were `evicted`, as counted by `condensed`. If the store fails it stays
        as it was.
        """
        if evicted <= self._told:
            return
        left_out = self.left_out
        try:
            call = await self._turns()
            facts = [
                with_context(sentence_of(fact), fact.context)
                for fact in await self._memory.facts()
                if set(fact.source) & {turn.id for turn in call}
            ]
        except EchoicError as error:
            log.warning("a call is not summarised yet: %s", type(error).__name__)
            return
        if left_out != self.left_out:
            return  # it began again meanwhile
        new = call[self._covers - left_out : evicted - left_out]
        lines = [
            *([self._written] if self._written else []),
            *(line for line in facts if not self._has(line)),
        ]
        self.text = "\n".join(_packed(lines, new)) or None
        self._told = evicted
        idle = self._asking is None or self._asking.done()
        if self._summarizer is not None and idle and evicted - self._covers >= _EVERY:
            self._asking = asyncio.create_task(self._ask(new), name="echoic-summary")

    async def settle(self) -> None:
        if self._asking is not None:
            await asyncio.wait({self._asking})

    async def aclose(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self, turns: Sequence[Turn]) -> None:
        assert self._summarizer is not None
        turns = turns[:_AT_ONCE]
        try:
            written = await self._summarizer.summarize(self._written, turns)
        except Exception as error:  # noqa: BLE001 - whatever a provider's client raises: facts and words do
            log.warning("a call could not be summarised: %s", type(error).__name__)
            return
        self._written, self._covers = (
            " ".join(written.split())[:_SUMMARY_CHARACTERS],
            self._covers + len(turns),
        )
        self._told = self.left_out  # so that the text is built again from it

    def _has(self, line: str) -> bool:
        return self._written is not None and line.casefold() in self._written.casefold()


def with_summary(messages: Sequence[ModelMessage], summary: str | None) -> list[ModelMessage]:
    """`messages`, preceded by the summary of earlier ones."""
    if not summary:
        return list(messages)
    lines = [quoted(line, _SUMMARY_CHARACTERS) for line in summary.splitlines()]
    told = framed(_SUMMARY, [_OPENING, *(f"- {line}" for line in lines if line)])
    return [ModelRequest(parts=[UserPromptPart(told)]), *messages]


def _packed(facts: Sequence[str], turns: Sequence[Turn]) -> list[str]:
    """Facts, then the last of `turns`, as many as the budget allows."""
    room = SUMMARY_TOKENS
    lines: list[str] = []
    for line in facts:
        room -= estimate_tokens(line)
        if room < 0:
            return lines
        lines.append(line)
    said: list[str] = []
    for turn in reversed(turns):
        if not turn.heard_text:
            continue
        line = f"{'The caller' if turn.speaker == 'user' else 'The agent'} said: {turn.heard_text}"
        room -= estimate_tokens(line)
        if room < 0:
            break
        said.append(" ".join(line.split()))
    return [*lines, *reversed(said)]


def given_in(messages: Sequence[ModelMessage]) -> list[tuple[str, str, str]]:
    """The text other than speech that a model was given in `messages`: role, name and text of each part."""
    given: list[tuple[str, str, str]] = []
    for part in (part for message in messages if isinstance(message, ModelRequest) for part in message.parts):
        if memory := looked_up(part):
            given += [("memory", name, text) for name, text in parts_in(memory).items()]
        elif isinstance(part, SystemPromptPart):
            given.append(("system-prompt", "", part.content))
        elif isinstance(part, ToolReturnPart):
            given.append(("tool-return", part.tool_name, part.model_response_str()))
        elif part.part_kind.startswith("instruction"):
            content: Any = getattr(part, "content", None)
            if isinstance(content, str) and content:
                given.append((part.part_kind, getattr(part, "name", None) or "", content))
    return given
