"""Deleted keys against Python's own equality."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read.keys import index_of
from tidegate.read.removed import RemovedKeys

if TYPE_CHECKING:
    import pytest

KINDS: dict[pa.DataType, list[Any]] = {
    pa.int32(): [0, 1, -(2**31)],
    pa.int64(): [0, 1, 2**63 - 1, -(2**63)],
    pa.bool_(): [False, True],
    pa.string(): ["", "a", "A", "0", "\N{SNOWMAN}", "x" * 40],
    pa.binary(): [b"", b"\0", b"a"],
    pa.binary(2): [b"aa", b"ab"],
    pa.decimal128(9, 2): [Decimal("0.00"), Decimal("-1.50"), Decimal("1.50")],
    pa.decimal128(38, 0): [Decimal(10**37), Decimal(-1)],
    pa.date32(): [dt.date(1969, 12, 31), dt.date(2026, 1, 1)],
    pa.time64("us"): [dt.time(0), dt.time(23, 59, 59, 999999)],
    pa.timestamp("us"): [dt.datetime(1969, 1, 1), dt.datetime(2026, 1, 1, 0, 0, 0, 1)],  # noqa: DTZ001
    pa.timestamp("us", "UTC"): [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)],
    pa.timestamp("ns"): [0, 1],
    pa.null(): [None],
}


@st.composite
def deleted_and_rows(draw: st.DrawFn) -> tuple[list[pa.DataType], list[Any], list[Any]]:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=3))
    key = st.tuples(*[st.none() | st.sampled_from(KINDS[kind]) for kind in kinds])
    return kinds, draw(st.lists(key, max_size=8)), draw(st.lists(key, max_size=12))


def _batch(kinds: list[pa.DataType], rows: list[Any]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [f"k{number}" for number in range(len(kinds))])


def _keys(batch: pa.RecordBatch) -> RemovedKeys:
    return RemovedKeys(tuple(batch.schema.names), batch)


@given(deleted_and_rows())
def test_index_of_any_keys_holds_equal_rows_and_null_equals_null(case: Any) -> None:
    kinds, deleted, rows = case

    found = index_of(_keys(_batch(kinds, deleted))).holds(_batch(kinds, rows))

    expected = [row in deleted for row in rows]
    assert (found.to_pylist() if found is not None else [False] * len(rows)) == expected
    assert (found is None) == (not any(expected))


def test_index_looks_at_sliced_batches_as_at_whole_ones() -> None:
    rows = pa.record_batch({"k": pa.array([1, None, 2, 3, None]), "more": [0.5] * 5})
    deleted = RemovedKeys(("k",), pa.record_batch({"k": pa.array([9, 3, None]).slice(1)}))

    found = index_of(deleted).holds(rows.slice(1, 3))

    assert found.to_pylist() == [True, False, True]


def test_index_of_uuid_keys_compares_their_bytes() -> None:
    storage = pa.array([b"\xff" * 16, b"\0" * 16], pa.binary(16))
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    deleted = RemovedKeys(("k",), pa.RecordBatch.from_arrays([uuids.slice(0, 1)], ["k"]))

    found = index_of(deleted).holds(pa.RecordBatch.from_arrays([uuids], ["k"]))

    assert found.to_pylist() == [True, False]


def test_index_of_many_keys_holds_each_and_no_other() -> None:
    deleted = pa.record_batch({"a": range(0, 60_000, 2), "b": [str(n % 7) for n in range(30_000)]})
    rows = pa.record_batch({"a": range(60_000), "b": [str((n // 2) % 7) for n in range(60_000)]})

    found = index_of(_keys(deleted)).holds(rows)

    assert found.to_pylist() == [True, False] * 30_000


def test_index_survives_hashes_that_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = pl.DataFrame.hash_rows

    def colliding(frame: pl.DataFrame, seed: int) -> pl.Series:
        hashed = plain(frame, seed)
        return hashed % 2 if seed == 0 else hashed

    monkeypatch.setattr(pl.DataFrame, "hash_rows", colliding)
    deleted = pa.record_batch({"k": range(9)})

    found = index_of(_keys(deleted)).holds(pa.record_batch({"k": range(12)}))

    assert found.to_pylist() == [True] * 9 + [False] * 3


def test_index_of_one_set_is_built_once() -> None:
    keys = _keys(pa.record_batch({"k": [1]}))

    assert index_of(keys) is index_of(keys)
    assert index_of(_keys(keys.rows)) is not index_of(keys)
