"""Somebody takes all they can get, and everybody else is served: real sockets against a real server."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

import httpx
import pytest

from echoic.adapters.browser import PageSettings
from echoic.adapters.connections import Limits, address_of
from echoic.errors import InvalidInput
from echoic.server import CellLimiter, Rate
from echoic.session import CallLimits, VoiceAgent
from echoic_loopback.realtime import Script
from server.voice_calling import admitted, calling, providing

pytestmark = pytest.mark.asyncio(loop_scope="module")

FLOOD = 330
ATTACKER, OTHER = "127.0.0.1", "127.0.0.2"
"""Two addresses of this machine."""


def port_of(server):
    return httpx.URL(server.url).port


@contextlib.asynccontextmanager
async def flood(server, count, first_bytes=b""):
    """`count` sockets of the attacker, each opened again as soon as it is closed; how often that was done."""
    opened = Counter()

    async def hold(number):
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
                opened[number] += 1
                try:
                    writer.write(first_bytes)
                    await reader.read()
                finally:
                    writer.close()

    holding = [asyncio.create_task(hold(number)) for number in range(count)]
    try:
        async with asyncio.timeout(60):
            while len(opened) < count:
                await asyncio.sleep(0.01)
        yield opened
    finally:
        for task in holding:
            task.cancel()
        await asyncio.gather(*holding, return_exceptions=True)


def client_from(server, address):
    """A client that opens a connection a request, as somebody does who comes anew."""
    transport = httpx.AsyncHTTPTransport(
        verify=False, local_address=address, limits=httpx.Limits(max_keepalive_connections=0)
    )
    return httpx.AsyncClient(base_url=server.url, transport=transport, timeout=60, trust_env=False)


HALF = b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"


@pytest.mark.parametrize(
    ("limits", "first_bytes"),
    [
        (Limits(), b""),
        (Limits(connections_per_address=310), b""),
        (Limits(connections_per_address=1000, connections=310), b""),
        (Limits(connections_per_address=1000, connections=310), b"GET / HTTP/1.1\r\nX: "),
        (Limits(connections_per_address=1000, connections=310), HALF),
    ],
    ids=["by default", "too many of the address", "too many in all", "half a head", "half a body"],
)
async def test_idle_sockets_of_one_address_shut_nobody_out(start, limits, first_bytes):
    async with start(url="memory://", limits=limits) as server, client_from(server, OTHER) as other:
        ana = await server.identity()
        async with flood(server, FLOOD, first_bytes):
            for _ in range(2):
                answers = [
                    await other.get("/healthz"),
                    await other.get("/readyz"),
                    await other.post("/api/memory", json=ana.operation("list")),
                ]
                assert [answer.status_code for answer in answers] == [200] * 3
        held = server.uvicorn.server_state.connections
        most = limits.connections + limits.health_connections
        async with asyncio.timeout(60):  # one that was just told to go is still there until it has gone
            while len(held) > most:
                await asyncio.sleep(0.01)


async def test_the_default_serves_even_the_address_that_does_it(start):
    async with start(url="memory://") as server, client_from(server, ATTACKER) as same, flood(server, FLOOD):
        for _ in range(5):
            assert (await same.get("/healthz")).status_code == 200
            assert (await same.post("/api/identity")).status_code == 200


async def test_health_has_room_where_everything_else_is_taken(start):
    """Every connection is busy with a request that does not end; more than health gets no answer but 503."""
    limits = Limits(
        connections=32, requests_per_address=100, streams_per_address=100, streams_per_identity=100
    )
    async with start(url="memory://", limits=limits) as server, contextlib.AsyncExitStack() as held:
        ana = await server.identity()
        await server.client.aclose()  # its connection is idle, and would be let go
        listening = await held.enter_async_context(
            httpx.AsyncClient(
                base_url=server.url, timeout=60, verify=False, limits=httpx.Limits(max_connections=None)
            )
        )
        for _ in range(32):
            stream = await held.enter_async_context(
                listening.stream("GET", "/api/events", headers=ana.headers)
            )
            assert stream.status_code == 200
        async with client_from(server, OTHER) as other, flood(server, 50):
            for _ in range(5):
                assert (await other.get("/healthz")).status_code == 200
                assert (await other.get("/readyz")).status_code == 200
                refused = await other.get("/api/about")
                assert (refused.status_code, refused.json()["code"]) == (503, "busy")
                assert int(refused.headers["retry-after"]) > 0


async def test_one_identity_holds_few_event_streams_however_many_it_opens(start):
    async with start(url="memory://") as server, contextlib.AsyncExitStack() as held:
        eve, ana = await server.identity(), await server.identity()
        ended = Counter()

        async def listen(number):
            transport = httpx.AsyncHTTPTransport(verify=False)
            async with (
                httpx.AsyncClient(
                    base_url=server.url, transport=transport, timeout=60, trust_env=False
                ) as client,
                client.stream("GET", "/api/events", headers=eve.headers) as stream,
            ):
                if stream.status_code == 200:
                    async for _ in stream.aiter_bytes():
                        pass
                ended[stream.status_code] += 1

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(listen(number)) for number in range(254)]
            async with asyncio.timeout(60):
                while ended.total() < 254 - 8:
                    await asyncio.sleep(0.01)
            page = await held.enter_async_context(
                server.client.stream("GET", "/api/events", headers=ana.headers)
            )
            assert page.status_code == 200
            assert (await server.memory_of(ana, "list")).status_code == 200
            assert len(server.app.state.served.live._oldest) <= 9
            for task in tasks:
                task.cancel()
        assert set(ended) <= {200, 429}


async def test_requests_of_one_identity_and_of_one_address_are_counted_until_they_have_ended(start):
    limits = Limits(requests_per_identity=3, requests_per_address=5)
    async with start(url="memory://", limits=limits) as server, client_from(server, OTHER) as other:
        eve, ana = await server.identity(), await server.identity()
        async with contextlib.AsyncExitStack() as held:
            for who in (eve, eve, eve, ana, ana):
                stream = server.client.stream("GET", "/api/events", headers=who.headers)
                assert (await held.enter_async_context(stream)).status_code == 200
            assert (await server.client.get("/api/about")).status_code == 429, "of the address"
            assert (await server.client.get("/healthz")).status_code == 200
            slowed = await other.get("/api/memories", headers=eve.headers)
            assert (slowed.status_code, slowed.json()["code"]) == (429, "too_many_requests")
            assert int(slowed.headers["retry-after"]) > 0
            assert (await other.get("/api/memories", headers=ana.headers)).status_code == 200
        async with asyncio.timeout(30):  # it is seen that they have hung up
            while server.app.state.served.busy:
                await asyncio.sleep(0.01)
        assert (await server.client.get("/api/memories", headers=eve.headers)).status_code == 200


class TestVoiceSlots:
    """Fifty identities ask for calls and never come for them."""

    async def crowd(self, server, client):
        given = [await server.identity() for _ in range(50)]
        answers = [
            await client.post("/api/voice/sessions", headers=who.headers) for who in given for _ in range(2)
        ]
        return Counter(answer.status_code for answer in answers)

    def opened(self, start, model, **changes):
        agent = VoiceAgent(name="robin", instructions="You are Robin.")
        return start(url="memory://", voice_model=model, voice_agents=[agent], **changes)

    @pytest.mark.parametrize("from_where", [ATTACKER, OTHER], ids=["another address", "the same"])
    async def test_tickets_nobody_uses_shut_nobody_out(self, start, from_where):
        async with (
            providing("openai", Script(open_ended=True)) as (_, model),
            self.opened(start, model, voice_page_settings=PageSettings(ticket_s=600)) as server,
            client_from(server, from_where) as attacker,
        ):
            await self.crowd(server, attacker)
            assert server.app.state.served.voice.calls <= Limits().calls_per_address
            ana = await server.identity()
            async with calling(server, ana) as page:
                await self.crowd(server, attacker)
                assert page.closed is None

    async def test_nor_do_they_where_they_come_from_everywhere(self, start):
        limits = Limits(calls_per_address=1000)
        calls = CallLimits(total=20)
        async with (
            providing("openai", Script(open_ended=True)) as (_, model),
            self.opened(
                start,
                model,
                limits=limits,
                voice_limits=calls,
                voice_page_settings=PageSettings(ticket_s=600),
            ) as server,
        ):
            ana = await server.identity()
            async with calling(server, ana) as page:
                assert (await self.crowd(server, server.client)) == {200: 100}
                assert calls.calls == 20
                assert page.closed is None, "a call that is under way makes room for nobody"

    async def test_a_withdrawn_ticket_opens_nothing(self, start):
        async with (
            providing("openai", Script(open_ended=True)) as (_, model),
            self.opened(start, model, limits=Limits(calls_per_address=1)) as server,
        ):
            ana, eve = await server.identity(), await server.identity()
            first = (await admitted(server.client, ana))["ticket"]
            await admitted(server.client, eve)
            assert server.app.state.served.voice.redeem(first) is None

    async def test_calls_under_way_are_counted_by_address(self, start):
        async with (
            providing("openai", Script(open_ended=True)) as (_, model),
            self.opened(start, model, limits=Limits(calls_per_address=1)) as server,
            client_from(server, OTHER) as other,
        ):
            ana, eve = await server.identity(), await server.identity()
            async with calling(server, ana):
                refused = await server.client.post("/api/voice/sessions", headers=eve.headers)
                assert (refused.status_code, refused.json()["code"]) == (429, "too_many_calls")
                assert (await other.post("/api/voice/sessions", headers=eve.headers)).status_code == 200


class TestGuessing:
    async def test_wrong_operator_keys_are_throttled_by_address(self, start, operator):
        limiter = CellLimiter(refused=Rate.of("5/hour"))
        async with start(url="memory://", limiter=limiter) as server, client_from(server, OTHER) as other:
            wrong = {"Authorization": "Bearer " + "x" * 40}
            seen = [(await server.client.get("/api/proposals", headers=wrong)).status_code for _ in range(10)]
            assert seen == [401] * 5 + [429] * 5
            slowed = await server.client.get("/api/proposals", headers=operator)
            assert slowed.status_code == 429, "else a guess that is right would be told from one that is not"
            assert int(slowed.headers["retry-after"]) > 0
            assert (await other.get("/api/proposals", headers=operator)).status_code == 200

    async def test_bad_tokens_are_throttled_and_good_ones_of_the_same_address_are_not(self, start, forge):
        limiter = CellLimiter(refused=Rate.of("5/hour"))
        async with start(url="memory://", limiter=limiter) as server:
            ana = await server.identity()
            forged = {"Authorization": f"Bearer {forge({'sub': 'ana'}, key='k' * 40)}"}
            asked = {"operation": "list", "userCookie": "nonsense"}
            seen = [(await server.client.get("/api/memories", headers=forged)).status_code for _ in range(7)]
            seen.append((await server.client.post("/api/memory", json=asked)).status_code)
            seen.append((await server.client.post("/api/identity", headers=forged)).status_code)
            assert seen == [401] * 5 + [429] * 4
            assert (await server.memory_of(ana, "list")).status_code == 200

    async def test_new_identities_are_counted_by_address(self, start):
        limiter = CellLimiter(address=Rate.of("3/hour"))
        async with start(url="memory://", limiter=limiter) as server, client_from(server, OTHER) as other:
            seen = [(await server.client.post("/api/identity")).status_code for _ in range(5)]
            assert seen == [200] * 3 + [429] * 2
            assert (await other.post("/api/identity")).status_code == 200


class TestProxies:
    """Three identities an hour for each address, asked for through a proxy or by somebody who plays one."""

    async def seen(self, start, proxies, forwarded):
        limiter = CellLimiter(address=Rate.of("1/hour"))
        limits = Limits(trusted_proxies=proxies)
        async with start(url="memory://", limiter=limiter, limits=limits) as server:
            return [
                (await server.client.post("/api/identity", headers={"X-Forwarded-For": value})).status_code
                for value in forwarded
            ]

    async def test_what_a_stranger_says_of_where_they_come_from_is_not_believed(self, start):
        addresses = [f"203.0.113.{n}" for n in range(3)]
        assert await self.seen(start, (), addresses) == [200, 429, 429]
        assert await self.seen(start, ("10.0.0.0/8",), addresses) == [200, 429, 429]

    async def test_a_proxy_that_is_trusted_is_believed(self, start):
        proxies = ("127.0.0.0/8", "10.0.0.0/8")
        addresses = [f"203.0.113.{n}" for n in range(3)]
        assert await self.seen(start, proxies, addresses) == [200] * 3
        # only what the proxies added: what stands before it anybody may have written
        spoofed = [f"198.51.100.{n}, 203.0.113.7, 10.0.0.1" for n in range(3)]
        assert await self.seen(start, proxies, spoofed) == [200, 429, 429]

    async def test_an_ipv6_address_counts_as_its_network(self, start):
        same = [f"2001:db8:0:1::{n:x}" for n in range(3)]
        assert await self.seen(start, ("127.0.0.1",), [*same, "2001:db8:0:2::1"]) == [200, 429, 429, 200]

    async def test_a_trusted_proxy_may_have_any_number_of_connections(self, start):
        limits = Limits(connections_per_address=2, trusted_proxies=("127.0.0.1",))
        async with start(url="memory://", limits=limits) as server, flood(server, 20) as opened:
            assert (await server.client.get("/api/about")).status_code == 200
            assert set(opened.values()) == {1}, "none of them was closed"


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("not an address", "not an address"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
async def test_what_an_address_is_counted_as(host, counted):
    assert address_of(host) == counted


@pytest.mark.parametrize("proxy", ["", "proxy.example", "10.0.0.0/99", "*"])
async def test_a_proxy_that_is_no_address_is_refused(proxy):
    with pytest.raises(InvalidInput, match="trusted_proxies"):
        Limits(trusted_proxies=(proxy,))
    with pytest.raises(InvalidInput, match="connections"):
        Limits(connections=0)
