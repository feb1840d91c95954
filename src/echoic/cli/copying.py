"""The command that takes everything of everybody to another store."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from echoic.cli.command import command
from echoic.cli.exits import DONE, NOTHING_KNOWN
from echoic.cli.output import Output, Progress, Result
from echoic.cli.running import embedder_at, run_apart, store_path
from echoic.cli.settings import Settings
from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.memory.portable import CopiedMemory


@command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.pass_context
def copy_command(ctx: click.Context, source: str, target: str) -> int:
    """Copy everything of everybody to another store.

    FROM and TO are URLs as --store takes them. All deployments, users and records go, with their vectors, so
    that nothing is embedded anew; where TO is kept with another embedder (--embedder names one for a new
    store), records wait there until it is used. FROM is only read. In the end everybody's records are
    counted and compared in both.

    Copy while nobody writes to either. After an interruption run the same command again: it goes on where it
    was. What TO holds of others stays; where it holds something else of the same user, nothing is copied.
    """

    async def work(settings: Settings, output: Output) -> Result:
        _check(settings, source, target)
        with output.progress("copying") as progress:
            done = await _copied(settings, source, target, progress)
        return _result(done, output)

    return run_apart(ctx, work)


async def _copied(settings: Settings, source: str, target: str, progress: Progress) -> CopiedMemory:
    from echoic.memory.portable import copy_memory
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
    """Refuse what cannot be meant.

    Raises:
        InvalidInput: a store that is not there, that lasts no longer than this command, or twice the same.
    """
    from echoic.stores import store_from

    for url in (source, target):
        store_from(url)
        if url.lower().startswith("memory:"):
            raise InvalidInput("memory:// is gone when this command ends: name a store that lasts")
    taken, given = (store_path(replace(settings, store=url)) for url in (source, target))
    if source == target or (taken is not None and given is not None and taken.resolve() == given.resolve()):
        raise InvalidInput("FROM and TO are the same store: name another one to copy to")
    if taken is not None and not taken.exists():
        raise InvalidInput(f"there is no store at {taken}: nothing was copied, and none was made")


def _result(done: CopiedMemory, output: Output) -> Result:
    copied = done.copied
    if not copied.scopes:
        output.say("nothing is kept in FROM")
        return Result(data=_told(done), count=0, code=NOTHING_KNOWN)
    output.say(
        f"copied {copied.new} of {copied.records} records of {len(copied.scopes)} scopes, "
        f"{copied.records - copied.new} were there already; both stores hold the same"
    )
    if copied.waiting:
        output.note(
            f"{copied.waiting} records wait for their vector until TO is used with the embedder of "
            f"{done.target.model!r}; words and sounds find them meanwhile"
        )
    return Result(data=_told(done), count=copied.records, code=DONE)


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


__all__ = ["copy_command"]
