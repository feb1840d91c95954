"""Compiled parts of Echoic's ranking, which `echoic.ranking` uses where they are installed."""

from echoic_kernel._kernel import (
    INTERFACE,
    cosines,
    find,
    hold,
    instructions,
    likeness,
    scaled,
    spread,
    top,
    use,
    weighed,
    words,
)

__all__ = [
    "INTERFACE",
    "cosines",
    "find",
    "hold",
    "instructions",
    "likeness",
    "scaled",
    "spread",
    "top",
    "use",
    "weighed",
    "words",
]
