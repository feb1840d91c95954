"""The command line: arguments in, data and an exit code out. It decides nothing about memory.

stdout carries data and stderr talk; `exits` lists the exit codes, `settings` the options every command takes.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import click

from echoic.cli.command import report
from echoic.cli.output import Output, use_utf8
from echoic.cli.root import root
from echoic.cli.settings import Settings, settings_of, wants_json


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code.

    Args:
        arguments: the words after `echoic`; None: those this process was started with.
    """
    use_utf8()
    if (
        arguments is None
    ):  # a process of its own: what it imports is no garbage, and need not be looked at so often
        gc.set_threshold(50_000, 20, 50)
    started = time.perf_counter()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return int(root.main(words, prog_name="echoic", standalone_mode=False, obj=started) or 0)
    except (click.ClickException, click.Abort) as error:
        ctx = getattr(error, "ctx", None)
        settings = replace(settings_of(ctx) if ctx else Settings(), json=wants_json(words))
        name = ctx.command_path.partition(" ")[2] if ctx else ""
        code = report(Output(settings, name, started), settings, error)
        if isinstance(error, click.UsageError) and not settings.json:
            print(f"See `{ctx.command_path if ctx else 'echoic'} --help`.", file=sys.stderr)
        return code


__all__ = ["main"]
