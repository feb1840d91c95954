"""What is forgotten goes with what said it, on the stores of servers as on the others."""

from __future__ import annotations

import asyncpg
import pytest
from pymongo import AsyncMongoClient

from echoic.embedding import LexicalEmbedder
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.types import Turn
from stores import mongodb_server, postgres_server


async def everything_in_postgres(url: str) -> str:
    """Every row of every table of the schema, as text; arrays of bytes as the letters they are."""
    connection = await asyncpg.connect(url.partition("&schema=")[0])
    schema = url.partition("&schema=")[2].partition("&")[0]
    try:
        tables = await connection.fetch("select tablename from pg_tables where schemaname = $1", schema)
        assert tables
        rows = []
        for (table,) in tables:
            for row in await connection.fetch(f'select * from "{schema}"."{table}"'):
                rows += [v.decode("latin-1") if isinstance(v, bytes) else str(v) for v in row.values()]
        return "\n".join(rows)
    finally:
        await connection.close()


async def everything_in_mongodb(url: str) -> str:
    """Every document of every collection, as text."""
    client: AsyncMongoClient[dict[str, object]] = AsyncMongoClient(url, tz_aware=True)
    try:
        database = client.get_default_database()
        found = [
            str(document)
            for name in await database.list_collection_names()
            async for document in database[name].find({})
        ]
        assert found
        return "\n".join(found)
    finally:
        await client.close()


STORES = {
    "postgres": (lambda: postgres_server.shared().url(), everything_in_postgres),
    "mongodb": (mongodb_server.url, everything_in_mongodb),
}


@pytest.mark.parametrize("store", STORES)
async def test_the_words_that_said_it_go_from_turns_echoes_summaries_and_memories(store: str) -> None:
    make, everything = STORES[store]
    url = make()
    opened = mongodb_server.patient(url) if store == "mongodb" else url
    async with MemoryService(store_from(opened), LexicalEmbedder(384)) as memory:
        ana = memory.user("ana")
        call = await ana.conversation("monday")
        for speaker, text in (
            ("user", "I live in Porto and my sister is called Quillonda."),
            ("agent", "Noted: your sister is called Quillonda."),
        ):
            await call.append(Turn(speaker=speaker, text=text))
            await call.learn()
        await call.store("family talk", "Spoke of her sister Quillonda, and of Porto")
        await ana.remember("The user's sister Quillonda is a nurse")
        await memory.settle(20)
        assert "Quillonda" in await everything(url)
        receipt = await ana.forget(key="sister_name")
        assert receipt.verified
        assert (receipt.memories, receipt.rewritten) == (2, 3)
        left = await everything(url)
        assert "quillonda" not in left.lower()
        assert "Porto" in left
        assert [turn.text for turn in await call.turns()] == [
            "I live in Porto and [forgotten].",
            "Noted: [forgotten].",
        ]
        assert "Quillonda" not in str(await ana.query("What is my sister called?", min_relevance=0))
