"""Traces and metrics of memory at work, through OpenTelemetry's API. Without an SDK all of it does nothing.

Spans and metrics say what was done, how it ended, how long it took and how much it was. They hold no text, no
key, no query and no message of an error. A user appears as a pseudonym, in spans alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Literal

from opentelemetry import metrics, trace
from opentelemetry.trace import Status, StatusCode

from echoic.errors import InvalidInput, WriteConflict
from echoic.types import Scope

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from echoic.memory.distilling.reconcile import Distilled

OperationName = Literal["recall", "write", "embed", "distil", "erase"]

_BOUNDARIES: Final = (
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
)  # fmt: skip
"""Of durations, in seconds: a recall takes milliseconds, a model tens of seconds."""
_MIN_KEY_BYTES: Final = 16
_EVERYONE: Final = "everyone"


class OperationSpan:
    """One operation under way. What is set on it is recorded when the operation ends."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.outcome = "ok"
        """How it ended: "ok", a recall's outcome, "conflict", "failed", "cancelled" or "error"."""
        self.error = ""
        """The kind of what went wrong, such as "StoreUnavailable"."""
        self.attributes: Mapping[str, str | float] = {}
        """Attributes of the span, each prefixed "echoic.". Nothing anybody said."""
        self.count = 0
        """Hits found, changes written, texts embedded or records erased."""

    @property
    def duration_ms(self) -> float:
        """How long it has taken so far."""
        return (time.perf_counter() - self._started) * 1000


class Telemetry:
    """Makes the spans and metrics of one service.

    Args:
        tracer_provider: where spans go; None: the global one.
        meter_provider: where metrics go; None: the global one.
        pseudonym_key: keys the hash that stands for a user, 16 bytes at least, so that traces of several
            processes name a user alike. None: a random one, which nobody can undo once the process has ended.

    Raises:
        InvalidInput: the key is too short to hide anything.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        pseudonym_key: bytes | None = None,
    ) -> None:
        if pseudonym_key is not None and len(pseudonym_key) < _MIN_KEY_BYTES:
            raise InvalidInput(
                f"pseudonym_key has {len(pseudonym_key)} bytes, {_MIN_KEY_BYTES} at least: "
                "names of users can be guessed and tried"
            )
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
        self._counters = {
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
        """Trace and time what happens inside. What is raised passes through, noted by its kind alone."""
        with self._tracer.start_as_current_span(
            # an exception's message may hold what was said, so OpenTelemetry does not get to see it
            f"echoic.{name}",
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            if scope is not None and span.is_recording():
                span.set_attribute("echoic.deployment", scope.deployment)
                span.set_attribute("echoic.user", self.pseudonym(scope))
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
        self._duration.record(done.duration_ms / 1000, about)
        if not done.error and (counter := self._counters.get(name)) is not None:
            kind = done.attributes.get("kind")  # a "document" or a "query"
            counter.add(done.count, {} if kind is None else {"echoic.kind": kind})
        if span.is_recording():
            span.set_attributes(about | {f"echoic.{key}": value for key, value in done.attributes.items()})
            if done.outcome in {"error", "failed"}:
                span.set_status(Status(StatusCode.ERROR, done.error))

    def pseudonym(self, scope: Scope) -> str:
        """What stands for the user of `scope` in a span: 64 bits of a keyed hash, 16 hexadecimal digits."""
        if scope.user is None:
            return _EVERYONE
        named = f"{scope.deployment}\0{scope.user}".encode()
        return blake2b(named, digest_size=8, key=self._key).hexdigest()

    def distilled(self, reader: str, changed: Distilled) -> None:
        """Count what a run of distilling changed."""
        counts = {
            "added": len(changed.kept),
            "superseded": len(changed.superseded),
            "confirmed": len(changed.confirmed),
            "retracted": len(changed.retracted),
        }
        for change, count in counts.items():
            if count:
                self._memories.add(count, {"echoic.change": change, "echoic.reader": reader})


def _ended(error: BaseException) -> str:
    if isinstance(error, WriteConflict):
        return "conflict"  # somebody wrote first; whoever tried looks again
    if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
        return "cancelled"
    return "error"
