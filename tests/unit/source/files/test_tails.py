"""A file is recognized by its end: touched is not changed, and rewritten is, whatever the time."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refusing import without_descriptors
from tidegate.config import read_source
from tidegate.errors import ListedFileChanged, SourceRewritten, StorageSilent
from tidegate.model.instant import InstantRange
from tidegate.source.files import FilesSource
from tidegate.source.files.footers import Footers
from tidegate.source.files.formats import PARQUET
from tidegate.source.files.listing import ListedFile, Listing
from tidegate.source.files.reader import Listed, open_listed, open_slice
from tidegate.source.files.revision_folders import ListedFiles
from tidegate.source.files.tails import listed_before, tail_of
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 21, tzinfo=UTC)
HOUR = timedelta(hours=1)
LARGE = 100_000
FILES = ListedFiles(LocalStorage())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tmp_path / "table"
    found.mkdir()
    for number, name in enumerate("ab"):
        pq.write_table(pa.table({"id": [number, 5, 9]}), found / f"{name}.parquet")
    return found


def source_of(root: Path, **keys: Any) -> FilesSource:
    config = read_source({"kind": "files", "path": str(root), **keys})
    return FilesSource(config, LocalStorage(), str(root.parent / "listings"))


def tail(path: Path) -> str:
    with pa.OSFile(str(path)) as file:
        return tail_of(file)


def rewrite(path: Path, ids: list[int]) -> None:
    """Write other rows, with the time that the file had."""
    found = path.stat()
    pq.write_table(pa.table({"id": ids}), path)
    assert path.stat().st_size == found.st_size
    os.utime(path, ns=(found.st_mtime_ns,) * 2)


def forget_tails(root: Path) -> None:
    """Store the listings as early versions did."""
    for path in (root.parent / "listings" / "files").iterdir():
        entries = json.loads(gzip.decompress(path.read_bytes()))
        path.write_bytes(gzip.compress(json.dumps([entry[:3] for entry in entries]).encode()))


def test_file_with_the_same_footer_but_another_value_has_another_tail(tmp_path: Path) -> None:
    """Bounds and sizes are the same: only the page tells them apart."""
    ends = []
    for middle in (5, 6):
        path = tmp_path / f"{middle}.parquet"
        pq.write_table(pa.table({"id": [1, middle, 9]}), path, store_schema=False)
        footer = int.from_bytes(path.read_bytes()[-8:-4], "little")
        ends.append((path.stat().st_size, path.read_bytes()[-8 - footer :], tail(path)))

    assert ends[0][:2] == ends[1][:2]
    assert ends[0][2] != ends[1][2]


@pytest.mark.parametrize("columns", [1, 500], ids=["small footer", "large footer"])
def test_tail_of_a_large_file_is_of_its_whole_footer(tmp_path: Path, columns: int) -> None:
    path = tmp_path / "a.parquet"
    rows = {f"column {number}": list(range(LARGE // columns)) for number in range(columns)}
    pq.write_table(pa.table(rows), path, compression="none", use_dictionary=False)
    content = path.read_bytes()
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    assert len(content) > 2 * (64 << 10)
    first_read = len(content) - max(footer, 64 << 10)

    def changed(at: int) -> str:
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        return tail(path)

    whole = tail_of(pa.BufferReader(content))
    assert changed(first_read - 1) == whole
    assert changed(first_read) != whole


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\xff\xff\xff\xffPAR1", b"x" * LARGE])
def test_tail_of_what_is_no_parquet_file_is_one_all_the_same(content: bytes) -> None:
    assert len(tail_of(pa.BufferReader(content))) == 16


def test_tail_of_a_file_that_is_gone_or_changed_since_is_unknown(root: Path) -> None:
    length = (root / "a.parquet").stat().st_size
    footers = Footers(str(root), FILES, PARQUET)

    assert footers.with_tail(ListedFile("a.parquet", length, 0)).tail
    assert footers.with_tail(ListedFile("a.parquet", length + 1, 0)).tail == ""
    assert footers.with_tail(ListedFile("z.parquet", length, 0)).tail == ""
    with without_descriptors(), pytest.raises(StorageSilent):
        footers.with_tail(ListedFile("a.parquet", length, 0))


def test_touched_file_is_no_change_for_a_look_a_rebuild_and_a_task(root: Path) -> None:
    taken = source_of(root).timeline.pin(NOW)
    assert taken.head
    (piece, _) = source_of(root).slicing.units(taken, InstantRange(None, taken.head)).pieces
    os.utime(root / "a.parquet", ns=(1, 1))

    source = source_of(root)
    pin = source.timeline.pin(NOW + HOUR, after=taken.head)

    assert source.timeline.instants(pin, taken.head) == ()
    with open_slice(FILES, piece.slice) as file:
        assert file.rows == 3


def test_file_that_was_rewritten_with_its_length_and_time_is_told_when_it_is_opened(
    root: Path,
) -> None:
    taken = source_of(root).timeline.pin(NOW)
    assert taken.head
    (piece, _) = source_of(root).slicing.units(taken, InstantRange(None, taken.head)).pieces
    rewrite(root / "a.parquet", [0, 6, 9])

    with pytest.raises(ListedFileChanged, match="found other content of that time"):
        open_slice(FILES, piece.slice)


@pytest.mark.parametrize("before", [None, ("x", "y")], ids=["earlier version", "joined before"])
def test_end_of_a_file_that_is_known_is_that_of_before_and_what_was_joined_is_not(
    before: tuple[str, ...] | None,
) -> None:
    """A marker may list anew what an earlier version listed without its parts."""
    found = ListedFile("dt=1/a", 1, 2, made_of=("x",))
    taken = {found.path: found._replace(tail="ab", made_of=before)}

    assert listed_before(found, taken, {}) == found._replace(tail="ab")


def test_file_that_was_not_taken_in_is_looked_at_again_although_its_time_is_the_same(
    root: Path,
) -> None:
    source_of(root).timeline.pin(NOW)
    rewrite(root / "a.parquet", [0, 6, 9])

    pin = source_of(root).timeline.pin(NOW + HOUR)

    assert pin.head
    (piece, _) = source_of(root).slicing.units(pin, InstantRange(None, pin.head)).pieces
    with open_slice(FILES, piece.slice) as file:
        assert file.rows == 3


@pytest.mark.parametrize("looks", [1, 2])
def test_end_of_a_file_that_was_taken_in_is_read_once_per_time_that_it_has(
    root: Path, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    taken = source_of(root).timeline.pin(NOW).head
    os.utime(root / "a.parquet", ns=(1, 1))
    read: list[str] = []

    really = Footers.with_tail

    def counting(footers: Footers, file: ListedFile) -> ListedFile:
        read.append(file.path)
        return really(footers, file)

    monkeypatch.setattr(Footers, "with_tail", counting)
    for _ in range(looks):
        source_of(root).timeline.pin(NOW + HOUR, after=taken)

    assert read == ["a.parquet"]


def test_listing_of_an_early_version_is_read_and_its_files_are_told_by_their_times(
    root: Path,
) -> None:
    taken = source_of(root).timeline.pin(NOW).head
    assert taken
    forget_tails(root)
    source = source_of(root)

    pin = source.timeline.pin(NOW + HOUR, after=taken)
    assert source.timeline.instants(pin, taken) == ()

    os.utime(root / "a.parquet", ns=(1, 1))
    pin = source.timeline.pin(NOW + HOUR, after=taken)
    with pytest.raises(SourceRewritten, match=r"a\.parquet"):
        source.timeline.instants(pin, taken)


def test_listing_without_tails_has_the_digest_that_early_versions_gave_it() -> None:
    files = (ListedFile("a", 1, 2), ListedFile("b", 3, 4))

    listing = Listing(files, gone=(ListedFile("c", 5, 6),))

    assert listing.entries == [["a", 1, 2], ["b", 3, 4], ["c", 5, 6, "gone"]]
    assert listing.digest == "58b255f8791f8fc9"


def test_file_without_a_known_end_is_told_by_its_time(root: Path) -> None:
    path = root / "a.parquet"
    found = path.stat()

    with open_listed(FILES, str(path), Listed(found.st_size, found.st_mtime_ns)) as file:
        assert file.rows == 3
    with pytest.raises(ListedFileChanged, match="found what was written at"):
        open_listed(FILES, str(path), Listed(found.st_size, found.st_mtime_ns + 1))


def test_tags_of_objects_are_stored_with_their_files() -> None:
    files = (ListedFile("a", 1, 2, "abc", "x-1"), ListedFile("b", 3, 4, tag="y"))

    listing = Listing(files, gone=(ListedFile("c", 5, 6, "def", "z"),))

    assert Listing.of_entries(json.loads(json.dumps(listing.entries)), ()) == listing
