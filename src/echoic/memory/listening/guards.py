"""What must not be believed: suppositions, questions, other people's words, jokes, and what an agent says.

Two checks around every rule. Before it: whether a clause of the speaker's own begins here (`Ground`). After
it: whether the rest of the sentence takes it back (`withdrawn`). Both look at words only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from echoic.memory.listening.sentences import Sentence

GREETINGS: Final = frozenset("hi hello hey hiya morning afternoon evening greetings howdy yo".split())
# Words a clause of the speaker's own may follow.
_CONNECTING: Final = GREETINGS | frozenset(
    """
    and but so because cause cos since also plus then well yeah yes yep yup no nope nah ok okay right sure
    there oh ah actually basically look listen see thanks please sorry anyway anyways alright way mean
    though although now again personally honestly everyone all first second finally course sir madam ma'am
    good great cool fine as fyi unfortunately wow gosh obviously frankly seriously absolutely exactly correct
    wait today currently
    """.split()
)
# Words that make what follows a question, a relative clause, a hedge or somebody's words.
_FORBIDDING: Final = frozenset(
    """
    if unless whether that which who whom whose what when where why how while until once than or nor either
    think thinks thought guess believe suppose feel felt hope wish know knows knew say says said tell tells
    told hear heard reads read goes do did does am are is was were have has had can could should would will
    shall may might must don't didn't doesn't isn't aren't wasn't won't can't couldn't wouldn't shouldn't not
    never maybe perhaps probably possibly apparently supposedly allegedly sometimes like pretend imagine
    assume remember remembers
    song movie film show album track book band episode called titled named play playing sing singing
    sings quote poem lyrics title place house city town country area neighborhood apartment street building
    before after i my we a an the his her their your company people person guy man woman firm clients client
    """.split()
)
_SHADOWING: Final = frozenset(
    """
    if unless whether wish wished imagine imagining suppose supposing pretend pretending hypothetically
    assuming dreamed dreamt dreaming says saying told tells asked asks thinks thought believes believed claims
    claimed wrote texted replied answered yelled shouted screamed sang insisted assumed joked said acting
    wonder wondering theoretically
    """.split()
)
_LIFTING: Final = frozenset("but anyway anyways however".split())
# Phrases that cast a shadow though none of their words does.
_SHADOWS: Final = re.compile(
    r"(?:(?:is|was|were|are|be|he's|she's|they're|it's|i'm|all|feel|feels|felt|sound|sounds|look|looks|"
    r"seem|seems|act|acts"
    r"|just|something) like|(?:would|people|they|you|some|always) say|let's say|let us say|say (?=i |i'm |"
    r"my )|what if|for example|he goes|she goes|they go|in my dreams"
    r"|play|sing|as if|in case|in (?:another|a past|a previous|my next|the next) life|in a dream|in my dream"
    r"|(?:in theory|on paper|translate)(?= i | i'm | my )|translate (?:this|the following)|according to"
    r"|for (?:the sake of argument|argument's sake|instance|test(?:ing)? purposes|"
    r"(?:this|a) test)|as an example|fake name|repeat after me"
    r"|how (?:do|would) (?:you|i|we) (?:say|spell|pronounce|write)) "
)
# Phrases that cast none though their words do: polite conditions and the speaker's own insistence.
_HARMLESS: Final = re.compile(
    r"(?:if (?:it|that) (?:helps|matters)|if possible|if needed|if necessary|if you (?:need|want|must know|"
    r"don't mind|could|can"
    r"|would|have to|please|wouldn't mind)|if i may|if i'm honest"
    r"|(?<!did )(?<!have )(?<!had )(?:i|i've)(?: have)?(?: already| just| also)? (?:said|told you|"
    r"mentioned)"
    r"|(?:told|asked) (?:me|us) (?:to|for|about)|you asked|in case you(?:'re| are)? (?:need|wondering|want)"
    r"|just like|looks like you|sounds like you|play the (?:guitar|piano|violin|drums)) "
)
# Phrases after which the speaker vouches for what follows.
_VOUCHING: Final = re.compile(
    r"(?:just so you know|so you know|for your information|(?:please |just )?note(?: that)?|(?:keep|"
    r"bear) in mind(?: that)?"
    r"|i should (?:mention|say|add|tell you)(?: that)?|i (?:have to|must) (?:say|tell you|"
    r"mention)(?: that)?"
    r"|i want you to know(?: that)?|you should know(?: that)?|(?:the )?(?:thing|problem|truth|fact|issue|"
    r"deal|reason) is(?: that)?"
    r"|(?<!did )(?<!have )(?<!had )(?:i|i've)(?: have)?(?: already| just| also)? (?:said|told you|"
    r"mentioned)(?: that)?"
    r"|let me (?:just )?(?:say|tell you|mention)(?: that)?|be aware(?: that)?|as you know|now that|"
    r"given that"
    r"|i can tell you(?: that)?|(?:as|like) i(?:'ve)? (?:said|mentioned)(?: before)?) "
)
_AGENT: Final = re.compile(
    r"(?:as an ai|(?:i'm|i am) an? (?:ai|virtual|digital|voice|automated|language)\b|language model|"
    r"your (?:virtual |ai |digital |"
    r"personal )?assistant\b|how (?:can|may) i (?:help|assist)|(?:thank you|thanks) for calling|"
    r"anything else i can"
    r"|(?:i'm|i am) here to (?:help|assist)|happy to (?:help|assist) you"
    r"|ignore (?:all |any |your |the |my )?(?:previous|prior|earlier|above)|system prompt|developer mode|"
    r"you are now (?:in |a |an |my )"
    r"|new instructions|<\|)"
)
_AGENTS: Final = frozenset("assistant agent system bot ai".split())
_QUESTIONING: Final = frozenset(
    """
    can could do does did is are will would should what what's where where's when when's who who's how how's
    why why's which may have has any anything
    """.split()
)
_ASSENTING: Final = frozenset("ok okay alright please yeah".split())
_TAGS: Final = re.compile(
    r"(?:right|correct|huh|isn't it|don't i|do i|am i|aren't i|isn't that right|is that right) $"
)
_TAKEN_BACK: Final = re.compile(
    r"(?:just kidding|only kidding|i'm kidding|kidding|just joking|i'm joking|not really|"
    r"or something like that maybe|i think"
    r"|i guess|i suppose|maybe|probably|i'm not sure|not sure|if|unless|until|for now maybe|in my dreams|"
    r"or not|or maybe"
    r"|on tv|in a game|in the game|in the movie|when i was|when we were|back then|at the time|"
    r"back in the day"
    r"|today|tonight|this week|this weekend|this month|tomorrow|said nobody|said no one|i wish|in theory) "
)
# What makes a home, a job or a diet one of a season, or one that was left.
_PASSING: Final = re.compile(
    r"(?:part of the|half (?:of )?the|some of the"
    r"|(?:in|during) (?:the )?(?:winter|summer|spring|autumn|fall)s?|as a (?:kid|child|teenager)"
    r"|(?:but|though|although) (?:then )?(?:i|we|they) (?:have )?(?:just |recently )?"
    r"(?:quit|left(?! (?:my|our|early|late|a|an|some|something|the (?!company|firm)) )|resigned|retired"
    r"|moved (?:away|out)|(?:got|was|were) (?:fired|laid off)|let (?:me|us) go)) "
)
_PASSING_KEYS: Final = ("home", "employer", "workplace", "occupation", "industry", "diet:")
# What says that nothing before it holds, of whatever kind it is.
_UNSAID: Final = re.compile(
    r"(?:(?:just kidding|i'm kidding|kidding|not really|if|unless|(?:or|but|or at least) i used to) "
    r"|not $)"
)
# The same, but of what was denied anyway it is only said once more: "I don't live there, not any more".
_ENDED: Final = re.compile(r"(?:no more|(?:but )?not (?:now|any ?more)) ")
_JOKE: Final = re.compile(r"(?:no )?(?:(?:i'm |i am )?(?:just |only )?(?:kidding|joking)|not really) ")
_TIMELESS: Final = (
    "contact_time",
    "no_contact_time",
    "requirement:",
    "decision:",
    "note:",
    "phone",
    "email",
    "preference:",
)


def by_an_agent(utterance: Sequence[Sentence]) -> bool:
    """Whether the words are an assistant's, or meant to instruct one."""
    first = utterance[0] if utterance else None
    labelled = first is not None and first.low(0) in _AGENTS and len(first) > 1 and first.gap(1)
    return labelled or any(_AGENT.search(said.line) for said in utterance)


def greets(said: Sentence) -> bool:
    """Whether the sentence is nothing but a greeting."""
    words = [token.low for token in said.tokens]
    return not GREETINGS.isdisjoint(words) and all(word in _CONNECTING for word in words)


class Ground:
    """Where in one sentence a clause of the speaker's own may begin. Computed once, in one pass."""

    def __init__(self, said: Sentence, *, greeted: bool) -> None:
        self._said = said
        self._vouched = _ends_of(_VOUCHING, said)
        self._shadow = _shadow(said)
        self._greeting = _greeting(said, greeted=greeted)

    def greeted(self, index: int) -> bool:
        """Whether only a greeting and small words come before `index`."""
        return index <= self._greeting

    def vouch(self, index: int) -> None:
        """Let a clause begin at `index`, whatever stands before it."""
        self._vouched.add(index)

    def bears(self, index: int, *, firm: bool, value_end: int, asked: bool = False) -> bool:
        """Whether a rule may begin at `index`.

        Args:
            index: the first word of the trigger.
            firm: whether the trigger is plain enough to begin anywhere but after a word that forbids it.
            value_end: where the value read last ended: a new clause may begin right there.
            asked: whether the trigger is a request, which a shadow does not touch.
        """
        said = self._said
        if said.tokens[index].quoted:
            return False
        if index in self._vouched:
            return True
        if self._shadow[index] and not asked:
            return False
        before = said.low(index - 1)
        if index in (0, value_end):
            return True
        if before in _FORBIDDING:
            return False
        thanked = (said.low(index - 2), before) == ("thank", "you")
        return firm or said.tokens[index].gap or thanked or before in _CONNECTING


def _shadow(said: Sentence) -> list[bool]:
    """For each word, whether a supposition or somebody else's words reach over it."""
    harmless = _covered(_HARMLESS, said)
    starts = set(_ends_of(_SHADOWS, said))
    shadow: list[bool] = []
    dark = False
    for index, token in enumerate(said.tokens):
        dark = (dark or index in starts) and token.low not in _LIFTING
        shadow.append(dark)
        dark = dark or (token.low in _SHADOWING and index not in harmless)
    return shadow


def _covered(pattern: re.Pattern[str], said: Sentence) -> set[int]:
    found: set[int] = set()
    for match in _matches(pattern, said):
        start, end = said.at[match.start()], said.at[match.end()]
        found.update(range(start, end))
    return found


def _ends_of(pattern: re.Pattern[str], said: Sentence) -> set[int]:
    harmless = _covered(_HARMLESS, said) if pattern is _SHADOWS else set()
    return {
        said.at[match.end()] for match in _matches(pattern, said) if said.at[match.start()] not in harmless
    }


def _matches(pattern: re.Pattern[str], said: Sentence) -> list[re.Match[str]]:
    """Matches that begin and end with a word."""
    return [m for m in pattern.finditer(said.line) if m.start() in said.at and m.end() in said.at]


def _greeting(said: Sentence, *, greeted: bool) -> int:
    """The last word before which there is only a greeting; -1 where there is none."""
    seen = greeted
    for index, token in enumerate(said.tokens):
        seen = seen or token.low in GREETINGS
        if token.low not in _CONNECTING:
            return index if seen else -1
    return -1


def withdrawn(said: Sentence, end: int, key: str, *, denied: bool = False) -> bool:
    """Whether what follows a value at `end` makes it a question, a joke, a guess or a passing state.

    Args:
        said: the sentence.
        end: the word after the value.
        key: of the value.
        denied: whether the value was denied ("I don't live in Rome").
    """
    if end >= len(said):
        return said.question
    line = said.line
    offset = said.starts[end]
    if _TAGS.match(line, offset):
        return True
    if _UNSAID.match(line, offset) or (not denied and _ENDED.match(line, offset)):
        return True
    if key.startswith(_PASSING_KEYS) and _PASSING.match(line, offset):
        return True
    if _TAKEN_BACK.match(line, offset) and not key.startswith(_TIMELESS):
        return True
    return said.question and not _asks_later(said, end)


def _asks_later(said: Sentence, end: int) -> bool:
    """Whether the question is a later clause, or only asks for assent: "I'm Ana, can you help me?"."""
    rest = [said.low(index) for index in range(end, min(len(said), end + 40))]
    return not _QUESTIONING.isdisjoint(rest) or said.low(len(said) - 1) in _ASSENTING


def jokes(said: Sentence) -> bool:
    """Whether the sentence says that the one before was a joke."""
    return said.match(_JOKE, 0) is not None


__all__ = ["GREETINGS", "Ground", "by_an_agent", "greets", "jokes", "withdrawn"]
