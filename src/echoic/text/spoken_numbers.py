"""The reader of numbers and letters as people say them: words become digits, spelled letters become words.

"double seven oh three" reads "7703", "d e eight nine" reads "de89", "plus four four" reads "+44". Single
digits and letters said without a pause are joined; a comma, a pause or a number above nine begins a new
group.

`written` reads written text: it removes what hides data from a pattern but not from a reader, such as
full-width digits, marks and zero-width characters, and the many dashes and spaces. Both map back to the
original, where one character may stand for several, or none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

Numerals = Mapping[tuple[str, ...], str]
"""Folded words and the digits they say: ("quatre", "vingt", "dix") is "90"."""


@dataclass(frozen=True, slots=True)
class Tongue:
    """How a language says digits."""

    numerals: Numerals
    vocabulary: frozenset[str]
    """The words a numeral begins with."""
    longest: int
    """Words of its longest numeral."""
    repeats: Mapping[str, int]
    """Multipliers such as "double", and how often they repeat the next digit."""


def _counted(
    low: Sequence[str], tens: str, first: int, beyond: Callable[[str, int], tuple[str, ...]]
) -> dict[tuple[str, ...], str]:
    """The words from zero, the tens from `first`, and what is said `beyond` each of these."""
    table: dict[tuple[str, ...], str] = {(word,): str(n) for n, word in enumerate(low)}
    for n, word in enumerate(tens.split(), first):
        table[(word,)] = str(n * 10)
        table |= {beyond(word, m): str(n * 10 + m) for m in range(1, 10)}
    return table


def _english() -> dict[tuple[str, ...], str]:
    low = (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen"
    ).split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety"
    table = _counted(low, tens, 2, lambda ten, m: (ten, low[m]))
    table |= {(word,): "0" for word in ("oh", "nought", "naught", "nil")}
    return table | {("fourty",): "40", ("niner",): "9"}


def _spanish() -> dict[tuple[str, ...], str]:
    low = (
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
        "dieciseis diecisiete dieciocho diecinueve veinte veintiuno veintidos veintitres veinticuatro "
        "veinticinco "
        "veintiseis veintisiete veintiocho veintinueve"
    ).split()
    tens = "treinta cuarenta cincuenta sesenta setenta ochenta noventa"
    return _counted(low, tens, 3, lambda ten, m: (ten, "y", low[m]))


def _portuguese() -> dict[tuple[str, ...], str]:
    low = (
        "zero um dois tres quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis "
        "dezessete dezoito dezenove"
    ).split()
    tens = "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa"
    table = _counted(low, tens, 2, lambda ten, m: (ten, "e", low[m]))
    return table | {("meia",): "6", ("dezasseis",): "16", ("dezassete",): "17", ("dezanove",): "19"}


def _italian() -> dict[tuple[str, ...], str]:
    low = (
        "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici "
        "quindici sedici diciassette diciotto diciannove"
    ).split()
    tens = "venti trenta quaranta cinquanta sessanta settanta ottanta novanta"
    # The last vowel is dropped before "uno" and "otto".
    return _counted(low, tens, 2, lambda ten, m: ((ten[:-1] if m in {1, 8} else ten) + low[m],))


def _german() -> dict[tuple[str, ...], str]:
    low = (
        "null eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn funfzehn "
        "sechzehn siebzehn achtzehn neunzehn"
    ).split()
    tens = "zwanzig dreissig vierzig funfzig sechzig siebzig achtzig neunzig"
    table = _counted(low, tens, 2, lambda ten, m: (f"{'ein' if m == 1 else low[m]}und{ten}",))
    return table | {("zwo",): "2", ("fuenf",): "5", ("zwoelf",): "12", ("fuenfzehn",): "15"}


def _french() -> dict[tuple[str, ...], str]:
    low = (
        "zero un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize "
        "dix_sept dix_huit dix_neuf"
    ).split()
    words = [tuple(word.split("_")) for word in low]
    table: dict[tuple[str, ...], str] = {word: str(n) for n, word in enumerate(words)}
    for n, ten in enumerate("vingt trente quarante cinquante soixante".split(), 2):
        table[(ten,)] = str(n * 10)
        table |= {(ten, *words[m]): str(n * 10 + m) for m in range(1, 20 if n == 6 else 10)}
        table |= {(ten, "et", *words[m]): str(n * 10 + m) for m in ((1, 11) if n == 6 else (1,))}
    for m in range(1, 20):
        table[("quatre", "vingt", *words[m])] = str(80 + m)
    table |= {("quatre", "vingt"): "80", ("quatre", "vingts"): "80", ("septante",): "70", ("nonante",): "90"}
    for (ten, n), m in product((("septante", 70), ("nonante", 90)), range(1, 10)):
        table[(ten, *words[m])] = str(n + m)
    return table


def _tongue(numerals: Numerals, *repeats: tuple[str, int]) -> Tongue:
    return Tongue(numerals, frozenset(words[0] for words in numerals), max(map(len, numerals)), dict(repeats))


ENGLISH = _tongue(_english(), ("double", 2), ("triple", 3), ("treble", 3), ("quadruple", 4))
OTHERS = (
    _tongue(_spanish(), ("doble", 2), ("triple", 3)),
    _tongue(_french(), ("double", 2), ("triple", 3)),
    _tongue(_german(), ("doppel", 2), ("zweimal", 2), ("dreimal", 3)),
    _tongue(_italian(), ("doppio", 2), ("triplo", 3)),
    _tongue(_portuguese(), ("duplo", 2), ("triplo", 3)),
)


_DROPPED = frozenset({"Cf", "Mn", "Me", "Cc"})
# Invisible characters in the category of letters: Hangul fillers, and the Braille blank.
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_ALIKE = {
    **dict.fromkeys("\u2212\u2043\u02d7\u30fc", "-"),
    **dict.fromkeys("\u2018\u2019\u02bc\u2032\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u00ab\u00bb\u201e\u2033", '"'),
    **dict.fromkeys("\u3002\uff61\u00b7\u2022\u2219\u22c5\u30fb\u2024\u06d4", "."),
    **dict.fromkeys("\u2044\u2215", "/"),
    "\u2795": "+",
    "\u00df": "ss",
    "\n": "\n",
    "\r": "\n",
    "\u0085": "\n",
    "\u2028": "\n",
    "\u2029": "\n",
}


@dataclass(frozen=True, slots=True)
class View:
    """A reading of a text."""

    text: str
    starts: Sequence[int]
    """For each character of `text`, its start in the original."""
    ends: Sequence[int]
    """For each character of `text`, its end in the original."""
    spoken: bool = False
    """Whether words were read as the digits and signs they name."""

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The position in the original of `text[start:end]`, which must not be empty."""
        return self.starts[start], self.ends[end - 1]


def written(text: str) -> View:
    """`text` in plain letters, digits and signs; letter case is kept."""
    length = len(text)
    if text.isascii() and text.isprintable():
        return View(text, range(length), range(1, length + 1))
    plain = [_plain(character) for character in text]
    starts = [place for place, signs in enumerate(plain) for _ in signs]
    return View("".join(plain), starts, [place + 1 for place in starts])


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    alike = _ALIKE.get(character)
    if alike is not None:
        return alike
    if character.isspace():
        return " "
    category = unicodedata.category(character)
    if category in _DROPPED or character in _INVISIBLE:
        return ""
    if category == "Pd":
        return "-"
    digit = unicodedata.digit(character, None)
    if digit is not None:
        return str(digit)
    return _decomposed(character)


def _decomposed(character: str) -> str:
    parts = unicodedata.normalize("NFKD", character)
    kept = "".join(_ALIKE.get(c, c) for c in parts if unicodedata.category(c) not in _DROPPED)
    return " " if kept.isspace() else kept


_TOKEN = re.compile(r"[^\W\d_]++(?:'[^\W\d_]++)*+|[0-9]++|[^\s]")
_PAUSES = frozenset("um uh er erm uhm then space pause sorry".split()) | {",", ";", ":"}
_SIGNS = {
    **dict.fromkeys("- dash hyphen minus guion tiret strich trattino hifen".split(), "-"),
    **dict.fromkeys(". dot point punto punkt ponto".split(), "."),
    **dict.fromkeys("/ slash stroke".split(), "/"),
    **dict.fromkeys("_ underscore".split(), "_"),
}
_CAPITALS = frozenset("capital uppercase lowercase letter upper lower case".split())
_LETTER_NAMES = {"zed": "z", "zee": "z"}
# Said letter by letter before the number they announce.
_ACRONYMS = frozenset(
    "dni nie nif nic ssn sin tin tfn itin iban cvv cvc pin cpf rut bsn nhs nino bic dob ip pan pps".split()
)
# On a keypad: "pound four four one two".
_KEYS = {"pound": "#", "hash": "#", "hashtag": "#", "star": "*", "asterisk": "*"}
_PLUS = frozenset({"plus", "piu", "mais", "mas"})
_MOST_BETWEEN = 3
"""The most pauses and signs between two digits of one number."""
_FOREIGN_RUN = 4
"""Fewer number words of another language than this are more likely English ("once", "six", "due")."""


@dataclass(frozen=True, slots=True)
class SpokenToken:
    """A word, a run of digits, or a sign."""

    text: str
    """In lower case."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Breath:
    """One unit of a number: a numeral, a repeated digit, a letter."""

    text: str
    last: int
    """One past its last token."""
    single: bool
    """Whether it joins its neighbours: a digit or a letter."""
    number: bool
    """Whether it was a number word."""


def tokens(text: str) -> list[SpokenToken]:
    """The words, numbers and signs of `text`."""
    return [SpokenToken(found[0].lower(), found.start(), found.end()) for found in _TOKEN.finditer(text)]


def readings(view: View, words: Sequence[SpokenToken]) -> Iterator[View]:
    """`view` as spoken, in each language whose reading differs from the written text."""
    english = _Reader(view, words, ENGLISH).read()
    if english is not None:
        yield english
    said = [word.text for word in words]
    for tongue in OTHERS:
        if sum(map(tongue.vocabulary.__contains__, said)) >= _FOREIGN_RUN:
            other = _Reader(view, words, tongue).read()
            if other is not None:
                yield other


_POINTS = frozenset(
    "a the that this new old other another which first second last back same only my your each every".split()
)


def is_no_digit(words: Sequence[SpokenToken], place: int) -> bool:
    """Whether a possible digit is none: "Oh." for surprise, and the "one" of "a new one, …"."""
    before = words[place - 1].text if place else ""
    after = words[place + 1].text if place + 1 < len(words) else ""
    match words[place].text if place < len(words) else "":
        case "oh":
            following = words[place + 2].text if place + 2 < len(words) else ""
            return before in ".!?" and after in {".", ",", "!"} and following not in ENGLISH.vocabulary
        case "one":
            return before in _POINTS and after in {",", ".", ";", ":", "!", "?"}
    return False


class _Rewriting:
    """A view that is made from another one, with other words in place of some."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._text: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.done = 0
        """How much of the other view's text was written."""

    def put(self, text: str, first: int, last: int) -> None:
        """Write `text` in place of the characters `first` to `last`."""
        start, end = self._view.origin(first, last)
        self._text.append(text)
        self._starts += [start] * len(text)
        self._ends += [end] * len(text)
        self.done = last

    def copy(self, until: int) -> None:
        """Write the text up to `until` as it is."""
        if until > self.done:
            self._text.append(self._view.text[self.done : until])
            self._starts += self._view.starts[self.done : until]
            self._ends += self._view.ends[self.done : until]
            self.done = until

    def view(self, *, spoken: bool) -> View:
        return View("".join(self._text), self._starts, self._ends, spoken)


class _Reader:
    """One pass over one text in one language."""

    def __init__(self, view: View, words: Sequence[SpokenToken], tongue: Tongue) -> None:
        self._view = view
        self._words = words
        self._tongue = tongue
        self._written = _Rewriting(view)
        self._changed = False

    def read(self) -> View | None:
        """The reading; None if it equals the written text."""
        place, numerals, repeats = 0, self._tongue.vocabulary, self._tongue.repeats
        while place < len(self._words):
            word = self._words[place].text
            begins = len(word) == 1 or word in numerals or word in repeats or word[0].isdecimal()
            place = self._run(place) if begins or word in _LETTER_NAMES or word in _CAPITALS else place + 1
        if not self._changed:
            return None
        self._written.copy(len(self._view.text))
        return self._written.view(spoken=True)

    def _run(self, place: int) -> int:
        """Write the run that begins at `place`, if any; returns where to go on."""
        said = self._breath(place)
        if said is None:
            return place + 1
        run = [(place, said)]
        gaps: list[str] = []
        while (following := self._next(run[-1][1])) is not None:
            gap, first, said = following
            gaps.append(gap)
            run.append((first, said))
        if any(said.number for _, said in run) or sum(said.single for _, said in run) > 2:
            self._write(run, gaps)
        return run[-1][1].last

    def _next(self, before: _Breath) -> tuple[str, int, _Breath] | None:
        """What follows `before` in the same number: the text between, its first token, itself."""
        place = before.last
        sign = ""
        paused = False
        while place < len(self._words) and place - before.last < _MOST_BETWEEN:
            word = self._words[place].text
            if word in _SIGNS:
                sign = self._sign(place)
            elif word in _PAUSES:
                paused = True
            else:
                break
            place += 1
        said = self._breath(place)
        if said is None:
            return None
        letters = before.text[-1:].isalpha() and said.text[:1].isalpha()
        if sign and not (letters and sign in "-. "):
            return sign, place, said
        return ("" if before.single and said.single and not paused else " "), place, said

    def _sign(self, place: int) -> str:
        """The sign at `place`; a full stop that ends a word is only a pause."""
        word = self._words[place]
        if word.text == "." and self._view.text[word.end : word.end + 1].isspace():
            return " "
        return _SIGNS[word.text]

    def _breath(self, place: int) -> _Breath | None:
        word = self._word(place)
        if word in _CAPITALS and self._word(place + 1).isalpha() and len(self._word(place + 1)) == 1:
            place, word = place + 1, self._word(place + 1)
        times = self._tongue.repeats.get(word)
        if times:
            return self._repeated(place + 1, times)
        number = self._cardinal(place)
        if number is not None:
            return number
        if word.isdecimal():
            return _Breath(word, place + 1, len(word) == 1, number=False)
        if word == "o" and self._among_digits(place):
            return _Breath("0", place + 1, single=True, number=True)
        letter = _LETTER_NAMES.get(word, word)
        if len(letter) == 1 and "a" <= letter <= "z":
            token = self._words[place]
            said = self._view.text[token.start : token.end] if letter == word else letter
            return _Breath(said, self._explained(place), single=True, number=False)
        return None

    def _explained(self, place: int) -> int:
        """The index after the letter at `place`, and after "as in boy" or "for boy" behind a "b"."""
        for between, last in ((("as", "in"), place + 3), (("for",), place + 2)):
            words = tuple(self._word(place + 1 + n) for n in range(len(between)))
            if words == between and self._word(last)[:1] == self._word(place):
                return last + 1
        return place + 1

    def _among_digits(self, place: int) -> bool:
        """Whether an "o" is a zero: next to a number, and to no letter."""
        beside = (self._word(place - 1), self._word(place + 1))
        if any(len(word) == 1 and word.isalpha() for word in beside):
            return False
        return any(word.isdecimal() or word in self._tongue.vocabulary for word in beside)

    def _repeated(self, place: int, times: int) -> _Breath | None:
        place += self._word(place) == "-"  # "double-oh"
        if self._word(place) in {"u", "you"}:
            return _Breath("w", place + 1, single=True, number=False)
        said = self._breath(place) if self._word(place) not in self._tongue.repeats else None
        if said is None or len(said.text) != 1:
            return None
        return _Breath(said.text * times, said.last, single=True, number=said.text.isdecimal())

    def _cardinal(self, place: int) -> _Breath | None:
        """A numeral, in English with its hundreds and thousands."""
        if is_no_digit(self._words, place):
            return None
        said = self._numeral(place)
        if said is None or self._tongue is not ENGLISH or said.text == "0":
            return said
        return self._scaled(self._scaled(said, "hundred", 100), "thousand", 1000)

    def _scaled(self, said: _Breath, scale: str, factor: int) -> _Breath:
        """`said` times `factor` and what is added to it, where the next word is `scale`."""
        if self._word(said.last) != scale:
            return said
        value, last = int(said.text) * factor, said.last + 1
        counted = last + (self._word(last) == "and")
        rest = self._numeral(counted)
        if rest is not None and factor == 1000:
            rest = self._scaled(rest, "hundred", 100)
        if rest is not None and self._added(rest, exact=counted > last):
            value, last = value + int(rest.text), rest.last
        return _Breath(str(value), last, single=False, number=True)

    def _added(self, rest: _Breath, *, exact: bool) -> bool:
        """Whether `rest` belongs to the number before it: in "eight hundred five five five" it does not."""
        if rest.text == "0" or self._word(rest.last) in {"hundred", "thousand"}:
            return False
        return exact or not rest.single or self._numeral(rest.last) is None

    def _numeral(self, place: int) -> _Breath | None:
        words = self._spread(place)
        for count in range(len(words), 0, -1):
            digits = self._tongue.numerals.get(tuple(text for text, _ in words[:count]))
            if digits is not None:
                return _Breath(digits, words[count - 1][1], single=len(digits) == 1, number=True)
        return None

    def _spread(self, place: int) -> list[tuple[str, int]]:
        """The next words, as many as a numeral may have, each with the index after it."""
        found: list[tuple[str, int]] = []
        if self._word(place) not in self._tongue.vocabulary:
            return found
        while len(found) < self._tongue.longest and (word := self._word(place)):
            found.append((word, place + 1))
            place += 1 + (self._word(place + 1) == "-")
        return found

    def _word(self, place: int) -> str:
        return self._words[place].text if 0 <= place < len(self._words) else ""

    def _write(self, run: Sequence[tuple[int, _Breath]], gaps: Sequence[str]) -> None:
        self._changed = True
        first = run[0][0]
        sign = _KEYS.get(self._word(first - 1), "+" if self._word(first - 1) in _PLUS else "")
        if sign:
            self._written.copy(self._words[first - 1].start)
            self._put(sign, first - 1, first)
            self._written.done = self._words[first].start  # a sign joins its number
        if run[0][1].text.lower() in {"a", "i"} and gaps and run[1][1].text.isdecimal():
            gaps = [gaps[0] or " ", *gaps[1:]]  # "a four": the article is not part of the number
        gaps = _parted([said.text for _, said in run], gaps)
        self._written.copy(self._words[first].start)
        for (place, said), gap in zip(run, ["", *gaps], strict=True):
            if gap:
                self._put(gap, place - 1, place)
            self._put(said.text, place, said.last)

    def _put(self, text: str, first: int, last: int) -> None:
        """Write `text` for the tokens `first` to `last`."""
        self._written.put(text, self._words[first].start, self._words[last - 1].end)


def _parted(said: Sequence[str], gaps: Sequence[str]) -> list[str]:
    """`gaps` with one added after a spelled acronym: "d n i one two" is not one word."""
    parted = list(gaps)
    for count in (2, 3, 4):
        if count <= len(gaps) and "".join(said[:count]).lower() in _ACRONYMS and said[count].isdecimal():
            parted[count - 1] = gaps[count - 1] or " "
    return parted


# -- numbers with something said between their digits: "four two uh four two, got it, four two" is one

BETWEEN = frozenset(
    """um uh uhm uhh er erm eh hmm hm mm mhm ah okay ok k so then and next followed by right yes yeah yep yup
    got it sorry no nope wait i mean let me see hold on scratch that make actually again that's thats it's its
    you know like well please go comma dash hyphen minus space dot stroke correction oops finally lastly hang
    sure alright perfect great thanks in there's there is just pause rather excuse""".split()
)
"""Words that may occur between two digits of one number."""
_PAUSE_SIGNS = frozenset(",.;:-!?\u2026/")
_MOST_SAID_BETWEEN = 7
_ANY = re.compile(r"[0-9]")
_HOMOPHONES = {
    "to": "two",
    "too": "two",
    "for": "four",
    "fore": "four",
    "ate": "eight",
    "won": "one",
    "tree": "three",
}
_NUMBERS = ENGLISH.vocabulary | frozenset(ENGLISH.repeats)
_ALL_NUMBERS = _NUMBERS.union(*(tongue.vocabulary for tongue in OTHERS))


def views_of(text: str) -> list[View]:
    """The readings in which secrets are looked for."""
    plain = written(text)
    words = tokens(plain.text)
    if not any(word.text in _ALL_NUMBERS or word.text == "o" or len(word.text) == 1 for word in words):
        gathered = _gathered(plain, words) if _ANY.search(plain.text) else None
        return [plain] if gathered is None else [plain, gathered]
    joined = _gathered(plain, words)
    if joined is None:
        return [plain, *readings(plain, words)]
    again = tokens(joined.text)
    return [plain, joined, *readings(joined, again), *readings(plain, words)]


def _gathered(view: View, words: list[SpokenToken]) -> View | None:
    """`view` without the words between two digits of one number; None if there are none."""
    pieces: list[tuple[int, int]] = []
    swaps: dict[int, str] = {}
    done, place = 0, 0
    while place < len(words):
        if not _is_number(words[place].text) or is_no_digit(words, place):
            place += 1
            continue
        following = place + 1
        while (
            following < len(words)
            and following - place <= _MOST_SAID_BETWEEN
            and (words[following].text in BETWEEN or words[following].text in _PAUSE_SIGNS)
        ):
            following += 1
        if following < len(words) and _is_number(words[following].text) and not is_no_digit(words, following):
            between = words[place + 1 : following]
            if any(word.text in BETWEEN for word in between) or len(between) > 1 or _ends(view, between):
                pieces.append((done, words[place].end))
                done = words[following].start
        elif (
            following == place + 1
            and following + 1 < len(words)
            and words[following].text in _HOMOPHONES
            and _is_single(words[place].text)
            and _is_single(words[following + 1].text)
        ):
            swaps[words[following].start] = words[following].text
        place = max(place + 1, following)
    if not pieces and not swaps:
        return None
    return _written_out(view, [*pieces, (done, len(view.text))], swaps)


def _ends(view: View, between: list[SpokenToken]) -> bool:
    """Whether a sign between two numbers ends a sentence: "4242. 4242."."""
    return (
        len(between) == 1
        and between[0].text in ".!?\u2026"
        and view.text[between[0].end : between[0].end + 1] == " "
    )


def _is_number(word: str) -> bool:
    return word.isdecimal() or (word in _NUMBERS)


def _is_single(word: str) -> bool:
    return (word.isdecimal() and len(word) == 1) or word in ENGLISH.vocabulary or word in ENGLISH.repeats


def _written_out(view: View, pieces: list[tuple[int, int]], swaps: dict[int, str]) -> View:
    written = _Rewriting(view)
    for number, (first, last) in enumerate(pieces):
        if number:
            written.put(" ", max(0, first - 1), first)
        for begin, word in sorted(swaps.items()):
            if first <= begin < last:
                written.copy(begin)
                written.put(_HOMOPHONES[word], begin, begin + len(word))
        written.copy(last)
    return written.view(spoken=False)


def in_figures(text: str) -> str:
    """`text` with its numbers in figures: "double oh, nine" as "00, 9"."""
    plain = written(text)
    return (_Reader(plain, tokens(plain.text), ENGLISH).read() or plain).text


_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_LEADS = BETWEEN | frozenset(
    """it's its it is that's thats is the number my yeah yes sure okay of course so that would be here oh hi
    hello first second last part rest digits i'd say think one uhhuh here's heres thank you ready a from cool
    good great alrighty continuing on""".split()
)


def is_bare(text: str) -> bool:
    """Whether only a number is said: digits, and the words around them."""
    says_one = False
    for found in _WORD.finditer(text):
        word = found[0].lower()
        number = _is_number(word)
        if not (number or word in _LEADS or len(word) == 1):
            return False
        says_one = says_one or number or word == "o"
    return says_one


_RUN = re.compile(r"(?<![A-Za-z0-9])[#*]?[0-9]+(?:[ .,/_:-]{1,3}[0-9]+)*(?![A-Za-z])")


def runs(view: View) -> Iterator[tuple[str, int, int]]:
    """Every number of a view: its digits and their positions."""
    for found in _RUN.finditer(view.text):
        yield re.sub(r"[^0-9]", "", found[0]), found.start(), found.end()
