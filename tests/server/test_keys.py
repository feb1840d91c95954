"""Keys of a deployment with roles, over HTTP and by `echoic keys`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import echoic
from echoic.memory.deployment_keys import ROLES
from echoic.server import CellLimiter, Rate
from server.conftest import ACME_KEY, OPERATOR_KEY, serving, settings_of

ROUTES = {
    ("POST", "/v1/tokens"): {"agent", "operator"},
    ("GET", "/api/global"): {"operator", "read-only"},
    ("GET", "/api/decisions"): {"operator", "read-only"},
    ("POST", "/api/global"): {"operator"},
    ("POST", "/api/tokens/x/revoke"): {"operator"},
    ("GET", "/api/audit"): {"operator", "auditor"},
    ("GET", "/api/export"): set(),
    ("POST", "/api/forget"): set(),
}
BODIES = {"/v1/tokens": {"user": "ana"}, "/api/global": {"facts": [{"text": "We open at nine."}]}}


def opened(folder, **options) -> echoic.MemoryService:
    return echoic.open(f"sqlite:///{folder}/e.db", embedder="lexical", audit=True, **options)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def asked(server, method: str, path: str, key: str, **params: str) -> int:
    answer = await server.client.request(
        method, path, headers=bearer(key), json=BODIES.get(path), params=params
    )
    return answer.status_code


@pytest.mark.parametrize(
    "own", [True, False], ids=["beside those of the settings", "without any in the settings"]
)
async def test_each_role_opens_what_it_may_and_nothing_else(tmp_path, own):
    memory = opened(tmp_path)
    settings = settings_of() if own else settings_of(operator_key=None, agent_keys={})
    async with serving(memory, settings) as server:
        for role in ROLES:
            key, _ = await memory.keys().create(role)
            for (method, path), roles in ROUTES.items():
                status = await asked(server, method, path, key)
                if role in roles:
                    assert status == 200, (role, path, status)
                else:
                    assert status in {401, 403}, (role, path, status)


async def test_a_key_opens_whatever_the_digits_of_its_hash_look_like(tmp_path, monkeypatch):
    """One in 900 hashes has digits that pass for a card's or an ID's."""
    memory = opened(tmp_path)
    monkeypatch.setattr("secrets.token_hex", lambda n: "ab" * n)
    monkeypatch.setattr("secrets.token_urlsafe", lambda n: "A" * 36 + "0001027")
    async with serving(memory, settings_of()) as server:
        key, made = await memory.keys().create("read-only", name="of the dashboard")
        assert await asked(server, "GET", "/api/global", key) == 200
        assert (await memory.keys().of(key)) == made


@pytest.mark.parametrize("role", ROLES)
async def test_a_key_of_a_role_has_a_keys_rate_where_users_are_let_in_too(tmp_path, role):
    memory = opened(tmp_path)
    narrow = Rate.of("1/hour")
    async with serving(memory, settings_of(limiter=CellLimiter(address=narrow, refused=narrow))) as server:
        key, _ = await memory.keys().create(role)
        for _ in range(3):
            assert (await server.client.get("/api/access", headers=bearer(key))).status_code == 200


async def test_every_credential_is_told_its_own_role_and_a_stranger_none(tmp_path):
    memory = opened(tmp_path)
    async with serving(memory, settings_of()) as server:
        told = {role: (await memory.keys().create(role))[0] for role in ROLES}
        told |= {"by name": OPERATOR_KEY, "by name too": ACME_KEY}
        roles = {"by name": "operator", "by name too": "agent"}
        for name, key in told.items():
            access = (await server.client.get("/api/access", headers=bearer(key))).json()
            assert access["role"] == roles.get(name, name)
            assert access["user"] is None
            assert access["deploymentId"] == ("acme" if key == ACME_KEY else "default")
        ana = await server.identity()
        access = (await server.client.get("/api/access", headers=ana.headers)).json()
        assert access == {"role": "user", "deploymentId": "default", "user": ana.user}
        for bad in ({}, bearer("x"), bearer(f"{OPERATOR_KEY}x"), bearer(ana.token[:-4])):
            assert (await server.client.get("/api/access", headers=bad)).status_code == 401
        params = {"deploymentId": "acme"}  # a stored key is of one deployment
        stored = await server.client.get("/api/access", headers=bearer(told["operator"]), params=params)
        assert stored.status_code == 401


async def test_a_key_opens_nothing_once_revoked_or_expired_nor_in_another_deployment(tmp_path):
    memory = opened(tmp_path)
    async with serving(memory, settings_of()) as server:
        old, listed = await memory.keys().create("agent", name="crm")
        new, _ = await memory.keys().create("agent", name="crm")
        assert await asked(server, "POST", "/v1/tokens", old) == 200
        await memory.keys().revoke(listed.id)
        assert await asked(server, "POST", "/v1/tokens", old) == 401
        assert await asked(server, "POST", "/v1/tokens", new) == 200  # replaced without a restart
        for elsewhere in ("acme", "unserved"):
            assert await asked(server, "POST", "/v1/tokens", new, deploymentId=elsewhere) == 401
        brief, _ = await memory.keys().create("agent", lifetime=timedelta(days=1))
        assert await asked(server, "POST", "/v1/tokens", brief) == 200
        memory._parts.clock  # noqa: B018 - keys ask the service's clock
        later = memory.keys()
        later._clock = lambda: datetime.now(UTC) + timedelta(days=2)
        assert await later.of(brief) is None
        assert await later.of(new) is not None
        assert await asked(server, "POST", "/v1/tokens", new[:-1] + ("A" if new[-1] != "A" else "B")) == 401


async def test_the_store_holds_no_key(tmp_path):
    async with opened(tmp_path) as memory:
        key, listed = await memory.keys().create("operator")
        assert [each.id for each in await memory.keys().list()] == [listed.id]
        assert key not in str(await memory.keys().list())
    raw = b"".join(path.read_bytes() for path in tmp_path.glob("e.db*") if path.is_file())
    assert listed.id.encode() in raw  # the control
    assert key.split("_", 2)[2].encode() not in raw


async def test_a_role_or_a_lifetime_that_makes_no_sense_is_refused(tmp_path):
    async with opened(tmp_path) as memory:
        for wrong in ({"role": "root"}, {"role": "agent", "lifetime": timedelta(0)}):
            with pytest.raises(echoic.InvalidInput):
                await memory.keys().create(**wrong)
        with pytest.raises(echoic.InvalidInput, match="no key"):
            await memory.keys().revoke("0" * 16)
