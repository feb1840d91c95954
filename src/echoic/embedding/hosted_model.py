"""Hosted embedding models that PydanticAI can reach: OpenAI, Google, Cohere, Bedrock, Ollama and others.

It adds what PydanticAI leaves to its caller: batches, time-outs, retries, and our own errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from echoic.embedding.base import Kind, Vectors
from echoic.embedding.remote import RemoteEmbedder, TransientError, checked_dimensions, refusal
from echoic.errors import EchoicError, EmbedderMissing, EmbedderUnavailable, InvalidInput, NotOpen
from echoic.types import EmbeddingSpec

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingModel, EmbeddingSettings
    from pydantic_ai.exceptions import ModelAPIError
    from pydantic_ai.providers import Provider

DIMENSIONS: dict[str, int] = {
    "openai:text-embedding-3-small": 1536,
    "openai:text-embedding-3-large": 3072,
    "openai:text-embedding-ada-002": 1536,
    "azure:text-embedding-3-small": 1536,
    "azure:text-embedding-3-large": 3072,
    "google:gemini-embedding-2": 3072,
    "google:gemini-embedding-001": 3072,
    "google-cloud:gemini-embedding-2": 3072,
    "google-cloud:gemini-embedding-001": 3072,
    "cohere:embed-v4.0": 1536,
    "cohere:embed-english-v3.0": 1024,
    "cohere:embed-multilingual-v3.0": 1024,
    "bedrock:amazon.titan-embed-text-v2:0": 1024,
    "bedrock:cohere.embed-english-v3": 1024,
    "bedrock:cohere.embed-multilingual-v3": 1024,
    "bedrock:cohere.embed-v4:0": 1536,
    "ollama:nomic-embed-text": 768,
    "ollama:mxbai-embed-large": 1024,
}
"""Default dimensions of common models, as their providers document them."""

KEYS: dict[str, str] = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "google": "GOOGLE_API_KEY",
    "cohere": "CO_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "together": "TOGETHER_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
    "nebius": "NEBIUS_API_KEY",
    "ollama": "OLLAMA_API_KEY",
    "google-cloud": "the Google Cloud credentials",
    "bedrock": "the AWS credentials",
    "vllm": "VLLM_API_KEY",
}
"""The supported providers, and the environment variable of each one's key."""

ALIASES = {"google-gla": "google", "google-vertex": "google-cloud"}
"""Former names of providers."""

# Cohere takes 96 texts a request, Gemini 100, OpenAI 2,048. Gemini on Google Cloud takes a single one.
_TEXTS_PER_REQUEST = 96
_TEXTS_PER_REQUEST_OF = {"google-cloud": 1}
_BYTES_PER_REQUEST = 120_000  # OpenAI: 300,000 tokens

# OpenAI refuses longer texts, and with them the whole batch. A token is at least one byte, so a text cut to
# so many bytes always fits, whatever its language.
_BYTES_PER_TEXT = {"openai": 8191, "azure": 8191}


class HostedEmbedder(RemoteEmbedder):
    """A model of a provider that PydanticAI supports, named "provider:model"."""

    def __init__(
        self,
        model: str | EmbeddingModel,
        *,
        dimensions: int | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout_s: float = 10.0,
        attempts: int = 4,
        backoff_s: float = 0.25,
    ) -> None:
        """Connects to nothing yet.

        Args:
            model: "provider:model", or a PydanticAI embedding model.
            dimensions: dimensions of the vectors; None is its default. A model in `DIMENSIONS` is asked
                for them. For any other they state what it makes, and are required.
            api_key: None uses the provider's usual environment variable, read on opening.
            base_url: address of the service; None is the provider's own.
            timeout_s: time limit of one request.
            attempts: attempts of a request.
            backoff_s: the longest pause after the first failure; it doubles with each further one.

        Raises:
            InvalidInput: the provider is unknown, or the dimensions are required and missing.
        """
        name = canonical(model) if isinstance(model, str) else f"{model.system}:{model.model_name}"
        made = DIMENSIONS.get(name)
        wanted = checked_dimensions(name, dimensions if dimensions is not None else made)
        if not isinstance(model, str) and (api_key or base_url):
            raise InvalidInput("api_key and base_url belong to the model that was passed: set them there")
        self._provider = name.partition(":")[0]
        super().__init__(
            EmbeddingSpec(name, wanted),
            texts_per_request=_TEXTS_PER_REQUEST_OF.get(self._provider, _TEXTS_PER_REQUEST),
            bytes_per_request=_BYTES_PER_REQUEST,
            timeout_s=timeout_s,
            attempts=attempts,
            backoff_s=backoff_s,
        )
        self._given = None if isinstance(model, str) else model
        self._arguments = {"api_key": api_key, "base_url": base_url}
        # Models and servers of one size only refuse the field, so it is sent where it changes something.
        self._settings: EmbeddingSettings = {"dimensions": wanted} if made not in {None, wanted} else {}
        self._model: EmbeddingModel | None = None
        self._connection: Provider[Any] | None = None

    async def _connect(self) -> None:
        # Importing a provider's SDK takes up to a second, and a client reads certificates from disk.
        self._model = self._given or await asyncio.to_thread(self._make_model)
        if self._connection is not None:
            await self._connection.__aenter__()

    def _make_model(self) -> EmbeddingModel:
        try:
            from pydantic_ai.embeddings import infer_embedding_model
            from pydantic_ai.exceptions import UserError
        except ImportError as error:
            raise EmbedderMissing(
                f"embedder {self.spec.model!r} needs an extra: pip install 'echoic[hosted]'"
            ) from error
        try:
            return infer_embedding_model(self.spec.model, provider_factory=self._make_provider)
        except ImportError as error:
            raise EmbedderMissing(
                f"embedder {self.spec.model!r} needs its provider's package: "
                f"pip install 'pydantic-ai-slim[{self._provider}]'"
            ) from error
        except EchoicError:
            raise
        # Other errors of PydanticAI and of the provider's SDK: a key or an address is missing.
        except Exception as error:
            reason = str(error) if isinstance(error, UserError) else type(error).__name__
            raise EmbedderUnavailable(
                f"{self.spec.model!r} cannot be set up: pass api_key= (or set {self._key}), and base_url= "
                f"where the provider has no address of its own. It says: {reason}"
            ) from error

    def _make_provider(self, name: str) -> Provider[Any]:
        self._connection = self._infer_provider(name)
        if hasattr(self._connection.client, "max_retries"):
            # The SDK's retries would multiply ours, and hide the pauses that the provider asks for.
            self._connection.client.max_retries = 0
        return self._connection

    def _infer_provider(self, name: str) -> Provider[Any]:
        from pydantic_ai.providers import infer_provider, infer_provider_class

        given = {argument: value for argument, value in self._arguments.items() if value is not None}
        if not given:
            return infer_provider(name)
        try:
            provider: Provider[Any] = infer_provider_class(name)(**given)
        except TypeError as error:
            raise InvalidInput(f"provider {name!r} does not take {' and '.join(given)}") from error
        return provider

    @property
    def _key(self) -> str:
        return KEYS.get(self._provider, "the provider's key")

    async def _disconnect(self) -> None:
        self._model = None
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.__aexit__(None, None, None)

    async def _request(self, texts: Sequence[str], kind: Kind) -> Vectors:
        from pydantic_ai.exceptions import ModelAPIError

        if self._model is None:
            raise NotOpen(f"embedder {self.spec.model!r} was closed while it was at work; open it again")
        most = _BYTES_PER_TEXT.get(self._provider)
        sent = [cut_bytes(text, most) for text in texts] if most else list(texts)
        try:
            result = await self._model.embed(sent, input_type=kind, settings=self._settings)
        except ModelAPIError as error:
            # Not chained: what the provider answered may quote a text or the key.
            raise self._meaning(error) from None
        # The rest are errors of the provider's SDK, which PydanticAI lets through: connections that broke,
        # answers that could not be read.
        except Exception as error:  # noqa: BLE001
            raise TransientError(f"the request failed ({type(error).__name__})") from None
        return _array(result.embeddings)

    def _meaning(self, error: ModelAPIError) -> TransientError | EchoicError:
        from pydantic_ai import exceptions

        code = error.provider_error_code
        status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else None
        if isinstance(error, exceptions.ModelQuotaExceededError):
            status = 402
        elif isinstance(error, exceptions.ModelAuthenticationError):
            status = 401
        elif isinstance(error, exceptions.ModelRequestRejectedError):
            status = status or 400  # providers that speak gRPC have none
        if status is None:
            return TransientError(f"the connection failed ({type(error).__name__})", error.retry_after)
        key = f"api_key= or {self._key}"
        return refusal(self.spec.model, status, key=key, code=code, retry_after_s=error.retry_after)


def canonical(model: str) -> str:
    """`model` as "provider:model" with the provider's current name, or InvalidInput."""
    provider, _, name = model.partition(":")
    provider = ALIASES.get(provider, provider)
    if provider not in KEYS or not name:
        raise InvalidInput(
            f"unknown hosted model {model!r}: write provider:model, the provider one of {', '.join(KEYS)}"
        )
    return f"{provider}:{name}"


def cut_bytes(text: str, most: int) -> str:
    """The longest beginning of `text` with at most `most` bytes of UTF-8."""
    if len(text) * 4 <= most:
        return text
    return text.encode()[:most].decode(errors="ignore")


def _array(embeddings: Sequence[Sequence[float]]) -> Vectors:
    try:
        found = np.asarray(embeddings, np.float32)
    except (ValueError, TypeError, OverflowError):  # rows of different lengths, or what are no numbers
        raise TransientError("its answer could not be read") from None
    return found if found.ndim == 2 else np.empty((0, 0), np.float32)
