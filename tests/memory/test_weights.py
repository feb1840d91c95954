"""A file of fitted weights is used as it is, or refused with the reason."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

import echoic
from echoic.errors import InvalidInput
from echoic.factory import FORMAT, VERSION, fusion_from
from echoic.ranking.fusion import BROAD, CLOSE, FUSIONS


def written(path, **changed):
    given = {"format": FORMAT, "version": VERSION, "broad": asdict(BROAD), "close": asdict(CLOSE)} | changed
    path.write_text(json.dumps(given))
    return str(path)


async def order(fusion):
    async with echoic.open("memory://", embedder="lexical", fusion=fusion) as memory:
        ana = memory.user("ana")
        await ana.set("drink", "tea")
        await ana.remember("Tea parties are what everybody in the family likes to talk about at length")
        return [hit.text for hit in await ana.query("tea")]


async def test_the_weights_of_a_file_order_the_hits(tmp_path):
    usual = await order("blend")
    assert await order(written(tmp_path / "same.json")) == usual
    turned = asdict(replace(BROAD, text=-5.0, keyed_meaning=0.0, key=-5.0))
    assert await order(written(tmp_path / "turned.json", broad=turned)) == usual[::-1]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"format": "other"}, "echoic tune"),
        ({"version": 9}, "echoic tune"),
        ({"broad": {"text": 1}}, "must name exactly"),
        ({"close": asdict(CLOSE) | {"late": "much"}}, "late"),
        ({"close": asdict(CLOSE) | {"late": float("nan")}}, "late"),
    ],
)
def test_what_is_no_file_of_weights_is_refused(tmp_path, changed, said):
    with pytest.raises(InvalidInput, match=said):
        fusion_from(written(tmp_path / "w.json", **changed))


def test_a_name_that_is_neither_fusion_nor_file_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="blend"):
        fusion_from("best")
    with pytest.raises(InvalidInput, match="cannot be read"):
        fusion_from(str(tmp_path / "none.json"))
    assert fusion_from("rrf") is FUSIONS["rrf"]
