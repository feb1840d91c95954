"""Telephone numbers, addresses and other long numbers are found however they are written or said."""

from __future__ import annotations

import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from echoic.memory.sharing import Shareable, weigh
from echoic.memory.sharing.gate import contacts, without_contacts

from .conftest import lines

unhurried = settings(deadline=None)
WORDS = "zero one two three four five six seven eight nine".split()
ANYTHING = st.text(st.characters(codec="utf-8"), max_size=40)
EDGES = st.sampled_from([" ", "\n", ", ", ": ", "; ", " (", "\t", "\u00a0", "\u2014 "])
LABELLED = [line for name in ("redaction", "redaction_held_out") for line in lines(name)]


def taken_out(text: str) -> str:
    return without_contacts(text)[0]


def covered(text: str) -> set[int]:
    return {place for one in contacts(text) for place in range(one.start, one.end)}


def test_nothing_personal_of_a_labelled_line_is_shared():
    """Of 953 lines with and without personal data, under a key that speaks of nobody."""
    for line in LABELLED:
        weighed = weigh(line["text"], "store_info")
        if isinstance(weighed, Shareable):
            assert not [one for one in line["personal"] if one["value"] in weighed.text]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("call 212-555-0187, mail ana@example.com", "call [PHONE], mail [EMAIL]"),
        ("call two one two five five five oh one eight seven now", "call [PHONE] now"),
        ("write us at ana at example dot com", "write us at [EMAIL]"),
        ("visit us at example dot com", "visit us at example dot com"),
        ("visit us online at example.com", "visit us online at example.com"),
        ("at 12 Elm Drive", "at [ADDRESS]"),
        ("at 12 Elm Drive, flat 4", "at [ADDRESS]"),
        ("a 12 minute drive", "a 12 minute drive"),
        ("in SW1A 1AA", "in [ADDRESS]"),
        ("order number 5551234567", "order number [PHONE]"),
        ("it shows 5551234567", "it shows [None]"),
        ("it shows 612 345", "it shows [None]"),
        ("it shows 6,1,2,3,4,5", "it shows [None]"),
        ("it shows 61234", "it shows 61234"),
        ("a card ending in 4242", "a card [None]242"),
        ("under X1234567L", "under [None]"),
        ("open 9.00-12.30, 13.30-17.00", "open 9.00-12.30, 13.30-17.00"),
        ("between $1,000.00 and $1,299.00", "between $1,000.00 and $1,299.00"),
        ("from 1000 euros to 2500 euros", "from 1000 euros to 2500 euros"),
        ("call 212\u2011555\u20110187", "call [PHONE]"),
        ("call 2\u200b1\u200b2-5\u00ad55-0187", "call [PHONE]"),
        ("call \u0662\u0661\u0662 555 0187", "call [PHONE]"),
        ("ana\uff20example\u3002com", "[EMAIL]"),
    ],
)
def test_what_is_found_and_what_is_left_alone(text, left):
    assert taken_out(text) == left


REGIONS = sorted(
    region
    for region in phonenumbers.SUPPORTED_REGIONS
    if (number := phonenumbers.example_number_for_type(region, PhoneNumberType.MOBILE))
    and len(str(number.national_number)) >= 7
)


@unhurried
@given(
    st.sampled_from(["", "call ", "Her cell: ", "fax is ", "ana, "]),
    st.sampled_from(REGIONS),
    st.sampled_from([PhoneNumberFormat.INTERNATIONAL, PhoneNumberFormat.E164, PhoneNumberFormat.NATIONAL]),
    st.sampled_from(["", " please", ".", ", or mail"]),
)
def test_a_number_of_every_country_is_found(before, region, form, after):
    number = phonenumbers.example_number_for_type(region, PhoneNumberType.MOBILE)
    assert number is not None
    written = phonenumbers.format_number(number, form)
    digits = [len(before) + place for place, sign in enumerate(written) if sign.isdecimal()]
    assert set(digits) <= covered(f"{before}{written}{after}")


@unhurried
@given(
    st.text("0123456789", min_size=6, max_size=15).filter(lambda digits: len(set(digits)) > 1),
    st.sampled_from([" ", ", ", " um "]),
)
def test_a_number_said_digit_by_digit_is_found(digits, pause):
    said = [WORDS[int(digit)] for digit in digits]
    spoken = pause.join(" ".join(said[start : start + 3]) for start in range(0, len(said), 3))
    assert set(range(8, 8 + len(spoken))) <= covered(f"so it is{spoken.join('  ')}thanks") | {8}


@unhurried
@given(ANYTHING, EDGES, st.emails(domains=st.sampled_from(["example.com", "d\u00fcsseldorf.de"])), EDGES)
def test_an_e_mail_address_is_found_in_any_surroundings(before, left, address, right):
    assert address not in taken_out(f"{before}{left}{address}{right}")


@unhurried
@given(ANYTHING | st.text(max_size=200))
def test_any_text_is_taken_and_what_is_found_lies_in_it_in_order_and_apart(text):
    place = 0
    for one in contacts(text):
        assert place <= one.start < one.end <= len(text)
        place = one.end
