"""Echoic as a `BaseStore` of LangGraph.

    graph = builder.compile(store=EchoicStore(memory))
    await runtime.store.aput((user_id, "memories"), "music", {"text": "likes jazz"})
    await runtime.store.asearch((user_id, "memories"), query="what do they like?", limit=3)

The first label of a namespace is the user, and everything below it belongs to that user: no other namespace
reaches it, `forget` erases it, and `export` includes it. A search with a query uses Echoic's ranking.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
)

from echoic.checks import searchable
from echoic.errors import InvalidInput, NotAllowed
from echoic.memory.assurance import Level
from echoic.memory.items import Item as KeptItem
from echoic.memory.items import Items, texts_in
from echoic.memory.records import name_of
from echoic.memory.service import MemoryService

Namespace = tuple[str, ...]

DEADLINE_MS: Final = 400.0
_KIND: Final = "langgraph"
_WITHOUT_USER: Final = (
    "the first label of a namespace names the user: nothing is read or written without one, got {namespace}"
)
_COMPARED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class EchoicStore(BaseStore):
    """Stores items of a graph in namespaces that begin with a user's id.

    Args:
        memory: an open memory. Create the store in the event loop that memory is open in: nodes without
            `await` use that loop from LangGraph's threads.
        deployment: the deployment.
        fields: paths of the values by which an item is found, in LangGraph's syntax; by default all texts.
        deadline_ms: how long a search waits for the embedding of its query; after that only words are
            searched.
        level: how certain users' identities are. At a level that limits what users are told
            (docs/assurance.md), every operation raises NotAllowed.
    """

    __slots__ = ("_deadline_ms", "_deployment", "_fields", "_level", "_loop", "_memory")
    supports_ttl = False

    def __init__(
        self,
        memory: MemoryService,
        *,
        deployment: str = "default",
        fields: Sequence[str] | None = None,
        deadline_ms: float | None = DEADLINE_MS,
        level: Level = "account",
    ) -> None:
        self._memory = memory
        self._level = level
        self._deployment = deployment
        self._fields = fields
        self._deadline_ms = deadline_ms
        self._loop = asyncio.get_running_loop()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run `ops` from another thread than the event loop's.

        Raises:
            NotAllowed: called in the event loop, which would wait for itself.
        """
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            raise NotAllowed("in the event loop use the methods with `await`, such as `asearch` for `search`")
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run `ops`: reads see the state before, and of several puts of one key the last one counts.

        Raises:
            InvalidNamespaceError: an operation names no user; nothing was done.
            InvalidInput: a value is no dict of JSON, or too large.
            StoreUnavailable: the store could not be read or written.
        """
        given = list(ops)
        results: list[Result] = [await self._read(op) for op in given]
        puts = {(tuple(op.namespace), op.key): op for op in given if isinstance(op, PutOp)}
        for op in puts.values():
            await self._put(op)
        return results

    def _items(self, namespace: Sequence[str]) -> Items:
        if not namespace:
            raise InvalidNamespaceError(_WITHOUT_USER.format(namespace=tuple(namespace)))
        user = self._memory.user(namespace[0], self._deployment, level=self._level)
        return user.items(_KIND, searchable=True)

    async def _read(self, op: Op) -> Result:
        if isinstance(op, PutOp):  # reject invalid operations before anything is done
            self._items(op.namespace)
            if op.value is not None and not isinstance(op.value, Mapping):
                raise InvalidInput(f"a value is a dict, not {type(op.value).__name__}")
            return None
        if isinstance(op, GetOp):
            found = await self._items(op.namespace).get(name_of(op.namespace, op.key))
            return None if found is None else Item(**_fields(found))
        if isinstance(op, SearchOp):
            return await self._search(op)
        if isinstance(op, ListNamespacesOp):
            return await self._list(op)
        raise ValueError(f"unknown operation: {type(op).__name__}")

    async def _put(self, op: PutOp) -> None:
        items, name = self._items(op.namespace), name_of(op.namespace, op.key)
        if op.value is None:
            await items.delete(name)
            return
        kept = {"namespace": list(op.namespace), "key": op.key, "value": op.value}
        await items.set(name, kept, text=None if op.index is False else self._text(op.value, op.index))

    def _text(self, value: Mapping[str, Any], index: Sequence[str] | None) -> str | None:
        """The text by which an item is found; None if it has none."""
        paths = self._fields if index is None else index
        found = value if paths is None else [t for path in paths for t in get_text_at_path(value, path)]
        return texts_in(found) or None

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        items = self._items(prefix)

        def wanted(item: KeptItem) -> bool:
            value, namespace = item.value["value"], tuple(item.value["namespace"])
            filters = (op.filter or {}).items()
            return namespace[: len(prefix)] == prefix and all(_passes(value.get(k), v) for k, v in filters)

        groups: dict[Namespace, list[KeptItem]] = {}
        for item in filter(wanted, await items.all()):
            groups.setdefault(tuple(item.value["namespace"]), []).append(item)
        listed = [item for group in groups.values() for item in group]
        if not (query := searchable(op.query or "")):
            return [SearchItem(**_fields(item)) for item in listed[op.offset : op.offset + op.limit]]
        # all, since the best may stand in other namespaces
        search = await items.search(query, limit=None, deadline_ms=self._deadline_ms)
        found = {item.name: item for item in search.items}
        there = {item.name for item in listed}
        ranked = [item for item in found.values() if item.name in there]
        # as in LangGraph's own store, the rest follows without a score
        ranked += [item for item in listed if item.name not in found]
        return [
            SearchItem(**_fields(item), score=item.relevance)
            for item in ranked[op.offset : op.offset + op.limit]
        ]

    async def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = tuple(op.match_conditions or ())
        user = next((c.path[0] for c in conditions if c.match_type == "prefix" and c.path), "*")
        if user == "*":  # nobody may list other users' namespaces
            raise InvalidNamespaceError(_WITHOUT_USER.format(namespace="none: list with prefix=(user, …)"))
        listed = {tuple(item.value["namespace"]) for item in await self._items((user,)).all()}
        found = {n[: op.max_depth] for n in listed if all(_matches(c, n) for c in conditions)}
        return sorted(found)[op.offset : op.offset + op.limit]


def _fields(item: KeptItem) -> dict[str, Any]:
    """An item's fields under LangGraph's names."""
    return {
        "namespace": tuple(item.value["namespace"]),
        "key": item.value["key"],
        "value": item.value["value"],
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }


def _passes(value: Any, wanted: Any) -> bool:
    """Whether a value passes a filter; what cannot be compared does not."""
    if isinstance(wanted, dict) and any(name.startswith("$") for name in wanted):
        return all(_compares(value, name, given) for name, given in wanted.items())
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(_passes(value.get(name), w) for name, w in wanted.items())
    if isinstance(wanted, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same and all(_passes(one, w) for one, w in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compares(value: Any, name: str, given: Any) -> bool:
    if name in {"$eq", "$ne"}:
        return (value == given) is (name == "$eq")
    if name not in _COMPARED:
        raise ValueError(f"unknown operator {name}: use $eq, $ne, {', '.join(_COMPARED)}")
    try:
        return _COMPARED[name](float(value), float(given))
    except (TypeError, ValueError):
        return False


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, labels, strict=False))
