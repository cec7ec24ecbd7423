"""Formatter letters: lenient readings against the answers of java.time, strict ones below them."""

from __future__ import annotations

# ruff: noqa: DTZ001 (partition times are wall clock, and naive for that)
import re
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config.time_format import TimeFormat, TimeUnreadable

GOLDEN = Path(__file__).parents[2] / "golden" / "local_times_200"
CASES = [tuple(line.split("\t")) for line in (GOLDEN / "cases.tsv").read_text("utf-8").splitlines()]


def test_golden_cases_are_as_many_as_their_name_says() -> None:
    assert len(set(CASES)) == int(GOLDEN.name.rpartition("_")[2])


@pytest.mark.parametrize(
    ("letters", "text", "answer"), CASES, ids=[f"{case[0]} <- {case[1]}" for case in CASES]
)
def test_lenient_reading_equals_java(letters: str, text: str, answer: str) -> None:
    """PC-T13 to T15: what Flink 2.2.1 makes of the same text."""
    form = TimeFormat.compile(letters or None)

    if answer == "-":
        with pytest.raises(TimeUnreadable):
            form.read(text, lenient=True)
    else:
        assert form.read(text, lenient=True) == datetime.fromisoformat(answer)


@pytest.mark.parametrize(
    ("letters", "text", "answer"), CASES, ids=[f"{case[0]} <- {case[1]}" for case in CASES]
)
def test_strict_reading_is_javas_or_refused(letters: str, text: str, answer: str) -> None:
    """PC-T14: strict never makes another time of a text."""
    form = TimeFormat.compile(letters or None)
    try:
        found: datetime | None = form.read(text)
    except TimeUnreadable:
        found = None

    assert found is None or found == datetime.fromisoformat(answer)


@given(moment=st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)))
def test_every_real_time_is_read_the_same_strictly_and_leniently(moment: datetime) -> None:
    text = moment.isoformat(" ")
    plain = TimeFormat.compile(None)
    letters = TimeFormat.compile("yyyy-MM-dd'T'HH:mm:ss.SSS")
    whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    assert plain.read(text) == plain.read(text, lenient=True) == moment
    assert letters.read(whole.isoformat(timespec="milliseconds")) == whole


@pytest.mark.parametrize(
    "text", ["2020-02-30", "2020-13-01", "2020-12-01 24:00:00", "2020-12-01 23:59:60", "0000-01-01"]
)
def test_strict_reading_refuses_what_is_no_real_time(text: str) -> None:
    with pytest.raises(TimeUnreadable, match="no real date and time"):
        TimeFormat.compile(None).read(text)


def test_reading_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(TimeUnreadable, match="no real date and time"):
        TimeFormat.compile(None).read("9999-12-31 24:00:00", lenient=True)


@pytest.mark.parametrize(
    ("letters", "problem"),
    [
        ("yyyyMM", "gives no day; for months use the pattern '$key01' and 'yyyyMMdd'"),
        ("MM-dd", "gives no year"),
        ("yyyyMMdd mm", "gives the minute, but not every part of the time above it"),
        ("yyyyMMdd HH:ss", "gives the second, but not every part of the time above it"),
        ("yyyyMMdd yyyy", "the year occurs twice"),
        ("yyyyMMddhh", "the letter 'h' is not read"),
        ("yyyyMMMdd", "'MMM' is not read; the number has at most two digits"),
        ("yyyy-MM-dd[ HH]", "'[' cannot be used; optional parts are not read"),
        ("yyyyMMdd'T", "a quote is not closed"),
        ("yMd", "'M' stands right behind a number of open length"),
    ],
)
def test_formatter_that_cannot_be_read_is_refused(letters: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        TimeFormat.compile(letters)


def test_quotes_are_literal() -> None:
    form = TimeFormat.compile("'day'yyyyMMdd''HH")

    assert form.read("day20201201'07") == datetime(2020, 12, 1, 7)
