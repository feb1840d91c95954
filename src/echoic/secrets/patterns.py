"""Regular expressions from plain lists of words, so that the lists can be read."""

from __future__ import annotations

START = r"(?<![^\W_])"
"""No letter or digit before."""
END = r"(?![^\W_])"
"""No letter or digit after."""


def any_of(words: str) -> str:
    """A group that matches one of `words`, which white space separates.

    A word may be a pattern itself; "_" stands for white space between the words of a phrase.
    """
    return "(?:" + "|".join(word.replace("_", r"\s+") for word in words.split()) + ")"


__all__ = ["END", "START", "any_of"]
