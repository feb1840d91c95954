"""Whether a fact is about somebody else than the user: their family, friends or children. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import Final, Literal

from echoic.english.lexicon import source
from echoic.text.analysis import fold

ThirdParties = Literal["keep", "adults", "drop"]
"""What is kept of other people a user tells of. keep: all. adults: nothing about children. drop: nothing."""
THIRD_PARTIES: Final = ("keep", "adults", "drop")

_YOUNG: Final = (
    "child|children|kids?|bab(?:y|ies)|toddlers?|infants?|newborns?|(?:grand|step|god)?(?:sons?|daughters?)|"
    "(?:grand|step|god)child(?:ren)?|grandkids|nieces?|nephews?|twins|triplets|"
    "(?:little|youngest|eldest|oldest) (?:boy|girl|one)s?|teenagers?|pupils?"
)


_KIN: Final = (
    "mam|mummy|daddy|auntie|aunty|nana?|gran|grandad|granddad|parents?|grandparents?|step(?:mum|mom|mother|dad|father)|"
    "missus|siblings?|ex"
)


@cache
def _about(rule: ThirdParties) -> re.Pattern[str]:
    """References to other people: "my sister", "the user's boss", "has a daughter"."""
    family = _YOUNG if rule == "adults" else f"{_YOUNG}|{_KIN}|(?:ex-?)?(?:{source('facts.kin')})s?"
    others = family if rule == "adults" else f"{family}|(?:{source('facts.others')})s?"
    between = r"(?:(?!called|named)[\w'-]+ ){0,2}?"
    return re.compile(
        rf"\b(?:(?:my|our|their|his|her|[a-z]+'s) {between}(?:{others})"
        rf"|(?:has|have|had|got|i've|we've) (?:an? |some |[0-9]+ |(?:one|two|three|four|five|six) )?"
        rf"{between}(?:{family})"
        r"|(?:mother|father|mum|mom|dad|parent)s? (?:of|to)|pregnant|expecting twins)\b"
        r"(?! tongue|'s (?:appointment|surgery|office|note|orders))"
    )


@cache
def _keys(rule: ThirdParties) -> re.Pattern[str]:
    """The words of a key that names somebody else: "daughter_name", "child:tom"."""
    kinds = _YOUNG if rule == "adults" else f"{_YOUNG}|{_KIN}|{source('facts.kin')}|{source('facts.others')}"
    return re.compile(rf"\b(?:{kinds})\b")


def is_dropped(rule: ThirdParties, key: str | None, *texts: str | None) -> bool:
    """Whether `rule` forbids storing `texts`, under `key`, because of whom they are about."""
    if rule == "keep":
        return False
    if key and _keys(rule).search(re.sub(r"[\W_]+", " ", fold(key))):
        return True
    return any(text is not None and _about(rule).search(fold(text)) for text in texts)


__all__ = ["THIRD_PARTIES", "ThirdParties", "is_dropped"]
