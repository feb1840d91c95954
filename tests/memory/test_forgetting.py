"""What was forgotten or taken back is recalled from nowhere; what was said beside it still is."""

from __future__ import annotations

import pytest

from echoic.types import Turn

SISTER = "My sister is called Marta"


async def say(user, name, *said):
    """Turns of one conversation, one after another, learned from at once."""
    call = await user.conversation(name)
    for text in said:
        speaker, _, words = text.partition(": ")
        await call.append(Turn(speaker=speaker, text=words))
        await call.listen()
    return call


async def recalled(user, *questions):
    """Everything that any way of recalling tells, as one text."""
    told = []
    for question in (*questions, "sister", "What is my sister called?", SISTER, "Who is Marta?"):
        told += [str(hit) for hit in await user.query(question, limit=50)]
        told.append((await user.brief(question)).text)
        async with user.listen(limit=20) as listening:
            listening.hear(question)
            told += [str(hit) for hit in (await listening.final(question)).hits]
        told.append((await user.block(moment=question)).text)
    return "\n".join(told)


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
