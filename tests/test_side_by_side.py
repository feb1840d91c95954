"""The runner of `make test` loses no test and hides no failure."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import forked

TESTS = """
import os, pytest

@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    with (tmp_path_factory.getbasetemp().parent / "made").open("a") as made:
        made.write("once\\n")
    return tmp_path_factory.mktemp("shared")

@pytest.mark.parametrize("number", range(6))
def test_passes(number, shared, tmp_path):
    assert os.listdir(tmp_path) == []
    assert tmp_path.parent == shared.parent

def test_fails():
    print("as was to be seen")
    assert "one" == "another"

@pytest.mark.skip(reason="of choice")
def test_is_skipped():
    raise AssertionError

def test_dies():
    os._exit(7)

def test_comes_after_the_one_that_died(tmp_path):
    pass

@pytest.fixture
def ends_badly():
    yield
    raise OSError("at the end")

def test_ends_badly(ends_badly):
    pass
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "conftest.py").write_text('def pytest_group_of(nodeid): return nodeid.split("::")[0]\n')
    for name in ("one", "two", "three"):
        (folder / f"test_{name}.py").write_text(TESTS)
    command = ["-m", "pytest", "-p", "side_by_side", "-p", "no:cacheprovider", "--workers", "2", "-ra", "-v"]
    return subprocess.run(
        [sys.executable, *command, f"--rootdir={folder}", f"--basetemp={folder}/temp", str(folder)],
        cwd=folder,
        # what is asked of this run, such as to stop at the first failure, is not asked of the one within it
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_test_is_run_once_and_counted(ran):
    assert "6 failed, 24 passed, 3 skipped, 3 errors" in ran.stdout, ran.stdout + ran.stderr
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED
    told = re.findall(r"^\[w\d\].* (?:PASSED|FAILED|SKIPPED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
    passed = [name for name in told if "test_passes" in name]
    assert len(passed) == len(set(passed)) == 18


def test_a_failure_is_shown_with_what_it_printed(ran):
    assert ran.stdout.count("AssertionError: assert 'one' == 'another'") >= 3
    assert ran.stdout.count("as was to be seen") >= 3


def test_a_worker_that_died_fails_the_test_it_was_at(ran):
    assert ran.stdout.count("::test_dies died: 7") >= 3


def test_what_tests_share_is_made_once_in_a_process(ran):
    # two workers, and one more for each that died
    made = (Path(ran.args[-1]) / "temp" / "made").read_text().splitlines()
    assert 2 <= len(made) <= 5


def collected(file, **variables):
    """The names of the tests of `file` that a run of the whole suite has, with their parameters."""
    ran = forked.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            # the process that forks has imported what pytest would rewrite
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
            "-p",
            "no:cacheprovider",
            "-o",
            f"testpaths={file}",
        ],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return {*re.findall(r"::(\w+(?:\[.*\])?)$", ran.stdout, re.MULTILINE)}


def drawn_and_all(file):
    """What two seeds draw of `file`, and all of it."""
    seeds = [collected(file, ECHOIC_TEST_SCALE="0.1", ECHOIC_TEST_SEED=str(seed)) for seed in range(2)]
    return *seeds, collected(file, ECHOIC_TEST_SCALE="0.25")


PROMISES = (Path(__file__).parent.parent / "PROMISES.md").read_text()


def test_a_test_of_memory_runs_on_one_more_store_by_the_seed_and_on_all_where_it_is_promised_or_soaked():
    def stores(tests):
        by_name = {}
        for name, _, store in (test.partition("[") for test in tests):
            by_name.setdefault(name, set()).add(store.removesuffix("]"))
        return {name: on for name, on in by_name.items() if "memory" in on}

    *seeds, everywhere = map(stores, drawn_and_all("tests/memory/test_items.py"))
    promised = {name for name in everywhere if f"::{name}`" in PROMISES}
    assert promised
    assert promised < {*everywhere}
    for name, on in everywhere.items():
        assert on == {"memory", "sqlite", "files"}
        for drawn in seeds:
            assert drawn[name] == on if name in promised else len(drawn[name] - {"memory"}) == 1
    assert seeds[0] != seeds[1]


def test_some_of_the_slow_tests_run_by_the_seed_and_all_where_they_are_promised_or_soaked():
    first, second, everything = drawn_and_all("tests/server/test_browser_speech.py")
    promised = {name for name in everything if f"::{name}`" in PROMISES}
    assert promised
    for drawn in (first, second):
        assert promised <= drawn < everything
    assert first != second
