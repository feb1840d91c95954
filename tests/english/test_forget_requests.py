"""What asks to forget, and what only has the words of it: a request hides what was said."""

from __future__ import annotations

import pytest

from echoic.english.forget_requests import forget_request


@pytest.mark.parametrize(
    "said",
    [
        "Forget the starter.",
        "You can forget the soup.",
        "Forget the insurance.",
        "No, forget the balcony, a sea view is fine.",
        "Just forget the extra cheese, please.",
        "Let's forget my old tariff and look at the new one.",
        "Forget that flight, is there a later one?",
        "Scratch that, a table for six.",
        "Erase that from the invoice.",
        "Erase the second line on the invoice.",
        "Please disregard that letter.",
        "The boiler's done, so cross that off the list.",
        "Please strike the late fee off the bill.",
        "Please scrub the stains out of the carpet.",
        "Please wipe my phone, it was stolen.",
        "As I said, cancel that.",
        "I told you last week, cancel it.",
        "I said no onions, so take them off.",
        "Remove my number from the marketing list.",
        "Can you remove the age restriction on my line?",
        "Please remove the data bundle from my plan.",
        "Remove the health insurance from my package.",
        "Remove the name tag from the suitcase.",
        "Remove the phone case from my order.",
    ],
)
def test_an_order_about_something_else_than_memory_is_no_request(said):
    assert forget_request(said) is None


@pytest.mark.parametrize(
    "said",
    [
        "Please forget about the opening hours.",
        "Forget that I like jazz.",
        "Please forget the locker code.",
        "Forget my passport number.",
        "Forget my boat.",
        "Delete my phone number.",
        "Delete my phone number, I want it gone.",
        "Forget that name.",
        "Forget those two names.",
        "Forget that ever happened.",
        "Forget that business with Henk.",
        "Erase that for good.",
        "Erase my sister's address in Leeds.",
        "Please erase the story of my divorce.",
        "Wipe that off my file.",
        "Strike that off the record, please.",
        "Rub my name out of your book.",
        "The tram thing, wipe that.",
        "Remove my name from your files.",
        "I shouldn't have said that, take it out.",
        "I told you about my knee. Take it out of the file.",
        "I told you my salary; delete that.",
        "Forget this call.",
    ],
)
def test_an_order_about_what_was_told_is_one(said):
    assert forget_request(said) is not None
