"""Read a caller's file: a script format that people write by hand. GUIDE.md describes it.

Reading is strict and does not stop at the first mistake: every problem is returned with its line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from echoic_corpus.model import (
    EVERYTHING,
    Call,
    Caller,
    Consent,
    Fact,
    Forget,
    Question,
    Span,
    Trap,
    Turn,
)

DATA = next(
    (
        folder
        for folder in (Path(__file__).parent / "data", Path(__file__).parents[2] / "data")
        if folder.is_dir()
    ),
    Path("data"),
)
DOMAINS = frozenset(
    "clinic bank restaurant garage travel shop tutor companion home gym insurance concierge".split()
)
CATEGORIES = frozenset("preference entity decision requirement fact".split())
SLOTS = frozenset(
    "name age birthday home address origin phone email language family partner child parent sibling friend"
    " pet employer occupation workplace income education medication condition allergy diet dislike likes"
    " favourite accessibility equipment vehicle plan account contact_time contact_channel appointment order"
    " booking interest habit goal budget size decision requirement delivery travel possession skill"
    " experience date doctor teacher".split()
)
REASONS = frozenset(
    "question hypothetical negation joke quotation third song agent unheard transient wish retracted".split()
)
SECRETS = frozenset("pin password card cvv otp bank national_id security_answer door_code key".split())
ANSWERED = frozenset("single list multi time current former condition misheard speaker promise".split())
UNANSWERED = frozenset("never other forgotten unheard secret".split())
ACTS = frozenset("grant refuse withdraw".split())
CONSENTS = frozenset("keep record share contact".split())
ABOUT = ("name", "age", "country", "zone", "languages", "speech", "occupation", "reasons")
SELF = "self"
"""As gold: the turn above, and none of its facts."""
CUT = "//"
"""In an agent's turn: what follows was not heard."""

_APOSTROPHES = str.maketrans("’‘", "''")
"""However they are typed, they are read as one, so that quotes are found."""
_CALL = re.compile(r"==\s*(\d+)\s*\|(.+)")
_TURN = re.compile(r"([A-Z][A-Z0-9]?):\s+(\S.*?)(?:\s+#([a-z][a-z0-9_]*))?")
_QUESTION = re.compile(r"\?(-)?\s+([a-z]+)\s+(?:@(\d+)\s+)?(.+)")
_ID = re.compile(r"[a-z][a-z0-9_]*")
_WHEN = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_QUOTES = re.compile(r'"([^"]+)"')


class Problem(NamedTuple):
    """A mistake in a file, and where."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        """As compilers write it."""
        return f"{self.file}:{self.line}: {self.text}"


class _WrongError(Exception):
    """A line cannot be read; the message says why."""


@dataclass
class _Draft:
    """What has been read so far."""

    stem: str
    header: dict[str, str] = field(default_factory=dict)
    agents: dict[str, tuple[str, str]] = field(default_factory=dict)
    voices: dict[str, tuple[str, str]] = field(default_factory=dict)
    misheard: dict[str, tuple[str, ...]] = field(default_factory=dict)
    calls: list[dict[str, Any]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    traps: list[Trap] = field(default_factory=list)
    forgets: list[Forget] = field(default_factory=list)
    consents: list[Consent] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)
    silence: list[str] = field(default_factory=list)
    part: str = "header"


def read(path: Path) -> tuple[Caller, list[Problem]]:
    """The caller of `path`, and every line of it that is wrong. What is wrong is left out of the caller."""
    draft, problems = _Draft(path.stem), list[Problem]()
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        text = line.strip().translate(_APOSTROPHES)
        if not text or text.startswith(";"):
            continue
        try:
            _take(draft, text, number)
        except _WrongError as wrong:
            problems.append(Problem(path.name, number, str(wrong)))
    caller, unresolved = _finish(draft)
    wrong_header = [f"the header has no {key!r}" for key in ("caller", *ABOUT) if key not in draft.header]
    if draft.header.get("caller", path.stem) != path.stem:
        wrong_header.append(f"the file is named {path.stem!r}, its caller {draft.header['caller']!r}")
    if not draft.calls:
        wrong_header.append("there are no calls")
    problems += [Problem(path.name, 1, text) for text in wrong_header]
    problems += [Problem(path.name, line, text) for line, text in unresolved]
    return caller, sorted(problems, key=lambda problem: problem.line)


def read_all(data: Path = DATA) -> tuple[list[Caller], list[Problem]]:
    """Every caller under `data`, and every problem."""
    callers, problems = list[Caller](), list[Problem]()
    for path in sorted((data / "callers").glob("c*.txt")):
        caller, wrong = read(path)
        callers.append(caller)
        problems += wrong
    return callers, problems


def splits(data: Path = DATA) -> dict[str, str]:
    """Caller's id -> `train`, `dev` or `test`."""
    lines = (data / "splits.txt").read_text("utf-8").splitlines()
    named = [line.partition(":") for line in lines if line.strip() and not line.startswith(";")]
    return {caller: split.strip() for split, _, callers in named for caller in callers.split()}


def _take(draft: _Draft, text: str, number: int) -> None:
    if text.startswith("=="):
        _section(draft, text, number)
    elif draft.part == "header":
        _header(draft, text)
    elif turn := _TURN.fullmatch(text):
        _turn(draft, turn, number)
    elif text[0] == "?":
        _question(draft, text, number)
    elif text.startswith("~ "):
        draft.silence.append(text[2:].strip())
    elif reader := _LABELS.get(text[:2]):
        if draft.part != "call" or not draft.calls[-1]["turns"]:
            raise _WrongError("a label stands under the turn it is about")
        reader(draft, draft.turns[-1], [part.strip() for part in text[2:].split("|")], number)
    else:
        raise _WrongError(
            "not a turn ('C: …'), a label ('+ ', '! ', '$ ', '- ', '& '), a question ('? ', '?- ') or '~ '"
        )


def _header(draft: _Draft, text: str) -> None:
    key, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not value:
        raise _WrongError("the header has lines of 'key: value' until the first '== 1 | …'")
    if key not in {"agent", "voice", "misheard"}:
        if key not in {"caller", *ABOUT} or key in draft.header:
            raise _WrongError(f"{key!r} is unknown or stands twice")
        if key == "zone":
            _zone(value)
        draft.header[key] = value
        return
    name, equals, rest = (part.strip() for part in value.partition("="))
    first, _, second = (part.strip() for part in rest.partition(","))
    if not equals or not first:
        raise _WrongError(f"{key} is written '{key}: … = …'")
    if key == "misheard":
        draft.misheard[name] = tuple(each.strip() for each in rest.split(",") if each.strip())
    elif not second:
        raise _WrongError("agent: Name = domain, business; voice: T = Name, who that is")
    elif key == "agent":
        draft.agents[name] = (_one_of("domain", first, DOMAINS), second)
    elif name in {"A", "B", "C"} or not re.fullmatch("[A-Z][A-Z0-9]?", name):
        raise _WrongError("a voice is one capital letter (not A, B or C), with a digit at most")
    else:
        draft.voices[name] = (first, second)


def _section(draft: _Draft, text: str, number: int) -> None:
    if text.removeprefix("==").strip() == "questions":
        draft.part = "questions"
        return
    found = _CALL.fullmatch(text)
    parts = [part.strip() for part in found[2].split("|")] if found else []
    if not found or len(parts) not in {2, 3}:
        raise _WrongError(
            "a call is '== 3 | 2025-03-04 09:12 | Agent' and may end '| zone Area/City'; then '== questions'"
        )
    draft.part = "call"
    zone = parts[2].removeprefix("zone").strip() if len(parts) == 3 else draft.header.get("zone", "UTC")
    try:
        at = datetime.strptime(parts[0], "%Y-%m-%d %H:%M").replace(tzinfo=_zone(zone))
    except ValueError as error:
        raise _WrongError(f"{parts[0]!r} is not a time such as 2025-03-04 09:12") from error
    agents = tuple(name.strip() for name in parts[1].split(","))
    call: dict[str, Any] = {"at": at, "zone": zone, "agents": agents, "turns": [], "line": number}
    draft.calls.append(call)
    if int(found[1]) != len(draft.calls):
        raise _WrongError(f"this is call {len(draft.calls)}, not {found[1]}")
    if len(draft.calls) > 1 and draft.calls[-2]["at"] >= at:
        raise _WrongError("calls stand in the order of their dates")
    for name in agents:
        _one_of("agent", name, frozenset(draft.agents))


def _turn(draft: _Draft, found: re.Match[str], number: int) -> None:
    code, text, name = found.groups()
    if draft.part != "call":
        raise _WrongError("a turn stands in a call")
    if '"' in text or "|" in text:
        raise _WrongError("no straight double quotes or bars in a turn: they mark labels")
    call = draft.calls[-1]
    at = len(draft.calls)
    speaker, role = _speaker(draft, code, call["agents"])
    before, cut, after = (part.strip() for part in text.partition(CUT))
    if cut and (role != "agent" or not before or not after or CUT in after):
        raise _WrongError(f"{CUT!r} stands once inside of an agent's turn, where the caller cut in")
    turn = Turn(
        id=f"{draft.stem}/{at}.{len(call['turns']) + 1}",
        call=at,
        line=number,
        speaker=speaker,
        role=role,
        text=f"{before} {after}".strip(),
        heard=len(before) if cut else None,
        name=name,
    )
    call["turns"].append(turn)
    draft.turns.append(turn)


def _speaker(draft: _Draft, code: str, agents: tuple[str, ...]) -> tuple[str, str]:
    if code == "C":
        return draft.header.get("name", "?"), "caller"
    if code in "AB" and "AB".index(code) < len(agents):
        return agents["AB".index(code)], "agent"
    if code in draft.voices:
        return draft.voices[code][0], "other"
    raise _WrongError(f"nobody is declared as {code!r} ('voice: {code} = Name, who that is')")


def _fact(draft: _Draft, turn: Turn, parts: list[str], line: int) -> None:
    if len(parts) < 4:
        raise _WrongError("a fact is '+ id | category slot | value | \"words\" | if … | from … | until …'")
    if turn.role == "agent":
        raise _WrongError("what only the agent says is no fact: put it where the caller says or confirms it")
    category, _, slot = parts[1].partition(" ")
    fields: dict[str, str] = {}
    for part in parts[4:]:
        key, _, value = part.partition(" ")
        if key not in {"if", "from", "until", "replaces", "about", "also"} or not value or key in fields:
            raise _WrongError(f"{part!r} is none of: if …, from …, until …, replaces …, about …, also …")
        if key in {"from", "until"} and not _WHEN.fullmatch(value):
            raise _WrongError(f"{value!r} is not 2024, 2024-05 or 2024-05-17")
        fields[key] = value
    slot = slot.strip()
    fact = Fact(
        id=_an_id(parts[0]),
        turn=turn.id,
        line=line,
        category=_one_of("category", category, CATEGORIES),
        slot=None if slot in {"", "-"} else _one_of("slot ('-' where none fits)", slot, SLOTS),
        value=parts[2],
        spans=tuple(_span(turn, quote) for quote in _quotes(parts[3])),
        about=fields.get("about"),
        condition=fields.get("if"),
        since=fields.get("from"),
        until=fields.get("until"),
        replaces=_ids(fields.get("replaces", "")),
        also=_ids(fields.get("also", "")),
    )
    draft.facts.append(fact)


def _trap(draft: _Draft, turn: Turn, parts: list[str], line: int) -> None:
    reason, span = _worded(turn, parts, '! reason "words"')
    _one_of("reason", reason, REASONS)
    if (reason in {"agent", "unheard"}) != (turn.role == "agent"):
        raise _WrongError("'agent' and 'unheard' are the agent's words, and the agent's words are only these")
    unheard = turn.heard is not None and span.start >= turn.heard
    if (reason == "unheard") != unheard:
        raise _WrongError(f"what stands behind {CUT!r} is 'unheard', and nothing else is")
    draft.traps.append(Trap(turn=turn.id, line=line, reason=reason, span=span, kind=None))


def _secret(draft: _Draft, turn: Turn, parts: list[str], line: int) -> None:
    kind, span = _worded(turn, parts, '$ class "words"')
    _one_of("class of secret", kind, SECRETS)
    draft.traps.append(Trap(turn=turn.id, line=line, reason="secret", span=span, kind=kind))


def _forget(draft: _Draft, turn: Turn, parts: list[str], line: int) -> None:
    fields = dict(part.partition(" ")[::2] for part in parts[1:])
    if not fields.get("reaches") or not fields.keys() <= {"reaches", "keeps", "ambiguous"}:
        raise _WrongError("a forget request is '- \"words\" | reaches id, id | keeps id | ambiguous'")
    if turn.role == "agent":
        raise _WrongError("an agent asks nothing to be forgotten")
    forget = Forget(
        turn=turn.id,
        call=turn.call,
        line=line,
        span=_span(turn, _quotes(parts[0])[0]),
        reaches=_ids(fields["reaches"]),
        keeps=_ids(fields.get("keeps", "")),
        ambiguous="ambiguous" in fields,
    )
    draft.forgets.append(forget)


def _consent(draft: _Draft, turn: Turn, parts: list[str], line: int) -> None:
    acted, span = _worded(turn, parts, '& grant|refuse|withdraw keep|record|share|contact "words"')
    act, _, what = acted.partition(" ")
    _one_of("act", act, ACTS)
    _one_of("consent", what, CONSENTS)
    draft.consents.append(Consent(turn=turn.id, line=line, act=act, what=what, span=span))


_LABELS: dict[str, Callable[[_Draft, Turn, list[str], int], None]] = {
    "+ ": _fact,
    "! ": _trap,
    "$ ": _secret,
    "- ": _forget,
    "& ": _consent,
}


def _question(draft: _Draft, text: str, line: int) -> None:
    found = _QUESTION.fullmatch(text)
    if not found:
        raise _WrongError(
            "a question is '? kind @5 text => answer <- id, id' or '?- kind text <- id'; @ and <- may lack"
        )
    none, kind, at, rest = found.groups()
    rest, arrow, ids = (part.strip() for part in rest.partition("<-"))
    asked, gives, answer = (part.strip() for part in rest.partition("=>"))
    _one_of("kind of question", kind, UNANSWERED if none else ANSWERED)
    if bool(none) == bool(gives) or bool(gives) != bool(answer) or bool(arrow) != bool(ids):
        raise _WrongError("a question has '=> answer', one without an answer ('?-') has none; '<-' has ids")
    under = (draft.turns[-1].id,) if draft.part == "call" and draft.calls[-1]["turns"] else ()
    if kind == "never":
        under = ()
    fields = {"line": line, "kind": kind, "text": asked, "answer": answer or None}
    draft.questions.append({**fields, "at": int(at) if at else None, "under": under, "ids": _ids(ids)})


def _finish(draft: _Draft) -> tuple[Caller, list[tuple[int, str]]]:
    """Resolve ids, which may be named before they are given."""
    questions, wrong = _resolve(draft)
    calls = [
        Call(
            number=number,
            line=call["line"],
            at=call["at"],
            zone=call["zone"],
            domain=draft.agents.get(call["agents"][0], ("?", ""))[0],
            agents=call["agents"],
            turns=tuple(call["turns"]),
        )
        for number, call in enumerate(draft.calls, 1)
    ]
    caller = Caller(
        id=draft.stem,
        about={key: draft.header.get(key, "") for key in ABOUT},
        agents=draft.agents,
        voices=dict(draft.voices.values()),
        misheard=draft.misheard,
        calls=tuple(calls),
        facts=tuple(draft.facts),
        traps=tuple(draft.traps),
        forgets=tuple(draft.forgets),
        consents=tuple(draft.consents),
        questions=tuple(questions),
        silence=tuple(draft.silence),
    )
    return caller, wrong


def _resolve(draft: _Draft) -> tuple[list[Question], list[tuple[int, str]]]:
    """The questions with their gold, and every id that is given twice or to nothing."""
    wrong: list[tuple[int, str]] = []
    named = {turn.name: turn for turn in draft.turns if turn.name}
    fact = {fact.id: fact for fact in draft.facts}
    given = [(name, turn.line) for name, turn in named.items()] + [(f.id, f.line) for f in draft.facts]
    given += [(turn.name, turn.line) for turn in draft.turns if turn.name and named[turn.name] is not turn]
    times = Counter(name for name, _ in given)
    wrong += [
        (line, f"the id {n!r} is given twice") for n, line in given if times[n] > 1 or n in {EVERYTHING, SELF}
    ]

    def known(ids: tuple[str, ...], line: int, *among: Container[str]) -> tuple[str, ...]:
        good = tuple(name for name in ids if any(name in some for some in among))
        wrong.extend(
            (line, f"{name!r} is the id of nothing that fits here") for name in ids if name not in good
        )
        return good

    for each in draft.facts:
        known(each.replaces, each.line, fact)
        known(each.also, each.line, named)
    for forget in draft.forgets:
        known(forget.reaches + forget.keeps, forget.line, fact, named, {EVERYTHING})
    questions = list[Question]()
    for number, raw in enumerate(draft.questions, 1):
        ids = known(raw["ids"], raw["line"], fact, named, {SELF} if raw["under"] else ())
        facts = [fact[name] for name in ids if name in fact]
        also = [name for each in facts for name in each.also if name in named]
        # what is named is the gold, and all of it; the turn above only where nothing else is named
        turns = [*(raw["under"] if SELF in ids or not raw["ids"] else ()), *(each.turn for each in facts)]
        turns += [named[name].id for name in (*ids, *also) if name in named]
        question = Question(
            id=f"{draft.stem}/q{number}",
            line=raw["line"],
            kind=raw["kind"],
            text=raw["text"],
            answer=raw["answer"],
            at_call=raw["at"] or len(draft.calls) + 1,
            turns=tuple(dict.fromkeys(turns)),
            facts=tuple(each.id for each in facts),
            unlabelled=SELF in ids,
        )
        questions.append(question)
    return questions, wrong


def _span(turn: Turn, quote: str) -> Span:
    times = turn.text.count(quote)
    if times != 1:
        wrong = "does not occur" if not times else f"occurs {times} times (quote more of it)"
        raise _WrongError(f"{quote!r} {wrong} in the turn above")
    start = turn.text.index(quote)
    return Span(start=start, end=start + len(quote), quote=quote)


def _worded(turn: Turn, parts: list[str], form: str) -> tuple[str, Span]:
    found = re.fullmatch(r'([a-z_ ]+?)\s+"([^"]+)"', parts[0])
    if not found or len(parts) > 1:
        raise _WrongError(f"this label is {form!r}")
    return found[1], _span(turn, found[2])


def _quotes(text: str) -> list[str]:
    if not _QUOTES.search(text) or _QUOTES.sub("", text).strip():
        raise _WrongError(f'{text!r} should be the words of the turn, in "double quotes"')
    return _QUOTES.findall(text)


def _an_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise _WrongError(f"{text!r} is no id: small letters, digits and underscores")
    return text


def _ids(text: str) -> tuple[str, ...]:
    return tuple(_an_id(part.strip()) for part in text.split(",")) if text.strip() else ()


def _one_of(what: str, text: str, known: frozenset[str]) -> str:
    if text not in known:
        raise _WrongError(f"{text!r} is no {what}: use one of {', '.join(sorted(known))}")
    return text


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise _WrongError(f"{name!r} is no time zone such as Europe/Dublin") from error


__all__ = ["DATA", "Problem", "read", "read_all", "splits"]
