"""Settings of a telephone, and the phrases it says itself, in each language."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

from echoic.errors import InvalidInput, brief
from echoic.types import checked_name, checked_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """The phone's own phrases in one language.

    Raises:
        InvalidInput: a phrase is blank, there are fewer than two fillers, or `greeting_known` has no {name}.
    """

    greeting: str
    greeting_known: str
    """With {name} as a placeholder."""
    greeting_shared: str
    fillers: tuple[str, ...]
    """Said while a model thinks: the first once, then the others in turn."""
    sorry: str
    """Said when a reply failed."""
    too_long: str
    """Said when a reply timed out."""
    again: str
    """Said when a reply was lost."""
    linked: str
    known_here: str
    """Said when a code is valid but the phone itself is not linked."""
    no_code: str
    link_changed: str
    """Said to a caller from a line that was linked or unlinked since the last call."""
    proven: str
    not_proven: str
    """Said for any failed proof, whatever the reason."""
    old_pin: str
    new_pin: str
    pin_set: str
    still_there: str
    goodbye: str
    """Said to a silent caller."""
    farewell: str
    """Said when the agent hangs up without a word."""
    cut_off: str
    busy: str

    def __post_init__(self) -> None:
        texts = [getattr(self, name) for name in Phrases.__slots__ if name != "fillers"]
        if len(self.fillers) < 2 or not all(text.strip() for text in [*texts, *self.fillers]):
            raise InvalidInput("no phrase may be blank, and at least two fillers are needed")
        if "{name}" not in self.greeting_known:
            raise InvalidInput(f"greeting_known has no {{name}}: {brief(self.greeting_known)}")

    def filler(self, number: int) -> str:
        """The `number`-th filler, from 0, for when a model takes long."""
        others = len(self.fillers) - 1
        return self.fillers[number] if number == 0 else self.fillers[1 + (number - 1) % others]


def _phrases(said: dict[str, Any]) -> Phrases:
    return Phrases(**said | {"fillers": tuple(said["fillers"])})


KNOWN: Final[Mapping[str, Phrases]] = {
    tag: _phrases(said)
    for tag, said in json.loads(Path(__file__).with_name("phrases.json").read_text(encoding="utf-8")).items()
}
"""Built-in phrases by primary tag; `PhoneSettings.phrases` takes others."""
ENGLISH: Final = KNOWN["en"]


def phrases_of(language: str, own: Mapping[str, Phrases]) -> Phrases:
    """The phrases for a language: your own by tag or primary tag, then built-in ones, then English."""
    by_tag = {tag.casefold(): phrases for tag, phrases in own.items()}
    tag, primary = language.casefold(), primary_of(language)
    return by_tag.get(tag) or by_tag.get(primary) or KNOWN.get(primary) or ENGLISH


def primary_of(language: str) -> str:
    """The primary tag: "es" of "es-MX"."""
    return language.partition("-")[0].casefold()


def matching(language: str, spoken: Iterable[str]) -> str | None:
    """Which of the `spoken` tags matches `language`: the same, or the first with the same primary tag."""
    tags = list(spoken)
    same = [tag for tag in tags if tag.casefold() == language.casefold()]
    near = [tag for tag in tags if primary_of(tag) == primary_of(language)]
    return next(iter([*same, *near]), None)


Retention = Literal["keep", "ask", "never"]
"""What becomes of a call by default. keep: it is stored. ask: only if the caller agrees. never: only what the
caller asks to be stored."""
Channel = Literal["relay", "gather", "media"]
"""relay: ConversationRelay, text over a WebSocket. gather: webhooks only. media: audio to a voice model."""

Trust = Literal["a", "any"]
"""What makes a number count as the caller's. a: the carrier's full attestation (STIR/SHAKEN, North America
only). any: a number that is shown and not reported as forged. Other callers are strangers until they
prove who they are."""

TRUST_MEANS: Final[Mapping[Trust, str]] = MappingProxyType(
    {
        "a": "You are recognised if the telephone network fully attests that the call comes from your "
        "number, which it does in North America only, or if you say or key in your PIN or a code. Other "
        "callers who show your number are greeted as strangers and hear nothing about you.",
        "any": "You are recognised if the call shows your number. Numbers can be forged: anybody who shows "
        "yours hears what is remembered about you. Use this for testing only.",
    }
)

MIN_SALT_BYTES: Final = 16
"""All phone numbers can be tried, so that a hash without a secret salt reveals the number."""
FILLERS: Final = ENGLISH.fillers
CacheFor = bool | Literal["5m", "30m", "1h", "12h"]
"""Whether, and for how long, providers are asked to cache prompts; True for their default."""
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a caller hears while a model thinks. Times are seconds."""

    answer_within_s: float = 0.8
    """How long a webhook waits for words before a filler is said. Twilio times out after 15 s."""
    pause_s: int = 1
    """Seconds of silence before the server is asked again; whole seconds, as TwiML requires."""
    sound_every_s: float = 5.0
    """Maximum silence before something is said."""
    give_up_s: float = 120.0
    """Time limit of a reply."""
    idle_s: float = 300.0
    """How long a call may have no activity before it counts as over."""
    reconnect_s: float = 30.0
    """How long a broken socket may take to reconnect."""
    characters_per_s: float = 15.0
    """The assumed speed of speech, for channels that report no playback: about 150 words a minute."""

    def __post_init__(self) -> None:
        if not 0 < self.answer_within_s <= 1.5:
            raise InvalidInput(
                f"answer_within_s must be above 0 and at most 1.5, not {brief(self.answer_within_s)}: every "
                "webhook must be answered within 2 s"
            )
        if not isinstance(self.pause_s, int) or self.pause_s < 1:
            raise InvalidInput(
                f"pause_s must be a whole number of seconds above 0, not {brief(self.pause_s)}"
            )
        if self.sound_every_s < self.answer_within_s + self.pause_s + 1:
            raise InvalidInput(
                f"sound_every_s must be at least {self.answer_within_s + self.pause_s + 1}, "
                f"not {brief(self.sound_every_s)}: the server is not asked more often"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PhoneSettings:
    """Settings of a phone: how it answers, and what it stores.

    Raises:
        InvalidInput: an invalid value.
    """

    auth_token: str = field(repr=False)
    """Auth token of the Twilio account, which signs its requests. Not in the repr, which may be logged."""
    salt: str = field(repr=False)
    """Secret for hashing numbers, at least `MIN_SALT_BYTES`. If you change it, no caller is recognised."""
    public_url: str | None = None
    """The URL configured at Twilio: "https://phone.example.com". By default taken from each request, for
    tests."""
    trust_forwarded: bool = False
    """Whether to trust X-Forwarded-Proto and X-Forwarded-Host, if you have a proxy."""
    deployment: str = "default"
    channel: Channel = "relay"
    retention: Retention = "keep"
    plain_numbers: bool = False
    """Store numbers instead of their hashes, which turns the store into a list of callers."""
    trust: Trust = "a"
    """Which numbers are trusted; see `Trust`."""
    recycled_after_days: float | None = 180
    """After this time without calls, a number counts as reassigned and its caller as a stranger, unless they
    prove who they are by PIN or code. None: never."""
    greet_by_name: bool = True
    greeting: str | None = None
    """Greeting in `language`; by default that of its phrases."""
    language: str = "en-US"
    """The initial language."""
    languages: tuple[str, ...] = ()
    """Other languages; the line switches when the caller does, or prefers one."""
    detect_language: bool = False
    """For relays: whether Twilio detects the language (Deepgram). If not, it changes only on request."""
    voice: str | None = None
    """Twilio's name of the voice for `language`; by default Twilio's choice."""
    voices: Mapping[str, str] = field(default_factory=dict)
    """Voices for other languages, by tag."""
    phrases: Mapping[str, Phrases] = field(default_factory=dict)
    """The phone's own phrases by language tag, instead of the built-in ones."""
    prompt_cache: CacheFor = True
    """Whether providers are asked to cache prompts, so that a recalled call is paid for once."""
    hints: tuple[str, ...] = ()
    """Words the recogniser should expect."""
    recall_tokens: int = 1200
    """Token budget of a recalled conversation that enters the call."""
    budget_tokens: int = 600
    """Token budget of the memory block."""
    timeout_s: float = 3.0
    """Time limit of each memory tool."""
    max_calls: int = 200
    """Limit of simultaneous calls; further callers are told that all lines are busy, as they are while the
    process is overloaded."""
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        if not self.auth_token.strip():
            raise InvalidInput(
                "auth_token is empty: you find it in the Twilio console, next to the account's SID"
            )
        if len(self.salt.encode()) < MIN_SALT_BYTES:
            raise InvalidInput(
                f"salt has {len(self.salt.encode())} bytes and needs {MIN_SALT_BYTES}: make one with "
                "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` and keep it"
            )
        checked_name(self.deployment, "deployment")
        if self.greeting is not None:
            checked_text(self.greeting, "greeting")
        _checked_choice(self.channel, get_args(Channel), "channel")
        _checked_choice(self.retention, get_args(Retention), "retention")
        _checked_choice(self.trust, get_args(Trust), "trust")
        for language in (self.language, *self.languages, *self.voices, *self.phrases):
            if not _LANGUAGE.fullmatch(language):
                raise InvalidInput(f"a language is a tag such as 'en-US', not {brief(language)}")
        if self.public_url is not None:
            _checked_url(self.public_url)
        if min(self.recall_tokens, self.budget_tokens, self.max_calls) < 1 or not self.timeout_s > 0:
            raise InvalidInput("recall_tokens, budget_tokens, max_calls and timeout_s must be above 0")

    @property
    def spoken(self) -> tuple[str, ...]:
        """All languages of the line, `language` first."""
        return tuple(dict.fromkeys((self.language, *self.languages)))

    def spoken_as(self, language: str) -> str | None:
        """The line's tag for `language`, such as "es-ES" for "es"; None if it does not speak it."""
        return matching(language, self.spoken)

    def phrases_in(self, language: str) -> Phrases:
        """The phone's own phrases in `language`."""
        phrases = phrases_of(language, self.phrases)
        if self.greeting is not None and language == self.language:
            return replace(phrases, greeting=self.greeting)
        return phrases

    def voice_of(self, language: str) -> str | None:
        """The voice for `language`; None for Twilio's choice."""
        tag = matching(language, self.voices)
        if tag is not None:
            return self.voices[tag]
        return self.voice if language == self.language else None


def _checked_choice(value: str, allowed: tuple[str, ...], what: str) -> None:
    if value not in allowed:
        raise InvalidInput(f"{what} must be one of {', '.join(allowed)}, not {brief(value)}")


def _checked_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.query or parts.path.endswith("/"):
        raise InvalidInput(
            f"public_url must be scheme and host without trailing slash, as in 'https://phone.example.com', "
            f"not {brief(url)}"
        )
