"""What a long call was about before the messages that are handed on: for whoever resumes it or takes over.

The last messages that fit a budget of tokens are handed on as they are. For those before them stands a
summary, by a language model where there is one; until it has answered, and without one, the facts that were
learned in the call and the last of what was evicted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from echoic.english.slots import sentence_of, with_context
from echoic.errors import EchoicError
from echoic.memory.checkpoints import Checkpoint
from echoic.memory.distilling import Summarizer
from echoic.memory.user import UserMemory
from echoic.prompt import estimate_tokens, quoted
from echoic.prompt.block import framed
from echoic.session.history import recent, tokens_of, turns_in, without_standing
from echoic.types import Turn

log = logging.getLogger(__name__)

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


class Digest:
    """Of one call.

    Args:
        memory: the caller's.
        turns: what was said in the call, and before it in the same conversation.
        summarizer: a language model's; None: there is none.
        budget_tokens: of the messages that are handed on.
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

    async def summarize(self, evicted: int, kept: int) -> None:
        """Bring `text` up to date, where more was evicted since. What cannot be looked up stays as it was.

        Args:
            evicted: turns of the call, as `condensed` counted them.
            kept: how many of the turns are of this call.
        """
        if evicted <= self._told:
            return
        try:
            turns = await self._turns()
            call = turns[max(0, len(turns) - kept) :]
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
    """`messages` behind what is told of those before them."""
    if not summary:
        return list(messages)
    lines = [quoted(line, _characters()) for line in summary.splitlines()]
    told = framed(_SUMMARY, [_OPENING, *(f"- {line}" for line in lines if line)])
    return [ModelRequest(parts=[UserPromptPart(told)]), *messages]


def _packed(facts: Sequence[str], turns: Sequence[Turn]) -> list[str]:
    """Facts, then the last of `turns`, as far as there is room."""
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
