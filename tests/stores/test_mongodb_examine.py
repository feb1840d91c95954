"""What `echoic doctor` finds out about a MongoDB server, and that it sees each thing that may be wrong."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from echoic.stores import store_from
from echoic.stores.base import Examines, Finding
from echoic.stores.mongodb import MongoDBStore
from echoic.stores.mongodb import maintenance as mongodb_examine
from echoic.stores.mongodb.maintenance import _NEEDED
from echoic.stores.mongodb.schema import TEXT_INDEX, VECTOR_INDEX, search_states
from echoic.testing.store_histories import ANA, memory, opened, put
from echoic_loopback.mongodb import MongoServer
from stores import mongodb_server

pytestmark = pytest.mark.usefixtures("closed_while_connecting")
NAMES = ["version", "indexes", "lag", "search lag", "permissions"]


async def findings(url: str) -> dict[str, Finding]:
    mongodb_server.note("a real server" if mongodb_server.REAL else "the wire stand-in")
    async with opened(store_from(url)) as store:
        assert isinstance(store, MongoDBStore)
        assert isinstance(store, Examines)
        return {finding.name: finding for finding in await store.examine()}


async def test_a_server_that_is_well_is_called_well_and_nothing_is_left_behind() -> None:
    url = mongodb_server.url()
    async with opened(store_from(url)) as store:
        await store.write(ANA, [put(memory("a", "very secret", key="secret key"))])
    found = await findings(url)
    assert list(found) == NAMES
    assert all(finding.well and not finding.advice for finding in found.values()), found
    assert found["version"].detail.startswith("MongoDB ")
    assert VECTOR_INDEX in found["search lag"].detail
    assert TEXT_INDEX in found["search lag"].detail
    assert "secret" not in repr(found)
    async with AsyncMongoClient[dict[str, Any]](url.partition("?")[0]) as client:
        assert await client.get_default_database().memories.count_documents({}) == 1


@mongodb_server.stand_in_only
async def test_an_index_that_is_missing_is_named() -> None:
    with MongoServer() as server:
        url = server.url("echoic")
        async with opened(store_from(url)) as store, AsyncMongoClient[dict[str, Any]](url) as client:
            assert isinstance(store, MongoDBStore)
            await client.get_default_database().memories.drop_index("echoic_key")
            found = {finding.name: finding for finding in await store.examine()}
    assert not found["indexes"].well
    assert "echoic_key" in found["indexes"].detail
    assert found["indexes"].advice


@mongodb_server.stand_in_only
async def test_search_indexes_that_are_not_built_in_time_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echoic.stores.mongodb.BUILT_S", 0.05)
    with MongoServer(build_looks=1000) as server:
        async with opened(store_from(server.url("echoic"))) as store:
            collections = store._live.connection.collections
            while VECTOR_INDEX not in (await search_states(collections) or {}):
                await asyncio.sleep(0.01)  # until the store has asked for it
            found = {finding.name: finding for finding in await store.examine()}
    assert not found["indexes"].well
    assert f"{VECTOR_INDEX} BUILDING" in found["indexes"].detail
    assert "search lag" not in found, "what is not built cannot be behind"


@mongodb_server.stand_in_only
async def test_a_search_that_does_not_follow_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mongodb_examine, "LAG_S", 0.3)
    with MongoServer() as server:
        url = server.url("echoic")
        async with opened(store_from(url)) as store:
            assert isinstance(store, MongoDBStore)
            assert await store.until_searchable(20)
            server.pause_search()
            (lag,) = [finding for finding in await store.examine() if finding.name == "search lag"]
        assert server.documents("echoic.memories") == []
    assert not lag.well
    assert "more than 0.3 s" in lag.detail


@mongodb_server.stand_in_only
async def test_members_that_are_behind_are_seen() -> None:
    with MongoServer(behind=timedelta(seconds=95)) as server:
        found = await findings(server.url("echoic"))
    assert not found["lag"].well
    assert "95.0 s behind" in found["lag"].detail


@mongodb_server.stand_in_only
@pytest.mark.parametrize("lacking", ["changeStream", "createSearchIndexes"])
async def test_a_permission_that_is_lacking_is_named(lacking: str) -> None:
    with MongoServer(allowed=[action for action in _NEEDED if action != lacking]) as server:
        found = await findings(server.url("echoic"))
    assert not found["permissions"].well
    assert lacking in found["permissions"].detail
    assert "readWrite" in found["permissions"].advice


@mongodb_server.stand_in_only
async def test_a_user_with_the_role_lacks_nothing_and_a_server_open_to_anybody_says_so() -> None:
    with MongoServer(allowed=_NEEDED) as server:
        found = await findings(server.url("echoic"))
    assert found["permissions"].detail == "the user may do all that is needed"
    with MongoServer() as server:
        found = await findings(server.url("echoic"))
    assert "lets anybody in" in found["permissions"].detail


@mongodb_server.stand_in_only
async def test_a_server_without_search_is_well_and_says_what_that_means() -> None:
    with MongoServer(search=False, version=(7, 0, 5)) as server:
        found = await findings(server.url("echoic"))
    assert [name for name in NAMES if name in found] == ["version", "indexes", "lag", "permissions"]
    assert all(finding.well for finding in found.values())
    assert "large scopes are loaded" in found["indexes"].detail
    assert "two searches" in found["version"].detail
