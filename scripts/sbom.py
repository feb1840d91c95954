"""Write a bill of materials (CycloneDX 1.6, JSON) of the pinned dependencies, and check them offline.

`scripts/sbom.py > sbom.json` reads requirements/run.txt. With `--advisories DIR`, a folder of OSV records
that you brought along, it also lists what is affected and fails. Nothing is asked over the network.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(text: str) -> list[dict[str, Any]]:
    """What a file of requirements pins; every entry must have a version and a hash."""
    found = []
    for block in re.split(r"^(?=\S)", text, flags=re.MULTILINE):
        if not block.strip() or block.startswith("#"):
            continue
        pin, hashes = PIN.match(block), HASH.findall(block)
        if pin is None or not hashes:
            raise SystemExit(f"not pinned by version and hash: {block.splitlines()[0]}")
        name, version = re.sub(r"[-_.]+", "-", pin[1]).lower(), pin[2]
        found.append(
            {
                "type": "library",
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name}@{version}",
                "hashes": [{"alg": "SHA-256", "content": each} for each in hashes],
            }
        )
    return sorted(found, key=lambda each: each["purl"])


def affected(pinned: list[dict[str, Any]], folder: Path) -> list[str]:
    """Advisories of `folder` (OSV, JSON) that name a pinned version."""
    # a package may be pinned more than once, for several versions of Python
    versions = {(each["name"], each["version"]) for each in pinned}
    found = []
    for path in sorted(folder.rglob("*.json")):
        advisory = json.loads(path.read_text(encoding="utf-8"))
        for entry in advisory.get("affected", ()):
            package = entry.get("package", {})
            name = re.sub(r"[-_.]+", "-", package.get("name", "")).lower()
            if package.get("ecosystem") != "PyPI":
                continue
            named = [version for version in entry.get("versions", ()) if (name, version) in versions]
            found += [f"{advisory['id']}: {name} {version}" for version in named]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--advisories", type=Path)
    parser.add_argument("--requirements", type=Path, default=ROOT / "requirements" / "run.txt")
    given = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = components(given.requirements.read_text(encoding="utf-8"))
    subject = {"type": "library", "name": project["name"], "version": project["version"]}
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**subject, "purl": f"pkg:pypi/{project['name']}@{project['version']}"}},
        "components": pinned,
    }
    print(json.dumps(bill, indent=1))
    found = affected(pinned, given.advisories) if given.advisories else []
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
