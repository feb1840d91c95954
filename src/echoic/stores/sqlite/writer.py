"""The single writer of a process: a thread that commits queued changes, several at a time, and detects when a
file can no longer be trusted; and erasure down to the bytes, which this thread does alone.

After a failed write or sync nothing is acknowledged until the whole log was copied into the file and emptied,
and the file reopened and checked: the kernel may have marked pages clean that never reached the disk, and
whatever is appended after such a gap would be lost with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import stat
import struct
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import apsw
import numpy as np

from echoic.errors import NotOpen, StoreCorrupt, StoreError, StoreFull, StoreUnavailable
from echoic.partition import SEGMENT_ROWS, Flag, Segment
from echoic.stores.apply import (
    NEEDLE_BYTES,
    TELLING_BYTES,
    as_json,
    erasing,
    name_of,
    removed,
    sample,
    text_needles,
    vector_needle,
)
from echoic.stores.base import (
    FIRST_UNSEARCHABLE,
    Erasable,
    Erased,
    Index,
    Record,
    fsync_path,
    not_open,
    without_others,
)
from echoic.stores.sqlite import schema
from echoic.stores.sqlite.schema import NAMED, SCOPE_BITS, SqliteScopeChanges, find_scope, select_records
from echoic.types import Scope


def create_private(path: Path) -> None:
    """Create an empty `path`, readable only by its owner, unless it exists.

    SQLite gives its log and its shared memory the mode of this file each time it creates them.
    """
    # never open an existing database: closing the descriptor would release SQLite's locks on it
    with contextlib.suppress(FileExistsError):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if hasattr(os, "fchmod"):  # a umask may have removed the owner's bits as well
                os.fchmod(fd, 0o600)
        finally:
            os.close(fd)


def tighten(path: Path) -> None:
    """Apply `without_others` to `path`, if it exists; warn if this user may not."""
    if os.name == "nt":  # on Windows a mode does not concern other users
        return
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if (wanted := without_others(mode)) == mode:
            return
        try:
            path.chmod(wanted)
        except FileNotFoundError:
            return
        except OSError:
            log.warning("%s can be used by every user of this machine; run `chmod 600` on it", path)


def write_snapshot(source: apsw.Connection, path: Path) -> None:
    """Copy what `source` sees to `path` in one read transaction; then check the copy."""
    create_private(path)
    try:
        target = apsw.Connection(str(path))
        try:
            with target.backup("main", source, "main") as copying:
                copying.step(-1)
            target.pragma("journal_mode", "delete")  # one file, with no log beside it
            found = [row[0] for row in target.execute("pragma integrity_check(3)")]
        finally:
            target.close()
        fsync_path(path)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreCorrupt(f"the store cannot be backed up: {error}") from error
    except (apsw.Error, OSError) as error:
        raise StoreUnavailable(f"{str(path)!r} cannot be written: {error}") from error
    if found != ["ok"]:
        raise StoreCorrupt(f"the store cannot be backed up, it is damaged: {found[0]}; run `echoic doctor`")


try:
    import fcntl
except ImportError:  # not on Windows, where SQLite's own waiting must suffice
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger(__name__)

T = TypeVar("T")
CHECKPOINT_PAGES = 1000
"""Pages in the write-ahead log before they are copied into the file; SQLite's own default."""

# Errors of the disk, after which a file is suspect.
_FAULTS = (apsw.IOError, apsw.FullError, apsw.CorruptError, apsw.NotADBError, apsw.CantOpenError)


@dataclass(slots=True)
class _Job:
    work: Callable[[apsw.Connection], Any]
    done: Future[Any] = field(default_factory=Future)
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Commits jobs to one file from one thread. `start` before use; that and `stop` may be called twice."""

    def __init__(self, path: str, vfs: str | None) -> None:
        self._path, self._vfs = path, vfs
        self._jobs: deque[_Job] = deque()
        self._waking = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._closed: Future[None] | None = None
        self._connection: apsw.Connection | None = None
        self._lock_file: int | None = None
        self._log_pages = 0
        self.suspect: str | None = None
        """Why nothing is acknowledged at the moment; None if all is well."""
        self._forked = False
        _writers.add(self)

    def start(self) -> Future[None]:
        """Open the file, creating or upgrading it. Raises NotOpen in a forked child."""
        self.check_process()
        with self._waking:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="echoic-writer")
            return self._thread.submit(self._open)

    def submit(self, work: Callable[[apsw.Connection], T]) -> Future[T]:
        """Run `work` in a transaction, perhaps shared with other jobs; done once it is on the disk.

        Raises NotOpen if the writer is not running.
        """
        job = _Job(work)
        with self._waking:
            thread = self._running()
            self._jobs.append(job)
            if len(self._jobs) == 1:
                thread.submit(self._drain)
        return job.done

    def alone(self, work: Callable[[apsw.Connection], T]) -> Future[T]:
        """Run `work`, which handles transactions itself; raises NotOpen if it is not running."""
        with self._waking:
            return self._running().submit(self._alone, work)

    def stop(self) -> Future[None] | None:
        """Commit what is queued, then close. Every caller waits until that is done; not cancellable."""
        with self._waking:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._closed = Future()
                self._closed.set_running_or_notify_cancel()
                thread.submit(self._close_for, self._closed)
                thread.shutdown(wait=False)
            return self._closed

    def let_go(self) -> None:
        """Reset in a forked child: the thread does not exist here, and its lock must not stay taken."""
        self._forked = self._forked or self._thread is not None
        self._thread = self._closed = None
        self._waking = threading.Lock()
        self._jobs.clear()
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def check_process(self) -> None:
        """Raise NotOpen in a forked child: SQLite does not survive a fork."""
        if self._forked:
            raise NotOpen(
                f"{self._path!r} was opened before this process was forked off and cannot be used in it: "
                "open it after the fork, or start the process by spawn"
            )

    def _running(self) -> ThreadPoolExecutor:
        self.check_process()
        if self._thread is None:
            raise not_open()
        return self._thread

    def _alone(self, work: Callable[[apsw.Connection], T]) -> T:
        try:
            with self._locked():
                return work(self._sound())
        except (apsw.Error, OSError) as error:
            raise self._failed(error) from error

    def _drain(self) -> None:
        with self._waking:
            jobs = list(self._jobs)
            self._jobs.clear()
        try:
            with self._locked():
                self._commit(self._sound(), jobs)
        except (apsw.Error, OSError) as error:
            failure = self._failed(error)
            for job in jobs:
                job.error = failure
        except BaseException as error:  # noqa: BLE001 - a job must never wait for ever, whatever went wrong
            self._roll_back()
            for job in jobs:
                job.error = error
        for job in jobs:
            _settle(job)
        self._checkpoint_if_due()

    def _commit(self, connection: apsw.Connection, jobs: list[_Job]) -> None:
        connection.execute("begin immediate")
        for job in jobs:
            connection.execute("savepoint job")
            try:
                job.result = job.work(connection)
            except _FAULTS:
                raise
            except Exception as error:  # noqa: BLE001 - this job's alone: the others are committed
                job.error = error
                connection.execute("rollback to job")
            connection.execute("release job")
        connection.execute("commit")

    def _sound(self) -> apsw.Connection:
        """The connection, reopened and checked if the file was suspect."""
        if self.suspect is not None:
            try:
                self._verify()
            except apsw.Error as error:
                raise self._failed(error) from error
            self.suspect = None
        if self._connection is None:
            raise not_open()
        if self._moved(self._connection):
            # a write would go to a file that nobody opens again, and an erasure would miss the new one
            raise StoreUnavailable(
                f"{self._path!r} was removed or replaced while it was open; nothing was written. Put the "
                "former file back, or close and open it again to go on with what is there now"
            )
        return self._connection

    @staticmethod
    def _moved(connection: apsw.Connection) -> bool:
        """Whether the open file's name now belongs to another file, or to none."""
        moved = ctypes.c_int(0)
        connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
        return bool(moved.value)

    def _verify(self) -> None:
        # Every page of the log is written to the file anew and synced, so that no page rests on a sync
        # that failed; only then is the log begun again. By the connection that failed: it alone knows where
        # the log ends, and whoever read the log afresh would take in the write that was reported as failed.
        truncate_log(self._connection or self._connect())
        self._abandon()
        report = self._connect().execute("pragma quick_check(1)").get
        if report != "ok":
            raise StoreCorrupt(f"{self._path!r} failed its check after a disk fault: {report}")

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            with contextlib.suppress(apsw.Error):
                self._connection.execute("rollback")

    def _failed(self, error: apsw.Error | OSError) -> StoreError:
        """Our exception for `error`; marks the file as suspect if necessary."""
        self._roll_back()
        if not isinstance(error, _FAULTS):
            return StoreUnavailable(f"{self._path!r} could not be written: {error}. Retry.")
        self.suspect = f"{type(error).__name__}: {error}"
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            return StoreCorrupt(f"{self._path!r} is damaged ({error}); it is left untouched")
        if isinstance(error, apsw.FullError):
            return StoreFull(f"no space left for {self._path!r}; reads go on, free some and retry")
        return StoreUnavailable(
            f"{self._path!r} could not be made durable ({error}); it is checked before the next write. Retry."
        )

    def _open(self) -> None:
        if self._connection is not None:
            return
        try:
            self._lock_file = os.open(f"{self._path}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with self._locked():
                create_private(Path(self._path))
                schema.inspect(self._path, self._vfs)
                # their mode may come from an earlier version or another tool
                for beside in ("", "-wal", "-shm"):
                    tighten(Path(self._path + beside))
                schema.migrate(self._connect())
        except (apsw.FullError, apsw.CorruptError, apsw.NotADBError) as error:
            failure = self._failed(error)
            self._close()
            raise failure from error
        except (apsw.Error, OSError) as error:
            self._close()
            raise StoreUnavailable(
                f"{self._path!r} could not be opened: {error}. Does its folder exist, and may this user "
                "write there? It also holds the -wal, -shm and -lock files."
            ) from error
        except BaseException:
            self._close()
            raise

    def _connect(self) -> apsw.Connection:
        self._connection = schema.connect(self._path, self._vfs)
        self._connection.set_wal_hook(self._committed)
        return self._connection

    def _committed(self, _connection: apsw.Connection, _database: str, log_pages: int) -> int:
        self._log_pages = log_pages
        return 0  # SQLITE_OK

    def _close_for(self, closed: Future[None]) -> None:
        try:
            self._close()
        finally:
            closed.set_result(None)

    def _close(self) -> None:
        # While holding the lock: the last connection to close copies the log into the file and removes it.
        with contextlib.suppress(OSError), self._locked():
            if self._connection is not None and self.suspect is None:
                with contextlib.suppress(apsw.Error):
                    self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._abandon()
        self._abandon()
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def _abandon(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            schema.close(connection)

    def _checkpoint_if_due(self) -> None:
        """Checkpoint after the answers went out, so that only the next writer waits for it."""
        if self._connection is None or self.suspect is not None:
            return
        if self._log_pages < CHECKPOINT_PAGES:
            return
        try:
            with self._locked():
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._log_pages = 0
        except (apsw.Error, OSError) as error:
            self._failed(error)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the file's lock among processes: the kernel's queue is fair, SQLite's waiting is not.

        It is a file of its own: closing any descriptor of the database would release SQLite's locks on it.
        """
        if fcntl is None or self._lock_file is None:
            yield
            return
        fcntl.flock(self._lock_file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)


def truncate_log(connection: apsw.Connection) -> None:
    """Copy the whole log into the file, sync and empty it; BusyError if another holds it too long."""
    until = time.monotonic() + schema.BUSY_TIMEOUT_MS / 1000
    while connection.execute("pragma wal_checkpoint(truncate)").get[0]:
        if time.monotonic() > until:
            raise apsw.BusyError("a reader holds the write-ahead log")
        time.sleep(0.01)  # SQLite waits for readers, but not for another connection's checkpoint


def _settle(job: _Job) -> None:
    if job.done.set_running_or_notify_cancel():
        if job.error is not None:
            job.done.set_exception(job.error)
        else:
            job.done.set_result(job.result)


_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


def _after_fork() -> None:
    for writer in list(_writers):
        writer.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# -- erasure down to the bytes

_CHUNK = 8 << 20
_SAMPLES = 16
"""The most texts, words and vectors searched for: they check the rewriting, which does not depend on them."""
_MEMORY_BYTES = 64 << 20
"""Larger files are rewritten through an unnamed temporary file instead of memory."""
_UNFINISHED = "unfinished erasure"


def erase(
    connection: apsw.Connection, path: Path, scope: Scope, changes: Sequence[Erasable] | None, index: Index
) -> Erased:
    """Destroy what `changes` drop and replace, or the whole scope, and verify it on the bytes.

    `delete` alone, even with `secure_delete`, leaves copies in the write-ahead log, and a rebuilt page keeps
    fragments of its previous cells between its pointers and its cells, including content replaced long ago
    that cannot be searched for. So the log is emptied, every page is checked, and a file with such fragments
    is rewritten. Samples of the removed content are also searched for. An interrupted erasure is marked in
    the file and finished by the next one.

    Handles its own transactions.
    """
    found = find_scope(connection, scope)
    unfinished = schema.get_meta(connection, _UNFINISHED) is not None
    if found is None and not unfinished:
        return Erased(verified=True)
    records: list[Record] = []
    rewritten: list[tuple[Record, Record]] = []
    needles: list[bytes] = []
    vectors = 0
    if found is not None:
        with schema.transaction(connection):
            records, rewritten = erasing(_records(connection, found[0], changes), changes or ())
            said = [*records, *(removed(*both) for both in rewritten)]
            needles, vectors = _needles(connection, found[0], said)
            if changes is None:
                _delete_scope(connection, found[0])
            else:
                changing = SqliteScopeChanges(connection, scope, index)
                changing.apply(changes)
                changing.finish()
                if not connection.execute("select 1 from records where scope = ?", (found[0],)).get:
                    _delete_scope(connection, found[0])  # no user's name stays without data
            schema.set_meta(connection, _UNFINISHED, "yes")
    verified, searched = _scrub(connection, path, needles, rewrite=unfinished)
    if verified:
        schema.drop_meta(connection, _UNFINISHED)
    return Erased(
        records=dict(Counter(record.kind for record in records)),
        rewritten=len(rewritten),
        vectors=vectors,
        verified=verified,
        bytes_searched=searched,
    )


def _records(connection: apsw.Connection, number: int, changes: Sequence[Erasable] | None) -> list[Record]:
    if changes is None:
        return select_records(connection, "scope = ?", (number,))
    names = dict.fromkeys(map(name_of, changes))  # count each once
    return [r for name in names for r in select_records(connection, NAMED, (number, *name))]


def _delete_scope(connection: apsw.Connection, number: int) -> None:
    first, last = number << SCOPE_BITS, ((number + 1) << SCOPE_BITS) - 1
    connection.execute("delete from pending where record between ? and ?", (first, last))
    for table in ("records", "segments", "vectors", "tokens"):
        connection.execute(f"delete from {table} where id between ? and ?", (first, last))  # noqa: S608 - ours
    connection.execute("delete from scopes where id = ?", (number,))


def _needles(connection: apsw.Connection, number: int, records: Sequence[Record]) -> tuple[list[bytes], int]:
    """Samples of what is about to be removed, and how many vectors there are."""
    texts = [
        needle
        for record in sample(records, _SAMPLES)
        for needle in text_needles(record.data, lambda text: [as_json(text)])
    ]
    words: list[bytes] = []
    vectors = _token_needles(connection, number, records)
    count = 0
    by_segment: dict[int, list[int]] = {}
    for record in records:
        if record.seq < FIRST_UNSEARCHABLE:
            by_segment.setdefault(record.seq // SEGMENT_ROWS, []).append(record.seq % SEGMENT_ROWS)
    for place, slots in by_segment.items():
        key = (number << SCOPE_BITS) | place
        stored = connection.execute("select words from segments where id = ?", (key,)).get
        data = connection.execute("select data from vectors where id = ?", (key,)).get
        if stored is None:
            continue
        segment = Segment.from_bytes(stored, data)
        embedded = [slot for slot in slots if segment.rows[slot]["flags"] & Flag.EMBEDDED]
        count += len(embedded)
        if segment.vectors is not None:
            vectors += [needle for slot in embedded[:1] if (needle := vector_needle(segment.vectors[slot]))]
        if len(slots) == int((segment.rows["kind"] != 0).sum()):  # all of its words are removed
            listed = "\n".join(segment.words).encode()[:NEEDLE_BYTES]
            words += [listed] if len(listed) >= TELLING_BYTES else []
    return [*texts, *sample(words, _SAMPLES), *sample(vectors, _SAMPLES)], count


def _token_needles(connection: apsw.Connection, number: int, records: Sequence[Record]) -> list[bytes]:
    found: list[bytes] = []
    for record in sample([r for r in records if r.seq < FIRST_UNSEARCHABLE], _SAMPLES):
        key = (number << SCOPE_BITS) | record.seq
        data: bytes = connection.execute("select data from tokens where id = ?", (key,)).get or b""
        found += [data[:NEEDLE_BYTES]] if len(data) >= NEEDLE_BYTES and any(data[:NEEDLE_BYTES]) else []
    return found


def _scrub(
    connection: apsw.Connection, path: Path, needles: Iterable[bytes], *, rewrite: bool
) -> tuple[bool, int]:
    """Remove deleted bytes; returns whether no needle is left, and the bytes searched."""
    truncate_log(connection)
    rewrite = rewrite or _has_stale_page(connection)
    if rewrite:
        _rewrite(connection)
    left, searched = _search(connection, path, set(needles))
    if left and not rewrite:
        _rewrite(connection)
        left, again = _search(connection, path, left)
        searched += again
    return not left, searched


def _rewrite(connection: apsw.Connection) -> None:
    size = connection.pragma("page_count") * connection.pragma("page_size")
    if size > _MEMORY_BYTES:
        connection.execute("pragma temp_store = file")
    try:
        connection.execute("vacuum")
    finally:
        connection.execute("pragma temp_store = memory")
    truncate_log(connection)


def _search(connection: apsw.Connection, path: Path, needles: set[bytes]) -> tuple[set[bytes], int]:
    """Which needles the file or its log contains though no row does, and how many bytes were read."""
    found: set[bytes] = set()
    read = 0
    tail = b""
    for chunk in chain(_pages(connection), _log_bytes(path)):
        read += len(chunk)
        window = tail + chunk
        found.update(needle for needle in needles - found if needle in window)
        tail = window[-NEEDLE_BYTES:]
    return {needle for needle in found if not _alive(connection, needle)}, read


def _pages(connection: apsw.Connection) -> Iterator[bytes]:
    """The database file, many whole pages at a time.

    Read through SQLite's own handle: closing another one would release this process's locks on the file.
    """
    page_size = connection.pragma("page_size")
    size = connection.pragma("page_count") * page_size
    for offset in range(0, size, _CHUNK):  # a multiple of every page size
        yield connection.read("main", 0, offset, min(_CHUNK, size - offset))[1]


def _log_bytes(path: Path) -> Iterator[bytes]:
    log = path.with_name(path.name + "-wal")
    if log.exists():
        with log.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk


def _has_stale_page(connection: apsw.Connection) -> bool:
    page_size = connection.pragma("page_size")
    for pages in _pages(connection):
        kinds = np.frombuffer(pages, np.uint8)[::page_size]
        for number in np.flatnonzero(np.isin(kinds, _WITH_CONTENT)):
            if _is_stale(pages[number * page_size : (number + 1) * page_size]):
                return True
    return False


# Index pages and leaves of tables; the inner pages of a table hold numbers only. A page of an overflowing
# record begins with the number of the next one, far below these in the first byte of a file under 128 GiB.
_INNER_INDEX, _LEAF_INDEX, _LEAF_TABLE = 2, 10, 13
_WITH_CONTENT = (_INNER_INDEX, _LEAF_INDEX, _LEAF_TABLE)


def _is_stale(page: bytes) -> bool:
    """Whether the unused bytes before the cells are not empty (SQLite's file format, section 1.6)."""
    cells, first_cell = struct.unpack_from(">HH", page, 3)
    at = (12 if page[0] == _INNER_INDEX else 8) + 2 * cells
    end = first_cell or 65536
    for (pointer,) in struct.iter_unpack(">H", page[at : end - (end - at) % 2]):
        if not 0 < pointer <= len(page):  # old pointers contain no data
            break
        at += 2
    return any(page[at:end])


def _alive(connection: apsw.Connection, needle: bytes) -> bool:
    """Whether a remaining row contains the same: two people may live in one town, or be named after it."""
    contents = (("records", "data"), ("segments", "words"), ("vectors", "data"), ("tokens", "data"))
    names = (("records", "name"), ("records", "key"), ("scopes", "user"), ("scopes", "deployment"))
    places = contents + names
    queries = (f"select 1 from {t} where instr(cast({c} as blob), ?) limit 1" for t, c in places)  # noqa: S608 - ours
    return any(connection.execute(query, (needle,)).get for query in queries)
