"""The commands: a server that answers calls, and a caller at the terminal."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import wave
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

import forked
from echoic.adapters.twilio.media import Resampler, pcm_of, samples_of
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Says, Script, UserSays, speech, words_heard

ROOT = Path(__file__).parents[2]
AGENT = "examples.phone_dinner:agent"
TOKEN = {"ECHOIC_TWILIO_AUTH_TOKEN": "of the account of this test"}


@pytest.fixture
def environment(tmp_path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ECHOIC_")}
    return {**clean, "ECHOIC_EMBEDDER": "lexical", "ECHOIC_STORE": f"sqlite:///{tmp_path}/echoic.db"}


def echoic(environment, *words, **more):
    return forked.run(
        [sys.executable, "-m", "echoic.cli", *words],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **more,
    )


@contextmanager
def running(environment, *words, stderr=subprocess.DEVNULL):
    serving = forked.Popen(
        [sys.executable, "-m", "echoic.cli", "phone", "serve", "--port", "0", *words],
        env={**environment, **TOKEN},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    )
    with serving:
        yield serving.stdout.readline().strip().rstrip("/")
        serving.terminate()
        assert serving.wait(60) == 0


@asynccontextmanager
async def ended_in_a_thread(serving):
    """Wait for its end beside the loop, where who is played there is told of it."""
    url = serving.__enter__()
    try:
        yield url
    finally:
        await asyncio.to_thread(serving.__exit__, None, None, None)


@pytest.fixture
def server(environment):
    with running(environment, "--agent", AGENT) as url:
        yield url


def test_a_script_is_called_through_and_what_was_stored_is_recalled(server, environment, tmp_path):
    script = tmp_path / "call.txt"
    script.write_text("# plans\nPlan a dinner for six.\nPlease remember that.\n")
    first = echoic({**environment, **TOKEN}, "phone", "simulate", str(script), "--url", server)
    assert first.returncode == 0, first.stderr
    assert "your dinner menu" in first.stdout
    assert "of them cached" in first.stdout.splitlines()[-1]
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
    assert (told["took"]["turns"], told["took"]["kept"]) == (1, True)
    assert "1 turns" not in second.stdout, "a document holds figures, not sentences"
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


def test_a_wrong_signature_is_on_the_servers_stderr_with_what_to_look_at(environment, tmp_path):
    said = tmp_path / "stderr"
    with (
        said.open("w") as stderr,
        running(environment, "--agent", AGENT, stderr=stderr) as url,
        pytest.raises(HTTPError, match="403"),
    ):
        urlopen(f"{url}/phone/voice", b"CallSid=CA1", timeout=30)
    assert "--public-url" in said.read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["serve", "--model", "openai:gpt-5"], "ECHOIC_TWILIO_AUTH_TOKEN"),
        (["simulate"], "ECHOIC_TWILIO_AUTH_TOKEN"),
        (["simulate", "--calls", "3"], "needs a SCRIPT"),
        (["serve", "--agent", AGENT, "--channel", "media"], "--voice"),
        (["serve", "--agent", AGENT, "--voice", "openai:gpt-realtime"], "--channel media"),
        (["serve", "--model", "openai:gpt-5", "--host", "a..b"], "OPENAI_API_KEY"),
        (["serve", "--model", "nope:x", "--host", "a..b"], "nope"),
        (["simulate", "README.md", "--calls", "2", "--number", "anonymous"], "--number"),
    ],
)
def test_what_is_missing_is_named(environment, words, why):
    token = TOKEN if {"--channel", "--voice", "--host", "--number"} & set(words) else {}
    ran = echoic({**environment, **token}, "phone", *words, input="")
    assert ran.returncode == 64
    assert why in ran.stderr


async def test_a_recording_is_played_to_a_voice_model_and_its_answer_recorded(environment, tmp_path):
    said, asked = speech("the harbour is in boston"), speech("where is it")
    for name, samples in (("ask.wav", asked.pcm), ("stereo.wav", asked.pcm)):
        with wave.open(str(tmp_path / name), "wb") as recording:
            recording.setnchannels(1 if name == "ask.wav" else 2)
            recording.setsampwidth(2)
            recording.setframerate(24_000)
            recording.writeframes(samples)
    script = Script(UserSays(asked.text, after_ms=300), Says(said.text), open_ended=True)
    async with OpenAIRealtimeServer(script) as voice:
        provider = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": voice.base_url}
        words = ["--agent", AGENT, "--channel", "media", "--voice", "openai:gpt-realtime"]
        async with ended_in_a_thread(running({**environment, **provider}, *words)) as url:
            heard = tmp_path / "heard.wav"
            call = ["phone", "simulate", "--url", url, "--record", str(heard), "--json"]
            lines = f"/play {tmp_path}/ask.wav\n"
            ran = await asyncio.to_thread(echoic, {**environment, **TOKEN}, *call, input=lines)
            assert ran.returncode == 0, ran.stderr
            with wave.open(str(heard), "rb") as recording:
                played = samples_of(recording.readframes(recording.getnframes()))
            pcm = pcm_of(Resampler(8_000, 24_000)(played))
            assert "".join(said.words[n].text for n in words_heard(pcm, said)).strip() == said.text
            assert json.loads(ran.stdout)["data"][0]["took"]["turns"] == 1
            lines = f"/play {tmp_path}/stereo.wav\n"
            bad = await asyncio.to_thread(echoic, {**environment, **TOKEN}, *call, input=lines)
            assert (bad.returncode, "mono" in bad.stderr + bad.stdout) == (64, True)


@pytest.mark.parametrize("agent", ["no.such:thing", "json:loads", "json", ":agent", ".x:agent"])
def test_an_agent_that_is_none_is_refused(environment, agent):
    ran = echoic({**environment, **TOKEN}, "phone", "serve", "--agent", agent)
    assert ran.returncode == 64
    assert agent in ran.stderr


def test_an_agents_program_that_fails_says_why(environment, tmp_path):
    (tmp_path / "unready.py").write_text("raise RuntimeError('set PARCELS_URL')\n")
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    ran = echoic({**environment, **TOKEN, **path}, "phone", "serve", "--agent", "unready:agent")
    assert ran.returncode == 64
    assert "RuntimeError: set PARCELS_URL" in ran.stderr


def test_the_clinics_line_tells_only_who_proves_who_they_are():
    ran = forked.run(
        [sys.executable, "examples/clinic_line.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    own, forged, abroad = ran.stdout.split("-- ")[1:]
    assert "Your PIN is set" in own
    assert "penicillin" not in forged
    assert abroad.splitlines()[-1] == "clinic: You are allergic to penicillin."


def test_the_example_tells_the_story():
    ran = forked.run(
        [sys.executable, "examples/phone_dinner.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ran.stdout.splitlines()[-1].startswith("robin: Let me see. You planned mushroom soup")


@pytest.mark.parametrize(
    ("words", "variable", "greeted"),
    [
        ((), "", False),
        ((), "any", True),
        (("--phone-trust", "any"), "", True),
        (("--phone-trust", "a"), "any", False),
    ],
)
def test_which_numbers_are_believed_is_said_in_one_place(environment, tmp_path, words, variable, greeted):
    given = {**environment, **({"ECHOIC_PHONE_TRUST": variable} if variable else {})}
    script = tmp_path / "call.txt"
    script.write_text("My name is Ana.\n")
    with running(given, "--agent", AGENT, *words) as url:
        call = ("phone", "simulate", str(script), "--url", url)
        first = echoic({**environment, **TOKEN}, *call)
        assert first.returncode == 0, first.stderr
        assert echoic(environment, "distil").returncode == 0
        second = echoic({**environment, **TOKEN}, *call, "--attestation", "")
        assert second.returncode == 0, second.stderr
    assert ("Ana" in second.stdout.replace("My name is Ana", "")) == greeted


def test_an_operator_sees_whose_a_line_is_and_undoes_a_link(environment):
    secret = {**environment, "ECHOIC_SECRET": "of this test, and long enough for it all"}
    line = ("phone", "line", "+15550100001")
    assert "not linked" in echoic(secret, *line).stdout
    assert "linked to ana" in echoic(secret, *line, "--link", "ana").stdout
    assert json.loads(echoic(secret, *line, "--json").stdout)["data"]["linked"] == "ana"
    assert "not linked" in echoic(secret, *line, "--give-back").stdout
    assert echoic(secret, "phone", "line", "Ana").returncode != 0
    assert echoic(secret, *line, "--unlink", "--give-back").returncode != 0
