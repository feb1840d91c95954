"""`$search`: `compound`, `text`, `equals`, `in` and `exists`, by their grammar, scored by BM25."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bson.objectid import ObjectId

from echoic_loopback.mongodb.analysis import ANALYZERS, DEFAULT_ANALYZER, edits
from echoic_loopback.mongodb.matching import Document, order, values_at
from echoic_loopback.mongodb.search_indexes import SearchIndex, bad

_K1, _B = 1.2, 0.75
"""BM25's, as Lucene has them."""


class TextSearch:
    """`$search`, checked, then run: `compound`, `text`, `equals`, `in` and `exists`."""

    def __init__(self, stage: Any) -> None:
        if not isinstance(stage, Mapping):
            raise bad("$search must be an object")
        known = {
            "index",
            "compound",
            "text",
            "equals",
            "in",
            "exists",
            "returnStoredSource",
            "scoreDetails",
            "count",
        }
        for name in stage:
            if name not in known:
                raise bad(f'"{name}" unrecognized field')
        self.index = str(stage.get("index", "default"))
        operators = [name for name in stage if name in OPERATORS]
        if len(operators) != 1:
            raise bad("one of [compound, equals, exists, in, text] must be present, and only one")
        self.operator = operators[0]
        self.argument = stage[self.operator]
        OPERATORS[self.operator](None, self.argument)

    def run(self, index: SearchIndex, documents: Iterable[Document]) -> list[tuple[Document, float]]:
        """What is found and its scores, the best first."""
        held = Held(index, list(documents))
        scores = OPERATORS[self.operator](held, self.argument)
        found = sorted(scores.items(), key=lambda pair: -pair[1])
        return [(held.documents[n], score) for n, score in found]


Scores = dict[int, float]


class Held:
    """What a text index holds: its documents, cut as its mappings say."""

    def __init__(self, index: SearchIndex, documents: list[Document]) -> None:
        self.documents = documents
        mappings = index.definition["mappings"]
        self._dynamic = bool(mappings.get("dynamic"))
        self._fields = mappings.get("fields", {})
        self._default = index.definition.get("analyzer", DEFAULT_ANALYZER)
        self._cut: dict[tuple[str, str], list[Counter[str]]] = {}

    def mapping(self, path: str, kind: str, multi: str | None = None) -> Mapping[str, Any] | None:
        """How `path` is indexed as `kind`; None if it is not."""
        given = self._fields.get(path)
        for one in given if isinstance(given, list) else [given] if given else []:
            if one["type"] == kind:
                found: Mapping[str, Any] | None = one.get("multi", {}).get(multi) if multi else one
                return found
        return {"type": "string"} if self._dynamic and kind == "string" and not multi else None

    def cut(self, path: str, mapping: Mapping[str, Any]) -> list[Counter[str]]:
        """By document, the words at `path` and how often each stands there."""
        analyzer = mapping.get("analyzer", self._default)
        if (path, analyzer) not in self._cut:
            analyze = ANALYZERS[analyzer]
            self._cut[path, analyzer] = [
                Counter(
                    word for value in values_at(d, path) if isinstance(value, str) for word in analyze(value)
                )
                for d in self.documents
            ]
        return self._cut[path, analyzer]

    def analyzed(self, query: str, mapping: Mapping[str, Any]) -> list[str]:
        """The words of a query."""
        analyzer = mapping.get("searchAnalyzer") or mapping.get("analyzer", self._default)
        return ANALYZERS[analyzer](query)


def _paths(path: Any) -> list[tuple[str, str | None]]:
    given = path if isinstance(path, list) else [path]
    found: list[tuple[str, str | None]] = []
    for one in given:
        if isinstance(one, str):
            found.append((one, None))
        elif isinstance(one, Mapping) and set(one) <= {"value", "multi"} and "value" in one:
            found.append((str(one["value"]), one.get("multi")))
        else:
            raise bad(f'"path" cannot be {one!r}')
    if not found:
        raise bad('"path" cannot be empty')
    return found


def _text(held: Held | None, argument: Any) -> Scores:
    _check_fields(argument, {"query", "path"}, {"fuzzy", "matchCriteria", "score", "synonyms"}, "text")
    queries = argument["query"] if isinstance(argument["query"], list) else [argument["query"]]
    if not all(isinstance(query, str) and query for query in queries):
        raise bad('"text.query" cannot be empty')
    fuzzy = _fuzzy(argument.get("fuzzy"))
    scores: Scores = {}
    for path, multi in _paths(argument["path"]):
        mapping = held.mapping(path, "string", multi) if held else None
        if held is None or mapping is None:
            continue
        counts = held.cut(path, mapping)
        for query in queries:
            for word in held.analyzed(query, mapping):
                _add_term(scores, counts, word, fuzzy)
    return scores


def _check_fields(argument: Any, needed: set[str], optional: set[str], where: str) -> None:
    if not isinstance(argument, Mapping):
        raise bad(f'"{where}" must be a document')
    for name in needed:
        if name not in argument:
            raise bad(f'"{where}.{name}" is required')
    for name in argument:
        if name not in needed | optional:
            raise bad(f'"{where}.{name}" unrecognized field')


def _fuzzy(given: Any) -> tuple[int, int, int] | None:
    if given is None:
        return None
    _check_fields(given, set(), {"maxEdits", "prefixLength", "maxExpansions"}, "fuzzy")
    most, prefix, expansions = (
        given.get("maxEdits", 2),
        given.get("prefixLength", 0),
        given.get("maxExpansions", 50),
    )
    if most not in {1, 2}:
        raise bad('"fuzzy.maxEdits" must be one of [1, 2]')
    if not isinstance(prefix, int) or prefix < 0:
        raise bad('"fuzzy.prefixLength" cannot be negative')
    if not isinstance(expansions, int) or not 1 <= expansions <= 1000:
        raise bad('"fuzzy.maxExpansions" must be in [1, 1000]')
    return most, prefix, expansions


def _add_term(
    scores: Scores, counts: list[Counter[str]], word: str, fuzzy: tuple[int, int, int] | None
) -> None:
    boosts = {word: 1.0}
    if fuzzy:
        most, prefix, expansions = fuzzy
        vocabulary = {other for count in counts for other in count if other.startswith(word[:prefix])}
        near = [(edits(word, other, most), other) for other in vocabulary]
        # Lucene weighs a near word by its edits, by the length of the shorter one
        for distance, other in sorted(pair for pair in near if pair[0] <= most)[:expansions]:
            boosts[other] = 1 - distance / max(1, min(len(word), len(other)))
    lengths = [count.total() for count in counts]
    average = sum(lengths) / max(1, sum(length > 0 for length in lengths))
    for term, boost in boosts.items():
        holders = [n for n, count in enumerate(counts) if term in count]
        idf = math.log(1 + (len(counts) - len(holders) + 0.5) / (len(holders) + 0.5))
        for n in holders if boost > 0 else ():
            often = counts[n][term]
            weight = often / (often + _K1 * (1 - _B + _B * lengths[n] / (average or 1)))
            scores[n] = scores.get(n, 0.0) + boost * idf * weight


def _equals(held: Held | None, argument: Any) -> Scores:
    _check_fields(argument, {"path", "value"}, {"score"}, "equals")
    return _one_of(held, argument["path"], [argument["value"]])


def _in(held: Held | None, argument: Any) -> Scores:
    _check_fields(argument, {"path", "value"}, {"score"}, "in")
    values = argument["value"] if isinstance(argument["value"], list) else [argument["value"]]
    if not values:
        raise bad('"in.value" cannot be empty')
    return _one_of(held, argument["path"], values)


def _one_of(held: Held | None, path: str, values: list[Any]) -> Scores:
    scores: Scores = {}
    for value in values:
        kind = {bool: "boolean", str: "token", int: "number", float: "number", ObjectId: "objectId"}.get(
            type(value)
        )
        if kind is None:
            raise bad(f'"{path}" cannot be compared with a value of {type(value).__name__}')
        if held is None:
            continue
        if held.mapping(path, kind) is None:
            raise bad(f"Path '{path}' needs to be indexed as {kind}")
        key = order(value)
        scores.update(
            {n: 1.0 for n, d in enumerate(held.documents) if any(order(v) == key for v in values_at(d, path))}
        )
    return scores


def _exists(held: Held | None, argument: Any) -> Scores:
    _check_fields(argument, {"path"}, {"score"}, "exists")
    documents = held.documents if held else []
    return {n: 1.0 for n, document in enumerate(documents) if values_at(document, argument["path"])}


def _compound(held: Held | None, argument: Any) -> Scores:
    _check_fields(
        argument, set(), {"must", "mustNot", "should", "filter", "minimumShouldMatch", "score"}, "compound"
    )
    clauses: dict[str, list[Scores]] = {}
    for name in ("must", "mustNot", "should", "filter"):
        given = argument.get(name, [])
        clauses[name] = [_clause(held, one) for one in (given if isinstance(given, list) else [given])]
    if not any(clauses.values()):
        raise bad("compound must have at least one clause")
    least = argument.get("minimumShouldMatch", 0)
    if least > len(clauses["should"]):
        raise bad('"minimumShouldMatch" cannot be greater than the number of "should" clauses')
    scores: Scores = {}
    only_should = not clauses["must"] and not clauses["filter"]
    for n in range(len(held.documents) if held else 0):
        hits = [one[n] for one in clauses["should"] if n in one]
        wanted = all(n in one for one in clauses["must"] + clauses["filter"])
        if (
            wanted
            and len(hits) >= max(least, int(only_should))
            and not any(n in one for one in clauses["mustNot"])
        ):
            scores[n] = sum(hits) + sum(one[n] for one in clauses["must"])
    return scores


def _clause(held: Held | None, clause: Any) -> Scores:
    if not isinstance(clause, Mapping) or len(clause) != 1 or next(iter(clause)) not in OPERATORS:
        raise bad(f"a clause of compound must be one of [{', '.join(OPERATORS)}]")
    name, argument = next(iter(clause.items()))
    return OPERATORS[name](held, argument)


OPERATORS: Mapping[str, Callable[[Held | None, Any], Scores]] = {
    "compound": _compound,
    "equals": _equals,
    "exists": _exists,
    "in": _in,
    "text": _text,
}
"""Each takes what the index holds, or None to check its argument alone."""


__all__ = ["TextSearch"]
