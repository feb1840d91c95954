"""The grader tells systems apart: one that returns everything, one that returns nothing, one that knows the labels."""

import asyncio
import math
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from echoic_corpus import Recogniser, read
from echoic_corpus.grading import Found, asked_as, grade, heard_by
from echoic_corpus.marks import Marks, auroc, difference, interval
from echoic_corpus.report import charts, table

GUIDE = (Path(__file__).parents[1] / "GUIDE.md").read_text("utf-8")
ANOTHER = """
caller: c98
name: Tove Ask
age: 31
country: Norway
zone: Europe/Oslo
languages: Norwegian
speech: short
occupation: diver
reasons: a kayak
agent: Siv = shop, Fjord and Paddle
misheard: Tove = toffee

== 1 | 2025-02-01 10:00 | Siv
A: Fjord and Paddle, Siv.
C: I bought the green kayak, and I want it with the rudder. #bought
  + boat | fact possession | green kayak | "I bought the green kayak"
  ! wish "I want it with the rudder"
  ? single Which boat is hers? => a green kayak <- boat
A: It comes on // the ninth.
  ! unheard "the ninth"
  ?- unheard When does it come?
C: My mother fell ill, so ring only after six. The locker is four four one.
  + ill | fact - | her mother is ill | "My mother fell ill"
  + late | preference contact_time | after six | "ring only after six"
  $ door_code "four four one"

== 2 | 2025-03-01 10:00 | Siv
C: Forget about my mother. The ringing stays. And the kayak is red now, I swapped it.
  - "Forget about my mother" | reaches ill | keeps late
  + boat2 | fact possession | red kayak | "the kayak is red now" | replaces boat

== questions
? current What colour is the boat today? => red <- boat2
? list @2 What was said in the first call? => the kayak and the hour <- boat, late
?- forgotten Who was ill? <- ill
?- never How long is the kayak?
~ Brr, cold in here.
"""


@pytest.fixture(scope="module")
def callers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("callers")
    texts = {"c99": re.search(r"```text\n(.+?)```", GUIDE, re.DOTALL)[1], "c98": ANOTHER}
    made = []
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, "utf-8")
        caller, problems = read(folder / f"{name}.txt")
        assert problems == []
        made.append(caller)
    return made


class Everything:
    """Hands out all there is, whatever it is asked, and forgets nothing."""

    def __init__(self):
        self.kept, self.log = {}, []

    async def open(self, caller, zone):
        self.caller, self.zone = caller, zone

    async def add(self, said):
        self.kept[said.id] = said
        self.log.append(said)

    async def hang_up(self):
        self.log.append(None)

    async def query(self, text, at, limit):
        self.log.append((text, at, limit))
        mine = [said for said in self.kept.values() if said.id.startswith(self.caller)]
        return [Found(text=said.text, turns=(said.id,), score=1.0) for said in mine]

    async def facts(self):
        return await self.query("", None, 0)

    async def forget(self, turns):
        pass


class Nothing(Everything):
    async def query(self, text, at, limit):
        return []


class InOneHit(Everything):
    """Everything, as a single hit that names every turn."""

    async def query(self, text, at, limit):
        found = await super().query(text, at, limit)
        return [Found(text=" ".join(f.text for f in found), turns=tuple(t for f in found for t in f.turns))]


class Leaking(Everything):
    async def query(self, text, at, limit):
        return [Found(text=said.text, turns=(said.id,)) for said in self.kept.values()]


class Oracle(Everything):
    """Has read the labels."""

    def __init__(self, callers):
        super().__init__()
        self.labels = {caller.id: caller for caller in callers}

    async def query(self, text, at, limit):
        caller = self.labels[self.caller]
        turns = next((q.turns for q in caller.questions if q.text == text and q.answerable), ())
        keeps = {name for forget in caller.forgets for name in forget.keeps}
        turns += tuple(f.turn for f in caller.facts if f.id in keeps and f.spans[0].quote == text)
        return [Found(text=caller.turns[turn].heard_text, turns=(turn,), score=2.0) for turn in turns]

    async def facts(self):
        caller = self.labels[self.caller]
        gone = {old for fact in caller.facts for old in fact.replaces}
        gone |= {name for forget in caller.forgets for name in forget.reaches}
        held = [fact for fact in caller.facts if fact.id not in gone]
        return [Found(text=fact.value, turns=(fact.turn,)) for fact in held]


def graded(system, callers, **more):
    return asyncio.run(grade(system, callers, **more))


def test_an_oracle_gets_full_marks(callers):
    marks = graded(Oracle(callers), callers)
    for good in (
        "R@5",
        "R@10",
        "nDCG@10",
        "silent",
        "facts found",
        "learned is labelled",
        "kept beside it, told to",
    ):
        assert (good, marks.mean(good)) == (good, 1.0)
    bad = ("wrongly silent", "outdated held", "traps stored", "secrets kept", "unheard recalled")
    for each in (*bad, "forgotten recalled, as spoken", "forgotten recalled, told to"):
        assert (each, marks.mean(each)) == (each, 0.0)
    assert marks.auroc("no answer") == marks.auroc("remark") == 1.0
    assert marks.leaks == 0
    assert marks.count("R@10") == sum(q.answerable for caller in callers for q in caller.questions)
    assert marks.count("R@10: list") == 2


def test_who_returns_everything_finds_and_betrays_everything(callers):
    marks = graded(Everything(), callers)
    # memory never holds more than the calls before the question, here fewer than ten turns and more than five
    assert marks.mean("R@10") > marks.mean("nDCG@10")
    assert marks.mean("silent") == 0
    for bad in ("traps stored", "secrets kept", "unheard recalled", "outdated held"):
        assert (bad, marks.mean(bad)) == (bad, 1.0)
    for how in ("as spoken", "told to"):
        assert marks.mean(f"forgotten recalled, {how}") == 1
        assert marks.mean(f"kept beside it, {how}") in {None, 1}
    assert marks.mean("facts found") > 0.9
    assert marks.mean("learned is labelled") < 0.7
    assert marks.auroc("no answer") == marks.auroc("remark") == 0.5


def test_who_returns_nothing_is_silent_where_it_should_not_be_too(callers):
    marks = graded(Nothing(), callers)
    assert marks.mean("silent") == marks.mean("wrongly silent") == 1
    for nothing in ("R@5", "R@10", "nDCG@10", "facts found", "secrets kept", "forgotten recalled, as spoken"):
        assert marks.mean(nothing) == 0
    assert marks.mean("learned is labelled") is None
    assert marks.auroc("no answer") == 0.5


def test_a_hit_that_names_every_turn_is_no_find(callers):
    assert graded(InOneHit(), callers).mean("R@10") < graded(Everything(), callers).mean("R@10")


def test_control_another_callers_turns_are_leaks(callers):
    assert graded(Leaking(), callers).leaks > 0
    assert graded(Everything(), callers).leaks == 0


def test_a_question_is_asked_of_what_was_said_before_it_and_no_label_is_told(callers):
    system = Everything()
    graded(system, callers[1:])
    texts = [each if each is None else getattr(each, "id", None) or each[0] for each in system.log]
    assert texts.index("What was said in the first call?") == texts.index(None) + 1
    assert texts.index("c98/2.1") > texts.index("What was said in the first call?")
    assert texts.index("What colour is the boat today?") > texts.index("c98/2.1")
    asked = system.log[texts.index("What colour is the boat today?")]
    assert str(asked[1]) == "2025-03-02 10:00:00+01:00"
    cut = system.kept["c98/1.3"]
    assert (cut.text, cut.heard, cut.role) == ("It comes on the ninth.", "It comes on", "agent")
    assert not hasattr(cut, "name")


def test_what_was_forgotten_when_told_is_no_longer_recalled(callers):
    class Obedient(Everything):
        async def forget(self, turns):
            for turn in turns:
                del self.kept[turn]

    marks = graded(Obedient(), callers[1:])
    assert marks.mean("forgotten recalled, as spoken") == 1
    assert marks.mean("forgotten recalled, told to") == 0
    # the whole turn went, and what was to stay with it
    assert (marks.mean("kept beside it, as spoken"), marks.mean("kept beside it, told to")) == (1, 0)


def test_callers_are_misheard_and_agents_are_not(callers):
    recogniser = Recogniser(callers)
    call = callers[0].calls[0]
    clean = list(heard_by(callers[0], call, "clean"))
    noisy = list(heard_by(callers[0], call, "wer20", recogniser))
    assert [s.text for s in clean if s.role == "agent"] == [s.text for s in noisy if s.role == "agent"]
    assert [s.text for s in clean if s.role == "caller"] != [s.text for s in noisy if s.role == "caller"]
    assert all(0 < said.confidence < 1 for said in noisy if said.role != "agent")
    question = callers[0].questions[0]
    assert asked_as(callers[0], question, "clean") == question.text
    marks = graded(Everything(), callers, version="wer20", recogniser=recogniser)
    assert marks.count("R@10") > 0
    assert marks.mean("facts found") is None
    with pytest.raises(ValueError, match="needs a recogniser"):
        graded(Everything(), callers, version="wer10")


def test_auroc_counts_ties_half():
    assert auroc([2, 3], [1, 0]) == 1
    assert auroc([1, 1], [1]) == 0.5
    assert auroc([0.9, 0.4, 0.4], [0.4, 0.1, -math.inf]) == pytest.approx(8 / 9)
    assert auroc([], [1]) is None


def test_intervals_are_over_callers_and_differences_are_paired():
    assert interval([[1, 0], [1, 0]]) == (0.5, 0.5, 0.5)
    mean, low, high = interval([[1.0] * 10, [0.0] * 10])
    assert (mean, low, high) == (0.5, 0, 1)
    ours, theirs = Marks(), Marks()
    for caller in ("a", "b"):
        ours.note(caller, "R@10", 0.75)
        theirs.note(caller, "R@10", 0.5)
    assert difference(ours, theirs, "R@10") == [25, 25, 25]


def test_the_table_has_default_and_best_in_one_cell_and_every_plot_is_svg(callers):
    made = {"oracle": Oracle(callers), "all": Everything(), "all, best": Nothing()}
    result = {"systems": {name: {"clean": graded(s, callers).as_json()} for name, s in made.items()}}
    rows = dict(line.strip("| ").split(" | ", 1) for line in table(result).splitlines()[2:])
    assert rows["R@10, clean"].startswith("100.0 | ")
    assert rows["R@10, clean"].endswith(" / 0.0")
    assert rows["silent on remarks"] == "100.0 | 0.0 / 100.0"
    assert "R@10, wer10" not in rows
    drawn = charts(result)
    assert {"retrieval", "kinds", "silence", "auroc", "learning", "forgetting", "keeping", "latency"} == set(
        drawn
    )
    for svg in drawn.values():
        ET.fromstring(svg)
    texts = [each.text for each in ET.fromstring(drawn["retrieval"]).iter("{http://www.w3.org/2000/svg}text")]
    assert {"oracle", "all", "all, best", "clean", "100", "0"} <= set(texts)
