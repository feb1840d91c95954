"""A telephone and a page that are the same user's: codes that prove it, both ways, its undoing, and a PIN.

The telephone may be answered by another process on the same store, or by none: then no code is ever taken.
"""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import Field

from echoic.adapters.twilio.lines import Lines
from echoic.adapters.twilio.linking import TYPED_DIGITS, LinkCodes
from echoic.adapters.twilio.pins import Pins
from echoic.errors import NotAllowed
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
    pin: bool = Field(description="Whether the user has a PIN to prove in a call who they are.")
    taken_at: list[datetime] = Field(
        description="When telephones that were the user's were linked to others, or unlinked in a call. "
        "Tell the user: if it was not them, they call from it and say so."
    )


class PhonePin(Asked):
    """A PIN to be."""

    pin: str = Field(
        description="Six digits without a pattern. Said or keyed in during a call, they prove who calls.",
        max_length=64,
        examples=["482913"],
    )


class HasPin(Shown):
    """Whether there is a PIN."""

    pin: bool


class Unlinked(Shown):
    """What was undone."""

    unlinked: int = Field(description="How many telephones are the user's no longer.")


@router.post("/api/phone/code", summary="Get a code to say on the phone", responses=responses(401, 429, 503))
async def give_code(caller: AsCaller, shared: Shared) -> PhoneCode:
    """Whoever says or types it in a call is served as this user in that call. The telephone is linked, and
    its callers served so from then on, only if the number is proven to be the caller's, and nobody else has
    memories there. The code given before is good no longer.
    """
    given = await _codes(caller, shared).give(caller.principal.user)
    return PhoneCode(code=given.code, good_until=given.good_until)


@router.post(
    "/api/phone/link",
    summary="Link the telephone a code was given on",
    responses=responses(401, 403, 413, 422, 429, 503),
)
async def take_code(caller: AsCaller, shared: Shared, asked: TakePhoneCode) -> PhoneLinks:
    """The agent on the telephone gives such a code to a caller who proved that the number is theirs. From the
    next call on, that telephone is this user's, and whoever calls from it next is told so. A code that is
    wrong, used or old is refused with 403, as all are while too many were wrong; so is one of a telephone on
    which somebody has memories who did not prove in that call who they are.
    """
    digits = "".join(character for character in asked.code if character in "0123456789")
    proven = await _codes(caller, shared).take_proof(digits) if len(digits) == TYPED_DIGITS else None
    if proven is None:
        raise Refused(
            403, "code_not_good", "this code is not a good one, or not any more; ask for one on the phone"
        )
    try:
        await _lines(caller, shared).link(proven.line, caller.principal.user, proved=proven.proved)
    except NotAllowed as error:
        raise Refused(403, "line_not_proven", f"{error}; they have to ask for the code themselves") from error
    return await _links(caller, shared)


@router.get("/api/phone/links", summary="How many telephones are linked", responses=responses(401, 429, 503))
async def links(caller: AsCaller, shared: Shared) -> PhoneLinks:
    """Those on which whoever calls is served as this user, once the number is proven."""
    return await _links(caller, shared)


@router.post("/api/phone/unlink", summary="Undo every link", responses=responses(401, 429, 503))
async def unlink(caller: AsCaller, shared: Shared) -> Unlinked:
    """Every telephone that was linked is again whose it was before; both memories are as they were. Whoever
    calls from one next is told so.
    """
    return Unlinked(unlinked=await _lines(caller, shared).unlink_user(caller.principal.user))


@router.post(
    "/api/phone/pin",
    summary="Set a PIN for the phone",
    responses=responses(401, 413, 422, 429, 503),
)
async def set_pin(caller: AsCaller, shared: Shared, asked: PhonePin) -> HasPin:
    """From then on the user can prove by it who they are, on telephones that are linked to them or on which
    they gave a code once, also where no carrier vouches for numbers. It replaces the one before. After five
    wrong ones within a day, from all telephones together, none is good until a day after the first.
    """
    await _pins(caller, shared).set(caller.principal.user, asked.pin)
    return HasPin(pin=True)


@router.delete("/api/phone/pin", summary="Remove the PIN", responses=responses(401, 429, 503))
async def clear_pin(caller: AsCaller, shared: Shared) -> HasPin:
    """No PIN proves to be this user any more."""
    await _pins(caller, shared).clear(caller.principal.user)
    return HasPin(pin=False)


async def _links(caller: Caller, shared: Shared) -> PhoneLinks:
    lines, user = _lines(caller, shared), caller.principal.user
    return PhoneLinks(
        phones=len(await lines.linked_to(user)),
        pin=await _pins(caller, shared).has(user),
        taken_at=await lines.taken_from(user),
    )


def _codes(caller: Caller, shared: Shared) -> LinkCodes:
    return LinkCodes(shared.memory, caller.principal.deployment)


def _lines(caller: Caller, shared: Shared) -> Lines:
    return Lines(shared.memory, caller.principal.deployment)


def _pins(caller: Caller, shared: Shared) -> Pins:
    return Pins(shared.memory, caller.principal.deployment, shared.settings.secret)


__all__ = ["router"]
