"""The figures of the datasheet: tables in Markdown, each between two comments, so that none is ever typed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from echoic_corpus import leakage, variety
from echoic_corpus.checking import NEAR, SHARES
from echoic_corpus.model import Caller
from echoic_corpus.stats import census, spread

LIMIT = 25_000_000
"""Bytes that the data may have."""
LOCOMO = "LoCoMo (snap-research/LoCoMo, commit 3eb6f2c, CC BY-NC 4.0), its first five conversations"
_BLOCK = re.compile(r"(<!-- figures: ([a-z ]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_AGREE = re.compile(r"(.+): n (\d+), ([\d.]+) \(([\d.]+) to ([\d.]+)\)(?:, kappa (\S+) \((\S+) to (\S+)\))?")


def blocks(
    callers: Sequence[Caller], split: Mapping[str, str], data: Path, chats: Path | None = None
) -> dict[str, str]:
    """Every table by name; what is shared with LoCoMo only where `chats`, its folder, is given."""
    measured = data.parent / "measured"
    kept, judged = (measured / name for name in ("locomo.json", "adjudication.txt"))
    theirs = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}
    made: dict[str, Iterable[str]] = {
        "counts": [*_counts(callers, split), "", _size(data)],
        "per caller": _per_caller(callers),
        "leakage": _leakage(callers, split),
    }
    made["variety"] = _variety(callers, theirs)
    made["questions"] = _questions(callers, theirs)
    if chats:
        made["leakage abroad"] = _abroad(callers, chats)
    for name in ("agreement", "agreement second"):
        if (told := measured / f"{name.replace(' ', '-')}.txt").is_file():
            made[name] = _agreement(told.read_text("utf-8"))
    if judged.is_file():
        made["adjudication"] = judged.read_text("utf-8").splitlines()
    return {name: "\n".join(lines) + "\n" for name, lines in made.items()}


def fill(text: str, made: Mapping[str, str]) -> str:
    """`text` with its blocks replaced by those in `made`; what is not in `made` stays."""
    if missing := made.keys() - {found[2] for found in _BLOCK.finditer(text)}:
        raise ValueError(f"there is no place for {', '.join(sorted(missing))}")
    return _BLOCK.sub(lambda found: found[1] + made.get(found[2], found[3]) + found[4], text)


def keep(data: Path, chats: Path) -> None:
    """Write down LoCoMo's figures, and none of its words, for whoever has not got it."""
    found = {"source": LOCOMO, **variety.of_chats(variety.locomo(chats))}
    (data.parent / "measured" / "locomo.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" + "|--:" * (len(head) - 1) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _counts(callers: Sequence[Caller], split: Mapping[str, str]) -> Iterator[str]:
    parts = [[caller for caller in callers if split.get(caller.id) == name] for name in SHARES]
    found = [census(part) for part in (*parts, callers)]
    rows = list[list[str]]()
    for group, kinds in found[-1].items():
        rows.append([group, *(f"{each[group]['']:,}" for each in found)])
        for kind in sorted(kinds.keys() - {""}, key=lambda kind: (-kinds[kind], kind)):
            rows.append([f"… {kind}", *(f"{each[group][kind]:,}" for each in found)])
    yield from _table(["", *SHARES, "all"], rows)


def _size(data: Path) -> str:
    files = [path for path in data.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    most = f"{LIMIT / 1e6:.0f} MB is the most"
    return f"The folder of the data has {size / 1e6:.2f} MB in {len(files)} files; {most}."


def _per_caller(callers: Sequence[Caller]) -> Iterator[str]:
    rows = (
        [what, f"{low:,}", f"{mid:,g}", f"{high:,}"] for what, (low, mid, high) in spread(callers).items()
    )
    yield from _table(["a caller has", "least", "median", "most"], rows)


def _shown(what: str, value: float | None) -> str:
    if value is None:
        return "–"
    if "4-grams" in what or "opening" in what:
        return f"{value:.1%}".replace("%", " %")
    return f"{value:.1f}" if "mean" in what else f"{value:,.0f}"


def _variety(callers: Sequence[Caller], theirs: Mapping[str, Any]) -> Iterator[str]:
    ours = variety.of_callers(callers)
    columns = {**ours, **{f"LoCoMo's {name}": theirs[name] for name in ("turns", "questions") if theirs}}
    rows = ([what, *(_shown(what, each[what]) for each in columns.values())] for what in ours["all turns"])
    yield from _table(["", *columns], rows)


def _questions(callers: Sequence[Caller], theirs: Mapping[str, Any]) -> Iterator[str]:
    ours = variety.asked_with([question.text for caller in callers for question in caller.questions])
    ours["longer words that stand in the gold, mean"] = variety.copied(variety.answered(callers))
    other = (
        {**theirs["asked with"], "longer words that stand in the gold, mean": theirs["copied"]}
        if theirs
        else {}
    )
    rows = (
        [what, *(f"{each[what]:.1%}".replace("%", " %") if each else "–" for each in (ours, other))]
        for what in ours
    )
    yield from _table(["questions", "corpus", "LoCoMo"], rows)


def _leakage(callers: Sequence[Caller], split: Mapping[str, str]) -> Iterator[str]:
    rows = [[what, *(f"{number:,}" for number in found)] for what, *found in leakage.shared(callers, split)]
    for least in (NEAR, leakage.LOOSE):
        found = leakage.near(callers, split, least)
        what = f"turns, questions and remarks; pairs of them with {least:.0%} of 4-grams in common"
        rows.append([what.replace("%", " %"), *(f"{number:,}" for number in found)])
    yield from _table(["compared", "how many", "shared by callers", "shared by splits"], rows)
    yield ""
    told = [
        f"{share:.1%} of {one}'s in {other}" for (one, other), share in leakage.common(callers, split).items()
    ]
    yield f"4-grams of one split's turns that occur in another's too: {', '.join(told)}.".replace("%", " %")


def _abroad(callers: Sequence[Caller], chats: Path) -> Iterator[str]:
    found = leakage.abroad(callers, chats)
    text = (
        f"Compared with {LOCOMO}: of the corpus's {found['our sentences']:,} different sentences of six words"
        f" and more {found['shared sentences']:,} stand among its {found['their sentences']:,}. Turns,"
        " questions and remarks that share such a sentence or more than half of their 4-grams with it:"
        f" {found['texts found']:,}. Of the corpus's different 4-grams {found['share of 4-grams']:.2%} are"
        f" among its {found['their 4-grams']:,}."
    )
    yield from wrap(text.replace("%", " %"), 115)


def _agreement(text: str) -> Iterator[str]:
    parts = [part.splitlines() for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:]]
    read = [{found[1]: found for line in part[1:] if (found := _AGREE.fullmatch(line))} for part in parts]
    rows = [
        [
            what,
            found[2],
            f"{found[3]} ({found[4]} to {found[5]})",
            f"{found[6]} ({found[7]} to {found[8]})" if found[6] else "",
            *(each[what][3] for each in read[1:]),
        ]
        for what, found in read[0].items()
        if "answerable to both" not in what
    ]
    heads = [part[0].partition(":")[0] for part in parts[1:]]
    yield from _table(["", "n", "agree (95 %)", "kappa (95 %)", *heads], rows)
    yield ""
    yield from (f"- {line}" for line in parts[0][1:] if not _AGREE.fullmatch(line))


__all__ = ["LIMIT", "blocks", "fill", "keep"]
