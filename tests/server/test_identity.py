from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="module")


def claims(token):
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


async def test_an_identity_is_random_and_of_its_deployment(server):
    given = [await server.identity("acme") for _ in range(50)]
    users = {identity.user for identity in given}
    assert len(users) == 50
    # a version 4 UUID: 32 hexadecimal digits, of which two places are fixed
    assert all(len(user) == 32 and int(user, 16) >= 0 and user[12] == "4" for user in users)
    assert {claims(identity.token)["dep"] for identity in given} == {"acme"}


async def test_a_body_is_not_needed(server):
    answer = await server.client.post("/api/identity")
    assert answer.status_code == 200
    assert answer.json()["deploymentId"] == "default"
    assert answer.json()["renewed"] is False


@pytest.mark.parametrize("place", ["header", "body"])
async def test_presenting_an_identity_renews_it_for_the_same_user(start, place):
    async with start(url="memory://", token_lifetime_s=100) as server:
        first = await server.identity("acme")
        await asyncio.sleep(1.1)  # times in a token are whole seconds
        sent = {"headers": first.headers} if place == "header" else {"json": {"userCookie": first.token}}
        renewed = (await server.client.post("/api/identity", **sent)).json()
        assert (renewed["user"], renewed["deploymentId"], renewed["renewed"]) == (first.user, "acme", True)
        assert claims(renewed["userCookie"])["exp"] > claims(first.token)["exp"]
        expires = datetime.fromisoformat(renewed["expiresAt"])
        assert timedelta(0) < expires - datetime.now(UTC) <= timedelta(seconds=100)


async def test_an_identity_that_is_no_good_is_refused_and_not_replaced(server, forge):
    gone = forge({"sub": "a" * 32, "dep": "default", "iat": 1, "exp": 2, "aud": "echoic"})
    for sent in ({"headers": {"Authorization": f"Bearer {gone}"}}, {"json": {"userCookie": gone}}):
        answer = await server.client.post("/api/identity", **sent)
        assert answer.status_code == 401
        assert "expired" in answer.json()["error"]
        assert "userCookie" not in answer.json()


async def test_renewing_does_not_move_anybody_to_another_deployment(server):
    acme = await server.identity("acme")
    answer = await server.client.post("/api/identity", json={"deploymentId": "default"}, headers=acme.headers)
    assert answer.status_code == 401


@pytest.mark.parametrize("deployment", ["elsewhere", "Default", " default", "default\u200b"])
async def test_there_is_no_identity_in_a_deployment_that_is_not_served(server, deployment):
    answer = await server.client.post("/api/identity", json={"deploymentId": deployment})
    assert answer.status_code == 403
    assert answer.json()["code"] == "deployment_not_served"


async def test_any_deployment_can_be_served_if_so_settled(start):
    async with start(url="memory://", deployments=None) as server:
        assert (await server.identity("whatever")).deployment == "whatever"
        answer = await server.client.post("/api/identity", json={"deploymentId": ""})
        assert answer.status_code == 422


async def test_another_secret_ends_every_identity(start, tmp_path):
    url = f"sqlite:///{tmp_path}/kept.db"
    async with start(url=url) as server:
        ana = await server.identity()
        await server.memory_of(ana, "set", key="home", value="Kyoto")
    async with start(url=url) as server:  # the same secret: a restart ends none
        assert (await server.memory_of(ana, "get", key="home")).json()["result"]["text"] == "Kyoto"
    async with start(url=url, secret="another secret, also long enough for it") as server:
        assert (await server.memory_of(ana, "get", key="home")).status_code == 401


async def test_an_identity_ends_when_its_time_is_over(start):
    async with start(url="memory://", token_lifetime_s=1) as server:
        ana = await server.identity()
        assert (await server.client.get("/api/memories", headers=ana.headers)).status_code == 200
        await asyncio.sleep(2.1)
        assert (await server.client.get("/api/memories", headers=ana.headers)).status_code == 401
