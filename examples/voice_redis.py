"""Checkpoints of voice calls in Redis, as an example of your own checkpoint store.

sessions = RedisSessionStore(redis.asyncio.from_url("redis://localhost"))
VoiceSession(service, user="ana", agents=[robin], model=model, sessions=sessions)
"""

# ruff: noqa: INP001 - a program, not a package
from __future__ import annotations

import json
from typing import Any

from echoic.memory.checkpoints import Checkpoint
from echoic.session import as_json, from_json
from echoic.types import Scope


class RedisSessionStore:
    """Stores each checkpoint as one value under a key that names the call; SET replaces it atomically."""

    def __init__(self, redis: Any, *, expires_s: int = 24 * 3600) -> None:
        """`redis` is a client of `redis.asyncio`; checkpoints of abandoned calls expire."""
        self._redis = redis
        self._expires_s = expires_s

    async def save(self, scope: Scope, checkpoint: Checkpoint) -> None:
        """Replace the earlier checkpoint."""
        value = json.dumps(as_json(checkpoint))
        await self._redis.set(_key(scope, checkpoint.session), value, ex=self._expires_s)

    async def load(self, scope: Scope, session: str) -> Checkpoint | None:
        """The last one of this user's call."""
        value = await self._redis.get(_key(scope, session))
        return None if value is None else from_json(json.loads(value))

    async def delete(self, scope: Scope, session: str) -> None:
        """Remove it."""
        await self._redis.delete(_key(scope, session))


def _key(scope: Scope, session: str) -> str:
    return "echoic:call:" + json.dumps([scope.deployment, scope.user, session])
