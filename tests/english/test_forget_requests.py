"""What asks to forget, and what only has the words of it: a request hides what was said."""

from __future__ import annotations

import pytest

from echoic.english.forget_requests import agrees_to_forget, forget_request


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
        "How could you forget my allergies?",
        "You forget my allergies every time.",
        "Did you forget my date of birth?",
        "I hope you won't forget my allergies.",
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
        "Could you erase my DOB?",
        "Delete my allergies.",
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
        "Don't keep that date, the hall is taken.",
        "Don't save that date for me, I'm away.",
        "Don't keep the last number, read the first one.",
        "Don't keep that name, call him Rex.",
        "Don't write that name down.",
    ],
)
def test_the_same_verbs_in_another_sense_are_no_request(said):
    assert forget_request(said) is None


@pytest.mark.parametrize(
    "said",
    [
        "Actually don't keep that number.",
        "Don't write that address down.",
        "Could you not keep that number, please?",
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


@pytest.mark.parametrize(
    "said",
    [
        "Can you forget I'm allergic to kale?",
        "Forget he's my brother.",
        "I no longer want you to have my phone number.",
        "Oh, I shouldn't have told you that. You can't keep that, okay?",
        "That was private, you mustn't store it.",
        "You don't need to hold on to my husband's name.",
        "Can we lose that last bit?",
        "Can we forget that, please?",
        "Don't keep the epilepsy part.",
        "I don't want my name on your system.",
        "Erase that sentence.",
        "Please redact the hysterectomy.",
        "Stop remembering that I like rum.",
        "Pretend I never said that.",
    ],
)
def test_other_wordings_are_requests_too(said):
    assert forget_request(said) is not None


@pytest.mark.parametrize(
    "said",
    [
        "I sometimes just forget I'm a vegetarian.",
        "Don't forget I'm allergic to kale.",
        "Please don't forget I'm allergic.",
        "I forget I'm supposed to ring.",
        "You can't keep it, my daughter wants the dog back.",
        "You can't save this as a draft?",
        "You mustn't store it in the fridge.",
        "You shouldn't write that cheque.",
        "You don't need to take my number, you've got it.",
        "You don't need to write down my address, it's on file.",
        "No need to note my email.",
        "I don't want the update on my computer.",
        "I don't want a fault on your system.",
        "Don't keep the spare part.",
        "Don't keep the change.",
        "Don't keep the broken part, send it back.",
        "Erase the whiteboard?",
        "Did you erase the message?",
        "Can we lose the olives on the pizza?",
        "Could we drop the last item?",
        "Can we leave it there?",
        "Can we cut the price a bit?",
        "Could we take the train?",
        "Can we cancel that order?",
        "Can we forget the starter and just have mains?",
        "Can we remove my brother from the booking?",
        "Stop keeping me on hold.",
        "Stop saving the receipts.",
        "Pretend you're a pirate.",
        "They act like I never said anything.",
        "The kids pretend I never said it.",
        "I no longer want you to call me.",
        "I no longer want you to send my parcels to work.",
        "Can we edit my booking?",
        "Do we have to forget I'm a member?",
        "Could we clear the invoice today?",
        "Let's lose the last game and go home.",
        "Did they redact the report?",
        "You cannot note it twice.",
        "I don't want my file on your computer damaged.",
        "You can't record that channel.",
        "You can't remember that, can you?",
        "I can't remember that.",
        "You're not to keep it in the fridge, it's private.",
        "I told you, you can't keep it here.",
    ],
)
def test_what_has_words_of_these_wordings_is_no_request(said):
    assert forget_request(said) is None


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Shall I keep that on your file?", "No thanks."),
        ("I see. Would you like me to remember that?", "I'd rather you didn't."),
        ("Should I make a note of that?", "No, don't bother."),
        ("Shall I save that for next time?", "Please don't."),
        ("Would you like me to delete that?", "Yes please."),
        ("Sorry about that. Do you want me to remove it from your record?", "Yes, go ahead."),
        ("Shall I forget that then?", "Yeah."),
    ],
)
def test_an_answer_may_ask_to_forget(question, answer):
    assert agrees_to_forget(answer, question)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Shall I keep that on your file?", "Yes please."),
        ("Shall I keep that on your file?", "What for?"),
        ("Shall I keep that on your file?", "No problem."),
        ("Shall I keep that on your file?", "No, wait, let me think."),
        ("Shall I keep that table for you until eight?", "No thanks."),
        ("Shall I keep it warm?", "No thanks."),
        ("Shall I write that on the cake?", "No thanks."),
        ("Shall I write to them?", "No thanks."),
        ("Would you like me to remove that from your order?", "Yes please."),
        ("Would you like me to remove that?", "Yes please."),
        ("Would you like me to delete that booking?", "Yes please."),
        ("Would you like me to delete that?", "No, keep it."),
        ("Would you like me to delete that?", "Yes, no, actually keep it."),
        ("Shall I record that parcel as lost?", "No thanks."),
        ("Do you remember that?", "No."),
        ("Should I save it as a draft?", "No."),
        ("I'll delete that. Anything else?", "Yes please."),
        ("", "No thanks."),
    ],
)
def test_another_answer_asks_nothing(question, answer):
    assert not agrees_to_forget(answer, question)
