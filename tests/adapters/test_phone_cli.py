"""The commands: a server that answers calls, and a caller at the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AGENT = "examples.phone_dinner:agent"
TOKEN = {"ECHOIC_TWILIO_AUTH_TOKEN": "of the account of this test"}


@pytest.fixture
def environment(tmp_path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ECHOIC_")}
    return {**clean, "ECHOIC_EMBEDDER": "lexical", "ECHOIC_STORE": f"sqlite:///{tmp_path}/echoic.db"}


def echoic(environment, *words, **more):
    return subprocess.run(
        [sys.executable, "-m", "echoic.cli", *words],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **more,
    )


@pytest.fixture
def server(environment):
    serving = subprocess.Popen(
        [sys.executable, "-m", "echoic.cli", "phone", "serve", "--port", "0", "--agent", AGENT],
        env={**environment, **TOKEN},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with serving:
        yield serving.stdout.readline().strip().rstrip("/")
        serving.terminate()
        assert serving.wait(20) == 0


def test_a_script_is_called_through_and_what_was_stored_is_recalled(server, environment, tmp_path):
    script = tmp_path / "call.txt"
    script.write_text("# plans\nPlan a dinner for six.\nPlease remember that.\n")
    first = echoic({**environment, **TOKEN}, "phone", "simulate", str(script), "--url", server)
    assert first.returncode == 0, first.stderr
    assert "your dinner menu" in first.stdout
    second = echoic(
        {**environment, **TOKEN},
        "phone",
        "simulate",
        "--url",
        server,
        "--json",
        input="/cut mushroom soup\nWhat was in my diner menue\n/hangup\n",
    )
    told = json.loads(second.stdout)["data"][0]
    assert told["heard"][-1].endswith("You planned mushroom soup")
    assert told["failed"] is None
    many = echoic(
        {**environment, **TOKEN}, "phone", "simulate", str(script), "--url", server, "--calls", "5", "--json"
    )
    assert [one["failed"] for one in json.loads(many.stdout)["data"]] == [None] * 5


def test_a_caller_with_another_token_is_not_believed(server, environment):
    refused = echoic(
        {**environment, "ECHOIC_TWILIO_AUTH_TOKEN": "wrong"}, "phone", "simulate", "--url", server, input=""
    )
    assert refused.returncode != 0
    assert "403" in refused.stdout + refused.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["serve", "--model", "openai:gpt-5"], "ECHOIC_TWILIO_AUTH_TOKEN"),
        (["simulate"], "ECHOIC_TWILIO_AUTH_TOKEN"),
        (["simulate", "--calls", "3"], "needs a SCRIPT"),
    ],
)
def test_what_is_missing_is_named(environment, words, why):
    ran = echoic(environment, "phone", *words, input="")
    assert ran.returncode == 64
    assert why in ran.stderr


@pytest.mark.parametrize("agent", ["no.such:thing", "json:loads", "json"])
def test_an_agent_that_is_none_is_refused(environment, agent):
    ran = echoic({**environment, **TOKEN}, "phone", "serve", "--agent", agent)
    assert ran.returncode == 64
    assert agent in ran.stderr


def test_the_example_tells_the_story():
    ran = subprocess.run(
        [sys.executable, "examples/phone_dinner.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout.splitlines()[-1].startswith("robin: Let me see. You planned mushroom soup")
