"""What an operator takes back over HTTP: facts that everyone knows, and lessons that every agent has."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPERATOR = {"Authorization": "Bearer the operator of these tests, and no other"}
HOURS = "The store is open from 9 to 17."
LESSON = "Ask for the genre before recommending a movie."


async def decided(own):
    answer = (await own.client.get("/api/decisions", headers=OPERATOR)).json()
    return [(d["what"], d["of"], d["key"], d["text"], d["by"]) for d in answer["decisions"]]


async def test_a_fact_is_approved_and_withdrawn(own):
    ana, bob = await own.identity(), await own.identity()
    await own.memory_of(ana, "set", key="opening_hours", value=HOURS)
    (waiting,) = (await own.client.get("/api/proposals", headers=OPERATOR)).json()["proposals"]
    approve = f"/api/proposals/{waiting['id']}/approve"
    assert (await own.client.post(approve, headers=OPERATOR, params={"by": "olga"})).status_code == 200
    assert (await own.memory_of(bob, "get", key="opening_hours")).json()["result"]["text"] == HOURS
    (known,) = (await own.client.get("/api/global", headers=OPERATOR)).json()["memories"]
    withdraw = f"/api/global/{known['id']}/withdraw"
    for headers in ({}, bob.headers):  # whoever asks has to be the operator
        assert (await own.client.post(withdraw, headers=headers)).status_code == 401
    assert (await own.client.post(withdraw, headers=OPERATOR, params={"by": "omar"})).status_code == 200
    assert (await own.memory_of(bob, "get", key="opening_hours")).json()["result"] is None
    assert (await own.memory_of(bob, "query", query="when are you open?")).json()["found"] is False
    assert (await own.client.post(withdraw, headers=OPERATOR)).status_code == 404
    assert await decided(own) == [
        ("approved", "fact", "opening_hours", HOURS, "olga"),
        ("withdrawn", "fact", "opening_hours", HOURS, "omar"),
    ]


async def test_a_lesson_is_approved_withdrawn_and_rejected(own):
    ana = own.memory.user("ana")
    films = own.memory.experience("films / trips")
    lesson = await films.add("strategy", LESSON, author=ana.scope)
    (shown,) = (await own.client.get("/api/lessons", headers=OPERATOR)).json()["lessons"]
    assert (shown["id"], shown["agent"], shown["state"]) == (lesson.id, "films / trips", "waiting")
    for verb, state in (("approve", "approved"), ("withdraw", "withdrawn")):
        path = f"/api/lessons/{lesson.id}/{verb}"
        for headers in ({}, (await own.identity()).headers):
            answer = await own.client.post(path, headers=headers, params={"agent": "films / trips"})
            assert answer.status_code == 401
        answer = await own.client.post(path, headers=OPERATOR, params={"agent": "films / trips"})
        assert answer.json()["state"] == state
        assert (LESSON in (await ana.block(agent="films / trips")).text) == (verb == "approve")
        wrong = await own.client.post(path, headers=OPERATOR, params={"agent": "films"})
        assert wrong.status_code == 404
    reject = f"/api/lessons/{lesson.id}/reject"
    assert (await own.client.post(reject, headers=OPERATOR, params={"agent": "films / trips"})).is_success
    assert (await own.client.get("/api/lessons", headers=OPERATOR)).json() == {"lessons": []}
    assert [what for what, *_ in await decided(own)] == ["approved", "withdrawn", "rejected"]
