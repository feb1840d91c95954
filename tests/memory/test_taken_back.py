"""What was deleted, or never held, answers no question about the past; what held until it changed does."""

from __future__ import annotations

from dataclasses import replace

import pytest

import echoic
from echoic import Turn
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


def why_of(memories):
    return {memory.text: memory.taken_back for memory in memories}


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
    assert why_of(await ana.history("home"))["Leeds"] == "deleted"
    assert why_of(await ana.past()) == {"Leeds": "deleted"}
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
    assert [state_of(one) for one in await ana.history("home")] == ["corrected, deleted", "deleted"]
    await say(bob, "tuesday", "user: Delete where I live.")
    told = await told_of(bob)
    assert "Leeds" not in told
    assert "York" not in told
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
    ("said", "then", "asked", "gone"),
    [
        ("I'm allergic to nuts.", "Sorry, not me, my husband.", "What was I allergic to before?", "nuts"),
        ("I work at Tesco.", "That's my husband's, not mine.", "Where did I work before?", "Tesco"),
        ("I live in Leeds.", "Not Leeds, York.", LIVED, "Leeds"),
        ("My name is Jon.", "No, it's John, not Jon.", "What was my name before?", "Jon"),
        ("My dog is called Rex.", "I meant Max.", "What was my dog called before?", "Rex"),
        ("My birthday is the third of May.", "Sorry, the fourth of May.", "When was my birthday?", "May 3"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
async def test_what_was_put_right_never_held(memory, said, then, asked, gone, at_once):
    ana = memory.user("ana")
    call = await ana.conversation("monday")
    turns = [Turn(speaker="user", text=text) for text in (said, then)]
    for together in [turns] if at_once else [[turn] for turn in turns]:
        await call.append(*together)
        await call.learn()
    assert gone not in {memory.text for memory in await ana.facts()}
    hits = await ana.query(asked, limit=50, include_past=True, min_relevance=0)
    assert gone not in [memory.text for hit in hits for memory in hit.memories]
    assert said not in [hit.text for hit in hits]
    assert said in [turn.text for turn in await call.turns()], "the transcript keeps it"
    assert why_of(await ana.past()).get(gone, "mistaken") == "mistaken"


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
    assert set(why_of(await ana.past()).values()) <= {None}


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
    assert [one.taken_back for one in await ana.history("home")] == ["deleted", None, None]
    assert len(await call.turns()) == 5


async def test_what_holds_again_is_taken_back_no_longer(memory):
    ana = memory.user("ana")
    await say(ana, "monday", "user: I live in Leeds.")
    await say(ana, "tuesday", "user: I moved to York.", "user: Forget that.")
    assert (await ana.get("home")).text == "Leeds"
    assert (await ana.get("home")).taken_back is None
    told = await told_of(ana)
    assert "York" not in told
    assert "Leeds" in told


async def test_why_it_ended_goes_with_an_export(memory):
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
    assert why_of(await copy.past()) == {
        "Leeds": "deleted",
        "York": "deleted",
        "Tesco": "mistaken",
        "tea": None,
    }
    assert "Leeds" not in await told_of(copy)
    assert "tea" in await told_of(copy, "What was my drink before?")


async def test_what_an_earlier_version_ended_is_told_as_before_until_it_is_deleted_again(memory):
    ana = memory.user("ana")
    await ana.set("home", "Leeds")
    await ana.delete("home")
    store, (record,) = ana.backing_store, await scan_all(ana.backing_store, ana.scope, MEMORY)
    told = record.data.copy()
    assert told.pop("taken_back") == "deleted"
    await store.write(ana.scope, [Put.over(record, replace(record, data=told))])
    assert why_of(await ana.past()) == {"Leeds": None}
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
    assert set(why_of(await ana.past()).values()) == {"deleted"}


async def test_a_withdrawn_fact_tells_no_value_that_callers_gave_before(auto):
    await auto.user("ana").set("opening_hours", "The store is open from 9 to 17.")
    desk, bob = auto.global_facts(), auto.user("bob")
    fact = await desk.set("opening_hours", "The store is open from 8 to 16.")
    asked = "When was the store open before?"
    assert "9 to 17" in str(await bob.query(asked, include_past=True))
    await desk.withdraw(fact.id)
    told = await told_of(bob, asked)
    assert "9 to 17" not in told
    assert "8 to 16" not in told


async def test_words_that_were_not_believed_are_still_found_as_they_were_said():
    said = "Oh lovely, so now I live in Bristol, apparently."
    async with echoic.open("memory://", embedder="local") as memory:
        ana = memory.user("ana")
        call = await ana.conversation("monday")
        await call.append(Turn(speaker="user", text=said))
        await call.complete()
        assert await memory.settle(60)
        assert await ana.facts() == []
        assert why_of(await ana.past()) == {"Bristol": "mistaken"}
        hits = await ana.query("Where did I live before?", include_past=True, min_relevance=0)
        assert [(hit.text, hit.memory) for hit in hits] == [(said, None)]
