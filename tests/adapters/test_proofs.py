"""What proves who is calling, how often it may be guessed, and what an unproven call leaves behind."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from echoic import InvalidInput
from echoic.adapters.twilio import proofs
from echoic.adapters.twilio.callers import proves_number
from echoic.adapters.twilio.proofs import MASK, MAX_GUESSES, Pins, proof_in, wants_pin
from echoic.adapters.twilio.settings import PhoneSettings

A = "TN-Validation-Passed-A"
PIN = "482913"
SAID = "My PIN is 4 8 2 9 1 3."
SECRET = "My name is Ana, and my sister is called Quillhilda."


@pytest.fixture(autouse=True)
def quick_pins(request, monkeypatch):
    """What a guess at a PIN costs is proved by one test, and paid by no other."""
    if "costs" not in request.node.name:
        monkeypatch.setattr(proofs, "_COST", 2**4)


def parrot(_said, _given):
    return "Yes."


async def ana_has_a_pin(line, answer=parrot, **settings):
    """A phone that Ana called, proven, and of which she has a PIN."""
    phone = await line(answer, **settings)
    if settings.get("channel") != "media":
        call = await phone.call(attestation=A)
        await call.say(SECRET)
        await call.hang_up()
        await phone.service.distil()
    await phone.phone.callers.pins.set(phone.phone.callers.line_of("+15550100001"), PIN)
    phone.script.sent.clear()
    return phone


async def everything_kept(phone, tmp_path):
    await phone.service.settle()
    return b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_one_function_says_which_numbers_are_believed():
    assert proves_number(A, "a")
    assert not any(
        proves_number(other, "a")
        for other in ["", f"{A} ", A.lower(), f"{A}-Diverted", "TN-Validation-Passed-B"]
    )
    assert all(proves_number(other, "any") for other in ["", A, "No-TN-Validation", "TN-Validation-Passed-C"])
    for forged in ("TN-Validation-Failed-A", "tn-validation-failed", " TN-Validation-Failed-C"):
        assert not proves_number(forged, "any"), "what the carrier says is forged is believed nowhere"
    with pytest.raises(InvalidInput, match="trust"):
        PhoneSettings(auth_token="t", salt="of these tests, and long enough", trust="b")


async def test_a_deployment_that_trusts_any_number_knows_its_callers_without_attestation(line):
    phone = await ana_has_a_pin(line, trust="any")
    assert "Ana" in await (await phone.caller(attestation="")).dial()
    assert "Ana" not in await (await phone.caller(attestation="TN-Validation-Failed-A")).dial()


async def test_a_pin_is_known_again_whatever_the_digits_of_its_salt_look_like(line, monkeypatch):
    monkeypatch.setattr("secrets.token_bytes", lambda n: bytes.fromhex("5f5596842565431193800a6775d051b7"))
    phone = await ana_has_a_pin(line, channel="media")
    ana = phone.phone.callers.line_of("+15550100001")
    assert await phone.phone.callers.pins.whose([ana], PIN) == [ana]


async def test_a_guess_at_a_pin_costs_16_mb_of_scrypt(line):
    phone = await ana_has_a_pin(line, channel="media")
    pins, ana = phone.phone.callers.pins, phone.phone.callers.line_of("+15550100001")
    cost = (await pins._record(ana)).data["n"]
    assert 128 * 8 * cost == 16 << 20
    assert await pins.whose([ana], PIN) == [ana]


@pytest.mark.parametrize("channel", ["gather", "relay"])
@pytest.mark.parametrize("how", ["said", "keyed", "in words"])
async def test_a_pin_opens_the_memory_of_whoever_it_belongs_to(line, channel, how, tmp_path):
    phone = await ana_has_a_pin(line, channel=channel)
    call = await phone.call(attestation="")
    await call.say("I would like to hear about my zither lesson.")
    said = {"said": SAID, "keyed": PIN, "in words": "my pin is four eight two nine one three"}[how]
    heard = await (call.press(said) if how == "keyed" else call.say(said))
    assert "I know who you are" in heard
    await call.say("What is my sister called?")
    assert "Ana" in phone.script.sent[-1]
    await call.hang_up()
    turns = [turn.text for turn in (await phone.turns(call)).turns]
    assert turns[0].startswith("I would like"), "what was said before the proof is theirs as well"
    assert not any(PIN in turn or "4 8 2" in turn or "four eight" in turn for turn in turns)
    held = phone.phone.callers.lines.held(phone.phone.callers.line_of("+15550100001"))
    assert (await phone.service.user(held).export())["conversations"] == []
    sent = "".join(phone.script.sent)
    assert "4 8 2 9 1 3" not in sent
    assert PIN not in sent
    kept = await everything_kept(phone, tmp_path)
    assert b"4 8 2 9 1 3" not in kept
    assert PIN.encode() not in kept


@pytest.mark.parametrize(
    "said", ["My PIN is 4 8 2 9 1 4.", "my pin is 48291", "My PIN is 1 2 3.", "it's 482914", "pin 4829133"]
)
async def test_a_wrong_pin_opens_nothing_and_is_not_kept(line, said, tmp_path):
    phone = await ana_has_a_pin(line)
    call = await phone.call(attestation="")
    await call.say("I have a PIN.")
    await call.say(said)
    await call.say("What is my sister called?")
    await call.hang_up()
    assert "Quillhilda" not in "".join(phone.script.sent)
    kept = await everything_kept(phone, tmp_path)
    digits = "".join(c for c in said if c.isdigit())
    if len(digits) > 3:
        assert digits.encode() not in kept
        assert " ".join(digits).encode() not in kept


async def test_what_nobody_proved_to_have_said_is_kept_apart_and_recalled_by_nobody(line):
    phone = await ana_has_a_pin(line)
    before = await phone.memory().export()
    call = await phone.call(attestation="No-TN-Validation")
    await call.say("Remember that my harbour is Wexcombe.")
    await call.hang_up()
    await phone.service.distil()
    assert await phone.memory().export() == before
    held = phone.phone.callers.lines.held(phone.phone.callers.line_of("+15550100001"))
    assert "Wexcombe" in str(await phone.service.user(held).export()), "no word is lost"
    for verstat in ("", A):
        phone.script.sent.clear()
        other = await phone.call(attestation=verstat)
        await other.say("Which is my harbour?")
        await other.hang_up()
        assert "Wexcombe" not in "".join(phone.script.sent)


async def test_what_an_agent_noted_before_the_proof_is_the_callers_after_it_and_nobodys_without(line):
    def answer(said, given):
        if "plums" in said and not given:
            return [("agentMemory", {"operation": "set", "key": "fruit", "value": "plums"})]
        return "Yes."

    phone = await ana_has_a_pin(line, answer)
    users = set(await phone.service.users())
    lost = await phone.call(attestation="")
    await lost.say("I like plums.")
    await lost.hang_up()
    assert await phone.memory().get("fruit") is None
    call = await phone.call(attestation="")
    await call.say("I like plums.")
    await call.say(SAID)
    await call.hang_up()
    assert (await phone.memory().get("fruit")).text == "plums"
    assert {user for user in await phone.service.users() if user.startswith("guest:")} - users == set()


async def test_three_wrong_pins_end_it_for_a_call_and_five_for_the_day(line):
    phone = await ana_has_a_pin(line)
    first = await phone.call(attestation="")
    for wrong in ("482910", "482911", "482912"):
        assert "does not tell me" in await first.say(f"My PIN is {wrong}.")
    assert "does not tell me" in await first.say(SAID), "the right one as well"
    await first.hang_up()
    second = await phone.call(attestation="")
    for wrong in ("482914", "482915"):
        await second.say(f"My PIN is {wrong}.")
    await second.hang_up()
    third = await phone.call(attestation="")
    assert "does not tell me" in await third.say(SAID)
    await third.hang_up()
    vouched = await phone.caller(attestation=A)
    assert "Welcome back, Ana" in await vouched.dial(), "whose number is proven needs no PIN"


async def test_bare_digits_of_an_unproven_caller_are_guesses_too(line):
    phone = await ana_has_a_pin(line)
    first = await phone.call(attestation="")
    for wrong in ("482910", "482911", "482912"):
        await first.press(wrong)
    assert "I know who you are" not in await first.press(PIN), "three in a call"
    await first.hang_up()
    second = await phone.call(attestation="")
    assert "I know who you are" in await second.press(PIN), "the fourth was not counted"


@pytest.mark.parametrize(
    "said",
    [
        "I have a PIN, it's 4 8 2 9 1 3.",
        "I'd like to give you my PIN, 482913",
        "I want to use my PIN: 482913",
    ],
)
async def test_a_pin_that_a_caller_has_is_looked_at(line, said):
    phone = await ana_has_a_pin(line)
    call = await phone.call(attestation="")
    assert "I know who you are" in await call.say(said)


async def test_numbers_in_what_others_say_use_up_no_guesses_at_a_code(line):
    phone = await line(parrot)
    code = (await phone.phone.links.give("browser-ana")).code
    for caller in range(8):
        call = await phone.call(f"+1555010000{caller + 2}")
        await call.say("You can reach me on 415 555 0134 after six")
        await call.hang_up()
    call = await phone.call()
    assert "linked" in await call.say(f"The code is {code}")


async def test_guesses_at_a_pin_are_counted_before_it_is_compared_whoever_else_has_one_there(line):
    phone = await line(parrot)
    now = [datetime(2026, 11, 20, 12, tzinfo=UTC)]
    pins = [Pins(phone.service, "default", "a secret", clock=lambda: now[0]) for _ in range(8)]
    await pins[0].set("ana", PIN)
    await pins[0].set("mallory", "730195")
    found = await asyncio.gather(*(p.whose(["ana", "mallory"], "730195") for p in pins))
    assert all(users in ([], ["mallory"]) for users in found)
    for _ in range(MAX_GUESSES):
        await pins[0].whose(["ana", "mallory"], "730195")
    assert await pins[0].whose(["ana"], PIN) == [], (
        "a PIN of one's own does not make guesses at another's free"
    )
    now[0] += timedelta(hours=25)
    assert await pins[0].whose(["ana"], PIN) == ["ana"]
    for _ in range(MAX_GUESSES + 2):
        assert await pins[0].whose(["ana"], PIN) == ["ana"], "a right one is no guess"


async def test_a_pin_is_kept_as_a_hash_that_takes_the_deployments_secret(line, tmp_path):
    phone = await ana_has_a_pin(line)
    assert PIN.encode() not in await everything_kept(phone, tmp_path)
    theirs = phone.phone.callers.line_of("+15550100001")
    assert await Pins(phone.service, "default", "another secret").whose([theirs], PIN) == []
    assert PIN not in str(await phone.memory().export())
    assert "hash" not in str(await phone.memory().export())


@pytest.mark.parametrize(
    "pin",
    [
        "123456",
        "654321",
        "000000",
        "112211",
        "121212",
        "135791",
        "481481",
        "48291",
        "4829133",
        "",
        "48291x",
        "\u0664\u0668\u0662\u0669\u0661\u0663",
    ],
)
async def test_a_pin_that_anybody_would_try_first_is_refused_without_being_repeated(line, pin):
    pins = (await line(parrot)).phone.callers.pins
    with pytest.raises(InvalidInput) as refused:
        await pins.set("ana", pin)
    assert not pin or pin not in str(refused.value)


@pytest.mark.parametrize("channel", ["gather", "relay"])
async def test_a_pin_is_set_in_a_call_that_is_proven_and_in_no_other(line, channel, tmp_path):
    phone = await line(parrot, channel=channel)
    spoofed = await phone.call(attestation="TN-Validation-Passed-B")
    assert "does not tell me" in await spoofed.say(f"Set my PIN to {PIN}.")
    await spoofed.hang_up()
    assert not await phone.phone.callers.pins.has(phone.phone.callers.line_of("+15550100001"))
    call = await phone.call(attestation=A)
    assert "six digits" in await call.say("I want to set a PIN.")
    assert "six digits" in await call.say("123456")
    assert "PIN is set" in await call.say("4 8 2 9 1 3")
    await call.hang_up()
    again = await phone.call(attestation=A)
    assert "your PIN" in await again.say("Change my PIN to 730195"), "the old one first"
    assert "I know who you are" in await again.say("4 8 2 9 1 3")
    assert "PIN is set" in await again.say("Change my PIN to 730195")
    await again.hang_up()
    unproven = await phone.call(attestation="")
    assert "does not tell me" in await unproven.say(SAID)
    assert "I know who you are" in await unproven.say("My PIN is 730195")
    kept = await everything_kept(phone, tmp_path)
    assert not any(each in kept for each in (PIN.encode(), b"4 8 2 9 1 3", b"730195"))


async def test_a_code_of_a_page_proves_its_user_in_an_unproven_call_and_links_nothing(line):
    phone = await ana_has_a_pin(line)
    web = phone.service.user("web-mallory")
    await web.set("boat", "Nellie")
    before = await phone.memory().export()
    call = await phone.call(attestation="")
    heard = await call.press((await phone.phone.links.give("web-mallory")).code)
    assert "in this call" in heard
    await call.say("What is my boat?")
    assert "Nellie" in phone.script.sent[-1]
    await call.hang_up()
    assert await phone.phone.callers.lines.linked_to("web-mallory") == []
    assert await phone.memory().export() == before
    known = await phone.caller(attestation=A)
    assert "Welcome back, Ana" in await known.dial(), "the line is hers as it was"
    assert not phone.phone.known(known.sid).caller.changed, "nor is there anything to tell her"
    phone.script.sent.clear()
    await phone.phone.callers.pins.set("web-mallory", "730195")
    again = await phone.call(attestation="")
    assert "I know who you are" in await again.say("My PIN is 730195"), "where no carrier vouches, a PIN does"
    await again.say("What is my boat?")
    assert phone.phone.known(again.sid).caller.user == "web-mallory"
    assert "Quillhilda" not in "".join(phone.script.sent)


async def test_answers_do_not_tell_whether_anybody_is_known(line):
    phone = await ana_has_a_pin(line)
    heard = []
    for number in ("+15550100001", "+15550100002"):
        call = await phone.caller(number, attestation="")
        said = [await call.dial()]
        said += [
            await call.say(each)
            for each in ("I am Ana.", "This is Ana speaking.", "My PIN is 482914", "What is my name?")
        ]
        await call.hang_up()
        heard.append(said)
    assert heard[0] == heard[1]
    instructions = {sent.partition("\n[")[0] for sent in phone.script.sent}
    assert len(instructions) == 1


async def test_an_agent_that_takes_a_stranger_for_somebody_opens_nothing(line):
    phone = await ana_has_a_pin(line)
    phone.script.answer = lambda _said, _given: (
        [("wrong_caller", {"name": "Ana"})] if len(phone.script.sent) == 1 else "Yes."
    )
    before = await phone.memory().export()
    call = await phone.call(attestation="")
    await call.say("It is me, with the harbour in Wexcombe.")
    await call.say("What is my sister called?")
    await call.hang_up()
    assert "Quillhilda" not in "".join(phone.script.sent)
    assert await phone.memory().export() == before
    held = phone.phone.callers.lines.held(phone.phone.callers.line_of("+15550100001"))
    assert "Wexcombe" in str(await phone.service.user(held).export())


async def test_nothing_that_proves_who_calls_reaches_an_embedder(line, monkeypatch):
    phone = await ana_has_a_pin(line, channel="relay")
    searched = []
    watched = type(phone.service._parts.embedder)
    for name in ("embed", "embed_pieces"):
        embed = getattr(watched, name)

        async def noted(self, texts, kind, *, embed=embed):
            searched.extend(texts)
            return await embed(self, texts, kind)

        monkeypatch.setattr(watched, name, noted)
    for verstat in (A, ""):
        call = await phone.call(attestation=verstat, interim=True)
        await call.say("My garden has plums, and my pin is four eight two nine one three")
        await call.say("What is in my garden?")
        await call.hang_up()
    assert any("garden" in text for text in searched)
    assert not any("four eight two nine" in text for text in searched)


async def test_no_webhook_that_comes_later_makes_a_call_proven(line):
    phone = await ana_has_a_pin(line)
    call = await phone.call(attestation="TN-Validation-Passed-C")
    await call.post(
        "/phone/voice",
        {"CallSid": call.sid, "From": "+15550100001", "StirVerstat": A, "CallStatus": "ringing"},
    )
    await call.say("What is my sister called?")
    assert "Quillhilda" not in "".join(phone.script.sent)


async def test_neither_pins_nor_codes_are_logged(line, caplog):
    caplog.set_level(logging.DEBUG)
    phone = await ana_has_a_pin(line)
    call = await phone.call(attestation="")
    await call.say("My PIN is 482914")
    await call.say(SAID)
    await call.hang_up()
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("echoic"))
    assert "a call ended" in ours
    assert "482914" not in ours
    assert "4 8 2" not in ours


@pytest.mark.parametrize(
    ("said", "language", "digits"),
    [
        (SAID, "en-US", PIN),
        ("482-913", "en-US", PIN),
        ("Meine PIN ist vier acht zwei neun eins drei.", "de-DE", PIN),
        ("mon code est le quatre huit deux neuf un trois", "fr-FR", PIN),
        ("mi clave es cuatro ocho dos nueve uno tres", "es-MX", PIN),
        ("il mio codice è quattro otto due nove uno tre", "it-IT", PIN),
        ("o meu PIN é quatro oito dois nove um três", "pt-BR", PIN),
        ("double four eight two nine one", "en-US", "448291"),
        ("set my pin to four eight two nine one three", "en-GB", PIN),
    ],
)
def test_digits_that_prove_something_are_heard_and_masked(said, language, digits):
    proof = proof_in(said, language)
    assert proof is not None
    assert proof.digits == digits
    assert MASK in proof.masked
    assert proof_in(proof.masked, language) is None


@pytest.mark.parametrize(
    "said",
    [
        "My order number is 482913",
        "My zip code is 90210",
        "I was born in 1984",
        "call me at 555 010 0001",
        "",
        "one two",
    ],
)
def test_other_digits_are_left_alone(said):
    assert proof_in(said) is None


def test_who_wants_a_pin_says_so():
    assert all(map(wants_pin, ["Set my PIN to 482913", "I want to change my pin", "can I have a PIN"]))
    assert not any(map(wants_pin, ["my pin is 482913", "I like pineapples", "set my alarm"]))


@pytest.mark.parametrize("how", ["press", "say"])
async def test_a_pin_that_the_agent_asks_for_raises_the_level_and_reaches_no_model(line, how):
    phone = await ana_has_a_pin(line, lambda _said, _given: "Please say or key in your PIN.")
    call = await phone.call(attestation=A)
    await call.say("What about my health?")
    assert phone.phone.known(call.sid).caller.level == "attested"
    assert "I know who you are" in await getattr(call, how)(PIN if how == "press" else "4 8 2 9 1 3")
    assert phone.phone.known(call.sid).caller.level == "proved"
    await call.say("And now?")
    assert not any(digits in "".join(phone.script.sent) for digits in (PIN, "4 8 2 9 1 3"))


async def test_a_pin_in_mid_call_opens_what_an_attested_number_does_not(line):
    phone = await ana_has_a_pin(line)
    await phone.memory().set("diagnosis", "I have diabetes")
    await phone.memory().set("seat", "an aisle seat")
    call = await phone.call(attestation=A)
    await call.say("Good morning.")
    assert "an aisle seat" in phone.script.sent[-1]
    assert "diabetes" not in phone.script.sent[-1]
    assert "once they prove who they are" in phone.script.sent[-1]
    await call.say(SAID)
    await call.say("And what else do you know?")
    assert "diabetes" in phone.script.sent[-1]


async def test_a_pin_that_an_attested_number_set_opens_no_more_than_the_number(line):
    phone = await line(parrot)
    await phone.memory().set("diagnosis", "I have diabetes")
    await phone.memory().set("seat", "an aisle seat")
    call = await phone.call(attestation=A)
    assert "PIN is set" in await call.say(f"Set my PIN to {PIN}.")
    assert "I know who you are" in await call.say(SAID)
    await call.say("What about my diabetes?")
    assert "an aisle seat" in phone.script.sent[-1]
    assert "I have diabetes" not in phone.script.sent[-1]
    await call.hang_up()
    unproven = await phone.call(attestation="")
    assert "I know who you are" in await unproven.say(SAID)
    assert phone.phone.known(unproven.sid).caller.level == "attested"
    await unproven.hang_up()
    code = await phone.phone.links.give(phone.phone.callers.line_of("+15550100001"))
    proved = await phone.call(attestation=A)
    await proved.say(f"My code is {code.code}.")
    assert "PIN is set" in await proved.say("Set my PIN to 730195.")
    await proved.hang_up()
    again = await phone.call(attestation="")
    await again.say("My PIN is 730195.")
    assert phone.phone.known(again.sid).caller.level == "proved"


async def test_a_number_nobody_called_from_for_long_starts_as_a_strangers(line, monkeypatch):
    phone = await ana_has_a_pin(line, recycled_after_days=180)
    now = datetime.now(UTC)

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return now + timedelta(days=181)

    assert "Ana" in await (await phone.caller(attestation=A)).dial()
    monkeypatch.setattr("echoic.adapters.twilio.callers.datetime", Later)
    call = await phone.caller(attestation=A)
    assert "Ana" not in await call.dial()
    await call.say("What is my sister called?")
    assert "Quillhilda" not in phone.script.sent[-1]
    await call.say(SAID)
    await call.say("What is my sister called?")
    assert "Quillhilda" in phone.script.sent[-1], "whoever called from it before can prove it"
