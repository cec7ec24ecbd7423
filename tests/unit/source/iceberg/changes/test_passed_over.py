"""Rows that a read brings and a commit took away are told from those that were there before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.types import LongType

from iceberg_states import entry_of
from tidegate.source.iceberg.changes.passed_over import PassedOver, Step, TakenAway
from tidegate.source.iceberg.deletes.entries import found_delete
from tidegate.source.iceberg.deletes.rules import DeleteRules, KeyField
from tidegate.source.iceberg.manifests.entries import Content

if TYPE_CHECKING:
    from tidegate.source.iceberg.manifests.entries import Entry

KEY = 1
RULES = DeleteRules(
    source="lake.orders",
    global_specs=frozenset({0}),
    key_fields={KEY: KeyField(LongType(), False)},
    partition_types={},
    exact_paths=False,
)


def _file(name: str, sequence: int = 2, rows: int = 10) -> Entry:
    return entry_of(path=f"s3://lake/data/{name}", sequence_number=sequence, rows=rows)


def _step(
    removed: str = "", added: str = "", deletes: tuple[Entry, ...] = (), *, is_rewrite: bool = False
) -> Step:
    return Step(
        removed=[_file(name) for name in removed],
        added=[_file(name) for name in added],
        deletes=[found_delete(entry, RULES) for entry in deletes],
        is_rewrite=is_rewrite,
    )


def _delete(sequence: int, **values: Any) -> Entry:
    kind = {"content": Content.EQUALITY_DELETES, "equality_ids": (KEY,)}
    return entry_of(**kind | values, sequence_number=sequence)


def _names(files: tuple[Entry, ...]) -> str:
    return "".join(sorted(entry.path.removeprefix("s3://lake/data/") for entry in files))


def _taken(read: str, *steps: Step) -> TakenAway:
    return PassedOver(steps, RULES).taken_away([_file(name) for name in read])


@pytest.mark.parametrize(
    ("read", "steps", "found", "earlier", "brought"),
    [
        ("ab", [_step("b")], "b", "", ""),
        ("ab", [_step("xy")], "", "xy", ""),
        ("ab", [_step("bx", "c")], "b", "x", "c"),
        ("ab", [_step("x", "c"), _step("c")], "", "x", ""),
        ("ab", [_step("x", "c"), _step("c", "d")], "", "x", "d"),
        ("ab", [_step("ax", "g", is_rewrite=True), _step("g")], "g", "", ""),
        ("ab", [_step("xy", "g", is_rewrite=True), _step("g")], "", "g", ""),
        ("ab", [_step("", "c"), _step("cx", "g", is_rewrite=True), _step("g")], "", "", "c"),
        ("ab", [_step("abx", "g", is_rewrite=True)], "", "", ""),
        ("", [_step("b", "c")], "", "b", "c"),
    ],
    ids=[
        "own",
        "earlier",
        "both",
        "brought-and-removed",
        "brought-twice",
        "own-compacted",
        "earlier-compacted",
        "brought-compacted",
        "compacted-only",
        "nothing-read",
    ],
)
def test_removed_files_are_told_apart_by_where_their_rows_came_from(
    read: str, steps: list[Step], found: str, earlier: str, brought: str
) -> None:
    taken = _taken(read, *steps)

    assert _names(taken.read) == found
    assert _names(taken.earlier) == earlier
    assert _names(taken.brought) == brought


@pytest.mark.parametrize(
    ("delete", "found"),
    [
        (_delete(3), "ab"),
        (_delete(2), ""),
        (
            _delete(
                2,
                content=Content.POSITION_DELETES,
                equality_ids=(),
                referenced="s3://lake/data/b",
            ),
            "b",
        ),
    ],
    ids=["younger-keys", "keys-as-old", "positions-of-one"],
)
def test_delete_files_take_rows_of_the_files_that_they_reach(delete: Entry, found: str) -> None:
    taken = _taken("ab", _step(deletes=(delete,)))

    assert _names(taken.read) == found
    assert taken.deletes == (delete,)


def test_vectors_of_two_commits_for_one_file_are_no_contradiction() -> None:
    vector = {
        "content": Content.POSITION_DELETES,
        "equality_ids": (),
        "file_format": "puffin",
        "referenced": "s3://lake/data/b",
        "content_offset": 4,
        "content_size": 40,
    }

    taken = _taken("ab", *(_step(deletes=(_delete(age, **vector),)) for age in (3, 4)))

    assert _names(taken.read) == "b"


def test_columns_of_key_deletes_are_named() -> None:
    assert PassedOver((_step(deletes=(_delete(3),)), _step()), RULES).metric_ids == {KEY}
