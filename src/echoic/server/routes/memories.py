"""A user's memory: operations on it, everything in it, its profile and block, export and erasure."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, assert_never

from fastapi import APIRouter, Body, Request
from fastapi import Query as Parameter
from fastapi.openapi.models import Example
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from echoic.errors import InvalidInput, StoreError
from echoic.memory.assurance import Level
from echoic.memory.block import DEFAULT_BUDGET_TOKENS
from echoic.memory.hooks import Extraction, Failure, Forgotten, ToolUsed
from echoic.memory.records import newest_memories
from echoic.memory.user import MAX_LIMIT, UserMemory
from echoic.prompt.block import counter_of
from echoic.server.live import BEAT, Told, described, event, streamed
from echoic.server.models import (
    HitView,
    MemoryView,
    MinRelevance,
    Name,
    Question,
    RecallView,
    ReceiptView,
    RequestBody,
    ResponseModel,
    SearchView,
    Text,
    Time,
    TurnView,
    Whole,
    fields_of,
)
from echoic.server.problems import not_found, responses
from echoic.server.request_callers import (
    AppState,
    AsBodyCaller,
    AsCaller,
    AsQueryCaller,
    RequestCaller,
    Shared,
    address,
    is_known_still,
)
from echoic.types import Category, Consent, Memory, Outcome, Sharing

router = APIRouter(tags=["memory"])


_OTHERS: Any = Field(default=None, description="A field of another operation; ignored.")


class MemoryOperation(RequestBody):
    """The fields of every operation."""

    deployment_id: str | None = Field(
        default=None,
        description="Optional; must be the deployment of the identity.",
        examples=["default"],
    )
    user_cookie: str | None = Field(
        default=None,
        description="The identity from POST /api/identity, unless you send it as a bearer token. It alone "
        "determines whose memory is used.",
    )
    # a client may send the fields of all operations with each of them
    id: Any = _OTHERS
    key: Any = _OTHERS
    value: Any = _OTHERS
    query: Any = _OTHERS
    limit: Any = _OTHERS
    min_relevance: Any = _OTHERS
    besides: Any = _OTHERS
    category: Any = _OTHERS
    context: Any = _OTHERS


class Set(MemoryOperation):
    """Store `value` under `key`; the earlier value becomes history."""

    operation: Literal["set"]
    key: Name = Field(examples=["favourite_coffee"])
    value: Text = Field(examples=["flat white"])
    category: Category = "fact"
    context: Text | None = None
    visibility: Sharing = Field(default="auto", description="private: never shared. auto: the rules decide.")


class Get(MemoryOperation):
    """Get the current value of `key`; the user's own takes precedence over a global one."""

    operation: Literal["get"]
    key: Name


class Delete(MemoryOperation):
    """Retract the memory under `key`, or one memory or turn by its `id`; it stays in the history."""

    operation: Literal["delete"]
    id: Name | None = Field(default=None, description="The id of a memory or turn, instead of `key`.")
    key: Name | None = Field(default=None, validate_default=True)

    @field_validator("key")
    @classmethod
    def _names_something(cls, key: str | None, info: ValidationInfo) -> str | None:
        if key is None and info.data.get("id") is None:
            raise PydanticCustomError("missing", "needs a key, or an id")
        return key


class QueryOperation(MemoryOperation):
    """Search memories and turns."""

    operation: Literal["query"]
    query: Question
    limit: Whole = Field(default=10, ge=1, le=MAX_LIMIT)
    min_relevance: MinRelevance = None
    besides: list[Name] | None = Field(
        default=None, description="Ids of conversations, turns and memories to leave out."
    )


class List(MemoryOperation):
    """List every current memory."""

    operation: Literal["list"]


class Deleted(ResponseModel):
    """The result of a delete."""

    deleted: bool = Field(description="Whether a memory of the user was retracted.")
    deleted_count: int = Field(description="0 or 1.")


class MemoryList(ResponseModel):
    """Every memory the caller can recall."""

    success: bool = True
    memories: list[MemoryView] = Field(description="The caller's own and global memories, newest first.")


class OperationResult(ResponseModel):
    """The result of an operation."""

    success: bool = Field(description="False if a delete found nothing to retract.")
    result: MemoryView | Deleted | list[MemoryView] | list[HitView] | None = Field(
        description="set: the stored memory. get: the memory, or null. delete: whether a memory was "
        "retracted. query: the hits, best first. list: the memories, oldest first."
    )
    found: bool = Field(default=False, description="For get and query: whether anything was found.")
    search: SearchView | None = Field(default=None, description="For query: how the hits were found.")
    memories: list[MemoryView] = Field(
        default_factory=list, description="For query: the memories among the hits, best first."
    )


AnyOperation = Set | Get | Delete | QueryOperation | List

_IDENTIFIED = {"deploymentId": "default", "userCookie": "eyJhbGciOiJIUzI1NiIs…"}


def _example(summary: str, **fields: str | int) -> Example:
    return {"summary": summary, "value": {**fields, **_IDENTIFIED}}


_EXAMPLES: dict[str, Example] = {
    "set": _example("Store a value", operation="set", key="favourite_coffee", value="flat white"),
    "get": _example("Look up a key", operation="get", key="favourite_coffee"),
    "delete": _example("Retract a key", operation="delete", key="favourite_coffee"),
    "query": _example("Search", operation="query", query="what do I drink?", limit=5),
    "list": _example("List every current memory", operation="list"),
}


@router.post(
    "/api/memory",
    summary="Use a memory",
    responses=responses(401, 409, 413, 422, 429, 503, 507),
    response_model_exclude_unset=True,
    openapi_extra={"security": [{}]},  # or without the header: the identity may be in the body
)
async def use_memory(
    caller: AsBodyCaller,
    asked: Annotated[AnyOperation, Body(discriminator="operation", openapi_examples=_EXAMPLES)],
) -> OperationResult:
    """Run one operation on the memory of the identity's user. If nothing is known, the result is empty and
    successful; if the search was not possible, the status is 503.
    """
    memory = caller.memory
    match asked:
        case Set():
            given = {"key", "value", "category", "context", "visibility"}
            kept = await memory.set(**asked.model_dump(include=given))
            return OperationResult(success=True, result=MemoryView.of(kept))
        case Get():
            known = await memory.get(asked.key)
            shown = MemoryView.of(known) if known else None
            return OperationResult(success=True, result=shown, found=known is not None)
        case Delete():
            deleted = await memory.delete(asked.key, id=asked.id)
            return OperationResult(
                success=deleted, result=Deleted(deleted=deleted, deleted_count=int(deleted))
            )
        case QueryOperation():
            found = await memory.recall(
                asked.query, limit=asked.limit, min_relevance=asked.min_relevance, besides=asked.besides
            )
            recall = RecallView.of(found)
            memories = [memory for hit in recall.hits for memory in (hit.memory, *hit.also) if memory]
            search = SearchView(**{name: getattr(recall, name) for name in SearchView.model_fields})
            return OperationResult(
                success=True, result=recall.hits, found=bool(recall.hits), search=search, memories=memories
            )
        case List():
            return OperationResult(success=True, result=[MemoryView.of(m) for m in await memory.facts()])
        case _:
            assert_never(asked)


@router.get(
    "/api/memory",
    summary="List a memory",
    responses=responses(401, 422, 429, 503),
    openapi_extra={"security": [{}]},
)
async def list_memory(caller: AsQueryCaller) -> MemoryList:
    """Every memory the caller can recall: their own and global ones. Prefer a token in a header, which stays
    out of browser histories and logs; `userCookie` is for pages that cannot send headers.
    """
    known = [MemoryView.of(memory) for memory in await caller.memory.facts(with_global=True)]
    newest = sorted(known, key=lambda memory: memory.updated_at or memory.valid_from, reverse=True)
    return MemoryList(memories=newest)


class Versions(ResponseModel):
    """Every version of one key, oldest first."""

    key: str
    versions: list[MemoryView]


class Memories(ResponseModel):
    """Every current memory, oldest first."""

    memories: list[MemoryView]
    history: list[Versions] | None = Field(
        default=None, description="Every version of each key that changed; only on request."
    )
    past: list[MemoryView] | None = Field(
        default=None,
        description="Every memory that is no longer current, oldest first; only on request. `supersededBy` "
        "names its correction.",
    )
    cursor: str | None = Field(
        default=None, description="With `limit`: send it to get the memories before these; null: none."
    )
    total: int | None = Field(default=None, description="With `limit`: how many there are in all.")


@router.get("/api/memories", summary="List the caller's memories", responses=responses(401, 422, 429, 503))
async def list_memories(
    caller: AsCaller,
    *,
    history: Annotated[bool, Parameter(description="Include earlier versions.")] = False,
    state: Annotated[
        Literal["current", "past"],
        Parameter(description="past: those that were corrected or deleted, instead of the current ones."),
    ] = "current",
    limit: Annotated[int | None, Parameter(ge=1, le=1000, description="Only so many, the newest.")] = None,
    cursor: Annotated[
        str | None, Parameter(max_length=400, description="From the last answer: those before.")
    ] = None,
) -> Memories:
    """Every current memory. With `history`, also those that were corrected or deleted."""
    if limit is not None or cursor is not None:
        return await _page(caller.memory, state == "past", limit or 1000, cursor)
    facts = await (caller.memory.facts() if state == "current" else caller.memory.past())
    shown = [MemoryView.of(memory) for memory in facts]
    if not history:
        return Memories(memories=shown)
    keys = dict.fromkeys(memory.key for memory in facts if memory.key is not None and memory.supersedes)
    versions = [_versions(key, await caller.memory.history(key)) for key in keys]
    past = [MemoryView.of(memory) for memory in await caller.memory.past()]
    return Memories(memories=shown, history=versions, past=past)


async def _page(memory: UserMemory, past: bool, limit: int, cursor: str | None) -> Memories:
    store, visible = memory.backing_store, memory.visible_store
    page = await newest_memories(store, visible, memory.scope, past=past, limit=limit, before=cursor)
    total = page.total
    if not memory.sees_everything:  # do not reveal how much is withheld
        total = len(await (memory.past() if past else memory.facts()))
    return Memories(
        memories=[MemoryView.of(each) for each in reversed(page.memories)], cursor=page.before, total=total
    )


class Provenance(ResponseModel):
    """The versions of a memory, and the turns that stated them."""

    versions: list[MemoryView] = Field(
        description="The memory, and every version that it replaced or that replaced it, oldest first."
    )
    turns: list[TurnView] = Field(
        description="The user's turns that stated them, in order. Those of a global memory stay private."
    )


@router.get(
    "/api/memories/{memory:path}/provenance",
    summary="Where a memory comes from",
    responses=responses(401, 404, 422, 429, 503),
)
async def get_provenance(caller: AsCaller, memory: Name) -> Provenance:
    """Its versions, and the turns they were heard in, as far as they were not forgotten."""
    found = await caller.memory.find_memory(memory)
    if found is None:
        raise not_found("memory")
    versions = {found.id: found}
    own = found.visibility != "global" or found.author == caller.principal.user
    if found.key is not None and own:
        versions |= {each.id: each for each in await caller.memory.history(found.key)}
    at: Memory | None = found
    while at is not None and at.supersedes is not None and at.supersedes not in versions:
        at = await caller.memory.find_memory(at.supersedes)  # corrected under another key
        if at is not None:
            versions[at.id] = at
    by_time = sorted(versions.values(), key=lambda each: (each.valid_from, each.id))
    shown = [MemoryView.of(each) for each in by_time]
    turns = await caller.memory.find_turns([name for each in shown for name in each.source])
    return Provenance(versions=shown, turns=[TurnView.of(turn) for turn in turns])


@router.get(
    "/api/memories/{key:path}/history",
    summary="Every version of one key",
    responses=responses(401, 404, 422, 429, 503),
)
async def get_history(caller: AsCaller, key: Name) -> Versions:
    """Oldest first, deleted versions included. Empty for a key that was never set."""
    return _versions(key, await caller.memory.history(key))


def _versions(key: str, memories: list[Memory]) -> Versions:
    return Versions(key=key, versions=[MemoryView.of(memory) for memory in memories])


MAX_BUDGET_TOKENS = 8000


class ChosenConsent(RequestBody):
    """Whether anything the user says may be stored."""

    consent: Consent = Field(
        description="keep: everything is stored. never: nothing is stored. ask: nothing is stored until the "
        "user agrees, in each conversation. A change applies from the next write on, also in a running one."
    )


class ConsentView(ResponseModel):
    """Whether anything the user says is stored."""

    consent: Consent


@router.get("/api/consent", summary="Get the user's consent", responses=responses(401, 429, 503))
async def get_consent(caller: AsCaller) -> ConsentView:
    """`keep` unless the user chose otherwise."""
    return ConsentView(consent=await caller.memory.consent())


@router.put(
    "/api/consent", summary="Set the user's consent", responses=responses(401, 403, 413, 422, 429, 503)
)
async def set_consent(caller: AsCaller, asked: ChosenConsent) -> ConsentView:
    """With `never`, nothing that the user says is stored from now on; what is stored already stays until it
    is forgotten.
    """
    await caller.memory.set_consent(asked.consent)
    return ConsentView(consent=asked.consent)


class AssuranceView(ResponseModel):
    """What callers are told, by assurance level."""

    level: Level = Field(description="The level of the presented token.")
    levels: dict[str, str] = Field(description="The most that each level is told here.")


@router.get("/api/assurance", summary="Get the caller's assurance level", responses=responses(401, 429, 503))
async def get_assurance(caller: AsCaller, shared: Shared) -> AssuranceView:
    """The level of this token, and what each level is told; see docs/assurance.md."""
    return AssuranceView(level=caller.memory.level, levels=dict(shared.memory.assurance))


class DirectivesView(ResponseModel):
    """The caller's directives: how they want to be served."""

    pacing: str | None
    verbosity: str | None
    formality: str | None
    language: str | None
    free: dict[str, str] = Field(description="Other directives by name, in the caller's words.")


class ProfileView(ResponseModel):
    """The caller's profile: a view of the memories under known keys."""

    name: str | None
    age: int | None
    home: str | None
    occupation: str | None
    interests: list[str]
    preferences: list[str] = Field(description="How they like to talk and be reached.")
    avoid_topics: list[str] = Field(description="What they do not want to talk about.")
    unconfirmed: list[str] = Field(description="Fields whose source was uncertain.")
    directives: DirectivesView


class SectionView(ResponseModel):
    """One section of a block."""

    name: str = Field(examples=["profile"])
    text: str
    tokens: int


class BlockView(ResponseModel):
    """The memory block an agent gets when a session starts; identical bytes while nothing changes."""

    agent: str = Field(description="The agent whose experience it includes.")
    sections: list[SectionView] = Field(description="Ordered from the most to the least stable.")
    tokens: int = Field(description="The tokens of the whole block, separators included.")
    budget_tokens: int
    left_out: int = Field(description="The number of items that did not fit.")
    outcome: Outcome = Field(description="The outcome of the recall for the current context, if any.")


@router.get("/api/profile", summary="Get the caller's profile", responses=responses(401, 429, 503))
async def get_profile(caller: AsCaller) -> ProfileView:
    """Profile and directives; unknown fields are null."""
    profile, directives = await caller.memory.profile(), await caller.memory.directives()
    return ProfileView.model_validate({**dataclasses.asdict(profile), "directives": directives})


@router.get("/api/block", summary="Get the memory block", responses=responses(401, 422, 429, 503))
async def get_block(
    caller: AsCaller,
    shared: Shared,
    budget_tokens: Annotated[
        int,
        Parameter(
            alias="budgetTokens", ge=1, le=MAX_BUDGET_TOKENS, description="The maximum size of the block."
        ),
    ] = DEFAULT_BUDGET_TOKENS,
) -> BlockView:
    """The memory block that a session starts with, section by section, with token counts."""
    block = await caller.memory.block(agent=shared.agent, budget_tokens=budget_tokens)
    count = counter_of(shared.memory.embedder)
    return BlockView(
        agent=shared.agent,
        sections=[SectionView(name=s.name, text=s.text, tokens=count(s.text)) for s in block.sections],
        tokens=block.tokens,
        budget_tokens=budget_tokens,
        left_out=block.left_out,
        outcome=block.outcome,
    )


erasure = APIRouter(tags=["erasure"])


class Forget(RequestBody):
    """What to destroy: exactly one of the five, or a time span."""

    everything: Literal[True] | None = Field(default=None, description="Everything stored about the caller.")
    key: Name | None = Field(default=None, description="One key and its history.")
    conversation: Name | None = Field(default=None, description="One conversation and its turns.")
    id: Name | None = Field(default=None, description="One memory or one turn, by id.")
    asked: Name | None = Field(
        default=None, description="What the caller asked to forget in one turn, by the id of that turn."
    )
    since: Time | None = Field(
        default=None, description="Everything said or kept then or later, up to `until` where it is given."
    )
    until: Time | None = Field(default=None, description="Everything before then, from `since` on.")


@erasure.post("/api/forget", summary="Destroy memories", responses=responses(401, 413, 422, 429, 503))
async def forget(caller: AsCaller, asked: Forget) -> ReceiptView:
    """Removes records, words, sounds and vectors from every file and table of the store. This cannot be
    undone, so erasing everything must be explicit: `{"everything": true}`.
    """
    span = True if asked.since is not None or asked.until is not None else None
    named = (asked.everything, asked.key, asked.conversation, asked.id, asked.asked, span)
    if sum(name is not None for name in named) != 1:
        raise InvalidInput(
            "name exactly one of 'everything', 'key', 'conversation', 'id' and 'asked', or a span by 'since' "
            "and 'until'; nothing was destroyed"
        )
    receipt = await caller.memory.forget(**asked.model_dump(exclude={"everything"}))
    return ReceiptView.of(receipt)


@erasure.get(
    "/api/export",
    summary="Export what is stored about the caller",
    response_model=dict[str, Any],
    responses=responses(401, 429, 503),
)
async def export(caller: AsCaller) -> JSONResponse:
    """Every version of every memory, conversations with turns and results, directives and items, as JSON for
    `echoic import`. `global` lists memories that became global without approval; it is not imported.
    """
    disposition = {"Content-Disposition": 'attachment; filename="echoic-export.json"'}
    return JSONResponse(await caller.memory.export(), headers=disposition)


_SHOWN = 2000
"""Characters of a model's input that are shown."""


def _short(text: str | None) -> str | None:
    """The start of a model's input, as valid text."""
    if text is None:
        return None
    sound = text[: _SHOWN + 1].encode(errors="replace").decode()
    return sound if len(sound) <= _SHOWN else f"{sound[:_SHOWN]}…"


Short = Annotated[str | None, BeforeValidator(_short)]


class ParkedView(ResponseModel):
    """A conversation that was given up after repeated model failures."""

    conversation: str
    attempts: int
    reason: str = Field(description="The type of the last error.", examples=["TimeoutError"])


class JobsView(ResponseModel):
    """The jobs that wait for the caller."""

    waiting: int = Field(description="Conversations that were not read yet.")
    failing: int = Field(description="Conversations that wait for a retry of the model.")
    parked: list[ParkedView] = Field(
        description="Conversations that were given up; an operator can retry them."
    )
    embedding_failure: str | None = Field(
        description="Why embedding fails; null if it works.", examples=["EmbedderUnavailable"]
    )


class MemoryLearned(ResponseModel):
    """Memories were added, corrected, confirmed or retracted."""

    reader: str = Field(description='"rules", or the name of a model\'s extractor.')
    conversation: str
    added: list[MemoryView]
    superseded: list[MemoryView]
    confirmed: list[MemoryView]
    retracted: list[MemoryView]
    duration_ms: float


class MemoryDestroyed(ResponseModel):
    """Something was destroyed."""

    what: str = Field(examples=["everything"])


class Stuck(ResponseModel):
    """A background job fails."""

    what: str = Field(examples=["distilling"])
    reason: str
    conversation: str | None
    again_s: float | None


class Used(ResponseModel):
    """A model used a tool of memory."""

    tool: str = Field(examples=["agentMemory"])
    operation: str = Field(examples=["query"])
    conversation: str | None
    key: Short
    value: Short
    query: Short
    outcome: str = Field(description="done, or failed; the model was told.")
    memory: MemoryView | None = Field(
        description="The memory that was set or read, with its visibility and the reason."
    )
    recall: RecallView | None = Field(description="The result of a query.")
    deleted: bool | None = Field(description="Whether a memory was retracted.")
    duration_ms: float


@router.get("/api/jobs", summary="List waiting jobs", responses=responses(401, 429, 503))
async def get_jobs(caller: AsCaller, shared: Shared) -> JobsView:
    """The caller's conversations that wait, that a model failed on, and that were given up."""
    jobs = await caller.memory.jobs()
    shown = {**fields_of(JobsView, jobs), "embedding_failure": shared.memory.embedding_failure}
    return JobsView.model_validate(shown)


@router.get(
    "/api/events",
    summary="Stream events of the caller's memory",
    response_class=StreamingResponse,
    responses={
        **described(
            "`learned`: memories were added, corrected, confirmed or retracted, by which reader and how "
            "fast. `tool`: a model used a memory tool, with its input and result. "
            "`forgotten`: memories were destroyed (`{what}`). `failure`: a background job fails. "
            "The stream starts with new events; the current state is at /api/memories."
        ),
        **responses(401, 429, 503),
    },
)
async def get_events(caller: AsCaller, shared: Shared, request: Request) -> StreamingResponse:
    """Events of the caller's own memory. Reconnect when the stream ends."""
    return streamed(_events(caller, shared, address(request)))


async def _events(caller: RequestCaller, shared: AppState, place: str) -> AsyncIterator[bytes]:
    yield BEAT  # starts the response, so that a page knows it is connected
    scope, beat_s = caller.memory.scope, shared.settings.beat_s
    async for told in shared.live.listen(scope, beat_s=beat_s, address=place):
        if not await _is_told(caller, shared):
            return
        # what was learned or looked up is unfiltered, so only callers who may see everything get it
        withheld = isinstance(told, Extraction | ToolUsed) and not caller.memory.sees_everything
        yield BEAT if told is None or withheld else _event(told)


async def _is_told(caller: RequestCaller, shared: AppState) -> bool:
    try:
        return await is_known_still(shared, caller.principal)
    except StoreError:  # fail closed: the identity could not be checked
        return False


def _event(told: Told) -> bytes:
    if isinstance(told, Extraction):
        return event("learned", MemoryLearned.of(told))
    if isinstance(told, Forgotten):
        return event("forgotten", MemoryDestroyed.of(told))
    if isinstance(told, ToolUsed):
        return event("tool", Used.of(told))
    assert isinstance(told, Failure)
    return event("failure", Stuck.of(told))
