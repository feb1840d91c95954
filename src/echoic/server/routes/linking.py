"""A telephone and a page that are the same user's: codes that prove it, both ways, and its undoing.

The telephone may be answered by another process on the same store, or by none: then no code is ever taken.
"""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import Field

from echoic.adapters.twilio.lines import Lines
from echoic.adapters.twilio.linking import TYPED_DIGITS, LinkCodes
from echoic.server.callers import AsCaller, Caller, Shared
from echoic.server.models import Asked, Shown
from echoic.server.problems import Refused, responses

router = APIRouter(tags=["identity"])


class PhoneCode(Shown):
    """A code that proves to a telephone who is calling."""

    code: str = Field(description="Say or type it in a call. Good once.", examples=["471902"])
    good_until: datetime


class TakePhoneCode(Asked):
    """A code that was given in a call."""

    code: str = Field(
        description="As it was said; what is no digit is ignored.", max_length=64, examples=["4719 0283"]
    )


class PhoneLinks(Shown):
    """How many telephones are the user's."""

    phones: int = Field(description="Linked now. Numbers are not kept as they are, so they cannot be shown.")


class Unlinked(Shown):
    """What was undone."""

    unlinked: int = Field(description="How many telephones are the user's no longer.")


@router.post("/api/phone/code", summary="Get a code to say on the phone", responses=responses(401, 429, 503))
async def give_code(caller: AsCaller, shared: Shared) -> PhoneCode:
    """Whoever says or types it in a call is served as this user from then on, on that telephone. The code
    given before is good no longer.
    """
    given = await _codes(caller, shared).give(caller.principal.user)
    return PhoneCode(code=given.code, good_until=given.good_until)


@router.post(
    "/api/phone/link",
    summary="Link the telephone a code was given on",
    responses=responses(401, 403, 413, 422, 429, 503),
)
async def take_code(caller: AsCaller, shared: Shared, asked: TakePhoneCode) -> PhoneLinks:
    """The agent on the telephone gives such a code to whoever asks for one. From the next call on, that
    telephone is this user's. A code that is wrong, used or old is refused with 403, as all are while too many
    were wrong.
    """
    digits = "".join(character for character in asked.code if character in "0123456789")
    line = await _codes(caller, shared).take_line(digits) if len(digits) == TYPED_DIGITS else None
    if line is None:
        raise Refused(
            403, "code_not_good", "this code is not a good one, or not any more; ask for one on the phone"
        )
    lines = _lines(caller, shared)
    await lines.link(line, caller.principal.user)
    return PhoneLinks(phones=len(await lines.linked_to(caller.principal.user)))


@router.get("/api/phone/links", summary="How many telephones are linked", responses=responses(401, 429, 503))
async def links(caller: AsCaller, shared: Shared) -> PhoneLinks:
    """Those on which whoever calls is served as this user."""
    return PhoneLinks(phones=len(await _lines(caller, shared).linked_to(caller.principal.user)))


@router.post("/api/phone/unlink", summary="Undo every link", responses=responses(401, 429, 503))
async def unlink(caller: AsCaller, shared: Shared) -> Unlinked:
    """Every telephone that was linked is again whose it was before; both memories are as they were."""
    return Unlinked(unlinked=await _lines(caller, shared).unlink_user(caller.principal.user))


def _codes(caller: Caller, shared: Shared) -> LinkCodes:
    return LinkCodes(shared.memory, caller.principal.deployment)


def _lines(caller: Caller, shared: Shared) -> Lines:
    return Lines(shared.memory, caller.principal.deployment)


__all__ = ["router"]
