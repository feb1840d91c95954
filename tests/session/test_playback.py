from __future__ import annotations

import asyncio

import pytest

from echoic import InvalidInput
from echoic.session.playback import Flush, Frame, Playback, Utterance
from echoic.session.speech_alignment import SpeechTrace
from echoic_loopback.realtime import speech

RATE = 24_000
MS = 48
"""Bytes of a millisecond."""


def utterance(text="one two three four five", word_ms=200):
    spoken = speech(text, word_ms=word_ms)
    trace = SpeechTrace(RATE)
    trace.wrote(text)
    trace.sounded(len(spoken.pcm))
    trace.complete = True
    return Utterance("t", "agent", trace, ended=True), spoken


async def pull(media, count):
    return [await anext(media) for _ in range(count)]


async def test_a_frame_counts_as_played_when_the_next_is_asked_for():
    playback = Playback(frame_ms=20)
    said, spoken = utterance()
    playback.feed(said, spoken.pcm)
    media = playback.media()
    await pull(media, 21)
    assert said.played_bytes == 400 * MS
    assert said.divided().heard == "one two"
    assert not said.settled


async def test_a_frame_holds_whole_samples_at_every_rate():
    playback = Playback(frame_ms=15)
    said = Utterance("t", "agent", SpeechTrace(22_050), ended=True)
    playback.feed(said, bytes(4410))
    frames = await pull(playback.media(), 3)
    assert [len(frame.pcm) % 2 for frame in frames] == [0, 0, 0]


async def test_all_that_is_fed_comes_out_once_and_in_order_however_it_is_cut_into_chunks():
    playback = Playback()
    first, spoken = utterance()
    second, other = utterance("six seven")
    for start in range(0, len(spoken.pcm), 7_001):
        playback.feed(first, spoken.pcm[start : start + 7_001])
    playback.feed(second, other.pcm)
    playback_task = asyncio.ensure_future(_all(playback))
    await asyncio.sleep(0)
    while not playback.idle:
        await asyncio.sleep(0)
    playback.close()
    assert await playback_task == spoken.pcm + other.pcm
    assert first.settled
    assert second.settled
    assert first.divided().source == "whole"


async def _all(playback):
    return b"".join([item.pcm async for item in playback.media() if isinstance(item, Frame)])


async def test_a_cut_drops_what_was_not_played_and_tells_the_device():
    playback = Playback()
    said, spoken = utterance()
    playback.feed(said, spoken.pcm)
    media = playback.media()
    await pull(media, 26)  # 25 were played
    assert playback.cut() == [said]
    assert said.settled
    assert (said.divided().heard, said.divided().unheard) == ("one two three", " four five")
    assert isinstance(await anext(media), Flush)
    playback.feed(said, b"\1" * 960)
    assert playback.idle, "what comes of it later is not played"


async def test_a_device_that_buffers_is_believed_over_what_it_was_handed():
    playback = Playback()
    said, spoken = utterance()
    playback.feed(said, spoken.pcm)
    media = playback.media()
    playback.played(0)
    await pull(media, 50)  # all of it is in the device's buffer
    playback.played(210 * MS)
    playback.cut()
    assert said.divided().heard == "one"
    playback.played(520 * MS, flushed=True)  # it had gone on for a moment
    assert said.divided().heard == "one two three"


async def test_what_a_device_reports_between_the_cut_and_its_flush_is_not_its_last_word():
    playback = Playback()
    said, spoken = utterance()
    playback.feed(said, spoken.pcm)
    media = playback.media()
    playback.played(0)
    await pull(media, 50)
    playback.played(210 * MS)
    playback.cut()
    playback.played(310 * MS)  # sent before it heard of the cut
    playback.played(420 * MS)
    playback.played(520 * MS, flushed=True)
    assert said.played_bytes == 520 * MS
    assert said.divided().heard == "one two three"


async def test_after_a_cut_the_devices_count_goes_on_from_what_it_played():
    playback = Playback()
    first, spoken = utterance()
    second, other = utterance("six seven eight")
    playback.feed(first, spoken.pcm)
    media = playback.media()
    playback.played(0)
    await pull(media, 50)
    playback.played(300 * MS)
    playback.cut()
    playback.played(320 * MS, flushed=True)
    assert isinstance(await anext(media), Flush)
    playback.feed(second, other.pcm)
    await pull(media, 30)
    playback.played(720 * MS)
    assert first.played_bytes == 320 * MS
    assert second.played_bytes == 400 * MS
    playback.played(920 * MS)
    assert second.settled


async def test_a_second_cut_undoes_nothing_of_the_first():
    playback = Playback()
    said, spoken = utterance()
    playback.feed(said, spoken.pcm)
    media = playback.media()
    playback.played(0)
    await pull(media, 50)
    playback.played(210 * MS)
    assert playback.cut() == [said]
    assert playback.cut() == []  # the page notices that somebody speaks, and then the provider does
    assert isinstance(await anext(media), Flush)
    playback.played(520 * MS, flushed=True)
    assert said.divided().heard == "one two three"


async def test_a_count_that_goes_backwards_is_refused():
    playback = Playback()
    said, spoken = utterance()
    playback.feed(said, spoken.pcm)
    playback.played(0)
    media = playback.media()
    await pull(media, 10)
    playback.played(100 * MS)
    playback.cut()
    with pytest.raises(InvalidInput, match="less than"):
        playback.played(10)


async def test_what_nobody_played_by_the_end_was_not_heard():
    playback = Playback()
    said, spoken = utterance()
    playback.feed(said, spoken.pcm)
    playback.close()
    assert said.settled
    assert said.divided().heard == ""
    assert [item async for item in playback.media()] == []


async def test_no_more_is_handed_out_than_may_be_on_its_way():
    playback = Playback(frame_ms=20)
    said, spoken = utterance()
    playback.played(0)
    playback.feed(said, spoken.pcm)
    media = playback.media(40 * MS)
    await pull(media, 3)
    more = asyncio.ensure_future(anext(media))
    await asyncio.sleep(0)
    assert not more.done()
    playback.played(20 * MS)
    assert isinstance(await more, Frame)


async def test_a_device_that_reports_late_is_given_more_and_is_still_believed(monkeypatch):
    monkeypatch.setattr("echoic.session.playback._PATIENCE_S", 0.001)
    playback = Playback(frame_ms=20)
    said, spoken = utterance()
    playback.played(0)
    playback.feed(said, spoken.pcm)
    media = playback.media(40 * MS)
    await pull(media, 6)
    playback.cut()
    assert await anext(media) == Flush()
    playback.played(20 * MS, flushed=True)
    assert said.played_bytes == 20 * MS
