"""Settling equals what one would do by hand: count equal rows, count changes per key."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import IdentifierNotUnique
from tidegate.model.settling import SettleCounts, SettleRules
from tidegate.read.settle import settle, settle_by_row_id

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("amount", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("_row_id", pa.int64()),
        ("_change_type", pa.string()),
        ("_commit_snapshot_id", pa.int64()),
    ]
)
COMPARED = ("id", "name", "amount", "tags")
BY_BAG = SettleRules(COMPARED)
BY_KEY = SettleRules(COMPARED, identifiers=("id",))
WITH_ROW_IDS = SettleRules(COMPARED, identifiers=("id",), row_ids=True)

Row = tuple[str, tuple[object, ...], int | None]


def changes(rows: list[Row], *, chunks: int = 1) -> pa.Table:
    """Make a table of (kind, values, row id)."""
    columns = list(zip(*((*values, row_id, kind, 7) for kind, values, row_id in rows), strict=True))
    table = pa.table(columns or [[] for _ in SCHEMA], schema=SCHEMA)
    size = max(1, -(-table.num_rows // chunks))
    return pa.Table.from_batches(table.to_batches(size), SCHEMA)


def rows_of(table: pa.Table) -> list[tuple[str, str]]:
    """Give kind and values, as text so that NaN equals itself."""
    return [
        (row["_change_type"], repr([row[name] for name in COMPARED])) for row in table.to_pylist()
    ]


def bag_difference(rows: list[Row]) -> Counter[tuple[str, str]]:
    """Do it by hand: for each content, what one kind has more than the other."""
    counts: Counter[str] = Counter()
    for kind, values, _ in rows:
        counts[repr(list(values))] += 1 if kind == "INSERT" else -1
    return Counter(
        {("INSERT" if n > 0 else "DELETE", row): abs(n) for row, n in counts.items() if n}
    )


values = st.tuples(
    st.one_of(st.none(), st.integers(0, 3)),
    st.sampled_from([None, "", "a", "a text of more than eight bytes"]),
    st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]),
    st.sampled_from([None, (), ("a",), ("a", None), (None, "a")]),
).map(lambda row: (*row[:3], None if row[3] is None else list(row[3])))
kinds = st.sampled_from(["DELETE", "INSERT"])
plain_rows = st.lists(st.tuples(kinds, values, st.none()), max_size=24)


@given(rows=plain_rows, chunks=st.integers(1, 4))
def test_carry_over_of_any_rows_is_the_bag_difference(rows: list[Row], chunks: int) -> None:
    settled = settle(changes(rows, chunks=chunks), BY_BAG)

    assert Counter(rows_of(settled.changes)) == bag_difference(rows)
    assert settled.counts.carried_over == len(rows) - settled.changes.num_rows


@given(rows=plain_rows)
def test_updates_of_any_rows_are_keys_with_one_of_each(rows: list[Row]) -> None:
    left = bag_difference(rows)
    deletes, inserts = Counter[str](), Counter[str]()
    for (kind, row), count in left.items():
        key = row.split(",")[0]
        (inserts if kind == "INSERT" else deletes)[key] += count

    settled = settle(changes(rows), BY_KEY)

    expected: Counter[tuple[str, str]] = Counter()
    unpaired = 0
    for (kind, row), count in left.items():
        key = row.split(",")[0]
        if deletes[key] == inserts[key] == 1:
            kind = "UPDATE_AFTER" if kind == "INSERT" else "UPDATE_BEFORE"
        elif deletes[key] and inserts[key]:
            unpaired += count
        expected[kind, row] += count
    assert Counter(rows_of(settled.changes)) == expected
    assert settled.counts.unpaired == unpaired


@given(
    rows=st.lists(
        st.tuples(kinds, values, st.one_of(st.none(), st.integers(0, 5))), max_size=24
    ).filter(
        lambda rows: all(
            count == 1
            for (_, row_id), count in Counter((kind, row_id) for kind, _, row_id in rows).items()
            if row_id is not None
        )
    )
)
def test_row_ids_of_both_sides_tell_equal_rows_apart(rows: list[Row]) -> None:
    settled = settle(changes(rows), SettleRules(COMPARED, row_ids=True)).changes

    left = [
        (row["_change_type"], repr([row[name] for name in COMPARED]), row["_row_id"])
        for row in settled.to_pylist()
    ]
    net: Counter[str] = Counter()
    for kind, row, _ in left:
        net[row] += 1 if kind == "INSERT" else -1
    before: Counter[str] = Counter()
    for kind, row, _ in rows:
        before[repr(list(row))] += 1 if kind == "INSERT" else -1
    assert +net == +before
    assert -net == -before
    # Nothing is left that still has a counterpart.
    for kind, row, row_id in left:
        for other_kind, other, other_id in left:
            if kind == "DELETE" and other_kind == "INSERT" and row == other:
                assert row_id is not None
                assert other_id is not None
                assert row_id != other_id


@pytest.mark.parametrize("chunks", [1, 2], ids=["one-chunk", "two-chunks"])
@pytest.mark.parametrize(
    ("deleted", "inserted", "left"),
    [
        ([40], [41], ([40], [41])),
        ([40, 41], [41, 42], ([40], [42])),
        ([40], [40], ([], [])),
        ([40], [None], ([], [])),
        ([40, 41], [42, None], ([41], [42])),
    ],
    ids=["others", "one-of-two", "the-same", "unknown", "unknown-and-another"],
)
def test_equal_rows_with_different_row_ids_both_stay(
    deleted: list[int | None],
    inserted: list[int | None],
    left: tuple[list[int | None], list[int | None]],
    chunks: int,
) -> None:
    """One row was deleted and another one written with the same content (ICE-3.14)."""
    same = (1, "a", 1.0, None)
    rows: list[Row] = [
        *(("DELETE", same, row_id) for row_id in deleted),
        *(("INSERT", same, row_id) for row_id in inserted),
    ]

    settled = settle(changes(rows, chunks=chunks), SettleRules(COMPARED, row_ids=True)).changes

    found = list(
        zip(settled["_change_type"].to_pylist(), settled["_row_id"].to_pylist(), strict=True)
    )
    assert [row_id for kind, row_id in found if kind == "DELETE"] == left[0]
    assert [row_id for kind, row_id in found if kind == "INSERT"] == left[1]


def test_update_that_changes_the_key_is_paired_by_row_id() -> None:
    rows: list[Row] = [
        ("DELETE", (1, "a", 1.0, None), 40),
        ("DELETE", (2, "b", 1.0, None), 41),
        ("INSERT", (9, "a", 1.0, None), 40),
        ("INSERT", (2, "c", 1.0, None), 77),
    ]

    settled = settle(changes(rows), WITH_ROW_IDS)

    assert settled.changes["_change_type"].to_pylist() == [
        "UPDATE_BEFORE",
        "UPDATE_BEFORE",
        "UPDATE_AFTER",
        "UPDATE_AFTER",
    ]


@pytest.mark.parametrize("key", [1, 9], ids=["equal rows", "other key"])
def test_rows_without_a_row_id_are_left_to_their_keys(key: int) -> None:
    rows: list[Row] = [
        ("DELETE", (1, "a", 1.0, None), None),
        ("INSERT", (key, "a", 1.0, None), None),
        ("DELETE", (2, "b", 1.0, None), 41),
        ("INSERT", (2, "c", 1.0, None), 41),
    ]

    by_row_id = settle_by_row_id(changes(rows), WITH_ROW_IDS).changes

    assert by_row_id["_change_type"].to_pylist() == [
        "DELETE",
        "INSERT",
        "UPDATE_BEFORE",
        "UPDATE_AFTER",
    ]


@given(rows=st.permutations([(k, r) for k in ("DELETE", "INSERT") for r in range(4)]))
def test_settling_by_row_id_first_gives_what_settling_at_once_gives(
    rows: list[tuple[str, int]],
) -> None:
    # Rows 0 and 1 keep their content, 2 changes its key, 3 is replaced under another row id.
    content = {
        ("DELETE", 2): ((2, "x", None, None), 2),
        ("INSERT", 2): ((5, "x", None, None), 2),
        ("DELETE", 3): ((3, "x", None, None), 3),
        ("INSERT", 3): ((3, "y", None, None), 30),
    }
    made: list[Row] = [
        (kind, *content.get((kind, number), ((number, "x", None, None), number)))
        for kind, number in rows
    ]

    at_once = settle(changes(made), WITH_ROW_IDS)
    first = settle_by_row_id(changes(made), WITH_ROW_IDS)
    then = settle(first.changes, WITH_ROW_IDS)

    assert rows_of(then.changes) == rows_of(at_once.changes)
    assert first.counts.plus(then.counts) == at_once.counts == SettleCounts(carried_over=4)


@pytest.mark.follows("IdentifierNotUnique")
def test_key_with_several_changes_when_strict_is_refused() -> None:
    rows: list[Row] = [
        ("DELETE", (1, "a", 1.0, None), None),
        ("INSERT", (1, "b", 1.0, None), None),
        ("INSERT", (1, "c", 1.0, None), None),
    ]

    with pytest.raises(IdentifierNotUnique) as refused:
        settle(changes(rows), SettleRules(COMPARED, identifiers=("id",), strict=True))

    assert refused.value.values == {"snapshot": "7", "key": "id = 1", "changes": 3}
    # What the message says to do.
    passed = settle(changes(rows), SettleRules(COMPARED, identifiers=("id",), strict=False))
    keyed = settle(changes(rows), SettleRules(COMPARED, identifiers=COMPARED[:2], strict=True))
    assert rows_of(passed.changes) == rows_of(keyed.changes) == rows_of(changes(rows))


def test_changes_without_carry_over_removal_keep_equal_rows() -> None:
    rows: list[Row] = [
        ("DELETE", (1, "a", 1.0, None), None),
        ("INSERT", (1, "a", 1.0, None), None),
    ]

    settled = settle(changes(rows), SettleRules(COMPARED, carry_over=False))

    assert settled.changes.num_rows == 2
    assert settled.counts == SettleCounts()
