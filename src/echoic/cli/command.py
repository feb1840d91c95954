"""Echoic's click commands: global options on each command, one line for an error, a meaningful exit code."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

import click

from echoic.cli.output import INTERRUPTED_KIND, Output, exit_code
from echoic.cli.settings import Settings, global_options, settings_of
from echoic.errors import EchoicError, InvalidInput


class Command(click.Command):
    """A command that takes the global options after its name too, and reports its own errors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["params"] = [*(kwargs.get("params") or []), *global_options(hidden=True)]
        super().__init__(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> int:
        return _guarded(ctx, super().invoke)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("Global options, such as --user and --json, are listed by `echoic --help`.")


class CommandGroup(click.Group):
    """Commands under one name, in the order they were added."""

    command_class = Command

    def __init__(self, *args: Any, hide_global: bool = True, **kwargs: Any) -> None:
        kwargs["params"] = [*(kwargs.get("params") or []), *global_options(hidden=hide_global)]
        # otherwise click prints the whole help as its error
        super().__init__(*args, **{"no_args_is_help": False, **kwargs})
        self._sections: list[tuple[str, list[str]]] = []

    def invoke(self, ctx: click.Context) -> int:
        return _guarded(ctx, super().invoke)

    def add_section(self, title: str, commands: Sequence[click.Command | str]) -> None:
        """Add `commands`, listed under `title` in the help.

        A command of another package is given by its name.
        """
        for each in commands:
            if not isinstance(each, str):
                self.add_command(each)
        self._sections.append(
            (title, [each if isinstance(each, str) else each.name or "" for each in commands])
        )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with this name, loaded from another package if it is not one of Echoic's own."""
        return super().get_command(ctx, cmd_name) or _installed_command([*_path(ctx), cmd_name])

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands in the order they were added, then those of other packages."""
        ours = [*self.commands] + [name for _, names in self._sections for name in names]
        before = "".join(f"{word}." for word in _path(ctx))
        installed = (name.removeprefix(before) for name in _providers() if name.startswith(before))
        return list(dict.fromkeys([*ours, *(name for name in installed if "." not in name)]))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self._sections:
            super().format_commands(ctx, formatter)
            return
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        known = {name for _, names in self._sections for name in names}
        others = [name for name in found if name not in known]
        width = max(map(len, found))
        for title, names in [*self._sections, ("Other packages", others)]:
            listed = [(name, each) for name in names if (each := found[name]) is not None]
            if not listed:
                continue
            with formatter.section(title):
                limit = formatter.width - 6 - width
                formatter.write_dl(
                    [(name.ljust(width), each.get_short_help_str(limit)) for name, each in listed]
                )


_PROVIDERS = {"bench": "echoic-bench", "tune": "echoic-bench", "phone.simulate": "echoic-loopback"}
"""The package to install for each command that is not part of Echoic, by the command's name."""


def _providers() -> dict[str, EntryPoint | None]:
    """Commands of other packages by name, such as `phone.simulate`; None if the package is not installed."""
    installed = {point.name: point for point in entry_points(group="echoic.commands")}
    return {**dict.fromkeys(_PROVIDERS), **installed}


def _installed_command(path: Sequence[str]) -> click.Command | None:
    """The command at `path` of another package. If it cannot be loaded, running it says what to install."""
    name = ".".join(path)
    providers = _providers()
    if name not in providers:
        return None
    point = providers[name]
    package = _PROVIDERS.get(name) or (point.dist.name if point and point.dist else name)
    why = f"needs the package {package}"
    if point is not None:
        try:
            return cast("click.Command", point.load())
        except ImportError as error:
            why = f"needs {error.name or 'a package'}, which is not installed"
        # an error in another package must not break `echoic --help`
        except Exception as error:  # noqa: BLE001
            why = f"cannot be loaded from {package} ({type(error).__name__})"

    def fail(**_given: Any) -> int:
        checkout = f" (in a checkout: pip install ./packages/{package})" if name in _PROVIDERS else ""
        raise InvalidInput(f"`echoic {' '.join(path)}` {why}: pip install {package}{checkout}")

    words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)
    taken = {"ignore_unknown_options": True}
    return Command(path[-1], callback=fail, params=[words], context_settings=taken, short_help=f"It {why}.")


def _path(ctx: click.Context) -> list[str]:
    """The words of a group's name after `echoic`."""
    return ctx.command_path.split()[1:]


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


_EXTRAS = {
    "asyncpg": "postgres",
    "cryptography": "signing",
    "fastapi": "server",
    "httptools": "server",
    "jwt": "server",
    "mcp": "mcp",
    "onnxruntime": "local",
    "pydantic_ai": "agents",
    "pymongo": "mongodb",
    "twilio": "phone",
    "uvicorn": "server",
    "websockets": "server",
}
"""The extra that installs a package, for import errors that no command reports itself."""


def report(output: Output, settings: Settings, error: BaseException) -> int:
    """Print `error` for a person or a program, and return the exit code."""
    if isinstance(error, ImportError) and (extra := _EXTRAS.get((error.name or "").partition(".")[0])):
        error = InvalidInput(
            f"this needs {error.name}, which is not installed: pip install 'echoic[{extra}]'"
        )
    kind = type(error).__name__
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        kind, message = INTERRUPTED_KIND, "interrupted; everything acknowledged is stored"
    elif isinstance(error, click.ClickException):  # types differ between releases of click
        kind, message = "UsageError", error.format_message()
    elif isinstance(error, EchoicError):
        message = str(error)
    else:  # the message may contain what a caller said, so only the type is printed
        message = f"unexpected {kind}; run the command again with --debug to see where"
    if settings.debug:
        traceback.print_exception(error, file=sys.stderr)
    output.fail(kind, message)
    return exit_code(error)


command = cast("Callable[..., Callable[[Callable[..., Any]], Command]]", partial(click.command, cls=Command))
