"""A process that has imported everything and forks children that run a program and may be killed at will.

A fork takes milliseconds where a fresh interpreter takes a third of a second, so hundreds of deaths fit into a
test. Commands come as JSON lines; a child waits for its gate to open, so that a tracer can be attached first.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from durability.programs import PROGRAMS

_PR_SET_PDEATHSIG = 1
_PR_SET_PTRACER = 0x59616D61
_ANYONE = ctypes.c_ulong(-1)
_prctl = ctypes.CDLL(None).prctl


def main() -> None:
    """Serve until standard input ends."""
    _die_with_the_parent()
    for line in sys.stdin:
        command = json.loads(line)
        if "wait" in command:
            _answer(os.waitstatus_to_exitcode(os.waitpid(command["wait"], 0)[1]))
        else:
            _answer(_fork(command["program"], command["gate"], command["arguments"]))


def _answer(value: int) -> None:
    print(value, flush=True)


def _fork(program: str, gate: str, arguments: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        _die_with_the_parent()
        _prctl(_PR_SET_PTRACER, _ANYONE, 0, 0, 0)  # where else only a parent may trace its children
        Path(gate).read_bytes()  # a named pipe: blocks until the test opens the other end
        asyncio.run(PROGRAMS[program](**arguments))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _die_with_the_parent() -> None:
    """So that nothing goes on writing when a test ends as it should not."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    main()
