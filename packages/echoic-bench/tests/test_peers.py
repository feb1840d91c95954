from __future__ import annotations

import pytest

from echoic.embedding import embedder_from
from echoic.errors import InvalidInput
from echoic.ranking import kernel
from echoic_bench.peers import comparing
from echoic_bench.peers.base import About
from echoic_bench.peers.comparing import measure_peers


class Nearest:
    """A peer that needs no package: cosine over everything of the user's, kept in a list."""

    about = About(name="mem0", packages=(), form="a list", durable=False)

    async def open(self, folder, vectors, dimensions):
        assert list(folder.iterdir()) == []
        self._vectors, self._kept = vectors, {}
        assert {len(vector) for vector in vectors.values()} == {dimensions}

    async def add(self, user, one):
        self._kept.setdefault(user, []).append(one)

    async def ready(self):
        pass

    async def search(self, user, question, limit):
        asked = self._vectors[question]
        scored = [(one.item.id, float(asked @ one.vector)) for one in self._kept[user]]
        return sorted(scored, key=lambda each: -each[1])[:limit]

    async def aclose(self):
        self._kept.clear()


class Leaking(Nearest):
    """The same, without scopes."""

    async def search(self, user, question, limit):
        return [(one.item.id, 0.0) for kept in self._kept.values() for one in kept][:limit]


@pytest.fixture
def instead_of_mem0(monkeypatch):
    def use(peer):
        monkeypatch.setattr(comparing, "_peers", lambda held, _names: [comparing.Echoic(held), peer()])

    return use


async def test_all_are_asked_the_same_and_ours_is_compared_with_each(talks, instead_of_mem0, tmp_path):
    instead_of_mem0(Nearest)
    place = tmp_path / "peers"
    place.mkdir()
    found = await measure_peers(talks, embedder_from("lexical"), folder=place)
    assert [one.about.name for one in found.peers] == ["echoic", "mem0"]
    for one in found.peers:
        assert len(one.tally.rows) == one.search["n"] == talks.questions
        assert one.add["n"] == talks.rows
        assert one.tally.leaks == 0
    assert found.gains()["mem0"]["R@10"].mean >= 0
    assert set(found.faster()["mem0"]) == set(found.faster(found.alike)["mem0"]) == {"p50_ms", "p95_ms"}
    assert found.alike.search["n"] == talks.questions
    assert found.as_json()["peers"].keys() - {"echoic, numpy"} == {"echoic", "mem0", "echoic, vectors alone"}
    assert list(place.iterdir()) == []


async def test_the_same_vectors_give_a_peer_what_our_vector_channel_finds(talks, instead_of_mem0):
    from echoic_bench.corpus import corpus_of

    instead_of_mem0(Nearest)
    found = await measure_peers(talks, embedder_from("lexical"))
    async with corpus_of(talks, embedder_from("lexical")) as corpus:
        ours = await corpus.ask("vector")
    assert found.peers[1].tally.of("hit@1").tolist() == ours.of("hit@1").tolist()
    assert found.alike.tally.of("hit@1").tolist() == ours.of("hit@1").tolist()


@pytest.mark.skipif(kernel.compiled is None, reason="echoic-kernel is not installed")
async def test_with_a_compiled_kernel_ours_is_asked_once_more_without_it(talks, instead_of_mem0, monkeypatch):
    ranked = []
    count = comparing.Echoic.search

    async def search(self, user, question, limit):
        ranked.append((self.about.name, kernel.compiled is not None))
        return await count(self, user, question, limit)

    monkeypatch.setattr(comparing.Echoic, "search", search)
    instead_of_mem0(Nearest)
    found = await measure_peers(talks, embedder_from("lexical"))
    assert {("echoic", True), ("echoic, numpy", False)} <= set(ranked)
    assert not {("echoic", False), ("echoic, numpy", True)} & set(ranked)
    assert found.numpy is not None
    assert found.as_json()["ranking"] == kernel.name() != "numpy"
    assert found.numpy.search["n"] == talks.questions
    assert found.numpy.tally.of("R@10").tolist() == found.peers[0].tally.of("R@10").tolist()


async def test_without_a_compiled_kernel_ours_is_asked_in_one_form(talks, instead_of_mem0, monkeypatch):
    monkeypatch.setattr(kernel, "compiled", None)
    instead_of_mem0(Nearest)
    found = await measure_peers(talks, embedder_from("lexical"))
    assert found.numpy is None
    assert found.as_json()["ranking"] == "numpy"
    assert "times as long as echoic's search by numpy" not in found.as_json()


async def test_control_a_peer_without_scopes_is_seen_to_leak(talks, instead_of_mem0):
    instead_of_mem0(Leaking)
    found = await measure_peers(talks, embedder_from("lexical"))
    assert found.as_json()["leaks"] > 0


async def test_what_is_not_installed_is_left_out_with_the_line_that_installs_it(talks, monkeypatch):
    monkeypatch.setattr(
        comparing.Mem0, "about", About(name="mem0", packages=("no-such",), form="", durable=True)
    )
    found = await measure_peers(talks, embedder_from("lexical"), names=["mem0"])
    assert [one.about.name for one in found.peers] == ["echoic"]
    assert found.left_out == {"mem0": "no-such is not installed: pip install no-such"}


async def test_ours_is_never_left_out(talks, instead_of_mem0, monkeypatch):
    instead_of_mem0(Nearest)
    elsewhere = About(name="echoic", packages=("no-such",), form="", durable=True)  # run from its sources
    monkeypatch.setattr(comparing.Echoic, "about", elsewhere)
    found = await measure_peers(talks, embedder_from("lexical"))
    assert [one.about.name for one in found.peers] == ["echoic", "mem0"]


async def test_an_unknown_peer_is_refused(talks):
    with pytest.raises(InvalidInput, match="unknown peer 'oracle'"):
        await measure_peers(talks, embedder_from("lexical"), names=["oracle"])


@pytest.mark.parametrize("name", ["mem0", "chroma", "langgraph"])
async def test_each_real_peer_answers_where_it_is_installed(talks, name):
    found = await measure_peers(talks, embedder_from("lexical"), names=[name])
    if name in found.left_out:
        pytest.skip(found.left_out[name])
    (_, peer) = found.peers
    assert peer.tally.leaks == 0
    assert peer.tally.percent()["R@10"] > 0
