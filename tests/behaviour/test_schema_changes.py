"""A table goes on when its source adds, drops and widens columns: for readers and for the gate."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType, StringType

from small_lake import DAY_1, NOW, SmallLake, day, known, load, local, publish
from tidegate import read_committed
from tidegate.errors import ColumnTypesDiffer
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.types import IcebergType

OK = {
    "type": "expect_column_values_to_not_be_null",
    "kwargs": {"column": "id"},
    "severity": "critical",
}
CHANGED = {
    "type": "expect_column_max_to_be_between",
    "kwargs": {"column": "n", "min_value": 0},
    "severity": "critical",
}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path / "lake")
    suite = lake.root / "suite.json"
    suite.write_text(json.dumps({"name": "orders", "expectations": [OK, CHANGED]}))
    lake.keys = {"gate": {"suite": str(suite)}}
    return lake


def append(lake: SmallLake, **columns: Any) -> None:
    """Append one row of the first day, and one of the second that lets the first be published."""
    lake.commits += 1
    rows = {
        "id": pa.array([lake.commits, -lake.commits], pa.int64()),
        "at": pa.array(
            [DAY_1 + timedelta(days=day, minutes=lake.commits) for day in (0, 1)],
            pa.timestamp("us", "UTC"),
        ),
        **{name: pa.array([value, None], kind) for name, (value, kind) in columns.items()},
    }
    moment = known(lake.commits - 0.5).isoformat()
    lake.table.append(pa.table(rows), snapshot_properties={"known-at": moment})


def change(lake: SmallLake, **columns: IcebergType | None) -> None:
    """Add, widen or drop columns of the source."""
    known_names = lake.table.schema().column_names
    with lake.table.update_schema() as update:
        for name, kind in columns.items():
            if kind is None:
                update.delete_column(name)
            elif name in known_names:
                update.update_column(name, field_type=kind)
            else:
                update.add_column(name, kind)


def published(lake: SmallLake, column: str = "n") -> dict[int, Any]:
    rows = read_committed(lake.target).to_table(columns=["id", "dt", column]).to_pylist()
    return {row["id"]: row[column] for row in rows if row["dt"] == "2026-02-01"}


def take(lake: SmallLake) -> None:
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)


@pytest.mark.parametrize(
    ("narrow", "first", "wide", "late"),
    [
        pytest.param(
            IntegerType(), (1, pa.int32()), LongType(), (2**40, pa.int64()), id="int to long"
        ),
        pytest.param(
            FloatType(),
            (0.5, pa.float32()),
            DoubleType(),
            (0.1, pa.float64()),
            id="float to double",
        ),
        pytest.param(
            DecimalType(9, 2),
            (1, pa.decimal128(9, 2)),
            DecimalType(18, 2),
            (10**12, pa.decimal128(18, 2)),
            id="decimal",
        ),
    ],
)
def test_late_row_after_a_column_was_widened_is_judged_and_read_with_the_old_ones(
    lake: SmallLake,
    narrow: IcebergType,
    first: tuple[Any, Any],
    wide: IcebergType,
    late: tuple[Any, Any],
) -> None:
    change(lake, n=narrow)
    append(lake, n=first)
    take(lake)
    change(lake, n=wide)
    append(lake, n=late)

    take(lake)

    assert published(lake) == {1: first[0], 2: late[0]}
    assert lake.pipeline().explain(day(1), NOW).report.state.revision == 2


def test_columns_that_were_added_and_dropped_are_read(lake: SmallLake) -> None:
    change(lake, n=IntegerType(), old=StringType())
    append(lake, n=(1, pa.int32()), old=("gone", pa.string()))
    take(lake)
    change(lake, old=None, new=StringType())
    append(lake, n=(2, pa.int32()), new=("come", pa.string()))

    take(lake)

    assert published(lake, "old") == {1: "gone", 2: None}
    assert published(lake, "new") == {1: None, 2: "come"}


@pytest.mark.follows("ColumnTypesDiffer")
def test_column_of_another_type_is_refused_and_the_rebuild_that_it_names_helps(
    lake: SmallLake,
) -> None:
    suite = lake.root / "suite.json"
    suite.write_text(json.dumps({"name": "orders", "expectations": [OK]}))
    change(lake, n=IntegerType())
    append(lake, n=(1, pa.int32()))
    take(lake)
    change(lake, n=None)
    change(lake, n=StringType())
    append(lake, n=("two", pa.string()))
    pipeline = lake.pipeline()
    load(pipeline)

    with pytest.raises(ColumnTypesDiffer, match=r"'n': .*string.*int32.*tidegate rebuild"):
        pipeline.publish(day(1), "cli", NOW)
    stood = published(lake)
    planned = pipeline.rebuild([day(1)], Run("again", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)
    publish(pipeline)

    assert stood == {1: 1}
    # The new column of the source is another one than the dropped, which the old row has no more.
    assert published(lake) == {1: None, 2: "two"}
