"""A table goes on when its source adds, drops and widens columns: for readers and for the gate."""

from __future__ import annotations

import json
import re
import shlex
from datetime import timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType, StringType
from typer.testing import CliRunner

from small_lake import DAY_1, NOW, SmallLake, day, known, load, local, publish
from tidegate import read_committed
from tidegate.cli.app import app
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


def test_renamed_column_is_noted_until_the_partition_is_rebuilt(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    lake.keys = {"commit": {"trigger": "process-time"}}
    append(lake, amount=(1, pa.int64()))
    load(lake.pipeline())
    publish(lake.pipeline())
    with lake.table.update_schema() as renamed:
        renamed.rename_column("amount", "total")
    append(lake, total=(7, pa.int64()))

    dry = typed("tidegate plan --dry-run orders --json")["plan"]["notes"]
    (note,) = typed("tidegate load orders --json")["notes"]
    assert [each.replace("PIPELINE", "orders") for each in dry] == [note]
    assert "had column amount, this one has not" in note
    publish(lake.pipeline())
    assert {"amount", "total"} <= set(read_committed(lake.target).schema.names)

    rebuild, _, finish = re.findall("`(tidegate [^`]*)`", note)
    days = "dt=2026-02-01 dt=2026-02-02"
    assert typed(f"{rebuild.replace('PARTITION', days)} --json")["notes"] == []
    typed(f"{finish} --json")

    table = read_committed(lake.target).to_table()
    assert set(table.schema.names) == {"id", "at", "total", "dt"}
    assert sorted(table.select(["id", "total"]).to_pylist(), key=itemgetter("id")) == [
        {"id": number, "total": value} for number, value in ((-2, None), (-1, None), (1, 1), (2, 7))
    ]
    append(lake, total=(8, pa.int64()))
    assert typed("tidegate load orders --json")["notes"] == []


def test_columns_of_some_files_of_a_folder_are_not_gone_where_others_lack_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = SmallLake(tmp_path)
    lake.found_by_name(monkeypatch)
    folder = tmp_path / "files"
    folder.mkdir()
    keys = {
        "name": "orders",
        "source": {"kind": "files", "path": str(folder)},
        "target": {"path": str(lake.target), "partition_by": {"day": "day"}},
        "commit": {"trigger": "process-time"},
        "execute": {"engine": "local"},
    }
    (tmp_path / "orders.yaml").write_text(json.dumps(keys))
    for name, columns in (("a", {"more": ["x"]}), ("b", {}), ("c", {"other": ["y"]}), ("d", {})):
        pq.write_table(pa.table({"id": [1], "day": ["m"], **columns}), folder / f"{name}.parquet")
        notes = typed("tidegate load orders --json")["notes"]
        assert not any("this one has not" in note for note in notes)
        assert len(notes) == (name == "c")


def typed(line: str) -> Any:
    found = CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"id": pa.int64()}, "column id as int64 (before: int32)"),
        ({"id": pa.int32(), "more": pa.string()}, "has column more, which earlier ones had not"),
    ],
    ids=["widened", "added"],
)
def test_changed_column_of_files_is_noted_once(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, now: dict[str, pa.DataType], said: str
) -> None:
    folder = lake.root / "landing"
    folder.mkdir()
    lake.source = {"kind": "files", "path": str(folder)}
    lake.pipeline()
    lake.found_by_name(monkeypatch)

    def put(number: int, types: dict[str, pa.DataType]) -> None:
        columns = {name: pa.array([number]).cast(kind) for name, kind in types.items()}
        at = pa.array([DAY_1], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({**columns, "at": at}), folder / f"{number}.parquet")

    put(1, {"id": pa.int32()})
    assert typed("tidegate load orders --json")["notes"] == []
    put(2, now)

    (note,) = typed("tidegate load orders --json")["notes"]

    assert said in note
    put(3, now)
    assert typed("tidegate load orders --json")["notes"] == []
