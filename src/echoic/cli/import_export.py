"""`echoic import` and `echoic export`: counted first, then written in batches; importing again adds nothing.

An import is stored as data of one user and read like live turns.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from echoic.checks import not_ahead
from echoic.cli.asyncio_runner import Desk, reading, run, run_apart
from echoic.cli.command import command
from echoic.cli.importers import READERS, format_of, reader_of
from echoic.cli.importers.base import (
    Directed,
    Exported,
    ImportedMemory,
    ImportedTurn,
    ImportSource,
    Item,
    Reader,
    Skipped,
    export_of,
    source_at,
    tell_skipped,
)
from echoic.cli.importers.products import WRITERS, written_for
from echoic.cli.output import DONE, PARTLY, CommandResult, Output, ProgressReport, write_private
from echoic.cli.settings import Settings, settings_of
from echoic.cli.upkeep import embed_waiting
from echoic.errors import InvalidInput, brief
from echoic.types import MAX_FREE_DIRECTIVES, PRESETS, Turn

if TYPE_CHECKING:
    from echoic.memory.service import MemoryService
    from echoic.memory.user import UserMemory
    from echoic.types import Category, Memory

BATCH = 200
"""Items per write to the store."""
LISTED = 1000
"""Reasons that are kept for skipped items; the count is always complete."""
NAMED = 5
"""Users that are named of those for whom items are imported."""


@dataclass(slots=True)
class Survey:
    """Counts of the contents of a source."""

    turns: int = 0
    memories: int = 0
    values: int = 0
    """Items of an integrator's own kind, such as those of a LangGraph store."""
    directives: int = 0
    conversations: set[tuple[str | None, str]] = field(default_factory=set)
    users: Counter[str | None] = field(default_factory=Counter)
    """Items by the user that the source names."""
    skipped: int = 0
    reasons: list[Skipped] = field(default_factory=list)

    @property
    def items(self) -> int:
        return self.users.total()

    def add(self, item: Item) -> None:
        if isinstance(item, Skipped):
            self.skipped += 1
            self.reasons += [item] if self.skipped <= LISTED else []
            return
        self.users[item.user] += 1
        if isinstance(item, ImportedTurn):
            self.turns += 1
            self.conversations.add((item.user, item.turn.conversation))
        elif isinstance(item, ImportedMemory):
            self.memories += 1
        elif isinstance(item, Directed):
            self.directives += 1
        else:
            self._add_export(item)

    def refuse(self, item: ImportedMemory | Directed | Exported, reason: str) -> None:
        """Count `item`, which was added, as skipped instead."""
        self.add(Skipped(where=item.where, reason=reason))
        if isinstance(item, Directed):
            self.directives -= 1
        else:
            self.memories -= 1 if isinstance(item, ImportedMemory) else _memories_in(item)

    def _add_export(self, item: Exported) -> None:
        conversations = item.document.get("conversations")
        self.memories += _memories_in(item)
        values = item.document.get("items")
        self.values += len(values) if isinstance(values, list) else 0
        for each in conversations if isinstance(conversations, list) else []:
            if isinstance(each, Mapping):
                self.conversations.add((item.user, str(each.get("id"))))
                turns = each.get("turns")
                self.turns += len(turns) if isinstance(turns, list) else 0


def _memories_in(item: Exported) -> int:
    memories = item.document.get("memories")
    return len(memories) if isinstance(memories, list) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """The user under whom items are stored."""

    user: str
    chosen: bool
    """Whether the user was given, rather than left at the default."""

    def check(self, survey: Survey) -> None:
        """Raise `InvalidInput` rather than merge several users of a source into one."""
        named = sorted(name for name in survey.users if name is not None)
        if self.chosen and len(named) > 1:
            raise InvalidInput(
                f"the file holds {len(named)} users ({', '.join(named[:3])}, …), who must not be merged into "
                f"{self.user!r}: leave out --user and ECHOIC_USER to import each under their own name"
            )

    def of(self, named: str | None) -> str:
        """The given user, else the one the source names, else the default."""
        return self.user if self.chosen or named is None else named

    def told(self, survey: Survey) -> str:
        """The first users under whom the items are stored."""
        users = sorted({self.of(name) for name in survey.users})
        more = f" and {len(users) - NAMED} more" if len(users) > NAMED else ""
        return f"user{'s' * (len(users) > 1)} {', '.join(map(brief, users[:NAMED]))}{more}"


class Importer:
    """Writes items to a memory, and counts what was new."""

    def __init__(self, memory: MemoryService, deployment: str, whose: Whose) -> None:
        self._memory = memory
        self._deployment = deployment
        self._whose = whose
        self._known: dict[str, set[str]] = {}
        self._past: dict[str, list[Memory]] = {}
        self._over: set[Any] = set()
        """Ids of memories that the source itself says are over."""
        self._talks: dict[tuple[str, str], None] = {}
        self.new = 0
        """Memories, turns and conversations that were not stored before."""
        self.learned = 0
        """Memories that the rules extracted from the turns."""
        self.refused: list[tuple[ImportedMemory | Directed | Exported, str]] = []
        """Items that the memory refused, such as instructions to the model, and why."""

    async def take_in(self, items: Iterable[Item], progress: ProgressReport, total: int) -> None:
        """Store `items`, leaving known ones unchanged. A batch is durable before the next is read.

        Raises:
            InvalidInput: an export, the only item, cannot be read.
            StoreUnavailable: earlier batches are stored; import again to continue.
        """
        done = 0
        readable = ((n, item) for n, item in enumerate(items, 1) if not isinstance(item, Skipped))
        while batch := list(islice(readable, BATCH)):
            for user in dict.fromkeys(self._whose.of(item.user) for _, item in batch):
                mine = {number: item for number, item in batch if self._whose.of(item.user) == user}
                refused = await self._keep(self._user(user), mine)
                if total == 1 and any(isinstance(mine[number], Exported) for number in refused):
                    raise InvalidInput(*refused.values())
                for number, why in refused.items():
                    if not isinstance(item := mine[number], ImportedTurn):
                        self.refused.append((item, why))
            done += len(batch)
            progress(done, total)

    async def listen(self, progress: ProgressReport) -> None:
        """Extract memories from the imported conversations, as at the end of a call."""
        for number, (user, name) in enumerate(self._talks, 1):
            conversation = await self._user(user).conversation(name)
            self.learned += len((await conversation.learn()).kept)
            progress(number, len(self._talks))

    async def _keep(
        self, user: UserMemory, items: Mapping[int, ImportedTurn | ImportedMemory | Directed | Exported]
    ) -> dict[int, str]:
        """Store the items of one user, by number; returns why some were refused."""
        name = user.scope.user or ""
        turns = [item.turn for item in items.values() if isinstance(item, ImportedTurn)]
        if turns:
            document = export_of(user=name, conversations=list(_conversations(turns)))
            self.new += await user.restore(document)
            self._talks |= dict.fromkeys((name, turn.conversation) for turn in turns)
        refused: dict[int, str] = {}
        for number, item in items.items():
            try:
                if isinstance(item, Exported):
                    self.new += await user.restore(item.document)
                    self._over |= {memory.get("id") for memory in item.document.get("memories", ())}
                elif isinstance(item, Directed):
                    self.new += await _directed(user, item)
            except InvalidInput as error:
                refused[number] = str(error)
        known = {number: item for number, item in items.items() if isinstance(item, ImportedMemory)}
        return {**refused, **(await self._remember(user, known) if known else {})}

    async def _remember(self, user: UserMemory, items: Mapping[int, ImportedMemory]) -> dict[int, str]:
        name = user.scope.user or ""
        if name not in self._known:
            self._known[name] = {memory.id for memory in await user.facts()}
            self._past[name] = [memory for memory in await user.past() if memory.key is None]
        before = self._known[name]
        past = {(m.text, m.category) for m in self._past[name] if m.id not in self._over}
        # concurrently: the store's writer commits waiting writes together
        storing = [_remembered(user, item, past) for item in items.values()]
        done = await asyncio.gather(*storing, return_exceptions=True)
        refused = {n: str(e) for n, e in zip(items, done, strict=True) if isinstance(e, InvalidInput)}
        for error in done:
            if isinstance(error, BaseException) and not isinstance(error, InvalidInput):
                raise error
        kept = {memory_id for memory_id in done if isinstance(memory_id, str)}
        self._known[name] = before | kept
        self.new += len(kept - before)
        return refused

    def _user(self, user: str) -> UserMemory:
        return self._memory.user(user, self._deployment)


async def _directed(user: UserMemory, item: Directed) -> int:
    """Set a directive that is not set yet, since newer ones win; returns how many are new: 1 or 0."""
    there = await user.directives()
    if item.name in {*PRESETS, "language"}:
        known = getattr(there, item.name) is not None
    else:
        known = item.name in there.free or len(there.free) >= MAX_FREE_DIRECTIVES
    if not known:
        await user.set_directives(**{item.name: item.text})
    return int(not known)


async def _remembered(user: UserMemory, item: ImportedMemory, past: set[tuple[str, Category]]) -> str | None:
    """The id of the memory that stores `item`; None if it was deleted or corrected: its text is in `past`."""
    if item.key is None:
        from echoic.secrets import mask

        if not past.isdisjoint((text, item.category) for text in (item.text, mask(item.text).text)):
            return None
        return (await user.remember(item.text, category=item.category, said_at=item.said_at)).id
    # a correction or deletion since then wins over an older file
    versions = await user.history(item.key)
    return versions[-1].id if versions else (await user.set(item.key, item.text, category=item.category)).id


def _conversations(turns: Sequence[Turn]) -> Iterator[dict[str, Any]]:
    """`turns` as an Echoic export has them, so that a conversation keeps its times."""
    times = not_ahead([turn.said_at for turn in turns], datetime.now(UTC))  # as in `append`
    turns = [replace(turn, said_at=at) for turn, at in zip(turns, times, strict=True)]
    for name in dict.fromkeys(turn.conversation for turn in turns):
        said = [turn for turn in turns if turn.conversation == name]
        yield {
            "id": name,
            "status": "completed",
            "started_at": min(turn.said_at for turn in said).isoformat(),
            "updated_at": max(turn.said_at for turn in said).isoformat(),
            "turns": [
                {
                    "id": turn.id,
                    "speaker": turn.speaker,
                    "text": turn.text,
                    "said_at": turn.said_at.isoformat(),
                    "heard": turn.heard,
                    "confidence": turn.confidence,
                }
                for turn in said
            ],
        }


@command("import")
@click.argument("file")
@click.option(
    "--from",
    "kind",
    type=click.Choice(["auto", *READERS]),
    default="auto",
    show_default=True,
    help="The format of FILE.",
)
@click.option(
    "--facts", is_flag=True, help="LoCoMo: also import its observations, which a model wrote, as facts."
)
@click.option("--dry-run", is_flag=True, help="Only count the contents; no store is opened.")
@click.pass_context
def import_command(ctx: click.Context, file: str, kind: str, facts: bool, dry_run: bool) -> int:
    """Import turns, memories, or an Echoic export.

    FILE "-" is stdin.

    \b
    turns      JSON lines: speaker, text; optional said_at, conversation, id, heard, confidence
    locomo     the LoCoMo data set: a user for each sample
    bodhi      <userId>.json from Bodhi's memory store, or a folder of them
    mem0       the output of mem0's get_all or export
    zep        facts (edges of a graph) and messages of threads, as Zep's clients return them
    langgraph  items of a store, as Item.dict() returns them, or rows of its table
    chatgpt    conversations.json from ChatGPT's data export
    letta      an agent file (.af), or lists of passages, blocks or messages
    echoic     the output of `echoic export`

    The data is stored under the user that --user or ECHOIC_USER names, otherwise under the user the file
    names. Importing the same file again adds nothing. Items that cannot be read, or that the memory refuses,
    are skipped and reported, and the exit code is 3.
    """  # noqa: D301 - the \\b is click's
    source = source_at(file)
    name = format_of(source) if kind == "auto" else kind
    reader = reader_of(name, facts=facts)
    settings = settings_of(ctx)
    whose = Whose(user=settings.user, chosen="user" in settings.named)

    async def look(_settings: Settings, output: Output) -> CommandResult:
        survey = _surveyed(source, reader, output)
        whose.check(survey)
        return _result(name, survey, {})

    async def work(desk: Desk) -> CommandResult:
        survey = _surveyed(source, reader, desk.output)
        whose.check(survey)
        intake = Importer(desk.memory, desk.settings.deployment, whose)
        with desk.output.progress("storing") as progress:
            await intake.take_in(reader(source), progress, survey.items)
        with desk.output.progress("learning") as progress:
            await intake.listen(progress)
        for item, reason in intake.refused:
            survey.refuse(item, reason)
        skipped = [Skipped(where=item.where, reason=reason) for item, reason in intake.refused]
        tell_skipped(desk.output, skipped, len(skipped))
        if survey.users:
            desk.output.say(f"imported for {whose.told(survey)}")
        waiting = await embed_waiting(desk.memory, desk.output, "embedding")
        return _result(name, survey, {"new": intake.new, "learned": intake.learned, "waiting": waiting})

    return run_apart(ctx, look) if dry_run else run(ctx, work, one_user=False)


def _surveyed(source: ImportSource, reader: Reader, output: Output) -> Survey:
    survey = Survey()
    with output.progress(f"reading {source.name}") as progress:
        for number, item in enumerate(reader(source), 1):
            survey.add(item)
            if number % BATCH == 0:
                progress(number)
    tell_skipped(output, survey.reasons, survey.skipped)
    return survey


def _result(name: str, survey: Survey, written: dict[str, int]) -> CommandResult:
    counts: dict[str, Any] = {
        "format": name,
        "users": len(survey.users),
        "conversations": len(survey.conversations),
        "turns": survey.turns,
        "memories": survey.memories,
        "values": survey.values,
        "skipped": survey.skipped,
        **written,
    }
    text = "\n".join(f"{what}\t{value}" for what, value in counts.items())
    data = {**counts, "reasons": survey.reasons}
    code = PARTLY if survey.skipped else DONE
    return CommandResult(data=data, text=text, count=survey.turns + survey.memories, code=code)


STDOUT = "-"


@command("export")
@click.argument("file", default=STDOUT)
@click.option(
    "--to",
    "layout",
    type=click.Choice(["echoic", *WRITERS]),
    default="echoic",
    show_default=True,
    help="The format to write.",
)
@reading
async def export_command(desk: Desk, file: str, layout: str) -> CommandResult:
    """Export what is stored about the user, as JSON.

    The export holds every version of every memory, conversations with turns and results, directives and
    items, and `echoic import` restores all of these. It also lists the memories that became global without
    approval, which import leaves out. Records of calls, consent, a hold, telephone lines and the PIN are not
    in it. Without FILE, or with "-", it goes to stdout. A file is written atomically, and only its owner can
    read it.

    With --to, what another product can hold is written as it lays it out: current memories as sentences for
    mem0, LangGraph and Letta (passages); facts with their history, and messages, for Zep; turns as JSON
    lines.
    """
    exported = await desk.user.export()
    count = len(exported["memories"]) + len(exported["conversations"])
    if layout == "echoic":
        data, text = exported, json.dumps(exported, ensure_ascii=False, indent=1)
    else:
        data, text = written_for(layout, exported)
    if file == STDOUT:
        return CommandResult(data=data, text=text, count=count)
    path = Path(file)
    write_private(path, f"{text}\n".encode())
    desk.output.say(f"exported user {desk.settings.user!r} to {path}")
    counts = {
        "file": str(path),
        "memories": len(exported["memories"]),
        "conversations": len(exported["conversations"]),
        "turns": sum(len(conversation["turns"]) for conversation in exported["conversations"]),
    }
    return CommandResult(data=counts, count=count)
