"""Error responses: one body for every error, and its status."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from echoic.errors import (
    EchoicError,
    EmbedderUnavailable,
    InvalidInput,
    NotAllowed,
    NotOpen,
    QuotaExceeded,
    StoreFull,
    StoreUnavailable,
    WriteConflict,
    bounded,
    brief,
)

log = logging.getLogger(__name__)

RETRY_S = 2
"""Retry-After while the store or the embedder is unreachable; the server also retries internally."""


_FIELD = 64
"""Characters of a field's name that are repeated."""
_NAME = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_.-]|\[\d+\])*")
"""A field's name, or its path (`turns[3].text`). Anything else may be something a caller said, and is not
repeated."""
_OPERATIONS = frozenset(("get", "set", "delete", "query", "list"))


class Problem(BaseModel):
    """Why a request failed."""

    success: Literal[False] = False
    error: str = Field(
        description="What happened, to which value, and the way out.",
        examples=["operation 'set' needs the field 'value'"],
    )
    code: str = Field(description="A stable code for programs.", examples=["invalid_input"])
    field: str | None = Field(default=None, description="The field of the request, if there is one.")
    operation: str | None = Field(default=None, description="The operation, if there is one.")


class Refused(Exception):
    """Ends a request with a status and a `Problem`."""

    def __init__(
        self, status: int, code: str, error: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(code)
        self.status = status
        self.problem = Problem(error=error, code=code)
        self.headers = headers


def not_found(what: str) -> Refused:
    """404, in the same words whether it belongs to someone else or does not exist."""
    return Refused(404, "not_found", f"there is no such {what}")


def too_many_at_once() -> Refused:
    """429, for too many concurrent requests."""
    error = "too many concurrent requests; wait for one of them to end"
    return Refused(429, "too_many_requests", error, headers={"Retry-After": "1"})


def overloaded() -> Refused:
    """503, for more requests than there is processor time for."""
    error = "the server has too much to do; try again in a moment"
    return Refused(503, "busy", error, headers={"Retry-After": "1"})


def too_often(retry_after_s: float) -> Refused:
    """429, for exceeding a rate."""
    seconds = max(1, math.ceil(retry_after_s))
    error = f"too many requests; try again in {seconds} s"
    return Refused(429, "too_many_requests", error, headers={"Retry-After": str(seconds)})


MODEL_FAILED = "the language model gave no answer; your turn is stored, try again in a moment"


def model_failed() -> Refused:
    """503, for a failing model; memory itself works, and the caller's turn is stored."""
    return Refused(503, "model_unavailable", MODEL_FAILED, headers={"Retry-After": str(RETRY_S)})


def answer(status: int, problem: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(problem.model_dump(exclude_none=True), status, headers)


def refused(why: Refused) -> JSONResponse:
    """`why` as a response, which may be sent many times."""
    return answer(why.status, why.problem, why.headers)


# Fixed messages for what is not the caller's fault: the error's own may hold a path or an address.
_KINDS: tuple[tuple[type[EchoicError], int, str, str | None], ...] = (
    (InvalidInput, 422, "invalid_input", None),
    (NotAllowed, 403, "not_allowed", None),
    (QuotaExceeded, 507, "quota_exceeded", None),
    (WriteConflict, 409, "conflict", "a concurrent write won; nothing was written, try again"),
    (StoreFull, 503, "store_full", "the store is full; nothing was written"),
    (
        StoreUnavailable,
        503,
        "store_unavailable",
        "the store cannot be reached; nothing was written, try again",
    ),
    (NotOpen, 503, "store_unavailable", "the store is not open; nothing was written, try again"),
    (EmbedderUnavailable, 503, "embedder_unavailable", "the embedder cannot be reached; try again"),
)
"""By error type: status, code, and words; None for the error's own."""


def problem_of(error: EchoicError) -> JSONResponse:
    """The response to one of Echoic's errors."""
    status, problem = classified(error)
    return answer(status, problem, {"Retry-After": str(RETRY_S)} if status == 503 else None)


def classified(error: EchoicError) -> tuple[int, Problem]:
    """The status and the body for one of Echoic's errors."""
    for kind, status, code, words in _KINDS:
        if isinstance(error, kind):
            if status == 503:
                log.warning("%s: a request failed", type(error).__name__)
            field = error.field if isinstance(error, InvalidInput) else None
            return status, Problem(error=str(error) if words is None else words, code=code, field=field)
    log.error("%s: a request failed; run `echoic doctor`", type(error).__name__)
    return 500, Problem(error="the server's store needs its operator", code="internal")


def is_unparsed(error: RequestValidationError | HTTPException) -> bool:
    """Whether the framework raised `error` because the body could not be parsed."""
    if isinstance(error, HTTPException):
        return isinstance(error.__cause__, ValueError)  # though it may be JSON
    return any(each["type"] == "json_invalid" for each in error.errors())


def problem_of_fields(errors: Sequence[Mapping[str, Any]]) -> JSONResponse:
    """The response to the first invalid field of a request."""
    # an unknown field is likely a missing one under another name
    first = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    # "body", then the operation if there are several, then the field
    place = list(first["loc"][1:])
    kind = first["type"]
    if kind == "json_invalid":
        return answer(422, Problem(error="the body is not JSON", code="invalid_input"))
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        return answer(422, _unknown_operation(first))
    operation = place.pop(0) if len(place) > 1 and place[0] in _OPERATIONS else None
    field = _path(place)[:_FIELD] if place else None  # an unknown one may be of any length
    return answer(
        422,
        Problem(
            error=_words(first, operation, field),
            code="invalid_input",
            field=field if field is None or _NAME.fullmatch(field) else None,
            operation=operation,
        ),
    )


def _path(place: Sequence[str | int]) -> str:
    """A field's place in the body, as `turns[3].text`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{bounded(part)}" for part in place]
    return "".join(parts).removeprefix(".")


def _words(error: Mapping[str, Any], operation: str | None, field: str | None) -> str:
    whose = f"operation {brief(operation)}" if operation else "the request"
    if field is None:
        return f"{whose} needs a JSON object as its body, sent as application/json"
    if error["type"] == "extra_forbidden":
        which = f"no field {brief(field)}" if _NAME.fullmatch(field) else "an unknown field"
        return f"{whose} has {which}; nothing was done"
    if error["type"] == "missing":
        return f"{whose} needs the field {brief(field)}"
    if isinstance(ours := error.get("ctx", {}).get("error"), InvalidInput):
        return f"{field}{str(ours).removeprefix(str(error['loc'][-1]))}"  # it begins with the value's name
    # pydantic's message states the rule, not the value, which may be long
    return f"{whose}: the field {brief(field)} is invalid: {error['msg'][:200]}"


def _unknown_operation(error: Mapping[str, Any]) -> Problem:
    expected = str(error.get("ctx", {}).get("expected_tags", "'get', 'set', 'delete', 'query', 'list'"))
    tag = error.get("ctx", {}).get("tag")
    said = "unknown operation" if tag is not None else "the request needs the field 'operation'"
    return Problem(error=f"{said}: use one of {expected}", code="invalid_input", field="operation")


def install(app: FastAPI) -> None:
    """Answer every error of `app` with a `Problem`."""

    async def refusal(_request: Request, error: Any) -> JSONResponse:
        return refused(error)

    async def ours(_request: Request, error: Any) -> JSONResponse:
        return problem_of(error)

    async def fields(_request: Request, error: Any) -> JSONResponse:
        return problem_of_fields(error.errors())

    async def http(_request: Request, error: Any) -> JSONResponse:
        if is_unparsed(error):
            encoded = isinstance(error.__cause__, UnicodeDecodeError)
            words = "the body is not UTF-8" if encoded else "the body holds a number with too many digits"
            return answer(422, Problem(error=words, code="invalid_input"))
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "refused")
        return answer(
            error.status_code, Problem(error=bounded(str(error.detail).lower()), code=code), error.headers
        )

    app.add_exception_handler(Refused, refusal)
    app.add_exception_handler(EchoicError, ours)
    app.add_exception_handler(RequestValidationError, fields)
    app.add_exception_handler(HTTPException, http)


_DESCRIPTIONS = {
    401: "The identity is missing, forged, expired or of another deployment.",
    403: "The page's origin is not allowed, the deployment is not served, or the caller may not do this.",
    404: "Not found for this caller.",
    408: "The body took too long to arrive.",
    409: "A concurrent write won; nothing was written.",
    413: "The body is too large.",
    422: "A field is missing or invalid; nothing was written.",
    429: "Too many requests; Retry-After says how long to wait.",
    507: "The quota of the user or the deployment is reached; nothing was written.",
    503: "Memory or the language model is unavailable; `code` says which. Nothing was written, except with "
    "model_unavailable: then the caller's turn is stored. Retry-After says how long to wait.",
}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of a route's error responses.

    A route that authenticates callers (401) may also refuse them (403): by their role, or because the user
    wants to be asked before anything is stored.
    """
    stated = dict.fromkeys((*statuses, 403) if 401 in statuses else statuses)
    return {status: {"model": Problem, "description": _DESCRIPTIONS[status]} for status in stated}
