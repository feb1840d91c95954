"""Echoic's click commands: the global options on each, one line for an error, a meaningful exit code.

`running` runs them.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import click

from echoic.cli.exits import exit_code
from echoic.cli.output import INTERRUPTED_KIND, Output
from echoic.cli.settings import Settings, global_options, settings_of
from echoic.errors import EchoicError


class Command(click.Command):
    """A command that takes the global options after its name too, and reports its own errors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["params"] = [*(kwargs.get("params") or []), *global_options(hidden=True)]
        super().__init__(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> int:
        """Run the command and return its exit code, whatever happens."""
        return _guarded(ctx, super().invoke)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say where the global options are listed."""
        super().format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("Global options, such as --user and --json, are listed by `echoic --help`.")


class Group(click.Group):
    """Commands under one name, in the order they were added."""

    command_class = Command

    def __init__(self, *args: Any, hide_global: bool = True, **kwargs: Any) -> None:
        kwargs["params"] = [*(kwargs.get("params") or []), *global_options(hidden=hide_global)]
        # otherwise click would print the whole help as its error
        super().__init__(*args, **{"no_args_is_help": False, **kwargs})
        self._sections: list[tuple[str, list[str]]] = []

    def invoke(self, ctx: click.Context) -> int:
        """Run the subcommand and return its exit code, whatever happens."""
        return _guarded(ctx, super().invoke)

    def add_section(self, title: str, commands: Sequence[click.Command]) -> None:
        """Add `commands`, listed together under `title` in the help."""
        for command in commands:
            self.add_command(command)
        self._sections.append((title, [command.name or "" for command in commands]))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order they were added."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section."""
        if not self._sections:
            super().format_commands(ctx, formatter)
            return
        width = max(len(name) for name in self.commands)
        for title, names in self._sections:
            with formatter.section(title):
                limit = formatter.width - 6 - width
                rows = [(n.ljust(width), self.commands[n].get_short_help_str(limit)) for n in names]
                formatter.write_dl(rows)


def _guarded(ctx: click.Context, invoke: Callable[[click.Context], Any]) -> int:
    try:
        return int(invoke(ctx) or 0)
    except (click.exceptions.Exit, click.UsageError):
        raise
    # The outermost frame: every error becomes one line and an exit code.
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
        return report(output_of(ctx), settings_of(ctx), error)


def output_of(ctx: click.Context) -> Output:
    """The output of the command of `ctx`; `ctx.obj` is when it started."""
    started = ctx.obj if isinstance(ctx.obj, float) else time.perf_counter()
    return Output(settings_of(ctx), ctx.command_path.partition(" ")[2], started)


def report(output: Output, settings: Settings, error: BaseException) -> int:
    """Print `error` for a person or a program, and return the exit code."""
    kind = type(error).__name__
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        kind, message = INTERRUPTED_KIND, "interrupted; everything acknowledged is stored"
    elif isinstance(error, click.ClickException):  # whose types differ between releases of click
        kind, message = "UsageError", error.format_message()
    elif isinstance(error, EchoicError):
        message = str(error)
    else:  # the message may hold what a caller said, so only the type is printed
        message = f"unexpected {kind}; run the command again with --debug to see where"
    if settings.debug:
        traceback.print_exception(error, file=sys.stderr)
    output.fail(kind, message)
    return exit_code(error)


command = cast("Callable[..., Callable[[Callable[..., Any]], Command]]", partial(click.command, cls=Command))
"""`click.command` for a `Command`."""

__all__ = ["Command", "Group", "command", "output_of", "report"]
