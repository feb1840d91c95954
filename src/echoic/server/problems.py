"""What is answered when a request cannot be done: one body for every error, and the status it comes with."""

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

_FIELD_CHARACTERS = 80
RETRY_S = 2
"""What a client is told to wait when store or embedder cannot be reached: they are retried inside as well."""


_FIELD = 64
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
"""A field's. What is none may be something that was said, and is not repeated."""
"""Characters of a field's name that are repeated."""


class Problem(BaseModel):
    """Why a request was not done."""

    success: Literal[False] = False
    error: str = Field(
        description="What happened, to which value, and the way out.",
        examples=["operation 'set' needs the field 'value'"],
    )
    code: str = Field(
        description="For programs; it does not change between versions.", examples=["invalid_input"]
    )
    field: str | None = Field(default=None, description="The field of the request that is meant, if one is.")
    operation: str | None = Field(default=None, description="The operation that is meant, if one is.")


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
    """404, in the same words whether it is another's or nobody's."""
    return Refused(404, "not_found", f"there is no such {what}")


def too_many_at_once() -> Refused:
    """429, for whoever has as many requests under way as one may have."""
    error = "there are too many requests of yours under way; wait for one of them to end"
    return Refused(429, "too_many_requests", error, headers={"Retry-After": "1"})


def too_often(retry_after_s: float) -> Refused:
    """429."""
    seconds = max(1, math.ceil(retry_after_s))
    error = f"too many requests; ask again in {seconds} s"
    return Refused(429, "too_many_requests", error, headers={"Retry-After": str(seconds)})


MODEL_FAILED = "the language model gave no answer; what you said is kept, say it again in a moment"


def model_failed() -> Refused:
    """503, for a model: memory itself is well."""
    return Refused(503, "model_unavailable", MODEL_FAILED, headers={"Retry-After": str(RETRY_S)})


def answer(status: int, problem: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """`problem` as a response."""
    return JSONResponse(problem.model_dump(exclude_none=True), status, headers)


# Our own words for what is not the caller's fault: the error's may hold a path or an address.
_UNAVAILABLE: tuple[tuple[type[EchoicError], str, str], ...] = (
    (StoreFull, "store_full", "there is no space left to keep anything; nothing was written"),
    (StoreUnavailable, "store_unavailable", "the store cannot be reached; nothing was written, try again"),
    (NotOpen, "store_unavailable", "the store is not open; nothing was written, try again"),
    (EmbedderUnavailable, "embedder_unavailable", "the embedder cannot be reached; try again"),
)


def problem_of(error: EchoicError) -> JSONResponse:
    """What the caller is told about one of ours."""
    problem = problem_in(error)
    status = _STATUSES.get(problem.code, 503)
    return answer(status, problem, {"Retry-After": str(RETRY_S)} if status == 503 else None)


_STATUSES = {
    "invalid_input": 422,
    "not_allowed": 403,
    "conflict": 409,
    "internal": 500,
    "quota_exceeded": 507,
}
"""By code; what is not here is a 503."""


def problem_in(error: EchoicError) -> Problem:
    """The same in words, for an answer whose status is sent already."""
    if isinstance(error, InvalidInput):
        return Problem(error=str(error), code="invalid_input")
    if isinstance(error, NotAllowed):
        return Problem(error=str(error), code="not_allowed")
    if isinstance(error, QuotaExceeded):
        return Problem(error=str(error), code="quota_exceeded")
    if isinstance(error, WriteConflict):
        return Problem(error="somebody else wrote first; nothing was written", code="conflict")
    for kind, code, words in _UNAVAILABLE:
        if isinstance(error, kind):
            log.warning("%s: could not be done", type(error).__name__)
            return Problem(error=words, code=code)
    log.error("%s: could not be done; `echoic doctor` says more", type(error).__name__)
    return Problem(error="the server's memory needs its operator", code="internal")


def problem_of_fields(errors: Sequence[Mapping[str, Any]]) -> JSONResponse:
    """What is missing or wrong in a request's fields, the first of it."""
    # a field that nobody knows is likely the one that is missing, under another name
    first = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    # where it stands ("body"), then by operation where there are several, then by field
    place = [bounded(str(part))[:_FIELD_CHARACTERS] for part in first["loc"][1:]]
    kind = first["type"]
    if kind == "json_invalid":
        return answer(422, Problem(error="the body is not JSON", code="invalid_input"))
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        return answer(422, _unknown_operation(first))
    operation = place[0] if len(place) > 1 else None
    field = place[-1][:_FIELD] if place else None  # one that nobody knows may be of any length
    return answer(
        422,
        Problem(
            error=_words(first, operation, field),
            code="invalid_input",
            field=field if field is None or _NAME.fullmatch(field) else None,
            operation=operation,
        ),
    )


def _words(error: Mapping[str, Any], operation: str | None, field: str | None) -> str:
    whose = f"operation {brief(operation)}" if operation else "the request"
    if field is None:
        return f"{whose} needs a JSON object as its body, sent as application/json"
    if error["type"] == "extra_forbidden":
        which = f"no field {brief(field)}" if _NAME.fullmatch(field) else "a field that nobody knows"
        return f"{whose} has {which}; nothing was done"
    if error["type"] == "missing":
        return f"{whose} needs the field {brief(field)}"
    # of pydantic's message only the rule, never the value: it is the caller's, but it may be long
    return f"{whose}: the field {brief(field)} is not right: {error['msg'][:200]}"


def _unknown_operation(error: Mapping[str, Any]) -> Problem:
    expected = str(error.get("ctx", {}).get("expected_tags", "'get', 'set', 'delete', 'query', 'list'"))
    tag = error.get("ctx", {}).get("tag")
    said = "unknown operation" if tag is not None else "the request needs the field 'operation'"
    return Problem(error=f"{said}: use one of {expected}", code="invalid_input", field="operation")


def install(app: FastAPI) -> None:
    """Have `app` answer every error with a `Problem`."""

    async def refused(_request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, Refused)
        return answer(error.status, error.problem, error.headers)

    async def ours(_request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, EchoicError)
        return problem_of(error)

    async def fields(_request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return problem_of_fields(error.errors())

    async def http(_request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "refused")
        return answer(
            error.status_code, Problem(error=bounded(str(error.detail).lower()), code=code), error.headers
        )

    app.add_exception_handler(Refused, refused)
    app.add_exception_handler(EchoicError, ours)
    app.add_exception_handler(RequestValidationError, fields)
    app.add_exception_handler(HTTPException, http)


_DESCRIPTIONS = {
    401: "No identity, or one that is forged, expired or of another deployment.",
    403: "Not from here: a page of another origin, or a deployment that is not served.",
    404: "There is no such thing for the one who asks.",
    408: "The body took too long to arrive.",
    409: "Somebody else wrote the same at the same moment; nothing was written.",
    413: "The body is too large.",
    422: "A field is missing or cannot be kept; nothing was written.",
    429: "Asked too often, or too much at once; Retry-After says how long to wait.",
    507: "As much is kept of the caller, or of the deployment, as may be; nothing was written.",
    503: "Could not look or could not keep; nothing was written. Retry-After says when to try again.",
}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI description of what else a route may answer."""
    return {status: {"model": Problem, "description": _DESCRIPTIONS[status]} for status in statuses}


__all__ = [
    "MODEL_FAILED",
    "Problem",
    "Refused",
    "answer",
    "install",
    "model_failed",
    "not_found",
    "problem_in",
    "problem_of",
    "problem_of_fields",
    "responses",
    "too_many_at_once",
    "too_often",
]
