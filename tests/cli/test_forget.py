from __future__ import annotations

import pytest


def receipt(ran):
    return dict(line.split("\t") for line in ran.out.splitlines())


def test_everything_of_a_user_goes_and_nobody_elses(echoic, jsonl, tmp_path):
    jsonl("talk.jsonl", {"speaker": "user", "text": "My locker code word is zanzibar.", "conversation": "c"})
    echoic("import", "talk.jsonl", "--user", "ana")
    echoic("set", "pet", "an axolotl", "--user", "ana")
    echoic("set", "pet", "a goat", "--user", "bea")
    gone = echoic("forget", "--all", "--yes", "--user", "ana")
    assert gone.code == 0
    counted = receipt(gone)
    assert int(counted["memories"]) >= 1
    assert (counted["turns"], counted["conversations"]) == ("1", "1")
    assert counted["verified"].startswith("yes, ")
    assert echoic("users").out.split() == ["bea"]
    for path in (file for file in tmp_path.glob("echoic.db*") if file.is_file()):
        assert b"zanzibar" not in path.read_bytes()
        assert b"axolotl" not in path.read_bytes()
    assert echoic("get", "pet", "--user", "bea").out == "a goat\n"


def test_one_key_goes_with_its_whole_history(echoic):
    for pet in ("a newt", "an axolotl"):
        echoic("set", "pet", pet)
    echoic("set", "city", "Haifa")
    assert receipt(echoic("forget", "--key", "pet", "--yes"))["memories"] == "2"
    assert echoic("history", "pet").code == 1
    assert echoic("get", "city").out == "Haifa\n"


def test_one_conversation_goes_with_all_that_was_said_in_it(echoic, jsonl):
    said = [
        {"speaker": "user", "text": f"The {c} shed is locked.", "conversation": c} for c in ("north", "south")
    ]
    jsonl("talk.jsonl", *said)
    echoic("import", "talk.jsonl")
    assert receipt(echoic("forget", "--conversation", "north", "--yes"))["turns"] == "1"
    found = echoic("query", "which shed is locked").out
    assert "south" in found
    assert "north" not in found


def test_what_was_asked_for_in_a_turn_goes_by_the_id_of_that_turn(echoic, jsonl):
    said = ["My knee was replaced at Saint Mary's.", "Rub out what I said about my knee replacement."]
    turns = [
        {"speaker": "user", "text": text, "conversation": "c", "id": f"c:{n}"} for n, text in enumerate(said)
    ]
    jsonl("talk.jsonl", *turns)
    echoic("import", "talk.jsonl")
    gone = echoic("forget", "--asked", "c:1", "--yes")
    assert gone.code == 0
    assert int(receipt(gone)["rewritten"]) >= 1
    assert "Saint Mary" not in echoic("export").out


def test_a_query_leaves_out_what_it_is_told_to(echoic, jsonl):
    said = [
        {"speaker": "user", "text": f"The {c} shed is locked.", "conversation": c} for c in ("north", "south")
    ]
    jsonl("talk.jsonl", *said)
    echoic("import", "talk.jsonl")
    found = echoic("query", "which shed is locked", "--besides", "north").out
    assert "south" in found
    assert "north" not in found
    assert echoic("query", "which shed is locked", "--besides", "north", "--besides", "south").code == 1


def test_there_is_nothing_left_to_forget_twice(echoic):
    echoic("set", "a", "b")
    assert echoic("forget", "--all", "--yes", "--json").json["count"] == 1
    again = echoic("forget", "--all", "--yes", "--json")
    assert (again.code, again.json["count"], again.json["data"]["verified"]) == (0, 0, True)


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (("--id", "nope"), 1),
        (("--key", "nope"), 1),
        (("--conversation", "nope"), 1),
        (("--until", "2001-01-01"), 1),
        (("--asked", "nope"), 64),
    ],
)
def test_what_never_was_there_is_not_told_to_be_forgotten(echoic, what, code):
    echoic("set", "a", "b")
    ran = echoic("forget", *what, "--yes")
    assert ran.code == code
    assert "forgot " not in ran.err
    assert "nothing" in ran.err
    assert echoic("get", "a").out == "b\n"


@pytest.mark.parametrize(
    "what", [("--all",), ("--key", "pet"), ("--conversation", "c")], ids=["all", "key", "conversation"]
)
@pytest.mark.parametrize("stdin", ["", "y\n", "yes\n"], ids=["nothing", "y", "yes"])
def test_without_a_terminal_nothing_is_destroyed_unless_it_was_meant(echoic, jsonl, what, stdin):
    jsonl("talk.jsonl", {"speaker": "user", "text": "The north shed is locked.", "conversation": "c"})
    echoic("import", "talk.jsonl")
    echoic("set", "pet", "a goat")
    refused = echoic("forget", *what, stdin=stdin)
    assert refused.code == 64
    assert "--yes" in refused.err
    assert refused.out == ""
    assert echoic("get", "pet").out == "a goat\n"
    assert "north shed" in echoic("query", "which shed is locked").out
    assert echoic("forget", *what, "--yes", stdin=stdin).code == 0
