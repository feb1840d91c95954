"""The single writer of a process: a thread that commits queued changes, several at a time, and detects when a
file can no longer be trusted.

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
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import apsw

from echoic.errors import NotOpen, StoreCorrupt, StoreError, StoreFull, StoreUnavailable
from echoic.stores.base import not_open, without_others
from echoic.stores.sqlite import schema


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
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
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
                for beside in (
                    "",
                    "-wal",
                    "-shm",
                ):  # their mode may come from an earlier version or another tool
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
