from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import zipfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
HEADERS = Path(sysconfig.get_path("include"))

pytestmark = pytest.mark.skipif(
    COMPILER is None or not (HEADERS / "Python.h").exists(),
    reason="there is no C compiler, or no headers of Python",
)


@pytest.mark.parametrize("source", sorted(path.name for path in (PACKAGE / "c").glob("*.c")))
def test_no_compiler_warning_is_left(source, tmp_path):
    flags = ["-std=c11", "-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}"]
    made = [*flags, "-c", PACKAGE / "c" / source, "-o", tmp_path / "made.o"]
    subprocess.run([COMPILER, "-DPy_LIMITED_API=0x030B0000", *made], check=True)


def test_one_wheel_serves_every_python_from_3_11_on(tmp_path):
    build = pytest.importorskip("scikit_build_core.build")
    before = Path.cwd()
    os.chdir(PACKAGE)
    try:
        name = build.build_wheel(str(tmp_path), {"build-dir": str(tmp_path / "build")})
    finally:
        os.chdir(before)
    assert "-cp311-abi3-" in name
    with zipfile.ZipFile(tmp_path / name) as wheel:
        inside = {entry for entry in wheel.namelist() if not entry.split("/")[0].endswith(".dist-info")}
    assert {entry.rpartition("/")[2] for entry in inside} in (
        {"__init__.py", "_kernel.abi3.so"},
        {"__init__.py", "_kernel.pyd"},
    )
