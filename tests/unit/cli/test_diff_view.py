"""The difference of two revisions as tables and as JSON."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from terminal import text_of
from tidegate.cli import diff_view
from tidegate.cli.diff_view import ChangedRow, Samples
from tidegate.cli.status_view import facts
from tidegate.model.partition import Partition
from tidegate.physical.opening import open_rows
from tidegate.pipeline.upkeep.differing import RevisionDifference
from tidegate.target.difference import ComparedFile, Difference

OLD = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "name": ["a", "[b]", None], "gone": [1] * 3})
NEW = pa.table({"id": pa.array([1, 2, 4, 5]), "name": ["A", None, "d", "e"], "more": [None] * 4})


def in_memory(table: pa.Table) -> list[ComparedFile]:
    written = pa.BufferOutputStream()
    pq.write_table(table, written)
    content = written.getvalue()
    return [ComparedFile("part", lambda: open_rows(pa.BufferReader(content), "parquet"))]


def shown(old: pa.Table, new: pa.Table, keys: tuple[str, ...] = ()) -> RevisionDifference:
    found = Difference(in_memory(old), in_memory(new), keys=keys)
    list(found.changes())
    made = partial(RevisionDifference, Partition((("dt", "2026-02-01"),)), 3, 4)
    return made(len(old), len(new), 1, 1, 1, found)


def test_facts_tell_rows_files_and_columns() -> None:
    text = text_of(facts(diff_view.facts(shown(OLD, NEW, ("id",)))))

    assert "revisions   3 → 4" in text
    assert "rows        3 → 4" in text
    assert "1 in both (not read), 1 in revision 3 only, 1 in revision 4 only" in text
    assert "difference  +2 −1, 2 changed" in text
    assert "by column   gone 2, name 2" in text
    assert "more is new, NULL before" in text
    assert "gone is gone, NULL after" in text
    assert "id was int32, is int64" in text


def test_facts_of_equal_rows_tell_that_there_is_no_difference() -> None:
    text = text_of(facts(diff_view.facts(shown(OLD, OLD.slice(1).take([1, 0]).slice(0, 2)))))

    assert "+0 −1" in text
    assert "none: both revisions have the same rows" in text_of(
        facts(diff_view.facts(shown(OLD, OLD)))
    )


def test_keys_that_are_there_several_times_are_noted() -> None:
    twice = pa.table({"id": [1, 1], "name": ["a", "b"]})
    once = pa.table({"id": [1], "name": ["c"]})

    text = text_of(facts(diff_view.facts(shown(twice, once, ("id",)))))

    assert "1 key on both sides, and several times on one" in text


def test_tables_show_changes_by_column_and_null_apart_from_text() -> None:
    samples = Samples(
        changed=[
            ChangedRow({"id": 2, "name": "[b]"}, {"id": 2, "name": None}, ["name"]),
        ],
        added=[{"id": 4, "name": "NULL"}],
    )

    changes, added = diff_view.sample_tables(samples, ["id"])

    assert [line.split() for line in text_of(changes).splitlines() if "[b]" in line] == [
        ["│", "2", "│", "name", "│", "[b]", "│", "NULL", "│"]
    ]
    assert "4" in text_of(added)


def test_rows_that_are_not_shown_are_counted() -> None:
    difference = shown(OLD, NEW, ("id",))

    assert "… and 5 more rows" in diff_view.more(difference, Samples())
    assert "… and 4 more rows" in diff_view.more(difference, Samples(added=[{"id": 4}]))
    all_of_them = Samples(
        changed=[ChangedRow({}, {}, [])] * 2, removed=[{"id": 3}], added=[{"id": 4}, {"id": 5}]
    )
    assert diff_view.more(difference, all_of_them) == ""


def test_raw_difference_has_key_and_changed_columns_of_a_row() -> None:
    samples = Samples(
        changed=[
            ChangedRow({"id": 1, "name": "a", "x": 1}, {"id": 1, "name": "A", "x": 1}, ["name"])
        ]
    )

    raw = diff_view.raw(shown(OLD, NEW, ("id",)), samples)

    assert raw["rows"]["changed"] == [
        {"key": {"id": 1}, "before": {"name": "a"}, "after": {"name": "A"}}
    ]
    assert (raw["added"], raw["removed"], raw["changed"]) == (2, 1, 2)
    assert raw["columns"]["retyped"] == {"id": ["int32", "int64"]}
