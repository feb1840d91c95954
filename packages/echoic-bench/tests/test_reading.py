from __future__ import annotations

import json

import pytest

from echoic.errors import InvalidInput
from echoic.types import Memory, Turn
from echoic_bench.reading import read


def test_json_lines_are_turns_memories_and_questions_of_their_users(talks):
    ana, ben = talks.users
    assert (ana.user, ben.user) == ("ana", "ben")
    assert [type(item) for item in ana.items] == [Turn, Turn, Turn, Memory]
    assert [question.category for question in ana.answerable] == ["home", "taste"]
    assert talks.questions == 3
    assert talks.rows == 5


def test_equal_ids_of_two_users_are_kept_apart_so_that_a_leak_shows(talks):
    ana, ben = talks.users
    assert not set(ana.answers_for) & set(ben.answers_for)
    assert ana.questions[0].evidence != ben.questions[0].evidence


def test_locomos_layout_gives_turns_with_sessions_dates_and_captions(tmp_path, sample):
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([sample]))
    (user,) = read(path).users
    first, second, third = user.items
    assert second.text == "Lovely! [shares a photo: a thin dog]"
    assert (first.conversation, third.conversation) == ("session_1", "session_2")
    assert first.said_at.isoformat() == "2023-05-08T13:56:00+00:00"
    assert [(q.category, len(q.evidence)) for q in user.answerable] == [("multi-hop", 2), ("temporal", 1)]


def test_facts_stand_for_the_turns_they_come_from_and_uncovered_evidence_does_not_count(tmp_path, sample):
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([sample]))
    (user,) = read(path, facts=True).users
    assert [item.text for item in user.items] == ["Mira has a greyhound.", "Olek no longer has a boat."]
    assert [len(question.evidence) for question in user.answerable] == [1, 1]
    assert user.session(next(iter(user.answerable[1].evidence))) == "session_2"


def test_a_folder_is_all_its_files(lines, tmp_path):
    lines({"user": "ana", "speaker": "user", "text": "I moved to Leeds.", "id": "t1"}, name="a.jsonl")
    lines({"user": "ana", "text": "Where do I live?", "evidence": ["t1"]}, name="b.jsonl")
    assert read(tmp_path).questions == 1


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"speaker": "user", "text": ""}, "line 2: turn text is empty|line 2: text is empty"),
        ({"text": "Who?", "evidence": "t1"}, "line 2: evidence must be a list"),
        ({"speaker": "user", "text": "again", "id": "t0"}, "line 2: the id 't0' occurs twice"),
        ({"speaker": "user", "text": "x", "said_at": "yesterday"}, "line 2: Invalid isoformat"),
        ({"speaker": "user"}, "line 2: it has no 'text'"),
    ],
)
def test_a_line_that_cannot_be_kept_is_refused_with_its_place(lines, bad, told):
    with pytest.raises(InvalidInput, match=told):
        read(lines({"speaker": "user", "text": "hello", "id": "t0"}, bad))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "line 1 is not JSON"),
        ("[1]", "not in LoCoMo's layout"),
        ('{"speaker": "user", "text": "hello"}', "holds 0 questions"),
        ('{"text": "Where?", "evidence": ["t9"]}', "no turns and no memories"),
        ('{"speaker": "user", "text": "hi"}\n{"text": "Where?", "evidence": ["t9"]}', "none names evidence"),
        ('[{"sample_id": "a", "conversation": {"session_1": []}, "qa": []}]', "sample 'a' is not in LoCoMo"),
    ],
)
def test_what_holds_nothing_to_measure_is_refused(tmp_path, content, told):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InvalidInput, match=told):
        read(path)


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"there is no file .*nowhere"):
        read(tmp_path / "nowhere.json")
