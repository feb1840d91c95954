"""The Voyage client against a loopback server that speaks the documented interface and fails on order."""

from __future__ import annotations

import asyncio
import socket
import traceback
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest

from echoic.embedding import Embedder
from echoic.embedding.remote import LONGEST_WAIT_S, TransientError, VoyageEmbedder, retry_after_s
from echoic.errors import EmbedderUnavailable, InvalidInput, NotOpen
from echoic.testing.embedder_conformance import EmbedderConformance, opened

Make = Callable[..., VoyageEmbedder]


@pytest.fixture
def make(embedding_server: Any) -> Make:
    """An embedder that talks to the server and hardly pauses."""

    def made(model: str = "voyage-3.5-lite", **options: Any) -> VoyageEmbedder:
        given = {"api_key": embedding_server.key, "base_url": embedding_server.url, "backoff_s": 0.001}
        return VoyageEmbedder(model, **(given | options))

    return made


@pytest.fixture
async def voyage(make: Make) -> AsyncIterator[VoyageEmbedder]:
    async with opened(make()) as embedder:
        yield embedder  # type: ignore[misc]


class TestVoyageConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self, make: Make) -> Embedder:
        return make()


async def test_a_request_is_what_the_interface_documents(
    voyage: VoyageEmbedder, embedding_server: Any
) -> None:
    await voyage.embed(["where is my sister"], "query")
    await voyage.embed(["Ana lives in Porto", "ok"], "document")
    common = {
        "model": "voyage-3.5-lite",
        "truncation": True,
        "encoding_format": "base64",
        "output_dimension": 1024,
    }
    assert embedding_server.requests == [
        common | {"input": ["where is my sister"], "input_type": "query"},
        common | {"input": ["Ana lives in Porto", "ok"], "input_type": "document"},
    ]
    assert embedding_server.headers[0]["authorization"] == "Bearer test-key"
    assert embedding_server.headers[0]["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("model", "dimensions", "made", "sent"),
    [
        ("voyage-3.5-lite", 256, 256, 256),
        ("voyage-4", None, 1024, 1024),
        ("voyage-law-2", None, 1024, None),
        ("voyage-of-the-future", 512, 512, 512),
    ],
)
async def test_dimensions_are_asked_for_where_a_model_can_choose(
    make: Make, embedding_server: Any, model: str, dimensions: int | None, made: int, sent: int | None
) -> None:
    async with opened(make(model, dimensions=dimensions)) as embedder:
        assert embedder.spec.model == f"voyageai:{model}"
        assert embedder.spec.dimensions == made
        assert (await embedder.embed(["text"], "query")).shape == (1, made)
    assert embedding_server.requests[0].get("output_dimension") == sent


@pytest.mark.parametrize(
    ("model", "dimensions", "way_out"),
    [
        ("voyage-of-the-future", None, "pass dimensions="),
        ("voyage-3.5-lite", 300, "256, 512, 1024, 2048"),
        ("voyage-law-2", 512, "use one of 1024"),
        ("voyage-of-the-future", 0, "at least 1"),
    ],
)
def test_dimensions_that_cannot_be_are_refused_before_anything_is_sent(
    make: Make, model: str, dimensions: int | None, way_out: str
) -> None:
    with pytest.raises(InvalidInput, match=way_out):
        make(model, dimensions=dimensions)


async def test_large_batches_are_split_by_count_and_by_bytes(
    voyage: VoyageEmbedder, embedding_server: Any
) -> None:
    texts = [f"note {number}" for number in range(300)]
    assert (await voyage.embed(texts, "document")).shape == (300, 1024)
    assert [len(request["input"]) for request in embedding_server.requests] == [128, 128, 44]
    embedding_server.requests.clear()
    await voyage.embed(["é" * 20_000, "b" * 50_000, "c" * 50_000, "d" * 200_000, "e"], "document")
    sent = [[len(text) for text in request["input"]] for request in embedding_server.requests]
    assert sent == [[20_000, 50_000], [50_000], [200_000], [1]]


async def test_vectors_are_put_in_order_by_their_index(
    voyage: VoyageEmbedder, embedding_server: Any, reply: Any
) -> None:
    expected = await voyage.embed(["one", "two", "three"], "document")
    embedding_server.faults = [reply(change=lambda answer: answer["data"].reverse())]
    assert (await voyage.embed(["one", "two", "three"], "document") == expected).all()


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500},
        {"status": 502, "body": b"<html>bad gateway</html>"},
        {"status": 503},
        {"status": 429, "headers": {"retry-after": "0"}},
        {"status": 408},
        {"cut": 100},
        {"body": b'{"data": [{"index": 0, "embed'},
        {"body": b'{"data": [{"index": 0, "embedding": "not base64!"}]}'},
        {"body": b'{"data": [{"index": 0, "embedding": "AAAA"}]}'},
        {"body": b'{"data": []}'},
        {"body": b"[]"},
        {"body": b'{"data": [{"embedding": "AAAAAA=="}]}'},
        {"change": lambda answer: answer["data"].pop()},
        {"change": lambda answer: answer["data"].append(answer["data"][0])},
        {"change": lambda answer: answer["data"][0].update(embedding="AAAA")},
        {"delay_s": 6.0},
    ],
)
async def test_what_may_go_better_the_next_time_is_tried_again(
    make: Make, embedding_server: Any, reply: Any, fault: dict[str, Any]
) -> None:
    embedding_server.faults = [reply(**fault), reply(**fault)]
    async with opened(make(timeout_s=3 if "delay_s" in fault else 60)) as embedder:
        assert (await embedder.embed(["where is Ana"], "query")).shape == (1, 1024)
    assert len(embedding_server.requests) == 3


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0])
async def test_a_vector_without_direction_is_tried_again(
    voyage: VoyageEmbedder, embedding_server: Any, reply: Any, bad: float
) -> None:
    import base64

    def spoil(answer: dict[str, Any]) -> None:
        answer["data"][0]["embedding"] = base64.b64encode(np.full(1024, bad, np.float32).tobytes()).decode()

    embedding_server.faults = [reply(change=spoil)]
    assert np.isfinite(await voyage.embed(["text"], "query")).all()
    assert len(embedding_server.requests) == 2


async def test_after_so_many_attempts_it_says_so(make: Make, embedding_server: Any, reply: Any) -> None:
    embedding_server.faults = [reply(status=503) for _ in range(9)]
    async with opened(make(attempts=3)) as embedder:
        with pytest.raises(EmbedderUnavailable, match=r"status 503 \(attempt 3 of 3\)"):
            await embedder.embed(["text"], "query")
    assert len(embedding_server.requests) == 3


async def test_nothing_comes_back_when_one_batch_of_several_fails(
    make: Make, embedding_server: Any, reply: Any
) -> None:
    embedding_server.faults = [reply(), reply(status=500)]
    async with opened(make(attempts=1)) as embedder:
        with pytest.raises(EmbedderUnavailable):
            await embedder.embed(["text"] * 200, "document")


async def test_a_pause_that_is_too_long_is_not_slept(
    voyage: VoyageEmbedder, embedding_server: Any, reply: Any
) -> None:
    embedding_server.faults = [reply(status=429, headers={"retry-after": "3600"})]
    with pytest.raises(EmbedderUnavailable, match="attempt 1 of 4"):
        await asyncio.wait_for(voyage.embed(["text"], "query"), timeout=20)
    assert len(embedding_server.requests) == 1


def test_pauses_grow_with_jitter_and_are_never_shorter_than_asked_for(make: Make) -> None:
    embedder = make(backoff_s=1.0)
    for attempt, ceiling in ((1, 1), (2, 2), (3, 4), (4, 8), (20, LONGEST_WAIT_S)):
        pauses = [embedder._pause_s(attempt, TransientError("down")) for _ in range(200)]
        assert 0 <= min(pauses) < ceiling / 4 < ceiling * 3 / 4 < max(pauses) <= ceiling
    asked = [embedder._pause_s(1, TransientError("busy", 5.0)) for _ in range(50)]
    assert 5 <= min(asked) < max(asked) <= 6


def test_a_pause_may_be_asked_for_in_seconds_or_as_a_date() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert retry_after_s({"retry-after": "1.5"}) == 1.5
    assert retry_after_s({"retry-after": "-3"}) == 0
    assert 60 < (retry_after_s({"retry-after": soon}) or 0) <= 90
    for unusable in ("soon", "nan", "inf", "Mon, 99 Zzz"):
        assert retry_after_s({"retry-after": unusable}) is None
    assert retry_after_s({}) is None


async def test_a_refused_key_is_not_tried_again_and_never_shown(make: Make, embedding_server: Any) -> None:
    secret = f"secret-{4000 + 711}"  # written so that a traceback does not quote it from here
    async with opened(make(api_key=secret)) as embedder:
        with pytest.raises(EmbedderUnavailable, match="VOYAGE_API_KEY") as raised:
            await embedder.embed(["text"], "query")
    assert len(embedding_server.requests) == 1
    assert secret not in "".join(traceback.format_exception(raised.value))
    assert secret not in repr(embedder)


@pytest.mark.parametrize(("status", "complaint"), [(400, "too long"), (413, "too long"), (404, "base_url")])
async def test_a_request_that_can_never_succeed_is_refused_at_once_without_quoting_the_text(
    voyage: VoyageEmbedder, embedding_server: Any, reply: Any, status: int, complaint: str
) -> None:
    embedding_server.faults = [reply(status=status)]
    with pytest.raises(InvalidInput, match=complaint) as raised:
        await voyage.embed([f"my pin is {4000 + 711}"], "document")
    assert embedding_server.requests[0]["input"] == [f"my pin is {4000 + 711}"]
    assert len(embedding_server.requests) == 1
    assert str(4000 + 711) not in "".join(traceback.format_exception(raised.value))


async def test_an_empty_account_is_not_tried_again(
    voyage: VoyageEmbedder, embedding_server: Any, reply: Any
) -> None:
    embedding_server.faults = [reply(status=402)]
    with pytest.raises(EmbedderUnavailable, match="credit"):
        await voyage.embed(["text"], "query")
    assert len(embedding_server.requests) == 1


async def test_a_model_of_other_dimensions_is_noticed(make: Make, embedding_server: Any, reply: Any) -> None:
    embedding_server.dimensions = 512
    async with opened(make("voyage-law-2")) as embedder:
        with pytest.raises(InvalidInput, match="makes 512 dimensions where 1024"):
            await embedder.embed(["text"], "query")


async def test_a_server_that_is_down_is_unavailable_and_does_not_keep_it_from_opening() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        async with opened(VoyageEmbedder(api_key="k", base_url=nowhere, backoff_s=0.001)) as embedder:
            with pytest.raises(EmbedderUnavailable, match="ConnectError"):
                await embedder.embed(["text"], "query")


async def test_a_caller_who_gives_up_stops_the_request(
    voyage: VoyageEmbedder, embedding_server: Any, reply: Any
) -> None:
    embedding_server.faults = [reply(delay_s=30)]
    asking = asyncio.create_task(voyage.embed(["text"], "query"))
    async with asyncio.timeout(60):
        while not embedding_server.requests:
            await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    assert (await voyage.embed(["text"], "query")).shape == (1, 1024)
    assert len(embedding_server.requests) == 2


async def test_the_key_is_read_from_the_environment_when_it_is_opened(
    make: Make, monkeypatch: pytest.MonkeyPatch, embedding_server: Any
) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    embedder = make(api_key=None)
    with pytest.raises(EmbedderUnavailable, match="pass api_key= or set VOYAGE_API_KEY"):
        await embedder.open()
    monkeypatch.setenv("VOYAGE_API_KEY", embedding_server.key)
    async with opened(embedder):
        assert (await embedder.embed(["text"], "query")).shape == (1, 1024)


async def test_a_key_copied_with_its_line_end_works_and_one_of_other_characters_is_not_quoted(
    make: Make, embedding_server: Any
) -> None:
    async with opened(make(api_key=f" {embedding_server.key}\n")) as embedder:
        assert (await embedder.embed(["text"], "query")).shape == (1, 1024)
    for key in (f"clé-{4000 + 711}", f"two\nlines-{4000 + 711}"):
        with pytest.raises(EmbedderUnavailable, match="characters that no key has") as raised:
            await make(api_key=key).open()
        assert "4711" not in "".join(traceback.format_exception(raised.value))


async def test_it_refuses_to_work_unless_it_is_open(make: Make) -> None:
    embedder = make()
    with pytest.raises(NotOpen):
        await embedder.embed(["text"], "query")
    async with opened(embedder):
        pass
    with pytest.raises(NotOpen):
        await embedder.embed(["text"], "query")


@pytest.mark.parametrize("blank", ["", "   ", "\n"])
async def test_a_blank_text_is_refused_before_it_spoils_its_batch(
    voyage: VoyageEmbedder, embedding_server: Any, blank: str
) -> None:
    with pytest.raises(InvalidInput, match="text 1 is blank"):
        await voyage.embed(["good", blank], "document")
    assert embedding_server.requests == []


@pytest.mark.parametrize("options", [{"timeout_s": 0}, {"attempts": 0}, {"backoff_s": -1}])
def test_impossible_settings_are_refused(make: Make, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="timeout_s must be above 0"):
        make(**options)


@pytest.mark.parametrize("address", ["api.voyageai.com/v1", "ftp://host/v1", "http://", "http://host:port"])
async def test_an_address_that_is_none_is_refused(make: Make, address: str) -> None:
    with pytest.raises(InvalidInput, match="base_url is not an address"):
        await make(base_url=address).open()
