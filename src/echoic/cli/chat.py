"""`echoic chat`: a conversation in the terminal with an agent, by rules or by a model."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from typing import TYPE_CHECKING, Any, cast

import click

from echoic.cli.asyncio_runner import Desk, run, words_only
from echoic.cli.command import command
from echoic.cli.memories import LEXICAL
from echoic.cli.output import CommandResult, moment, ranks_of, state_of
from echoic.cli.settings import model_option
from echoic.errors import EmbedderError, InvalidInput
from echoic.types import Memory, Turn

if TYPE_CHECKING:
    from echoic.capability.talker import Talker
    from echoic.memory.conversation import OpenConversation
    from echoic.memory.keyless import Reply

_CHUNK = 65_536
Lines = asyncio.Queue[str | None]
"""Typed lines without their line breaks; None at the end of the input."""


def typed_lines() -> Lines:
    """Lines from stdin, read by a thread so that neither the loop nor the exit waits for one."""
    lines: Lines = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(line: str | None) -> None:
        loop.call_soon_threadsafe(lines.put_nowait, line)

    # a daemon thread: the exit would wait for the loop's executor until somebody typed a line
    threading.Thread(target=_read, args=(put,), name="echoic-stdin", daemon=True).start()
    return lines


def _read(put: Callable[[str | None], None]) -> None:
    # unbuffered: the interpreter must not exit while a thread holds a buffered reader's lock
    stream = cast("BufferedReader", sys.stdin.buffer).raw
    held = b""
    try:
        while chunk := stream.read(_CHUNK):
            *whole, held = (held + chunk).split(b"\n")
            for line in whole:
                put(_decoded(line))
        if held:
            put(_decoded(held))
        put(None)
    except RuntimeError:  # the loop has ended
        return


def _decoded(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="replace")


HELP = """\
/memories     what is stored about you
/history KEY  every version of one of them
/forget       destroy everything, after asking
/quit         end, as does the end of the input
Anything else is said to the agent."""
_SILENT = "I can't answer just now. What you said is stored."
_YES = {"y", "yes"}
_FOUND = 3
"""Hits printed per answer; `echoic query --explain` prints all."""


@command("chat")
@model_option
@click.pass_context
def chat_command(ctx: click.Context, *, model: str | None) -> int:
    """Talk with an agent that answers from memory.

    The agent answers by rules, or with the model that --model names. Answers go to stdout; what was stored,
    corrected and found goes to stderr, dimmed on a terminal. Lines may be piped in. /help lists the commands.
    The conversation is stored, and remembered in the next one.
    """

    async def work(desk: Desk) -> CommandResult:
        if model is None:
            return await Chat(desk).run()
        from echoic.capability.talker import Talker

        async with Talker(desk.memory, model) as talker:
            return await Chat(desk, talker).run()

    return run(ctx, work, model=model)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatExchange:
    """One typed line and its answer."""

    you: str
    agent: str
    reply: Any = None
    """The reply; None for a line that starts with "/"."""


class Chat:
    """One conversation at a terminal; the first thing you say begins it."""

    def __init__(self, desk: Desk, talker: Talker | None = None) -> None:
        from echoic.memory.keyless import KeylessAgent

        self._desk = desk
        self._agent = KeylessAgent(desk.user)
        self._talker = talker
        self._conversation: OpenConversation | None = None
        self._greeting = ""
        self._exchanges: list[ChatExchange] = []

    async def run(self) -> CommandResult:
        """Talk until the end of the input, then complete the conversation, however it ended."""
        await self._begin()
        lines = typed_lines()
        try:
            while (line := await self._next(lines)) is not None and line.strip() != "/quit":
                await self._take(line.strip(), lines)
        finally:
            if self._conversation is not None:
                await self._conversation.complete()
        return CommandResult(data=self._exchanges, count=len(self._exchanges))

    async def _begin(self) -> None:
        desk = self._desk
        try:
            await desk.embedder.ready()
        except EmbedderError as error:
            desk.output.note(words_only(error))
        else:
            if not desk.embedder.semantic:
                desk.output.note(LEXICAL)
        self._greeting = await self._agent.greeting()
        desk.output.answer(self._greeting)

    async def _next(self, lines: Lines) -> str | None:
        self._desk.output.ask("> ")
        return await lines.get()

    async def _take(self, line: str, lines: Lines) -> None:
        word, _, rest = line.partition(" ")
        if not line:
            return
        if word == "/forget":
            await self._forget(lines)
        elif line.startswith("/"):
            self._answer(line, await self._command(word, rest.strip()))
        else:
            await self._say(line)

    async def _say(self, line: str) -> None:
        if self._conversation is None:
            from echoic.memory.keyless import AGENT

            name = AGENT if self._talker is None else self._talker.name
            self._conversation = await self._desk.user.conversation(agent=name)
            if self._greeting:
                await self._conversation.append(Turn(speaker="agent", text=self._greeting))
                self._greeting = ""  # it may hold a name, which must not be stored again after an erasure
        try:
            reply = await self._reply(self._conversation, line)
        except InvalidInput as error:  # such as a text that is too long
            self._desk.output.note(str(error))
            return
        if reply is None:
            self._answer(line, _SILENT)
            return
        self._answer(line, reply.text, reply)
        for happened in _behind(reply):
            self._desk.output.aside(happened)
        if reply.receipt is not None and reply.heard is None:  # the conversation was destroyed too
            self._conversation = None

    async def _reply(self, conversation: OpenConversation, line: str) -> Reply | None:
        """The answer; None if the model gave none."""
        if self._talker is None:
            return await self._agent.reply(conversation, line)
        from echoic.capability.talker import ModelFailed
        from echoic.memory.keyless import Reply

        try:
            async for piece in self._talker.reply(self._desk.user, conversation, line):
                if isinstance(piece, Reply):
                    return piece
        except ModelFailed as error:
            self._desk.output.aside(f"the model gave no answer: {error}")
        return None

    async def _command(self, word: str, rest: str) -> str:
        """The answer to a line that starts with "/"."""
        if word == "/memories":
            facts = await self._desk.user.facts()
            return "\n".join(_line(memory) for memory in facts) or "Nothing is known."
        if word == "/history" and rest:
            versions = await self._desk.user.history(rest)
            return (
                "\n".join(f"{_line(m)}, {state_of(m)}" for m in versions)
                or "Nothing is stored under that key."
            )
        return HELP

    async def _forget(self, lines: Lines) -> None:
        user = self._desk.settings.user
        self._answer("/forget", f"Destroy everything stored about {user!r}? Type yes.")
        answer = (await self._next(lines) or "").strip()
        if answer.casefold() not in _YES:
            self._answer(answer, "Nothing was destroyed.")
            return
        receipt = await self._desk.user.forget()
        self._conversation, self._greeting = None, ""
        checked = (
            "verified to be gone"
            if receipt.verified
            else "NOT all verified to be gone: run `echoic forget --all`"
        )
        self._answer(answer, f"Destroyed {receipt.records} records; their bytes were {checked}.")

    def _answer(self, line: str, text: str, reply: Reply | None = None) -> None:
        self._exchanges.append(ChatExchange(you=line, agent=text, reply=reply))
        self._desk.output.answer(text)


def _behind(reply: Reply) -> Iterator[str]:
    """What memory did for a reply, one line each."""
    for memory in reply.stored:
        yield f"stored: {_line(memory)}"
    for memory in reply.superseded:
        yield f"superseded: {_line(memory)}"
    for memory in reply.retracted:
        yield f"deleted: {_line(memory)}"
    for place, hit in enumerate(reply.recall.hits[:_FOUND] if reply.recall else (), 1):
        yield f"found {place}: {hit.text} [{ranks_of(hit)}]"
    if reply.recall is None:
        return
    if reply.recall.outcome != "complete":
        yield f"the search was incomplete: {reply.recall.outcome}"
    elif not reply.recall.hits:
        yield "nothing is known about that; the search was complete"


def _line(memory: Memory) -> str:
    name = f"{memory.key} = " if memory.key else ""
    return f"{name}{memory.text}, {memory.visibility}, since {moment(memory.valid_from)}"
