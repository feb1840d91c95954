"""A knowledge base over HTTP: the operator fills it, every caller is told it, nobody else may touch it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPERATOR = {"Authorization": "Bearer the operator of these tests, and no other"}
HOURS = "The store is open from 9 to 17."
FACTS = {"facts": [{"key": "opening_hours", "text": HOURS}, {"text": "Call us on +44 20 7946 0018."}]}


async def test_an_operator_fills_edits_lists_and_withdraws(own):
    caller = await own.identity()
    filled = await own.client.post("/api/global", json=FACTS, headers=OPERATOR, params={"by": "olga"})
    assert filled.status_code == 200
    answer = filled.json()
    assert (answer["new"], answer["changed"], answer["unchanged"]) == (2, 0, 0)
    assert [(m["reason"], m["isGlobal"]) for m in answer["memories"]] == [("operator", True)] * 2
    assert answer["memories"][0]["reasoning"] == "an operator of the business wrote it"
    again = (await own.client.post("/api/global", json=FACTS, headers=OPERATOR)).json()
    assert (again["new"], again["changed"], again["unchanged"]) == (0, 0, 2)
    edit = {"facts": [{"key": "opening_hours", "text": "Open from 8 to 12."}]}
    assert (await own.client.post("/api/global", json=edit, headers=OPERATOR)).json()["changed"] == 1
    known = (await own.client.get("/api/global", headers=OPERATOR)).json()["memories"]
    assert {m["text"] for m in known} == {"Open from 8 to 12.", "Call us on +44 20 7946 0018."}
    assert (await own.memory_of(caller, "get", key="opening_hours")).json()["result"]["text"] == edit[
        "facts"
    ][0]["text"]
    for memory in known:
        path = f"/api/global/{memory['id']}/withdraw"
        assert (await own.client.post(path, headers=OPERATOR)).status_code == 200
        assert (await own.client.post(path, headers=OPERATOR)).status_code == 404
    assert (await own.memory_of(caller, "get", key="opening_hours")).json()["result"] is None


async def test_nobody_but_the_operator_lists_writes_or_withdraws(own):
    caller = await own.identity()
    kept = (await own.client.post("/api/global", json=FACTS, headers=OPERATOR)).json()["memories"]
    for headers in ({}, caller.headers, {"Authorization": "Bearer somebody else's key, made up"}):
        assert (await own.client.get("/api/global", headers=headers)).status_code == 401
        assert (await own.client.post("/api/global", json=FACTS, headers=headers)).status_code == 401
        path = f"/api/global/{kept[0]['id']}/withdraw"
        assert (await own.client.post(path, headers=headers)).status_code == 401
    assert len((await own.client.get("/api/global", headers=OPERATOR)).json()["memories"]) == 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"facts": []},
        {"facts": [{"text": ""}]},
        {"facts": [{"key": "a"}]},
        {"facts": [{"text": HOURS, "author": "ana"}]},
        {"facts": [{"text": HOURS, "key": "a"}, {"text": "Open.", "key": "a"}]},
        {"facts": [{"text": HOURS}] * 1001},
    ],
)
async def test_what_cannot_be_kept_is_refused_and_nothing_is_written(own, body):
    answer = await own.client.post("/api/global", json=body, headers=OPERATOR)
    assert answer.status_code == 422
    assert len(answer.text) < 2000
    assert (await own.client.get("/api/global", headers=OPERATOR)).json() == {"memories": []}
