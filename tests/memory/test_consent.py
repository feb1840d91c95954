"""Consent: of a user who chose "never", and of a call that is off the record, nothing is kept."""

from __future__ import annotations

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

import echoic.sync
from echoic import EchoicError, InvalidInput, NotAllowed, NotKept, Turn
from echoic.capability import Memory
from echoic.capability.tools import MemoryTools
from echoic.embedding import embedder_from
from echoic.english.forget_requests import answers_to_remember, asks_off_the_record, asks_to_keep_no_more
from echoic.integrations.tools import call, refusal
from echoic.memory.background import Background
from echoic.memory.consent import CONSENT
from echoic.memory.records import CALL, CHECKPOINT, EXCHANGE, GIVEN
from echoic.memory.service import MemoryService
from echoic.prompt.block import ASKING
from echoic.stores import store_from
from echoic.stores.base import Put, Record, Require


def service(path):
    return MemoryService(store_from(f"sqlite:///{path}/echoic.db"), embedder_from("lexical"))


def stored(path):
    return b"".join(each.read_bytes() for each in path.glob("echoic.db*") if each.is_file())


REFUSES, ALLOWS = "Don't remember this call.", "Actually, you may remember this call after all."


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


@pytest.mark.parametrize("consent", ["never", "ask"])
async def test_nothing_is_imported_for_who_wants_nothing_kept_or_to_be_asked(tmp_path, consent):
    async with service(tmp_path) as memory:
        ana, bob = memory.user("ana"), memory.user("bob")
        await a_call(ana)
        exported = await ana.export()
        await bob.set_consent(consent)
        for part in ({"memories": []}, {"conversations": []}, {}):
            with pytest.raises(NotKept):
                await bob.restore({**exported, **part})
        assert await bob.conversations() == await bob.facts() == []
        await bob.set_consent("keep")
        assert await bob.restore(exported) == 5


async def test_a_call_off_the_record_is_left_out_of_an_import_and_of_its_count(tmp_path):
    async with service(tmp_path) as memory:
        ana = memory.user("ana")
        await a_call(ana, "one")
        await a_call(ana, "two")
        exported = await ana.export()
        call = await ana.conversation("one")
        await call.off_the_record()
        await call.complete()
        assert await ana.restore({**exported, "memories": []}) == 0
        assert [one.id for one in await ana.conversations()] == ["two"]


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
            with pytest.raises(InvalidInput, match="use one of keep, ask, never"):
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
            assert list(record.data) == ["since", "choice"]
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

    async def test_what_was_answered_since_is_not_undone_by_what_is_delivered_again(self, tmp_path):
        texts = (REFUSES, ALLOWS, "I live in Zanqrimo.")
        turns = [said(text, text) for text in texts]
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            await (await ana.conversation("call")).append(*turns[:2])
            await (await ana.conversation("call")).append(*turns)
            await ana.add_result("call", "search", ["x"])
            undated = [said(text, text) for text in texts]
            for again in (turns, undated):
                await (await ana.conversation("call")).append(*again)
            task = await ana.task("call")
            assert [turn.text for turn in task.turns] == [turn.text for turn in turns]
            assert [result.value for result in task.results] == [["x"]]

    async def test_nor_is_an_answer_that_came_another_way(self, tmp_path):
        refuses, allows, then = (said(text, text) for text in (REFUSES, ALLOWS, "I live in Zanqrimo."))
        async with service(tmp_path) as memory:
            call = await memory.user("ana").conversation("call")
            await call.append(refuses)
            await call.remember()
            await call.append(refuses, then)
            assert [turn.text for turn in await call.turns()] == [REFUSES, then.text]
            await call.off_the_record()
            await call.append(refuses, allows, then)
            assert await call.turns() == []
        assert b"Zanqrimo" not in stored(tmp_path)

    async def test_an_answer_counts_from_when_it_was_said_however_late_it_comes(self, tmp_path):
        """Words that a store could not take yet come later than they were said."""
        async with service(tmp_path) as memory:
            call = await memory.user("ana").conversation("call")
            for turn in [said(text) for text in (REFUSES, ALLOWS, "I live in Zanqrimo.", REFUSES)]:
                await call.append(turn)
            assert await call.turns() == []
        assert b"Zanqrimo" not in stored(tmp_path)

    @pytest.mark.parametrize("at_once", [True, False])
    async def test_asked_to_keep_no_more_what_was_said_before_stays(self, tmp_path, at_once):
        texts = ("I live in Zanqrimo.", "From now on don't save anything I say.", "I am quokkasick.")
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            call = await ana.conversation("call")
            for turns in [texts] if at_once else [[text] for text in texts]:
                await call.append(*[said(text, text) for text in turns])
            await call.append(*[said(text, text) for text in texts])  # delivered again
            await call.complete()
            await memory.settle(60)
            assert [turn.text for turn in await call.turns()] == ["I live in Zanqrimo."]
            assert [fact.text for fact in await ana.facts()] == ["Zanqrimo"]
        assert b"quokka" not in stored(tmp_path)

    async def test_asked_to_keep_no_more_a_yes_or_a_refusal_of_all_still_counts(self, tmp_path):
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            call = await ana.conversation("call")
            for text in (
                "I live in Zanqrimo.",
                "Off the record for the rest of this call, please.",
                "I am ill.",
            ):
                await call.append(said(text))
            await call.append(said("Okay, back on the record."))
            await call.append(said("I have an axolotl."))
            assert [turn.text for turn in await call.turns()] == [
                "I live in Zanqrimo.",
                "Okay, back on the record.",
                "I have an axolotl.",
            ]
            await call.append(said("From now on everything I say is off the record."))
            await call.append(said("Actually, don't remember this call."))
            assert await call.turns() == []
        assert b"Zanqrimo" not in stored(tmp_path)

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


MAY_I = Turn(speaker="agent", text="Hello. May I remember this conversation?")
WORDS = (b"Quokka", b"Zanqrimo")


async def asked(memory, name="call"):
    """A call of a user who wants to be asked, after the agent did."""
    await memory.user("ana").set_consent("ask")
    call = await memory.user("ana").conversation(name)
    await call.append(said("My name is Quokka and I live in Zanqrimo."), MAY_I)
    return call


class TestAsk:
    async def test_what_is_said_waits_until_they_say_yes_and_then_all_of_it_is_kept(self, tmp_path):
        async with service(tmp_path) as memory:
            call = await asked(memory)
            assert len(await call.turns()) == 2, "the agent knows what was said"
            assert not [word for word in WORDS if word in stored(tmp_path)]
            await call.append(said("Yes, sure."), said("I have an axolotl."))
            await call.learn()
            assert await memory.user("ana").get("home") is not None
            assert len((await memory.user("ana").task("call")).turns) == 4
            again = await memory.user("ana").conversation("next")
            assert again.asking, "each conversation is asked for"

    @pytest.mark.parametrize("answer", ["No, thanks.", "What a lovely day.", "Don't remember this call."])
    async def test_without_a_yes_no_byte_stays_once_it_is_over(self, tmp_path, answer):
        async with service(tmp_path) as memory:
            call = await asked(memory)
            await call.append(said(answer), said("Quokka it is."))
            await call.complete()
            assert await call.turns() == []
            assert not [word for word in WORDS if word in stored(tmp_path)]
            assert await memory.user("ana").conversations() == []

    async def test_an_answer_in_another_process_counts(self, tmp_path):
        async with service(tmp_path) as memory, service(tmp_path) as other:
            call = await asked(memory)
            await (await other.user("ana").conversation("call", begin=False)).remember()
            await call.append(Turn(speaker="agent", text="Thank you."))
            assert len(await call.turns()) == 3
            assert b"Quokka" in stored(tmp_path)
            second = await memory.user("ana").conversation("second")
            await second.append(said("My doctor is numbatlike."))
            await (await other.user("ana").conversation("second", begin=False)).off_the_record()
            await second.append(said("Goodbye."))
            await second.complete()
            assert b"numbat" not in stored(tmp_path)

    @pytest.mark.parametrize("by_words", [True, False])
    async def test_who_chooses_it_during_a_call_loses_nothing_after_a_yes(self, tmp_path, by_words):
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            call = await ana.conversation("call")
            await call.append(said("Hello."))
            await ana.set_consent("ask")
            await call.append(said("My dog is called Quokka."))
            assert call.asking
            assert b"Quokka" not in stored(tmp_path)
            yes = said("You may remember this call.") if by_words else said("What a lovely day.")
            await call.append(yes)
            if not by_words:
                await call.remember()
            kept = ["Hello.", "My dog is called Quokka.", yes.text]
            assert [turn.text for turn in (await ana.task("call")).turns] == kept

    async def test_a_secret_that_began_before_that_is_masked(self, tmp_path):
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            call = await ana.conversation("call")
            for part in ("4111", "1111", "1111"):
                await call.append(said(part))
            assert "4111" in [turn.text for turn in await call.turns()]
            await ana.set_consent("ask")
            await call.append(said("1111"))
            assert call.asking
            assert "4111" not in [turn.text for turn in await call.turns()]
            await call.remember()
            assert [turn.text for turn in (await ana.task("call")).turns] == ["[card number]"] * 4

    async def test_a_yes_in_the_first_turn_after_that_counts_as_well(self, tmp_path):
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            call = await ana.conversation("call")
            await ana.set_consent("ask")
            await call.append(MAY_I, said("Yes, sure."))
            assert len((await ana.task("call")).turns) == 2

    @pytest.mark.parametrize("before", ["never", "ask"])
    async def test_who_chooses_keep_during_a_call_has_what_is_said_from_then_on_kept(self, tmp_path, before):
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            await ana.set_consent(before)
            call = await ana.conversation("call")
            await call.append(said("My name is Quokka."))
            await ana.set_consent("keep")
            await call.append(said("I have an axolotl."))
            waited = ["My name is Quokka."] if before == "ask" else []
            assert [turn.text for turn in (await ana.task("call")).turns] == [*waited, "I have an axolotl."]
            assert (b"Quokka" in stored(tmp_path)) == bool(waited)

    async def test_who_chooses_never_during_a_call_has_nothing_more_of_it_kept(self, tmp_path):
        async with service(tmp_path) as memory:
            call = await asked(memory)
            await call.remember()
            await memory.user("ana").set_consent("never")
            await call.append(said("You may remember this call. I have an axolotl."))
            assert len((await memory.user("ana").task("call")).turns) == 2
        assert b"axolotl" not in stored(tmp_path)

    async def test_forgetting_reaches_what_waits(self, tmp_path):
        async with service(tmp_path) as memory:
            call = await asked(memory)
            await memory.user("ana").forget()
            await call.remember()
            assert [turn.text for turn in await call.turns()] == []

    async def test_the_agent_is_told_to_ask_until_there_is_an_answer(self, tmp_path):
        async with service(tmp_path) as memory:
            call = await asked(memory)
            ana = memory.user("ana")
            assert "May I remember" in (await ana.block(conversation="call")).text
            await call.remember()
            assert "May I remember" not in (await ana.block(conversation="call")).text
            assert "May I remember" not in (await memory.user("bea").block(conversation="call")).text

    async def test_who_chose_never_is_not_talked_round(self, tmp_path):
        async with service(tmp_path) as memory:
            await memory.user("ana").set_consent("never")
            call = await memory.user("ana").conversation("call")
            await call.append(MAY_I, said("Yes. You may remember this call. I am Quokka."))
            with pytest.raises(NotKept):
                await call.remember()
        assert b"Quokka" not in stored(tmp_path)


class TestTools:
    """What an agent is told to keep in a conversation of which nothing may be."""

    @staticmethod
    def by_capability(user):
        async def unchanged():
            pass

        tools = MemoryTools(user, lambda: "call", lambda: None, timeout_s=30, changed=unchanged)

        async def keep():
            answer = await tools.agent_memory("set", "pet", "an axolotl", visibility="private")
            return "" if answer["success"] else answer["say"]

        return keep

    @staticmethod
    def by_integration(user, conversation="call"):
        async def keep():
            try:
                await call(
                    user, "set_memory", {"key": "pet", "value": "an axolotl"}, conversation=conversation
                )
            except EchoicError as error:
                return refusal(error)
            return ""

        return keep

    @classmethod
    def without_a_name(cls, user):
        return cls.by_integration(user, "")

    @pytest.mark.parametrize("surface", ["by_capability", "by_integration", "without_a_name"])
    async def test_is_refused_with_words_to_say_until_the_caller_says_otherwise(self, tmp_path, surface):
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            keep = getattr(self, surface)(ana)
            call = await ana.conversation("call")
            await call.append(said("Don't remember this call."))
            assert "not to remember" in await keep()
            assert b"axolotl" not in stored(tmp_path)
            await call.append(said("Actually, you may remember this call after all."))
            assert await keep() == ""
            assert (await ana.get("pet")).text == "an axolotl"

    @pytest.mark.parametrize("surface", ["by_capability", "by_integration", "without_a_name"])
    async def test_is_refused_before_the_user_was_asked(self, tmp_path, surface):
        async with service(tmp_path) as memory:
            call = await asked(memory)
            keep = getattr(self, surface)(memory.user("ana"))
            assert "May I remember" in await keep()
            await call.append(said("Yes."))
            assert await keep() == ""
            await call.complete()
            await memory.user("ana").delete("pet")
            nameless = self.without_a_name(memory.user("ana"))
            assert "May I remember" in await nameless(), "a yes holds for its own call"

    async def test_another_call_of_the_user_goes_on_as_before(self, tmp_path):
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            await (await ana.conversation("secret")).append(said("Don't remember this call."))
            assert await self.by_integration(ana, "call")() == ""

    @pytest.mark.parametrize("budget", [150, 300, 450])
    async def test_the_user_is_asked_whatever_else_is_known(self, tmp_path, budget):
        async with service(tmp_path) as memory:
            ana = memory.user("ana")
            for key, value in {"user_name": "Ana", "home": "Haifa", "occupation": "nurse"}.items():
                await ana.set(key, value)
            for number in range(8):
                await memory.experience("films").add("strategy", f"Ask for genre {number} before a film.")
            await ana.set_consent("ask")
            block = await ana.block(agent="films", conversation="call", budget_tokens=budget)
            assert ASKING in block.section("directives")
            assert block.tokens <= budget
            if budget == 450:
                assert block.section("profile")
                assert block.section("experience")

    async def test_the_tool_for_the_answer_is_there_also_without_room_for_the_question(self, tmp_path):
        async with service(tmp_path) as memory:
            await memory.user("ana").set_consent("ask")
            offered = []

            def answer(_messages, info):
                offered.extend(tool.name for tool in info.function_tools)
                return ModelResponse(parts=[TextPart("Hello.")])

            agent = Agent(
                FunctionModel(answer), capabilities=[Memory(memory, user=lambda _: "ana", budget_tokens=20)]
            )
            await agent.run("hi", conversation_id="call")
            assert "remember_conversation" in offered

    async def test_a_model_notes_the_answer(self, tmp_path):
        async with service(tmp_path) as memory:
            held = await asked(memory)
            ana = memory.user("ana")

            async def unchanged():
                pass

            tools = MemoryTools(ana, lambda: "call", lambda: None, timeout_s=30, changed=unchanged)
            assert (await tools.remember_conversation(True))["success"]
            assert b"Quokka" in stored(tmp_path)
            assert (await tools.remember_conversation(False))["success"]
            assert b"Quokka" not in stored(tmp_path)
            assert not (await held.turns())


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
        "Don't record the call.",
        "Please don't remember the call.",
        "Don't record this call, okay?",
        "Could we keep this call off the record?",
        "I told you that I don't want this call recorded.",
        "I don't want this call recorded for training.",
        "I don't want this call recorded because it's private.",
        "I don't want you to record this call, please.",
        "Please stop recording this call.",
        "Can you stop recording?",
        "No recording, please.",
        "I don't consent to being recorded.",
        "I do not consent to this call being recorded.",
        "I object to this call being recorded.",
        "You may not record this call.",
        "You're not allowed to record this call.",
        "Please don't keep a record of this call.",
        "Please don't keep what I say in this call.",
        "I told you last time that I don't want this call recorded.",
        "I asked you not to record this call.",
        "I'm not happy with this: I don't want this call recorded.",
        "I already told you this call is off the record.",
        "When I called yesterday you taped it, I don't want this call recorded.",
        "Nobody told me it is recorded, I don't want this call recorded.",
        "Please don't keep any record of this conversation.",
        "Please don't make a recording of this call.",
        "Please don't record me.",
        "I don't want any record of this call.",
        "Don't keep anything I tell you in this call.",
        "Don't remember anything from today's call.",
        "Please do not remember what we talk about today.",
        "Do not save anything I say today.",
        "I'd prefer if this call wasn't recorded.",
        "Nothing of this call should be kept.",
        "All of this is off the record.",
        "What I'm telling you today is off the record.",
        "I must ask you not to record this call.",
        "We'd ask you not to save this call.",
        "I'm going to ask you not to record this call.",
        "We asked you not to record this call.",
        "I specifically asked you not to record this call.",
        "I'd prefer to keep this call off the record.",
        "I would rather keep this conversation off the record.",
        "I need to keep this call off the record.",
        "Please make sure to keep this call off the record.",
        "I've just said this call is off the record.",
        "I clearly told you I don't want this call recorded.",
        "We told you we don't want this call recorded.",
        "I'm saying I don't want this call recorded.",
        "That means I don't want this call recorded.",
        "Promise me you'll keep this call off the record.",
        "Will you promise to keep this conversation off the record?",
        "Can this call not be saved, please?",
        "I'd like this call to be kept off the record.",
        "Do me a favour, love, none of this goes in your notes, alright?",
        "None of this should be written down.",
        "Nothing I say today should be saved.",
        "like can you not remember this convo",
        "dont record this call",
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
        "Don't remember the call, sorry.",
        "No, don't remember the call.",
        "Sorry, don't remember the conversation.",
        "Sorry, don't remember this call.",
        "Don't keep the session for me, I can't make it.",
        "Please don't keep the session, I'll rebook.",
        "Don't save the session for me, I have flu.",
        "It's my yoga class: please don't record the session.",
        "I don't want this call logged as a complaint.",
        "I don't want this conversation kept short.",
        "I don't want our session recorded as missed.",
        "The message said if I don't want this call recorded I should say so, but I'm fine with it.",
        "It's not that I don't want this call recorded.",
        "So you don't want this call recorded?",
        "So this call is off the record?",
        "I don't agree to being kept waiting.",
        "There is no recording.",
        "What if I don't consent to being recorded?",
        "Forget this call.",
        "Forget the conversation with my boss, what about Friday?",
        "Last time I asked you not to record this conversation, this time it's fine.",
        "I did not ask you not to record this call.",
        "They want you not to record this call.",
        "I never said this call is off the record.",
        "I don't think this call is off the record.",
        "You said this call is off the record.",
        "My lawyer says this call is off the record, but it's fine to record it.",
        "My son says I don't want this call recorded, but I do.",
        "When I rang the bank, I said I don't want this call recorded.",
        "You promised to keep this call off the record.",
        "There's no need to keep this call off the record.",
        "I never told you that I do not want this call recorded.",
        "My bank doesn't keep any record of this conversation.",
        "Why don't you keep any record of this call?",
        "I don't have any record of this call.",
        "I don't want any record of this call lost.",
        "Don't keep anything I tell you about my boss.",
        "I don't remember what we talked about today.",
        "Don't make this call any longer.",
        "Don't record me as absent.",
        "I'd rather this call was not cut short.",
        "Nothing of this call makes sense.",
        "Nothing I say is off the record.",
        "Not all of this is off the record.",
        "So all of this is off the record?",
        "She told me all of this is off the record.",
        "What I just told you is off the record.",
        "At our meetings, everything we say is off the record.",
        "Everything we say is off the record at our book club.",
        "The letter that said this call is off the record was wrong.",
        "My rule is: all of this is off the record.",
        "In the film the spy says, all of this is off the record.",
        "My doctor and my lawyer told me that I don't want this call recorded.",
        "If I have to ask you not to record this call, who do I call?",
        "My wife made me promise you'll keep this call off the record.",
        "She wants this call off the record.",
        "I want this call recorded.",
        "Can this call be saved?",
        "Could this call not wait?",
        "None of this makes sense.",
        "None of this goes in the oven.",
        "None of this should be hard.",
        "Nothing I say today makes sense.",
        "The rest of this call is off the record.",
        "Off the record, please.",
    ],
)
def test_words_that_only_sound_like_it(text):
    assert not asks_off_the_record(text)


@pytest.mark.parametrize(
    "text",
    [
        "Off the record for the rest of this call please.",
        "Please keep this off the record for the rest of the call.",
        "ok so from here on don't save anything i say",
        "Don't save anything I say from now on.",
        "From now on, don't record anything I tell you.",
        "From now on I'm off the record.",
        "From this point on, everything I say is off the record.",
        "Can we go off the record from here?",
        "Could you not keep anything I say from now on?",
        "I'd rather you didn't store anything from this point on.",
        "From now on please don't take notes.",
        "Please stop saving what I say.",
        "Stop remembering things about me.",
        "Can you stop recording everything I say?",
        "I withdraw my consent for you to keep my information.",
        "The rest of this call is off the record.",
        "From now on nothing I say should be kept.",
        "I don't want you to remember anything else I say from here on.",
        "Don't write down a word I say from now on.",
        "We're off the record from now on, okay?",
        "From now on, this stays off the record.",
        "dont save anything from now on",
    ],
)
def test_words_after_which_no_more_is_kept(text):
    assert asks_to_keep_no_more(text)
    assert not asks_off_the_record(text)


@pytest.mark.parametrize(
    "text",
    [
        "From now on don't save any biscuits for me.",
        "From now on, please don't record my show.",
        "Don't keep anything in the fridge from now on.",
        "From now on I'll keep a record.",
        "He told me he's off the record from now on.",
        "Is everything I say off the record from now on?",
        "So from now on you don't save anything I say?",
        "From now on I don't save anything, I spend it.",
        "I don't save anything from now on, money's tight.",
        "Stop saving me a seat.",
        "Stop keeping me on hold.",
        "Stop saving things for later.",
        "Can you stop remembering my old address?",
        "I withdraw my application.",
        "I withdraw my consent for the operation.",
        "I withdraw my consent to the marketing emails.",
        "For the rest of the call I'll put you on speaker.",
        "For the rest of this call can you speak slowly?",
        "From here on out I drive off the main road.",
        "My wife stopped recording what I say years ago.",
        "She said, from now on don't save anything.",
        "I wish you'd stop saying everything is fine.",
        "Never record over my tapes from now on.",
        "From now on don't forget anything I say.",
        "From now on remember everything I say.",
    ],
)
def test_words_after_which_as_much_is_kept_as_before(text):
    assert not asks_to_keep_no_more(text)


QUESTION = "Before we start: may I keep what you tell me for next time?"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes.", True),
        ("Sure, go ahead.", True),
        ("Of course you can.", True),
        ("Okay, that's fine.", True),
        ("No.", False),
        ("Nope, sorry.", False),
        ("I'd rather you didn't.", False),
        ("Please don't.", False),
        ("Why?", None),
        ("Yes, but not my address.", None),
        ("I don't know.", None),
        ("My name is Ana.", None),
        ("Yes. I'm Ana and I don't eat nuts.", True),
        ("Sure. No problem.", True),
        ("No worries, go ahead.", True),
        ("Not at all, go ahead.", True),
        ("Actually, no.", False),
        ("No. You may call me Ana.", False),
        ("Okay, no.", None),
        ("That's okay, no thanks.", None),
        ("It's fine, no.", None),
        ("Alright. I'd rather you didn't.", None),
        ("Fine, no thank you.", None),
        ("Definitely no.", None),
        ("Yeah, nah.", None),
        ("No, that's fine, go ahead.", None),
    ],
)
def test_words_that_answer_whether_a_call_may_be_kept(text, answer):
    assert answers_to_remember(text, QUESTION) is answer
    assert answers_to_remember(text, "Shall I book the table?") is None


@pytest.mark.parametrize(
    ("text", "allows"),
    [
        ("You may remember this call.", True),
        ("Actually, please remember this conversation after all.", True),
        ("This call may be remembered.", True),
        ("You can't remember this call.", None),
        ("Can you remember this call?", None),
        ("I remember this call.", None),
        ("You don't have to remember this call.", None),
        ("Please keep this conversation short.", None),
        ("No, you may remember this call.", True),
        ("I already told you, you may remember this call.", True),
        ("It's fine if you keep the conversation.", True),
        ("I was never told you could record this call.", None),
        ("I do not agree that you may record this call.", None),
        ("There's no way you can keep this call.", None),
        ("Who says you can record this call?", None),
        ("I wonder if you can record this call.", None),
        ("You may remember this call?", None),
        ("I never said you can record this call.", None),
        ("Please keep the session, I'll be there.", None),
        ("You can keep the chat, I'll phone instead.", None),
        ("Okay, we're back on the record.", True),
        ("My dog is back on the record player.", None),
        ("I'd like it back on record.", None),
    ],
)
def test_words_that_allow_a_call_to_be_kept(text, allows):
    assert answers_to_remember(text) is allows


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("May I remember this conversation?", True),
        ("Is it okay if I remember our chat?", True),
        ("Are you happy for me to keep notes?", True),
        ("Can I save what we talk about?", True),
        ("Do you agree to this call being recorded?", True),
        ("Would you like me to remember you?", True),
        ("May I keep this for next time?", True),
        ("Can I keep you on hold for a minute?", None),
        ("Shall I keep the table for you until eight?", None),
        ("Do you want to keep your window seat?", None),
        ("Is it all right if I keep your old card?", None),
        ("Would you like to keep the same number?", None),
        ("Do you want to keep the onions in it?", None),
        ("Do you want to save ten percent with our card?", None),
        ("Should I note that the parcel goes to the neighbour?", None),
    ],
)
def test_questions_that_ask_whether_a_call_may_be_kept(question, asks):
    assert answers_to_remember("Yes please.", question) is asks
    assert answers_to_remember("No.", question) is (False if asks else None)
