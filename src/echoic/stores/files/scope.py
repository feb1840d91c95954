"""The files of one scope, cached in memory: read again after they changed, and rewritten as a whole under a
lock shared by all processes. Blocking; one thread-safe instance per scope and process.

A write is complete once the memory file was replaced. Vectors that belong to it are written before, and
vectors that it invalidates are overwritten afterwards: their digests decide which are valid, so a crash in
between loses none that an acknowledged write depends on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from echoic.errors import EmbeddingMismatch, StoreCorrupt, WriteConflict, brief
from echoic.partition import Entry
from echoic.stores.apply import as_json, begins, removed, sample, strings, text_needles, vector_needle
from echoic.stores.base import (
    FIRST_UNSEARCHABLE,
    Attach,
    Change,
    Erasable,
    Erased,
    Index,
    Put,
    Record,
    Waiting,
)
from echoic.stores.files import disk
from echoic.stores.files.disk import Stored, VectorFile
from echoic.stores.files.document import Document, DocumentOrigin, json_of
from echoic.stores.files.folder import Folder, Register
from echoic.stores.scope_state import HeldScope, Staged
from echoic.types import EmbeddingSpec, Scope

T = TypeVar("T")
_States = tuple[disk.FileStamp | None, disk.FileStamp | None]
_SAMPLES = 200
"""The most texts, and vectors, searched for after an erasure."""
_READS = 5
"""Attempts to read a file that changes meanwhile."""


class ScopeFiles:
    def __init__(
        self, folder: Folder, register: Register, scope: Scope, spec: EmbeddingSpec, index: Index
    ) -> None:
        self.scope = scope
        self.turn = asyncio.Lock()
        """Held while its files are written: tasks wait for it, so that no thread has to."""
        self._register = register
        self.nbytes = 0
        """Approximate memory it takes."""
        self._folder, self._spec, self._index = folder, spec, index
        self._writer = threading.Lock()  # one write at a time; reads go on meanwhile
        self._guard = threading.Lock()  # held in memory: short
        self._writing = False
        self._held: HeldScope | None = None
        self._states: _States = (None, None)
        self._document: Document | None = None
        self._void: set[int] = set()
        """Rows whose vector in the file belongs to no current text."""
        self._lock = folder.lock_of(scope)
        self._place()

    def _place(self) -> None:
        self.path = self._folder.path_of(self.scope)
        stem = self.path.name.removesuffix(self._folder.suffix)
        self._stem = stem
        self._vectors = VectorFile(self.path.with_name(f"{stem}.vectors"), self._spec)

    def ask(self, question: Callable[[HeldScope], T]) -> T:
        """The answer to `question` from the current files; raises StoreCorrupt or StoreTooNew."""
        with self._guard, disk.translated(self.path, "read"):
            return question(self._current())

    def write(self, changes: Sequence[Change]) -> None:
        """Apply `changes`, all or none, durable when it returns.

        A vector from a write that failed may be kept, if it belongs to the record's text.

        Raises:
            EmbeddingMismatch: a vector of another model than the current one.
            InvalidInput: JSON cannot represent a record.
            StoreFull: there is no space left; nothing was written.
            StoreUnavailable: it could not be made durable; nothing is acknowledged.
            WriteConflict: a `Put.expect` did not hold; nothing was written.
        """
        for change in changes:
            if isinstance(change, Put):
                json_of(change.record.data, f"{change.record.kind} {brief(change.record.id)}")
        attaches = [change for change in changes if isinstance(change, Attach)]
        self._check_vectors(attaches)
        with disk.translated(self.path, "written"):
            if not begins(changes) and self._look()[0] is None:
                return
            with self._alone(), self._changing() as held:
                if attaches:
                    self._folder.check_model(self._spec)  # another process may have reindexed the folder
                staged = held.stage(changes)
                self._keep(staged)
                with self._guard:
                    held.commit(staged)
                    self._weigh()

    def waiting(self, limit: int) -> list[tuple[int, Waiting]]:
        """At most `limit` records without a vector, and since when they wait, the oldest first.

        The file states their versions from now on; otherwise it would be unknown which text a vector was made
        from.
        """
        if not self.ask(lambda held: len(held.queue)):
            return []
        self.note()
        return self.ask(lambda held: held.queue.first(limit))

    def note(self) -> None:
        """Write our fields beside what people wrote or changed."""
        with self._guard:
            noted = self._document is None or all(item.noted for item in self._document.items)
        if noted:
            return
        with disk.translated(self.path, "written"), self._alone(), self._changing() as held:
            if self._document is not None:
                self._keep_records(held.stage([]))

    def erase(self, changes: Sequence[Erasable] | None) -> Erased:
        """Destroy what `changes` drop and replace, or everything, and check that nothing is left."""
        with disk.translated(self.path, "erased"):
            if self._look() == (None, None) and not self._leftovers():
                return Erased(verified=True)
            with self._alone(), self._changing() as held:
                return self._erase(held, changes)

    def _erase(self, held: HeldScope, changes: Sequence[Erasable] | None) -> Erased:
        everything = changes is None
        changes = held.drops() if changes is None else changes
        staged = held.stage(changes)
        gone, rewritten = held.erasing(changes)
        old = [*gone, *(record for record, _ in rewritten)]
        vectors = [vector.copy() for vector in held.vectors(old)]
        wanted = _needles([*gone, *(removed(*both) for both in rewritten)], vectors)
        # remove the file with its last record, unless other programs keep data in it
        nothing_left = len(gone) == len(held.records) and self._document and not self._document.holds_more
        if everything or nothing_left:
            disk.shred(self.path)
            disk.shred(self._vectors.path)
        elif old:
            self._keep_records(staged, overwrite_old=True)
            self._clear({record.seq for record in old if record.seq < FIRST_UNSEARCHABLE})
        for path in self._leftovers():
            disk.shred(path)
        with self._guard:
            held.commit(staged)
        left = held.records.values()
        names = (self.scope.deployment, self.scope.user or "")
        wanted = _without_living(wanted, names, left, held.vectors(left))
        found, read = _search(self.path.parent, self._is_suspect, wanted)
        return Erased(
            records=held.kinds(gone),
            rewritten=len(rewritten),
            vectors=len(vectors),
            verified=not found,
            bytes_searched=read,
        )

    def drop_vectors(self) -> None:
        """Destroy every vector, as when the embedding model changes."""
        with disk.translated(self.path, "written"), self._alone():
            disk.shred(self._vectors.path)

    def _current(self) -> HeldScope:
        """The content of the files, read again if they changed. The caller holds the guard."""
        if self._held is not None and (self._writing or self._look() == self._states):
            return self._held
        self._register.touched(self.path, self.scope)
        for attempt in range(_READS):
            states = self._look()
            try:
                held = self._read(states[0])
            except FileNotFoundError:
                self._held = None  # erased between the check and the read
                continue
            except StoreCorrupt:
                self._held = None
                if self._look() == states or attempt == _READS - 1:
                    raise
                continue
            self._states = states
            return held
        raise DocumentOrigin(self.path, 0).corrupt("it changes faster than it can be read")

    def _look(self) -> _States:
        if self._states[0] is None:
            self._place()  # another program may just have renamed it
        return disk.seen(self.path), disk.seen(self._vectors.path)

    def _holding(self) -> HeldScope:
        if self._held is None:
            self._held = HeldScope(self.scope, self._index, self._spec.dimensions, self._folder.clock)
        return self._held

    def _read(self, state: disk.FileStamp | None) -> HeldScope:
        if state is None:
            document, stored = None, {}
        else:
            source = DocumentOrigin(self.path, state.mtime_ns)
            document = self._folder.read(source)
            if self._folder.is_hashed(self.path) and document.header.owner != self.scope:
                raise source.corrupt("it does not say that it is of the user it is named after")
            document.number(self._index, source)
            stored = self._vectors.read()
        held = self._holding()
        items = document.items if document else []
        for item in items:
            if not item.noted:
                item.record = _numbered_on(item.record, held)
        header = document.header if document else None
        self._folder.clock.not_before(max((item.since for item in items), default=0))
        held.restore(
            [item.record for item in items],
            index=self._indexed,
            since={item.record.seq: item.since for item in items},
            vectors=stored,
            counters=(header.next_row, header.next_other) if header else (0, FIRST_UNSEARCHABLE),
        )
        self._document = document
        self._void = {
            row for row in stored if row not in held.texts or held.texts[row].digest != stored[row].text
        }
        self._states = (state, self._states[1])
        self._weigh()
        return held

    def _weigh(self) -> None:
        # a record takes about six times the bytes of its line; vectors are held in segments and concatenated
        size = self._states[0].size if self._states[0] else 0
        if self._held is not None:
            with self._held.partition.lock:  # data that readers derived
                self.nbytes = 2 * self._held.partition.nbytes + 6 * size

    def _indexed(self, record: Record) -> Entry | None:
        """How a record is found; raises StoreCorrupt with the name of the file if it is not complete."""
        try:
            return self._index(record)
        except (KeyError, TypeError, ValueError, AttributeError, StoreCorrupt) as error:
            what = f"{record.kind} {brief(record.id)} is not complete ({type(error).__name__})"
            raise DocumentOrigin(self.path, 0).corrupt(what) from error

    def _check_vectors(self, attaches: Sequence[Attach]) -> None:
        for attach in attaches:
            if np.shape(attach.vector) != (self._spec.dimensions,):
                raise EmbeddingMismatch(
                    f"a vector of shape {np.shape(attach.vector)} for {attach.kind} {brief(attach.id)}: "
                    f"{brief(self._spec.model)} has {self._spec.dimensions} dimensions"
                )

    def _keep(self, staged: Staged) -> None:
        """Make `staged` durable. The caller holds the lock."""
        new, void = _vectors_of(staged, self._holding())
        if new:
            self._vectors.write(new)
            # a process that died before writing the record may have left a vector in this row
            self._void.difference_update(new)
        if any(not isinstance(step.change, Attach) and (step.old or step.left) for step in staged.steps):
            self._keep_records(staged)
        self._clear(void)

    def _keep_records(self, staged: Staged, *, overwrite_old: bool = False) -> None:
        document = self._document
        if document is None:
            disk.make_folder(self.path.parent)
            document = self._folder.document.new(self.scope)
            document.header.began = self._folder.clock()
            if self._folder.is_hashed(self.path):
                document.header.owner = self.scope
        texts = self._holding().texts
        document.changed(
            staged.records, lambda row: t.since if (t := staged.texts.get(row, texts.get(row))) else 0
        )
        document.header.next_row, document.header.next_other = staged.next_row, staged.next_other
        state = disk.replace(self.path, document.to_bytes(), overwrite_old=overwrite_old)
        self._document = document
        self._states = (state, disk.seen(self._vectors.path))

    def _clear(self, void: set[int]) -> None:
        """Overwrite invalid vectors. The caller holds the lock."""
        self._void |= void
        # the records are durable and their digests invalidate the rest; the next write retries
        with contextlib.suppress(OSError):
            self._vectors.clear(self._void)
            self._void = set()
        self._states = (self._states[0], disk.seen(self._vectors.path))

    def _leftovers(self) -> list[Path]:
        both = (self.path.name, self._vectors.path.name)
        return [path for name in both for path in disk.leftovers(self.path.parent, name)]

    def _is_suspect(self, name: str) -> bool:
        """Whether a file of this name may contain data of this scope, because it is not another scope's."""
        for ending in (self._folder.suffix, ".vectors", ".lock"):
            stem = name.removesuffix(ending)
            if stem not in {name, self._stem} and self._folder.is_somebodys(stem):
                return False
        return True

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock among this process's threads and among processes."""
        with self._writer:
            disk.make_folder(self.path.parent)
            with disk.locked(self._lock):
                try:
                    yield
                finally:
                    self._register.wrote(self.path, self.scope)
                    if disk.seen(self.path) is None:
                        with contextlib.suppress(OSError):
                            self._lock.unlink()  # its name reveals a user without data

    @contextlib.contextmanager
    def _changing(self) -> Iterator[HeldScope]:
        """The cached state while the files are changed; readers get it without checking the files."""
        with self._guard:
            held = self._current()
            self._writing = True
        try:
            yield held
        except WriteConflict:
            raise
        except BaseException:
            with self._guard:  # the files may be in either state: read them again
                self._held, self._document, self._states = None, None, (None, None)
            raise
        finally:
            self._writing = False


def _needles(records: Sequence[Record], vectors: Sequence[NDArray[np.float32]]) -> list[bytes]:
    """The bytes to search for after `records` and `vectors` were removed."""
    found = [needle for record in sample(records, _SAMPLES) for needle in text_needles(record.data, _forms)]
    found += [needle for vector in sample(vectors, _SAMPLES) if (needle := vector_needle(vector))]
    return list(dict.fromkeys(found))


def _without_living(
    wanted: Iterable[bytes],
    names: Sequence[str],
    records: Iterable[Record],
    vectors: Iterable[NDArray[np.float32]],
) -> list[bytes]:
    """Those of `wanted` that no name of the scope and no remaining record or vector contains."""
    stay = [*names, *(text for r in records for text in (r.id, r.key or "", *strings(r.data)))]
    texts = b"\0".join(form for text in stay for form in _forms(text))
    same = {vector_needle(vector) for vector in vectors}
    return [needle for needle in wanted if needle not in texts and needle not in same]


def _forms(text: str) -> tuple[bytes, bytes]:
    """A text as written in JSON, and in a line of Markdown."""
    return as_json(text), text.encode("utf-8", "replace")


def _search(
    folder: Path, is_suspect: Callable[[str], bool], wanted: Sequence[bytes]
) -> tuple[set[bytes], int]:
    """Which of `wanted` the suspect files of `folder` still contain, and how many bytes were searched.

    Suspect are the files of the scope itself, temporary ones included, and every file in its folder that
    belongs to no user, such as an editor's backup. Another user's file is skipped: it is written from that
    user's records alone, which may contain the same words.
    """
    found: set[bytes] = set()
    read = 0
    for name in filter(is_suspect, os.listdir(folder)):  # noqa: PTH208 - names are all that is wanted
        try:
            data = (folder / name).read_bytes()
        except OSError:  # a folder, or removed meanwhile
            continue
        read += len(data)
        found.update(needle for needle in wanted if needle in data)
    return found, read


def _numbered_on(record: Record, held: HeldScope) -> Record:
    """A record whose file states no version, with a version above that of its previous text.

    A vector being made for the previous text is then not attached to it.
    """
    before = held.records.get((record.kind, record.id))
    if before is None or before.version < record.version:
        return record
    same = (before.key, before.data, before.seq) == (record.key, record.data, record.seq)
    return replace(record, version=before.version if same else before.version + 1)


def _vectors_of(staged: Staged, held: HeldScope) -> tuple[dict[int, Stored], set[int]]:
    """The vectors that `staged` makes valid, by row, and the rows whose vector it invalidates."""
    new: dict[int, Stored] = {}
    void: set[int] = set()
    for step in staged.steps:
        row = step.left.seq if step.left else step.old.seq if step.old else FIRST_UNSEARCHABLE
        if row >= FIRST_UNSEARCHABLE:
            continue
        if isinstance(step.change, Attach):
            if step.left and step.left.version == step.change.version:
                text = staged.texts.get(row) or held.texts[row]
                new[row] = Stored(text.digest, step.change.vector, step.change.tokens)
        elif not step.keep:
            new.pop(row, None)
            void.add(row)
    return new, void - set(new)
