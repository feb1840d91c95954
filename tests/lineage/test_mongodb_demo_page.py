"""What the voice memory demo's page asks a server for, and reads in its answers."""

from __future__ import annotations

import pytest

import echoic
from echoic import Turn
from echoic.embedding import LexicalEmbedder
from echoic.errors import EmbedderUnavailable
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.in_memory import InMemoryStore
from server.conftest import serving, settings_of, started
from stores import mongodb_server

HOURS = "The store is open from 9 to 17."


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/echoic.db"


async def listed(server, **asked):
    return await server.client.get("/api/memory", params=asked)


async def test_the_memories_tab_lists_ones_own_and_what_is_global(store):
    async with started(store, global_writes="auto") as server:
        ana, eve = await server.identity(), await server.identity()
        await server.memory_of(ana, "set", key="home", value="Oslo")
        await server.memory_of(ana, "set", key="opening_hours", value=HOURS)
        await server.memory_of(eve, "set", key="pet", value="a goat")
        answer = await listed(server, deploymentId="default", userCookie=eve.token)
        assert answer.status_code == 200
        assert [(m["key"], m["value"], m["isGlobal"]) for m in answer.json()["memories"]] == [
            ("pet", "a goat", False),
            ("opening_hours", HOURS, True),
        ]
        assert all(memory["updatedAt"] for memory in answer.json()["memories"])
        assert ana.user not in answer.text


async def test_the_list_is_for_nobody_but_whom_the_token_names(store):
    async with started(store) as server:
        ana, other = await server.identity(), await server.identity("acme")
        await server.memory_of(ana, "set", key="home", value="Oslo")
        for asked in (
            {},
            {"deploymentId": "default"},
            {"deploymentId": "default", "userCookie": ana.user},
            {"deploymentId": "default", "userCookie": "e30.e30.e30"},
            {"deploymentId": "default", "userCookie": "global"},
            {"deploymentId": "acme", "userCookie": ana.token},
            {"deploymentId": "default", "userCookie": other.token},
        ):
            answer = await listed(server, **asked)
            assert answer.status_code == 401, asked
            assert "Oslo" not in answer.text
        by_header = await server.client.get("/api/memory", headers=ana.headers)
        assert [memory["value"] for memory in by_header.json()["memories"]] == ["Oslo"]
        two = await server.client.get(
            "/api/memory", headers=ana.headers, params={"userCookie": (await server.identity()).token}
        )
        assert two.status_code == 401


async def test_a_set_says_whether_it_is_global_and_why(store):
    async with started(store, global_writes="auto") as server:
        ana = await server.identity()
        private = (await server.memory_of(ana, "set", key="user_name", value="Ana")).json()["result"]
        assert private["isGlobal"] is False
        assert private["reasoning"] == "the key speaks of a person"
        shared = (await server.memory_of(ana, "set", key="opening_hours", value=HOURS)).json()["result"]
        assert shared["isGlobal"] is True
        assert shared["reasoning"] == "when the business, or a part of it, is open"


async def test_what_waits_for_an_operator_is_not_global_yet(store):
    async with started(store) as server:
        ana = await server.identity()
        offered = (await server.memory_of(ana, "set", key="opening_hours", value=HOURS)).json()["result"]
        assert (offered["visibility"], offered["isGlobal"]) == ("proposed", False)


async def test_get_says_whether_anything_was_found_and_delete_how_much(store):
    async with started(store) as server:
        ana = await server.identity()
        unknown = (await server.memory_of(ana, "get", key="home")).json()
        assert (unknown["success"], unknown["found"], unknown["result"]) == (True, False, None)
        nothing = (await server.memory_of(ana, "delete", key="home")).json()
        assert (nothing["success"], nothing["result"]["deletedCount"]) == (False, 0)
        await server.memory_of(ana, "set", key="home", value="Oslo")
        known = (await server.memory_of(ana, "get", key="home")).json()
        assert (known["found"], known["result"]["value"]) == (True, "Oslo")
        gone = (await server.memory_of(ana, "delete", key="home")).json()
        assert (gone["success"], gone["result"]["deletedCount"]) == (True, 1)


async def test_what_has_no_key_is_deleted_by_its_id(store):
    async with started(store) as server:
        ana, eve = await server.identity(), await server.identity()
        memory = server.memory.user(ana.user)
        kept = await memory.remember("Prefers e-mail to phone calls")
        assert (await server.memory_of(eve, "delete", id=kept.id)).json()["result"]["deletedCount"] == 0
        assert await memory.facts() == [kept]
        gone = (await server.memory_of(ana, "delete", id=kept.id)).json()
        assert (gone["success"], gone["result"]["deletedCount"]) == (True, 1)
        assert await memory.facts() == []
        for fields in ({}, {"key": None, "id": None}, {"key": "home", "id": kept.id}):
            assert (await server.memory_of(ana, "delete", **fields)).status_code == 422


@pytest.mark.parametrize("fusion", ["blend", "rrf"])
async def test_a_query_tells_the_pipeline_that_was_run(store, fusion):
    async with serving(echoic.open(store, embedder="lexical", fusion=fusion), settings_of()) as server:
        ana = await server.identity()
        await server.memory_of(ana, "set", key="drink", value="green tea")
        answer = (await server.memory_of(ana, "query", query="what do I drink?", limit=3)).json()
        assert answer["found"] is True
        assert [memory["value"] for memory in answer["memories"]] == ["green tea"]
        assert answer["result"][0]["ranks"]
        assert answer["search"]["searchType"] == "hybrid"
        steps = {name: step for each in answer["search"]["pipeline"] for name, step in each.items()}
        assert steps["embed"]["embedded"] is True
        assert steps["search"]["own"] == {"in": "memory"}
        assert steps["limit"] == 3
        if fusion == "rrf":
            assert steps["rankFusion"]["weights"] == {"vector": 0.7, "text": 0.3}
        else:
            assert steps["weigh"]["weights"]["text"] > 0
            assert "weighClosely" not in steps, "this embedder has no word pieces"


class Away(LexicalEmbedder):
    """An embedder that cannot be reached when a question comes."""

    async def embed(self, texts, kind):
        if kind == "query":
            raise EmbedderUnavailable("away")
        return await super().embed(texts, kind)


async def test_a_query_without_a_vector_says_that_words_alone_answered():
    async with serving(MemoryService(InMemoryStore(), Away()), settings_of()) as server:
        ana = await server.identity()
        await server.memory_of(ana, "set", key="drink", value="green tea")
        answer = (await server.memory_of(ana, "query", query="tea")).json()
        assert [memory["value"] for memory in answer["memories"]] == ["green tea"]
        search = answer["search"]
        assert (search["searchType"], search["outcome"], search["cut"]) == ("text", "unavailable", ["vector"])
        assert search["pipeline"][0]["embed"]["embedded"] is False


async def test_on_mongodb_the_stages_that_were_asked_are_told(closed_while_connecting):
    made = store_from(mongodb_server.url(options="narrow_above=1"))
    async with serving(echoic.open(made, embedder="lexical", fusion="rrf"), settings_of()) as server:
        ana = await server.identity()
        memory = server.memory.user(ana.user)
        for key, value in {"hobby": "sailing", "city": "Porto", "dish": "moussaka"}.items():
            await memory.set(key, value)
        await server.memory.settle(60)
        assert await made.until_searchable(300)
        answer = (await server.memory_of(ana, "query", query="mousaka")).json()
        assert answer["memories"][0]["value"] == "moussaka"
        own = next(step for step in answer["search"]["pipeline"] if "search" in step)["search"]["own"]
        assert own["in"] == "database"
        (pipeline,) = own["pipelines"]
        fusion = pipeline[0]["$rankFusion"]
        assert fusion["combination"]["weights"] == {"vector": 0.7, "text": 0.3}
        vector = fusion["input"]["pipelines"]["vector"][0]["$vectorSearch"]
        assert vector["queryVector"].endswith("dimensions]")
        assert "fuzzy" in str(fusion["input"]["pipelines"]["text"])


async def test_hits_carry_no_word_that_nobody_heard(store):
    async with started(store) as server:
        ana = await server.identity()
        memory = server.memory.user(ana.user)
        call = await memory.conversation("c")
        await call.append(
            Turn(speaker="user", text="What is on the menu?"),
            Turn(
                speaker="agent",
                text="The menu has moussaka, and tomorrow lobster thermidor.",
                heard="The menu has moussaka,",
            ),
        )
        answer = await server.memory_of(ana, "query", query="menu moussaka lobster")
        assert "moussaka" in answer.text
        assert "thermidor" not in answer.text
        for hit in await memory.query("menu moussaka lobster"):
            assert "thermidor" not in str(hit)
        said = await server.say(ana, "What was on the menu?")
        assert "thermidor" not in str(said)
