"""What resembles a statement about the speaker and is none, beside the statements that it resembles."""

from __future__ import annotations

import cProfile
import pstats

import pytest

from echoic.english import listen
from echoic.english.forget_requests import forget_request
from echoic.memory.extraction.turns import hushes


def pairs(text, *before, since=""):
    previous = []
    for earlier in before:
        previous = listen(earlier, previous) or previous
    return [(one.key, one.text, one.retracts) for one in listen(text, previous, since)]


def held(text, *before, since=""):
    return {key: value for key, value, retracts in pairs(text, *before, since=since) if not retracts}


@pytest.mark.parametrize(
    "said",
    """
    i've lived in rome for a bit when i was a student|We've lived in Oslo for years before we came here.
    |i moved to germany with my parents when i was five|I moved to Rome years ago but I left.
    |i live in rome no more|I live in Oslo, but not any more.|i live in spain part of the year
    |i live in spain half the year and england the other half|I live in Porto in the winter.
    |i've worked at nokia and ericsson|I've worked for IBM.|i've been working at ibm but i quit last month
    |I work at Google, but I just got laid off.|i work at acme but they let me go
    |my dog Rex died last week|my cat is called whiskers but she died|My dog Max had to be put down.
    |my wife ana and i divorced|My husband Tom left me.|my girlfriend Mia and I just split up
    |i like jazz or at least i used to|i love jazz not|I'm vegan, but not now.
    """.split("|"),
)
def test_what_was_so_once_or_now_and_then_is_not_taken_for_what_is(said):
    assert held(said.strip()) == {}


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("i've lived in rome for ten years", {"home": "Rome"}),
        ("we've lived in oslo since march", {"home": "Oslo"}),
        ("I've lived in Rome for two years.", {"home": "Rome"}),
        ("I moved to Germany with my parents.", {"home": "Germany"}),
        ("i live in oslo and when i was five i had a dog", {"home": "Oslo"}),
        ("i live in spain with my dog", {"home": "Spain"}),
        ("i've worked at nokia for ten years", {"employer": "Nokia"}),
        ("I've been working at IBM since March.", {"employer": "IBM"}),
        ("i've been working at ibm but i want to quit", {"employer": "IBM"}),
        ("i work at google but i left my laptop there", {"employer": "Google"}),
        ("i live in london but my parents moved away", {"home": "London"}),
        ("my dog rex loves the beach", {"pet:rex": "Rex"}),
        ("i was born in rome in the fall of eighty five", {"birthplace": "Rome"}),
        ("my name is ana but i moved away", {"user_name": "Ana"}),
        ("I translate books and I live in Rome.", {"home": "Rome"}),
        ("my wife ana and i live in rome", {"wife_name": "Ana", "home": "Rome"}),
    ],
)
def test_what_lasts_is_kept(said, kept):
    assert held(said) == kept


@pytest.mark.parametrize(
    ("said", "home"),
    [
        ("I moved to Paris in 2010 and to London in 2015", "London"),
        ("i moved to paris and then to rome", "Rome"),
        ("we moved to oslo then to bergen", "Bergen"),
        ("i moved to paris and to be honest i hate it", "Paris"),
        ("I moved to Rome to study.", "Rome"),
    ],
)
def test_of_several_moves_the_last_counts(said, home):
    assert held(said) == {"home": home}


def test_a_home_denied_for_a_season_is_not_denied():
    assert pairs("i don't live in rome in the winter") == []


def test_what_is_denied_twice_over_is_still_denied():
    for said in ("i don't live in rome no more", "I don't live in Rome, not any more."):
        assert pairs(said) == [("home", "Rome", True)]


@pytest.mark.parametrize(
    "said",
    """
    in another life i live in bali|for the sake of argument my name is bob|in theory i live in rome
    |for testing purposes my name is bob|translate my name is bob into french|repeat after me i live in rome
    |how do you spell i live in rome|for argument's sake i work at google|on paper i live in rome
    |According to the form I live in Rome.|translate this my name is bob
    """.split("|"),
)
def test_what_is_only_put_or_worded_is_no_memory(said):
    assert listen(said.strip()) == []


@pytest.mark.parametrize(
    "said",
    """
    you can call me anytime|please call me asap|Call me whenever.|just call me sometime
    |my husband's name is none of your business|my name is none of your concern
    |i live in yoga pants|i grew up in foster care|i live in excel|i moved to linux|i moved to tears
    |I moved to Google last year|I moved to Spotify.|i'm from delta airlines|I'm from Boston Hospital.
    |i work at st mary's|i have a dog in this fight|I have a horse in this race.|i'll take a seat
    |my birthday is february thirtieth|my birthday is April 31st|My birthday is 31 June.
    """.split("|"),
)
def test_words_that_are_no_names_places_firms_animals_or_days(said):
    assert listen(said.strip()) == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("call me anton", {"user_name": "Anton"}),
        ("my wife's name is nona", {"wife_name": "Nona"}),
        ("i live in szczecin with my wife", {"home": "Szczecin"}),
        ("i grew up in harlem", {"grew_up_in": "Harlem"}),
        ("i'm from new york city", {"origin": "New York City"}),
        ("i work at st jude", {"employer": "St Jude"}),
        ("i have a dog in the garden", {"pet:dog": "a dog"}),
        ("i'll take a window seat", {"decision:seat": "take a window seat"}),
        ("my birthday is february twenty ninth", {"birthday": "February 29"}),
    ],
)
def test_names_places_firms_animals_and_days_beside_them(said, kept):
    assert held(said) == kept


@pytest.mark.parametrize(
    "said",
    """
    my job is boring|my job is killing me|my job is stressing me out|My job is changing.
    |i'm basically a therapist to my friends|I'm a cook to my kids.
    """.split("|"),
)
def test_what_a_job_is_like_is_no_trade(said):
    assert listen(said.strip()) == []


@pytest.mark.parametrize(
    ("said", "trade"),
    [
        ("my job is teaching", "teaching"),
        ("my job is software testing", "software testing"),
        ("my job is accounting and i love it", "accounting"),
        ("i'm a therapist", "therapist"),
    ],
)
def test_what_one_does_is_a_trade(said, trade):
    assert held(said) == {"occupation": trade}


@pytest.mark.parametrize(
    "said",
    """
    i don't eat meat often|i never eat sushi without wasabi|i don't drink coffee after noon
    |I don't drink wine with fish.|i can't have dairy before bed|i avoid sugar during the week
    |i'm vegan except for cheese|i'm vegan on mondays|I'm vegetarian at home.|i'm keto during the week
    |my favorite color is blue or green
    """.split("|"),
)
def test_what_is_eaten_or_liked_on_a_condition_is_no_rule(said):
    assert listen(said.strip()) == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("i don't eat meat", {"avoids:meat": "meat"}),
        ("i don't drink coffee at all", {"avoids:coffee": "coffee"}),
        ("i can't have dairy or nuts", {"avoids:dairy": "dairy"}),
        ("i avoid sugar because of my teeth", {"avoids:sugar": "sugar"}),
        ("i'm vegan but my husband isn't", {"diet:vegan": "vegan"}),
        ("i'm vegan because of the animals", {"diet:vegan": "vegan"}),
        (
            "my favourite colour is red and i like cats",
            {"favourite:colour": "red", "preference:cats": "likes cats"},
        ),
    ],
)
def test_what_holds_without_one_is(said, kept):
    assert held(said) == kept


def test_speaking_a_language_badly_takes_nothing_back():
    assert pairs("i don't speak french well") == []
    assert pairs("I don't speak German very well.") == []
    assert pairs("i don't speak french") == [("language:french", "French", True)]


def test_one_spoken_word_is_one_key_however_it_is_spelt():
    assert held("my favorite color is blue") == {"favourite:colour": "blue"}
    assert held("My favourite colour is red.") == {"favourite:colour": "red"}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("forget i live in rome", ("home", "Rome", True)),
        ("please forget I'm vegan", ("diet:vegan", "vegan", True)),
        ("forget my name is bob", ("user_name", "Bob", True)),
        ("forget my favorite color is blue", ("favourite:colour", "blue", True)),
        ("forget my surname", ("last_name", "", True)),
        ("forget my peanut allergy", ("allergy:peanuts", "", True)),
        ("please forget about my allergy to bee stings", ("allergy:bee stings", "", True)),
        ("forget my favourite colour", ("favourite:colour", "", True)),
        ("forget my mum's name", ("mother_name", "", True)),
    ],
)
def test_what_is_to_be_forgotten_may_be_named_or_said_again(said, meant):
    assert pairs(said) == [meant]


@pytest.mark.parametrize(
    "said",
    """
    don't forget i live in rome|never forget i'm vegan|i forgot my favourite colour|did you forget my peanut allergy
    |how could you forget my mum's name|forget my favourite uncle's house
    |don't forget my allergies|i can't forget my date of birth|i always forget my date of birth|if i forget my dob remind me
    |did you forget my home address|will i forget my kids' names|my gran would forget where i live
    |forget my allergies for a moment, what about the price
    """.split("|"),
)
def test_speaking_of_forgetting_takes_nothing_back(said):
    assert not any(retracts for _, _, retracts in pairs(said.strip()))


@pytest.mark.parametrize(
    "said",
    """
    I get confused and forget where I live.|I'm so busy and always forget my phone number.
    |I panic and forget my address.|Some days I go blank and forget my age.
    |My parents get confused and forget their tablets.|I set an alarm but forget the tablets anyway.
    |They come in and forget their umbrellas.|I walk into the kitchen and forget what I wanted.
    """.split("|"),
)
def test_complaining_of_forgetting_asks_for_nothing(said):
    assert listen(said.strip()) == []
    assert forget_request(said.strip()) is None


@pytest.mark.parametrize(
    "said",
    """
    forget my phone number|please forget my email|I'd like you to forget where I live.
    |I moved, so forget where I live.|I have a new phone so forget my phone number.
    |I'm leaving Leeds and please forget my address.|I'm moving so just forget my address.
    |I've changed my mind, so just forget my phone number.|i changed my number and forget my phone number
    |I feel silly, so please forget my age.|I get that, but forget my address.
    """.split("|"),
)
def test_asking_to_forget_beside_something_else_is_still_asked(said):
    heard = listen(said.strip())
    assert heard
    assert all(one.retracts for one in heard)
    assert forget_request(said.strip())


@pytest.mark.parametrize(
    "said",
    [
        "I said too much and forget what I told you about my divorce.",
        "I feel silly and forget what I said about Olga.",
        "Can I change my number and forget the old number?",
    ],
)
def test_what_was_said_can_be_forgotten_beside_how_one_feels(said):
    assert forget_request(said)


def test_what_is_not_to_be_written_down_is_not():
    assert listen("i live in rome but don't write that down") == []
    assert listen("My name is Ana, please do not note this down.") == []
    assert held("don't write that report down on me, i live in rome") == {"home": "Rome"}


@pytest.mark.parametrize(
    "said",
    """
    Don't remember it, sorry.|Sorry, don't remember that.|Don't remember it any more.|Don't keep it warm.
    |Don't keep that window open.|I really don't remember that.|I just don't remember that.
    |My parents don't remember it.|my two brothers still don't remember that|I usually don't save it.
    |I normally don't write it down.|Please do not record this as a no-show, I was in hospital.
    |Please don't record it as delivered.|Please don't keep it in the fridge.
    |Don't save this for later, deliver it now.|Don't write that down wrong, it's Kowalski with a K.
    |The bill is split just between us.|There's only a fence between you and me.
    """.split("|"),
)
def test_not_remembering_and_not_keeping_a_thing_hide_nothing(said):
    before = listen("I'm allergic to nuts.")
    assert not any(heard.retracts for heard in listen(said.strip(), before))
    assert not hushes(said.strip())


@pytest.mark.parametrize(
    "said",
    """
    don't remember that|Please don't keep this.|Actually, don't remember that.|Don't save that in the database.
    |Don't remember this in the future.    |Please don't record this in my notes.|Don't store that against my name.|i live in rome don't write that down
    |So my colleague Wendelin, don't remember this, is leaving.|keep that to yourself
    |Between you and me and don't write this down, I'm broke.|This is off the record: I'm broke.
    |I don't remember that, but please don't write this down.|Just between us, I'm ill.|my name is ana just between us
    |That's between you and me.|I'm ill, keep it between you and me.
    """.split("|"),
)
def test_what_is_said_in_confidence_is_not_kept(said):
    assert hushes(said.strip())


def test_beside_something_not_remembered_the_rest_is_kept():
    said = "I honestly don't remember it, but my name is Ana and I live in Leeds."
    assert held(said) == {"user_name": "Ana", "home": "Leeds"}


@pytest.mark.parametrize(
    ("said", "before"),
    [
        ("I live in Rome. Book me a flight to Paris. Sorry, London.", {"home": "Rome"}),
        ("I live in Rome, I want to fly to Paris, sorry, London", {"home": "Rome"}),
        ("My name is Anna. Put me through to Dave. No, Steve.", {"user_name": "Anna"}),
        ("I'm 34. I need 30 copies. Sorry, 40.", {"age": "34"}),
        ("My birthday is May 3rd. Book it for June 5th. Sorry, June 6th.", {"birthday": "May 3"}),
    ],
)
def test_a_correction_of_something_else_corrects_nothing_that_was_heard(said, before):
    assert held(said) == before
    *first, last = said.replace(", sorry", ". sorry").replace(", I want", ". I want").rstrip(".").split(". ")
    assert pairs(last, first[0], since=first[1]) == []


def test_a_correction_reaches_back_over_what_says_nothing():
    assert held("My name is Jon. Can you hear me? Sorry, John.") == {"user_name": "John"}
    assert held("sorry i mean naples", "i live in rome", since="how are you") == {"home": "Naples"}
    assert held("it's paula not paul", "my name is paul", since="put me through to dave") == {
        "user_name": "Paula"
    }


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("i live in rome i mean naples i mean florence", {"home": "Florence"}),
        ("my name is jon no wait john sorry joan", {"user_name": "Joan"}),
    ],
)
def test_a_correction_may_be_corrected(said, kept):
    assert held(said) == kept


def test_i_meant_to_say_is_no_part_of_what_was_meant():
    assert pairs("i meant to say pollen", "i'm allergic to nuts") == [
        ("allergy:nuts", "nuts", True),
        ("allergy:pollen", "pollen", False),
    ]


def test_corrections_of_other_things_are_heard_in_linear_time():
    """Steps are counted, not seconds, which depend on what else the machine does."""

    def steps(times):
        text = "I live in Rome. " + "Book it to Paris. No, London. " * times
        with cProfile.Profile() as counted:
            listen(text)
        return pstats.Stats(counted).total_calls

    steps(10)
    assert steps(400) < 15 * steps(40)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I'm here with my husband Graham and we'd like a table.", {"husband_name": "Graham"}),
        ("It's for my daughter Priya.", {"child:priya": "Priya"}),
        ("i've come about my grandson dylan's appointment", {"grandson_name": "Dylan"}),
        ("Can you add my husband Peter, please?", {"husband_name": "Peter"}),
        ("me brother keith set it up", {"brother_name": "Keith"}),
        ("ask my uncle chidi nwosu about it", {"uncle_name": "Chidi"}),
        ("my husband tom parcel is late", {"husband_name": "Tom"}),
        ("I've brought my cat Smudge in.", {"pet:smudge": "Smudge"}),
        ("My dog Bertie's on tablets.", {"pet:bertie": "Bertie"}),
        ("my husband dave and my daughter chloe", {"husband_name": "Dave", "child:chloe": "Chloe"}),
        ("It's me and Colin, that's my partner, so two.", {"partner_name": "Colin"}),
        ("my neighbour has one and so does nora thats my mum", {"mother_name": "Nora"}),
    ],
)
def test_whoever_is_named_beside_a_relation_is_known_by_it(said, kept):
    assert held(said) == kept


@pytest.mark.parametrize(
    "said",
    """
    She said my husband Bob is rude.|I told my husband I'd ring.|They call me Brother Paul.|bless me father john
    |Ring my mum Thursday at five.|Can I bring my dog Tuesday?|I want to buy my husband Nike trainers.
    |it's on my husband visa card|I want my kid Cudi tickets.|I was with my brother in Leeds.|tell my dad manchester is fine
    |She plays my wife Cynthia in the film.|I lost my brother Tom last year.|my friend's brother Liam set it up
    |I don't think my brother Tom rang.|my boss's wife Karen is a vegan|I spoke to your manager's wife Karen.
    |Sorry, Dave, that's my wife.|Thanks Karen, that's my husband now.|I said to Dave, that's my wife on the phone.
    |Me, Monday? That's my day off.|me and Sky, that's my husband|Tom, he's gone, my son.|Tom died. My brother.
    |Since Moira passed. My wife.|Karen's ringing Dave, my brother.|Tesco's shut, my husband.|Who rang? My brother.
    |Tom's coming. And my brother.|I bought my son Jordan trainers.|Send it to my sister, Karen.|London's lovely. My brother.|suppose my wife zara wins|her husband Barry is ill
    """.split("|"),
)
def test_whoever_may_be_somebody_else_is_not_named_by_a_relation(said):
    assert held(said.strip()) == {}
