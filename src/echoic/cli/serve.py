"""The servers `echoic serve` and `echoic mcp`, and the definitions of tools."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import threading
import webbrowser
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from echoic.checks import checked_secrets, is_loopback
from echoic.cli.asyncio_runner import apart, embedder_at, log_warnings, memory_at, ready_embedder
from echoic.cli.command import command, output_of
from echoic.cli.output import CommandResult, Output
from echoic.cli.server_process import (
    AGENT_KEY,
    OPERATOR_KEY,
    SECRET,
    agent_keys,
    announced,
    bound,
    given_secret,
    is_wildcard,
    kept_secret,
    listen_options,
    operator_key,
    phone_trust_option,
    proxies_option,
    quota_of,
    quota_options,
    secret_file,
    url_of,
)
from echoic.cli.settings import Settings, model_option, variable, variable_option
from echoic.errors import InvalidInput
from echoic.integrations.tools import FORMATS, exported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import APIRouter

    from echoic.memory.guarded_store import Quota
    from echoic.memory.service import MemoryService
    from echoic.server import CellLimiter, ServerSettings
    from echoic.server.settings import AccountIssuer, AuthorizationServer


def webhook_options(command: Any) -> Any:
    for name, text in (
        ("elevenlabs-secret", "The secret of ElevenLabs' post-call webhook."),
        ("retell-key", "The Retell API key that is marked as the webhook's."),
        ("vapi-assistant", "The id of the Vapi assistant that takes incoming calls."),
        ("vapi-secret", "The secret of Vapi's server URL."),
    ):
        command = variable_option(name, metavar="TEXT", default="", help=text)(command)
    return command


@dataclass(frozen=True, slots=True)
class PlatformHooks:
    """The secrets of the hosted platforms to serve."""

    vapi_secret: str
    vapi_assistant: str
    retell_key: str
    elevenlabs_secret: str

    def router(self, memory: MemoryService, settings: ServerSettings) -> APIRouter | None:
        """The routes; None if no platform has a secret."""
        if not self.urls(""):
            return None
        from echoic.integrations.hosted_agents import by_number, webhooks

        deployment = settings.default_deployment
        trusted = settings.phone_trust == "any"
        return webhooks(
            memory,
            whose=by_number(memory, settings.secret, deployment=deployment, trust_incoming=trusted),
            deployment=deployment,
            **asdict(self),
        )

    def urls(self, base: str) -> dict[str, str]:
        """The URLs to configure at each platform, below `base`."""
        paths = {"vapi": self.vapi_secret, "retell": self.retell_key}
        found = {name: f"{base}hooks/{name}" for name, secret in paths.items() if secret}
        if self.elevenlabs_secret:
            for step in ("start", "tools/search_memory", "ended"):
                found[f"elevenlabs_{step.partition('/')[0]}"] = f"{base}hooks/elevenlabs/{step}"
        return found


def account_options(command: Any) -> Any:
    for name, metavar, text in (
        ("jwks", "FILE", "Its public keys, a JSON Web Key Set: RS256, ES256 or EdDSA."),
        ("jwt-audience", "TEXT", "The audience its tokens must have (`aud`)."),
        ("jwt-issuer", "TEXT", "The issuer (`iss`) of your users' tokens, which act for the user in `sub`."),
    ):
        command = variable_option(name, metavar=metavar, help=text)(command)
    return command


_EXTRA = "the server needs packages that are not installed ({name}): pip install 'echoic[server]'"


@command("serve")
@listen_options
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
@click.option(
    "--allow-host", "names", multiple=True, metavar="NAME", help="Another host name the server answers to."
)
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="The origin of another page that may use the API.",
)
@click.option(
    "--rate-limit",
    "rate",
    default="600/minute",
    show_default=True,
    metavar="RATE",
    help="The request rate of one caller; off disables the limit.",
)
@proxies_option
@quota_options
@model_option
@variable_option(
    "voice",
    metavar="PROVIDER:MODEL",
    help="A realtime model for voice calls on the page, such as openai:gpt-realtime.",
)
@variable_option(
    "voice-transport",
    type=click.Choice(["websocket", "webrtc"]),
    default="websocket",
    show_default=True,
    help="Send audio through this server, or directly to the provider (OpenAI).",
)
@phone_trust_option
@webhook_options
@account_options
@click.option("--mcp", is_flag=True, help="Also speak the Model Context Protocol, at /mcp.")
@click.option("--mcp-issuer", metavar="URL", help="An authorization server whose tokens /mcp also accepts.")
@click.option("--mcp-jwks", metavar="FILE", help="Its public keys, a JSON Web Key Set.")
@click.option("--mcp-resource", metavar="URL", help="The URL of /mcp, which must be its tokens' audience.")
@apart
async def serve_command(
    settings: Settings,
    output: Output,
    /,
    *,
    host: str,
    port: int,
    show: bool,
    names: tuple[str, ...],
    origins: tuple[str, ...],
    trusted_proxies: tuple[str, ...],
    mcp: bool,
    mcp_issuer: str | None,
    mcp_jwks: str | None,
    mcp_resource: str | None,
    **more: Any,
) -> CommandResult:
    """Run the HTTP server and its page until interrupted.

    Identities are signed with ECHOIC_SECRET (at least 32 bytes), or with a secret that is created beside the
    store. ECHOIC_OPERATOR_KEY enables the operator's routes. ECHOIC_AGENT_KEY lets a backend act for its own
    users; separate several keys with commas. To listen on addresses other than loopback, set ECHOIC_SECRET;
    there, secrets and keys that are easy to guess are refused. The URL is printed to stdout once the server
    is ready.

    Callers are answered by rules, or by the model that --model names, whose answers are streamed. --voice
    enables voice calls with a realtime model. Both read their provider's own variables, such as
    OPENAI_API_KEY and OPENAI_BASE_URL. --mcp gives MCP clients the memory of the identity that they send as a
    bearer token; with --mcp-issuer, --mcp-jwks and --mcp-resource, also of the subject of a token of your
    authorization server. With --jwt-issuer, --jwt-audience and --jwks, every route accepts your application's
    own tokens, whose subject is the user.

    If you set the secret of a hosted voice platform, its webhooks are served and their URLs printed. Callers
    are identified by number if the agent called them; with --phone-trust any, also if they called.
    """
    from echoic.adapters.connections import Limits

    serving = replace(
        _settings(settings, host, names, origins),
        limiter=_limiter(more["rate"]),
        limits=Limits(trusted_proxies=trusted_proxies),
        model=more["model"],
        voice_model=more["voice"],
        voice_transport=more["voice_transport"],
        phone_trust=more["phone_trust"],
        mcp_authorization=_authorization(mcp_issuer, mcp_jwks, mcp_resource),
        accounts=_accounts(more["jwt_issuer"], more["jwt_audience"], more["jwks"]),
    )
    with contextlib.closing(bound(host, port)) as listening:
        hooks = PlatformHooks(**{each.name: more[each.name] for each in fields(PlatformHooks)})
        _check_secrets(serving, hooks, listening, output)
        quota = quota_of(more)
        return await _serve(settings, output, serving, listening, show, mcp=mcp, hooks=hooks, quota=quota)


def _settings(
    settings: Settings, host: str, names: tuple[str, ...], origins: tuple[str, ...]
) -> ServerSettings:
    try:
        from echoic.server import ServerSettings
        from echoic.server.settings import LOOPBACK
    except ImportError as error:
        raise InvalidInput(_EXTRA.format(name=error.name)) from error
    own = () if not host or is_wildcard(host) else (f"[{host}]" if ":" in host else host,)
    return ServerSettings(
        secret=_secret(settings, host),
        operator_key=operator_key(),
        agent_keys=dict.fromkeys(agent_keys(), settings.deployment),
        deployments=frozenset({settings.deployment}),
        default_deployment=settings.deployment,
        allowed_hosts=tuple(dict.fromkeys((*LOOPBACK, *own, *names))),
        allowed_origins=origins,
    )


def _check_secrets(
    serving: ServerSettings, hooks: PlatformHooks, listening: socket.socket, output: Output
) -> None:
    named = {
        SECRET: serving.secret,
        OPERATOR_KEY: serving.operator_key or "",
        **{f"{AGENT_KEY} (key {place})": key for place, key in enumerate(serving.agent_keys, start=1)},
        variable("vapi_secret"): hooks.vapi_secret,
        variable("retell_key"): hooks.retell_key,
        variable("elevenlabs_secret"): hooks.elevenlabs_secret,
    }
    for warning in checked_secrets(named, listening.getsockname()[0]):
        output.note(warning)


def _authorization(issuer: str | None, jwks: str | None, resource: str | None) -> AuthorizationServer | None:
    if issuer is None and jwks is None and resource is None:
        return None
    if not (issuer and jwks and resource):
        raise InvalidInput("--mcp-issuer, --mcp-jwks and --mcp-resource belong together: give all three")
    from echoic.server.settings import AuthorizationServer

    return AuthorizationServer(issuer=issuer, jwks_file=Path(jwks), resource=resource)


def _accounts(issuer: str | None, audience: str | None, jwks: str | None) -> AccountIssuer | None:
    if not (issuer or audience or jwks):
        return None
    if not (issuer and audience and jwks):
        raise InvalidInput("--jwt-issuer, --jwt-audience and --jwks belong together: give all three")
    from echoic.server.settings import AccountIssuer

    return AccountIssuer(issuer=issuer, audience=audience, jwks_file=Path(jwks))


def _limiter(rate: str) -> CellLimiter:
    from echoic.server import CellLimiter, Rate

    return CellLimiter(user=None if rate == "off" else Rate.of(rate))


def _secret(settings: Settings, host: str) -> str:
    secret = given_secret()
    if secret is not None:
        return secret
    if not is_loopback(host):
        raise InvalidInput(
            f"--host {host} can be reached from other machines: choose the secret that signs identities "
            f"yourself, and set {SECRET} to at least 32 random bytes"
        )
    path = secret_file(settings)
    # without a persistent store, no identity needs to outlive the process
    return secrets.token_urlsafe(32) if path is None else kept_secret(path)


async def _serve(
    settings: Settings,
    output: Output,
    serving: ServerSettings,
    listening: socket.socket,
    show: bool,
    *,
    mcp: bool,
    hooks: PlatformHooks,
    quota: Quota,
) -> CommandResult:
    from echoic.server import MemoryServer, create_app, uvicorn_config

    log_warnings()
    embedder = await ready_embedder(settings, output)
    host, port = listening.getsockname()[:2]

    def announce() -> None:
        url = url_of(host, port)
        data = {"url": url, **hooks.urls(_public(serving.allowed_hosts, url))}
        output.finish(CommandResult(data=data, text="\n".join(data.values()), count=1))
        output.say("stop with Ctrl-C")
        if show:
            # starting a browser blocks, perhaps for seconds
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    # opened here, so that an error of the store is reported as in every other command
    async with memory_at(settings, embedder, serving.model, quota) as memory:
        app = create_app(memory, serving, mcp=mcp, webhooks=hooks.router(memory, serving))
        config = uvicorn_config(app, host=host, port=port)
        await announced(MemoryServer, config, announce).serve(sockets=[listening])
    output.say("stopped; everything acknowledged is stored")
    return CommandResult(data=None)


def _public(hosts: Sequence[str], url: str) -> str:
    """The base of public URLs: the first host name of --allow-host, otherwise `url`."""
    from echoic.server.settings import LOOPBACK

    named = next((host for host in hosts if host not in LOOPBACK and "*" not in host and "." in host), None)
    return f"https://{named}/" if named else url


@command("mcp")
@apart
async def mcp_command(settings: Settings, output: Output) -> CommandResult:
    """Serve one user's memory to an MCP client over stdin and stdout.

    Configure it in a client that starts programs, such as a desktop assistant or an editor. It offers four
    tools (search_memory, get_memory, set_memory, delete_memory), the memory block as a resource, and a
    prompt. --user or ECHOIC_USER, which has no default here, alone determines whose memory is served. `echoic
    serve --mcp` serves many users over HTTP.
    """
    from echoic.integrations.mcp import serve_stdio
    from echoic.memory.concurrency import noted

    if "user" not in settings.named:
        raise InvalidInput("name the user whose memory to serve with --user or ECHOIC_USER")
    log_warnings()
    async with memory_at(settings, embedder_at(settings)) as memory:
        output.say(f"serving the memory of {settings.user!r} over stdin and stdout")
        user = memory.user(settings.user, settings.deployment)
        warming = asyncio.create_task(user.warm())  # a first search should not wait for the encoder
        warming.add_done_callback(noted)
        await serve_stdio(user)
        warming.cancel()
    return CommandResult(data=None)


@command("tools")
@click.option(
    "--format",
    "shape",
    type=click.Choice(FORMATS),
    required=True,
    help="The provider or framework that the definitions are for.",
)
@click.pass_context
def tools_command(ctx: click.Context, shape: str) -> int:
    """Print the definitions of the memory tools for a provider or framework, as JSON.

    Your code passes them to the model and runs its calls with echoic.integrations.tools.call.
    """
    made = exported(shape)
    text = json.dumps(made, indent=2, ensure_ascii=False)
    return output_of(ctx).finish(CommandResult(data=made, text=text, count=len(made)))
