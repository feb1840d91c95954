"""`echoic chat` and `echoic serve` with a model: the real command, OpenAI's own client, a provider on this machine."""

from __future__ import annotations

import os
import sys

import pytest

import forked
from server.scripted_model import ScriptedModel, Spoken


@pytest.fixture
def provider():
    scripted = ScriptedModel(learns=lambda _request: {"read_up_to": "t1", "changes": []})
    scripted.start()
    yield scripted
    scripted.stop()


@pytest.fixture
def echoic(tmp_path, provider):
    def run(*words, stdin="", **variables):
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("ECHOIC_", "OPENAI_"))
        }
        env = {**kept, "ECHOIC_EMBEDDER": "lexical", "OPENAI_BASE_URL": provider.url, **variables}
        env = {name: value for name, value in env.items() if value}
        return forked.run(
            [sys.executable, "-m", "echoic.cli", *words],
            input=stdin, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    return run


def test_a_chat_with_a_model_is_answered_by_it_and_learned_from_and_known_the_next_time(echoic, provider):
    provider.says = lambda _request: Spoken(words=("By the ", "sea, ", "then."))
    first = echoic(
        "chat", "--model", "openai-chat:scripted", stdin="I live in Haifa.\n", OPENAI_API_KEY="none"
    )
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[-1] == "By the sea, then."
    assert "stored: home = Haifa" in first.stderr
    second = echoic(
        "chat", stdin="Where do I live?\n", ECHOIC_MODEL="openai-chat:scripted", OPENAI_API_KEY="none"
    )
    assert second.returncode == 0, second.stderr
    asked = [request for request in provider.requests if request.get("stream")][-1]
    assert 'home: \\"Haifa\\"' in str(asked).replace('"', '\\"')
    keyless = echoic("chat", stdin="Where do I live?\n")
    assert "Haifa" in keyless.stdout


def test_a_model_that_fails_ends_no_chat(echoic, provider):
    provider.says = lambda _request: Spoken(status=500)
    ran = echoic(
        "chat",
        "--model",
        "openai-chat:scripted",
        stdin="I live in Haifa.\n/memories\n",
        OPENAI_API_KEY="none",
    )
    assert ran.returncode == 0, ran.stderr
    assert "I can't answer just now. What you said is stored." in ran.stdout
    assert "Haifa" in ran.stdout.splitlines()[-1]


@pytest.mark.parametrize("command", ["chat", "serve"])
@pytest.mark.parametrize("model", ["nobody:knows", "openai-chat:scripted"], ids=["unknown", "without a key"])
def test_a_model_that_cannot_be_used_is_said_before_anything_begins(echoic, command, model):
    words = ("--port", "0") if command == "serve" else ()
    # at an address of its own a provider of OpenAI's kind may want no key
    ran = echoic(command, *words, "--model", model, OPENAI_BASE_URL="")
    assert ran.returncode == 64, ran.stderr
    assert ran.stdout == ""
    assert model.split(":")[0].removesuffix("-chat").upper() in ran.stderr.upper()
    assert "Traceback" not in ran.stderr


def test_a_rate_that_is_none_is_refused(echoic):
    ran = echoic("serve", "--port", "0", "--rate-limit", "often")
    assert ran.returncode == 64
    assert "'600/minute'" in ran.stderr
