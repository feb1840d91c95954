"""One turn: keep what was said, learn from it, look, answer, keep the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from echoic.errors import InvalidInput
from echoic.memory.conversation import OpenConversation
from echoic.memory.keyless import answers
from echoic.memory.keyless.intents import Intent, intent_of
from echoic.memory.keyless.learning import TurnChanges, learn, learn_name, learned_in_words
from echoic.memory.keyless.questions import QuestionSubject, asked_of
from echoic.memory.keyless.steps import Steps
from echoic.memory.keyless.wording import receipt_in_words
from echoic.memory.user import UserMemory
from echoic.types import Memory, Recall, Receipt, Turn, checked_text

AGENT: Final = "keyless"
"""The name it serves conversations under."""
CONFIRM_ERASURE: Final = (
    "That would erase everything I keep about you: every memory and every word of every conversation. "
    "It cannot be undone. Shall I?"
)
KEPT: Final = "All right, I keep everything."
CONFIRM_FORGETTING: Final = "Shall I erase it for good?"
"""The end of what is said once something was hidden that the user asked to have forgotten."""
HIDDEN: Final = "All right. I don't go by it any more, and it stays in your history."
UNCLEAR: Final = (
    "I'm not sure what I should forget. Say in a few words what it was about, or when you told me."
)
NOTED: Final = (
    "I've kept that word for word. My rules hear no single fact in it, but you can ask me about it."
)
ASK_NAME: Final = "Hello. I know nothing about you yet. What should I call you?"
COURTESIES: Final = {
    "thanks": "You're welcome.",
    "who are you": "I'm a set of rules in front of a memory, not a language model. Tell me about yourself, "
    "then ask me what I remember, even tomorrow.",
}
_HITS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the agent says, and what memory did for it."""

    text: str
    heard: Turn | None = None
    """The user's turn as it was kept; None once everything is erased."""
    stored: tuple[Memory, ...] = ()
    """What was learned from it."""
    superseded: tuple[Memory, ...] = ()
    """What held before and was corrected by that."""
    known: tuple[Memory, ...] = ()
    """What was said and known already."""
    retracted: tuple[Memory, ...] = ()
    """What was taken back."""
    query: str | None = None
    """What was searched for."""
    recall: Recall | None = None
    """What was found, without the turn that asked, and nothing where nothing of it answers; None where
    nothing was searched for."""
    receipt: Receipt | None = None
    """Of an erasure."""
    timings: Mapping[str, float]
    """Milliseconds by step, in order."""


class KeylessAgent:
    """Answers from one user's memory by rules. Holds no state: what it asked back stands in the conversation.

    Args:
        memory: whose memory it answers from.
        deadline_ms: how long a recall waits for the query's embedding before words alone must do.
    """

    def __init__(self, memory: UserMemory, *, deadline_ms: float | None = None) -> None:
        self._memory = memory
        self._deadline_ms = deadline_ms

    async def greeting(self) -> str:
        """How to open a conversation: by name, where one is known.

        Raises:
            StoreUnavailable: could not look.
        """
        name = await self._name()
        if name:
            return f"Welcome back, {name}."
        count = len(await self._memory.facts())
        if count:
            return f"Welcome back. I remember {count} {'thing' if count == 1 else 'things'} about you."
        return ASK_NAME

    async def greet(self, conversation: OpenConversation) -> str:
        """The same, said: it is kept as the agent's turn."""
        text = await self.greeting()
        await conversation.append(Turn(speaker="agent", text=text))
        return text

    async def reply(self, conversation: OpenConversation, text: str) -> Reply:
        """Keep `text` as the user's turn in `conversation`, learn from it, and answer.

        After an erasure the conversation is gone with the rest: go on with a new one.

        Raises:
            InvalidInput: `text` cannot be kept.
            StoreUnavailable: could not keep or could not look. A turn that was kept stays kept.
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
        named = intent.name if intent.name and await self._asked_last(conversation, ASK_NAME) else None
        with steps.step("append"):
            (heard,) = await conversation.append(Turn(speaker="user", text=text))
        learned = await learn(self._memory, conversation, heard, ours=intent.ours, before=before, steps=steps)
        if named and learned == TurnChanges():
            learned = await learn_name(self._memory, named, steps)
        reply = Reply(
            text="",
            heard=heard,
            stored=learned.stored,
            superseded=learned.superseded,
            known=learned.known,
            retracted=learned.retracted,
            timings={},
        )
        reply = await self._said(reply, intent, learned, steps)
        return await self._answered(conversation, steps, reply, None)

    async def _said(self, reply: Reply, intent: Intent, learned: TurnChanges, steps: Steps) -> Reply:
        """`reply` with what to say."""
        if intent.erase:
            return replace(reply, text=CONFIRM_ERASURE)
        told = learned_in_words(learned)
        if intent.courtesy is not None and not told:
            return replace(reply, text=await self._courtesy(intent.courtesy))
        if (forgotten := await self._hidden(reply, told, named=intent.forget is not None)) is not None:
            return replace(reply, text=forgotten)
        if intent.question is not None:
            return await self._answer(reply, told, intent.question, steps)
        if intent.forget is not None and not told:
            return await self._take_back(reply, intent.forget, steps)
        return replace(reply, text=told or NOTED)

    async def _answer(self, reply: Reply, told: str, question: str, steps: Steps) -> Reply:
        recall = await self._recall(question, reply.heard, steps)
        with steps.step("answer"):
            said = await self._from_memory(asked_of(question), question, recall)
        if said in {answers.UNKNOWN, answers.NOT_LOOKED}:  # none of it answers: it is shown as silence
            recall = replace(recall, hits=())
        return replace(reply, text=f"{told} {said}".strip(), query=question, recall=recall)

    async def _from_memory(self, asked: QuestionSubject, question: str, recall: Recall) -> str:
        facts = await self._memory.facts()
        if asked.everything:
            return answers.everything(facts)
        if asked.key is not None:
            single = not asked.key.endswith(":")
            versions = await self._memory.history(asked.key) if single else []
            if asked.before and (said := answers.of_the_past(versions)):
                return said
            said = answers.of_slot(asked, question, facts)
            if asked.before and said:
                then = answers.of_hits(asked, question, recall, holding=facts)
                return answers.of_now_only(said) if then in {answers.UNKNOWN, answers.NOT_LOOKED} else then
            said = said or answers.taken_back(versions)
            if said:
                return said
        said = answers.of_hits(asked, question, recall, holding=facts)
        return said[:1].upper() + said[1:]

    async def _hidden(self, reply: Reply, told: str, *, named: bool) -> str | None:
        """What to say where the turn asks to forget what no rule has a slot for; None where it does not.

        What is hidden is not said back: it would be recalled from the answer.
        """
        meant = await self._memory.asked_to_forget(reply.heard) if reply.heard is not None else None
        if meant is None or (not meant and (told or named)):
            return None
        if not meant:
            return UNCLEAR
        turns = "one turn" if len(meant) == 1 else f"{len(meant)} turns"
        return (
            f"All right, I no longer go by that: you said it in {turns}. It stays in your history, where "
            f"only you can see it. {CONFIRM_FORGETTING}"
        )

    async def _asked_to_forget(self, conversation: OpenConversation) -> Turn | None:
        """The user's turn whose request waits for agreement; None where the caller heard no such question."""
        turns = await conversation.turns()
        last = turns[-1].heard_text if turns and turns[-1].speaker == "agent" else ""
        if not last.endswith(CONFIRM_FORGETTING):
            return None
        return next((turn for turn in reversed(turns) if turn.speaker == "user"), None)

    async def _forget(self, conversation: OpenConversation, steps: Steps, asked: Turn, text: str) -> Reply:
        """Destroy what was asked for, now that the user agreed."""
        with steps.step("forget"):
            receipt = await self._memory.forget(asked=asked.id)
        reply = Reply(text=receipt_in_words(receipt), receipt=receipt, timings=steps.timings_ms)
        return await self._answered(conversation, steps, reply, text)

    async def _take_back(self, reply: Reply, what: str, steps: Steps) -> Reply:
        """What no rule of listening knows, but a key does: "forget the opening hours"."""
        recall = await self._recall(what, reply.heard, steps, min_relevance=0)  # every word must be in it
        memory = answers.covering(what, recall.hits)
        if memory is None or memory.key is None:
            return replace(reply, text="I find nothing like that to take back.", query=what, recall=recall)
        with steps.step("delete"):
            await self._memory.delete(memory.key)
        told = learned_in_words(TurnChanges(retracted=(memory,)))
        return replace(reply, text=told, retracted=(memory,), query=what, recall=recall)

    async def _recall(
        self, query: str, heard: Turn | None, steps: Steps, min_relevance: float | None = None
    ) -> Recall:
        """What is found for `query`, without the turn that says it: it always fits itself best."""
        with steps.step("recall"):
            found = await self._memory.recall(
                query, limit=_HITS + 1, deadline_ms=self._deadline_ms, min_relevance=min_relevance
            )
        own = heard.id if heard else ""
        others = found.without(lambda turn: turn.id == own)
        return replace(others, hits=others.hits[:_HITS])

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
        """`reply`, kept in the conversation; `said` is the user's turn where it is not kept yet."""
        turns = [Turn(speaker="user", text=said)] if said is not None else []
        answer = Turn(speaker="agent", text=reply.text)
        try:
            with steps.step("append answer"):
                kept = await conversation.append(*turns, answer)
        except InvalidInput:  # forgotten while it was answered: nothing more of it is kept
            return replace(reply, timings=steps.timings_ms)
        heard = kept[0] if said is not None else reply.heard
        return replace(reply, heard=heard, timings=steps.timings_ms)

    async def _asked_last(self, conversation: OpenConversation, question: str) -> bool:
        """Whether `question` is the last thing the caller heard of the agent, all of it."""
        turns = await conversation.turns()
        return bool(turns) and turns[-1].speaker == "agent" and turns[-1].heard_text == question

    async def _name(self) -> str | None:
        name = await self._memory.get("user_name")
        return name.text if name and name.author == self._memory.scope.user else None


__all__ = ["AGENT", "CONFIRM_ERASURE", "CONFIRM_FORGETTING", "KeylessAgent", "Reply"]
