"""Tone audio: which words are in it is known, and can be heard again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic_loopback.realtime import frames, silence, speech, words_heard
from echoic_loopback.realtime.voice import VoiceDetector

TEXT = "the dog is called Rex and lives in Tel Aviv"


def test_the_words_join_to_the_text_exactly():
    assert speech("  Hello,\nworld  how are you").text == "  Hello,\nworld  how are you"


def test_words_sound_when_they_are_said_to():
    spoken = speech("one two three", word_ms=[100, 300, 200], gap_ms=50)
    assert [(w.start_ms, w.end_ms) for w in spoken.words] == [(0, 100), (150, 450), (500, 700)]
    assert spoken.duration_ms == 750
    assert spoken.between(100, 150) == silence(50, 24_000)


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 24_000, 48_000])
def test_every_word_is_heard_at_every_rate(rate_hz):
    spoken = speech(TEXT, rate_hz=rate_hz)
    assert words_heard(spoken.pcm, spoken) == list(range(10))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_words_heard_in_a_cut_are_those_the_offset_says(data):
    count = data.draw(st.integers(1, 140))
    spoken = speech(
        " ".join(f"w{n}" for n in range(count)), word_ms=120, gap_ms=data.draw(st.sampled_from([0, 30]))
    )
    until_ms = data.draw(st.integers(0, spoken.duration_ms))
    heard = "".join(spoken.words[index].text for index in words_heard(spoken.between(0, until_ms), spoken))
    # a word cut within a hop of the middle may be told either way
    assert (
        spoken.heard(until_ms - 20) == heard
        or spoken.heard(until_ms + 20) == heard
        or heard == spoken.heard(until_ms)
    )


def test_words_are_heard_through_noise_a_loss_of_level_and_another_rate():
    spoken = speech(TEXT, rate_hz=24_000)
    samples = np.frombuffer(spoken.pcm, dtype="<i2").astype(float)
    at = np.arange(len(samples) * 2) / 2
    louder = np.interp(at, np.arange(len(samples)), samples) * 0.4
    noisy = louder + np.random.default_rng(1).normal(0, 150, len(louder))
    assert words_heard(noisy.astype("<i2").tobytes(), spoken, rate_hz=48_000) == list(range(10))


def test_sound_that_begins_in_mid_word_is_not_taken_for_another_word():
    spoken = speech("my name is Pavel and I live", word_ms=67)
    before = bytes(2 * 5000)  # no whole number of hops: a window then holds as little of the cut as there is
    for begin in range(0, len(spoken.pcm) - 1200, 2 * 111):
        heard = words_heard(before + spoken.pcm[begin:], spoken, share=0.1)
        assert heard == list(range(heard[0], 7)), begin


def test_silence_and_foreign_audio_hold_no_words():
    spoken = speech(TEXT)
    assert words_heard(silence(500, 24_000), spoken) == []
    assert words_heard(b"", spoken) == []


def test_half_a_word_counts_by_the_share_asked_for():
    spoken = speech("one two", word_ms=200)
    assert spoken.heard(300) == "one two"
    assert spoken.heard(299) == "one"
    assert spoken.heard(399, share=1.0) == "one"


def test_a_wrong_number_of_durations_is_refused():
    with pytest.raises(ValueError, match="2 words need 2 durations"):
        speech("one two", word_ms=[100])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4000), st.integers(0, 30), st.integers(10, 60))
def test_speech_is_found_where_it_is_whatever_the_chunks(chunk, start, words):
    before_ms, pcm = start * 10, speech("x " * words, rate_hz=16_000).pcm
    detector = VoiceDetector(rate_hz=16_000, silence_ms=300)
    whole = silence(before_ms, 16_000) + pcm + silence(400, 16_000)
    edges = [edge for at in range(0, len(whole), chunk) for edge in detector.feed(whole[at : at + chunk])]
    assert [edge.kind for edge in edges] == ["start", "stop"]
    assert abs(edges[0].at_ms - before_ms) <= 10
    assert abs(edges[1].at_ms - before_ms - words * 200) <= 10


def test_frames_are_whole_but_the_last():
    assert [len(frame) for frame in frames(bytes(2000), rate_hz=16_000)] == [640, 640, 640, 80]
