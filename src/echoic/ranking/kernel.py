"""The compiled parts of ranking, if the package `echoic-kernel` is installed.

Without it numpy computes the same order. Scores differ by rounding only: a question's word pieces are rounded
to 16 bits, and sums are added in another order. `ECHOIC_KERNEL=off` turns it off.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

VARIABLE: Final = "ECHOIC_KERNEL"
INTERFACE: Final = 4
"""Version of the functions' signatures; the package has the same number."""
OFF: Final = frozenset({"off", "0", "no", "false"})

log = logging.getLogger(__name__)


def load() -> Any | None:
    """The package's module; None if it is off, not installed, or not usable."""
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
"""The compiled functions, or None."""
hold: Final[Callable[..., Any]] = (lambda *_: None) if compiled is None else compiled.hold
"""A number and arrays as the compiled functions take them, without asking for each at every call; None
without a kernel. The arrays must not be written to."""


def name() -> str:
    """The implementation in use: "numpy", or the instruction set of the compiled kernel."""
    return "numpy" if compiled is None else _best_of(compiled)


@cache  # a virtual machine traps the question which instructions there are
def _best_of(module: Any) -> str:
    return str(module.instructions()[0])


def multiplies() -> bool:
    """Whether matrix products use the kernel: plain C without vector instructions is slower than numpy."""
    return name() not in {"numpy", "plain"}
