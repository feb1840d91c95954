"""Every command in the environment that `make setup` makes: what is not pinned there cannot be imported."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import click
import pytest

from echoic.cli import root
from echoic.cli.output import UNEXPECTED

ROOT = Path(__file__).parents[2]

PROGRAM = r"""
import importlib
import sys
from importlib.abc import MetaPathFinder
from importlib.metadata import packages_distributions

pinned = set(sys.argv.pop(1).split(","))
normal = lambda name: name.lower().replace("_", "-").replace(".", "-")
missing = {
    package
    for package, owners in packages_distributions().items()
    if not pinned & {normal(owner) for owner in owners}
}


class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
assert "playwright" in missing and "twilio" in missing and "click" not in missing
import atexit, gc, json, os, threading, traceback
from echoic.cli import main

if sys.argv[1:] != ["each"]:
    sys.exit(main())
# imported once for all, in the same environment; what fails here fails again in each
for name in ("echoic.memory.service", "echoic.server", "echoic.stores.sqlite", "echoic_bench", "echoic.models"):
    try:
        importlib.import_module(name)
    except ImportError:
        pass
for number, line in enumerate(sys.stdin):
    words, typed = json.loads(line)
    with open(f"{number}.in", "w") as file:
        file.write(typed)
    gc.freeze()
    child = os.fork()
    if not child:
        for name, flags, target in (("in", os.O_RDONLY, 0), ("out", os.O_CREAT | os.O_WRONLY, 1), ("err", os.O_CREAT | os.O_WRONLY, 2)):
            os.dup2(os.open(f"{number}.{name}", flags), target)
        sys.stdin, sys.argv = open(0, closefd=False), ["echoic", *words]
        code = 1
        try:
            code = main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        except BaseException:
            traceback.print_exc()
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)  # the modules stay: to take them apart copies every page, and takes a third of a second
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([code, open(f"{number}.err").read()]), flush=True)
"""
"""Runs one command, or each of those given as lines of JSON, each in a process of its own. An import of what the
environment lacks fails in it as it would there."""

COMMANDS = {
    "set": ["home", "Oslo"],
    "get": ["home"],
    "history": ["home"],
    "remember": ["Likes tea"],
    "query": ["tea"],
    "list": [],
    "delete": ["home"],
    "chat": [],
    "phone serve": ["--model", "openai:gpt-5", "--port", "0"],
    "phone simulate": ["--url", "http://127.0.0.1:9", "{empty}"],
    "calls list": [],
    "calls show": ["c1"],
    "why": ["t1"],
    "watch": [],
    "export": ["-"],
    "import": ["{turns}"],
    "copy": ["sqlite:///{folder}/echoic.db", "files:///{folder}/copy"],
    "doctor": [],
    "users": [],
    "global list": [],
    "global set": ["opening_hours", "The store is open from 9 to 17."],
    "global withdraw": ["m1"],
    "proposals list": [],
    "proposals approve": ["p1"],
    "proposals reject": ["p1"],
    "proposals decisions": [],
    "lessons list": ["films"],
    "lessons approve": ["films", "l1"],
    "lessons reject": ["films", "l1"],
    "lessons withdraw": ["films", "l1"],
    "phone line": ["+15550100001"],
    "hold": ["--release"],
    "consent": [],
    "backup": ["{folder}/echoic.backup"],
    "restore": ["{folder}/echoic.backup"],
    "keys create": ["--role", "auditor"],
    "keys list": [],
    "keys revoke": ["k1"],
    "audit list": [],
    "audit verify": [],
    "audit key": [],
    "audit export": ["{folder}/audit.jsonl"],
    "audit prune": ["--before", "2020-01-01"],
    "distil": [],
    "reindex": [],
    "bench recall": ["{talks}", "--plots", "{folder}/drawn"],
    "bench keyvalue": ["--people", "2", "--turns", "4", "--fusions", "blend"],
    "bench noise": ["{talks}"],
    "bench latency": ["--sizes", "5", "--callers", "1", "--questions", "2", "--imported", "2"],
    "bench peers": ["{talks}"],
    "bench silence": ["{talks}"],
    "bench corpus": ["--callers", "c54", "--versions", "clean", "--systems", "bm25"],
    "tune": ["{talks}", "--out", "{folder}/weights.json"],
    "mcp": [],
    "tools": [],
    "forget": ["--all", "--yes"],
}
SERVERS = ("serve", "bench sidecar")
"""They run until they are ended."""


@pytest.fixture
def program(environment):
    pins = (ROOT / "requirements" / "run.txt").read_text()
    pinned = re.findall(r"(?m)^([A-Za-z0-9._-]+)==", pins)
    variables = {**environment, "ECHOIC_TWILIO_AUTH_TOKEN": "t" * 32, "OPENAI_API_KEY": "none"}
    names = ",".join(["echoic", *(re.sub(r"[-_.]+", "-", name.lower()) for name in pinned)])
    return [sys.executable, "-c", PROGRAM, names], variables


@pytest.fixture
def inputs(tmp_path):
    turn = {"speaker": "user", "text": "I moved to Leeds.", "id": "t1", "conversation": "c1"}
    asked = {"user": "ana", "text": "Who moved to Leeds?", "evidence": ["t1"]}
    (tmp_path / "turns.jsonl").write_text(json.dumps(turn) + "\n")
    (tmp_path / "talks.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in ({"user": "ana", **turn}, asked))
    )
    (tmp_path / "empty").write_text("")
    return {
        "folder": str(tmp_path),
        "turns": str(tmp_path / "turns.jsonl"),
        "talks": str(tmp_path / "talks.jsonl"),
        "empty": str(tmp_path / "empty"),
    }


def leaves(ctx):
    for name in ctx.command.list_commands(ctx):
        command = ctx.command.get_command(ctx, name)
        below = click.Context(command, parent=ctx, info_name=name)
        if isinstance(command, click.Group):
            yield from leaves(below)
        else:
            yield below.command_path.removeprefix("echoic ")


def test_no_command_is_left_out():
    assert sorted(leaves(click.Context(root, info_name="echoic"))) == sorted([*COMMANDS, *SERVERS])


def test_every_command_runs_or_names_the_extra_it_needs(program, inputs, tmp_path):
    words, variables = program
    asked = [
        [
            [*name.split(), *(argument.format(**inputs) for argument in arguments)],
            "hello\n" * (name == "chat"),
        ]
        for name, arguments in COMMANDS.items()
    ]
    ran = subprocess.run(
        [*words, "each"],
        cwd=tmp_path,
        env=variables,
        input="".join(json.dumps(each) + "\n" for each in asked),
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(COMMANDS)
    wrong = {}
    for name, (code, told) in zip(COMMANDS, answers, strict=True):
        lacks = "not installed" in told or "needs packages" in told
        if (
            code == UNEXPECTED
            or "ImportError" in told
            or "ModuleNotFound" in told
            or (lacks and "pip install" not in told)
        ):
            wrong[name] = (code, told)
    assert wrong == {}


@pytest.mark.parametrize("name", SERVERS)
def test_what_serves_there_answers(program, tmp_path, name):
    words, variables = program
    server = subprocess.Popen(
        [*words, *name.split(), "--port", "0"],
        cwd=tmp_path,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = server.stdout.readline().strip()
        path = "healthz" if name == "serve" else "health"
        with urllib.request.urlopen(f"{url.rstrip('/')}/{path}", timeout=60) as answer:
            assert answer.status == 200
        server.send_signal(signal.SIGINT)
        assert "ImportError" not in server.communicate(timeout=60)[1]
    finally:
        server.kill()
        server.communicate()
