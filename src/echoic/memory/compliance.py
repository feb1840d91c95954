"""The compliance folder: data that must outlive the store and its backups. It contains nothing users said.

`key` is a random key that never leaves the folder. `erasures.jsonl` lists what was erased, as keyed hashes of
scopes and ids, so that a restored backup can be erased again. Each line names the store by its random id,
which lies in the store and its backups: another store with the same folder may have users of the same names.
Receipts are signed with a key derived from `key`. The folder lies beside a store, never in it, and is not
part of a backup.

A `ChainedLog` is an append-only file of JSON lines, each with the hash of the line before it, shared by
processes. A changed, removed or inserted line breaks the chain at that line. The first lines may be missing
only where a later entry says that they were removed by age. The removal of the last lines is detected only by
comparing with a hash kept elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import secrets
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import uuid4

from echoic.errors import StoreCorrupt, StoreUnavailable, WriteConflict
from echoic.memory.records import CONVERSATION, memory_id
from echoic.stores.apply import name_of
from echoic.stores.base import Drop, Erasable, Erased, Put, Record, Store, fsync_path
from echoic.types import Receipt, Scope, Turn

try:
    import fcntl
except ImportError:  # not on Windows, where only one process at a time may write
    fcntl = None  # type: ignore[assignment]

BEGIN: Final = "0" * 64
"""The previous hash of the first line."""
_TAIL: Final = 1 << 16


@contextlib.contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock file at `path`, creating it; other processes and threads wait."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)  # which releases it


class ChainedLog:
    """An append-only file of hash-chained JSON lines. Its folder must exist before the first append."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = path.with_name(path.name + "-lock")
        self._thread_lock = threading.Lock()

    def append(self, *entries: Mapping[str, Any], durable: bool = True) -> None:
        """Append a line for each entry; on disk when this returns if `durable`. Raises as `entries`."""
        with _told(self.path, "written"), self._thread_lock, locked(self._lock):
            self._append(entries, durable=durable)

    def _append(self, entries: tuple[Mapping[str, Any], ...], *, durable: bool) -> None:
        new = not self.path.exists()
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            number, before = self._last(fd)
            lines = b""
            for entry in entries:
                number += 1
                line = json.dumps({"n": number, "prev": before, **entry}, ensure_ascii=True).encode()
                lines, before = lines + line + b"\n", sha256(line).hexdigest()
            written = 0
            while written < len(lines):
                written += os.write(fd, lines[written:])
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        if new and durable:
            _sync(self.path.parent)

    def _last(self, fd: int) -> tuple[int, str]:
        """Number and hash of the last whole line; a partial line that a killed process left is cut off."""
        size = os.fstat(fd).st_size
        if not size:
            return 0, BEGIN
        reach = _TAIL
        while True:
            start = max(0, size - reach)
            tail = os.pread(fd, size - start, start)
            whole = tail[: tail.rfind(b"\n") + 1]
            first = whole[:-1].rfind(b"\n")
            if first >= 0 or start == 0:
                break
            reach *= 4
        if len(whole) < len(tail):
            os.ftruncate(fd, size - len(tail) + len(whole))
        if not whole:
            return 0, BEGIN
        line = whole[first + 1 : -1]
        return int(_entry(line, self.path)["n"]), sha256(line).hexdigest()

    def entries(self) -> list[dict[str, Any]]:
        """Every entry in order, with the chain checked; empty if there is no file.

        Raises:
            StoreCorrupt: a line was changed, removed or inserted; the message names it.
            StoreUnavailable: the file cannot be read.
        """
        return list(self.read()[0])

    def read(self) -> tuple[list[dict[str, Any]], str]:
        """The entries, and the hash of the last line; raises as `entries`."""
        with _told(self.path, "read"):
            try:
                raw = self.path.read_bytes()
            except FileNotFoundError:
                return [], BEGIN
        found: list[dict[str, Any]] = []
        before: str | None = None
        for line in raw[: raw.rfind(b"\n") + 1].splitlines():
            entry = _entry(line, self.path)
            here = BEGIN if entry["n"] == 1 else before or entry["prev"]  # older lines may be removed by age
            last = found[-1]["n"] if found else entry["n"] - 1
            if entry["prev"] != here or entry["n"] != last + 1:
                raise StoreCorrupt(
                    f"{str(self.path)!r}: line {entry['n']} does not follow the one before it: "
                    "a line was changed, removed or inserted there"
                )
            found.append(entry)
            before = sha256(line).hexdigest()
        if found and found[0]["n"] != 1:
            removals = [entry.get("first", found[0]["n"]) for entry in found if "removed" in entry]
            if removals[-1:] != [found[0]["n"]]:
                raise StoreCorrupt(
                    f"{str(self.path)!r}: the lines before line {found[0]['n']} are missing, and no entry "
                    "says that they were removed by age"
                )
        return found, before or BEGIN

    def page(self, after: int, limit: int, deployment: str) -> list[dict[str, Any]]:
        """The next `limit` entries of `deployment`; earlier lines are not read. Raises as `entries`."""
        found: list[dict[str, Any]] = []
        before: tuple[int, str] | None = None
        with _told(self.path, "read"), contextlib.suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(self._place(file, after))
            for whole in file:
                if len(found) == limit or not whole.endswith(b"\n"):
                    break
                entry = _entry(whole[:-1], self.path)
                if before is not None and (entry["n"] - 1, entry["prev"]) != before:
                    raise StoreCorrupt(
                        f"{str(self.path)!r}: line {entry['n']} does not follow the one before it"
                    )
                before = entry["n"], sha256(whole[:-1]).hexdigest()
                if entry["n"] > after and entry.get("deployment") == deployment:
                    found.append(entry)
        return found

    def _place(self, file: BinaryIO, after: int) -> int:
        """An offset at or before the first line after number `after`; numbers ascend."""
        low, high = 0, file.seek(0, os.SEEK_END)
        while high - low > _TAIL:
            middle = (low + high) // 2
            file.seek(middle)
            middle += len(file.readline())
            line = file.readline()
            if line.endswith(b"\n") and _entry(line[:-1], self.path)["n"] <= after:
                low = middle
            else:
                high = (low + high) // 2
        return low

    def head(self) -> str:
        """The hash of the last line."""
        told = _told(self.path, "read")
        with told, contextlib.suppress(FileNotFoundError), self._thread_lock, locked(self._lock):
            fd = os.open(self.path, os.O_RDWR)
            try:
                return self._last(fd)[1]
            finally:
                os.close(fd)
        return BEGIN

    def remove_before(self, at: str, note: Mapping[str, Any]) -> int:
        """Remove the entries whose "at" is before `at` and append `note`; returns how many were removed.

        The rest stays byte for byte, so that a later hash can still be checked. A broken chain raises
        StoreCorrupt.
        """
        with self._thread_lock, locked(self._lock):
            entries, head = self.read()
            keep = next((i for i, entry in enumerate(entries) if entry["at"] >= at), len(entries))
            keep = min(keep, max(0, len(entries) - 1))  # the last one stays: the chain goes on from it
            if not keep:
                return 0
            raw = self.path.read_bytes()
            lines = raw[: raw.rfind(b"\n") + 1].splitlines(keepends=True)[keep:]
            # in the same file as the rest: without this entry the beginning counts as cut off
            removal = {"n": entries[-1]["n"] + 1, "prev": head, **note}
            removal |= {"removed": keep, "first": entries[keep]["n"]}
            lines.append(json.dumps(removal, ensure_ascii=True).encode() + b"\n")
            _replace(self.path, b"".join(lines))
            _sync(self.path.parent)
        return keep


@contextlib.contextmanager
def _told(path: Path, doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"{str(path)!r} cannot be {doing}: {error.strerror}") from error


def _sync(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not on every system
        fsync_path(folder)


def _replace(path: Path, data: bytes) -> None:
    """Give `path` this content in one step, on disk when this returns."""
    new = path.with_name(path.name + "-new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _entry(line: bytes, path: Path) -> dict[str, Any]:
    try:
        entry = json.loads(line)
        if isinstance(entry["n"], int) and isinstance(entry["prev"], str):
            return dict(entry)
    except (ValueError, KeyError, TypeError):
        pass
    raise StoreCorrupt(f"{str(path)!r} holds a line that cannot be read: restore the file from a copy of it")


ERASURE: Final = "erasure"
"""The kind of the record that marks an erasure as carried out in a store. It does not name the user."""
MARKS: Final = Scope("echoic.erasures", None)
"""The scope of the marks. An erasure without a mark was made after this store's files were copied.

Until such a mark is written, one of the same id is in the scope itself if records there lost words only.

Further marks say when a user or a conversation was forgotten last. Their ids are hashes. One, `IDENTITY`, has
the ids of the store: several if a store was copied into another that was not empty."""
IDENTITY: Final = "store"
RESTORED: Final = "*"
"""Among the ids of a store that was just restored: what any store listed in the folder is erased in it."""
_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PastErasure:
    """A listed erasure, as hashes: they identify records that are at hand and reveal nothing else."""

    id: str
    scope: str
    gone: frozenset[str] | None
    """The records that were destroyed or are dropped if it is made again; None for the whole scope."""
    rewritten: frozenset[str]
    """The records from which words were destroyed."""
    stores: frozenset[str]
    """The ids of the store in which this happened; empty if the line says nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reworded(Put):
    """A replacement without words that no forgotten memory says: made again, the record is dropped whole."""


class Compliance:
    """A compliance folder, created on first use.

    Keep a copy of it apart from the store: without it, the erasures cannot be repeated in a restored backup.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.log = ChainedLog(self.folder / "erasures.jsonl")
        self._key: bytes | None = None
        self._applying = False
        self._known: tuple[Store, list[str]] | None = None
        self._failed: dict[Scope, dict[str, Sequence[Erasable] | None]] = {}

    def __repr__(self) -> str:
        return f"Compliance({str(self.folder)!r})"

    # -- the key. Blocking

    def key(self) -> bytes:
        """The folder's key, created on first use.

        Raises:
            StoreCorrupt: the key is missing although erasures were listed with it, or has the wrong length.
            StoreUnavailable: it cannot be read or written.
        """
        if self._key is None:
            try:
                self._key = self._read_key()
            except OSError as error:
                raise self._unusable(error) from error
        return self._key

    def _unusable(self, error: OSError) -> StoreUnavailable:
        return StoreUnavailable(
            f"the compliance folder {str(self.folder)!r} cannot be used: {error.strerror}"
        )

    def _read_key(self) -> bytes:
        path = self.folder / "key"
        if not path.exists():
            if self.log.path.exists():
                raise StoreCorrupt(
                    f"{str(path)!r} is missing, without which the listed erasures cannot be repeated: "
                    "put it back from a copy of the folder"
                )
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self.folder / "key-lock"):
                if not path.exists():  # two processes may be the first
                    _replace(path, secrets.token_hex(_KEY_BYTES).encode())
        try:
            key = bytes.fromhex(path.read_text(encoding="ascii").strip())
        except ValueError:
            key = b""
        if len(key) != _KEY_BYTES:
            raise StoreCorrupt(f"{str(path)!r} holds no key: put it back from a copy of the folder")
        return key

    def derived(self, purpose: str) -> bytes:
        """A key for one purpose, derived so that it reveals nothing about the others."""
        return hmac.digest(self.key(), purpose.encode(), "sha256")

    def pseudonym(self, scope: Scope) -> str:
        """The pseudonym of `scope` in lists, receipts and logs: 128 bits of a keyed hash."""
        return self._hashed("scope", scope.deployment, scope.user or "")

    def record(self, scope: Scope, kind: str, name: str) -> str:
        """The hash that stands for a record in the list of erasures."""
        return self._hashed("record", scope.deployment, scope.user or "", kind, name)

    def _hashed(self, *parts: str) -> str:
        told = "\0".join(part.replace("\0", "\0\0") for part in parts).encode(errors="surrogatepass")
        return hmac.new(self.derived("pseudonym"), told, sha256).hexdigest()[:32]

    # -- signatures. Blocking; they need the package `cryptography`

    def signed(self, statement: Mapping[str, Any]) -> dict[str, str]:
        """`statement` as JSON text with its Ed25519 signature; {} if `cryptography` is not installed."""
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        except ImportError:
            return {}
        key = Ed25519PrivateKey.from_private_bytes(self.derived("signature"))
        text = json.dumps(statement, ensure_ascii=True)
        public = key.public_key().public_bytes_raw()
        return {
            "statement": text,
            "signature": b64encode(key.sign(text.encode())).decode(),
            "key": b64encode(public).decode(),
        }

    async def receipt(self, scope: Scope, what: str, receipt: Receipt) -> Receipt:
        """`receipt` with a signed statement of its content, time and the user's pseudonym."""

        def sign() -> dict[str, str]:
            counted = asdict(replace(receipt, signed={}))
            del counted["signed"]
            return self.signed(
                {
                    "type": "echoic.erasure-receipt",
                    "id": uuid4().hex,
                    "at": datetime.now(UTC).isoformat(timespec="seconds"),
                    "deployment": scope.deployment,
                    "scope": self.pseudonym(scope),
                    "erased": what,
                    **counted,
                    "not_reached": ["backup files", "exported copies", "logs of model providers"],
                }
            )

        return replace(receipt, signed=await asyncio.to_thread(sign))

    # -- erasures

    async def erase(self, store: Store, scope: Scope, changes: Sequence[Erasable] | None) -> Erased:
        """`store.erase`, listed before it happens and marked in the store afterwards."""
        if self._applying or (changes is not None and not changes):
            return await store.erase(scope, changes)
        stores = await self._identity(store)
        async with self._holding(shared=True):
            name = await self._listed(scope, changes, stores)
            try:
                erased = await _erased(store, scope, changes, name)
                await self._done(store, scope, [name, *self._covered(scope, changes)])
            except WriteConflict:  # a conflict: nothing was or will be destroyed
                await asyncio.to_thread(self.log.append, {"id": name, "void": True})
                raise
            except BaseException:
                # it may have happened; if not, it is repeated before anything is written to the scope
                self._failed.setdefault(scope, {})[name] = changes
                raise
        return erased

    async def catch_up(self, store: Store, scope: Scope) -> None:
        """Repeat the failed erasures of `scope` before anything is written to it, and give the store its id.

        A new record may have the id of one that was to be erased, and would be erased with it at the next
        start.

        Raises:
            StoreUnavailable: an erasure failed again; nothing may be written before it succeeds.
        """
        await self._identity(store)
        if scope not in self._failed:
            return
        async with self._holding(shared=True):
            for name, changes in list(self._failed.get(scope, {}).items()):
                # a conflict: it had happened, or another process wrote to the scope since
                with contextlib.suppress(WriteConflict):
                    await _erased(store, scope, changes, name)
                await self._done(store, scope, [name])

    def _covered(self, scope: Scope, changes: Sequence[Erasable] | None) -> list[str]:
        """The earlier failed erasures that `changes` carry out as well."""
        failed = self._failed.get(scope, {})
        if changes is None:
            return list(failed)
        gone = set(map(name_of, changes))
        return [name for name, of in failed.items() if of is not None and gone.issuperset(map(name_of, of))]

    async def _done(self, store: Store, scope: Scope, names: Sequence[str]) -> None:
        await mark(store, names)
        if own := await store.scan(scope, ERASURE):  # a killed process may have left others
            marked = await store.read(MARKS, ERASURE, [record.id for record in own])
            await store.write(scope, [Drop(kind=ERASURE, id=record.id) for record in marked])
        failed = self._failed.get(scope, {})
        for name in names:
            failed.pop(name, None)
        if not failed:
            self._failed.pop(scope, None)

    async def _identity(self, store: Store) -> list[str]:
        """The ids of `store`, which gets one before anything is written to it."""
        if self._known is None or self._known[0] is not store:
            with contextlib.suppress(WriteConflict):  # another process gave it one
                if not {*await identity(store)} - {RESTORED}:
                    await identify(store, [uuid4().hex])
            self._known = (store, [name for name in await identity(store) if name != RESTORED])
        return self._known[1]

    async def _listed(self, scope: Scope, changes: Sequence[Erasable] | None, stores: Sequence[str]) -> str:
        """The id of an erasure that is now listed. If this is cancelled it is void: nothing was destroyed."""
        name = uuid4().hex
        listing = asyncio.ensure_future(asyncio.to_thread(self._list, name, scope, changes, stores))

        async def withdraw() -> None:
            with contextlib.suppress(StoreUnavailable):
                await listing  # a thread goes on
                await asyncio.to_thread(self.log.append, {"id": name, "void": True})

        try:
            await asyncio.shield(listing)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(withdraw()))
            raise
        return name

    def _list(
        self, name: str, scope: Scope, changes: Sequence[Erasable] | None, stores: Sequence[str]
    ) -> None:
        puts = [change.record for change in changes or () if isinstance(change, Put)]
        whole = [change for change in changes or () if isinstance(change, Drop | Reworded)]
        gone = [self.record(scope, *name_of(change)) for change in whole]
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.log.append(
            {
                "id": name,
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "stores": [*stores],
                "scope": self.pseudonym(scope),
                "gone": None if changes is None else gone,
                "rewritten": [self.record(scope, put.kind, put.id) for put in puts],
            }
        )

    def past(self) -> list[PastErasure]:
        """Every listed erasure. Blocking."""
        if not self.log.path.exists():
            return []
        self.key()
        entries = self.log.entries()
        void = {entry["id"] for entry in entries if entry.get("void")}
        return [
            PastErasure(
                id=entry["id"],
                scope=entry["scope"],
                gone=None if entry["gone"] is None else frozenset(entry["gone"]),
                rewritten=frozenset(entry["rewritten"]),
                stores=frozenset(entry.get("stores", ())),
            )
            for entry in entries
            if entry["id"] not in void
        ]

    async def repeated(self, store: Store) -> None:
        """Note that what is listed was repeated: from now on a restored store is one of several again."""
        if RESTORED in await identity(store):
            with contextlib.suppress(WriteConflict):  # another process did it
                await identify(store, await self._identity(store), instead_of=RESTORED)

    async def missing(self, store: Store) -> list[PastErasure]:
        """The erasures in this store that it has no mark of.

        A store without an id may be a copy, of before stores had ids, of any that the folder lists.
        """
        past = await asyncio.to_thread(self.past)
        if past and (own := await identity(store)) and RESTORED not in own:
            past = [each for each in past if not each.stores or not each.stores.isdisjoint(own)]
        if not past:
            return []
        marks = {mark.id for mark in await store.read(MARKS, ERASURE, [each.id for each in past])}
        return [each for each in past if each.id not in marks]

    @contextlib.asynccontextmanager
    async def applying(self) -> AsyncIterator[None]:
        """Inside, erasures are repeated: they are not listed again, and no other process erases."""
        async with self._holding():
            self._applying = True
            try:
                yield
            finally:
                self._applying = False

    @contextlib.asynccontextmanager
    async def _holding(self, *, shared: bool = False) -> AsyncIterator[None]:
        lock = contextlib.ExitStack()

        def take() -> None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock.enter_context(locked(self.folder / "applying-lock", shared=shared))

        taking = asyncio.ensure_future(asyncio.to_thread(take))
        try:
            await asyncio.shield(taking)
        except asyncio.CancelledError:
            # the thread goes on waiting, and then holds the lock
            taking.add_done_callback(lambda _: lock.close())
            raise
        except OSError as error:
            raise self._unusable(error) from error
        try:
            yield
        finally:
            lock.close()


async def _erased(store: Store, scope: Scope, changes: Sequence[Erasable] | None, name: str) -> Erased:
    """Erase, with a mark in the same step if words of records that stay are destroyed.

    Such a record looks like one that still has words to lose: it would be dropped whole if this process died
    before the erasure is marked in `MARKS`.
    """
    if changes is not None and any(isinstance(change, Put) for change in changes):
        changes = [*changes, _marking(name)]
    return await store.erase(scope, changes)


async def mark(store: Store, names: Sequence[str]) -> None:
    """Note in `store` that the erasures `names` were carried out in it."""
    await store.write(MARKS, [_marking(name) for name in names])


def _marking(name: str) -> Put:
    return Put(record=Record(kind=ERASURE, id=name, data={}))


async def identity(store: Store) -> list[str]:
    """The ids of `store`; none if nothing was written to it yet with a compliance folder."""
    found = await store.read(MARKS, ERASURE, [IDENTITY])
    return [*found[0].data["ids"]] if found else []


async def identify(store: Store, ids: Sequence[str], *, instead_of: str = "") -> None:
    """Give `store` these ids besides those it has; raises WriteConflict if another process does."""
    found = await store.read(MARKS, ERASURE, [IDENTITY])
    own = found[0].data["ids"] if found else []
    wanted = [name for name in dict.fromkeys([*own, *ids]) if name != instead_of]
    if wanted != own:
        new = Record(kind=ERASURE, id=IDENTITY, data={"ids": wanted})
        await store.write(MARKS, [Put.over(found[0] if found else None, new)])


def forgetting(scope: Scope, changes: Sequence[Erasable] | None, at: datetime) -> list[Put]:
    """The marks of an erasure of everything of a user, or of whole conversations; none of one of less."""
    if scope.user is None:
        return []
    drops = [change for change in changes or () if isinstance(change, Drop)]
    gone = [""] if changes is None else [drop.id for drop in drops if drop.kind == CONVERSATION]
    data = {"at": at.isoformat()}
    return [Put(record=Record(kind=ERASURE, id=_forgotten(scope, name), data=data)) for name in gone]


async def said_since(store: Store, scope: Scope, conversation: str, turns: Sequence[Turn]) -> list[Turn]:
    """Those of `turns` that were said since the conversation was forgotten last, alone or with everything.

    For turns that a framework or a platform delivers again.
    """
    names = [_forgotten(scope, ""), _forgotten(scope, conversation)]
    marks = await store.read(MARKS, ERASURE, names)
    times = [datetime.fromisoformat(mark.data["at"]) for mark in marks]
    return [turn for turn in turns if all(turn.said_at > at for at in times)]


async def unmark(store: Store, scope: Scope) -> None:
    """Remove the mark that everything of a user was forgotten, for one who was made up for a trial."""
    await store.write(MARKS, [Drop(kind=ERASURE, id=_forgotten(scope, ""))])


def _forgotten(scope: Scope, conversation: str) -> str:
    """The id of the mark of a conversation; of everything of a user if it is empty."""
    return memory_id(ERASURE, scope.deployment, scope.user or "", conversation)
