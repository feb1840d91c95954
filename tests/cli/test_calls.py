"""`calls` and `why` on a call that was really made, with a stand-in of the provider."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

import echoic as library
from echoic.session import SessionSettings, VoiceAgent, VoiceSession
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Says, Script, UserSays

REPLY = "your dog is called Rex and he is four years old"


async def call(url):
    async with library.open(url, embedder="lexical") as memory:
        ana = memory.user("ana")
        await ana.remember("The user's dog is called Rex.")
        await ana.set("cat", "The cat is called Tom")
        await ana.set("cat", "The cat is called Tim")
        script = Script(
            UserSays("what is my dog called", after_ms=300),
            Says(REPLY),
            UserSays("thank you", after_ms=400),
            Says("gladly"),
            open_ended=True,
        )
        async with OpenAIRealtimeServer(script) as server:
            model = OpenAIRealtimeModel(
                "gpt-realtime", provider=OpenAIProvider(base_url=server.base_url, api_key="k")
            )
            session = VoiceSession(
                memory,
                user="ana",
                agents=[VoiceAgent(name="robin")],
                model=model,
                session_id="monday",
                settings=SessionSettings(recall_deadline_ms=2000),
            )
            async with session, asyncio.timeout(20):
                player = asyncio.create_task(_play(session))
                while not server.sessions[0].script_over or not session.live.playback.idle:
                    await session.send_audio(bytes(960))
                    await asyncio.sleep(0.001)
                player.cancel()
        task = await ana.task("monday")
        return [(turn.id, turn.text, turn.heard_text) for turn in task.turns]


async def _play(session):
    async for pcm in session.audio():
        await asyncio.sleep(len(pcm) / 48_000 / 20)


@pytest.fixture
def called(echoic, tmp_path):
    url = f"sqlite:///{tmp_path}/calls.db"
    turns = asyncio.run(call(url))

    def run(*arguments):
        return echoic(*arguments, "--user", "ana", "--store", url)

    return turns, run


def test_a_call_is_shown_as_it_was_heard_and_why_answers_for_each_turn(called):
    turns, run = called
    listed = run("calls", "list")
    assert listed.out.split("\t")[0] == "monday"
    shown = run("calls", "show", "monday")
    assert shown.code == 0, shown.err
    (asked, question, _), (_, text, heard), *_ = turns
    assert question in shown.out
    assert text == REPLY
    assert heard != text, "it was interrupted"
    assert f"{heard}[{text[len(heard) :].strip()}]" in shown.out
    assert "cut at" in shown.out
    assert "estimated" in shown.out
    for stage in ("speech_ended", "transcript", "recalled", "first_audio", "barge_in"):
        assert stage in shown.out
    data = run("calls", "show", "monday", "--given", "--json").json["data"]
    assert data["call"]["reason"] == "ended"
    assert any("Rex" in given["text"] for given in data["given"])
    found = run("why", asked)
    assert any("Rex" in line for line in found.out.splitlines())
    assert "complete" in found.err
    assert run("why", asked, "nobody knows").out.startswith("forgotten:")
    old = library_versions(run)
    assert run("why", asked, old).out.startswith("superseded:")


def library_versions(run):
    return run("history", "cat", "--json").json["data"][0]["id"]


def test_a_call_or_turn_that_is_not_known_is_nothing_known(echoic):
    assert echoic("calls", "show", "no").code == 1
    assert echoic("calls", "list").code == 1
    assert echoic("why", "no").code == 1


def test_watch_says_what_it_needs_and_where_nobody_answers(echoic):
    assert "ECHOIC_OPERATOR_KEY" in echoic("watch").err
    for url, code, words in (
        ("http://127.0.0.1:9", 2, "no server answers"),
        ("file:///etc/passwd", 64, "--url"),
    ):
        nowhere = echoic("watch", "--url", url, ECHOIC_OPERATOR_KEY="k" * 20)
        assert (nowhere.code, words in nowhere.err) == (code, True), nowhere.err
