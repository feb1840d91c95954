"""What happens in calls, watched over HTTP and in the terminal by whoever may read calls."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import sys

import pytest

import forked
from echoic.server.guards import RequestLimit
from echoic.server.problems import overloaded, refused
from server.conftest import OPERATOR_KEY, serving, settings_of
from server.test_keys import bearer, opened

pytestmark = pytest.mark.asyncio(loop_scope="module")
WITHIN_S = 60


class Watching:
    """A stream of `/api/watch`."""

    def __init__(self, answer):
        self._lines = answer.aiter_lines()

    async def until(self, name, *, is_it=lambda _: True):
        """Every event up to the first of that name."""
        seen = []
        async with asyncio.timeout(WITHIN_S):
            async for line in self._lines:
                if line.startswith("event: "):
                    seen.append([line.removeprefix("event: ")])
                elif line.startswith("data: "):
                    seen[-1].append(json.loads(line.removeprefix("data: ")))
                    if seen[-1][0] == name and is_it(seen[-1][1]):
                        return seen
        raise AssertionError(f"the stream ended before {name}: {seen}")

    async def begun(self):
        assert (await anext(self._lines)).startswith(":")

    async def ended(self):
        async with asyncio.timeout(WITHIN_S):
            return [line async for line in self._lines if line.startswith("data")]


async def test_whoever_may_read_calls_is_told_what_is_said_recalled_and_kept_in_its_deployment(tmp_path):
    memory = opened(tmp_path)
    async with serving(memory, settings_of()) as server:
        ana, ben, far = [await server.identity(each) for each in ("default", "default", "acme")]
        key, _ = await memory.keys().create("read-only")
        stream = server.client.stream
        async with (
            stream("GET", "/api/watch", headers=bearer(key)) as everybody,
            stream("GET", "/api/watch", headers=bearer(key), params={"user": ben.user}) as one,
        ):
            whole, bens = Watching(everybody), Watching(one)
            await whole.begun()
            await bens.begun()
            await server.say(far, "I live in Quito")
            await server.say(ana, "I live in Tel Aviv")
            await server.say(ben, "I live in Haifa")
            await server.say(ben, "Where do I live?")
            seen = await whole.until("exchange", is_it=lambda data: data["data"]["recall"])
            assert "Quito" not in json.dumps(seen), "another deployment's"
            said = [
                data["data"]["text"] for name, data in seen if name == "turn" and data["user"] == ana.user
            ]
            assert "I live in Tel Aviv" in said
            seen = await bens.until("exchange", is_it=lambda data: data["data"]["recall"])
            assert {data["user"] for _, data in seen} == {ben.user}
            kept = [data["data"]["added"] for name, data in seen if name == "learned"]
            assert [each["text"] for each in kept[0]] == ["Haifa"]
            recall = seen[-1][1]["data"]["recall"]
            assert recall["outcome"] == "complete"
            assert recall["delayMs"] >= 0
            assert recall["shown"] >= 1


async def test_nobody_else_is_told_and_a_key_that_is_revoked_no_longer(tmp_path):
    memory = opened(tmp_path)
    async with serving(memory, settings_of()) as server:
        ana = await server.identity()
        agent, _ = await memory.keys().create("agent")
        for headers, status in (({}, 401), (ana.headers, 401), (bearer(agent), 403)):
            assert (await server.client.get("/api/watch", headers=headers)).status_code == status
        key, listed = await memory.keys().create("operator")
        async with server.client.stream("GET", "/api/watch", headers=bearer(key)) as answer:
            watching = Watching(answer)
            await watching.begun()
            await server.say(ana, "I live in Haifa")
            await watching.until("turn")
            await memory.keys().revoke(listed.id)
            await server.say(ana, "I moved to Jaffa")
            assert not any("Jaffa" in line for line in await watching.ended())


def begun(server, *words, key=OPERATOR_KEY, stdout=subprocess.PIPE):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ECHOIC_")}
    return forked.Popen(
        [sys.executable, "-m", "echoic.cli", "watch", "--url", server.url, *words],
        env={**kept, "ECHOIC_OPERATOR_KEY": key, "TERM": "xterm"},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


async def lines_until(read, word):
    seen = []
    async with asyncio.timeout(WITHIN_S):
        while not seen or word not in seen[-1]:
            seen.append(await asyncio.to_thread(read))
            assert seen[-1], seen
    return seen


async def test_watch_prints_a_line_for_each_in_colour_on_a_terminal_alone(server, ana):
    ours, theirs = pty.openpty()
    terminal = os.fdopen(ours, encoding="utf-8")
    plain, lines, colourful = running = (
        begun(server, "--user", ana.user),
        begun(server, "--user", ana.user, "--json"),
        begun(server, "--user", ana.user, stdout=theirs),
    )
    os.close(theirs)
    try:
        for each in (plain, colourful):
            await lines_until(each.stderr.readline, "watching")
        async with asyncio.timeout(WITHIN_S):  # with --json nothing is said on stderr
            while len(server.app.state.served.live._oldest) < len(running):
                await asyncio.sleep(0.01)
        await server.say(ana, "I live in Haifa")
        rows = [
            line.rstrip("\n").split("\t")[1:] for line in await lines_until(plain.stdout.readline, "kept")
        ]
        assert [ana.user, "caller", "I live in Haifa"] in rows
        assert rows[-1] == [ana.user, "kept", "The user lives in Haifa."]
        events = [json.loads(line) for line in await lines_until(lines.stdout.readline, '"learned"')]
        assert {event["user"] for event in events} == {ana.user}
        shown = await lines_until(terminal.readline, "kept")
        assert shown[0].split() == ["TIME", "USER", "WHAT", "WORDS"]
        assert "\x1b[36m" in "".join(shown)
        assert not any("\x1b" in cell for row in rows for cell in row)
    finally:
        terminal.close()
        for each in running:
            each.kill()
            each.communicate()


async def test_watch_says_why_the_server_refuses_it(server):
    with begun(server, key="not the key of this server, nor of any other") as watching:
        _, said = await asyncio.to_thread(watching.communicate, timeout=WITHIN_S)
    why = (await server.client.get("/api/watch", headers=bearer("not the key of this server"))).json()[
        "error"
    ]
    assert watching.returncode != 0
    assert f"401, {why}" in said


async def test_watch_says_that_a_server_is_busy_and_not_that_there_is_none(server, monkeypatch):
    monkeypatch.setattr(RequestLimit, "_refusal", lambda *_, **_more: refused(overloaded()))
    with begun(server) as watching:
        _, said = await asyncio.to_thread(watching.communicate, timeout=WITHIN_S)
    assert watching.returncode != 0
    assert f"503, {overloaded().problem.error}" in said
    assert "no server" not in said
