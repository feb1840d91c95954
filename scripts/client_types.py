"""Writes clients/typescript/src/api.ts from what the server says of its /v1 routes; needs `npm ci` there.

With --check says whether it is current. Without --whole that needs no Node: a digest in the file's head tells
whether routes and models have changed, whatever became of their descriptions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import echoic
from echoic.server import ServerSettings, create_app

CLIENT = Path(__file__).resolve().parent.parent / "clients" / "typescript"
TYPES = CLIENT / "src" / "api.ts"
PROSE = frozenset({"description", "summary", "title", "examples"})


def schema() -> dict[str, Any]:
    """The OpenAPI description of the /v1 routes, with the models they use."""
    app = create_app(echoic.open("memory://", embedder="lexical"), ServerSettings(secret="x" * 32))
    whole = app.openapi()
    paths = {path: methods for path, methods in whole["paths"].items() if path.startswith("/v1/")}
    models, names = whole["components"]["schemas"], sorted(references(paths))
    used: dict[str, Any] = {}
    while names:
        name = names.pop()
        used[name] = models[name]
        names += [other for other in references(models[name]) if other not in used]
    return {
        "openapi": whole["openapi"],
        "info": {"title": "Echoic", "version": "1"},
        "paths": paths,
        "components": {"schemas": dict(sorted(used.items()))},
    }


def references(part: Any) -> set[str]:
    """The names of the models that `part` refers to."""
    return set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(part)))


def digest(described: dict[str, Any]) -> str:
    """Of everything but the prose."""
    return hashlib.sha256(json.dumps(without_prose(described), sort_keys=True).encode()).hexdigest()


def without_prose(part: Any, *, named: bool = False) -> Any:
    """`part` without its prose; `named`: its keys are names of fields, which may be called like prose."""
    if isinstance(part, list):
        return [without_prose(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        key: without_prose(value, named=key == "properties")
        for key, value in part.items()
        if named or key not in PROSE
    }


def lines(described: dict[str, Any]) -> Iterator[str]:
    """The file."""
    yield "// Written by scripts/client_types.py; change the server's routes, then run it."
    yield f"// {digest(described)}"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "openapi.json"
        source.write_text(json.dumps(described))
        generate = [
            "npx",
            "--no-install",
            "openapi-typescript",
            "--default-non-nullable",
            "false",
            str(source),
        ]
        written = subprocess.run(generate, cwd=CLIENT, check=True, capture_output=True, text=True)
    yield written.stdout.rstrip()


def main() -> int:
    """Write the file, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the file is stale")
    parser.add_argument("--whole", action="store_true", help="with --check: compare all of it; needs Node")
    asked = parser.parse_args()
    described = schema()
    if not asked.check:
        TYPES.write_text("\n".join(lines(described)) + "\n")
        return 0
    there = TYPES.read_text()
    made = "\n".join(lines(described)) + "\n" if asked.whole else there
    if digest(described) in there.partition("*/")[0] and made == there:
        return 0
    print(f"{TYPES.name} is not what the server says; run scripts/client_types.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
