"""Write the figures of benchmarks/results into docs/scale.md: what was measured, and sums made of it.

.venv/bin/python scripts/scale_figures.py          # rewrite
.venv/bin/python scripts/scale_figures.py --check  # exit 1 if the page says something else

Every block between its two marks is made here; outside of them the page has no figure of a measurement.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "scale.md"
CACHE_MB = 256
"""What a process keeps loaded by default."""


def result(name: str) -> dict:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def table(head: list[str], *rows: str) -> list[str]:
    return [row(*head), row(*["---"] * len(head)), *rows]


def prose(*parts: str) -> list[str]:
    return textwrap.wrap(" ".join(parts), 110)


def number(value: float) -> str:
    """Two digits that count, and no more of them than a figure of a busy machine deserves."""
    if value >= 100:
        return f"{round(value):,}"
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def passed(sample: dict) -> str:
    return " / ".join(number(sample[f"{at}_ms"]) for at in ("p10", "p50", "p95"))


def machine() -> list[str]:
    stores, costs = result("stores"), result("store_costs")
    told, loads = stores["machine"], [of["machine"]["load_average_1m"] for of in (stores, costs)]
    version = " ".join(stores["server"].split()[:2])
    return prose(
        f"{version} on {told['cores_used']} cores of {told['cpu']} that other work shared: at the",
        "end of a run the",
        f"load average was {loads[0]:.0f} (`stores`) and {loads[1]:.0f} (`store_costs`).",
    )


def load() -> list[str]:
    """The goal, and a load that two cores carry, each as far as it was measured."""
    names = [name for name in ("load", "load_light") if (ROOT / f"benchmarks/results/{name}.json").exists()]
    if not names:
        return prose("No result is kept yet: run it on the machine that you want to know about.")
    found = [result(name) for name in names]
    told = found[0]["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in told["packages"].items() if version)
    loads = " and ".join(f"{one['machine']['load_average_1m']:g}" for one in found)
    return [
        *prose(
            f"One process on {told['cores_used']} cores of {told['cpu']}, which the loader and the",
            f"stand-in for a voice provider shared with it; load average at the end {loads}.",
            f"Python {told['python']}, {packages}.",
        ),
        *(line for one in found for line in ("", *one["table"])),
    ]


def freshness() -> list[str]:
    quiet, busy = result("stores")["postgresql"]["freshness"]
    lines = [
        row(
            "nobody else writes" if not run["callers_beside"] else f"{run['callers_beside']} others write",
            passed(run["told"]),
            number(run["told"]["most_ms"]),
            f"{100 * run['told']['within_goal']:.1f} %",
            passed(run["asked"]),
        )
        for run in (quiet, busy)
    ]
    head = [
        f"{quiet['writes']} writes, ms after the acknowledgement",
        "told, p10 / p50 / p95",
        "most",
        "within 100 ms",
        "a `load` right after it takes",
    ]
    return table(head, *lines)


def writers() -> list[str]:
    of = result("stores")["postgresql"]
    told, untold = of["writers"]["writes_a_second"], of["writers_untold"]["writes_a_second"]
    shown = (
        ""
        if untold > 1.2 * told
        else " So `notify=off` did not help here: the disk and the processors were the limit."
    )
    return prose(
        f"Eight writers at once made {told:,} writes a second, and {untold:,} with `notify=off`." + shown
    )


def costs() -> list[str]:
    measured = result("store_costs")["bytes"]
    written, rewritten = measured["as_written"], measured["rewritten"]
    what = {
        "searchable": "the vector (1.5 KB), stems and sounds",
        "tokens": "word pieces; none with embedders that make none",
        "records": "",
        "segments": "rewritten as they fill: what vacuum gives back is used again",
    }
    rest = [sum(of[name] for name in of if name not in what) for of in (written, rewritten)]
    totals = [sum(of.values()) for of in (written, rewritten)]
    return [
        *prose(
            f"{measured['memories']:,} memories of {measured['memories'] // 100} users, bytes a memory,",
            "with indexes:",
        ),
        "",
        *table(
            ["table", "as written", "rewritten", ""],
            *(
                row(f"`{name}`", f"{written[name]:,}", f"{rewritten[name]:,}", why)
                for name, why in what.items()
            ),
            row("the rest", *rest, ""),
            row("**all**", *(f"**{total:,}**" for total in totals), ""),
        ),
    ]


def million() -> list[str]:
    measured = result("store_costs")
    of, did = measured["bytes"], measured["operations"]
    total, pieces = sum(of["as_written"].values()), of["as_written"]["tokens"]
    # of one memory in ms, of a million in hours
    server, client = (
        (did["write one"][side] + did["attach one"][side]) / 3.6 for side in ("server_ms", "client_ms")
    )
    ten = (did["write ten"]["server_ms"] / 10 + did["attach one"]["server_ms"]) / 3.6
    log = (of["log_a_write"] + of["log_an_attach"]) / 1000
    holds = (CACHE_MB << 20) // of["loaded"] // 1000
    return table(
        ["a million memories", ""],
        row("on the disk", f"{total / 1000:.1f} GB; {(total - pieces) / 1000:.1f} GB without word pieces"),
        row("write-ahead log while they are written, one at a time", f"{log:.1f} GB"),
        row(
            "processor to write each and give it its vector",
            f"{server:.1f} h of the server, {client:.1f} h of the clients",
        ),
        row("the same, written ten at a time", f"{ten:.1f} h of the server"),
        row("all of them loaded", f"{of['loaded'] / 1000:.1f} GB of memory, over all processes"),
        row(f"the default cache of {CACHE_MB} MB holds", f"{holds},000 of them"),
    )


def operations() -> list[str]:
    did = result("store_costs")["operations"]
    names = {
        "write one": "write one memory",
        "write ten": "write ten at once",
        "attach one": "give one its vector",
        "load, nothing new": "`load`, nothing new",
        "rows, ten": "the records of ten hits",
        "first load of 100": "first load of a user of 100",
        "erase one, with vacuum": "erase one memory, vacuum included (small tables)",
    }
    return table(
        ["processor time", "server", "client"],
        *(
            row(label, *(f"{number(did[name][side])} ms" for side in ("server_ms", "client_ms")))
            for name, label in names.items()
        ),
    )


def side_by_side() -> list[str]:
    stores = result("stores")
    lines: list[str] = []
    asked = {
        "write": "durable write",
        "query": "query",
        "first_query": "first query of a user",
        "query_after_a_write": "query right after a write",
    }
    for sqlite, postgres in zip(stores["sqlite"]["users"], stores["postgresql"]["users"], strict=True):
        lines += [
            *([""] if lines else []),
            *table(
                [f"{sqlite['memories']:,} memories of {sqlite['users']:,} users", "SQLite", "PostgreSQL"],
                *(
                    row(
                        f"{label}, p10 / p50 / p95",
                        *(f"{passed(of[name])} ms" for of in (sqlite, postgres)),
                    )
                    for name, label in asked.items()
                ),
                *(
                    row(
                        f"{label}, processor time",
                        *(f"{number(of[name]['cpu_mean_ms'])} ms" for of in (sqlite, postgres)),
                    )
                    for name, label in asked.items()
                ),
                row("bytes a memory", *(f"{of['bytes_a_memory']:,}" for of in (sqlite, postgres))),
            ),
        ]
    return lines


def narrowing() -> list[str]:
    rows = result("stores")["postgresql"]["one_user"]
    return table(
        [
            "memories",
            "loaded",
            "first load and rank",
            "later rank",
            "narrow to 50 and rank",
            "to 200",
            "same first ten, 50 / 200",
            "what was meant came first, loaded / 200",
            "loading pays from question",
        ],
        *(
            row(
                f"{of['memories']:,}",
                f"{of['loaded_mb']:.0f} MB",
                *(
                    f"{number(of[f'{name}_and_rank']['cpu_mean_ms'])} ms"
                    for name in ("cold_load", "warm_load", "narrow_50", "narrow_200")
                ),
                " / ".join(f"{100 * of[f'narrow_{n}_and_rank']['same_first_ten']:.0f} %" for n in (50, 200)),
                f"{100 * of['meant_first']:.0f} / {100 * of['narrow_200_and_rank']['meant_first']:.0f} %",
                number(of["pays_from_question"]),
            )
            for of in rows
        ),
    )


def threshold() -> list[str]:
    found = result("stores")["postgresql"]["threshold"]
    most = ", the most that were tried" if found["pays_up_to_is_the_largest_measured"] else ""
    return prose(
        f"A call of {2 * found['questions_a_call']} turns asks {found['questions_a_call']} times.",
        "Within that,",
        f"loading costs less than narrowing up to {found['pays_up_to']:,} memories{most}; {CACHE_MB} MB hold",
        f"{found['fits_up_to']:,}. So the cache decides, and `narrow_above` is",
        f"{found['narrow_above']:,}: rounded",
        "down, for one large scope must leave room for others.",
    )


def simulated() -> list[str]:
    costs = result("store_costs")
    of, size = costs["simulated"], sum(costs["bytes"]["as_written"].values())
    data_gb = of["memories"] * size / 1e9
    return [
        *prose(
            f"{of['callers']:,} callers of {of['deployments']:,} deployments (the largest has",
            f"{of['callers_of_the_largest_deployment']:,}) with {of['memories']:,} memories:",
            f"{of['mean']:.0f} each",
            f"on average, {of['most']:,} at most, {of['above_10000']} callers above 10,000. Together",
            f"{data_gb / 1000:.1f} TB.",
        ),
        "",
        *table(
            [
                "shards",
                "callers, fullest to mean",
                "memories, fullest to mean",
                "the same by deployment alone",
                "a shard's data",
                "most calls at once on one",
            ],
            *(
                row(
                    one["shards"],
                    f"{one['callers_fullest_to_mean']:.3f}",
                    f"{one['memories_fullest_to_mean']:.3f}",
                    f"{one['memories_fullest_to_mean_by_deployment']:.1f}",
                    f"{data_gb / one['shards']:,.0f} GB",
                    one["calls_at_once_on_the_busiest"],
                )
                for one in of["shards"]
            ),
        ),
    ]


def busiest() -> list[str]:
    costs = result("store_costs")
    of, did, size = costs["simulated"], costs["operations"], costs["bytes"]
    calls = of["calls_at_once"]
    turns = calls * of["turns_a_call"] / of["minutes_a_call"] / 60
    asked, begun = turns / 2, calls / of["minutes_a_call"] / 60
    cores = (
        turns * (did["write one"]["server_ms"] + did["attach one"]["server_ms"])
        + asked * (did["load, nothing new"]["server_ms"] + did["rows, ten"]["server_ms"])
        + begun * did["first load of 100"]["server_ms"]
    ) / 1000
    log = turns * (size["log_a_write"] + size["log_an_attach"]) / 1e6
    loaded = calls * of["mean"] * size["loaded"] / 1e9
    return prose(
        f"A call a month each, {of['minutes_a_call']:.0f} minutes and {of['turns_a_call']} turns long, is",
        f"{of['calls_a_day']:,} calls on a day. In the busiest minute of that day {calls:,} were",
        "under way, drawn",
        f"call by call over the hours of an office. Then {turns:,.0f} turns a second are written",
        f"and {asked:,.0f}",
        f"questions asked (sums): {cores:.1f} processors of database in all, {log:.1f} MB/s of",
        "write-ahead log, and",
        f"{loaded:.1f} GB of loaded memory over all processes.",
    )


BLOCKS = {
    "machine": machine,
    "load": load,
    "freshness": freshness,
    "writers": writers,
    "costs": costs,
    "million": million,
    "operations": operations,
    "side by side": side_by_side,
    "narrowing": narrowing,
    "threshold": threshold,
    "simulated": simulated,
    "busiest": busiest,
}


def written(page: str) -> str:
    for name, make in BLOCKS.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        before, rest = page.split(begin)
        _, after = rest.split(end)
        page = "\n".join([f"{before}{begin}", *make(), f"{end}{after}"])
    return page


def main() -> int:
    page = PAGE.read_text()
    wanted = written(page)
    if "--check" not in sys.argv:
        PAGE.write_text(wanted)
        return 0
    return int(wanted != page)


if __name__ == "__main__":
    sys.exit(main())
