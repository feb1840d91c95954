"""Run a command: open the memory it names, do the work, print the result, return the exit code.

The embedder is opened when it is first used: `echoic get` loads no model, and `echoic set` works on a machine
without one.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec
from urllib.parse import unquote

import click

from echoic.checks import MAX_TEXT_BYTES
from echoic.cli.command import output_of
from echoic.cli.output import CommandResult, Output
from echoic.cli.settings import Settings, settings_of
from echoic.errors import EmbedderError, EmbedderMissing, EmbedderUnavailable, EmbeddingMismatch, InvalidInput
from echoic.types import EmbeddingSpec

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from echoic.embedding.base import Embedded, Embedder, Kind, Vectors
    from echoic.memory.guarded_store import Quota
    from echoic.memory.service import MemoryService
    from echoic.memory.user import UserMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The context of a command: settings, output, open memory."""

    settings: Settings
    output: Output
    memory: MemoryService
    embedder: DeferredEmbedder

    @property
    def user(self) -> UserMemory:
        """The memory of the user that the settings name."""
        return self.memory.user(self.settings.user, self.settings.deployment)


P = ParamSpec("P")
Work = Callable[[Desk], Awaitable[CommandResult]]


def run(
    ctx: click.Context,
    work: Work,
    *,
    model: str | None = None,
    one_user: bool = True,
    searches: bool = True,
) -> int:
    """Do `work` with an open memory, print its result and return the exit code.

    `one_user`: whether it is for the user of the settings, whom a new store is then said to be for.
    `searches`: whether it needs vectors, or writes what needs one; then the store must have the embedder's.
    """
    output = output_of(ctx)
    settings = settings_of(ctx)
    _act(ctx, settings)
    done = _with_memory(settings, output, work, model, one_user=one_user, searches=searches)
    return output.finish(_in_loop(settings, done))


def with_memory(
    work: Callable[Concatenate[Desk, P], Awaitable[CommandResult]], *, searches: bool = True
) -> Callable[P, int]:
    """A command that does `work` with an open memory; see `run`."""

    @click.pass_context
    @wraps(work)
    def command(ctx: click.Context, /, *args: P.args, **kwargs: P.kwargs) -> int:
        return run(ctx, lambda desk: work(desk, *args, **kwargs), searches=searches)

    return command


def reading(work: Callable[Concatenate[Desk, P], Awaitable[CommandResult]]) -> Callable[P, int]:
    """`with_memory` for a command that only looks up what is stored, whatever embedder made its vectors."""
    return with_memory(work, searches=False)


def run_apart(
    ctx: click.Context, work: Callable[[Settings, Output], Coroutine[Any, Any, CommandResult]]
) -> int:
    """Do `work` that opens what it needs itself, print its result and return the exit code."""
    output = output_of(ctx)
    settings = settings_of(ctx)
    _act(ctx, settings)
    return output.finish(_in_loop(settings, work(settings, output)))


def apart(
    work: Callable[Concatenate[Settings, Output, P], Coroutine[Any, Any, CommandResult]],
) -> Callable[P, int]:
    """A command whose `work` opens what it needs itself; see `run_apart`."""

    @click.pass_context
    @wraps(work)
    def command(ctx: click.Context, /, *args: P.args, **kwargs: P.kwargs) -> int:
        return run_apart(ctx, lambda settings, output: work(settings, output, *args, **kwargs))

    return command


def _act(ctx: click.Context, settings: Settings) -> None:
    """Record the user of the command line for the audit log."""
    if settings.audit:
        import getpass

        from echoic.memory.audit import act

        act("command line", getpass.getuser(), ctx.command_path)


def memory_at(
    settings: Settings,
    embedder: DeferredEmbedder,
    model: str | Model | None = None,
    quota: Quota | None = None,
) -> MemoryService:
    """The memory service of `settings`, not open yet; raises `InvalidInput`. A `model` extracts memories,
    too.
    """
    import echoic

    return echoic.open(
        settings.store,
        embedder=embedder,
        model=model,
        global_writes=settings.global_writes,
        global_kinds=settings.global_kinds or None,
        fusion=settings.fusion,
        shares=settings.shares,
        quota=quota,
        secrets="keep" if settings.keep_secrets else "mask",
        instructions="keep" if settings.keep_instructions else "refuse",
        third_parties=settings.third_parties,
        assurance=settings.assurance,
        keep_for=settings.keep_for,
        compliance=settings.compliance,
        audit=settings.audit,
    )


async def opened_as_embedded(settings: Settings, embedder: DeferredEmbedder) -> MemoryService:
    """The open memory service, whatever embedder made its vectors."""
    memory = memory_at(settings, embedder)
    try:
        return await memory.open()
    except EmbeddingMismatch as error:
        if error.model is None:
            raise
        embedder.claim(EmbeddingSpec(error.model, error.dimensions))
    return await memory_at(settings, embedder).open()


def embedder_at(settings: Settings) -> DeferredEmbedder:
    """The embedder of `settings`, not open yet; raises `InvalidInput`."""
    from echoic.embedding import embedder_from

    local = settings.embedder.partition("?")[0].partition(":")[0] == "local"
    return DeferredEmbedder(embedder_from(settings.embedder, model_dir=settings.weights if local else None))


async def ready_embedder(settings: Settings, output: Output) -> DeferredEmbedder:
    """`embedder_at`, ready; if it fails, a note says so, and turns are stored and found by their words."""
    embedder = embedder_at(settings)
    try:
        await embedder.ready()
    except EmbedderError as error:
        output.note(words_only(error))
    return embedder


def store_path(settings: Settings) -> Path | None:
    """The file or folder of a local store; None for any other kind of store."""
    scheme, _, rest = settings.store.partition("://")
    place = rest.partition("?")[0]
    if scheme.lower() not in {"sqlite", "files"} or not place.startswith("/"):
        return None
    return Path(unquote(place[1:]))


def words_only(error: EmbedderError) -> str:
    """The note that an answer was found without the embedder."""
    return f"searching by words and sounds only, for now: {error}"


def text_or_stdin(value: str) -> str:
    """`value`, or stdin without its final line break if it is "-"; raises `InvalidInput` if that is not
    UTF-8, or longer than a text may be.
    """
    if value != "-":
        return value
    most = MAX_TEXT_BYTES + len("\r\n")
    raw = sys.stdin.buffer.read(most + 1)  # not all: it may have no end
    if len(raw) > most:
        raise InvalidInput(f"stdin has more than the {MAX_TEXT_BYTES} bytes that a text may have")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"stdin is not UTF-8 at byte {error.start}; convert it first") from error
    return text.removesuffix("\n").removesuffix("\r")


async def _with_memory(
    settings: Settings, output: Output, work: Work, model: str | None, *, one_user: bool, searches: bool
) -> CommandResult:
    embedder = embedder_at(settings)
    path = store_path(settings)
    new = path is not None and not path.exists()
    of_any = not searches and await opened_as_embedded(settings, embedder)
    async with of_any or memory_at(settings, embedder, model) as memory:
        if new:
            output.say(f"created a store at {path}" + (f", for {_whose(settings)}" if one_user else ""))
        desk = Desk(settings=settings, output=output, memory=memory, embedder=embedder)
        result = await work(desk)
    if embedder.failure is not None:  # nothing is lost: written records wait to be embedded
        output.note(words_only(embedder.failure))
    return result


def _whose(settings: Settings) -> str:
    """The user, and how to name another: a wrong user would otherwise go unnoticed."""
    name = f"user {settings.user!r}"
    return name if "user" in settings.named else f"{name} (--user or ECHOIC_USER names another)"


def _in_loop(settings: Settings, work: Coroutine[Any, Any, CommandResult]) -> CommandResult:
    if settings.debug:
        logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    # without a handler, Python prints warnings to stderr, which the result already reports
    logger = logging.getLogger("echoic")
    before = [*logger.handlers]
    logger.addHandler(logging.NullHandler())
    try:
        return asyncio.run(work)
    finally:
        logger.handlers = before  # what `log_warnings` added, too


def log_warnings() -> None:
    """Print Echoic's warnings and errors to stderr, for a command that runs on and gives no result."""
    if logging.getLogger().hasHandlers():  # --debug prints them already
        return
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logging.getLogger("echoic").addHandler(handler)


class DeferredEmbedder:
    """Opens an embedder on first use; `failure` says why it could not be used."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._claims: EmbeddingSpec | None = None
        self._honest = asyncio.Event()
        self._honest.set()
        self._opening = asyncio.Lock()
        self._ready = False
        self.failure: EmbedderError | None = None
        """The last error while opening or using it, if any."""

    @property
    def spec(self) -> EmbeddingSpec:
        """The embedder's specification, or the one it claims."""
        return self._claims or self._embedder.spec

    @property
    def own_spec(self) -> EmbeddingSpec:
        """The embedder's own specification, whatever it claims."""
        return self._embedder.spec

    @property
    def semantic(self) -> bool:
        """Whether the embedder captures meaning; False once it is known to be missing."""
        return self._embedder.semantic and not isinstance(self.failure, EmbedderMissing)

    def claim(self, spec: EmbeddingSpec) -> None:
        """Claim `spec`, so that a store with its vectors opens; embedding waits until `own_up`."""
        self._claims = spec
        self._honest.clear()

    def own_up(self) -> None:
        """Drop the claim, and embed again."""
        self._claims = None
        self._honest.set()

    async def open(self) -> None:
        """Do nothing; `ready` opens the embedder."""

    async def ready(self) -> None:
        """Open the embedder unless it is open. A missing one stays missing for this process.

        Raises:
            EmbedderMissing: its packages or weights are not on this machine.
            EmbedderUnavailable: it could not be reached.
        """
        if self._ready:
            return
        async with self._opening:
            if self._ready:  # the holder of the lock opened it
                return
            if self.failure is not None and not isinstance(self.failure, EmbedderUnavailable):
                raise self.failure
            try:
                await self._embedder.open()
            except EmbedderError as error:
                self.failure = error
                raise
            self._ready = True

    async def aclose(self) -> None:
        """Close the embedder, if it was opened."""
        self._ready = False
        await self._embedder.aclose()

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Embed `texts`, opening the embedder first; raises as `ready`."""
        return (await self.embed_pieces(texts, kind)).vectors

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """Embed `texts` with their word pieces, if the embedder has any; raises as `ready`."""
        from echoic.embedding.base import embedded  # imports numpy, which `--help` does not need

        await self._honest.wait()
        await self.ready()
        try:
            made = await embedded(self._embedder, texts, kind)
        except EmbedderError as error:
            self.failure = error
            raise
        self.failure = None
        return made

    def count_tokens(self, text: str) -> int | None:
        """Count the tokens of `text`; None if the embedder cannot."""
        counting = getattr(self._embedder, "count_tokens", None)
        return counting(text) if counting and self._ready else None
