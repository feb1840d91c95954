"""Consent: of a user who chose "never", and of a call that is off the record, nothing is kept."""

from __future__ import annotations

import pytest

import echoic.sync
from echoic import InvalidInput, NotAllowed, Turn
from echoic.embedding import embedder_from
from echoic.english.forget_requests import asks_off_the_record
from echoic.memory.background import Background
from echoic.memory.consent import CONSENT
from echoic.memory.records import CALL, CHECKPOINT, EXCHANGE, GIVEN
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.base import Put, Record, Require


def service(path):
    return MemoryService(store_from(f"sqlite:///{path}/echoic.db"), embedder_from("lexical"))


def stored(path):
    return b"".join(each.read_bytes() for each in path.glob("echoic.db*") if each.is_file())


def said(text, name=""):
    return Turn(speaker="user", text=text, id=name)


async def a_call(user, name="call"):
    """Everything that a call keeps, each with a canary."""
    call = await user.conversation(name, agent="robin")
    kept = await call.append(
        said("My name is Quokka and I live in Zanqrimo."), Turn(speaker="agent", text="Nice, numbat.")
    )
    assert [turn.text for turn in kept] == ["My name is Quokka and I live in Zanqrimo.", "Nice, numbat."]
    of_it = Require(kind="conversation", id=name)
    parts = [
        Put(record=Record(kind=kind, id=f"{name}:{kind}", key=name, data={"text": f"bilby {kind}"}))
        for kind in (CALL, EXCHANGE, GIVEN)
    ]
    saved = Record(kind=CHECKPOINT, id=name, data={"conversation": name, "messages": "potoroo"})
    await user.backing_store.write(user.scope, [of_it, *parts, Put(record=saved)])
    await call.learn()
    assert (await call.complete()).status == "completed"
    return call


CANARIES = (b"Quokka", b"Zanqrimo", b"numbat", b"bilby", b"potoroo")


class TestNever:
    async def test_no_byte_of_what_is_said_is_kept_until_they_choose_keep_again(self, tmp_path):
        async with service(tmp_path) as memory, service(tmp_path) as other:
            ana = memory.user("ana")
            await ana.set("pet", "an axolotl")
            assert await ana.consent() == "keep"
            await ana.set_consent("never")
            for each in (ana, other.user("ana")):
                call = await a_call(each)
                assert await call.turns() == []
            assert await memory.user("ana", "acme").consent() == "keep"
            assert await memory.user("bea").consent() == "keep"
            assert (await ana.get("pet")).text == "an axolotl", "nothing is destroyed by it"
            left = stored(tmp_path)
            assert [word for word in CANARIES if word in left] == []
            await other.user("ana").set_consent("keep")
            await a_call(ana, "later")
            assert len((await ana.task("later")).turns) == 2

    async def test_control_without_it_every_canary_is_in_the_bytes(self, tmp_path):
        async with service(tmp_path) as memory:
            await a_call(memory.user("ana"))
            left = stored(tmp_path)
            assert [word for word in CANARIES if word not in left] == []

    async def test_what_their_code_sets_is_refused_and_changes_nothing(self, tmp_path):
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            call = await ana.conversation("before")
            await ana.set("pet", "a newt")
            await ana.set_consent("never")
            for keeping in (
                ana.set("pet", "an axolotl"),
                ana.set("opening_hours", "We open at nine."),
                ana.remember("Ana likes axolotls."),
                ana.set_directives(pacing="axolotl slow"),
                ana.items("notes").set("one", {"axolotl": 1}),
                call.store("axolotl"),
            ):
                with pytest.raises(NotAllowed, match="kept"):
                    await keeping
            assert (await ana.get("pet")).text == "a newt"
            assert b"axolotl" not in stored(tmp_path)
            assert await ana.delete("pet"), "what is there can be taken back"
            await ana.forget()
            assert await ana.consent() == "never", "and it outlives what it is about"
            with pytest.raises(InvalidInput, match="use one of keep, never"):
                await ana.set_consent("maybe")

    async def test_what_was_said_before_is_not_learned_from_meanwhile(self, tmp_path, monkeypatch):
        monkeypatch.setattr(Background, "poke", lambda *_args, **_options: None)
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            await (await ana.conversation("before")).append(said("I live in Zanqrimo."))
            await ana.set_consent("never")
            await memory.distil()
            assert await ana.facts() == []
            await ana.set_consent("keep")
            await memory.distil()
            assert [fact.key for fact in await ana.facts()] == ["home"], "control"

    async def test_the_choice_names_nobody_and_only_who_proved_themselves_undoes_it(self, tmp_path):
        async with service(tmp_path) as memory:
            await memory.user("quokka-the-user").at("unattested").set_consent("never")
            with pytest.raises(NotAllowed):
                await memory.user("quokka-the-user").at("unattested").set_consent("keep")
            ana = memory.user("quokka-the-user")
            (record,) = await ana.backing_store.scan(ana.scope.everyone, CONSENT)
            assert list(record.data) == ["since"]
        assert b"quokka-the-user" not in stored(tmp_path)


class TestOneCall:
    async def test_asked_for_in_words_no_byte_of_the_call_stays_or_comes(self, tmp_path):
        async with service(tmp_path) as memory, service(tmp_path) as other:
            ana = memory.user("ana")
            await ana.set("pet", "an axolotl")
            await a_call(ana)
            call = await ana.conversation("call")
            assert await ana.get("home") is not None, "control"
            await call.append(said("Actually, please don't remember this call. I am quokkasick.", "asked"))
            await call.append(said("And my doctor is numbatlike."))
            late = await other.user("ana").conversation("call", begin=False)
            await late.append(said("The bilbies are late."))
            await (await other.user("ana").conversation("call")).append(said("So are potoroos."))
            await call.complete()
            assert await ana.get("home") is None
            assert (await ana.get("pet")).text == "an axolotl"
            assert await ana.conversations() == []
            left = stored(tmp_path)
            assert [word for word in (*CANARIES, b"quokka", b"numbat") if word in left] == []
            await a_call(ana, "next")
            assert [one.id for one in await ana.conversations()] == ["next"]

    async def test_on_hold_what_is_kept_stays_and_nothing_is_added(self, tmp_path):
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            call = await ana.conversation("call")
            await call.append(said("I live in Zanqrimo."))
            await ana.hold()
            await call.append(said("Don't record this conversation."), said("I am quokkasick."))
            with pytest.raises(NotAllowed, match="hold"):
                await call.off_the_record()
            assert [turn.text for turn in await call.turns()] == ["I live in Zanqrimo."]

    def test_with_the_blocking_api(self, tmp_path):
        with echoic.sync.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical") as memory:
            call = memory.user("ana").conversation("call")
            call.append(said("I live in Zanqrimo."))
            assert call.off_the_record().conversations == 1
            memory.user("ana").set_consent("never")
            assert memory.user("ana").consent() == "never"
        assert b"Zanqrimo" not in stored(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "Don't remember this call.",
        "Please don't record this conversation, it is private.",
        "Okay, and please do not keep anything from this call.",
        "I'd rather you didn't save this chat",
        "I want you not to remember this conversation.",
        "can you please not store this session",
        "This call is off the record.",
        "I don't want this call to be recorded.",
        "One more thing. Never save this call!",
    ],
)
def test_words_that_keep_a_call_off_the_record(text):
    assert asks_off_the_record(text)


@pytest.mark.parametrize(
    "text",
    [
        "I don't remember this call.",
        "You don't remember this call?",
        "Why don't you remember this call?",
        "Don't forget this call.",
        "Don't keep this conversation going.",
        "Don't record this call as a complaint.",
        "What if I ask you: don't remember this call?",
        "Do you record this call?",
        "They told me they never keep the calls.",
        "Remember this call, please.",
        "Off the record, I hate my landlord.",
        "If you don't record this call I will complain.",
        "We don't store this conversation piece in the attic.",
    ],
)
def test_words_that_only_sound_like_it(text):
    assert not asks_off_the_record(text)
