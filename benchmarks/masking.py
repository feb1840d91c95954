"""What each detector of secrets is worth: what changes when it is switched off.

    PYTHONPATH=packages/echoic-corpus/src:tests python -m benchmarks.masking

Counted are sentences and dialogues of `tests/secrets` that are masked otherwise without it, and turns of
calls in the voice corpus on which rules may be made. All belong to development: rules were made on them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks import machine
from echoic.secrets import (
    CONTEXT,
    Said,
    dialogue,
    labels,
    mask,
    mask_turn,
    masking,
)
from echoic.secrets.labels import topics
from secrets_kept import callers_of

LABELLED = Path(__file__).parents[1] / "tests" / "secrets"
SETS = ("development", "held_out_1", "held_out_2", "held_out_3", "held_out_4", "held_out_5")
CALLERS = ("c02", "c06", "c14", "c18", "c22", "c26", "c31", "c37")
"""Callers of the split on which rules may be made, as in `tests/secrets/test_calls.py`."""
SPEAKERS = {"caller": "user", "agent": "agent"}
_NEVER = re.compile("(?!)")


def _none(*_: Any, **__: Any) -> None:
    return None


def _nothing(*_: Any, **__: Any) -> tuple[()]:
    return ()


PARTS: dict[str, tuple[Any, str, Any]] = {
    "a value behind what announces it": (labels, "_behind", _none),
    "numbers behind it": (labels, "_number", _none),
    "words behind it": (labels, "_words_behind", _none),
    "letters and digits behind it": (labels, "_lettered", _none),
    "a value said again": (labels, "_again", _nothing),
    "a value in front of what announces it": (labels, "_before", _none),
    "dictated words": (labels, "_dictated", _none),
    "words that were chosen": (labels, "_chosen", _none),
    "card numbers by their check digit": (masking, "cards", _nothing),
    "long cards": (masking, "_long_cards", _nothing),
    "IBANs": (masking, "ibans", _nothing),
    "national ids": (masking, "ids", _nothing),
    "keys and tokens": (masking, "keys", _nothing),
    "secrets in URLs": (masking, "_URL_SECRET", _NEVER),
    "codes behind an expiry date": (masking, "_BEHIND_EXPIRY", _NEVER),
    "numbers near what names a secret": (masking, "near", _nothing),
    "where a key is hidden": (masking, "hidden", _nothing),
    "a number that is keyed in": (topics, "_is_keyed_in", lambda *_: False),
    "an answer to a question": (dialogue, "_answered", _nothing),
    "a number after a turn that named a secret": (dialogue, "_named", _nothing),
    "what the agent reads back": (dialogue, "_read_back", _nothing),
    "a number read out over several turns": (dialogue, "_over_turns", _none),
    "what somebody regrets": (dialogue, "REGRETS", _NEVER),
    "what an agent declines": (dialogue, "DECLINES", _NEVER),
    "a question left dangling": (dialogue, "_dangling", _none),
}


def kept(turns: Sequence[tuple[str, str]]) -> list[str]:
    """A dialogue as it is kept."""
    before: list[Said] = []
    for speaker, text in turns:
        recent = before[-CONTEXT:]
        told = mask_turn(Said(speaker, text), recent)
        for place, masked in told.earlier.items():
            at = len(before) - len(recent) + place
            before[at] = Said(before[at].speaker, masked.text)
        before.append(Said(speaker, told.masked.text))
    return [said.text for said in before]


def main() -> None:
    machine.one_core()
    rows = [json.loads(line) for name in SETS for line in (LABELLED / f"{name}.jsonl").open(encoding="utf-8")]
    dialogues = [json.loads(line)["turns"] for line in (LABELLED / "dialogues.jsonl").open(encoding="utf-8")]
    calls = [
        [(SPEAKERS.get(turn.role, turn.speaker), turn.text) for turn in call.turns]
        for caller in callers_of("train")
        if caller.id in CALLERS
        for call in caller.calls
    ]

    def masked() -> tuple[list[str], list[list[str]], list[str]]:
        spoken = [text for call in calls for text in kept(call)]
        return [mask(row["text"]).text for row in rows], [kept(turns) for turns in dialogues], spoken

    whole = masked()
    found: dict[str, dict[str, int]] = {}
    for name, part in PARTS.items():
        with mock.patch.object(*part):
            without = masked()
        sentences, over_turns, turns = (
            sum(one != other for one, other in zip(before, after, strict=True))
            for before, after in zip(whole, without, strict=True)
        )
        found[name] = {"sentences": sentences, "dialogues": over_turns, "turns": turns}
        print(f"without {name}: {sentences} sentences, {over_turns} dialogues, {turns} turns change")
    of = {"sentences": len(rows), "dialogues": len(dialogues), "turns": len(whole[2])}
    print(machine.save("masking", {"of": of, "without": found}))


if __name__ == "__main__":
    main()
