"""No pattern backtracks badly: text that almost matches, over and over, costs in proportion to its length."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time

import pytest

import echoic.english
import echoic.temporal
from echoic.english import listen, listener
from echoic.english.forget_requests import forget_request
from echoic.secrets import Said, mask_turn
from echoic.temporal import rules

MODULES = ["echoic.text", "echoic.memory.mentions", "echoic.memory.forget_targets"] + [
    f"{package.__name__}.{module.name}"
    for package in (echoic.english, echoic.temporal)
    for module in pkgutil.iter_modules(package.__path__)
]
FRAGMENTS = (
    *("please just now then you ", "no wait sorry i mean ", "i want ", "i don't want ", "should not be "),
    *(
        "my ",
        "and ",
        "a ",
        "5 ",
        "1.",
        "a.b@",
        "a-b-",
        "1-2-3 ",
        "x y ",
        ", ",
        "- ",
        "    ",
        "\n",
        "aaaa",
        "'s ",
    ),
)
SIZE = 1_200
MEASURABLE_S = 0.003


def patterns():
    for name in MODULES:
        for attribute, value in vars(importlib.import_module(name)).items():
            if isinstance(value, re.Pattern):
                yield f"{name}.{attribute}", value
    yield from ((f"temporal rule {rule.pattern.pattern[:40]}", rule.pattern) for rule in rules.RULES)
    yield from ((f"english rule {rule.trigger.pattern[:40]}", rule.trigger) for rule in listener.RULES)


def cost(work, times):
    """The least processor time of so many runs."""

    def once():
        begun = time.process_time()
        work()
        return time.process_time() - begun

    return min(once() for _ in range(times))


def grows_too_fast(work, fragment):
    """Whether four times the text takes more than nine times as long: of a quadratic pattern it is sixteen."""
    text = fragment * (SIZE // len(fragment))
    if cost(lambda: work(text), 1) < MEASURABLE_S / 16:  # then not even sixteen times as long can be measured
        return False
    once = cost(lambda: work(text * 4), 1)
    if once < MEASURABLE_S:
        return False
    least = cost(lambda: work(text), 2)
    if once <= 6 * least:  # four times as long, or nearly: most are seen to be linear here
        return False
    least = min(least, cost(lambda: work(text), 3))
    return once > 9 * least and cost(lambda: work(text * 4), 3) > 9 * least


def test_near_matches_cost_every_pattern_in_proportion_to_their_number():
    slow = [
        (name, fragment)
        for name, pattern in patterns()
        for fragment in (*FRAGMENTS, *own_words(pattern))
        if grows_too_fast(lambda text, pattern=pattern: [*pattern.finditer(text)], fragment)
    ]
    assert not slow


def own_words(pattern):
    """What a pattern is most easily led on by."""
    return list(dict.fromkeys(re.findall(r"[a-z][a-z' ]{2,}", pattern.pattern)))[:8]


def test_a_pattern_that_backtracks_badly_is_found():
    assert grows_too_fast(lambda text: re.search(r"(?:just |now )*forget", text), "just now ")


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_what_reads_a_whole_utterance_takes_time_in_proportion(fragment):
    assert not grows_too_fast(listen, fragment)
    assert not grows_too_fast(forget_request, fragment)


@pytest.mark.parametrize(
    "fragment", ["what card ", "is it a card and pin ", "can i ", "let me 1 ", "first and second and "]
)
def test_what_is_said_before_an_answer_is_searched_for_its_question_in_time_in_proportion(fragment):
    def answer(before):
        return mask_turn(Said("user", "4 4 1 2"), [Said("user", before), Said("agent", before)])

    assert not grows_too_fast(answer, fragment)
