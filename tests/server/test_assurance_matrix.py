"""Every route that takes a user's token, at everything that a deployment may let such a user be told.

The routes are read from the servers: one without a request here fails. The verbs of the library, the prompt
and the tools are in tests/memory/test_assurance.py.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

import echoic
from assured import ABOUT, AGENT_ASKS, PLANTED, QUESTION, allowed, plant, words_in
from echoic.adapters.browser import PageSettings
from echoic.errors import InvalidInput
from echoic.integrations.tools import call
from echoic.memory.assurance import SENSITIVITIES
from echoic.session import VoiceSession
from echoic.types import Turn
from echoic_loopback.realtime import Calls, Says, Script, ToolCall, UserSays
from server.conftest import AGENT_KEY, Identity, serving, settings_of
from server.test_access import BY_EITHER, BY_TOKEN, LISTENING, REVOKING
from server.voice_calling import admitted, calling, providing

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import route_table

REQUESTS = [
    *BY_EITHER,  # before what takes a conversation off the record
    *(each for each in BY_TOKEN if each not in (LISTENING, REVOKING)),
    ("POST", "/api/memory", {"operation": "query", "query": "home"}),
    ("POST", "/api/memory", {"operation": "get", "key": "home"}),
    ("POST", "/api/memory", {"operation": "list"}),
    ("POST", "/api/chat", {"text": "What do you know about me?"}),
    ("POST", "/v1/recall", {"query": "home", "min_relevance": 0, "include_past": True}),
    ("POST", "/v1/brief", {"query": "home", "min_relevance": 0}),
]
DESTROY = {"/api/forget", "/v1/forget", "/api/identity/revoke"}
"""Sent last: what they do is not to hide what others tell."""
TELL = {
    "POST /api/memory",
    "GET /api/memories",
    "GET /api/memories/home/history",
    "GET /api/memories/abc/provenance",
    "GET /api/export",
    "GET /api/block",
    "POST /api/chat",
    "GET /api/events",
    "POST /v1/recall",
    "POST /v1/brief",
    "POST /v1/block",
    "GET /v1/memories",
    "GET /v1/memories/abc",
    "GET /v1/keys/home",
    "GET /v1/conversations/abc/turns",
    "GET /api/calls/abc",
    "GET /v1/export",
}
"""Routes that do tell what is sensitive to whoever may be told: the control."""


def test_every_route_that_takes_a_users_token_has_a_request_here():
    app = route_table.whole_app()
    sent = {(method, path) for method, path, _ in (*REQUESTS, LISTENING, REVOKING)}
    matchers = [(route, path) for path, route in route_table.flat(app.routes)]
    for row in route_table.rows(app):
        if row.who != route_table.TOKEN or row.path == "/mcp":  # in tests/integrations/test_mcp.py
            continue
        patterns = [route.path_regex for route, path in matchers if path == row.path]
        found = any(m == row.method and any(p.match(path) for p in patterns) for m, path in sent)
        assert found or row.path == "/api/identity/renew", row


async def asked(server, someone, ids):
    """What each route told of each sensitivity."""
    told = {}

    def note(method, path, text):
        told.setdefault(f"{method} {path}", set()).update(words_in(text))

    heard = asyncio.create_task(listened(server, someone))
    order = {"PUT": 1, "DELETE": 2}
    for method, path, body in sorted(REQUESTS, key=lambda each: (each[1] in DESTROY, order.get(each[0], 0))):
        for sensitivity in ABOUT:
            where = path.replace("/memories/abc", f"/memories/{ids[sensitivity]}")
            where = where.replace("abc", f"old-{sensitivity}").replace("home", f"{sensitivity}_pet")
            named = QUESTION if "query" in (body or {}) else f"{sensitivity}_pet"
            said = json.dumps(body).replace('"home"', json.dumps(named))
            if path == "/api/memory" and method == "POST":
                said = json.dumps(
                    {**json.loads(said), "deploymentId": "default", "userCookie": someone.token}
                )
            answer = await server.client.request(
                method,
                where,
                content=said if body is not None else None,
                headers={**someone.headers, "Content-Type": "application/json"},
            )
            assert answer.status_code < 500 or answer.status_code == 503, (method, where, answer.text)
            note(method, path, answer.text)
    note(*LISTENING[:2], await heard)
    return told


async def listened(server, someone):
    """What the stream of events tells while a tool of another call reads what is sensitive."""
    text = ""
    async with server.client.stream("GET", "/api/events", headers=someone.headers) as stream:
        pieces = stream.aiter_text()
        text += await anext(pieces)
        whole = server.memory.user(someone.user)
        for sensitivity, sentence in ABOUT.items():
            conversation = await whole.conversation(f"meanwhile-{sensitivity}")
            await conversation.append(
                Turn(speaker="user", text=f"You know, {sentence.format(PLANTED[sensitivity])}.")
            )
            await call(whole, "get_memory", {"key": f"{sensitivity}_pet"})
        await whole.forget(conversation="meanwhile-personal")  # whose event everybody is told: the last one
        while "event: forgotten" not in text:
            text += await anext(pieces)
    return text


@pytest.mark.parametrize("most", SENSITIVITIES)
async def test_no_route_tells_or_destroys_anything_above_what_the_caller_may_be_told(tmp_path, most):
    memory = echoic.open(
        f"sqlite:///{tmp_path}/echoic.db",
        embedder="lexical",
        global_writes="auto",
        assurance={"device": most},
    )
    async with serving(memory, settings_of()) as server:
        someone = await server.identity()
        whole = memory.user(someone.user)
        await plant(memory, someone.user)
        ids = {each: (await whole.get(f"{each}_pet")).id for each in ABOUT}
        told = await asked(server, someone, ids)
        may = allowed(most)
        assert {route: words - may for route, words in told.items() if words - may} == {}
        if most == "sensitive":
            assert {route for route, words in told.items() if "sensitive" in words} >= TELL
        else:
            assert (await whole.get("sensitive_pet")) is not None, "nor may they destroy it"
            assert PLANTED["sensitive"] in str(await whole.export())


@pytest.mark.parametrize("most", SENSITIVITIES)
@pytest.mark.parametrize(
    ("path", "body"),
    [("code", None), ("link", {"code": "47190283"}), ("pin", {"pin": "482913"})],
)
async def test_no_page_proves_on_the_telephone_more_than_its_caller_may_be_told(tmp_path, path, body, most):
    memory = echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical", assurance={"device": most})
    async with serving(memory, settings_of()) as server:
        someone = await server.identity()
        answer = await server.client.post(f"/api/phone/{path}", json=body, headers=someone.headers)
        refused = answer.status_code == 403 and answer.json()["code"] == "not_allowed"
        assert refused is (most != "sensitive"), answer.text


@pytest.mark.parametrize("most", SENSITIVITIES)
async def test_no_voice_call_of_a_page_tells_anything_above_what_the_caller_may_be_told(tmp_path, most):
    calls = Calls(*(ToolCall(name, ask) for name, ask in AGENT_ASKS))
    script = Script(UserSays(QUESTION, after_ms=200), calls, Says("well", word_ms=50), open_ended=True)
    memory = echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical", assurance={"device": most})
    async with (
        providing("openai", script) as (provider, model),
        serving(memory, settings_of(voice_model=model)) as server,
    ):
        someone = await server.identity()
        await plant(memory, someone.user)
        async with calling(server, someone) as page:
            await page.until_heard("well")
        told = [*provider.sessions[0].record.received(), *page.told]
        assert words_in(told) == allowed(most)


async def test_a_call_is_taken_up_only_by_who_may_be_told_as_much_as_its_caller(tmp_path):
    """An agent that was told more would go on with it, and its history says what it was told."""
    memory = echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical", assurance={"device": "open"})
    script = Script(UserSays(QUESTION, after_ms=200), Says("well", word_ms=50), open_ended=True)
    quiet = Script(open_ended=True)
    quick = {"voice_page_settings": PageSettings(grace_s=0.1, ticket_s=0.5)}
    async with (
        providing("openai", script, script, quiet, quiet, quiet) as (_, model),
        serving(memory, settings_of(voice_model=model, **quick)) as server,
    ):
        page = await server.identity()
        given = await server.client.post(
            "/v1/tokens", json={"user": page.user}, headers={"Authorization": f"Bearer {AGENT_KEY}"}
        )
        account = Identity(given.json()["token"], page.user, page.deployment)

        async def put_away():
            async with asyncio.timeout(30):
                while server.app.state.served.voice.calls:
                    await asyncio.sleep(0.01)

        async def taken_up(who, session):
            asked = {"resume": session}
            answer = await server.client.post("/api/voice/sessions", json=asked, headers=who.headers)
            return answer.status_code, answer.json().get("code")

        missing = (404, "not_found")
        async with calling(server, account) as heard:
            await heard.until_heard("well")
            assert await taken_up(page, heard.session) == missing, "as it goes on"
        await put_away()
        assert await taken_up(page, heard.session) == missing, "once it was put away"
        assert await admitted(server.client, account, resume=heard.session)
        assert await taken_up(page, heard.session) == missing, "while its caller is awaited"
        await put_away()
        async with calling(server, page) as own:
            await own.until_heard("well")
        await put_away()
        assert await admitted(server.client, page, resume=own.session), "a page's own call"
        await put_away()
        async with calling(server, page) as silent:
            pass
        await put_away()
        async with calling(server, page, resume=silent.session) as again:
            assert again.ready["resumed"], "a page's own call in which nothing was said"
        await put_away()
        async with calling(server, account, resume=silent.session):
            pass
        await put_away()
        assert await taken_up(page, silent.session) == missing, "once somebody was in it who is told more"
        board = server.app.state.served.voice
        with pytest.raises(InvalidInput, match="no call"):  # as where another process resumed it meanwhile
            await VoiceSession.resume(
                server.memory,
                silent.session,
                user=page.user,
                deployment=page.deployment,
                agents=[*board.agents.values()],
                model=model,
                level="device",
            )
        ticket = (await admitted(server.client, page, resume=own.session))["ticket"]
        assert await admitted(server.client, account, resume=own.session)
        assert board.redeem(ticket) is None, "from before who is told more took over"
