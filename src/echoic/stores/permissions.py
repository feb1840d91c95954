"""Who may read the files of a store: their owner alone, whatever the umask. Blocking."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

OWNER_ONLY: Final = 0o600
_OTHERS: Final = 0o007


def create_private(path: Path) -> None:
    """Create `path`, empty, for its owner alone; nothing happens if it is there.

    SQLite gives its log and its shared memory the mode of the file they belong to, each time it makes them.
    """
    # never opened where it is there: closing a descriptor of a database would drop SQLite's locks on it
    with contextlib.suppress(FileExistsError):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        try:
            if hasattr(os, "fchmod"):  # a umask may have taken away the owner's bits as well
                os.fchmod(fd, OWNER_ONLY)
        finally:
            os.close(fd)


def without_others(mode: int) -> int:
    """`mode` for a file that holds what people said.

    What everybody may read becomes the owner's alone. What is shared with a group only stays so, since
    nothing of ours makes such a file: somebody meant it.
    """
    return mode & ~0o077 if mode & _OTHERS else mode


def tighten(path: Path) -> None:
    """Apply `without_others` to `path` if it is there; a warning where this user may not."""
    if os.name == "nt":  # there, a mode says nothing of others
        return
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if (wanted := without_others(mode)) == mode:
            return
        try:
            path.chmod(wanted)
        except FileNotFoundError:
            return
        except OSError:
            log.warning("%s can be used by every user of this machine; run `chmod 600` on it", path)
