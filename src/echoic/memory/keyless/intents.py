"""What a user wants with what they say, as far as a few rules can tell. Pure; knows no memory.

An utterance may do several things at once ("I'm Pavel, where do I live?"); what is learned from it is not
decided here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from echoic.english.names import stated
from echoic.english.sentences import Sentence, sentences

_POLITE: Final = r"(?:(?:please|ok|okay|well|so|and|hey|now|can you|could you|would you|i want you to) )*"
_ERASE: Final = re.compile(
    rf"^{_POLITE}(?:forget|delete|erase|wipe|remove) "
    r"(?:me$|me (?:please|completely|entirely)|all (?:of )?(?:my|the) (?:data|memories|information)"
    r"|(?:absolutely )?everything(?: (?:that )?(?:you|i) (?:know|have|said|told you|remember|keep))?"
    r"(?: (?:about|of) me)?(?: please)?$"
    r"|all (?:you know|about me)|my (?:data|memory|memories)$)"
)
_FORGET: Final = re.compile(
    rf"^{_POLITE}(?:forget|delete|erase|remove) (?!it$|about it$|that$)(?:about |that )?(?P<what>.+)"
)
# The whole of it, for it may end a memory: "ok, I live in Rome" confirms nothing, "forget it" even less.
_YES: Final = re.compile(
    r"(?:(?:yes|yeah|yep|sure|ok|okay|please|do it|do that|go ahead|absolutely|confirm|you shall"
    r"|(?:erase|delete) it(?: all)?|(?:erase|delete|forget) everything(?: about me)?) ?)+"
)
_NO: Final = re.compile(
    r"^(?:no|nope|don't|do not|stop|cancel|never mind|keep|forget (?:it|about it|that)$)\b"
)
_GREETING: Final = re.compile(
    r"^(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening))(?: there| again| echoic)?$"
)
_THANKS: Final = re.compile(r"^(?:ok |okay |great |perfect )?(?:thanks|thank you|cheers)\b.{0,30}$")
_GOODBYE: Final = re.compile(
    r"^(?:ok |okay )?(?:bye|goodbye|good night|see you|talk (?:to you )?(?:later|soon)).{0,30}$"
)
_WHO_ARE_YOU: Final = re.compile(
    r"^(?:who|what) are you$|^are you (?:a |an )?(?:robot|bot|human|real|ai|person|machine)"
    r"|^(?:help|what can you do)$"
)
_ASKS: Final = re.compile(
    r"^(?:(?:and|so|but|well|ok|okay|please|hey|sorry|now) )*"
    r"(?:what|where|when|who|whom|whose|which|how|why|do|does|did|am|is|are|was|were|have|has|can|could|will"
    r"|would|should|what's|where's|who's|when's|how's|tell me|remind me|any)\b"
)
# "Do you remember that …", "could you call me …": asked, but told.
_TELLS: Final = re.compile(r"^(?:can|could|would|will) you (?:please )?(?:remember|note|call|keep|write)\b")
# What a business says of itself. "Our daughter", "our flight" are somebody's own.
_THINGS: Final = (
    r"(?:[^\W\d]+ ){0,3}?(?:hours|policy|policies|prices?|rates?|fees?|menu|special|password|website|warranty"
    r"|delivery|shipping|returns|refunds|parking|check-?in|check-?out|deadline|minimum|capacity|slogan|motto)"
)
_OURS: Final = (
    (re.compile(r"^(?:we are|we're|we stay) open (?P<value>.+)$", re.IGNORECASE), "opening hours"),
    (re.compile(r"^the (?P<key>(?:opening|business|office) hours) are (?P<value>.+)$", re.IGNORECASE), ""),
    (re.compile(r"^we (?P<key>open|close) (?:at|on) (?P<value>.+)$", re.IGNORECASE), ""),
    (re.compile(rf"^our (?P<key>{_THINGS}) (?:is|are) (?P<value>.+)$", re.IGNORECASE), ""),
)
_TIMES: Final = {"open": "opening time", "close": "closing time"}
_LEADING: Final = re.compile(r"^(?:(?:so|and|well|also|ok|okay|by the way|actually|oh),? )+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What an utterance wants."""

    question: str | None = None
    """The sentence that asks something, as said."""
    forget: str | None = None
    """What is to be forgotten, as said; None if nothing is."""
    ours: tuple[tuple[str, str], ...] = ()
    """Keys and values the speaker gave for all: "we're open nine to five"."""
    erase: bool = False
    """Everything is to be forgotten."""
    yes: bool = False
    no: bool = False
    name: str | None = None
    """A name and nothing else: what one says when asked for it. By itself it means nothing."""
    courtesy: str | None = None
    """"greeting", "thanks", "goodbye" or "who are you": nothing else was said."""


def intent_of(text: str) -> Intent:
    """What `text` wants."""
    said = sentences(text)
    lines = [sentence.line.strip() for sentence in said]
    whole = " ".join(lines)
    return Intent(
        question=next(
            (f"{_as_said(s)}?" for s, line in zip(said, lines, strict=True) if _asks(s, line)), None
        ),
        forget=next((found["what"] for line in lines if (found := _FORGET.match(line))), None),
        ours=tuple(pair for sentence in said if (pair := _ours(sentence))),
        erase=any(_ERASE.match(line) for line in lines),
        yes=bool(_YES.fullmatch(whole)),
        no=bool(_NO.match(whole)),
        name=_name(said),
        courtesy=_courtesy(whole),
    )


def _asks(sentence: Sentence, line: str) -> bool:
    if _FORGET.match(line) or _TELLS.match(line):
        return False
    return sentence.question or bool(_ASKS.match(line))


def _ours(sentence: Sentence) -> tuple[str, str] | None:
    if sentence.question:
        return None
    text = _LEADING.sub("", _as_said(sentence))
    for pattern, key in _OURS:
        found = pattern.match(text)
        if found:
            named = key or found["key"].lower()
            return _TIMES.get(named, named), found["value"].strip()
    return None


def _name(said: list[Sentence]) -> str | None:
    if len(said) != 1 or said[0].question:
        return None
    found = stated(said[0], 0)
    return found.text if found and found.end == len(said[0]) else None


def _courtesy(whole: str) -> str | None:
    kinds = {"greeting": _GREETING, "thanks": _THANKS, "goodbye": _GOODBYE, "who are you": _WHO_ARE_YOU}
    return next((kind for kind, pattern in kinds.items() if pattern.match(whole)), None)


def _as_said(sentence: Sentence) -> str:
    return sentence.text(0, len(sentence))
