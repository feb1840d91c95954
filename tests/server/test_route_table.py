"""Who may use which route: read from the servers, published, and tried without a credential."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fastapi import FastAPI, WebSocket
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import route_table  # noqa: E402 - a script is no package

REFUSED = {401, 403, 404}


@pytest.fixture(scope="module")
def app():
    return route_table.whole_app()


@pytest.fixture(scope="module")
def client(app):
    with TestClient(app, base_url="http://127.0.0.1") as opened:
        yield opened


def test_the_published_table_is_what_is_served(app):
    page = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
    published = page.partition(route_table.BEGIN)[2].partition(route_table.END)[0].strip()
    found = route_table.rows(app)
    assert published == route_table.table(found).strip(), "run scripts/route_table.py"
    assert len(found) > 80


@pytest.mark.parametrize("kind", ["route", "socket"])
def test_a_route_or_socket_that_nobody_decided_about_is_refused(kind):
    async def route() -> None: ...

    async def socket(socket: WebSocket) -> None: ...

    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    if kind == "route":
        app.get("/api/new")(route)
    else:
        app.websocket("/api/new")(socket)
    with pytest.raises(route_table.Undecided, match="/api/new"):
        route_table.rows(app)


def test_a_decision_about_what_is_not_served_is_refused(app, monkeypatch):
    monkeypatch.setattr(route_table, "DECLARED", {**route_table.DECLARED, "/gone": route_table.ANYBODY})
    with pytest.raises(route_table.Undecided, match="/gone"):
        route_table.rows(app)


def test_without_a_credential_every_route_and_socket_is_refused_but_those_for_anybody(app, client):
    wrong = {}
    for row in route_table.rows(app):
        path = row.path.replace("{token}", "x").replace("{tool}", "get_memory")
        if row.path == "/mcp":
            continue  # its package may not be here: tests/integrations/test_mcp.py
        if row.method == "SOCKET":
            try:
                with client.websocket_connect(path) as socket:
                    socket.receive_text()
            except WebSocketDisconnect:  # before it was accepted
                refused = True
            else:
                refused = False
        else:
            if row.path == "/static":
                path += "/main.js"
            answer = client.request(row.method, path, json={} if row.method in {"POST", "PUT"} else None)
            refused = answer.status_code in REFUSED
        if refused is row.who.startswith(route_table.ANYBODY):
            wrong[row] = refused
    assert not wrong
