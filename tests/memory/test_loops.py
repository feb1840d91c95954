"""A service belongs to the event loop it was opened in: elsewhere it says so, instead of learning nothing."""

from __future__ import annotations

import asyncio
import threading

import pytest

import echoic
import echoic.sync
from echoic import Turn
from echoic.errors import NotOpen

SAID = "My name is Ana and I have a dog called Rex."


async def _say(service, name, text=SAID):
    call = await service.user("ana").conversation(name)
    await call.append(Turn(speaker="user", text=text))
    await call.learn_soon()


def _verbs(service):
    ana = service.user("ana")
    return {
        "set": lambda: ana.set("dog", "Rex"),
        "get": lambda: ana.get("dog"),
        "query": lambda: ana.query("what is my dog called?"),
        "recall": lambda: ana.recall("what is my dog called?", deadline_ms=50),
        "brief": lambda: ana.brief("what is my dog called?"),
        "block": ana.block,
        "facts": ana.facts,
        "append": lambda: _say(service, "call"),
        "export": ana.export,
        "forget": ana.forget,
        "users": service.users,
        "distil": service.distil,
        "checkpoint": lambda: service.learn_soon("ana", "call"),
        "settle": service.settle,
        "check": service.check,
    }


VERBS = list(_verbs(echoic.open("memory://", embedder="lexical")))


async def _refused(service, verb):
    with pytest.raises(NotOpen, match="event loop") as refusal:
        await _verbs(service)[verb]()
    assert "echoic.sync" in str(refusal.value)
    assert len(str(refusal.value)) < 400
    return str(refusal.value)


@pytest.mark.parametrize("verb", VERBS)
def test_used_in_another_loop_than_it_was_opened_in_every_verb_says_so(url, verb):
    service = echoic.open(url, embedder="lexical")
    asyncio.run(service.open())
    assert "has ended" in asyncio.run(_refused(service, verb))
    asyncio.run(service.aclose())


def test_listening_in_another_loop_says_so(url):
    service = echoic.open(url, embedder="lexical")
    asyncio.run(service.open())

    async def listen():
        async with service.user("ana").listen() as listening:
            listening.partial("what is my")
            await listening.final("what is my dog called?", deadline_ms=50)

    with pytest.raises(NotOpen, match=r"echoic\.sync"):
        asyncio.run(listen())
    asyncio.run(service.aclose())


def test_used_from_another_threads_loop_it_says_so_and_goes_on_in_its_own(url):
    said = []

    async def main():
        async with echoic.open(url, embedder="lexical") as service:
            elsewhere = threading.Thread(
                target=lambda: said.extend(asyncio.run(_refused(service, v)) for v in VERBS)
            )
            elsewhere.start()
            await asyncio.to_thread(elsewhere.join)
            with pytest.raises(NotOpen, match="another event loop"):
                await asyncio.to_thread(lambda: asyncio.run(service.open()))
            with pytest.raises(NotOpen, match="another event loop"):
                await asyncio.to_thread(lambda: asyncio.run(service.aclose()))
            await _say(service, "call")
            assert await service.settle(30)
            assert "Rex" in " ".join(memory.text for memory in await service.user("ana").facts())

    asyncio.run(main())
    assert len(said) == len(VERBS)
    assert not any("has ended" in each for each in said), "it lives, and can be gone back to"


def test_the_same_service_can_be_opened_by_one_loop_after_another(url):
    service = echoic.open(url, embedder="lexical")

    async def main(pet):
        async with service:
            await _say(service, pet, f"I have a {pet}.")
            assert await service.settle(30)
            assert (await service.check())["waiting"] == 0
            return " ".join(memory.text for memory in await service.user("ana").facts())

    for pet in ("dog called Rex", "cat called Tom", "parrot called Polly"):
        assert pet.split()[-1] in asyncio.run(main(pet)), "what was said in this loop is learned in it"


def test_what_was_left_open_in_a_loop_that_ended_is_not_opened_over_and_can_be_let_go_of(url, caplog):
    service = echoic.open(url, embedder="lexical")

    async def left_open():
        await service.open()
        await _say(service, "first")

    asyncio.run(left_open())
    with pytest.raises(NotOpen, match="has ended"):
        asyncio.run(service.open())
    asyncio.run(service.aclose())
    assert "was left open" in caplog.text
    asyncio.run(service.aclose())

    async def again():
        async with service:
            await _say(service, "second")
            assert await service.settle(30)
            return " ".join(memory.text for memory in await service.user("ana").facts())

    assert "Rex" in asyncio.run(again())
    assert "Traceback" not in caplog.text


def test_the_blocking_facade_works_where_another_loop_runs(url):
    async def main():
        with echoic.sync.open(url, embedder="lexical") as memory:
            ana = memory.user("ana")
            ana.set("dog", "Rex")
            assert ana.get("dog").text == "Rex"
            assert ana.backing_store.scan(ana.scope, "memory")

    asyncio.run(main())


def test_a_loop_that_is_only_paused_is_the_same_loop(url):
    loop = asyncio.new_event_loop()
    service = echoic.open(url, embedder="lexical")
    loop.run_until_complete(service.open())
    loop.run_until_complete(_say(service, "call"))
    assert loop.run_until_complete(service.settle(30))
    assert loop.run_until_complete(service.user("ana").facts())
    loop.run_until_complete(service.aclose())
    loop.close()
