"""What is PostgreSQL's own: schemas, roles, poolers, searching in the database, what is left after an erasure."""

from __future__ import annotations

import asyncio
import itertools
import json
import traceback
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import numpy as np
import pytest
import pytest_asyncio

from echoic.embedding import LexicalEmbedder
from echoic.errors import InvalidInput, StoreCorrupt, StoreTooNew, StoreUnavailable
from echoic.memory.records import record_of_memory
from echoic.memory.service import MemoryService
from echoic.partition import Flag, Partition
from echoic.ranking.query import query_of
from echoic.ranking.rank import rank
from echoic.stores import postgres as postgres_store_module
from echoic.stores import store_from
from echoic.stores.base import Attach, Drop, Narrows, Record, Store
from echoic.stores.in_memory import InMemoryStore
from echoic.stores.postgres import NARROW_ABOVE
from echoic.stores.postgres import maintenance as postgres_erase
from echoic.stores.postgres import schema as postgres_schema
from echoic.testing.store_histories import (
    ANA,
    SPEC,
    attach,
    everything,
    expected,
    index,
    loaded,
    memory,
    note,
    opened,
    put,
    unit,
)
from echoic.types import Memory, Scope
from stores.postgres_between import pgbouncer
from stores.postgres_server import new_schema, shared
from stores.test_encrypted import answers_from_ciphertext

BOB = Scope("acme", "bob")
ZOE = Scope("acme", "zoe")


@pytest.fixture
def schema() -> str:
    return new_schema()


@pytest_asyncio.fixture
async def sql() -> AsyncIterator[asyncpg.Connection]:
    """A superuser's own connection."""
    connection = await asyncpg.connect(f"postgresql://postgres@/postgres?host={shared().folder}")
    yield connection
    await connection.close()


async def _dump(sql: asyncpg.Connection, schema: str) -> dict[str, list[str]]:
    """Every row of every table, as text."""
    tables = await sql.fetch("select tablename from pg_tables where schemaname = $1", schema)
    return {
        name: [row[0] for row in await sql.fetch(f'select t::text from "{schema}"."{name}" t order by 1')]
        for (name,) in tables
    }


class TestSchema:
    async def test_one_of_a_newer_version_is_refused_and_left_as_it_was(
        self, sql: asyncpg.Connection, schema: str
    ) -> None:
        async with opened(store_from(shared().url(schema))) as store:
            await store.write(ANA, [put(memory("a"))])
        await sql.execute(f"update {schema}.meta set value = '99' where name = 'schema'")
        before = await _dump(sql, schema)
        with pytest.raises(StoreTooNew, match="99"):
            await store_from(shared().url(schema)).open(SPEC, index)
        assert await _dump(sql, schema) == before

    @pytest.mark.parametrize(
        "theirs",
        [
            "create table {0}.meta (name text, value text); insert into {0}.meta values ('application', 'x')",
            "create table {0}.meta (id int)",
            "create table {0}.orders (id int)",
        ],
    )
    async def test_another_programs_is_refused_and_left_as_it_was(
        self, sql: asyncpg.Connection, schema: str, theirs: str
    ) -> None:
        await sql.execute(f"create schema {schema}")
        await sql.execute(theirs.format(schema))
        before = await _dump(sql, schema)
        with pytest.raises(StoreCorrupt, match="another program"):
            await store_from(shared().url(schema)).open(SPEC, index)
        assert await _dump(sql, schema) == before

    async def test_an_empty_one_that_an_administrator_made_will_do(
        self, sql: asyncpg.Connection, schema: str
    ) -> None:
        await sql.execute(f"create schema {schema}")
        async with opened(store_from(shared().url(schema))) as store:
            await store.write(ANA, [put(memory("a"))])

    async def test_many_that_open_a_new_one_at_once_make_it_once(self, schema: str) -> None:
        stores = [store_from(shared().url(schema, pool=1, listen="off")) for _ in range(8)]
        await asyncio.gather(*(store.open(SPEC, index) for store in stores))
        await asyncio.gather(*(store.write(ANA, [put(memory(f"m{n}"))]) for n, store in enumerate(stores)))
        assert len(await stores[0].scan(ANA, "memory")) == 8
        await asyncio.gather(*(store.aclose() for store in stores))

    async def test_a_migration_that_fails_leaves_nothing(
        self, sql: asyncpg.Connection, schema: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps = (*postgres_schema.MIGRATIONS, ("create table {s}.more (id int)", "select 1 / 0"))
        monkeypatch.setattr(postgres_schema, "MIGRATIONS", steps)
        monkeypatch.setattr(postgres_schema, "VERSION", 2)
        with pytest.raises((InvalidInput, StoreUnavailable)):
            await store_from(shared().url(schema)).open(SPEC, index)
        assert await _dump(sql, schema) == {}

    async def test_two_schemas_of_one_database_share_nothing(self) -> None:
        one, two = (store_from(shared().url()) for _ in range(2))
        async with opened(one), opened(two):
            await one.write(ANA, [put(memory("a"))])
            assert await two.scopes() == []

    async def test_words_that_are_cut_another_way_are_cut_again_at_open(
        self, sql: asyncpg.Connection, schema: str
    ) -> None:
        async with opened(store_from(shared().url(schema))) as store:
            await store.write(ANA, [put(memory(f"m{n}", f"likes number {n}")) for n in range(1100)])
            await store.write(ANA, [attach(r, r.seq) for r in await store.scan(ANA, "memory", limit=40)])
            before = await loaded(store, ANA)
        await sql.execute(f"update {schema}.meta set value = '0' where name = 'analysis'")
        empty = await sql.fetchval(f"select words from {schema}.segments where number = 31")
        await sql.execute(f"update {schema}.segments set words = $1 where number = 30", empty)
        async with opened(store_from(shared().url(schema))) as store:
            assert await loaded(store, ANA) == before


class TestFence:
    """Row-level security, as a role that it binds."""

    @pytest_asyncio.fixture
    async def fenced(self, sql: asyncpg.Connection, schema: str) -> str:
        """The URL of a store that a role owns which is no superuser."""
        await sql.execute("create extension if not exists vector")
        await sql.execute(f"create role {schema} login; create schema {schema} authorization {schema}")
        return shared().url(schema, user=schema, rls="on")

    async def test_a_role_that_is_not_bound_by_it_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match="superuser"):
            await store_from(shared().url(rls="on")).open(SPEC, index)

    async def test_a_statement_that_forgets_whose_it_is_finds_only_ones_own(
        self, fenced: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        everybodys = f"select {postgres_store_module.RECORD} from {{s}}.records where $1 <> $2 and kind = $3 and name = any($4::text[])"
        monkeypatch.setattr(postgres_store_module, "_READ", everybodys)
        async with opened(store_from(fenced)) as store:
            for scope in (ANA, BOB):
                await store.write(scope, [put(memory("a", f"{scope.user} said this"))])
            found = await store.read(BOB, "memory", ["a"])
        assert [r.data["text"] for r in found] == ["bob said this"]

    async def test_control_without_the_fence_it_finds_everybodys(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        everybodys = f"select {postgres_store_module.RECORD} from {{s}}.records where $1 <> $2 and kind = $3 and name = any($4::text[]) order by scope"
        monkeypatch.setattr(postgres_store_module, "_READ", everybodys)
        async with opened(store_from(shared().url())) as store:
            await store.write(ANA, [put(memory("a", "ana said this"))])
            assert [r.data["text"] for r in await store.read(BOB, "memory", ["a"])] == ["ana said this"]

    async def test_another_role_with_grants_sees_and_writes_only_what_it_says_it_is(
        self, sql: asyncpg.Connection, fenced: str, schema: str
    ) -> None:
        async with opened(store_from(fenced)) as store:
            for scope in (ANA, BOB):
                await store.write(scope, [put(memory("a", f"{scope.user} said this"))])
        app = f"{schema}_app"
        await sql.execute(
            f"create role {app} login; grant usage on schema {schema} to {app}; "
            f"grant select, insert, update, delete on all tables in schema {schema} to {app}"
        )
        theirs = await asyncpg.connect(f"postgresql://{app}@/postgres?host={shared().folder}")
        count = f"select count(*) from {schema}.records"
        for table in postgres_schema.TABLES:
            assert await theirs.fetchval(f"select count(*) from {schema}.{table}") == 0
        async with theirs.transaction():
            await theirs.execute(
                "select set_config('echoic.deployment', 'acme', true), set_config('echoic.user', 'bob', true)"
            )
            assert await theirs.fetchval(count) == 1
            number = await sql.fetchval(f"select id from {schema}.scopes where usr = 'ana'")
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                async with theirs.transaction():
                    await theirs.execute(f"insert into {schema}.tokens values ({number}, 7, '')")
            assert await theirs.execute(f"delete from {schema}.records where scope = {number}") == "DELETE 0"
        assert await theirs.fetchval(count) == 0, "what one transaction said is left for the next"
        await theirs.close()
        async with opened(
            store_from(shared().url(schema, user=app))
        ) as store:  # used though nobody asked for it
            assert [r.data["text"] for r in await store.read(BOB, "memory", ["a"])] == ["bob said this"]
            assert (await store.check())["fence"] is True
            assert await store.scopes() == [ANA, BOB]
            await store.write(BOB, [put(memory("b"))])
            assert (await store.erase(ANA)).verified
            assert await store.scopes() == [BOB]


class TestPooler:
    """Through PgBouncer in transaction mode, more clients than it has connections."""

    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="echoic-pool-") as folder, pgbouncer(shared(), Path(folder)):
            yield Path(folder)

    async def test_it_is_noticed_and_everything_works_between_more_clients_than_connections(
        self, folder: Path, schema: str
    ) -> None:
        url = f"postgresql://postgres@/postgres?host={folder}&schema={schema}"
        stores = [store_from(url) for _ in range(3)]
        for store in stores:
            await store.open(SPEC, index)
            assert (await store.check())["pooler"] is True
        for round_ in range(3):
            await asyncio.gather(
                *(
                    store.write(
                        Scope("acme", f"user {n % 7}"),
                        [put(memory(f"{round_} {i} {n}", f"number {n}")), put(note("n"))],
                    )
                    for i, store in enumerate(stores)
                    for n in range(21)
                )
            )
        for n in range(7):
            scope = Scope("acme", f"user {n}")
            records = await everything(stores[0], scope)
            assert len(records) == 28
            await stores[1].write(scope, [attach(r, r.seq) for r in records if r.kind == "memory"])
            vectors = {("memory", r.id): unit(r.seq) for r in records if r.kind == "memory"}
            for store in stores:
                assert await loaded(store, scope) == expected(records, vectors)
            assert (await stores[2].narrow(scope, f"number {n}", unit(1), limit=3, include_past=False)).size
        assert (await stores[0].erase(Scope("acme", "user 1"))).verified
        await asyncio.gather(*(store.aclose() for store in stores))

    async def test_a_server_without_one_is_noticed_too(self) -> None:
        async with opened(store_from(shared().url())) as store:
            assert (await store.check())["pooler"] is False


class TestErasure:
    async def test_no_row_of_any_table_says_what_was_erased(
        self, sql: asyncpg.Connection, schema: str
    ) -> None:
        async with opened(store_from(shared().url(schema))) as store:
            await store.write(BOB, [put(memory("b", "likes liquorice"))])
            await store.write(
                ZOE, [put(memory(f"m{n}", f"zanzibar number {n}", key="quagga")) for n in range(70)]
            )
            await store.write(ZOE, [put(note("xylophone", words="zanzibar")), Drop(kind="memory", id="m3")])
            await store.write(ZOE, [attach(r, r.seq) for r in await store.scan(ZOE, "memory", limit=50)])
            whole = json.dumps(await _dump(sql, schema))
            assert all(word in whole for word in ("zanzibar", "quagga", "xylophone", "zoe"))
            erased = await store.erase(ZOE, [Drop(kind="memory", id=f"m{n}") for n in range(40)])
            assert (dict(erased.records), erased.vectors, erased.verified) == ({"memory": 39}, 39, True)
            assert erased.bytes_searched > 0
            left = await _dump(sql, schema)
            assert len([row for row in left["records"] if "zanzibar" in row]) == 31
            assert len(left["searchable"]) == 31
            assert (await store.erase(ZOE)).verified
        left = await _dump(sql, schema)
        words = [bytes.fromhex(row.rpartition("\\\\x")[2].rstrip('")')) for row in left["segments"]]
        whole = json.dumps(left) + repr(words)
        assert "liquorice" in whole
        assert not [word for word in ("zanzibar", "quagga", "xylophone", "zoe") if word in whole]

    @pytest.mark.parametrize("table", ["records", "searchable", "tokens", "pending"])
    async def test_control_a_row_that_stays_is_seen(
        self, sql: asyncpg.Connection, schema: str, table: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with opened(store_from(shared().url(schema))) as store:
            await store.write(ANA, [put(memory("a", "likes tea")), put(memory("b", "likes rain"))])
            await store.write(ANA, [attach(r, 3) for r in await store.read(ANA, "memory", ["a"])])
            await sql.execute(f"create schema {schema}_kept")
            vacuum = postgres_erase.vacuum
            await sql.execute(f"create table {schema}_kept.t as select * from {schema}.{table}")

            async def puts_one_back(database: object) -> None:
                await vacuum(database)
                overriding = "overriding system value" if table == "pending" else ""
                await sql.execute(
                    f"insert into {schema}.{table} {overriding} select * from {schema}_kept.t on conflict do nothing"
                )

            monkeypatch.setattr(postgres_erase, "vacuum", puts_one_back)
            assert await sql.fetchval(f"select count(*) from {schema}_kept.t")
            assert not (await store.erase(ANA)).verified

    async def test_control_a_word_that_stays_is_seen(
        self, sql: asyncpg.Connection, schema: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with opened(store_from(shared().url(schema))) as store:
            await store.write(ANA, [put(memory("a", "likes zanzibar")), put(memory("b", "likes rain"))])
            words = await sql.fetchval(f"select words from {schema}.segments")

            async def puts_it_back(_database: object) -> None:
                await sql.execute(f"update {schema}.segments set words = $1", words)

            monkeypatch.setattr(postgres_erase, "vacuum", puts_it_back)
            assert not (await store.erase(ANA, [Drop(kind="memory", id="a")])).verified

    async def test_the_pages_are_cleared_of_dead_rows(self, sql: asyncpg.Connection, schema: str) -> None:
        async with opened(store_from(shared().url(schema))) as store:
            await store.write(ANA, [put(memory(f"m{n}")) for n in range(100)])
            await store.erase(ANA)
        assert await sql.fetchval(f"select pg_relation_size('{schema}.records')") == 0


def _corpus() -> list[Record]:
    """Memories and turns about different things, some of the past, names that may be misheard among them."""
    people = ["Kaitlin", "Caspar", "Wilhelmina", "Siobhan", "Ngozi", "Xiomara"]
    things = ["pottery", "sailing", "astronomy", "baking", "chess", "gardening", "fencing", "beekeeping"]
    places = ["Lisbon", "Tromsø", "Kyoto", "Valparaíso", "Galway"]
    found = []
    for n in range(1500):
        person, thing, place = people[n % 6], things[n % 8], places[n % 5]
        text = [
            f"{person} took up {thing} in {place} number {n}",
            f"What did {person} say about {thing} on day {n}?",
            f"We talked about the weather in {place} for {n} minutes",
        ][n % 3]
        if n % 3:
            found.append(
                Record(
                    kind="turn",
                    id=f"t{n}",
                    key=f"call {n // 30}",
                    data={"text": text, "said_at_ms": n * 1000},
                )
            )
        else:
            found.append(memory(f"m{n}", text, past=n % 21 == 0))
    return found


QUESTIONS = [
    "where did Kaitlin take up fencing number 1110",
    "who took up astronomy in Kyoto?",
    "what did Ngozi say about fencing on day 838",
    "Caitlyn and sailing",
    "pottery number 1200",
    "the weather in Galway for 1499 minutes",
    "nothing of the kind",
]


class TestSearch:
    @pytest.fixture(scope="class")
    @classmethod
    def corpus_schema(cls) -> str:
        """Where 1500 records lie that no test changes."""

        async def fill() -> None:
            async with opened(store_from(shared().url(schema))) as store:
                await _fill(store)

        schema = new_schema()
        asyncio.run(fill())
        return schema

    @pytest_asyncio.fixture
    async def filled(self, corpus_schema: str) -> AsyncIterator[Store]:
        """To be read only."""
        async with opened(store_from(shared().url(corpus_schema))) as store:
            yield store

    @pytest_asyncio.fixture
    async def changing(self, schema: str) -> AsyncIterator[Store]:
        """As `filled`, for one test alone, which may write."""
        async with opened(store_from(shared().url(schema))) as store:
            await _fill(store)
            yield store

    async def test_it_is_a_store_that_narrows(self, filled: Store) -> None:
        assert isinstance(filled, Narrows)
        assert not isinstance(InMemoryStore(), Narrows)
        assert await filled.size(ANA) == 1500
        assert await filled.size(Scope("acme", "nobody")) == 0

    async def test_the_ranking_is_that_of_the_store_in_memory(self, filled: Store) -> None:
        async with opened(InMemoryStore()) as reference:
            await _fill(reference)
            ours, theirs = [await reference.load(ANA)], [await filled.load(ANA)]
            for question, fusion in itertools.product(QUESTIONS, ("blend", "rrf")):
                query = query_of(question, unit(len(question)))
                wanted = rank(query, ours, limit=50, fusion=fusion)
                assert rank(query, theirs, limit=50, fusion=fusion) == wanted, (question, fusion)

    async def test_what_is_ranked_first_is_among_what_is_narrowed_to(self, schema: str) -> None:
        embedder = LexicalEmbedder(384)
        records = _corpus()
        vectors = await embedder.embed([record.data["text"] for record in records], "document")
        asked = await embedder.embed(QUESTIONS, "query")
        async with opened(store_from(shared().url(schema)), embedder.spec) as store:
            await store.write(ANA, [put(record) for record in records])
            await store.write(
                ANA,
                [
                    Attach(kind=record.kind, id=record.id, version=1, vector=vector)
                    for record, vector in zip(records, vectors, strict=True)
                ],
            )
            same = 0
            for question, vector in zip(QUESTIONS, asked, strict=True):
                query = query_of(question, vector)
                best = [hit.row for hit in rank(query, [await store.load(ANA)], limit=5)]
                narrow = await store.narrow(ANA, question, vector, limit=25, include_past=False)
                assert narrow.size < 1500
                assert narrow.origin is not None
                found = [int(narrow.origin[hit.row]) for hit in rank(query, [narrow], limit=5)]
                assert found[:1] == best[:1], question
                same += len({*best} & {*found})
            assert same >= 0.9 * 5 * len(QUESTIONS), "only how rare a word is may differ a little"

    async def test_a_narrowed_partition_holds_its_rows_as_they_are(self, filled: Store) -> None:
        whole = await filled.load(ANA)
        narrow = await filled.narrow(ANA, "beekeeping in Galway", unit(3), limit=20, include_past=False)
        assert narrow.origin is not None
        assert len(narrow.origin) == narrow.size
        assert (np.diff(narrow.origin) > 0).all()
        there = narrow.origin < whole.size
        assert (narrow.rows[there] == whole.rows[narrow.origin[there]]).all()
        assert (narrow.vectors[there] == whole.vectors[narrow.origin[there]]).all()
        assert narrow.tokens == {
            row: whole.tokens[int(origin)]
            for row, origin in enumerate(narrow.origin)
            if int(origin) in whole.tokens
        }
        assert narrow.version == whole.version

    async def test_a_row_at_the_edge_brings_its_neighbours(self, filled: Store) -> None:
        for row in (62, 64, 95, 0):
            narrow = await filled.narrow(ANA, "", unit(row), limit=1, include_past=True)
            assert narrow.origin is not None
            rows = set(narrow.origin.tolist())
            assert {max(0, row - 4), row, row + 4} <= rows

    async def test_the_past_is_found_only_when_asked_for(self, filled: Store) -> None:
        text = (await filled.read(ANA, "memory", ["m21"]))[0].data["text"]
        vector = unit(21)
        assert 21 not in await _nearest(filled, text, vector, include_past=False)
        assert 21 in await _nearest(filled, text, vector, include_past=True)

    async def test_a_name_that_was_misheard_is_found_by_its_sound(self, changing: Store) -> None:
        await changing.write(ANA, [put(memory("new", "Theodora plays the accordion"))])
        assert 1500 in await _nearest(changing, "Theadorah", None)
        assert 1500 not in await _nearest(changing, "quagga", None)

    async def test_what_was_dropped_changed_or_erased_is_not_found_any_more(self, changing: Store) -> None:
        await changing.write(ANA, [put(memory("m0", "plays the accordion")), Drop(kind="memory", id="m3")])
        assert 0 in await _nearest(changing, "accordion", None)
        assert 0 not in await _nearest(changing, "", unit(0)), "the vector of an earlier text was searched"
        assert 3 not in await _nearest(changing, "", unit(3))
        await changing.erase(ANA, [Drop(kind="memory", id="m6")])
        assert 6 not in await _nearest(changing, "", unit(6))
        await changing.erase(ANA)
        assert (await changing.narrow(ANA, "sailing", unit(9), limit=9, include_past=True)).size == 0

    async def test_nobody_elses_rows_are_found(self, changing: Store) -> None:
        await changing.write(BOB, [put(memory("b", "took up sailing"))])
        await changing.write(BOB, [attach(r, 9) for r in await changing.scan(BOB, "memory")])
        found = await changing.narrow(BOB, "sailing", unit(9), limit=100, include_past=True)
        assert int((found.rows["kind"] != 0).sum()) == 1

    async def test_words_alone_and_no_words_at_all_will_do(self, filled: Store) -> None:
        assert (await filled.narrow(ANA, "sailing", None, limit=5, include_past=False)).size
        assert (await filled.narrow(ANA, "the", None, limit=5, include_past=False)).size == 0
        assert (await filled.narrow(ANA, "🦜", unit(4), limit=5, include_past=False)).size


async def _fill(store: Store) -> None:
    await store.write(ANA, [put(record) for record in _corpus()])
    for kind in ("memory", "turn"):
        records = await store.scan(ANA, kind, limit=2000)
        await store.write(ANA, [attach(r, r.seq) for r in records if r.seq % 50 != 49])


async def _nearest(store: Store, text: str, vector: object, *, include_past: bool = False) -> set[int]:
    """The rows that the database chooses, without those that only lie beside them."""
    from echoic.stores.postgres.load import likely_rows

    async def work(connection: asyncpg.Connection) -> list[int]:
        number = await connection.fetchval(names.sql("select id from {s}.scopes where usr = 'ana'"))
        return await likely_rows(connection, names, number, text, vector, limit=3, include_past=include_past)

    names = store._database.names
    return set(await store._database.read(ANA, work))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://h/d?schema=Bad", ["schema", "Bad"]),
        ("postgresql://h/d?schema=a%22b", ["schema"]),
        ("postgresql://h/d?schema=pg_x", ["pg_x"]),
        ("postgresql://h/d?schema=", ["schema"]),
        ("postgresql://h/d?shema=x", ["shema", "schema", "cache_mb", "driver"]),
        ("postgresql://h/d?rls=yes", ["rls", "on or off", "yes"]),
        ("postgresql://h/d?pool=0", ["pool", "'0'"]),
        ("postgres://h/d?cache_mb=x", ["cache_mb", "'x'"]),
        ("postgres://h/d?narrow_above=0", ["narrow_above", "'0'"]),
        ("postgres://h/d?wait_s=-1", ["wait_s", "'-1'"]),
        ("postgres://h/d?stale_s=nan", ["stale_s", "nan"]),
        ("postgres://h/d?pool=1&pool=2", ["pool", "twice"]),
    ],
)
def test_an_option_that_is_not_known_is_refused_with_what_is(url: str, said: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        store_from(url.replace("://h", "://ana:secret@h"))
    assert all(part in str(error.value) for part in said), str(error.value)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:secret#secret@h/d",
        "postgresql://ana:secret/secret@h/d",
        "postgresql://ana:secret?secret@h/d",
        "postgresql://ana:secret@[::1/d",
        "postgresql://ana:secret@h:port/d",
        "postgresql://ana:secret@h/d?sslmode=bogus",
    ],
)
async def test_a_url_that_cannot_be_read_is_refused_without_repeating_its_password(url: str) -> None:
    with pytest.raises(InvalidInput) as error:
        await store_from(url).open(SPEC, index)
    assert "secret" not in "".join(traceback.format_exception(error.value))


@pytest.mark.parametrize(("threshold", "is_loaded"), [(40, False), (200, True)])
async def test_from_the_threshold_on_a_query_is_answered_in_the_database(
    threshold: int, *, is_loaded: bool
) -> None:
    store, days = store_from(shared().url(narrow_above=threshold)), datetime(2026, 1, 1, tzinfo=UTC)
    kept = [
        Memory(id=f"m{n}", text=f"Keeps the key number {n} in drawer {n}", author="ana", valid_from=days)
        for n in range(100)
    ]
    async with MemoryService(store, LexicalEmbedder(64)) as service:
        await store.write(ANA, [put(record_of_memory(one)) for one in kept])
        service._parts.background.poke()
        assert await service.settle(60)
        (first, *_) = await service.user("ana", "acme").query("where is the key number 73?")
        assert first.text == kept[73].text
        assert (store._fresh._cache.get(ANA) is not None) is is_loaded
        assert await service.user("bob", "acme").query("where is the key number 73?") == []


def test_the_options_are_ours_and_the_rest_is_the_drivers() -> None:
    store = store_from(
        "postgresql://ana:s%40cret@h:99/d?sslmode=disable&schema=mine&cache_mb=3&pool=2&wait_s=1.5&stale_s=9"
        "&rls=on&listen=off&notify=off&narrow_above=77&host=a%2Cb"
    )
    database, fresh = store._database, store._fresh
    assert database._dsn == "postgresql://ana:s%40cret@h:99/d?sslmode=disable&host=a%2Cb"
    assert (database.names.schema, database._size, database._wait_s, database.fence) == ("mine", 2, 1.5, True)
    assert (fresh._cache._limit, fresh._stale_s, fresh._listen, store._channel) == (3 << 20, 9, False, "")
    assert store.narrow_above == 77
    assert store_from("postgresql://h/d").narrow_above == NARROW_ABOVE


async def test_what_postgres_cannot_keep_is_refused_and_not_repeated() -> None:
    async with opened(store_from(shared().url())) as store:
        for record in (note("secret\0word"), note("secret", n=float("nan")), note("secret", key="a\0b")):
            with pytest.raises(InvalidInput) as error:
                await store.write(ANA, [put(record)])
            assert "secret" not in str(error.value)
        assert await store.scopes() == []


async def test_many_writers_of_one_scope_leave_connections_to_the_others() -> None:
    async with opened(store_from(shared().url(pool=2))) as store:
        hot = [asyncio.ensure_future(store.write(ANA, [put(memory(f"m{n}"))])) for n in range(60)]
        await asyncio.sleep(0)
        await store.write(BOB, [put(memory("b"))])
        assert not all(write.done() for write in hot), "the others' turn came only in the end"
        await asyncio.gather(*hot)
        assert len(await store.scan(ANA, "memory")) == 60


async def test_partitions_beyond_the_bound_are_let_go_of_and_loaded_again() -> None:
    async with opened(store_from(shared().url(cache_mb=1))) as store:
        users = [Scope("acme", f"user {n}") for n in range(12)]
        for user in users:
            await store.write(user, [put(memory(f"m{n}", f"likes number {n} " * 20)) for n in range(200)])
            await store.load(user)
        assert store._fresh._cache.nbytes <= 1 << 20
        assert len(store._fresh._cache) < 12
        for user in users:
            assert isinstance(await store.load(user), Partition)
            assert await loaded(store, user) == expected(await everything(store, user), {})


async def test_flags_of_a_row_are_those_of_its_record_in_the_search_too(
    sql: asyncpg.Connection, schema: str
) -> None:
    async with opened(store_from(shared().url(schema))) as store:
        await store.write(ANA, [put(memory("a", "is it?", past=True)), put(memory("b"))])
        await store.write(ANA, [attach(r) for r in await store.read(ANA, "memory", ["a"])])
        rows = await sql.fetch(f"select flags, e is null from {schema}.searchable order by seq")
    assert [(Flag(flags), bare) for flags, bare in rows] == [
        (Flag.EMBEDDED | Flag.PAST | Flag.QUESTION, False),
        (Flag.NONE, True),
    ]


async def test_what_was_loading_while_it_was_erased_is_not_kept() -> None:
    async with opened(store_from(shared().url())) as store:
        for _ in range(20):
            await store.write(ANA, [put(memory(f"m{n}", f"likes number {n}")) for n in range(64)])
            await asyncio.gather(*(store.load(ANA) for _ in range(3)), store.erase(ANA), store.load(ANA))
            kept = store._fresh._cache.get(ANA)
            assert kept is None or not kept.partition.rows["kind"].any()


async def test_what_loads_while_others_load_for_the_first_time_is_kept() -> None:
    users = [Scope("acme", f"user{n}") for n in range(8)]
    async with opened(store_from(shared().url())) as store:
        for scope in users:
            await store.write(scope, [put(memory("a"))])
        await asyncio.gather(*(store.load(scope) for scope in [*users, Scope("acme", None)]))
        assert [scope for scope in users if store._fresh._cache.get(scope) is None] == []


async def test_what_is_ahead_of_a_server_that_lost_the_last_writes_is_loaded_again() -> None:
    async with opened(store_from(shared().url())) as store:
        await store.write(ANA, [put(memory("a"))])
        partition = await store.load(ANA)
        kept = await loaded(store, ANA)
        partition.version += 7  # as after a failover to a server without the last writes
        assert await store.load(ANA) is not partition
        assert await loaded(store, ANA) == kept
        await store.write(ANA, [put(memory("b", "likes rain"))])
        assert await loaded(store, ANA) == expected(await everything(store, ANA), {})


async def test_a_connection_whose_server_became_a_standby_is_let_go_of() -> None:
    async with opened(store_from(shared().url())) as store:
        await store.write(ANA, [put(memory("a"))])
        async with store._database._pool.acquire() as connection:
            await connection.execute("set session characteristics as transaction read only")
        await store.write(ANA, [put(memory("b"))])
        assert [record.id for record in await store.scan(ANA, "memory")] == ["a", "b"]


async def test_it_works_on_ciphertext_and_nobody_opens_it_without_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await answers_from_ciphertext(shared().url(), monkeypatch)
