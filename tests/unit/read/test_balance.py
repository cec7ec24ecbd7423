"""Nothing is left of a commit whose changes turn the state before into the state after."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.bag_sum import BagSum
from tidegate.model.file_slice import CheckedState, FileSlice
from tidegate.model.plan import Piece
from tidegate.read.balance import Balance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROWS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None])), max_size=5)
COLUMNS = ("k", "v")
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("v", pa.string()),
        ("_change_type", pa.string()),
        ("_commit_snapshot_id", pa.int64()),
    ]
)
Change = tuple[str, int, tuple[int, str | None]]


def _batch(changes: Sequence[Change]) -> pa.RecordBatch:
    rows = [
        {"k": row[0], "v": row[1], "_change_type": kind, "_commit_snapshot_id": commit}
        for kind, commit, row in changes
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def _left(
    changes: Sequence[Change], states: dict[tuple[int, bool], list[Any]], batch_rows: int = 2
) -> dict[str, BagSum]:
    """Return what is left of changes and of states: (commit, is before) → rows."""
    balance = Balance(COLUMNS)
    parts = [changes[start : start + batch_rows] for start in range(0, len(changes), batch_rows)]
    passed = list(balance.changes(_batch(part) for part in parts))
    assert [it.to_pylist() for it in passed] == [_batch(part).to_pylist() for part in parts]

    def read(pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        (piece,) = pieces
        assert piece.slice.check is not None
        rows = states[piece.slice.check.commit, piece.slice.check.is_before]
        yield _batch([("INSERT", 0, row) for row in rows])

    checked = [
        Piece(FileSlice("f", check=CheckedState(commit, is_before)), 1, 1)
        for commit, is_before in states
    ]
    balance.states([*checked, Piece(FileSlice("unchecked"), 1, 1)], read)
    return {commit: found for commit, found in balance.sums.items() if found != BagSum()}


def _difference(before: Any, after: Any, commit: int) -> list[Change]:
    old, new = Counter(before), Counter(after)
    return [
        *(("DELETE", commit, row) for row in (old - new).elements()),
        *(("INSERT", commit, row) for row in (new - old).elements()),
    ]


@given(before=ROWS, middle=ROWS, after=ROWS)
def test_changes_that_turn_each_state_into_the_next_leave_nothing(
    before: Any, middle: Any, after: Any
) -> None:
    """ICE-3.17."""
    changes = [*_difference(before, middle, 1), *_difference(middle, after, 2)]

    states = {(1, True): before, (1, False): middle, (2, True): middle, (2, False): after}
    assert _left(changes, states) == {}


@given(before=ROWS, after=ROWS, data=st.data())
def test_change_that_is_missing_leaves_its_commit(
    before: Any, after: Any, data: st.DataObject
) -> None:
    changes = [*_difference(before, after, 1), ("INSERT", 1, (9, "new"))]
    gone = data.draw(st.integers(0, len(changes) - 1))

    left = _left(
        [it for place, it in enumerate(changes) if place != gone],
        {(1, True): before, (1, False): [*after, (9, "new")]},
    )

    assert left.keys() == {"1"}
    assert left["1"].rows == (1 if changes[gone][0] == "DELETE" else -1)


@given(before=ROWS)
def test_update_counts_as_what_was_and_what_is(before: Any) -> None:
    old, new = (1, "old"), (1, "new")
    changes: list[Change] = [("UPDATE_BEFORE", 1, old), ("UPDATE_AFTER", 1, new)]

    assert _left(changes, {(1, True): [*before, old], (1, False): [*before, new]}) == {}


def test_upsert_says_nothing() -> None:
    assert _left([("UPSERT", 1, (1, "a"))], {(1, True): [], (1, False): []}) == {}
