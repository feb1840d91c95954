"""What a caller sent stands in no answer that refuses it, and in no log."""

from __future__ import annotations

import json
import logging

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")

CANARY = "zanzibar giraffe"
LONG = 4_000
"""Bytes of an answer that refuses something, at most."""
HOSTILE = {
    "newlines": "\n" * 200_000,
    "long": CANARY * 10_000,
    "nul": f"{CANARY}\0",
    "surrogate": f"{CANARY}\ud800",
    "list": [CANARY] * 100,
    "object": {CANARY: CANARY},
    "number": 10**300,
    "empty": "   ",
    "null": None,
}
FIELDS = {"key": "pet", "value": "a goat", "query": "a goat"}


@pytest.mark.parametrize("what", HOSTILE)
async def test_no_refusal_repeats_what_was_sent(server, ana, what, caplog):
    caplog.set_level(logging.DEBUG)
    hostile = HOSTILE[what]
    bodies = [
        ("/api/memory", ana.operation(operation, **{**FIELDS, field: hostile}))
        for operation in ("set", "get", "delete", "query")
        for field in (*FIELDS, "category", "context", "limit", "visibility", "deploymentId")
    ]
    bodies += [("/api/memory", ana.operation(hostile, **FIELDS)), ("/api/memory", hostile)]
    bodies += [("/api/chat", {"text": hostile}), ("/api/chat", {"text": "hi", "conversation": hostile})]
    bodies += [("/api/identity", {"deploymentId": hostile})]
    refused = 0
    for path, body in bodies:
        answer = await server.client.post(
            path,
            content=json.dumps(body).encode(),
            headers={**ana.headers, "Content-Type": "application/json"},
        )
        if answer.status_code >= 400:
            refused += 1
            assert len(answer.content) < LONG, (path, len(answer.content))
            assert CANARY not in answer.text, (path, answer.text)
    assert refused
    assert not any(CANARY in record.getMessage() for record in caplog.records if record.name != "httpx2")


@pytest.mark.parametrize(
    "body",
    [
        f'{{"text": "{CANARY}"'.encode(),
        CANARY.encode() * 1000,
        b"\xff" + CANARY.encode(),
        f'{{"{CANARY}": 1}}'.encode(),
        f'["{CANARY}"]'.encode(),
    ],
)
@pytest.mark.parametrize("path", ["/api/memory", "/api/chat", "/api/identity"])
async def test_no_body_that_cannot_be_read_is_repeated(server, ana, path, body, caplog):
    caplog.set_level(logging.DEBUG)
    answer = await server.client.post(
        path, content=body, headers={**ana.headers, "Content-Type": "application/json"}
    )
    if answer.status_code >= 400:
        assert CANARY not in answer.text
        assert len(answer.content) < LONG
    assert not any(CANARY in record.getMessage() for record in caplog.records if record.name != "httpx2")


V1 = [
    ("/v1/conversations", {"id": "call-1", "agent": "support"}),
    ("/v1/conversations/call-1/truncate", {"heard": "x", "after": "t1"}),
    ("/v1/conversations/call-1/partial", {"text": "home", "alternatives": ["home"], "number": 1}),
    ("/v1/conversations/call-1/final", {"text": "home", "alternatives": ["home"], "deadlineMs": 10_000}),
    ("/v1/recall", {"query": "home", "timezone": "UTC", "besides": ["x"], "limit": 3, "minRelevance": 0}),
    ("/v1/brief", {"query": "home", "timezone": "UTC", "budgetTokens": 100}),
    ("/v1/block", {"agent": "a", "conversation": "call-1", "moment": "home", "besides": ["x"]}),
    ("/v1/memories", {"text": "Ana lives here.", "category": "fact", "context": "x", "saidAt": "2026-01-01"}),
    ("/v1/forget", {"key": "pet"}),
    ("/v1/forget", {"id": "pet"}),
    ("/v1/forget", {"conversation": "pet"}),
    ("/v1/forget", {"asked": "pet"}),
]
TURN = {"speaker": "user", "text": "hello", "id": "t9", "heard": "h", "confidence": 1, "saidAt": "2026-01-01"}


@pytest.mark.parametrize("what", HOSTILE)
async def test_no_refusal_of_v1_repeats_what_was_said(server, what, caplog):
    caplog.set_level(logging.DEBUG)
    ana, hostile = await server.identity(), HOSTILE[what]
    await server.client.post("/v1/conversations", json={"id": "call-1"}, headers=ana.headers)
    asked = [(path, field, {**body, field: hostile}) for path, body in V1 for field in (*body, "nobody")]
    turns = "/v1/conversations/call-1/turns"
    asked += [(turns, field, {"turns": [{**TURN, field: hostile}]}) for field in TURN]
    asked += [("/v1/tokens", "user", {"user": hostile})]
    refused = 0
    for path, field, body in asked:
        headers = {**ana.headers, "Content-Type": "application/json"}
        if path == "/v1/tokens":
            headers["Authorization"] = "Bearer the backend of these tests, for its own users"
        answer = await server.client.post(path, content=json.dumps(body).encode(), headers=headers)
        assert answer.status_code < 500, (path, answer.text)
        if answer.status_code >= 400:
            refused += 1
            assert len(answer.content) < LONG, path
            # ids and options are the programmer's, and an error may name them
            assert CANARY not in answer.text or field in {"timezone", "after"}, (path, body, answer.text)
    assert refused
    assert not any(CANARY in record.getMessage() for record in caplog.records if record.name != "httpx2")


async def test_an_operator_is_told_no_more(server):
    headers = {"Authorization": "Bearer the operator of these tests, and no other"}
    for path in (
        f"/api/proposals/{CANARY}/approve",
        f"/api/proposals/{CANARY}/reject",
        f"/api/global/{CANARY}/withdraw",
        f"/api/lessons/{CANARY}/approve?agent={CANARY}",
        f"/api/lessons/{CANARY}/withdraw?agent={CANARY}",
    ):
        answer = await server.client.post(path, headers=headers)
        assert answer.status_code == 404
        assert CANARY not in answer.text
