"""What every command may be told: on the line before or after its name, else by an ECHOIC_* variable.

The only place that reads the environment, except for the secret of `echoic serve`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from echoic.memory.quota import Quota

_META = "echoic.settings"
_SOURCES = "echoic.sources"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a command works with."""

    store: str = "sqlite:///echoic.db"
    user: str = "me"
    deployment: str = "default"
    embedder: str = "local"
    weights: Path | None = None
    """A directory with the local model; None finds it."""
    global_writes: Literal["propose", "auto"] = "propose"
    global_kinds: str = ""
    fusion: str = "blend"
    shares: str = ""
    keep_secrets: bool = False
    json: bool = False
    quiet: bool = False
    debug: bool = False
    named: frozenset[str] = frozenset()
    """The settings that were given, rather than left at their default."""


_WORDS: dict[str, tuple[str, str, str]] = {
    "store": (
        "--store",
        "URL",
        "Where memory is kept: sqlite:///FILE, files:///DIR, postgresql://…, mongodb://… or memory://.",
    ),
    "user": ("--user", "NAME", "Whose memory."),
    "deployment": ("--deployment", "NAME", "The agents that share what is global; users are apart in each."),
    "embedder": (
        "--embedder",
        "NAME",
        "local, local:int8, lexical, or PROVIDER:MODEL, with ?dimensions=N if need be.",
    ),
    "weights": (
        "--weights",
        "DIR",
        "Directory with the local embedder's weights, if not found.",
    ),
    "global_writes": ("--global-writes", "MODE", "What is about no person becomes global: propose, or auto."),
    "global_kinds": (
        "--global-kinds",
        "KIND,…",
        "What --global-writes auto lets become global; hours,location by default. Unknown ones are listed.",
    ),
    "fusion": ("--fusion", "NAME", "How channels become one ranking: blend, or rrf."),
    "shares": (
        "--shares",
        "READER=NAME,…",
        "Deployments whose global memories another reads too: acme=kb,more;shop=kb. None by default.",
    ),
    "keep_secrets": (
        "--keep-secrets",
        "",
        "Keep card numbers, passwords, PINs and codes word for word; by default a marker is kept instead.",
    ),
    "json": ("--json", "", "Print one JSON document, for errors too."),
    "quiet": ("--quiet", "", "Say nothing on stderr but errors."),
    "debug": ("--debug", "", "Show where an error came from."),
}
_TYPES: dict[str, Any] = {
    "weights": click.Path(path_type=Path),
    "global_writes": click.Choice(["propose", "auto"]),
}


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"ECHOIC_{name.upper()}"


def global_options(*, hidden: bool) -> list[click.Option]:
    """The options of `Settings`, as any command takes them."""
    defaults = Settings()
    return [
        click.Option(
            [flag],
            metavar=metavar or None,
            is_flag=not metavar,
            type=_TYPES.get(name),
            default=getattr(defaults, name),
            show_default=bool(metavar) and name not in {"weights", "shares", "global_kinds"},
            envvar=variable(name),
            show_envvar=True,
            help=text,
            hidden=hidden,
            expose_value=False,
            callback=partial(_note, name),
        )
        for name, (flag, metavar, text) in _WORDS.items()
    ]


def _note(name: str, ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep the most telling of what was given: on the line, else in the environment, else the default."""
    source = ctx.get_parameter_source(parameter.name or "")
    values: dict[str, Any] = ctx.meta.setdefault(_META, {})
    sources: dict[str, ParameterSource] = ctx.meta.setdefault(_SOURCES, {})
    if source is ParameterSource.COMMANDLINE or name not in values:
        values[name] = value
        sources[name] = source or ParameterSource.DEFAULT


def settings_of(ctx: click.Context) -> Settings:
    """The settings that hold for the command of `ctx`."""
    known = {field.name for field in fields(Settings)} - {"named"}
    values = {name: value for name, value in ctx.meta.get(_META, {}).items() if name in known}
    given = {
        name for name, source in ctx.meta.get(_SOURCES, {}).items() if source is not ParameterSource.DEFAULT
    }
    return Settings(**values, named=frozenset(given))


def wants_json(words: Sequence[str]) -> bool:
    """Whether JSON was asked for by `words` that could not be read as a command."""
    before_values = words[: words.index("--")] if "--" in words else words
    asked = os.environ.get(variable("json"), "").strip().lower() in {"1", "true", "t", "yes", "y", "on"}
    return asked or "--json" in before_values


proxies_option = click.option(
    "--trusted-proxies",
    metavar="ADDRESS,…",
    default="",
    envvar=variable("trusted_proxies"),
    show_envvar=True,
    callback=lambda _ctx, _option, value: tuple(filter(None, (one.strip() for one in value.split(",")))),
    help="Proxies, or networks of them, whose X-Forwarded-For says who asks: 10.0.0.0/8,::1.",
)
"""Of the commands that serve others."""


def quota_options(command: Any) -> Any:
    """The options of commands that serve others, of how much may be kept; 0: no limit."""
    for name, default, text in (
        ("max-deployment-mb", 4096, "Megabytes kept of everybody together; 0: no limit."),
        ("max-user-mb", 32, "Megabytes kept of one user; 0: no limit."),
        ("max-user-memories", 10_000, "Memories of one user, with earlier versions; 0: no limit."),
    ):
        command = click.option(
            f"--{name}", type=click.IntRange(0), default=default, show_default=True, metavar="N", help=text
        )(command)
    return command


def quota_of(max_user_memories: int, max_user_mb: int, max_deployment_mb: int) -> Quota:
    """The quota those options name."""
    from echoic.memory.quota import Quota

    return Quota(
        user_memories=max_user_memories or None,
        user_bytes=max_user_mb * 1_000_000 or None,
        deployment_bytes=max_deployment_mb * 1_000_000 or None,
    )


model_option = click.option(
    "--model",
    metavar="PROVIDER:MODEL",
    envvar=variable("model"),
    show_envvar=True,
    help="A language model that talks, and joins the rules in forming memories.",
)
"""Of the commands that talk."""
voice_option = click.option(
    "--voice",
    metavar="PROVIDER:MODEL",
    envvar=variable("voice"),
    show_envvar=True,
    help="A realtime model for live calls on the page, as openai:gpt-realtime.",
)
voice_transport_option = click.option(
    "--voice-transport",
    type=click.Choice(["websocket", "webrtc"]),
    default="websocket",
    show_default=True,
    envvar=variable("voice_transport"),
    show_envvar=True,
    help="Audio goes through this server, or straight to the provider (OpenAI).",
)
"""Of the command that serves live calls."""
phone_trust_option = click.option(
    "--phone-trust",
    type=click.Choice(["a", "any"]),
    default="a",
    show_default=True,
    envvar=variable("phone_trust"),
    show_envvar=True,
    help="Which numbers are believed: those a carrier vouches for in full (a), or any that is shown. Whoever "
    "calls from another is a stranger until they say a PIN or a code.",
)
"""Of the command that answers calls, and of the one whose page says what it means."""


__all__ = [
    "Settings",
    "global_options",
    "model_option",
    "phone_trust_option",
    "proxies_option",
    "quota_of",
    "quota_options",
    "settings_of",
    "variable",
    "voice_option",
    "voice_transport_option",
    "wants_json",
]
