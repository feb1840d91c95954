"""What the exit code of a command says. Nothing is printed here."""

from __future__ import annotations

from collections.abc import Mapping

import click

from echoic.errors import EchoicError, InvalidInput, NotAllowed

DONE = 0
NOTHING_KNOWN = 1
COULD_NOT_LOOK = 2
PARTLY = 3
BAD_INPUT = 64
"""EX_USAGE of sysexits.h, so that 2 keeps one meaning; click's own usage errors are mapped to it."""
UNEXPECTED = 70
"""EX_SOFTWARE of sysexits.h."""
INTERRUPTED = 130
"""128 + SIGINT, as shells count."""
PIPE_CLOSED = 141
"""128 + SIGPIPE."""

MEANINGS: Mapping[int, str] = {
    DONE: "done, or found",
    NOTHING_KNOWN: "looked everywhere, and nothing is known",
    COULD_NOT_LOOK: "the store or the embedder could not be used, so the answer is not known",
    PARTLY: "done, but part of the input was left out; stderr says what and why",
    BAD_INPUT: "the command or a value in it is not right; nothing was changed",
    UNEXPECTED: "a fault in Echoic; --debug shows where",
    INTERRUPTED: "interrupted, or the question whether to go on was answered with no",
    PIPE_CLOSED: "whoever read the output stopped reading",
}


def exit_code(error: BaseException) -> int:
    """What a command ends with when `error` ended it."""
    if isinstance(error, (InvalidInput, NotAllowed, click.ClickException)):
        return BAD_INPUT
    if isinstance(error, EchoicError):
        return COULD_NOT_LOOK
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return INTERRUPTED
    return UNEXPECTED


__all__ = [
    "BAD_INPUT",
    "COULD_NOT_LOOK",
    "DONE",
    "INTERRUPTED",
    "MEANINGS",
    "NOTHING_KNOWN",
    "PARTLY",
    "PIPE_CLOSED",
    "UNEXPECTED",
    "exit_code",
]
