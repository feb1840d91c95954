"""What a server refuses, the stand-in refuses: each rule of the grammar has an example that breaks it.

The rules and codes are those of the server's source and of the search documentation, not of a run on a server;
where ECHOIC_TEST_MONGODB_URI is set, those of the server itself are tried on it.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Any

import bson
import numpy as np
import pytest
import pytest_asyncio
from bson.binary import Binary, BinaryVectorDtype
from pymongo import AsyncMongoClient, ReturnDocument
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    DuplicateKeyError,
    OperationFailure,
)
from pymongo.operations import IndexModel, SearchIndexModel
from pymongo.read_concern import ReadConcern

from echoic_loopback.mongodb import MongoServer
from echoic_loopback.mongodb.refusals import TRANSIENT
from stores import mongodb_server

pytestmark = pytest.mark.usefixtures("closed_while_connecting")

VECTOR = {
    "fields": [
        {"type": "vector", "path": "e", "numDimensions": 3, "similarity": "cosine"},
        {"type": "filter", "path": "user"},
        {"type": "filter", "path": "n"},
    ]
}
TEXT = {
    "mappings": {
        "dynamic": False,
        "fields": {
            "text": {
                "type": "string",
                "analyzer": "lucene.english",
                "multi": {"words": {"type": "string", "analyzer": "lucene.standard"}},
            },
            "user": {"type": "token"},
            "open": {"type": "boolean"},
        },
    }
}
DOCUMENTS = [
    {
        "_id": 1,
        "user": "ana",
        "n": 1,
        "text": "She likes swimming in the sea",
        "open": True,
        "e": [1.0, 0, 0],
    },
    {
        "_id": 2,
        "user": "ana",
        "n": 2,
        "text": "Her sister Katherine swims too",
        "open": True,
        "e": [0.9, 0.1, 0],
    },
    {"_id": 3, "user": "bob", "n": 3, "text": "Swimming swimming swimming", "open": False, "e": [0, 1.0, 0]},
    {"_id": 4, "user": "ana", "n": 4, "text": "Prefers tea", "open": False, "e": [0, 0, 1.0]},
    {"_id": 5, "user": "ana", "n": 5, "text": "An older model wrote this", "open": True, "e": [1.0, 0]},
]


@pytest_asyncio.fixture
async def client() -> AsyncIterator[AsyncMongoClient[dict[str, Any]]]:
    made: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(mongodb_server.url())
    yield made
    await made.close()


@pytest_asyncio.fixture
async def docs(client: Any) -> Any:
    return client.get_default_database().docs


@pytest_asyncio.fixture
async def filled(docs: Any) -> Any:
    await docs.insert_many([dict(d) for d in DOCUMENTS])
    await docs.create_search_index(SearchIndexModel(VECTOR, name="v", type="vectorSearch"))
    await docs.create_search_index(SearchIndexModel(TEXT, name="t", type="search"))
    async with asyncio.timeout(300):
        while not all([index["queryable"] async for index in await docs.list_search_indexes()]):
            await asyncio.sleep(0.01 if not mongodb_server.REAL else 2)
    if mongodb_server.REAL:
        await asyncio.sleep(5)
    return docs


def near(**more: Any) -> dict[str, Any]:
    asked = {"index": "v", "path": "e", "queryVector": [1.0, 0.0, 0.0], "limit": 3, "exact": True, **more}
    return {"$vectorSearch": {name: value for name, value in asked.items() if value is not None}}


def text(query: str = "swim", **more: Any) -> dict[str, Any]:
    return {"$search": {"index": "t", "text": {"query": query, "path": "text", **more}}}


def fused(pipelines: Any, **more: Any) -> dict[str, Any]:
    return {"$rankFusion": {"input": {"pipelines": pipelines}, **more}}


async def code_of(docs: Any, pipeline: Any) -> int | None:
    with pytest.raises(OperationFailure) as error:
        await (await docs.aggregate(pipeline)).to_list()
    return error.value.code


def around(**more: Any) -> dict[str, Any]:
    return {"$geoNear": {"near": {"type": "Point", "coordinates": [0, 0]}, "key": "place", **more}}


BOTH = {"v": [near()], "t": [text(), {"$limit": 3}]}
SERVERS_GRAMMAR: dict[str, tuple[Any, int]] = {
    "a stage of two fields": ([{"$match": {}, "$limit": 1}], 40323),
    "an unknown stage": ([{"$matches": {}}], 40324),
    "an unknown operator": ([{"$match": {"n": {"$near_to": 1}}}], 2),
    "an unknown operator at the top": ([{"$match": {"$neither": []}}], 2),
    "search behind another stage": ([{"$match": {}}, text()], 40602),
    "vector search behind another stage": ([{"$match": {}}, near()], 40602),
    "fusion behind another stage": ([{"$match": {}}, fused(BOTH)], 40602),
    "a limit of nothing": ([{"$limit": 0}], 15958),
    "a sort by nothing": ([{"$sort": {}}], 15976),
    "inclusion and exclusion": ([{"$project": {"a": 1, "b": 0}}], 31254),
    "a group without a key": ([{"$group": {"n": {"$sum": 1}}}], 15955),
    "an unknown accumulator": ([{"$group": {"_id": 1, "n": {"$summe": 1}}}], 15952),
    "fusion of nothing known": ([fused(BOTH, weights={})], 40415),
    "fusion without an input": ([{"$rankFusion": {}}], 40414),
    "an unknown field beside the pipelines": (
        [{"$rankFusion": {"input": {"pipelines": BOTH, "normalization": "none"}}}],
        40415,
    ),
    "an empty input pipeline": ([fused({"v": []})], 9834300),
    "an input pipeline that ranks nothing": ([fused({"v": [{"$match": {}}]})], 9191100),
    "an input pipeline that changes documents": ([fused({"v": [near(), {"$project": {"n": 1}}]})], 9191103),
    "stored source": (
        [fused({"t": [{"$search": {**text()["$search"], "returnStoredSource": True}}]})],
        9191103,
    ),
    "a fusion within a fusion": ([fused({"v": [fused(BOTH)]})], 10473002),
    "a score stage within a fusion": ([fused({"v": [near(), {"$score": {"score": 1}}]})], 10614800),
    "a negative weight": ([fused(BOTH, combination={"weights": {"v": -0.1}})], 9460300),
    "more weights than pipelines": (
        [fused({"v": [near()]}, combination={"weights": {"v": 1, "t": 1}})],
        9460301,
    ),
    "a weight of no pipeline": ([fused(BOTH, combination={"weights": {"vectr": 1}})], 9967500),
    "a pipeline without a name": ([fused({"": [near()]})], 15998),
    "a pipeline named like a variable": ([fused({"$v": [near()]})], 16410),
    "a pipeline named like a path": ([fused({"v.w": [near()]})], 16412),
    "a fusion that is no object": ([{"$rankFusion": "v"}], 9),
    "a fusion of no pipelines": ([fused({})], 9834301),
    "an unknown field beside the weights": ([fused(BOTH, combination={"method": "sum"})], 40415),
    "a weight that is no number": ([fused(BOTH, combination={"weights": {"v": "much"}})], 13118),
    "places that are measured within a fusion": ([fused({"g": [around(distanceField="far")]})], 9191103),
    "places that are told within a fusion": ([fused({"g": [around(includeLocs="where")]})], 9191103),
    **{
        f"an input pipeline with {stage}": ([fused({"v": [near(), {stage: argument}]})], 9191103)
        for stage, argument in {
            "$addFields": {"m": 1},
            "$set": {"m": 1},
            "$lookup": {"from": "others", "pipeline": [], "as": "o"},
            "$unionWith": "others",
            "$group": {"_id": "$user"},
            "$count": "n",
        }.items()
    },
    "an unknown field of a listing": ([{"$listSearchIndexes": {"named": "v"}}], 40415),
    "a skip backwards": ([{"$skip": -1}], 5107200),
    "a projection of nothing": ([{"$project": {}}], 51272),
    "an unknown score": ([{"$project": {"s": {"$meta": "rank"}}}], 17308),
    "the score of what was not searched": ([{"$project": {"s": {"$meta": "vectorSearchScore"}}}], 40218),
    "an unknown expression": ([{"$project": {"s": {"$shout": "$text"}}}], 168),
    "an accumulator that is none": ([{"$group": {"_id": 1, "n": 1}}], 40234),
    "a count without a name": ([{"$count": ""}], 40156),
}
SEARCH_GRAMMAR: dict[str, Any] = {
    "a limit above the candidates": [near(exact=None, numCandidates=2)],
    "too many candidates": [near(exact=None, numCandidates=10_001)],
    "no candidates though not exact": [near(exact=None)],
    "candidates though exact": [near(numCandidates=10)],
    "a vector search without a limit": [near(limit=None)],
    "a vector search for nothing": [near(queryVector=None)],
    "a vector of other dimensions": [near(queryVector=[1.0, 0.0])],
    "an unknown field of a vector search": [near(where={})],
    "a filter on what is not indexed": [near(filter={"text": "x"})],
    "an operator that filters do not have": [near(filter={"user": {"$regex": "a"}})],
    "a filter by an object": [near(filter={"user": {"name": "ana"}})],
    "a filter by a script": [near(filter={"$where": "true"})],
    "a path that holds no vectors": [near(path="f")],
    "a text index asked for vectors": [near(index="t")],
    "a search by nothing": [{"$search": {"index": "t"}}],
    "a search by two operators": [{"$search": {"index": "t", **text()["$search"], "exists": {"path": "n"}}}],
    "an unknown search operator": [{"$search": {"index": "t", "matches": {}}}],
    "an empty text": [text("")],
    "a text without a path": [{"$search": {"index": "t", "text": {"query": "x"}}}],
    "an unknown field of text": [text(boost=2)],
    "three edits": [text(fuzzy={"maxEdits": 3})],
    "an unknown field of fuzzy": [text(fuzzy={"edits": 1})],
    "no expansions": [text(fuzzy={"maxExpansions": 0})],
    "a compound of nothing": [{"$search": {"index": "t", "compound": {}}}],
    "an unknown clause": [{"$search": {"index": "t", "compound": {"filters": []}}}],
    "more that should match than there is": [
        {
            "$search": {
                "index": "t",
                "compound": {"should": [{"exists": {"path": "text"}}], "minimumShouldMatch": 2},
            }
        }
    ],
    "no fewer candidates than a limit of nothing": [near(exact=None, numCandidates=5, limit=0)],
    "a limit that is no number": [near(limit="all")],
    "a vector that is none": [near(queryVector="tea")],
    "a vector search that is no object": [{"$vectorSearch": "tea"}],
    "a vector search without an index": [near(index=None)],
    "a vector search without a path": [near(path=None)],
    "a filter that is no document": [near(filter="ana")],
    "a filter by bytes": [near(filter={"user": b"ana"})],
    "a filter by an unknown name among others": [near(filter={"$and": [{"user": "ana"}, {"open": True}]})],
    "a search that is no object": [{"$search": "tea"}],
    "no edits": [text(fuzzy={"maxEdits": 0})],
    "a prefix of less than nothing": [text(fuzzy={"prefixLength": -1})],
    "fuzzy by its name": [text(fuzzy="yes")],
    "a path that is no name": [text(path=3)],
    "no path at all": [text(path=[])],
    "an unknown field of a path": [text(path={"value": "text", "analyzer": "lucene.standard"})],
    "a clause that is none": [{"$search": {"index": "t", "compound": {"must": [{"phrase": {}}]}}}],
    "one of nothing": [{"$search": {"index": "t", "in": {"path": "user", "value": []}}}],
    "equality with a document": [{"$search": {"index": "t", "equals": {"path": "user", "value": {"a": 1}}}}],
    "equality on what is no token": [{"$search": {"index": "t", "equals": {"path": "text", "value": "tea"}}}],
}

VECTOR_INDEXES: list[Any] = [
    {"fields": []},
    {"fields": [{"type": "vector", "path": "e", "numDimensions": 0, "similarity": "cosine"}]},
    {"fields": [{"type": "vector", "path": "e", "numDimensions": 3, "similarity": "manhattan"}]},
    {"fields": [{"type": "vector", "path": "e", "similarity": "cosine"}]},
    {"fields": [*VECTOR["fields"], {"type": "filters", "path": "x"}]},
    {"fields": [*VECTOR["fields"], {"type": "filter", "path": "x", "analyzer": "lucene.english"}]},
    {"fields": VECTOR["fields"], "mappings": {}},
    {"fields": [{**VECTOR["fields"][0], "metric": "cosine"}]},
]
TEXT_INDEXES: list[Any] = [
    {},
    {"mappings": {"fields": {"a": {"type": "text"}}}},
    {"mappings": {"fields": {"a": {"type": "string", "analyzer": "lucene.klingon"}}}},
    {"mappings": {"fields": {"a": {"type": "token", "analyzer": "lucene.english"}}}},
    {"mappings": {"fields": {"a": {"type": "string", "multi": {"m": {"type": "nothing"}}}}}},
    {"mappings": {"field": {}}},
    {"mappings": {"dynamic": True}, "stopwords": []},
]


class TestGrammar:
    @pytest.mark.parametrize("rule", SERVERS_GRAMMAR)
    async def test_what_the_server_refuses_is_refused_with_its_code(self, filled: Any, rule: str) -> None:
        pipeline, code = SERVERS_GRAMMAR[rule]
        assert await code_of(filled, pipeline) == code

    @pytest.mark.parametrize("rule", SEARCH_GRAMMAR)
    async def test_what_the_search_process_refuses_is_refused(self, filled: Any, rule: str) -> None:
        await code_of(filled, SEARCH_GRAMMAR[rule])

    @pytest.mark.parametrize("stage", [near(), text(), fused(BOTH)])
    async def test_search_knows_no_read_concern(self, filled: Any, stage: Any) -> None:
        settled = filled.with_options(read_concern=ReadConcern("majority"))
        assert await code_of(settled, [stage]) == 72

    @pytest.mark.parametrize("stage", [near(), text(), fused(BOTH)])
    async def test_search_is_in_no_transaction(self, client: Any, filled: Any, stage: Any) -> None:
        async with client.start_session() as session:
            await session.start_transaction()
            with pytest.raises(OperationFailure) as error:
                await filled.aggregate([stage], session=session)
            assert error.value.code == 263

    async def test_an_index_that_is_not_there_finds_nothing(self, filled: Any) -> None:
        assert await (await filled.aggregate([near(index="nope")])).to_list() == []

    @mongodb_server.stand_in_only
    @pytest.mark.parametrize("definition", VECTOR_INDEXES)
    async def test_a_vector_index_that_cannot_be_is_refused(self, docs: Any, definition: Any) -> None:
        with pytest.raises(OperationFailure):
            await docs.create_search_index(SearchIndexModel(definition, name="x", type="vectorSearch"))

    @mongodb_server.stand_in_only
    @pytest.mark.parametrize("definition", TEXT_INDEXES)
    async def test_a_text_index_that_cannot_be_is_refused(self, docs: Any, definition: Any) -> None:
        with pytest.raises(OperationFailure):
            await docs.create_search_index(SearchIndexModel(definition, name="x", type="search"))


class TestAnswers:
    """Computed, and compared with what can be computed by hand."""

    async def ids(self, docs: Any, *pipeline: Any) -> list[int]:
        return [d["_id"] for d in await (await docs.aggregate(list(pipeline))).to_list()]

    async def test_vectors_are_ordered_by_their_cosine_and_others_are_left_out(self, filled: Any) -> None:
        scored = [near(limit=5), {"$project": {"s": {"$meta": "vectorSearchScore"}}}]
        rows = await (await filled.aggregate(scored)).to_list()
        assert [r["_id"] for r in rows] == [1, 2, 3, 4] or [r["_id"] for r in rows] == [1, 2, 4, 3]
        assert [round(r["s"], 4) for r in rows] == [
            1.0,
            round((1 + 0.9 / np.hypot(0.9, 0.1)) / 2, 4),
            0.5,
            0.5,
        ]

    async def test_a_filter_works_before_the_cut(self, filled: Any) -> None:
        assert await self.ids(filled, near(limit=1, filter={"user": "bob"})) == [3]
        both = {"$and": [{"user": {"$in": ["ana", "bob"]}}, {"n": {"$gte": 3}}]}
        assert set(await self.ids(filled, near(limit=2, filter=both))) == {3, 4}

    async def test_a_binary_vector_asks_like_an_array(self, filled: Any) -> None:
        vector = Binary.from_vector([0.0, 1.0, 0.0], BinaryVectorDtype.FLOAT32)
        assert (await self.ids(filled, near(limit=1, queryVector=vector))) == [3]

    async def test_words_are_stemmed_and_the_more_often_said_comes_first(self, filled: Any) -> None:
        assert await self.ids(filled, text("swimming")) == [3, 1, 2]
        assert await self.ids(filled, text("the")) == []

    async def test_a_word_one_letter_off_is_found_only_if_that_is_asked_for(self, filled: Any) -> None:
        words = {"value": "text", "multi": "words"}
        assert await self.ids(filled, text("Catherine", path=words)) == []
        assert await self.ids(filled, text("Catherine", path=words, fuzzy={"maxEdits": 1})) == [2]
        assert await self.ids(filled, text("Catherina", path=words, fuzzy={"maxEdits": 1})) == []
        far = text("Catherina", path=words, fuzzy={"maxEdits": 2})
        assert await self.ids(filled, far) == [2]
        assert await self.ids(filled, text("Catherine", path=words, fuzzy={"prefixLength": 1})) == []

    async def test_a_compound_takes_what_must_and_leaves_what_must_not(self, filled: Any) -> None:
        query = {
            "must": [{"text": {"query": "swim", "path": "text"}}],
            "filter": [{"equals": {"path": "user", "value": "ana"}}],
            "mustNot": [{"text": {"query": "sister", "path": "text"}}],
        }
        assert await self.ids(filled, {"$search": {"index": "t", "compound": query}}) == [1]
        either = {
            "should": [
                {"text": {"query": "tea", "path": "text"}},
                {"text": {"query": "sea", "path": "text"}},
            ],
            "filter": [{"in": {"path": "user", "value": ["ana", "zoe"]}}],
        }
        found = await self.ids(filled, {"$search": {"index": "t", "compound": either}})
        assert set(found) == {1, 2, 4, 5}, "without a minimum, what only passes the filter is found too"
        assert set(found[:2]) == {1, 4}
        least = {"$search": {"index": "t", "compound": {**either, "minimumShouldMatch": 1}}}
        assert set(await self.ids(filled, least)) == {1, 4}

    async def test_fusion_adds_the_weighted_reciprocal_ranks(self, filled: Any) -> None:
        stage = fused(
            {"v": [near(limit=2)], "t": [text("swimming"), {"$limit": 2}]},
            combination={"weights": {"v": 0.7, "t": 0.3}},
        )
        rows = await (await filled.aggregate([stage, {"$project": {"s": {"$meta": "score"}}}])).to_list()
        scores = {r["_id"]: r["s"] for r in rows}
        assert scores == pytest.approx({1: 0.7 / 61 + 0.3 / 62, 2: 0.7 / 62, 3: 0.3 / 61})
        assert [r["_id"] for r in rows] == sorted(scores, key=lambda n: -scores[n])


class TestDocuments:
    async def test_a_second_entry_in_a_unique_index_is_refused_and_a_partial_one_covers_its_own(
        self, docs: Any
    ) -> None:
        partial = {"kind": {"$exists": True}}
        unique = IndexModel([("a", 1), ("b", 1)], unique=True, name="ab", partialFilterExpression=partial)
        await docs.create_indexes([unique])
        await docs.insert_many([{"a": 1, "b": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "kind": "k"}])
        with pytest.raises(DuplicateKeyError):
            await docs.insert_one({"a": 1, "b": 1, "kind": "other"})
        with pytest.raises(DuplicateKeyError):
            await docs.update_one({"kind": {"$exists": False}}, {"$set": {"kind": "k"}})
        with pytest.raises(BulkWriteError) as error:
            await docs.insert_many([{"a": 2, "b": 1, "kind": "k"}, {"a": 1, "b": 1, "kind": "k"}, {"_id": 9}])
        assert [e["index"] for e in error.value.details["writeErrors"]] == [1]
        assert await docs.count_documents({"_id": 9}) == 0, "an ordered batch ends at its first error"

    @pytest.mark.parametrize(
        ("update", "code"),
        [
            ({"$sets": {"a": 1}}, 9),
            ({"$set": {"_id": 2}}, 66),
            ({"$set": {"a": 1}, "$unset": {"a": ""}}, 40),
            ({"$set": {"a": {}}, "$inc": {"a.b": 1}}, 40),
            ({"$inc": {"text": 1}}, 14),
            ({"$inc": {"n": "one"}}, 14),
        ],
    )
    async def test_an_update_that_cannot_be_is_refused(self, docs: Any, update: Any, code: int) -> None:
        await docs.insert_one({"_id": 1, "n": 1, "text": "a"})
        with pytest.raises(OperationFailure) as error:
            await docs.update_one({"_id": 1}, update)
        assert error.value.code == code
        assert await docs.find_one() == {"_id": 1, "n": 1, "text": "a"}

    async def test_values_compare_within_their_type(self, docs: Any) -> None:
        await docs.insert_many(
            [{"_id": n, "v": v} for n, v in enumerate([None, 1, 2.0, "1", "a", True, [1, 5]])]
        )
        await docs.insert_one({"_id": 7})

        async def ids(query: Any) -> set[int]:
            return {d["_id"] async for d in docs.find(query)}

        assert await ids({"v": None}) == {0, 7}
        assert await ids({"v": {"$exists": False}}) == {7}
        assert await ids({"v": 1}) == {1, 6}
        assert await ids({"v": {"$gt": 1}}) == {2, 6}
        assert await ids({"v": {"$lte": "a"}}) == {3, 4}
        assert await ids({"v": {"$ne": 1}}) == {0, 2, 3, 4, 5, 7}
        assert await ids({"v": {"$in": [True, None]}}) == {0, 5, 7}
        assert await ids({"$nor": [{"v": 1}, {"v": {"$type": "string"}}]}) == {0, 2, 5, 7}
        assert await ids({"v": {"$not": {"$gt": 1}}}) == {0, 1, 3, 4, 5, 7}
        ordered = [d["_id"] async for d in docs.find({"_id": {"$ne": 6}}).sort([("v", 1), ("_id", 1)])]
        assert ordered == [0, 7, 1, 2, 3, 4, 5]

    async def test_an_unknown_command_or_field_is_refused(self, client: Any) -> None:
        db = client.get_default_database()
        for command, code in (({"sing": 1}, 59), ({"ping": 1, "loudly": True}, 40415)):
            with pytest.raises(OperationFailure) as error:
                await db.command(command)
            assert error.value.code == code

    async def test_what_is_larger_than_one_batch_comes_in_several(self, docs: Any) -> None:
        await docs.insert_many([{"_id": n} for n in range(1000)])
        found = [d["_id"] async for d in docs.find({}, batch_size=70).sort("_id", -1).limit(900)]
        assert found == list(range(999, 99, -1))

    async def test_a_document_that_is_not_there_is_made_once_by_many(self, docs: Any) -> None:
        async def count() -> int:
            after = ReturnDocument.AFTER
            found = await docs.find_one_and_update(
                {"_id": "c"}, {"$inc": {"n": 1}}, upsert=True, return_document=after
            )
            return int(found["n"])

        assert sorted(await asyncio.gather(*(count() for _ in range(20)))) == list(range(1, 21))


class TestTransactions:
    async def test_what_was_written_is_seen_by_all_or_by_none(self, client: Any, docs: Any) -> None:
        await docs.insert_one({"_id": 1, "n": 1})
        async with client.start_session() as session:
            await session.start_transaction()
            await docs.update_one({"_id": 1}, {"$set": {"n": 2}}, session=session)
            await docs.insert_one({"_id": 2}, session=session)
            assert await docs.count_documents({}, session=session) == 2
            assert await docs.find_one({"_id": 1}) == {"_id": 1, "n": 1}
            assert await docs.count_documents({}) == 1
            await session.abort_transaction()
            assert await docs.find_one({"_id": 1}) == {"_id": 1, "n": 1}
            async with await session.start_transaction():
                await docs.delete_one({"_id": 1}, session=session)
                await docs.insert_one({"_id": 3}, session=session)
        assert [d["_id"] async for d in docs.find()] == [3]

    async def test_a_transaction_sees_what_was_there_when_it_first_looked(
        self, client: Any, docs: Any
    ) -> None:
        await docs.insert_many([{"_id": 1, "n": 1}, {"_id": 2, "n": 1}])
        async with client.start_session() as session:
            await session.start_transaction(read_concern=ReadConcern("snapshot"))
            assert (await docs.find_one({"_id": 1}, session=session))["n"] == 1
            await docs.update_one({"_id": 2}, {"$set": {"n": 2}})
            await docs.insert_one({"_id": 3})
            await docs.delete_one({"_id": 1})
            assert [d["n"] async for d in docs.find({}, session=session).sort("_id", 1)] == [1, 1]
            with pytest.raises(OperationFailure) as error:
                await docs.update_one({"_id": 2}, {"$set": {"n": 3}}, session=session)
            assert error.value.code == 112
            assert error.value.has_error_label(TRANSIENT)
            with pytest.raises(OperationFailure) as ended:
                await session.commit_transaction()
            assert ended.value.code == 251
        assert await docs.find_one({"_id": 2}) == {"_id": 2, "n": 2}

    async def test_the_second_to_write_in_a_transaction_is_told_and_outside_of_one_waits(
        self, client: Any, docs: Any
    ) -> None:
        await docs.insert_one({"_id": 1, "n": 0})
        async with client.start_session() as first, client.start_session() as second:
            await first.start_transaction()
            await docs.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=first)
            await second.start_transaction()
            with pytest.raises(OperationFailure) as error:
                await docs.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=second)
            assert error.value.code == 112
            outside = asyncio.ensure_future(docs.update_one({"_id": 1}, {"$inc": {"n": 10}}))
            await asyncio.sleep(0.05)
            assert not outside.done()
            await first.commit_transaction()
            await outside
        assert (await docs.find_one({"_id": 1}))["n"] == 11

    async def test_counters_lose_nothing(self, client: Any, docs: Any) -> None:
        await docs.insert_one({"_id": "a", "n": 0})

        async def count_up() -> None:
            async def work(session: Any) -> None:
                found = await docs.find_one({"_id": "a"}, session=session)
                await docs.update_one({"_id": "a"}, {"$set": {"n": found["n"] + 1}}, session=session)
                await docs.insert_one({"n": found["n"]}, session=session)

            async with client.start_session() as session:
                await session.with_transaction(work)

        await asyncio.gather(*(count_up() for _ in range(12)))
        assert (await docs.find_one({"_id": "a"}))["n"] == 12
        assert sorted([d["n"] async for d in docs.find({"_id": {"$ne": "a"}})]) == list(range(12))

    @mongodb_server.stand_in_only
    async def test_a_standalone_server_has_none(self) -> None:
        with MongoServer(replica_set=None) as server:
            alone: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(server.uri)
            async with alone.start_session() as session:
                with pytest.raises(OperationFailure) as error:
                    async with await session.start_transaction():
                        await alone.db.docs.insert_one({"_id": 1}, session=session)
                assert error.value.code == 20
            with pytest.raises(OperationFailure) as no_stream:
                await alone.db.docs.watch()
            assert no_stream.value.code == 40573
            await alone.close()

    @mongodb_server.stand_in_only
    async def test_a_server_without_search_says_so(self) -> None:
        with MongoServer(search=False) as server:
            plain: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(server.uri)
            assert await code_of(plain.db.docs, [text()]) == 31082
            with pytest.raises(OperationFailure) as error:
                await plain.db.docs.create_search_index(SearchIndexModel(TEXT, name="t"))
            assert error.value.code == 31082
            await plain.close()


class TestStreams:
    async def test_a_change_stream_tells_what_happened_in_order(self, client: Any, docs: Any) -> None:
        await docs.insert_one({"_id": 0})
        async with await docs.watch(full_document="updateLookup", max_await_time_ms=200) as stream:
            await docs.insert_one({"_id": 1, "n": 1, "m": 1})
            await docs.update_one({"_id": 1}, {"$set": {"n": 2}, "$unset": {"m": ""}})
            await client.get_default_database().others.insert_one({"_id": 5})
            await docs.delete_one({"_id": 1})
            events = [await stream.next() for _ in range(3)]
        assert [e["operationType"] for e in events] == ["insert", "update", "delete"]
        assert all(e["documentKey"] == {"_id": 1} for e in events)
        assert events[0]["fullDocument"] == {"_id": 1, "n": 1, "m": 1}
        assert events[1]["updateDescription"]["updatedFields"] == {"n": 2}
        assert events[1]["updateDescription"]["removedFields"] == ["m"]
        async with await docs.watch(resume_after=events[0]["_id"]) as again:
            assert [(await again.next())["operationType"] for _ in range(2)] == ["update", "delete"]

    async def test_what_is_not_committed_is_not_told(self, client: Any, docs: Any) -> None:
        await docs.insert_one({"_id": 0})
        async with await docs.watch(max_await_time_ms=50) as stream, client.start_session() as session:
            await session.start_transaction()
            await docs.insert_one({"_id": 1}, session=session)
            assert await stream.try_next() is None
            await session.abort_transaction()
            await docs.insert_one({"_id": 2})
            assert (await stream.next())["documentKey"] == {"_id": 2}


@mongodb_server.stand_in_only
class TestFaults:
    @pytest_asyncio.fixture
    async def alone(self) -> AsyncIterator[tuple[MongoServer, Any]]:
        mongodb_server.note("the wire stand-in")
        with MongoServer() as server:
            made: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(server.uri)
            yield server, made
            await made.close()

    async def test_a_write_that_is_sent_twice_happens_once(self, alone: Any) -> None:
        server, client = alone
        await client.db.docs.insert_one({"_id": 1, "n": 0})
        data = {"failCommands": ["update"], "closeConnection": True}
        await client.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=data)
        before = server.seen["update"]
        await client.db.docs.update_one({"_id": 1}, {"$inc": {"n": 1}})
        assert server.seen["update"] == before + 2
        assert (await client.db.docs.find_one())["n"] == 1

    async def test_a_command_fails_as_often_as_was_asked(self, alone: Any) -> None:
        _, client = alone
        data = {"failCommands": ["find"], "errorCode": 13}
        await client.admin.command("configureFailPoint", "failCommand", mode={"times": 2}, data=data)
        for _ in range(2):
            with pytest.raises(OperationFailure) as error:
                await client.db.docs.find_one()
            assert error.value.code == 13
        assert await client.db.docs.find_one() is None

    async def test_a_server_that_is_down_is_gone_and_keeps_what_it_had(self, alone: Any) -> None:
        server, client = alone
        await client.db.docs.insert_one({"_id": 1})
        server.go_down()
        short: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(server.uri, serverSelectionTimeoutMS=200)
        with pytest.raises(AutoReconnect):
            await short.db.docs.find_one()
        await short.close()
        server.come_up()
        assert await client.db.docs.find_one() == {"_id": 1}


@mongodb_server.stand_in_only
class TestWire:
    """Messages as bytes, for what the driver never sends."""

    @staticmethod
    def message(flags: int, *sections: bytes, number: int = 7) -> bytes:
        body = struct.pack("<I", flags) + b"".join(sections)
        return struct.pack("<iiii", 16 + len(body), number, 0, 2013) + body

    @staticmethod
    async def answer(data: bytes) -> bytes:
        """What comes back, up to the end of the connection or of the first message."""
        server = mongodb_server.shared()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(data)
        try:
            async with asyncio.timeout(60):
                head = await reader.read(16)
                return head + await reader.readexactly(struct.unpack("<i", head[:4])[0] - 16) if head else b""
        except ConnectionResetError:
            return b""
        finally:
            writer.close()

    async def test_a_command_may_come_in_two_sections(self) -> None:
        command = b"\0" + bson.encode({"insert": "docs", "$db": "wire_sections"})
        documents = bson.encode({"_id": 1}) + bson.encode({"_id": 2})
        sequence = b"documents\0" + documents
        found = await self.answer(
            self.message(0, command, b"\1" + struct.pack("<i", 4 + len(sequence)) + sequence)
        )
        assert bson.decode(found[21:]) == {"n": 2, "ok": 1.0}

    async def test_a_checksum_behind_the_message_is_no_part_of_it(self) -> None:
        found = await self.answer(self.message(1, b"\0" + bson.encode({"ping": 1, "$db": "x"}), b"abcd"))
        assert bson.decode(found[21:])["ok"] == 1.0

    async def test_who_wants_no_answer_gets_none(self) -> None:
        ping = b"\0" + bson.encode({"ping": 1, "$db": "x"})
        found = await self.answer(self.message(2, ping, number=7) + self.message(0, ping, number=8))
        assert struct.unpack("<iiii", found[:16])[2] == 8, "the first message was answered"

    @pytest.mark.parametrize(
        "data",
        [
            struct.pack("<iiii", 20, 1, 0, 2013) + struct.pack("<I", 4),  # a flag that must be understood
            struct.pack("<iiii", 25, 1, 0, 2013) + struct.pack("<I", 0) + b"\5" + struct.pack("<i", 4),
            struct.pack("<iiii", 1 << 30, 1, 0, 2013),  # longer than a message may be
            struct.pack("<iiii", 16, 1, 0, 2013),
            struct.pack("<iiii", 20, 1, 0, 2002) + b"abcd",  # an operation of long ago
        ],
    )
    async def test_what_is_no_message_ends_the_connection(self, data: bytes) -> None:
        assert await self.answer(data) == b""
