"""The query: its words, its vector, and what its wording implies about the answer. Pure; independent of
rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from echoic.errors import InvalidInput
from echoic.partition import Pieces
from echoic.ranking.fuzzy import NEAR_SOUND_SPELLING, SAME_SOUND_SPELLING, alike
from echoic.ranking.indexing import AGENT, USER
from echoic.temporal import NamedDate, Span, dates_in
from echoic.text import STOP, Word, content_words, cut, sound, word_of

MAX_WORDS = 128
"""Content words of a query that are looked up, the first ones."""

Name = tuple[str, ...]
"""The words of a speaker's name, folded."""

_LEAST_LETTERS = 3
_LEAST_CODE = 2
_BEFORE_A_PERSON = frozenset(
    "did does do has have had is are was were will would can could should might and to with from".split()
)
_POSSESSIVE = "'s"

_ME = frozenset("i me my mine myself i'm i've i'd i'll im ive we us our ours ourselves we're we've".split())
_YOU = frozenset("you your yours yourself you're you've you'd you'll youre youve".split())
_CALLER = frozenset("user user's users caller caller's customer customer's".split())

# How people wrap a question when they speak. "Can you tell me" names neither the asker nor the asked.
_WRAPPING = re.compile(
    r"\s*(?:(?:hey|hi|hello|ok|okay|so|well|um+|uh+|and|but|please|sorry|now)\b[\s,.!-]*)*"
    r"(?:(?:can|could|would|will|do|did) you (?:please |still |happen to |maybe )*"
    r"(?:tell|remind|remember|know|recall)(?: me)?(?: again)?(?: please)?"
    r"|(?:tell|remind) me(?: again)?"
    r"|i (?:wonder|forgot|forget|have forgotten|can't remember|cannot remember|don't remember|don't know)"
    r"|i(?:'d| would) like to know|i want to know)\b[\s,:]*",
    re.IGNORECASE,
)
_WRITTEN = re.compile(r"[^\W\d_][\w'’]*")


_ASKS_WHEN = re.compile(r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bhow (?:long|old)\b", re.IGNORECASE)
# A noun in the plural ("what books …", "which of her hobbies …"), or a word for all there is. Of LoCoMo's
# development half it marks 15 % of the questions, with 2.6 turns of evidence on average; the others have 1.2.
_NO_PLURAL = r"(?!(?:was|is|does|has|this|his|its|always|ours|yours|hers|theirs|news|series)\b)"
_PLURAL = rf"{_NO_PLURAL}(?:people|children|[a-z'’-]{{2,}}(?<![sui'’])s)"
_WHOSE = r"all|some|the|my|your|our|his|her|their|of"
_ASKS_LIST = re.compile(
    rf"\b(?:what|which)(?: of)?(?: (?:{_WHOSE}|other|kinds?|types?|sorts?))*(?: [a-z'’-]+){{0,2}}? {_PLURAL}"
    r" (?:did|do|does|have|has|had|are|were|is|was|can|could|will|would|should|might|i|you|we|they|he|she)\b"
    rf"|\bwhat (?:are|were) (?:(?:{_WHOSE}|[a-z]+['’]s) )+(?:[a-z-]+ )?{_PLURAL}\b"
    r"|\b(?:what|which) (?:kinds|types|sorts) of\b"
    r"|\b(?:list|name|tell me) (?:all|every|the names of)\b|\bhow many\b|\bwho all\b|\bwhat else\b"
    r"|\b(?:everything|everyone|everybody|all the things)\b",
    re.IGNORECASE,
)
_ASKS_MANY = re.compile(r"\bhow (?:many|much|often)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    """A question, analysed once for all channels. Created by `query_of`."""

    text: str
    words: tuple[Word, ...]
    """Content words in order, repeated words repeated, at most `MAX_WORDS`."""
    folded: tuple[str, ...]
    """All words in order, folded, without the wrapping ("can you tell me")."""
    vector: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    """[d], unit length; None if it is not ready or not wanted."""
    pieces: Pieces | None = field(default=None, compare=False, repr=False)
    """The word pieces of the vector; None if the embedder returns none."""
    shipped: bool = True
    """Whether all-MiniLM-L6-v2 made the vector, for which more is known than cosines."""
    include_past: bool = False
    """Whether past memories may be found too."""
    wants_past: bool = False
    """Whether past memories are asked for, so that they rank no lower than current ones."""
    names: frozenset[str] = frozenset()
    """Content words, folded, that are written like names."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """Words as heard, folded, with the speakers' names they were corrected to; see `heard_right`."""
    called: tuple[tuple[int, str], ...] = ()
    """Speakers the question calls by name: the number of each, and the folded word that does it."""
    dates: tuple[NamedDate, ...] = ()
    """Dates named explicitly."""
    spans: tuple[Span, ...] = ()
    """Spans of time that the text means, resolved by the caller; used instead of `dates`."""
    role: str | None = None
    """"user" or "agent" if "I" or "you" says whose words are asked for."""
    asks_when: bool = False
    asks_many: bool = False


def query_of(
    text: str,
    vector: NDArray[np.float32] | None = None,
    *,
    pieces: Pieces | None = None,
    include_past: bool = False,
    wants_past: bool = False,
    spans: tuple[Span, ...] = (),
    shipped: bool = True,
) -> Query:
    """`text` as a query.

    Args:
        text: any Unicode; without content words only a vector can find something.
        vector: [d], of the model of the rows' vectors. Brought to unit length.
        pieces: the word pieces of exactly this text, if the rows have theirs.
        include_past: find memories that no longer hold, too.
        wants_past: past memories are asked for.
        spans: (first, last) in Unix ms, for "last Tuesday" and the like.
        shipped: whether all-MiniLM-L6-v2 made `vector`.

    Raises:
        InvalidInput: `vector` is not a vector of finite numbers, or a span ends before it begins.
    """
    for first, last in spans:
        if last < first:
            raise InvalidInput(
                f"a span ends before it begins: ({first}, {last}). Give (first, last) in Unix ms."
            )
    asked = _unwrapped(text)
    capitalised = [word for word in _WRITTEN.findall(asked) if word[0].isupper()]
    folded, names, dates = cut(asked), cut(" ".join(capitalised)), dates_in(asked)
    words = [word_of(word) for word in folded if word not in STOP]
    return Query(
        text=text,
        words=tuple(words[:MAX_WORDS]),
        folded=tuple(folded),
        vector=None if vector is None else _unit(vector),
        shipped=shipped,
        pieces=pieces if pieces is not None and len(pieces.spans) else None,
        include_past=include_past or wants_past,
        wants_past=wants_past,
        names=frozenset(names) - STOP,
        dates=dates,
        spans=tuple(spans),
        role=_role(folded),
        asks_when=asks_when(asked),
        asks_many=asks_many(asked),
    )


def asks_when(text: str) -> bool:
    """Whether the question `text` asks for a time or a duration."""
    return _ASKS_WHEN.search(text) is not None


def asks_many(text: str) -> bool:
    """Whether the question `text` asks for a number."""
    return _ASKS_MANY.search(text) is not None


def asks_list(text: str) -> bool:
    """Whether the question `text` asks for several things: a list, or a number to be counted."""
    return _ASKS_LIST.search(text) is not None


def _unwrapped(text: str) -> str:
    wrapping = _WRAPPING.match(text)
    rest = text[wrapping.end() :] if wrapping else ""
    return rest if rest and content_words(rest) else text


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    given = np.asarray(vector, np.float32)
    length = float(np.sqrt(np.vdot(given, given)))
    if given.ndim != 1 or not given.size or not (isfinite(length) or np.isfinite(given).all()):
        raise InvalidInput(
            f"a query vector must be one row of finite numbers, not of shape {given.shape}. "
            "Leave it out to search by words alone."
        )
    return given / np.float32(length) if length else given


def _role(words: list[str]) -> str | None:
    me, you = not _ME.isdisjoint(words), not _YOU.isdisjoint(words)
    if me == you:
        return USER if not me and not _CALLER.isdisjoint(words) else None
    return USER if me else AGENT


def heard_right(query: Query, known: Mapping[int, Name], said: Callable[[Word], bool] | None = None) -> Query:
    """`query` with the speakers it names, and with misheard names of speakers corrected.

    A recogniser writes words it knows: "garlic" for Caroline. If a question names no speaker as spelled, its
    words are compared by sound: first those in the position of a person ("when did garlic move?", "garlic's
    job"), and if none matches, any word with a similar spelling too. Only names of speakers (`known`, by
    number) are corrected, and no word that is `said`; other misheard words are found through near words.
    LoCoMo with every name misheard: R@10 81, without this 79.5; clean questions are not affected.
    """
    if not known:
        return query
    called = _calls(query.folded, known)
    if called:
        return replace(query, called=called)
    meant = _meant(query.folded, list(known.values()), said)
    if not meant:
        return query
    words = tuple(word_of(meant.get(word.text, word.text)) for word in query.words)
    folded = tuple(meant.get(word, word) for word in query.folded)
    return replace(query, words=words, folded=folded, meant=meant, called=_calls(folded, known))


def _calls(folded: Sequence[str], known: Mapping[int, Name]) -> tuple[tuple[int, str], ...]:
    """Speakers called by name, as spelled or, if none is, shortened: number and word."""
    words = [(word, word.removesuffix(_POSSESSIVE)) for word in folded if word not in STOP]
    return tuple(
        (number, word) for number, name in known.items() for word, bare in words if bare in name
    ) or tuple(
        (number, word)
        for number, name in known.items()
        for word, bare in words
        if any(_shortens(bare, part) for part in name)
    )


def _meant(
    folded: Sequence[str], names: Sequence[Name], said: Callable[[Word], bool] | None
) -> dict[str, str]:
    """Words and the name each is taken for, if it is only one."""
    parts = sorted({part for name in names for part in name if len(part) >= _LEAST_LETTERS})
    persons: dict[str, str] = {}
    others: dict[str, str] = {}
    for before, word in zip(("", *folded), folded, strict=False):
        bare = word.removesuffix(_POSSESSIVE)
        if len(bare) < _LEAST_LETTERS or bare in STOP:
            continue
        person = before in _BEFORE_A_PERSON or bare != word
        near = sorted(
            (apart, -alike(bare, part), part)
            for part in parts
            if (apart := _apart(bare, part, person=person)) is not None
        )
        if not near or (said is not None and said(word_of(word))):
            continue
        if len(near) == 1 or near[0][:2] < near[1][:2]:
            (persons if person else others)[word] = near[0][2] + word[len(bare) :]
    return persons or others


def _apart(word: str, name: str, *, person: bool) -> int | None:
    """By how many sounds they differ, 0 or 1; None if it cannot be meant."""
    apart = min((_codes_apart(a, b) for a in sound(word) for b in sound(name)), default=2)
    if apart > 1:
        return None
    if person:
        return apart
    if apart and word[0] != name[0]:
        return None
    return apart if alike(word, name) >= (NEAR_SOUND_SPELLING if apart else SAME_SOUND_SPELLING) else None


def _codes_apart(code: str, other: str) -> int:
    if code[0] != other[0] or min(len(code), len(other)) < _LEAST_CODE:
        return 0 if code == other else 2
    return Levenshtein.distance(code, other)


def _shortens(word: str, name: str) -> bool:
    # "Mel" of Melanie, or a name that ran together with what follows ("Johns")
    return (len(word) >= _LEAST_LETTERS and name.startswith(word)) or word in {name + "s", name + "es"}
