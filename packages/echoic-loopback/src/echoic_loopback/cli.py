"""`echoic phone simulate`: call a phone server from a terminal, in place of Twilio."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import wave
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from echoic.cli.asyncio_runner import run_apart
from echoic.cli.command import command
from echoic.cli.output import DONE, UNEXPECTED, CommandResult, Output
from echoic.cli.phone import auth_token
from echoic.cli.settings import Settings
from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.adapters.twilio.media import Samples
    from echoic_loopback.twilio import SimulatedCall

HELP = """\
/press DIGITS  press keys          /cut WORDS  interrupt the next reply once WORDS were heard
/silence       say nothing         /hangup     end the call, as does the end of the input
/play FILE     say a recording (WAV, 16 bit, mono), where the server streams audio
Anything else is said."""
_MAX_WAV_S = 120
_COUNTABLE = re.compile(r"\+?[0-9]{5,15}")


@command("simulate")
@click.argument("script", type=click.Path(path_type=Path), required=False)
@click.option("--url", default="http://127.0.0.1:8300", show_default=True, metavar="URL", help="The server.")
@click.option("--public-url", metavar="URL", help="The server's own public URL, if it differs.")
@click.option(
    "--number", default="+15550100001", show_default=True, metavar="E164", help="The caller's number."
)
@click.option(
    "--attestation",
    default="TN-Validation-Passed-A",
    show_default=True,
    metavar="STIRVERSTAT",
    help="The carrier's attestation of the number; '' for none, as outside North America.",
)
@click.option("--at-speed", is_flag=True, help="Speak and pause in real time.")
@click.option(
    "--calls", type=click.IntRange(1, 500), default=1, show_default=True, help="The number of calls at once."
)
@click.option("--speaks", default="en-US", show_default=True, metavar="TAG", help="The caller's language.")
@click.option("--interim", is_flag=True, help="Also send partial transcripts word by word (relay).")
@click.option(
    "--record", type=click.Path(path_type=Path), metavar="FILE", help="Record the audio as WAV (media)."
)
@click.pass_context
def simulate_command(
    ctx: click.Context,
    *,
    script: Path | None,
    url: str,
    public_url: str | None,
    number: str,
    attestation: str,
    at_speed: bool,
    calls: int,
    speaks: str,
    interim: bool,
    record: Path | None,
) -> int:
    """Call a phone server from this terminal, in place of Twilio.

    What you type is said; what the agent says is printed. SCRIPT is a file with one turn a line; without it,
    lines are read from the terminal or a pipe. The simulator speaks webhooks, ConversationRelay and Media
    Streams, signed with ECHOIC_TWILIO_AUTH_TOKEN. /help lists what you can do beside speaking. With --calls,
    that many callers play the script at once, each with a number of their own. At the end, the server's
    figures for the call are printed.
    """

    async def work(_settings: Settings, output: Output) -> CommandResult:
        try:
            from echoic_loopback.twilio import SimulatedCall
        except ImportError as error:
            raise InvalidInput(
                f"the simulator needs packages that are not installed ({error.name}): "
                "pip install 'echoic[phone]'"
            ) from error
        if calls > 1 and script is None:
            raise InvalidInput("--calls needs a SCRIPT: one terminal is one caller")
        if calls > 1 and not _COUNTABLE.fullmatch(number):
            raise InvalidInput(
                f"--calls derives numbers from --number, and {number!r:.80} does not end in digits"
            )
        read = None if script is None else _read(script)

        def caller(place: int) -> SimulatedCall:
            return SimulatedCall(
                url,
                auth_token(),
                number=number if place == 0 else f"{number[:-4]}{(int(number[-4:]) + place) % 10_000:04}",
                public_url=public_url,
                attestation=attestation,
                speaks=speaks,
                interim=interim,
                reports=True,
                characters_per_s=15.0 if at_speed else None,
                heard=output.answer if calls == 1 else None,
            )

        callers = [caller(n) for n in range(calls)]
        ran = await asyncio.gather(*(_talk(each, read, output) for each in callers))
        if record is not None:
            _keep_sound(callers[0], record)
        return _result(ran)

    return run_apart(ctx, work)


async def _talk(caller: SimulatedCall, script: list[str] | None, output: Output) -> dict[str, Any]:
    from aiohttp import ClientError

    from echoic_loopback.twilio import CallFailed

    failed: str | None = None
    try:
        async with caller as call:
            await call.dial()
            await _follow(call, script, output)
            await call.hang_up()
    except (CallFailed, ClientError, TimeoutError) as error:
        failed = str(error) or type(error).__name__
    slowest = max((hook.took_s for hook in caller.webhooks), default=0.0)
    return {
        "call": caller.sid,
        "heard": caller.said,
        "webhooks": len(caller.webhooks),
        "slowest_webhook_s": round(slowest, 3),
        "took": caller.figures,
        "failed": failed,
    }


async def _follow(call: SimulatedCall, script: list[str] | None, output: Output) -> None:
    """Play the lines until one of them, or the server, hangs up."""
    cut: str | None = None
    async for line in _lines(script, output):
        word, _, rest = line.partition(" ")
        if line == "/hangup" or call.over:
            return
        if line == "/help":
            output.aside(HELP)
        elif word == "/cut":
            cut = rest
        elif word == "/press":
            await call.press(rest)
        elif word == "/play":
            heard = await call.say_aloud(*_sound_in(Path(rest)))
            output.answer(f"[{len(heard) / 8000:.1f} s of audio]")
        elif line == "/silence":
            await call.silence()
        else:
            await call.say(line, cut_in_after=cut)
            cut = None


def _sound_in(path: Path) -> tuple[Samples, int]:
    """The samples of a recording, and its sample rate."""
    from echoic.adapters.twilio.media import samples_of

    try:
        with wave.open(str(path), "rb") as recording:
            rate, frames = recording.getframerate(), recording.getnframes()
            if (recording.getsampwidth(), recording.getnchannels()) != (2, 1) or frames > rate * _MAX_WAV_S:
                raise InvalidInput(f"{path} is not a 16-bit mono WAV of at most {_MAX_WAV_S} s")
            return samples_of(recording.readframes(frames)), rate
    except (OSError, EOFError, wave.Error) as error:
        raise InvalidInput(f"{path} cannot be played: {error}") from error


def _keep_sound(call: SimulatedCall, path: Path) -> None:
    """Write the audio that `call` heard to `path`."""
    from echoic.adapters.twilio.media import TELEPHONE_HZ, pcm_of

    if call.stream is None:
        raise InvalidInput("--record needs audio, and the server sent none: its channel is not media")
    try:
        # a recording is for its owner only
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "wb") as stream, wave.open(stream, "wb") as recording:
            recording.setnchannels(1)
            recording.setsampwidth(2)
            recording.setframerate(TELEPHONE_HZ)
            recording.writeframes(pcm_of(call.stream.heard))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error}") from error


def _result(ran: list[dict[str, Any]]) -> CommandResult:
    failed = [one["failed"] for one in ran if one["failed"]]
    slowest = max(one["slowest_webhook_s"] for one in ran)
    lines = [f"{len(ran)} calls, {len(failed)} failed, slowest webhook {slowest} s"] if len(ran) > 1 else []
    lines += [_taken([one["took"] for one in ran if one["took"]])]
    lines += [f"the call failed: {failed[0]}"] if failed else []
    text = "\n".join(filter(None, lines)) or None
    return CommandResult(data=ran, text=text, count=len(ran), code=UNEXPECTED if failed else DONE)


def _taken(took: list[dict[str, Any]]) -> str:
    """The server's figures for the calls, in a line; empty if there are none."""
    turns, sent, cached, recalls, ready = (
        sum(one[name] for one in took)
        for name in ("turns", "input_tokens", "cached_tokens", "recalls", "recalls_ready")
    )
    if not turns:
        return ""
    line = f"{turns} turns, {sent} tokens sent, {cached / max(sent, 1):.0%} of them cached"
    return f"{line}, {ready} of {recalls} recalls ready at the end of the turn" if recalls else line


async def _lines(script: list[str] | None, output: Output) -> Any:
    if script is not None:
        for line in script:
            output.aside(f"you: {line}")
            yield line
        return
    while True:
        output.ask("you: ")
        line = await asyncio.to_thread(sys.stdin.readline)
        if not line:
            return
        if line.strip():
            yield line.strip()


def _read(script: Path) -> list[str]:
    try:
        text = script.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the script {script} cannot be read: {error}") from error
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


__all__ = ["simulate_command"]
