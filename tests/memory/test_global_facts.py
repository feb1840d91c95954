"""What an operator writes everyone of the deployment knows, and nobody else; edited, filled in again, withdrawn."""

from __future__ import annotations

from dataclasses import replace

import pytest

import echoic
from echoic import InvalidInput
from echoic.memory.global_facts import GlobalFact
from echoic.memory.proposals import put_proposal
from echoic.memory.records import memory_id

HOURS = "The store is open from 9 to 17."
EARLY = "The store is open from 7 to 12."
CONTACT = "Call the bakery on +44 20 7946 0018 or write to orders@bakery.example."


@pytest.fixture
async def auto(url):
    async with echoic.open(url, embedder="lexical", global_writes="auto") as service:
        yield service


async def known(service, deployment="default"):
    return [(m.key, m.text) for m in await service.global_facts(deployment).list()]


async def test_what_an_operator_writes_everyone_of_the_deployment_knows_as_it_stands(memory):
    kept = await memory.global_facts().set("contact", CONTACT, by="olga")
    assert (kept.text, kept.visibility, kept.reason, kept.author) == (CONTACT, "global", "operator", None)
    assert (await memory.user("bob").get("contact")).text == CONTACT
    assert [hit.text for hit in await memory.user("eva").query("how do I call the bakery?")] == [CONTACT]
    assert await memory.user("eva", deployment="other").get("contact") is None
    assert await known(memory, "other") == []
    (decided,) = await memory.proposals().decisions()
    assert (decided.what, decided.key, decided.text, decided.by) == ("written", "contact", CONTACT, "olga")


async def test_setting_again_edits_and_keeps_the_earlier_wording_as_history(memory):
    facts = memory.global_facts()
    first = await facts.set("opening_hours", HOURS)
    assert await facts.set("opening_hours", HOURS) == first
    assert len(await memory.proposals().decisions()) == 1
    second = await facts.set("opening_hours", EARLY)
    assert second.supersedes == first.id
    assert await known(memory) == [("opening_hours", EARLY)]
    assert (await memory.user("bob").get("opening_hours")).text == EARLY


async def test_an_operator_ends_what_callers_made_global_and_has_the_last_word(auto):
    lie = "The store is closed on Saturdays and Sundays."
    assert (await auto.user("mallory").set("opening_hours", lie)).visibility == "global"
    await auto.global_facts().set("opening_hours", HOURS)
    assert await known(auto) == [("opening_hours", HOURS)]
    for name in ("mallory", "bob"):
        assert (await auto.user(name).get("opening_hours")).text == HOURS
    assert (await auto.user("eve").set("opening_hours", lie)).visibility == "proposed"
    assert await known(auto) == [("opening_hours", HOURS)]
    assert lie not in (await auto.user("bob").brief("when is the store open?")).text


async def test_filling_in_the_same_facts_twice_changes_nothing(memory):
    facts = [
        GlobalFact(text=HOURS, key="opening_hours"),
        *(GlobalFact(text=f"Article {n} costs {n} euros.") for n in range(1, 240)),
        GlobalFact(text="Children swim free.", category="decision", context="on Sundays"),
    ]
    filled = await memory.global_facts().fill(facts, by="olga")
    assert (filled.new, filled.changed, filled.unchanged) == (241, 0, 0)
    before = await memory.global_facts().list()
    again = await memory.global_facts().fill(facts)
    assert (again.new, again.changed, again.unchanged) == (0, 0, 241)
    assert list(again.memories) == list(filled.memories)
    assert await memory.global_facts().list() == before
    assert len(await memory.proposals().decisions()) == 241
    edited = await memory.global_facts().fill([GlobalFact(text=EARLY, key="opening_hours"), *facts[1:]])
    assert (edited.new, edited.changed, edited.unchanged) == (0, 1, 240)
    assert len(await memory.global_facts().list()) == 241


async def test_of_facts_that_cannot_all_be_kept_none_is(memory):
    wrong = [
        [GlobalFact(text=HOURS), GlobalFact(text="")],
        [GlobalFact(text=HOURS, key="hours"), GlobalFact(text=EARLY, key="hours")],
        [GlobalFact(text=HOURS), GlobalFact(text=EARLY, key="k" * 1000)],
        [GlobalFact(text=HOURS, category="gossip")],
    ]
    for facts in wrong:
        with pytest.raises(InvalidInput):
            await memory.global_facts().fill(facts)
    assert await known(memory) == []
    same = await memory.global_facts().fill([GlobalFact(text=HOURS, key="hours")] * 2)
    assert (same.new, same.unchanged) == (1, 1)


async def test_a_fact_without_a_key_is_withdrawn_and_may_be_written_again(memory):
    (fact,) = (await memory.global_facts().fill([GlobalFact(text=HOURS)])).memories
    assert [hit.text for hit in await memory.user("bob").query("when is the store open?")] == [HOURS]
    await memory.global_facts().withdraw(fact.id, by="omar")
    assert await memory.user("bob").query("when is the store open?", include_past=True) == []
    with pytest.raises(InvalidInput, match="no global fact"):
        await memory.global_facts().withdraw(fact.id)
    assert (await memory.global_facts().fill([GlobalFact(text=HOURS)])).new == 1
    assert await known(memory) == [(None, HOURS)]
    assert [d.what for d in await memory.proposals().decisions()] == ["written", "withdrawn", "written"]


async def test_a_withdrawn_fact_leaves_no_earlier_wording_behind(memory):
    facts = memory.global_facts()
    await facts.set("opening_hours", HOURS)
    edited = await facts.set("opening_hours", EARLY)
    await facts.withdraw(edited.id)
    bob = memory.user("bob")
    asked = "what were the opening hours before?"
    assert await bob.query(asked, include_past=True) == []
    assert await bob.query("when is the store open?", include_past=True) == []
    said = (await bob.brief(asked)).text
    assert "9 to 17" not in said
    assert "7 to 12" not in said
    assert await known(memory) == []
    assert (await facts.set("opening_hours", HOURS)).supersedes is None


async def test_a_fact_whose_author_wants_nothing_kept_is_withdrawn(auto):
    mallory = auto.user("mallory")
    assert (await mallory.set("opening_hours", HOURS)).visibility == "global"
    (fact,) = await auto.global_facts().list()
    await mallory.set_consent("never")
    await auto.global_facts().withdraw(fact.id)
    assert await known(auto) == []
    assert await mallory.get("opening_hours") is None


async def test_a_fact_whose_author_is_at_their_quota_is_withdrawn(url):
    async with echoic.open(
        url, embedder="lexical", global_writes="auto", quota=echoic.Quota(user_memories=1)
    ) as service:
        mallory = service.user("mallory")
        assert (await mallory.set("opening_hours", HOURS)).visibility == "global"
        await mallory.set("home", "Oslo")
        (fact,) = await service.global_facts().list()
        await service.global_facts().withdraw(fact.id)
        assert await known(service) == []
        assert [one.text for one in await mallory.facts()] == ["Oslo"]


async def approved(service, text):
    """Approve a caller's value of a key that operators decide about."""
    if not await known(service):
        await service.global_facts().set("opening_hours", "The store is open from 1 to 2.")
    await service.user("ana").set("opening_hours", text)
    (waiting,) = await service.proposals().list()
    return await service.proposals().approve(waiting.id, by="omar")


async def test_an_operator_who_writes_what_was_approved_has_the_last_word(auto):
    await approved(auto, HOURS)
    before = len(await auto.proposals().decisions())
    fact = GlobalFact(text=HOURS, key="opening_hours")
    assert (await auto.global_facts().fill([fact, fact], by="olga")).unchanged == 2
    await auto.global_facts().set("opening_hours", HOURS)
    decided = (await auto.proposals().decisions())[before:]
    assert [(d.what, d.by) for d in decided] == [("written", "olga")]
    assert (await auto.user("eve").set("opening_hours", EARLY)).visibility == "proposed"


async def test_withdrawing_what_a_caller_made_global_leaves_what_was_approved(auto):
    fact = await approved(auto, HOURS)
    lie = await auto.user("mallory").set("opening_hours", EARLY)
    assert lie.visibility == "global"
    await auto.global_facts().withdraw(lie.id)
    assert await auto.global_facts().list() == [fact]


async def test_what_is_approved_ends_what_callers_made_global_by_themselves(auto):
    await auto.user("ana").set("opening_hours", EARLY)
    fact = (await auto.global_facts().list())[0]
    assert fact.author == "ana"
    proposal = replace(fact, id=memory_id("ben", "opening_hours"), author="ben", text=HOURS)
    proposal = replace(proposal, visibility="proposed")
    await auto._parts.store.write(auto.user("ben").scope.everyone, [put_proposal(proposal)])
    (waiting,) = await auto.proposals().list()
    await auto.proposals().approve(waiting.id)
    assert await known(auto) == [("opening_hours", HOURS)]


async def test_nothing_a_user_keeps_is_touched_and_their_own_comes_first(memory):
    ana = memory.user("ana")
    await ana.set("opening_hours", "I work from 8 to 12", visibility="private")
    await memory.global_facts().set("opening_hours", HOURS)
    assert (await ana.get("opening_hours")).text == "I work from 8 to 12"
    await ana.forget()
    assert (await ana.get("opening_hours")).text == HOURS


async def test_secrets_are_masked_in_what_an_operator_writes(memory):
    kept = await memory.global_facts().set("payment", "Our card is 4111 1111 1111 1111.")
    assert "4111" not in kept.text


def test_the_verbs_are_there_without_async(tmp_path):
    with echoic.sync.open(f"sqlite:///{tmp_path / 'e.db'}", embedder="lexical") as memory:
        facts = memory.global_facts()
        assert facts.set("opening_hours", HOURS).text == HOURS
        assert [fact.text for fact in facts.list()] == [HOURS]
