from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

import forked

TALKS = (
    {"user": "ana", "speaker": "user", "text": "I moved to Leeds in spring.", "id": "t1"},
    {"user": "ana", "text": "oat flat white", "key": "coffee_order", "id": "m1"},
    {"user": "ana", "text": "Who moved to Leeds?", "evidence": ["t1"], "category": "home"},
    {"user": "ana", "text": "What is my coffee order?", "evidence": ["m1"], "category": "taste"},
    {"user": "ben", "speaker": "user", "text": "My sister keeps goats in Leeds.", "id": "t1"},
    {"user": "ben", "text": "What does my sister keep?", "evidence": ["t1"], "category": "home"},
)


@pytest.fixture
def talks(jsonl):
    return str(jsonl("talks.jsonl", *TALKS))


def rows(ran):
    return [line.split("\t") for line in ran.out.splitlines()]


def test_recall_prints_a_row_for_every_fusion_and_kind_and_a_paired_difference(echoic, talks, tmp_path):
    ran = echoic("bench", "recall", talks, "--fusions", "blend,text")
    assert ran.code == 0, ran.err
    assert [row[:3] for row in rows(ran)] == [
        ["blend", "all", "3"],
        ["blend", "home", "2"],
        ["blend", "taste", "1"],
        ["text", "all", "3"],
        ["text", "home", "2"],
        ["text", "taste", "1"],
        ["blend over text", "all", ""],
    ]
    assert rows(ran)[0][4] == "100.0"
    assert rows(ran)[0][-1] == "0"
    assert [path.name for path in tmp_path.iterdir()] == ["talks.jsonl"], "nothing is left behind"


def test_recall_as_json_holds_every_figure(echoic, talks):
    found = echoic("--json", "bench", "recall", talks).json
    assert found["status"] == "ok"
    assert found["count"] == 3
    data = found["data"]
    assert list(data["fusions"]) == ["blend", "rrf", "text", "vector"]
    assert data["fusions"]["blend"]["intervals"]["R@10"] == [100.0, 100.0, 100.0]
    assert data["embedder"].startswith("lexical")
    assert data["leaks"] == 0


def test_what_was_embedded_and_drawn_is_kept_where_it_was_asked_for(echoic, talks, tmp_path):
    ran = echoic("bench", "recall", talks, "--cache", "kept", "--plots", "drawn", "--fusions", "text")
    assert ran.code == 0, ran.err
    assert any(path.suffix == ".db" for path in (tmp_path / "kept").iterdir())
    assert {path.suffix for path in (tmp_path / "drawn").iterdir()} == {".png", ".svg"}
    assert echoic("bench", "recall", talks, "--cache", "kept", "--fusions", "text").out == ran.out


def test_noise_tells_the_rate_that_was_reached(echoic, talks):
    ran = echoic("bench", "noise", talks)
    assert ran.code == 0, ran.err
    assert [row[1] for row in rows(ran)] == ["clean", "names", "wer13", "wer24"]
    assert rows(ran)[0][2] == "0.0"


def test_keyvalue_needs_no_data(echoic):
    ran = echoic("bench", "keyvalue", "--people", "2", "--turns", "10", "--fusions", "blend")
    assert ran.code == 0, ran.err
    assert [row[1] for row in rows(ran)] == ["all", "paraphrased", "plain"]
    assert "what holds before what held" in ran.err


def test_latency_tells_every_percentile(echoic):
    ran = echoic("bench", "latency", "--sizes", "20", "--callers", "1,2", "--questions", "5")
    assert ran.code == 0, ran.err
    assert len(rows(ran)) == 8
    assert all(float(value) > 0 for row in rows(ran) for value in row[3:])


def test_peers_that_are_not_installed_are_left_out_and_said(echoic, talks):
    ran = echoic("--json", "bench", "peers", talks)
    assert ran.code == 0, ran.err
    data = ran.json["data"]
    assert data["peers"]["echoic"]["durable"] is True
    for name, why in data["left out"].items():
        assert f"pip install {'mem0ai' if name == 'mem0' else ''}" in why


def test_tune_refuses_what_is_too_little_to_learn_from(echoic, talks):
    ran = echoic("tune", talks)
    assert ran.code == 64
    assert "3 labelled questions" in ran.err


def test_tune_says_before_it_reads_anything_that_its_file_cannot_be_written(echoic, talks, tmp_path):
    for out, why in ((tmp_path / "no" / "weights.json", "make the folder"), (tmp_path, "is a directory")):
        ran = echoic("tune", talks, "--out", str(out))
        assert ran.code == 64
        assert why in ran.err


def test_tune_says_so_where_nothing_is_gained_and_writes_no_file(echoic, jsonl, tmp_path):
    things = [f"{a}{b}" for a in "bdfgklmnprst" for b in ("ando", "iver", "oskin", "utel", "emba")]
    lines = [
        line
        for n, thing in enumerate(things)
        for line in (
            {"user": f"u{n % 4}", "speaker": "user", "text": f"I put the {thing} away.", "id": f"t{n}"},
            {"user": f"u{n % 4}", "text": f"Where is the {thing}?", "evidence": [f"t{n}"]},
        )
    ]
    ran = echoic("tune", str(jsonl("things.jsonl", *lines)))
    assert ran.code == 1, ran.err
    assert "keep the defaults" in ran.out
    assert not (tmp_path / "echoic-weights.json").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["bench", "recall", "nowhere.jsonl"], "there is no file 'nowhere.jsonl'"),
        (["bench", "recall", "{talks}", "--fusions", "cold"], "unknown fusion 'cold'"),
        (["bench", "recall", "{talks}", "--fusions", ","], "unknown fusion"),
        (["bench", "latency", "--sizes", "many"], "--sizes takes whole numbers"),
        (["bench", "latency", "--sizes", "0"], "whole numbers from 1"),
        (["bench", "peers", "{talks}", "--peers", "oracle"], "unknown peer 'oracle'"),
    ],
)
def test_what_is_not_right_is_refused_by_name(echoic, talks, words, told):
    ran = echoic(*(word.format(talks=talks) for word in words))
    assert ran.code == 64
    assert told in ran.err


def test_an_embedder_that_is_missing_ends_a_measurement(echoic, talks, tmp_path):
    ran = echoic("--embedder", "local", "--weights", str(tmp_path), "bench", "recall", talks)
    assert ran.code == 2
    assert ran.out == ""


def test_the_sidecar_answers_on_this_machine_until_it_is_told_to_stop(tmp_path, environment):
    started = forked.Popen(
        [sys.executable, "-m", "echoic.cli", "bench", "sidecar", "--port", "0"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = started.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
            assert json.load(answer) == {"status": "ok"}
    finally:
        started.send_signal(signal.SIGTERM)
        started.communicate(timeout=20)
    assert not _reachable(url)


def _reachable(url):
    try:
        urllib.request.urlopen(f"{url}/health", timeout=2).close()
    except OSError:
        return False
    return True


def test_a_port_that_is_taken_is_named(echoic):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = echoic("bench", "sidecar", "--port", port)
    assert ran.code == 64
    assert f"port {port} cannot be used" in ran.err
