"""The webhooks of hosted voice platforms that `echoic serve` serves: options, routes and URLs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from echoic.cli.settings import variable

if TYPE_CHECKING:
    from fastapi import APIRouter

    from echoic.memory.service import MemoryService
    from echoic.server import ServerSettings


def webhook_options(command: Any) -> Any:
    """Add the options for the platforms' secrets to `command`."""
    for name, text in (
        ("elevenlabs-secret", "The secret of ElevenLabs' post-call webhook."),
        ("retell-key", "The Retell API key that is marked as the webhook's."),
        ("vapi-assistant", "The id of the Vapi assistant that takes incoming calls."),
        ("vapi-secret", "The secret of Vapi's server URL."),
    ):
        envvar = variable(name.replace("-", "_"))
        command = click.option(
            f"--{name}", metavar="TEXT", default="", envvar=envvar, show_envvar=True, help=text
        )(command)
    return command


@dataclass(frozen=True, slots=True)
class PlatformHooks:
    """Which platforms are served, by their secrets."""

    vapi_secret: str
    vapi_assistant: str
    retell_key: str
    elevenlabs_secret: str

    def router(self, memory: MemoryService, settings: ServerSettings) -> APIRouter | None:
        """The routes; None: no platform has a secret."""
        if not self.urls(""):
            return None
        from echoic.integrations.hosted.webhooks import by_number, webhooks

        deployment = settings.default_deployment
        trusted = settings.phone_trust == "any"
        return webhooks(
            memory,
            whose=by_number(memory, settings.secret, deployment=deployment, trust_incoming=trusted),
            vapi_secret=self.vapi_secret,
            vapi_assistant=self.vapi_assistant,
            retell_key=self.retell_key,
            elevenlabs_secret=self.elevenlabs_secret,
            deployment=deployment,
        )

    def urls(self, base: str) -> dict[str, str]:
        """What to paste where, below `base`."""
        paths = {"vapi": self.vapi_secret, "retell": self.retell_key}
        found = {name: f"{base}hooks/{name}" for name, secret in paths.items() if secret}
        if self.elevenlabs_secret:
            for step in ("start", "tools/search_memory", "ended"):
                found[f"elevenlabs_{step.partition('/')[0]}"] = f"{base}hooks/elevenlabs/{step}"
        return found
