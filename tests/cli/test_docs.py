from __future__ import annotations

import sys
from pathlib import Path

import forked

ROOT = Path(__file__).parents[2]


def test_the_page_of_the_command_line_is_what_the_commands_say():
    check = [sys.executable, str(ROOT / "scripts" / "cli_docs.py"), "--check"]
    done = forked.run(check, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
