"""Aggregation: stages in order, each checked before any runs; `$rankFusion` by the server's grammar.

Codes and rules of `$rankFusion` are those of the server's source, `document_source_rank_fusion.cpp`: what may
stand in an input pipeline, how weights are named, and 60 as the constant of reciprocal rank fusion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from echoic_loopback.mongodb.matching import Document, compiled, order, sorted_by, values_at
from echoic_loopback.mongodb.refusals import (
    API_STRICT,
    BAD_VALUE,
    FAILED_TO_PARSE,
    INVALID_OPTIONS,
    INVALID_PIPELINE_OPERATOR,
    NOT_FIRST,
    NOT_SUPPORTED_IN_TRANSACTION,
    SEARCH_NOT_ENABLED,
    STAGE_OF_ONE_FIELD,
    TYPE_MISMATCH,
    UNKNOWN_STAGE,
    Refusal,
    unknown_fields,
)
from echoic_loopback.mongodb.search_indexes import SearchIndex, bad
from echoic_loopback.mongodb.text_search import TextSearch
from echoic_loopback.mongodb.vector_search import VectorSearch

RANK_CONSTANT = 60
FUSES_FROM = (8, 0)
_RANKED = {"$search", "$vectorSearch", "$geoNear"}
_SELECTING = {"$search", "$vectorSearch", "$geoNear", "$match", "$sort", "$limit", "$skip", "$sample"}
_SOURCES = {"$search", "$vectorSearch", "$rankFusion", "$listSearchIndexes", "$changeStream"}
_META = {"score", "searchScore", "vectorSearchScore"}


class Row:
    """A document on its way through a pipeline, with what is known about it beside its fields."""

    __slots__ = ("document", "key", "scores")

    def __init__(self, key: Any, document: Document, scores: Mapping[str, float] | None = None) -> None:
        self.key, self.document = key, document
        self.scores = dict(scores or {})


class Source:
    """What a pipeline reads: the documents a filter finds, and the search indexes of the collection."""

    def __init__(
        self,
        find: Callable[[Mapping[str, Any]], list[Document]],
        indexed: Callable[[], list[tuple[Any, Document]]],
        indexes: Mapping[str, SearchIndex],
        *,
        searches: bool,
    ) -> None:
        self.find, self.indexed, self.indexes, self.searches = find, indexed, indexes, searches


def stage_of(stage: Any) -> tuple[str, Any]:
    """A stage's name and argument.

    Raises:
        Refusal: it is no object of one field.
    """
    if not isinstance(stage, Mapping) or len(stage) != 1:
        raise Refusal(
            STAGE_OF_ONE_FIELD, "A pipeline stage specification object must contain exactly one field."
        )
    return next(iter(stage.items()))


def check(pipeline: Any) -> None:
    """Refuse a pipeline that a server would refuse whatever the data is.

    Raises:
        Refusal: so it is.
    """
    if not isinstance(pipeline, list):
        raise Refusal(TYPE_MISMATCH, "'pipeline' option must be specified as an array")
    for place, stage in enumerate(pipeline):
        name, argument = stage_of(stage)
        if name not in STAGES and name not in _SOURCES:
            raise Refusal(UNKNOWN_STAGE, f"Unrecognized pipeline stage name: '{name}'")
        if place and name in _SOURCES:
            raise Refusal(NOT_FIRST, f"{name} is only valid as the first stage in a pipeline")
        _check_stage(name, argument)


def check_version(pipeline: Sequence[Mapping[str, Any]], version: tuple[int, ...], *, strict: bool) -> None:
    """Refuse what came with a later version, or is in no stable API (`kNeverInVersion1`).

    Raises:
        Refusal: so it is.
    """
    for name in (stage_of(stage)[0] for stage in pipeline):
        if name == "$rankFusion" and version < FUSES_FROM:
            raise Refusal(UNKNOWN_STAGE, f"Unrecognized pipeline stage name: '{name}'")
        if name == "$rankFusion" and strict:
            raise Refusal(API_STRICT, f"stage {name} is not allowed with 'apiStrict: true'")


def check_concern(pipeline: Sequence[Mapping[str, Any]], level: str, *, in_transaction: bool) -> None:
    """Refuse what the search process cannot give: it knows neither read concerns nor transactions.

    Raises:
        Refusal: so it is.
    """
    name = stage_of(pipeline[0])[0] if pipeline else ""
    if name not in {"$search", "$vectorSearch", "$rankFusion", "$listSearchIndexes"}:
        return
    if in_transaction:
        raise Refusal(NOT_SUPPORTED_IN_TRANSACTION, f"Operation not permitted in transaction :: {name}")
    if level != "local":
        raise Refusal(
            INVALID_OPTIONS,
            f"Aggregation stage {name} cannot run with a readConcern other than 'local'. "
            f"Current readConcern: {level}",
        )


def _check_stage(name: str, argument: Any) -> None:
    if name == "$vectorSearch":
        VectorSearch(argument)
    elif name == "$search":
        TextSearch(argument)
    elif name == "$rankFusion":
        check_rank_fusion(argument)
    elif name == "$listSearchIndexes":
        unknown_fields(list(argument), {"name", "id"}, "$listSearchIndexes")
    elif name in STAGES:
        STAGES[name]([], argument)


def run(source: Source, pipeline: Sequence[Mapping[str, Any]]) -> list[Document]:
    """The documents that come out of a pipeline that was checked."""
    return [row.document for row in _run(source, pipeline)]


def _run(source: Source, pipeline: Sequence[Mapping[str, Any]]) -> list[Row]:
    stages = [stage_of(stage) for stage in pipeline]
    if stages and stages[0][0] in _SOURCES:
        rows, stages = _begin(source, *stages[0]), stages[1:]
    else:
        query = stages[0][1] if stages and stages[0][0] == "$match" else {}
        rows = [Row(order(d["_id"]), d) for d in source.find(query)]
    for name, argument in stages:
        rows = STAGES[name](rows, argument)
    return rows


def _begin(source: Source, name: str, argument: Any) -> list[Row]:
    if not source.searches:
        raise Refusal(
            SEARCH_NOT_ENABLED,
            "Using $search and $vectorSearch aggregation stages requires additional configuration. "
            "Please connect to Atlas or an AtlasCLI local deployment to enable.",
        )
    if name == "$listSearchIndexes":
        wanted = argument.get("name")
        listed = [i.listed() for i in source.indexes.values() if wanted in {None, i.name}]
        return [Row(order(d["id"]), d) for d in listed]
    if name == "$rankFusion":
        return _fused(source, argument)
    if name == "$vectorSearch":
        return _searched(source, VectorSearch(argument), "vectorSearch")
    return _searched(source, TextSearch(argument), "search")


def _searched(source: Source, search: VectorSearch | TextSearch, kind: str) -> list[Row]:
    index = source.indexes.get(search.index)
    if index is None:
        return []  # an index that is not there finds nothing, and nobody is told
    if index.kind != kind:
        raise bad(f"index {search.index} is of type {index.kind} and cannot answer ${kind}")
    if not index.ready:
        raise bad(f"cannot query search index {search.index} while in state INITIAL_SYNC")
    indexed = source.indexed()
    keys = {id(document): key for key, document in indexed}
    found = search.run(index, [document for _, document in indexed])
    name = f"{kind}Score"
    return [Row(keys[id(d)], dict(d), {name: score, "score": score}) for d, score in found]


def check_rank_fusion(argument: Any) -> None:
    """Refuse what `$rankFusion` does not take.

    Raises:
        Refusal: so it is, with the server's own code.
    """
    if not isinstance(argument, Mapping):
        raise Refusal(FAILED_TO_PARSE, "The $rankFusion stage specification must be an object")
    unknown_fields(list(argument), {"input", "combination", "scoreDetails"}, "$rankFusion")
    if "input" not in argument:
        raise Refusal(40414, "BSON field '$rankFusion.input' is missing but a required field")
    unknown_fields(list(argument["input"]), {"pipelines"}, "$rankFusion.input")
    pipelines = argument["input"].get("pipelines")
    if not isinstance(pipelines, Mapping) or not pipelines:
        raise Refusal(9834301, "$rankFusion must have at least one input pipeline")
    for name, pipeline in pipelines.items():
        _check_pipeline_name(name)
        _check_input(name, pipeline)
    _check_weights(argument.get("combination", {}), pipelines)


def _check_pipeline_name(name: str) -> None:
    if not name:
        raise Refusal(15998, "$rankFusion pipeline names cannot be empty strings")
    if name.startswith("$"):
        raise Refusal(16410, f"$rankFusion pipeline names cannot start with '$': {name}")
    if "." in name or "\0" in name:
        raise Refusal(16412, f"$rankFusion pipeline names cannot hold '.' or NUL: {name!r}")


def _check_input(name: str, pipeline: Any) -> None:
    if not pipeline:
        raise Refusal(9834300, f"$rankFusion input pipeline cannot be empty: {name}")
    stages = [stage_of(stage) for stage in pipeline]
    for stage, argument in stages:
        if stage in {"$rankFusion", "$scoreFusion"}:
            raise Refusal(10473002, f"{stage} is not allowed inside an input pipeline of $rankFusion")
        if stage == "$score":
            raise Refusal(10614800, "$score is not allowed inside an input pipeline of $rankFusion")
        changes = stage == "$search" and argument.get("returnStoredSource")
        changes = changes or (stage == "$geoNear" and {"distanceField", "includeLocs"} & set(argument))
        if stage not in _SELECTING or changes:
            raise Refusal(9191103, f"{stage} is not a selection stage: {name}")
    if stages[0][0] not in _RANKED and not any(stage == "$sort" for stage, _ in stages):
        raise Refusal(
            9191100,
            "All subpipelines to the $rankFusion stage must begin with one of $search, $vectorSearch, "
            "$geoNear, or have a custom $sort in the pipeline.",
        )
    check(list(pipeline))


def _check_weights(combination: Mapping[str, Any], pipelines: Mapping[str, Any]) -> None:
    unknown_fields(list(combination), {"weights"}, "$rankFusion.combination")
    weights = combination.get("weights", {})
    if len(weights) > len(pipelines):
        raise Refusal(9460301, "$rankFusion input has more weights than pipelines")
    for name, weight in weights.items():
        if name not in pipelines:
            raise Refusal(9967500, f"$rankFusion weight '{name}' does not reference an input pipeline")
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise Refusal(13118, f"$rankFusion's pipeline weight must be numeric: {name}")
        if weight < 0:
            raise Refusal(9460300, f"$rankFusion's pipeline weight must be non-negative: {name}")


def _fused(source: Source, argument: Mapping[str, Any]) -> list[Row]:
    weights = argument.get("combination", {}).get("weights", {})
    rows: dict[Any, Row] = {}
    for name, pipeline in argument["input"]["pipelines"].items():
        for rank, found in enumerate(_run(source, pipeline), 1):
            row = rows.setdefault(found.key, Row(found.key, found.document))
            share = weights.get(name, 1) / (RANK_CONSTANT + rank)
            row.scores["score"] = row.scores.get("score", 0.0) + share
    return sorted(rows.values(), key=lambda row: -row.scores["score"])


def _match(rows: list[Row], query: Any) -> list[Row]:
    test = compiled(query)
    return [row for row in rows if test(row.document)]


def _sort(rows: list[Row], keys: Any) -> list[Row]:
    documents = sorted_by([row.document for row in rows], keys)
    by_document = {id(row.document): row for row in rows}
    return [by_document[id(document)] for document in documents]


def _limit(rows: list[Row], limit: Any) -> list[Row]:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise Refusal(15958, "the limit must be positive")
    return rows[:limit]


def _skip(rows: list[Row], count: Any) -> list[Row]:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise Refusal(5107200, "invalid argument to $skip stage: Expected a non-negative number")
    return rows[count:]


def _project(rows: list[Row], fields: Any) -> list[Row]:
    if not isinstance(fields, Mapping) or not fields:
        raise Refusal(51272, "Invalid $project :: caused by :: projection must have at least one field")
    return [
        Row(row.key, projected(row.document, fields, row.scores), row.scores) for row in rows
    ] or _checked(fields)


def _checked(fields: Mapping[str, Any]) -> list[Row]:
    projected({}, fields, dict.fromkeys(_META, 0.0))
    return []


def projected(
    document: Document, fields: Mapping[str, Any], scores: Mapping[str, float] | None = None
) -> Document:
    """The fields of `document` that a projection keeps, and those it computes.

    Raises:
        Refusal: it keeps some and leaves out others, or computes what is not known here.
    """
    plain = {name: bool(value) for name, value in fields.items() if isinstance(value, (bool, int, float))}
    modes = {keeps for name, keeps in plain.items() if name != "_id"}
    if len(modes) > 1:
        raise Refusal(31254, "Cannot do inclusion on field in exclusion projection")
    computed = {name: value for name, value in fields.items() if name not in plain}
    if modes == {False} or (not modes and not computed):
        return {name: value for name, value in document.items() if plain.get(name, True)}
    kept = {name: value for name, value in document.items() if plain.get(name, name == "_id")}
    for name, value in computed.items():
        found = evaluated(document, value, scores or {})
        if found is not None:
            kept[name] = found
    return kept


def evaluated(document: Document, expression: Any, scores: Mapping[str, float]) -> Any:
    """The value of an aggregation expression: a field, a constant or `$meta`.

    Raises:
        Refusal: it is another.
    """
    if isinstance(expression, str) and expression.startswith("$"):
        return (values_at(document, expression[1:]) or [None])[0]
    if isinstance(expression, Mapping):
        name = next(iter(expression), "")
        if name == "$meta":
            if expression[name] not in _META:
                raise Refusal(17308, f"Unsupported argument to $meta: {expression[name]}")
            if expression[name] not in scores:
                raise Refusal(40218, f"query requires {expression[name]} metadata, but it is not available")
            return scores[expression[name]]
        if name == "$literal":
            return expression[name]
        if name.startswith("$"):
            raise Refusal(INVALID_PIPELINE_OPERATOR, f"Unrecognized expression '{name}'")
    return expression


def _group(rows: list[Row], fields: Any) -> list[Row]:
    if not isinstance(fields, Mapping) or "_id" not in fields:
        raise Refusal(15955, "a group specification must include an _id")
    accumulators = {name: _accumulator(name, given) for name, given in fields.items() if name != "_id"}
    groups: dict[Any, Document] = {}
    for row in rows:
        value = evaluated(row.document, fields["_id"], row.scores)
        group = groups.setdefault(order(value), {"_id": value, **dict.fromkeys(accumulators, 0)})
        for name, expression in accumulators.items():
            amount = evaluated(row.document, expression, row.scores)
            group[name] += amount if isinstance(amount, (int, float)) and not isinstance(amount, bool) else 0
    return [Row(key, document) for key, document in groups.items()]


def _accumulator(name: str, given: Any) -> Any:
    if not isinstance(given, Mapping) or len(given) != 1:
        raise Refusal(40234, f"The field '{name}' must be an accumulator object")
    operator, expression = next(iter(given.items()))
    if operator != "$sum":
        raise Refusal(15952, f"unknown group operator '{operator}'")
    evaluated({}, expression, {})
    return expression


def _count(rows: list[Row], name: Any) -> list[Row]:
    if not isinstance(name, str) or not name or name.startswith("$") or "." in name:
        raise Refusal(40156, "the count field must be a non-empty string without '$' in front or '.' in it")
    return [Row((), {name: len(rows)})] if rows else []


STAGES: Mapping[str, Callable[[list[Row], Any], list[Row]]] = {
    "$match": _match,
    "$sort": _sort,
    "$limit": _limit,
    "$skip": _skip,
    "$project": _project,
    "$group": _group,
    "$count": _count,
}

__all__ = [
    "BAD_VALUE",
    "RANK_CONSTANT",
    "STAGES",
    "Source",
    "check",
    "check_concern",
    "projected",
    "run",
    "stage_of",
]
