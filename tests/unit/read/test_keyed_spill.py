"""What goes into the files of a merge comes out: all of a key in one bucket, in its order."""

from __future__ import annotations

import tempfile
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read.keyed_merge import KeyedRecords
from tidegate.read.keyed_spill import KeyedSpill

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

RECORD = st.tuples(
    st.sampled_from("abcdefghij"),
    st.one_of(st.integers(0, 5), st.none()),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
Record = tuple[str, int | None, bool, bool, bool]


def keyed(records: list[Record], *, ordered: bool, lacking: bool) -> KeyedRecords:
    """Records of (key, value, is deleted, is marked, lacks its value)."""
    keys, values, deleted, marked, lacks = zip(*records, strict=True)
    column = pa.array(values, pa.int64())
    return KeyedRecords(
        rows=pa.table({"key": pa.array(keys), "lacks value": column}),
        keys=pa.array(keys),
        deleted=np.array(deleted),
        marked=np.array(marked),
        ordering=(column,) if ordered else (),
        unordered=np.array(marked) if ordered else np.zeros(0, np.bool_),
        missing={"lacks value": np.array(lacks)} if lacking else {},
    )


def told(records: KeyedRecords) -> list[tuple[Any, ...]]:
    rows = records.rows.to_pylist()
    order = records.ordering[0].to_pylist() if records.ordering else [None] * len(records)
    barriers = records.unordered if len(records.unordered) else [None] * len(records)
    lacks = records.missing.get("lacks value", [None] * len(records))
    flags = zip(records.deleted, records.marked, barriers, lacks, strict=True)
    keys = records.keys.to_pylist()
    return [
        (key, tuple(row.items()), value, *flag)
        for key, row, value, flag in zip(keys, rows, order, flags, strict=True)
    ]


@given(
    st.lists(st.tuples(st.lists(RECORD, min_size=1), st.booleans()), max_size=4),
    st.integers(1, 7),
    st.booleans(),
)
def test_records_come_back_with_all_that_they_had(
    parts: list[tuple[list[Record], bool]], buckets: int, ordered: bool
) -> None:
    made = [keyed(part, ordered=ordered, lacking=lacking) for part, lacking in parts]
    with KeyedSpill(buckets) as spill:
        for records in made:
            spill.add_records("log", records)
        found = [
            [row for records in spill.records("log", bucket) for row in told(records)]
            for bucket in range(buckets)
        ]

    expected = [row for records in made for row in told(records)]
    assert Counter(row for bucket in found for row in bucket) == Counter(expected)
    for key in {row[0] for row in expected}:
        # All in one bucket, and in their order.
        assert [own for bucket in found if (own := [row for row in bucket if row[0] == key])] == [
            [row for row in expected if row[0] == key]
        ]


def test_other_names_and_buckets_have_nothing() -> None:
    with KeyedSpill(3) as spill:
        spill.add("own", pa.table({"a": [1]}), pa.array(["k"]))

        found = [[len(table) for table in spill.read("own", bucket)] for bucket in range(3)]
        assert sorted(found) == [[], [], [1]]
        assert not [table for bucket in range(3) for table in spill.read("before", bucket)]


def test_files_are_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with KeyedSpill(2) as spill:
        spill.add("own", pa.table({"a": [1]}), pa.array(["k"]))
        assert [path.name for path in tmp_path.rglob("*.arrows")]

    assert not list(tmp_path.iterdir())
