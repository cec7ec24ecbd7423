"""Snapshots are classified by what their manifests hold, not by what they call themselves."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema

from golden_iceberg import answers, golden, golden_copy
from iceberg_states import entry_of
from tidegate.errors import (
    NonAppendSnapshot,
    SnapshotClassMismatch,
    SourceFileDamaged,
    SourceFileGone,
    UnsupportedFeature,
)
from tidegate.model.instant import InstantRange
from tidegate.source.iceberg.changes.appends import ChangeReader
from tidegate.source.iceberg.manifests.decode import ManifestReader
from tidegate.source.iceberg.manifests.entries import Content, Entry, Status
from tidegate.source.iceberg.manifests.pruning import Pruning
from tidegate.source.iceberg.timeline.history import History

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table.snapshots import Snapshot

DELETED = Status.DELETED
NOW = datetime(2026, 11, 21, tzinfo=UTC)
NO_FILTER = Pruning(Schema(), {0: UNPARTITIONED_PARTITION_SPEC}, None)


def _every_operation(operation: str | None) -> Any:
    def change(raw: dict[str, Any]) -> None:
        for step in raw["snapshots"]:
            if operation is None:
                del step["summary"]
            else:
                step["summary"]["operation"] = operation

    return change


def _read_all(table: Any, **read: str) -> list[str]:
    source = table.source(start="earliest", read=read)
    pin = source.timeline.pin(NOW)
    return list(source.slicing.units(pin, InstantRange(None, pin.head)).notes)


@pytest.mark.parametrize(
    ("case", "found"),
    [("cow_v2", r"removes \d+ files"), ("mor_v2", "adds delete files")],
    ids=["removed-files", "added-deletes"],
)
def test_append_that_does_more_is_a_mismatch(case: str, found: str, tmp_path: Path) -> None:
    table = golden_copy(case, tmp_path)
    table.edit_metadata(_every_operation("append"))

    with pytest.raises(SnapshotClassMismatch, match=found):
        _read_all(table)


@pytest.mark.parametrize("case", ["cow_v2", "mor_v2"])
def test_snapshot_without_an_operation_is_classified_by_its_files(
    case: str, tmp_path: Path
) -> None:
    table = golden_copy(case, tmp_path)
    stated = [
        (step["snapshot_id"], step["changes"]["delete"]["row_count"])
        for step in answers(case)["snapshots"]
        if step["snapshot_id"] in answers(case)["lineage"]
    ]
    table.edit_metadata(_every_operation(None))

    with pytest.raises(NonAppendSnapshot) as refused:
        _read_all(table)

    for snapshot_id, rows_deleted in stated:
        assert (f"{snapshot_id} (" in refused.value.snapshots) == (rows_deleted > 0)


def _statement_without_rows(operation: str, **said: str) -> Any:
    """Commit what a statement leaves that found no row: a snapshot with its parent's manifests."""

    def change(raw: dict[str, Any]) -> None:
        parent = next(
            step for step in raw["snapshots"] if step["snapshot-id"] == raw["current-snapshot-id"]
        )
        made = {
            **parent,
            "snapshot-id": parent["snapshot-id"] + 1,
            "parent-snapshot-id": parent["snapshot-id"],
            "sequence-number": raw["last-sequence-number"] + 1,
            "timestamp-ms": raw["last-updated-ms"] + 1,
            "summary": {"operation": operation, **said},
        }
        raw["snapshots"].append(made)
        raw["current-snapshot-id"] = raw["refs"]["main"]["snapshot-id"] = made["snapshot-id"]
        raw["last-sequence-number"] = made["sequence-number"]
        raw["last-updated-ms"] = made["timestamp-ms"]
        raw["snapshot-log"].append(
            {"snapshot-id": made["snapshot-id"], "timestamp-ms": made["timestamp-ms"]}
        )

    return change


@pytest.mark.parametrize("operation", ["delete", "overwrite"])
def test_statement_that_changed_no_row_stops_nothing(operation: str, tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    table.edit_metadata(_statement_without_rows(operation, **{"total-records": "9"}))
    source = table.source(start="earliest")
    pin = source.timeline.pin(NOW)

    units = source.slicing.units(pin, InstantRange(None, pin.head))

    rows = [step["changes"]["insert"]["row_count"] for step in answers("append_v2")["snapshots"]]
    assert sum(piece.rows for piece in units.pieces) == sum(rows)


@pytest.mark.parametrize("said", ["deleted-data-files", "added-delete-files", "deleted-records"])
def test_statement_whose_summary_tells_of_changes_is_believed(said: str, tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    table.edit_metadata(_statement_without_rows("delete", **{said: "1"}))

    with pytest.raises(NonAppendSnapshot):
        _read_all(table)


def test_skipped_snapshots_are_counted_by_class() -> None:
    case = "cow_v2"
    kinds = [
        step["operation"] if any(of["row_count"] for of in step["changes"].values()) else "empty"
        for step in answers(case)["snapshots"]
        if step["snapshot_id"] in answers(case)["lineage"]
    ]

    notes = _read_all(golden(case), on_non_append="skip")

    assert {"overwrite", "empty"} <= set(kinds)
    for kind in set(kinds) - {"append"}:
        assert any(note.startswith(f"skipped {kinds.count(kind)} {kind} ") for note in notes)


class _Encrypted(ManifestReader):
    """Reads real manifests of which every file claims to be encrypted."""

    def entries(
        self, manifests: Iterable[ManifestFile], metric_ids: Collection[int] = ()
    ) -> list[list[Entry]]:
        return [
            [entry._replace(encrypted=True) for entry in entries]
            for entries in super().entries(manifests, metric_ids)
        ]


def test_encrypted_file_is_refused() -> None:
    source = golden("append_v2").source()
    table = source._access.opener.open()
    history = History("t", table.metadata, table.metadata.current_snapshot_id, None)
    reader = ChangeReader("t", _Encrypted(table.io, "t"), NO_FILTER)

    with pytest.raises(UnsupportedFeature, match="an encrypted file"):
        reader.appended(reader.classified(history.ancestors))


class _Merging(ManifestReader):
    """Says that the last commit of a table wrote a manifest of deletes, and what it did to them."""

    def __init__(self, files: FileIO, status: Status) -> None:
        super().__init__(files, "t")
        self._status = status

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        found = super().manifests(snapshot)
        merged = copy.deepcopy(found[0])
        counts = [int(self._status == each) for each in (Status.ADDED, Status.EXISTING, DELETED)]
        values = ("merged", 1, snapshot.snapshot_id, *counts)
        for place, value in zip((0, 3, 6, 7, 8, 9), values, strict=True):
            merged[place] = value
        return (*found, merged)

    def entries(
        self, manifests: Iterable[ManifestFile], metric_ids: Collection[int] = ()
    ) -> list[list[Entry]]:
        del metric_ids
        return [
            [
                entry_of(
                    content=Content.POSITION_DELETES,
                    status=self._status,
                    snapshot_id=manifest.added_snapshot_id,
                )
            ]
            if manifest.manifest_path == "merged"
            else super(_Merging, self).entries([manifest])[0]
            for manifest in manifests
        ]


def _reads(status: Status) -> list[Entry]:
    table = golden("append_v2").source()._access.opener.open()
    history = History("t", table.metadata, table.metadata.current_snapshot_id, None)
    reader = ChangeReader("t", _Merging(table.io, status), NO_FILTER)
    return reader.appended(reader.classified(history.ancestors)).entries


def test_append_that_merges_manifests_of_old_deletes_is_an_append() -> None:
    assert _reads(Status.EXISTING)


@pytest.mark.parametrize("status", [Status.ADDED, DELETED], ids=["adds", "removes"])
def test_append_that_touches_deletes_is_a_mismatch(status: Status) -> None:
    with pytest.raises(SnapshotClassMismatch, match="adds delete files, or removes them"):
        _reads(status)


def test_manifest_that_is_gone_is_named(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    for manifest in table.folder.rglob("*-m0.avro"):
        manifest.unlink()

    with pytest.raises(SourceFileGone, match=r"-m0\.avro"):
        _read_all(table)


def test_manifest_that_is_truncated_is_damaged(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    for manifest in table.folder.rglob("*-m0.avro"):
        content = manifest.read_bytes()
        manifest.write_bytes(content[: len(content) // 3])

    with pytest.raises(SourceFileDamaged, match="no Iceberg manifest"):
        _read_all(table)


def _avro_long(number: int) -> bytes:
    return (
        bytes([number << 1]) if number < 64 else bytes([(number << 1) & 0x7F | 0x80, number >> 6])
    )


def _avro_file(schema: dict[str, Any]) -> bytes:
    """Write an Avro file without records."""
    text = json.dumps(schema).encode()
    key = b"avro.schema"
    meta = _avro_long(1) + _avro_long(len(key)) + key + _avro_long(len(text)) + text + _avro_long(0)
    return b"Obj\x01" + meta + b"s" * 16


def test_manifest_list_with_avro_maps_is_refused(tmp_path: Path) -> None:
    # BigQuery writes a map as an array of a union; no other writer does (ICE-1.3).
    pairs = {"type": "array", "logicalType": "map", "items": ["null", "int"]}
    fields = [{"name": "partitions", "type": pairs, "field-id": 507}]
    table = golden_copy("append_v2", tmp_path)
    for manifest_list in table.folder.rglob("snap-*.avro"):
        manifest_list.write_bytes(_avro_file({"type": "record", "name": "m", "fields": fields}))

    with pytest.raises(UnsupportedFeature, match="a manifest with Avro maps"):
        _read_all(table)


def test_manifest_list_that_is_something_else_is_damaged(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    for manifest_list in table.folder.rglob("snap-*.avro"):
        manifest_list.write_bytes(b"PAR1" * 20)

    with pytest.raises(SourceFileDamaged, match="snap-"):
        _read_all(table)
