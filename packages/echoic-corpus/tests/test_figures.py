"""The datasheet says what the data is; what it is compared by counts what it says."""

import json
import re
from pathlib import Path

import pytest

from echoic_corpus import DATA, figures, leakage, read, read_all, stats, variety
from echoic_corpus.__main__ import main

HERE = Path(__file__).parents[1]
PAGE = (HERE / "DATASHEET.md").read_text("utf-8")
EXAMPLE = re.search(r"```text\n(.+?)```", (HERE / "GUIDE.md").read_text("utf-8"), re.DOTALL)[1]
CHATS = [
    {
        "conversation": {
            "session_1": [
                {"dia_id": "D1:1", "text": "I keep a ferret, and it is called Bismarck."},
                {
                    "dia_id": "D1:2",
                    "text": "Does it bite you, the ferret? I never liked them.",
                    "blip_caption": "a cat",
                },
            ],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        },
        "qa": [
            {"question": "What is the ferret called?", "evidence": ["D:1:1"], "category": 4},
            {"question": "Does the stoat bite?", "evidence": ["D1:2"], "category": 5},
        ],
    }
]


@pytest.fixture(scope="module")
def callers():
    return read_all()[0]


@pytest.fixture
def chats(tmp_path):
    folder = tmp_path / "chats"
    folder.mkdir()
    (folder / "some.json").write_text(json.dumps(CHATS), "utf-8")
    return folder


def example(folder, name, *changes):
    text = EXAMPLE.replace("caller: c99", f"caller: {name}")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / f"{name}.txt"
    path.write_text(text, "utf-8")
    return read(path)[0]


def test_the_datasheet_says_what_the_command_prints(capsys):
    assert main(["stats", "--markdown"]) == 0
    printed = re.split(r"^## (.+)\n", capsys.readouterr().out.rstrip("\n") + "\n", flags=re.MULTILINE)[1:]
    for name, table in zip(printed[::2], printed[1::2], strict=True):
        assert f"<!-- figures: {name} -->\n{table.rstrip()}\n<!-- end -->" in PAGE, (
            f"{name}: run `python -m echoic_corpus stats --write DATASHEET.md`"
        )
    in_page = set(re.findall(r"<!-- figures: (.+) -->\n[|C]", PAGE))
    assert in_page - set(printed[::2]) == {"leakage abroad"}  # that one needs LoCoMo
    assert PAGE.count("<!-- figures: ") == len(in_page)


def test_the_data_is_small_enough():
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < figures.LIMIT


def test_a_census_counts_what_the_checker_counts(callers):
    found, total = stats.census(callers), stats.totals(callers)
    names = {
        "words not to learn from": "traps",
        "questions with an answer": "questions with gold",
        "questions without an answer": "questions without answer",
        "remarks for silence": "silence",
        "requests to forget": "forget requests",
        "agents' turns that are cut off": "interrupted agent turns",
    }
    for group in ("callers", "calls", "turns", "facts", "secrets", "consents", *names):
        assert found[group][""] == total[names.get(group, group)]
    for group in ("calls", "turns", "facts", "words not to learn from", "secrets", "consents"):
        assert found[group].total() == 2 * found[group][""], "every one is of a kind"


def test_what_callers_share_is_counted_by_callers_and_by_splits(tmp_path):
    one, same = example(tmp_path, "c98"), example(tmp_path, "c99")
    rows = {what: counted for what, *counted in leakage.shared([one, same], {"c98": "train", "c99": "train"})}
    apart = {what: counted for what, *counted in leakage.shared([one, same], {"c98": "train", "c99": "test"})}
    assert all(all_of == both and not split for all_of, both, split in rows.values())
    assert all(all_of == both == split for all_of, both, split in apart.values())
    alone = leakage.shared([one], {"c98": "train"})
    assert all(all_of and not both for _, all_of, both, _ in alone)
    texts, pairs, between = leakage.near([one, same], {"c98": "train", "c99": "test"}, 0.5)
    assert texts == 2 * len(one.turns) + 2 * len(one.questions) + 2 * len(one.silence)
    assert pairs == between > 10
    assert leakage.common([one, same], {"c98": "train", "c99": "test"})["test", "train"] == 1


def test_what_another_data_set_has_too_is_counted(tmp_path, chats):
    said = ("A: Kangoo. Noted.", "A: I keep a ferret, and it is called Bismarck. Noted.")
    found = leakage.abroad([example(tmp_path, "c99", said)], chats)
    assert (found["shared sentences"], found["texts found"]) == (1, 1)
    assert 0 < found["share of 4-grams"] < 0.1
    assert leakage.abroad([example(tmp_path, "c98")], chats)["shared sentences"] == 0


def test_another_data_sets_texts_are_measured_and_not_kept(tmp_path, chats):
    read_in = variety.locomo(chats)
    assert len(read_in.turns) == len(read_in.questions) == 2
    assert read_in.gold == (("What is the ferret called?", CHATS[0]["conversation"]["session_1"][0]["text"]),)
    assert variety.of_chats(read_in)["copied"] == pytest.approx(2 / 3)  # not "what"
    (tmp_path / "measured").mkdir()
    figures.keep(tmp_path / "data", chats)
    kept = (tmp_path / "measured" / "locomo.json").read_text("utf-8")
    assert json.loads(kept)["turns"]["texts"] == 2
    assert "ferret" not in kept


def test_variety_of_what_repeats_itself_is_low():
    same = variety.variety(["it was never me who did it"] * 4)
    assert (same["distinct 4-grams"], same["once-only 4-grams"], same["distinct openings"]) == (0.25, 0, 0.25)
    assert same["vocabulary of 1,000 texts"] == 6
    other = variety.variety(["one two three four five", "six seven eight nine ten"])
    assert (other["distinct 4-grams"], other["once-only 4-grams"], other["distinct openings"]) == (1, 1, 1)
    assert (other["words"], other["words a text, half"]) == (10, 5)


def test_questions_are_sorted_by_their_first_word():
    asked = variety.asked_with(["Who’s that?", "Uh what was it?", "Isn’t it red?", "My pin?"])
    begun = [asked[f"begin with {kind}"] for kind in ("who, whose", "another word", "a verb, as in “is it”")]
    assert begun == [0.25, 0.5, 0.25]
    assert asked["have a question word anywhere"] == 0.5


def test_a_page_keeps_what_is_not_filled_and_lacks_no_place():
    page = "<!-- figures: one -->\nold\n<!-- end -->\nand\n<!-- figures: two -->\nold\n<!-- end -->\n"
    assert figures.fill(page, {"two": "new\n"}) == page[:50] + page[50:].replace("old", "new")
    with pytest.raises(ValueError, match="no place for three"):
        figures.fill(page, {"three": ""})


def test_a_page_is_written_for_all_callers(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("| turns |", "| turn |"), "utf-8")
    with pytest.raises(SystemExit, match="2"):
        main(["stats", "c01", "--write", str(page)])
    assert "about all callers" in capsys.readouterr().err
    assert main(["stats", "--write", str(page)]) == 0
    assert page.read_text("utf-8") == PAGE
