"""Secrets that only the dialogue reveals: the answer to "And the PIN?", a card number spread over four turns,
what the agent reads back.

A turn is masked together with the few before it, as they were stored. So nothing has to be held back, and a
process that does not know the call gets the same result: a marker at the end of a turn shows what is being
dictated. `Pending` says what the next words will be: what was asked for, announced or is being dictated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from echoic.secrets import values
from echoic.secrets.forms import is_card
from echoic.secrets.labels import (
    CODE,
    DECLINES,
    LABELS,
    NAMES_NUMBER,
    REGRETS,
    WORDED,
    Secret,
    harmless,
    hidden,
    is_plain_code,
    is_scaled,
    mixed,
    names,
    near,
    read_out,
    topics,
)
from echoic.secrets.masking import MARKER, Known, Masked, SecretSpan, apply, blanked, mask, merged, replaced
from echoic.text import STOP, word_lists
from echoic.text.spoken_numbers import View, is_bare, runs, views_of

CONTEXT = 10
"""Earlier turns that are read."""
_READ = 200
"""Characters at the end of a turn that say what is offered, or asked for in part."""
OPEN: dict[str, Secret] = {
    "[card number]": "card",
    "[account number]": "account number",
    "[IBAN]": "account number",
    "[ID number]": "ID number",
    "[PIN]": "PIN",
    "[one-time code]": "one-time code",
    "[security code]": "security code",
    "[API key]": "API key",
    "[recovery phrase]": "recovery phrase",
}
"""Kinds that may continue in the next turn: a card that was said whole does not."""
_WHOLE: dict[str, Secret] = {"[password]": "password", "[security answer]": "security answer"}
"""Kinds that are said whole, and only again if an agent asks."""

_LISTS = word_lists("echoic.secrets")


@dataclass(frozen=True, slots=True)
class Said:
    """One turn, as it is stored."""

    speaker: str
    """"agent", or any other speaker."""
    text: str


@dataclass(frozen=True, slots=True)
class Pending:
    """What the next number, or the next words, will be."""

    kind: Secret
    asked: bool
    """Whether it was asked for or announced; otherwise only a bare number continues it."""
    others: frozenset[Secret] = frozenset()
    """Other secrets that were asked for."""
    again: bool = False
    """Whether what was told did not fit, so that the speaker may now speak of something else."""
    in_part: bool = False
    """Whether only some of its letters or digits were asked for."""


_ASKS = re.compile(
    r"""\?|\b(?:what|what's|whats|can\s+(?:i|you)|could\s+(?:i|you)|may\s+i|please|need|tell|give|read|enter
    |say|provide|confirm|verify|and|with|next|ready|go\s+ahead|start(?:ing)?|i'll\s+take|let's|now|for\s+the
    |have\s+(?:the|your)|get\s+(?:the|your)|share|repeat|spell|key\s+in|type|security\s+question)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_REQUEST = re.compile(
    r"\b(?:reset|forg[eo]t|forgotten|chang(?:e|ing)|lost|never|don't\s+(?:tell|share|say|give|read|need)|do\s+not|"
    r"(?:we've|i've|i\s+have|we\s+have|i)\s+(?:just\s+)?(?:sent|emailed|texted|blocked)\s+you\s+a\s+(?:link|new)|"
    r"link|expired|wrong|incorrect|declined|accepted|working)\b",
    re.IGNORECASE,
)
_ASKED_ANSWER = re.compile(
    r"\bsecurity\s+question|\b(?:verify|verification|identity|security)\b.*\b(?:maiden|pet|school|teacher|street|"
    r"city|town|car|nickname|memorable)\b|\bmaiden\s+name\b|\bmemorable\b",
    re.IGNORECASE | re.DOTALL,
)
_ASKED_CODE = re.compile(
    r"\b(?:six|four|five|eight|6|4|5|8)[\s-]digits?(?:\s+\w+)?\s+(?:code|number)|\bcode\s+(?:\w+\s+){0,3}(?:sent|"
    r"texted|emailed|messaged|received|got)|\b(?:sent|texted|emailed|messaged|receive[d]?|got)\b.{0,40}\bcode\b|"
    r"\b(?:the|that|your|a)\s+code\b",
    re.IGNORECASE,
)
_ASKED_LONG = re.compile(
    r"\b(?:long\s+(?:card\s+)?number|(?:sixteen|16)\s+digits|digits\s+on\s+the\s+front)\b", re.IGNORECASE
)
_ASKED_BACK = re.compile(
    r"\b(?:(?:three|four|3|4|last)\s+(?:digits?|numbers?)|code|number|digits)\s+(?:\w+\s+){0,4}(?:on|at)\s+the\s+(?:back|reverse|front)",
    re.IGNORECASE,
)
OTHER_NUMBER = re.compile(
    r"""\b(?:order|book(?:ing|ed)|reservation|tracking|phone|mobile|cell|telephone|flight|invoice|case|ticket|reference
    |confirmation|zip|postal|post|area|promo|discount|coupon|voucher|customer|loyalty|member(?:ship)?|extension
    |house|street|room|table|policy|model|serial|how\s+many|what\s+time|what\s+date|date\s+of\s+birth|birthday
    |expir\w*|valid|amount|how\s+much|how\s+old|quantity|call\s+you|reach\s+you|callback|call\s+back)\b""",
    re.IGNORECASE | re.VERBOSE,
)
ENCOURAGES = frozenset(_LISTS["encourages"].split())
WAITS = frozenset(_LISTS["waits"].split())
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def words_of(text: str) -> list[str]:
    return [word[0].lower() for word in _WORD.finditer(text)]


def pending_after(before: Sequence[Said]) -> Pending | None:
    """What is being dictated, or was asked for and not said yet."""
    before = before[-CONTEXT:]
    asks = typed = rejected = in_part = False
    partly = any(one.speaker == "agent" and _IN_PART.search(one.text[-_READ:]) for one in before)
    for place, said in enumerate(reversed(before)):
        if said.speaker == "agent":
            if (asked := asked_for(said.text) or _doubted(said.text)) is not None:
                return replace(asked, in_part=asked.in_part or in_part)
            typed = typed or _TYPED.search(said.text[-_READ:]) is not None
            in_part = in_part or (partly and _next_part(said.text))
            asks = asks or typed or (not in_part and _asks_for_it(said.text))
            rejected = rejected or _rejects(said.text)
            goes_on = in_part or rejected or encourages(said.text) or _AGAIN.search(said.text) is not None
            if not asks and not goes_on:
                return None
            continue
        if asks:
            told_of = said.text[-_READ:] if typed else said.text
            return _mentioned(told_of) if typed or _KEEPING.search(told_of) else None
        told, over = _told(said.text, place, again=rejected or in_part)
        if over:
            return told and replace(told, asked=told.asked or rejected, again=rejected, in_part=in_part)
        if place == 1 and (offered := _offered(said.text, before[-1].text)) is not None:
            return offered
    return None


def _told(text: str, place: int, *, again: bool) -> tuple[Pending | None, bool]:
    """What a caller's turn leaves open, and whether it decides: a pause does not. `again`: an agent wants it
    said again, or more of it.
    """
    marker = _last_marker(text)
    if marker is not None:
        kind = OPEN.get(marker) or (_WHOLE.get(marker) if again else None)
        return (None if kind is None else Pending(kind, asked=False)), True
    if (announced := _dangling(text)) is not None:
        return Pending(announced, asked=place <= _SOON and _VERBS_AT_END.search(text) is not None), True
    words = words_of(text)
    asks_back = text.rstrip().endswith("?") and len(words) <= 8
    return None, not is_bare(text) and not asks_back and not all(word in WAITS for word in words)


_AGAIN = re.compile(
    r"^\W*(?:(?:i'm\s+)?(?:so\s+)?sorry|pardon(?:\s+me)?|(?:once\s+)?again|one\s+more\s+time|say\s+(?:that|it)\s+again|"
    r"what\s+was\s+that|come\s+again|(?:yes|yeah)?\W*(?:that|this)\s+one|i\s+(?:didn't|did\s+not)\s+(?:catch|get|hear)\s+"
    r"(?:that|it|you))\b[^.?!]{0,40}[.?!]*$",
    re.IGNORECASE,
)
"""What an agent says that has not understood, or repeats its question."""
_REJECTS = re.compile(
    r"""\W*(?:(?:hm+|sorry|no|oh|ah|okay|unfortunately|i'm\s+(?:sorry|afraid))\W+)*(?:
    (?:it|that|this|the\s+(?:code|pin|password|number))(?:\s+says\s+(?:it|that))?(?:'s|\s+(?:is|was))\s+(?:still\s+)?(?:
      wrong|incorrect|invalid|rejecting|too\s+(?:short|long|few|many)|only\s+(?:\w+\s+)?(?:digits|numbers|characters
      |letters)|not\s+(?:right|correct|valid|work|match|accept|recogni|what\s+(?:i|we)\s+have|long\s+enough|it\b))
    |(?:it|that|this)\s+(?:(?:still\s+)?(?:didn't|doesn't|isn't|wasn't|won't|hasn't)\s+(?:seem\s+to\s+)?(?:be\s+)?(?:
      work|match|accept|go\s+through|gone\s+through|right|correct|valid|look\s+right|let(?:ting)?\s+(?:me|us|you)\s+in
      |recogni)|keeps\s+(?:rejecting|failing)|says\s+(?:wrong|incorrect|invalid|no\s+match))
    |(?:please\s+)?(?:(?:can|could)\s+you\s+)?try\s+(?:that\s+|it\s+)?(?:again|another)
    |(?:it|i|we)\s+(?:needs?|should\s+(?:be|have))\s+(?:to\s+be\s+)?(?:all\s+)?(?:(?:\w+\s+)?(?:digits|numbers|characters
      |letters)|(?:four|five|six|seven|eight|\d)(?=\W*$))\b)[^.?!]{0,60}[.?!]*$""",
    re.IGNORECASE | re.VERBOSE,
)
"""What an agent says of a secret that was told and does not fit."""
_RETRY = re.compile(r"\b(?:again|another|try|repeat|check)\b", re.IGNORECASE)


def _rejects(text: str) -> bool:
    """Whether an agent only says that what it was told is wrong, or not all of it."""
    if len(text) > _READ or OTHER_NUMBER.search(text) or ("?" in text and not _RETRY.search(text)):
        return False
    sentences = re.split(r"(?<=[.?!])\s+", text.strip())
    rejects = [_REJECTS.match(one) is not None for one in sentences]
    return any(rejects) and all(
        rejected or encourages(one) or _AGAIN.search(one)
        for rejected, one in zip(rejects, sentences, strict=True)
    )


_ORDINAL = r"first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last|final|\d(?:st|nd|rd|th)"
_NTH = rf"(?:{_ORDINAL}|next|one|two|three|and|,|\s)+"
_IN_PART = re.compile(
    rf"\b(?:{_ORDINAL})\b{_NTH}?\s*(?:digits?|letters?|characters?|numbers?)\b", re.IGNORECASE
)
"""A request for single letters or digits of a secret."""
_NEXT_PART = re.compile(
    rf"(?:^|[.!,]\s*)(?:and\s+)?(?:what(?:'s|\s+is|\s+about)\s+)?the\s+{_NTH}(?:one|digit|letter|character)?s?\?$",
    re.IGNORECASE,
)


def _next_part(text: str) -> bool:
    """Whether an agent only asks for the next letter or digit of what it asked for in part."""
    asked = _NEXT_PART.search(text) if len(text) <= _READ else None
    return asked is not None and encourages(text[: asked.start()])


def _doubted(text: str) -> Pending | None:
    """What an agent asks to confirm: "Was that [PIN]?"."""
    marker = _last_marker(text)
    kind = None if marker is None or not text.rstrip().endswith("?") else OPEN.get(marker)
    return None if kind is None else Pending(kind, asked=True)


_SOON = 2
"""Turns after which arbitrary words no longer answer an announcement."""


def _asks_for_it(text: str) -> bool:
    """Whether an agent asks for what another speaker named: "Okay, what is it?"."""
    return "?" in text and len(words_of(text)) <= 8 and _REFERS.search(text) is not None


_TYPED = re.compile(
    r"(?:^|[.,!]\s*)(?:and\s+)?what\s+(?:are|were|did|do|have)\s+you\s+(?:been\s+)?(?:typ|enter)\w*"
    r"(?:\s+(?:in|it|there|exactly|now|for\s+(?:it|that)))*\s*\?$",
    re.IGNORECASE,
)
"""A question for what a speaker enters where a secret belongs."""
_OFFERS = re.compile(
    r"(?:^|[.!?,]\s+)(?:(?:so|okay|ok|well|and|then)\s+)?(?:(?:can|could|may|shall|should)\s+i|let\s+me|i'll|i\s+can"
    r"|(?:do\s+you\s+(?:want|need)|would\s+you\s+like)(?:\s+me\s+to)?)\s+(?:just\s+)?(?:(?:give|tell|read)\s+(?:out\s+)?"
    r"(?:you\s+)?)?(?:my|the)\s+(?P<what>[\w\s-]{1,40}?)(?:\s+(?:now|then|here|instead|please|if\s+you\s+like|over\s+the"
    r"\s+phone))*\W*$",
    re.IGNORECASE,
)
"""An offer of one thing, at the end of a turn."""
_PAYS_BY_CARD = re.compile(
    r"\bpay(?:ing)?\b.{0,20}\b(?:by|with|on)\s+(?:(?:my|a|credit|debit)\s+){0,3}card\W*(?:please\W*)?$",
    re.IGNORECASE,
)
_READY = re.compile(r"\b(?:ready|go\s+ahead|read)\b", re.IGNORECASE)


def _offered(text: str, answer: str) -> Pending | None:
    """What a speaker offers, and an agent wants: "Can I give you my card number?", "Go ahead."."""
    text = text[-_READ:]
    if _PAYS_BY_CARD.search(text):
        return Pending("card", asked=False) if _READY.search(answer) else None
    offer = _OFFERS.search(text)
    if offer is None:
        return None
    for label in LABELS:
        cue = label.cue.search(text, offer.start("what"))
        if cue is not None and cue.end() >= offer.end("what") and not harmless(label, cue, text):
            return Pending(label.kind, asked=True)
    return None


_KEEPING = re.compile(
    r"\b(?:remember|save|store|note|keep|give|update|set|add|write|take|tell|read|have)\b", re.IGNORECASE
)


def _mentioned(text: str) -> Pending | None:
    """What a speaker speaks of, and has not said yet."""
    if MARKER.search(text):
        return None
    kinds = [
        label.kind
        for label in LABELS
        if any(not harmless(label, cue, text) for cue in label.cue.finditer(text))
    ]
    return Pending(kinds[0], asked=True, others=frozenset(kinds[1:])) if kinds else None


def asked_for(text: str) -> Pending | None:
    """The secret that an agent asks for in `text`; None without one."""
    if not _ASKS.search(text):
        text = text[-_READ:]
        if not _sends_code(text):
            return None
    text = MARKER.sub(" ", text)
    # the last or last but one sentence decides: "Thanks. And the PIN? Take your time."
    refers = False
    sentences = re.split(r"(?<=[.?!])\s+", text.strip())[-4:]
    for place in range(len(sentences) - 1, max(-1, len(sentences) - 4), -1):
        sentence = sentences[place]
        if _NO_REQUEST.search(sentence) and not re.search(
            r"\b(?:old|current|new)\s+(?:pin|password)", sentence
        ):
            continue
        asked = list(_asked_in(sentence))
        if asked and (refers or _ASKS.search(sentence) or _sends_code(sentence)):
            in_part = _IN_PART.search(sentence[-_READ:]) is not None
            return Pending(asked[0], asked=True, others=frozenset(asked[1:]), in_part=in_part)
        if _ASKS.search(sentence) and _REFERS.search(sentence):
            refers = True
        elif "?" in sentence and not encourages(sentence):
            return _announced(" ".join(sentences[max(0, place - 1) : place]), sentence)
    return None


_SENT_CODE = re.compile(
    r"\b(?:sent|texted|emailed|messaged|sending|texting|emailing)\s+you\s+(?:an?|the|another)\s+(?:[\w-]+\s+){0,3}code\b",
    re.IGNORECASE,
)


def _sends_code(text: str) -> bool:
    """Whether an agent sent a code that it now waits for, and not one that anybody may know: a QR code."""
    sent = _SENT_CODE.search(text)
    return sent is not None and any(map(is_plain_code, CODE.finditer(text, *sent.span())))


_ANNOUNCES_QUESTION = re.compile(
    r"\b(?:(?:an?|one|another|more|some|few|couple\s+of|next|first|second|last|final|quick|your)\s+)security\s+questions?\b"
    r"(?!\s+(?:policy|page|form|feature|team|option))",
    re.IGNORECASE,
)
_NOT_ANNOUNCED = re.compile(
    r"\b(?:thank\w*|sorry|passed|done|was|were|answered|finished|no|not|don't|set|reset|change|with\s+an?|that's)\b",
    re.IGNORECASE,
)
"""Words of one that speaks of security questions and asks none."""
_OF_LIFE = re.compile(
    r"\b(?:favou?rite|school|college|pet|teacher|grow\s+up|grew|born|mother|father|grand\w+|parents?|brother|sister|maiden"
    r"|nickname|childhood|best\s+friend|honeymoon|met|meet|(?:your|the|was|were|of)\s+first|first\s+(?:car|job|street|house))\b",
    re.IGNORECASE,
)
"""What security questions ask for."""
_PERSONAL = re.compile(
    r"\b(?:(?:first|last|full|your|sur|the)\s*name(?!\s+of)|address|post\s?code|zip|phone|mobile|e-?mail|when\s+were\s+you|date"
    r"|birthday)\b",
    re.IGNORECASE,
)
"""Data that is kept whatever it is asked for."""


def _announced(before: str, question: str) -> Pending | None:
    """The answer to what is said to be for security: "Just a security question. Which school?"."""
    place = max(0, len(before) - _READ)
    words = f"{before[place:]} {question[:_READ]}"
    announces = _ANNOUNCES_QUESTION.search(words) is not None and not _NOT_ANNOUNCED.search(before, place)
    personal = _PERSONAL.search(question[-_READ:]) is not None
    return (
        Pending("security answer", asked=True)
        if announces and not personal and _OF_LIFE.search(question[-_READ:])
        else None
    )


_INVITES = re.compile(
    r"\b(?:go\s+ahead|carry\s+on|fire\s+away)\s+with\b|\bready\s+(?:with|for)\b|\bread\s+(?:out|me)\b",
    re.IGNORECASE,
)
"""How an agent asks for a card to be read out."""
_REFERS = re.compile(r"\b(?:it|that|this|them|those|these|one)\b", re.IGNORECASE)


def _asked_in(sentence: str) -> Iterator[Secret]:
    found: list[tuple[int, Secret]] = []
    invited = _INVITES.search(sentence) is not None and not OTHER_NUMBER.search(sentence)
    for label in LABELS:
        for cue in label.cue.finditer(sentence):
            bare = (
                label.kind in {"card", "account number"}
                and not NAMES_NUMBER.search(cue[0])
                and "number" not in sentence
                and "detail" not in sentence
                and not invited
            )
            if not harmless(label, cue, sentence) and not bare:
                found.append((cue.start(), label.kind))
                break
    if (back := _ASKED_BACK.search(sentence)) is not None:
        found.append((back.start(), "security code"))
    if (long := _ASKED_LONG.search(sentence)) is not None:
        found.append((long.start(), "card"))
    if (answer := _ASKED_ANSWER.search(sentence)) is not None:
        found.append((answer.start(), "security answer"))
    if not found and not OTHER_NUMBER.search(sentence) and (code := _ASKED_CODE.search(sentence)) is not None:
        found.append((code.start(), "one-time code"))
    yield from (kind for _, kind in sorted(found, key=lambda each: each[0]))


def encourages(text: str) -> bool:
    """Whether an agent's words only encourage the speaker, or read back what was said."""
    words = words_of(MARKER.sub(" ", text))
    return len(words) <= 12 and all(word in ENCOURAGES or is_bare(word) for word in words)


def _last_marker(text: str) -> str | None:
    """The marker at the end of a turn, with few words after it."""
    markers = list(MARKER.finditer(text))
    if not markers:
        return None
    last = markers[-1]
    behind = words_of(text[last.end() :])
    return last[0] if len(behind) <= 4 and not any(word in {"thanks", "bye"} for word in behind) else None


_DANGLES = re.compile(
    r"(?:\s*(?:numbers?|code))?(?:\s+(?:for|to|of|on|at|that|you|i)\b(?:\s+[\w'-]+){0,6}?)?"
    r"(?:\s*(?:\bis|\bwas|'s|:|\bit's|\bare)(?:\s*(?:um|uh|er|hmm|like|let me see|it's|okay|so))*"
    r"|,?\s*(?:um|uh|it's))?[\s.,:?\u2026-]*$",
    re.IGNORECASE,
)
_STARTS = re.compile(r"\b(?:my|the|that|your|our|here's|here\s+is|and|remember)\b", re.IGNORECASE)
_VERBS_AT_END = re.compile(r"(?:\bis|\bwas|'s|:|\bare|\bum|\buh|\bit's|\bsee)[\s.,:\u2026-]*$", re.IGNORECASE)


def _dangling(text: str) -> Secret | None:
    """What is announced at the end of `text` and not said yet: "my card number is"."""
    if not _VERBS_AT_END.search(text) and len(words_of(text)) > 5:
        return None
    if text.rstrip().endswith("?") or not (_VERBS_AT_END.search(text) or _STARTS.search(text)):
        return None
    if re.search(
        r"\b(?:what|where|how|forgot|forget|don't|lost|need|change|reset|want)\b", text, re.IGNORECASE
    ):
        return None
    for label in LABELS:
        for cue in label.cue.finditer(text):
            if not harmless(label, cue, text) and _DANGLES.match(text, cue.end()):
                return label.kind
    if re.search(r"\b(?:my|the|that)\s+code\b(?:\s+is)?[\s.,:]*$", text, re.IGNORECASE):
        return "one-time code"
    return None


@dataclass(frozen=True, slots=True)
class InTurn:
    """A masked turn, and its consequences for earlier ones."""

    masked: Masked
    earlier: dict[int, Masked]
    """By index in the context: turns that turn out to contain a part of a secret."""


def mask_turn(said: Said, before: Sequence[Said], *, known: Iterable[Known] = ()) -> InTurn:
    """`said` without its secrets.

    `before` are the turns before it, oldest first, as stored; `known` are secrets masked earlier in this
    process, which are masked wherever they are repeated.
    """
    known = tuple(known)
    by_itself = mask(said.text, known=known)
    if any(MARKER.search(one.text) for one in before[-_SOON:]):
        by_itself = _together(by_itself, apply(by_itself.text, lambda text: _said_again(text, known)))
    rest = _together(by_itself, apply(by_itself.text, lambda text: _expected(text, said, before)))
    if (place := _taken_back(said, before)) is not None and (said.speaker == "agent" or not rest.found):
        told = _regretted(before[place].text, before[:place])
        if told.found:
            return InTurn(rest, {place: told})
    if rest.found:
        return InTurn(rest, {})
    return _over_turns(said, before) or InTurn(rest, {})


def _taken_back(said: Said, before: Sequence[Said]) -> int | None:
    """The caller's turn that the agent now declines, or the caller regrets."""
    of_user = [place for place in range(len(before)) if before[place].speaker != "agent"]
    if said.speaker == "agent":
        declined = of_user[-1:] == [len(before) - 1] and DECLINES.search(said.text)
        return of_user[-1] if of_user and declined else None
    return of_user[-1] if of_user and of_user[-1] >= len(before) - 2 and REGRETS.search(said.text) else None


def _said_again(text: str, known: Iterable[Known]) -> Iterator[SecretSpan]:
    """Single words that were a secret a moment ago, and are repeated."""
    for one in known:
        if one.word:
            for place in re.finditer(rf"(?<!\w){re.escape(one.word)}(?!\w)", text, re.IGNORECASE):
                yield SecretSpan(one.kind, *place.span(), one.value)


def leans_on_context(said: Said) -> bool:
    """Whether the turns before can change the meaning of `said`: it is short enough, or has a number."""
    return any((len(said.text) <= 400, _NUMBERED.search(said.text), DECLINES.search(said.text)))


_NUMBERED = re.compile(
    r"\d|\b(?:zero|oh|one|two|three|four|five|six|seven|eight|nine|ten|double|triple)\b", re.IGNORECASE
)


def _together(first: Masked, second: Masked) -> Masked:
    """Both results for one text; `second` was found in the text that `first` left."""
    if not second.found:
        return first
    if not first.found:
        return second
    return Masked(second.text, (*first.found, *second.found))


# -- what was expected

_LEAD = re.compile(
    r"""(?:\s*(?:um+|uh+|er+m?|hmm|yeah|yes|yep|sure|okay|ok|of\s+course|so|well|right|it's|its|it\s+is|that's|thats
    |that\s+is|it\s+would\s+be|that\s+would\s+be|should\s+be|it\s+should\s+be|i\s+think(?:\s+it's)?|i\s+believe(?:\s+it's)?
    |let\s+me\s+(?:see|think|remember)|hang\s+on|here\s+you\s+go|here\s+it\s+is|the\s+password\s+is|the\s+answer\s+is|my\s+password\s+is
    |oh|ah|alright|one\s+second|one\s+sec|her\s+maiden\s+name\s+(?:is|was)|her\s+name\s+(?:is|was)|she\s+was|it\s+was
    |he\s+was(?:\s+called)?|called|no\s+problem|absolutely|certainly|(?:then|try)(?=\s+it)|the\s+name\s+(?:is|was)|that\s+was(?:\s+called)?)\b[\s,.:;\u2026-]*)*""",
    re.IGNORECASE | re.VERBOSE,
)
_ANSWERS = re.compile(r"\b(?:answer|word)(?:'s|\s+is|\s+was)\s+", re.IGNORECASE)
_REFUSES = frozenset(_LISTS["refuses"].split())


def _expected(text: str, said: Said, before: Sequence[Said]) -> list[SecretSpan]:
    """The secrets in `text` that follow from what was said before it."""
    pending = pending_after(before)
    if said.speaker == "agent":
        found = _read_back(text, before) if _was_told(before) else []
        if pending is not None and (encourages(text) or is_bare(text)):
            found = [*found, *_numbers(text, pending.kind, least=3)]
        return merged(found)
    found = [] if pending is None else _answered(text, pending)
    if REGRETS.search(text):
        found += _regretted(text, before).found
    return merged([*found, *_named(text, before)])


_READING = re.compile(r"\b(?:reading|mileage|miles|bill|total|unit)\b", re.IGNORECASE)


def _named(text: str, before: Sequence[Said]) -> Iterator[SecretSpan]:
    """What is dictated in answer to an agent that named a secret, whether or not it asked for it."""
    if not before or before[-1].speaker != "agent":
        return
    asked = before[-1].text
    yield from (SecretSpan("hidden key", *span, text[slice(*span)]) for span in hidden(text, asked))
    named = topics(blanked(asked))
    if not named and len(before) > 1 and (encourages(asked) or ("?" in asked and len(words_of(asked)) <= 8)):
        named = topics(blanked(before[-2].text))
    if any(topic.kind == "password" for topic in named):
        yield from (SecretSpan("password", *span, text[slice(*span)]) for span in mixed(text))
    sent = any(topic.kind == "one-time code" for topic in named)  # "I've sent a text to your phone"
    if not sent and (OTHER_NUMBER.search(asked) or _READING.search(asked)):
        return
    for view in views_of(text) if named else ():
        for kind, start, end in near(view, text, named):
            yield _found(view, kind, start, end)


def _regretted(text: str, before: Sequence[Said]) -> Masked:
    """`text` without what is dictated in it: a speaker said that it should not be kept."""

    def look(part: str) -> list[SecretSpan]:
        found = [_found(view, *each) for view in views_of(part) for each in read_out(view, part)]
        kinds = {topic.kind for one in (*before[-1:], Said("", part)) for topic in topics(blanked(one.text))}
        if "password" in kinds:
            found += [SecretSpan("password", *span, part[slice(*span)]) for span in mixed(part)]
        if "security answer" in kinds:
            found += [SecretSpan("security answer", *span, part[slice(*span)]) for span in names(part)]
        return found

    return apply(text, look)


def _answered(text: str, pending: Pending) -> list[SecretSpan]:
    """The answer, or the continuation of what was being said."""
    if pending.again and (OTHER_NUMBER.search(text) or _ELSE.match(text)):
        return []
    wanted = {pending.kind, *pending.others}
    bare = is_bare(text)
    corrects = _CORRECTS.match(text) is not None and not OTHER_NUMBER.search(text)
    found: list[SecretSpan] = (
        list(_parts(text, pending.kind)) if pending.in_part and len(text) <= 2 * _READ else []
    )
    numeric = pending.kind if pending.kind not in WORDED else next(iter(wanted - WORDED), pending.kind)
    if pending.asked or bare or corrects:
        found += _numbers(text, numeric, least=1 if bare else _LEAST[numeric])
        if numeric in {"API key", "ID number", "one-time code", "account number"} and not found:
            found += _coded(text, numeric)
    worded = next((kind for kind in (pending.kind, *sorted(pending.others)) if kind in WORDED), None)
    if worded is not None and (pending.asked or (worded == "recovery phrase" and _only_words(text))):
        found += _words_given(text, worded)
    return merged(found)


_ELSE = re.compile(
    r"\W*(?:(?:well|oh|so|and|but|also|by\s+the\s+way)\W+)*(?:my\s+(?!password|pass|pin\b|code|answer|memorable|mother|(?:\w+\s+)?"
    r"(?:pin|password|code)\b)|i(?:'m|\s+am|\s+(?:work|live|have|like|need|want))\b|we(?:'re|\s+\w+)\b)",
    re.IGNORECASE,
)
"""How a caller begins who speaks of something else."""
_PART_ENDS = (
    r"\W*$|\s*[.,;!?]|\s+(?:and|then|for|as|maybe|i\s+(?:think|believe|guess)|the\s+second|(?:the\s+)?(?:third|fourth|fifth"
    r"|sixth|seventh|eighth|ninth|tenth|last|final)|[b-z])\b"
)
_LETTER = re.compile(
    r"(?<![\w'])(?:[b-hj-z]|[ai](?=[^\w\s]*$|[.,;]|\s+(?:for|as|and|i\s+think)\b)|(?:zero|one|two|three|four|five|six|seven"
    rf"|eight|nine)(?={_PART_ENDS}))(?![\w'])(?:\s+(?:for|as\s+in)\s+\w+)?",
    re.IGNORECASE,
)
_PART_OVER = re.compile(_PART_ENDS, re.IGNORECASE)
_AGE = re.compile(r"\b(?:i\s+am|i'm|aged?)\s+$", re.IGNORECASE)


def _parts(text: str, kind: Secret) -> Iterator[SecretSpan]:
    """Single letters and digits: "it's a G", "second is seven"."""
    for view in views_of(text):
        for digits, start, end in runs(view):
            first, last = view.origin(start, end)  # a view may join "eight I" to "8I"
            is_age = _AGE.search(text, max(0, first - 20), first)
            if len(digits) <= 3 and not is_age and _PART_OVER.match(text, last):
                yield _found(view, kind, start, end)
    yield from (SecretSpan(kind, *found.span(), found[0]) for found in _LETTER.finditer(text))
    start = _lead_of(text)
    if len(words := words_of(text[start:])) == 1 and words[0] in values.SPELLED:
        yield SecretSpan(kind, start, len(text.rstrip(" .,!?")), words[0])


_CORRECTS = re.compile(
    r"\W*(?:oh\W+)?(?:no|nope|sorry|wait|actually|correction|i\s+mean|scratch\s+that)\b", re.IGNORECASE
)
"""How speakers begin when they correct what they said."""


def _only_words(text: str) -> bool:
    """Whether only nouns are said, as in recovery words: three words without a "the"."""
    words = words_of(text)
    return len(words) > 2 and STOP.isdisjoint(words) and not ENCOURAGES.issuperset(words)


_LEAST: dict[Secret, int] = {
    "card": 3,
    "security code": 3,
    "PIN": 3,
    "password": 3,
    "security answer": 4,
    "recovery phrase": 4,
    "one-time code": 3,
    "API key": 4,
    "account number": 3,
    "ID number": 3,
}
_NOT_THIS = re.compile(
    r"\b(?:in|since|until|till|by|around|about|only|every|after|before|room|order|flight|year|born|call|phone|extension|"
    r"ending|ends|expir\w*|valid|zip|code\s+is\s+promo)\s+(?:(?:number|is|in|on|with|date|at|of)\s+)*$",
    re.IGNORECASE,
)


def _numbers(text: str, kind: Secret, *, least: int) -> Iterator[SecretSpan]:
    """The numbers of a text that may be a secret of this kind."""
    for view in views_of(text):
        for digits, start, end in runs(view):
            is_other = values.is_amount(view.text, start) or values.UNITS.match(view.text, end)
            if len(digits) < least or is_other or _NOT_THIS.search(view.text, max(0, start - 40), start):
                continue
            yield _found(view, kind, start, end)


def _found(view: View, kind: Secret, start: int, end: int) -> SecretSpan:
    return SecretSpan(kind, *view.origin(start, end), view.text[start:end])


def _coded(text: str, kind: Secret) -> Iterator[SecretSpan]:
    """Letters and digits, spelled or written."""
    for view in views_of(text):
        start = _lead_of(view.text)
        span = values.token(view.text, start) if kind == "API key" else values.document(view.text, start, 2)
        if span is not None:
            yield _found(view, kind, *span)


def _lead_of(text: str) -> int:
    found = _LEAD.match(text)
    return found.end() if found else 0


def _words_given(text: str, kind: Secret) -> Iterator[SecretSpan]:
    """The whole of a short answer, unless it is a refusal or a question."""
    said = _ANSWERS.search(text)
    start = said.end() if said else _lead_of(text)
    rest = text[start:].strip()
    quoted = values.quoted(text, start) or values.no_word(text, start)
    if quoted is not None:
        yield SecretSpan(kind, *quoted, text[slice(*quoted)])
    words = words_of(rest)
    most = 24 if kind == "recovery phrase" else 8
    if not words or len(words) > most + 12 or "]" in rest or rest.endswith("?"):
        return
    if _REFUSES & set(words[:6]) or (len(words) == 1 and words[0] in STOP | ENCOURAGES | WAITS):
        return
    if kind == "security answer":
        yield from (SecretSpan(kind, *span, text[slice(*span)]) for span in names(text))
        article = _ARTICLE.match(text, start)
        start = start if article is None else article.end()
    span = values.phrase(text, start, most=most, strict=kind == "password" and len(words) < 3)
    if span is None or all(word in ENCOURAGES | WAITS for word in words):
        return
    value = text[slice(*span)]
    for again in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE):
        yield SecretSpan(kind, *again.span(), value)
    for other in _OR.finditer(text, span[1]):
        if (more := values.phrase(text, other.end(), most=most)) is not None:
            yield SecretSpan(kind, *more, text[slice(*more)])


_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
_OR = re.compile(
    r"\b(?:or|but|no|wait|sorry|actually)\b[\s,]*(?:(?:it|that)(?:'s|\s+(?:is|was|might\s+be|may\s+be|could\s+be))"
    r"|maybe|perhaps|possibly)\s+",
    re.IGNORECASE,
)
"""Introduces another answer of a speaker who is unsure or corrects the first."""


# -- what the agent reads back

_READS = re.compile(
    r"(?:^|\b(?:that's|that\s+is|have|got|heard|confirm|repeat|read|say|said|so|okay|ok|right|correct|is|was|note|noted)\b|[,.:;-])\s*(?:that|as|it|you|the|:|,|\s)*$",
    re.IGNORECASE,
)


def _was_told(before: Sequence[Said]) -> bool:
    told = [said for said in before[-3:] if said.speaker != "agent"]
    return bool(told) and MARKER.search(told[-1].text) is not None


def _read_back(text: str, before: Sequence[Said]) -> list[SecretSpan]:
    told = next(said.text for said in reversed(before) if said.speaker != "agent")
    marker = [found[0] for found in MARKER.finditer(told)][-1]
    kind = OPEN.get(marker) or ("card" if marker.startswith("[card") else None)
    if kind is None or OTHER_NUMBER.search(text):
        return []
    found = [
        each
        for each in _numbers(text, kind, least=3)
        if not is_scaled(text[each.start : each.end])
        and _READS.search(text, max(0, each.start - 24), each.start)
        and re.search(
            r"\b(?:end(?:s|ing)|last\s+four)\b", text[max(0, each.start - 30) : each.start], re.IGNORECASE
        )
        is None
    ]
    return merged(found)


# -- what nobody announced: a card in pieces


def _over_turns(said: Said, before: Sequence[Said]) -> InTurn | None:
    """A card that its check digits reveal only with its last part."""
    if said.speaker == "agent" or not is_bare(said.text):
        return None
    pieces: list[tuple[int, Said]] = []
    for place in range(len(before) - 1, max(-1, len(before) - 1 - CONTEXT), -1):
        one = before[place]
        if one.speaker == "agent":
            if not encourages(one.text):
                break
            if not is_bare(one.text):
                continue
        elif not is_bare(one.text):
            break
        pieces.insert(0, (place, one))
    own = [(place, one) for place, one in pieces if one.speaker != "agent"]
    for first in range(len(own)):
        digits = "".join(_digits(one.text) for _, one in own[first:]) + _digits(said.text)
        if is_card(digits):
            since = own[first][0]
            earlier = {place: _all_numbers(one.text) for place, one in pieces if place >= since}
            return InTurn(_all_numbers(said.text), earlier)
    return None


def _digits(text: str) -> str:
    view = views_of(blanked(text))[-1]
    return "".join(digits for digits, _, _ in runs(view))


def _all_numbers(text: str) -> Masked:
    found = merged(_numbers(text, "card", least=1))
    return Masked(replaced(text, found), tuple(found))
