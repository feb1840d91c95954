"""A file that the first version wrote, opened by this one."""

from __future__ import annotations

import gzip
from pathlib import Path

import apsw

import echoic
from echoic.stores.sqlite.schema import VERSION

FIRST_VERSION = Path(__file__).parent / "first_version.db.gz"


def schema_of(path: Path) -> int:
    connection = apsw.Connection(str(path))
    try:
        return connection.pragma("user_version")
    finally:
        connection.close()


async def test_a_store_of_the_first_version_is_upgraded_with_all_it_knows_and_can_be_forgotten(
    tmp_path: Path,
) -> None:
    """The first commit that installs wrote it: `echoic set` twice, and `echoic chat`, with the local model."""
    path = tmp_path / "echoic.db"
    path.write_bytes(gzip.decompress(FIRST_VERSION.read_bytes()))
    assert schema_of(path) == 1
    async with echoic.open(f"sqlite:///{path}", embedder="local") as service:
        me = service.user("me")
        assert [each.text for each in await me.history("favourite_drink")] == [
            "flat white with oat milk",
            "cortado",
        ]
        assert {each.key: each.text for each in await me.facts()} == {
            "favourite_drink": "cortado",
            "user_name": "Ana",
            "allergy:peanuts": "peanuts",
            "home": "Lisbon",
        }
        found = await me.query("what coffee do they like?", limit=1)
        assert found[0].text == "cortado"
        assert found[0].ranks["vector"].rank == 1, "found by its old vector"
        (call,) = await me.conversations()
        task = await me.task(call.id)
        assert task is not None
        said = [turn.text for turn in task.turns if turn.speaker == "user"]
        assert said == ["My name is Ana.", "I'm allergic to peanuts, and I moved to Lisbon."]
        await me.set("favourite_drink", "tea")
        assert len(await me.history("favourite_drink")) == 3
        receipt = await me.forget()
        assert receipt.verified
        assert receipt.memories == 6
    assert schema_of(path) == VERSION
    assert b"peanuts" not in b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
