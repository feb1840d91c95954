"""The TypeScript client: its types, its own tests and its README against a real `echoic serve`.

Needs Node, so it runs in `make integrations ONLY=typescript` alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
KEY = "the backend of these tests and its own users"

pytestmark = pytest.mark.skipif(
    ".venv-integrations" not in sys.prefix, reason="runs in make integrations ONLY=typescript"
)


def run(*command, cwd=CLIENT, **environment):
    ran = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, f"{' '.join(map(str, command))}\n{ran.stdout[-6000:]}\n{ran.stderr[-3000:]}"
    return ran.stdout


@pytest.fixture(scope="module", autouse=True)
def packages():
    """The tools, as package-lock.json names them."""
    made, asked = CLIENT / "node_modules" / ".package-lock.json", CLIENT / "package-lock.json"
    if not made.exists() or made.stat().st_mtime < asked.stat().st_mtime:
        run("npm", "ci", "--no-audit", "--no-fund")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server, as it is started by hand."""
    store = tmp_path_factory.mktemp("store") / "echoic.db"
    command = [sys.executable, "-m", "echoic.cli", "--store", f"sqlite:///{store}", "serve", "--port", "0"]
    with subprocess.Popen(
        command, env={**os.environ, "ECHOIC_AGENT_KEY": KEY}, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def test_the_types_are_what_the_server_says():
    run(sys.executable, ROOT / "scripts" / "client_types.py", "--check", "--whole")


def test_it_is_type_checked_without_any_types_of_node():
    run("npm", "run", "check")


def test_it_does_what_it_says_against_a_real_server(url):
    run("npx", "--no-install", "tsc", "--project", "test/tsconfig.json")
    said = run("npm", "test", ECHOIC_URL=url, ECHOIC_AGENT_KEY=KEY)
    counted = {name: int(count) for name, count in re.findall(r"^# (\w+) (\d+)$", said, re.MULTILINE)}
    assert counted["pass"] == counted["tests"] >= 30, said


def test_the_readmes_program_runs_as_it_stands(url, tmp_path):
    run("npm", "run", "build")
    program = re.search(r"```ts\n(.*?)```", (CLIENT / "README.md").read_text(), re.DOTALL)[1]
    # as it stands, but for the place of the server, and for time to load the model on a busy machine
    patient = program.replace("deadlineMs: 150", "deadlineMs: 60_000")
    assert patient != program
    told = patient.replace("http://127.0.0.1:8300", url)
    told += "\nconsole.log(JSON.stringify({ text, outcome }));\n"
    folder = CLIENT / "dist-test" / "readme"  # in the package, which finds itself by its name
    with contextlib.ExitStack() as made:
        made.callback(shutil.rmtree, folder)
        folder.mkdir(parents=True)
        (folder / "program.ts").write_text(told)
        (folder / "tsconfig.json").write_text(
            json.dumps(
                {
                    "extends": "../../tsconfig.json",
                    "compilerOptions": {"rootDir": ".", "outDir": ".", "types": ["node"]},
                    "files": ["program.ts"],
                    "include": [],
                }
            )
        )
        run("npx", "--no-install", "tsc", "--project", str(folder))
        said = run("node", str(folder / "program.js"), ECHOIC_AGENT_KEY=KEY)
    assert json.loads(said.splitlines()[-1]) == {
        "text": "Nothing about this is in memory.",
        "outcome": "complete",
    }


def test_it_uses_nothing_but_what_every_runtime_has():
    run("npm", "run", "build")
    text = "".join(path.read_text() for path in (CLIENT / "dist").glob("*.js"))
    assert not re.search(r"\bfrom ['\"](?!\./)|\brequire\(|\bprocess\.|\bBuffer\b|\bwindow\.|\bDeno\.", text)
    package = json.loads((CLIENT / "package.json").read_text())
    assert "dependencies" not in package
    assert "peerDependencies" not in package
