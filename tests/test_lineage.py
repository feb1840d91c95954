"""The page of lineage: every feature has a place and a proof, every link leads somewhere, every test exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "lineage.md"
ROWS = [line for line in PAGE.read_text().splitlines() if re.match(r"\| \d+ \|", line)]


def cells(row):
    return [cell.strip() for cell in row.strip("|").split(" | ")]


def anchors(file):
    """The addresses of a page's headings, as they are made of their words."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_all_features_stand_there_once_and_in_order():
    assert [int(cells(row)[0]) for row in ROWS] == list(range(1, 36))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[2].strip()[:60])
def test_a_feature_has_a_place_and_names_tests_that_exist(row):
    number, feature, place, difference, tests = cells(row)
    assert all((number, feature, place, difference))
    named = re.findall(r"`((?:packages/[\w-]+/)?tests/[\w/]+\.py)(?:::(\w+))?`", tests)
    assert named, f"no test in {row}"
    for file, test in named:
        # a file without a test is of a feature that is proved as a whole
        if test:
            text = (ROOT / file).read_text()
            assert re.search(rf"def {test}\b", text), f"{file} has no {test}"


def test_every_link_leads_to_a_page_and_a_heading():
    links = re.findall(r"\]\(([^)]+)\)", PAGE.read_text())
    assert len(links) > 30
    for link in links:
        name, _, anchor = link.partition("#")
        file = PAGE.parent / name
        assert file.is_file(), link
        assert not anchor or anchor in anchors(file), link
