"""A knowledge base from the command line: written, filled from a file, listed, withdrawn."""

from __future__ import annotations

import json

import pytest

HOURS = "The store is open from 9 to 17."
MARKDOWN = """\ufeff---
title: About us
owner: Olga, olga@example.com
---
# About us

<!-- kept by Olga -->
<!-- not for callers:
- the margin is 40 %

  Olga's desk is open from 10.
-->
- **Opening hours:** Monday to Friday, 9 to 17
* We ship worldwide
  in 3 to 5 days.

## Returns
1. Returns are free within 30 days.
- [ ] The `X100` has 8 hours of battery.
---
Dogs are welcome.
"""
FACTS = [
    "Opening hours: Monday to Friday, 9 to 17",
    "We ship worldwide in 3 to 5 days.",
    "Returns are free within 30 days.",
    "The X100 has 8 hours of battery.",
    "Dogs are welcome.",
]


def texts(echoic, *words):
    return [memory["text"] for memory in echoic("global", "list", "--json", *words).json["data"]]


def test_a_fact_is_written_edited_listed_and_withdrawn(echoic):
    assert echoic("global").code == 1
    written = echoic("global", "set", "opening_hours", "Open from 8 to 12.", "--by", "olga")
    assert (written.code, written.out) == (0, "")
    assert "an operator of the business wrote it" in written.err
    assert echoic("global", "set", "opening_hours", HOURS).code == 0
    assert echoic("get", "opening_hours", "--user", "bob").out == f"{HOURS}\n"
    (row,) = [line.split("\t") for line in echoic("global").out.splitlines()]
    assert (row[1], row[2], row[4]) == ("opening_hours", HOURS, "written")
    assert echoic("global", "withdraw", row[0]).code == 0
    assert echoic("get", "opening_hours", "--user", "bob").code == 1
    assert echoic("global", "withdraw", row[0]).code == 64


def test_the_same_file_twice_changes_nothing(echoic, tmp_path):
    file = tmp_path / "about.md"
    file.write_text(MARKDOWN)
    first = echoic("global", "set", "--from", str(file))
    assert (first.code, first.out) == (0, "new\t5\nchanged\t0\nunchanged\t0\nskipped\t0\n")
    before = echoic("global").out
    again = echoic("global", "set", "--from", str(file))
    assert again.out == "new\t0\nchanged\t0\nunchanged\t5\nskipped\t0\n"
    assert echoic("global").out == before
    assert texts(echoic) == FACTS
    assert FACTS[1] in echoic("query", "do you ship worldwide?", "--user", "bob").out


def test_a_rule_is_no_front_matter_and_what_follows_a_comment_is_a_fact(echoic, tmp_path):
    file = tmp_path / "about.md"
    file.write_text("---\n- Open Sundays.\n---\n<!-- hours --> We close at 5.\n")
    assert echoic("global", "set", "--from", str(file)).code == 0
    assert texts(echoic) == ["Open Sundays.", "We close at 5."]


def test_json_lines_name_their_keys_and_edit_what_is_there(echoic, tmp_path):
    file = tmp_path / "facts.jsonl"
    lines = [
        {"key": "opening_hours", "text": "Open from 8 to 12."},
        {"value": "Children swim free.", "category": "decision", "context": "on Sundays"},
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    assert echoic("global", "set", "--from", str(file)).code == 0
    lines[0]["text"] = HOURS
    file.write_text("\r\n".join(map(json.dumps, lines)))
    assert echoic("global", "set", "--from", str(file)).out.startswith("new\t0\nchanged\t1\nunchanged\t1")
    assert sorted(texts(echoic)) == ["Children swim free.", HOURS]


def test_what_cannot_be_read_is_left_out_and_said(echoic, tmp_path):
    file = tmp_path / "facts.txt"
    broken = [
        b'{"key": "a", "text": "One."}',
        b'{"key": "a", "text": "Two."}',
        b'{"key": "b"',
        b'{"author": "olga", "text": "Three."}',
        b"caf\xe9",
        b"Four.",
        b"x" * 200_000,
    ]
    file.write_bytes(b"\n".join(broken))
    ran = echoic("global", "set", "--from", str(file), "--json")
    assert ran.code == 3
    where = {reason["where"] for reason in ran.json["data"]["reasons"]}
    assert where >= {"line 2", "line 3", "line 4", "line 5", "line 7"}
    assert len(ran.err) < 5000
    assert sorted(texts(echoic)) == ["Four.", "One."]


@pytest.mark.parametrize(
    "words",
    [
        ["hours"],
        [],
        ["hours", "9 to 17", "--from", "-"],
        ["--from", "nowhere.txt"],
        ["--from", "-", "--context", "c"],
    ],
)
def test_what_cannot_be_meant_changes_nothing(echoic, words):
    assert echoic("global", "set", *words).code == 64
    assert echoic("global").code == 1


def test_a_deployment_has_its_own(echoic):
    echoic("global", "set", "opening_hours", HOURS, "--deployment", "acme")
    assert texts(echoic, "--deployment", "acme") == [HOURS]
    assert echoic("global").code == 1
