"""Operators' commands: distil, reindex, users, copy."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from echoic.cli.asyncio_runner import Desk, embedder_at, memory_at, run, run_apart, store_path, words_only
from echoic.cli.command import command
from echoic.cli.output import (
    COULD_NOT_LOOK,
    DONE,
    NOTHING_KNOWN,
    CommandResult,
    Output,
    ProgressReport,
    Table,
    listing,
)
from echoic.cli.settings import Settings, variable
from echoic.errors import EmbeddingMismatch, InvalidInput, StoreUnavailable
from echoic.partition import AXES, MAX_BYTES
from echoic.types import Consent, EmbeddingSpec

if TYPE_CHECKING:
    from echoic.cli.deferred import DeferredEmbedder
    from echoic.memory.distilling.reconcile import Distilled
    from echoic.memory.export import CopiedMemory
    from echoic.memory.service import MemoryService


_LOOK_S = 1.0
"""How often progress is polled; each poll is a small write to the store."""


@command("hold")
@click.option("--release", is_flag=True, help="End the hold.")
@click.pass_context
def hold_command(ctx: click.Context, /, *, release: bool) -> int:
    """Keep everything stored about the user from being destroyed (operators).

    Until it is released, `forget` is refused and nothing is destroyed for its age.
    """

    async def work(desk: Desk) -> CommandResult:
        await desk.user.hold(on=not release)
        words = "released" if release else "on hold: nothing stored about this user is destroyed"
        held = {"user": desk.settings.user, "held": not release}
        return CommandResult(data=held, text=words, count=1)

    return run(ctx, work)


@command("consent")
@click.argument("whose", metavar="USER")
@click.argument(
    "choice", metavar="[keep|ask|never]", required=False, type=click.Choice(["keep", "ask", "never"])
)
@click.pass_context
def consent_command(ctx: click.Context, /, *, whose: str, choice: Consent | None) -> int:
    """Print or set whether anything USER says may be kept.

    With never, agents work on, and nothing of what USER says is kept beyond the running call. With ask, so it
    is in each call until USER agrees to have it kept. What is kept already stays until `echoic forget`
    destroys it.
    """

    async def work(desk: Desk) -> CommandResult:
        memory = desk.memory.user(whose, desk.settings.deployment)
        if choice is not None:
            await memory.set_consent(choice)
        consent = await memory.consent()
        return CommandResult(data={"user": whose, "consent": consent}, text=consent, count=1)

    return run(ctx, work)


@command("distil")
@click.option("--watch", is_flag=True, help="Run as a worker until interrupted.")
@click.option(
    "--every",
    "seconds",
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    help="How often a worker looks for work.",
)
@click.option(
    "--parked", is_flag=True, help="Retry conversations that were given up after repeated model failures."
)
@click.option(
    "--model",
    metavar="PROVIDER:MODEL",
    envvar=variable("model"),
    show_envvar=True,
    help="A language model that extracts memories beside the rules.",
)
@click.pass_context
def distil_command(
    ctx: click.Context, *, watch: bool, seconds: float, parked: bool, model: str | None
) -> int:
    """Extract memories from conversations that were not read yet.

    Reads the conversations of every user of the deployment, and prints each memory that was stored or
    retracted, with its key. With --watch it runs as a worker over every deployment, unless you name one: it
    reads conversations that ended or were abandoned, and reports progress on stderr. Several workers may
    share a store.
    """
    if not seconds > 0:
        raise click.BadParameter(f"{seconds} is not a positive number", param_hint="--every")

    async def work(settings: Settings, output: Output) -> CommandResult:
        embedder = embedder_at(settings)
        async with memory_at(settings, embedder, model) as memory:
            if watch:
                return await _watch(memory, settings, output, seconds)
            result = await _distil(memory, settings, output, parked=parked)
        if embedder.trouble is not None:
            output.note(words_only(embedder.trouble))
        return result

    return run_apart(ctx, work)


async def _distil(
    memory: MemoryService, settings: Settings, output: Output, *, parked: bool
) -> CommandResult:
    distilled = await memory.distil(settings.deployment, parked=parked)
    output.say(_told(distilled))
    jobs = await memory.jobs(settings.deployment)
    if jobs.failing or jobs.parked:
        output.note(f"a model failed on {jobs.failing + len(jobs.parked)} conversations; see `echoic doctor`")
    rows = [("kept", m.key or "", m.text) for m in distilled.kept]
    rows += [("retracted", m.key or "", m.text) for m in distilled.retracted]
    table = Table(headings=("WHAT", "KEY", "TEXT"), rows=rows)
    return CommandResult(data=distilled, text=table, count=len(rows))


async def _watch(memory: MemoryService, settings: Settings, output: Output, every_s: float) -> CommandResult:
    """Work until interrupted. Its messages hold no contents: they may go to a log for months."""
    deployment = settings.deployment if "deployment" in settings.named else None
    output.say(f"watching {deployment or 'all deployments'}, every {every_s:g} s")
    while True:
        try:
            distilled = await memory.distil_due(deployment)
        except StoreUnavailable as error:  # a worker outlives a restart of its database
            output.say(f"the store is unavailable, trying again: {error}")
        else:
            if distilled.turns or distilled.kept or distilled.retracted or distilled.confirmed:
                output.say(_told(distilled))
        await asyncio.sleep(every_s)


def _told(distilled: Distilled) -> str:
    counts = f"kept {len(distilled.kept)}, retracted {len(distilled.retracted)}"
    again = f", confirmed {len(distilled.confirmed)}" if distilled.confirmed else ""
    return f"read {distilled.turns} turns: {counts}{again}"


@command("users")
@click.pass_context
def users_command(ctx: click.Context) -> int:
    """Print the users of the deployment, one a line (operators)."""

    async def work(desk: Desk) -> CommandResult:
        users = await desk.memory.users(desk.settings.deployment)
        if not users:
            desk.output.say(f"deployment {desk.settings.deployment!r} has no users")
        return listing(users, "USER", [(user,) for user in users])

    return run(ctx, work)


@command("reindex")
@click.pass_context
def reindex_command(ctx: click.Context) -> int:
    """Embed every record again, for instance with another embedder.

    --embedder names the one to use; the store changes to it. Until reindexing is done, records without a
    vector are found by words and sounds.
    """
    return run_apart(ctx, _reindex)


async def _reindex(settings: Settings, output: Output) -> CommandResult:
    embedder = embedder_at(settings)
    await embedder.ready()  # fails before any old vector is dropped
    async with await opened_as_embedded(settings, embedder) as memory:
        records = await memory.reindex(embedder.own_spec)
        embedder.own_up()
        output.note(_size(embedder.own_spec))
        left = await embed_waiting(memory, output, "embedding")
    if embedder.trouble is not None:
        output.note(words_only(embedder.trouble))
    output.say(f"embedded {records - left} of {records} records with {settings.embedder}")
    code = COULD_NOT_LOOK if left else DONE
    return CommandResult(data={"records": records, "waiting": left}, count=records - left, code=code)


def _size(spec: EmbeddingSpec) -> str:
    """What a record takes."""
    vector = f"a vector of {spec.dimensions} dimensions takes {4 * spec.dimensions:,} bytes a record"
    if not spec.model.startswith("local:"):
        return vector
    return f"{vector}, and each of its word pieces {AXES} more, {MAX_BYTES:,} at most"


async def opened_as_embedded(settings: Settings, embedder: DeferredEmbedder) -> MemoryService:
    """The memory, open, whatever embedder made its vectors."""
    memory = memory_at(settings, embedder)
    try:
        return await memory.open()
    except EmbeddingMismatch as error:
        if error.model is None:
            raise
        embedder.claim(EmbeddingSpec(error.model, error.dimensions))
    return await memory_at(settings, embedder).open()


async def embed_waiting(memory: MemoryService, output: Output, what: str) -> int:
    """Wait until every record is embedded or embedding fails; the number that are left."""
    facts = await memory.check()
    total = facts["waiting"]
    with output.progress(what) as progress:
        while facts["waiting"] and not facts["embedding_trouble"]:
            progress(total - facts["waiting"], total)
            await memory.settle(_LOOK_S)
            facts = await memory.check()
    return int(facts["waiting"])


@command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.pass_context
def copy_command(ctx: click.Context, source: str, target: str) -> int:
    """Copy every user's records to another store.

    FROM and TO are store URLs, as for --store. All deployments, users and records are copied with their
    vectors, so nothing is embedded again. If TO uses another embedder (--embedder names one for a new store),
    the records are embedded when TO is next used. FROM is only read. At the end, the records of each user are
    counted and compared in both stores.

    Nothing else may write to either store meanwhile. If the copy is interrupted, run the same command again
    to continue. Records of other users in TO stay; if TO holds different records of a user, nothing is
    copied.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        _check(settings, source, target)
        with output.progress("copying") as progress:
            done = await _copied(settings, source, target, progress)
        return _result(done, output)

    return run_apart(ctx, work)


async def _copied(settings: Settings, source: str, target: str, progress: ProgressReport) -> CopiedMemory:
    from echoic.memory.export import copy_memory
    from echoic.stores import store_from

    named = "embedder" in settings.named
    return await copy_memory(
        partial(store_from, source),
        partial(store_from, target),
        embedder_at(settings).own_spec,
        named=named,
        progress=progress,
    )


def _check(settings: Settings, source: str, target: str) -> None:
    """Refuse a copy that makes no sense.

    Raises:
        InvalidInput: a store is missing or does not outlast this command, or both are the same.
    """
    from echoic.stores import store_from

    for url in (source, target):
        store_from(url)
        if url.lower().startswith("memory:"):
            raise InvalidInput("memory:// ends with this command: name a persistent store")
    taken, given = (store_path(replace(settings, store=url)) for url in (source, target))
    if source == target or (taken is not None and given is not None and taken.resolve() == given.resolve()):
        raise InvalidInput("FROM and TO are the same store: name another one to copy to")
    if taken is not None and not taken.exists():
        raise InvalidInput(f"there is no store at {taken}; nothing was copied")


def _result(done: CopiedMemory, output: Output) -> CommandResult:
    copied = done.copied
    if not copied.scopes:
        output.say("FROM is empty")
        return CommandResult(data=_told_copied(done), count=0, code=NOTHING_KNOWN)
    output.say(
        f"copied {copied.new} of {copied.records} records of {len(copied.scopes)} scopes, "
        f"{copied.records - copied.new} were there already; both stores are equal"
    )
    if copied.waiting:
        output.note(
            f"{copied.waiting} records will be embedded when TO is used with the embedder "
            f"{done.target.model!r}; until then they are found by words and sounds"
        )
    return CommandResult(data=_told_copied(done), count=copied.records, code=DONE)


def _told_copied(done: CopiedMemory) -> dict[str, Any]:
    copied = done.copied
    return {
        "records": copied.records,
        "new": copied.new,
        "vectors": copied.vectors,
        "waiting": copied.waiting,
        "model": done.target.model,
        "scopes": [
            {
                "deployment": one.scope.deployment,
                "user": one.scope.user,
                "records": one.records,
                "new": one.new,
                "vectors": one.vectors,
                "waiting": one.waiting,
                "digest": one.digest,
            }
            for one in copied.scopes
        ],
    }
