"""The exit codes of commands."""

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
    DONE: "done, or something was found",
    NOTHING_KNOWN: "searched everything and found nothing",
    COULD_NOT_LOOK: "the store or the embedder could not be used, so there is no answer",
    PARTLY: "done, but part of the input was skipped; stderr says what and why",
    BAD_INPUT: "the command or one of its values is invalid; nothing was changed",
    UNEXPECTED: "a bug in Echoic; --debug shows where",
    INTERRUPTED: "interrupted, or you answered no to a confirmation",
    PIPE_CLOSED: "the reader of the output closed the pipe",
}


def exit_code(error: BaseException) -> int:
    """The exit code of a command that ended with `error`."""
    if isinstance(error, (InvalidInput, NotAllowed, click.ClickException)):
        return BAD_INPUT
    if isinstance(error, EchoicError):
        return COULD_NOT_LOOK
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return INTERRUPTED
    return UNEXPECTED
