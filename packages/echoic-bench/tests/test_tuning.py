from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from echoic.embedding import embedder_from
from echoic.errors import EmbedderMissing, InvalidInput
from echoic.ranking.fusion import BROAD, CLOSE, CLOSE_IN_CALLS
from echoic_bench import tuning
from echoic_bench.asked import asked_of, ndcg_of, tally_of
from echoic_bench.callers import dataset_of
from echoic_bench.corpus import corpus_of
from echoic_bench.labelled import Dataset
from echoic_bench.tuning import fit, folds_of, tune, write_weights


async def weights_are_here():
    embedder = embedder_from("local")
    try:
        await embedder.open()
    except EmbedderMissing as missing:
        pytest.skip(str(missing))
    await embedder.aclose()


async def asked(dataset):
    async with corpus_of(dataset, embedder_from("lexical")) as corpus:
        return await asked_of(corpus)


@pytest.mark.parametrize("embedder", ["lexical", "local"])
async def test_weighing_what_was_kept_finds_what_the_product_finds(embedder):
    if embedder == "local":
        await weights_are_here()
    dataset = dataset_of(2, turns=20)
    async with corpus_of(dataset, embedder_from(embedder)) as corpus:
        product = await corpus.ask("blend")
        kept = tally_of(await asked_of(corpus), BROAD, CLOSE_IN_CALLS)
    for metric in ("R@5", "nDCG@10", "MRR"):
        assert kept.of(metric).tolist() == product.of(metric).tolist()


async def test_where_word_pieces_are_known_the_weights_of_the_first_candidates_decide():
    await weights_are_here()
    async with corpus_of(dataset_of(3, turns=10), embedder_from("local")) as corpus:
        found = await asked_of(corpus)
    default = ndcg_of(found, BROAD, CLOSE)
    assert default.mean() > ndcg_of(found, BROAD, replace(CLOSE, asking=4.0)).mean()
    assert tune(found[::2]).stage == "close"


async def test_the_objective_is_the_figure_that_is_reported():
    found = await asked(dataset_of(2, turns=10))
    short = ndcg_of(found, BROAD, CLOSE)
    assert short.tolist() == pytest.approx(tally_of(found, BROAD, CLOSE).of("nDCG@10").tolist())


def test_a_fit_climbs_to_where_the_score_is_highest():
    def score(weights):
        return np.array([-abs(weights.text - 2 * BROAD.text) - abs(weights.asking)])

    fitted = fit(BROAD, score)
    assert fitted == replace(BROAD, text=2 * BROAD.text, asking=0.0)


def test_where_nothing_is_better_the_defaults_stay():
    assert fit(BROAD, lambda _: np.array([0.5, 0.5])) == BROAD


async def test_a_weight_that_does_harm_is_found_on_questions_it_was_not_fitted_on(monkeypatch):
    # whatever asks stands first: every default list is spoiled alike
    monkeypatch.setattr(tuning, "BROAD", replace(BROAD, asking=4.0, length=0.0))
    tuned = tune(await asked(dataset_of(3, turns=10)))
    assert tuned.helps
    assert tuned.weights.asking < 4.0
    assert tuned.after["nDCG@10"] > tuned.before["nDCG@10"]
    assert "fitting helps" in tuned.verdict


async def test_labels_drawn_by_lot_are_not_learned_from_and_it_is_said():
    dataset = dataset_of(3, turns=10)
    draw = np.random.default_rng(0)
    users = []
    for user in dataset.users:
        names = sorted(user.answers_for)
        lots = [replace(q, evidence=frozenset([str(draw.choice(names))])) for q in user.questions]
        users.append(replace(user, questions=tuple(lots)))
    tuned = tune(await asked(Dataset(name="lots", users=tuple(users))))
    assert not tuned.helps
    assert "keep the defaults" in tuned.verdict


async def test_few_questions_are_refused():
    found = (await asked(dataset_of(1, turns=4)))[:49]
    with pytest.raises(InvalidInput, match="49 labelled questions"):
        tune(found)


async def test_what_is_left_out_is_whole_users_and_every_question_once():
    found = await asked(dataset_of(7, turns=4))
    folds = folds_of(found)
    assert sorted(np.concatenate(folds).tolist()) == list(range(len(found)))
    users = [{found[i].whose.user for i in fold} for fold in folds]
    assert len(folds) == tuning.FOLDS
    assert sum(map(len, users)) == len(set.union(*users)) == 7


async def test_of_one_user_sessions_are_left_out_and_of_one_session_nothing_can_be(talks):
    ana = talks.users[0]
    found = await asked(Dataset(name="ana", users=(ana,)))
    assert [fold.tolist() for fold in folds_of(found)] in ([[0], [1]], [[1], [0]])
    with pytest.raises(InvalidInput, match="nothing can be left out"):
        folds_of(found[:1])


async def test_the_file_names_its_weights_and_where_they_come_from(monkeypatch, tmp_path):
    monkeypatch.setattr(tuning, "BROAD", replace(BROAD, asking=4.0))
    tuned = tune(await asked(dataset_of(2, turns=4)))
    path = tmp_path / "weights.json"
    write_weights(path, tuned)
    kept = json.loads(path.read_text())
    assert (kept["format"], kept["version"]) == ("echoic.weights", 1)
    assert type(BROAD)(**kept["broad"]) == tuned.weights
    assert type(CLOSE)(**kept["close"]) == CLOSE
    assert kept["fitted"]["questions"] == tuned.questions
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_weights(tmp_path / "no" / "folder.json", tuned)
