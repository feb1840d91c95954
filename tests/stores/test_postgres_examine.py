"""What `echoic doctor` finds out about a PostgreSQL server, and that it sees each thing that may be wrong."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from echoic.stores import store_from
from echoic.stores.base import Examines, Finding
from echoic.stores.postgres import maintenance as postgres_examine
from echoic.stores.postgres.database import Connection, Database
from echoic.testing.store_histories import ANA, memory, opened, put
from stores.postgres_between import pgbouncer
from stores.postgres_server import PostgresServer, new_schema, shared

NAMES = ["version", "durability", "indexes", "lag", "told", "permissions"]


async def findings(url: str) -> dict[str, Finding]:
    async with opened(store_from(url)) as store:
        assert isinstance(store, Examines)
        return {finding.name: finding for finding in await store.examine()}


async def test_a_server_that_is_well_is_called_well_and_nothing_of_anybody_is_told() -> None:
    server = PostgresServer(durable=True)
    server.start()
    try:
        url = server.url()
        async with opened(store_from(url)) as store:
            await store.write(ANA, [put(memory("a", "very secret", key="secret key"))])
        found = await findings(url)
    finally:
        server.remove()
    assert list(found) == NAMES
    assert all(finding.well and not finding.advice for finding in found.values()), found
    assert found["version"].detail.startswith("PostgreSQL ")
    assert "pgvector" in found["version"].detail
    assert "after" in found["told"].detail
    assert "secret" not in repr(found)


async def test_a_server_that_does_not_sync_its_commits_is_seen() -> None:
    found = await findings(shared().url())  # the tests' own, which need not be durable
    assert not found["durability"].well
    assert "fsync off" in found["durability"].detail


async def test_an_index_that_is_gone_or_half_built_is_named() -> None:
    schema = new_schema()
    async with opened(store_from(shared().url(schema))):
        shared().sql(f"drop index {schema}.records_by_key")
        shared().sql(
            f"update pg_index set indisvalid = false where indexrelid = '{schema}.records_by_name'::regclass"
        )
    found = await findings(shared().url(schema))
    assert not found["indexes"].well
    assert found["indexes"].detail == "missing or not valid: records_by_key, records_by_name"


async def test_a_right_that_is_lacking_is_named() -> None:
    role, schema = new_schema(), new_schema()
    async with opened(store_from(shared().url(schema))):
        shared().sql(
            f"create role {role} login; grant usage on schema {schema} to {role}; "
            f"grant select, insert, update, delete on all tables in schema {schema} to {role}"
        )
    well = await findings(shared().url(schema, user=role))
    assert well["permissions"].well
    shared().sql(f"revoke delete on {schema}.tokens from {role}")
    found = await findings(shared().url(schema, user=role))
    assert not found["permissions"].well
    assert found["permissions"].detail == "this role may not: tokens delete"
    assert f"in schema {schema}" in found["permissions"].advice


async def test_a_notification_that_does_not_come_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    listen = Database.listen

    async def deaf(self: Database, _heard: object, ended: Callable[[], None]) -> Connection:
        return await listen(self, lambda _payload: None, ended)

    monkeypatch.setattr(postgres_examine, "LAG_S", 0.2)
    monkeypatch.setattr(Database, "listen", deaf)
    told = (await findings(shared().url()))["told"]
    assert not told.well
    assert "not within 0.2 s" in told.detail
    assert told.advice


async def test_through_a_pooler_it_says_that_nobody_is_told() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="echoic-pool-") as folder,
        pgbouncer(shared(), Path(folder)),
    ):
        found = await findings(f"postgresql://postgres@/postgres?host={folder}&schema={new_schema()}")
    assert found["told"].well
    assert "pooler" in found["told"].detail
    assert "through a pooler" in found["version"].detail


async def test_the_indexes_are_those_the_schema_makes() -> None:
    schema = new_schema()
    async with opened(store_from(shared().url(schema))) as store:
        rows = await postgres_examine._rows(store._database, postgres_examine._VALID, schema)
        assert {row[0] for row in rows} == postgres_examine.INDEXES
