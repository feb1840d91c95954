"""A sample shows nothing of the labels; what is filled in is compared with them."""

import re
from pathlib import Path

import pytest

from echoic_corpus import read, read_all, splits
from echoic_corpus.__main__ import main
from echoic_corpus.agreement import compare, differences, kappa, report
from echoic_corpus.blind import draw, write
from echoic_corpus.reading import CATEGORIES, REASONS

GUIDE = (Path(__file__).parents[1] / "GUIDE.md").read_text("utf-8")
EXAMPLE = re.search(r"```text\n(.+?)```", GUIDE, re.DOTALL)[1]
RIGHT = {
    "c99/1.2": "fact: fact | Berlingo\nfact: entity | Brahms the cat\nnot: none\nsecret: no",
    "c99/1.4": "fact: preference | text, don't ring, before noon\nnot: retracted | Tenby\nnot: transient | Wednesday I'm in\nsecret: no",
    "c99/1.6": "fact: none\nnot: hypothetical | I'm having a Bentley\nsecret: yes",
    "c99/1.7": "fact: entity | Lowri\nnot: none\nsecret: no",
    "c99/2.2": "fact: fact | Renault Kangoo\nnot: none\nsecret: no",
    "What were you going to lay on": "gold: 1.5",
    "Which van am I on": "gold: 2.2",
    "What did I drive": "gold: 1.2",
    "It is ten in the morning": "gold: 1.4",
    "Bronze, is that": "gold: 1.2",
    "Who said they'd fetch": "gold: 1.7",
    "What lives or rolls": "gold: 1.3, 1.2",
    "What day did the Kangoo": "gold: 2.2",
}


@pytest.fixture
def caller(tmp_path):
    path = tmp_path / "c99.txt"
    path.write_text(EXAMPLE, "utf-8")
    return read(path)[0]


def filled(caller, folder, **other):
    """A folder of the example, labelled as the corpus has it but for `other`."""
    write(draw([caller], {"c99": "train"}, 1), folder)
    answers = RIGHT | {key.replace("_", "/"): value for key, value in other.items()}
    forms = (folder / "answers1.txt").read_text("utf-8").strip().split("\n\n")
    done = []
    for form in forms:
        none = "gold: none" if form.startswith("== q") else "fact: none\nnot: none\nsecret: no"
        said = next(
            (value for key, value in answers.items() if key + "\n" in form or f"> {key}" in form), none
        )
        done.append("\n".join(form.splitlines()[:2]) + "\n" + said)
    (folder / "answers1.txt").write_text("\n\n".join(done), "utf-8")
    return compare([caller], folder)


def test_the_same_labels_agree_in_everything(caller, tmp_path):
    pairs, problems = filled(caller, tmp_path / "out")
    told = list(report(pairs))
    assert problems == []
    assert len(pairs) == len(caller.turns) + len(caller.questions)
    assert list(differences(pairs)) == []
    assert "turns, states a durable fact: n 10, 1.000 (1.000 to 1.000), kappa 1.000 (1.000 to 1.000)" in told
    assert "facts: 5 blind, 5 in the corpus, 5 of the same thing" in told
    assert any(line.startswith("questions answerable to both, gold is equal: n 8, 1.000") for line in told)


def test_what_differs_is_counted_and_listed(caller, tmp_path):
    changed = {
        "c99_1.6": "fact: fact | has a Bentley\nnot: none\nsecret: no",
        "c99_2.2": "fact: decision | the Kangoo\nnot: none\nsecret: no",
        "What lives or rolls": "gold: 1.2",
        "What day did the Kangoo": "gold: none",
        "How did she want": "gold: 1.4",
    }
    pairs, _ = filled(caller, tmp_path / "out", **changed)
    told = list(report(pairs))
    assert any(line.startswith("turns, states a durable fact: n 10, 0.900") for line in told)
    assert any(line.startswith("category of matched facts: n 5, 0.800") for line in told)
    assert any(line.startswith("questions answerable to both, gold is equal: n 7, 0.857") for line in told)
    assert any(
        line.startswith("questions answerable to the corpus, gold overlaps: n 8, 0.875") for line in told
    )
    assert any(line.startswith("questions answerable to both, Jaccard of gold: n 7, 0.929") for line in told)
    assert "turns, states a durable fact, says: both 4, only the blind labeller 1, only the corpus 0" in told
    assert "gold differs: 0 times the blind labeller names more, 2 times the corpus does" in told
    assert "reasons where only the corpus has words not to learn from: hypothetical 1" in told
    differ = "\n".join(differences(pairs))
    assert differ.count("differ") == 5
    assert "blind:  fact | fact | has a Bentley; no secret" in differ
    assert "blind:  1.2\n    corpus: 1.2 1.3".replace(" 1.3", "; 1.3") in differ


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("fact:\nnot: none\nsecret: no", "'fact' is not filled in"),
        ("fact: none\nnot: unheard | x\nsecret: no", "wants one of agent"),
        ("fact: none\nnot: none\nsecret: pin", "secret: yes or no"),
        ("fact: Kangoo\nnot: none\nsecret: no", "wants one of decision"),
        ("fact: none\nfact: entity | x\nnot: none\nsecret: no", "is none, and is not"),
        ("facts: none\nnot: none\nsecret: no", "'facts' is none of"),
    ],
)
def test_what_is_filled_in_wrongly_is_named(caller, tmp_path, given, said):
    pairs, problems = filled(caller, tmp_path / "out", **{"c99_2.2": given})
    assert len(pairs) == len(caller.turns) + len(caller.questions) - 1
    assert [said in problem.text for problem in problems] == [True]


def test_gold_is_a_turn_that_was_heard_before(caller, tmp_path):
    _, problems = filled(caller, tmp_path / "out", **{"What lives or rolls": "gold: 1.2, 2.2"})
    assert [problem.text.partition("gold: ")[2] for problem in problems] == [
        "'2.2' is no turn that is known then"
    ]


def test_what_was_changed_since_is_told_and_left_out(caller, tmp_path):
    folder = tmp_path / "out"
    filled(caller, folder)
    form = folder / "answers1.txt"
    form.write_text(form.read_text("utf-8").replace("> Caller: Sold it", "> Caller: Sold her"), "utf-8")
    assert [problem.text for problem in compare([caller], folder)[1]] == [
        "turn c99/2.2: not in the corpus, or changed since"
    ]


def test_kappa_is_cohens():
    rows = [("a", 1, 1)] * 20 + [("a", 1, 0)] * 5 + [("a", 0, 1)] * 10 + [("a", 0, 0)] * 15
    assert kappa(rows) == pytest.approx(0.4)
    assert kappa([("a", 1, 1)]) != kappa([("a", 1, 1)])


def test_a_sample_has_its_shares_and_tells_nothing(tmp_path, capsys):
    callers, _ = read_all()
    drawn = draw(callers, splits(), 7)
    assert drawn == draw(callers, splits(), 7) != draw(callers, splits(), 8)
    assert [len({tasks.caller.id for tasks in drawn}), sum(len(t.turns) for t in drawn)] == [20, 300]
    assert {splits()[tasks.caller.id] for tasks in drawn} == {"train", "dev", "test"}
    named = {fact.turn for c in callers for fact in c.facts} | {
        t.turn for c in callers for t in c.traps if t.reason != "unheard"
    }
    named |= {each.turn for c in callers for each in (*c.forgets, *c.consents)}
    assert sum(turn.id in named for tasks in drawn for turn in tasks.turns) == 150
    none = sum(not question.answerable for tasks in drawn for question in tasks.questions)
    everything = [question.answerable for c in callers for question in c.questions]
    assert none == round(300 * (1 - sum(everything) / len(everything)))
    assert main(["sample", "--seed", "7", "--out", str(tmp_path / "s")]) == 0
    assert main(["agree", str(tmp_path / "s")]) == 1
    assert "0 answers compared, 600 problems" in capsys.readouterr().out
    for number in range(1, 5):
        text = (tmp_path / "s" / f"packet{number}.txt").read_text("utf-8")
        assert not re.search(r"^\s*(\+|!|\$|&|-|\?-?) .*\||=>|<-|//|^[!$?&~+] |#[a-z]", text, re.MULTILINE)
    said = [
        trap.span.quote
        for t in drawn
        for trap in t.caller.traps
        if trap.reason == "unheard" and len(trap.span.quote) > 25
    ]
    packets = " ".join(path.read_text("utf-8") for path in (tmp_path / "s").glob("packet*"))
    assert said
    assert not [quote for quote in said if quote in packets]


def test_the_instructions_know_every_category_and_reason():
    page = (Path(main.__code__.co_filename).parent / "annotate.txt").read_text("utf-8")
    assert all(
        re.search(rf"(\*{name}\*|^    {name} )", page, re.MULTILINE)
        for name in (CATEGORIES | REASONS) - {"unheard"}
    )
