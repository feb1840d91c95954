"""A text with a marker in place of every secret in it. Pure: no I/O, no clock, no model.

A secret is recognised by what announced it (`labels`), by its check digits or its appearance (`forms`). Known
secrets (a number said a moment ago) are found again wherever they are repeated. Masking a text again changes
nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from echoic.checks import checked_depth
from echoic.secrets import values
from echoic.secrets.forms import HARMLESS, Cues, cards, ibans, ids, is_card, is_iban, keys
from echoic.secrets.labels import SECRETS, WORDED, Secret, hidden, is_scaled, labelled, near
from echoic.text.spoken_numbers import View, runs, views_of, written

MARKER = re.compile(
    r"\[(?:card ending [0-9]{4}|card number|IBAN|" + "|".join(re.escape(kind) for kind in SECRETS) + r")\]"
)
_BLANK = "]"
_PASSES = 4
_LONG_SECRETS = frozenset({"card", "account number", "ID number"})
# A text without any of these has no secret.
_TELLING = re.compile(
    r"[0-9]|\S{16}|pass|\bpin\b|\bpins\b|p\.i\.n|code|cod|key|token|secret|maiden|memorable|phrase|word\b|cvv|cvc|mnemonic|"
    r"kennwort|senha|wachtwoord|parola|contrase|mot de|pwd|\bpw\b|credentials|safe word|answer|"
    r"\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|"
    r"fifty|sixty|seventy|eighty|ninety|hundred|double|triple|oh|cero|uno|dos|tres|cuatro|cinco|seis|siete|"
    r"ocho|nueve|zero|un|deux|trois|quatre|cinq|sept|huit|neuf|null|eins|zwei|drei|vier|f\w+nf|sechs|sieben|"
    r"acht|neun|due|quattro|cinque|sei|sette|otto|nove|um|dois|quatro|sete|oito)\b",
    re.IGNORECASE,
)
_URL_SECRET = re.compile(
    # a password may contain an @: the last one before the host ends it
    r"://[^\s:/@]{0,128}:(?P<password>(?:[^\s@/]|@(?=[^\s/?#,;@]{1,256}@)){1,256})@|"
    r"[?&;#](?:[A-Za-z]{1,16}[_-])?(?:token|api_?key|key|secret|"
    r"pass(?:word|wd|code)?|pwd|sig(?:nature)?|session(?:id)?|sid|auth(?:orization)?|jwt|otp|credentials?)="
    r"(?P<field>[^&\s\"'#]{4,2048})",
    re.IGNORECASE,
)
_DIAL = re.compile(r"\b(?:safe|combination|combo|dial|(?:pad)?lock|locker|vault)\b", re.IGNORECASE)
_CHECKED = re.compile(r"(?:\D*\d){8}")
"""The least number of digits for check digits to be examined."""
_LEAST_PART = 8
"""Digits that suffice to recognise a number by a part of it."""
_LEAST_RANDOM = 32
"""The least length of a key that only its randomness reveals; shorter strings are ids of all kinds."""
_FOUR_GROUPS = re.compile(r"[0-9]{4}([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{4}")
# "…, exp 08/29, 987": the code follows the expiry date of a card.
_BEHIND_EXPIRY = re.compile(
    r"\b(?:exp|expir(?:es|y|ing|ation)|valid\s+(?:till|until|thru|through|to))\b[^0-9.?!]{0,24}"
    r"[0-9]{1,2}[ /.,-]{0,3}(?:20)?[0-9]{2}[ ,;]{1,3}(?:and|then)?\s*"
    r"(?P<code>[0-9]{3,4})(?![0-9:/%-]|\.[0-9])",
    re.IGNORECASE,
)
_NO_SECRETS = HARMLESS | {"phone"}
_LAST_FOUR_SAID = re.compile(
    r"\b(?:ending|ends|ended|last\s+(?:four|4)(?:\s+digits)?)\b[\w\s]{0,16}$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class SecretSpan:
    kind: Secret
    start: int
    end: int
    value: str
    """The value as it is read: the digits of a spoken number."""
    iban: bool = False

    @property
    def digits(self) -> str:
        return re.sub(r"[^0-9]", "", self.value)


@dataclass(frozen=True, slots=True)
class Masked:
    text: str
    found: tuple[SecretSpan, ...] = ()
    """In order, without overlaps."""


@dataclass(frozen=True, slots=True)
class Known:
    """An earlier secret, which is masked wherever it is repeated."""

    kind: Secret
    value: str

    @property
    def digits(self) -> str:
        """The digits of the value, if it is a number."""
        lettered = self.kind not in {"account number", "ID number"} and any(c.isalpha() for c in self.value)
        return "" if lettered else re.sub(r"[^0-9]", "", self.value)

    @property
    def word(self) -> str:
        """The single word it is, if that is too ordinary to search for except directly after it was said."""
        plain = self.value.strip(" .,;!?")
        return plain if self.kind in WORDED and len(plain) > 2 and " " not in plain else ""

    @property
    def words(self) -> str:
        """The words to search for; empty if they are too ordinary."""
        plain = self.value.strip()
        telling = " " in plain or any(not c.isalpha() for c in plain)
        return plain if telling and len(plain) >= 6 and not plain.replace(" ", "").isdecimal() else ""


def mask(text: str, *, known: Iterable[Known] = ()) -> Masked:
    """`text`, spoken or written, with a marker such as "[PIN]" for every secret in it.

    `known` are earlier secrets that may be repeated here.
    """
    known = tuple(known)
    plain = text if text.isascii() and text.isprintable() else written(text).text
    telling = len(text) > 2 and _TELLING.search(plain) is not None
    if not telling and not known:
        return Masked(text)
    return apply(text, lambda part: [*(_look(part) if telling else ()), *_repeated(part, known)])


def apply(text: str, look: Any) -> Masked:
    """`text` without what `look` finds in it, repeated until it finds nothing."""
    found: list[SecretSpan] = []
    current = blanked(text)
    for _ in range(_PASSES):
        here = merged(look(current))
        if not here:
            break
        found += here
        for one in here:
            current = current[: one.start] + _BLANK * (one.end - one.start) + current[one.end :]
    if not found:
        return Masked(text)
    ordered = merged(found)
    return Masked(replaced(text, ordered), tuple(ordered))


def blanked(text: str) -> str:
    """`text` with its markers blanked, at the same length."""
    return MARKER.sub(lambda marker: _BLANK * len(marker[0]), text) if "[" in text else text


def _look(text: str) -> list[SecretSpan]:
    found: list[SecretSpan] = []
    digests = [digest.span() for digest in _HEX_ID.finditer(text)]
    for view in views_of(text):
        found += (one for each in _in_view(view) if not _amount(one := _original(view, *each), text))
        if _CHECKED.match(view.text):
            numbers = (_original(view, *each) for each in _checked(view))
            found += (one for one in numbers if not _amount(one, text) and not _within(one, digests))
        found += (_original(view, *each, False) for each in near(view, text))
    found += [SecretSpan("hidden key", *span, text[slice(*span)]) for span in hidden(text)]
    return found


def _in_id(text: str) -> Iterator[SecretSpan]:
    """What an id of a program is not by chance: a card, an IBAN, or a key by its prefix."""
    compact = text.replace("-", "")
    if (compact.isdecimal() and is_card(compact)) or is_iban(compact.upper()):
        whole = not compact.isdecimal()
        yield SecretSpan("account number" if whole else "card", 0, len(text), text, whole)
    for view in () if _NO_KEY.fullmatch(text) else views_of(text):
        for key in keys(view):
            if key.rule == "key-prefix":
                yield _original(view, "API key", key.start, key.end, False)


def _amount(one: SecretSpan, text: str) -> bool:
    """Whether the number after "account" is its balance: "four thousand three hundred"."""
    return one.kind in _LONG_SECRETS and len(one.digits) <= 6 and is_scaled(text[one.start : one.end])


def _in_view(view: View) -> Iterator[tuple[Secret, int, int, bool]]:
    for kind, (start, end) in labelled(view):
        yield kind, start, end, False
    for turned in values.TURNED.finditer(view.text):
        if _DIAL.search(view.text, 0, turned.start()):
            yield "PIN", *turned.span(), False
    for url in _URL_SECRET.finditer(view.text):
        in_front = url["password"] is not None
        yield "password" if in_front else "API key", *url.span("password" if in_front else "field"), False
    for key in keys(view):
        if key.rule != "key-entropy" or key.end - key.start >= _LEAST_RANDOM:
            yield "API key", key.start, key.end, False


# A UUID or a digest in hexadecimal. One in 900 digests has digits that pass for a card's or an ID's.
_HEX_ID = re.compile(
    r"(?<![A-Za-z0-9])(?=[0-9-]*+[a-f])"
    r"(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32,128})(?![A-Za-z0-9])",
    re.IGNORECASE,
)


def _within(one: SecretSpan, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start < one.end and one.start < end for start, end in spans)


def _checked(view: View) -> Iterator[tuple[Secret, int, int, bool]]:
    """Numbers recognised by their check digits."""
    cues = Cues(view.text)
    for card in cards(view, cues):
        if card.rule == "card-security-code":
            yield "security code", card.start, card.end, False
        elif _stands_alone(view.text, card.start, card.end) and (
            card.rule != "card" or cues.directly_before(card.start) not in HARMLESS
        ):
            yield "card", card.start, card.end, False
    yield from _long_cards(view, cues)
    for code in _BEHIND_EXPIRY.finditer(view.text):
        if not values.UNITS.match(view.text, code.end()):
            yield "security code", *code.span("code"), False
    for iban in ibans(view):
        yield "account number", iban.start, iban.end, True
    for one in ids(view, cues):
        yield "ID number", one.start, one.end, False


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether no letter or digit is joined to it, as in a hexadecimal id."""
    before, after = text[max(0, start - 2) : start], text[end : end + 1]
    if before[-1:] == "-" and before[:1].isalnum():
        return False
    before = before[-1:]
    return not (before.isalnum() or before == "_" or after.isalnum() or after == "_")


def _long_cards(view: View, cues: Cues) -> Iterator[tuple[Secret, int, int, bool]]:
    """A whole card with its date or code directly after it, and one that was misheard."""
    for digits, start, end in runs(view):
        if len(digits) == 16 and digits[:1] in {"4", "5"} and _stands_alone(view.text, start, end):
            grouped = _FOUR_GROUPS.fullmatch(view.text, start, end) is not None
            if (grouped or view.spoken) and cues.before(start) in {None, "card"}:
                yield "card", start, end, False
        if not 16 < len(digits) <= 28 or cues.directly_before(start) in HARMLESS:
            continue
        if any(is_card(digits[:length]) for length in (16, 15)):
            yield "card", start, end, False


def _repeated(text: str, known: Sequence[Known]) -> Iterator[SecretSpan]:
    if not known:
        return
    folded = text.casefold()
    for one in known:
        words = re.findall(r"[^\s,]+", one.words)
        if words and words[0].casefold() in folded:
            again = r"[\s,]+".join(map(re.escape, words))
            for place in re.finditer(rf"(?<!\w){again}(?!\w)", text, re.IGNORECASE):
                yield SecretSpan(one.kind, *place.span(), one.value)
    if not any(len(one.digits) >= 4 for one in known):
        return
    for view in views_of(text):
        cues = Cues(view.text)
        for digits, start, end in runs(view):
            kind = _known_number(digits, known)
            if kind and not (
                cues.before(start) in _NO_SECRETS
                or values.is_amount(view.text, start)
                or values.UNITS.match(view.text, end)
                or _LAST_FOUR_SAID.search(view.text, max(0, start - 40), start)
                or re.search(
                    r"\b(?:in|since|year|at)\s+$", view.text[max(0, start - 8) : start], re.IGNORECASE
                )
            ):
                yield _original(view, kind, start, end, False)


def _known_number(digits: str, known: Sequence[Known]) -> Secret | None:
    for one in known:
        whole = one.digits
        if len(digits) < 4 or len(whole) < 4:
            continue
        if digits == whole or (len(digits) >= _LEAST_PART and digits in whole):
            return one.kind
        if len(whole) >= _LEAST_PART and whole in digits:
            return one.kind
    return None


def _original(view: View, kind: Secret, start: int, end: int, iban: bool) -> SecretSpan:
    while end > start + 1 and view.text[end - 1].isspace():
        end -= 1
    return SecretSpan(kind, *view.origin(start, end), view.text[start:end], iban)


def merged(found: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Merge overlapping spans; the longer one names the result."""
    united: list[SecretSpan] = []
    for one in sorted(found, key=lambda f: (f.start, -f.end)):
        last = united[-1] if united else None
        if last is None or one.start >= last.end:
            united.append(one)
            continue
        name = max((last, one), key=_weight)
        end = max(last.end, one.end)
        united[-1] = SecretSpan(name.kind, last.start, end, name.value, name.iban)
    return united


def _weight(one: SecretSpan) -> tuple[int, int]:
    """Precedence of a name: numbers known by their check digits first, then longer ones."""
    sure = one.kind == "card" and is_card(one.digits)
    return (2 if sure else one.iban, len(one.value))


def replaced(text: str, found: Sequence[SecretSpan]) -> str:
    """`text` with a marker for each of `found`, in order and without overlaps."""
    pieces: list[str] = []
    done = 0
    for one in found:
        pieces += (text[done : one.start], marker_of(one))
        done = one.end
    return "".join((*pieces, text[done:]))


def marker_of(one: SecretSpan) -> str:
    """The marker for a secret. For a card that was said whole it keeps the last four digits."""
    if one.kind == "card":
        digits = one.digits
        if len(digits) > 16 and not is_card(digits):
            digits = next((digits[:n] for n in (16, 15) if is_card(digits[:n])), "")
        return f"[card ending {digits[-4:]}]" if 14 <= len(digits) <= 19 else "[card number]"
    return "[IBAN]" if one.iban else f"[{one.kind}]"


# -- values that are no text

_IDS = re.compile(r"(?:^|_|(?<=[a-z]))(?:(?<!sa)(?<!pa)id|Id|ids|uuid|handle|hash|digest|etag)$")
# Names of official numbers, which are no ids of a program.
_OFFICIAL = re.compile(
    r"\b(?:national|tax(?:payer)?|passport|government|gov|citizen|voter|driv(?:ers?|ing) licen[cs]e)"
    r"(?: identity| card| document)? id$"
)
# Ids of accounts and of keys that begin as keys do.
_NO_KEY = re.compile(r"(?:AC|SK)[0-9a-f]{32}|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}|pk_\w+")
_TELEPHONE = re.compile(
    r"\b(?:(?:tele)?phones?|mobiles?|cell|tel|fax|whatsapp|msisdn|caller|from|to)(?: numbers?| no| nr)?$"
)
"""How the name of a telephone number ends."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def mask_json(value: Any, *, label: str = "", known: Collection[Known] = ()) -> tuple[Any, list[SecretSpan]]:
    """The JSON `value` without the secrets in it; a name announces one too ({"pin": 5173}).

    `label` is the name of `value`; `known` as for `mask`.
    """
    found: list[SecretSpan] = []

    def name(key: Any) -> Any:
        masked = mask(key, known=known) if isinstance(key, str) else Masked("")
        found.extend(masked.found)
        return masked.text if masked.found else key

    def walk(item: Any, label: str) -> Any:
        if isinstance(item, str):
            text, here = mask_named(item, label, known)
            found.extend(here)
            return text
        if isinstance(item, Mapping):
            return {name(key): walk(each, f"{label.rpartition('.')[2]}.{key}") for key, each in item.items()}
        if isinstance(item, list | tuple):
            return [walk(each, label) for each in item]
        if isinstance(item, int) and not isinstance(item, bool) and abs(item) >= 100:
            text, here = mask_named(str(item), label, known)
            if here:
                found.extend(here)
                return text
        return item

    return walk(value, label), found


def mask_named(text: str, label: str = "", known: Collection[Known] = ()) -> tuple[str, list[SecretSpan]]:
    """`text`, stored under a name such as "card.number", without its secrets."""
    if text[:1] in {"{", "["} and text[-1:] in {"}", "]"}:
        try:
            parsed = json.loads(text)
            checked_depth(parsed, "it")
        except (ValueError, RecursionError):  # InvalidInput is a ValueError: it is masked as a text
            parsed = None
        if isinstance(parsed, dict | list):
            masked, found = mask_json(parsed, label=label, known=known)
            return (json.dumps(masked, ensure_ascii=False), found) if found else (text, [])
    name = " ".join(word.lower() for word in _PARTS.findall(label))
    is_id = bool(_IDS.search(label.rpartition(".")[2])) and len(text) < 200 and " " not in text
    if is_id and _HEX_ID.fullmatch(text):
        return text, []
    if official := _OFFICIAL.search(name) is not None:
        name = "id number"
    result = _in_field(text, name, tuple(known), is_id=is_id and not official)
    if is_id and not official:
        return result.text, list(result.found)
    if not name or MARKER.fullmatch(text) or (_TELLING.search(name) is None and "cvv" not in name):
        extra = official or any(
            word in name
            for word in ("card", "account", "ssn", "social", "cpf", "iban", "cvc", "routing", "sort")
        )
        if not extra or MARKER.fullmatch(text):
            return result.text, list(result.found)
    lead = f"{name} is "
    whole = mask(lead + text)
    if whole.found and whole.found[0].start == len(lead) and whole.text.startswith(lead):
        return whole.text[len(lead) :], list(whole.found)
    return result.text, list(result.found)


def _in_field(text: str, name: str, known: tuple[Known, ...], *, is_id: bool) -> Masked:
    """`text` without what is a secret in it whatever its name announces."""
    if is_id:
        return apply(text, lambda part: [*_in_id(part), *_repeated(part, known)])
    if _TELEPHONE.search(name) and not any(map(str.isalpha, text)):
        # many telephone numbers have the form of an ID, or its check digits
        return apply(
            text,
            lambda part: [*(one for one in _look(part) if one.kind != "ID number"), *_repeated(part, known)],
        )
    return mask(text, known=known)
