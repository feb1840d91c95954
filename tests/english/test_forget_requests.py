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
        "Delete this call from my bill.",
        "Can you remove this call from the bill?",
        "Cancel what I said, make it two.",
        "Take what I said earlier off the order.",
        "I told you already, take it off.",
        "Don't put the phone down.",
        "Don't put that down to nerves.",
        "Don't put that down there.",
        "I usually ignore that.",
        "When it beeps, just ignore that.",
        "My phone is ringing, ignore that.",
        "He told me to ignore that.",
        "I want to take it back to the shop.",
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
        "Delete this call.",
        "Forget the last call.",
        "Erase yesterday's call.",
        "Forget the whole conversation we had on Monday.",
        "Please delete everything from this call.",
        "Take what I said about Torquil off my file.",
        "What I said about Torquil, can you take it off?",
        "Take what I said yesterday off your system, would you?",
        "Don't put that down.",
        "Scrap that.",
        "Oh, ignore that, please.",
        "No wait, ignore that.",
        "Ignore what I just said.",
        "I take that back.",
    ],
)
def test_an_order_about_what_was_told_is_one(said):
    assert forget_request(said) is not None


@pytest.mark.parametrize(
    "said",
    [
        "I don't remember that number.",
        "I don't keep that number on me.",
        "They don't keep that date.",
        "I can't note that number down, I'm driving.",
        "Don't write that name on the cake.",
        "Don't put that address on the parcel.",
        "Don't keep calling that number.",
        "Don't forget that date.",
        "I don't want to stay on this tariff.",
        "I don't want to stay in that hotel again.",
        "I don't want to go anywhere on Sunday.",
        "I don't want to be sitting next to the toilet.",
        "I don't want the bill on paper, email is fine.",
        "I want to reset my password, I've forgotten it.",
        "I'd like to log in but I've forgotten my password.",
        "I need a new phone, this one is scratched.",
        "I need the kitchen wiped down twice a week.",
        "I'd like a refund, the table arrived scratched.",
        "Could you not have it delivered on Monday?",
        "Can you not have it here any sooner?",
        "You don't have to have it ready today.",
        "You don't need to keep it warm.",
        "Please don't keep them waiting.",
        "Don't hold it against me.",
        "I don't want you to keep calling me.",
        "I'd prefer you didn't keep me on hold.",
        "Please don't have the driver ring the bell.",
        "Please don't write the name on the cake.",
        "Don't save this for later, deliver it now.",
        "Don't keep the session for me, I can't make it.",
        "No, don't remember the number.",
        "Don't remember the exact date.",
        "Sorry, don't remember that.",
    ],
)
def test_the_same_verbs_in_another_sense_are_no_request(said):
    assert forget_request(said) is None


@pytest.mark.parametrize(
    "said",
    [
        "Actually don't keep that number.",
        "Don't write that address down.",
        "Could you not keep that name, please?",
        "No, don't put that number on file.",
        "Could you not have that written?",
        "Can you not write that down?",
        "You don't have to keep that.",
        "No need to keep that.",
        "That business with the tram stop. I don't want that kept.",
        "I don't want what I said about Bo written down.",
        "I don't want my divorce on record.",
        "I don't want that to stay on file.",
        "I don't want that anywhere.",
        "I'd like to be forgotten.",
        "I'd like what I said about Bo erased.",
        "I want my phone number wiped from your records.",
        "I'd rather you deleted my address.",
        "I'd rather you didn't remember that.",
        "I don't want you to remember that I drink.",
        "I don't want you to store my address.",
        "Please don't keep that on file.",
        "Please don't keep my address on file.",
        "Please don't hold my details.",
        "Please don't remember my number.",
        "Don't remember what I say next.",
        "Don't remember that.",
        "Don't record the next thing I say.",
        "Don't record this bit.",
        "Don't write down my name.",
    ],
)
def test_what_is_not_to_be_kept_is_one(said):
    assert forget_request(said) is not None
