"""How people write and say numbers and letters, and tables of words. Pure; independent of memories."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from types import MappingProxyType
from typing import Final

START: Final = r"(?<![^\W_])"
"""Matches where no letter or digit precedes."""
END: Final = r"(?![^\W_])"
"""Matches where no letter or digit follows."""
_SECTION: Final = re.compile(r"\[[a-z_]+(?:\.[a-z0-9_]+)*\]")
_NAMED: Final = re.compile(r"\{([a-z][a-z0-9 ]*)\}")


def any_of(words: str) -> str:
    """A group that matches one of `words`, which are separated by white space.

    A word may itself be a pattern; "_" stands for white space between the words of a phrase.
    """
    return "(?:" + "|".join(word.replace("_", r"\s+") for word in words.split()) + ")"


@cache
def word_lists(package: str) -> Mapping[str, str]:
    """The word lists in `words.txt` of `package` by name, each as words separated by white space.

    A line "[name]" begins a list, and "#" a comment. A word that begins with "=" stands for all words of the
    list of that name, which must come first; otherwise KeyError is raised.
    """
    lists: dict[str, list[str]] = {}
    here: list[str] = []
    for line in (get_data(package, "words.txt") or b"").decode().splitlines():
        if line.startswith("["):
            here = lists.setdefault(line.strip("[] "), [])
            continue
        for word in line.partition("#")[0].split():
            here += lists[word[1:]] if word[0] == "=" else [word]
    return MappingProxyType({name: " ".join(words) for name, words in lists.items()})


@cache
def sections(package: str, file: str) -> Mapping[str, list[str]]:
    """The lines of each section "[name]" in a data file of `package`, without blank lines and comments."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (get_data(package, file) or b"").decode().splitlines():
        if _SECTION.fullmatch(line):
            lines = found.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return MappingProxyType(found)


@cache
def patterns(package: str, name: str) -> Mapping[str, str]:
    """The patterns in `<name>.txt` of `package`, by name: regular expressions, or words for `any_of`.

    A line "[name]" begins one, and "#" a comment. Its lines are indented by two spaces, and joined. "{name}"
    stands for a pattern above, or for any word of that list in `words.txt`; otherwise KeyError is raised.
    """
    lines: dict[str, list[str]] = {}
    here: list[str] = []
    for line in (get_data(package, f"{name}.txt") or b"").decode().splitlines():
        if line.startswith("["):
            here = lines.setdefault(line.strip("[] "), [])
        elif line.startswith("  "):
            here.append(line[2:])
    found: dict[str, str] = {}
    for each, parts in lines.items():
        found[each] = _NAMED.sub(
            lambda named: found.get(named[1]) or any_of(word_lists(package)[named[1]]), "".join(parts)
        )
    return MappingProxyType(found)
