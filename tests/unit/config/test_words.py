"""Durations, sizes, intervals, and the nearest word."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config.words import (
    duration_text,
    interval_text,
    parse_duration,
    parse_interval,
    parse_size,
    suggest,
)
from tidegate.model.partition_value import Interval


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("15m", timedelta(minutes=15)),
        ("15 min", timedelta(minutes=15)),
        ("1 h", timedelta(hours=1)),
        ("6h", timedelta(hours=6)),
        ("1d", timedelta(days=1)),
        ("2 weeks", timedelta(weeks=2)),
        ("0s", timedelta(0)),
        (0, timedelta(0)),
        ("1h 30min", timedelta(minutes=90)),
        (" 2 Hours ", timedelta(hours=2)),
        ("1.5 s", timedelta(milliseconds=1500)),
        ("250 ms", timedelta(milliseconds=250)),
    ],
)
def test_duration_is_read_as_people_write_it(text: object, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "m", "15", "15mm", "-1h", "1h-2m", "1:30", True, 90, None])
def test_text_that_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"duration|unit"):
        parse_duration(text)


@given(st.timedeltas(timedelta(0), timedelta(days=10_000)))
def test_duration_survives_its_text(duration: timedelta) -> None:
    assert parse_duration(duration_text(duration)) == duration


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("128MiB", 128 * 1024**2),
        ("128 MB", 128 * 1024**2),
        ("64k", 64 * 1024),
        ("1.5 GB", 3 * 1024**3 // 2),
        ("512 B", 512),
        ("5_000", 5000),
        (4096, 4096),
    ],
)
def test_size_is_read_in_powers_of_1024(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1 XB", "1 M i B", True, None])
def test_text_that_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("1 h", Interval(span=timedelta(hours=1))),
        ("1 d", Interval(span=timedelta(days=1))),
        ("1 month", Interval(months=1)),
        ("3months", Interval(months=3)),
    ],
)
def test_interval_is_a_span_or_months(text: str, interval: Interval) -> None:
    assert parse_interval(text) == interval
    assert parse_interval(interval_text(interval)) == interval


@pytest.mark.parametrize("text", ["0s", "0 months", "soon"])
def test_interval_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_interval(text)


def test_nearest_word_is_suggested_in_its_own_spelling() -> None:
    assert suggest("europe/berln", ["Europe/Berlin", "UTC"]) == "did you mean 'Europe/Berlin'?"


def test_all_words_are_named_where_none_is_near() -> None:
    assert suggest("xyz", ["auto", "spark"]) == "known: auto, spark"
