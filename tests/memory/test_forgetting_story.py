"""Sixteen conversations: not one forgotten thing is recalled, and what is destroyed is in no byte."""

from __future__ import annotations

import pytest

from memory.forgetting_story import BEGIN, END, LOOKS, PAGE, RECALL, STORIES, played, table


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
async def test_what_is_forgotten_is_shown_by_nothing_and_what_is_taken_back_by_no_recall(story):
    assert len(STORIES) == 16
    was_told = False
    for step, shown in await played(story):
        silent = {"": (), "recall": RECALL, "everywhere": LOOKS}[step.gone]
        assert not [look for look in silent if shown[look]], f"{step.does}: {shown}"
        was_told = was_told or any(shown[look] for look in RECALL)
    assert was_told or story.name == "off the record"


async def test_the_table_in_the_documents_is_what_happens():
    page = PAGE.read_text()
    assert page.partition(BEGIN)[2].partition(END)[0].strip() == await table()
