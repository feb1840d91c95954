"""Ids as file names and back: reversible, one name an id, nothing that leaves its folder. Pure.

A safe id (letters, digits, `_-.@+`) is its own name, so that a person finds `ana.json`. Everything else is
percent-encoded in UTF-8: separators, control characters, spaces, letters beyond a-z (which some systems store
in another normal form), a leading or trailing dot, the first letter of a name that Windows reserves. Where
the file system takes "Ana" and "ana" for one name, capitals are encoded too. What becomes too long is cut and
hashed; such a file says inside whose it is.
"""

from __future__ import annotations

import re
from hashlib import sha256

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


__all__ = ["ENDINGS", "EVERYONE", "MAX_NAME", "decode", "encode", "is_hashed", "plain"]
