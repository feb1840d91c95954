"""Secrets are found in others' sentences, and nothing else is.

The rules were developed on `development.jsonl`. Each held-out set was written when the rules stood, and counted
once before its misses were looked at and mended: those counts are in docs/secrets.md. From then on it belongs to
development, and a new one has to be written.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.secrets import MARKER, SECRETS, Known, Said, leans_on_context, mask, mask_json, mask_turn
from echoic.secrets.labels import WORDED
from scale import many

HERE = Path(__file__).parent
SETS = ("development", "held_out_1", "held_out_2", "held_out_3", "held_out_4", "held_out_5")


def lines(name):
    with (HERE / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


masked_once = functools.cache(mask)
"""Several tests look at what becomes of the same lines."""


def spoken(turns):
    """A dialogue as it is kept."""
    kept, known = [], []
    for speaker, text in turns:
        told = mask_turn(Said(speaker, text), kept, known=known)
        known += [Known(one.kind, one.value) for one in told.masked.found if one.kind in WORDED]
        for place, masked in told.earlier.items():
            kept[place] = Said(kept[place].speaker, masked.text)
        kept.append(Said(speaker, told.masked.text))
    return kept


@pytest.mark.parametrize("name", SETS)
def test_secrets_are_found_in_every_class(name):
    found, all_of = Counter(), Counter()
    for line in lines(name):
        if line["class"]:
            masked = masked_once(line["text"]).text
            all_of[line["class"]] += 1
            found[line["class"]] += MARKER.search(masked) is not None and not any(
                secret in masked for secret in line["secrets"]
            )
    assert set(all_of) <= set(SECRETS)
    assert found.total() / all_of.total() >= 0.97, (found, all_of)


@pytest.mark.parametrize("name", SETS)
def test_what_only_looks_like_a_secret_is_left_alone(name):
    harmless = [line["text"] for line in lines(name) if not line["class"]]
    touched = [text for text in harmless if masked_once(text).text != text]
    assert len(touched) <= len(harmless) / 100, touched


@pytest.mark.parametrize("zero", ["\uff10", "\u0660", "\u0966"], ids=["full-width", "Arabic", "Devanagari"])
@pytest.mark.parametrize("name", SETS)
def test_digits_of_other_scripts_are_read_as_these_are(name, zero):
    digits = {ord("0") + n: chr(ord(zero) + n) for n in range(10)}
    told = [line for line in lines(name) if line["class"]]
    found = [MARKER.findall(masked_once(line["text"]).text) for line in told]
    assert [MARKER.findall(mask(line["text"].translate(digits)).text) for line in told] == found


def test_a_long_turn_with_digits_of_another_script_is_read_with_those_before():
    assert leans_on_context(Said("user", "so " * 200 + "\u0665\u0661\u0667\u0663"))


@pytest.mark.parametrize("name", SETS)
def test_masking_again_changes_nothing(name):
    for line in lines(name):
        once = masked_once(line["text"]).text
        assert mask(once).text == once


@pytest.mark.parametrize("line", lines("dialogues"), ids=lambda line: line["turns"][-1][1][:30])
def test_what_is_asked_for_read_out_and_read_back_is_found_over_turns(line):
    kept = [said.text for said in spoken(line["turns"])]
    if line["class"] is None:
        assert kept == [text for _, text in line["turns"]]
    else:
        assert not [secret for secret in line["secrets"] for text in kept if secret in text], kept


def test_others_dialogues_are_kept_without_their_secrets_and_otherwise_as_they_were_said():
    """Written apart from the rules, and counted before these were mended: docs/secrets.md."""
    left, touched, number = [], [], Counter()
    for line in lines("held_out_dialogues"):
        kept = [said.text for said in spoken(line["turns"])]
        number["secret" if line["secrets"] else "harmless"] += 1
        if not line["secrets"]:
            touched += [kept] if kept != [text for _, text in line["turns"]] else []
        elif any(secret.lower() in text.lower() for secret in line["secrets"] for text in kept):
            left.append(kept)
    assert number == {"secret": 108, "harmless": 61}
    assert len(left) <= 1, left
    assert not touched


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The wifi is BlueHouse22 with a capital B.", "The wifi is [password] with a capital B."),
        ("our wi-fi is bluehouse22 with a capital B", "our wi-fi is [password] with a capital B"),
        *[
            (harmless, harmless)
            for harmless in (
                "The wifi is down.",
                "The wifi is BlueHouse22.",
                "My wifi name is BlueHouse22.",
                "The wifi is slow with a capital S.",
                "The wifi is 500 megabits all day.",
                "The wifi is 5G with a capital G.",
                "Is the wifi free in all caps mode?",
                "The wifi is on in room 22 with a view.",
                "The wifi is off until 10 all week.",
                "The wifi is best with a capital outlay.",
                "Our wifi is from 2019, with a capital cost.",
            )
        ],
    ],
)
def test_a_wifi_password_is_known_by_how_it_is_written(text, kept):
    assert mask(text).text == kept


@pytest.mark.parametrize(
    "text",
    [
        "The laptop is 1499.",
        "The tablet, it's 1299.",
        "My iPad was 1299.",
        "The suitcase is 1250.",
        "The pan was 120 and I want to return it.",
        "The visa was 185.",
        "The card was 250.",
        "Cards: 120.",
        "My appointment card says 1430.",
        "The boiler shows code 4512.",
        "Code 4512 came up on the boiler display.",
        "The washing machine says code 5021.",
        "The paint code is 4021.",
        "The tariff code is 4021.",
        "I got my driving licence, 1998 I think.",
        "My gym card number is 40213.",
        "My library card number is 21234567890123.",
        "My SIM card number is 8944123456789.",
        "I pay by direct debit and my student number is 20231145.",
        "The number I have is 4829137.",
        "I left my keys under the seat of the taxi.",
        "I live in NI and my order is AB123456.",
    ],
)
def test_a_price_a_year_or_what_a_machine_displays_is_kept(text):
    assert mask(text).text == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The gate's 4471 hash.", "The gate's [PIN] hash."),
        ("Alarm's 1984.", "Alarm's [PIN]."),
        ("Key safe's 4471, left of the door.", "Key safe's [PIN], left of the door."),
        ("The code for my laptop is 4471.", "The code for my laptop is [PIN]."),
        ("My card number is 401.", "My card number is [card number]."),
        ("My card is 4539.", "My card is [card number]."),
        ("My card is four five three.", "My card is [card number]."),
        ("The PAN is 4539 1488 0343.", "The PAN is [card number]."),
        ("The last four of my social are 1998.", "The last four of my social are [ID number]."),
        (
            "My library card is here, my visa is 4539 1488.",
            "My library card is here, my visa is [card number].",
        ),
        ("The number they sent is 482913.", "The number they sent is [one-time code]."),
        ("The number I just got is 482913.", "The number I just got is [one-time code]."),
        ("I left my spare key under the mat.", "I left my spare key [hidden key]."),
        ("I left my keys under the mat.", "I left my keys [hidden key]."),
        ("My NI is AB123456C.", "My NI is [ID number]."),
        ("National insurance, it's AB 12 34 56 C.", "National insurance, it's [ID number]."),
        ("My licence number is 1998.", "My licence number is [ID number]."),
        ("The boiler is off, the code is 482913.", "The boiler is off, the code is [one-time code]."),
        ("The boiler room code is 4471.", "The boiler room code is [one-time code]."),
        ("Of course the code is 482913.", "Of course the code is [one-time code]."),
    ],
)
def test_a_number_of_the_same_things_that_is_a_secret_is_masked(text, kept):
    assert mask(text).text == kept


def test_a_card_that_is_read_out_over_turns_is_masked_from_its_first_digits():
    turns = [
        ("user", "my card is four five three nine"),
        ("agent", "go on"),
        ("user", "one four eight eight"),
    ]
    turns += [
        ("agent", "mhm"),
        ("user", "zero three four three"),
        ("agent", "mhm"),
        ("user", "six four six one"),
    ]
    kept = [said.text for said in spoken(turns)]
    assert kept[0] == "my card is [card number]"
    assert kept[2::2] == ["[card number]"] * 3


@given(st.text(max_size=80) | st.text(alphabet="0123456789 -.pincodetwo,[]", max_size=80))
@settings(max_examples=many(60, least=10), deadline=None)
def test_any_text_is_taken_and_masking_is_idempotent(text):
    once = mask(text).text
    assert mask(once).text == once


@pytest.mark.parametrize(
    ("value", "gone"),
    [
        ({"pin": "5173"}, "5173"),
        ({"pin": 5173}, "5173"),
        ({"said": "4242424242424242"}, "4242424242424242"),
        ({"card": {"number": "4242 4242 4242 4242", "cvv": 123}}, "123"),
        ({"note": '{"password": "bluebird"}'}, "bluebird"),
        ({"results": [{"account_number": "12345678"}]}, "12345678"),
        ({"headers": ["Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"]}, "eyJ"),
    ],
)
def test_a_name_announces_its_value_in_json(value, gone):
    masked, found = mask_json(value)
    assert found
    assert gone not in json.dumps(masked)


@pytest.mark.parametrize(
    "value",
    [
        {"order": {"number": "12345678", "total": 4200, "at": "2026-11-22T16:00:00+00:00"}},
        {"zip_code": "94110", "country_code": "0044", "phone": "+442079460123"},
        {"id": "3f2504e04f8911d39a0c0305e82c3301", "tokens": 4096, "version": 12},
        {"pin_required": True, "password": None, "error": {"code": 4003}},
    ],
)
def test_ids_amounts_and_other_numbers_in_json_are_left_alone(value):
    assert mask_json(value) == (value, [])


@pytest.mark.parametrize(
    "named",
    [
        "5f5596842565431193800a6775d051b7",
        "78572976-3a12-417c-9a26-f88938703800",
        "25f8c787-8ff2-4427-9426-097284155e9c",
        "EE9756DE-8AB8-4923-B154-C3799EB5BE7E",
        "3641297b401d13f6be70438d0452f8fbfeb75b16555d7c7c4969460460945546",
    ],
)
def test_digits_in_a_uuid_or_a_digest_are_no_card_and_no_id(named):
    assert mask_json({"run": named}) == ({"run": named}, [])
    assert not mask(f"the trace is {named}, see there").found


@given(st.uuids(), st.binary(min_size=16, max_size=32))
@settings(max_examples=many(200, least=20), deadline=None)
def test_no_uuid_or_digest_is_taken_for_a_number(run, digest):
    value = {"run": str(run), "sum": digest.hex(), "turn": run.hex}
    letters = {name: text for name, text in value.items() if not text.replace("-", "").isdecimal()}
    assert mask_json(letters) == (letters, [])


def completed(digits):
    """`digits` with the check digits of a CPF."""
    for count in (9, 10):
        weighed = sum(
            int(digit) * weight for digit, weight in zip(digits, range(count + 1, 1, -1), strict=True)
        )
        digits += str(weighed * 10 % 11 % 10)
    return digits


@pytest.mark.parametrize("last", range(10))
def test_a_telephone_number_with_the_check_digits_of_a_cpf_is_kept(last):
    number = completed(f"15550100{last}")
    grouped = f"{number[:3]} {number[3:6]} {number[6:9]} {number[9:]}"
    for text in (
        f"+{number}",
        f"+ {number}",
        f"call me on {number}",
        f"my mobile's {grouped}",
        f"It's {number}.",
        f"+{grouped}",
        f"{number[:3]} {number[3:]}",
    ):
        assert mask(text).text == text
    spoken = "plus " + " ".join(
        "zero one two three four five six seven eight nine".split()[int(d)] for d in number
    )
    assert mask(spoken).text == spoken
    for value in ({"phone": number}, {"phone": int(number)}, {"caller": [f"+{number}"]}, {"to": grouped}):
        assert mask_json(value) == (value, [])
    asked = mask_turn(Said("user", number), [Said("agent", "What is the best number to reach you?")])
    assert asked.masked.text == number


@pytest.mark.parametrize("nine", ["155501000", "529982247"])
def test_a_cpf_that_is_announced_or_written_as_one_is_masked(nine):
    number = completed(nine)
    grouped = f"{nine[:3]} {nine[3:6]} {nine[6:]} {number[9:]}"
    written = f"{nine[:3]}.{nine[3:6]}.{nine[6:]}-{number[9:]}"
    for text in (number, grouped, written):
        assert mask(f"cpf {text}").text == "cpf [ID number]"
        asked = mask_turn(Said("user", f"it's {text}"), [Said("agent", "And your CPF?")])
        assert asked.masked.text == "it's [ID number]"
        assert mask_json({"caller": {"cpf": text}})[0] == {"caller": {"cpf": "[ID number]"}}
    for text in (written, f"{nine}-{number[9:]}"):
        assert mask(text).text == "[ID number]"
        assert mask(f"call +15550100088 or {text}").text == "call +15550100088 or [ID number]"
    assert mask_json({"cpf": int(number)})[0] == {"cpf": "[ID number]"}


@pytest.mark.parametrize(
    "number", ["123-45-6789", "185057800608491", "1 85 05 78 006 084 91", "7569217076985", "85.07.30-033.28"]
)
def test_no_number_behind_a_plus_sign_is_an_id(number):
    assert mask(f"it's {number}").text == "it's [ID number]"
    assert mask(f"it's +{number}").text == f"it's +{number}"
    assert mask_json({"phone": number}) == ({"phone": number}, [])
    assert mask_json({"phone": f"my ssn is {number}"})[0] == {"phone": "my ssn is [ID number]"}
    if number.isdecimal():
        assert mask(f"call me on {number}").text == f"call me on {number}"
    else:
        assert mask(f"the number is {number}").text == "the number is [ID number]"


def test_an_id_that_was_masked_before_is_masked_in_the_field_of_a_telephone_too():
    assert mask_json({"phone": "533380006"}, known=[Known("ID number", "533380006")])[0] == {
        "phone": "[ID number]"
    }


@pytest.mark.parametrize("beside", ["a", "ab12", "0x", "id "])
def test_a_card_beside_a_few_hexadecimal_digits_is_a_card(beside):
    assert "4242 4242 4242 4242" not in mask(f"{beside} 4242 4242 4242 4242 {beside}").text
    assert "4242424242424242" not in mask(f"{'f' * 32} 4242424242424242").text


def test_a_card_keeps_its_last_four_digits_only_when_it_was_said_whole():
    assert mask("it's 4111 1111 1111 1111").text == "it's [card ending 1111]"
    assert mask("my card number is 4111 11").text == "my card number is [card number]"


@pytest.mark.parametrize(
    ("asked", "said", "again"),
    [
        (
            "Please read me your recovery phrase.",
            "orchard velvet thunder maple anchor pigeon lantern copper meadow silver bottle harbor",
            "So orchard, velvet, thunder, maple, anchor, pigeon, lantern, copper, meadow, silver, bottle, harbor.",
        ),
        ("Go on.", "My password is purple rain forest", "İyi, shall I keep Purple Rain Forest?"),
    ],
)
def test_a_secret_in_words_is_masked_wherever_it_is_repeated(asked, said, again):
    kept = [
        one.text for one in spoken([("agent", asked), ("user", said), ("agent", "Thanks."), ("agent", again)])
    ]
    assert "forest" not in kept[3].lower()
    assert "harbor" not in kept[3]
    known = [Known("password", "purple rain forest")]
    assert mask_json({"note": "purple rain forest"}, known=known)[0] == {"note": "[password]"}


@pytest.mark.parametrize(
    "value",
    [
        {"national_id": "078-05-1120"},
        {"nationalId": "078051120"},
        {"tax_id": "078-05-1120"},
        {"passport_id": "X1234567"},
        {"government_id": "AB123456C"},
        {"card_id": "4111111111111111"},
        {"account_id": "GB82WEST12345698765432"},
        {"api_key_hash": "sk-abcdefghijklmnop1234567"},
        {"session_id": "481516"},
    ],
)
def test_a_secret_is_masked_in_a_field_of_an_id_too(value):
    masked, found = mask_json(value, known=[Known("PIN", "481516")])
    assert found
    assert set(value.values()).isdisjoint(masked.values())


@pytest.mark.parametrize(
    "value",
    [
        {"session_id": "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zC"},
        {"run_id": "5f481516-3a12-417c-9a26-481516703800"},
        {"card_id": "5f5596842565431193800a67"},
        {"tax_id": "3f2504e04f8911d39a0c0305e82c3301"},
        {"account_sid": "AC" + "0a" * 16},
        {"caller_id": "15550100088"},
        {"order_id": "12345678"},
    ],
)
def test_an_id_of_a_program_stays_whole(value):
    assert mask_json(value, known=[Known("PIN", "481516")]) == (value, [])
