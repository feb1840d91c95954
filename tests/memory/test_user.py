"""What one user's memory promises, on every store."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import echoic
from echoic import InvalidInput, Turn
from echoic.embedding import LexicalEmbedder
from echoic.errors import StoreUnavailable
from echoic.memory import export
from echoic.memory.export import export_scope
from echoic.memory.keyed_memories import KeyedMemories
from echoic.memory.records import Ledger
from echoic.memory.service import MemoryService
from echoic.memory.sharing import Verdict
from echoic.stores import store_from
from echoic.stores.base import Put
from scale import many

HOURS = ("store_hours", "The store is open Monday to Friday, nine to five.")


async def test_what_was_set_is_got_and_found(memory):
    ana = memory.user("ana")
    kept = await ana.set("user_name", "Ana")
    assert kept.visibility == "private"
    assert (await ana.get("user_name")).text == "Ana"
    hits = await ana.query("user name")
    assert hits[0].text == "Ana"
    assert hits[0].memory == kept
    assert hits[0].turn is None
    assert hits[0].ranks
    assert all(rank.rank >= 1 for rank in hits[0].ranks.values())


async def test_nothing_known_is_none_and_empty_not_an_error(memory):
    ana = memory.user("ana")
    assert await ana.get("user_name") is None
    assert await ana.query("what's my name?") == []
    assert await ana.history("user_name") == []
    assert await ana.facts() == []
    assert await ana.recall_conversation("roast chicken") is None
    assert await ana.delete("user_name") is False


async def test_another_user_and_another_deployment_know_nothing(memory):
    await memory.user("ana", deployment="acme").set("secret_plan", "a trip to Zanzibar")
    for other in (memory.user("bob", "acme"), memory.user("ana", "globex"), memory.user("ana")):
        assert await other.get("secret_plan") is None
        assert await other.query("a trip to Zanzibar", limit=1000, include_past=True) == []
        assert await other.facts() == []
        assert (await other.export())["memories"] == []


async def test_setting_again_supersedes_and_history_keeps_both(memory):
    ana = memory.user("ana")
    old = await ana.set("home", "New York")
    new = await ana.set("home", "Boston")
    assert (await ana.get("home")).text == "Boston"
    assert new.supersedes == old.id
    versions = await ana.history("home")
    assert [v.text for v in versions] == ["New York", "Boston"]
    assert versions[0].superseded_by == new.id
    assert versions[0].valid_until == new.valid_from
    assert [m.text for m in await ana.facts()] == ["Boston"]
    assert "New York" not in [hit.text for hit in await ana.query("home New York")]
    past = await ana.query("home New York", include_past=True)
    assert "New York" in [hit.text for hit in past]


async def test_setting_the_same_again_changes_nothing(memory):
    ana = memory.user("ana")
    first = await ana.set("home", "Boston")
    assert await ana.set("home", "Boston") == first
    assert len(await ana.history("home")) == 1


async def test_deleting_takes_back_but_keeps_the_history(memory):
    ana = memory.user("ana")
    await ana.set("home", "Boston")
    assert await ana.delete("home") is True
    assert await ana.delete("home") is False
    assert await ana.get("home") is None
    assert await ana.query("home Boston") == []
    assert [m.text for m in await ana.history("home")] == ["Boston"]
    await ana.set("home", "Boston")
    assert (await ana.get("home")).text == "Boston"
    assert len(await ana.history("home")) == 2


async def test_saying_the_same_sentence_twice_keeps_it_once(memory):
    ana = memory.user("ana")
    first = await ana.remember("Prefers e-mail to phone calls", category="preference")
    assert await ana.remember("Prefers e-mail to phone calls", category="preference") == first
    assert [m.text for m in await ana.facts()] == ["Prefers e-mail to phone calls"]


async def test_twenty_at_once_on_one_key_lose_no_version(memory):
    ana = memory.user("ana")
    await asyncio.gather(*(ana.set("counter", f"value {i}") for i in range(20)))
    versions = await ana.history("counter")
    assert sorted(v.text for v in versions) == sorted(f"value {i}" for i in range(20))
    assert [v.current for v in versions].count(True) == 1
    assert all(a.superseded_by == b.id for a, b in pairwise(versions))


@pytest.mark.parametrize(
    ("key", "value", "names"),
    [
        ("", "x", "key is empty"),
        ("   ", "x", "key is empty"),
        ("k" * 257, "x", "257 characters"),
        ("k", "", "value is empty"),
        ("k", "x" * 32769, "32769 bytes"),
        ("k", "é" * 16385, "32770 bytes"),
        ("k\0", "x", "NUL"),
        ("k", "a\0b", "NUL"),
        ("k", "half \ud800 a character", "surrogate"),
        ("k", 42, "must be a string, not int"),
        (None, "x", "must be a string, not NoneType"),
    ],
)
async def test_what_cannot_be_kept_is_refused_by_name_and_nothing_is_written(memory, key, value, names):
    ana = memory.user("ana")
    with pytest.raises(InvalidInput, match=names):
        await ana.set(key, value)
    assert await ana.facts() == []


@pytest.mark.parametrize("user", ["", "  ", None, "a\0b", "x" * 257, 7])
def test_nobody_gets_in_without_a_name(user):
    service = echoic.open("memory://", embedder="lexical")
    with pytest.raises(InvalidInput):
        service.user(user)
    with pytest.raises(InvalidInput):
        service.user("ana", deployment=user)


async def test_limits_and_deadlines_are_checked(memory):
    ana = memory.user("ana")
    for limit in (0, -1, 1001, 2.5, True, "3"):
        with pytest.raises(InvalidInput, match="limit"):
            await ana.query("x", limit=limit)
    with pytest.raises(InvalidInput, match="deadline_ms"):
        await ana.recall("x", deadline_ms=0)
    with pytest.raises(InvalidInput, match="category"):
        await ana.remember("x", category="gossip")


@pytest.mark.parametrize(
    "text",
    [
        "O'Brien; DROP TABLE records;--",
        "👩‍👩‍👧‍👦 family, 🇮🇱 flag",
        "שלום, אני גר בתל אביב",
        "é and é are not the same bytes",
        "‮backwards‬ and zero\u200bwidth",
        " leading and trailing ",
        '"; {"$gt": ""} %00 \\x00 \n\t',
    ],
)
async def test_any_unicode_comes_back_exactly(memory, text):
    ana = memory.user(text.strip())
    await ana.set(text.strip(), text)
    assert (await ana.get(text.strip())).text == text
    turn = Turn(speaker=text.strip(), text=text, id=text.strip())
    call = await ana.conversation(text.strip(), agent=text.strip())
    await call.append(turn)
    assert (await call.turns())[0].text == text
    assert (await ana.conversations())[0].id == text.strip()


storable = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), min_size=1, max_size=60
)


@settings(
    max_examples=many(60, least=10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(key=storable.filter(str.strip), value=storable.filter(str.strip))
async def test_every_text_round_trips_through_sqlite(tmp_path_factory, key, value):
    path = tmp_path_factory.getbasetemp() / "round.db"
    # a value of the key "pin" would be masked
    async with echoic.open(f"sqlite:///{path}", embedder="lexical", secrets="keep") as memory:
        await memory.user(key).set(key, value)
        assert (await memory.user(key).get(key)).text == value


class TestGlobal:
    async def test_what_is_about_nobody_is_everyones_at_once_when_so_set(self, auto):
        kept = await auto.user("ana").set(*HOURS)
        assert kept.visibility == "global"
        assert (await auto.user("bob").get("store_hours")).text == HOURS[1]
        hits = await auto.user("bob").query("when is the store open?")
        assert hits[0].text == HOURS[1]
        assert await auto.user("bob", "elsewhere").get("store_hours") is None

    async def test_what_is_about_a_person_never_is(self, auto):
        for key, value in [
            ("user_name", "Ana"),
            ("note", "My sister lives in Haifa"),
            ("x", "call me at noon"),
        ]:
            assert (await auto.user("ana").set(key, value)).visibility == "private"
        assert await auto.user("bob").query("Ana sister Haifa noon") == []

    async def test_personal_data_is_taken_out_first(self, auto):
        text = "The store is open nine to five, questions to desk@acme.example or +1 212 555 2368."
        kept = await auto.user("ana").set("store_hours", text)
        seen = await auto.user("bob").get("store_hours")
        if kept.visibility == "global":
            assert "[EMAIL]" in seen.text
            assert "[PHONE]" in seen.text
            assert "acme.example" not in seen.text
        else:
            assert seen is None

    async def test_the_users_own_word_comes_before_everyones(self, auto):
        await auto.user("ana").set(*HOURS)
        bob = auto.user("bob")
        await bob.set("store_hours", "I go there on my way home at six")
        assert (await bob.get("store_hours")).text.startswith("I go")
        assert (await auto.user("carol").get("store_hours")).text == HOURS[1]

    async def test_its_author_finds_and_takes_it_back_however_many_said_so_since(self, auto):
        users = [auto.user(f"user-{number}") for number in range(66)]
        for user in users:
            assert (await user.set(*HOURS)).visibility == "global"
        assert await users[0].delete("store_hours")
        assert await users[0].facts() == []
        assert (await users[0].set(*HOURS)).visibility == "global"
        assert [len(await users[number].history("store_hours")) for number in (0, 1)] == [2, 1]

    async def test_nobody_changes_or_deletes_anothers(self, auto):
        await auto.user("ana").set(*HOURS)
        bob = auto.user("bob")
        assert await bob.delete("store_hours") is False
        await bob.set("store_hours", "The store is closed on all days.")
        await bob.forget()
        assert (await auto.user("carol").get("store_hours")).text == HOURS[1]
        assert await auto.user("ana").delete("store_hours") is True
        assert await auto.user("carol").get("store_hours") is None

    async def test_a_proposal_is_its_authors_until_approved(self, memory):
        ana, bob = memory.user("ana"), memory.user("bob")
        assert (await ana.set(*HOURS)).visibility == "proposed"
        assert (await ana.get("store_hours")).text == HOURS[1]
        assert await bob.get("store_hours") is None
        assert await bob.query("when is the store open") == []
        waiting = await memory.proposals().list()
        assert [p.text for p in waiting] == [HOURS[1]]
        approved = await memory.proposals().approve(waiting[0].id)
        assert approved.author is None
        assert (await bob.get("store_hours")).text == HOURS[1]
        assert (await ana.get("store_hours")).visibility == "private"
        assert await memory.proposals().list() == []
        with pytest.raises(InvalidInput, match="no proposal"):
            await memory.proposals().approve(waiting[0].id)
        assert await bob.delete("store_hours") is False

    async def test_a_rejected_or_withdrawn_proposal_is_gone(self, memory):
        ana = memory.user("ana")
        await ana.set(*HOURS)
        await memory.proposals().reject((await memory.proposals().list())[0].id)
        assert (await ana.get("store_hours")).text == HOURS[1]
        await ana.set("store_policy", "Returns are accepted within thirty days.")
        await ana.delete("store_policy")
        assert await memory.proposals().list() == []

    @pytest.mark.parametrize("decided", ["approve", "reject"])
    async def test_a_decision_is_about_the_wording_that_was_listed(self, memory, decided):
        ana = memory.user("ana")
        await ana.set(*HOURS)
        (listed,) = await memory.proposals().list()
        await ana.set("store_hours", "The store is open all night.")
        with pytest.raises(InvalidInput, match="changed by its author"):
            await getattr(memory.proposals(), decided)(listed.id)
        assert await memory.user("bob").get("store_hours") is None
        (changed,) = await memory.proposals().list()
        assert changed.text == "The store is open all night."
        await ana.set(*HOURS)  # what was read is what stands again
        await getattr(memory.proposals(), decided)(listed.id)
        assert await memory.proposals().list() == []

    @pytest.mark.parametrize("lost", ["the write", "its answer"])
    @pytest.mark.parametrize("decided", ["approve", "reject"])
    async def test_a_decision_that_fails_half_way_is_finished_by_deciding_again_or_listing(
        self, memory, monkeypatch, decided, lost
    ):
        ana, proposals = memory.user("ana"), memory.proposals()
        changing = {verb: getattr(ana.backing_store, verb) for verb in ("write", "erase")}
        left = 0

        def failing(verb):
            async def change(*given):
                nonlocal left
                left -= 1
                if left == 0 and lost == "the write":
                    raise StoreUnavailable("scripted")
                done = await changing[verb](*given)
                if left == 0:
                    raise StoreUnavailable("scripted")
                return done

            return change

        for at, again in product((1, 2, 3), (True, False)):
            await ana.set(*HOURS)
            await memory.settle()
            (listed,) = await proposals.list()
            left = at
            with monkeypatch.context() as faulty:
                for verb in changing:
                    faulty.setattr(ana.backing_store, verb, failing(verb))
                with pytest.raises(StoreUnavailable):
                    await getattr(proposals, decided)(listed.id)
            if again:
                with contextlib.suppress(InvalidInput):  # all was done, but for the answer
                    await getattr(proposals, decided)(listed.id)
            waiting = await proposals.list()
            assert (await ana.get("store_hours")).visibility == ("proposed" if waiting else "private")
            assert bool(waiting) == (at == 1 and lost == "the write" and not again)
            for one in waiting:
                await getattr(proposals, decided)(one.id)
            assert (await ana.get("store_hours")).visibility == "private"
        everyones = await memory.user("bob").get("store_hours")
        assert (everyones is not None) == (decided == "approve")

    @pytest.mark.parametrize("decided", ["approve", "reject"])
    async def test_what_its_author_proposes_while_a_decision_is_finished_goes_on_waiting(
        self, memory, monkeypatch, decided
    ):
        ana, proposals = memory.user("ana"), memory.proposals()
        await ana.set(*HOURS)
        await memory.settle()
        (listed,) = await proposals.list()
        write = ana.backing_store.write

        async def after_she_changed_it(scope, changes):
            if scope == ana.scope:
                monkeypatch.setattr(ana.backing_store, "write", write)
                await ana.set("store_hours", "The store is open all night.")
            await write(scope, changes)

        monkeypatch.setattr(ana.backing_store, "write", after_she_changed_it)
        await getattr(proposals, decided)(listed.id)
        assert [one.text for one in await proposals.list()] == ["The store is open all night."]
        assert (await ana.get("store_hours")).visibility == "proposed"

    @pytest.mark.parametrize("decided", ["approve", "reject"])
    async def test_what_is_decided_before_its_author_has_a_copy_of_it_is_not_proposed_for_good(
        self, memory, monkeypatch, decided
    ):
        ana, proposals = memory.user("ana"), memory.proposals()
        write = ana.backing_store.write

        async def after_it_was_decided_about(scope, changes):
            if scope == ana.scope:
                monkeypatch.setattr(ana.backing_store, "write", write)
                (listed,) = await proposals.list()
                await getattr(proposals, decided)(listed.id)
            await write(scope, changes)

        monkeypatch.setattr(ana.backing_store, "write", after_it_was_decided_about)
        assert (await ana.set(*HOURS)).visibility == "private"
        assert (await ana.get("store_hours")).visibility == "private"
        assert await proposals.list() == []

    async def test_a_decision_is_told_to_a_copy_that_something_else_changes_in_this_moment(
        self, url, monkeypatch
    ):
        store = store_from(url)
        write, touched = store.write, []

        async def after_it_was_touched(scope, changes):
            for record in [change.record for change in changes if isinstance(change, Put)]:
                tells = record.kind == "memory" and "visibility" not in record.data
                if scope.user == "ana" and tells and not touched:
                    (as_it_is,) = await store.read(scope, "memory", [record.id])
                    touched.append(record.id)
                    await write(scope, [Put.over(as_it_is, as_it_is)])
            await write(scope, changes)

        async with MemoryService(store, LexicalEmbedder(), global_writes="propose") as memory:
            assert (await memory.user("ana").set(*HOURS)).visibility == "proposed"
            monkeypatch.setattr(store, "write", after_it_was_touched)
            (listed,) = await memory.proposals().list()
            await memory.proposals().reject(listed.id)
            assert touched
            assert (await memory.user("ana").get("store_hours")).visibility == "private"

    @pytest.mark.parametrize("decided", ["approve", "reject"])
    async def test_what_is_decided_before_a_second_judge_notes_that_it_is_proposed_is_not_so_for_good(
        self, url, monkeypatch, decided
    ):
        class Second:
            async def classify(self, text, key):
                return Verdict("global", "model")

        store = store_from(url)
        write = store.write
        handed_in = []

        async def after_it_was_decided_about(scope, changes):
            if handed_in and scope.user == "ana":
                monkeypatch.setattr(store, "write", write)
                (listed,) = await memory.proposals().list()
                await getattr(memory.proposals(), decided)(listed.id)
            await write(scope, changes)
            if scope.user is None:  # not before: a vector of hers may be written meanwhile
                handed_in.append(True)

        made = MemoryService(store, LexicalEmbedder(), global_writes="propose", second_judge=Second())
        async with made as memory:
            monkeypatch.setattr(store, "write", after_it_was_decided_about)
            await memory.user("ana").set(*HOURS)
            await memory._parts.judge.settle()
            assert handed_in
            assert (await memory.user("ana").get("store_hours")).visibility == "private"
            assert await memory.proposals().list() == []

    async def test_what_its_author_says_after_half_a_decision_is_proposed_anew(self, memory, monkeypatch):
        ana, proposals = memory.user("ana"), memory.proposals()
        await ana.set(*HOURS)
        (listed,) = await proposals.list()
        write = ana.backing_store.write

        async def not_to_ana(scope, changes):
            if scope == ana.scope:
                raise StoreUnavailable("scripted")
            await write(scope, changes)

        with monkeypatch.context() as faulty:
            faulty.setattr(ana.backing_store, "write", not_to_ana)
            with pytest.raises(StoreUnavailable):
                await proposals.approve(listed.id)
        assert (await memory.user("bob").get("store_hours")).text == HOURS[1]
        await ana.set("store_hours", "The store is open all night.")
        with pytest.raises(InvalidInput, match="changed by its author"):
            await proposals.approve(listed.id)
        assert [one.text for one in await proposals.list()] == ["The store is open all night."]
        assert (await ana.get("store_hours")).visibility == "proposed"

    @pytest.mark.parametrize(
        ("happened", "proposed"),
        [("forgotten", []), ("deleted", []), ("replaced", ["The store is open Monday to Friday, all day."])],
    )
    async def test_what_its_author_takes_back_while_it_is_approved_is_not_approved(
        self, memory, monkeypatch, happened, proposed
    ):
        ana = memory.user("ana")
        await ana.set(*HOURS)
        (waiting,) = await memory.proposals().list()
        decide = Ledger.set

        async def overtaken(ledger, said):
            monkeypatch.setattr(Ledger, "set", decide)
            if happened == "forgotten":
                assert (await ana.forget()).verified
            elif happened == "deleted":
                await ana.delete("store_hours")
            else:
                await ana.set("store_hours", *proposed)
            return await decide(ledger, said)

        monkeypatch.setattr(Ledger, "set", overtaken)
        with pytest.raises(InvalidInput, match="changed by its author|no proposal"):
            await memory.proposals().approve(waiting.id)
        assert await memory.user("bob").get("store_hours") is None
        assert [proposal.text for proposal in await memory.proposals().list()] == proposed

    async def test_of_a_private_and_a_global_value_set_at_once_one_holds(self, auto, monkeypatch):
        ana = auto.user("ana")
        end, kept_by_both = KeyedMemories._end_older, asyncio.Barrier(2)

        async def end_older(*args):
            await kept_by_both.wait()
            await end(*args)

        monkeypatch.setattr(KeyedMemories, "_end_older", end_older)
        kept = await asyncio.gather(
            ana.set("store_hours", "My own shop opens at nine, I am Ana Lopez."), ana.set(*HOURS)
        )
        assert {memory.visibility for memory in kept} == {"private", "global"}
        holds = await ana.get("store_hours")
        assert holds is not None
        assert [memory.text for memory in await ana.facts()] == [holds.text]

    @pytest.mark.parametrize("url", ["memory://"])  # what is shared is decided before a store is asked
    async def test_a_thousand_callers_change_nothing_global_by_default(self, memory):
        for i in range(100):
            await memory.user(f"caller {i}").set(f"policy_{i % 7}", "Refunds take ten days at the store.")
        assert await memory.user("somebody").query("refunds at the store", limit=1000) == []


class TestForget:
    async def test_a_key_goes_from_everyone_also_where_a_conversation_goes_with_it(self, auto):
        ana = auto.user("ana")
        assert (await ana.set(*HOURS)).visibility == "global"
        call = await ana.conversation("call")
        await call.append(Turn(speaker="user", text="hello there"))
        receipt = await ana.forget(key=HOURS[0], conversation="call")
        assert (receipt.memories, receipt.turns, receipt.conversations) == (1, 1, 1)
        assert await auto.user("bob").get(HOURS[0]) is None

    async def test_a_conversation_alone_leaves_what_is_everyones(self, auto):
        ana = auto.user("ana")
        await ana.set(*HOURS)
        await ana.conversation("call")
        await ana.forget(conversation="call")
        assert (await auto.user("bob").get(HOURS[0])).text == HOURS[1]

    async def test_everything_goes_and_the_receipt_counts_it(self, auto):
        ana, bob = auto.user("ana"), auto.user("bob")
        for user in (ana, bob):
            await user.set("home", "Boston")
            await user.set("home", "Haifa")
            call = await user.conversation("call-1")
            await call.append(Turn(speaker="user", text="hello there", id="t1"))
        await ana.set(*HOURS)
        await auto.settle(20)
        receipt = await ana.forget()
        assert (receipt.memories, receipt.turns, receipt.conversations) == (3, 1, 1)
        assert receipt.vectors == 4
        assert receipt.verified
        assert await ana.facts() == []
        assert await ana.history("home") == []
        assert await ana.query("home Haifa hello store", limit=1000, include_past=True) == []
        assert await ana.conversations() == []
        assert await bob.get("store_hours") is None
        assert (await bob.get("home")).text == "Haifa"
        assert "ana" not in await auto.users()
        assert (await ana.forget()).records == 0

    async def test_one_key_with_its_history(self, memory):
        ana = memory.user("ana")
        await ana.set("home", "Boston")
        await ana.set("home", "Haifa")
        await ana.set("user_name", "Ana")
        receipt = await ana.forget(key="home")
        assert receipt.memories == 2
        assert await ana.history("home") == []
        assert (await ana.get("user_name")).text == "Ana"

    async def test_one_conversation(self, memory):
        ana = memory.user("ana")
        for name in ("one", "two"):
            call = await ana.conversation(name)
            await call.append(Turn(speaker="agent", text=f"about number {name}", id=name))
        receipt = await ana.forget(conversation="one")
        assert (receipt.turns, receipt.conversations) == (1, 1)
        assert [c.id for c in await ana.conversations()] == ["two"]
        assert [h.turn.id for h in await ana.query("about number")] == ["two"]

    async def test_what_is_said_while_its_conversation_is_forgotten_goes_with_it(self, memory, monkeypatch):
        ana = memory.user("ana")
        call = await ana.conversation("one")
        await call.append(Turn(speaker="user", text="My dog is called Rex.", id="t1"))
        store = memory._parts.store._observed
        erase = store.erase

        async def overtaken(*args):
            monkeypatch.setattr(store, "erase", erase)
            await call.append(Turn(speaker="user", text="My diagnosis is diabetes.", id="t2"))
            return await erase(*args)

        monkeypatch.setattr(store, "erase", overtaken)
        assert (await ana.forget(conversation="one")).turns == 2
        assert await ana.conversations() == []
        assert await call.turns() == []
        assert await ana.query("diabetes diagnosis") == []

    async def test_what_is_forgotten_while_its_key_is_set_comes_back_in_no_version(self, memory, monkeypatch):
        ana = memory.user("ana")
        await ana.set("diagnosis", "Multiple sclerosis, since March.")
        decide = Ledger.set

        async def overtaken(ledger, said):
            decided = await decide(ledger, said)
            monkeypatch.setattr(Ledger, "set", decide)
            assert (await ana.forget(key="diagnosis")).verified
            await ana.set("diagnosis", "A cold.")
            return decided

        monkeypatch.setattr(Ledger, "set", overtaken)
        await ana.set("diagnosis", "Nothing at all.")
        assert [m.text for m in await ana.history("diagnosis")] == ["A cold.", "Nothing at all."]

    @pytest.mark.parametrize("what", [{"key": HOURS[0]}, {}], ids=["key", "everything"])
    async def test_what_is_judged_while_it_is_forgotten_is_shared_with_nobody(self, url, monkeypatch, what):
        answered = asyncio.Event()

        class Second:
            async def classify(self, text, key):
                await answered.wait()
                return Verdict("global", "model")

        store = store_from(url)
        erase = store.erase
        made = MemoryService(store, LexicalEmbedder(), global_writes="auto", second_judge=Second())
        async with made as memory:
            ana = memory.user("ana")
            await ana.set(*HOURS)

            async def overtaken(*args):
                answered.set()
                await memory._parts.judge.settle()
                return await erase(*args)

            monkeypatch.setattr(store, "erase", overtaken)
            assert (await ana.forget(**what)).verified
            assert await memory.user("bob").get("store_hours") is None
            assert await ana.history("store_hours") == []


class TestConversations:
    async def test_turns_are_durable_in_order_and_idempotent_by_id(self, memory, later):
        call = await memory.user("ana").conversation("call-1", agent="concierge")
        first = Turn(speaker="user", text="where did we go?", id="D1:1", said_at=later(0))
        await call.append(first, Turn(speaker="agent", text="to Paris", id="D1:2", said_at=later(1)))
        again = await call.append(Turn(speaker="user", text="other words", id="D1:1", said_at=later(9)))
        assert again[0].text == "where did we go?"
        assert [t.text for t in await call.turns()] == ["where did we go?", "to Paris"]
        assert [t.conversation for t in await call.turns()] == ["call-1", "call-1"]

    async def test_of_two_turns_of_one_id_the_first_is_kept_in_one_breath_as_in_two(self, memory):
        call = await memory.user("ana").conversation("call-1")
        said = [Turn(speaker="user", text=text, id="t") for text in ("first", "second")]
        said.insert(1, Turn(speaker="user", text="between", id="u"))
        assert [turn.text for turn in await call.append(*said)] == ["first", "between", "first"]
        assert [turn.text for turn in await call.turns()] == ["first", "between"]

    async def test_fifty_appends_at_once_lose_and_double_nothing(self, memory):
        call = await memory.user("ana").conversation("call-1")
        turns = [Turn(speaker="user", text=f"utterance {i}", id=f"t{i}") for i in range(50)]
        await asyncio.gather(*(call.append(t) for t in turns), *(call.append(t) for t in turns))
        assert sorted(t.id for t in await call.turns()) == sorted(t.id for t in turns)

    async def test_turns_are_found_with_memories(self, memory):
        ana = memory.user("ana")
        call = await ana.conversation()
        await call.append(Turn(speaker="user", text="the plumber comes on Thursday"))
        hits = await ana.query("when does the plumber come?")
        assert hits[0].turn.text == "the plumber comes on Thursday"
        assert hits[0].memory is None

    async def test_only_what_was_heard_is_found(self, memory):
        ana = memory.user("ana")
        call = await ana.conversation("c")
        said = Turn(
            speaker="agent",
            text="Your table is booked. The dessert is tiramisu.",
            heard="Your table is booked.",
        )
        unheard = Turn(speaker="agent", text="The wine is Barolo.", heard="", id="never")
        await call.append(said, unheard)
        assert [h.text for h in await ana.query("table booked")] == ["Your table is booked."]
        assert await ana.query("tiramisu dessert") == []
        assert await ana.query("Barolo wine") == []
        assert (await call.turns())[0].text.endswith("tiramisu.")

    @pytest.mark.parametrize("confidence", [True, 1.5, "0.5"])
    async def test_a_confidence_that_is_no_number_from_0_to_1_is_refused(self, confidence):
        with pytest.raises(InvalidInput, match="confidence"):
            Turn(speaker="user", text="x", confidence=confidence)

    async def test_a_naive_time_is_refused(self):
        with pytest.raises(InvalidInput, match="time zone"):
            Turn(speaker="user", text="x", said_at=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the point
        assert Turn(speaker="user", text="x", said_at=datetime(2026, 1, 1, tzinfo=UTC)).said_at.tzinfo is UTC

    @pytest.mark.parametrize(
        "spoken", ["roast chicken menu", "the roast chicken", "rost chiken menu", "Roast Chicken"]
    )
    async def test_a_conversation_is_recalled_by_a_spoken_key(self, memory, spoken):
        ana = memory.user("ana")
        call = await ana.conversation("call-1")
        await call.append(Turn(speaker="user", text="chicken with lemon", id="t"))
        await call.store(key="roast chicken menu", summary="A menu for four")
        other = await ana.conversation("call-2")
        await other.store(key="garden fence")
        found = await ana.recall_conversation(spoken)
        assert found.conversation.id == "call-1"
        assert found.conversation.summary == "A menu for four"
        assert [t.text for t in found.turns] == ["chicken with lemon"]
        assert (found.likeness == 1) == (spoken == "roast chicken menu" or spoken == "the roast chicken menu")
        assert await ana.recall_conversation("tax return") is None
        assert await memory.user("bob").recall_conversation(spoken) is None

    async def test_a_conversation_is_not_recalled_by_another_number(self, memory):
        ana = memory.user("ana")
        await (await ana.conversation("call")).store(key="order 4711")
        assert await ana.recall_conversation("order 4712") is None
        assert (await ana.recall_conversation("order forty seven eleven")).conversation.id == "call"

    async def test_a_turn_of_another_conversation_is_refused(self, memory):
        call = await memory.user("ana").conversation("one")
        with pytest.raises(InvalidInput, match="belongs to"):
            await call.append(Turn(speaker="user", text="x", conversation="two"))

    async def test_nothing_is_said_in_a_conversation_that_was_forgotten(self, memory):
        ana = memory.user("ana")
        call = await ana.conversation("call")
        await call.append(Turn(speaker="user", text="My name is Ana."))
        await ana.forget(conversation="call")
        with pytest.raises(InvalidInput, match="was forgotten; open a new one"):
            await call.append(Turn(speaker="user", text="My dog is called Zorro."))
        assert await ana.query("Zorro") == []
        again = await ana.conversation("call")
        await again.append(Turn(speaker="user", text="My dog is called Zorro."))
        assert "Zorro" in str(await ana.export())

    async def test_what_is_said_while_a_conversation_is_forgotten_is_not_kept(self, memory, monkeypatch):
        """It would outlive it where nobody finds it to forget it: the write itself has to know."""
        ana = memory.user("ana")
        call = await ana.conversation("call")
        await call.append(Turn(speaker="user", text="My name is Ana."))
        write = ana.backing_store.write

        async def after_it_was_forgotten(scope, changes):
            monkeypatch.undo()
            await ana.forget(conversation="call")
            await write(scope, changes)

        monkeypatch.setattr(ana.backing_store, "write", after_it_was_forgotten)
        with pytest.raises(InvalidInput, match="was forgotten; open a new one"):
            await call.append(Turn(speaker="user", text="My dog is called Zorro."))
        assert await ana.backing_store.scan(ana.scope, "turn") == []

    async def test_another_key_for_a_conversation_leaves_its_summary(self, memory):
        call = await memory.user("ana").conversation("call")
        await call.store("dinner", "A menu for four")
        assert (await call.store("dinner menu")).summary == "A menu for four"
        assert (await call.store("dinner menu", "A menu for six")).summary == "A menu for six"

    async def test_an_id_names_a_turn_within_its_conversation(self, memory):
        """Frameworks count turns anew in each call."""
        ana, kept = memory.user("ana"), {}
        for name in ("monday", "tuesday"):
            call = await ana.conversation(name)
            for _ in range(2):  # delivered twice
                kept[name] = await call.append(
                    Turn(speaker="user", text=f"I called on {name}.", id="1"),
                    Turn(speaker="agent", text=f"It was {name} all day.", id="2"),
                )
            (cut,) = await call.truncate("It was", after="1")
            assert (cut.heard, cut.conversation) == ("It was", name)
            assert [turn.text for turn in await call.turns()] == [turn.text for turn in kept[name]]
        assert [turn.id for turn in kept["monday"]] == ["1", "2"]
        assert [turn.id for turn in kept["tuesday"]] == ["tuesday:1", "tuesday:2"]
        await ana.forget(id=kept["tuesday"][0].id)
        assert [turn.id for turn in await (await ana.conversation("monday")).turns()] == ["1", "2"]


class TestTruncating:
    """An answer was kept before it was spoken, and the caller cut in."""

    ANSWER = "Roast chicken needs an hour. The secret is a pinch of cinnamon."

    async def talked(self, ana):
        talk = await ana.conversation("dinner")
        await talk.append(Turn(speaker="agent", text="Hello there, what is it?"))
        (asked,) = await talk.append(Turn(speaker="user", text="How do I cook a chicken?"))
        await talk.append(
            Turn(speaker="agent", text=self.ANSWER), Turn(speaker="agent", text="Enjoy your meal.")
        )
        return talk, asked.id

    @pytest.mark.parametrize(
        ("heard", "kept"),
        [
            ("Roast chicken needs an hour. The sec", ["Roast chicken needs an hour. The", ""]),
            ("Roast chicken  needs\n", ["Roast chicken needs", ""]),
            ("Ro", ["", ""]),
            ("", ["", ""]),
            (ANSWER, [None, ""]),
            (ANSWER + " Enjoy yo", [None, "Enjoy"]),
            (ANSWER + " Enjoy your meal.", [None, None]),
        ],
    )
    async def test_what_was_not_heard_counts_no_longer_and_stays_as_it_was_meant(self, memory, heard, kept):
        ana = memory.user("ana")
        talk, asked = await self.talked(ana)
        before = await talk.turns()
        cut = await talk.truncate(heard, after=asked)
        assert [turn.heard for turn in cut] == kept
        after = await talk.turns()
        assert after == [*before[:2], *cut]
        assert [turn.text for turn in after] == [turn.text for turn in before]

    async def test_how_much_was_played_is_enough_to_know_what_was_heard(self, memory):
        talk, asked = await self.talked(memory.user("ana"))
        assert [turn.heard for turn in await talk.truncate(after=asked, words=4)] == [
            "Roast chicken needs an",
            "",
        ]
        assert [turn.heard for turn in await talk.truncate(after=asked, fraction=1)] == [None, None]
        assert [turn.heard for turn in await talk.truncate(after=asked, fraction=0.3)] == [
            "Roast chicken needs an",
            "",
        ]
        for wrong in ({}, {"words": 1, "fraction": 0.5}, {"fraction": 2}, {"words": -1}, {"words": True}):
            with pytest.raises(InvalidInput, match=r"one of heard, fraction and words|must be a"):
                await talk.truncate(after=asked, **wrong)

    async def test_what_was_not_heard_is_found_no_longer(self, memory):
        ana = memory.user("ana")
        talk, asked = await self.talked(ana)
        assert any("cinnamon" in hit.text for hit in await ana.query("cinnamon"))
        await talk.truncate("Roast chicken needs an hour. The", after=asked)
        await memory.settle()
        assert not any("cinnamon" in hit.text for hit in await ana.query("a pinch of cinnamon", limit=50))
        found = await ana.query("how long does roast chicken take?")
        assert "Roast chicken needs an hour. The" in [hit.text for hit in found]

    async def test_the_words_it_began_with_are_the_greeting(self, memory):
        talk, _ = await self.talked(memory.user("ana"))
        (greeting,) = await talk.truncate("Hello there,")
        assert greeting.heard == "Hello there,"
        (greeting,) = await talk.truncate("Hello")
        assert greeting.heard == "Hello"

    @pytest.mark.parametrize(
        ("heard", "why"),
        [
            ("Boiled chicken", "does not begin with what was heard"),
            ("Roast chicken takes an hour", "does not begin with what was heard"),
            (ANSWER + " Enjoy your meal. And more", "is 2 words shorter than what was heard"),
        ],
    )
    async def test_what_the_agent_did_not_say_is_refused_and_changes_nothing(self, memory, heard, why):
        talk, asked = await self.talked(memory.user("ana"))
        before = await talk.turns()
        with pytest.raises(InvalidInput, match=why):
            await talk.truncate(heard, after=asked)
        with pytest.raises(InvalidInput, match="'nobody'"):
            await talk.truncate("Hello", after="nobody")
        (last,) = await talk.append(Turn(speaker="user", text="Thanks"))
        with pytest.raises(InvalidInput, match="said nothing"):
            await talk.truncate("Hello", after=last.id)
        with pytest.raises(InvalidInput, match="before the user spoke"):
            await (await memory.user("eve").conversation("dinner")).truncate("Hello")
        assert (await talk.turns())[:-1] == before


class TestDistilling:
    async def test_what_the_user_said_is_known_afterwards(self, memory, later):
        ana = memory.user("ana")
        call = await ana.conversation("call-1")
        await call.append(
            Turn(speaker="user", text="Hi, I'm Pavel and I live in Tel Aviv.", id="1", said_at=later(0)),
            Turn(speaker="agent", text="I live in the cloud. My name is Echo.", id="2", said_at=later(1)),
            Turn(speaker="user", text="I moved to Lisbon.", id="3", said_at=later(2)),
        )
        distilled = await call.distil()
        assert distilled.turns in {0, 3}  # the background worker may have been first
        await memory.settle(20)
        facts = {m.text for m in await ana.facts()}
        assert {"Pavel", "Lisbon"} <= facts
        assert not {"Echo", "the cloud", "Tel Aviv"} & facts
        home = next(m for m in await ana.facts() if m.text == "Lisbon")
        assert home.source == ("3",)
        assert home.valid_from == later(2)
        assert [m.text for m in await ana.history(home.key)] == ["Tel Aviv", "Lisbon"]

    @pytest.mark.parametrize(
        ("speaker", "text"),
        [
            ("agent", "My name is Echo, and I'm allergic to peanuts."),
            ("Olga", "My name is Olga, and I'm allergic to peanuts."),
            ("user", 'My friend said: "I live in Paris and I\'m allergic to peanuts."'),
            ("user", "If I lived in Rome, I'd walk to work."),
            ("user", "Suppose I'm allergic to peanuts."),
        ],
        ids=["agent", "another speaker", "friend", "condition", "supposition"],
    )
    async def test_nothing_is_learned_from_others_words_or_a_supposition(self, memory, speaker, text):
        ana = memory.user("ana")
        call = await ana.conversation("call-1")
        await call.append(Turn(speaker=speaker, text=text, id="1"))
        await call.distil()
        assert await memory.settle(20)
        assert await ana.facts() == []
        # stated as the user's own, it is learned
        await call.append(Turn(speaker="user", text="I live in Rome and I'm allergic to peanuts.", id="2"))
        await call.distil()
        assert {m.text.casefold() for m in await ana.facts()} == {"rome", "peanuts"}

    async def test_each_turn_is_distilled_exactly_once(self, memory):
        ana = memory.user("ana")
        call = await ana.conversation("call-1")
        for i in range(5):
            await call.append(Turn(speaker="user", text=f"My name is Pavel{'abcde'[i]}", id=str(i)))
            await asyncio.gather(call.distil(), call.distil(), memory.distil())
        await memory.settle(20)
        names = [m.text for m in await ana.history("user_name")]
        assert names == [f"Pavel{c}" for c in "abcde"]

    async def test_completed_conversations_are_marked_distilled(self, memory):
        ana = memory.user("ana")
        call = await ana.conversation("call-1")
        await call.append(Turn(speaker="user", text="I'm allergic to peanuts", id="1"))
        await call.complete()
        await memory.distil()
        await memory.settle(20)
        assert (await call.info()).distilled
        await call.append(Turn(speaker="user", text="My name is Pavel", id="late"))
        await memory.distil()
        assert (await ana.get("user_name")).text == "Pavel"

    async def test_nothing_comes_back_after_forgetting(self, memory):
        ana = memory.user("ana")
        call = await ana.conversation("call-1")
        await call.append(Turn(speaker="user", text="My name is Pavel", id="1"))
        await asyncio.gather(call.distil(), ana.forget())
        await memory.distil()
        await memory.settle(20)
        left = await ana.facts()
        assert left == [] or all(m.source == ("1",) for m in left)
        await ana.forget()
        await memory.distil()
        assert await ana.facts() == []


class TestWhatHolds:
    async def test_a_correction_that_is_made_meanwhile_is_seen_whole_or_not_at_all(self, url, monkeypatch):
        store = store_from(url)
        scan = store.scan
        async with MemoryService(store, LexicalEmbedder()) as memory:
            ana = memory.user("ana")
            await ana.set("home", "Lisbon")

            async def corrected(scope, kind, **page):
                found = await scan(scope, kind, **page)
                monkeypatch.setattr(store, "scan", scan)
                if scope.user is not None and kind == "memory":
                    await ana.set("home", "Porto")
                return found

            for read in (ana.facts, lambda: ana.history("home")):
                monkeypatch.setattr(store, "scan", corrected)
                assert len([memory.text for memory in await read() if memory.current]) == 1

    async def test_every_page_is_read(self, memory, monkeypatch):
        monkeypatch.setattr("echoic.memory.records._PAGE", 2)
        ana = memory.user("ana")
        for number in range(5):
            await ana.set(f"key {number}", "value")
            assert len(await ana.facts()) == number + 1


class TestExport:
    async def test_an_export_restores_to_an_equal_export(self, memory, later):
        ana = memory.user("ana")
        await ana.set("home", "Boston")
        await ana.set("home", "Haifa")
        await ana.remember("Prefers tea", category="preference", context="in the morning", said_at=later(3))
        call = await ana.conversation("call-1", agent="concierge")
        await call.append(
            Turn(speaker="agent", text="a b c", heard="a", id="1", confidence=0.5, said_at=later(1))
        )
        await call.store(key="tea", summary="about tea")
        exported = await ana.export()
        copy = memory.user("ana", deployment="elsewhere")
        assert await copy.restore(exported) == 5
        assert await copy.restore(exported) == 0
        again = await copy.export()
        assert again == {**exported, "deployment": "elsewhere"}
        assert (await copy.get("home")).text == "Haifa"
        assert await copy.set("home", "Haifa") == await copy.get("home")

    async def test_what_the_user_made_global_is_exported_and_not_imported(self, url):
        made = MemoryService(store_from(url), LexicalEmbedder(), global_writes="auto")
        async with made as memory:
            ana = memory.user("ana")
            await ana.set("opening_hours", "The store is open from 9 to 17.")
            await memory.user("bob").set("entrance", "The store is at the corner of the station.")
            exported = await ana.export()
            assert [one["text"] for one in exported["global"]] == ["The store is open from 9 to 17."]
            assert exported["memories"] == []
            assert await memory.user("ana", "elsewhere").restore(exported) == 0
            assert await memory.global_facts("elsewhere").list() == []

    async def test_what_stands_twice_in_an_export_is_kept_once_or_refused(self, memory):
        ana, copy = memory.user("ana"), memory.user("copy")
        call = await ana.conversation("monday")
        await call.append(Turn(speaker="user", text="It rained all night.", id="1"))
        exported = await ana.export()
        (monday,) = exported["conversations"]
        monday["turns"] *= 2
        assert await asyncio.wait_for(copy.restore(exported), 20) == 2
        exported["conversations"].append({**monday, "id": "tuesday"})
        with pytest.raises(InvalidInput, match="two different records as turn '1'"):
            await asyncio.wait_for(memory.user("other").restore(exported), 20)
        assert await memory.user("other").conversations() == []

    async def test_what_was_learned_from_is_not_read_again_after_a_move_and_the_rest_is(self, memory, later):
        ana, copy = memory.user("ana", "acme"), memory.user("ana", "elsewhere")
        await copy.set("filler", "so that nothing stands at the same place in both")
        call = await ana.conversation("call-1")
        await call.append(Turn(speaker="user", text="My name is Ana.", id="t1"))
        await memory.settle()
        assert await ana.delete("user_name")
        export = await ana.export()
        said = export["conversations"][0]["turns"]
        said.append({**said[0], "id": "t2", "text": "I live in Porto."})
        await copy.restore(export)
        await memory.distil()
        known = {m.key: m.text for m in await copy.facts()}
        assert "Porto" in known.values()
        assert "user_name" not in known, "what was taken back came back"

    @pytest.mark.parametrize("corrections", [0, 3])
    async def test_a_key_that_is_known_already_holds_what_was_said_last(self, memory, corrections):
        ana, bob = memory.user("ana"), memory.user("bob")
        await ana.set("home", "Rome")
        exported = await ana.export()
        for number in range(corrections):
            await ana.set("home", f"Place {number}")
            await bob.set("home", f"Street {number}")
        await bob.set("home", "Paris")
        assert await bob.restore(exported) == 1
        assert [(m.key, m.text) for m in await bob.facts()] == [("home", "Paris")]
        assert (await bob.get("home")).text == "Paris"
        assert {m.text for m in await bob.past()} >= {"Rome"}
        assert (await bob.set("home", "Oslo")).text == "Oslo"
        assert await bob.restore(await ana.export()) == corrections
        assert [m.text for m in await bob.facts()] == ["Oslo"]
        assert await bob.delete("home")
        assert await bob.facts() == []
        assert await bob.get("home") is None

    async def test_versions_of_two_stores_that_have_the_same_id_are_all_kept(self, memory):
        here, there = memory.user("ana", "here"), memory.user("ana", "there")
        await here.set("city", "Lisbon")
        for city in ("Porto", "Faro"):
            await there.set("city", city)
        exported = await there.export()
        assert await here.restore(exported) == 2
        assert await here.restore(exported) == 0
        assert {m.text for m in await here.history("city")} == {"Lisbon", "Porto", "Faro"}
        assert [m.text for m in await here.facts()] == ["Faro"]
        porto, faro = [(await here.history("city"))[n] for n in (1, 2)]
        assert (porto.text, porto.superseded_by, faro.supersedes) == ("Porto", faro.id, porto.id)
        assert await there.restore(await here.export()) == 1, "the other versions are known there"
        assert [m.text for m in await there.facts()] == ["Faro"]

    async def test_turns_and_results_of_two_users_that_have_the_same_ids_are_all_kept_apart(
        self, memory, later
    ):
        guest, bea = memory.user("guest"), memory.user("bea")
        for user, day, said in (
            (guest, "monday", ("I'm allergic to peanuts.", "Good day to you.")),
            (bea, "tuesday", ("My sister plays the cello.", "Thank you.")),
        ):
            call = await user.conversation(day)
            for number, text in enumerate(said, 1):
                await call.append(Turn(speaker="user", text=text, id=str(number), said_at=later(number)))
            await user.add_result(day, "search", {"found": day}, id="r")
            await memory.settle(20)
        exported = await guest.export()
        assert await bea.restore(exported) == 5
        assert await bea.restore(exported) == 0
        tasks = {day: await bea.task(day) for day in ("monday", "tuesday")}
        assert [(turn.id, turn.text) for turn in tasks["monday"].turns] == [
            ("monday:1", "I'm allergic to peanuts."),
            ("monday:2", "Good day to you."),
        ]
        assert [turn.text for turn in tasks["tuesday"].turns] == ["My sister plays the cello.", "Thank you."]
        assert {day: task.results[0].value for day, task in tasks.items()} == {
            "monday": {"found": "monday"},
            "tuesday": {"found": "tuesday"},
        }
        (allergy,) = [one for one in await bea.facts() if one.text == "peanuts"]
        assert allergy.source == ("monday:1",)
        (monday,) = [one for one in (await bea.export())["conversations"] if one["id"] == "monday"]
        assert monday["read"] == "monday:2"
        await bea.forget(id=allergy.id)
        assert [turn.text for turn in await (await bea.conversation("tuesday")).turns()] == [
            "My sister plays the cello.",
            "Thank you.",
        ]

    async def test_an_import_is_not_doubled_once_the_ids_it_found_taken_are_free(self, memory, later):
        ana, bob = memory.user("ana"), memory.user("bob")
        for user, day, said in (
            (ana, "A", ("I'm allergic to peanuts.", "Good day to you.")),
            (bob, "B", ("My sister plays the cello.",)),
        ):
            call = await user.conversation(day)
            for number, text in enumerate(said, 1):
                await call.append(Turn(speaker="user", text=text, id=str(number), said_at=later(number)))
            await user.add_result(day, "search", {"found": day}, id="r")
        await memory.settle(20)
        exported = await ana.export()
        await bob.restore(exported)
        await bob.forget(conversation="B")
        assert await bob.restore(exported) == 0
        task = await bob.task("A")
        assert [turn.id for turn in task.turns] == ["A:1", "2"]
        assert [result.id for result in task.results] == ["A:r"]
        (allergy,) = [one for one in await bob.facts() if one.text == "peanuts"]
        assert allergy.source == ("A:1",)

    async def test_a_memory_whose_turn_is_not_exported_cites_no_turn_of_another(self, memory, later):
        guest, bea = memory.user("guest"), memory.user("bea")
        for user, minute, said in ((guest, 1, "I'm allergic to peanuts."), (bea, 2, "Hello.")):
            call = await user.conversation(f"day {minute}")
            await call.append(Turn(speaker="user", text=said, id="1", said_at=later(minute)))
        await memory.settle(20)
        exported = await guest.export()
        piece = {**exported, "conversations": []}
        await bea.restore(piece)
        (allergy,) = await bea.facts()
        assert (allergy.text, allergy.source) == ("peanuts", ())
        cat = memory.user("cat")
        for part in ({**exported, "memories": []}, piece):
            await cat.restore(part)
        assert (await cat.facts())[0].source == ("1",), "in pieces, of which one holds the turn"

    async def test_a_proposal_is_not_imported_and_neither_is_that_it_was_made(self, memory):
        ana, bob = memory.user("ana"), memory.user("bob")
        assert (await ana.set(*HOURS)).visibility == "proposed"
        await bob.restore(await ana.export())
        assert (await bob.get(HOURS[0])).visibility == "private"

    @pytest.mark.parametrize("after", range(1, 9))
    async def test_what_is_learned_during_an_export_is_in_it_or_its_turns_are_read_again(self, memory, after):
        ana = memory.user("ana")
        call = await ana.conversation("monday")
        await memory._parts.background.stop()
        await call.append(Turn(speaker="user", text="I live in Porto.", id="1"))

        class Meanwhile:
            scans = 0

            def __getattr__(self, name):
                return getattr(ana.backing_store, name)

            async def scan(self, *args, **options):
                found = await ana.backing_store.scan(*args, **options)
                self.scans += 1
                if self.scans == after:
                    await call.learn()
                return found

        exported = await export_scope(Meanwhile(), ana.scope)
        assert (await ana.get("home")).text == "Porto"
        bob = memory.user("bob")
        await bob.restore(exported)
        await (await bob.conversation("monday")).learn()
        (home,) = await bob.history("home")
        assert (home.text, home.source, home.times_said) == ("Porto", ("1",), 1)

    async def test_an_import_that_stops_in_the_middle_leaves_one_value_of_a_key_the_latest(
        self, memory, monkeypatch
    ):
        old, bea = memory.user("old"), memory.user("bea")
        await old.set("home", "London")
        for number in range(5):
            await old.remember(f"Note number {number}")
        exported = await old.export()
        await bea.set("home", "Bristol")
        write, times = memory._parts.store.write, itertools.count()

        async def full(scope, changes):
            # vectors are written whenever they are ready
            puts = scope == bea.scope and any(isinstance(change, Put) for change in changes)
            if puts and next(times) == 1:
                raise StoreUnavailable("away for a moment")
            await write(scope, changes)

        monkeypatch.setattr(export, "_BATCH", 3)
        with monkeypatch.context() as stopped:
            stopped.setattr(memory._parts.store, "write", full)
            with pytest.raises(StoreUnavailable):
                await bea.restore(exported)
        assert [m.text for m in await bea.facts() if m.key == "home"] == ["Bristol"]
        assert (await bea.get("home")).text == "Bristol"
        assert await bea.restore(exported) == 3

    async def test_a_conversation_that_is_restored_in_parts_lasts_as_long_as_all_of_them(self, memory, later):
        ana = memory.user("ana")
        call = await ana.conversation("call-1")
        await call.append(Turn(speaker="user", text="Good morning.", id="1", said_at=later(1)))
        exported = await ana.export()
        (part,) = exported["conversations"]
        for shift in (timedelta(days=30), timedelta(days=-30)):
            times = {
                name: (datetime.fromisoformat(part[name]) + shift).isoformat()
                for name in ("started_at", "updated_at")
            }
            part = {**part, **times, "turns": []}
            await ana.restore({**exported, "conversations": [part]})
        (kept,) = await ana.conversations()
        began, ended = (datetime.fromisoformat(exported["conversations"][0][n]) for n in times)
        assert (kept.started_at, kept.updated_at) == (began, ended + timedelta(days=30))

    async def test_what_was_taken_back_elsewhere_does_not_hide_what_holds_here(self, memory):
        ana, bob = memory.user("ana"), memory.user("bob")
        await ana.set("home", "Rome")
        await ana.delete("home")
        await bob.set("home", "Paris")
        await bob.restore(await ana.export())
        assert (await bob.get("home")).text == "Paris"
        assert await bob.delete("home")
        assert await bob.facts() == []

    async def test_one_who_has_two_memories_holds_one_value_of_a_key(self, memory):
        here, there = memory.user("ana", "here"), memory.user("ana", "there")
        await here.set("home", "Paris")
        for place in ("Rome", "Oslo"):
            await there.set("home", place)
        await here.restore(await there.export())
        assert [m.text for m in await here.facts()] == ["Oslo"]
        assert (await here.set("home", "Lima")).text == "Lima"
        assert [m.text for m in await here.facts()] == ["Lima"]

    async def test_what_is_no_export_is_refused_whole(self, memory):
        ana = memory.user("ana")
        for bad in ({}, {"format": "x"}, {"format": "echoic-export", "version": 99}):
            with pytest.raises(InvalidInput):
                await ana.restore(bad)
        with pytest.raises(InvalidInput):
            await ana.restore(
                {"format": "echoic-export", "version": 1, "memories": [{"id": "1"}], "conversations": []}
            )
        assert await ana.facts() == []


class TestCorrections:
    async def test_a_correction_reaches_back_across_runs(self, memory, later):
        ana = memory.user("ana")
        call = await ana.conversation("call-1")
        await call.append(Turn(speaker="user", text="My name is Paul.", id="1", said_at=later(0)))
        await call.distil()
        await call.append(Turn(speaker="agent", text="Hello Paul!", id="2", said_at=later(1)))
        await call.append(Turn(speaker="user", text="No, it's Paula.", id="3", said_at=later(1)))
        await call.distil()
        await memory.settle(20)
        assert [m.text for m in await ana.history("user_name")] == ["Paul", "Paula"]

    async def test_an_old_call_imported_late_does_not_undo_what_is_known(self, memory, later):
        ana = memory.user("ana")
        new = await ana.conversation("new")
        await new.append(Turn(speaker="user", text="I moved to Lisbon.", id="n", said_at=later(100)))
        await new.distil()
        old = await ana.conversation("old")
        await old.append(Turn(speaker="user", text="I live in Tel Aviv.", id="o", said_at=later(0)))
        await old.distil()
        await memory.settle(20)
        assert (await ana.get("home")).text == "Lisbon"

    async def test_what_is_taken_back_in_speech_is_taken_back(self, memory, later):
        ana = memory.user("ana")
        call = await ana.conversation("c")
        for i, text in enumerate(["I'm allergic to peanuts.", "I'm not allergic to peanuts any more."]):
            await call.append(Turn(speaker="user", text=text, id=str(i), said_at=later(i)))
        await call.distil()
        await memory.settle(20)
        assert [m for m in await ana.facts() if "peanut" in m.text.lower()] == []


async def test_what_is_revoked_for_longer_while_the_expired_go_stays_revoked(url, monkeypatch):
    start = datetime(2026, 11, 20, 9, tzinfo=UTC)
    now = start
    store = store_from(url)
    write = store.write
    async with MemoryService(store, LexicalEmbedder(), clock=lambda: now) as memory:
        revocations = memory.revocations()
        await revocations.revoke("ana's", start + timedelta(minutes=1))
        now = start + timedelta(minutes=2)

        async def overtaken(*args):
            monkeypatch.setattr(store, "write", write)
            await revocations.revoke("ana's", start + timedelta(days=1))
            await write(*args)

        monkeypatch.setattr(store, "write", overtaken)
        await revocations.revoke("bob's", start + timedelta(days=1))
        assert await revocations.revoked("ana's")
        assert await revocations.revoked("bob's")


async def test_deployments_of_echoics_own_are_nobodys(memory):
    for deployment in ("echoic.erasures", "echoic.encryption", "echoic.x"):
        with pytest.raises(InvalidInput, match="reserved"):
            memory.user("default", deployment)
        with pytest.raises(InvalidInput, match="reserved"):
            memory.keys(deployment)
    assert memory.user("ana", "echoic").scope.deployment == "echoic"
