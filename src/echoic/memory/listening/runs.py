"""Where the name of a place or a firm ends, with and without capitals, and how it is written.

With capitals it is the run of capitals; without, the words up to the next one of the grammar or of ordinary
English. Whether it is a place or a firm at all is for `places` and `employment` to say.
"""

from __future__ import annotations

from typing import Final

from echoic.memory.listening.lexicon import FUNCTION, wordlike
from echoic.memory.listening.names import PARTICLES, titled
from echoic.memory.listening.sentences import Sentence, Token
from echoic.memory.listening.spoken import Value

PLACE_WORDS: Final = frozenset(
    """
    new old north south east west northern southern eastern western northeast northwest southeast southwest
    central downtown uptown midtown greater upstate saint st san santa santo los las el la le de del da do dos
    das di rio cape fort port mount lake grand great little big long palm springs spring beach city town hills
    hill heights valley bay island islands park falls creek river rapids rock salt white green red black
    golden blue high point kingdom states emirates republic united county county's village bridge forest
    mountain view cedar oak ocean orange silver bath college station sioux des moines baton rouge sur upon
    bosnia and
    """.split()
)
"""Ordinary words that many place names are made of."""
UPPER: Final = frozenset(
    """
    us usa uk uae nyc dc sf ny ca tx fl nj il pa ibm hp nasa bbc aws bmw cnn ups kfc nhs fbi cia nbc abc cbs
    hsbc kpmg pwc sap amd tsmc usps dhl tv mit ucla nyu lse cern un ikea ey rbc td ge gm 3m att bt ee
    """.split()
)
"""Words that are written in capitals throughout."""
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
    """Whether a name goes on at `index`, right after a small word."""
    if said.gap(index):
        return False
    return said.tokens[index].capital and said.low(index) not in FUNCTION


def plain_end(said: Sentence, start: int, *, limit: int, inside: frozenset[str] = PLACE_WORDS) -> int:
    """Where the words of a name end in a text without capitals; `start` where there are more than `limit`.

    Ordinary words end it, but for those that names of this kind are made of (`inside`).
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


def personal(said: Sentence, end: int) -> bool:
    """Whether what was read is somebody's ("Ana's house"); "St Mary's" is not."""
    return said.low(end - 1).endswith("'s") and not closed(said, end)


__all__ = ["PLACE_WORDS", "UPPER", "capitals", "closed", "initials", "personal", "plain_end", "restored"]
