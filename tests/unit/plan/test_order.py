"""Files come in the order that was asked for, the same however they were listed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.config import SplitConfig
from tidegate.errors import StatsMissing
from tidegate.model.file_slice import FileSlice
from tidegate.model.plan import Piece
from tidegate.model.time_bounds import TimeBounds
from tidegate.plan import plan_splits
from tidegate.plan.order import ordered

KEYS = st.tuples(st.integers(1, 4), st.sampled_from("abcdef"), st.integers(1, 4))


def _piece(sequence: int, path: str, day: int) -> Piece:
    moment = datetime(2026, 1, day, tzinfo=UTC)
    return Piece(FileSlice(path, sequence=sequence), 1, 60, event_times=TimeBounds(moment, moment))


pieces = st.lists(KEYS, unique_by=lambda key: key[1]).map(lambda keys: [_piece(*it) for it in keys])


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("file_sequence", lambda piece: piece.slice.sequence),
        ("event_time", lambda piece: piece.event_times.smallest),
        ("path", lambda piece: piece.path),
    ],
)
@given(found=pieces, shuffled=st.randoms())
def test_order_is_kept_across_splits_and_does_not_depend_on_the_listing(
    order: str, key: object, found: list[Piece], shuffled: object
) -> None:
    config = SplitConfig.model_validate({"order": order, "target_size": 100, "open_cost": 1})
    mixed = list(found)
    shuffled.shuffle(mixed)  # type: ignore[attr-defined]

    splits = plan_splits(mixed, lambda _: (), config, 1, 1)

    read = [piece for split in splits for sub in split.sub_splits for piece in sub.pieces]
    keys = [key(piece) for piece in read]  # type: ignore[operator]
    assert keys == sorted(keys)
    assert splits == plan_splits(found, lambda _: (), config, 1, 1)


def test_no_order_keeps_the_order_of_the_source() -> None:
    found = [_piece(2, "b", 2), _piece(1, "a", 1)]

    assert ordered(found, "none") == found


@pytest.mark.parametrize("sequence", [None, 0])
def test_file_sequence_of_a_table_without_any_is_refused(sequence: int | None) -> None:
    with pytest.raises(StatsMissing, match="a file sequence number") as refused:
        ordered([Piece(FileSlice("f", sequence=sequence), 1, 1)], "file_sequence")

    assert refused.value.values["path"] == "f"


def test_file_without_bounds_comes_first_by_event_time() -> None:
    found = [_piece(1, "a", 1), Piece(FileSlice("z"), 1, 1)]

    assert [piece.path for piece in ordered(found, "event_time")] == ["z", "a"]
