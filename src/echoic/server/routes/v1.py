"""Memory for a backend that has users, calls and an agent of its own: docs/http.md.

The backend exchanges its key for a token of one of its users. Every other route takes that token, so a user
is never named by a path or a body.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Body, Header
from pydantic import AwareDatetime, Field

from echoic.errors import InvalidInput
from echoic.memory.block import hits_for
from echoic.memory.speculation import MAX_ALTERNATIVES
from echoic.memory.user import ANSWER_TOKENS, BLOCK_TOKENS, MAX_LIMIT
from echoic.prompt.answer import Packed
from echoic.server.models import (
    ConversationView,
    Count,
    FoundHit,
    Heard,
    MemoryView,
    MinRelevance,
    Name,
    Question,
    RequestBody,
    ResponseModel,
    Speaker,
    SpokenText,
    Text,
    Time,
    TurnView,
    Whole,
    fields_of,
)
from echoic.server.problems import not_found, responses
from echoic.server.request_callers import (
    AsCaller,
    KeyDeployment,
    KnownToKeys,
    KnownToUsers,
    Shared,
    admit_key,
    admit_user,
    credential_first,
)
from echoic.server.routes import conversations, memories
from echoic.server.routes.conversations import known_conversation
from echoic.types import Category, Cut, Outcome, Recall, Sharing, Turn

for_keys = APIRouter(
    prefix="/v1", tags=["v1"], dependencies=[KnownToKeys], route_class=credential_first(admit_key)
)
router = APIRouter(
    prefix="/v1", tags=["v1"], dependencies=[KnownToUsers], route_class=credential_first(admit_user)
)

WRITES: Final = re.compile(r"/v1/(?:memories|keys/.+|conversations/.+/turns)", re.DOTALL)
"""The most frequent writes of a backend, which nobody waits for: recalls take precedence."""

TOKEN_S = 3600
"""Default lifetime of a user's token: longer than a call."""
_MOST_TURNS = 200
_READS = responses(401, 404, 422, 429, 503)
_ASKS = responses(401, 413, 422, 429, 503)
_WRITES = responses(401, 404, 409, 413, 422, 429, 503, 507)

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=256,
        description="Ids that the body leaves out follow from it, so that you can send the request again.",
    ),
]


# -- acting for a user


class TokenRequest(RequestBody):
    """The user to act for."""

    user: Name = Field(
        description="Your own id of the user. Spaces around it are removed.", examples=["crm-48213"]
    )
    expires_in_s: Whole = Field(
        default=TOKEN_S, ge=1, description="Seconds; at most as long as any identity lasts here."
    )


class UserToken(ResponseModel):
    """A token of one user."""

    token: str = Field(description="Send it as a bearer token. Its holder is this user.")
    user: str
    deployment_id: str
    token_id: str = Field(description="The id to revoke the token by.")
    expires_at: AwareDatetime


@for_keys.post("/tokens", summary="Get a token for a user", responses=responses(401, 403, 404, 413, 422, 429))
async def give_token(shared: Shared, deployment: KeyDeployment, asked: TokenRequest) -> UserToken:
    """With an agent key you act for the users of its deployment, with the operator key for those of any
    deployment served here. The user need not exist. The token cannot be renewed: ask for another.
    """
    most_s = shared.settings.token_lifetime_s
    if asked.expires_in_s > most_s:
        raise InvalidInput(f"expiresInS is {most_s} at most", field="expiresInS")
    minted = shared.tokens.mint_for(asked.user, deployment, asked.expires_in_s)
    return UserToken(
        token=minted.token,
        user=asked.user,
        deployment_id=deployment,
        token_id=minted.principal.token_id,
        expires_at=minted.principal.expires_at,
    )


# -- conversations


class NewConversation(RequestBody):
    """The conversation to begin."""

    id: Name | None = Field(
        default=None, description="Your own id of the call; a new one by default.", examples=["call-1"]
    )
    agent: Name | None = Field(default=None, description="The agent that serves it.", examples=["support"])


@router.post(
    "/conversations",
    summary="Begin a conversation without a greeting",
    responses=responses(401, 413, 422, 429, 503, 507),
)
async def begin(
    caller: AsCaller, asked: Annotated[NewConversation | None, Body()] = None, key: IdempotencyKey = None
) -> ConversationView:
    """Stores only the conversation itself, without a greeting. An existing id continues that conversation."""
    asked = asked or NewConversation()
    name = asked.id if asked.id is not None else _derived(key)
    opened = await caller.memory.conversation(name, agent=asked.agent)
    return ConversationView.of(await opened.info())


class NewTurn(RequestBody):
    """Something that was said."""

    speaker: Speaker = Field(description='"user", "agent", or the name of somebody else.', examples=["user"])
    text: SpokenText = Field(examples=["I'm allergic to penicillin"])
    id: Name | None = Field(
        default=None,
        description="Your own id, unique within the conversation. Appended again, it changes nothing.",
    )
    heard: Heard | None = Field(
        default=None, description="The words of an agent that the caller heard; null means all of them."
    )
    confidence: float | None = Field(
        default=None, ge=0, le=1, strict=True, description="The speech recogniser's."
    )
    said_at: Time | None = Field(default=None, description="When it was said; now by default.")

    def turn(self, name: str) -> Turn:
        """The turn, with `name` as its id where it has none."""
        given = {"id": self.id or name, "said_at": self.said_at or datetime.now(UTC)}
        return Turn(**self.model_dump() | given)


class NewTurns(RequestBody):
    """The turns to append, in spoken order."""

    turns: list[NewTurn] = Field(min_length=1, max_length=_MOST_TURNS)
    learn: bool = Field(default=True, strict=True, description="False: nothing is learned from these turns.")


class TurnList(ResponseModel):
    """Turns as they are kept, in order."""

    turns: list[TurnView]


@router.post("/conversations/{conversation:path}/turns", summary="Append turns", responses=_WRITES)
async def append(
    caller: AsCaller, conversation: Name, asked: NewTurns, key: IdempotencyKey = None
) -> TurnList:
    """All turns are durable when this answers, or none is. A turn whose id exists changes nothing, so it is
    safe to send a turn again. The conversation must have been begun: a late turn does not bring back a
    conversation that was forgotten.
    """
    opened = await known_conversation(caller, conversation)
    name = _derived(key, conversation)
    turns = [turn.turn(name and f"{name}-{place}") for place, turn in enumerate(asked.turns)]
    kept = await opened.append(*turns, learn=asked.learn)
    return TurnList(turns=[TurnView.of(turn) for turn in kept])


@router.get(
    "/conversations/{conversation:path}/turns", summary="List a conversation's turns", responses=_READS
)
async def turns(caller: AsCaller, conversation: Name) -> TurnList:
    """Everything said so far."""
    opened = await known_conversation(caller, conversation)
    return TurnList(turns=[TurnView.of(turn) for turn in await opened.turns()])


router.post(
    "/conversations/{conversation:path}/truncate", summary="Truncate an interrupted answer", responses=_WRITES
)(conversations.truncate_answer)


@router.post("/conversations/{conversation:path}/complete", summary="End a conversation", responses=_WRITES)
async def complete(caller: AsCaller, shared: Shared, conversation: Name) -> ConversationView:
    """Ends the call. Turns that were not read yet are learned from in the background."""
    opened = await known_conversation(caller, conversation)
    await shared.speculations.end(caller.memory, conversation)
    return ConversationView.of(await opened.complete())


router.post(
    "/conversations/{conversation:path}/off-the-record",
    summary="Keep nothing of a conversation",
    responses=responses(401, 403, 404, 422, 429, 503),
)(conversations.off_the_record)
router.post(
    "/conversations/{conversation:path}/remember",
    summary="Keep a conversation that waits for the user's consent",
    responses=responses(401, 403, 404, 422, 429, 503),
)(conversations.remember_conversation)


def _derived(key: str | None, *more: str) -> str:
    """An id derived from an idempotency key; empty without one."""
    if key is None:
        return ""
    return hashlib.sha256("\0".join((key, *more)).encode(errors="replace")).hexdigest()[:32]


# -- what is known


class RecallOptions(RequestBody):
    """What to search for, and how long that may take."""

    query: Question = Field(examples=["what am I allergic to?"])
    deadline_ms: float | None = Field(
        default=None,
        strict=True,
        gt=0,
        description="Answer within this time with what was found; null: no limit.",
    )
    min_relevance: MinRelevance = None
    besides: list[Name] | None = Field(
        default=None,
        max_length=1000,
        description="Ids of conversations, turns and memories to leave out: the running conversation.",
    )
    timezone: str | None = Field(
        default=None, description="The user's time zone, for “last Tuesday”.", examples=["Europe/Lisbon"]
    )


class RecallRequest(RecallOptions):
    """A search."""

    limit: Whole = Field(default=10, ge=1, le=MAX_LIMIT)
    include_past: bool = Field(
        default=False, strict=True, description="Also find what held before, but nothing that was deleted."
    )


class RecallCompleteness(ResponseModel):
    """Whether everything was searched. If the store cannot be read at all, the status is 503."""

    outcome: Outcome = Field(
        description="complete: everything was searched, so no hits means that nothing is known. deadline: "
        "what was found in time. unavailable: part of the search failed."
    )
    cut: list[Cut] = Field(description="The steps that were left out; empty if complete.")


class RecallAnswer(RecallCompleteness):
    """The hits of a search, best first."""

    hits: list[FoundHit]


class BriefAnswer(RecallCompleteness):
    """The answer from memory as text for a model's prompt."""

    text: str = Field(description="It says so if nothing is known, or if not everything could be searched.")
    tokens: int
    hits: list[FoundHit] = Field(description="The hits in the text, best first.")

    @classmethod
    def packed(cls, recall: Recall, packed: Packed) -> BriefAnswer:
        """The text of `packed`, made of `recall`."""
        told = {**fields_of(cls, packed), "cut": recall.cut, "hits": packed.shown}
        return cls.model_validate(told)


@router.post("/recall", summary="Search memory", responses=_ASKS)
async def recall(caller: AsCaller, asked: RecallRequest) -> RecallAnswer:
    """Memories and turns for a question, the user's own and global ones in one ranking."""
    found = await caller.memory.recall(asked.query, **asked.model_dump(exclude={"query"}))
    return RecallAnswer.of(found)


class BriefRequest(RecallOptions):
    """A question to answer as text."""

    budget_tokens: Whole = Field(default=ANSWER_TOKENS, ge=1, le=memories.MAX_BUDGET_TOKENS)


@router.post("/brief", summary="Search memory, as text for a prompt", responses=_ASKS)
async def brief(caller: AsCaller, asked: BriefRequest) -> BriefAnswer:
    """A few quoted lines with their age, within a budget, to put into the prompt before the question."""
    options = asked.model_dump(exclude={"query", "budget_tokens"})
    limit = hits_for(asked.query, asked.budget_tokens)
    found = await caller.memory.recall(asked.query, limit=limit, **options)
    packed = await caller.memory.pack(found, budget_tokens=asked.budget_tokens, timezone=asked.timezone)
    return BriefAnswer.packed(found, packed)


class BlockRequest(RequestBody):
    """The session to begin."""

    agent: Name | None = Field(default=None, description="Whose experience to include.")
    conversation: Name | None = Field(default=None, description="The running one, for its directives.")
    moment: str | None = Field(
        default=None, description="What the user just said, to recall related memories."
    )
    budget_tokens: Whole = Field(default=BLOCK_TOKENS, ge=1, le=memories.MAX_BUDGET_TOKENS)
    deadline_ms: float | None = Field(
        default=None, strict=True, gt=0, description="Of the recall for `moment`."
    )
    besides: list[Name] | None = Field(
        default=None, max_length=1000, description="Ids of memories to leave out."
    )


class BlockText(ResponseModel):
    """The memory a session starts with, as text for a prompt; identical bytes while nothing changes."""

    text: str
    tokens: int
    left_out: int = Field(description="The number of items that did not fit.")
    outcome: Outcome = Field(description="The outcome of the recall for `moment`, if any.")


@router.post("/block", summary="Get the memory block", responses=_ASKS)
async def block(caller: AsCaller, asked: Annotated[BlockRequest | None, Body()] = None) -> BlockText:
    """Profile, directives and what matters most, for the beginning of a call."""
    return BlockText.of(await caller.memory.block(**(asked or BlockRequest()).model_dump()))


# -- while the user speaks


class InterimTranscript(RequestBody):
    """A transcript of the utterance so far."""

    text: str = Field(description="All of it, not only what is new.", examples=["what am I aller"])
    alternatives: list[str] = Field(
        default_factory=list,
        max_length=20,
        description=f"Other readings, likeliest first. The first {MAX_ALTERNATIVES} are searched for.",
    )
    number: Count | None = Field(
        default=None,
        description="The transcript's number in the conversation, finals included: one that arrives after a "
        "later one is ignored.",
    )


class FinalTranscript(InterimTranscript):
    """The final transcript."""

    text: Question = Field(description="All of it, not only what is new.", examples=["what am I aller"])
    deadline_ms: float | None = Field(default=None, gt=0)
    budget_tokens: Whole = Field(default=ANSWER_TOKENS, ge=1, le=memories.MAX_BUDGET_TOKENS)


class TranscriptTaken(ResponseModel):
    """Whether the transcript was searched for."""

    taken: bool = Field(description="False: a later one came first.")


@router.post("/conversations/{conversation:path}/partial", summary="Recall ahead", responses=_ASKS)
async def partial(
    caller: AsCaller, shared: Shared, conversation: Name, asked: InterimTranscript
) -> TranscriptTaken:
    """Send interim transcripts while the user speaks, so that memory is searched before they stop. Answers at
    once; nothing is stored. Request the result with the final transcript.
    """
    taken = await shared.speculations.partial(caller.memory, conversation, **asked.model_dump())
    return TranscriptTaken(taken=taken)


@router.post(
    "/conversations/{conversation:path}/final", summary="Recall what was found ahead", responses=_ASKS
)
async def final(caller: AsCaller, shared: Shared, conversation: Name, asked: FinalTranscript) -> BriefAnswer:
    """The brief for the whole utterance: found ahead if a partial transcript asked the same, otherwise
    searched now. Turns of this conversation are left out. Call this before you append the utterance.
    """
    said = asked.model_dump(exclude={"budget_tokens"})
    found = await shared.speculations.final(caller.memory, conversation, **said)
    return BriefAnswer.packed(found, await caller.memory.pack(found, budget_tokens=asked.budget_tokens))


# -- memories


class NewMemory(RequestBody):
    """A sentence about the user."""

    text: Text = Field(examples=["Ana is allergic to penicillin."])
    category: Category = "fact"
    context: Text | None = Field(default=None, description="The conditions under which it applies.")
    said_at: Time | None = None


class NewValue(RequestBody):
    """The value of a key."""

    value: Text = Field(examples=["Lisbon"])
    category: Category = "fact"
    context: Text | None = Field(default=None, description="The conditions under which it applies.")
    visibility: Sharing = Field(
        default="private", description="private: never shared. auto: the rules decide."
    )


class KeyValue(ResponseModel):
    """The value stored under a key."""

    memory: MemoryView | None = Field(description="Null: nothing is known.")


router.get("/memories", summary="List a user's memories", responses=_READS)(memories.list_memories)


@router.post("/memories", summary="Remember a sentence", responses=_WRITES)
async def remember(caller: AsCaller, asked: NewMemory) -> MemoryView:
    """Without a key. The same sentence again changes nothing."""
    return MemoryView.of(await caller.memory.remember(**asked.model_dump()))


@router.get("/memories/{memory:path}", summary="Get a memory by id", responses=_READS)
async def get_memory(caller: AsCaller, memory: Name) -> MemoryView:
    """Any version of the user's own, or a global memory that is current."""
    found = await caller.memory.find_memory(memory)
    if found is None:
        raise not_found("memory")
    return MemoryView.of(found)


@router.delete("/memories/{memory:path}", summary="Retract a memory or turn by id", responses=_WRITES)
async def retract_memory(caller: AsCaller, memory: Name) -> memories.Deleted:
    """It is found no longer and stays in the history; `POST /v1/forget` destroys it."""
    return _deleted(await caller.memory.delete(id=memory))


@router.put("/keys/{key:path}", summary="Set the value of a key", responses=_WRITES)
async def set_value(caller: AsCaller, key: Name, asked: NewValue) -> MemoryView:
    """The earlier value becomes history."""
    return MemoryView.of(await caller.memory.set(key, **asked.model_dump()))


@router.get("/keys/{key:path}", summary="Get the value of a key", responses=_READS)
async def get_value(caller: AsCaller, key: Name) -> KeyValue:
    """The user's own current value, else a global one."""
    found = await caller.memory.get(key)
    return KeyValue(memory=None if found is None else MemoryView.of(found))


@router.delete("/keys/{key:path}", summary="Retract a key", responses=_WRITES)
async def retract_key(caller: AsCaller, key: Name) -> memories.Deleted:
    """It is found no longer and stays in the history; `POST /v1/forget` destroys it."""
    return _deleted(await caller.memory.delete(key))


def _deleted(deleted: bool) -> memories.Deleted:
    return memories.Deleted(deleted=deleted, deleted_count=int(deleted))


router.get("/consent", summary="Get the user's consent", responses=_READS)(memories.get_consent)
router.put("/consent", summary="Set the user's consent", responses=responses(401, 403, 413, 422, 429, 503))(
    memories.set_consent
)
router.post("/forget", summary="Destroy memories", responses=_WRITES)(memories.forget)
router.get(
    "/export",
    summary="Export what is stored about the user",
    response_model=dict[str, object],
    responses=_READS,
)(memories.export)
