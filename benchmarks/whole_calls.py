"""What is known after a whole telephone call, and which questions about it are answered.

    python -m benchmarks.whole_calls                       # the calls that rules may be changed after
    python -m benchmarks.whole_calls --set test --show     # with what is missing or wrong

`whole_calls/` holds a JSON file for each author, with the `set` it belongs to: `dev` was read while rules
were changed, `test` was not. A call has its `turns`, whether they are as a speech `recogniser` writes them,
and pairs of a label and a regular expression, matched with "key: text" of every fact that is stored,
confirmed or not:

    known      what an attentive person would have kept of the caller
    mustnot    what would be wrong: facts of others as the caller's, values taken back, jokes

Its questions have a pattern of the right answer (null: the call has none) and one of a wrong answer, or
null, matched with the first three hits of `query`: facts, turns of the call, or a fact with the turn that it
was learned from, as `brief` shows both. Each call is told to a user of its own, turn by turn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import echoic
from echoic.types import Turn

FOLDER = Path(__file__).with_name("whole_calls")
START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
LEARNED_S = 600.0
"""The longest wait for a call to be learned: enough for a busy machine."""
ANSWERABLE = FIRST, THREE, WRONG, SILENT = "first hit", "second or third", "wrong", "silent"
UNKNOWN_SILENT, UNKNOWN_ANSWERED = "unknown, silent", "unknown, answered"


def sets(which: str) -> dict[str, list[dict[str, Any]]]:
    """By author, the calls of set `which`, or of `all`."""
    told = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}
    return {name: each["calls"] for name, each in told.items() if which in ("all", each["set"])}


async def tell(memory: echoic.MemoryService, user: str, call: dict[str, Any]) -> echoic.UserMemory:
    """A user who has had this call, with everything learned from it."""
    whose = memory.user(user)
    conversation = await whose.conversation("call", agent="desk")
    for at, (speaker, text) in enumerate(call["turns"]):
        said_at = START + timedelta(seconds=8 * at)
        await conversation.append(Turn(speaker=speaker, text=text, said_at=said_at))
    await conversation.complete()
    if not await memory.settle(LEARNED_S):
        raise TimeoutError(f"not everything of {user} was learned in time")
    return whose


async def score(whose: echoic.UserMemory, call: dict[str, Any]) -> dict[str, Any]:
    """What is missing and wrong of the facts of a call, and how each question fared."""
    facts = [f"{fact.key or ''}: {fact.text}" for fact in await whose.facts()]
    fates, misled = [], []
    for asked, right, wrong in call["questions"]:
        hits = [[part.text for part in hit.apart()] for hit in await whose.query(asked, limit=3)]
        fates.append((asked, fate(hits, right)))
        if fates[-1][1] in (THREE, WRONG) and found(wrong, hits[0]):
            misled.append(asked)
    return {
        "call": call["name"],
        "facts": len(facts),
        "known": len(call["known"]),
        "missing": [label for label, pattern in call["known"] if not found(pattern, facts)],
        "mustnot": len(call["mustnot"]),
        "stored_wrongly": [label for label, pattern in call["mustnot"] if found(pattern, facts)],
        "questions": fates,
        "first_hit_wrong": misled,
    }


def found(pattern: str | None, texts: Iterable[str]) -> bool:
    """Whether one of `texts` has the pattern, in whatever case."""
    return pattern is not None and any(re.search(pattern, text, re.IGNORECASE) for text in texts)


def fate(hits: Sequence[Sequence[str]], right: str | None) -> str:
    """How a question fared that hits with these texts answer; `right`: None if nothing said answers it."""
    if right is None:
        return UNKNOWN_ANSWERED if hits else UNKNOWN_SILENT
    if not hits:
        return SILENT
    if found(right, hits[0]):
        return FIRST
    return THREE if any(found(right, hit) for hit in hits) else WRONG


def sums(calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The counts over calls of one set."""
    known = sum(c["known"] for c in calls)
    return {
        "calls": len(calls),
        "all_facts_right": sum(not c["missing"] and not c["stored_wrongly"] for c in calls),
        "facts": sum(c["facts"] for c in calls),
        "known": known,
        "known_stored": known - sum(len(c["missing"]) for c in calls),
        "mustnot": sum(c["mustnot"] for c in calls),
        "stored_wrongly": sum(len(c["stored_wrongly"]) for c in calls),
        "questions": Counter(fared for c in calls for _, fared in c["questions"]),
        "first_hit_wrong": sum(len(c["first_hit_wrong"]) for c in calls),
    }


async def measure(calls: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Tell every call and ask about it: by set, its sums and its calls."""
    measured = {}
    async with echoic.open("memory://", embedder="local") as memory:
        for name, every in calls.items():
            rows = [await score(await tell(memory, f"{name}-{call['name']}", call), call) for call in every]
            measured[name] = {**sums(rows), "each": rows}
    return measured


def lines_of(name: str, counts: dict[str, Any], *, show: bool) -> Iterator[str]:
    """A set's counts in words, and with `show` each call's mistakes."""
    fates = counts["questions"]
    answerable = sum(fates[each] for each in ANSWERABLE)
    unknown = fates[UNKNOWN_SILENT] + fates[UNKNOWN_ANSWERED]
    yield f"{name}: {counts['calls']} calls, {counts['all_facts_right']} of them right in every fact"
    yield f"  stored of what is to be known: {counts['known_stored']} of {counts['known']}"
    yield f"  of what must not be: {counts['stored_wrongly']} of {counts['mustnot']}"
    yield f"  facts stored in all: {counts['facts']}"
    fared = ", ".join(f"{each} {fates[each]}" for each in ANSWERABLE)
    yield f"  {answerable} questions that the call answers: {fared}"
    yield f"  of them, the first hit has a wrong value: {counts['first_hit_wrong']}"
    yield f"  {unknown} that it does not answer: silent {fates[UNKNOWN_SILENT]}"
    for call in counts["each"] if show else ():
        yield f"  {call['call']}"
        yield f"    missing: {'; '.join(call['missing']) or 'nothing'}"
        yield f"    stored wrongly: {'; '.join(call['stored_wrongly']) or 'nothing'}"
        for asked, fared in call["questions"]:
            if fared not in (FIRST, UNKNOWN_SILENT):
                yield f"    {fared}: {asked}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=("dev", "test", "all"), default="dev")
    parser.add_argument("--show", action="store_true", help="also print the mistakes of each call")
    parser.add_argument("--json", action="store_true", help="print JSON, with each call")
    args = parser.parse_args()
    measured = asyncio.run(measure(sets(args.set)))
    if args.json:
        print(json.dumps(measured, indent=1))
    else:
        for name, counts in measured.items():
            print(*lines_of(name, counts, show=args.show), sep="\n")


if __name__ == "__main__":
    main()
