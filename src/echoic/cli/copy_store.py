"""`echoic copy`: copy every user's records to another store."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from echoic.cli.asyncio_runner import embedder_at, run_apart, store_path
from echoic.cli.command import command
from echoic.cli.output import DONE, NOTHING_KNOWN, CommandResult, Output, ProgressReport
from echoic.cli.settings import Settings
from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.memory.export import CopiedMemory


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
        return CommandResult(data=_told(done), count=0, code=NOTHING_KNOWN)
    output.say(
        f"copied {copied.new} of {copied.records} records of {len(copied.scopes)} scopes, "
        f"{copied.records - copied.new} were there already; both stores are equal"
    )
    if copied.waiting:
        output.note(
            f"{copied.waiting} records will be embedded when TO is used with the embedder "
            f"{done.target.model!r}; until then they are found by words and sounds"
        )
    return CommandResult(data=_told(done), count=copied.records, code=DONE)


def _told(done: CopiedMemory) -> dict[str, Any]:
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
