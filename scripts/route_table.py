"""Writes into docs/threats.md who may use which route; with --check only says whether it is current.

The routes and sockets are read from the servers themselves: a new one without a decision stops it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

import echoic
from echoic.adapters.twilio import Phone, PhoneSettings, phone_router
from echoic.integrations.hosted_agents import webhooks
from echoic.server import ServerSettings, create_app, request_callers

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "threats.md"
BEGIN: Final = "<!-- routes: written by scripts/route_table.py -->\n"
END: Final = "<!-- end of routes -->\n"
SECRET: Final = "route table secret, for no server at all, 7315"

TOKEN: Final = "A user's token: it alone says whose memory is meant"
ANYBODY: Final = "Anybody"
BY_GUARD: Final[Mapping[Callable[..., Any], str]] = {
    request_callers.caller: TOKEN,
    request_callers.body_caller: TOKEN,
    request_callers.query_caller: TOKEN,
    request_callers.operator: "The operator key, or a key with the role operator (reading: read-only)",
    request_callers.auditor: "The operator key, or a key with the role operator or auditor",
    request_callers.viewer: "A user's token, or any key of the deployment",
    request_callers.key_holder: "Any key of the deployment",
    request_callers.reader: "A user's token, for what is theirs; the operator key, or a key with the role "
    "operator or read-only",
    request_callers.key_deployment: "An agent or operator key",
    request_callers.anybody: "Anybody, so many a minute from one address",
}
"""What each guard that a route depends on decides."""
_SIGNED: Final = "Whoever signs the request: Twilio, with the account's token"
_LINE: Final = "Whoever holds the call's own token, which only a signed webhook hands out, once"
_PLATFORM: Final = "The platform whose secret signs the request"
DECLARED: Final[Mapping[str, str]] = {
    "/": ANYBODY,
    "/static": ANYBODY,
    "/openapi.json": ANYBODY,
    "/healthz": ANYBODY,
    "/readyz": ANYBODY,
    "/api/about": ANYBODY,
    "/mcp": TOKEN,
    "/api/voice/socket": "Whoever holds a ticket, which a user's token gets, for one call, once",
    "/phone/voice": _SIGNED,
    "/phone/turn": _SIGNED,
    "/phone/poll": _SIGNED,
    "/phone/connected": _SIGNED,
    "/phone/status": _SIGNED,
    "/phone/relay/{token}": _LINE,
    "/phone/media/{token}": _LINE,
    "/hooks/vapi": _PLATFORM,
    "/hooks/retell": _PLATFORM,
    "/hooks/elevenlabs/start": _PLATFORM,
    "/hooks/elevenlabs/tools/{tool}": _PLATFORM,
    "/hooks/elevenlabs/ended": _PLATFORM,
}
"""Who may use what depends on no guard."""


class Undecided(Exception):
    """A route or socket that nobody decided about."""


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """One route, or a socket, and who may use it."""

    path: str
    method: str
    """SOCKET: it is a WebSocket."""
    who: str


def whole_app() -> FastAPI:
    """Everything that Echoic serves anywhere, as one application."""
    memory = echoic.open("memory://", embedder="lexical")

    async def nobody(_caller: object) -> None:
        return None

    hooks = webhooks(memory, whose=nobody, vapi_secret=SECRET, retell_key=SECRET, elevenlabs_secret=SECRET)
    keys = {f"agent {SECRET}": "default"}
    settings = ServerSettings(secret=SECRET, operator_key=f"operator {SECRET}", agent_keys=keys)
    app = create_app(memory, settings, mcp=find_spec("mcp") is not None, webhooks=hooks)
    phone = Phone(memory, Agent(TestModel(), name="robin"), PhoneSettings(auth_token=SECRET, salt=SECRET))
    app.include_router(phone_router(phone))
    return app


def flat(routes: Sequence[BaseRoute], prefix: str = "") -> Iterator[tuple[str, BaseRoute]]:
    """`routes` with their paths, and those of the routers that are included."""
    for route in routes:
        included = getattr(route, "include_context", None)
        if included is None:
            yield prefix + getattr(route, "path", ""), route
        else:
            yield from flat(included.included_router.routes, prefix + included.prefix)


def rows(app: FastAPI) -> list[Row]:
    """A row for each method of each route, and for each socket.

    Raises:
        Undecided: one has no decision, or there is one about a route that is not there.
    """
    found = []
    for path, route in flat(app.routes):
        assert isinstance(route, Route | WebSocketRoute | Mount), route
        methods = set(getattr(route, "methods", None) or {"GET"}) - {"HEAD"}
        methods = {"SOCKET"} if isinstance(route, WebSocketRoute) else methods
        found += [Row(path, method, _who(path, route)) for method in methods]
    there = {row.path for row in found} | ({"/mcp"} if find_spec("mcp") is None else set())
    if left := sorted(DECLARED.keys() - there):
        raise Undecided(f"no longer served: {', '.join(left)}")
    if find_spec("mcp") is None:
        found.append(Row("/mcp", "POST", DECLARED["/mcp"]))
    return sorted(found)


def _who(path: str, route: BaseRoute) -> str:
    guards = {guard for guard in _guards(route) if guard in BY_GUARD}
    if request_callers.key_holder in guards:  # it asks that one first
        guards.discard(request_callers.viewer)
    said = {BY_GUARD[guard] for guard in guards}
    if path in DECLARED:
        said.add(DECLARED[path])
    if len(said) != 1:
        raise Undecided(f"{path}: {len(said)} decisions about who may use it, not one")
    return said.pop()


def _guards(route: BaseRoute) -> Iterator[Callable[..., Any]]:
    waiting = [dependant] if (dependant := getattr(route, "dependant", None)) is not None else []
    while waiting:
        each = waiting.pop()
        if each.call is not None:
            yield each.call
        waiting += each.dependencies


def table(found: list[Row]) -> str:
    """The rows by who may use them."""
    by_who: dict[str, list[str]] = {}
    for row in found:
        by_who.setdefault(row.who, []).append(f"`{row.method} {row.path}`")
    lines = [f"| {who} | {len(names)} | {', '.join(names)} |" for who, names in sorted(by_who.items())]
    return "\n".join(["| who may | | routes |", "|---|--:|---|", *lines]) + "\n"


def main() -> int:
    """Write it, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    written = before + BEGIN + "\n" + table(rows(whole_app())) + "\n" + END + after
    if check and written != page:
        sys.stderr.write("docs/threats.md does not say who may use which route: run scripts/route_table.py\n")
        return 1
    if not check:
        PAGE.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
