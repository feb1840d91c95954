"""Encryption at rest: a store that passes only ciphertext to another store (docs/encryption.md).

Each record is sealed with AES-256-GCM under a key of its scope, bound to its kind and id. The inner store
contains no words: a scope is indexed in memory when it is loaded. A vector and its word pieces are sealed
together and stored in place of the word pieces. Ids and keys are replaced by keyed hashes.

Each deployment has a random data key, stored wrapped by the deployment's own key, which comes from outside
(`KeySource`). Rotating that key wraps the data key again; without it nothing can be read.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from echoic.errors import EmbeddingMismatch, InvalidInput, StoreCorrupt, WriteConflict, brief
from echoic.partition import AXES, MAX_BYTES, MEMORY, SEGMENT_ROWS, Entry, Flag, Partition, Segment
from echoic.stores.apply import name_of
from echoic.stores.base import (
    ENCRYPTED,
    Attach,
    Change,
    Drop,
    Erasable,
    Erased,
    Index,
    Put,
    Record,
    Store,
    Waiting,
    model_from,
    model_text,
    not_open,
)
from echoic.stores.scope_state import Loaded, ScopeCache
from echoic.types import EmbeddingSpec, Scope

KeySource = Callable[[str], Sequence[bytes]]
"""Returns the keys of a deployment, 32 bytes each, the current one first; without any, its records cannot be
read. Called when the store is opened, and when a deployment is first used."""
KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_OVERHEAD: Final = _NONCE_BYTES + 16
_KEYS: Final = "echoic.encryption"
"""The deployment that holds the wrapped data key of each deployment, as a user of that name."""
_PLAIN: Final = "echoic.erasures"
"""The deployment with the marks of erasures: keyed hashes, which are not encrypted."""
_WRAPPED: Final = "data-key"
_PREFIX: Final = "sealed-"
_BLANK: Final = np.ones(1, np.float32)
_AT_ONCE: Final = 64
"""Rows decrypted on the event loop; more are decrypted in a thread."""
_PAGE: Final = 1000


def keys_from(setting: str | KeySource) -> KeySource:
    """The keys that a setting names.

    Args:
        setting: "file:PATH" or "env:NAME", whose text has a line "DEPLOYMENT KEY [OLDER KEY …]" for each
            deployment, keys in base64 and "*" for every deployment without a line; or a function.

    Raises:
        InvalidInput: it names nothing, or its text has no such lines.
    """
    if callable(setting):
        return setting
    kind, _, place = setting.partition(":")
    try:
        if kind == "file":
            text = Path(place).read_text(encoding="utf-8")
        elif kind == "env":
            text = os.environ[place]
        else:
            raise InvalidInput('encryption keys are named as "file:PATH" or "env:NAME"')
    except (OSError, KeyError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the encryption keys in {brief(setting)} cannot be read") from error
    named: dict[str, list[bytes]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        deployment, *keys = line.split("#", 1)[0].split() or ("",)
        if not deployment:
            continue
        try:
            named[deployment] = [_checked(base64.b64decode(key, validate=True)) for key in keys]
        except binascii.Error:
            keys = []
        if not keys:
            raise InvalidInput(
                f"line {number} of the encryption keys is not 'DEPLOYMENT KEY', the key in base64: make one "
                "with `openssl rand -base64 32`"
            )
    return lambda deployment: named.get(deployment, named.get("*", ()))


class _Keys:
    """The keys of one scope."""

    def __init__(self, data_key: bytes, scope: Scope) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        name = json.dumps([scope.deployment, scope.user]).encode()
        derived = hmac.digest(data_key, name, "sha512")
        self._cipher, self._mac = AESGCM(derived[:32]), derived[32:]

    def seal(self, plain: bytes, place: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, place.encode())

    def open(self, sealed: bytes, place: str) -> bytes:
        """The content sealed with this key for this place; raises StoreCorrupt if it was not."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place.encode())
        except InvalidTag as error:
            raise StoreCorrupt("an encrypted record was changed or moved, and is left as it is") from error

    def blind(self, *parts: str) -> str:
        """A keyed hash: equal for equal parts, and revealing nothing else."""
        text = "\0".join(parts).encode(errors="surrogatepass")
        return hashlib.blake2b(text, key=self._mac, digest_size=16).hexdigest()

    def record(self, record: Record, index: Index) -> Record:
        """`record` as the inner store has it."""
        kind, name = _PREFIX + record.kind, self.blind("id", record.kind, record.id)
        plain = json.dumps([record.id, record.key, record.data], ensure_ascii=False, separators=(",", ":"))
        sealed = self.seal(plain.encode(errors="surrogatepass"), f"{kind}\0{name}")
        entry = index(record)
        found = {} if entry is None else {"found": self.blind("text", record.kind, record.id, entry.text)}
        key = None if record.key is None else self.blind("key", record.key)
        data = {"sealed": base64.b64encode(sealed).decode(), **found}
        return Record(kind=kind, id=name, key=key, data=data, version=record.version, seq=record.seq)

    def opened(self, record: Record) -> Record:
        """The inverse of `record`."""
        try:
            sealed = base64.b64decode(record.data["sealed"])
        except (KeyError, TypeError, binascii.Error) as error:
            raise StoreCorrupt(
                "a record of an encrypted store is not encrypted; it is left as it is"
            ) from error
        plain = self.open(sealed, f"{record.kind}\0{record.id}").decode(errors="surrogatepass")
        name, key, data = json.loads(plain)
        return replace(record, kind=record.kind.removeprefix(_PREFIX), id=name, key=key, data=data)


def _blank_index(record: Record) -> Entry | None:
    """An index entry without words; its text tells whether the vector is still valid."""
    found = record.data.get("found")
    return None if found is None else Entry(text=found, kind=MEMORY, words=())


class EncryptedStore:
    """Encrypts everything before `inner` sees it. Scopes, kinds, sizes, versions and order stay readable.

    Args:
        inner: an empty store, or one that is encrypted already.
        keys: the key of each deployment.
        cache_bytes: memory limit of loaded scopes, in addition to that of `inner`.
    """

    def __init__(self, inner: Store, keys: KeySource, *, cache_bytes: int = 256 << 20) -> None:
        try:
            import cryptography  # noqa: F401
        except ImportError as error:
            raise InvalidInput("encryption needs a package: pip install 'echoic[encryption]'") from error
        self._inner, self._source = inner, keys
        self._cache: ScopeCache[Loaded] = ScopeCache(cache_bytes)
        self._index: Index | None = None
        self._spec = EmbeddingSpec("", 0)
        self._data_keys: dict[str, bytes] = {}
        self._loading: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()
        self._unwrapping = asyncio.Lock()
        for verb in ("snapshot", "examine"):  # other capabilities also work on ciphertext
            if hasattr(inner, verb):
                setattr(self, verb, getattr(inner, verb))

    def around(self, inner: Store) -> EncryptedStore:
        """Another store with the same keys, such as a backup."""
        return EncryptedStore(inner, self._source)

    # -- keys

    async def _keys(self, scope: Scope) -> _Keys:
        if self._index is None:
            raise not_open()
        async with self._unwrapping:
            data_key = self._data_keys.get(scope.deployment) or await self._data_key(scope.deployment)
        return _Keys(data_key, scope)

    async def _data_key(self, deployment: str) -> bytes:
        """The data key of `deployment`, wrapped again if its key was rotated."""
        given = {_fingerprint(key): key for key in map(_checked, self._source(deployment))}
        if not given:
            raise InvalidInput(f"there is no encryption key for the deployment {brief(deployment)}")
        place, newest = Scope(_KEYS, deployment), next(iter(given))
        for _ in range(2):
            held = await self._inner.read(place, _WRAPPED, [_WRAPPED])
            data = held[0].data if held else {}
            if held and data["key"] not in given:
                raise InvalidInput(
                    f"the encryption key of the deployment {brief(deployment)} is another one: what is "
                    f"stored was encrypted with the key {data['key']}, and given {_are(given)}"
                )
            data_key = os.urandom(KEY_BYTES)
            if held:
                data_key = _Keys(given[data["key"]], place).open(base64.b64decode(data["sealed"]), _WRAPPED)
            if not held or data["key"] != newest:
                sealed = _Keys(given[newest], place).seal(data_key, _WRAPPED)
                data = {"key": newest, "sealed": base64.b64encode(sealed).decode()}
                new = Record(kind=_WRAPPED, id=_WRAPPED, data=data)
                old = held[0] if held else None
                try:
                    if old is None:
                        await self._inner.write(place, [Put.over(None, new)])
                    else:  # this destroys the old wrapping
                        await self._inner.erase(place, [Put.over(old, new)])
                except WriteConflict:  # another process wrote it first
                    continue
            self._data_keys[deployment] = data_key
            return data_key
        raise WriteConflict(f"the data key of {brief(deployment)} is being changed by others; retry")

    # -- the verbs

    async def open(self, embedding: EmbeddingSpec, index: Index) -> None:
        most = (MAX_BYTES - _OVERHEAD) // 2
        if embedding.dimensions > most:
            raise InvalidInput(
                f"encrypted vectors have {most} dimensions at most, not {embedding.dimensions}"
            )
        try:
            await self._inner.open(_beneath(embedding), _blank_index)
        except EmbeddingMismatch as error:
            if error.model is None:
                raise
            theirs = model_from(error.model.removeprefix(ENCRYPTED))
            raise EmbeddingMismatch(
                f"the store holds vectors of {model_text(theirs)!r}, not of {model_text(embedding)!r}: open "
                "it with that embedder, or run `echoic reindex` to embed everything anew",
                model=theirs.model,
                dimensions=theirs.dimensions,
            ) from error
        self._spec, self._index = embedding, index
        try:
            for scope in await self._inner.scopes(_KEYS):
                if scope.user is not None and self._source(scope.user):
                    await self._data_key(scope.user)  # report a wrong key at once, and apply a rotated one
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        self._index = None
        self._data_keys.clear()
        self._cache.clear()
        await self._inner.aclose()

    async def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        if scope.deployment == _PLAIN:
            await self._inner.write(scope, changes)
            return
        keys = await self._keys(scope)
        await self._inner.write(scope, await self._sealed(scope, keys, changes))

    async def read(self, scope: Scope, kind: str, ids: Sequence[str]) -> list[Record]:
        if scope.deployment == _PLAIN:
            return await self._inner.read(scope, kind, ids)
        keys = await self._keys(scope)
        names = [keys.blind("id", kind, name) for name in ids]
        return [keys.opened(record) for record in await self._inner.read(scope, _PREFIX + kind, names)]

    async def rows(self, scope: Scope, rows: Sequence[int]) -> list[Record]:
        if scope.deployment == _PLAIN:
            return await self._inner.rows(scope, rows)
        keys = await self._keys(scope)
        return [keys.opened(record) for record in await self._inner.rows(scope, rows)]

    async def scan(self, scope: Scope, kind: str, *, key: str | None = None, **page: Any) -> list[Record]:
        if scope.deployment == _PLAIN:
            return await self._inner.scan(scope, kind, key=key, **page)
        keys = await self._keys(scope)
        blind = None if key is None else keys.blind("key", key)
        found = await self._inner.scan(scope, _PREFIX + kind, key=blind, **page)
        return [keys.opened(record) for record in found]

    async def load(self, scope: Scope) -> Partition:
        if scope.deployment == _PLAIN:
            if self._index is None:
                raise not_open()
            return Partition(self._spec.dimensions)  # marks are not searchable
        keys = await self._keys(scope)
        async with self._loading.setdefault(scope, asyncio.Lock()):
            inner = await self._inner.load(scope)
            kept = self._cache.get(scope)
            if kept is None or kept.partition.scratch.get("sealed") is not inner:
                kept = Loaded(partition=Partition(self._spec.dimensions), number=0, seen=-1)
                kept.partition.scratch["sealed"] = inner  # cached and weighed
            with inner.lock:
                version, revision = inner.version, inner.revision
                changed = np.flatnonzero(inner.patched > kept.seen).tolist()
                rows = [n for s in changed for n in range(s * SEGMENT_ROWS, (s + 1) * SEGMENT_ROWS)]
                rows = [n for n in rows if inner.rows["kind"][n]]
                embedded = {
                    n: inner.tokens.get(n, b"") for n in rows if inner.rows["flags"][n] & Flag.EMBEDDED
                }
            if changed:
                records: list[Record] = []
                for first in range(0, len(rows), _PAGE):
                    records += await self._inner.rows(scope, rows[first : first + _PAGE])
                build = partial(self._segments, keys, changed, records, embedded)
                segments = build() if len(rows) <= _AT_ONCE else await asyncio.to_thread(build)
                with kept.partition.lock:
                    kept.partition.patch(segments.items())
            kept.partition.version, kept.seen = version, revision
            self._cache.put(scope, kept)
            return kept.partition

    def _segments(
        self, keys: _Keys, numbers: Iterable[int], records: Iterable[Record], embedded: Mapping[int, bytes]
    ) -> dict[int, Segment]:
        segments = {number: Segment() for number in numbers}
        for record in records:
            number, slot = divmod(record.seq, SEGMENT_ROWS)
            entry = self._index(keys.opened(record)) if self._index else None
            if entry is None:
                continue
            segments[number].put(slot, entry)
            if record.seq in embedded:
                plain = keys.open(embedded[record.seq], f"vector\0{record.kind}\0{record.id}")
                segments[number].attach(slot, *self._vector(plain))
        return segments

    async def waiting(self, limit: int) -> list[Waiting]:
        asked = limit
        while True:  # records without a key are pending for ever, and must not block others
            found = await self._inner.waiting(asked)
            live = [one for one in found if self._readable(one.scope)][:limit]
            if len(live) == limit or len(found) < asked:
                break
            asked *= 2
        return [replace(one, record=(await self._keys(one.scope)).opened(one.record)) for one in live]

    async def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        if self._index is None:
            raise not_open()
        sealed = changes
        if changes is not None and scope.deployment != _PLAIN:
            keys = await self._keys(scope)
            made = await self._sealed(scope, keys, changes)
            sealed = [change for change in made if isinstance(change, Put | Drop)]
        self._cache.drop(scope)
        erased = await self._inner.erase(scope, sealed)
        self._cache.drop(scope)
        counted = {kind.removeprefix(_PREFIX): number for kind, number in erased.records.items()}
        return replace(erased, records=counted)

    async def scopes(self, deployment: str | None = None) -> list[Scope]:
        if self._index is None:
            raise not_open()
        return [scope for scope in await self._inner.scopes(deployment) if self._readable(scope)]

    def _readable(self, scope: Scope) -> bool:
        """Whether it belongs to a deployment whose key is available."""
        return scope.deployment == _PLAIN or (
            scope.deployment != _KEYS and bool(self._source(scope.deployment))
        )

    async def reindex(self, embedding: EmbeddingSpec) -> int:
        waiting = await self._inner.reindex(_beneath(embedding))
        self._spec = embedding
        self._cache.clear()
        return waiting

    async def check(self) -> Mapping[str, Any]:
        wrapped = [scope.user or "" for scope in await self._inner.scopes(_KEYS)]
        readable = sum(bool(self._source(deployment)) for deployment in wrapped)
        told = f"AES-256-GCM, {readable} of {len(wrapped)} deployments readable"
        facts = {**await self._inner.check(), "encryption": told}
        if "embedding" in facts:
            facts["embedding"] = f"{self._spec.model} {self._spec.dimensions}"
        for counted in [name for name in ("records", "scopes") if isinstance(facts.get(name), int)]:
            facts[counted] -= len(wrapped)  # data keys are not user records
            if readable < len(wrapped):  # the number of readable ones is unknown
                del facts[counted]
        return facts

    def kept(
        self, vector: NDArray[np.float32], tokens: bytes | None
    ) -> tuple[NDArray[np.float32], bytes | None]:
        """A vector and its word pieces as this store returns them: sealed together, they have less room."""
        return self._vector(self._packed(vector, tokens))

    # -- what is written

    async def _sealed(self, scope: Scope, keys: _Keys, changes: Sequence[Change]) -> list[Change]:
        index = self._index
        if index is None:
            raise not_open()
        stands = await self._compared(scope, keys, changes)
        made: list[Change] = []
        for change in changes:
            kind, name = name_of(change)
            place = (_PREFIX + kind, keys.blind("id", kind, name))
            if isinstance(change, Put):
                new = keys.record(change.record, index)
                made.append(replace(change, record=new, was=_was(change.was, stands.get(place))))
                stands[place] = (change.record.data, new.data)
            elif isinstance(change, Attach):
                blob = keys.seal(
                    self._packed(change.vector, change.tokens), f"vector\0{place[0]}\0{place[1]}"
                )
                was = _was(change.was, stands.get(place))
                made.append(replace(change, kind=place[0], id=place[1], vector=_BLANK, tokens=blob, was=was))
            else:
                made.append(replace(change, kind=place[0], id=place[1]))
                if isinstance(change, Drop):
                    stands.pop(place, None)
        return made

    async def _compared(
        self, scope: Scope, keys: _Keys, changes: Sequence[Change]
    ) -> dict[tuple[str, str], tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """The data of records that a change compares, decrypted and as stored."""
        asked: dict[str, list[str]] = {}
        for change in changes:
            if isinstance(change, Put | Attach) and change.was is not None:
                kind, name = name_of(change)
                asked.setdefault(_PREFIX + kind, []).append(keys.blind("id", kind, name))
        held = [r for kind, names in asked.items() for r in await self._inner.read(scope, kind, names)]
        return {(r.kind, r.id): (keys.opened(r).data, r.data) for r in held}

    def _packed(self, vector: NDArray[np.float32], tokens: bytes | None) -> bytes:
        """Vector and word pieces in one array, with as many pieces as fit."""
        packed = np.ascontiguousarray(vector, self._dtype).tobytes()
        room = (MAX_BYTES - _OVERHEAD - len(packed)) // AXES * AXES
        return packed + (tokens or b"")[:room]

    def _vector(self, plain: bytes) -> tuple[NDArray[np.float32], bytes | None]:
        size = self._spec.dimensions * np.dtype(self._dtype).itemsize
        vector = np.frombuffer(plain[:size], self._dtype).astype(np.float32)
        return vector, plain[size:] or None

    @property
    def _dtype(self) -> str:
        """The type of stored vectors: half precision if they would not fit otherwise."""
        return "<f4" if self._spec.dimensions * 8 <= MAX_BYTES else "<f2"


def _was(
    was: Mapping[str, Any] | None, stands: tuple[Mapping[str, Any], Mapping[str, Any]] | None
) -> Mapping[str, Any] | None:
    """The stored form of `was`; a value that matches nothing if the record has other data."""
    if was is None:
        return None
    return stands[1] if stands is not None and stands[0] == was else {}


def _beneath(embedding: EmbeddingSpec) -> EmbeddingSpec:
    return EmbeddingSpec(f"{ENCRYPTED}{model_text(embedding)}", 1)


def _checked(key: bytes) -> bytes:
    if len(key) != KEY_BYTES:
        raise InvalidInput(f"an encryption key has {KEY_BYTES} bytes, not {len(key)}")
    return key


def _fingerprint(key: bytes) -> str:
    """The name of a key, which reveals nothing of it."""
    return hmac.digest(key, b"echoic encryption key", "sha256").hex()[:12]


def _are(given: Iterable[str]) -> str:
    names = list(given)
    return f"is {names[0]}" if len(names) == 1 else f"are {', '.join(names)}"
