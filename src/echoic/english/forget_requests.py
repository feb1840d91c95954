"""Requests to forget, in any wording: "rub that out", "what I told you about …".

A sentence is a request only if it is a command or states a wish about what is stored. Verbs with many other
uses ("take it out", "cancel that") count only with a sign that memory is meant: what was said or told, a
file, a book, something private. "I forget his name", "don't forget …" and a bare "forget it" are no requests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from echoic.english.lexicon import MONTHS, pattern, source, table

Span = tuple[int, int]

SENTENCE: Final = re.compile(r"[^.!?…;\n]+[.!?…;]*")
_MAX_CHARACTERS: Final = 2000
"""Characters of an utterance that are read: requests are short."""

# -- where an order may begin: a sentence, what follows a comma, and words that lead up to it
_SEPARATED: Final = pattern("requests.separated")
_OUT: Final = re.compile(r"\b(?:out|off|away)\b")
_NEEDS_OUT: Final = frozenset({"take", "cut", "leave", "edit", "toss"})
_PUT_OUT: Final = re.compile(rf"\b(?:out|off|away){source('requests.after')}|\b{source('requests.place')}")
_ORDER: Final = pattern("requests.order")
_SIDE_ORDER: Final = pattern("requests.side_order")
_NOT_KEEP: Final = pattern("requests.not_keep")
_COULD_NOT: Final = pattern("requests.could_not")
_UNWANTED: Final = pattern("requests.unwanted")
_WANTED_WIPED: Final = pattern("requests.wanted_wiped")
_WANTED_GONE: Final = pattern("requests.wanted_gone")
_YOU_TO_KEEP: Final = pattern("requests.you_to_keep")
_SHOULD_NOT: Final = pattern("requests.should_not")
_MUST_NOT: Final = pattern("requests.must_not")
_LAST_PART: Final = pattern("requests.last_part")
# -- what shows that memory is meant
_TOLD: Final = pattern("requests.told")
_RECORDS: Final = pattern("requests.records")
_PRIVATE: Final = pattern("requests.private")
_REGRET: Final = pattern("requests.regret")
_SCRATCH: Final = re.compile(
    # "the phone rings, ignore that" is no request
    r"^(?:(?:please|oh|no|wait|sorry|actually|and|so|well|ok|okay|just|(?:can|could|would|will) you)[, ]+)*"
    rf"{source('requests.scratch')}(?:, (?:please|thanks))?$"
)
_WHAT_WAS_SAID: Final = re.compile(rf"\bwhat {source('requests.i_said')}\b")
_CALL: Final = re.compile(
    rf"^\s*(?:of |about )?{source('requests.call')}(?:{source('requests.after')}|{source('requests.then')})"
)
_WHOLE_CALL: Final = re.compile(rf"\b{source('requests.call')}\b")
_ALL_SAID: Final = re.compile(rf"\b{source('requests.said')}\b")
_PLACE: Final = re.compile(rf"\b{source('requests.place')}")
_INFORMATION: Final = pattern("requests.information")
_CLAUSE: Final = pattern("requests.clause")
_LAST: Final = pattern("requests.last")
_JUST_SAID: Final = pattern("requests.just_said")
_AHEAD: Final = pattern("requests.ahead")
_OFF_NEXT: Final = pattern("requests.off_next")
_HESITATION: Final = pattern("requests.hesitation")
_OWN: Final = pattern("requests.own")
_OWNED: Final = pattern("requests.owned")
_NAMED_BEFORE: Final = pattern("requests.named_before")
# -- what is no request
_NOT_MEANT: Final = pattern("requests.not_meant")
_EVERYTHING: Final = pattern("requests.everything")
_KEEPS: Final = pattern("requests.keeps")
_FRAGMENT: Final = pattern("requests.fragment")
_FRAGMENT_WORDS: Final = 7
"""The most words of a sentence after a request that names its object again ("All about the bishop.")."""
_VOCATIVE: Final = pattern("requests.vocative")
_MONTH: Final = pattern("requests.month")
_FAR: Final = pattern("requests.far")


_NAMES_IT: Final = pattern("requests.names_it")


_CALL_UNKEPT: Final = pattern("requests.call_unkept")
_FROM_NOW: Final = pattern("requests.from_now")
_NOTHING_MORE: Final = pattern("requests.nothing_more")
_STOP_KEEPING: Final = pattern("requests.stop_keeping")
_CALL_REPORTED: Final = pattern("requests.call_reported")
_CALL_ASKED: Final = pattern("requests.call_asked")
_CALL_FORGOTTEN: Final = pattern("requests.call_forgotten")
_CALL_KEPT: Final = pattern("requests.call_kept")
_CALL_KEPT_NOT: Final = pattern("requests.call_kept_not")
_ASKS_TO_REMEMBER: Final = pattern("requests.asks_to_remember")
_SAYS_YES: Final = pattern("requests.says_yes")
_SAYS_NO: Final = pattern("requests.says_no")
_SAYS_NO_LATER: Final = pattern("requests.says_no_later")
_NO_OBJECTION: Final = pattern("requests.no_objection")
_GOES_AHEAD: Final = pattern("requests.goes_ahead")
_UNDECIDED: Final = re.compile(r"\b(?:but|unless|if|maybe|not sure|let me|wait|why|what for)\b|n't know")
_POINTED: Final = pattern("requests.pointed")
_UNNAMED: Final = re.compile(r"(?:what|anything|any of|the (?:call|conversation|chat))\b")
_OF_MEMORY: Final = frozenset({"erase", "expunge", "redact", "unlearn", "unremember", "unhear", "unsay"})
"""Verbs that are used of memory only."""
_STRONG: Final = pattern("requests.strong")
_POINTING: Final = re.compile(rf"\b{source('requests.that')}\b|\bi (?:ever )?(?:said|spoke)\b")


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A request to forget in one utterance."""

    asking: tuple[Span, ...]
    """The sentences that ask."""
    topic: tuple[str, ...]
    """Sentences that name the object, and those that ask."""
    nearby: tuple[str, ...]
    """Sentences directly before, which may name it."""
    spared: str
    """What the user wants to keep, in their words."""
    before: tuple[Span, ...]
    """Sentences before the request in the same utterance that it may refer to."""
    points_back: bool
    """Whether its object is a pronoun: "that", "it"."""
    far: bool
    """Whether it refers to something said at another time."""
    months: tuple[int, ...]
    """Months it was said in, as numbers."""
    ahead: bool = False
    """Whether it refers to what is said next."""
    named_before: bool = False
    """Whether it names its object and then refers to it: "about my landlord, forget that"."""
    of_all: Literal["call", "call before", "said"] | None = None
    """Whether its object may be all of a call, or all that was said at a time: if `beside` names no other."""
    beside: str = ""
    """The words of `topic` without that object, but with its time."""


def asks_off_the_record(text: str) -> bool:
    """Whether `text` asks not to keep the call: "don't remember this call"."""
    return any(_unkept(said[0]) for said in SENTENCE.finditer(text[:_MAX_CHARACTERS]))


def asks_to_keep_no_more(text: str) -> bool:
    """Whether `text` asks not to keep what is said after it in the call: "off the record from now on"."""
    return any(_unkept_ahead(said[0]) for said in SENTENCE.finditer(text[:_MAX_CHARACTERS]))


def _unkept_ahead(said: str) -> bool:
    low = _low(said)
    if said.rstrip().endswith("?") and _CALL_ASKED.search(low) is None:
        return False
    if _STOP_KEEPING.search(low):
        return True
    # all of the sentence must say so: "from now on don't save any for me" is about something else
    rest, found = _FROM_NOW.subn(" ", low)
    return bool(found) and _NOTHING_MORE.fullmatch(_flat(rest)) is not None


def _unkept(said: str) -> bool:
    low = _low(said)
    found = _CALL_UNKEPT.search(low)
    # "my lawyer says this call is off the record", "I never said so" and "if I don't want …" ask nothing
    if found is None or _CALL_REPORTED.search(low[: found.start()]):
        return False
    if _NOT_MEANT.search(low) or _CALL_FORGOTTEN.search(low):
        return False
    # "So you don't want this call recorded?" only asks what is wanted
    return not said.rstrip().endswith("?") or _CALL_ASKED.search(low) is not None


def answers_to_remember(text: str, question: str = "") -> bool | None:
    """Whether `text` says that the call may be kept ("you may remember this call") or not; None if it is
    unclear.

    After the agent's `question` for it, "yes" and "no" are answers too.
    """
    sentences = [sentence[0] for sentence in SENTENCE.finditer(text[:_MAX_CHARACTERS])]
    if any(_kept(sentence) for sentence in sentences):
        return True
    said = [low for low in map(_low, sentences) if low]
    asked = [sentence[0].strip() for sentence in SENTENCE.finditer(question[-_MAX_CHARACTERS:])]
    asked = [sentence for sentence in asked if sentence]
    if not said or not asked or not _ASKS_TO_REMEMBER.search(_low(asked[-1])):
        return None
    if text.rstrip().endswith("?") or any(_UNDECIDED.search(low) for low in said):
        return None
    ahead = any(_GOES_AHEAD.search(low) for low in said)
    if (yes := _SAYS_YES.match(said[0])) is not None:
        # "Okay, no." and "Alright. I'd rather you didn't." begin like a yes
        no = _SAYS_NO_LATER.search(said[0], yes.end()) or any(_SAYS_NO.match(low) for low in said[1:])
        return None if no else True
    if ahead and _NO_OBJECTION.match(said[0]):
        return True
    return False if _SAYS_NO.match(said[0]) and not ahead else None


def _kept(said: str) -> bool:
    low = _low(said)
    found = _CALL_KEPT.search(low)
    if found is None or said.rstrip().endswith("?") or "n't" in low or _NOT_MEANT.search(low):
        return False
    return _CALL_KEPT_NOT.search(low[: found.start()]) is None


def forget_request(text: str) -> ForgetRequest | None:
    """The request to forget in `text`; None without one, or if it is to forget everything."""
    text = text[:_MAX_CHARACTERS]
    if not _MAY_ASK.search(text.lower()):
        return None
    spans = [(m.start(), m.end()) for m in SENTENCE.finditer(text) if m.group().strip()]
    lows = [_low(text[first:last]) for first, last in spans]
    whole = " . ".join(lows)
    if _EVERYTHING.search(whole):
        return None
    asked = [at for at, low in enumerate(lows) if _asks(low, whole)]
    if not asked:
        return None
    return _read(text, spans, lows, asked)


def _read(text: str, spans: list[Span], lows: list[str], asked: list[int]) -> ForgetRequest:
    first = asked[0]
    names = set(_VOCATIVE.findall(text))
    last = any(_JUST_SAID.search(lows[at]) for at in asked)
    points = last or all(_points(lows[at]) for at in asked)
    topic: list[str] = []
    nearby: list[str] = []
    spared: list[str] = []
    for at in range(len(lows)):
        said = text[spans[at][0] : spans[at][1]]
        if at in asked or (at < first and first - at <= _BEFORE) or (at > first and _names_again(lows[at])):
            wanted, kept = _divided(said)
            names_it = at >= first or (_NAMES_IT.search(lows[at]) and first - at <= _BEFORE)
            (topic if names_it else nearby).extend([wanted] if wanted else [])
            spared += kept
        elif _KEEPS.search(lows[at]):
            spared.append(said)
    near = range(max(0, first - _BEFORE), first)
    whole = " . ".join(lows)
    # "you don't remember this call?" and "tell nobody of this call, and wipe the log" erase none
    orders = [found["object"] for at in asked for found in _ORDER.finditer(lows[at])]
    of_call = any(_CALL.match(what) for what in orders)
    of_all, beside = _all_of(" . ".join(_low(_without(said, names)) for said in topic), of_call=of_call)
    return ForgetRequest(
        asking=tuple(spans[at] for at in asked),
        topic=tuple(_without(said, names) for said in topic),
        nearby=tuple(_without(said, names) for said in nearby),
        spared=" ".join(spared),
        before=tuple(spans[at] for at in near),
        points_back=points,
        far=not last and bool(_MONTH.search(whole) or _FAR.search(whole)),
        named_before=any(_NAMED_BEFORE.match(lows[at]) for at in asked),
        ahead=any(_AHEAD.search(lows[at]) or _goes_off_the_record(lows[at]) for at in asked),
        months=tuple(sorted({MONTHS.index(name) + 1 for name in _MONTH.findall(whole)})),
        of_all=of_all,
        beside=beside,
    )


def _all_of(topic: str, *, of_call: bool) -> tuple[Literal["call", "call before", "said"] | None, str]:
    """What `topic` (lower case) may want all of, and the words beside it; `of_call`: it erases a call."""
    call = _WHOLE_CALL.search(topic) if of_call else None
    found = call or _ALL_SAID.search(topic)
    if found is None:
        return None, topic
    what: Literal["call", "call before", "said"] = "said"
    if call is not None:
        what = "call before" if call["before"] else "call"
    day = call["day"] or "" if call is not None else ""
    return what, _PLACE.sub(" ", f"{topic[: found.start()]} {day} {topic[found.end() :]}")


def _names_again(low: str) -> bool:
    return len(low.split()) <= _FRAGMENT_WORDS and _FRAGMENT.match(low) is not None


_BEFORE: Final = 3
"""Sentences before a request that may name its object."""
_MAY_ASK: Final = pattern("requests.may_ask")


def _low(said: str) -> str:
    low = re.sub(r"\s+", " ", _HESITATION.sub("", said.lower().replace("’", "'"))).strip(" .!?…;\"'“”")
    low = _UNWRITTEN.sub(lambda found: _CONTRACTIONS[found[0]], low)
    return _MIND.sub(lambda found: f"please {_PLAIN[found['verb']]}", low)


_PLAIN: Final = table("requests.plain")
_MIND: Final = pattern("requests.mind")
_CONTRACTIONS: Final = table("sentences.contractions")
_UNWRITTEN: Final = re.compile(rf"\b(?:{'|'.join(_CONTRACTIONS)})\b(?!['’])")


def _goes_off_the_record(low: str) -> bool:
    """Whether a sentence says only that what comes next is off the record: "off the record, please"."""
    return _OFF_NEXT.fullmatch(_flat(low)) is not None


def _flat(low: str) -> str:
    return " ".join(low.replace(",", " ").split())


def _asks(low: str, whole: str) -> bool:
    """Whether a sentence asks to forget; `whole` is the whole utterance."""
    if _NOT_MEANT.search(low):
        return False
    # "I told you, cancel it" is about an order: verbs with other uses need a file, a secret or a regret
    noted = any(sign.search(whole) for sign in (_RECORDS, _PRIVATE, _REGRET))
    memory = noted or _TOLD.search(whole) is not None
    if _goes_off_the_record(low) or any(
        pattern.search(low) for pattern in (_SCRATCH, _COULD_NOT, _UNWANTED, _WANTED_WIPED, _YOU_TO_KEEP)
    ):
        return True
    if memory and any(pattern.search(low) for pattern in (_WANTED_GONE, _SHOULD_NOT, _MUST_NOT)):
        return True
    if (kept := _NOT_KEEP.search(low)) is not None:
        return _not_to_keep(kept, low, memory=memory)
    if (parted := _SEPARATED.search(low)) is not None:
        what = f" {parted['object']}"
        if memory or any(meant.search(what) for meant in (_LAST, _INFORMATION, _CLAUSE)):
            return True
    orders = [found for pattern in (_ORDER, _SIDE_ORDER) for found in pattern.finditer(low)]
    return any(_is_order(found["verb"], found["object"], low, memory=memory, noted=noted) for found in orders)


def _not_to_keep(found: re.Match[str], low: str, *, memory: bool) -> bool:
    """Whether "don't keep …" is about memory."""
    if found["held"]:
        return True
    lead, what = low[: found.start("object")], low[found.start("object") :]
    # "(I) don't remember the number" only says that one does not
    if found["verb"] == "remember" and not re.search(r"\b(?:please|you)\b", lead):
        if lead.startswith(("sorry", "honestly")):
            return False
        if re.match(r"(?:it|the|my|his|her|their|our)\b", what) and not _AHEAD.search(low):
            return False
    if memory or _POINTED.match(what):
        return True
    named = _UNNAMED.match(what) or _INFORMATION.search(what) or _OWNED.match(f" {what}")
    return "keep" not in found["verb"] and named is not None


def _is_order(verb: str, what: str, low: str, *, memory: bool, noted: bool) -> bool:
    if verb == "forget":
        return _forgets(what, memory=memory, led=bool(_NAMED_BEFORE.match(low)))
    if verb in _NEEDS_OUT and not _OUT.search(low):
        return False
    own, pointed, clause = bool(_OWN.match(what)), bool(_LAST.match(what)), bool(_CLAUSE.match(what))
    known = own and bool(_INFORMATION.search(what))
    call = bool(_CALL.match(what))
    # "cancel what I said, make it two" changes an order, and so does "take what I said off the order"
    said = (pointed or clause) and _WHAT_WAS_SAID.search(low) is not None
    if said and verb != "cancel" and (verb not in _NEEDS_OUT or _PUT_OUT.search(low)):
        return True
    of_memory = verb in _OF_MEMORY or verb.endswith((" out", " off"))
    if of_memory or _STRONG.fullmatch(verb):
        return known or pointed or clause or call or memory or (of_memory and bool(_JUST_SAID.search(low)))
    if verb in {"delete", "remove", "scrap", "purge"} or verb.startswith("get rid"):
        return known or clause or call or noted or (memory and pointed)
    return ((known or bool(_LAST_PART.match(what))) and verb in {"bin", "lose"}) or (
        noted and (pointed or (own and verb != "cancel") or not what.strip(" ,"))
    )


def _forgets(what: str, *, memory: bool, led: bool) -> bool:
    bare = what.strip(" ,")
    if re.match(r"(?:about )?it\b", bare) or not bare:
        return memory or led
    if re.match(r"of (?:the|my|that|what|him|her|his)\b", bare):
        return True
    if _CALL.match(what) or (_OWN.match(what) and (memory or _INFORMATION.search(what))):
        return True
    return bool(
        _LAST.match(what)
        or _CLAUSE.match(what)
        or _OWNED.match(what)
        or re.match(r"(?:he|she|they|we|i|you) ", bare)
    )


def _points(low: str) -> bool:
    """Whether a request refers to its object by a pronoun."""
    return _POINTING.search(low) is not None


def _divided(said: str) -> tuple[str, list[str]]:
    """The part of a sentence that says what to forget, and the parts that say what to keep."""
    parts = re.split(r"(?<=[,;—–])\s+", said)
    kept = [part for part in parts if _KEEPS.search(_low(part)) and not _asks_in(part)]
    return " ".join(part for part in parts if part not in kept), kept


def _asks_in(part: str) -> bool:
    return bool(re.search(r"n't\b|\b(?:not|never|forget|delete|erase|out|off)\b", _low(part)))


def _without(said: str, names: set[str]) -> str:
    """`said` without the names of the person addressed."""
    for name in names:
        said = re.sub(rf"(?:(?<=,)|(?<=^))\s*{re.escape(name)}\s*(?=[,.!?…]|$)", " ", said)
    return said.strip()
