"""Copied files stand beside written ones: named, described and forced to the disk like them."""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crash.faults import Stopper, stopping_storage
from crash.power import Disk, chance
from tidegate.errors import SourceFileDamaged
from tidegate.model.message import EventTimes, Staged
from tidegate.model.partition import Partition, PartitionField, Transform
from tidegate.physical import ParquetRows
from tidegate.physical.whole_file import WholeFile
from tidegate.stage.sub_split import AttemptPlace, StageSpec, stage_sub_split
from tidegate.stage.whole_copy import WholePart, send_whole
from tidegate.storage import LocalStorage

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = Partition((("dt", "2026-03-01"),))
SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
SPEC = StageSpec(
    fields=(PartitionField("dt", "at", Transform.DAY),), event_time="at", counts_until=NOON
)


def whole(path: Path, *ids: int) -> WholePart:
    """Write a file; gives it as one to copy."""
    pq.write_table(pa.table([ids, [NOON] * len(ids)], SCHEMA), path, compression="zstd")

    def look() -> WholeFile:
        with ParquetRows(pa.OSFile(str(path))) as rows:
            return WholeFile(str(path), rows.footer, tuple(rows.schema.names), {})

    return WholePart(look(), look, DAY, EventTimes(NOON, NOON))


def staged(root: Path, parts: list[WholePart], storage: LocalStorage) -> Staged:
    rows = [pa.RecordBatch.from_arrays([pa.array([9]), pa.array([NOON])], schema=SCHEMA)]
    place = AttemptPlace(str(root), "0123456789abcdef", "5b5b5b5b5b5b", "w1.t0.aa")
    return stage_sub_split(rows, SCHEMA, SPEC, place, storage, parts)


def ids(root: Path, message: Staged) -> list[list[int]]:
    """The ids of each part file."""
    tables = [pq.read_table(root / part.staged, partitioning=None) for part in message.parts]
    return [table.column("id").to_pylist() for table in tables]


def test_copies_and_rows_of_one_partition_get_names_of_their_own(tmp_path: Path) -> None:
    parts = [whole(tmp_path / "a", 1, 2), whole(tmp_path / "b", 3)]

    message = staged(tmp_path, parts, LocalStorage())

    assert ids(tmp_path, message) == [[1, 2], [3], [9]]
    assert [part.name for part in message.parts] == [
        f"part-0123456789abcdef-5b5b5b5b5b5b-{number}.zstd.parquet" for number in range(3)
    ]
    assert {part.partition for part in message.parts} == {DAY}
    assert (message.rows_read, message.rows_kept) == (4, 4)
    assert message.event_times == EventTimes(NOON, NOON)


def test_copies_that_a_message_names_stand_after_a_power_cut(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    stopper = Stopper()
    stopper.disk = Disk(root, tmp_path / "kept")
    parts = [whole(tmp_path / "a", 1, 2)]

    message = staged(root, parts, stopping_storage(stopper))
    stopper.disk.leave(tmp_path / "after", chance("lost", 0))

    assert ids(tmp_path / "after", message) == [[1, 2], [9]]


def test_file_that_became_another_is_no_part(tmp_path: Path) -> None:
    part = whole(tmp_path / "a", 1, 2)
    whole(tmp_path / "a", 1, 2, 3)

    with pytest.raises(SourceFileDamaged, match="footer"):
        staged(tmp_path, [part], LocalStorage())


def test_file_that_is_whole_no_more_is_no_part(tmp_path: Path) -> None:
    part = whole(tmp_path / "a", 1, 2)
    changed = WholePart(part.file, lambda: None, part.partition, part.event_times)

    with pytest.raises(SourceFileDamaged, match="footer"):
        staged(tmp_path, [changed], LocalStorage())


class Cutting(LocalStorage):
    """A disk that loses the end of each copy."""

    def copy_new(self, source: str, target: str) -> None:
        super().copy_new(source, target)
        os.truncate(target, Path(target).stat().st_size - 1)


def test_copy_that_is_cut_is_no_part(tmp_path: Path) -> None:
    part = whole(tmp_path / "a", 1, 2)

    with pytest.raises(SourceFileDamaged, match="footer"):
        staged(tmp_path, [part], Cutting())


def test_file_that_became_another_once_it_was_copied_is_no_part(tmp_path: Path) -> None:
    part, other = whole(tmp_path / "a", 1, 2), whole(tmp_path / "b", 1, 2, 3)
    changed = WholePart(part.file, lambda: other.file, part.partition, part.event_times)

    with pytest.raises(SourceFileDamaged, match="footer"):
        staged(tmp_path, [changed], LocalStorage())


class Sent(io.BytesIO):
    """A file that is sent, and is there once somebody completes it."""

    upload = None
    is_given_up = False

    def give_up(self) -> None:
        self.is_given_up = True

    def close(self) -> None:
        """Keep the bytes to be looked at."""


@dataclass(frozen=True)
class Cut(LocalStorage):
    """A disk of which the end of a file does not come, without any error."""

    lacks: int = 0

    def open_input(self, path: str) -> pa.NativeFile:
        content = self.read_bytes(path)
        return pa.BufferReader(content[: len(content) - self.lacks])


def test_file_that_is_sent_is_as_it_was(tmp_path: Path) -> None:
    part, file = whole(tmp_path / "a", 1, 2), Sent()

    sent = send_whole(LocalStorage(), part, file)

    content = (tmp_path / "a").read_bytes()
    assert file.getvalue() == content
    assert (sent.length, sent.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert not file.is_given_up


def test_file_that_was_sent_in_part_is_given_up(tmp_path: Path) -> None:
    part, file = whole(tmp_path / "a", 1, 2), Sent()

    with pytest.raises(SourceFileDamaged):
        send_whole(Cut(lacks=1), part, file)

    assert file.is_given_up
