"""Checkpoints of live calls in Redis: all it takes to keep them in a place of your own.

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
    """A checkpoint is one value under a key that names whose call it is; SET replaces it whole."""

    def __init__(self, redis: Any, *, expires_s: int = 24 * 3600) -> None:
        """`redis` is a client of `redis.asyncio`; a call that nobody goes on with is dropped in time."""
        self._redis = redis
        self._expires_s = expires_s

    async def save(self, scope: Scope, checkpoint: Checkpoint) -> None:
        """Keep it in place of the one before."""
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
