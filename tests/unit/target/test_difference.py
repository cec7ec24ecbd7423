"""The difference of two lists of files equals that of two counters of their rows."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import ColumnTypesDiffer, KeyUnknown
from tidegate.physical.opening import open_rows
from tidegate.read import row_difference
from tidegate.target import difference
from tidegate.target.difference import ComparedFile, Difference

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tidegate.physical.protocol import PhysicalRows

NAN = float("nan")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("amount", pa.float64()),
        ("name", pa.string()),
        ("tags", pa.list_(pa.struct([("k", pa.string()), ("v", pa.float32())]))),
    ]
)
ROW = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(0, 3),
        "amount": st.sampled_from([None, 0.0, -0.0, NAN, 1.5]),
        "name": st.sampled_from([None, "", "x" * 140 + "a" + "x" * 20, "x" * 140 + "b" + "x" * 20]),
        "tags": st.sampled_from([None, [], [{"k": "a", "v": 0.0}], [{"k": "a", "v": -0.0}]]),
    }
)
ROWS = st.lists(ROW, max_size=8)


def in_memory(tables: Sequence[pa.Table], row_group: int = 2) -> list[ComparedFile]:
    """Write each table as a Parquet file with small row groups."""
    files = []
    for number, table in enumerate(tables):
        written = pa.BufferOutputStream()
        pq.write_table(table, written, row_group_size=row_group)
        files.append(ComparedFile(f"{number}.parquet", partial(opened, written.getvalue())))
    return files


def opened(content: pa.Buffer) -> PhysicalRows:
    return open_rows(pa.BufferReader(content), "parquet")


def cut(rows: list[dict[str, Any]], at: int) -> list[pa.Table]:
    return [pa.Table.from_pylist(part, SCHEMA) for part in (rows[:at], rows[at:]) if part]


def told(rows: Sequence[dict[str, Any]]) -> Counter[str]:
    # `repr` tells -0.0 from 0.0, and not one NaN from another.
    return Counter(repr([(name, row[name]) for name in SCHEMA.names]) for row in rows)


def listed(batches: Any) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


@settings(max_examples=40)
@given(old=ROWS, new=ROWS, at=st.integers(0, 8), few=st.booleans())
def test_difference_without_keys_is_that_of_counters(
    old: list[dict[str, Any]], new: list[dict[str, Any]], at: int, few: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_difference, "BUCKET_ROWS", 3 if few else 100)
        found = Difference(in_memory(cut(old, at)), in_memory(cut(new, at + 1)))

    before, after = told(old), told(new)
    assert told(listed(found.removed_rows())) == before - after
    assert told(listed(found.added_rows())) == after - before
    assert found.removed == (before - after).total()
    assert found.added == (after - before).total()
    assert found.changed == 0


def by_key(rows: Counter[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows.elements():
        found.setdefault(row.partition(")")[0], []).append(row)
    return found


@settings(max_examples=40)
@given(old=ROWS, new=ROWS, at=st.integers(0, 8), few=st.integers(1, 9))
def test_rows_that_are_left_alone_with_their_key_on_both_sides_changed(
    old: list[dict[str, Any]], new: list[dict[str, Any]], at: int, few: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_difference, "BUCKET_ROWS", few)
        patch.setattr(difference, "_FIRST_ROWS", few)
        found = Difference(in_memory(cut(old, at)), in_memory(cut(new, at + 1)), keys=("id",))
        changes = list(found.changes())

    before, after = told(old), told(new)
    one, other = by_key(before - after), by_key(after - before)
    alone = [key for key in one if key in other and len(one[key]) == len(other[key]) == 1]
    pairs = {
        (*told([was]), *told([became]))
        for change in changes
        for was, became in zip(change.before.to_pylist(), change.after.to_pylist(), strict=True)
    }
    assert pairs == {(one[key][0], other[key][0]) for key in alone}
    assert found.changed == len(alone)
    assert found.repeated_keys == len(one.keys() & other.keys()) - len(alone)
    assert found.removed + found.changed == (before - after).total()
    assert found.added + found.changed == (after - before).total()


def test_changes_are_told_column_by_column() -> None:
    old = pa.table({"id": [1, 2, 3, 4], "a": [1.0, NAN, 0.0, None], "b": ["x", "y", "z", "w"]})
    new = pa.table({"id": [4, 3, 2, 1], "a": [1.0, -0.0, NAN, 1.0], "b": ["w", "z", "Y", "x"]})

    found = Difference(in_memory([old]), in_memory([new]), keys=("id",))
    (change,) = found.changes()

    assert change.before.column("id").to_pylist() == [2, 3, 4]
    assert change.after.column("id").to_pylist() == [2, 3, 4]
    assert {name: at.tolist() for name, at in change.differs.items()} == {
        "a": [False, True, True],
        "b": [True, False, False],
    }
    assert found.changed_columns == {"a": 2, "b": 1}


def test_whole_difference_has_each_row_with_what_it_is() -> None:
    old = pa.table({"id": [1, 2, 3, 4], "_diff": ["a", "b", "c", "d"]})
    new = pa.table({"id": [4, 5, 2, 3], "_diff": ["D", "e", "b", "C"]})

    rows = Difference(in_memory([old]), in_memory([new]), keys=("id",)).all_rows().read_all()

    # The name was taken.
    assert rows.to_pylist() == [
        {"__diff": "before", "id": 3, "_diff": "c"},
        {"__diff": "after", "id": 3, "_diff": "C"},
        {"__diff": "before", "id": 4, "_diff": "d"},
        {"__diff": "after", "id": 4, "_diff": "D"},
        {"__diff": "removed", "id": 1, "_diff": "a"},
        {"__diff": "added", "id": 5, "_diff": "e"},
    ]


def test_rows_are_compared_under_the_schema_of_both_sides() -> None:
    old = pa.table({"id": pa.array([1, 2], pa.int32()), "gone": [None, "x"]})
    new = pa.table({"id": pa.array([1, 2], pa.int64()), "more": [None, Decimal("1.5")]})

    found = Difference(in_memory([old]), in_memory([new]), keys=("id",))
    (change,) = found.changes()

    assert (found.added, found.removed, found.changed) == (0, 0, 1)
    assert set(change.differs) == {"gone", "more"}
    assert found.columns_added == ("more",)
    assert found.columns_removed == ("gone",)
    assert found.columns_retyped == {"id": ("int32", "int64")}


def test_columns_of_common_files_are_no_difference() -> None:
    common = in_memory([pa.table({"id": [7], "more": [1]})])
    old, new = pa.table({"id": [1]}), pa.table({"id": [1], "more": [2]})

    found = Difference(in_memory([old]), in_memory([new]), common)

    assert found.columns_added == found.columns_removed == ()
    assert (found.added, found.removed) == (1, 1)


def test_side_without_files_has_no_columns_to_lack() -> None:
    found = Difference([], in_memory([pa.table({"id": [1, 1]})]), keys=("id",))

    assert (found.added, found.removed, found.changed) == (2, 0, 0)
    assert found.columns_added == found.columns_removed == ()


def test_only_row_groups_with_a_difference_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    old = pa.table({"id": range(10)})
    new = pa.table({"id": [*range(5), 50, *range(6, 10)]})
    found = Difference(in_memory([old]), in_memory([new]))
    spans: list[tuple[int, int]] = []
    real = difference._spans

    def spied(*given: Any) -> Any:
        for span in real(*given):
            spans.append(span)
            yield span

    monkeypatch.setattr(difference, "_spans", spied)

    assert listed(found.added_rows()) == [{"id": 50}]
    assert spans == [(4, 6)]


def test_unknown_key_is_refused() -> None:
    with pytest.raises(KeyUnknown) as refused:
        Difference(in_memory([pa.table({"id": [1]})]), [], keys=("ID",))

    assert refused.value.column == "ID"


def test_columns_without_a_common_type_are_refused() -> None:
    old, new = pa.table({"id": [1]}), pa.table({"id": ["1"]})

    with pytest.raises(ColumnTypesDiffer):
        Difference(in_memory([old]), in_memory([new]))


def test_nothing_is_left_on_the_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    Difference(in_memory([pa.table({"id": [1]})]), in_memory([pa.table({"id": [2]})]), keys=("id",))

    assert list(tmp_path.iterdir()) == []
