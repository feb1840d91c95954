"""The commands of docs/encryption.md do what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "encryption.md").read_text()
URL = "sqlite:///encrypted.db?encryption=file:keys"


def test_the_commands_of_the_docs_encrypt_a_store_and_copy_one_into_it(echoic, tmp_path):
    assert echoic("set", "pet", "a goat", "--user", "bob", "--store", "sqlite:///plain.db").code == 0
    first, copy = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in f"{first}{copy}".splitlines():
        words = shlex.split(line)
        if words[0] == "echoic":
            ran = echoic(*words[1:])
            assert ran.code == 0, (line, ran.err)
        elif words[0] != "pip":
            subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True)
    assert echoic("get", "pet", "--user", "bob", "--store", URL).out == "a goat\n"
    assert echoic("get", "pet", "--user", "ana", "--store", "sqlite:///echoic.db?encryption=file:keys").out
    held = b"".join(path.read_bytes() for path in tmp_path.glob("en*.db*") if path.is_file())
    assert b"goat" not in held
    assert b"goat" in (tmp_path / "plain.db").read_bytes()  # the control
    without = echoic("get", "pet", "--user", "bob", "--store", "sqlite:///encrypted.db")
    assert without.code != 0
    assert "encrypted: name its keys" in without.err
