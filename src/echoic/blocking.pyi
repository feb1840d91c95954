# Written by scripts/blocking.py from the asynchronous classes, whose docstrings say more.
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from types import TracebackType
from typing import Any, Protocol, Self, overload

from echoic.embedding.base import Kind, Vectors
from echoic.memory.assurance import Level
from echoic.memory.background import Jobs
from echoic.memory.consent import Verdict
from echoic.memory.conversation import Transcript
from echoic.memory.deployment_keys import DeploymentKey, Role
from echoic.memory.extraction.reconciliation import Distilled
from echoic.memory.global_facts import Filled, GlobalFact
from echoic.memory.hooks import CallWritten, Extraction, Failure, Forgotten, Hook, Recalled, ToolUsed
from echoic.memory.items import FoundItems, Item
from echoic.memory.proposals import Decision
from echoic.memory.tasks import ConversationPage, Result, Task
from echoic.memory.user import P
from echoic.partition import Partition
from echoic.prompt.answer import Packed
from echoic.prompt.block import Block
from echoic.stores.base import Change, Erasable, Erased, Index, Record, Waiting
from echoic.types import (
    Category,
    Consent,
    Conversation,
    Directives,
    EmbeddingSpec,
    Experience,
    ExperienceKind,
    Hit,
    Lesson,
    Memory,
    Profile,
    Recall,
    Receipt,
    Scope,
    Sharing,
    Turn,
)

class BlockingMemoryService(Protocol):
    """`MemoryService`, blocking."""

    def open(self) -> Self:
        """Open store and embedder, and resume what an earlier process left unfinished."""

    def aclose(self) -> None:
        """Embed new records, for at most `SETTLE_S`, and close. May be called twice."""

    @property
    def embedder(self) -> BlockingEmbedder:
        """The embedder that makes the vectors."""

    @property
    def embedding_failure(self) -> str | None:
        """Why texts cannot be embedded, such as "EmbedderUnavailable"; None while they can."""

    def learning_failures(self, deployment: str | None = None) -> Mapping[str, int]:
        """How many conversations of a deployment (None: of all) this process cannot learn from for now."""

    def on_memory_extraction(self, hook: Hook[Extraction]) -> Hook[Extraction]:
        """Call `hook` with memories learned from turns. Returns `hook`, so that this can be a decorator."""

    def on_recall(self, hook: Hook[Recalled]) -> Hook[Recalled]:
        """Call `hook` with every search and its outcome, including those on partial transcripts."""

    def on_forgotten(self, hook: Hook[Forgotten]) -> Hook[Forgotten]:
        """Call `hook` with every erasure and its receipt."""

    def on_failure(self, hook: Hook[Failure]) -> Hook[Failure]:
        """Call `hook` with every failure to embed or to distil."""

    def on_tool_use(self, hook: Hook[ToolUsed]) -> Hook[ToolUsed]:
        """Call `hook` with every use of a memory tool by a model: its arguments and its result."""

    def on_call_written(self, hook: Hook[CallWritten]) -> Hook[CallWritten]:
        """Call `hook` with every stored turn, and every record of how it was answered."""

    def remove_hook(self, hook: Callable[..., object]) -> None:
        """Stop calling `hook`."""

    def user(self, user: str, deployment: str = "default", *, level: Level = "account") -> BlockingUserMemory:
        """The memory of one user."""

    def enforce_retention(self, deployment: str | None = None) -> int:
        """Destroy now what is older than `keep_for`, as the background work does; returns how many items."""

    def pseudonym(self, user: str, deployment: str = "default") -> str:
        """The pseudonym of a user in receipts and in the audit log; "" without a compliance folder."""

    def users(self, deployment: str = "default") -> list[str]:
        """Every user with stored data. For operators."""

    @property
    def assurance(self) -> Mapping[str, str]:
        """The most sensitive content each level is told; see docs/assurance.md."""

    def proposals(self, deployment: str = "default") -> BlockingProposals:
        """The memories that callers proposed to be global, to approve or reject. For operators."""

    def global_facts(self, deployment: str = "default") -> BlockingGlobalFacts:
        """The global facts of a deployment, to write, list and withdraw. For operators."""

    def revocations(self, deployment: str = "default") -> BlockingRevocations:
        """The revoked tokens of a deployment. For code that issues tokens."""

    def keys(self, deployment: str = "default") -> BlockingDeploymentKeys:
        """The keys of a deployment, each with a role. For operators."""

    def experience(
        self, agent: str, deployment: str = "default", *, words: Collection[str] = ...
    ) -> BlockingAgentExperience:
        """The lessons an agent learned by serving this deployment's users, to read and to add to."""

    def agents_with_lessons(self, deployment: str = "default") -> list[str]:
        """The agents that have lessons from this deployment's users. For operators."""

    def conversations(
        self,
        deployment: str = "default",
        *,
        user: str | None = None,
        agent: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[tuple[str, Conversation]]:
        """The conversations of a deployment, each with its user, oldest first. For operators."""

    def newest_conversations(
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
        """The latest conversations of a deployment, newest first, at most `limit`. For operators."""

    def distil(self, deployment: str | None = None, *, parked: bool = False) -> Distilled:
        """Extract memories now from every conversation with unread turns."""

    def distil_due(self, deployment: str | None = None) -> Distilled:
        """Learn from every conversation that is due; a worker calls it repeatedly."""

    def jobs(self, deployment: str | None = None) -> Jobs:
        """The conversations to be distilled, and those parked. For operators; reads every conversation."""

    def learn_soon(self, user: str, conversation: str, deployment: str = "default") -> None:
        """Have a model read the new turns of a conversation now, in the background."""

    def settle(self, timeout_s: float = ..., *, progress: Callable[[int, int], None] | None = None) -> bool:
        """Wait until everything written has its vector and no model is running; returns whether that was"""

    def reindex(self, embedding: EmbeddingSpec | None = None) -> int:
        """Embed everything again with this service's embedder; returns the number of records."""

    def check(self) -> Mapping[str, Any]:
        """Facts about store and embedder for `echoic doctor`. No contents."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

class BlockingUserMemory(Protocol):
    """`UserMemory`, blocking."""

    def at(self, level: Level) -> BlockingUserMemory:
        """The same memory, limited to what a caller of `level` may be told; see docs/assurance.md."""

    def step_up(self, level: Level) -> None:
        """Raise the assurance level of this handle, including for all code that already holds it."""

    def withholds(self) -> bool:
        """Whether something is withheld from this caller, and they may know that."""

    def set(
        self,
        key: str,
        value: str,
        *,
        category: Category = "fact",
        context: str | None = None,
        visibility: Sharing = "auto",
    ) -> Memory:
        """Store `value` under `key`. The earlier value is superseded and stays in `history`."""

    def get(self, key: str) -> Memory | None:
        """The current memory under `key`: the user's own, else a global, else a shared one."""

    def delete(self, key: str | None = None, *, id: str | None = None) -> bool:
        """Retract the user's memory under `key`, or one memory or turn by its id."""

    def find_memory(self, memory_id: str) -> Memory | None:
        """The memory with that id: any version of the user's own, or a current global one."""

    def find_turns(self, ids: Collection[str]) -> list[Turn]:
        """The user's turns with those ids, in spoken order: the turns that `Memory.source` names."""

    @property
    def sees_everything(self) -> bool:
        """Whether nothing is withheld from the holder of this handle."""

    def history(self, key: str) -> list[Memory]:
        """Every version stored under `key`, oldest first, including retracted ones."""

    def remember(
        self,
        text: str,
        *,
        category: Category = "fact",
        context: str | None = None,
        said_at: datetime | None = None,
    ) -> Memory:
        """Store one sentence about the user, without a key. Repeating the call changes nothing."""

    def facts(self, *, with_global: bool = False) -> list[Memory]:
        """Every current memory of the user, oldest first; `with_global` adds the global ones."""

    def past(self) -> list[Memory]:
        """Every memory of the user that was corrected or retracted and not destroyed, oldest first."""

    def query(
        self,
        text: str,
        *,
        limit: int = 10,
        include_past: bool = False,
        timezone: str | tzinfo | None = None,
        min_relevance: float | None = None,
        besides: str | Collection[str] | None = None,
    ) -> list[Hit]:
        """The best `limit` memories and turns for `text`, the user's own and global ones in one ranking."""

    def recall(
        self,
        text: str,
        *,
        limit: int = 10,
        deadline_ms: float | None = None,
        include_past: bool = False,
        timezone: str | tzinfo | None = None,
        min_relevance: float | None = None,
        besides: str | Collection[str] | None = None,
    ) -> Recall:
        """Search as `query` does, but within a deadline; the result says whether it is complete."""

    def warm(self) -> None:
        """Load what a recall and a brief need, as when the phone rings: partitions, encoder and modules."""

    def check_loop(self) -> None:
        """Raise NotOpen if the memory is not open in the running event loop."""

    def listen(
        self,
        *,
        limit: int = 5,
        timezone: str | tzinfo | None = None,
        min_relevance: float | None = None,
        besides: str | Collection[str] | None = None,
    ) -> BlockingSpeculation:
        """Search on interim transcripts while the user speaks, so that the result is ready when they stop."""

    def brief(
        self,
        text: str,
        *,
        budget_tokens: int = ...,
        deadline_ms: float | None = None,
        timezone: str | tzinfo | None = None,
        min_relevance: float | None = None,
        besides: str | Collection[str] | None = None,
    ) -> Packed:
        """The answer to `text` as prompt text: a few quoted lines, each once, with their age."""

    def pack(
        self, recall: Recall, *, budget_tokens: int = ..., timezone: str | tzinfo | None = None
    ) -> Packed:
        """An earlier recall, such as from `listen`, as the prompt text that `brief` returns."""

    def block(
        self,
        *,
        agent: str | None = None,
        conversation: str | None = None,
        moment: str | None = None,
        budget_tokens: int = ...,
        deadline_ms: float | None = None,
        min_relevance: float | None = None,
        besides: str | Collection[str] | None = None,
    ) -> Block:
        """The memory that a session starts with, as prompt text; identical bytes while nothing changed."""

    @overload
    def profile(self) -> Profile: ...
    @overload
    def profile(self, model: type[P], *, keys: Mapping[str, str] | None = None) -> P: ...
    def directives(self, *, for_agent: str | None = None, for_conversation: str | None = None) -> Directives:
        """How the user wants to be served, including directives for this agent or this conversation alone."""

    def set_directives(
        self, *, for_agent: str | None = None, for_conversation: str | None = None, **directives: str | None
    ) -> Directives:
        """Set directives by name, or remove them with None. They apply in every later session."""

    def conversation(
        self, conversation_id: str = "", *, agent: str | None = None, begin: bool = True
    ) -> BlockingOpenConversation:
        """Open a conversation, or continue the one with that id. Without an id a new one is created."""

    def conversations(
        self,
        *,
        agent: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Conversation]:
        """The user's conversations, oldest first; each argument that is given narrows the list."""

    def find_conversation(self, conversation_id: str) -> Conversation | None:
        """The conversation with that id; None if there is none or it was forgotten."""

    def recall_conversation(self, key: str) -> Transcript | None:
        """The conversation stored under a key like `key`, in words, spelling or sound; None if no key is"""

    def task(self, conversation_id: str) -> Task | None:
        """A conversation with its turns and results, or None."""

    def add_result(
        self,
        conversation_id: str,
        name: str,
        value: Any,
        *,
        id: str = "",
        arguments: Mapping[str, Any] | None = None,
        at: datetime | None = None,
    ) -> Result:
        """Store the result of a step of a task, such as a tool's. Durable when it returns."""

    def fail(self, conversation_id: str) -> Conversation:
        """Mark a task as failed. Its turns stay and are learned from like any others."""

    def jobs(self) -> Jobs:
        """Which of the user's conversations are still to be learned from, and which are parked."""

    def export(self) -> dict[str, Any]:
        """What is kept about the user, as JSON for `restore`: every version of every memory, conversations"""

    def restore(self, exported: Mapping[str, Any]) -> int:
        """Import what `export` returned, for any user; existing records stay unchanged."""

    def forget(
        self,
        *,
        key: str | None = None,
        conversation: str | None = None,
        id: str | None = None,
        asked: str | None = None,
        learned_from: Collection[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Receipt:
        """Destroy everything stored about the user, or only what one argument selects."""

    def hold(self, *, on: bool = True) -> None:
        """Put the user's data on hold, or release it: for operators, as when a court orders it."""

    def held(self) -> bool:
        """Whether the user's data is on hold."""

    def consent(self) -> Consent:
        """Whether what the user says may be stored."""

    def set_consent(self, consent: Consent) -> None:
        """Set whether what the user says may be stored, in every process, from the next write on."""

    def keeps_nothing(self, conversation: str) -> bool:
        """Whether nothing may be stored of a conversation, at least until the user is asked."""

    def asks_first(self, conversation: str | None = None) -> bool:
        """Whether the user has yet to say if the conversation may be kept; None: the current one."""

    def asked_to_forget(self, turn: Turn) -> list[Turn] | None:
        """The turns that a request to forget in `turn` refers to; None if it has no such request."""

    def items(self, kind: str, *, searchable: bool = False, conversation: str | None = None) -> BlockingItems:
        """Your own records of one kind: JSON values under names, which no recall finds; see `Items`."""

    @property
    def backing_store(self) -> BlockingStore:
        """The store, for records of another kind beside the memories, in `scope`."""

    @property
    def visible_store(self) -> BlockingStore:
        """The store limited to what may be told at this level."""

    def tell_tool_use(self, used: ToolUsed) -> None:
        """Call hooks with a model's use of a tool of this memory. For code that makes such tools."""

class BlockingSpeculation(Protocol):
    """`Speculation`, blocking."""

    on_found: Callable[[Recall], None] | None

    def partial(self, text: str, alternatives: Sequence[str] = ...) -> None:
        """Take the interim transcript of the utterance so far. Never waits, and never fails on a text."""

    def final(
        self, text: str, *, alternatives: Sequence[str] = ..., deadline_ms: float | None = None
    ) -> Recall:
        """The results for the whole utterance; at once, if a partial transcript asked the same."""

    def peek(self) -> Recall | None:
        """The results for the words so far, if they are ready; otherwise None. Never waits for a search."""

    def reset(self) -> None:
        """Drop the utterance and its results. Its embeddings stay cached."""

    def aclose(self) -> None:
        """Stop listening and drop the results. May be called twice."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

class BlockingOpenConversation(Protocol):
    """`OpenConversation`, blocking."""

    verdict: Verdict

    @property
    def silent(self) -> bool:
        """Whether nothing of it is kept, at least not yet."""

    @property
    def asking(self) -> bool:
        """Whether the user has yet to agree. Until then turns wait in this process."""

    def append(self, *turns: Turn, learn: bool = True) -> tuple[Turn, ...]:
        """Store turns. Durable when it returns; appending a turn whose id exists changes nothing."""

    def off_the_record(self) -> Receipt:
        """Stop storing this conversation and destroy what was stored of it, with memories learned from it"""

    def remember(self) -> None:
        """Note that the user agreed: waiting turns are stored, and those that follow."""

    def truncate(
        self,
        heard: str | None = None,
        *,
        after: str | None = None,
        fraction: float | None = None,
        words: int | None = None,
    ) -> list[Turn]:
        """Record a barge-in: only part of the agent's last answer was heard. Durable when it returns."""

    def turns(self) -> list[Turn]:
        """Everything said so far, in order, including turns that wait for consent in this process."""

    def recalled_turns(self) -> list[Turn]:
        """As `turns`, without what the user took back: what a model may be shown."""

    def info(self) -> Conversation:
        """The conversation's current state."""

    def store(self, key: str, summary: str | None = None) -> Conversation:
        """Store it under a spoken key, with a summary; None keeps the existing summary."""

    def complete(self) -> Conversation:
        """Mark the call as over. It is distilled afterwards, here or by another worker."""

    def distil(self) -> Distilled:
        """Extract memories now from the turns since the last run."""

    def learn(self) -> Distilled:
        """Extract memories now, by rules, from the turns since the last run; a model reads them later."""

    def learn_soon(self) -> None:
        """Have a model read the new turns in the background, as when an agent hands over."""

    def begin(self) -> None:
        """Create the conversation, or continue it if it exists."""

class BlockingItems(Protocol):
    """`Items`, blocking."""

    def set(self, name: str, value: Any, *, text: str | None = None) -> Item:
        """Store `value` under `name`, replacing the previous one. Durable when it returns."""

    def append(self, values: Sequence[Any]) -> None:
        """Store `values` in this order after all others, under generated names: all of them, or none."""

    def get(self, name: str) -> Item | None:
        """The item under `name`, or None."""

    def delete(self, *names: str) -> None:
        """Remove the items under `names`; missing ones are ignored. `forget` destroys their bytes."""

    def all(self, *, newest: int | None = None) -> list[Item]:
        """All items in the order in which they were first stored, or only the `newest`."""

    def search(self, text: str, *, limit: int | None = 10, deadline_ms: float | None = None) -> FoundItems:
        """The best `limit` items for `text`, ranked like memories; None: all that are found."""

class BlockingProposals(Protocol):
    """`Proposals`, blocking."""

    def list(self, limit: int = 1000) -> list[Memory]:
        """The pending proposals, oldest first. Each id includes the wording."""

    def approve(self, proposal_id: str, *, by: str | None = None) -> Memory:
        """Make a proposal global, replacing what was approved under its key before."""

    def reject(self, proposal_id: str, *, by: str | None = None) -> None:
        """Reject a proposal; its author keeps it as a private memory. Otherwise as `approve`."""

    def decisions(self) -> Sequence[Decision]:
        """Everything operators decided in this deployment about facts and lessons, oldest first."""

class BlockingGlobalFacts(Protocol):
    """`GlobalFacts`, blocking."""

    def list(self) -> Sequence[Memory]:
        """All global facts of the deployment, oldest first, whoever wrote them."""

    def set(
        self,
        key: str,
        value: str,
        *,
        category: Category = "fact",
        context: str | None = None,
        by: str | None = None,
    ) -> Memory:
        """Write a global fact: `value` under `key`, for everyone in the deployment."""

    def fill(self, facts: Iterable[GlobalFact], *, by: str | None = None) -> Filled:
        """Write all of `facts`; repeating it changes nothing. Global facts that are not among them stay."""

    def withdraw(self, memory_id: str, *, by: str | None = None) -> Memory:
        """Withdraw a global fact and its history, effective from the next search."""

class BlockingRevocations(Protocol):
    """`Revocations`, blocking."""

    def revoke(self, token_id: str, until: datetime) -> None:
        """Refuse the token with this id, and its renewals, from now on. Durable when it returns; may be"""

    def revoked(self, token_id: str, renewals: int | None = None, until: datetime | None = None) -> bool:
        """Whether the token with this id was revoked, or ended because it was renewed."""

class BlockingDeploymentKeys(Protocol):
    """`DeploymentKeys`, blocking."""

    def create(
        self, role: Role, *, name: str = "", lifetime: timedelta | None = None
    ) -> tuple[str, DeploymentKey]:
        """Create a key; returns its secret, which is not stored, and its listed form."""

    def list(self) -> list[DeploymentKey]:
        """Every key, oldest first, including expired and revoked ones."""

    def revoke(self, key_id: str) -> DeploymentKey:
        """Make a key invalid in every process; revoking it again changes nothing."""

    def of(self, given: str) -> DeploymentKey | None:
        """The key with the secret `given`, if it is valid; after StoreUnavailable refuse access."""

    def named(self, key_id: str) -> DeploymentKey | None:
        """The key with this id, if it is valid, for a caller who proved to have it before. Raises as `of`."""

class BlockingAgentExperience(Protocol):
    """`AgentExperience`, blocking."""

    def get(self) -> Experience:
        """Every lesson, including pending and withdrawn ones. For operators."""

    def seen_by(self, user: Scope) -> Experience:
        """The lessons the agent may use with this user: the approved ones, whoever taught them."""

    def add(
        self, kind: ExperienceKind, text: str, *, author: Scope | None = None, said: Iterable[str] = ...
    ) -> Lesson:
        """Store a lesson. The same lesson in another order or form is counted and stored once."""

    def adopt(self, lesson_id: str, *, by: str | None = None) -> Lesson:
        """Approve a lesson for use with every user, whoever taught it. For operators."""

    def withdraw(self, lesson_id: str, *, by: str | None = None) -> Lesson:
        """Remove a lesson from prompts, even if it is taught again; otherwise as `adopt`."""

    def remove(self, lesson_id: str, *, by: str | None = None) -> None:
        """Delete a lesson, as when rejecting a pending one. It may be taught again. For operators."""

class BlockingStore(Protocol):
    """`Store`, blocking."""

    def open(self, embedding: EmbeddingSpec, index: Index) -> None:
        """Open the store, creating or upgrading it if needed; a second call changes nothing."""

    def aclose(self) -> None:
        """Finish writing and close. May be called twice."""

    def write(self, scope: Scope, changes: Sequence[Change]) -> None:
        """Apply `changes` in order: all or none, durable when it returns, visible to the next read."""

    def read(self, scope: Scope, kind: str, ids: Sequence[str]) -> list[Record]:
        """The records of `kind` among `ids`, in the order asked."""

    def rows(self, scope: Scope, rows: Sequence[int]) -> list[Record]:
        """The searchable records at these rows, in the order asked, such as the hits of a search."""

    def scan(
        self,
        scope: Scope,
        kind: str,
        *,
        key: str | None = None,
        after: int = ...,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Record]:
        """Records of `kind` in the order of first writing; fewer than `limit` if there are no more."""

    def load(self, scope: Scope) -> Partition:
        """The scope ready for ranking, with every write acknowledged before the call, by any process."""

    def waiting(self, limit: int) -> list[Waiting]:
        """Searchable records without a vector, the longest-waiting first."""

    def erase(self, scope: Scope, changes: Sequence[Erasable] | None = None) -> Erased:
        """Destroy records, or with None the whole scope, and verify that they cannot be read back."""

    def scopes(self, deployment: str | None = None) -> list[Scope]:
        """Every scope that has a record, in order of first writing. For operators and workers."""

    def reindex(self, embedding: EmbeddingSpec) -> int:
        """Change the embedding model: all vectors are dropped; returns how many records now wait for one."""

    def check(self) -> Mapping[str, Any]:
        """Facts for `echoic doctor`, such as size and pending records. No contents."""

class BlockingEmbedder(Protocol):
    """`Embedder`, blocking."""

    @property
    def spec(self) -> EmbeddingSpec:
        """Known before `open()`, so that a store can be checked first."""

    @property
    def semantic(self) -> bool:
        """Whether its vectors represent meaning; False for "lexical" (words, spelling, sound)."""

    def open(self) -> None:
        """Prepare it for use."""

    def aclose(self) -> None:
        """Release what `open()` acquired."""

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Vectors of `texts`: float32 [len(texts), dimensions], unit length, in order. Never blocks the loop."""

__all__ = [
    "BlockingAgentExperience",
    "BlockingDeploymentKeys",
    "BlockingEmbedder",
    "BlockingGlobalFacts",
    "BlockingItems",
    "BlockingMemoryService",
    "BlockingOpenConversation",
    "BlockingProposals",
    "BlockingRevocations",
    "BlockingSpeculation",
    "BlockingStore",
    "BlockingUserMemory",
]
