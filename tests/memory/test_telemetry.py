"""What traces and metrics say of memory at work, read back through the SDK's own exporters in memory."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import echoic
from echoic.embedding import LexicalEmbedder
from echoic.errors import EmbedderUnavailable, InvalidInput, StoreUnavailable, WriteConflict
from echoic.memory.service import MemoryService
from echoic.memory.telemetry import Telemetry
from echoic.stores import store_from
from echoic.stores.base import Put, Record
from echoic.types import Scope, Turn


class Observatory:
    """Everything that was exported."""

    def __init__(self):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider(resource=Resource.get_empty())
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader], resource=Resource.get_empty())

    def telemetry(self, **options):
        return Telemetry(self.tracers, self.meters, **options)

    def spans(self, name):
        """The spans of one kind of operation of Echoic's, whatever the conventions call it."""
        done = self.exporter.get_finished_spans()
        return [span for span in done if span.attributes["echoic.operation"] == name]

    def points(self, name):
        """Data points of a metric, with their attributes."""
        data = self.reader.get_metrics_data()
        if data is None:
            return []
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        return [point for metric in metrics if metric.name == name for point in metric.data.data_points]

    def everything(self):
        """All that was exported, as text."""
        spans = "\n".join(span.to_json() for span in self.exporter.get_finished_spans())
        data = self.reader.get_metrics_data()
        return spans + (data.to_json() if data else "")

    def close(self):
        self.tracers.shutdown()
        self.meters.shutdown()


@pytest.fixture
def observatory():
    made = Observatory()
    yield made
    made.close()


@pytest.fixture
def observed(observatory, url):
    """Makes a service whose traces and metrics are kept."""

    def make(embedder=None, **options):
        telemetry = observatory.telemetry(**options.pop("telemetry", {}))
        return MemoryService(store_from(url), embedder or LexicalEmbedder(), telemetry=telemetry, **options)

    return make


async def test_recall_write_embed_distil_and_erase_are_traced_timed_and_counted(observed, observatory):
    async with observed() as memory:
        ana = memory.user("ana")
        call = await ana.conversation("call")
        await call.append(Turn(speaker="user", text="I live in Haifa."))
        await call.learn()
        await memory.settle()
        recall = await ana.recall("where do I live?")
        receipt = await ana.forget()
    for name in ("recall", "write", "embed", "distil", "erase"):
        assert observatory.spans(name), name
    (recalled,) = observatory.spans("recall")
    assert recalled.attributes["echoic.outcome"] == "complete"
    assert recalled.attributes["gen_ai.memory.record.count"] == len(recall.hits) > 0
    (erased,) = observatory.spans("erase")
    assert erased.attributes["gen_ai.memory.record.count"] == receipt.records > 0
    assert {s.attributes["echoic.kind"] for s in observatory.spans("embed")} == {"document", "query"}
    timed = {p.attributes["echoic.operation"]: p for p in observatory.points("echoic.operation.duration")}
    assert set(timed) == {"recall", "write", "embed", "distil", "erase"}
    assert all(point.count > 0 and point.sum > 0 for point in timed.values())
    assert sum(p.value for p in observatory.points("echoic.recall.hits")) == len(recall.hits)
    assert sum(p.value for p in observatory.points("echoic.erase.records")) == receipt.records
    durable = [s for s in observatory.spans("write") if s.attributes["echoic.outcome"] == "ok"]
    writes = [s.attributes["echoic.changes"] for s in durable]  # two may read the same turns: one is too late
    assert sum(p.value for p in observatory.points("echoic.write.changes")) == sum(writes) > 0
    (learned,) = observatory.points("echoic.distil.memories")
    assert (learned.value, dict(learned.attributes)) == (
        1,
        {"echoic.change": "added", "echoic.reader": "rules"},
    )


async def test_operations_on_memories_are_named_as_opentelemetrys_conventions_name_them(
    observed, observatory
):
    async with observed() as memory:
        ana = memory.user("ana")
        kept = await ana.set("home", "Haifa")
        await ana.remember("Her sister is called Noor.")
        found = await ana.recall("Where do I live?")
        await ana.delete("home")
        await ana.forget(id=kept.id)
        await ana.forget()
    done = [s for s in observatory.exporter.get_finished_spans() if "gen_ai.operation.name" in s.attributes]
    named = {"upsert_memory", "create_memory", "search_memory", "delete_memory"}
    assert {span.name for span in done} == named
    assert all(span.name == span.attributes["gen_ai.operation.name"] for span in done)
    assert all(span.kind is SpanKind.INTERNAL for span in done), "memory works in the process that asks"
    store = f"default/{memory._parts.telemetry.pseudonym(ana.scope)}"
    assert {span.attributes["gen_ai.memory.store.id"] for span in done} == {store}
    about = [
        (s.name, s.attributes.get("gen_ai.memory.record.count"), "gen_ai.memory.record.id" in s.attributes)
        for s in done
    ]
    assert ("create_memory", 1, True) in about
    assert ("search_memory", len(found.hits), False) in about
    everything = [s for s in done if s.attributes.get("echoic.what") == "everything"]
    assert [s for s in everything if "gen_ai.memory.record.id" not in s.attributes] == everything
    timed = observatory.points("gen_ai.client.operation.duration")
    assert {point.attributes["gen_ai.operation.name"] for point in timed} == named
    assert timed[0].explicit_bounds[:3] == (0.01, 0.02, 0.04)


async def test_content_is_in_spans_only_if_it_was_asked_for_and_then_without_secrets(observed, observatory):
    async with observed(telemetry={"capture_content": True}) as memory:
        ana = memory.user("ana")
        kept = await ana.set("home", "Haifa")
        await ana.recall("Where is my home? My card is 4242 4242 4242 4242.")
    (search,) = observatory.spans("recall")
    assert search.attributes["gen_ai.memory.query.text"].startswith("Where is my home? My card is [card")
    (record,) = json.loads(search.attributes["gen_ai.memory.records"])
    assert (record["id"], record["content"]) == (kept.id, "Haifa")
    assert 0 < record["score"] <= 1
    (written,) = observatory.spans("set")
    assert written.attributes["gen_ai.memory.record.id"] == kept.id
    assert json.loads(written.attributes["gen_ai.memory.records"]) == [{"id": kept.id, "content": "Haifa"}]


async def test_what_a_recall_waits_for_is_a_child_of_it(observed, observatory):
    async with observed() as memory:
        await memory.user("ana").set("home", "Haifa")
        await memory.user("ana").recall("home")
    (recall,) = observatory.spans("recall")
    query = next(s for s in observatory.spans("embed") if s.attributes["echoic.kind"] == "query")
    assert query.parent.span_id == recall.context.span_id


class Failing(LexicalEmbedder):
    """Tells, in its error, what it was asked."""

    async def embed(self, texts, kind):
        raise EmbedderUnavailable(f"cannot embed {texts!r}")


async def test_what_fails_is_marked_by_its_kind(observed, observatory):
    async with observed(Failing()) as memory:
        recall = await memory.user("ana").recall("zanzibar")
        assert recall.outcome == "unavailable"
    (span,) = observatory.spans("recall")
    assert span.attributes["echoic.outcome"] == "unavailable"
    failed = observatory.spans("embed")[0]
    assert failed.attributes["error.type"] == "EmbedderUnavailable"
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.status.description == "EmbedderUnavailable"
    assert failed.events == ()
    kinds = {p.attributes.get("error.type") for p in observatory.points("echoic.operation.duration")}
    assert kinds == {None, "EmbedderUnavailable"}


async def test_a_conflict_is_no_error_and_a_cancelled_call_says_so(observed, observatory):
    async with observed() as memory:
        store, scope = memory._parts.store, Scope("default", "ana")
        put = Put(record=Record(kind="note", id="1", data={}), expect=0)
        await store.write(scope, [put])
        with pytest.raises(WriteConflict):
            await store.write(scope, [put])
        with pytest.raises(asyncio.CancelledError), memory._parts.telemetry.operation("recall", scope):
            raise asyncio.CancelledError
    conflict = next(s for s in observatory.spans("write") if s.attributes["echoic.outcome"] == "conflict")
    assert conflict.status.status_code is StatusCode.UNSET
    (cancelled,) = observatory.spans("recall")
    assert cancelled.attributes["echoic.outcome"] == "cancelled"


class Broken:
    """An extractor whose error repeats what it was shown."""

    name = "broken"
    timeout_s = 5.0

    async def open(self):
        pass

    async def aclose(self):
        pass

    async def extract(self, reading):
        raise RuntimeError(reading.turns[0].text)


async def test_a_model_that_fails_is_traced_as_failed(observed, observatory):
    async with observed(extractor=Broken()) as memory:
        call = await memory.user("ana").conversation("call")
        await call.append(Turn(speaker="user", text="I live in Haifa."))
        await call.distil()
    outcomes = {
        (s.attributes["echoic.reader"], s.attributes["echoic.outcome"]) for s in observatory.spans("distil")
    }
    assert {("rules", "ok"), ("broken", "failed")} <= outcomes


CANARY = "zanzibar"


async def test_nothing_said_no_key_and_no_user_is_in_any_trace_or_metric(observed, observatory):
    """Every verb, and every way of failing whose message repeats what was said."""
    name = f"user-{CANARY}"
    async with observed(Failing(), extractor=Broken()) as memory:
        user = memory.user(name)
        call = await user.conversation(CANARY)
        await call.append(Turn(speaker="user", text=f"I live in {CANARY}.", id=CANARY))
        await call.distil()
        await call.store(CANARY, CANARY)
        await call.learn_soon()
        kept = [await user.set(CANARY, CANARY, context=CANARY), await user.remember(CANARY)]
        await user.get(CANARY)
        await user.recall(CANARY)
        await user.block(agent=CANARY, moment=CANARY)
        await user.set_directives(small_talk=CANARY)
        await user.add_result(CANARY, CANARY, {CANARY: CANARY})
        await user.recall_conversation(CANARY)
        await user.delete(CANARY)
        for bad in (lambda: user.set(CANARY * 100, CANARY), lambda: user.recall(f"{CANARY}\0")):
            with pytest.raises(InvalidInput):
                await bad()
        with pytest.raises(InvalidInput, match=CANARY):  # an id may be named in a message, and there only
            await memory.proposals().approve(CANARY)
        with contextlib.suppress(echoic.EchoicError):
            await memory.settle(0.1)
        await user.forget(key=CANARY)
        await user.forget()
    exported = observatory.everything()
    assert '"distil"' in exported
    assert "search_memory" in exported
    assert CANARY not in exported.casefold()
    # an id follows from what was said: who guesses that could see whether it was
    assert not [memory.id for memory in kept if memory.id in exported]


async def test_a_user_is_named_by_a_keyed_hash_in_spans_and_not_at_all_in_metrics(observatory):
    scope, other = Scope("default", "ana"), Scope("acme", "ana")
    one = observatory.telemetry(pseudonym_key=b"a key of sixteen")
    same = observatory.telemetry(pseudonym_key=b"a key of sixteen")
    random = observatory.telemetry()
    assert one.pseudonym(scope) == same.pseudonym(scope) != random.pseudonym(scope)
    assert one.pseudonym(scope) != one.pseudonym(other)
    assert len(one.pseudonym(scope)) == 16
    with one.operation("recall", scope):
        pass
    (span,) = observatory.spans("recall")
    assert span.attributes["echoic.user"] == one.pseudonym(scope)
    (point,) = observatory.points("echoic.operation.duration")
    assert set(point.attributes) == {"echoic.operation", "echoic.outcome"}
    with pytest.raises(InvalidInput, match="16 at least"):
        observatory.telemetry(pseudonym_key=b"short")


async def test_an_error_passes_through_as_it_was(observatory):
    telemetry = observatory.telemetry()
    with pytest.raises(StoreUnavailable, match="exactly this"), telemetry.operation("write"):
        raise StoreUnavailable("exactly this")


async def test_an_embedder_keeps_whatever_else_it_can_do(url):
    from echoic.embedding.base import CachedEmbedder

    store, embedder = store_from(url), LexicalEmbedder()
    async with MemoryService(store, embedder) as memory:
        assert memory.embedder is embedder
        assert (await memory.check())["embedder"] == embedder.spec.model
    cached = CachedEmbedder(LexicalEmbedder())
    async with MemoryService(store_from(url), cached) as memory:
        await memory.user("ana").recall("zanzibar")
        assert cached._known
        await memory.user("ana").forget()
        assert not cached._known, "the words of whoever is forgotten are in no cache"
