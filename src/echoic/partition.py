"""One scope in memory: the fields of every row, a matrix of vectors, and the words of all rows as postings.

Rows are stored in segments of thirty-two, packed so that adding one is cheap and loading many takes a few
copies. An append rewrites a few KB of words, and 10,000 rows load as 313 blobs: 5 to 20 times faster than a
blob per row, measured from 1,000 rows up.

Postings are scanned, not indexed: one pass finds all query words (0.1 ms for the 120,000 postings of 10,000
memories), nothing is built at load time, and a patch replaces one segment.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntFlag
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.errors import InvalidInput, StoreCorrupt
from echoic.text import Word

MEMORY = 1
TURN = 2
ITEM = 3


class Flag(IntFlag):
    """Properties of a row that ranking checks."""

    NONE = 0
    EMBEDDED = 1
    """It has a vector; set by the store."""
    PAST = 2
    """It no longer holds: found only by searches of the past."""
    QUESTION = 4
    """The text asks something."""
    TIME = 8
    """The text says when, or how long."""
    NUMBER = 16
    """The text contains a count."""
    ASKING = 32
    """The text ends in a question, so it asks more than it says."""
    UNHEARD = 64
    """Nothing of it was heard, or it was deleted: it is stored but never found."""
    KEYED = 128
    """A short value under a key: one word for what others say in a sentence."""


ROW = np.dtype(
    [
        ("kind", "u1"),  # 0: empty
        ("flags", "u1"),
        ("characters", "<u2"),  # of the text, capped
        ("words", "<u2"),  # content words, capped: BM25's document length
        ("session", "<u4"),  # the conversation's number; 0: none
        ("speaker", "<u4"),  # the speaker's number; 0: nobody's utterance
        ("said_at", "<i8"),  # Unix time in ms
    ]
)


def number_of(name: str | None) -> int:
    """A name as 32 bits, 0 for None. Used where only equality within one scope matters."""
    return (zlib.crc32(name.encode()) or 1) if name else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The index data that a store keeps with a record."""

    text: str
    """The text to embed. Not stored here; a store asks for it when it embeds the record."""
    kind: int
    """MEMORY, TURN or ITEM."""
    words: tuple[tuple[Word, int], ...]
    """Distinct content words with their counts."""
    characters: int = 0
    session: int = 0
    speaker: int = 0
    said_at_ms: int = 0
    flags: Flag = Flag.NONE

    @staticmethod
    def counted(words: Iterable[Word]) -> tuple[tuple[Word, int], ...]:
        """Words with their counts, in order of first appearance.

        The first of several words with one stem ("fox", "foxes") has the count of all, the others 0, so that
        a row has one posting per stem.
        """
        said = tuple(words)
        counts = Counter(word.term for word in said)
        return tuple((word, counts.pop(word.term, 0)) for word in dict.fromkeys(said))

    @staticmethod
    def milliseconds(moment: datetime) -> int:
        """An aware moment as Unix milliseconds."""
        return round(moment.timestamp() * 1000)

    def row(self, kept: Flag = Flag.NONE) -> tuple[int, ...]:
        """The fields of `ROW`, with the flags `kept` from before."""
        length = sum(count for _, count in self.words)
        return (
            self.kind,
            int(self.flags | kept),
            min(self.characters, 0xFFFF),
            min(length, 0xFFFF),
            self.session,
            self.speaker,
            self.said_at_ms,
        )


SEGMENT_ROWS = 32
_MAGIC = b"ECS1"
_HEADER = struct.Struct("<4sIIII")  # magic, words, postings, bytes of words, bytes of codes


def distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """The distinct `numbers`, ascending. `np.unique` imports a module that takes 50 ms."""
    ordered = np.sort(numbers, axis=None)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


class Listing:
    """The words of a segment and their sound codes, split at first use.

    Loading a scope does not need them, only a search for words that were misheard.
    """

    __slots__ = ("_codes", "_lines", "_words")

    def __init__(self, words: str = "", codes: str = "") -> None:
        """One word, and its codes, per line."""
        self._lines: tuple[str, str] | None = (words, codes)
        self._words: list[str] = []
        self._codes: list[str] = []

    @classmethod
    def of(cls, words: list[str], codes: list[str]) -> Listing:
        made = cls()
        made._lines, made._words, made._codes = None, words, codes
        return made

    @property
    def words(self) -> list[str]:
        """May be appended to."""
        self._cut()
        return self._words

    @property
    def codes(self) -> list[str]:
        """The codes of each word; may be appended to."""
        self._cut()
        return self._codes

    def lines(self) -> tuple[str, str]:
        """Words and codes in their stored form."""
        return self._lines or ("\n".join(self._words), "\n".join(self._codes))

    def _cut(self) -> None:
        if self._lines is not None:
            words, codes = self._lines
            self._words, self._codes = (words.split("\n"), codes.split("\n")) if words else ([], [])
            self._lines = None


class Segment:
    """Rows 32 n to 32 n + 31 of a scope: fields, words and vectors. Not thread-safe."""

    __slots__ = ("counts", "listing", "rows", "slots", "terms", "tokens", "vectors", "which")

    def __init__(self) -> None:
        self.rows: NDArray[np.void] = np.zeros(SEGMENT_ROWS, ROW)
        self.listing = Listing()
        self.terms: NDArray[np.uint32] = np.zeros(0, np.uint32)
        """The number of each word's stem."""
        self.slots: NDArray[np.uint8] = np.zeros(0, np.uint8)
        """The row of each posting, 0 to 31."""
        self.which: NDArray[np.uint32] = np.zeros(0, np.uint32)
        """The word of each posting, as an index into `words`."""
        self.counts: NDArray[np.uint8] = np.zeros(0, np.uint8)
        """The count of each posting, at most 255."""
        self.vectors: NDArray[np.float32] | None = None
        """[32, dimensions]; zeros for rows without a vector. None if no row has one."""
        self.tokens: dict[int, bytes] = {}
        """The packed word pieces by slot; see `partition.Pieces.packed`."""

    @property
    def words(self) -> list[str]:
        """Distinct folded words of the rows."""
        return self.listing.words

    @property
    def codes(self) -> list[str]:
        """The sound codes of each word: Double Metaphone codes joined by a space."""
        return self.listing.codes

    @property
    def empty(self) -> bool:
        return not self.rows["kind"].any()

    def put(self, slot: int, entry: Entry, *, keep_vector: bool = False) -> None:
        """Write `entry` to `slot`, replacing its content."""
        kept = Flag(int(self.rows[slot]["flags"])) & Flag.EMBEDDED if keep_vector else Flag.NONE
        if self.rows[slot]["kind"]:
            self._clear(slot, keep_vector=keep_vector)
        self.rows[slot] = entry.row(kept)
        index = {word: i for i, word in enumerate(self.words)}
        places, terms = [], []
        for word, _ in entry.words:
            place = index.get(word.text)
            if place is None:
                place = index[word.text] = len(self.words)
                self.words.append(word.text)
                self.codes.append(" ".join(word.codes))
                terms.append(word.term)
            places.append(place)
        if terms:
            self.terms = np.append(self.terms, np.array(terms, np.uint32))
        if places:
            counts = [min(count, 255) for _, count in entry.words]
            self.slots = np.append(self.slots, np.full(len(places), slot, np.uint8))
            self.which = np.append(self.which, np.array(places, np.uint32))
            self.counts = np.append(self.counts, np.array(counts, np.uint8))

    def drop(self, slot: int) -> None:
        """Empty `slot`; its words, sound codes and vector are overwritten, not only unlinked."""
        self._clear(slot, keep_vector=False)
        self.rows[slot] = np.zeros((), ROW)

    def attach(self, slot: int, vector: NDArray[np.float32], tokens: bytes | None = None) -> None:
        """Set the vector and the word pieces of the row at `slot`."""
        self.tokens.pop(slot, None)
        if tokens:
            self.tokens[slot] = tokens
        if self.vectors is None:
            self.vectors = np.zeros((SEGMENT_ROWS, len(vector)), np.float32)
        elif not self.vectors.flags.writeable:
            self.vectors = self.vectors.copy()
        self.vectors[slot] = vector
        self.rows["flags"][slot] |= Flag.EMBEDDED

    def detach_all(self) -> None:
        """Remove all vectors, for example when the embedding model changes."""
        self.vectors = None
        self.tokens = {}
        self.rows["flags"] &= 0xFF ^ int(Flag.EMBEDDED)

    def _clear(self, slot: int, *, keep_vector: bool) -> None:
        if not keep_vector:
            self.tokens.pop(slot, None)
        if self.vectors is not None and not keep_vector:
            self.vectors = self.vectors.copy()
            self.vectors[slot] = 0
        keep = self.slots != slot
        self.slots, self.which, self.counts = self.slots[keep], self.which[keep], self.counts[keep]
        used = distinct(self.which)
        if len(used) < len(self.words):
            self.listing = Listing.of([self.words[i] for i in used], [self.codes[i] for i in used])
            self.terms = self.terms[used]
            self.which = np.searchsorted(used, self.which).astype(np.uint32)

    def to_bytes(self) -> bytes:
        """All of it except the vectors and the word pieces."""
        words, codes = (lines.encode() for lines in self.listing.lines())
        header = _HEADER.pack(_MAGIC, len(self.terms), len(self.slots), len(words), len(codes))
        arrays = (self.rows, self.terms, self.which, self.slots, self.counts)
        return b"".join((header, *(array.tobytes() for array in arrays), words, codes))

    @classmethod
    def from_bytes(cls, data: bytes, vectors: bytes | None = None) -> Segment:
        """The inverse of `to_bytes`, with the bytes of the vectors; without word pieces.

        Raises:
            StoreCorrupt: these are not the bytes of a segment.
        """
        segment = cls()
        try:
            magic, n_words, n_postings, word_bytes, code_bytes = _HEADER.unpack_from(data)
            if magic != _MAGIC:
                raise StoreCorrupt(f"a segment begins with {magic!r} instead of {_MAGIC!r}")
            at = _HEADER.size

            def take(dtype: np.dtype[np.generic] | type[np.generic], count: int) -> NDArray[np.generic]:
                nonlocal at
                array = np.frombuffer(data, dtype, count, at)
                at += array.nbytes
                return array

            segment.rows = take(ROW, SEGMENT_ROWS).copy()  # type: ignore[assignment]
            segment.terms = take(np.uint32, n_words)  # type: ignore[assignment]
            segment.which = take(np.uint32, n_postings)  # type: ignore[assignment]
            segment.slots = take(np.uint8, n_postings)  # type: ignore[assignment]
            segment.counts = take(np.uint8, n_postings)  # type: ignore[assignment]
            words = data[at : at + word_bytes].decode()
            codes = data[at + word_bytes : at + word_bytes + code_bytes].decode()
            breaks = {words.count("\n"), codes.count("\n")}
            if breaks != {max(n_words - 1, 0)} or bool(words) != bool(n_words):
                raise StoreCorrupt(f"a segment of {n_words} words holds {max(breaks) + bool(words)}")
            segment.listing = Listing(words, codes)
            if vectors:
                segment.vectors = np.frombuffer(vectors, np.float32).reshape(SEGMENT_ROWS, -1)
        except (struct.error, ValueError, UnicodeDecodeError) as error:
            raise StoreCorrupt(f"a segment of {len(data)} bytes cannot be read: {error}") from error
        return segment


# -- a scope, and the word pieces of its texts

AXES = 64
"""Dimensions of a stored word piece. On LoCoMo, 64 find as much as 128; 384 find 0.4 points of R@10 more."""
MAX_PIECES = 128
"""The number of word pieces stored per text, from its start: a minute of transcript."""
MAX_BYTES = AXES * MAX_PIECES

_SCALE = 127


@dataclass(frozen=True, slots=True)
class Pieces:
    """The word pieces of a text, without the encoder's special tokens."""

    axes: NDArray[np.float32]
    """[pieces, AXES], unit length."""
    hidden: NDArray[np.float32]
    """[pieces, dimensions], the encoder's output, if the text's vector is the direction of its mean;
    otherwise [pieces, 0]."""
    spans: tuple[tuple[int, int], ...]
    """The range of characters that each piece covers: start and end (exclusive)."""

    def packed(self) -> bytes:
        """The stored form: at most `MAX_PIECES` pieces, a signed byte per axis."""
        return np.round(_SCALE * self.axes[:MAX_PIECES]).astype(np.int8).tobytes()


def as_packed(blobs: list[bytes]) -> tuple[NDArray[np.float32], float]:
    """[pieces, AXES] of all texts, one after the other, and the factor that gives them unit length.

    Raises:
        InvalidInput: these are not bytes that `Pieces.packed` returned.
    """
    data = np.frombuffer(b"".join(blobs), np.int8)
    if data.size % AXES:
        raise InvalidInput(f"{data.size} bytes are no whole word pieces of {AXES} axes each")
    return data.reshape(-1, AXES).astype(np.float32), 1 / _SCALE


@dataclass(slots=True)
class Vocabulary:
    """The distinct words of a scope, to match words and names that were misheard or mistyped."""

    terms: dict[str, int] = field(default_factory=dict)
    """Word -> the number of its stem."""
    sounds: dict[str, set[str]] = field(default_factory=dict)
    """Double Metaphone code -> the words with that code."""

    def add(self, words: list[str], codes: list[str], terms: NDArray[np.uint32]) -> None:
        # most words of a segment are already known: find the new ones first, fast
        for i in [i for i, word in enumerate(words) if word not in self.terms]:
            word = words[i]
            self.terms[word] = int(terms[i])
            for code in codes[i].split():
                self.sounds.setdefault(code, set()).add(word)


class Partition:
    """All rows of one scope, ready to be scanned.

    Row numbers are the store's, or are mapped to them by `origin`. Hold `lock` to patch or scan; a scan of an
    ordinary scope takes well under a millisecond.
    """

    def __init__(self, dimensions: int = 0) -> None:
        self.lock = threading.Lock()
        self.version = 0
        """The version of the scope that these rows show; set by the store."""
        self.size = 0
        """Rows, empty ones included."""
        self.revision = 0
        """The number of patches so far."""
        self.scratch: dict[str, Any] = {}
        """Values that readers derive from the rows and cache, under `lock`. A patch does not clear them:
        readers compare `revision` and `patched` and renew stale values. `nbytes` of a value counts in the
        partition's."""
        self.origin: NDArray[np.int64] | None = None
        """[size] The store's number of each row, if only some segments of a scope are loaded; None if the
        numbers are the same. Set by the store (`stores.base.Narrows`)."""
        self.asked: tuple[Any, ...] = ()
        """The database query that found these rows, in a form that may be shown. Set by the store."""
        self.tokens: dict[int, bytes] = {}
        """The packed word pieces by row; see `Pieces.packed`."""
        self._token_bytes = 0
        self._patched: NDArray[np.int64] = np.zeros(0, np.int64)
        self._rows: NDArray[np.void] = np.zeros(0, ROW)
        self._vectors: NDArray[np.float32] = np.zeros((0, dimensions), np.float32)
        self._postings: dict[int, tuple[NDArray[np.int32], NDArray[np.uint32], NDArray[np.uint8]]] = {}
        self._flat: tuple[NDArray[np.int32], NDArray[np.uint32], NDArray[np.uint8]] | None = None
        # words of segments that are not in the vocabulary yet
        self._unread: dict[int, tuple[Listing, NDArray[np.uint32]]] = {}
        self._vocabulary: Vocabulary | None = None

    @property
    def rows(self) -> NDArray[np.void]:
        """[size] of `ROW`."""
        return self._rows[: self.size]

    @property
    def vectors(self) -> NDArray[np.float32]:
        """[size, dimensions], unit length; zeros where a row has none yet."""
        return self._vectors[: self.size]

    @property
    def patched(self) -> NDArray[np.int64]:
        """[size / 32] The `revision` at which each segment was last replaced; 0: never."""
        return self._patched[: self.size // SEGMENT_ROWS]

    @property
    def postings(self) -> tuple[NDArray[np.int32], NDArray[np.uint32], NDArray[np.uint8]]:
        """Row, term and count of every posting, as parallel arrays in no particular order."""
        if self._flat is None:
            self._flat = self.postings_of(self._postings)
        return self._flat

    def postings_of(
        self, segments: Iterable[int]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint32], NDArray[np.uint8]]:
        """The postings of these segments only."""
        parts = [self._postings[number] for number in segments if number in self._postings]
        return (
            np.concatenate([part[0] for part in parts] or [np.zeros(0, np.int32)]),
            np.concatenate([part[1] for part in parts] or [np.zeros(0, np.uint32)]),
            np.concatenate([part[2] for part in parts] or [np.zeros(0, np.uint8)]),
        )

    @property
    def vocabulary(self) -> Vocabulary:
        """Built at first use, then kept current. A word may outlive its last row here."""
        if self._vocabulary is None:
            self._vocabulary = Vocabulary()
        for listing, terms in self._unread.values():
            self._vocabulary.add(listing.words, listing.codes, terms)
        self._unread.clear()
        return self._vocabulary

    @property
    def nbytes(self) -> int:
        """The approximate memory use, in bytes."""
        words = 120 * len(self._vocabulary.terms) if self._vocabulary else 0
        words += sum(70 * len(terms) for _, terms in self._unread.values())
        postings = sum(p[0].nbytes + p[1].nbytes + p[2].nbytes for p in self._postings.values())
        derived = sum(getattr(value, "nbytes", 0) for value in self.scratch.values())
        rows = self._rows.nbytes + self._vectors.nbytes + self._token_bytes + 150 * len(self.tokens)
        return rows + 2 * postings + words + derived + 400 * len(self._postings)

    def patch(self, segments: Iterable[tuple[int, Segment]]) -> None:
        """Replace the segments with these numbers. The caller holds `lock`."""
        changed = list(segments)
        if not changed:
            return
        self._grow((max(number for number, _ in changed) + 1) * SEGMENT_ROWS)
        self.revision += 1
        for number, segment in changed:
            at = number * SEGMENT_ROWS
            for row in range(at, at + SEGMENT_ROWS) if self._patched[number] else ():
                self._token_bytes -= len(self.tokens.pop(row, b""))
            self._patched[number] = self.revision
            self._rows[at : at + SEGMENT_ROWS] = segment.rows
            if segment.vectors is None:
                self._vectors[at : at + SEGMENT_ROWS] = 0
            else:
                if self._vectors.shape[1] != segment.vectors.shape[1]:
                    self._vectors = np.zeros((len(self._rows), segment.vectors.shape[1]), np.float32)
                self._vectors[at : at + SEGMENT_ROWS] = segment.vectors
            if segment.tokens:
                self.add_tokens({at + slot: packed for slot, packed in segment.tokens.items()})
            docs = segment.slots.astype(np.int32) + at
            self._postings[number] = (docs, segment.terms[segment.which], segment.counts)
            self._unread[number] = (segment.listing, segment.terms)
        self._flat = None

    def turns_of(self, sessions: Collection[int]) -> NDArray[np.bool_]:
        """[size] Which rows are turns of `sessions`, by number. The caller holds `lock`."""
        rows = self.rows
        said: NDArray[np.bool_] = np.isin(rows["session"], list(sessions)) & (rows["kind"] == TURN)
        return said

    def stands_without(self, sessions: Collection[int]) -> bytes:
        """A digest of the rows except the turns of `sessions`: equal as long as nothing else changed.

        The caller holds `lock`.
        """
        asked = (self.revision, frozenset(sessions))
        kept = self.scratch.get("stands")
        if kept is None or kept[0] != asked:
            keep = ~self.turns_of(sessions) & (self.rows["kind"] != 0)
            docs, terms, counts = self.postings
            said = keep[docs]
            digest = blake2b(digest_size=16)
            for part in (np.flatnonzero(keep), self.rows[keep], docs[said], terms[said], counts[said]):
                digest.update(part.tobytes())
            kept = self.scratch["stands"] = (asked, digest.digest())
        return bytes(kept[1])

    def items(self, group: str) -> Partition:
        """The items of kind `group` alone, as searchable rows; `origin` maps them to rows here.

        Cached until the next patch. The caller holds `lock`.
        """
        kept = self.scratch.get(f"items.{group}")
        if isinstance(kept, Partition) and kept.version == self.revision:
            return kept
        rows = self.rows
        wanted = (rows["kind"] == ITEM) & (rows["session"] == number_of(group)) & (rows["characters"] > 0)
        segments = distinct(np.flatnonzero(wanted) // SEGMENT_ROWS)
        origin = (segments[:, None] * SEGMENT_ROWS + np.arange(SEGMENT_ROWS)).reshape(-1)
        here = wanted[origin]
        made = Partition(self._vectors.shape[1])
        made.version, made.size, made.revision = self.revision, len(origin), 1
        made.origin = origin
        made._rows = np.where(here, rows[origin], np.zeros(1, ROW))
        made._rows["kind"][here] = MEMORY
        made._rows["session"] = 0
        made._rows["flags"] &= 0xFF ^ int(Flag.UNHEARD)
        made._vectors = self.vectors[origin] * here[:, None]
        made._patched = np.ones(len(segments) + 1, np.int64)
        for number, segment in enumerate(segments.tolist()):
            docs, terms, counts = self._postings[segment]
            kept_docs = wanted[docs]
            moved = docs[kept_docs] + np.int32((number - segment) * SEGMENT_ROWS)
            made._postings[number] = (moved, terms[kept_docs], counts[kept_docs])
        place = np.flatnonzero(here)
        made.add_tokens(
            {
                row: self.tokens[at]
                for row, at in zip(place.tolist(), origin[place].tolist(), strict=True)
                if at in self.tokens
            }
        )
        # the vocabulary of all rows: a word that none of these has finds nothing
        made._vocabulary = Vocabulary(dict(self.vocabulary.terms), dict(self.vocabulary.sounds))
        self.scratch[f"items.{group}"] = made
        return made

    def add_tokens(self, tokens: Mapping[int, bytes]) -> None:
        """Add the word pieces of rows that have none here. The caller holds `lock`."""
        self.tokens.update(tokens)
        self._token_bytes += sum(map(len, tokens.values()))

    def reserve(self, rows: int) -> None:
        """Allocate `rows` rows, so that adding them in parts copies nothing twice."""
        if rows > len(self._rows):
            held = np.zeros(rows, ROW)
            held[: self.size] = self.rows
            vectors = np.zeros((rows, self._vectors.shape[1]), np.float32)
            vectors[: self.size] = self.vectors
            patched = np.zeros(rows // SEGMENT_ROWS + 1, np.int64)
            patched[: len(self._patched)] = self._patched
            self._rows, self._vectors, self._patched = held, vectors, patched

    def _grow(self, size: int) -> None:
        if size > len(self._rows):
            # half as much again once a scope grows, so that appending turns rarely copies
            self.reserve(max(size, self.size + self.size // 2) if self.size else size)
        self.size = max(self.size, size)
