"""E-mail addresses as they are said: "a n a underscore k at example dot co dot uk". Written ones:
`online`.

Reads outward from each "at": a domain to its right, as many words of a local part to its left as belong to
it. "visit us at example dot com" names a place, not a mailbox.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from echoic.secrets.findings import Finding
from echoic.secrets.numerals import ENGLISH, OTHERS
from echoic.secrets.spoken import Token
from echoic.secrets.views import View
from echoic.words import STOP

_AT = frozenset("at @ arroba arobase arobas chiocciola klammeraffe apenstaartje strudel".split())
_DOT = frozenset("dot . point punto punkt ponto punt period".split())
_JOINS = (
    frozenset("underscore _ dash - hyphen minus plus + tiret guion bajo bas trattino basso strich".split())
    | _DOT
)
_BRACKETS = frozenset("()[]{}<>")
_PROVIDERS = frozenset(
    """gmail googlemail yahoo ymail hotmail outlook live msn icloud me mac aol proton protonmail pm gmx
    web mail zoho yandex fastmail tutanota tuta hey qq naver libero orange wanadoo free laposte sfr
    t-online telefonica terra uol bol virgilio tiscali seznam wp onet comcast verizon att sbcglobal
    btinternet sky rediffmail walla""".split()
)
_TOP_LEVEL = frozenset(
    """com net org edu gov mil int info biz name pro io ai app dev co me tv xyz online store shop site
    tech cloud email mail agency company studio design blog news live world group health care law life eu
    asia ac ad ae al am ar at au az ba bd be bg br by ca cc ch ci cl cm cn cr cy cz de dk do dz ec ee eg
    es fi fm fr ge gg gh gr gt hk hn hr hu id ie il im in iq ir is it je jo jp ke kr kw kz lb li lk lt lu
    lv ly ma mc md mk mt mu mx my mz ng ni nl no np nu nz om pa pe ph pk pl pr ps pt py qa re ro rs ru sa
    se sg si sk sm sn sr sv sy th tn to tr tt tw tz ua ug uk us uy uz ve vn ws za zm zw""".split()
)
# After "point" and the like only these: "at this point in time" and "at that point it" name no domain.
_AFTER_POINT = frozenset("com net org fr de es pt br eu ch ar cl mx nl".split())
_ASKING = frozenset("email e-mail emails mail mailbox inbox address write correo courriel posta".split())
# What a web address, rather than a mailbox, is said to be for.
_PLACES = frozenset(
    """visit us online order book available shop find found check look see site website page menu menus
    more read tickets details registration register reservations reserve sign app store browse buy
    purchase listed posted download subscribe apply catalog catalogue hosted published section here there
    now open prices schedule lunch dinner breakfast pickup delivery service support located working works
    work stay staying employed based hosted listed met meet meeting arrived stopped""".split()
)
_MANNERS = frozenset(
    "all lowercase uppercase lower upper case caps small letters one word together no spaces".split()
)
_VERBS = frozenset(
    "email mail contact write reach send message ping cc use try is was say says its and or".split()
)
_NO_NAME = STOP | _VERBS | _PLACES | _ASKING
_NUMBER_WORDS = frozenset().union(
    *(tongue.vocabulary | tongue.repeats.keys() for tongue in (ENGLISH, *OTHERS))
)
_LONGEST_SPELLING = 40
_PLAIN_WORDS = 2
"""Words of a name before the last one of a local part: "ana maria garcia at"."""
_MOST_LABELS = 6
_LABEL_WORDS = 4


def said_emails(view: View, words: Sequence[Token]) -> Iterator[Finding]:
    """Addresses said in words, or partly so."""
    for place, word in enumerate(words):
        if word.text in _AT:
            found = _Mailbox(view.text, words, place).find()
            if found is not None:
                yield Finding("EMAIL", words[found[0]].start, words[found[1] - 1].end, "email-spoken")


class _Mailbox:
    """One "at", and what stands around it."""

    def __init__(self, text: str, words: Sequence[Token], at: int) -> None:
        self._text = text
        self._words = words
        self._at = at
        self._spelled = False
        """Whether the local part was said sign by sign, as nothing but an address is."""

    def find(self) -> tuple[int, int] | None:
        """First token and one past the last; None where there is no mailbox."""
        domain = self._domain()
        if domain is None:
            return None
        first = self._local()
        if first is None:
            return None
        last, provider, plain = domain
        bracketed = self._word(self._at - 1) in _BRACKETS
        sure = provider or self._spelled or bracketed or self._asked(first) or self._word(self._at) != "at"
        return (first, last) if sure or (plain and self._is_named()) else None

    def _is_named(self) -> bool:
        """Whether what stands before the "at" may be a mailbox, not what is done or had at a place."""
        word = self._word(self._before_at())
        return word.isalpha() and word not in STOP and word not in _PLACES and word not in _NUMBER_WORDS

    def _before_at(self) -> int:
        """The last token of the local part: brackets and "all lower case" are no part of it."""
        place = self._at - 1
        while self._word(place) in _BRACKETS or self._is_manner(place):
            place -= 1
        return place

    def _is_manner(self, place: int) -> bool:
        word = self._word(place)
        return word in _MANNERS and (word not in {"one", "all", "no"} or self._word(place + 1) in _MANNERS)

    def _domain(self) -> tuple[int, bool, bool] | None:
        """One past its last token, whether it gives out mailboxes, whether it can be nothing but a domain."""
        place = self._at + 1
        while self._word(place) in _BRACKETS or self._word(place) == "sign":
            place += 1
        place, name = self._label(place, _LABEL_WORDS)
        if name.removesuffix("com") in _PROVIDERS and self._dot(place) is None and name.endswith("com"):
            return place, True, True  # "at gmail com": the dot was not heard
        plain = False
        last = None
        for _ in range(_MOST_LABELS):
            dot = self._dot(place)
            if dot is None or not name or name in STOP:
                break
            place, label = self._label(dot, 1)
            if not label:
                break
            if label in (_TOP_LEVEL if self._plain_dot(dot) else _AFTER_POINT):
                last = place
                # "at noon.It was" and "at 5.In the evening" are two sentences.
                plain = self._words[dot - 1].text != "." or not (label in STOP or name.isdecimal())
        return None if last is None else (last, name in _PROVIDERS, plain)

    def _plain_dot(self, after: int) -> bool:
        """Whether the dot before `after` can be nothing else, or the "at" is no English one."""
        said = self._words[after - 1].text
        return said in {"dot", "."} or said in _BRACKETS or self._word(self._at) != "at"

    def _label(self, place: int, most: int) -> tuple[int, str]:
        """One past the label that begins at `place`, and the label: a few words, or letters one by one."""
        name = ""
        count = 0
        spelling = self._letter(place)
        while count < (_LONGEST_SPELLING if spelling else most):
            word = self._word(place)
            if word == "-" and name:
                place, count = place + 1, count + 1
                continue
            if not word.isalnum() or word in _AT or (word in _DOT and self._dot(place) is not None):
                break
            if most == 1 and spelling and not self._letter(place):
                break
            name, place, count = name + word, place + 1, count + 1
        return place, name

    def _dot(self, place: int) -> int | None:
        """One past the dot at `place`, in brackets or not; a full stop that ends a word is none."""
        bracketed = self._word(place) in _BRACKETS
        place += bracketed
        word = self._word(place)
        if word not in _DOT:
            return None
        if word == "." and self._text[self._words[place].end : self._words[place].end + 1].isspace():
            return None
        place += 1
        return place + (bracketed and self._word(place) in _BRACKETS)

    def _local(self) -> int | None:
        """The first token of the local part; None if there is none."""
        end = self._before_at() + 1
        first = self._piece(end)
        if first < end and self._counted(first) and self._plain(first - 1):
            first -= 1  # "doe ninety nine at"
        while first < end and self._join(first - 1) and (start := self._piece(first - 1)) < first - 1:
            self._spelled = True
            first = start
        if first == end:
            return None
        return self._named(first)

    def _piece(self, end: int) -> int:
        """The first token of what is said before `end`: letters and numbers, or one word."""
        place = end
        while place and end - place < _LONGEST_SPELLING:
            before = self._sign(place)
            if before == place:
                break
            place = before
        if place < end:
            self._spelled |= end - place > 1
            return place
        return end - 1 if end and self._word(end - 1).isalnum() else end

    def _sign(self, end: int) -> int:
        """The first token of the letter ("a as in apple") or number before `end`; `end` if none."""
        word = self._word(end - 1)
        if self._word(end - 2) == "in" and self._word(end - 3) == "as" and self._letter(end - 4):
            return end - 4
        if (
            self._word(end - 2) in {"for", "like", "wie", "como", "comme"}
            and self._letter(end - 3)
            and word.isalpha()
        ):
            return end - 3
        return end - 1 if self._letter(end - 1) or word.isdecimal() or word in _NUMBER_WORDS else end

    def _named(self, first: int) -> int:
        """Further left, over the words of a name said before a number or a last name: "ana garcia at"."""
        for _ in range(_PLAIN_WORDS):
            if not self._plain(first - 1):
                break
            first -= 1
        return first

    def _plain(self, place: int) -> bool:
        """Whether the word at `place` may be part of a name."""
        word = self._word(place)
        return word.isalpha() and word not in _NO_NAME

    def _counted(self, place: int) -> bool:
        return self._word(place).isdecimal() or self._word(place) in _NUMBER_WORDS

    def _join(self, place: int) -> bool:
        """Whether the token at `place` is a sign inside an address; a full stop after a word is not."""
        word = self._word(place)
        if word == ",":  # letters spelled with pauses
            return self._letter(place - 1) and self._letter(place + 1)
        if word not in _JOINS:
            return False
        return word.isalpha() or not self._text[self._words[place].end : self._words[place].end + 1].isspace()

    def _asked(self, first: int) -> bool:
        """Whether something just before speaks of mail."""
        return any(self._word(place) in _ASKING for place in range(max(0, first - 6), self._at))

    def _letter(self, place: int) -> bool:
        word = self._word(place)
        return len(word) == 1 and word.isalpha()

    def _word(self, place: int) -> str:
        return self._words[place].text if 0 <= place < len(self._words) else ""


__all__ = ["said_emails"]
