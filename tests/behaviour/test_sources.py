"""What every kind of source promises, asked of each: a table that grows commit by commit."""

from __future__ import annotations

import itertools
import os
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from golden_iceberg import read
from s3_servers import gateway_server
from tidegate.config import SourceConfig, read_source
from tidegate.errors import (
    ColumnMissing,
    SourceFileDamaged,
    SourceFileGone,
    SourceNotFound,
)
from tidegate.model.instant import DataInterval, Instant, InstantRange
from tidegate.model.plan import Pin
from tidegate.plan import plan_splits, row_width
from tidegate.source import open_source
from tidegate.storage import LocalStorage, Stores
from tidegate.storage.s3 import S3Storage
from tidegate.storage.s3_calls import S3Calls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.table import Table

    from s3_servers import S3Server
    from tidegate.source.protocol import Source
    from tidegate.storage import Storage

START = datetime(2013, 2, 5, tzinfo=UTC)
STEP = timedelta(hours=6)
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


class GrowingTable(Protocol):
    """A table that a test writes to and reads through the product."""

    config: dict[str, Any]

    @property
    def storage(self) -> Storage: ...

    def source(self, **keys: Any) -> Source: ...

    def commit(self, *ids: int) -> Pin: ...


@dataclass
class IcebergLake:
    """An Iceberg table in a catalog; each commit carries its time, six hours after the last."""

    place: Path
    commits: int = 0
    config: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        uri, warehouse = f"sqlite:///{self.place}/catalog.db", f"file://{self.place}/lake"
        self.catalog = SqlCatalog("lake", uri=uri, warehouse=warehouse)
        self.catalog.create_namespace("raw")
        self.table: Table = self.catalog.create_table("raw.orders", SCHEMA)
        self.config = {
            "kind": "iceberg",
            "catalog": {"name": "lake", "type": "sql", "uri": uri, "warehouse": warehouse},
            "table": "raw.orders",
            "instant_time": {"summary": "known-at"},
        }

    @property
    def storage(self) -> Storage:
        return LocalStorage()

    def source(self, **keys: Any) -> Source:
        return open_source(_config(self.config, keys), self.storage)

    def commit(self, *ids: int) -> Pin:
        moment = START + STEP * self.commits
        self.commits += 1
        self.table.append(_rows(ids), snapshot_properties={"known-at": moment.isoformat()})
        return self.source().timeline.pin(moment)


@dataclass
class Directory:
    """A directory of Parquet files; each commit adds one and is listed six hours after the last."""

    place: Path
    commits: int = 0
    config: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        root = self.place / "lake"
        root.mkdir()
        self.config = {"kind": "files", "path": str(root)}

    @property
    def storage(self) -> Storage:
        return LocalStorage()

    def source(self, **keys: Any) -> Source:
        listings = str(self.place / "listings")
        return open_source(_config(self.config, keys), self.storage, listings)

    def commit(self, *ids: int) -> Pin:
        moment = START + STEP * self.commits
        self.commits += 1
        file = self.place / "lake" / f"{self.commits:03d}.parquet"
        pq.write_table(_rows(ids), file, row_group_size=2)
        os.utime(file, (moment.timestamp(),) * 2)
        return self.source().timeline.pin(moment)


@dataclass
class FarDirectory(Directory):
    """The same directory, as objects of a store that keeps them as files."""

    server: S3Server = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.server.folder
        bucket = f"b-{uuid.uuid4().hex[:12]}"
        (self.server.folder / bucket).symlink_to(self.place)
        self.config["path"] = f"s3://{bucket}/lake"
        # A store has no empty directories: consoles make an object for one.
        self.server.client().put_object(Bucket=bucket, Key="lake/", Body=b"")

    @property
    def storage(self) -> Storage:
        return Stores(objects=S3Storage(S3Calls(self.server.options)))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with gateway_server(tmp_path_factory.mktemp("gateway") / "store") as found:
        yield found


def _rows(ids: tuple[int, ...]) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{number}" for number in ids]}, schema=SCHEMA)


def _config(config: dict[str, Any], keys: dict[str, Any]) -> SourceConfig:
    return read_source({**config, **keys})


KINDS = {"iceberg": IcebergLake, "files": Directory, "files in a store": FarDirectory}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def table(request: pytest.FixtureRequest, tmp_path: Path) -> GrowingTable:
    if request.param is FarDirectory:
        return FarDirectory(tmp_path, server=request.getfixturevalue("server"))
    made: GrowingTable = request.param(tmp_path)
    return made


def _ids(source: Source, pin: Pin, start: Instant | None, end: Instant) -> list[int]:
    ids: list[int] = (
        read(source, pin, source.slicing.units(pin, InstantRange(start, end)))
        .column("id")
        .to_pylist()
    )
    return ids


def test_empty_table_has_no_instants(table: GrowingTable) -> None:
    source = table.source()
    pin = source.timeline.pin(START)

    assert pin.head is None
    assert source.timeline.instants(pin, None) == ()
    assert source.timeline.first_checkpoint(pin) is None


def test_commits_are_instants_in_order_with_their_times(table: GrowingTable) -> None:
    pins = [table.commit(1), table.commit(2), table.commit(3)]
    source = table.source()

    instants = source.timeline.retained(source.timeline.pin(START + 9 * STEP))

    assert list(instants) == [pin.head for pin in pins]
    assert [instant.time for instant in instants] == [START, START + STEP, START + 2 * STEP]


def test_looking_twice_without_a_commit_changes_nothing(table: GrowingTable) -> None:
    table.commit(1)

    first, second = (
        table.source().timeline.pin(START + STEP),
        table.source().timeline.pin(START + 2 * STEP),
    )

    assert (first.head, first.schema, first.identity) == (
        second.head,
        second.schema,
        second.identity,
    )


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 2), (1, 3), (4,)], ids=str)
def test_consecutive_windows_join_without_gap_or_overlap(
    sizes: tuple[int, ...], table: GrowingTable
) -> None:
    for number in range(4):
        table.commit(10 * number, 10 * number + 1)
    source = table.source(start="earliest")
    pin = source.timeline.pin(START + 9 * STEP)
    instants = source.timeline.retained(pin)

    start: Instant | None = None
    ids, taken = [], 0
    for size in sizes:
        taken += size
        ids += _ids(source, pin, start, instants[taken - 1])
        start = instants[taken - 1]

    assert ids == [0, 1, 10, 11, 20, 21, 30, 31]
    assert source.timeline.instants(pin, start) == ()


def test_first_window_of_a_full_start_is_the_table_as_it_stands(table: GrowingTable) -> None:
    table.commit(1)
    pin = table.commit(2)
    source = table.source(start="full")
    assert pin.head

    assert source.timeline.first_checkpoint(pin) is None
    assert sorted(_ids(source, pin, None, pin.head)) == [1, 2]


def test_pin_does_not_see_later_commits(table: GrowingTable) -> None:
    source = table.source()
    table.commit(1)
    pin = source.timeline.pin(START)
    table.commit(2)

    assert len(source.timeline.instants(pin, None)) == 1
    assert pin.head
    assert _ids(source, pin, None, pin.head) == [1]


def test_stored_pin_reads_the_same_in_another_process(table: GrowingTable) -> None:
    pin = table.commit(1, 2)
    stored = Pin.from_text(pin.to_text())
    assert stored.head

    elsewhere = table.source()

    assert _ids(elsewhere, stored, None, stored.head) == [1, 2]
    assert elsewhere.reading.schema(stored) == SCHEMA
    assert stored.schema == (("id", "int64"), ("name", "string"))


def test_planning_twice_gives_the_same_splits(table: GrowingTable) -> None:
    for number in range(3):
        pin = table.commit(number)
    assert pin.head
    config = _config(table.config, {}).split

    def plan() -> Any:
        source = table.source()
        units = source.slicing.units(pin, InstantRange(None, pin.head))
        return plan_splits(units, source.slicing.row_groups, config, row_width(SCHEMA), 2)

    assert [split.to_text() for split in plan()] == [split.to_text() for split in plan()]


def test_earlier_instant_can_be_read_as_it_was(table: GrowingTable) -> None:
    first = table.commit(1).head
    pin = table.commit(2)
    source = table.source(read={"mode": "snapshot"})
    assert first

    earlier = source.timeline.at(pin, first)

    assert earlier.head == first
    assert _ids(source, earlier, None, first) == [1]


def test_start_words_and_points(table: GrowingTable) -> None:
    first, second, third = (table.commit(number).head for number in (1, 2, 3))
    assert first
    assert second
    expected: list[tuple[Any, Instant | None]] = [
        ("full", None),
        ("earliest", None),
        ("latest", third),
        ({"after": second.id}, second),
        ({"from": second.id}, first),
        ({"from": first.id}, None),
        ({"after": second.time.isoformat()}, second),
        ({"from": second.time.isoformat()}, first),
        ({"from": (second.time + STEP / 2).isoformat()}, second),
    ]

    for start, checkpoint in expected:
        source = table.source(start=start)
        found = source.timeline.first_checkpoint(source.timeline.pin(START + 9 * STEP))
        # A time is no listing of a folder: it stands for the files that had come by then.
        assert (found and found.time) == (checkpoint and checkpoint.time), start


def test_windows_of_the_history_read_what_stood_at_the_instant_asked_for(
    table: GrowingTable,
) -> None:
    heads = [table.commit(number).head for number in range(3)]
    source = table.source()
    pin = source.timeline.pin(START + 9 * STEP)
    assert heads[1]

    instants = source.timeline.history(pin, heads[1], DataInterval(START, START + 9 * STEP))

    assert [item.time for item in instants] == [START, START + STEP]
    windows = itertools.pairwise((None, *instants))
    assert [_ids(source, pin, start, end) for start, end in windows if end] == [[0], [1]]


def test_instant_is_found_by_id_and_by_time(table: GrowingTable) -> None:
    first, second = table.commit(1).head, table.commit(2).head
    source = table.source()
    pin = source.timeline.pin(START + 9 * STEP)
    assert first
    assert second

    assert source.timeline.named(pin, second.id) == second
    assert source.timeline.named(pin, "nonsense") is None
    before = source.timeline.as_of(pin, second.time - STEP / 2)
    assert before
    assert before.time == first.time
    assert _ids(source, pin, None, before) == _ids(source, pin, None, first)
    at_last = source.timeline.as_of(pin, second.time)
    assert at_last
    assert _ids(source, pin, None, at_last) == _ids(source, pin, None, second)
    assert source.timeline.as_of(pin, START - STEP) is None


def test_reports_say_what_each_commit_added(table: GrowingTable) -> None:
    table.commit(1)
    pin = table.commit(2, 3)
    source = table.source()

    reports = source.timeline.describe(pin, source.timeline.retained(pin))

    assert [(report.files_added, report.files_removed or 0) for report in reports] == [
        (1, 0),
        (1, 0),
    ]
    assert [report.instant for report in reports] == list(source.timeline.retained(pin))


def test_columns_come_as_asked_and_extra_ones_last(table: GrowingTable) -> None:
    pin = table.commit(1)
    config = _config(table.config, {"read": {"columns": ["name"]}})
    listings = str(pin.identity) + ".listings" if config.kind == "files" else None
    source = open_source(config, table.storage, listings, extra_columns=("id",))

    assert source.reading.schema(source.timeline.pin(START)).names == ["name", "id"]


def test_unknown_column_is_refused_while_pinning(table: GrowingTable) -> None:
    table.commit(1)

    with pytest.raises(ColumnMissing, match=r"'amount'.*id, name"):
        table.source(read={"columns": ["amount"]}).timeline.pin(START)


def _data_files(place: Path) -> list[Path]:
    return sorted((place / "lake").rglob("*.parquet"))


def test_file_deleted_after_planning_is_gone(table: GrowingTable, tmp_path: Path) -> None:
    pin = table.commit(1)
    source = table.source()
    assert pin.head
    (piece,) = source.slicing.units(pin, InstantRange(None, pin.head))
    _data_files(tmp_path)[0].unlink()

    with pytest.raises(SourceFileGone):
        source.reading.reader(pin).open(piece)


def test_file_cut_short_after_planning_is_damaged(table: GrowingTable, tmp_path: Path) -> None:
    pin = table.commit(1)
    source = table.source()
    assert pin.head
    (piece,) = source.slicing.units(pin, InstantRange(None, pin.head))
    file = _data_files(tmp_path)[0]
    file.write_bytes(file.read_bytes()[:-4])

    with pytest.raises(SourceFileDamaged):
        source.reading.reader(pin).open(piece)


def test_row_groups_add_up_to_the_rows_of_the_piece(table: GrowingTable) -> None:
    pin = table.commit(1, 2, 3, 4, 5)
    source = table.source()
    assert pin.head

    (piece,) = source.slicing.units(pin, InstantRange(None, pin.head))

    assert piece.rows == 5
    assert sum(group.rows for group in source.slicing.row_groups(piece)) == 5


@pytest.mark.parametrize(
    "config",
    [
        {"kind": "files", "path": "/nowhere/at/all"},
        {"kind": "iceberg", "metadata": "/nowhere/at/all"},
    ],
    ids=["files", "iceberg"],
)
def test_table_that_is_not_there_is_not_found(config: dict[str, str]) -> None:
    source = open_source(read_source(config), LocalStorage())

    with pytest.raises(SourceNotFound, match="/nowhere/at/all"):
        source.timeline.pin(START)
