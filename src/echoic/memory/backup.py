"""Backup and restore. A backup is a SQLite file with the content of a store of any kind, and a checksum file
beside it.

A backup is made while others write, and is read back before it counts. It is restored into an empty store.

Data erased after the backup was made is erased again when the restored store is opened (`forget_again`). The
list of erasures holds hashes only, so the records to erase are found by hashing those that are there. A
record of which only some words were erased is dropped whole, since the list does not say which words.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path

from echoic.errors import InvalidInput, StoreCorrupt, StoreUnavailable
from echoic.memory.compliance import MARKS, RESTORED, Compliance, PastErasure, identify, mark
from echoic.memory.erasure import Erasing
from echoic.memory.export import CURSORS, KINDS, copy_memory, opened
from echoic.memory.records import (
    CHECKPOINT,
    CONVERSATION,
    GIVEN,
    INDEXED_ITEM,
    LINK_CODE,
    MEMORY,
    PHONE_LINE,
    PROPOSAL,
    TURN,
    scan_all,
)
from echoic.memory.service_context import Parts
from echoic.stores.base import Drop, Erasable, Put, Record, Store
from echoic.stores.bulk_copy import Copied, Progress, copy_while_written
from echoic.types import EmbeddingSpec, Scope

log = logging.getLogger(__name__)

SUFFIX = ".sha256"
"""Ending of the checksum file's name; `sha256sum --check` reads the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """A backup that was made and read back."""

    path: Path
    bytes: int
    sha256: str
    scopes: int
    records: int


async def back_up(
    source: Callable[[], Store], path: Path, embedding: EmbeddingSpec, *, progress: Progress
) -> BackedUp:
    """Write the content of a store to `path` while others go on writing.

    `source` returns the store, not opened yet; `embedding` is the model of its vectors if it does not say.
    Neither `path` nor its checksum file may exist (InvalidInput). After a StoreError no file is left behind.
    """
    checksum = path.with_name(path.name + SUFFIX)
    await asyncio.to_thread(_check_free, path, checksum)
    new = path.with_name(path.name + ".part")
    await asyncio.to_thread(_remove, new)
    try:
        async with opened(source, embedding) as (store, spec):
            if hasattr(store, "snapshot"):
                await store.snapshot(new)
            else:
                await _copy_to_file(store, new, spec, progress)
            scopes, records = await _counted(new, spec, store)
        digest = await asyncio.to_thread(_digest, new)
        await asyncio.to_thread(_publish, new, path, checksum, digest)
    except BaseException:
        await asyncio.to_thread(_remove, new)
        raise
    size = await asyncio.to_thread(lambda: path.stat().st_size)
    return BackedUp(path=path, bytes=size, sha256=digest, scopes=scopes, records=records)


async def restore(
    path: Path, target: Callable[[], Store], *, checked: bool = True, progress: Progress
) -> Copied:
    """Copy a backup into an empty store and compare the two at the end. The file at `path` is not changed.

    Open the restored store with its compliance folder: until then it contains what was erased since the
    backup. If a restore is interrupted, empty the target and start again.

    Args:
        path: the backup.
        target: returns the target store, not opened yet.
        checked: whether the checksum file is required.
        progress: called with the number of records copied and the total.

    Raises:
        InvalidInput: there is no such backup, its checksum is missing, or the target is not empty.
        StoreCorrupt: the backup was changed since it was written.
        StoreError: the target could not be written.
    """
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="echoic-restore-")
    try:
        copy = Path(folder) / "backup.db"  # opening it would upgrade it and write a log
        await asyncio.to_thread(_verified_copy, path, copy, checked=checked)
        source = _file_store(copy, target())
        any_model = EmbeddingSpec("", 0)
        async with opened(source, any_model) as (_, spec):
            pass
        async with opened(target, spec, as_it_is=False) as (store, _):
            held = [scope for scope in await store.scopes() if scope != MARKS]
            if held:
                raise InvalidInput(
                    f"the store holds {len(held)} users or deployments already: restore into an empty one, "
                    "such as --store sqlite:///restored.db"
                )
        done = await copy_memory(source, target, spec, named=True, progress=progress)
        async with opened(target, spec, as_it_is=False) as (store, _):
            # another store may have been used since, such as a new one after this was lost
            await identify(store, [RESTORED])
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return done.copied


def _file_store(path: Path, like: Store) -> Callable[[], Store]:
    """The backup in `path`; encrypted with the same keys if the other store is."""
    from echoic.stores import store_from

    around: Callable[[Store], Store] = getattr(like, "around", lambda store: store)
    return lambda: around(store_from(f"sqlite:////{str(path.absolute()).lstrip('/')}"))


async def _copy_to_file(store: Store, path: Path, spec: EmbeddingSpec, progress: Progress) -> None:
    async with opened(_file_store(path, store), spec) as (file, _):
        # a mark that is newer than the records would tell of an erasure that these did not undergo
        await copy_while_written(store, file, KINDS, cursors=CURSORS, first=MARKS, progress=progress)


async def _counted(path: Path, spec: EmbeddingSpec, like: Store) -> tuple[int, int]:
    """Open the backup as a restore will, and count its scopes and records."""
    async with opened(_file_store(path, like), spec) as (file, _):
        facts = await file.check()
        scopes = [scope for scope in await file.scopes() if scope != MARKS]
        return len(scopes), int(facts.get("records", 0))


def _check_free(path: Path, checksum: Path) -> None:
    for each in (path, checksum):
        if each.exists():
            raise InvalidInput(f"{str(each)!r} exists already: name another file")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {str(path.parent)!r}: create it first")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _publish(new: Path, path: Path, checksum: Path, digest: str) -> None:
    """Give the backup its final name, the checksum file first: a backup without one does not count."""
    try:
        fd = os.open(checksum, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(f"{digest}  {path.name}\n")
            file.flush()
            os.fsync(file.fileno())
        with new.open("rb") as written:
            os.fsync(written.fileno())
        new.rename(path)
    except OSError as error:
        raise StoreUnavailable(f"{str(path)!r} cannot be written: {error.strerror}") from error
    for beside in ("-wal", "-shm", "-lock"):
        new.with_name(new.name + beside).unlink(missing_ok=True)


def _verified_copy(path: Path, copy: Path, *, checked: bool) -> None:
    if not path.is_file():
        raise InvalidInput(f"there is no backup {str(path)!r}")
    checksum = path.with_name(path.name + SUFFIX)
    expected: str | None = None
    if checksum.is_file():
        expected = "".join(checksum.read_text(encoding="utf-8", errors="replace").split(maxsplit=1)[:1])
    elif checked:
        raise InvalidInput(
            f"{str(checksum)!r} is missing, so the backup cannot be verified: "
            "put it back, or use --without-checksum"
        )
    shutil.copyfile(path, copy)
    if expected is not None and _digest(copy) != expected:
        raise StoreCorrupt(f"{str(path)!r} is not the backup that was made: its checksum differs")


def _remove(new: Path) -> None:
    for beside in ("", "-wal", "-shm", "-lock"):
        new.with_name(new.name + beside).unlink(missing_ok=True)


_NAMING = {MEMORY: "author", PROPOSAL: "author", PHONE_LINE: "user", LINK_CODE: "whose"}
"""Kinds in the global scope whose records name a user, with the field: a user may be named only there."""
_SUMS_UP = ("summary", "recall_key")


async def forget_again(parts: Parts, compliance: Compliance) -> int:
    """Repeat erasures without a mark; returns how many. After StoreError nothing may be read."""
    async with compliance.applying():
        missing = await compliance.missing(parts.store)  # another process may have done it first
        by_scope: dict[str, list[PastErasure]] = {}
        for past in missing:
            by_scope.setdefault(past.scope, []).append(past)
        for scope in await _everybody(parts.store):
            listed = by_scope.get(compliance.pseudonym(scope), [])
            if any(past.gone is None for past in listed):
                await _erase_whole(parts, scope)
            elif listed:
                await _erase_part(parts, scope, compliance, listed)
        await mark(parts.store, [past.id for past in missing])
    if missing:
        log.warning("this store was restored from before %d erasures, which were made again", len(missing))
    return len(missing)


async def _everybody(store: Store) -> list[Scope]:
    """Every scope that holds records or is named in any; users before the global scope."""
    scopes = await store.scopes()
    named = {scope: None for scope in scopes if scope.user is not None}
    for everyone in [scope for scope in scopes if scope.user is None]:
        for kind, field in _NAMING.items():
            for record in await scan_all(store, everyone, kind):
                if isinstance(user := record.data.get(field), str) and user:
                    named[Scope(everyone.deployment, user)] = None
    return [*named, *(scope for scope in scopes if scope.user is None)]


async def _erase_whole(parts: Parts, scope: Scope) -> None:
    if scope.user is None:
        await parts.store.erase(scope)
    else:
        await Erasing(parts, scope).forget(None, None, None)


async def _erase_part(
    parts: Parts, scope: Scope, compliance: Compliance, listed: Sequence[PastErasure]
) -> None:
    gone = frozenset[str]().union(*(past.gone or () for past in listed))
    rewritten = frozenset[str]().union(*(past.rewritten for past in listed))
    before = await _records(parts.store, scope)
    hashes = {name: compliance.record(scope, *name) for name in before}
    meant = {name for name, told in hashes.items() if told in gone}
    losing = {name for name, told in hashes.items() if told in rewritten} - meant
    if scope.user is not None:
        # memories first: their words are removed from turns and summaries as these were then
        for kind, name in sorted(meant):
            if kind == MEMORY and await parts.store.read(scope, MEMORY, [name]):
                await Erasing(parts, scope).forget(None, None, name)
    there = await _records(parts.store, scope)
    changes: list[Erasable] = [Drop(kind=kind, id=name) for kind, name in meant & there.keys()]
    changes += [_stripped(there[name]) for name in losing & there.keys() if there[name] == before[name]]
    if scope.user is not None:  # these records may quote anything
        quoting = [name for name in there if name[0] in {GIVEN, CHECKPOINT} and name not in meant]
        changes += [Drop(kind=kind, id=name) for kind, name in quoting]
    if changes:
        await parts.store.erase(scope, changes)


def _stripped(record: Record) -> Erasable:
    """The record without its words, an unknown part of which was erased."""
    if record.kind != CONVERSATION:
        return Drop(kind=record.kind, id=record.id)
    left = {name: value for name, value in record.data.items() if name not in _SUMS_UP}
    return Put.over(record, replace(record, data=left))


async def _records(store: Store, scope: Scope) -> Mapping[tuple[str, str], Record]:
    found: dict[tuple[str, str], Record] = {}
    for kind in (MEMORY, TURN, INDEXED_ITEM, *KINDS):
        found |= {(record.kind, record.id): record for record in await scan_all(store, scope, kind)}
    return found
