"""A piece weighs what is most of it: bytes, rows or opening cost (ICE-5.4, 5.5)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.model.file_slice import Change, Delta, DeltaKind, Deltas, FileSlice
from tidegate.model.plan import Piece
from tidegate.plan import row_width
from tidegate.plan.weights import Scale


def _delta(path: str, length: int, offset: int | None = None, blob: int | None = None) -> Delta:
    kind = DeltaKind.POSITIONS if offset is None else DeltaKind.VECTOR
    return Delta(path, kind, "parquet", length, 1, 1, offset=offset, blob_bytes=blob)


def _piece(path: str, *deltas: Delta) -> Piece:
    return Piece(FileSlice(path, deltas=deltas), 1, 100)


def _changed(path: str, before: Deltas | None, after: Deltas) -> Piece:
    return Piece(FileSlice(path, change=Change(0, 1, before, after)), 1, 100)


def test_weight_counts_deletes_and_of_a_vector_its_blob() -> None:
    deltas = [_delta("d", 700), _delta("dv", 10_000, 4, 30), _delta("dv", 10_000, 34, 5)]
    piece = _piece("f", *deltas)

    scale = Scale(row_width=1, open_cost=50)

    assert scale.load(piece) == (100 + 700 + 30 + 5, 1, 50 * 4)
    assert scale.weigh([piece]) == (835, "bytes")


def test_weight_counts_a_delete_of_both_states_once() -> None:
    both = _delta("d", 7)

    load = Scale(1, 1).load(_changed("f", (both,), (both, _delta("e", 5))))

    assert load == (112, 1, 3)


def test_weights_of_pieces_that_share_their_deletes_are_those_of_each_alone() -> None:
    lists: list[Deltas] = [(_delta("d", 7),), (_delta("d", 7), _delta("e", 5)), ()]
    pieces = [_piece(str(number), *lists[number % 3]) for number in range(9)]
    states: list[tuple[Deltas | None, Deltas]] = [
        (lists[0], lists[1]),
        (lists[1], lists[0]),
        (None, lists[1]),
    ]
    pieces += [_changed("c", before, after) for before, after in states]
    shared = Scale(1, 50)

    assert [shared.load(piece) for piece in pieces] == [Scale(1, 50).load(it) for it in pieces]


def test_term_of_several_pieces_is_that_of_most_of_their_weight() -> None:
    pieces = [
        Piece(FileSlice("a"), 1, 70),
        Piece(FileSlice("b"), 100, 1),
        Piece(FileSlice("c"), 1, 60),
    ]

    assert Scale(1, 40).weigh(pieces) == (230, "bytes")
    assert Scale(1, 40).weigh([]) == (0, "bytes")


@pytest.mark.parametrize(
    ("rows", "size_bytes", "weight"),
    [(1, 500, 500), (1_000, 1, 32_000), (1, 1, 40)],
    ids=["bytes", "rows", "opening"],
)
def test_weight_is_the_heaviest_of_three(
    rows: int, size_bytes: int, weight: int, request: pytest.FixtureRequest
) -> None:
    piece, scale = Piece(FileSlice("f"), rows, size_bytes), Scale(row_width=32, open_cost=40)

    assert scale.weight(piece) == weight
    assert scale.weigh([piece]) == (weight, request.node.callspec.id)


def test_row_width_counts_fixed_types_and_assumes_the_others() -> None:
    schema = pa.schema(
        [
            ("flag", pa.bool_()),
            ("id", pa.int64()),
            ("price", pa.decimal128(9, 2)),
            ("name", pa.string()),
            ("tags", pa.list_(pa.int8())),
            ("by", pa.map_(pa.string(), pa.int8())),
            ("uuid", pa.uuid()),
            ("place", pa.struct([("x", pa.float32()), ("town", pa.string())])),
        ]
    )

    assert row_width(schema) == 1 + 8 + 16 + 32 + 32 + 32 + 16 + (4 + 32)
    assert row_width(pa.schema([])) == 1
