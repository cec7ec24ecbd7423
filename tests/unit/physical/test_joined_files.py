"""Which files go together, and that their rows come out in their order, as one by one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.physical import ParquetRows, joined_files
from tidegate.physical.joined_files import are_few, joined_batches
from tidegate.physical.protocol import FilterStopped, Joinable
from tidegate.predicate import Predicate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLE = pa.table({"n": [1, 2, 3], "text": ["a", None, "c"], "more": [0.5, 1.5, 2.5]})
BROKEN = pa.StringArray.from_buffers(3, *pa.array([b"\xff"] * 3, pa.binary()).buffers()[1:])


@pytest.fixture
def files() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def opened(files: ExitStack, path: Path, table: pa.Table, **options: Any) -> ParquetRows:
    pq.write_table(table, path, **options)
    return files.enter_context(ParquetRows(pa.OSFile(str(path))))


def first(files: ExitStack, path: Path, table: pa.Table = TABLE) -> Joinable:
    found = opened(files, path, table).joinable(["text", "n"])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("other", "joins"),
    [
        (TABLE, True),
        (TABLE.slice(1), True),
        (TABLE.replace_schema_metadata({"of": "another writer"}), True),
        (TABLE.rename_columns(["n", "text", "less"]), False),
        (TABLE.select(["text", "n", "more"]), False),
        (TABLE.drop_columns(["more"]), False),
        (TABLE.set_column(2, "more", pa.array([1, 2, 3])), False),
        (TABLE.cast(TABLE.schema.set(1, pa.field("text", pa.large_string()))), False),
        (
            TABLE.cast(TABLE.schema.set(0, pa.field("n", pa.int64(), metadata={"id": "1"}))),
            False,
        ),
    ],
    ids=[
        "same",
        "fewer-rows",
        "notes",
        "name",
        "order",
        "column-less",
        "type",
        "memory",
        "field-notes",
    ],
)
def test_file_joins_one_with_equal_columns_only(
    files: ExitStack, tmp_path: Path, other: pa.Table, joins: bool
) -> None:
    known = first(files, tmp_path / "a")

    found = opened(files, tmp_path / "b", other).joining(known)

    assert (found is not None) == joins
    assert found is None or found.rows == other.num_rows


def test_file_without_rows_is_not_joined(files: ExitStack, tmp_path: Path) -> None:
    assert opened(files, tmp_path / "a", TABLE.slice(0, 0)).joinable(["n"]) is None


def test_files_are_few_up_to_each_bound(
    files: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = first(files, tmp_path / "a")

    assert are_few([known] * joined_files.MOST_FILES)
    assert not are_few([known] * (joined_files.MOST_FILES + 1))
    monkeypatch.setattr(joined_files, "TOGETHER_ROWS", 6)
    assert are_few([known] * 2)
    assert not are_few([known] * 3)
    monkeypatch.setattr(joined_files, "BATCH_BYTES", 2 * known.size_bytes - 1)
    assert not are_few([known] * 2)


@pytest.mark.parametrize("batch_rows", [1, 2, 4, 100])
def test_rows_that_pass_come_file_after_file(
    files: ExitStack, tmp_path: Path, batch_rows: int
) -> None:
    known = first(files, tmp_path / "a")
    other = opened(files, tmp_path / "b", TABLE, row_group_size=1).joining(known)
    assert other is not None
    passing = Predicate.parse("n <> 2", TABLE.schema, "source.read.filter")

    batches = list(joined_batches([other, known, other], passing, batch_rows))

    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows == [{"text": "a", "n": 1}, {"text": "c", "n": 3}] * 3
    assert all(batch.num_rows <= batch_rows for batch in batches)
    assert all(batch.schema.equals(known.columns, check_metadata=True) for batch in batches)


def test_what_cannot_be_decoded_stops(files: ExitStack, tmp_path: Path) -> None:
    known = first(files, tmp_path / "a")
    broken = TABLE.set_column(1, "text", BROKEN)
    other = opened(files, tmp_path / "b", broken).joining(known)
    assert other is not None
    passing = Predicate.parse("n > 0", TABLE.schema, "source.read.filter")

    with pytest.raises(FilterStopped):
        list(joined_batches([known, other], passing, 100))
