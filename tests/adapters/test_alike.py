"""Keys that sound alike are asked back in the call, and a stored call is recalled by what it is called."""

from __future__ import annotations

from echoic import Turn


async def stored(memory, key, text):
    opened = await memory.conversation(agent="robin")
    await opened.append(Turn(speaker="user", text=text))
    await opened.store(key, f"About {text}.")


def recalling(said, given):
    if given:
        return given[0].get("say") or given[0]["result"]["turns"][0]["text"]
    return (
        [("recall_conversation", {"key": said.partition("my ")[2].rstrip(".")})] if "my " in said else "Yes."
    )


async def test_two_keys_that_sound_alike_are_asked_back_and_the_answer_is_understood(line):
    phone = await line(recalling)
    await stored(phone.memory(), "night flight", "a flight to Oslo")
    await stored(phone.memory(), "knight flight", "a play about a knight")
    call = await phone.call()
    asked = await call.say("Bring up my night flight.")
    assert "Do you mean" in asked
    assert "“night flight”" in asked
    assert "“knight flight”" in asked
    assert "Oslo" not in asked


async def test_a_code_that_is_one_digit_off_opens_nothing_and_is_asked_back(line):
    phone = await line(recalling)
    await stored(phone.memory(), "order forty seven eleven", "a boiler that leaks")
    call = await phone.call()
    assert "Do you mean “order forty seven eleven”?" in await call.say("Bring up my order 4712.")
    assert "said_by" not in "".join(phone.script.sent)  # none of its turns
    assert "leaks" in await call.say("Then bring up my order 4711.")


async def test_who_stores_under_a_key_that_sounds_like_another_is_told(line):
    def answer(said, given):
        if "store" in said and not given:
            return [("store_conversation", {"key": "knight flight"})]
        return f"{given[0].get('sounds_like')}" if given else "Yes."

    phone = await line(answer)
    await stored(phone.memory(), "night flight", "a flight to Oslo")
    call = await phone.call()
    assert "night flight" in await call.say("Please store this.")


async def test_what_is_like_no_key_is_not_known_and_nothing_is_made_up(line):
    phone = await line(recalling)
    await stored(phone.memory(), "night flight", "a flight to Oslo")
    call = await phone.call()
    assert "nothing stored" in await call.say("Bring up my tax return.")


async def test_another_callers_key_is_not_offered_however_alike(line):
    phone = await line(recalling)
    await stored(phone.memory("+15550100002"), "night flight", "a flight to Oslo")
    call = await phone.call()
    assert "nothing stored" in await call.say("Bring up my night flight.")
    assert "Oslo" not in "".join(phone.script.sent)
