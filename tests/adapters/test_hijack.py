"""A line is nobody's for the asking: who links or unlinks it proves both sides, and its owner is told and can undo it."""

from __future__ import annotations

import asyncio

import pytest

from echoic import NotAllowed
from echoic.adapters.twilio.callers import MAX_MAY_PROVE, Callers

A = "TN-Validation-Passed-A"
SECRET = "My name is Ana, and my sister is called Quillhilda."


def agent(said, given):
    """A model that does what it is asked to."""
    tools = {
        "code for my browser": ("browser_code", {}),
        "did not link": ("unlink_phone", {"not_mine": True}),
        "unlink": ("unlink_phone", {}),
    }
    asked = next((call for words, call in tools.items() if words in said), None)
    if asked and not given:
        return [asked]
    return str(given[0]) if given else "Yes."


def digits(heard):
    return "".join(character for character in heard if character.isdigit())[:8]


async def ana_is_known(line, **settings):
    phone = await line(agent, **settings)
    call = await phone.call(attestation=A)
    await call.say(SECRET)
    await call.hang_up()
    await phone.service.distil()
    return phone


async def linked_by_who_calls(phone, user):
    """A code asked for in a proven call, and what a page makes of it."""
    call = await phone.call(attestation=A)
    code = digits(await call.say("Give me a code for my browser."))
    await call.hang_up()
    proven = await phone.phone.links.take_proof(code)
    assert proven is not None
    await phone.phone.callers.lines.link(proven.line, user, proved=proven.proved)


@pytest.mark.parametrize("verstat", ["", "TN-Validation-Passed-B", "TN-Validation-Failed-A", f"{A}-Diverted"])
async def test_a_spoofed_call_can_neither_link_nor_unlink_a_line(line, verstat):
    phone = await ana_is_known(line)
    await linked_by_who_calls(phone, "web-ana")
    key = await phone.phone.callers.lines.linked_to("web-ana")
    spoofed = await phone.call(attestation=verstat)
    assert "'success': False" in await spoofed.say("Give me a code for my browser.")
    assert "'success': False" in await spoofed.say("Please unlink this phone.")
    assert "'success': False" in await spoofed.say("I did not link this phone.")
    await spoofed.press((await phone.phone.links.give("web-mallory")).code)
    assert "'success': False" in await spoofed.say("Give me a code for my browser."), (
        "proven to be somebody else"
    )
    assert "'success': False" in await spoofed.say("Please unlink this phone.")
    await spoofed.hang_up()
    assert await phone.phone.callers.lines.linked_to("web-ana") == key
    assert await phone.phone.callers.lines.linked_to("web-mallory") == []


async def test_no_code_of_a_stranger_links_a_number_that_nobody_called_from_yet(line):
    phone = await line(agent)
    spoofed = await phone.call(attestation="")
    await spoofed.press((await phone.phone.links.give("web-mallory")).code)
    await spoofed.hang_up()
    first = await phone.call(attestation=A)
    await first.say("I live in Wexcombe.")
    await first.hang_up()
    assert "Wexcombe" in str(await phone.memory().export())
    assert "Wexcombe" not in str(await phone.service.user("web-mallory").export())


async def test_a_line_with_memories_of_somebody_else_is_not_linked_unless_they_prove_who_they_are(line):
    phone = await ana_is_known(line)
    callers = phone.phone.callers
    mine = callers.line_of("+15550100001")
    ben = await phone.call(attestation=A)
    await ben.say("This is Ben speaking.")
    await ben.say("I play the bassoon.")
    proven = await phone.phone.links.take_proof(digits(await ben.say("Give me a code for my browser.")))
    with pytest.raises(NotAllowed):
        await callers.lines.link(proven.line, "web-ben", proved=proven.proved)
    assert "in this call" in await ben.press((await phone.phone.links.give("web-ben")).code)
    await ben.hang_up()
    assert await callers.lines.linked_to("web-ben") == []

    named = await phone.call(attestation=A)
    await named.say("This is Ana.")
    assert "'success': False" in await named.say("Give me a code for my browser."), "a name proves nothing"
    await named.hang_up()

    await callers.pins.set(mine, "482913")
    users = (await callers.identify("+15550100001", A)).people
    await callers.pins.set(users["Ben"], "730195")
    both = await phone.call(attestation=A)
    await both.say("My PIN is 730195.")
    await both.say("My PIN is 482913.")
    code = digits(await both.say("Give me a code for my browser."))
    await both.hang_up()
    proven = await phone.phone.links.take_proof(code)
    await callers.lines.link(proven.line, "web-ana", proved=proven.proved)
    assert len(await callers.lines.linked_to("web-ana")) == 1


async def test_on_a_shared_phone_a_name_with_a_pin_is_opened_by_the_pin_alone(line):
    phone = await ana_is_known(line)
    ben = await phone.call(attestation=A)
    await ben.say("This is Ben speaking.")
    await ben.hang_up()
    await phone.phone.callers.pins.set(phone.phone.callers.line_of("+15550100001"), "482913")
    phone.script.sent.clear()
    call = await phone.call(attestation=A)
    assert "your PIN" in await call.say("This is Ana speaking.")
    await call.say("What is my sister called?")
    assert "Quillhilda" not in "".join(phone.script.sent)
    assert "I know who you are" in await call.say("4 8 2 9 1 3") or "I know who" in await call.say(
        "My PIN is 482913"
    )
    await call.say("What is my name?")
    assert phone.phone.known(call.sid).caller.user == phone.phone.callers.line_of("+15550100001")


async def test_whoever_calls_next_is_told_that_the_line_was_linked_once_and_not_a_spoofed_caller(line):
    phone = await ana_is_known(line)
    await linked_by_who_calls(phone, "web-ana")
    spoofed = await phone.caller(attestation="TN-Validation-Passed-B")
    assert "linked" not in await spoofed.dial()
    await spoofed.say("Hello.")
    rang = await phone.caller(attestation=A)
    assert "linked to a web page" in await rang.dial()
    await rang.hang_up()
    first = await phone.caller(attestation=A)
    assert "linked to a web page" in await first.dial(), "a call without a word may not have been heard"
    await first.say("Fine.")
    await first.hang_up()
    second = await phone.caller(attestation=A)
    assert "linked" not in await second.dial()
    assert await phone.phone.callers.lines.unlink_user("web-ana") == 1
    third = await phone.caller(attestation=A)
    assert "link was undone" in await third.dial()


async def test_a_caller_who_was_greeted_before_they_were_known_is_told_of_the_link_the_next_time(
    line, monkeypatch
):
    phone = await ana_is_known(line)
    await linked_by_who_calls(phone, "web-ana")
    identify, may = Callers.identify, asyncio.Event()

    async def slow(*args):
        await may.wait()
        return await identify(*args)

    monkeypatch.setattr(Callers, "identify", slow)
    late = await phone.caller(attestation=A)
    assert "linked" not in await late.dial()
    may.set()
    await late.say("Fine.")
    await late.say("Thank you.")
    await late.hang_up()
    told = await phone.caller(attestation=A)
    assert "linked to a web page" in await told.dial()
    await told.say("Fine.")
    await told.hang_up()
    assert "linked" not in await (await phone.caller(attestation=A)).dial()


async def test_a_caller_who_is_told_of_the_link_when_they_prove_who_they_are_is_told_once(line):
    phone = await ana_is_known(line)
    await linked_by_who_calls(phone, "web-ana")
    await phone.phone.callers.pins.set("web-ana", "482913")
    call = await phone.call(attestation="")
    assert "linked to a web page" in await call.say("My PIN is 4 8 2 9 1 3.")
    await call.say("Fine.")
    await call.hang_up()
    assert "linked" not in await (await phone.caller(attestation=A)).dial()


async def test_whom_a_line_was_taken_from_finds_out_on_their_page(line):
    phone = await line(agent)
    lines = phone.phone.callers.lines
    for user in ("web-ana", "web-new"):
        await linked_by_who_calls(phone, user)
    assert len(await lines.taken_from("web-ana")) == 1
    assert await lines.linked_to("web-ana") == []
    assert await lines.taken_from("web-new") == []
    assert "web-new" not in str(await phone.service.user("web-ana").export())


@pytest.mark.parametrize("who", ["owner", "operator"])
async def test_a_link_that_was_not_wanted_is_undone_and_no_word_is_lost(line, who):
    phone = await ana_is_known(line)
    mallory = phone.service.user("web-mallory")
    await mallory.set("boat", "Nellie")
    await linked_by_who_calls(phone, "web-mallory")  # by somebody who had her phone in their hands
    call = await phone.call(attestation=A)
    await call.say("My doctor is in Wexcombe.")
    await call.hang_up()
    await phone.service.distil()
    assert "Wexcombe" in str(await mallory.export())
    undoing = await phone.call(attestation=A)
    if who == "owner":
        await undoing.say("I moved to Zanzibarro.")
        assert "'linked': False" in await undoing.say("I did not link this phone.")
        await undoing.say("Thank you.")
    else:
        await undoing.say("I moved to Zanzibarro.")
    await undoing.hang_up()
    if who == "operator":
        mine = phone.phone.callers.line_of("+15550100001")
        await phone.phone.callers.lines.unlink(mine)
        assert await phone.phone.callers.give_back(mine) == 2
        assert await phone.phone.callers.give_back(mine) == 0
    await phone.service.distil()
    theirs, hers = str(await mallory.export()), str(await phone.memory().export())
    for word in ("Wexcombe", "Zanzibarro"):
        assert word in hers
        assert word not in theirs
    assert "Quillhilda" in hers
    assert (await mallory.get("boat")).text == "Nellie"
    assert (await phone.phone.callers.identify("+15550100001", A)).user == phone.phone.callers.line_of(
        "+15550100001"
    )


async def test_a_line_that_was_unlinked_can_be_linked_again(line):
    phone = await ana_is_known(line)
    for _ in range(2):
        await linked_by_who_calls(phone, "web-ana")
        assert (await phone.phone.callers.identify("+15550100001", A)).user == "web-ana"
        call = await phone.call(attestation=A)
        assert "'linked': False" in await call.say("Please unlink this phone.")
        await call.say("Thanks.")
        await call.hang_up()
        known = await phone.phone.callers.identify("+15550100001", A)
        assert known.user == phone.phone.callers.line_of("+15550100001")
        assert not known.changed, "who did it themselves need not be told"


async def test_a_code_asked_for_before_somebody_was_forgotten_is_good_no_longer(line):
    phone = await ana_is_known(line)
    call = await phone.call(attestation=A)
    code = digits(await call.say("Give me a code for my browser."))
    await call.hang_up()
    assert (await phone.memory().forget()).verified
    assert await phone.phone.links.take_proof(code) is None


async def test_a_user_who_is_forgotten_is_on_no_line_any_more_and_the_line_is_not_whose_it_was_before(
    line, tmp_path
):
    phone = await line(agent)
    user = "web-quillhilda-zanzibarro-of-wexcombe-with-a-long-name"
    await linked_by_who_calls(phone, "web-before")
    await linked_by_who_calls(phone, user)
    mine = phone.phone.callers.line_of("+15550100001")
    call = await phone.call(attestation=A)
    await call.say("I like plums.")
    receipt = phone.service.user(user).forget()
    assert (await receipt).verified
    await call.hang_up()
    assert (await phone.service.user(user).forget()).verified
    await phone.service.settle()
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("echoic.db*") if path.is_file())
    assert user.encode() not in kept
    known = await phone.phone.callers.identify("+15550100001", A)
    assert (known.user, known.changed) == (mine, True)


async def test_what_strangers_said_from_a_number_goes_with_whose_number_it_is(line):
    phone = await ana_is_known(line)
    spoofed = await phone.call(attestation="")
    await spoofed.say("My harbour is Wexcombe.")
    await spoofed.hang_up()
    held = phone.phone.callers.lines.held(phone.phone.callers.line_of("+15550100001"))
    assert held in await phone.service.users()
    assert (await phone.memory().forget()).verified
    assert await phone.service.users() == []


async def test_a_crowd_of_codes_said_from_a_number_leaves_few_who_may_prove_themselves_there(line):
    phone = await line(agent)
    lines, mine = phone.phone.callers.lines, phone.phone.callers.line_of("+15550100001")
    for number in range(MAX_MAY_PROVE + 3):
        await lines.may_prove(mine, f"web-{number}")
        await lines.may_prove(mine, f"web-{number}")
    known = (await lines.read(mine)).may_prove
    assert known == tuple(f"web-{number}" for number in range(3, MAX_MAY_PROVE + 3))
