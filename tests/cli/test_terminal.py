"""What a person at a terminal sees: run behind a pseudo-terminal."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time

import pytest

import forked
from echoic.cli.output import aligned

pty = pytest.importorskip("pty", reason="no pseudo-terminals on this system")


@pytest.fixture
def terminal(tmp_path, environment):
    """Runs `echoic` with stdin, stdout and stderr on one terminal; everything shown on it."""

    def run(*words, typed=""):
        outer, inner = pty.openpty()
        process = forked.Popen(
            [sys.executable, "-m", "echoic.cli", *words],
            cwd=tmp_path,
            env={**environment, "COLUMNS": "60", "TERM": "xterm"},
            stdin=inner,
            stdout=inner,
            stderr=inner,
        )
        os.close(inner)
        os.write(outer, typed.encode())
        shown = b""
        with contextlib.suppress(OSError):  # how Linux says that the other end is closed
            while chunk := os.read(outer, 65_536):
                shown += chunk
        os.close(outer)
        return process.wait(timeout=60), shown.decode(errors="replace").replace("\r\n", "\n")

    return run


def test_forget_asks_a_person_first(terminal, echoic):
    echoic("set", "pet", "a goat")
    code, shown = terminal("forget", "--all", typed="n\n")
    assert "Destroy everything of user 'me'? [y/N]" in shown
    assert code == 130
    assert echoic("get", "pet").out == "a goat\n"
    code, shown = terminal("forget", "--all", typed="y\n")
    assert code == 0
    assert "verified\tyes" in shown.expandtabs(1).replace("verified ", "verified\t")
    assert echoic("get", "pet").code == 1


def test_yes_answers_before_it_is_asked(terminal, echoic):
    echoic("set", "pet", "a goat")
    code, shown = terminal("forget", "--all", "--yes")
    assert code == 0
    assert "[y/N]" not in shown


def test_tables_are_aligned_and_fit_the_terminal(terminal, echoic):
    echoic("set", "pet", "a very long story about a goat " * 5)
    echoic("set", "city", "東京都")
    _, shown = terminal("list")
    lines = shown.splitlines()
    assert lines[0].split() == ["KEY", "TEXT", "CATEGORY", "SINCE", "VISIBILITY"]
    assert all(len(line) <= 60 for line in lines)
    assert "…" in lines[1]
    assert "東京都" in lines[2]


def test_a_long_memory_is_cut_at_once():
    said = "a very long story about a goat " * 1000
    started = time.process_time()
    lines = aligned(["KEY", "TEXT"], [["pet", said], ["city", "東京都" * 1000]], 60)
    assert time.process_time() - started < 3  # a second is far more than it takes, and far less than it took
    assert [len(line) for line in lines[1:]] == [60, 33]
    assert all(line.endswith("…") for line in lines[1:])


def test_what_was_said_cannot_drive_the_terminal(terminal, echoic):
    said = "\x1b[2J\x1b]0;owned\x07\x9b2J\u202eharmless"
    echoic("set", "note", said)
    for words in (["get", "note"], ["list"], ["export"], ["get", "note", "--json"]):
        _, shown = terminal(*words)
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)
        assert "\\u001b[2J" in shown
    assert echoic("get", "note").out == f"{said}\n"
    assert echoic("get", "note", "--json").json["data"]["text"] == said


def test_a_chat_prompts_and_dims_what_happened_behind_the_answer(terminal):
    code, shown = terminal("chat", typed="I live in Haifa.\n/quit\n")
    assert code == 0
    assert "> " in shown
    assert "\x1b[2m  stored: " in shown


def test_an_import_shows_how_far_it_is(terminal, tmp_path):
    said = [{"speaker": "agent", "text": f"Tulip {n}.", "conversation": f"c{n}"} for n in range(40)]
    (tmp_path / "calls.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said))
    code, shown = terminal("import", "calls.jsonl")
    assert code == 0, shown
    for what in ("storing", "learning"):
        assert re.search(rf"{what}.*40/40", shown), repr(shown)
    assert "embedding" in shown
