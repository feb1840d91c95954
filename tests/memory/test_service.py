"""What opening a service does beside opening the store."""

from __future__ import annotations

import threading

import echoic
from echoic.memory import service as opened
from echoic.memory.times import rules


async def test_opening_loads_the_date_parser_off_the_loop(monkeypatch):
    warm, threads = rules.warm, []

    def watched() -> None:
        threads.append(threading.current_thread())
        warm()

    monkeypatch.setattr(opened, "WARM_AFTER_S", 0.0)
    monkeypatch.setattr(rules, "warm", watched)
    rules._parser_class.cache_clear()
    async with echoic.open("memory://", embedder="lexical") as memory:
        await memory._warming
        assert rules._parser_class.cache_info().currsize == 1
    assert threads != [threading.main_thread()]
    assert len(threads) == 1
