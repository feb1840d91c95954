"""What is kept of a call, and as which turn."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from pydantic_ai.messages import ModelRequest, SpeechPart

from echoic.session.keeper import Keeper
from echoic.session.leg import Said

WHOLE = "where do I live"


@pytest.fixture
def leg():
    message = ModelRequest(parts=[SpeechPart(speaker="user", transcript=WHOLE)])
    return SimpleNamespace(
        name="leg", kept=0, said={}, utterances={}, ended=asyncio.Event(), new_messages=lambda: [message]
    )


@pytest.fixture
def keeper(leg):
    live = SimpleNamespace(legs=[leg], leg=leg, confidences=SimpleNamespace(of=lambda _: None))
    return Keeper(live, exchange_of=lambda _: None, on_idle=lambda _: None, on_lost=lambda _: None)


def kept(keeper):
    return [(ripe.turn.id, ripe.turn.text) for ripe in keeper._ripe()]


async def test_words_that_were_shown_are_kept_as_the_turn_they_were_shown_as(keeper, leg):
    """The history may have the end of an utterance before the event of it was taken in."""
    leg.said[0] = Said("shown", "where do I")
    assert kept(keeper) == []
    leg.said[0].text, leg.said[0].final = WHOLE, True
    assert kept(keeper) == [("shown", WHOLE)]


async def test_what_nobody_was_shown_or_a_line_that_ended_is_waited_for_no_longer(keeper, leg):
    assert kept(keeper) == [("leg-0", WHOLE)]
    leg.said[0] = Said("next", "and what about")
    assert kept(keeper) == [("leg-0", WHOLE)]
    leg.said[0] = Said("shown", "where do I")
    leg.ended.set()
    assert kept(keeper) == [("leg-0", WHOLE)]
