"""The words by which digits and numbers below a hundred are said, by language. Tables only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

Numerals = Mapping[tuple[str, ...], str]
"""Words, folded, and the digits they say: ("quatre", "vingt", "dix") is "90"."""


@dataclass(frozen=True, slots=True)
class Tongue:
    """How a language says digits."""

    numerals: Numerals
    vocabulary: frozenset[str]
    """The words a numeral begins with."""
    longest: int
    """Words in its longest numeral."""
    repeats: Mapping[str, int]
    """"double" and the like, and how often they say the next digit."""


def _english() -> dict[tuple[str, ...], str]:
    ones = "one two three four five six seven eight nine".split()
    teens = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    table: dict[tuple[str, ...], str] = {(word,): "0" for word in ("zero", "oh", "nought", "naught", "nil")}
    table |= {(word,): str(n) for n, word in enumerate([*ones, *teens], 1)}
    table |= {("fourty",): "40", ("niner",): "9"}
    for n, word in enumerate(tens, 2):
        table[(word,)] = str(n * 10)
        table |= {(word, one): str(n * 10 + m) for m, one in enumerate(ones, 1)}
    return table


def _spanish() -> dict[tuple[str, ...], str]:
    low = (
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
        "dieciseis diecisiete dieciocho diecinueve veinte veintiuno veintidos veintitres veinticuatro "
        "veinticinco "
        "veintiseis veintisiete veintiocho veintinueve"
    ).split()
    table: dict[tuple[str, ...], str] = {(word,): str(n) for n, word in enumerate(low)}
    for n, word in enumerate("treinta cuarenta cincuenta sesenta setenta ochenta noventa".split(), 3):
        table[(word,)] = str(n * 10)
        table |= {(word, "y", low[m]): str(n * 10 + m) for m in range(1, 10)}
    return table


def _portuguese() -> dict[tuple[str, ...], str]:
    low = (
        "zero um dois tres quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis "
        "dezessete dezoito dezenove"
    ).split()
    table: dict[tuple[str, ...], str] = {(word,): str(n) for n, word in enumerate(low)}
    table |= {("meia",): "6", ("dezasseis",): "16", ("dezassete",): "17", ("dezanove",): "19"}
    for n, word in enumerate("vinte trinta quarenta cinquenta sessenta setenta oitenta noventa".split(), 2):
        table[(word,)] = str(n * 10)
        table |= {(word, "e", low[m]): str(n * 10 + m) for m in range(1, 10)}
    return table


def _italian() -> dict[tuple[str, ...], str]:
    low = (
        "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici "
        "quindici sedici diciassette diciotto diciannove"
    ).split()
    table: dict[tuple[str, ...], str] = {(word,): str(n) for n, word in enumerate(low)}
    for n, word in enumerate("venti trenta quaranta cinquanta sessanta settanta ottanta novanta".split(), 2):
        table[(word,)] = str(n * 10)
        for m in range(1, 10):
            # The last vowel falls before "uno" and "otto".
            table[((word[:-1] if m in {1, 8} else word) + low[m],)] = str(n * 10 + m)
    return table


def _german() -> dict[tuple[str, ...], str]:
    low = (
        "null eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn funfzehn "
        "sechzehn siebzehn achtzehn neunzehn"
    ).split()
    table: dict[tuple[str, ...], str] = {(word,): str(n) for n, word in enumerate(low)}
    table |= {("zwo",): "2", ("fuenf",): "5", ("zwoelf",): "12", ("fuenfzehn",): "15"}
    for n, word in enumerate("zwanzig dreissig vierzig funfzig sechzig siebzig achtzig neunzig".split(), 2):
        table[(word,)] = str(n * 10)
        for m in range(1, 10):
            table[(f"{'ein' if m == 1 else low[m]}und{word}",)] = str(n * 10 + m)
    return table


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
