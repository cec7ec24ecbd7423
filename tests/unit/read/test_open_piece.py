"""Ranges of physical rows of Parquet files, against plain slices of the same rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooked_reader import PlainHooks, piece_of, read_pieces
from refusing import without_descriptors
from tidegate.errors import (
    SchemaIncompatible,
    SourceFileDamaged,
    SourceFileGone,
    StorageDenied,
    StorageSilent,
)
from tidegate.physical import RowGroup
from tidegate.predicate import Predicate
from tidegate.read.open_piece import in_rows

if TYPE_CHECKING:
    from tidegate.model.plan import Piece
    from tidegate.physical import ParquetRows

GROUPS = (4, 1, 7, 3)
ROWS = sum(GROUPS)


class PlainFormat(PlainHooks):
    """Files whose columns are the pipeline's; knows what was asked of it."""

    def __init__(self, columns: list[str] | None = None) -> None:
        self.columns = columns or ["n", "text"]
        self.decoded: list[int] = []

    def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
        assert file_schema.names == ["n", "text", "unread"]
        return self.columns

    def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
        self.decoded.append(batch.num_rows)
        return batch


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("read") / "in.parquet")
    rows = pa.table(
        {"n": range(ROWS), "text": [str(n) for n in range(ROWS)], "unread": [0.5] * ROWS}
    )
    with pq.ParquetWriter(path, rows.schema) as writer:
        start = 0
        for size in GROUPS:
            writer.write_table(rows.slice(start, size))
            start += size
    return path


def piece(path: str, start: int = 0, rows: int = ROWS) -> Piece:
    return piece_of(path, rows, row_start=start)


def numbers(pieces: list[Piece], **options: object) -> list[int]:
    read = read_pieces(pieces, PlainFormat(), **options)  # type: ignore[arg-type]
    return [value for batch in read for value in batch.column("n").to_pylist()]


@given(st.data())
def test_read_any_range_equals_a_slice(file: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, ROWS))
    rows = data.draw(st.integers(0, ROWS - start))
    batch_rows = data.draw(st.integers(1, ROWS))

    assert numbers([piece(file, start, rows)], batch_rows=batch_rows) == list(
        range(start, start + rows)
    )


@given(st.lists(st.integers(0, ROWS), max_size=4))
def test_read_adjoining_ranges_give_each_row_once(file: str, cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), ROWS]
    pieces = [piece(file, low, high - low) for low, high in pairwise(bounds)]

    assert numbers(pieces) == list(range(ROWS))


def test_read_batches_are_bounded(file: str) -> None:
    sizes = [batch.num_rows for batch in read_pieces([piece(file)], PlainFormat(), batch_rows=3)]

    assert max(sizes) <= 3


def test_read_wide_rows_come_in_smaller_batches(tmp_path: Path) -> None:
    wide = pa.table({"n": range(256), "text": ["x" * 1_000_000] * 256, "unread": [0.5] * 256})
    pq.write_table(wide, tmp_path / "wide.parquet", use_dictionary=False)

    read = read_pieces([piece(str(tmp_path / "wide.parquet"), 0, 256)], PlainFormat())

    assert max(batch.num_rows for batch in read) <= 34


def test_read_range_skips_row_groups_outside(file: str) -> None:
    format_ = PlainFormat()

    list(read_pieces([piece(file, 5, 2)], format_))

    assert format_.decoded == [2]


def test_read_only_asked_columns_are_decoded(file: str) -> None:
    (batch,) = read_pieces([piece(file)], PlainFormat(["text"]))

    assert batch.schema.names == ["text"]


def test_read_no_physical_columns_still_counts_rows(file: str) -> None:
    class Constant(PlainFormat):
        def physical_columns(self, piece: Piece, file_schema: pa.Schema) -> list[str]:
            return []

        def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
            return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], ["absent"])

    found = list(read_pieces([piece(file, 2, 9)], Constant()))

    assert sum(batch.num_rows for batch in found) == 9


def test_read_filter_sees_conformed_columns_and_drops_empty_batches(file: str) -> None:
    class Doubling(PlainFormat):
        def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
            doubled = pa.array([2 * value.as_py() for value in batch.column("n")])
            return pa.RecordBatch.from_arrays([doubled], ["twice"])

    wanted = Predicate.parse("twice > 20", pa.schema([("twice", pa.int64())]), "source.read.filter")

    found = list(read_pieces([piece(file)], Doubling(), filter=wanted, batch_rows=4))

    assert [value for batch in found for value in batch.column(0).to_pylist()] == [22, 24, 26, 28]
    assert all(batch.num_rows for batch in found)


def test_read_missing_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(SourceFileGone) as gone:
        numbers([piece(str(tmp_path / "gone.parquet"))])

    assert gone.value.values["path"] == str(tmp_path / "gone.parquet")


@pytest.mark.parametrize("keep", [0, 3, 200, -1], ids=["empty", "magic", "half", "footer-cut"])
def test_read_truncated_file_names_it(file: str, tmp_path: Path, keep: int) -> None:
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(Path(file).read_bytes()[:keep])

    with pytest.raises(SourceFileDamaged) as damaged:
        numbers([piece(str(cut))])

    assert damaged.value.values["path"] == str(cut)


def test_read_damaged_page_names_the_file(file: str, tmp_path: Path) -> None:
    content = bytearray(Path(file).read_bytes())
    content[4:60] = b"\xff" * 56
    damaged_file = tmp_path / "damaged.parquet"
    damaged_file.write_bytes(content)

    with pytest.raises(SourceFileDamaged, match=r"damaged\.parquet"):
        numbers([piece(str(damaged_file))])


def test_read_fewer_rows_than_planned_is_damage(file: str) -> None:
    with pytest.raises(SourceFileDamaged, match=f"expected at least {ROWS + 1} rows, found {ROWS}"):
        numbers([piece(file, 1, ROWS)])


def test_rows_of_a_byte_range_need_no_place_of_groups_without_rows(file: str) -> None:
    groups = [RowGroup(3, 10, 4), RowGroup(0, 0, None), RowGroup(5, 10, 14)]
    ranged = replace(piece(file), byte_range=(10, 20))

    located = in_rows(ranged, groups)

    assert (located.row_start, located.rows) == (3, 5)


def test_read_denied_file_is_named(file: str) -> None:
    class Denied(PlainFormat):
        def open(self, piece: Piece) -> ParquetRows:
            raise PermissionError(13, "Permission denied", piece.path)

    with pytest.raises(StorageDenied, match="Permission denied"):
        list(read_pieces([piece(file)], Denied()))


def test_read_on_a_busy_machine_passes_by_itself(file: str) -> None:
    with without_descriptors(), pytest.raises(StorageSilent, match="Too many open files"):
        list(read_pieces([piece(file)], PlainFormat()))


def test_read_error_of_the_format_passes_as_itself(file: str) -> None:
    class Changed(PlainFormat):
        def conform(self, batch: pa.RecordBatch, piece: Piece, position: int) -> pa.RecordBatch:
            raise SchemaIncompatible(path=piece.path, column="n", expected="string", found="int64")

    with pytest.raises(SchemaIncompatible, match="expected string"):
        list(read_pieces([piece(file)], Changed()))
