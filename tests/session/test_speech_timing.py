"""When words sound, from how they came: on traces whose truth is known to the millisecond.

Cuts are drawn at random from a fixed seed; each kind of arrival is tried at every size of chunk.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from echoic.session.speech_alignment import PAUSE_MS, Arrivals, SpeechTrace, divide, lead_of, timed
from echoic_loopback.realtime import Speech, silence, speech

RATE = 24_000
WORDS = "a an on at of the and gate seven flight table booked representative international o'clock".split()
CUTS = 40


@dataclass
class Sent:
    """A speech on its way: its text comes `lead_words` or `ahead_ms` before its audio."""

    spoken: Speech
    chunk_ms: int = 100
    lead_words: int = 0
    ahead_ms: int = 0

    def trace(self, until_ms=None):
        """As the client has it, wholly or when so much audio has come."""
        trace, told, spoken = SpeechTrace(RATE), 0, self.spoken
        for start in range(0, spoken.duration_ms, self.chunk_ms):
            if until_ms is not None and start >= until_ms:
                return trace
            end = min(start + self.chunk_ms, spoken.duration_ms)
            due = sum(word.start_ms < end + self.ahead_ms for word in spoken.words) + self.lead_words
            told = max(told, due)
            trace.wrote("".join(word.text for word in spoken.words[:told]))
            pcm = spoken.between(start, end)
            trace.sounded(len(pcm))
            trace.listened(pcm)
        trace.wrote(spoken.text)
        trace.complete = True
        return trace


def uttered(rng):
    """Words of lengths as in speech."""
    words = rng.choices(WORDS, k=rng.randint(6, 20))
    lengths = [int((60 + 45 * len(word)) * rng.uniform(0.8, 1.25)) for word in words]
    return speech(" ".join(words), word_ms=lengths)


def misses(rng, *, under_way=False, **how):
    """By how many words each of some random cuts is off."""
    off = []
    for _ in range(CUTS):
        sent = Sent(uttered(rng), **how)
        played_ms = rng.randint(20, sent.spoken.duration_ms - 20)
        heard = divide(sent.trace(played_ms if under_way else None), played_ms).heard
        off.append(abs(len(heard.split()) - len(sent.spoken.heard(played_ms).split())))
    return off


@pytest.mark.parametrize("chunk_ms", [40, 100, 400])
@pytest.mark.parametrize("lead_words", [0, 1, 2, 4])
def test_text_that_runs_some_words_ahead_is_placed_within_one_word(lead_words, chunk_ms):
    off = misses(random.Random(3), lead_words=lead_words, chunk_ms=chunk_ms)
    assert max(off) <= 1


@pytest.mark.parametrize("chunk_ms", [40, 100])
@pytest.mark.parametrize("ahead_ms", [-300, -100, 250])
def test_text_that_runs_some_time_ahead_or_behind_is_placed_within_one_word(ahead_ms, chunk_ms):
    off = misses(random.Random(4), ahead_ms=ahead_ms, chunk_ms=chunk_ms)
    assert max(off) <= 1


@pytest.mark.parametrize("lead_words", [0, 2])
def test_a_reply_that_is_still_under_way_is_placed_within_one_word(lead_words):
    off = misses(random.Random(5), lead_words=lead_words, chunk_ms=100, under_way=True)
    assert sum(one <= 1 for one in off) >= 0.95 * CUTS
    assert max(off) <= 2


def test_what_the_provider_did_before_helps_where_the_reply_has_only_begun():
    rng = random.Random(6)
    whole = Sent(uttered(rng), lead_words=4, chunk_ms=400).trace()
    lead = lead_of(whole)
    known, unknown = 0, 0
    for _ in range(CUTS):
        sent = Sent(uttered(rng), lead_words=4, chunk_ms=400)
        played_ms = rng.randint(20, 800)
        truth = len(sent.spoken.heard(played_ms).split())
        trace = sent.trace(played_ms)
        known += abs(len(divide(trace, played_ms, lead_ms=lead).heard.split()) - truth)
        unknown += abs(len(divide(trace, played_ms).heard.split()) - truth)
    assert known <= unknown
    assert known <= CUTS / 2


def test_silence_at_the_start_is_not_taken_for_words():
    rng = random.Random(7)
    for _ in range(CUTS):
        spoken = uttered(rng)
        trace = SpeechTrace(RATE)
        trace.wrote(spoken.text)
        pcm = silence(800, RATE) + spoken.pcm
        trace.sounded(len(pcm))
        trace.listened(pcm)
        trace.complete = True
        assert trace.pauses == [(0.0, 800.0)]
        assert divide(trace, 790).heard == ""
        first = divide(trace, 800 + spoken.words[0].end_ms).heard.split()
        assert len(first) <= 2


def test_a_pause_parts_the_words_around_a_comma():
    before, after = speech("on the one hand,", word_ms=150), speech("of it all", word_ms=300)
    trace = SpeechTrace(RATE)
    trace.wrote("on the one hand, of it all")
    pcm = before.pcm + silence(1500, RATE) + after.pcm
    for start in range(0, len(pcm), 4800):
        trace.sounded(len(pcm[start : start + 4800]))
        trace.listened(pcm[start : start + 4800])
    trace.complete = True
    for ms in (before.duration_ms + 10, before.duration_ms + 750, before.duration_ms + 1490):
        assert divide(trace, ms).heard == "on the one hand,"


def test_pauses_are_found_wherever_chunks_are_cut():
    pcm = speech("one two", word_ms=400).pcm + silence(PAUSE_MS, RATE) + speech("three", word_ms=400).pcm
    found = []
    for size in (2, 333, 4801, len(pcm)):
        trace = SpeechTrace(RATE)
        for start in range(0, len(pcm), size):
            trace.listened(pcm[start : start + size])
        found.append(trace.pauses)
    assert found == [[(800.0, 800.0 + PAUSE_MS)]] * 4


def test_pauses_are_found_where_10_ms_are_no_whole_number_of_samples():
    pcm = (
        speech("one two", rate_hz=22_050, word_ms=400).pcm
        + silence(500, 22_050)
        + speech("three", rate_hz=22_050, word_ms=400).pcm
    )
    trace = SpeechTrace(22_050)
    for start in range(0, len(pcm), 4410):
        trace.listened(pcm[start : start + 4410])
    assert trace.pauses == [(pytest.approx(800, abs=15), pytest.approx(1300, abs=15))]


def test_words_come_in_order_and_within_the_audio_whatever_arrives():
    rng = random.Random(8)
    for _ in range(200):
        text = " ".join(rng.choices(WORDS, k=rng.randint(1, 12)))
        marks = sorted(rng.uniform(0, 5000) for _ in range(rng.randint(0, 8)))
        audio_ms = marks[-1] if marks else 0.0
        points = sorted(
            (rng.randint(0, len(text)), rng.uniform(0, audio_ms)) for _ in range(rng.randint(0, 5))
        )
        words = timed(Arrivals(text, points, marks, (), audio_ms, complete=rng.random() < 0.5))
        assert [word.end for word in words] == sorted(word.end for word in words)
        assert words[-1].end == len(text)
        moments = [moment for word in words for moment in (word.start_ms, word.end_ms)]
        assert moments == sorted(moments)
        assert moments[0] >= 0
