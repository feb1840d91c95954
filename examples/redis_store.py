"""A store in Redis: the five methods of `Documents`, with one hash for each user.

store = RedisDocuments(redis.asyncio.from_url("redis://localhost"))
async with echoic.open(store) as memory: ...
"""

# ruff: noqa: INP001 - a program, not a package
from __future__ import annotations

import json
from typing import Any

from echoic import Scope

PUT = """local there = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if there ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return 1"""
DELETE = """if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])"""


class RedisDocuments:
    """`redis` is a client of `redis.asyncio`. As durable as its server: set `appendfsync always`."""

    def __init__(self, redis: Any, prefix: str = "echoic:") -> None:
        self._redis, self._prefix = redis, prefix

    async def get(self, scope: Scope | None, name: str) -> str | None:
        text = await self._redis.hget(self._key(scope), name)
        return None if text is None else text.decode()

    async def put(self, scope: Scope | None, name: str, text: str, was: str | None) -> bool:
        return bool(await self._redis.eval(PUT, 1, self._key(scope), name, text, was or ""))

    async def delete(self, scope: Scope | None, name: str, was: str) -> bool:
        return bool(await self._redis.eval(DELETE, 1, self._key(scope), name, was))

    async def list(self, scope: Scope | None) -> list[str]:
        return [name.decode() for name in await self._redis.hkeys(self._key(scope))]

    async def scopes(self) -> list[Scope]:
        keys = [key async for key in self._redis.scan_iter(f"{self._prefix}[[]*", 1000)]
        return [Scope(*json.loads(key.decode().removeprefix(self._prefix))) for key in set(keys)]

    def _key(self, scope: Scope | None) -> str:
        return self._prefix + (json.dumps([scope.deployment, scope.user]) if scope else "own")
