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


def same_bits(compiler, folder, *emulator):
    """Which sets of instructions were compared; it fails where one differs."""
    made = folder / "same_bits"
    sources = [PACKAGE / "tests" / "same_bits.c", PACKAGE / "c" / "products.c"]
    flags = [
        "-std=c11",
        "-O3",
        "-ffp-contract=off",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-static" if emulator else "-O3",
    ]
    subprocess.run([compiler, *flags, *sources, "-o", made], check=True)
    ran = subprocess.run([*emulator, made], capture_output=True, text=True, check=False)
    assert ran.returncode in {0, 2}, ran.stdout
    return ran.stdout.split()


def test_every_set_of_instructions_gives_the_bits_of_plain_c(tmp_path):
    kernel = pytest.importorskip("echoic_kernel")
    assert same_bits(COMPILER, tmp_path) == kernel.instructions()[:-1]


def test_neon_gives_the_bits_of_plain_c(tmp_path):
    compiler, emulator = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if compiler is None or emulator is None:
        pytest.skip("there is no aarch64-linux-gnu-gcc, or no qemu-aarch64")
    assert same_bits(compiler, tmp_path, emulator) == ["neon"]
