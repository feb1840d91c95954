"""The reader refuses what is wrong and says where; the checker finds what contradicts itself; the noise repeats."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from echoic_corpus import DATA, Recogniser, read, read_all, splits
from echoic_corpus.__main__ import main
from echoic_corpus.checking import SHARES, between, doubtful, near_duplicates, of_caller, stale
from echoic_corpus.digits import is_card, is_telephone, runs
from echoic_corpus.echoes import echoes

HERE = Path(__file__).parents[1]
GUIDE = (HERE / "GUIDE.md").read_text("utf-8")
EXAMPLE = re.search(r"```text\n(.+?)```", GUIDE, re.DOTALL)[1]


@pytest.fixture(scope="module")
def corpus():
    return read_all()


def written(folder, text, name="c99"):
    path = folder / f"{name}.txt"
    path.write_text(text.replace("caller: c99", f"caller: {name}"), "utf-8")
    caller, problems = read(path)
    return caller, [*problems, *of_caller(caller, quotas=False)]


def changed(folder, old, new):
    assert EXAMPLE.count(old) == 1
    _, problems = written(folder, EXAMPLE.replace(old, new))
    return [problem for problem in problems if "turns: at least" not in problem.text]


def test_the_guides_example_is_right(tmp_path):
    caller, problems = written(tmp_path, EXAMPLE)
    assert [p for p in problems if "turns: at least 6" not in p.text] == []
    assert caller.turns["c99/1.3"].heard_text == "Bring it in Wednesday. That's about a hundred and"
    assert caller.fact["van2"].replaces == ("van1",)
    gold = next(question for question in caller.questions if question.kind == "former")
    assert (gold.answer, gold.turns) == ("Citroën Berlingo", ("c99/1.2",))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"The Berlingo"', '"the Berlingo"', "does not occur"),
        ("fact vehicle | Citroën", "fact car | Citroën", "'car' is no slot"),
        ('! transient "Wed', '! fleeting "Wed', "'fleeting' is no reason"),
        ('! unheard "forty', '! agent "forty', "nothing else is"),
        ("$ door_code", "$ doorcode", "'doorcode' is no class of secret"),
        ("reaches text1", "reaches text7", "'text7' is the id of nothing"),
        ("L: Mam", "X: Mam", "nobody is declared as 'X'"),
        ("A: Kangoo. Noted.", 'A: "Kangoo". Noted.', "no straight double quotes"),
        ("== 2 | 2025-03-03", "== 3 | 2025-03-03", "this is call 2, not 3"),
        ("== 2 | 2025-03-03", "== 2 | 2025-01-03", "order of their dates"),
        ("=> a courtesy car", "", "'=> answer'"),
        ("| replaces van1", "| replaces cat", "another slot"),
        ("? current Which", "? single @2 Which", "before c99/2.2 was said"),
        ("? former What did I drive", "? single What did I drive", "was replaced before this is asked"),
        ("?- forgotten How did she want to be reached of a morning?", "? single How reached? => text", "was forgotten"),
        ("?- forgotten How", "?- unheard How", "words labelled 'unheard'"),
        ("? list @2 What", "? misheard @2 What", "a form from the header's 'misheard:'"),
        ("? promise What", "? condition What", "a fact with 'if …'"),
        ("+ cat | entity", "+ van1 | entity", "given twice"),
        ("C: Sold it.", "C: I said text me, don’t ring. Sold it.", "let it reach itself"),
        ("+ lowri | entity child | Lowri |", "+ lowri | fact phone | 07700 901144 |", "might be somebody's"),
        ("having a Bentley. The", "having a Bentley. Four, triple one, treble one, double one double one, one one one one one. The", "passes the check"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(tmp_path, old, new, said):
    found = changed(tmp_path, old, new)
    assert any(said in problem.text and problem.line >= 1 for problem in found), found


def test_callers_share_no_sentence_no_person_and_no_number(tmp_path):
    one, _ = written(tmp_path, EXAMPLE)
    other, _ = written(tmp_path, EXAMPLE, "c98")
    found = [problem.text for problem in between([one, other], {"c99": "train", "c98": "test"})]
    assert any("the person 'ottoline pryce' is also in" in text for text in found)
    assert any("not the cat the cat's get down brahms the cat's fine" in text for text in found)
    assert list(between([one], {"c99": "train"})) == []
    assert [text.text for text in between([one], {})] == ["c99 is in no split"]


def test_agents_and_businesses_are_of_one_split_only(tmp_path):
    one, _ = written(tmp_path, EXAMPLE)
    other, _ = written(tmp_path, EXAMPLE, "c98")
    shared = {
        "the agent 'rhys' is also in c98.txt:1",
        "the business 'cambrian wheelwrights' is also in c98.txt:1",
    }
    apart = {problem.text for problem in between([one, other], {"c99": "train", "c98": "test"})}
    together = {problem.text for problem in between([one, other], {"c99": "train", "c98": "train"})}
    assert shared <= apart
    assert not shared & together


def test_a_request_that_reaches_itself_may_say_again_what_it_is_about(tmp_path):
    again = EXAMPLE.replace(
        "forget all that, just ring.", "forget text me, don’t ring before noon, just ring. #strike"
    )
    again = again.replace("the texting, forget all that", "the texting").replace(
        "reaches text1", "reaches text1, strike"
    )
    _, problems = written(tmp_path, again)
    assert [p for p in problems if "turns: at least 6" not in p.text] == []


def test_what_a_turn_that_was_forgotten_says_beside_its_facts_is_forgotten_too(tmp_path):
    turn = EXAMPLE.replace("not before noon.\n", "not before noon. #thursday\n")
    turn = turn.replace("reaches text1", "reaches text1, thursday")
    turn = turn.replace(
        "? condition @2 It is", "? single Which day suits her? => Thursday <- self\n? condition @2 It is"
    )
    _, problems = written(tmp_path, turn)
    assert any("thursday was forgotten before this is asked" in problem.text for problem in problems)


def test_gold_that_was_replaced_is_doubted_unless_the_question_asks_for_the_past(tmp_path):
    asked = "? list @2 What lives or rolls at hers"
    now, _ = written(tmp_path, EXAMPLE.replace(asked, "? list What lives or rolls at hers"))
    was, _ = written(tmp_path, EXAMPLE.replace(asked, "? list What lived or rolled at hers before"))
    both, _ = written(
        tmp_path,
        EXAMPLE.replace(asked, "? list What rolls at hers").replace("<- cat, van1,", "<- van2, van1,"),
    )
    assert [text.partition(": ")[2].partition(":")[0] for text in stale(now)] == ["van1"]
    assert list(stale(was)) == list(stale(both)) == []


def test_an_agents_turn_that_answers_too_is_doubted(tmp_path):
    said, _ = written(tmp_path, EXAMPLE.replace("A: Kangoo. Noted.", "A: A Renault Kangoo these days, then."))
    assert [text.split(": ")[2][:8] for text in echoes(said)] == ["c99/2.3 "]
    assert list(echoes(written(tmp_path, EXAMPLE)[0])) == []


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("oh seven seven double-oh, nine hundred, one four three", ["07700900143"]),
        ("four one one, double two… seven. And twelve hundred", ["411227", "1200"]),
        ("two hundred and sixty thousand, or eighteen thousand four hundred and five", ["260000", "18405"]),
        ("sixty-four, a fortnight, sixteen", ["64", "16"]),
        ("a hundred and forty eggs, a thousand years old, or two thousand", ["140", "1000", "2000"]),
    ],
)
def test_numbers_are_read_as_they_are_spoken(said, numbers):
    assert list(runs(said)) == numbers


def test_cards_fail_their_check_and_telephones_are_nobodys():
    assert is_card("4111111111111111")
    assert not is_card("4111111111111112")
    assert not any(is_telephone(n, "England") for n in ("07700900143", "01632960001", "0770090"))
    assert is_telephone("07700901143", "England")
    assert not is_telephone("5205550163", "USA")
    assert is_telephone("5205560163", "USA")
    assert (is_telephone("0214960118", "Ireland"), is_telephone("083911226", "Ireland")) == (True, False)


def test_near_duplicates_are_found_by_their_four_grams():
    texts = {
        "a": "I would never in my life put a ferret in the boot of that car again",
        "b": "she would never in my life put a ferret in the boot of that van",
        "c": "an entirely different remark about the tides and the price of coal today",
    }
    assert [pair[1:] for pair in near_duplicates(texts)] == [("a", "b")]


def test_every_caller_that_is_written_passes(capsys):
    assert main(["check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("command", ["review", "stats", "export"])
def test_every_other_command_prints(command, capsys):
    assert main([command, "c01"]) == 0
    assert "Mukherjee" in capsys.readouterr().out or command == "stats"


@pytest.mark.parametrize("name", ["c00", "c1", "c01.csv", "elsewhere/c01.txt"])
def test_callers_that_do_not_exist_are_refused(name, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["check", "c01", name])
    assert f"no caller is named so under {DATA}: {name}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["c01", "c01.txt", str(DATA / "callers" / "c01.txt")])
def test_callers_are_named_by_id_or_file(name, capsys):
    assert main(["review", name]) == 0
    assert {line[:4] for line in capsys.readouterr().out.splitlines() if line[0] == "c"} == {"c01."}


def test_a_reader_that_has_seen_enough_is_no_error():
    command = [sys.executable, "-m", "echoic_corpus", "export"]
    with subprocess.Popen(
        command, cwd=HERE / "src", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 141


def test_splits_have_their_shares():
    split = splits(DATA)
    for name, share in SHARES.items():
        assert abs(list(split.values()).count(name) / len(split) - share) < 0.02


@pytest.mark.parametrize(("version", "low", "high"), [("wer10", 0.07, 0.13), ("wer20", 0.16, 0.25)])
def test_a_recogniser_errs_as_much_as_it_says_and_most_in_names(corpus, version, low, high):
    callers = corpus[0][:2]
    recogniser = Recogniser(callers)
    heard = [(t, recogniser.hear(c, t, version)) for c in callers for t in c.turns.values()]
    assert low < sum(h.wrong for _, h in heard) / sum(h.spoken for _, h in heard) < high
    again = Recogniser(callers)
    assert heard[:20] == [(t, again.hear(callers[0], t, version)) for t, _ in heard[:20]]
    for _, each in heard:
        assert each.text == " ".join(word.text for word in each.words)
        assert not each.partials or each.partials[-1][1] == each.text
        assert [at for at, _ in each.partials] == sorted(at for at, _ in each.partials)


def test_a_gold_turn_that_says_the_number_in_words_has_the_answer(tmp_path):
    asked = "? single What am I to pay with the filter? => {} <- quote\n? list @2 What lives"
    one, _ = written(tmp_path, EXAMPLE.replace("? list @2 What lives", asked.format("140 pounds")))
    other, _ = written(tmp_path, EXAMPLE.replace("? list @2 What lives", asked.format("1,140 pounds")))
    assert not any("with the filter" in text for text in doubtful(one))
    assert any("with the filter" in text for text in doubtful(other))
