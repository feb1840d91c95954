"""Options of every command, given before or after its name, or in an ECHOIC_* variable.

Only this module and `server_process` read the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource

_META = "echoic.settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The values of the global options."""

    store: str = "sqlite:///echoic.db"
    user: str = "me"
    deployment: str = "default"
    embedder: str = "local"
    weights: Path | None = None
    """The directory of the local model; None searches for it."""
    global_writes: Literal["propose", "auto"] = "propose"
    global_kinds: str = ""
    fusion: str = "blend"
    shares: str = ""
    assurance: str = ""
    keep_for: str = ""
    keep_secrets: bool = False
    keep_instructions: bool = False
    third_parties: Literal["keep", "adults", "drop"] = "keep"
    audit: bool = False
    compliance: Path | None = None
    """The compliance folder; by default the one beside a local store."""
    json: bool = False
    quiet: bool = False
    debug: bool = False
    named: frozenset[str] = frozenset()
    """The settings that were given explicitly, rather than left at their default."""


_WORDS: dict[str, tuple[str, str]] = {
    "store": ("URL", "The store: sqlite:///FILE, files:///DIR, postgresql://…, mongodb://… or memory://."),
    "user": ("NAME", "The user whose memory to use."),
    "deployment": ("NAME", "The deployment. Users in one share its global memories; each user is separate."),
    "embedder": (
        "NAME",
        "local, local:int8, local:FOLDER, local:OWNER/MODEL, lexical, or PROVIDER:MODEL[?dimensions=N].",
    ),
    "weights": ("DIR", "The directory of the local embedder's weights, if they are not found."),
    "global_writes": ("MODE", "What happens to memories that are not about a person: propose, or auto."),
    "global_kinds": (
        "KIND,…",
        "The kinds --global-writes auto makes global, menu=3 if three users say so; default hours,location.",
    ),
    "fusion": (
        "NAME",
        "How channels are fused into one ranking: blend, rrf, or a .json file that `echoic tune` wrote.",
    ),
    "shares": (
        "READER=NAME,…",
        "Deployments whose global memories another can read, as acme=kb,more;shop=kb. Default: none.",
    ),
    "assurance": ("TABLE", "What callers of each level may be told, as attested=sensitive,device=open."),
    "keep_for": (
        "KIND=DAYS,…",
        "How long conversations and memories are kept, as conversations=90,acme:memories=30.",
    ),
    "keep_secrets": (
        "",
        "Store card numbers, passwords, PINs and codes word for word; by default they are masked.",
    ),
    "keep_instructions": (
        "",
        "Store memories that are instructions to the model, quoted; by default they are refused.",
    ),
    "third_parties": (
        "RULE",
        "What is stored about other people: keep, adults (nothing about children), or drop.",
    ),
    "compliance": (
        "DIR",
        "The folder listing a store's erasures, for backups. Default: beside a SQLite file or folder store.",
    ),
    "audit": ("", "Log every access in the compliance folder, without content (docs/audit.md)."),
    "json": ("", "Print one JSON document, also for an error."),
    "quiet": ("", "Print only errors on stderr."),
    "debug": ("", "Print the traceback of an error."),
}
"""By setting, the word for its value, empty for a flag, and what the option does."""
_TYPES: dict[str, Any] = {
    "weights": click.Path(path_type=Path),
    "compliance": click.Path(path_type=Path),
    "global_writes": click.Choice(["propose", "auto"]),
    "third_parties": click.Choice(["keep", "adults", "drop"]),
}


def variable(name: str) -> str:
    return f"ECHOIC_{name.upper()}"


def global_options(*, hidden: bool) -> list[click.Option]:
    defaults = Settings()
    return [
        click.Option(
            [f"--{name.replace('_', '-')}"],
            metavar=metavar or None,
            is_flag=not metavar,
            type=_TYPES.get(name),
            default=getattr(defaults, name),
            show_default=bool(metavar)
            and name not in {"weights", "shares", "global_kinds", "assurance", "keep_for", "compliance"},
            envvar=variable(name),
            show_envvar=True,
            help=text,
            hidden=hidden,
            expose_value=False,
            callback=partial(_note, name),
        )
        for name, (metavar, text) in _WORDS.items()
    ]


def _note(name: str, ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep the value with the highest precedence: the line, then the environment, then the default."""
    source = ctx.get_parameter_source(parameter.name or "")
    given: dict[str, tuple[Any, ParameterSource | None]] = ctx.meta.setdefault(_META, {})
    if source is ParameterSource.COMMANDLINE or name not in given:
        given[name] = value, source


def settings_of(ctx: click.Context) -> Settings:
    given: dict[str, tuple[Any, ParameterSource | None]] = ctx.meta.get(_META, {})
    values = {name: value for name, (value, _) in given.items()}
    defaults = {ParameterSource.DEFAULT, None}
    return Settings(
        **values, named=frozenset(n for n, (_, source) in given.items() if source not in defaults)
    )


def wants_json(words: Sequence[str]) -> bool:
    """Whether `words`, which are not a valid command, ask for JSON."""
    before_values = words[: words.index("--")] if "--" in words else words
    asked = os.environ.get(variable("json"), "").strip().lower() in {"1", "true", "t", "yes", "y", "on"}
    return asked or "--json" in before_values


def variable_option(name: str, **more: Any) -> Callable[[Any], Any]:
    """An option that can also be given in its ECHOIC_* variable."""
    envvar = variable(name.replace("-", "_"))
    return click.option(f"--{name}", envvar=envvar, show_envvar=True, **more)


model_option = variable_option(
    "model",
    metavar="PROVIDER:MODEL",
    help="A language model that answers, and extracts memories in addition to the rules.",
)
