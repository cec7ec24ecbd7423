"""A small table that grows commit by commit, and a pipeline over it whose rows have known ids."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

from crash.promises import visible_below, visible_files
from s3_servers import address_in_store, section_of_store
from tidegate.execute.local import LocalExecutor
from tidegate.ledger.clock import database_time
from tidegate.model.instant import DataInterval
from tidegate.model.partition import Partition
from tidegate.model.run import Run
from tidegate.pipeline import Pipeline, open_pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pytest

    from tidegate.model.run import Announced, PublishOutcome
    from tidegate.storage import Storage

DAY_1 = datetime(2026, 2, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("amount", pa.int64())])


@contextmanager
def local(_engine: str) -> Iterator[LocalExecutor]:
    """Give an executor of two threads, whatever engine is asked for."""
    with LocalExecutor(2) as executor:
        yield executor


def day(number: int) -> Partition:
    """Give the partition of a day of February 2026."""
    return Partition((("dt", f"2026-02-{number:02d}"),))


def known(number: float) -> datetime:
    """Give the end of a day: when its rows become known."""
    return DAY_1 + DAY * number


def interval(number: int, days: int = 1) -> DataInterval:
    """Give the data interval that begins with a day; commit `n` of a lake lies in day `n`."""
    return DataInterval(known(number - 1), known(number - 1 + days))


@dataclass
class SmallLake:
    """An Iceberg table and, below the same root, what pipelines over it publish."""

    root: Path
    commits: int = 0
    made: int = 0
    keys: dict[str, Any] = field(default_factory=dict)
    """Pipeline keys that every pipeline of this lake gets."""

    def __post_init__(self) -> None:
        """Make the table."""
        self.root.mkdir(parents=True, exist_ok=True)
        uri, warehouse = f"sqlite:///{self.root}/catalog.db", f"file://{self.root}/raw"
        self.catalog = SqlCatalog("lake", uri=uri, warehouse=warehouse)
        self.catalog.create_namespace("raw")
        self.table = self.catalog.create_table("raw.orders", SCHEMA)
        self.source = {
            "kind": "iceberg",
            "catalog": {"name": "lake", "type": "sql", "uri": uri, "warehouse": warehouse},
            "table": "raw.orders",
            "instant_time": {"summary": "known-at"},
        }

    @property
    def target(self) -> Path:
        """Where the pipeline publishes."""
        return self.root / "published" / "orders"

    @property
    def work(self) -> Path:
        """The work directory of the pipeline."""
        return self.root / "published" / ".tidegate-orders"

    def commit(self, days: Mapping[int, int], amount: int = 1) -> list[int]:
        """Append rows per day in one commit, known within the day that is its number; their ids."""
        self.commits += 1
        moment = known(self.commits - 0.5)
        columns: dict[str, list[Any]] = {"id": [], "at": [], "amount": []}
        for number, count in days.items():
            for row in range(count):
                self.made += 1
                columns["id"].append(self.made)
                columns["at"].append(DAY_1 + DAY * (number - 1) + timedelta(minutes=row + 1))
                columns["amount"].append(amount)
        rows = pa.table(columns, SCHEMA)
        self.table.append(rows, snapshot_properties={"known-at": moment.isoformat()})
        return columns["id"]

    def file(self, name: str = "orders", /, **keys: Any) -> Path:
        """Write a pipeline file; `keys` are merged into the usual ones."""
        usual = {
            "name": "orders",
            "source": self.source,
            "event_time": "at",
            "target": {
                "path": address_in_store(self.target, self.root),
                "partition_by": {"dt": "day(at)"},
            },
            **section_of_store(),
        }
        path = self.root / f"{name}.yaml"
        path.write_text(json.dumps(merged(merged(usual, self.keys), keys)))
        return path

    def pipeline(self, storage: Storage | None = None, /, **keys: Any) -> Pipeline:
        """Open the pipeline with some keys changed."""
        self.target.parent.mkdir(exist_ok=True)
        path = self.file(**keys)
        return open_pipeline(path, ledger=f"sqlite:///{self.root}/ledger.db", storage=storage)

    def found_by_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let commands find the pipelines of this lake by their names, and its ledger."""
        monkeypatch.setenv("TIDEGATE_PIPELINES", str(self.root))
        monkeypatch.setenv("TIDEGATE_LEDGER", f"sqlite:///{self.root}/ledger.db")

    def ids(self) -> dict[str, list[int]]:
        """Read the ids of the published rows by day, from the files that the markers list."""
        return published_ids(self.target)

    def listed_ids(self) -> dict[str, list[int]]:
        """Read the ids of the published rows by day, from every file that a reader who lists sees.

        The file of a day without rows is no file.
        """
        found: dict[str, list[int]] = {}
        for path in visible_below(self.target):
            ids = pq.read_table(path, columns=["id"])["id"].to_pylist()
            found.setdefault(path.parent.name, []).extend(ids)
        return {name: sorted(ids) for name, ids in found.items()}

    def stamps(self) -> dict[str, tuple[str, int]]:
        """Give every file below the target with its hash and modification time."""
        return stamps(self.target)


def later(pipeline: Pipeline, by: timedelta) -> Pipeline:
    """Give the pipeline as it is when that time has passed by its ledger's clock."""
    ledger = replace(pipeline.ledger, clock=lambda connection: database_time(connection) + by)
    return replace(pipeline, ledger=ledger)


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings deeply; the second wins, and None takes a key away."""
    made = dict(one)
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(made.get(key), dict):
            made[key] = merged(made[key], value)
        elif value is None:
            made.pop(key, None)
        else:
            made[key] = value
    return made


def load(
    pipeline: Pipeline,
    window: DataInterval | None = None,
    *,
    until: datetime | None = None,
    owner: str = "cli",
    now: datetime = NOW,
) -> Announced:
    """Load once."""
    return pipeline.load(Run(f"run-{window}", owner, window, until), now, local)


def publish(pipeline: Pipeline, owner: str = "cli", now: datetime = NOW) -> list[PublishOutcome]:
    """Publish everything pending; an error is an error."""
    outcomes = list(pipeline.publish_all(owner, now))
    assert [item.error for item in outcomes if item.error] == []
    return outcomes


def look_again(pipeline: Pipeline, now: datetime) -> None:
    """Say anew why partitions are not out yet: a restored ledger knows that after the next look."""
    for state in pipeline.ledger.partitions.all():
        pipeline.evaluate(state.partition, now)


def decide(
    pipeline: Pipeline, partition: Partition, *, approved: bool = True, comment: str = ""
) -> str:
    """Decide, as ada, on the publication that waits now; its digest."""
    proposed = pipeline.ledger.publications.proposed(partition)
    assert proposed is not None
    shown = proposed.publication.digest
    pipeline.decide(
        partition, publication=shown, approved=approved, by="ada", comment=comment, now=NOW
    )
    return shown


def published_ids(target: Path) -> dict[str, list[int]]:
    """Read the ids of the published rows by partition; markers and listings show the same files.

    Where no marker stands a commit is under way, and only who lists the table sees its files.
    """
    found = {}
    for marker in sorted(target.rglob("_SUCCESS")):
        listed = [file["name"] for file in json.loads(marker.read_bytes())["files"]]
        visible = [item.name for item in visible_files(marker.parent)]
        assert sorted(listed) == visible, f"{marker.parent}: a listing sees other files"
        found[marker.parent.name] = sorted(
            number
            for name in listed
            for number in pq.read_table(marker.parent / name, columns=["id"])["id"].to_pylist()
        )
    unmarked = {path.parent for path in visible_below(target)} - {
        path.parent for path in target.rglob("_SUCCESS")
    }
    assert not unmarked, f"files without a marker: {unmarked}"
    return found


def stamps(root: Path) -> dict[str, tuple[str, int]]:
    """Give every file below a directory with its hash and modification time."""
    return {
        str(path.relative_to(root)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def stand_as_before(place: Path, before: Path) -> None:
    """Put a directory or a database back as it was copied before."""
    if before.is_dir():
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(before, place)
    else:
        for beside in place.parent.glob(f"{place.name}*"):
            beside.unlink()
        shutil.copy(before, place)
