"""What made-up calls are about: other matters, in which the words of keys and questions fall all the time.

Data only: pairs of turns with slots for who, thing, place, day and time.
"""

from __future__ import annotations

WHO = [
    "my sister",
    "a colleague",
    "my neighbour",
    "the plumber",
    "my manager",
    "an old friend",
    "the courier",
]
THING = "lamp kettle suitcase bicycle blender tent printer jacket mattress router camera rug".split()
PLACE = ["the station", "the airport", "the old town", "the harbour", "the museum", "the market", "the lake"]
DAY = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
TIME = ["half past eight", "ten", "noon", "a quarter to three", "five", "seven in the evening"]


_USER_FIRST, _AGENT_FIRST = ("user", "agent"), ("agent", "user")
EXCHANGES: tuple[tuple[tuple[str, str], tuple[str, str]], ...] = (
    (_AGENT_FIRST, ("Could I take the name on the booking?", "It's under {who}, not under mine.")),
    (_AGENT_FIRST, ("Which name should go on the parcel?", "Just put the company's name on it.")),
    (_AGENT_FIRST, ("And the city you're flying to?", "I haven't decided, maybe somewhere near {place}.")),
    (
        _AGENT_FIRST,
        ("Is there anything else you'd like to order?", "Yes, a {thing} please, the cheaper one."),
    ),
    (
        _AGENT_FIRST,
        ("How was the food at the hotel near {place}?", "Fine, but the coffee was cold by the time it came."),
    ),
    (
        _AGENT_FIRST,
        ("Would {day} at {time} work for the delivery?", "No, {time} is too late, {who} will be out."),
    ),
    (
        _AGENT_FIRST,
        ("What colour would you like for the {thing}?", "Whatever is in stock, I don't mind at all."),
    ),
    (
        _USER_FIRST,
        ("Do you have a seat left on the {time} train?", "I do, two of them, in the quiet carriage."),
    ),
    (_AGENT_FIRST, ("Has the doctor's office called you back?", "Not yet, they said {day} at the earliest.")),
    (
        _USER_FIRST,
        (
            "I'm calling because the {thing} I ordered never arrived.",
            "Let me look that up for you, one moment.",
        ),
    ),
    (
        _USER_FIRST,
        ("Can you book a table near {place} for {day}?", "Of course, for how many people, and at what time?"),
    ),
    (_USER_FIRST, ("Is the car park by {place} open at {time}?", "It is, and it stays open until midnight.")),
    (
        _USER_FIRST,
        ("My order number should be on the receipt for the {thing}.", "Thank you, I can see it here now."),
    ),
    (
        _USER_FIRST,
        ("What does it cost to send a {thing} to {place}?", "About twelve, and it takes three working days."),
    ),
    (
        _USER_FIRST,
        (
            "Someone at work told me you repair a {thing}.",
            "We do, it takes about a week and you get a loan one.",
        ),
    ),
    (
        _USER_FIRST,
        ("Which language is the tour of {place} in?", "English at {time}, and French an hour later."),
    ),
    (
        _USER_FIRST,
        ("How big is the {thing}, does it fit in the boot?", "It's about a metre long, so it should."),
    ),
    (
        _USER_FIRST,
        ("Was the pet carrier delivered with the {thing}?", "No, that comes separately, on {day}."),
    ),
    (
        _USER_FIRST,
        ("Tell {who} that we'll meet at {place} at {time}.", "I'll send the message straight away."),
    ),
    (
        _USER_FIRST,
        ("I'd like to change the phone contract for {who}.", "I can do that, do you have the number there?"),
    ),
    (_USER_FIRST, ("Are there any birthday cards left in the shop by {place}?", "A few, next to the till.")),
    (
        _USER_FIRST,
        ("Did the team finish moving the {thing} on {day}?", "They did, though it took all morning."),
    ),
    (
        _USER_FIRST,
        ("What's the weather like around {place} on {day}?", "Rain until {time}, and then it clears up."),
    ),
    (
        _USER_FIRST,
        ("Please remind me to collect the {thing} at {time}.", "I've set a reminder for {day} at {time}."),
    ),
    (_USER_FIRST, ("Is the clinic near {place} open on {day}?", "Only in the morning, from {time}.")),
)

__all__ = ["DAY", "EXCHANGES", "PLACE", "THING", "TIME", "WHO"]
