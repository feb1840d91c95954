"""Writes docs/cli.md and docs/settings.md from the commands; --check says whether they are current."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from echoic.cli import root
from echoic.cli.output import MEANINGS
from echoic.cli.phone import AUTH_TOKEN
from echoic.cli.server_process import AGENT_KEY, OPERATOR_KEY, SECRET

DOCS = Path(__file__).resolve().parent.parent / "docs"
WIDTH = 100

OPENING = """\
# The command line

Written by `scripts/cli_docs.py` from the commands' own help; change that, then run it.

Data goes to stdout, talk to stderr. On a terminal tables are aligned and cut to its width; into a pipe or a
file they are one line a row, with tabs between the cells and nothing cut. Line breaks and control characters
in a cell are written as `\\n` or `\\u001b`; `get` into a pipe prints a value exactly as it was kept.

An option is looked for on the line, before or after the command's name, then in its variable.
"""

EXITS = """\
## Exit codes

| code | meaning |
|--:|---|
"""

JSON = """\
## JSON

With `--json` a command prints one document, whatever happens:

```json
{"status": "ok", "command": "get", "duration_ms": 41.3, "scope": {"deployment": "default", "user": "me"},
 "count": 1, "data": {"id": "…", "text": "Ana", "key": "user_name", "visibility": "private"}}
{"status": "error", "command": "get", "duration_ms": 12.9, "scope": {"deployment": "default", "user": "me"},
 "error": {"type": "StoreUnavailable", "message": "…"}}
```

`status` is "ok" (exit codes 0 and 1), "partial" (3), "failed" (done, but not as it should be: 2) or "error".
An error's `type` is "UsageError", "Interrupted" or the name of an error of Echoic. `count` is how many things
`data` holds; 0 with "ok" means that nothing is known. `notes`, where there are any, say what limits the
answer. `query` adds `outcome` ("complete", "deadline", "unavailable") and `cut`, what was left out ("vector",
"unembedded", "date", "own", "global", "shared", "newest"). `serve` prints its document when the URL can be
used, and goes on.
"""

SERVE = f"""\
`{SECRET}` (at least 32 bytes) signs identities. Without it a secret is made once beside the store, in a file
only its owner may read. `{OPERATOR_KEY}` (likewise) opens the operator's routes.
`{AGENT_KEY}` (likewise; several separated by commas) lets a backend act for its own users, see
[http.md](http.md). On an address that other machines can reach, the server does not start with a secret, key
or webhook secret that is easy to guess: fewer than 8 different characters, repetitions, or runs such as "abc"
and "123". On loopback it warns.
"""


def commands(group: click.Group, parent: click.Context) -> Iterator[tuple[str, str]]:
    """The full name and the help of every command under `group`, in order."""
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        assert command is not None
        ctx = click.Context(command, parent=parent, info_name=name, terminal_width=WIDTH)
        yield ctx.command_path, ctx.get_help()
        if isinstance(command, click.Group):
            yield from commands(command, ctx)


def page() -> str:
    """The whole page."""
    top = click.Context(root, info_name="echoic", terminal_width=WIDTH, **root.context_settings)
    parts = [OPENING, f"```text\n{top.get_help()}\n```\n"]
    for path, text in commands(root, top):
        parts.append(f"## {path}\n\n```text\n{text}\n```\n")
        if path == "echoic serve":
            parts.append(SERVE)
    rows = [f"| {code} | {meaning} |" for code, meaning in sorted(MEANINGS.items())]
    return "\n".join([*parts, EXITS + "\n".join(rows) + "\n", JSON])


SETTINGS = f"""\
# Settings

Written by `scripts/cli_docs.py`. Every setting of the commands is an option on the line, else a variable.
From Python they are arguments of `echoic.open` and `ServerSettings`. Of the variables that begin with
`ECHOIC_` the library itself reads only `ECHOIC_KERNEL`: `off` ranks with numpy although the compiled kernel
is there ([ranking](ranking.md)).

| variable | option | of | meaning |
|---|---|---|---|
| `{SECRET}` | | `serve`, `phone serve`, `phone line` | Keys signatures and hashes; at least 32 bytes. |
| `{OPERATOR_KEY}` | | `serve`, `watch` | Opens the operator's routes; at least 32 bytes. |
| `{AGENT_KEY}` | | `serve` | Lets a backend act for its own users; several separated by commas. |
| `{AUTH_TOKEN}` | | `phone serve`, `phone simulate` | The auth token of the Twilio account. |
"""

OTHERS = """
Variables of others that Echoic reads: the providers' own keys and addresses, such as `OPENAI_API_KEY` and
`OPENAI_BASE_URL`; `HF_HOME`, `HF_HUB_CACHE`, `HF_ENDPOINT` and `HF_HUB_OFFLINE`, where the weights of the
local model are looked for; `XDG_CACHE_HOME`, where the converted model is kept; `NO_COLOR`; and those of the
OpenTelemetry SDK, if you installed one.
"""


def settings() -> str:
    """The page of the variables: those of every command first, then those of some."""
    found: dict[str, tuple[click.Option, list[str]]] = {}

    def look(command: click.Command, ctx: click.Context) -> None:
        for option in command.params:
            if isinstance(option, click.Option) and str(option.envvar or "").startswith("ECHOIC_"):
                found.setdefault(str(option.envvar), (option, []))[1].append(ctx.command_path)
        if isinstance(command, click.Group):
            for name in command.list_commands(ctx):
                below = command.get_command(ctx, name)
                assert below is not None
                look(below, click.Context(below, parent=ctx, info_name=name))

    look(root, click.Context(root, info_name="echoic"))
    rows = []
    for name, (option, of) in sorted(found.items(), key=lambda each: (each[1][1][0] != "echoic", each[0])):
        whose = "every command" if "echoic" in of else ", ".join(f"`{path[7:]}`" for path in of)
        told = (option.help or "").replace("|", "\\|")
        default = option.default if isinstance(option.default, str) and option.default else None
        told += f" Default: `{default}`." if default else ""
        rows.append(f"| `{name}` | `{option.opts[0]}` | {whose} | {told} |")
    return SETTINGS + "\n".join(rows) + "\n" + OTHERS


def main() -> int:
    """Write the pages, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the page is stale")
    check, code = parser.parse_args().check, 0
    for name, made in (("cli.md", page()), ("settings.md", settings())):
        kept = DOCS / name
        if not check:
            kept.write_text(made, encoding="utf-8")
        elif not kept.exists() or kept.read_text(encoding="utf-8") != made:
            print(f"{name} is not what the commands say; run scripts/cli_docs.py", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
