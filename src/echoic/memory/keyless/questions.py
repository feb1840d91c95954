"""Which slot a question is about: "where do I live?" asks for "home". Pure; one table, read from the top.

A question that fits no row is not refused: it is answered from what a search finds, and less directly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from echoic.english.phrases import slug
from echoic.words import fold

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
