"""What readers make of files: pure, so they are called and not run. The texts are made up."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from echoic.cli.importers import (
    READERS,
    Directed,
    Exported,
    ImportedMemory,
    ImportedTurn,
    ImportSource,
    Skipped,
    format_of,
    reader_of,
)
from echoic.cli.importers.base import source_at
from echoic.errors import InvalidInput

NOW = datetime(2026, 5, 4, 9, tzinfo=UTC)
SAMPLES = [
    {
        "sample_id": "talk-1",
        "conversation": {
            "speaker_a": "Iris",
            "speaker_b": "Noam",
            "session_2_date_time": "9:05 am on 3 March, 2026",
            "session_2": [{"speaker": "Noam", "dia_id": "D2:1", "text": "The kiln is repaired."}],
            "session_1_date_time": "11:40 pm on 28 February, 2026",
            "session_1": [
                {
                    "speaker": "Iris",
                    "dia_id": "D1:1",
                    "text": "I bought a kiln.",
                    "blip_caption": "a red kiln",
                },
                {"speaker": "Noam", "dia_id": "D1:2", "text": "  "},
                {"speaker": "Noam", "text": "No id here."},
                "nonsense",
            ],
            "session_3_date_time": "1:00 pm on 1 April, 2026",
        },
        "observation": {
            "session_1_observation": {
                "Iris": [["Iris owns a kiln.", "D1:1"], [None, "D1:9"]],
                "Noam": "nothing",
            }
        },
    },
    {"sample_id": "", "conversation": {}},
]


def read(kind, path, *, facts=False):
    source = ImportSource(name=str(path), path=path, read_at=NOW)
    return list(reader_of(kind, facts=facts)(source))


def skipped(items):
    return {item.where: item.reason for item in items if isinstance(item, Skipped)}


class TestTurns:
    def test_a_turn_keeps_everything_its_line_says(self, jsonl):
        line = {
            "speaker": "agent",
            "text": "Your table is booked for eight.",
            "heard": "Your table",
            "said_at": "2026-01-02T10:00:00+02:00",
            "conversation": "call-1",
            "id": "t-1",
            "confidence": 0.5,
        }
        (item,) = read("turns", jsonl("talk.jsonl", line))
        turn = item.turn
        assert (turn.speaker, turn.text, turn.heard, turn.confidence) == (
            "agent",
            "Your table is booked for eight.",
            "Your table",
            0.5,
        )
        assert (turn.id, turn.conversation) == ("t-1", "call-1")
        assert turn.said_at == datetime(2026, 1, 2, 8, tzinfo=UTC)

    def test_what_a_line_leaves_out_comes_from_the_file(self, jsonl):
        (item,) = read("turns", jsonl("talk.jsonl", {"speaker": "user", "text": "Hi"}))
        assert (item.turn.conversation, item.turn.said_at, item.user) == ("talk", NOW, None)
        assert item.turn.id

    def test_an_unheard_answer_stays_unheard(self, jsonl):
        (item,) = read("turns", jsonl("talk.jsonl", {"speaker": "agent", "text": "Hello", "heard": ""}))
        assert item.turn.heard == ""

    def test_a_broken_line_costs_that_line_and_says_why(self, jsonl):
        path = jsonl(
            "talk.jsonl",
            {"speaker": "user", "text": "one"},
            "{not json",
            "",
            "[1]",
            {"speaker": "user"},
            {"speaker": "user", "text": "   "},
            {"speaker": "user", "text": "x", "said_at": "2026-01-01T10:00:00"},
            {"speaker": "user", "text": "x", "said_at": 17},
            {"speaker": "user", "text": "x", "confidence": "high"},
            {"speaker": "user", "text": "x", "confidence": 7},
            {"speaker": "user", "text": "x", "heard": 7},
            {"speaker": 3, "text": "x"},
            "[" * 100_000,
            {"speaker": "user", "text": "two"},
        )
        items = read("turns", path)
        assert [item.turn.text for item in items if isinstance(item, ImportedTurn)] == ["one", "two"]
        reasons = skipped(items)
        assert list(reasons) == [f"line {n}" for n in (2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)]
        assert "not JSON at column" in reasons["line 2"]
        assert "no text" in reasons["line 5"]
        assert "time zone" in reasons["line 7"]
        assert "2026-05-01T10:00:00Z" in reasons["line 8"]
        assert "nested" in reasons["line 13"]

    def test_bytes_that_are_not_utf8_cost_their_line(self, tmp_path):
        path = tmp_path / "talk.jsonl"
        path.write_bytes(
            b'\xef\xbb\xbf{"speaker": "user", "text": "first"}\r\n'
            b'{"speaker": "user", "text": "\xff"}\n'
            b'{"speaker": "user", "text": "last"}'
        )
        items = read("turns", path)
        assert [item.turn.text for item in items if isinstance(item, ImportedTurn)] == ["first", "last"]
        assert list(skipped(items)) == ["line 2"]

    def test_ids_follow_from_what_was_said_so_that_more_lines_change_none(self, jsonl):
        yes = {"speaker": "user", "text": "yes", "conversation": "a"}
        lines = [yes, yes, {**yes, "conversation": "b"}, {**yes, "speaker": "agent"}, {**yes, "heard": "ye"}]
        before = [item.turn.id for item in read("turns", jsonl("one.jsonl", *lines))]
        after = [item.turn.id for item in read("turns", jsonl("two.jsonl", *lines, yes))]
        assert len(set(before)) == len(lines)
        assert after[: len(lines)] == before
        assert after[-1] not in before

    def test_a_file_is_read_line_by_line_as_it_is_needed(self, jsonl):
        path = jsonl("talk.jsonl", *[{"speaker": "user", "text": f"word {n}"} for n in range(3)], "{")
        items = READERS["turns"](ImportSource(name="talk", path=path))
        assert next(items).turn.text == "word 0"
        with path.open("a") as stream:
            stream.write('{"speaker": "user", "text": "appended later"}\n')
        assert list(items)[-1].turn.text == "appended later"


class TestLoCoMo:
    def test_samples_are_users_and_sessions_conversations_in_their_order(self, document):
        items = read("locomo", document("data.json", SAMPLES))
        turns = [
            (item.user, item.turn.conversation, item.turn.id)
            for item in items
            if isinstance(item, ImportedTurn)
        ]
        assert turns == [("talk-1", "session_1", "D1:1"), ("talk-1", "session_2", "D2:1")]

    def test_a_shared_photo_is_told_by_its_caption(self, document):
        items = read("locomo", document("data.json", SAMPLES))
        assert items[0].turn.text == "I bought a kiln. [shares a photo: a red kiln]"
        assert items[0].turn.said_at == datetime(2026, 2, 28, 23, 40, tzinfo=UTC)

    def test_what_cannot_be_read_is_named_by_its_place(self, document):
        reasons = skipped(read("locomo", document("data.json", SAMPLES)))
        assert list(reasons) == [
            "sample 'talk-1' session_1[1]",
            "sample 'talk-1' session_1[2]",
            "sample 'talk-1' session_1[3]",
            "sample[1]",
        ]
        assert reasons["sample 'talk-1' session_1[2]"] == "it has no 'dia_id'"

    def test_a_session_without_a_readable_time_is_left_out_whole(self, document):
        talk = {"session_1": [{"speaker": "A", "dia_id": "D1:1", "text": "x"}], "session_1_date_time": "soon"}
        items = read("locomo", document("data.json", [{"sample_id": "s", "conversation": talk}]))
        assert list(skipped(items)) == ["sample 's' session_1"]

    def test_observations_are_read_only_when_asked_for(self, document):
        path = document("data.json", SAMPLES)
        assert not [item for item in read("locomo", path) if isinstance(item, ImportedMemory)]
        items = read("locomo", path, facts=True)
        (known,) = [item for item in items if isinstance(item, ImportedMemory)]
        assert (known.text, known.user) == ("Iris owns a kiln.", "talk-1")
        assert known.said_at == datetime(2026, 2, 28, 23, 40, tzinfo=UTC)
        assert [where for where in skipped(items) if "observation" in where] == [
            "sample 'talk-1' session_1_observation[1]",
            "sample 'talk-1' session_1_observation[2]",
        ]


class TestBodhi:
    def test_a_folder_holds_a_user_a_file(self, document, tmp_path):
        facts = [{"content": "Prefers dark roast", "category": "preference", "timestamp": 1767225600000}]
        document("people/ana.json", {"directives": {"pacing": "slow"}, "facts": facts})
        document(
            "people/bea.json", {"facts": [{"content": "Has a cat", "category": "zoology", "timestamp": 0}]}
        )
        (tmp_path / "people" / "broken.json").write_text("{")
        items = read("bodhi", tmp_path / "people")
        known = [
            (i.user, i.key, i.text, i.category, i.said_at) for i in items if isinstance(i, ImportedMemory)
        ]
        assert known == [
            ("ana", None, "Prefers dark roast", "preference", datetime(2026, 1, 1, tzinfo=UTC)),
            ("bea", None, "Has a cat", "fact", None),
        ]
        assert [(i.user, i.name, i.text) for i in items if isinstance(i, Directed)] == [
            ("ana", "pacing", "slow")
        ]
        assert list(skipped(items)) == ["broken.json"]

    def test_a_broken_fact_costs_that_fact(self, document):
        facts = [
            {"category": "fact"},
            7,
            {"content": ""},
            {"content": "fine", "timestamp": "late"},
            {"content": "ok"},
        ]
        path = document("ana.json", {"directives": {"": "x", "tone": 3}, "facts": facts})
        items = read("bodhi", path)
        assert [item.text for item in items if isinstance(item, ImportedMemory)] == ["ok"]
        assert list(skipped(items)) == [
            "directives['']",
            "directives['tone']",
            "facts[0]",
            "facts[1]",
            "facts[2]",
            "facts[3]",
        ]

    def test_a_folder_without_files_is_refused(self, tmp_path):
        with pytest.raises(InvalidInput, match="there is no <userId>"):
            read("bodhi", tmp_path)


class TestMem0:
    def test_a_list_and_a_list_of_results_are_read_alike(self, document):
        memories = [
            {
                "id": "1",
                "memory": "Allergic to peanuts",
                "user_id": "ana",
                "created_at": "2026-01-01T00:00:00-08:00",
                "updated_at": "2026-02-01T00:00:00",
                "categories": ["health", "requirement"],
                "hash": "x",
            },
            {"id": "2", "memory": "Works nights", "metadata": {"category": "preference"}, "updated_at": None},
        ]
        bare = read("mem0", document("a.json", memories))
        assert bare == read("mem0", document("b.json", {"results": memories, "relations": []}))
        assert [(item.text, item.user, item.category, item.said_at) for item in bare] == [
            ("Allergic to peanuts", "ana", "requirement", datetime(2026, 2, 1, tzinfo=UTC)),
            ("Works nights", None, "preference", None),
        ]

    def test_a_broken_memory_costs_that_memory(self, document):
        path = document(
            "a.json", [{"memory": ""}, 3, {"memory": "x", "created_at": "soon"}, {"memory": "fine"}]
        )
        items = read("mem0", path)
        assert [item.text for item in items if isinstance(item, ImportedMemory)] == ["fine"]
        assert list(skipped(items)) == ["[0]", "[1]", "[2]"]


class TestOwn:
    def test_an_export_and_the_json_document_that_holds_one_are_the_same(self, document):
        export = {"format": "echoic-export", "version": 1, "user": "ana", "memories": [], "conversations": []}
        bare = read("echoic", document("a.json", export))
        held = read("echoic", document("b.json", {"status": "ok", "command": "export", "data": export}))
        assert bare == held == [Exported(document=export, user="ana")]


class TestRecognition:
    @pytest.mark.parametrize(
        ("kind", "content"),
        [
            ("locomo", SAMPLES),
            ("bodhi", {"directives": {}, "facts": []}),
            ("mem0", [{"memory": "x"}]),
            ("mem0", {"results": []}),
            ("echoic", {"format": "echoic-export", "version": 1}),
            ("echoic", {"status": "ok", "command": "export", "data": {}}),
        ],
    )
    def test_a_document_is_recognised_by_its_contents(self, document, kind, content):
        path = document("file.json", content)
        assert format_of(ImportSource(name="file", path=path)) == kind

    def test_turns_are_recognised_behind_broken_lines(self, jsonl):
        path = jsonl("file.json", "{broken", {"speaker": "user"}, {"speaker": "user", "text": "x"})
        assert format_of(ImportSource(name="file", path=path)) == "turns"

    @pytest.mark.parametrize("name", ["turns", "locomo", "mem0", "echoic"])
    def test_a_folder_of_anybody_else_is_refused_with_a_way_out(self, name, tmp_path):
        with pytest.raises(InvalidInput, match="one by one"):
            list(READERS[name](source_at(str(tmp_path))))

    def test_a_folder_is_bodhis(self, tmp_path):
        assert format_of(ImportSource(name="folder", path=tmp_path)) == "bodhi"

    @pytest.mark.parametrize("content", ["", "plain words", "[]", "{}", "[1, 2]", '"text"', "[" * 100_000])
    def test_what_is_not_recognised_is_refused_with_the_formats_there_are(self, tmp_path, content):
        path = tmp_path / "file"
        path.write_text(content)
        with pytest.raises(InvalidInput, match="--from, one of turns, locomo, bodhi, mem0, .*echoic"):
            format_of(ImportSource(name="file", path=path))

    def test_a_document_says_where_it_stops_being_one(self, tmp_path):
        path = tmp_path / "file.json"
        path.write_text('{"results": [\n{"memory": }]}')
        with pytest.raises(InvalidInput, match="line 2, column 12"):
            read("mem0", path)

    def test_a_file_that_is_not_there_is_refused(self, tmp_path):
        with pytest.raises(InvalidInput, match="no file"):
            source_at(str(tmp_path / "missing.json"))
