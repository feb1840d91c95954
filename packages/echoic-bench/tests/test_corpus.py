from __future__ import annotations

from dataclasses import replace

import pytest

from echoic.embedding import embedder_from
from echoic.errors import EmbedderMissing, EmbedderUnavailable, InvalidInput
from echoic.memory.records import record_of_turn
from echoic.memory.service import MemoryService
from echoic.stores.base import Put
from echoic.stores.sqlite import SQLiteStore
from echoic.types import Memory, Scope, Turn
from echoic_bench.callers import dataset_of, people
from echoic_bench.corpus import DEPLOYMENT, VectorsOnly, corpus_of
from echoic_bench.keyvalue import measure_keyvalue, updates
from echoic_bench.labelled import Dataset
from echoic_bench.recall import measure_recall


async def weights_are_here():
    embedder = embedder_from("local")
    try:
        await embedder.open()
    except EmbedderMissing as missing:
        pytest.skip(str(missing))
    await embedder.aclose()


class Counting:
    """The lexical embedder, which says how many texts it was given, and may be taken down."""

    def __init__(self):
        self._inner = embedder_from("lexical")
        self.texts = 0
        self.down = False

    @property
    def spec(self):
        return self._inner.spec

    semantic = False

    async def open(self):
        await self._inner.open()

    async def aclose(self):
        await self._inner.aclose()

    async def embed(self, texts, kind):
        self.texts += len(texts)
        if self.down:
            raise EmbedderUnavailable("taken down")
        return await self._inner.embed(texts, kind)


async def test_every_fusion_is_asked_every_question_and_the_first_is_compared(talks):
    async with corpus_of(talks, embedder_from("lexical")) as corpus:
        found = await measure_recall(corpus, ["blend", "rrf", "text"])
    assert [len(tally.rows) for tally in found.tallies.values()] == [3, 3, 3]
    assert found.tallies["blend"].percent()["R@10"] == 100.0
    measured = found.as_json()
    assert set(measured["blend over"]) == {"rrf", "text"}
    assert measured["fusions"]["blend"]["by category"]["home"]["questions"] == 2
    assert measured["leaks"] == 0


async def test_control_what_another_user_said_in_the_wrong_scope_is_counted_as_a_leak(talks):
    async with corpus_of(talks, embedder_from("lexical")) as corpus:
        stranger = talks.users[1].items[0]
        store = SQLiteStore(corpus.path)
        async with MemoryService(store, corpus.embedder) as memory:
            await store.write(Scope(DEPLOYMENT, "ana"), [Put(record=record_of_turn(stranger))])
            assert await memory.settle()
        tally = await corpus.ask("blend")
    assert tally.leaks > 0


async def test_a_folder_that_is_kept_spares_the_next_run_every_embedding(talks, tmp_path):
    first, second = Counting(), Counting()
    async with corpus_of(talks, first, tmp_path) as corpus:
        before = (await corpus.ask("blend")).percent()
    async with corpus_of(talks, second, tmp_path) as corpus:
        after = (await corpus.ask("blend")).percent()
    assert before == after
    assert (first.texts, second.texts) == (talks.rows + talks.questions, talks.questions)


async def test_without_word_pieces_another_store_is_filled_and_they_are_in_none_of_it(talks, tmp_path):
    await weights_are_here()
    sizes = []
    for embedder in (embedder_from("local"), VectorsOnly(embedder_from("local"))):
        async with corpus_of(talks, embedder, tmp_path) as corpus:
            async with corpus.opened() as memory:
                partition = await memory._parts.store.load(Scope(DEPLOYMENT, "ana"))
                sizes.append(len(partition.tokens))
            assert (await corpus.ask("blend")).percent()["R@10"] == 100.0
    assert sizes[0] > 0
    assert sizes[1] == 0
    assert len(list(tmp_path.glob("*.db"))) == 2


async def test_other_words_are_another_store(talks, tmp_path):
    async with corpus_of(talks, embedder_from("lexical"), tmp_path) as corpus:
        path = corpus.path
    ana, ben = talks.users
    turn = ana.items[0]
    changed = replace(ana, items=(replace(turn, text="I moved to Ghent."), *ana.items[1:]))
    async with corpus_of(Dataset(name=talks.name, users=(changed, ben)), Counting(), tmp_path) as corpus:
        assert corpus.path != path


async def test_an_interrupted_filling_is_taken_up_again(talks, tmp_path):
    broken = Counting()
    broken.down = True
    with pytest.raises(EmbedderUnavailable, match="wait to be embedded"):
        async with corpus_of(talks, broken, tmp_path):
            pass
    async with corpus_of(talks, embedder_from("lexical"), tmp_path) as corpus:
        assert (await corpus.ask("blend")).percent()["R@10"] == 100.0


async def test_a_question_that_could_not_be_embedded_ends_the_measurement(talks):
    embedder = Counting()
    async with corpus_of(talks, embedder) as corpus:
        embedder.down = True
        with pytest.raises(EmbedderUnavailable, match="answered without"):
            await corpus.ask("blend")


async def test_an_unknown_fusion_is_refused(talks):
    async with corpus_of(talks, embedder_from("lexical")) as corpus:
        with pytest.raises(InvalidInput, match="unknown fusion 'cold'"):
            await measure_recall(corpus, ["cold"])


def test_made_up_callers_are_the_same_every_time_and_no_two_are_alike():
    first, again = list(people(3)), list(people(3))
    assert first == again
    assert first[0] != first[1]
    assert len(first[0].turns) == 500
    assert {question.key for question in first[0].questions} == {m.key for m in first[0].memories}


def test_of_made_up_callers_every_question_is_answered_by_the_one_value_that_holds():
    for user in dataset_of(5, turns=10).users:
        held = {item.id: item for item in user.items if isinstance(item, Memory)}
        for question in user.answerable:
            (name,) = question.evidence
            assert held[name].current
        assert any(not memory.current for memory in held.values())
        assert any(isinstance(item, Turn) for item in user.items)


async def test_values_are_found_by_their_keys_and_what_holds_comes_first():
    found = await measure_keyvalue(embedder_from("lexical"), people=6, turns=40, fusions=["blend"])
    tally = found.recall.tallies["blend"]
    assert tally.percent("plain")["hit@1"] >= 95
    assert found.updates.found > 20
    assert found.updates.share >= 0.99
    assert found.as_json()["leaks"] == 0


async def test_control_an_old_value_labelled_as_the_answer_is_seen_to_stand_behind():
    dataset = dataset_of(4, turns=10)
    users = [replace(user, questions=tuple(_of_the_past(user))) for user in dataset.users]
    async with corpus_of(Dataset(name="past", users=tuple(users)), embedder_from("lexical")) as corpus:
        found = await updates(corpus, "blend")
    assert found.found > 20
    assert found.share < 0.1


def _of_the_past(user):
    """The same questions, answered by the first value ever told."""
    for question in user.answerable:
        (name,) = question.evidence
        yield replace(question, evidence=frozenset([f"{name.rpartition('-')[0]}-0"]))
