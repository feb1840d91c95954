"""What may become global: facts about the business. Everything else, and every doubt, stays private.

Rules over words, the same answer each time. A text states a known kind of fact if it is said entirely in
words of trade and has nothing of a person in it (`evidence`). What only looks like business (`business`) is
global for the reason "business", which waits for an operator by default. `Classifier` is the seam for a model
in the place of the rules; `personal` is what it cannot overrule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol, get_args, runtime_checkable

from echoic.errors import InvalidInput, brief
from echoic.memory.sharing.business import looks_like_business, personal_in
from echoic.memory.sharing.evidence import fact_in
from echoic.memory.sharing.names import NAMES
from echoic.memory.sharing.persons import about_a_person
from echoic.memory.sharing.redaction import redact
from echoic.memory.sharing.wording import Word, names_among, unknown_names, words_of
from echoic.secrets.findings import Kind, Redacted

Shared = Literal["global", "private"]

MAX_FACT_CHARACTERS = 1000
"""A fact is a sentence or two. The limit also bounds what judging a hostile text costs an event loop."""

REASONS: Mapping[str, str] = MappingProxyType(
    {
        # global
        "hours": "when the business, or a part of it, is open",
        "price": "what something costs",
        "policy": "what is allowed, required, accepted or refunded",
        "product": "what something on sale is, has or comes with",
        "location": "where a part of the business is",
        "contact": "how the business is reached",
        "menu": "what there is to eat and drink",
        "event": "what takes place at the business, and when",
        "procedure": "how something of the business is done",
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
        "failed": "a classifier failed, and what could not be judged stays private",
        "model": "another classifier judged it; it gave no reason of these",
        "asked": "whoever set it asked for it to be private",
        "pending": "another classifier is still being asked about it",
    }
)
"""Every reason a verdict may give, and what it means."""

# What the business itself has; any other kind of finding belongs to a person.
_OF_BUSINESS: frozenset[Kind] = frozenset({"PHONE", "EMAIL", "ADDRESS"})

_KEY_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_PERSONAL_KEY = frozenset(
    """user users my name names surname nickname firstname lastname username fullname preference
    preferences prefers prefer preferred favorite favorites favourite favourites like likes dislike
    dislikes birthday birthdate birth dob age gender sex caller customer client guest patient member
    person contact profile self owner mother father mom dad parent parents wife husband spouse partner
    child children kid kids son daughter brother sister sibling family friend boss colleague doctor pet
    dog cat home house apartment job occupation employer salary income religion health allergy allergies
    diet medical medication diagnosis condition insurance account card password passcode pin secret token
    ssn passport license id identity relationship status mood goal goals plan plans hobby hobbies interest
    interests language nationality location lives order orders booking reservation appointment trip
    history note notes reminder todo me her his their our""".split()
)
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
_FIRM_KEY = frozenset(
    """policy policies fee fees price prices pricing discount discounts hours service services support faq
    company business store shop opening menu rules deposit program programme cancellation""".split()
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who may hear of a text, and why.

    Raises:
        InvalidInput: the visibility or the reason is not one of those documented.
    """

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


@runtime_checkable
class Classifier(Protocol):
    """Judges whether a text may become global.

    May raise anything; `Together` takes that for private.
    """

    async def classify(self, text: str, key: str | None) -> Verdict:
        """The verdict on `text`, remembered under `key`."""
        ...


class RuleClassifier:
    """`classify` as a `Classifier`."""

    async def classify(self, text: str, key: str | None) -> Verdict:
        """See `classify`; never fails."""
        return classify(text, key)


class Together:
    """Several classifiers as one: global only where all of them say so."""

    def __init__(self, *classifiers: Classifier) -> None:
        if not classifiers:
            raise InvalidInput("no classifier was given: pass RuleClassifier() at least")
        self._classifiers = classifiers

    async def classify(self, text: str, key: str | None) -> Verdict:
        """The verdict all agree on. Later classifiers are not asked about what is private already."""
        verdict = await self._ask(self._classifiers[0], text, key)
        for classifier in self._classifiers[1:]:
            if verdict.visibility == "private":
                break
            verdict = agree(verdict, await self._ask(classifier, text, key))
        return verdict

    async def _ask(self, classifier: Classifier, text: str, key: str | None) -> Verdict:
        try:
            return await classifier.classify(text, key)
        except Exception:  # noqa: BLE001 - whatever a model or its driver raises, the text stays private
            return Verdict("private", "failed")


def agree(a: Verdict, b: Verdict) -> Verdict:
    """The verdict of two: global only where both say so; else the first private one, with its reason."""
    return next((verdict for verdict in (a, b) if verdict.visibility == "private"), a)


def classify(text: str, key: str | None) -> Verdict:
    """Whether `text`, remembered under `key`, is a fact about the business that everyone may hear.

    Deterministic. Judged are the words after redaction. What is not English is private, and so is what is
    longer than `MAX_FACT_CHARACTERS`.
    """
    if len(text) > MAX_FACT_CHARACTERS:
        return Verdict("private", "doubt")
    return judge(redact(text), key)


def judge(redacted: Redacted, key: str | None) -> Verdict:
    """`classify`, of a text that was redacted before."""
    if len(redacted.text) > 2 * MAX_FACT_CHARACTERS:
        return Verdict("private", "doubt")
    if not _OF_BUSINESS.issuperset(redacted.kinds):
        return Verdict("private", "identifier")
    words = words_of(redacted.text)
    subject = words_of(" ".join(key_parts(key))) if key else []
    known = _known_kind(redacted, key, words, subject)
    if known.visibility == "global" or personal(redacted, key) is not None:
        return known
    return Verdict("global", "business") if looks_like_business(words, subject) else known


def personal(redacted: Redacted, key: str | None) -> str | None:
    """Why a text that was redacted before, under `key`, stays private whatever another classifier says of it;
    None where it may decide.
    """
    if not _OF_BUSINESS.issuperset(redacted.kinds):
        return "identifier"
    words = words_of(redacted.text)
    if key is not None and _is_about_somebody(key, words):
        return "key"
    return personal_in(words)


def _known_kind(
    redacted: Redacted, key: str | None, words: Sequence[Word], subject: Sequence[Word]
) -> Verdict:
    """Global only where nothing in a text may be personal and the rules know what kind of fact it states."""
    if key is not None and _is_personal_key(key):
        return Verdict("private", "key")
    against = about_a_person(words)
    if against is not None:
        return Verdict("private", against)
    if names_among(words):
        return Verdict("private", "name")
    fact = fact_in(words, subject, contact=bool(redacted.found))
    return Verdict("global", fact) if fact else Verdict("private", "doubt")


def key_parts(key: str) -> list[str]:
    """The words of a key, in lower case: "storeHours" and "store_hours" are "store", "hours"."""
    return [part.lower() for part in _KEY_PART.findall(key)]


def _is_personal_key(key: str) -> bool:
    """Whether a key speaks of a person, holds a name or a long number, or says nothing that can be read."""
    parts = key_parts(key)
    if not parts or not _PERSONAL_KEY.isdisjoint(parts):
        return True
    if not _CONTACT_KEY.isdisjoint(parts) and _BUSINESS_KEY.isdisjoint(parts):
        return True
    if any(part.isdecimal() and len(part) > 4 for part in parts) or not key.isascii():
        return True
    return bool(redact(key).found) or bool(names_among(words_of(" ".join(parts))))


def _is_about_somebody(key: str, words: Sequence[Word]) -> bool:
    """Whether a key speaks of a person, or holds what may be a name and stands not as a firm's in `words`."""
    parts = key_parts(key)
    if not parts or not key.isascii() or redact(key).found:
        return True
    if any(part.isdecimal() and len(part) > 4 for part in parts):
        return True
    named = set(unknown_names(words_of(" ".join(parts)), company=False)) - {word.text for word in words}
    if named or not NAMES.isdisjoint(parts):
        return True
    # "pet_policy" and "booking_fee" are a business's
    theirs = _PERSONAL_KEY - (_EITHERS_KEY if not _FIRM_KEY.isdisjoint(parts) else _UNSURE_KEY)
    return not theirs.isdisjoint(parts)


__all__ = [
    "MAX_FACT_CHARACTERS",
    "REASONS",
    "Classifier",
    "RuleClassifier",
    "Shared",
    "Together",
    "Verdict",
    "agree",
    "classify",
    "judge",
    "key_parts",
    "personal",
]
