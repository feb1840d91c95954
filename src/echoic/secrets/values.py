"""The form of an announced secret: digits, a code, one or several words, a token.

Each reader takes a text and a position in it, and returns the span of the value or None. A number with a
unit, an amount of money, a time or a date is never a value.
"""

from __future__ import annotations

import re

from echoic.text import END, STOP, any_of, word_lists

_LISTS = word_lists("echoic.secrets")

Span = tuple[int, int]

_GROUP = re.compile(r"[0-9]+")
_GAP = re.compile(r"[ ]?[ .,;:/_\n-]{0,3}(?=[0-9])")
_LETTERED = re.compile(r"(?:[A-Za-z]{1,3}[ -]?)?[0-9][A-Za-z0-9]*(?:[ -][A-Za-z0-9]*[0-9][A-Za-z0-9]*)*")
UNITS = re.compile(r"\s*-?(?:%|\u00b0|[$\u20ac\u00a3]|" + any_of(_LISTS["units"]) + END + ")", re.IGNORECASE)
_MONEY_BEFORE = re.compile(r"(?:[$\u20ac\u00a3\u00a5]|\b(?:usd|eur|gbp|rs\.?))\s*$", re.IGNORECASE)
_MOMENT = re.compile(
    r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?![0-9])|[0-9]{1,2}/[0-9]{1,2}/(?:[0-9]{4}|[0-9]{2})(?![0-9])"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]{2})?(?![0-9])"
    r"|[0-9]{1,5}\.[0-9]{2}(?![0-9])"
)


def digits(text: str, place: int, least: int, most: int) -> Span | None:
    """A number of `least` to `most` digits that begins at `place`, in groups or not."""
    start = place + 1 if text[place : place + 1] in {"#", "*", "+"} else place
    if text[start : start + 1] == " ":
        start += 1
    group = _GROUP.match(text, start)
    if group is None or (start and text[start - 1].isalnum()) or is_amount(text, start):
        return None
    count, end, ends = 0, start, [start]
    while group is not None and count + len(group[0]) <= most:
        if UNITS.match(text, group.end()):
            break
        count, end = count + len(group[0]), group.end()
        ends.append(end)
        gap = _GAP.match(text, end)
        if gap is None or (
            re.search("[.,;:\n]", gap[0]) and len(group[0]) > 2 and count >= least and most < 13
        ):
            break
        group = _GROUP.match(text, gap.end())
    if count < least or text[end : end + 1].isalpha() or len(ends) == 1:
        return None
    return place, end + (text[end : end + 1] in {"#", "*"})


_TURN = r"(?:to\s+the\s+)?(?:left|right|clockwise|anti-?clockwise)"
TURNED = re.compile(
    rf"(?:[0-9]{{1,2}}\s+{_TURN}|{_TURN}\s+(?:to\s+)?[0-9]{{1,2}})(?:\W+(?:(?:and|then|back)\s+){{0,2}}"
    rf"(?:[0-9]{{1,2}}\s+{_TURN}|{_TURN}\s+(?:to\s+)?[0-9]{{1,2}}))+",
    re.IGNORECASE,
)
"""How a dial is turned: "12 left, 34 right, 7 left"."""


def is_amount(text: str, place: int) -> bool:
    """Whether the number at `place` is money, a time or a date."""
    if _MONEY_BEFORE.search(text, max(0, place - 6), place):
        return True
    moment = _MOMENT.match(text, place)
    return moment is not None and not re.match(r"[ -]?[0-9]", text[moment.end() : moment.end() + 2])


def code(text: str, place: int, least: int, most: int) -> Span | None:
    """Digits, or digits with letters among them, as services send them: "G-482913", "7K4P2"."""
    plain = digits(text, place, least, most)
    if plain is not None:
        return plain
    found = _LETTERED.match(text, place)
    if found is None or (place and text[place - 1].isalnum()) or UNITS.match(text, found.end()):
        return None
    signs = sum(sign.isalnum() for sign in found[0])
    numbers = sum(sign.isdecimal() for sign in found[0])
    if numbers < 2 or not least <= signs <= most or is_amount(text, place) or _ordinal(found[0]):
        return None
    return found.span()


def _ordinal(value: str) -> bool:
    return (
        re.fullmatch(r"[0-9]+(?:st|nd|rd|th|am|pm|k|m|s|x|gb|mb|kg|km|cm|mm)", value, re.IGNORECASE)
        is not None
    )


_DOCUMENT = re.compile(r"[A-Za-z0-9](?:[ ./-]{0,3}[A-Za-z0-9]){2,27}")


def document(text: str, place: int, least: int) -> Span | None:
    """Letters and at least `least` digits: an identity document, a national number, an IBAN."""
    found = _DOCUMENT.match(text, place)
    if found is None or is_amount(text, place):
        return None
    kept = []
    for part in re.finditer(r"[^\s]+", found[0]):
        telling = any(sign.isdecimal() for sign in part[0]) or len(part[0]) == 1
        if not telling and not (len(part[0]) <= 6 and part[0].isupper()):
            break
        kept.append(part)
    while kept and kept[-1][0].isalpha() and len(kept[-1][0]) > 2:
        kept.pop()
    if not kept:
        return None
    value = "".join(part[0] for part in kept)
    end = place + kept[-1].end()
    if sum(sign.isdecimal() for sign in value) < least or UNITS.match(text, end):
        return None
    return place, end


# -- words

_QUOTED = re.compile(r"[\"`]([^\"`\n]{1,80})[\"`](?!\w)|'([^'\n]{1,80})'(?!\w)")
_SIGNED = re.compile(r"\S{3,256}")
_AROUND = ".,;:!?)(\"'"
_WORD = re.compile(r"[^\s,;:.!?()\"\[\]]+(?:[.!?'][^\s,;:.!?()\"\[\]]+)*[!?$]?")
SPELLED = frozenset(_LISTS["spelled"].split())
# Descriptions of a password that do not reveal it.
_STATES = STOP | frozenset(_LISTS["states"].split())
# Before a noun they may begin a password ("strong coffee"); alone, or before "enough", they describe it.
_ADJECTIVES = frozenset(_LISTS["adjectives"].split())
_AFTER_STATE = frozenset(_LISTS["after state"].split())
_ADVERBS = frozenset(_LISTS["adverbs"].split())
_WEAK = frozenset("correct right blank empty red-flagged".split())
_ENDS = frozenset(_LISTS["ends"].split())
_MOST_WORDS = 6


def quoted(text: str, place: int) -> Span | None:
    """The text in quotation marks at `place`."""
    found = _QUOTED.match(text, place)
    if found is None:
        return None
    return found.span(1) if found[1] is not None else found.span(2)


def no_word(text: str, place: int) -> Span | None:
    """One string that is not a word: it has a digit and a letter, or a sign inside."""
    found = _SIGNED.match(text, place)
    if found is None:
        return None
    bare = found[0].rstrip(_AROUND) if found[0][-1] not in "!?" else found[0].rstrip(".,;:?)(\"'")
    mixed = any(c.isdecimal() for c in bare) and any(c.isalpha() for c in bare)
    signed = re.search(r"\w[@#$%^&*!~+=_]\w|[@#$%^&*~]\w|\w[@#$^&*!~]", bare)
    camel = re.search(r"[a-z][A-Z]", bare)
    if (
        "]" in bare
        or len(bare) < 3
        or not (mixed or signed or camel)
        or _ordinal(bare)
        or UNITS.match(text, place + len(bare))
    ):
        return None
    return place, place + len(bare)


def phrase(text: str, place: int, *, most: int = _MOST_WORDS, strict: bool = True) -> Span | None:
    """Plain words up to where the sentence goes on; None if the first says something *about* a password.

    At most `most` ordinary words; spelled letters and digits do not count. With `strict` it may not begin
    with a function word.
    """
    count, last, at = 0, place, place
    words: list[str] = []
    while (found := _WORD.match(text, at)) is not None:
        word = found[0].lower().rstrip("'")
        spelled = word in SPELLED or len(word) == 1 or word.isdecimal()
        if words and word == "and" and not _goes_on(text, found.end()):
            break
        if words and not spelled and word in _ENDS:
            break
        if strict and not words and _says_state(word, text, found.end()):
            return None
        count += not spelled
        if count > most:
            break
        words.append(word)
        last = found.end()
        gap = re.compile(r"[ ,\n]{1,3}").match(text, last)
        if gap is None:
            break
        at = gap.end()
    if (
        not words
        or " ".join(words) in _WEAK
        or all(word in {"number", "sign", "at", "all"} for word in words)
    ):
        return None
    if words[0] == "a" and len(words) > 1 and words[1] not in SPELLED and len(words[1]) > 1:
        return None
    if UNITS.match(text, last) or (len(words) > 1 and UNITS.fullmatch(words[-1]) and words[-2] in SPELLED):
        return None
    return place, last


def _goes_on(text: str, place: int) -> bool:
    """Whether the words after an "and" still belong to a phrase: few words, none of which begins a clause."""
    rest = re.compile(r"\s+([^.,;:!?\n]{1,60})").match(text, place)
    if rest is None:
        return False
    words = rest[1].lower().split()
    return len(words) <= 3 and not any(word in STOP or word in _ENDS for word in words)


def _says_state(word: str, text: str, place: int) -> bool:
    if word == "case":
        return True
    if word in {"one", "a", "i", "at", "it"} or word in SPELLED:
        following = _WORD.match(text, place + 1)
        return word in {"it", "i"} or (
            word == "at" and (following is None or following[0].lower() not in SPELLED)
        )
    if word in _ADJECTIVES:
        following = _WORD.match(text, place + 1)
        after = following[0].lower() if following else ""
        return not after or after in _STATES | _ENDS | _ADVERBS | _AFTER_STATE or after == "and"
    if word in _STATES or word in _ADVERBS or word.endswith("n't"):
        return True
    if word.endswith(("ed", "ing")) and len(word) > 4:
        rest = re.compile(r"[ \w-]{0,30}").match(text, place)
        return rest is None or not any(w in SPELLED or w.isdecimal() for w in rest[0].lower().split()[:2])
    return False


def token(text: str, place: int) -> Span | None:
    """A key: at least eight characters with a digit among them, or at least sixteen, or spelled out."""
    found = _SIGNED.match(text, place)
    if found is not None:
        bare = found[0].strip(_AROUND)
        first = found.start() + found[0].index(bare) if bare else place
        mixed = any(c.isdecimal() for c in bare) and "]" not in bare
        if "]" not in bare and (
            (len(bare) >= 8 and mixed) or (len(bare) >= 16 and not bare.isalpha()) or len(bare) >= 24
        ):
            return first, first + len(bare)
    return _spelled_out(text, place)


def _spelled_out(text: str, place: int) -> Span | None:
    at, last, count = place, place, 0
    while (found := re.compile(r"[\w-]+").match(text, at)) is not None:
        word = found[0].lower()
        atom = word in SPELLED or len(word) <= 2 or any(c.isdecimal() for c in word)
        known = word in {"live", "test", "key", "secret", "prod"} and count
        if not (atom or known) or word in {"is", "it", "on", "in", "to", "of", "my", "so"}:
            break
        count, last = count + 1, found.end()
        gap = re.compile(r"[ ,.-]{1,3}").match(text, last)
        if gap is None:
            break
        at = gap.end()
    return (place, last) if count >= 4 else None
