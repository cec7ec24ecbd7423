"""Files are left unread where their metadata proves that no row passes, and only there."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    IntegerType,
    LongType,
    NestedField,
    StructType,
    TimestampType,
    TimestamptzType,
)

from iceberg_writer import Spec
from small_iceberg import SmallIceberg
from tidegate import read_changes
from tidegate.model.instant import InstantRange

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.types import PrimitiveType

NOW = datetime(2026, 11, 21, tzinfo=UTC)
INT_MIN, LONG_MIN = -(1 << 31), -(1 << 63)
DEEPER = StructType(NestedField(5, "m", IntegerType()), NestedField(6, "r", IntegerType(), True))
NESTED = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(
        2, "st", StructType(NestedField(3, "k", LongType()), NestedField(4, "deeper", DEEPER))
    ),
)
FULL = {"k": 1, "deeper": {"m": 1, "r": 1}}
STRUCTS = [FULL, None, {"k": 1, "deeper": None}, FULL]


def _schema(kind: PrimitiveType) -> Schema:
    return Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "c", kind))


def _read(table: SmallIceberg, text: str, mode: str = "snapshot") -> list[int]:
    found = read_changes(table.config(read={"filter": text}), mode=mode).read_all()
    return sorted(found.column("id").to_pylist())


def _planned(table: SmallIceberg, text: str) -> set[str]:
    source = table.source(read={"filter": text})
    pin = source.timeline.pin(NOW)
    assert pin.head
    return {
        piece.path for piece in source.slicing.units(pin, InstantRange(None, pin.head), whole=True)
    }


@pytest.mark.parametrize("mode", ["snapshot", "changelog"])
@pytest.mark.parametrize("file_format", ["orc", "parquet", "avro"])
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("st.k is null", [1]),
        ("st.deeper.m is null", [1, 2]),
        ("st.deeper.r is null", [1, 2]),
        ("not (st.deeper.r is not null) and id < 9", [1, 2]),
        ("st.k is not null", [0, 2, 3]),
        ("st.k = 1", [0, 2, 3]),
        ("st.k <> 1 or st.deeper.m is null", [1, 2]),
    ],
)
def test_null_below_a_struct_that_is_null_is_found(
    text: str, ids: list[int], file_format: str, mode: str, tmp_path: Path
) -> None:
    table = SmallIceberg(tmp_path, NESTED)
    table.append([{"id": number, "st": each} for number, each in enumerate(STRUCTS)], file_format)

    assert _read(table, text, mode) == ids


def test_values_below_a_struct_rule_files_out(tmp_path: Path) -> None:
    table = SmallIceberg(tmp_path, NESTED)
    low, high = (
        table.append([{"id": key, "st": {"k": key, "deeper": None}}], "orc") for key in (1, 5)
    )
    nothing = table.append([{"id": 9, "st": None}], "orc")

    # Nothing is counted in a file of NULL structs only: it is left to the reader.
    assert _planned(table, "st.k < 3") == {low, nothing}
    assert _planned(table, "st.k > 3") == {high, nothing}
    assert _read(table, "st.k < 3") == [1]


def test_null_in_a_column_that_is_required_now_is_found(tmp_path: Path) -> None:
    table = SmallIceberg(tmp_path, _schema(IntegerType()))
    old = table.append([{"id": 1, "c": None}, {"id": 2, "c": 3}])
    table.evolve(
        Schema(*_schema(IntegerType()).fields[:1], NestedField(2, "c", IntegerType(), True))
    )
    table.append([{"id": 3, "c": 3}])

    assert _read(table, "c is null") == [1]
    assert _planned(table, "c is null") == {old}


@pytest.mark.parametrize(
    ("kind", "width", "values", "partitions"),
    [
        (IntegerType(), 10, [INT_MIN, INT_MIN + 7, 25], [2_147_483_646, 2_147_483_646, 20]),
        (IntegerType(), 7, [INT_MIN, INT_MIN + 1, 25], [2_147_483_643, 2_147_483_643, 21]),
        (LongType(), 10, [LONG_MIN, LONG_MIN + 7, 25], [(1 << 63) - 2, (1 << 63) - 2, 20]),
        (LongType(), 10, [INT_MIN, INT_MIN + 7, 25], [2_147_483_646, 2_147_483_646, 20]),
    ],
    ids=["int", "int, other width", "long", "long that was an int"],
)
def test_truncated_value_that_wrapped_rules_nothing_out(
    kind: PrimitiveType, width: int, values: list[int], partitions: list[int], tmp_path: Path
) -> None:
    table = SmallIceberg(tmp_path, _schema(kind))
    written = "int" if partitions[0] < 1 << 31 else "long"
    table.spec = Spec(1, ((1000, "2", f"truncate[{width}]", written),))
    paths = [
        table.append([{"id": number, "c": value}], partition=(partition,))
        for number, (value, partition) in enumerate(zip(values, partitions, strict=True))
    ]

    assert _read(table, "c < 0") == [0, 1]
    assert _read(table, f"c <= {values[0]}") == [0]
    assert _planned(table, "c < 0") == set(paths[:2])


def test_hours_that_wrapped_rule_nothing_out(tmp_path: Path) -> None:
    table = SmallIceberg(tmp_path, _schema(TimestampType()))
    table.spec = Spec(1, ((1000, "2", "hour", "int"),))
    now = NOW.replace(tzinfo=None)
    # Whatever the file holds, it is its partition that is asked for here.
    wrapped, soon = (
        table.append([{"id": hour, "c": now}], "avro", (hour,)) for hour in (1_732_919_507, 500_000)
    )

    assert _planned(table, "c < timestamp '1970-01-01 00:00:00'") == {wrapped}
    assert _planned(table, "c > timestamp '2020-01-01 00:00:00'") == {wrapped, soon}


LAST, FIRST = date(9999, 12, 31), date(1, 1, 1)
UNITS: dict[str, tuple[str, Any]] = {
    "year": ("int", lambda value: value.year - 1970),
    "month": ("int", lambda value: (value.year - 1970) * 12 + value.month - 1),
    "day": ("date", lambda value: (value - date(1970, 1, 1)).days),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("text", "ids", "files"),
    [
        ("c > date '9999-12-31'", [], {2}),
        ("c >= date '9999-12-31'", [2], {2}),
        ("c < date '0001-01-01'", [], {0}),
        ("c <= date '0001-01-01'", [0], {0}),
        ("not (c <= date '9999-12-31') or id = 1", [1], {0, 1, 2}),
    ],
)
def test_ends_of_the_calendar_are_asked_for(
    text: str, ids: list[int], files: set[int], unit: str, tmp_path: Path
) -> None:
    kind, value_of = UNITS[unit]
    table = SmallIceberg(tmp_path, _schema(DateType()))
    table.spec = Spec(1, ((1000, "2", unit, kind),))
    rows = list(enumerate([FIRST, date(2026, 2, 1), LAST]))
    # Avro has no metrics, so that only partitions are asked.
    paths = [table.append([{"id": at, "c": day}], "avro", (value_of(day),)) for at, day in rows]

    assert _read(table, text) == ids
    assert _planned(table, text) <= {paths[number] for number in files}


@pytest.mark.parametrize("unit", ["year", "month", "day", "hour"])
def test_last_moment_of_the_calendar_is_asked_for(unit: str, tmp_path: Path) -> None:
    table = SmallIceberg(tmp_path, _schema(TimestamptzType()))
    value_of: dict[str, Any] = {
        "year": lambda value: value.year - 1970,
        "month": lambda value: (value.year - 1970) * 12 + value.month - 1,
        "day": lambda value: (value.date() - date(1970, 1, 1)).days,
        "hour": lambda value: (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(hours=1),
    }
    table.spec = Spec(1, ((1000, "2", unit, "date" if unit == "day" else "int"),))
    for number, year in enumerate((1, 2026, 9999)):
        moment = datetime(year, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
        row = {"id": number, "c": moment}
        table.append([row], "avro", (value_of[unit](moment),))

    assert _read(table, "c >= timestamp '9999-12-31 23:59:59.999999'") == [2]
    assert _read(table, "c > timestamp '9999-12-31 23:59:59.999999'") == []
    assert _read(table, "c < timestamp '0001-01-01 00:00:00'") == []
    assert len(_planned(table, "c > timestamp '9999-12-31 23:59:59.999999'")) <= 1


@pytest.mark.parametrize("form", ["timestamp '{}'", "timestamp(9) '{}'", "'{}'"])
@pytest.mark.parametrize(
    ("asked", "passing", "files"),
    [
        ("<", [0, 1], [0, 1]),
        ("<=", [0, 1], [0, 1]),
        (">", [2], [2]),
        (">=", [2], [2]),
        ("=", [], [1]),
        ("<>", [0, 1, 2], [0, 1, 2]),
    ],
)
def test_time_between_two_microseconds_prunes_what_it_filters(
    asked: str, passing: list[int], files: list[int], form: str, tmp_path: Path
) -> None:
    table = SmallIceberg(tmp_path, _schema(TimestamptzType()))
    times = [NOW + step * timedelta(microseconds=1) for step in (-1, 0, 1)]
    paths = [table.append([{"id": number, "c": time}]) for number, time in enumerate(times)]
    text = f"c {asked} {form.format('2026-11-21 00:00:00.0000005')}"

    assert _read(table, text) == passing
    assert _planned(table, text) == {paths[number] for number in files}


MOMENT_FORMS = [
    "timestamp '2026-02-03 00:00:00'",
    "timestamp '2026-02-03T02:00:00+02:00'",
    "timestamptz '2026-02-03 00:00:00+00:00'",
    "timestamp with time zone '2026-02-03 00:00:00+00:00'",
    "cast('2026-02-03 00:00:00' as timestamp)",
    "cast('2026-02-03 00:00:00' as timestamptz)",
    "'2026-02-03T00:00:00'",
    "'2026-02-03T00:00:00Z'",
    "'2026-02-02 22:00:00-02:00'",
    "'2026-02-03'",
    "date '2026-02-03'",
    "strptime('2026-02-03 00:00:00+0000', '%Y-%m-%d %H:%M:%S%z')",
]
DAYS = [datetime(2026, 2, number, 12, tzinfo=UTC) for number in range(1, 6)]


@pytest.mark.parametrize("form", MOMENT_FORMS)
@pytest.mark.parametrize("partitioned", [True, False])
def test_every_form_of_a_moment_prunes_files(partitioned: bool, form: str, tmp_path: Path) -> None:
    table = SmallIceberg(tmp_path, _schema(TimestamptzType()))
    if partitioned:
        table.spec = Spec(1, ((1000, "2", "day", "date"),))
    paths = [
        table.append(
            [{"id": moment.day, "c": moment}],
            "avro" if partitioned else "parquet",
            ((moment.date() - date(1970, 1, 1)).days,) if partitioned else (),
        )
        for moment in DAYS
    ]

    assert _read(table, f"c >= {form}") == [3, 4, 5]
    assert _planned(table, f"c >= {form}") == set(paths[2:])
    assert _planned(table, f"{form} > c and c is not null") == set(paths[:2])
    assert _planned(table, f"not (c < {form})") == set(paths[2:])


@pytest.mark.parametrize("form", MOMENT_FORMS)
def test_every_form_of_a_moment_prunes_row_groups(form: str, tmp_path: Path) -> None:
    table = SmallIceberg(tmp_path, _schema(TimestamptzType()))
    path = table.place(table.append([{"id": each.day, "c": each} for each in DAYS]))
    pq.write_table(
        pq.read_table(path), path, row_group_size=1, compression="none", use_dictionary=False
    )
    content = bytearray(path.read_bytes())
    for number in (0, 1):
        chunk = pq.ParquetFile(path).metadata.row_group(number).column(0)
        begin, length = chunk.data_page_offset, chunk.total_compressed_size
        content[begin : begin + length] = b"\xff" * length
    # Whoever decodes these row groups fails, or gives other ids.
    path.write_bytes(content)

    assert _read(table, f"c >= {form}") == [3, 4, 5]
