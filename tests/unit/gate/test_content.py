"""What the gate learns from footers, and what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refusing import without_descriptors
from tidegate.errors import StorageSilent
from tidegate.gate.content import (
    GateInput,
    constants,
    empty_footers,
    read_columns,
    read_footers,
    table_schema,
)
from tidegate.gate.frame import to_pandas
from tidegate.model.partition import Partition
from tidegate.target.schema import unified

if TYPE_CHECKING:
    from pathlib import Path

DAY = Partition((("dt", "2013-02-08"), ("region", None)))


def content_of(folder: Path, *tables: pa.Table, group_rows: int = 2) -> GateInput:
    # A directory such as a published file stands in: its values must not be taken for columns.
    folder = folder / "dt=1999-01-01"
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=group_rows)
    return GateInput(
        DAY, tuple(f"{folder}/{number}.parquet" for number in range(len(tables))), unified
    )


def test_footers_of_several_files_give_all_rows_and_columns(tmp_path: Path) -> None:
    content = content_of(tmp_path, pa.table({"a": [1, 2, 3]}), pa.table({"a": [4], "b": ["x"]}))

    footers = read_footers(content)

    assert footers.rows == 4
    assert footers.schema.names == ["a", "b"]
    assert set(footers.column_bytes) == {"a", "b"}


def test_footers_weight_counts_eight_bytes_a_value_however_well_packed(tmp_path: Path) -> None:
    packed = pa.table({"a": pa.array([None] * 1000, pa.int8()), "b": ["x" * 100_000] * 1000})

    weights = read_footers(content_of(tmp_path, packed, group_rows=1000)).column_bytes

    assert weights["a"] == 8 * 1000
    assert weights["b"] > 100_000


def test_footers_weigh_columns_with_dots_in_their_names_and_nested_ones(tmp_path: Path) -> None:
    pairs = pa.array([[("k", 1)]] * 10, pa.map_(pa.string(), pa.int64()))
    nested = pa.array([{"b": [1, 2], "c": 1}] * 10)
    rows = pa.table({"a": nested, "a.b": [1] * 10, "pairs": pairs, "z": [1] * 10})

    weights = read_footers(content_of(tmp_path, rows)).column_bytes

    assert set(weights) == {"a", "a.b", "pairs", "z"}
    assert weights["a.b"] == weights["z"] > 0
    assert weights["a"] > weights["pairs"] > weights["z"]


def test_read_columns_keeps_order_of_files_and_adds_the_partition(tmp_path: Path) -> None:
    content = content_of(tmp_path, pa.table({"a": [3, 1], "b": [0, 0]}), pa.table({"a": [2]}))

    table = read_columns(content, read_footers(content), ["a", "dt", "region"])

    assert table.to_pylist() == [
        {"a": value, "dt": "2013-02-08", "region": None} for value in (3, 1, 2)
    ]


def test_read_columns_of_none_still_counts_the_rows(tmp_path: Path) -> None:
    content = content_of(tmp_path, pa.table({"a": [1, 2, 3]}))

    table = read_columns(content, read_footers(content), [])

    assert (table.num_rows, table.column_names) == (3, [])
    assert len(to_pandas(table)) == 3


def test_read_columns_stored_column_wins_over_the_partition_value(tmp_path: Path) -> None:
    content = content_of(tmp_path, pa.table({"region": ["eu"]}))
    footers = read_footers(content)

    table = read_columns(content, footers, ["region"])

    assert table.to_pylist() == [{"region": "eu"}]
    assert constants(content, footers, ["region", "dt"]) == {"dt": "2013-02-08"}
    assert table_schema(content, footers).names == ["region", "dt"]


def test_read_columns_dictionary_becomes_plain_text(tmp_path: Path) -> None:
    words = pa.array(["x", None, "y"]).dictionary_encode()
    content = content_of(tmp_path, pa.table({"a": words}), pa.table({"a": ["z"]}))

    table = read_columns(content, read_footers(content), ["a"])

    assert table.schema.field("a").type == pa.string()
    assert table.column("a").to_pylist() == ["x", None, "y", "z"]


def test_empty_footers_give_a_table_without_rows(tmp_path: Path) -> None:
    content = GateInput(DAY, (), unified)

    table = read_columns(content, empty_footers(content, {"b", "a", "dt"}), ["a", "b", "dt"])

    assert (table.num_rows, table.column_names) == (0, ["a", "b", "dt"])


def test_to_pandas_nulls_leave_integers_and_booleans_what_they_are() -> None:
    table = pa.table(
        {
            "small": pa.array([1, None], pa.int8()),
            "large": pa.array([2**63 - 1, None], pa.int64()),
            "unsigned": pa.array([2**64 - 1, None], pa.uint64()),
            "flag": pa.array([True, None]),
        }
    )

    frame = to_pandas(table)

    assert frame["large"][0] == 2**63 - 1
    assert frame["unsigned"][0] == 2**64 - 1
    assert bool(frame["flag"][0])
    assert list(frame.isna().sum()) == [1, 1, 1, 1]


def test_empty_footers_take_the_first_type_that_is_known() -> None:
    newest = pa.schema([("a", pa.null()), ("b", pa.int32())])
    older = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.date32())])
    content = GateInput(DAY, (), unified, lambda: (newest, older))

    footers = empty_footers(content, {"c", "d", "dt"})

    expected = [("a", pa.int64()), ("b", pa.int32()), ("c", pa.date32()), ("d", pa.null())]
    assert footers.schema == pa.schema(expected)


def test_content_on_a_busy_machine_is_not_called_unreadable(tmp_path: Path) -> None:
    content = content_of(tmp_path, pa.table({"a": [1]}))

    with without_descriptors(), pytest.raises(StorageSilent, match=r"0\.parquet"):
        read_footers(content)
