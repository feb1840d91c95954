"""What the project depends on is pinned, listed, and can be checked without a network."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def release():
    path = SCRIPT.with_name("release")
    spec = spec_from_loader("release", SourceFileLoader("release", str(path)))
    module = module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def test_the_notes_of_a_release_are_the_changelogs_section_of_its_version(release):
    log = "# Changelog\n\n## 0.2.0 (unreleased)\n\n- New.\n\n## 0.1.0 (2026-11-01)\n\n- First.\n- Second.\n"
    assert release.notes(log, "0.1.0") == "- First.\n- Second.\n"
    assert release.notes(log, "0.2.0") == "- New.\n"
    with pytest.raises(SystemExit, match=r"nothing about 0\.3\.0"):
        release.notes(log, "0.3.0")


def test_every_extra_that_the_documents_tell_people_to_install_exists(release):
    assert {"local,server", "livekit,local", "mongodb"} <= release.named_extras()


def test_the_provenance_names_the_commit_and_the_bytes_of_each_package(release, tmp_path):
    tree, dist = tmp_path / "tree", tmp_path / "dist"
    (tree / "requirements").mkdir(parents=True)
    (tree / "requirements/build.txt").write_text("hatchling==1.0\n")
    dist.mkdir()
    (dist / "echoic.whl").write_bytes(b"wheel")
    (dist / "NOTES.md").write_text("no package")
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    state = release.source(tree)
    (tree / "out").mkdir()
    (tree / "out/echoic.whl").write_bytes(b"what a build leaves in the tree")
    told = release.provenance(dist, *state, tree)
    assert told["subject"] == [
        {"name": "echoic.whl", "digest": {"sha256": hashlib.sha256(b"wheel").hexdigest()}}
    ]
    built = told["predicate"]["buildDefinition"]
    assert built["externalParameters"] == {"commit": head.stdout.strip(), "changes": False}
    (tree / "requirements/build.txt").write_text("hatchling==2.0\n")
    assert release.source(tree) == (head.stdout.strip(), True)
    with pytest.raises(SystemExit, match="not a git repository"):
        release.source(dist)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no OpenSSH")
def test_the_sums_of_a_release_are_signed_and_a_changed_file_is_seen(release, tmp_path):
    key, dist = tmp_path / "key", tmp_path / "dist"
    dist.mkdir()
    (dist / "echoic.whl").write_bytes(b"wheel")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    release.seal(dist, key)
    (tmp_path / "signers").write_text(f"releases {(tmp_path / 'key.pub').read_text()}")
    verify = ["ssh-keygen", "-Y", "verify", "-f", str(tmp_path / "signers"), "-I", "releases", "-n", "echoic"]
    verify += ["-s", str(dist / "SHA256SUMS.sig")]

    def verified(text: bytes) -> bool:
        return not subprocess.run(verify, input=text, capture_output=True, check=False).returncode

    sums = (dist / "SHA256SUMS").read_bytes()
    assert verified(sums)
    assert not verified(sums.replace(b"e", b"f", 1))
    assert b"echoic.whl" in sums
