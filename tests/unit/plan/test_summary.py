"""A plan's explanation counts each delete file once, and each split under its term (ICE-5.18)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.file_slice import Change, Delta, DeltaKind, FileSlice
from tidegate.model.plan import Piece, Split
from tidegate.plan.summary import delete_totals, split_totals
from tidegate.plan.weights import TERMS

DELTAS = [
    Delta("a", DeltaKind.KEYS, "parquet", 100, 5, 1),
    Delta("b", DeltaKind.POSITIONS, "parquet", 30, 2, 1),
    Delta("v", DeltaKind.VECTOR, "puffin", 900, 3, 1, offset=4, blob_bytes=10),
    Delta("v", DeltaKind.VECTOR, "puffin", 900, 4, 1, offset=14, blob_bytes=20),
]
SOME = st.lists(st.sampled_from(DELTAS), max_size=4).map(tuple)
PIECES = st.builds(lambda deltas: Piece(FileSlice("f", deltas=deltas), 1, 1), SOME) | st.builds(
    lambda old, new: Piece(FileSlice("f", change=Change(0, 1, old, new)), 1, 1),
    st.none() | SOME,
    SOME,
)


@given(pieces=st.lists(PIECES, max_size=5))
def test_deletes_are_counted_once_however_many_files_they_apply_to(pieces: list[Piece]) -> None:
    totals = delete_totals(pieces)

    applied = {delta for piece in pieces for deltas in piece.slice.delta_lists for delta in deltas}
    assert {kind: (it.files, it.bytes, it.rows) for kind, it in totals.items()} == {
        kind.value: (
            len(of_kind),
            sum(it.blob_bytes or it.file_bytes for it in of_kind),
            sum(it.rows for it in of_kind),
        )
        for kind in DeltaKind
        if (of_kind := [it for it in applied if it.kind is kind])
    }


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(TERMS)), max_size=6))
def test_splits_are_counted_under_the_term_that_decides(drawn: list[tuple[int, str]]) -> None:
    totals = split_totals([Split((), weight, term) for weight, term in drawn])

    assert {term: it.splits for term, it in totals.items()} == Counter(term for _, term in drawn)
    for term, found in totals.items():
        weights = [weight for weight, other in drawn if other == term]
        assert (found.weight, found.heaviest) == (sum(weights), max(weights))
