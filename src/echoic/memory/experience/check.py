"""Whether a lesson may be shared: general, in ordinary words, and about no particular person. Rules only,
pure.

The same text always gets the same answer, and any doubt is an objection: losing a lesson costs little,
revealing a secret costs much.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from echoic.english.lexicon import COMMON
from echoic.memory.sharing.gate import contacts, hides_something, holds_secret
from echoic.memory.sharing.person_names import (
    LISTS,
    NAMES,
    VOCABULARY,
    JudgedWord,
    about_a_person,
    names_among,
    stem,
    stems,
    words_of,
)
from echoic.text import word_lists
from echoic.text.analysis import cut

MAX_LESSON_CHARACTERS: Final = 240
"""One sentence, two at most. The limit also bounds the cost of checking a hostile text."""

_SIGNS = re.compile(r"[^\w\s.,;:!?'’\"“”()/&%+–—-]")
_DIGITS = re.compile(r"[^\W\d_]*\d[\w.,:/-]*\d|\d{2,}")
_IDENTIFIER = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
# A lesson may mention callers in general; these words mean a particular person.
_SOMEONE = frozenset("he him his himself she her hers herself i me my mine myself i'm i've i'd i'll".split())
_ANYBODY = frozenset(
    """we us our ours ourselves you your yours yourself yourselves they them their theirs themselves who whom
    whose someone somebody everybody nobody""".split()
)
_SERVED = frozenset("user caller customer client guest person patient member visitor".split())
_SOMEBODY = _SERVED | frozenset(
    """tenant resident passenger traveler traveller student pupil driver rider buyer seller shopper viewer
    subscriber listener regular neighbor neighbour lawyer teacher doctor nurse engineer owner employee
    colleague man woman lady gentleman boy girl guy child kid baby teenager couple family""".split()
)
_BESIDE = frozenset("from in at of with on by upstairs downstairs next".split())
_DEFINITE = frozenset("the this that our".split())
_SUPPOSING = frozenset(
    """when whenever if once until unless after before while whether what whatever which how why where
    because since as than""".split()
)
_STATES = frozenset(
    """is was are were isn't wasn't has had hasn't hadn't does doesn't did didn't will would can can't cannot
    could may might must should said told asked went came lives works wants likes loves hates prefers
    """.split()
)
_PAST = frozenset("was were wasn't had hadn't did didn't said told asked went came".split())
_DEFINING = frozenset("who whose".split())
_REASONS = frozenset("because since as".split())
_AT_ALL_TIMES = frozenset("when whenever if once until unless before while whether".split())
"""Words that introduce what holds every time; "because" would tell of one time."""
_OF_THE_SERVICE: Final = {
    stem: (stems(before), stems(after))
    for stem, before, after in (
        ("relat", "", "date day time size position term price order importance weight path phrase"),
        ("pain", "", "point"),
        (
            "partner",
            "",
            "programme program discount offer hotel airline restaurant store shop site api service",
        ),
        (
            "oper",
            "retry repeat batch undo cancel memory search set get delete query write read tool fail slow",
            "fail return time succeed",
        ),
    )
}
"""Stems that name families and health, with words before and after that make them terms of the service:
"relative dates", "pain points", "retry the operation"."""
_BETROTHED: Final = frozenset("to ring party dinner gift photo announcement".split())
_ITS: Final = frozenset("a an the this that their your our his her my whose".split())
_NUMBERS = frozenset(
    """zero oh one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred
    thousand double triple""".split()
)
_TENS = frozenset("twenty thirty forty fifty sixty seventy eighty ninety".split())
_UNITS = frozenset("one two three four five six seven eight nine".split())
_QUOTE: Final = 5
"""Words in a row that count as quoting somebody."""
_RUN: Final = 3
"""Number words in a row, as many as a short code has."""
_CAPITALS = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april june july august
    september october november december english ok api json faq id url urls iso sms tv pdf""".split()
)

_LISTS: Final = word_lists("echoic.memory.experience")
_STEMS: Final = stems(
    " ".join((*_LISTS.values(), *COMMON, *VOCABULARY, LISTS["known function"].replace("'", "")))
)
"""Stems of the words lessons are written in. A name that is on no list does not pass."""
_DERIVED: Final = re.compile(
    r"[a-z]{3,}[st]ions?|[a-z]{4,}i[sz]ations?|[a-z]{5,}ments?|[a-z]{4,}[ai]bilit(?:y|ies)"
    r"|[a-z]{3,}(?:i|ed|ful|ive|less|ous)ness|[a-z]{3,}(?:al|ing|ous|ive|ful|ed|less)ly"
)
"""Endings of derived nouns and adverbs. The minimum length before them excludes the names "Clement",
"Inverness" and "Kelly"."""

_PREFIXED: Final = re.compile(r"(?:re|un|mis|non|pre)([a-z]{4,})")


def objection(
    text: str, *, words: Collection[str] = (), own: Collection[str] = (), names: Collection[str] = ()
) -> str | None:
    """Why `text` may not be shared as a lesson; None if it may.

    All words are folded: `words` are additional ordinary words, `own` come from its author's memory, and
    `names` are those of the deployment's users.
    """
    if len(text) > MAX_LESSON_CHARACTERS:
        return f"it has {len(text)} characters, {MAX_LESSON_CHARACTERS} at most"
    if _SIGNS.search(text) or hides_something(text):
        return "it holds markup or hidden characters"
    if _DIGITS.search(text) or contacts(text) or holds_secret(text):
        return "it holds a number, an address or a secret"
    # the name of a tool is not personal
    said = words_of(_IDENTIFIER.sub(lambda found: found.group().replace("_", " "), text))
    return _of_a_person(said) or _of_words(said, frozenset(words), frozenset(own), frozenset(names))


def repeats(text: str, said: Iterable[str]) -> bool:
    """Whether `text` has `_QUOTE` words in a row from one of the texts in `said`."""
    words = cut(text)
    runs = {tuple(words[at : at + _QUOTE]) for at in range(len(words) - _QUOTE + 1)}
    return bool(runs) and any(
        tuple(other[at : at + _QUOTE]) in runs
        for other in map(cut, said)
        for at in range(len(other) - _QUOTE + 1)
    )


def suspects(text: str, words: Collection[str]) -> list[str]:
    """The folded words of `text` that are ordinary only because the deployment listed them."""
    return [word.text for word in words_of(text) if word.stem and word.text in words]


def _of_a_person(said: Sequence[JudgedWord]) -> str | None:
    texts = [word.text for word in said]
    if not _SOMEONE.isdisjoint(texts):
        return "it speaks of a person"
    # "friendly" has the stem of "friend" but is not a relation
    impersonal = [
        word
        for place, word in enumerate(said)
        if word.text.split("'")[0] not in _ANYBODY | {"friendly"} and not _is_of_the_service(said, place)
    ]
    if about_a_person(impersonal) in {"relation", "health"}:
        return "it speaks of somebody's family or health"
    if any(_tells(texts, place) for place in range(len(texts))):
        return "it tells of one person"
    run = 0
    for before, text in zip(["", *texts], texts, strict=False):
        run = run + 1 if text in _NUMBERS else 0
        if run >= _RUN or (before in _TENS and text in _UNITS):
            return "it holds a number, an address or a secret"
    return None


def _is_of_the_service(said: Sequence[JudgedWord], place: int) -> bool:
    """Whether a word that could be about family or health is about the service here."""
    word = said[place]
    before = [other for other in said[max(0, place - 2) : place] if other.stem]
    after = said[place + 1 : place + 2]
    if word.stem == "engag":  # "pays attention": no article and no owner
        owned = any(other.text in _ITS or other.text.endswith("'s") for other in before[-1:])
        return not owned and not any(other.text in _BETROTHED for other in after)
    if word.stem == "relat" and word.text not in {"relative", "relatives"}:
        return True
    around = _OF_THE_SERVICE.get(word.stem)
    return around is not None and (
        any(other.stem in around[0] for other in before) or any(other.stem in around[1] for other in after)
    )


def _tells(texts: Sequence[str], place: int) -> bool:
    """Whether "the caller" at `place` is a particular person, rather than any caller."""
    bare = texts[place].removesuffix("'s")
    if bare not in _SOMEBODY or place == 0 or texts[place - 1] not in _DEFINITE:
        return False
    if place > 1 and texts[place - 2] in _SUPPOSING:
        return False
    # "the caller wants", "the caller's order was", "the caller always asks"
    behind = texts[place + 1 : place + 4]
    if not _BESIDE.isdisjoint(behind[:1]):  # "the lawyer from the second floor is"
        behind = texts[place + 1 : place + 8]
        if place == 1 and any(text.endswith("s") and ordinary(text) for text in behind):
            return True  # "the tenant in apartment two pays"
    if not _DEFINING.isdisjoint(behind[:1]):  # "the caller who complained": that one
        return True
    # "asking the caller works", "wait for the caller when they are busy": any caller, every time
    doing = texts[0].endswith("ing") and ordinary(texts[0]) and _REASONS.isdisjoint(texts)
    each_time = place > 1 and not _AT_ALL_TIMES.isdisjoint(behind[:1])
    if (doing or each_time) and _PAST.isdisjoint(texts):
        return False
    return any(text in _STATES for text in behind) or (
        bool(behind) and behind[0].endswith("s") and ordinary(behind[0]) and texts[place] == bare
    )


def _of_words(
    said: Sequence[JudgedWord], words: frozenset[str], own: frozenset[str], names: frozenset[str]
) -> str | None:
    doubtful = set(names_among(said))
    for word in said:
        bare = word.text.removesuffix("'s").removesuffix("'")
        if not word.stem or (bare in words and bare not in own | names):
            continue
        if bare in own:
            return "it holds a word from its author's own memory"
        if word.capital and not word.opens and bare not in _CAPITALS:
            return "it holds what may be a name"
        if bare in NAMES and word.text in doubtful:
            return "it holds what may be a name"
        if bare in words or not ordinary(word.text):
            return "it holds a word that is not known to be an ordinary one"
    return None


def ordinary(word: str) -> bool:
    """Whether a folded word belongs to the ordinary vocabulary of lessons."""
    bare = word.removesuffix("'s").removesuffix("'")
    parts = [part for part in bare.replace(".", "-").split("-") if part]
    return all(_is_known(part) for part in parts)


def _is_known(part: str) -> bool:
    if stem(part) in _STEMS or _DERIVED.fullmatch(part):
        return True
    again = _PREFIXED.fullmatch(part)
    return again is not None and stem(again[1]) in _STEMS
