"""The PydanticAI documents' task history: searchable by status, agent and time, also once it was learned from."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

import apsw
import pytest
from pydantic_ai import Agent

import echoic
from capability.conftest import Caller
from echoic import InvalidInput, Turn
from echoic.capability import Memory
from echoic.memory.records import CONVERSATION
from echoic.stores import store_from
from echoic.stores.base import Put, Record
from echoic.stores.documents import DocumentStore
from echoic.types import Scope
from lineage.test_own_store import Texts
from stores import mongodb_server, postgres_server

STORES = ["memory", "sqlite", "files", "markdown", "postgres", "mongodb", "documents"]
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


@pytest.fixture(params=STORES)
def store(request, tmp_path, closed_while_connecting):
    return store_named(request.param, tmp_path)


def store_named(name, folder):
    if name == "documents":
        return DocumentStore(Texts())
    urls = {
        "memory": lambda: "memory://",
        "sqlite": lambda: f"sqlite:///{folder}/e.db",
        "files": lambda: f"files:///{folder}",
        "markdown": lambda: f"files:///{folder}?format=markdown",
        "postgres": lambda: postgres_server.shared().url(),
        "mongodb": lambda: mongodb_server.patient(mongodb_server.url()),
    }
    return store_from(urls[name]())


async def a_call(memory, user, name, *, agent="films", deployment="default", end="completed"):
    ana = memory.user(user, deployment)
    call = await ana.conversation(name, agent=agent)
    await call.append(Turn(speaker="user", text=f"I love {name}", id=f"{user}-{name}"))
    if end == "completed":
        await call.complete()
    elif end == "failed":
        await ana.fail(name)


def names(found):
    return sorted((user, conversation.id) for user, conversation in found)


async def test_a_completed_task_is_found_as_completed_after_it_was_learned_from(store):
    async with echoic.open(store, embedder="lexical") as memory:
        await a_call(memory, "ana", "jazz")
        await a_call(memory, "ana", "tea", end="failed")
        await a_call(memory, "bob", "chess", end="active")
        await memory.distil()
        ana = memory.user("ana")
        assert (await ana.get("preference:jazz")).text == "loves jazz", "it was learned from"
        for status, expected in {
            "completed": [("ana", "jazz")],
            "failed": [("ana", "tea")],
            "active": [("bob", "chess")],
            "created": [],
            "distilled": [("ana", "jazz")],
        }.items():
            assert names(await memory.conversations(status=status)) == expected, status
        (found,) = await ana.conversations(status="completed")
        assert (found.status, found.distilled) == ("completed", True)
        assert (await ana.find_conversation("tea")).distilled is False
        with pytest.raises(InvalidInput, match="unknown status"):
            await memory.conversations(status="done")


async def test_an_operator_finds_tasks_by_agent_status_and_time(store):
    async with echoic.open(store, embedder="lexical") as memory:
        await a_call(memory, "ana", "one")
        await a_call(memory, "ana", "two", agent="books", end="failed")
        middle = datetime.now(UTC)
        await a_call(memory, "bob", "three", agent="books")
        await a_call(memory, "eva", "four", deployment="acme")
        find = memory.conversations
        assert names(await find(agent="books")) == [("ana", "two"), ("bob", "three")]
        assert names(await find(agent="books", status="completed")) == [("bob", "three")]
        assert names(await find(since=middle)) == [("bob", "three")]
        assert names(await find(until=middle)) == [("ana", "one"), ("ana", "two")]
        assert names(await find(agent="books", status="failed", since=LONG_AGO, until=middle)) == [
            ("ana", "two")
        ]
        assert names(await find(until=LONG_AGO)) == []
        assert names(await find("acme")) == [("eva", "four")]
        assert names(await find("nowhere")) == []
        assert [c.id for _, c in await find()] == ["one", "two", "three"], "the oldest first"
        tokyo = middle.astimezone(datetime.now(UTC).astimezone().tzinfo) + timedelta(0)
        assert names(await find(since=tokyo)) == [("bob", "three")]
        await memory.user("ana").forget(conversation="two")
        assert names(await find(agent="books")) == [("bob", "three")]
        await memory.user("bob").forget()
        assert names(await find(agent="books")) == []


async def test_what_earlier_versions_marked_as_distilled_is_completed(store):
    """They put the mark in the place of the status."""
    started = "2026-01-01T10:00:00+00:00"
    data = {
        "agent": "films",
        "status": "distilled",
        "started_at": started,
        "updated_at": started,
        "cursor": 3,
    }
    async with echoic.open(store, embedder="lexical") as memory:
        record = Record(kind=CONVERSATION, id="old", data=data)
        await store.write(Scope("default", "ana"), [Put(record=record)])
        for status in ("completed", "distilled"):
            ((user, found),) = await memory.conversations(status=status, agent="films")
            assert (user, found.status, found.distilled) == ("ana", "completed", True)
        exported = await memory.user("ana").export()
        await memory.user("eva").restore(exported)
        assert names(await memory.conversations(status="completed")) == [("ana", "old"), ("eva", "old")]


async def all_pages(memory, limit=3, **asked):
    found, before = [], None
    while True:
        page = await memory.newest_conversations(limit=limit, before=before, **asked)
        found += [(each.user, each.conversation.id) for each in page.conversations]
        if not page.more:
            return found
        assert len(page.conversations) == limit
        before = page.conversations[-1].place


async def kept_as_of(store, user, name, minute, *, status="completed", deployment="default"):
    """A conversation that began at that minute, written now, as an import does."""
    at = (LONG_AGO + timedelta(minutes=minute)).isoformat()
    data = {"agent": "films", "status": status, "started_at": at, "updated_at": at, "cursor": -1}
    record = Record(kind=CONVERSATION, id=name, data=data)
    await store.write(Scope(deployment, user), [Put(record=record)])


async def test_pages_of_the_newest_hold_every_conversation_once_also_of_those_that_began_at_once(store):
    async with echoic.open(store, embedder="lexical") as memory:
        for n in (5, 0, 3, 1):
            await kept_as_of(store, "ana", f"a{n}", n, status="failed" if n == 3 else "completed")
        for n in range(7):
            await kept_as_of(store, f"user-{n % 3}", f"same-{n}", 2)
        await kept_as_of(store, "eva", "elsewhere", 4, deployment="acme")
        same = sorted(((f"user-{n % 3}", f"same-{n}") for n in range(7)), reverse=True)
        anas = [("ana", "a5"), ("ana", "a3"), ("ana", "a1"), ("ana", "a0")]
        assert await all_pages(memory) == [*anas[:2], *same, *anas[2:]]
        assert await all_pages(memory, user="ana") == anas
        assert await all_pages(memory, user="nobody") == []
        assert await all_pages(memory, status="failed") == [("ana", "a3")]
        assert await all_pages(memory, status="completed", user="ana") == [anas[0], *anas[2:]]
        since, until = (LONG_AGO + timedelta(minutes=n) for n in (1, 3))
        assert await all_pages(memory, since=since, until=until) == [*same, ("ana", "a1")]
        assert await all_pages(memory, agent="books") == []
        moment = "2001-01-01T00:00:00+00:00"
        for wrong in ("x", "|a|b", f"{moment}|a", f"{moment}|ana|a0", f"{moment}|-1|a", f"{moment}|9|anaa0"):
            with pytest.raises(InvalidInput, match="cursor"):
                await memory.newest_conversations(before=wrong)


@pytest.mark.parametrize("name", ["sqlite", "files"])
async def test_pages_hold_every_conversation_of_users_whose_ids_hold_the_sign_of_a_cursor(name, tmp_path):
    store = store_named(name, tmp_path)
    async with echoic.open(store, embedder="lexical") as memory:
        users = ("auth0|a", "a", "a|b")
        for n in range(7):
            for user in users:
                await kept_as_of(store, user, f"same|{n}", 0)
        for user in users:
            same = [(user, f"same|{n}") for n in range(6, -1, -1)]
            assert await all_pages(memory, user=user, limit=2) == same
        every = sorted(((user, f"same|{n}") for user in users for n in range(7)), reverse=True)
        assert await all_pages(memory, limit=2) == every


@pytest.mark.parametrize("user", [None, "ana"])
@pytest.mark.parametrize("name", [name for name in STORES if name != "documents"])
async def test_a_page_of_the_newest_reads_one_record_more_than_it_shows(
    name, user, tmp_path, closed_while_connecting
):
    store = Counting(store_named(name, tmp_path))
    async with echoic.open(store, embedder="lexical") as memory:
        for n in range(40):
            await kept_as_of(store, "ana", f"a{n}", n)
        asking, before = store.asking.set(True), None
        for _ in range(3):
            store.records = 0
            page = await memory.newest_conversations(user=user, limit=5, before=before)
            assert len(page.conversations) == 5
            assert page.more
            before = page.conversations[-1].place
            assert 5 < store.records <= 7, "the last of the page before is looked at again"
        store.asking.reset(asking)
        assert store.asked == set()


class Counting:
    """A store that counts the records it hands out, and the users it is asked about.

    What goes on beside it begins before the operator asks, and is not counted.
    """

    asking = ContextVar("asking", default=False)

    def __init__(self, store):
        self._store = store
        self.records = 0
        self.asked = set()

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def scan(self, scope, kind, **options):
        found = await self._store.scan(scope, kind, **options)
        if self.asking.get():
            self.asked.add(scope)
            self.records += len(found)
        return found

    async def scopes(self, deployment=None):
        found = await self._store.scopes(deployment)
        if self.asking.get():
            self.asked.update(found)
        return found

    async def listed(self, wanted):
        found = await self._store.listed(wanted)
        if self.asking.get():
            self.records += len(found)
        return found


@pytest.mark.parametrize("name", [name for name in STORES if name != "documents"])
async def test_an_operators_list_reads_what_it_lists_however_many_users_there_are(
    name, tmp_path, closed_while_connecting
):
    inner = store_named(name, tmp_path)
    store = Counting(inner)
    async with echoic.open(store, embedder="lexical") as memory:
        read = []
        for users in (5, 25):
            for n in range(users):
                await a_call(memory, f"user-{users}-{n}", "call", end="active")
            if users == 5:
                await a_call(memory, "ana", "wanted", agent="rare", end="failed")
            await memory.settle(60)
            store.records, store.asked = 0, set()
            asking = store.asking.set(True)
            assert names(await memory.conversations(status="failed")) == [("ana", "wanted")]
            assert names(await memory.conversations(agent="rare")) == [("ana", "wanted")]
            store.asking.reset(asking)
            read.append(store.records)
            assert store.asked == set(), "no user was looked at"
        assert read == [2, 2]


async def steps_of_a_list(store, memory):
    """What SQLite does for one list, and for what else reads at that moment."""
    count = 0

    def step():
        nonlocal count
        count += 1
        return False

    await store._read(lambda connection: connection.set_progress_handler(step, 1))
    assert len(await memory.conversations(status="failed")) == 1
    await store._read(lambda connection: connection.set_progress_handler(None))
    return count


async def test_sqlite_takes_as_many_steps_for_four_times_the_users(tmp_path):
    store = store_from(f"sqlite:///{tmp_path}/e.db")
    async with echoic.open(store, embedder="lexical") as memory:
        steps = []
        for users in (10, 40):
            for n in range(users):
                await a_call(memory, f"user-{users}-{n}", "call", end="active")
            if users == 10:
                await a_call(memory, "ana", "wanted", agent="rare", end="failed")
            await memory.settle(60)
            await memory.conversations(status="failed")  # so that the statement is prepared
            steps.append(min([await steps_of_a_list(store, memory) for _ in range(8)]))
        assert steps[0] == steps[1] > 0


async def test_postgres_uses_its_index(tmp_path):
    store = store_named("postgres", tmp_path)
    async with echoic.open(store, embedder="lexical") as memory:
        await a_call(memory, "ana", "wanted", agent="rare", end="failed")
        for field, value in (("status", "failed"), ("agent", "rare"), ("started_at", "2026")):
            sql = store._database.names.sql(
                "explain select r.seq from {s}.records r where r.kind = 'conversation' "
                f"""and (r.data->>'{field}') collate "C" = '{value}'"""
            )

            async def asked(connection, sql=sql):
                async with connection.transaction():
                    await connection.execute("set local enable_seqscan = off")
                    return await connection.fetch(sql)

            plan = "\n".join(row[0] for row in await store._database.read(None, asked))
            assert "conversations_by_" in plan, plan


async def test_a_file_of_an_earlier_schema_gets_the_index_when_it_is_opened(tmp_path):
    url = f"sqlite:///{tmp_path}/e.db"
    async with echoic.open(url, embedder="lexical") as memory:
        await a_call(memory, "ana", "old")
    connection = apsw.Connection(str(tmp_path / "e.db"))
    for name in ("status", "agent", "time"):
        connection.execute(f"drop index conversations_by_{name}")
    connection.execute("pragma user_version = 2")
    connection.close()
    async with echoic.open(url, embedder="lexical") as memory:
        assert names(await memory.conversations(agent="films")) == [("ana", "old")]
    connection = apsw.Connection(str(tmp_path / "e.db"))
    assert connection.pragma("user_version") == 3
    connection.close()


async def test_the_whole_history_of_a_task_has_its_tool_calls_and_their_results(tmp_path, chat, call_tool):
    def films(request):
        last = request["messages"][-1]
        if last["role"] == "tool":
            return {"content": "How about Heat?"}
        return call_tool("search_movies", genre="action")

    url = f"sqlite:///{tmp_path}/e.db"
    async with echoic.open(url, embedder="lexical") as memory:
        _, model = await chat(films)
        agent = Agent(model, deps_type=Caller, name="films", capabilities=[Memory(memory, user="user_id")])

        @agent.tool_plain
        def search_movies(genre: str) -> list[str]:
            """Films of a genre."""
            return {"action": ["Heat", "Ronin"]}[genre]

        await agent.run("I prefer action movies", deps=Caller("ana"), conversation_id="monday")
        await (await memory.user("ana").conversation("monday")).complete()
        await memory.distil()
        exported = await memory.user("ana").export()
    async with echoic.open(url, embedder="lexical") as memory:
        await memory.user("eva").restore(exported)
        for user in ("ana", "eva"):
            task = await memory.user(user).task("monday")
            assert [(m.role, m.name, m.text or m.value) for m in task.messages] == [
                ("user", "user", "I prefer action movies"),
                ("tool_call", "search_movies", {"genre": "action"}),
                ("tool_result", "search_movies", ["Heat", "Ronin"]),
                ("agent", "agent", "How about Heat?"),
            ]
            assert task.conversation.status == "completed"
