"""Draw turns and questions to be labelled again by somebody who sees no labels.

The folder holds no key: `agreement` finds a turn or question in the corpus by what the form shows of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean

from echoic_corpus.model import Caller, Question, Turn

CALLERS, EACH, PACKETS = 20, 15, 4
"""Callers in a sample, turns and as many questions of each, and packets they are put into."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """What of one caller is to be labelled again."""

    caller: Caller
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def draw(callers: Sequence[Caller], split: Mapping[str, str], seed: int, count: int = CALLERS) -> list[Tasks]:
    """`count` callers, spread over the splits, and `EACH` turns and questions of every one."""
    chance = Random(seed)  # noqa: S311 - a sample, not a secret
    pool = sorted(callers, key=lambda caller: (split.get(caller.id, ""), chance.random()))
    count, start = min(count, len(pool)), chance.random()
    chosen = [pool[int((at + start) * len(pool) / count)] for at in range(count)]
    chance.shuffle(chosen)
    asked = [question.answerable for caller in callers for question in caller.questions]
    without = round(count * EACH * (1 - fmean(asked)))
    drawn = []
    for at, caller in enumerate(chosen):
        named, place = _labelled(caller), {name: at for at, name in enumerate(caller.turns)}
        turns = _some(chance, {name: name in named for name in place}, (EACH + at % 2) // 2)
        questions = {question.id: question for question in caller.questions}
        none = {name: not question.answerable for name, question in questions.items()}
        picked = _some(chance, none, without // count + (at < without % count))
        chance.shuffle(picked)  # their order in the file tells where the answer is
        in_order = tuple(caller.turns[name] for name in sorted(turns, key=place.__getitem__))
        drawn.append(Tasks(caller, in_order, tuple(questions[name] for name in picked)))
    return drawn


def _some(chance: Random, names: Mapping[str, bool], count: int) -> list[str]:
    """`EACH` of `names`, `count` of them such as are marked."""
    marked, others = ([name for name in names if names[name] == kind] for kind in (True, False))
    first = chance.sample(marked, min(count, len(marked)))
    return first + chance.sample(others, min(EACH - len(first), len(others)))


def _labelled(caller: Caller) -> set[str]:
    """Turns with a label on words that were heard."""
    traps = (trap for trap in caller.traps if trap.reason != "unheard")
    said = [[each.turn for each in some] for some in (caller.facts, traps, caller.forgets, caller.consents)]
    return {turn for turns in said for turn in turns}


def write(drawn: Sequence[Tasks], folder: Path) -> None:
    """The instructions, and for every packet what is to be read and a form for answers."""
    folder.mkdir(parents=True, exist_ok=True)
    page = Path(__file__).with_name("annotate.txt").read_text("utf-8")
    texts = {"instructions.txt": page}
    packets = min(PACKETS, len(drawn))
    for number in range(1, packets + 1):
        part = drawn[len(drawn) * (number - 1) // packets : len(drawn) * number // packets]
        texts[f"packet{number}.txt"] = "\n".join(line for tasks in part for line in packet(tasks))
        texts[f"answers{number}.txt"] = "\n".join(line for tasks in part for line in form(tasks))
    for name, text in texts.items():
        with (folder / name).open("x", encoding="utf-8") as file:
            file.write(text.rstrip() + "\n")


def packet(tasks: Tasks) -> Iterator[str]:
    """What was heard, and the tasks; nothing of the labels, nor of the kind of a question."""
    caller = tasks.caller
    last = max([question.at_call - 1 for question in tasks.questions] + [turn.call for turn in tasks.turns])
    yield f"######## Caller {caller.id}\n"
    for call in caller.calls[:last]:
        yield f"---- Call {call.number}, {call.at:%A %Y-%m-%d %H:%M} ({call.zone})"
        yield from (f"{number_of(turn.id)} {shown(turn)}" for turn in call.turns)
        yield ""
    yield f"---- Tasks for {caller.id}: turns\n"
    yield from (f"{number_of(turn.id)} {shown(turn)}" for turn in tasks.turns)
    yield f"\n---- Tasks for {caller.id}: questions\n"
    for at, question in enumerate(tasks.questions, 1):
        known = f"only calls 1 to {question.at_call - 1} are known"
        when = known if question.at_call <= len(caller.calls) else "after the last call"
        yield f"{at}. {question.text}  [asked {caller.asked_at(question):%A %Y-%m-%d}, {when}]"
    yield ""


def form(tasks: Tasks) -> Iterator[str]:
    """The tasks with empty answers."""
    for turn in tasks.turns:
        yield f"== turn {turn.id}\n> {shown(turn)}\nfact:\nnot:\nsecret:\n"
    for question in tasks.questions:
        known = f"calls 1 to {question.at_call - 1} are known"
        yield f"== question {tasks.caller.id}, {known}\n> {question.text}\ngold:\n"


def number_of(turn: str) -> str:
    """`3.4` of `c01/3.4`."""
    return turn.partition("/")[2]


def shown(turn: Turn) -> str:
    """Speaker and words, as far as they were heard."""
    who = {"caller": "Caller", "agent": f"Agent {turn.speaker}"}.get(turn.role, turn.speaker)
    return f"{who}: {turn.heard_text}{'' if turn.heard is None else ' —'}"


__all__ = ["Tasks", "draw", "form", "number_of", "packet", "shown", "write"]
