"""The memory of one user: the methods that everything else is built on. Each reads and writes one scope."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, tzinfo
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from echoic.checks import checked_query, checked_time
from echoic.errors import InvalidInput, brief
from echoic.memory.assurance import Level, VisibleStore
from echoic.memory.concurrency import load, noted
from echoic.memory.consent import checked_consent, keeps_nothing, read_consent, verdict, write_consent
from echoic.memory.hooks import Recalled, ToolUsed
from echoic.memory.keyed_memories import KeyedMemories
from echoic.memory.profile import (
    DIRECTIVES,
    TimeReader,
    change_directives,
    directives_of,
    model_profile,
    profile_of,
    read_directives,
)
from echoic.memory.recall import MAX_LIMIT, Deadline, SearchOptions
from echoic.memory.records import MEMORY, TURN, memory_of, memory_with_id, scan_all, turn_of
from echoic.memory.service_context import Parts
from echoic.memory.telemetry import OperationSpan, content_of
from echoic.stores.base import Record, Store
from echoic.types import (
    Category,
    Consent,
    Conversation,
    Directives,
    Hit,
    Memory,
    Profile,
    Recall,
    Receipt,
    Scope,
    Sharing,
    Turn,
    checked_name,
)

if TYPE_CHECKING:
    from echoic.memory.background import Jobs
    from echoic.memory.conversation import OpenConversation, Transcript
    from echoic.memory.items import Items
    from echoic.memory.speculation import Speculation
    from echoic.memory.tasks import Result, Task
    from echoic.prompt.answer import Packed
    from echoic.prompt.block import Block

P = TypeVar("P")

ANSWER_TOKENS, BLOCK_TOKENS = 300, 600
"""The default budgets of `UserMemory.brief` and `UserMemory.block`."""
_GREETING = "hello"  # a warm-up: it is called for what it loads


class UserMemory:
    """The memory of one user in one deployment. Cheap to create: it holds no state of its own."""

    def __init__(self, parts: Parts, scope: Scope, level: Level = "account") -> None:
        if scope.user is None:
            raise InvalidInput("user is empty: None. Nothing is read or written without one.")
        self._parts = parts
        self.step_up(level)
        self._user = scope.user
        self.scope = scope

    @cached_property
    def _keyed(self) -> KeyedMemories:
        return KeyedMemories(self._parts, self.scope)

    @cached_property
    def _times(self) -> TimeReader:
        return TimeReader(self._parts.store, self._parts.recaller, self._parts.clock)

    def at(self, level: Level) -> UserMemory:
        """The same memory, limited to what a caller of `level` may be told; see docs/assurance.md."""
        return UserMemory(self._parts, self.scope, level)

    def step_up(self, level: Level) -> None:
        """Raise the assurance level of this handle, including for all code that already holds it.

        Raises:
            InvalidInput: there is no such level.
        """
        if level not in self._parts.assurance:
            raise InvalidInput(f"unknown level {brief(level)}: use one of {', '.join(self._parts.assurance)}")
        self.level = level
        self._visible = self._parts.assurance[level]
        self._seen = self._parts
        if not self._visible.is_whole:
            store = VisibleStore(self._parts.store, self._visible)
            self._seen = replace(self._parts, store=cast("Store", store))
        """The service's parts with a store that reads only what may be told; writes use the unlimited one."""

    async def withholds(self) -> bool:
        """Whether something is withheld from this caller, and they may know that."""
        if not self._visible.hints:
            return False
        records = await scan_all(self._parts.store, self.scope, MEMORY)
        return any(memory_of(r).current and not self._visible.record(self.scope, r) for r in records)

    # -- memories

    async def set(
        self,
        key: str,
        value: str,
        *,
        category: Category = "fact",
        context: str | None = None,
        visibility: Sharing = "auto",
    ) -> Memory:
        """Store `value` under `key`. The earlier value is superseded and stays in `history`.

        A value that is not about a person (opening hours, prices, policies) becomes global without its
        personal data, at once or after approval, see `GlobalWrites`. In doubt it stays private, as does a
        value with a `context`, which says when it applies.

        `visibility` "private" keeps it private whatever it says, "auto" lets the rules decide; the returned
        memory's `visibility` says who sees it, and `reason` why. A value that cannot be stored raises
        InvalidInput, such as an instruction to the model ("ignore your rules") unless the memory was opened
        with `instructions="keep"`. After StoreUnavailable nothing was stored: set it again.
        """
        with self._parts.telemetry.operation("set", self.scope) as doing:
            kept = await self._keyed.set(key, value, category, context, visibility)
            self._note(doing, kept)
        return kept

    def _note(self, doing: OperationSpan, kept: Memory) -> None:
        doing.count, doing.record = 1, kept.id
        if self._parts.telemetry.captures_content:
            doing.content = content_of([{"id": kept.id, "content": kept.text}])

    async def get(self, key: str) -> Memory | None:
        """The current memory under `key`: the user's own, else a global, else a shared one."""
        return await KeyedMemories(self._seen, self.scope).get(key)

    async def delete(
        self,
        key: str | None = None,
        *,
        id: str | None = None,  # noqa: A002 - as it is called in what is found
    ) -> bool:
        """Retract the user's memory under `key`, or one memory or turn by its id.

        Searches no longer find it, nor the words that said it in any turn; `history` and the transcript keep
        it. `forget` destroys it. Global memories of other users are never touched. Returns whether there was
        anything to retract.

        Raises:
            InvalidInput: both or neither of key and id are given, or the given one is not valid.
        """
        if (key is None) == (id is None):
            raise InvalidInput("delete takes either a key or an id")
        await self._may_destroy("this memory", key, id)
        with self._parts.telemetry.operation("delete", self.scope) as doing:
            found = await (self._keyed.delete(key) if key is not None else self._keyed.take_back(id or ""))
            doing.count, doing.record = int(found), key if key is not None else id
        return found

    async def find_memory(self, memory_id: str) -> Memory | None:
        """The memory with that id: any version of the user's own, or a current global one."""
        return await memory_with_id(self._seen.store, self.scope, memory_id)

    async def find_turns(self, ids: Collection[str]) -> list[Turn]:
        """The user's turns with those ids, in spoken order: the turns that `Memory.source` names.

        Unknown and forgotten ids are left out.
        """
        named = [checked_name(name, "id") for name in dict.fromkeys(ids)]
        records = await self._seen.store.read(self.scope, TURN, named)
        return sorted(map(turn_of, records), key=lambda turn: turn.said_at)

    @property
    def sees_everything(self) -> bool:
        """Whether nothing is withheld from the holder of this handle."""
        return self._visible.is_whole

    async def history(self, key: str) -> list[Memory]:
        """Every version stored under `key`, oldest first, including retracted ones."""
        return await KeyedMemories(self._seen, self.scope).history(key)

    async def remember(
        self,
        text: str,
        *,
        category: Category = "fact",
        context: str | None = None,
        said_at: datetime | None = None,
    ) -> Memory:
        """Store one sentence about the user, without a key. Repeating the call changes nothing."""
        with self._parts.telemetry.operation("remember", self.scope) as doing:
            kept = await self._keyed.remember(text, category, context, said_at)
            self._note(doing, kept)
        return kept

    async def facts(self, *, with_global: bool = False) -> list[Memory]:
        """Every current memory of the user, oldest first; `with_global` adds the global ones."""
        own, everyones = await self._memories(self.scope), await self._memories(self.scope.everyone)
        theirs = [m for m in everyones if with_global or m.author == self._user]
        return [m for m in (*own, *theirs) if m.current]

    async def past(self) -> list[Memory]:
        """Every memory of the user that was corrected or retracted and not destroyed, oldest first."""
        memories = await self._memories(self.scope) + await self._memories(self.scope.everyone)
        return [m for m in memories if not m.current and m.author == self._user]

    async def _memories(self, scope: Scope) -> list[Memory]:
        return [memory_of(record) for record in await scan_all(self._seen.store, scope, MEMORY)]

    # -- search

    async def query(
        self,
        text: str,
        *,
        limit: int = 10,
        include_past: bool = False,
        timezone: str | tzinfo | None = None,
        min_relevance: float | None = None,
        besides: str | Collection[str] | None = None,
    ) -> list[Hit]:
        """The best `limit` memories and turns for `text`, the user's own and global ones in one ranking.

        Empty if nothing is likely to answer. Arguments as for `recall`, which also says whether the whole
        memory could be searched. Raises StoreUnavailable if the store could not be read.
        """
        asked = SearchOptions(limit, None, include_past, timezone, min_relevance, besides)
        recall = await self._search(text, asked)
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
        besides: str | Collection[str] | None = None,
    ) -> Recall:
        """Search as `query` does, but within a deadline; the result says whether it is complete.

        Args:
            text: the question, or what was said. "Last Tuesday", "in May" and "before the move" are relative
                to now; "where did I live before?" also finds past memories.
            limit: maximum number of hits, 1 to `MAX_LIMIT`.
            deadline_ms: total time to wait for the steps of the search; `Recall.cut` names the late ones.
            include_past: also find memories that held before; never those that were deleted
                (`Memory.deleted`).
            timezone: the user's ("Europe/Lisbon"); None: the directive or memory `time_zone`, else UTC.
            min_relevance: the least `Hit.relevance`, 0 to 1. None is the default floor: no hits at all if
                none is likely to answer, as after "okay" or a question about another person. 0 returns
                everything found. An empty result has the outcome "complete" like any other.
            besides: ids of conversations, turns and memories to leave out, one or several. Name the current
                conversation: its turns are then ignored, while memories learned from them are found.
        """
        asked = SearchOptions(limit, deadline_ms, include_past, timezone, min_relevance, besides)
        return await self._search(text, asked)

    async def _search(self, text: str, asked: SearchOptions) -> Recall:
        checked_query(text)
        parts = self._parts
        if parts.audit is not None:  # a search reads past the observed store
            parts.audit.note("read", self.scope, "memory and turn")
        with parts.telemetry.operation("recall", self.scope) as doing:
            if not self._visible.is_whole:
                asked = replace(asked, visible=self._visible)
            recall = await parts.recaller.search(self.scope, text, asked, lambda: self._times)
            doing.outcome = recall.outcome
            doing.count, doing.attributes = len(recall.hits), {"cut": ",".join(recall.cut)}
            if parts.telemetry.captures_content:
                query = parts.write_filter.value(self.scope, text)
                doing.content = content_of(map(_found, recall.hits), query)
        parts.hooks.emit(Recalled(scope=self.scope, recall=recall, duration_ms=doing.duration_ms))
        return recall

    async def warm(self) -> None:
        """Load what a recall and a brief need, as when the phone rings: partitions, encoder and modules.

        An unreachable embedder is not an error here: recall works by words and sounds without it.
        """
        await load("echoic.memory.block", "echoic.memory.conversation")
        await self._search(_GREETING, SearchOptions(limit=1))

    def check_loop(self) -> None:
        """Raise NotOpen if the memory is not open in the running event loop."""
        self._parts.recaller.check_loop()

    def listen(
        self,
        *,
        limit: int = 5,
        timezone: str | tzinfo | None = None,
        min_relevance: float | None = None,
        besides: str | Collection[str] | None = None,
    ) -> Speculation:
        """Search on interim transcripts while the user speaks, so that the result is ready when they stop.

        Arguments as for `recall`; they are checked here.
        """
        from echoic.memory.speculation import InterimSearches, Speculation

        asked = SearchOptions(limit, None, False, timezone, min_relevance, besides).checked()
        looked_in = partial(self._parts.recaller.partitions, self.scope)
        return Speculation(InterimSearches(self._search, asked, looked_in, lambda: self.level))

    async def brief(
        self,
        text: str,
        *,
        budget_tokens: int = ANSWER_TOKENS,
        deadline_ms: float | None = None,
        timezone: str | tzinfo | None = None,
        min_relevance: float | None = None,
        besides: str | Collection[str] | None = None,
    ) -> Packed:
        """The answer to `text` as prompt text: a few quoted lines, each once, with their age.

        Questions for a list read more hits. A turn that needs its neighbour to be understood is shown with
        it. If nothing is known, or the search was incomplete, the text says so. `budget_tokens` is the
        maximum length, counted as for `Block`; other arguments as for `recall`.
        """
        from echoic.memory.block import hits_for

        limit = hits_for(text, budget_tokens)
        asked = SearchOptions(limit, deadline_ms, False, timezone, min_relevance, besides).checked()
        until = Deadline(deadline_ms)
        # read beside the search, which may use up the deadline
        zone = asyncio.ensure_future(self._times.zone(self.scope, timezone))
        zone.add_done_callback(noted)  # the search may raise first
        return await self._packed(await self._search(text, asked), budget_tokens, asked, until, zone)

    async def pack(
        self, recall: Recall, *, budget_tokens: int = ANSWER_TOKENS, timezone: str | tzinfo | None = None
    ) -> Packed:
        """An earlier recall, such as from `listen`, as the prompt text that `brief` returns.

        Raises:
            InvalidInput: the budget is not a whole number above 0, or a hit belongs to another user.
        """
        asked = SearchOptions(timezone=timezone)
        return await self._packed(self._visible.recall(recall), budget_tokens, asked, Deadline(None))

    async def _packed(
        self,
        recall: Recall,
        budget_tokens: int,
        asked: SearchOptions,
        until: Deadline,
        known: asyncio.Future[tzinfo] | None = None,
    ) -> Packed:
        from echoic.memory.block import packed

        async def zone() -> tzinfo:
            if known is None:
                return await self._times.zone(self.scope, asked.timezone)
            return await until.wait(known) or self._times.last

        return await packed(
            self._seen, self.scope, recall, budget_tokens, zone=zone, until=until, left_out=asked.left_out
        )

    async def block(
        self,
        *,
        agent: str | None = None,
        conversation: str | None = None,
        moment: str | None = None,
        budget_tokens: int = BLOCK_TOKENS,
        deadline_ms: float | None = None,
        min_relevance: float | None = None,
        besides: str | Collection[str] | None = None,
    ) -> Block:
        """The memory that a session starts with, as prompt text; identical bytes while nothing changed.

        It includes the experience of `agent`, and the directives for that agent and the running
        `conversation`. Memories that match `moment`, what the user just said, are appended by a recall with
        the given deadline and relevance, without the turns of `conversation`. `besides` are ids of memories
        to leave out. `budget_tokens` is the maximum length, counted as for `Block`.

        Raises:
            StoreUnavailable: the store could not be read; an empty block would say that nothing is known.
        """
        from echoic.memory.block import BlockMaker

        options = SearchOptions(deadline_ms=deadline_ms, min_relevance=min_relevance, besides=besides)
        if conversation is not None:
            options = replace(options, besides=options.left_out | {conversation})
        maker = BlockMaker(self._seen, self)
        return await maker.make(agent, conversation, moment, budget_tokens, options.checked())

    # -- who the user is, and how they want to be served

    @overload
    async def profile(self) -> Profile: ...

    @overload
    async def profile(self, model: type[P], *, keys: Mapping[str, str] | None = None) -> P: ...

    async def profile(self, model: Any = None, *, keys: Mapping[str, str] | None = None) -> Any:
        """The user's profile: a view of the memories stored under keys.

        `model` is a Pydantic model to fill instead of `Profile`, and `keys` maps its fields to keys with
        other names; see `echoic.memory.profile.model_profile`.
        """
        memories = await self.facts()
        return profile_of(memories) if model is None else model_profile(model, memories, keys)

    async def directives(
        self, *, for_agent: str | None = None, for_conversation: str | None = None
    ) -> Directives:
        """How the user wants to be served, including directives for this agent or this conversation alone."""
        named = {"agent": for_agent, "conversation": for_conversation}
        return await read_directives(self._parts.store, self.scope, **named)

    async def set_directives(
        self, *, for_agent: str | None = None, for_conversation: str | None = None, **directives: str | None
    ) -> Directives:
        """Set directives by name, or remove them with None. They apply in every later session.

        `pacing`, `verbosity` and `formality` have presets (`echoic.types.PRESETS`) and take any other short
        text too; `language` is a tag; `time_zone` is the user's zone ("Europe/Lisbon", "Eastern"); any other
        name takes a short text. They can be set for one agent or one conversation alone; returned are the
        directives set there, without the others.

        Raises:
            InvalidInput: a value is not valid, there is no such conversation, or both an agent and a
                conversation are named; nothing was changed.
        """
        named = {"agent": for_agent, "conversation": for_conversation}
        self._parts.write_filter.refuse_instructions("a directive", *directives.values())
        return await change_directives(self._parts.store, self.scope, directives, **named)

    # -- conversations, which are tasks as well

    async def conversation(
        self, conversation_id: str = "", *, agent: str | None = None, begin: bool = True
    ) -> OpenConversation:
        """Open a conversation, or continue the one with that id. Without an id a new one is created.

        `begin=False` writes nothing: an append to a conversation that does not exist, or no longer, is
        refused.
        """
        await load("echoic.memory.conversation")
        from echoic.memory.conversation import open_conversation

        return await open_conversation(
            self._parts, self.scope, conversation_id, agent, begin=begin, seen=lambda: self._seen.store
        )

    async def conversations(
        self,
        *,
        agent: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Conversation]:
        """The user's conversations, oldest first; each argument that is given narrows the list.

        `since` (inclusive) and `until` (exclusive), both aware, compare with when a conversation began.
        """
        from echoic.memory.tasks import ConversationFilter, read_conversations

        chosen = ConversationFilter(agent=agent, status=status, since=since, until=until)
        return await read_conversations(self._seen.store, self.scope, chosen)

    async def find_conversation(self, conversation_id: str) -> Conversation | None:
        """The conversation with that id; None if there is none or it was forgotten."""
        from echoic.memory.tasks import read_conversation

        return await read_conversation(self._seen.store, self.scope, conversation_id)

    async def recall_conversation(self, key: str) -> Transcript | None:
        """The conversation stored under a key like `key`, in words, spelling or sound; None if no key is
        similar, or what is similar has another number ("order 4712" does not find "order 4711").

        If two are stored under the same key, the newer is returned. Retracted words are left out of its
        turns.
        """
        from echoic.memory.conversation import find_transcript

        return await find_transcript(self._seen, self.scope, key)

    async def task(self, conversation_id: str) -> Task | None:
        """A conversation with its turns and results, or None."""
        from echoic.memory.tasks import read_task

        return await read_task(self._seen.store, self.scope, conversation_id)

    async def add_result(
        self,
        conversation_id: str,
        name: str,
        value: Any,
        *,
        id: str = "",  # noqa: A002 - as everywhere
        arguments: Mapping[str, Any] | None = None,
        at: datetime | None = None,
    ) -> Result:
        """Store the result of a step of a task, such as a tool's. Durable when it returns.

        `value` and the tool's `arguments` are JSON, at most 32 KiB and 100 levels deep. Without an id, one
        follows from task, name and value, so that repeating the call changes nothing. Raises InvalidInput if
        there is no such conversation, or the value cannot be stored.
        """
        from echoic.memory.tasks import Result, keep_result

        moment = self._parts.clock() if at is None else checked_time(at, "at")
        result = Result(id=id, name=name, value=value, at=moment, arguments=arguments)
        masked = partial(self._parts.write_filter.value, self.scope)
        told = None if self._visible.is_whole else self._visible.most
        return await keep_result(
            self._parts.store, self.scope, conversation_id, result, masked=masked, told=told
        )

    async def fail(self, conversation_id: str) -> Conversation:
        """Mark a task as failed. Its turns stay and are learned from like any others."""
        from echoic.memory.tasks import mark

        at = self._parts.clock()
        failed = await mark(self._parts.store, self.scope, conversation_id, status="failed", updated_at=at)
        self._parts.background.poke((self.scope, conversation_id))
        return failed

    async def jobs(self) -> Jobs:
        """Which of the user's conversations are still to be learned from, and which are parked."""
        return await self._parts.distiller.jobs_of(self.scope)

    # -- everything at once

    async def export(self) -> dict[str, Any]:
        """What is kept about the user, as JSON for `restore`: every version of every memory, conversations
        with turns and results, directives and items.

        "global" has the memories that became global without approval and still name the user; `restore`
        ignores it. Records of calls, with what a model was given, checkpoints, consent, a hold, telephone
        lines and the PIN are not exported.
        """
        from echoic.memory.export import export_scope

        self._visible.needed("an export of all that is kept")
        if self._parts.audit is not None:
            self._parts.audit.note("export", self.scope, "everything")
            await self._parts.audit.flush()
        return await export_scope(self._parts.store, self.scope)

    async def restore(self, exported: Mapping[str, Any]) -> int:
        """Import what `export` returned, for any user; existing records stay unchanged.

        If a key has another value here, the newest becomes current and the others history. A turn whose id
        another conversation has here gets a new one. What the user took off the record here is left out.
        Returns the number of new records.

        Raises:
            InvalidInput: it is not an export, or something in it could not be stored otherwise either (`set`,
                `set_directives`); nothing was written.
            NotKept: the user chose "never" or "ask"; nothing was written.
            QuotaExceeded: there is no room for all of it.
        """
        from echoic.memory.export import restore_scope

        def check(record: Record) -> None:
            refuse = self._parts.write_filter
            if record.kind == DIRECTIVES:
                told = directives_of(record)
                presets = told.pacing, told.verbosity, told.formality, told.language
                refuse.refuse_instructions("a directive", *presets, *told.free.values())
            elif record.kind == MEMORY:
                memory, named = memory_of(record), f"memory {brief(record.id)}"
                said, key = memory.statement or memory.text, memory.key
                refuse.refuse_instructions(named, memory.text, memory.statement, memory.context, key=key)
                refuse.refuse_third_parties(named, said, memory.context, key=key)

        reader = await self._parts.distiller.model()
        count = await restore_scope(
            self._parts.store, self.scope, exported, check, meter=self._parts.meter, reader=reader
        )
        self._parts.background.poke()
        return count

    async def forget(
        self,
        *,
        key: str | None = None,
        conversation: str | None = None,
        id: str | None = None,  # noqa: A002 - as it is called in what is found
        asked: str | None = None,
        learned_from: Collection[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Receipt:
        """Destroy everything stored about the user, or only what one argument selects.

        Records, words, sounds and vectors are removed from every place where the store keeps bytes, including
        what the user made global and lessons that only their conversations taught an agent. A global memory
        that an operator approved belongs to the deployment and stays: it holds no personal data and no
        author.

        With a key or a memory, the words that said it are destroyed in every turn, summary, call and tool
        result, and memories that repeat it are destroyed too. The rest of such a turn stays, with
        "[forgotten]" in their place, and is never learned from again (`Receipt.rewritten`).
        `Receipt.kept_because` counts similar records that stay, such as a turn that means something else by
        the same value.

        Args:
            key: a key with its history.
            conversation: a conversation. What was learned from it stays, since it may have been said
                elsewhere: `forget(key=…)` destroys it.
            id: a memory, with what the user proposed or made global of it, or a turn with what was learned
                from it alone.
            asked: the id of a turn in which the user asked to forget something ("rub out what I said about my
                knee"). Recall hides it as soon as the turn is read; since the rules that read the request may
                be wrong, only this call destroys it, once the user confirmed. It is what `asked_to_forget`
                returns.
            learned_from: ids of turns, stored or not, such as those of a call that must not be kept: what was
                learned from them alone. A key they corrected is retracted.
            since: everything said or stored then (aware) or later, with what was learned from that alone.
            until: with or without `since`: everything before then.

        Raises:
            NotAllowed: the user's data is on hold (`hold`), or the level of this handle is too low.
            InvalidInput: `id`, `asked`, `learned_from` or a span is combined with another argument, or is not
                valid; or the turn `asked` is not stored or refers to nothing, so that the user must be asked.
        """
        from echoic.memory.erasure import Erasing
        from echoic.memory.retention import refuse_held

        await self._may_destroy("what this names", key, id)
        await refuse_held(self._parts.store, self.scope)
        self._parts.pending.drop(self.scope)  # turns waiting for consent may contain it as well
        given: dict[str, object] = {"key": key, "conversation": conversation, "id": id, "asked": asked}
        given |= {"learned_from": learned_from, "since": since, "until": until}
        what = {name: value for name, value in given.items() if value is not None}
        return await Erasing(self._parts, self.scope).requested(**what)

    async def hold(self, *, on: bool = True) -> None:
        """Put the user's data on hold, or release it: for operators, as when a court orders it.

        On hold none of it is destroyed, neither by `forget` nor by retention; `delete` still hides it.

        Raises:
            NotAllowed: the level of this handle does not see everything.
        """
        self._visible.needed("a hold")
        from echoic.memory.retention import hold

        await hold(self._parts.store, self.scope, on=on, at=self._parts.clock())

    async def held(self) -> bool:
        """Whether the user's data is on hold."""
        from echoic.memory.retention import is_held

        return await is_held(self._parts.store, self.scope)

    async def consent(self) -> Consent:
        """Whether what the user says may be stored."""
        return await read_consent(self._parts.store, self.scope)

    async def set_consent(self, consent: Consent) -> None:
        """Set whether what the user says may be stored, in every process, from the next write on.

        "never": no turn, memory or record of a call is stored or learned from. Agents still use what is known
        already: nothing is destroyed; `forget` does that. `set` and similar methods raise NotKept. "ask": the
        same in each conversation until the user agrees (`OpenConversation.remember`). A change applies to
        running conversations too. `forget` does not change this choice.

        Raises:
            InvalidInput: there is no such consent.
            NotAllowed: the consent is not "never", and the level of this handle does not see everything.
        """
        if checked_consent(consent) != "never":
            self._visible.needed("keeping again what is said")
        await write_consent(self._parts.store, self.scope, consent, self._parts.clock())

    async def keeps_nothing(self, conversation: str) -> bool:
        """Whether nothing may be stored of a conversation, at least until the user is asked."""
        return await keeps_nothing(
            self._parts.store, self.scope, checked_name(conversation, "conversation id")
        )

    async def asks_first(self, conversation: str | None = None) -> bool:
        """Whether the user has yet to say if the conversation may be kept; None: the current one."""
        return await verdict(self._parts.store, self.scope, conversation or "") == "ask"

    async def _may_destroy(self, what: str, key: str | None, name: str | None) -> None:
        """Raise NotAllowed if the caller may not be told everything to be destroyed, or it does not exist."""
        if self._visible.is_whole:
            return
        own = self._keyed
        kept = await own.history(key) if key is not None else []
        seen = await self.history(key) if key is not None else []
        found = name and [await self._seen.store.read(self.scope, kind, [name]) for kind in (MEMORY, TURN)]
        if not (kept and kept == seen) and not (found and any(found)):
            self._visible.needed(what)

    async def asked_to_forget(self, turn: Turn) -> list[Turn] | None:
        """The turns that a request to forget in `turn` refers to; None if it has no such request.

        Changes nothing. An empty list means that the request is ambiguous: ask the user what they mean. A
        request to forget everything refers to no turns: `forget()` carries it out.
        """
        from echoic.memory.forget_targets import reached

        found = await reached(self._seen.store, self.scope, turn)
        return None if found is None else list(found.said)

    # -- for what is built on a user's memory

    def items(self, kind: str, *, searchable: bool = False, conversation: str | None = None) -> Items:
        """Your own records of one kind: JSON values under names, which no recall finds; see `Items`.

        `searchable` items are found by the text they are stored with; those of a `conversation` are forgotten
        with it.
        """
        self._visible.needed("records of a kind of your own")
        from echoic.memory.items import Items

        return Items(self._parts, self.scope, kind, searchable=searchable, conversation=conversation)

    @property
    def backing_store(self) -> Store:
        """The store, for records of another kind beside the memories, in `scope`."""
        return self._parts.store

    @property
    def visible_store(self) -> Store:
        """The store limited to what may be told at this level."""
        return self._seen.store

    def tell_tool_use(self, used: ToolUsed) -> None:
        """Call hooks with a model's use of a tool of this memory. For code that makes such tools.

        Raises InvalidInput if it belongs to another user.
        """
        if used.scope != self.scope:
            raise InvalidInput("this tool was used for another user: tell it by their memory")
        self._parts.tell_tool_use(used)


def _found(hit: Hit) -> dict[str, object]:
    named = hit.memory or hit.turn
    return {"id": named.id if named else "", "content": hit.text, "score": hit.relevance}


__all__ = ["ANSWER_TOKENS", "BLOCK_TOKENS", "MAX_LIMIT", "P", "UserMemory"]
