"""Where nobody named an embedder and the local one is not installed, a memory opens all the same, and says so."""

from __future__ import annotations

import contextlib

import pytest

import echoic
from echoic import Turn
from echoic.errors import EmbedderMissing

SAID = "I parked the estate car in the garage on Green Street."
MEANT = "What did I do with my automobile?"


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/echoic.db"


@pytest.fixture
def bare(monkeypatch):
    """A machine without weights, until they are installed."""

    def find(*_):
        raise EmbedderMissing("the weights are not on this machine. Install them")

    with monkeypatch.context() as machine:
        machine.setattr("echoic.embedding.local.find", find)
        yield machine


async def written_without_weights(url):
    """What a recall gives by words where there are no weights."""
    memory = echoic.open(url)
    with pytest.warns(UserWarning, match=r"words and sounds only.*Install them"):
        await memory.open()
    async with contextlib.aclosing(memory):
        ana = memory.user("ana")
        call = await ana.conversation("call", agent="desk")
        await call.append(Turn(speaker="user", text=SAID), Turn(speaker="user", text="My name is Ana."))
        await call.complete()
        await memory.distil()
        assert not memory.embedder.semantic
        jobs = await memory.jobs()
        assert (jobs.waiting, jobs.failing, jobs.parked) == (0, 0, ())
        name = await ana.get("user_name")
        assert name is not None
        assert name.text == "Ana"
        return await ana.recall("estate car")


async def test_without_weights_words_answer_and_the_outcome_says_that_meaning_was_not_searched(url, bare):
    found = await written_without_weights(url)
    assert found.hits[0].text == SAID
    assert (found.outcome, found.cut) == ("unavailable", ("vector",))


async def test_what_was_written_without_weights_is_embedded_once_they_are_there(url, bare):
    await written_without_weights(url)
    bare.undo()
    async with echoic.open(url) as memory:
        assert await memory.settle(30)
        found = await memory.user("ana").recall(MEANT, limit=1)
        assert found.outcome == "complete"
        assert "vector" in found.hits[0].ranks
        assert found.hits[0].text == SAID
        assert memory.embedder.semantic


async def test_a_local_embedder_that_was_named_is_missed(url, bare):
    with pytest.raises(EmbedderMissing, match="Install them"):
        await echoic.open(url, embedder="local").open()
