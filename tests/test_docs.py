"""What the documents show is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import forked

ROOT = Path(__file__).parent.parent


def test_the_readmes_program_prints_what_the_readme_says(tmp_path):
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    promised = re.findall(r"print\(.*?\)\s+# (.+)", program)
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.splitlines() == promised


def test_the_readmes_commands_find_what_its_program_kept(tmp_path):
    text = (ROOT / "README.md").read_text()
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    asked = re.findall(
        r"^\$ \.venv/bin/(echoic .*)$", re.search(r"```console\n(.*?)```", text, re.DOTALL)[1], re.MULTILINE
    )
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ECHOIC_EMBEDDER": "lexical"}
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120, "env": environment}
    forked.run(
        [sys.executable, "-c", program.replace('echoic.db")', 'echoic.db", embedder="lexical")')], **options
    )
    told = {
        line: forked.run(
            [sys.executable, "-m", "echoic.cli", *shlex.split(line)[1:]], input="Hello\n", **options
        )
        for line in asked
    }
    assert [ran.returncode for ran in told.values()] == [0, 0], told
    assert "peanuts" in next(ran.stdout for line, ran in told.items() if " query " in line)


def test_every_figure_in_the_readme_comes_from_a_result():
    script = ROOT / "scripts" / "figures.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True, timeout=60)


def test_every_link_in_the_documents_leads_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benchmarks" / "README.md"]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_has_a_place_in_the_sites_navigation():
    listed = re.findall(r"(?m)^([a-z_]+)$", (ROOT / "docs" / "index.md").read_text())
    assert sorted(listed) == sorted(page.stem for page in ROOT.glob("docs/*.md") if page.stem != "index")


def test_the_way_in_is_two_commands_that_exist():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"demo", "test", "setup"} <= set(targets)
