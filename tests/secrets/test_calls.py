"""Secrets of whole calls, made by others: callers of the voice corpus that rules may be made on."""

from __future__ import annotations

import re

import pytest

from echoic.secrets import MARKER, Said, mask_turn
from secrets_kept import callers_of, kept_of

CALLERS = ("c02", "c06", "c14", "c18", "c22", "c26", "c31", "c37")


async def test_no_secret_of_a_call_is_kept_and_little_else_is_masked():
    callers = callers_of("train", *CALLERS)
    assert len(callers) == len(CALLERS)
    kept = await kept_of(callers)
    assert len(kept.secrets) >= 20
    assert kept.left == []
    assert len(kept.touched) <= kept.turns / 100, kept.touched


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("The gate is stiff.", "Gate twenty-two, flight six one nine four."),
        ("Which card did you pay with?", "The one ending four four oh one."),
        ("What's the reading on the dial?", "Four four one nine two."),
        ("How high is the door?", "Door one nine eight one millimetres, I think."),
        ("Can I have a number?", "Oh one six three two, nine six oh, four one one."),
    ],
)
def test_other_numbers_beside_things_that_are_opened_stay(line, said):
    assert mask_turn(Said("user", said), [Said("agent", line)]).masked.text == said


def told(*lines):
    """A dialogue as it is kept; a line begins with "A" or "U"."""
    kept = []
    for line in lines:
        said = Said("agent" if line[0] == "A" else "user", line[2:])
        masked = mask_turn(said, kept[-10:])
        for place, earlier in masked.earlier.items():
            at = place + max(0, len(kept) - 10)
            kept[at] = Said(kept[at].speaker, earlier.text)
        kept.append(Said(said.speaker, masked.masked.text))
    return [one.text for one in kept]


@pytest.mark.parametrize(
    "lines",
    [
        # the agent lets the caller go on
        (
            "U Can I give you my card number?",
            "A Go ahead.",
            "U four five three nine one two",
            "A yep",
            "U double eight",
        ),
        ("U Can I pay that by card?", "A Sure, whenever you're ready.", "U 4539 1488"),
        ("A Go ahead with the card.", "U four nine two nine", "A Yes", "U one two three four"),
        ("A I've texted you a six digit code.", "U Got it. Three three one", "A Yes?", "U nine oh six"),
        # it was wrong, or not all of it
        (
            "A What's the code on your screen?",
            "U Nine nine two.",
            "A I need six digits.",
            "U Oh sorry, nine nine two seven one four.",
        ),
        (
            "A What's the code on your screen?",
            "U Nine nine two seven.",
            "A That didn't work.",
            "U Try nine nine two eight then.",
        ),
        (
            "A What's your PIN?",
            "U Four four one two.",
            "A It says that's wrong.",
            "U Oh, maybe it's four four two one.",
        ),
        (
            "A And your password?",
            "U Bluebird.",
            "A Sorry, it's not accepting that.",
            "U Bluebird seven then.",
        ),
        # some of its letters or digits
        ("A What's the first digit of your passcode?", "U Five.", "A And the last?", "U Uh, eight I think."),
        (
            "A Could you give me the second and fourth digits of your PIN?",
            "U Second is seven, fourth's a two.",
        ),
        (
            "A What's the third letter of your password?",
            "U The third, let me count. It's a G.",
            "A And the sixth?",
            "U That's a P for Peter.",
        ),
        # what a question is for
        ("A Just a security question. Which primary school did you go to?", "U St Bride's, in Paisley."),
        ("A A couple of security questions for you. Which street did you grow up on?", "U Marlborough Road."),
        (
            "U It keeps rejecting my password.",
            "A What are you typing?",
            "U Sunflower, capital S, and then ninety nine.",
        ),
    ],
)
def test_each_answer_to_a_question_for_a_secret_is_masked(lines):
    left = " ".join(
        MARKER.sub("", text) for text, line in zip(told(*lines), lines, strict=True) if line[0] == "U"
    )
    for secret in (
        *(
            "four",
            "nine",
            "eight",
            "six",
            "seven",
            "five",
            "4539",
            "Bluebird",
            "Sunflower",
            "Peter",
            "It's a G",
            "a two",
        ),
        *("Bride", "Paisley", "Marlborough"),
    ):
        assert re.search(rf"\b{secret}\b", left) is None, left


@pytest.mark.parametrize(
    "lines",
    [
        (
            "U Can I pay by card?",
            "A Yes of course.",
            "U Great, it's for 4 people on the 24th, order 4417.",
        ),
        ("U Can I pay by card?", "A Sure.", "U Lovely. Table for six at half past seven then."),
        ("U Let me tell you about my card.", "A Go ahead.", "U I lost it on the 14th."),
        ("A Are you ready with your card order?", "U Yes, 250 cards please."),
        ("A And which card would you like to use?", "U The one ending 4412."),
        ("A I've sent you a discount code.", "U Thanks. My order was 4417 9980."),
        (
            "A I've sent you a code for the promotion. Anything else?",
            "U Yes, my phone number is 07700 900123.",
        ),
        (
            "A Could you tell me the last digit of the meter reading?",
            "U Seven.",
            "A And the first?",
            "U Oh, three.",
        ),
        ("A What's your name?", "U Sam.", "A And the last?", "U Okafor."),
        ("A What's the third word on the sign?", "U It's a K."),
        ("A We have a security question policy. Which branch do you use?", "U Bristol, on Park Street."),
        (
            "A You can reset it with a security question. Where are you calling from?",
            "U Bristol, on Park Street.",
        ),
        ("A That was the last security question, thank you. What's your postcode?", "U BS1 4DJ."),
        (
            "A That's the security questions done. What can I do for you?",
            "U I'd like to book Rosewood House.",
        ),
        (
            "U My password isn't working.",
            "A What have you tried?",
            "U I've tried turning it off and on again.",
        ),
        ("U My password isn't working.", "A What are you using?", "U An iPhone 12."),
    ],
)
def test_what_is_said_beside_a_question_for_no_secret_stays(lines):
    assert told(*lines) == [line[2:] for line in lines]


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("That's correct, thank you. And your house number?", "Nineteen."),
        ("Thanks. And the first line of your address?", "Nineteen Acacia Avenue."),
        ("It's not the usual Monday, is it?", "No, the 24th, at half past seven, for six people."),
        ("Sorry, I didn't catch that.", "I said I want to speak to a person."),
    ],
)
def test_what_is_said_after_a_secret_stays(agent, said):
    assert told("A What's your PIN?", "U Four four one two.", f"A {agent}", f"U {said}")[-1] == said


# The last turns of the caller are secrets, and are asked for in part, again, or after an offer or announcement.
TELLING = (
    "U: I'd like to save some passwords.|A: Sure, what's the first one?|U: bananarama",
    "U: I'd like to store my password.|A: Of course, what's the first one?|U: correct horse battery staple",
    "U: Please remember my mother's maiden name.|A: Yes, and what's the last one?|U: Kowalski",
    "A: Can you give me the third and fifth characters of your password?|U: It's bananarama.",
    "A: Can you give me the third and fifth characters of your password?|U: The whole thing is hunter22",
    "A: Can you give me the third and fifth characters of your password?|U: correct horse battery staple",
    "A: Can you give me the third and fifth characters of your password?|U: November and Romeo",
    "A: Can you give me the third and fifth characters of your password?|U: N as in November and R as in Romeo",
    "A: Can you give me the third and fifth characters of your password?|U: hash and seven",
    "A: Can you give me the third and fifth characters of your password?|U: bee and tee",
    "A: Can you give me the first letter of your mother's maiden name?|U: Kowalski",
    "A: Can you give me the first letter of your mother's maiden name?|U: It's Kowalski",
    "A: Can you give me the first and last letters of your memorable word?|U: The word is Kowalski.",
    "A: Please tell me your password, and start with the first letter.|U: bananarama",
    "A: Give me the first letters of the password.|U: It's bananarama",
    "A: What's the first digit of your PIN?|U: Four.|A: And the second?|U: Seven.|A: And the last?|U: Two.",
    "A: What's the first digit of your PIN?|U: It's a 4.|A: Okay, and the third?|U: That's 7 I think.|A: And the last one?|U: uh two",
    "A: Can I have the second and fourth digits of your PIN?|U: 4 and 7",
    "A: Can I have the second and fourth digits of your PIN?|U: I have 4 and then 7.",
    "A: Can I have the second and fourth digits of your PIN?|U: Second's four fourth's seven",
    "A: What's the third letter of your memorable word?|U: N for November.|A: And the last?|U: Zulu.",
    "A: What's the third letter of your memorable word?|U: It's bananarama.",
    "A: First letter of your mother's maiden name?|U: It's Kowalski.",
    "A: And the memorable word? The first and third letters.|U: November and Romeo",
    "A: Please tell me your password, and start with the first letter.|U: B A N A N A",
    "A: What's your PIN?|U: 4321|A: That didn't work, try again.|U: Maybe it's 4 3 1 2.",
    "A: What's your PIN?|U: 4321|A: Sorry, that's incorrect. Please try again.|U: Oh try 4312 then.",
    "A: What's the code?|U: 4821|A: I need six digits.|U: Right, 482193 it says.",
    "A: What's the code?|U: 4821|A: That's only four digits. I need six.|U: Oh right, 482193 it says.",
    "A: What's your password?|U: hunter22|A: Hmm, that's not right.|U: Then it's bananarama.",
    "A: What's your password?|U: hunter22|A: It's still wrong.|U: bananarama",
    "A: What's your mother's maiden name?|U: Kowalski|A: That doesn't match what I have.|U: Then it's Nowak.",
    "A: What's your password?|U: hunter22|A: No, that's incorrect.|U: correct horse battery staple",
    "A: What's your password?|U: hunter22|A: That password isn't right, can you try another?|U: bananarama",
    "A: What's your PIN?|U: 4321|A: The PIN is wrong.|U: Okay, 4312 perhaps.",
    "A: What's your PIN?|U: 4321|A: That's not it.|U: Maybe 4312.",
    "U: My password isn't working.|A: What are you typing?|U: Sunflower99",
    "U: It won't take my PIN.|A: What are you entering?|U: Four four one two",
    "U: Let me give you my PIN.|A: Okay.|U: It's 4412",
    "U: Shall I read you the card number?|A: Yes please.|U: it's 4539 1488",
    "U: Do you want my card number?|A: Yes please, go ahead.|U: 4539 1488 okay",
    "U: Can I give you my password?|A: Sure.|U: bananarama",
    "A: One more security question. What was your first pet called?|U: Rex.",
    "A: A quick security question: what's your favourite film?|U: Casablanca.",
    "A: I have to ask a few security questions. Where did you go to school?|U: Paisley.",
    "A: Thanks. Next security question. What was your first car?|U: A Fiesta.",
    "A: The security code on the back, first digit?|U: Three.|A: And the next?|U: Nine.",
    "A: I've texted you a six digit code.|U: Got it. Three three one",
)
# The last turn of the caller says nothing secret.
HARMLESS = (
    "A: What's your password?|U: hunter22|A: Hmm, that's not right.|U: My dog is called Rex.",
    "A: What's your password?|U: hunter22|A: That didn't work.|U: I'm allergic to nuts.",
    "A: What's your PIN?|U: 4412|A: That's not right.|U: My number is 07700 900123.",
    "A: What's your password?|U: hunter22|A: That's too funny.|U: My dog is called Rex.",
    "A: What's your password?|U: hunter22|A: It says you've got an order for three lamps.|U: Yes, two lamps and one chair",
    "A: What's your password?|U: hunter22|A: That wasn't so hard.|U: Haha. My sister Ana helped me.",
    "U: My password is rejected.|A: What are you using, Chrome or Safari?|U: Safari 17",
    "U: I'll give you my new address and my password.|A: Go ahead.|U: 14 Elm Street, Leeds",
    "U: Can I tell you my card number later? I'd like to book for 7.|A: Sure, go ahead.|U: A table for 4 at 7 30",
    "A: Just a few security questions. What's your name?|U: Brian Cook.",
    "A: I need to ask you a few security questions first. What is your postcode?|U: SW1A 2AA.",
    "A: I need to ask you a few security questions first. What is your phone number?|U: 07700 900123.",
    "A: I need to ask a security question. What is your address?|U: 14 Elm Street, Leeds.",
    "A: Sorry for the security question. Where do you live?|U: Leeds.",
    "A: Thank you for the security questions. What's up?|U: I've a dog called Rex",
    "A: What's your PIN?|U: 4421|A: Great. Two lamps. The first, the second?|U: 1 please, to 14 Elm Street",
    "A: Give me the first and last characters of your password.|U: I am 42 and I live at 7 Elm Street.",
    "A: What's the last digit of your password?|U: I don't know, I'm a member since 1999.",
    "A: We've emailed you a QR code.|U: Great, table 445 please.",
    "A: We've emailed you a voucher code.|U: Great, I'll have lamp 445 then.",
    "A: What's your password?|U: hunter22|A: That's lovely.|U: My sister's cat is Bella.",
    "A: What's your password?|U: hunter22|A: That's not a problem at all.|U: Great. I live in Leeds.",
    "A: What's your password?|U: hunter22|A: Sorry to keep you.|U: My dog is called Rex.",
    "A: What's your password?|U: hunter22|A: It's only a small fee.|U: Fine, Brian will pay it.",
    "A: What's your password?|U: hunter22|A: It was too late for today's delivery.|U: Thursday afternoon then.",
    "A: What's your PIN?|U: 4321|A: That's wrong, what's your postcode?|U: LS1 4AB",
    "A: What's your PIN?|U: 4321|A: It says you're a gold member.|U: Since 2019, yes, 3 of us.",
    "A: What's your PIN?|U: 4321|A: It doesn't matter. How many guests?|U: 12 guests.",
    "A: What's your PIN?|U: 4321|A: Great. And the first course?|U: Two soups, please.",
    "A: What's your PIN?|U: 4321|A: That didn't take long. What's next?|U: Table for 2 at 8.",
    "U: My card was rejected.|A: What are you trying to buy?|U: A blue lamp.",
    "U: My password is rejected.|A: What did you type in the search box?|U: Blue lamps.",
    "U: It rejected my card.|A: Okay, what is it for?|U: 3 lamps, 120 pounds.",
    "U: My account won't accept it.|A: What are you using?|U: Chrome 117.",
    "U: I'll give you my card and my address.|A: Go ahead.|U: 14 Elm Street.",
    "U: Let me tell you about my PIN problem.|A: Go ahead.|U: I was at 22 Elm Street on the 14th.",
    "U: Can I give you my new phone number?|A: Go ahead.|U: 0113 496 0123",
    "U: Can I pay by card?|A: Sure.|U: Two.",
    "U: I'd rather not pay by card.|A: Okay.|U: 12 pounds cash.",
    "U: I'll give you my card number later.|A: Okay.|U: Room 14 on the 12th.",
    "A: Just a security question. What's your email?|U: brian at example dot com",
    "A: One more security question. When were you born?|U: 12 May 1980.",
    "A: Thanks, no more security questions. Which school does she go to?|U: Saint Mary's.",
    "A: You passed the first security question. What's your favourite dish here?|U: The lasagne.",
    "A: That's the last security question. Which city is your mother in?|U: Leeds.",
    "A: Do you have any security questions? What's your favourite colour for the lamp?|U: Blue.",
    "A: What's the first letter of your surname?|U: K.|A: And the last?|U: I.",
    "A: What are the last two digits of the meter?|U: 4 and 5.|A: And the first?|U: 7.",
    "A: We've sent you a discount code. Anything else?|U: Order 445123 please.",
    "A: We've emailed you a QR code.|U: Thanks, 3 of us are coming at 7 30.",
    "A: What's the first letter of your password?|U: Sorry, my daughter is calling, one second.",
    "A: What's the first letter of your password?|U: I don't remember, can you send a link to 14 Elm Street?",
    "A: Give me the second digit of your PIN.|U: I don't have it, I moved to 7 Elm Street with 2 kids.",
    "A: Shall I go ahead with the card?|U: Yes, and add 2 balloons.",
    "A: Let me get you a new card.|U: Thanks. Send it to 14 Elm Street.",
)
SECRET = re.compile(
    r"\d|\b(?:bananarama|B A N|hunter|Kowalski|November|Romeo|correct|staple|hash|bee|tee|Nowak|Rex|Casablanca|Paisley"
    r"|Fiesta|Zulu|Sunflower|two|three one|four|seven|nine)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("dialogue", TELLING)
def test_what_an_agent_asks_for_in_part_or_again_is_masked(dialogue):
    lines = [line.replace(":", "", 1) for line in dialogue.split("|")]
    kept = [text for text, line in zip(told(*lines), lines, strict=True) if line[0] == "U"]
    assert [text for text in kept if SECRET.search(text)] == []


@pytest.mark.parametrize("dialogue", HARMLESS)
def test_a_turn_that_is_not_about_a_secret_masks_no_answer(dialogue):
    lines = [line.replace(":", "", 1) for line in dialogue.split("|")]
    assert told(*lines)[-1] == lines[-1][2:]
