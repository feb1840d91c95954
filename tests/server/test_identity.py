from __future__ import annotations

import asyncio
import base64
import json
import time
from datetime import UTC, datetime, timedelta

import pytest

from echoic.server import request_callers
from echoic.server.credentials import IdentityTokens, TokenRefused
from echoic.types import Scope
from server.conftest import settings_of

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
    gone = forge({"sub": "a" * 32, "dep": "default", "jti": "a", "iat": 1, "exp": 2, "aud": "echoic"})
    for sent in ({"headers": {"Authorization": f"Bearer {gone}"}}, {"json": {"userCookie": gone}}):
        answer = await server.client.post("/api/identity", **sent)
        assert answer.status_code == 401
        assert "expired" in answer.json()["error"]
        assert "userCookie" not in answer.json()
    claims = {"sub": "ana", "dep": "default", "jti": "a", "iat": 1, "exp": 2, "aud": "echoic"}
    backends = forge({**claims, "renewable": False})
    answer = await server.client.post("/api/identity", headers={"Authorization": f"Bearer {backends}"})
    assert answer.status_code == 401
    assert "POST /v1/tokens" in answer.json()["error"]


async def test_a_token_that_was_good_a_moment_ago_is_refused_once_its_time_is_over(monkeypatch):
    tokens = IdentityTokens(settings_of(token_lifetime_s=100))
    minted = tokens.mint("default")
    assert tokens.verify(minted.token) == tokens.verify(minted.token) == minted.principal
    with pytest.raises(TokenRefused, match="gave out"):
        tokens.verify(minted.token[:-2] + "xx")
    backends = tokens.mint_for("ana", "default", 100)
    tokens.verify(backends.token)
    monkeypatch.setattr(request_callers.time, "time", backends.principal.expires_at.timestamp)
    with pytest.raises(TokenRefused, match="expired.*POST /api/identity"):
        tokens.verify(minted.token)
    with pytest.raises(TokenRefused, match="expired.*POST /v1/tokens"):
        tokens.verify(backends.token)


async def test_an_identity_of_a_server_whose_clock_is_a_moment_ahead_is_taken_and_expiry_has_no_tolerance(
    server, forge
):
    now = int(time.time())

    async def status(**changes):
        claims = {
            "sub": "a" * 32,
            "dep": "default",
            "jti": "b",
            "iat": now,
            "exp": now + 900,
            "aud": "echoic",
        }
        headers = {"Authorization": f"Bearer {forge({**claims, **changes})}"}
        return (await server.client.get("/api/memories", headers=headers)).status_code

    assert [await status(iat=now + 20), await status(nbf=now + 20)] == [200, 200]
    assert [await status(iat=now + 600), await status(nbf=now + 600)] == [401, 401]
    assert [await status(iat="soon"), await status(iat=float("inf")), await status(exp=now - 1)] == [401] * 3


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
    async with start(url="memory://", token_lifetime_s=5) as server:
        ana = await server.identity()
        assert (await server.client.get("/api/memories", headers=ana.headers)).status_code == 200
        await asyncio.sleep(6.1)
        assert (await server.client.get("/api/memories", headers=ana.headers)).status_code == 401


async def test_a_revoked_identity_is_refused_at_once_with_all_its_renewals_and_nobody_elses(start, tmp_path):
    url = f"sqlite:///{tmp_path}/kept.db"
    async with start(url=url) as server:
        ana, eve = await server.identity(), await server.identity()
        await server.memory_of(ana, "set", key="home", value="Kyoto")
        renewed = (await server.client.post("/api/identity", headers=ana.headers)).json()
        assert renewed["tokenId"] == claims(ana.token)["jti"] != claims(eve.token)["jti"]
        revoked = await server.client.post("/api/identity/revoke", headers=ana.headers)
        assert revoked.json() == {"revoked": renewed["tokenId"]}
        for token in (ana.token, renewed["userCookie"]):
            headers = {"Authorization": f"Bearer {token}"}
            for method, path in (("GET", "/api/memories"), ("POST", "/api/identity")):
                answer = await server.client.request(method, path, headers=headers)
                assert answer.status_code == 401
                assert "revoked" in answer.json()["error"]
        assert (await server.memory_of(eve, "list")).status_code == 200
    async with start(url=url) as server:  # it is a record, not a list in a process
        assert (await server.client.get("/api/memories", headers=ana.headers)).status_code == 401
        assert (await server.memory.user(ana.user).get("home")).text == "Kyoto"


async def renewed(server, token):
    answer = await server.client.post("/api/identity", headers={"Authorization": f"Bearer {token}"})
    return answer.json()["userCookie"] if answer.status_code == 200 else answer.status_code


async def lists(server, token):
    answer = await server.client.get("/api/memories", headers={"Authorization": f"Bearer {token}"})
    return answer.status_code


async def test_a_token_ends_a_grace_after_its_renewal_is_used(start, tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/kept.db"
    async with start(url=url) as server:
        eve, first = (await server.identity()).token, (await server.identity()).token
        second = await renewed(server, first)
        assert await lists(server, second) == 200
        assert await lists(server, first) == 200, "requests are under way with it"
        monkeypatch.setattr("echoic.memory.deployment_keys.GRACE_S", -1.0)
        assert await lists(server, first) == 401
        assert await renewed(server, first) == 401
        assert await lists(server, second) == 200, "what is sent again ends nothing of others"
        third = await renewed(server, second)
        assert [await lists(server, token) for token in (third, second, first)] == [200, 401, 401]
    async with start(url=url) as server:
        assert [await lists(server, token) for token in (third, second, first, eve)] == [200, 401, 401, 200]


async def test_in_the_grace_of_one_renewal_no_token_of_an_earlier_one_is_taken(own):
    first = (await own.identity()).token
    second = await renewed(own, first)
    third = await renewed(own, second)
    assert await lists(own, third) == 200
    assert [await lists(own, token) for token in (second, first)] == [200, 401]


async def test_a_renewal_whose_answer_was_lost_ends_nothing(own, monkeypatch):
    monkeypatch.setattr("echoic.memory.deployment_keys.GRACE_S", -1.0)
    first = (await own.identity()).token
    await renewed(own, first)  # and never arrives
    assert await lists(own, first) == 200
    second = await renewed(own, first)
    assert [await lists(own, token) for token in (second, first)] == [200, 401]


async def test_a_token_that_was_revoked_is_not_revived_by_a_renewal_that_is_used_later(own):
    first = await own.identity()
    second = await renewed(own, first.token)
    await own.client.post("/api/identity/revoke", headers=first.headers)
    assert [await lists(own, token) for token in (second, first.token, second)] == [401, 401, 401]


async def test_where_nothing_can_be_written_a_renewal_opens_what_can_be_read(own, monkeypatch):
    from echoic.errors import StoreUnavailable

    first = (await own.identity()).token
    second = await renewed(own, first)

    async def full(*_args, **_more):
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as now:
        now.setattr(own.memory._parts.store._observed, "write", full)
        assert await lists(own, second) == 200
    monkeypatch.setattr("echoic.memory.deployment_keys.GRACE_S", -1.0)
    assert [await lists(own, token) for token in (second, first)] == [200, 401]


@pytest.mark.parametrize("renewals", [-1, True, "1", 1.0, None])
async def test_a_count_of_renewals_that_is_none_is_refused(server, forge, renewals):
    good = {"sub": "a" * 32, "dep": "default", "jti": "a", "iat": 1, "exp": 4_000_000_000, "aud": "echoic"}
    assert await lists(server, forge({**good, "renewals": renewals})) == 401
    assert await lists(server, forge(good)) == 200


async def test_a_stream_of_events_goes_on_when_its_identity_is_renewed(start, monkeypatch):
    monkeypatch.setattr("echoic.memory.deployment_keys.GRACE_S", -1.0)
    async with start(url="memory://", beat_s=0.05) as server:
        first = await server.identity()
        async with server.client.stream("GET", "/api/events", headers=first.headers) as line:
            beats = line.aiter_bytes()
            await anext(beats)
            second = await renewed(server, first.token)
            assert [await lists(server, token) for token in (second, first.token)] == [200, 401]
            for _ in range(3):
                assert await anext(beats)


async def test_forgetting_a_user_revives_no_revoked_identity(own):
    ana = await own.identity()
    await own.client.post("/api/identity/revoke", headers=ana.headers)
    await own.memory.user(ana.user).forget()
    assert (await own.client.get("/api/memories", headers=ana.headers)).status_code == 401


async def test_the_operator_revokes_by_id_in_one_deployment(own, operator):
    ana, acme = await own.identity(), await own.identity("acme")
    for identity, deployment in ((ana, "acme"), (acme, "acme")):
        name = claims(identity.token)["jti"]
        answer = await own.client.post(
            f"/api/tokens/{name}/revoke", params={"deploymentId": deployment}, headers=operator
        )
        assert answer.json() == {"revoked": name}
    assert (await own.client.get("/api/memories", headers=ana.headers)).status_code == 200
    assert (await own.client.get("/api/memories", headers=acme.headers)).status_code == 401


async def test_a_revocation_names_nobody_and_goes_when_the_token_would_have(own):
    from echoic.memory.deployment_keys import REVOCATION

    store, everyone = own.memory._parts.store, Scope("default", None)
    ana = await own.identity()
    await own.client.post("/api/identity/revoke", headers=ana.headers)
    (record,) = await store.scan(everyone, REVOCATION)
    assert claims(ana.token)["jti"] not in str(record)
    assert ana.user not in str(record)
    revocations = own.memory.revocations()
    await revocations.revoke("of long ago", datetime.now(UTC) - timedelta(seconds=1))
    await revocations.revoke("of now", datetime.now(UTC) + timedelta(hours=1))
    kept = await store.scan(everyone, REVOCATION)
    assert len(kept) == 2
    assert record.id in {one.id for one in kept}


@pytest.mark.parametrize("by", ["itself", "id"])
async def test_a_revocation_outlasts_a_token_from_before_lifetimes_were_shortened(start, operator, by):
    from echoic.memory.deployment_keys import REVOCATION

    minted = IdentityTokens(settings_of(token_lifetime_s=9000)).mint("default")
    async with start(url="memory://", token_lifetime_s=60) as server:
        headers = {"Authorization": f"Bearer {minted.token}"}
        path = "/api/identity/revoke" if by == "itself" else f"/api/tokens/{minted.principal.token_id}/revoke"
        answer = await server.client.post(path, headers=headers if by == "itself" else operator)
        assert answer.is_success
        (record,) = await server.memory._parts.store.scan(Scope("default", None), REVOCATION)
        assert datetime.fromisoformat(record.data["until"]) >= minted.principal.expires_at


async def test_where_it_cannot_be_seen_whether_a_token_was_revoked_nobody_is_let_in(own, monkeypatch):
    from echoic.errors import StoreUnavailable

    ana = await own.identity()

    async def gone(*_args):
        raise StoreUnavailable("gone")

    monkeypatch.setattr(own.memory._parts.store._observed, "read", gone)
    answer = await own.client.get("/api/memories", headers=ana.headers)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
