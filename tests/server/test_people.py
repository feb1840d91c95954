"""Who there is, what is known of them page by page, where it comes from, and importing it."""

from __future__ import annotations

import pytest

from echoic.types import Turn

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def pages(server, headers, path, **asked):
    """Every page of `path`, each as it was answered."""
    found, cursor = [], None
    while True:
        params = asked | ({"cursor": cursor} if cursor else {})
        answer = await server.client.get(path, params=params, headers=headers)
        assert answer.status_code == 200, answer.text
        found.append(answer.json())
        cursor = found[-1]["cursor"]
        if cursor is None:
            return found


async def test_the_operator_lists_users_page_by_page_with_the_name_they_gave(own, operator):
    for number in range(7):
        await own.memory.user(f"user-{number}").set("user_name", f"Name {number}")
    await own.memory.user("nameless").remember("They like tea.")
    await own.memory.user("elsewhere", "acme").set("user_name", "Somebody else's")
    found = await pages(own, operator, "/api/users", limit=3)
    assert [page["total"] for page in found] == [8, 8, 8]
    listed = {each["user"]: each["name"] for page in found for each in page["users"]}
    assert listed == {"nameless": None, **{f"user-{n}": f"Name {n}" for n in range(7)}}
    assert sum(len(page["users"]) for page in found) == 8
    one = (await own.client.get("/api/users?containing=R-5", headers=operator)).json()
    assert [each["user"] for each in one["users"]] == ["user-5"]


async def test_users_who_are_forgotten_between_two_pages_leave_nobody_out(own, operator):
    for number in range(7):
        await own.memory.user(f"user-{number}").set("user_name", f"Name {number}")

    async def page(**asked):
        answer = await own.client.get("/api/users", params=asked, headers=operator)
        assert answer.status_code == 200, answer.text
        return [each["user"] for each in answer.json()["users"]], answer.json()["cursor"]

    first, cursor = await page(limit=2)
    assert first == ["user-6", "user-5"]
    await own.memory.user("user-5").forget()
    await own.memory.user("newer").remember("They like tea.")
    second, cursor = await page(limit=2, cursor=cursor)
    assert second == ["user-4", "user-3"]
    await own.memory.user("user-1").forget()
    assert await page(limit=2, cursor=cursor) == (["user-2", "user-0"], None)
    assert (await own.client.get("/api/users", params={"cursor": "x"}, headers=operator)).status_code == 422


async def test_nobody_but_the_operator_lists_users_or_imports_and_a_read_only_key_lists(own):
    caller = await own.identity()
    keys = own.memory.keys()
    reader, agent = [(await keys.create(role, name="of this test"))[0] for role in ("read-only", "agent")]
    for headers, listed in (({}, 401), (caller.headers, 401), (bearer(agent), 403), (bearer(reader), 200)):
        assert (await own.client.get("/api/users", headers=headers)).status_code == listed
        refused = await own.client.post("/api/users/ana/import", json={}, headers=headers)
        assert refused.status_code == (403 if listed == 200 else listed)


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


async def test_memories_are_given_page_by_page_whatever_is_deleted_meanwhile(own, operator):
    caller = await own.identity()
    memory = own.memory.user(caller.user)
    for number in range(9):
        await memory.set(f"key {number}", "old")
        await memory.set(f"key {number}", f"value {number}")
    for state, text in (("current", "value"), ("past", "old")):
        found = await pages(own, caller.headers, "/api/memories", limit=4, state=state)
        assert [len(page["memories"]) for page in found] == [4, 4, 1]
        newest_first = [m["key"] for page in found for m in page["memories"][::-1]]
        assert newest_first == [f"key {n}" for n in range(8, -1, -1)]
        assert all(text in m["text"] for page in found for m in page["memories"])
    first = (await own.client.get("/api/memories?limit=4", headers=caller.headers)).json()
    await memory.forget(id=first["memories"][0]["id"])  # the one the cursor was made at
    asked = {"limit": 100, "cursor": first["cursor"]}
    rest = await own.client.get("/v1/memories", params=asked, headers=caller.headers)
    assert [m["text"] for m in rest.json()["memories"]] == [f"value {n}" for n in range(5)]
    wrong = await own.client.get("/api/memories?cursor=nonsense", headers=caller.headers)
    assert wrong.status_code == 422


async def test_a_memory_comes_with_its_versions_and_the_sentences_behind_it_and_nobody_elses(own):
    caller, stranger = await own.identity(), await own.identity()
    memory = own.memory.user(caller.user)
    call = await memory.conversation("call-1")
    await call.append(
        Turn(speaker="user", text="I live in Tel Aviv.", confidence=0.93),
        Turn(speaker="user", text="It rained all morning."),
        Turn(speaker="user", text="Actually I moved to Lisbon."),
    )
    await call.complete()
    assert await own.memory.settle()
    home = await memory.get("home")
    path = f"/api/memories/{home.id}/provenance"
    found = (await own.client.get(path, headers=caller.headers)).json()
    assert [each["text"] for each in found["versions"]] == ["Tel Aviv", "Lisbon"]
    assert found["versions"][0]["supersededBy"] == home.id
    said = [(each["text"], each["confidence"], each["conversation"]) for each in found["turns"]]
    assert said == [
        ("I live in Tel Aviv.", 0.93, "call-1"),
        ("Actually I moved to Lisbon.", None, "call-1"),
    ]
    assert (await own.client.get(path, headers=stranger.headers)).status_code == 404

    await own.memory.user(stranger.user).set("greeting", "mine")
    shared = await own.memory.global_facts().set("greeting", "Say hello.")
    path = f"/api/memories/{shared.id}/provenance"
    for who in (caller, stranger):
        everyones = (await own.client.get(path, headers=who.headers)).json()
        assert ([m["text"] for m in everyones["versions"]], everyones["turns"]) == (["Say hello."], [])


async def test_an_export_is_imported_whole_or_in_pieces_once(own, operator):
    caller = await own.identity()
    memory = own.memory.user(caller.user)
    call = await memory.conversation("call-1")
    await call.append(*(Turn(speaker="user", text=f"Sentence {n}.") for n in range(5)))
    await memory.set("home", "Tel Aviv")
    await memory.set("home", "Lisbon")
    exported = (await own.client.get("/api/export", headers=caller.headers)).json()

    async def send(user, piece):
        answer = await own.client.post(f"/api/users/{user}/import", json=piece, headers=operator)
        assert answer.status_code == 200, answer.text
        return answer.json()["records"]

    assert await send("whole", exported) == 8
    assert await send("whole", exported) == 0
    conversation = exported["conversations"][0]
    for turns in (conversation["turns"][:2], conversation["turns"][2:]):
        await send(
            "pieces", {**exported, "memories": [], "conversations": [{**conversation, "turns": turns}]}
        )
    for one in exported["memories"]:
        await send("pieces", {**exported, "memories": [one], "conversations": []})
    for user in ("whole", "pieces"):
        again = await own.memory.user(user).export()
        told = [m["text"] for m in again["memories"]], again["conversations"][0]["turns"]
        assert told == ([m["text"] for m in exported["memories"]], conversation["turns"])
        assert (await own.memory.user(user).get("home")).text == "Lisbon"
    refused = await own.client.post("/api/users/ana/import", json={"format": "other"}, headers=operator)
    assert refused.status_code == 422


async def test_the_level_of_a_token_and_what_each_level_is_told_can_be_read(own):
    caller = await own.identity()
    told = (await own.client.get("/api/assurance", headers=caller.headers)).json()
    assert told["level"] == "device"
    assert told["levels"]["unattested"] == "open"
    assert list(told["levels"]) == ["device", "unattested", "attested", "linked", "proved", "account"]


async def test_a_page_of_memories_is_read_without_reading_all_of_them(own, monkeypatch):
    caller = await own.identity()
    memory = own.memory.user(caller.user)
    for number in range(30):
        await memory.set(f"key {number}", f"value {number}")
    store, read = memory.backing_store, []
    rows, scan = store.rows, store.scan

    async def counted_rows(scope, wanted):
        read.extend(wanted)
        return await rows(scope, wanted)

    async def counted_scan(scope, kind, **more):
        found = await scan(scope, kind, **more)
        read.extend(found if kind == "memory" else [])
        return found

    monkeypatch.setattr(store, "rows", counted_rows)
    monkeypatch.setattr(store, "scan", counted_scan)
    answer = await own.client.get("/api/memories?limit=4", headers=caller.headers)
    assert [m["text"] for m in answer.json()["memories"]] == [f"value {n}" for n in (26, 27, 28, 29)]
    assert answer.json()["total"] == 30
    assert len(read) <= 5
