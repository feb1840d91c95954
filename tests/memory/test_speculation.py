"""Recall while the caller still speaks: what is ready at the end is right, and what is stale is never given."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from echoic import InvalidInput, NotOpen, Recall, StoreUnavailable, Turn
from echoic.checks import MAX_SEARCHED_CHARACTERS
from echoic.embedding import embedder_from
from echoic.embedding.base import CachedEmbedder
from echoic.errors import EmbedderUnavailable
from echoic.memory import speculation
from echoic.memory.service import MemoryService
from echoic.memory.speculation import REFRESH_S, Speculation
from echoic.partition import Partition
from echoic.stores import store_from
from echoic.stores.in_memory import InMemoryStore
from echoic.types import EmbeddingSpec, Scope

FACTS = {
    "dog_name": "Rex",
    "home": "Boston",
    "work": "A bakery in Salem",
    "sister": "Noa lives in Oslo",
    "allergy": "Peanuts",
}
ASKED = "what is the name of my dog"


def grown(text):
    """The interim transcripts of an utterance, word by word."""
    words = text.split()
    return [" ".join(words[: n + 1]) for n in range(len(words))]


async def settled(listening):
    """Until what was heard has been searched for."""
    while listening._running or listening._waiting:
        await asyncio.sleep(0.001)


@pytest.fixture
async def service():
    async with MemoryService(store_from("memory://"), embedder_from("lexical")) as made:
        yield made


@pytest.fixture
async def ana(service):
    user = service.user("ana")
    for key, value in FACTS.items():
        await user.set(key, value)
    await service.settle()
    return user


def ids(recall):
    return [(hit.memory or hit.turn).id for hit in recall.hits]


@pytest.mark.parametrize(
    "final",
    [
        ASKED,
        "What is the name of my dog?",  # as recognisers punctuate the last one
        f"  {ASKED} ",
    ],
)
async def test_what_was_heard_before_the_end_is_ready_at_the_end_and_the_same_as_asked_anew(ana, final):
    async with ana.listen() as listening:
        for partial in grown(ASKED):
            listening.partial(partial)
            await settled(listening)
        recall = await listening.final(final)
        assert listening.statistics.ready == 1
    assert recall.hits[0].text == "Rex"
    assert ids(recall) == ids(await ana.recall(final, limit=5))


async def test_a_last_word_that_changes_the_question_is_searched_for(ana):
    async with ana.listen() as listening:
        listening.partial("where is my sister")
        await settled(listening)
        recall = await listening.final("where is my sister's dog")
        assert listening.statistics.ready == 0
    assert ids(recall) == ids(await ana.recall("where is my sister's dog", limit=5))


async def test_little_words_that_change_what_is_asked_are_not_passed_over(ana):
    async with ana.listen() as listening:
        for heard, final in [
            ("where was my home", "where was my home before"),
            ("what did I say", "what did you say"),
            ("how is my dog", "how old is my dog"),
        ]:
            listening.partial(heard)
            await settled(listening)
            await listening.final(final)
        assert listening.statistics.ready == 0


async def test_nothing_that_was_written_or_forgotten_meanwhile_is_missed(ana):
    async with ana.listen() as listening:
        listening.partial(ASKED)
        await settled(listening)
        await ana.set("dog_name", "Bello")
        assert (await listening.final(ASKED)).hits[0].text == "Bello"
        assert listening.statistics.ready == 0

        listening.partial(ASKED)
        await settled(listening)
        await ana.forget()
        assert (await listening.final(ASKED)).hits == ()


async def until(true, seconds=60.0):
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.002)


async def refreshed(listening):
    """Wait until what was found is what would be found now."""
    async with asyncio.timeout(60):
        while await listening.peek() is None:
            await asyncio.sleep(0.002)
    assert listening.statistics.refreshed


async def test_what_is_written_while_the_caller_speaks_is_found_before_they_end(service, ana):
    async with ana.listen() as listening:
        listening.partial(ASKED)
        await settled(listening)
        await ana.set("dog_name", "Bello")
        await service.settle()  # its vector is a second change
        await refreshed(listening)
        assert (await listening.final(ASKED)).hits[0].text == "Bello"
        assert listening.statistics.ready == 1


async def test_a_question_asked_once_more_is_looked_up_anew_where_something_changed_since(service, ana):
    async with ana.listen() as listening:
        listening.partial(ASKED)
        await settled(listening)
        await listening.final(ASKED)
        await ana.set("dog_name", "Bello")
        await service.settle()  # its vector is a second change
        listening.partial(ASKED)
        await refreshed(listening)
        assert (await listening.final(ASKED)).hits[0].text == "Bello"
        assert listening.statistics.ready == 2


async def test_what_is_known_so_far_can_be_had_before_the_end_and_the_utterance_goes_on(ana):
    async with ana.listen() as listening:
        assert await listening.peek() is None
        listening.partial(ASKED)
        assert await listening.peek() is None, "nothing is searched for it"
        await settled(listening)
        early = await listening.peek()
        assert early.hits
        assert early is await listening.peek()
        assert await listening.final(ASKED) == early
        assert (listening.statistics.searches, listening.statistics.ready) == (1, 1)
        listening.partial(ASKED)
        await ana.set("dog_name", "Bello")
        assert await listening.peek() is None, "what was found is older than what was written"


async def test_whoever_prepares_more_is_told_the_answer_that_the_final_gives(ana):
    told = []
    async with ana.listen() as listening:
        listening.on_found = told.append
        for partial in grown(ASKED):
            listening.partial(partial)
            await settled(listening)
        final = await listening.final(f"{ASKED}?")
    assert told[-1] is final


async def test_two_callers_never_hear_each_others_answers(service, ana):
    bob = service.user("bob")
    await bob.set("dog_name", "Fido")
    await service.settle()
    async with ana.listen() as hers, bob.listen() as his:
        for partial in grown(ASKED):
            hers.partial(partial)
            his.partial(partial)
        await settled(hers)
        await settled(his)
        assert {hit.scope for hit in (await hers.final(ASKED)).hits} == {ana.scope}
        assert {hit.scope for hit in (await his.final(ASKED)).hits} == {bob.scope}


async def test_a_correction_of_earlier_words_is_taken_like_any_other_text(ana):
    async with ana.listen() as listening:
        for partial in ("where", "wear is my", "where is my hum", "where is my home"):
            listening.partial(partial)
            await settled(listening)
        recall = await listening.final("where is my home")
        assert listening.statistics.corrections == 3
        assert listening.statistics.ready == 1
    assert recall.hits[0].text == "Boston"


async def test_an_utterance_that_is_dropped_leaves_nothing_behind(ana):
    async with ana.listen() as listening:
        listening.partial("what am I allergic to")
        listening.reset()
        await settled(listening)
        listening.partial("where is my home")
        await settled(listening)
        assert (await listening.final("where is my home")).hits[0].text == "Boston"


async def test_another_reading_that_turns_out_to_be_meant_is_ready(ana):
    async with ana.listen() as listening:
        listening.partial("where is my hum", alternatives=["where is my home", "wear is my home"])
        await settled(listening)
        recall = await listening.final("where is my home")
        assert listening.statistics.ready == 1
    assert recall.hits[0].text == "Boston"


async def test_another_reading_of_the_same_words_that_comes_later_counts(ana):
    async with ana.listen() as listening:
        listening.partial("where is my hum", alternatives=["wear is my hum"])
        await settled(listening)
        listening.partial("where is my hum", alternatives=["where is my home", "wear is my hum"])
        await settled(listening)
        recall = await listening.final("where is my home")
        assert listening.statistics.ready == 1
        assert listening.statistics.partials == 1
    assert recall.hits[0].text == "Boston"


@pytest.mark.parametrize("reading", ["half a \ud800", "a \0", "long " * 10_000, ""])
async def test_a_reading_that_cannot_be_searched_for_takes_no_answer_away(service, reading):
    bea = service.user("bea")
    await bea.set("allergy", "Peanuts")
    async with bea.listen() as listening:
        listening.partial("zzyzx", alternatives=[reading])
        recall = await listening.final("zzyzx", alternatives=[reading, "my allergy"])
    assert recall.hits[0].text == "Peanuts"


async def test_where_the_final_finds_nothing_its_alternatives_are_tried(service):
    bea = service.user("bea")
    await bea.set("allergy", "Peanuts")
    async with bea.listen() as listening:
        assert (await listening.final("zzyzx")).hits == ()
        recall = await listening.final("zzyzx", alternatives=["qqq", "my allergy"])
    assert recall.hits[0].text == "Peanuts"


async def test_a_final_without_partials_is_a_plain_recall(ana):
    async with ana.listen() as listening:
        assert ids(await listening.final(ASKED)) == ids(await ana.recall(ASKED, limit=5))


async def test_what_cannot_be_asked_is_refused_and_after_the_end_nothing_is_heard(ana):
    listening = ana.listen()
    listening.partial("")
    listening.partial("   ")
    for bad in ("", " ", "a\0b"):
        with pytest.raises(InvalidInput):
            await listening.final(bad)
    with pytest.raises(InvalidInput, match="deadline_ms"):
        await listening.final("x", deadline_ms=0)
    await listening.aclose()
    await listening.aclose()
    with pytest.raises(NotOpen):
        listening.partial("x")
    with pytest.raises(NotOpen):
        await listening.final("x")


async def test_a_partial_that_cannot_be_searched_for_fails_nobody(ana):
    async with ana.listen() as listening:
        listening.partial("half a \0 character")
        await settled(listening)
        assert (await listening.final("where is my home")).hits[0].text == "Boston"


@pytest.mark.parametrize("text", ["may " * 20_000, "where is my home \0 or " * 4000 + "where is my home"])
async def test_of_a_partial_of_any_length_the_end_is_searched_for(ana, text):
    async with ana.listen() as listening:
        listening.partial(text)
        assert len(listening._heard) <= MAX_SEARCHED_CHARACTERS
        await settled(listening)
        assert listening._answering(listening._heard) is not None


@pytest.mark.parametrize("ended", [True, False])
async def test_what_was_found_for_a_time_is_searched_for_again_on_another_day(monkeypatch, ended):
    now, asked = [datetime(2026, 11, 18, 12, tzinfo=UTC)], "what did I say yesterday"
    parts = store_from("memory://"), embedder_from("lexical")
    async with MemoryService(*parts, clock=lambda: now[0]) as service:
        user = service.user("ana")
        call = await user.conversation("call")
        for day in (17, 18):
            said = f"Water the ferns, day {day}."
            at = datetime(2026, 11, day, 9, tzinfo=UTC)
            await call.append(Turn(speaker="user", text=said, said_at=at), learn=False)
        await service.settle()
        async with user.listen(limit=1) as listening:
            listening.partial(asked)
            await settled(listening)
            if ended:
                assert (await listening.final(asked)).hits[0].text == "Water the ferns, day 17."
            else:  # the caller fell silent
                monkeypatch.setattr(speculation, "_WATCHED_S", -1.0)
            now[0] += timedelta(days=1)
            assert (await listening.final(asked)).hits[0].text == "Water the ferns, day 18."


# -- with searches that end when they are told to


class Gate:
    """A searcher whose searches wait to be let go, by text."""

    sessions, level = (), "account"

    def __init__(self):
        self.asked: list[str] = []
        self.cancelled: list[str] = []
        self.let_go: dict[str, asyncio.Event] = {}
        self.failing: set[str] = set()
        self.partition = Partition()

    async def search(self, text, *, deadline_ms=None, meanwhile=None):
        self.asked.append(text)
        try:
            if text in self.let_go:
                await self.let_go[text].wait()
        except asyncio.CancelledError:
            self.cancelled.append(text)
            raise
        if text in self.failing:
            raise StoreUnavailable("could not look")
        return Recall(hits=(), outcome="complete")

    async def partitions(self):
        return [self.partition]

    def hold(self, *texts):
        self.let_go |= {text: asyncio.Event() for text in texts}


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_of_partials_that_come_faster_than_they_can_be_searched_the_newest_counts():
    gate = Gate()
    gate.hold("tea")
    async with Speculation(gate) as listening:
        for partial in ("tea", "tea with", "tea with milk", "tea with milk today"):
            listening.partial(partial)
            await turns()
        gate.let_go["tea"].set()
        await settled(listening)
        assert gate.asked == ["tea", "tea with milk today"]
        assert listening.statistics.passed_over == 2


async def test_readings_of_the_same_words_are_searched_once_and_behind_the_words_themselves():
    gate = Gate()
    gate.hold("tea")
    async with Speculation(gate) as listening:
        listening.partial("tea")
        await turns()
        listening.partial("tea with milk", alternatives=["tee"])
        listening.partial("tea with milk")  # nothing new, and nothing taken back
        listening.partial("tea with milk", alternatives=["tea", "tee with silk", "tea with milk"])
        listening.partial("tea with milk", alternatives=["tea", "tee with silk", "tea with milk"])
        listening.partial("", alternatives=["of nothing"])
        gate.let_go["tea"].set()
        await settled(listening)
        assert gate.asked == ["tea", "tea with milk", "tee with silk"]


async def test_a_search_that_hangs_does_not_keep_newer_words_waiting():
    gate = Gate()
    gate.hold("tea")
    async with Speculation(gate) as listening:
        listening.partial("tea")
        await turns()
        listening.partial("tea with lemon")
        await until(lambda: len(gate.asked) > 1)
        assert gate.asked == ["tea", "tea with lemon"]
        listening.partial("tea with lemon juice")
        await until(lambda: len(gate.asked) > 2)
        await settled_but(listening, 1)
        assert gate.asked[-1] == "tea with lemon juice"


async def settled_but(listening, running):
    while len(listening._running) > running or listening._waiting:
        await asyncio.sleep(0.001)


async def test_nothing_is_looked_after_once_the_utterance_has_ended():
    gate = Gate()
    looks = 0
    partitions = gate.partitions

    async def looked():
        nonlocal looks
        looks += 1
        return await partitions()

    gate.partitions = looked
    async with Speculation(gate) as listening:
        listening.partial("tea")
        before = looks
        await until(lambda: looks > before + 2)
        await listening.final("tea")
        ended = looks
        await asyncio.sleep(REFRESH_S * 4)
        assert looks == ended
        assert gate.asked == ["tea"], "nothing changed, so nothing was searched for again"


async def test_a_store_that_cannot_be_looked_at_meanwhile_does_not_end_listening(ana):
    async with ana.listen() as listening:
        listening.partial(ASKED)
        await settled(listening)
        searcher = listening._searcher
        failures = 0

        class Away:
            search = searcher.search
            sessions, level = (), "account"

            async def partitions(self):
                nonlocal failures
                failures += 1
                raise StoreUnavailable("away")

        listening._searcher = Away()
        await until(lambda: failures > 1)
        listening._searcher = searcher
        assert (await listening.final(ASKED)).hits[0].text == "Rex"


async def test_the_final_stops_what_is_stale_and_joins_what_is_its_own():
    gate = Gate()
    gate.hold("tea", "tea with milk")
    async with Speculation(gate) as listening:
        listening.partial("tea")
        await turns()
        listening.partial("tea with milk")
        await until(lambda: len(gate.asked) > 1)
        asking = asyncio.create_task(listening.final("tea with milk"))
        await turns()
        assert gate.cancelled == ["tea"]
        gate.let_go["tea with milk"].set()
        assert (await asking).outcome == "complete"
        assert gate.asked == ["tea", "tea with milk"], "it was not searched for twice"


async def test_a_search_that_failed_is_tried_again_by_the_final_and_its_failure_told():
    gate = Gate()
    gate.failing.add("tea")
    async with Speculation(gate) as listening:
        listening.partial("tea")
        await settled(listening)
        with pytest.raises(StoreUnavailable):
            await listening.final("tea")
        gate.failing.clear()
        assert (await listening.final("tea")).outcome == "complete"


async def test_a_caller_who_gives_up_waiting_for_the_final_is_let_go():
    gate = Gate()
    gate.hold("tea")
    async with Speculation(gate) as listening:
        listening.partial("tea")
        await turns()
        asking = asyncio.create_task(listening.final("tea"))
        await turns()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert gate.cancelled == []


async def test_words_that_change_nothing_are_not_searched_for_once_the_ranking_stands_still(ana):
    async with ana.listen() as listening:
        for partial in ("my dog", "my dog is"):
            listening.partial(partial)
            await settled(listening)
        assert listening.statistics.searches == 2
        listening.partial("my dog is the")
        await settled(listening)
        assert listening.statistics.searches == 2
        assert listening.statistics.spared == 1
        recall = await listening.final("my dog is the, you know")
        assert listening.statistics.ready == 0, "you is another question than mine"
        listening.partial("my dog is the")
        recall = await listening.final("My dog is the.")
        assert listening.statistics.ready == 1
    assert ids(recall) == ids(await ana.recall("my dog is the", limit=5))


# -- with an embedder that is late


class Late:
    """Vectors by the words of a text; held where a text holds "slow"."""

    spec = EmbeddingSpec("late", 4)
    semantic = True

    def __init__(self):
        self.let_go = asyncio.Event()
        self.down = False
        self.texts: list[str] = []

    async def open(self):
        pass

    async def aclose(self):
        pass

    async def embed(self, texts, kind):
        self.texts += texts
        if kind == "query" and any("slow" in text for text in texts):
            await self.let_go.wait()
        if self.down:
            raise EmbedderUnavailable("down")
        return np.array([_unit("cat" in text, "dog" in text) for text in texts], np.float32)


def _unit(cat, dog):
    raw = np.array([1.0 + 8 * cat, 1.0 + 8 * dog, 0.5, 0.5])
    return raw / np.linalg.norm(raw)


@pytest.fixture
async def late():
    embedder = Late()
    async with MemoryService(store_from("memory://"), CachedEmbedder(embedder)) as service:
        user = service.user("ana")
        call = await user.conversation("call")
        said_at = datetime(2026, 5, 4, tzinfo=UTC)
        for number, text in enumerate(["The dog sleeps.", "The cat eats.", "Rain fell."]):
            await call.append(Turn(speaker="user", text=text, id=str(number), said_at=said_at))
        await service.settle()
        yield embedder, user
        embedder.let_go.set()


async def test_by_the_deadline_the_best_so_far_is_given_and_says_what_it_lacks(late):
    embedder, user = late
    async with user.listen() as listening:
        listening.partial("about the dog")
        await settled(listening)
        recall = await listening.final("about the dog so slow", deadline_ms=2000)
        assert recall.outcome == "deadline"
        assert recall.cut == ("vector",)
        # words of the whole, and the meaning of what was heard before
        assert "vector" in recall.hits[0].ranks
        assert recall.hits[0].text == "The dog sleeps."
        assert (listening.statistics.ready, listening.statistics.late) == (0, 1)
        embedder.let_go.set()
        again = await listening.final("about the dog so slow", deadline_ms=60_000)
        assert (again.outcome, again.cut) == ("complete", ())
        assert embedder.texts.count("about the dog so slow") == 1, "what came late was kept"


class SlowStore(InMemoryStore):
    """Loads `slow` scopes only when it is let."""

    def __init__(self):
        super().__init__()
        self.let_go = asyncio.Event()
        self.slow: set[Scope] = set()

    async def load(self, scope):
        if scope in self.slow:
            await self.let_go.wait()
        return await super().load(scope)


async def test_a_partition_that_is_not_loaded_by_the_deadline_is_named_and_never_taken_for_nothing_known():
    store = SlowStore()
    async with MemoryService(store, embedder_from("lexical")) as service:
        ana = service.user("ana")
        await ana.set("dog_name", "Rex")
        for slow, cut, hits in [
            ({ana.scope.everyone}, ("global",), 1),
            ({ana.scope, ana.scope.everyone}, ("own", "global"), 0),
        ]:
            store.slow = slow
            recall = await ana.recall("dog name", deadline_ms=2000)
            assert recall.outcome == "deadline"
            assert tuple(name for name in recall.cut if name in {"own", "global"}) == cut
            assert len(recall.hits) == hits
        store.let_go.set()
        assert (await ana.recall("dog name", deadline_ms=60_000)).outcome == "complete"


async def test_the_meaning_of_an_earlier_utterance_never_stands_in(late):
    embedder, user = late
    async with user.listen() as listening:
        listening.partial("about the cat")
        await settled(listening)
        await listening.final("about the cat")
        recall = await listening.final("rain so slow", deadline_ms=2000)
        assert recall.outcome == "deadline"
        assert all("vector" not in hit.ranks for hit in recall.hits)
        assert recall.hits[0].text == "Rain fell."
    assert embedder.texts.count("about the cat") == 1


async def test_what_was_asked_is_forgotten_with_the_user(late):
    embedder, user = late
    for _ in range(2):
        await user.recall("where is the dog")
    assert embedder.texts.count("where is the dog") == 1
    await user.forget()
    await user.recall("where is the dog")
    assert embedder.texts.count("where is the dog") == 2


async def test_while_the_embedder_is_down_words_answer_and_nothing_of_it_is_taken_for_ready(late):
    embedder, user = late
    embedder.down = True
    async with user.listen() as listening:
        listening.partial("where is the dog sleeping")
        await settled(listening)
        recall = await listening.final("where is the dog sleeping")
        assert recall.outcome == "unavailable"
        assert recall.hits[0].text == "The dog sleeps."
        embedder.down = False
        assert (await listening.final("where is the dog sleeping")).outcome == "complete"
        assert listening.statistics.ready == 0


class Held:
    """Finds nothing, and each text only when it is let."""

    sessions, level = (), "account"

    def __init__(self, *texts):
        self.let_go = {text: asyncio.Event() for text in texts}
        self.asked = {text: asyncio.Event() for text in texts}

    async def search(self, text, **_options):
        self.asked[text].set()
        await self.let_go[text].wait()
        return Recall(hits=(), outcome="complete", cut=())

    async def partitions(self):
        return []


async def test_what_is_heard_before_the_last_final_is_answered_is_an_utterance_of_its_own():
    dog, cat = "my dog", "and what about my cat"
    held, told = Held(dog, cat), []
    async with Speculation(held) as listening:
        listening.on_found = told.append
        final = asyncio.create_task(listening.final(dog))
        await held.asked[dog].wait()
        listening.partial(cat)
        held.let_go[dog].set()
        await final
        assert told == []
        held.let_go[cat].set()
        await settled(listening)
        assert len(told) == 1
        assert await listening.final(cat) is told[0]
        assert listening.statistics.ready == 1
