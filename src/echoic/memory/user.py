"""What one user's memory can do: the surface everything else is built on. Every verb is of one scope."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from echoic.errors import InvalidInput, WriteConflict
from echoic.memory.block.tokens import counter_of
from echoic.memory.brief import DEFAULT_BUDGET_TOKENS as ANSWER_TOKENS
from echoic.memory.brief import hits_for, packed
from echoic.memory.conversation import OpenConversation, Transcript
from echoic.memory.distil import Jobs
from echoic.memory.distilling.progress import PROGRESS, progress_id
from echoic.memory.experience import unlearn
from echoic.memory.hooks import Forgotten, Recalled
from echoic.memory.ledger import Ledger, memory_id
from echoic.memory.portable import export_scope, restore_scope
from echoic.memory.proposals import put_proposal
from echoic.memory.records import (
    CALL_PARTS,
    CHECKPOINT,
    CONVERSATION,
    GIVEN,
    MEMORY,
    PROPOSAL,
    TURN,
    memory_of,
    record_of_memory,
    scan_all,
)
from echoic.memory.retry import until_written
from echoic.memory.served import Served
from echoic.memory.shares import unsigned
from echoic.memory.sharing import Shareable, share
from echoic.memory.speculation import Speculation
from echoic.memory.spoken_keys import match_keys
from echoic.memory.tasks import RESULT
from echoic.memory.times.reader import TimeReader
from echoic.partition import Partition
from echoic.ranking.packing import Packed
from echoic.stores.base import Drop, Put, Record
from echoic.types import (
    Category,
    Hit,
    Memory,
    Recall,
    Receipt,
    Scope,
    checked_category,
    checked_name,
    checked_text,
    checked_time,
)

if TYPE_CHECKING:
    from echoic.memory.service import Parts

MAX_LIMIT = 1000
_GREETING = "hello"  # asks for nothing: what it makes ready is all it is for


@dataclass(frozen=True, slots=True)
class _Searching:
    """The searches of one listener."""

    user: UserMemory
    limit: int
    timezone: str | tzinfo | None

    async def search(
        self, text: str, *, deadline_ms: float | None = None, meanwhile: str | None = None
    ) -> Recall:
        return await self.user._recall(  # noqa: SLF001 - a part of the same class, kept apart
            text, limit=self.limit, deadline_ms=deadline_ms, timezone=self.timezone, meanwhile=meanwhile
        )

    async def partitions(self) -> list[Partition]:
        parts = self.user._parts  # noqa: SLF001
        return [await parts.store.load(at) for at in parts.shares.places(self.user.scope)]


class UserMemory(Served):
    """The memory of one user in one deployment. Cheap to make; holds no state of its own."""

    def __init__(self, parts: Parts, scope: Scope) -> None:
        if scope.user is None:
            raise InvalidInput("user is empty: None. Nothing is read or written without one.")
        self._parts = parts
        self._user = scope.user
        self.scope = scope

    # -- keyed memories

    async def set(
        self, key: str, value: str, *, category: Category = "fact", context: str | None = None
    ) -> Memory:
        """Keep `value` under `key`. What was there before is superseded and stays in `history`.

        What is about no person (opening hours, prices, policies) becomes global, with personal data taken
        out, at once or after approval; see `GlobalWrites`. Doubt means private.

        Returns:
            the memory as kept; `visibility` says for whom.

        Raises:
            InvalidInput: key or value cannot be kept.
            StoreUnavailable: nothing was kept; set it again.
        """
        memory = Memory(
            id="",
            key=checked_name(key, "key"),
            text=checked_text(value, "value"),
            category=checked_category(category),
            context=context if context is None else checked_text(context, "context"),
            author=self._user,
            valid_from=self._parts.clock(),
        )
        shareable = await self._shareable(memory)
        kept = await until_written(lambda: self._set(memory, shareable), f"key {key!r}")
        self._parts.background.poke()
        return kept

    async def get(self, key: str) -> Memory | None:
        """What holds under `key`: the user's own, else what is global, else what others share.

        None: nothing is known.
        """
        checked_name(key, "key")
        own = await self._parts.store.scan(self.scope, MEMORY, key=key, limit=1, newest_first=True)
        if own and memory_of(own[0]).current:
            return memory_of(own[0])
        everyones = await self._parts.store.scan(self.scope.everyone, MEMORY, key=key, newest_first=True)
        current = [memory for record in everyones if (memory := memory_of(record)).current]
        # the user's own word first, then the deployment's, then the newest of anyone's
        current.sort(key=lambda m: 0 if m.author == self._user else 1 if m.author is None else 2)
        return current[0] if current else await self._shared(key)

    async def delete(self, key: str) -> bool:
        """Take back what the user keeps under `key`; whether there was anything of theirs to take back.

        It is no longer found, but stays in `history`; `forget(key=…)` destroys. Another's global memory is
        never touched.
        """
        checked_name(key, "key")
        at = self._parts.clock()
        deleted = [
            await until_written(partial(self._end, scope, key, at), f"key {key!r}")
            for scope in (self.scope, self.scope.everyone)
        ]
        await self._withdraw(key)
        return any(deleted)

    async def history(self, key: str) -> list[Memory]:
        """Every version of what the user kept under `key`, oldest first, retracted ones included."""
        checked_name(key, "key")
        own = await self._all(self.scope, MEMORY, key=key)
        everyones = await self._all(self.scope.everyone, MEMORY, key=key)
        shared = [memory for record in everyones if (memory := memory_of(record)).author == self._user]
        versions = [memory_of(record) for record in own] + shared
        return sorted(versions, key=lambda memory: memory.valid_from) if shared else versions

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
        for number in count():
            # the id follows from what is said, so that two processes told the same keep it once
            new = replace(memory, id=memory_id("", text, category, context or "", str(number)))
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

    async def facts(self) -> list[Memory]:
        """Everything that holds, as the user has it: oldest first, superseded and retracted ones left out."""
        own = [memory_of(record) for record in await self._all(self.scope, MEMORY)]
        everyones = [memory_of(record) for record in await self._all(self.scope.everyone, MEMORY)]
        return [m for m in own if m.current] + [m for m in everyones if m.current and m.author == self._user]

    async def past(self) -> list[Memory]:
        """What the user kept and holds no longer, oldest first: corrected or taken back, not destroyed."""
        own = [memory_of(record) for record in await self._all(self.scope, MEMORY)]
        everyones = [memory_of(record) for record in await self._all(self.scope.everyone, MEMORY)]
        return [m for m in (*own, *everyones) if not m.current and m.author == self._user]

    # -- search

    async def query(
        self,
        text: str,
        *,
        limit: int = 10,
        include_past: bool = False,
        timezone: str | tzinfo | None = None,
    ) -> list[Hit]:
        """The best `limit` memories and turns for `text`: the user's own and what is global, in one ranking.

        Empty when nothing is known. While the embedder cannot be reached, what words and sounds find.

        Raises:
            StoreUnavailable: could not look.
        """
        recall = await self.recall(text, limit=limit, include_past=include_past, timezone=timezone)
        return list(recall.hits)

    async def recall(
        self,
        text: str,
        *,
        limit: int = 10,
        deadline_ms: float | None = None,
        include_past: bool = False,
        timezone: str | tzinfo | None = None,
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
        """
        return await self._recall(
            text, limit=limit, deadline_ms=deadline_ms, include_past=include_past, timezone=timezone
        )

    async def warm(self) -> None:
        """Make ready what a recall needs, as when the phone rings: both partitions, the encoder, the parser.

        After it, the first question of a call is as fast as any other. An embedder that cannot be reached
        is no error here: words and sounds answer without it.

        Raises:
            StoreUnavailable: could not look.
        """
        await self._times.warm()
        await self._recall(_GREETING, limit=1)

    async def brief(
        self,
        text: str,
        *,
        budget_tokens: int = ANSWER_TOKENS,
        deadline_ms: float | None = None,
        timezone: str | tzinfo | None = None,
    ) -> Packed:
        """What is known for `text`, as a model gets it: few quoted lines, each once, with their age.

        More is looked at where the question asks for a list. A turn that leans on its neighbour is shown with
        it. Where nothing is known, or not all could be looked through, the text says so.

        Args:
            text: the question.
            budget_tokens: of the whole text, by the counting of `Block`; never exceeded.
            deadline_ms: of the recall.
            timezone: as for `recall`.
        """
        recall = await self.recall(text, limit=hits_for(text), deadline_ms=deadline_ms, timezone=timezone)
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
            InvalidInput: the budget is below 1, or a hit is another user's.
        """
        if any(hit.scope not in self._parts.shares.places(self.scope) for hit in recall.hits):
            raise InvalidInput("a hit of this recall belongs to another user: pack it with theirs")
        return await packed(
            self._parts.store,
            recall,
            budget_tokens,
            count=counter_of(self._parts.embedder),
            now=self._parts.clock(),
            zone=await self._times.zone(self.scope, timezone),
        )

    def listen(self, *, limit: int = 5, timezone: str | tzinfo | None = None) -> Speculation:
        """Recall on interim transcripts while the user speaks, so that the answer is there when they end.

        Args:
            limit: hits at most, 1 to `MAX_LIMIT`.
            timezone: as for `recall`.
        """
        return Speculation(_Searching(self, limit, timezone))

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

        Of two stored under the same key the newer is meant. None: no key is like it.
        """
        checked_name(key, "recall key")
        stored = {c.id: c for c in await self.conversations() if c.recall_key}
        newest_first = dict(reversed(stored.items()))
        matches = match_keys(key, {name: c.recall_key or "" for name, c in newest_first.items()})
        if not matches:
            return None
        name, likeness = matches[0]
        turns = await OpenConversation(self._parts, self.scope, name, None).turns()
        return Transcript(conversation=stored[name], turns=tuple(turns), likeness=likeness)

    async def jobs(self) -> Jobs:
        """Which of the user's conversations are still to be learned from, and which were given up."""
        return await self._parts.distiller.jobs_of(self.scope)

    # -- everything at once

    async def export(self) -> dict[str, Any]:
        """All that is kept of the user, as JSON: every version of every memory, every conversation."""
        return await export_scope(self._parts.store, self.scope)

    async def restore(self, exported: Mapping[str, Any]) -> int:
        """Take in what `export` gave, of any user; what is known already is left as it is.

        Returns:
            how many records were new.

        Raises:
            InvalidInput: this is not an export; nothing was written.
        """
        count = await restore_scope(self._parts.store, self.scope, exported)
        self._parts.background.poke()
        return count

    async def forget(self, *, key: str | None = None, conversation: str | None = None) -> Receipt:
        """Destroy all that is kept of the user, or one key with its history, or one conversation.

        Records, words, sounds and vectors go, from every place the store keeps bytes in; what the user made
        global goes with them, and what their conversations alone taught an agent. A global memory that an
        operator approved is the deployment's own by then and stays: it holds no personal data, and not who
        said it.
        """
        with self._parts.telemetry.operation("erase", self.scope) as doing:
            receipt = await self._forget(key, conversation)
            doing.note(records=receipt.records, vectors=receipt.vectors, verified=int(receipt.verified))
        self._parts.telemetry.erased(receipt.records)
        what: Literal["everything", "key", "conversation"] = (
            "key" if key is not None else "conversation" if conversation is not None else "everything"
        )
        event = Forgotten(scope=self.scope, what=what, receipt=receipt, duration_ms=doing.duration_ms)
        self._parts.hooks.emit(event)
        return receipt

    async def _forget(self, key: str | None, conversation: str | None) -> Receipt:
        own = await self._chosen(self.scope, key, conversation)
        shared = [] if conversation else await self._authored(key)
        drops = [Drop(kind=record.kind, id=record.id) for record in shared]
        if own is None:
            drops += await unlearn(self._parts.store, self.scope)
        self._parts.recaller.forget()
        erased = [await self._parts.store.erase(self.scope, own)]
        if drops:
            erased.append(await self._parts.store.erase(self.scope.everyone, drops))
        kinds: Counter[str] = sum((Counter(part.records) for part in erased), Counter())
        return Receipt(
            memories=kinds.pop(MEMORY, 0),
            turns=kinds.pop(TURN, 0),
            conversations=kinds.pop(CONVERSATION, 0),
            other=sum(kinds.values()),
            vectors=sum(part.vectors for part in erased),
            verified=all(part.verified for part in erased),
            bytes_searched=sum(part.bytes_searched for part in erased),
        )

    # -- inside

    @property
    def _times(self) -> TimeReader:
        return TimeReader(self._parts.store, self._parts.recaller, self._parts.clock)

    async def _recall(
        self,
        text: str,
        *,
        limit: int,
        deadline_ms: float | None = None,
        include_past: bool = False,
        timezone: str | tzinfo | None = None,
        meanwhile: str | None = None,
    ) -> Recall:
        checked_text(text, "query")
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_LIMIT:
            raise InvalidInput(f"limit must be a whole number from 1 to {MAX_LIMIT}, not {limit!r}")
        if deadline_ms is not None and not deadline_ms > 0:
            raise InvalidInput(f"deadline_ms must be above 0, not {deadline_ms!r}")
        with self._parts.telemetry.operation("recall", self.scope) as doing:
            recall = await self._parts.recaller.recall(
                self.scope,
                text,
                limit=limit,
                deadline_ms=deadline_ms,
                include_past=include_past,
                meant=self._times.read(self.scope, text, timezone),
                meanwhile=meanwhile,
            )
            doing.outcome = recall.outcome
            doing.note(hits=len(recall.hits), cut=",".join(recall.cut))
        self._parts.telemetry.found(len(recall.hits))
        event = Recalled(scope=self.scope, recall=recall, duration_ms=doing.duration_ms)
        self._parts.hooks.emit(event)
        return recall

    async def _shared(self, key: str) -> Memory | None:
        """What holds under `key` in the first deployment that shares anything of that name."""
        for scope in self._parts.shares.of(self.scope):
            records = await self._parts.store.scan(scope, MEMORY, key=key, newest_first=True)
            current = [memory for record in records if (memory := memory_of(record)).current]
            if current:  # what its operator said first, then the newest of anyone's
                return unsigned(next((memory for memory in current if memory.author is None), current[0]))
        return None

    async def _shareable(self, memory: Memory) -> Shareable | None:
        verdict = await self._parts.classifier.classify(memory.text, memory.key)
        # whoever classified: nothing is shared that the deterministic check does not let pass
        return share(memory.text, memory.key, verdict=verdict)

    async def _set(self, memory: Memory, shareable: Shareable | None) -> Memory:
        if shareable is None:
            await self._withdraw(memory.key or "")
            return await self._set_own(memory)
        shared = replace(memory, text=shareable.text, redacted=shareable.kinds)
        if self._parts.global_writes == "propose":
            proposal = replace(shared, id=memory_id(self._user, memory.key or ""), visibility="proposed")
            await self._parts.store.write(self.scope.everyone, [put_proposal(proposal)])
            return await self._set_own(replace(memory, visibility="proposed"))
        kept = await self._set_in(self.scope.everyone, replace(shared, visibility="global"))
        await self._end(self.scope, memory.key or "", memory.valid_from)
        return kept

    async def _set_own(self, memory: Memory) -> Memory:
        kept = await self._set_in(self.scope, memory)
        await self._end(self.scope.everyone, memory.key or "", memory.valid_from)
        return kept

    async def _set_in(self, scope: Scope, memory: Memory) -> Memory:
        ledger = Ledger(self._parts.store, scope)
        kept = await ledger.set(memory)
        await self._parts.store.write(scope, ledger.changes)
        return kept

    async def _end(self, scope: Scope, key: str, at: datetime) -> bool:
        """What the user keeps under `key` in `scope` holds no longer; whether there was anything."""
        ledger = Ledger(self._parts.store, scope)
        ended = await ledger.retract(key, self._user, at)
        await self._parts.store.write(scope, ledger.changes)
        return ended is not None

    async def _withdraw(self, key: str) -> None:
        """What the user proposed under `key` is proposed no longer."""
        name = memory_id(self._user, key)
        if await self._parts.store.read(self.scope.everyone, PROPOSAL, [name]):
            await self._parts.store.write(self.scope.everyone, [Drop(kind=PROPOSAL, id=name)])

    async def _all(self, scope: Scope, kind: str, *, key: str | None = None) -> list[Record]:
        return await scan_all(self._parts.store, scope, kind, key=key)

    async def _authored(self, key: str | None) -> list[Record]:
        """Global memories and proposals of this user."""
        records = await self._all(self.scope.everyone, MEMORY, key=key)
        records += await self._all(self.scope.everyone, PROPOSAL, key=key)
        return [record for record in records if record.data.get("author") == self._user]

    async def _chosen(self, scope: Scope, key: str | None, conversation: str | None) -> list[Drop] | None:
        """What to destroy in `scope`; None: all of it."""
        if key is None and conversation is None:
            return None
        chosen: list[Record] = []
        if key is not None:
            chosen += await self._all(scope, MEMORY, key=checked_name(key, "key"))
            # what a model was given in a call may quote it, and so may the state a call would go on from
            chosen += await self._all(scope, GIVEN)
            chosen += await self._all(scope, CHECKPOINT)
        if conversation is not None:
            checked_name(conversation, "conversation id")
            chosen += await self._parts.store.read(scope, CONVERSATION, [conversation])
            for kind in (TURN, RESULT, *CALL_PARTS):
                chosen += await self._all(scope, kind, key=conversation)
            held = await self._all(scope, CHECKPOINT)
            chosen += [record for record in held if record.data.get("conversation") == conversation]
            for record in await self._all(scope, PROGRESS):
                if record.id == progress_id(record.key or "", conversation):
                    chosen.append(record)
        return [Drop(kind=record.kind, id=record.id) for record in chosen]
