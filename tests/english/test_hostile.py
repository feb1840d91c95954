"""Any text whatever comes back: nothing raises, and nothing grows faster than the text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.english import listen, listener
from echoic.english.sentences import sentences
from echoic.types import MAX_TEXT_BYTES, checked_name, checked_text
from scale import many

_LINES = Path(__file__).with_name("utterances.jsonl").read_text(encoding="utf-8").splitlines()
UTTERANCES = [json.loads(line)["text"] for line in _LINES]
WORDS = sorted(
    {word for text in UTTERANCES for word in text.split()} | {"no", "wait", "sorry", "that", "\0", "-", "'"}
)

# Words of real utterances in any order meet the rules far more often than random characters do.
SPOKEN = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)


def storable(heard):
    for one in heard:
        checked_name(one.key, "key")
        checked_text(one.sentence, "sentence")
        if one.text:
            checked_text(one.text, "text")
    return True


@settings(max_examples=many(400, least=10), deadline=None)
@given(st.text(max_size=300))
def test_no_text_makes_it_raise(text):
    assert storable(listen(text))


@settings(max_examples=many(600, least=10), deadline=None)
@given(SPOKEN, SPOKEN)
def test_no_jumble_of_spoken_words_makes_it_raise_or_give_what_cannot_be_stored(before, after):
    assert storable(listen(after, listen(before)))


@settings(max_examples=many(300, least=10), deadline=None)
@given(st.sampled_from(UTTERANCES), st.integers(0, 80), st.text(max_size=5))
def test_an_utterance_cut_anywhere_and_spoilt_does_not_raise(text, at, noise):
    assert storable(listen(text[:at] + noise + text[at:]))


@settings(max_examples=many(200, least=10), deadline=None)
@given(SPOKEN)
def test_each_key_is_given_at_most_once(text):
    keys = [one.key for one in listen(text)]
    assert len(keys) == len(set(keys))


HOSTILE = {
    "one word without end": "a" * MAX_TEXT_BYTES,
    "one mark without end": "'" * MAX_TEXT_BYTES,
    "only triggers": "i'm my name is i live in " * 1300,
    "triggers with values": "my name is ana i live in rome? " * 1050,
    "corrections": "no wait sorry i mean " * 1500,
    "names": "my name is " + "zqx " * 8000,
    "letters": "my name is " + "p a v e l " * 3000,
    "digits": "my number is " + "five five " * 3000,
    "dots": "my email is " + "a dot b dot " * 2500,
    "an address that never ends": "my email is " + "a.b@c." * 5000,
    "lists": "i like jazz and tea, " * 1500,
    "quotes": "\"i'm 'ana\" " * 3000,
    "requests": "please remember that forget that don't forget that " * 600,
    "conditions": "if i live in rome but i live in oslo " * 850,
    "adverbs": "i really actually just still now live in " * 800,
    "one line a word": "ana\n" * 8000,
    "hyphens": "a-b-" * 8000,
    "combining marks": "i live in e" + "\u0301" * 16000,
    "ideographs": "my name is " + "太郎" * 5000,
    "whitespace": " \t" * 16000,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_thirty_two_kibibytes_of_hostile_text_come_back(name):
    assert storable(listen(HOSTILE[name]))


def test_lone_surrogates_and_nul_never_reach_a_memory():
    (heard,) = listen("My name is \0Ana\ud800.")
    assert heard.text == "Ana"


def test_looking_rules_up_by_word_finds_all_that_trying_every_rule_finds(monkeypatch):
    indexed = [listen(text) for text in UTTERANCES]
    every_word = {token.low for text in UTTERANCES for said in sentences(text) for token in said.tokens}
    monkeypatch.setattr(listener, "_BY_WORD", dict.fromkeys(every_word, listener.RULES))
    assert [listen(text) for text in UTTERANCES] == indexed
