"""A file that does not tell its rows is one group of them, from which any range is returned."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.physical.csv import CsvDialect, CsvFile, CsvRows
from tidegate.physical.streamed import ALL_ROWS, between


@given(
    st.lists(st.integers(0, 7), max_size=6),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(1, 5),
)
def test_rows_of_a_range_come_once_and_in_bounded_batches(
    sizes: list[int], start: int, end: int, batch_rows: int
) -> None:
    numbers = list(range(sum(sizes)))
    ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
    batches = [
        pa.record_batch({"n": pa.array(numbers[last - size : last], pa.int64())})
        for size, last in zip(sizes, ends, strict=True)
    ]

    found = list(between(batches, start, end, batch_rows))

    rows = [
        (position + index, value)
        for position, batch in found
        for index, value in enumerate(batch.column("n").to_pylist())
    ]
    assert rows == [(number, number) for number in numbers[start:end]]
    assert all(0 < batch.num_rows <= batch_rows for _, batch in found)


def test_file_is_one_group_that_begins_with_it_and_is_closed_with_the_rows() -> None:
    file = pa.BufferReader(b"a\n1\n2\n")

    with CsvRows(CsvFile(file, CsvDialect()), {}) as rows:
        (group,) = rows.row_groups
        assert (group.rows, group.offset, rows.rows) == (ALL_ROWS, 0, ALL_ROWS)
        assert rows.estimated_rows() == 2

    assert file.closed
