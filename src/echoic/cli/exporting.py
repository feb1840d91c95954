"""The command that takes everything of a user along."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from echoic.cli.command import command
from echoic.cli.output import Result
from echoic.cli.running import Desk, run
from echoic.errors import InvalidInput

STDOUT = "-"


@command("export")
@click.argument("file", default=STDOUT)
@click.pass_context
def export_command(ctx: click.Context, file: str) -> int:
    """Write all that is kept of the user, as JSON.

    That is every version of every memory, and every conversation. Without FILE, or with "-", to stdout.
    `echoic import` takes it in again without loss. A file appears whole or not at all, and only its owner
    may read it.
    """

    async def work(desk: Desk) -> Result:
        exported = await desk.user.export()
        count = len(exported["memories"]) + len(exported["conversations"])
        text = json.dumps(exported, ensure_ascii=False, indent=1)
        if file == STDOUT:
            return Result(data=exported, text=text, count=count)
        path = Path(file)
        _write(path, text)
        desk.output.say(f"wrote what is kept of user {desk.settings.user!r} to {path}")
        return Result(data=_counts(path, exported), count=count)

    return run(ctx, work)


def _counts(path: Path, exported: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "file": str(path),
        "memories": len(exported["memories"]),
        "conversations": len(exported["conversations"]),
        "turns": sum(len(conversation["turns"]) for conversation in exported["conversations"]),
    }


def _write(path: Path, text: str) -> None:
    """`text` in `path`, whole on the disk before it bears its name.

    Raises:
        InvalidInput: it cannot be written there.
    """
    try:
        # NamedTemporaryFile makes files that only their owner may read: it holds what somebody said
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".echoic-", delete=False) as scratch:
            made = Path(scratch.name)
            try:
                scratch.write(f"{text}\n".encode())
                scratch.flush()
                os.fsync(scratch.fileno())
                made.replace(path)
            except BaseException:
                made.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise InvalidInput(f"{path} could not be written: {error.strerror}") from error


__all__ = ["export_command"]
