"""What embedders behind a network share: batches, time-outs, retries, checked answers. It knows no protocol.

A request that may succeed later is repeated, with jittered exponential back-off (Brooker 2015, "full
jitter"), so that many callers do not return in step. A request that can never succeed is not.
"""

from __future__ import annotations

import asyncio
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import numpy as np

from echoic.embedding.base import EmbeddingSpec, Kind, Vectors, checked_texts, unit
from echoic.errors import EchoicError, EmbedderUnavailable, InvalidInput, NotOpen

LONGEST_WAIT_S = 30.0
"""A provider that asks for a longer pause is given up at once: the caller can plan, we can only sleep."""


class TransientError(Exception):
    """This request failed, but the same one may succeed later. The message holds nothing of the texts."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        """`retry_after_s` is the pause the provider asked for, if it did."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RemoteEmbedder(ABC):
    """An embedder whose model is elsewhere. A subclass connects and sends one request; the rest is here."""

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
        """Nothing is contacted.

        Args:
            spec: of the model.
            texts_per_request: at most so many texts travel together.
            bytes_per_request: at most so much UTF-8 travels together, unless a single text is larger. A token
                is at least one byte, so this also bounds the tokens.
            timeout_s: of one request.
            attempts: how often a request is made before it is given up.
            backoff_s: the longest pause after the first failure; it doubles with each further one.

        Raises:
            InvalidInput: a number makes no sense.
        """
        if timeout_s <= 0 or attempts < 1 or backoff_s < 0:
            raise InvalidInput(
                f"timeout_s must be above 0, attempts at least 1 and backoff_s not negative, not "
                f"{timeout_s!r}, {attempts!r} and {backoff_s!r}"
            )
        self._spec = spec
        self._texts_per_request = texts_per_request
        self._bytes_per_request = bytes_per_request
        self._timeout_s = timeout_s
        self._attempts = attempts
        self._backoff_s = backoff_s
        self._open = False
        self._opening = asyncio.Lock()

    @property
    def spec(self) -> EmbeddingSpec:
        """Provider, model and dimensions."""
        return self._spec

    @property
    def semantic(self) -> bool:
        """True: it knows meaning."""
        return True

    async def open(self) -> None:
        """Prepare the client. The provider is not contacted: a call must be able to start while it is down.

        Raises:
            EmbedderMissing: packages are not installed.
            EmbedderUnavailable: there is no key.
            InvalidInput: the provider is unknown.
        """
        async with self._opening:  # of two that open at once the second finds it done
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
            InvalidInput: a text is blank or cannot be encoded, or the provider refuses the request as it is.
            NotOpen: before `open()` or after `aclose()`.
            EmbedderUnavailable: after retries, or at once where none can help; nothing was embedded.
        """
        checked = checked_texts(texts, kind, blank=False)
        if not self._open:
            raise NotOpen(f"embedder {self._spec.model!r} is not open: await its open() first")
        if not checked:
            return np.empty((0, self._spec.dimensions), np.float32)
        answers = [await self._patiently(batch, kind) for batch in self._batches(checked)]
        return np.concatenate(answers)

    @abstractmethod
    async def _connect(self) -> None:
        """Make the client. Raises as `open` says."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Close the client."""

    @abstractmethod
    async def _request(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """One request: float32 [len(texts), dimensions] in order, of any length.

        Raises:
            TransientError: it may succeed later.
            EchoicError: it cannot.
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
                        f"{self._spec.model!r} could not be reached: {error} (attempt {attempt} of "
                        f"{self._attempts}). Nothing was embedded; try again later."
                    ) from error
            await asyncio.sleep(pause_s)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _pause_s(self, attempt: int, error: TransientError) -> float:
        ceiling = min(self._backoff_s * 2 ** (attempt - 1), LONGEST_WAIT_S)
        jittered = random.uniform(0, ceiling)  # noqa: S311 - spreads callers in time, guards nothing
        # What the provider asks for is a minimum; those it asked together should not all return together.
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
        if dimensions != self._spec.dimensions:
            model, wanted = self._spec.model, self._spec.dimensions
            raise InvalidInput(
                f"{model!r} makes {dimensions} dimensions where {wanted} were expected: "
                f'pass dimensions={dimensions}, or name it "{model}?dimensions={dimensions}"'
            )
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise TransientError("it answered with a vector that has no direction")
        return unit(vectors)


def checked_dimensions(model: str, dimensions: int | None) -> int:
    """`dimensions`, which must be known and positive.

    Raises:
        InvalidInput: they are not.
    """
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
    """What an HTTP error status means. The body of the answer is left out: it may quote a text or the key.

    Args:
        model: which model was asked.
        status: HTTP status, 400 or above.
        key: where the key comes from, such as "VOYAGE_API_KEY".
        code: the provider's own short code for the error, if it gave one.
        retry_after_s: the pause it asked for.
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
    """The pause that a Retry-After header asks for, in seconds (RFC 9110, 10.2.3); None without one."""
    stated = headers.get("retry-after")
    if stated is None:
        return None
    try:
        seconds = float(stated)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(stated) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):  # no date, or one without a zone
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
