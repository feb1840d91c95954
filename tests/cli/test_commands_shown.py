"""Every command in a block of the documents is typed as it stands: here, or where it is said."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import forked

ROOT = Path(__file__).parents[2]
OF_CURL = ("curl", "TOKEN=", "AUTH=", "MEMORY=", "cmp")
ELSEWHERE = {
    ("README.md", "make demo"): "scripts/newcomer",
    ("README.md", ".venv/bin/echoic --user ana"): "scripts/newcomer",
    ("docs/start.md", "echoic"): "scripts/newcomer",
    ("docs/backup.md", ""): "tests/cli/test_backup.py",
    ("docs/encryption.md", ""): "tests/cli/test_encryption.py",
    **{("docs/http.md", start): "tests/server/test_v1.py" for start in OF_CURL},
    ("docs/http.md", "ECHOIC_OPERATOR_KEY=… echoic watch"): "tests/server/test_watch.py",
    ("docs/integrations.md", "echoic serve --mcp"): "tests/integrations/test_mcp.py",
    ("docs/phone.md", "python examples/phone_dinner.py"): "tests/adapters/test_phone_cli.py",
    ("docs/phone.md", "echoic phone simulate"): "tests/adapters/test_phone_cli.py",
}
"""Page, start of the command -> the file that types it."""
BY_HAND = {
    "pip install": "packages come from the wheels of scripts/release, scripts/bare_root and `make setup`",
    "python -m venv peers": "as above; the peers' packages are 2 GB",
    "make": "it is this suite, or takes longer",
    "scripts/": "it takes longer, or root",
    "uvx": "it downloads a package; tests/server/test_fuzz.py sends what nobody expects",
    "podman": "there is no container engine in every machine; tests/test_deploy.py reads the files",
    "peers/bin/echoic bench": "minutes; packages/echoic-bench has tests",
    "echoic bench": "minutes; packages/echoic-bench has tests",
    "echoic --embedder": "a model from the hub, or the minutes of a benchmark; packages/echoic-bench has tests",
    "python -m benchmarks.whole_calls": "minutes; tests/memory/test_distil_parts.py runs it on one call",
    "python -m benchmarks.marked_calls": "minutes; tests/memory/test_distil_parts.py runs its measure on one call",
    "python tests/memory/learning_figures.py": "a minute; tests/memory/test_others_sentences.py asserts what it prints",
    "ECHOIC_LIVE_OPENAI_KEY=…": "it takes a key",
}
"""Start of the command -> why no test types it."""
BLOCK = re.compile(r"^ *```(sh|console)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
MADE = {
    "/etc/echoic/": "./",
    "/var/lib/echoic/": "",
    "…": "what-is-left-out-here-is-32-letters-or-more",
}
"""What is made for the command before it is typed, in a folder of the test's own."""


def commands(page: Path) -> list[str]:
    """The commands of a page's blocks, in order, without comments."""
    found = []
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        lines = re.sub(r"\\\n\s*", " ", block).splitlines()
        if kind == "console":
            lines = [line.strip().removeprefix("$ ") for line in lines if line.strip().startswith("$ ")]
        elif page.name == "http.md":  # bodies that go over several lines; all of them are curl's
            lines = [line for line in lines if line.startswith(OF_CURL)]
        found += [re.split(r"\s{2,}# ", line.strip())[0].rstrip() for line in lines if line.strip()]
    return found


def typed_elsewhere(where: str, command: str) -> str | None:
    named = (file for (page, start), file in ELSEWHERE.items() if page == where and command.startswith(start))
    return next(named, None)


def left_to_a_person(command: str) -> bool:
    return command.startswith(tuple(BY_HAND))


PAGES = {
    str(page.relative_to(ROOT)): commands(page)
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/*/README.md")])
}
HERE = {
    where: mine
    for where, shown in PAGES.items()
    if (mine := [each for each in shown if not (typed_elsewhere(where, each) or left_to_a_person(each))])
}


def test_what_is_said_to_be_typed_elsewhere_is_read_there_and_no_excuse_is_left_over():
    assert sum(map(len, PAGES.values())) > 80
    for (page, start), file in ELSEWHERE.items():
        assert any(command.startswith(start) for command in PAGES[page]), (page, start)
        words = (ROOT / file).read_text(encoding="utf-8")
        assert Path(page).name in words or start.removeprefix("ECHOIC_OPERATOR_KEY=… ").split()[-1] in words
    everything = [command for shown in PAGES.values() for command in shown]
    for start in BY_HAND:
        assert any(command.startswith(start) for command in everything), start


class Shell:
    """Somebody at a prompt, in a folder of their own."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.folder = folder
        self.variables = {**variables, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none"}

    def types(self, command: str) -> None:
        for shown, made in MADE.items():
            command = command.replace(shown, made)
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            self.variables[name] = self._sh(f'printf %s "{value}"')
        elif shlex.split(command)[0] != "echoic":
            self._sh(command)
        elif re.search(r"\bserve\b", command):
            self._serves(shlex.split(command))
        else:
            done = self._python(shlex.split(command), forked.run, check=False)
            assert done.returncode == 0, (command, done.stderr)

    def _sh(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.variables, capture_output=True, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout.decode()

    def _python(self, words, begin, **options):
        """`echoic …`, on a free port if it serves."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return begin(
            [sys.executable, "-m", "echoic.cli", *words[1:]],
            cwd=self.folder,
            env=self.variables,
            **pipes,
            **options,
        )

    def _serves(self, words):
        serving = self._python([*words, "--port", "0"], forked.Popen)
        try:
            printed = serving.stdout.readline()
            serving.send_signal(signal.SIGINT)
            told = serving.communicate(timeout=60)
            assert printed.startswith("http"), (words, told)
            assert serving.returncode == 0, (words, told)
        finally:
            serving.kill()
            serving.communicate()


@pytest.mark.parametrize("page", HERE)
def test_the_commands_of_a_page_do_what_they_are_shown_for(page, tmp_path, environment):
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [PUBLIC_KEY]}))
    memories = [{"id": "1", "memory": "Allergic to peanuts", "user_id": "ana"}]
    (tmp_path / "conversations.json").write_text(json.dumps({"results": memories}))
    path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    shell = Shell(tmp_path, {**environment, **path})
    for command in HERE[page]:
        shell.types(command)


PUBLIC_KEY = {
    "kty": "OKP",
    "crv": "Ed25519",
    "kid": "1",
    "alg": "EdDSA",
    "use": "sig",
    "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
}
"""The public key of the first test vector of RFC 8032, 7.1."""
