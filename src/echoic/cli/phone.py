"""The commands of the telephone: run its server, and call it without one. They decide nothing of a call."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from echoic.cli.command import Group
from echoic.cli.exits import DONE, UNEXPECTED
from echoic.cli.output import Output, Result
from echoic.cli.running import embedder_at, memory_at, run_apart, words_only
from echoic.cli.secret import given_secret, kept_secret, secret_file
from echoic.cli.serve import _bound, _url  # where to listen is settled alike for both servers
from echoic.cli.settings import Settings
from echoic.errors import EmbedderError, InvalidInput

if TYPE_CHECKING:
    import uvicorn
    from pydantic_ai import Agent

    from echoic.adapters.twilio import PhoneSettings, SimulatedCall

AUTH_TOKEN = "ECHOIC_TWILIO_AUTH_TOKEN"  # noqa: S105 - the name of a variable
_EXTRA = "the telephone needs packages that are not installed ({name}): pip install 'echoic[phone]'"
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_PERSONA = "You are Robin, a friendly assistant on the telephone. You remember who calls you."
HELP = """\
/press DIGITS  press keys          /cut WORDS  say nothing more once WORDS were heard in the next reply
/silence       say nothing         /hangup     end the call; so does the end of the input
Anything else is said."""


@click.group("phone", cls=Group)
def phone_group() -> int:
    """A telephone number that remembers who calls it, over Twilio.

    ECHOIC_TWILIO_AUTH_TOKEN is the account's Auth Token; to try it without an account, any text on both ends.
    """
    return DONE


@phone_group.command("serve")
@click.option("--agent", metavar="MODULE:NAME", help="A PydanticAI agent of yours.")
@click.option("--model", metavar="NAME", help="Instead: a model for an agent of ours, as openai:gpt-5.")
@click.option("--public-url", metavar="URL", help="Where Twilio reaches this server.")
@click.option("--trust-forwarded", is_flag=True, help="A proxy's X-Forwarded-* headers say so instead.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8300, show_default=True, help="0: any free one."
)
@click.option(
    "--channel", type=click.Choice(["relay", "gather"]), default="relay", show_default=True, help="How."
)
@click.option(
    "--retention",
    type=click.Choice(["keep", "ask", "never"]),
    default="keep",
    show_default=True,
    help="What becomes of calls nobody asked to store.",
)
@click.pass_context
def serve_command(ctx: click.Context, /, **given: Any) -> int:
    """Answer calls until interrupted: point a Twilio number's voice webhook at /phone/voice.

    Numbers are kept as hashes made with ECHOIC_SECRET, or with a secret made once beside the store. The URL
    is printed to stdout when it can be used.
    """

    async def work(settings: Settings, output: Output) -> Result:
        phone_settings = _phone_settings(settings, given)
        agent = _agent(given["agent"], given["model"])
        with contextlib.closing(_bound(given["host"], given["port"])) as listening:
            return await _serve(settings, output, phone_settings, agent, listening)

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
    )


def _auth_token() -> str:
    token = os.environ.get(AUTH_TOKEN)
    if not token:
        raise InvalidInput(f"set {AUTH_TOKEN} to the account's Auth Token; without it nobody can be believed")
    return token


def _agent(path: str | None, model: str | None) -> Agent[Any, str]:
    with _installed():
        from pydantic_ai import Agent
    if (path is None) == (model is None):
        raise InvalidInput("say who speaks: --agent MODULE:NAME for one of yours, or --model PROVIDER:MODEL")
    if path is None:
        return Agent(model, name="robin", instructions=_PERSONA, output_type=str, defer_model_check=True)
    module, _, name = path.partition(":")
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` finds it
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"--agent {path!r} is not there: {error}") from error
    finally:
        sys.path.pop(0)
    if not isinstance(found, Agent):
        raise InvalidInput(f"--agent {path!r} is no PydanticAI agent but a {type(found).__name__}")
    return cast("Agent[Any, str]", found)


async def _serve(
    settings: Settings, output: Output, phone_settings: PhoneSettings, agent: Agent[Any, str], listening: Any
) -> Result:
    import uvicorn

    from echoic.adapters.twilio import Phone, phone_app, uvicorn_options

    embedder = embedder_at(settings)
    try:
        await embedder.ready()
    except EmbedderError as error:
        output.note(words_only(error))
    url = _url(*listening.getsockname()[:2])

    def announce() -> None:
        output.finish(Result(data={"url": url}, text=url, count=1))
        output.say(
            f"Twilio's webhook: {phone_settings.public_url or url.rstrip('/')}/phone/voice; Ctrl-C stops"
        )

    async with memory_at(settings, embedder) as memory:
        app = phone_app(Phone(memory, agent, phone_settings))
        await _server(uvicorn.Config(app, **uvicorn_options()), announce).serve(sockets=[listening])
    output.say("stopped; what was acknowledged is kept")
    return Result(data=None)


@phone_group.command("simulate")
@click.argument("script", type=click.Path(path_type=Path), required=False)
@click.option("--url", default="http://127.0.0.1:8300", show_default=True, metavar="URL", help="The server.")
@click.option("--public-url", metavar="URL", help="What it takes itself to be reached by, if another.")
@click.option("--number", default="+15550100001", show_default=True, metavar="E164", help="Who calls.")
@click.option("--at-speed", is_flag=True, help="Speech and pauses take their time.")
@click.option("--calls", type=click.IntRange(1, 500), default=1, show_default=True, help="At once.")
@click.pass_context
def simulate_command(
    ctx: click.Context,
    *,
    script: Path | None,
    url: str,
    public_url: str | None,
    number: str,
    at_speed: bool,
    calls: int,
) -> int:
    """Call a server as Twilio does, from this terminal: what you type is said, what it says is printed.

    SCRIPT is a file with one line a turn; without it, lines are read from the terminal or a pipe. It speaks
    the webhooks and ConversationRelay, signed with ECHOIC_TWILIO_AUTH_TOKEN. /help lists what can be done
    beside speaking. With --calls the script is played by so many callers at once, each with a number of their
    own.
    """

    async def work(_settings: Settings, output: Output) -> Result:
        with _installed():
            from echoic.adapters.twilio import SimulatedCall
        if calls > 1 and script is None:
            raise InvalidInput("--calls needs a SCRIPT: one terminal is one caller")
        read = None if script is None else _read(script)

        def caller(place: int) -> SimulatedCall:
            return SimulatedCall(
                url,
                _auth_token(),
                number=number if place == 0 else f"{number[:-4]}{(int(number[-4:]) + place) % 10_000:04}",
                public_url=public_url,
                characters_per_s=15.0 if at_speed else None,
                heard=output.answer if calls == 1 else None,
            )

        ran = await asyncio.gather(*(_talk(caller(n), read, output) for n in range(calls)))
        return _result(ran)

    return run_apart(ctx, work)


def _server(config: uvicorn.Config, announce: Callable[[], None]) -> uvicorn.Server:
    import uvicorn

    class Server(uvicorn.Server):
        """Says when it can be used, and takes being told to stop for an end like any other."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce()

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # uvicorn's own raises the signal once more when all is closed
            before = {which: signal.signal(which, self.handle_exit) for which in _STOPPING}
            try:
                yield
            finally:
                for which, handler in before.items():
                    signal.signal(which, handler)

    return Server(config)


async def _talk(caller: SimulatedCall, script: list[str] | None, output: Output) -> dict[str, Any]:
    from aiohttp import ClientError

    from echoic.adapters.twilio import CallFailed

    failed: str | None = None
    cut: str | None = None
    try:
        async with caller as call:
            await call.dial()
            async for line in _lines(script, output):
                if line == "/hangup" or call.over:
                    break
                if line == "/help":
                    output.aside(HELP)
                elif line.startswith("/cut "):
                    cut = line.removeprefix("/cut ")
                elif line.startswith("/press "):
                    await call.press(line.removeprefix("/press "))
                elif line == "/silence":
                    await call.silence()
                else:
                    await call.say(line, cut_in_after=cut)
                    cut = None
            await call.hang_up()
    except (CallFailed, ClientError, TimeoutError) as error:
        failed = str(error) or type(error).__name__
    slowest = max((hook.took_s for hook in caller.webhooks), default=0.0)
    return {
        "call": caller.sid,
        "heard": caller.said,
        "webhooks": len(caller.webhooks),
        "slowest_webhook_s": round(slowest, 3),
        "failed": failed,
    }


def _result(ran: list[dict[str, Any]]) -> Result:
    failed = [one["failed"] for one in ran if one["failed"]]
    slowest = max(one["slowest_webhook_s"] for one in ran)
    text = f"{len(ran)} calls, {len(failed)} failed, slowest webhook {slowest} s" if len(ran) > 1 else None
    if failed:
        text = "\n".join(filter(None, [text, f"the call failed: {failed[0]}"]))
    return Result(data=ran, text=text, count=len(ran), code=UNEXPECTED if failed else DONE)


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
