"""Iceberg tables whose files are objects: published once, held, refused, and read by anybody."""

from __future__ import annotations

import multiprocessing
import signal
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitStateUnknownException

from behaviour.test_completeness import ABSENT, suite
from behaviour.test_erase import RULE, RUN
from behaviour.test_iceberg_survival import append, append_amid_a_commit, fail_once
from behaviour.test_iceberg_target_commands import APPROVED, erased, held
from behaviour.test_iceberg_target_shape import COLUMNS, checked
from behaviour.test_stores import KEYS, bucket, told, way
from behaviour.test_undo import ADA
from dying import Killed
from lake_target import TABLE, LakeToLake, publish_and_die
from s3_servers import KEY, SECRET, properties_of_tables, s3_server
from small_lake import NOW, SCHEMA, day, decide, load, local, merged, publish
from tidegate.errors import StoreDenied, TargetTableDiffers, TargetTableMoved
from tidegate.model.held_branch import held_branch
from tidegate.model.run import Run
from tidegate.storage import s3_lease

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from behaviour.test_stores import Bucket
    from s3_faults import Way
    from s3_servers import S3Server

__all__ = ["bucket", "way"]
FIRST = "2026-02-01"
FEW: dict[str, Any] = {"rows": [{"name": "few", "where": "id < 4", "on_failure": "hold"}]}
STAGED: dict[str, Any] = {"target": {"multipart_max_age": "0s"}}


@pytest.fixture(scope="module", params=["moto", pytest.param("versitygw", marks=pytest.mark.slow)])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[S3Server]:
    with s3_server(request.param, tmp_path_factory.mktemp("gateway") / "store") as found:
        yield found


@pytest.fixture
def lake(tmp_path: Path, bucket: Bucket, way: Way, monkeypatch: pytest.MonkeyPatch) -> LakeToLake:
    made = LakeToLake(tmp_path / "lake")
    reached = {"s3": {"endpoint": bucket.server.endpoint}}
    made.keys = merged(made.keys, told(bucket, way, **reached))
    made.found_by_name(monkeypatch)
    return made


def by(lake: LakeToLake, way: Way) -> None:
    """Let Tidegate go to the store on a way that can fail."""
    lake.keys["s3"] |= {"endpoint": f"http://127.0.0.1:{way.port}"}


def published(lake: LakeToLake, days: dict[int, int], **keys: Any) -> list[int]:
    """Commit to the source, load and publish; the ids of the rows."""
    ids = lake.commit(days)
    load(lake.pipeline(**keys))
    publish(lake.pipeline(**keys))
    return ids


def data(bucket: Bucket) -> set[str]:
    """Give the keys of the table's data files."""
    return {key for key in bucket.all() if key.startswith("published/orders/data/dt=")}


def files_of(lake: LakeToLake) -> set[str]:
    """Give the keys of the files that the branch names."""
    tasks = lake.shop.scan().plan_files()
    return {task.file.file_path.split("/", 3)[3] for task in tasks}


@pytest.mark.parametrize("way_of_files", [{}, STAGED], ids=["sent", "staged"])
def test_rows_are_published_by_one_snapshot_per_revision(
    lake: LakeToLake, bucket: Bucket, way_of_files: dict[str, Any]
) -> None:
    first = published(lake, {1: 3, 2: 2}, **way_of_files)
    late = published(lake, {1: 2}, **way_of_files)
    publish(lake.pipeline(**way_of_files))

    assert lake.rows() == {FIRST: [*first[:3], *late], "2026-02-02": first[3:]}
    assert [it["tidegate.revision"] for it in lake.history()] == ["1", "1", "2"]
    assert {it["tidegate.run"] for it in lake.history()} == {"cli"}
    assert files_of(lake) == data(bucket)
    assert not [key for key in bucket.all() if "/staged/" in key]
    assert lake.shop.location() == f"s3://{bucket.name}/published/orders"
    assert list(lake.pipeline(**way_of_files).findings()) == []


def test_only_branches_with_erased_rows_go(lake: LakeToLake, bucket: Bucket) -> None:
    lake.commit({1: 2, 2: 2, 3: 1})
    load(lake.pipeline(**APPROVED))
    publish(lake.pipeline(**APPROVED))

    report = erased(lake, "id = 1", **APPROVED)

    assert report.left == ()
    assert held(lake) == ["2026-02-02", "2026-02-03"]
    dropped = [file for file in report.files if held_branch(day(1)) in file.done]
    assert [file.rows for file in dropped] == [1]
    assert dropped[0].path.startswith(f"s3://{bucket.name}/published/orders/data/dt={FIRST}/")


def test_rows_of_a_table_in_the_store_come_into_another_once(
    lake: LakeToLake, bucket: Bucket, way: Way
) -> None:
    reached = properties_of_tables({"endpoint": bucket.server.endpoint})
    catalog = load_catalog(**lake.source["catalog"], **reached)
    place = f"s3://{bucket.name}/raw/far"
    lake.table = catalog.create_table("raw.far", SCHEMA, location=place)
    secret = {"s3.access-key-id": KEYS["access_key"], "s3.secret-access-key": KEYS["secret_key"]}
    lake.source |= {
        "table": "raw.far",
        "catalog": {**lake.source["catalog"], **reached, **secret},
    }

    ids = [number for _ in range(3) for number in published(lake, {1: 2, 2: 1})]
    publish(lake.pipeline())

    assert sorted(number for some in lake.rows().values() for number in some) == ids
    assert len(lake.history()) == len({it["tidegate.publication"] for it in lake.history()}) == 6


def test_overwrite_takes_out_what_older_snapshots_still_have(
    lake: LakeToLake, bucket: Bucket
) -> None:
    lake.keys["target"] |= {"write": "overwrite"}
    published(lake, {1: 3, 2: 2})
    first, before = lake.shop.snapshots()[-1].snapshot_id, data(bucket)

    ids = published(lake, {1: 1})

    assert lake.rows()[FIRST] == ids
    assert before < data(bucket)
    assert lake.shop.scan(snapshot_id=first).to_arrow().num_rows == 5


def test_commands_of_upkeep_do_as_on_a_disk(lake: LakeToLake, bucket: Bucket) -> None:
    ids = [number for _ in range(3) for number in published(lake, {1: 2})]
    opened = lake.pipeline()

    assert opened.compact(day(1), RULE, "cli", NOW) is not None
    assert lake.rows() == {FIRST: ids}
    opened.undo(day(1), 4, ADA, "cli", NOW)
    assert lake.rows() == {FIRST: ids}
    assert len(files_of(lake)) == 3
    opened.erase(opened.erasure(f"id = {ids[1]}", "ada", NOW), RUN, ADA, local)
    assert lake.rows() == {FIRST: [ids[0], *ids[2:]]}
    before = data(bucket)
    garbage = opened.garbage(NOW + timedelta(days=400), timedelta(0))
    assert opened.sweep(garbage) == garbage != ()
    assert data(bucket) == before
    assert list(opened.findings()) == []
    every = ", ".join(map(str, ids))
    again = Run("erase-all", "cli")
    opened.erase(opened.erasure(f"id in ({every})", "ada", NOW), again, ADA, local)

    # A partition without rows is none in the table.
    assert lake.rows() == {}
    assert files_of(lake) == set()
    assert list(lake.pipeline().findings()) == []


def test_lost_ledger_is_made_of_the_store_and_the_table(lake: LakeToLake) -> None:
    ids = published(lake, {1: 2}) + published(lake, {1: 1})
    lake.pipeline().ledger.engine.dispose()
    for path in lake.root.glob("ledger.db*"):
        path.unlink()

    lake.pipeline().restore_ledger()
    ids += published(lake, {1: 1})

    assert lake.rows() == {FIRST: ids}
    assert len(lake.history()) == 3


def test_revision_that_the_gate_refuses_is_in_no_branch_that_is_published(
    lake: LakeToLake,
) -> None:
    few = {"min_value": 1, "max_value": 1}
    one_row = {"type": ABSENT["type"], "kwargs": few, "severity": "critical"}
    first = published(lake, {1: 1}, gate=suite(lake, one_row))
    lake.commit({1: 4, 2: 1})
    gate = suite(lake, one_row)
    load(lake.pipeline(gate=gate))

    publish(lake.pipeline(gate=gate))

    assert lake.rows() == {FIRST: first, "2026-02-02": [6]}
    assert lake.rows(held_branch(day(1)))[FIRST] == [1, 2, 3, 4, 5]
    assert held_branch(day(2)) not in lake.shop.metadata.refs


def test_held_snapshot_is_the_one_that_is_published(lake: LakeToLake, bucket: Bucket) -> None:
    ids = published(lake, {1: 5}, **FEW)
    held = lake.shop.metadata.refs[held_branch(day(1))].snapshot_id
    assert lake.rows() == {}
    assert lake.rows(held_branch(day(1))) == {FIRST: ids}

    decide(lake.pipeline(**FEW), day(1))
    publish(lake.pipeline(**FEW))

    assert lake.rows() == {FIRST: ids}
    assert lake.shop.metadata.refs["main"].snapshot_id == held
    assert files_of(lake) == data(bucket)


@pytest.mark.parametrize("death", [Killed, CommitStateUnknownException])
def test_commit_whose_answer_was_lost_is_made_once(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch, death: type[BaseException]
) -> None:
    first = published(lake, {1: 2})
    late = lake.commit({1: 3})
    load(lake.pipeline())
    fail_once(monkeypatch, "after", death)

    try:
        lake.pipeline().publish(day(1), "cli", NOW, by_command=True)
    except Killed:
        assert death is Killed
    publish(lake.pipeline())

    assert lake.rows() == {FIRST: first + late}
    assert [it["tidegate.revision"] for it in lake.history()] == ["1", "2"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_publish_that_is_killed_at_the_commit_is_finished_by_the_next(
    lake: LakeToLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    first = published(lake, {1: 2})
    late = lake.commit({1: 3})
    load(lake.pipeline())
    told_to = (moment, str(lake.file()), f"sqlite:///{lake.root}/ledger.db")
    process = multiprocessing.get_context("spawn").Process(target=publish_and_die, args=told_to)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert lake.rows() == {FIRST: first + (late if moment == "after" else [])}
    assert len(data(bucket)) == 2

    # Nobody waits here until the lock of the dead process has expired.
    monkeypatch.setattr(s3_lease, "LEASE_SECONDS", -60.0)
    publish(lake.pipeline())

    assert lake.rows() == {FIRST: first + late}
    assert [it["tidegate.revision"] for it in lake.history()] == ["1", "2"]
    assert list(lake.pipeline().findings()) == []


@pytest.mark.parametrize("fault", [pytest.param("busy", marks=pytest.mark.slow), "lost", "dropped"])
def test_requests_that_fail_change_nothing_of_the_result(
    lake: LakeToLake, way: Way, fault: str
) -> None:
    by(lake, way)
    way.fault = lambda _method, _path, number: fault if number % 23 == 0 else None
    ids = published(lake, {1: 2}) + published(lake, {1: 2})

    way.fault = lambda _method, _path, _number: None
    assert lake.rows() == {FIRST: ids}
    assert len(lake.history()) == 2
    assert list(lake.pipeline().findings()) == []


def test_commit_of_another_writer_at_the_same_moment_is_kept(
    lake: LakeToLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = published(lake, {1: 2})
    late = lake.commit({1: 1})
    load(lake.pipeline())
    append_amid_a_commit(lake, monkeypatch)

    publish(lake.pipeline())

    assert lake.rows() == {FIRST: first + late, "2026-02-20": [1000]}


@pytest.mark.follows("TargetTableMoved")
def test_change_of_the_partition_by_another_writer_is_named_and_replaced_if_asked(
    lake: LakeToLake,
) -> None:
    first = published(lake, {1: 2})
    append(lake, 1)
    late = lake.commit({1: 1})
    load(lake.pipeline())

    with pytest.raises(TargetTableMoved, match="which the revision has not"):
        lake.pipeline().publish(day(1), "cli", NOW)
    publish(lake.pipeline(target={"on_foreign_change": "replace"}))

    assert lake.rows() == {FIRST: first + late}


@pytest.mark.parametrize("said", ["keys", "connection"])
def test_no_secret_is_written_anywhere(
    lake: LakeToLake,
    bucket: Bucket,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
) -> None:
    caplog.set_level("DEBUG", "tidegate")
    caplog.set_level("DEBUG", "pyiceberg")
    if said == "connection":
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", f"aws://{KEY}:{SECRET}@")
        lake.keys["s3"] |= {"connection": "lake"}
        del lake.keys["s3"]["access_key"], lake.keys["s3"]["secret_key"]
    published(lake, {1: 5}, **FEW)
    decide(lake.pipeline(**FEW), day(1))
    publish(lake.pipeline(**FEW))
    line = checked(lake, **FEW)
    marked = {**FEW, "commit": {"policies": ["snapshot", "success-file"]}}
    published(lake, {1: 1}, **marked)
    decide(lake.pipeline(**marked), day(1))
    publish(lake.pipeline(**marked))

    lake.pipeline().ledger.engine.dispose()
    assert len(lake.rows()[FIRST]) == 6
    keys = bucket.all()
    assert [key for key in keys if key.endswith("_SUCCESS")]
    assert [key for key in keys if "/metadata/" in key and key.endswith(".json")]
    kept = [bucket.read(key) for key in keys if not key.endswith(".parquet")]
    kept += [path.read_bytes() for path in lake.root.glob("*.db*")]
    # Manifests are compressed: what they and the snapshots tell is read as others read it.
    table = lake.shop
    kept += [str(table.inspect.all_manifests()).encode()]
    kept += [table.metadata.model_dump_json().encode(), str(line).encode(), caplog.text.encode()]
    kept += [repr(lake.pipeline().config).encode()]
    assert not [text for text in kept if SECRET.encode() in text or KEY.encode() in text]


@pytest.mark.follows("StoreDenied")
def test_metadata_that_the_store_refuses_is_named_and_published_with_other_rights(
    lake: LakeToLake, way: Way
) -> None:
    first = published(lake, {1: 2})
    late = lake.commit({1: 1})
    load(lake.pipeline())
    by(lake, way)
    way.fault = lambda _method, path, _number: "denied" if "/metadata/" in path else None

    with pytest.raises(StoreDenied, match=r"orders/metadata/.*refuses"):
        lake.pipeline().publish(day(1), "cli", NOW)
    assert "refuses" in str(checked(lake))
    way.fault = lambda _method, _path, _number: None
    publish(lake.pipeline())

    assert lake.rows() == {FIRST: first + late}


def make(lake: LakeToLake, bucket: Bucket, location: str, **properties: str) -> None:
    """Make the table as its owner would, by the names that engines use."""
    reached = properties_of_tables({"endpoint": bucket.server.endpoint})
    catalog = load_catalog(**lake.source["catalog"], **reached)
    with (
        catalog.create_table_transaction(
            TABLE, COLUMNS, location=location, properties=properties
        ) as made,
        made.update_spec() as spec,
    ):
        spec.add_identity("dt")


def test_table_that_an_engine_made_is_published_to(lake: LakeToLake, bucket: Bucket) -> None:
    place = f"s3a://{bucket.name}/published/orders"
    make(lake, bucket, place, **{"write.data.path": f"s3://{bucket.name}/published/orders/data/"})

    ids = published(lake, {1: 2}) + published(lake, {1: 1})

    assert "with all columns" in str(checked(lake))
    assert lake.rows() == {FIRST: ids}
    assert {task.file.file_path.partition(":")[0] for task in lake.shop.scan().plan_files()} == {
        "s3a"
    }


@pytest.mark.follows("TargetTableDiffers")
@pytest.mark.parametrize("elsewhere", ["location", "write.data.path"])
def test_table_whose_files_are_elsewhere_is_refused(
    lake: LakeToLake, bucket: Bucket, elsewhere: str
) -> None:
    other = bucket.server.bucket()
    place = f"s3://{bucket.name}/published/orders"
    if elsewhere == "location":
        make(lake, bucket, f"{other}/published/orders")
    else:
        make(lake, bucket, place, **{"write.data.path": f"{other}/data"})
    ids = lake.commit({1: 2})
    load(lake.pipeline())

    line = checked(lake)
    with pytest.raises(TargetTableDiffers, match=elsewhere):
        lake.pipeline().publish(day(1), "cli", NOW)
    assert data(bucket) == set()
    load_catalog(**lake.source["catalog"]).drop_table(TABLE)
    publish(lake.pipeline())

    assert elsewhere in str(line)
    assert other in str(line)
    assert lake.rows() == {FIRST: ids}


def test_properties_of_the_catalog_win_over_the_section(
    lake: LakeToLake, bucket: Bucket, way: Way
) -> None:
    by(lake, way)
    direct = {
        **properties_of_tables({"endpoint": bucket.server.endpoint}),
        "s3.access-key-id": KEYS["access_key"],
        "s3.secret-access-key": KEYS["secret_key"],
    }
    lake.keys["target"]["catalog"] = {**lake.source["catalog"], **direct}
    ids = lake.commit({1: 2})
    load(lake.pipeline())
    publish(lake.pipeline())

    assert [path for _, path in way.seen if "/data/" in path]
    assert not [path for _, path in way.seen if "/metadata/" in path]
    lake.keys["target"]["catalog"] = lake.source["catalog"]
    assert lake.rows() == {FIRST: ids}
