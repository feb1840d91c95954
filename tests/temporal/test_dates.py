from __future__ import annotations

from datetime import UTC, datetime

import pytest

from echoic.temporal import rules
from echoic.temporal.rules import DAY_MS, NamedDate, dates_in, spans_of


def ms(*day):
    return int(datetime(*day, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("What did I say on 8 May, 2023?", [NamedDate(2023, 5, 8)]),
        ("what happened on May 8th 2023", [NamedDate(2023, 5, 8)]),
        ("on the twenty-first of june", [NamedDate(None, 6, 21)]),
        ("on june the second", [NamedDate(None, 6, 2)]),
        ("the 3rd of Sept. 2022", [NamedDate(2022, 9, 3)]),
        ("2024-02-29, was that it?", [NamedDate(2024, 2, 29)]),
        ("How was October 2021?", [NamedDate(2021, 10)]),
        ("What did I plan for December?", [NamedDate(None, 12)]),
        ("What happened in 2019?", [NamedDate(2019)]),
        ("in May or June 2023", [NamedDate(2023, 5), NamedDate(2023, 6)]),
        ("in may", [NamedDate(None, 5)]),
        ("what did I do last march", [NamedDate(None, 3)]),
        ("Was it in March or in April?", [NamedDate(None, 3), NamedDate(None, 4)]),
        ("May I ask something?", []),
        ("what may happen", []),
        ("did we march there", []),
        ("Where is Jan?", []),
        ("When did Mar call?", []),
        ("call 2055551234", []),
        ("We like the sun.", []),
        ("What did I eat last Tuesday?", []),
    ],
)
def test_dates_are_read_as_far_as_they_are_said(text, dates):
    assert list(dates_in(text)) == dates


def test_a_text_of_months_is_read_once(monkeypatch):
    read = []

    class Counting:
        def search(self, before):
            read.append(len(before))

    monkeypatch.setattr(rules, "_BEFORE_A_MONTH", Counting())
    assert list(dates_in("may " * 8000)) == []
    assert sum(read) < 8000 * 20


def test_months_and_years_are_not_multiplied_before_repetitions_are_dropped(monkeypatch):
    made = []
    kept = NamedDate._replace
    monkeypatch.setattr(NamedDate, "_replace", lambda *of, **to: made.append(to) or kept(*of, **to))
    assert list(dates_in("in june, 2021, " * 500)) == [NamedDate(2021, 6)]
    assert len(made) < 10


def test_a_span_covers_the_whole_day_month_or_year():
    assert spans_of([NamedDate(2023, 5, 8)], []) == ((ms(2023, 5, 8), ms(2023, 5, 9) - 1),)
    assert spans_of([NamedDate(2023, 12)], []) == ((ms(2023, 12, 1), ms(2024, 1, 1) - 1),)
    assert spans_of([NamedDate(2024)], []) == ((ms(2024, 1, 1), ms(2025, 1, 1) - 1),)


def test_without_a_year_a_date_means_each_year_there_is():
    spans = spans_of([NamedDate(None, 2, 29)], range(2023, 2025))
    # 2023 has no such day: the month is what can be looked for
    assert spans == ((ms(2023, 2, 1), ms(2023, 3, 1) - 1), (ms(2024, 2, 29), ms(2024, 3, 1) - 1))


def test_absurd_years_do_not_make_a_scan_endless():
    assert len(spans_of([NamedDate(None, 5)], range(1, 9999))) == 200
    assert DAY_MS == 24 * 60 * 60 * 1000
