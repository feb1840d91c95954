"""What a speaker asks to have forgotten, however it is put: "rub that out", "what I told you about …". Pure.

A request is read only where the sentence gives an order or states a wish about what is kept. Verbs that
people use for much else ("take it out", "cancel that") count only beside a sign that memory is meant: what
was said or told, a file, a book, something private. "I forget his name", "don't forget …" and a bare "forget
it" ask nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

Span = tuple[int, int]

_SENTENCE: Final = re.compile(r"[^.!?…;\n]+[.!?…;]*")
_MAX_CHARACTERS: Final = 2000
"""Of an utterance that are looked at: requests are short."""

# -- where an order may begin: a sentence, what follows a comma, and words that lead up to it
_LEAD: Final = (
    r"(?:^|[,:—–-]\s*|\b(?:please|kindly|just|and|but|so|then|now|also|ok|okay|no|yes|yeah|oh|actually|"
    r"seriously|"
    r"maybe|well|sorry|properly|you can|you may|you should|you must|you could|let's|"
    r"(?:can|could|would|will|may) you(?: all)?(?: please| just| also| kindly)*|i wish you to|"
    r"i (?:want|need|wish|would like|would love|beg|ask)(?: for)? you to|i'd (?:like|love|prefer) you "
    r"to)\s+)"
    r"(?:please |just |kindly |also |now |then |you )*"
)
_THAT: Final = r"(?:it|that|this|them|those|these|all of (?:it|that|this)|all that|the lot|that one|this one)"
_STRONG: Final = (
    r"(?:(?:rub|blot|cross|scratch|strike|wipe|scrub)\s+(?:out|off|away)|"
    r"forget|erase|wipe|scrub|scratch|strike|expunge|unlearn|disregard|unhear|unsay)"
)
_ORDINARY: Final = (
    r"(?:delete|remove|scrap|purge|bin|lose|drop|burn|cancel|throw|toss|ditch|dump|clear|omit|"
    r"get (?:rid|shot) of|take|cut|leave|edit)"
)
_SEPARATED: Final = re.compile(
    _LEAD + r"(?P<verb>rub|blot|cross|scratch|strike|wipe|scrub|edit)\s+(?P<object>[^,]{1,80}?)\s+(?:out|off|"
    r"away)\b"
)
_OUT: Final = re.compile(r"\b(?:out|off|away)\b")
_NEEDS_OUT: Final = frozenset({"take", "cut", "leave", "edit", "toss"})
_ORDER: Final = re.compile(_LEAD + rf"(?P<verb>{_STRONG}|{_ORDINARY})\b(?P<object>.*)$")
_SIDE_ORDER: Final = re.compile(
    rf"\b(?P<object>{_THAT}|[a-z']+ (?:number|address|price|figure|name|matter|thing|business|story)),?\s+"
    rf"(?:you )?(?P<verb>{_STRONG}|delete|remove|bin|take (?:it|that|this|them )?(?:out|away|off))\b"
)
_KEEP_VERB: Final = (
    r"(?:keep|store|save|remember|record|note|write|memori[sz]e|log|retain|"
    r"(?:be )?(?:keep|hold|hang)(?:ing)? on to|have|hold)"
)
_NOT_KEEP: Final = re.compile(
    _LEAD + rf"(?:don't|do not|never|not)(?: you| please| ever| go)* {_KEEP_VERB}(?: down)?\s+"
    rf"(?P<object>{_THAT}\b|what |anything |the |my |his |her |their |our |any of )"
)
_COULD_NOT: Final = re.compile(
    rf"\b(?:can|could|would) you (?:please |maybe |just )?not (?:{_KEEP_VERB})\s+{_THAT}\b"
)
_KEPT: Final = (
    r"(?:kept|written|wrote|recorded|stored|saved|remembered|noted|on (?:the |a |your |my )?"
    r"(?:file|record|form|screen|paper|books?)|in writing|to (?:stay|stand|remain)|it stays|it stands|to "
    r"be sitting|"
    r"sitting|anywhere|held against)(?! waiting| up\b| busy| in the)"
)
_UNWANTED: Final = re.compile(rf"\bi (?:don't|do not|wouldn't|would not|never) want\b[^.]*?\b{_KEPT}\b")
_WIPED: Final = (
    r"(?:deleted|erased|forgotten|struck(?: out| off)?|wiped|scrubbed|rubbed out|scratched(?: out)?|"
    r"crossed out|"
    r"not (?:to be )?(?:kept|written|recorded|remembered))"
)
_GONE: Final = (
    r"(?:gone|removed|(?:taken|took) (?:out|off|away)|left alone|out of (?:your|my|the|that)|"
    r"off (?:your|my|the) (?:file|form|records?|books?|papers?)|lose|let go)"
)
_WISH: Final = (
    r"\b(?:i (?:want|wish|need|would like|would prefer|should like)|i'd (?:like|rather|prefer|want|love))"
    r"\s+[^.]*?\b"
)
_WANTED_WIPED: Final = re.compile(_WISH + _WIPED)
_WANTED_GONE: Final = re.compile(_WISH + r"(?<!want )" + _GONE)
_YOU_TO_KEEP: Final = re.compile(rf"\bi (?:don't|do not|wouldn't) want you to {_KEEP_VERB}\b")
_SHOULD_NOT: Final = re.compile(
    r"\b(?:should not|shouldn't|must not|mustn't|need not|oughtn't to) (?:be|sit|stay|lie|stand|remain|"
    r"hang)\b"
    r"[^.]*\b(?:in|on|there|anywhere|about|around|next)\b"
)
# -- what shows that memory is meant
_TOLD: Final = re.compile(
    r"\b(?:(?:i|we|he|she|they|who|my \w+|[a-z]+) (?:just |once |only |never |also |'d |had |have )?"
    r"(?:said|told|mentioned|gave you|named|confessed|let slip|let on|spoke of|blurted)|i'd (?:said|told|"
    r"named|mentioned)|"
    r"shouldn't have|should not have|shouldn't've|i said|you hear(?:d)? it|i take (?:it|that) back)\b"
)
_RECORDS: Final = re.compile(
    r"\b(?:(?:your|my|the|that|this|our|her|his|any) (?:[\w-]+ )?(?:books?|files?|records?|papers|notes?|"
    r"notebook|form|memory|"
    r"head|system|clipboard|log|profile|database|entry|entries|transcript|chart)|on file|on record|off "
    r"the record|"
    r"written|wrote|write (?:it|that|this)|kept|on paper|you've got|you have (?:got |written |kept |down )?"
    r"(?:for|of|about|down|on|there)|hold nothing|recorded|remembered)\b"
)
_PRIVATE: Final = re.compile(
    r"\b(?:private|secret|confidential|nobody's (?:business|\b)|none of (?:your|anybody's|their) business|"
    r"(?:not|isn't|never|wasn't|weren't) (?:even )?(?:(?:mine|ours|my place|my story|supposed|meant) "
    r")?to (?:say|tell|share)|"
    r"(?:his|hers|theirs|'s) to tell\b|"
    r"between us|in trust|under trust|that's (?:his|hers|theirs|mine)\b)"
)
_INFORMATION: Final = re.compile(
    r"\b(?:numbers?|phone|mobile|telephone|address(?:es)?|e-?mail|name|surname|age|birthday|date of "
    r"birth|details?|"
    r"entry|entries|matter|business|story|stories|remark|comment|figure|information|data|facts?|salary|"
    r"income|"
    r"whole \w+ thing|\w+ thing|bits?|parts?|stuff|health|diagnosis|illness|condition|divorce|allergy|"
    r"medication|history)\b"
)
_CLAUSE: Final = re.compile(
    r"^(?: about| all| everything| whatever| the fact)*\s*(?:what|that (?:i|he|she|we|they|my|our|his|"
    r"her|their|the|it|you)|how|"
    r"where|who|when|why|which|whatever|everything (?:i|we|that)|anything i|(?:i|we) (?:ever )?(?:said|"
    r"told))\b"
)
_LAST: Final = re.compile(
    rf"^\s*(?:about )?(?:{_THAT}|i (?:ever )?said (?:that|it|anything)|that i said (?:it|that|so))\b"
)
_OWN: Final = re.compile(
    r"^\s*(?:about )?(?:also )?(?:all |any |everything about |everything on )?"
    r"(?:my|our|his|her|their|the|that|this|those|these)\b"
)
_NAMED_BEFORE: Final = re.compile(
    r"^(?:and |so |but |oh |now )*(?:about|as for|that business|the business)\b.*\bforget\b"
)
# -- what is no request
_NOT_MEANT: Final = re.compile(
    r"\b(?:never mind|nevermind)\b|\bforget (?:the|that|this|those) [^,]+, (?:i'll|i will|we'll|let's|"
    r"make it|give me|just)\b|"
    r"\b(?:scratch|strike) that,? (?:make|it's|i'll|i meant|i mean|let's|no\b)|\bforget (?:it|about it|"
    r"that)\s*[,—–-]\s*(?:let's|we|i'll|i will|i'm|it's fine|just go|"
    r"just tell|what|how|where|never|no)\b|\bforget[- ]me[- ]not|\bforget (?:to|his name|her name|their "
    r"name)\b|"
    r"\bforget (?:how|what|where|who|when|why) (?:to|it|the|this|that|a|he|she|they)\b(?! (?:said|told))"
)
_EVERYTHING: Final = re.compile(
    r"\b(?:everything|all)(?: that)?(?: (?:you|i)(?:'ve| have)?(?: ever)? (?:know|have|kept|keep|"
    r"remember|said|told you))?"
    r"(?: (?:about|of|on) me)\b|\ball (?:of )?my (?:data|memories|information)|\bforget me\b"
)
_KEEPS: Final = re.compile(
    r"\b(?:(?:you )?can keep|you may keep|^keep|[,.] keep|keep the|keep that|leave the|you (?:can )?leave|"
    r"(?:can|may|should|must) (?:stay|remain|keep)|stays|remains|that's fine|those keep|you must keep|"
    r"not the|keep)\b"
)
_FRAGMENT: Final = re.compile(
    r"^(?:and )?(?:the|that|all that|about|my|his|her|their|our|only|just|every|from|what|all|one|two)\b"
)
_FRAGMENT_WORDS: Final = 7
"""Of a sentence behind a request that names again what is meant: "The stent.", "All about the bishop."."""
_VOCATIVE: Final = re.compile(
    r"(?:^(?:And|So|Now|But|No|Yes|Oh)?,?\s*|,\s*)([A-ZÀ-Þ][\w'’-]+)\s*(?=[,.!?…]|$)"
)
_MONTHS: Final = (
    "january february march april may june july august september october november december".split()
)
_MONTH: Final = re.compile(
    rf"\b(?:in|of|from|since|back in|last|sunday in)\s+(?:early |late )?({'|'.join(_MONTHS)})\b"
)
_FAR: Final = re.compile(
    r"\b(?:(?:last|the other|that|this|every) (?:week|month|year|time|day|night|winter|spring|summer|"
    r"autumn|fall|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)|in the (?:winter|spring|summer|autumn|first|past)|back "
    r"in|"
    r"(?:weeks?|months?|years?|days?|time) ago|earlier|once|used to|my old|the old|"
    r"(?:what|which|things?|thing that|stuff|matter) (?:i|we|he|she|they|my \w+|[a-z]+) "
    r"(?:'d |had |have |ever )?(?:said|told|mentioned|gave|confessed|named|spoke)|"
    r"i (?:gave|told|mentioned to) you|one (?:more|other|last) thing|"
    r"one thing|another (?:thing|matter|erasure)|something else|you(?:'ve| have) (?:got|written|kept))\b"
)


_NAMES_IT: Final = re.compile(
    r"\b(?:(?:what|that|which|things?|how much) (?:i|we|he|she|they|my \w+|[a-z]+) (?:'d |had |have |"
    r"ever |once )?"
    r"(?:said|told|mentioned|gave|confessed|named|spoke)|i (?:gave|told|mentioned to|named|spoke of)\b|"
    r"(?:that|the|this|and|of) (?:[\w'-]+ ){0,3}(?:business|thing|matter|story|stuff|number|address|"
    r"entry|figure|name)\b|"
    r"shouldn't have said)|^(?:and |now |so )*(?:about|the one) "
)


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """What one utterance asks to have forgotten."""

    asking: tuple[Span, ...]
    """The sentences that ask."""
    topic: tuple[str, ...]
    """Sentences that say what is meant, with the words that ask."""
    nearby: tuple[str, ...]
    """Sentences right before, which may say it."""
    spared: str
    """What is to be kept beside it, as said."""
    before: tuple[Span, ...]
    """Sentences before the request in the same utterance that it may point to."""
    points_back: bool
    """Whether its object is only pointed to: "that", "it"."""
    far: bool
    """Whether it speaks of what was said at some other time."""
    months: tuple[int, ...]
    """Months it was said in, as numbers."""


def forget_request(text: str) -> ForgetRequest | None:
    """What `text` asks to have forgotten; None where it asks nothing, or to forget everything about the "
    "speaker.
    """
    text = text[:_MAX_CHARACTERS]
    if not _MAY_ASK.search(text.lower()):
        return None
    spans = [(m.start(), m.end()) for m in _SENTENCE.finditer(text) if m.group().strip()]
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
    points = all(_points(lows[at]) for at in asked)
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
    return ForgetRequest(
        asking=tuple(spans[at] for at in asked),
        topic=tuple(_without(said, names) for said in topic),
        nearby=tuple(_without(said, names) for said in nearby),
        spared=" ".join(spared),
        before=tuple(spans[at] for at in near),
        points_back=points,
        far=bool(_MONTH.search(whole) or _FAR.search(whole)),
        months=tuple(sorted({_MONTHS.index(name) + 1 for name in _MONTH.findall(whole)})),
    )


def _names_again(low: str) -> bool:
    return len(low.split()) <= _FRAGMENT_WORDS and _FRAGMENT.match(low) is not None


_BEFORE: Final = 3
"""Sentences before a request that may say what it means."""
_MAY_ASK: Final = re.compile(
    r"forget|eras|wip|scrub|scratch|strike|expunge|unlearn|disregard|unhear|unsay|rub|blot|cross|delet|"
    r"remov|scrap|"
    r"purge|bin\b|lose|drop|burn|cancel|throw|toss|ditch|dump|clear|omit|rid|shot of|take|cut|leave|edit|"
    r"don.t|"
    r"not |never|want|like|rather|wish|should"
)


def _low(said: str) -> str:
    low = re.sub(r"\s+", " ", said.lower().replace("’", "'")).strip(" .!?…;\"'“”")
    return _MIND.sub(lambda found: f"please {_PLAIN[found['verb']]}", low)


_PLAIN: Final = {"erasing": "erase", "deleting": "delete", "forgetting": "forget", "removing": "remove"}
_MIND: Final = re.compile(rf"\b(?:would|do) you mind (?P<verb>{'|'.join(_PLAIN)})\b")


def _asks(low: str, whole: str) -> bool:
    """Whether a sentence asks to forget; `whole`: all that was said with it."""
    if _NOT_MEANT.search(low):
        return False
    memory = bool(_TOLD.search(whole) or _RECORDS.search(whole) or _PRIVATE.search(whole))
    if any(pattern.search(low) for pattern in (_COULD_NOT, _UNWANTED, _WANTED_WIPED, _YOU_TO_KEEP)):
        return True
    if memory and (_WANTED_GONE.search(low) or _SHOULD_NOT.search(low)):
        return True
    if (kept := _NOT_KEEP.search(low)) is not None:
        pointed = re.match(_THAT, kept["object"]) or not re.search(r"\bkeep", kept.group())
        return memory or (not low.startswith("keep") and bool(pointed))
    if _SEPARATED.search(low):
        return True
    orders = [found for pattern in (_ORDER, _SIDE_ORDER) for found in pattern.finditer(low)]
    return any(_is_order(found["verb"], found["object"], low, memory=memory) for found in orders)


def _is_order(verb: str, what: str, low: str, *, memory: bool) -> bool:
    if verb == "forget":
        return _forgets(what, memory=memory, led=bool(_NAMED_BEFORE.match(low)))
    if verb in _NEEDS_OUT and not _OUT.search(low):
        return False
    own, pointed, clause = bool(_OWN.match(what)), bool(_LAST.match(what)), bool(_CLAUSE.match(what))
    known = own and bool(_INFORMATION.search(what))
    if verb == "erase" or verb.endswith((" out", " off")):
        return own or pointed or clause or memory
    if re.fullmatch(_STRONG, verb):
        return known or pointed or clause or memory
    if verb in {"delete", "remove", "scrap", "purge"}:
        return known or clause or memory
    return (known and verb in {"bin", "lose"}) or (
        memory and (pointed or (own and verb != "cancel") or not what.strip(" ,"))
    )


def _forgets(what: str, *, memory: bool, led: bool) -> bool:
    bare = what.strip(" ,")
    if re.match(r"(?:about )?it\b", bare) or not bare:
        return memory or led
    if re.match(r"of (?:the|my|that|what|him|her|his)\b", bare):
        return True
    return bool(
        _LAST.match(what)
        or _CLAUSE.match(what)
        or _OWN.match(what)
        or re.match(r"(?:he|she|they|we|i|you) ", bare)
    )


def _points(low: str) -> bool:
    """Whether a request points to what it means."""
    return re.search(rf"\b{_THAT}\b|\bi (?:ever )?(?:said|spoke)\b", low) is not None


def _divided(said: str) -> tuple[str, list[str]]:
    """What of a sentence says what is meant, and what of it is to be kept."""
    parts = re.split(r"(?<=[,;—–])\s+", said)
    kept = [part for part in parts if _KEEPS.search(_low(part)) and not _asks_in(part)]
    return " ".join(part for part in parts if part not in kept), kept


def _asks_in(part: str) -> bool:
    return bool(re.search(r"\b(?:don't|not|never|forget|delete|erase|out|off)\b", _low(part)))


def _without(said: str, names: set[str]) -> str:
    """`said` without names of who is spoken to."""
    for name in names:
        said = re.sub(rf"(?:(?<=,)|(?<=^))\s*{re.escape(name)}\s*(?=[,.!?…]|$)", " ", said)
    return said.strip()


__all__ = ["ForgetRequest", "forget_request"]
