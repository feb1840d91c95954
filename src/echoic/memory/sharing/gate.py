"""The gate to global memory: facts about the business may be shared with all users, personal texts never.

`weigh` decides by rules over English words, deterministically, and stores nothing. A text that states a known
kind of fact entirely in words of trade (`evidence`), or that looks like a fact about a business (`business`),
may be shared; everything else, and every doubtful case, stays private. Telephone numbers and addresses are
removed from a shared text; any other long number keeps it private. Of 4,998 labelled calls this many end
differently without a rule (`python -m benchmarks.sharing`): long numbers 6, e-mail addresses 2, streets 2,
identifiers 1, spoken digits 1. A text that passes is a candidate: the deployment's settings decide whether it
needs approval.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, Protocol, get_args, runtime_checkable

from echoic.errors import InvalidInput, brief
from echoic.memory.sharing.business import looks_like_business, personal_in
from echoic.memory.sharing.evidence import GLOBAL_KINDS, fact_in, kinds_stated
from echoic.memory.sharing.person_names import (
    LISTS,
    NAMES,
    JudgedWord,
    about_a_person,
    listed,
    names_among,
    phrase_stems,
    unknown_names,
    words_of,
)
from echoic.secrets import MARKER, mask
from echoic.text import END, START, STOP, any_of
from echoic.text.spoken_numbers import View, readings, tokens, written

Contact = Literal["PHONE", "EMAIL", "ADDRESS"]
"""The kinds of data removed from a shared text; placeholders such as "[PHONE]" replace them."""

_EMAIL: Final = re.compile(r"[^\s@<>()\[\],;:\"]{1,320}@(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_][\w-]{0,62}")
# "ana at example dot com", but not "visit us online at example dot com".
_SAID_EMAIL: Final = re.compile(
    rf"(?<!\S)(?!{any_of(LISTS['no mailbox'])})(\S+)(?:\s+sign)?\s+(?:at|@|\(at\)|arroba|chiocciola)\s+"
    r"(?:[\w-]+\s+){0,8}?(?:[\w-]+\s*(?:dot|\(dot\)|\.|punto|punkt|ponto|point)\s*){1,4}"
    rf"{any_of(LISTS['top level domains'])}\b",
    re.IGNORECASE,
)
_LONG: Final = re.compile(r"\+?(?:\((?=[0-9]{1,6}\)))?[0-9](?:[ .,/()\n*_|-]{0,3}[0-9]){5,}")
"""Six digits with few separators are a private number, whatever it is called."""
_NO_LONG: Final = re.compile(
    r"(?<![0-9.])(?:[01]?[0-9]|2[0-4])[.:][0-5][0-9](?![0-9]|[.][0-9])"  # 9.30
    r"|[$\u20ac\u00a3] ?[0-9]{1,3}(?:[.,]?[0-9]{3})?(?:[.,][0-9]{2})?(?![0-9])"  # $1,299.00
    r"|(?<![0-9.,])[0-9]{1,3}(?:[.,]?[0-9]{3})?(?:[.,][0-9]{2})? ?(?:[$\u20ac\u00a3]|dollars|euros|pounds)"
)
"""Hours and prices, which a business states in digits."""
_IDENTIFIER: Final = re.compile(
    r"(?<!\w)(?:(?=\w*[^\W\d_])(?=(?:\w*\d){5})|(?=(?:\w*[A-Z]){2})(?=(?:\w*\d){4}))\w{6,}(?!\w)"
    r"|\bend(?:s|ed|ing)\s+(?:in|with)\s+[0-9]"
)
"""A word of letters and four digits, or the last digits of a card: private too."""
_REACHED: Final = re.compile(
    START
    + any_of("(?:tele)?phones? tel call(?:ed|s|ing)? lines? hotline helpline numbers? fax contact reach text")
    + END,
    re.IGNORECASE,
)
_PHONE_DIGITS: Final = range(7, 16)
"""ITU-T E.164: at most 15 digits."""

_STREETS: Final = any_of(LISTS["streets"])
_ADDRESS: Final = re.compile(
    r"(?<![\w.,:/$\u20ac\u00a3-])[0-9]{1,5}[A-Za-z]?,?\s+(?P<name>(?:[^\W\d_][\w'-]{0,30}\.?\s+){1,4}?)"
    rf"(?P<type>{_STREETS})\b\.?(?:,?\s+(?:apartment|apt|flat|unit|suite)\.?\s+\w{{1,5}}\b)?",
    re.IGNORECASE,
)
_POSTCODE: Final = re.compile(
    r"(?<!\w)(?:[A-Z]{1,2}[0-9][A-Z0-9]? ?[0-9][A-Z]{2}|[A-Z]{2},? [0-9]{5}(?:-[0-9]{4})?)(?!\w)"
)
"""British and American postcodes."""
_NO_STREET_NAME: Final = frozenset(LISTS["no street name"].split())


@dataclass(frozen=True, slots=True)
class ContactSpan:
    kind: Contact | None
    """The kind of contact; None: a number that is not a telephone number."""
    start: int
    end: int


def contacts(text: str) -> list[ContactSpan]:
    """The contacts in `text`, written or spoken, in order and without overlaps."""
    plain = written(text)
    found: list[ContactSpan] = []
    for view in (plain, *readings(plain, tokens(plain.text))):
        found += [ContactSpan(each.kind, *view.origin(each.start, each.end)) for each in _in_view(view)]
    united: list[ContactSpan] = []
    for each in sorted(found, key=lambda one: (one.start, -one.end)):
        if united and each.start < united[-1].end:
            last = united.pop()
            each = ContactSpan(last.kind and each.kind, last.start, max(last.end, each.end))  # noqa: PLW2901 - the two as one
        united.append(each)
    return united


def _in_view(view: View) -> Iterator[ContactSpan]:
    text = view.text
    for pattern in (_EMAIL, _SAID_EMAIL):
        yield from (ContactSpan("EMAIL", *each.span()) for each in pattern.finditer(text))
    if not any(character.isdecimal() for character in text):
        return
    reached = _REACHED.search(text) is not None
    for each in _LONG.finditer(_NO_LONG.sub(lambda known: ":" * len(known[0]), text)):
        count = sum(character.isdecimal() for character in each[0])
        yield ContactSpan("PHONE" if reached and count in _PHONE_DIGITS else None, *each.span())
    yield from (ContactSpan(None, *each.span()) for each in _IDENTIFIER.finditer(text))
    yield from (ContactSpan("ADDRESS", *each.span()) for each in _POSTCODE.finditer(text))
    for each in _ADDRESS.finditer(text):
        if _NO_STREET_NAME.isdisjoint(each["name"].lower().split()):
            yield ContactSpan("ADDRESS", *each.span())


def without_contacts(text: str) -> tuple[str, list[ContactSpan]]:
    """`text` with a placeholder in place of each of its `contacts`, and these."""
    found = contacts(text)
    pieces: list[str] = []
    done = 0
    for each in found:
        pieces += (text[done : each.start], f"[{each.kind}]")
        done = each.end
    return "".join((*pieces, text[done:])), found


Shared = Literal["global", "private"]

MAX_FACT_CHARACTERS = 1000
"""A fact is a sentence or two. The limit also bounds the time for which a hostile text blocks the event loop.
"""

_FACTS = "hours price policy product location contact menu event procedure"

REASONS: Mapping[str, str] = MappingProxyType(
    {
        # global
        **{kind: GLOBAL_KINDS[kind] for kind in _FACTS.split()},
        "business": "it looks like a fact about the business; an operator decides",
        "operator": "an operator of the business wrote it",
        # private
        "key": "the key speaks of a person",
        "identifier": "it holds a number, secret or date that belongs to a person",
        "person": "it speaks of a person: a pronoun, a guest, a customer",
        "relation": "it names a relation: a mother, a friend, Mr or Mrs",
        "preference": "it says what someone likes or wants",
        "health": "it may speak of someone's health",
        "belonging": "it speaks of something that belongs to someone: a home, an order, an appointment",
        "episode": "it tells of something that happened or will happen once",
        "instruction": "it tells the agent what to do or say",
        "name": "it holds a word that is, or may be, a name",
        "doubt": "nothing says that it is a fact about the business",
        "condition": "its condition (context) is not judged; one that the text states is",
        "failed": "a classifier failed, and what could not be judged stays private",
        "model": "another classifier judged it; it gave no reason of these",
        "asked": "whoever set it asked for it to be private",
        "pending": "another classifier is still being asked about it",
    }
)
"""Every reason of a verdict, with its meaning."""

_KEY_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_PERSONAL_KEY = listed("personal key")
# Personal after "user", the business's own after "store".
_CONTACT_KEY = frozenset("address email mail phone telephone mobile cell fax number".split())
_BUSINESS_KEY = frozenset(
    """store shop business company restaurant cafe bar hotel office branch clinic pharmacy museum gym
    salon front reception support""".split()
)
# Of either, where nothing else in the key says whose; and with a word of `_FIRM_KEY` of the business.
_UNSURE_KEY = frozenset(
    "contact language languages location insurance order orders booking plan plans".split()
)
_EITHERS_KEY = _UNSURE_KEY | frozenset(
    """customer customers client guest patient member child children kid kids pet dog cat health reservation
    appointment trip account card medical family profile""".split()
)
_FIRM_KEY = listed("firm key")


# What is left of "the phone number is [PHONE]": words that only lead up to what was taken out.
_LEADS: Final = frozenset(
    """phone telephone number line hotline fax email mail e address call contact reach dial text located
    location at on website site page link""".split()
)
# Private use, unassigned, half characters; and tags and selectors, in which a text can hide.
_HIDING: Final = frozenset({"Co", "Cn", "Cs"})
_TAGS: Final = re.compile("[\U000e0000-\U000e0fff]")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who may see a text, and why; InvalidInput for an unknown visibility or reason."""

    visibility: Shared
    reason: str
    """One of `REASONS`."""

    def __post_init__(self) -> None:
        if self.visibility not in get_args(Shared):
            raise InvalidInput(
                f"unknown visibility {brief(self.visibility)}: use one of {', '.join(get_args(Shared))}"
            )
        if self.reason not in REASONS:
            raise InvalidInput(f"unknown reason {brief(self.reason)}: use one of {', '.join(REASONS)}")


@dataclass(frozen=True, slots=True)
class Shareable:
    """A text that may become global."""

    text: str
    """Without telephone numbers and addresses."""
    key: str | None
    kinds: tuple[Contact, ...]
    """The kinds of contacts that were removed, without duplicates."""
    reason: str
    """Why it may be shared, one of `REASONS`."""
    states: frozenset[str] = field(default=frozenset({"other"}), compare=False)
    """The kinds of `GLOBAL_KINDS` that it states."""


@runtime_checkable
class Classifier(Protocol):
    """Decides, in place of the rules, whether a text may become global. May raise: the text stays private."""

    async def classify(self, text: str, key: str | None) -> Verdict:
        """The verdict on `text`, stored under `key`."""


def weigh(
    text: str, key: str | None, *, verdict: Verdict | None = None, masked: bool = False
) -> Shareable | Verdict:
    """`text` as it may become global, or a private verdict with its reason.

    Costs about a millisecond for a sentence; a text longer than `MAX_FACT_CHARACTERS` stays private unread.

    Args:
        text: the text, spoken or written.
        key: the key it is stored under.
        verdict: another classifier's, used in place of the rules. It cannot share personal text.
        masked: whether secrets in the text were replaced by markers already.
    """
    if len(text) > MAX_FACT_CHARACTERS or hides_something(text) or (key is not None and hides_something(key)):
        return Verdict("private", "doubt")
    said, found = without_contacts(text)
    if any(one.kind is None for one in found) or holds_secret(text, masked=masked):
        return Verdict("private", "identifier")
    parts = [part.lower() for part in _KEY_PART.findall(key or "")]
    if key is not None and _is_unreadable(key, parts):
        return Verdict("private", "key")
    words, subject = words_of(said), words_of(" ".join(parts)) if parts else []
    stems = phrase_stems(subject)
    judged = _judged(words, subject, stems, parts, verdict, contact=bool(found))
    if judged.visibility == "private":
        return judged
    # what shows only once something else is gone: the text was made that way
    if not says_something(words) or (found and contacts(said)):
        return Verdict("private", "doubt")
    states = kinds_stated(words, subject, stems)
    if judged.reason == "business" or judged is verdict:
        states |= {"other"}  # whatever kinds it touches, the rules do not understand it as a whole
    kinds = tuple(dict.fromkeys(one.kind for one in found if one.kind is not None))
    return Shareable(said, key, kinds, judged.reason, states)


def _judged(
    words: Sequence[JudgedWord],
    subject: Sequence[JudgedWord],
    stems: frozenset[str],
    parts: Sequence[str],
    verdict: Verdict | None,
    *,
    contact: bool,
) -> Verdict:
    """The rules' verdict, or `verdict` if the rules leave the decision to it."""
    if verdict is not None and verdict.visibility == "private":
        return verdict
    known = _known_kind(words, subject, stems, parts, contact=contact)
    if known.visibility == "global":
        return known
    vetoed = "key" if parts and _is_about_somebody(parts, subject, words) else personal_in(words)
    if vetoed is not None:
        return known if verdict is None else Verdict("private", vetoed)
    if looks_like_business(words, subject):
        return Verdict("global", "business")
    return verdict or known


def _known_kind(
    words: Sequence[JudgedWord],
    subject: Sequence[JudgedWord],
    stems: frozenset[str],
    parts: Sequence[str],
    *,
    contact: bool,
) -> Verdict:
    """Global only if nothing can be personal and the rules know the kind of fact stated."""
    if parts and _is_personal_key(parts, subject):
        return Verdict("private", "key")
    against = about_a_person(words) or ("name" if names_among(words) else None)
    if against is not None:
        return Verdict("private", against)
    fact = fact_in(words, stems, contact=contact)
    return Verdict("global", fact) if fact else Verdict("private", "doubt")


def _is_unreadable(key: str, parts: Sequence[str]) -> bool:
    """Whether a key has no readable word, or contains a long number or an address."""
    numbered = any(part.isdecimal() and len(part) > 4 for part in parts)
    numbered = numbered or sum(sign.isdecimal() for sign in key) > 5
    return not parts or not key.isascii() or numbered or "@" in key


def _is_personal_key(parts: Sequence[str], subject: Sequence[JudgedWord]) -> bool:
    """Whether a key is about a person or contains a name."""
    if not _PERSONAL_KEY.isdisjoint(parts):
        return True
    if not _CONTACT_KEY.isdisjoint(parts) and _BUSINESS_KEY.isdisjoint(parts):
        return True
    return bool(names_among(subject))


def _is_about_somebody(
    parts: Sequence[str], subject: Sequence[JudgedWord], words: Sequence[JudgedWord]
) -> bool:
    """Whether a key is about a person, or contains a possible name that is not a company's in `words`."""
    named = set(unknown_names(subject, company=False)) - {word.text for word in words}
    if named or not NAMES.isdisjoint(parts):
        return True
    # "pet_policy" and "booking_fee" are a business's
    theirs = _PERSONAL_KEY - (_EITHERS_KEY if not _FIRM_KEY.isdisjoint(parts) else _UNSURE_KEY)
    return not theirs.isdisjoint(parts)


def holds_secret(text: str, *, masked: bool = False) -> bool:
    """Whether `text` contains a secret or the marker of one; with `masked`, only markers are looked for."""
    return MARKER.search(text) is not None or (not masked and bool(mask(text).found))


def says_something(words: Sequence[JudgedWord]) -> bool:
    """Whether there are words beyond those that lead up to a placeholder."""
    told = (word.text for word in words if word.text[0].isalnum())
    return any(text not in _LEADS and text not in STOP for text in told)


def hides_something(text: str) -> bool:
    """Whether `text` has characters that a reader does not see but a program can read."""
    return bool(_TAGS.search(text)) or any(
        unicodedata.category(character) in _HIDING for character in text if not character.isascii()
    )
