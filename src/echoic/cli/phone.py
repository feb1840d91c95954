"""The commands of the telephone: run its server, and call it without one. They decide nothing of a call."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import re
import sys
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from echoic.cli.binding import announced, bound, url_of
from echoic.cli.command import Group
from echoic.cli.exits import DONE, UNEXPECTED
from echoic.cli.output import Output, Result
from echoic.cli.phone_line import line_command
from echoic.cli.running import embedder_at, memory_at, run_apart, words_only
from echoic.cli.secret import given_secret, kept_secret, secret_file
from echoic.cli.settings import Settings, phone_trust_option, proxies_option, quota_of, quota_options
from echoic.errors import EmbedderError, InvalidInput

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.realtime import RealtimeModel

    from echoic.adapters.audio import Samples
    from echoic.adapters.limits import Limits
    from echoic.adapters.twilio import Phone, PhoneSettings, SimulatedCall
    from echoic.memory.quota import Quota
    from echoic.memory.service import MemoryService

AUTH_TOKEN = "ECHOIC_TWILIO_AUTH_TOKEN"  # noqa: S105 - the name of a variable
_EXTRA = "the telephone needs packages that are not installed ({name}): pip install 'echoic[phone]'"
_PERSONA = "You are Robin, a friendly assistant on the telephone. You remember who calls you."
HELP = """\
/press DIGITS  press keys          /cut WORDS  say nothing more once WORDS were heard in the next reply
/silence       say nothing         /hangup     end the call; so does the end of the input
/play FILE     say a recording (WAV, 16 bit, mono), where the server streams audio
Anything else is said."""
_MAX_WAV_S = 120
_COUNTABLE = re.compile(r"\+?[0-9]{5,15}")


@click.group("phone", cls=Group)
def phone_group() -> int:
    """A telephone number that remembers who calls it, over Twilio.

    ECHOIC_TWILIO_AUTH_TOKEN is the account's Auth Token; to try it without an account, any text on both ends.
    """
    return DONE


phone_group.add_command(line_command)


@phone_group.command("serve")
@click.option("--agent", metavar="MODULE:NAME", help="A PydanticAI agent of yours.")
@click.option("--model", metavar="NAME", help="Instead: a model for an agent of ours, as openai:gpt-5.")
@click.option("--public-url", metavar="URL", help="Where Twilio reaches this server.")
@click.option("--trust-forwarded", is_flag=True, help="A proxy's X-Forwarded-* headers say so instead.")
@proxies_option
@quota_options
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8300, show_default=True, help="0: any free one."
)
@click.option(
    "--channel",
    type=click.Choice(["relay", "gather", "media"]),
    default="relay",
    show_default=True,
    help="ConversationRelay, webhooks alone, or audio to the model of --voice.",
)
@click.option("--voice", metavar="NAME", help="A realtime model for --channel media, as openai:gpt-realtime.")
@click.option("--language", default="en-US", show_default=True, metavar="TAG", help="What is spoken first.")
@click.option("--also", "languages", multiple=True, metavar="TAG", help="Another language it speaks.")
@click.option("--detect-language", is_flag=True, help="Have Twilio find out which is spoken (relay).")
@click.option(
    "--retention",
    type=click.Choice(["keep", "ask", "never"]),
    default="keep",
    show_default=True,
    help="What becomes of calls nobody asked to store.",
)
@phone_trust_option
@click.pass_context
def serve_command(ctx: click.Context, /, **given: Any) -> int:
    """Answer calls until interrupted: point a Twilio number's voice webhook at /phone/voice.

    Numbers are kept as hashes made with ECHOIC_SECRET, or with a secret made once beside the store. The URL
    is printed to stdout when it can be used.
    """

    async def work(settings: Settings, output: Output) -> Result:
        from echoic.adapters.limits import Limits

        phone_settings = _phone_settings(settings, given)
        make = _phone(phone_settings, given)
        with contextlib.closing(bound(given["host"], given["port"])) as listening:
            most = quota_of(**{name: given[name] for name in given if name.startswith("max_")})
            limits = Limits(trusted_proxies=given["trusted_proxies"])
            return await _serve(settings, output, make, listening, limits=limits, quota=most)

    return run_apart(ctx, work)


def _phone_settings(settings: Settings, given: dict[str, Any]) -> PhoneSettings:
    with _installed():
        from echoic.adapters.twilio import PhoneSettings
    path = secret_file(settings)
    secret = given_secret() or (kept_secret(path) if path is not None else None)
    if secret is None:
        raise InvalidInput("set ECHOIC_SECRET: with another secret at each start no number is known again")
    return PhoneSettings(
        auth_token=_auth_token(),
        salt=secret,
        public_url=given["public_url"],
        trust_forwarded=given["trust_forwarded"],
        deployment=settings.deployment,
        channel=given["channel"],
        retention=given["retention"],
        trust=given["phone_trust"],
        language=given["language"],
        languages=given["languages"],
        detect_language=given["detect_language"],
    )


def _auth_token() -> str:
    token = os.environ.get(AUTH_TOKEN)
    if not token:
        raise InvalidInput(f"set {AUTH_TOKEN} to the account's Auth Token; without it nobody can be believed")
    return token


def _agent(path: str | None, model: str | None) -> Agent[Any, str]:
    with _installed():
        from pydantic_ai import Agent
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
    if (path is None) == (model is None):
        raise InvalidInput("say who speaks: --agent MODULE:NAME for one of yours, or --model PROVIDER:MODEL")
    if model is not None:
        try:
            speaks = infer_model(model)
        except (UserError, ImportError, ValueError) as error:  # else the first caller would find out
            raise InvalidInput(f"--model {model!r:.80} cannot be used: {error}") from error
        return Agent(speaks, name="robin", instructions=_PERSONA, output_type=str)
    assert path is not None
    module, _, name = path.partition(":")
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` finds it
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"--agent {path!r} is not there: {error}") from error
    except Exception as error:  # the program of whoever started us may fail in any way, and says which
        raise InvalidInput(f"--agent {path!r} cannot be used: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    if not isinstance(found, Agent):
        raise InvalidInput(f"--agent {path!r} is no PydanticAI agent but a {type(found).__name__}")
    return cast("Agent[Any, str]", found)


def _voice(name: str | None, channel: str) -> RealtimeModel | None:
    if (name is None) != (channel != "media"):
        raise InvalidInput("--channel media needs a --voice, such as openai:gpt-realtime, and no other does")
    if name is None:
        return None
    with _installed():
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.realtime import infer_realtime_model
    try:
        return infer_realtime_model(name)
    except (UserError, ImportError, ValueError) as error:
        raise InvalidInput(f"--voice {name!r:.80} cannot be used: {error}") from error


def _phone(phone_settings: PhoneSettings, given: dict[str, Any]) -> Callable[[MemoryService], Phone]:
    agent = _agent(given["agent"], given["model"])
    voice = _voice(given["voice"], given["channel"])

    def make(memory: MemoryService) -> Phone:
        from echoic.adapters.twilio import Phone

        return Phone(memory, agent, phone_settings, realtime=voice)

    return make


async def _serve(
    settings: Settings,
    output: Output,
    make: Callable[[MemoryService], Phone],
    listening: Any,
    *,
    limits: Limits,
    quota: Quota,
) -> Result:
    import uvicorn

    from echoic.adapters.twilio import phone_app, uvicorn_options

    embedder = embedder_at(settings)
    try:
        await embedder.ready()
    except EmbedderError as error:
        output.note(words_only(error))
    url = url_of(*listening.getsockname()[:2])

    async with memory_at(settings, embedder, quota=quota) as memory:
        phone = make(memory)
        public = phone.settings.public_url or url.rstrip("/")

        def announce() -> None:
            output.finish(Result(data={"url": url}, text=url, count=1))
            output.say(f"Twilio's webhook: {public}/phone/voice; Ctrl-C stops")

        config = uvicorn.Config(phone_app(phone), **uvicorn_options(limits))
        await announced(uvicorn.Server, config, announce).serve(sockets=[listening])
    output.say("stopped; what was acknowledged is kept")
    return Result(data=None)


@phone_group.command("simulate")
@click.argument("script", type=click.Path(path_type=Path), required=False)
@click.option("--url", default="http://127.0.0.1:8300", show_default=True, metavar="URL", help="The server.")
@click.option("--public-url", metavar="URL", help="What it takes itself to be reached by, if another.")
@click.option("--number", default="+15550100001", show_default=True, metavar="E164", help="Who calls.")
@click.option(
    "--attestation",
    default="TN-Validation-Passed-A",
    show_default=True,
    metavar="STIRVERSTAT",
    help="What the carrier says of the number; '' for nothing, as outside North America.",
)
@click.option("--at-speed", is_flag=True, help="Speech and pauses take their time.")
@click.option("--calls", type=click.IntRange(1, 500), default=1, show_default=True, help="At once.")
@click.option("--speaks", default="en-US", show_default=True, metavar="TAG", help="The caller's language.")
@click.option("--interim", is_flag=True, help="Send what is said word by word as well (relay).")
@click.option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Keep audio as WAV (media).")
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
    """Call a server as Twilio does, from this terminal: what you type is said, what it says is printed.

    SCRIPT is a file with one line a turn; without it, lines are read from the terminal or a pipe. It speaks
    the webhooks, ConversationRelay and Media Streams, signed with ECHOIC_TWILIO_AUTH_TOKEN. /help lists what
    can be done beside speaking. With --calls the script is played by so many callers at once, each with a
    number of their own. At the end stands what the server says the call took.
    """

    async def work(_settings: Settings, output: Output) -> Result:
        with _installed():
            from echoic.adapters.twilio import SimulatedCall
        if calls > 1 and script is None:
            raise InvalidInput("--calls needs a SCRIPT: one terminal is one caller")
        if calls > 1 and not _COUNTABLE.fullmatch(number):
            raise InvalidInput(f"--calls counts on from --number, which {number!r:.80} does not allow")
        read = None if script is None else _read(script)

        def caller(place: int) -> SimulatedCall:
            return SimulatedCall(
                url,
                _auth_token(),
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

    from echoic.adapters.twilio import CallFailed

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
    """Do what the lines say, until one of them hangs up or the server does."""
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
    """Samples of a recording, and how many there are a second."""
    from echoic.adapters.audio import samples_of

    try:
        with wave.open(str(path), "rb") as recording:
            rate, frames = recording.getframerate(), recording.getnframes()
            if (recording.getsampwidth(), recording.getnchannels()) != (2, 1) or frames > rate * _MAX_WAV_S:
                raise InvalidInput(f"{path} is no WAV of 16 bit, mono, {_MAX_WAV_S} s at most")
            return samples_of(recording.readframes(frames)), rate
    except (OSError, EOFError, wave.Error) as error:
        raise InvalidInput(f"{path} cannot be played: {error}") from error


def _keep_sound(call: SimulatedCall, path: Path) -> None:
    """Write what `call` heard of a stream to `path`."""
    from echoic.adapters.audio import TELEPHONE_HZ, pcm_of

    if call.stream is None:
        raise InvalidInput("--record keeps audio, and the server sent none: its channel is not media")
    try:
        # only its owner may read what was said
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "wb") as stream, wave.open(stream, "wb") as recording:
            recording.setnchannels(1)
            recording.setsampwidth(2)
            recording.setframerate(TELEPHONE_HZ)
            recording.writeframes(pcm_of(call.stream.heard))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error}") from error


def _result(ran: list[dict[str, Any]]) -> Result:
    failed = [one["failed"] for one in ran if one["failed"]]
    slowest = max(one["slowest_webhook_s"] for one in ran)
    lines = [f"{len(ran)} calls, {len(failed)} failed, slowest webhook {slowest} s"] if len(ran) > 1 else []
    lines += [_taken([one["took"] for one in ran if one["took"]])]
    lines += [f"the call failed: {failed[0]}"] if failed else []
    text = "\n".join(filter(None, lines)) or None
    return Result(data=ran, text=text, count=len(ran), code=UNEXPECTED if failed else DONE)


def _taken(took: list[dict[str, Any]]) -> str:
    """What calls took, in a line; empty where the server does not say."""
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


@contextlib.contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise InvalidInput(_EXTRA.format(name=error.name)) from error


__all__ = ["phone_group"]
