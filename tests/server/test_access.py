"""Who gets in: every route, with every kind of token there is."""

from __future__ import annotations

import json
import time

import jwt
import pytest
import pytest_asyncio
from starlette.routing import Mount, Route

from echoic.server import request_callers
from echoic.server.routes import ROUTERS

pytestmark = pytest.mark.asyncio(loop_scope="module")
JSON = {"Content-Type": "application/json"}
ROUTES = [route for router in ROUTERS for route in router.routes]
OPEN = {
    ("GET", "/"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/api/about"),
}
LISTENING = ("GET", "/api/events", None)
REVOKING = ("POST", "/api/identity/revoke", None)
BY_TOKEN = [
    ("GET", "/api/memory", None),
    ("GET", "/api/memories", None),
    ("GET", "/api/memories/home/history", None),
    ("GET", "/api/memories/abc/provenance", None),
    ("GET", "/api/assurance", None),
    ("POST", "/api/conversations", {}),
    ("POST", "/api/conversations/abc/complete", None),
    ("POST", "/api/conversations/abc/truncate", {"heard": ""}),
    ("POST", "/api/chat", {"text": "I live in Oslo"}),
    ("POST", "/api/forget", {"everything": True}),
    ("GET", "/api/export", None),
    ("GET", "/api/profile", None),
    ("GET", "/api/block", None),
    ("GET", "/api/jobs", None),
    ("POST", "/api/chat/stream", {"text": "I live in Oslo"}),
    ("POST", "/api/voice/sessions", {}),
    ("POST", "/api/voice/sessions/x/offer", {}),
    ("POST", "/api/phone/code", None),
    ("POST", "/api/phone/link", {"code": "12345678"}),
    ("GET", "/api/phone/links", None),
    ("POST", "/api/phone/unlink", None),
    ("POST", "/api/phone/pin", {"pin": "482913"}),
    ("DELETE", "/api/phone/pin", None),
    ("POST", "/v1/conversations", {}),
    ("POST", "/v1/conversations/abc/turns", {"turns": [{"speaker": "user", "text": "I live in Oslo"}]}),
    ("GET", "/v1/conversations/abc/turns", None),
    ("POST", "/v1/conversations/abc/truncate", {"heard": ""}),
    ("POST", "/v1/conversations/abc/complete", None),
    ("POST", "/v1/conversations/abc/partial", {"text": "home"}),
    ("POST", "/v1/conversations/abc/final", {"text": "home"}),
    ("POST", "/v1/recall", {"query": "home"}),
    ("POST", "/v1/brief", {"query": "home"}),
    ("POST", "/v1/block", {}),
    ("GET", "/v1/memories", None),
    ("POST", "/v1/memories", {"text": "Somebody lives in Oslo."}),
    ("GET", "/v1/memories/abc", None),
    ("DELETE", "/v1/memories/abc", None),
    ("PUT", "/v1/keys/home", {"value": "Oslo"}),
    ("GET", "/v1/keys/home", None),
    ("DELETE", "/v1/keys/home", None),
    ("POST", "/v1/forget", {"everything": True}),
    ("GET", "/v1/export", None),
    ("GET", "/v1/consent", None),
    ("PUT", "/v1/consent", {"consent": "keep"}),
    ("POST", "/v1/conversations/abc/off-the-record", None),
    ("POST", "/v1/conversations/abc/remember", None),
    ("GET", "/api/consent", None),
    ("PUT", "/api/consent", {"consent": "keep"}),
    ("POST", "/api/conversations/abc/off-the-record", None),
    ("POST", "/api/conversations/abc/remember", None),
    LISTENING,
    REVOKING,
]
OPERATIONS = [
    {"operation": "set", "key": "home", "value": "Oslo"},
    {"operation": "get", "key": "home"},
    {"operation": "delete", "key": "home"},
    {"operation": "query", "query": "home"},
    {"operation": "list"},
]
BY_EITHER = [
    ("GET", "/api/access", None),
    ("GET", "/api/calls", None),
    ("GET", "/api/calls/abc", None),
]
"""Likewise, or by a key."""
BY_OPERATOR = [
    ("GET", "/api/health"),
    ("GET", "/api/proposals"),
    ("GET", "/api/users"),
    ("POST", "/api/proposals/abc/approve"),
    ("POST", "/api/proposals/abc/reject"),
    ("POST", "/api/tokens/abc/revoke"),
]


def claims_of(identity, **changes):
    now = int(time.time())
    return {
        "sub": identity.user,
        "dep": identity.deployment,
        "jti": "a token of these tests",
        "iat": now,
        "exp": now + 60,
        "aud": "echoic",
        **changes,
    }


def without(claims, name):
    return {key: value for key, value in claims.items() if key != name}


@pytest_asyncio.fixture(loop_scope="module")
async def bad_tokens(server, forge):
    """Every way in which a token can be no good, for somebody who exists and has a memory."""
    someone = await server.identity()
    await server.memory_of(someone, "set", key="home", value="Kyoto")
    revoked = await server.identity()
    await server.client.post("/api/identity/revoke", headers=revoked.headers)
    good = claims_of(someone)
    header, payload, signature = someone.token.split(".")
    unsigned = jwt.encode(good, "", algorithm="none")
    return {
        "none at all": None,
        "empty": "",
        "the user's id": someone.user,
        "other secret": forge(good, key="another secret, also long enough for it"),
        "no signature": f"{header}.{payload}.",
        "algorithm none": unsigned,
        "signature of another": f"{header}.{payload}.{signature[::-1]}",
        "other algorithm": forge(
            good, algorithm="HS512", key="of these tests, and long enough for HS256" * 2
        ),
        "expired": forge(claims_of(someone, exp=int(time.time()) - 1)),
        "from the future": forge(claims_of(someone, iat=int(time.time()) + 600)),
        "other audience": forge(claims_of(someone, aud="elsewhere")),
        "no audience": forge(without(good, "aud")),
        "no expiry": forge(without(good, "exp")),
        "expiry in no year": forge(claims_of(someone, exp=10**18)),
        "expiry in words": forge(claims_of(someone, exp=str(int(time.time()) + 60))),
        "no subject": forge(without(good, "sub")),
        "no deployment": forge(without(good, "dep")),
        "no id": forge(without(good, "jti")),
        "revoked": revoked.token,
        "deployment not served": forge(claims_of(someone, dep="elsewhere")),
        "deployment of another kind": forge(claims_of(someone, dep=["default"])),
        "not ascii": "ключ.ключ.ключ",
        "half a character": "\ud800",
        "very long": "a" * 20_000,
    }


def in_header(token):
    """Where a header can hold it; None where it cannot."""
    if token is None:
        return {}
    return {"Authorization": f"Bearer {token}".strip()} if token.isascii() and len(token) < 10_000 else None


@pytest.mark.parametrize(("method", "path", "body"), [*BY_TOKEN, *BY_EITHER])
async def test_a_route_of_the_callers_opens_to_no_bad_token(server, bad_tokens, method, path, body):
    for kind, token in bad_tokens.items():
        headers = in_header(token)
        if headers is None:
            continue
        answer = await server.client.request(method, path, json=body, headers=headers)
        assert answer.status_code == 401, (kind, answer.text)
        assert answer.json()["code"] == "unauthorised"
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "Kyoto" not in answer.text


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation["operation"])
async def test_no_operation_is_done_for_a_bad_token(server, bad_tokens, operation):
    for kind, token in bad_tokens.items():
        body = {**operation, "deploymentId": "default", "userCookie": token}
        answer = await server.client.post("/api/memory", content=_json(body), headers=JSON)
        assert answer.status_code == 401, (kind, answer.text)
        assert "Kyoto" not in answer.text


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation["operation"])
async def test_a_token_does_nothing_in_another_deployment(own, operation):
    acme = await own.identity("acme")
    body = {**operation, "deploymentId": "default", "userCookie": acme.token}
    answer = await own.client.post("/api/memory", json=body)
    assert answer.status_code == 401
    assert await own.memory.users("default") == []


async def test_a_token_in_the_url_is_not_looked_at(server):
    someone = await server.identity()
    for path in ("/api/memories", "/api/export"):
        for name in ("token", "userCookie", "access_token", "authorization"):
            answer = await server.client.get(path, params={name: someone.token})
            assert answer.status_code == 401


async def test_nobody_reads_changes_or_destroys_what_is_anothers(server):
    ana, eve = await server.identity(), await server.identity()
    await server.memory_of(ana, "set", key="home", value="Kyoto, third floor")
    said = await server.say(ana, "My sister is called Maya.")
    for operation in OPERATIONS:
        answer = await server.memory_of(eve, **operation)
        assert "Kyoto" not in answer.text
        assert answer.status_code == 200
    for method, path, body in [
        *(route for route in BY_TOKEN if route not in (LISTENING, REVOKING)),  # one has no end, one ends all
        ("POST", f"/api/conversations/{said['conversation']}/complete", None),
        (
            "POST",
            f"/api/conversations/{said['conversation']}/truncate",
            {"heard": "", "after": said["heard"]["id"]},
        ),
    ]:
        answer = await server.client.request(method, path, json=body, headers=eve.headers)
        assert "Kyoto" not in answer.text
        assert "Maya" not in answer.text
    assert (await server.memory_of(ana, "get", key="home")).json()["result"]["text"] == "Kyoto, third floor"
    exported = (await server.client.get("/api/export", headers=ana.headers)).json()
    (conversation,) = exported["conversations"]
    assert conversation["status"] == "active"
    assert conversation["turns"][0]["text"] == "My sister is called Maya."
    assert [turn.get("heard") for turn in conversation["turns"]] == [None, None]


async def test_what_is_anothers_is_answered_like_what_is_nobodys(server):
    ana, eve = await server.identity(), await server.identity()
    await server.memory_of(ana, "set", key="home", value="Kyoto")
    said = await server.say(ana, "hello")
    for path in ("/api/memories/home/history", "/api/memories/hume/history"):
        answer = await server.client.get(path, headers=eve.headers)
        assert (answer.status_code, answer.json()["versions"]) == (200, [])
    foreign = await server.client.post(
        f"/api/conversations/{said['conversation']}/complete", headers=eve.headers
    )
    missing = await server.client.post("/api/conversations/0123456789/complete", headers=eve.headers)
    assert (
        (foreign.status_code, foreign.content)
        == (missing.status_code, missing.content)
        == (404, missing.content)
    )


@pytest.mark.parametrize(("method", "path"), BY_OPERATOR)
async def test_the_operators_routes_open_to_the_operator_only(server, start, operator, method, path):
    someone = await server.identity()
    for headers in ({}, someone.headers, {"Authorization": "Bearer"}, {"Authorization": "Bearer wrong"}):
        answer = await server.client.request(method, path, headers=headers)
        assert answer.status_code == 401
    known = await server.client.request(method, path, headers=operator)
    assert known.status_code in {200, 404}
    elsewhere = await server.client.request(
        method, path, headers=operator, params={"deploymentId": "elsewhere"}
    )
    assert elsewhere.status_code == 404
    async with start(url="memory://", operator_key=None) as without_operator:
        for headers in ({}, operator, {"Authorization": "Bearer None"}):
            answer = await without_operator.client.request(method, path, headers=headers)
            assert answer.status_code == 404


async def test_the_operators_key_is_nobodys_identity(server, operator):
    for method, path, body in BY_TOKEN:
        answer = await server.client.request(method, path, json=body, headers=operator)
        assert answer.status_code == 401


async def test_every_route_declares_who_may_use_it():
    """A new route that says nothing is open to everybody, which this refuses."""
    guards = {
        request_callers.caller,
        request_callers.body_caller,
        request_callers.query_caller,
        request_callers.operator,
        request_callers.auditor,
        request_callers.key_deployment,
        request_callers.viewer,
        request_callers.reader,
        request_callers.anybody,
    }
    undeclared = {
        (method, route.path)
        for route in ROUTES
        for method in route.methods
        if not guards & _dependencies(route)
    }
    assert undeclared == OPEN


async def test_the_app_serves_nothing_but_those_routes_its_files_and_its_schema(server):
    others = {route.path for route in server.app.routes if isinstance(route, (Route, Mount))}
    assert others - {route.path for route in ROUTES} == {"/openapi.json", "/static"}


async def test_every_route_that_needs_an_identity_is_in_these_tests():
    needing = [r for r in ROUTES if {request_callers.caller, request_callers.query_caller} & _dependencies(r)]
    assert len(needing) == len(BY_TOKEN)
    for route in needing:
        (method,) = route.methods
        assert any(method == m and route.path_regex.match(path) for m, path, _ in BY_TOKEN), route.path


def _dependencies(route):
    found, waiting = set(), [route.dependant]
    while waiting:
        dependant = waiting.pop()
        found.add(dependant.call)
        waiting += dependant.dependencies
    return found


def _json(body):
    return json.dumps(body).encode()  # escapes what UTF-8 cannot carry
