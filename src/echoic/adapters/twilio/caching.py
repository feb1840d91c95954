"""What a provider is asked to do so that a long call is not paid for again with every turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from hashlib import blake2b
from typing import Any, cast

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, Caching
from pydantic_ai.settings import ModelSettings

from echoic.adapters.twilio.settings import CacheFor


@dataclass
class CallCaching(Caching):
    """`Caching` of PydanticAI, and for OpenAI a key that brings the requests of a call to one cache."""

    _: KW_ONLY
    conversation: str
    """The call's id; a hash of it is sent."""

    def get_model_settings(self) -> ModelSettings | None:
        """What stands in every request of the call."""
        key = blake2b(self.conversation.encode(), digest_size=16).hexdigest()
        settings = {**(super().get_model_settings() or {}), "openai_prompt_cache_key": key}
        return cast("ModelSettings", settings)  # a provider's own settings are no part of the common type


def caching_of(
    agent: Agent[Any, str], more: Sequence[AbstractCapability[Any]], asked: CacheFor, conversation: str
) -> list[AbstractCapability[Any]]:
    """What is added to `agent` and `more` for a call; nothing where caching is off, or theirs already."""
    own: list[AbstractCapability[Any]] = []
    for capability in (agent.root_capability, *more):
        capability.apply(own.append)
    if not asked or any(isinstance(capability, Caching) for capability in own):
        return []
    return [CallCaching(asked, conversation=conversation)]


__all__ = ["CallCaching", "caching_of"]
