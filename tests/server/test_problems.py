from __future__ import annotations

import pytest

from echoic import Quota
from echoic.errors import EmbedderUnavailable, StoreCorrupt, StoreFull, StoreUnavailable, WriteConflict
from echoic.server.problems import problem_of


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StoreFull("no space on /srv/secret/path"), 503, "store_full"),
        (StoreUnavailable("cannot open /srv/secret/path"), 503, "store_unavailable"),
        (EmbedderUnavailable("https://secret@host"), 503, "embedder_unavailable"),
        (WriteConflict("record secret"), 409, "conflict"),
        (StoreCorrupt("/srv/secret/path"), 500, "internal"),
    ],
)
def test_an_error_is_told_by_its_kind_and_without_its_details(error, status, code):
    answer = problem_of(error)
    assert answer.status_code == status
    assert f'"{code}"'.encode() in answer.body
    assert b"secret" not in answer.body
    assert ("retry-after" in answer.headers) == (status == 503)


async def test_who_has_as_much_as_they_may_is_told_so_and_can_still_read_and_forget(start):
    quota = Quota(user_memories=3, user_bytes=5000)
    async with start(url="memory://", quota=quota) as server:
        eve, ana = await server.identity(), await server.identity()
        statuses = [
            (await server.memory_of(eve, "set", key=f"k{n}", value=f"canary {n}")).status_code
            for n in range(5)
        ]
        assert statuses == [200, 200, 200, 507, 507]
        refused = await server.memory_of(eve, "set", key="k9", value="canary nine")
        assert (refused.json()["success"], refused.json()["code"]) == (False, "quota_exceeded")
        assert "3 memories" in refused.json()["error"]
        assert "canary" not in refused.text
        long = {"text": "and then " * 600}
        said = await server.client.post("/api/chat", json=long, headers=eve.headers)
        assert (said.status_code, said.json()["code"]) == (507, "quota_exceeded")
        assert len((await server.memory_of(eve, "list")).json()["result"]) == 3
        assert (await server.memory_of(ana, "set", key="home", value="Oslo")).status_code == 200
        await server.client.post("/api/forget", json={"everything": True}, headers=eve.headers)
        assert (await server.memory_of(eve, "set", key="home", value="Oslo")).status_code == 200
