"""How a telephone behaves, and what it says by itself, in each language."""

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
    """The phone's own sentences in one language.

    Raises:
        InvalidInput: one is blank, there are no two fillers, or `greeting_known` has no place for the name.
    """

    greeting: str
    greeting_known: str
    """With {name} where the caller's name goes."""
    greeting_shared: str
    fillers: tuple[str, ...]
    """While a model thinks: the first once, then the others in turn."""
    sorry: str
    """A reply failed."""
    too_long: str
    """A reply was given up."""
    again: str
    """A reply was lost."""
    linked: str
    known_here: str
    """A code is good, and the phone itself is not linked."""
    no_code: str
    link_changed: str
    """To whoever calls from a line that was linked or unlinked since the last call."""
    proven: str
    not_proven: str
    """Whatever is wrong: too many, none set, not the right one."""
    old_pin: str
    new_pin: str
    pin_set: str
    still_there: str
    goodbye: str
    """To whoever is silent."""
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
"""By primary tag. Written by us, not by Twilio; `PhoneSettings.phrases` takes others."""
ENGLISH: Final = KNOWN["en"]


def phrases_of(language: str, own: Mapping[str, Phrases]) -> Phrases:
    """Find phrases for a language tag: your own by tag or primary tag, then built-in ones, then English."""
    by_tag = {tag.casefold(): phrases for tag, phrases in own.items()}
    tag, primary = language.casefold(), primary_of(language)
    return by_tag.get(tag) or by_tag.get(primary) or KNOWN.get(primary) or ENGLISH


def primary_of(language: str) -> str:
    """The primary tag: "es" of "es-MX"."""
    return language.partition("-")[0].casefold()


def matching(language: str, spoken: Iterable[str]) -> str | None:
    """Which of the `spoken` tags matches `language`: the same, else the first with the same primary tag."""
    tags = list(spoken)
    same = [tag for tag in tags if tag.casefold() == language.casefold()]
    near = [tag for tag in tags if primary_of(tag) == primary_of(language)]
    return next(iter([*same, *near]), None)


Retention = Literal["keep", "ask", "never"]
"""What becomes of a call that nobody asked to store. keep: it is kept. ask: only if the caller agrees.
never: only what the caller asks to be kept.
"""
Channel = Literal["relay", "gather", "media"]
"""relay: ConversationRelay, text over a WebSocket. gather: webhooks alone. media: audio to a voice model."""

Trust = Literal["a", "any"]
"""What makes a number count as the caller's. a: the carrier's full attestation (STIR/SHAKEN, North America
only). any: that it is shown, and the carrier does not say it is forged. Whoever has no such number is a
stranger until they prove who they are.
"""

TRUST_MEANS: Final[Mapping[Trust, str]] = MappingProxyType(
    {
        "a": "A call is yours if the telephone network vouches in full that it comes from a number of yours, "
        "which it does in North America only, or if you say or key in your PIN or a code. Whoever else shows "
        "your number is greeted as a stranger and hears nothing of yours.",
        "any": "A call is yours if it shows a number of yours. Numbers can be forged: whoever shows yours "
        "hears what is remembered of you. This is for trying things out.",
    }
)
"""What each level means to a caller."""

MIN_SALT_BYTES: Final = 16
"""Phone numbers are few enough to try them all: without a secret salt a hash of one is the number itself."""
FILLERS: Final = ENGLISH.fillers
CacheFor = bool | Literal["5m", "30m", "1h", "12h"]
"""Whether, and for how long, providers are asked to cache prompts; True: as long as they do by default."""
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a caller is kept company while a model thinks. Seconds."""

    answer_within_s: float = 0.8
    """How long a webhook waits for words before it says that it takes a moment. Twilio gives up at 15 s."""
    pause_s: int = 1
    """Seconds of silence before the server is asked again; whole seconds, as TwiML requires."""
    sound_every_s: float = 5.0
    """After how much silence at most something is said."""
    give_up_s: float = 120.0
    """After how long a reply is no longer waited for."""
    idle_s: float = 300.0
    """After how long without a sign of life a call is over, where nobody said so."""
    reconnect_s: float = 30.0
    """How long a socket that broke may take to come back."""
    characters_per_s: float = 15.0
    """The assumed speed of speech, for channels that report no playback: about 150 words a minute."""

    def __post_init__(self) -> None:
        if not 0 < self.answer_within_s <= 1.5:
            raise InvalidInput(
                f"answer_within_s must be above 0 and 1.5 at most, not {brief(self.answer_within_s)}: every "
                "webhook is to be answered within 2 s"
            )
        if not isinstance(self.pause_s, int) or self.pause_s < 1:
            raise InvalidInput(f"pause_s is a whole number of seconds above 0, not {brief(self.pause_s)}")
        if self.sound_every_s < self.answer_within_s + self.pause_s + 1:
            raise InvalidInput(
                f"sound_every_s must be {self.answer_within_s + self.pause_s + 1} at least, "
                f"not {brief(self.sound_every_s)}: the server is not asked more often"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PhoneSettings:
    """How a phone answers, and what it keeps.

    Raises:
        InvalidInput: a value that cannot work.
    """

    auth_token: str = field(repr=False)
    """Auth token of the Twilio account, which signs its requests. Excluded from the repr, which may be
    logged.
    """
    salt: str = field(repr=False)
    """At least `MIN_SALT_BYTES`. Numbers are kept as hashes made with it; with another nobody is known."""
    public_url: str | None = None
    """The URL configured at Twilio: "https://phone.example.com". None: taken from each request, for tests
    only.
    """
    trust_forwarded: bool = False
    """Whether X-Forwarded-Proto and X-Forwarded-Host of a proxy of yours say how it was reached."""
    deployment: str = "default"
    channel: Channel = "relay"
    retention: Retention = "keep"
    plain_numbers: bool = False
    """Keep numbers as they are instead of as hashes. Off: it makes a store a list of who called."""
    trust: Trust = "a"
    """When a number is believed; see `Trust`."""
    recycled_after_days: float | None = 180
    """A number that nobody called from for so long is a stranger's: it may be somebody else's by now. Whoever
    called from it before proves it by their PIN or a code. None: it stays theirs."""
    greet_by_name: bool = True
    greeting: str | None = None
    """In `language`; None: that of its phrases."""
    language: str = "en-US"
    """The language that is heard and spoken at first."""
    languages: tuple[str, ...] = ()
    """Others that may be spoken; the line changes to one when the caller does, or prefers it."""
    detect_language: bool = False
    """Over a relay: whether Twilio finds out which language is spoken (Deepgram). Without, the line changes
    only when the caller asks for it.
    """
    voice: str | None = None
    """For `language`, as Twilio names it; None: its own choice."""
    voices: Mapping[str, str] = field(default_factory=dict)
    """For other languages, by tag."""
    phrases: Mapping[str, Phrases] = field(default_factory=dict)
    """The phone's own phrases by language tag, instead of the built-in ones."""
    prompt_cache: CacheFor = True
    """Whether a provider is asked to cache what it is sent: a recalled call is then paid for once."""
    hints: tuple[str, ...] = ()
    """Words the recogniser should expect."""
    recall_tokens: int = 1200
    """Token budget of a recalled conversation that enters the call."""
    budget_tokens: int = 600
    """Token budget of the memory block."""
    timeout_s: float = 3.0
    """Time limit of each memory tool."""
    max_calls: int = 200
    """At once; who calls then is told that all lines are busy."""
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        if not self.auth_token.strip():
            raise InvalidInput(
                "auth_token is empty: it stands in the Twilio console, beside the account's SID"
            )
        if len(self.salt.encode()) < MIN_SALT_BYTES:
            raise InvalidInput(
                f"salt has {len(self.salt.encode())} bytes, {MIN_SALT_BYTES} at least. Make one with "
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
        """The tag of the line for `language`, such as "es-ES" for "es"; None: it does not speak it."""
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
            f"public_url is scheme and host, as in 'https://phone.example.com', without a slash at the end; "
            f"not {brief(url)}"
        )
