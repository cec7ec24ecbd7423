"""What a commit costs: many partitions of one file each, published by one command.

`python -m benchmarks.committing` prints, for each ledger and place, milliseconds per partition from
first to last, and those of CPU in this process; the places take turns, round by round, so that what
else the machine does falls on all of them. `--metastore` also lists the partitions in a Hive
metastore, whose tables are dropped again; `--store` publishes into a bucket of a store whose keys
are found as AWS's own tools find them. PostgreSQL is that of `embedded:`, in a folder of its own.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tidegate.execute.local import LocalExecutor
from tidegate.metastore.connections import ask
from tidegate.model.run import Run
from tidegate.pipeline import Pipeline, open_pipeline

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SQLITE, POSTGRES = "SQLite", "PostgreSQL"
DISK, LISTED, STORE = "disk", "disk, listed in a metastore", "store"


@dataclass(frozen=True)
class Case:
    """Where the partitions are published, and where that is kept."""

    ledger: str
    place: str

    def pipeline(self, folder: Path, name: str, given: argparse.Namespace) -> Pipeline:
        """Return a pipeline with as many partitions pending as are given, of one file each."""
        landing = folder / "landing"
        landing.mkdir()
        shops = [f"shop-{number:05d}" for number in range(given.partitions)]
        rows = pa.table({"id": list(range(given.partitions)), "shop": shops})
        pq.write_table(rows, landing / "a.parquet")
        root = f"{given.store}/{name}" if self.place == STORE else str(folder)
        target: dict[str, Any] = {"path": f"{root}/out", "partition_by": {"shop": "shop"}}
        policies = ["success-file"]
        if self.place == LISTED:
            target["metastore"] = {"uri": given.metastore, "table": f"default.{name}"}
            policies.insert(0, "metastore")
        said: dict[str, Any] = {
            "name": "committing",
            "source": {"kind": "files", "path": str(landing)},
            "target": target,
            "commit": {"trigger": "process-time", "policies": policies},
        }
        if self.place == STORE and given.endpoint:
            said["s3"] = {"endpoint": given.endpoint}
        file = folder / "committing.yaml"
        file.write_text(yaml.safe_dump(said))
        is_served = self.ledger == POSTGRES
        ledger = f"embedded:///{folder}/pg" if is_served else f"sqlite:///{folder}/ledger.db"
        pipeline = open_pipeline(file, ledger=ledger)
        pipeline.load(Run("load", "benchmark"), NOW, lambda _: LocalExecutor(2))
        return pipeline


def main() -> None:
    """Print the medians over all rounds."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--partitions", type=int, default=1000)
    said.add_argument("--rounds", type=int, default=3)
    said.add_argument("--ledgers", nargs="+", default=[SQLITE, POSTGRES])
    said.add_argument("--metastore", help="thrift://HOST:9083 of one that may get tables")
    said.add_argument("--store", help="s3://BUCKET, into which objects may be written")
    said.add_argument("--endpoint", help="address of the store, if it is not AWS's")
    given = said.parse_args()
    places = [DISK, *([LISTED] if given.metastore else []), *([STORE] if given.store else [])]
    cases = [Case(ledger, place) for ledger in given.ledgers for place in places]
    found: dict[Case, list[tuple[float, float]]] = {case: [] for case in cases}
    for number in range(given.rounds):
        for case, spent in found.items():
            name = f"committing_{number}_{time.time_ns()}"
            with tempfile.TemporaryDirectory() as folder:
                spent.append(_publish_all(case.pipeline(Path(folder), name, given)))
            if case.place == LISTED:
                ask(given.metastore, functools.partial(_drop, name))
    print("| ledger | published to | ms each | CPU ms each |\n|---|---|---|---|")
    for case, spent in found.items():
        wall, computed = (median(times) for times in zip(*spent, strict=True))
        print(f"| {case.ledger} | {case.place} | {wall:.1f} | {computed:.1f} |")


def _drop(name: str, client: Any) -> None:
    client.drop_table("default", name, False)


def _publish_all(pipeline: Pipeline) -> tuple[float, float]:
    """Publish everything that is due; return the milliseconds of each, and of CPU."""
    # The first one makes the table.
    first = pipeline.unpublished()[0]
    assert pipeline.publish(first, "benchmark", NOW).state == "committed"
    started, computed = time.perf_counter(), time.process_time()
    outcomes = [*pipeline.publish_all("benchmark", NOW)]
    spent = time.perf_counter() - started, time.process_time() - computed
    assert {item.state for item in outcomes} == {"committed"}, outcomes
    return spent[0] * 1000 / len(outcomes), spent[1] * 1000 / len(outcomes)


if __name__ == "__main__":
    main()
