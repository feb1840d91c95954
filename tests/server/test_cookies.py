"""The page's cookies: what sets them, what reads them, and what they are not good for."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from datetime import timedelta

import httpx
import jwt
import pytest

from echoic.memory.deployment_keys import GRACE_S
from echoic.server.credentials import MAX_CALLERS
from server.conftest import AGENT_KEY, OPERATOR_KEY, SECRET, started

pytestmark = pytest.mark.asyncio(loop_scope="module")
NEW = {"X-Echoic-Caller": "new"}


class Browser:
    """An HTTP client with a cookie jar, as a page of the server uses it."""

    def __init__(self, client):
        self.client = client

    async def meets(self, **headers):
        """Somebody new; what names their cookie, and the answer."""
        answer = await self.client.post("/api/cookies", headers={**NEW, **headers})
        assert answer.status_code == 200, answer.text
        return answer.json()["caller"], answer

    async def asks(self, method, path, caller, **more):
        return await self.client.request(method, path, headers={"X-Echoic-Caller": caller}, **more)

    def cookie(self, caller):
        return next((each.value for each in self.client.cookies.jar if each.name == f"echoic_{caller}"), None)


@asynccontextmanager
async def browsing(server, **more):
    async with httpx.AsyncClient(base_url=server.url, timeout=30, verify=False, **more) as client:
        yield Browser(client)


@pytest.fixture
async def browser(server):
    async with browsing(server) as opened:
        yield opened


def attributes(answer):
    """Of the one cookie that an answer sets: its name, value and attributes."""
    (line,) = answer.headers.get_list("set-cookie")
    first, *rest = line.split("; ")
    name, _, value = first.partition("=")
    return name, value, {each.partition("=")[0].lower(): each.partition("=")[2] for each in rest}


async def test_a_pages_token_is_in_a_cookie_that_scripts_and_other_sites_cannot_use(browser):
    caller, answer = await browser.meets()
    name, token, found = attributes(answer)
    assert name == f"echoic_{caller}"
    assert {"httponly", "path", "max-age", "samesite"} <= set(found)
    assert "domain" not in found
    assert "secure" not in found, "the page came over http"
    assert (found["path"], found["samesite"]) == ("/", "strict")
    claims = jwt.decode(token, SECRET, algorithms=["HS256"], audience="echoic")
    assert int(found["max-age"]) == pytest.approx(claims["exp"] - time.time(), abs=60)
    assert token not in answer.text


async def test_over_https_the_cookie_is_secure_and_of_this_host_alone(browser):
    url = str(browser.client.base_url)
    caller, answer = await browser.meets(Origin=url)  # control
    assert "secure" not in attributes(answer)[2]
    behind_a_proxy = started("memory://", allowed_origins=("https://voice.example.com",))
    async with behind_a_proxy as server, browsing(server) as proxied:
        caller, answer = await proxied.meets(Origin="https://voice.example.com")
        name, token, found = attributes(answer)
        assert name == f"__Host-echoic_{caller}"
        assert {"secure", "httponly"} <= set(found)
        assert (found["path"], found["samesite"]) == ("/", "strict")
        assert "domain" not in found
        headers = {"X-Echoic-Caller": caller, "Cookie": f"{name}={token}"}
        assert (await proxied.client.get("/api/access", headers=headers)).status_code == 200


async def test_a_cookie_counts_only_with_the_header_that_names_it(browser):
    caller, _ = await browser.meets()
    other, _ = await browser.meets()
    assert (await browser.asks("GET", "/api/access", caller)).json()["role"] == "user"
    for path in ("/api/access", "/api/export", "/api/memories", "/v1/memories", "/api/calls"):
        refused = await browser.client.get(path)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorised"), path
    for name in ("new", "", "0" * 32, caller[:-1], f"as-{caller}", f"key-{caller}", "a; Domain=evil.example"):
        assert (await browser.asks("GET", "/api/access", name)).status_code == 401, name
    users = {(await browser.asks("GET", "/api/access", each)).json()["user"] for each in (caller, other)}
    assert len(users) == 2


async def test_a_page_of_another_site_gets_nothing_done_by_the_cookies(browser):
    """A browser sends no custom header across sites unless it was told that it may."""
    caller, _ = await browser.meets()
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-echoic-caller"}
    elsewhere = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    preflight = await browser.client.options("/api/chat", headers={**elsewhere, **asked})
    assert preflight.status_code == 403
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    body = {"text": "I live in Oslo"}
    for headers in (elsewhere, {**elsewhere, "X-Echoic-Caller": caller}):
        for path in ("/api/chat", "/api/cookies", "/api/identity/revoke", "/api/forget"):
            refused = await browser.client.post(path, json=body, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "origin_not_allowed")
            assert "set-cookie" not in refused.headers
    for path in ("/api/cookies", "/api/cookies/people", "/api/cookies/key"):
        refused = await browser.client.post(path, json={"user": "ana"})  # as a form would
        assert refused.status_code >= 400
        assert "set-cookie" not in refused.headers
    assert (await browser.asks("GET", "/api/memories", caller)).json()["memories"] == []


async def test_a_page_whose_origin_may_use_the_api_may_not_use_its_cookies():
    async with started("memory://", allowed_origins=("https://app.example.com",)) as server:
        asked = {"Origin": "https://app.example.com", "Access-Control-Request-Method": "GET"}
        for wanted, status in (("authorization", 200), ("x-echoic-caller", 400)):
            headers = {**asked, "Access-Control-Request-Headers": wanted}
            answer = await server.client.options("/api/export", headers=headers)
            assert answer.status_code == status, wanted
            assert "access-control-allow-credentials" not in answer.headers


async def test_a_cookie_put_in_the_place_of_anothers_is_refused(browser, server):
    caller, _ = await browser.meets()
    theirs = await server.identity()
    key, _ = await server.memory.keys("default").create("agent")
    for value in (theirs.token, AGENT_KEY, OPERATOR_KEY, key):
        headers = {"X-Echoic-Caller": caller, "Cookie": f"echoic_{caller}={value}"}
        refused = await browser.client.get("/api/access", headers=headers)
        assert refused.status_code == 401, value


async def test_renewing_rotates_the_token_and_the_one_before_ends(start):
    class Clock:
        passed = timedelta(0)

    async with start(token_lifetime_s=3600) as server, browsing(server) as browser:
        caller, _ = await browser.meets()
        first = browser.cookie(caller)
        again = await browser.asks("POST", "/api/cookies", caller)
        assert again.json()["caller"] == caller
        second = browser.cookie(caller)
        assert second != first
        assert (await browser.asks("GET", "/api/access", caller)).status_code == 200
        clock = server.memory.revocations("default")
        now = clock._clock
        Clock.passed = timedelta(seconds=GRACE_S + 1)
        server.memory.revocations = lambda _: later
        later = type(clock)(clock._store, clock._scope, lambda: now() + Clock.passed)
        stolen = {"X-Echoic-Caller": caller, "Cookie": f"echoic_{caller}={first}"}
        async with browsing(server) as thief:
            assert (await thief.client.get("/api/access", headers=stolen)).status_code == 401
            renewed = await thief.client.post("/api/cookies", headers=stolen)
            assert (renewed.status_code, renewed.headers.get_list("set-cookie")) == (401, [])
        assert (await browser.asks("GET", "/api/access", caller)).status_code == 200


async def test_no_cookie_gets_a_token_or_a_key_into_an_answer(browser):
    """Else a script that reads answers had what the cookies keep from it."""
    caller, _ = await browser.meets()
    signed = await browser.client.post("/api/cookies/key", headers={**NEW, **bearer(OPERATOR_KEY)})
    key = signed.json()["caller"]
    asks = [
        ("POST", "/api/identity", {}),
        ("POST", "/api/cookies", {}),
        ("POST", "/api/cookies/people", {"user": "ana"}),
        ("POST", "/api/cookies/key", {}),
        ("POST", "/v1/tokens", {"user": "ana"}),
        ("GET", "/api/access", None),
    ]
    answers = [await browser.asks(m, p, name, json=body) for name in (caller, key) for m, p, body in asks]
    kept = [each.value for each in browser.client.cookies.jar]
    for answer in answers:
        assert not [value for value in (*kept, OPERATOR_KEY) if value in answer.text], answer.request.url
    assert {a.status_code for a in answers if a.request.url.path == "/v1/tokens"} == {401}
    anew = [json.loads(a.text) for a in answers if a.request.url.path == "/api/identity"]
    mine = (await browser.asks("GET", "/api/access", caller)).json()["user"]
    assert all(each["user"] != mine for each in anew), "a token of somebody new, as without any cookie"


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


async def test_whoever_signs_in_with_a_key_has_its_role_by_a_cookie_without_the_key(browser, server):
    made, listed = await server.memory.keys("default").create("read-only")
    for given, role in ((OPERATOR_KEY, "operator"), (AGENT_KEY, "agent"), (made, "read-only")):
        answer = await browser.client.post("/api/cookies/key", headers={**NEW, **bearer(given)})
        assert (answer.status_code, answer.json()["role"]) == (200, role)
        _, value, found = attributes(answer)
        assert "max-age" not in found, "until the browser is closed"
        assert {"httponly", "samesite"} <= set(found)
        assert given not in f"{value}{json.dumps(jwt.decode(value, options={'verify_signature': False}))}"
        caller = answer.json()["caller"]
        assert (await browser.asks("GET", "/api/access", caller)).json()["role"] == role
        allowed = (await browser.asks("GET", "/api/users", caller)).status_code
        assert allowed == (401 if role == "agent" else 200)
    assert (await browser.asks("POST", "/api/cookies/people", caller, json={"user": "a"})).status_code == 403
    await server.memory.keys("default").revoke(listed.id)
    assert (await browser.asks("GET", "/api/access", caller)).status_code == 401
    for given in ("no key", browser.cookie(caller)):
        refused = await browser.client.post("/api/cookies/key", headers={**NEW, **bearer(given)})
        assert refused.status_code == 401
    assert (await browser.client.get("/api/users", headers=bearer(browser.cookie(caller)))).status_code == 401


async def test_a_sign_in_ends_after_its_time_and_with_its_key(browser, server, forge):
    answer = await browser.client.post("/api/cookies/key", headers={**NEW, **bearer(OPERATOR_KEY)})
    name, value, _ = attributes(answer)
    claims = jwt.decode(value, SECRET, algorithms=["HS256"], audience="echoic-key")
    for changed, key in (
        ({**claims, "exp": int(time.time()) - 1}, SECRET),
        ({**claims, "aud": "echoic"}, SECRET),
        ({**claims, "sub": f"key-{'0' * 32}"}, SECRET),
        ({k: v for k, v in claims.items() if k != "exp"}, SECRET),
        (claims, "another secret, also long enough for it"),
    ):
        headers = {"X-Echoic-Caller": answer.json()["caller"], "Cookie": f"{name}={forge(changed, key=key)}"}
        assert (await browser.client.get("/api/users", headers=headers)).status_code == 401
    async with started("memory://", operator_key="another operator of these tests, since today") as server:
        headers = {"X-Echoic-Caller": answer.json()["caller"], "Cookie": f"{name}={value}"}
        assert (await server.client.get("/api/users", headers=headers)).status_code == 401


async def test_an_operators_page_acts_for_a_person_by_a_cookie_of_a_quarter_of_an_hour(browser, server):
    await server.memory.user("crm ünï|1").set("home", "Kyoto")
    signed = await browser.client.post("/api/cookies/key", headers={**NEW, **bearer(OPERATOR_KEY)})
    opened = await browser.asks(
        "POST", "/api/cookies/people", signed.json()["caller"], json={"user": "crm ünï|1"}
    )
    _, _, found = attributes(opened)
    assert int(found["max-age"]) == pytest.approx(900, abs=60)
    person = opened.json()["caller"]
    assert "Kyoto" in (await browser.asks("GET", "/api/memories", person)).text
    assert (await browser.asks("POST", "/api/cookies", person)).status_code == 403, "not renewed by itself"
    caller, _ = await browser.meets()
    refused = await browser.asks("POST", "/api/cookies/people", caller, json={"user": "crm ünï|1"})
    assert refused.status_code == 401


async def test_signing_out_and_revoking_clear_the_cookie(browser):
    for path, method, works in (("/api/cookies", "DELETE", 200), ("/api/identity/revoke", "POST", 401)):
        caller, _ = await browser.meets()
        token = browser.cookie(caller)
        assert (await browser.asks(method, path, caller)).status_code == 200
        assert browser.cookie(caller) is None
        assert (await browser.asks("GET", "/api/access", caller)).status_code == 401
        assert (await browser.client.get("/api/access", headers=bearer(token))).status_code == works


async def test_a_browser_keeps_so_many_callers_and_never_more_cookies_than_a_header_holds(start):
    async with start() as server, browsing(server) as browser:
        callers = [(await browser.meets())[0] for _ in range(MAX_CALLERS)]
        refused = await browser.client.post("/api/cookies", headers=NEW)
        assert (refused.status_code, refused.json()["code"]) == (409, "too_many_callers")
        signed = await browser.client.post("/api/cookies/key", headers={**NEW, **bearer(OPERATOR_KEY)})
        for number in range(8):
            key = signed.json()["caller"]
            await browser.asks("POST", "/api/cookies/people", key, json={"user": f"person {number}"})
        sent = (await browser.asks("GET", "/api/access", key)).request.headers["cookie"]
        assert len(sent) < 8 * 1024
        for caller in (*callers, key):
            assert (await browser.asks("GET", "/api/access", caller)).status_code == 200
        await browser.asks("DELETE", "/api/cookies", callers[0])
        await browser.meets()


async def test_a_client_with_a_bearer_token_needs_no_cookie_and_gets_none(server, ana):
    answer = await server.client.post("/api/identity", headers=ana.headers)
    assert (answer.json()["renewed"], answer.headers.get_list("set-cookie")) == (True, [])
    both = await server.client.get("/api/access", headers={**ana.headers, "X-Echoic-Caller": "0" * 32})
    assert both.json()["user"] == ana.user
