"""What operators decide at the command line about what agents learned and what everyone knows."""

from __future__ import annotations

import asyncio

import pytest

import echoic

HOURS = "The store is open from 9 to 17."
LESSON = "Ask for the genre before recommending a movie."


@pytest.fixture
def taught(tmp_path):
    """A store in which a caller taught the agent "films"."""

    async def teach():
        async with echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical") as memory:
            films = memory.experience("films")
            return (await films.add("strategy", LESSON, author=memory.user("ana").scope)).id

    return lambda: asyncio.run(teach())


def rows(ran):
    return [line.split("\t") for line in ran.out.splitlines()]


def test_a_lesson_is_listed_approved_and_withdrawn(echoic, taught):
    assert echoic("lessons").code == 1
    name = taught()
    assert rows(echoic("lessons")) == [[name, "films", "waiting", "1", "strategy", LESSON]]
    assert echoic("lessons", "approve", name, "--by", "olga").code == 0
    assert rows(echoic("lessons", "list"))[0][2] == "approved"
    assert echoic("lessons", "withdraw", name).code == 0
    assert rows(echoic("lessons", "list"))[0][2] == "withdrawn"
    decided = rows(echoic("proposals", "decisions"))
    assert [row[1:] for row in decided] == [
        ["olga", "approved", "lesson", "films", LESSON],
        ["operator", "withdrawn", "lesson", "films", LESSON],
    ]


def test_a_lesson_is_rejected(echoic, taught):
    name = taught()
    assert echoic("lessons", "reject", name).code == 0
    assert echoic("lessons").code == 1
    again = echoic("lessons", "reject", name)
    assert (again.code, again.out) == (64, "")
    assert LESSON not in echoic("proposals", "decisions").out


def test_what_everyone_knows_is_listed_and_withdrawn(echoic):
    assert echoic("global", "list").code == 1
    echoic("set", "opening_hours", HOURS, "--user", "ana")
    proposal = rows(echoic("proposals"))[0][0]
    assert echoic("proposals", "approve", proposal, "--by", "olga").code == 0
    assert echoic("get", "opening_hours", "--user", "bob").out == f"{HOURS}\n"
    published = rows(echoic("global", "list"))
    assert [(row[1], row[2], row[4]) for row in published] == [("opening_hours", HOURS, "approved")]
    assert echoic("global", "withdraw", published[0][0]).code == 0
    assert echoic("get", "opening_hours", "--user", "bob").code == 1
    assert echoic("global", "withdraw", published[0][0]).code == 64
    assert [row[2] for row in rows(echoic("proposals", "decisions"))] == ["approved", "withdrawn"]


def test_a_set_may_be_private_and_says_why(echoic):
    private = echoic("set", "opening_hours", HOURS, "--visibility", "private")
    assert "(private: whoever set it asked for it to be private)" in private.err
    assert echoic("proposals").code == 1
    offered = echoic("set", "opening_hours", HOURS)
    assert "proposed as global: when the business, or a part of it, is open" in offered.err
    assert echoic("set", "opening_hours", HOURS, "--visibility", "global").code == 64


def test_the_deployment_names_what_needs_no_operator(echoic):
    text = "Returns are accepted within 30 days."
    auto = ("--global-writes", "auto")
    assert "proposed" in echoic("set", "return_policy", text, *auto).err
    assert "global" in echoic("set", "return_policy", text, *auto, "--global-kinds", "hours,policy").err
    unknown = echoic("set", "return_policy", text, *auto, ECHOIC_GLOBAL_KINDS="gossip")
    assert unknown.code == 64
    assert "hours, location" in unknown.err
    assert echoic("set", "return_policy", text, "--global-kinds", "hours").code == 64


@pytest.mark.parametrize(
    "words",
    [
        ("set", "pet", "zanzibar giraffe " * 4000),
        ("set", "zanzibar giraffe " * 400, "a goat"),
        ("remember", "zanzibar giraffe " * 4000),
        ("query", "zanzibar giraffe " * 4000),
        ("set", "pet", "zanzibar giraffe", "--category", "zanzibar"),
        ("set", "pet", "\n" * 40_000),
    ],
    ids=["value", "key", "sentence", "question", "category", "newlines"],
)
def test_a_refusal_is_short_and_repeats_nothing(echoic, words):
    for flags in ((), ("--json",)):
        refused = echoic(*words, *flags)
        assert refused.code == 64
        assert len(refused.err) + len(refused.out) < 2000
        assert "zanzibar giraffe" not in refused.err + refused.out
