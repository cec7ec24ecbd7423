"""The last change of each key wins, and rows keep their places, as in a plain dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.row_kind import CHANGE_ORDINAL, CHANGE_TYPE, ERASED, RowKind
from tidegate.read.upsert import NewestChanges, ordered_changes, replaced, with_order

COLUMNS = pa.schema([("key", pa.int64()), ("part", pa.string()), ("value", pa.int64())])
STAGED = pa.schema([*COLUMNS, (CHANGE_TYPE, pa.string()), (CHANGE_ORDINAL, pa.int32())])
KEYS = ("key", "part")

changes = st.tuples(
    st.integers(0, 4), st.sampled_from("ab"), st.sampled_from(list(RowKind)), st.integers(0, 2)
)
windows = st.lists(st.lists(changes, max_size=8), min_size=1, max_size=4)


def staged(window: list[tuple[int, str, RowKind, int]], first: int) -> pa.RecordBatch:
    rows = [
        {
            "key": key,
            "part": part,
            "value": first + number,
            CHANGE_TYPE: kind.value,
            CHANGE_ORDINAL: ordinal,
        }
        for number, (key, part, kind, ordinal) in enumerate(window)
    ]
    return pa.RecordBatch.from_pylist(rows, STAGED)


def newest_of(batches: list[pa.RecordBatch]) -> NewestChanges:
    ordered = [ordered_changes(batch, place, COLUMNS) for place, batch in enumerate(batches)]
    return NewestChanges.of(pa.Table.from_batches(ordered, with_order(COLUMNS)), KEYS)


@given(windows)
def test_last_change_of_a_key_is_that_of_the_last_commit_of_the_last_window(
    said: list[list[tuple[int, str, RowKind, int]]],
) -> None:
    batches = [staged(window, 100 * place) for place, window in enumerate(said)]
    expected: dict[tuple[int, str], tuple[int, bool]] = {}
    for place, window in enumerate(said):
        told = [(row, 100 * place + number) for number, row in enumerate(window)]
        for (key, part, kind, _), value in sorted(
            told, key=lambda it: (it[0][3], it[0][2] not in {RowKind.DELETE, RowKind.UPDATE_BEFORE})
        ):
            removes = kind in {RowKind.DELETE, RowKind.UPDATE_BEFORE}
            expected[key, part] = (value, not removes)

    found = newest_of(batches)

    rows = zip(found.rows.to_pylist(), found.stands.tolist(), strict=True)
    assert {(row["key"], row["part"]): (row["value"], stands) for row, stands in rows} == expected


def test_rows_without_kinds_are_upserts_of_which_the_later_counts() -> None:
    rows = pa.RecordBatch.from_pylist(
        [{"key": 1, "part": "a", "value": number} for number in range(5)], COLUMNS
    )

    found = newest_of([rows])

    assert found.rows.to_pylist() == [{"key": 1, "part": "a", "value": 4}]
    assert next(iter(found.new_rows(10))).num_rows == 1


def test_found_row_is_the_change_of_its_key_and_no_new_row() -> None:
    found = newest_of([staged([(1, "a", RowKind.UPSERT, 0), (2, "a", RowKind.DELETE, 0)], 7)])
    standing = pa.RecordBatch.from_pylist(
        [{"key": 3, "part": "a", "value": 0}, {"key": 1, "part": "a", "value": 0}], COLUMNS
    )

    rows, places = found.index().find(standing)
    found.met[places] = True

    assert rows.tolist() == [1]
    assert found.rows.take(pa.array(places)).to_pylist() == [{"key": 1, "part": "a", "value": 7}]
    assert list(found.new_rows(10)) == []


def test_narrower_and_missing_columns_are_made_those_of_the_revision() -> None:
    rows = pa.RecordBatch.from_pydict({"key": pa.array([1], pa.int32()), "part": ["a"]})

    (found,) = ordered_changes(rows, 0, COLUMNS).select(COLUMNS.names).to_pylist()

    assert found == {"key": 1, "part": "a", "value": None}


@given(st.lists(st.sampled_from(["keep", "change", "drop"]), max_size=12))
def test_rows_keep_their_places(said: list[str]) -> None:
    standing = pa.RecordBatch.from_pydict({"value": pa.array(range(len(said)), pa.int64())})
    positions = np.array([at for at, what in enumerate(said) if what != "keep"], np.int64)
    by = pa.RecordBatch.from_pydict({"value": pa.array(1000 + positions, pa.int64())})
    stays = np.array([what == "change" for what in said if what != "keep"], np.bool_)

    found = replaced(standing, positions, by, stays)

    assert found.column("value").to_pylist() == [
        1000 + at if what == "change" else at for at, what in enumerate(said) if what != "drop"
    ]


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_no_changes_find_nothing(rows: int) -> None:
    standing = pa.RecordBatch.from_pydict(
        {"key": pa.array(range(rows), pa.int64()), "part": ["a"] * rows, "value": [0] * rows},
        schema=COLUMNS,
    )

    found, places = newest_of([staged([], 0)]).index().find(standing)

    assert (len(found), len(places)) == (0, 0)


def test_row_wins_over_the_delete_of_its_key_that_was_staged_after_it() -> None:
    found = newest_of([staged([(1, "a", RowKind.INSERT, 5), (1, "a", RowKind.DELETE, 5)], 0)])

    assert found.stands.tolist() == [True]


def test_erased_row_takes_the_row_before_it_away_and_no_row_after_it() -> None:
    rows = staged([(key, "a", RowKind.INSERT, 0) for key in (1, 1, 2, 2)], 0)
    kinds = pa.array(["INSERT", ERASED, ERASED, "INSERT"])
    erased = rows.set_column(rows.schema.get_field_index(CHANGE_TYPE), CHANGE_TYPE, kinds)

    found = newest_of([erased])

    assert dict(zip(found.rows["key"].to_pylist(), found.stands.tolist(), strict=True)) == {
        1: False,
        2: True,
    }


def test_last_of_many_changes_of_a_few_keys_is_found() -> None:
    """So many that a sort which is not stable would mix equals."""
    draw = np.random.default_rng(1)
    keys, ordinals = draw.integers(0, 1000, 300_000), draw.integers(0, 2, 300_000)
    count = len(keys)
    rows = pa.RecordBatch.from_arrays(
        [
            pa.array(keys),
            pa.array(["a"] * count),
            pa.array(np.arange(count)),
            pa.array([RowKind.UPSERT.value] * count),
            pa.array(ordinals, pa.int32()),
        ],
        schema=STAGED,
    )

    found = newest_of([rows])

    expected = {
        key: value for _, value, key in sorted(zip(ordinals, range(count), keys, strict=True))
    }
    got = dict(zip(found.rows["key"].to_pylist(), found.rows["value"].to_pylist(), strict=True))
    assert got == expected
