"""Calls and health over HTTP: the list, one call, who may see which, and how memory does."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime

import apsw
import pytest

from echoic.errors import StoreCorrupt
from echoic.memory.deployment_keys import ROLES
from echoic.memory.hooks import Recalled
from echoic.memory.records import CALL, CONVERSATION, MEMORY, TURN
from echoic.types import Recall, Scope, Turn
from server.conftest import OPERATOR_KEY, serving, settings_of
from server.test_keys import bearer, opened

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def talked(server, who, *texts):
    begun = await server.client.post("/api/conversations", json={}, headers=who.headers)
    name = begun.json()["conversation"]
    for text in texts:
        await server.say(who, text, conversation=name)
    return name


async def got(server, path, headers, **params):
    answer = await server.client.get(path, headers=headers, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_typed_turn_is_shown_with_its_stages_and_the_memory_that_answered(server, ana):
    before = await talked(server, ana, "I'm Pavel and I live in Tel Aviv")
    name = await talked(server, ana, "Where do I live?", "When is my flight?")
    page = await got(server, f"/api/calls/{name}", ana.headers)
    assert [turn["text"] for turn in page["turns"] if turn["speaker"] == "user"] == [
        "Where do I live?",
        "When is my flight?",
    ]
    known, unknown = page["exchanges"]
    assert known["userTurn"] == page["turns"][1]["id"]
    stages = known["stages"]
    assert stages["transcript"] <= stages["recall_began"] <= stages["recalled"] <= stages["generated"]
    home = next(hit for hit in known["recall"]["hits"] if hit["key"] == "home")
    assert (home["fate"], home["conversation"]) == ("shown", before)
    assert "Tel Aviv" in home["text"]
    assert unknown["recall"]["hits"] == []
    assert unknown["number"] == known["number"] + 1
    assert page["learned"] == []
    learned = (await got(server, f"/api/calls/{before}", ana.headers))["learned"]
    assert {memory["key"] for memory in learned} == {"user_name", "home"}


@pytest.mark.parametrize("store", ["sqlite", "memory"])
async def test_a_page_of_many_users_calls_is_read_at_once_and_says_when_each_was_last_spoken_in(
    store, tmp_path, start, monkeypatch
):
    async with start(url=f"sqlite:///{tmp_path}/e.db" if store == "sqlite" else "memory://") as server:
        said = {}
        for n in range(12):
            call = await server.memory.user(f"user {n}").conversation(f"call {n}")
            turns = [Turn(speaker="user", text=f"I'm number {m}.") for m in range(2)]
            said[f"call {n}"] = (await call.append(*turns, learn=False))[-1].said_at
        await server.memory.settle(60)
        mine = server.memory.user("user 0").backing_store._observed
        kind = type(mine)
        scans, scan = [], kind.scan

        async def counted(self, *asked, **options):
            if self is mine:  # other tests' servers of this process scan theirs
                scans.append(asked)
            return await scan(self, *asked, **options)

        monkeypatch.setattr(kind, "scan", counted)
        page = await got(server, "/api/calls", bearer(OPERATOR_KEY), limit=10)
    assert len(page["calls"]) == 10
    for call in page["calls"]:
        assert datetime.fromisoformat(call["lastSaidAt"]) == said[call["id"]]
    assert len(scans) == (0 if store == "sqlite" else 20)


@pytest.mark.parametrize("data", ['{"te', "{}", "[1]"])
@pytest.mark.parametrize("kind", [CONVERSATION, TURN, CALL])
async def test_a_damaged_user_keeps_nobody_elses_calls_out_of_the_list(tmp_path, start, kind, data):
    async with start(url=f"sqlite:///{tmp_path}/e.db") as server:
        ana, bob = await two_who_live_in_oslo(server)
        damage(tmp_path / "e.db", bob.user, kind, "{}" if kind == CONVERSATION and data == '{"te' else data)
        calls = (await got(server, "/api/calls", bearer(OPERATOR_KEY)))["calls"]
        assert ana.user in [call["user"] for call in calls]
        assert (bob.user in [call["user"] for call in calls]) == (kind != CONVERSATION)
        assert len(await server.memory.conversations()) == (1 if kind == CONVERSATION else 2)


async def two_who_live_in_oslo(server):
    both = [await server.identity() for _ in range(2)]
    for one in both:
        await talked(server, one, "I live in Oslo.")
    await server.memory.settle()
    return both


def damage(path, user, kind, data):
    connection = apsw.Connection(str(path))
    whose = "scope = (select id from scopes where user = ?)"
    connection.execute(f"update records set data = ? where kind = ? and {whose}", (data, kind, user))
    connection.close()


@pytest.mark.parametrize("data", ['{"te', '{"zanzibar": "I live in Oslo."}', "[1]"])
async def test_a_damaged_user_is_told_so_without_what_the_records_say(tmp_path, start, caplog, data):
    async with start(url=f"sqlite:///{tmp_path}/e.db") as server:
        ana, bob = await two_who_live_in_oslo(server)
        for kind in (MEMORY, TURN):
            damage(tmp_path / "e.db", bob.user, kind, data)
        asked = [("POST", "/v1/recall", {"query": "Where do I live?"}), ("GET", "/v1/keys/home", None)]
        for who, status in ((bob, 500), (ana, 200)):
            for method, path, body in asked:
                answer = await server.client.request(method, path, json=body, headers=who.headers)
                assert answer.status_code == status, answer.text
                assert status == 200 or answer.json()["code"] == "internal"
        user = server.memory.user(bob.user)
        for told in (user.get("home"), user.recall("Where do I live?"), user.block(), user.facts()):
            with pytest.raises(StoreCorrupt, match="is damaged.*`echoic doctor`") as refused:
                await told
            assert "zanzibar" not in str(refused.value)
        assert "zanzibar" not in caplog.text


async def test_what_was_forgotten_since_is_not_shown_of_a_call(server, ana):
    await talked(server, ana, "I live in Tel Aviv")
    name = await talked(server, ana, "Where do I live?")
    home = next(
        m for m in (await got(server, "/api/memories", ana.headers))["memories"] if m["key"] == "home"
    )
    answer = await server.client.post("/api/forget", json={"id": home["id"]}, headers=ana.headers)
    assert answer.status_code == 200
    page = await got(server, f"/api/calls/{name}", ana.headers)
    gone = next(hit for hit in page["exchanges"][0]["recall"]["hits"] if hit["id"] == home["id"])
    assert (gone["text"], gone["fate"], gone["saidAt"]) == (None, "forgotten", None)


async def test_a_list_is_paged_by_its_cursor_and_narrowed_by_its_filters(server, ana):
    names = [await talked(server, ana) for _ in range(5)]
    await server.client.post(f"/api/conversations/{names[0]}/complete", headers=ana.headers)
    seen, cursor = [], None
    while True:
        page = await got(server, "/api/calls", ana.headers, limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [call["id"] for call in page["calls"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == names[::-1]
    ended = await got(server, "/api/calls", ana.headers, status="completed")
    assert [call["id"] for call in ended["calls"]] == names[:1]
    assert (await got(server, "/api/calls", ana.headers, channel="phone"))["calls"] == []
    assert len((await got(server, "/api/calls", ana.headers, channel="text"))["calls"]) == 5
    since = ended["calls"][0]["startedAt"]
    assert (await got(server, "/api/calls", ana.headers, until=since))["calls"] == []
    wrong = await server.client.get("/api/calls", headers=ana.headers, params={"cursor": "x"})
    assert wrong.status_code == 422


async def test_users_see_their_own_calls_and_keys_those_of_their_deployment_where_they_may_read(tmp_path):
    memory = opened(tmp_path)
    async with serving(memory, settings_of()) as server:
        ana, ben, far = [await server.identity(deployment) for deployment in ("default", "default", "acme")]
        names = await asyncio.gather(*(talked(server, who, "I'm Pavel") for who in (ana, ben, far)))
        for who, name in zip((ana, ben, far), names, strict=True):
            assert [call["id"] for call in (await got(server, "/api/calls", who.headers))["calls"]] == [name]
            for other in set(names) - {name}:
                # whose call it is the token says; `user` is for keys
                for params in ({}, {"user": ben.user}):
                    there = await server.client.get(f"/api/calls/{other}", headers=who.headers, params=params)
                    assert there.status_code == 404
        for role in ROLES:
            key, _ = await memory.keys().create(role)
            answer = await server.client.get("/api/calls", headers=bearer(key))
            one = await server.client.get(
                f"/api/calls/{names[0]}", headers=bearer(key), params={"user": ana.user}
            )
            if role not in {"operator", "read-only"}:
                assert (answer.status_code, one.status_code) == (403, 403)
                continue
            assert answer.status_code == 200, answer.text
            assert {call["id"] for call in answer.json()["calls"]} == set(names[:2])
            assert one.json()["call"]["user"] == ana.user
            narrowed = await got(server, "/api/calls", bearer(key), user=ben.user)
            assert [call["id"] for call in narrowed["calls"]] == [names[1]]
            for params in ({}, {"user": far.user}):
                wrong = await server.client.get(f"/api/calls/{names[2]}", headers=bearer(key), params=params)
                assert wrong.status_code in {404, 422}


async def test_health_counts_recalls_by_outcome_and_says_what_to_do_where_they_run_out_of_time(
    server, ana, operator
):
    before = await got(server, "/api/health", operator)
    await talked(server, ana, "I live in Tel Aviv", "Where do I live?", "When is my flight?")
    after = await got(server, "/api/health", operator)

    def counted(health, name):
        return sum(minute[name] for minute in health["minutes"])

    assert counted(after, "recalls") - counted(before, "recalls") >= 2
    assert counted(after, "silent") - counted(before, "silent") >= 1
    assert after["store"] == "ok"
    assert not any("ran out of time" in alarm["what"] for alarm in after["alarms"])
    late = Recalled(
        scope=Scope("default", ana.user), recall=Recall(hits=(), outcome="deadline"), duration_ms=400.0
    )
    for _ in range(30):
        server.memory._parts.hooks.emit(late)
    async with server.client.stream("GET", "/api/health/events", headers=operator) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: ") and counted(told := json.loads(line[6:]), "incomplete") >= 30:
                break
    found = {alarm["what"]: alarm["do"] for alarm in told["alarms"]}
    assert any("ran out of time" in what and "docs/scale.md" in do for what, do in found.items())
    assert any("400 ms" in what for what in found)
