"""The same conversations give the same ranking, question by question, whatever keeps them. Over LoCoMo."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from echoic.cli.importers import read_locomo
from echoic.cli.importers.base import ImportedTurn, ImportSource
from echoic.embedding import LexicalEmbedder
from echoic.memory.records import index, record_of_turn
from echoic.ranking.query import query_of
from echoic.ranking.rank import LEXICAL_FLOOR, RankedRow, rank
from echoic.stores import store_from
from echoic.stores.base import Attach, Put, Record, Store
from echoic.stores.in_memory import InMemoryStore
from echoic.types import Scope
from stores.postgres_server import shared

LIKELY = 100


@pytest.fixture
def samples() -> Iterator[tuple[Scope, list[Record], list[str]]]:
    """Of each sample: whose it is, its turns as records, its questions."""
    path = os.environ.get("ECHOIC_LOCOMO")
    if not path:
        pytest.skip("ECHOIC_LOCOMO names no file: the data (snap-research/LoCoMo) is no part of this project")
    turns: dict[str, list[Record]] = {}
    for item in read_locomo(ImportSource(name=path, path=Path(path))):
        if isinstance(item, ImportedTurn) and item.user is not None:
            turns.setdefault(item.user, []).append(record_of_turn(item.turn))
    questions = {
        sample["sample_id"]: [asked["question"] for asked in sample["qa"]]
        for sample in json.loads(Path(path).read_text(encoding="utf-8"))
    }
    return ((Scope("locomo", user), records, questions[user]) for user, records in turns.items())


async def _filled(store: Store, scope: Scope, records: list[Record], vectors: Any) -> Store:
    await store.write(scope, [Put(record=record) for record in records])
    await store.write(
        scope,
        [
            Attach(kind=record.kind, id=record.id, version=1, vector=vector)
            for record, vector in zip(records, vectors, strict=True)
        ],
    )
    return store


async def test_every_question_is_answered_as_by_the_store_in_memory(
    samples: Iterator[tuple[Scope, list[Record], list[str]]],
) -> None:
    embedder, url = LexicalEmbedder(384), shared().url()
    asked = narrowed = same = 0
    for scope, records, questions in samples:
        vectors = await embedder.embed([record.data["text"] for record in records], "document")
        store, reference = store_from(url), InMemoryStore()
        for one in (store, reference):
            await one.open(embedder.spec, index)
            await _filled(one, scope, records, vectors)
        whole, wanted = await store.load(scope), await reference.load(scope)
        for question, vector in zip(questions, await embedder.embed(questions, "query"), strict=True):
            query = query_of(question, vector)
            best = rank(query, [wanted], limit=50, floor=LEXICAL_FLOOR)
            assert rank(query, [whole], limit=50, floor=LEXICAL_FLOOR) == best, question
            asked += 1
            if asked % 10 == 0:
                narrow = await store.narrow(scope, question, vector, limit=LIKELY, include_past=False)
                assert narrow.origin is not None
                found = rank(query, [narrow], limit=10, floor=LEXICAL_FLOOR)
                narrowed += len(best[:10])
                same += len(_rows(best[:10]) & {int(narrow.origin[row]) for row in _rows(found)})
        await store.aclose()
    assert asked > 100
    assert same >= 0.8 * narrowed, f"{same} of {narrowed}"


def _rows(found: list[RankedRow]) -> set[int]:
    return {hit.row for hit in found}
