"""Rules for statements that look like a business's, and for statements that are personal.

`looks_like_business` finds statements that `evidence` does not recognise and that an operator should still
see. "We" may be a shop: the predicate decides. No family says "we ship worldwide"; "we open at nine" counts
as a shop's only with a second sign of trade. A family speaks of particular things ("the car", "our boiler"),
a business of all things of a kind ("all boilers", "bikes"). What `personal_in` finds takes precedence over
everything else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from echoic.memory.sharing import person_names
from echoic.memory.sharing.person_names import (
    LISTS,
    JudgedWord,
    listed,
    listed_stems,
    phrase_stems,
    stem,
    stems,
    unknown_names,
)
from echoic.text import any_of, patterns

_PATTERNS = patterns("echoic.memory.sharing", "business")

_SOFT_VERBS = LISTS["soft verbs"]
"""Verbs that families use as well."""
_COMPANY_TRAITS = LISTS["company traits"]
_LASTING_VERBS = LISTS["lasting verbs"]
_SIGNS = _PATTERNS["signs"]
"""Signs of trade; each is weak alone. A bare amount is not among them: it may be a private bill."""
_SORTS = LISTS["sorts"]
_TRADES = (
    listed_stems(
        "trade_places",
        "trade_open",
        "trade_served",
        "trade_begun",
        "trade_goods",
        "trade_services",
        "trade_events",
        "trade_ruled",
        "trade_devices",
        "trades",
    )
) - stems("phone child children kid infant bag bike room ticket bed box people everyone anyone group age")
_OF_ONE = stems(_PATTERNS["of one"])
"""Nouns with which "every" and "any" may be private."""
_MASS = listed_stems("mass")
_WHERE_ONE_IS_SERVED = listed_stems("trade_places") - stems(_PATTERNS["where one is served"]) | listed_stems(
    "where one is served"
)
_KEY_OF_BUSINESS = listed_stems("key of business") - stems("general info access process")
"""Words of keys that name a fact about a business."""

_SHORT: Final = (
    (re.compile(r"\b(we|you|they)'re\b"), r"\1 are"),
    (re.compile(r"\b(we|you|they)'ve\b"), r"\1 have"),
    (re.compile(r"\b(we|you|they)'ll\b"), r"\1 will"),
    (re.compile(r"\b(there|that|it|what)'s\b"), r"\1 is"),
    (re.compile(r"\bcan't\b"), "can not"),
    (re.compile(r"\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\b(do|does|are|is|have|has|must)n't\b"), r"\1 not"),
)
_SINGULAR: Final = listed("singular")
_GROUP: Final = re.compile(_PATTERNS["group"])
_ADV: Final = _PATTERNS["adv"]
_CERTAIN: Final = _PATTERNS["certain"]
_SIGN: Final = re.compile(rf"(?<!\S)(?:{_SIGNS})(?!\S)")
_OPENED: Final = _PATTERNS["opened"]
_LOT: Final = _PATTERNS["lot"]
_STRONG: Final = tuple(
    re.compile(pattern)
    for pattern in (
        # "we offer …", but not "we sell our house", "we accept that"
        (_PATTERNS["strong"]),
        (_PATTERNS["strong 2"]),
        (_PATTERNS["strong 3"]),
        rf"\bwe(?= (?:are|stay|remain){_ADV} (?:open|closed){_OPENED})",
        rf"\bwe(?={_ADV} (?:open|close){_OPENED})",
        rf"\bwe(?= are{_ADV} (?:an? )?(?:[a-z-]+ ){{0,3}}{any_of(_COMPANY_TRAITS)}(?!\S))",
        (_PATTERNS["strong 4"]),
        rf"\bwe(?={_ADV} (?:take|do|require|allow|welcome|need){_ADV} {_LOT})",
        r"\bwe(?= (?:match|beat) (?:[a-z']+ )?(?:price|competitor|quote))",
        (_PATTERNS["strong 5"]),
        (_PATTERNS["strong 6"]),
        r"\bour(?= (?:[a-z-]+ )?(?:opening|business|visiting|trading) hours\b)",
        rf"(?<=\ball )our(?= (?:[a-z-]+ ){{0,2}}{any_of(_SORTS)}(?!\S))",
    )
)
_SOFT: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\bwe(?={_ADV} {any_of(_SOFT_VERBS)}(?! (?:{_CERTAIN}|a|an|at|in)\b))",
        r"\bwe(?= pay (?:the|return|all) (?:postage|shipping|return))",
        (_PATTERNS["soft"]),
        (_PATTERNS["soft 2"]),
        (_PATTERNS["soft 3"]),
        r"(?<=\bcall )us\b|(?<=\bcontact )us\b|(?<=\bemail )us\b|(?<=\bwith )us\b|(?<=\bfrom )us\b",
    )
)
_OUR_SHOP: Final = re.compile(
    r"\bour(?= (?:website|app|page|online shop|webshop|stores?|shops?|branch|branches|showroom|helpline"
    r"|hotline|portal|newsletter|menu)\b)"
)
_HOMELY: Final = re.compile(_PATTERNS["homely"])
_AT_HOME: Final = re.compile(_PATTERNS["at home"])
_PRONOUN: Final = re.compile(r"\b(?:we|we'd|us|our|you|you'd|your|they|their|them|who|it's)\b")
_ONCE: Final = re.compile(_PATTERNS["once"])
_THEIR_OWN: Final = re.compile(_PATTERNS["their own"])
# Past, and still so: a business was founded and has been trading since.
_LASTING_PAST: Final = re.compile(
    r"\b(?:was|were)(?= (?:founded|established|incorporated|built|created|named|awarded|launched|set up)\b)"
)
_FOUNDED: Final = re.compile(_PATTERNS["founded"])
_TERSE: Final = re.compile(_PATTERNS["terse"])
_OFFERED_AS: Final = re.compile(_PATTERNS["offered as"])
_SERVICE: Final = re.compile(_PATTERNS["service"])
"""What only a business has: a trial, a warranty, a helpline."""
_WORKING_DAYS: Final = re.compile(_PATTERNS["working days"])
_RULE: Final = re.compile(_PATTERNS["rule"])
"""Statements about all things of a kind: "bicycles are allowed", "no reservation is needed"."""
_THERE: Final = re.compile(r"there (?:is|are) ")
_HAS: Final = re.compile(_PATTERNS["has"])
_BREAK: Final = re.compile(
    r" (?:[,.;:]|for|in|on|at|behind|next|with|from|to|near|outside|between|every|after)\b| [,.;:]"
)
_OF: Final = re.compile(r" (?:of|to|for|in|on|at|with|from|over|under|between|near|behind|within|without) ")
_DETERMINED: Final = re.compile(r"^(?:the|a|an|all|every|each|any|no|most) ")
_VERB: Final = re.compile(rf"(?<!\S)(?:{any_of(_LASTING_VERBS)})(?!\S)")
_REACH: Final = frozenset(
    "call contact email text write message phone visit ask check book bring pay".split()
)
_ORDERED: Final = frozenset("tell remind ignore always never deliver ship leave note remember".split())
_OFFERED: Final = re.compile(_PATTERNS["offered"])
_MANY_OF_HEALTH: Final = frozenset(
    "prescriptions injuries migraines surgeries medications therapists".split()
)
_FACILITIES: Final = frozenset("parking park lift ramp toilet".split())
_HAPPENINGS: Final = re.compile(_PATTERNS["happenings"])


def personal_in(words: Sequence[JudgedWord]) -> str | None:
    """Why `words` are personal, whatever a classifier says; None if they are not.

    Less strict than `about_a_person`, which also keeps doubtful texts: what passes here still needs a
    classifier or an operator to be shared.
    """
    text = _plain(words)
    texts = text.split()
    if not texts:
        return "doubt"
    if not _SINGULAR.isdisjoint(texts):
        return "person"
    explained = _explained(text)
    if _PRONOUN.search(text) and _AT_HOME.search(text):
        return "person"
    if _PRONOUN.search(explained) or (_THEIR_OWN.search(text) and _ONCE.search(text)):
        return "person"
    return _of_somebody(text, explained) or ("name" if unknown_names(words, _is_company(text)) else None)


def looks_like_business(words: Sequence[JudgedWord], subject: Sequence[JudgedWord]) -> bool:
    """Whether `words`, under a key with the words `subject`, look like a fact about a business.

    Called for texts that are not `personal_in`.
    """
    text = _plain(words)
    if _ONCE.search(text) or _AT_HOME.search(text):
        return False
    # what only a business has, or a rule for all things of a kind
    serves = any((_SERVICE.match(text), _RULE.match(text), _WORKING_DAYS.search(text)))
    if _is_company(text) or serves or any(frame.search(text) for frame in _STRONG):
        return True
    if any(frame.search(text) for frame in _SOFT):
        return _is_signed(text)
    if _GROUP.match(text):
        return len(set(_SIGN.findall(text)) | set(_GROUP.findall(text))) > 1
    keyed = bool(phrase_stems(subject) & _KEY_OF_BUSINESS)
    if _TERSE.match(text) or _OFFERED_AS.match(text):
        return keyed or _SIGN.search(text) is not None
    head, rest = _head(text)
    of_place = head and _HAS.match(rest) is not None and _DETERMINED.match(text) is not None
    return of_place or (head and (keyed or _SIGN.search(rest) is not None or _GROUP.search(rest) is not None))


def _plain(words: Sequence[JudgedWord]) -> str:
    """The text in lower case, with single spaces and contractions expanded."""
    text = " ".join(word.text for word in words)
    for short, long in _SHORT:
        text = short.sub(long, text)
    return text.strip(" .!")


def _explained(text: str) -> str:
    """`text` without the pronouns that can only mean a business and its customers."""
    explained = text
    for frame in _STRONG:
        explained = frame.sub("~", explained)
    sure = explained != text
    if sure or _is_signed(text):
        for frame in _SOFT:
            explained = frame.sub("~", explained)
    if explained != text:  # whoever deals with it, and it, are spoken of again
        explained = re.sub(r"\b(?:you|your)\b(?! (?:are|were|have (?:a|an|two|three)\b))", "~", explained)
        explained = _OUR_SHOP.sub("~", explained)
        if sure:
            explained = re.sub(r"\bus\b", "~", explained)
            explained = re.sub(
                r"\bwe(?= (?:will|do|can|pay|also|only|use|take|close|open)\b)", "~", explained
            )
    if _GROUP.search(text):
        explained = re.sub(r"\b(?:they|their|them|who)\b", "~", explained)
    return explained


def _is_signed(text: str) -> bool:
    """Whether it has a sign of trade that no household has: bread is organic at home as well."""
    given = re.search(r"\b(?:for free|is free|free of charge)\b", text)
    return given is not None or any(not _HOMELY.fullmatch(sign) for sign in _SIGN.findall(text))


def _of_somebody(text: str, explained: str) -> str | None:
    """Other signs of a personal text: a relative, an illness, a wish, an order, an episode."""
    happening = _HAPPENINGS.sub("~", text)
    stems = frozenset(stem(one) for one in happening.split())
    if stems & person_names.RELATIONS or not person_names.TITLES.isdisjoint(text.split()):
        return "relation"
    ill = [one for one in text.split() if stem(one) in person_names.HEALTH]
    if ill and not (_OFFERED.search(text) and _MANY_OF_HEALTH.issuperset(ill)):
        return "health"
    liked = stems & person_names.PREFERENCES - {"usual"}
    if liked and not re.search(r"\b(?:who|you|if you) (?:want|wish|prefer|need|would like)\b", text):
        return "preference"
    return _of_one(text, explained)


def _of_one(text: str, explained: str) -> str | None:
    texts = text.split()
    opens = next((one for one in texts if one[0].isalpha()), "")
    for_us = explained.startswith(("call ~", "contact ~", "email ~"))
    if opens in _ORDERED or person_names.is_instruction(texts, open_to=_REACH if for_us else frozenset()):
        return "instruction"
    if person_names.is_somebody(re.sub(r"\bemploys? [0-9]+ (?:people|men|women)\b", "employs", text).split()):
        return "person"
    lasting = re.sub(r"(?<!\S)(?:~|you|to|can|and) rent(?= [a-z]+s\b| out\b)", "~ hire", explained)
    lasting = lasting.replace("~", "any")
    if person_names.is_owned(lasting.split()):
        return "belonging"
    past = _LASTING_PAST.sub("is", text.replace("no questions asked", ""))
    past = re.sub(r"\bhave been\b", "are", past)
    past = re.sub(
        r"\b(be|are|is) (?:sent|taken|paid|left|sold|bought|told|written|brought|moved)\b", r"\1 done", past
    )
    if person_names.is_episode(past.split()):
        return "episode"
    return "doubt" if "?" in texts or not person_names.DOUBTS.isdisjoint(texts) else None


def _is_company(text: str) -> bool:
    return _FOUNDED.search(text) is not None


def _head(text: str) -> tuple[bool, str]:
    """Whether a text is about a kind of thing of trade, and what it says about it."""
    there = _THERE.match(text)
    begins = text.find(" ") + 1 if there is None else there.end()
    found = (_BREAK if there else _VERB).search(text, begins)
    if there is None and (found is None or not begins):
        return False, text
    until = found.start() if found else len(text)
    # of "the entrance to the gallery" the entrance is spoken of
    noun = [one for one in _OF.split(text[:until])[0].split() if one[-1].isalpha()]
    if not 0 < len(noun) < 8 or stem(noun[-1]) not in _TRADES:
        return False, text
    last, rest = noun[-1], text if there else text[until:]
    if there:
        return stem(last) in _WHERE_ONE_IS_SERVED or last in _FACILITIES, rest
    if noun[0] in {"the", "a", "an", "these", "those", "both"}:
        return stem(last) in _WHERE_ONE_IS_SERVED, rest
    if _DETERMINED.match(text):
        return stem(last) not in _OF_ONE, rest
    several = last.endswith("s") and not last.endswith("ss")
    return several or (stem(last) in _MASS and len(noun) <= 2), rest
