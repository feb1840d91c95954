"""Embedders behind a network: batches, time-outs, retries, checked answers; and Voyage AI's, over HTTP.

A request that may succeed later is repeated, with jittered exponential back-off (Brooker 2015, "full
jitter"), so that many callers do not retry in step. A request that can never succeed is not.

Voyage: https://docs.voyageai.com/reference/embeddings-api, read in November 2026, without the provider's SDK
(59 packages) for a single request. MongoDB serves the same interface elsewhere: pass its address as
`base_url`.
"""

from __future__ import annotations

import asyncio
import base64
import math
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from echoic.embedding.base import Kind, Vectors, checked_texts, unit
from echoic.errors import EchoicError, EmbedderMissing, EmbedderUnavailable, InvalidInput, NotOpen
from echoic.types import EmbeddingSpec

if TYPE_CHECKING:
    from httpx2 import URL, AsyncClient, Response

LONGEST_WAIT_S = 30.0
"""If a provider asks for a longer pause, the request fails at once, so that the caller can decide."""


class TransientError(Exception):
    """The request failed but may succeed later. The message contains no text."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        """`retry_after_s` is the pause the provider asked for, if any."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RemoteEmbedder(ABC):
    """An embedder with a remote model. A subclass connects and sends one request; the rest is here."""

    semantic = True

    def __init__(
        self,
        spec: EmbeddingSpec,
        *,
        texts_per_request: int,
        bytes_per_request: int,
        timeout_s: float,
        attempts: int,
        backoff_s: float,
    ) -> None:
        """Connects to nothing yet.

        Raises:
            InvalidInput: a number is out of range.
        """
        if timeout_s <= 0 or attempts < 1 or backoff_s < 0:
            raise InvalidInput(
                f"timeout_s must be above 0, attempts at least 1 and backoff_s not negative, not "
                f"{timeout_s!r}, {attempts!r} and {backoff_s!r}"
            )
        self.spec = spec
        self._texts_per_request = texts_per_request
        self._bytes_per_request = bytes_per_request
        self._timeout_s = timeout_s
        self._attempts = attempts
        self._backoff_s = backoff_s
        self._open = False
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Create the client. The provider is not contacted: a call must be able to start while it is down.

        Raises:
            EmbedderMissing: packages are not installed.
            EmbedderUnavailable: there is no key.
            InvalidInput: the provider is unknown.
        """
        async with self._opening:  # of two concurrent calls the second finds it done
            if not self._open:
                await self._connect()
                self._open = True

    async def aclose(self) -> None:
        """Close the connections."""
        async with self._opening:
            if self._open:
                self._open = False
                await self._disconnect()

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Vectors of `texts`: float32 [len(texts), dimensions], unit length, in order.

        Raises:
            InvalidInput: a text is blank or cannot be encoded, or the provider rejects the request.
            NotOpen: before `open()` or after `aclose()`.
            EmbedderUnavailable: after retries, or at once if they cannot help; nothing was embedded.
        """
        checked = checked_texts(texts, kind, blank=False)
        if not self._open:
            raise NotOpen(f"embedder {self.spec.model!r} is not open: await its open() first")
        if not checked:
            return np.empty((0, self.spec.dimensions), np.float32)
        answers = [await self._patiently(batch, kind) for batch in self._batches(checked)]
        return np.concatenate(answers)

    @abstractmethod
    async def _connect(self) -> None:
        """Create the client; raises as `open`."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Close the client."""

    @abstractmethod
    async def _request(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """One request: float32 [len(texts), dimensions] in order, of any length.

        Raises TransientError if it may succeed later, else EchoicError.
        """

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for text in texts:
            length = len(text.encode())
            if batch and (len(batch) == self._texts_per_request or size + length > self._bytes_per_request):
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += length
        yield batch

    async def _patiently(self, texts: Sequence[str], kind: Kind) -> Vectors:
        for attempt in range(1, self._attempts + 1):
            try:
                return await self._once(texts, kind)
            except TransientError as error:
                pause_s = self._pause_s(attempt, error)
                if attempt == self._attempts or pause_s > LONGEST_WAIT_S:
                    raise EmbedderUnavailable(
                        f"{self.spec.model!r} could not be reached: {error} (attempt {attempt} of "
                        f"{self._attempts}). Nothing was embedded; try again later."
                    ) from error
            await asyncio.sleep(pause_s)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _pause_s(self, attempt: int, error: TransientError) -> float:
        ceiling = min(self._backoff_s * 2 ** (attempt - 1), LONGEST_WAIT_S)
        jittered = random.uniform(0, ceiling)  # noqa: S311 - spreads callers in time, guards nothing
        # The provider's pause is a minimum; callers that it paused together should not retry together.
        return jittered if error.retry_after_s is None else error.retry_after_s + jittered

    async def _once(self, texts: Sequence[str], kind: Kind) -> Vectors:
        try:
            async with asyncio.timeout(self._timeout_s):
                vectors = await self._request(texts, kind)
        except TimeoutError:
            raise TransientError(f"no answer within {self._timeout_s:g} s") from None
        return self._checked(vectors, len(texts))

    def _checked(self, vectors: Vectors, count: int) -> Vectors:
        rows, dimensions = vectors.shape
        if rows != count:
            raise TransientError(f"it answered with {rows} vectors for {count} texts")
        if dimensions != self.spec.dimensions:
            model, wanted = self.spec.model, self.spec.dimensions
            raise InvalidInput(
                f"{model!r} makes {dimensions} dimensions where {wanted} were expected: "
                f'pass dimensions={dimensions}, or name it "{model}?dimensions={dimensions}"'
            )
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise TransientError("it answered with a vector that has no direction")
        return unit(vectors)


def checked_dimensions(model: str, dimensions: int | None) -> int:
    """`dimensions`, if they are known and positive; raises InvalidInput otherwise."""
    if dimensions is None:
        raise InvalidInput(
            f"the dimensions of {model!r} are not known here: pass dimensions=, or name it "
            f'"{model}?dimensions=768" with the number its provider documents'
        )
    if dimensions < 1:
        raise InvalidInput(f"dimensions must be at least 1, not {dimensions!r}")
    return dimensions


def refusal(
    model: str, status: int, *, key: str, code: str | None = None, retry_after_s: float | None = None
) -> TransientError | EchoicError:
    """The exception for an HTTP error status (400 or above).

    The response body is left out, since it may quote a text or the key. `key` names the source of the key,
    and `code` is the provider's own error code.
    """
    what = f"status {status}" + (f", {code}" if code else "")
    if status in {401, 403}:
        return EmbedderUnavailable(
            f"{model!r} refuses the key ({what}): check {key}, and that it may use this model from here"
        )
    if status == 402:
        return EmbedderUnavailable(f"{model!r} has no credit left ({what}): top up the account behind {key}")
    if status in {408, 409, 425, 429} or status >= 500:
        return TransientError(f"it answered with {what}", retry_after_s)
    if status == 404:
        return InvalidInput(f"the provider knows no model {model!r} ({what}): check its name and base_url")
    return InvalidInput(
        f"{model!r} refuses the request as it is ({what}): a text may be too long for it, or it may not make "
        "these dimensions"
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The pause in a Retry-After header, in seconds (RFC 9110, 10.2.3); None without one."""
    stated = headers.get("retry-after")
    if stated is None:
        return None
    try:
        seconds = float(stated)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(stated) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):  # not a date, or one without a zone
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


BASE_URL = "https://api.voyageai.com/v1"
KEY_VARIABLE = "VOYAGE_API_KEY"
KEY_VARIABLES = (KEY_VARIABLE, "VOYAGE_AI_API_KEY")
"""Environment variables of the key, in this order; the second is that of MongoDB's voice memory demo."""

_CHOICES = (256, 512, 1024, 2048)
DIMENSIONS: dict[str, tuple[int, tuple[int, ...]]] = {
    "voyage-4-large": (1024, _CHOICES),
    "voyage-4": (1024, _CHOICES),
    "voyage-4-lite": (1024, _CHOICES),
    "voyage-3-large": (1024, _CHOICES),
    "voyage-3.5": (1024, _CHOICES),
    "voyage-3.5-lite": (1024, _CHOICES),
    "voyage-code-3": (1024, _CHOICES),
    "voyage-finance-2": (1024, ()),
    "voyage-law-2": (1024, ()),
    "voyage-code-2": (1536, ()),
}
"""The dimensions of each model: its default, then those it makes on request."""

# The service takes 1,000 texts and, depending on the model, 120,000 to 1,000,000 tokens. Smaller requests
# cost little and lose little when they fail.
_TEXTS_PER_REQUEST = 128
_BYTES_PER_REQUEST = 120_000


class VoyageEmbedder(RemoteEmbedder):
    """A Voyage model. The service cuts texts longer than its context (32,000 tokens; some models 16,000)."""

    def __init__(
        self,
        model: str = "voyage-3.5-lite",
        *,
        dimensions: int | None = None,
        api_key: str | None = None,
        base_url: str = BASE_URL,
        timeout_s: float = 10.0,
        attempts: int = 4,
        backoff_s: float = 0.25,
    ) -> None:
        """Connects to nothing yet.

        Args:
            model: its name at Voyage.
            dimensions: dimensions of the vectors; None is the model's default. Required for models not in
                `DIMENSIONS`.
            api_key: None reads VOYAGE_API_KEY, else VOYAGE_AI_API_KEY, on opening.
            base_url: address of the service, without "/embeddings".
            timeout_s: time limit of one request.
            attempts: attempts of a request.
            backoff_s: the longest pause after the first failure; it doubles with each further one.

        Raises:
            InvalidInput: the model does not make these dimensions, or they are required and missing.
        """
        made, choices = DIMENSIONS.get(model, (None, None))
        wanted = checked_dimensions(model, dimensions if dimensions is not None else made)
        if choices is not None and wanted != made and wanted not in choices:
            offered = ", ".join(map(str, choices or (made,)))
            raise InvalidInput(f"{model!r} does not make {wanted} dimensions: use one of {offered}")
        super().__init__(
            EmbeddingSpec(f"voyageai:{model}", wanted),
            texts_per_request=_TEXTS_PER_REQUEST,
            bytes_per_request=_BYTES_PER_REQUEST,
            timeout_s=timeout_s,
            attempts=attempts,
            backoff_s=backoff_s,
        )
        self._request_fields: dict[str, Any] = {
            "model": model,
            "truncation": True,
            "encoding_format": "base64",
        }
        if choices != ():  # models with a single size refuse the field
            self._request_fields["output_dimension"] = wanted
        self._api_key = api_key
        self._base_url = base_url
        self._client: AsyncClient | None = None

    async def _connect(self) -> None:
        # Making a client reads the certificates from disk.
        self._client = await asyncio.to_thread(self._make_client)

    def _make_client(self) -> AsyncClient:
        try:
            import httpx2
        except ImportError as error:
            raise EmbedderMissing(
                f"embedder {self.spec.model!r} needs an extra: pip install 'echoic[hosted]'"
            ) from error
        key = self._key()
        return httpx2.AsyncClient(
            base_url=self._address(),
            headers={"Authorization": f"Bearer {key}"},
            timeout=None,  # RemoteEmbedder limits the whole request
        )

    def _key(self) -> str:
        given = [self._api_key or "", *(os.environ.get(name, "") for name in KEY_VARIABLES)]
        key = next(filter(None, map(str.strip, given)), "")
        if not key:
            raise EmbedderUnavailable(
                f"{self.spec.model!r} needs a key: pass api_key= or set {' or '.join(KEY_VARIABLES)}"
            )
        if not (key.isascii() and key.isprintable()):  # the HTTP client would quote it in its error
            raise EmbedderUnavailable(
                f"the key for {self.spec.model!r} holds characters that no key has: check api_key= or "
                f"{' and '.join(KEY_VARIABLES)}"
            )
        return key

    def _address(self) -> URL:
        import httpx2

        try:
            address = httpx2.URL(self._base_url)
        except httpx2.InvalidURL:
            address = httpx2.URL()
        if address.scheme not in {"http", "https"} or not address.host:
            raise InvalidInput(f"base_url is not an address: {self._base_url!r}. Write it like {BASE_URL!r}.")
        return address

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _request(self, texts: Sequence[str], kind: Kind) -> Vectors:
        import httpx2

        if self._client is None:
            raise NotOpen(f"embedder {self.spec.model!r} was closed while it was at work; open it again")
        body = {**self._request_fields, "input": list(texts), "input_type": kind}
        try:
            response = await self._client.post("/embeddings", json=body)
        except httpx2.RequestError as error:
            raise TransientError(f"the connection failed ({type(error).__name__})") from error
        if response.status_code >= 400:
            raise refusal(
                self.spec.model,
                response.status_code,
                key=f"api_key= or {' or '.join(KEY_VARIABLES)}",
                retry_after_s=retry_after_s(response.headers),
            )
        return _decoded(response)


def _decoded(response: Response) -> Vectors:
    try:
        items = sorted(response.json()["data"], key=lambda item: int(item["index"]))
        rows = [np.frombuffer(base64.b64decode(item["embedding"], validate=True), "<f4") for item in items]
        return np.stack(rows) if rows else np.empty((0, 0), np.float32)
    except (ValueError, KeyError, TypeError):
        # The cause would carry the answer.
        raise TransientError("its answer could not be read") from None
