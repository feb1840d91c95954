"""A few made-up people, labelled by hand: small enough to know every answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import document, echoic, environment, jsonl, user_cache  # noqa: F401 - by tests of the commands
from echoic_bench.reading import read

LINES = (
    {
        "user": "ana",
        "speaker": "user",
        "text": "I moved to Leeds in spring.",
        "id": "t1",
        "conversation": "c1",
    },
    {
        "user": "ana",
        "speaker": "agent",
        "text": "How do you like it there?",
        "id": "t2",
        "conversation": "c1",
    },
    {"user": "ana", "speaker": "user", "text": "My sister keeps bees.", "id": "t3", "conversation": "c2"},
    {"user": "ana", "text": "oat flat white", "key": "coffee_order", "id": "m1", "category": "preference"},
    {"user": "ana", "text": "Who moved to Leeds?", "evidence": ["t1"], "category": "home"},
    {"user": "ana", "text": "What is my coffee order?", "evidence": ["m1"], "category": "taste"},
    {"user": "ben", "speaker": "user", "text": "My sister keeps goats in Leeds.", "id": "t1"},
    {"user": "ben", "text": "What does my sister keep?", "evidence": ["t1"], "category": "home"},
)


@pytest.fixture
def lines(tmp_path: Path):
    """Writes objects as JSON lines."""

    def write(*objects, name="talks.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(f"{json.dumps(each)}\n" for each in objects), encoding="utf-8")
        return path

    return write


@pytest.fixture
def talks(lines):
    """The made-up people."""
    return read(lines(*LINES))


@pytest.fixture
def sample():
    """One sample laid out as LoCoMo is, with words of its own."""
    return {
        "sample_id": "talk-1",
        "conversation": {
            "speaker_a": "Mira",
            "speaker_b": "Olek",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Mira", "dia_id": "D1:1", "text": "I adopted a greyhound."},
                {"speaker": "Olek", "dia_id": "D1:2", "text": "Lovely!", "blip_caption": "a thin dog"},
            ],
            "session_2_date_time": "9:05 am on 1 June, 2023",
            "session_2": [{"speaker": "Olek", "dia_id": "D2:1", "text": "I sold my boat."}],
        },
        "observation": {
            "session_1_observation": {"Mira": [["Mira has a greyhound.", "D1:1"]]},
            "session_2_observation": {"Olek": [["Olek no longer has a boat.", ["D2:1"]]]},
        },
        "qa": [
            {"question": "What did Mira adopt?", "evidence": ["D1:1; D:1:2"], "category": 1},
            {"question": "When did Olek sell his boat?", "evidence": ["D2:1"], "category": 2},
            {"question": "What did Olek adopt?", "evidence": ["D1:1"], "category": 5},
            {"question": "Who is unlabelled?", "evidence": [], "category": 4},
        ],
    }
