"""Publish the same rows to a store by several ways, taking turns; prints seconds and their ratios.

`python -m benchmarks.publishing` starts versitygw (`make setup-s3`) on a temporary directory;
`--store http://HOST:PORT` takes another store, with the credentials of the environment. The ways
are: Tidegate with part files that are sent to where they are published and completed by the commit,
Tidegate with files that are staged and copied, and, with `--jars DIR` of hadoop-aws,
spark-hadoop-cloud and AWS's SDK, Spark writing the same partitions through S3A's magic committer.
Each begins with an engine that runs and has done a round before, and ends when readers find
everything.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow.dataset as ds
import yaml

from benchmarks.gateway import REGION, client, gateway
from benchmarks.orders import make_orders
from benchmarks.pipelines import NOW
from tidegate import read_committed
from tidegate.execute.local import LocalExecutor
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    Way = Callable[[str], None]
    """Publishes to an address that has nothing yet."""

SENT, STAGED, MAGIC = "Tidegate, sent", "Tidegate, staged and copied", "Spark, magic committer"


def main() -> None:
    """Print the medians over all rounds."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--store", help="address of a store; by default one is started")
    said.add_argument("--million-rows", type=int, default=10)
    said.add_argument("--rounds", type=int, default=3)
    said.add_argument("--jars", type=Path, help="a directory of jars, for Spark's way")
    given = said.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = given.store or stack.enter_context(gateway(folder / "store"))
        source = make_orders(folder / "orders", given.million_rows)
        ways = _ways(folder, source, store, given.jars)
        found: dict[str, list[float]] = {title: [] for title in ways}
        bucket = f"bench-{uuid.uuid4().hex[:8]}"
        client(store).create_bucket(Bucket=bucket)
        for number in range(given.rounds + 1):
            for title, way in ways.items():
                address = f"s3://{bucket}/round-{number}/{uuid.uuid4().hex[:8]}/orders"
                started = time.perf_counter()
                way(address)
                if number:
                    found[title].append(time.perf_counter() - started)
                _check(source, address, store, markers=title != MAGIC)
    print("| published by | seconds | ratio |\n|---|---|---|")
    base = median(found[SENT])
    for title, spent in found.items():
        print(f"| {title} | {median(spent):.2f} | {median(spent) / base:.2f} |")


def _ways(folder: Path, source: Path, store: str, jars: Path | None) -> dict[str, Way]:
    ways: dict[str, Way] = {
        SENT: lambda address: _publish(folder, source, store, address, "1d"),
        STAGED: lambda address: _publish(folder, source, store, address, "0s"),
    }
    if jars is not None:
        spark = _spark(store, jars)
        ways[MAGIC] = lambda address: _write(spark, source, address)
    return ways


def _publish(folder: Path, source: Path, store: str, address: str, age: str) -> None:
    described = {
        "name": "orders",
        "source": {"kind": "files", "path": str(source), "start": "full"},
        "event_time": "ordered_at",
        "target": {
            "path": address,
            "partition_by": {"dt": "day(ordered_at)"},
            "multipart_max_age": age,
        },
        "s3": {"endpoint": store, "region": REGION},
        "commit": {"trigger": "process-time"},
    }
    root = folder / uuid.uuid4().hex
    root.mkdir()
    file = root / "orders.yaml"
    file.write_text(yaml.safe_dump(described))
    pipeline = open_pipeline(file, ledger=f"sqlite:///{root}/ledger.db")
    pipeline.load(Run("bench", "bench"), NOW, lambda _: LocalExecutor())
    for outcome in pipeline.publish_all("bench", NOW):
        if outcome.state != "committed":
            sys.exit(f"{outcome}")


def _spark(store: str, jars: Path) -> Any:
    from pyspark.sql import SparkSession

    committers = "org.apache.spark.internal.io.cloud"
    settings = {
        "spark.driver.extraClassPath": f"{jars}/*",
        "spark.hadoop.fs.s3a.endpoint": store,
        "spark.hadoop.fs.s3a.endpoint.region": REGION,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": str(urlsplit(store).scheme == "https"),
        "spark.hadoop.fs.s3a.access.key": os.environ["AWS_ACCESS_KEY_ID"],
        "spark.hadoop.fs.s3a.secret.key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "spark.hadoop.fs.s3a.committer.name": "magic",
        "spark.hadoop.fs.s3a.committer.magic.enabled": "true",
        "spark.sql.sources.commitProtocolClass": f"{committers}.PathOutputCommitProtocol",
        "spark.sql.parquet.output.committer.class": f"{committers}.BindingParquetOutputCommitter",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "4g",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[*]").appName("publishing")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _write(spark: Any, source: Path, address: str) -> None:
    from pyspark.sql import functions as f

    rows = spark.read.parquet(str(source)).withColumn("dt", f.to_date("ordered_at"))
    rows.write.partitionBy("dt").parquet(address.replace("s3://", "s3a://"))


def _check(source: Path, address: str, store: str, *, markers: bool) -> None:
    """Check that every row is there."""
    expected = ds.dataset(source).count_rows()
    if markers:
        found = read_committed(address, s3={"endpoint": store, "region": REGION}).count_rows()
    else:
        from pyarrow.fs import S3FileSystem

        place = urlsplit(store)
        files = S3FileSystem(
            access_key=os.environ["AWS_ACCESS_KEY_ID"],
            secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
            region=REGION,
            endpoint_override=place.netloc,
            scheme=place.scheme,
        )
        found = ds.dataset(address.removeprefix("s3://"), filesystem=files).count_rows()
    if found != expected:
        sys.exit(f"{address}: expected {expected} rows, found {found}")


if __name__ == "__main__":
    main()
