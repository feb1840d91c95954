"""What a user wants with what they say, and which slot a question is about. Pure rules.

An utterance may do several things at once ("I'm Pavel, where do I live?"). A question that fits no row of
the table is answered from what a search finds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from echoic.english.names import stated
from echoic.english.phrases import slug
from echoic.english.sentences import Sentence, sentences
from echoic.words import fold

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


_KIN: Final = (
    "wife|husband|partner|spouse|girlfriend|boyfriend|fiancee?|mother|mom|mum|mama|father|dad|papa|sister"
    "|brother|aunt|uncle|cousin|niece|nephew|grandmother|grandfather|grandma|granny|grandpa|best friend"
    "|friend|roommate|flatmate|boss|manager|neighbou?r|doctor|dentist|therapist|colleague|assistant|lawyer|accountant"
    "|landlord|teacher"
)
# As the keys have it.
_SAME_KIN: Final = {
    "mom": "mother",
    "mum": "mother",
    "mama": "mother",
    "dad": "father",
    "papa": "father",
    "grandma": "grandmother",
    "granny": "grandmother",
    "grandpa": "grandfather",
    "fiancee": "fiance",
    "neighbor": "neighbour",
}
_I: Final = r"(?:do|did|am|was|have|would) (?:i|we)"
_ROWS: Final = (
    (
        rf"\bmy ({_KIN})(?:'s)? (?:full )?name\b|\bmy ({_KIN})(?:'s)? called\b|\bwho is my ({_KIN})\b",
        "{}_name",
    ),
    (r"\bmy (?:\w+ )?(?:dog|cat|pet|puppy|kitten)s?\b|\bhave (?:a|any) (?:dog|cat|pet)s?\b", "pet:"),
    (r"\b(?:my|have (?:any|a)?) ?(?:kids?|child(?:ren)?|sons?|daughters?)\b", "child:"),
    (r"\bmy last name\b|\bmy surname\b", "last_name"),
    (
        r"\bmy (?:full |first )?name\b|\bwho (?:am i|i am)$|\bcall me\b|\bremember me\b|\bknow me\b",
        "user_name",
    ),
    (r"\bmy (?:home |street |postal )?address\b", "address"),
    (rf"\bwhere {_I} (?:\w+ )?(?:live|living|based|reside|stay)", "home"),
    (r"\bwhere i (?:\w+ )?live\b|\bi live (?:in|near)\b", "home"),
    (r"\bmy (?:home ?town|home|city)\b|\b(?:what|which) (?:city|town|country) (?:do|am) i\b", "home"),
    (r"\bwhere (?:was i|i was) born\b|\bmy birth ?place\b", "birthplace"),
    (r"\bmy birthday\b|\bwhen was i born\b", "birthday"),
    (r"\b(?:what|which) year was i born\b", "birth_year"),
    (r"\bwhere (?:did i|i) (?:grow|grew) up\b", "grew_up_in"),
    (rf"\bwhere (?:{_I} (?:come )?from|i (?:am|come) from)\b", "origin"),
    (rf"\bwhere {_I} work|\bwho {_I} work(?:ing)? for\b|\bwhere i work\b", "employer"),
    (r"\bmy (?:employer|company|workplace)\b", "employer"),
    (
        r"\bmy (?:job|occupation|profession|trade)\b|\bwhat do i do\b|\bdo i do for (?:a living|work)\b",
        "occupation",
    ),
    (r"\bhow old (?:am i|i am)\b|\bmy age\b", "age"),
    (r"\bmy e-?mail(?: address)?\b", "email"),
    (r"\bmy (?:\w+ )?(?:phone|telephone|mobile|cell)(?: number)?\b|\bmy number\b", "phone"),
    (r"\bmy time ?zone\b", "timezone"),
    (r"\bnot (?:be called|call me)\b|\bshouldn't you call\b", "no_contact_time"),
    (
        r"\bwhen (?:should|can|may) (?:you|we|i) (?:call|reach|ring)\b|\bbest time to (?:call|reach)\b",
        "contact_time",
    ),
    (r"\b(?:least|worst) favou?rite\b", "least_favourite:"),
    (r"\bmy favou?rite (\w+(?: \w+)?)$", "favourite:{}"),
    (r"\bmy favou?rites?\b", "favourite:"),
    (r"\ballerg(?:y|ies|ic)\b", "allergy:"),
    (r"\bmy diet\b|\bdietary\b|\bam i (?:a )?(?:vegan|vegetarian|pescatarian)\b", "diet:"),
    (r"\bwhat (?:don't i|do i not|can't i|should i not) eat\b|\bi (?:avoid|can't eat)\b", "avoids:"),
    (r"\bwhat(?: \w+){0,2} do i (?:like|love|enjoy|prefer|hate|dislike)$", "preference:"),
    (r"\bmy (?:preferences|tastes|hobbies|likes)\b", "preference:"),
    (r"\b(?:what|which|how many) languages?\b", "language:"),
    (r"\bwhat (?:did|have) i decided?\b|\bmy decisions?\b", "decision:"),
    (r"\bwhat do i need\b|\bmy (?:requirements|needs)\b", "requirement:"),
    (r"\bwhat did i (?:ask|tell) you to remember\b|\bmy (?:notes|reminders)\b", "note:"),
)
# Who a question is about if not the user; "my doctor" and "my dog" are somebody else as well.
_SOMEBODY: Final = rf"(?:{_KIN}|son|daughter|kid|child|parent|dog|cat|puppy|kitten)"
_OTHERS: Final = re.compile(rf"\b(?:my|our) (?:\w+ )?{_SOMEBODY}(?:'s|s'|s)?\b")
_ANYBODY: Final = re.compile(rf"\b({_SOMEBODY})(?:'s|s'|s)?\b")
_NESTED: Final = re.compile(rf"\bmy {_SOMEBODY}(?:'s|s'|s) {_SOMEBODY}\b")
"""Somebody of somebody's: no slot holds them."""
_OF_OTHERS: Final = frozenset(["{}_name", "pet:", "child:"])
_ABOUT_ME: Final = re.compile(
    r"\b(?:what|everything|anything|all) (?:do |that |else )*(?:you|i) (?:know|remember|have|told|tell"
    r"|store|keep)(?: you)?(?: (?:about|of) me| stored| kept)?$"
    r"|\b(?:tell me|what) about (?:me|myself)$|\bwhat have i told you\b"
    r"|\bknow (?:anything|something|everything) about me\b"
)
_BEFORE: Final = re.compile(
    r"\b(?:before|previously|formerly|use(?:d)? to|earlier|in the past)\b|\bmy (?:old|former|previous)\b"
)
_EXPANDED: Final = (
    ("what's", "what is"),
    ("where's", "where is"),
    ("who's", "who is"),
    ("when's", "when is"),
    ("i'm", "i am"),
)
_PATTERNS: Final = tuple((re.compile(pattern), key) for pattern, key in _ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSubject:
    """What a question is about."""

    key: str | None = None
    """A slot's key, or with ":" at its end the beginning of several; None where no row fits."""
    everything: bool = False
    """All that is known is asked for."""
    before: bool = False
    """What held before is asked for, not what holds."""
    others: frozenset[str] = frozenset()
    """Whom else it is about ("my wife"): what is so of the user answers nothing then."""

    def means(self, key: str | None) -> bool:
        """Whether a memory under `key` answers it."""
        if key is None or self.key is None:
            return False
        return key.startswith(self.key) if self.key.endswith(":") else key == self.key


def asked_of(question: str) -> QuestionSubject:
    """What `question` is about."""
    line = " ".join(re.sub(r"[^\w'’-]+", " ", fold(question)).split())
    for short, long in _EXPANDED:
        line = re.sub(rf"\b{short}\b", long, line)
    if _ABOUT_ME.search(line):
        return QuestionSubject(everything=True)
    others = somebody_in(line) if _OTHERS.search(line) else frozenset()
    if _NESTED.search(line):
        return QuestionSubject(others=others)
    for pattern, key in _PATTERNS:
        found = pattern.search(line)
        # "is my wife allergic" asks for no slot of the user's, "what is my wife's name" does
        if found and (not others or key in _OF_OTHERS):
            thing = next((group for group in found.groups() if group), "")
            return QuestionSubject(key=_filled(key, thing), before=bool(_BEFORE.search(line)), others=others)
    return QuestionSubject(others=others)


def somebody_in(text: str) -> frozenset[str]:
    """The relatives, friends and animals that `text` speaks of, each by one word."""
    return frozenset(map(_same, _ANYBODY.findall(fold(text))))


def _same(person: str) -> str:
    return _SAME_KIN.get(person, person).removeprefix("best ")


def _filled(key: str, thing: str) -> str:
    if key == "{}_name":
        return key.format(_SAME_KIN.get(thing, thing).replace(" ", "_"))
    return key.format(slug(thing))
