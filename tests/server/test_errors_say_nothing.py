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
