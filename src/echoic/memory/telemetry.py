"""Telemetry: traces and metrics through OpenTelemetry's API. Without an SDK it does nothing.

Memory operations follow OpenTelemetry's semantic conventions for generative AI (`gen_ai.memory.*`): names of
spans, attributes and units. Names that the conventions lack begin with "echoic.".

Spans and metrics record the operation, its outcome, duration and size. They contain no text, key, query or
error message, unless content capture is on. A user appears as a pseudonym, in spans only.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from opentelemetry import metrics, trace
from opentelemetry.trace import Status, StatusCode

from echoic.embedding.base import Embedded, Embedder, Kind, Vectors, embedded
from echoic.errors import InvalidInput, WriteConflict
from echoic.types import Scope

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from echoic.memory.extraction.reconciliation import Distilled

OperationName = Literal["recall", "set", "remember", "delete", "write", "embed", "distil", "erase"]

_CONVENTIONAL: Final[Mapping[OperationName, str]] = {
    "recall": "search_memory",
    "set": "upsert_memory",
    "remember": "create_memory",
    "delete": "delete_memory",
    "distil": "upsert_memory",
    "erase": "delete_memory",
}
"""`gen_ai.operation.name` of operations that the conventions name; it is the span's name as well."""
_CONVENTIONAL_BOUNDARIES: Final = (
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
)  # fmt: skip
"""Buckets of `gen_ai.client.operation.duration`, as the conventions advise."""

_BOUNDARIES: Final = (
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
)  # fmt: skip
"""Buckets of durations, in seconds: a recall takes milliseconds, a model tens of seconds."""
_MIN_KEY_BYTES: Final = 16
_EVERYONE: Final = "everyone"


class OperationSpan:
    """An operation in progress. Its fields are recorded when the operation ends."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.outcome = "ok"
        """How it ended: "ok", a recall's outcome, "conflict", "failed", "cancelled" or "error"."""
        self.error = ""
        """The kind of the error, such as "StoreUnavailable"."""
        self.count = 0
        """How many memories it is about; changes for a write, texts for an embedding."""
        self.record: str | None = None
        """Id or key of the one memory it is about, as a hash unless content is captured."""
        self.attributes: Mapping[str, str | float] = {}
        """Attributes of the span, each prefixed "echoic.": our own counts and names, nothing that was said.
        """
        self.content: Mapping[str, str] = {}
        """Attributes with memories and questions; set only if content is captured."""

    @property
    def duration_ms(self) -> float:
        """Milliseconds since it started."""
        return (time.perf_counter() - self._started) * 1000


class Telemetry:
    """Creates the spans and metrics of one service.

    Args:
        tracer_provider: receives the spans; None for the global one.
        meter_provider: receives the metrics; None for the global one.
        pseudonym_key: key of the hash that stands for a user, at least 16 bytes; share it between processes
            to get the same pseudonyms. None: a random one, which nobody can reverse after the process ended.
        capture_content: whether spans also contain questions, and memories with their keys and ids. Anybody
            who reads the traces can then read what people said.

    Raises:
        InvalidInput: the key is too short.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        pseudonym_key: bytes | None = None,
        capture_content: bool = False,
    ) -> None:
        if pseudonym_key is not None and len(pseudonym_key) < _MIN_KEY_BYTES:
            raise InvalidInput(
                f"pseudonym_key has {len(pseudonym_key)} bytes, {_MIN_KEY_BYTES} at least: "
                "names of users can be guessed and tried"
            )
        self.captures_content = capture_content
        # blake2b takes keys of up to 64 bytes; a longer one counts in full by its hash
        self._key = blake2b(pseudonym_key or secrets.token_bytes(32), digest_size=32).digest()
        self._tracer = trace.get_tracer("echoic", tracer_provider=tracer_provider)
        meter = metrics.get_meter("echoic", meter_provider=meter_provider)
        self._duration = meter.create_histogram(
            "echoic.operation.duration",
            "s",
            "How long recalls, writes, embeddings, distillings and erasures take.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        self._conventional = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "GenAI operation duration.",
            explicit_bucket_boundaries_advisory=_CONVENTIONAL_BOUNDARIES,
        )
        self._counters: Mapping[OperationName, metrics.Counter] = {
            "recall": meter.create_counter("echoic.recall.hits", "{hit}", "What recalls found."),
            "write": meter.create_counter("echoic.write.changes", "{change}", "Changes made durable."),
            "embed": meter.create_counter("echoic.embed.texts", "{text}", "Texts given a vector."),
            "erase": meter.create_counter("echoic.erase.records", "{record}", "Records destroyed."),
        }
        self._memories = meter.create_counter(
            "echoic.distil.memories", "{memory}", "What distilling changed."
        )

    @contextlib.contextmanager
    def operation(self, name: OperationName, scope: Scope | None = None) -> Iterator[OperationSpan]:
        """Trace and time the block. Exceptions pass through; only their kind is recorded."""
        conventional = _CONVENTIONAL.get(name)
        span = self._tracer.start_span(
            conventional or f"echoic.{name}",
            attributes={"gen_ai.operation.name": conventional}
            if conventional
            else None,  # set here, where samplers see it
        )
        # without an SDK it is current already, and entering it would cost as much as the rest
        entered = contextlib.nullcontext() if span is trace.get_current_span() else _entered(span)
        with entered:
            if scope is not None and span.is_recording():
                user = self.pseudonym(scope)
                span.set_attributes({"echoic.deployment": scope.deployment, "echoic.user": user})
                if conventional:
                    span.set_attribute("gen_ai.memory.store.id", f"{scope.deployment}/{user}")
            doing = OperationSpan()
            try:
                yield doing
            except BaseException as error:
                doing.outcome, doing.error = _ended(error), type(error).__name__
                raise
            finally:
                self._end(name, doing, span)

    def _end(self, name: OperationName, done: OperationSpan, span: Span) -> None:
        about: dict[str, str] = {"echoic.operation": name, "echoic.outcome": done.outcome}
        if done.error:
            about["error.type"] = done.error
        elif (counter := self._counters.get(name)) is not None:
            kind = done.attributes.get("kind")  # a "document" or a "query"
            counter.add(done.count, {} if kind is None else {"echoic.kind": kind})
        seconds = done.duration_ms / 1000
        self._duration.record(seconds, about)
        conventional = _CONVENTIONAL.get(name)
        if conventional:
            error = {"error.type": done.error} if done.error else {}
            self._conventional.record(seconds, {"gen_ai.operation.name": conventional, **error})
        if span.is_recording():
            span.set_attributes(about | {f"echoic.{key}": value for key, value in done.attributes.items()})
            if conventional and not done.error:
                span.set_attributes({"gen_ai.memory.record.count": done.count, **done.content})
                if done.record is not None:
                    shown = done.record if self.captures_content else self.hidden(done.record)
                    span.set_attribute("gen_ai.memory.record.id", shown)
            if done.outcome in {"error", "failed"}:
                span.set_status(Status(StatusCode.ERROR, done.error))

    def pseudonym(self, scope: Scope) -> str:
        """The pseudonym of the user of `scope` in a span: 64 bits of a keyed hash, 16 hexadecimal digits."""
        if scope.user is None:
            return _EVERYONE
        return self.hidden(f"{scope.deployment}\0{scope.user}")

    def hidden(self, name: str) -> str:
        """The pseudonym of `name` in a span: 64 bits of a keyed hash."""
        return blake2b(name.encode(errors="surrogatepass"), digest_size=8, key=self._key).hexdigest()

    def distilled(self, reader: str, changed: Distilled) -> None:
        """Count the changes of a distillation run."""
        counts = {
            "added": len(changed.kept),
            "superseded": len(changed.superseded),
            "confirmed": len(changed.confirmed),
            "retracted": len(changed.retracted),
        }
        for change, count in counts.items():
            if count:
                self._memories.add(count, {"echoic.change": change, "echoic.reader": reader})


class ObservedEmbedder:
    """An embedder whose work is traced and counted."""

    def __init__(self, embedder: Embedder, telemetry: Telemetry) -> None:
        self._observed = embedder
        self._telemetry = telemetry
        self._pieces = getattr(embedder, "embed_pieces", None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._observed, name)

    async def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        return (await embedded(cast("Embedder", self), texts, kind)).vectors

    async def embed_pieces(self, texts: Sequence[str], kind: Kind) -> Embedded:
        """Embed as the embedder does; without pieces if it has none."""
        with self._telemetry.operation("embed") as doing:
            doing.count = len(texts)
            doing.attributes = {"kind": kind, "texts": doing.count}
            if self._pieces is None:
                return Embedded(await self._observed.embed(texts, kind))
            return cast("Embedded", await self._pieces(texts, kind))


def _entered(span: Span) -> AbstractContextManager[object]:
    """Make `span` current. Exceptions are not passed to it: their messages may contain user data."""
    return trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False)


def content_of(records: Iterable[Mapping[str, object]], query: str | None = None) -> dict[str, str]:
    """`OperationSpan.content` from memories ("content", "id", "score") and a masked query."""
    told = {"gen_ai.memory.records": json.dumps([*records], ensure_ascii=False)}
    return told if query is None else told | {"gen_ai.memory.query.text": query}


def _ended(error: BaseException) -> str:
    if isinstance(error, WriteConflict):
        return "conflict"  # another writer was first; the caller retries
    if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
        return "cancelled"
    return "error"
