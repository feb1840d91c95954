"""Reads what an utterance says about its speaker, sentence by sentence.

Every word is tried as the beginning of a clause about the speaker, which a rule reads and a correction may
replace. Before a rule, `Ground` decides whether such a clause begins here; after it, `withdrawn` decides
whether the rest of the sentence retracts it: suppositions, questions, quotations, jokes and an agent's words
do not count. Requests to the memory itself ("remember this", "forget that", "do not write this down") are
read here as well.

English only: other languages are not understood, though names in any script survive.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from echoic.english import facts, phrases, preferences
from echoic.english.corrections import (
    corrected,
    given_up,
    of_another,
    own_value,
    repaired,
    retracted,
    settled,
)
from echoic.english.facts import PEOPLE, relation
from echoic.english.lexicon import AUXILIARIES, GIVEN, pattern, source, table, words
from echoic.english.preferences import PLURALS, names_allergy
from echoic.english.sentences import CONNECTING, GREETINGS, Sentence, sentences
from echoic.english.slots import (
    Rule,
    RuleReading,
    SelfStatement,
    Spot,
    emptied,
    emptied_item,
    hear,
    index_of,
    retraction,
    rules_of,
)

RULES: Final = rules_of({"facts": facts, "preferences": preferences})
"""In the order they are tried at a word; the first that reads a value wins."""

_BY_WORD: Final = index_of(RULES)
# Characters of one utterance that are read, its maximum size.
_MAX_CHARACTERS: Final = 32 * 1024
# Words, and characters, before a correction that may say what it corrects. Keeps hearing linear.
_BEHIND: Final = 60
_BEHIND_CHARACTERS: Final = 400
_ONLY: Final = re.compile(r"\b(?:just|only) ")

# Requests to the memory itself.
_REMEMBER: Final = pattern("requests.remember")
_FORGET: Final = pattern("requests.forget")
# "Delete" also applies to letters and orders, so it needs an object of a known kind.
_DELETE: Final = pattern("requests.delete")
_ALL: Final = pattern("requests.all")
_SCRATCH: Final = re.compile(r"(?:please )?(?:scratch|strike) that $")
# "The phone rings, ignore that" takes nothing back: these are a sentence by themselves.
_IGNORE: Final = re.compile(rf"(?:(?:please|just|can you|could you) )?{source('requests.scratch')} $")
_HUSH: Final = pattern("requests.hush")
_HABIT: Final = pattern("requests.habit")
_OFTEN: Final = frozenset("always just then often still".split())
_SLOT: Final = pattern("requests.slot")
_ITEM: Final = pattern("requests.item")
_SLOTS: Final = table("requests.slots")
_NOT_ASKED: Final = words("requests.not_asked")
_ADVERBS: Final = words("requests.adverbs")
_SECRET: Final = words("requests.secret")
_PLURAL_SUBJECT: Final = pattern("requests.plural_subject")
_NO_MEMORY: Final = pattern("requests.no_memory")
_GOES_ON: Final = pattern("requests.goes_on")
_HUSH_WORDS: Final = 5
"""Words of "please don't write down that": a longer sentence says something else as well."""
_POLITE_REST: Final = frozenset(["", "please", "thanks", "now", "too", "for me"])
# What a clause to remember begins with. "Remember that time …" looks back, "remember that anything is
# possible" gives advice, "remember to call" is an errand and "remember that you must …" an order.
_OWN: Final = words("requests.own")
_OWN_CLAUSE: Final = pattern("requests.own_clause")
_SUBJECTS: Final = _OWN | frozenset(
    "the a an his her their he she they he's she's they're there's there".split()
)
_ORDERS: Final = pattern("requests.orders")
_MY: Final = re.compile(r"(?:my|our) (?P<thing>[a-z' -]{2,40}?) (?:is|are) ")

# What is no statement of the speaker's own.
# Words that make what follows a question, a relative clause, a hedge or somebody's words.
_FORBIDDING: Final = words("guards.forbidding")
_SHADOWING: Final = words("guards.shadowing")
# Subjects of a short answer: "I don't", "it isn't". Others may end a clause too: "how old he is, my lad".
_ALONE: Final = frozenset({"i", "we"})
_OTHERS: Final = frozenset("it that this he she they".split())
_LIFTING: Final = frozenset("but anyway anyways however".split())
# Phrases that start a supposition though none of their words does.
_SHADOWS: Final = pattern("guards.shadows")
# Phrases that do not, though their words do: polite conditions and the speaker's own insistence.
_HARMLESS: Final = pattern("guards.harmless")
# Phrases after which the speaker means what follows.
_VOUCHING: Final = pattern("guards.vouching")
_AGENT: Final = pattern("guards.agent")
_STAGED: Final = pattern("guards.staged")
_AGENTS: Final = frozenset("assistant agent system bot ai".split())
_QUESTIONING: Final = words("guards.questioning")
_ASSENTING: Final = frozenset("ok okay alright please yeah hello".split())
_TAGS: Final = pattern("guards.tags")
_TAKEN_BACK: Final = pattern("guards.taken_back")
# Words that make a home, a job or a diet temporary or past.
_PASSING: Final = pattern("guards.passing")
_PASSING_KEYS: Final = ("home", "employer", "workplace", "occupation", "industry", "diet:")
# Words that retract everything before them, of any kind.
_UNSAID: Final = pattern("guards.unsaid")
# The same, but after a denial they only repeat it: "I don't live there, not any more".
_ENDED: Final = re.compile(r"(?:no more|(?:but )?not (?:now|any ?more)) ")
_OF_FAMILY: Final = re.compile(r"in (?:the|our|my) family ")
# What happened once is under no condition: "in summer we moved to York".
_EVENT: Final = re.compile(r"\b(?:moved|started|got|quit|left|lost|been|lived|worked) ")
_JOKE: Final = pattern("guards.joke")
# Words that restrict a denial to a part of the time.
_LIMITED: Final = pattern("guards.limited")
_TIMELESS: Final = tuple(
    """contact_time no_contact_time requirement: decision: note: phone work_phone home_phone email work_email
    preference:""".split()
)


def listen(
    text: str, previous: Sequence[SelfStatement] = (), since: str = "", asked: str = ""
) -> list[SelfStatement]:
    """The keyed memories that `text` states about its speaker, in spoken order.

    Args:
        text: one utterance of the user, as a recogniser wrote it: with or without capitals and punctuation.
            Only the first 32768 characters are read.
        previous: the results of `listen` for the previous turn or two, oldest first: "actually it's Paula"
            corrects the last of it, "forget that" retracts all of it.
        since: what the user said after the last of `previous` without any result: after "book me a flight to
            Paris", "actually London" corrects Paris, not the user's home.
        asked: what the agent said directly before: so does "no, London" after "you'd like to fly to Paris?".

    Returns:
        One entry per key. Empty if nothing is certain enough: questions, suppositions, quotations, passing
        states and jokes yield nothing. No text makes it raise.
    """
    storable = text[:_MAX_CHARACTERS].encode(errors="ignore").decode()  # lone surrogates cannot be kept
    spoken = _joined(sentences(storable))
    spoken = [
        facts.who_is_called(said, before) for before, said in zip([None, *spoken], spoken, strict=False)
    ]
    if by_an_agent(spoken) or staged(spoken):
        return []
    hearing = _Hearing(previous, since, asked)
    for said in spoken:
        hearing.hear(said)
    return hearing.result()


def _joined(spoken: Sequence[Sentence]) -> list[Sentence]:
    """`spoken` with "I'm allergic to them" as a part of the sentence before it, which names what is meant."""
    joined = list(spoken[:1])
    for before, said in pairwise(spoken):
        if names_allergy(said, 0) and not (said.question or before.question or names_allergy(before, 0)):
            pointing = (replace(said.tokens[0], gap=True), *said.tokens[1:])
            joined[-1] = Sentence((*before.tokens, *pointing), said.cased, question=False)
        else:
            joined.append(said)
    return joined


class _Hearing:
    """The state of reading one utterance."""

    def __init__(self, previous: Sequence[SelfStatement], since: str, asked: str) -> None:
        self._previous = list(previous)
        self._since = since[-_BEHIND_CHARACTERS:]
        self._asked = asked[-_BEHIND_CHARACTERS:]
        self._heard: list[SelfStatement] = []
        self._greeted = False
        self._hushed = False
        self._hushes_only = True
        self._others: SelfStatement | None = None
        """What was said to be somebody else's at the end of the sentence before."""

    def result(self) -> list[SelfStatement]:
        """The final result of everything read."""
        if self._hushed:
            return retracted(self._previous) if self._hushes_only else []
        return settled(self._heard)

    def hear(self, said: Sentence) -> None:
        """Read one sentence."""
        said = repaired(said)
        if jokes(said):
            self._heard.clear()
        self._hushed = self._hushed or hushed(said)
        self._hushes_only = self._hushes_only and only_hushes(said)
        passage = _Passage(said, self._previous, self._heard, self._since, self._asked, greeted=self._greeted)
        passage.read(self._others)
        self._others = passage.others
        self._since = passage.since(len(said))
        self._greeted = greets(said)


class _Passage:
    """One sentence, read from left to right."""

    def __init__(
        self,
        said: Sentence,
        previous: list[SelfStatement],
        heard: list[SelfStatement],
        since: str,
        asked: str,
        *,
        greeted: bool,
    ) -> None:
        self._said = said
        self._since = since
        self._asked = asked
        self._previous = previous
        self._heard = heard
        self._ground = Ground(said, greeted=greeted)
        self._value_end = -1
        self._forgetting = False
        self._requested = False
        self._led = phrases.condition_before(said)
        """The condition at the beginning of the sentence, and where its main clause begins."""
        self.others: SelfStatement | None = None
        """What is said to be somebody else's, without the speaker's own value."""

    def read(self, others: SelfStatement | None) -> None:
        """Read the sentence; `others` is what the one before said to be somebody else's."""
        index, end = self._own(0, others), len(self._said.tokens)
        while index < end:
            index = self._command(index) or self._correction(index) or self._statement(index) or index + 1

    def since(self, index: int) -> str:
        """The words between the last value and the word `index`, as far back as a correction may reach."""
        first = max(self._value_end, index - _BEHIND)
        here = self._said.text(first, index) if first < index else ""
        if self._value_end >= 0:
            return here
        return f"{self._since}\n{here}"[-_BEHIND_CHARACTERS:] if index else self._since

    def _command(self, index: int) -> int | None:
        """Where to go on after a request to remember or forget at `index`."""
        said = self._said
        if not self._ground.bears(index, firm=False, value_end=self._value_end):
            return None
        wanted = forgotten(said, index)
        if wanted:
            return self._forget(*wanted)
        start = remembered(said, index)
        if start is None or (said.question and said.low(index) not in {"can", "could", "will", "would"}):
            return None
        self._requested = True
        return self._clause(start)

    def _clause(self, start: int) -> int:
        """Read the clause at `start`; if no rule understands it, it is stored as said."""
        self._ground.vouch(start)
        before = len(self._heard)
        index = start
        while index < len(self._said):
            index = self._statement(index) or index + 1
        if len(self._heard) == before:
            kept = note(self._said, start)
            if kept:
                self._add((kept,))
        return len(self._said)

    def _forget(self, what: str, end: int) -> int:
        if what == "all":
            heard = list(self._heard)
            self._heard[:] = retracted([*self._previous, *heard])
        elif what.startswith("slot:"):
            self._heard.extend(map(emptied, what.removeprefix("slot:").split()))
        elif what.startswith("item:"):
            self._heard.append(emptied_item(what.removeprefix("item:")))
        else:
            self._forgetting = True
            return self._clause(end)
        return end

    def _own(self, index: int, others: SelfStatement | None) -> int:
        """Where to go on after the speaker's own value in place of `others`, or `index` without one."""
        found = own_value(self._said, index, others) if others else None
        self.others = None if found or index == 0 else others
        if found is None:
            return index
        self._heard.extend(found.heard)
        self._value_end = found.end
        return found.end

    def _correction(self, index: int) -> int | None:
        """Where to go on after a correction of the last statement."""
        token = self._said.tokens[index]
        if token.quoted or not (index in (0, self._value_end) or token.gap):
            return None
        asked = "" if self._heard else self._asked
        spoken = (self._said, index, self._heard or self._previous, self.since(index), asked)
        taken = of_another(*spoken)
        repair = taken or corrected(*spoken)
        if repair is None:
            if index == self._value_end and self._heard and given_up(self._said, index):
                self._heard.pop()
            return None
        if withdrawn(self._said, repair.end, repair.heard[-1].key):
            return None
        self._heard.extend(repair.heard)
        self._value_end = repair.end
        return self._own(repair.end, repair.heard[0] if taken else None)

    def _statement(self, index: int) -> int | None:
        """Where to go on after a statement at `index`, if a rule reads one there."""
        elided = self._elided(index)
        for rule in RULES if elided else _BY_WORD.get(self._said.tokens[index].low, ()):
            spot = self._spot(rule, index, elided=elided)
            reading = rule.read(spot) if spot else None
            end = self._keep(rule, spot, reading) if spot and reading else None
            if end is not None:
                self._value_end = end
                return max(end, index + 1)
        return None

    def _elided(self, index: int) -> bool:
        """Whether the "i" of the last clause carries over: "I live in Oslo and work for …"."""
        return index > 1 and index - 1 == self._value_end and self._said.low(index - 1) in {"and", "but"}

    def _spot(self, rule: Rule, index: int, *, elided: bool) -> Spot | None:
        said = self._said
        match = rule.trigger.match(said.line, said.starts[index])
        end = said.at.get(match.end()) if match else None
        if match is None and elided and rule.elides:
            offset = said.starts[index]
            match = rule.trigger.match("i " + said.line[offset : offset + 120])
            end = said.at.get(offset + match.end() - 2) if match else None
        elif match and not (
            self._leads_to(index)
            or self._ground.bears(index, firm=rule.firm, value_end=self._value_end, asked=rule.request)
        ):
            return None
        if match is None or end is None:
            return None
        return Spot(said, match, end, self._ground.greeted(index))

    def _leads_to(self, index: int) -> bool:
        return self._led is not None and self._led[1] == index

    def _keep(self, rule: Rule, spot: Spot, reading: RuleReading) -> int | None:
        """Add a rule's result unless the sentence retracts it; returns where it ended."""
        said = self._said
        asked = rule.request or rule.presumed or self._requested
        denied = spot.match.groupdict().get("no") is not None
        conditioned = self._conditioned(spot, reading, denied=denied)
        if conditioned is None:
            return None
        reading = conditioned
        taken_back = withdrawn(said, reading.end, reading.heard[-1].key, denied=denied)
        if taken_back and not (asked and said.question):
            return None
        if denied:
            if _ONLY.search(spot.match.group()):
                return None
            self._heard.extend(retraction(one) for one in reading.heard)
        else:
            self._add(reading.heard)
        return reading.end

    def _conditioned(self, spot: Spot, reading: RuleReading, *, denied: bool) -> RuleReading | None:
        """`reading` with its condition; None if it cannot hold under one."""
        start = self._said.at.get(spot.match.start())
        led = self._led[0] if self._led and start == self._led[1] else None
        lasting = denied and not spot.match.group().rstrip().endswith((" job at", " job with"))
        if lasting and (phrases.condition_after(self._said, reading.end) or self._limits(reading.end)):
            return None  # "I don't live in Leeds all the time" denies only a part
        context, end = phrases.condition_after(self._said, reading.end) or (None, reading.end)
        # "in summer I live in Leeds, in winter in Malaga" is kept as said
        when = context or (led if end == len(self._said) else None)
        when = None if _EVENT.search(spot.match.group()) else when
        able = not denied and all(phrases.holds_condition(one.key, when) for one in reading.heard)
        if not able:
            return None if led and not self._ground.bears(start or 0, firm=False, value_end=-1) else reading
        heard = tuple(
            replace(one, context=context or led or phrases.condition_within(one.text), ends=())
            for one in reading.heard
        )
        return RuleReading(heard, end)

    def _limits(self, end: int) -> bool:
        """Whether a restriction of time follows: "all the time", "at weekends"."""
        return self._said.match(_LIMITED, end) is not None

    def _add(self, heard: tuple[SelfStatement, ...]) -> None:
        # "forget that I live in Ghent, I live in Bruges" says what is so instead
        gone = {one.key for one in self._heard if one.retracts}
        self._heard.extend(
            retraction(one, deleted=True) if self._forgetting and one.key not in gone else one
            for one in heard
        )


def remembered(said: Sentence, at: int) -> int | None:
    """The word where the clause to remember starts, if the words at `at` ask for one."""
    asked = _REMEMBER.match(said.line, said.starts[at])
    if asked is None:
        return None
    start = said.at[asked.end()]
    if start >= len(said):
        return None
    low = said.low(start)
    named = low in GIVEN or (said.cased and said.tokens[start].capital)
    begins = low in _OWN or (bool(asked["that"]) and (low in _SUBJECTS or named))
    return start if begins else None


def asks_to_remember(said: Sentence) -> bool:
    """Whether a clause to remember starts anywhere in `said`."""
    return any(remembered(said, at) is not None for at in range(len(said)))


def note(said: Sentence, at: int) -> SelfStatement | None:
    """The clause at `at`, stored as said. "my locker code is …" has the locker code for its key."""
    kept = phrases.clause(said, at)
    addressed = {said.low(i) for i in range(at, len(said))} & {"you", "your", "you're", "yourself"}
    if kept is None or kept.end - at < 3 or addressed or _ORDERS.search(said.line, said.starts[at]):
        return None
    own = said.match(_MY, at)
    thing = own["thing"].split() if own else []
    named = bool(thing) and len(thing) <= 4 and thing[0] not in PEOPLE and AUXILIARIES.isdisjoint(thing)
    return hear("note", kept.text, item=" ".join(thing) if named else kept.text)


def forgotten(said: Sentence, at: int) -> tuple[str, int] | None:
    """What the words at `at` ask to forget: "all", "slot:home", "item:allergy:nuts" or "clause".

    With the word where it ends, or where the clause begins.
    """
    line, offset = said.line, said.starts[at]
    ignored = _IGNORE.match(line, offset) and all(token.low in CONNECTING for token in said.tokens[:at])
    if ignored or _SCRATCH.match(line, offset):
        return "all", len(said)
    asked = _FORGET.match(line, offset) or _DELETE.match(line, offset)
    start = said.at[asked.end()] if asked else len(said.tokens)
    if asked is None or (_complains(said, at) and not said.match(_ALL, start)):
        return None
    if said.match(_ALL, start):
        return "all", len(said)
    item = said.match(_ITEM, start)
    if item and item["rest"].strip() in _POLITE_REST:
        return f"item:{_item_key(item)}", len(said)
    slot = said.match(_SLOT, start)
    if slot and slot["rest"].strip() in _POLITE_REST:
        return "slot:" + _SLOTS[slot["noun"] or slot["clause"]], len(said)
    # "forget I live in Rome" asks the same as "forget that I do"
    that = said.low(start) == "that"
    clause = said.low(start + 1) in _SUBJECTS if that else said.match(_OWN_CLAUSE, start) is not None
    return ("clause", start + that) if clause else None


def _complains(said: Sentence, at: int) -> bool:
    """Whether "forget" at `at` says what happens to the speaker: "I get confused and forget where I live"."""
    while at and said.low(at - 1) in _OFTEN:
        at -= 1
    if said.low(at - 1) not in {"and", "but"} or said.gap(at - 1):
        return False
    return _HABIT.search(said.line, said.starts[max(0, at - 12)], said.starts[at]) is not None


def _item_key(asked: re.Match[str]) -> str:
    """The key of "my peanut allergy", "my favourite colour" or "my sister's name"."""
    if asked["kin"]:
        return f"{relation(asked['kin']).replace(' ', '_')}_name"
    if asked["thing"]:
        return f"{'least_' if asked['least'] else ''}favourite:{phrases.slug(asked['thing'])}"
    what = asked["what"] or asked["to"]
    return f"allergy:{phrases.slug(PLURALS.get(what, what))}"


def hushed(said: Sentence) -> bool:
    """Whether the sentence asks not to keep what is being said."""
    return _hush(said) is not None


def only_hushes(said: Sentence) -> bool:
    """Whether the sentence asks for nothing else, so that it refers to what was said before."""
    found = _hush(said)
    return bool(found and found["keep"]) and said.match(_HUSH, 0) is not None and len(said) <= _HUSH_WORDS


def _hush(said: Sentence) -> re.Match[str] | None:
    """The first request in `said` not to keep what is being said."""
    asks = (found for found in _HUSH.finditer(said.line) if found.start() in said.at)
    return next((found for found in asks if _is_hush(said, found)), None)


def _is_hush(said: Sentence, found: re.Match[str]) -> bool:
    """Whether the words `found` ask for it: not "I really don't remember that", "don't keep it warm"."""
    start = said.at[found.start()]
    if not found["keep"]:
        # where no comma is written, "I'm Ana between us" may be one left out
        leads = not said.cased or said.gap(start) or said.low(start - 1) in CONNECTING | _SECRET
        between = "between" in found.group() and not found.group().startswith("keep")
        return said.low(start - 1) not in _NOT_ASKED and (leads or not between)
    subject = start
    while subject and said.low(subject - 1) in _ADVERBS and not said.gap(subject):
        subject -= 1
    line, near = said.line, said.starts[max(0, subject - 5)]
    if said.low(subject - 1) in _NOT_ASKED or _PLURAL_SUBJECT.search(line, near, said.starts[subject]):
        return False
    if _NO_MEMORY.search(line, said.starts[max(0, start - 1)], found.end() + 20):
        return False
    end = said.at.get(found.end() + 1, len(said))
    return said.gap(end) or said.match(_GOES_ON, end) is None


def by_an_agent(utterance: Sequence[Sentence]) -> bool:
    """Whether an assistant says this, or somebody who instructs one."""
    first = utterance[0] if utterance else None
    labelled = first is not None and first.tokens[0].low in _AGENTS and len(first) > 1 and first.gap(1)
    return labelled or any(_AGENT.search(said.line) for said in utterance)


def staged(utterance: Sequence[Sentence]) -> bool:
    """Whether it is sung, acted or broadcast, so that nothing in it is meant."""
    return any(_STAGED.search(said.line) for said in utterance)


def greets(said: Sentence) -> bool:
    """Whether the sentence is only a greeting."""
    words = [token.low for token in said.tokens]
    return not GREETINGS.isdisjoint(words) and all(word in CONNECTING for word in words)


class Ground:
    """The positions in one sentence where a clause about the speaker may begin."""

    def __init__(self, said: Sentence, *, greeted: bool) -> None:
        self._said = said
        self._vouched = _ends_of(_VOUCHING, said)
        self._shadow = _shadow(said)
        self._greeting = _greeting(said, greeted=greeted)

    def greeted(self, index: int) -> bool:
        """Whether only a greeting and small words come before `index`."""
        return index <= self._greeting

    def vouch(self, index: int) -> None:
        """Allow a clause to begin at `index`, whatever precedes it."""
        self._vouched.add(index)

    def bears(self, index: int, *, firm: bool, value_end: int, asked: bool = False) -> bool:
        """Whether a rule whose trigger begins at `index` may apply.

        `firm` triggers may begin anywhere except after a word that forbids it. A new clause may begin at
        `value_end`, where the last value ended. `asked`: the trigger is a request, which suppositions do not
        affect.
        """
        said = self._said
        if said.tokens[index].quoted:
            return False
        if index in self._vouched:
            return True
        if self._shadow[index] and not asked:
            return False
        if index in (0, value_end):
            return True
        before = said.tokens[index - 1].low
        if before in _FORBIDDING and not self._answered(index):
            return False
        thanked = before == "you" and said.low(index - 2) == "thank"
        return firm or said.tokens[index].gap or thanked or before in CONNECTING

    def _answered(self, index: int) -> bool:
        """Whether a short answer ends before `index`: "no, I don't, I live in …"."""
        said, subject = self._said, index - 2
        if not said.tokens[index].gap or said.low(index - 1) not in AUXILIARIES:
            return False
        alone = said.gap(subject) or said.low(subject - 1) in CONNECTING
        return said.low(subject) in _ALONE or (said.low(subject) in _OTHERS and alone)


def _shadow(said: Sentence) -> list[bool]:
    """For each word, whether a supposition or a quotation covers it."""
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
    """The last word before which there is only a greeting; -1 without one."""
    seen = greeted
    for index, token in enumerate(said.tokens):
        seen = seen or token.low in GREETINGS
        if token.low not in CONNECTING:
            return index if seen else -1
    return -1


def withdrawn(said: Sentence, end: int, key: str, *, denied: bool = False) -> bool:
    """Whether the words after a value at `end` make it a question, a joke, a guess or a passing state.

    `denied`: the value was denied ("I don't live in Rome").
    """
    asks = said.question and not (key.startswith("allergy:") and _asks_before(said, end))
    if end >= len(said):
        return asks
    takes_back = (
        said.match(_TAGS, end)
        or said.match(_UNSAID, end)
        or (not denied and said.match(_ENDED, end))
        or (key.startswith(_PASSING_KEYS) and said.match(_PASSING, end))
        or (key.startswith("allergy:") and said.match(_OF_FAMILY, end))
        or (not key.startswith(_TIMELESS) and said.match(_TAKEN_BACK, end))
    )
    return bool(takes_back) or (asks and not _asks_later(said, end))


def _asks_later(said: Sentence, end: int) -> bool:
    """Whether the question is a later clause, or only asks for assent: "I'm Ana, can you help me?"."""
    rest = [said.low(index) for index in range(end, min(len(said), end + 40))]
    return not _QUESTIONING.isdisjoint(rest) or said.low(len(said) - 1) in _ASSENTING


def _asks_before(said: Sentence, end: int) -> bool:
    """Whether the question is an earlier clause: "does it have nuts, I'm allergic to nuts?"."""
    start = next((at for at in range(end - 1, 0, -1) if said.gap(at)), 0)
    start += said.low(start) in {"because", "cause", "as", "and"}
    return start > 3 and said.low(0) in AUXILIARIES and said.low(start) in {"i", "i'm", "i've", "we're"}


def jokes(said: Sentence) -> bool:
    """Whether the sentence says that the previous one was a joke."""
    return _JOKE.match(said.line) is not None
