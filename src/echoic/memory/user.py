"""What one user's memory can do: the surface everything else is built on. Every verb is of one scope."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, tzinfo
from itertools import count
from typing import Any

from echoic.errors import InvalidInput, WriteConflict
from echoic.memory.asked_to_forget import reached
from echoic.memory.block.tokens import checked_budget, counter_of
from echoic.memory.brief import DEFAULT_BUDGET_TOKENS as ANSWER_TOKENS
from echoic.memory.brief import hits_for, packed
from echoic.memory.conversation import OpenConversation, Transcript
from echoic.memory.distil import Jobs
from echoic.memory.erasing import Erasing
from echoic.memory.hooks import ToolUsed
from echoic.memory.keyed import KeyedMemories
from echoic.memory.ledger import memory_id
from echoic.memory.parts import Parts
from echoic.memory.portable import export_scope, restore_scope
from echoic.memory.records import (
    MEMORY,
    TURN,
    memory_of,
    recalled_turn,
    record_of_memory,
    scan_all,
)
from echoic.memory.searching import MAX_LIMIT, ListenerSearching, Searching, checked_relevance
from echoic.memory.served import Served
from echoic.memory.speculation import Speculation
from echoic.memory.spoken_keys import match_keys
from echoic.memory.user_timezone import TimeReader
from echoic.ranking.packing import Packed
from echoic.stores.base import Put, Store
from echoic.types import (
    Category,
    Hit,
    Memory,
    Recall,
    Receipt,
    Scope,
    Sharing,
    Turn,
    checked_category,
    checked_name,
    checked_query,
    checked_text,
    checked_time,
)

_OF_ONE_CALL = 25
"""Hits looked at beyond the limit where a conversation is left out: its turns may rank first."""
_GREETING = "hello"  # asks for nothing: what it makes ready is all it is for


class UserMemory(Served):
    """The memory of one user in one deployment. Cheap to make; holds no state of its own."""

    def __init__(self, parts: Parts, scope: Scope) -> None:
        if scope.user is None:
            raise InvalidInput("user is empty: None. Nothing is read or written without one.")
        self._parts = parts
        self._user = scope.user
        self._keyed = KeyedMemories(parts, scope)
        self._times = TimeReader(parts.store, parts.recaller, parts.clock)
        self._searching = Searching(parts, scope, self._times)
        self.scope = scope

    @property
    def store(self) -> Store:
        """Where it is kept, for what is kept beside it: records of a kind of its own, in `scope`."""
        return self._parts.store

    def tell_tool_use(self, used: ToolUsed) -> None:
        """Tell hooks that a model used a tool of this memory. For whoever makes such tools.

        Raises:
            InvalidInput: it was another user's.
        """
        if used.scope != self.scope:
            raise InvalidInput("this tool was used for another user: tell it by their memory")
        if not self._parts.hooks.wants(ToolUsed):
            return
        door, scope = self._parts.door, self.scope
        key = None if used.key is None else door.key(scope, used.key)
        # what is a secret may show in its name alone: a PIN is four digits like others
        value, query = door.value(scope, used.value, used.key or ""), door.value(scope, used.query)
        self._parts.hooks.emit(replace(used, key=key, value=value, query=query))

    # -- keyed memories

    async def set(
        self,
        key: str,
        value: str,
        *,
        category: Category = "fact",
        context: str | None = None,
        visibility: Sharing = "auto",
    ) -> Memory:
        """Keep `value` under `key`. What was there before is superseded and stays in `history`.

        What is about no person (opening hours, prices, policies) becomes global, with personal data taken
        out, at once or after approval; see `GlobalWrites`. Doubt means private.

        Args:
            key: its name.
            value: what to keep.
            category: what kind it is.
            context: when and under which conditions it applies.
            visibility: "private" keeps it to the user, whatever it says; "auto" lets the rules decide.

        Returns:
            the memory as kept; `visibility` says for whom, and `reason` why.

        Raises:
            InvalidInput: key, value or visibility cannot be kept.
            StoreUnavailable: nothing was kept; set it again.
        """
        return await self._keyed.set(key, value, category, context, visibility)

    async def get(self, key: str) -> Memory | None:
        """What holds under `key`: the user's own, else what is global, else what others share.

        None: nothing is known.
        """
        return await self._keyed.get(key)

    async def delete(
        self,
        key: str | None = None,
        *,
        id: str | None = None,  # noqa: A002 - as it is called in what is found
    ) -> bool:
        """Take back what the user keeps under `key`, or one memory or turn by its id.

        It is no longer found, nor is what said it, in any turn; but it stays in `history` and in the
        transcript. `forget` destroys. Another's global memory is never touched.

        Returns:
            whether there was anything of theirs to take back.

        Raises:
            InvalidInput: not exactly one of the two is given, or it can be no name.
        """
        if (key is None) == (id is None):
            raise InvalidInput("delete takes a key or an id: say which of the two is to be taken back")
        return await (self._keyed.delete(key) if key is not None else self._keyed.take_back(id or ""))

    async def history(self, key: str) -> list[Memory]:
        """Every version of what the user kept under `key`, oldest first, retracted ones included."""
        return await self._keyed.history(key)

    # -- memories without a key

    async def remember(
        self,
        text: str,
        *,
        category: Category = "fact",
        context: str | None = None,
        said_at: datetime | None = None,
    ) -> Memory:
        """Keep one thing known about the user, in a sentence. Saying the same again changes nothing."""
        memory = Memory(
            id="",
            text=checked_text(text, "text"),
            category=checked_category(category),
            context=context if context is None else checked_text(context, "context"),
            author=self._user,
            valid_from=self._parts.clock() if said_at is None else checked_time(said_at, "said_at"),
        )
        memory = self._parts.door.memory(self.scope, memory)
        for number in count():
            # the id follows from what is kept, so that two processes told the same keep it once
            named = memory_id("", memory.text, category, memory.context or "", str(number))
            new = replace(memory, id=named)
            known = await self._parts.store.read(self.scope, MEMORY, [new.id])
            if known and memory_of(known[0]).current:
                return memory_of(known[0])
            if known:  # taken back once, and said again
                continue
            with contextlib.suppress(WriteConflict):  # another process was told the same
                await self._parts.store.write(self.scope, [Put(record=record_of_memory(new), expect=0)])
            self._parts.background.poke()
            return new
        raise AssertionError  # count() does not end

    async def facts(self, *, with_global: bool = False) -> list[Memory]:
        """Everything that holds, as the user has it: oldest first, superseded and retracted ones left out.

        Args:
            with_global: with what is global, whoever said it; else only what the user made global.
        """
        own, everyones = await self._memories(self.scope), await self._memories(self.scope.everyone)
        theirs = [m for m in everyones if with_global or m.author == self._user]
        return [m for m in (*own, *theirs) if m.current]

    async def past(self) -> list[Memory]:
        """What the user kept and holds no longer, oldest first: corrected or taken back, not destroyed."""
        memories = await self._memories(self.scope) + await self._memories(self.scope.everyone)
        return [m for m in memories if not m.current and m.author == self._user]

    async def _memories(self, scope: Scope) -> list[Memory]:
        return [memory_of(record) for record in await scan_all(self._parts.store, scope, MEMORY)]

    # -- search

    async def query(
        self,
        text: str,
        *,
        limit: int = 10,
        include_past: bool = False,
        timezone: str | tzinfo | None = None,
        min_relevance: float | None = None,
    ) -> list[Hit]:
        """The best `limit` memories and turns for `text`: the user's own and what is global, in one ranking.

        Empty when nothing is known of it: what is not likely to answer is left out (see `recall`). While the
        embedder cannot be reached, what words and sounds find.

        Raises:
            StoreUnavailable: could not look.
        """
        recall = await self.recall(
            text, limit=limit, include_past=include_past, timezone=timezone, min_relevance=min_relevance
        )
        return list(recall.hits)

    async def recall(
        self,
        text: str,
        *,
        limit: int = 10,
        deadline_ms: float | None = None,
        include_past: bool = False,
        timezone: str | tzinfo | None = None,
        min_relevance: float | None = None,
        besides: str | None = None,
    ) -> Recall:
        """The same, with its outcome, and within a deadline.

        Args:
            text: the question, or what was said. "Last Tuesday", "in May", "before the move" are understood
                from the moment of asking; "where did I live before?" finds what no longer holds as well.
            limit: hits at most, 1 to `MAX_LIMIT`.
            deadline_ms: how long to wait for what takes time; what is late is named in `Recall.cut`.
            include_past: find what was superseded or taken back as well.
            timezone: where the user's clocks stand ("Europe/Lisbon"); None is what the directive or memory
                `time_zone` says, else UTC.
            min_relevance: the least `Hit.relevance`, 0 to 1. None is the default floor: nothing at all where
                no hit is likely to answer, as after "okay" or a question about somebody else; 0 shows
                everything that was found. Silence is an answer: `outcome` is "complete" all the same.
            besides: the id of the conversation that goes on. Its turns are left out, for the model has them
                before it; what was learned from them is not.
        """
        looked_at = limit
        if besides is not None:
            checked_name(besides, "conversation id")
            if type(limit) is int and 1 <= limit <= MAX_LIMIT:  # any other is refused below
                looked_at = min(limit + _OF_ONE_CALL, MAX_LIMIT)
        recall = await self._searching.recall(
            text,
            limit=looked_at,
            deadline_ms=deadline_ms,
            include_past=include_past,
            timezone=timezone,
            min_relevance=min_relevance,
        )
        if besides is None:
            return recall
        others = recall.without(lambda turn: turn.conversation == besides)
        return replace(others, hits=others.hits[:limit])

    async def warm(self) -> None:
        """Make ready what a recall needs, as when the phone rings: both partitions and the encoder.

        After it, the first question of a call is as fast as any other. An embedder that cannot be reached
        is no error here: words and sounds answer without it.

        Raises:
            StoreUnavailable: could not look.
        """
        await self._searching.recall(_GREETING, limit=1)

    async def brief(
        self,
        text: str,
        *,
        budget_tokens: int = ANSWER_TOKENS,
        deadline_ms: float | None = None,
        timezone: str | tzinfo | None = None,
        min_relevance: float | None = None,
        besides: str | None = None,
    ) -> Packed:
        """What is known for `text`, as a model gets it: few quoted lines, each once, with their age.

        More is looked at where the question asks for a list. A turn that leans on its neighbour is shown with
        it. Where nothing is known, or not all could be looked through, the text says so.

        Args:
            text: the question.
            budget_tokens: of the whole text, by the counting of `Block`; never exceeded.
            deadline_ms: of the recall.
            timezone: as for `recall`.
            min_relevance: likewise.
            besides: likewise.
        """
        checked_budget(budget_tokens)
        checked_query(text)
        recall = await self.recall(
            text,
            limit=hits_for(text),
            deadline_ms=deadline_ms,
            timezone=timezone,
            min_relevance=min_relevance,
            besides=besides,
        )
        return await self.pack(recall, budget_tokens=budget_tokens, timezone=timezone)

    async def pack(
        self,
        recall: Recall,
        *,
        budget_tokens: int = ANSWER_TOKENS,
        timezone: str | tzinfo | None = None,
    ) -> Packed:
        """The same for a recall that was made before, such as by `listen`.

        Raises:
            InvalidInput: the budget is no whole number above 0, or a hit is another user's.
        """
        checked_budget(budget_tokens)
        if not self._searching.may_see(recall):
            raise InvalidInput("a hit of this recall belongs to another user: pack it with theirs")
        return await packed(
            self._parts.store,
            recall,
            budget_tokens,
            count=counter_of(self._parts.embedder),
            now=self._parts.clock(),
            zone=await self._times.zone(self.scope, timezone),
        )

    def listen(
        self, *, limit: int = 5, timezone: str | tzinfo | None = None, min_relevance: float | None = None
    ) -> Speculation:
        """Recall on interim transcripts while the user speaks, so that the answer is there when they end.

        Args:
            limit: hits at most, 1 to `MAX_LIMIT`.
            timezone: as for `recall`.
            min_relevance: likewise.

        Raises:
            InvalidInput: `min_relevance` is no number from 0 to 1.
        """
        checked_relevance(min_relevance)
        return Speculation(ListenerSearching(self._searching, limit, timezone, min_relevance))

    # -- conversations

    async def conversation(self, conversation_id: str = "", *, agent: str | None = None) -> OpenConversation:
        """Open a conversation, or go on with the one of that id. Without an id a new one is made."""
        name = checked_name(conversation_id, "conversation id") if conversation_id else self._parts.new_id()
        if agent is not None:
            checked_name(agent, "agent")
        opened = OpenConversation(self._parts, self.scope, name, agent)
        await opened.begin()
        return opened

    async def recall_conversation(self, key: str) -> Transcript | None:
        """The stored conversation `key` means: the same words first, then alike in spelling or sound.

        Of two stored under the same key the newer is meant. None: no key is like it. What was taken back is
        left out of its turns.
        """
        key = self._parts.door.key(self.scope, checked_name(key, "recall key"))
        stored = {c.id: c for c in await self.conversations() if c.recall_key}
        newest_first = dict(reversed(stored.items()))
        matches = match_keys(key, {name: c.recall_key or "" for name, c in newest_first.items()})
        if not matches:
            return None
        name, likeness = matches[0]
        records = await scan_all(self._parts.store, self.scope, TURN, key=name)
        turns = tuple(recalled_turn(record) for record in records)
        return Transcript(conversation=stored[name], turns=turns, likeness=likeness)

    async def jobs(self) -> Jobs:
        """Which of the user's conversations are still to be learned from, and which were given up."""
        return await self._parts.distiller.jobs_of(self.scope)

    # -- everything at once

    async def export(self) -> dict[str, Any]:
        """All that is kept of the user, as JSON: every version of every memory, every conversation."""
        return await export_scope(self._parts.store, self.scope)

    async def restore(self, exported: Mapping[str, Any]) -> int:
        """Take in what `export` gave, of any user; what is known already is left as it is.

        Where something else holds under a key, what was said last does from now on; the rest is its history.

        Returns:
            how many records were new.

        Raises:
            InvalidInput: this is not an export; nothing was written.
        """
        count = await restore_scope(self._parts.store, self.scope, exported)
        self._parts.background.poke()
        return count

    async def forget(
        self,
        *,
        key: str | None = None,
        conversation: str | None = None,
        id: str | None = None,  # noqa: A002 - as it is called in what is found
        asked: str | None = None,
    ) -> Receipt:
        """Destroy all that is kept of the user, or one key with its history, or one conversation, or one
        memory or turn by its id, or what the user asked to have forgotten in the turn of the id `asked`.

        What is asked for in a call ("rub out what I said about my knee") is hidden from recall once the turn
        is learned from. The rules that understand it may be wrong, so it is destroyed only by `asked`, when
        the user agreed.

        Records, words, sounds and vectors go, from every place the store keeps bytes in; what the user made
        global goes with them, and what their conversations alone taught an agent. A global memory that an
        operator approved is the deployment's own by then and stays: it holds no personal data, and not who
        said it.

        Of a key, or a memory, the words that said it are destroyed in every turn, the user's and the agents',
        in summaries, in memories that repeat it and in what calls and tools kept. The rest of such a turn
        stays, with "[forgotten]" in their place, and is never learned from again; `Receipt.rewritten` counts
        what was changed so. Lessons of agents that say it go too, where nobody else taught them. Of a turn
        all that it says goes, with what was learned from it alone. Of a conversation what was learned from it
        stays: it may have been said elsewhere too, and `forget(key=…)` destroys it. What stays though it is
        close to what is gone, such as a turn that says something else with the same value, is counted in
        `Receipt.kept_because`, by why.

        Raises:
            InvalidInput: an id is given beside something else, or one of them can be no name.
        """
        if id is not None and (key is not None or conversation is not None):
            raise InvalidInput("forget takes an id alone: call it again for the key or the conversation")
        if asked is not None and not (key is conversation is id is None):
            raise InvalidInput("forget takes `asked` alone: call it again for anything else")
        return await Erasing(self._parts, self.scope).forget(key, conversation, id, asked)

    async def asked_to_forget(self, turn: Turn) -> list[Turn] | None:
        """The turns that the request to forget in `turn` means; None where it asks nothing of that kind.

        Nothing is changed. None of them: it is not clear what is meant, so ask.
        """
        found = await reached(self._parts.store, self.scope, turn)
        return None if found is None else list(found.said)


__all__ = ["MAX_LIMIT", "UserMemory"]
