"""The commands of the telephone: run its server, and look after its lines. They decide nothing of a call."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from echoic.cli.binding import announced, bound, url_of
from echoic.cli.command import Group
from echoic.cli.exits import DONE
from echoic.cli.output import Output, Result
from echoic.cli.phone_line import line_command
from echoic.cli.running import embedder_at, memory_at, run_apart, words_only
from echoic.cli.secret import given_secret, kept_secret, secret_file
from echoic.cli.settings import Settings, phone_trust_option, proxies_option, quota_of, quota_options
from echoic.errors import EmbedderError, InvalidInput

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.realtime import RealtimeModel

    from echoic.adapters.limits import Limits
    from echoic.adapters.twilio import Phone, PhoneSettings
    from echoic.memory.quota import Quota
    from echoic.memory.service import MemoryService

AUTH_TOKEN = "ECHOIC_TWILIO_AUTH_TOKEN"  # noqa: S105 - the name of a variable
_EXTRA = "the telephone needs packages that are not installed ({name}): pip install 'echoic[phone]'"
_PERSONA = "You are Robin, a friendly assistant on the telephone. You remember who calls you."


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
        auth_token=auth_token(),
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


def auth_token() -> str:
    """The account's Auth Token, from the environment.

    Raises:
        InvalidInput: it is not set.
    """
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


@contextlib.contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise InvalidInput(_EXTRA.format(name=error.name)) from error


__all__ = ["auth_token", "phone_group"]
