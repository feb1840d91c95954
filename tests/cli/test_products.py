"""Exports of other memory products, in the shapes their packages and documents show; the contents are made up."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from echoic.cli.importers import (
    READERS,
    Exported,
    ImportedMemory,
    ImportedTurn,
    ImportSource,
    Skipped,
    format_of,
)

NOW = datetime(2026, 5, 4, 9, tzinfo=UTC)
EDGE = {
    "uuid": "e1",
    "name": "LIVES_IN",
    "fact": "Ana lives in Jaffa.",
    "source_node_uuid": "n1",
    "target_node_uuid": "n2",
    "episodes": ["p1"],
    "created_at": "2026-03-01T10:00:01Z",
    "valid_at": "2026-03-01T10:00:00Z",
    "invalid_at": None,
    "expired_at": None,
}
ENDED = {**EDGE, "uuid": "e2", "fact": "Ana lives in Haifa.", "invalid_at": "2026-03-01T10:00:00Z"}
ENDED |= {"valid_at": "2025-03-01T10:00:00Z"}
MESSAGE = {"uuid": "m1", "role": "user", "name": "Ana", "content": "I keep bees.", "processed": True}
MESSAGE |= {"created_at": "2026-03-01T10:00:00Z"}
ITEM = {
    "namespace": ["ana", "memories"],
    "key": "bees",
    "value": {"kind": "Memory", "content": {"content": "Keeps bees."}},
    "created_at": "2026-03-01T10:00:00+00:00",
    "updated_at": "2026-03-02T10:00:00+00:00",
}


def node(name, parent, role, parts, *, children=(), kind="text", **more):
    content = {"content_type": kind, "parts": parts}
    message = {"id": f"m-{name}", "author": {"role": role}, "create_time": 1772359200.0 + len(name)}
    message |= {"content": content, "recipient": "all", "weight": 1.0, "metadata": {}, **more}
    return {"id": name, "parent": parent, "children": list(children), "message": message}


SPOKEN = [{"content_type": "audio_transcription", "text": "I moved to Jaffa.", "direction": "in"}]
SPOKEN += [{"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1"}]
CHATGPT = {
    "title": "Bees",
    "create_time": 1772359200.5,
    "conversation_id": "c-1",
    "id": "c-1",
    "current_node": "final",
    "mapping": {
        "root": {"id": "root", "parent": None, "children": ["hidden"], "message": None},
        "hidden": node("hidden", "root", "user", ["I am a pilot."], kind="user_editable_context"),
        "asked": node(
            "asked", "hidden", "user", ["I keep ", {"content_type": "image_asset_pointer"}, "bees."]
        ),
        "given-up": node("given-up", "asked", "assistant", ["Wasps are not bees."]),
        "thought": node("thought", "asked", "assistant", ["They keep bees."], channel="commentary"),
        "tool": node("tool", "thought", "assistant", ["search('bees')"], recipient="web"),
        "found": node("found", "tool", "tool", ["Bees are insects."]),
        "answer": node("answer", "found", "assistant", ["How many hives?"], channel="final"),
        "final": node("final", "answer", "user", SPOKEN, kind="multimodal_text"),
    },
}
BLOCK = {
    "id": "block-1",
    "label": "human",
    "value": "Ana keeps bees.\n\n- Ana lives in Jaffa.",
    "limit": 20000,
}
PERSONA = {"id": "block-0", "label": "persona", "value": "I am Pip.", "limit": 20000}
SENT = {"id": "call_1", "type": "function"}
SENT |= {"function": {"name": "send_message", "arguments": '{"message": "How many hives?"}'}}


def letta_message(name, role, text, **more):
    said = [{"type": "text", "text": text}]
    at = "2026-03-01T10:00:00+00:00"
    return {"type": "message", "id": name, "role": role, "content": said, "created_at": at, **more}


AGENT_FILE = {
    "agents": [
        {
            "id": "agent-0",
            "name": "pip",
            "block_ids": ["block-0", "block-1"],
            "messages": [
                letta_message("message-0", "system", "You are Letta."),
                letta_message("message-1", "user", '{"type": "heartbeat", "reason": "timer"}'),
                letta_message("message-2", "user", '{"type": "user_message", "message": "I keep bees."}'),
                letta_message("message-3", "assistant", "They keep bees, so I ask.", tool_calls=[SENT]),
                letta_message("message-4", "tool", "None"),
                letta_message("message-5", "user", "Twelve."),
            ],
        }
    ],
    "groups": [],
    "blocks": [BLOCK, PERSONA],
    "tools": [],
    "metadata": {"revision_id": "d5103ee17ed5"},
}
LEGACY_AGENT = {
    "agent_type": "memgpt_agent",
    "name": "pip",
    "core_memory": [BLOCK, PERSONA],
    "messages": AGENT_FILE["agents"][0]["messages"],
}


def read(kind, document, tmp_path, read_at=NOW):
    path = tmp_path / "given.json"
    path.write_text(json.dumps(document))
    return list(READERS[kind](ImportSource(name="given.json", path=path, read_at=read_at)))


def turns(items):
    return [
        (item.turn.conversation, item.turn.speaker, item.turn.text)
        for item in items
        if isinstance(item, ImportedTurn)
    ]


def memories(items):
    return [item.text for item in items if isinstance(item, ImportedMemory)]


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ({"results": []}, "mem0"),
        ({"count": 1, "next": None, "previous": None, "results": [{"memory": "x"}]}, "mem0"),
        ([EDGE], "zep"),
        ({"items": [EDGE], "next_cursor": None, "total_size": 1}, "zep"),
        ({"facts": [EDGE]}, "zep"),
        ({"messages": [MESSAGE], "row_count": 1}, "zep"),
        ([ITEM], "langgraph"),
        ([{"prefix": "ana.memories", "key": "bees", "value": {}}], "langgraph"),
        ([CHATGPT], "chatgpt"),
        (AGENT_FILE, "letta"),
        (LEGACY_AGENT, "letta"),
        ([{"id": "passage-1", "text": "Keeps bees.", "archive_id": "archive-1"}], "letta"),
        ({"facts": [{"content": "Keeps bees.", "category": "fact"}]}, "bodhi"),
    ],
)
def test_a_products_export_is_recognised_by_its_contents(document, kind, tmp_path):
    path = tmp_path / "given.json"
    path.write_text(json.dumps(document))
    assert format_of(ImportSource(name="given.json", path=path, read_at=NOW)) == kind


@pytest.mark.parametrize("page", [[EDGE, ENDED], {"edges": [EDGE, ENDED]}, {"items": [EDGE, ENDED]}])
def test_zeps_facts_are_memories_and_what_became_invalid_is_history(page, tmp_path):
    holds, ended = read("zep", page, tmp_path)
    assert (holds.text, holds.said_at.isoformat()) == ("Ana lives in Jaffa.", "2026-03-01T10:00:00+00:00")
    (past,) = ended.document["memories"]
    assert (past["text"], past["valid_until"]) == ("Ana lives in Haifa.", "2026-03-01T10:00:00+00:00")


def test_zeps_messages_are_turns_of_their_threads_whichever_version_wrote_them(tmp_path):
    tool, older = {**MESSAGE, "role": "tool"}, {**MESSAGE, "role": "Ana", "role_type": "user"}
    for message in (MESSAGE, older):
        page = {"thread_id": "call-1", "user_id": "ana", "messages": [message, tool]}
        (item,) = read("zep", [page], tmp_path)
        assert turns([item]) == [("call-1", "user", "I keep bees.")]
        assert (item.turn.id, item.user) == ("m1", "ana")


def test_items_of_a_store_are_the_items_of_ours_and_the_sentences_in_them_are_known(tmp_path):
    row = {**ITEM, "prefix": "ana.memories", "value": {"count": 3}, "created_at": "2026-03-01T10:00:00"}
    del row["namespace"]
    item, sentence, data, broken = read("langgraph", [ITEM, row, {**ITEM, "namespace": []}], tmp_path)
    assert isinstance(item, Exported)
    assert item.user == sentence.user == data.user == "ana"
    assert sentence.text == "Keeps bees."
    assert item.document["items"][0]["value"] == {name: ITEM[name] for name in ("namespace", "key", "value")}
    assert data.document["items"][0]["value"]["value"] == {"count": 3}
    assert isinstance(broken, Skipped)
    assert "the first label names the user" in broken.reason


def test_of_a_chatgpt_conversation_the_branch_that_was_shown_is_read_and_what_was_spoken(tmp_path):
    items = read("chatgpt", [CHATGPT], tmp_path)
    assert turns(items) == [
        ("c-1", "user", "I keep \nbees."),
        ("c-1", "agent", "How many hives?"),
        ("c-1", "user", "I moved to Jaffa."),
    ]
    assert items[0].turn.id == "m-asked"
    assert items[0].turn.said_at == datetime.fromtimestamp(1772359205.0, UTC)


def test_a_chatgpt_conversation_whose_nodes_point_at_one_another_ends(tmp_path):
    looped = {
        **CHATGPT,
        "mapping": {**CHATGPT["mapping"], "asked": node("asked", "final", "user", ["Hello?"])},
    }
    assert len(turns(read("chatgpt", [looped], tmp_path))) == 3


def test_a_message_that_cannot_be_read_costs_itself_and_one_that_is_too_long_is_cut(tmp_path):
    long = " ".join(f"word{n}" for n in range(3000))
    nodes = {
        "broken": node("broken", None, "user", None, create_time="yesterday"),
        "nobody": {**node("nobody", "broken", "user", ["x"]), "message": {"author": None}},
        "long": node("long", "nobody", "assistant", [long]),
        "last": node("last", "long", "user", ["I live in Oslo."]),
    }
    nodes["broken"]["message"]["content"]["parts"] = ["Hello."]
    items = read("chatgpt", [{**CHATGPT, "current_node": "last", "mapping": nodes}], tmp_path)
    (skipped,) = [item for item in items if isinstance(item, Skipped)]
    assert "message[0]" in skipped.where
    said = [item.turn for item in items if isinstance(item, ImportedTurn)]
    assert said[-1].text == "I live in Oslo."
    assert [turn.id for turn in said[:2]] == ["m-long", "m-long#2"]
    assert " ".join(turn.text for turn in said[:-1]) == long


@pytest.mark.parametrize("document", [AGENT_FILE, LEGACY_AGENT])
def test_an_agent_file_gives_what_was_said_and_what_is_known_of_the_human(document, tmp_path):
    items = read("letta", document, tmp_path)
    assert turns(items) == [
        ("pip", "user", "I keep bees."),
        ("pip", "agent", "How many hives?"),
        ("pip", "user", "Twelve."),
    ]
    assert memories(items) == ["Ana keeps bees.", "Ana lives in Jaffa."]


def test_a_memory_of_mem0_that_expired_is_history(tmp_path):
    kept = {"id": "1", "memory": "Has a cast on.", "user_id": "ana", "expiration_date": "2026-04-01"}
    (item,) = read("mem0", {"results": [kept]}, tmp_path)
    assert item.document["memories"][0]["valid_until"] == "2026-04-01T00:00:00+00:00"
    (later,) = read("mem0", {"results": [kept]}, tmp_path, read_at=NOW + timedelta(days=1))
    assert later == item, "importing again adds nothing"
    (item,) = read("mem0", {"results": [{**kept, "expiration_date": "2027-04-01"}]}, tmp_path)
    assert memories([item]) == ["Has a cast on."]


@pytest.mark.parametrize("kind", ["mem0", "zep", "langgraph", "chatgpt", "letta"])
@pytest.mark.parametrize(
    "broken", [{"memory": 3, "fact": [], "value": 1, "mapping": 2, "label": None}, "x", 7, None, []]
)
def test_a_record_that_cannot_be_read_costs_that_record(kind, broken, tmp_path):
    items = read(kind, [broken], tmp_path)
    assert [type(item) for item in items] in ([Skipped], []), items


@pytest.mark.parametrize(
    ("document", "kind"),
    [([EDGE, ENDED], "zep"), ([ITEM], "langgraph"), ([CHATGPT], "chatgpt"), (AGENT_FILE, "letta")],
)
def test_an_import_is_found_and_again_adds_nothing(echoic, document_file, document, kind):
    name = document_file(document)
    first = echoic("import", name, "--json", "--user", "ana")
    assert (first.code, first.json["data"]["format"]) == (0, kind), first.out
    assert first.json["data"]["new"] > 0
    wanted = "Jaffa" if kind == "zep" else "bees"
    assert wanted in echoic("query", "where do they live?" if kind == "zep" else "bees", "--user", "ana").out
    before = echoic("export", "--user", "ana").out
    assert echoic("import", name, "--json", "--user", "ana").json["data"]["new"] == 0
    assert echoic("export", "--user", "ana").out == before


@pytest.mark.parametrize("kind", ["turns", "mem0", "zep", "langgraph", "letta"])
def test_what_is_written_for_another_product_is_read_as_its_own(echoic, document_file, tmp_path, kind):
    echoic("import", document_file(AGENT_FILE), "--user", "ana")
    echoic("import", document_file([{**ITEM, "value": {"hives": 12}}]), "--user", "ana")
    echoic("set", "city", "Haifa", "--user", "ana")
    echoic("set", "city", "Jaffa", "--user", "ana")
    assert echoic("export", "theirs.json", "--to", kind, "--user", "ana").code == 0
    elsewhere = ("--store", f"sqlite:///{tmp_path}/elsewhere.db", "--user", "ana")
    taken = echoic("import", "theirs.json", "--json", *elsewhere)
    assert (taken.code, taken.json["data"]["format"]) == (0, kind), taken.out
    there = json.loads(echoic("export", *elsewhere).out)
    mine = json.loads(echoic("export", "--user", "ana").out)
    said = [[(t["id"], t["text"], t["said_at"]) for t in c["turns"]] for c in mine["conversations"]]
    if kind in {"turns", "zep"}:
        assert [
            [(t["id"], t["text"], t["said_at"]) for t in c["turns"]] for c in there["conversations"]
        ] == said
    if kind != "turns":
        texts = {memory["text"] for memory in there["memories"] if not memory.get("valid_until")}
        assert {"Ana keeps bees.", "city: Jaffa"} <= texts
        assert "Haifa" not in " ".join(texts)
    if kind == "langgraph":
        assert [item["value"]["value"] for item in there["items"] if item["value"]["key"] == "bees"] == [
            {"hives": 12}
        ]


@pytest.fixture
def document_file(tmp_path):
    def write(document):
        path = tmp_path / f"given-{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps(document))
        return str(path)

    return write
