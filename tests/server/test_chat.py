"""The agent over HTTP, and everything one user can do with their memory."""

from __future__ import annotations

import pytest
import pytest_asyncio

from echoic import Turn

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def pavel(server):
    return await server.identity()


async def test_what_is_said_is_learned_and_answered_and_shown(server, pavel):
    told = await server.say(pavel, "I'm Pavel and I live in Tel Aviv")
    assert {memory["key"]: memory["text"] for memory in told["stored"]} == {
        "user_name": "Pavel",
        "home": "Tel Aviv",
    }
    assert told["recall"] is None
    assert told["heard"]["text"] == "I'm Pavel and I live in Tel Aviv"
    asked = await server.say(pavel, "Where do I live?", conversation=told["conversation"])
    assert "Tel Aviv" in asked["text"]
    assert asked["stored"] == []
    assert asked["query"] == "Where do I live?"
    assert asked["recall"]["outcome"] == "complete"
    home = next(hit for hit in asked["recall"]["hits"] if hit["memory"] and hit["memory"]["key"] == "home")
    assert home["text"] == "Tel Aviv"
    assert home["ranks"]
    assert all(rank["rank"] >= 1 for rank in home["ranks"].values())
    assert list(asked["timings"])[:3] == ["append", "distil", "recall"]
    assert all(elapsed >= 0 for elapsed in asked["timings"].values())


async def test_a_correction_shows_what_it_superseded(server, pavel):
    first = await server.say(pavel, "I live in Tel Aviv")
    moved = await server.say(pavel, "Actually I moved to Lisbon", conversation=first["conversation"])
    assert [memory["text"] for memory in moved["stored"]] == ["Lisbon"]
    assert [memory["text"] for memory in moved["superseded"]] == ["Tel Aviv"]
    assert moved["retracted"] == []
    history = (await server.client.get("/api/memories/home/history", headers=pavel.headers)).json()
    assert [(version["text"], version["current"]) for version in history["versions"]] == [
        ("Tel Aviv", False),
        ("Lisbon", True),
    ]
    listed = (await server.client.get("/api/memories", headers=pavel.headers)).json()
    assert [memory["text"] for memory in listed["memories"]] == ["Lisbon"]
    assert listed["history"] is None
    with_history = await server.client.get("/api/memories", params={"history": "true"}, headers=pavel.headers)
    assert with_history.json()["history"] == [history]


async def test_the_next_call_begins_with_the_callers_name(server, pavel):
    begun = (await server.client.post("/api/conversations", headers=pavel.headers)).json()
    assert "Pavel" not in begun["text"]
    said = await server.say(pavel, "My name is Pavel", conversation=begun["conversation"])
    ended = await server.client.post(
        f"/api/conversations/{said['conversation']}/complete", headers=pavel.headers
    )
    assert (ended.status_code, ended.json()["status"]) == (200, "completed")
    again = (await server.client.post("/api/conversations", headers=pavel.headers)).json()
    assert again["text"] == "Welcome back, Pavel."
    assert again["conversation"] != begun["conversation"]
    exported = (await server.client.get("/api/export", headers=pavel.headers)).json()
    assert [c["turns"][0]["text"] for c in exported["conversations"]] == [begun["text"], again["text"]]


async def test_a_conversation_whose_id_has_a_slash_is_cut_kept_ended_and_destroyed(server, pavel):
    call = await server.memory.user(pavel.user).conversation("room/1")
    await call.append(Turn(speaker="agent", text="Good morning."))
    for what, sent in (
        ("truncate", {"heard": "Good"}),
        ("remember", None),
        ("complete", None),
        ("off-the-record", None),
    ):
        path = f"/api/conversations/room%2F1/{what}"
        answer = await server.client.post(path, json=sent, headers=pavel.headers)
        assert answer.status_code == 200, (what, answer.text)
    assert await server.memory.user(pavel.user).conversations() == []


async def test_an_answer_that_was_cut_off_is_kept_as_it_was_heard(server, pavel):
    said = await server.say(pavel, "I live in Tel Aviv")
    path = f"/api/conversations/{said['conversation']}/truncate"
    first = said["text"].split()[0]
    asked = {"heard": first, "after": said["heard"]["id"]}
    answer = await server.client.post(path, json=asked, headers=pavel.headers)
    assert answer.status_code == 200
    assert [(turn["text"], turn["heard"]) for turn in answer.json()["turns"]] == [(said["text"], first)]
    wrong = await server.client.post(path, json={**asked, "heard": "Never said"}, headers=pavel.headers)
    assert wrong.status_code == 422
    assert "does not begin with what was heard" in wrong.json()["error"]
    assert "Never said" not in wrong.text
    exported = (await server.client.get("/api/export", headers=pavel.headers)).json()
    assert exported["conversations"][-1]["turns"][-1]["heard"] == first


async def test_a_conversation_goes_on_under_its_id(server, pavel):
    first = (
        await server.client.post("/api/conversations", json={"conversation": "call 7"}, headers=pavel.headers)
    ).json()
    said = await server.say(pavel, "hello", conversation="call 7")
    assert first["conversation"] == said["conversation"] == "call 7"


async def test_a_restart_forgets_nothing(start, tmp_path):
    url = f"sqlite:///{tmp_path}/kept.db"
    async with start(url=url) as server:
        pavel = await server.identity()
        await server.say(pavel, "I'm Pavel and I live in Tel Aviv")
    async with start(url=url) as server:
        assert "Tel Aviv" in (await server.say(pavel, "Where do I live?"))["text"]


async def test_forgetting_everything_gives_a_receipt_and_leaves_nothing(server, pavel):
    await server.say(pavel, "I'm Pavel and I live in Tel Aviv")
    await server.memory_of(pavel, "set", key="opening hours", value="nine to five")
    receipt = (
        await server.client.post("/api/forget", json={"everything": True}, headers=pavel.headers)
    ).json()
    assert receipt["memories"] == 3
    assert receipt["turns"] == 2
    assert receipt["conversations"] == 1
    assert receipt["other"] == 3  # the proposal, and what was written down of the call and of its turn
    assert receipt["verified"] is True
    assert receipt["bytesSearched"] > 0
    assert (await server.client.get("/api/memories", headers=pavel.headers)).json()["memories"] == []
    exported = (await server.client.get("/api/export", headers=pavel.headers)).json()
    assert (exported["memories"], exported["conversations"]) == ([], [])
    assert "Tel Aviv" not in (await server.say(pavel, "Where do I live?"))["text"]


async def test_what_was_asked_for_in_a_turn_is_destroyed_by_its_id(server, pavel):
    await server.say(pavel, "My knee was replaced at Saint Mary's.")
    told = await server.say(pavel, "Rub out what I said about my knee replacement.")
    asked = {"asked": told["heard"]["id"]}
    receipt = await server.client.post("/api/forget", json=asked, headers=pavel.headers)
    assert receipt.json()["rewritten"] >= 1
    exported = (await server.client.get("/api/export", headers=pavel.headers)).text
    assert "Saint Mary" not in exported
    both = await server.client.post("/api/forget", json={**asked, "key": "x"}, headers=pavel.headers)
    assert both.status_code == 422


async def test_a_query_leaves_out_what_it_is_told_to(server, pavel):
    told = await server.say(pavel, "The north shed is locked.")
    asked = {"query": "Which shed is locked?", "minRelevance": 0}
    found = (await server.memory_of(pavel, "query", **asked)).json()
    assert any("north" in hit["text"] for hit in found["result"])
    left = await server.memory_of(pavel, "query", **asked, besides=[told["conversation"]])
    assert not any("north" in hit["text"] for hit in left.json()["result"] if not hit["memory"])


async def test_the_agent_asks_back_before_it_erases_everything(server, pavel):
    told = await server.say(pavel, "I live in Tel Aviv")
    asked = await server.say(pavel, "Forget everything about me", conversation=told["conversation"])
    assert asked["receipt"] is None
    assert (await server.memory_of(pavel, "get", key="home")).json()["result"]["text"] == "Tel Aviv"
    done = await server.say(pavel, "yes", conversation=told["conversation"])
    assert done["receipt"]["verified"] is True
    assert done["heard"] is None
    assert (await server.memory_of(pavel, "list")).json()["result"] == []


async def test_one_key_or_one_conversation_is_forgotten_alone(server, pavel):
    said = await server.say(pavel, "I'm Pavel and I live in Tel Aviv")
    receipt = (await server.client.post("/api/forget", json={"key": "home"}, headers=pavel.headers)).json()
    assert (receipt["memories"], receipt["turns"]) == (1, 0)
    receipt = await server.client.post(
        "/api/forget", json={"conversation": said["conversation"]}, headers=pavel.headers
    )
    assert (receipt.json()["conversations"], receipt.json()["turns"]) == (1, 2)
    assert (await server.memory_of(pavel, "get", key="user_name")).json()["result"]["text"] == "Pavel"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"everything": False},
        {"everything": None},
        {"everything": "yes please"},
        {"key": "a", "everything": True},
        {"key": "a", "conversation": "b"},
    ],
)
async def test_nothing_is_destroyed_unless_it_is_named(server, pavel, body):
    await server.memory_of(pavel, "set", key="a", value="kept")
    answer = await server.client.post("/api/forget", json=body, headers=pavel.headers)
    assert answer.status_code == 422
    assert (await server.memory_of(pavel, "get", key="a")).json()["result"]["text"] == "kept"


async def test_an_export_can_be_taken_in_elsewhere(server, pavel, start):
    await server.say(pavel, "I'm Pavel and I live in Tel Aviv")
    answer = await server.client.get("/api/export", headers=pavel.headers)
    assert answer.headers["content-disposition"] == 'attachment; filename="echoic-export.json"'
    async with start(url="memory://") as other:
        ana = await other.identity()
        await other.memory.user(ana.user).restore(answer.json())
        assert "Tel Aviv" in (await other.say(ana, "Where do I live?"))["text"]


async def test_a_proposal_waits_for_the_operator_and_is_then_known_to_all(own, operator):
    pavel = await own.identity()
    told = await own.say(pavel, "We're open nine to five")
    assert [memory["visibility"] for memory in told["stored"]] == ["proposed"]
    other = await own.identity()
    assert (await own.memory_of(other, "get", key="opening hours")).json()["result"] is None
    (proposal,) = (await own.client.get("/api/proposals", headers=operator)).json()["proposals"]
    assert (proposal["key"], proposal["text"], proposal["visibility"]) == (
        "opening hours",
        "nine to five",
        "proposed",
    )
    approved = await own.client.post(f"/api/proposals/{proposal['id']}/approve", headers=operator)
    assert approved.json()["visibility"] == "global"
    assert (await own.memory_of(other, "get", key="opening hours")).json()["result"]["text"] == "nine to five"
    assert "nine to five" in (await own.say(other, "What are your opening hours?"))["text"]
    assert (await own.client.get("/api/proposals", headers=operator)).json()["proposals"] == []
    again = await own.client.post(f"/api/proposals/{proposal['id']}/approve", headers=operator)
    assert (again.status_code, again.json()["error"]) == (404, "there is no such proposal")


async def test_a_rejected_proposal_stays_its_authors_own(own, operator):
    pavel = await own.identity()
    await own.say(pavel, "We're open nine to five")
    (proposal,) = (await own.client.get("/api/proposals", headers=operator)).json()["proposals"]
    rejected = await own.client.post(f"/api/proposals/{proposal['id']}/reject", headers=operator)
    assert rejected.json() == {"rejected": proposal["id"]}
    assert (await own.memory_of(pavel, "get", key="opening hours")).json()["result"]["text"] == "nine to five"
    other = await own.identity()
    assert (await own.memory_of(other, "get", key="opening hours")).json()["result"] is None


async def test_proposals_are_of_one_deployment(own, operator):
    acme = await own.identity("acme")
    await own.memory_of(acme, "set", key="opening hours", value="nine to five")
    here = await own.client.get("/api/proposals", headers=operator)
    there = await own.client.get("/api/proposals", params={"deploymentId": "acme"}, headers=operator)
    assert here.json()["proposals"] == []
    assert [proposal["text"] for proposal in there.json()["proposals"]] == ["nine to five"]


@pytest.mark.parametrize("text", ["", "   ", "a\0b", "x" * 32_769])
async def test_what_cannot_be_kept_is_refused_and_nothing_is_appended(server, pavel, text):
    answer = await server.client.post(
        "/api/chat", json={"text": text, "conversation": "c"}, headers=pavel.headers
    )
    assert answer.status_code == 422
    exported = (await server.client.get("/api/export", headers=pavel.headers)).json()
    assert [turn for conversation in exported["conversations"] for turn in conversation["turns"]] == []
