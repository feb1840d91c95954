"""An agent without a language model: it answers from memory by rules, and says when rules do not suffice.

Each turn stores what was said, learns from it, searches, answers, and stores the answer. It does not make
conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from echoic.english import listen
from echoic.english.sentences import sentences
from echoic.errors import InvalidInput
from echoic.memory.conversation import OpenConversation
from echoic.memory.forget_targets import MAX_TURNS
from echoic.memory.keyless.intents import (
    ANIMALS,
    YOU_TOLD_ME,
    Intent,
    QuestionSubject,
    Steps,
    TurnChanges,
    asked_of,
    intent_of,
    learn,
    learn_name,
    learned_in_words,
    listed,
    lowered,
    of_somebody,
    of_speaker,
    quoted,
    receipt_in_words,
    said_back,
    somebody_in,
)
from echoic.memory.user import UserMemory
from echoic.ranking.relevance import TIMED, is_phatic
from echoic.temporal import said_at
from echoic.text import content_stems
from echoic.types import Hit, Memory, Recall, Receipt, Turn, checked_text

UNKNOWN: Final = "I don't know that. You haven't told me, as far as I can find."
NOT_LOOKED: Final = "I couldn't look everywhere just now, so I can't say. Please ask me again in a moment."
NOTHING_AT_ALL: Final = "Nothing yet. Tell me something about yourself, and I'll keep it."
_NEAR: Final = 0.45
"""Cosine of the local model from which a sentence is on the same subject; in published MiniLM evaluations
paraphrases score higher, and unrelated pairs under 0.3."""
_LIKELY: Final = 0.1
"""Relevance below which a memory is on another subject, though it shares words with the question."""
_MOST: Final = 12
"""Memories in one answer."""


def everything(facts: Sequence[Memory]) -> str:
    """What is known, as much as one can listen to."""
    if not facts:
        return NOTHING_AT_ALL
    said = listed(said_back(memory) for memory in facts[-_MOST:])
    rest = len(facts) - _MOST
    more = f" And {rest} more; the list has them all." if rest > 0 else ""
    return f"I remember this: {said}{more}"


def of_slot(asked: QuestionSubject, question: str, facts: Sequence[Memory]) -> str:
    """The answer from the slot asked for; empty if it holds nothing."""
    words = content_stems(question)
    kinds = words & _KINDS
    # a question about a cat or a daughter is not answered by a dog or a son
    fitting = [memory for memory in facts if asked.means(memory.key) and not _of_another_kind(memory, kinds)]
    # "my dog's name": of all pets only dogs, if the kind is known
    closer = [memory for memory in fitting if words & content_stems(memory.statement or "")]
    chosen = closer or fitting
    if not chosen:
        return ""
    if asked.key is not None and asked.key.endswith(":"):
        chosen = [*chosen, *_said_besides(chosen, question, facts)]
    if len(chosen) == 1:
        return said_back(chosen[0])
    said = listed(said_back(memory) for memory in chosen[-_MOST:])
    return said[:1].upper() + said[1:]


def _said_besides(chosen: Iterable[Memory], question: str, facts: Iterable[Memory]) -> list[Memory]:
    """What the user said of themselves in all words of the question, and no rule has a key for."""
    words, told = content_stems(question), {turn for memory in chosen for turn in memory.source}
    return [
        memory
        for memory in facts
        if memory.key is None
        and words
        and words <= content_stems(memory.text)
        and told.isdisjoint(memory.source)
        and not of_somebody(memory.text, question)
    ]


def _of_another_kind(memory: Memory, kinds: frozenset[str]) -> bool:
    known = content_stems(memory.statement or "") & _KINDS
    return bool(kinds and known) and known.isdisjoint(kinds)


def of_the_past(versions: Sequence[Memory]) -> str:
    """What was known under a key before the current value, unless it was deleted; empty if nothing was."""
    past = [memory for memory in versions if not memory.current and not memory.deleted]
    return f"Before, you told me: {listed([said_back(past[-1])])}" if past else ""


def taken_back(versions: Sequence[Memory]) -> str:
    """Says that it was known and retracted, without repeating it; empty if it was not."""
    gone = versions and not versions[-1].current and versions[-1].superseded_by is None
    return "You asked me to no longer hold on to that." if gone else ""


def of_hits(asked: QuestionSubject, question: str, recall: Recall, *, holding: Iterable[Memory]) -> str:
    """The answer from the results of a search.

    For a slot that holds nothing, similar hits ("my wife lives in Rome", for "where do I live") are no
    answer. A turn is quoted only if what was learned from it is still in `holding`, the current memories.
    """
    held = {(memory.key, memory.text.casefold()) for memory in holding}
    nothing = UNKNOWN if recall.outcome == "complete" else NOT_LOOKED
    if asked.period:
        return _of_period(recall, held) or nothing
    words = content_stems(question)
    quotable = [
        hit
        for hit in recall.apart().hits
        if _quotable(hit, held)
        and _is_about(hit, asked.others, words)
        and not (asked.before and _holds_now(hit, asked))
    ]
    # memories are the briefest; quote a turn only if nothing was learned from it
    quotable.sort(key=lambda hit: hit.memory is None)
    # kept, but last and never as the answer: "my doctor gave me insulin" may be one, to "what do I take"
    of_whom = asked.own or bool(asked.others)
    theirs = [hit for hit in quotable if of_whom and of_somebody(_sentence_of(hit), question, asked.others)]
    own = [hit for hit in quotable if hit not in theirs]
    for hit in own:
        if words and words <= content_stems(_all_of(hit)) and (asked.key is None or hit.memory):
            return _said(hit)
    for hit in [*own, *theirs]:
        if _near(hit, words):
            return f"The closest I remember: {lowered(_said(hit))}"
    return nothing


def _of_period(recall: Recall, held: set[tuple[str | None, str]]) -> str:
    """What was said in the time that the question asks for; empty if nothing was."""
    timed = [part for part in recall.apart().hits if part.relevance == TIMED and not is_phatic(part.text)]
    parts = sorted((part for part in timed if _quotable(part, held)), key=said_at)
    turns = {part.turn.id for part in parts if part.turn is not None}
    # what was learned from a turn repeats it
    said = [_said(part) for part in parts if part.memory is None or turns.isdisjoint(part.memory.source)]
    if len(said) < 2:
        return "".join(said)
    rest = len(said) - _MOST
    return f"{listed(said[:_MOST])}{f' And {rest} more.' if rest > 0 else ''}"


def _is_about(hit: Hit, others: frozenset[str], words: frozenset[str]) -> bool:
    """Whether it may be about those whom the question is about.

    People are named as in the question. Of animals one also says "our spaniel", so that what has no slot and
    names nobody else may mean them if the search finds the same meaning.
    """
    told = _all_of(hit)
    kinds, named = content_stems(told) & _KINDS, somebody_in(told)
    if kinds and words & _KINDS and kinds.isdisjoint(words):
        return False
    if others <= named:
        return True
    if named or not others <= ANIMALS or not _means_it(hit) or of_speaker(_sentence_of(hit), words):
        return False
    return hit.memory.key is None if hit.memory is not None else not listen(hit.text, [])


def covering(what: str, hits: Iterable[Hit]) -> Memory | None:
    """The first keyed memory of the user's own that contains every word of `what`, or None."""
    words = content_stems(what)
    for hit in (each for found in hits for each in found.apart()):
        keyed = hit.memory is not None and hit.memory.key and hit.scope.user
        if keyed and words and words <= content_stems(_all_of(hit)):
            return hit.memory
    return None


def unkeyed(what: str, hits: Iterable[Hit], *, holding: Iterable[Memory]) -> list[Hit] | None:
    """The user's own memories without a key, and turns, that contain every word of `what`.

    None: one of these turns says something else as well, perhaps one of `holding`, the current memories.
    """
    words = content_stems(what)
    found = [
        hit
        for hit in (each for found in hits for each in found.apart())
        if hit.scope.user
        and words
        and words <= content_stems(_all_of(hit))
        and _quotable(hit, _heard_in(hit))
    ]
    cited = {name for memory in holding if memory.key is not None for name in memory.source}
    mixed = [hit for hit in found if hit.turn and (hit.turn.id in cited or _says_more(hit.text))]
    return None if mixed else found


def _says_more(text: str) -> bool:
    """Whether a turn may say two things: "I'm diabetic and my cupboard is full of chocolate"."""
    return len(sentences(text)) > 1 or _JOINED.search(text) is not None


def _heard_in(hit: Hit) -> set[tuple[str | None, str]]:
    return {(item.key, item.text.casefold()) for item in listen(hit.text, []) if not item.retracts}


def _quotable(hit: Hit, held: set[tuple[str | None, str]]) -> bool:
    if hit.memory is not None:
        return hit.memory.current
    if hit.turn is None or hit.turn.speaker != "user" or not hit.text or "?" in hit.text:
        return False
    # recognisers write no question marks; and do not repeat what was to be forgotten
    wanted = intent_of(hit.text)
    if wanted.question is not None or wanted.forget is not None or wanted.erase:
        return False
    heard = [item for item in listen(hit.text, []) if not item.retracts]
    return all((item.key, item.text.casefold()) in held for item in heard)


def _holds_now(hit: Hit, asked: QuestionSubject) -> bool:
    """Whether it gives the present value of the slot, which does not answer a question about the past."""
    if hit.memory is not None:
        return asked.means(hit.memory.key)
    return any(asked.means(heard.key) for heard in listen(hit.text, []))


def _near(hit: Hit, words: frozenset[str]) -> bool:
    if hit.relevance < _LIKELY:
        return False
    return _means_it(hit) or 2 * len(words & content_stems(_all_of(hit))) >= len(words) > 0


def _means_it(hit: Hit) -> bool:
    vector = hit.ranks.get("vector")
    return vector is not None and vector.score >= _NEAR


def _said(hit: Hit) -> str:
    if hit.memory is not None:
        return said_back(hit.memory)
    return f"{YOU_TOLD_ME}{quoted(hit.text)}"


def _sentence_of(hit: Hit) -> str:
    return (hit.memory.statement or hit.memory.text) if hit.memory is not None else hit.text


def _all_of(hit: Hit) -> str:
    if hit.memory is None:
        return hit.text
    parts = (hit.memory.key or "", hit.memory.text, hit.memory.statement or "", hit.memory.context or "")
    return " ".join(parts).replace("_", " ").replace(":", " ")


_KINDS: Final = content_stems("dog cat puppy kitten rabbit parrot hamster horse son daughter")


AGENT: Final = "keyless"
"""The agent's name in conversations."""
CONFIRM_ERASURE: Final = (
    "That would erase everything I keep about you: every memory and every word of every conversation. "
    "It cannot be undone. Shall I?"
)
KEPT: Final = "All right, I keep everything."
CONFIRM_FORGETTING: Final = "Shall I erase it for good?"
"""The question that ends a reply once a memory was hidden at the user's request."""
NOTHING_LIKE_IT: Final = "I find nothing like that to take back."
NO_LONGER: Final = "All right, I no longer go by that"
IN_HISTORY: Final = "It stays in your history, where only you can see it."
HIDDEN: Final = "All right. I don't go by it any more, and it stays in your history."
UNCLEAR: Final = (
    "I'm not sure what I should forget. Say in a few words what it was about, or when you told me."
)
NOTED: Final = (
    "I've kept that word for word. My rules hear no single fact in it, but you can ask me about it."
)
UNKEPT: Final = "Nothing of this conversation is kept."
MAY_I: Final = "May I remember this conversation?"
AGREED: Final = "Thank you, I'll remember this conversation."
ASK_NAME: Final = "Hello. I know nothing about you yet. What should I call you?"
COURTESIES: Final = {
    "thanks": "You're welcome.",
    "who are you": "I'm a set of rules in front of a memory, not a language model. Tell me about yourself, "
    "then ask me what I remember, even tomorrow.",
}
_HITS: Final = 8
_IN_PERIOD: Final = 40
"""Hits read where the question asks for what was said in a period: questions and greetings are among them."""
_JOINED: Final = re.compile(r"[,;]|\b(?:and|but|because)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(TurnChanges):
    """What the agent says, and what memory did for it."""

    text: str
    heard: Turn | None = None
    """The user's turn as stored; None once everything is erased."""
    query: str | None = None
    """The search query."""
    recall: Recall | None = None
    """The search results without the turn that asked; empty if none answers, None without a search."""
    receipt: Receipt | None = None
    """The receipt of an erasure."""
    timings: Mapping[str, float]
    """Milliseconds by step, in order."""


class KeylessAgent:
    """Answers from one user's memory by rules. A question it asked is kept in the conversation.

    Args:
        memory: the memory it answers from.
        deadline_ms: how long a search waits for the query's embedding before it uses words alone.
    """

    def __init__(self, memory: UserMemory, *, deadline_ms: float | None = None) -> None:
        self._memory = memory
        self._deadline_ms = deadline_ms

    async def greeting(self) -> str:
        """A greeting, by name if it is known.

        Raises:
            StoreUnavailable: the name could not be read.
        """
        name = await self._name()
        if name:
            return f"Welcome back, {name}."
        count = len(await self._memory.facts())
        if count:
            return f"Welcome back. I remember {count} {'thing' if count == 1 else 'things'} about you."
        return ASK_NAME

    async def greet(self, conversation: OpenConversation) -> str:
        """Greet the caller; the greeting is stored as a turn of the agent."""
        text = await self.greeting()
        if conversation.asking:
            text = f"{text} {MAY_I}"
        await conversation.append(Turn(speaker="agent", text=text))
        return text

    async def reply(self, conversation: OpenConversation, text: str) -> Reply:
        """Store `text` as the user's turn in `conversation`, learn from it, and answer.

        After an erasure the conversation no longer exists: go on with a new one.

        Raises:
            InvalidInput: `text` cannot be stored.
            StoreUnavailable: the store failed. A turn that was stored stays stored.
        """
        intent = intent_of(checked_text(text, "text"))
        steps = Steps()
        if (intent.yes or intent.no) and await self._asked_last(conversation, CONFIRM_ERASURE):
            if intent.yes and not intent.no:
                return await self._erase(steps)
            return await self._answered(conversation, steps, Reply(text=KEPT, timings={}), text)
        if (intent.yes or intent.no) and (asked := await self._asked_to_forget(conversation)):
            if intent.yes and not intent.no:
                return await self._forget(conversation, steps, asked, text)
            return await self._answered(conversation, steps, Reply(text=HIDDEN, timings={}), text)
        return await self._turn(conversation, steps, intent, text)

    async def _turn(self, conversation: OpenConversation, steps: Steps, intent: Intent, text: str) -> Reply:
        before = await self._memory.facts()
        was_asking = conversation.asking
        asked = intent.name and not conversation.silent and await self._asked_last(conversation, ASK_NAME)
        named = intent.name if asked else None
        with steps.step("append"):
            (heard,) = await conversation.append(Turn(speaker="user", text=text))
        learned = await learn(self._memory, conversation, heard, ours=intent.ours, before=before, steps=steps)
        if named and learned == TurnChanges():
            learned = await learn_name(self._memory, named, steps)
        reply = Reply(text="", heard=heard, **learned.parts(), timings={})
        reply = await self._said(reply, intent, learned, steps)
        if conversation.silent and reply.text == NOTED:
            reply = replace(reply, text=MAY_I if conversation.asking else UNKEPT)
        if was_asking and not conversation.silent:
            reply = replace(reply, text=f"{AGREED} {reply.text if reply.text != NOTED else ''}".strip())
        return await self._answered(conversation, steps, reply, None)

    async def _said(self, reply: Reply, intent: Intent, learned: TurnChanges, steps: Steps) -> Reply:
        """`reply` with what to say."""
        if intent.erase:
            return replace(reply, text=CONFIRM_ERASURE)
        told = learned_in_words(learned)
        if intent.courtesy is not None and not told:
            return replace(reply, text=await self._courtesy(intent.courtesy))
        if (forgotten := await self._hidden(reply, told, named=intent.forget is not None)) is not None:
            # without a value that was corrected: it may be what is to be forgotten
            kept = learned_in_words(TurnChanges(stored=learned.stored, known=learned.known))
            return replace(reply, text=f"{kept} {forgotten}".strip())
        if intent.question is not None:
            return await self._answer(reply, told, intent.question, steps)
        if intent.forget is not None and not told:
            return await self._take_back(reply, intent.forget, steps)
        return replace(reply, text=told or NOTED)

    async def _answer(self, reply: Reply, told: str, question: str, steps: Steps) -> Reply:
        asked = asked_of(question)
        recall = await self._recall(question, reply.heard, steps, limit=_IN_PERIOD if asked.period else _HITS)
        with steps.step("answer"):
            said = await self._from_memory(asked, question, recall)
        if said in {UNKNOWN, NOT_LOOKED}:  # none of it answers, so return an empty result
            recall = replace(recall, hits=())
        return replace(reply, text=f"{told} {said}".strip(), query=question, recall=recall)

    async def _from_memory(self, asked: QuestionSubject, question: str, recall: Recall) -> str:
        facts = await self._memory.facts()
        if asked.everything:
            return everything(facts)
        if asked.key is not None:
            single = not asked.key.endswith(":")
            versions = await self._memory.history(asked.key) if single else []
            if asked.before and (said := of_the_past(versions)):
                return said
            said = of_slot(asked, question, facts)
            if asked.before and said:
                then = of_hits(asked, question, recall, holding=facts)
                if then in {UNKNOWN, NOT_LOOKED}:
                    return f"I know only how it is now: {listed([said])}"
                return then
            said = said or taken_back(versions)
            if said:
                return said
        said = of_hits(asked, question, recall, holding=facts)
        return said[:1].upper() + said[1:]

    async def _hidden(self, reply: Reply, told: str, *, named: bool) -> str | None:
        """The reply to a request to forget something that no rule has a slot for; None if this is no such
        request.

        It does not repeat what is hidden, since recall would find it in the reply.
        """
        meant = await self._memory.asked_to_forget(reply.heard) if reply.heard is not None else None
        if meant is None or (not meant and (told or named)):
            return None
        if not meant:
            return UNCLEAR
        turns = "one turn" if len(meant) == 1 else f"{len(meant)} turns"
        return f"{NO_LONGER}: you said it in {turns}. {IN_HISTORY} {CONFIRM_FORGETTING}"

    async def _asked_to_forget(self, conversation: OpenConversation) -> Turn | None:
        """The user's turn whose request awaits confirmation; None unless the caller heard that question."""
        turns = await conversation.turns()
        last = turns[-1].heard_text if turns and turns[-1].speaker == "agent" else ""
        if not last.endswith(CONFIRM_FORGETTING):
            return None
        return next((turn for turn in reversed(turns) if turn.speaker == "user"), None)

    async def _forget(self, conversation: OpenConversation, steps: Steps, asked: Turn, text: str) -> Reply:
        """Destroy what was asked for, now that the user has confirmed."""
        with steps.step("forget"):
            try:
                receipt = await self._memory.forget(asked=asked.id)
            except InvalidInput:  # forgotten meanwhile in another way: nothing is left to be erased
                return await self._answered(
                    conversation, steps, Reply(text=NOTHING_LIKE_IT, timings={}), text
                )
        reply = Reply(text=receipt_in_words(receipt), receipt=receipt, timings=steps.timings_ms)
        return await self._answered(conversation, steps, reply, text)

    async def _take_back(self, reply: Reply, what: str, steps: Steps) -> Reply:
        """Retract a key that no rule knows: "forget the opening hours"."""
        recall = await self._recall(what, reply.heard, steps, min_relevance=0)  # it must contain every word
        memory = covering(what, recall.hits)
        if memory is None or memory.key is None:
            return replace(reply, text=await self._hide_unkeyed(what, recall), query=what, recall=recall)
        with steps.step("delete"):
            await self._memory.delete(memory.key)
        told = learned_in_words(TurnChanges(retracted=(memory,)))
        return replace(reply, text=told, retracted=(memory,), query=what, recall=recall)

    async def _hide_unkeyed(self, what: str, recall: Recall) -> str:
        found = unkeyed(what, recall.hits, holding=await self._memory.facts())
        if found is None or len(found) > MAX_TURNS:
            return UNCLEAR
        for hit in found:
            named = hit.memory or hit.turn
            await self._memory.delete(id=named.id if named else "")
        return f"{NO_LONGER}. {IN_HISTORY}" if found else NOTHING_LIKE_IT

    async def _recall(
        self,
        query: str,
        heard: Turn | None,
        steps: Steps,
        min_relevance: float | None = None,
        limit: int = _HITS,
    ) -> Recall:
        """The results for `query`, without the turn that contains it, which would always rank first."""
        with steps.step("recall"):
            found = await self._memory.recall(
                query, limit=limit + 1, deadline_ms=self._deadline_ms, min_relevance=min_relevance
            )
        own = heard.id if heard else ""
        others = found.without(lambda turn: turn.id == own)
        return replace(others, hits=others.hits[:limit])

    async def _courtesy(self, kind: str) -> str:
        if kind in COURTESIES:
            return COURTESIES[kind]
        name = await self._name()
        comma = f", {name}" if name else ""
        if kind == "goodbye":
            return f"Goodbye{comma}. I'll remember."
        return f"Hello{comma}."

    async def _erase(self, steps: Steps) -> Reply:
        with steps.step("forget"):
            receipt = await self._memory.forget()
        return Reply(text=receipt_in_words(receipt), receipt=receipt, timings=steps.timings_ms)

    async def _answered(
        self, conversation: OpenConversation, steps: Steps, reply: Reply, said: str | None
    ) -> Reply:
        """`reply`, stored in the conversation; `said` is the user's turn if it is not stored yet."""
        turns = [Turn(speaker="user", text=said)] if said is not None else []
        answer = Turn(speaker="agent", text=reply.text)
        try:
            with steps.step("append answer"):
                kept = await conversation.append(*turns, answer)
        except InvalidInput:  # forgotten while it was answered: store nothing more of it
            return replace(reply, timings=steps.timings_ms)
        heard = kept[0] if said is not None else reply.heard
        return replace(reply, heard=heard, timings=steps.timings_ms)

    async def _asked_last(self, conversation: OpenConversation, question: str) -> bool:
        """Whether `question` ends what the caller last heard from the agent."""
        turns = await conversation.turns()
        return bool(turns) and turns[-1].speaker == "agent" and turns[-1].heard_text == question

    async def _name(self) -> str | None:
        name = await self._memory.get("user_name")
        return name.text if name and name.author == self._memory.scope.user else None


__all__ = ["AGENT", "KeylessAgent", "Reply"]
