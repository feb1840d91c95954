"""POST /api/memory, as the page of a voice agent's memory tool sends it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEEDED = {"set": ("key", "value"), "get": ("key",), "delete": ("key",), "query": ("query",), "list": ()}
FIELDS = {"key": "home", "value": "Oslo", "query": "where"}


async def test_what_is_set_is_got_listed_found_and_deleted(server, ana):
    kept = (await server.memory_of(ana, "set", key="favourite_coffee", value="flat white")).json()
    assert kept["success"] is True
    assert (kept["result"]["key"], kept["result"]["text"]) == ("favourite_coffee", "flat white")
    assert kept["result"]["visibility"] == "private"
    got = (await server.memory_of(ana, "get", key="favourite_coffee")).json()
    assert got == {**kept, "found": True}
    listed = (await server.memory_of(ana, "list")).json()
    assert listed == {"success": True, "result": [kept["result"]]}
    found = (await server.memory_of(ana, "query", query="which coffee?")).json()
    assert found["memories"][0] == found["result"][0]["memory"] == kept["result"]
    assert found["result"][0]["ranks"]["text"]["rank"] == 1
    deleted = (await server.memory_of(ana, "delete", key="favourite_coffee")).json()
    assert deleted == {"success": True, "result": {"deleted": True, "deletedCount": 1}}
    assert (await server.memory_of(ana, "get", key="favourite_coffee")).json()["result"] is None


async def test_a_remark_recalls_nothing_unless_everything_is_asked_for(server, ana):
    await server.memory_of(ana, "set", key="greeting", value="okay, thanks")
    assert (await server.memory_of(ana, "query", query="Okay, thanks!")).json()["result"] == []
    (hit,) = (await server.memory_of(ana, "query", query="Okay, thanks!", minRelevance=0)).json()["result"]
    assert hit["relevance"] == 0
    (hit,) = (await server.memory_of(ana, "query", query="which greeting?")).json()["result"]
    assert 0 < hit["relevance"] <= 1
    for wrong in (-1, 2, "much"):
        answer = await server.memory_of(ana, "query", query="greeting", minRelevance=wrong)
        assert answer.status_code == 422


async def test_nothing_known_is_a_success_with_nothing_in_it(server, ana):
    answers = {op: await server.memory_of(ana, op, **FIELDS) for op in ("get", "query", "list")}
    assert {answer.status_code for answer in answers.values()} == {200}
    assert answers["get"].json() == {"success": True, "result": None, "found": False}
    assert answers["list"].json() == {"success": True, "result": []}
    searched = answers["query"].json()
    assert (searched["success"], searched["found"]) == (True, False)
    assert (searched["result"], searched["search"]["outcome"]) == ([], "complete")


async def test_deleting_nothing_is_told_from_deleting_something(server, ana):
    answer = await server.memory_of(ana, "delete", key="never set")
    assert answer.status_code == 200
    assert answer.json() == {"success": False, "result": {"deleted": False, "deletedCount": 0}}


@pytest.mark.parametrize(
    ("operation", "missing"), [(operation, field) for operation, needed in NEEDED.items() for field in needed]
)
@pytest.mark.parametrize("how", ["left out", "null"])
async def test_a_missing_field_is_named_with_its_operation(server, ana, operation, missing, how):
    fields = {**FIELDS, missing: None}
    if how == "left out":
        del fields[missing]
    answer = await server.memory_of(ana, operation, **fields)
    assert answer.status_code == 422
    problem = answer.json()
    assert (problem["success"], problem["code"]) == (False, "invalid_input")
    assert (problem["operation"], problem["field"]) == (operation, missing)
    assert repr(operation) in problem["error"]
    assert repr(missing) in problem["error"]
    assert (await server.memory_of(ana, "list")).json()["result"] == []


@pytest.mark.parametrize("operation", [None, "", "SET", "drop", "get ", 7, {"$ne": 1}])
async def test_an_operation_that_is_none_is_refused_with_those_there_are(server, ana, operation):
    body = {**ana.operation("get", **FIELDS), "operation": operation}
    answer = await server.client.post("/api/memory", json=body)
    assert answer.status_code == 422
    assert answer.json()["field"] == "operation"
    assert all(repr(known) in answer.json()["error"] for known in NEEDED)


async def test_no_operation_at_all_is_refused_likewise(server, ana):
    body = ana.operation("get", **FIELDS)
    del body["operation"]
    answer = await server.client.post("/api/memory", json=body)
    assert answer.status_code == 422
    assert answer.json()["field"] == "operation"


async def test_fields_of_other_operations_are_ignored(server, ana):
    """The page sends all of them, with null in those it does not need."""
    body = ana.operation("set", key="home", value="Oslo", query=None, limit=None)
    assert (await server.client.post("/api/memory", json=body)).status_code == 200
    body = ana.operation("get", key="home", value=None, query=None)
    assert (await server.client.post("/api/memory", json=body)).json()["result"]["text"] == "Oslo"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"key": "home", "value": ""}, "value is empty"),
        ({"key": "home", "value": "  "}, "value is empty"),
        ({"key": "", "value": "Oslo"}, "key is empty"),
        ({"key": "home\0", "value": "Oslo"}, "NUL"),
        ({"key": "k" * 257, "value": "Oslo"}, "257 characters"),
        ({"key": "home", "value": "x" * 32_769}, "32769 bytes"),
    ],
)
async def test_a_value_that_cannot_be_kept_is_refused_in_our_words(server, ana, fields, named):
    answer = await server.memory_of(ana, "set", **fields)
    assert answer.status_code == 422
    assert named in answer.json()["error"]
    assert (await server.memory_of(ana, "list")).json()["result"] == []


async def test_half_a_character_is_refused(server, ana):
    for field in ("key", "value"):
        fields = {"key": "home", "value": "Oslo", field: "\\ud83d"}
        body = str(ana.operation("set", **fields)).replace("'", '"').replace("\\\\", "\\")
        answer = await server.client.post(
            "/api/memory", content=body.encode(), headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("limit", [0, -1, 1001, 1.5, "5", True])
async def test_a_limit_that_is_none_is_refused(server, ana, limit):
    answer = await server.memory_of(ana, "query", query="x", limit=limit)
    assert answer.status_code == 422
    assert answer.json()["field"] == "limit"


async def test_a_limit_is_kept(server, ana):
    for number in range(6):
        await server.memory_of(ana, "set", key=f"coffee {number}", value=f"coffee of kind {number}")
    found = (await server.memory_of(ana, "query", query="coffee", limit=4)).json()["result"]
    assert len(found) == 4


@pytest.mark.parametrize(
    "value",
    [
        "𝒜 👩‍👩‍👧 é\u0301 \u202eabc",
        "<script>alert(1)</script>",
        '{"$ne": null}',
        "' OR 1=1 --",
        "a\nb\tc",
        "٣ שלום",
    ],
)
async def test_text_comes_back_exactly_as_it_went_in(server, ana, value):
    for key, text in (("home", value), (value, "Oslo")):
        await server.memory_of(ana, "set", key=key, value=text)
        got = (await server.memory_of(ana, "get", key=key)).json()["result"]
        assert (got["key"], got["text"]) == (key, text)


async def test_the_scope_never_comes_from_the_body(server, ana):
    eve = await server.identity()
    await server.memory_of(ana, "set", key="home", value="Oslo")
    for name in ("user", "userId", "user_id", "scope", "sub", "user_cookie", "deployment_id", "u" * 5000):
        answer = await server.memory_of(eve, "get", key="home", **{name: ana.user})
        assert answer.status_code == 422
        assert (answer.json()["field"], answer.json()["operation"]) == (name[:64], "get")
        assert "Oslo" not in answer.text
        assert len(answer.text) < 400
    assert (await server.memory_of(eve, "get", key="home")).json() == {
        "success": True,
        "result": None,
        "found": False,
    }


class TestBearer:
    async def test_a_bearer_token_is_enough(self, server, ana):
        asked = {"operation": "set", "key": "home", "value": "Oslo"}
        kept = await server.client.post("/api/memory", json=asked, headers=ana.headers)
        assert (kept.status_code, kept.json()["result"]["text"]) == (200, "Oslo")
        named = {"operation": "list", "deploymentId": "default"}
        listed = await server.client.post("/api/memory", json=named, headers=ana.headers)
        assert [memory["text"] for memory in listed.json()["result"]] == ["Oslo"]

    async def test_it_may_be_sent_beside_a_cookie_of_the_same_identity(self, server, ana):
        renewed = (await server.client.post("/api/identity", headers=ana.headers)).json()["userCookie"]
        body = {"operation": "list", "deploymentId": "default", "userCookie": renewed}
        assert (await server.client.post("/api/memory", json=body, headers=ana.headers)).status_code == 200

    async def test_two_identities_are_refused(self, server, ana):
        eve = await server.identity()
        answer = await server.client.post("/api/memory", json=ana.operation("list"), headers=eve.headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorised")

    @pytest.mark.parametrize("sent", ["Bearer nonsense", "Basic YTpi", "Bearer"])
    async def test_a_bad_one_is_refused_with_or_without_a_good_cookie(self, server, ana, sent):
        headers = {"Authorization": sent}
        alone = await server.client.post("/api/memory", json={"operation": "list"}, headers=headers)
        assert alone.status_code == 401
        beside = await server.client.post("/api/memory", json=ana.operation("list"), headers=headers)
        assert beside.status_code == (401 if "nonsense" in sent else 200)

    async def test_it_does_nothing_in_another_deployment(self, server, ana):
        body = {"operation": "list", "deploymentId": "acme"}
        assert (await server.client.post("/api/memory", json=body, headers=ana.headers)).status_code == 401


async def test_what_is_shared_shows_nobody_who_said_it(start, operator):
    async with start(global_writes="auto") as server:
        ana, eve = await server.identity(), await server.identity()
        kept = (await server.memory_of(ana, "set", key="opening hours", value="nine to five")).json()
        assert kept["result"]["visibility"] == "global"
        got = await server.memory_of(eve, "get", key="opening hours")
        assert got.json()["result"]["text"] == "nine to five"
        assert ana.user not in got.text
        assert ana.user not in (await server.memory_of(eve, "query", query="opening hours")).text
        deleted = (await server.memory_of(eve, "delete", key="opening hours")).json()
        assert deleted == {"success": False, "result": {"deleted": False, "deletedCount": 0}}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[]", b'"set"', b"7", b"\xff\xfe", b"{'a': 1}", b"NaN"]
)
async def test_a_body_that_is_no_json_object_is_refused(server, ana, body):
    for path in ("/api/memory", "/api/chat", "/api/forget"):
        answer = await server.client.post(
            path, content=body, headers={**ana.headers, "Content-Type": "application/json"}
        )
        assert answer.status_code in {400, 401, 422}, (path, answer.text)
        assert answer.json()["success"] is False


async def test_json_of_another_name_is_not_taken(server, ana):
    """What a form of another page can send without asking first is no request of ours."""
    body = ana.operation("set", key="home", value="Oslo")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = await server.client.post(
            "/api/memory", content=str(body).replace("'", '"').encode(), headers={"Content-Type": kind}
        )
        assert answer.status_code == 422
    assert (await server.memory_of(ana, "list")).json()["result"] == []


HOURS = "The store is open from 9 to 17."


async def test_a_set_may_be_private_and_says_why(server):
    someone = await server.identity("acme")
    offered = (await server.memory_of(someone, "set", key="opening_hours", value=HOURS)).json()["result"]
    assert (offered["visibility"], offered["reason"]) == ("proposed", "hours")
    private = {"key": "opening_hours", "value": HOURS, "visibility": "private"}
    kept = (await server.memory_of(someone, "set", **private)).json()["result"]
    assert (kept["visibility"], kept["reason"]) == ("private", "asked")
    refused = await server.memory_of(someone, "set", **{**private, "visibility": "global"})
    assert refused.status_code == 422
