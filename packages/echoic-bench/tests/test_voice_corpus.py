from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from echoic.cli import root
from echoic.embedding import embedder_from
from echoic.errors import InvalidInput
from echoic_bench import voice_corpus
from echoic_bench.peers.base import Kept
from echoic_bench.peers.lexical import Article, Bm25, stemmed
from echoic_bench.voice_corpus import Chosen, measure_corpus
from echoic_corpus.grading import Found

CORPUS = Path(__file__).parents[3] / "packages" / "echoic-corpus"


@pytest.fixture
def data(tmp_path):
    """The guide's example as the one caller of dev."""
    text = re.search(r"```text\n(.+?)```", (CORPUS / "GUIDE.md").read_text("utf-8"), re.DOTALL)[1]
    (tmp_path / "data" / "callers").mkdir(parents=True)
    (tmp_path / "data" / "callers" / "c99.txt").write_text(text, "utf-8")
    (tmp_path / "data" / "splits.txt").write_text("dev: c99\n", "utf-8")
    return tmp_path / "data"


@pytest.fixture
def chosen(data):
    return Chosen.of("dev", data=data)


async def test_ours_and_those_that_need_no_package_are_played_every_version(chosen):
    seen, kept = [], []
    systems = ["echoic", "bm25", "bm25, best", "article, best"]
    found = await measure_corpus(
        chosen,
        embedder_from("lexical"),
        systems=systems,
        versions=["clean", "wer20"],
        progress=lambda done, total=None: seen.append((done, total)),
        keep=kept.append,
    )
    assert list(found["systems"]) == systems
    ours = found["systems"]["echoic"]
    assert ours["clean"]["measures"]["R@10"]["n"] == ours["wer20"]["measures"]["R@10"]["n"] == 8
    assert ours["clean"]["measures"]["R@10"]["percent"][0] >= 25
    assert ours["clean"]["measures"]["secrets kept"]["percent"] == [0, 0, 0], "four four one nine is masked"
    assert ours["clean"]["measures"]["unheard recalled"]["percent"] == [0, 0, 0]
    assert "facts found" in ours["clean"]["measures"]
    theirs = found["systems"]["bm25"]["clean"]["measures"]
    assert "facts found" not in theirs
    assert theirs["secrets kept"]["percent"] == theirs["unheard recalled"]["percent"] == [100, 100, 100]
    assert found["systems"]["bm25, best"]["clean"]["measures"]["unheard recalled"]["percent"][0] == 0
    assert set(found["echoic over"]) == set(systems[1:])
    assert found["leaks"] == 0
    assert seen == [(1, 1), (1, 1)]
    assert [list(part["systems"]["bm25"]) for part in kept] == [
        ["versions", "clean"],
        ["versions", "clean", "wer20"],
    ]


async def test_a_peer_that_breaks_off_is_left_out_and_the_others_go_on(chosen, monkeypatch):
    class Broken(Bm25):
        async def search(self, user, question, limit):
            raise RuntimeError("no more")

    monkeypatch.setattr(voice_corpus, "PEERS", {**voice_corpus.PEERS, "bm25": Broken})
    found = await measure_corpus(
        chosen, embedder_from("lexical"), systems=["bm25", "article"], versions=["clean", "wer10"]
    )
    assert list(found["systems"]) == ["article"]
    assert found["left out"]["bm25"] == "broke off at c99, clean: RuntimeError: no more"


async def test_a_fault_of_ours_ends_the_run(chosen, monkeypatch):
    async def broken(self, text, at, limit):
        raise RuntimeError("no more")

    monkeypatch.setattr(voice_corpus.EchoicSystem, "query", broken)
    with pytest.raises(RuntimeError, match="no more"):
        await measure_corpus(chosen, embedder_from("lexical"), systems=["echoic"], versions=["clean"])


@pytest.mark.parametrize(("turn", "code"), [("c98/1.1", 70), ("c99/1.1", 0)])
def test_the_command_exits_70_where_echoic_hands_out_another_callers_turn(data, monkeypatch, turn, code):
    async def query(self, text, at, limit):
        return [Found(text="What was said.", turns=(turn,))]

    monkeypatch.setattr(voice_corpus.EchoicSystem, "query", query)
    words = ["--embedder", "lexical", "bench", "corpus", "--data", str(data), "--systems", "echoic"]
    ran = CliRunner().invoke(root, [*words, "--versions", "clean"], standalone_mode=False)
    assert ran.return_value == code


async def test_a_system_behind_the_sidecar_protocol_takes_part(chosen, tmp_path):
    store = f"sqlite:///{tmp_path}/sidecar.db"
    command = [sys.executable, "-m", "echoic.cli", "--store", store, "--embedder", "lexical"]
    with subprocess.Popen(
        [*command, "bench", "sidecar", "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            found = await measure_corpus(
                chosen,
                embedder_from("lexical"),
                systems=["bm25"],
                versions=["clean"],
                sidecar=server.stdout.readline().strip(),
            )
        finally:
            server.terminate()
    assert found["left out"] == {}
    measured = found["systems"]["sidecar"]["clean"]
    assert measured["measures"]["R@10"]["percent"][0] >= 25
    assert measured["leaks"] == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"systems": ["oracle"]}, "oracle"),
        ({"versions": ["wer99"]}, "wer99"),
        ({"systems": []}, "nothing to play to"),
    ],
)
async def test_what_is_not_known_is_refused(chosen, more, said):
    with pytest.raises(InvalidInput, match=said):
        await measure_corpus(chosen, embedder_from("lexical"), **more)


def test_callers_are_of_the_split_that_was_asked_for(data):
    with pytest.raises(InvalidInput, match="c99 are in the split 'test'"):
        Chosen.of("test", ["c99"], data=data)
    assert {caller.id for caller in Chosen.of("test", limit=2).callers} == {"c04", "c08"}
    (data / "callers" / "c99.txt").write_text("caller: c99\n", "utf-8")
    with pytest.raises(InvalidInput, match="problems, the first is c99.txt:1"):
        Chosen.of("dev", data=data)


class TestBaselines:
    @pytest.fixture
    def kept(self, talks):
        return [Kept(item, item.text, None) for item in talks.users[0].items]

    async def test_bm25_ranks_by_rare_words_and_forgets(self, kept):
        peer = Bm25(stemmed)
        for one in kept:
            await peer.add("ana", one)
        found = await peer.search("ana", "who is moving to Leeds?", 10)
        assert [name for name, _ in found] == ["ana/t1"]
        assert await peer.search("ben", "Leeds", 10) == []
        assert await Bm25().search("ana", "Leeds", 10) == []
        await peer.forget("ana", "ana/t1")
        assert await peer.search("ana", "Leeds", 10) == []

    async def test_the_articles_fusion_is_of_ranks_and_weights(self, kept, tmp_path):
        axis = np.eye(4, dtype=np.float32)
        near = {"ana/t1": 0.0, "ana/t2": 1.0, "ana/t3": 0.5}
        peer = Article(stemmed)
        await peer.open(tmp_path, {"Leeds": axis[0]}, 4)
        for one in kept[:3]:
            await peer.add("ana", Kept(one.item, one.text, near[one.item.id] * axis[0]))
        assert dict(await peer.search("ana", "Leeds", 10)) == {
            "ana/t1": pytest.approx(0.7 / 63 + 0.3 / 61),
            "ana/t2": pytest.approx(0.7 / 61),
            "ana/t3": pytest.approx(0.7 / 62),
        }
        await peer.forget("ana", "ana/t2")
        assert [name for name, _ in await peer.search("ana", "Leeds", 1)] == ["ana/t1"]


async def test_without_questions_only_what_is_learned_is_measured_and_rules_can_be_played_alone(data):
    chosen = Chosen.of("dev", data=data, ask=False)
    systems = ["echoic", voice_corpus.RULES_ALONE]
    found = await measure_corpus(chosen, embedder_from("lexical"), systems=systems, versions=["clean"])
    assert list(found["systems"]) == systems
    ours, rules = (found["systems"][name]["clean"]["measures"] for name in systems)
    assert "R@10" not in ours
    assert ours["facts found"] == rules["facts found"], "without the local embedder there are only rules"
