"""What was forgotten or taken back is recalled from nowhere; what was said beside it still is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import echoic
from echoic.embedding import embedder_from
from echoic.errors import InvalidInput, StoreUnavailable
from echoic.memory import forget_targets, retraction
from echoic.memory.compliance import ChainedLog
from echoic.memory.keyless import CONFIRM_FORGETTING, HIDDEN, UNCLEAR, KeylessAgent
from echoic.memory.mentions import said_in
from echoic.memory.proposals import JUDGEMENT
from echoic.memory.records import (
    CALL,
    CONVERSATION,
    EXCHANGE,
    INDEXED_ITEM,
    ITEM,
    RESULT,
    SAID,
    TURN,
    is_unlearned,
    record_of_memory,
    scan_all,
)
from echoic.memory.retraction import take_back_turns
from echoic.memory.service import MemoryService
from echoic.memory.sharing import GLOBAL_KINDS, Verdict
from echoic.session.call_record import CallRecord, TypedTurn, note_typed, read_calls, read_exchanges
from echoic.stores import store_from
from echoic.stores.base import Put
from echoic.types import Memory, Turn

SISTER = "My sister is called Marta"


async def say(user, name, *said):
    """Turns of one conversation, one after another, learned from at once."""
    call = await user.conversation(name)
    for text in said:
        speaker, _, words = text.partition(": ")
        await call.append(Turn(speaker=speaker, text=words))
        await call.learn()
    return call


async def recalled(user, *questions):
    """Everything that any way of recalling tells, as one text."""
    told = []
    for question in (*questions, "sister", "What is my sister called?", SISTER, "Who is Marta?"):
        told += [str(hit) for hit in await user.query(question, limit=50)]
        told.append((await user.brief(question)).text)
        async with user.listen(limit=20) as listening:
            listening.partial(question)
            told += [str(hit) for hit in (await listening.final(question)).hits]
        told.append((await user.block(moment=question)).text)
    # digits of an id or a time are no part of what was said
    return re.sub(r"\b[0-9a-f]{32}\b|datetime\.datetime\([^)]*\)", "", "\n".join(told))


async def told_of_marta(memory):
    ana = memory.user("ana")
    await say(
        ana,
        "monday",
        "user: I live in Porto and my sister is called Marta, and I work at Tesco.",
        "agent: Noted: your sister is called Marta.",
        "user: My boss is called Marta too.",
    )
    await say(
        ana,
        "tuesday",
        "user: My sister Marta came by, she brought a lemon cake.",
        "agent: What is your sister's name again?",
        "user: Marta.",
        "agent: Marta, what a lovely name!",
    )
    return ana


@pytest.mark.parametrize("said", ["NFC", "NFD"])
@pytest.mark.parametrize("kept", ["NFC", "NFD"])
@pytest.mark.parametrize("destroyed", [True, False])
async def test_an_accent_is_found_in_whichever_form_it_is_written(said, kept, destroyed):
    async with MemoryService(store_from("memory://"), embedder_from("lexical")) as memory:
        ana = memory.user("ana")
        call = await ana.conversation("monday")
        words = "My sister is called Zoë Nuñez, and my son's name is Jérémie. I like tea."
        await call.append(Turn(speaker="user", text=unicodedata.normalize(said, words), id="t1"), learn=False)
        for key, value in (("sister", "Zoë Nuñez"), ("son", "Jérémie")):
            await ana.set(key, unicodedata.normalize(kept, value), visibility="private")
            await (ana.forget(key=key) if destroyed else ana.delete(key))
        told = unicodedata.normalize("NFC", await recalled(ana, "who is Zoë Nuñez", "Jérémie", "tea"))
        assert not re.search("Zo|ez,|rémie|J\u0301", told), told
        assert "I like tea" in told
        if destroyed:
            (turn,) = await ana.find_turns(["t1"])
            assert not re.search("Zo|Nu|mie", turn.text)


SAID_IN_OTHER_WAYS = [
    (
        "phone",
        ["agent: So that's oh seven seven double oh, nine double oh, one two three.",
         "user: Yes, zero seven seven zero zero, nine zero zero, one two three."],
        "My phone number is 07700 900123.",
        "seven|nine|07700",
    ),
    (
        "birthday",
        ["agent: Fourth of May nineteen fifty, or 04/05/1950?",
         "user: Yes, May 4th, 1950.",
         "agent: 4/5/50 then.",
         "user: The fourth of the fifth nineteen fifty, or oh four oh five nineteen fifty."],
        "I was born on the fourth of May 1950.",
        "four|fif|May|5",
    ),
    (
        "birthday",
        ["agent: The 21st of April 1985, right?",
         "user: Yes, twenty first April eighty five.",
         "user: I was born on the twenty-first of April."],
        "My date of birth is 21/04/1985.",
        "21|twenty|April|85",
    ),
    (
        "user_name",
        ["user: It's Q-U-I-L-L-O-N-D-A.", "agent: Q U I double L O N D A."],
        "My name is Quillonda.",
        "Q|O.N",
    ),
    (
        "email",
        ["agent: Quillonda twenty two at g mail dot com?",
         "user: Yes, q u i l l o n d a two two at gmail dot com."],
        "My email is quillonda22@gmail.com.",
        "mail dot|two|q u",
    ),
    ("age", ["agent: Seventy four.", "user: Yes, seventy-four."], "I'm 74.", "eventy|74"),
]  # fmt: skip


@pytest.mark.parametrize(("confirmed", "said", "gone"), [each[1:] for each in SAID_IN_OTHER_WAYS])
@pytest.mark.parametrize("destroyed", [True, False])
async def test_what_is_forgotten_is_found_in_whichever_way_it_was_said(confirmed, said, gone, destroyed):
    (key,) = {each[0] for each in SAID_IN_OTHER_WAYS if each[2] == said}
    async with MemoryService(store_from("memory://"), embedder_from("local")) as memory:
        ana = memory.user("ana")
        call = await say(ana, "monday", f"user: {said[:-1]} and I live in Leeds.", *confirmed)
        assert await ana.get(key), "it has to be there to be forgotten"
        await (ana.forget(key=key) if destroyed else ana.delete(key))
        await call.complete()
        await memory.distil()
        turns = await call.turns() if destroyed else []
        told = "\n".join(
            [
                *(turn.text for turn in turns),
                *(fact.text for fact in await ana.facts()),
                *(hit.text for hit in await ana.query(f"What is my {key.replace('_', ' ')}?", limit=50)),
            ]
        )
        assert not re.search(gone, told), told
        assert (await ana.get("home")).text == "Leeds"
        assert "I live in Leeds" in str(await ana.query("Where do I live?"))


OTHER_NUMBERS = [
    ("birthday", "May 4, 1950", "Book the fourth of May please"),
    ("birthday", "May 4, 1950", "My son was born on the fourth of June nineteen fifty"),
    ("birthday", "May 4, 1950", "It costs 4.5 and 19.50"),
    ("birthday", "May 4, 1950", "My order is 40519507"),
    ("birthday", "May 4, 1950", "On May 4, 1960 people came"),
    ("birthday", "May 4, 1950", "My order number is 451950"),
    ("birthday", "May 4, 1950", "My order number is four five one nine five oh"),
    ("birth_year", "1950", "My house was built in nineteen fifty"),
    ("membership", "11-08-24", "My flight is on the eleventh of August twenty twenty four"),
    ("membership", "12-05-2031", "My holiday is on 12 May 2031"),
    ("birthday", "May 4", "My dentist is on the fourth of May at nine"),
    ("birthday", "May 4", "I may need four of them"),
    ("age", "74", "I take bus seventy four to town every day"),
    ("age", "74", "My house number is 74"),
    ("age", "74", "I have 174 books and paid 7.74"),
    ("user_name", "Ana", "My booking code is A N A 4 0 5"),
    ("user_name", "Ana", "I got an A in maths and a B in art"),
    ("user_name", "Ana", "I want a banana"),
    ("email", "ana22@gmail.com", "My wife's is susana22 at gmail dot com"),
    ("email", "ana22@gmail.com", "I wrote to ana at gmail dot com"),
]


@pytest.mark.parametrize(("key", "value", "said"), OTHER_NUMBERS)
def test_what_only_shares_digits_or_letters_stays(key, value, said):
    memory = Memory(id="m", key=key, text=value, valid_from=datetime.now(UTC), source=("t",))
    turns = [
        Turn(id=str(at), conversation="c", speaker="user", text=text)
        for at, text in enumerate(("Hello there", "I live in Leeds", said))
    ]
    assert said_in(turns, [memory]) == {}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("membership", "11-08-24", "It's 110824"),
        ("sort_code", "20-10-45", "two oh one oh four five"),
        ("birthday", "May 4, 1950", "It's 04051950"),
        ("birthday", "04/05/1950", "The fourth of May nineteen fifty"),
        ("passport_expiry", "2027-05-04", "The fourth of May 2027"),
        ("birth_year", "1950", "I was born in nineteen fifty"),
        ("pin", "1950", "nineteen fifty"),
    ],
)
def test_a_day_is_found_by_name_and_a_number_like_it_in_figures(key, value, said):
    memory = Memory(id="m", key=key, text=value, valid_from=datetime.now(UTC), source=("t",))
    turns = [Turn(id="0", conversation="c", speaker="user", text=said)]
    assert said_in(turns, [memory]) == {"0": [(0, len(said))]}


async def test_a_turn_that_says_it_in_another_way_is_not_learned_from_meanwhile(memory):
    ana = memory.user("ana")
    call = await say(ana, "monday", "user: My phone number is 07700 900123.")
    again = Turn(
        speaker="user", text="Zero seven seven zero zero, nine zero zero, one two three.", id="again"
    )
    await call.append(again, learn=False)
    await retraction.unlearn_turns(ana.backing_store, ana.scope, [await ana.get("phone")])
    (record,) = await ana.backing_store.read(ana.scope, TURN, ["again"])
    assert is_unlearned(record)


@pytest.mark.parametrize("destroyed", [True, False])
@pytest.mark.parametrize(
    ("key", "said", "learned"),
    [
        ("sister_name", ["user: My sister is called Quillonda.", "user: Quillonda lives with us."], "Quillonda"),
        (
            "allergy:penicillin",
            ["user: I'm allergic to penicillin.", "agent: A penicillin allergy, noted.",
             "user: Yes I get a rash from penicillin."],
            "penicillin",
        ),
    ],
)  # fmt: skip
async def test_a_memory_goes_with_the_words_of_the_turn_it_was_learned_from(destroyed, key, said, learned):
    async with MemoryService(store_from("memory://"), embedder_from("local")) as memory:
        ana = memory.user("ana")
        call = await say(ana, "monday", *said, "user: I keep bees in the garden, and my surname is Ibsen.")
        await call.complete()
        await memory.distil()
        assert any(fact.key is None and learned in fact.text for fact in await ana.facts())
        await (ana.forget(key=key) if destroyed else ana.delete(key))
        left = str([*await ana.facts(), *await ana.query(learned, limit=50), (await ana.block()).text])
        assert learned not in left, left
        await ana.forget(key="last_name")
        assert "bees" in str(await ana.facts())


@pytest.mark.parametrize(
    ("said", "kept", "key"),
    [
        ("I live in Leeds with my two cats.", "Has two cats", "home"),
        (
            "My number is 07700 900412, call after six as I work nights.",
            "Works nights, calls after six",
            "phone",
        ),
        ("My sister Quillonda keeps bees.", "Bees are kept by a relative", "sister_name"),
    ],
)
@pytest.mark.parametrize("destroyed", [True, False])
async def test_what_a_model_learned_of_another_matter_stays(memory, destroyed, said, kept, key):
    ana = memory.user("ana")
    call = await say(ana, "monday", f"user: {said}")
    (turn,) = await call.turns()
    learned = Memory(
        id="m", key=None, text=kept, author="ana", valid_from=datetime.now(UTC), source=(turn.id,)
    )
    await ana.backing_store.write(ana.scope, [Put(record=record_of_memory(learned))])
    assert await ana.get(key)
    await (ana.forget(key=key) if destroyed else ana.delete(key))
    assert [fact.text for fact in await ana.facts()] == [kept]


async def test_turns_are_chosen_off_the_event_loop(memory, monkeypatch):
    ana = memory.user("ana")
    await say(ana, "monday", "user: My phone number is 07700 900123.")
    threads, mentioned_in = [], retraction.mentioned_in

    def noted(turn, claims):
        threads.append(threading.current_thread())
        return mentioned_in(turn, claims)

    monkeypatch.setattr(retraction, "mentioned_in", noted)
    phone = replace(await ana.get("phone"), text="07700900124", source=())
    await retraction.unlearn_turns(ana.backing_store, ana.scope, [phone])
    assert threads
    assert threading.current_thread() not in threads


def is_told(text):
    return any(
        words in text
        for words in (
            "sister is called Marta",
            "sister Marta",
            "Marta.'",
            "Marta, what",
            "sister name: Marta",
        )
    )


async def by_key(ana):
    assert (await ana.forget(key="sister_name")).verified


async def by_delete(ana):
    assert await ana.delete("sister_name")


async def by_voice(ana):
    await say(
        ana,
        "wednesday",
        "user: Please forget that my sister is called Marta.",
        "agent: Done. I no longer know that your sister is called Marta.",
    )


class TestWhatIsRecalled:
    @pytest.mark.parametrize("how", [by_key, by_delete, by_voice])
    async def test_what_was_forgotten_or_taken_back_is_recalled_from_no_turn(self, memory, how):
        ana = await told_of_marta(memory)
        assert is_told(await recalled(ana)), "it has to be there to be forgotten"
        await how(ana)
        text = await recalled(ana)
        assert not is_told(text), text

    @pytest.mark.parametrize("how", [by_key, by_delete, by_voice])
    async def test_what_was_said_beside_it_is_still_recalled(self, memory, how):
        ana = await told_of_marta(memory)
        await how(ana)
        text = await recalled(ana, "Where do I live?", "Where do I work?", "cake", "my boss")
        for kept in ("I live in Porto", "I work at Tesco", "lemon cake", "boss is called Marta"):
            assert kept in text, kept

    @pytest.mark.parametrize("how", [by_key, by_delete, by_voice])
    async def test_what_is_said_again_is_known_again(self, memory, how):
        ana = await told_of_marta(memory)
        await how(ana)
        await say(ana, "friday", f"user: {SISTER}.")
        assert (await ana.get("sister_name")).text == "Marta"
        assert "sister is called Marta" in str(await ana.query("What is my sister called?"))


@pytest.mark.parametrize("url", ["memory://"])  # what is said matters, not where it is kept
async def test_what_others_ask_to_forget_in_their_own_words_is_hidden_and_nothing_else_is(memory):
    """Written apart from the rules, and counted before these were mended: docs/forgetting.md."""
    lines = (Path(__file__).parent / "spoken_forgetting.jsonl").read_text().splitlines()
    told, harmed = [], []
    for number, case in enumerate(map(json.loads, lines)):
        user = memory.user(f"user {number}")
        await say(user, "call", *(f"{speaker}: {text}" for speaker, text in case["turns"]))
        found = str(await user.query(case["asks"], limit=20, min_relevance=0)).lower()
        if (case["word"] in found) != case["stays"]:
            (harmed if case["stays"] else told).append(case["turns"][-1][1])
        if "Rex" not in str(await user.query("What is my dog called?", limit=20, min_relevance=0)):
            harmed.append(case["turns"][-1][1])
    assert len(lines) == 61
    assert len(told) <= 1, told
    assert not harmed


class TestWhatIsDestroyed:
    @pytest.mark.parametrize("url", ["sqlite"], indirect=True)
    async def test_the_question_goes_with_what_a_yes_to_it_taught(self, memory, tmp_path):
        ana = memory.user("ana")
        call = await say(
            ana,
            "monday",
            "agent: Right. Are you vegetarian, Mrs Hill?",
            "user: Yes, I am. My dog is called Biscuit.",
            "agent: And do you live in Quillonda?",
            "user: Yes, I do.",
        )
        await memory.settle(20)
        assert {fact.text for fact in await ana.facts()} == {"vegetarian", "Biscuit", "Quillonda"}
        assert (await ana.forget(key="diet:vegetarian")).verified
        assert b"vegetarian" not in every_byte(tmp_path).lower()
        assert {fact.text for fact in await ana.facts()} == {"Biscuit", "Quillonda"}
        assert [turn.text for turn in await call.turns()] == [
            "Right. [forgotten]?",
            "[forgotten]. My dog is called Biscuit.",
            "And do you live in Quillonda?",
            "Yes, I do.",
        ]

    async def test_forget_that_after_a_yes_means_what_was_asked(self, memory):
        ana = memory.user("ana")
        await say(
            ana,
            "monday",
            "agent: Do you live in Porto?",
            "user: Yes.",
            "agent: Are you vegetarian?",
            "user: Yes.",
            "agent: Noted.",
            "user: Forget that.",
        )
        await memory.settle(20)
        assert [fact.text for fact in await ana.facts()] == ["Porto"]

    @pytest.mark.parametrize("url", ["sqlite", "files"], indirect=True)
    async def test_the_words_are_in_no_byte_of_the_store(self, memory, tmp_path):
        ana = memory.user("ana")
        call = await say(
            ana,
            "monday",
            "user: I live in Porto and my sister is called Quillonda.",
            "agent: Noted: your sister is called Quillonda.",
        )
        await call.store("family talk", "Spoke of her sister Quillonda, and of Porto")
        await memory.settle(20)
        assert b"Quillonda" in every_byte(tmp_path)
        receipt = await ana.forget(key="sister_name")
        assert receipt.verified
        assert receipt.memories == 1
        assert receipt.rewritten == 3
        said = every_byte(tmp_path)
        assert b"Quillonda" not in said
        assert b"quillonda" not in said.lower()
        assert b"Porto" in said

    async def test_the_turns_keep_what_else_they_say_and_their_place(self, memory):
        ana = memory.user("ana")
        call = await say(
            ana, "monday", "user: I live in Porto and my sister is called Marta.", "agent: Lovely."
        )
        receipt = await ana.forget(key="sister_name")
        assert [turn.text for turn in await call.turns()] == ["I live in Porto and [forgotten].", "Lovely."]
        assert (receipt.memories, receipt.turns, receipt.rewritten) == (1, 0, 1)
        assert await ana.query("forgotten") == []

    async def test_what_says_something_else_with_the_same_value_is_kept_and_counted(self, memory):
        ana = await told_of_marta(memory)
        receipt = await ana.forget(key="sister_name")
        assert receipt.kept == 1
        assert (await ana.get("boss_name")).text == "Marta"

    async def test_what_a_tool_kept_goes_from_the_turn_it_was_told_in(self, memory):
        ana = memory.user("ana")
        call = await say(ana, "monday", "user: I come from Leeds, and I like tea.")
        await ana.set("place_of_origin", "Leeds")
        await ana.forget(key="place_of_origin")
        assert [turn.text for turn in await call.turns()] == ["[forgotten], and I like tea."]

    async def test_forgetting_what_holds_brings_no_earlier_version_back(self, memory):
        ana = memory.user("ana")
        await say(ana, "monday", "user: I live in Leeds.")
        await say(ana, "tuesday", "user: I live in York now.", "agent: York it is.")
        await ana.forget(key="home")
        assert await ana.get("home") is None
        told = str(await ana.query("Where do I live?", limit=50, include_past=True))
        assert "Leeds" not in told
        assert "York" not in told

    async def test_memories_that_repeat_it_go_too(self, memory):
        ana = memory.user("ana")
        await say(ana, "monday", "user: My sister is called Marta.")
        await ana.remember("The user's sister Marta is a nurse")
        await ana.remember("Likes tea")
        await ana.forget(key="sister_name")
        assert [one.text for one in await ana.facts()] == ["Likes tea"]


AT = datetime(2026, 6, 1, 9, 12, 34, 124821, tzinfo=UTC)


class TestWhatIsNoSpeech:
    """Times, ids and states, in whose digits and words nothing was said."""

    @pytest.fixture
    async def service(self, url):
        async with MemoryService(store_from(url), embedder_from("lexical"), clock=lambda: AT) as opened:
            yield opened

    async def read(self, service):
        """Everything that is read from the records of one call, and the fields of each that hold no speech."""
        ana = service.user("ana")
        store, scope = ana.backing_store, ana.scope
        (listed,) = (await service.newest_conversations()).conversations
        assert [listed.conversation] == await ana.conversations()
        assert (await ana.task("c")).messages
        assert await ana.items("order").all()
        assert await ana.items("note", searchable=True).all()
        assert len(await read_calls(store, scope)) == len(await read_exchanges(store, scope, "c")) == 1
        return [
            (kind, record.id, {k: v for k, v in record.data.items() if k not in SAID.get(kind, ())})
            for kind in (CONVERSATION, RESULT, ITEM, INDEXED_ITEM, CALL, EXCHANGE)
            for record in await scan_all(store, scope, kind)
        ]

    async def told(self, service, *said):
        """A call with a result, items, and the record of its first turn."""
        ana = service.user("ana")
        call = await ana.conversation("c")
        (first, *_) = await call.append(*(Turn(speaker="user", text=text) for text in said))
        await ana.add_result("c", "look_up", {"found": "locker 4821"})
        await ana.items("order").set("1", {"of": "locker 4821"})
        await ana.items("note", searchable=True).set("1", {}, text="locker 4821")
        record = CallRecord(
            id="call", conversation="c", provider="", model="", channel="voice", started_at=AT, agents=["a"]
        )
        await note_typed(ana, record, first, TypedTurn(came_at=AT))
        await call.complete()
        await service.distil()
        return ana, first

    async def test_times_and_ids_stay_whose_digits_are_those_of_a_forgotten_value(self, service):
        ana, _ = await self.told(service, "It is locker 4821.")
        values = {"wedding": "June 2026", "locker": "4821", "trip": "after the wedding in June 2026"}
        for key, value in values.items():
            await ana.set(key, value)
        await ana.set("flat", "has a balcony, and locker 4821", context="since June 2026")
        before = await self.read(service)
        for key in values:
            assert (await ana.forget(key=key)).verified
        assert await self.read(service) == before
        flat = await ana.get("flat")
        assert (flat.text, flat.context, flat.valid_from) == (
            "has a balcony, and [forgotten]",
            "[forgotten]",
            AT,
        )
        told = str([await scan_all(ana.backing_store, ana.scope, kind) for kind in (TURN, *SAID)])
        told = re.sub(r"[\d-]{10}T[\d:.+]{13,}|\b[0-9a-f]{32}\b", "", told)
        assert "4821" not in told
        assert "2026" not in told

    @pytest.mark.parametrize("word", ["completed", "active", "voice", "order"])
    async def test_a_state_stays_that_is_the_word_of_a_forgotten_turn(self, service, word):
        ana, turn = await self.told(service, word, "Hello.")
        before = await self.read(service)
        await ana.forget(id=turn.id)
        assert await self.read(service) == before
        assert [each.text for each in (await ana.task("c")).turns] == ["[forgotten]", "Hello."]


class TestById:
    async def test_one_memory_is_forgotten_by_its_id_with_what_said_it(self, memory):
        ana = memory.user("ana")
        call = await say(ana, "monday", "user: I prefer email to phone calls. I live in Porto.")
        kept = await ana.remember("Prefers e-mail to phone calls")
        assert (await ana.forget(id=kept.id)).verified
        assert "phone calls" not in str(await ana.export())
        assert [turn.text for turn in await call.turns()] == ["[forgotten]. I live in Porto."]

    async def test_one_turn_is_forgotten_by_its_id_with_what_was_learned_from_it_alone(self, memory):
        ana = memory.user("ana")
        call = await say(
            ana, "monday", "user: I live in Porto.", "agent: So you live in Porto.", "user: Rain again."
        )
        first = (await call.turns())[0]
        await ana.forget(id=first.id)
        assert [turn.text for turn in await call.turns()] == ["[forgotten]", "So [forgotten].", "Rain again."]
        assert await ana.facts() == []

    async def test_a_turn_that_was_forgotten_in_part_is_forgotten_whole(self, memory):
        ana = memory.user("ana")
        call = await say(
            ana, "monday", "user: Vera's. Four one five.", "agent: Vera, four one five. She is added."
        )
        first, echo = await call.turns()
        await ana.forget(id=first.id)
        assert "[forgotten]" in (await call.turns())[1].text
        await ana.forget(id=echo.id)
        await ana.forget(id=echo.id)
        assert [turn.text for turn in await call.turns()] == ["[forgotten]", "[forgotten]"]

    async def test_one_turn_or_memory_is_taken_back_by_its_id_and_stays_in_the_transcript(self, memory):
        ana = memory.user("ana")
        call = await say(ana, "monday", "user: I live in Porto.", "user: I work at Tesco.")
        home, work = await ana.get("home"), await ana.get("employer")
        assert await ana.delete(id=home.id)
        assert await ana.delete(id=work.source[0])
        assert await ana.facts() == []
        found = str(await ana.query("Porto Tesco", limit=50))
        assert "Porto" not in found
        assert "Tesco" not in found
        assert [turn.text for turn in await call.turns()] == ["I live in Porto.", "I work at Tesco."]
        assert not await ana.delete(id="nothing")

    async def test_turns_of_a_rewound_history_are_hidden_and_the_same_words_elsewhere_are_not(self, memory):
        ana = memory.user("ana")
        await say(ana, "sunday", "user: I live in Porto.", "user: I am allergic to peanuts.")
        said = ["user: I am allergic to peanuts.", "user: I moved to Lisbon.", "user: I moved to Rome."]
        call = await say(ana, "monday", *said, "user: I work at Tesco.")
        await say(ana, "tuesday", "user: I moved to Rome last year, for the food.")
        rome = await ana.get("home")
        names = [turn.id for turn in await call.turns()]
        for _ in range(2):
            await take_back_turns(ana.backing_store, ana.scope, names, datetime.now(UTC))
        assert (await ana.get("home")).text == rome.text, "said on Tuesday as well"
        assert await ana.get("employer") is None
        assert "peanuts" in str(await ana.facts())
        hits = (await ana.recall("Rome Lisbon Tesco peanuts", limit=50)).hits
        assert {hit.turn.conversation for hit in hits if hit.turn} == {"sunday", "tuesday"}

    async def test_what_a_rewound_turn_replaced_denied_or_asked_to_forget_does_not_come_back(self, memory):
        ana = memory.user("ana")
        told = ["user: I live in Porto.", "user: I am allergic to nuts.", "user: I like jazz."]
        await say(ana, "sunday", *told)
        taken_back = ["user: I'm not allergic to nuts any more.", "user: Forget that I like jazz."]
        call = await say(ana, "monday", "user: I moved to Lisbon.", *taken_back)
        names = [turn.id for turn in await call.turns()]
        await say(
            ana, "tuesday", "user: Forget that I lived in Porto."
        )  # nothing marks what had ended by then
        await take_back_turns(ana.backing_store, ana.scope, names, datetime.now(UTC))
        assert await ana.facts() == []

    async def test_what_is_confirmed_elsewhere_while_its_turn_is_rewound_stays(self, memory, monkeypatch):
        ana = memory.user("ana")
        call = await say(ana, "monday", "user: I live in Porto.")
        names, read = [turn.id for turn in await call.turns()], retraction.scan_all

        async def and_confirm(store, scope, kind):
            found = await read(store, scope, kind)
            monkeypatch.setattr(retraction, "scan_all", read)
            await say(ana, "tuesday", "user: I live in Porto.")
            return found

        monkeypatch.setattr(retraction, "scan_all", and_confirm)
        await take_back_turns(ana.backing_store, ana.scope, names, datetime.now(UTC))
        assert (await ana.get("home")).text == "Porto"

    async def test_an_id_and_a_key_are_not_mixed(self, memory):
        ana = memory.user("ana")
        with pytest.raises(InvalidInput, match="takes an id alone"):
            await ana.forget(key="home", id="x")
        with pytest.raises(InvalidInput, match="a key or an id"):
            await ana.delete()


HOURS = ("opening_hours", "The store is open from 9 to 17.")


async def told_everyone(memory):
    """The texts that operators are asked about, and what others are told."""
    bob = memory.user("bob")
    told = [await bob.get(HOURS[0]), *await memory.proposals().list(), *await bob.facts(with_global=True)]
    return [each.text for each in told if each is not None]


class TestWhatOthersSee:
    """What the user proposed or made global goes with the memory it was made of."""

    @pytest.fixture(params=["propose", "auto"])
    async def service(self, request, tmp_path):
        kinds = GLOBAL_KINDS if request.param == "auto" else None
        url = f"sqlite:///{tmp_path}/e.db"
        async with echoic.open(
            url, embedder="lexical", global_writes=request.param, global_kinds=kinds
        ) as opened:
            yield opened

    async def test_it_is_destroyed_with_the_id_of_the_memory(self, service, tmp_path):
        ana = service.user("ana")
        kept = await ana.set(*HOURS)
        assert kept in await ana.facts()
        assert HOURS[1] in await told_everyone(service)
        receipt = await ana.forget(id=kept.id)
        assert receipt.verified
        assert receipt.memories == 1
        assert await told_everyone(service) == []
        assert await ana.history(HOURS[0]) == []
        await service.settle(20)
        assert b"9 to 17" not in every_byte(tmp_path)

    async def test_it_is_taken_back_with_the_id_of_the_memory(self, service):
        ana = service.user("ana")
        kept = await ana.set(*HOURS)
        assert await ana.delete(id=kept.id)
        assert await told_everyone(service) == []
        assert await ana.facts() == []
        assert [each.text for each in await ana.history(HOURS[0])] == [HOURS[1]]
        assert not await ana.delete(id=kept.id)

    @pytest.mark.parametrize("verb", ["forget", "delete"])
    async def test_another_version_and_another_user_s_stay(self, service, verb):
        ana, bob = service.user("ana"), service.user("bob")
        earlier = await ana.set(HOURS[0], "The store is open from 8 to 16.")
        await bob.set("garden_hours", HOURS[1])
        await ana.set(*HOURS)
        before = await told_everyone(service)
        assert before
        await getattr(ana, verb)(id=earlier.id)
        assert await told_everyone(service) == before
        (theirs,) = await bob.history("garden_hours")
        await getattr(ana, verb)(id=theirs.id)
        assert await told_everyone(service) == before

    async def test_what_a_process_that_was_killed_left_goes_when_it_is_asked_for_again(
        self, service, monkeypatch
    ):
        ana = service.user("ana")
        kept = await ana.set(*HOURS)
        store = ana.backing_store
        erase = store.erase
        for deadly in range(1, 9):
            steps = iter(range(1, deadly + 1))

            async def dies(*what, steps=steps, deadly=deadly):
                if next(steps, deadly) == deadly:
                    raise StoreUnavailable("killed")
                return await erase(*what)

            monkeypatch.setattr(store, "erase", dies)
            with contextlib.suppress(StoreUnavailable):
                await ana.forget(id=kept.id)
                break
        assert deadly > 1, "control: it died before every step"
        assert await told_everyone(service) == []


class Late:
    """A second judge that agrees once it is let."""

    def __init__(self):
        self.asked, self.answers = asyncio.Event(), asyncio.Event()

    async def classify(self, text, key):
        self.asked.set()
        await self.answers.wait()
        return Verdict("global", "model")


class TestWhatWaitsToBeJudged:
    @pytest.fixture
    async def judge(self):
        return Late()

    @pytest.fixture
    async def service(self, tmp_path, judge):
        store = store_from(f"sqlite:///{tmp_path}/e.db")
        async with MemoryService(
            store, embedder_from("lexical"), second_judge=judge, global_writes="auto"
        ) as opened:
            yield opened

    async def test_a_late_answer_shares_nothing_that_was_forgotten_by_its_id(
        self, service, judge, monkeypatch
    ):
        ana, told = service.user("ana"), []
        kept = await ana.set(*HOURS)
        await judge.asked.wait()
        await ana.forget(id=kept.id)
        assert await ana.backing_store.scan(ana.scope, JUDGEMENT) == []
        write = ana.backing_store.write

        async def noted(scope, changes):
            told.append((scope, str(changes)))
            await write(scope, changes)

        monkeypatch.setattr(ana.backing_store, "write", noted)
        judge.answers.set()
        await service.settle()
        assert not [each for each in told if each[0] == ana.scope.everyone]
        assert await told_everyone(service) == []

    @pytest.mark.parametrize("which", ["global", "own"])
    async def test_what_was_shared_goes_with_the_id_of_either_copy(self, service, judge, which, tmp_path):
        ana = service.user("ana")
        judge.answers.set()
        await ana.set(HOURS[0], "The garden is open from 8 to 16.", visibility="private")
        await ana.set(*HOURS)
        await service.settle()
        (shared,) = [each for each in await ana.facts() if each.text == HOURS[1]]
        (own,) = [each for each in await ana.past() if each.text == HOURS[1]]
        assert own.id != shared.id
        assert (await ana.forget(id=shared.id if which == "global" else own.id)).verified
        assert await told_everyone(service) == []
        assert await ana.facts() == []
        assert b"9 to 17" not in every_byte(tmp_path)


class TestTakenBackInSpeech:
    async def test_forget_that_hides_the_sentence_it_means_though_nothing_was_learned(self, memory):
        ana = memory.user("ana")
        await say(
            ana,
            "monday",
            "user: The weather is nice.",
            "user: Blue parrots scare my neighbour Olga.",
            "agent: Blue parrots scare Olga, I see.",
            "user: Forget that, please.",
        )
        found = str(await ana.query("Who is scared of blue parrots?", limit=50))
        assert "Olga" not in found
        assert "weather" in str(await ana.query("weather"))

    @pytest.mark.parametrize("each", [True, False], ids=["each turn", "each call"])
    @pytest.mark.parametrize(
        ("said", "request_"),
        [
            ("I drink two bottles of gin a day.", "Forget that."),
            ("I drink two bottles of gin a day.", "Forget that, sorry."),
            ("I drink two bottles of gin a day.", "Scrap that."),
            ("i drink two bottles of gin a day", "please forget what i just said"),
            ("I drink two bottles of gin a day.", "Forget what I said."),
            ("I drink two bottles of gin a day.", "My mistake, forget that."),
            ("I drink two bottles of gin a day.", "What I said about the gin, forget that."),
            ("I drink two bottles of gin a day.", "Forget everything I said about gin."),
            ("I drink two bottles of gin a day. | Um, right. | Thanks, Robin.", "Forget that."),
            ("I drink two bottles of gin a day. | What time is it?", "Forget that."),
            ("I drink two bottles of gin a day. | Oh, I see. | One moment.", "Forget that."),
            ("She drinks gin.", "Forget that."),
            ("Gin.", "Forget that."),
            ("", "I drink gin. Forget that."),
            ("", "I drink two bottles of gin a day, forget that."),
            ("I drink two bottles of gin a day.", "Forget that. My mother lives in York."),
        ],
    )
    @pytest.mark.parametrize("url", ["memory://"])  # what is said matters, not where it is kept
    async def test_forget_that_hides_what_was_said_last_and_keeps_the_facts_from_before_it(
        self, memory, said, request_, each
    ):
        ana = memory.user("ana")
        call = await ana.conversation("call")
        for text in ("I'm allergic to nuts.", *filter(None, said.split(" | ")), request_):
            await call.append(Turn(speaker="user", text=text))
            await call.append(
                Turn(speaker="agent", text="Got it, gin." if "gin" in text.lower() else "Noted!")
            )
            if each:
                await call.learn()
        await call.learn()
        assert (await ana.get("allergy:nuts")).text == "nuts"
        assert "gin" not in str(await ana.query("how much gin do I drink", limit=50, min_relevance=0)).lower()
        assert "nuts" in str(await ana.query("nuts"))

    async def test_off_the_record_is_not_recalled(self, memory):
        ana = memory.user("ana")
        await say(ana, "monday", "user: Off the record, I hate my landlord Henk.")
        assert "Henk" not in str(await ana.query("landlord Henk", limit=50))

    async def test_a_denial_keeps_the_sentence_that_denies(self, memory):
        ana = memory.user("ana")
        await say(ana, "monday", "user: I'm allergic to peanuts.", "user: I'm not allergic to peanuts.")
        found = [hit.turn.text for hit in await ana.query("peanuts", limit=50) if hit.turn]
        assert "I'm not allergic to peanuts." in found


def every_byte(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


class TestReceipt:
    async def test_it_says_why_what_is_close_by_stays(self, memory):
        ana = await told_of_marta(memory)
        receipt = await ana.forget(key="sister_name")
        assert receipt.kept_because == {"means something else": 1}
        receipt = await ana.forget(conversation="monday")
        assert receipt.kept_because == {"learned from it": 3}

    async def test_a_lesson_that_says_it_goes_unless_others_taught_it_too(self, memory):
        ana, films = memory.user("ana"), memory.experience("films")
        liked = await ana.remember("Prefers mystery movies to comedies")
        alone = await films.add(
            "strategy", "Offer mystery movies: they are preferred to comedies.", author=ana.scope
        )
        other = await films.add("strategy", "Ask for the genre first.", author=ana.scope)
        for user in (ana, memory.user("bob")):
            both = await films.add(
                "heuristic", "Mystery movies are preferred to comedies.", author=user.scope
            )
        receipt = await ana.forget(id=liked.id)
        left = {lesson.id for lesson in (await films.get()).lessons}
        assert alone.id not in left
        assert left == {other.id, both.id}
        assert receipt.kept_because == {"others taught it too": 1}


# what was said long ago, how it is asked to be forgotten, what must be gone and what must stay
ASKED = [
    ("My phone number is 555 0172 99.", "Can you delete my phone number?", "0172", "Porto"),
    (
        "My divorce from Henk cost me the house.",
        "Please erase what I told you about my divorce.",
        "Henk",
        "Porto",
    ),
    (
        "I owe my brother nine hundred.",
        "What I said about owing my brother, rub that out.",
        "nine hundred",
        "Porto",
    ),
    (
        "I fainted at the tram stop.",
        "That business with the tram stop. I don't want that kept.",
        "fainted",
        "Porto",
    ),
    (
        "I live at 12 Otter Street.",
        "Forget what I said about my address on Otter Street.",
        "12 Otter",
        "Porto",
    ),
]


class TestAskedForInACall:
    @pytest.mark.parametrize("url", ["memory://"])  # what is asked matters, not where it is kept
    @pytest.mark.parametrize(("said", "asked", "gone", "stays"), ASKED)
    async def test_what_is_asked_for_by_its_subject_is_recalled_no_more(
        self, memory, said, asked, gone, stays
    ):
        ana = memory.user("ana")
        await say(
            ana,
            "monday",
            "user: I come from Porto.",
            f"user: {said}",
            "agent: I see.",
            "user: Lovely weather.",
        )
        assert gone in await recalled(ana, said)
        await say(ana, "tuesday", "user: Hello again.", f"user: {asked}")
        told = await recalled(ana, said, "Where do I come from?")
        assert gone not in told
        assert stays in told

    async def test_what_was_said_last_goes_with_its_echo(self, memory):
        ana = memory.user("ana")
        await say(
            ana,
            "monday",
            "user: I come from Porto.",
            "agent: A fine town.",
            "user: I drink two bottles of gin a day.",
            "agent: Two bottles of gin is a lot.",
            "user: Could you not have that written? Rub it out.",
            "agent: Gone, the gin bottles are off your file.",
        )
        told = await recalled(ana, "gin", "How much do I drink?", "bottles")
        assert "gin" not in told.replace("listening", "").replace("again", "").split()
        assert "Two bottles" not in told
        assert "two bottles" not in told
        assert "Porto" in await recalled(ana, "Where do I come from?")

    @pytest.mark.parametrize(
        "text",
        [
            "I forget his name.",
            "Don't forget my appointment with the dentist.",
            "Forget it, never mind.",
            "I'd rather forget that year.",
            "Delete my order, please.",
            "Could you take the onions out?",
        ],
    )
    @pytest.mark.parametrize("url", ["memory://"])  # what is said matters, not where it is kept
    async def test_what_only_sounds_like_it_hides_nothing(self, memory, text):
        ana = memory.user("ana")
        await say(
            ana, "monday", "user: My dentist Quill gave me an appointment that year.", "user: I order onions."
        )
        await say(ana, "tuesday", f"user: {text}")
        told = await recalled(ana, "dentist Quill appointment year", "order onions")
        assert "Quill" in told
        assert "onions" in told

    async def test_what_is_said_again_right_after_is_known(self, memory):
        ana = memory.user("ana")
        await say(ana, "monday", "user: My neighbour Olga fears blue parrots.")
        await say(
            ana,
            "tuesday",
            "user: What I told you about Olga and the parrots, wipe that.",
            "agent: It's gone.",
            "user: My neighbour Olga fears blue parrots.",
            "agent: Noted.",
        )
        (found,) = [hit for hit in await ana.query("Who fears blue parrots?") if "parrots" in hit.text]
        assert found.turn.conversation == "tuesday"

    async def test_what_is_said_again_while_it_is_being_hidden_is_known(self, memory, monkeypatch):
        ana = memory.user("ana")
        call = await say(ana, "monday", "user: My neighbour Olga fears blue parrots.")
        between = [Turn(speaker="user", text="My neighbour Olga fears blue parrots, as it turns out.")]
        hide = forget_targets.hide

        async def interrupted(*args, **kwargs):
            while between:
                await call.append(between.pop())
            await hide(*args, **kwargs)

        monkeypatch.setattr(forget_targets, "hide", interrupted)
        await say(ana, "monday", "user: What I told you about Olga and the parrots, wipe that.")
        assert not between
        (found,) = [hit for hit in await ana.query("Who fears blue parrots?") if "parrots" in hit.text]
        assert found.text.endswith("as it turns out.")

    @pytest.mark.parametrize("url", ["sqlite", "files"], indirect=True)
    async def test_the_keyless_agent_hides_it_asks_back_and_destroys_it_once_the_caller_agrees(
        self, memory, tmp_path
    ):
        ana = memory.user("ana")
        agent = KeylessAgent(ana)
        call = await say(
            ana, "monday", "user: I come from Porto.", "user: My knee has a Quillonda screw.", "agent: Ouch!"
        )
        reply = await agent.reply(call, "Please erase what I told you about my knee.")
        assert reply.text.endswith(CONFIRM_FORGETTING)
        assert "Quillonda" not in await recalled(ana, "knee screw")
        assert b"Quillonda" in every_byte(tmp_path)
        done = await agent.reply(call, "Yes, please.")
        assert done.receipt.verified
        await memory.settle(20)
        assert b"quillonda" not in every_byte(tmp_path).lower()
        assert "Porto" in str(await ana.query("Where do I come from?"))

    async def test_the_keyless_agent_keeps_in_history_what_the_caller_would_rather_keep(self, memory):
        ana = memory.user("ana")
        call = await say(ana, "monday", "user: My knee has a titanium screw.", "agent: Ouch!")
        agent = KeylessAgent(ana)
        await agent.reply(call, "Please erase what I told you about my knee.")
        reply = await agent.reply(call, "No, keep it.")
        assert reply.text == HIDDEN
        assert "titanium" in str(await ana.export())
        assert "titanium" not in await recalled(ana, "knee screw")

    async def test_the_keyless_agent_asks_what_is_meant_where_nothing_fits(self, memory):
        ana = memory.user("ana")
        call = await say(ana, "monday", "user: My knee has a titanium screw.", "agent: Ouch!")
        reply = await KeylessAgent(ana).reply(call, "In March I told you about the bishop. Erase that.")
        assert reply.text == UNCLEAR
        assert "titanium" in await recalled(ana, "knee screw")


FACTS = ("I come from Porto.", "I have epilepsy.", "My car is red.", "I like jazz.")


@pytest.mark.parametrize("url", ["memory://"])  # what is said matters, not where it is kept
class TestDestroyedOnRequest:
    """What `asked_to_forget` names is what `forget(asked=…)` destroys, and only that."""

    async def told(self, memory, *said, before=()):
        """The last of `said`, after a call of yesterday in which `before` was said."""
        ana = memory.user("ana")
        now = datetime.now(UTC)
        for name, when, lines in (("yesterday", now - timedelta(days=1), before), ("today", now, said)):
            call = await ana.conversation(name)
            for line in lines:
                spoken = (
                    Turn(speaker=who, text=text, said_at=when)
                    for who, text in (("user", line), ("agent", "OK."))
                )
                heard, _ = await call.append(*spoken)
                await call.learn()
        return ana, heard

    @pytest.mark.parametrize(
        ("said", "request_"),
        [
            ("I have epilepsy.", "Forget that."),
            ("I have epilepsy.", "Forget what I just said."),
            ("I have epilepsy.", "Scratch that."),
            ("I have epilepsy.", "Scrap that."),
            ("I have epilepsy.", "I take that back."),
            ("I have epilepsy.", "Ignore what I just said."),
            ("I have epilepsy.", "Don't write that down."),
            ("I have epilepsy.", "Don't put that down."),
            ("I like jazz.", "Forget that."),
            ("My phone number is 555 0172 99.", "Can you delete my phone number?"),
            ("I live in Leeds.", "Please forget where I live."),
            ("I'm allergic to nuts.", "Forget my nut allergy."),
            ("I'm allergic to nuts.", "Forget my allergies."),
            ("I was born on 4 May 1950.", "Forget my date of birth."),
            ("I was born in 1950.", "Could you erase my DOB?"),
            ("My address is 14 Elm Road, Leeds.", "Please delete my home address."),
            ("My address is 14 Elm Road, Leeds.", "Forget where I live."),
            ("My kids are called Tom and Ida.", "Forget my kids' names."),
            ("My sister is called Quillonda.", "Please forget that my sister is called Quillonda."),
            ("My ex is called Torquil.", "What I said about Torquil, can you take it off?"),
            ("My ex is called Torquil.", "Take what I said about Torquil off my file."),
        ],
    )
    async def test_what_a_rule_took_back_is_destroyed_too_and_what_was_said_before_stays(
        self, memory, said, request_
    ):
        ana, asked = await self.told(memory, "My car is red.", "My brother lives in Hull.", said, request_)
        assert [turn.text for turn in await ana.asked_to_forget(asked)] == [said]
        receipt = await ana.forget(asked=asked.id)
        assert receipt.verified
        assert receipt.rewritten
        left = str(await ana.export())
        assert said not in left
        assert f" {said.removesuffix('.').split()[-1]}" not in left
        assert "My car is red." in left
        assert "My brother lives in Hull." in left

    async def test_every_value_of_a_slot_goes(self, memory):
        ana, asked = await self.told(
            memory, "I live in Leeds.", "I live in York.", "Please forget where I live."
        )
        assert [turn.text for turn in await ana.asked_to_forget(asked)] == [
            "I live in Leeds.",
            "I live in York.",
        ]
        assert (await ana.forget(asked=asked.id)).memories == 2
        assert not re.search("Leeds|York", str(await ana.export()))

    async def test_only_the_clauses_that_filled_a_slot_go(self, memory):
        told = "I live in Leeds and I'm allergic to nuts, and my son is called Tom."
        ana, asked = await self.told(memory, told, "Forget my allergies.")
        assert {fact.key for fact in await ana.facts()} == {"home", "child:tom"}
        await ana.forget(asked=asked.id)
        assert {fact.key for fact in await ana.facts()} == {"home", "child:tom"}
        assert "I live in Leeds and [forgotten], and my son is called Tom." in str(await ana.export())

    @pytest.mark.parametrize(
        ("said", "request_", "left", "keys"),
        [
            (
                "I live in Leeds and I'm getting a divorce.",
                "Forget my divorce.",
                "I live in Leeds and [forgotten].",
                {"home"},
            ),
            (
                "I'm vegan and I hate my landlord.",
                "Forget what I said about my landlord.",
                "I'm vegan and [forgotten].",
                {"diet:vegan"},
            ),
            (
                "I'm in debt and I work at Boots.",
                "Forget my debt please.",
                "[forgotten] and I work at Boots.",
                {"employer"},
            ),
            # what has no word of the request may be about it all the same
            (
                "I work at Boots and my job is awful.",
                "Forget what I said about my job.",
                "[forgotten].",
                set(),
            ),
            (
                "My boss drinks and his name is Torquil.",
                "Forget what I said about my boss.",
                "[forgotten].",
                set(),
            ),
            ("I was in prison and I live in Leeds.", "Forget that, please.", "[forgotten]", set()),
        ],
    )
    async def test_what_a_sentence_says_of_something_else_stays(self, memory, said, request_, left, keys):
        ana, asked = await self.told(memory, "My car is red.", said, request_)
        assert {fact.key for fact in await ana.facts()} == keys
        await ana.forget(asked=asked.id)
        assert left in [turn.text for turn in await (await ana.conversation("today")).turns()]
        assert {fact.key for fact in await ana.facts()} == keys

    @pytest.mark.parametrize(
        "text",
        [
            "What is the weather like?",
            "Forget the elephant business.",
            "Forget everything I've told you.",
            "Thanks.",
        ],
    )
    async def test_no_receipt_is_made_for_a_turn_that_refers_to_nothing(self, memory, text):
        ana, asked = await self.told(memory, *FACTS, text)
        with pytest.raises(InvalidInput, match="ask the user"):
            await ana.forget(asked=asked.id)
        left = str(await ana.export())
        assert all(fact in left for fact in FACTS)
        with pytest.raises(InvalidInput, match="ask the user"):
            await ana.forget(asked="never stored")

    async def test_what_is_forgotten_twice_has_a_receipt_twice(self, memory):
        ana, asked = await self.told(memory, "I have epilepsy.", "Forget that.")
        assert (await ana.forget(asked=asked.id)).rewritten
        assert (await ana.forget(asked=asked.id)).records == 0

    @pytest.mark.parametrize(
        "text",
        [
            "Please forget everything I said today.",
            "Everything I've told you today, please get rid of it.",
            "Forget this whole conversation.",
            "Forget this call, I was upset.",
            "Could you forget what I told you today, it's private?",
            "Please delete everything from this call.",
            "Delete this call.",
        ],
    )
    async def test_all_of_a_call_or_of_a_day_goes_if_nothing_else_is_named(self, memory, text):
        ana, asked = await self.told(memory, *FACTS, text, before=["I have a bad knee.", "I like jazz."])
        assert [turn.text for turn in await ana.asked_to_forget(asked)] == [*FACTS]
        assert not re.search("Porto|epilepsy|car is red", await recalled(ana, *FACTS))
        assert (await ana.forget(asked=asked.id)).verified
        left = str(await ana.export())
        assert not re.search("Porto|epilepsy|car is red", left)
        assert "I have a bad knee." in left
        assert "I like jazz." in left  # said yesterday as well

    @pytest.mark.parametrize(
        "text",
        [
            "Everything I said yesterday, please get rid of it.",
            "Please forget what I told you yesterday.",
            "Take what I said yesterday off your system, would you?",
            "Please forget our last call.",
            "Delete yesterday's call.",
        ],
    )
    async def test_an_earlier_call_or_day_goes_and_this_one_stays(self, memory, text):
        ana, asked = await self.told(memory, *FACTS, text, before=["I have a bad knee.", "My ex is Torquil."])
        assert [t.text for t in await ana.asked_to_forget(asked)] == [
            "I have a bad knee.",
            "My ex is Torquil.",
        ]
        assert (await ana.forget(asked=asked.id)).verified
        left = str(await ana.export())
        assert not re.search("knee|Torquil", left)
        assert all(fact in left for fact in FACTS)

    @pytest.mark.parametrize(
        ("text", "meant"),
        [
            ("Forget what I said today about the car.", ["My car is red."]),
            ("Forget everything I said today, you can keep the jazz.", [*FACTS[:3]]),
            ("Forget what I said yesterday.", []),
            ("Forget what I said for today.", []),
            ("Forget what I said today about the booking.", []),
            ("Forget what I said today because I got the jazz wrong.", []),
            ("Forget what I said, I'm away today.", []),
            ("I have a bad knee. Forget that.", ["I have a bad knee. Forget that."]),
            ("I snore. Forget that.", ["I snore. Forget that."]),
            ("My mistake. Forget that.", ["I like jazz."]),
            ("Tell nobody about this call, and wipe that.", ["I like jazz."]),
            ("You don't remember this call?", ["I like jazz."]),
        ],
    )
    async def test_a_subject_or_an_exception_or_an_empty_day_is_respected(self, memory, text, meant):
        ana, asked = await self.told(memory, *FACTS, text)
        assert [turn.text for turn in await ana.asked_to_forget(asked)] == meant

    async def test_a_day_begins_in_the_user_s_time_zone(self, memory):
        ana = memory.user("ana")
        await ana.set("time_zone", "Pacific/Auckland")
        call = await ana.conversation("call")
        said = [
            Turn(speaker="user", text="I have epilepsy.", said_at=datetime(2026, 6, 1, 11, tzinfo=UTC)),
            Turn(speaker="user", text="My car is red.", said_at=datetime(2026, 6, 1, 13, tzinfo=UTC)),
            Turn(
                speaker="user", text="Forget all I said today.", said_at=datetime(2026, 6, 1, 14, tzinfo=UTC)
            ),
        ]
        *_, asked = await call.append(*said)
        assert [turn.text for turn in await ana.asked_to_forget(asked)] == ["My car is red."]


async def test_a_forget_that_was_cancelled_while_it_was_listed_destroys_nothing_later(tmp_path, monkeypatch):
    url, begun, goes_on = f"sqlite:///{tmp_path}/echoic.db", threading.Event(), threading.Event()
    append = ChainedLog.append

    def slowly(self, *entries, **how):
        begun.set()
        assert goes_on.wait(60)
        append(self, *entries, **how)

    async with echoic.open(url, embedder="lexical") as memory:
        await memory.user("ana").set("seat", "an aisle seat")
        monkeypatch.setattr(ChainedLog, "append", slowly)
        forgetting = asyncio.create_task(memory.user("ana").forget())
        assert await asyncio.to_thread(begun.wait, 60)
        forgetting.cancel()
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await forgetting
    async with echoic.open(url, embedder="lexical") as another:
        assert (await another.user("ana").get("seat")).text == "an aisle seat"


async def test_a_turn_that_keeps_its_id_or_time_is_no_sign_that_words_are_left(memory):
    whole_second = datetime(2026, 3, 1, 10, tzinfo=UTC)  # written shorter than an id
    user = memory.user("ana@example.com")
    for said in ("I live in Quillonda.", "My email is ana@example.com."):
        await (await user.conversation("c1")).append(Turn(speaker="user", text=said, said_at=whole_second))
    await memory.distil()
    assert {fact.key for fact in await user.facts()} >= {"home", "email"}
    for key in ("home", "email"):
        receipt = await user.forget(key=key)
        assert (receipt.memories, receipt.verified) == (1, True), key
