"""Bodhi's JSON memory files: their directives are the user's here, and ours are where Bodhi looks."""

from __future__ import annotations

import asyncio
import json

import pytest

import echoic
from echoic import InvalidInput
from echoic.types import Directives

THEIRS = {
    "directives": {"pacing": "slow", "verbosity": "concise", "speechSpeed": "slow"},
    "facts": [{"content": "Prefers dark mode", "category": "preference"}],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ana.json").write_text(json.dumps(THEIRS))
    return tmp_path


def opened(folder):
    return echoic.open(f"files:///{folder}", embedder="lexical")


def as_bodhi_reads(folder):
    """`getDirectives` and `getAll` of its store."""
    file = json.loads((folder / "ana.json").read_text())
    return dict(file["directives"]), [(fact["content"], fact["category"]) for fact in file["facts"]]


def as_bodhi_sets(folder, directives):
    """`setDirectives`, of a program that keeps the rest of the file."""
    path = folder / "ana.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "directives": directives}, indent=2))


async def quiet(memory):
    """Until nobody else writes the file, and the clock of the file system has gone on."""
    assert await memory.settle(60)
    await asyncio.sleep(0.05)


async def test_directives_of_a_file_are_read_and_reach_the_first_word(folder):
    async with opened(folder) as memory:
        ana = memory.user("ana")
        found = await ana.directives()
        assert (found.pacing, found.verbosity, dict(found.free)) == (
            "slow",
            "concise",
            {"speechSpeed": "slow"},
        )
        block = (await ana.block()).section("directives")
        assert "- Speak slowly, with pauses." in block
        assert '- The user asked for verbosity: "concise"' in block
        assert '- The user asked for speech speed: "slow"' in block


async def test_directives_are_changed_in_place_so_that_both_sides_see_them(folder):
    async with opened(folder) as memory:
        ana = memory.user("ana")
        await ana.set_directives(pacing="fast", verbosity=None, tone="dry")
        directives, facts = as_bodhi_reads(folder)
        assert directives == {"pacing": "fast", "speechSpeed": "slow", "tone": "dry"}
        assert facts == [("Prefers dark mode", "preference")]
        await quiet(memory)
        as_bodhi_sets(folder, {"pacing": "normal", "verbosity": "verbose"})
        found = await ana.directives()
        assert (found.pacing, found.verbosity, dict(found.free)) == ("normal", "verbose", {})
        await ana.set_directives(language="pt")
    async with opened(folder) as memory:
        found = await memory.user("ana").directives()
        assert (found.pacing, found.verbosity, found.language) == ("normal", "verbose", "pt")
    assert as_bodhi_reads(folder)[0] == {"pacing": "normal", "verbosity": "verbose", "language": "pt"}


async def test_what_is_set_in_echoic_first_stands_where_bodhi_looks(tmp_path):
    async with opened(tmp_path) as memory:
        await memory.user("ana").set_directives(pacing="slow", small_talk="none before coffee")
    assert as_bodhi_reads(tmp_path) == ({"pacing": "slow", "small_talk": "none before coffee"}, [])


async def test_what_is_taken_back_on_either_side_is_gone_on_both(folder):
    async with opened(folder) as memory:
        ana = memory.user("ana")
        await ana.set_directives(pacing=None, verbosity=None, speechSpeed=None)
        assert as_bodhi_reads(folder)[0] == {}
        await ana.set_directives(pacing="slow")
        await quiet(memory)
        as_bodhi_sets(folder, {})
        assert (await ana.directives()).pacing is None
    async with opened(folder) as memory:
        assert (await memory.user("ana").directives()).pacing is None


async def test_what_is_no_directive_of_ours_is_left_as_it_is(folder):
    odd = {
        "deep": {"a": [1]},
        "n": 7,
        "on": True,
        "long": "x" * 500,
        "with space": "y",
        "nul": "a\0b",
        "": "z",
    }
    as_bodhi_sets(folder, {**odd, "pacing": "slow"})
    async with opened(folder) as memory:
        ana = memory.user("ana")
        assert (await ana.directives()).pacing == "slow"
        assert dict((await ana.directives()).free) == {}
        await ana.set_directives(pacing="fast")
        assert as_bodhi_reads(folder)[0] == {**odd, "pacing": "fast"}
        await ana.set("home", "Porto")
        assert as_bodhi_reads(folder)[0] == {**odd, "pacing": "fast"}


@pytest.mark.parametrize("odd", [[], ["slow"], "slow", 7, None])
async def test_directives_of_another_shape_do_no_harm(folder, odd):
    as_bodhi_sets(folder, odd)
    async with opened(folder) as memory:
        ana = memory.user("ana")
        assert (await ana.directives()).pacing is None
        await ana.set_directives(pacing="slow")
        await ana.set("home", "Porto")
    async with opened(folder) as memory:
        assert (await memory.user("ana").directives()).pacing == "slow"


async def test_more_than_can_be_used_are_kept_and_the_first_are_used(folder):
    many = {f"wish_{n}": "yes" for n in range(40)}
    as_bodhi_sets(folder, {**many, "pacing": "slow"})
    async with opened(folder) as memory:
        found = await memory.user("ana").directives()
        assert (len(found.free), found.pacing) == (16, "slow")
        await memory.user("ana").set_directives(wish_0=None)
        await memory.user("ana").set("home", "Porto")  # the file is written again, and not read in between
    kept = as_bodhi_reads(folder)[0]
    assert "wish_0" not in kept
    assert len(kept) == 40


async def test_files_of_earlier_versions_keep_the_directives_they_had(folder):
    """They stood among the records, where Bodhi did not look."""
    async with opened(folder) as memory:
        await memory.user("ana").set("home", "Porto")
    path = folder / "ana.json"
    file = json.loads(path.read_text())
    del file["echoic"]["shows_directives"]
    file["directives"] = {"pacing": "slow", "tone": "dry"}
    file["echoic"]["records"] = [
        {
            "kind": "directives",
            "id": "directives",
            "version": 3,
            "seq": 1 << 31,
            "mark": "",
            "data": {"pacing": "fast", "free": {"small_talk": "no"}},
        }
    ]
    path.write_text(json.dumps(file))
    async with opened(folder) as memory:
        found = await memory.user("ana").directives()
        assert (found.pacing, dict(found.free)) == ("fast", {"tone": "dry", "small_talk": "no"})
        await memory.user("ana").set("home", "Lisbon")
    assert as_bodhi_reads(folder)[0] == {"pacing": "fast", "tone": "dry", "small_talk": "no"}


async def test_forgetting_takes_the_directives_out_of_the_file(folder):
    async with opened(folder) as memory:
        receipt = await memory.user("ana").forget()
        assert receipt.verified
        assert receipt.other == 1
    assert not (folder / "ana.json").exists()


@pytest.mark.parametrize("store", ["files", "sqlite", "memory"])
async def test_a_session_or_an_agent_has_directives_beside_the_users(tmp_path, store):
    url = {"files": f"files:///{tmp_path}", "sqlite": f"sqlite:///{tmp_path}/e.db", "memory": "memory://"}[
        store
    ]
    async with echoic.open(url, embedder="lexical") as memory:
        ana = memory.user("ana")
        await ana.conversation("call-1", agent="films")
        await ana.set_directives(pacing="slow", tone="dry")
        await ana.set_directives(for_conversation="call-1", pacing="fast", mood="hurried")
        await ana.set_directives(for_agent="films", tone="like a critic")

        everywhere = await ana.directives()
        assert (everywhere.pacing, dict(everywhere.free)) == ("slow", {"tone": "dry"})
        here = await ana.directives(for_agent="films", for_conversation="call-1")
        assert (here.pacing, dict(here.free)) == ("fast", {"tone": "like a critic", "mood": "hurried"})
        other = await ana.directives(for_agent="books", for_conversation="call-2")
        assert other == everywhere

        block = (await ana.block(agent="films", conversation="call-1")).section("directives")
        assert "Speak briskly." in block
        assert '"like a critic"' in block
        assert "Speak slowly" in (await ana.block(agent="books")).section("directives")

        exported = await ana.export()
        eva = memory.user("eva")
        await eva.restore(exported)
        assert await eva.directives(for_agent="films", for_conversation="call-1") == here

        await ana.forget(conversation="call-1")
        left = await ana.directives(for_agent="films", for_conversation="call-1")
        assert (left.pacing, dict(left.free)) == ("slow", {"tone": "like a critic"})
        with pytest.raises(InvalidInput, match="no conversation"):
            await ana.set_directives(for_conversation="call-1", pacing="fast")
        with pytest.raises(InvalidInput, match="not for both"):
            await ana.set_directives(for_conversation="call-1", for_agent="films", pacing="fast")
        assert (
            await memory.user("bob").directives(for_agent="films", for_conversation="call-1") == Directives()
        )
