"""Manifests give what the format says, and one that was cut off anywhere is found out."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from golden_iceberg import answers, golden, golden_copy
from iceberg_states import opened
from tidegate.errors import SourceFileDamaged, SourceFileGone, UnsupportedFeature
from tidegate.physical.avro_container import write_long
from tidegate.source.iceberg.manifests.decode import ManifestReader, is_delete_manifest
from tidegate.source.iceberg.manifests.entries import Content, Entry, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA = Schema(NestedField(1, "id", LongType()))
ADDED, EXISTING, DELETED = (
    ManifestEntryStatus.ADDED,
    ManifestEntryStatus.EXISTING,
    (ManifestEntryStatus.DELETED),
)
CODECS = ["null", "gzip", "zstd"]


def _manifest(
    place: Path,
    entries: Sequence[tuple[ManifestEntryStatus, int | None, str]],
    codec: str = "null",
    version: Literal[1, 2] = 2,
) -> ManifestFile:
    """Write a manifest of (status, sequence number, path)."""
    path = str(place / "m.avro")
    output = PyArrowFileIO().new_output(path)
    with write_manifest(version, UNPARTITIONED_PARTITION_SPEC, SCHEMA, output, 7, codec) as writer:
        for status, sequence, name in entries:
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=name,
                file_format=FileFormat.PARQUET,
                partition=Record(),
                record_count=10,
                file_size_in_bytes=100,
                value_counts={1: 10},
                lower_bounds={1: b"\x01" * 8},
                upper_bounds={1: b"\x02" * 8},
            )
            entry = ManifestEntry.from_args(
                status=status,
                snapshot_id=None if status is ADDED else 3,
                sequence_number=sequence,
                file_sequence_number=sequence,
                data_file=file,
            )
            # Not `add`, `existing` and `delete`, which fill in what the test leaves out.
            writer.add_entry(entry)
    return writer.to_manifest_file()


def _inheriting(manifest: ManifestFile, **values: Any) -> ManifestFile:
    """Set what the manifest list would say."""
    places = {"sequence_number": 4, "min_sequence_number": 5, "first_row_id": 15}
    found = ManifestFile(*[manifest[index] for index in range(15)], None)
    for name, value in values.items():
        found[places[name]] = value
    return found


def _read(manifest: ManifestFile, metric_ids: Sequence[int] = ()) -> list[Entry]:
    return ManifestReader(PyArrowFileIO(), "lake.orders").entries([manifest], metric_ids)[0]


@pytest.mark.parametrize("codec", CODECS)
def test_added_file_inherits_snapshot_and_sequence_numbers(codec: str, tmp_path: Path) -> None:
    written = _manifest(tmp_path, [(ADDED, None, "a"), (EXISTING, 2, "b")], codec)

    added, existing = _read(_inheriting(written, sequence_number=9))

    assert (added.sequence_number, added.file_sequence_number, added.snapshot_id) == (9, 9, 7)
    assert (existing.sequence_number, existing.file_sequence_number, existing.snapshot_id) == (
        2,
        2,
        3,
    )


def test_entries_carry_metrics_of_the_columns_asked_for_only(tmp_path: Path) -> None:
    written = _inheriting(_manifest(tmp_path, [(ADDED, None, "a")]), sequence_number=1)

    assert _read(written)[0].metrics is None
    found = _read(written, [1, 2])[0].metrics
    assert found
    assert (found.lower_bounds, found.value_counts) == ({1: b"\x01" * 8}, {1: 10})
    other = _read(written, [2])[0].metrics
    assert other
    assert other.lower_bounds == {}


def test_existing_file_without_a_sequence_number_is_damage(tmp_path: Path) -> None:
    # Format v1 has no sequence numbers, so such a file in a v2 list must not be from v1.
    written = _manifest(tmp_path, [(EXISTING, None, "b")], version=1)

    assert _read(_inheriting(written, sequence_number=0))[0].sequence_number == 0
    with pytest.raises(SourceFileDamaged, match="no sequence number"):
        _read(_inheriting(written, sequence_number=9))


def test_v1_files_have_sequence_number_zero() -> None:
    table = opened(golden("append_v1"))

    state = table.states.state(table.snapshot(answers("append_v1")["lineage"][-1]))

    assert {it.entry.sequence_number for it in state.files} == {0}


@given(
    st.lists(st.sampled_from([ADDED, EXISTING, DELETED]), min_size=1, max_size=5),
    st.integers(0, 1_000) | st.none(),
)
@settings(max_examples=30)
def test_row_ids_are_handed_on_from_live_file_to_live_file(
    steps: list[ManifestEntryStatus], first: int | None
) -> None:
    written = _shared(tuple((status, 1, f"f{index}") for index, status in enumerate(steps)))

    found = _read(_inheriting(written, sequence_number=1, first_row_id=first))

    expected, following = [], first
    for status in steps:
        is_numbered = following is not None and status is not DELETED
        expected.append(following if is_numbered else None)
        following = following + 10 if is_numbered and following is not None else following
    assert [entry.first_row_id for entry in found] == expected


_PLACES: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def _place(tmp_path_factory: pytest.TempPathFactory) -> None:
    _PLACES.append(tmp_path_factory.mktemp("manifests"))


@cache
def _shared(entries: tuple[tuple[ManifestEntryStatus, int | None, str], ...]) -> ManifestFile:
    place = _PLACES[-1] / str(abs(hash(entries)))
    place.mkdir(exist_ok=True)
    return _manifest(place, entries)


@pytest.mark.parametrize("codec", CODECS)
def test_manifest_cut_off_anywhere_is_damaged(codec: str, tmp_path: Path) -> None:
    entries = [(ADDED, None, f"s3://lake/data/{number}.parquet") for number in range(3)]
    written = _inheriting(_manifest(tmp_path, entries, codec), sequence_number=1)
    path = Path(written.manifest_path)
    whole = path.read_bytes()

    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(SourceFileDamaged, match=r"m\.avro"):
            _read(written)


@pytest.mark.parametrize(
    ("before", "length"),
    [(b"Obj\x01\x02", 1 << 28), (b"Obj\x01\x02\x16avro.schema", 1 << 28), (b"Obj\x01\x02", -1)],
    ids=["name", "schema", "negative"],
)
def test_manifest_that_promises_more_bytes_than_it_has_is_damaged(
    before: bytes, length: int, tmp_path: Path
) -> None:
    # The compiled decoder would read on behind the file's bytes, and may take the process down.
    written = _inheriting(_manifest(tmp_path, [(ADDED, None, "a")]), sequence_number=1)
    Path(written.manifest_path).write_bytes(before + write_long(length) + b"{}")

    with pytest.raises(SourceFileDamaged, match="it is cut off"):
        _read(written)


def test_block_that_promises_more_bytes_than_it_has_is_damaged(tmp_path: Path) -> None:
    one = _manifest(tmp_path, [(ADDED, None, "a")])
    path = Path(one.manifest_path)
    # The block begins behind the first sync marker, with its count and its length.
    whole = path.read_bytes()
    start = whole.index(whole[-16:]) + 16
    path.write_bytes(whole[: start + 1] + write_long(1 << 28) + whole[start + 3 :])

    with pytest.raises(SourceFileDamaged, match="it is cut off"):
        _read(_inheriting(one, sequence_number=1))


def test_manifest_cut_off_between_blocks_is_damaged_without_counts_too(tmp_path: Path) -> None:
    # pyiceberg writes each entry into a block of its own.
    one = _manifest(tmp_path, [(ADDED, None, "a")])
    size_bytes = Path(one.manifest_path).stat().st_size
    written = _inheriting(_manifest(tmp_path, [(ADDED, None, "a"), (ADDED, None, "b")]))
    for place in (7, 8, 9):
        written[place] = None
    path = Path(written.manifest_path)
    path.write_bytes(path.read_bytes()[:size_bytes])

    with pytest.raises(SourceFileDamaged, match="cut off"):
        _read(written)


def test_manifest_list_cut_off_anywhere_is_damaged(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    live = opened(table)
    snapshot = live.snapshot(table.answers["lineage"][-1])
    name = snapshot.manifest_list.rsplit("/", 1)[-1]
    path = next(table.folder.rglob(name))
    whole = path.read_bytes()

    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(SourceFileDamaged, match=name):
            ManifestReader(live.table.io, "t").manifests(snapshot)


def test_manifest_that_is_gone_is_named(tmp_path: Path) -> None:
    written = _inheriting(_manifest(tmp_path, [(ADDED, None, "a")]), sequence_number=1)
    Path(written.manifest_path).unlink()

    with pytest.raises(SourceFileGone, match=r"m\.avro"):
        _read(written)


def test_encrypted_manifest_is_refused(tmp_path: Path) -> None:
    written = _inheriting(_manifest(tmp_path, [(ADDED, None, "a")]))
    written[14] = b"key"

    with pytest.raises(UnsupportedFeature, match="an encrypted manifest"):
        _read(written)


def test_encrypted_manifest_list_is_refused(tmp_path: Path) -> None:
    table = golden_copy("append_v2", tmp_path)
    live = opened(table)
    for manifest_list in table.folder.rglob("snap-*.avro"):
        manifest_list.write_bytes(b"AGS1" + manifest_list.read_bytes())

    with pytest.raises(UnsupportedFeature, match="an encrypted file"):
        ManifestReader(live.table.io, "t").manifests(live.snapshot(table.answers["lineage"][-1]))


def test_deletion_vectors_keep_their_place_in_the_puffin_file() -> None:
    table = opened(golden("mor_v3"))
    reader = ManifestReader(table.table.io, "t")
    snapshot = table.snapshot(answers("mor_v3")["lineage"][-1])
    deletes = [it for it in reader.manifests(snapshot) if is_delete_manifest(it)]

    found = [it for entries in reader.entries(deletes) for it in entries]

    live = [it for it in found if it.status != Status.DELETED]
    assert live
    assert {it.content for it in live} == {Content.POSITION_DELETES}
    assert all(it.referenced and it.content_offset and it.content_size for it in live)
