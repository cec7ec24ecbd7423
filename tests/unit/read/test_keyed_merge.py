"""Records of a key are merged as one by one, whatever their number, order and batches."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.read import keyed_merge
from tidegate.read.keyed_merge import KeyedRecords, StandingRows, newest_of_each_key


@dataclass(frozen=True)
class Record:
    """One record, or one standing row; `value` None: a delete, `order` None: unordered."""

    key: str
    value: str | None
    order: int | None
    lacks: bool = False
    extra: int | None = None


@dataclass(frozen=True)
class Won:
    """What is left of the records of a key."""

    value: str | None
    order: int | None
    extra: int | None
    lacks: bool


def fold(records: list[Record], *, ordered: bool) -> Won:
    """Merge records one by one, as the rules say it."""
    first, *others = records
    won = Won(first.value, first.order, first.extra, first.lacks)
    for new in others:
        beats = not ordered or won.order is None or new.order is None or new.order >= won.order
        winner = Won(new.value, new.order, new.extra, new.lacks) if beats else won
        loser = won if beats else Won(new.value, new.order, new.extra, new.lacks)
        both_are_rows = winner.value is not None and loser.value is not None
        if winner.lacks and both_are_rows and not loser.lacks:
            winner = Won(winner.value, winner.order, loser.extra, lacks=False)
        won = winner
    return won


def keyed(records: list[Record], *, ordered: bool, marked: bool = False) -> KeyedRecords:
    unordered = np.array([it.order is None for it in records], np.bool_)
    lacks = np.array([it.lacks for it in records], np.bool_)
    rows = pa.table(
        {
            "key": pa.array([it.key for it in records], pa.string()),
            "value": pa.array([it.value for it in records], pa.string()),
            "extra": pa.array([None if it.lacks else it.extra for it in records], pa.int64()),
        }
    )
    orders = pa.array([it.order for it in records], pa.int64())
    return KeyedRecords(
        rows=rows,
        keys=rows.column("key").combine_chunks(),
        deleted=np.array([it.value is None for it in records], np.bool_),
        marked=np.full(len(records), marked),
        ordering=(orders,) if ordered else (),
        unordered=unordered if ordered else np.zeros(0, np.bool_),
        missing={"extra": lacks} if lacks.any() else {},
    )


def together(*parts: KeyedRecords) -> KeyedRecords:
    """Records of several blocks, all of which are ordered."""
    return KeyedRecords(
        rows=pa.concat_tables([it.rows for it in parts]),
        keys=pa.concat_arrays([it.keys for it in parts]),
        deleted=np.concatenate([it.deleted for it in parts]),
        marked=np.concatenate([it.marked for it in parts]),
        ordering=(pa.concat_arrays([it.ordering[0] for it in parts]),),
        unordered=np.concatenate([it.unordered for it in parts]),
        missing={
            "extra": np.concatenate(
                [it.missing.get("extra", np.zeros(len(it), np.bool_)) for it in parts]
            )
        },
    )


KEYS = st.sampled_from("abc")
ORDERS = st.one_of(st.integers(-2, 2), st.none())


@st.composite
def records(draw: st.DrawFn) -> Record:
    is_delete = draw(st.booleans())
    value = None if is_delete else draw(st.text("xyz", min_size=1, max_size=2))
    order = draw(ORDERS)
    lacks = False if is_delete else draw(st.booleans())
    extra = None if is_delete or lacks else draw(st.integers(0, 9))
    return Record(draw(KEYS), value, order, lacks, extra)


BASES = st.lists(
    st.builds(Record, KEYS, st.just("base"), ORDERS, st.just(False), st.integers(0, 9)),
    unique_by=lambda it: it.key,
)


def by_key(found: list[Record]) -> dict[str, list[Record]]:
    made: dict[str, list[Record]] = {}
    for record in found:
        made.setdefault(record.key, []).append(record)
    return made


@given(st.lists(records(), max_size=12), st.booleans())
def test_newest_record_of_each_key_is_that_of_the_fold(found: list[Record], ordered: bool) -> None:
    newest = newest_of_each_key(keyed(found, ordered=ordered))

    left = {
        key: (None if gone else row["value"], None if gone else row["extra"])
        for key, gone, row in zip(
            newest.keys.to_pylist(), newest.deleted, newest.rows.to_pylist(), strict=True
        )
    }
    folds = {key: fold(own, ordered=ordered) for key, own in by_key(found).items()}
    assert left == {
        key: (won.value, None if won.value is None else won.extra) for key, won in folds.items()
    }


@given(BASES, st.lists(records(), max_size=12), st.booleans(), st.integers(1, 3))
def test_rows_that_stand_are_those_of_the_fold_however_they_are_cut(
    base: list[Record], found: list[Record], ordered: bool, size: int
) -> None:
    standing = StandingRows(newest_of_each_key(keyed(found, ordered=ordered)))
    stood = [
        row
        for start in range(0, len(base), size)
        for row in standing.apply(keyed(base[start : start + size], ordered=ordered))[0].to_pylist()
    ]
    rest = standing.rest()
    stood += rest.rows.filter(pa.array(~rest.deleted)).to_pylist()

    # Records are merged among themselves first (HUDI-M6).
    folds = {key: fold(own, ordered=ordered) for key, own in by_key(found).items()}
    expected = []
    for key in {it.key for it in base} | set(folds):
        own = [it for it in base if it.key == key]
        if key in folds:
            won = folds[key]
            own.append(Record(key, won.value, won.order, won.lacks, won.extra))
        end = fold(own, ordered=ordered)
        if end.value is not None:
            expected.append({"key": key, "value": end.value, "extra": end.extra})
    assert sorted(map(str, stood)) == sorted(map(str, expected))


def test_only_the_first_row_of_a_repeated_key_meets_its_record() -> None:
    standing = StandingRows(keyed([Record("a", "new", 1, extra=1)], ordered=False))
    base = [Record("a", "one", 0, extra=0), Record("a", "two", 0, extra=0)]

    stood = [standing.apply(keyed([row], ordered=False))[0].to_pylist()[0] for row in base]

    assert [row["value"] for row in stood] == ["new", "two"]
    assert len(standing.rest()) == 0


def test_keys_that_stand_elsewhere_are_not_left_over() -> None:
    found = [Record("a", "new", 1), Record("b", "new", 1)]
    standing = StandingRows(keyed(found, ordered=False))

    standing.meet(pa.array(["b", "c"]))

    assert standing.rest().keys.to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("base", "found", "marked"),
    [
        pytest.param(Record("a", "x", 1), Record("a", "y", 1), [True], id="record wins"),
        pytest.param(Record("a", "x", 2), Record("a", "y", 1), [False], id="row wins"),
        pytest.param(Record("b", "x", 2), Record("a", "y", 1), [False], id="other key"),
    ],
)
def test_row_is_marked_if_the_marked_record_won(
    base: Record, found: Record, marked: list[bool]
) -> None:
    standing = StandingRows(newest_of_each_key(keyed([found], ordered=True, marked=True)))

    marks = standing.apply(keyed([base], ordered=True)).marked

    assert list(marks) == marked


def test_row_that_was_deleted_and_is_back_is_marked() -> None:
    found = [Record("a", None, None), Record("a", "late", 1)]
    standing = StandingRows(newest_of_each_key(keyed(found, ordered=True, marked=True)))

    base = [Record("b", "other", 1), Record("a", "first", 9)]
    rows, marks, _ = standing.apply(keyed(base, ordered=True))

    assert rows.column("value").to_pylist() == ["other", "first"]
    assert list(marks) == [False, True]


def test_late_record_does_not_mark_the_delete_that_won_over_it() -> None:
    """The delete is a row that says so, of which a column is missing."""
    delete = keyed([Record("a", None, 5, lacks=True)], ordered=True)
    late = keyed([Record("a", "late", 2, extra=7)], ordered=True, marked=True)

    newest = newest_of_each_key(together(delete, late))

    assert newest.deleted.tolist() == [True]
    assert newest.marked.tolist() == [False]


@pytest.mark.parametrize(("sent", "marked"), [(7, True), (None, False)])
def test_row_that_takes_a_value_from_a_late_marked_record_is_marked(
    sent: int | None, marked: bool
) -> None:
    """A row stays unchanged, and unmarked, if what the record supplies is NULL as well."""
    late = keyed([Record("a", "late", 2, extra=sent)], ordered=True, marked=True)
    standing = StandingRows(newest_of_each_key(late))
    base = keyed([Record("a", "base", 5, lacks=True)], ordered=True)

    rows, marks, *_ = standing.apply(base)

    assert rows.to_pylist() == [{"key": "a", "value": "base", "extra": sent}]
    assert list(marks) == [marked]


def test_only_keys_with_several_records_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Record(f"k{number}", "x", 1, lacks=True) for number in range(50)]
    found += [Record("k7", "y", 2, extra=7), Record("k8", "y", 0, extra=8)]
    folded: list[int] = []
    fold_one = keyed_merge._folded

    def counted(records: KeyedRecords, group: Any, rank: Any) -> Any:
        folded.append(len(group))
        return fold_one(records, group, rank)

    monkeypatch.setattr(keyed_merge, "_folded", counted)
    newest = newest_of_each_key(keyed(found, ordered=True))

    assert folded == [2, 2]
    made = {row["key"]: (row["value"], row["extra"]) for row in newest.rows.to_pylist()}
    assert made == {f"k{it}": ("x", None) for it in range(50)} | {"k7": ("y", 7), "k8": ("x", 8)}


def test_deletes_that_took_a_row_away_are_told() -> None:
    found = [
        Record("a", None, 5),
        Record("b", None, 1),
        Record("c", "new", 5),
        Record("d", None, 5),
    ]
    standing = StandingRows(newest_of_each_key(keyed(found, ordered=True)))

    base = [Record("b", "newer", 9), Record("c", "old", 1), Record("a", "old", 1)]
    removing = standing.apply(keyed(base, ordered=True)).removing

    assert standing.records(removing).keys.to_pylist() == ["a"]


def test_greater_of_several_ordering_columns_is_found_column_by_column() -> None:
    rows = pa.table({"key": ["a"] * 3, "value": ["x", "y", "z"]})
    ordering = (pa.array(["p", "q", "q"]), pa.array([9, 2, 1]))
    flat = np.zeros(3, np.bool_)
    found = KeyedRecords(
        rows, rows.column("key").combine_chunks(), flat, flat, ordering, unordered=flat
    )

    assert newest_of_each_key(found).rows.column("value").to_pylist() == ["y"]


def test_records_of_many_keys_come_out_once_each() -> None:
    found = [Record(f"k{number % 1000}", str(number), number) for number in range(5000)]

    newest = newest_of_each_key(keyed(found, ordered=True))

    keys = sorted(newest.keys.to_pylist())
    assert len(keys) == 1000
    assert all(one < other for one, other in pairwise(keys))
