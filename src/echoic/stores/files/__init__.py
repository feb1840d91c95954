"""The files store: one JSON or Markdown file per user, which people and other programs can read and edit.

It suits tens of thousands of users with some thousand records each: a write replaces the user's whole file,
so its duration grows with the file. It needs no server; several processes of one machine may share a folder.

It is as durable as SQLite: a write that returned survives a crash and a power cut, and a file is never half
written. Another program may read the files at any time, and write them while nobody else does; its changes
are found at the next read. In the JSON layout the directives of such a program are the user's, and ours are
stored where it looks for them; other fields are kept, not used.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar
from weakref import WeakValueDictionary

from echoic.errors import InvalidInput, StoreCorrupt, StoreTooNew, StoreUnavailable
from echoic.stores.base import (
    LISTED,
    Change,
    Erasable,
    Erased,
    Index,
    Record,
    Uses,
    Waiting,
    Wanted,
    not_open,
)
from echoic.stores.files.folder import LAYOUTS, FileState, Folder, Register
from echoic.stores.files.scope import ScopeFiles
from echoic.stores.scope_state import HeldReads, HeldScope, ScopeCache
from echoic.types import EmbeddingSpec, Scope

T = TypeVar("T")
Format = Literal["json", "markdown"]
CACHE_BYTES = 256 << 20
"""Memory limit of loaded scopes."""
_THREADS = 8
"""Writes wait for the disk, each for its own file; more threads would not make them faster."""
_UNREADABLE = (StoreCorrupt, StoreTooNew, StoreUnavailable)
"""What one user's file raises. That user gets an error, all others go on, and `check` reports it."""


class _ThreadRunner(Protocol):
    """Runs blocking work in one of the store's threads."""

    def __call__(self, work: Callable[[], T]) -> asyncio.Future[T]: ...


class FilesStore(HeldReads):
    """Memory in a folder, one file for each user.

    `erase` overwrites the user's file, its vectors and leftovers of a crash with zeros, syncs and removes
    them, and then searches the folder for their content; a partial erasure does the same to the file that it
    replaces. It cannot reach bytes that earlier writes left to the file system: a copy-on-write file system,
    a journal, a snapshot or a flash disk keeps "overwritten" bytes until it needs the space. Use an encrypted
    disk against those.

    Args:
        folder: the folder of the files; created if it does not exist.
        format: "json" or "markdown".
        cache_bytes: memory limit of loaded scopes; the least recently used ones are evicted.

    Raises:
        InvalidInput: another format.
    """

    def __init__(
        self,
        folder: str | Path,
        format: Format = "json",  # noqa: A002 - the word for it
        *,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        if format not in LAYOUTS:
            raise InvalidInput(f"unknown format {format!r}: use one of {', '.join(LAYOUTS)}")
        self._folder = Folder(Path(folder), format)
        self._register = Register(self._folder)
        self._pool: ThreadPoolExecutor | None = None
        self._spec = EmbeddingSpec("", 0)
        self._index: Index | None = None
        self._places: WeakValueDictionary[Scope, ScopeFiles] = WeakValueDictionary()
        self._cache: ScopeCache[ScopeFiles] = ScopeCache(cache_bytes, least=1)
        self._opening = asyncio.Lock()
        self._uses = Uses()

    async def open(self, embedding: EmbeddingSpec, index: Index) -> None:
        async with self._opening:
            if self._pool is None:
                await asyncio.to_thread(self._folder.open, embedding)
                await asyncio.to_thread(self._register.begin)
                self._spec, self._index = embedding, index
                self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="echoic-files")

    async def aclose(self) -> None:
        async with self._opening:
            pool, self._pool = self._pool, None
            if pool is None:
                return
            await self._uses.ended()
            await asyncio.to_thread(pool.shutdown)
            self._let_go()

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        async with self._at(scope) as (place, run):
            if changes:
                async with place.turn:
                    await run(lambda: place.write(changes))

    async def waiting(self, limit: int) -> list[Waiting]:
        found: list[tuple[int, Waiting]] = []
        asked: dict[Path, tuple[FileState, int | None]] = {}
        failed: StoreUnavailable | None = None
        async with self._using() as run:
            for since, known in await run(self._register.waiting):
                if found and len(found) >= limit and since > found[limit - 1][0]:
                    break  # no later file has waited as long
                assert known.scope is not None
                try:
                    waits = await self._waiting(known.scope, limit)
                except StoreUnavailable as error:  # it keeps nobody else waiting, and is asked again
                    failed = failed if known.failure else error
                    continue
                asked[known.path] = (known, waits[0][0] if waits else None)
                found = sorted(found + waits, key=lambda item: item[0])[:limit]
            await run(lambda: self._register.noted(asked))
        if failed is not None and not found:
            raise failed
        return [waiting for _, waiting in found]

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        async with self._at(scope) as (place, run), place.turn:
            return await run(lambda: place.erase(changes))

    async def scopes(self, deployment: str | None = None) -> list[Scope]:
        async with self._using() as run:
            return await run(lambda: self._register.holding(deployment))

    async def listed(self, wanted: Wanted) -> list[tuple[Scope, Record]]:
        async with self._using() as run:
            found = await run(lambda: self._register.listed(wanted)) if wanted.kind == LISTED else {}
            listed: list[tuple[Scope, Record]] = []
            for scope, ids in found.items():
                with contextlib.suppress(*_UNREADABLE):
                    records = await self._ask(scope, lambda held, ids=ids: held.read(LISTED, ids))  # type: ignore[misc]
                    listed += [(scope, record) for record in records]
            return listed

    async def reindex(self, embedding: EmbeddingSpec) -> int:
        async with self._using() as run:
            await run(lambda: self._folder.change_model(embedding))
            self._spec = embedding
            self._let_go()
            waiting = 0
            for known in await run(self._register.all):
                if known.scope is not None and known.failure is None:
                    async with self._at(known.scope) as (place, _), place.turn:
                        await run(place.drop_vectors)
                    waiting += await self._ask(known.scope, lambda held: len(held.queue))
        return waiting

    async def check(self) -> Mapping[str, Any]:
        async with self._using() as run:
            facts = await run(self._facts)
            waiting = 0
            for _, known in await run(self._register.waiting):
                if known.scope is not None and known.failure is None:
                    try:
                        waiting += await self._ask(known.scope, lambda held: len(held.queue))
                    except _UNREADABLE as error:
                        facts["unreadable"].append(str(error))
            return {
                **facts,
                "waiting": waiting,
                "loaded_scopes": len(self._cache),
                "loaded_bytes": self._cache.nbytes,
            }

    def _facts(self) -> dict[str, Any]:
        known = self._register.all()
        failure = self._folder.failure()
        return {
            "engine": "files",
            "folder": str(self._folder.root),
            "layout": self._folder.layout,
            "embedding": f"{self._spec.model} {self._spec.dimensions}",
            "scopes": sum(bool(one.records) for one in known),
            "records": sum(one.records for one in known),
            "bytes": sum(state.size for one in known for state in one.states if state is not None),
            "unreadable": [one.failure for one in known if one.failure],
            "durable": True,
            "writable": failure is None,
            "failure": failure,
        }

    async def _waiting(self, scope: Scope, limit: int) -> list[tuple[int, Waiting]]:
        async with self._at(scope) as (place, run):
            try:
                return await run(lambda: place.waiting(limit))
            except (StoreCorrupt, StoreTooNew):  # its user gets an error, and `check` reports it
                return []

    async def _ask(self, scope: Scope, question: Callable[[HeldScope], T]) -> T:
        async with self._at(scope) as (place, run):
            return await run(lambda: place.ask(question))

    @contextlib.asynccontextmanager
    async def _using(self) -> AsyncIterator[_ThreadRunner]:
        """A function to run blocking work in a thread; `aclose` waits until this block ends."""
        pool = self._pool
        if pool is None:
            raise not_open()
        loop = asyncio.get_running_loop()
        with self._uses:
            yield functools.partial(loop.run_in_executor, pool)

    @contextlib.asynccontextmanager
    async def _at(self, scope: Scope) -> AsyncIterator[tuple[ScopeFiles, _ThreadRunner]]:
        async with self._using() as run:
            while (place := self._places.get(scope)) is None:
                index, spec = self._index, self._spec
                assert index is not None
                files = await run(
                    functools.partial(ScopeFiles, self._folder, self._register, scope, spec, index)
                )
                if spec is self._spec:  # not replaced by a reindex meanwhile
                    place = self._places.setdefault(scope, files)
                    break
            try:
                yield place, run
            finally:
                if self._places.get(scope) is place:  # not from before a reindex
                    self._cache.put(scope, place)

    def _let_go(self) -> None:
        self._places.clear()
        self._cache.clear()


__all__ = ["CACHE_BYTES", "FilesStore"]
