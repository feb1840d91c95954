"""Sixteen conversations in which things are said, echoed, corrected, taken back and forgotten.

After each step: what every way of looking shows of one word. `python tests/memory/forgetting_story.py` writes the
table into docs/forgetting.md.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import echoic
from echoic.capability.tools import MemoryTools
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.session.call_record import Exchange, found_in
from echoic.session.turn_recall import RecalledHit, RecallTrace
from echoic.types import Turn

LOOKS = ("query", "brief", "block", "tool", "export", "why", "bytes")
RECALL = LOOKS[:4]
PAGE = Path(__file__).parents[2] / "docs" / "forgetting.md"
BEGIN, END = "<!-- table -->", "<!-- end of table -->"

Do = Callable[[UserMemory], Awaitable[object]]


@dataclass(frozen=True)
class Step:
    """What happens, and what is gone after it."""

    does: str
    """As it stands in the table: what is said, "agent: …", or a call."""
    gone: str = ""
    """"" : it is told; "recall": no recall tells it; "everywhere": no byte does."""
    run: Do | None = None


@dataclass(frozen=True)
class Story:
    """One conversation about one word."""

    name: str
    word: str
    """What is looked for, as a word by itself."""
    asks: str
    stays: str
    """A word of the same conversation that every recall of `stays_asks` still finds at the end."""
    stays_asks: str
    steps: tuple[Step, ...]


def said(text: str, gone: str = "") -> Step:
    return Step(text, gone)


def forget_key(key: str) -> Step:
    return Step(f'`forget(key="{key}")`', "everywhere", lambda ana: ana.forget(key=key))


def delete_key(key: str) -> Step:
    return Step(f'`delete("{key}")`', "recall", lambda ana: ana.delete(key))


async def _forget_asked(ana: UserMemory) -> object:
    turns = [turn for c in await ana.conversations() for turn in await (await ana.conversation(c.id)).turns()]
    asked = [turn for turn in turns if turn.speaker == "user" and await ana.asked_to_forget(turn)]
    return await ana.forget(asked=asked[-1].id)


FORGET_ASKED = Step("`forget(asked=…)`, once the caller agreed", "everywhere", _forget_asked)
PORTO = ("Porto", "Where do I come from?")
FROM_PORTO = said("I come from Porto.")

STORIES = (
    Story("a name, by its key", "quillonda", "What is my sister called?", *PORTO, (
        FROM_PORTO, said("My sister is called Quillonda."), said("agent: Quillonda, noted."),
        forget_key("sister_name"),
    )),
    Story("a name, taken back", "quillonda", "What is my sister called?", *PORTO, (
        FROM_PORTO, said("My sister is called Quillonda."), said("agent: Your sister is called Quillonda."),
        delete_key("sister_name"), forget_key("sister_name"),
    )),
    Story("a home, corrected", "leeds", "Where do I live now?", *PORTO, (
        FROM_PORTO, said("I live in Leeds."), said("agent: Leeds, a fine place to live."),
        said("I live in York now."), forget_key("home"),
    )),
    Story("in speech, by a sentence", "quillonda", "What is my sister called?", *PORTO, (
        FROM_PORTO, said("My sister is called Quillonda."),
        said("Please forget that my sister is called Quillonda.", "recall"),
        said("agent: Done, your sister Quillonda is forgotten.", "recall"), FORGET_ASKED,
    )),
    Story("forget that", "parrots", "Who is scared of parrots?", *PORTO, (
        FROM_PORTO, said("It rained all morning."), said("Blue parrots scare my neighbour Olga."), said("agent: Blue parrots scare Olga, I see."),
        said("Forget that, please.", "recall"), FORGET_ASKED,
    )),
    Story("rub it out", "gin", "How much gin do I drink?", *PORTO, (
        FROM_PORTO, said("I drink two bottles of gin a day."), said("agent: Two bottles of gin is a lot."),
        said("Could you not have that written? Rub it out.", "recall"),
        said("agent: The gin is off your file.", "recall"), FORGET_ASKED,
    )),
    Story("by its subject", "henk", "Who did I divorce?", *PORTO, (
        FROM_PORTO, said("My divorce from Henk cost me the house."), said("agent: A divorce is hard."),
        said("What is the weather like?"),
        said("Please erase what I told you about my divorce.", "recall"), FORGET_ASKED,
    )),
    Story("a matter", "tram", "Where did I faint, at the tram?", *PORTO, (
        FROM_PORTO, said("I fainted at the tram stop."), said("agent: At the tram stop! Did you see a doctor?"),
        said("Yes, all is well."),
        said("That business with the tram stop. I don't want that kept.", "recall"), FORGET_ASKED,
    )),
    Story("a number", "0172", "What is my phone number?", *PORTO, (
        FROM_PORTO, said("My phone number is 555 0172 99."), said("agent: 555 0172 99, noted."),
        said("Can you delete my phone number?", "recall"), FORGET_ASKED,
    )),
    Story("off the record", "landlord", "Who do I hate, my landlord?", *PORTO, (
        FROM_PORTO, said("Off the record, I hate my landlord Henk.", "recall"),
    )),
    Story("said again", "parrots", "Who fears blue parrots?", *PORTO, (
        FROM_PORTO, said("My neighbour Olga fears blue parrots."),
        said("What I told you about Olga and the parrots, wipe that.", "recall"), FORGET_ASKED,
        said("My neighbour Olga fears blue parrots."),
    )),
    Story("what only sounds like it", "quill", "Who is my dentist?", *PORTO, (
        FROM_PORTO, said("My dentist is called Quill."), said("I forget his first name."),
        said("Don't forget my appointment with him."), said("Forget it, never mind."),
    )),
    Story("the last thing said", "hernia", "What do I have, a hernia?", *PORTO, (
        FROM_PORTO, said("I have a hernia."), said("agent: A hernia, I see."),
        said("Erase the last thing I said.", "recall"), FORGET_ASKED,
    )),
    Story("one of two who did the same", "quillonda", "Who moved to Oslo?", "Jonas", "Who else moved to Oslo?", (
        said("My friend Jonas moved to Oslo too."), said("My sister Quillonda moved to Oslo."),
        said("agent: Quillonda in Oslo, how nice."),
        said("Forget what I said about Quillonda.", "recall"), FORGET_ASKED,
    )),
    Story("kept out of the files", "baby", "Are we trying for a baby?", *PORTO, (
        FROM_PORTO, said("We have been trying for a baby since June."), said("agent: I wish you luck."),
        said("That bit about trying for a baby, keep it out of your files.", "recall"), FORGET_ASKED,
    )),
    Story("what only asks about it", "quill", "Who is my dentist?", *PORTO, (
        FROM_PORTO, said("My dentist is called Quill."),
        said("What happens if I ask you to forget that my dentist is called Quill?"),
        said("He told me to forget about Quill."),
    )),
)  # fmt: skip


async def told(
    memory: MemoryService, ana: UserMemory, story: Story, ids: set[str], folder: Path
) -> dict[str, bool]:
    """By way of looking, whether it shows the word."""
    hits = [
        hit for asked in (story.asks, story.word) for hit in await ana.query(asked, limit=50, min_relevance=0)
    ]
    ids |= {one.id for hit in hits for one in (hit.turn, hit.memory) if one is not None}
    tools = MemoryTools(ana, lambda: None, lambda: None, timeout_s=30, changed=_nothing, min_relevance=0)
    now = datetime.now(UTC)
    found = tuple(
        RecalledHit(id=name, kind="turn", score=1.0, ranks={}, fate="shown") for name in sorted(ids)
    )
    recall = RecallTrace(query=story.asks, outcome="complete", found=found, at=now)
    exchange = Exchange(number=1, agent="a", at=now, recall=recall)
    texts = {
        "query": " ".join(f"{h.text} {h.turn.heard_text if h.turn else ''} {h.memory or ''}" for h in hits),
        "brief": (await ana.brief(story.asks)).text,
        "block": (await ana.block(moment=story.asks)).text,
        "tool": str((await tools.agent_memory("query", query=story.asks))["result"]),
        "export": str(await ana.export()),
        "why": " ".join(answer.text for answer in await found_in(ana.backing_store, ana.scope, exchange)),
    }
    await memory.settle(20)
    stored = b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    texts["bytes"] = stored.decode("latin-1")
    word = re.compile(rf"\b{story.word}\b", re.IGNORECASE)
    # what the question itself says is no answer
    return {look: bool(word.search(text.replace(story.asks, ""))) for look, text in texts.items()}


async def _nothing() -> None:
    pass


async def play(story: Story, folder: Path) -> list[tuple[Step, dict[str, bool]]]:
    """Every step, and what is shown after it; the last row is of what must stay."""
    rows = []
    async with echoic.open(f"sqlite:///{folder}/echoic.db", embedder="lexical") as memory:
        ana, ids = memory.user("ana"), set[str]()
        call = await ana.conversation("call")
        for step in story.steps:
            if step.run is not None:
                await step.run(ana)
            else:
                speaker, _, words = step.does.rpartition("agent: ")
                await call.append(
                    Turn(speaker="agent" if "agent: " in step.does else "user", text=words or speaker)
                )
                await call.learn()
            rows.append((step, await told(memory, ana, story, ids, folder)))
        hits = await ana.query(story.stays_asks, limit=50, min_relevance=0)
        assert story.stays in str(hits), f"{story.name}: {story.stays} went too"
    return rows


_PLAYED: dict[str, list[tuple[Step, dict[str, bool]]]] = {}


async def played(story: Story) -> list[tuple[Step, dict[str, bool]]]:
    """What became of a story: it is played once in a process."""
    if story.name not in _PLAYED:
        with TemporaryDirectory() as name:
            _PLAYED[story.name] = await play(story, Path(name))
    return _PLAYED[story.name]


async def table() -> str:
    """All of them, as Markdown."""
    lines = [f"| | {' | '.join(LOOKS)} |", f"|---|{':-:|' * len(LOOKS)}"]
    for number, story in enumerate(STORIES, 1):
        lines.append(f'| **{number}. {story.name}**: of "{story.word}" | {" | ".join([""] * len(LOOKS))} |')
        for step, shown in await played(story):
            cells = " | ".join("tells" if shown[look] else "–" for look in LOOKS)
            lines.append(f"| {step.does} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    made = f"{before}{BEGIN}\n{asyncio.run(table())}\n{END}{rest.partition(END)[2]}"
    if "--print" in sys.argv:
        sys.stdout.write(made)
    else:
        PAGE.write_text(made)
