"""Voyage embeddings over HTTP, without the provider's SDK (59 packages) for the one request that is needed.

The request and its limits: https://docs.voyageai.com/reference/embeddings-api, read in November 2026. MongoDB
serves the same interface elsewhere: give its address as `base_url`.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from echoic.embedding.base import EmbeddingSpec, Kind, Vectors
from echoic.embedding.remote import (
    RemoteEmbedder,
    TransientError,
    checked_dimensions,
    refusal,
    retry_after_s,
)
from echoic.errors import EmbedderMissing, EmbedderUnavailable, InvalidInput, NotOpen

if TYPE_CHECKING:
    from httpx2 import URL, AsyncClient, Response

BASE_URL = "https://api.voyageai.com/v1"
KEY_VARIABLE = "VOYAGE_API_KEY"
KEY_VARIABLES = (KEY_VARIABLE, "VOYAGE_AI_API_KEY")
"""Where a key is looked for, in this order; the second is what MongoDB's voice memory demo calls it."""

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
"""The dimensions that each model makes, and those it makes on request."""

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
        """Nothing is contacted.

        Args:
            model: its name at Voyage.
            dimensions: of the vectors; None is what the model makes by itself. Needed for models not in
                `DIMENSIONS`.
            api_key: None reads VOYAGE_API_KEY, else VOYAGE_AI_API_KEY, when it is opened.
            base_url: of the service, without "/embeddings".
            timeout_s: of one request.
            attempts: how often a request is made before it is given up.
            backoff_s: the longest pause after the first failure; it doubles with each further one.

        Raises:
            InvalidInput: dimensions that the model does not make, or must be told and were not.
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
        if choices != ():  # models of one size refuse the field
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
            timeout=None,  # the whole request has one, in RemoteEmbedder
        )

    def _key(self) -> str:
        given = [self._api_key or "", *(os.environ.get(name, "") for name in KEY_VARIABLES)]
        key = next(filter(None, map(str.strip, given)), "")
        if not key:
            raise EmbedderUnavailable(
                f"{self.spec.model!r} needs a key: pass api_key= or set {' or '.join(KEY_VARIABLES)}"
            )
        if not (key.isascii() and key.isprintable()):  # the HTTP client would quote it in its complaint
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
            raise InvalidInput(f"base_url is no address: {self._base_url!r}. Write it like {BASE_URL!r}.")
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
