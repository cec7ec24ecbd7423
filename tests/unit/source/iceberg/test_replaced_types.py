"""Bounds are of the types that columns had when they were written, whatever they have now."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
)

from small_iceberg import SmallIceberg
from tidegate import read_changes
from tidegate.model.instant import InstantRange

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.types import PrimitiveType

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def _schema(kind: PrimitiveType, *, required: bool = False) -> Schema:
    return Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "k", kind, required=required),
    )


REPLACED: dict[str, tuple[PrimitiveType, PrimitiveType, list[Any]]] = {
    "int-to-text": (IntegerType(), StringType(), [200, 1, 256]),
    "text-to-int": (StringType(), IntegerType(), ["b", "aaab", "baaa"]),
    "text-to-long": (StringType(), LongType(), ["aaaaaaab", "baaaaaaa", "caaaaaaa"]),
    "long-to-time": (LongType(), TimestampType(), [-1, 1, 5]),
    "int-to-date": (IntegerType(), DateType(), [-1, 1, 5]),
    "other-scale": (DecimalType(9, 2), DecimalType(9, 4), [Decimal("0.01"), Decimal("9.99")]),
    "long-to-double": (LongType(), DoubleType(), [-(1 << 62), -1, 1]),
}


@pytest.mark.parametrize(("old", "new", "values"), REPLACED.values(), ids=REPLACED)
def test_old_snapshot_of_a_replaced_table_lacks_its_deleted_rows(
    old: PrimitiveType, new: PrimitiveType, values: list[Any], tmp_path: Path
) -> None:
    rows = [{"id": number, "k": value} for number, value in enumerate(values)]
    table = SmallIceberg(tmp_path, _schema(old))
    table.append(rows)
    table.delete([{"id": 9, "k": None}, rows[1]], (2,))
    read = table.parent
    table.create_or_replace(_schema(new))

    found = read_changes(table.config(), end_inclusive=read, mode="snapshot").read_all()

    assert found.to_pylist() == [row for row in rows if row is not rows[1]]


def test_bounds_of_a_date_do_not_compare_with_those_of_the_time_it_became(tmp_path: Path) -> None:
    table = SmallIceberg(tmp_path, _schema(DateType()), version=3)
    table.append([{"id": 1, "k": date(2026, 11, 21)}, {"id": 2, "k": date(2026, 1, 1)}])
    table.evolve(_schema(TimestampType()))
    table.delete([{"id": 9, "k": datetime(2026, 11, 21)}], (2,))  # noqa: DTZ001

    found = read_changes(table.config(), mode="snapshot").read_all()

    assert found.column("id").to_pylist() == [2]


def test_bounds_of_the_type_before_a_promotion_still_rule_deletes_out(tmp_path: Path) -> None:
    table = SmallIceberg(tmp_path, _schema(IntegerType()))
    table.append([{"id": 1, "k": 1}, {"id": 2, "k": 5}])
    table.evolve(_schema(LongType()))
    keys = [table.delete([{"id": 9, "k": key}], (2,)) for key in (0, 3, 6)]
    source = table.source()
    pin = source.timeline.pin(NOW)
    assert pin.head

    (piece,) = source.slicing.units(pin, InstantRange(None, pin.head), whole=True)

    assert [delta.path for delta in piece.slice.deltas] == [keys[1]]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_key_that_is_required_now_may_be_null_in_older_files(
    file_format: str, tmp_path: Path
) -> None:
    # Avro's metrics do not tell of the NULL, so that only the schemas do.
    table = SmallIceberg(tmp_path, _schema(StringType()))
    table.append([{"id": 1, "k": None}, {"id": 2, "k": "a"}], file_format)
    table.delete([{"id": 9, "k": None}], (2,))
    table.evolve(_schema(StringType(), required=True))
    table.append([{"id": 3, "k": "b"}], file_format)

    found = read_changes(table.config(), mode="snapshot").read_all()

    assert found.column("id").to_pylist() == [2, 3]


def test_key_whose_optional_schema_is_forgotten_is_null_where_metrics_say_so(
    tmp_path: Path,
) -> None:
    table = SmallIceberg(tmp_path, _schema(StringType()))
    table.append([{"id": 1, "k": None}, {"id": 2, "k": "a"}])
    table.delete([{"id": 9, "k": None}], (2,))
    table.evolve(_schema(StringType(), required=True))
    table.append([{"id": 3, "k": "b"}])
    table.schemas[0] = table.schema.model_copy(update={"schema_id": 0})

    found = read_changes(table.config(), mode="snapshot").read_all()

    assert found.column("id").to_pylist() == [2, 3]
