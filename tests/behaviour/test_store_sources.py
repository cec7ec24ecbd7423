"""Pipelines over plain files in a store, which other pipelines may publish there."""

from __future__ import annotations

import io
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog
from typer.testing import CliRunner

from behaviour.test_rewritten_files import rebuild
from behaviour.test_stores import KEYS, PROCESS_TIME, bucket, way
from behaviour.test_upsert import CHANGES, UPSERT, ChangingLake
from s3_servers import GATEWAY, KEY, SECRET, s3_server
from small_lake import DAY_1, NOW, SCHEMA, SmallLake, load, merged, publish
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.cli.first_file import draft_pipeline
from tidegate.errors import FolderOfTable, MarkedFilesReplaced, PlacesOverlap
from tidegate.storage import s3_client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from behaviour.test_stores import Bucket
    from s3_faults import Way
    from s3_servers import S3Server

pytestmark = pytest.mark.on_disk

__all__ = ["bucket", "way"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    kind = "versitygw" if GATEWAY.exists() else "moto"
    with s3_server(kind, tmp_path_factory.mktemp("gateway") / "store") as found:
        yield found


def reached(way: Way) -> dict[str, Any]:
    return {"s3": {"endpoint": f"http://127.0.0.1:{way.port}", "region": "us-east-1", **KEYS}}


def put(bucket: Bucket, key: str, *ids: int) -> None:
    """Write a file as pipelines of this test do, so that it may be published as it is."""
    columns = {"id": ids, "at": [DAY_1] * len(ids), "amount": [1] * len(ids)}
    written = io.BytesIO()
    pq.write_table(pa.table(columns, SCHEMA), written, compression="zstd", store_schema=False)
    bucket.client.put_object(Bucket=bucket.name, Key=key, Body=written.getvalue())


def over(root: Path, path: str, way: Way, **keys: Any) -> SmallLake:
    """Give a pipeline that reads the files below a path."""
    made = SmallLake(root, keys=merged(merged(PROCESS_TIME, reached(way)), keys))
    made.source = {"kind": "files", "path": path}
    return made


def taken(lake: SmallLake) -> dict[int, int]:
    """Load and publish; the amounts by id that are published then, each id once."""
    opened = lake.pipeline()
    load(opened)
    publish(opened)
    found = read_committed(opened.roots.target, s3=lake.keys["s3"]).to_table()
    ids = found["id"].to_pylist()
    assert len(ids) == len(set(ids))
    return dict(zip(ids, found["amount"].to_pylist(), strict=True))


def chained(root: Path, bucket: Bucket, way: Way) -> SmallLake:
    """Give a pipeline that reads by markers what another one publishes."""
    target = {"partition_by": {"dt": "dt"}}
    made = over(root, f"s3://{bucket.name}/published/orders", way, target=target)
    made.source |= {"partition_by": {"dt": "date"}, "require_marker": True}
    return made


@pytest.mark.parametrize("layout", ["in_place", pytest.param("revisions", marks=pytest.mark.slow)])
def test_late_rows_that_another_pipeline_publishes_are_taken_in_once(
    tmp_path: Path, bucket: Bucket, way: Way, layout: str
) -> None:
    target = {"path": f"s3://{bucket.name}/published/orders", "layout": layout}
    upstream = SmallLake(
        tmp_path / "up", keys=merged(merged(PROCESS_TIME, reached(way)), {"target": target})
    )
    below = chained(tmp_path / "below", bucket, way)

    for days, expected in (({1: 2, 2: 1}, 3), ({1: 1}, 4)):
        upstream.commit(days)
        load(upstream.pipeline())
        publish(upstream.pipeline())

        assert taken(below) == dict.fromkeys(range(1, expected + 1), 1)

    before = len(way.seen)
    load(below.pipeline())
    read = [key for method, key in way.seen[before:] if method == "GET" and "/published/" in key]
    # Nothing is new, and the objects are told by their listing.
    assert {key.rpartition("/")[2] for key in read if "list-type" not in key} == {"_SUCCESS"}
    assert publish(below.pipeline()) == []
    assert list(below.pipeline().findings()) == []


def test_row_that_another_pipeline_replaced_is_told_and_a_rebuild_takes_it_in(
    tmp_path: Path, bucket: Bucket, way: Way
) -> None:
    target = {"path": f"s3://{bucket.name}/published/orders", "layout": "revisions"}
    keys = merged(merged(UPSERT, reached(way)), {"target": target})
    upstream = ChangingLake(tmp_path / "up", keys=keys)
    below = chained(tmp_path / "below", bucket, way)
    upstream.write({1: (1, 10), 2: (1, 20), 3: (2, 30)})
    publish(upstream.loaded(source=CHANGES))
    assert taken(below) == {1: 10, 2: 20, 3: 30}

    upstream.write({2: (1, 21), 4: (3, 40)})
    publish(upstream.loaded(source=CHANGES))
    with pytest.raises(MarkedFilesReplaced):
        load(below.pipeline())
    # Both were read together, so that either may have rows of the file that is gone.
    rebuild(below.pipeline(), 1, 2)
    publish(below.pipeline())

    assert taken(below) == {1: 10, 2: 21, 3: 30, 4: 40}


@pytest.mark.parametrize("is_far", [True, False], ids=["in the store", "on a disk"])
def test_file_is_published_as_it_is_by_a_copy_and_no_secret_is_written(
    tmp_path: Path, bucket: Bucket, way: Way, *, is_far: bool
) -> None:
    put(bucket, "landing/a b=1.parquet", *range(20_000))
    lake = over(tmp_path / "lake", f"s3://{bucket.name}/landing", way)
    place = f"s3://{bucket.name}/out/orders" if is_far else str(lake.target)
    lake.keys = merged(lake.keys, {"target": {"path": place, "partition_by": None}})

    assert taken(lake) == dict.fromkeys(range(20_000), 1)

    # By the look, to choose it, and to look again once it was copied; and on a disk for its bytes.
    asked = Counter(method for method, path in way.seen if "a%20b" in path)
    assert asked["GET"] == (3 if is_far else 4)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert not any(SECRET.encode() in bucket.read(key) for key in bucket.all())


@pytest.mark.parametrize(
    ("target", "work"),
    [("landing/out", "work"), ("landing", "work"), ("out", "landing/work"), ("", "../work")],
)
def test_target_or_work_that_overlaps_the_source_is_refused(
    tmp_path: Path, bucket: Bucket, way: Way, target: str, work: str
) -> None:
    bucket_ = f"s3://{bucket.name}"
    lake = over(tmp_path / "lake", f"{bucket_}/landing", way)
    said = {"path": f"{bucket_}/{target}".rstrip("/"), "work": f"{bucket_}/{work}"}
    if not target:
        said["work"] = "s3://another/work"

    with pytest.raises(PlacesOverlap):
        lake.pipeline(target=said)


@pytest.mark.follows("FolderOfTable")
def test_table_in_a_store_is_read_by_its_catalog(tmp_path: Path, bucket: Bucket, way: Way) -> None:
    root, uri = f"s3://{bucket.name}/raw", f"sqlite:///{tmp_path}/catalog.db"
    endpoint = {"s3.endpoint": bucket.server.endpoint, "s3.region": "us-east-1"}
    known = {"s3.access-key-id": KEY, "s3.secret-access-key": SECRET}
    catalog = SqlCatalog("lake", uri=uri, warehouse=root, **endpoint, **known)
    catalog.create_namespace("raw")
    rows = pa.table({"id": [1], "at": [DAY_1], "amount": [7]}, SCHEMA)
    catalog.create_table("raw.orders", SCHEMA, location=f"{root}/orders").append(rows)
    lake = over(tmp_path / "lake", f"{root}/orders/data", way)
    with pytest.raises(FolderOfTable, match=f"of kind iceberg in {root}/orders: .* by its catalog"):
        load(lake.pipeline())

    told = {"s3.access-key-id": "${env:LAKE_KEY}", "s3.secret-access-key": "${env:LAKE_SECRET}"}
    named = {"name": "lake", "type": "sql", "uri": uri, "warehouse": root, **endpoint, **told}
    lake.source = {"kind": "iceberg", "catalog": named, "table": "raw.orders"}

    assert taken(lake) == {1: 7}


def test_check_and_init_look_at_a_folder_in_a_store(
    tmp_path: Path, bucket: Bucket, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, "landing/dt=2026-02-01/a.parquet", 1)
    root = f"s3://{bucket.name}/landing"
    lake = over(tmp_path / "lake", root, way)
    lake.found_by_name(monkeypatch)
    lake.pipeline()
    for name, said in (("ACCESS_KEY_ID", KEY), ("SECRET_ACCESS_KEY", SECRET)):
        monkeypatch.setenv(f"AWS_{name}", said)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", lake.keys["s3"]["endpoint"])

    checked = CliRunner().invoke(app, ["check", "orders"])
    drafted = draft_pipeline(root, NOW, name="drafted", target=str(tmp_path / "x"))

    said = "".join(checked.output.split())
    assert checked.exit_code == 0, checked.output
    assert f"files{root},head" in said
    assert "`source.partition_by:{dt:date}`" in said
    source = yaml.safe_load(drafted.text)["source"]
    assert (source["path"], source["partition_by"]) == (root, {"dt": "date"})


@pytest.mark.follows("CredentialsUnset")
def test_first_draft_asks_for_variables_because_there_is_no_pipeline_file_yet(
    bucket: Bucket, way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    # Each command is a process of its own, which finds its credentials anew.
    monkeypatch.setattr(s3_client, "_client", s3_client._client.__wrapped__)
    put(bucket, "landing/a.parquet", 1)
    out = tmp_path / "landing.yaml"
    asked = ["init", "--from", f"s3://{bucket.name}/landing", "--out", str(out)]

    refused = CliRunner().invoke(app, asked, catch_exceptions=False)

    told = " ".join(refused.output.split())
    assert refused.exit_code == 1
    assert "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in told
    assert "AWS_ENDPOINT_URL_S3" in told
    assert "s3.connection" not in told
    # What the message says to do.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{way.port}")
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert out.exists()
