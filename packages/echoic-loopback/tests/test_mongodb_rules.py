"""Every rule of the grammar that the stand-in knows has an example that breaks it, and there is none without.

The rules are read out of the stand-in's own source: each place that refuses. The examples are those of
`test_mongodb_standin`; a rule that is added there without one fails here.
"""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel
from pymongo.read_concern import ReadConcern
from pymongo.server_api import ServerApi

from echoic_loopback.mongodb import (
    MongoServer,
    pipelines,
    refusals,
    search_indexes,
    text_search,
    vector_search,
)
from stores import mongodb_server
from test_mongodb_standin import (
    DOCUMENTS,
    SEARCH_GRAMMAR,
    SERVERS_GRAMMAR,
    TEXT,
    TEXT_INDEXES,
    VECTOR,
    VECTOR_INDEXES,
    fused,
    near,
    text,
)

pytestmark = [pytest.mark.usefixtures("closed_while_connecting"), mongodb_server.stand_in_only]

GRAMMAR = (pipelines, vector_search, text_search, search_indexes)
_REFUSING = {"Refusal", "bad", "unknown_fields"}
_HELPERS = {"bad", "unknown_fields", "__init__"}
Place = tuple[str, int]
"""A module's file and the line of a statement."""


def rules(module: ModuleType) -> set[Place]:
    """Each statement of `module` that refuses."""
    path = inspect.getsourcefile(module)
    assert path is not None
    found: set[Place] = set()
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name in _HELPERS - {"__init__"}:
            continue
        if isinstance(node, ast.Raise | ast.Expr):
            call = node.exc if isinstance(node, ast.Raise) else node.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _REFUSING:
                found.add((path, node.lineno))
    return found


class Broken:
    """Which rules were broken: where each refusal was made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.places: set[Place] = set()
        original = refusals.Refusal.__init__

        def noted(refusal: refusals.Refusal, *arguments: Any, **named: Any) -> None:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_name in {"bad", "unknown_fields"}:
                frame = frame.f_back
            assert frame is not None
            self.places.add((frame.f_code.co_filename, frame.f_lineno))
            original(refusal, *arguments, **named)

        monkeypatch.setattr(refusals.Refusal, "__init__", noted)


async def refused(docs: Any, pipeline: Any) -> None:
    with pytest.raises(OperationFailure):
        await (await docs.aggregate(pipeline)).to_list()


async def broken_by_the_examples(docs: Any) -> None:
    await docs.insert_many([dict(d) for d in DOCUMENTS])
    await docs.create_search_index(SearchIndexModel(VECTOR, name="v", type="vectorSearch"))
    await docs.create_search_index(SearchIndexModel(TEXT, name="t", type="search"))
    await refused(docs, [near()])  # which is still being built
    while not all([index["queryable"] async for index in await docs.list_search_indexes()]):
        pass
    for pipeline, _ in SERVERS_GRAMMAR.values():
        await refused(docs, pipeline)
    for pipeline in SEARCH_GRAMMAR.values():
        await refused(docs, pipeline)
    for kind, definitions in (("vectorSearch", VECTOR_INDEXES), ("search", TEXT_INDEXES)):
        for definition in definitions:
            with pytest.raises(OperationFailure):
                await docs.create_search_index(SearchIndexModel(definition, name="x", type=kind))
    with pytest.raises(OperationFailure):
        await docs.create_search_index(SearchIndexModel(VECTOR, name="x", type="knn"))
    await refused(docs.with_options(read_concern=ReadConcern("majority")), [text()])
    async with docs.database.client.start_session() as session:
        await session.start_transaction()
        with pytest.raises(OperationFailure):
            await docs.aggregate([text()], session=session)
    with pytest.raises(OperationFailure):
        await docs.database.command("aggregate", "docs", pipeline={"$match": {}}, cursor={})


async def test_every_place_that_refuses_has_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Broken(monkeypatch)
    with MongoServer() as server, MongoServer(search=False) as bare, MongoServer(version=(7, 0, 5)) as older:
        async with (
            AsyncMongoClient(server.url("rules")) as client,
            AsyncMongoClient(server.url("rules"), server_api=ServerApi("1", strict=True)) as strict,
            AsyncMongoClient(bare.url("rules")) as without,
            AsyncMongoClient(older.url("rules")) as before,
        ):
            await broken_by_the_examples(client.get_default_database().docs)
            await refused(strict.get_default_database().docs, [fused({"v": [near()]})])
            await refused(without.get_default_database().docs, [text()])
            await refused(before.get_default_database().docs, [fused({"v": [near()]})])
    wanted = set().union(*(rules(module) for module in GRAMMAR))
    assert len(wanted) > 50
    missing = sorted(f"{Path(path).name}:{line}" for path, line in wanted - broken.places)
    assert not missing, "rules that no example breaks: " + " ".join(missing)
