"""What was measured of several systems, as one table and one plot a measure. Pure; SVG is written by hand.

A result is JSON: `systems` by name, of each by version of what was said `Marks.as_json()`. A system whose
name ends in ", best" shares the column of the one that it is the best setting of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from echoic_corpus.marks import AUROCS

BEST = ", best"
KINDS = (
    "single",
    "list",
    "multi",
    "time",
    "current",
    "former",
    "condition",
    "misheard",
    "speaker",
    "promise",
)
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
"""Okabe and Ito's, which everybody can tell apart."""
Result = Mapping[str, Any]
Cell = Callable[[Result], str]
Bars = Mapping[str, Sequence[tuple[float, float, float] | None]]
"""By group: of every series the value and its interval; None where it was not measured."""
_ROW, _GAP, _LEFT, _WIDTH, _TOP = 12, 9, 130, 420, 66


def table(result: Result) -> str:
    """Markdown: a measure a row, a system a column, default / best."""
    systems = list(dict.fromkeys(name.removesuffix(BEST) for name in result["systems"]))
    lines = [f"| | {' | '.join(systems)} |", f"|---|{'--:|' * len(systems)}"]
    for label, cell in _rows():
        cells = [_both(result, name, cell) for name in systems]
        if set(cells) != {"–"}:
            lines.append(f"| {label} | {' | '.join(cells)} |")
    lead = result.get(f"{systems[0]} over", {})
    for metric in ("nDCG@10", "R@10"):
        cells = [_lead(lead, name, metric) for name in systems]
        if set(cells) != {"–"}:
            lines.insert(2, f"| {metric}: {systems[0]} finds more, 95 % interval | {' | '.join(cells)} |")
    return "\n".join(lines)


def charts(result: Result) -> dict[str, str]:
    """SVGs by name, one a measure; what nobody was measured by is left out."""
    spoken = [v for v in ("clean", "wer10", "wer20") if any(v in s for s in result["systems"].values())]
    drawn = {
        "retrieval": _measured(result, "R@10, percent", {v: (v, "R@10") for v in spoken}),
        "kinds": _kinds(result),
        "silence": _measured(
            result,
            "Nothing returned, percent",
            {
                "no answer (more is better)": ("clean", "silent, no answer"),
                "remark (more is better)": ("clean", "silent, remark"),
                "has an answer (less is better)": ("clean", "wrongly silent"),
            },
        ),
        "learning": _measured(
            result,
            "Learned without a language model, percent",
            {
                name: ("clean", name)
                for name in ("facts found", "learned is labelled", "traps stored", "outdated held")
            },
        ),
        "forgetting": _measured(
            result,
            "Forgotten and recalled all the same, percent (less is better)",
            {how: ("clean", f"forgotten recalled, {how}") for how in ("as spoken", "told to")},
        ),
        "keeping": _measured(
            result,
            "Never heard, or secret, and recalled, percent (less is better)",
            {"unheard": ("clean", "unheard recalled"), "secrets": ("clean", "secrets kept")},
        ),
    }
    drawn["auroc"] = _plot(
        "AUROC of the best score: has an answer, or not",
        AUROCS,
        {name: [_point(clean["auroc"].get(what)) for what in AUROCS] for name, clean in _clean(result)},
        1.0,
    )
    times = {
        name: [_point(clean[verb].get(p)) for verb in ("query", "add") for p in ("p50_ms", "p95_ms")]
        for name, clean in _clean(result)
    }
    most = max((point[0] for points in times.values() for point in points if point), default=0.0)
    names = ("query p50", "query p95", "add p50", "add p95")
    drawn["latency"] = _plot("Milliseconds, encoding not counted", names, times, most)
    return {name: svg for name, svg in drawn.items() if svg}


def _rows() -> list[tuple[str, Cell]]:
    rows: list[tuple[str, Cell]] = [
        (f"{metric}, {version}", _percent(version, metric))
        for version in ("clean", "wer10", "wer20")
        for metric in ("R@5", "R@10", "nDCG@10")
    ]
    rows += [(f"R@10 of {kind}", _percent("clean", f"R@10: {kind}")) for kind in KINDS]
    named = {
        "silent on questions without an answer": "silent, no answer",
        "silent on remarks": "silent, remark",
        "wrongly silent": "wrongly silent",
    }
    rows += [(label, _percent("clean", name)) for label, name in named.items()]
    rows += [(f"AUROC, {what}", _figure(("auroc", what), 3)) for what in AUROCS]
    learned = ("facts found", "learned is labelled", "outdated held", "traps stored", "secrets kept")
    forgot = ("forgotten recalled", "kept beside it")
    rows += [(name, _percent("clean", name)) for name in learned]
    rows += [(f"{w}, {h}", _percent("clean", f"{w}, {h}")) for w in forgot for h in ("as spoken", "told to")]
    rows.append(("unheard recalled", _percent("clean", "unheard recalled")))
    rows += [("words of ten hits", _figure(("words of ten hits",), 0)), ("leaks", _figure(("leaks",), 0))]
    times = [(verb, p) for verb in ("query", "add") for p in ("p50", "p95")]
    return rows + [(f"{verb} {p}, ms", _figure((verb, f"{p}_ms"), 2)) for verb, p in times]


def _both(result: Result, name: str, cell: Cell) -> str:
    found = []
    for each in (name, f"{name}{BEST}"):
        try:
            found.append(cell(result["systems"][each]))
        except KeyError:  # not measured
            continue
    return " / ".join(dict.fromkeys(found)) if set(found) == {"–"} else " / ".join(found) or "–"


def _lead(lead: Result, name: str, metric: str) -> str:
    found = [lead.get(each, {}).get("clean", {}).get(metric) for each in (name, f"{name}{BEST}")]
    return " / ".join(f"{x[0]:+.1f} [{x[1]:+.1f}, {x[2]:+.1f}]" for x in found if x) or "–"


def _percent(version: str, measure: str) -> Cell:
    def cell(system: Result) -> str:
        measured = system[version]["measures"].get(measure)
        return f"{measured['percent'][0]:.1f}" if measured else "–"

    return cell


def _figure(path: Sequence[str], digits: int) -> Cell:
    def cell(system: Result) -> str:
        value: Any = system["clean"]
        for name in path:
            value = value.get(name)
        return "–" if value is None else f"{value:.{digits}f}"

    return cell


def _clean(result: Result) -> list[tuple[str, Result]]:
    return [(name, system["clean"]) for name, system in result["systems"].items() if "clean" in system]


def _point(value: float | None) -> tuple[float, float, float] | None:
    return None if value is None else (value, value, value)


def _measured(result: Result, title: str, series: Mapping[str, tuple[str, str]]) -> str:
    bars = {
        name: [
            measured["percent"] if (measured := system.get(v, {}).get("measures", {}).get(measure)) else None
            for v, measure in series.values()
        ]
        for name, system in result["systems"].items()
    }
    return _plot(title, tuple(series), bars, 100.0)


def _kinds(result: Result) -> str:
    """R@10 by kind, a bar a system: of each its best setting."""
    systems = dict(_clean(result))
    systems = {name: clean for name, clean in systems.items() if f"{name}{BEST}" not in systems}
    bars = {
        kind: [clean["measures"].get(f"R@10: {kind}", {}).get("percent") for clean in systems.values()]
        for kind in KINDS
    }
    return _plot("R@10 by kind of question, percent", tuple(systems), bars, 100.0)


def _plot(title: str, series: Sequence[str], bars: Bars, most: float) -> str:
    """Bars that lie, in groups, with their intervals as lines."""
    bars = {group: points for group, points in bars.items() if any(points)}
    if not bars or most <= 0:
        return ""
    scale, y = _WIDTH / most, _TOP
    parts: list[str] = []
    for at, name in enumerate(series):
        x, line = 8 + at % 4 * 150, 30 + at // 4 * 12
        parts.append(
            f'<rect x="{x}" y="{line - 8}" width="9" height="9" fill="{COLOURS[at % len(COLOURS)]}"/>'
        )
        parts.append(f'<text x="{x + 12}" y="{line}">{escape(name)}</text>')
    for group, points in bars.items():
        middle = y + len(points) * _ROW / 2 + 4
        parts.append(f'<text x="{_LEFT - 6}" y="{middle:.1f}" text-anchor="end">{escape(group)}</text>')
        for colour, point in enumerate(points):
            if point:
                value, low, high = point
                end, fill = _LEFT + value * scale, COLOURS[colour % len(COLOURS)]
                parts.append(
                    f'<rect x="{_LEFT}" y="{y}" width="{value * scale:.1f}" height="10" fill="{fill}"/>'
                    f'<path d="M{_LEFT + low * scale:.1f} {y + 5}H{_LEFT + high * scale:.1f}" stroke="#000"/>'
                    f'<text x="{max(end, _LEFT + high * scale) + 4:.1f}" y="{y + 9}">{value:.4g}</text>'
                )
            y += _ROW
        y += _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 60}" height="{y}"'
        ' font-family="sans-serif" font-size="10"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="8" y="16" font-size="12" font-weight="bold">{escape(title)}</text>{"".join(parts)}</svg>\n'
    )


__all__ = ["charts", "table"]
