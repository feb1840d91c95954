"""Writes docs/cli.md from the commands themselves; with --check only says whether it is current."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from echoic.cli.hosting import AGENT_KEY, OPERATOR_KEY, SECRET
from echoic.cli.output import MEANINGS
from echoic.cli.root import root

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
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


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the page is stale")
    made = page()
    if not parser.parse_args().check:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == made:
        return 0
    print(f"{PAGE.name} is not what the commands say; run scripts/cli_docs.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
