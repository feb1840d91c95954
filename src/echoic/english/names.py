"""Names of people, places and firms, with and without capitals; workplaces and trades.

A word is a name only on evidence. `stated` reads where only a name can follow ("my name is …"); `claimed`
reads where almost anything may follow ("I'm …"), so capitals, a greeting, a known name or the next word must
prove it. With capitals, a name is the run of capitals; without, the words up to the grammar or an ordinary
English word.

A place is a town, a region, a country or a street address. "I'm a nurse" names a trade and "I'm a night owl"
does not, which only a list can tell: a trade's last word must be known, unless only a trade can follow ("I
work as …").
"""

from __future__ import annotations

import re
from string import ascii_lowercase
from typing import Final

from echoic.english.lexicon import (
    AMBIGUOUS,
    DAYS,
    DEMONYMS,
    FIELDS,
    FIRMS,
    FUNCTION,
    GIVEN,
    MONTHS,
    PLACE_WORDS,
    PLACES,
    TITLES,
    pattern,
    table,
    wordlike,
    words,
)
from echoic.english.phrases import Value, number
from echoic.english.sentences import Sentence, Token, sentences
from echoic.text import fold

# -- names

PARTICLES: Final = words("names.particles")

_MAX_NAME_WORDS: Final = 6
_NAMELIKE: Final = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*")
# "Ada Byron, fourth of May", where no comma is written.
_ORDINAL: Final = re.compile(
    r"(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|(?:thir|four|fif|six|seven|eigh|nine)teen|twentie|thirtie)th"
)
# Surnames that end as adverbs do: "Gilhooly", "Connolly", "Farrelly".
_LIKE_ADVERBS: Final = re.compile(r"[a-z]{3,9}(?:oo|[eio]l)ly")
_MUD: Final = words("names.mud")
# Words that follow a name given in passing: the next clause, a purpose, a place.
CLOSERS: Final = words("names.closers")
_UNSPELLED: Final = 3
"""The fewest letters of a name that are left out by who spells only its beginning."""
_SPELLED_SURNAME: Final = 4
"""The fewest letters behind a first name that spell the last one: three may be "N H S"."""
_AS_IN: Final = re.compile(r"(?:for|like|as in) ")
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
    if not said.cased:
        at, found = _once(said, at, found)
    return _respelled(said, *_in_full(said, found, at))


def _in_full(said: Sentence, found: Value, at: int) -> tuple[Value, int]:
    """`found`, or the whole name behind the comma after it, and where it starts: "Bond, James Bond"."""
    if found.end >= len(said) or not said.gap(found.end):
        return found, at
    whole = _capital_run(said, found.end) if said.cased else _plain_run(said, found.end, limit=4)
    if whole is None or not (said.gap(whole.end) or said.low(whole.end) in CLOSERS):
        return found, at
    begun = {said.low(index) for index in range(at, found.end)} - TITLES
    fuller = begun < {said.low(index) for index in range(found.end, whole.end)}
    return (whole, found.end) if fuller else (found, at)


def _once(said: Sentence, at: int, found: Value) -> tuple[int, Value]:
    """`found` where a name begins again ("walter walter prentiss"): the longer time, and where it starts."""
    again = next((index for index in range(at + 1, found.end) if said.low(index) == said.low(at)), None)
    if again is None or (again, found.end) == (at + 1, at + 2):  # "duran duran" may be a name
        return at, found
    # "bond james bond", not "caitlin okonkwo caitlin"
    surname_first = found.end == again + 1 and said.low(at) not in GIVEN and said.low(at + 1) in GIVEN
    start, end = (again, found.end) if found.end - again > again - at else (at, again)
    start, end = (at + 1, found.end) if surname_first else (start, end)
    return start, Value(titled(said.tokens[start:end]), end)


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
    return _respelled(said, *_in_full(said, found, at)) if found else None


def _claimed_plain(said: Sentence, at: int, *, greeted: bool) -> Value | None:
    if said.low(at) in AMBIGUOUS and not greeted:
        return None
    known = said.low(at) in GIVEN or (at < len(said) and said.tokens[at].foreign)
    found = _plain_run(said, at, limit=3 if known else 2)
    if found is None:
        return None
    ends = found.end >= len(said)
    followed = said.low(found.end) in CLOSERS or (said.gap(found.end) and not ends)
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


_BEFORE_OWN: Final = re.compile(
    r"(?:(?:oh|um|er|hi|hello|yes|yeah|yep|yup|no|nah|aye|so|just|sir|ma'am|love|well|sure|it's|its|it is|"
    r"this is|i'm|i am|my name is|my name's|name's|put it under|it'll be under|under) ){0,5}"
)
_THANKING: Final = frozenset("thanks thank you cheers hi hello hiya".split())
_AFTER_LETTERS: Final = frozenset("and thanks thank please like for as with so yes double".split())
_WORDS: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ASKS_NAME: Final = pattern("names.asks_name")
_WHO_ELSE: Final = pattern("names.who_else")
_UNDER: Final = re.compile(
    r"\b(?:it(?:'s|s| is|'ll be|ll be| will be)|put (?:it|me|that)|booked|registered) under "
    r"(?!(?:my|our|his|her|their|the|a) )"
)
_OWN: Final = re.compile(r"(?:this is|my name(?:'s|s| is)) $")
OF_THEM: Final = re.compile(r"\b(?:s?he|him|hers?|his|they|them)\b", re.IGNORECASE)
"""Words by which a text speaks of somebody else."""
_TITLED: Final = re.compile(r"\b(?:Mr|Mrs|Ms|Miss|Dr)\.? ([A-Z][\w'’-]+)")
_MOST_ANSWERED: Final = 2
"""Sentences at the start and at the end of an answer that may give the name that was asked for."""
_LEAST_ASKED: Final = 3
"""Words of an agent before a name at the end that addresses somebody: "is that Sarah" does not."""


def addressed_by(answer: str, reply: str, asked: str = "", *, at_once: bool = True) -> str:
    """The name that an `answer` gives, if the agent's `reply` addresses the caller by it; else empty.

    "Raghav Krishnamurthy.", "Which tooth is it, Mr Krishnamurthy?" A surname alone proves little. Not if the
    agent `asked` for somebody else. `at_once`: the reply follows directly; what comes later may repeat
    something else that "it's" told.
    """
    words_again = set(_WORDS.findall(reply.casefold()))
    said_again = words_again.intersection(word.strip(".,?!") for word in answer.casefold().split())
    titled = {found.casefold() for found in _TITLED.findall(reply)}
    may_name = any(word in GIVEN or word in titled or not wordlike(word) for word in said_again)
    if not may_name or _WHO_ELSE.search(fold(asked)):
        return ""
    replied, asks = sentences(reply), _ASKS_NAME.search(fold(asked)) is not None
    answered, given, most, own_name = sentences(answer), "", 0, False
    for said in answered[:_MOST_ANSWERED] + answered[_MOST_ANSWERED:][-_MOST_ANSWERED:]:
        leading, under = _BEFORE_OWN.match(said.line), _UNDER.search(said.line)
        under = under if not OF_THEM.search(answer) else None
        start = said.at.get(max(each.end() for each in (leading, under) if each), 0)
        own_name = own_name or under is not None or bool(leading and _OWN.search(leading.group()))
        found = stated(said, start)
        if found is None or said.question or not closed(said, found.end):
            continue
        own = {fold(word).strip(".") for word in found.text.split()} - TITLES
        known = own_name or len(own) > 1 or not GIVEN.isdisjoint(own)
        named = asks or own_name or (start > 0 and at_once)
        fits = known and (at_once or named) and len(own) > most
        if fits and any(_addresses(one, own, named=named) for one in replied):
            given, most = found.text, len(own)
    return given


def _addresses(said: Sentence, name: set[str], *, named: bool) -> bool:
    """Whether the agent addresses somebody by words of `name`: "thanks joyce", and, if the caller was `named`
    before, "Where from, Con?".
    """
    at = 0
    while at < len(said):
        end = at
        while end < len(said) and said.low(end) in name:
            end += 1
        if end > at:
            before = at - (said.low(at - 1) in TITLES)
            ends = end == len(said)
            if said.low(before - 1) in _THANKING and (ends or said.gap(end) or not said.cased):
                return True
            told = before >= _LEAST_ASKED and said.low(before - 1) not in FUNCTION
            if ends and (named or before < at) and (said.gap(before) and before > 0 if said.cased else told):
                return True
        at = max(end, at + 1)
    return False


def _follows_letters(word: str) -> bool:
    return len(word) == 1 or word in CLOSERS | _AFTER_LETTERS


def spelled_out(said: Sentence, at: int) -> Value | None:
    """A name given letter by letter: "p a v e l", "S-I-O-B-H-A-N" or "c like cat, l, e, o"."""
    letters, index = "", at
    while index < len(said):
        word = said.low(index)
        if word == "double" and len(said.low(index + 1)) == 1:
            letters, index = letters + said.low(index + 1) * 2, index + 2
        elif word == "i" and letters and not (said.gap(index + 1) or _follows_letters(said.low(index + 1))):
            break  # "M I A, I live in Leeds"
        elif re.fullmatch(r"[^\W\d_](?:-[^\W\d_])*", word):
            letters, index = letters + word.replace("-", ""), index + 1
            index = _past_word_for(said, index, letters[-1])
        else:
            break
    named = len(letters) >= 3 and letters not in ascii_lowercase  # "a, b, c"
    return Value(letters.capitalize(), index) if named else None


def _past_word_for(said: Sentence, index: int, letter: str) -> int:
    """The word behind "for kilo", "like cat" or "as in tree", which say the `letter` before them again."""
    told = said.match(_AS_IN, index)
    word = said.at.get(told.end(), index) if told else index
    return word + 1 if word > index and said.low(word)[:1] == letter else index


def _respelled(said: Sentence, found: Value, at: int) -> Value:
    """`found`, with its last word replaced by a spelling that follows, or with the last name that it spells.

    A name that is said again behind its spelling holds: "emeka e m e k a emeka nwosu".
    """
    skipped = said.match(_SPELLING, found.end)
    start = said.at.get(skipped.end(), found.end) if skipped else found.end
    spelled = spelled_out(said, start)
    if spelled is None:
        return found
    head, _, last = found.text.rpartition(" ")
    if fold(last).startswith(spelled.text.lower()) and len(last) - len(spelled.text) >= _UNSPELLED:
        return Value(found.text, spelled.end)  # "hargrove h a r g" is not spelled to its end
    first = said.low(at if not head else found.end - 1)[:1]
    if "-" in last and spelled.text.lower() in fold(last).split("-"):
        return found  # "Vasquez-Holt, V A S Q U E Z, hyphen, Holt"
    if spelled.text[0].lower() == first:
        same = spelled.text.lower() == last.lower()
        named = f"{head} {last if same else spelled.text}".strip()
    elif not head and len(spelled.text) >= _SPELLED_SURNAME and said.gap(spelled.end):
        named = f"{last} {spelled.text}"
    else:
        return found
    again = _plain_run(said, spelled.end, limit=4) if not said.cased else None
    if again and fold(again.text).startswith(f"{fold(named)} "):
        return again
    return Value(named, spelled.end)


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
            index > at
            and word in PARTICLES
            and not wordlike(said.low(index + 1))
            and len(said.low(index + 1)) > 1
        )
        surname = index > at and _LIKE_ADVERBS.fullmatch(word)
        ordinary = (wordlike(word) and not surname) or _ORDINAL.fullmatch(word) is not None
        if not particle and (ordinary or not _NAMELIKE.fullmatch(word) or _too_short(said, index)):
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


# -- where the name of a place or a firm ends

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


# -- employers and trades

FIRM_WORDS: Final = words("places.firm_words")
_SAINTS: Final = frozenset(["saint", "st", "san", "santa"])
_COMMON_WORKPLACES: Final = words("places.common_workplaces")
_ANY_FIRM: Final = words("places.any_firm")
_HEADS: Final = words("places.heads")
_RANKED: Final = words("places.ranked")
# "a good cook", "a terrible driver" and "a future pilot" are no trades.
_NOT_TRADES: Final = words("places.not_trades")
_ACRONYM_TRADES: Final = table("places.acronym_trades")


def organisation(said: Sentence, at: int) -> Value | None:
    """An employer by name ("Google", "St Mary's", "the BBC"); not "night", "a bank" or "my uncle's shop"."""
    start = at + (said.low(at) == "the")
    spelled = initials(said, start)
    if spelled and spelled.text.startswith("A") and not said.cased:
        return None  # "at a t i site": an article, not a letter
    if spelled:
        return _lettered(said, spelled, article=start > at)
    if said.cased and said.low(start) not in FIRMS:
        return _capital_firm(said, at, start)
    return _plain_firm(said, start, article=start > at)


def _capital_firm(said: Sentence, at: int, start: int) -> Value | None:
    end = capitals(said, start)
    whole = start == at or closed(said, end)
    good = end > start and whole and said.low(start) not in DAYS and not personal(said, end)
    return Value(said.text(at, end), end) if good else None


def _plain_firm(said: Sentence, start: int, *, article: bool) -> Value | None:
    end = plain_end(said, start, limit=5, inside=PLACE_WORDS | FIRM_WORDS)
    words = [said.low(i) for i in range(start, end)]
    ordinary = [(wordlike(w) and w not in FIRMS) or w in FIELDS for w in words]
    if all(ordinary) or (ordinary[0] and words[0] not in PLACE_WORDS) or words[-1] in _SAINTS:
        return None
    if article and len(words) > 1 and words[-1] not in FIRM_WORDS:
        return None
    return Value(("the " if article else "") + restored(said.tokens[start:end]), end)


def _lettered(said: Sentence, letters: Value, *, article: bool) -> Value | None:
    """A firm that begins with letters: "the F B I", "J C Penney"."""
    end = letters.end
    if not closed(said, end):
        end = capitals(said, end) if said.cased else plain_end(said, end, limit=2, inside=FIRM_WORDS)
        if end == letters.end or article:
            return None
        return Value(f"{letters.text} {restored(said.tokens[letters.end : end])}", end)
    return Value(f"the {letters.text}" if article else letters.text, end)


def workplace(said: Sentence, at: int) -> Value | None:
    """A kind of workplace without a name: "a bank", "the hospital", "a law firm"."""
    if said.low(at) not in {"a", "an", "the"}:
        return None
    index = at + 1
    while index < min(len(said), at + 4) and said.low(index) in _COMMON_WORKPLACES and not said.gap(index):
        index += 1
    vague = said.low(at) == "the" and said.low(index - 1) in _ANY_FIRM
    described = said.low(index) in {"that", "which", "who", "where"}
    if index == at + 1 or vague or described or not closed(said, index):
        return None
    return Value(said.text(at, index), index)


def field_of_work(said: Sentence, at: int) -> Value | None:
    """A line of business from a closed list: "finance", "healthcare"."""
    if said.low(at) not in FIELDS or not closed(said, at + 1):
        return None
    return Value(_ACRONYM_TRADES.get(said.low(at), said.tokens[at].text), at + 1)


def role(said: Sentence, at: int, *, certain: bool) -> Value | None:
    """A trade at `at`, without its article: "high school teacher", "head of sales".

    `certain`: only a trade can follow ("I work as …"); if not, its last word must be known.
    """
    article = said.low(at) in {"a", "an", "the"}
    start = at + article
    end = _role_end(said, start)
    words = [said.low(i) for i in range(start, end)]
    if not 0 < len(words) <= 5 or not _NOT_TRADES.isdisjoint(words) or words[0] in FUNCTION:
        return None
    head = words[words.index("of") - 1] if "of" in words[1:] else words[-1]
    owned = head != "owner" or said.low(at) == "the" or not _COMMON_WORKPLACES.isdisjoint(words)
    ranked = said.low(at) == "the"  # "the head of sales" is a post, "the nurse" was mentioned before
    known = head in _RANKED if ranked else is_trade(head)
    if not (known or (certain and article)) or not owned:
        return None
    return Value(" ".join(_ACRONYM_TRADES.get(t.low, t.text) for t in said.tokens[start:end]), end)


def is_trade(low: str) -> bool:
    """Whether a folded word names a trade."""
    return low in _HEADS or low.endswith(("ologist", "ographer", "ician", "smith"))


def _role_end(said: Sentence, start: int) -> int:
    index = start
    while index < len(said) and not (index > start and said.gap(index)):
        word = said.low(index)
        rank_of = word == "of" and said.low(index - 1) in _RANKED and not _wordlike_start(said, index + 1)
        if word in FUNCTION and not rank_of:
            break
        index += 1
    return index


def _wordlike_start(said: Sentence, index: int) -> bool:
    """Whether the grammar goes on at `index`, or a name begins: neither continues "head of"."""
    word = said.low(index)
    if index >= len(said) or word in FUNCTION:
        return True
    return said.tokens[index].capital if said.cased else not (wordlike(word) or word in FIELDS)


# -- places

_WITH_ARTICLE: Final = words("places.with_article")
_REGIONS: Final = words("places.regions")
_LETTERED_PLACES: Final = words("places.lettered_places")
_NOT_ORIGINS: Final = (
    FIELDS
    | (FIRM_WORDS - frozenset(["state", "press", "games", "power"]))
    | frozenset(
        """
    support corp corporation inc ltd llc bank services service team company department insurance agency hq
    """.split()
    )
)
_NOT_PLACES: Final = (
    frozenset("denial it us who families tears linux android excel slack zoom".split())
    | FIRMS
    | DAYS
    | frozenset(MONTHS)
)
_ALSO_PERSONS: Final = frozenset("georgia virginia florence".split())
# What may follow "Salt Lake City, Utah"; anything else after the comma begins a new clause.
_AFTER_STATE: Final = words("places.after_state")


def place(said: Sentence, at: int) -> Value | None:
    """A town, region or country: "Tel Aviv", "Salt Lake City, Utah", "the Netherlands", "L A" as LA."""
    letters = initials(said, at)
    if letters:
        return letters if letters.text in _LETTERED_PLACES else None
    found = _capital_place(said, at) if said.cased else _plain_place(said, at)
    if found is None and said.low(at) in PLACES:
        found = _plain_place(said, at)
    if found is None or said.low(found.end - 1).endswith("'s"):
        return None
    return found


def origin(said: Sentence, at: int) -> Value | None:
    """A place where one can be from; not a department or a firm."""
    found = place(said, at)
    last = said.low(found.end - 1) if found else ""
    return None if last in _NOT_ORIGINS or said.low(at) in FIELDS else found


def street(said: Sentence, at: int) -> Value | None:
    """A street address that starts with its number, to the end of the clause."""
    house = number(said, at)
    digits = re.fullmatch(r"[0-9]{1,5}[a-z]?", said.low(at)) is not None
    if house is None and not digits:
        return None
    start = at + 1 if digits or house is None else house.end
    index = start
    while index < min(len(said), at + 10) and not _street_ends(said, index):
        index += 1
    if index - start not in range(2, 9):
        return None
    words = said.text(start, index)
    lead = said.tokens[at].text if digits or house is None else str(house.value)
    return Value(f"{lead} {words if said.cased else titled(said.tokens[start:index])}", index)


def _street_ends(said: Sentence, index: int) -> bool:
    word = said.low(index)
    return word in FUNCTION and word not in {"the", "of", "down", "st", "upper", "lower"}


def _capital_place(said: Sentence, at: int) -> Value | None:
    start = at + (said.low(at) == "the")
    while said.low(start) in PLACE_WORDS and not said.tokens[start].capital:
        start += 1
    end = capitals(said, start)
    if end == start or said.low(start) in _NOT_PLACES or personal(said, end):
        return None
    end += not said.gap(end) and said.low(end) in _REGIONS
    if start > at and said.low(at) == "the" and not _takes_article(said, start, end):
        return None
    end = _state_end(said, end)
    return Value(said.text(at, end), end)


def _state_end(said: Sentence, end: int) -> int:
    """The end of "…, Utah" after a town that ends at `end`; `end` itself without a state."""
    if not said.gap(end) or end >= len(said):
        return end
    further = capitals(said, end)
    return further if further > end and (said.gap(further) or said.low(further) in _AFTER_STATE) else end


def _takes_article(said: Sentence, start: int, end: int) -> bool:
    """Whether "the" belongs to the name: "the Netherlands", "the Dallas area"; not "the Florida"."""
    last = said.low(end - 1)
    fits = said.low(start) in _WITH_ARTICLE or last in _REGIONS or last.endswith("s")
    return fits and closed(said, end) and not said.gap(start)


def _plain_place(said: Sentence, at: int) -> Value | None:
    article = said.low(at) == "the"
    start = at + article
    end = plain_end(said, start, limit=4)
    words = [said.low(i) for i in range(start, end)]
    region = bool(words) and article and not said.gap(end) and said.low(end) in _REGIONS
    if not words or not _is_place(words, article=article, region=region):
        return None
    end += region
    # "yoga pants", "foster care": an unknown word before a noun is no place
    if (article or PLACES.isdisjoint(words)) and not closed(said, end):
        return None
    return Value(("the " if article else "") + restored(said.tokens[start:end]), end)


def _is_place(words: list[str], *, article: bool, region: bool) -> bool:
    """Whether words without capitals can be a place: no ordinary word among them, and more than "town"."""
    if article and not region and words[0] not in _WITH_ARTICLE:
        return False
    ordinary = (word for word in words if wordlike(word) and word not in PLACE_WORDS | UPPER | PLACES)
    if any(ordinary) or not _NOT_PLACES.isdisjoint(words):
        return article and words == ["us"]
    alone = len(words) == 1 and not article
    person = words[0] in GIVEN | AMBIGUOUS and words[0] not in _ALSO_PERSONS
    return not (alone and (person or (words[0] in PLACE_WORDS - PLACES and words[0] not in UPPER)))
