from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import io
import os
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from statistics import median

import pytest
import pytest_asyncio
from hypothesis import settings

import forked
import scale
from this_machine import only_this_machine  # noqa: F401 - for every test

pytest_plugins = ["side_by_side"]

# read when numpy is imported: threads that wait for a product spin, and take the processor from other workers
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Folders of tests are in memory where there is room: a process that is killed leaves there what it leaves on a
# disk, and who cuts the power has a disk of its own. `make soak` waits for the disk.
MEMORY = Path("/dev/shm")
if scale.SCALE < 0.25 and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 2 << 30:
    os.environ.setdefault("TMPDIR", str(MEMORY))
    tempfile.tempdir = None  # pytest has looked before

# every client of HTTP reads the certificates of the machine, and talks to 127.0.0.1 without them
with contextlib.suppress(ImportError):
    import httpcore2

    httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)

# a model is loaded once in each worker, and again when its file is another one
with contextlib.suppress(ImportError):
    from echoic.embedding import encoder

    _load = encoder._load_session
    _kept = functools.lru_cache(maxsize=2)(lambda _changed, *what: _load(*what))
    encoder._load_session = lambda onnxruntime, files, threads: (
        _kept(files.onnx.stat().st_mtime_ns, onnxruntime, files, threads)
        if files.onnx.exists()
        else _load(onnxruntime, files, threads)
    )
    # and so is its vocabulary
    _cut = encoder.WordPieces
    _pieces = functools.lru_cache(maxsize=2)(lambda _changed, file: _cut(file))
    encoder.WordPieces = lambda file: _pieces(file.stat().st_mtime_ns, file) if file.exists() else _cut(file)

# no deadline for an example: a busy machine would miss it
# where CI is set, Hypothesis would draw the same examples each time and look at no seed
settings.register_profile("scaled", max_examples=scale.many(100, least=10), deadline=None, derandomize=False)
settings.load_profile("scaled")


def pytest_report_header() -> str:
    return f"random histories: ECHOIC_TEST_SEED={scale.SEED} ECHOIC_TEST_SCALE={scale.SCALE:g}"


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        # before there are workers, so that all use the same
        forked.begin(at_once=config.option.workers > 2)


# Tests of these files go one by one to where there is room: they share nothing, and wait for processes that die.
APART = (
    "durability/test_counters",
    "durability/test_full_disk",
    "durability/test_histories",
    "durability/test_kill",
    "durability/test_power_loss",
    "durability/test_processes",
    "lineage/test_bodhi_stale_answer",
    "memory/test_distil_crash",
    "memory/test_judging_crash",
    "stores/test_copying",
    "stores/test_histories",
    "stores/test_postgres_lost",
)


def pytest_group_of(nodeid: str) -> str:
    """What runs in one worker, by the name of a test.

    A file stays in one worker, for its tests share fixtures. All pages are visited in one, too: two browsers at
    work, that one and the one of the calls, are as many as two processors carry.
    """
    file = nodeid.partition("::")[0]
    if "voice_call_is_shown" in nodeid:
        return "tests/server/test_browser_voice.py"
    if ("/test_browser" in file and "voice" not in file) or "test_mongodb_demo_queries" in file:
        return "pages"
    return nodeid if any(name in file for name in APART) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Groups by name; `--dist loadgroup` loses them with pytest 9, which no longer lets a plugin rename a test."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return pytest_group_of(nodeid)

    return Groups(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Nine thousand tests and what they import stay to the end: no collection of garbage looks at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(
            7_000, 10, 10
        )  # a tenth as often: most of what a test leaves is counted, not collected
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--note-slow",
        action="store_true",
        help="run all, and if none fails, write what is slow into slow.txt",
    )


BEGAN_S = pytest.StashKey[float]()


def _processor_s() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[BEGAN_S] = _processor_s()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """A test says what processor time it took, and one that ran out of time what its tasks wait for."""
    report = yield
    noted = item.config.option.note_slow and not (_is_promised(item) or item.get_closest_marker("browser"))
    if noted and call.when == "teardown":
        took_s = _processor_s() - item.stash[BEGAN_S]
        report.user_properties.append(("took", (_function(item.nodeid), took_s)))
    if call.excinfo is not None and "pytest-timeout" in str(call.excinfo.value):
        waiting = io.StringIO()
        for task in gc.get_objects():
            if isinstance(task, asyncio.Task) and not task.done():
                task.print_stack(file=waiting)
        report.sections.append(("tasks that wait", waiting.getvalue()))
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest, mark what draws examples or is slow, and leave out what was not drawn."""
    names = {item.nodeid for item in items}
    slow = {*SLOW.read_text("utf-8").splitlines()}
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("examples")
        if (in_ram := _in_ram(item)) != item.nodeid and in_ram in names:
            item.add_marker("repeated")
        if not _is_promised(item) and (_function(item.nodeid) in slow or item.get_closest_marker("browser")):
            item.add_marker("slow")
    chosen = not _is_whole(config) or config.option.note_slow
    left_out = [] if chosen or scale.SCALE >= 0.25 else [item for item in items if not _is_drawn(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in {*left_out}]
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: (_waits(item), _rank(item), -sizes[item.path]))


SLOW = Path(__file__).with_name("slow.txt")
"""Tests that take long and that no promise names, beside those of the page; `--note-slow` writes it."""
SLOW_S = 0.1
"""Processor time from which a test is slow, with that of the processes it waited for."""
PROMISED = {*re.findall(r"::(\w+)", (Path(__file__).parent.parent / "PROMISES.md").read_text())}


def _in_ram(item: pytest.Item) -> str:
    """The name of the test that says in RAM what this one of `memory` says on another store."""
    test, bracket, parameters = item.nodeid.partition("[")
    named = item.path.is_relative_to(Path(__file__).parent / "memory")
    return test + bracket + (re.sub(r"\b(sqlite|files)\b", "memory", parameters) if named else parameters)


def _function(nodeid: str) -> str:
    """A test's name without its parameters, from `tests` on."""
    return nodeid.partition("[")[0].removeprefix("tests/")


def _is_whole(config: pytest.Config) -> bool:
    """Whether nothing was chosen: no place, name or mark."""
    given = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return not (given or config.option.keyword or config.option.markexpr)


def _is_promised(item: pytest.Item) -> bool:
    return bool({item.originalname, item.cls and item.cls.__name__} & PROMISED)


def _is_drawn(item: pytest.Item) -> bool:
    """Whether this run has a test that is slow, or says the same on another store or way; `make soak` has all.

    Of slow tests a sixth is drawn. A test of `memory` runs in RAM and on one store that the seed chooses, a test
    of calls that is repeated for each way of a page's audio on one of them, and of a contract that is repeated a
    third is drawn. What is promised always runs, on all of them.
    """
    if _is_promised(item):
        return True
    if item.get_closest_marker("slow"):
        return Random(f"{scale.SEED} {item.nodeid}").random() < 1 / 6
    if not (repeated := item.get_closest_marker("repeated")):
        return True
    if ways := repeated.kwargs.get("ways"):
        return item.callspec.params["way"] == Random(f"{scale.SEED} {item.originalname}").choice(ways)
    in_ram = _in_ram(item)
    draw = Random(f"{scale.SEED} {in_ram}").random()
    return draw < 1 / 3 if in_ram == item.nodeid else (draw < 1 / 2) == ("files" in item.nodeid.split("[")[1])


LONG = (
    "adapters/test_privacy",
    "capability/test_privacy",
    "cli/test_bare_install",
    "embedding/test_encoder",
    "embedding/test_local",
    "embedding/test_weights",
    "secrets/test_calls",
    "server/test_exhaustion",
    "server/test_voice_socket",
    "stores/test_histories",
)
"""Files that take long though they hold few tests."""
HEAVY = ("adapters", "cli", "embedding", "server", "session", "stores")
"""Folders whose tests start servers, processes or models: a file of them left for the end would keep one worker."""


def _rank(item: pytest.Item) -> int:
    if any(name in item.nodeid for name in LONG):
        return 0
    return 1 if item.path.parent.name in HEAVY else 2


def _waits(item: pytest.Item) -> int:
    """What waits most first: it has the rest to share the processors with."""
    return next((n for n, mark in enumerate(("browser", "crash")) if item.get_closest_marker(mark)), 2)


@pytest.fixture
def tally(request: pytest.FixtureRequest):
    """Put a line of counts into the summary of the run."""

    def note(line: str) -> None:
        request.node.user_properties.append(("tally", f"{request.node.name}: {line}"))

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """What was tried, and what came of it: workers send it with their reports."""
    reports = [report for each in terminalreporter.stats.values() for report in each]
    told = [
        each
        for report in reports
        if getattr(report, "when", None) == "teardown"
        for each in report.user_properties
    ]
    config = terminalreporter.config
    if config.option.note_slow and _is_whole(config) and exitstatus == pytest.ExitCode.OK:
        _write_slow([took for name, took in told if name == "took"])
    lines = [line for name, line in told if name == "tally"]
    lines += [
        f"{server}: {n} tests"
        for server, n in sorted(Counter(s for name, s in told if name == "ran on").items())
    ]
    if lines:
        terminalreporter.section(pytest_report_header())
        for line in lines:
            terminalreporter.line(line)


def _write_slow(took: list[tuple[str, float]]) -> None:
    """A test with parameters is slow where half of them are: the first of a worker pays for what all share."""
    seconds: dict[str, list[float]] = {}
    for name, each in took:
        seconds.setdefault(name, []).append(each)
    slow = [name for name, each in sorted(seconds.items()) if median(each) >= SLOW_S]
    SLOW.write_text("".join(f"{name}\n" for name in slow), "utf-8")


def pytest_unconfigure() -> None:
    forked.end()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def playwright():
    """One driver of browsers for all tests of a process."""
    from playwright.async_api import async_playwright

    async with async_playwright() as driver:
        yield driver


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(playwright):
    """One Chromium for all tests of a process without calls; each visits in a context of its own."""
    from server.browsing import SHELL, launched

    async with launched(playwright, program=SHELL) as browser:
        yield browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def calling_browser(playwright, tmp_path_factory):
    """Another, with a microphone that speaks, pauses, and speaks again."""
    from server.browsing import SHELL, launched
    from server.calls_in_browser import microphone_flags

    async with launched(
        playwright, *microphone_flags(tmp_path_factory.mktemp("microphone")), program=SHELL
    ) as browser:
        yield browser


@pytest.fixture
def anyio_backend():
    return "asyncio"
