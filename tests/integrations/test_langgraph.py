"""The store against LangGraph's own on random histories, and in real graphs."""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

import echoic
from assured import ABOUT, PLANTED, allowed
from echoic import NotAllowed
from echoic.cli.importers import READERS, Exported, ImportedMemory, ImportSource
from echoic.integrations.langgraph import EchoicStore
from echoic.memory.assurance import LEVELS, TABLE

NAMESPACES = [("ana",), ("ana", "prefs"), ("ana", "prefs", "x"), ("bob", "prefs")]
VALUES = [
    {"text": "likes jazz", "n": 1},
    {"text": "allergic to peanuts", "n": 2, "tags": ["x"]},
    {"deep": {"k": [1, None, "é😀"]}, "n": 3.5, "text": "plays the cello"},
]
FILTERS = [
    {"n": 1},
    {"n": {"$gte": 2}},
    {"n": {"$ne": 1}},
    {"text": "likes jazz"},
    {"tags": ["x"]},
    {"deep": {"k": [1, None, "é😀"]}},
]
ALL = 100


@pytest.fixture(params=["memory://", "sqlite:///{}/lg.db"], ids=["memory", "sqlite"])
async def memory(request, tmp_path):
    async with echoic.open(request.param.format(tmp_path), embedder="lexical") as opened:
        yield opened


def reference(embedder):
    class SameVectors(Embeddings):
        def embed_documents(self, texts):
            raise NotImplementedError

        embed_query = embed_documents

        async def aembed_documents(self, texts):
            return (await embedder.embed(texts, "document")).tolist()

        async def aembed_query(self, text):
            return (await embedder.embed([text], "query"))[0].tolist()

    class Repaired(InMemoryStore):
        """Without two quirks: vectors outlive what they were made of, and emptied namespaces are listed."""

        async def abatch(self, ops):
            ops = list(ops)
            for op in ops:
                if isinstance(op, PutOp):
                    self._vectors[op.namespace].pop(op.key, None)
            results = await super().abatch(ops)
            for namespace in [name for name, items in self._data.items() if not items]:
                del self._data[namespace]
            return results

    return Repaired(index={"dims": embedder.spec.dimensions, "embed": SameVectors(), "fields": ["$"]})


def shown(result):
    if isinstance(result, Item):
        return type(result).__name__, result.namespace, result.key, result.value
    return [shown(each) for each in result] if isinstance(result, list) else result


def drawn(chance):
    namespace, key = chance.choice(NAMESPACES), chance.choice("abc")
    prefix = namespace[: chance.randint(1, len(namespace))]
    kind = chance.choice(
        ["put", "put", "put", "get", "delete", "search", "part", "filter", "query", "list", "batch"]
    )
    value = chance.choice(VALUES)
    match kind:
        case "put":
            return kind, [
                PutOp(namespace, key, value, index=False if key == "c" else chance.choice([None, ["text"]]))
            ]
        case "get":
            return kind, [GetOp(namespace, key)]
        case "delete":
            return kind, [PutOp(namespace, key, None)]
        case "search":
            return kind, [SearchOp(prefix, limit=ALL)]
        case "part":
            return kind, [SearchOp(prefix, limit=chance.choice([1, 2]), offset=chance.choice([0, 1]))]
        case "filter":
            return kind, [SearchOp(prefix, filter=chance.choice(FILTERS), limit=ALL)]
        case "query":
            query = chance.choice(["which music, jazz?", "peanuts allergy", "cello"])
            return kind, [SearchOp(prefix, query=query, limit=ALL)]
        case "list":
            whose = MatchCondition("prefix", (namespace[0],))
            more = chance.choice(
                [(), (MatchCondition("suffix", ("prefs",)),), (MatchCondition("prefix", ("*", "prefs")),)]
            )
            return kind, [ListNamespacesOp((whose, *more), max_depth=chance.choice([None, 1, 2]))]
    return kind, [
        PutOp(namespace, key, VALUES[0]),
        GetOp(namespace, key),
        PutOp(namespace, key, VALUES[1]),
        SearchOp(namespace, limit=ALL),
    ]


async def test_it_answers_as_langgraphs_own_store_does_on_random_histories(memory):
    ours, theirs, chance = EchoicStore(memory), reference(memory.embedder), random.Random(11)
    for _ in range(400):
        kind, ops = drawn(chance)
        mine, other = shown(await ours.abatch(ops)), shown(await theirs.abatch(ops))
        if kind == "part":
            assert [len(each) for each in mine] == [len(each) for each in other]
            everything = shown(await theirs.abatch([SearchOp(ops[0].namespace_prefix, limit=ALL)]))[0]
            assert all(each in everything for each in mine[0])
        elif kind in {"get", "put", "delete", "list"}:
            assert mine == other, ops
        else:
            sort = lambda r: sorted(r, key=repr) if isinstance(r, list) else r  # noqa: E731
            assert [sort(each) for each in mine] == [sort(each) for each in other], ops


async def test_a_search_puts_first_what_echoics_ranking_finds(memory):
    store = EchoicStore(memory)
    for key, value in zip("abc", VALUES, strict=True):
        await store.aput(("ana", "memories"), key, value)
    await store.aput(("ana", "other"), "d", {"text": "jazz concerts on Sundays"})
    found = await store.asearch(("ana", "memories"), query="which music do they like, jazz?", limit=2)
    assert found[0].key == "a"
    assert 0 <= found[0].score <= 1
    found = await store.asearch(("ana",), query="jazz", limit=10)
    assert {item.key for item in found[:2]} == {"a", "d"}
    assert [item.score for item in found[2:]] == [None, None]
    await store.aput(("ana", "memories"), "a", {"text": "likes opera"})
    again = await store.asearch(("ana", "memories"), query="jazz", limit=3)
    assert all(item.score is None for item in again)


@pytest.mark.parametrize("query", ["", " ", "\0"])
async def test_a_query_without_words_lists_what_there_is(memory, query):
    store = EchoicStore(memory)
    await store.aput(("ana",), "a", VALUES[0])
    (found,) = await store.asearch(("ana",), query=query)
    assert (found.key, found.score) == ("a", None)


@pytest.mark.parametrize("before", ["x" * 40_000, "\0", "\ud83d"], ids=["long", "NUL", "half a character"])
async def test_a_query_that_no_turn_could_hold_is_searched_for_by_its_end(memory, before):
    store = EchoicStore(memory)
    for key, value in zip("abc", VALUES, strict=True):
        await store.aput(("ana",), key, value)
    found = await store.asearch(("ana",), query=f"{before} which music do they like, jazz?")
    assert found[0].key == "a"
    assert found[0].score is not None


async def test_the_first_label_is_the_user_and_without_one_nothing_is_done(memory):
    store = EchoicStore(memory)
    await store.aput(("ana", "memories"), "a", {"text": "likes jazz"})
    assert await store.aget(("bob", "memories"), "a") is None
    assert await store.asearch(("bob",), query="jazz") == []
    assert await EchoicStore(memory, deployment="acme").asearch(("ana",)) == []
    for refused in (
        [SearchOp(())],
        [GetOp((), "a")],
        [PutOp((), "a", {"x": 1})],
        [ListNamespacesOp()],
        [ListNamespacesOp((MatchCondition("prefix", ("*", "memories")),))],
        [ListNamespacesOp((MatchCondition("suffix", ("memories",)),))],
        [PutOp(("bob",), "a", {"x": 1}), PutOp((), "a", {"x": 1})],
    ):
        with pytest.raises(InvalidNamespaceError, match="names the user"):
            await store.abatch(refused)
    assert await store.asearch(("bob",)) == []
    assert await store.alist_namespaces(prefix=("ana",)) == [("ana", "memories")]


async def test_what_a_graph_keeps_is_forgotten_and_exported_with_its_user(memory):
    store = EchoicStore(memory)
    await store.aput(("ana", "memories"), "a", {"text": "likes jazz"})
    await store.aput(("bob", "memories"), "b", {"text": "likes opera"})
    assert "likes jazz" in str(await memory.user("ana").export())
    assert "likes opera" not in str(await memory.user("ana").export())
    await memory.user("ana").forget()
    assert await store.asearch(("ana",)) == []
    assert len(await store.asearch(("bob",))) == 1
    assert not await memory.user("bob").query("opera")


@pytest.mark.parametrize("name", ["15550100088", "4242424242424242", "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zC"])
async def test_a_namespace_and_a_key_that_look_like_a_secret_stay_as_they_are(memory, name):
    store = EchoicStore(memory)
    await store.aput((name, "memories"), name, {"text": "likes jazz", "said": f"my CPF is {name}"})
    (found,) = await store.asearch((name,))
    assert (found.namespace, found.key) == ((name, "memories"), name)
    assert name not in str(found.value)
    assert await store.alist_namespaces(prefix=(name,)) == [(name, "memories")]
    again = memory.user(f"{name} again")
    await again.restore(await memory.user(name).export())
    assert (await again.export())["items"] == (await memory.user(name).export())["items"]


async def test_a_value_that_is_no_json_is_refused(memory):
    with pytest.raises(echoic.InvalidInput, match="JSON"):
        await EchoicStore(memory).aput(("ana",), "a", {"x": object()})


@pytest.mark.parametrize("value", ["text", ["text"], 5])
async def test_a_value_that_is_no_dict_is_refused_before_anything_is_done(memory, value):
    store = EchoicStore(memory)
    with pytest.raises(echoic.InvalidInput, match="dict"):
        await store.abatch([PutOp(("ana",), "a", VALUES[0]), PutOp(("ana",), "b", value)])
    assert await store.asearch(("ana",), filter={"n": 1}) == []


async def test_an_item_with_no_paths_to_index_is_listed_and_not_found(memory):
    store = EchoicStore(memory)
    await store.aput(("ana",), "a", VALUES[0], index=[])
    (item,) = await store.asearch(("ana",), query="jazz")
    assert (item.key, item.score) == ("a", None)


async def test_better_items_in_other_namespaces_hide_none_of_this_one():
    async with echoic.open("memory://", embedder="lexical") as memory:
        store = EchoicStore(memory)
        said = "She mentioned on a long walk along the harbour that jazz is what she likes best of all."
        await store.aput(("ana", "memories"), "a", {"text": said})
        await store.abatch([PutOp(("ana", "documents"), str(n), {"text": f"jazz {n}"}) for n in range(1001)])
        (item,) = await store.asearch(("ana", "memories"), query="jazz")
        assert item.score is not None


@dataclass
class Who:
    user: str


async def test_what_one_run_is_taught_the_next_knows_and_nobody_else(memory):
    async def node(state: MessagesState, runtime: Runtime[Who]):
        said, place = state["messages"][-1].content, (runtime.context.user, "memories")
        found = await runtime.store.asearch(place, query=said, limit=2)
        known = [item.value["text"] for item in found if item.score is not None]
        await runtime.store.aput(place, said, {"text": said})
        return {"messages": [{"role": "assistant", "content": "; ".join(known) or "nothing"}]}

    def blocking(state: MessagesState, runtime: Runtime[Who]):
        found = runtime.store.search((runtime.context.user,), query="jazz")
        return {"messages": [{"role": "assistant", "content": str(len(found))}]}

    async def say(graph, user, text):
        asked = {"messages": [{"role": "user", "content": text}]}
        return (await graph.ainvoke(asked, context=Who(user)))["messages"][-1].content

    store = EchoicStore(memory)
    graph = StateGraph(MessagesState, context_schema=Who).add_node("n", node).add_edge(START, "n")
    graph = graph.compile(store=store)
    assert await say(graph, "carla", "I love jazz") == "nothing"
    assert await say(graph, "carla", "which music, jazz?") == "I love jazz"
    assert await say(graph, "dan", "which music, jazz?") == "nothing"
    other = StateGraph(MessagesState, context_schema=Who).add_node("n", blocking).add_edge(START, "n")
    assert await say(other.compile(store=store), "carla", "x") == "2"
    assert await asyncio.to_thread(store.get, ("carla", "memories"), "I love jazz")
    with pytest.raises(echoic.NotAllowed, match="await"):
        store.get(("carla", "memories"), "I love jazz")


async def test_with_the_store_gone_a_search_fails_instead_of_finding_nothing(memory, monkeypatch):
    store = EchoicStore(memory)
    await store.aput(("ana",), "a", {"text": "likes jazz"})

    async def gone(*_args, **_kwargs):
        raise echoic.StoreUnavailable("gone")

    for verb in ("scan", "read", "load"):
        monkeypatch.setattr(memory.user("ana").backing_store._observed, verb, gone)
    for search in (store.asearch(("ana",)), store.asearch(("ana",), query="jazz"), store.aget(("ana",), "a")):
        with pytest.raises(echoic.StoreUnavailable):
            await search


async def test_a_hanging_embedder_delays_a_search_by_its_deadline_at_most():
    class Hanging:
        spec, semantic = echoic.EmbeddingSpec("hanging", 8), True

        async def open(self):
            pass

        async def aclose(self):
            pass

        async def embed(self, texts, kind):
            await asyncio.Event().wait()

    async with echoic.open("memory://", embedder=Hanging()) as memory:
        store = EchoicStore(memory, deadline_ms=1500)
        await store.aput(("ana",), "a", {"text": "likes jazz"})
        (found,) = await asyncio.wait_for(store.asearch(("ana",), query="jazz"), 30)
        assert found.score is not None


async def test_the_graph_in_the_documents_knows_what_an_earlier_run_was_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text()
    program = re.search(r"```python\n(.*?)```", page.partition("### LangGraph")[2], re.DOTALL)[1]
    own = [part.strip() for part in re.split(r"async def \w+\(.*\):\n", program)[1:]]
    assert sum(len(part.splitlines()) for part in own) <= 12

    class Repeats:
        async def ainvoke(self, messages):
            return {"role": "assistant", "content": " | ".join(messages)}

    # a module of its own: LangGraph looks up what annotations name
    module = ModuleType("documented")
    module.model = Repeats()
    monkeypatch.setitem(sys.modules, "documented", module)
    exec(program.replace('"sqlite:///echoic.db"', '"sqlite:///echoic.db", embedder="lexical"'), vars(module))
    await module.talk("ana", "I love jazz")
    heard = await module.talk("ana", "which music, jazz?")
    assert heard["messages"][-1].content == "I love jazz | which music, jazz?"
    heard = await module.talk("bob", "which music, jazz?")
    assert heard["messages"][-1].content == "which music, jazz?"


async def test_a_store_of_langgraphs_own_is_imported_item_by_item(tmp_path):
    theirs, path = InMemoryStore(), tmp_path / "items.json"
    for place, (namespace, value) in enumerate([(NAMESPACES[1], VALUES[0]), (NAMESPACES[2], VALUES[2])]):
        theirs.put(namespace, f"k{place}", value)
    items = theirs.search(("ana",), limit=ALL)
    path.write_text(json.dumps([item.dict() for item in items]))
    read = list(READERS["langgraph"](ImportSource(name="items.json", path=path)))
    assert [item.text for item in read if isinstance(item, ImportedMemory)] == [
        "likes jazz",
        "plays the cello",
    ]
    async with echoic.open("memory://", embedder="lexical") as memory:
        for item in read:
            if isinstance(item, Exported):
                await memory.user(item.user).restore(item.document)
        ours = EchoicStore(memory)
        found = await ours.asearch(("ana",), limit=ALL)
        assert {(i.namespace, i.key, str(i.value), i.created_at, i.updated_at) for i in found} == {
            (i.namespace, i.key, str(i.value), i.created_at, i.updated_at) for i in items
        }
        first = (await ours.asearch(("ana",), query="jazz"))[0]
        assert (first.key, first.score is not None) == ("k0", True)
        await ours.aput(NAMESPACES[1], "k0", VALUES[1])  # in place of what was imported, not beside it
        assert len(await ours.asearch(("ana",), limit=ALL)) == 2


async def test_a_store_made_in_another_event_loop_than_the_memorys_says_so(memory):
    async def ask():
        await EchoicStore(memory).aget(("ana", "prefs"), "a")

    with pytest.raises(echoic.NotOpen, match="event loop"):
        await asyncio.to_thread(lambda: asyncio.run(ask()))


@pytest.mark.parametrize("level", LEVELS)
async def test_a_graph_reads_and_removes_nothing_above_its_users_level(level):
    async with echoic.open("memory://", embedder="lexical") as memory:
        whole, theirs = EchoicStore(memory), EchoicStore(memory, level=level)
        for sensitivity, sentence in ABOUT.items():
            await whole.aput(("ana", "pets"), sensitivity, {"text": sentence.format(PLANTED[sensitivity])})
        asks = (
            lambda: theirs.aget(("ana", "pets"), "sensitive"),
            lambda: theirs.asearch(("ana",)),
            lambda: theirs.asearch(("ana", "pets"), query="what about my bilby"),
            lambda: theirs.alist_namespaces(prefix=("ana",)),
            lambda: theirs.adelete(("ana", "pets"), "sensitive"),
        )
        if allowed(TABLE[level]) == allowed("sensitive"):
            assert all([PLANTED["sensitive"] in str(await ask()) for ask in asks[:3]])
            return
        for ask in asks:
            with pytest.raises(NotAllowed) as refused:
                await ask()
            assert PLANTED["sensitive"] not in str(refused.value)
        assert len(await whole.asearch(("ana", "pets"))) == len(ABOUT)
