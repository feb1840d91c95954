"""Cuts an utterance into sentences of words, and says which of them are no statement of the speaker's own.

Cutting knows punctuation, quotation, fillers and stammering, and nothing of what words mean; it is linear in
the text. The guards look at words only: suppositions, questions, other people's words, jokes and an agent's
words are not believed. Before a rule, `Ground` says whether a clause of the speaker's own begins here; after
it, `withdrawn` says whether the rest of the sentence takes it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from echoic.english.lexicon import pattern, table, words
from echoic.words import fold

FILLERS: Final = words("sentences.fillers")

# A stammer repeats small words, never a name: "New York New York" and "Duran Duran" stay as they are.
_REPEATABLE: Final = words("sentences.repeatable")
_RESTARTS = frozenset("in at from near as".split())
_REPAIRS: Final = words("sentences.repairs")
_CONTRACTIONS: Final = table("sentences.contractions")
# Words whose full stop does not end a sentence.
_TITLES: Final = words("sentences.titles")
_ABBREVIATIONS = _TITLES | frozenset("sr jr vs etc approx ave apt inc corp ltd".split())
_CLIPPED = ("'cause", "'cos", "'em", "'til", "'bout", "'n")

_OPENING = "\"“„«‘'([{¿¡*_"
_CLOSING = "\"”“»’')]}*_,.;:!?…–—-"
_MAX_WORD = 80
"""Characters; anything longer is not speech and is passed over."""
_DASHES = re.compile(r"[–—]|--|…|\.{2,}")
_INITIALS = re.compile(r"(?:[a-z]\.){1,4}[a-z]?")
_KNOWN_AFTER: Final = words("sentences.known_after")
_KNOWN_BEFORE: Final = words("sentences.known_before")


@dataclass(frozen=True, slots=True)
class Token:
    """One word as it was said."""

    text: str
    """Without the punctuation around it."""
    low: str
    """Folded: lower case, no accents, straight apostrophes; never holds a space."""
    gap: bool
    """Whether a comma, colon, dash or bracket stands before it."""
    quoted: bool
    """Whether it stands inside quotation marks."""

    @property
    def capital(self) -> bool:
        """Whether it is written as a name: an upper-case letter, or a script that has no cases."""
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
    """Whether the utterance was written with capitals, so that their absence means something."""
    question: bool
    line: str = field(init=False)
    """The folded words, each followed by one space: what patterns are matched against."""
    starts: tuple[int, ...] = field(init=False)
    """Where each word starts in `line`."""
    at: dict[int, int] = field(init=False)
    """The word that starts at an offset of `line`; the end of the line gives the number of words."""

    def __post_init__(self) -> None:
        starts: list[int] = []
        offset = 0
        for token in self.tokens:
            starts.append(offset)
            offset += len(token.low) + 1
        at = {start: index for index, start in enumerate(starts)}
        at[offset] = len(self.tokens)
        object.__setattr__(self, "line", "".join(token.low + " " for token in self.tokens))
        object.__setattr__(self, "starts", tuple(starts))
        object.__setattr__(self, "at", at)

    def __len__(self) -> int:
        return len(self.tokens)

    def low(self, index: int) -> str:
        """The folded word at `index`; empty outside the sentence."""
        return self.tokens[index].low if 0 <= index < len(self.tokens) else ""

    def gap(self, index: int) -> bool:
        """Whether something breaks the words before `index`: punctuation or an end of the sentence."""
        return not 0 < index < len(self.tokens) or self.tokens[index].gap

    def text(self, start: int, end: int) -> str:
        """The words from `start` to before `end`, as said, with commas where they stood."""
        parts = [self.tokens[start].text]
        parts += [("," if t.gap else "") + " " + t.text for t in self.tokens[start + 1 : end]]
        return "".join(parts)

    def offset(self, index: int) -> int:
        """Where the word `index` starts in `line`; the end of the line past the last word."""
        return self.starts[index] if index < len(self.tokens) else len(self.line)

    def match(self, pattern: re.Pattern[str], index: int) -> re.Match[str] | None:
        """`pattern` matched at the word `index`; None past the last word."""
        return pattern.match(self.line, self.offset(index)) if index < len(self.tokens) else None


def sentences(text: str) -> list[Sentence]:
    """`text` as sentences. Fillers, broken-off words and stammered small words are left out.

    A text in capitals throughout is read as if it were in lower case: some recognisers write so.
    """
    shouted = text.upper() == text and text.lower() != text and " " in text.strip()
    if shouted:
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
        gap = False
        quotes = _Quotes()
        chunks = _DASHES.sub(" , ", line.replace(" - ", " , ").replace("\0", " ")).split()
        words = [_word_of(chunks, index) for index in range(len(chunks))]
        folded = fold("\0".join(word for word, _, _ in words)).split("\0")
        for (word, opening, closing), apart in zip(
            words, folded, strict=False
        ):  # "" is cut into one word, too
            low = "".join(apart.split())
            quotes.open(opening)
            if low and len(word) <= _MAX_WORD:
                tokens.append(Token(word, _CONTRACTIONS.get(low, low), gap or "(" in opening, quotes.inside))
                gap = False
            quotes.close(closing)
            gap = gap or any(c in closing for c in ",:)–—")
            if _ends(word, closing):
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
    """Whether a word that ends in a hyphen was broken off ("Bos- uh in Boston"); else it is a dash."""
    return any(chunk.lower().startswith(start.lower()) for chunk in following)


def _stripped(chunk: str) -> tuple[str, str, str]:
    """The word of `chunk`, and the punctuation before and after it; a word broken off keeps its hyphen."""
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
    """Whether the words read now stand between quotation marks."""

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
        before = raw[index - 1].low if index else ""
        after = raw[index + 1].low if index + 1 < len(raw) else ""
        if skip or token.low in FILLERS or _is_you_know(before, token.low, after, _after(raw, index + 2)):
            skip = not skip and token.low == "you"
            gap = gap or token.gap
            continue
        tokens.append(Token(token.text, token.low, token.gap or gap, token.quoted))
        gap = False
        _unstammered(tokens)
        _restarted(tokens)
    return tokens


def _after(raw: list[Token], index: int) -> str:
    return raw[index].low if index < len(raw) else ""


def _is_you_know(before: str, word: str, after: str, then: str) -> bool:
    if (word, after) != ("you", "know") or before in _KNOWN_AFTER:
        return False
    return then not in _KNOWN_BEFORE or then in {"i", "i'm", "my"}


def _unstammered(tokens: list[Token]) -> None:
    """Drop small words that the last ones only repeat: "in in", "my name my name", "i i'm"."""
    if len(tokens) > 1 and tokens[-1].low.startswith(tokens[-2].low + "'") and tokens[-2].low in _REPEATABLE:
        del tokens[-2]
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
"""Words a clause of the speaker's own may follow."""
# Words that make what follows a question, a relative clause, a hedge or somebody's words.
_FORBIDDING: Final = words("guards.forbidding")
_SHADOWING: Final = words("guards.shadowing")
_LIFTING: Final = frozenset("but anyway anyways however".split())
# Phrases that cast a shadow though none of their words does.
_SHADOWS: Final = pattern("guards.shadows")
# Phrases that cast none though their words do: polite conditions and the speaker's own insistence.
_HARMLESS: Final = pattern("guards.harmless")
# Phrases after which the speaker vouches for what follows.
_VOUCHING: Final = pattern("guards.vouching")
_AGENT: Final = pattern("guards.agent")
_STAGED: Final = pattern("guards.staged")
_AGENTS: Final = frozenset("assistant agent system bot ai".split())
_QUESTIONING: Final = words("guards.questioning")
_ASSENTING: Final = frozenset("ok okay alright please yeah".split())
_TAGS: Final = pattern("guards.tags")
_TAKEN_BACK: Final = pattern("guards.taken_back")
# What makes a home, a job or a diet one of a season, or one that was left.
_PASSING: Final = pattern("guards.passing")
_PASSING_KEYS: Final = ("home", "employer", "workplace", "occupation", "industry", "diet:")
# What says that nothing before it holds, of whatever kind it is.
_UNSAID: Final = pattern("guards.unsaid")
# The same, but of what was denied anyway it is only said once more: "I don't live there, not any more".
_ENDED: Final = re.compile(r"(?:no more|(?:but )?not (?:now|any ?more)) ")
_JOKE: Final = pattern("guards.joke")
_TIMELESS: Final = tuple(
    "contact_time no_contact_time requirement: decision: note: phone email preference:".split()
)


def by_an_agent(utterance: Sequence[Sentence]) -> bool:
    """Whether an assistant says this, or somebody who wants to instruct one."""
    first = utterance[0] if utterance else None
    labelled = first is not None and first.low(0) in _AGENTS and len(first) > 1 and first.gap(1)
    return labelled or any(_AGENT.search(said.line) for said in utterance)


def staged(utterance: Sequence[Sentence]) -> bool:
    """Whether it is sung, acted or broadcast: then nothing in it is meant."""
    return any(_STAGED.search(said.line) for said in utterance)


def greets(said: Sentence) -> bool:
    """Whether the sentence is nothing but a greeting."""
    words = [token.low for token in said.tokens]
    return not GREETINGS.isdisjoint(words) and all(word in CONNECTING for word in words)


class Ground:
    """Where in one sentence a clause of the speaker's own may begin. Computed once, in one pass."""

    def __init__(self, said: Sentence, *, greeted: bool) -> None:
        self._said = said
        self._vouched = _ends_of(_VOUCHING, said)
        self._shadow = _shadow(said)
        self._greeting = _greeting(said, greeted=greeted)

    def greeted(self, index: int) -> bool:
        """Whether only a greeting and small words come before `index`."""
        return index <= self._greeting

    def vouch(self, index: int) -> None:
        """Let a clause begin at `index`, whatever stands before it."""
        self._vouched.add(index)

    def bears(self, index: int, *, firm: bool, value_end: int, asked: bool = False) -> bool:
        """Whether a rule may begin at `index`.

        Args:
            index: the first word of the trigger.
            firm: whether the trigger is plain enough to begin anywhere but after a word that forbids it.
            value_end: where the value read last ended: a new clause may begin right there.
            asked: whether the trigger is a request, which a shadow does not touch.
        """
        said = self._said
        if said.tokens[index].quoted:
            return False
        if index in self._vouched:
            return True
        if self._shadow[index] and not asked:
            return False
        before = said.low(index - 1)
        if index in (0, value_end):
            return True
        if before in _FORBIDDING:
            return False
        thanked = (said.low(index - 2), before) == ("thank", "you")
        return firm or said.tokens[index].gap or thanked or before in CONNECTING


def _shadow(said: Sentence) -> list[bool]:
    """For each word, whether a supposition or somebody else's words reach over it."""
    harmless = _covered(_HARMLESS, said)
    starts = set(_ends_of(_SHADOWS, said))
    shadow: list[bool] = []
    dark = False
    for index, token in enumerate(said.tokens):
        dark = (dark or index in starts) and token.low not in _LIFTING
        shadow.append(dark)
        dark = dark or (token.low in _SHADOWING and index not in harmless)
    return shadow


def _covered(pattern: re.Pattern[str], said: Sentence) -> set[int]:
    found: set[int] = set()
    for match in _matches(pattern, said):
        start, end = said.at[match.start()], said.at[match.end()]
        found.update(range(start, end))
    return found


def _ends_of(pattern: re.Pattern[str], said: Sentence) -> set[int]:
    harmless = _covered(_HARMLESS, said) if pattern is _SHADOWS else set()
    return {
        said.at[match.end()] for match in _matches(pattern, said) if said.at[match.start()] not in harmless
    }


def _matches(pattern: re.Pattern[str], said: Sentence) -> list[re.Match[str]]:
    """Matches that begin and end with a word."""
    return [m for m in pattern.finditer(said.line) if m.start() in said.at and m.end() in said.at]


def _greeting(said: Sentence, *, greeted: bool) -> int:
    """The last word before which there is only a greeting; -1 where there is none."""
    seen = greeted
    for index, token in enumerate(said.tokens):
        seen = seen or token.low in GREETINGS
        if token.low not in CONNECTING:
            return index if seen else -1
    return -1


def withdrawn(said: Sentence, end: int, key: str, *, denied: bool = False) -> bool:
    """Whether what follows a value at `end` makes it a question, a joke, a guess or a passing state.

    Args:
        said: the sentence.
        end: the word after the value.
        key: the key of the value.
        denied: whether the value was denied ("I don't live in Rome").
    """
    if end >= len(said):
        return said.question
    takes_back = (
        said.match(_TAGS, end)
        or said.match(_UNSAID, end)
        or (not denied and said.match(_ENDED, end))
        or (key.startswith(_PASSING_KEYS) and said.match(_PASSING, end))
        or (not key.startswith(_TIMELESS) and said.match(_TAKEN_BACK, end))
    )
    return bool(takes_back) or (said.question and not _asks_later(said, end))


def _asks_later(said: Sentence, end: int) -> bool:
    """Whether the question is a later clause, or only asks for assent: "I'm Ana, can you help me?"."""
    rest = [said.low(index) for index in range(end, min(len(said), end + 40))]
    return not _QUESTIONING.isdisjoint(rest) or said.low(len(said) - 1) in _ASSENTING


def jokes(said: Sentence) -> bool:
    """Whether the sentence says that the one before was a joke."""
    return said.match(_JOKE, 0) is not None
