"""An agent's audio moves on the loop that memory is asked in: what takes long does not run there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from datetime import UTC, datetime

import numpy as np
import pytest

import echoic
from echoic import Turn
from echoic.memory import mentions
from echoic.memory import recall as recalling
from echoic.memory.extraction.reconciliation import Reading
from echoic.memory.extraction.rule_reader import RuleExtractor
from echoic.partition import distinct
from echoic.types import Memory

TURNS = 120


async def _asked(service):
    ana = service.user("ana")
    call = await ana.conversation("call")
    said = [f"On day {n} I took train {n * 7 % 31} to town {n % 17}." for n in range(TURNS)]
    await call.append(*(Turn(speaker="user", text=text) for text in said), learn=False)
    await service.settle()
    found = await ana.recall("which train did I take on day 40?")
    return [hit.text for hit in found.hits], (await ana.brief("which train did I take on day 40?")).text


async def test_a_memory_of_5000_turns_is_ranked_beside_the_loop_and_finds_the_same(monkeypatch):
    assert recalling._INLINE_ROWS < 5000
    threads, here = [], threading.current_thread()

    def seen(*asked, **options):
        threads.append(threading.current_thread())
        return rank(*asked, **options)

    rank = recalling.rank
    monkeypatch.setattr(recalling, "rank", seen)
    answers = []
    for rows, beside in ((4 * TURNS, False), (TURNS - 1, True)):
        monkeypatch.setattr(recalling, "_INLINE_ROWS", rows)
        threads.clear()
        async with echoic.open("memory://", embedder="lexical") as service:
            answers.append(await _asked(service))
        assert [thread is not here for thread in threads] == [beside] * len(threads)
    assert answers[0] == answers[1]
    assert answers[0][0]


@pytest.mark.parametrize("destroyed", [True, False])
async def test_what_says_a_memory_is_looked_for_beside_the_loop(monkeypatch, destroyed):
    threads, here = [], threading.current_thread()

    class Seen(mentions.TextPassage):
        def __init__(self, *given):
            threads.append(threading.current_thread())
            super().__init__(*given)

    async with echoic.open("memory://", embedder="lexical") as service:
        ana = service.user("ana")
        call = await ana.conversation("call")
        await call.append(Turn(speaker="user", text="My sister Marta came.", id="said"), learn=False)
        await call.store("the visit", "Marta, her sister, came.")
        await ana.set("sister", "Marta", visibility="private")
        await ana.remember("Her sister Marta came on Monday.")
        monkeypatch.setattr(mentions, "TextPassage", Seen)
        await (ana.forget(key="sister") if destroyed else ana.delete("sister"))
    assert threads
    assert here not in threads


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("sister", "Marta", "Marta came, and she left, "),
        ("sister", "Marta", "Marta came. My sister left. "),
        ("sister", "Marta", "Marta "),
        ("sister", "Marta", "sister, Marta, "),
        ("age", "42", "well, you know, so "),
    ],
)
def test_what_says_a_memory_is_found_in_a_long_turn_in_time_that_grows_with_it(monkeypatch, key, value, said):
    read = [0]

    class Counting(mentions.ClaimToken):
        def __getattribute__(self, name):
            read[0] += 1
            return object.__getattribute__(self, name)

    monkeypatch.setattr(mentions, "ClaimToken", Counting)
    counts = []
    for size in (250, 1000):
        at = datetime.now(UTC)
        turn = Turn(speaker="user", text=(said * size)[: 4 * size], id="t", conversation="c", said_at=at)
        read[0] = 0
        mentions.said_in([turn], [Memory(id="", key=key, text=value, valid_from=at, source=("t",))])
        counts.append(read[0])
    assert counts[1] < 6 * counts[0], counts


@pytest.mark.parametrize("asked", ["recall", "brief"])
def test_once_warm_the_first_question_of_a_call_loads_no_module(asked):
    """One takes the loop 50 ms and more."""
    program = f"""
        import asyncio, sys, echoic
        from echoic import Turn
        async def main():
            async with echoic.open("memory://", embedder="lexical") as service:
                ana = service.user("ana")
                call = await ana.conversation("call")
                await call.append(Turn(speaker="user", text="My dog is called Rex."), learn=False)
                await service.settle()
                await ana.warm()
                before = set(sys.modules)
                found = await ana.{asked}("what is my dog called?")
                print(sorted(set(sys.modules) - before), "Rex" in str(found))
        asyncio.run(main())
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ran.stdout == "[] True\n"


def test_the_first_conversation_loads_no_module_on_the_loop():
    program = """
        import asyncio, sys, threading, echoic
        class Seen:
            on_loop = []
            def find_spec(self, name, path=None, target=None):
                if threading.current_thread() is threading.main_thread():
                    self.on_loop.append(name)
        async def main():
            async with echoic.open("memory://", embedder="lexical") as service:
                sys.meta_path.insert(0, Seen())
                call = await service.user("ana").conversation("call")
                print("echoic.memory.conversation" in sys.modules, Seen.on_loop)
        asyncio.run(main())
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ran.stdout == "True []\n"


def test_distinct_numbers_are_those_that_numpy_finds():
    chance = np.random.default_rng(5)
    for size in (0, 1, 2, 40):
        numbers = chance.integers(-3, 9, (size, 3), dtype=np.int32)
        assert distinct(numbers).tolist() == np.unique(numbers).tolist()


async def test_while_a_long_conversation_is_heard_the_loop_runs_after_every_turn():
    turns = [Turn(speaker="user", text=f"I have {n} cats.", conversation="c") for n in range(TURNS)]
    read = asyncio.ensure_future(RuleExtractor().extract(Reading(turns=tuple(turns))))
    rounds = 0
    while not read.done():
        rounds += 1
        await asyncio.sleep(0)
    assert await read
    assert rounds >= TURNS
