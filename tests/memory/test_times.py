"""What questions say about time, and what they then find."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import echoic
from echoic import Hit, InvalidInput, Memory, Scope, Turn
from echoic.embedding import embedder_from
from echoic.memory.hits import in_time
from echoic.memory.records import record_of_memory
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.stores.base import Put
from echoic.temporal import (
    EARLIEST_MS,
    NamedEvent,
    Spans,
    may_mean_time,
    moment_of,
    rules,
    spans_of_phrase,
    zone_of,
)
from echoic.temporal.rules import DAY, FEASTS, RULES
from scale import many

LISBON, NEW_YORK = ZoneInfo("Europe/Lisbon"), ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 18, 15, 30, tzinfo=UTC)
"""A Wednesday."""


def ranges(text, zone=UTC, now=NOW):
    """As local (first, last), to the minute; None is open to the past."""
    spans = spans_of_phrase(text, now, zone)
    return [tuple(None if ms == EARLIEST_MS else local(ms, zone) for ms in span) for span in spans.ranges]


def local(ms, zone):
    return datetime.fromtimestamp(ms / 1000, zone).strftime("%Y-%m-%d %H:%M")


def day(first, last=None):
    return (f"{first} 00:00", f"{last or first} 23:59")


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("what did I say last Tuesday", day("2026-11-17")),
        ("what did I say last Wednesday", day("2026-11-11")),
        ("who called on Sunday?", day("2026-11-15")),
        ("what did I eat yesterday", day("2026-11-17")),
        ("what did I say yesterday morning", ("2026-11-17 05:00", "2026-11-17 11:59")),
        ("where was I last Friday night", ("2026-11-13 18:00", "2026-11-14 03:59")),
        ("what did we do the day before yesterday?", day("2026-11-16")),
        ("what did I say last night", ("2026-11-17 18:00", "2026-11-18 03:59")),
        ("what did I tell you this morning", ("2026-11-18 05:00", "2026-11-18 11:59")),
        ("what did I say three days ago", day("2026-11-15")),
        ("what did I say two weeks ago", day("2026-11-01", "2026-11-07")),
        ("what was it twenty-one days ago", day("2026-10-28")),
        ("an hour ago I said something", ("2026-11-18 14:00", "2026-11-18 14:59")),
        ("what did I say a couple of days ago", day("2026-11-15", "2026-11-17")),
        ("what did I buy last week", day("2026-11-09", "2026-11-15")),
        ("what did I buy last weekend", ("2026-11-13 17:00", "2026-11-15 23:59")),
        ("what did I buy the week before last", day("2026-11-02", "2026-11-08")),
        ("what did I say last month?", day("2026-10-01", "2026-10-31")),
        ("what did I do last year", day("2025-01-01", "2025-12-31")),
        ("what did I do the past year", ("2025-11-18 00:00", "2026-11-18 15:29")),
        ("what have I said this past week", ("2026-11-11 00:00", "2026-11-18 15:29")),
        ("what did I say a couple weeks ago", day("2026-10-28", "2026-11-08")),
        ("what did I say couple of days ago", day("2026-11-15", "2026-11-17")),
        ("what have I said in the last two weeks", ("2026-11-04 00:00", "2026-11-18 15:29")),
        ("what happened in May", day("2026-05-01", "2026-05-31")),
        ("what happened in December", day("2025-12-01", "2025-12-31")),
        ("what did I say last November", day("2025-11-01", "2025-11-30")),
        ("what happened on May 8th", day("2026-05-08")),
        ("what happened on 8 May 2023", day("2023-05-08")),
        ("what happened in late March", day("2026-03-21", "2026-03-31")),
        ("what did I say on the 8th?", day("2026-11-08")),
        ("what did I say on the twenty first", day("2026-10-21")),
        ("where did I live in 2019", day("2019-01-01", "2019-12-31")),
        ("where was I last summer", day("2026-06-01", "2026-08-31")),
        ("where was I in the summer of 2021", day("2021-06-01", "2021-08-31")),
        ("what did I get for Christmas", day("2025-12-24", "2025-12-26")),
        ("where were we on New Year’s Eve", day("2025-12-31")),
        ("what did we eat at Thanksgiving", day("2025-11-27", "2025-11-28")),
        ("where were we at Easter", day("2026-04-03", "2026-04-06")),
        ("what have I bought since Christmas", ("2025-12-24 00:00", "2026-11-18 15:29")),
        ("how often did I call since Monday", ("2026-11-16 00:00", "2026-11-18 15:29")),
        ("did I call before May?", (None, "2026-04-30 23:59")),
        ("where did I work until last month", (None, "2026-10-31 23:59")),
        ("what did I say after June 3rd 2026", ("2026-06-04 00:00", "2026-11-18 15:29")),
        ("what did I do two weeks before August 11, 2023", day("2023-07-28", "2023-08-10")),
        ("what did I do the day after Christmas", day("2025-12-27")),
        ("what did we discuss between Monday and Wednesday", day("2026-11-16", "2026-11-18")),
        ("what was I doing from May to July", day("2026-05-01", "2026-07-31")),
        ("what did I say ten days before 4 July 2025?", day("2025-06-24", "2025-07-03")),
        ("what did I say a few weeks before Christmas", day("2025-11-19", "2025-12-23")),
        ("what did I say between June 2024 and now", ("2024-06-01 00:00", "2026-11-18 15:29")),
        ("what did I say from June 2024 to last month", day("2024-06-01", "2026-10-31")),
        ("what did I say from January until now", ("2026-01-01 00:00", "2026-11-18 15:29")),
        ("what did I say in March last year", day("2025-03-01", "2025-03-31")),
        ("what did I say in March of last year", day("2025-03-01", "2025-03-31")),
        ("what did I say last year in March", day("2025-03-01", "2025-03-31")),
        ("what did I say in March two years ago", day("2024-03-01", "2024-03-31")),
        ("what did I say on March 4th this year", day("2026-03-04")),
        ("where were we at Easter last year", day("2025-04-18", "2025-04-21")),
        ("where were we for last year's Thanksgiving", day("2025-11-27", "2025-11-28")),
        ("what did I say on Tuesday last week", day("2026-11-10")),
        ("what did I say last week on Tuesday", day("2026-11-10")),
        ("where was I on Friday night last week", ("2026-11-13 18:00", "2026-11-14 03:59")),
        ("what did I say between March and May last year", day("2025-03-01", "2025-05-31")),
        ("what did I say last year between March and May", day("2025-03-01", "2025-05-31")),
        ("From 3 to 5 May 2025", day("2025-05-03", "2025-05-05")),
        ("what did I say from the 3rd to the 5th of May 2025", day("2025-05-03", "2025-05-05")),
        ("what did I say between the 3rd and the 5th of May?", day("2026-05-03", "2026-05-05")),
        ("what did I say between the third and fifth of May", day("2026-05-03", "2026-05-05")),
        ("what did I say on 3-5 May 2025", day("2025-05-03", "2025-05-05")),
        ("what did I say on 3\u20135 May 2025", day("2025-05-03", "2025-05-05")),
        ("what did I say between May 3rd and 5th, 2025?", day("2025-05-03", "2025-05-05")),
        ("what did I say from May 3 to 5", day("2026-05-03", "2026-05-05")),
        ("what did I say from the 3rd of May to the 5th", day("2026-05-03", "2026-05-05")),
        ("what did I say from 3 to 5 May last year", day("2025-05-03", "2025-05-05")),
        ("what did I say last year from 3 to 5 May", day("2025-05-03", "2025-05-05")),
        ("what did I say from 24 to 26 December", day("2025-12-24", "2025-12-26")),
        ("what did I say before 3-5 May 2025", (None, "2025-05-02 23:59")),
        ("what did I say from May 3 to 5 June", day("2026-05-03", "2026-06-05")),
        ("what did I say from the 3rd to the 5th", day("2026-11-03", "2026-11-05")),
        ("what did I say from the 3rd through the 5th", day("2026-11-03", "2026-11-05")),
        ("what did I say 3 May to 5 June 2025", day("2025-05-03", "2025-06-05")),
        ("where did I live 2019-2021", day("2019-01-01", "2021-12-31")),
        ("what did I say since Monday until Tuesday", day("2026-11-16", "2026-11-17")),
        ("what did we discuss from Monday to Wednesday", day("2026-11-16", "2026-11-18")),
        ("what did we discuss from Monday through Tuesday", day("2026-11-16", "2026-11-17")),
        ("what did we discuss from Thursday to Monday", day("2026-11-12", "2026-11-16")),
        # asked on a Wednesday, that is not what begins on this Tuesday
        ("what did we discuss from Tuesday to Thursday", day("2026-11-10", "2026-11-12")),
        ("what did we discuss from Friday night to Sunday", ("2026-11-13 18:00", "2026-11-15 23:59")),
        ("what did I say two Fridays ago?", day("2026-11-06")),
        ("what did I say three Mondays ago", day("2026-11-02")),
        ("what did I say two Wednesdays ago", day("2026-11-04")),
        ("what did I say two Friday nights ago", ("2026-11-06 18:00", "2026-11-07 03:59")),
        ("what did I say a couple of Fridays ago", day("2026-10-30", "2026-11-06")),
        ("what have I said since two Fridays ago", ("2026-11-06 00:00", "2026-11-18 15:29")),
        # which Friday is not said, and that year had no such day
        ("what did I say on Friday last month", day("2026-10-01", "2026-10-31")),
        ("what did I say on February 29 last year", day("2025-01-01", "2025-12-31")),
    ],
)
def test_a_phrase_means_the_time_people_mean_by_it(text, span):
    assert ranges(text) == [span]
    assert may_mean_time(text)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("what did I do from 9 to 5 on 5 May 2025", [day("2025-05-05")]),
        ("did I work from 9 to 5 May 2025", [day("2025-05-05")]),
        ("what did I say on 3 and 5 May", [day("2026-05-05")]),
        ("who came between May 3 and 5 o'clock", [day("2026-05-03")]),
        ("what did I do from 28 to 31 June 2025", []),
        ("what did I say from 3 to 5 May and on 7 May", [day("2026-05-03", "2026-05-05"), day("2026-05-07")]),
        ("what did I say yesterday - last Friday", [day("2026-11-17"), day("2026-11-13")]),
        ("what did I say 0 Fridays ago", []),
        ("when are we open, Monday through Friday", []),
        ("what did we get through the first", []),
    ],
)
def test_numbers_beside_a_date_that_are_no_days_of_it_and_days_apart_make_no_range(text, spans):
    assert ranges(text) == spans


@pytest.mark.parametrize(
    ("text", "clock", "span"),
    [
        ("what did I say tonight", (0, 10), ("2026-11-17 18:00", "2026-11-18 03:59")),
        ("what did I tell you this evening", (0, 10), ("2026-11-17 17:00", "2026-11-17 23:59")),
        ("what did I say this afternoon", (3, 59), ("2026-11-17 12:00", "2026-11-17 17:59")),
        ("what did I say this morning", (1, 0), ("2026-11-17 05:00", "2026-11-17 11:59")),
        ("what did I say tonight", (23, 50), ("2026-11-18 18:00", "2026-11-19 03:59")),
        ("what did I say this evening", (9, 0), ("2026-11-18 17:00", "2026-11-18 23:59")),
        ("what did I say this morning", (6, 0), ("2026-11-18 05:00", "2026-11-18 11:59")),
        ("what did I say today", (0, 10), day("2026-11-18")),
    ],
)
def test_after_midnight_the_evening_goes_on_until_people_sleep(text, clock, span):
    now = datetime(2026, 11, 18, *clock, tzinfo=NEW_YORK)
    assert ranges(text, NEW_YORK, now) == [span]


@pytest.mark.parametrize(
    "text",
    [
        "We like the sun",
        "may I ask you something",
        "did I fall in love",
        "where is Jan",
        "is it on the first floor",
        "what is my last name",
        "did we march there",
        "how old am I",
        "the last time I saw her",
        "what was I told in my last year of school",
        "two hundred million decades ago",
        "what happened on the 31st of June 2023",
        "sat on the mon amour",
        "what's the weather today",
        "what am I doing on Friday?",
        "what are we planning for December",
        "who won the second round",
        "",
        "¿qué dije ayer?",
    ],
)
def test_what_names_no_time_in_the_past_has_no_range(text):
    assert ranges(text) == []


def test_the_same_moment_is_another_day_where_clocks_stand_elsewhere():
    now = datetime(2026, 11, 18, 2, 0, tzinfo=UTC)  # still the 17th in New York
    assert ranges("what did I say yesterday", NEW_YORK, now) == [day("2026-11-16")]
    assert ranges("what did I say yesterday", LISBON, now) == [day("2026-11-17")]


def test_a_day_on_which_clocks_change_has_23_or_25_hours():
    def hours(now):
        ((first, last),) = spans_of_phrase("what did I say yesterday", now, NEW_YORK).ranges
        return round((last - first) / 3_600_000)

    assert hours(datetime(2026, 3, 9, 12, tzinfo=UTC)) == 23
    assert hours(datetime(2026, 11, 2, 12, tzinfo=UTC)) == 25


def test_hours_ago_are_counted_through_the_change_of_clocks():
    now = datetime(2026, 11, 1, 7, 30, tzinfo=UTC)  # 2:30 in New York, an hour and a half after the change
    ((first, last),) = spans_of_phrase("what did I say two hours ago", now, NEW_YORK).ranges
    middle = datetime.fromtimestamp((first + last) / 2000, UTC)
    assert abs(middle - (now - timedelta(hours=2))) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("what did I say three days ago", day("2026-03-28")),
        ("what did I say two weeks ago", day("2026-03-14", "2026-03-20")),
        ("what did I say a month ago", day("2026-02-13", "2026-03-15")),
        ("what did I say in the last three days", ("2026-03-28 00:00", "2026-03-31 00:29")),
        ("what did I say a couple of days ago", day("2026-03-28", "2026-03-29")),
    ],
)
def test_days_ago_are_those_of_the_calendar_after_a_change_of_clocks(text, span):
    assert ranges(text, LISBON, datetime(2026, 3, 31, 0, 30, tzinfo=LISBON)) == [span]


def test_what_names_its_year_counts_and_what_goes_by_the_clock_does_not():
    asked = "What did Joanna finish last Friday on 23 January, 2022?"
    assert ranges(asked) == [day("2022-01-23")]


@pytest.mark.parametrize(
    ("text", "past"),
    [
        ("where did I live before?", True),
        ("where did I used to live", True),
        ("what was my old address", True),
        ("who was my previous boss", True),
        ("where did I live in 2019", True),
        ("what did I say last Tuesday", True),
        ("where did we live before the move", True),
        ("where do I live", False),
        ("what's my last name", False),
        ("how old is my son", False),
        ("what did I say today", False),
        ("what have I bought since Christmas", False),
    ],
)
def test_the_past_is_meant_where_it_is_asked_for(text, past):
    assert spans_of_phrase(text, NOW, UTC).past is past


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("what did I say before the move?", NamedEvent(relation="before", text="the move")),
        (
            "after my sister's wedding what did we eat",
            NamedEvent(relation="after", text="my sister's wedding"),
        ),
        ("since I moved to Boston", NamedEvent(relation="since", text="I moved to Boston")),
        ("what did I buy during our trip to Rome?", None),
        ("call me before you go", None),
        ("what was before that", None),
        ("before I go, what did I say", None),
        ("what did I do before Christmas", None),
    ],
)
def test_an_event_is_read_where_it_says_when(text, event):
    assert spans_of_phrase(text, NOW, UTC).event == event


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.pattern.pattern[:40])
@settings(max_examples=many(30, least=10), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_a_rule_matches_has_a_piece_that_the_rule_needs(rule, data):
    text = data.draw(st.from_regex(rule.pattern))
    assert any(piece in text.casefold() for piece in rule.needs)


@settings(max_examples=many(60, least=10), deadline=None)
@given(st.from_regex(rules._NAMED))
def test_whatever_is_read_as_a_date_has_a_piece_that_every_date_has(text):
    assert any(piece in text.casefold() for piece in rules._NEEDED)


@settings(max_examples=many(150, least=10), deadline=None)
@given(
    st.text(max_size=80)
    | st.sampled_from(
        ["99 years", "last 0th", "on the 99th", "0 days", "9 years before 202 decades", "Friday this year"]
    )
)
def test_any_text_is_read_without_fault_and_ranges_are_in_order(text):
    for asked in (text, f"{text} ago", f"since {text} May", f"on the {text}"):
        spans = spans_of_phrase(asked, NOW, NEW_YORK)
        assert all(first <= last for first, last in spans.ranges)
        assert may_mean_time(asked) or spans == Spans()


def test_of_a_long_text_the_end_is_read():
    talk = "so I was telling her about the garden and all that " * 600
    assert ranges(f"{talk} what did I say yesterday?") == [day("2026-11-17")]
    assert ranges(f"what did I say yesterday? {talk}") == []


def test_what_would_begin_before_any_calendar_is_open_to_the_past():
    ((first, _),) = spans_of_phrase("four years before 202 decades ago", NOW, NEW_YORK).ranges
    assert first == EARLIEST_MS


def test_every_day_of_a_list_lies_in_the_year_that_is_said_once():
    asked = "what did I say in May and June of last year"
    assert ranges(asked) == [day("2025-05-01", "2025-05-31"), day("2025-06-01", "2025-06-30")]


@pytest.mark.parametrize(
    "text",
    [
        "what did I say in March last year",
        "what did I say two weeks before Christmas",
        "since Monday",
        "what did I say from 3 to 5 May 2025?",
        "what did I say two Fridays ago",
        "do you remember what I told you yesterday",
    ],
)
def test_what_opens_or_frames_a_time_is_nothing_else_that_is_asked_for(text):
    assert spans_of_phrase(text, NOW, NEW_YORK).bare


def test_a_moment_without_a_zone_is_refused():
    with pytest.raises(InvalidInput, match="time zone"):
        spans_of_phrase("yesterday", datetime(2026, 1, 1), UTC)  # noqa: DTZ001


@pytest.mark.parametrize("name", FEASTS)
def test_every_feast_is_understood_by_its_name(name):
    assert len(ranges(f"what did we eat on {name}")) == 1
    assert len(ranges(f"what did we eat on {name.replace(chr(39), '')} 2024")) == 1


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("Europe/Lisbon", 0),
        ("Eastern", -5),
        ("EST", -5),
        ("India Standard Time", 5.5),
        ("UTC+2", 2),
        ("gmt", 0),
        ("europe/lisbon", 0),
        ("america/new york", -5),
        ("Central European Summer Time", 1),
        ("UTC-0:30", -0.5),
    ],
)
def test_a_zone_is_known_by_the_names_people_give_it(name, hours):
    assert NOW.astimezone(zone_of(name)).utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize("name", ["Atlantis", "../../etc/passwd", "UTC+99", "Europe", "", "/etc/localtime"])
def test_an_unknown_zone_is_refused_by_name(name):
    with pytest.raises(InvalidInput):
        zone_of(name)


def test_importing_echoic_loads_no_calendar_library():
    code = "import sys, echoic; echoic.open('memory://'); print('dateutil' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


# -- versions


ANA = Scope("d", "ana")


def hit(text, key="home", begins=1, ends=None, by=None, scope=ANA):
    memory = Memory(
        id=text,
        key=key,
        text=text,
        valid_from=datetime(2026, begins, 1, tzinfo=UTC),
        valid_until=datetime(2026, ends, 1, tzinfo=UTC) if ends else None,
        superseded_by=by,
    )
    return Hit(text=text, score=1.0, ranks={}, scope=scope, memory=memory)


LIVED = [
    hit("Oslo", begins=1, ends=3, by="Rome"),
    hit("Rome", begins=3, ends=6, by="Boston"),
    hit("Boston", begins=6),
]
OTHER = hit("Rex", key="dog")


def texts(hits):
    return [one.text for one in hits]


def test_what_holds_comes_before_what_held_unless_the_past_is_asked_for():
    hits = [LIVED[0], OTHER, LIVED[1], LIVED[2]]
    assert texts(in_time(hits, Spans())) == ["Boston", "Rex", "Rome", "Oslo"]
    assert texts(in_time(hits, Spans(past=True))) == ["Rome", "Rex", "Oslo", "Boston"]


def test_what_held_in_the_time_asked_for_comes_first():
    asked = spans_of_phrase("where did I live in February", NOW, UTC)
    assert texts(in_time(LIVED[::-1], asked))[0] == "Oslo"
    asked = spans_of_phrase("where did I live in April", NOW, UTC)
    assert texts(in_time(LIVED[::-1], asked))[0] == "Rome"


def test_two_scopes_keep_their_own_versions_apart():
    everyones = hit("9 to 5", scope=Scope("d", None), ends=2, by="x")
    assert texts(in_time([everyones, LIVED[2]], Spans())) == ["9 to 5", "Boston"]


# -- events


def said(text, month, at=1):
    turn = Turn(speaker="user", text=text, said_at=datetime(2026, month, at, tzinfo=UTC))
    return Hit(text=text, score=1.0, ranks={}, scope=ANA, turn=turn)


def test_an_event_is_clear_where_what_speaks_of_it_agrees():
    move = NamedEvent(relation="before", text="the move")
    assert moment_of(move, [said("We are moving today", 5), said("I like tea", 1)]).month == 5
    assert moment_of(move, [said("We moved", 5), said("After moving I slept", 5, 20)]).month == 5


def test_an_event_nobody_speaks_of_or_of_which_there_were_several_is_not_clear():
    move = NamedEvent(relation="before", text="the move")
    assert moment_of(move, []) is None
    assert moment_of(move, [said("I like tea", 1)]) is None
    assert moment_of(move, [said("We moved", 5), said("We moved again", 9)]) is None


# -- in a memory


@pytest.fixture
def at():
    """The time of a service, to be set."""
    return [NOW]


@pytest.fixture
async def ana(at):
    service = MemoryService(store_from("memory://"), embedder_from("lexical"), clock=lambda: at[0])
    async with service:
        yield service.user("ana")


async def talk(ana, *turns):
    call = await ana.conversation("call")
    await call.append(
        *(Turn(speaker=who, text=text, said_at=datetime.fromisoformat(when)) for when, who, text in turns)
    )


async def test_what_was_said_on_a_day_is_found_by_the_day_alone(ana):
    await talk(
        ana,
        ("2026-11-16T09:00:00+00:00", "user", "The gutters need cleaning."),
        ("2026-11-17T09:00:00+00:00", "user", "My knee hurts when I kneel."),
        ("2026-11-17T09:01:00+00:00", "agent", "Rest it for a while."),
        ("2026-11-17T19:00:00+00:00", "user", "Book the dentist."),
    )
    found = await ana.query("what did I say last Tuesday?", limit=3)
    assert texts(found)[:2] == ["My knee hurts when I kneel.", "Book the dentist."]
    assert texts(await ana.query("what did I say yesterday evening", limit=1)) == ["Book the dentist."]
    assert texts(await ana.query("what did you tell me yesterday", limit=1)) == ["Rest it for a while."]


async def test_what_was_said_on_a_day_is_found_however_much_was_said_in_a_call_that_is_left_out(ana):
    chat, phone = await ana.conversation("chat"), await ana.conversation("phone")
    for call, count in ((chat, 60), (phone, 1)):
        said = [Turn(speaker="user", text=f"Wipe shelf {n}.", said_at=NOW - DAY / 24) for n in range(count)]
        await call.append(*said, learn=False)
    recall = await ana.recall("What did I say today?", besides="chat", limit=5)
    assert [hit.turn.conversation for hit in recall.hits] == ["phone"]


async def test_what_is_said_in_a_call_that_is_left_out_does_not_settle_which_year_is_meant(ana):
    await talk(
        ana,
        ("2024-09-10T09:00:00+00:00", "user", "I had lunch with Paula and Al."),
        ("2023-11-10T09:00:00+00:00", "user", "I had lunch with Paula and Jo."),
    )
    asked = "Who did I have lunch with in November?"
    before = [(hit.text, hit.score) for hit in await ana.query(asked, besides="now")]
    call = await ana.conversation("now")
    await call.append(Turn(speaker="user", text=asked, said_at=NOW), learn=False)
    assert [(hit.text, hit.score) for hit in await ana.query(asked, besides="now")] == before


@pytest.mark.parametrize("own", ["Wipe the shelf.", None])
async def test_what_others_made_known_today_is_not_what_the_user_said(at, own):
    service = MemoryService(store_from("memory://"), embedder_from("lexical"), clock=lambda: at[0])
    async with service:
        await service.global_facts().set("opening_hours", "We open at nine.")
        user = service.user("ana")
        if own:
            call = await user.conversation("call")
            await call.append(Turn(speaker="user", text=own, said_at=NOW), learn=False)
        assert texts(await user.query("What did I say today?")) == ([own] if own else [])
        assert texts(await user.query("When do you open?")) == ["We open at nine."]


async def test_of_two_that_say_the_same_the_time_decides(ana):
    for number, month in enumerate((3, 5, 8)):
        await talk(
            ana, (f"2026-{month:02}-10T09:00:00+00:00", "user", f"I had lunch with Paula, number {number}.")
        )
    assert texts(await ana.query("who did I have lunch with in May", limit=1)) == [
        "I had lunch with Paula, number 1."
    ]


async def test_a_month_in_which_nothing_was_said_means_that_month_of_any_year(ana):
    await talk(
        ana,
        ("2024-05-10T09:00:00+00:00", "user", "I had lunch with Paula and Jo."),
        ("2024-07-10T09:00:00+00:00", "user", "The gutters need cleaning."),
        ("2024-09-10T09:00:00+00:00", "user", "I had lunch with Paula and Al."),
    )
    assert texts(await ana.query("who did I have lunch with in May", limit=1)) == [
        "I had lunch with Paula and Jo."
    ]


async def test_where_did_i_live_before_is_answered_by_what_held_before(ana, at):
    for month, town in ((1, "Oslo"), (3, "Rome"), (6, "Boston")):
        at[0] = datetime(2026, month, 1, tzinfo=UTC)
        await ana.set("home", town)
    at[0] = NOW
    assert texts(await ana.query("where is my home?")) == ["Boston"]
    assert texts(await ana.query("where was my home before?"))[0] == "Rome"
    assert texts(await ana.query("where was my home in February?"))[0] == "Oslo"
    assert texts(await ana.query("my home", include_past=True)) == ["Boston", "Rome", "Oslo"]


async def test_of_what_stands_further_back_only_versions_of_a_hit_are_read(ana, at, monkeypatch):
    for number in range(20):
        await talk(ana, (f"2026-05-{number + 1:02}T09:00:00+00:00", "user", f"My home has {number} doors."))
    for month, town in ((1, "Oslo"), (3, "Rome"), (6, "Boston")):
        at[0] = datetime(2026, month, 1, tzinfo=UTC)
        await ana.set("home town", town)
    at[0] = NOW
    read, store = [], ana._parts.recaller._store
    rows = store.rows

    async def counted(scope, some):
        read.extend(some)
        return await rows(scope, some)

    monkeypatch.setattr(store, "rows", counted)
    assert texts(await ana.query("what was my home town in February?", limit=2))[0] == "Oslo"
    assert 3 <= len(read) <= 5  # two hits, and of the 20 turns behind them none
    read.clear()
    assert len(await ana.query("how many doors did I say my home had in May?", limit=2)) == 2
    assert len(read) <= 5


async def test_before_the_move_is_before_the_day_it_was_spoken_of(ana):
    await talk(
        ana,
        ("2026-02-10T09:00:00+00:00", "user", "My landlord is called Henk."),
        ("2026-06-01T09:00:00+00:00", "user", "The move went well."),
        ("2026-09-10T09:00:00+00:00", "user", "My landlord is called Marta."),
    )
    before, after = [
        [
            (hit.turn or hit.memory).text
            for hit in await ana.query(f"what was my landlord called {when} the move?")
        ]
        for when in ("before", "after")
    ]
    henk, marta = "My landlord is called Henk.", "My landlord is called Marta."
    assert before.index(henk) < before.index(marta)
    assert after.index(marta) < after.index(henk)


async def test_a_question_that_is_appended_before_it_is_asked_does_not_say_when_its_event_was(ana):
    await talk(
        ana,
        ("2026-02-10T09:00:00+00:00", "user", "My landlord is called Henk."),
        ("2026-06-01T09:00:00+00:00", "user", "The move went well."),
        ("2026-09-10T09:00:00+00:00", "user", "My landlord is called Marta."),
    )
    asked = "What was my landlord called before the move?"
    before, hits = await ana._times.read(ana.scope, asked), await ana.query(asked)
    call = await ana.conversation("now")
    await call.append(Turn(speaker="user", text=asked, said_at=NOW), learn=False)
    assert before.ranges
    assert (await ana._times.read(ana.scope, asked, besides="now")) == before
    assert await ana.query(asked, besides="now") == hits


async def test_what_held_before_an_event_answers_what_was_before_it(ana, at):
    for month, town in ((1, "Oslo"), (3, "Rome"), (6, "Boston")):
        at[0] = datetime(2026, month, 1, 9, tzinfo=UTC)
        await ana.set("home", town)
    at[0] = NOW
    await talk(ana, ("2026-06-01T12:00:00+00:00", "user", "The move went well."))
    homes = [hit.text for hit in await ana.query("where was my home before the move?") if hit.memory]
    assert homes == ["Rome", "Oslo", "Boston"]
    homes = [hit.text for hit in await ana.query("where was my home after the move?") if hit.memory]
    assert homes[0] == "Boston"


async def test_the_zone_is_the_one_given_then_what_the_user_set_then_what_they_said(ana, at):
    at[0] = datetime(2026, 11, 18, 2, 0, tzinfo=UTC)
    await talk(ana, ("2026-11-17T12:00:00+00:00", "user", "Water the ferns."))
    asked = "what did I say yesterday"
    read = ana._times.read
    assert (await read(ana.scope, asked)).ranges == spans_of_phrase(asked, at[0], UTC).ranges
    await ana.set("timezone", "Eastern")
    new_york = spans_of_phrase(asked, at[0], NEW_YORK).ranges
    assert (await read(ana.scope, asked)).ranges == new_york
    await ana.set_directives(time_zone="Asia/Tokyo")
    tokyo = spans_of_phrase(asked, at[0], ZoneInfo("Asia/Tokyo")).ranges
    assert (await read(ana.scope, asked)).ranges == tokyo
    assert (await read(ana.scope, asked, "America/New_York")).ranges == new_york
    assert tokyo != new_york


@pytest.mark.parametrize("whose", ["user", "everyone"])
async def test_a_search_reads_the_zone_by_its_key_only_where_there_is_one(ana, at, monkeypatch, whose):
    at[0] = datetime(2026, 11, 18, 2, 0, tzinfo=UTC)  # the 17th in New York
    said = [("2026-11-17T12:00:00+00:00", "Water the ferns."), ("2026-11-16T12:00:00+00:00", "Feed the cat.")]
    await talk(ana, *[(when, "user", text) for when, text in said])
    store, keys = ana._parts.store, []
    scan = store.scan

    async def counted(scope, kind, *, key=None, **how):
        keys.append(key)
        return await scan(scope, kind, key=key, **how)

    monkeypatch.setattr(store, "scan", counted)
    assert (await ana.query("what did I say yesterday"))[0].text == "Water the ferns."
    assert not {"time_zone", "timezone"} & set(keys)
    zone = Memory(id="zone", key="timezone", text="Eastern", valid_from=at[0])
    scope = ana.scope if whose == "user" else ana.scope.everyone
    await store.write(scope, [Put(record=record_of_memory(zone))])
    assert (await ana.query("what did I say yesterday"))[0].text == "Feed the cat."
    assert "timezone" in keys


async def test_a_zone_that_was_said_but_is_none_is_left_out(ana):
    await ana.set("timezone", "wherever I am")
    asked = "what did I say yesterday"
    assert (await ana._times.read(ana.scope, asked)).ranges == spans_of_phrase(asked, NOW, UTC).ranges


async def test_an_unknown_zone_is_refused_whatever_is_asked(ana):
    with pytest.raises(InvalidInput, match="Atlantis"):
        await ana.query("hello there", timezone="Atlantis")


async def test_anothers_event_and_anothers_zone_mean_nothing(ana, at):
    service = MemoryService(store_from("memory://"), embedder_from("lexical"), clock=lambda: at[0])
    async with service:
        bob, eve = service.user("bob"), service.user("eve")
        await talk(bob, ("2026-06-01T09:00:00+00:00", "user", "The move went well."))
        await bob.set_directives(time_zone="Asia/Tokyo")
        asked = await eve._times.read(eve.scope, "what did I say before the move?")
        assert asked.ranges == ()
        assert (await eve._times.read(eve.scope, "what did I say yesterday")).ranges == (
            spans_of_phrase("what did I say yesterday", NOW, UTC).ranges
        )


async def test_by_the_deadline_the_answer_stands_without_a_date_that_is_not_read_yet(ana, monkeypatch):
    """Reading a time may wait for the store: for the user's zone, or for the event that the question goes by."""
    read = ana._times.zone
    let_go = asyncio.Event()

    async def slow(*args):
        await let_go.wait()
        return await read(*args)

    await talk(ana, ("2026-11-17T12:00:00+00:00", "user", "Water the ferns."))
    monkeypatch.setattr(ana._times, "zone", slow)
    recall = await ana.recall("did I water the ferns yesterday", deadline_ms=2000)
    let_go.set()
    assert recall.outcome == "deadline"
    assert recall.cut == ("date",)
    assert texts(recall.hits) == ["Water the ferns."]


async def test_every_answer_says_what_it_was_cut_by(ana):
    await ana.set("home", "Boston")
    complete = await ana.recall("home", deadline_ms=60_000)
    assert (complete.outcome, complete.cut) == ("complete", ())
    assert isinstance(complete, echoic.Recall)
