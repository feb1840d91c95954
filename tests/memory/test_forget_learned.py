"""What was learned from turns that must not be kept goes with them, and nothing else does."""

from __future__ import annotations

import pytest

import echoic
from echoic import InvalidInput, Turn

USER, AGENT = "user", "agent"


async def said(user, name, *texts):
    """A call in which the user says these texts; the ids of its turns."""
    call = await user.conversation(name)
    turns = await call.append(*(Turn(speaker="user", text=text) for text in texts))
    await call.distil()
    return {turn.id for turn in turns}


async def dropped(user, name, turns):
    """Forget a call as one that must not be kept is forgotten."""
    await user.forget(conversation=name)
    return await user.forget(learned_from=turns)


async def test_sentences_without_a_key_go_with_the_call_they_were_said_in():
    async with echoic.open("memory://", embedder="local") as memory:
        ana = memory.user("ana")
        await said(ana, "kept", "I use a hearing aid in my right ear.")
        turns = await said(ana, "dropped", "I take blood pressure tablets every day.")
        assert {memory.key for memory in await ana.facts()} == {None}
        assert len(await ana.facts()) == 2
        receipt = await dropped(ana, "dropped", turns)
        assert (receipt.memories, receipt.verified) == (1, True)
        assert ["hearing aid" in memory.text for memory in await ana.facts()] == [True]
        assert "tablets" not in str(await ana.export())


@pytest.fixture
async def ana():
    async with echoic.open("memory://", embedder="lexical") as memory:
        yield memory.user("ana")


async def test_a_version_said_in_the_call_leaves_history_and_the_earlier_one_stays(ana):
    await said(ana, "kept", "I live in Leeds.")
    turns = await said(ana, "dropped", "I moved, I live in York now.")
    key = next(memory.key for memory in await ana.facts() if "York" in memory.text)
    assert [version.text for version in await ana.history(key)] == ["Leeds", "York"]
    await dropped(ana, "dropped", turns)
    assert [version.text for version in await ana.history(key)] == ["Leeds"]
    assert await ana.get(key) is None, "what it corrected is not known to hold again"
    exported = str(await ana.export())
    assert "York" not in exported
    assert "Leeds" in exported


async def test_an_earlier_version_said_in_the_call_goes_and_what_corrected_it_holds(ana):
    turns = await said(ana, "dropped", "I live in York.")
    await said(ana, "kept", "I live in Leeds now.")
    key = next(memory.key for memory in await ana.facts() if "Leeds" in memory.text)
    await dropped(ana, "dropped", turns)
    assert [version.text for version in await ana.history(key)] == ["Leeds"]
    assert (await ana.get(key)).text == "Leeds"
    assert "York" not in str(await ana.export())


async def test_what_another_call_said_as_well_keeps_its_words(ana):
    await said(ana, "first", "I live in Leeds.")
    await said(ana, "second", "I live in York now.")
    turns = await said(ana, "dropped", "I live in Leeds now.")
    await dropped(ana, "dropped", turns)
    assert "I live in Leeds." in str(await ana.export())


async def test_it_is_asked_for_alone(ana):
    for other in ({"key": "home"}, {"conversation": "c"}, {"id": "x"}, {"asked": "x"}):
        with pytest.raises(InvalidInput, match="alone"):
            await ana.forget(learned_from={"t"}, **other)
    assert (await ana.forget(learned_from=())).records == 0


TAKEN_BACK = [
    ("I live in Bath. || I live in Leeds. | I live in York. | Forget all that.", {"home": "Bath"}),
    ("I live in Leeds. || I live in York. | Scratch that.", {"home": "Leeds"}),
    ("I live in Leeds. || I live in York. | No, forget that.", {"home": "Leeds"}),
    ("I live in Bath. || I live in Leeds. | I live in York. | Forget that.", {"home": "Leeds"}),
    ("I live in Leeds. | I live in York. | Forget that.", {"home": "Leeds"}),
    ("I'm vegetarian. || I'm vegan. | Forget that.", {"diet:vegetarian": "vegetarian"}),
    ("I'm vegetarian. | I'm vegan. | Forget that.", {"diet:vegetarian": "vegetarian"}),
    ("I'm allergic to nuts. || I'm not allergic to nuts. | No, forget that.", {"allergy:nuts": "nuts"}),
    ("I live in Leeds. || Forget where I live. | Forget that.", {}),
    (
        "I live in Leeds. || I live in York. | Scratch that. || I don't live in Leeds. | Off the record, hi.",
        {},
    ),
]


@pytest.mark.parametrize("each", [True, False], ids=["each turn", "each call"])
@pytest.mark.parametrize(("said", "left"), TAKEN_BACK)
@pytest.mark.parametrize("url", ["memory://"])  # what is said matters, not where it is kept
async def test_what_was_said_before_holds_again_whenever_it_was_read(memory, said, left, each):
    user = memory.user("ana")
    for texts in said.split(" || "):
        call = await user.conversation()
        for text in texts.split(" | "):
            await call.append(echoic.Turn(speaker="user", text=text))
            if each:
                await call.learn()
        await call.learn()
    assert {fact.key: fact.text for fact in await user.facts()} == left
    for key, text in left.items():
        found = await user.recall(f"{key.replace(':', ' ')} {text}")
        assert any(text in hit.text for hit in found.hits)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("My number is 07700 900123. | Yes, that's my number. | Scrap that.", {}),
        ("My number is 07700 900123. | Oh. One moment. | Scrap that.", {}),
        ("I'm allergic to penicillin. | Yes, I'm allergic. | Forget that.", {}),
        (
            "I'm allergic to nuts. | Can I cancel? | And delivery? | Strike that.",
            {"allergy:nuts": "nuts"},
        ),
    ],
)
@pytest.mark.parametrize("url", ["memory://"])  # what is said matters, not where it is kept
async def test_a_confirmation_is_taken_back_with_what_it_confirms_and_a_question_alone(memory, said, left):
    user = memory.user("ana")
    call = await user.conversation()
    for text in said.split(" | "):
        await call.append(
            echoic.Turn(speaker="user", text=text), echoic.Turn(speaker="agent", text="All right.")
        )
        await call.learn()
    assert {fact.key: fact.text for fact in await user.facts()} == left


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("I'm vegan. | Ignore my email, it bounced.", {"diet:vegan": "vegan"}),
        ("I'm vegan. | I drink gin. | Forget that. I was upset.", {"diet:vegan": "vegan"}),
        ("I'm vegan. | >And your age? | Forty two. | Scrap that.", {"diet:vegan": "vegan"}),
    ],
)
@pytest.mark.parametrize("url", ["memory://"])  # what is said matters, not where it is kept
async def test_what_stands_beside_what_is_forgotten_stays(memory, said, left):
    user = memory.user("ana")
    call = await user.conversation()
    for text in said.split(" | "):
        speaker = "agent" if text.startswith(">") else "user"
        await call.append(echoic.Turn(speaker=speaker, text=text.removeprefix(">")))
        await call.learn()
    assert {fact.key: fact.text for fact in await user.facts()} == left
    assert "gin" not in str((await user.recall("what they drink")).hits)


@pytest.mark.parametrize("denial", ["I don't live in Leeds any more.", "Forget that I live in Leeds."])
async def test_a_denial_hides_nothing_that_an_earlier_call_said_of_another_value(memory, denial):
    user = memory.user("ana")
    for text in ("I live in Bath.", "I live in Leeds.", denial):
        call = await user.conversation()
        await call.append(echoic.Turn(speaker="user", text=text))
        await call.learn()
    assert not await user.facts()
    found = {hit.text for hit in (await user.recall("where have I lived, Bath or Leeds")).hits}
    assert "I live in Bath." in found
    assert "I live in Leeds." not in found


async def test_what_was_forgotten_meanwhile_does_not_hold_again(memory):
    user = memory.user("ana")
    for text in ("I live in Leeds.", "I live in York."):
        call = await user.conversation()
        await call.append(echoic.Turn(speaker="user", text=text))
        await call.learn()
    leeds = next(fact for fact in await user.history("home") if fact.text == "Leeds")
    await user.forget(id=leeds.id)
    await call.append(echoic.Turn(speaker="user", text="Scratch that."))
    await call.learn()
    assert not await user.facts()


IN_PARTS = (
    (USER, "It's oh seven seven double oh."),
    (AGENT, "Oh seven seven double oh."),
    (USER, "Nine hundred."),
    (AGENT, "Yes."),
    (USER, "Four one two. That's my mobile."),
    (AGENT, "Zero seven seven zero zero, nine zero zero, four one two. And is that house 12?"),
    (USER, "Number 12, yes."),
)


@pytest.fixture
async def in_parts(ana):
    """A call in which a telephone number is given over three turns."""
    call = await ana.conversation("call")
    await call.append(Turn(speaker=AGENT, text="What's the best number for you?"))
    for speaker, text in IN_PARTS:
        await call.append(Turn(speaker=speaker, text=text))
        await call.learn()
    assert (await ana.get("phone")).text == "07700900412"
    return call


async def test_every_part_of_a_number_is_destroyed_with_it(ana, in_parts):
    assert (await ana.forget(key="phone")).verified
    assert [turn.text for turn in await in_parts.turns()] == [
        "What's the best number for you?",
        "It's [forgotten].",
        "[forgotten].",
        "[forgotten].",
        "Yes.",
        "[forgotten]. That's my mobile.",
        "[forgotten]. And is that house 12?",
        "Number 12, yes.",
    ]


async def test_what_an_agent_counts_behind_a_number_in_parts_is_no_part_of_it(ana):
    others = ["Your parcel 770 weighs 900 grams.", "Your refund of 412 pounds is on its way."]
    said = [
        (USER, "My phone number is 07700 900412."),
        (AGENT, "I have 07700 900412."),
        (USER, "Yes, my number is 07700 900412."),
        (AGENT, "Okay, nine hundred."),
        *((AGENT, text) for text in others),
    ]
    call = await ana.conversation("call")
    for speaker, text in said:
        await call.append(Turn(speaker=speaker, text=text))
        await call.learn()
    await ana.forget(key="phone")
    turns = [turn.text for turn in await call.turns()]
    assert turns[4:] == others
    assert turns[3] == "Okay, [forgotten]."


async def test_every_part_of_a_number_is_hidden_that_is_taken_back_in_the_call(ana, in_parts):
    await in_parts.append(Turn(speaker=USER, text="Actually, forget my phone number."))
    await in_parts.learn()
    assert await ana.get("phone") is None
    recalled = " ".join(turn.text for turn in await in_parts.recalled_turns())
    assert not [part for part in ("double oh", "undred", "our one two", "zero") if part in recalled]
    assert "Number 12" in recalled


@pytest.mark.parametrize("learned", [True, False])
async def test_forget_that_hides_every_part_of_a_number_given_before(ana, learned):
    call = await ana.conversation("call")
    said = [(AGENT, "What's the best number for you?"), *IN_PARTS[:5], (AGENT, "07700 900 412.")]
    for speaker, text in said:
        await call.append(Turn(speaker=speaker, text=text))
        if learned:
            await call.learn()
    await call.append(Turn(speaker=USER, text="Forget that."))
    await call.learn()
    assert await ana.get("phone") is None
    assert not [
        turn for turn in await call.recalled_turns() if turn.speaker == USER and "taken" not in turn.text
    ]


@pytest.mark.parametrize(
    ("before", "told", "request_", "gone"),
    [
        ("My daughter's coming.", "She's allergic to nuts.", "Forget that.", "nuts"),
        ("My daughter's coming.", "She's allergic to nuts.", "Forget that she's allergic to nuts.", "nuts"),
        ("My daughter's coming.", "She's allergic to nuts.", "Forget my daughter's allergy to nuts.", "nuts"),
        ("My mother-in-law's here.", "She's deaf.", "", "deaf"),
        ("it's for my son", "he is six and hes asthmatic", "", "asthmatic"),
    ],
)
async def test_what_is_kept_of_whom_she_means_goes_with_the_words_she_was_meant_by(
    before, told, request_, gone
):
    async with echoic.open("memory://", embedder="local") as memory:
        ana = memory.user("ana")
        call = await ana.conversation("call")
        turns = [
            Turn(speaker="user", text=before),
            Turn(speaker="agent", text="I see."),
            Turn(speaker="user", text=told),
        ]
        *_, source = await call.append(*turns)
        await call.distil()
        [known] = [fact for fact in await ana.facts() if gone in fact.text]
        assert known.text.startswith("My ")
        assert known.source == (source.id,)
        if request_:
            [asked] = await call.append(Turn(speaker="user", text=request_))
            await memory.settle()
            receipt = await ana.forget(asked=asked.id)
        else:
            receipt = await ana.forget(id=known.id)
        assert receipt.verified
        assert gone not in str(await ana.export())
