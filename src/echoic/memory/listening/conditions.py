"""When a preference applies, as it is said around it: "only at work", "when I'm driving", "unless it rains".

What is read here would otherwise be lost, and the preference said of all times. What may be a supposition,
politeness or a memory ("if I may", "when I was a child") is none, and neither is what is about now alone.
"""

from __future__ import annotations

import re
from typing import Final

from echoic.memory.listening.sentences import Sentence

KEYS: Final = ("preference:", "favourite:", "least_favourite:", "avoids:", "avoid_topic:", "answer_length")
"""Of what can hold under a condition."""
_MAX_WORDS: Final = 10
_JOIN: Final = r"(?:(?:but|though|although|and|or|well|mind you) )?"
_LIMIT: Final = (
    r"(?:only|just|mostly|mainly|usually|especially|particularly|at least|except(?: for)?|apart from|not|"
    r"never|strictly)"
)
_WHERE: Final = r"(?:at|in|on|during|for|after|before|with|while|from|over|between|outside|near|around|by)"
_WHEN: Final = r"(?:when|whenever|if|unless|while|as long as|so long as|provided|once|until)"
_SUBJECT: Final = (
    r"(?:i'm|i am|i've|i have|i|we're|we are|we've|we have|we|it's|it is|it|there's|there is|there are|the|"
    r"my|our|nobody|no one|somebody|someone|everyone|he's|she's|they're|people|kids|friends|guests)"
)
_DOING: Final = r"[a-z]{2,}ing"
_CLAUSE: Final = rf"{_WHEN} (?:{_SUBJECT} [a-z']+|{_DOING}|in|at|on)"
_AFTER: Final = re.compile(
    rf"{_JOIN}(?P<context>{_LIMIT} {_WHERE} [a-z0-9']+|{_LIMIT} {_CLAUSE}|{_CLAUSE}|"
    r"(?:before|after|during) [a-z0-9']+|"
    rf"(?:only|just|mostly|mainly|never) (?:early|late) (?:in|at) [a-z]+)"
)
_BEFORE: Final = re.compile(
    rf"(?:and |but |well |so |oh |yes |yeah )?(?P<context>(?:only )?(?:{_CLAUSE}|"
    r"(?:at (?:work|home|night|lunch|dinner|parties|the [a-z]+)|on (?:a )?[a-z]+days?|on weekends|"
    r"on (?:long |short |night )?(?:flights|trips|journeys|trains)|in (?:the )?(?:early |late )?"
    r"(?:mornings?|afternoons?|evenings?|winter|summer|spring|autumn|fall|car|office)|during the [a-z]+|"
    r"for (?:breakfast|lunch|dinner|work|dessert))(?= )))"
)
_ADJUNCT: Final = re.compile(
    r" (?P<context>(?:at (?:work|home|night|lunch|lunchtime|dinner|parties|weekends)|"
    r"at the (?:office|gym|weekend)|"
    r"on (?:a )?(?:mon|tues|wednes|thurs|fri|satur|sun|week)days?|on (?:the )?weekends?|"
    r"on (?:long |short |night |early )?(?:flights|trips|journeys|trains)|"
    r"in (?:the )?(?:early |late )?(?:mornings?|afternoons?|evenings?|winter|summer|spring|autumn|fall)|"
    r"during the (?:week|day|night|winter|summer)|for (?:breakfast|lunch|dinner|dessert)))$",
    re.IGNORECASE,
)
# What is no condition of a preference: said of what was, of what might be, of now, or out of politeness.
_NOT_ONE: Final = re.compile(
    r"\b(?:was|were|had|did|would|could|might|may|must|should|used|remember|recall|say|said|ask|asked|"
    r"understand|honest|mistaken|wrong|right|correct|sure|allowed|possible|ok|okay|alright|fine|mind|you|your|"
    r"you're|today|tonight|tomorrow|now|moment|this|that|these|kidding|joking|sake|example|instance|all|real|"
    r"time being|record|dying|serious|lucky)\b"
)
_TELLING: Final = frozenset(
    """
    know knows think thinks believe believes hear hears see sees find finds notice notices that how why what
    and or than where which who whenever when if
    """.split()
)
_THEIRS: Final = {
    "i'm": "they are",
    "we're": "they are",
    "i've": "they have",
    "we've": "they have",
    "i": "they",
    "we": "they",
    "my": "their",
    "our": "their",
    "me": "them",
    "us": "them",
    "myself": "themselves",
    "am": "are",
}


def after(said: Sentence, at: int) -> tuple[str, int] | None:
    """The condition that follows what ended before the word `at`, and where it ends; None: there is none."""
    found = said.match(_AFTER, at)
    if found is None:
        return None
    start = said.at.get(found.start("context"))
    if start is None:
        return None
    return _read(said, start)


def before(said: Sentence) -> tuple[str, int] | None:
    """The condition a sentence begins with, and where its main clause does: "At work I prefer tea"."""
    found = said.match(_BEFORE, 0)
    start = said.at.get(found.start("context")) if found else None
    if start is None:
        return None
    for end in range(start + 2, min(len(said), start + _MAX_WORDS + 1)):
        mine = said.low(end) in {"i", "my", "i'm"}
        told = said.low(end - 1) in _TELLING  # "if people know I like it": it belongs to the condition
        clause = said.gap(end) or re.match(rf"{_WHEN}$", said.low(start)) is None or not told
        if mine and clause and _is_one(said.text(start, end)):
            return _theirs(said.text(start, end)), end
    return None


def within(text: str) -> str | None:
    """The condition at the end of what is preferred: "in the evening" of "prefers tea in the evening"."""
    found = _ADJUNCT.search(text)
    return found.group("context") if found else None


def _read(said: Sentence, start: int) -> tuple[str, int] | None:
    end = start + 1
    while end < len(said) and not said.gap(end) and said.low(end) not in {"but", "because", "so"}:
        joined = said.low(end) in {"and", "or"} and said.low(end + 1) in {"i", "my", "we", "i'm", "please"}
        if joined or end - start > _MAX_WORDS:
            break
        end += 1
    text = said.text(start, end)
    if end - start > _MAX_WORDS or not _is_one(text):
        return None
    return _theirs(text), end


def _is_one(text: str) -> bool:
    return _NOT_ONE.search(text.casefold()) is None


def _theirs(text: str) -> str:
    """What the speaker says of themselves, said of them."""
    words = text.split()
    words[0] = words[0].lower()  # it stands behind what it is a condition of
    return " ".join(_THEIRS.get(word.casefold().replace("’", "'"), word) for word in words)


__all__ = ["KEYS", "after", "before", "within"]
