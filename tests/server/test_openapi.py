"""The schema is a promise to clients: complete, and kept by what is really answered."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import pytest_asyncio

import forked
from echoic.server.routes import ROUTERS

pytestmark = pytest.mark.asyncio(loop_scope="module")


STREAMS = {"/api/chat/stream", "/api/events", "/api/health/events", "/api/watch"}
OTHERWISE = dict.fromkeys(STREAMS, "text/event-stream") | {
    "/api/voice/sessions/{session}/offer": "application/sdp"
}
OPEN = {"/healthz", "/readyz", "/api/about", "/api/voice"}


@pytest_asyncio.fixture(loop_scope="module")
async def schema(server):
    return (await server.client.get("/openapi.json")).json()


def operations(schema):
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


async def test_routes_are_served_as_they_were_built(server):
    """FastAPI builds those of an included router anew, a tenth of a second, in the middle of the first request."""
    served = {id(route) for route in server.app.routes}
    assert all(id(route) in served for router in ROUTERS for route in router.routes)


async def test_every_operation_says_what_it_does_and_what_it_answers(schema):
    found = list(operations(schema))
    assert len(found) >= 15
    for path, method, operation in found:
        assert operation["summary"], path
        assert operation["tags"], path
        content = operation["responses"]["200"]["content"]
        kind = OTHERWISE.get(path, "application/json")
        assert list(content) == [kind], path
        answer = content[kind]["schema"]
        assert answer, (path, method)
        if operation.get("requestBody"):
            asked = "application/json" if path in STREAMS else kind
            assert asked in operation["requestBody"]["content"]


async def test_every_error_is_a_problem(schema):
    for path, _, operation in operations(schema):
        for status, response in operation["responses"].items():
            if int(status) >= 400 and not (path == "/readyz" and status == "503"):
                reference = response["content"]["application/json"]["schema"]["$ref"]
                assert reference == "#/components/schemas/Problem", (path, status)
                assert response["description"]


async def test_who_needs_what_is_declared(schema):
    schemes = schema["components"]["securitySchemes"]
    assert {name: scheme["scheme"] for name, scheme in schemes.items()} == {
        "identity": "bearer",
        "key": "bearer",
        "operator": "bearer",
    }
    for path, method, operation in operations(schema):
        named = {name for need in operation.get("security", []) for name in need}
        if path.startswith(
            (
                "/api/proposals",
                "/api/tokens",
                "/api/global",
                "/api/lessons",
                "/api/decisions",
                "/api/audit",
                "/api/health",
                "/api/users",
                "/api/watch",
                "/api/cookies/people",
            )
        ):
            assert named == {"operator"}
            assert "401" in operation["responses"]
        elif path == "/v1/tokens":
            assert named == {"key"}
            assert "401" in operation["responses"]
        elif path == "/api/cookies/key":
            assert named == {"identity", "key"}
        elif path in OPEN or (path, method) == ("/api/cookies", "delete"):
            assert named == set()
        elif path == "/api/memory":
            assert operation["security"] == [{"identity": []}, {}], "or in the body"
        else:
            assert named == {"identity"}
            assert "401" in operation["responses"]


def bodies(schema):
    """Every schema of a request's JSON body, by route."""
    for path, method, operation in operations(schema):
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if content is None:
            continue
        asked = content["schema"]
        choices = asked.get("oneOf") or asked.get("anyOf") or [asked]
        for choice in choices:
            if "$ref" in choice:
                yield path, method, schema["components"]["schemas"][choice["$ref"].rsplit("/", 1)[1]]


async def test_no_body_may_hold_a_field_that_is_not_declared(server, schema, ana):
    """`{"deployment": "other"}` would give an identity of another deployment than was meant."""
    asked = list(bodies(schema))
    assert len({path for path, _, _ in asked}) >= 8
    for path, method, body in asked:
        assert body["additionalProperties"] is False, path
        constants = {
            name: field.get("const", "x")
            for name, field in body["properties"].items()
            if name in body.get("required", ())
        }
        sent = {**constants, "deployment": "other"}
        headers = {} if path == "/api/identity" else ana.headers
        if path in {"/api/global", "/v1/tokens", "/api/cookies/people"}:
            headers = {
                "Authorization": "Bearer the operator of these tests, and no other",
                "X-Echoic-Caller": "new",
            }
        url = path.replace("{conversation}", "c").replace("{session}", "s").replace("{key}", "k")
        answer = await server.client.request(method, url, json=sent, headers=headers)
        assert answer.status_code == 422, path
        assert answer.json()["field"] == "deployment", path
        assert "no field 'deployment'" in answer.json()["error"]


async def test_the_operations_of_a_memory_are_told_apart_and_shown_by_example(schema):
    content = schema["paths"]["/api/memory"]["post"]["requestBody"]["content"]["application/json"]
    assert content["schema"]["discriminator"]["propertyName"] == "operation"
    assert set(content["schema"]["discriminator"]["mapping"]) == {"set", "get", "delete", "query", "list"}
    assert set(content["examples"]) == {"set", "get", "delete", "query", "list"}


async def test_the_examples_are_taken_by_the_server(server, schema):
    ana = await server.identity()
    content = schema["paths"]["/api/memory"]["post"]["requestBody"]["content"]["application/json"]
    for name, example in content["examples"].items():
        body = {**example["value"], "userCookie": ana.token}
        answer = await server.client.post("/api/memory", json=body)
        assert answer.status_code == 200, (name, answer.text)


async def test_no_vector_and_no_author_is_in_any_model(schema):
    text = json.dumps(schema["components"]["schemas"])
    assert '"author"' not in text
    assert '"embedding"' not in text
    for model in schema["components"]["schemas"].values():
        for name, field in model.get("properties", {}).items():
            assert not (name == "vector" and field.get("type") == "array")


async def test_what_is_answered_has_the_fields_the_schema_names(server, schema):
    ana = await server.identity()
    await server.say(ana, "I live in Oslo")
    models = schema["components"]["schemas"]
    said = await server.say(ana, "Where do I live?")
    assert set(said) == set(models["AgentAnswer"]["properties"])
    assert set(said["recall"]["hits"][0]) == set(models["HitView"]["properties"])
    (memory,) = (await server.client.get("/api/memories", headers=ana.headers)).json()["memories"]
    assert set(memory) == set(models["MemoryView"]["properties"])


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/docs/oauth2-redirect"])
async def test_there_is_no_page_that_loads_scripts_from_elsewhere(server, path):
    assert (await server.client.get(path)).status_code == 404


async def test_the_typescript_clients_types_are_of_this_schema():
    script = Path(__file__).parents[2] / "scripts" / "client_types.py"
    forked.run([sys.executable, script, "--check"], check=True, timeout=60)
