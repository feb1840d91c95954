"""What is said and must not be kept never reaches the store, whichever way it comes in."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import echoic
import leaks
from echoic import Turn
from echoic.memory.checkpoints import Checkpoint, PendingTool
from echoic.memory.records import CHECKPOINT, scan_all
from echoic.session import as_json
from echoic.stores.base import Put, Record
from echoic.types import Scope

CARD = "4111 1111 1111 1111"
SECRETS = (
    "bluebird",
    "8361",
    "eight three six one",
    "4111",
    "559 127",
    "77 04 91 23",
    "hargreaves",
    "Xk9mPq2",
)
STORES = ("sqlite", "files")


@pytest.fixture(params=STORES)
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/echoic.db" if request.param == "sqlite" else f"files:///{tmp_path}/kept"


def bytes_in(folder):
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def leaked(folder, *secrets):
    """Which of `secrets` stand in the bytes of the store."""
    return leaks.leaked(bytes_in(folder), secrets)


def opened(url, **options):
    return echoic.open(url, embedder="lexical", **options)


async def planted(user):
    """Secrets by every verb that keeps something."""
    call = await user.conversation("one", agent="desk")
    await call.append(Turn(speaker="user", text=f"my card is {CARD}"))
    await call.append(Turn(speaker="user", text="remember my pin code is eight three six one"))
    await call.append(
        Turn(speaker="agent", text="And the password?"), Turn(speaker="user", text="it's bluebird seven")
    )
    await call.learn()
    await user.set("pin", "8361")
    await user.set("wifi", "the wifi password is bluebird seven", context="said with pin 8361")
    await user.set("my pin is 8361", "kept under a secret")
    await user.set("login", json.dumps({"account": {"password": "Xk9mPq2", "otp": "559 127"}}))
    await user.remember("my mother's maiden name is hargreaves", context="password: bluebird seven")
    await user.add_result("one", "pay", {"cardNumber": CARD, "pin": 8361, "sort_code": "77 04 91 23"})
    await user.add_result("one", "otp", "559 127")
    await user.set_directives(greeting="Say that the pin is 8361")
    await call.store("my pin is 8361", "They paid with 4111 1111 1111 1111, pin 8361.")
    await call.complete()
    await call.distil()


async def test_no_verb_keeps_a_secret(url, tmp_path):
    async with opened(url) as memory:
        user = memory.user("ana")
        await planted(user)
        await memory.settle()
        assert leaked(tmp_path, *SECRETS) == []
        assert leaks.leaked(json.dumps(await user.export()).encode(), SECRETS) == []
        turns = await (await user.conversation("one")).turns()
        assert [turn.text for turn in turns] == [
            "my card is [card ending 1111]",
            "remember my pin code is [PIN]",
            "And the password?",
            "it's [password]",
        ]
        assert (await user.get("pin")).text == "[PIN]"
        assert (await user.get("my pin is 8361")).text == "kept under a secret"
        assert await user.recall_conversation("my pin is 8361") is not None
    assert leaked(tmp_path, *SECRETS) == []


async def test_what_is_returned_is_what_is_kept(url):
    async with opened(url) as memory:
        user = memory.user("ana")
        assert (await user.set("door", "the alarm code is 8361")).text == "the alarm code is [PIN]"
        call = await user.conversation("one")
        (turn,) = await call.append(Turn(speaker="user", text="my pin is 8361"))
        assert turn.text == "my pin is [PIN]"
        assert (await user.add_result("one", "step", {"pin": "8361"})).value == {"pin": "[PIN]"}


@pytest.mark.parametrize("first", ["my card is 4111 1111", "4111 1111"])
async def test_a_card_that_is_read_out_over_turns_is_gone_from_all_of_them(url, tmp_path, first):
    async with opened(url) as memory:
        call = await memory.user("ana").conversation("one")
        await call.append(Turn(speaker="user", text=first))
        await call.append(Turn(speaker="agent", text="Go on."))
        await call.append(Turn(speaker="user", text="1111 1111"))
        await call.append(Turn(speaker="agent", text="That's 4111 1111 1111 1111, right?"))
        assert leaked(tmp_path, "4111", "1111 1111") == []
    assert leaked(tmp_path, "4111", "1111 1111") == []


async def test_what_an_agent_declines_leaves_the_turn_before_and_its_bytes(url, tmp_path):
    async with opened(url) as memory:
        call = await memory.user("ana").conversation("one")
        await call.append(Turn(speaker="user", text="Oh, and it's eight three six one round the back."))
        await call.append(Turn(speaker="agent", text="I haven't written that down. " + "Let us go on. " * 12))
        assert (await call.turns())[0].text == "Oh, and it's [PIN] round the back."
        assert leaked(tmp_path, "eight three six one") == []


async def test_another_process_goes_on_masking_what_is_being_read_out(url, tmp_path):
    async with opened(url) as memory:
        call = await memory.user("ana").conversation("one")
        await call.append(Turn(speaker="user", text="my card number is 4111 11"))
    async with opened(url) as memory:
        call = await memory.user("ana").conversation("one")
        await call.append(Turn(speaker="agent", text="mm-hm"), Turn(speaker="user", text="11 1111 1111"))
        assert [turn.text for turn in await call.turns()][-1] == "[card number]"
    assert leaked(tmp_path, "4111", "11 1111") == []


async def test_what_was_restored_is_masked_too(url, tmp_path):
    async with opened("memory://", secrets="keep") as memory:
        await planted(memory.user("ana"))
        exported = await memory.user("ana").export()
    assert "8361" in json.dumps(exported)
    async with opened(url) as memory:
        await memory.user("bo").restore(exported)
    assert leaked(tmp_path, *SECRETS) == []


async def test_a_checkpoint_holds_no_secret_and_its_tool_is_not_run_again(url, tmp_path):
    messages = [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": f"my card is {CARD}"}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "And the PIN?"}]},
        {"kind": "request", "parts": [{"part_kind": "speech", "speaker": "user", "transcript": "8361"}]},
        {
            "kind": "response",
            "parts": [
                {"part_kind": "tool-call", "tool_name": "pay", "args": json.dumps({"n": CARD, "pin": "8361"})}
            ],
        },
    ]
    async with opened(url) as memory:
        user = memory.user("ana")
        call = await user.conversation("one")
        kept = Checkpoint(
            session="s",
            conversation=call.id,
            agent="desk",
            messages=json.dumps(messages),
            unkept=(Turn(speaker="user", text="my pin is 8361", id="t", conversation=call.id),),
            pending=(PendingTool(call="c", name="pay", arguments={"card": CARD}, idempotent=True),),
            summary="pin 8361",
            saved_at=(await call.info()).started_at,
        )
        await user.backing_store.write(
            user.scope, [Put(record=Record(kind=CHECKPOINT, id="s", data=as_json(kept)))]
        )
        (record,) = await scan_all(user.backing_store, user.scope, CHECKPOINT)
        assert record.data["pending"][0]["idempotent"] is False
        assert [part["part_kind"] for m in json.loads(record.data["messages"]) for part in m["parts"]] == [
            "user-prompt",
            "text",
            "speech",
            "tool-call",
        ]
    assert leaked(tmp_path, *SECRETS) == []


@pytest.mark.parametrize("is_kept", [True, False], ids=["question kept", "question not kept"])
@pytest.mark.parametrize("heard", ["and the pin", "and the", ""])
async def test_a_checkpoint_masks_an_answer_by_its_whole_question_however_little_of_it_was_heard(
    heard, is_kept, url, tmp_path
):
    question = Turn(speaker="agent", text="and the pin", id="q", heard=heard)
    parts = [{"part_kind": "speech", "speaker": "assistant", "transcript": heard}] if heard else []
    answered = [{"part_kind": "speech", "speaker": "user", "transcript": "eight three six one"}]
    async with opened(url) as memory:
        user = memory.user("ana")
        call = await user.conversation("one")
        if is_kept:
            await call.append(question)
        kept = Checkpoint(
            session="s",
            conversation=call.id,
            agent="desk",
            messages=json.dumps(
                [{"kind": "response", "parts": parts}, {"kind": "request", "parts": answered}]
            ),
            unkept=(
                *([] if is_kept else [question]),
                Turn(speaker="user", text="eight three six one", id="t", conversation=call.id),
            ),
            saved_at=(await call.info()).started_at,
        )
        await user.backing_store.write(
            user.scope, [Put(record=Record(kind=CHECKPOINT, id="s", data=as_json(kept)))]
        )
        (record,) = await scan_all(user.backing_store, user.scope, CHECKPOINT)
        assert record.data["unkept"][-1]["text"] == "[PIN]"
        assert "[PIN]" in record.data["messages"]
    assert leaked(tmp_path, *SECRETS) == []


@pytest.mark.parametrize(
    "said",
    [
        [("agent", "and the pin", "and the"), ("user", "five one seven", None)],
        [("user", piece, None) for piece in ("378", "282", "246", "310", "005")],
        [("user", "you press nine two seven seven", None), ("user", "I shouldn't have said that", None)],
    ],
    ids=["question cut off", "card in pieces", "regretted"],
)
async def test_a_checkpoint_holds_what_was_said_as_the_kept_turns_do(said, url, tmp_path):
    async with opened(url) as memory:
        user = memory.user("ana")
        call = await user.conversation("one")
        parts = []
        for number, (speaker, text, heard) in enumerate(said):
            await call.append(Turn(speaker=speaker, text=text, heard=heard, id=f"t{number}"))
            parts.append({"part_kind": "speech", "speaker": speaker, "transcript": heard or text})
        checkpoint = Checkpoint(
            session="s",
            conversation=call.id,
            agent="desk",
            messages=json.dumps([{"kind": "request", "parts": parts}]),
            saved_at=(await call.info()).started_at,
        )
        await user.backing_store.write(
            user.scope, [Put(record=Record(kind=CHECKPOINT, id="s", data=as_json(checkpoint)))]
        )
        (record,) = await scan_all(user.backing_store, user.scope, CHECKPOINT)
        kept = [turn.text if turn.heard is None else turn.heard for turn in await call.turns()]
        parts = json.loads(record.data["messages"])[0]["parts"]
        assert [part["transcript"] for part in parts] == kept
    assert leaked(tmp_path, "one seven", "378", "282", "246", "310", "005", "two seven") == []


async def test_an_answer_that_was_cut_off_is_matched_although_a_marker_stands_in_it():
    async with opened("memory://") as memory:
        call = await memory.user("ana").conversation("one")
        await call.append(Turn(speaker="user", text="my pin is 8361", id="u"))
        await call.append(Turn(speaker="agent", text="So the pin is 8 3 6 1, is that right?"))
        (turn,) = await call.truncate("So the pin is 8 3 6 1, is", after="u")
        assert turn.heard == "So the pin is [PIN], is"
        (turn,) = await call.truncate("So the pin is 8 3", after="u")
        assert turn.heard == "So the pin is"


async def test_personal_data_that_an_agent_has_to_know_is_kept():
    said = [
        "my phone number is 212 555 0187",
        "or +15550100088",  # its last two digits would be right for a CPF
        "i live at 1420 maple street",
        "my birthday is june fourth nineteen eighty seven",
        "my email is sam1987@example.com",
        "my order number is 4242 4242",
        "it costs 1250 dollars",
    ]
    async with opened("memory://") as memory:
        call = await memory.user("ana").conversation("one")
        await call.append(*(Turn(speaker="user", text=text) for text in said))
        assert [turn.text for turn in await call.turns()] == said
        assert (await memory.user("ana").set("phone", "+15550100088")).text == "+15550100088"


async def test_a_deployment_may_say_that_secrets_are_kept(url, tmp_path):
    async with opened(url, secrets="keep") as memory:
        call = await memory.user("ana").conversation("one")
        await call.append(Turn(speaker="user", text="my pin is 8361"))
        assert (await call.turns())[0].text == "my pin is 8361"
    with pytest.raises(echoic.InvalidInput, match="'mask' or 'keep'"):
        opened(url, secrets="sometimes")


async def test_what_was_masked_of_one_user_says_nothing_of_another():
    async with opened("memory://") as memory:
        first = await memory.user("ana").conversation("one")
        await first.append(Turn(speaker="user", text="my account number is 55120934"))
        other = await memory.user("bo").conversation("one")
        (turn,) = await other.append(Turn(speaker="user", text="it said 55120934 on the box"))
        assert turn.text == "it said 55120934 on the box"
        again = await first.append(Turn(speaker="agent", text="I noted 55120934 for you."))
        assert again[0].text == "I noted [account number] for you."


async def test_codes_of_our_own_are_left_as_they_are():
    async with opened("memory://") as memory:
        user = memory.user("ana")
        everyone = Scope("default", None)
        record = Record(kind="link-code", id="x", data={"whose": "pin: 8361", "used": False})
        await user.backing_store.write(everyone, [Put(record=record)])
        assert (await user.backing_store.read(everyone, "link-code", ["x"]))[0].data["whose"] == "pin: 8361"


async def test_a_key_is_found_again_whatever_the_process_knows(url, tmp_path):
    told = Turn(speaker="user", text="My account number is 88271634.")
    async with opened(url) as memory:
        user = memory.user("ana")
        await user.set("loan_88271634", "open")
        await (await user.conversation("one")).append(told)
        assert (await user.get("loan_88271634")).text == "open"
        assert await user.delete("loan_88271634")
        assert [version.key for version in await user.history("loan_88271634")] == ["loan_88271634"]
        with pytest.raises(echoic.InvalidInput, match="key repeats a secret") as refused:
            await user.set("loan_88271634", "paid off")
        assert "88271634" not in str(refused.value)
        with pytest.raises(echoic.InvalidInput, match="key repeats a secret"):
            await user.set("loan_77193044", "of the account number 77193044")
    async with opened(url) as memory:  # it knows nothing of the number
        user = memory.user("ana")
        await user.set("loan_88271634", "paid off")
        await (await user.conversation("one")).append(told)
        assert (await user.forget(key="loan_88271634")).records
        assert await user.history("loan_88271634") == []
    assert leaked(tmp_path, "paid off", "88271634") == []


async def test_a_key_that_says_its_secret_is_found_under_its_marker_in_every_process(url):
    async with opened(url) as memory:
        assert (await memory.user("ana").set("my pin is 8361", "x")).key == "my pin is [PIN]"
    async with opened(url) as memory:
        user = memory.user("ana")
        for key in ("my pin is 8361", "my pin is [PIN]"):
            assert (await user.get(key)).text == "x"
        assert await user.delete("my pin is 8361")


@pytest.mark.parametrize("verb", ["delete", "forget"])
async def test_what_takes_a_key_back_takes_the_proposal_under_its_marker_back_too(verb):
    key = "hours of account 88271634"
    async with opened("memory://") as memory:
        user = memory.user("ana")
        kept = await user.set(key, "The shop is open from nine to five.")
        assert (kept.visibility, len(await memory.proposals().list())) == ("proposed", 1)
        await (user.delete(key) if verb == "delete" else user.forget(key=key))
        assert await memory.proposals().list() == []


async def test_a_time_whose_digits_are_those_of_a_secret_stays_one(url):
    at = datetime(2026, 11, 27, 17, 47, 34, tzinfo=UTC)
    async with opened(url) as memory:
        user = memory.user("ana")
        call = await user.conversation("one")
        await call.append(Turn(speaker="user", text="My PIN is 4734."))
        await user.add_result("one", "step", {"note": "4734"}, at=at)
        (result,) = (await user.task("one")).results
        assert (result.at, result.value) == (at, {"note": "[PIN]"})


async def test_a_recovery_phrase_of_24_words_is_read_together_with_its_question(url, tmp_path):
    words = (
        "orchard velvet thunder maple anchor pigeon lantern copper meadow silver bottle harbor "
        "cinnamon blanket feather kingdom marble notebook oxygen pepper quarter ribbon saddle timber"
    )
    async with echoic.open(url, embedder="lexical") as memory:
        call = await memory.user("ana").conversation("c1")
        await call.append(Turn(speaker="agent", text="Please read me your recovery phrase."))
        await call.append(Turn(speaker="user", text=words))
        await call.append(Turn(speaker="agent", text=f"I have {words}."))
        assert "thunder" not in str([turn.text for turn in await call.turns()])
    assert b"thunder" not in bytes_in(tmp_path)
