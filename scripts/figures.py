"""Write the figures of benchmarks/results into the README and four of the docs, so that none is ever typed.

.venv/bin/python scripts/figures.py          # rewrite
.venv/bin/python scripts/figures.py --check  # exit 1 if a document says something else
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RANKING = ROOT / "docs" / "ranking.md"
BENCH = ROOT / "docs" / "bench.md"
PHONE = ROOT / "docs" / "phone.md"
COMPARISON = ROOT / "docs" / "comparison.md"
BEGIN, END = "<!-- figures:begin -->", "<!-- figures:end -->"


def result(name: str) -> dict:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def ms(sample: dict) -> str:
    return f"{sample['p50_ms']:.2f} / {sample['p95_ms']:.2f} ms"


def speed_rows(speed: dict) -> list[str]:
    by_size = {row["memories"]: row for row in speed["one_user"]}
    many = speed["many_users"]
    encoded = speed["with_encoding"]
    raw = speed["raw_4k_append_fdatasync"]
    return [
        f"| query, 10,000 memories of one user | {ms(by_size[10_000]['query'])} |",
        f"| the same with MiniLM encoding the question of {encoded['local']['word_pieces']:.0f} word pieces "
        "(fp32; int8) | "
        f"{ms(encoded['local'])}; {ms(encoded['local:int8'])} |",
        f"| likewise, of {encoded['local, long']['word_pieces']:.0f} | "
        f"{ms(encoded['local, long'])}; {ms(encoded['local:int8, long'])} |",
        f"| query, 100,000 memories of one user | {ms(by_size[100_000]['query'])} |",
        f"| query, {many['memories']:,} memories of {many['users']:,} users | {ms(many['query'])} |",
        f"| first query of a user: 1,000; 10,000 memories | {ms(by_size[1000]['cold_first_query'])}; "
        f"{ms(by_size[10_000]['cold_first_query'])} |",
        f"| durable write (a raw 4 KiB append and fdatasync in the same run: {ms(raw)}) | "
        f"{ms(by_size[1000]['durable_write'])} |",
        f"| `import echoic` | {ms(speed['import_echoic'])} |",
    ]


def table() -> str:
    speed = result("speed")
    machine = speed["machine"]
    lines = [
        f"One core of {machine['cpu']}, Python {machine['python']}, SQLite store; p50 / p95:",
        "",
        "| | |",
        "|---|---|",
        *speed_rows(speed),
    ]
    return "\n".join([*lines, *recall_lines(), *peer_lines(), *listening_lines()])


def best() -> str:
    """The figures of the README."""
    speed, peers = result("speed"), result("peers")["peers"]
    by_size = {row["memories"]: row for row in speed["one_user"]}
    others = {peers[name]["R@10"] for name in ("mem0", "chroma", "langgraph")}
    many = speed["many_users"]
    return "\n".join(
        [
            "| one core, p50 / p95 | |",
            "|---|---|",
            "| a question among 10,000 memories of one user, its encoding included | "
            f"{ms(speed['with_encoding']['local'])} |",
            f"| a question among {many['memories']:,} memories of {many['users']:,} users, encoding apart | "
            f"{ms(many['query'])} |",
            f"| a durable write | {ms(by_size[1000]['durable_write'])} |",
            "| evidence found among ten hits, LoCoMo's transcripts, no language model | "
            f"{peers['echoic']['R@10']:.1f} % |",
            "| the same with mem0, Chroma and LangGraph's store, on the same texts and vectors | "
            f"{' / '.join(f'{each:.1f}' for each in sorted(others))} % |",
        ]
    )


def recall_lines() -> list[str]:
    turns = result("locomo")["turns"]
    names = {
        "text": "words alone (BM25, stemmed)",
        "vector": "vectors alone (MiniLM)",
        "hybrid": "their 0.7 / 0.3 reciprocal rank fusion",
        "echoic": "Echoic",
    }
    rows = [
        f"| {label} | {turns[name]['R@5']:.1f} | {turns[name]['R@10']:.1f} | {turns[name]['nDCG@10']:.1f} |"
        for name, label in names.items()
    ]
    return [
        "",
        "Evidence found on LoCoMo (development half, transcripts, no language model), percent:",
        "",
        "| | R@5 | R@10 | nDCG@10 |",
        "|---|---|---|---|",
        *rows,
    ]


PEERS = {
    "echoic": "Echoic",
    "echoic, numpy": "Echoic without its compiled kernel",
    "echoic, vectors alone": "Echoic, by vectors alone as the following do",
    "mem0": "mem0",
    "chroma": "Chroma",
    "langgraph": "LangGraph's store",
}


def peer_lines() -> list[str]:
    return [
        "",
        "Others on the same texts, questions and vectors in one run; a search for ten, encoding excluded:",
        "",
        *peer_table(),
    ]


def peer_table() -> list[str]:
    found = result("peers")
    peers, machine = found["peers"], found["machine"]
    versions = {
        name: version
        for one in peers.values()
        for name, version in one["versions"].items()
        if name != "echoic"
    }
    ranked = found.get("ranking", "numpy")
    by = "numpy" if ranked == "numpy" else f"the compiled kernel ({ranked})"
    return [
        "| | R@10 | p50 / p95 |",
        "|---|---|---|",
        *(
            f"| {label} | {peers[name]['R@10']:.1f} | {ms(peers[name]['search'])} |"
            for name, label in PEERS.items()
            if name in peers
        ),
        "",
        f"One core of {machine['cpu']}, Python {machine['python']}; Echoic ranks by {by}; "
        f"{', '.join(f'{name} {version}' for name, version in versions.items())}.",
    ]


def listening_lines() -> list[str]:
    heldout = result("listening")["held_out"]
    return [
        "",
        f"Rules that listen, on {heldout['utterances']} held-out utterances of this project's own: precision "
        f"{heldout['precision']:.3f}, recall {heldout['recall']:.3f}.",
    ]


LEFT_OUT = {
    "nothing": "nothing",
    "late": "late interaction (`late`)",
    "text": "BM25 over the window (`text`)",
    "meaning": "the window's vector (`meaning`)",
    "speaker": "whose words are asked for (`speaker`)",
    "date": "the date asked for (`date`)",
    "answer": "the turn after a matching question (`answer`)",
    "when": "time words where the question asks when (`when`)",
    "asking": "questions answer less (`asking`)",
    "length": "long turns say more (`length`)",
    "many": "numbers where it asks how many (`many`)",
}
HEARD = {
    "clean": "clean",
    "names": "every name misheard",
    "wer13": "about 13 % of words wrong",
    "wer24": "about 24 % of words wrong",
}


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def ranking() -> str:
    weights, locomo = result("weights"), result("locomo")
    metrics = ["R@5", "R@10", "nDCG@10", "session R@5"]
    bare = locomo["turns, vectors only"]["echoic"]
    many = weights["R@10, multiplied"]
    factors = list(next(iter(many.values())))
    lines = [
        "## What each part of the second look is worth",
        "",
        f"{weights['questions']['turns']} questions over transcripts, {weights['questions']['facts']} over "
        "the facts drawn from them:",
        "",
        row("left out", *metrics, "facts R@10"),
        row(*["---"] * 6),
        *[
            row(label, *(weights["left out"][name][metric] for metric in (*metrics, "facts R@10")))
            for name, label in LEFT_OUT.items()
        ],
        row("the second look altogether (remote embedders)", *(bare[metric] for metric in metrics), ""),
        "",
        "## How delicate the weights are",
        "",
        "R@10 with one weight of the second look multiplied, the others as they are:",
        "",
        row("weight", *(f"× {factor}" for factor in factors)),
        row(*["---"] * (len(factors) + 1)),
        *[row(name, *found.values()) for name, found in many.items()],
        "",
        "R@10 by the number of candidates looked at closely: "
        + ", ".join(f"{count} find {found}" for count, found in weights["R@10, candidates"].items())
        + ".",
    ]
    return "\n".join([*lines, *misheard_lines()])


def misheard_lines() -> list[str]:
    heard = result("noise")["questions"]["fusions"]["blend"]
    metrics = ["R@5", "R@10", "nDCG@10"]
    return [
        "",
        "## Misheard questions",
        "",
        "Capitals and punctuation gone, words of the corpus in place of others that sound alike, words lost",
        "and added (`echoic bench noise`; the seed is fixed):",
        "",
        row("", *metrics),
        row(*["---"] * 4),
        *[row(label, *(heard[name][metric] for metric in metrics)) for name, label in HEARD.items()],
    ]


def phone() -> str:
    measured = result("phone")
    machine, gather, relay = measured["machine"], measured["gather"], measured["relay"]
    claude, gpt = measured["caching_claude"], measured["caching_gpt"]
    interim, media = measured["interim"], measured["media"]
    wrong = sum(one["replies_wrong"] + one["turns_lost_or_doubled"] for one in (gather, relay))
    return "\n".join(
        [
            f"{gather['calls']} calls at once, {gather['turns']} turns a channel, server and callers",
            f"in two processes. {machine['cores_used']} cores of {machine['cpu']} that had other work beside",
            f"(load average {machine['load_average_1m']:.1f}).",
            "",
            row("", ""),
            "|---|--:|",
            row(
                "webhooks, p95, with the 0.8 s they may wait for the model",
                f"{gather['webhook']['p95_ms'] / 1000:.2f} s",
            ),
            row("of that the server's own, p95", f"{gather['own']['p95_ms'] / 1000:.2f} s"),
            row("slowest webhook", f"{gather['webhook_slowest_s']:.2f} s"),
            row(
                "CPU for a turn over webhooks, over a relay, with its share of ringing and hanging up",
                f"{gather['cpu_ms_a_turn']:.0f} ms, {relay['cpu_ms_a_turn']:.0f} ms",
            ),
            row("from the model's token to the caller, p95", f"{relay['token']['p95_ms']:.0f} ms"),
            row("turns lost, doubled or out of order", wrong),
            row(
                f"a model that takes {measured['slow_gather']['model_s']:.0f} s: longest silence over "
                "webhooks, over a relay",
                f"{measured['slow_gather']['longest_silence_s']:.2f} s, "
                f"{measured['slow_relay']['longest_silence_s']:.2f} s",
            ),
            row(
                "recalls that were there when the turn ended, among 1,000 memories",
                f"{interim['recalls_ready']} of {interim['recalls']}",
            ),
            row(
                f"{media['calls']} callers as audio at once: heard wrong; CPU of the server, of a core",
                f"{media['heard_wrong']}; {media['cpu_share_of_a_core']:.0%}".replace("%", " %"),
            ),
            row(
                "a call that recalls 200 turns and goes on for ten: share of what was sent that was cached, "
                "Anthropic's rules, OpenAI's",
                f"{100 * claude['cached_share_of_the_call']:.0f} %, "
                f"{100 * gpt['cached_share_of_the_call']:.0f} %",
            ),
        ]
    )


def main() -> int:
    stale = False
    for path, figures in (
        (README, best()),
        (BENCH, table()),
        (RANKING, ranking()),
        (PHONE, phone()),
        (COMPARISON, "\n".join(peer_table())),
    ):
        text = path.read_text()
        before, rest = text.split(BEGIN)
        _, after = rest.split(END)
        wanted = f"{before}{BEGIN}\n{figures}\n{END}{after}"
        stale |= wanted != text
        if "--check" not in sys.argv:
            path.write_text(wanted)
    return int(stale and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
