"""The message history for opening another session: only what was heard, and a result for every tool call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic_ai import RunContext, Tool
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
from pydantic_ai.realtime import RealtimeModel
from pydantic_ai.usage import RunUsage

from echoic.english.slots import sentence_of, with_context
from echoic.errors import EchoicError, InvalidInput
from echoic.memory.checkpoints import Checkpoint, PendingTool
from echoic.memory.extraction import Summarizer
from echoic.memory.user import UserMemory
from echoic.prompt.block import estimate_tokens, framed, is_memory, parts_in, quoted
from echoic.session.agents import FAILED, CallContext
from echoic.session.playback import Utterance
from echoic.types import Turn

log = logging.getLogger(__name__)

MESSAGES: Final = 200
"""Of a call that are kept for whoever goes on with it, the last ones. All of a long call would be written
anew every two seconds; what came before is in the conversation, and found like everything else."""
_MESSAGE_TOKENS: Final = 4
"""Of a message besides its words: who says it, and where it ends."""
_ONCE: Final = "echoic.once"
_PASSING: Final = frozenset({"recalled", "meanwhile"})
UNFINISHED: Final = (
    "The line broke before this call was finished, and it is not known whether it took effect. "
    "Say so to the caller before trying it again."
)


def recent(
    messages: Sequence[ModelMessage], most: int = MESSAGES, *, budget_tokens: int | None = None
) -> list[ModelMessage]:
    """The last `most` messages, starting where the caller speaks, so that no tool result is left without its
    call.

    Args:
        messages: the messages of a call.
        most: how many at most.
        budget_tokens: how many tokens they may take; what the caller said last is kept in any case.
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


def tokens_of(message: ModelMessage) -> int:
    """About how many tokens a message takes."""
    return _MESSAGE_TOKENS + sum(estimate_tokens(_text_of(part)) for part in message.parts)


def turns_in(messages: Sequence[ModelMessage]) -> int:
    """How many turns are said or typed in `messages`."""
    said = (
        part
        for message in messages
        for part in message.parts
        if (isinstance(part, UserPromptPart) and not looked_up(part))
        or (isinstance(part, SpeechPart) and part.transcript)
    )
    answers = sum(any(isinstance(part, TextPart) for part in message.parts) for message in messages)
    return sum(1 for _ in said) + answers


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
    """Something the agent is asked to say once, such as its greeting; marked, so that no other agent is."""
    return SystemPromptPart(text, dynamic_ref=_ONCE)


def without_requests(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """`messages` as whoever goes on is given them: what an agent was asked to say is over, and was its own.

    A line is opened with every system prompt of its history as an instruction, in force for the whole call.
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
    """The text of a part of a message that comes from memory, said by nobody; empty for any other part."""
    content = part.content if isinstance(part, UserPromptPart) else ""
    return content if isinstance(content, str) and is_memory(content) else ""


def without_standing(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """`messages` without what a new session is given anyway: the memory block and the summary of the call.

    What recall found for a turn stays at that turn.
    """
    return _without(messages, lambda part: _stands(looked_up(part)))


def _stands(text: str) -> bool:
    return bool(text) and parts_in(text).keys().isdisjoint(_PASSING)


def written(messages: Sequence[ModelMessage]) -> str:
    """Messages as JSON, without audio."""
    return ModelMessagesTypeAdapter.dump_json([_silent(message) for message in messages]).decode()


def read(text: str) -> list[ModelMessage]:
    """The inverse of `written`.

    Raises:
        InvalidInput: these are not messages this version knows.
    """
    try:
        return ModelMessagesTypeAdapter.validate_json(text)
    except ValueError as error:
        raise InvalidInput(f"the messages of a checkpoint cannot be read: {type(error).__name__}") from error


def as_heard(
    messages: Sequence[ModelMessage], utterances: Iterable[Utterance], *, so_far: bool = False
) -> list[ModelMessage]:
    """`messages`, in which every interrupted reply ends with the last word that was heard.

    Args:
        messages: the messages of one provider session.
        utterances: what was said in that session.
        so_far: cut what is still playing to what has been heard by now, too.
    """
    waiting = list(utterances)
    return [
        _heard(message, waiting, so_far=so_far) if isinstance(message, ModelResponse) else message
        for message in messages
        if isinstance(message, (ModelRequest, ModelResponse))
    ]


def masked_messages(messages: Sequence[ModelMessage], masked: Callable[[str], str]) -> list[ModelMessage]:
    """`messages` in which what the caller said is as `masked` leaves it."""

    def of(part: Any) -> Any:
        if isinstance(part, SpeechPart) and part.speaker == "user" and part.transcript:
            return replace(part, transcript=masked(part.transcript))
        if isinstance(part, UserPromptPart) and isinstance(part.content, str):
            return replace(part, content=masked(part.content))
        return part

    return [
        replace(message, parts=[of(part) for part in message.parts])
        if isinstance(message, ModelRequest)
        else message
        for message in messages
    ]


def utterance_of(part: SpeechPart, waiting: list[Utterance]) -> Utterance | None:
    """The utterance that a part of the history stands for, removed from `waiting`; both in spoken order."""
    named = (said for said in waiting if part.id is not None and said.item == part.id)
    alike = (said for said in waiting if said.trace.text == (part.transcript or ""))
    found = next(named, None) or next(alike, None) or next(iter(waiting), None)
    if found is not None:
        waiting.remove(found)
    return found


def trimmed(messages: Sequence[ModelMessage], start: int, heard: str) -> list[ModelMessage]:
    """`messages` where the agent's text from place `start` on is cut to the `heard` beginning of it.

    What tools were called and gave stays: it happened, whoever heard of it. A response of which nothing is
    left goes.
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
    """The characters that are not blanks: blanks between two parts belong to neither."""
    return sum(not character.isspace() for character in text)


def _first(text: str, signs: int) -> str:
    """The beginning of `text` that has so many characters but blanks; all of it where it has no more."""
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
    """`messages` in which every pending call has a result right behind it: the one in `results`, or none.

    Calls that were not in the history yet, because the provider was still in the middle of its response, are
    added at the end.
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


async def run_again(
    tool: Tool[CallContext], pending: PendingTool, context: CallContext, model: RealtimeModel
) -> Any:
    """The result of a call that was begun by another process; words where it fails."""
    schema = tool.function_schema
    run: RunContext[CallContext] = RunContext(deps=context, model=model, usage=RunUsage())
    run = replace(run, tool_call_id=pending.call, tool_name=pending.name)
    try:
        arguments = schema.validator.validate_python(dict(pending.arguments))
        return await schema.call(arguments, run)
    except Exception as error:  # noqa: BLE001 - the outermost frame of somebody else's code
        log.warning("the tool %s failed when run again: %s", pending.name, type(error).__name__)
        return FAILED


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
    state = message.state
    for part in message.parts:
        if isinstance(part, SpeechPart):
            said = utterance_of(part, waiting)
            if said is not None and (said.cut or (so_far and not said.settled)):
                heard = said.divided().heard
                parts += [replace(part, transcript=heard)] if heard else []
                state = "interrupted"
                continue
        parts.append(part)
    return replace(message, parts=parts, state=state)


def _silent(message: ModelMessage) -> ModelMessage:
    parts: Any = [
        replace(part, audio=None) if isinstance(part, SpeechPart) else part for part in message.parts
    ]
    return replace(message, parts=parts)


SUMMARY_TOKENS: Final = 400
"""Of a summary at most."""
_EVERY: Final = 8
"""Turns that are evicted before a model is asked anew: what it was not asked about yet is told in words."""
_AT_ONCE: Final = 100
"""Turns in one question to a model; after them it is asked again."""
_SUMMARY: Final = "summary"
_OPENING: Final = "Earlier in this call, before the messages that follow. These are notes of what was said."


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensed:
    """A call as it is handed on."""

    messages: list[ModelMessage]
    """The last ones, as they are."""
    evicted: int
    """Turns of the call that are not among them."""
    tokens: int
    """About how many the messages take."""


class CallSummary:
    """The summary of one call.

    Args:
        memory: the caller's memory.
        turns: what was said in the call.
        summarizer: asks a language model; None for a summary by rules.
        budget_tokens: token budget of the messages that are handed on.
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
        """What was evicted was about; None: nothing was."""
        self._memory = memory
        self._turns = turns
        self._summarizer = summarizer
        self._budget = budget_tokens
        self._evicted = 0
        """Turns that the messages of a line no longer began with, when it was opened."""
        self._told = 0
        """Evicted turns that `text` stands for."""
        self._written: str | None = None
        """What a model wrote, and of how many turns."""
        self._covers = 0
        self._asking: asyncio.Task[None] | None = None

    def take_up(self, checkpoint: Checkpoint) -> None:
        """Go on from where another process was."""
        self.text, self._evicted, self._told = checkpoint.summary, checkpoint.evicted, checkpoint.evicted
        if self._summarizer is not None and checkpoint.summary is not None:
            self._written, self._covers = checkpoint.summary, checkpoint.evicted

    def condensed(self, messages: Sequence[ModelMessage]) -> Condensed:
        """`messages` of the call so far as they are handed on; `summarize` says what they leave out."""
        all_ = without_standing(messages)
        kept = recent(all_, budget_tokens=self._budget)
        evicted = self._evicted + turns_in(all_[: len(all_) - len(kept)])
        return Condensed(messages=kept, evicted=evicted, tokens=sum(map(tokens_of, kept)))

    def handed_on(self, condensed: Condensed) -> None:
        """Another line was opened with these messages: from here on the call begins with them."""
        self._evicted = condensed.evicted

    async def summarize(self, evicted: int) -> None:
        """Bring `text` up to date, where more was evicted since. What cannot be looked up stays as it was.

        Args:
            evicted: turns of the call, as `condensed` counted them.
        """
        if evicted <= self._told:
            return
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
        lines = [
            *([self._written] if self._written else []),
            *(line for line in facts if not self._has(line)),
        ]
        self.text = "\n".join(_packed(lines, call[self._covers : evicted])) or None
        self._told = evicted
        idle = self._asking is None or self._asking.done()
        if self._summarizer is not None and idle and evicted - self._covers >= _EVERY:
            self._asking = asyncio.create_task(self._ask(call[self._covers : evicted]), name="echoic-summary")

    async def settle(self) -> None:
        """Wait until no model is asked."""
        if self._asking is not None:
            await asyncio.wait({self._asking})

    async def aclose(self) -> None:
        """Ask no more."""
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
        self._written, self._covers = " ".join(written.split())[: _characters()], self._covers + len(turns)
        self._told = 0  # the text is made anew of what was written

    def _has(self, line: str) -> bool:
        return self._written is not None and line.casefold() in self._written.casefold()


def with_summary(messages: Sequence[ModelMessage], summary: str | None) -> list[ModelMessage]:
    """`messages`, preceded by the summary of the messages before them."""
    if not summary:
        return list(messages)
    lines = [quoted(line, _characters()) for line in summary.splitlines()]
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


def _characters() -> int:
    return SUMMARY_TOKENS * 4


def given_in(messages: Sequence[ModelMessage]) -> list[tuple[str, str, str]]:
    """The text a model was given in `messages` besides what was spoken: role, name and text of each part."""
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
