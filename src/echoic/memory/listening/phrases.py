"""Things a speaker speaks of without a name: what is liked, avoided, needed. Whole phrases or nothing.

A phrase that is cut short can say the opposite ("I like coffee when it's late"), so one that goes on with a
condition, points at something only the listener can see ("this one"), or has no clear end is refused.
"""

from __future__ import annotations

from typing import Final

from echoic.memory.listening import conditions
from echoic.memory.listening.lexicon import (
    ADJECTIVES,
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    DISCOURSE,
    NUMBERS,
    PREPOSITIONS,
    PRONOUNS,
)
from echoic.memory.listening.sentences import Sentence
from echoic.memory.listening.spoken import Value

_MAX_WORDS: Final = 7
_POINTING: Final = frozenset(
    """
    it its it's that that's this these those here there you your you're yours him his her hers them their
    theirs me myself us our ours my mine one ones i i'm i've we he she they what who whoever whatever how
    where why something anything everything nothing someone anyone everyone everybody nobody same such other
    others another stuff thing things way idea sound part both either neither
    """.split()
)
# "that", "when", "if": the phrase holds only on a condition, which would be lost.
_CONDITIONS: Final = frozenset(
    """
    that which who whose when whenever where if unless until while as before after how except
    than
    """.split()
)
_ENDS: Final = frozenset(
    """
    i i'm i've i'd i'll we we're he he's she she's they they're it it's you you're my but so because cause cos
    since though although however also too please thanks thank anyway sorry yeah yes no not then now well okay
    ok actually honestly especially mostly personally really very most these better best just only right call
    tell give let let's send show play put set help remember forget hello hi hey bye can could do does did is
    are was were will would should what what's where's which than lately nowadays anymore sometimes usually
    """.split()
)
_THINGS_TOO: Final = frozenset(
    """
    red green blue yellow orange purple pink brown black white grey gold silver nuts organic electric
    """.split()
)
_DANGLING: Final = PREPOSITIONS | DETERMINERS
_VERBS: Final = frozenset(
    """
    live work have need want prefer like love hate am speak enjoy had was go get make think know come
    """.split()
)
_TAILS: Final = (
    ("a", "lot"),
    ("quite", "a"),
    ("so", "much"),
    ("very", "much"),
    ("more", "than"),
    ("the", "most"),
    ("the", "best"),
    ("as", "well"),
    ("by", "the", "way"),
    ("at", "all"),
    ("to", "be", "honest"),
    ("any", "more"),
    ("of", "course"),
    ("in", "general"),
)
_PAIRS: Final = frozenset(
    """
    rock|roll mac|cheese fish|chips drum|bass bread|butter country|western arts|crafts r|b rhythm|blues
    salt|vinegar butter|jelly bed|breakfast peanut|jelly gin|tonic bacon|eggs biscuits|gravy surf|turf
    hide|seek dungeons|dragons black|white cookies|cream sweet|sour chicken|waffles rice|beans wine|cheese
    macaroni|cheese cats|dogs food|drink
    """.split()
)
_GENERIC: Final = frozenset(
    """
    beach ocean sea outdoors mountains theatre theater opera cinema gym countryside snow rain cold heat sun
    desert forest woods city beatles sunshine internet ballet circus water winter summer
    """.split()
)
_PASTIMES: Final = frozenset(
    """
    cook bake read travel swim run dance sing paint draw garden hike ski surf fish hunt camp knit sew write
    climb cycle jog play watch listen eat drink ride sail shop meditate dive exercise party gamble golf bowl
    skate walk
    """.split()
)
_NO_FOOD: Final = frozenset(
    """
    much breakfast lunch dinner out late early again yet well properly before after at there more now enough
    alone fast slowly like lots healthy food in on to with for from than really today tonight tomorrow
    anything everything and or solid whole half less outside inside when if people humans anybody until unless
    a an the often regularly usually normally frequently typically daily without
    """.split()
)
_EMPTY_DOINGS: Final = frozenset(
    """
    trying seeing doing having getting being making going taking giving putting using keeping to get it
    """.split()
)
_SPELT: Final = {
    "color": "colour",
    "colors": "colours",
    "flavor": "flavour",
    "flavors": "flavours",
    "theater": "theatre",
    "savory": "savoury",
    "donut": "doughnut",
    "donuts": "doughnuts",
    "yogurt": "yoghurt",
    "gray": "grey",
    "jewelry": "jewellery",
    "neighbor": "neighbour",
    "neighborhood": "neighbourhood",
}
_VAGUE: Final = frozenset(
    """
    mondays monday mornings morning work bullshit stupidity people men women idiots exercise homework life
    love math fun commitment drama nonsense everything anything something nothing money responsibility
    housework cleaning hypocrisy lies politics winter weddings effort boredom bs
    """.split()
)


def item(
    said: Sentence, at: int, *, definite: bool = False, limit: int = _MAX_WORDS, conditional: bool = False
) -> Value | None:
    """One thing named in general ("jazz", "long walks on the beach"), or None.

    Args:
        said: the sentence.
        at: where it starts.
        definite: whether "the aisle seat" counts; "I like the blue one" never does.
        limit: the most words it may have.
        conditional: whether a condition may follow that `conditions` can read: then it is not lost.
    """
    start = at
    first = said.low(at)
    if first == "the" and not definite and not _generic(said, at + 1):
        return None
    if first == "to" and not (said.low(at + 1) in _PASTIMES or definite):
        return None
    if first in {"a", "an"} and not definite:
        return None
    end = _phrase_end(said, start)
    words = [said.low(i) for i in range(start, end)]
    if not words or len(words) > limit or not _POINTING.isdisjoint(words) or words[-1] in _DANGLING:
        return None
    lost = _conditional(said, end) and not (conditional and conditions.after(said, end))
    if not _starts_well(words[0]) or lost or _cut_short(said, start, end):
        return None
    vague = words[-1] in _EMPTY_DOINGS or (len(words) == 1 and words[0] in ADJECTIVES - _THINGS_TOO)
    return None if vague else Value(said.text(start, end), end)


def items(
    said: Sentence, at: int, *, limit: int = _MAX_WORDS, conditional: bool = False
) -> tuple[list[Value], int]:
    """Things joined by commas, "and" or "or", up to the first that is unclear, and where they ended."""
    found: list[Value] = []
    index: int | None = at
    closed = False
    while index is not None and index < len(said) and len(found) < 12:
        one = item(said, index, limit=limit, conditional=conditional)
        if one is None or (found and not _alike(found[-1], one)):
            break
        found.append(one)
        closed = closed or said.low(index - 1) in {"and", "or"}
        index = _joint(said, one.end)
    # commas alone do not make a list: "I love Italian food, great place"
    found = found if closed else found[:1]
    return found, found[-1].end if found else at


def _alike(last: Value, following: Value) -> bool:
    """Whether two things are joined as equals; the second of "books about art and music" is not."""
    words = last.text.lower().split()
    doing = words[0].endswith("ing")
    if doing and following.text.split()[0].lower().endswith("ing"):
        return True
    return PREPOSITIONS.isdisjoint(words) and not (doing and len(words) > 1)


def foods(said: Sentence, at: int) -> tuple[list[Value], int]:
    """Things to eat, drink or touch: short items that are no meal, measure or complaint."""
    found, end = items(said, at, limit=3)
    clear = all(_is_food(one) for one in found)
    return (found, end) if found and clear else ([], at)


def subject(said: Sentence, at: int, *, limit: int = 3) -> Value | None:
    """The words before "is" or "are": what "my favourite colour is" speaks of."""
    index = at
    while index < min(len(said), at + limit) and said.low(index) not in {"is", "are"}:
        if said.low(index) in (PRONOUNS | AUXILIARIES | CONJUNCTIONS) or (index > at and said.gap(index)):
            return None
        index += 1
    start = at + 2 * (said.low(at) in {"type", "kind", "sort"} and said.low(at + 1) == "of")
    words = {said.low(i) for i in range(start, index)}
    if index <= start or said.low(index) not in {"is", "are"} or not words.isdisjoint(_POINTING | DISCOURSE):
        return None
    return Value(said.text(start, index), index)


def clause(said: Sentence, at: int, *, limit: int = 30) -> Value | None:
    """Everything to the end of the sentence."""
    end = len(said)
    while end > at and said.low(end - 1) in {"please", "okay", "ok", "thanks", "thank", "too"}:
        end -= 1
    return Value(said.text(at, end), end) if 0 < end - at <= limit else None


def slug(text: str) -> str:
    """`text` as part of a key: in lower case, without article and commas, at most 60 characters.

    Recognisers differ in what they write for one spoken word ("color", "colour"): both are one key.
    """
    words = [_SPELT.get(word, word) for word in text.lower().replace(",", " ").split()]
    if words and words[0] in {"a", "an", "the", "some"}:
        words = words[1:] or words
    return " ".join(words)[:60].strip()


def _is_food(one: Value) -> bool:
    words = one.text.lower().split()
    if not _NO_FOOD.isdisjoint(words) or not _VAGUE.isdisjoint(words):
        return False
    # "cats dogs": a list that lost its commas, not one thing
    return not any(w.endswith("s") and not w.endswith("ss") for w in words[:-1])


def _generic(said: Sentence, at: int) -> bool:
    return said.low(at) in _GENERIC or (at < len(said) and said.tokens[at].capital)


def _starts_well(word: str) -> bool:
    bad = word in NUMBERS or word in CONJUNCTIONS or word in AUXILIARIES or word in DISCOURSE
    return (
        not bad and (word == "to" or word not in PREPOSITIONS) and word not in {"any", "some", "all", "every"}
    )


def _conditional(said: Sentence, end: int) -> bool:
    return said.low(end) in _CONDITIONS and not (said.low(end) == "that" and said.low(end + 1) == "is")


def _cut_short(said: Sentence, start: int, end: int) -> bool:
    """Whether the next word is the object of the last ("seeing my friends", "to watch it fall")."""
    doing = said.low(end - 1).endswith("ing") or said.low(start) == "to"
    return doing and not said.gap(end) and said.low(end) in _POINTING


def _phrase_end(said: Sentence, at: int) -> int:
    index = at
    while index < len(said) and not (index > at and said.gap(index)):
        word = said.low(index)
        if word in {"and", "or"} and not _paired(said, index):
            break
        if index > at and (word in _ENDS or word in _CONDITIONS) and not _after_preposition(said, index):
            break
        if index > at and any(_at_tail(said, index, tail) for tail in _TAILS):
            break
        index += 1
        if index - at > _MAX_WORDS + 1:
            break
    return index


def _after_preposition(said: Sentence, index: int) -> bool:
    return said.low(index - 1) in PREPOSITIONS and said.low(index) in {"my", "me", "you", "these", "it"}


def _paired(said: Sentence, index: int) -> bool:
    return f"{said.low(index - 1)}|{said.low(index + 1)}" in _PAIRS


def _at_tail(said: Sentence, index: int, tail: tuple[str, ...]) -> bool:
    return all(said.low(index + i) == word for i, word in enumerate(tail))


def _joint(said: Sentence, end: int) -> int | None:
    """Where the next thing of a list starts after `end`; None where the list is over."""
    joined = said.low(end) in {"and", "or"}
    if not joined and not (said.gap(end) and end < len(said)):
        return None
    start = end + joined
    opener = (
        said.low(start) in _ENDS | _VERBS or said.low(start) in AUXILIARIES or said.low(start) in CONJUNCTIONS
    )
    return None if opener or start >= len(said) else start


__all__ = ["clause", "foods", "item", "items", "slug", "subject"]
