"""Exit codes, the JSON document and the one line of an error, whatever the command."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import apsw
import pytest

import forked
from echoic.cli import asyncio_runner
from echoic.cli.output import MEANINGS, CommandResult


def test_every_exit_code_is_documented_in_the_page(echoic):
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for code, meaning in MEANINGS.items():
        assert f"| {code} | {meaning} |" in page


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["get"], 64),
        (["nonsense"], 64),
        (["get", "a", "b"], 64),
        (["get", "a", "--nonsense"], 64),
        (["set", "a", "b", "--category", "zoology"], 64),
        (["get", "a", "--store", "nonsense://x"], 64),
        (["get", "a", "--embedder", "nonsense"], 64),
        (["get", "a", "--user", ""], 64),
        (["forget"], 64),
        (["forget", "--all", "--key", "a"], 64),
        (["import", "missing.json"], 64),
        (["proposals", "approve", "missing"], 64),
        (["get", "a"], 1),
        (["list"], 1),
        (["set", "a", "b"], 0),
        (["--help"], 0),
        (["get", "--help"], 0),
        (["--version"], 0),
        ([], 0),
    ],
)
def test_a_command_ends_with_what_it_means(echoic, words, code):
    ran = echoic(*words)
    assert ran.code == code, ran.err
    assert "Traceback" not in ran.err


def test_an_error_is_one_line_that_names_the_way_out(echoic, tmp_path):
    ran = echoic("get", "a", "--store", f"sqlite:///{tmp_path}/no/such/folder/echoic.db")
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith("echoic: ")
    assert "Does its folder exist" in line


@pytest.mark.parametrize("words", [["calls"], ["phone"], ["bench"], ["calls", "--quiet"]])
def test_a_group_without_a_command_is_told_so_in_a_line(echoic, words):
    ran = echoic(*words)
    assert (ran.code, ran.out) == (64, "")
    said, way_out = ran.err.splitlines()
    assert said == "echoic: Missing command."
    assert way_out == f"See `echoic {words[0]} --help`."


def test_debug_shows_where_an_error_came_from(echoic, tmp_path):
    words = ("get", "a", "--store", f"sqlite:///{tmp_path}/no/such/folder/echoic.db")
    assert "Traceback" in echoic(*words, "--debug").err
    assert "Traceback" in echoic(*words, ECHOIC_DEBUG="1").err
    assert "Traceback" not in echoic(*words, ECHOIC_DEBUG="0").err


def test_json_is_one_document_with_the_same_head_for_every_command(echoic):
    echoic("set", "a", "b", "--user", "ana")
    for words in (
        ["get", "a"],
        ["list"],
        ["history", "a"],
        ["query", "b"],
        ["users"],
        ["export"],
        ["distil"],
    ):
        document = echoic(*words, "--json", "--user", "ana").json
        assert list(document)[:5] == ["status", "command", "duration_ms", "scope", "count"]
        assert document["command"] == words[0]
        assert document["scope"] == {"deployment": "default", "user": "ana"}
        assert document["duration_ms"] > 0
        assert "data" in document


def test_json_holds_every_field_of_a_memory(echoic):
    data = echoic("set", "city", "Tel Aviv", "--context", "in winter", "--json").json["data"]
    assert (data["key"], data["text"], data["context"], data["visibility"]) == (
        "city",
        "Tel Aviv",
        "in winter",
        "private",
    )
    assert data["valid_from"].endswith("+00:00")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["get"], "UsageError"),
        (["nonsense"], "UsageError"),
        (["get", "a", "--store", "nonsense://x"], "InvalidInput"),
        (["get", "a", "--store", "sqlite:////no/such/folder/echoic.db"], "StoreUnavailable"),
    ],
)
def test_errors_are_json_too(echoic, words, kind):
    ran = echoic(*words, "--json")
    assert ran.json["status"] == "error"
    assert ran.json["error"]["message"]
    assert ran.json["error"]["type"] == kind
    assert ran.code != 0
    assert echoic(*words, ECHOIC_JSON="1").json["error"] == ran.json["error"]


def test_a_corrupt_store_could_not_be_looked_into(echoic, tmp_path):
    (tmp_path / "echoic.db").write_bytes(b"not a database at all" * 100)
    ran = echoic("get", "a")
    assert ran.code == 2
    assert "left untouched" in ran.err


def test_a_store_of_a_newer_version_is_left_untouched(echoic, tmp_path):
    echoic("set", "a", "b")
    connection = apsw.Connection(str(tmp_path / "echoic.db"))
    connection.execute("pragma user_version = 999")
    connection.close()
    ran = echoic("get", "a")
    assert ran.code == 2
    assert "upgrade Echoic" in ran.err


def test_a_reader_that_stops_reading_is_no_error(environment, echoic, tmp_path):
    echoic("set", "long", "x" * 30_000)
    command = f"{sys.executable} -m echoic.cli history long; echo $? >&2"
    for key in range(2):
        echoic("set", "long", f"{key}" * 30_000)
    shell = ["bash", "-c", f"({command}) | head -c 1"]
    done = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, timeout=60, check=False)
    assert b"Traceback" not in done.stderr
    assert done.stderr.split()[-1] in {b"141", b"0"}


def test_an_interrupted_command_says_so(environment, tmp_path):
    chat = forked.Popen(
        [sys.executable, "-m", "echoic.cli", "chat", "--json"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.set_blocking(chat.stdout.fileno(), True)
    while not (tmp_path / "echoic.db-lock").exists():
        assert chat.poll() is None
    chat.stdin.write(b"hello\n")
    chat.stdin.flush()
    chat.send_signal(signal.SIGINT)
    out, err = chat.communicate(timeout=60)
    assert chat.returncode == 130, err
    assert b"Traceback" not in err
    assert b"interrupted" in out


def test_help_is_shown_without_loading_what_a_command_needs(environment):
    program = (
        "import sys, echoic.cli; echoic.cli.main(['--help']);"
        "heavy = {'numpy', 'apsw', 'fastapi', 'uvicorn', 'onnxruntime'};"
        "sys.exit(','.join(heavy & sys.modules.keys()) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_value_is_read_without_loading_a_model(environment, echoic, tmp_path):
    echoic("set", "a", "b", ECHOIC_EMBEDDER="local")
    # it awaits the model, however long that is converted: what is left without a vector, the next process embeds
    assert echoic("reindex", ECHOIC_EMBEDDER="local").code == 0
    program = (
        "import sys, echoic.cli; code = echoic.cli.main(['get', 'a']);"
        "sys.exit(','.join({'onnxruntime', 'tokenizers'} & sys.modules.keys()) or code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "ECHOIC_EMBEDDER": "local"},
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"b\n"), done.stderr


def test_a_port_that_is_none_is_bad_input_and_no_password_is_repeated(echoic):
    refused = echoic("--store", "postgresql://ana:hunter2@127.0.0.1:99999/d", "get", "home")
    assert (refused.code, refused.out) == (64, "")
    assert "cannot be read" in refused.err
    assert "hunter2" not in refused.err


def test_warnings_are_printed_by_commands_that_run_on_and_by_no_later_one(monkeypatch, capsys):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's
    logger = logging.getLogger("echoic")
    before = [*logger.handlers]

    async def work(*, runs_on):
        if runs_on:
            asyncio_runner.log_warnings()
        logger.warning("a line of %s", runs_on)
        return CommandResult(data=None)

    for runs_on in (True, False):
        asyncio_runner._in_loop(SimpleNamespace(debug=False), work(runs_on=runs_on))
    assert capsys.readouterr().err == "WARNING echoic: a line of True\n"
    assert logger.handlers == before
