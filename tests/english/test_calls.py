"""What comes to be known of whole calls by the rules alone, through the public API."""

from __future__ import annotations

import pytest

import echoic
from echoic.types import Turn


@pytest.fixture
async def ana():
    async with echoic.open("memory://", embedder="lexical") as service:
        yield service.user("ana")


async def call(user, *lines):
    """One call; a line that begins with ">" is the agent's."""
    conversation = await user.conversation()
    for line in lines:
        speaker = "agent" if line.startswith(">") else "user"
        await conversation.append(Turn(speaker=speaker, text=line.removeprefix(">")))
        await conversation.learn()


async def known(user):
    return {memory.key: memory.text for memory in await user.facts()}


@pytest.mark.parametrize(
    "lines",
    [
        ("i live in rome", ">where to", "book me a flight to paris", "actually london"),
        ("I live in Rome, book me a flight to Paris", "Actually London"),
        ("i live in rome", "my flight goes to oslo", "no bergen"),
    ],
)
async def test_a_correction_of_something_else_moves_nobody(ana, lines):
    await call(ana, *lines)
    assert await known(ana) == {"home": "Rome"}
    assert [memory.text for memory in await ana.history("home")] == ["Rome"]


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (("I live in Leeds.", ">And you'd like to fly to Paris?", "No, London."), {"home": "Leeds"}),
        (("I'm 45.", ">So forty boxes?", "No, fifty."), {"age": "45"}),
        (("I live in Leeds.", ">Leeds, in England?", "No, London."), {"home": "London"}),
        (("I live in Leeds.", ">You said Leeds?", "No, London."), {"home": "London"}),
        (("I live in Leeds.", ">Did you say Reading?", "No, London."), {"home": "London"}),
        (("I'm 45.", ">You're forty years old?", "No, fifty."), {"age": "50"}),
        (("I live in Leeds.", ">Thanks, noted.", "No, London."), {"home": "London"}),
        (
            ("I live in Leeds.", ">And you'd like to fly to Paris?", "No, London, not Leeds."),
            {"home": "London"},
        ),
        (("I'm 45.", ">Forty-five?", "No, fifty."), {"age": "50"}),
        (("I'm 45.", ">How many tickets?", "Sorry, fifty."), {"age": "45"}),
        (("I live in Leeds.", ">Where are you flying to?", "Sorry, Paris."), {"home": "Leeds"}),
        (("My name is Ruth.", ">Is the appointment for Tim?", "No, Tom."), {"user_name": "Ruth"}),
        (("My name is Ruth.", ">Ruth, is the appointment for Tim?", "No, Tom."), {"user_name": "Ruth"}),
        (("My name is Ruth.", ">Did Emma book it?", "No, Sarah."), {"user_name": "Ruth"}),
        (("My name is Ruth.", ">Who is it for?", "Sorry, Tom."), {"user_name": "Ruth"}),
        (("My name is Tim.", ">Tom?", "No, Tim."), {"user_name": "Tim"}),
        (("My name is Tom.", ">Tom, is it?", "No, Tim."), {"user_name": "Tim"}),
        (("My name is Ruth.", ">And your name is Tim?", "No, Tom."), {"user_name": "Tom"}),
        (("My name is Ruth.", ">How can I help you, Ruth?", "Sorry, it's Rachel."), {"user_name": "Rachel"}),
        (("My wife is called Ann.", ">And your daughter is Beth?", "No, Clara."), {"wife_name": "Ann"}),
        (("My wife is called Ann.", ">Your wife is Anna?", "No, Hannah."), {"wife_name": "Hannah"}),
        (
            ("My phone number is 0161 496 0123.", ">Are you in room 123?", "No, 321."),
            {"phone": "01614960123"},
        ),
        (
            ("My phone number is 0161 496 0123.", ">And your order number is 123456?", "No, 654321."),
            {"phone": "01614960123"},
        ),
        (
            ("My phone number is 0161 496 0123.", ">That is 0161 496 0123?", "No, 124."),
            {"phone": "01614960124"},
        ),
        (("My phone number is 0161 496 0123.", ">Ending 123?", "No, 124."), {"phone": "01614960124"}),
        (("My phone number is 0161 496 0123.", ">0123?", "No, 0124."), {"phone": "01614960124"}),
        (("My phone number is 0161 496 0123.", ">Thank you.", "Sorry, 0124."), {"phone": "01614960124"}),
        (
            ("I live at 12 Park Road.", ">Shall we deliver to 14 Elm Close?", "No, 16 Elm Close."),
            {"address": "12 Park Road"},
        ),
        (
            ("I live at 12 Park Road.", ">Shall we deliver to 14 Mill Road?", "No, 16 Mill Road."),
            {"address": "12 Park Road"},
        ),
        (("I live at 12 Park Road.", ">20 Park Road?", "No, 21 Park Road."), {"address": "21 Park Road"}),
        (
            ("My email is ruth@acme.com.", ">Shall I copy in tim@acme.org?", "No, tom@acme.org."),
            {"email": "ruth@acme.com"},
        ),
        (
            ("My email is ruth@acme.com.", ">Was it rut@acme.com?", "No, ruth7@acme.com."),
            {"email": "ruth7@acme.com"},
        ),
        (
            ("I live at 12 Park Road.", ">What's the address again?", "Sorry, 14 Park Road."),
            {"address": "14 Park Road"},
        ),
        (("My name is Ruth.", ">Sorry, who?", "No, Rachel."), {"user_name": "Rachel"}),
        (("I'm a nurse.", ">Would you like a doctor?", "No, a plumber."), {"occupation": "nurse"}),
    ],
)
async def test_an_answer_to_the_agent_corrects_only_what_the_agent_read_back(ana, lines, left):
    await call(ana, *lines)
    assert await known(ana) == left


@pytest.mark.parametrize(
    ("lines", "key", "texts"),
    [
        (("i live in rome", ">sorry", "um", "sorry i mean naples"), "home", ["Rome", "Naples"]),
        (("my name is jon", "can you hear me", "sorry john"), "user_name", ["Jon", "John"]),
        (("my birthday is may third", ">noted", "no wait may fourth"), "birthday", ["May 3", "May 4"]),
    ],
)
async def test_a_correction_a_turn_later_leaves_one_value_and_the_history(ana, lines, key, texts):
    await call(ana, *lines)
    versions = await ana.history(key)
    assert [memory.text for memory in versions] == texts
    assert [memory.current for memory in versions] == [False, True]


@pytest.mark.parametrize(
    ("first", "later", "diets"),
    [
        ("i'm vegan", "i'm vegetarian now", {"diet:vegetarian"}),
        ("I'm a vegetarian.", "We're pescatarian.", {"diet:pescatarian"}),
        ("i'm vegan", "i eat kosher", {"diet:vegan", "diet:kosher"}),
        ("i'm vegan", "i'm gluten free", {"diet:vegan", "diet:gluten-free"}),
    ],
)
async def test_of_diets_that_exclude_each_other_the_last_holds(ana, first, later, diets):
    await call(ana, first)
    await call(ana, later)
    assert set(await known(ana)) == diets


@pytest.mark.parametrize(
    ("first", "later", "times"),
    [
        ("call me in the evening", "don't call me in the evening", {"no_contact_time": "in the evening"}),
        ("never call me after six", "please call me after six", {"contact_time": "after six"}),
        (
            "call me in the evening",
            "don't call me at work",
            {"contact_time": "in the evening", "no_contact_time": "at work"},
        ),
    ],
)
async def test_nobody_wants_to_be_called_and_not_to_be_called_at_one_time(ana, first, later, times):
    await call(ana, first)
    await call(ana, later)
    assert await known(ana) == times


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("forget my peanut allergy", {"allergy:latex", "sister_name", "favourite:colour", "home"}),
        ("forget my sister's name", {"allergy:peanuts", "allergy:latex", "favourite:colour", "home"}),
        ("forget my favorite color", {"allergy:peanuts", "allergy:latex", "sister_name", "home"}),
        ("forget i live in rome", {"allergy:peanuts", "allergy:latex", "sister_name", "favourite:colour"}),
        (
            "forget i live in milan",
            {"allergy:peanuts", "allergy:latex", "sister_name", "favourite:colour", "home"},
        ),
    ],
)
async def test_in_a_later_call_what_is_named_is_forgotten_and_nothing_else(ana, said, left):
    await call(ana, "i'm allergic to peanuts and latex", "my sister is called maya")
    await call(ana, "my favourite colour is red", "i live in rome")
    await call(ana, said)
    assert set(await known(ana)) == left


@pytest.mark.parametrize(
    ("calls", "left"),
    [
        (
            ["I like music when I'm driving.", "I don't like music when I'm working."],
            {
                "preference:music": "likes music",
                "preference:music:when they are working": "doesn't like music",
            },
        ),
        (
            ["At work I like music. At home I don't like music."],
            {"preference:music": "likes music", "preference:music:at home": "doesn't like music"},
        ),
        (
            [
                "I like music when I'm driving.",
                "I don't like music when I'm working.",
                "I hate music when I'm working.",
            ],
            {"preference:music": "likes music", "preference:music:when they are working": "hates music"},
        ),
        (
            [
                "I like music when I'm driving.",
                "I don't like music when I'm working.",
                "forget that i don't like music when i'm working",
            ],
            {"preference:music": "likes music"},
        ),
        (
            ["At work I like music. At home I don't like music.", "forget that i like music"],
            {"preference:music:at home": "doesn't like music"},
        ),
        (
            ["I prefer tea, but only at work.", "I prefer tea, but only in the morning."],
            {"preference:tea": "prefers tea"},
        ),
        (
            ["I like jazz.", "I don't like jazz when I'm driving."],
            {"preference:jazz": "likes jazz", "preference:jazz:when they are driving": "doesn't like jazz"},
        ),
        (["I like jazz.", "I like jazz when I'm driving."], {"preference:jazz": "likes jazz"}),
        (["I love coffee.", "I like coffee, but only after dinner."], {"preference:coffee": "likes coffee"}),
        (["I like jazz.", "I hate jazz."], {"preference:jazz": "hates jazz"}),
        (
            ["Don't call me before nine.", "Please don't call me on Sundays.", "Don't call me before ten."],
            {"no_contact_time": "before ten", "no_contact_time:on sundays": "on Sundays"},
        ),
        (
            ["Don't call me before nine.", "don't call me in the evening", "call me in the evening"],
            {"no_contact_time": "before nine", "contact_time": "in the evening"},
        ),
        (
            [
                "My mobile number is 07700 900123.",
                "My work number is 0161 496 0999.",
                "My home number is 0161 496 0888.",
            ],
            {"phone": "07700900123", "work_phone": "01614960999", "home_phone": "01614960888"},
        ),
        (
            ["My work number is five five five one two three four, sorry, one two three five."],
            {"work_phone": "5551235"},
        ),
        (["My work number is 0161 496 0999.", "forget my work number"], {}),
        (
            ["My work email is ruth@bank.com.", "My personal email is ruth@home.org."],
            {"work_email": "ruth@bank.com", "email": "ruth@home.org"},
        ),
        (
            ["My sister Ann lives in Leeds.", "My sister Beth lives in York."],
            {"sister_name": "Ann", "sister_name:beth": "Beth"},
        ),
        (
            ["My older sister is called Ann and my younger sister is called Beth."],
            {"sister_name": "Ann", "sister_name:beth": "Beth"},
        ),
        (["My sister is called Ann. No, Beth."], {"sister_name": "Beth"}),
        (["My sister is called Ann.", "My sister is called Anna."], {"sister_name": "Anna"}),
        (["My wife is called Ann.", "My wife is called Beth."], {"wife_name": "Beth"}),
        (["My sister is called Ann.", "My sister is called Beth.", "forget my sister's name"], {}),
    ],
)
async def test_values_that_can_both_hold_stand_beside_each_other(ana, calls, left):
    for lines in calls:
        await call(ana, lines)
    assert await known(ana) == left


async def test_a_correction_of_a_second_sister_leaves_the_first(ana):
    await call(ana, "My sister is called Ann.")
    await call(ana, "My sister is called Beth.", ">Beth?", "No, Carla.")
    assert sorted((await known(ana)).values()) == ["Ann", "Carla"]


@pytest.mark.parametrize(
    ("first", "later", "left"),
    [
        ("My number is 0161 496 0999.", "My new number is 0161 496 0123.", {"phone": "01614960123"}),
        ("My number is 0161 496 0999.", "My number is now 0161 496 0123.", {"phone": "01614960123"}),
        ("My number is 0161 496 0999.", "My number has changed to 0161 496 0123.", {"phone": "01614960123"}),
        ("My phone is 0161 496 0999.", "my new mobile number is 07700 900123", {"phone": "07700900123"}),
        ("My address is 12 Park Road.", "My new address is 14 Elm Close.", {"address": "14 Elm Close"}),
        ("My address is 12 Park Road.", "my address is now 14 Elm Close", {"address": "14 Elm Close"}),
        ("My email is a@bank.com.", "my email is now ruth@home.org", {"email": "ruth@home.org"}),
        ("My surname is Baker.", "my surname is now Smith", {"last_name": "Smith"}),
        ("My surname is Baker.", "my new surname is Smith", {"last_name": "Smith"}),
        ("My name is Ruth Baker.", "my name is now Ruth Smith", {"user_name": "Ruth Smith"}),
        ("My name is Ruth Baker.", "my name has changed to Ruth Smith", {"user_name": "Ruth Smith"}),
        ("I live at 12 Park Road in Leeds.", "We've moved to York.", {"home": "York"}),
        ("I live at 12 Park Road in York.", "My new address is 14 Elm Close.", {"address": "14 Elm Close"}),
        ("I work at Google.", "I work at a bank now.", {"workplace": "a bank"}),
        ("I work at a bank.", "I work at Google now.", {"employer": "Google"}),
        ("My name is Ruth Baker.", "Please just call me Ruth from now on.", {"user_name": "Ruth"}),
        ("My name is Ruth Baker.", "Call me Ruth.", {"user_name": "Ruth"}),
        ("I work at Tesco Bank.", "I work at Tesco now.", {"employer": "Tesco"}),
    ],
)
async def test_a_new_value_replaces_the_old_one(ana, first, later, left):
    await call(ana, first)
    await call(ana, later)
    assert await known(ana) == left


@pytest.mark.parametrize(
    ("calls", "left"),
    [
        (["I live at 12 Park Road.", "I live in Leeds.", "I've moved to Leeds."], ["12 Park Road", "Leeds"]),
        (["Our new address is 14 Elm Close. We've moved to York."], ["14 Elm Close", "York"]),
        (["My name is Ruth Baker.", "Hi, it's Ruth."], ["Ruth Baker"]),
        (["My name is Ruth Baker.", "My name is Ruth. No, Rita."], ["Rita"]),
        (["My name is Ruth Baker. No, Ruth."], ["Ruth"]),
        (["My birthday is May 3rd 1962.", "My birthday is the third of May."], ["May 3, 1962"]),
        (["My birthday is May 3rd 1962.", "My birthday is the fourth of May."], ["May 4"]),
        (["My birthday is the fourth of March, nineteen forty-four."], ["March 4, 1944"]),
        (["I live in Leeds.", "I live in Bristol."], ["Bristol"]),
        (
            ["My address is 12 High Street, Leeds.", "I moved to Leeds in 2010."],
            ["12 High Street, Leeds", "Leeds"],
        ),
        (["My address is 12 High Street.", "We moved to Leeds ten years ago."], ["12 High Street", "Leeds"]),
        (["My address is 12 High Street.", "We've moved to Octopus."], ["12 High Street", "Octopus"]),
        (["I work for Bupa.", "I work at the clinic in town."], ["Bupa", "the clinic"]),
        (["I left my job at Tesco over the holidays."], []),
    ],
)
async def test_what_is_less_precise_or_not_new_ends_nothing(ana, calls, left):
    for lines in calls:
        await call(ana, lines)
    assert sorted((await known(ana)).values()) == left


async def test_a_move_to_what_may_be_no_place_is_unconfirmed_and_moves_nobody(ana):
    await call(ana, "I live in Leeds.", "my address is 12 Park Road")
    await call(ana, "We've moved to Octopus.")
    assert [(fact.key, fact.text, fact.confirmed) for fact in await ana.facts()] == [
        ("home", "Leeds", True),
        ("address", "12 Park Road", True),
        ("home:octopus", "Octopus", False),
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ("We've moved to Thirsk.", ">So you live in Thirsk now?", "Yes."),
        ("We've moved to Thirsk.", "I live in Thirsk."),
        ("We've moved up to Thirsk.",),
        ("We've moved to Thirsk, North Yorkshire, England.",),
        ("We've moved to York.",),
    ],
)
async def test_a_move_to_a_place_that_is_known_or_confirmed_moves(ana, lines):
    await call(ana, "I live in Leeds.")
    await call(ana, *lines)
    [home] = await ana.facts()
    assert home.key == "home"
    assert home.text != "Leeds"
    assert home.confirmed


async def test_a_part_of_a_name_does_not_confirm_the_whole(ana):
    conversation = await ana.conversation()
    await conversation.append(Turn(speaker="user", text="My name is Ruth Baker.", confidence=0.3))
    await conversation.append(Turn(speaker="user", text="My name is Ruth."))
    await conversation.learn()
    [name] = await ana.facts()
    assert (name.text, name.confirmed) == ("Ruth Baker", False)


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (("My daughter's name is Ann.", "No, it's Anna."), {"child:anna": "Anna"}),
        (("My daughter's name is Ann. No, it's Anna.",), {"child:anna": "Anna"}),
        (("My daughter's name is Ann.", "It's Anna, not Ann."), {"child:anna": "Anna"}),
        (("My dog's name is Rex.", "I meant Max."), {"pet:max": "Max"}),
        (("My dog's name is Rex.", "No, it's Max."), {"pet:max": "Max"}),
        (
            ("I'm allergic to penicillin.", "Actually no, it's amoxicillin."),
            {"allergy:amoxicillin": "amoxicillin"},
        ),
        (
            ("I'm allergic to penicillin.", ">Penicillin?", "No, amoxicillin."),
            {"allergy:amoxicillin": "amoxicillin"},
        ),
        (("I'm allergic to nuts.", "No, it's latex."), {"allergy:latex": "latex"}),
        (
            ("My rabbit's called Clover.", ">Clover.", "No, it's Clementine."),
            {"pet:clementine": "Clementine"},
        ),
        (("My rabbit's called Clover.", ">Clover?", "No, Hyacinth."), {"pet:hyacinth": "Hyacinth"}),
        (
            ("My favourite author is Barbara Pym.", ">Barbara Pym.", "No, it's Elizabeth Taylor."),
            {"favourite:author": "Elizabeth Taylor"},
        ),
        (("My favourite city is Rome.", "Sorry, it's Venice."), {"favourite:city": "Venice"}),
    ],
)
async def test_a_correction_names_another_child_pet_or_allergy(ana, lines, left):
    await call(ana, *lines)
    assert await known(ana) == left


@pytest.mark.parametrize(
    "said",
    [
        ("No, it's upstairs.",),
        ("No, it's Dave.",),
        ("No, it's broken.",),
        ("No, thanks.",),
        ("Sorry, bad line.",),
        (">Is the parcel at the door?", "No, it's Nokia."),
        (">Shall I look for an allergist?", "No, it's latex."),
    ],
)
async def test_what_corrects_something_else_ends_no_allergy(ana, said):
    await call(ana, "I'm allergic to penicillin.", *said)
    assert await known(ana) == {"allergy:penicillin": "penicillin"}


async def test_an_answer_to_the_agent_names_no_other_pet(ana):
    await call(ana, "My dog's name is Rex.", ">Is that your husband?", "No, it's Max.")
    assert await known(ana) == {"pet:rex": "Rex"}


@pytest.mark.parametrize(
    "said",
    [
        ("No, it's Monday.",),
        ("No, it's Leeds.",),
        ("No, it's raining.",),
        ("No, it's May already.",),
        ("Sorry, Kathryn with a Y.",),
        ("Sorry, YouTube.",),
        (">Is Clover with you?", "No, it's Hyacinth."),
        (">I see an iPhone on the account.", "No, it's Nokia."),
        ("I'm calling about my phone. No, it's Nokia.",),
    ],
)
async def test_what_corrects_something_else_renames_no_pet(ana, said):
    await call(ana, "My rabbit's called Clover.", *said)
    assert await known(ana) == {"pet:clover": "Clover"}


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (("I'm allergic to codeine.", "Not codeine, tramadol."), {"allergy:tramadol": "tramadol"}),
        (("I'm allergic to codeine.", "not codeine it's tramadol"), {"allergy:tramadol": "tramadol"}),
        (
            (
                "I'm allergic to codeine.",
                ">Codeine?",
                "Hang on, not codeine, it's tramadol that gives me a rash.",
            ),
            {"allergy:tramadol": "tramadol"},
        ),
        (
            (
                "I'm allergic to codeine.",
                ">So you're allergic to codeine.",
                "It's not codeine, it's tramadol.",
            ),
            {"allergy:tramadol": "tramadol"},
        ),
        (
            ("My birthday is the fourth of May.", "Sorry, I said May, it's the fourth of March."),
            {"birthday": "March 4"},
        ),
        (
            ("My birthday is the fourth of May.", "Not the fourth of May, the fifth of May."),
            {"birthday": "May 5"},
        ),
        (
            ("I'm allergic to codeine.", "Sorry, I said codeine, I meant tramadol."),
            {"allergy:tramadol": "tramadol"},
        ),
        (("I live in Leeds.", "Not Leeds, York."), {"home": "York"}),
        (("I live in Leeds.", "It's York, not Leeds."), {"home": "York"}),
        (("I live in Leeds.", ">Leeds, is that right?", "Not Leeds, York."), {"home": "York"}),
        (
            (
                "My birthday is the fourth of May.",
                ">May the fourth, yes?",
                "Sorry, I said May, it's March the fourth.",
            ),
            {"birthday": "March 4"},
        ),
        (("My name is Paul.", "Not Paul, Paula."), {"user_name": "Paula"}),
        (("My rabbit's called Clover.", "Not Clover, Hyacinth."), {"pet:hyacinth": "Hyacinth"}),
        (
            ("Hi, my name is Paul Newman.", ">Newman, thank you.", "No it's Nguyen not Newman."),
            {"user_name": "Paul Nguyen"},
        ),
        (
            ("My name is Jon Newman.", ">Jon Newman, with Dr Patel.", "Not Newman, Nguyen."),
            {"user_name": "Jon Nguyen"},
        ),
        (
            ("My name is Ana Smith.", ">Is that Smith with an i?", "No, it's Smyth, not Smith."),
            {"user_name": "Ana Smyth"},
        ),
        (
            ("My name is Ana Smith.", ">Thanks, Ana. How can I help?", "It's Anna, not Ana."),
            {"user_name": "Anna Smith"},
        ),
        (
            ("My name is Paul Newman.", ">Paul Newman.", "It's Paul Norman, not Newman."),
            {"user_name": "Paul Norman"},
        ),
        (("My son is called Tom.", ">Tom, how lovely.", "Not Tom, Tim."), {"child:tim": "Tim"}),
        (("My son is called Tom.", ">So your son is Tom.", "Not Tom, Tim."), {"child:tim": "Tim"}),
        (
            ("My wife is called Jan.", ">I'll add Jan to the policy.", "It's Jane, not Jan."),
            {"wife_name": "Jane"},
        ),
        (
            ("My wife is called Jan.", ">I'll add Jan to the policy.", "Not Jan, Jane."),
            {"wife_name": "Jane"},
        ),
        (
            ("My wife is called Jan.", ">Shall I add Jan to the policy?", "It's Jane, not Jan."),
            {"wife_name": "Jane"},
        ),
        (
            ("My husband is called Mark.", ">I'll put Mark down to drive.", "No, it's Steven, not Mark."),
            {"husband_name": "Steven"},
        ),
        (
            ("My name is Carl Meyer.", ">Shall I book it under Meyer?", "No, it's Maier, not Meyer."),
            {"user_name": "Carl Maier"},
        ),
        (
            ("My name is Ann Steven.", ">Thanks, Ann.", "It's Stevens, not Steven."),
            {"user_name": "Ann Stevens"},
        ),
    ],
)
async def test_a_value_may_be_denied_before_or_behind_the_right_one(ana, lines, left):
    await call(ana, *lines)
    assert await known(ana) == left


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("I'm allergic to codeine.", ("Not just codeine, tramadol too.",)),
        ("I'm allergic to codeine.", ("Not codeine tablets, the syrup.",)),
        ("I'm allergic to codeine.", ("Not codeine, thanks.",)),
        ("I'm allergic to codeine.", ("I said codeine, not tramadol.",)),
        ("I'm allergic to codeine.", ("I said codeine, it's anaphylaxis.",)),
        ("I'm allergic to codeine.", (">Would you like some codeine?", "Not codeine, paracetamol.")),
        ("I'm allergic to codeine.", (">I can give you codeine for that.", "Not codeine, paracetamol.")),
        ("I'm allergic to codeine.", ("I want something for the pain. Not codeine, paracetamol.",)),
        ("I'm allergic to codeine.", ("Actually it's lasagne that I ordered.",)),
        ("I live in Leeds.", (">Where are you flying from?", "Not Leeds, Manchester.")),
        ("My name is Sarah Jones.", (">Who is the booking for?", "It's not Sarah, it's Emma.")),
        ("My birthday is the fourth of May.", (">When would you like to come?", "Not May, June the sixth.")),
        ("I work at Tesco.", (">Where's the accident?", "Not Tesco, Asda.")),
        ("My son is called Tom.", (">Which child is it for?", "It's not Tom, it's Lucy.")),
        ("My phone number is 07700 900 118.", (">And your card?", "No, it ends in 4545.")),
        ("My son is called Tom.", (">Tom needs the booster then.", "Not Tom, Ruby.")),
        ("My son is called Tom.", (">Tom needs the booster then.", "No, it's Ruby, not Tom.")),
        ("My son is called Tom.", (">Does Tom need the booster?", "Not Tom.")),
        ("My son is called Tom.", (">Is Tom there?", "No, it's Tim, not Tom.")),
        ("My dog is called Rex.", (">Rex has his jab on Monday, then.", "Not Rex, Bella.")),
        ("My wife is called Marta.", (">Shall I send the letter to Marta?", "No, to Petra.")),
        ("My wife is called Marta.", (">Who's the ticket for, Marta?", "Not Marta, Petra.")),
        ("My daughter is called Ann.", (">Is it Ann who has the cough?", "No, Ruby.")),
        ("My sister is called Beth.", (">Is Beth your next of kin?", "No, it's Carla.")),
        ("My name is Ana Newman.", (">And the author is Newman, too?", "Not Newman, Nguyen.")),
        ("My name is Paul Newman.", (">And your doctor is Newman, too?", "It's Nguyen, not Newman.")),
        ("My name is Jack London.", (">Your flight goes to London.", "No, it's Paris, not London.")),
        ("My name is Mary Ann Newman.", (">Mary Newman.", "It's Mary Ann, not Mary.")),
        ("I live in Leeds.", ("Not Leeds, Dave.",)),
        ("I live in Leeds.", ("Not Leeds, Monday.",)),
        ("I live in Leeds.", ("Sorry, I said Leeds, I want a taxi to York.",)),
        ("I live in Leeds.", ("Not Leeds, please.",)),
    ],
)
async def test_what_denies_no_value_in_favour_of_another_ends_nothing(ana, first, then, texts):
    await call(ana, first, *then)
    assert await known(ana) == texts(first)


@pytest.mark.parametrize(
    ("first", "then", "left"),
    [
        ("My birthday is the fourth of May 1961.", "No, it's the fourth of March.", "March 4, 1961"),
        ("My birthday is the fourth of May 1961.", "No, the fourth of May 1962.", "May 4, 1962"),
        ("My birthday is the fourth of May.", "No, it's the fourth of March.", "March 4"),
        ("My mobile is 07700 900 118.", "No, one one nine at the end.", "07700900119"),
        ("My mobile is 07700 900 118.", "No, it ends in one one nine.", "07700900119"),
        ("My mobile is 07700 900 118.", "No, it ends one one nine.", "07700900119"),
        ("My mobile is 07700 900 118.", "Sorry, nineteen on the end.", "07700900119"),
        ("My mobile is 07700 900 118.", "No, nineteen.", "07700900118"),
        ("My mobile is 07700 900 118.", "No, it ends six thirty.", "07700900118"),
        ("My mobile is 07700 900 118.", "No, one one nine at the end of the month.", "07700900118"),
    ],
)
async def test_a_part_of_a_date_or_a_number_corrects_that_part(ana, first, then, left):
    await call(ana, first, then)
    assert list((await known(ana)).values()) == [left]


ASKED = ">What's the best number for you?"


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        ((ASKED, "Oh seven seven double oh.", ">Yes.", "900.", ">Go on.", "Four one two.", ">Thanks, and the road?"),
         "07700900412"),
        ((ASKED, "four one five", ">mm-hmm", "five five five oh one", ">yes", "four two", ">great and your zip code"),
         "4155550142"),
        ((ASKED, "07700", ">07700.", "900 thirty, no, thirteen", ">Yes?", "and a five",
          ">07700 900 135, lovely. And the road?"), "07700900135"),
        ((ASKED, "It's 07700 900 638.", ">07700 900 683?", "No, six three eight.", ">Sorry, 07700 900 638."),
         "07700900638"),
        ((">And a number?", "You can have the office. No, take mine, it's 07700 900 288.", ">07700 900 288. Right."),
         "07700900288"),
        ((">Can I take a contact number?", "not my husbands the new one is oh seven seven", ">yes",
          "double oh nine hundred one one five", ">oh seven seven double oh nine hundred one one five"),
         "07700900115"),
        ((">You're still on 07700 900 841?", "Eight four seven, at the end.", ">07700 900 847."), "07700900847"),
        ((">Is the mobile still 07700 900 703?", "Seven oh three, that's it.", ">Thanks."), "07700900703"),
        (("Ring me on oh seven seven double oh", ">yes", "nine hundred four five six", ">07700 900 456"),
         "07700900456"),
        ((">Your mobile number please?", "plus nine one nine eight seven six five", ">yes", "four three two one zero",
          ">plus 91 98765 43210, correct?"), "+919876543210"),
        ((">Is there a phone number I can reach you on?", "My Indian one's working. Plus 91, 98400, 55261.",
          ">98400 55261. Flowers?"), "+919840055261"),
        ((">and a mobile", "plus three nine three four seven", ">three nine three four seven", "five five five oh one",
          ">five five five oh one", "eight six", ">thank you"), "+393475550186"),
        ((">contact number please", "98450, then 55 37.", ">98450 55 37.", "No no, still more. 98450 55 371.",
          ">That is ten now? Nine eight four five zero, five five three seven one."), "9845055371"),
        ((">best mobile darren", "oh four double one", ">oh four double one", "five five five", ">yep",
          "um two oh eight", ">oh four one one five five five two oh eight is it brick"), "0411555208"),
        ((">and a callback number", ("two seven six five five five oh one one nine is the house but the cell is two "
          "seven six five five five oh one seven three"), ">so cell is two seven six five five five zero one seven three"),
         "2765550173"),
        ((">Emergency contact?", "My brother. 250-555-0181.", ">And yours?", "250-555-0118.", ">0118. Thanks."),
         "2505550118"),
        ((ASKED, "07700 900", ">yes", "412", ">07700 900 412. And the postcode?", "No, four one three.", ">Sorry."),
         "07700900413"),
    ],
)  # fmt: skip
async def test_a_number_given_over_several_turns_is_the_callers(ana, lines, number):
    await call(ana, *lines)
    assert await known(ana) == {"phone": number}


@pytest.mark.parametrize(
    "lines",
    [
        (">And your husband's number?", "07700", ">yes", "900 123", ">07700 900 123, thanks."),
        (">And his number?", "oh seven seven double oh", ">yes", "900 123", ">07700 900 123."),
        (ASKED, "It's my wife's, oh seven seven double oh", ">yes", "900 123", ">07700 900 123."),
        (ASKED, "Use Karen's. 07700", ">yes", "900 123", ">07700 900 123."),
        (ASKED, "use the wifes shes at home its oh seven eight double nine", ">yes", "900 123", ">07899 900 123"),
        (">What's your policy number?", "0 1 2 3 4 5", ">yes", "6 7 8 9", ">0123456789, thank you."),
        (">Your membership number?", "07700", ">yes", "900 123", ">07700 900 123, thanks."),
        (">What's the number on the bill?", "01632", ">yes", "960 555", ">01632 960 555."),
        (">You'll get a text from 07700 900 555.", "07700 900 555. Okay.", ">Yes, 07700 900 555."),
        (">I have your sister on 07700 900 841?", "Eight four seven.", ">07700 900 847."),
        (">And a number?", "I'd rather not.", ">Your order number?", "01234 567890", ">01234567890, thanks."),
        (">Our number is 0800 123 4567.", "Oh eight hundred one two three, four five six seven.", ">That's it."),
        (">and what is deepas number", "oh seven seven double oh nine hundred two oh six", ">thank you"),
        (">Emergency contact?", "My brother. 250-555-0181.", ">250-555-0181. Lovely."),
        (ASKED, "07700", ">Yes.", "900, no wait, 800", ">Mm.", "four one two", ">Thanks. And the road?"),
    ],
)  # fmt: skip
async def test_other_numbers_given_over_several_turns_are_not(ana, lines):
    await call(ana, *lines)
    assert "phone" not in await known(ana)


@pytest.mark.parametrize(
    "question",
    [
        "What mobile number would you like to send it to?",
        "Which phone number do you want to block?",
        "What's a phone number for Bob?",
        "Do you have a contact number for reception?",
        "What's the phone number of the clinic?",
        "And the recipient's mobile number?",
        "What number are you trying to call?",
        "What phone number did they give you?",
        "What's the landline number we should port in?",
        "And the claim number?",
        "And your wife's?",
        "Emergency contact?",
        "What's your employer's number?",
        "And what's the serial?",
    ],
)
async def test_a_number_that_follows_is_no_telephone_number_of_the_caller(ana, question):
    await call(
        ana,
        ASKED,
        "07700 900123.",
        f">Thanks. {question}",
        "07700 900456",
        ">07700 900456, thanks. What else?",
    )
    assert (await known(ana))["phone"] == "07700900123"


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        (("Ring me on 07700 900123 or my wife on 07700 900456", ">07700 900456, thanks. And 07700 900123."),
         "07700900123"),
        ((ASKED, "I'd rather not say. My old one was 07700 900123.", ">07700 900123 is what we have."), None),
        ((ASKED, "That's an old one. It's 07700 900222 now.", ">07700 900222. And the road?"), "07700900222"),
        ((ASKED, "07700 444 09", ">That's one short.", "oh sorry, 096", ">07700 444 096?"), "07700444096"),
    ],
)  # fmt: skip
async def test_of_several_numbers_only_the_callers_present_one_is_learned(ana, lines, number):
    await call(ana, *lines)
    assert (await known(ana)).get("phone") == number


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (("name please", "its tomasz which or wreck", "could you spell the surname for me", "w i e c z o r e k"),
         "Tomasz Wieczorek"),
        (("your name", "emeka nwosa", "how do you spell nwosa", "n w o s u"), "Emeka Nwosu"),
        (("your name please", "pea tree gordon pea tree", "is that p e t r i e", "aye thats it"), "Petrie"),
        (("Your name?", "Ada Byren.", "Is that B-Y-R-E-N?", "No, B, Y, R, O, N."), "Ada Byron"),
        (("Your name?", "Ada Byren.", "Is that B-Y-R-O-N?", "Yes."), "Ada Byron"),
        (("Your name?", "Rhiannon.", "Lovely, and the surname?", "It's Devlin."), "Rhiannon Devlin"),
        (("your name", "rhiannon", "and the surname", "its rhiannon devlin"), "Rhiannon Devlin"),
        (("your name", "rhiannon", "and the surname", "its the same as my husbands"), "Rhiannon"),
        (("your name", "tyrone baptist", "tyrone baptist", "nah with an e b a p t i s t e"), "Tyrone Baptiste"),
        (("Your name?", "Mrs Oyelaren.", "Could you spell the surname?", "O, Y, E, L, A, R, A, N."), "Mrs Oyelaran"),
        (("Your name?", "Thiago.", "Could you spell the surname?", "N, A, S, C like cat, I, M, E, N, T, O."),
         "Thiago Nascimento"),
        (("My name is Peter.", "Could you spell the surname?", "P E T R I E."), "Peter Petrie"),
        (("My name is Siobhan.", "Can you spell it?", "Sure, S, I, O, B, H, A, N."), "Siobhan"),
        (("My name is Ruth Baker. I'm at 9 Barkers Row.", "Could you spell that?", "B A R K E R S"), "Ruth Baker"),
        (("My name is Ruth Baker.", "How do you spell Barker Street?", "B A R K E R"), "Ruth Baker"),
        (("My name is Ruth.", "And which doctor?", "Hart.", "Could you spell that?", "R O T H"), "Ruth"),
        (("My name is Ruth.", "And your wife's name?", "Sarah.", "And the surname?", "Malik."), "Ruth"),
        (("My name is Ruth.", "And the surname on the booking?", "Malik."), "Ruth"),
        (("My name is Ruth.", "Could you spell the surname of your GP?", "H A R T E"), "Ruth"),
        (("My name is Ruth.", "is that r a c", "yes"), "Ruth"),
        (("My name is Ann.", "Is that A N N E?", "Yes but without the E."), "Ann"),
        (("My name is Ann.", "Is that A N N E?", "No."), "Ann"),
        (("I'm Zoe Hart.", "Zoey?", "No, Z, O, E."), "Zoe Hart"),
        (("I'm Mary Ann.", "And the surname?", "Lee."), "Mary Ann Lee"),
        (("I'm Ada Halvorsen.", "Is that H-A-L-V-O-R-S-O-N?", "With an E. S, E, N."), "Ada Halvorsen"),
        (("I'm Ada Halvorsen.", "Could you spell the surname?", "S, E, N at the end."), "Ada Halvorsen"),
    ],
)  # fmt: skip
async def test_a_name_that_is_spelled_is_written_so(ana, lines, name):
    agents = lines[0][:1] not in "MI"
    await call(ana, *(f">{line}" if (at % 2 == 0) == agents else line for at, line in enumerate(lines)))
    assert (await known(ana))["user_name"] == name


async def test_a_relatives_name_that_is_spelled_is_written_so(ana):
    await call(ana, "My sister's called Claire Baker.", ">How is that spelled?", "C L A R E.")
    assert await known(ana) == {"sister_name": "Clare Baker"}


async def test_a_surname_of_somebody_else_that_is_spelled_is_not_the_callers(ana):
    await call(ana, ">Who is it for?", "Jude Hart, my son.", ">Could you spell the surname?", "H A R T.")
    assert "Hart" not in str([await known(ana)])


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ((">whats your name", "its a maker", ">sorry", "emeka e m e k a emeka nwosu"), {"user_name": "Emeka Nwosu"}),
        ((">Your name?", "Ruf Bayka.", ">Sorry, could you say that again?", "Ruth Baker."), {"user_name": "Ruth Baker"}),
        ((">Where do you live?", "Leeds.", ">Sorry? I didn't catch that.", "In York."), {"home": "York"}),
        ((">What's your wife's name?", "Sar...", ">Pardon?", "Sarah Baker."), {"wife_name": "Sarah Baker"}),
        ((">Your name?", "Tom Baker. My wife passed away.", ">I'm sorry.", "Jean. It's all right."), {"user_name": "Tom Baker"}),
        ((">Your name?", "Tom Baker. My wife passed away.", ">Oh, sorry.", "Jean."), {"user_name": "Tom Baker"}),
        ((">Your name?", "Tom Baker. My wife passed away.", ">Sorry.", "Jean."), {"user_name": "Tom Baker"}),
        ((">your name", "tom baker my wife passed away", ">i'm sorry", "jean"), {"user_name": "Tom Baker"}),
        ((">Your name?", "Ruf Bayka.", ">I'm sorry, could you repeat that?", "Ruth Baker."), {"user_name": "Ruth Baker"}),
        ((">Your name?", "One moment.", ">Sorry, we're closed.", "Ruth Baker."), {}),
        ((">Your name?", "One moment.", ">Sorry?", "I said one moment."), {}),
        ((">Your name?", "One moment.", ">Sure.", "Ruth!"), {}),
    ],
)  # fmt: skip
async def test_an_answer_that_is_asked_for_again_answers_the_question_before(ana, lines, left):
    await call(ana, *lines)
    assert await known(ana) == left


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (("Myself, no.", ">Then whom am I helping today?", "Raghav Krishnamurthy.",
          ">Which tooth is it, Mr. Krishnamurthy?"), "Raghav Krishnamurthy"),
        ((">who have we got then", "it's joyce abernathy", ">and a good time to call joyce"), "Joyce Abernathy"),
        ((">are you insured with us", "yeah emeka okafor", ">thanks emeka tell me what happened"), "Emeka Okafor"),
        ((">And the name on the order?", "Morag Dalgleish. D, A, L, G, L, E, I, S, H.",
          ">Thank you, Mrs Dalgleish."), "Morag Dalgleish"),
        ((">am i speaking with lorraine", "no ma'am this is wendell do i sound like a lorraine",
          ">ha no sir are you an authorized user wendell"), "Wendell"),
        ((">Have you ordered before?", "I have. It'll be under McIlroy. Trevor McIlroy.", ">I've no Trevor.",
          "Really?", ">And what size is the tank, Trevor?"), "Trevor McIlroy"),
        ((">I've a Mr Winston Pryce?", "That was my dad. He passed last year. It's to be in my name. Leon Pryce.",
          ">My condolences, Mr Pryce."), "Leon Pryce"),
    ],
)  # fmt: skip
async def test_a_name_by_which_the_agent_addresses_who_gave_it_is_the_callers(ana, lines, name):
    await call(ana, *lines)
    assert await known(ana) == {"user_name": name}


@pytest.mark.parametrize(
    "lines",
    [
        (">Who is it for?", "Sarah.", ">Can I speak to Sarah?"),
        (">who is it for", "sarah", ">and how old is sarah"),
        (">who is it for", "sarah", ">is that sarah"),
        (">What's your daughter's name?", "Leila.", ">Hi Leila."),
        (">Any allergies?", "Warfarin", ">thanks warfarin noted"),
        (">Which town?", "bristol", ">thanks bristol and the street"),
        (">Who's the patient?", "Just the cat, Luna.", ">Okay, Luna it is."),
        (">Who should I text?", "mike", ">ok texting contact mike"),
        (">Whose birthday is it?", "Emma.", ">Happy birthday, Emma!"),
        (">And the next of kin?", "Emma Stone.", ">So next of kin, Emma Stone."),
        ("Thank you, Priya.", ">Anything else, Priya?"),
        (">Which model?", "It's Corsa.", ">Okay, Corsa."),
        (
            ">Have you ordered before?",
            "Under my late mother. Violet Ray.",
            ">Right.",
            "Yes.",
            ">And the tank, Violet?",
        ),
        (">Can I help?", "My boss's name is Karen Hill.", ">Is she in, Karen?"),
        ("It'll be under Violet Ray.", ">Right.", "She's my mum.", ">And the tank size, Violet?"),
        ("Booked under Omar Khan. He's my boss.", ">Thanks, Omar."),
    ],
)
async def test_a_name_that_the_agent_only_repeats_is_not(ana, lines):
    await call(ana, *lines)
    assert "user_name" not in await known(ana)


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (
            (
                ">Can I take your address?",
                "17 Beech Grove. No, listen to me, that's where we used to be. 71 Orchard Close.",
            ),
            {"address": "71 Orchard Close"},
        ),
        (
            (
                ">And your date of birth?",
                "The second of June 1949. No, what am I saying, that's Frank's. Mine's the ninth of September.",
            ),
            {"birthday": "September 9"},
        ),
        ((">And your date of birth?", "The second of June 1949. No, sorry, that's my wife's."), {}),
        (("I'm 34. No, wait, that's Tom's age. I'm 36.",), {"age": "36"}),
        (("I live in Leeds. Sorry, that's where I worked. I'm in York.",), {"home": "York"}),
        (("I work at Tesco. Sorry, that's the old job. I'm at Lidl now.",), {"employer": "Lidl"}),
        (("My number is 07700 900 123, no, that's my wife's.",), {}),
        (
            ("My birthday is the second of June, no, that's my wife's. Mine's the ninth of May.",),
            {"birthday": "May 9"},
        ),
        (
            (
                "My birthday is the second of June.",
                ">Okay.",
                "Sorry, that's my wife's. Mine's the ninth of May.",
            ),
            {"birthday": "May 9"},
        ),
        (
            ("My number is 07700 900123, sorry, that's my wife's. Mine is 07700 900456.",),
            {"phone": "07700900456"},
        ),
        (("I'm 34, I mean my husband is. There are 36 of us.",), {}),
        (("I live in Leeds, no, that's my mum's address. Paris, that's where I'm flying to.",), {}),
        (("I live at 5 Mill Lane. No, hang on, that's his.",), {}),
    ],
)
async def test_a_value_that_was_somebody_elses_is_not_the_callers(ana, lines, left):
    await call(ana, *lines)
    assert await known(ana) == left


@pytest.mark.parametrize(
    "said",
    [
        "The fourth of March 1980. Oh, that's my wife's birthday too.",
        "The fourth of March 1980. No, really, it's my birthday today.",
        "The fourth of March 1980. No, that's fine.",
        "The fourth of March 1980. Sorry, that's Tom's bus going by.",
        "The fourth of March 1980. Sorry, is that my wife's?",
        "The fourth of March 1980. Sorry, that's my son's, the racket.",
        "The fourth of March 1980. Actually, that's my wife's, too.",
        "The fourth of March 1980. That's my wife's as well.",
        "The fourth of March 1980. I have a cat. No, that's my wife's.",
        "The fourth of March 1980. No, it's not my husband's.",
    ],
)
async def test_a_remark_on_a_value_leaves_it(ana, said):
    await call(ana, ">And your date of birth?", said)
    assert (await known(ana))["birthday"] == "March 4, 1980"


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (("My mother-in-law might, actually. She's called Brenda.",), {"mother-in-law_name": "Brenda"}),
        (("Can they ring my partner? He's called Tomasz.",), {"partner_name": "Tomasz"}),
        (("I'd like to put my sister on. Her name's Eileen. Eileen Prowse.",), {"sister_name": "Eileen"}),
        (("my nan might come get it shes called gloria she lives next door",), {"nan_name": "Gloria"}),
        (("My daughter will come, she's called Seren.",), {"child:seren": "Seren"}),
        ((">What's your dad's name?", "Arthur Pemberton."), {"father_name": "Arthur Pemberton"}),
        ((">And what's your dog called?", "Rex."), {"pet:rex": "Rex"}),
    ],
)
async def test_who_is_called_so_is_whom_the_caller_has_just_named(ana, lines, left):
    await call(ana, *lines)
    assert await known(ana) == left


@pytest.mark.parametrize(
    "said",
    [
        "My sister has a friend. She's called Ann.",
        "My wife met a woman at work. She's called Ann.",
        "My mum's got a new boss. She's called Ann.",
        "My mum's friend, she's called Sue.",
        "My son plays with Max. He's called Max Hill.",
        "My brother is coming. She's called Ann.",
        "My daughter has a doll. She's called Bess.",
        "my mum is coming to get him hes called kofi",
        "If my sister comes, she's called Ann.",
        "My daughter's ill. Is she called Ann on your list?",
        "My dad was a pilot. He was called Tom.",
        "My wife's upset, she's called Dave to fix it.",
        "My wife rang you. She's called three times.",
        "I told my brother he's called Steve for a reason.",
        "My mum joked that he's called Bob.",
        "She's called Ann.",
    ],
)
async def test_somebody_else_who_is_called_so_is_no_relative(ana, said):
    await call(ana, said)
    assert await known(ana) == {}


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Take him off. Put my sister, Lowri, she's ten minutes away.", {"sister_name": "Lowri"}),
        ("I told the client Tuesday, but Priyanka, my boss, goes mad.", {"boss_name": "Priyanka"}),
        ("You can ring my husband, Dave, on the mobile.", {"husband_name": "Dave"}),
        ("Give it to my son, Max, he's in.", {"child:max": "Max"}),
        ("Tom, my brother, was here.", {"brother_name": "Tom"}),
        ("So my flatmate, Mei, has the small room.", {"flatmate_name": "Mei"}),
    ],
)
async def test_a_name_beside_a_relation_between_commas_is_theirs(ana, said, left):
    await call(ana, said)
    assert await known(ana) == left


@pytest.mark.parametrize(
    "said",
    [
        "It's for my wife, Anna, please.",
        "It's for my wife, Anna.",
        "I told my wife, Tom, that it's fine.",
        "Tom, my wife, she's ill.",
        "Thanks, Tom, my wife, who's ill, needs it.",
        "It's my mum, Dad, and me.",
        "Ask my boss, Friday, he's in.",
        "I flew with my mum, Paris was great.",
        "I was with my wife, Ann, we split up.",
        "Did you ring my wife, Ann, about it?",
        "If you ring my wife, Ann, she'll tell you.",
        "My mum's friend, Sue, is ill.",
        "Is Tom, my son, allowed?",
    ],
)
async def test_whom_the_caller_speaks_to_beside_a_relation_is_not_them(ana, said):
    await call(ana, said)
    assert await known(ana) == {}


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (["I'm allergic to penicillin.", "Sorry, not me, my husband."], {}),
        (["I'm allergic to penicillin and latex.", "Sorry, not me, my husband."], {}),
        (["I'm allergic to penicillin, I mean my husband is."], {}),
        (["I'm allergic to penicillin, no sorry, my husband is."], {}),
        (["i'm allergic to penicillin i mean my husband is"], {}),
        (
            [
                "I'm allergic to penicillin.",
                ">You're allergic to penicillin, noted.",
                "No, not me. It's my husband who's allergic.",
            ],
            {},
        ),
        (["I'm allergic to penicillin.", "No, that's my husband, not me."], {}),
        (["I'm vegan.", "Well my daughter is, I'm not."], {}),
        (["I work at Tesco.", "I mean my wife does."], {}),
        (["My email is bob@example.com, no wait, that's my son's."], {}),
        (
            [
                "My date of birth is the fourth of May 1950.",
                "Sorry that's my husband's, mine's the sixth of June 1952.",
            ],
            {"birthday": "June 6, 1952"},
        ),
        (
            ["my date of birth is 4 may 1950 sorry thats my husbands mine is 6 june 1952"],
            {"birthday": "June 6, 1952"},
        ),
        (
            ["My number is 07700 900123.", "Sorry, that's my wife's number, mine is 07700 900456."],
            {"phone": "07700900456"},
        ),
        # whose day and number are given without the year or the code
        (
            [
                "My date of birth is the fourth of May 1950.",
                "Sorry, that's my husband's, mine's the sixth of June.",
            ],
            {"birthday": "June 6"},
        ),
        (["My number is 07700 900123.", "Sorry, that's my wife's, mine's 456."], {}),
        # what is so of both
        (
            ["I'm allergic to penicillin.", ">Okay.", "Actually, my brother is, too, it runs in families."],
            {"allergy:penicillin": "penicillin"},
        ),
        (["I'm vegan.", "Well, my wife is, too."], {"diet:vegan": "vegan"}),
        (["I'm vegan.", "Well, my wife is also, since May."], {"diet:vegan": "vegan"}),
        (["I'm vegan.", "Actually, my wife is, as well."], {"diet:vegan": "vegan"}),
        (["I'm vegan.", "Actually my wife is, not me."], {}),
        (["I'm vegan.", "My wife is, not me."], {}),
        (["I'm vegan.", "Actually my wife is vegan, not me."], {}),
        (["I'm vegan.", "No, it's my wife who's vegan."], {}),
        (["I'm vegan.", "It's not me who's vegan, it's my wife."], {}),
        (["I'm vegan.", "Actually my wife is, and the kids, not me."], {}),
        (["I'm allergic to nuts.", "Sorry, Tom is, not me."], {}),
        (["I'm allergic to nuts.", "Actually, no, that's my husband."], {}),
        (["I live in Leeds.", "No, that's where my mum lives. I'm in York."], {"home": "York"}),
        (["I live in Leeds.", ">Leeds, lovely.", "No, that's where we used to be."], {}),
        (
            [">And your name?", "Tom Baker.", ">Thanks Tom.", "Sorry, that's my husband, I'm Ann Baker."],
            {"user_name": "Ann Baker"},
        ),
        ([">Can I take a number?", "It's 07700 900123, that's the site foreman."], {}),
        ([">What's your number?", "It's 07700 900123, that's Dave the site manager."], {}),
        ([">What's your number?", "07700 900123. That's my wife's."], {}),
        (["My number is 07700 900123, that's my daughter's mobile."], {}),
        ([">What's your email?", "ann@example.com, that's my daughter's."], {}),
        # who is only added
        (["I'm vegan.", "Actually my wife is, and the kids."], {"diet:vegan": "vegan"}),
        (["I'm vegan. Actually my wife is, and so are the kids."], {"diet:vegan": "vegan"}),
        (["I'm vegan.", "Actually my wife is and I am."], {"diet:vegan": "vegan"}),
        (["I live in Leeds.", "Actually my mum does, and my sister."], {"home": "Leeds"}),
        (["I work at Tesco.", "Actually my wife does, and her brother."], {"employer": "Tesco"}),
        # what is about somebody or something else
        (["I'm vegan.", "Sorry, it's my wife who's paying."], {"diet:vegan": "vegan"}),
        (["I'm vegan.", "Actually my wife is a vegan chef."], {"diet:vegan": "vegan"}),
        (["I'm vegan.", "Sorry, that's my son."], {"diet:vegan": "vegan"}),
        (["My name is Newman.", "No, it's Nguyen."], {"user_name": "Nguyen"}),
        (["My email is bob@example.com.", "That's Bob."], {"email": "bob@example.com"}),
        (["My number is 07700 900123, that's the office."], {"phone": "07700900123"}),
        (
            ["I'm allergic to nuts.", ">It says penicillin.", "No, that's my husband."],
            {"allergy:nuts": "nuts"},
        ),
        (["I'm allergic to nuts.", ">Nuts, okay.", "No, that's my husband."], {}),
        (["I'm allergic to nuts.", ">Okay, noted.", "No, that's my husband."], {}),
        # who is at the door or on the line, and what the agent named
        (["My email is jo@example.com.", "It's my son, hang on."], {"email": "jo@example.com"}),
        (["My email is jo@example.com.", "That's the driver."], {"email": "jo@example.com"}),
        (["My email is jo@example.com.", "It's the driver, he's here."], {"email": "jo@example.com"}),
        (
            ["My number is 07700 900123. It's the plumber, I'm calling about my invoice."],
            {"phone": "07700900123"},
        ),
        (["My number is 07700 900123.", "That's my husband. He's just walked in."], {"phone": "07700900123"}),
        (["My number is 07700 900123.", "Well, that's the nurse."], {"phone": "07700900123"}),
        (["My number is 07700 900123.", "Sorry, that's my son crying."], {"phone": "07700900123"}),
        (["You can call me on 07700 900123, that's the plumber at the door."], {"phone": "07700900123"}),
        (["My number is 07700 900123, that's my husband, hang on."], {"phone": "07700900123"}),
        ([">Can I take a number?", "07700 900123. This is the plumber."], {"phone": "07700900123"}),
        (
            [">Can I take a number?", "07700 900123.", "That's the postman, one second."],
            {"phone": "07700900123"},
        ),
        (
            ["My email is jo@example.com.", ">We have bob@example.com.", "That's my husband's."],
            {"email": "jo@example.com"},
        ),
        (
            ["My email is jo@example.com.", ">We have it as joe@example.com.", "No, that's my husband's."],
            {"email": "jo@example.com"},
        ),
        (
            ["My number is 07700 900123.", ">Is it 07700 900999?", "No, that's my old one."],
            {"phone": "07700900123"},
        ),
        (
            ["My number is 07700 900123.", ">We've got 07700 900999.", "Sorry, that's my wife's."],
            {"phone": "07700900123"},
        ),
        (["I live in Leeds.", ">We have York.", "No, that's where we used to live."], {"home": "Leeds"}),
        (["I work at Tesco.", ">We have Asda.", "No, that's where I used to work."], {"employer": "Tesco"}),
        (
            ["My address is 5 Mill Lane.", ">We have 12 Oak Road.", "No, that's our old address."],
            {"address": "5 Mill Lane"},
        ),
        (["My address is 5 Mill Lane.", "That's the postman."], {"address": "5 Mill Lane"}),
        (["I live in Leeds.", "It's my wife, she's back."], {"home": "Leeds"}),
        (["My email is jo@example.com.", ">jo@example.com.", "That's my husband's."], {}),
        (
            ["My number is 07700 900123.", "No wait, that's my husband. Mine's 07700 900456."],
            {"phone": "07700900456"},
        ),
        ([">Can I take a number?", "It's 07700 900123, that's the site foreman, he'll be there."], {}),
        (["My number is 07700 900123, that's the best one."], {"phone": "07700900123"}),
        (["My number is 07700 900123. That's my wife calling."], {"phone": "07700900123"}),
        (["I live at 5 Mill Lane. That's my mum's house, I live with her."], {"address": "5 Mill Lane"}),
        (["I live in Hull.", ">Hull, and do you own the house?", "No, my husband does."], {"home": "Hull"}),
        (
            ["I work at Tesco.", ">Tesco. And do you work full-time?", "No, my husband does."],
            {"employer": "Tesco"},
        ),
        (
            ["My birthday is the second of June.", "Sorry, that's my son's, the racket."],
            {"birthday": "June 2"},
        ),
        (
            [">Are you allergic to anything?", "Nuts. She's told you already, your colleague."],
            {"allergy:nuts": "Nuts"},
        ),
        (["I'm vegan.", ">Are the kids vegan?", "Well my daughter is."], {"diet:vegan": "vegan"}),
        (["I'm vegan.", ">Who called us this morning?", "Not me, my husband."], {"diet:vegan": "vegan"}),
        (["I'm vegan.", "Sorry, it's not me that's paying."], {"diet:vegan": "vegan"}),
        (["I'm vegan.", "Not my husband though."], {"diet:vegan": "vegan"}),
        (["I'm vegan.", "I want a table.", "Not for me, not me."], {"diet:vegan": "vegan"}),
        (["I live in Leeds.", "Sorry, that's my husband's phone."], {"home": "Leeds"}),
        (["I live in Leeds.", "Sorry, my daughter is."], {"home": "Leeds"}),
        (["I like jazz.", "Actually my husband does too."], {"preference:jazz": "likes jazz"}),
        (["I like jazz, my wife doesn't."], {"preference:jazz": "likes jazz"}),
        (["My name is Tom.", ">Hi Tom, is it for you?", "No, not me, my wife."], {"user_name": "Tom"}),
    ],
)
async def test_what_turns_out_to_be_somebody_elses_is_no_longer_the_callers(ana, lines, left):
    await call(ana, *lines)
    assert await known(ana) == left


async def test_a_title_replaces_no_full_name(ana):
    spelled = (">How do you spell the surname?", "S M Y T H.", ">Thanks, Mr Smyth.")
    await call(ana, ">Your name please?", "John Smyth.", *spelled)
    await call(ana, ">Surname please?", "Smyth.", ">Thank you, Mr Smyth.")
    assert (await known(ana))["user_name"] == "John Smyth"


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (["Call me after six, but not on Thursdays."], {"contact_time": ("after six", "not on Thursdays")}),
        (
            ["Please call me before noon, never on Mondays."],
            {"contact_time": ("before noon", "never on Mondays")},
        ),
        (
            ["Call me in the mornings when I'm on nights."],
            {"contact_time": ("in the mornings", "when they are on nights")},
        ),
        (["I live in Leeds when I'm not at sea."], {"home": ("Leeds", "when they are not at sea")}),
        (["I live in Durham during term time."], {"home": ("Durham", "during term time")}),
        (["At weekends I work at Lidl."], {"employer": ("Lidl", "at weekends")}),
        (
            ["In summer I live in Leeds.", "In winter I live in Malaga."],
            {"home": ("Leeds", "in summer"), "home:in winter": ("Malaga", "in winter")},
        ),
        (
            ["I live in Leeds.", "In winter I live in Malaga."],
            {"home": ("Leeds", None), "home:in winter": ("Malaga", "in winter")},
        ),
        (["In summer I live in Leeds.", "Actually it's York, not Leeds."], {"home": ("York", "in summer")}),
        (
            ["I live in Leeds.", "In winter I live in Malaga.", "I don't live in Malaga any more."],
            {"home": ("Leeds", None)},
        ),
        (
            ["Call me in the mornings.", "Call me after six, but not on Fridays."],
            {"contact_time": ("after six", "not on Fridays")},
        ),
        # no value without its condition, and no condition where there is none
        (["In summer I live in Leeds, in winter in Malaga."], {}),
        (["If I win the lottery I live in Malaga."], {}),
        (["In summer we moved to York."], {"home": ("York", None)}),
        (["I moved to Leeds during the war."], {"home": ("Leeds", None)}),
        (["I moved to Leeds after the divorce."], {"home": ("Leeds", None)}),
        (["I live in Leeds, just outside the ring road."], {"home": ("Leeds", None)}),
        (["I live in Leeds with my wife."], {"home": ("Leeds", None)}),
        (["I work at Tesco on the tills."], {"employer": ("Tesco", None)}),
        (["I work at Tesco in the bakery."], {"employer": ("Tesco", None)}),
        (["Call me after six, please."], {"contact_time": ("after six", None)}),
        # a second place, a second time or another person is no condition
        (["I live in Leeds during the week and in York at weekends."], {"home": ("Leeds", None)}),
        (["I work at Tesco during the day and at Asda at night."], {"employer": ("Tesco", None)}),
        (["I work at Tesco during the week and for Asda at weekends."], {"employer": ("Tesco", None)}),
        (
            ["Call me in the mornings during the week and in the evenings at weekends."],
            {"contact_time": ("in the mornings", None)},
        ),
        (
            ["Call me after six during the week and at ten at weekends."],
            {"contact_time": ("after six", None)},
        ),
        (["At weekends I work at Lidl, and during the week at Asda."], {}),
        (["Call me after six, in the evening call them at home."], {}),
        (["Ring me after six, when I'm at work ring my wife."], {"contact_time": ("after six", None)}),
        (
            ["Call me after six when I'm home and rested."],
            {"contact_time": ("after six", "when they are home and rested")},
        ),
        (
            ["Call me after six, but not on Thursdays and Fridays."],
            {"contact_time": ("after six", "not on Thursdays and Fridays")},
        ),
        (["I live in Leeds when I'm on call."], {"home": ("Leeds", "when they are on call")}),
        (
            ["I like tea when I'm at home and at work."],
            {"preference:tea": ("likes tea", "when they are at home and at work")},
        ),
    ],
)
async def test_a_home_an_employer_and_a_time_to_call_keep_their_condition(ana, lines, left):
    await call(ana, *lines)
    assert {memory.key: (memory.text, memory.context) for memory in await ana.facts()} == left


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("I've moved to York.", {"home": "York"}),
        ("We moved to York last month.", {"home": "York"}),
        ("My mum has moved to York.", {"home": "Leeds", "home:in winter": "Malaga"}),
        ("I work in York now.", {"home": "Leeds", "home:in winter": "Malaga"}),
    ],
)
async def test_a_move_ends_the_homes_of_every_season(ana, said, left):
    await call(ana, "In summer I live in Leeds.", "In winter I live in Malaga.")
    await call(ana, said)
    assert await known(ana) == left


@pytest.mark.parametrize(
    ("first", "left", "later"),
    [
        (first, left, later)
        for first, left, sayings in [
            (
                "My number is 07700 900123.",
                {"phone": "07700900456"},
                """I've got a new phone, it's 07700 900456.
                I have a new number and it's 07700 900456.
                I've changed my number to 07700 900456.
                I changed my mobile number, it's now 07700 900456.
                My number's changed, it's 07700 900456.
                ive got a new phone its 07700 900456""",
            ),
            (
                "My email is ann@home.org.",
                {"email": "ann@work.com"},
                "I've changed my email, it's ann@work.com.",
            ),
            (
                "My address is 12 Elm Road.",
                {"address": "5 Oak Lane"},
                "My address has changed, it's 5 Oak Lane.",
            ),
            ("I'm allergic to nuts.", {}, "Turns out I'm not allergic to nuts after all."),
            (
                "My number is 07700 900123.",
                {"phone": "07700900123"},
                """I've got a new phone case, it's blue.
                My mum's got a new phone, it's 07700 900456.
                Have I got a new phone, is it 07700 900456?
                I've changed my order number to 07700 900456.
                They've changed the helpline number to 07700 900456.
                If I've got a new phone, it's 07700 900456.
                I haven't changed my number to 07700 900456.""",
            ),
            (
                "I'm allergic to nuts.",
                {"allergy:nuts": "nuts"},
                """My wife is not allergic to nuts after all.
                I'm not allergic to hard work after all.""",
            ),
        ]
        for later in map(str.strip, sayings.splitlines())
    ],
)
async def test_what_has_changed_takes_the_place_of_what_was_known(ana, first, left, later):
    await call(ana, first)
    await call(ana, later)
    facts = {
        memory.key: memory.text for memory in await ana.facts() if memory.key in {"phone", "email", "address"}
    }
    allergies = {
        memory.key: memory.text
        for memory in await ana.facts()
        if (memory.key or "").startswith("allergy:nuts")
    }
    assert facts | allergies == left
