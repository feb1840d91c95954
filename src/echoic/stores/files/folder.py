"""The folder of a files store: which file is whose, and the settings that all of them share. Blocking.

    <folder>/.echoic.json             the layout, and whose vectors are kept
    <folder>/ana.json                 user "ana" of the default deployment
    <folder>/ana.vectors, ana.lock    beside it
    <folder>/%everyone.json           what is global in the default deployment
    <folder>/acme/ana.json            user "ana" of the deployment "acme"

Ids become file names reversibly. A safe id (letters, digits, `_-.@+`) is its own name. Everything else is
percent-encoded in UTF-8: separators, control characters, spaces, letters beyond a-z (which some systems store
in another normal form), a leading or trailing dot, the first letter of a name that Windows reserves. Where
the file system takes "Ana" and "ana" for one name, capitals are encoded too. A name that becomes too long is
cut and hashed; such a file says inside whose it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from echoic.errors import InvalidInput, StoreCorrupt, StoreError, StoreTooNew
from echoic.stores.base import check_model
from echoic.stores.files import disk
from echoic.stores.files.document import FORMAT, Document, DocumentOrigin
from echoic.stores.files.layouts import JsonDocument, MarkdownDocument
from echoic.stores.scope_state import Clock
from echoic.types import EmbeddingSpec, Scope

EVERYONE = "%everyone"
"""The name of what is global in a deployment: no id is encoded so, for "%ev" is no byte."""
MAX_NAME = 150
"""Characters of a name before it is hashed; 255 bytes are allowed nearly everywhere, endings included."""
ENDINGS = (".json", ".md", ".vectors", ".lock")
"""What the files of a user end in. A deployment's folder never does."""

_SAFE = re.compile(r"[A-Za-z0-9_\-.@+]")
_ENCODED = re.compile(r"(?:[^%]|%[0-9A-F]{2})*")
_HASHED = re.compile(r"%=[0-9a-f]{64}$")
# https://learn.microsoft.com/windows/win32/fileio/naming-a-file, whatever follows the first dot
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)", re.IGNORECASE)


def encode(name: str, *, folder: bool = False, folds_case: bool = False) -> str:
    """The file name of `name`, without an ending.

    Args:
        name: an id of 1 to 256 characters.
        folder: whether it will name a folder, which must not look like a user's file.
        folds_case: whether the file system takes capitals and small letters for the same.
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
    """The id whose file name is `stem`; None if it is nobody's, or hashed and only the file can tell."""
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
    """Whether `stem` was cut and hashed, so that the id stands in the file only."""
    return _HASHED.search(stem) is not None


def plain(name: str) -> str | None:
    """The name another program may have given the file of `name` by putting nothing but an ending behind it.

    None where that would be somebody else's name here, or no name within the folder at all.
    """
    odd = any(char in name for char in "/\\\0") or name.startswith((".", "%")) or name.endswith(".")
    if odd or is_hashed(name) or len(name.encode()) > MAX_NAME:
        return None
    return name if decode(name) in {None, name} else None


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())


DEFAULT_DEPLOYMENT = "default"
"""Its users' files lie in the folder itself, as those of a program that knows no deployments."""
LAYOUTS: dict[str, type[Document]] = {"json": JsonDocument, "markdown": MarkdownDocument}
_SUFFIXES = {"json": JsonDocument.suffix, "markdown": MarkdownDocument.suffix}
_SETTINGS, _LOCK = ".echoic.json", ".echoic.lock"


class UserFile(NamedTuple):
    """A user's file that was found."""

    path: Path
    scope: Scope | None
    """Whose it is; None where only the file itself can tell."""


class Folder:
    """Where the files lie. `open` before use.

    Args:
        root: the folder; created if need be.
        layout: one of `LAYOUTS`.
    """

    def __init__(self, root: Path, layout: str) -> None:
        self.root = root
        self.layout = layout
        self.document = LAYOUTS[layout]
        self.suffix = _SUFFIXES[layout]
        self.clock = Clock()
        self._folds_case = False
        self._settings_seen: disk.FileStamp | None = None
        self._settings: dict[str, Any] = {}

    def open(self, spec: EmbeddingSpec) -> None:
        """Make ready, and remove what a crash left behind.

        Raises:
            EmbeddingMismatch: vectors of another model are kept here; nothing was changed.
            InvalidInput: the files here have the other layout.
            StoreCorrupt: the settings cannot be read, or this is no folder; left untouched.
            StoreTooNew: a newer version wrote them; left untouched.
        """
        if self.root.exists() and not self.root.is_dir():
            raise StoreCorrupt(f"{str(self.root)!r} is no folder; it is left untouched")
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
        """Whether vectors of `spec` are the ones kept here.

        Raises:
            EmbeddingMismatch: they are not.
        """
        settings = self._read_settings()
        found = EmbeddingSpec(settings.get("model", ""), settings.get("dimensions", 0))
        check_model(found, spec, repr(str(self.root)))

    def change_model(self, spec: EmbeddingSpec) -> None:
        """From now on vectors of `spec` are kept here; those of another are no longer looked at."""
        with disk.translated(self.root, "written"), disk.locked(self.root / _LOCK):
            self._write_settings(spec)

    def path_of(self, scope: Scope) -> Path:
        """The file of `scope`, whether it exists or not."""
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
        # listed, for some file systems find a name in another case or normal form
        return other if other.exists() and other.name in os.listdir(folder) else path  # noqa: PTH208

    def lock_of(self, scope: Scope) -> Path:
        """What is locked to write the file of `scope`, whatever its name."""
        stem = EVERYONE if scope.user is None else self._encoded(scope.user)
        return self.path_of(scope).with_name(f"{stem}.lock")

    def _encoded(self, user: str) -> str:
        return encode(user, folds_case=self._folds_case)

    def files(self, deployment: str | None = None) -> Iterator[UserFile]:
        """Every user's file, those of one deployment if it is given, by name."""
        for folder in self._folders():
            whose = DEFAULT_DEPLOYMENT
            if folder != self.root:
                whose = decode(folder.name, folder=True, folds_case=self._folds_case) or ""
            if deployment is None or whose in {deployment, ""}:
                yield from self._files_in(folder, whose)

    def _files_in(self, folder: Path, deployment: str) -> Iterator[UserFile]:
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 - names are all that is wanted
            stem = name.removesuffix(self.suffix)
            if stem == name or stem.startswith("."):
                continue
            path = folder / name
            if not deployment or is_hashed(stem):
                yield UserFile(path, None)
                continue
            user = decode(stem, folds_case=self._folds_case)
            with contextlib.suppress(InvalidInput):
                if user is not None or stem == EVERYONE:
                    yield UserFile(path, Scope(deployment, user))
                elif (theirs := plain(stem)) is not None:
                    scope = Scope(deployment, theirs)
                    if self.path_of(scope) == path:
                        yield UserFile(path, scope)

    def trouble(self) -> str | None:
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
        """The file of one scope.

        Raises:
            FileNotFoundError: there is none.
            StoreCorrupt: it cannot be read; it is left untouched.
            StoreTooNew: a newer version wrote it; likewise.
        """
        data = disk.read(source.path)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise source.corrupt(f"it is not UTF-8 (byte {error.start})") from error
        if not text.strip():
            raise source.corrupt("it is empty")
        return self.document.parse(text, source)

    def is_somebodys(self, stem: str) -> bool:
        """Whether `stem` is a name that the file of a scope may have."""
        known = decode(stem, folds_case=self._folds_case) or plain(stem)
        return stem == EVERYONE or is_hashed(stem) or known is not None

    def is_hashed(self, path: Path) -> bool:
        """Whether the name of `path` does not tell whose it is."""
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
        """Give the files of another program names that stay apart where "Ana" and "ana" are one."""
        for name in os.listdir(folder):  # noqa: PTH208 - likewise
            user = plain(name.removesuffix(self.suffix)) if name.endswith(self.suffix) else None
            if user is not None and user != user.lower() and decode(user, folds_case=True) is None:
                path = folder / f"{encode(user, folds_case=True)}{self.suffix}"
                if not path.exists():
                    os.rename(folder / name, path)  # noqa: PTH104 - beside the other calls of its kind

    def _sweep(self, folder: Path) -> None:
        """Remove what a process left behind that died while it wrote. One that lives holds the lock."""
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
            there = [layout for layout, suffix in _SUFFIXES.items() if any(n.endswith(suffix) for n in names)]
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
