"""The partition of each row, against a reading of one row at a time with Python's own calendar."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import ColumnMissing, PartitionFieldInvalid, PartitionValueReserved
from tidegate.model.partition import DEFAULT_NAME, Partition, PartitionField, Transform
from tidegate.stage.partition_split import PartitionComputer

ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe"]
UTC = dt.UTC


def batch_of(kind: pa.DataType, values: list[Any]) -> pa.RecordBatch:
    numbers = pa.array(range(len(values)), pa.int32())
    return pa.RecordBatch.from_arrays([numbers, pa.array(values, kind)], ["n", "x"])


def partitions_of_rows(
    batch: pa.RecordBatch, *fields: PartitionField, timezone: str = "UTC"
) -> list[tuple[str | None, ...]]:
    """The values that each row got, in row order."""
    computer = PartitionComputer(batch.schema, fields, timezone=timezone)
    split = computer.split(batch)
    return [tuple(value for _, value in split.partitions[code].values) for code in split.codes]


def key(transform: Transform, name: str = "k") -> PartitionField:
    return PartitionField(name, "x", transform)


def wall_clock(moment: dt.datetime, zone: str) -> dt.datetime:
    return moment if moment.tzinfo is None else moment.astimezone(ZoneInfo(zone))


@given(
    st.lists(
        st.none()
        | st.datetimes(
            dt.datetime.fromisoformat("1901-01-01T00:00:00"),
            dt.datetime.fromisoformat("2099-01-01T00:00:00"),
        ),
        min_size=1,
    ),
    st.sampled_from(ZONES),
    st.sampled_from(["s", "ms", "us", "ns"]),
    st.booleans(),
)
def test_split_times_any_zone_and_unit_equals_the_calendar(
    moments: list[dt.datetime | None], zone: str, unit: str, aware: bool
) -> None:
    times = [
        None if at is None else at.replace(microsecond=0, tzinfo=UTC if aware else None)
        for at in moments
    ]
    batch = batch_of(pa.timestamp(unit, "UTC" if aware else None), times)
    fields = (key(Transform.MONTH, "m"), key(Transform.DAY, "d"), key(Transform.HOUR, "h"))

    found = partitions_of_rows(batch, *fields, timezone=zone)

    locals_ = [None if at is None else wall_clock(at, zone) for at in times]
    assert found == [
        (None, None, None)
        if at is None
        else tuple(at.strftime(f) for f in ("%Y-%m", "%Y-%m-%d", "%H"))
        for at in locals_
    ]


def test_split_hour_alone_gives_date_and_hour() -> None:
    batch = batch_of(pa.timestamp("us", "UTC"), [dt.datetime(2026, 11, 1, 5, 59, tzinfo=UTC)])

    assert partitions_of_rows(batch, key(Transform.HOUR)) == [("2026-11-01T05",)]


@pytest.mark.parametrize(
    ("of_day", "hour"), [("x", "05"), ("y", "2026-11-01T05")], ids=["one-column", "two-columns"]
)
def test_split_hour_leaves_the_date_out_only_beside_the_day_of_its_own_column(
    of_day: str, hour: str
) -> None:
    moments = [
        dt.datetime(2026, 11, 1, 5, 59, tzinfo=UTC),
        dt.datetime(2026, 12, 24, 7, tzinfo=UTC),
    ]
    columns = [pa.array([moment], pa.timestamp("us", "UTC")) for moment in moments]
    batch = pa.RecordBatch.from_arrays(columns, ["x", "y"])
    day = PartitionField("d", of_day, Transform.DAY)

    found = partitions_of_rows(batch, day, key(Transform.HOUR, "h"))

    assert found == [("2026-11-01" if of_day == "x" else "2026-12-24", hour)]


def test_split_repeated_hour_both_times_share_one_partition() -> None:
    twice = [dt.datetime(2026, 11, 1, hour, 30, tzinfo=UTC) for hour in (5, 6)]

    found = partitions_of_rows(
        batch_of(pa.timestamp("us", "UTC"), twice),
        key(Transform.DAY, "d"),
        key(Transform.HOUR, "h"),
        timezone="America/New_York",
    )

    assert found == [("2026-11-01", "01")] * 2


def test_split_year_one_has_four_digits() -> None:
    batch = batch_of(pa.date32(), [dt.date(1, 1, 1)])

    assert partitions_of_rows(batch, key(Transform.DAY)) == [("0001-01-01",)]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        pytest.param(pa.int64(), [7, -3, None], ["7", "-3", None], id="integers"),
        pytest.param(pa.uint8(), [0, 255], ["0", "255"], id="unsigned"),
        pytest.param(pa.bool_(), [True, False, None], ["true", "false", None], id="booleans"),
        pytest.param(pa.string(), ["eu", "", None], ["eu", None, None], id="text"),
        pytest.param(pa.large_string(), ["ü/ =", "eu"], ["ü/ =", "eu"], id="large-text"),
        pytest.param(
            pa.dictionary(pa.int8(), pa.string()),
            ["eu", None, "eu"],
            ["eu", None, "eu"],
            id="dictionary",
        ),
        pytest.param(pa.date32(), [dt.date(2020, 12, 1)], ["2020-12-01"], id="dates"),
        pytest.param(pa.date64(), [dt.date(2020, 12, 1)], ["2020-12-01"], id="dates-64"),
        pytest.param(
            pa.decimal128(10, 2),
            [Decimal("1.50"), Decimal("-0.05")],
            ["1.50", "-0.05"],
            id="decimals",
        ),
        pytest.param(pa.decimal128(20, 10), [Decimal(0)], ["0.0000000000"], id="decimal-zero"),
        pytest.param(
            pa.timestamp("us"),
            [
                dt.datetime.fromisoformat("2020-12-01T11:00:00"),
                dt.datetime.fromisoformat("2020-12-01T11:00:00.120000"),
            ],
            ["2020-12-01T11:00:00", "2020-12-01T11:00:00.12"],
            id="timestamps",
        ),
        pytest.param(
            pa.timestamp("s", "Europe/Berlin"),
            [dt.datetime(2020, 12, 1, 11, tzinfo=UTC)],
            ["2020-12-01T11:00:00"],
            id="aware-in-utc",
        ),
    ],
)
def test_split_identity_writes_canonical_text(
    kind: pa.DataType, values: list[Any], expected: list[str | None]
) -> None:
    found = partitions_of_rows(batch_of(kind, values), key(Transform.IDENTITY))

    assert [value for (value,) in found] == expected


@given(
    st.lists(
        st.tuples(
            st.none() | st.text(max_size=3).filter(lambda text: text != DEFAULT_NAME),
            st.none() | st.integers(-3, 3),
            st.none() | st.dates(dt.date(2026, 1, 30), dt.date(2026, 2, 2)),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_slices_any_rows_are_a_stable_split_of_the_batch(rows: list[tuple[Any, ...]]) -> None:
    schema = pa.schema([("place", pa.string()), ("n", pa.int8()), ("day", pa.date32())])
    columns = [list(column) for column in zip(*rows, strict=True)]
    batch = pa.RecordBatch.from_pydict(dict(zip(schema.names, columns, strict=True)), schema=schema)
    batch = batch.append_column("row", pa.array(range(len(rows))))
    fields = (
        PartitionField("p", "place", Transform.IDENTITY),
        PartitionField("m", "day", Transform.MONTH),
        PartitionField("n", "n", Transform.IDENTITY),
    )

    split = PartitionComputer(batch.schema, fields).split(batch)
    found = {part: piece.column("row").to_pylist() for part, piece in split.slices(batch)}

    expected: dict[Partition, list[int]] = {}
    for position, (place, number, day) in enumerate(rows):
        values = (
            ("p", place or None),
            ("m", None if day is None else f"{day:%Y-%m}"),
            ("n", None if number is None else str(number)),
        )
        expected.setdefault(Partition(values), []).append(position)
    assert found == expected


def test_slices_rare_partition_keeps_no_other_rows_in_memory() -> None:
    batch = batch_of(pa.int32(), [1] * 10_000 + [2])

    split = PartitionComputer(batch.schema, [key(Transform.IDENTITY)]).split(batch)
    rare = next(rows for part, rows in split.slices(batch) if part.path == "k=2")

    assert rare.get_total_buffer_size() < 1_000


def test_split_many_values_of_several_keys_stays_exact() -> None:
    size = 70_000
    values = pa.array(np.arange(size))
    batch = pa.RecordBatch.from_arrays([values, values], ["x", "y"])
    fields = [key(Transform.IDENTITY), PartitionField("l", "y", Transform.IDENTITY)]

    split = PartitionComputer(batch.schema, fields).split(batch)

    assert len(split.partitions) == size
    assert all(
        split.partitions[split.codes[row]].path == f"k={row}/l={row}" for row in range(0, size, 997)
    )


def test_touched_some_rows_gives_their_partitions_with_their_number() -> None:
    batch = batch_of(pa.string(), ["a", "b", "a", "c"])
    split = PartitionComputer(batch.schema, [key(Transform.IDENTITY)]).split(batch)

    marked = split.touched(np.array([True, False, True, True]))
    touched = {part.path: rows for part, rows in marked}

    assert touched == {"k=a": 2, "k=c": 1}


def test_split_unpartitioned_target_has_one_partition() -> None:
    assert partitions_of_rows(batch_of(pa.int8(), [1, 2])) == [(), ()]


def test_data_columns_identity_keys_leave_and_time_keys_stay() -> None:
    schema = pa.schema([("at", pa.timestamp("us")), ("region", pa.string()), ("n", pa.int8())])
    fields = [
        PartitionField("dt", "at", Transform.DAY),
        PartitionField("region", "region", Transform.IDENTITY),
    ]

    assert PartitionComputer(schema, fields).data_columns == ("at", "n")


def test_split_text_like_the_default_partition_is_refused() -> None:
    batch = batch_of(pa.string(), ["eu", DEFAULT_NAME])

    with pytest.raises(PartitionValueReserved, match="'__DEFAULT_PARTITION__'"):
        partitions_of_rows(batch, key(Transform.IDENTITY))


@pytest.mark.parametrize(("text", "size"), [("x" * 300, 302), ("ü/" * 60, 302)])
def test_split_text_too_long_for_a_directory_is_refused(text: str, size: int) -> None:
    batch = batch_of(pa.string(), ["eu", text])

    with pytest.raises(PartitionFieldInvalid, match=f"a name of {size} bytes"):
        partitions_of_rows(batch, key(Transform.IDENTITY))


def test_split_text_of_the_longest_name_is_kept() -> None:
    text = "x" * (255 - len("k="))

    found = partitions_of_rows(batch_of(pa.string(), [text]), key(Transform.IDENTITY))

    assert found == [(text,)]


def test_split_text_that_is_not_utf_8_is_refused() -> None:
    column = pa.array([b"eu", b"\xff\xfe"], pa.binary()).view(pa.string())
    batch = pa.record_batch([column], names=["x"])

    with pytest.raises(PartitionFieldInvalid, match="is not UTF-8"):
        partitions_of_rows(batch, key(Transform.IDENTITY))


def test_computer_unknown_column_is_refused() -> None:
    field = PartitionField("dt", "ordered", Transform.DAY)

    with pytest.raises(ColumnMissing, match="ordered"):
        PartitionComputer(pa.schema([("ordered_at", pa.date32())]), [field])


@pytest.mark.parametrize("name", ["dt", "DT"])
@pytest.mark.parametrize("transform", [Transform.DAY, Transform.IDENTITY])
def test_computer_key_with_the_name_of_another_column_is_refused(
    transform: Transform, name: str
) -> None:
    field = PartitionField(name, "ordered_on", transform)
    schema = pa.schema([("ordered_on", pa.date32()), ("dt", pa.string())])

    with pytest.raises(PartitionFieldInvalid, match="a column 'dt', too"):
        PartitionComputer(schema, [field])


@pytest.mark.parametrize(
    ("kind", "transform", "timezone"),
    [
        pytest.param(pa.float64(), Transform.IDENTITY, "UTC", id="float-identity"),
        pytest.param(pa.binary(), Transform.IDENTITY, "UTC", id="binary-identity"),
        pytest.param(pa.list_(pa.int8()), Transform.IDENTITY, "UTC", id="list-identity"),
        pytest.param(pa.string(), Transform.DAY, "UTC", id="day-of-text"),
        pytest.param(pa.date32(), Transform.HOUR, "UTC", id="hour-of-date"),
        pytest.param(
            pa.timestamp("us", "UTC"), Transform.IDENTITY, "Europe/Berlin", id="repeated-wall-clock"
        ),
    ],
)
def test_computer_type_that_does_not_fit_is_refused(
    kind: pa.DataType, transform: Transform, timezone: str
) -> None:
    with pytest.raises(PartitionFieldInvalid, match=r"partition_by\.k"):
        PartitionComputer(pa.schema([("x", kind)]), [key(transform)], timezone=timezone)
