"""Compiled parts of Echoic's ranking, which `echoic.ranking` uses where they are installed."""

from echoic_kernel._kernel import (
    INTERFACE,
    answers,
    channels,
    cosines,
    evidence,
    find,
    hold,
    instructions,
    likely,
    likeness,
    parts,
    scaled,
    top,
    use,
    weighed,
    words,
)

__all__ = [
    "INTERFACE",
    "answers",
    "channels",
    "cosines",
    "evidence",
    "find",
    "hold",
    "instructions",
    "likely",
    "likeness",
    "parts",
    "scaled",
    "top",
    "use",
    "weighed",
    "words",
]
