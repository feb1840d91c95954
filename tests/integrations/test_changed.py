"""Which integrations an ordinary run checks: those of the last commit, and aloud why not."""

from __future__ import annotations

import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "integrations"


@pytest.fixture
def script(tmp_path, monkeypatch):
    """The script, about a repository of its own."""
    loader = SourceFileLoader("integrations_script", str(SCRIPT))
    spec = spec_from_loader("integrations_script", loader)
    assert spec is not None
    made = module_from_spec(spec)
    loader.exec_module(made)
    monkeypatch.setattr(made, "ROOT", tmp_path)
    git(tmp_path, "init", "--quiet")
    return made


def git(place, *words):
    who = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(place), *who, *words], check=True, capture_output=True)


def commit(place, *files):
    for name in files:
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.read_text() if path.exists() else ''}x")
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message", "x")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["src/echoic/integrations/adk.py"], ["adk"]),
        (["tests/integrations/test_openai_agents.py", "README.md"], ["openai-agents"]),
        (["src/echoic/integrations/call_memory.py"], ["livekit", "pipecat"]),
        (["src/echoic/integrations/hosted_agents.py"], ["hosted-agents"]),
        (["clients/typescript/src/index.ts"], ["typescript"]),
        (["examples/restaurant_pipecat.py"], ["pipecat"]),
        (["README.md"], []),
    ],
)
def test_what_the_last_commit_changed_is_checked_and_nothing_else(script, tmp_path, files, names):
    commit(tmp_path, "README.md")
    commit(tmp_path, *files)
    assert script.changed() == names


def test_a_change_of_what_all_have_in_common_checks_all(script, tmp_path):
    commit(tmp_path, "README.md")
    commit(tmp_path, "scripts/integrations")
    assert script.changed() == list(script.FRAMEWORKS)


def test_what_cannot_be_told_or_reached_is_said_aloud_and_fails_nothing(
    script, tmp_path, capsys, monkeypatch
):
    commit(tmp_path, "src/echoic/integrations/adk.py")
    assert script.check_changed(1) == 0
    assert "no commit before this one" in capsys.readouterr().out
    commit(tmp_path, "src/echoic/integrations/adk.py")
    monkeypatch.setattr(script, "reachable", lambda: False)
    assert script.check_changed(1) == 0
    assert "adk not checked, for the package index cannot be reached" in capsys.readouterr().out


def test_checks_that_fail_are_failures_and_none_begins_after_its_time(script, tmp_path, capsys, monkeypatch):
    commit(tmp_path, "README.md")
    commit(tmp_path, "src/echoic/integrations/adk.py", "src/echoic/integrations/mcp.py")
    begun = []

    def made(place, _name):
        begun.append(place.name)
        return True

    monkeypatch.setattr(script, "reachable", lambda: True)
    monkeypatch.setattr(script, "made", made)
    monkeypatch.setattr(script, "passed", lambda place, _name: place.name != "mcp-newest")
    assert script.check_changed(1) == 1
    assert list(dict.fromkeys(begun)) == ["mcp-newest", "adk-newest", "mcp-floor", "adk-floor"]
    begun.clear()
    assert script.check_changed(-1) == 0
    assert begun == []
    assert "minutes are over" in capsys.readouterr().out
