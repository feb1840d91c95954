"""Speculation: is the answer there when the last word ends?

    python -m benchmarks.speculation --data dev.json      # or ECHOIC_LOCOMO=dev.json

LoCoMo's questions (snap-research/LoCoMo, CC BY-NC 4.0, not part of Echoic) are spoken at 150 words a minute
to the service as it ships: SQLite, the local encoder, `UserMemory.listen`. A recogniser shows a word when a
share of it has been spoken; the final transcript comes when the last word ends. The clock is that of the
talk: it jumps over silence, and where anything works it goes on by the processor time that the work really
takes. Several callers share one loop, one encoder and one core.

`ready`: the final was answered by what was found before. `right`: with the same first five, in the same
order, as the same question asked anew. `added_delay`: from the end of the last word to the answer, ready or
not. Two pacings of the end: the final comes `silence` after the last word, as a detector ends a turn that has
heard so much silence; or at once (0 ms), which with words shown only when they have ended (100 %) leaves no
time at all: what is measured then is the cost of one recall of new words.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks import machine
from benchmarks.locomo import Conversation, load
from echoic.embedding import embedder_from
from echoic.embedding.base import CachedEmbedder
from echoic.memory.service import MemoryService
from echoic.memory.user import UserMemory
from echoic.stores import store_from
from echoic.types import Recall

WORDS_A_MINUTE = 150
WORD_S = 60 / WORDS_A_MINUTE
PAUSE_S = (0.5, 3.0)
"""Between two questions of a caller, so that callers do not speak in step."""
SHOWN = (0.5, 1.0)
SILENCES_MS = (0, 200)
"""OpenAI's detector waits for 500 ms unless told otherwise; the quickest ones of cascaded agents for about
200."""
CALLERS = (1, 8)
LIMIT = 5
SEED = 7


class TalkLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to what is due next while nothing works; work takes the time it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.jumping = False
        self._skipped_s = 0.0
        self._working = 0  # pieces of work in threads
        self._wrap = asyncio.wrap_future
        # what every result of another thread comes through: executors, the encoder's thread, the store's
        asyncio.wrap_future = asyncio.futures.wrap_future = self._wrapped

    def time(self) -> float:
        # of this process, all threads together: what else the machine does is not part of the talk
        return process_time() + self._skipped_s

    def _wrapped(self, future: Any, *, loop: asyncio.AbstractEventLoop | None = None) -> asyncio.Future[Any]:
        wrapped = self._wrap(future, loop=loop)
        self._working += 1
        wrapped.add_done_callback(self._worked)
        return wrapped

    def _worked(self, _future: asyncio.Future[Any]) -> None:
        self._working -= 1

    def _run_once(self) -> None:
        due = [timer._when for timer in self._scheduled if not timer._cancelled]  # type: ignore[attr-defined]
        if due and self.jumping and not self._ready and not self._working:  # type: ignore[attr-defined]
            self._skipped_s += max(0.0, min(due) - self.time())
        super()._run_once()  # type: ignore[misc]


@dataclass
class Tally:
    """One setting's figures, question by question."""

    ready: list[bool] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)
    words: int = 0
    searches: int = 0
    leaks: int = 0

    def summary(self) -> dict[str, Any]:
        both = [ready and right for ready, right in zip(self.ready, self.right, strict=True)]
        return {
            "questions": len(self.ready),
            "ready": _percent(self.ready),
            "right": _percent(self.right),
            "ready and right": _percent(both),
            "added_delay": machine.percentiles(self.delays_s),
            "words": self.words,
            "searches": self.searches,
            "leaks": self.leaks,
        }


def _percent(of: Sequence[bool]) -> float:
    return round(100 * sum(of) / len(of), 1)


def _ids(recall: Recall) -> list[str]:
    return [hit.memory.id if hit.memory else hit.turn.id if hit.turn else "" for hit in recall.hits]


@dataclass(frozen=True)
class Pacing:
    """How a recogniser keeps up with who speaks."""

    shown: float
    """Of each word, the share after which it is shown."""
    silence_ms: int
    """From the end of the last word to the final."""

    def __str__(self) -> str:
        return f"a word shown at {self.shown:.0%}, the end {self.silence_ms} ms after the last"


async def _speak(
    user: UserMemory, questions: Sequence[str], pacing: Pacing, draw: random.Random, tally: Tally
) -> None:
    async with user.listen(limit=LIMIT) as listening:
        for question in questions:
            await asyncio.sleep(draw.uniform(*PAUSE_S))
            words = question.split()
            for spoken in range(1, len(words) + 1):
                await asyncio.sleep(WORD_S * pacing.shown)
                listening.partial(" ".join(words[:spoken]))
                await asyncio.sleep(WORD_S * (1 - pacing.shown))
            await asyncio.sleep(pacing.silence_ms / 1000)
            before = listening.statistics.ready
            recall = await listening.final(question)
            tally.ready.append(listening.statistics.ready > before)
            tally.delays_s.append(listening.statistics.added_delay_ms / 1000)
            tally.leaks += sum(hit.scope.user != user.scope.user for hit in recall.hits)
            tally.right.append(_ids(recall) == _ids(await user.recall(question, limit=LIMIT)))
        tally.words += listening.statistics.partials
        tally.searches += listening.statistics.searches


async def _setting(
    service: MemoryService, asked: Sequence[tuple[str, str]], callers: int, pacing: Pacing
) -> dict[str, Any]:
    """`asked`, (user, question), shared among `callers` who speak at the same time."""
    tally = Tally()

    async def call(number: int) -> None:
        draw = random.Random(SEED + number)
        for user, question in asked[number::callers]:
            await _speak(service.user(user), [question], pacing, draw, tally)

    await asyncio.gather(*(call(number) for number in range(callers)))
    return tally.summary()


async def _fill(service: MemoryService, conversations: Sequence[Conversation]) -> None:
    for conversation in conversations:
        user = service.user(conversation.user)
        for session in dict.fromkeys(turn.conversation for turn in conversation.turns):
            call = await user.conversation(session)
            await call.append(*(turn for turn in conversation.turns if turn.conversation == session))
    await service.distil()
    if not await service.settle(timeout_s=3600):
        raise RuntimeError("not everything got its vector")


async def measure(args: argparse.Namespace, loop: TalkLoop) -> dict[str, Any]:
    conversations = load(Path(args.data))
    asked = [(c.user, question.text) for c in conversations for question in c.questions]
    random.Random(SEED).shuffle(asked)
    asked = asked[: args.questions]
    found: dict[str, Any] = {"words a minute": WORDS_A_MINUTE, "embedder": args.embedder}
    with tempfile.TemporaryDirectory() as folder:
        cached = CachedEmbedder(embedder_from(args.embedder))
        async with MemoryService(store_from(f"sqlite:///{folder}/talk.db"), cached) as service:
            await _fill(service, conversations)
            for user in dict.fromkeys(user for user, _ in asked):
                await service.user(user).warm()
            loop.jumping = True
            for callers in args.callers:
                for shown, silence_ms in itertools.product(args.shown, args.silence):
                    pacing = Pacing(shown, silence_ms)
                    name = f"{callers} at once, {pacing}"
                    cached.clear()  # what the setting before embedded would be at hand
                    found[name] = await _setting(service, asked, callers, pacing)
                    print(name, found[name], file=sys.stderr)
            loop.jumping = False
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("ECHOIC_LOCOMO"), help="LoCoMo's JSON file")
    parser.add_argument("--embedder", default="local", help='as for echoic.open; default "local"')
    parser.add_argument("--questions", type=int, default=None, help="how many, drawn with a fixed seed; all")
    parser.add_argument("--callers", type=int, nargs="+", default=CALLERS, help="who speak at the same time")
    parser.add_argument("--shown", type=float, nargs="+", default=SHOWN, help="share of a word, 0 to 1")
    parser.add_argument("--silence", type=int, nargs="+", default=SILENCES_MS, help="before the end, ms")
    parser.add_argument("--dry", action="store_true", help="print, and write nothing to results/")
    args = parser.parse_args()
    if not args.data:
        parser.error("give the path of LoCoMo's JSON file with --data or in ECHOIC_LOCOMO")
    machine.one_core()
    with asyncio.Runner(loop_factory=TalkLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, TalkLoop)
        measured = runner.run(measure(args, loop))
    print(json.dumps(measured, indent=1) if args.dry else machine.save("speculation", measured))


if __name__ == "__main__":
    main()
