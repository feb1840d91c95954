"""`echoic backup` and `echoic restore`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from echoic.cli.asyncio_runner import embedder_at, run_apart, store_path
from echoic.cli.command import command
from echoic.cli.output import DONE, CommandResult, Output
from echoic.cli.settings import Settings
from echoic.errors import InvalidInput


@command("backup")
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_context
def backup_command(ctx: click.Context, file: Path) -> int:
    """Back up a whole store to one file, while it is in use.

    All deployments, users and records are written with their vectors, whatever kind of store it is, and the
    file is read back. FILE.sha256 beside it holds its checksum. FILE is itself a store: any command can read
    it with --store sqlite:///FILE.

    From SQLite, the backup is the store at one moment. From any other store, each user is as they were at one
    moment. Copy the compliance folder apart: it must be newer than the backup when you restore
    (docs/backup.md).
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        from echoic.memory.backup import back_up
        from echoic.stores import store_from

        _check(settings)
        source = partial(store_from, settings.store)
        with output.progress("backing up") as progress:
            done = await back_up(source, file, embedder_at(settings).own_spec, progress=progress)
        output.say(f"backed up {done.records} records of {done.scopes} users and deployments to {file}")
        return CommandResult(data=done, text=f"{done.sha256}  {file.name}", count=done.records, code=DONE)

    return run_apart(ctx, work)


@command("restore")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--without-checksum", is_flag=True, help="Restore although FILE.sha256 is missing.")
@click.pass_context
def restore_command(ctx: click.Context, file: Path, *, without_checksum: bool) -> int:
    """Restore a backup into an empty store, and erase again what was erased since.

    --store is the store to fill; it must be empty. What was erased since the backup was made is listed in the
    compliance folder (--compliance, by default the one beside the store) and is erased again before the
    command ends. Without that folder everything in the backup comes back.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        from echoic.memory.backup import restore
        from echoic.stores import store_from

        if settings.store.lower().startswith("memory:"):
            raise InvalidInput("memory:// ends with this command: name a persistent store")
        target = partial(store_from, settings.store)
        with output.progress("restoring") as progress:
            copied = await restore(file, target, checked=not without_checksum, progress=progress)
        again, listed = await _forget_again(settings)
        output.say(
            f"restored {copied.records} records of {len(copied.scopes)} users and deployments, "
            f"then made {again} erasures again"
        )
        if not listed:
            output.note("no list of erasures was found: whoever was erased since the backup is back")
        data: dict[str, Any] = {"records": copied.records, "erasures_again": again, "erasures_listed": listed}
        return CommandResult(data=data, count=copied.records, code=DONE)

    return run_apart(ctx, work)


async def _forget_again(settings: Settings) -> tuple[int, int]:
    """Open the restored store, which forgets again; how many erasures, and how many are listed."""
    from echoic.cli.upkeep import opened_as_embedded
    from echoic.memory.compliance import Compliance
    from echoic.opening import compliance_folder

    async with await opened_as_embedded(settings, embedder_at(settings)) as memory:
        again = memory.forgotten_again
    folder = settings.compliance or compliance_folder(settings.store)
    return again, 0 if folder is None else len(Compliance(folder).past())


def _check(settings: Settings) -> None:
    path = store_path(settings)
    if settings.store.lower().startswith("memory:"):
        raise InvalidInput("memory:// holds nothing that outlasts a command: name a persistent store")
    if path is not None and not path.exists():
        raise InvalidInput(f"there is no store at {path}; nothing was backed up")
