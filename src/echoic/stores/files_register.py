"""Who has a file in a folder, looked up anew only where a file changed. Blocking; keeps no contents."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from echoic.errors import StoreCorrupt, StoreTooNew
from echoic.stores import files_disk as disk
from echoic.stores.files_folder import Folder
from echoic.stores.files_source import Source
from echoic.types import Scope


@dataclass(frozen=True, slots=True)
class Known:
    """A user's file as it was when it was last looked at."""

    path: Path
    scope: Scope | None
    """None where the file should tell, and cannot be read."""
    states: tuple[disk.Seen | None, disk.Seen | None]
    """Of the memory file and of its vectors."""
    began: int = 0
    records: int = 0
    trouble: str | None = None
    """Why it cannot be read; None if it can."""


class Register:
    """What is known of each file of `folder`. Used by any thread."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._known: dict[Path, Known] = {}
        self._waits: dict[Scope | None, tuple[object, bool]] = {}
        self._lock = threading.Lock()

    def all(self, deployment: str | None = None) -> list[Known]:
        """Every file, in the order in which their scopes were first written; those of old first, by name."""
        with self._lock, disk.translated(self._folder.root, "read"):
            found = [self._look(path, scope) for path, scope in self._folder.files(deployment)]
            if deployment is None:
                self._known = {known.path: known for known in found}
        wanted = (k for k in found if k.scope is None or deployment in {None, k.scope.deployment})
        return sorted(wanted, key=lambda known: (known.began, known.path))

    def holding(self, deployment: str | None = None) -> list[Scope]:
        """Every scope that holds a record. A file that cannot be read is passed over: see `troubles`."""
        return [known.scope for known in self.all(deployment) if known.scope is not None and known.records]

    def may_wait(self, known: Iterable[Known]) -> list[Known]:
        """Those of `known`, which are all, of whom it was not noted that nothing waits as they are now."""
        readable = [one for one in known if one.scope is not None and one.trouble is None]
        self._waits = {k.scope: self._waits[k.scope] for k in readable if k.scope in self._waits}
        return [one for one in readable if self._waits.get(one.scope) != (one.states, False)]

    def note_waiting(self, known: Known, *, waits: bool) -> None:
        """Remember whether anything waited in a file when it was as `known` says."""
        self._waits[known.scope] = (known.states, waits)

    def _look(self, path: Path, scope: Scope | None) -> Known:
        vectors = path.with_name(f"{path.name.removesuffix(self._folder.suffix)}.vectors")
        states = (disk.seen(path), disk.seen(vectors))
        known = self._known.get(path)
        if known is None or known.states[0] != states[0]:
            known = self._read(path, scope, states)
        return Known(path, known.scope, states, known.began, known.records, known.trouble)

    def _read(
        self, path: Path, scope: Scope | None, states: tuple[disk.Seen | None, disk.Seen | None]
    ) -> Known:
        source = Source(path, states[0].mtime_ns if states[0] else 0)
        try:
            document = self._folder.read(source)
        except (StoreCorrupt, StoreTooNew) as error:
            return Known(path, scope, states, trouble=str(error))
        except FileNotFoundError:
            return Known(path, scope, states)
        owner = document.header.owner if scope is None else scope
        if owner is None or self._folder.path_of(owner) != path:
            return Known(path, None, states, trouble=str(source.corrupt("it does not tell whose it is")))
        return Known(path, owner, states, document.header.began, len(document.items))


__all__ = ["Known", "Register"]
