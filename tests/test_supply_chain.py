"""What the project depends on is pinned, listed, and can be checked without a network."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "scripts" / "sbom.py"


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)


def test_the_bill_of_materials_lists_every_pin_with_its_hashes():
    done = ran()
    assert done.returncode == 0, done.stderr
    bill = json.loads(done.stdout)
    named = {each["name"]: each for each in bill["components"]}
    assert {"apsw", "numpy", "fastapi"} <= named.keys()
    assert all(each["version"] and each["hashes"] for each in named.values())


def test_a_pin_that_an_advisory_names_fails_the_check(tmp_path):
    version = next(e["version"] for e in json.loads(ran().stdout)["components"] if e["name"] == "numpy")
    package = {"ecosystem": "PyPI", "name": "NumPy"}
    for versions, code in (["0.1"], 0), ([version], 1):
        advisory = {"id": "TEST-1", "affected": [{"package": package, "versions": versions}]}
        (tmp_path / "one.json").write_text(json.dumps(advisory))
        done = ran("--advisories", str(tmp_path))
        assert (done.returncode, "TEST-1" in done.stderr) == (code, bool(code))


def test_what_is_not_pinned_by_hash_is_refused(tmp_path):
    (tmp_path / "loose.txt").write_text("numpy>=2\n")
    assert ran("--requirements", str(tmp_path / "loose.txt")).returncode != 0
