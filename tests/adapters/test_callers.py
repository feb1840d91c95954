"""Who is calling is decided before a model sees anything of anybody."""

from __future__ import annotations

import asyncio

import pytest

from echoic.adapters.twilio.callers import Callers
from echoic.adapters.twilio.proofs import claim_in, codes_in, same_name
from echoic.session.call_record import read_exchanges
from echoic.session.recorder import CallRecorder

VOUCHED = "TN-Validation-Passed-A"
ANA = "My name is Ana, and my sister is called Quillhilda."


def parrot(_said, _given):
    """A model with no manners at all: it says whatever it was sent."""
    return "Yes."


async def meet(phone, number="+15550100001", said=ANA):
    """A call in which somebody is got to know."""
    call = await phone.call(number)
    await call.say(said)
    await call.hang_up()
    await phone.service.distil()


async def test_a_number_is_kept_as_a_salted_hash_and_in_no_other_form(line, tmp_path):
    phone = await line(parrot)
    await meet(phone)
    await phone.service.settle()
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("echoic.db*") if path.is_file())
    assert b"5550100001" not in kept
    other = await line(parrot, salt="another salt, as long as the first", service=phone.service)
    assert other.phone.callers.line_of("+15550100001") != phone.phone.callers.line_of("+15550100001")
    assert phone.phone.callers.line_of("+1 (555) 010-0001") == phone.phone.callers.line_of("+15550100001")


async def test_numbers_are_kept_plain_only_where_that_was_asked_for(line):
    phone = await line(parrot, plain_numbers=True)
    assert phone.phone.callers.line_of("+15550100001") == "phone:+15550100001"


@pytest.mark.parametrize("number", ["", "anonymous", "+266696687", "Restricted", "+1", "+999999999999999999"])
async def test_a_withheld_number_is_a_guest_of_whom_nothing_stays(line, number):
    phone = await line(
        lambda said, given: (
            [("agentMemory", {"operation": "set", "key": "k", "value": "plums"})] if not given else "Yes."
        )
    )
    call = await phone.call(number)
    await call.say("I like plums.")
    await call.hang_up()
    assert await phone.service.users() == []


async def test_a_caller_is_greeted_by_the_name_they_gave(line):
    phone = await line(parrot)
    await meet(phone)
    assert "Welcome back, Ana" in await (await phone.caller()).dial()


@pytest.mark.parametrize(
    "said", ["This is not Ana, it's Ben.", "No, I'm not Ana. My name is Ben.", "this is ben speaking"]
)
async def test_somebody_new_on_a_known_number_gets_a_memory_of_their_own(line, said):
    phone = await line(parrot)
    await meet(phone)
    before = len(phone.script.sent)
    call = await phone.call()
    await call.say(said)
    await call.say("I love sailing.")
    await call.hang_up()
    sent = "".join(phone.script.sent[before:])
    assert "Quillhilda" not in sent
    assert "sailing" not in str(await phone.memory().export()), "what Ben said is not in Ana's memory"
    ben = (await phone.phone.callers.identify("+15550100001", VOUCHED)).people["Ben"]
    assert "sailing" in str(await phone.service.user(ben).export())


async def test_words_said_before_somebody_was_corrected_leave_the_other_memory(line):
    phone = await line(parrot)
    await meet(phone)
    call = await phone.call()
    await call.say("I collect zithers.")
    await phone.service.distil()
    await call.say("By the way, this is not Ana.")
    await call.hang_up()
    assert "zithers" not in str(await phone.memory().export())


async def test_on_a_shared_phone_nobody_is_known_before_they_say_who_they_are(line):
    phone = await line(parrot)
    await meet(phone)
    await meet(phone, said="This is Ben speaking. I play the bassoon.")
    before = len(phone.script.sent)
    call = await phone.caller()
    assert "Who am I talking to" in await call.dial()
    await call.say("Guess.")
    assert "Quillhilda" not in phone.script.sent[before]
    assert "bassoon" not in phone.script.sent[before]
    await call.say("It's Anna.")
    await call.say("What do you know of me?")
    assert "Quillhilda" in phone.script.sent[-1]
    assert "bassoon" not in phone.script.sent[-1]


async def test_an_agent_that_finds_somebody_else_puts_what_it_knew_away(line):
    def answer(said, given):
        return (
            [("wrong_caller", {"name": "Ben"})]
            if "voice" in said and not answer.done.append(1) and len(answer.done) == 1
            else "Hello, Ben."
        )

    answer.done = []
    phone = await line(answer)
    await meet(phone)
    call = await phone.call()
    before = len(phone.script.sent)
    assert await call.say("Don't you know my voice?") == "Hello, Ben. "
    assert "Quillhilda" in phone.script.sent[before], "the model had it before"
    assert "Quillhilda" not in phone.script.sent[-1]
    await call.hang_up()
    assert "voice" not in str(await phone.memory().export())


@pytest.mark.parametrize("channel", ["gather", "relay"])
async def test_what_the_agent_said_from_one_memory_is_not_kept_in_anothers(line, channel):
    def answer(said, given):
        if "sister" in said:
            return "Your sister is Quillhilda."
        if "voice" in said and not switched:
            switched.append(True)
            return "Quillhilda sends her love, but wait.", [("wrong_caller", {"name": "Ben"})]
        return "Hello, Ben."

    switched = []
    phone = await line(answer, channel=channel)
    await meet(phone)
    call = await phone.call()
    await call.say("Who is my sister?")
    assert "Hello, Ben." in await call.say("Don't you know my voice?")
    await call.say("Goodbye.")
    await call.hang_up()
    ben = (await phone.phone.callers.identify("+15550100001", VOUCHED)).people["Ben"]
    kept = str(await phone.service.user(ben).export())
    assert "voice" in kept
    assert "Hello, Ben." in kept
    assert "Quillhilda" not in kept


class Slow:
    """A method that waits for `may` once it has `begun`."""

    def __init__(self, monkeypatch, owner, name):
        self.begun, self.may = asyncio.Event(), asyncio.Event()
        method = getattr(owner, name)

        async def slow(*args, **more):
            self.begun.set()
            await self.may.wait()
            return await method(*args, **more)

        monkeypatch.setattr(owner, name, slow)


async def stopped(phone, call):
    """Once no reply is being made."""
    async with asyncio.timeout(30):
        while phone.phone.known(call.sid)._replying is not None:
            await asyncio.sleep(0.01)


async def prompt(call, said):
    """Say something over a relay, and do not wait for the reply."""
    await call.send({"type": "prompt", "voicePrompt": said, "lang": "en-US", "last": True})


async def said_of(phone, call, user):
    """The caller's words of a call in one memory."""
    task = await phone.service.user(user).task(f"call:{call.sid}")
    return [turn.text for turn in task.turns if turn.speaker == "user"] if task else []


async def ben_of(phone):
    return (await phone.phone.callers.identify("+15550100001", VOUCHED)).people["Ben"]


@pytest.mark.parametrize("how", ["words", "a tool"])
async def test_who_says_that_they_are_somebody_else_and_hangs_up_leaves_nothing_in_the_other_memory(
    line, monkeypatch, how
):
    tool = how == "a tool"
    phone = await line(lambda said, _given: [("wrong_caller", {})] if tool and "voz" in said else "Yes.")
    await meet(phone)
    call = await phone.call()
    await call.say("I collect zithers.")
    slow = Slow(monkeypatch, *((Callers, "another") if tool else (CallRecorder, "drop")))
    waiting = asyncio.create_task(call.say("¿No conoces mi voz?" if tool else "You have the wrong person."))
    await slow.begun.wait()
    await call.hang_up()
    await stopped(phone, call)
    slow.may.set()
    await asyncio.gather(waiting, return_exceptions=True)
    await phone.phone.known(call.sid).hang_up()
    await phone.service.distil()
    assert await said_of(phone, call, phone.memory().scope.user) == []
    assert "zithers" not in str(await phone.memory().export())


async def test_a_socket_that_breaks_while_the_caller_changes_gives_the_next_nothing_of_the_one_before(
    line, monkeypatch
):
    phone = await line(lambda said, _given: "Quillhilda." if "sister" in said else "Yes.", channel="relay")
    await meet(phone)
    call = await phone.call()
    await call.say("What is my sister called?")
    slow = Slow(monkeypatch, CallRecorder, "drop")
    before = len(phone.script.sent)
    await prompt(call, "This is not Ana, it's Ben.")
    await slow.begun.wait()
    await call.drop()
    await stopped(phone, call)
    slow.may.set()
    await call.say("What do you know of me?")
    assert "This is not Ana" in phone.script.sent[-1]
    assert "Quillhilda" not in "".join(phone.script.sent[before:])
    await call.hang_up()
    await phone.phone.known(call.sid).hang_up()
    said = ["What is my sister called?", "This is not Ana, it's Ben.", "What do you know of me?"]
    assert await said_of(phone, call, await ben_of(phone)) == said


async def test_who_cuts_in_while_the_caller_changes_is_answered_as_who_they_are(line, monkeypatch):
    phone = await line(parrot, channel="relay")
    await meet(phone)
    call = await phone.call()
    await call.say("I collect zithers.")
    slow = Slow(monkeypatch, CallRecorder, "drop")
    another, asked = Callers.another, []
    monkeypatch.setattr(Callers, "another", lambda *args: asked.append(args) or another(*args))
    await prompt(call, "This is not Ana, it's Ben.")
    await slow.begun.wait()
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": ""})
    await stopped(phone, call)
    await call._reply(0.0, None)
    await prompt(call, "I love sailing.")
    slow.may.set()
    await call._reply(0.0, None)
    await call.say("Are you there?")
    await call.hang_up()
    await phone.phone.known(call.sid).hang_up()
    said = ["I collect zithers.", "This is not Ana, it's Ben.", "I love sailing.", "Are you there?"]
    assert await said_of(phone, call, await ben_of(phone)) == said
    assert len(asked) == 1, "what was said once is judged once"
    assert "zithers" not in str(await phone.memory().export())
    assert "Quillhilda" not in phone.script.sent[-1]


async def test_what_the_agent_said_from_one_memory_is_not_kept_in_anothers_though_it_is_cut_in_on(
    line, monkeypatch
):
    told = "Quillhilda sends her love."
    phone = await line(
        lambda said, _given: (told, [("wrong_caller", {"name": "Ben"})]) if "voice" in said else "Yes.",
        channel="relay",
    )
    await meet(phone)
    call = await phone.call()
    words = ["I am back.", "I have a question.", "And another one."]
    for said in words:
        await call.say(said)
    slow = Slow(monkeypatch, CallRecorder, "drop")
    await prompt(call, "Don't you know my voice?")
    await slow.begun.wait()
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": told})
    await stopped(phone, call)
    await call._reply(0.0, None)
    slow.may.set()
    await call.say("I love sailing.")
    await call.hang_up()
    await phone.phone.known(call.sid).hang_up()
    ben = await ben_of(phone)
    assert await said_of(phone, call, ben) == [*words, "Don't you know my voice?", "I love sailing."]
    memory = phone.service.user(ben)
    assert "Quillhilda" not in str(await memory.export())
    name = f"call:{call.sid}"
    exchanges = await read_exchanges(memory.backing_store, memory.scope, name, name)
    assert not any(exchange.tools for exchange in exchanges), "nor is the record of what was done for Ana"


async def test_a_code_that_is_cut_in_on_is_taken_once_and_kept_by_nobody(line, monkeypatch):
    phone = await line(parrot, channel="relay")
    code = (await phone.phone.links.give("web-ana")).code
    call = await phone.call()
    slow = Slow(monkeypatch, Callers, "link")
    await prompt(call, f"My code is {' '.join(code)}.")
    await slow.begun.wait()
    await call.send({"type": "interrupt", "utteranceUntilInterrupt": ""})
    await stopped(phone, call)
    slow.may.set()
    await call._reply(0.0, None)
    await call.say("Hello?")
    assert phone.phone.known(call.sid).caller.user == "web-ana"
    await call.hang_up()
    await phone.phone.known(call.sid).hang_up()
    assert await said_of(phone, call, "web-ana") == ["My code is [code].", "Hello?"]
    assert " ".join(code) not in str(await phone.memory().export())


async def test_a_code_said_digit_by_digit_links_the_phone_and_can_be_undone(line):
    phone = await line(
        lambda said, given: (
            ([] if given else [("unlink_phone", {})]) or "Undone." if "unlink" in said else "Yes."
        )
    )
    web = phone.service.user("browser-ana")
    await web.set("harbour", "Nellie lies in Boston")
    spoken = " ".join(
        "zero one two three four five six seven eight nine".split()[int(d)]
        for d in (await phone.phone.links.give("browser-ana")).code
    )
    call = await phone.call()
    assert "linked" in await call.say(f"My code is {spoken}, please")
    await call.say("Where is my boat?")
    assert "Nellie lies in Boston" in phone.script.sent[-1]
    await call.hang_up()

    again = await phone.call()
    await again.say("Where is my boat?")
    assert "Nellie lies in Boston" in phone.script.sent[-1], "the next call knows as well"
    await again.say("Please unlink this phone.")
    await again.say("Where is my boat?")
    assert "Nellie lies in Boston" not in phone.script.sent[-1]
    await again.hang_up()
    assert (await web.get("harbour")).text == "Nellie lies in Boston"
    known = await phone.phone.callers.identify("+15550100001", VOUCHED)
    assert known.user == phone.phone.callers.line_of("+15550100001")


async def test_a_link_can_be_undone_from_the_other_side(line):
    callers = (phone := await line(parrot)).phone.callers
    await callers.link(await callers.identify("+15550100001", VOUCHED), "browser-ana")
    assert (await callers.identify("+15550100001", VOUCHED)).user == "browser-ana"
    assert await callers.lines.unlink_user("browser-ana") == 1
    assert await callers.lines.unlink_user("browser-ana") == 0
    assert (await callers.identify("+15550100001", VOUCHED)).user == phone.phone.callers.line_of(
        "+15550100001"
    )


async def test_a_typed_code_that_is_wrong_is_refused_and_guessing_ends(line):
    phone = await line(parrot)
    code = (await phone.phone.links.give("browser-ana")).code
    wrong = f"{(int(code) + 1) % 1_000_000:06}"
    call = await phone.call()
    for _ in range(3):
        assert "wrong or has expired" in await call.press(wrong)
    assert "linked" not in await call.press(code), "three wrong ones were enough for one call"
    other = await phone.call("+15550100002")
    assert "linked" in await other.press(code)


@pytest.mark.parametrize(
    ("said", "denied", "name"),
    [
        ("this is not ana", True, None),
        ("This isn't Anna, this is Ben.", True, "Ben"),
        ("I'm not Ana, I'm her brother", True, None),
        ("you have the wrong person", True, None),
        ("My name is José.", True, "José"),
        ("somebody else is calling", True, None),
        ("THIS IS NOT ANA", True, None),
        ("No, wrong person.", True, None),
        ("I'm somebody else, you know", True, None),
        ("this is not anna this is ben", True, "Ben"),
        ("This is Ben speaking.", True, "Ben"),
        ("My name is Mark.", True, "Mark"),
    ],
)
def test_what_denies_who_was_expected(said, denied, name):
    claim = claim_in(said, taken_for="Ana")
    assert claim is not None
    assert (claim.denied, claim.name) == (denied, name)


@pytest.mark.parametrize(
    "said",
    [
        "I'm not sure",
        "this is not good",
        "it's Monday",
        "I'm hungry",
        "my name is Ana",
        "this is Anna speaking",
        "this is great",
        "it is not raining",
        "I am Ana",
        "",
    ],
)
def test_what_denies_nobody(said):
    claim = claim_in(said, taken_for="Ana")
    assert claim is None or not claim.denied


@pytest.mark.parametrize(
    ("said", "name", "known"),
    [
        ("I'm not sure", "Sarah", ()),
        ("i'm not sure", "Sara", ()),
        ("the light is not on", "Anna", ()),
        ("It's not in town.", "John", ()),
        ("not any more", "Ana", ()),
        ("I AM NOT SURE", "Sarah", ()),
        ("it's not good", "Kate", ()),
        ("not now", "Noah", ()),
        ("it is not done", "Dan", ()),
        ("The scholarship went to someone else.", "Ana", ()),
        ("Book it for someone else.", "Ana", ()),
        ("somebody else can have my cobbler", "Ana", ()),
        ("I'm someone else's carer on Mondays", "Ana", ()),
        ("I emailed the wrong person", "Ana", ()),
        ("I'm done", "Ana", ("Dan",)),
        ("i'm done with it", "Ana", ("Dan",)),
        ("This is quite nice.", "Ana", ("Kate",)),
        ("it's dark here", "Ana", ("Mark",)),
        ("This is nonsense.", "Ana", ()),
        ("This is Monday.", "Ana", ()),
        ("this is broken", "Ana", ()),
    ],
)
def test_ordinary_words_that_sound_like_a_name_are_none(said, name, known):
    assert claim_in(said, taken_for=name, known=known) is None


def test_codes_are_heard_as_digits_and_as_words():
    assert codes_in("it's four seven one, nine oh two") == ["471902"]
    assert codes_in("4 7 1 9 0 2") == codes_in("471902") == ["471902"]
    assert codes_in("12345") == []
    assert "471902" in codes_in("the code for you to take is to 471902")


def test_names_are_the_same_by_sound():
    assert same_name("Anna Maria", "Ana")
    assert same_name("Jon", "John")
    assert not same_name("Ana", "Ben")
