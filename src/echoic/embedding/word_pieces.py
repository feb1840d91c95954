"""WordPiece: a text cut into the pieces that a BERT model has numbers for (Devlin et al. 2018).

Read from a tokenizer.json of the uncased kind. Text is text: "[SEP]" in it is a word in brackets, no mark.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unicodedata import category, normalize

_LONGEST_WORD = 100  # characters; a longer one is one unknown piece
_INSIDE = "##"  # begins a piece that does not begin its word
_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


class Piece(NamedTuple):
    """A word piece."""

    id: int
    span: tuple[int, int]
    """The characters of the text that it stands for."""


class _Folded(dict[str, str]):
    """What a character becomes: lower case without accents, a blank, or nothing. Remembers the usual ones."""

    def __missing__(self, character: str) -> str:
        folded = _fold(character)
        if ord(character) < 0x250:
            self[character] = folded
        return folded


def _fold(character: str) -> str:
    if character in "\t\n\r":
        return " "
    if character == "\ufffd" or category(character) in {"Cc", "Cf", "Co", "Cs"}:
        return ""
    if character.isspace():
        return " "
    bare = "".join(part for part in normalize("NFD", character) if category(part) != "Mn")
    lower = "".join(part.lower() for part in bare)
    return f" {lower} " if any(low <= ord(character) <= high for low, high in _IDEOGRAPHS) else lower


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or category(character)[0] == "P"


class WordPieces:
    """The pieces of one vocabulary. Any thread may ask."""

    def __init__(self, file: Path) -> None:
        """Read the vocabulary.

        Raises:
            ValueError: `file` is no tokenizer.json of an uncased WordPiece model.
        """
        try:
            stated = json.loads(file.read_text(encoding="utf-8"))
            model, normalizer = stated["model"], stated["normalizer"]
            if (model["type"], normalizer["type"], normalizer["lowercase"]) != (
                "WordPiece",
                "BertNormalizer",
                True,
            ):
                raise ValueError("it is not of an uncased WordPiece model")
            self._vocabulary: dict[str, int] = model["vocab"]
            self._unknown = self._vocabulary[model["unk_token"]]
            self.start, self.end = self._vocabulary["[CLS]"], self._vocabulary["[SEP]"]
        except (KeyError, TypeError) as error:
            raise ValueError(f"it does not say {error}") from error
        self._folded = _Folded()

    def words(self) -> list[str]:
        """Every piece that may begin a word, in the order of their numbers."""
        return [
            piece
            for piece in sorted(self._vocabulary, key=self._vocabulary.__getitem__)
            if piece[:2] != _INSIDE
        ]

    def number(self, piece: str) -> int:
        """The number of `piece`, which may be a mark.

        Raises:
            KeyError: it has none.
        """
        return self._vocabulary[piece]

    def cut(self, text: str) -> Iterator[Piece]:
        """The pieces of `text` in order, made as they are asked for; [CLS] and [SEP] are not among them."""
        word: list[str] = []
        places: list[int] = []
        for place, character in enumerate(text):
            for part in self._folded[character]:
                alone = not part.isalnum() and _is_punctuation(part)
                if part != " " and not alone:
                    word.append(part)
                    places.append(place)
                    continue
                yield from self._pieces("".join(word), places)
                word, places = [], []
                if alone:
                    yield from self._pieces(part, [place])
        yield from self._pieces("".join(word), places)

    def _pieces(self, word: str, places: list[int]) -> list[Piece]:
        found: list[Piece] = []
        start = 0
        while start < len(word) <= _LONGEST_WORD:
            # the longest piece first
            for end in range(len(word), start, -1):
                number = self._vocabulary.get((_INSIDE if start else "") + word[start:end])
                if number is not None:
                    found.append(Piece(number, (places[start], places[end - 1] + 1)))
                    start = end
                    break
            else:
                break
        if word and start < len(word):
            return [Piece(self._unknown, (places[0], places[-1] + 1))]
        return found
