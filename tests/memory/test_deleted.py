"""What was deleted answers no question about the past; what was corrected or changed does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from echoic.cli.output import state_of
from echoic.memory.keyless import KeylessAgent
from echoic.memory.records import MEMORY, scan_all
from echoic.stores.base import Put
from memory.test_forgetting import say

LIVED = "Where did I live before?"


async def told_of(user, question=LIVED):
    """Everything that a search, a prompt or an agent tells when the past is asked for."""
    told = []
    for past in (False, True):
        found = await user.query(question, limit=50, include_past=past, min_relevance=0)
        told += [str(hit.apart()) for hit in found]
    told.append((await user.brief(question)).text)
    told.append((await user.block(agent="a", moment=question)).text)
    async with user.listen(limit=20) as listening:
        listening.partial(question)
        told.append(str((await listening.final(question)).hits))
    call = await user.conversation("asked", agent="keyless")
    told.append((await KeylessAgent(user).reply(call, question)).text)
    await user.forget(conversation="asked")
    return "\n".join(told)


def deleted_in(memories):
    return {memory.text: memory.deleted for memory in memories}


async def moved(user):
    """One who lived in Leeds, then in York."""
    await say(user, "monday", "user: I live in Leeds.")
    return await say(user, "tuesday", "user: I moved to York last week.")


@pytest.mark.parametrize("how", ["key", "memory", "turn", "slot", "value", "that", "again"])
async def test_what_was_deleted_answers_no_question_about_the_past_and_stays_in_history(memory, how):
    ana = memory.user("ana")
    call = await say(ana, "monday", "user: I live in Leeds.")
    assert "Leeds" in await told_of(ana, "Where do I live?")
    home = await ana.get("home")
    if how == "key":
        await ana.delete("home")
    elif how == "memory":
        await ana.delete(id=home.id)
    elif how == "turn":
        await ana.delete(id=(await call.turns())[0].id)
    else:
        words = {
            "slot": "Delete where I live.",
            "value": "Forget that I live in Leeds.",
            "that": "Forget that.",
        }
        await say(ana, "monday", f"user: {words.get(how, words['slot'])}")
    if how == "again":
        await ana.set("home", "Bath")
    assert "Leeds" not in await told_of(ana)
    assert deleted_in(await ana.history("home"))["Leeds"]
    assert deleted_in(await ana.past()) == {"Leeds": True}
    assert state_of((await ana.past())[0]) == "deleted"
    if how == "again":
        await ana.set("home", "Rome")
        told = await told_of(ana)
        assert "Bath" in told, "it held until it changed"
        assert "Leeds" not in told


async def test_a_deleted_key_tells_none_of_its_versions_and_a_deleted_memory_leaves_the_others(memory):
    ana, bob, cleo = (memory.user(name) for name in ("ana", "bob", "cleo"))
    for user in (ana, bob, cleo):
        await moved(user)
    await ana.delete("home")
    told = await told_of(ana)
    assert "Leeds" not in told
    assert "York" not in told
    assert [state_of(one) for one in await ana.history("home")] == ["deleted", "deleted"]
    await say(bob, "tuesday", "user: Delete where I live.")
    assert "York" not in await told_of(bob)
    assert deleted_in(await bob.history("home")) == {"Leeds": False, "York": True}
    await cleo.delete(id=(await cleo.get("home")).id)
    told = await told_of(cleo)
    assert "Leeds" in told
    assert "York" not in told


async def test_one_version_that_no_longer_holds_can_be_deleted_too(memory):
    ana = memory.user("ana")
    await moved(ana)
    old, new = await ana.history("home")
    await ana.delete(id=old.id)
    told = await told_of(ana)
    assert "Leeds" not in told
    assert "York" in told
    assert (await ana.get("home")).id == new.id


@pytest.mark.parametrize(
    ("said", "then", "asked", "held"),
    [
        ("I live in Leeds.", "I moved to York last week.", LIVED, "Leeds"),
        ("I live in Leeds.", "I live in York now.", LIVED, "Leeds"),
        ("I live in Leeds.", "I've just moved to York.", LIVED, "Leeds"),
        ("I live in Leeds.", "I live in York these days.", LIVED, "Leeds"),
        ("I live in Leeds.", "I don't live in Leeds any more.", LIVED, "Leeds"),
        ("I live in Leeds.", "I no longer live in Leeds.", LIVED, "Leeds"),
        ("I live in Leeds.", "Sorry, that's where we used to be.", LIVED, "Leeds"),
        ("I work at Tesco.", "I no longer work at Tesco.", "Where did I work before?", "Tesco"),
        ("I work at Tesco.", "I quit my job at Tesco.", "Where did I work before?", "Tesco"),
        ("I work at Tesco.", "I work at Aldi now.", "Where did I work before?", "Tesco"),
        ("I work at Tesco.", "I started at Aldi in May.", "Where did I work before?", "Tesco"),
        ("I'm vegan.", "I'm vegetarian now.", "What was my diet before?", "vegan"),
        ("I'm vegan.", "I'm not vegan any more.", "What was my diet before?", "vegan"),
        ("My name is Ann Hart.", "My name is Ann Byrne now.", "What was my name before?", "Ann Hart"),
        ("My name is Tom.", "No, it's Tom Hart.", "What was my name before?", "Tom"),
        (
            "My number is 0163 2960 123.",
            "Sorry, 0163 2960 124.",
            "What was my phone number before?",
            "01632960123",
        ),
    ],
)
async def test_what_held_until_it_changed_still_answers(memory, said, then, asked, held):
    ana = memory.user("ana")
    await say(ana, "monday", f"user: {said}", f"user: {then}")
    hits = await ana.query(asked, limit=50, include_past=True, min_relevance=0)
    assert held in [memory.text for hit in hits for memory in hit.memories]
    assert not any(deleted_in(await ana.past()).values())


@pytest.mark.parametrize(
    ("calls", "asked", "told"),
    [
        (
            ["My boss Marta is bullying me.", "My boss is called Marta.|I mean Paul."],
            "Who is bullying me?",
            "My boss Marta is bullying me.",
        ),
        (
            ["When I lived in Leeds I had a car accident.", "I live in Leeds.|Not Leeds, York."],
            "When did I have an accident?",
            "When I lived in Leeds I had a car accident.",
        ),
        (
            ["I live in Leeds with my daughter who's disabled.|I mean York."],
            "Who do I live with?",
            "I live in Leeds with my daughter who's disabled.",
        ),
        (
            ["I'm allergic to nuts.", "I'm allergic to nuts.|I mean eggs."],
            "What was I allergic to before?",
            "nuts",
        ),
        (["I live in Leeds.", "I moved to York.", "I live in Leeds.|Scratch that."], LIVED, "Leeds"),
        (["I live in Leeds.", "I live in Leeds.|Scratch that."], LIVED, "Leeds"),
        (["I work at Tesco.|That's my husband's, not mine."], "Where did I work before?", "Tesco"),
        (["My name is Jon.|No, it's John, not Jon."], "What was my name before?", "Jon"),
    ],
)
async def test_a_correction_deletes_nothing(memory, calls, asked, told):
    ana = memory.user("ana")
    for number, said in enumerate(calls):
        for turn in said.split("|"):
            await say(ana, str(number), f"user: {turn}")
    hits = await ana.query(asked, limit=50, include_past=True, min_relevance=0)
    assert told in {hit.text for hit in hits}


async def test_a_slip_of_the_tongue_does_not_undo_what_an_earlier_call_told(memory):
    ana = memory.user("ana")
    await say(ana, "monday", "user: I live in Leeds.")
    await say(ana, "tuesday", "user: I live in Leeds.", "user: Not Leeds, York.")
    assert (await ana.get("home")).text == "York"
    assert "Leeds" in await told_of(ana)
    await say(ana, "friday", "user: I live in Leeds.", "user: Not Leeds, Bath.")
    assert (await ana.get("home")).text == "Bath"
    assert "Leeds" in await told_of(ana), "it held until Tuesday"


async def test_what_is_deleted_while_a_call_goes_on_is_not_told_in_it_and_can_be_said_again(memory):
    ana = memory.user("ana")
    call = await say(ana, "monday", "user: I live in Leeds.", "agent: Leeds, got it.")
    await ana.delete("home")
    await say(ana, "monday", "user: I work at Tesco.", "agent: Right.")
    assert "Leeds" not in await told_of(ana)
    await say(ana, "monday", "user: I live in Leeds.")
    assert (await ana.get("home")).text == "Leeds"
    await say(ana, "tuesday", "user: I moved to York last week.")
    assert "Leeds" in await told_of(ana), "it was said again after it was deleted"
    assert [one.deleted for one in await ana.history("home")] == [True, False, False]
    assert len(await call.turns()) == 5


async def test_what_holds_again_is_deleted_no_longer(memory):
    ana = memory.user("ana")
    await say(ana, "monday", "user: I live in Leeds.")
    await say(ana, "tuesday", "user: I moved to York.", "user: Forget that.")
    assert (await ana.get("home")).text == "Leeds"
    assert not (await ana.get("home")).deleted
    told = await told_of(ana)
    assert "York" not in told
    assert "Leeds" in told


async def test_that_it_was_deleted_goes_with_an_export(memory):
    ana = memory.user("ana")
    await moved(ana)
    await ana.delete("home")
    await say(ana, "friday", "user: I work at Tesco.", "user: That's my husband's, not mine.")
    await ana.set("drink", "tea")
    await ana.set("drink", "cortado")
    exported = await ana.export()
    copy = memory.user("ana", "elsewhere")
    await copy.restore(exported)
    assert await copy.restore(exported) == 0
    assert (await copy.export())["memories"] == exported["memories"]
    assert deleted_in(await copy.past()) == {
        "Leeds": True,
        "York": True,
        "Tesco": False,
        "tea": False,
    }
    assert "Leeds" not in await told_of(copy)
    assert "tea" in await told_of(copy, "What was my drink before?")


async def test_what_an_earlier_version_ended_is_told_as_before_until_it_is_deleted_again(memory):
    ana = memory.user("ana")
    await ana.set("home", "Leeds")
    await ana.delete("home")
    store, (record,) = ana.backing_store, await scan_all(ana.backing_store, ana.scope, MEMORY)
    told = record.data.copy()
    assert told.pop("deleted") is True
    await store.write(ana.scope, [Put.over(record, replace(record, data=told))])
    assert deleted_in(await ana.past()) == {"Leeds": False}
    assert "Leeds" in await told_of(ana)
    await ana.delete(id=record.id)
    assert "Leeds" not in await told_of(ana)


async def test_what_a_user_made_global_and_deleted_is_told_to_nobody(auto):
    ana, bob = auto.user("ana"), auto.user("bob")
    kept = await ana.set("opening_hours", "The store is open from 9 to 17.")
    assert kept.visibility == "global"
    asked = "When was the store open before?"
    await ana.set("opening_hours", "The store is open from 8 to 16.")
    assert "9 to 17" in str(await bob.query(asked, include_past=True))
    await ana.delete("opening_hours")
    for user in (ana, bob):
        told = await told_of(user, asked)
        assert "9 to 17" not in told
        assert "8 to 16" not in told
    assert all(deleted_in(await ana.past()).values())


async def test_a_withdrawn_fact_deletes_nothing_that_callers_said(auto):
    ana, desk = auto.user("ana"), auto.global_facts()
    await ana.set("opening_hours", "The store is open from 9 to 17.")
    fact = await desk.set("opening_hours", "The store is open from 8 to 16.")
    await desk.withdraw(fact.id)
    assert not any(deleted_in(await ana.history("opening_hours")).values())
    hits = await ana.query("When was the store open before?", include_past=True, min_relevance=0)
    assert "The store is open from 9 to 17." in {hit.text for hit in hits}
