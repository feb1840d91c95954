"""Who has a file in a folder, without looking at every file each time. Blocking; keeps no contents.

This process tells what it changed. Every process adds a byte to one small file after each write, so that a
file that grew otherwise than by our own writes says: look at everything again. What a person does with an
editor is told by nobody; for that everything is looked at again once in a while.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from echoic.errors import StoreCorrupt, StoreTooNew
from echoic.stores.base import Wanted
from echoic.stores.cache import Listings
from echoic.stores.files import disk
from echoic.stores.files.document import DocumentOrigin
from echoic.stores.files.folder import Folder
from echoic.types import Scope

LOOK_AGAIN_S = 2.0
"""How long a change by hand may go unseen by those who ask for all users at once. Who asks for that user sees
it at once."""
_SHARE = 20
"""Looking at everything takes at most one part in so many of the time."""
_CHANGES = ".echoic.changes"
_CHANGES_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileState:
    """A user's file as it was when it was last looked at."""

    path: Path
    scope: Scope | None
    """None where the file should tell, and cannot be read."""
    states: tuple[disk.FileStamp | None, disk.FileStamp | None]
    """The states of the memory file and of its vectors."""
    began: int = 0
    records: int = 0
    trouble: str | None = None
    """Why it cannot be read; None if it can."""
    told: int = 0
    """How often somebody told of it: a write in progress answers as before while its file is new already."""


class Register:
    """What is known of each file of `folder`. Used by any thread."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._changes = folder.root / _CHANGES
        self._lock = threading.Lock()  # held while files are looked at
        self._known: dict[Path, FileState] = {}
        self._listings = Listings()
        self._waits: dict[Path, int] = {}
        """Files in which something may wait, and since when; 0: not asked yet as they are now."""
        self._telling = threading.Lock()  # short: a writer has to wait for it
        self._touched: dict[Path, Scope] = {}
        self._own_writes = 0
        self._other_writes: int | None = None
        """The writes of other processes when every file was last looked at; None if that never happened."""
        self._look_again = 0.0

    def touched(self, path: Path, scope: Scope) -> None:
        """The file of `scope` was seen to be another than it was."""
        with self._telling:
            self._touched[path] = scope

    def wrote(self, path: Path, scope: Scope) -> None:
        """This process changed the file of `scope`; others are told."""
        with self._telling:
            self._touched[path] = scope
            with contextlib.suppress(OSError):  # they will find out by themselves
                disk.append(self._changes, b".")
                self._own_writes += 1

    def all(self, deployment: str | None = None) -> list[FileState]:
        """Every file, in the order in which their scopes were first written; those of old first, by name."""
        with self._lock:
            self._look()
            found = [
                known
                for known in self._known.values()
                if deployment is None or (known.scope is not None and known.scope.deployment == deployment)
            ]
        return sorted(found, key=lambda known: (known.began, known.path))

    def holding(self, deployment: str | None = None) -> list[Scope]:
        """Every scope that holds a record. A file that cannot be read is passed over: `check` tells."""
        return [known.scope for known in self.all(deployment) if known.scope is not None and known.records]

    def listed(self, wanted: Wanted) -> dict[Scope, list[str]]:
        """The ids of the records that are `wanted`, by scope, without reading a file that did not change."""
        with self._lock:
            self._look()
            return self._listings.find(wanted)

    def waiting(self) -> list[tuple[int, FileState]]:
        """Files in which something may wait, and since when, the longest-waiting first; 0: not known."""
        with self._lock:
            self._look()
            found = [(since, self._known[path]) for path, since in self._waits.items()]
        return sorted((f for f in found if f[1].scope is not None), key=lambda item: item[0])

    def noted(self, asked: Mapping[Path, tuple[FileState, int | None]]) -> None:
        """Since when something waited in files when they were as they are known here; None: nothing does."""
        with self._lock:
            for path, (known, since) in asked.items():
                if self._known.get(path) != known:
                    continue
                if since is None:
                    self._waits.pop(path, None)
                else:
                    self._waits[path] = since

    def _look(self) -> None:
        with disk.translated(self._folder.root, "read"):
            began = time.monotonic()
            with self._telling:
                touched, self._touched = self._touched, {}
                state = disk.seen(self._changes)
                others = (state.size if state is not None else 0) - self._own_writes
            try:
                if others != self._other_writes or began >= self._look_again:
                    self._look_at_all()
                    took = time.monotonic() - began
                    self._other_writes, self._look_again = others, began + max(LOOK_AGAIN_S, _SHARE * took)
                for path, scope in touched.items():
                    self._look_at(path, scope)
                    self._ask_again(path)
            except BaseException:
                with self._telling:  # nobody else will tell of these
                    self._touched = touched | self._touched
                raise

    def _look_at_all(self) -> None:
        listed = {found.path: found.scope for found in self._folder.files()}
        for path in self._known.keys() - listed.keys():
            self._drop(path)
        for path, scope in listed.items():
            self._look_at(path, scope)

    def _look_at(self, path: Path, scope: Scope | None) -> None:
        states = (disk.seen(path), disk.seen(f"{str(path).removesuffix(self._folder.suffix)}.vectors"))
        known = self._known.get(path)
        if known is not None and known.states == states:
            return
        if states[0] is None:
            self._drop(path)
            return
        if known is None or known.states[0] != states[0]:
            known = self._read(path, scope, states[0])
        self._known[path] = replace(known, states=states)
        self._waits[path] = 0

    def _ask_again(self, path: Path) -> None:
        """Have what waits in `path` asked for again, and no earlier answer noted."""
        if (known := self._known.get(path)) is not None:
            self._known[path] = replace(known, told=known.told + 1)
            self._waits[path] = 0

    def _drop(self, path: Path) -> None:
        known = self._known.pop(path, None)
        if known is not None and known.scope is not None:
            self._listings.drop(known.scope)
        self._waits.pop(path, None)

    def _read(self, path: Path, scope: Scope | None, state: disk.FileStamp) -> FileState:
        source = DocumentOrigin(path, state.mtime_ns)
        states = (state, None)
        try:
            document = self._folder.read(source)
        except (StoreCorrupt, StoreTooNew) as error:
            return FileState(path, scope, states, trouble=str(error))
        except FileNotFoundError:
            return FileState(path, scope, states)
        hashed = self._folder.is_hashed(path)
        owner = document.header.owner if hashed else scope
        if owner is None or (hashed and self._folder.path_of(owner) != path):
            return FileState(path, None, states, trouble=str(source.corrupt("it does not tell whose it is")))
        self._folder.clock.not_before(document.header.began)
        self._listings.replace(owner, (item.record for item in document.others))
        return FileState(path, owner, states, document.header.began, len(document.items))

    def begin(self) -> None:
        """Keep the file of changes short."""
        with contextlib.suppress(OSError):
            if (state := disk.seen(self._changes)) is not None and state.size > _CHANGES_BYTES:
                os.truncate(self._changes, 0)
