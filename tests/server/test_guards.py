"""What every request passes: where it comes from, how large and deep it is, and what its answer allows."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import time
from collections import Counter

import httpx
import pytest
import pytest_asyncio
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from uvicorn.server import ServerState

from echoic.adapters import connections
from echoic.adapters.connections import LoopLag
from echoic.server.guards import RequestLimit, WriteQueue
from echoic.server.routes import v1

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"Content-Type": "application/json"}


def port_of(server):
    return httpx.URL(server.url).port


async def raw(server, head, body=b""):
    """Bytes as they are, and the status they are answered with."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
    writer.write(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
    await writer.drain()
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    await writer.wait_closed()
    return int(answer.split(b" ", 2)[1]), answer


# -- Host


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "localhost:1234", "127.0.0.1:80"]
)
async def test_a_name_of_this_machine_is_answered(server, host):
    for path in ("/", "/healthz", "/api/about", "/static/page.css"):
        assert (await server.client.get(path, headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8300",
        "localhost.evil.example",
        "evil.localhost",
        "xlocalhost",
        "localhost.",
        "127.0.0.1.evil.example",
        "127.0.0.2",
        "0.0.0.0",
        "2130706433",
        "0x7f.1",
        "[::]",
        "[::ffff:127.0.0.1]",
        "::1",
        "localhost@evil.example",
        "evil.example/localhost",
        "evil.example#localhost",
        "localhost:abc",
        "xn--lcalhost-54a",
        "",
        "null",
        "*",
    ],
)
async def test_any_other_name_is_refused_before_anything_is_read(server, host):
    """A name that an attacker points at this machine makes a browser ask us (DNS rebinding)."""
    for request in ("GET /", "GET /api/about", "GET /static/page.css", "POST /api/identity"):
        status, answer = await raw(
            server, f"{request} HTTP/1.1\nHost: {host}\nConnection: close\nContent-Length: 0"
        )
        assert status == 400, request
        assert b"userCookie" not in answer


async def test_a_request_names_one_host(server):
    for head in (
        "GET / HTTP/1.1\nConnection: close",
        "GET / HTTP/1.1\nHost: localhost\nHost: evil.example\nConnection: close",
    ):
        assert (await raw(server, head))[0] == 400


@pytest.mark.parametrize(
    "head",
    [
        "GET /healthz HTTP/2.0\nHost: localhost",
        "GET /healthz HTTP/0.9\nHost: localhost",
        "GET /healthz HTTP/1.1\nHost : localhost",
        "GET /healthz HTTP/1.1\nHost: localhost\nX: a\n folded",
        "GET /healthz HTTP/1.1\nHost: localhost\nX: a\0b",
        "POST /api/memory HTTP/1.1\nHost: localhost\nContent-Length: 2\nTransfer-Encoding: chunked",
        "POST /api/memory HTTP/1.1\nHost: localhost\nContent-Length: 2\nContent-Length: 3",
        "POST /api/memory HTTP/1.1\nHost: localhost\nContent-Length: +2",
        "POST /api/memory HTTP/1.1\nHost: localhost\nTransfer-Encoding: xchunked",
    ],
)
async def test_what_two_parsers_read_in_two_ways_is_refused(server, head):
    """A proxy and this server must agree on where a request ends: what it hides would be another's request."""
    assert (await raw(server, head))[0] == 400


async def test_a_head_without_an_end_is_refused(server):
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
    refused = asyncio.create_task(reader.read())
    async with asyncio.timeout(60):
        while not refused.done():
            writer.write(b"x" * 3000)
            await asyncio.sleep(0.01)
    assert (await refused).startswith(b"HTTP/1.1 400")
    writer.close()


async def test_requests_sent_ahead_are_answered_in_order_and_without_number_refused(server):
    asked = "GET /healthz HTTP/1.1\nHost: localhost\n\n"
    status, answer = await raw(
        server, asked * 9 + "GET /nothing HTTP/1.1\nHost: localhost\nConnection: close"
    )
    assert status == 200
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200"] * 9 + [b"404"]
    _, answer = await raw(server, asked * 500 + asked.strip())
    assert answer.count(b"HTTP/1.1 200") < 100
    assert b"HTTP/1.1 400" in answer


async def test_a_name_that_was_allowed_is_answered(start):
    async with start(url="memory://", allowed_hosts=("memory.example",)) as server:
        assert (await server.client.get("/healthz", headers={"Host": "memory.example"})).status_code == 200
        assert (await server.client.get("/healthz", headers={"Host": "localhost"})).status_code == 400


# -- Origin


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "https://localhost:{port}",
        "http://localhost",
        "http://localhost:1",
        "http://localhost:{port}.evil.example",
        "http://localhost.evil.example:{port}",
        "http://evil.example@localhost:{port}",
        "http://localhost:{port}@evil.example",
        "http://xlocalhost:{port}",
        "http://127.0.0.1:{port}",
        "http://[::1]:{port}",
        "http://localhost:{port}/",
        "http://localhost:{port}#",
        "http://LOCALHOST:{port} ",
        "ftp://localhost:{port}",
        "file://",
        "chrome-extension://abcdef",
        "localhost:{port}",
        "",
        "*",
        "http://xn--lcalhost-54a:{port}",
    ],
)
async def test_a_page_from_elsewhere_changes_nothing(server, origin):
    ana = await server.identity()
    sent = origin.format(port=port_of(server))
    head = (
        f"POST /api/memory HTTP/1.1\nHost: localhost:{port_of(server)}\nOrigin: {sent}\nConnection: close\n"
        "Content-Type: application/json\nContent-Length: {size}"
    )
    body = json.dumps(ana.operation("set", key="home", value="Oslo")).encode()
    status, answer = await raw(server, head.replace("{size}", str(len(body))), body)
    if sent == f"http://LOCALHOST:{port_of(server)} ":
        # white space around a header's value is no part of it, and names of hosts have no case
        assert status == 200
        return
    assert status == 403, answer
    assert b"access-control-allow-origin" not in answer.lower()
    assert (await server.memory_of(ana, "list")).json()["result"] == []


async def test_two_origins_are_none(server):
    ours = f"localhost:{port_of(server)}"
    head = f"POST /api/identity HTTP/1.1\nHost: {ours}\nConnection: close\nContent-Length: 0\n"
    assert (await raw(server, f"{head}Origin: http://{ours}"))[0] == 200
    assert (await raw(server, f"{head}Origin: http://{ours}\nOrigin: http://evil.example"))[0] == 403


async def test_the_page_served_here_may(server):
    assert (await server.client.post("/api/identity", headers={"Origin": server.url})).status_code == 200


async def test_what_a_browser_says_comes_from_elsewhere_is_refused_even_without_an_origin(server):
    for site in ("cross-site", "same-site"):
        answer = await server.client.post("/api/identity", headers={"Sec-Fetch-Site": site})
        assert answer.status_code == 403
    assert (await server.client.get("/", headers={"Sec-Fetch-Site": "cross-site"})).status_code == 200


async def test_no_page_from_elsewhere_is_let_read_an_answer(server):
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    for method, path in (("OPTIONS", "/api/identity"), ("GET", "/api/about"), ("POST", "/api/identity")):
        answer = await server.client.request(method, path, headers=asked)
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("written", ["https://app.example", "https://App.Example/"])
async def test_an_origin_that_was_allowed_may_use_the_api_and_no_other(start, written):
    async with start(url="memory://", allowed_origins=(written,)) as server:
        preflight = {
            "Origin": "https://app.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, content-type",
        }
        allowed = await server.client.options("/api/chat", headers=preflight)
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        assert "access-control-allow-credentials" not in allowed.headers
        given = await server.client.post("/api/identity", headers={"Origin": "https://app.example"})
        assert given.headers["access-control-allow-origin"] == "https://app.example"
        refused = await server.client.options(
            "/api/chat", headers={**preflight, "Origin": "https://app.example.evil"}
        )
        assert refused.status_code == 403


# -- size, depth, time


@pytest_asyncio.fixture(loop_scope="module")
async def small(start):
    async with start(url="memory://", max_body_bytes=2000, body_deadline_s=0.5) as running:
        yield running


def padded(identity, size):
    """An operation whose body has exactly `size` bytes."""
    body = json.dumps(identity.operation("get", key="home"))
    return (body[:-1] + " " * (size - len(body)) + "}").encode()


def half_sent(server, size):
    """The head of a request that announces a body of `size` bytes."""
    return f"POST /api/memory HTTP/1.1\nHost: localhost:{port_of(server)}\nContent-Length: {size}"


async def test_a_body_up_to_the_limit_is_read_and_one_byte_more_is_not(small):
    ana = await small.identity()
    at = await small.client.post("/api/memory", content=padded(ana, 2000), headers=JSON)
    assert at.status_code == 200
    for size in (2001, 2_000_000):
        over = await small.client.post("/api/memory", content=padded(ana, size), headers=JSON)
        assert (over.status_code, over.json()["code"]) == (413, "too_large")


async def test_a_body_that_does_not_say_its_size_is_cut_off_while_it_comes(small):
    """Chunks without an end: what counts is what has come, not what was announced."""
    sent = 0

    async def endless():
        nonlocal sent
        while sent < 100_000_000:
            sent += 1000
            yield b"x" * 1000

    try:
        answer = await small.client.post("/api/memory", content=endless(), headers=JSON)
        assert answer.status_code == 413
    except (httpx.WriteError, httpx.ReadError):
        pass  # closed in the middle of it, which is an answer too
    assert sent < 10_000_000
    assert (await small.client.get("/healthz")).status_code == 200


async def test_a_body_that_announces_too_much_is_refused_before_it_comes(small):
    assert (await raw(small, half_sent(small, 999_999_999)))[0] == 413


async def test_a_body_that_does_not_arrive_is_not_waited_for(small):
    assert (await raw(small, half_sent(small, 100), b'{"operation"'))[0] == 408


async def test_somebody_who_hangs_up_in_the_middle_leaves_no_trace_in_the_log(server, caplog):
    _, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
    writer.write(b"POST /api/memory HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await server.client.get("/healthz")).status_code == 200
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1000 + b"]" * 1000,
        b'{"a":' * 1000 + b"1" + b"}" * 1000,
        b"[" * 400_000,
        b'{"operation": ' + b'[{"a":' * 40 + b"1" + b"}]" * 40 + b"}",
        b'"\\"' + b"[" * 33,
        b'"a" "b"' + b"[" * 33,
    ],
    ids=["arrays", "objects", "unclosed", "mixed", "after half a string", "after strings"],
)
async def test_json_that_nests_deeper_than_anything_we_take_is_not_parsed(server, body):
    ana = await server.identity()
    answer = await server.client.post("/api/chat", content=body, headers={**JSON, **ana.headers})
    # an unclosed string swallows what follows it: that is no nesting, and no JSON either
    expected = "invalid_input" if body.startswith(b'"\\"') else "too_deep"
    assert (answer.status_code, answer.json()["code"]) == (422, expected)


@pytest.mark.parametrize("path", ["/api/memory", "/api/chat"])
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
async def test_nesting_that_utf_16_hides_is_refused_as_well(server, path, kind):
    """One of its bytes is a quotation mark, behind which brackets look like a string's."""
    ana = await server.identity()
    body = ('["\u2241", ' + "[" * 100_000).encode("utf-16")
    answer = await server.client.post(path, content=body, headers={"Content-Type": kind, **ana.headers})
    assert answer.status_code in {400, 401, 422}


@pytest.mark.parametrize(
    "body",
    [
        '{"text": "I live in Porto.", "text": "I live in Leeds."}',
        '{"text": "I live in Porto.", "te\\u0078t": "I live in Leeds."}',
    ],
    ids=["as it is", "escaped"],
)
async def test_a_body_that_has_a_field_twice_is_refused(server, body):
    """A proxy in front may read the first one, and we the last."""
    ana = await server.identity()
    answer = await server.client.post("/api/chat", content=body, headers={**JSON, **ana.headers})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert "Leeds" not in answer.text


async def test_a_request_that_says_its_length_in_two_ways_is_refused_and_its_connection_closed(server):
    head = f"POST /api/memory HTTP/1.1\r\nHost: localhost:{port_of(server)}\r\n"
    both = "Content-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    smuggled = f"GET /healthz HTTP/1.1\r\nHost: localhost:{port_of(server)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
    writer.write((head + both + smuggled).encode())
    async with asyncio.timeout(60):
        told = await reader.read()
    writer.close()
    assert told.startswith(b"HTTP/1.1 400 ")
    assert told.count(b"HTTP/1.1 ") == 1


async def test_brackets_inside_a_string_are_no_nesting(server):
    ana = await server.identity()
    for text in ("[" * 100, '\\"' + "{" * 100, '"[[' * 40):
        answer = await server.client.post("/api/chat", json={"text": text}, headers=ana.headers)
        assert answer.status_code == 200, text


@pytest.mark.parametrize("seed", [b'"', b'"\\', b'\\"', b'"a', b"[]", b'{"', b"\\"], ids=repr)
async def test_no_body_takes_long_to_measure(server, seed):
    """A pattern that looked twice at each place would need minutes for these."""
    ana = await server.identity()
    body = seed * (900_000 // len(seed))
    async with asyncio.timeout(40):
        answer = await server.client.post("/api/memory", content=body, headers={**JSON, **ana.headers})
    assert answer.status_code in {401, 422}


# -- connections


async def test_who_connects_and_does_not_say_what_for_is_not_waited_for(start, monkeypatch):
    """uvicorn counts connections, and refuses everybody when there are too many."""
    monkeypatch.setattr(connections, "HEAD_S", 0.5)
    half = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "
    async with start(url="memory://") as server:
        for first in (b"", half, half.split(b"X")[0] + b"\r\n" + half):
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
            writer.write(first)
            gone = asyncio.create_task(reader.read())
            async with asyncio.timeout(60):
                while not gone.done():
                    await asyncio.sleep(0.05)
                    if first:
                        writer.write(b"x")  # a byte now and then is no head either
            writer.close()


async def test_a_connection_that_asks_in_time_is_kept(start, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_S", 1.0)  # a busy machine stands still for a part of it
    async with start(url="memory://") as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
        for _ in range(3):
            writer.write(b"GET /healthz HTTP/1.1\r\n")
            await asyncio.sleep(0.1)
            writer.write(b"Host: localhost\r\n\r\n")
            assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
            await asyncio.sleep(1.1)  # between requests it is uvicorn that waits, and longer
        writer.close()


async def until(true):
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.01)


async def test_an_answer_that_nobody_reads_is_given_up(start, monkeypatch):
    monkeypatch.setattr(connections, "READ_S", 0.3)
    async with start(url="memory://", secrets="keep") as server:
        ana = await server.identity()
        for place in range(40):
            await server.memory_of(ana, "set", key=f"note {place}", value="x" * 30_000)
        whole = len((await server.client.get("/api/export", headers=ana.headers)).content)
        asked = f"GET /api/export HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ana.token}\r\n\r\n"
        # the system holds little of it on the way: as much as the longest answer would else be needed
        for listening in server.uvicorn.servers[0].sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        with socket.socket() as caller:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            caller.setblocking(False)
            await asyncio.get_running_loop().sock_connect(caller, ("127.0.0.1", port_of(server)))
            reader, writer = await asyncio.open_connection(sock=caller)
            there = server.uvicorn.server_state.connections
            here = caller.getsockname()
            await until(lambda: any(each.client == here for each in there))
            writer.write(asked.encode())
            await until(lambda: all(each.client != here for each in there))
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await asyncio.wait_for(reader.readexactly(whole), 60)
            writer.close()


async def test_an_answer_that_is_read_slowly_is_not_given_up():
    class Transport:
        left, aborted = 300, False

        def get_write_buffer_size(self):
            return self.left

        def abort(self):
            self.aborted = True

    config = uvicorn.Config(Starlette(), http=connections.GuardedConnection)
    connection = connections.GuardedConnection(config, ServerState(), {})
    connection.transport = transport = Transport()
    for left in (200, 100, 100):
        assert not transport.aborted
        before, transport.left = transport.left, left
        connection._look(before)
    assert transport.aborted
    connection._read_on()


# -- what an answer allows


async def test_every_answer_is_closed_to_frames_sniffing_and_scripts_from_elsewhere(server):
    ana = await server.identity()
    answers = [
        await server.client.get("/"),
        await server.client.get("/static/main.js"),
        await server.client.get("/nothing/here"),
        await server.client.get("/api/memories", headers=ana.headers),
        await server.client.get("/api/memories"),
        await server.client.get("/", headers={"Host": "evil.example"}),
        await server.client.post("/api/identity", headers={"Origin": "http://evil.example"}),
        await server.client.post("/api/memory", content=b"[" * 100, headers=JSON),
    ]
    for answer in answers:
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers


async def test_no_answer_of_the_api_is_kept_by_a_cache(server):
    ana = await server.identity()
    for path in ("/api/memories", "/api/export", "/api/about", "/readyz", "/openapi.json", "/nothing"):
        answer = await server.client.get(path, headers=ana.headers)
        assert answer.headers["cache-control"] == "no-store"
    assert (await server.client.get("/")).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/",
        "/static",
    ],
)
async def test_the_files_of_the_page_are_the_only_ones(server, path):
    head = f"GET {path} HTTP/1.1\nHost: localhost:{port_of(server)}\nConnection: close"
    status, answer = await raw(server, head)
    assert status in {404, 405, 307}
    assert b"create_app" not in answer
    assert b"root:" not in answer


async def test_the_page_asks_for_nothing_from_elsewhere(server):
    page = (await server.client.get("/")).text
    files = set(re.findall(r'(?:href|src)="([^"]+)"', page)) - {"#views"}
    assert all(path.startswith("/") and not path.startswith("//") for path in files)
    for path in files:
        answer = await server.client.get(path)
        assert answer.status_code == 200
        addresses = set(re.findall(r"https?://[^\s\"')]+", answer.text))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path


# -- limits and logs


class TwoEach:
    """Lets two requests of each pass."""

    def __init__(self):
        self.seen = []

    async def retry_after_s(self, principal):
        self.seen.append(principal)
        return None if self.seen.count(principal) <= 2 else 7.2


async def test_who_asks_too_often_waits_and_nobody_else_does(start, operator):
    limiter = TwoEach()
    async with start(url="memory://", limiter=limiter) as server:
        ana, eve = await server.identity(), await server.identity()
        assert (await server.client.post("/api/identity")).status_code == 429
        for _ in range(2):
            assert (await server.memory_of(ana, "list")).status_code == 200
        slowed = await server.client.get("/api/memories", headers=ana.headers)
        assert (slowed.status_code, slowed.headers["retry-after"]) == (429, "8")
        assert (await server.memory_of(ana, "list")).status_code == 429
        assert (await server.memory_of(eve, "list")).status_code == 200
        assert (await server.client.get("/api/proposals", headers=operator)).status_code == 200
    assert set(limiter.seen) == {
        "address:127.0.0.1",
        f"user:default/{ana.user}",
        f"user:default/{eve.user}",
        "operator",
    }


async def test_nothing_said_and_nothing_secret_is_logged(server, operator, caplog):
    caplog.set_level(logging.DEBUG)
    ana = await server.identity()
    canary = "zanzibar"
    await server.say(ana, f"I live in {canary} and I love {canary} food")
    for operation in ("set", "get", "query", "delete"):
        await server.memory_of(ana, operation, key=canary, value=canary, query=canary)
    await server.memory_of(ana, "set", key=canary * 100, value=canary)
    for path in (
        f"/api/memories/{canary}/history",
        f"/{canary}",
        f"/api/memories?{canary}=1",
        f"/static/{canary}",
    ):
        await server.client.get(path, headers=ana.headers)
    await server.client.post("/api/chat", content=f'{{"{canary}'.encode(), headers={**JSON, **ana.headers})
    await server.client.post(f"/api/proposals/{canary}/approve", headers=operator)
    # what tests themselves send is logged by their own client
    ours = [r for r in caplog.records if not r.name.startswith(("httpx", "httpcore", "asyncio"))]
    text = "\n".join(f"{record.name} {record.getMessage()} {record.exc_text or ''}" for record in ours)
    for secret in (
        canary,
        canary.capitalize(),
        ana.token,
        ana.user,
        operator["Authorization"].split(" ", 1)[1],
    ):
        assert secret not in text
    assert "POST /api/chat 200" in text
    assert re.search(r"GET /api/memories/\{key[^}]*\}/history 200", text)


async def test_a_fault_of_ours_is_answered_and_logged_without_what_was_said(server, caplog, monkeypatch):
    ana = await server.identity()

    def broken(*_args, **_options):
        raise RuntimeError("zanzibar")

    monkeypatch.setattr(server.memory, "user", broken)
    answer = await server.client.get("/api/memories", headers=ana.headers)
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "zanzibar" not in answer.text
    text = caplog.text
    assert "RuntimeError at" in text
    assert "zanzibar" not in text


# -- more than there is time for


@pytest_asyncio.fixture(loop_scope="module")
async def slow(monkeypatch):
    """A client of an application each of whose answers takes sixteen steps of 4 ms on the event loop."""

    monkeypatch.setattr(LoopLag, "_UNASKED_S", 60)  # on a busy machine the steps take longer than it is
    monkeypatch.setattr(RequestLimit, "_LATE_WRITE_S", 60.0)  # no queue is behind it

    async def work(scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        for _ in range(16):
            time.sleep(0.004)
            await asyncio.sleep(0)
        await Response("done")(scope, receive, send)

    transport = httpx.ASGITransport(RequestLimit(work, per_address=1000, writes=v1.WRITES))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


async def statuses(client, under_way, more, path="/v1/recall"):
    """Of requests that come together, and of those that come when these have been under way for long."""
    first = [asyncio.create_task(client.get("/v1/recall")) for _ in range(under_way)]
    for _ in range(11):
        await asyncio.sleep(0)
    then = await asyncio.gather(*(client.get(path) for _ in range(more)))
    return [
        Counter(answer.status_code for answer in answers) for answers in (await asyncio.gather(*first), then)
    ]


async def test_more_requests_than_there_is_time_for_are_refused_and_those_under_way_are_answered(slow):
    assert await statuses(slow, 30, 5) == [{200: 30}, {503: 5}]
    answer = await slow.get("/v1/recall")
    assert answer.status_code == 200


async def test_no_recall_is_refused_for_the_sake_of_writes(slow):
    writes = [asyncio.create_task(slow.post("/v1/memories")) for _ in range(30)]
    for _ in range(11):
        await asyncio.sleep(0)
    more = await asyncio.gather(*(slow.post(path) for path in ("/v1/recall", "/v1/memories", "/v1/brief")))
    assert [answer.status_code for answer in more] == [200, 503, 200]
    assert {answer.status_code for answer in await asyncio.gather(*writes)} == {200}


async def test_a_few_requests_are_answered_however_late_the_loop_runs_and_health_always(slow):
    assert await statuses(slow, 14, 1) == [{200: 14}, {200: 1}]
    assert await statuses(slow, 30, 1, "/healthz") == [{200: 30}, {200: 1}]


async def test_requests_whose_bodies_do_not_come_keep_nobody_from_an_answer(slow):
    async def half_a_body():
        yield b"{"
        await asyncio.Event().wait()

    halves = [asyncio.create_task(slow.post("/v1/memories", content=half_a_body())) for _ in range(40)]
    assert await statuses(slow, 14, 1) == [{200: 14}, {200: 1}]
    for half in halves:
        half.cancel()
    await asyncio.gather(*halves, return_exceptions=True)


class Queued:
    """A client of an application behind a queue; each write is answered when it is told to."""

    def __init__(self):
        self.begun, self.go = [], asyncio.Semaphore(0)
        queue = WriteQueue(self._work, paths=v1.WRITES)
        transport = httpx.ASGITransport(RequestLimit(queue, per_address=1000, writes=v1.WRITES))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")

    async def _work(self, scope, receive, send):
        if scope["path"] == "/v1/memories" and scope["method"] == "POST":
            self.begun.append(scope["query_string"])
            await self.go.acquire()
        await Response("done")(scope, receive, send)

    async def write(self, number, **more):
        task = asyncio.create_task(self.client.post(f"/v1/memories?{number}", **more))
        for _ in range(5):
            await asyncio.sleep(0)
        return task


@pytest_asyncio.fixture(loop_scope="module")
async def queued(monkeypatch):
    for late in ("_LATE_S", "_LATE_WRITE_S"):  # however busy the machine is
        monkeypatch.setattr(RequestLimit, late, 60.0)
    made = Queued()
    async with made.client:
        yield made


async def test_a_few_writes_are_worked_on_at_once_in_order_and_nothing_else_waits_for_them(queued):
    writes = [await queued.write(number) for number in range(40)]
    assert queued.begun == [b"%d" % number for number in range(8)]
    for ask in (
        queued.client.post("/v1/recall"),
        queued.client.get("/v1/memories"),
        queued.client.post("/v1/conversations/c/final"),
    ):
        assert (await ask).status_code == 200
    for _ in writes:
        queued.go.release()
    assert [(await write).status_code for write in writes] == [200] * 40
    assert queued.begun == [b"%d" % number for number in range(40)]


async def test_a_write_that_its_client_gave_up_takes_nobodys_turn(queued):
    writes = [await queued.write(number) for number in range(20)]
    for gone in (writes[3], writes[10], writes[11]):  # one under way, two that wait
        gone.cancel()
    await asyncio.gather(writes[3], writes[10], writes[11], return_exceptions=True)
    queued.go.release()  # the next that begins may be given up in the moment in which its turn comes
    await writes[0]
    for _ in range(16):
        queued.go.release()
    answers = await asyncio.gather(*(write for write in writes if not write.cancelled()))
    assert [answer.status_code for answer in answers] == [200] * 17
    before = len(queued.begun)
    again = [await queued.write(number) for number in range(10)]
    assert len(queued.begun) == before + 8
    for _ in again:
        queued.go.release()
    await asyncio.gather(*again)


async def test_writes_that_would_wait_for_long_are_refused_unread_and_those_that_wait_are_answered(
    queued, monkeypatch
):
    monkeypatch.setattr(RequestLimit, "_LATE_WRITE_S", 0.0)
    writes = [await queued.write(number) for number in range(8 + 16)]
    read = []

    async def body():
        read.append(True)
        yield b"{}"

    for _ in range(3):
        refused = await asyncio.wait_for(await queued.write(99, content=body()), 60)
        assert refused.status_code == 503
        assert refused.json()["code"] == "busy"
        assert refused.headers["retry-after"]
    assert not read
    for _ in range(30):
        queued.go.release()
    assert [(await write).status_code for write in writes] == [200] * 24
    assert (await queued.client.post("/v1/memories")).status_code == 200


async def test_what_waits_for_a_turn_are_the_routes_that_write_and_no_others():
    asked = {(route.path, method) for route in v1.router.routes for method in route.methods}
    assert {(path, method) for path, method in asked if method != "GET" and v1.WRITES.fullmatch(path)} == {
        ("/v1/memories", "POST"),
        ("/v1/keys/{key:path}", "PUT"),
        ("/v1/keys/{key:path}", "DELETE"),
        ("/v1/conversations/{conversation:path}/turns", "POST"),
    }
