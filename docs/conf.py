# ruff: noqa: INP001 - Sphinx's settings, not a package
"""The documentation as a site: `make docs` builds it into build/site, and every warning is an error."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "Echoic"
author = PROJECT["authors"][0]["name"]
release = version = PROJECT["version"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "Echoic"
html_static_path: list[str] = []
html_show_sphinx = False
html_copy_source = False
html_extra_path = ["llms.txt"]
exclude_patterns = ["llms.txt"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_mock_imports: list[str] = []
python_use_unqualified_type_names = True
nitpicky = False
# fragments of programs and output with comments, which no lexer takes as a whole
suppress_warnings = ["misc.highlighting_failure"]

_BESIDE = re.compile(r"\]\(\.\./(?!docs/)([^)#\s]+)([^)]*)\)")


def _beside(_app: object, _name: str, source: list[str]) -> None:
    """A link to a file outside docs/ names the file: the site does not hold it."""
    source[0] = re.sub(r"\[([^\]]*)" + _BESIDE.pattern, r"\1 (`\2`)", source[0])


def setup(app: object) -> None:
    """Register what a page goes through before it is parsed."""
    app.connect("source-read", _beside)  # type: ignore[attr-defined]
