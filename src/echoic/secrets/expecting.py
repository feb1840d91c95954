"""What the next words of a conversation will be: what was asked for, announced or is being read out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from echoic.secrets.labels import LABELS, Secret, harmless
from echoic.secrets.masking import MARKER
from echoic.text import word_lists
from echoic.text.spoken import is_bare

_LISTS = word_lists("echoic.secrets")

CONTEXT = 10
"""Turns that are looked back at."""
OPEN: dict[str, Secret] = {
    "[card number]": "card",
    "[account number]": "account number",
    "[IBAN]": "account number",
    "[ID number]": "ID number",
    "[PIN]": "PIN",
    "[one-time code]": "one-time code",
    "[security code]": "security code",
    "[API key]": "API key",
}
"""What may go on in the next turn: a card that was said whole does not."""


@dataclass(frozen=True, slots=True)
class Said:
    """One turn, as it is kept."""

    speaker: str
    """"agent", or anybody else."""
    text: str


@dataclass(frozen=True, slots=True)
class Pending:
    """What the next number, or the next words, will be."""

    kind: Secret
    asked: bool
    """Whether it was asked for or announced; else only a bare number goes on with it."""
    others: frozenset[Secret] = frozenset()
    """What was asked for besides."""


_ASKS = re.compile(
    r"""\?|\b(?:what|what's|whats|can\s+(?:i|you)|could\s+(?:i|you)|may\s+i|please|need|tell|give|read|enter
    |say|provide|confirm|verify|and|with|next|ready|go\s+ahead|start(?:ing)?|i'll\s+take|let's|now|for\s+the
    |have\s+(?:the|your)|get\s+(?:the|your)|share|repeat|spell|key\s+in|type)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_REQUEST = re.compile(
    r"\b(?:reset|forg[eo]t|forgotten|chang(?:e|ing)|lost|never|don't\s+(?:tell|share|say|give|read|need)|do\s+not|"
    r"(?:we've|i've|i\s+have|we\s+have|i)\s+(?:just\s+)?(?:sent|emailed|texted|blocked)\s+you\s+a\s+(?:link|new)|"
    r"link|expired|wrong|incorrect|declined|accepted|working)\b",
    re.IGNORECASE,
)
_ASKED_ANSWER = re.compile(
    r"\bsecurity\s+question|\b(?:verify|verification|identity|security)\b.*\b(?:maiden|pet|school|teacher|street|"
    r"city|town|car|nickname|memorable)\b|\bmaiden\s+name\b|\bmemorable\b",
    re.IGNORECASE | re.DOTALL,
)
_ASKED_CODE = re.compile(
    r"\b(?:six|four|five|eight|6|4|5|8)[\s-]digits?(?:\s+\w+)?\s+(?:code|number)|\bcode\s+(?:\w+\s+){0,3}(?:sent|"
    r"texted|emailed|messaged|received|got)|\b(?:sent|texted|emailed|messaged|receive[d]?|got)\b.{0,40}\bcode\b|"
    r"\b(?:the|that|your|a)\s+code\b",
    re.IGNORECASE,
)
_ASKED_LONG = re.compile(
    r"\b(?:long\s+(?:card\s+)?number|(?:sixteen|16)\s+digits|digits\s+on\s+the\s+front)\b", re.IGNORECASE
)
_ASKED_BACK = re.compile(
    r"\b(?:(?:three|four|3|4|last)\s+(?:digits?|numbers?)|code|number|digits)\s+(?:\w+\s+){0,4}(?:on|at)\s+the\s+(?:back|reverse|front)",
    re.IGNORECASE,
)
OTHER_NUMBER = re.compile(
    r"""\b(?:order|book(?:ing|ed)|reservation|tracking|phone|mobile|cell|telephone|flight|invoice|case|ticket|reference
    |confirmation|zip|postal|post|area|promo|discount|coupon|voucher|customer|loyalty|member(?:ship)?|extension
    |house|street|room|table|policy|model|serial|how\s+many|what\s+time|what\s+date|date\s+of\s+birth|birthday
    |expir\w*|valid|amount|how\s+much|how\s+old|quantity|call\s+you|reach\s+you|callback|call\s+back)\b""",
    re.IGNORECASE | re.VERBOSE,
)
ENCOURAGES = frozenset(_LISTS["encourages"].split())
WAITS = frozenset(_LISTS["waits"].split())
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def words_of(text: str) -> list[str]:
    return [word[0].lower() for word in _WORD.finditer(text)]


def pending_after(before: Sequence[Said]) -> Pending | None:
    """What is being read out, or was asked for and not yet said."""
    asks = False
    for place, said in enumerate(reversed(before[-CONTEXT:])):
        if said.speaker == "agent":
            if (asked := asked_for(said.text)) is not None:
                return asked
            asks = asks or _asks_for_it(said.text)
            if not asks and not encourages(said.text):
                return None
            continue
        if asks:
            return _mentioned(said.text)
        told, over = _told(said.text, place)
        if over:
            return told
    return None


def _told(text: str, place: int) -> tuple[Pending | None, bool]:
    """What a turn of the caller's leaves open, and whether it decides: a pause does not."""
    marker = _last_marker(text)
    if marker is not None:
        kind = OPEN.get(marker)
        return (None if kind is None else Pending(kind, asked=False)), True
    if (announced := _dangling(text)) is not None:
        return Pending(announced, asked=place <= _SOON and _VERBS_AT_END.search(text) is not None), True
    return None, not is_bare(text) and not all(word in WAITS for word in words_of(text))


_SOON = 2
"""Turns after which an announcement is no longer answered by any words."""


def _asks_for_it(text: str) -> bool:
    """Whether an agent asks for what somebody else named: "Okay, what is it?"."""
    return "?" in text and len(words_of(text)) <= 8 and _REFERS.search(text) is not None


_KEEPING = re.compile(
    r"\b(?:remember|save|store|note|keep|give|update|set|add|write|take|tell|read|have)\b", re.IGNORECASE
)


def _mentioned(text: str) -> Pending | None:
    """What somebody wants to tell or have kept, and has not said."""
    if MARKER.search(text) or not _KEEPING.search(text):
        return None
    kinds = [
        label.kind
        for label in LABELS
        if any(not harmless(label, cue, text) for cue in label.cue.finditer(text))
    ]
    return Pending(kinds[0], asked=True, others=frozenset(kinds[1:])) if kinds else None


def asked_for(text: str) -> Pending | None:
    """What an agent asks for in `text`, where that is a secret."""
    if not _ASKS.search(text):
        return None
    text = MARKER.sub(" ", text)
    # the last sentence decides, or the one before it: "Thanks. And the PIN? Take your time."
    refers = False
    for sentence in reversed(re.split(r"(?<=[.?!])\s+", text.strip())[-3:]):
        if _NO_REQUEST.search(sentence) and not re.search(
            r"\b(?:old|current|new)\s+(?:pin|password)", sentence
        ):
            continue
        asked = list(_asked_in(sentence))
        if asked and (refers or _ASKS.search(sentence)):
            return Pending(asked[0], asked=True, others=frozenset(asked[1:]))
        if _ASKS.search(sentence) and _REFERS.search(sentence):
            refers = True
        elif "?" in sentence and not encourages(sentence):
            return None
    return None


_REFERS = re.compile(r"\b(?:it|that|this|them|those|these|one)\b", re.IGNORECASE)


def _asked_in(sentence: str) -> Iterator[Secret]:
    found: list[tuple[int, Secret]] = []
    for label in LABELS:
        for cue in label.cue.finditer(sentence):
            bare = (
                label.kind in {"card", "account number"}
                and "number" not in sentence
                and "detail" not in sentence
            )
            if not harmless(label, cue, sentence) and not bare:
                found.append((cue.start(), label.kind))
                break
    if (back := _ASKED_BACK.search(sentence)) is not None:
        found.append((back.start(), "security code"))
    if (long := _ASKED_LONG.search(sentence)) is not None:
        found.append((long.start(), "card"))
    if (answer := _ASKED_ANSWER.search(sentence)) is not None:
        found.append((answer.start(), "security answer"))
    if not found and not OTHER_NUMBER.search(sentence) and (code := _ASKED_CODE.search(sentence)) is not None:
        found.append((code.start(), "one-time code"))
    yield from (kind for _, kind in sorted(found, key=lambda each: each[0]))


def encourages(text: str) -> bool:
    """Whether an agent's words only keep somebody going, or read back what was said."""
    words = words_of(MARKER.sub(" ", text))
    return len(words) <= 12 and all(word in ENCOURAGES or is_bare(word) for word in words)


def _last_marker(text: str) -> str | None:
    """The marker at the end of a turn, behind which only little is said."""
    markers = list(MARKER.finditer(text))
    if not markers:
        return None
    last = markers[-1]
    behind = words_of(text[last.end() :])
    return last[0] if len(behind) <= 4 and not any(word in {"thanks", "bye"} for word in behind) else None


_DANGLES = re.compile(
    r"(?:\s*(?:numbers?|code))?(?:\s+(?:for|to|of|on|at|that|you|i)\b(?:\s+[\w'-]+){0,6}?)?"
    r"(?:\s*(?:\bis|\bwas|'s|:|\bit's|\bare)(?:\s*(?:um|uh|er|hmm|like|let me see|it's|okay|so))*"
    r"|,?\s*(?:um|uh|it's))?[\s.,:?\u2026-]*$",
    re.IGNORECASE,
)
_STARTS = re.compile(r"\b(?:my|the|that|your|our|here's|here\s+is|and|remember)\b", re.IGNORECASE)
_VERBS_AT_END = re.compile(r"(?:\bis|\bwas|'s|:|\bare|\bum|\buh|\bit's|\bsee)[\s.,:\u2026-]*$", re.IGNORECASE)


def _dangling(text: str) -> Secret | None:
    """What is announced at the end of `text` and not said yet: "my card number is"."""
    if not _VERBS_AT_END.search(text) and len(words_of(text)) > 5:
        return None
    if text.rstrip().endswith("?") or not (_VERBS_AT_END.search(text) or _STARTS.search(text)):
        return None
    if re.search(
        r"\b(?:what|where|how|forgot|forget|don't|lost|need|change|reset|want)\b", text, re.IGNORECASE
    ):
        return None
    for label in LABELS:
        for cue in label.cue.finditer(text):
            if not harmless(label, cue, text) and _DANGLES.match(text, cue.end()):
                return label.kind
    if re.search(r"\b(?:my|the|that)\s+code\b(?:\s+is)?[\s.,:]*$", text, re.IGNORECASE):
        return "one-time code"
    return None
