"""What the documents show is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_readmes_program_prints_what_the_readme_says(tmp_path):
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    promised = re.findall(r"print\(.*?\)\s+# (.+)", program)
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.splitlines() == promised


def test_every_figure_in_the_readme_comes_from_a_result():
    script = ROOT / "scripts" / "figures.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True, timeout=60)


def test_every_link_in_the_documents_leads_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benchmarks" / "README.md"]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_way_in_is_two_commands_that_exist():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"demo", "test", "setup"} <= set(targets)
