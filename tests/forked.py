"""Processes of Python that are forked from one that has imported what they need.

A child is a process of its own that runs a program from its first line to its exit code: a module as `python -m`
does, a script or a text, in a folder, an environment and with streams of its own. It is waited for, interrupted
and killed like any other. Only the time in which an interpreter starts and imports is saved: one to four seconds
of processor, hundreds of times. Two children of one parent hash strings alike; what is about imports, the start
of an interpreter, its options or its hashing begins with `subprocess`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any

MODULES = (
    "anyio._backends._asyncio",
    "echoic.adapters.browser",
    "echoic.adapters.twilio.media",
    "echoic.adapters.twilio.phone",
    "echoic.adapters.twilio.relay",
    "echoic.adapters.twilio.webhooks",
    "echoic.capability.talker",
    "echoic.cli",
    "echoic.embedding.encoder",
    "echoic.embedding.local",
    "echoic.memory.extraction.clause_reader",
    "echoic.memory.extraction.model_reader",
    "echoic.memory.extraction.reconciliation",
    "echoic.memory.extraction.rule_reader",
    "echoic.memory.extraction.sentence_extractor",
    "echoic.memory.erasure",
    "echoic.memory.export",
    "echoic.memory.forget_targets",
    "echoic.models",
    "echoic.models.question",
    "echoic.factory",
    "echoic.server",
    "echoic.server.routes.voice",
    "echoic.session.voice_call",
    "echoic.stores.files",
    "echoic.stores.mongodb",
    "echoic.stores.postgres",
    "echoic.stores.sqlite",
    "echoic.stores.bulk_copy",
    "echoic.testing.store_histories",
    "echoic_loopback.cli",
    "encodings.idna",
    "encodings.utf_8_sig",
    "fastapi.telemetry._runtime",
    "genai_prices.data",
    "google.auth.aio.credentials",
    "google.genai",
    "httpcore",
    "numpy.ma",
    "openai.resources.realtime",
    "platformdirs.unix",
    "pydantic_ai.models.function",
    "pydantic_ai.models.openai",
    "pydantic_ai.realtime.google",
    "pydantic_ai.realtime.lifecycle",
    "pydantic_ai.realtime.openai",
    "twilio.twiml.voice_response",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
)
"""What the first process imports. What is missing here is imported by each child that needs it."""


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen` of a command that begins with `sys.executable`, without the start of an interpreter.

    Where processes cannot be waited for by descriptor, it is `subprocess.Popen` itself.
    """

    _told: socket.socket | None = None

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *others):
        if not hasattr(os, "pidfd_open"):
            super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *others)
            return
        assert args[0] == sys.executable, "only Python is forked"
        assert executable is None
        assert preexec_fn is None
        assert not pass_fds
        _startupinfo, _flags, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *_rest = others
        assert not shell
        command = {
            "words": [os.fspath(word) for word in args[1:]],
            "cwd": os.fspath(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
        }
        streams = [p2cread, c2pwrite, errwrite]
        given = [number if stream == -1 else stream for number, stream in enumerate(streams)]
        self.pid, self._told = _parent().fork(command, given)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def _try_wait(self, wait_flags):
        if self._told is None:
            return super()._try_wait(wait_flags)
        ready = select.select([self._told], [], [], 0 if wait_flags & os.WNOHANG else None)[0]
        if not ready:
            return 0, 0
        said = self._told.recv(64)
        self._told.close()
        # nothing: the parent of all is gone, and whoever was left of its children with it
        return self.pid, int(said) if said else signal.SIGKILL

    def _internal_poll(self, _deadstate=None, **others):
        if self._told is None:
            return super()._internal_poll(_deadstate, **others)
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


def run(command, *, input=None, capture_output=False, timeout=None, check=False, **options):  # noqa: A002 - as subprocess.run names it
    """`subprocess.run` of a command that begins with `sys.executable`, without the start of an interpreter."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options["stdout"] = options["stderr"] = subprocess.PIPE
    with Popen(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


class Parent:
    """The process that has imported everything, seen from the tests: one for all workers of a run."""

    def __init__(self, address: str) -> None:
        self._asking = threading.Lock()
        self._link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link.connect(address)

    def fork(self, command: dict[str, Any], streams: list[int]) -> tuple[int, socket.socket]:
        """A child that runs `command`: its number, and where its status will be told."""
        told, telling = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with telling, self._asking:
            socket.send_fds(self._link, [json.dumps(command).encode()], [*streams, telling.fileno()])
            pid = int(self._link.recv(64))
        return pid, told

    def close(self) -> None:
        self._link.close()


_ADDRESS = "ECHOIC_TEST_FORKED"
_OWNER = "ECHOIC_TEST_FORKED_BY"
_links: list[Parent] = []
_made: list[tuple[tempfile.TemporaryDirectory[str], socket.socket, subprocess.Popen[bytes]]] = []
_making = threading.Lock()


def begin(*, at_once: bool = False) -> None:
    """Start the process that imports everything; workers inherit where it is.

    It imports when the first child is asked for, or at once, where children are sure to come.
    """
    if not hasattr(os, "pidfd_open") or _ADDRESS in os.environ:
        return
    folder = tempfile.TemporaryDirectory(prefix="echoic-forked-")
    address = f"{folder.name}/socket"
    ours, theirs = socket.socketpair()
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen()
        process = subprocess.Popen(
            [
                sys.executable,
                __file__,
                str(theirs.fileno()),
                str(listening.fileno()),
                *(["at once"] if at_once else []),
            ],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process with threads is not to be forked
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno(), listening.fileno()],
        )
    _made.append((folder, ours, process))
    os.environ[_ADDRESS] = address
    os.environ[_OWNER] = str(os.getpid())


def _parent() -> Parent:
    with _making:
        if not _links:
            begin()
            _links.append(Parent(os.environ[_ADDRESS]))
    return _links[0]


def end() -> None:
    """End what was begun here: the way to that process and, where it was started, the process itself."""
    while _links:
        _links.pop().close()
    while _made and os.environ.get(_OWNER) == str(os.getpid()):  # a worker inherits what others still use
        folder, life, process = _made.pop()
        life.close()
        process.wait()
        folder.cleanup()
        del os.environ[_ADDRESS]


# --- that process ---


def _serve(life: socket.socket, listening: socket.socket) -> dict[str, Any] | None:
    """Fork on request until `life` ends. Returns in each child, with what it is to run; else None."""
    children: dict[int, tuple[int, socket.socket]] = {}
    links: dict[int, socket.socket] = {}
    poll = select.poll()
    poll.register(life, select.POLLIN)
    poll.register(listening, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready == life.fileno():
                return None
            if ready == listening.fileno():
                _import_all()
                link = listening.accept()[0]
                links[link.fileno()] = link
                poll.register(link, select.POLLIN)
                continue
            if ready in children:
                pid, telling = children.pop(ready)
                poll.unregister(ready)
                os.close(ready)
                status = os.waitpid(pid, 0)[1]
                with telling, contextlib.suppress(OSError):  # who does not ask any more is not told
                    telling.send(str(status).encode())
                continue
            message, given, _, _ = socket.recv_fds(links[ready], 1 << 20, 4)
            if not message:
                poll.unregister(ready)
                links.pop(ready).close()
                continue
            pid = os.fork()
            if not pid:
                _leave([life, listening, *links.values()], children)
                return _become(json.loads(message), given)
            for stream in given[:3]:
                os.close(stream)
            descriptor = os.pidfd_open(pid)
            children[descriptor] = pid, socket.socket(fileno=given[3])
            poll.register(descriptor, select.POLLIN)
            links[ready].send(str(pid).encode())


@functools.cache
def _import_all() -> None:
    gc.disable()
    for name in MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # so that no collection writes to the pages that the children share
    gc.enable()


def _leave(sockets: list[socket.socket], children: dict[int, tuple[int, socket.socket]]) -> None:
    """Nothing of the parent's is held in a child."""
    for each in sockets:
        each.close()
    for descriptor, (_, telling) in children.items():
        os.close(descriptor)
        telling.close()


def _become(command: dict[str, Any], given: list[int]) -> dict[str, Any]:
    """Stand where the command is to run: folder, environment, and where the streams lead."""
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["env"])
    for number, stream in enumerate(given[:3]):
        os.dup2(stream, number)
    for stream in given:
        os.close(stream)
    # opened anew, since each looks once at what it leads to: a terminal, or not
    errors = sys.stderr.errors
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(
        2, "w", encoding="utf-8", errors=errors, closefd=False, buffering=1
    )
    return command


def _run(command: dict[str, Any]) -> None:
    """As Python does with the same words."""
    first, *words = command["words"]
    named = [path for path in command["env"].get("PYTHONPATH", "").split(os.pathsep) if path]
    if first == "-m":
        sys.path[:0] = [str(Path.cwd()), *named]
        sys.argv = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.path[:0] = ["", *named]
        sys.argv = ["-c", *words[1:]]
        exec(compile(words[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        script = Path(first).resolve()
        sys.path[:0] = [str(script.parent), *named]
        sys.argv = [first, *words]
        runpy.run_path(str(script), run_name="__main__")


def _ended(command: dict[str, Any]) -> int:
    """Run the command; the code that Python would end with.

    What is done at the end is done: threads are awaited, `atexit` is called, the streams are flushed. Only the
    modules are not taken apart, for each object that is freed would first copy its page.
    """
    code = 0
    try:
        try:
            _run(command)
        finally:
            threading._shutdown()
            atexit._run_exitfuncs()
    except SystemExit as left:
        code = left.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    try:
        sys.stdout.flush()
    except OSError:
        return 120
    return code & 255


def main() -> None:
    """Fork on request; what is to run in a child runs here at the end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored in its background
    del sys.path[0]  # the folder of the tests: a child has its own
    life, listening = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    if sys.argv[3:]:
        _import_all()
    command = _serve(life, listening)
    if command is not None:
        os._exit(_ended(command))


if __name__ == "__main__":
    main()
