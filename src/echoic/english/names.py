"""Names of people, and where the name of a place or a firm ends, with and without capitals.

A word is a name only on evidence. `stated` reads where only a name can follow ("my name is …"); `claimed`
reads where almost anything may follow ("I'm …"), so capitals, a greeting, a known name or the next word must
prove it. With capitals, a name is the run of capitals; without, the words up to the grammar or an ordinary
English word.
"""

from __future__ import annotations

import re
from typing import Final

from echoic.english.lexicon import AMBIGUOUS, DAYS, DEMONYMS, FUNCTION, GIVEN, wordlike, words
from echoic.english.phrases import Value
from echoic.english.sentences import Sentence, Token

# -- names

PARTICLES: Final = words("names.particles")
TITLES: Final = words("names.titles")

_MAX_NAME_WORDS: Final = 6
_NAMELIKE: Final = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*")
_MUD: Final = words("names.mud")
# Words that follow a name given in passing: the next clause, a purpose, a place.
_CLOSERS: Final = words("names.closers")
_SPELLING: Final = re.compile(r"(?:(?:that's|it's|is|which is|and it's|and that's|spelled|spelt) ){0,2}")


def stated(said: Sentence, at: int) -> Value | None:
    """The name at `at`, where only a name or a remark about names can follow; None for the remark."""
    spelled = spelled_out(said, at)
    if spelled:
        return spelled
    found = _capital_run(said, at) if said.cased else _plain_run(said, at, limit=4)
    if found is None and said.cased and said.low(at) in GIVEN:
        found = _plain_run(said, at, limit=4)
    if found is None or said.low(at) in _MUD:
        return None
    return _respelled(said, found, at)


def claimed(said: Sentence, at: int, *, greeted: bool) -> Value | None:
    """The name at `at`, the word after "I'm", where anything could follow.

    `greeted`: only a greeting came before, after which people give their names.
    """
    if said.low(at) in DEMONYMS or said.low(at) in _MUD:
        return None
    if said.cased:
        found = _capital_run(said, at)
        acronym = said.tokens[at].text.isupper() if at < len(said) else True
        closed = found is not None and (said.gap(found.end) or said.low(found.end) in FUNCTION)
        alone = found is not None and found.end == at + 1
        found = found if closed and not (acronym and alone and not said.tokens[at].foreign) else None
    else:
        found = _claimed_plain(said, at, greeted=greeted)
    return _respelled(said, found, at) if found else None


def _claimed_plain(said: Sentence, at: int, *, greeted: bool) -> Value | None:
    if said.low(at) in AMBIGUOUS and not greeted:
        return None
    known = said.low(at) in GIVEN or (at < len(said) and said.tokens[at].foreign)
    found = _plain_run(said, at, limit=3 if known else 2)
    if found is None:
        return None
    ends = found.end >= len(said)
    followed = said.low(found.end) in _CLOSERS or (said.gap(found.end) and not ends)
    if known:
        return found if ends or followed or said.low(found.end) in FUNCTION else None
    return found if followed or (greeted and ends) else None


def name_list(said: Sentence, at: int) -> tuple[list[str], int]:
    """Names joined by commas and "and": the names, and where they ended."""
    names: list[str] = []
    index = at
    while index < len(said) and len(names) < 12:
        start = index + (said.low(index) == "and" and bool(names))
        found = _capital_run(said, start) if said.cased else _plain_run(said, start, limit=1)
        if found is None:
            break
        names.append(found.text)
        index = found.end
    return names, index


def known_or_capital(said: Sentence, at: int) -> Value | None:
    """One name where an ordinary word is likelier: written as one, or a known name."""
    if said.cased:
        return _capital_run(said, at)
    return _plain_run(said, at, limit=1) if said.low(at) in GIVEN else None


def spelled_out(said: Sentence, at: int) -> Value | None:
    """A name given letter by letter: "p a v e l" or "S-I-O-B-H-A-N"."""
    letters, index = "", at
    while index < len(said):
        word = said.low(index)
        if word == "double" and len(said.low(index + 1)) == 1:
            letters, index = letters + said.low(index + 1) * 2, index + 2
        elif re.fullmatch(r"[^\W\d_](?:-[^\W\d_])*", word):
            letters, index = letters + word.replace("-", ""), index + 1
        else:
            break
    return Value(letters.capitalize(), index) if len(letters) >= 3 else None


def _respelled(said: Sentence, found: Value, at: int) -> Value:
    """`found`, with its last word replaced by a spelling that follows."""
    skipped = said.match(_SPELLING, found.end)
    start = said.at.get(skipped.end(), found.end) if skipped else found.end
    spelled = spelled_out(said, start)
    if spelled is None:
        return found
    head, _, last = found.text.rpartition(" ")
    if not last or spelled.text[0].lower() != said.low(at if not head else found.end - 1)[:1]:
        return found
    same = spelled.text.lower() == last.lower()
    return Value(f"{head} {last if same else spelled.text}".strip(), spelled.end)


def _capital_run(said: Sentence, at: int) -> Value | None:
    """Words written as a name, with particles ("van der") and a title before them."""
    index = at
    if said.low(index) in TITLES and index + 1 < len(said) and said.tokens[index + 1].capital:
        index += 1
    if index >= len(said) or not _may_begin(said.tokens[index]):
        return None
    index += 1
    while index < min(len(said), at + _MAX_NAME_WORDS):
        step = _next_capital(said, index)
        if not step:
            break
        index += step
    if any(said.low(i).endswith("'s") for i in range(at, index)):
        return None
    return Value(said.text(at, index), index)


def _may_begin(token: Token) -> bool:
    return (
        token.capital and (token.foreign or not wordlike(token.low)) and bool(_NAMELIKE.fullmatch(token.text))
    )


def _next_capital(said: Sentence, index: int) -> int:
    """How many words continue a name at `index`: 0, 1, or more where particles lead to a capital."""
    ahead = index
    while ahead < min(len(said), index + 3) and said.low(ahead) in PARTICLES and not said.gap(ahead):
        ahead += 1
    if ahead >= len(said) or said.gap(ahead):
        return 0
    token = said.tokens[ahead]
    ordinary = token.low in FUNCTION and token.low not in AMBIGUOUS
    good = token.capital and not ordinary and bool(_NAMELIKE.fullmatch(token.text))
    return ahead + 1 - index if good else 0


def _plain_run(said: Sentence, at: int, *, limit: int) -> Value | None:
    """Words that no list has as English, in a text without capitals; None if more than `limit`."""
    index = at
    while index < len(said) and not (index > at and said.gap(index)):
        word = said.low(index)
        particle = (
            index > at and word in PARTICLES and not wordlike(said.low(index + 1)) and said.low(index + 1)
        )
        if not particle and (wordlike(word) or not _NAMELIKE.fullmatch(word) or _too_short(said, index)):
            break
        index += 1
    if index == at or index - at > limit + any(said.low(i) in PARTICLES for i in range(at, index)):
        return None
    return Value(titled(said.tokens[at:index]), index)


def _too_short(said: Sentence, index: int) -> bool:
    token = said.tokens[index]
    return len(token.low) < 2 and not token.foreign


def titled(tokens: tuple[Token, ...]) -> str:
    """The words with the capitals of a name: "o'brien" is O'Brien, "van der berg" keeps its particles."""
    words = [token.text for token in tokens]
    return " ".join(w if i and w in PARTICLES else _title(w) for i, w in enumerate(words))


def _title(word: str) -> str:
    if any(c.isupper() for c in word):
        return word
    if re.fullmatch(r"mc[a-z]{3,}", word):
        return "Mc" + word[2:].capitalize()
    parts = re.split(r"([-.]|(?<=^[od])['’])", word)
    return "".join(part[:1].upper() + part[1:] for part in parts)


# -- places and firms

PLACE_WORDS: Final = words("names.place_words")
"""Ordinary words that occur in many place names."""
UPPER: Final = words("names.upper")
"""Words that are written in capitals."""
_SMALL: Final = PARTICLES | frozenset("of the upon on and sur area region suburbs".split())


def initials(said: Sentence, at: int) -> Value | None:
    """Letters said one by one: "l a" is LA, "g t e" is GTE. A last "i" may be the next clause's."""
    end = at
    while end < min(len(said), at + 5) and len(said.low(end)) == 1 and said.low(end).isalpha():
        end += 1
        if said.gap(end):
            break
    if end - at >= 3 and said.low(end - 1) == "i" and not said.gap(end):
        end -= 1
    if not 2 <= end - at <= 4 or any(said.tokens[i].foreign for i in range(at, end)):
        return None
    return Value("".join(said.low(i) for i in range(at, end)).upper(), end)


def capitals(said: Sentence, start: int) -> int:
    """The end of the run of capitals at `start`, over small words between them."""
    index = start
    while index < min(len(said), start + 8):
        token = said.tokens[index]
        if index > start and token.gap:
            break
        if token.capital and (token.low not in FUNCTION or (token.text.isupper() and token.low in UPPER)):
            index += 1
            continue
        bridge = (token.low in _SMALL and token.low != "and") or token.text == "&"
        if index == start or not bridge or not _named(said, index + 1):
            break
        index += 2
    return index


def _named(said: Sentence, index: int) -> bool:
    """Whether a name goes on at `index`, directly after a small word."""
    if said.gap(index):
        return False
    day = said.low(index).removesuffix("s") in DAYS  # "at Boots on Saturdays"
    return said.tokens[index].capital and said.low(index) not in FUNCTION and not day


def plain_end(said: Sentence, start: int, *, limit: int, inside: frozenset[str] = PLACE_WORDS) -> int:
    """The end of a name in a text without capitals; `start` if it has more than `limit` words.

    Ordinary words end it, except those that occur in names of this kind (`inside`).
    """
    index = start
    while index < len(said) and not (index > start and said.gap(index)):
        word = said.low(index)
        bridge = word in _SMALL and index > start and word not in {"and", "the", "on"}
        bridge = bridge and index + 1 < len(said) and not wordlike(said.low(index + 1))
        ends = word in FUNCTION and word not in UPPER
        if not bridge and (ends or (index > start and wordlike(word) and word not in inside)):
            break
        index += 1
    return index if index - start <= limit else start


def restored(tokens: tuple[Token, ...]) -> str:
    """The words with the capitals of a place or a firm."""
    if any(token.capital and not token.foreign for token in tokens):
        return " ".join(token.text for token in tokens)
    words = []
    for i, token in enumerate(tokens):
        small = i > 0 and token.low in _SMALL
        words.append(token.text if small else token.text.upper() if token.low in UPPER else titled((token,)))
    return " ".join(words)


def closed(said: Sentence, end: int) -> bool:
    """Whether a phrase can end before `end`: at punctuation or a word of the grammar."""
    return said.gap(end) or said.low(end) in FUNCTION


def run_end(said: Sentence, at: int, inside: frozenset[str] = frozenset()) -> int:
    """The end of the words from `at` up to punctuation or a word of the grammar that is not `inside`."""
    end = at
    while end < len(said) and (said.low(end) not in FUNCTION or said.low(end) in inside):
        if end > at and said.gap(end):
            break
        end += 1
    return end


def personal(said: Sentence, end: int) -> bool:
    """Whether it belongs to a person ("Ana's house"); "St Mary's" does not."""
    return said.low(end - 1).endswith("'s") and not closed(said, end)
