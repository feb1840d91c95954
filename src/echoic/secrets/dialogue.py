"""Secrets that only a conversation gives away: the answer to "And the PIN?", a card read out over four turns,
what the agent reads back.

A turn is masked in the light of the few before it, as they were kept. So nothing has to be held back, and a
process that knows nothing of the call reads the same: a marker at the end of a turn says what is being read
out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from echoic.secrets import values
from echoic.secrets.expecting import (
    CONTEXT,
    ENCOURAGES,
    OPEN,
    OTHER_NUMBER,
    WAITS,
    Pending,
    Said,
    encourages,
    pending_after,
    words_of,
)
from echoic.secrets.forms import is_card
from echoic.secrets.labels import WORDED, Secret
from echoic.secrets.masking import (
    MARKER,
    Known,
    Masked,
    SecretSpan,
    apply,
    blanked,
    mask,
    merged,
    replaced,
)
from echoic.secrets.topics import DECLINES, REGRETS, hidden, is_scaled, mixed, names, near, read_out, topics
from echoic.text import word_lists
from echoic.text.spoken import is_bare, runs, views_of
from echoic.text.views import View
from echoic.words import STOP

_LISTS = word_lists("echoic.secrets")


@dataclass(frozen=True, slots=True)
class InTurn:
    """A turn that was masked, and what it says of earlier ones."""

    masked: Masked
    earlier: dict[int, Masked]
    """By place in the context: turns that turn out to hold a part of a secret."""


def mask_turn(said: Said, before: Sequence[Said], *, known: Iterable[Known] = ()) -> InTurn:
    """`said` without its secrets.

    Args:
        said: the turn.
        before: the turns before it, oldest first, as they are kept.
        known: secrets masked before in this process: wherever they are repeated they are masked again.
    """
    known = tuple(known)
    by_itself = mask(said.text, known=known)
    rest = _together(by_itself, apply(by_itself.text, lambda text: _expected(text, said, before)))
    if said.speaker == "agent" and before and before[-1].speaker != "agent" and DECLINES.search(said.text):
        told = _regretted(before[-1].text, before[:-1])
        if told.found:
            return InTurn(rest, {len(before) - 1: told})
    if rest.found:
        return InTurn(rest, {})
    return _over_turns(said, before) or InTurn(rest, {})


def leans_on_context(said: Said) -> bool:
    """Whether what was said before can change what `said` means: it is short, or holds a number."""
    return any((len(said.text) <= 160, _NUMBERED.search(said.text), DECLINES.search(said.text)))


_NUMBERED = re.compile(
    r"[0-9]|\b(?:zero|oh|one|two|three|four|five|six|seven|eight|nine|ten|double|triple)\b", re.IGNORECASE
)


def _together(first: Masked, second: Masked) -> Masked:
    """Both, of one text; `second` was found in what `first` left."""
    if not second.found:
        return first
    if not first.found:
        return second
    return Masked(second.text, (*first.found, *second.found))


# -- what was expected

_LEAD = re.compile(
    r"""(?:\s*(?:um+|uh+|er+m?|hmm|yeah|yes|yep|sure|okay|ok|of\s+course|so|well|right|it's|its|it\s+is|that's|thats
    |that\s+is|it\s+would\s+be|that\s+would\s+be|should\s+be|it\s+should\s+be|i\s+think(?:\s+it's)?|i\s+believe(?:\s+it's)?
    |let\s+me\s+see|hang\s+on|here\s+you\s+go|here\s+it\s+is|the\s+password\s+is|the\s+answer\s+is|my\s+password\s+is
    |oh|ah|alright|one\s+second|one\s+sec|her\s+maiden\s+name\s+(?:is|was)|her\s+name\s+(?:is|was)|she\s+was|it\s+was
    |he\s+was(?:\s+called)?|called|no\s+problem|absolutely|certainly|the\s+name\s+(?:is|was))\b[\s,.:;-]*)*""",
    re.IGNORECASE | re.VERBOSE,
)
_ANSWERS = re.compile(r"\b(?:answer|word)(?:'s|\s+is|\s+was)\s+", re.IGNORECASE)
_REFUSES = frozenset(_LISTS["refuses"].split())


def _expected(text: str, said: Said, before: Sequence[Said]) -> list[SecretSpan]:
    """What is a secret in `text` because of what was said before it."""
    pending = pending_after(before)
    if said.speaker == "agent":
        found = _read_back(text, before) if _was_told(before) else []
        if pending is not None and (encourages(text) or is_bare(text)):
            found = [*found, *_numbers(text, pending.kind, least=3)]
        return merged(found)
    found = [] if pending is None else _answered(text, pending)
    if REGRETS.search(text):
        found += _regretted(text, before).found
    return merged([*found, *_named(text, before)])


_READING = re.compile(r"\b(?:reading|mileage|miles|bill|total|unit)\b", re.IGNORECASE)


def _named(text: str, before: Sequence[Said]) -> Iterator[SecretSpan]:
    """What is read out in answer to an agent that named a secret, whether or not it asked for it."""
    if not before or before[-1].speaker != "agent":
        return
    asked = before[-1].text
    yield from (SecretSpan("hidden key", *span, text[slice(*span)]) for span in hidden(text, asked))
    named = topics(blanked(asked))
    if not named and len(before) > 1 and (encourages(asked) or ("?" in asked and len(words_of(asked)) <= 8)):
        named = topics(blanked(before[-2].text))
    if any(topic.kind == "password" for topic in named):
        yield from (SecretSpan("password", *span, text[slice(*span)]) for span in mixed(text))
    sent = any(topic.kind == "one-time code" for topic in named)  # "I've sent a text to your phone"
    if not sent and (OTHER_NUMBER.search(asked) or _READING.search(asked)):
        return
    for view in views_of(text) if named else ():
        for kind, start, end in near(view, text, named):
            yield _found(view, kind, start, end)


def _regretted(text: str, before: Sequence[Said]) -> Masked:
    """`text` without what is read out in it: who said it, or heard it, says that it should not be kept."""

    def look(part: str) -> list[SecretSpan]:
        found = [_found(view, *each) for view in views_of(part) for each in read_out(view, part)]
        kinds = {topic.kind for one in (*before[-1:], Said("", part)) for topic in topics(blanked(one.text))}
        if "password" in kinds:
            found += [SecretSpan("password", *span, part[slice(*span)]) for span in mixed(part)]
        if "security answer" in kinds:
            found += [SecretSpan("security answer", *span, part[slice(*span)]) for span in names(part)]
        return found

    return apply(text, look)


def _answered(text: str, pending: Pending) -> list[SecretSpan]:
    """What is said in answer, or goes on with what was being said."""
    wanted = {pending.kind, *pending.others}
    bare = is_bare(text)
    found: list[SecretSpan] = []
    numeric = pending.kind if pending.kind not in WORDED else next(iter(wanted - WORDED), pending.kind)
    if pending.asked or bare:
        found += _numbers(text, numeric, least=1 if bare else _LEAST[numeric])
        if numeric in {"API key", "ID number", "one-time code", "account number"} and not found:
            found += _coded(text, numeric)
    worded = next((kind for kind in (pending.kind, *sorted(pending.others)) if kind in WORDED), None)
    if pending.asked and worded is not None:
        found += _words_given(text, worded)
    return merged(found)


_LEAST: dict[Secret, int] = {
    "card": 3,
    "security code": 3,
    "PIN": 3,
    "password": 3,
    "security answer": 4,
    "recovery phrase": 4,
    "one-time code": 3,
    "API key": 4,
    "account number": 3,
    "ID number": 3,
}
_NOT_THIS = re.compile(
    r"\b(?:in|since|until|till|by|around|about|only|every|after|before|room|order|flight|year|born|call|phone|extension|"
    r"ending|ends|expir\w*|valid|zip|code\s+is\s+promo)\s+(?:(?:number|is|in|on|with|date|at|of)\s+)*$",
    re.IGNORECASE,
)


def _numbers(text: str, kind: Secret, *, least: int) -> Iterator[SecretSpan]:
    """The numbers of a text that may be `secret`."""
    for view in views_of(text):
        for digits, start, end in runs(view):
            if (
                len(digits) < least
                or values.is_amount(view.text, start)
                or values.UNITS.match(view.text, end)
            ):
                continue
            if _NOT_THIS.search(view.text, max(0, start - 40), start):
                continue
            yield _found(view, kind, start, end)


def _found(view: View, kind: Secret, start: int, end: int) -> SecretSpan:
    return SecretSpan(kind, *view.origin(start, end), view.text[start:end])


def _coded(text: str, kind: Secret) -> Iterator[SecretSpan]:
    """Letters and digits, spelled or written."""
    for view in views_of(text):
        start = _lead_of(view.text)
        span = values.token(view.text, start) if kind == "API key" else values.document(view.text, start, 2)
        if span is not None:
            yield _found(view, kind, *span)


def _lead_of(text: str) -> int:
    found = _LEAD.match(text)
    return found.end() if found else 0


def _words_given(text: str, kind: Secret) -> Iterator[SecretSpan]:
    """The whole of a short answer, where it is no refusal and no question."""
    said = _ANSWERS.search(text)
    start = said.end() if said else _lead_of(text)
    rest = text[start:].strip()
    quoted = values.quoted(text, start) or values.no_word(text, start)
    if quoted is not None:
        yield SecretSpan(kind, *quoted, text[slice(*quoted)])
    words = words_of(rest)
    most = 24 if kind == "recovery phrase" else 8
    if not words or len(words) > most + 12 or "]" in rest or rest.endswith("?"):
        return
    if _REFUSES & set(words[:6]) or (len(words) == 1 and words[0] in STOP | ENCOURAGES | WAITS):
        return
    span = values.phrase(text, start, most=most, strict=kind == "password" and len(words) < 3)
    if span is not None and not all(word in ENCOURAGES | WAITS for word in words):
        value = text[slice(*span)]
        for again in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE):
            yield SecretSpan(kind, *again.span(), value)


# -- what the agent reads back

_READS = re.compile(
    r"(?:^|\b(?:that's|that\s+is|have|got|heard|confirm|repeat|read|say|said|so|okay|ok|right|correct|is|was|note|noted)\b|[,.:;-])\s*(?:that|as|it|you|the|:|,|\s)*$",
    re.IGNORECASE,
)


def _was_told(before: Sequence[Said]) -> bool:
    told = [said for said in before[-3:] if said.speaker != "agent"]
    return bool(told) and MARKER.search(told[-1].text) is not None


def _read_back(text: str, before: Sequence[Said]) -> list[SecretSpan]:
    told = next(said.text for said in reversed(before) if said.speaker != "agent")
    marker = [found[0] for found in MARKER.finditer(told)][-1]
    kind = OPEN.get(marker) or ("card" if marker.startswith("[card") else None)
    if kind is None or OTHER_NUMBER.search(text):
        return []
    found = [
        each
        for each in _numbers(text, kind, least=3)
        if not is_scaled(text[each.start : each.end])
        and _READS.search(text, max(0, each.start - 24), each.start)
        and re.search(
            r"\b(?:end(?:s|ing)|last\s+four)\b", text[max(0, each.start - 30) : each.start], re.IGNORECASE
        )
        is None
    ]
    return merged(found)


# -- what nobody announced: a card in pieces


def _over_turns(said: Said, before: Sequence[Said]) -> InTurn | None:
    """A card that its check digits give away only once its last piece is said."""
    if said.speaker == "agent" or not is_bare(said.text):
        return None
    pieces: list[tuple[int, Said]] = []
    for place in range(len(before) - 1, max(-1, len(before) - 1 - CONTEXT), -1):
        one = before[place]
        if one.speaker == "agent":
            if not encourages(one.text):
                break
            if not is_bare(one.text):
                continue
        elif not is_bare(one.text):
            break
        pieces.insert(0, (place, one))
    own = [(place, one) for place, one in pieces if one.speaker != "agent"]
    for first in range(len(own)):
        digits = "".join(_digits(one.text) for _, one in own[first:]) + _digits(said.text)
        if is_card(digits):
            since = own[first][0]
            earlier = {place: _all_numbers(one.text) for place, one in pieces if place >= since}
            return InTurn(_all_numbers(said.text), earlier)
    return None


def _digits(text: str) -> str:
    view = views_of(blanked(text))[-1]
    return "".join(digits for digits, _, _ in runs(view))


def _all_numbers(text: str) -> Masked:
    found = merged(_numbers(text, "card", least=1))
    return Masked(replaced(text, found), tuple(found))


__all__ = ["CONTEXT", "InTurn", "Said", "leans_on_context", "mask_turn"]
