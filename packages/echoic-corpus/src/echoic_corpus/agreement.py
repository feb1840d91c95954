"""Compare what somebody who saw no labels says of turns and questions with what the corpus says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from operator import attrgetter, eq
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from rapidfuzz import fuzz

from echoic_corpus.blind import Tasks, form, number_of, shown
from echoic_corpus.model import Caller, Question, Turn
from echoic_corpus.reading import CATEGORIES, REASONS, Problem

ALIKE = 50
"""How alike (of 100) two notes on one turn must be, to be of the same thing."""
_DRAWS = 500
_REASONS = REASONS - {"unheard"}
"""What was not heard is not shown."""
Noted = tuple[str, str]
"""A category or reason, and what of."""
Row = tuple[str, Any, Any]
"""Caller, what the blind labeller says, what the corpus says."""


@dataclass(frozen=True, slots=True)
class View:
    """What one labeller sees in a turn or, gold turns only, for a question."""

    facts: tuple[Noted, ...] = ()
    traps: tuple[Noted, ...] = ()
    secret: bool = False
    gold: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pair:
    """A turn or question with both views of it."""

    caller: Caller
    said: Turn | Question
    blind: View
    corpus: View

    @property
    def role(self) -> str:
        """The speaker's, or `question`."""
        return self.said.role if isinstance(self.said, Turn) else "question"


@dataclass
class _Block:
    place: tuple[str, int]
    head: str
    words: str = ""
    filled: list[Noted] = field(default_factory=list)


def compare(callers: Sequence[Caller], folder: Path) -> tuple[list[Pair], list[Problem]]:
    """Every answer in `folder` beside the corpus's labels, and what of them cannot be used."""
    known: dict[tuple[str, str], tuple[Caller, Turn | Question]] = {}
    for caller in callers:
        tasks = Tasks(caller, tuple(caller.turns.values()), caller.questions)
        every: tuple[Turn | Question, ...] = (*tasks.turns, *tasks.questions)
        for said, text in zip(every, form(tasks), strict=True):
            head, words = text.splitlines()[:2]
            known[head[3:], words[2:]] = (caller, said)
    pairs, problems = list[Pair](), list[Problem]()
    for block in (each for path in sorted(folder.glob("answers*.txt")) for each in _blocks(path)):
        try:
            caller, said = known[block.head, block.words]
            view = _turn_view(block) if isinstance(said, Turn) else _question_view(block, caller, said)
            pairs.append(Pair(caller, said, view, _corpus_view(caller, said)))
        except KeyError:
            problems.append(Problem(*block.place, f"{block.head}: not in the corpus, or changed since"))
        except ValueError as wrong:
            problems.append(Problem(*block.place, f"{block.head}: {wrong}"))
    return pairs, problems


def _blocks(path: Path) -> list[_Block]:
    blocks = list[_Block]()
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        text = line.strip()
        if text.startswith("== "):
            blocks.append(_Block((path.name, number), text[3:]))
        elif text and blocks and text.startswith("> "):
            blocks[-1].words = text[2:]
        elif text and blocks:
            key, _, value = text.partition(":")
            blocks[-1].filled.append((key.strip(), value.strip()))
    return blocks


def _filled(block: _Block, key: str) -> list[str]:
    """What stands behind `key:`, nothing where that is `none`."""
    values = [value for name, value in block.filled if name == key and value]
    if not values:
        raise ValueError(f"{key!r} is not filled in")
    if "none" in values and len(values) > 1:
        raise ValueError(f"{key!r} is none, and is not")
    return [] if values == ["none"] else values


def _noted(block: _Block, key: str, kinds: frozenset[str]) -> tuple[Noted, ...]:
    found = [tuple(part.strip() for part in value.split("|", 1)) for value in _filled(block, key)]
    if wrong := [each for each in found if len(each) < 2 or each[0] not in kinds or not each[1]]:
        raise ValueError(
            f"{key}: {' | '.join(wrong[0])}: wants one of {', '.join(sorted(kinds))}, | and words"
        )
    return tuple((kind, words) for kind, words in found)


def _turn_view(block: _Block) -> View:
    if stray := {name for name, _ in block.filled} - {"fact", "not", "secret"}:
        raise ValueError(f"{min(stray)!r} is none of fact, not, secret")
    secret = _filled(block, "secret")
    if secret not in (["yes"], ["no"]):
        raise ValueError("secret: yes or no")
    facts, traps = _noted(block, "fact", CATEGORIES), _noted(block, "not", _REASONS)
    return View(facts, traps, secret == ["yes"])


def _question_view(block: _Block, caller: Caller, question: Question) -> View:
    gold = [f"{caller.id}/{name.strip()}" for value in _filled(block, "gold") for name in value.split(",")]
    for name in gold:
        if name not in caller.turns or caller.turns[name].call >= question.at_call:
            raise ValueError(f"gold: {number_of(name)!r} is no turn that is known then")
    return View(gold=frozenset(gold))


def _corpus_view(caller: Caller, said: Turn | Question) -> View:
    if isinstance(said, Question):
        return View(gold=frozenset(said.turns if said.answerable else ()))
    traps = [trap for trap in caller.traps if trap.turn == said.id]
    facts = [fact for fact in caller.facts if fact.turn == said.id]
    quoted = [(f.category, f"{f.value} / {' … '.join(span.quote for span in f.spans)}") for f in facts]
    return View(
        facts=tuple(quoted),
        traps=tuple((trap.reason, trap.span.quote) for trap in traps if trap.reason in _REASONS),
        secret=any(trap.reason == "secret" for trap in traps),
    )


def report(pairs: Sequence[Pair]) -> Iterator[str]:
    """How far the two agree, with 95 % intervals from drawing callers again."""
    turns = [pair for pair in pairs if pair.role != "question"]
    for what, part in (
        ("turns", turns),
        ("people's turns", [pair for pair in turns if pair.role != "agent"]),
    ):
        yield from _both(f"{what}, states a durable fact", _rows(part, lambda view: bool(view.facts)))
        yield from _both(f"{what}, has words not to learn from", _rows(part, lambda view: bool(view.traps)))
        yield from _both(f"{what}, has a secret", _rows(part, lambda view: view.secret))
    for name, what in (("facts", "category of matched facts"), ("traps", "reason of matched traps")):
        notes = _rows(turns, attrgetter(name))
        matched = [(who, a[0], b[0]) for who, blind, corpus in notes for a, b in _matched(blind, corpus)]
        blind, corpus = (sum(len(row[side]) for row in notes) for side in (1, 2))
        yield f"{name}: {blind} blind, {corpus} in the corpus, {len(matched)} of the same thing"
        yield _line(what, matched)
    asked = [pair for pair in pairs if pair.role == "question"]
    yield _line("questions, answerable", _rows(asked, lambda view: bool(view.gold)))
    gold = [row for row in _rows(asked, lambda view: view.gold) if row[2]]
    for what, rows in (
        ("answerable to both", [row for row in gold if row[1]]),
        ("answerable to the corpus", gold),
    ):
        yield _line(f"questions {what}, gold overlaps", rows, lambda a, b: bool(a & b))
        yield _line(f"questions {what}, gold is equal", rows, lambda a, b: a == b)
        yield _line(f"questions {what}, Jaccard of gold", rows, lambda a, b: len(a & b) / len(a | b))
    more, fewer = (sum(row[side] > row[3 - side] for row in gold) for side in (1, 2))
    yield f"gold differs: {more} times the blind labeller names more, {fewer} times the corpus does"
    yield from _missed(turns)


def differences(pairs: Sequence[Pair]) -> Iterator[str]:
    """Everything that the two say differently."""
    for pair in pairs:
        yield from _difference(pair)


def _both(what: str, rows: Sequence[Row]) -> Iterator[str]:
    yield _line(what, rows)
    said = Counter(row[1:] for row in rows)
    cells = {"both": (True, True), "only the blind labeller": (True, False), "only the corpus": (False, True)}
    yield f"{what}, says: " + ", ".join(f"{who} {said[cell]}" for who, cell in cells.items())


def _missed(turns: Sequence[Pair]) -> Iterator[str]:
    """For which reasons one of the two alone names words of a turn."""
    for who, one, other in (("blind labeller", "blind", "corpus"), ("corpus", "corpus", "blind")):
        alone = [getattr(pair, one).traps for pair in turns if not getattr(pair, other).traps]
        reasons = Counter(reason for traps in alone for reason, _ in traps)
        told = ", ".join(f"{reason} {times}" for reason, times in reasons.most_common()) or "none"
        yield f"reasons where only the {who} has words not to learn from: {told}"


def _rows(pairs: Sequence[Pair], view: Callable[[View], Any]) -> list[Row]:
    return [(pair.caller.id, view(pair.blind), view(pair.corpus)) for pair in pairs]


def _line(what: str, rows: Sequence[Row], like: Callable[[Any, Any], float] | None = None) -> str:
    """The mean likeness of `rows`; that they are equal, and kappa, where no measure is given."""
    measures: dict[str, Callable[[Sequence[Row]], float]] = {
        "": lambda rows: fmean((like or eq)(*row[1:]) for row in rows)
    }
    if not like:
        measures["kappa "] = kappa
    told = [
        f"{name}{measure(rows):.3f} ({_interval(rows, measure)})"
        for name, measure in measures.items()
        if rows
    ]
    return f"{what}: n {len(rows)}" + "".join(f", {each}" for each in told)


def kappa(rows: Sequence[Row]) -> float:
    """Cohen's kappa; not a number where both say the same of everything."""
    blind, corpus = (Counter(row[side] for row in rows) for side in (1, 2))
    chance = sum(blind[kind] * corpus[kind] for kind in blind) / len(rows) ** 2
    return (fmean(row[1] == row[2] for row in rows) - chance) / (1 - chance) if chance < 1 else nan


def _interval(rows: Sequence[Row], measure: Callable[[Sequence[Row]], float]) -> str:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[0], []).append(row)
    draws = (Random(at).choices(list(groups.values()), k=len(groups)) for at in range(_DRAWS))  # noqa: S311
    values = [measure([row for group in each for row in group]) for each in draws]
    drawn = sorted(value for value in values if not isnan(value))
    return f"{drawn[len(drawn) // 40]:.3f} to {drawn[-1 - len(drawn) // 40]:.3f}" if drawn else "nan"


def _matched(blind: Sequence[Noted], corpus: Sequence[Noted]) -> list[tuple[Noted, Noted]]:
    """Notes on one turn that are of the same thing, the most alike first."""
    likeness = [(fuzz.token_set_ratio(a[1].lower(), b[1].lower()), a, b) for a in blind for b in corpus]
    found = list[tuple[Noted, Noted]]()
    for alike, one, other in sorted(likeness, key=lambda each: -each[0]):
        if alike >= ALIKE and not any(one is a or other is b for a, b in found):
            found.append((one, other))
    return found


def _difference(pair: Pair) -> Iterator[str]:
    told = []
    for view, other in ((pair.blind, pair.corpus), (pair.corpus, pair.blind)):
        alike = [*_matched(view.facts, other.facts), *_matched(view.traps, other.traps)]
        same = [a for a, b in alike if a[0] == b[0]]
        kinds = [("fact", view.facts), ("not", view.traps)]
        notes = [" | ".join((what, *note)) for what, all_ in kinds for note in all_ if note not in same]
        if pair.blind.secret != pair.corpus.secret:
            notes.append("a secret" if view.secret else "no secret")
        if pair.blind.gold != pair.corpus.gold:
            order = list(pair.caller.turns)
            notes += [number_of(name) for name in sorted(view.gold, key=order.index)] or ["none"]
        told.append("; ".join(notes) or "nothing else")
    if set(told) != {"nothing else"}:
        words = shown(pair.said) if isinstance(pair.said, Turn) else f"{pair.said.text} => {pair.said.answer}"
        place = f"{pair.caller.id}.txt:{pair.said.line}: {pair.said.id}"
        yield f"differ: {place}: {words}\n    blind:  {told[0]}\n    corpus: {told[1]}"


__all__ = ["compare", "differences", "kappa", "report"]
