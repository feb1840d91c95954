"""Thirty-two rows of a scope, packed so that storing one more is cheap and loading many is a few copies.

32 because appending rewrites the last segment's words (a few KB) while loading 10,000 rows reads 313 blobs
instead of 10,000: measured 5 to 20 times faster than a row at a time from 1,000 rows up.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.errors import StoreCorrupt
from echoic.text.analysis import Word

MEMORY = 1
TURN = 2
ITEM = 3


class Flag(IntFlag):
    """Properties of a row that ranking checks."""

    NONE = 0
    EMBEDDED = 1
    """Its vector is there; set by the store."""
    PAST = 2
    """Superseded or retracted: found only when the past is asked for."""
    QUESTION = 4
    """The text asks something."""
    TIME = 8
    """The text says when, or how long."""
    NUMBER = 16
    """The text counts something."""
    ASKING = 32
    """The text ends in a question: it asks more than it tells."""
    UNHEARD = 64
    """Nothing of it was heard: it is kept, and never found."""
    KEYED = 128
    """A short value under a key: it says in a word what others say in a sentence."""


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
    """A name as 32 bits, 0 for none. Used where only sameness within one scope matters."""
    return (zlib.crc32(name.encode()) or 1) if name else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The index data that a store keeps beside a record."""

    text: str
    """The text to embed. It is not stored here: a store asks for it when the embedding is due."""
    kind: int
    """MEMORY, TURN or ITEM."""
    words: tuple[tuple[Word, int], ...]
    """Distinct content words, each with how often it occurs."""
    characters: int = 0
    session: int = 0
    speaker: int = 0
    said_at_ms: int = 0
    flags: Flag = Flag.NONE

    @staticmethod
    def counted(words: Iterable[Word]) -> tuple[tuple[Word, int], ...]:
        """Words with their counts, in order of first appearance.

        Of words with one stem ("fox", "foxes") the first carries the counts of all, and the others none: so
        no row says a stem in two places.
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
    """The different `numbers`, ascending. `np.unique` loads a module of numpy's first, which takes 50 ms."""
    ordered = np.sort(numbers, axis=None)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


class Listing:
    """The words of a segment and their sounds, cut apart when they are first asked for.

    Loading a scope does not ask: only who misspoke or was misheard does.
    """

    __slots__ = ("_codes", "_lines", "_words")

    def __init__(self, words: str = "", codes: str = "") -> None:
        """Each a line; without a line there are none."""
        self._lines: tuple[str, str] | None = (words, codes)
        self._words: list[str] = []
        self._codes: list[str] = []

    @classmethod
    def of(cls, words: list[str], codes: list[str]) -> Listing:
        """These, each with its sounds."""
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
        """Words and codes as they lie in a file."""
        return self._lines or ("\n".join(self._words), "\n".join(self._codes))

    def _cut(self) -> None:
        if self._lines is not None:
            words, codes = self._lines
            self._words, self._codes = (words.split("\n"), codes.split("\n")) if words else ([], [])
            self._lines = None


class Segment:
    """Rows 32 n to 32 n + 31 of a scope: their fields, words and vectors. One thread at a time."""

    __slots__ = ("counts", "listing", "rows", "slots", "terms", "tokens", "vectors", "which")

    def __init__(self) -> None:
        self.rows: NDArray[np.void] = np.zeros(SEGMENT_ROWS, ROW)
        self.listing = Listing()
        self.terms: NDArray[np.uint32] = np.zeros(0, np.uint32)
        """Their stems as numbers, by word."""
        self.slots: NDArray[np.uint8] = np.zeros(0, np.uint8)
        """The row of each posting, 0 to 31."""
        self.which: NDArray[np.uint32] = np.zeros(0, np.uint32)
        """The word of each posting, as an index into `words`."""
        self.counts: NDArray[np.uint8] = np.zeros(0, np.uint8)
        """How often the row of each posting says its word, capped at 255."""
        self.vectors: NDArray[np.float32] | None = None
        """[32, dimensions]; zeros where there is none. None while no row has one."""
        self.tokens: dict[int, bytes] = {}
        """The word pieces that came with each vector, by slot; see `partition.tokens`."""

    @property
    def words(self) -> list[str]:
        """Distinct folded words of these rows."""
        return self.listing.words

    @property
    def codes(self) -> list[str]:
        """Their sounds, by word: Double Metaphone codes joined by a space."""
        return self.listing.codes

    @property
    def empty(self) -> bool:
        """Whether no row is left."""
        return not self.rows["kind"].any()

    def put(self, slot: int, entry: Entry, *, keep_vector: bool = False) -> None:
        """Write `entry` at `slot`, replacing its content."""
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
        """Empty `slot`; its words, sounds and vector are overwritten, not only unlinked."""
        self._clear(slot, keep_vector=False)
        self.rows[slot] = np.zeros((), ROW)

    def attach(self, slot: int, vector: NDArray[np.float32], tokens: bytes | None = None) -> None:
        """Set the vector of the row at `slot`, and the word pieces it was made of."""
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
        """Drop every vector, as when the embedding model changes."""
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
        """Everything but the vectors and the word pieces."""
        words, codes = (lines.encode() for lines in self.listing.lines())
        header = _HEADER.pack(_MAGIC, len(self.terms), len(self.slots), len(words), len(codes))
        arrays = (self.rows, self.terms, self.which, self.slots, self.counts)
        return b"".join((header, *(array.tobytes() for array in arrays), words, codes))

    @classmethod
    def from_bytes(cls, data: bytes, vectors: bytes | None = None) -> Segment:
        """The inverse of `to_bytes`, with the vectors' bytes beside it; without word pieces.

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
