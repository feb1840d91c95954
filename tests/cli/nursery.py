"""A process that has imported what commands need, and forks one child a command.

A child is a process of its own that runs the command from its first word to its exit code; only the time in
which an interpreter starts and imports is saved: half a second, hundreds of times.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import Any

LONGEST_S = 120


def main() -> None:
    """Serve until the other end closes: a JSON line in, an exit code out."""
    import echoic.cli
    import echoic.memory.service

    link = socket.socket(fileno=int(sys.argv[1]))
    requests = link.makefile("rb")
    while line := requests.readline():
        child = os.fork()
        if not child:
            link.detach()
            _become(json.loads(line))
            signal.alarm(LONGEST_S)
            sys.exit(echoic.cli.main())
        _, status = os.waitpid(child, 0)
        link.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(command: dict[str, Any]) -> None:
    """The process the command asks for: words, folder, environment, and where its streams lead."""
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["env"])
    for stream, (name, flags) in enumerate(
        ((command["in"], os.O_RDONLY), (command["out"], os.O_WRONLY), (command["err"], os.O_WRONLY))
    ):
        opened = os.open(name, flags)
        os.dup2(opened, stream)
        os.close(opened)
    sys.argv = ["echoic", *command["words"]]


if __name__ == "__main__":
    main()
