"""Reads what an utterance says of its speaker, sentence by sentence.

Every word is tried as the beginning of a clause of the speaker's own: the guards decide whether it is one,
the rules what it says, and corrections what of it still holds. A short answer to a question about the speaker
("And how old are you?" – "Seventy four.") is first put behind the words the question asks for (`completed`).
English only: nothing is understood of other languages, though names in any script survive.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from echoic.english import commands, facts, phrases, preferences
from echoic.english.corrections import corrected, given_up, repaired, retracted, settled
from echoic.english.lexicon import pattern, table
from echoic.english.sentences import (
    Ground,
    Sentence,
    by_an_agent,
    greets,
    jokes,
    sentences,
    staged,
    withdrawn,
)
from echoic.english.slots import (
    Rule,
    RuleReading,
    SelfStatement,
    Spot,
    emptied,
    emptied_item,
    index_of,
    retraction,
    rules_of,
)

RULES: Final = rules_of({"facts": facts, "preferences": preferences})
"""In the order they are tried at a word; the first that reads a value wins."""

_BY_WORD: Final = index_of(RULES)
# Characters looked at of one utterance: as much as one may hold. More is not speech.
_MAX_CHARACTERS: Final = 32 * 1024
# Words, and characters, before a correction that may say what it corrects. Keeps hearing linear.
_BEHIND: Final = 60
_BEHIND_CHARACTERS: Final = 400
_ONLY: Final = re.compile(r"\b(?:just|only) ")


def listen(text: str, previous: Sequence[SelfStatement] = (), since: str = "") -> list[SelfStatement]:
    """What `text` says of its speaker, as keyed memories, in the order it was said.

    Args:
        text: one utterance of the user, as a recogniser wrote it: with or without capitals and punctuation.
            Only the first 32768 characters are looked at.
        previous: what `listen` gave for the turn or two before this one, oldest first: "actually it's Paula"
            corrects the last of it, "forget that" takes all of it back.
        since: what the user said behind the last of `previous`, of which nothing was heard: after "book me a
            flight to Paris" it is Paris that "actually London" corrects, not where they live.

    Returns:
        One entry per key. Empty if nothing is certain enough: questions, suppositions, other people's words,
        passing states and jokes yield nothing. No text makes it raise.
    """
    storable = text[:_MAX_CHARACTERS].encode(errors="ignore").decode()  # lone surrogates cannot be kept
    spoken = sentences(storable)
    if by_an_agent(spoken) or staged(spoken):
        return []
    hearing = _Hearing(previous, since)
    for said in spoken:
        hearing.hear(said)
    return hearing.result()


class _Hearing:
    """One utterance being heard."""

    def __init__(self, previous: Sequence[SelfStatement], since: str) -> None:
        self._previous = list(previous)
        self._since = since[-_BEHIND_CHARACTERS:]
        self._heard: list[SelfStatement] = []
        self._greeted = False
        self._hushed = False
        self._hushes_only = True

    def result(self) -> list[SelfStatement]:
        """What remains of everything heard."""
        if self._hushed:
            return retracted(self._previous) if self._hushes_only else []
        return settled(self._heard)

    def hear(self, said: Sentence) -> None:
        """Take in one sentence."""
        said = repaired(said)
        if jokes(said):
            self._heard.clear()
        self._hushed = self._hushed or commands.hushed(said)
        self._hushes_only = self._hushes_only and commands.only_hushes(said)
        passage = _Passage(said, self._previous, self._heard, self._since, greeted=self._greeted)
        passage.read()
        self._since = passage.since(len(said))
        self._greeted = greets(said)


class _Passage:
    """One sentence being read from left to right."""

    def __init__(
        self,
        said: Sentence,
        previous: list[SelfStatement],
        heard: list[SelfStatement],
        since: str,
        *,
        greeted: bool,
    ) -> None:
        self._said = said
        self._since = since
        self._previous = previous
        self._heard = heard
        self._ground = Ground(said, greeted=greeted)
        self._value_end = -1
        self._forgetting = False
        self._requested = False
        self._led = phrases.condition_before(said)
        """The condition that the sentence begins with, and where its main clause does."""

    def read(self) -> None:
        index, end = 0, len(self._said)
        while index < end:
            index = self._command(index) or self._correction(index) or self._statement(index) or index + 1

    def since(self, index: int) -> str:
        """What was said between the last value and the word `index`, as far as a correction may reach."""
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
        wanted = commands.forgotten(said, index)
        if wanted:
            return self._forget(*wanted)
        start = commands.remembered(said, index)
        if start is None or (said.question and said.low(index) not in {"can", "could", "will", "would"}):
            return None
        self._requested = True
        return self._clause(start)

    def _clause(self, start: int) -> int:
        """Hear the clause at `start`; what no rule understands in it is kept as it was said."""
        self._ground.vouch(start)
        before = len(self._heard)
        index = start
        while index < len(self._said):
            index = self._statement(index) or index + 1
        if len(self._heard) == before:
            kept = commands.note(self._said, start)
            if kept:
                self._add((kept,))
        return len(self._said)

    def _forget(self, what: str, end: int) -> int:
        if what == "all":
            heard = list(self._heard)
            self._heard[:] = retracted([*self._previous, *heard])
        elif what.startswith("slot:"):
            self._heard.append(emptied(what.removeprefix("slot:")))
        elif what.startswith("item:"):
            self._heard.append(emptied_item(what.removeprefix("item:")))
        else:
            self._forgetting = True
            return self._clause(end)
        return end

    def _correction(self, index: int) -> int | None:
        """Where to go on after a correction of what was said last."""
        begins = index in (0, self._value_end) or self._said.gap(index)
        if not begins or self._said.tokens[index].quoted:
            return None
        repair = corrected(self._said, index, self._heard or self._previous, self.since(index))
        if repair is None:
            if index == self._value_end and self._heard and given_up(self._said, index):
                self._heard.pop()
            return None
        if withdrawn(self._said, repair.end, repair.heard[-1].key):
            return None
        self._heard.extend(repair.heard)
        self._value_end = repair.end
        return repair.end

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
        """Add what was read, unless the rest of the sentence takes it back; where it ended, if understood."""
        said = self._said
        asked = rule.request or self._requested
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
        """`reading` with the condition that was said with it; None where it cannot hold under one."""
        start = self._said.at.get(spot.match.start())
        led = self._led[0] if self._led and start == self._led[1] else None
        able = not denied and all(one.key.startswith(phrases.CONDITIONAL_KEYS) for one in reading.heard)
        if not able:
            return None if led and not self._ground.bears(start or 0, firm=False, value_end=-1) else reading
        behind = phrases.condition_after(self._said, reading.end)
        context, end = behind or (None, reading.end)
        heard = tuple(
            replace(one, context=context or led or phrases.condition_within(one.text))
            for one in reading.heard
        )
        return RuleReading(heard, end)

    def _add(self, heard: tuple[SelfStatement, ...]) -> None:
        self._heard.extend(retraction(one) if self._forgetting else one for one in heard)


MOST_WORDS: Final = 12
"""Words of an answer, up to the first comma where it is longer: more stands by itself."""
_OPENINGS: Final = tuple((re.compile(asked), words) for asked, words in table("answers.openings").items())
_LEADING: Final = pattern("answers.leading")
# What is no answer: a refusal, a question, or a statement that stands by itself.
_NO_ANSWER: Final = pattern("answers.no_answer")


def completed(question: str, answer: str) -> str:
    """`answer` with its first sentence as a statement; as it was said where `question` gives it no meaning.

    Args:
        question: what the agent said right before; its last sentence counts.
        answer: what the speaker said.
    """
    asked, said = sentences(question)[-1:], sentences(answer)
    opening = _opening(asked[0]) if asked else ""
    statement = _stated(opening, said[0]) if opening and said else ""
    if not statement:
        return answer
    rest = [one.text(0, len(one)) + ("?" if one.question else ".") for one in said[1:]]
    return " ".join([statement + ".", *rest])


def _opening(asked: Sentence) -> str:
    for found, words in _OPENINGS:
        if match := found.search(asked.line):
            return words.format(**match.groupdict())
    return ""


def _stated(opening: str, said: Sentence) -> str:
    """The opening and the answer, without a preposition twice: "I live in", "in Bristol"."""
    leading = _LEADING.match(said.line)
    start = said.at.get(leading.end(), 0) if leading else 0
    last = opening.rpartition(" ")[2]
    start += said.low(start) == last or (last == "in" and said.low(start) in {"at", "near", "on"})
    end = len(said)
    if end - start > MOST_WORDS:
        end = next((at for at in range(start + 1, end) if said.gap(at)), end)
    if said.question or not 0 < end - start <= MOST_WORDS or said.match(_NO_ANSWER, start):
        return ""
    behind = f". {said.text(end, len(said))}" if end < len(said) else ""
    return f"{opening} {said.text(start, end)}{behind}"
