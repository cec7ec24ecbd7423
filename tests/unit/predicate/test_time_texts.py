"""Times in conditions are counted exactly, with their offset and to the nanosecond."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.predicate.time_texts import nanoseconds_cut_from, nanoseconds_of, with_exact_times

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))  # noqa: DTZ001 (wall clocks)
OFFSETS = st.integers(-23 * 60, 23 * 60)


def _micros(moment: datetime) -> int:
    return (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


@given(moment=MOMENTS, digits=st.text("0123456789", min_size=1, max_size=9), blank=st.booleans())
def test_time_is_counted_to_its_last_digit(moment: datetime, digits: str, blank: bool) -> None:
    whole = moment.replace(microsecond=0)
    text = f"{whole.isoformat(' ' if blank else 'T')}.{digits}"

    found = nanoseconds_of(text, with_offset=False)

    assert found == _micros(whole) * 1_000 + int(digits.ljust(9, "0"))


@given(moment=MOMENTS.map(lambda it: it.replace(microsecond=0)), minutes=OFFSETS)
def test_offset_is_taken_off(moment: datetime, minutes: int) -> None:
    zone = timezone(timedelta(minutes=minutes))

    found = nanoseconds_of(moment.replace(tzinfo=zone).isoformat(), with_offset=True)

    assert found == (_micros(moment) - minutes * 60_000_000) * 1_000
    assert nanoseconds_of(f"{moment.isoformat()}Z", with_offset=True) == _micros(moment) * 1_000


@given(day=st.dates(date(1700, 1, 1), date(2200, 1, 1)))
def test_day_is_counted_from_its_midnight(day: date) -> None:
    expected = np.datetime64(day.isoformat(), "ns").astype(int)

    assert nanoseconds_of(day.isoformat(), with_offset=False) == expected


@pytest.mark.parametrize("form", ["2026-02-01 00:00:00+02", "2026-02-01T00:00Z"])
def test_wall_clock_has_no_offset(form: str) -> None:
    assert nanoseconds_of(form, with_offset=True) is not None
    assert nanoseconds_of(form, with_offset=False) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "2026-02-30", "2026-2-1", "2026-02-01 24:00:01", "12:00"),
        *("2026-02-01 00:00:00.", "2026-02-01 00:00:00.1234567890", " 2026-02-01", "2026-02-01x"),
        "\N{FULLWIDTH DIGIT TWO}026-02-01",
    ],
)
def test_text_that_names_no_time_counts_nothing(text: str) -> None:
    assert nanoseconds_of(text, with_offset=True) is None


@given(digits=st.text("0123456789", min_size=1, max_size=9))
def test_nanoseconds_that_microseconds_cut_off_are_told(digits: str) -> None:
    whole = int(digits.ljust(9, "0"))

    assert nanoseconds_cut_from(f"2026-02-01 00:00:00.{digits}") == whole % 1_000


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 and b like 'timestamp %'",
        "a = 'timestamp ''2026-02-01 00:00:00+02:00'''",
        """"timestamp '2026-02-01 00:00:00+02:00'" = 1""",
        "t > timestamp '2026-02-01 00:00:00.123456'",
        "t > timestamptz '2026-02-01 00:00:00+02:00'",
        "d = date '2026-02-01'",
        "cast(t as timestamp) is null",
        "'2026-02-01 00:00:00+02:00' = s",
    ],
)
def test_condition_whose_times_are_exact_stays_as_it_is(text: str) -> None:
    assert with_exact_times(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("timestamp '2026-02-01 00:00:00+02'", "timestamptz '2026-02-01 00:00:00+02'"),
        (
            "TIMESTAMP '2026-02-01 00:00:00.1234567'",
            "TIMESTAMP(9) '2026-02-01 00:00:00.1234567'",
        ),
        ("'2026-02-01 00:00:00.1234567'::datetime", "'2026-02-01 00:00:00.1234567'::datetime(9)"),
        ("timestamp '2026-02-01 00:00:00+00:00'", "timestamp '2026-02-01 00:00:00+00:00'"),
    ],
)
def test_time_that_would_lose_something_is_typed_anew(text: str, expected: str) -> None:
    assert with_exact_times(f"t > {text}") == f"t > {expected}"
    assert with_exact_times(expected) == expected
