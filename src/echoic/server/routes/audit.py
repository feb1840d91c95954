"""The audit log over HTTP."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from echoic.errors import InvalidInput
from echoic.server.models import Shown
from echoic.server.problems import responses
from echoic.server.request_callers import AsAuditor, OperatedDeployment, Shared

router = APIRouter(tags=["operator"], dependencies=[AsAuditor])


class AuditEntries(Shown):
    """Entries of the audit log, oldest first, as they stand in the file."""

    entries: list[dict[str, Any]] = Field(
        description="`n`, `at`, `role`, `who`, `why`, `did`, `kind`, `deployment` and the pseudonym `scope`."
    )
    head: str = Field(description="The SHA-256 of the log's last line, over all deployments.")


@router.get("/api/audit", summary="Read the audit log", responses=responses(401, 404, 422, 429, 503))
async def audit(
    shared: Shared,
    deployment: OperatedDeployment,
    after: Annotated[int, Query(ge=0, description="Only entries with a higher `n`.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> AuditEntries:
    """The chain of hashes is checked first; a log that was changed answers 503."""
    log = shared.memory.audit
    if log is None:
        raise InvalidInput("this server keeps no audit log: start it with --audit")
    await log.flush()
    entries, head = await asyncio.to_thread(log.log.read)
    own = [entry for entry in entries if entry["n"] > after and entry.get("deployment") == deployment]
    return AuditEntries(entries=own[:limit], head=head)
