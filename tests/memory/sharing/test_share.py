"""What is shared is a fact about the business, holds nothing personal, and says something."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import echoic
from echoic.memory import keyed_memories, write_filter
from echoic.memory.sharing import MAX_FACT_CHARACTERS, Shareable, Verdict, gate, weigh
from echoic.memory.sharing.business import personal_in
from echoic.memory.sharing.gate import contacts, holds_secret
from echoic.memory.sharing.person_names import names_among, words_of

from .conftest import lines, share

FACT = "The store opens at 9 am"
# What is personal by itself: "4471" is so only behind "the pin is".
PERSONAL = [
    personal["value"]
    for line in lines("redaction")
    for personal in line["personal"]
    if contacts(personal["value"]) or holds_secret(personal["value"])
]
FACTS = [
    line["text"] for line in lines("classification") if line["visibility"] == "global" and not line["key"]
]


def test_a_fact_is_shared_as_it_is():
    assert share(FACT, "store_hours") == Shareable(FACT, "store_hours", (), "hours")


def test_personal_data_is_taken_out_of_what_is_shared():
    shared = share("The support line of the store is 212-555-0187, open daily from 9 to 5", None)
    assert shared is not None
    assert shared.text == "The support line of the store is [PHONE], open daily from 9 to 5"
    assert shared.kinds == ("PHONE",)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Ana likes tea", None),
        (FACT, "user_store"),
        ("The phone number is 212-555-0187", "store_phone"),
        ("212-555-0187", "store_phone"),
        ("[PHONE]", "store_phone"),
        ("", None),
        ("The store opens at 9 am\U000e0041\U000e006e\U000e0061", None),
        ("The store opens at 9 am \ue000", None),
        (FACT, "store_hours\U000e0041"),
        ("Returns are accepted within 30 days with receipt 612 345 678", None),
        ("Returns are accepted within 30 days with receipt six one two three four five six", None),
    ],
)
def test_what_is_personal_empty_or_hidden_stays_private(text, key):
    assert share(text, key) is None


def test_times_and_prices_are_no_long_numbers():
    text = "The store is open 9.00-12.30, 13.30-17.00 on weekdays"
    assert share(text, None) == Shareable(text, None, (), "hours")


@settings(deadline=None)
@given(
    st.sampled_from(FACTS),
    st.sampled_from(PERSONAL),
    st.sampled_from(["{} {}", "{}, {}", "{}. Mine is {}", "{} ({})"]),
)
def test_nothing_personal_is_ever_left_in_what_is_shared(fact, personal, form):
    """A fact with somebody's data behind it is either kept private or shared without any of it."""
    shared = share(form.format(fact, personal), None)
    if shared is not None:
        assert not contacts(shared.text)
        assert not holds_secret(shared.text)
        assert personal_in(words_of(shared.text)) is None or not names_among(words_of(shared.text))
        assert personal not in shared.text


@settings(deadline=None)
@given(st.text(max_size=100), st.none() | st.text(max_size=20))
def test_sharing_never_raises(text, key):
    share(text, key)


def test_what_is_too_long_for_a_fact_is_not_looked_at():
    padding = " and closes at 9 pm" * 100
    assert len(FACT + padding) > MAX_FACT_CHARACTERS
    assert share(FACT + padding, None) is None
    assert weigh(FACT + padding, None) == Verdict("private", "doubt")


YES = Verdict("global", "model")


def test_another_verdict_decides_about_all_that_is_not_personal():
    assert share(FACT, None, verdict=Verdict("global", "hours")) == share(FACT, None)
    assert share(FACT, None, verdict=Verdict("private", "model")) is None
    unknown = share("The quilting circle meets upstairs", None, verdict=YES)
    assert unknown == Shareable("The quilting circle meets upstairs", None, (), "model")
    assert "other" in unknown.states, "what the rules do not understand waits for an operator"


@pytest.mark.parametrize("line", [x for x in lines("business") if x["visibility"] == "private"], ids=str)
def test_no_verdict_makes_two_people_s_life_global(line):
    """Of the traps those with a person in them; what is only no business fact a classifier may share."""
    words = words_of(line["text"])
    if {"we", "our", "i", "my", "she", "he", "your"} & {word.text for word in words}:
        assert share(line["text"], line["key"], verdict=YES) is None


def test_an_address_is_taken_out_of_what_is_shared():
    shared = share("The restaurant is located at 12 Main Street", None)
    assert shared is not None
    assert shared.text == "The restaurant is located at [ADDRESS]"


@pytest.mark.parametrize(
    "text",
    ["The wifi password of the store is [password]", "The store opens at 9 am, [PIN]", "[card ending 4242]"],
)
def test_where_a_secret_stood_nothing_is_shared(text):
    assert weigh(text, None, masked=True) == Verdict("private", "identifier")


def test_a_secret_that_no_door_masked_is_found():
    assert share("The wifi password of the store is bluebird seven", None) is None


def test_a_name_in_brackets_is_no_placeholder():
    assert share("The store opens at 9 am [ANNA]", None) is None


def test_of_hours_and_places_hardly_any_waits_for_nothing():
    """Of the labelled facts, which were not written for this: those that only tell hours or places."""
    shared = [share(line["text"], line["key"]) for line in lines("classification")]
    told = [one.states for one in shared if one is not None and one.states & {"hours", "location"}]
    plain = [states for states in told if states <= {"hours", "location", "other"}]
    assert len(plain) > 40
    assert sum("other" not in states for states in plain) / len(plain) > 0.85


class Says:
    """A classifier of a deployment's own."""

    def __init__(self, verdict: Verdict | Exception) -> None:
        self.verdict = verdict

    async def classify(self, text: str, key: str | None) -> Verdict:
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


@pytest.mark.parametrize(
    ("verdict", "text", "kept"),
    [
        (YES, "The quilting circle meets upstairs", ("proposed", "model")),
        (YES, "We open our presents at nine", ("private", "person")),
        (YES, "Zbigniew opens the store at nine", ("private", "name")),
        (Verdict("private", "model"), FACT, ("private", "model")),
        (ConnectionError("no route"), FACT, ("private", "failed")),
    ],
    ids=str,
)
async def test_a_classifier_of_ones_own_decides_and_the_memory_says_so(url, verdict, text, kept):
    async with echoic.open(url, embedder="lexical", classifier=Says(verdict)) as memory:
        memory_kept = await memory.user("ana").set("opening", text)
        assert (memory_kept.visibility, memory_kept.reason) == kept


async def test_a_set_is_searched_for_secrets_once_and_weighed_once(url, monkeypatch):
    counted: Counter[str] = Counter()

    def count(module, name):
        call = getattr(module, name)

        def counting(*args, **kwargs):
            counted[name] += 1
            return call(*args, **kwargs)

        monkeypatch.setattr(module, name, counting)

    async with echoic.open(url, embedder="lexical", global_writes="auto") as memory:
        for module, name in (
            (write_filter, "mask_named"),
            (keyed_memories, "weigh"),
            (gate, "without_contacts"),
            (gate, "mask"),
        ):
            count(module, name)
        kept = await memory.user("ana").set("opening_hours", FACT)
    assert kept.visibility == "global"
    assert counted == {"mask_named": 1, "weigh": 1, "without_contacts": 1}
