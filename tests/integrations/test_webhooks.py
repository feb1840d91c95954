"""Webhooks of hosted voice platforms: who may send them, what they are told, and what is kept of a call."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import httpx
import pytest

import echoic
from echoic.errors import StoreUnavailable
from echoic.integrations.hosted_agents import (
    UNKNOWN_CALLER,
    HostedCaller,
    by_number,
    signed_by_elevenlabs,
    signed_by_retell,
    signed_by_vapi,
    webhooks,
)
from echoic.memory.conversation import OpenConversation
from echoic.memory.phone_registry import identity_of
from echoic.prompt.answer import UNREAD
from echoic.server import ServerSettings, create_app
from integrations.hosted_calls import (
    ANA,
    ASKS,
    BOB,
    ELEVENLABS,
    RETELL,
    TEACHES,
    VAPI,
    Platform,
    by_list,
    elevenlabs_ended,
    elevenlabs_signed,
    retell_ended,
    retell_signed,
    vapi_signed,
)

BODY = b'{"message": {"type": "status-update"}}'
NOW_S = 1_790_000_000.0
REPORT = {
    "artifact": {
        "messages": [
            {"role": "system", "message": "You are Pip.", "time": 1},
            {"role": "user", "message": TEACHES, "time": 1_790_000_000_000},
            {"role": "bot", "message": "Noted.", "time": 1_790_000_003_000},
        ]
    }
}


@pytest.fixture
async def service(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical") as opened:
        yield opened


@pytest.fixture
async def platform(service):
    async with Platform(service) as made:
        yield made


async def turns(service, name):
    return [
        (turn.speaker, turn.text, turn.heard, int(turn.said_at.timestamp()) - 1_790_000_000)
        for turn in await (await service.user("ana").conversation(name)).turns()
    ]


@pytest.mark.parametrize(
    ("signed", "secret", "sign"),
    [
        (
            signed_by_vapi,
            VAPI,
            lambda body, _: vapi_signed(body),
        ),
        (lambda *given: signed_by_retell(*given, now_s=NOW_S), RETELL, retell_signed),
        (lambda *given: signed_by_elevenlabs(*given, now_s=NOW_S), ELEVENLABS, elevenlabs_signed),
    ],
    ids=["vapi", "retell", "elevenlabs"],
)
def test_only_what_was_signed_with_the_secret_is_accepted(signed, secret, sign):
    headers = sign(BODY, NOW_S)
    assert signed(secret, BODY, headers)
    assert not signed(secret, BODY + b" ", headers)
    assert not signed("another", BODY, headers)
    assert not signed("", BODY, headers)
    assert not signed(secret, BODY, {})
    for name, value in headers.items():
        for forged in ("", "é", value[:-1], value.upper() + "0", ",=,", "v=,d=", "t=1,v0=", "sha256="):
            assert not signed(secret, BODY, {name: forged})


@pytest.mark.parametrize(
    ("signed", "secret", "sign", "tolerance_s"),
    [
        (signed_by_retell, RETELL, retell_signed, 300),
        (signed_by_elevenlabs, ELEVENLABS, elevenlabs_signed, 1800),
    ],
    ids=["retell", "elevenlabs"],
)
def test_what_is_stale_or_from_the_future_is_refused(signed, secret, sign, tolerance_s):
    for away_s, accepted in ((tolerance_s - 1, True), (tolerance_s + 1, False), (10**7, False)):
        for stamp_s in (NOW_S - away_s, NOW_S + away_s):
            assert signed(secret, BODY, sign(BODY, stamp_s), now_s=NOW_S) is accepted


def test_vapi_may_send_its_secret_instead_of_a_signature_but_not_beside_a_wrong_one():
    assert signed_by_vapi(VAPI, BODY, {"x-vapi-secret": VAPI})
    assert signed_by_vapi(VAPI, BODY, {"authorization": f"Bearer {VAPI}"})
    assert not signed_by_vapi(VAPI, BODY, {"x-vapi-secret": VAPI, "x-vapi-signature": "sha256=00"})
    assert not signed_by_vapi("", BODY, {"x-vapi-secret": ""})


async def test_every_route_refuses_what_is_not_signed_and_one_without_a_secret_is_not_there(
    service, platform
):
    paths = ["/vapi", "/retell", "/elevenlabs/start", "/elevenlabs/tools/search_memory", "/elevenlabs/ended"]
    for path in paths:
        assert (await platform.http.post(path, content=BODY)).status_code == 401
    async with Platform(service, vapi_secret="", retell_key="", elevenlabs_secret="") as closed:
        for path in paths:
            assert (await closed.http.post(path, content=BODY)).status_code == 404


async def test_what_is_signed_and_is_no_object_is_refused(platform):
    for body, status in (
        (b"no", 400),
        (b"[]", 400),
        (b"[" * 100_000, 400),
        (b"{}", 200),
        (b'{"message": {"call": []}}', 200),
    ):
        answer = await platform.http.post("/vapi", content=body, headers=vapi_signed(body))
        assert answer.status_code == status


async def test_what_was_said_in_a_vapi_call_is_known_in_the_next_and_kept_once(service, platform):
    for _ in range(2):
        assert (await platform.vapi("end-of-call-report", **REPORT)).status_code == 200
    assert await turns(service, "vapi:v1") == [("user", TEACHES, None, 0), ("agent", "Noted.", None, 3)]
    await service.distil()
    begins = (await platform.vapi("assistant-request")).json()
    assert "peanuts" in begins["assistantOverrides"]["variableValues"]["memory"]
    said = [{"role": "user", "content": ASKS}]
    (first, *_) = (await platform.vapi("knowledge-base-request", messages=said)).json()["documents"]
    assert "peanuts" in first["content"]
    assert 0 < first["similarity"] <= 1
    others = (await platform.vapi("knowledge-base-request", BOB, messages=said)).json()
    assert others == {"documents": []}
    stranger = await platform.vapi("assistant-request", "+15550000009")
    assert stranger.json()["assistantOverrides"]["variableValues"]["memory"] == UNKNOWN_CALLER


@pytest.mark.parametrize("answer", ["Yes.", "No."])
async def test_of_a_caller_who_wants_to_be_asked_a_hosted_call_is_kept_after_a_yes(service, platform, answer):
    await service.user("ana").set_consent("ask")
    begun = (await platform.vapi("assistant-request", ANA)).json()
    assert "wants to be asked" in begun["assistantOverrides"]["variableValues"]["memory"]
    setting = [{"id": "1", "name": "set_memory", "arguments": {"key": "pet", "value": "Bruno"}}]
    told = (await platform.vapi("tool-calls", toolCallList=setting)).json()["results"][0]["result"]
    assert "May I remember" in told
    messages = [
        {"role": "bot", "message": "May I remember this call?", "time": 1_790_000_000_000},
        {"role": "user", "message": answer, "time": 1_790_000_001_000},
        {"role": "user", "message": TEACHES, "time": 1_790_000_002_000},
    ]
    await platform.vapi("end-of-call-report", ANA, artifact={"messages": messages})
    assert ("peanuts" in str(await service.user("ana").export())) is (answer == "Yes.")


async def test_vapis_tools_are_called_whichever_way_it_writes_them(service, platform):
    await service.user("ana").remember("The user is allergic to peanuts.")
    calls = [
        {"id": "1", "name": "search_memory", "arguments": {"query": ASKS}},
        {"id": "2", "name": "set_memory", "parameters": {"key": "pet", "value": "Bruno"}},
        {"id": "3", "function": {"name": "get_memory", "arguments": '{"key": "pet"}'}},
        {"id": "4", "name": "no_such_tool", "arguments": {}},
        {"id": "5", "name": "set_memory", "arguments": "no JSON"},
        {"id": "6", "name": "set_memory", "arguments": "[" * 100_000},
        {"id": "7", "name": "set_memory", "arguments": "9" * 5000},
    ]
    results = (await platform.vapi("tool-calls", toolCallList=calls)).json()["results"]
    told = {result["toolCallId"]: result["result"] for result in results}
    assert all(isinstance(answer, str) and "\n" not in answer for answer in told.values())
    assert "peanuts" in told["1"]
    assert json.loads(told["3"])["memory"]["text"] == "Bruno"
    assert "no tool" in told["4"]
    assert all("JSON" in told[name] for name in "567")
    assert await service.user("bob").facts() == []


async def test_what_was_said_in_a_retell_call_is_kept_once_and_its_functions_answer(service, platform):
    body = retell_ended()
    for _ in range(2):
        answer = await platform.http.post("/retell", content=body, headers=retell_signed(body, time.time()))
        assert answer.status_code == 200
    assert await turns(service, "retell:r1") == [("agent", "Hello!", None, 0), ("user", TEACHES, None, 1)]
    inbound = json.dumps({"event": "call_inbound", "call_inbound": {"from_number": ANA}}).encode()
    function = {"name": "search_memory", "args": {"query": ASKS}, "call": {"from_number": ANA}}
    asked = json.dumps(function, ensure_ascii=False).encode()
    for sent, found in ((inbound, "dynamic_variables"), (asked, "peanuts")):
        answer = await platform.http.post("/retell", content=sent, headers=retell_signed(sent, time.time()))
        assert found in answer.text


async def test_of_an_elevenlabs_answer_that_was_cut_off_all_is_kept_and_what_was_heard(service, platform):
    body = elevenlabs_ended()
    for _ in range(2):
        signed = elevenlabs_signed(body, time.time())
        assert (
            await platform.http.post("/elevenlabs/ended", content=body, headers=signed)
        ).status_code == 200
    assert await turns(service, "elevenlabs:e1") == [
        ("agent", "Hello!", None, 0),
        ("user", TEACHES, None, 2),
        ("agent", "Noted, I will remember that.", "Noted, I will", 4),
    ]
    await service.distil()
    started = (await platform.elevenlabs("start", caller_id=ANA)).json()
    assert "peanuts" in started["dynamic_variables"]["memory"]
    found = (await platform.elevenlabs("tools/search_memory", caller_id=ANA, query=ASKS)).json()
    assert "peanuts" in found["result"]
    nobody = (await platform.elevenlabs("tools/search_memory", caller_id="", query=ASKS)).json()
    assert nobody == {"result": UNKNOWN_CALLER}


async def test_echoics_server_takes_the_report_of_a_long_call_and_nothing_else_of_that_size(tmp_path):
    memory = echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical")
    router = webhooks(memory, whose=by_list, retell_key=RETELL, level="account")
    app = create_app(memory, ServerSettings(secret="of a server of the tests, long enough"), webhooks=router)
    words = [{"word": "peanuts", "start": n / 2, "end": n / 2 + 0.4} for n in range(30_000)]
    body = retell_ended(words=words)
    assert 1_500_000 < len(body) < 2_000_000
    signed = retell_signed(body, time.time())
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
    ):
        assert (await http.post("/hooks/retell", content=body)).status_code == 401
        assert (await http.post("/hooks/retell", content=body, headers=signed)).status_code == 200
        assert await turns(memory, "retell:r1") == [("agent", "Hello!", None, 0), ("user", TEACHES, None, 0)]
        for path, size in (("/api/chat", len(body)), ("/hooksy", len(body)), ("/hooks/retell", 5_000_001)):
            assert (await http.post(path, content=body.ljust(size))).status_code == 413
        deep = body[:-1] + b', "deep": ' + b"[" * 40 + b"]" * 40 + b"}"
        headers = retell_signed(deep, time.time())
        assert (await http.post("/hooks/retell", content=deep, headers=headers)).status_code == 422


async def test_a_report_that_cannot_be_kept_is_to_be_delivered_again(service, platform, monkeypatch):
    async def gone(*_args, **_options):
        raise StoreUnavailable("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(OpenConversation, "append", gone)
        broken.setattr("echoic.memory.user.UserMemory.block", gone)
        assert (await platform.vapi("end-of-call-report", **REPORT)).status_code == 503
        begins = (await platform.vapi("assistant-request")).json()
        assert begins["assistantOverrides"]["variableValues"]["memory"] == UNREAD
    assert (await platform.vapi("end-of-call-report", **REPORT)).status_code == 200
    assert len(await turns(service, "vapi:v1")) == 2


def reported(*ages_s):
    """The report of a call in which the caller spoke so many seconds ago."""
    said = [{"role": "user", "message": TEACHES, "time": 1000 * (time.time() - age_s)} for age_s in ages_s]
    return {"artifact": {"messages": said}}


@pytest.mark.parametrize("what", [{}, {"conversation": "vapi:v1"}], ids=["everything", "the call"])
async def test_a_call_that_was_forgotten_is_not_kept_by_delivering_it_again(tmp_path, what):
    url, report = f"sqlite:///{tmp_path}/hooks.db", reported(60, 50)
    async with echoic.open(url, embedder="lexical") as service, Platform(service) as platform:
        await platform.vapi("end-of-call-report", **report)
        assert len(await turns(service, "vapi:v1")) == 2, "control"
        await service.user("ana").forget(**what)
        assert (await platform.vapi("end-of-call-report", **report)).status_code == 200
        assert await service.user("ana").conversations() == []
    # nor by a process that began since; what was said since is kept
    async with echoic.open(url, embedder="lexical") as service, Platform(service) as platform:
        assert (await platform.vapi("end-of-call-report", **report)).status_code == 200
        assert await service.user("ana").conversations() == []
        await platform.vapi("end-of-call-report", **reported(60, -1))
        assert len(await turns(service, "vapi:v1")) == 1


async def test_the_number_of_an_incoming_call_names_nobody_unless_it_is_trusted(service):
    def caller(outbound, number=ANA):
        return HostedCaller(platform="vapi", number=number, outbound=outbound, payload={})

    careful, trusting = (by_number(service, "salt", trust_incoming=trust) for trust in (False, True))
    line = identity_of(ANA, "salt")
    assert await careful(caller(outbound=False)) is None
    assert await careful(caller(outbound=True)) == line
    assert await trusting(caller(outbound=False)) == line
    for number in ("", "anonymous", "+266696687", "+1"):
        assert await trusting(caller(outbound=False, number=number)) is None


async def test_a_caller_who_is_known_by_their_number_alone_is_not_told_what_is_sensitive(service):
    ana = service.user("ana")
    await ana.remember("The user takes insulin.")
    await ana.remember("The user likes jazz.")
    calls = [{"id": "1", "name": "search_memory", "arguments": {"query": "insulin"}}]
    told = {}
    for level in ("attested", "account"):
        async with Platform(service, level=level) as platform:
            told[level] = (await platform.vapi("tool-calls", toolCallList=calls)).text
    assert "takes insulin" in told["account"]
    assert "takes insulin" not in told["attested"]


async def test_a_line_that_is_linked_is_its_users_and_one_that_is_shared_is_nobodys(service):
    from echoic.adapters.twilio.callers import PhoneLines

    lines, line = PhoneLines(service, "default"), identity_of(ANA, "salt")
    whose = by_number(service, "salt", trust_incoming=True)
    caller = HostedCaller(platform="retell", number=ANA, outbound=False, payload={})
    await lines.link(line, "ana")
    assert await whose(caller) == "ana"
    await lines.add_person(line, "Bob", "bob")
    assert await whose(caller) is None


async def test_the_application_in_the_documents_serves_the_platforms_that_have_a_secret(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "integrations.md"
    hosted = page.read_text().partition("## Hosted platforms")[2]
    names = {}
    exec(re.search(r"```python\n(.*?)```", hosted, re.DOTALL)[1], names)
    call = {**json.loads(retell_ended())["call"], "metadata": {"user_id": "carla"}}
    app, body = names["app"], json.dumps({"event": "call_ended", "call": call}).encode()
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://echoic") as http,
    ):
        signed = retell_signed(body, time.time(), "…")
        assert (await http.post("/hooks/retell", content=body, headers=signed)).status_code == 200
        assert (await http.post("/hooks/retell", content=body)).status_code == 401
        assert (await http.post("/hooks/vapi", content=body)).status_code == 404
        assert len(await names["service"].user("carla").conversations()) == 1
