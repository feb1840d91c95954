"""The command line: parses arguments, prints data and returns an exit code. Decides nothing about memory.

Data goes to stdout, messages to stderr. `output` lists the exit codes, `settings` the options of every
command.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

import click

from echoic.cli.calls import calls_group, watch_command, why_command
from echoic.cli.chat import chat_command
from echoic.cli.command import CommandGroup, report
from echoic.cli.doctor import doctor_command
from echoic.cli.global_memory import global_group, lessons_group, proposals_group
from echoic.cli.import_export import export_command, import_command
from echoic.cli.memories import (
    delete_command,
    forget_command,
    get_command,
    history_command,
    list_command,
    query_command,
    remember_command,
    set_command,
)
from echoic.cli.output import DONE, Output, use_utf8
from echoic.cli.phone import phone_group
from echoic.cli.serve import mcp_command, serve_command, tools_command
from echoic.cli.settings import Settings, settings_of, wants_json
from echoic.cli.upkeep import (
    audit_group,
    backup_command,
    consent_command,
    copy_command,
    distil_command,
    hold_command,
    keys_group,
    reindex_command,
    restore_command,
    users_command,
)


def _version() -> str:
    from echoic import __version__

    return __version__


@click.group(
    "echoic",
    cls=CommandGroup,
    hide_global=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(_version(), message="echoic %(version)s")
@click.pass_context
def root(ctx: click.Context) -> int:
    """Memory for voice agents that lasts across calls and answers within a pause.

    Options may come before or after a command's name. Data goes to stdout, everything else to stderr.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return DONE


root.add_section("Remember", [set_command, remember_command, delete_command])
root.add_section("Recall", [get_command, query_command, list_command, history_command])
root.add_section("Talk and serve", [chat_command, serve_command, mcp_command, tools_command, phone_group])
root.add_section("Inspect calls", [calls_group, why_command, watch_command])
root.add_section("Export, import, forget", [export_command, import_command, copy_command, forget_command])
root.add_section(
    "Operate",
    [
        doctor_command,
        backup_command,
        restore_command,
        audit_group,
        keys_group,
        users_command,
        hold_command,
        consent_command,
        global_group,
        proposals_group,
        lessons_group,
        distil_command,
        reindex_command,
    ],
)
root.add_section("Measure", ["bench", "tune"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
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
