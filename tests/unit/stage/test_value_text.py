"""Partition values have one spelling each, which reads back as the same value (PC-P06)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import PartitionFieldInvalid
from tidegate.model.partition import PartitionField, Transform
from tidegate.source.files.partition_values import parse_value
from tidegate.stage.value_text import identity_writer, reserved, too_long

FIELD = PartitionField("p", "x", Transform.IDENTITY)
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23))  # noqa: DTZ001 (wall clocks)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "string": (pa.string(), TEXTS),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), MOMENTS),
    "decimal(12,3)": (
        pa.decimal128(12, 3),
        st.integers(-(10**11), 10**11).map(lambda it: Decimal(it).scaleb(-3)),
    ),
}


def _written(kind: pa.DataType, values: list[Any], timezone: str = "UTC") -> list[str | None]:
    return identity_writer(FIELD, kind, timezone=timezone)(pa.array(values, kind))


@pytest.mark.parametrize("declared", VALUES)
@given(data=st.data())
def test_value_reads_back_as_it_was(declared: str, data: st.DataObject) -> None:
    kind, strategy = VALUES[declared]
    values = data.draw(st.lists(st.none() | strategy, max_size=5))

    texts = _written(kind, values)

    assert [parse_value(text, declared, "p").as_py() for text in texts] == values


@given(st.lists(MOMENTS.map(lambda it: it.replace(tzinfo=UTC)), max_size=5))
def test_moment_is_written_as_the_wall_clock_of_utc(moments: list[datetime]) -> None:
    texts = _written(pa.timestamp("us", "Europe/Berlin"), moments)

    expected = [it.replace(tzinfo=None).isoformat(timespec="microseconds") for it in moments]
    assert texts == [it.rstrip("0").rstrip(".") for it in expected]


def test_moment_has_no_wall_clock_in_a_zone_that_turns_its_clocks() -> None:
    with pytest.raises(PartitionFieldInvalid, match=r"hour\(\), day\(\) or month\(\)"):
        _written(pa.timestamp("us", "UTC"), [], "Europe/Berlin")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_time_is_written_alike_in_every_unit(unit: str) -> None:
    moment = datetime(2020, 12, 1, 11, tzinfo=UTC)

    assert _written(pa.timestamp(unit), [moment.replace(tzinfo=None)]) == ["2020-12-01T11:00:00"]


def test_nanoseconds_are_not_dropped() -> None:
    assert _written(pa.timestamp("ns"), [1]) == ["1970-01-01T00:00:00.000000001"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_empty_text_goes_to_the_default_partition_as_null_does(kind: pa.DataType) -> None:
    """PC-P08."""
    assert _written(kind, ["a", "", None, " "]) == ["a", None, None, " "]


def test_day_in_milliseconds_is_written_as_a_day() -> None:
    assert _written(pa.date64(), [date(2020, 12, 1)]) == ["2020-12-01"]


def test_text_that_is_no_utf8_is_named() -> None:
    broken = pa.array([b"\xff"]).view(pa.string())

    with pytest.raises(PartitionFieldInvalid, match="xff"):
        identity_writer(FIELD, pa.string(), timezone="UTC")(broken)


@pytest.mark.parametrize(
    "kind",
    [pa.float64(), pa.binary(), pa.list_(pa.int8()), pa.time64("us"), pa.duration("us")],
    ids=str,
)
def test_type_whose_values_do_not_read_back_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(PartitionFieldInvalid, match="cannot name a directory"):
        identity_writer(FIELD, kind, timezone="UTC")


@pytest.mark.parametrize(
    ("column", "kind", "text", "rows"),
    [
        ("x", pa.string(), "it's", ["it's", "other", None]),
        ('odd "name"', pa.string(), "n/a", ["n/a", "other", None]),
        ("Day", pa.date32(), "2020-12-01", [date(2020, 12, 1), date(2020, 12, 2), None]),
        ("x", pa.dictionary(pa.int8(), pa.string()), "a", ["a", "b", None]),
    ],
    ids=["quote", "odd name", "date", "dictionary"],
)
def test_row_rule_of_a_reserved_text_puts_aside_that_value_alone(
    column: str, kind: pa.DataType, text: str, rows: list[Any]
) -> None:
    found = reserved(PartitionField("p", column, Transform.IDENTITY), kind, text)
    rule = json.loads(found.values["rule"])

    given_rows = pa.table({column: pa.array(rows, kind)})
    kept = duckdb.from_arrow(given_rows).filter(rule).to_arrow_table()

    assert kept.column(0).to_pylist() == rows[1:]


def test_value_too_long_for_a_directory_is_shown_in_part() -> None:
    found = too_long(FIELD, "v" * 300, 302)

    assert f"'{'v' * 32}…'" in str(found)
    assert "302 bytes" in str(found)
    assert "octet_length(x) < 64" in str(found)


def test_fraction_is_kept_to_its_last_digit_that_counts() -> None:
    moment = datetime(2020, 12, 1) + timedelta(microseconds=120_340)  # noqa: DTZ001

    assert _written(pa.timestamp("us"), [moment]) == ["2020-12-01T00:00:00.12034"]
