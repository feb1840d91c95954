"""`echoic phone`: answer calls over Twilio, and repair a line's links."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from echoic.checks import checked_secrets
from echoic.cli.asyncio_runner import Desk, apart, log_warnings, memory_at, ready_embedder, run
from echoic.cli.command import CommandGroup, command
from echoic.cli.output import DONE, CommandResult, Output
from echoic.cli.server_process import (
    SECRET,
    announced,
    bound,
    given_secret,
    kept_secret,
    listen_options,
    phone_trust_option,
    proxies_option,
    quota_of,
    quota_options,
    secret_file,
    url_of,
)
from echoic.cli.settings import Settings
from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.realtime import RealtimeModel

    from echoic.adapters.connections import Limits
    from echoic.adapters.twilio import Phone, PhoneSettings
    from echoic.adapters.twilio.callers import Callers
    from echoic.memory.guarded_store import Quota
    from echoic.memory.phone_registry import PhoneLine
    from echoic.memory.service import MemoryService


@command("line")
@click.argument("number", metavar="E164")
@click.option("--unlink", is_flag=True, help="Unlink the line from its user.")
@click.option(
    "--give-back",
    is_flag=True,
    help="Unlink the line, and move the calls made while it was linked back to its earlier memory.",
)
@click.option("--link", "user", metavar="USER", help="Link the line to a user whose proof you have seen.")
@click.pass_context
def line_command(ctx: click.Context, number: str, unlink: bool, give_back: bool, user: str | None) -> int:
    """Print the links of a telephone line, or repair them.

    Give the number as the phone server receives it, and the same ECHOIC_SECRET. No memory is lost: the next
    caller on the line is told, and both memories stay as they are unless you pass --give-back.
    """
    if sum((unlink, give_back, user is not None)) > 1:
        raise click.UsageError("give only one of --unlink, --give-back and --link", ctx)

    async def work(desk: Desk) -> CommandResult:
        callers = _callers(desk)
        line = callers.line_of(number)
        if line is None:
            raise InvalidInput("a number is + and 6 to 15 digits, such as +15550100001")
        moved = 0
        if user is not None:
            before = await callers.lines.read(line)
            owners = {line, before.linked or line, *before.people.values()}
            await callers.lines.link(line, user, proved=owners)
        elif unlink or give_back:
            await callers.lines.unlink(line)
            moved = await callers.give_back(line) if give_back else 0
        known = await callers.lines.read(line)
        found = {"line": line, "linked": known.linked, "people": len(known.people), "given_back": moved}
        return CommandResult(data=found, text=_line_text(known, moved), count=1, code=DONE)

    return run(ctx, work)


def _callers(desk: Desk) -> Callers:
    from echoic.adapters.twilio.callers import Callers
    from echoic.adapters.twilio.settings import PhoneSettings

    secret = _secret(desk.settings, "set ECHOIC_SECRET to the phone server's: numbers are hashed with it")
    # no call is answered, so no account is needed
    settings = PhoneSettings(auth_token="none", salt=secret, deployment=desk.settings.deployment)  # noqa: S106
    return Callers(desk.memory, settings)


def _secret(settings: Settings, missing: str) -> str:
    """The secret that numbers are hashed with; raises `InvalidInput` with the message `missing` if there is
    none.
    """
    path = secret_file(settings)
    secret = given_secret() or (kept_secret(path) if path is not None else None)
    if secret is None:
        raise InvalidInput(missing)
    return secret


def _line_text(line: PhoneLine, moved: int) -> str:
    linked = f"linked to {line.linked}" if line.linked is not None else "not linked"
    people = f", {len(line.people)} more people use it" if line.people else ""
    return f"{linked}{people}" + (f"; {moved} calls given back" if moved else "")


AUTH_TOKEN = "ECHOIC_TWILIO_AUTH_TOKEN"  # noqa: S105 - the name of a variable
_EXTRA = "the telephone needs packages that are not installed ({name}): pip install 'echoic[phone]'"
_PERSONA = "You are Robin, a friendly assistant on the telephone. You remember who calls you."


@click.group("phone", cls=CommandGroup)
def phone_group() -> int:
    """Answer phone calls over Twilio, with memory of each caller.

    ECHOIC_TWILIO_AUTH_TOKEN is the account's Auth Token. To try it without an account, set any text for both
    the server and `echoic phone simulate`.
    """
    return DONE


@phone_group.command("serve")
@click.option("--agent", metavar="MODULE:NAME", help="Your PydanticAI agent.")
@click.option(
    "--model",
    metavar="NAME",
    help="Instead of --agent, a model for the built-in agent, such as openai:gpt-5.",
)
@click.option("--public-url", metavar="URL", help="The URL under which Twilio reaches this server.")
@click.option(
    "--trust-forwarded",
    is_flag=True,
    help="Instead, take the public URL from a proxy's X-Forwarded-* headers.",
)
@proxies_option
@quota_options
@listen_options
@click.option(
    "--channel",
    type=click.Choice(["relay", "gather", "media"]),
    default="relay",
    show_default=True,
    help="ConversationRelay, webhooks only, or audio streamed to the model of --voice.",
)
@click.option(
    "--voice", metavar="NAME", help="A realtime model for --channel media, such as openai:gpt-realtime."
)
@click.option(
    "--language", default="en-US", show_default=True, metavar="TAG", help="The language a call starts in."
)
@click.option("--also", "languages", multiple=True, metavar="TAG", help="Another supported language.")
@click.option("--detect-language", is_flag=True, help="Let Twilio detect the language (relay).")
@click.option(
    "--retention",
    type=click.Choice(["keep", "ask", "never"]),
    default="keep",
    show_default=True,
    help="What happens to calls that nobody asked to store.",
)
@phone_trust_option
@apart
async def serve_command(settings: Settings, output: Output, /, **given: Any) -> CommandResult:
    """Answer calls until interrupted. Point a Twilio number's voice webhook at /phone/voice.

    Numbers are stored as hashes keyed with ECHOIC_SECRET, or with a secret that is created beside the store.
    The URL is printed to stdout once the server is ready.
    """
    from echoic.adapters.connections import Limits

    with installed():
        from echoic.adapters.twilio import Phone
    phone_settings = _phone_settings(settings, given)
    agent = _agent(given["agent"], given["model"])
    voice = _voice(given["voice"], given["channel"])
    make = partial(Phone, agent=agent, settings=phone_settings, realtime=voice)
    with contextlib.closing(bound(given["host"], given["port"])) as listening:
        named = {SECRET: phone_settings.salt, AUTH_TOKEN: phone_settings.auth_token}
        for warning in checked_secrets(named, listening.getsockname()[0]):
            output.note(warning)
        limits = Limits(trusted_proxies=given["trusted_proxies"])
        return await _serve(settings, output, make, listening, limits=limits, quota=quota_of(given))


_AS_GIVEN = "public_url trust_forwarded channel retention language languages detect_language".split()
"""The options that are settings of the phone under the same name."""


def _phone_settings(settings: Settings, given: dict[str, Any]) -> PhoneSettings:
    with installed():
        from echoic.adapters.twilio import PhoneSettings
    secret = _secret(
        settings, "set ECHOIC_SECRET: without a fixed secret no caller is recognised after a restart"
    )
    return PhoneSettings(
        auth_token=auth_token(),
        salt=secret,
        deployment=settings.deployment,
        trust=given["phone_trust"],
        **{name: given[name] for name in _AS_GIVEN},
    )


def _agent(path: str | None, model: str | None) -> Agent[Any, str]:
    with installed():
        from pydantic_ai import Agent
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model
    if (path is None) == (model is None):
        raise InvalidInput(
            "choose who speaks: --agent MODULE:NAME, or --model PROVIDER:MODEL for the built-in agent"
        )
    if model is not None:
        try:
            speaks = infer_model(model)
        except (UserError, ImportError, ValueError) as error:  # otherwise the first call would fail
            raise InvalidInput(f"--model {model!r:.80} cannot be used: {error}") from error
        return Agent(speaks, name="robin", instructions=_PERSONA, output_type=str)
    assert path is not None
    module, _, name = path.partition(":")
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` finds it
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"--agent {path!r} was not found: {error}") from error
    except Exception as error:  # your module may raise anything
        raise InvalidInput(f"--agent {path!r} cannot be used: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    if not isinstance(found, Agent):
        raise InvalidInput(f"--agent {path!r} is a {type(found).__name__}, not a PydanticAI agent")
    return cast("Agent[Any, str]", found)


def _voice(name: str | None, channel: str) -> RealtimeModel | None:
    if (name is None) != (channel != "media"):
        raise InvalidInput(
            "--channel media needs --voice, such as openai:gpt-realtime; other channels do not take it"
        )
    if name is None:
        return None
    with installed():
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.realtime import infer_realtime_model
    try:
        return infer_realtime_model(name)
    except (UserError, ImportError, ValueError) as error:
        raise InvalidInput(f"--voice {name!r:.80} cannot be used: {error}") from error


async def _serve(
    settings: Settings,
    output: Output,
    make: Callable[[MemoryService], Phone],
    listening: Any,
    *,
    limits: Limits,
    quota: Quota,
) -> CommandResult:
    import uvicorn

    from echoic.adapters.twilio import phone_app, uvicorn_options

    log_warnings()
    embedder = await ready_embedder(settings, output)
    url = url_of(*listening.getsockname()[:2])

    async with memory_at(settings, embedder, quota=quota) as memory:
        phone = make(memory)
        public = phone.settings.public_url or url.rstrip("/")

        def announce() -> None:
            output.finish(CommandResult(data={"url": url}, text=url, count=1))
            output.say(f"Twilio's webhook: {public}/phone/voice; Ctrl-C stops")

        config = uvicorn.Config(phone_app(phone), **uvicorn_options(limits))
        await announced(uvicorn.Server, config, announce).serve(sockets=[listening])
    output.say("stopped; everything acknowledged is stored")
    return CommandResult(data=None)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Report which extra to install if an import inside fails."""
    try:
        yield
    except ImportError as error:
        raise InvalidInput(_EXTRA.format(name=error.name)) from error


def auth_token() -> str:
    """The Auth Token that signs Twilio's requests, or `InvalidInput`."""
    token = os.environ.get(AUTH_TOKEN)
    if not token:
        raise InvalidInput(f"set {AUTH_TOKEN} to the account's Auth Token, which verifies Twilio's requests")
    return token


phone_group.add_command(line_command)
