"""Operators' commands: global facts, proposals, and the lessons agents learned."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

import click

from echoic.cli.asyncio_runner import Desk, run, text_or_stdin, with_memory
from echoic.cli.command import CommandGroup
from echoic.cli.importers.base import FLAWS, ImportSource, Skipped, reason_of, source_at, tell_skipped
from echoic.cli.memories import category_option, context_option
from echoic.cli.output import DONE, PARTLY, CommandResult, applying, listing, moment
from echoic.errors import InvalidInput, brief
from echoic.types import MAX_TEXT_BYTES, Category, Memory, checked_category, checked_name, checked_text

if TYPE_CHECKING:
    from echoic.memory.experience import AgentExperience
    from echoic.memory.global_facts import GlobalFact, GlobalFacts
    from echoic.memory.proposals import Proposals

by_option = click.option(
    "--by", metavar="NAME", help="Who decides; recorded in `echoic proposals decisions`."
)


@click.group("global", cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def global_group(ctx: click.Context) -> int:
    """List, write, edit or withdraw global memories (operators).

    Every user of the deployment can recall a global memory. Without a subcommand, lists them.
    """
    return DONE if ctx.invoked_subcommand else cast("int", ctx.invoke(list_global))


@global_group.command("list")
@with_memory
async def list_global(desk: Desk) -> CommandResult:
    """Print the deployment's global memories, oldest first.

    Columns: id, key, text, since when, and how it became global: written by an operator, approved by one, or
    automatically.
    """
    known = await _facts(desk).list()
    if not known:
        desk.output.say(f"nothing is global in deployment {desk.settings.deployment!r}")
    rows = [(m.id, m.key or "", applying(m.text, m), moment(m.valid_from), _how(m)) for m in known]
    return listing(known, "ID KEY TEXT SINCE HOW", rows)


@global_group.command("set")
@click.argument("key", required=False)
@click.argument("value", required=False)
@click.option(
    "--from",
    "file",
    metavar="FILE",
    help='Write every fact of FILE instead ("-" is stdin): one a line, as text, Markdown bullets or JSON.',
)
@category_option
@context_option
@by_option
@click.pass_context
def set_global(
    ctx: click.Context,
    key: str | None,
    value: str | None,
    *,
    file: str | None,
    category: Category,
    context: str | None,
    by: str | None,
) -> int:
    """Write VALUE under KEY for every user, word for word.

    Setting a key again edits it; the earlier version becomes history. VALUE "-" reads stdin.

    With --from, each line of FILE is a fact. A line of JSON may have key, text, category and context. Writing
    the same file again changes nothing, and global memories that are not in it stay. Lines that cannot be
    read are skipped and reported, and the exit code is 3.
    """
    if file is not None:
        if key is not None or context is not None or category != "fact":
            raise click.UsageError("--from takes key, text, category and context from the file", ctx)
        return _fill(ctx, file, by)
    if key is None or value is None:
        raise click.UsageError("give KEY and VALUE, or --from FILE", ctx)
    text = text_or_stdin(value)

    async def work(desk: Desk) -> CommandResult:
        kept = await _facts(desk).set(key, text, category=category, context=context, by=by)
        desk.output.say(f"{kept.key!r} is global in deployment {desk.settings.deployment!r}: {_why(kept)}")
        return CommandResult(data=kept, count=1)

    return run(ctx, work)


@global_group.command("withdraw")
@click.argument("memory_id", metavar="ID")
@by_option
@with_memory
async def withdraw_global(desk: Desk, memory_id: str, by: str | None) -> CommandResult:
    """Withdraw a global memory.

    The next recall no longer finds it, and nothing becomes global automatically under its key again.
    """
    gone = await _facts(desk).withdraw(memory_id, by=by)
    named = repr(gone.key) if gone.key is not None else f"the fact {gone.id}"
    desk.output.say(f"{named} is no longer global in deployment {desk.settings.deployment!r}")
    return CommandResult(data=gone, count=1)


def _fill(ctx: click.Context, file: str, by: str | None) -> int:
    read = list(read_facts(source_at(file)))
    facts = [fact for fact in read if not isinstance(fact, Skipped)]
    skipped = [fact for fact in read if isinstance(fact, Skipped)]

    async def work(desk: Desk) -> CommandResult:
        filled = await _facts(desk).fill(facts, by=by)
        tell_skipped(desk.output, skipped, len(skipped))
        counts = {
            "new": filled.new,
            "changed": filled.changed,
            "unchanged": filled.unchanged,
            "skipped": len(skipped),
        }
        text = "\n".join(f"{what}\t{count}" for what, count in counts.items())
        data = {**counts, "reasons": skipped}
        return CommandResult(data=data, text=text, count=len(facts), code=PARTLY if skipped else DONE)

    return run(ctx, work)


def _facts(desk: Desk) -> GlobalFacts:
    return desk.memory.global_facts(desk.settings.deployment)


def _how(memory: Memory) -> str:
    if memory.author is not None:
        return "automatic"
    return "written" if memory.reason == "operator" else "approved"


def _why(memory: Memory) -> str:
    from echoic.memory.sharing import REASONS

    return REASONS.get(memory.reason or "", "")


# -- a file of facts: one per line, as plain text, Markdown bullets or JSON. Headings, rules, comments and the
# front matter of Markdown are skipped; an indented line continues the bullet above it.

_BULLET: Final = re.compile(r"(?:[-*+\u2022]|[0-9]{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
# A heading, a rule, the border of a table, a fence.
_FIELD: Final = re.compile(rb"[\w-]+[ \t]*:")
"""How front matter begins."""
_NO_FACT: Final = re.compile(r"#{1,6}(?:\s|$)|[-*_=|: ]{3,}$|```|~~~|-$")
_EMPHASIS: Final = re.compile(r"(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1")
_MOST_BYTES: Final = 4 * MAX_TEXT_BYTES
"""Length limit of a line."""
_FIELDS: Final = frozenset({"key", "text", "value", "category", "context"})


def read_facts(source: ImportSource) -> Iterator[GlobalFact | Skipped]:
    """The facts of `source`, in order. A second fact under the same key with another text is skipped."""
    under: dict[str, tuple[int, GlobalFact]] = {}
    for number, line in _lines(source):
        try:
            fact = _fact(line)
            first, known = under.setdefault(fact.key, (number, fact)) if fact.key is not None else (0, fact)
            if known != fact:
                raise InvalidInput(f"its key {brief(fact.key)} is already on line {first}, with another text")
        except FLAWS as error:
            yield Skipped(where=f"line {number}", reason=reason_of(error))
        else:
            yield fact


def _lines(source: ImportSource) -> Iterator[tuple[int, str | bytes]]:
    """The facts in `source`, each with the number of its first line; bytes if they are not text."""
    begun: tuple[int, str] | None = None
    front, comment = _end_of_front_matter(source), False
    with source.open() as stream:
        for number, raw in enumerate(iter(lambda: stream.readline(_MOST_BYTES), b""), 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip()
            except UnicodeDecodeError:
                yield number, raw
                continue
            text = line.strip()
            if number <= front or comment or text.startswith("<!--"):
                comment = number > front and "-->" not in text
                text = "" if number <= front else text.partition("-->")[2].strip()
            bullet = _BULLET.match(text)
            if begun and text and line[0].isspace() and not bullet and not _NO_FACT.match(text):
                begun = begun[0], f"{begun[1]} {text}"
                continue
            if begun:
                yield begun
                begun = None
            if not text or _NO_FACT.match(text):
                continue
            if bullet:
                begun = number, text[bullet.end() :]
            else:
                yield number, text
    if begun:
        yield begun


def _end_of_front_matter(source: ImportSource) -> int:
    """The number of the last line of a leading block between lines "---"; 0 without one."""
    with source.open() as stream:
        for number, raw in enumerate(iter(lambda: stream.readline(_MOST_BYTES), b""), 1):
            text = raw.removeprefix(BOM_UTF8).rstrip()
            if number == 1 and text != b"---":
                break
            if number == 2 and not _FIELD.match(text):  # a rule, and no front matter
                break
            if number > 1 and text in {b"---", b"..."}:
                return number
    return 0


def _fact(line: str | bytes) -> GlobalFact:
    """The fact on one line, or `InvalidInput`."""
    from echoic.memory.global_facts import GlobalFact

    if isinstance(line, bytes):
        raise InvalidInput("it is not UTF-8")
    if line.startswith("{"):
        return _of_json(line)
    return GlobalFact(text=checked_text(_EMPHASIS.sub(r"\2", line), "the fact"))


def _of_json(line: str) -> GlobalFact:
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"it is not JSON at column {error.colno}: {error.msg}") from error
    if not isinstance(fields, dict) or not _FIELDS.issuperset(fields):
        raise InvalidInput(f"it may only have {', '.join(sorted(_FIELDS))}")
    from echoic.memory.global_facts import GlobalFact

    key, context = fields.get("key"), fields.get("context")
    return GlobalFact(
        text=checked_text(fields.get("text", fields.get("value")), "its text"),
        key=None if key is None else checked_name(key, "its key"),
        category=checked_category(fields.get("category", "fact")),
        context=None if context is None else checked_text(context, "its context"),
    )


@click.group("proposals", cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def proposals_group(ctx: click.Context) -> int:
    """List, approve or reject proposed global memories (operators).

    A proposal is something a caller said that is not about a person. Without a subcommand, lists them.
    `echoic global` lists what is global already.
    """
    return DONE if ctx.invoked_subcommand else cast("int", ctx.invoke(list_proposals))


@proposals_group.command("list")
@with_memory
async def list_proposals(desk: Desk) -> CommandResult:
    """Print the proposals that wait for a decision, oldest first.

    Columns: id, key, text as every user would see it, what was redacted, since when.
    """
    waiting = await _proposals(desk).list()
    if not waiting:
        desk.output.say(f"no proposals wait in deployment {desk.settings.deployment!r}")
    rows = [(m.id, m.key or "", m.text, ",".join(m.redacted), moment(m.valid_from)) for m in waiting]
    return listing(waiting, "ID KEY TEXT REDACTED SINCE", rows)


@proposals_group.command("approve")
@click.argument("proposal_id", metavar="ID")
@by_option
@with_memory
async def approve_proposal(desk: Desk, proposal_id: str, by: str | None) -> CommandResult:
    """Make a proposal global.

    It supersedes what was approved under its key before.
    """
    approved = await _proposals(desk).approve(proposal_id, by=by)
    desk.output.say(f"{approved.key!r} is global in deployment {desk.settings.deployment!r}")
    return CommandResult(data=approved, count=1)


@proposals_group.command("reject")
@click.argument("proposal_id", metavar="ID")
@by_option
@with_memory
async def reject_proposal(desk: Desk, proposal_id: str, by: str | None) -> CommandResult:
    """Remove a proposal.

    Its author keeps it as a private memory.
    """
    await _proposals(desk).reject(proposal_id, by=by)
    desk.output.say("rejected; its author keeps it")
    return CommandResult(data={"rejected": proposal_id}, count=1)


@proposals_group.command("decisions")
@with_memory
async def list_decisions(desk: Desk) -> CommandResult:
    """Print every operator's decision about facts and lessons, oldest first.

    Columns: when, who, the decision, fact or lesson, its key or agent, its text.
    """
    decided = await _proposals(desk).decisions()
    if not decided:
        desk.output.say(f"nothing was decided in deployment {desk.settings.deployment!r}")
    rows = [(moment(d.at), d.by, d.what, d.of, d.key, d.text or "") for d in decided]
    return listing(decided, "WHEN BY WHAT OF KEY TEXT", rows)


def _proposals(desk: Desk) -> Proposals:
    return desk.memory.proposals(desk.settings.deployment)


@click.group("lessons", cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def lessons_group(ctx: click.Context) -> int:
    """List, approve, reject or withdraw lessons agents learned (operators).

    A lesson enters a prompt only once you approve it. Without a subcommand, lists them.
    """
    return DONE if ctx.invoked_subcommand else cast("int", ctx.invoke(list_lessons))


@lessons_group.command("list")
@with_memory
async def list_lessons(desk: Desk) -> CommandResult:
    """Print the lessons of every agent of the deployment.

    Columns: id, agent, state, how often it was taught, kind, text.
    """
    deployment = desk.settings.deployment
    agents = await desk.memory.agents_with_lessons(deployment)
    learned = [await desk.memory.experience(agent, deployment).get() for agent in agents]
    if not learned:
        desk.output.say(f"no agent learned anything in deployment {deployment!r}")
    rows = [
        (lesson.id, known.agent, lesson.state, str(lesson.times), lesson.kind, lesson.text)
        for known in learned
        for lesson in known.lessons
    ]
    return listing(learned, "ID AGENT STATE TIMES KIND TEXT", rows)


@lessons_group.command("approve")
@click.argument("lesson_id", metavar="ID")
@by_option
@with_memory
async def approve_lesson(desk: Desk, lesson_id: str, by: str | None) -> CommandResult:
    """Put a lesson into its agent's prompt, for every caller."""
    lesson = await (await _learned(desk, lesson_id)).adopt(lesson_id, by=by)
    desk.output.say("approved; it is in the agent's next prompt")
    return CommandResult(data=lesson, count=1)


@lessons_group.command("reject")
@click.argument("lesson_id", metavar="ID")
@by_option
@with_memory
async def reject_lesson(desk: Desk, lesson_id: str, by: str | None) -> CommandResult:
    """Destroy a lesson. If it is taught again, it waits for a decision again."""
    await (await _learned(desk, lesson_id)).remove(lesson_id, by=by)
    desk.output.say("rejected")
    return CommandResult(data={"rejected": lesson_id}, count=1)


@lessons_group.command("withdraw")
@click.argument("lesson_id", metavar="ID")
@by_option
@with_memory
async def withdraw_lesson(desk: Desk, lesson_id: str, by: str | None) -> CommandResult:
    """Remove a lesson from its agent's prompt, however often it is taught again."""
    lesson = await (await _learned(desk, lesson_id)).withdraw(lesson_id, by=by)
    desk.output.say("withdrawn; it is no longer in any prompt")
    return CommandResult(data=lesson, count=1)


async def _learned(desk: Desk, lesson_id: str) -> AgentExperience:
    """The experience of the agent that has this lesson, or `InvalidInput`."""
    for agent in await desk.memory.agents_with_lessons(desk.settings.deployment):
        learned = desk.memory.experience(agent, desk.settings.deployment)
        if any(lesson.id == lesson_id for lesson in (await learned.get()).lessons):
            return learned
    raise InvalidInput("no lesson has this id; `echoic lessons` lists them")
