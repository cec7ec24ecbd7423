"""Read an Iceberg table from a store and from a local disk, taking turns; and count the requests.

`python -m benchmarks.reading_stores` starts versitygw (`make setup-s3`) on a temporary directory,
makes the same table in both places, and stages some of its columns: seconds and their ratio; then
the requests for each data file, against one for its footer and one for the chunks of columns that
are beside one another.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
import uuid
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
import yaml
from pyiceberg.catalog.sql import SqlCatalog

from benchmarks.gateway import KEY, REGION, SECRET, client, gateway
from benchmarks.orders import make_orders
from benchmarks.pipelines import NOW
from tidegate.execute.local import LocalExecutor
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline

COLUMNS = ("order_id", "amount", "ordered_at")


@dataclass(frozen=True)
class Place:
    """Where a table is."""

    title: str
    catalog: dict[str, str]

    def make(self, source: Path) -> None:
        """Make the table, of one data file for each file of the source."""
        catalog = SqlCatalog("lake", **self.catalog)
        catalog.create_namespace("raw")
        files = sorted(source.glob("*.parquet"))
        table = catalog.create_table("raw.orders", pq.read_schema(files[0]))
        for file in files:
            table.append(pq.read_table(file))

    def data_files(self) -> list[Any]:
        """Return the data files, as the table's metadata describes them."""
        table = SqlCatalog("lake", **self.catalog).load_table("raw.orders")
        return [task.file for task in table.scan().plan_files()]


def main() -> None:
    """Print both tables."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--million-rows", type=int, default=10)
    said.add_argument("--rounds", type=int, default=3)
    given = said.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(gateway(folder / "store"))
        bucket = f"bench-{uuid.uuid4().hex[:8]}"
        client(store).create_bucket(Bucket=bucket)
        places = _places(folder, store, bucket)
        source = make_orders(folder / "orders", given.million_rows)
        for place in places:
            place.make(source)
        found: dict[str, list[float]] = {place.title: [] for place in places}
        log = folder / "store" / "requests"
        before = 0
        for number in range(given.rounds + 1):
            for place in places:
                before = log.stat().st_size
                started = time.perf_counter()
                _stage(folder, place)
                if number:
                    found[place.title].append(time.perf_counter() - started)
        base = median(found[places[0].title])
        print("| table in | seconds | ratio |\n|---|---|---|")
        for title, spent in found.items():
            print(f"| {title} | {median(spent):.2f} | {median(spent) / base:.2f} |")
        _print_requests(log.read_text()[before:], places[0], places[-1])


def _places(folder: Path, store: str, bucket: str) -> tuple[Place, Place]:
    reached = {
        "s3.endpoint": store,
        "s3.region": REGION,
        "s3.access-key-id": KEY,
        "s3.secret-access-key": SECRET,
    }
    local = {"uri": f"sqlite:///{folder}/disk.db", "warehouse": f"file://{folder}/warehouse"}
    far = {"uri": f"sqlite:///{folder}/store.db", "warehouse": f"s3://{bucket}/warehouse"}
    return Place("local disk", local), Place("store", {**far, **reached})


def _stage(folder: Path, place: Place) -> None:
    root = folder / uuid.uuid4().hex
    described = {
        "name": "orders",
        "source": {
            "kind": "iceberg",
            "catalog": {"name": "lake", "type": "sql", **place.catalog},
            "table": "raw.orders",
            "start": "full",
            "read": {"columns": list(COLUMNS)},
        },
        "event_time": "ordered_at",
        "target": {
            "path": str(root / "out"),
            "partition_by": {"dt": "day(ordered_at)"},
            "copy_whole_files": "never",
        },
    }
    root.mkdir()
    file = root / "orders.yaml"
    file.write_text(yaml.safe_dump(described))
    pipeline = open_pipeline(file, ledger=f"sqlite:///{root}/ledger.db")
    pipeline.load(Run("bench", "bench"), NOW, lambda _: LocalExecutor())


def _print_requests(log: str, local: Place, far: Place) -> None:
    """Print what was asked of each data file, by the log of the last round."""
    names = {file.file_path.rpartition("/")[2] for file in far.data_files()}
    asked = [line for line in log.splitlines() if any(name in line for name in names)]
    reads = [line for line in asked if "s3_GetObject" in line]
    files = [file.file_path.removeprefix("file://") for file in local.data_files()]
    least = sum(map(_least, files)) / len(files)
    print("\n| per data file | requests | that read | at least |\n|---|---|---|---|")
    requests, reading = len(asked) / len(files), len(reads) / len(files)
    print(f"| {len(files)} files | {requests:.1f} | {reading:.1f} | {least:.1f} |")


def _least(path: str) -> int:
    """Return how many reads a file needs: of its footer, and of columns beside one another."""
    metadata = pq.read_metadata(path)
    wanted = [
        [group.column(at).path_in_schema in COLUMNS for at in range(group.num_columns)]
        for group in map(metadata.row_group, range(metadata.num_row_groups))
    ]
    return 1 + sum(here and not left for row in wanted for left, here in pairwise([False, *row]))


if __name__ == "__main__":
    main()
