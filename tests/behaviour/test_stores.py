"""Targets in a store: loads, commits and upkeep keep their promises among objects."""

from __future__ import annotations

import io
import json
import os
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from behaviour.test_erase import RULE, RUN
from behaviour.test_undo import ADA
from behaviour.test_upsert import CHANGES, UPSERT, ChangingLake
from s3_faults import way_to
from s3_servers import KEY, SECRET, s3_server
from small_lake import NOW, SmallLake, day, interval, load, local, merged, publish
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.errors import (
    BucketMissing,
    CredentialsExpired,
    CredentialsMissing,
    PublishedTableMissing,
    StoreDenied,
    StoreOptionWrong,
    StoreSilent,
)
from tidegate.storage import s3_client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from s3_faults import Way
    from s3_servers import S3Server
    from tidegate.pipeline import Pipeline

PROCESS_TIME = {"commit": {"trigger": "process-time"}}
KEYS = {"access_key": "${env:LAKE_KEY}", "secret_key": "${env:LAKE_SECRET}"}


@pytest.fixture(scope="module", params=["moto", "versitygw"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[S3Server]:
    with s3_server(request.param, tmp_path_factory.mktemp("gateway") / "store") as found:
        yield found


@pytest.fixture
def way(server: S3Server) -> Iterator[Way]:
    with way_to(server) as found:
        yield found


@dataclass
class Bucket:
    """A bucket of a test, seen by the store's own client."""

    server: S3Server
    name: str

    @property
    def client(self) -> Any:
        return self.server.client()

    def all(self) -> list[str]:
        """Give every key."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    def read(self, key: str) -> bytes:
        """Give an object's bytes."""
        return bytes(self.client.get_object(Bucket=self.name, Key=key)["Body"].read())

    def rows(self) -> dict[str, list[int]]:
        """Give the ids that the markers list, by partition; no other file is in the table."""
        table = [key for key in self.all() if key.startswith("published/orders/")]
        found: dict[str, list[int]] = {}
        listed = set()
        for key in table:
            folder, _, name = key.rpartition("/")
            if name == "_SUCCESS":
                said = json.loads(self.read(key))
                parts = [f"{folder}/{item['name']}" for item in said["files"]]
                listed |= set(parts)
                found[folder.rpartition("/")[2]] = sorted(
                    number
                    for part in parts
                    for number in pq.read_table(io.BytesIO(self.read(part)), columns=["id"])[
                        "id"
                    ].to_pylist()
                )
        assert {key for key in table if key.endswith(".parquet")} == listed
        return found


@pytest.fixture
def bucket(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.setenv("LAKE_KEY", KEY)
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    return Bucket(server, server.bucket().removeprefix("s3://"))


def told(bucket: Bucket, way: Way, **keys: Any) -> dict[str, Any]:
    """Give the keys of a pipeline file whose target is in the bucket."""
    place = {"target": {"path": f"s3://{bucket.name}/published/orders"}}
    reached = {"endpoint": f"http://127.0.0.1:{way.port}", "region": "us-east-1", **KEYS}
    return merged(merged(PROCESS_TIME, {**place, "s3": reached}), keys)


@pytest.fixture
def lake(tmp_path: Path, bucket: Bucket, way: Way) -> SmallLake:
    return SmallLake(tmp_path / "lake", keys=told(bucket, way))


def grown(lake: SmallLake, commits: int = 3) -> Pipeline:
    """Publish a revision of the first day per commit, with two rows more each."""
    for _ in range(commits):
        lake.commit({1: 2, lake.commits + 2: 1})
        load(lake.pipeline(), interval(lake.commits))
        publish(lake.pipeline())
    return lake.pipeline()


def ids(bucket: Bucket, number: int = 1) -> list[int]:
    return bucket.rows()[f"dt=2026-02-{number:02d}"]


def test_rows_are_published_and_each_stands_once(lake: SmallLake, bucket: Bucket) -> None:
    opened = grown(lake)

    found = bucket.rows()
    assert sorted(number for some in found.values() for number in some) == list(range(1, 10))
    assert list(opened.findings()) == []
    load(lake.pipeline(), interval(2))
    assert publish(lake.pipeline()) == []
    assert bucket.rows() == found


def test_readers_see_what_the_markers_list(lake: SmallLake, bucket: Bucket) -> None:
    grown(lake)
    root, reached = f"s3://{bucket.name}/published/orders", lake.keys["s3"]

    found = read_committed(root, s3=reached)
    one = read_committed(root, s3=reached, partitions=["dt=2026-02-01"])

    assert ids_of(found) == list(range(1, 10))
    assert ids_of(one) == ids(bucket)
    assert one.to_table(filter=ds.field("dt") == "2026-02-02").num_rows == 0
    with pytest.raises(PublishedTableMissing, match="nothing"):
        read_committed(f"s3://{bucket.name}/published/none", s3=reached)


def test_revision_with_a_directory_of_its_own_is_read_while_it_stands(
    lake: SmallLake, bucket: Bucket
) -> None:
    lake.keys = merged(lake.keys, {"target": {"layout": "revisions"}})
    opened = grown(lake)
    root, reached = f"s3://{bucket.name}/published/orders", lake.keys["s3"]

    first = read_committed(root, s3=reached, at_revision={"dt=2026-02-01": 2})

    assert ids_of(read_committed(root, s3=reached)) == list(range(1, 10))
    assert [it for it in ids_of(first) if it in {1, 2, 4, 5, 7, 8}] == [1, 2, 4, 5]
    assert list(opened.findings()) == []


@pytest.mark.parametrize("age", ["1d", "0s"], ids=["sent", "staged"])
def test_work_directory_may_be_in_another_bucket(lake: SmallLake, bucket: Bucket, age: str) -> None:
    work = f"{bucket.server.bucket()}/work/orders"
    lake.keys["target"] |= {"work": work, "multipart_max_age": age}

    grown(lake)

    assert ids(bucket) == [1, 2, 4, 5, 7, 8]
    assert list(lake.pipeline().findings()) == []
    lake.pipeline().ledger.engine.dispose()
    (lake.root / "ledger.db").unlink()
    lake.pipeline().restore_ledger()
    grown(lake, 1)
    assert ids(bucket) == [1, 2, 4, 5, 7, 8, 10, 11]
    assert {key.split("/")[0] for key in bucket.all()} == {"published"}
    assert not [key for key in bucket.all() if ".tidegate-" in key]


def ids_of(found: ds.Dataset) -> list[int]:
    return sorted(found.to_table(columns=["id"])["id"].to_pylist())


def test_commit_of_staged_files_costs_two_requests_per_file_and_a_few_more(
    lake: SmallLake, bucket: Bucket, way: Way
) -> None:
    lake.keys = merged(lake.keys, {"target": {"multipart_max_age": "0s"}})
    for _ in range(8):
        lake.commit({1: 1})
        load(lake.pipeline(), interval(lake.commits))
    opened, before = lake.pipeline(), len(way.seen)

    publish(opened)

    asked = way.seen[before:]
    locked = [path.endswith("partition.lock") for _, path in asked]
    moving = asked[-locked[::-1].index(True, 1) - 1 :] if any(locked) else []
    assert ids(bucket) == list(range(1, 9))
    # Under the lock each staged file is looked at once, and copied once.
    assert len([path for _, path in moving if "part-" in path]) == 2 * 8
    assert len(moving) <= 2 * 8 + 16


def test_overwrite_replaces_a_partition(lake: SmallLake, bucket: Bucket) -> None:
    lake.keys = merged(lake.keys, {"target": {"write": "overwrite"}})
    grown(lake, 2)

    assert ids(bucket) == [4, 5]


def test_upsert_replaces_rows_by_key(tmp_path: Path, bucket: Bucket, way: Way) -> None:
    lake = ChangingLake(tmp_path / "lake", keys=told(bucket, way, **UPSERT))
    lake.write({1: (1, 10), 2: (1, 20), 3: (2, 30)})
    publish(lake.loaded(source=CHANGES))
    lake.write({2: (2, 21)}, deleted=(3,))
    publish(lake.loaded(source=CHANGES))

    assert bucket.rows() == {"dt=2026-02-01": [1], "dt=2026-02-02": [2]}


def test_commands_of_upkeep_do_as_on_a_disk(lake: SmallLake, bucket: Bucket) -> None:
    opened = grown(lake)
    everything = ids(bucket)

    assert opened.compact(day(1), RULE, "cli", NOW) is not None
    assert ids(bucket) == everything
    opened.undo(day(1), 4, ADA, "cli", NOW)
    assert ids(bucket) == everything
    opened.erase(opened.erasure("id = 2", "ada", NOW), RUN, ADA, local)
    assert ids(bucket) == [number for number in everything if number != 2]
    later = NOW + timedelta(days=400)
    garbage = opened.garbage(later, timedelta(0))
    assert opened.sweep(garbage) == garbage != ()
    assert list(opened.findings()) == []
    assert ids(bucket) == [number for number in everything if number != 2]


def test_lost_ledger_is_restored_from_the_store(lake: SmallLake, bucket: Bucket) -> None:
    opened = grown(lake)
    before = bucket.rows()
    opened.ledger.engine.dispose()
    (lake.root / "ledger.db").unlink()

    restored = lake.pipeline().restore_ledger()

    assert restored.windows == 3
    lake.commit({1: 1})
    load(lake.pipeline(), interval(lake.commits))
    publish(lake.pipeline())
    assert ids(bucket) == sorted([*before["dt=2026-02-01"], 10])


def test_upload_of_a_process_that_died_is_swept(lake: SmallLake, bucket: Bucket) -> None:
    opened = grown(lake, 1)
    key = f"{opened.roots.work.split('/', 3)[3]}/windows/000001/x/staged/part"
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key=key)

    if bucket.server.kind != "moto":  # which began every upload in 2010
        assert opened.garbage(NOW, timedelta(0)) == ()
    later = NOW + timedelta(days=400)
    assert opened.sweep(opened.garbage(later, timedelta(0)))

    assert not bucket.client.list_multipart_uploads(Bucket=bucket.name).get("Uploads")


def test_no_secret_is_written_anywhere(
    lake: SmallLake, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "tidegate")
    opened = grown(lake, 1)

    opened.ledger.engine.dispose()
    found = bucket.all()
    written = [bucket.read(key) for key in found if not key.endswith(".parquet")]
    written += [(lake.root / "ledger.db").read_bytes(), caplog.text.encode()]
    assert len(written) > 8
    assert not [text for text in written if SECRET.encode() in text or KEY.encode() in text]


@pytest.mark.parametrize("fault", ["busy", "lost", "dropped"])
def test_requests_that_fail_change_nothing_of_the_result(
    lake: SmallLake, bucket: Bucket, way: Way, fault: str
) -> None:
    way.fault = lambda _method, _path, number: fault if number % 23 == 0 else None
    grown(lake, 2)

    way.fault = lambda _method, _path, _number: None
    assert sorted(number for some in bucket.rows().values() for number in some) == [*range(1, 7)]
    assert list(lake.pipeline().findings()) == []


def check(lake: SmallLake, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Run `tidegate check`."""
    lake.found_by_name(monkeypatch)
    lake.file()
    done = CliRunner().invoke(app, ["check", "orders"], catch_exceptions=False)
    return done.exit_code, " ".join(done.output.split())


def test_check_says_that_a_good_target_is_good(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 1})

    code, said = check(lake, monkeypatch)

    assert code == 0, said
    assert "s3://" in said


@pytest.mark.follows("BucketMissing")
def test_bucket_that_is_not_there_is_told_and_made(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{bucket.name}-more"
    lake.keys = merged(lake.keys, {"target": {"path": f"s3://{name}/published/orders"}})
    lake.commit({1: 1})

    code, said = check(lake, monkeypatch)

    assert code != 0
    assert name in said
    with pytest.raises(BucketMissing, match=name):
        load(lake.pipeline())
    bucket.client.create_bucket(Bucket=name)
    load(lake.pipeline())
    publish(lake.pipeline())
    assert Bucket(bucket.server, name).rows() == {"dt=2026-02-01": [1]}


@pytest.mark.follows("StoreKeyWrong")
def test_key_that_the_store_does_not_know_is_told_as_that(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One gateway answers to it with 404, as it does of a bucket."""
    if bucket.server.kind == "moto":
        pytest.skip("moto lets every key in")
    lake.commit({1: 1})
    monkeypatch.setenv("LAKE_KEY", "nobody")

    code, said = check(lake, monkeypatch)

    assert code != 0
    assert "XAdminUserNotFound: No user exists with the provided access key ID" in said
    assert "expected the bucket" not in said
    assert "the right to" not in said
    monkeypatch.setenv("LAKE_KEY", KEY)
    code, said = check(lake, monkeypatch)
    assert code == 0, said


@pytest.mark.follows("StoreKeyWrong")
def test_secret_that_is_not_the_keys_is_told_as_that_and_where_it_comes_from(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bucket.server.kind == "moto":
        pytest.skip("moto lets every key in")
    lake.commit({1: 1})
    monkeypatch.setenv("LAKE_SECRET", "wrong")

    code, said = check(lake, monkeypatch)

    assert code != 0
    assert "does not accept the access key or its secret: SignatureDoesNotMatch" in said
    assert "the variables of `s3.access_key` and `s3.secret_key`" in said
    assert "the right to" not in said
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    code, said = check(lake, monkeypatch)
    assert code == 0, said


def test_other_region_with_which_loads_work_is_no_problem_of_the_check(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer of 400 to HEAD has no text; one to a list tells the client the region."""
    lake.keys = merged(lake.keys, {"s3": {"region": "eu-central-1"}})
    lake.commit({1: 1})

    code, said = check(lake, monkeypatch)

    assert code == 0, said
    load(lake.pipeline())
    publish(lake.pipeline())
    assert bucket.rows() == {"dt=2026-02-01": [1]}


@pytest.mark.follows("StoreRegionWrong")
def test_region_that_the_store_refuses_is_told_and_set(
    lake: SmallLake, bucket: Bucket, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.keys = merged(lake.keys, {"s3": {"region": "eu-central-1"}})
    lake.commit({1: 1})
    way.fault = lambda _method, _path, _number: "region"

    code, said = check(lake, monkeypatch)

    assert code != 0
    assert "refuses the region of the requests" in said
    assert "Set `s3.region`" in said
    assert "the right to" not in said
    way.fault = lambda _method, _path, _number: None
    lake.keys = merged(lake.keys, {"s3": {"region": "us-east-1"}})
    code, said = check(lake, monkeypatch)
    assert code == 0, said


def problems(said: str) -> list[str]:
    """Give the subjects of a check with a problem."""
    return re.findall(r"✗ orders: (\w+)", said)


def test_bucket_of_the_target_that_is_missing_is_told_of_the_target(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.keys = merged(lake.keys, {"target": {"path": "s3://no-such-bucket/published"}})
    lake.commit({1: 1})

    _, said = check(lake, monkeypatch)

    assert "target" in problems(said)
    assert "source" not in problems(said)


def test_bucket_of_the_source_that_is_missing_is_told_of_the_source(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.source = {"kind": "files", "path": "s3://no-such-bucket/landing"}

    _, said = check(lake, monkeypatch)

    assert problems(said) == ["source"]


@pytest.mark.follows("StoreSilent")
def test_store_that_is_away_is_waited_for(
    lake: SmallLake, bucket: Bucket, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "_ATTEMPTS", 1)
    lake.commit({1: 1})
    way.fault = lambda _method, _path, _number: "dropped"

    with pytest.raises(StoreSilent):
        load(lake.pipeline())
    way.fault = lambda _method, _path, _number: None
    load(lake.pipeline())
    publish(lake.pipeline())

    assert bucket.rows() == {"dt=2026-02-01": [1]}


@pytest.mark.on_disk
@pytest.mark.follows("CredentialsMissing")
@pytest.mark.follows("StoreOptionWrong")
def test_credentials_that_are_missing_are_told_and_found(
    lake: SmallLake, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    lake.keys["s3"] = {key: text for key, text in lake.keys["s3"].items() if key not in KEYS}
    lake.commit({1: 1})

    with pytest.raises(CredentialsMissing):
        load(lake.pipeline())
    with pytest.raises(StoreOptionWrong, match="lake-admin"):
        load(lake.pipeline(s3={"profile": "lake-admin"}))
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        f"[lake-admin]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n"
    )
    load(lake.pipeline(s3={"profile": "lake-admin"}))
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", f"aws://{KEY}:{SECRET}@")
    publish(lake.pipeline(s3={"connection": "lake"}))

    assert bucket.rows() == {"dt=2026-02-01": [1]}


@pytest.mark.follows("StoreDenied")
def test_credentials_that_are_refused_are_told_and_exchanged(
    lake: SmallLake, bucket: Bucket, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not every server of tests looks at credentials.
    way.fault = lambda _method, _path, _number: "denied"
    lake.commit({1: 1})

    with pytest.raises(StoreDenied):
        load(lake.pipeline())
    code, said = check(lake, monkeypatch)
    assert code != 0
    assert "refuses" in said
    way.fault = lambda _method, _path, _number: None
    load(lake.pipeline())
    publish(lake.pipeline())

    assert bucket.rows() == {"dt=2026-02-01": [1]}


@pytest.mark.follows("CredentialsExpired")
def test_credentials_that_expire_half_way_are_renewed_and_the_run_goes_on(
    lake: SmallLake, bucket: Bucket, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 1})
    load(lake.pipeline())
    way.fault = lambda method, _path, _number: "expired" if method == "PUT" else None

    with pytest.raises(CredentialsExpired):
        lake.pipeline().publish(day(1), "cli", NOW)
    way.fault = lambda _method, _path, _number: None
    publish(lake.pipeline())

    assert bucket.rows() == {"dt=2026-02-01": [1]}
    assert list(lake.pipeline().findings()) == []


def test_publish_asks_a_store_little_and_under_the_lock_twice_per_file(
    lake: SmallLake, bucket: Bucket, way: Way
) -> None:
    # Five files for one day, which are found by listing; one for each of the others.
    lake.keys = merged(lake.keys, {"target": {"multipart_max_age": "0s"}})
    for _ in range(4):
        lake.commit({1: 1})
        load(lake.pipeline())
    lake.commit(dict.fromkeys(range(1, 9), 1))
    load(lake.pipeline())
    pipeline = lake.pipeline()

    def under_lock(number: int) -> int:
        way.seen.clear()
        assert pipeline.publish(day(number), "cli", NOW).state == "committed"
        held = [at for at, (_, path) in enumerate(way.seen) if "/locks/" in path]
        return held[-1] - held[0] - 1

    five, one = under_lock(1), under_lock(2)
    alone = len(way.seen)
    way.seen.clear()
    publish(pipeline)

    assert (five - one) / 4 <= 2
    assert one <= 10
    # Whose the target is, once for all of them.
    owners = sum(path.endswith(f"{bucket.name}/.tidegate.owner") for _, path in way.seen)
    assert owners <= 2
    assert alone <= 40
    assert len(way.seen) / 6 <= 32
    assert sorted(bucket.rows()) == [f"dt=2026-02-{number:02d}" for number in range(1, 9)]
