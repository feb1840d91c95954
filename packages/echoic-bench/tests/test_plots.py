from __future__ import annotations

import builtins

import pytest

from echoic.embedding import embedder_from
from echoic.errors import InvalidInput
from echoic_bench.corpus import corpus_of
from echoic_bench.hearing import measure_noise
from echoic_bench.latency import measure_latency
from echoic_bench.peers.comparing import measure_peers
from echoic_bench.plots import plot_latency, plot_noise, plot_peers, plot_recall
from echoic_bench.recall import measure_recall

pytest.importorskip("matplotlib")


def drawn(paths):
    png, svg = (path.read_bytes() for path in paths)
    assert png.startswith(b"\x89PNG")
    assert b"<svg" in svg[:1000]
    return svg.decode()


async def test_recall_is_drawn(talks, tmp_path):
    async with corpus_of(talks, embedder_from("lexical")) as corpus:
        found = await measure_recall(corpus, ["blend", "text"])
    assert "R@10" in drawn(plot_recall(found, tmp_path / "new"))


async def test_noise_is_drawn(talks, tmp_path):
    found = await measure_noise(talks, embedder_from("lexical"))
    assert "WER" in drawn(plot_noise(found, tmp_path))


async def test_latency_is_drawn(tmp_path):
    found = await measure_latency(embedder_from("lexical"), sizes=[20, 40], callers=[1, 2], questions=5)
    assert "at once" in drawn(plot_latency(found, tmp_path))


async def test_peers_are_drawn(talks, tmp_path):
    found = await measure_peers(talks, embedder_from("lexical"), names=[])
    assert "search" in drawn(plot_peers(found, tmp_path))


async def test_without_the_extra_the_way_to_get_it_is_told(talks, tmp_path, monkeypatch):
    async with corpus_of(talks, embedder_from("lexical")) as corpus:
        found = await measure_recall(corpus, ["blend"])
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InvalidInput, match=r"pip install 'echoic-bench\[plots\]'"):
        plot_recall(found, tmp_path)
