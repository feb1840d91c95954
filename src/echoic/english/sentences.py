"""Cuts an utterance into sentences of words, completes an answer with the words of its question, and tells
when the caller gives the telephone to somebody else.

Cutting handles punctuation, quotation, fillers and stammering, and ignores the meaning of words; it is linear
in the text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from echoic.english.lexicon import (
    FUNCTION,
    GIVEN,
    NUMBERS,
    PLACE_WORDS,
    PLACES,
    PREPOSITIONS,
    TITLES,
    pattern,
    source,
    table,
    wordlike,
    words,
)
from echoic.text import fold
from echoic.text.spoken_numbers import BETWEEN, in_figures, is_bare, runs, written

FILLERS: Final = words("sentences.fillers")

# A stammer repeats small words, never a name: "New York New York" and "Duran Duran" stay as they are.
_REPEATABLE: Final = words("sentences.repeatable")
_RESTARTS = frozenset("in at from near as".split())
_REPAIRS: Final = words("sentences.repairs")
_CONTRACTIONS: Final = table("sentences.contractions")
# Abbreviations, whose full stop does not end a sentence.
_TITLES: Final = words("sentences.titles")
_ABBREVIATIONS = _TITLES | frozenset("sr jr vs etc approx ave apt inc corp ltd".split())
_CLIPPED = ("'cause", "'cos", "'em", "'til", "'bout", "'n")

_OPENING = "\"“„«‘'([{¿¡*_"
_CLOSING = "\"”“»’')]}*_,.;:!?…–—-"
_MAX_WORD = 80
"""Characters; anything longer is not speech and is skipped."""
_DASHES = re.compile(r"[–—]|--|…|\.{2,}")
_INITIALS = re.compile(r"(?:[a-z]\.){1,4}[a-z]?")
_KNOWN_AFTER: Final = words("sentences.known_after")
_KNOWN_BEFORE: Final = words("sentences.known_before")


_SPOKEN: Final = re.compile(r"(?<!\w)(?=[^\W\d_]*[^\W\d_BCDFGHJKLMNPQRSTVWXZ])[^\W\d_]+(?!\w)")
"""A word of capitals that can be spoken; the letters of a code hold figures, or no vowel."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word as it was said."""

    text: str
    """Without the punctuation around it."""
    low: str
    """Folded: lower case, no accents, straight apostrophes; never holds a space."""
    gap: bool
    """Whether a comma, colon, dash or bracket precedes it."""
    quoted: bool
    """Whether it is inside quotation marks."""

    @property
    def capital(self) -> bool:
        """Whether it is written as a name: an upper-case letter, or a script without case."""
        return any(c.isupper() for c in self.text) or self.foreign

    @property
    def foreign(self) -> bool:
        """Whether it has letters outside the Latin script, so that it cannot be an English word."""
        return any(c > "\u024f" and c.isalpha() and not "\u1e00" <= c <= "\u1eff" for c in self.text)


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words up to a full stop, question mark, exclamation mark, semicolon or line end."""

    tokens: tuple[Token, ...]
    cased: bool
    """Whether the utterance was written with capitals, so that their absence is meaningful."""
    question: bool
    line: str = field(init=False)
    """The folded words, each followed by one space, against which patterns are matched."""
    starts: tuple[int, ...] = field(init=False)
    """Where each word starts in `line`; last, where the line ends."""
    at: dict[int, int] = field(init=False)
    """The word that starts at an offset of `line`; the end of the line gives the number of words."""

    def __post_init__(self) -> None:
        starts = tuple(itertools.accumulate((len(token.low) + 1 for token in self.tokens), initial=0))
        object.__setattr__(self, "line", "".join(token.low + " " for token in self.tokens))
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "at", {start: index for index, start in enumerate(starts)})

    def __len__(self) -> int:
        return len(self.tokens)

    def low(self, index: int) -> str:
        """The folded word at `index`; empty outside the sentence."""
        return self.tokens[index].low if 0 <= index < len(self.tokens) else ""

    def gap(self, index: int) -> bool:
        """Whether something separates the words before `index`: punctuation or an end of the sentence."""
        return not 0 < index < len(self.tokens) or self.tokens[index].gap

    def text(self, start: int, end: int) -> str:
        """The words from `start` to before `end`, as said, with their commas."""
        parts = [self.tokens[start].text]
        parts += [("," if t.gap else "") + " " + t.text for t in self.tokens[start + 1 : end]]
        return "".join(parts)

    def match(self, pattern: re.Pattern[str], index: int) -> re.Match[str] | None:
        """`pattern` matched at the word `index`; None past the last word."""
        return pattern.match(self.line, self.starts[index]) if index < len(self.tokens) else None


def sentences(text: str) -> list[Sentence]:
    """`text` as sentences. Fillers, words broken off and stammered small words are left out.

    A text in capitals is read as lower case: some recognisers write so. "S60 1QT" is a code.
    """
    shouted = text.upper() == text and text.lower() != text and " " in text.strip()
    if shouted and _SPOKEN.search(text):
        text = text.lower()
    cased = any(c.isupper() for c in text)
    found: list[Sentence] = []
    for raw, ending in _split(text):
        tokens = _mended(raw)
        if tokens:
            found.append(Sentence(tuple(tokens), cased, question="?" in ending))
    return found


def _split(text: str) -> Iterator[tuple[list[Token], str]]:
    """Tokens and the punctuation that ended them, sentence by sentence."""
    for line in text.splitlines():
        tokens: list[Token] = []
        gap = letter = False
        quotes = _Quotes()
        chunks = _DASHES.sub(" , ", line.replace(" - ", " , ").replace("\0", " ")).split()
        words = [_word_of(chunks, index) for index in range(len(chunks))]
        folded = fold("\0".join(word for word, _, _ in words)).split("\0")
        for (word, opening, closing), apart in zip(words, folded, strict=False):  # "" is one word, too
            low = "".join(apart.split())
            quotes.open(opening)
            if low and len(word) <= _MAX_WORD:
                tokens.append(Token(word, _CONTRACTIONS.get(low, low), gap or "(" in opening, quotes.inside))
                gap = False
            # the last letter of "T E M I." is no initial
            spelling = len(word) == 1 and word.isupper()
            spelled, letter = letter and spelling, spelling and "." not in closing
            if not closing:
                continue
            quotes.close(closing)
            gap = gap or any(c in closing for c in ",:)–—")
            if _ends(word, closing) or (spelled and "." in closing):
                yield tokens, closing
                tokens, gap = [], False
            elif "." in closing and word.lower() not in _TITLES and len(word) > 1:
                gap = True
        yield tokens, ""


def _word_of(chunks: list[str], index: int) -> tuple[str, str, str]:
    """A word, and the punctuation before and after it; a hyphen at its end is a dash, or breaks it off."""
    word, opening, closing = _stripped(chunks[index])
    if word.endswith("-"):
        word = "" if _said_again(word[:-1], chunks[index + 1 : index + 6]) else word[:-1]
        closing = "—" + closing
    return word, opening, closing


def _said_again(start: str, following: list[str]) -> bool:
    """Whether a word that ends in a hyphen was broken off ("Bos- uh in Boston"); otherwise it is a dash."""
    return any(chunk.lower().startswith(start.lower()) for chunk in following)


def _stripped(chunk: str) -> tuple[str, str, str]:
    """The word of `chunk`, and the punctuation before and after it; a word broken off keeps its hyphen."""
    if chunk.isalnum():
        return chunk, "", ""
    if chunk.lower().replace("’", "'").startswith(_CLIPPED):
        chunk = chunk[1:]
    body = chunk.lstrip(_OPENING + ",.;:!?")
    opening = chunk[: len(chunk) - len(body)]
    word = body.rstrip(_CLOSING)
    closing = body[len(word) :]
    if not word:
        return "", "", opening + closing
    return (word + "-", opening, closing[1:]) if closing.startswith("-") else (word, opening, closing)


def _ends(word: str, closing: str) -> bool:
    if any(c in closing for c in "?!;"):
        return True
    if "." not in closing:
        return False
    low = word.lower()
    initial = len(word) == 1 and word.isupper() and word != "I"
    return not (low in _ABBREVIATIONS or initial or _INITIALS.fullmatch(low + "."))


class _Quotes:
    """Whether the current words are inside quotation marks."""

    def __init__(self) -> None:
        self._mark = ""

    @property
    def inside(self) -> bool:
        return bool(self._mark)

    def open(self, opening: str) -> None:
        for c in opening:
            if c in "\"“„«‘'":
                self._mark = "" if self._mark == c == '"' else c

    def close(self, closing: str) -> None:
        pairs = {'"': '"', "“": "”", "„": "“”", "«": "»", "‘": "’'", "'": "'’"}
        if self._mark and any(c in pairs[self._mark] for c in closing):
            self._mark = ""


def _mended(raw: list[Token]) -> list[Token]:
    """`raw` without fillers, "you know" and stammered small words."""
    tokens: list[Token] = []
    gap = False
    skip = False
    for index, token in enumerate(raw):
        if skip or token.low in FILLERS or (token.low == "you" and _is_you_know(raw, index)):
            skip = not skip and token.low == "you"
            gap = gap or token.gap
            continue
        tokens.append(replace(token, gap=True) if gap else token)
        gap = False
        _unstammered(tokens)
        _restarted(tokens)
    return tokens


def _is_you_know(raw: list[Token], index: int) -> bool:
    """Whether the "you" at `index` begins a "you know" that means nothing."""
    behind = [token.low for token in raw[index + 1 : index + 3]]
    if behind[:1] != ["know"] or (index and raw[index - 1].low in _KNOWN_AFTER):
        return False
    then = "".join(behind[1:])
    return then not in _KNOWN_BEFORE or then in {"i", "i'm", "my"}


def _unstammered(tokens: list[Token]) -> None:
    """Drop small words that repeat the last ones: "in in", "my name my name", "i i'm"."""
    if len(tokens) > 1 and tokens[-2].low in _REPEATABLE and tokens[-1].low.startswith(tokens[-2].low + "'"):
        del tokens[-2]
    if tokens[-1].low not in _REPEATABLE:
        return
    for size in (3, 2, 1):
        last = [token.low for token in tokens[-size:]]
        if (
            len(tokens) >= 2 * size
            and last == [token.low for token in tokens[-2 * size : -size]]
            and _REPEATABLE.issuperset(last)
        ):
            del tokens[-size:]
            return


def _restarted(tokens: list[Token]) -> None:
    """Drop what a speaker began again from the same small word ("in San, sorry, in Santa Fe")."""
    if tokens[-1].low not in _RESTARTS:
        return
    marks = len(tokens) - 1
    while marks > 0 and tokens[marks - 1].low in _REPAIRS:
        marks -= 1
    said = [token.low for token in tokens[marks:-1]]
    if not said or said[0] == "mean" or said[-1] == "i":
        return
    for start in range(marks - 1, max(marks - 5, -1), -1):
        if tokens[start].low == tokens[-1].low:
            del tokens[start:-1]
            return


GREETINGS: Final = words("guards.greetings")
CONNECTING: Final = GREETINGS | words("guards.connecting")
"""Words that may precede a clause about the speaker."""


NameAnswered = Callable[[Sentence, int], int | None]
"""Where, before a remark, the name ends that an answer gives at a word; None without name or remark."""
MOST_WORDS: Final = 12
"""The most words of an answer, up to its first comma; a longer one stands alone."""
_QUESTION: Final = 400
"""Characters of a question that are read, from its end; keeps matching linear."""
_OPENINGS: Final = tuple((re.compile(asked), words) for asked, words in table("answers.openings").items())
# Somebody or something else that a question may be about.
_OTHERS: Final = pattern("answers.others")
# Those of them whom a bare answer would be about.
_ANOTHER: Final = pattern("answers.another")
_ADDRESSED: Final = re.compile(r"\byou(?:r|rs|'re|'ve|'d|rself)?\b")
# Whom a question asks for what it is about: "Where does your wife work?" does not.
_ADDRESSEE: Final = re.compile(r"\b(?:you|you're|you've|you'd|yours)(?= )")
# Words by which a sentence says of whom it is.
_WHOSE: Final = re.compile(
    r"\b(?:i|im|ive|me|my|mine|we|weve|us|our|ours|s?hes?|him|his|hers?|they|them|theirs?)\b", re.IGNORECASE
)
# What the answer is for, which says nothing about whose it is.
_PURPOSE: Final = re.compile(r"\b(?:so(?: that)?|in case|because) (?:i|we|it|they|the|our|that)\b[^,]*,? ")
# Answers that are about whoever is spoken of. A number to ring, an address or a name is asked of the caller.
_OF_PATIENT: Final = frozenset({"i'm allergic to", "i take", "my birthday is"})
# Answers of the caller, or while somebody else is spoken of, of them.
_OF_EITHER: Final = re.compile(
    r"my (?:hospital|patient|student|donor|supporter|member|blood|post ?code|zip|eircode|car registration|gp|"
    r"doctor|dentist|vet|consultant|tutor|[a-z]+ size)\b|i have \*|i'm moving|"
    r"i (?:teach|need|like|prefer|play|see)\b"
)
# What somebody who is named is, has or does, in an answer about allergies or medicines.
_DOES: Final = pattern("answers.does")
# Words by which a caller begins to speak of somebody else, goes on, and speaks of themselves.
_FOR_ANOTHER: Final = pattern("answers.for_another")
_GOES_ON_OF_THEM: Final = re.compile(r"(?:(?:and|but|well|oh) )?(?:(?:he|she)(?:'[a-z]+)?|his|hers?) ")
_OF_ANOTHER: Final = re.compile(r"\b(?:s?he(?:'[a-z]+)?|him|his|hers?) ")
_OF_SELF: Final = pattern("answers.of_self")
# Where an agent asks what patients are asked, or for whom it is: "Is this for your child?", "Yes".
_ASKED_OF_PATIENT: Final = pattern("answers.of_patient")
_FOR_YOURS: Final = pattern("answers.for_yours")
_CONFIRMING: Final = pattern("answers.confirming")
# Every text with which the talk turns to somebody else has one; others need not be cut into sentences.
_MAY_TURN: Final = re.compile(f"{_ASKED_OF_PATIENT.pattern}|\\b{source('answers.dear')}")
_FIRM: Final = re.compile(r"\b(?:employer|company|landlord|restaurant|hotel|venue|shop|team)s?\b")
_ABOUT: Final = re.compile(r"\byour [a-z]{1,20}(?:'s)? |\b[a-z]{1,20}'s details ")
_LEADING: Final = pattern("answers.leading")
_THEY_ARE: Final = re.compile(r"(?:he|she)(?:'s| is) (?!(?:got|had|been|gone|not|in) )|they(?:'re| are) ")
_THEY_ARE_CALLED: Final = re.compile(r"(?:he|she)(?:'s| is) called |(?:her|his) name(?:'s|s| is) ")
_EMAIL: Final = re.compile(r"@| at | dot ")
# Whose relative somebody is, said before the name that was asked for: "I'm his mum, Hannah".
_RELATED: Final = pattern("answers.related")
_FIGURES: Final = pattern("answers.figures")
# How a telephone number begins; a number that was not called one may be a meter's or a policy's.
_ANY_NUMBER: Final = pattern("answers.any_number")
_LEAST_FIGURES: Final = {"my phone number is": 6, "my number is": 9}
"""Digits of a whole number; the first ones of a number that is given in parts are none."""
_NAME: Final = "my name is"
_VALUE_ASKED: Final = re.compile(
    r"my (?:(?:.{1,24} )?number|email|address|birthday|post ?code|zip code|eircode|car registration) is"
)
_ONLY_LEADING: Final = re.compile(rf"(?! ){source('answers.leading')}$")
_FULL_NAME: Final = 3
"""The most words of a name that is given in passing."""
_ASKING_AGAIN: Final = 80
"""The most characters with which an agent only asks to hear an answer again."""
_ASKS_AGAIN: Final = pattern("answers.asks_again")
_SORRY: Final = frozenset("i'm oh ah okay ok sorry".split())
_AGREED: Final = pattern("answers.agreed")
_AFFIRMS: Final = pattern("answers.affirms")
# Questions that hold a whole statement, and those whose yes says nothing that lasts.
_HELD: Final = pattern("answers.held")
_NO_HELD: Final = pattern("answers.no_held")
_HEDGED: Final = pattern("answers.hedged")
_THEM: Final = re.compile(r"\b(?:s?he|they|it)(?:'[a-z]+)? |\b(?:hers?|his|him|theirs?|them) ")
_TRUE_OF_THEM: Final = re.compile(
    r"(?:(?:well|oh|but) ){0,2}(?:(?:s?he|they)(?:'[a-z]+)? |"
    r"(?:my|our) (?:[a-z]+ ){1,2}(?:is|does|has|are|do|did|was|have) $)"
)
_FEW_BEHIND: Final = 6
"""Words of a sentence that only qualifies the one before it."""
_HELD_OPENINGS: Final = {"be": "i'm", "do": "i", "have": "i have", "thing": "my {thing} is"}
_SECOND: Final = re.compile(r"\b(?:your|yourself|yours)\b", re.IGNORECASE)
_FIRST: Final = {"your": "my", "yourself": "myself", "yours": "mine"}
# Questions for a person, and the relation in the answer: "my son, Andrew Bell".
_WHO: Final = re.compile(r"\b(?:who|who's|whom|name|kin|guarantor|contact|anyone|anybody|else|someone) ")
_RELATION: Final = re.compile(
    rf"(?:(?:me and|with|and) )?(?P<whose>(?:my|our) (?:{source('facts.kin')}|{source('facts.child')})) "
)
# By what name the agent speaks to the caller, and where somebody who is known there mostly gives theirs.
_IS_THAT: Final = pattern("answers.is_that")
_REGISTERED: Final = pattern("answers.registered")
# "Yes, of course." and "My name?" before it.
_NO_NAME_YET: Final = re.compile(
    rf"(?:(?:and|what|who|me|sorry|my|full|name|mine) ){{1,4}}$|{source('answers.leading')}$"
)
_LETTERS: Final = re.compile(r"(?:(?:that's|it's|which is|spelled|spelt|so) ){0,2}(?:(?:double )?[a-z] ){3}")
# Not an answer: a refusal, a question, or a complete statement.
_NO_ANSWER: Final = pattern("answers.no_answer")


def completed(
    question: str, answer: str, *, of_another: bool = False, name_answered: NameAnswered | None = None
) -> str:
    """`answer` with its first sentence turned into a statement by the last sentence of the agent's
    `question`.

    Unchanged if the question gives it no meaning, or is about somebody else. `of_another`: somebody else was
    spoken of before, see `speaks_of_another`. `name_answered`: what finds the name that the answer begins
    with; a remark behind it, without a comma or a full stop, becomes a sentence of its own.
    """
    asked, said = sentences(question), sentences(answer)
    if asked and said and (named := _relation_named(asked[-1], said[0])):
        return " ".join([named, *(_as_it_is(one) for one in said[1:])])
    opening, other = _opening(asked, of_another=of_another) if asked else ("", False)
    said = _named_in_full(said) if opening == _NAME else said
    if _VALUE_ASKED.fullmatch(opening) and len(said) > 1 and _ONLY_LEADING.match(said[0].line):
        said = said[1:]  # "Sure. 404-555-0163."
    # the caller who is asked for theirs may speak of anybody next
    of_them = opening in _OF_PATIENT and not _ADDRESSED.search(asked[-1].line) and _goes_on_of_them(said[1:])
    statement = _stated(opening, said[0], name_answered) if opening and said and not of_them else ""
    if asked and said and not (opening or other or of_another):
        statement = _agreed_name(asked[-1], said[0])
    if not statement:
        agreed = affirmation(asked[-1], said) if asked and said and not (other or of_another) else ""
        return agreed or answer
    rest = [_as_it_is(one) for one in said[1:]]
    spelled = opening == _NAME and rest and _LETTERS.match(said[1].line)
    return " ".join([statement + ("," if spelled else "."), *rest])


def _as_it_is(said: Sentence) -> str:
    return said.text(0, len(said)) + ("?" if said.question else ".")


def _relation_named(asked: Sentence, said: Sentence) -> str:
    """The statement in "my son, Andrew Bell", the answer to "Who is your next of kin?"; empty if it is none.

    Otherwise the name behind a comma may be the agent's.
    """
    leading = _LEADING.match(said.line)
    found = _RELATION.match(said.line, leading.end() if leading else 0)
    start = said.at.get(found.end(), len(said)) if found else len(said)
    named = said.low(start) in GIVEN and not said.question and _is_full_name(said.tokens[start:])
    if found is None or not (named and said.gap(start) and _WHO.search(asked.line)):
        return ""
    return f"{found['whose']} is called {said.text(start, len(said))}."


def affirmation(asked: Sentence, said: Sequence[Sentence]) -> str:
    """What a yes to `asked` says, as the user would: "Are you diabetic?", "Yes, type two" is "I'm diabetic,
    type two"; empty if `said` is no yes, or the question has no such answer.
    """
    yes = _AFFIRMS.match(said[0].line)
    if yes is None or said[0].question or len(asked.line) > _QUESTION:
        return ""
    asks = _HELD.search(asked.line)
    if asks is None or _NO_HELD.search(asks["held"]):
        return ""
    begun = said[0].at.get(yes.end(), len(said[0]))
    behind = said[0].text(begun, len(said[0])) if begun < len(said[0]) else ""
    if said[0].cased and behind[:1].isupper() and said[0].low(begun) not in FUNCTION:
        return ""  # "Do you live in York?", "Yes, Leeds"
    if _HEDGED.search(said[0].line) or _of_them(said[0].line[yes.end() :]) or any(map(_qualifies, said[1:2])):
        return ""
    # "You're on the gold plan." is no question
    asking = asks["tag"] or (not asks["told"] and (asked.question or not asked.cased))
    if not asking or _OTHERS.search(asks["held"] + " "):
        return ""
    held = asked.text(asked.at[asks.start("held")], asked.at[asks.end("held") + 1])
    held = _SECOND.sub(lambda found: _FIRST[found.group().lower()], held)
    opening = next(words for group, words in _HELD_OPENINGS.items() if asks[group])
    opening = opening.format(**asks.groupdict())
    if not asked.cased:
        comma = " "
    else:
        opening, comma = opening[0].upper() + opening[1:], ", "  # no name is in lower case then
    link = " " if said[0].low(begun) in PREPOSITIONS else comma
    rest = [_as_it_is(one) for one in said[1:]]
    return " ".join([f"{opening} {held}{link if behind else ''}{behind}.", *rest])


def _of_them(line: str) -> bool:
    """Whether a part of an answer speaks of somebody else: "my wife is", "as is my son"."""
    return _OTHERS.search(line) is not None or _THEM.search(line) is not None


def _qualifies(behind: Sentence) -> bool:
    """Whether a short sentence behind a yes takes it back, or says of whom it is true: "He is"."""
    theirs = _TRUE_OF_THEM.match(behind.line) or _HEDGED.search(behind.line)
    return len(behind) <= _FEW_BEHIND and theirs is not None


def _agreed_name(asked: Sentence, said: Sentence) -> str:
    """The statement of a name, where `said` says yes to "Is that Mr Okafor?" with the name in full, or gives
    a full name to "Are you registered with us?": "yes, Emeka Okafor".
    """
    agreed = _AGREED.match(said.line)
    start = said.at.get(agreed.end(), len(said)) if agreed else len(said)
    lows = [token.low for token in said.tokens[start:] if token.low not in TITLES]
    if not 2 <= len(lows) <= _FULL_NAME or said.question or any(map(_is_word, lows)):
        return ""
    addressed = _IS_THAT.search(asked.line)
    known = _REGISTERED.search(asked.line) is not None and _is_full_name(said.tokens[start:])
    known = known or (addressed is not None and addressed["name"].split()[-1] in lows)
    return f"{_NAME} {said.text(start, len(said))}" if known else ""


def _is_full_name(name: Sequence[Token]) -> bool:
    """Whether the words are a person's name, one of them known."""
    lows = [token.low for token in name if token.low not in TITLES]
    known = 0 < len(lows) <= _FULL_NAME and not GIVEN.isdisjoint(lows)
    return known and not any(map(_is_word, lows)) and (PLACES | PLACE_WORDS).isdisjoint(lows)


def _named_in_full(said: list[Sentence]) -> list[Sentence]:
    """`said` from its second sentence on, if only that gives the name, or gives it in full: "Byron. Mrs Ada
    Byron.", "My name? Ada Byron.", "It was on my landlord, now it's on me. Ada Byron."
    """
    if len(said) > 1 and _NO_NAME_YET.match(said[0].line):
        return _named_in_full(said[1:])
    if len(said) < 2 or said[1].question:
        return said
    leading = _LEADING.match(said[0].line)
    first, then = _begun(said[0], said[0].at.get(leading.end(), 0) if leading else 0), _begun(said[1], 0)
    begun, whole = ({token.low for token in one if token.low not in TITLES} for one in (first, then))
    fuller = bool(begun) and begun < whole and len(then) <= len(first) + 3
    lows = [token.low for token in said[0].tokens]
    own = lows[-1] in {"me", "mine"} and "not" not in lows and len(then) <= _FULL_NAME
    written = all(token.capital or not said[1].cased for token in then)
    named = written and bool(whole) and not any(map(_is_word, whole))
    return said[1:] if named and (fuller or own) else said


def _begun(said: Sentence, start: int) -> tuple[Token, ...]:
    """The words of `said` from `start` to its first comma."""
    behind = range(start + 1, len(said))
    end = next((at for at in behind if said.gap(at)), len(said))
    return said.tokens[start:end]


def _is_word(low: str) -> bool:
    """Whether a folded word is no part of a person's name."""
    return low in FUNCTION or wordlike(low)


def _goes_on_of_them(behind: Sequence[Sentence]) -> bool:
    """Whether what follows an answer shows that it is somebody else's: "Theo, any allergies?", "Nuts. All
    nuts. He's got an EpiPen." Nobody else was named whom "he" could mean.
    """
    for one in behind:
        if _GOES_ON_OF_THEM.match(one.line):
            return True
        if _OTHERS.search(one.line) or any(token.capital for token in one.tokens[1:]):
            return False
    return False


def asks_about_another(question: str, *, of_another: bool = False) -> bool:
    """Whether the last sentence of the agent's `question` asks about somebody else than the user.

    `of_another`: as in `completed`.
    """
    asked = sentences(question)
    held = of_another and bool(asked) and _HELD.search(asked[-1].line) is not None
    return held or (bool(asked) and _opening(asked, of_another=of_another)[1])


# Others need not be cut into sentences.
_MAY_ASK_AGAIN: Final = re.compile(
    r"sorry|pardon|what|again|hello|repeat|once|time|missed|catch|hear|get|make out|broke|cut|break|there",
    re.IGNORECASE,
)


def asks_again(text: str) -> bool:
    """Whether the agent only asks to hear the last answer again: "Sorry?", "Could you repeat that?".

    "Sorry." and "I'm sorry" are rather said of what the caller told.
    """
    if len(text) > _ASKING_AGAIN or not _MAY_ASK_AGAIN.search(text):
        return False
    said = sentences(text)
    line = "".join(one.line for one in said)
    lows = frozenset(line.split())
    if "sorry" in lows <= _SORRY:
        return len(lows) == 1 and (said[-1].question or not said[-1].cased)
    return _ASKS_AGAIN.search(line) is not None


def speaks_of_another(text: str, *, of_another: bool, by_agent: bool, asked: str = "") -> bool:
    """Whether the talk is about somebody else once `text` was said; `of_another`: whether it was before.

    "Any allergies?" then means him or her. It begins with what the caller wants for somebody, be it that the
    agent `asked` so, or with a question about their health; "she's out in the car" and "Is your wife coming?"
    do not change whom the talk is about.
    """
    if not of_another and not _MAY_TURN.search(f"{asked} {text}".casefold()):
        return False
    said = sentences(text)
    if by_agent and said:
        opening, asks = _opening(said, of_another=of_another)
        asks = asks and _ASKED_OF_PATIENT.search(said[-1].line) is not None
        held = _HELD.search(said[-1].line) if of_another else None
        meant = opening not in _OF_PATIENT or (held is not None and not _NO_HELD.search(held["held"]))
        return asks or (of_another and meant)
    if said and _CONFIRMING.search(said[0].line):
        before = sentences(asked)
        of_another = of_another or (bool(before) and _FOR_YOURS.search(before[-1].line) is not None)
    for one in said:
        begins, goes_on, own = (
            max((found.end() for found in each.finditer(one.line)), default=0)
            for each in (_FOR_ANOTHER, _OF_ANOTHER, _OF_SELF)
        )
        of_another = own <= max(begins, goes_on) and (of_another or begins > 0)
    return of_another


def says_whose(clause: str) -> bool:
    """Whether `clause` says of whom it is: "hay fever tablets, for me" does, "hay fever tablets" does not."""
    return _WHOSE.search(clause) is not None


def _opening(asked: Sequence[Sentence], *, of_another: bool) -> tuple[str, bool]:
    """The words that an answer completes, and whether it is about somebody else."""
    line = asked[-1].line[-_QUESTION:]
    for found, begun in _OPENINGS:
        if match := found.search(line):
            named = match.groupdict()
            if of_another and begun in _OF_PATIENT and not _ADDRESSED.search(line):
                return "", True
            if of_another and _OF_EITHER.search(begun.format(**named)):
                return "", True
            about = _PURPOSE.sub("", line)
            if not (named or _ADDRESSED.search(line)):
                # "And the date of birth?" may be about whom the sentence before names
                about += " ".join(_ABOUT.findall(asked[-2].line[-_QUESTION:])) if asked[1:] else ""
            elif _ADDRESSED.search(match.group()):
                about = _FIRM.sub("", about)  # "any allergies the restaurant should know about?"
            other = _OTHERS.search(about.replace(named.get("thing") or "\0", ""))
            return ("", _ANOTHER.search(about) is not None) if other else (begun.format(**named), False)
    # recognisers that write no capitals write no question marks, either
    asks = asked[-1].question or not asked[-1].cased
    about = _PURPOSE.sub("", line)
    return "", asks and not _ADDRESSEE.search(about) and _ANOTHER.search(about) is not None


def _stated(opening: str, said: Sentence, name_answered: NameAnswered | None) -> str:
    """The opening and the answer, without a preposition twice: "I live in", "in Bristol"."""
    leading = _LEADING.match(said.line)
    start = said.at.get(leading.end(), 0) if leading else 0
    they = _THEY_ARE_CALLED if opening.endswith(" called") else _THEY_ARE if opening.endswith(" is") else None
    if they and _OTHERS.search(opening) and (named := said.match(they, start)):
        start = said.at.get(named.end(), start)  # "How old is your son?", "He's six"
    related = _introduces(said, start) if opening == _NAME else None
    start = said.at.get(related.end(), start) if related else start
    last = opening.rpartition(" ")[2]
    start += said.low(start) == last or (last == "in" and said.low(start) in {"at", "near", "on"})
    end = len(said)
    long = _count(said, start, end) > MOST_WORDS
    apart = name_answered(said, start) if name_answered and opening == _NAME else None
    if apart and (long or not said.gap(apart)):
        end = apart
    elif long:
        end = next((at for at in range(start + 1, end) if said.gap(at)), end)
    if said.question or not 0 < _count(said, start, end) <= MOST_WORDS or said.match(_NO_ANSWER, start):
        return ""
    first = said.low(start)
    if opening == _NAME and len(first) > 1 and first not in TITLES and _is_word(first):
        return ""  # "What shall I call you?", "Remember that my car is on level 3"
    if opening in _OF_PATIENT and _of_somebody(said, start):
        return ""
    line = said.line[said.starts[start] : said.starts[end]]
    # "Is your number still …?", "That's the farm"
    if (opening == "my email is" and not _EMAIL.search(line)) or (
        opening in _LEAST_FIGURES and not _is_number(opening, line)
    ):
        return ""
    behind = f". {said.text(end, len(said))}" if end < len(said) else ""
    opening, _, counted = opening.partition(" *")  # "How many cats do you have?", "Two", or "two tabbies"
    number = bool(counted) and (end == start + 1 or said.gap(start + 1)) and first in NUMBERS
    if number:
        rest = f", {said.text(start + 1, end)}" if end > start + 1 else ""
        return f"{opening} {said.text(start, start + 1)}{counted}{rest}{behind}"
    return f"{opening} {said.text(start, end)}{behind}"


def _introduces(said: Sentence, start: int) -> re.Match[str] | None:
    """What comes before a name at the word `start`, or behind the "it's" before it: "you're speaking to"."""
    return said.match(_RELATED, max(0, start - 1)) or said.match(_RELATED, start)


def _count(said: Sentence, start: int, end: int) -> int:
    """The words from `start` to before `end`, without the letters of a name that is spelled."""
    letters = sum(len(token.low) == 1 and token.low.isalpha() for token in said.tokens[start:end])
    return end - start - max(0, letters - 1)


def _of_somebody(said: Sentence, start: int) -> bool:
    """Whether an answer speaks of somebody by name: "Nia's coeliac", not "latex is the main one"."""
    found = said.match(_DOES, start)
    if found is None:
        return False
    # a medicine that begins a sentence looks like a name
    name = said.low(start).partition("'")[0]
    return name in GIVEN or (found["ill"] is not None and not wordlike(name) and name not in FUNCTION)


def _is_number(opening: str, line: str) -> bool:
    """Whether `line` is a telephone number, and not its first digits or another number."""
    figures = sum(1 + (found["two"] is not None) for found in _FIGURES.finditer(line))
    certain = opening != "my number is" or _ANY_NUMBER.match(line) is not None
    return certain and figures >= _LEAST_FIGURES[opening]


# -- a telephone number that is given in parts, and read back

# Every question for a number has one of these; others need not be cut into sentences.
_MAY_ASK_NUMBER: Final = re.compile(r"number|phone|mobile|cell|landline|whatsapp|yours|\d\d", re.IGNORECASE)
_PHONE_ASKED: Final = pattern("answers.phone_asked")
_NUMBER_ASKED: Final = pattern("answers.number_asked")
_YOURS_ASKED: Final = pattern("answers.yours_asked")
_AGENTS_NUMBER: Final = pattern("answers.agents_number")
_OTHER_KIND: Final = pattern("answers.other_kind")
_OWN_NUMBER: Final = pattern("answers.own_number")
_OTHERS_NUMBER: Final = pattern("answers.others_number")
_OLD_NUMBER: Final = pattern("answers.old_number")
_SHORT: Final = re.compile(r"\b(?:short|missing|too (?:few|many|long))\b", re.IGNORECASE)
_OTHERS_BEHIND: Final = pattern("answers.others_behind")
_GIVES_NUMBER: Final = pattern("answers.gives_number")
_ABROAD: Final = "abroad"
_WHOLE: Final = {
    "my number is": re.compile(r"0\d{9,10}"),
    "my phone number is": re.compile(r"0\d{9,10}|1?[2-9]\d{9}"),
    _ABROAD: re.compile(r"[1-9]\d{8,14}"),
}
"""A whole number; where only "a number" was asked for, one that cannot be a policy's; and after a "+"."""
_PLUS: Final = re.compile(r"\bplus (?=\d)", re.IGNORECASE)
_STOP: Final = re.compile(r"[.!?;\n]+(?!\d)")
_SLIPS: Final = frozenset(
    "no nope sorry wait mean scratch make actually again correction oops rather".split()
)
_BEFORE_NUMBER: Final = (BETWEEN | words("answers.before_number")) - _SLIPS
_WAITING: Final = BETWEEN | frozenset(
    "on and the last one more digit digits uh-huh mm-hm mm-hmm sir madam ma'am".split()
)
_THANKS: Final = frozenset("thanks thank perfect lovely brilliant excellent cheers noted".split())
_FEW_WORDS: Final = 3
"""Words before a number that do not say whose it is: "it's at"."""
_LONGEST_CODE: Final = 3
"""Digits of the code of a country."""
_START, _END = 4, 3
"""Digits with which a number read back begins as it was given, and of an end that says which it is."""


_MAY_GIVE: Final = re.compile(
    r"[0-9][ -]?[0-9][ -]?[0-9]|(?:\b(?:oh|o|zero|nought|one|two|three|four|five|six|seven|eight|nine|double|"
    r"triple|treble|hundred)\b[\s,.-]{0,3}){2}",
    re.IGNORECASE,
)


def may_give_number(said: str) -> bool:
    """Whether `said` may give a part of a telephone number of more than two digits."""
    return _MAY_GIVE.search(said) is not None


@dataclass(slots=True)
class Dictation:
    """A telephone number of the user while it is given, over as many turns as it takes."""

    kind: str
    """The key of `_WHOLE`: how surely a telephone number was asked for."""
    offered: str = ""
    """The number that the agent has, and asks about."""
    given: str = ""
    """All digits that the user said, slips and all."""
    clean: str = ""
    """The digits that each turn of theirs began with."""
    slipped: bool = False
    """Whether the user put one of these right."""
    echoed: str = ""
    """The digits that the agent repeated."""

    @classmethod
    def asked(cls, said: str) -> Dictation | None:
        """One that the agent's words begin: a question for the user's number, or whether it is right."""
        if not _MAY_ASK_NUMBER.search(said):
            return None
        lines = [one.line for one in sentences(said)]
        offered = next((run for run in _digits_in(said) if _WHOLE["my number is"].fullmatch(run)), "")
        phone = any(_asks_so(_PHONE_ASKED, line) for line in lines)
        if phone or any(map(_YOURS_ASKED.search, lines)):
            return cls("my phone number is", offered)
        yours = any(_asks_so(_ADDRESSED, line) and not _AGENTS_NUMBER.search(line) for line in lines)
        asks = any(_asks_so(_NUMBER_ASKED, line) for line in lines)
        return cls("my number is", offered) if asks or (offered and yours) else None

    @classmethod
    def begun(cls, said: str) -> Dictation | None:
        """One that the user's words begin without being asked: "ring me on oh seven"."""
        return cls("my phone number is") if _GIVES_NUMBER.search(fold(said)) else None

    def hear(self, said: str) -> bool:
        """Take what the user said; returns whether it has digits of a number of theirs."""
        before, found = "", ""
        for part in _STOP.split(_figures_in(said)):
            last = 0
            for run, start, end in runs(written(part)):
                # "the new one is oh seven": a single digit may be no number
                if run[1:] and self._is_others(part[last:start], before, behind=part[end:]):
                    break
                found += run
                last = end if run[1:] else last
            else:
                before = part
                continue
            break
        if found and not self.given.endswith(found):
            self.given += found
            self._start_of(said)
            self.kind = _ABROAD if re.search(r"\+\d", _figures_in(said)) else self.kind
        return bool(found)

    @staticmethod
    def _is_others(head: str, before: str, *, behind: str) -> bool:
        """Whether the words before and behind a number say that it is not, or no longer, the user's."""
        whose = fold(head if len(head.split()) >= _FEW_WORDS else f"{before} {head}") + " "
        own = max((match.end() for match in _OWN_NUMBER.finditer(whose)), default=-1)
        others = any(match.end() > own for match in _OTHERS_NUMBER.finditer(whose))
        old = _OLD_NUMBER.search(fold(head).strip(_CLOSING + " ") + " ") is not None
        return others or old or _OTHERS_BEHIND.match(fold(behind)) is not None

    def _start_of(self, said: str) -> None:
        for word in _figures_in(said).split():
            low = fold(word).strip(_CLOSING)
            self.slipped = self.slipped or low in _SLIPS
            if low not in _BEFORE_NUMBER and not re.fullmatch(r"\+?[\d-]+", low):
                return
            self.clean += re.sub(r"\D", "", low)

    def read_back(self, said: str) -> str:
        """The number, if the agent's words `said` complete it; else an empty string.

        What the agent reads back counts if the user said each of its digits, in that order. Without that,
        the number counts if the user made no slip, and the agent goes on to something else.
        """
        short = _SHORT.search(said) is not None
        number = "" if short else self._repeated(_digits_in(said), is_end=self._has_all(said))
        if not number or self.kind != _ABROAD:
            return number
        # the code of a country is often not read back
        code = self.given.removesuffix(number) if self.given.endswith(number) else ""
        whole = code + number if len(code) <= _LONGEST_CODE else number
        return f"+{whole}" if self.given.startswith(whole[:2]) else number

    def _repeated(self, runs_said: Sequence[str], *, is_end: bool) -> str:
        before = self.echoed
        self.echoed += "".join(runs_said)
        whole, told = _WHOLE[self.kind], self.offered + self.given
        said_whole = [run for run in runs_said if whole.fullmatch(run)]
        # "five five five oh one" repeats, and is no end yet
        echoes = [
            digits for digits in (before, self.echoed) if is_end and self.given.endswith(digits[-_END:])
        ]
        for number in (*said_whole, *echoes) if self.given else ():
            begun = number[:_START] in told and number != self.offered
            if begun and whole.fullmatch(number) and _in_order(number, told):
                return number
        if said_whole or self.slipped:
            return ""
        if len(self.clean) >= _END and self.offered.endswith(self.clean):
            return self.offered
        return self.clean if is_end and whole.fullmatch(self.clean) else ""

    def goes_on(self, said: str) -> bool:
        """Whether the agent's words `said` wait for more of the number, or may."""
        return (
            is_bare(_figures_in(said))
            or _SHORT.search(said) is not None
            or _WAITING.issuperset(_words_of(said))
        )

    def _has_all(self, said: str) -> bool:
        return not self.goes_on(said) or not _THANKS.isdisjoint(_words_of(said))


def _asks_so(wanted: re.Pattern[str], line: str) -> bool:
    """Whether `line` asks for what is `wanted`, and not for somebody else's, or another kind of number.

    "Your policy number and a mobile" asks for both.
    """
    found = wanted.search(line)
    others = (*_OTHERS_NUMBER.finditer(line), *_OTHER_KIND.finditer(line)) if found else ()
    return found is not None and all(other.end() <= found.start() for other in others)


def _words_of(said: str) -> list[str]:
    return [word.strip(_CLOSING) for word in fold(said).split()]


def _figures_in(said: str) -> str:
    return _PLUS.sub("+", in_figures(said))


def _digits_in(said: str) -> list[str]:
    return [run for run, _, _ in runs(written(_figures_in(said)))] if _FIGURES.search(said.casefold()) else []


def _in_order(digits: str, among: str) -> bool:
    rest = iter(among)
    return all(digit in rest for digit in digits)


# -- another voice, known by words alone: "I'll hand you over to Mei", "me again"

_AWAY: Final = pattern("telephone.away")
# "My boss wants a word", which may be said of a talk at another time.
_WANTED: Final = pattern("telephone.wanted")
_STAYS: Final = pattern("telephone.stays")
_BACK: Final = pattern("telephone.back")
_NAMES: Final = pattern("telephone.names")
_ASKS_WHO: Final = pattern("telephone.asks_who")
_OF_WHO: Final = pattern("telephone.of_who")
_OF_THEM: Final = pattern("telephone.of_them")
# "Hello? Hello?" asks whether anybody is there.
_GREETS_ANEW: Final = re.compile(r"(?:hello|hi|hiya|hey) (?!(?:hello|hi|are you|is (?:any|some)) ?)")
_SAYS_WHO: Final = re.compile(
    r"\b(?:i'm|i am|i live|i work|i was born|i take(?! it\b)) (?!still|back|here|sorry|afraid|not|just|going)"
)
_OPENS: Final = 3
"""Sentences with which somebody who begins to speak says who they are."""
# Every text that gives the telephone away contains one of these; others need not be cut into sentences.
_MAY: Final = re.compile(
    r"\b(?:i?ll|will|me|to|gonna|i)(?: just| quickly)? (?:hand|pass|put|give|switch)\b"
    r"|\b(?:handing|passing|putting|giving|switching) \w|\b(?:talk|speak) (?:to|with)\b|\btak(?:e|ing) over\b"
    r"|\bhere(?:['’]s| is| he| she)\b|\bwant(?:s|ing) (?:on|the|a|to)\b|\bsay (?:hello|hi) to\b",
    re.IGNORECASE,
)


def hands_over(text: str, reply: str = "") -> bool:
    """Whether `text` gives the telephone to somebody: "I'll put my wife on".

    Who only "wants a word" has not got it if the agent's `reply` asks the caller for a name.
    """
    if not _MAY.search(text):
        return False
    said, asked = sentences(text), sentences(reply)
    named = bool(asked) and ("name " in asked[-1].line or _opening(asked, of_another=False)[0] == _NAME)
    given = (_AWAY,) if named else (_AWAY, _WANTED)
    return any(
        _goes_away(one, then, away) for one, then in itertools.zip_longest(said, said[1:]) for away in given
    )


def takes_over(text: str, *, at_once: bool = False) -> bool:
    """Whether `text` begins as somebody does who was given the telephone: it says a name.

    A greeting alone may be the same caller's, who tells that she is busy. `at_once`: nobody spoke after the
    telephone was given away, so that who greets and says "I'm" is somebody else.
    """
    said = sentences(text)
    anew = at_once and said and not said[0].question and _GREETS_ANEW.match(said[0].line)
    if anew and any(_SAYS_WHO.search(one.line) for one in said[:_OPENS]):
        return True
    return any(_of_person(_NAMES, one) for one in said[:2])


_MAY_ASK_WHO: Final = re.compile(r"\b(?:speaking|talking|that|this|you)\b", re.IGNORECASE)
_MAY_STAND_IN: Final = re.compile(r"(?:\b(?:his|her|their)|['’]s)\s", re.IGNORECASE)


def stands_in(text: str, asked: str) -> bool:
    """Whether `text` answers that it is not whom the agent `asked` for: "No, this is his wife."."""
    if not (_MAY_STAND_IN.search(text) and _MAY_ASK_WHO.search(asked)):
        return False
    questions, said = sentences(asked), sentences(text)
    if not questions or not said or _of_person(_ASKS_WHO, questions[-1]) is None:
        return False
    return any(_OF_WHO.match(one.line) for one in said[:_OPENS] if not one.question)


def is_asked_for(text: str, asked: str) -> bool:
    """Whether `text` gives a name that is in `asked`: "Hello, Clare here.", after "Is that Clare?"."""
    who = [found[0] for one in sentences(asked)[-1:] if (found := _ASKS_WHO.search(one.line))]
    named = {word for one in who for word in one.split()[-2:]} - _BEFORE_NAMES
    said = [one for one in sentences(text)[:2] if _of_person(_NAMES, one)]
    return any(word in named for one in said for word in one.line.split())


_BEFORE_NAMES: Final = frozenset("to with that this is the mr mrs ms miss dr".split())


def is_back(text: str) -> bool:
    """Whether `text` says that the one who gave the telephone away speaks again: "me again"."""
    return any(_of_person(_BACK, said) for said in sentences(text)[:_OPENS])


def speaks_of_them(text: str) -> bool:
    """Whether `text` begins with somebody who had the telephone: "Sorry about that. He's four."."""
    return _OF_THEM.match("".join(said.line for said in sentences(text)[:_OPENS])) is not None


def _goes_away(said: Sentence, then: Sentence | None, away: re.Pattern[str]) -> bool:
    """Whether `said` gives the telephone `away`, and neither it nor `then`, the next, takes that back."""
    found = _of_person(away, said)
    if found is None or _STAYS.search(said.line, found.end()):
        return False
    return then is None or not _STAYS.match(then.line)


def _of_person(pattern: re.Pattern[str], said: Sentence) -> re.Match[str] | None:
    """The first match of `pattern` whose group, if it has matched, is a name."""
    for found in pattern.finditer(said.line):
        if not found.lastindex:
            return found
        low = found[found.lastindex]
        at = said.at.get(found.start(found.lastindex), len(said))
        written = said.cased and at < len(said) and said.tokens[at].capital
        if low in GIVEN or (written and not wordlike(low)):
            return found
    return None
