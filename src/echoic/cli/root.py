"""The command `echoic`: its own options, and its subcommands by section."""

from __future__ import annotations

import click

from echoic.cli.audit import audit_group
from echoic.cli.calls import calls_group, why_command
from echoic.cli.chat import chat_command
from echoic.cli.command import CommandGroup
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
from echoic.cli.output import DONE
from echoic.cli.phone import phone_group
from echoic.cli.serve import mcp_command, serve_command, tools_command
from echoic.cli.upkeep import (
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
from echoic.cli.watch import watch_command


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
