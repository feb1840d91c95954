"""The memory service: opens the store and the embedder, returns users, and runs the background work."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack, cast
from uuid import uuid4

from echoic.checks import RESERVED
from echoic.embedding.base import CachedEmbedder, Embedder
from echoic.errors import InvalidInput
from echoic.memory.assurance import Level, table_from
from echoic.memory.audit import AuditLog
from echoic.memory.background import EVERY, Background, Distiller, Jobs, Learning
from echoic.memory.checkpoints import RESUMABLE_FOR_S, AbandonedCalls
from echoic.memory.guarded_store import HomeLoop, Meter, ObservedStore, Quota
from echoic.memory.hooks import CallWritten, Extraction, Failure, Forgotten, Hook, Hooks, Recalled, ToolUsed
from echoic.memory.recall import Recaller, Shares
from echoic.memory.records import index
from echoic.memory.retention import Retention, rules_from
from echoic.memory.service_context import GlobalWrites, Parts
from echoic.memory.sharing import DEFAULT_GLOBAL_KINDS, Classifier, checked_kinds
from echoic.memory.telemetry import ObservedEmbedder, Telemetry
from echoic.memory.user import UserMemory
from echoic.memory.write_filter import Instructions, Secrets, WriteFilter
from echoic.ranking.fusion import Fusion
from echoic.stores.base import Store
from echoic.types import Conversation, EmbeddingSpec, Scope, checked_name

if TYPE_CHECKING:
    from echoic.memory.compliance import Compliance
    from echoic.memory.deployment_keys import DeploymentKeys, Revocations
    from echoic.memory.experience import AgentExperience
    from echoic.memory.extraction.reconciliation import Distilled, Extractor, Summarizer, ThirdParties
    from echoic.memory.global_facts import GlobalFacts
    from echoic.memory.proposals import Judge, Proposals
    from echoic.memory.tasks import ConversationPage

log = logging.getLogger(__name__)

SETTLE_S = 5.0
"""Seconds for which closing waits for vectors of new records; the rest stays pending in the store."""


class MemoryOptions(TypedDict, total=False):
    """Options of `echoic.open` and `MemoryService`, besides store, embedder and models.

    Attributes:
        global_writes: "propose", the default, has an operator approve what callers would make global; "auto"
            makes `global_kinds` global at once.
        global_kinds: a subset of `echoic.memory.sharing.GLOBAL_KINDS`, also as "hours,location,menu". By
            default opening hours and locations. "menu=3" becomes global once three users said the same.
        classifier: replaces the rules that decide what may be global; a model confirms it. Personal data is
            never global.
        shares: by deployment, others whose global memories it reads too, also as "acme=kb,more; shop=kb". A
            user's own memory is never shared, and shares are not transitive.
        resumable_for_s: seconds for which an interrupted live call can be resumed, by default a day. Then it
            is closed: its turns are stored and learned from, and its checkpoint is removed. None: no limit.
        quota: limits of what is stored: `echoic.Quota(user_memories=…, user_bytes=…, deployment_bytes=…)`.
        secrets: "mask", the default, stores a marker such as "[card ending 4242]" in place of card numbers,
            passwords, PINs, codes and keys; "keep" stores them word for word (docs/secrets.md).
        instructions: "refuse", the default, raises InvalidInput for a memory that addresses the model rather
            than describing the user, such as "ignore your rules"; "keep" quotes it as data (docs/threats.md).
        third_parties: what is stored about other people a user mentions: "keep", the default, "adults"
            (nothing about children) or "drop" (docs/retention.md).
        assurance: what callers of each assurance level are told, if it differs from the default; also as
            "attested=sensitive,device=open" (docs/assurance.md).
        keep_for: for how many days conversations and memories are kept, also as
            "conversations=90,acme:memories=30"; older ones are destroyed in the background
            (docs/retention.md). By default they are kept until they are forgotten.
        audit: whether every access is logged in the compliance folder, without content (docs/audit.md).
    """

    global_writes: GlobalWrites
    global_kinds: str | Collection[str] | None
    classifier: Classifier | None
    shares: str | Mapping[str, Sequence[str]] | None
    resumable_for_s: float | None
    quota: Quota | None
    secrets: Secrets
    instructions: Instructions
    third_parties: ThirdParties
    assurance: str | Mapping[str, str] | None
    keep_for: str | Mapping[str, float] | None
    audit: bool


class MemoryService:
    """The memory in one store. Use it with `async with`, or call `open()` and `aclose()`.

    Args:
        store: where everything is stored.
        embedder: computes the vectors.
        extractor: a model that extracts memories in addition to the rules, after the caller was answered.
        second_judge: decides what may be global, after the caller was answered, in place of the rules, or
            confirms what `classifier` would share; until it has agreed, the memory is private.
        summarizer: a model that summarises a long call when another agent takes over.
        distil_every: user turns after which the extractor reads a conversation in progress.
        sentences: whether, without an extractor, durable statements that no rule has a slot for are stored
            as sentences. Needs the local embedder; with any other the rules learn alone.
        fusion: how channels become one ranking: "blend", "rrf" as MongoDB computes it, or one of your own.
        compliance: lists erasures apart from the store, so that they are repeated when a restored backup is
            opened; None: they are not.
        telemetry: receives traces and metrics; by default OpenTelemetry's global providers do.
        clock: returns the current time, aware.
        new_id: returns ids for turns and conversations that have none.
        options: see `MemoryOptions`.

    Raises:
        InvalidInput: an option has a value that is not valid, or contradicts another.
        TypeError: there is no such option.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        *,
        extractor: Extractor | None = None,
        second_judge: Classifier | None = None,
        summarizer: Summarizer | None = None,
        distil_every: int = EVERY,
        sentences: bool = True,
        fusion: str | Fusion = "blend",
        compliance: Compliance | None = None,
        telemetry: Telemetry | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = lambda: uuid4().hex,
        **options: Unpack[MemoryOptions],
    ) -> None:
        if unknown := options.keys() - MemoryOptions.__annotations__:
            raise TypeError(f"a memory has no option {', '.join(sorted(unknown))}: see echoic.MemoryOptions")
        telemetry, hooks, third = telemetry or Telemetry(), Hooks(), options.get("third_parties", "keep")
        kinds = _kinds(options.get("global_writes", "propose"), options.get("global_kinds"))
        write_filter = WriteFilter(
            store, options.get("secrets", "mask"), options.get("instructions", "refuse"), third
        )
        self._home, self._embedder, quota = HomeLoop(), embedder, options.get("quota")
        self._meter = Meter(store, quota) if quota and quota != Quota() else None
        self.audit = _audit(compliance) if options.get("audit") else None
        """The audit log; None without one."""
        if not isinstance(embedder, CachedEmbedder):  # forgetting must reach the words in the cache
            embedder = cast("Embedder", ObservedEmbedder(embedder, telemetry))
        shares = Shares(options.get("shares"))
        recaller = Recaller(store, embedder, fusion=fusion, shares=shares, home=self._home)
        guarded = self._guarded(store, telemetry, write_filter, recaller, compliance=compliance, hooks=hooks)
        learning = Learning(extractor, every=distil_every, sentences=sentences, third_parties=third)
        distiller = Distiller(guarded, embedder, clock, telemetry, hooks, learning=learning)
        self.summarizer = summarizer
        """Summarises a long call for the next agent; None: it gets facts and the last turns."""
        self._parts = Parts(
            store=guarded,
            write_filter=write_filter,
            embedder=embedder,
            recaller=recaller,
            distiller=distiller,
            background=Background(guarded, embedder, distiller, self._home, hooks),
            classifier=options.get("classifier"),
            judge=_judge(guarded, second_judge, kinds, clock),
            hooks=hooks,
            telemetry=telemetry,
            global_kinds=kinds,
            clock=clock,
            new_id=new_id,
            assurance=table_from(options.get("assurance")),
            compliance=compliance,
            audit=self.audit,
            meter=self._meter,
        )
        self.forgotten_again = 0
        """How many erasures were repeated on opening, because the store was restored from a backup."""
        self._abandoned = AbandonedCalls(self._parts, options.get("resumable_for_s", RESUMABLE_FOR_S))
        self._retention = Retention(self._parts, rules_from(options.get("keep_for")))

    def _guarded(
        self,
        store: Store,
        telemetry: Telemetry,
        write_filter: WriteFilter,
        recaller: Recaller,
        *,
        compliance: Compliance | None,
        hooks: Hooks,
    ) -> Store:
        observed = ObservedStore(
            store,
            telemetry,
            write_filter,
            self._meter,
            self._home,
            compliance=compliance,
            audit=self.audit,
            written=recaller.written,
            hooks=hooks,
        )
        return cast("Store", observed)

    async def open(self) -> Self:
        """Open store and embedder, and resume what an earlier process left unfinished.

        The memory then belongs to the running event loop: a method called from another loop raises NotOpen.
        Once it is closed, another loop may open it.

        Raises:
            InvalidInput: the model that extracts memories is not set up correctly.
            NotOpen: it is open in another event loop, or was left open in one that has ended.
            EmbedderMissing: the embedder's packages or weights are not on this machine.
            EmbeddingMismatch: the store holds vectors of another model.
            StoreError: the store cannot be opened.
        """
        self._home.check()
        await self._parts.store.open(self._parts.embedder.spec, index)
        try:
            await self._parts.embedder.open()
            await self._parts.distiller.open()
            self._home.enter()
            if self.audit is not None and self._parts.compliance is not None:
                await asyncio.to_thread(self._parts.compliance.key)  # now, while no caller waits
            self.forgotten_again += await self._forget_again()
        except BaseException:
            try:
                await self._parts.embedder.aclose()
            finally:
                await self._parts.store.aclose()
                self._home.leave()
            raise
        self._parts.background.start()
        if self._parts.judge is not None:
            self._parts.judge.start()
        self._abandoned.start()
        self._retention.start()
        return self

    async def _forget_again(self) -> int:
        """Repeat erasures that the store has no mark of (a restored copy), before anybody reads it."""
        compliance = self._parts.compliance
        if compliance is None:
            return 0
        again = 0
        if await compliance.missing(self._parts.store):
            from echoic.memory.erasure import forget_again

            again = await forget_again(self._parts, compliance)
        await compliance.repeated(self._parts.store)
        return again

    async def aclose(self) -> None:
        """Embed new records, for at most `SETTLE_S`, and close. May be called twice.

        Raises:
            NotOpen: it is open in another event loop, and stays open.
        """
        if self._home.ended:
            await self._let_go()
            return
        self._home.check()
        parts = self._parts
        closed_in_order: tuple[Callable[[], Awaitable[object]], ...] = (
            self._abandoned.aclose,
            self._retention.aclose,
            partial(self.settle, SETTLE_S),
            parts.background.stop,
            parts.distiller.aclose,
            *([] if parts.judge is None else [parts.judge.aclose]),
            *([] if self.summarizer is None else [self.summarizer.aclose]),
            parts.hooks.aclose,
            parts.recaller.aclose,
            *([] if self._meter is None else [self._meter.aclose]),
            *([] if self.audit is None else [self.audit.aclose]),
            parts.embedder.aclose,
            parts.store.aclose,
        )
        # each is closed even if one before it, such as a provider's client, fails to close
        async with contextlib.AsyncExitStack() as closing:
            closing.callback(self._home.leave)
            for close in reversed(closed_in_order):
                closing.push_async_callback(close)

    async def _let_go(self) -> None:
        """Close what a loop that has ended left open: its tasks can only be dropped, not awaited."""
        self._home.leave()
        for worker in (self._parts.background, self._abandoned, self._retention, self._parts.judge):
            if worker is not None:
                worker.abandon()
        log.warning(
            "a memory was left open in an event loop that has ended: what was not learned or embedded by "
            "then waits in the store until it is opened again"
        )
        for close in (self._parts.distiller.aclose, self._parts.embedder.aclose, self._parts.store.aclose):
            try:
                await close()
            except RuntimeError as error:  # a connection is bound to its loop, and lost with it
                log.warning("not closed, its event loop has ended: %s", type(error).__name__)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def embedder(self) -> Embedder:
        """The embedder that makes the vectors."""
        return self._embedder

    @property
    def embedding_failure(self) -> str | None:
        """Why texts cannot be embedded, such as "EmbedderUnavailable"; None while they can."""
        return self._parts.background.embedding_failure

    def learning_failures(self, deployment: str | None = None) -> Mapping[str, int]:
        """How many conversations of a deployment (None: of all) this process cannot learn from for now.

        By the kind of error, such as "StoreCorrupt". A user of whom nothing can be read counts as one. They
        are tried again. Those that a model fails on are in `jobs`.
        """
        failed = self._parts.background.unread.items()
        return Counter(why for (scope, _), why in failed if deployment in {None, scope.deployment})

    # -- hooks: see `hooks` for when and how they are called

    def on_memory_extraction(self, hook: Hook[Extraction]) -> Hook[Extraction]:
        """Call `hook` with memories learned from turns. Returns `hook`, so that this can be a decorator."""
        self._parts.hooks.add(Extraction, hook)
        return hook

    def on_recall(self, hook: Hook[Recalled]) -> Hook[Recalled]:
        """Call `hook` with every search and its outcome, including those on partial transcripts."""
        self._parts.hooks.add(Recalled, hook)
        return hook

    def on_forgotten(self, hook: Hook[Forgotten]) -> Hook[Forgotten]:
        """Call `hook` with every erasure and its receipt."""
        self._parts.hooks.add(Forgotten, hook)
        return hook

    def on_failure(self, hook: Hook[Failure]) -> Hook[Failure]:
        """Call `hook` with every failure to embed or to distil."""
        self._parts.hooks.add(Failure, hook)
        return hook

    def on_tool_use(self, hook: Hook[ToolUsed]) -> Hook[ToolUsed]:
        """Call `hook` with every use of a memory tool by a model: its arguments and its result."""
        self._parts.hooks.add(ToolUsed, hook)
        return hook

    def on_call_written(self, hook: Hook[CallWritten]) -> Hook[CallWritten]:
        """Call `hook` with every stored turn, and every record of how it was answered."""
        self._parts.hooks.add(CallWritten, hook)
        return hook

    def remove_hook(self, hook: Callable[..., object]) -> None:
        """Stop calling `hook`."""
        self._parts.hooks.remove(hook)

    def user(self, user: str, deployment: str = "default", *, level: Level = "account") -> UserMemory:
        """The memory of one user.

        Args:
            user: the id of the user.
            deployment: the deployment they belong to.
            level: how sure the caller's identity is, which limits what they are told (docs/assurance.md).

        Raises:
            InvalidInput: `user` or `deployment` is empty or cannot be stored exactly.
        """
        return UserMemory(self._parts, _scope(deployment, user), level)

    async def enforce_retention(self, deployment: str | None = None) -> int:
        """Destroy now what is older than `keep_for`, as the background work does; returns how many items.

        Raises:
            StoreUnavailable: the store could not be read.
        """
        return await self._retention.enforce(deployment)

    def pseudonym(self, user: str, deployment: str = "default") -> str:
        """The pseudonym of a user in receipts and in the audit log; "" without a compliance folder."""
        compliance = self._parts.compliance
        return "" if compliance is None else compliance.pseudonym(self.user(user, deployment).scope)

    async def users(self, deployment: str = "default") -> list[str]:
        """Every user with stored data. For operators."""
        scopes = await self._parts.store.scopes(deployment)
        return [scope.user for scope in scopes if scope.user is not None]

    @property
    def assurance(self) -> Mapping[str, str]:
        """The most sensitive content each level is told; see docs/assurance.md."""
        return {level: visible.most for level, visible in self._parts.assurance.items()}

    def proposals(self, deployment: str = "default") -> Proposals:
        """The memories that callers proposed to be global, to approve or reject. For operators."""
        from echoic.memory.proposals import Proposals

        return Proposals(self._parts.store, _scope(deployment, None), self._parts.clock)

    def global_facts(self, deployment: str = "default") -> GlobalFacts:
        """The global facts of a deployment, to write, list and withdraw. For operators."""
        from echoic.memory.global_facts import GlobalFacts

        return GlobalFacts(self._parts, _scope(deployment, None))

    def revocations(self, deployment: str = "default") -> Revocations:
        """The revoked tokens of a deployment. For code that issues tokens."""
        from echoic.memory.deployment_keys import Revocations

        return Revocations(self._parts.store, _scope(deployment, None), self._parts.clock)

    def keys(self, deployment: str = "default") -> DeploymentKeys:
        """The keys of a deployment, each with a role. For operators."""
        from echoic.memory.deployment_keys import DeploymentKeys

        return DeploymentKeys(self._parts.store, _scope(deployment, None), self._parts.clock)

    def experience(
        self, agent: str, deployment: str = "default", *, words: Collection[str] = ()
    ) -> AgentExperience:
        """The lessons an agent learned by serving this deployment's users, to read and to add to.

        `words` are ordinary words of the deployment's trade that its lessons may use.
        """
        from echoic.memory.experience import AgentExperience

        return AgentExperience(self._parts, _scope(deployment, None), agent, words=words)

    async def agents_with_lessons(self, deployment: str = "default") -> list[str]:
        """The agents that have lessons from this deployment's users. For operators."""
        from echoic.memory.experience import agents_with_lessons

        return await agents_with_lessons(self._parts.store, _scope(deployment, None))

    async def conversations(
        self,
        deployment: str = "default",
        *,
        user: str | None = None,
        agent: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[tuple[str, Conversation]]:
        """The conversations of a deployment, each with its user, oldest first. For operators.

        The store's index finds them without visiting every user. Each argument that is given narrows the
        list; `since` (inclusive) and `until` (exclusive), both aware, compare with when a conversation began.
        """
        from echoic.memory.tasks import ConversationFilter, read_all_conversations, read_conversations

        chosen = ConversationFilter(agent=agent, status=status, since=since, until=until)
        if user is None:
            return await read_all_conversations(self._parts.store, deployment, chosen)
        scope = _scope(deployment, checked_name(user, "user"))
        return [(user, found) for found in await read_conversations(self._parts.store, scope, chosen)]

    async def newest_conversations(
        self,
        deployment: str = "default",
        *,
        user: str | None = None,
        agent: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> ConversationPage:
        """The latest conversations of a deployment, newest first, at most `limit`. For operators.

        `before` is the `place` of the last one of the previous page; the other arguments are those of
        `conversations`.
        """
        from echoic.memory.tasks import ConversationFilter, newest_conversations

        return await newest_conversations(
            self._parts.store,
            deployment,
            ConversationFilter(agent=agent, status=status, since=since, until=until),
            user=user if user is None else checked_name(user, "user"),
            limit=limit,
            before=before,
        )

    async def distil(self, deployment: str | None = None, *, parked: bool = False) -> Distilled:
        """Extract memories now from every conversation with unread turns.

        Interrupted live calls that can no longer be resumed are closed first.

        Args:
            deployment: the deployment; None for all in the store.
            parked: also retry conversations that were given up because a model failed too often.
        """
        return await self._distil(deployment, partial(self._parts.distiller.distil_all, parked=parked))

    async def distil_due(self, deployment: str | None = None) -> Distilled:
        """Learn from every conversation that is due; a worker calls it repeatedly."""
        return await self._distil(deployment, self._parts.distiller.distil_due)

    async def _distil(
        self, deployment: str | None, learn: Callable[[str | None], Awaitable[Distilled]]
    ) -> Distilled:
        await self._abandoned.close_all(deployment)
        distilled = await learn(deployment)
        self._parts.background.poke()
        if self._parts.judge is not None:  # what earlier processes left pending
            await self._parts.judge.take_up(deployment)
            await self._parts.judge.settle()
        return distilled

    async def jobs(self, deployment: str | None = None) -> Jobs:
        """The conversations to be distilled, and those parked. For operators; reads every conversation."""
        return await self._parts.distiller.jobs(deployment)

    async def learn_soon(self, user: str, conversation: str, deployment: str = "default") -> None:
        """Have a model read the new turns of a conversation now, in the background.

        For moments at which a call may change direction: an agent hands over, or a tool has answered. Without
        a model this does nothing: the rules read every turn at once.
        """
        self._parts.background.poke((self.user(user, deployment).scope, conversation), urgent=True)

    async def settle(
        self, timeout_s: float = SETTLE_S, *, progress: Callable[[int, int], None] | None = None
    ) -> bool:
        """Wait until everything written has its vector and no model is running; returns whether that was
        reached.

        Args:
            timeout_s: the longest wait.
            progress: called some ten times a second with the number of texts embedded since, and the number
                that were pending.
        """
        self._home.check()
        until = asyncio.get_running_loop().time() + timeout_s
        if self._parts.judge is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._parts.judge.settle()
        left_s = max(0.0, until - asyncio.get_running_loop().time())
        return await self._parts.background.settle(left_s, progress)

    async def reindex(self, embedding: EmbeddingSpec | None = None) -> int:
        """Embed everything again with this service's embedder; returns the number of records."""
        waiting = await self._parts.store.reindex(embedding or self._parts.embedder.spec)
        self._parts.background.poke()
        return waiting

    async def check(self) -> Mapping[str, Any]:
        """Facts about store and embedder for `echoic doctor`. No contents."""
        facts = dict(await self._parts.store.check())
        embedder = self._parts.embedder
        return {
            **facts,
            "embedder": embedder.spec.model,
            "semantic": embedder.semantic,
            "embedding_failure": self._parts.background.embedding_failure,
        }


def _scope(deployment: str, user: str | None) -> Scope:
    """The scope of a user, or of everyone if None; InvalidInput for a deployment of Echoic's own."""
    scope = Scope(deployment, user)
    if deployment.startswith(RESERVED):
        raise InvalidInput(f"names of deployments that begin with {RESERVED!r} are reserved")
    return scope


def _audit(compliance: Compliance | None) -> AuditLog:
    """The audit log in the compliance folder. Raises InvalidInput without a folder."""
    if compliance is None:
        raise InvalidInput(
            "an audit log needs a compliance folder: name one with compliance=, or --compliance"
        )
    return AuditLog(compliance)


def _judge(
    store: Store, classifier: Classifier | None, kinds: Mapping[str, int], clock: Callable[[], datetime]
) -> Judge | None:
    """The background judge of what may be global; None without one."""
    if classifier is None:
        return None
    from echoic.memory.proposals import Judge

    return Judge(store, classifier, global_kinds=kinds, clock=clock, worker=uuid4().hex)


def _kinds(global_writes: GlobalWrites, given: str | Collection[str] | None) -> Mapping[str, int]:
    """The kinds of facts that become global without approval, with how many users must say the same."""
    if global_writes not in {"auto", "propose"}:
        raise InvalidInput("global_writes must be 'auto' or 'propose'")
    if isinstance(given, str):
        given = [name.strip() for name in given.split(",") if name.strip()] or None
    if global_writes == "auto":
        return checked_kinds(DEFAULT_GLOBAL_KINDS if given is None else given)
    if given is not None:
        raise InvalidInput(
            "global_kinds says what is global by itself, and with global_writes='propose' nothing is: "
            "leave it out, or use global_writes='auto'"
        )
    return {}
