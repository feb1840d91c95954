"""The folder of a files store: which file belongs to whom, and the shared settings. Blocking.

    <folder>/.echoic.json             the layout, and the model of the vectors
    <folder>/ana.json                 user "ana" of the default deployment
    <folder>/ana.vectors, ana.lock    beside it
    <folder>/%everyone.json           what is global in the default deployment
    <folder>/acme/ana.json            user "ana" of the deployment "acme"

Ids become file names reversibly. A safe id (letters, digits, `_-.@+`) is its own name. Everything else is
percent-encoded in UTF-8: separators, control characters, spaces, letters beyond a-z (which some systems store
in another normal form), a leading or trailing dot, the first letter of a name that Windows reserves. On file
systems that ignore case, capitals are encoded too. A name that becomes too long is cut and hashed; such a
file contains its owner.

Each process adds a byte to one small file after each write (`Register`). If that file grew by more than our
own writes, every file is checked again. Edits by hand are not announced; for those every file is checked once
in a while.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from echoic.errors import InvalidInput, StoreCorrupt, StoreError, StoreTooNew
from echoic.stores.base import Wanted, check_model
from echoic.stores.files import disk
from echoic.stores.files.document import FORMAT, Document, DocumentOrigin
from echoic.stores.files.layouts import JsonDocument, MarkdownDocument
from echoic.stores.scope_state import Clock, Listings
from echoic.types import EmbeddingSpec, Scope

LOOK_AGAIN_S = 2.0
"""Seconds for which queries over all users may miss a change by hand. A query for that user sees it at once.
"""
_SHARE = 20
"""Checking every file takes at most one part in so many of the time."""
_OF_PROCESS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""Errors that say nothing about the file they met."""
_CHANGES = ".echoic.changes"
_CHANGES_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileState:
    """A user's file as it was last seen."""

    path: Path
    scope: Scope | None
    """None if only the file can tell, and it cannot be read."""
    states: tuple[disk.FileStamp | None, disk.FileStamp | None]
    """The states of the memory file and of its vectors; none if the system did not let us read it, so that it
    is tried again: permissions change without the file."""
    began: int = 0
    records: int = 0
    failure: str | None = None
    """Why it cannot be read; None if it can."""
    told: int = 0
    """How often it was announced: a write in progress answers with the old state while its file is already
    new."""


class Register:
    """The known state of each file of `folder`. Thread-safe."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._changes = folder.root / _CHANGES
        self._lock = threading.Lock()  # held while files are checked
        self._known: dict[Path, FileState] = {}
        self._listings = Listings()
        self._waits: dict[Path, int] = {}
        """Files that may have pending records, and since when; 0: not checked in their current state."""
        self._telling = threading.Lock()  # held briefly: writers wait for it
        self._touched: dict[Path, Scope] = {}
        self._own_writes = 0
        self._other_writes: int | None = None
        """The writes of other processes when every file was last checked; None if that never happened."""
        self._look_again = 0.0

    def touched(self, path: Path, scope: Scope) -> None:
        """Note that the file of `scope` was found changed."""
        with self._telling:
            self._touched[path] = scope

    def wrote(self, path: Path, scope: Scope) -> None:
        """Note that this process changed the file of `scope`, and announce it to others."""
        with self._telling:
            self._touched[path] = scope
            with contextlib.suppress(OSError):  # other processes will find out themselves
                disk.append(self._changes, b".")
                self._own_writes += 1

    def all(self, deployment: str | None = None) -> list[FileState]:
        """Every file, in the order in which their scopes were first written; older ones first, by name."""
        with self._lock:
            self._look()
            found = [
                known
                for known in self._known.values()
                if deployment is None or (known.scope is not None and known.scope.deployment == deployment)
            ]
        return sorted(found, key=lambda known: (known.began, known.path))

    def holding(self, deployment: str | None = None) -> list[Scope]:
        """Every scope that has a record. A file that cannot be read is skipped: `check` reports it."""
        return [known.scope for known in self.all(deployment) if known.scope is not None and known.records]

    def listed(self, wanted: Wanted) -> dict[Scope, list[str]]:
        """The ids of the records that are `wanted`, by scope; unchanged files are not read."""
        with self._lock:
            self._look()
            return self._listings.find(wanted)

    def waiting(self) -> list[tuple[int, FileState]]:
        """Files that may have pending records, and since when, the oldest first; 0: not known."""
        with self._lock:
            self._look()
            found = [(since, self._known[path]) for path, since in self._waits.items()]
        return sorted((f for f in found if f[1].scope is not None), key=lambda item: item[0])

    def noted(self, asked: Mapping[Path, tuple[FileState, int | None]]) -> None:
        """Note since when records have been pending in files in the given state; None if none are."""
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
                with self._telling:  # nothing else announces these
                    self._touched = touched | self._touched
                raise

    def _look_at_all(self) -> None:
        listed = dict(self._folder.files())
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
        self._known[path] = known if known.states[0] is None else replace(known, states=states)
        self._waits[path] = 0

    def _ask_again(self, path: Path) -> None:
        """Have pending records in `path` looked up again, ignoring earlier answers."""
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
            return FileState(path, scope, states, failure=str(error))
        except FileNotFoundError:
            return FileState(path, scope, states)
        except OSError as error:  # one user's file keeps nobody else from being listed
            if error.errno in _OF_PROCESS:
                raise
            failure = f"{str(path)!r} could not be read: {error.strerror or error}"
            return FileState(path, scope, (None, None), failure=failure)
        hashed = self._folder.is_hashed(path)
        owner = document.header.owner if hashed else scope
        if owner is None or (hashed and self._folder.path_of(owner) != path):
            return FileState(path, None, states, failure=str(source.corrupt("it does not tell whose it is")))
        self._folder.clock.not_before(document.header.began)
        self._listings.replace(owner, (item.record for item in document.others))
        return FileState(path, owner, states, document.header.began, len(document.items))

    def begin(self) -> None:
        """Keep the file of changes short."""
        with contextlib.suppress(OSError):
            if (state := disk.seen(self._changes)) is not None and state.size > _CHANGES_BYTES:
                os.truncate(self._changes, 0)


EVERYONE = "%everyone"
"""The name of the global scope: no id is encoded like this, since "%ev" is not a byte."""
MAX_NAME = 150
"""Characters of a name before it is hashed; nearly every system allows 255 bytes, endings included."""
ENDINGS = (".json", ".md", ".vectors", ".lock")
"""Endings of a user's files. The name of a deployment's folder has none of them."""

_SAFE = re.compile(r"[A-Za-z0-9_\-.@+]")
_ENCODED = re.compile(r"(?:[^%]|%[0-9A-F]{2})*")
_HASHED = re.compile(r"%=[0-9a-f]{64}$")
# https://learn.microsoft.com/windows/win32/fileio/naming-a-file, whatever follows the first dot
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)", re.IGNORECASE)


def encode(name: str, *, folder: bool = False, folds_case: bool = False) -> str:
    """The file name of `name`, an id of 1 to 256 characters, without an ending.

    `folder`: it will name a folder, which must not look like a user's file. `folds_case`: the file system
    ignores case.
    """
    found = "".join(
        char if _SAFE.match(char) and not (folds_case and char.isupper()) else _percent(char) for char in name
    )
    if found.startswith(".") or _RESERVED.match(found):
        found = _percent(found[0]) + found[1:]
    if folder and found.lower().endswith(ENDINGS):
        stem, _, ending = found.rpartition(".")
        found = f"{stem}%2E{ending}"
    if found.endswith("."):
        found = f"{found[:-1]}%2E"
    if len(found) > MAX_NAME:
        found = f"{found[:60]}%={sha256(name.encode()).hexdigest()}"
    return found


def decode(stem: str, *, folder: bool = False, folds_case: bool = False) -> str | None:
    """The id whose file name is `stem`; None if there is none, or if it is hashed."""
    if not _ENCODED.fullmatch(stem):
        return None
    try:
        name = re.sub(
            rb"%([0-9A-F]{2})", lambda found: bytes.fromhex(found[1].decode()), stem.encode()
        ).decode()
    except (UnicodeDecodeError, UnicodeEncodeError):
        return None
    return name if name and encode(name, folder=folder, folds_case=folds_case) == stem else None


def is_hashed(stem: str) -> bool:
    """Whether `stem` was cut and hashed, so that only the file contains the id."""
    return _HASHED.search(stem) is not None


def plain(name: str) -> str | None:
    """The file name that another program may have made of `name` by adding an ending.

    None if that would be another user's name here, or a path outside the folder.
    """
    odd = any(char in name for char in "/\\\0") or name.startswith((".", "%")) or name.endswith(".")
    if odd or is_hashed(name) or len(name.encode()) > MAX_NAME:
        return None
    return name if decode(name) in {None, name} else None


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())


DEFAULT_DEPLOYMENT = "default"
"""Its users' files are in the folder itself, like those of a program without deployments."""
LAYOUTS: dict[str, type[Document]] = {"json": JsonDocument, "markdown": MarkdownDocument}
_SETTINGS, _LOCK = ".echoic.json", ".echoic.lock"


class Folder:
    """The folder of the files, created if needed. Call `open` before use."""

    def __init__(self, root: Path, layout: str) -> None:
        self.root = root
        self.layout = layout
        self.document = LAYOUTS[layout]
        self.suffix = self.document.suffix
        self.clock = Clock()
        self._folds_case = False
        self._settings_seen: disk.FileStamp | None = None
        self._settings: dict[str, Any] = {}

    def open(self, spec: EmbeddingSpec) -> None:
        """Prepare the folder, and remove what a crash left behind.

        Raises:
            EmbeddingMismatch: it holds vectors of another model; nothing was changed.
            InvalidInput: the files here have the other layout.
            StoreCorrupt: the settings cannot be read, or this is not a folder; left unchanged.
            StoreTooNew: a newer version wrote them; left unchanged.
        """
        if self.root.exists() and not self.root.is_dir():
            raise StoreCorrupt(f"{str(self.root)!r} is not a folder; it is left untouched")
        with disk.translated(self.root, "opened"):
            disk.make_folder(self.root)
            with disk.locked(self.root / _LOCK):
                settings = self._read_settings()
                self._check_layout(settings)
                if not settings:
                    self._write_settings(spec)
                self.check_model(spec)
            self._folds_case = disk.folds_case(self.root)
            for folder in self._folders():
                self._sweep(folder)
                if self._folds_case:
                    self._encode_capitals(folder)

    def check_model(self, spec: EmbeddingSpec) -> None:
        """Raise EmbeddingMismatch if the vectors here are not of `spec`."""
        settings = self._read_settings()
        found = EmbeddingSpec(settings.get("model", ""), settings.get("dimensions", 0))
        check_model(found, spec, repr(str(self.root)))

    def change_model(self, spec: EmbeddingSpec) -> None:
        """Change the embedding model to `spec`: vectors of another model are ignored."""
        with disk.translated(self.root, "written"), disk.locked(self.root / _LOCK):
            self._write_settings(spec)

    def path_of(self, scope: Scope) -> Path:
        """The file of `scope`, which may not exist."""
        folder = self.root
        if scope.deployment != DEFAULT_DEPLOYMENT:
            folder /= encode(scope.deployment, folder=True, folds_case=self._folds_case)
        if scope.user is None:
            return folder / f"{EVERYONE}{self.suffix}"
        path = folder / f"{self._encoded(scope.user)}{self.suffix}"
        theirs = plain(scope.user)
        if theirs is None or f"{theirs}{self.suffix}" == path.name or path.exists():
            return path
        other = folder / f"{theirs}{self.suffix}"
        # listed, since some file systems find a name in another case or normal form
        return other if other.exists() and other.name in os.listdir(folder) else path  # noqa: PTH208

    def lock_of(self, scope: Scope) -> Path:
        """The lock for writing the file of `scope`, whatever its name."""
        stem = EVERYONE if scope.user is None else self._encoded(scope.user)
        return self.path_of(scope).with_name(f"{stem}.lock")

    def _encoded(self, user: str) -> str:
        return encode(user, folds_case=self._folds_case)

    def files(self) -> Iterator[tuple[Path, Scope | None]]:
        """Every user's file, by name, and its scope; None if only the file itself can tell."""
        for folder in self._folders():
            whose = DEFAULT_DEPLOYMENT
            if folder != self.root:
                whose = decode(folder.name, folder=True, folds_case=self._folds_case) or ""
            yield from self._files_in(folder, whose)

    def _files_in(self, folder: Path, deployment: str) -> Iterator[tuple[Path, Scope | None]]:
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 - names are all that is wanted
            stem = name.removesuffix(self.suffix)
            if stem == name or stem.startswith("."):
                continue
            path = folder / name
            if not deployment or is_hashed(stem):
                yield path, None
                continue
            user = decode(stem, folds_case=self._folds_case)
            with contextlib.suppress(InvalidInput):
                if user is not None or stem == EVERYONE:
                    yield path, Scope(deployment, user)
                elif (theirs := plain(stem)) is not None:
                    scope = Scope(deployment, theirs)
                    if self.path_of(scope) == path:
                        yield path, scope

    def failure(self) -> str | None:
        """Why nothing can be written here; None if it can."""
        probe = self.root / f".echoic-probe{disk.TEMPORARY}"
        try:
            with disk.translated(self.root, "written"):
                disk.replace(probe, b"can this be written?")
                probe.unlink()
        except StoreError as error:
            return str(error)
        return None

    def read(self, source: DocumentOrigin) -> Document:
        """The file of one scope; raises FileNotFoundError, StoreCorrupt or StoreTooNew."""
        data = disk.read(source.path)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise source.corrupt(f"it is not UTF-8 (byte {error.start})") from error
        if not text.strip():
            raise source.corrupt("it is empty")
        return self.document.parse(text, source)

    def is_somebodys(self, stem: str) -> bool:
        """Whether `stem` may be the name of a scope's file."""
        known = decode(stem, folds_case=self._folds_case) or plain(stem)
        return stem == EVERYONE or is_hashed(stem) or known is not None

    def is_hashed(self, path: Path) -> bool:
        """Whether the name of `path` does not tell its scope."""
        return is_hashed(path.name.removesuffix(self.suffix)) or (
            path.parent != self.root and is_hashed(path.parent.name)
        )

    def _folders(self) -> Iterator[Path]:
        yield self.root
        for name in sorted(os.listdir(self.root)):  # noqa: PTH208 - likewise
            known = is_hashed(name) or decode(name, folder=True, folds_case=self._folds_case) is not None
            if known and name != DEFAULT_DEPLOYMENT and (self.root / name).is_dir():
                yield self.root / name

    def _encode_capitals(self, folder: Path) -> None:
        """Rename other programs' files where "Ana" and "ana" would be one name."""
        for name in os.listdir(folder):  # noqa: PTH208 - likewise
            user = plain(name.removesuffix(self.suffix)) if name.endswith(self.suffix) else None
            if user is not None and user != user.lower() and decode(user, folds_case=True) is None:
                path = folder / f"{encode(user, folds_case=True)}{self.suffix}"
                if not path.exists():
                    os.rename(folder / name, path)  # noqa: PTH104 - beside the other calls of its kind

    def _sweep(self, folder: Path) -> None:
        """Remove temporary files of a process that died while writing. A live one holds the lock."""
        for path in disk.leftovers(folder):
            stem = path.name[1:].rsplit(".", 2)[0].rpartition(".")[0] or path.name[1:]
            user = decode(stem, folds_case=self._folds_case) or plain(stem)
            lock = folder / f"{stem if user is None else self._encoded(user)}.lock"
            with contextlib.suppress(StoreError, OSError), disk.locked(lock, timeout_s=0):
                disk.shred(path)

    def _check_layout(self, settings: dict[str, Any]) -> None:
        found = settings.get("layout")
        if found is None:
            names = os.listdir(self.root)  # noqa: PTH208 - likewise
            there = [layout for layout, of in LAYOUTS.items() if any(n.endswith(of.suffix) for n in names)]
            found = there[0] if there and self.layout not in there else self.layout
        if found != self.layout:
            raise InvalidInput(
                f"the files in {str(self.root)!r} are {found}, not {self.layout}: "
                f"open it with format={found!r}"
            )

    def _read_settings(self) -> dict[str, Any]:
        path = self.root / _SETTINGS
        state = disk.seen(path)
        if state is None:
            return {}
        if state != self._settings_seen:
            try:
                settings = json.loads(disk.read(path))
                version, dimensions = settings["format"], settings["dimensions"]
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise DocumentOrigin(path, 0).corrupt("it is not what was written") from error
            if type(version) is not int or type(dimensions) is not int:
                raise DocumentOrigin(path, 0).corrupt("it is not what was written")
            if version > FORMAT:
                raise StoreTooNew(
                    f"{str(self.root)!r} has format {version}, this Echoic knows {FORMAT}: upgrade Echoic"
                )
            self._settings, self._settings_seen = settings, state
        return self._settings

    def _write_settings(self, spec: EmbeddingSpec) -> None:
        settings = {
            **self._settings,
            "format": FORMAT,
            "layout": self.layout,
            "model": spec.model,
            "dimensions": spec.dimensions,
        }
        disk.replace(self.root / _SETTINGS, json.dumps(settings, indent=2).encode() + b"\n")
