"""What a deployment reads of others: what is global in those that were named for it, and nothing else."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echoic.embedding import embedder_from
from echoic.errors import InvalidInput
from echoic.memory.records import Ledger
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.in_memory import InMemoryStore
from echoic.types import Memory, Scope
from scale import many

HOURS = "We are open from nine to five on weekdays"


def service(store=None, **shares):
    return MemoryService(
        store or InMemoryStore(), embedder_from("lexical"), global_writes="auto", shares=shares
    )


@pytest.fixture
async def shared(url):
    """On every store: "acme" reads "kb" and "more"."""
    opened = MemoryService(
        store_from(url), embedder_from("lexical"), global_writes="auto", shares={"acme": ("kb", "more")}
    )
    async with opened as memory:
        yield memory


async def known(memory, deployment, key, text, user="writer"):
    """Make `text` global in `deployment`, as a classifier lets `user` do; which texts those are is not the point."""
    store, everyone = memory._parts.store, Scope(deployment, None)
    ledger = Ledger(store, everyone)
    now = datetime.now(UTC)
    await ledger.set(
        Memory(id="", key=key, text=text, visibility="global", author=user, source=("t",), valid_from=now)
    )
    await store.write(everyone, ledger.changes)
    memory._parts.background.poke()


async def test_a_named_deployments_global_memory_is_found_among_the_own_in_one_ranking(shared):
    ana = shared.user("ana", "acme")
    await known(shared, "kb", "opening_hours", HOURS)
    await known(shared, "acme", "parking_policy", "Parking costs five euros on weekdays")
    await ana.remember("Prefers to come on weekdays after nine")
    await shared.settle()
    hits = await ana.query("when are you open on weekdays?")
    assert {hit.scope for hit in hits} == {Scope("acme", "ana"), Scope("acme", None), Scope("kb", None)}
    assert hits[0].text == HOURS
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert sorted(rank.rank for hit in hits if (rank := hit.ranks.get("vector"))) == list(
        range(1, 1 + sum("vector" in hit.ranks for hit in hits))
    )


async def test_the_ranking_is_that_of_the_same_rows_in_one_deployment():
    lines = {"opening_hours": HOURS, "return_policy": "Returns are free within thirty days"}
    async with service(acme=("kb",)) as apart, service() as together:
        for key, text in lines.items():
            await known(apart, "kb", key, text)
            await known(together, "acme", key, text)
        found = []
        for memory in (apart, together):
            ana = memory.user("ana", "acme")
            await ana.remember("Returned a lamp within ten days")
            await memory.settle()
            hits = await ana.query("how many days do I have to return a lamp?")
            found.append([(hit.text, hit.score) for hit in hits])
        assert found[0] == found[1]
        assert len(found[0]) > 1


async def test_get_falls_back_to_what_is_shared_last(shared):
    ana = shared.user("ana", "acme")
    await known(shared, "more", "opening_hours", "We are open all day")
    assert (await ana.get("opening_hours")).text == "We are open all day"
    await known(shared, "kb", "opening_hours", HOURS)
    assert (await ana.get("opening_hours")).text == HOURS, "the one that was named first"
    await known(shared, "acme", "opening_hours", "We are open until noon")
    assert (await ana.get("opening_hours")).text == "We are open until noon"
    await shared.user("writer", "acme").delete("opening_hours")
    assert (await ana.get("opening_hours")).text == HOURS
    await shared.user("writer", "kb").delete("opening_hours")
    await shared.user("writer", "more").delete("opening_hours")
    assert await ana.get("opening_hours") is None


async def test_who_said_it_does_not_come_along(shared):
    await known(shared, "kb", "opening_hours", HOURS, user="zacharias")
    await shared.settle()
    ana = shared.user("ana", "acme")
    (hit,) = await ana.query("when are you open?")
    got = await ana.get("opening_hours")
    assert (hit.memory.author, hit.memory.source) == (got.author, got.source) == (None, ())
    assert "zacharias" not in repr((hit, got))


async def test_one_of_the_same_name_elsewhere_is_somebody_else(shared):
    await known(shared, "kb", "opening_hours", HOURS, user="ana")
    ana = shared.user("ana", "acme")
    assert await ana.facts() == await ana.past() == await ana.history("opening_hours") == []
    assert await ana.delete("opening_hours") is False
    assert (await ana.forget()).records == 0
    assert (await ana.get("opening_hours")).text == HOURS
    assert (await shared.user("ana", "kb").facts())[0].text == HOURS


async def test_it_is_only_read(shared):
    await known(shared, "kb", "opening_hours", HOURS)
    ana = shared.user("ana", "acme")
    await ana.set("opening_hours", "We are open until noon")
    await ana.forget(key="opening_hours")
    assert (await shared.user("bob", "kb").get("opening_hours")).text == HOURS
    exported = await ana.export()
    assert exported["memories"] == []


async def test_a_share_has_one_direction_and_is_not_passed_on():
    async with service(acme=("kb",), kb=("base",)) as memory:
        for deployment, word in (("acme", "weekdays"), ("kb", "mondays"), ("base", "fridays")):
            await known(memory, deployment, "opening_hours", f"We are open on {word}")
        await memory.settle()
        seen = {
            deployment: {hit.scope.deployment for hit in await memory.user("ana", deployment).query("open?")}
            for deployment in ("acme", "kb", "base")
        }
        assert seen == {"acme": {"acme", "kb"}, "kb": {"kb", "base"}, "base": {"base"}}


async def test_nothing_is_shared_by_default(memory):
    await known(memory, "kb", "opening_hours", HOURS)
    await memory.settle()
    assert await memory.user("ana", "kb").get("opening_hours")
    ana = memory.user("ana", "acme")
    assert await ana.query("when are you open?") == []
    assert await ana.get("opening_hours") is None


async def test_what_was_found_is_packed_and_spoken_of_as_its_own(shared):
    await known(shared, "kb", "opening_hours", HOURS)
    await shared.settle()
    ana = shared.user("ana", "acme")
    assert "nine to five" in (await ana.brief("when are you open?")).text
    recall = await ana.recall("when are you open?")
    with pytest.raises(InvalidInput, match="another user"):
        await shared.user("eve", "base").pack(recall)


async def test_what_is_written_to_a_share_while_somebody_speaks_is_not_missed(shared):
    ana = shared.user("ana", "acme")
    await known(shared, "kb", "opening_hours", HOURS)
    await ana.remember("Comes by bicycle")
    await shared.settle()
    async with ana.listen() as listening:
        for partial in ("when are", "when are you", "when are you open"):
            listening.partial(partial)
            await asyncio.sleep(0.05)
        await known(shared, "kb", "holiday_hours", "We are open on holidays until noon")
        recall = await listening.final("when are you open")
    assert "We are open on holidays until noon" in {hit.text for hit in recall.hits}


class _Slow(InMemoryStore):
    """Does not come to an end with one scope."""

    async def load(self, scope):
        if scope == Scope("kb", None):
            await asyncio.Event().wait()
        return await super().load(scope)


async def test_a_share_that_is_not_loaded_in_time_is_named_and_the_rest_answers():
    async with service(_Slow(), acme=("kb",)) as memory:
        ana = memory.user("ana", "acme")
        await ana.remember("Comes by bicycle")
        await memory.settle()
        recall = await ana.recall("bicycle", deadline_ms=1000)
        assert [hit.text for hit in recall.hits] == ["Comes by bicycle"]
        assert recall.outcome == "deadline"
        assert "shared" in recall.cut


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ({"acme": "kb"}, "several names"),
        ({"acme": ("acme",)}, "anyway"),
        ({"acme": ("kb", "kb")}, "twice"),
        ({"acme": ("",)}, "empty"),
        ({"": ("kb",)}, "empty"),
        ({"acme": (None,)}, "must be a string"),
    ],
)
def test_shares_that_cannot_be_meant_are_refused(shares, reason):
    with pytest.raises(InvalidInput, match=reason):
        MemoryService(InMemoryStore(), embedder_from("lexical"), shares=shares)


DEPLOYMENTS = ("acme", "kb", "base", "shop")
USERS = ("ana", "bob")
_shares = st.dictionaries(
    st.sampled_from(DEPLOYMENTS), st.lists(st.sampled_from(DEPLOYMENTS), unique=True, max_size=3), max_size=4
)
_said = st.lists(
    st.tuples(st.sampled_from(DEPLOYMENTS), st.sampled_from(USERS), st.booleans()),
    min_size=1,
    max_size=10,
    unique=True,
)


@settings(
    max_examples=many(60, least=10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(shares=_shares, said=_said)
def test_nothing_of_any_user_or_unshared_deployment_is_ever_found(shares, said):
    asyncio.run(_holds(shares, said))


async def _holds(shares, said):
    given_shares = {reader: tuple(one for one in named if one != reader) for reader, named in shares.items()}
    async with service(**given_shares) as memory:
        for deployment, user, is_global in said:
            if is_global:
                text = f"We are open on weekdays in {deployment} by {user}"
                await known(memory, deployment, "opening_hours", text, user=user)
            else:
                await memory.user(user, deployment).remember(f"I am open on weekdays in {deployment}, {user}")
        await memory.settle()
        for deployment in DEPLOYMENTS:
            for user in (*USERS, "nobody"):
                may = {Scope(deployment, user), Scope(deployment, None)}
                may |= {Scope(name, None) for name in given_shares.get(deployment, ())}
                await _finds_only(memory.user(user, deployment), may, said)


async def _finds_only(user, may, said):
    """Everything `user` may find is found, and nothing else, whichever way it is looked for."""
    question = "when are you open on weekdays?"
    hits = await user.query(question, limit=100, include_past=True)
    assert {hit.scope for hit in hits} <= may
    wanted = {Scope(where, None if is_global else who) for where, who, is_global in said}
    assert {hit.scope for hit in hits} == may & wanted
    for hit in hits:
        assert f"in {hit.scope.deployment}" in hit.text
        assert hit.scope.deployment == user.scope.deployment or hit.memory.author is None
    got = await user.get("opening_hours")
    globals_ = {scope.deployment for scope in may & wanted if scope.user is None}
    assert (got is None) == (not globals_)
    assert got is None or any(f"in {name} " in got.text for name in globals_)
    packed = (await user.brief(question, budget_tokens=2000)).text
    for where, who, is_global in said:
        if Scope(where, None if is_global else who) not in may:
            own = f"in {where} by {who}" if is_global else f"in {where}, {who}"
            assert own not in packed
    exported = await user.export()
    assert all(memory["author"] == user.scope.user for memory in exported["memories"])
