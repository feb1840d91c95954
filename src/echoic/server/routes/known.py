"""What a session would start with for the one who asks: who they are, and the block an agent is given."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import Field

from echoic.memory.block import DEFAULT_BUDGET_TOKENS
from echoic.prompt.budget import counter_of
from echoic.server.callers import AsCaller, Shared
from echoic.server.models import Shown
from echoic.server.problems import responses
from echoic.types import Directives, Outcome, Profile

router = APIRouter(tags=["memory"])

MAX_BUDGET_TOKENS = 8000


class ShownDirectives(Shown):
    """How the caller wants to be served."""

    pacing: str | None
    verbosity: str | None
    formality: str | None
    language: str | None
    free: dict[str, str] = Field(description="Any other, by name, in the caller's words.")


class ShownProfile(Shown):
    """Who the caller is, as far as they said: a view of what is kept under keys."""

    name: str | None
    age: int | None
    home: str | None
    occupation: str | None
    interests: list[str]
    preferences: list[str] = Field(description="How they like to talk and be reached.")
    avoid_topics: list[str] = Field(description="What they do not want to talk about.")
    unconfirmed: list[str] = Field(description="Fields that rest on something that was not sure.")
    directives: ShownDirectives

    @classmethod
    def of(cls, profile: Profile, directives: Directives) -> Self:
        """Both."""
        return cls(
            name=profile.name,
            age=profile.age,
            home=profile.home,
            occupation=profile.occupation,
            interests=list(profile.interests),
            preferences=list(profile.preferences),
            avoid_topics=list(profile.avoid_topics),
            unconfirmed=list(profile.unconfirmed),
            directives=ShownDirectives(
                pacing=directives.pacing,
                verbosity=directives.verbosity,
                formality=directives.formality,
                language=directives.language,
                free=dict(directives.free),
            ),
        )


class ShownSection(Shown):
    """One part of a block."""

    name: str = Field(examples=["profile"])
    text: str
    tokens: int


class ShownBlock(Shown):
    """What an agent is given when a session starts; the same bytes while nothing changes."""

    agent: str = Field(description="Whose experience is in it.")
    sections: list[ShownSection] = Field(description="From what hardly ever changes to what changes most.")
    tokens: int = Field(description="Of all of it, with what stands between sections.")
    budget_tokens: int
    left_out: int = Field(description="Things that are known and did not fit.")
    outcome: Outcome = Field(description="Of the recall for the moment, where there was one.")


@router.get("/api/profile", summary="Who the caller is", responses=responses(401, 429, 503))
async def get_profile(caller: AsCaller) -> ShownProfile:
    """Profile and directives; null where nothing is known."""
    return ShownProfile.of(await caller.memory.profile(), await caller.memory.directives())


@router.get("/api/block", summary="What a session starts with", responses=responses(401, 422, 429, 503))
async def get_block(
    caller: AsCaller,
    shared: Shared,
    budget_tokens: Annotated[
        int, Query(alias="budgetTokens", ge=1, le=MAX_BUDGET_TOKENS, description="Of the whole block.")
    ] = DEFAULT_BUDGET_TOKENS,
) -> ShownBlock:
    """The memory block, section by section, with its tokens by the embedder's own counting where it tells."""
    block = await caller.memory.block(agent=shared.agent, budget_tokens=budget_tokens)
    count = counter_of(shared.memory.embedder)
    return ShownBlock(
        agent=shared.agent,
        sections=[ShownSection(name=s.name, text=s.text, tokens=count(s.text)) for s in block.sections],
        tokens=block.tokens,
        budget_tokens=budget_tokens,
        left_out=block.left_out,
        outcome=block.outcome,
    )


__all__ = ["router"]
