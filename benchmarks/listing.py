"""What the policy `metastore` adds to a commit: many partitions of one file, with it and without.

`python -m benchmarks.listing --uri thrift://HOST:9083` prints milliseconds per partition and their
ratio, and those of CPU in this process, without the server's; rounds with and without take turns,
so that what else the machine does falls on both. The tables that it makes in the database `default`
are dropped again.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
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
WITH, WITHOUT = "metastore, then marker", "marker alone"


def main() -> None:
    """Print the medians over all rounds."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--uri", required=True, help="a Hive metastore that may get tables")
    said.add_argument("--partitions", type=int, default=1000)
    said.add_argument("--threads", type=int, default=4, help="commits at once")
    said.add_argument("--rounds", type=int, default=3)
    given = said.parse_args()
    found: dict[str, list[tuple[float, float]]] = {WITH: [], WITHOUT: []}
    for number in range(given.rounds):
        for title, spent in found.items():
            name = f"listing_{number}_{int(time.time())}"
            uri = given.uri if title == WITH else None
            with tempfile.TemporaryDirectory() as folder:
                pipeline = _loaded(Path(folder), name, uri, given.partitions)
                spent.append(_commit_all(pipeline, given.threads))
            if uri is not None:
                ask(uri, functools.partial(_drop, name))
    print("| commits | ms each | ratio | CPU ms each | ratio |\n|---|---|---|---|---|")
    base = _medians(found[WITHOUT])
    for title, spent in found.items():
        pairs = zip(_medians(spent), base, strict=True)
        print(f"| {title} |", " | ".join(f"{ms:.1f} | {ms / of:.2f}" for ms, of in pairs), "|")


def _medians(spent: list[tuple[float, float]]) -> list[float]:
    return [median(times) for times in zip(*spent, strict=True)]


def _drop(name: str, client: Any) -> None:
    client.drop_table("default", name, False)


def _loaded(folder: Path, name: str, uri: str | None, partitions: int) -> Pipeline:
    """Return a pipeline with as many partitions pending, each of one file with one row."""
    landing = folder / "landing"
    landing.mkdir()
    shops = [f"shop-{number:05d}" for number in range(partitions)]
    rows = pa.table({"id": list(range(partitions)), "shop": shops})
    pq.write_table(rows, landing / "a.parquet")
    target: dict[str, Any] = {"path": str(folder / "out"), "partition_by": {"shop": "shop"}}
    policies = ["success-file"]
    if uri is not None:
        target["metastore"] = {"uri": uri, "table": f"default.{name}"}
        policies.insert(0, "metastore")
    file = folder / "listing.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "name": "listing",
                "source": {"kind": "files", "path": str(landing)},
                "target": target,
                "commit": {"trigger": "process-time", "policies": policies},
            }
        )
    )
    pipeline = open_pipeline(file, ledger=f"sqlite:///{folder}/ledger.db")
    pipeline.load(Run("load", "benchmark"), NOW, lambda _: LocalExecutor(2))
    return pipeline


def _commit_all(pipeline: Pipeline, threads: int) -> tuple[float, float]:
    """Publish every partition, several at once; return the milliseconds of each, and of CPU."""
    pending = pipeline.unpublished()

    def publish(number: int) -> None:
        outcome = pipeline.publish(pending[number], f"benchmark-{number}", NOW)
        assert outcome.state == "committed", outcome

    # The first one makes the table.
    publish(0)
    started, computed = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(publish, range(1, len(pending))))
    spent = time.perf_counter() - started, time.process_time() - computed
    return spent[0] * 1000 / (len(pending) - 1), spent[1] * 1000 / (len(pending) - 1)


if __name__ == "__main__":
    main()
