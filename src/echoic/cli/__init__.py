"""The command line: arguments in, data and an exit code out. It decides nothing about memory.

Data goes to stdout, messages to stderr. `output` lists the exit codes, `settings` the options every command
takes.
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
    """Run one command and return its exit code.

    Args:
        arguments: the words after `echoic`; None takes this process's own.
    """
    use_utf8()
    started = time.perf_counter()
    if arguments is None:
        arguments = sys.argv[1:]
        gc.set_threshold(50_000, 20, 50)  # imports leave no garbage, so collect less often
    words = list(arguments)
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
