"""Dates and times mean what they say, whatever a filter calls them and compares them with."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from tidegate.errors import PredicateInvalid
from tidegate.predicate import Predicate

if TYPE_CHECKING:
    from collections.abc import Sequence

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
AROUND = [NOON - TICK, NOON, NOON + TICK, None]
WALL = [None if each is None else each.replace(tzinfo=None) for each in AROUND]
DAYS = [date(2026, 1, 31), date(2026, 2, 1), date(2026, 2, 2), None]
NOON_AND_LATER = [False, True, True, False]
NOON_FORMS = {
    "timestamp": "timestamp '2026-02-01 12:00:00'",
    "timestamp with a T": "timestamp '2026-02-01T12:00:00'",
    "timestamp of utc": "timestamp '2026-02-01 12:00:00+00:00'",
    "datetime": "datetime '2026-02-01 12:00:00'",
    "text": "'2026-02-01 12:00:00'",
    "text with a T": "'2026-02-01T12:00'",
    "cast": "cast('2026-02-01 12:00:00' as timestamp)",
    "colons": "'2026-02-01 12:00:00'::timestamp",
}
MOMENT_FORMS = NOON_FORMS | {
    "timestamptz": "timestamptz '2026-02-01 12:00:00+00:00'",
    "with time zone": "timestamp with time zone '2026-02-01 12:00:00+00:00'",
    "text of utc": "'2026-02-01T12:00:00Z'",
    "east": "timestamp '2026-02-01 14:00:00+02:00'",
    "west, cast": "cast('2026-02-01 07:30:00-04:30' as timestamp)",
    "west, colons": "'2026-02-01T08:00:00-0400'::timestamp",
    "east, text": "'2026-02-01T14:00:00+02:00'",
    "east, datetime": "DateTime  '2026-02-01 14:00:00+02'",
    "cast to timestamptz": "cast('2026-02-01 12:00:00' as timestamptz)",
}


def passing(text: str, kind: pa.DataType, values: Sequence[Any]) -> list[bool]:
    batch = pa.record_batch({"c": pa.array(values, kind)})
    return Predicate.parse(text, batch.schema, "source.read.filter").mask(batch).to_pylist()


@pytest.mark.parametrize("form", MOMENT_FORMS.values(), ids=MOMENT_FORMS)
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_moment_is_compared_with_every_form_of_a_time(unit: str, form: str) -> None:
    assert passing(f"c >= {form}", pa.timestamp(unit, "UTC"), AROUND) == NOON_AND_LATER
    assert passing(f"{form} < c", pa.timestamp(unit, "UTC"), AROUND) == [False, False, True, False]
    assert passing(f"c in ({form})", pa.timestamp(unit, "UTC"), AROUND) == [
        False,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("form", NOON_FORMS.values(), ids=NOON_FORMS)
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_wall_clock_is_compared_with_every_form_without_an_offset(unit: str, form: str) -> None:
    assert passing(f"c >= {form}", pa.timestamp(unit), WALL) == NOON_AND_LATER


@pytest.mark.parametrize(
    "form",
    [
        "timestamp '2026-02-01 14:00:00+02:00'",
        "'2026-02-01T14:00:00+02:00'",
        "cast('2026-02-01 14:00:00+02:00' as timestamp)",
        "'2026-02-01T12:00:00Z'",
    ],
)
def test_wall_clock_is_not_compared_with_a_moment(form: str) -> None:
    with pytest.raises(PredicateInvalid):
        passing(f"c >= {form}", pa.timestamp("us"), WALL)


@pytest.mark.parametrize("form", ["date '2026-02-01'", "'2026-02-01'", "timestamp '2026-02-01'"])
def test_day_begins_at_midnight_of_utc(form: str) -> None:
    midnight = datetime(2026, 2, 1, tzinfo=UTC)
    around = [midnight - TICK, midnight, midnight + TICK, None]

    assert passing(f"c >= {form}", pa.timestamp("us", "UTC"), around) == NOON_AND_LATER
    assert passing(f"c >= {form}", pa.date32(), DAYS) == NOON_AND_LATER


def test_moment_of_another_zone_is_the_same_moment() -> None:
    berlin = [
        None if each is None else each.astimezone(ZoneInfo("Europe/Berlin")) for each in AROUND
    ]

    found = passing(
        "c >= timestamp '2026-02-01 12:00:00'", pa.timestamp("us", "Europe/Berlin"), berlin
    )

    assert found == NOON_AND_LATER


def test_nanosecond_is_not_cut_off() -> None:
    nanoseconds = pa.array([0, 1], pa.int64()).cast(pa.timestamp("ns", "UTC"))
    batch = pa.record_batch({"c": nanoseconds})

    later = Predicate.parse("c > timestamp '1970-01-01 00:00:00'", batch.schema, "t")
    far = Predicate.parse("c < date '9999-12-31'", batch.schema, "t")

    assert later.mask(batch).to_pylist() == [False, True]
    assert far.mask(batch).to_pylist() == [True, True]


@pytest.mark.parametrize("text", ["'2026-02-30'", "'soon'", "'2026-02-01T12'", "'12:00:00'"])
def test_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(PredicateInvalid):
        passing(f"c >= {text}", pa.timestamp("us", "UTC"), AROUND)


def test_text_inside_of_texts_and_names_stays() -> None:
    schema = pa.schema([("timestamp '1", pa.string()), ("c", pa.string())])
    text = "it is ''2026-02-01 12:00:00+02:00'' timestamp"
    batch = pa.record_batch({"timestamp '1": ["x"], "c": [text.replace("''", "'")]})

    condition = Predicate.parse(f"c = '{text}' and \"timestamp '1\" = 'x'", schema, "t")

    assert condition.mask(batch).to_pylist() == [True]


def test_texts_are_compared_with_texts_as_they_are() -> None:
    assert passing("c >= '2026-02-01'", pa.string(), ["2026-01-31", "2026-02-01"]) == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        "coalesce(c >= '2026-02-01T12:00', false)",
        "case when c >= '2026-02-01T12:00' then 1 else 0 end = 1",
        "length('ab') * case when c >= '2026-02-01T12:00' then 1 else 2 end = 2",
        "nullif(c, '2026-02-01T12:00') is not null or c in ('2026-02-01T12:00')",
        "coalesce(c between '2026-02-01T12:00' and '2027-01-01', false)",
    ],
)
def test_text_beside_a_time_is_one_inside_other_functions(text: str) -> None:
    passes = passing(text, pa.timestamp("us"), WALL)

    later = [False, True, True, False]
    assert passes == ([True, True, True, False] if "nullif" in text else later)
