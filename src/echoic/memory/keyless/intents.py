"""Intents of an utterance, and memories reworded in the second person: "You live in Tel Aviv." Pure rules.

An utterance can have several intents ("I'm Pavel, where do I live?"). A question that matches no row of the
table is answered from search results. A memory learned from speech has a sentence about "the user", which is
reworded; one that was set under a key has only key and value.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final

from echoic.english import listen
from echoic.english.lexicon import GIVEN, source
from echoic.english.names import stated
from echoic.english.phrases import slug
from echoic.english.sentences import Sentence, sentences
from echoic.english.slots import SLOTS, be, ended, spoken_key, with_context
from echoic.memory.conversation import OpenConversation
from echoic.memory.user import UserMemory
from echoic.temporal import spans_of_phrase
from echoic.text import content_stems, fold
from echoic.types import Memory, Receipt, Turn

_POLITE: Final = (
    r"(?:(?:please|ok|okay|well|so|and|hey|now|actually|also|oh|sorry|can you|could you|would you"
    r"|will you|i want you to|i'd like you to|i need you to) )*"
)
_ERASE: Final = re.compile(
    rf"^{_POLITE}(?:forget|delete|erase|wipe|remove) "
    r"(?:me$|me (?:please|completely|entirely)|all (?:of )?(?:my|the) (?:data|memories|information)"
    rf"|{source('requests.all_told')}$|all about me|my (?:data|memory|memories)$)"
)
# "Remove the onions" is about an order: verbs but "forget" need a word for something that is remembered.
_FORGET: Final = re.compile(
    rf"^{_POLITE}(?:forget (?!(?:about )?it\b|that$)"
    r"|(?:delete|erase|remove) (?=.*\b(?:memory|memories|records?|notes?|what (?:you|i)|numbers?|address|name"
    r"|birthday|age|e-?mail|codes?|password|hours|details|allerg(?:y|ies))\b))(?:about |that )?(?P<what>.+?)"
    # a tag asks nothing: "forget about the boat, would you?"
    r"(?: (?:would|could|can|will) you)?(?: please)?$"
)
# The whole utterance, since it may end a memory: "ok, I live in Rome" and "forget it" confirm nothing.
_YES: Final = re.compile(
    r"(?:(?:yes|yeah|yep|sure|ok|okay|please|do it|do that|go ahead|absolutely|confirm|you shall"
    r"|(?:erase|delete) it(?: all)?|(?:erase|delete|forget) everything(?: about me)?) ?)+"
)
_NO: Final = re.compile(
    r"^(?:no|nope|don't|do not|stop|cancel|never mind|keep|forget (?:it|about it|that)$)\b"
)
_GREETING: Final = re.compile(
    r"^(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening))(?: there| again| echoic)?$"
)
_THANKS: Final = re.compile(r"^(?:ok |okay |great |perfect )?(?:thanks|thank you|cheers)\b.{0,30}$")
_GOODBYE: Final = re.compile(
    r"^(?:ok |okay )?(?:bye|goodbye|good night|see you|talk (?:to you )?(?:later|soon)).{0,30}$"
)
_WHO_ARE_YOU: Final = re.compile(
    r"^(?:who|what) are you$|^are you (?:a |an )?(?:robot|bot|human|real|ai|person|machine)"
    r"|^(?:help|what can you do)$"
)
_ASKS: Final = re.compile(
    r"^(?:(?:and|so|but|well|ok|okay|please|hey|sorry|now) )*"
    r"(?:what|where|when|who|whom|whose|which|how|why|do|does|did|am|is|are|was|were|have|has|can|could|will"
    r"|would|should|what's|where's|who's|when's|how's|tell me|remind me|any)\b"
)
# "Do you remember that …", "could you call me …": questions that tell something.
_TELLS: Final = re.compile(r"^(?:can|could|would|will) you (?:please )?(?:remember|note|call|keep|write)\b")
# What a business says of itself. "Our daughter" and "our flight" are personal.
_THINGS: Final = (
    r"(?:[^\W\d]+ ){0,3}?(?:hours|policy|policies|prices?|rates?|fees?|menu|special|password|website|warranty"
    r"|delivery|shipping|returns|refunds|parking|check-?in|check-?out|deadline|minimum|capacity|slogan|motto)"
)
_OURS: Final = (
    (re.compile(r"^(?:we are|we're|we stay) open (?P<value>.+)$", re.IGNORECASE), "opening hours"),
    (re.compile(r"^the (?P<key>(?:opening|business|office) hours) are (?P<value>.+)$", re.IGNORECASE), ""),
    (re.compile(r"^we (?P<key>open|close) (?:at|on) (?P<value>.+)$", re.IGNORECASE), ""),
    (re.compile(rf"^our (?P<key>{_THINGS}) (?:is|are) (?P<value>.+)$", re.IGNORECASE), ""),
)
_TIMES: Final = {"open": "opening time", "close": "closing time"}
_LEADING: Final = re.compile(r"^(?:(?:so|and|well|also|ok|okay|by the way|actually|oh),? )+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What an utterance asks for."""

    question: str | None = None
    """The sentence that asks something, as said."""
    forget: str | None = None
    """What to forget, in the user's words; None if nothing."""
    ours: tuple[tuple[str, str], ...] = ()
    """Keys and values the speaker gives for everyone: "we're open nine to five"."""
    erase: bool = False
    """Whether everything is to be forgotten."""
    yes: bool = False
    no: bool = False
    name: str | None = None
    """A name and nothing else, as one answers when asked for it."""
    courtesy: str | None = None
    """"greeting", "thanks", "goodbye" or "who are you", if nothing else was said."""


def intent_of(text: str) -> Intent:
    said = sentences(text)
    lines = [sentence.line.strip() for sentence in said]
    whole = " ".join(lines)
    return Intent(
        question=next(
            (f"{_as_said(s)}?" for s, line in zip(said, lines, strict=True) if _asks(s, line)), None
        ),
        forget=next((found["what"] for line in lines if (found := _FORGET.match(line))), None),
        ours=tuple(pair for sentence in said if (pair := _ours(sentence))),
        erase=any(_ERASE.match(line) for line in lines),
        yes=bool(_YES.fullmatch(whole)),
        no=bool(_NO.match(whole)),
        name=_told_name(said),
        courtesy=_courtesy(whole),
    )


def _asks(sentence: Sentence, line: str) -> bool:
    if _FORGET.match(line) or _TELLS.match(line):
        return False
    return sentence.question or bool(_ASKS.match(line))


def _ours(sentence: Sentence) -> tuple[str, str] | None:
    if sentence.question:
        return None
    text = _LEADING.sub("", _as_said(sentence))
    for pattern, key in _OURS:
        found = pattern.match(text)
        if found:
            named = key or found["key"].lower()
            return _TIMES.get(named, named), found["value"].strip()
    return None


def _told_name(said: list[Sentence]) -> str | None:
    if len(said) != 1 or said[0].question:
        return None
    found = stated(said[0], 0)
    return found.text if found and found.end == len(said[0]) else None


def _courtesy(whole: str) -> str | None:
    kinds = {"greeting": _GREETING, "thanks": _THANKS, "goodbye": _GOODBYE, "who are you": _WHO_ARE_YOU}
    return next((kind for kind, pattern in kinds.items() if pattern.match(whole)), None)


def _as_said(sentence: Sentence) -> str:
    return sentence.text(0, len(sentence))


_KIN: Final = (
    "wife|husband|partner|spouse|girlfriend|boyfriend|fiancee?|mother|mom|mum|mama|father|dad|papa|sister"
    "|brother|aunt|uncle|cousin|niece|nephew|grandmother|grandfather|grandma|granny|grandpa|best friend"
    "|friend|roommate|flatmate|boss|manager|neighbou?r|doctor|dentist|therapist|colleague|assistant|lawyer|accountant"
    "|landlord|teacher"
)
# In the words of keys.
_SAME_KIN: Final = {
    "mom": "mother",
    "mum": "mother",
    "mama": "mother",
    "dad": "father",
    "papa": "father",
    "grandma": "grandmother",
    "granny": "grandmother",
    "grandpa": "grandfather",
    "fiancee": "fiance",
    "neighbor": "neighbour",
    "kid": "child",
    "children": "child",
}
_I: Final = r"(?:do|did|am|was|have|would) (?:i|we)"
_ROWS: Final = (
    (
        rf"\bmy ({_KIN})(?:'s)? (?:full )?name\b|\bmy ({_KIN})(?:'s)? called\b|\bwho is my ({_KIN})\b",
        "{}_name",
    ),
    (r"\bmy (?:\w+ )?(?:dog|cat|pet|puppy|kitten)s?\b|\bhave (?:a|any) (?:dog|cat|pet)s?\b", "pet:"),
    (r"\b(?:my|have (?:any|a)?|how many) ?(?:kids?|child(?:ren)?|sons?|daughters?)\b", "child:"),
    (r"\bmy last name\b|\bmy surname\b", "last_name"),
    (
        r"\bmy (?:full |first )?name\b|\bwho (?:am i|i am)$|\bcall me\b|\bremember me\b|\bknow me\b",
        "user_name",
    ),
    (r"\bmy work (?:phone|telephone|number)\b", "work_phone"),
    (r"\bmy home (?:phone|telephone|number)\b", "home_phone"),
    (r"\bmy work e-?mail\b", "work_email"),
    (r"\bmy (?:home |street |postal )?address\b", "address"),
    (rf"\bwhere {_I} (?:\w+ )?(?:live|living|based|reside|stay)", "home"),
    (r"\bwhere i (?:\w+ )?live\b|\bi live (?:in|near)\b", "home"),
    (r"\bmy (?:home ?town|home|city)\b|\b(?:what|which) (?:city|town|country) (?:do|am) i\b", "home"),
    (r"\bwhere (?:was i|i was) born\b|\bmy birth ?place\b", "birthplace"),
    (r"\bmy birthday\b|\bwhen was i born\b", "birthday"),
    (r"\b(?:what|which) year was i born\b", "birth_year"),
    (r"\bwhere (?:did i|i) (?:grow|grew) up\b", "grew_up_in"),
    (rf"\bwhere (?:{_I} (?:come )?from|i (?:am|come) from)\b", "origin"),
    (rf"\bwhere {_I} work|\bwho {_I} work(?:ing)? for\b|\bwhere i work\b", "employer"),
    (r"\bmy (?:employer|company|workplace)\b", "employer"),
    (
        r"\bmy (?:job|occupation|profession|trade)\b|\bwhat do i do\b|\bdo i do for (?:a living|work)\b",
        "occupation",
    ),
    (r"\bhow old (?:am i|i am)\b|\bmy age\b", "age"),
    (r"\bmy e-?mail(?: address)?\b", "email"),
    (r"\bmy (?:\w+ )?(?:phone|telephone|mobile|cell)(?: number)?\b|\bmy number\b", "phone"),
    (r"\bmy time ?zone\b", "timezone"),
    (r"\bnot (?:be called|call me)\b|\bshouldn't you call\b", "no_contact_time"),
    (
        r"\bwhen (?:should|can|may) (?:you|we|i) (?:call|reach|ring)\b|\bbest time to (?:call|reach)\b",
        "contact_time",
    ),
    (r"\b(?:least|worst) favou?rite\b", "least_favourite:"),
    (r"\bmy favou?rite (\w+(?: \w+)?)$", "favourite:{}"),
    (r"\bmy favou?rites?\b", "favourite:"),
    (r"\ballerg(?:y|ies|ic)\b", "allergy:"),
    (r"\bmy diet\b|\bdietary\b|\bam i (?:a )?(?:vegan|vegetarian|pescatarian)\b", "diet:"),
    (r"\bwhat (?:don't i|do i not|can't i|should i not) eat\b|\bi (?:avoid|can't eat)\b", "avoids:"),
    (r"\bwhat(?: \w+){0,2} do i (?:like|love|enjoy|prefer|hate|dislike)$", "preference:"),
    (r"\bmy (?:preferences|tastes|hobbies|likes)\b", "preference:"),
    (r"\b(?:what|which|how many) languages?\b", "language:"),
    (r"\bwhat (?:did|have) i decided?\b|\bmy decisions?\b", "decision:"),
    (r"\bwhat do i need\b|\bmy (?:requirements|needs)\b", "requirement:"),
    (r"\bwhat did i (?:ask|tell) you to remember\b|\bmy (?:notes|reminders)\b", "note:"),
)
# Others that a question may be about, such as "my doctor" and "my dog".
_SOMEBODY: Final = (
    rf"(?:(?:ex[- ]|step-?|grand)?(?:{_KIN}|son|daughter|kid|children|child|parent)(?:[- ]in[- ]law)?"
    "|dog|cat|puppy|kitten)"
)
ANIMALS: Final = frozenset("dog cat puppy kitten".split())
_OTHERS: Final = re.compile(rf"\b(?:my|our) (?:\w+ )?{_SOMEBODY}(?:'s|s'|s)?\b")
# A clause that speaks of somebody else, not of the speaker with them ("my wife and I").
_OF_SOMEBODY: Final = re.compile(
    r"\W*(?:(?:and|so|well|also|yes|no|oh|actually|because)\W+)*"
    rf"(?:(?:my|our|the user's) (?:[\w-]+ )?(?P<kin>{_SOMEBODY})(?:(?P<owns>'s|s') |'s|s)?"
    r"|he|she|they|(?P<name>[^\W\d]+)(?:'s)?(?= \w))\b(?! (?:(?:and|or) (?:i|me|myself)|here|speaking)\b)"
)
_I_DO: Final = re.compile(
    r"\b(?:i|we|i'm|we're|i've|we've)"
    r"(?: (?:am|are|have|had|got|a|an|the|to|on|not|can|can't|don't|should|must|will))* (\w+)"
)
_MINE: Final = re.compile(r"\b(?:my|our) ([\w-]+(?: [\w-]+)?)")
_THEIRS: Final = re.compile(rf"\b(?:my|our) (?:[\w-]+ )?{_SOMEBODY}(?:'s|s') ([\w-]+(?: [\w-]+)?)")
_CLAUSE_ENDS: Final = re.compile(r"[.!?…;]|\b(?:but|though|whereas|while)\b|, and\b")
_SPEAKING: Final = content_stems(
    "say said tell told talk mention discuss speak spoke ask happen chat conversation"
)
_YOU_DID: Final = re.compile(r"\b(?:did|have|had|was|were) you\b")
_OF_ME: Final = re.compile(r"\b(?:i|i'm|i've|my|mine|we|our|ours)\b")
_ANYBODY: Final = re.compile(rf"\b({_SOMEBODY})(?:'s|s'|s)?\b")
_NESTED: Final = re.compile(rf"\bmy {_SOMEBODY}(?:'s|s'|s) {_SOMEBODY}\b")
"""Relatives of relatives, which no slot holds."""
_OF_OTHERS: Final = frozenset(["{}_name", "pet:", "child:"])
_ABOUT_ME: Final = re.compile(
    r"\b(?:what|everything|anything|all) (?:do |that |else )*(?:you|i) (?:know|remember|have|told|tell"
    r"|store|keep)(?: you)?(?: (?:about|of) me| stored| kept)?$"
    r"|\b(?:tell me|what) about (?:me|myself)$|\bwhat have i told you\b"
    r"|\bknow (?:anything|something|everything) about me\b"
)
_BEFORE: Final = re.compile(
    r"\b(?:before|previously|formerly|use(?:d)? to|earlier|in the past)\b|\bmy (?:old|former|previous)\b"
)
_EXPANDED: Final = (
    ("what's", "what is"),
    ("where's", "where is"),
    ("who's", "who is"),
    ("when's", "when is"),
    ("i'm", "i am"),
)
_PATTERNS: Final = tuple((re.compile(pattern), key) for pattern, key in _ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSubject:
    key: str | None = None
    """The key of a slot, or a prefix ending in ":" for several; None if no row matches."""
    everything: bool = False
    """Whether it asks for all that is known."""
    before: bool = False
    """Whether it asks for a past value."""
    others: frozenset[str] = frozenset()
    """Others it is about ("my wife", "my dog"): facts about the user do not answer it."""
    own: bool = False
    """Whether it is about the user alone: facts about others do not answer it."""
    period: bool = False
    """Whether it asks for what was said in a period, on any subject ("what did I tell you yesterday")."""

    def means(self, key: str | None) -> bool:
        """Whether a memory under `key` answers it."""
        if key is None or self.key is None:
            return False
        if key == "children":  # how many, where "child:…" are their names
            return self.key == "child:"
        return key == self.key or key.startswith(f"{self.key.removesuffix(':')}:")


_ON: Final = re.compile(r"\b(?:tell|told|say|said|mention|mentioned)\b.* (?:about|regarding|for) ")
"""Of what, not when: "what did I tell you about June?"."""


def asked_of(question: str) -> QuestionSubject:
    line = " ".join(re.sub(r"[^\w'’-]+", " ", fold(question)).split())
    for short, long in _EXPANDED:
        line = re.sub(rf"\b{short}\b", long, line)
    # which days it means is known to the search; that it names some does not depend on today
    told = content_stems(line) & _SPEAKING and not _YOU_DID.search(line)
    if told and not _ON.search(line) and spans_of_phrase(question, datetime.now(UTC), UTC).bare:
        return QuestionSubject(period=True)
    if _ABOUT_ME.search(line):
        return QuestionSubject(everything=True)
    others = somebody_in(line) if _OTHERS.search(line) else frozenset()
    own = not others and _OF_ME.search(line) is not None
    if _NESTED.search(line):
        return QuestionSubject(others=others)
    for pattern, key in _PATTERNS:
        found = pattern.search(line)
        # "is my wife allergic" asks for no slot of the user's, "what is my wife's name" does
        if found and (not others or key in _OF_OTHERS):
            thing = next((group for group in found.groups() if group), "")
            before = bool(_BEFORE.search(line))
            return QuestionSubject(key=_filled(key, thing), before=before, others=others, own=own)
    return QuestionSubject(others=others, own=own)


def somebody_in(text: str) -> frozenset[str]:
    """The relatives, friends and animals mentioned in `text`, each as one word; a son is also a child."""
    found = frozenset(map(_same, _ANYBODY.findall(fold(text))))
    return found if found.isdisjoint(["son", "daughter"]) else found | {"child"}


def of_somebody(text: str, question: str, others: frozenset[str] = frozenset()) -> bool:
    """Whether what `text` says to `question` is of somebody else: "My sister drives a lorry".

    With `others`, whom the question is about: whether it is of what belongs to none of them, "my sister's
    dog". Only the clauses count that contain a word of the question, or all if none does.
    """
    words, mine = content_stems(question), _owned(_MINE, question)
    every = [clause for clause in _CLAUSE_ENDS.split(fold(text)) if content_stems(clause)]
    meant = [clause for clause in every if words & content_stems(clause)] or every
    return bool(meant) and all(_is_of_somebody(clause, words, mine, others) for clause in meant)


def _is_of_somebody(clause: str, words: frozenset[str], mine: frozenset[str], others: frozenset[str]) -> bool:
    found = _OF_SOMEBODY.match(clause)
    if others:
        return found is not None and found["owns"] is not None and _same(found["kin"]) not in others
    if mine & _owned(_THEIRS, clause):  # "Max is my dog's name"
        return True
    if found is None or (found["name"] is not None and found["name"] not in GIVEN):
        return False
    rest = clause[found.end() :]
    # "my dentist moved my check-up", "he says I need a brace"
    return not (mine & _owned(_MINE, rest) or of_speaker(rest, words))


def _owned(whose: re.Pattern[str], text: str) -> frozenset[str]:
    return content_stems(" ".join(whose.findall(fold(text))))


def of_speaker(text: str, words: frozenset[str]) -> bool:
    """Whether one of `words` says what the speaker does or is in `text`: "I eat everything"."""
    return bool(words & content_stems(" ".join(_I_DO.findall(fold(text)))))


def _same(person: str) -> str:
    person = person.replace("ex ", "ex-").replace("step-", "step").replace(" in law", "-in-law")
    return _SAME_KIN.get(person, person).removeprefix("best ")


def _filled(key: str, thing: str) -> str:
    if key == "{}_name":
        return key.format(_SAME_KIN.get(thing, thing).replace(" ", "_"))
    return key.format(slug(thing))


_ABOUT: Final = re.compile(r"^The user('s)? (?:(\w+(?:['’]\w+)?) )?", re.IGNORECASE)
_IRREGULAR: Final = {
    "is": "are",
    "isn't": "aren't",
    "was": "were",
    "wasn't": "weren't",
    "has": "have",
    "hasn't": "haven't",
    "does": "do",
    "doesn't": "don't",
    "goes": "go",
}
_YOURS: Final = {"they": "you", "their": "your", "them": "you", "themselves": "yourself"}
_ASKED: Final = "The user asked to remember: "
_DIET: Final = "diet:"
# A trade takes an article, a company or a field does not; these beginnings have one or need none.
_DETERMINED: Final = re.compile(r"(?:an?|the|my|your|our|self|unemployed|retired|freelance)\b", re.IGNORECASE)


YOU_TOLD_ME: Final = "You told me, "


def said_back(memory: Memory) -> str:
    """`memory` as a sentence to the user it is about, with when it applies and a full stop.

    What they said themselves is quoted: "I drive a van" would speak of the agent.
    """
    context = _to_them(memory.context or "")
    if not _is_quote(memory):
        return with_context(_said_back(memory), context)
    said = f"{YOU_TOLD_ME}{quoted(memory.text)}"
    return with_context(said.replace(".”", "”"), context) if context else said


def quoted(text: str) -> str:
    """`text` in quotation marks, as a sentence."""
    return f"“{ended(text)}”"


def _is_quote(memory: Memory) -> bool:
    """Whether it is in the user's own words. What everyone is told, others may have said."""
    if memory.key is not None or memory.statement or not memory.source:
        return False
    return memory.visibility != "global" and _ABOUT.match(memory.text) is None


def _said_back(memory: Memory) -> str:
    own = _own_words(memory)
    if own:
        return own
    statement = memory.statement or _statement(memory)
    if statement:
        return second_person(statement)
    if memory.key is None:
        return second_person(memory.text)
    whose = "Your" if memory.visibility == "private" else "The"
    return ended(f"{whose} {spoken_key(memory.key)} {be(memory.key)} {memory.text}")


def acknowledged(memory: Memory) -> str:
    """`memory`, repeated directly after it was said: only the part to remember."""
    if _is_quote(memory):
        return quoted(memory.text)
    return ended(memory.text) if (memory.key or "").startswith("note:") else said_back(memory)


def _to_them(context: str) -> str:
    """A condition in the second person: "when you are driving" for "they are driving"."""
    return " ".join(_YOURS.get(word.casefold(), word) for word in context.split())


def second_person(sentence: str) -> str:
    """A sentence about "the user", addressed to them; other sentences are returned unchanged."""
    if sentence.startswith(_ASKED):
        return ended(f"You asked me to remember: {sentence.removeprefix(_ASKED)}")
    found = _ABOUT.match(sentence)
    if found is None:
        return ended(sentence)
    owns, verb = found.groups()
    if owns:
        return ended(f"Your {sentence[found.end(1) + 1 :]}")
    return ended(f"You {_with_you(verb or '')} {sentence[found.end() :]}")


def listed(sentences: Iterable[str]) -> str:
    """Sentences joined into one to follow a colon, such as "your name is Pavel and you love jazz"."""
    parts = [lowered(re.sub(r"\.(?=”?$)", "", sentence)) for sentence in sentences]
    told = lowered(YOU_TOLD_ME)
    # of quotes in a row only the first says whose they are
    parts = [
        part.removeprefix(told) if before.startswith(told) else part
        for before, part in zip(["", *parts], parts, strict=False)
    ]
    if len(parts) < 2:
        return ended("".join(parts))
    if any(":" in part or ", " in part for part in parts):
        return ended("; ".join(parts))
    joint = " and " if len(parts) == 2 else ", and "
    return ended(", ".join(parts[:-1]) + joint + parts[-1])


def receipt_in_words(receipt: Receipt) -> str:
    """What an erasure removed, and whether that was verified, as a sentence."""
    removed = [
        _counted(receipt.memories, "memory", "memories"),
        _counted(receipt.turns, "turn"),
        _counted(receipt.conversations, "conversation"),
        _counted(receipt.vectors, "vector"),
        _counted(receipt.other, "other record"),
        _counted(receipt.rewritten, "passage of a text", "passages of texts"),
    ]
    said = ", ".join(part for part in removed if part) or "nothing, for nothing was kept"
    checked = (
        "I searched what is stored afterwards, and none of it is left."
        if receipt.verified
        else "I could not verify afterwards that none of it is left; please tell whoever runs this."
    )
    return f"Done. Erased: {said}. {checked}"


def _own_words(memory: Memory) -> str:
    """The user's own words, if the reworded sentence would sound stiff."""
    key = memory.key or ""
    if key == "user_name":
        return ended(f"Your name is {memory.text}")
    if key == "occupation":
        return ended(f"You're {_with_article(memory.text)}")
    if key.startswith(_DIET):
        return ended(f"You're {memory.text}")
    if key.startswith("favourite:") and memory.text:
        return ended(f"Your favourite {key.partition(':')[2]} is {memory.text}")
    return ""


def _statement(memory: Memory) -> str:
    """A sentence for the slot of `memory.key`, for a memory that was set directly."""
    slot = SLOTS.get(memory.key or "")
    return slot.sentence.format(memory.text) if slot and "{}" not in slot.key else ""


def _with_you(verb: str) -> str:
    low = verb.lower().replace("’", "'")
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if low.endswith("ies") and len(low) > 4:
        return verb[:-3] + "y"
    if re.search(r"(?:ss|x|zz|ch|sh|o)es$", low):
        return verb[:-2]
    return verb.removesuffix("s") if not low.endswith("ss") else verb


def _with_article(trade: str) -> str:
    if _DETERMINED.match(trade):
        return trade
    return f"an {trade}" if trade[:1].lower() in "aeiou" else f"a {trade}"


def lowered(sentence: str) -> str:
    """The sentence with a small first letter, unless that may be a name."""
    first = sentence.split(" ", 1)[0]
    return sentence[:1].lower() + sentence[1:] if first in {"You", "Your", "You're", "The"} else sentence


def _counted(number: int, one: str, many: str = "") -> str:
    if number == 0:
        return ""
    return f"{number} {one if number == 1 else many or one + 's'}"


class Steps:
    """Times named steps; a step that runs twice is summed."""

    def __init__(self) -> None:
        self.timings_ms: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time the block as `name`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed_ms = (time.perf_counter() - started) * 1000
            self.timings_ms[name] = self.timings_ms.get(name, 0.0) + elapsed_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnChanges:
    stored: tuple[Memory, ...] = ()
    """New memories."""
    superseded: tuple[Memory, ...] = ()
    """Memories that the new ones corrected."""
    known: tuple[Memory, ...] = ()
    """What was said and known already."""
    retracted: tuple[Memory, ...] = ()
    """Memories that were taken back."""

    def parts(self) -> dict[str, Any]:
        """The fields by name, for a reply that tells of them."""
        return {each.name: getattr(self, each.name) for each in fields(TurnChanges)}


async def learn(
    memory: UserMemory,
    conversation: OpenConversation,
    heard: Turn,
    *,
    ours: Iterable[tuple[str, str]],
    before: Sequence[Memory],
    steps: Steps,
) -> TurnChanges:
    """Learn from the stored turn `heard`.

    `ours` are keys and values it gives for everyone; `before` are the current memories before it.
    """
    with steps.step("distil"):
        await conversation.learn()
    for key, value in [] if conversation.silent else ours:
        with steps.step("set"):
            await memory.set(key, value)
    return _difference(heard, before, await memory.facts())


async def learn_name(memory: UserMemory, name: str, steps: Steps) -> TurnChanges:
    """Store `name`, the bare answer to the agent's question for it."""
    with steps.step("set"):
        kept = await memory.set("user_name", name, category="entity")
    return TurnChanges(stored=(kept,))


def _difference(heard: Turn, before: Sequence[Memory], after: Sequence[Memory]) -> TurnChanges:
    held = {_name(memory) for memory in before}
    holds = {_name(memory) for memory in after}
    stored = tuple(memory for memory in after if _name(memory) not in held)
    gone = [memory for memory in before if _name(memory) not in holds]
    # compare by key: a correction may turn the user's own memory into a global one
    corrected = {memory.key for memory in stored if memory.key is not None}
    said = {(item.key, item.text.casefold()) for item in listen(heard.text, []) if not item.retracts}
    return TurnChanges(
        stored=stored,
        superseded=tuple(memory for memory in gone if memory.key in corrected),
        known=tuple(m for m in after if _name(m) in held and (m.key, m.text.casefold()) in said),
        retracted=tuple(memory for memory in gone if memory.key not in corrected),
    )


def _name(memory: Memory) -> tuple[bool, str]:
    """A unique name of a memory; ids are unique only within a scope."""
    return memory.visibility == "global", memory.id


def learned_in_words(learned: TurnChanges) -> str:
    """What was learned, to read back for confirmation; empty if nothing was."""
    parts = [_met(learned), _stored(learned), _known(learned), _retracted(learned)]
    return " ".join(part for part in parts if part)


def _met(learned: TurnChanges) -> str:
    named = [memory for memory in learned.stored if memory.key == "user_name"]
    if not named:
        return ""
    corrected = any(memory.key == "user_name" for memory in learned.superseded)
    return (
        f"I'll call you {named[0].text} from now on." if corrected else f"Nice to meet you, {named[0].text}."
    )


def _stored(learned: TurnChanges) -> str:
    own = [m for m in learned.stored if m.key != "user_name" and m.visibility == "private"]
    said = []
    if own:
        was = {memory.key: memory.text for memory in learned.superseded}
        before = [was[memory.key] for memory in own if memory.key in was]
        note = f" Before, it was {' and '.join(before)}; I keep that as history." if before else ""
        said.append(f"Noted: {_repeated(own)}{note}")
    shared = [memory for memory in learned.stored if memory.visibility == "global"]
    if shared:
        said.append(f"Noted for everyone who calls: {_repeated(shared)}")
    proposed = [memory for memory in learned.stored if memory.visibility == "proposed"]
    if proposed:
        said.append(
            f"Noted: {_repeated(proposed)} I proposed it for everyone; until the operator approves, "
            "it is yours alone."
        )
    return " ".join(said)


def _known(learned: TurnChanges) -> str:
    return f"I know: {_repeated(learned.known)}" if learned.known and not learned.stored else ""


def _repeated(memories: Iterable[Memory]) -> str:
    return listed(acknowledged(memory) for memory in memories)


def _retracted(learned: TurnChanges) -> str:
    if not learned.retracted:
        return ""
    said = " ".join(
        ended(memory.text) if _is_quote(memory) else said_back(memory) for memory in learned.retracted
    )
    return (
        f"I no longer go by this: “{said}” It stays in your history, where only you can see it; "
        "“forget everything about me” erases that too."
    )
