"""Proofs of a caller's identity: PINs, codes that link a telephone to a user of a page, and callers' claims.

A PIN is stored as a salted scrypt hash of itself and the deployment's secret, in the user's own scope: the
store alone is not enough to try all PINs, and forgetting the user erases it. A code is given on one side,
page or call, and entered on the other; it is valid once, for minutes. It is stored as a hash, so that any
process can check it, until it is used or expired.

Rules, not the model, decide whose memory is read, before any of it reaches the model.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, Literal

from rapidfuzz.distance import DamerauLevenshtein

from echoic.english.lexicon import DAYS, DEMONYMS, wordlike
from echoic.errors import InvalidInput, WriteConflict
from echoic.memory.assurance import Level
from echoic.memory.concurrency import until_written
from echoic.memory.phone_registry import PIN_GUESSES, line_key, nonce
from echoic.memory.records import LINK_CODE, LINK_GUESSES, PHONE_PIN, memory_id, scan_all
from echoic.memory.service import MemoryService
from echoic.stores.base import Drop, Put, Record, Store
from echoic.text import STOP, fold, sound
from echoic.types import Scope, checked_name

MAX_GUESSES: Final = 5
"""Guesses at one user's PIN within `WITHIN_S`, over all calls: one in five hundred years succeeds."""
WITHIN_S: Final = 24 * 3600.0
_COST: Final = 2**14
"""scrypt's n, with r=8 and p=1: 16 MB and about 50 ms, for which a caller waits."""
_PIN: Final = "pin"


class Pins:
    """The PINs of one deployment. `secret` must be the same for telephone and page."""

    def __init__(
        self,
        service: MemoryService,
        deployment: str,
        secret: str,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._service, self._deployment = service, deployment
        # a key of its own, apart from other uses of the secret
        self._secret = hmac.digest(secret.encode(), b"echoic phone pin", hashlib.sha256)
        memory = service.user(PHONE_PIN, deployment)  # only the deployment's own scope is used
        self._store = memory.backing_store
        self._guesses = Guesses(self._store, memory.scope.everyone, clock, WITHIN_S)

    async def set(self, user: str, pin: str, *, level: Level = "account") -> None:
        """Set the PIN of `user`, whose identity you have verified otherwise.

        `level` is how certain they are. Unless callers of that level are told everything, the PIN proves no
        more later.

        Raises:
            InvalidInput: not six digits, or digits that are easy to guess. The message does not repeat them.
        """
        check_pin(pin)
        salt = secrets.token_bytes(16)
        data = {"salt": salt.hex(), "n": _COST, "hash": (await self._hash(pin, salt, _COST)).hex()}
        if self._service.assurance[level] != "sensitive":
            data["level"] = level
        record = Record(kind=PHONE_PIN, id=_PIN, data=data)
        await self._store.write(self._service.user(user, self._deployment).scope, [Put(record=record)])

    async def clear(self, user: str) -> None:
        scope = self._service.user(user, self._deployment).scope
        await self._store.write(scope, [Drop(kind=PHONE_PIN, id=_PIN)])

    async def level(self, user: str) -> Level:
        """The assurance level of whoever gives the PIN of `user`."""
        record = await self._record(user)
        return "proved" if record is None else record.data.get("level", "proved")

    async def has(self, user: str) -> bool:
        return await self._record(user) is not None

    async def whose(self, users: Sequence[str], pin: str) -> list[str]:
        """Which of `users` have this PIN, except users with too many wrong guesses.

        A guess counts against every user it is compared with, and is taken back only for those whose PIN it
        was: knowing one's own PIN gives no extra guesses at another's.

        Raises:
            StoreUnavailable: the store could not be read; the PIN must not be accepted.
        """
        records = [(user, await self._record(user)) for user in users]
        kept = [
            (user, record.data)
            for user, record in records
            if record is not None and await self._guesses.count(_guesses_at(user), MAX_GUESSES)
        ]
        if not kept:
            await self._hash(pin, secrets.token_bytes(16), _COST)  # so that it takes as long as with a PIN
        found: list[str] = []
        for user, data in kept:
            made = await self._hash(pin, bytes.fromhex(data["salt"]), data["n"])
            if hmac.compare_digest(made, bytes.fromhex(data["hash"])):
                found.append(user)
                await self._guesses.uncount(_guesses_at(user))
        return found

    async def _record(self, user: str) -> Record | None:
        scope = self._service.user(user, self._deployment).scope
        found = await self._store.read(scope, PHONE_PIN, [_PIN])
        return found[0] if found else None

    async def _hash(self, pin: str, salt: bytes, cost: int) -> bytes:
        keyed = hmac.digest(self._secret, pin.encode(), hashlib.sha256)
        return await asyncio.to_thread(hashlib.scrypt, keyed, salt=salt, n=cost, r=8, p=1, dklen=32)


def _guesses_at(user: str) -> str:
    return PIN_GUESSES + line_key(user)


def check_pin(pin: str) -> None:
    """Raise `InvalidInput`, which does not repeat the PIN, unless it has six digits and is not easy to
    guess.
    """
    if len(pin) != CODE_DIGITS or not (pin.isascii() and pin.isdigit()):
        raise InvalidInput(f"a PIN is {CODE_DIGITS} digits")
    steps = {(int(b) - int(a)) % 10 for a, b in pairwise(pin)}
    if len(set(pin)) < 3 or len(steps) == 1 or pin[:3] == pin[3:]:
        raise InvalidInput("this PIN is too easy to guess: choose one without a pattern")


class Guesses:
    """Counts guesses within a time, for all processes on a store."""

    def __init__(self, store: Store, scope: Scope, clock: Callable[[], datetime], within_s: float) -> None:
        self._store, self._scope, self._clock = store, scope, clock
        self._within = timedelta(seconds=within_s)

    async def count(self, name: str, limit: int) -> bool:
        """Count a guess at `name` and return True, or return False if there were already `limit`."""

        async def attempt() -> bool:
            version, times = await self._read(name)
            if len(times) >= limit:
                return False
            await self._write(name, [*times, self._clock()], version)
            return True

        return await until_written(attempt, "the count of guesses")

    async def uncount(self, name: str) -> None:

        async def attempt() -> None:
            version, times = await self._read(name)
            await self._write(name, times[:-1], version)

        await until_written(attempt, "the count of guesses")

    async def _read(self, name: str) -> tuple[int, list[datetime]]:
        """The version of the counter, and the times of the guesses."""
        found = await self._store.read(self._scope, LINK_GUESSES, [name])
        if not found:
            return 0, []
        since = self._clock() - self._within
        times = [datetime.fromisoformat(at) for at in found[0].data["times"]]
        return found[0].version, [at for at in times if at > since]

    async def _write(self, name: str, times: list[datetime], version: int) -> None:
        data = {"times": [at.isoformat() for at in times]}
        record = Record(kind=LINK_GUESSES, id=name, data=data)
        await self._store.write(self._scope, [Put(record=record, expect=version)])


LIFETIME_S: Final = 600.0
MAX_CODE_GUESSES: Final = 20
"""Wrong codes of one kind within `LIFETIME_S`, from everybody, after which none is accepted. With a hundred
valid codes, guessing succeeds in one of 500 such periods by telephone, and in one of 50,000 on a page."""
MAX_CODES: Final = 1000
"""Limit of valid codes; a new one replaces the oldest."""
TYPED_DIGITS: Final = 8
"""Digits of a code that is typed into a page, where machines may guess and nobody has to say it."""

Kind = Literal["user", "line"]
"""user: shown on a page, proves that user to a phone. line: told in a call, proves that line to a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A code, as it is shown or said."""

    code: str
    good_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenLine:
    """What a code from a call proves to a page."""

    line: str
    """The line its user calls from."""
    proved: tuple[str, ...]
    """Users who proved in that call that memories on the line are theirs."""


class LinkCodes:
    """The link codes of one deployment."""

    def __init__(
        self,
        service: MemoryService,
        deployment: str = "default",
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        memory = service.user(LINK_CODE, deployment)  # only the deployment's own scope is used
        self._store, self._scope = memory.backing_store, memory.scope.everyone
        self._clock = clock
        self._guesses = Guesses(self._store, self._scope, clock, LIFETIME_S)

    async def give(self, user: str) -> Code:
        """A new code that proves to a telephone that its caller is `user`; their previous code becomes
        invalid.

        Raises:
            InvalidInput: an invalid name of a user.
            StoreUnavailable: there is no code; try again.
        """
        return await self._give("user", user, CODE_DIGITS)

    async def give_line(self, line: str, *, proved: Collection[str] = ()) -> Code:
        """A new code that proves to a page that its user calls from `line`; see `give`.

        Give it only in a call whose number is proven. `proved` are the users who proved in the call that
        memories on the line are theirs.
        """
        return await self._give("line", line, TYPED_DIGITS, proved)

    async def take(self, code: str) -> str | None:
        """The user that `code` proves a telephone's caller to be; None if it is invalid. Uses it up.

        Raises:
            StoreUnavailable: it could not be checked; it must not be accepted.
        """
        record = await self._take("user", code)
        return None if record is None else str(record.data["whose"])

    async def take_proof(self, code: str) -> ProvenLine | None:
        """The line that `code` proves a page's user to call from; see `take`."""
        record = await self._take("line", code)
        if record is None:
            return None
        return ProvenLine(line=record.data["whose"], proved=tuple(record.data["proved"]))

    async def waiting(self) -> bool:
        """Whether there is a valid code for a telephone."""
        records = await scan_all(self._store, self._scope, LINK_CODE, key="user")
        return bool(self._fresh(records))

    async def _give(self, kind: Kind, whose: str, digits: int, proved: Collection[str] = ()) -> Code:
        checked_name(whose, "user")

        async def attempt() -> Code:
            code = f"{secrets.randbelow(10**digits):0{digits}}"
            records = await self._records()
            good = [r for r in self._fresh(records) if (r.key, r.data["whose"]) != (kind, whose)]
            kept = {record.id for record in good[-MAX_CODES + 1 :]}
            stale = [record for record in records if record.id not in kept]
            until = self._clock() + timedelta(seconds=LIFETIME_S)
            data = {
                "whose": whose,
                "proved": sorted(proved),
                "until": until.isoformat(),
                "used": False,
                "nonce": nonce([whose, *proved]),
            }
            record = Record(kind=LINK_CODE, id=_mark(kind, code), key=kind, data=data)
            drops = [Drop(kind=LINK_CODE, id=old.id) for old in stale if old.id != record.id]
            # a code that is already valid for somebody else is a conflict: another is tried
            standing = {old.id: old for old in stale}
            await self._store.write(self._scope, [*drops, Put.over(standing.get(record.id), record)])
            return Code(code=code, good_until=until)

        return await until_written(attempt, "the codes")

    async def _take(self, kind: Kind, code: str) -> Record | None:
        if not await self._guesses.count(kind, MAX_CODE_GUESSES):
            return None
        found = await self._store.read(self._scope, LINK_CODE, [_mark(kind, code)])
        if not self._fresh(found):
            return None
        record = found[0]
        used = Record(
            kind=LINK_CODE,
            id=record.id,
            key=kind,
            data={**record.data, "whose": "", "proved": [], "used": True},
        )
        try:
            await self._store.write(self._scope, [Put.over(record, used)])
        except WriteConflict:
            return None  # used meanwhile
        await self._guesses.uncount(kind)
        await self._tidy()
        return record

    async def _tidy(self) -> None:
        records = await self._records()
        good = {record.id for record in self._fresh(records)}
        gone = [Drop(kind=LINK_CODE, id=record.id) for record in records if record.id not in good]
        await self._store.write(self._scope, gone)

    async def _records(self) -> list[Record]:
        return await scan_all(self._store, self._scope, LINK_CODE)

    def _fresh(self, records: list[Record]) -> list[Record]:
        now = self._clock()
        return [
            record
            for record in records
            if not record.data["used"] and datetime.fromisoformat(record.data["until"]) > now
        ]


def _mark(kind: Kind, code: str) -> str:
    return memory_id(LINK_CODE, kind, code)


# -- what callers say of who they are, and codes they say: English rules, pure

CODE_DIGITS: Final = 6

_DENIED = re.compile(
    r"\b(?:this is not|this isn't|it is not|it's not|it isn't|i am not|i'm not"
    r"|(?:you're|you are) not (?:talking|speaking) to|not)\s+(?:the\s+)?(?P<name>[^\W\d_][\w'-]*)"
)
_OTHER = re.compile(
    r"\b(?:(?:you have|you've got|you got|i'm|i am|this is|wrong)\s+(?:the\s+)?"
    r"(?:wrong|other|different) (?:person|caller)"
    r"|(?:this is|i'm|i am) (?:actually )?(?:someone|somebody) else(?!')"
    r"|(?:someone|somebody) else (?:is|who is|who's) (?:calling|speaking|talking|on the (?:line|phone))"
    r"|not the usual (?:caller|person)"
    r"|(?:i'm|i am) (?:using|on|calling from) (?:his|her|their) (?:phone|line|number))\b"
    r"|^\W*(?:no\W+|sorry\W+)*(?:wrong person|(?:someone|somebody) else)\W*$"
)
"""Not "someone else" or "the wrong person" in passing: "book it for someone else"."""
_NAMED = re.compile(
    r"\b(?:my name is|my name's|i am called|i'm called|you're (?:talking|speaking) to"
    r"|this is|it is|it's|i am|i'm)\s+(?P<name>[^\W\d_][\w'-]+)"
)
_FORMAL = re.compile(
    r"\b(?:my name is|my name's|you're (?:talking|speaking) to)\s+(?P<a>[^\W\d_][\w'-]+)"
    r"|\bthis is\s+(?P<b>[^\W\d_][\w'-]+)"
    r"(?=\s+(?:speaking|calling|here|on the (?:line|phone))\b|\s*[.,!]|\s*$)"
)
_WORD: Final = re.compile(r"[^\W\d_][\w'’-]*")
_NO_NAMES: Final = frozenset(
    """
    a an the my his her their your our someone somebody me us here there very so just really about calling
    speaking sure not for from with that this what why how when great good bad fine nice true false right
    wrong ok okay important urgent ridiculous terrible awful amazing perfect fantastic late early new old one
    two another different usual hungry tired sorry happy sad ready back home busy hers it everything nothing
    """.split()
)
_DIGITS: Final = {
    **{str(digit): str(digit) for digit in range(10)},
    "zero": "0",
    "oh": "0",
    "o": "0",
    "one": "1",
    "two": "2",
    "to": "2",
    "too": "2",
    "three": "3",
    "four": "4",
    "for": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "ate": "8",
    "nine": "9",
}

_DIGITS_IN: Final = {
    language: {word: str(digit) for digit, said in enumerate(words.split()) for word in said.split("/")}
    for language, words in {
        "de": "null eins/ein zwei/zwo drei vier funf/fuenf sechs sieben acht neun",
        "es": "cero uno/un dos tres cuatro cinco seis siete ocho nueve",
        "fr": "zero un/une deux trois quatre cinq six sept huit neuf",
        "it": "zero uno/un due tre quattro cinque sei sette otto nove",
        "pt": "zero um dois tres quatro cinco seis/meia sete oito nove",
    }.items()
}
_TIMES: Final = {"double": 2, "triple": 3}
_ALSO_WORDS: Final = frozenset({"to", "too", "for"})
_LEAST_MASKED: Final = 4
"""Digits in a row that may be an incompletely heard PIN."""
MASK: Final = "[code]"
"""Replaces digits that may be a proof in what is stored."""
_ANNOUNCED = re.compile(
    r"\b(?:pin|pins|p\.i\.n|passcode|pass code|code|codes|codigo|codice|geheimzahl|geheimnummer|clave)\b"
)
_OTHER_CODES = re.compile(
    r"\b(?:zip|post|postal|area|country|dialling|promo|promotion|discount|voucher|coupon|bar|qr|error|product"
    r"|booking|source|dress)\s+(?:pin\s+)?codes?\b"
)
_PIN_NAMED = re.compile(r"\b(?:pin|p\.i\.n|geheimzahl|geheimnummer|clave|codice segreto)\b")
_WANTS_PIN = re.compile(r"\b(?:set|change|choose|create|make|give|have|want|like|new)\b.{0,60}\bpin\b")
_SETS_PIN = re.compile(
    r"\b(?:set|change|choose|create|make|new)\b.{0,60}\bpin\b"
    r"|\bpin\b.{0,40}\bto be\b|\bas (?:my|a|the) (?:new )?pin\b"
)
_FILLING: Final = frozenset("it is s its it's um uh er okay ok yes well so and the my number here".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityClaim:
    """What the caller said about who is speaking."""

    denied: bool = False
    """Whether they are not the assumed caller."""
    name: str | None = None
    """The name they gave, as transcribed."""


def claim_in(said: str, *, taken_for: str | None, known: Collection[str] = ()) -> IdentityClaim | None:
    """The claim in `said`, given the name of the assumed caller and of others on this line; None if there is
    none.
    """
    text = fold(said)
    denials = [match["name"] for match in _DENIED.finditer(text)]
    denied = bool(_OTHER.search(text)) or (
        taken_for is not None
        and any(
            [name] == fold(taken_for).split()[:1] or (_may_be_name(name, said) and same_name(name, taken_for))
            for name in denials
        )
    )
    names = [match["name"] for match in _NAMED.finditer(text) if match["name"] not in denials]
    names = [name for name in names if _may_be_name(name, said)]
    if denied:
        return IdentityClaim(denied=True, name=_written(names[0], said) if names else None)
    for name in names:
        for other in known:
            if same_name(name, other):
                return IdentityClaim(
                    denied=taken_for is not None and not same_name(name, taken_for), name=other
                )
    formal = [match["a"] or match["b"] for match in _FORMAL.finditer(text)]
    cased = said != said.lower() and said != said.upper()
    formal = [name for name in formal if name in names and (not cased or _is_capital(name, said))]
    if formal and taken_for is not None and not same_name(formal[0], taken_for):
        return IdentityClaim(denied=True, name=_written(formal[0], said))
    if formal and taken_for is None:
        return IdentityClaim(name=_written(formal[0], said))
    return None


def _may_be_name(word: str, said: str) -> bool:
    """Whether a word of `said` may be somebody's name: no English word, or written with a capital.

    Every other word sounds like some name: "not sure" like Sarah, "not on" like Anna, "I'm done" like Dan.
    """
    if word in _NO_NAMES or word in STOP or word in DAYS or word in DEMONYMS:
        return False
    return not wordlike(word) or (said != said.upper() and _is_capital(word, said))


def _is_capital(word: str, said: str) -> bool:
    """Whether `said` has this folded word with a capital."""
    return any(each[0].isupper() and fold(each) == word for each in _WORD.findall(said))


def same_name(a: str, b: str) -> bool:
    """Whether two names may be the same: as written, nearly, or by sound. First names count."""
    first, second = fold(a).split(), fold(b).split()
    if not first or not second:
        return False
    x, y = first[0], second[0]
    if x == y or bool(set(sound(x)) & set(sound(y))):
        return True
    return min(len(x), len(y)) >= 4 and DamerauLevenshtein.distance(x, y) <= 1


def codes_in(said: str, language: str = "en") -> list[str]:
    """Every code of `CODE_DIGITS` digits that `said` may contain, said digit by digit or typed."""
    codes: list[str] = []
    for run in _runs(said, language):
        digits = "".join(digit for _, _, digit in run)
        # "to" and "for" before or after a code are words
        codes += [digits[at : at + CODE_DIGITS] for at in range(len(digits) - CODE_DIGITS + 1)]
    return list(dict.fromkeys(codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Digits that were said as a proof, or as a new PIN."""

    digits: str
    """The digits that may be a PIN or code; empty if there are none of that length."""
    announced: bool
    """Whether they were called a PIN or code; otherwise nothing else was said, and they may be anything."""
    masked: str
    """The utterance without these digits, as it may be stored."""


def proof_in(said: str, language: str = "en") -> Proof | None:
    """The digits in `said` that may prove who is calling; None if there are none.

    A wrong number of digits proves nothing but is masked all the same: it may be a misrecognised code.
    """
    runs = [run for run in _runs(said, language) if len(run) >= _LEAST_MASKED]
    if not runs:
        return None
    announced = speaks_of_proof(said)
    if not (announced or _is_bare(said, runs)):
        return None
    masked = said
    for run in reversed(runs):
        masked = f"{masked[: run[0][0]]}{MASK}{masked[run[-1][1] :]}"
    exact = [digits for run in runs if len(digits := _without_words(run, said)) == CODE_DIGITS]
    return Proof(digits=exact[0] if len(exact) == 1 else "", announced=announced, masked=masked)


def masked(said: str, language: str = "en") -> str:
    """The utterance without digits that may prove something."""
    proof = proof_in(said, language)
    return said if proof is None else proof.masked


def _without_words(run: list[tuple[int, int, str]], said: str) -> str:
    """The digits of `run`, without leading words that only sound like one if there are too many."""
    while len(run) > CODE_DIGITS and fold(said[run[0][0] : run[0][1]]) in _ALSO_WORDS:
        run = run[1:]
    return "".join(digit for _, _, digit in run)


def wants_pin(said: str) -> bool:
    """Whether the caller asks to set or change their PIN. English."""
    return bool(_WANTS_PIN.search(fold(said)))


def sets_pin(said: str) -> bool:
    """Whether the digits in `said` are a new PIN, and not the caller's own: "I have a PIN, it's …"."""
    return bool(_SETS_PIN.search(fold(said)))


def speaks_of_proof(said: str) -> bool:
    """Whether a PIN or a code is mentioned, so that the next digits may be it."""
    return bool(_ANNOUNCED.search(_OTHER_CODES.sub(" ", fold(said))))


def names_pin(said: str) -> bool:
    return bool(_PIN_NAMED.search(_OTHER_CODES.sub(" ", fold(said))))


def _runs(said: str, language: str) -> list[list[tuple[int, int, str]]]:
    """Digits that follow one another, as (start, end, digit), said or typed."""
    words = _DIGITS | _DIGITS_IN.get(language.partition("-")[0].casefold(), {})
    runs: list[list[tuple[int, int, str]]] = [[]]
    times = 1
    start = 0
    for token in re.finditer(r"[^\W\d_]+|\d", said):
        word = token.group()
        word = word.lower() if word.isascii() else fold(word)
        if word in _TIMES:
            times, start = _TIMES[word], token.start()
            continue
        digit = words.get(word)
        if digit is None:
            runs.append([])
        else:
            first = start if times > 1 else token.start()
            runs[-1] += [(first, token.end(), digit)] * times
        times = 1
    return [run for run in runs if run]


def _is_bare(said: str, runs: list[list[tuple[int, int, str]]]) -> bool:
    """Whether nothing but digits and fillers is said."""
    rest = said
    for run in reversed(runs):
        rest = f"{rest[: run[0][0]]} {rest[run[-1][1] :]}"
    return set(re.findall(r"\w+", fold(rest))) <= _FILLING


def _written(name: str, said: str) -> str:
    """`name` as written in `said`, which may have accents, capitalised."""
    for word in _WORD.findall(said):
        if fold(word) == name:
            return f"{word[:1].upper()}{word[1:]}"
    return name.capitalize()
