"""Memory as prompt text: the block a session starts with, and the answer to one question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Final, Protocol

from echoic.checks import searchable
from echoic.errors import InvalidInput
from echoic.memory.experience import AgentExperience
from echoic.memory.profile import profile_and_sources
from echoic.memory.recall import Deadline, SearchOptions
from echoic.memory.records import TURN, recalled_turn
from echoic.memory.service_context import Parts
from echoic.prompt.answer import Around, Packed
from echoic.prompt.answer import pack as pack_answer
from echoic.prompt.block import (
    OPENING,
    Block,
    Draft,
    checked_budget,
    conversations_draft,
    counter_of,
    directives_draft,
    experience_draft,
    memories_draft,
    now_draft,
    pack,
    profile_draft,
    profile_line,
    withheld_draft,
)
from echoic.ranking.query import asks_list
from echoic.stores.base import Record, Store
from echoic.types import (
    Conversation,
    Directives,
    Experience,
    Hit,
    Memory,
    Outcome,
    Recall,
    Scope,
    Turn,
    checked_name,
    checked_query,
)

DEFAULT_BUDGET_TOKENS: Final = 600
_HITS: Final = 8
_SOURCES: Final = 200
"""Newest memories whose turns are read to find which agent heard them; older ones count as heard by another
agent."""


class BlockMaterial(Protocol):
    """The part of a user's memory that a block is built from."""

    scope: Scope

    async def facts(self) -> list[Memory]: ...

    async def conversations(self) -> list[Conversation]: ...

    async def directives(self, *, for_agent: str | None, for_conversation: str | None) -> Directives: ...

    async def asks_first(self, conversation: str | None) -> bool:
        """Whether the user has yet to say if the conversation may be kept."""

    async def withholds(self) -> bool:
        """Whether something is withheld from this caller."""

    async def recall(
        self,
        text: str,
        *,
        limit: int,
        deadline_ms: float | None,
        min_relevance: float | None,
        besides: str | Collection[str] | None,
    ) -> Recall:
        """The hits for `text` that enter the block."""


class BlockMaker:
    """Builds the blocks of one user."""

    def __init__(self, parts: Parts, user: BlockMaterial) -> None:
        self._parts = parts
        self._user = user

    async def make(
        self,
        agent: str | None,
        conversation: str | None,
        moment: str | None,
        budget_tokens: int,
        options: SearchOptions,
    ) -> Block:
        """See `UserMemory.block`."""
        checked_budget(budget_tokens)
        if moment is not None and not isinstance(moment, str):
            raise InvalidInput(f"moment must be a string, not {type(moment).__name__}")
        memories = [memory for memory in await self._user.facts() if memory.id not in options.left_out]
        profile, sources = profile_and_sources(memories)
        conversations = await self._user.conversations()
        said = searchable(moment or "")
        count = counter_of(self._parts.embedder)
        wishes = await self._user.directives(for_agent=agent, for_conversation=conversation)
        drafts = [
            experience_draft(await self._experience(agent)),
            profile_draft(profile),
            directives_draft(wishes, asks_first=await self._user.asks_first(conversation)),
        ]
        # what comes later changes nothing before it, so the profile is final; what it has no room for is
        # among the memories
        told = set(pack(OPENING, drafts, budget_tokens, count).section("profile").splitlines())
        drafts[1] = profile_draft(profile, told)
        used = {name for name, value in sources.items() if profile_line(profile, *value) in told}
        others = [memory for memory in memories if memory.id not in used]
        drafts += [
            memories_draft(
                others, of_agent=await self._heard_by(agent, others, conversations), moment=bool(said)
            ),
            conversations_draft([c for c in conversations if c.recall_key]),
            *([withheld_draft()] if await self._user.withholds() else []),
        ]
        block = pack(OPENING, drafts, budget_tokens, count)
        if not said or not block.sections:
            return block
        # memories created since the rest was read are left out here: the next block lists them
        known = {memory.id for memory in others}
        now, outcome = await self._now(said, block, known, options)
        return replace(pack(OPENING, [*drafts, now], budget_tokens, count), outcome=outcome)

    async def _experience(self, agent: str | None) -> Experience:
        if agent is None:
            return Experience(agent="")
        learned = AgentExperience(self._parts, self._user.scope.everyone, agent)
        return await learned.seen_by(self._user.scope)

    async def _heard_by(
        self, agent: str | None, memories: Sequence[Memory], conversations: Sequence[Conversation]
    ) -> Collection[str]:
        """Ids of memories first heard in a conversation with `agent`."""
        if agent is None:
            return ()
        checked_name(agent, "agent")
        served = {conversation.id for conversation in conversations if conversation.agent == agent}
        first = {memory.id: memory.source[0] for memory in memories[-_SOURCES:] if memory.source}
        names = list(dict.fromkeys(first.values()))
        turns = await self._parts.store.read(self._user.scope, TURN, names) if served else []
        heard = {turn.id for turn in turns if turn.key in served}
        return {memory for memory, turn in first.items() if turn in heard}

    async def _now(
        self, moment: str, block: Block, known: Collection[str], options: SearchOptions
    ) -> tuple[Draft, Outcome]:
        """Hits for the current turn that the block does not contain yet, and the search's outcome."""
        recall = await self._user.recall(
            moment,
            limit=_HITS,
            deadline_ms=options.deadline_ms,
            min_relevance=options.min_relevance,
            besides=options.besides,
        )
        found = [
            memory
            for hit in recall.hits
            for memory in hit.memories
            if hit.scope.user is None or memory.id in known
        ]
        said = set(block.section("memories").splitlines())
        draft = now_draft(found)
        lines = [line for line in draft.lines if line not in said]
        return Draft(name=draft.name, share=draft.share, lines=lines), recall.outcome


HITS, LIST_HITS = 25, 40
"""Hits looked at for one question, and for one that asks for a list."""
_REACH = 3
"""Rows searched on either side for a neighbouring turn; memories learned from turns lie between them."""


def hits_for(question: str, budget_tokens: int) -> int:
    """How many hits to read: more for a question that asks for a list. Raises InvalidInput."""
    checked_budget(budget_tokens)
    return LIST_HITS if asks_list(checked_query(question)) else HITS


async def packed(
    parts: Parts,
    scope: Scope,
    recall: Recall,
    budget_tokens: int,
    *,
    zone: Callable[[], Awaitable[tzinfo]],
    until: Deadline,
    left_out: Collection[str],
) -> Packed:
    """`recall`, packed with the neighbours of its turns; days are told in the time zone that `zone` returns.

    Neighbours that are late, or whose ids are in `left_out`, are not shown.

    Raises:
        InvalidInput: the budget is not a whole number above 0, or a hit belongs to another user.
        StoreUnavailable: the store could not be read.
    """
    checked_budget(budget_tokens)
    places = parts.recaller.shares.places(scope)
    if not all(hit.scope in places for hit in recall.hits):
        raise InvalidInput("a hit of this recall belongs to another user: pack it with theirs")
    around = await until.run(_around(parts.store, recall.hits, left_out)) or {}
    count = counter_of(parts.embedder)
    return pack_answer(
        recall, budget_tokens, count=count, now=parts.clock(), zone=await zone(), around=around
    )


async def _around(store: Store, hits: Sequence[Hit], left_out: Collection[str]) -> dict[str, Around]:
    """The turns directly before and after each turn among `hits`, without those in `left_out`."""
    found: dict[str, Around] = {}
    for scope in dict.fromkeys(hit.scope for hit in hits if hit.turn is not None):
        ids = [hit.turn.id for hit in hits if hit.turn is not None and hit.scope == scope]
        records = await store.read(scope, TURN, ids)
        near = {seq for record in records for seq in (*_before(record), *_after(record)) if seq >= 0}
        rows = {row.seq: row for row in await store.rows(scope, sorted(near))}
        for record in records:
            near_by = [_nearest(record, rows, side) for side in (_before(record), _after(record))]
            before, after = (None if turn is None or turn.id in left_out else turn for turn in near_by)
            found[record.id] = Around(place=record.seq, before=before, after=after)
    return found


def _before(record: Record) -> range:
    return range(record.seq - 1, record.seq - _REACH - 1, -1)


def _after(record: Record) -> range:
    return range(record.seq + 1, record.seq + _REACH + 1)


def _nearest(record: Record, rows: Mapping[int, Record], side: range) -> Turn | None:
    """The first turn of the same conversation in the rows of `side`."""
    near = (rows[seq] for seq in side if seq in rows)
    return next((recalled_turn(row) for row in near if row.kind == TURN and row.key == record.key), None)
