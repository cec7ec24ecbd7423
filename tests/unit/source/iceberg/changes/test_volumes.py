"""What snapshots bring is counted by their summaries, by manifests only where those say nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from iceberg_states import entry_of
from tidegate.model.volume import Volume
from tidegate.source.iceberg.changes.volumes import split_defaults, volumes
from tidegate.source.iceberg.manifests.entries import Status


class Manifests:
    """A table of which each commit wrote one manifest; counts what was read."""

    def __init__(self, *entries: Any) -> None:
        self.own = SimpleNamespace(added_snapshot_id=7, entries=list(entries))
        self.read = 0

    def manifests(self, snapshot: Snapshot) -> list[Any]:
        return [self.own, SimpleNamespace(added_snapshot_id=3, entries=[entry_of()])]

    def entries(self, manifests: list[Any]) -> list[Any]:
        self.read += len(manifests)
        return [manifest.entries for manifest in manifests]


def _snapshot(operation: Operation | None, **counts: int) -> Snapshot:
    said = {name.replace("_", "-"): str(count) for name, count in counts.items()}
    summary = None if operation is None else Summary(operation, **said)
    return Snapshot(snapshot_id=7, timestamp_ms=0, manifest_list="m", summary=summary)


def _volume(snapshot: Snapshot, manifests: Manifests, *, only_appends: bool = False) -> Volume:
    (found,) = volumes([snapshot], manifests, only_appends=only_appends)
    return found


COUNTS = st.integers(0, 9)


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_changes_count_what_came_and_went_and_every_delete(
    files: int, gone: int, rows: int, gone_rows: int, positions: int, keys: int
) -> None:
    manifests = Manifests()
    snapshot = _snapshot(
        Operation.OVERWRITE,
        added_data_files=files,
        deleted_data_files=gone,
        added_delete_files=2,
        added_files_size=100,
        removed_files_size=30,
        added_records=rows,
        deleted_records=gone_rows,
        added_position_deletes=positions,
        added_equality_deletes=keys,
    )

    found = _volume(snapshot, manifests)

    assert found == Volume(files + gone + 2, 130, rows + gone_rows + positions + keys)
    assert manifests.read == 0


def test_append_read_counts_what_came_alone() -> None:
    snapshot = _snapshot(
        Operation.APPEND, added_data_files=2, added_records=5, added_files_size=9, deleted_records=4
    )

    assert _volume(snapshot, Manifests(), only_appends=True) == Volume(2, 9, 5)


@pytest.mark.parametrize(
    ("operation", "only_appends", "is_read"),
    [
        (Operation.REPLACE, False, False),
        (Operation.REPLACE, True, False),
        (Operation.DELETE, True, False),
        (Operation.OVERWRITE, True, False),
        (Operation.DELETE, False, True),
        (Operation.APPEND, True, True),
    ],
)
def test_snapshot_that_is_not_read_brings_nothing(
    operation: Operation, only_appends: bool, is_read: bool
) -> None:
    found = _volume(
        _snapshot(operation, added_data_files=1), Manifests(), only_appends=only_appends
    )

    assert (found != Volume(0, 0, 0)) == is_read


@pytest.mark.parametrize("operation", [None, Operation.APPEND], ids=["no summary", "no counts"])
def test_snapshot_without_counts_is_counted_by_its_own_entries(operation: Operation | None) -> None:
    """ICE-5.11."""
    mine, other = {"snapshot_id": 7}, {"snapshot_id": 3}
    manifests = Manifests(
        entry_of(**mine, status=Status.ADDED, rows=5, size_bytes=50),
        entry_of(**mine, status=Status.DELETED, rows=2, size_bytes=20),
        entry_of(**mine, status=Status.EXISTING),
        entry_of(**other, status=Status.ADDED),
    )

    snapshot = _snapshot(operation)

    assert _volume(snapshot, manifests) == Volume(2, 70, 7)
    assert _volume(snapshot, manifests, only_appends=True) == Volume(1, 50, 5)


def test_snapshots_are_asked_for_one_by_one() -> None:
    asked = []

    def lineage() -> Any:
        for number in range(3):
            asked.append(number)
            yield _snapshot(Operation.APPEND, added_records=number)

    assert next(volumes(lineage(), Manifests(), only_appends=True)).rows == 0
    assert asked == [0]


def test_properties_of_splits_are_numbers_greater_than_zero() -> None:
    properties = {
        "read.split.target-size": "1000",
        "read.split.planning-lookback": "many",
        "read.split.open-file-cost": "0",
        "write.target-file-size-bytes": "7",
    }

    assert split_defaults(properties) == {"target_size": 1000}
