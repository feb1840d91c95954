"""One question to a language model through PydanticAI, bounded in time and size."""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.models import Model


# Tags of any markup, the tokens models mark roles with, and code fences.
_MARKUP: Final = re.compile(
    r"<\|.{0,40}?\|>|</?[A-Za-z!?][^<>]{0,200}>|\[/?(?:INST|SYS|SYSTEM|ASSISTANT|USER|TOOL)\]|`{3,}|#{3,}|={4,}",
    re.IGNORECASE,
)
# Characters a reader does not see: directions, joiners, tags, private use and half characters.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
_LEFT: Final = str.maketrans({"<": "‹", ">": "›"})


def stripped(text: str, limit: int) -> str:
    """`text` without markup and hidden characters, cut to `limit` characters."""
    shown = "".join(
        character if unicodedata.category(character) not in _HIDDEN else " "
        for character in text[: 4 * limit]
    )
    bare = _MARKUP.sub(" ", shown)
    return " ".join(bare.split()).translate(_LEFT)[:limit]


def quoted(rows: Sequence[Mapping[str, Any]]) -> str:
    """`rows` as JSON, one a line: nothing in them can end its string, its line or the list."""
    return "\n".join(json.dumps(dict(row), ensure_ascii=False) for row in rows)


OutputT = TypeVar("OutputT")

MAX_TOKENS = 4000
"""Of an answer: about 60 changes, which no stretch of a conversation holds."""
_REQUESTS = 3
"""Of one question: the first, and what PydanticAI asks again because the answer could not be read."""


class Asking(Generic[OutputT]):
    """A model that answers one kind of question.

    Args:
        model: "provider:model", or a model of PydanticAI's.
        make: makes the agent for a model; called once, in a thread, since importing a provider's client and
            reading certificates takes up to a second.
        timeout_s: how long one answer may take.
    """

    def __init__(
        self, model: str | Model, make: Callable[[Model], Agent[Any, OutputT]], *, timeout_s: float
    ) -> None:
        self.timeout_s = timeout_s
        self._model = model
        self._make = make
        self._agent: Agent[Any, OutputT] | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Make the client. Nothing is contacted.

        Raises:
            InvalidInput: the model cannot be used as it was named: a key or a package is missing.
        """
        async with self._opening:
            if self._agent is not None:
                return
            agent = await asyncio.to_thread(self._made)
            if isinstance(self._model, str):  # its client is ours to close
                await agent.__aenter__()
            self._agent = agent

    async def aclose(self) -> None:
        """Let go of the client; one that was passed ready-made stays its owner's. May be called twice."""
        agent, self._agent = self._agent, None
        if agent is not None and isinstance(self._model, str):
            await agent.__aexit__(None, None, None)

    async def ask(self, question: str, deps: object = None) -> OutputT:
        """The answer, in the agent's output type.

        Raises:
            TimeoutError: there was none in time.
            Exception: whatever PydanticAI, the provider's client or the connection brings about.
        """
        from pydantic_ai import UsageLimits

        await self.open()
        assert self._agent is not None
        async with asyncio.timeout(self.timeout_s):
            result = await self._agent.run(
                question,
                deps=deps,
                model_settings={"max_tokens": MAX_TOKENS, "timeout": self.timeout_s},
                usage_limits=UsageLimits(request_limit=_REQUESTS),
            )
        return result.output

    def _made(self) -> Agent[Any, OutputT]:
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model

        try:
            return self._make(infer_model(self._model))
        except (UserError, ImportError, ValueError) as error:
            name = self._model if isinstance(self._model, str) else type(self._model).__name__
            raise InvalidInput(f"model={name!r} cannot be used: {error}") from error
