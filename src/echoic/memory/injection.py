"""Whether a text addresses the model that will read it, rather than describing the user. Pure.

Prompt injection through memory is an order stored now and obeyed later. Quoting disarms it (`prompt`); this
module keeps it out. A text is an order if three things meet: it is addressed to the model, because it opens a
clause or follows "you", "the assistant" or "I order you to"; it is not the kind of thing said about a person;
and its object belongs to the model: its rules, its prompt, its checks, other people's data. "My doctor told
me to ignore the instructions" lacks the first, "ignore my ex's calls" the last. The words are in
injection.txt.

These are rules, and an attacker who knows them finds words that pass. What passes is still quoted data.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Final

from echoic.text import sections

WHY: Final = {
    "override": "it sets aside the model's rules or checks",
    "persona": "it gives the model another role",
    "authority": "it grants rights to the model or a caller",
    "oversight": "it has something done without approval or verification",
    "disclosure": "it has prompts, credentials or other people's data given out",
    "standing": "it makes itself a standing instruction",
    "markup": "it holds the markup of a prompt or a tool call",
    "exfiltration": "it has what was said sent elsewhere",
    "steering": "it tells the model what to do with other callers",
    "key": "its key is one that prompts and permissions are kept under",
}
"""What is wrong with a text, by kind of injection."""

_MACRO: Final = re.compile(r"\{([a-z_]+)\}")
_READING: Final = re.IGNORECASE | re.MULTILINE


def _sections() -> Mapping[str, list[str]]:
    return sections(__package__, "injection.txt")


@cache
def _listed(name: str) -> frozenset[str]:
    """The words and phrases of a list."""
    return frozenset(word for line in _sections()[f"words.{name}"] for word in line.split("|"))


@cache
def _source(name: str) -> str:
    """A pattern, with the patterns it refers to inserted."""
    return _MACRO.sub(lambda named: _source(named[1]), "".join(_sections()[name]))


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_source(name), _READING)


@cache
def _all_of(what: str) -> dict[str, re.Pattern[str]]:
    """Each pattern of a group, by its name."""
    return {name: _pattern(name) for name in _sections() if name.startswith(f"{what}.")}


@cache
def _orders() -> re.Pattern[str]:
    """All orders, whoever they are addressed to, as one pattern to search once."""
    names = [name for name in _sections() if name.startswith("orders.")]
    each = "|".join(f"(?P<{name.replace('.', '_')}>{_source(name)})" for name in names)
    return re.compile(rf"\W*{_source('addressed')}(?:{each})", _READING)


_OF_MY: Final = re.compile(
    r"\b(?:mein\w*|meus?|minhas?|mis?|mes|mon|ma|miei|mie|mio|mia|mijn)\b", re.IGNORECASE
)

_CLAUSES: Final = re.compile(r"[.!?;:\n…](?=\s|\Z|[\"'”])|\s[-–—]\s|,\s|\)\s|\]|[\"“”]")
_SENTENCES: Final = re.compile(r"[.!?\n…](?=\s|\Z)|\]")
_CONJOINED: Final = re.compile(r"\s(?:and|then|but)\s", re.IGNORECASE)
_OTHERS: Final = re.compile(
    r"\b(?:i|i['’]\w+|we|we['’]\w+|he|she|they|who|my|our|his|her|their|me|us|him|told|asked|says?|said|to)\b",
    re.IGNORECASE,
)
_ORDERING_ME: Final = re.compile(
    r"\A\W*(?:i|we)\W+(?:hereby\W+|now\W+)?(?:\w+|'d like|would like)\W+(?:you|the)\b", re.IGNORECASE
)
_WORD: Final = re.compile(r"[a-z0-9]+")
_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
_TAGS: Final = re.compile("[\U000e0020-\U000e007e]{8,}")
_LOOKALIKES: Final = str.maketrans(
    "аеорсухіјѕԁһոгкмтвнАВЕКМНОРСТУХІЈЅαοιερνκτυ", "aeopcyxijsdhnrkmtbhABEKMHOPCTYXIJSaoiepvktu"
)
_LEET: Final = str.maketrans("0134578@$!", "oieastbasi")
_LEETED: Final = re.compile(
    r"\b(?=\w*[a-z])(?:[a-z]+[0-9@$!][a-z0-9@$!]*|[0-9@$][a-z][a-z0-9@$!]*)", re.IGNORECASE
)
_SPACED: Final = re.compile(
    r"(?:\b[A-Za-z](?:[ .\-_*])){5,}[A-Za-z]\b(?:\s{1,3}(?:[A-Za-z][ .\-_*]){1,}[A-Za-z]\b)*"
)
_ENCODED: Final = re.compile(r"(?<![\w+/=])[A-Za-z0-9+/_-]{24,}={0,2}(?![\w+/=])")

_CLAUSE: Final = 400
"""Characters of a clause that are searched for an order, which bounds the cost of a repeated one."""
_KEY_PARTS: Final = re.compile(r"[./:|\\>\[\]]+")
_MARKS: Final = re.compile(r"[<>\[\]{}#:=(]")
"""Every markup contains one of these."""
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def injected(text: str, key: str | None = None) -> str | None:
    """The entry of `WHY` that applies to `text`, stored under `key`; None if it is not an instruction.

    Disguises are undone first: invisible characters, look-alike letters, digits for letters, spaced letters
    and base64.
    """
    if key is not None and _is_reserved(key, text):
        return "key"
    hidden = _TAGS.search(text)
    readings = [_plain(text)]
    if hidden:
        readings.append("".join(chr(ord(c) - 0xE0000) for c in hidden.group()))
    first = readings[0]
    if _LEETED.search(first):
        readings.append(_LEETED.sub(lambda found: found.group().translate(_LEET), first))
    if _SPACED.search(first):
        readings.append(_SPACED.sub(lambda found: _closed(found.group()), first))
    readings += [decoded for run in _ENCODED.findall(first)[:16] if (decoded := _decoded(run))]
    return next((kind for reading in readings if (kind := _injects(reading))), None)


def _injects(text: str) -> str | None:
    if _MARKS.search(text) and (kind := _first("markup", text)):
        return kind
    if (found := _pattern("elsewhere").search(text)) and not _OF_MY.search(found.group()):
        return "override"
    for sentence in _SENTENCES.split(text):
        if _listed("telling").isdisjoint(word[:4] for word in _WORD.findall(sentence.lower())):
            continue
        if kind := _first("claims", sentence) or _ordered(sentence):
            return kind
    return None


def _first(what: str, text: str) -> str | None:
    """The kind of the first pattern of a group found in `text`."""
    return next((name.split(".")[1] for name, of in _all_of(what).items() if of.search(text)), None)


def _ordered(sentence: str) -> str | None:
    """An order to the model that opens a clause of `sentence`, or follows another order."""
    for clause in dict.fromkeys(sentence[at : at + _CLAUSE] for at in _openings(sentence)):
        found = _orders().match(clause)
        if found and found.lastgroup:
            return found.lastgroup.split("_")[1]
    return None


def _openings(sentence: str) -> list[int]:
    """Positions where a command can begin, but not after "and" if a person would be the one to act."""
    found = [0, *(mark.end() for mark in _CLAUSES.finditer(sentence))]
    for joint in _CONJOINED.finditer(sentence):
        before = sentence[max(at for at in found if at <= joint.start()) : joint.start()]
        if not _OTHERS.search(before) or _ORDERING_ME.match(before):
            found.append(joint.end())
    return found


def _plain(text: str) -> str:
    """`text` without decorations that a model ignores."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).translate(_LOOKALIKES).replace("’", "'")


def _closed(spaced: str) -> str:
    """Join spaced letters into words; wider gaps become spaces."""
    return " ".join(re.sub(r"[ .\-_*]", "", word) for word in re.split(r"\s{2,}", spaced))


def _decoded(run: str) -> str | None:
    """The content of base64 data, if it is text."""
    try:
        raw = base64.b64decode(run.replace("-", "+").replace("_", "/") + "=" * (-len(run) % 4))
        text = raw.decode()
    except (binascii.Error, ValueError):
        return None
    return text if text.isprintable() and " " in text else None


def _is_reserved(key: str, text: str) -> bool:
    """Whether code that reads `key` by name would take the entry for a prompt or permissions."""
    parts = [
        " ".join(re.split(r"[\s_-]+", _CAMEL.sub(" ", part))).strip().casefold()
        for part in _KEY_PARTS.split(_plain(key))
    ]
    parts = [part for part in parts if part]
    if not parts:
        return False
    last, path = parts[-1], " ".join(parts)
    if not _listed("reserved").isdisjoint((last, path)):
        return True
    if len(parts) > 1 and parts[-2] in _listed("owners") and last in _listed("owned"):
        return True
    return last in _listed("roles") and _pattern("powerful").fullmatch(text) is not None
