"""A full store from five methods on JSON documents, for a backend of your own: Redis, an object store, a
table.

A scope is one document that lists others, each with 32 records and their vectors. A write puts new documents
and then replaces the list, if it is still the one it was made from: so a batch happens as a whole or not at
all, and no write of another process is lost. Documents that the list does not name do not count, and the next
erasure removes them.

Its limits: a scope is held in memory as a whole while it is used, and every operation reads its list first,
so it suits users with up to some ten thousand records, and as many users as `scopes` can return. There is no
search inside the database (`Narrows`).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, runtime_checkable
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np

from echoic.errors import (
    EchoicError,
    EmbeddingMismatch,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
    StoreUnavailable,
)
from echoic.partition import SEGMENT_ROWS
from echoic.stores.apply import begins
from echoic.stores.base import (
    FIRST_UNSEARCHABLE,
    Attach,
    Change,
    Erasable,
    Erased,
    Index,
    Put,
    Record,
    Uses,
    Waiting,
    check_model,
    not_open,
)
from echoic.stores.files.document import json_of
from echoic.stores.scope_state import Clock, HeldReads, HeldScope, ScopeCache, Staged
from echoic.types import EmbeddingSpec, Scope

Json = dict[str, Any]
FORMAT: Final = 1
_OF_VECTOR: Final = ("vector", "text", "pieces")


def changed_parts(texts: Mapping[str, str], held: HeldScope, staged: Staged) -> dict[str, str]:
    """The new text of each part that `staged` changes; empty if the part is removed."""
    opened: dict[str, Json] = {}

    def part(seq: int) -> Json:
        which = f"r{seq // SEGMENT_ROWS}"
        if which not in opened:
            opened[which] = parsed(texts[which]) if which in texts else {}
        return opened[which]

    for step in staged.steps:
        if isinstance(step.change, Attach):
            if step.left is not None:
                text = staged.texts.get(step.left.seq) or held.texts[step.left.seq]
                one = part(step.left.seq)[str(step.left.seq)]
                vector = np.asarray(step.change.vector, "<f4")
                one |= {"vector": _base64(vector.tobytes()), "text": text.digest.hex()}
                one["pieces"] = None if step.change.tokens is None else _base64(step.change.tokens)
        elif step.left is None:
            if step.old is not None:
                del part(step.old.seq)[str(step.old.seq)]
        else:
            before = part(step.left.seq).get(str(step.left.seq), {})
            part(step.left.seq)[str(step.left.seq)] = _kept(step.left, staged, held) | {
                name: before[name] for name in _OF_VECTOR if step.keep and name in before
            }
    return {which: json.dumps(ones) if ones else "" for which, ones in opened.items()}


def _kept(record: Record, staged: Staged, held: HeldScope) -> Json:
    one = {"kind": record.kind, "id": record.id, "key": record.key, "version": record.version}
    text = staged.texts.get(record.seq) or held.texts.get(record.seq)
    return {**one, "data": record.data} | ({"since": text.since} if text else {})


def record_of(seq: int, one: Json) -> Record:
    return Record(
        kind=one["kind"], id=one["id"], key=one["key"], data=one["data"], version=one["version"], seq=seq
    )


def vector_of(one: Json) -> tuple[bytes, Any, bytes | None]:
    """The digest of the text a vector was made from, the vector and its word pieces."""
    vector = np.frombuffer(base64.b64decode(one["vector"]), "<f4").astype(np.float32)
    pieces = one.get("pieces")
    return bytes.fromhex(one["text"]), vector, None if pieces is None else base64.b64decode(pieces)


def without_vectors(text: str) -> str:
    ones = parsed(text)
    left = {seq: {n: v for n, v in one.items() if n not in _OF_VECTOR} for seq, one in ones.items()}
    return json.dumps(left)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def head_of(text: str | None) -> Json:
    """A scope's list of records; empty if the scope does not exist."""
    if text is None:
        return {"parts": {}, "next": [0, FIRST_UNSEARCHABLE], "model": None, "records": 0}
    head = parsed(text)
    if head.get("format") != FORMAT:
        raise StoreTooNew(
            f"a user's documents have format {head.get('format')!r}, this Echoic knows {FORMAT}"
        )
    return head


def parsed(text: str) -> Json:
    """The JSON object in a document; raises StoreCorrupt if it is none."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise StoreCorrupt("a document is not what was put there; it is left untouched") from error
    if not isinstance(found, dict):
        raise StoreCorrupt("a document is not a JSON object; it is left untouched")
    return found


T = TypeVar("T")
CACHE_BYTES: Final = 256 << 20
HEAD, META, WAITS = "head", "echoic", "waits:"
_TRIES: Final = 100
"""Attempts of a write that conflicts with other processes."""
_BUSY: Final = "other processes write this user's documents all the time; nothing was written: try again"
_LAST: Final = sys.maxsize
"""As the time since when a scope waits that cannot be read: all others are embedded first."""


@runtime_checkable
class Documents(Protocol):
    """A backend for `DocumentStore`: ASCII texts by scope and name.

    `scope` is the owner; None for the store's own documents. Names are ASCII, up to 4,000 characters. `put`
    and `delete` compare and write in one step, whoever else writes, and are durable when they return. If a
    backend cannot compare, only one process may write to it. A client may send either again whose answer was
    lost, and return the answer to the second attempt. Any exception means that it could not read or write.
    """

    async def get(self, scope: Scope | None, name: str) -> str | None:
        """The document as it was last put, by any process, or None."""

    async def put(self, scope: Scope | None, name: str, text: str, was: str | None) -> bool:
        """Write it if `was` is stored there (None: nothing); otherwise return False without writing."""

    async def delete(self, scope: Scope | None, name: str, was: str) -> bool:
        """Remove it if `was` is stored there; otherwise return False."""

    async def list(self, scope: Scope | None) -> Sequence[str]:
        """The names of all its documents, in any order."""

    async def scopes(self) -> Sequence[Scope]:
        """Every scope that has a document, in any order."""


class _PartsMissing(StoreUnavailable):
    """Documents that a scope's list names are not there."""


class _ScopeDocument:
    """One scope as it was last read."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.held: HeldScope | None = None
        self.text: str | None = None
        self.head: Json = {}
        self.parts: dict[str, tuple[str, str]] = {}
        """The name and the text of each part's document."""

    @property
    def nbytes(self) -> int:
        partition = self.held.partition.nbytes if self.held else 0
        return 2 * partition + 6 * sum(len(text) for _, text in self.parts.values()) + 2048


class DocumentStore(HeldReads):
    """A `Store` kept in `Documents`.

    Args:
        documents: the backend; you open and close it.
        cache_bytes: memory limit of loaded scopes; the least recently used ones are evicted.
    """

    def __init__(self, documents: Documents, *, cache_bytes: int = CACHE_BYTES) -> None:
        self._documents = documents
        self._places: WeakValueDictionary[Scope, _ScopeDocument] = WeakValueDictionary()
        """Also what was evicted while it is in use: a scope has one lock."""
        self._cache: ScopeCache[_ScopeDocument] = ScopeCache(cache_bytes)
        self._oldest: dict[Scope, int] = {}
        """Since when records of a scope have waited for their vectors, at the earliest."""
        self._spec = EmbeddingSpec("", 0)
        self._index: Index | None = None
        self._open = False
        self._uses = Uses()
        self._clock = Clock()

    async def open(self, embedding: EmbeddingSpec, index: Index) -> None:
        found = await self._settings(embedding)
        check_model(found, embedding, "this store of documents")
        if not self._open:
            self._spec, self._index, self._open = embedding, index, True

    async def aclose(self) -> None:
        self._open = False
        await self._uses.ended()
        self._let_go()

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        async with self._using():
            if changes:
                await self._write(scope, changes)

    async def waiting(self, limit: int) -> list[Waiting]:
        async with self._using():
            found, failed = await self._waiting(limit)
            if failed is not None and not found:
                raise failed
            return found

    async def _waiting(self, limit: int) -> tuple[list[Waiting], StoreError | None]:
        """See `waiting`, and why a scope that may wait could not be read: it keeps no other waiting."""
        names = await self._asked(self._documents.list(None))
        marked = [Scope(*json.loads(n.removeprefix(WAITS))) for n in names if n.startswith(WAITS)]
        # each is loaded once to learn its time; what begins to wait later is younger
        oldest = self._oldest = {scope: self._oldest.get(scope, 0) for scope in marked}
        found: list[tuple[int, Waiting]] = []
        failed: StoreError | None = None
        for scope in sorted(marked, key=oldest.__getitem__):
            if len(found) >= limit and (limit < 1 or oldest[scope] > found[-1][0]):
                break  # nothing of the rest has waited as long
            try:
                waits = (await self._current(scope))[1].queue.first(limit)
            except (_PartsMissing, StoreCorrupt, StoreTooNew) as error:
                oldest[scope], failed = _LAST, error
                continue
            if waits:
                oldest[scope] = waits[0][0]
            else:
                await self._mark(scope)
            found = sorted(found + waits, key=lambda item: item[0])[:limit]
        return [waiting for _, waiting in found], failed

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        async with self._using():
            return await self._erase(scope, changes)

    async def scopes(self, deployment: str | None = None) -> list[Scope]:
        async with self._using():
            heads = await self._heads()
            holding = [(head["began"], scope) for scope, head in heads if head["records"]]
            holding.sort(key=lambda item: item[0])
            return [scope for _, scope in holding if deployment in {None, scope.deployment}]

    async def reindex(self, embedding: EmbeddingSpec) -> int:
        async with self._using():
            await self._settings(embedding, replace=True)
            self._spec = embedding
            self._let_go()
            return sum([await self._without_vectors(scope) for scope, _ in await self._heads()])

    async def check(self) -> Mapping[str, Any]:
        async with self._using():
            heads = [head for _, head in await self._heads()]
            probe = f"probe-{uuid4().hex}"
            await self._asked(self._documents.put(None, probe, "{}", None))
            written = await self._asked(self._documents.get(None, probe)) == "{}"
            await self._asked(self._documents.delete(None, probe, "{}"))
            gone = await self._asked(self._documents.get(None, probe)) is None
            waiting, failed = await self._waiting(sys.maxsize)
            if failed is not None:
                raise failed
            return {
                "engine": "documents",
                "documents": type(self._documents).__name__,
                "durable": getattr(self._documents, "durable", None),
                "scopes": sum(bool(head["records"]) for head in heads),
                "records": sum(head["records"] for head in heads),
                "waiting": len(waiting),
                "writable": written and gone,
            }

    async def _ask(self, scope: Scope, question: Callable[[HeldScope], T]) -> T:
        async with self._using():
            return question((await self._current(scope))[1])

    async def _current(self, scope: Scope) -> tuple[_ScopeDocument, HeldScope]:
        """The scope with its documents as they are now."""
        place = self._place(scope)
        text = await self._asked(self._documents.get(scope, HEAD))
        if place.held is None or text != place.text:
            async with place.lock:
                await self._read(scope, place)
        assert place.held is not None
        return place, place.held

    async def _read(self, scope: Scope, place: _ScopeDocument) -> HeldScope:
        """Bring `place` up to date. The caller holds its lock."""
        for _ in range(_TRIES):
            text = await self._asked(self._documents.get(scope, HEAD))
            if place.held is not None and text == place.text:
                return place.held
            head = head_of(text)
            parts = dict(zip(head["parts"], await self._parts(scope, place, head["parts"]), strict=True))
            if all(part is not None for part in parts.values()):
                place.held = self._restored(scope, place, head, [part for _, part in parts.values()])
                place.text, place.head, place.parts = text, head, parts
                self._weigh(scope, place)
                return place.held
        raise _PartsMissing("documents of a user are missing, or change faster than they can be read")

    async def _left(self, scope: Scope) -> tuple[_ScopeDocument, HeldScope]:
        """What is left of a scope with missing documents, as if its list named no others."""
        place = _ScopeDocument()
        place.text = await self._asked(self._documents.get(scope, HEAD))
        head = head_of(place.text)
        found = zip(head["parts"], await self._parts(scope, place, head["parts"]), strict=True)
        place.parts = {which: part for which, part in found if part is not None}
        names = {which: name for which, (name, _) in place.parts.items()}
        held = self._restored(scope, place, head, [text for _, text in place.parts.values()])
        place.held, place.head = held, head | {"parts": names, "records": len(held.records)}
        return place, held

    async def _parts(self, scope: Scope, place: _ScopeDocument, names: Mapping[str, str]) -> list[Any]:
        async def part(which: str, name: str) -> tuple[str, str] | None:
            known = place.parts.get(which)
            if known is not None and known[0] == name:
                return known
            text = await self._asked(self._documents.get(scope, name))
            return None if text is None else (name, text)

        return await asyncio.gather(*(part(which, name) for which, name in names.items()))

    def _restored(self, scope: Scope, place: _ScopeDocument, head: Json, texts: Sequence[str]) -> HeldScope:
        assert self._index is not None
        held = place.held or HeldScope(scope, self._index, self._spec.dimensions, self._clock)
        kept = [(int(seq), one) for text in texts for seq, one in parsed(text).items()]
        kept.sort(key=lambda item: item[0])
        ours = head["model"] == [self._spec.model, self._spec.dimensions]
        since = {seq: one["since"] for seq, one in kept if "since" in one}
        self._clock.not_before(max(since.values(), default=0))
        held.restore(
            [record_of(seq, one) for seq, one in kept],
            since=since,
            vectors={seq: vector_of(one) for seq, one in kept if ours and "vector" in one},
            counters=(head["next"][0], head["next"][1]),
        )
        return held

    async def _write(self, scope: Scope, changes: Sequence[Change]) -> None:
        attaches = [change for change in changes if isinstance(change, Attach)]
        for change in changes:
            if isinstance(change, Put):
                json_of(change.record.data, f"{change.record.kind} {change.record.id!r}")
        place = self._place(scope)
        async with place.lock:
            for _ in range(_TRIES):
                held = await self._read(scope, place)
                if place.text is None and not begins(changes):
                    return
                await self._check_vectors(place, attaches)
                staged = held.stage(changes)
                if await self._commit(scope, place, held, staged):
                    return
        raise StoreUnavailable(_BUSY)

    async def _check_vectors(self, place: _ScopeDocument, attaches: Sequence[Attach]) -> None:
        for attach in attaches:
            ours = [self._spec.model, self._spec.dimensions]
            model = place.head["model"] if place.text else ours
            if np.shape(attach.vector) != (self._spec.dimensions,) or model != ours:
                raise EmbeddingMismatch(
                    f"a vector of shape {np.shape(attach.vector)} for {attach.kind} {attach.id!r}: "
                    f"these documents are for {model[0]!r} with {model[1]} dimensions"
                )

    async def _commit(self, scope: Scope, place: _ScopeDocument, held: HeldScope, staged: Staged) -> bool:
        """Make `staged` durable and apply it; False if another process wrote first, with nothing written."""
        made = changed_parts({w: text for w, (_, text) in place.parts.items()}, held, staged)
        if not made:
            held.commit(staged)
            return True
        head = dict(place.head) if place.text else await self._new_head()
        head |= {"revision": head["revision"] + 1, "made": uuid4().hex}
        names = {which: f"{which}-{head['revision']}-{uuid4().hex}" for which, text in made.items() if text}
        head["parts"] = {w: n for w, n in place.head.get("parts", {}).items() if w not in made} | names
        head["next"] = [staged.next_row, staged.next_other]
        head["records"] += sum(
            (now is not None) - (name in held.records) for name, now in staged.records.items()
        )
        begins_to_wait = any(not embedded for embedded in staged.embedded.values())
        if begins_to_wait:  # before the write, so that no pending record is overlooked if this process dies
            await self._mark(scope, waits=True)
        await self._put_parts(scope, names, made)
        text = json.dumps(head)
        if not await self._put_list(scope, text, place.text, names):
            await self._remove(scope, {name: made[which] for which, name in names.items()})
            return False
        if place.text is None:  # another process may have erased documents of a scope with the same name
            await self._put_parts(scope, names, made)
        old = {name: text for which, (name, text) in place.parts.items() if which in made}
        held.commit(staged)
        kept = {which: part for which, part in place.parts.items() if which not in made}
        place.text, place.head = text, head
        place.parts = kept | {which: (name, made[which]) for which, name in names.items()}
        self._weigh(scope, place)
        if len(held.queue):
            self._oldest[scope] = held.queue.first(1)[0][0]
        await self._remove(scope, old)
        if begins_to_wait or (staged.embedded and not len(held.queue)):
            await self._mark(scope, waits=begins_to_wait)
        return True

    async def _put_list(self, scope: Scope, text: str, was: str | None, names: Mapping[str, str]) -> bool:
        """Put the list `text`, which names the new documents `names`; False if another process wrote first.

        A client that was not answered may send it again, and then is refused because of its own first
        attempt. Whether that happened is looked up, also behind a later write of another process: otherwise
        documents that the list names would be removed.
        """
        if await self._asked(self._documents.put(scope, HEAD, text, was)):
            return True
        there = await self._asked(self._documents.get(scope, HEAD))
        return there == text or not set(names.values()).isdisjoint(head_of(there)["parts"].values())

    async def _put_parts(self, scope: Scope, names: Mapping[str, str], made: Mapping[str, str]) -> None:
        puts = (self._documents.put(scope, name, made[which], None) for which, name in names.items())
        await asyncio.gather(*map(self._asked, puts))

    async def _remove(self, scope: Scope, texts: Mapping[str, str]) -> None:
        """Remove documents that no list names any more. If this fails, the next erasure removes them."""
        with contextlib.suppress(StoreUnavailable):
            gone = (self._documents.delete(scope, name, text) for name, text in texts.items())
            await asyncio.gather(*map(self._asked, gone))

    async def _new_head(self) -> Json:
        spec = await self._settings(self._spec)
        now = self._clock()
        return {
            "format": FORMAT,
            "model": [spec.model, spec.dimensions],
            "began": now,
            "revision": now,
            "records": 0,
            "next": [0, FIRST_UNSEARCHABLE],
            "parts": {},
        }

    async def _erase(self, scope: Scope, changes: Sequence[Erasable] | None) -> Erased:
        cached = self._place(scope)
        async with cached.lock:
            for _ in range(_TRIES):
                place = cached
                try:
                    held = await self._read(scope, place)
                except _PartsMissing:
                    if changes is not None:
                        raise
                    place, held = await self._left(scope)  # what is lost keeps nobody from being forgotten
                wanted = held.drops() if changes is None else changes
                gone, rewritten = held.erasing(wanted)
                vectors = held.embedded([*gone, *(old for old, _ in rewritten)])
                staged = held.stage(wanted)
                if await self._commit(scope, place, held, staged):
                    break
            else:
                raise StoreUnavailable(_BUSY)
            await self._sweep(scope, place)
            if place.text is not None and not place.head["records"]:
                await self._asked(self._documents.delete(scope, HEAD, place.text))
                await self._mark(scope)
            if place is not cached:
                await self._read(scope, cached)  # nothing of it stays loaded
            left: dict[tuple[str, str], Json | None] = {(record.kind, record.id): None for record in gone}
            left |= {(new.kind, new.id): dict(new.data) for _, new in rewritten}
            verified, read = await self._searched(scope, left)
            return Erased(
                records=held.kinds(gone),
                rewritten=len(rewritten),
                vectors=vectors,
                verified=verified,
                bytes_searched=read,
            )

    async def _sweep(self, scope: Scope, place: _ScopeDocument) -> None:
        """Remove what unfinished writes left behind; a write in progress has a later revision."""
        living = {HEAD, *place.head.get("parts", {}).values()} if place.text else {HEAD}
        until = place.head["revision"] if place.text else self._clock()
        for name in await self._asked(self._documents.list(scope)):
            if name not in living and int(name.split("-")[1]) <= until:
                text = await self._asked(self._documents.get(scope, name))
                if text is not None:
                    await self._asked(self._documents.delete(scope, name, text))

    async def _searched(self, scope: Scope, left: Mapping[tuple[str, str], Json | None]) -> tuple[bool, int]:
        """Whether only what is `left` of each record is found, and how many bytes were searched."""
        found, read = False, 0
        for name in await self._asked(self._documents.list(scope)):
            text = await self._asked(self._documents.get(scope, name)) or "{}"
            read += len(text)
            if name != HEAD:
                for seq, one in parsed(text).items():
                    name_of_one = (one["kind"], one["id"])
                    found |= name_of_one in left and record_of(int(seq), one).data != left[name_of_one]
        return not found, read

    async def _without_vectors(self, scope: Scope) -> int:
        """Drop a scope's vectors; returns how many records wait for one now."""
        place = self._place(scope)
        async with place.lock:
            for _ in range(_TRIES):
                held = await self._read(scope, place)
                if place.text is None:
                    return 0
                head = place.head | {"model": [self._spec.model, self._spec.dimensions], "made": uuid4().hex}
                head["revision"] += 1
                made = {which: without_vectors(text) for which, (_, text) in place.parts.items()}
                names = {which: f"{which}-{head['revision']}-{uuid4().hex}" for which in made}
                await self._mark(scope, waits=True)
                await self._put_parts(scope, names, made)
                text = json.dumps(head | {"parts": names})
                if await self._put_list(scope, text, place.text, names):
                    await self._remove(scope, dict(place.parts.values()))
                    return len(held.texts)
                await self._remove(scope, {name: made[which] for which, name in names.items()})
        raise StoreUnavailable(_BUSY)

    async def _mark(self, scope: Scope, *, waits: bool = False) -> None:
        """Note whether records of `scope` wait for a vector.

        The mark is set before and after records begin to wait, and once more if another process removed it
        meanwhile: at worst it is set while nothing waits.
        """
        name = WAITS + json.dumps([scope.deployment, scope.user])
        if waits:
            await self._asked(self._documents.put(None, name, "{}", None))
            return
        await self._asked(self._documents.delete(None, name, "{}"))
        text = await self._asked(self._documents.get(scope, HEAD))
        place = self._places.get(scope)
        if text is not None and (place is None or text != place.text):
            await self._asked(self._documents.put(None, name, "{}", None))

    async def _heads(self) -> list[tuple[Scope, Json]]:
        scopes = await self._asked(self._documents.scopes())
        texts = await asyncio.gather(*(self._asked(self._documents.get(s, HEAD)) for s in scopes))
        return [(s, head_of(text)) for s, text in zip(scopes, texts, strict=True) if text is not None]

    async def _settings(self, spec: EmbeddingSpec, *, replace: bool = False) -> EmbeddingSpec:
        """The model of the stored vectors; in a new store, or with `replace`, that of `spec`."""
        while True:
            text = await self._asked(self._documents.get(None, META))
            if text is not None and not replace:
                found = parsed(text)
                if found.get("format", 0) > FORMAT:
                    raise StoreTooNew(
                        f"these documents have format {found['format']}, this Echoic knows {FORMAT}"
                    )
                return EmbeddingSpec(found["model"], found["dimensions"])
            made = json.dumps({"format": FORMAT, "model": spec.model, "dimensions": spec.dimensions})
            if text == made or await self._asked(self._documents.put(None, META, made, text)):
                return spec

    def _place(self, scope: Scope) -> _ScopeDocument:
        """The cached state of a scope, now most recently used."""
        if (place := self._places.get(scope)) is None:
            place = self._places[scope] = _ScopeDocument()
        if self._cache.get(scope) is None:
            self._cache.put(scope, place)
        return place

    def _weigh(self, scope: Scope, place: _ScopeDocument) -> None:
        """Count `place` as it is now, as the most recently used."""
        if self._places.get(scope) is place:  # not from before a reindex
            self._cache.put(scope, place)

    def _let_go(self) -> None:
        self._places.clear()
        self._cache.clear()
        self._oldest = {}

    async def _asked(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except EchoicError:
            raise
        except Exception as error:  # any exception of a backend means that it could not read or write
            raise StoreUnavailable(f"the documents could not be reached ({type(error).__name__})") from error

    @contextlib.asynccontextmanager
    async def _using(self) -> AsyncIterator[None]:
        if not self._open:
            raise not_open()
        with self._uses:
            yield
