"""A piece is a whole data file with all that its manifest entry says of it."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform

from iceberg_states import entry_of, metrics_of
from tidegate.model.file_slice import Change, CheckedState, Delta, DeltaKind
from tidegate.model.plan import Piece
from tidegate.model.time_bounds import TimeBounds
from tidegate.source.iceberg.changes.pieces import PieceMaker

SPECS = {
    0: PartitionSpec(),
    3: PartitionSpec(PartitionField(5, 1000, IdentityTransform(), "region"), spec_id=3),
}
ENTRY = entry_of(
    path="s3://lake/a.orc",
    file_format="orc",
    rows=20,
    size_bytes=500,
    split_offsets=(4, 90),
    snapshot_id=8,
    sequence_number=5,
    file_sequence_number=6,
    spec_id=3,
    partition=("eu",),
    first_row_id=100,
)
DELTA = Delta("d", DeltaKind.KEYS, "parquet", 10, 1, 7, field_ids=(1,))


def test_piece_says_what_the_entry_says() -> None:
    piece = PieceMaker(SPECS).piece(ENTRY)

    assert (piece.rows, piece.size_bytes, piece.row_start) == (20, 500, 0)
    slice = piece.slice
    assert (slice.path, slice.file_format, slice.file_bytes, slice.rows) == (
        *("s3://lake/a.orc", "orc", 500, 20),
    )
    assert (slice.offsets, slice.sequence) == ((4, 90), 6)
    assert slice.details == {
        "snapshot": 8,
        "sequence": 5,
        "spec": 3,
        "partition": {"5": "eu"},
        "first_row_id": 100,
    }
    assert piece.event_times is None


def test_piece_carries_deletes_change_and_check() -> None:
    change, check = Change(1, 8, None, (DELTA,)), CheckedState(8, True)

    piece = PieceMaker(SPECS).piece(
        ENTRY, ("gs://lake/a.orc",), deltas=(DELTA,), change=change, check=check, since=4
    )

    assert (piece.slice.deltas, piece.slice.change, piece.slice.check) == (
        *((DELTA,), change, check),
    )
    assert piece.slice.details["rivals"] == ("gs://lake/a.orc",)
    assert piece.slice.details["since_sequence"] == 4


def test_change_of_an_earlier_plan_keeps_its_text() -> None:
    # Sub-splits are named after it: what was staged of an open window is found again.
    text = '{"after":null,"before":[],"commit":8,"format":1,"net":false,"ordinal":1}'

    assert Change.from_text(text).to_text() == text


def test_piece_survives_the_plan() -> None:
    piece = PieceMaker(SPECS).piece(ENTRY, ("x",), deltas=(DELTA,), since=0)

    again = Piece.from_text(piece.to_text())

    assert again.to_text() == piece.to_text()
    assert again.slice.details["since_sequence"] == 0


def test_event_times_are_read_where_metrics_are_kept() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    bounds: Any = SimpleNamespace(read=lambda _: TimeBounds(moment, moment))
    maker = PieceMaker(SPECS, bounds)

    assert maker.piece(ENTRY).event_times is None
    told = ENTRY._replace(metrics=metrics_of({}, {5: 0}))
    assert maker.piece(told).event_times == TimeBounds(moment, moment)
