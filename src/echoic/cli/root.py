"""The command `echoic`: its own options, and which commands there are."""

from __future__ import annotations

import click

from echoic.cli.calls import calls_group, why_command
from echoic.cli.chat import chat_command
from echoic.cli.command import Group
from echoic.cli.copying import copy_command
from echoic.cli.doctor import doctor_command
from echoic.cli.exits import DONE
from echoic.cli.exporting import export_command
from echoic.cli.forget import forget_command
from echoic.cli.global_facts import global_group
from echoic.cli.importing import import_command
from echoic.cli.lessons import lessons_group
from echoic.cli.memories import (
    delete_command,
    get_command,
    history_command,
    list_command,
    remember_command,
    set_command,
)
from echoic.cli.phone import phone_group
from echoic.cli.proposals import proposals_group
from echoic.cli.query import query_command
from echoic.cli.serve import serve_command
from echoic.cli.upkeep import distil_command, reindex_command, users_command


def _version() -> str:
    from echoic import __version__

    return __version__


@click.group(
    "echoic",
    cls=Group,
    hide_global=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(_version(), message="echoic %(version)s")
@click.pass_context
def root(ctx: click.Context) -> int:
    """Memory for voice agents: it lasts across calls and answers inside a pause.

    Options may stand before or after a command's name. Data goes to stdout, everything else to stderr.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return DONE


root.add_section("Remember", [set_command, remember_command, delete_command])
root.add_section("Ask", [get_command, query_command, list_command, history_command])
root.add_section("Talk", [chat_command, serve_command, phone_group])
root.add_section("Understand a call", [calls_group, why_command])
root.add_section("Take along, and forget", [export_command, import_command, copy_command, forget_command])
root.add_section(
    "Run",
    [
        doctor_command,
        users_command,
        global_group,
        proposals_group,
        lessons_group,
        distil_command,
        reindex_command,
    ],
)
root.add_section("Measure", ["bench", "tune"])

__all__ = ["root"]
