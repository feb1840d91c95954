"""Check what reading cannot: that labels and questions agree, that quotas are met, that nothing is shared."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from echoic_corpus.digits import is_card, is_telephone, runs
from echoic_corpus.echoes import said_again
from echoic_corpus.model import EVERYTHING, Caller, Fact, Forget, Question, Turn
from echoic_corpus.reading import Problem

TARGETS: Mapping[str, int] = {
    "callers": 60,
    "calls": 480,
    "turns": 12_000,
    "questions with gold": 5_000,
    "questions without answer": 1_200,
    "silence": 600,
}
"""What the corpus must have in all."""
QUOTAS: Mapping[str, int] = {
    "calls": 8,
    "turns": 195,
    "other speakers' turns": 8,
    "questions with gold": 90,
    "questions without answer": 22,
    "silence": 11,
    "facts": 40,
    "facts replaced": 4,
    "facts with a condition": 3,
    "facts without a slot": 3,
    "traps": 25,
    "kinds of trap": 8,
    "secrets": 2,
    "interrupted agent turns": 4,
    "forget requests": 1,
    "consents": 1,
    "misheard names": 3,
    "time": 5,
    "list": 5,
    "multi": 5,
    "current": 3,
    "former": 3,
    "condition": 3,
    "misheard": 3,
    "speaker": 3,
    "promise": 4,
    "never": 6,
    "other": 4,
    "forgotten": 2,
    "unheard": 3,
}
"""What every caller must have at least."""
SHARES: Mapping[str, float] = {"train": 0.60, "dev": 0.15, "test": 0.25}
OWN_SLOTS = frozenset(
    "name address phone email account order booking child partner pet sibling friend employer".split()
)
"""Slots of which no two callers may hold the same value."""
SENTENCE_WORDS = 6
"""Shorter sentences are anybody's: "how are you today"."""
NEAR = 0.5
"""Share of its 4-grams in another turn that makes a turn a near-duplicate."""
_NEAR_GRAMS = 5
_AS_IT_IS = frozenset("single current condition misheard speaker".split())
"""Kinds that ask how things are, so that what was replaced is no answer."""
_OF_ANY_TIME = frozenset("list multi time promise".split())
"""Kinds that may ask how things were, and then say so."""
_PAST = frozenset(
    "first before former formerly used once was were had did then old originally earlier initially ever since"
    " been changed began begin beginning start started previous would could drove brought made came took got"
    " went gone gave drew ended history".split()
)
_APART = frozenset({"the agent", "the business"})
"""What callers of different splits must not share, though those of one may."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def words(text: str) -> list[str]:
    """The words of `text`, folded."""
    return _WORD.findall(text.lower().replace("’", "'"))


def grams(text: str) -> set[tuple[str, ...]]:
    """The 4-grams of `text`."""
    cut = words(text)
    return {tuple(cut[at : at + 4]) for at in range(len(cut) - 3)}


def sentences(text: str) -> Iterator[str]:
    """The sentences of `text` that are long enough to belong to somebody, folded."""
    for sentence in re.split(r"(?<=[.!?…])\s+", text):
        cut = words(sentence)
        if len(cut) >= SENTENCE_WORDS:
            yield " ".join(cut)


def counts(caller: Caller) -> Counter[str]:
    """How much there is of everything that has a quota."""
    turns, questions = caller.turns.values(), caller.questions
    found = Counter(question.kind for question in questions)
    found |= Counter(
        {
            "callers": 1,
            "calls": len(caller.calls),
            "turns": len(caller.turns),
            "other speakers' turns": sum(turn.role == "other" for turn in turns),
            "questions with gold": sum(question.answerable for question in questions),
            "questions without answer": sum(not question.answerable for question in questions),
            "silence": len(caller.silence),
            "facts": len(caller.facts),
            "facts replaced": len({old for fact in caller.facts for old in fact.replaces}),
            "facts with a condition": sum(fact.condition is not None for fact in caller.facts),
            "facts without a slot": sum(fact.slot is None for fact in caller.facts),
            "traps": len(caller.traps),
            "kinds of trap": len({trap.reason for trap in caller.traps}),
            "secrets": sum(trap.reason == "secret" for trap in caller.traps),
            "interrupted agent turns": sum(turn.heard is not None for turn in turns),
            "forget requests": len(caller.forgets),
            "consents": len(caller.consents),
            "misheard names": len(caller.misheard),
        }
    )
    return found


def of_caller(caller: Caller, *, quotas: bool = True) -> Iterator[Problem]:
    """What is wrong with one caller's labels and questions, and which quotas are missed."""
    file = f"{caller.id}.txt"
    for line, text in _all_of(caller):
        yield Problem(file, line, text)
    if quotas:
        found = counts(caller)
        missed = [f"{what} {found[what]} of {least}" for what, least in QUOTAS.items() if found[what] < least]
        if missed:
            yield Problem(file, 1, "too few: " + ", ".join(missed))


def _all_of(caller: Caller) -> Iterator[tuple[int, str]]:
    for check in (_facts, _forgets, said_again, _questions, _texts, _numbers):
        yield from check(caller)


def _facts(caller: Caller) -> Iterator[tuple[int, str]]:
    order = {name: at for at, name in enumerate(caller.turns)}
    for fact in caller.facts:
        for old in (caller.fact[name] for name in fact.replaces if name in caller.fact):
            if order[old.turn] >= order[fact.turn]:
                yield fact.line, f"{fact.id!r} replaces {old.id!r}, which is not said before it"
            if (old.slot, old.about) != (fact.slot, fact.about):
                yield fact.line, f"{fact.id!r} replaces {old.id!r} but is of another slot or person"
        if fact.since and fact.until and fact.since > fact.until:
            yield fact.line, f"{fact.id!r} ends before it begins"
        for trap in caller.traps:
            if trap.turn == fact.turn and any(
                span.start < trap.span.end and trap.span.start < span.end for span in fact.spans
            ):
                yield trap.line, f"these words are both a trap and the fact {fact.id!r}"


def _forgets(caller: Caller) -> Iterator[tuple[int, str]]:
    order = {name: at for at, name in enumerate(caller.turns)}
    for forget in caller.forgets:
        for name in (*forget.reaches, *forget.keeps):
            turns = _turns_called(caller, name)
            if any(order[turn] > order[forget.turn] for turn in turns):
                yield forget.line, f"{name!r} is said only after this request"
        if set(forget.reaches) & set(forget.keeps):
            yield forget.line, "the request both reaches and keeps the same"


def _turns_called(caller: Caller, name: str) -> list[str]:
    if name in caller.fact:
        return [caller.fact[name].turn]
    return [turn.id for turn in caller.turns.values() if turn.name == name]


def _questions(caller: Caller) -> Iterator[tuple[int, str]]:
    asked: dict[tuple[str, int], int] = {}
    for question in caller.questions:
        wrong = _answered(caller, question) if question.answerable else _unanswered(caller, question)
        yield from ((question.line, text) for text in wrong)
        if not 2 <= question.at_call <= len(caller.calls) + 1:
            yield (
                question.line,
                f"there is nothing to remember before call {question.at_call}, or no such call",
            )
        late = [name for name in question.turns if caller.turns[name].call >= question.at_call]
        if late and question.kind != "never":
            yield (
                question.line,
                f"asked when call {question.at_call} begins, before {', '.join(late)} was said",
            )
        same = (" ".join(words(question.text)), question.at_call)
        if same in asked:
            yield question.line, f"asked in line {asked[same]} already"
        asked.setdefault(same, question.line)


def _answered(caller: Caller, question: Question) -> Iterator[str]:
    facts = _facts_meant(caller, question)
    gone = _replaced(caller, question.at_call)
    stale = [fact.id for fact in facts if fact.id in gone]
    if not question.turns:
        yield "has no gold turn: put it under its turn, or name ids behind '<-'"
    elif wanted := _lacks(caller, question, facts):
        yield f"a {question.kind!r} question needs {wanted}"
    if question.kind == "former" and not stale:
        yield "a 'former' question is about a fact that was replaced before it is asked"
    if stale and len(stale) == len(facts) and question.kind in _AS_IT_IS:
        yield f"{', '.join(stale)} was replaced before this is asked: make it 'former', or ask '@' earlier"
    lost = [name for forget in _before(caller, question) for name in _lost(caller, forget, question)]
    if lost:
        yield f"{', '.join(lost)} was forgotten before this is asked: use '?- forgotten', or ask '@' earlier"


def _lacks(caller: Caller, question: Question, facts: list[Fact]) -> str | None:
    """What a question of this kind must have and this one has not."""
    turns = [caller.turns[name] for name in question.turns]
    needs = {
        "list": (len(turns) > 1, "two gold turns or more"),
        "multi": (len(turns) > 1, "two gold turns or more"),
        "promise": (any(turn.role == "agent" for turn in turns), "a turn in which the agent promises"),
        "speaker": (bool(caller.voices), "somebody else on the line"),
        "condition": (any(fact.condition for fact in facts), "a fact with 'if …'"),
        "current": (any(fact.replaces for fact in facts), "a fact that replaces another"),
        "misheard": (
            _sounds_wrong(caller, question),
            "a form from the header's 'misheard:' in its text or in its gold turn",
        ),
    }
    met, wanted = needs.get(question.kind, (True, ""))
    return None if met else wanted


def _unanswered(caller: Caller, question: Question) -> Iterator[str]:
    turns = [caller.turns[name] for name in question.turns]
    kind = question.kind
    if kind != "never" and not turns:
        yield f"a {kind!r} question names what it is about: put it under the turn, or name ids behind '<-'"
    traps = {trap.reason for trap in caller.traps if trap.turn in question.turns}
    if kind == "unheard" and "unheard" not in traps:
        yield "an 'unheard' question is about a turn with words labelled 'unheard'"
    if kind == "unheard":
        yield from _heard_after_all(caller, question)
    if kind == "secret" and "secret" not in traps:
        yield "a 'secret' question is about a turn with a secret"
    about = any(fact.about for fact in _facts_meant(caller, question))
    if kind == "other" and not (traps or about or any(turn.role == "other" for turn in turns)):
        yield "an 'other' question is about somebody else's turn, a trap, or a fact 'about' somebody else"
    if kind == "forgotten" and not any(
        _lost(caller, forget, question) for forget in _before(caller, question)
    ):
        yield "nothing that this names was forgotten before it is asked"


def _heard_after_all(caller: Caller, question: Question) -> Iterator[str]:
    for trap in caller.traps:
        if trap.reason != "unheard" or trap.turn not in question.turns:
            continue
        lost = " ".join(words(trap.span.quote))
        for turn in caller.turns.values():
            if turn.call < question.at_call and f" {lost} " in f" {' '.join(words(turn.heard_text))} ":
                yield f"{trap.span.quote!r} is heard in {turn.id}: then there is an answer"


def doubtful(caller: Caller) -> Iterator[str]:
    """Questions no word of whose answer is in the gold turns or facts: sometimes right, worth a look."""
    for question in caller.questions:
        turns = [caller.turns[name] for name in question.turns]
        gold = [f"{turn.speaker} {turn.text}" for turn in turns]
        gold += [f"{fact.value} {fact.about} {fact.since}" for fact in _facts_meant(caller, question)]
        said = {word[:5] for text in gold for word in (*words(text), *runs(text))}
        plain = re.sub(r"(?<=\d)[,. ](?=\d\d\d)", "", question.answer or "")
        answer = [word[:5] for word in words(plain) if len(word) > 2 or word.isdigit()]
        dated = question.kind == "time" or answer[:1] in (["yes"], ["no"])
        if answer and not dated and not said & set(answer):
            yield f"{caller.id}.txt:{question.line}: {question.text} => {question.answer}"


def stale(caller: Caller) -> Iterator[str]:
    """Questions of any time that do not ask for the past, though a fact of their gold was replaced by then.

    The fact that replaced it is not gold either, as it would be in a list of what was in turn.
    """
    for question in caller.questions:
        if question.kind not in _OF_ANY_TIME or not question.answerable:
            continue
        facts, gone = _facts_meant(caller, question), _replaced(caller, question.at_call)
        newer = {old for fact in caller.facts if fact.turn in question.turns for old in fact.replaces}
        left = [fact.id for fact in facts if fact.id in gone - newer]
        if left and not _PAST & set(words(question.text.replace("'d ", " would "))):
            yield f"{caller.id}.txt:{question.line}: {', '.join(left)}: {question.text} => {question.answer}"


def _facts_meant(caller: Caller, question: Question) -> list[Fact]:
    if question.facts or question.unlabelled:
        return [caller.fact[name] for name in question.facts]
    return [fact for fact in caller.facts if fact.turn in question.turns]


def _replaced(caller: Caller, at_call: int) -> set[str]:
    """Facts that newer ones replaced in calls before `at_call`."""
    return {old for new in caller.facts if caller.turns[new.turn].call < at_call for old in new.replaces}


def _before(caller: Caller, question: Question) -> list[Forget]:
    return [forget for forget in caller.forgets if forget.call < question.at_call]


def _lost(caller: Caller, forget: Forget, question: Question) -> list[str]:
    """What `question` needs that `forget` reaches."""
    if question.unlabelled and EVERYTHING not in forget.reaches:
        return [
            name for name in forget.reaches if name not in caller.fact and _is_gold(caller, name, question)
        ]
    order = {name: at for at, name in enumerate(caller.turns)}
    if EVERYTHING in forget.reaches:
        kept = {turn for name in forget.keeps for turn in _turns_called(caller, name)}
        return [t for t in question.turns if order[t] < order[forget.turn] and t not in kept]
    if question.facts and not set(question.facts) & set(forget.reaches):
        named = {caller.fact[name].turn for name in question.facts}
        turns = [turn for turn in question.turns if turn not in named]
    else:
        turns = list(question.turns)
    return [name for name in forget.reaches if set(_turns_called(caller, name)) & set(turns)]


def _is_gold(caller: Caller, name: str, question: Question) -> bool:
    return bool(set(_turns_called(caller, name)) & set(question.turns))


def _sounds_wrong(caller: Caller, question: Question) -> bool:
    texts = [question.text, *(caller.turns[name].text for name in question.turns)]
    bare = [[word.removesuffix("'s") for word in words(text)] for text in texts]
    said = [f" {' '.join(each)} " for each in bare]
    forms = [" ".join(words(form)) for heard in caller.misheard.values() for form in heard]
    return any(f" {form} " in text for form in forms for text in said)


def _texts(caller: Caller) -> Iterator[tuple[int, str]]:
    said = " ".join(turn.text for turn in caller.turns.values())
    for name in caller.misheard:
        if name not in said:
            yield 1, f"'misheard' names {name!r}, which nobody says"
    speakers = {turn.speaker for turn in caller.turns.values()}
    for name in caller.voices.keys() - speakers:
        yield 1, f"the voice {name!r} never speaks"
    for call in caller.calls:
        if len(call.turns) < 6:
            yield call.line, f"call {call.number} has {len(call.turns)} turns: at least 6"
    long = [turn for turn in caller.turns.values() if len(words(turn.text)) > 90]
    yield from ((turn.line, "more than 90 words in one turn: nobody speaks so") for turn in long)


def _numbers(caller: Caller) -> Iterator[tuple[int, str]]:
    """Numbers that might be somebody's: cards that pass their check, telephones outside of fiction."""
    cards = [(t.line, run) for t in caller.traps if t.kind == "card" for run in runs(t.span.quote)]
    cards += [(turn.line, run) for turn in caller.turns.values() for run in runs(turn.text) if len(run) == 16]
    for line, number in cards:
        if is_card(number):
            yield line, f"the card {number} passes the check of card numbers: make it wrong"
    for fact in caller.facts:
        number = re.sub(r"\D", "", fact.value)
        if fact.slot == "phone" and is_telephone(number, caller.about["country"]):
            yield (
                fact.line,
                f"{fact.value!r} might be somebody's: take a range kept for fiction or a wrong length",
            )


def between(callers: Iterable[Caller], split: Mapping[str, str]) -> Iterator[Problem]:
    """What callers share that they must not."""
    callers = list(callers)
    for caller in callers:
        if split.get(caller.id) not in SHARES:
            yield Problem("splits.txt", 1, f"{caller.id} is in no split")
    holders: dict[tuple[str, str], set[str]] = defaultdict(set)
    lines: dict[tuple[str, str, str], int] = {}
    for caller in callers:
        for what, text, line in shareable(caller):
            holders[what, text].add(caller.id)
            lines.setdefault((what, text, caller.id), line)
    for (what, text), who in sorted(holders.items()):
        first = min(who)
        for other in sorted(who)[1:]:
            if what in _APART and split.get(other) == split.get(first):
                continue
            line = lines[what, text, other]
            yield Problem(
                f"{other}.txt", line, f"{what} {text!r} is also in {first}.txt:{lines[what, text, first]}"
            )


def shareable(caller: Caller) -> Iterator[tuple[str, str, int]]:
    """What no two callers may both have, or no two splits: what it is, the words, and the line."""
    for text, line in spoken(caller).values():
        yield from (("the sentence", sentence, line) for sentence in sentences(text))
    for name in (caller.about["name"], *caller.voices):
        yield "the person", name.lower(), 1
    for agent, (_, business) in caller.agents.items():
        yield "the agent", agent.lower(), 1
        yield "the business", " ".join(words(business)), 1
    for fact in caller.facts:
        if fact.slot in OWN_SLOTS:
            yield f"the {fact.slot}", " ".join(words(fact.value)), fact.line


def spoken(caller: Caller) -> dict[str, tuple[str, int]]:
    """All turns, questions and remarks by id, with their lines."""
    said: list[Turn | Question] = [*caller.turns.values(), *caller.questions]
    texts = {each.id: (each.text, each.line) for each in said}
    return texts | {f"{caller.id}/~{at}": (remark, 1) for at, remark in enumerate(caller.silence, 1)}


def near_duplicates(texts: Mapping[str, str], least: float = NEAR) -> Iterator[tuple[float, str, str]]:
    """Pairs of ids whose texts share at least `least` of the shorter one's 4-grams, most first."""
    made = {name: found for name, text in texts.items() if len(found := grams(text)) >= _NEAR_GRAMS}
    where: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, found in made.items():
        for gram in found:
            where[gram].append(name)
    shared = Counter(
        (one, other)
        for names in where.values()
        if len(names) < 50
        for at, one in enumerate(names)
        for other in names[at + 1 :]
    )
    pairs = [(n / min(len(made[a]), len(made[b])), a, b) for (a, b), n in shared.items()]
    yield from sorted((pair for pair in pairs if pair[0] >= least), reverse=True)


def foreign(callers: Iterable[Caller], folder: Path) -> Iterator[Problem]:
    """What occurs in another data set's JSON files as well: sentences, and 4-grams by the half text."""
    theirs, their_grams = contents(folder)
    for caller in callers:
        for text, line in spoken(caller).values():
            if shared := theirs.intersection(sentences(text)):
                yield Problem(f"{caller.id}.txt", line, f"{min(shared)!r} stands in {folder.name} too")
            found = grams(text)
            if len(found) >= _NEAR_GRAMS and len(found & their_grams) > NEAR * len(found):
                yield Problem(f"{caller.id}.txt", line, f"most of its 4-grams stand in {folder.name} too")


def contents(folder: Path) -> tuple[set[str], set[tuple[str, ...]]]:
    """The sentences and the 4-grams of all strings in a folder's JSON files."""
    found: tuple[set[str], set[tuple[str, ...]]] = (set(), set())
    for path in sorted(folder.rglob("*.json")):
        for text in _strings(json.loads(path.read_text("utf-8"))):
            found[0].update(sentences(text))
            found[1].update(grams(text))
    return found


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


__all__ = [
    "QUOTAS",
    "SHARES",
    "TARGETS",
    "between",
    "contents",
    "counts",
    "doubtful",
    "foreign",
    "near_duplicates",
    "of_caller",
    "shareable",
    "spoken",
    "stale",
]
