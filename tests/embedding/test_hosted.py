"""The bridge to PydanticAI: with an embedding model of its kind, and with OpenAI's own client if present."""

from __future__ import annotations

import asyncio
import contextlib
import re
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from pydantic_ai import exceptions
from pydantic_ai.embeddings import (
    EmbeddingModel,
    EmbeddingResult,
    EmbeddingSettings,
    TestEmbeddingModel,
    infer_embedding_model,
)
from pydantic_ai.models import OpenAIChatCompatibleProvider, OpenAIResponsesCompatibleProvider
from pydantic_ai.providers import infer_provider_class

from echoic.embedding import Embedder, LexicalEmbedder
from echoic.embedding.hosted_model import ALIASES, DIMENSIONS, KEYS, HostedEmbedder, canonical, cut_bytes
from echoic.errors import EmbedderMissing, EmbedderUnavailable, InvalidInput, NotOpen
from echoic.testing.embedder_conformance import EmbedderConformance, opened


class LexicalModel(EmbeddingModel):
    """An embedding model as PydanticAI defines it, which embeds words and fails on order."""

    def __init__(self, system: str = "test", name: str = "words") -> None:
        super().__init__()
        self._system = system
        self._name = name
        self.asked: list[tuple[list[str], str, EmbeddingSettings | None]] = []
        self.faults: list[Exception | Callable[[list[list[float]]], Any]] = []

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return self._system

    async def embed(
        self, inputs: str | Sequence[str], *, input_type: Any, settings: EmbeddingSettings | None = None
    ) -> EmbeddingResult:
        texts, settings = self.prepare_embed(inputs, settings)
        self.asked.append((list(texts), input_type, settings))
        vectors = (await LexicalEmbedder().embed(list(texts), input_type) * 3).tolist()
        if self.faults:
            fault = self.faults.pop(0)
            if isinstance(fault, Exception):
                raise fault
            vectors = fault(vectors)
        return EmbeddingResult(
            vectors, inputs=texts, input_type=input_type, model_name=self._name, provider_name=self._system
        )


@pytest.fixture
def model() -> LexicalModel:
    return LexicalModel()


@pytest.fixture
async def hosted(model: LexicalModel) -> AsyncIterator[HostedEmbedder]:
    async with opened(HostedEmbedder(model, dimensions=768, backoff_s=0.001)) as embedder:
        yield embedder  # type: ignore[misc]


class TestHostedConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return HostedEmbedder(LexicalModel(), dimensions=768)


async def test_the_kind_of_text_reaches_the_model(hosted: HostedEmbedder, model: LexicalModel) -> None:
    await hosted.embed(["where is Ana"], "query")
    await hosted.embed(["Ana lives in Porto"], "document")
    assert [(texts, kind) for texts, kind, _ in model.asked] == [
        (["where is Ana"], "query"),
        (["Ana lives in Porto"], "document"),
    ]


async def test_large_batches_are_split(hosted: HostedEmbedder, model: LexicalModel) -> None:
    texts = [f"note {number}" for number in range(200)]
    found = await hosted.embed(texts, "document")
    assert [len(asked) for asked, _, _ in model.asked] == [96, 96, 8]
    expected = await LexicalEmbedder().embed(texts, "document")
    assert float(np.abs(found - expected).max()) < 1e-6


async def test_gemini_on_google_cloud_gets_one_text_a_request() -> None:
    model = LexicalModel("google-cloud", "gemini-embedding-001")
    async with opened(HostedEmbedder(model, dimensions=768)) as embedder:
        await embedder.embed(["one", "two"], "document")
    assert [texts for texts, _, _ in model.asked] == [["one"], ["two"]]


@pytest.mark.parametrize(
    ("system", "name", "dimensions", "sent"),
    [
        ("openai", "text-embedding-3-small", 768, {"dimensions": 768}),
        ("test", "words", 768, {}),
    ],
)
async def test_dimensions_are_asked_for_only_where_they_differ_from_what_a_known_model_makes(
    system: str, name: str, dimensions: int, sent: dict[str, int]
) -> None:
    model = LexicalModel(system, name)
    async with opened(HostedEmbedder(model, dimensions=dimensions)) as embedder:
        await embedder.embed(["text"], "query")
    assert model.asked[0][2] == sent


async def test_a_text_too_long_for_openai_is_cut_where_it_certainly_fits() -> None:
    model = LexicalModel("openai", "text-embedding-3-small")
    async with opened(HostedEmbedder(model, dimensions=768)) as embedder:
        await embedder.embed(["é" * 5000, "short", "a" * 9000], "document")
    assert [len(text.encode()) for text in model.asked[0][0]] == [8190, 5, 8191]


def test_cutting_never_splits_a_character() -> None:
    for most in range(12):
        assert cut_bytes("aé👍b", most) == ["", "a", "a", "aé", "aé", "aé", "aé", "aé👍"][min(most, 7)] + (
            "b" if most >= 8 else ""
        )


def http_error(status: int, **details: Any) -> exceptions.ModelHTTPError:
    from pydantic_ai._model_errors import http_status_category

    return exceptions.ModelHTTPError.for_category(
        http_status_category(status), status_code=status, model_name="words", body="my pin is 4711", **details
    )


@pytest.mark.parametrize(
    "fault",
    [
        http_error(429, headers={"retry-after": "0"}),
        http_error(500),
        http_error(503),
        exceptions.ModelConnectionError("words", "reset"),
        exceptions.ModelTimeoutError("words", "slow"),
        exceptions.UnexpectedModelBehavior("no JSON: my pin is 4711"),
        ConnectionResetError("by peer"),
        lambda vectors: vectors[:-1],
        lambda vectors: [vectors[0], vectors[1][:-1]],
        lambda vectors: [],
        lambda vectors: [[float("nan")] * 768] * 2,
        lambda vectors: [["not", "numbers"]],
        lambda vectors: [{"not": "numbers"}],
        lambda vectors: [[10**400]],
    ],
)
async def test_what_may_go_better_the_next_time_is_tried_again(
    hosted: HostedEmbedder, model: LexicalModel, fault: Any
) -> None:
    model.faults = [fault]
    assert (await hosted.embed(["one", "two"], "document")).shape == (2, 768)
    assert len(model.asked) == 2


@pytest.mark.parametrize(
    ("fault", "expected", "message"),
    [
        (http_error(401), EmbedderUnavailable, "refuses the key"),
        (http_error(403), EmbedderUnavailable, "refuses the key"),
        (http_error(402), EmbedderUnavailable, "no credit"),
        (http_error(400), InvalidInput, "too long"),
        (http_error(404), InvalidInput, "knows no model"),
        (exceptions.ModelContextWindowExceededError("words", "pin 4711"), InvalidInput, "too long"),
        (exceptions.ModelAuthenticationError("words", "pin 4711"), EmbedderUnavailable, "refuses the key"),
        (http_error(429, headers={"retry-after": "900"}), EmbedderUnavailable, "attempt 1 of 4"),
    ],
    ids=repr,
)
async def test_what_can_never_succeed_is_not_tried_again_and_quotes_nothing(
    hosted: HostedEmbedder,
    model: LexicalModel,
    fault: Exception,
    expected: type[Exception],
    message: str,
) -> None:
    model.faults = [fault]
    with pytest.raises(expected, match=message) as raised:
        await hosted.embed(["text"], "query")
    assert len(model.asked) == 1
    assert "4711" not in "".join(traceback.format_exception(raised.value))


async def test_a_spent_quota_is_told_apart_from_a_busy_moment(
    hosted: HostedEmbedder, model: LexicalModel
) -> None:
    model.faults = [
        exceptions.ModelHTTPError.for_category(
            exceptions.ModelQuotaExceededError,
            status_code=429,
            model_name="words",
            provider_error_code="insufficient_quota",
        )
    ]
    with pytest.raises(EmbedderUnavailable, match=r"no credit left .*insufficient_quota"):
        await hosted.embed(["text"], "query")
    assert len(model.asked) == 1


async def test_a_model_that_never_answers_is_given_up_after_its_time() -> None:
    class Silent(LexicalModel):
        async def embed(self, *args: Any, **kwargs: Any) -> EmbeddingResult:
            await asyncio.Event().wait()
            raise AssertionError

    async with opened(HostedEmbedder(Silent(), dimensions=8, timeout_s=0.01, attempts=2)) as embedder:
        with pytest.raises(EmbedderUnavailable, match=r"no answer within 0.01 s \(attempt 2 of 2\)"):
            await embedder.embed(["text"], "query")


async def test_pydantic_ais_own_test_model_works_through_it() -> None:
    model = TestEmbeddingModel(dimensions=16)
    async with opened(HostedEmbedder(model, dimensions=16)) as embedder:
        assert embedder.spec.model == "test:test"
        assert await embedder.embed(["a", "b"], "query") == pytest.approx(np.full((2, 16), 0.25))


async def test_wrong_dimensions_are_noticed_and_the_right_ones_named() -> None:
    async with opened(HostedEmbedder(LexicalModel(), dimensions=512)) as embedder:
        with pytest.raises(InvalidInput, match=r"makes 768 dimensions where 512 .* pass dimensions=768"):
            await embedder.embed(["text"], "query")


async def test_it_refuses_to_work_unless_it_is_open() -> None:
    embedder = HostedEmbedder(LexicalModel(), dimensions=768)
    with pytest.raises(NotOpen):
        await embedder.embed(["text"], "query")


def test_common_models_need_no_dimensions_and_others_do() -> None:
    assert HostedEmbedder("openai:text-embedding-3-small").spec.dimensions == 1536
    assert HostedEmbedder("openai:text-embedding-3-large", dimensions=256).spec.dimensions == 256
    with pytest.raises(InvalidInput, match="pass dimensions="):
        HostedEmbedder("ollama:something-new")
    for impossible in (0, -1):
        with pytest.raises(InvalidInput, match="at least 1"):
            HostedEmbedder("openai:text-embedding-3-small", dimensions=impossible)


def test_old_names_of_providers_still_work() -> None:
    assert HostedEmbedder("google-gla:gemini-embedding-001").spec.model == "google:gemini-embedding-001"
    assert canonical("google-vertex:m") == "google-cloud:m"


@pytest.mark.parametrize("name", ["", "openai", "openai:", "nobody:model", "anthropic:claude"])
def test_an_unknown_provider_is_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(InvalidInput, match="openai, azure, google"):
        HostedEmbedder(name, dimensions=8)


def test_options_for_a_model_that_was_passed_ready_made_are_refused(model: LexicalModel) -> None:
    with pytest.raises(InvalidInput, match="set them there"):
        HostedEmbedder(model, dimensions=768, api_key="k")


def test_every_provider_offered_is_one_that_pydantic_ai_has_embeddings_for() -> None:
    compatible = {
        *get_args(OpenAIChatCompatibleProvider.__value__),
        *get_args(OpenAIResponsesCompatibleProvider.__value__),
    }
    assert set(KEYS) <= compatible | {"openai", "cohere", "bedrock", "google", "google-cloud"}
    assert set(ALIASES.values()) <= set(KEYS)
    assert {name.partition(":")[0] for name in DIMENSIONS} <= set(KEYS)
    for provider in KEYS:
        # Known, even where its SDK is not installed; an unknown one raises ValueError.
        with contextlib.suppress(ImportError):
            infer_provider_class(provider)


async def test_a_provider_whose_package_is_missing_says_how_to_get_it() -> None:
    try:
        import cohere  # noqa: F401
    except ImportError:
        with pytest.raises(EmbedderMissing, match=r"pydantic-ai-slim\[cohere\]"):
            await HostedEmbedder("cohere:embed-v4.0", api_key="k").open()
    else:
        with pytest.raises(InvalidInput, match="does not take api_key and base_url"):
            await HostedEmbedder("cohere:embed-v4.0", api_key="k", base_url="http://127.0.0.1").open()


class TestWithTheOpenAIClient:
    """The whole way: PydanticAI's OpenAI model and OpenAI's client against a server on the loopback."""

    @pytest.fixture(autouse=True)
    def _needs_openai(self) -> None:
        pytest.importorskip("openai", reason="the openai package is not installed")

    @pytest.fixture
    def make(self, embedding_server: Any) -> Callable[..., HostedEmbedder]:
        embedding_server.dimensions = 1536

        def made(**options: Any) -> HostedEmbedder:
            given = {"api_key": embedding_server.key, "base_url": embedding_server.url, "backoff_s": 0.001}
            return HostedEmbedder("openai:text-embedding-3-small", **(given | options))

        return made

    async def test_vectors_arrive(self, make: Callable[..., HostedEmbedder], embedding_server: Any) -> None:
        async with opened(make()) as embedder:
            found = await embedder.embed(["one", "two", "one"], "document")
            short = make(dimensions=256)
            async with opened(short):
                assert (await short.embed(["one"], "query")).shape == (1, 256)
        assert found.shape == (3, 1536)
        assert (found[0] == found[2]).all()
        assert "dimensions" not in embedding_server.requests[0]
        assert embedding_server.requests[1]["dimensions"] == 256

    async def test_faults_are_retried_once_each_and_a_bad_key_is_not(
        self, make: Callable[..., HostedEmbedder], embedding_server: Any, reply: Any
    ) -> None:
        embedding_server.faults = [
            reply(status=500),
            reply(status=429, headers={"retry-after": "0"}),
            reply(cut=100),
        ]
        async with opened(make()) as embedder:
            assert (await embedder.embed(["one"], "query")).shape == (1, 1536)
        assert len(embedding_server.requests) == 4  # the client's own retries are off
        embedding_server.requests.clear()
        secret = f"sk-{4000 + 711}"
        async with opened(make(api_key=secret)) as embedder:
            with pytest.raises(EmbedderUnavailable, match="OPENAI_API_KEY") as raised:
                await embedder.embed(["one"], "query")
        assert len(embedding_server.requests) == 1
        assert secret not in "".join(traceback.format_exception(raised.value))

    async def test_without_a_key_it_says_which_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(EmbedderUnavailable, match=r"pass api_key= \(or set OPENAI_API_KEY\)"):
            await HostedEmbedder("openai:text-embedding-3-small").open()

    async def test_a_model_passed_ready_made_stays_its_owners(self, embedding_server: Any) -> None:
        embedding_server.dimensions = 1536
        # off the loop: a client looks for certificates on the disk when it is made
        provider = await asyncio.to_thread(
            infer_provider_class("openai"), api_key=embedding_server.key, base_url=embedding_server.url
        )
        model = infer_embedding_model("openai:text-embedding-3-small", provider_factory=lambda _: provider)
        async with provider:
            async with opened(HostedEmbedder(model)) as embedder:
                await embedder.embed(["one"], "query")
            await model.embed("still open", input_type="query")
            assert len(embedding_server.requests) == 2
            async with opened(HostedEmbedder(model)) as embedder:
                assert embedder.spec.model == "openai:text-embedding-3-small"
                assert (await embedder.embed(["one"], "query")).shape == (1, 1536)


def test_every_provider_and_its_key_is_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "ranking.md").read_text()
    for provider, key in KEYS.items():
        assert re.search(rf"^\| `{provider}` \| `?{re.escape(key)}`? \|$", page, re.MULTILINE), provider
