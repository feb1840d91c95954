"""`echoic doctor` on machines that are well, and on ones that are not, each in its way."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace

import apsw
import pytest

from echoic.cli.doctor import Checkup
from echoic.cli.settings import Settings

STEPS = ["embedder", "store", "records", "distilling", "set", "vectors", "reopen", "get", "query", "forget"]
STEPS += ["gone"]
LOCAL = {"ECHOIC_EMBEDDER": "local"}
_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


def steps(ran):
    return {step["name"]: step for step in ran.json["data"]}


def test_every_step_works_and_nothing_is_left_behind(echoic):
    echoic("set", "pet", "a goat")
    before = echoic("export").out
    ran = echoic("doctor", "--json")
    assert ran.code == 0
    assert list(steps(ran)) == STEPS
    assert all(step["well"] and step["ms"] > 0 for step in steps(ran).values())
    assert echoic("users").out == "me\n"
    assert echoic("export").out == before
    assert echoic("proposals").code == 1


def test_by_meaning_it_finds_what_it_kept_in_other_words(echoic):
    ran = echoic("doctor", "--json", **LOCAL)
    assert ran.code == 0, ran.out
    assert "vector" in steps(ran)["query"]["detail"]
    assert "model" in steps(ran)["embedder"]["detail"]
    assert ".onnx" in steps(ran)["embedder"]["detail"]


def test_a_person_sees_a_mark_and_a_time_for_every_step(echoic):
    lines = echoic("doctor").out.splitlines()
    assert [line[0] for line in lines] == ["✔"] * len(STEPS)
    assert all(" ms  " in line for line in lines)


@pytest.mark.parametrize("drawn", ["4447299389620346", "be82c180a02aa8f0"])
async def test_no_draw_looks_like_a_secret_to_it(drawn, tmp_path, monkeypatch):
    """As a number of a card and one of a Belgian account do, about one draw in ten thousand."""
    monkeypatch.setattr("echoic.cli.doctor.secrets", SimpleNamespace(token_hex=lambda _: drawn))
    checkup = Checkup(Settings(store=f"sqlite:///{tmp_path}/echoic.db", embedder="lexical"))
    await checkup.run()
    assert not [step for step in checkup.steps if not step.well]


def _no_privilege():
    """Root may write into any folder: give that up, for this process and what it runs (capabilities(7))."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "a capability could not be given up")


@pytest.mark.skipif(sys.platform != "linux", reason="how root gives up its privilege differs elsewhere")
def test_a_folder_that_cannot_be_written(environment, tmp_path):
    folder = tmp_path / "readonly"
    folder.mkdir(mode=0o555)
    done = subprocess.run(
        [sys.executable, "-m", "echoic.cli", "doctor", "--store", f"sqlite:///{folder}/echoic.db"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
        preexec_fn=_no_privilege,
    )
    out = done.stdout.decode()
    assert done.returncode == 2, done.stderr
    assert "✘ store" in out
    assert "exists and is writable" in out
    assert "– set" in out
    assert list(folder.iterdir()) == []


def test_a_store_of_another_embedding_model(echoic):
    echoic("set", "a", "b")
    ran = echoic("doctor", "--json", **LOCAL)
    assert ran.code == 2
    assert steps(ran)["embedder"]["well"] is True
    assert steps(ran)["store"]["well"] is False
    assert "echoic reindex" in steps(ran)["store"]["advice"]
    assert steps(ran)["set"]["well"] is None
    assert echoic("get", "a").out == "b\n"


def test_weights_that_are_not_there(echoic, tmp_path):
    ran = echoic("doctor", "--json", **LOCAL, ECHOIC_WEIGHTS=str(tmp_path))
    assert ran.code == 2
    assert steps(ran)["embedder"]["well"] is False
    assert "--embedder lexical" in steps(ran)["embedder"]["advice"]
    worked = {name: step["well"] for name, step in steps(ran).items()}
    assert worked == {
        "embedder": False,
        "store": True,
        "records": True,
        "distilling": True,
        "set": True,
        "vectors": None,
        "reopen": True,
        "get": True,
        "query": None,
        "forget": True,
        "gone": True,
    }


def test_weights_that_were_never_installed(echoic, tmp_path):
    from echoic.embedding.weights import DISTRIBUTION

    metadata.distribution(DISTRIBUTION)  # else there is nothing to hide, and this would prove nothing
    hide = (
        "import importlib.metadata as m\n"
        "found = m.distribution\n"
        "def distribution(name):\n"
        f"    if name == {DISTRIBUTION!r}: raise m.PackageNotFoundError(name)\n"
        "    return found(name)\n"
        "m.distribution = distribution\n"
    )
    (tmp_path / "sitecustomize.py").write_text(hide)
    empty = {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join((str(tmp_path), *sys.path)),
        "fresh": True,
    }
    ran = echoic("doctor", "--json", **LOCAL, **empty)
    assert ran.code == 2
    assert "pip install --no-deps" in steps(ran)["embedder"]["advice"]
    assert steps(ran)["get"]["well"] is True


def test_a_file_that_is_no_store(echoic, tmp_path):
    path = tmp_path / "echoic.db"
    path.write_bytes(b"not a database at all" * 100)
    ran = echoic("doctor", "--json")
    assert ran.code == 2
    advice = steps(ran)["store"]["advice"]
    assert 0 < advice.index("echoic restore") < advice.index("echoic import")
    assert path.read_bytes() == b"not a database at all" * 100


def test_a_store_damaged_in_the_middle(echoic, tmp_path):
    echoic("set", "a", "x" * 30_000)
    path = tmp_path / "echoic.db"
    whole = bytearray(path.read_bytes())
    whole[4096:] = os.urandom(len(whole) - 4096)
    path.write_bytes(whole)
    for beside in tmp_path.glob("echoic.db-*"):
        beside.unlink()
    ran = echoic("doctor", "--json")
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert steps(ran)["store"]["well"] is False
    assert "restore" in steps(ran)["store"]["advice"]
    assert path.read_bytes() == whole


@pytest.mark.parametrize("data", ['{"text":', "{}", "{},{}"])
def test_a_damaged_memory_is_told_with_whose_it_is_and_without_what_it_says(echoic, tmp_path, data):
    echoic("set", "pet", "a quokka", "--user", "bob")
    echoic("set", "pet", "a goat")
    connection = apsw.Connection(str(tmp_path / "echoic.db"))
    bob = "scope = (select id from scopes where user = 'bob') and kind = 'memory'"
    connection.execute(f"update records set data = ? where {bob}", [data])
    connection.close()
    ran = echoic("doctor", "--json")
    assert (ran.code, steps(ran)["records"]["well"], steps(ran)["set"]["well"]) == (2, False, True)
    assert "a memory of 'bob'" in steps(ran)["records"]["detail"]
    assert "echoic restore" in steps(ran)["records"]["advice"]
    assert "quokka" not in ran.out


def test_a_store_of_a_newer_version(echoic, tmp_path):
    echoic("set", "a", "b")
    connection = apsw.Connection(str(tmp_path / "echoic.db"))
    connection.execute("pragma user_version = 999")
    connection.close()
    ran = echoic("doctor", "--json")
    assert ran.code == 2
    assert "upgrade" in steps(ran)["store"]["advice"]


@pytest.mark.parametrize("words", [["--store", "nonsense://x"], ["--embedder", "nonsense"]])
def test_a_setting_that_means_nothing(echoic, words):
    ran = echoic("doctor", "--json", *words)
    assert ran.code == 2
    assert [step["well"] for step in ran.json["data"]].count(False) >= 1


def test_memory_that_ends_with_the_process_is_not_called_well(echoic):
    ran = echoic("doctor", "--json", "--store", "memory://")
    assert ran.code == 2
    assert steps(ran)["reopen"]["well"] is False
    assert steps(ran)["get"]["well"] is True
