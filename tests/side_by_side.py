"""`pytest --workers 4`: tests are collected once, and run in processes that are forked from the one that collected.

What stands together in one group (`pytest_group_of` in the conftest) runs in one worker, in order; groups go to
whichever worker has nothing left. A worker that dies fails the test it was at, and another takes up the rest.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import signal
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--workers", type=int, default=0, help="run tests in as many processes, forked after collection"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Any:
    """The first run in a checkout compiles every file of tests: another process begins with the last one."""
    config = session.config
    if not config.option.workers or config.option.collectonly:
        return (yield)
    sys.stdout.flush()
    helper = os.fork()
    if not helper:
        try:
            _draw_examples()
            _compile_from_the_end(config)
        finally:
            os._exit(0)
    try:
        return (yield)
    finally:
        os.kill(helper, signal.SIGKILL)
        os.waitpid(helper, 0)


def _draw_examples() -> None:
    """Let Hypothesis look up what it needs once a process, and keeps in a folder from then on.

    In a new checkout it tries every character, and reads the library for constants: seven seconds in each worker.
    """
    with contextlib.suppress(ImportError):
        from hypothesis import HealthCheck, given, settings
        from hypothesis import strategies as st

        # one draw in twenty asks for the constants
        numbers = st.lists(st.integers(), min_size=20, max_size=20)
        slowly = settings(
            max_examples=20, database=None, deadline=None, suppress_health_check=list(HealthCheck)
        )
        slowly(given(st.text(), numbers)(lambda _, __: None))()


def _compile_from_the_end(config: pytest.Config) -> None:
    """Write what pytest writes beside each file, whole or not at all; it takes what it finds there."""
    from _pytest.assertion import rewrite

    state = config.stash[rewrite.assertstate_key]
    files = [file for root in config.args if Path(root).is_dir() for file in Path(root).rglob("test_*.py")]
    for file in sorted(files, reverse=True):
        path = file.resolve()
        beside = rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
        if not sys.dont_write_bytecode and not beside.exists() and rewrite.try_makedirs(beside.parent):
            source, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(state, code, source, beside)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in workers, where they were asked for and can be watched."""
    config = session.config
    if not config.option.workers or config.option.collectonly or not hasattr(os, "pidfd_open"):
        return None
    if session.testsfailed:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    if any(item.get_closest_marker("examples") for item in session.items):
        _draw_examples()  # now that all modules are there, and before there are workers
    groups: dict[str, deque[int]] = {}
    for number, item in enumerate(session.items):
        groups.setdefault(config.hook.pytest_group_of(nodeid=item.nodeid), deque()).append(number)
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    reporter.showfspath = False  # tests of many files take turns
    reporter.flush()
    config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # in it, each worker has a folder
    _Run(session, deque(groups.values())).to_its_end(config.option.workers)
    return True


class Hooks:
    """What a conftest tells this plugin."""

    @staticmethod
    @pytest.hookspec(firstresult=True)
    def pytest_group_of(nodeid: str) -> str:
        """What runs in one worker, by the name of a test."""
        raise NotImplementedError


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(Hooks)


class _Worker:
    """A worker as the process that collected sees it."""

    def __init__(self, number: int, pid: int, link: Connection) -> None:
        self.id = f"w{number}"
        # a report names the worker it is from by these, as those of pytest-xdist do
        self.gateway, self._workerinfocache = self, f"[{self.id}]"
        self.number, self.pid, self.link = number, pid, link
        self.alive = os.pidfd_open(pid)
        self.todo: deque[int] = deque()
        self.at: int | None = None


class _Run:
    def __init__(self, session: pytest.Session, groups: deque[deque[int]]) -> None:
        self.session, self.groups = session, groups
        self.workers: list[_Worker] = []

    def to_its_end(self, count: int) -> None:
        try:
            for number in range(min(count, len(self.groups))):
                self._fork(number)
            while self.workers:
                self._hear()
                if self.session.shouldfail:
                    raise self.session.Failed(self.session.shouldfail)
                if self.session.shouldstop:
                    raise self.session.Interrupted(self.session.shouldstop)
        finally:
            for worker in self.workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGKILL)  # a server in it may ignore SIGTERM
                self._reap(worker)

    def _fork(self, number: int) -> None:
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            for each in [ours, *(worker.link for worker in self.workers)]:
                each.close()
            for worker in self.workers:
                os.close(worker.alive)
            _live(self.session, theirs, number)
        theirs.close()
        self.workers.append(_Worker(number, pid, ours))

    def _hear(self) -> None:
        """Take what workers said; a worker is over once it is dead and all it said was taken."""
        ready = wait([each for worker in self.workers for each in (worker.link, worker.alive)])
        for worker in [*self.workers]:
            if worker.link in ready or worker.alive in ready:
                while worker.link.poll():
                    try:
                        self._take(worker, *worker.link.recv())
                    except (EOFError, OSError):
                        break
            if worker.alive in ready:
                self.workers.remove(worker)
                self._ended(worker, self._reap(worker))

    def _take(self, worker: _Worker, said: str, value: Any) -> None:
        hook = self.session.config.hook
        if said == "at":
            worker.at = value
            worker.todo.remove(value)
        elif said == "report":
            report = hook.pytest_report_from_serializable(config=self.session.config, data=value)
            report.node = worker
            hook.pytest_runtest_logreport(report=report)
        elif said == "done":
            worker.at = None
        else:  # it is at the last test it knows of
            group = self.groups.popleft() if self.groups else deque()
            worker.todo.extend(group)
            with contextlib.suppress(BrokenPipeError):
                worker.link.send([*group])

    def _ended(self, worker: _Worker, status: int) -> None:
        if worker.at is not None:
            self._died_at(worker, worker.at, status)
        elif status and not worker.todo:
            raise RuntimeError(f"worker {worker.id} ended with {status} after its last test")
        if worker.todo:
            self.groups.appendleft(worker.todo)
        if self.groups:
            self._fork(worker.number)

    def _died_at(self, worker: _Worker, number: int, status: int) -> None:
        item = self.session.items[number]
        report = pytest.TestReport(
            item.nodeid,
            item.location,
            {},
            "failed",
            f"the process that ran {item.nodeid} died: {status}",
            "call",
        )
        report.node = worker  # type: ignore[attr-defined]
        self.session.config.hook.pytest_runtest_logreport(report=report)

    @staticmethod
    def _reap(worker: _Worker) -> int:
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        os.close(worker.alive)
        worker.link.close()
        return status


# --- in a worker ---


class _Telling:
    """Sends every report to the process that collected."""

    def __init__(self, config: pytest.Config, link: Connection) -> None:
        self.config, self.link = config, link

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.link.send(("report", data))


def _live(session: pytest.Session, link: Connection, number: int) -> None:
    """Be a worker, and end."""
    code = 1
    try:
        _begin(session.config, number)
        session.config.pluginmanager.register(_Telling(session.config, link))
        _work(session.items, link)
        plugins = session.config.pluginmanager
        plugins.unregister(plugins.get_plugin("terminalreporter"))  # the run is summed up elsewhere
        session.config.hook.pytest_sessionfinish(session=session, exitstatus=pytest.ExitCode.OK)
        session.config._ensure_unconfigure()
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        code = 0
    except BaseException:
        sys.__excepthook__(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


def _begin(config: pytest.Config, number: int) -> None:
    """Nothing that the process that collected will end, show or remove is held here."""
    atexit._clear()
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
    random.seed()
    config.workerinput = {"workerid": f"w{number}"}  # type: ignore[attr-defined]
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    reporter._tw._file = open(os.devnull, "w")  # noqa: PTH123, SIM115 - to the end of the process
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = factory.getbasetemp() / f"w{number}"
    factory._basetemp.mkdir(mode=0o700, exist_ok=True)
    factory._exit_stack = contextlib.ExitStack()


def _work(items: list[pytest.Item], link: Connection) -> None:
    """Run what is given. The next group is asked for before the last test of one: what both share outlives it."""
    ahead = _ahead(link)
    number = next(ahead, None)
    while number is not None:
        link.send(("at", number))
        following = next(ahead, None)
        item, nextitem = items[number], None if following is None else items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        link.send(("done", number))
        number = following


def _ahead(link: Connection) -> Iterator[int]:
    while True:
        link.send(("more", None))
        group = link.recv()
        if not group:
            return
        yield from group
