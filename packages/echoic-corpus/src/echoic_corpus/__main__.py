"""`python -m echoic_corpus check|review|stats|export|hear|sample|agree`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from echoic_corpus import agreement, blind, checking, figures, stats
from echoic_corpus.echoes import echoes
from echoic_corpus.model import Caller, Question, Turn
from echoic_corpus.noise import RATES, Recogniser
from echoic_corpus.reading import DATA, Problem, read_all, splits


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 1 where something is wrong with the data."""
    parser = argparse.ArgumentParser(prog="python -m echoic_corpus")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with callers/ and splits.txt")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="whether the data is what it must be")
    check.add_argument("--draft", action="store_true", help="say nothing about quotas yet")
    check.add_argument("--complete", action="store_true", help="the whole corpus's targets must be met too")
    check.add_argument("--near", type=int, default=10, help="near-duplicates to show")
    check.add_argument("--locomo", type=Path, help="a folder with LoCoMo's JSON: nothing may be shared")
    review = commands.add_parser("review", help="every question with its gold, to be read by a person")
    count = commands.add_parser("stats", help="how much there is, and how varied")
    count.add_argument("--markdown", action="store_true", help="the datasheet's tables, not JSON")
    count.add_argument("--write", type=Path, help="a page to put the tables into, as DATASHEET.md")
    count.add_argument("--locomo", type=Path, help="a folder with LoCoMo's JSON, to count it again")
    export = commands.add_parser("export", help="one JSON line a caller")
    hear = commands.add_parser("hear", help="turns as a recogniser writes them")
    for command in (check, review, count, export, hear):
        command.add_argument("callers", nargs="*", help="only these, as c07 or data/callers/c07.txt")
    sample = commands.add_parser(
        "sample", help="turns and questions to be labelled again without their labels"
    )
    sample.add_argument("--seed", type=int, required=True)
    sample.add_argument(
        "--out", type=Path, required=True, help="a folder to write packets and answer files to"
    )
    agree = commands.add_parser("agree", help="how far filled answer files agree with the labels")
    agree.add_argument("folder", type=Path)
    agree.add_argument("--summary", action="store_true", help="leave out what the two differ in")
    agree.add_argument("callers", nargs="*", help="only answers on these")
    parser.set_defaults(callers=[])
    given = parser.parse_args(arguments)
    callers, problems = read_all(given.data)
    chosen = _chosen(parser, given, callers)
    if given.command == "check":
        return _check(given, callers, chosen, problems)
    if given.command == "agree":
        return _agree(given, callers, {caller.id for caller in chosen})
    if given.command == "sample":
        blind.write(blind.draw(callers, splits(given.data), given.seed), given.out)
    elif given.command == "stats":
        _stats(given, chosen)
    elif given.command == "review":
        _review(chosen)
    elif given.command == "export":
        split = splits(given.data)
        for caller in chosen:
            print(json.dumps({"split": split.get(caller.id), **asdict(caller)}, default=str))
    else:
        _hear(chosen, callers)
    return 0


def _chosen(
    parser: argparse.ArgumentParser, given: argparse.Namespace, callers: list[Caller]
) -> list[Caller]:
    names = {name: Path(name).stem for name in given.callers}
    if unknown := [name for name, stem in names.items() if not _is_caller(given.data, name, stem)]:
        parser.error(f"no caller is named so under {given.data}: {', '.join(unknown)}")
    if names and given.command == "stats" and (given.markdown or given.write):
        parser.error("the datasheet's tables are about all callers")
    return [caller for caller in callers if not names or caller.id in names.values()]


def _stats(given: argparse.Namespace, chosen: list[Caller]) -> None:
    if not given.markdown and not given.write:
        print(json.dumps({"totals": stats.totals(chosen), **stats.diversity(chosen)}, indent=1))
        return
    if given.write and given.locomo:
        figures.keep(given.data, given.locomo)
    made = figures.blocks(chosen, splits(given.data), given.data, given.locomo)
    if given.markdown:
        print("\n".join(f"## {name}\n{text}" for name, text in made.items()))
    if given.write:
        given.write.write_text(figures.fill(given.write.read_text("utf-8"), made), "utf-8")


def _is_caller(data: Path, name: str, stem: str) -> bool:
    """Whether `name` is a caller's id, its file's name, or a path to that file."""
    file = data / "callers" / f"{stem}.txt"
    return file.is_file() and (name in {stem, file.name} or Path(name).resolve() == file.resolve())


def _check(
    given: argparse.Namespace, callers: list[Caller], chosen: list[Caller], problems: list[Problem]
) -> int:
    found = list(problems)
    split = splits(given.data)
    for caller in chosen:
        found += checking.of_caller(caller, quotas=not given.draft)
    found += checking.between(callers, split)
    if given.locomo:
        found += checking.foreign(chosen, given.locomo)
    if given.complete:
        found += _missed(callers, split)
    files = {f"{caller.id}.txt" for caller in chosen} if given.callers else None
    shown = [problem for problem in found if files is None or problem.file in files]
    for problem in sorted(shown):
        print(problem)
    _near(callers, {caller.id for caller in chosen}, given.near)
    for caller in chosen:
        for question in checking.doubtful(caller):
            print(f"look again, the gold has no word of the answer: {question}")
        for question in checking.stale(caller):
            print(f"look again, the gold was replaced before this is asked: {question}")
        for echo in echoes(caller):
            print(f"look again, an echo also answers: {echo}")
    total = stats.totals(chosen)
    for what in dict.fromkeys((*checking.TARGETS, *checking.QUOTAS)):
        wanted = checking.TARGETS.get(what, checking.QUOTAS.get(what, 0) * len(chosen))
        print(f"{what:28} {total.get(what, 0):7,} of {wanted:,}")
    shares = {name: sum(split.get(caller.id) == name for caller in callers) for name in checking.SHARES}
    print(f"splits {shares}; {len(shown)} problems")
    return 1 if shown else 0


def _near(callers: list[Caller], chosen: set[str], limit: int) -> None:
    texts = {name: text for caller in callers for name, (text, _) in checking.spoken(caller).items()}
    pairs = [pair for pair in checking.near_duplicates(texts) if {p.split("/")[0] for p in pair[1:]} & chosen]
    for share, one, other in pairs[:limit]:
        print(f"near-duplicates ({share:.0%} of 4-grams): {one} {texts[one]!r} and {other} {texts[other]!r}")
    print(f"{len(pairs)} pairs of near-duplicates")


def _review(chosen: list[Caller]) -> None:
    for caller in chosen:
        for question in caller.questions:
            at = f" @{question.at_call}" if question.at_call <= len(caller.calls) else ""
            print(f"{caller.id}.txt:{question.line} {question.kind}{at}: {question.text}")
            print(f"    {question.answer or '(no answer)'}")
            for name in question.turns:
                turn = caller.turns[name]
                print(f"    {name.partition('/')[2]} {turn.speaker}: {turn.heard_text}")


def _agree(given: argparse.Namespace, callers: list[Caller], chosen: set[str]) -> int:
    pairs, problems = agreement.compare(callers, given.folder)
    pairs = [pair for pair in pairs if pair.caller.id in chosen]
    for line in agreement.report(pairs):
        print(line)
    for line in () if given.summary else agreement.differences(pairs):
        print(line)
    for problem in problems:
        print(problem)
    print(f"{len(pairs)} answers compared, {len(problems)} problems")
    return 1 if problems or not pairs else 0


def _missed(callers: list[Caller], split: dict[str, str]) -> list[Problem]:
    total = stats.totals(callers)
    missed = [f"{w} {total.get(w, 0)} of {n}" for w, n in checking.TARGETS.items() if total.get(w, 0) < n]
    for name, share in checking.SHARES.items():
        has = sum(split.get(caller.id) == name for caller in callers) / max(1, len(callers))
        if abs(has - share) > 0.03:
            missed.append(f"{name} {has:.0%} of callers, not {share:.0%}")
    return [Problem("corpus", 1, text) for text in missed]


def _hear(chosen: list[Caller], callers: list[Caller]) -> None:
    recogniser = Recogniser(callers)
    for caller in chosen:
        spoken: list[Turn | Question] = [*caller.turns.values(), *caller.questions]
        for said in spoken:
            heard = {rate: asdict(recogniser.hear(caller, said, rate)) for rate in RATES}
            print(json.dumps({"id": said.id, **heard}))


def run() -> int:
    """Run `main`; end quietly where nobody reads any more, as behind `| head`."""
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or closing it complains again
        return 128 + 13
    return status


if __name__ == "__main__":
    sys.exit(run())
