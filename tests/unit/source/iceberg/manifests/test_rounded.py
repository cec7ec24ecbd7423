"""Files of engines that rounded partition values towards 1970 keep their rows, whatever is asked.

Each file is there twice: in the partition of the rule, and in that of such an engine.
"""

from __future__ import annotations

import operator
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, LongType, NestedField, TimestampType, TimestamptzType

from iceberg_writer import Spec
from small_iceberg import SmallIceberg
from tidegate import read_changes
from tidegate.model.instant import InstantRange

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyiceberg.types import PrimitiveType

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TICK, DAY = timedelta(microseconds=1), timedelta(days=1)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
BEGINS = {
    "year": [EPOCH.replace(year=year) for year in range(1967, 1973)],
    "month": [EPOCH.replace(year=1969, month=month) for month in (10, 11, 12)]
    + [EPOCH.replace(month=month) for month in (1, 2, 3)],
    "day": [EPOCH + day * DAY for day in range(-3, 3)],
    "hour": [EPOCH + timedelta(hours=hour) for hour in range(-3, 3)],
}
"""Where six partitions begin; the fourth one is that of 1970, whose value is 0."""
OPERATORS = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _partitions(begins: Sequence[Any], value: Any) -> list[int]:
    """Give the value's partition by the rule, and as it was rounded: the one that begins next."""
    ordinals = range(-3, len(begins) - 3)
    floor = max(at for at, begin in zip(ordinals, begins, strict=True) if begin <= value)
    rounded = min(at for at in ordinals if begins[at + 3] >= value) if value < begins[3] else floor
    return [floor, rounded]


def _table(
    root: Path, kind: PrimitiveType, unit: str, begins: Sequence[Any], values: Sequence[Any]
) -> tuple[SmallIceberg, dict[str, tuple[Any, int]]]:
    """Write each value to two files; gives the value and the partition of each."""
    fields = NestedField(1, "id", LongType(), required=True), NestedField(2, "c", kind)
    table = SmallIceberg(root, Schema(*fields))
    table.spec = Spec(1, ((1000, "2", unit, "date" if unit == "day" else "int"),))
    files = {}
    for number, value in enumerate(values):
        for partition in _partitions(begins, value):
            # Avro has no metrics, so that only partitions are asked.
            rows = [{"id": number, "c": value}]
            files[table.append(rows, "avro", (partition,))] = value, partition
    return table, files


def _read(table: SmallIceberg, text: str) -> list[Any]:
    found = read_changes(table.config(read={"filter": text}), mode="snapshot").read_all()
    return sorted(found.column("c").to_pylist())


def _planned(table: SmallIceberg, text: str) -> set[str]:
    source = table.source(read={"filter": text})
    pin = source.timeline.pin(NOW)
    assert pin.head
    return {
        piece.path for piece in source.slicing.units(pin, InstantRange(None, pin.head), whole=True)
    }


@pytest.mark.parametrize("asked", OPERATORS)
@pytest.mark.parametrize("unit", BEGINS)
@pytest.mark.parametrize("kind", [TimestampType(), TimestamptzType()], ids=["wall", "moment"])
def test_time_before_1970_is_found_in_the_partition_after_its_own(
    kind: PrimitiveType, unit: str, asked: str, tmp_path: Path
) -> None:
    is_moment = isinstance(kind, TimestamptzType)
    begins = [each.replace(tzinfo=UTC if is_moment else None) for each in BEGINS[unit]]
    values = [begin + step for begin in begins[2:4] for step in (-TICK, 0 * TICK, TICK)]
    table, files = _table(tmp_path, kind, unit, begins, values)

    for bound in values:
        text = f"c {asked} timestamp '{bound.replace(tzinfo=None)}'"
        passing = [value for value, _ in files.values() if OPERATORS[asked](value, bound)]
        assert _read(table, text) == sorted(passing), text


@pytest.mark.parametrize("unit", ["year", "month"])
def test_day_before_1970_is_found_in_the_partition_after_its_own(unit: str, tmp_path: Path) -> None:
    begins = [each.date() for each in BEGINS[unit]]
    values = [begin + step for begin in begins[2:4] for step in (-DAY, 0 * DAY, DAY)]
    table, files = _table(tmp_path, DateType(), unit, begins, values)

    for bound in values:
        for asked, compare in OPERATORS.items():
            text = f"c {asked} date '{bound}'"
            passing = [value for value, _ in files.values() if compare(value, bound)]
            assert _read(table, text) == sorted(passing), text


def test_times_of_a_list_are_found_in_the_partitions_after_their_own(tmp_path: Path) -> None:
    begins = BEGINS["hour"]
    values = [begins[2] - TICK, begins[3] - TICK, begins[4] + TICK]
    table, files = _table(tmp_path, TimestampType(), "hour", begins, values)

    text = f"c in (timestamp '{values[0]}', timestamp '{values[2]}')"

    assert _read(table, text) == [values[0], values[0], values[2], values[2]]
    asked = {-2, -1, 1}
    assert _planned(table, text) == {path for path, (_, at) in files.items() if at in asked}


@pytest.mark.parametrize(
    ("text", "partitions"),
    [
        ("c < timestamp '1969-12-31 23:00:00'", {-3, -2, -1}),
        ("c <= timestamp '1969-12-31 23:00:00'", {-3, -2, -1, 0}),
        ("c = timestamp '1969-12-31 23:00:00'", {-1, 0}),
        ("c >= timestamp '1969-12-31 23:00:00'", {-1, 0, 1, 2}),
        ("c > timestamp '1969-12-31 22:59:59.999999'", {-1, 0, 1, 2}),
        ("c <= timestamp '1970-01-01 00:00:00'", {-3, -2, -1, 0}),
        ("c = timestamp '1970-01-01 00:00:00'", {0}),
        ("c in (timestamp '1969-12-31 22:00:00')", {-2, -1}),
    ],
)
def test_one_partition_more_is_read_and_no_other(
    text: str, partitions: set[int], tmp_path: Path
) -> None:
    begins = BEGINS["hour"]
    table, files = _table(tmp_path, TimestampType(), "hour", begins, begins)

    found = _planned(table, text)

    assert {files[path][1] for path in found} == partitions


def test_days_were_never_rounded(tmp_path: Path) -> None:
    begins = [each.date() for each in BEGINS["day"]]
    table, files = _table(tmp_path, DateType(), "day", begins, begins)

    found = _planned(table, f"c = date '{date(1969, 12, 31)}'")

    assert {files[path][1] for path in found} == {-1}
