"""What `pip install echoic` brings is the library, and nothing of the stand-ins and benchmarks beside it."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def wheel_of(project: Path, folder: Path) -> zipfile.ZipFile:
    """Built as pip builds it, offline, by the build tools of this environment."""
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*build, "--wheel-dir", str(folder), str(project)], check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return zipfile.ZipFile(made)


def metadata_of(wheel: zipfile.ZipFile) -> str:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return wheel.read(name).decode()


def test_the_wheel_holds_the_library_and_nothing_beside_it(tmp_path):
    with wheel_of(ROOT, tmp_path) as wheel:
        files = [name for name in wheel.namelist() if ".dist-info/" not in name]
        assert {name.partition("/")[0] for name in files} == {"echoic"}
        packages = {name.split("/")[1] for name in files if name.count("/") > 1}
        assert "bench" not in packages
        # of `testing` the suites for stores and embedders of one's own, which are files
        assert [name for name in files if name.startswith("echoic/testing/") and name.count("/") > 2] == []
        assert [name for name in files if re.search(r"simulat|disks|loopback|peers", name)] == []
        for name in files:
            if name.endswith(".py"):
                imported = (
                    rb"(?m)^\s*(from|import) (echoic_bench|echoic_loopback|aiortc|matplotlib|trustme)\b"
                )
                assert not re.search(imported, wheel.read(name)), name
        extras = set(re.findall(r"(?m)^Provides-Extra: (\S+)", metadata_of(wheel)))
        assert not extras & {"bench", "loopback"}


@pytest.mark.parametrize("name", ["bench", "loopback"])
def test_a_package_beside_it_brings_its_commands_and_needs_the_library(tmp_path, name):
    with wheel_of(ROOT / "packages" / f"echoic-{name}", tmp_path) as wheel:
        files = [each for each in wheel.namelist() if ".dist-info/" not in each]
        assert {each.partition("/")[0] for each in files} == {f"echoic_{name}"}
        assert re.search(r"(?m)^Requires-Dist: echoic$", metadata_of(wheel))
        (points,) = [each for each in wheel.namelist() if each.endswith("entry_points.txt")]
        assert "[echoic.commands]" in wheel.read(points).decode()
