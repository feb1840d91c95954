"""The contract of voice-memory-bench, as its engine speaks it."""

from __future__ import annotations

import httpx
import pytest

import echoic
from echoic_bench.sidecar import sidecar_app


@pytest.fixture
async def engine(tmp_path):
    """A client as the engine is, over a real store."""
    async with echoic.open(f"sqlite:///{tmp_path}/bench.db", embedder="lexical") as memory:
        transport = httpx.ASGITransport(app=sidecar_app(memory), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            client.memory = memory
            yield client


async def said(engine, text, *, user="ana", session="s1", role="user"):
    body = {"user_id": user, "session_id": session, "role": role, "content": text}
    return await engine.post("/add_message", json=body)


async def found(engine, query, user="ana", **more):
    body = {"user_id": user, "session_id": "s2", "query": query, "mode": "semantic", "top_k": 10, **more}
    return await engine.post("/search", json=body)


async def test_it_is_healthy_and_says_what_it_can(engine):
    assert (await engine.get("/health")).json() == {"status": "ok"}
    able = (await engine.get("/capabilities")).json()
    assert able["provider_name"] == "echoic"
    assert able["provider_version"] == echoic.__version__
    assert {"semantic", "hybrid"} == set(able["supported_retrieval_modes"])
    assert able["supports_user_scoping"] is True


async def test_what_was_said_is_found_across_sessions_with_the_fields_of_the_contract(engine):
    written = (await said(engine, "I parked the car in the blue garage.")).json()
    assert written["provider_id"]
    assert written["latency_ms"] > 0
    assert written["tokens_written"] == 8
    answer = (await found(engine, "Where is the car parked?")).json()
    assert answer["retrieval_mode"] == "semantic"
    assert answer["token_footprint"] == 8
    item = answer["items"][0]
    assert item["item_id"] == written["provider_id"]
    assert item["content"] == "I parked the car in the blue garage."
    assert isinstance(item["score"], float)
    assert item["metadata"] == {"kind": "turn", "role": "user", "session_id": "s1"}


async def test_roles_of_the_contract_are_speakers_of_ours(engine):
    await said(engine, "How may I help?", role="assistant")
    items = (await engine.post("/enumerate", json={"user_id": "ana"})).json()["items"]
    assert items[0]["metadata"]["role"] == "agent"


async def test_a_fact_is_found_and_enumerated(engine):
    body = {"user_id": "ana", "session_id": "s1", "fact": "The user keeps bees."}
    assert (await engine.post("/add_fact", json=body)).status_code == 200
    answer = (await found(engine, "Who keeps bees?")).json()
    assert answer["items"][0]["metadata"]["kind"] == "memory"
    items = (await engine.post("/enumerate", json={"user_id": "ana"})).json()["items"]
    assert [item["content"] for item in items] == ["The user keeps bees."]


async def test_another_user_finds_nothing(engine):
    await said(engine, "My sister keeps bees.")
    assert (await found(engine, "Who keeps bees?", user="ben")).json()["items"] == []


async def test_reset_destroys_a_session_or_a_user_and_nobody_elses(engine):
    await said(engine, "Bees in the first session.", session="s1")
    await said(engine, "Bees in the second session.", session="s2")
    await said(engine, "Bees of another user.", user="ben")
    await engine.post("/reset", json={"user_id": "ana", "session_id": "s1"})
    left = (await engine.post("/enumerate", json={"user_id": "ana", "session_id": ""})).json()["items"]
    assert [item["content"] for item in left] == ["Bees in the second session."]
    assert (await engine.post("/reset", json={"user_id": "ana"})).json() == {"status": "ok"}
    assert (await found(engine, "bees")).json()["items"] == []
    assert len((await found(engine, "bees", user="ben")).json()["items"]) == 1


@pytest.mark.parametrize(
    ("more", "capability"), [({"mode": "graph"}, "graph"), ({"filters": {"a": 1}}, "filters")]
)
async def test_what_is_not_supported_is_skipped_by_its_name(engine, more, capability):
    answer = await found(engine, "anything", **more)
    assert answer.status_code == 422
    told = answer.json()
    assert (told["error_type"], told["capability"], told["provider"]) == (
        "capability_not_supported",
        capability,
        "echoic",
    )


@pytest.mark.parametrize("broken", [{"user_id": "ana"}, {"user_id": " ", "session_id": "s", "query": "x"}])
async def test_what_is_malformed_is_an_error_and_never_taken_for_a_missing_capability(engine, broken):
    answer = await engine.post("/search", json=broken)
    assert answer.status_code == 400
    assert answer.json()["error_type"] in {"invalid_request", "InvalidInput"}


async def test_a_store_that_cannot_be_used_is_unhealthy_and_not_empty(engine):
    await engine.memory.aclose()
    assert (await engine.get("/health")).status_code == 503
    assert (await found(engine, "anything")).json()["error_type"] == "NotOpen"


async def test_a_page_in_a_browser_cannot_reach_it_under_another_name(engine):
    answer = await engine.get("/health", headers={"host": "evil.example"})
    assert answer.status_code == 400
