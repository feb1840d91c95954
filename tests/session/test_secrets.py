"""A live call: the model hears what is said; the turns, the checkpoint and the record of the call do not keep it."""

from __future__ import annotations

from echoic.memory.records import CHECKPOINT, scan_all
from echoic.session import SessionSettings, VoiceAgent, VoiceSession
from echoic_loopback.realtime import Calls, Says, Script, ToolCall, UserSays
from leaks import leaked
from session.conftest import BY_ONE_PROVIDER

SECRETS = ("4111", "four one one one", "8361", "eight three six one", "bluebird")


@BY_ONE_PROVIDER
async def test_nothing_that_lasts_holds_a_secret_of_the_call(
    memory, provider, serve, phone, eventually, tmp_path
):
    paid = []

    async def pay(card: str, pin: str) -> str:
        """Pay."""
        paid.append((card, pin))
        return f"paid with card {card} and pin {pin}"

    script = Script(
        Says("what is your card number"),
        UserSays("it is four one one one one one one one one one one one one one one one", after_ms=1500),
        Says("and the pin"),
        UserSays("eight three six one", after_ms=1500),
        Calls(ToolCall("pay", {"card": "4111111111111111", "pin": "8361"})),
        Says("paid, your pin is eight three six one"),
        UserSays("and remember that my password is bluebird seven", after_ms=1500),
        Says("noted"),
        open_ended=True,
    )
    agent = VoiceAgent(name="robin", instructions="Be Robin.", tools=[pay], greeting="Ask.")

    def kept():
        return b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    async with (
        serve(provider, script) as (_, model),
        VoiceSession(
            memory,
            user="ana",
            agents=[agent],
            model=model,
            session_id="call",
            settings=SessionSettings(checkpoint_every_s=0.1),
        ) as session,
        phone(session),
    ):
        await eventually(lambda: session.recorder.kept >= 7)

        async def is_saved():
            records = await scan_all(memory.user("ana").backing_store, memory.user("ana").scope, CHECKPOINT)
            return bool(records) and "noted" in records[0].data["messages"]

        while not await is_saved():
            await eventually(lambda: True)
        assert paid == [("4111111111111111", "8361")]
        assert leaked(kept(), SECRETS) == []
    await memory.settle()
    assert b"[PIN]" in kept()
    assert leaked(kept(), SECRETS) == []
