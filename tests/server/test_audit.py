"""The audit log over HTTP."""

from __future__ import annotations

from pathlib import Path

import echoic
from server.conftest import OPERATOR_KEY, serving, settings_of

OPERATOR = {"Authorization": f"Bearer {OPERATOR_KEY}"}


def audited(folder: Path) -> echoic.MemoryService:
    return echoic.open(f"sqlite:///{folder}/e.db", embedder="lexical", audit=True)


async def test_requests_are_logged_by_route_and_pseudonym_and_read_by_the_operator_alone(tmp_path):
    memory = audited(tmp_path)
    async with serving(memory, settings_of()) as server:
        ana = await server.identity()
        await server.memory_of(ana, "set", key="zanqkey", value="a zanqvalue")
        await server.client.post("/v1/recall", json={"query": "zanqquery"}, headers=ana.headers)
        for headers in ({}, ana.headers):
            assert (await server.client.get("/api/audit", headers=headers)).status_code == 401
        answer = await server.client.get("/api/audit", headers=OPERATOR)
        assert answer.status_code == 200, answer.text
        whom = memory.pseudonym(ana.user)
        done = {(e["role"], e["who"], e["scope"], e["why"], e["did"]) for e in answer.json()["entries"]}
        assert ("user", whom, whom, "POST /api/memory", "write") in done
        assert ("user", whom, whom, "POST /v1/recall", "read") in done
        assert "zanq" not in answer.text
        assert ana.user not in answer.text
        last = answer.json()["entries"][-1]["n"]
        later = await server.client.get("/api/audit", params={"after": last}, headers=OPERATOR)
        assert all(entry["n"] > last for entry in later.json()["entries"])
        other = await server.client.get("/api/audit", params={"deploymentId": "acme"}, headers=OPERATOR)
        assert other.json()["entries"] == []
