"""The gate between private and global: classify, take personal data out, look once more. Decides; stores
nothing.

Where the answer is no `Shareable` the text stays private, as at every doubt. What passes here is still
only a candidate: who may promote it is policy, elsewhere.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Protocol

from echoic.memory.sharing.classify import MAX_FACT_CHARACTERS, Verdict, judge, key_parts, personal
from echoic.memory.sharing.redaction import redact
from echoic.memory.sharing.stated import kinds_stated
from echoic.memory.sharing.wording import words_of
from echoic.secrets.findings import PLACEHOLDER, Kind, Redacted
from echoic.secrets.spoken import readings, tokens
from echoic.secrets.views import written
from echoic.words import content_words

# What is left of "the phone number is [PHONE]": words that only lead up to what was taken out.
_LEADS = frozenset(
    """phone telephone number line hotline fax email mail e address call contact reach dial text located
    location at on website site page link""".split()
)
# Seven digits with hardly a sign between them are some number of somebody's, whatever it is called; what a
# business says of itself in numbers are prices, times and sizes.
_LONG_NUMBER = re.compile(r"[0-9](?:[ ./()-]{0,3}[0-9]){6}")
_TIME = re.compile(r"(?<![0-9.])(?:[01]?[0-9]|2[0-4])[.:][0-5][0-9](?![0-9]|[.][0-9])")
# Private use, unassigned, half characters; and tags and selectors, in which a text can hide.
_HIDING = frozenset({"Co", "Cn", "Cs"})
_TAGS = re.compile("[\U000e0000-\U000e0fff]")


class Redactor(Protocol):
    """Takes personal data out of a text, as `redact` does; `PresidioRedactor` is another."""

    def __call__(self, text: str, *, region: str | None = None) -> Redacted:
        """`text` without personal data, and what was found in it."""
        ...


@dataclass(frozen=True, slots=True)
class Shareable:
    """A text that may become global."""

    text: str
    """Without personal data."""
    key: str | None
    kinds: tuple[Kind, ...]
    """What was taken out of it, each kind once."""
    reason: str
    """Why it may, one of `REASONS`."""
    states: frozenset[str] = field(default=frozenset({"other"}), compare=False)
    """Each of `GLOBAL_KINDS` that it states."""


def share(
    text: str,
    key: str | None,
    *,
    region: str | None = None,
    verdict: Verdict | None = None,
    redactor: Redactor = redact,
) -> Shareable | None:
    """`text` as it may become global; None where it must stay private.

    Costs well under a millisecond for a sentence; texts longer than `MAX_FACT_CHARACTERS` are not looked at.

    Args:
        text: what was said or written.
        key: what it is remembered under.
        region: as for `redact`.
        verdict: of another classifier, which then decides instead of the rules. What is personal it cannot
            share.
        redactor: what takes personal data out; the rules look at its result once more.

    Raises:
        InvalidInput: no country with telephone numbers has the code `region`.
    """
    weighed = weigh(text, key, region=region, verdict=verdict, redactor=redactor)
    return weighed if isinstance(weighed, Shareable) else None


def weigh(
    text: str,
    key: str | None,
    *,
    region: str | None = None,
    verdict: Verdict | None = None,
    redactor: Redactor = redact,
) -> Shareable | Verdict:
    """`share`, with the reason where the text must stay private."""
    if len(text) > MAX_FACT_CHARACTERS:
        return Verdict("private", "doubt")
    redacted = redactor(text, region=region)
    judged = ruled = judge(redacted, key)
    if verdict is not None and verdict.visibility == "private":
        judged = verdict
    elif verdict is not None and ruled.visibility == "private":
        vetoed = personal(redacted, key)
        judged = verdict if vetoed is None else Verdict("private", vetoed)
    if judged.visibility == "private":
        return judged
    if not _is_clean(redacted.text, key, region):
        return Verdict("private", "doubt")
    subject = words_of(" ".join(key_parts(key))) if key else []
    states = kinds_stated(words_of(redacted.text), subject)
    if ruled.visibility == "private" or ruled.reason == "business":
        states |= {"other"}  # whatever kinds it touches, the rules do not understand it as a whole
    return Shareable(redacted.text, key, redacted.kinds, judged.reason, states)


def _is_clean(text: str, key: str | None, region: str | None) -> bool:
    """Whether nothing personal is left in what is about to be shared, and something else is."""
    rest = PLACEHOLDER.sub(" ", text)
    if not says_something(rest) or hides_something(text) or redact(text, region=region).found:
        return False
    if has_long_number(PLACEHOLDER.sub("", text)):
        return False
    return key is None or not (hides_something(key) or redact(key, region=region).found)


def says_something(text: str) -> bool:
    """Whether anything is said in `text` beyond words that lead up to a placeholder."""
    return any(word.text not in _LEADS for word in content_words(text))


def has_long_number(text: str) -> bool:
    """Whether so many digits stand in `text`, written or said, that they can only be somebody's."""
    view = written(text)
    all_readings = (view, *readings(view, tokens(view.text)))
    return any(_LONG_NUMBER.search(_TIME.sub(":", reading.text)) for reading in all_readings)


def hides_something(text: str) -> bool:
    """Whether `text` has characters that a reader does not see but a program can read."""
    return bool(_TAGS.search(text)) or any(
        unicodedata.category(character) in _HIDING for character in text if not character.isascii()
    )


__all__ = ["Redactor", "Shareable", "share", "weigh"]
