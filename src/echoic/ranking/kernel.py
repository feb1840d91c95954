"""The compiled parts of ranking, where the package `echoic-kernel` is installed.

Without it numpy ranks, to the same order. Scores differ by rounding only: a question's word pieces are
rounded to 16 bits, and sums are added in another order. `ECHOIC_KERNEL=off` turns it off.
"""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any, Final

import numpy as np

VARIABLE: Final = "ECHOIC_KERNEL"
INTERFACE: Final = 1
"""What the functions take and give; the package has the same number."""
OFF: Final = frozenset({"off", "0", "no", "false"})

log = logging.getLogger(__name__)


def load() -> Any | None:
    """The module of the package; None where it is off, not installed, or cannot be used."""
    if os.environ.get(VARIABLE, "").strip().lower() in OFF:
        return None
    try:
        found = importlib.import_module("echoic_kernel")
    except ModuleNotFoundError:
        return None
    except ImportError as error:
        log.warning("echoic-kernel cannot be loaded (%s): ranking uses numpy", error)
        return None
    if found.INTERFACE != INTERFACE or np.dtype(np.intp).itemsize != 8:
        log.warning(
            "echoic-kernel has interface %s and this version of Echoic takes %s: ranking uses numpy. "
            "Install the echoic-kernel of the same release",
            found.INTERFACE,
            INTERFACE,
        )
        return None
    return found


compiled: Any | None = load()
"""The functions; None: ranking uses numpy."""


def name() -> str:
    """The implementation in use: "numpy", or the instruction set of the compiled kernel."""
    return "numpy" if compiled is None else str(compiled.instructions()[0])


def multiplies() -> bool:
    """Whether products are compiled: without instructions for them, in plain C, numpy's are quicker."""
    return name() not in {"numpy", "plain"}
