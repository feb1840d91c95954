from __future__ import annotations

import pytest

LOCAL = {"ECHOIC_EMBEDDER": "local"}
NURSE = "She works as a nurse in a children's hospital"


def rows(ran):
    return [line.split("\t") for line in ran.out.splitlines()]


def test_a_hit_has_rank_score_text_since_and_visibility(echoic):
    echoic("remember", "Plays the cello in a quartet")
    echoic("remember", "Drives a red tractor")
    ((rank, score, text, since, visibility),) = rows(echoic("query", "cello", "--limit", "1"))
    assert (rank, text, visibility) == ("1", "Plays the cello in a quartet", "private")
    assert float(score) > 0
    assert since.endswith("Z")


def test_explain_adds_rank_and_score_of_every_channel(echoic):
    echoic("remember", "Plays the cello in a quartet")
    hit = echoic("query", "cello", "--explain", "--json").json["data"][0]
    (row,) = rows(echoic("query", "cello", "--explain"))
    assert hit["ranks"]
    for channel, rank in hit["ranks"].items():
        assert f"{channel} {rank['rank']} ({rank['score']:.2f})" in row[5]


def test_a_remark_finds_nothing_unless_everything_is_asked_for(echoic):
    echoic("remember", "Said thanks and okay to the cello teacher")
    silent = echoic("query", "Okay, thanks!")
    assert (silent.code, rows(silent)) == (1, [])
    assert "nothing is known" in silent.err
    (row,) = rows(echoic("query", "Okay, thanks!", "--min-relevance", "0", "--explain"))
    assert row[-1] == "0.00"
    assert float(rows(echoic("query", "cello", "--explain"))[0][-1]) > 0


def test_a_misheard_name_is_found(echoic):
    echoic("remember", "Works with Kathryn at the harbour")
    assert rows(echoic("query", "who is Catherine"))[0][2] == "Works with Kathryn at the harbour"


def test_what_held_before_is_found_only_when_asked_for(echoic):
    echoic("set", "city", "Haifa by the sea")
    echoic("set", "city", "Jerusalem on the hill")
    assert "Haifa by the sea" not in echoic("query", "Haifa sea").out
    found = {row[2]: row for row in rows(echoic("query", "city by the sea", "--past"))}
    assert found["Haifa by the sea"][5].endswith("Z")
    assert found["Haifa by the sea"][6] == "corrected"
    assert found["Jerusalem on the hill"][5:] == ["", "current"]


def test_the_lexical_embedder_says_once_what_it_does_not_know(echoic):
    echoic("remember", "Plays the cello")
    found = echoic("query", "cello")
    assert found.err.count("words and sounds only") == 1
    assert echoic("query", "cello", "--json").json["notes"] == [found.err.strip()]
    assert echoic("query", "cello", "--quiet").err == ""


def test_nothing_known_is_not_an_error(echoic):
    nothing = echoic("query", "anything at all", "--json")
    assert nothing.code == 1
    assert (nothing.json["status"], nothing.json["count"], nothing.json["data"]) == ("ok", 0, [])
    assert nothing.json["outcome"] == "complete"


def test_another_process_finds_what_was_meant_by_other_words(echoic):
    assert echoic("set", "employer", NURSE, **LOCAL, fresh=True).code == 0
    echoic("remember", "Drives a red tractor", **LOCAL)
    found = echoic("query", "what is her profession?", **LOCAL, fresh=True)
    assert rows(found)[0][2] == NURSE
    assert found.err == ""
    assert echoic("query", "what is her profession?", "--user", "bea", **LOCAL).code == 1


def test_without_weights_what_is_told_is_kept_and_words_find_it(echoic, tmp_path):
    missing = {"ECHOIC_EMBEDDER": "local", "ECHOIC_WEIGHTS": str(tmp_path)}
    kept = echoic("set", "instrument", "I play the cello", **missing)
    assert kept.code == 0
    assert "words and sounds only, for now" in kept.err
    assert echoic("get", "instrument", **missing).out == "I play the cello\n"
    found = echoic("query", "cello", "--json", **missing)
    assert found.code == 0
    assert found.json["outcome"] == "unavailable"
    assert found.json["cut"] == ["vector"]
    assert "neither model.onnx nor model.safetensors" in found.json["notes"][0]


def test_not_having_looked_everywhere_is_not_nothing_known(echoic, tmp_path):
    missing = {"ECHOIC_EMBEDDER": "local", "ECHOIC_WEIGHTS": str(tmp_path)}
    echoic("remember", "Plays the cello", **missing)
    blind = echoic("query", "zeppelin", **missing)
    assert (blind.code, blind.out) == (2, "")
    assert "neither model.onnx nor model.safetensors" in blind.err
    document = echoic("query", "zeppelin", "--json", **missing).json
    assert (document["status"], document["error"]["type"]) == ("error", "EmbedderMissing")


def test_weights_that_come_later_embed_what_waited(echoic, tmp_path):
    missing = {"ECHOIC_EMBEDDER": "local", "ECHOIC_WEIGHTS": str(tmp_path)}
    echoic("remember", NURSE, **missing)
    found = echoic("query", "what is her profession?", "--json", **LOCAL).json
    assert "vector" in found["data"][0]["ranks"]


def test_a_deadline_that_is_too_short_is_said(echoic):
    echoic("remember", "Plays the cello", **LOCAL)
    # opening the model and embedding so long a text take far longer, loading what is known far shorter
    cut = echoic("query", "cello " * 400, "--deadline-ms", "60", "--json", **LOCAL)
    assert (cut.code, cut.json["outcome"], cut.json["cut"]) == (0, "deadline", ["vector"])
    missed = echoic("query", "zeppelin " * 400, "--deadline-ms", "60", **LOCAL)
    assert missed.code == 2
    unread = echoic("query", "cello", "--deadline-ms", "0.0001", **LOCAL)
    assert unread.code == 2, "what was not even loaded is not nothing known"
    assert "raise --deadline-ms" in missed.err
    assert "query was not embedded within 60 ms" in missed.err
    assert "memories (own, global) were not loaded" in unread.err


@pytest.mark.parametrize(
    "words",
    [["--limit", "0"], ["--limit", "1001"], ["--limit", "x"], ["--deadline-ms", "0"], ["--fusion", "guess"]],
)
def test_bad_options_are_refused(echoic, words):
    assert echoic("query", "x", *words).code == 64
