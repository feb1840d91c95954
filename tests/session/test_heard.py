"""Heard words against the truth: speech whose every word is known to the millisecond."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from echoic.session.speech_alignment import SpeechTrace, Stamp, divide, lead_of
from echoic_loopback.realtime import speech

RATE = 24_000
TEXTS = [
    "your flight leaves at nine from gate seven",
    "I have booked a table for four people on the terrace at eight o'clock this evening",
    "a representative of international accommodation is on it",
]


def traced(spoken, *, chunk_ms=100, lead_words=0, until_ms=None):
    """The trace a client has when the speech is sent in chunks, its text `lead_words` ahead."""
    trace = SpeechTrace(RATE)
    told = 0
    for start in range(0, spoken.duration_ms, chunk_ms):
        if until_ms is not None and start >= until_ms:
            return trace
        end = min(start + chunk_ms, spoken.duration_ms)
        due = sum(word.start_ms < end for word in spoken.words) + lead_words
        told = max(told, due)
        trace.wrote("".join(word.text for word in spoken.words[:told]))
        trace.sounded(len(spoken.between(start, end)))
    trace.complete = True
    return trace


def miss(spoken, trace, played_ms):
    """By how many words the estimate is off."""
    heard = divide(trace, played_ms).heard
    return abs(len(heard.split()) - len(spoken.heard(played_ms).split()))


@pytest.mark.parametrize("lead_words", [0, 1, 3])
@pytest.mark.parametrize("text", TEXTS)
def test_evenly_spoken_words_are_within_one_of_the_truth_wherever_the_cut(text, lead_words):
    spoken = speech(text)
    trace = traced(spoken, lead_words=lead_words)
    assert max(miss(spoken, trace, ms) for ms in range(0, spoken.duration_ms + 100, 25)) <= 1


def test_words_of_lengths_as_in_speech_are_within_one_of_the_truth():
    rng = random.Random(5)
    for text in TEXTS:
        lengths = [int((60 + 45 * len(word)) * rng.uniform(0.8, 1.25)) for word in text.split()]
        spoken = speech(text, word_ms=lengths)
        for lead in (0, 2):
            trace = traced(spoken, lead_words=lead)
            assert max(miss(spoken, trace, ms) for ms in range(0, spoken.duration_ms, 25)) <= 1


@pytest.mark.parametrize("lead_words", [0, 2])
def test_asking_while_it_arrives_changes_no_later_answer(lead_words):
    spoken = speech(TEXTS[1])
    asked = SpeechTrace(RATE)
    for at in range(0, spoken.duration_ms, 100):
        until = traced(spoken, lead_words=lead_words, until_ms=at)
        asked.wrote(until.text)
        asked.sounded(until.audio_bytes - asked.audio_bytes)
        asked.listened(spoken.between(max(0, at - 100), at))
        fresh = replace(asked, _words=None)
        for played_ms in (at / 3, at / 2, at):
            assert divide(asked, played_ms) == divide(fresh, played_ms)
    asked.wrote("what was said after all " + asked.text)
    assert divide(asked, 500) == divide(replace(asked, _words=None), 500)


def test_a_text_that_comes_all_at_once_is_divided_by_its_length():
    spoken = speech("one two three four five six", word_ms=200)
    for early in (True, False):
        trace = SpeechTrace(RATE)
        if early:
            trace.wrote(spoken.text)
        trace.sounded(len(spoken.pcm))
        if not early:
            trace.wrote(spoken.text)
        trace.complete = True
        assert max(miss(spoken, trace, ms) for ms in range(0, 1300, 10)) <= 1


def test_heard_and_unheard_together_are_the_utterance_letter_by_letter():
    spoken = speech("  well,  that   is  all. ")
    trace = traced(spoken)
    for ms in range(0, 2000, 50):
        cut = divide(trace, ms)
        assert cut.heard + cut.unheard == trace.text


def test_nothing_played_is_nothing_heard_and_all_played_is_all():
    trace = traced(speech("hello there you"))
    assert divide(trace, 0).heard == ""
    whole = divide(trace, trace.audio_ms)
    assert (whole.heard, whole.unheard, whole.source) == ("hello there you", "", "whole")


def test_what_was_written_but_never_generated_is_not_heard():
    spoken = speech("one two three four five six seven eight")
    trace = traced(spoken, lead_words=4, until_ms=400)
    assert not trace.complete
    lead = lead_of(traced(spoken, lead_words=4))
    assert abs(len(divide(trace, 400, lead_ms=lead).heard.split()) - 2) <= 1


def test_the_providers_own_times_are_believed():
    trace = SpeechTrace(
        RATE,
        stamps=[Stamp(text="one", start_ms=0, end_ms=1000), Stamp(text="two", start_ms=1000, end_ms=1100)],
    )
    trace.wrote("one two.")
    trace.sounded(2 * RATE * 1100 // 1000)
    assert divide(trace, 900).heard == "one"
    assert divide(trace, 900).source == "timestamps"
    assert divide(trace, 1080).heard == "one two."


def test_a_revised_transcript_is_timed_anew():
    trace = SpeechTrace(RATE)
    trace.wrote("won to")
    trace.sounded(2 * RATE)
    trace.wrote("one two three")
    trace.complete = True
    assert trace.text == "one two three"
    assert divide(trace, 10).heard == ""
