"""Records of an integrator's own kind: kept, searched, isolated, exported and forgotten with their user."""

from __future__ import annotations

import asyncio
import base64
import json
import random

import pytest

import echoic

VALUES = [
    {"text": "likes jazz and old blues records", "n": 1},
    {"text": "allergic to peanuts", "n": 2.5, "tags": ["x", None, True]},
    {"deep": {"k": [1, None, "é😀"]}},
]
STORES = ["memory://", "sqlite:///{}/items.db", "files:///{}/items"]


@pytest.fixture(params=STORES, ids=["memory", "sqlite", "files"])
async def memory(request, tmp_path):
    async with echoic.open(request.param.format(tmp_path), embedder="lexical") as opened:
        yield opened


async def filled(memory, user="ana", **options):
    notes = memory.user(user).items("notes", searchable=True, **options)
    await notes.set("music", VALUES[0], text="likes jazz and old blues records")
    await notes.set("food", VALUES[1], text="allergic to peanuts")
    await notes.set("other", VALUES[2])
    return notes


async def test_a_value_comes_back_as_it_was_and_a_new_one_takes_its_place(memory):
    notes = memory.user("ana").items("notes")
    for value in [*VALUES, "a text", 7, None, [], {}]:
        kept = await notes.set("one", value)
        assert (await notes.get("one")).value == value == kept.value
    assert kept.created_at < kept.updated_at
    assert [item.name for item in await notes.all()] == ["one"]
    await notes.delete("one", "never there")
    assert await notes.get("one") is None
    assert await notes.all() == []


async def test_they_stand_in_the_order_in_which_they_were_first_kept(memory):
    notes = memory.user("ana").items("log")
    await notes.append([1, 2, 3])
    await notes.append([4])
    assert [item.value for item in await notes.all()] == [1, 2, 3, 4]
    assert [item.value for item in await notes.all(newest=2)] == [3, 4]
    assert await notes.all(newest=0) == []


async def test_a_search_ranks_them_as_memories_are_ranked(memory):
    notes = await filled(memory)
    await memory.settle()
    found = await notes.search("what music do they like, jazz?")
    assert found.outcome == "complete"
    assert found.items[0].name == "music"
    assert found.items[0].value == VALUES[0]
    assert 0 <= found.items[0].relevance <= 1
    assert (await notes.search("peanuts", limit=1)).items[0].name == "food"
    assert "other" not in {item.name for item in (await notes.search("likes peanuts and jazz")).items}


async def test_a_search_without_a_limit_finds_every_item(memory):
    notes = memory.user("ana").items("songs", searchable=True)
    for n in range(12):
        await notes.set(f"song {n}", n, text=f"jazz song {n}")
    assert len((await notes.search("jazz")).items) == 10
    assert len((await notes.search("jazz", limit=None)).items) == 12
    assert (await memory.user("bob").items("songs", searchable=True).search("jazz", limit=None)).items == ()
    with pytest.raises(echoic.InvalidInput):
        await notes.search("jazz", limit=0)


async def test_what_was_changed_or_removed_is_not_found_by_what_it_said(memory):
    notes = await filled(memory)
    await notes.set("music", {"text": "likes opera"}, text="likes opera")
    await notes.delete("food")
    assert (await notes.search("jazz")).items == ()
    assert (await notes.search("peanuts")).items == ()
    assert (await notes.search("opera")).items[0].name == "music"
    await notes.set("music", {"text": "likes opera"})
    assert (await notes.search("opera")).items == ()


async def test_no_recall_finds_them_and_no_search_for_them_finds_anything_else(memory):
    notes = await filled(memory)
    ana = memory.user("ana")
    call = await ana.conversation("c")
    await call.append(
        *(echoic.Turn(speaker="user", text=f"I heard jazz in club number {n}.") for n in range(40))
    )
    await ana.set("music", "jazz on Sundays")
    recall = await ana.recall("jazz blues peanuts", limit=100, min_relevance=0)
    assert all("old blues records" not in hit.text and "allergic" not in hit.text for hit in recall.hits)
    assert [item.name for item in (await notes.search("jazz", limit=100)).items] == ["music"]
    assert (await ana.items("drafts", searchable=True).search("jazz")).items == ()
    assert "blues" not in (await ana.brief("which records do I like?")).text


async def test_nobody_else_finds_gets_or_removes_them(memory):
    await filled(memory)
    for other in (memory.user("bob"), memory.user("ana", "acme"), memory.user("Ana")):
        notes = other.items("notes", searchable=True)
        await notes.delete("music")
        assert await notes.get("music") is None
        assert await notes.all() == []
        assert (await notes.search("jazz")).items == ()
    assert (await memory.user("ana").items("notes", searchable=True).get("music")).value == VALUES[0]


async def test_forgetting_a_user_or_their_conversation_destroys_them(memory):
    ana = memory.user("ana")
    await (await ana.conversation("call-1")).append(echoic.Turn(speaker="user", text="hello"))
    await filled(memory, conversation="call-1")
    kept = await filled(memory)
    receipt = await ana.forget(conversation="call-1")
    assert receipt.verified
    assert receipt.other >= 3
    assert await ana.items("notes", searchable=True, conversation="call-1").all() == []
    assert len(await kept.all()) == 3
    assert (await ana.forget()).verified
    assert await kept.all() == []
    assert (await kept.search("jazz")).items == ()


async def test_forgetting_a_memory_destroys_its_words_in_them(memory):
    ana = memory.user("ana")
    await ana.set("hotel", "the Grand Budapest")
    notes = ana.items("notes", searchable=True)
    await notes.set(
        "trip", {"said": "My hotel is the Grand Budapest."}, text="My hotel is the Grand Budapest."
    )
    await ana.forget(key="hotel")
    item = await notes.get("trip")
    assert "Budapest" not in str(item)
    assert "[forgotten]" in item.value["said"]
    assert (await notes.search("Grand Budapest")).items == ()


async def test_an_export_holds_them_and_restores_them_for_whom_it_is_restored(memory):
    await filled(memory)
    await memory.user("ana").items("log", conversation="call-1").append([1, 2])
    exported = await memory.user("ana").export()
    bob = memory.user("bob")
    assert await bob.restore(exported) == 5
    assert await bob.restore(exported) == 0
    notes = bob.items("notes", searchable=True)
    assert (await notes.search("jazz")).items[0].value == VALUES[0]
    assert [item.value for item in await bob.items("log", conversation="call-1").all()] == [1, 2]
    assert (await bob.export())["items"] == exported["items"]


async def test_a_forged_export_is_refused(memory):
    await filled(memory)
    exported = await memory.user("ana").export()
    for change in ({"kind": ""}, {"created_at": "yesterday"}, {"text": "x" * 40_000}, {"name": 7}):
        forged = {**exported, "items": [{**exported["items"][0], **change}]}
        with pytest.raises(echoic.InvalidInput):
            await memory.user("eve").restore(forged)
        assert await memory.user("eve").items("notes", searchable=True).all() == []


async def test_secrets_in_them_are_masked(memory):
    notes = memory.user("ana").items("notes")
    kept = await notes.set("one", {"said": "my card is 4111 1111 1111 1111"})
    assert "1111 1111" not in str(kept)
    assert "1111 1111" not in str(await notes.get("one"))
    assert (await notes.set("pin", "4711")).value == "[PIN]"


@pytest.mark.parametrize("name", ["15550100088", "4242424242424242", "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zC"])
async def test_an_id_that_looks_like_a_secret_stays_as_it_is(memory, name):
    """A telephone number passes for a national ID, a random id for a key."""
    ana = memory.user("ana")
    await ana.items("notes").set(name, {"said": f"my CPF is {name}"})
    exported = await ana.export()
    assert exported["items"][0]["name"] == name
    bob = memory.user("bob")
    assert (await bob.restore(exported), await bob.restore(exported)) == (1, 0)
    kept = await bob.items("notes").get(name)
    assert kept.name == name
    assert name not in str(kept.value)
    log = ana.items("log", conversation=name)
    await log.set("one", "hello")
    await ana.forget(conversation=name)
    assert await log.all() == []


async def test_what_is_encoded_is_no_secret_and_comes_back_as_it_was(memory):
    """Images and sealed reasoning of models hold anything, and a changed byte makes them worthless."""
    notes = memory.user("ana").items("notes")
    sealed = [base64.urlsafe_b64encode(random.Random(n).randbytes(900)).decode() for n in range(8)]
    image = "data:image/png;base64," + base64.b64encode(random.Random(7).randbytes(60_000)).decode()
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI" + "abcdefghij" * 60 + ".c2lnbmF0dXJlc2lnbmF0dXJl"
    value = {
        "sealed": sealed,
        "image": image,
        "said": "my card is 4111 1111 1111 1111",
        "odd": "\ue0000\ue000",
    }
    kept = await notes.set("one", {**value, "odd": ""})
    assert kept.value["sealed"] == sealed
    assert kept.value["image"] == image
    assert "1111 1111" not in str((await notes.get("one")).value)
    assert token not in str((await notes.set("two", {"said": f"use the token {token}"})).value)
    assert (await notes.set("three", {"odd": value["odd"]})).value["odd"] == value["odd"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"name": " ", "value": 1}, "name is empty"),
        ({"name": "a", "value": {1: 2}}, "names in an object"),
        ({"name": "a", "value": (1,)}, "names in an object"),
        ({"name": "a", "value": float("nan")}, "is not JSON"),
        ({"name": "a", "value": object()}, "is not JSON"),
        ({"name": "a", "value": "x" * 4_000_001}, "at most"),
        ({"name": "a", "value": 1, "text": "x"}, "not searchable"),
    ],
)
async def test_what_cannot_be_kept_is_refused(given, why):
    async with echoic.open("memory://", embedder="lexical") as memory:
        notes = memory.user("ana").items("notes")
        with pytest.raises(echoic.InvalidInput, match=why):
            await notes.set(**given)
        with pytest.raises(echoic.InvalidInput, match="kind is empty"):
            memory.user("ana").items("")
        with pytest.raises(echoic.InvalidInput, match="not searchable"):
            await notes.search("x")
        assert await notes.all() == []


async def test_two_who_write_the_same_name_both_succeed_and_one_holds(memory):
    notes = memory.user("ana").items("notes")
    await asyncio.gather(*(notes.set("one", n) for n in range(8)))
    assert (await notes.get("one")).value in range(8)
    assert len(await notes.all()) == 1


async def test_they_are_there_after_the_store_was_closed(tmp_path):
    for url in [each.format(tmp_path) for each in STORES[1:]]:
        async with echoic.open(url, embedder="lexical") as memory:
            await filled(memory)
        async with echoic.open(url, embedder="lexical") as memory:
            notes = memory.user("ana").items("notes", searchable=True)
            assert (await notes.search("jazz")).items[0].name == "music"
            await memory.user("ana").set("music", "jazz")
            assert (await notes.search("jazz")).items[0].value == VALUES[0]


@pytest.mark.parametrize(
    "value",
    [
        {"private_key": "{key}"},
        {"tls": {"secretKey": ["{key}"]}},
        {"pem": "-----BEGIN PRIVATE KEY-----{key}-----END PRIVATE KEY-----"},
        {"header": "Authorization: Bearer {key}"},
    ],
)
# what is masked is decided before a store is asked
@pytest.mark.parametrize("memory", STORES[:1], indirect=True)
async def test_a_long_key_without_line_breaks_is_masked(memory, value):
    key = base64.b64encode(random.Random(3).randbytes(1200)).decode()
    kept = (
        await memory.user("ana")
        .items("notes")
        .set("one", json.loads(json.dumps(value).replace("{key}", key)))
    )
    assert key[100:200] not in str(kept.value)
    named = await memory.user("ana").items("notes").set("api_key", key)
    assert key[100:200] not in str(named.value)
