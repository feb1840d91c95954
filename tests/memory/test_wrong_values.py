"""A value of the wrong kind is refused by name, before anything is read or written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

import echoic
from echoic import InvalidInput, Turn
from echoic.checks import MAX_KEY_CHARACTERS
from echoic.errors import WriteConflict
from echoic.types import checked_time


@pytest.mark.parametrize("url", ["memory://"])  # it is refused before any store is asked
class TestOfTheUser:
    @pytest.mark.parametrize("late", ["5", 0, -1, float("nan"), [5]])
    async def test_a_deadline_that_is_no_number_above_0(self, memory, late):
        ana = memory.user("ana")
        with pytest.raises(InvalidInput, match="deadline_ms"):
            await ana.recall("where do I live", deadline_ms=late)
        async with ana.listen() as listening:
            with pytest.raises(InvalidInput, match="deadline_ms"):
                await listening.final("where do I live", deadline_ms=late)

    @pytest.mark.parametrize("question", ["where do I live", "where was I last tuesday"])
    async def test_a_time_zone_that_is_none(self, memory, question):
        with pytest.raises(InvalidInput, match="timezone"):
            await memory.user("ana").recall(question, timezone=5)

    @pytest.mark.parametrize("tokens", ["x", None, 2.5, True, 0])
    async def test_a_budget_that_is_no_whole_number(self, memory, tokens):
        ana = memory.user("ana")
        with pytest.raises(InvalidInput, match="budget_tokens"):
            await ana.brief("where do I live", budget_tokens=tokens)
        with pytest.raises(InvalidInput, match="budget_tokens"):
            await ana.block(budget_tokens=tokens)

    async def test_words_that_are_none(self, memory):
        ana = memory.user("ana")
        with pytest.raises(InvalidInput, match="moment"):
            await ana.block(moment=5)
        with pytest.raises(InvalidInput, match="query"):
            await ana.brief(None)
        async with ana.listen() as listening:
            with pytest.raises(InvalidInput, match="partial"):
                listening.partial(None)

    async def test_a_question_without_words_says_what_to_do_about_it(self, memory):
        with pytest.raises(InvalidInput, match="nothing to search for"):
            await memory.user("ana").query(" ")

    @pytest.mark.parametrize("exported", [None, [], "x", 5])
    async def test_what_is_no_export(self, memory, exported):
        with pytest.raises(InvalidInput, match="not an export"):
            await memory.user("ana").restore(exported)
        assert await memory.users() == []


WRONG_IN_EXPORTS = [
    ("memories", {"id": 7}),
    ("memories", {"id": [7]}),
    ("memories", {"key": 7}),
    ("memories", {"key": "k" * 300}),
    ("memories", {"text": ""}),
    ("memories", {"text": 7}),
    ("memories", {"text": "half a \ud800 character"}),
    ("memories", {"text": "a \0"}),
    ("memories", {"text": "x" * 40_000}),
    ("memories", {"statement": 5}),
    ("memories", {"author": 5}),
    ("memories", {"category": ["fact"]}),
    ("memories", {"visibility": "everywhere"}),
    ("memories", {"deleted": "perhaps"}),
    ("memories", {"source": "t1"}),
    ("memories", {"times_said": "twice"}),
    ("memories", {"times_said": float("nan")}),
    ("memories", {"number": "7"}),
    ("memories", {"number": True}),
    ("memories", {"valid_from": "2026-01-01T00:00:00"}),
    ("conversations", {"id": 5}),
    ("conversations", {"status": "over"}),
    ("conversations", {"started_at": "2026-01-01T00:00:00"}),
    ("conversations", {"read": ["t1"]}),
]


@pytest.mark.parametrize(("part", "wrong"), WRONG_IN_EXPORTS)
@pytest.mark.parametrize("url", ["memory://"])  # it is refused before any store is asked
async def test_an_export_with_a_wrong_value_is_refused_as_a_whole(memory, part, wrong):
    ana = memory.user("ana")
    await ana.set("home", "Rome")
    await (await ana.conversation("call")).append(Turn(speaker="user", text="Hello.", id="t1"))
    exported = await ana.export()
    exported[part][0].update(wrong)
    with pytest.raises(InvalidInput, match="cannot be read"):
        await memory.user("bob").restore(exported)
    assert await memory.users() == ["ana"]


WHERE = [
    (("memories", 1, "text"), "bad\0secret", r"memories\[1\]: the text of memory .* holds a NUL"),
    (("memories", 1, "context"), "secret\ud800", r"memories\[1\]: .*surrogate"),
    (("memories", 1, "valid_from"), "secret", r"memories\[1\]: .*ValueError"),
    (("memories", 1, "source"), 5, r"memories\[1\]: source"),
    (("memories", 1), "secret", r"memories\[1\]: it must be an object, not str"),
    (("memories",), {"secret": 1}, "memories must be a list, not dict"),
    (("conversations", 0, "started_at"), 5, r"conversations\[0\]: .*TypeError"),
    (("conversations", 0, "turns", 2, "text"), "", r"conversations\[0\]\.turns\[2\]: turn text is empty"),
    (("conversations", 0, "turns", 2), {"id": "t3"}, r"conversations\[0\]\.turns\[2\]: it has no 'text'"),
    (
        ("conversations", 0, "results"),
        [{"id": "r", "name": "n"}],
        r"conversations\[0\]\.results\[0\]: it has no",
    ),
    (("directives",), {"free": ["secret"]}, "directives: free directives must be an object"),
    (("directives_for",), [{"id": "secret", "pacing": "slow"}], r"directives_for\[0\]: "),
    (("items",), [{"kind": "k", "name": "n"}], r"items\[0\]: it has no"),
]


@pytest.mark.parametrize(("path", "wrong", "why"), WHERE)
@pytest.mark.parametrize("url", ["memory://"])  # it is refused before any store is asked
async def test_what_is_wrong_in_an_export_is_named_by_its_place_and_not_quoted(memory, path, wrong, why):
    ana = memory.user("ana")
    for key in ("home", "work"):
        await ana.set(key, "Rome")
    await (await ana.conversation("call")).append(*(Turn(speaker="user", text=f"{n}.") for n in range(3)))
    exported = await ana.export()
    *outer, last = path
    holder = exported
    for step in outer:
        holder = holder[step]
    holder[last] = wrong
    with pytest.raises(InvalidInput, match=why) as refused:
        await memory.user("bob").restore(exported)
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is None
    assert await memory.users() == ["ana"]


RESULT = {"id": "r", "name": "look_up", "value": 1, "at": "2026-01-01T00:00:00+00:00"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "n" * 300},
        {"name": ["n"]},
        {"at": "2026-01-01T00:00:00"},
        {"at": "0001-01-01T00:00:00+05:00"},
        {"at": 5},
    ],
)
@pytest.mark.parametrize("url", ["memory://"])  # it is refused before any store is asked
async def test_a_result_with_a_wrong_value_is_refused(memory, wrong):
    ana = memory.user("ana")
    await (await ana.conversation("call")).append(Turn(speaker="user", text="Hello.", id="t1"))
    exported = await ana.export()
    exported["conversations"][0]["results"] = [{**RESULT, **wrong}]
    with pytest.raises(InvalidInput, match="cannot be read"):
        await memory.user("bob").restore(exported)
    exported["conversations"][0]["results"] = [RESULT]
    await memory.user("bob").restore(exported)
    assert len((await memory.user("bob").task("call")).messages) == 2


LONG = "n" * MAX_KEY_CHARACTERS
NOT_IDS = [
    5,
    None,
    ["a"],
    {},
    "",
    "a",
    "a\0",
    "agent:",
    "agent:a\0",
    "agent:\ud800",
    f"agent:{LONG}n",
    "user:a",
]


@pytest.mark.parametrize("wrong", NOT_IDS)
@pytest.mark.parametrize("url", ["memory://"])  # it is refused before any store is asked
async def test_directives_for_nothing_that_can_be_are_refused(url, wrong):
    exported = {"format": "echoic-export", "version": 1, "user": "ana", "memories": [], "conversations": []}
    for_agent = {"id": f"agent:{LONG}", "pacing": "slow"}
    async with echoic.open(url, embedder="lexical") as memory:
        with pytest.raises(InvalidInput, match="cannot be read"):
            await memory.user("ana").restore(
                {**exported, "directives_for": [for_agent, {"id": wrong, "pacing": "slow"}]}
            )
        assert await memory.users() == []
        await memory.user("ana").restore({**exported, "directives_for": [for_agent]})
        assert (await memory.user("ana").directives(for_agent=LONG)).pacing == "slow"
    if url != "memory://":
        async with echoic.open(url, embedder="lexical") as memory:
            assert (await memory.user("ana").directives(for_agent=LONG)).pacing == "slow"


async def test_directives_for_a_conversation_are_forgotten_with_it_whatever_key_they_came_under(memory):
    ana = memory.user("ana")
    await ana.conversation(LONG)
    await ana.set_directives(for_conversation=LONG, pacing="slow")
    await ana.set_directives(pacing="fast")
    exported = await ana.export()
    exported["directives"]["key"] = 5
    exported["directives_for"][0]["key"] = "another"
    bob = memory.user("bob")
    await bob.restore(exported)
    assert await bob.export() == {**await ana.export(), "user": "bob"}
    await bob.forget(conversation=LONG)
    assert (await bob.export())["directives_for"] == []


async def test_an_import_that_conflicts_with_nothing_that_is_there_ends(memory, monkeypatch):
    ana, bob = memory.user("ana"), memory.user("bob")
    await ana.set("home", "Rome")
    exported = await ana.export()

    written = []

    async def conflicts(*what):
        written.append(what)
        assert len(written) < 9, "it is repeated for ever"
        raise WriteConflict("as if the store had it under another name")

    monkeypatch.setattr(bob.backing_store, "write", conflicts)
    with pytest.raises(WriteConflict):
        await bob.restore(exported)


class TestOfAConversation:
    @pytest.mark.parametrize("said", ["hello", None, {"speaker": "user", "text": "x"}, []])
    async def test_what_is_no_turn(self, memory, said):
        call = await memory.user("ana").conversation("call")
        with pytest.raises(InvalidInput, match="append takes Turn objects"):
            await call.append(Turn(speaker="user", text="My name is Ana."), said)
        assert await call.turns() == []

    async def test_heard_words_that_are_none(self, memory):
        call = await memory.user("ana").conversation("call")
        await call.append(Turn(speaker="agent", text="Hello."))
        with pytest.raises(InvalidInput, match="heard"):
            await call.truncate(5)

    @pytest.mark.parametrize("wrong", [{"confidence": "0.5"}, {"heard": False}, {"heard": 0}])
    def test_a_turn_of_wrong_values(self, wrong):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            Turn(speaker="agent", text="Hello.", **wrong)

    def test_a_turn_without_words_says_what_to_do_about_it(self):
        with pytest.raises(InvalidInput, match="no turn to keep"):
            Turn(speaker="user", text="")


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
    ],
)
def test_a_moment_that_is_none_in_utc(moment):
    with pytest.raises(InvalidInput, match="years 1 to 9999"):
        checked_time(moment, "said_at")
    assert checked_time(moment.replace(tzinfo=UTC), "said_at")


async def test_words_of_a_trade_given_as_one_text(memory):
    with pytest.raises(InvalidInput, match="several texts"):
        memory.experience("films", words="giallo")
