"""What makes a click command one of ours: the global options, one line for an error, an exit code that means
something. Where commands are run is `running`.
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
    """A command that takes the global options after its name as well, and reports what goes wrong in it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["params"] = [*(kwargs.get("params") or []), *global_options(hidden=True)]
        super().__init__(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> int:
        """Run the command; its exit code, whatever happens."""
        return _guarded(ctx, super().invoke)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write where the other options are."""
        super().format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("Global options, such as --user and --json, are listed by `echoic --help`.")


class Group(click.Group):
    """Such commands under one name, in the order they were added."""

    command_class = Command

    def __init__(self, *args: Any, hide_global: bool = True, **kwargs: Any) -> None:
        kwargs["params"] = [*(kwargs.get("params") or []), *global_options(hidden=hide_global)]
        # else click fails with the whole help as its message, which is no line of an error
        super().__init__(*args, **{"no_args_is_help": False, **kwargs})
        self._sections: list[tuple[str, list[str]]] = []

    def invoke(self, ctx: click.Context) -> int:
        """Run the command that was named; its exit code, whatever happens."""
        return _guarded(ctx, super().invoke)

    def add_section(self, title: str, commands: Sequence[click.Command]) -> None:
        """Add `commands`, listed together under `title` in the help."""
        for command in commands:
            self.add_command(command)
        self._sections.append((title, [command.name or "" for command in commands]))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of adding."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, section by section."""
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
    # The outermost frame: whatever happened becomes one line and an exit code.
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
        return report(output_of(ctx), settings_of(ctx), error)


def output_of(ctx: click.Context) -> Output:
    """Where the command of `ctx` prints; `ctx.obj` is when it began."""
    started = ctx.obj if isinstance(ctx.obj, float) else time.perf_counter()
    return Output(settings_of(ctx), ctx.command_path.partition(" ")[2], started)


def report(output: Output, settings: Settings, error: BaseException) -> int:
    """Print what `error` means for a person or a program; the exit code."""
    kind = type(error).__name__
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        kind, message = INTERRUPTED_KIND, "interrupted; what was acknowledged is kept"
    elif isinstance(error, click.ClickException):  # whose kinds differ from one release of click to another
        kind, message = "UsageError", error.format_message()
    elif isinstance(error, EchoicError):
        message = str(error)
    else:  # its message may hold what was said, so only its type is told
        message = f"unexpected {kind}; run it again with --debug to see where"
    if settings.debug:
        traceback.print_exception(error, file=sys.stderr)
    output.fail(kind, message)
    return exit_code(error)


command = cast("Callable[..., Callable[[Callable[..., Any]], Command]]", partial(click.command, cls=Command))
"""As `click.command`, for a command of ours."""

__all__ = ["Command", "Group", "command", "output_of", "report"]
