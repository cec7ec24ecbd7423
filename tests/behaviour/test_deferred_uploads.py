"""Part files that are sent to where they are published, and that a commit completes (PC-F36)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from behaviour.test_stores import bucket, ids, lake, way
from behaviour.test_survival_windows import replay
from behaviour.test_undo import ADA
from dying import Killed
from s3_servers import moto_server
from small_lake import NOW, day, interval, later, load, local, merged, publish
from tidegate.cli.app import app
from tidegate.config import load_pipeline
from tidegate.errors import ConfigInvalid, StorageFull
from tidegate.model.run import Run
from tidegate.pipeline.load import staging
from tidegate.stage import layout
from tidegate.storage.s3 import S3Storage
from tidegate.storage.s3_calls import S3Calls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from behaviour.test_stores import Bucket
    from s3_faults import Way
    from s3_servers import S3Server
    from small_lake import SmallLake
    from tidegate.pipeline import Pipeline

__all__ = ["bucket", "lake", "way"]
WATCHED = {"commit": {"trigger": "partition-time"}}
LATER = NOW + timedelta(days=400)


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with moto_server() as found:
        yield found


def staged(bucket: Bucket) -> list[str]:
    return [key for key in bucket.all() if "/staged/" in key]


def uploads(bucket: Bucket) -> list[tuple[str, str]]:
    found = bucket.client.list_multipart_uploads(Bucket=bucket.name).get("Uploads", [])
    return sorted((item["Key"], item["UploadId"]) for item in found)


def expire(bucket: Bucket, *which: tuple[str, str]) -> None:
    """Give up uploads, as a rule of the bucket does."""
    for key, name in which:
        bucket.client.abort_multipart_upload(Bucket=bucket.name, Key=key, UploadId=name)


def loaded(lake: SmallLake, days: dict[int, int], **keys: Any) -> list[int]:
    made = lake.commit(days)
    load(lake.pipeline(**keys), interval(lake.commits))
    return made


def errors(pipeline: Pipeline) -> list[str]:
    return [item.error for item in pipeline.publish_all("cli", NOW) if item.error]


def test_nothing_is_there_before_the_commit_and_nothing_is_copied(
    lake: SmallLake, bucket: Bucket, way: Way
) -> None:
    for _ in range(8):
        loaded(lake, {1: 1})
    opened = lake.pipeline()
    table = [key for key in bucket.all() if key.startswith("published/orders/")]

    assert table == ["published/orders/.tidegate.owner"]
    assert staged(bucket) == []
    assert len(uploads(bucket)) == 8
    assert list(opened.findings()) == []
    before = len(way.seen)
    publish(opened)

    assert ids(bucket) == list(range(1, 9))
    assert uploads(bucket) == []
    of_parts = [(how, path) for how, path in way.seen[before:] if "/part-" in path]
    assert len(of_parts) == 8
    assert {(how, "uploadId=" in path) for how, path in of_parts} == {("POST", True)}
    assert list(lake.pipeline().findings()) == []


@pytest.mark.follows("UploadGone")
def test_window_whose_upload_has_expired_is_read_again(lake: SmallLake, bucket: Bucket) -> None:
    loaded(lake, {1: 2, 2: 1})
    expire(bucket, uploads(bucket)[0])

    (found,) = lake.pipeline().findings()
    assert "expected" in found
    assert "found neither file nor upload" in found
    (said,) = errors(lake.pipeline())
    assert "tidegate replay orders 1" in said
    assert "the store gave it up" in said
    assert bucket.rows() == {"dt=2026-02-02": [3]}
    replay(lake.pipeline(), 1)
    publish(lake.pipeline())

    assert bucket.rows() == {"dt=2026-02-01": [1, 2], "dt=2026-02-02": [3]}
    assert list(lake.pipeline().findings()) == []


def test_commit_that_has_begun_and_loses_an_upload_is_taken_back_and_read_again(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was completed goes back to staging, where the next commit finds it."""
    for _ in range(2):
        loaded(lake, {1: 1})
    real, completed = S3Calls.complete_upload, list[str]()

    def complete_one(calls: S3Calls, path: str, *told: Any, **options: Any) -> Any:
        if completed:
            raise Killed
        completed.append(path)
        return real(calls, path, *told, **options)

    with monkeypatch.context() as dying:
        dying.setattr(S3Calls, "complete_upload", complete_one)
        dying.setattr("tidegate.storage.s3_uploads.answers", lambda do, all_: [*map(do, all_)])
        with pytest.raises(Killed):
            lake.pipeline().publish(day(1), "cli", NOW)
    assert not [key for key in bucket.all() if key.endswith("_SUCCESS")]
    expire(bucket, *uploads(bucket))

    (said,) = errors(lake.pipeline())
    assert "tidegate replay orders 2" in said
    replay(lake.pipeline(), 2)
    publish(lake.pipeline())

    assert ids(bucket) == [1, 2]
    assert list(lake.pipeline().findings()) == []


@pytest.mark.follows("UploadUnread")
@pytest.mark.parametrize(
    "needs",
    [{"gate": {"suite": "suite.json"}}, {"target": {"compaction": {"small_file": "1MiB"}}}],
    ids=["gate", "compaction"],
)
def test_file_that_was_sent_and_is_needed_since_is_staged_instead(
    lake: SmallLake, bucket: Bucket, needs: dict[str, Any]
) -> None:
    suite = {"name": "all", "expectations": [{"type": "expect_table_row_count_to_be_between"}]}
    (lake.root / "suite.json").write_text(json.dumps(suite))
    for _ in range(2):
        loaded(lake, {1: 1})
    lake.keys = merged(lake.keys, needs)

    (said,) = errors(lake.pipeline())
    assert "nobody can read it before" in said
    for number in (1, 2):
        assert "`tidegate replay orders " in said
        replay(lake.pipeline(), number)
    publish(lake.pipeline())

    assert ids(bucket) == [1, 2]
    later = lake.pipeline()
    later.sweep(later.garbage(LATER, timedelta(0)))
    assert uploads(bucket) == []


def test_partition_that_is_complete_too_late_is_staged(lake: SmallLake, bucket: Bucket) -> None:
    lake.keys = merged(lake.keys, WATCHED)
    lake.commit({1: 1, 4: 1})
    opened = lake.pipeline()

    # Day 4 ends in 30 hours.
    load(opened, interval(1), now=NOW.replace(month=2, day=3, hour=18))

    assert [key.split("/")[2] for key, _ in uploads(bucket)] == ["dt=2026-02-01"]
    assert ["dt=2026-02-04" in key for key in staged(bucket)] == [True]
    lake.commit({6: 1})
    load(lake.pipeline(), interval(2))
    publish(lake.pipeline())
    assert bucket.rows() == {"dt=2026-02-01": [1], "dt=2026-02-04": [2]}


def test_attempt_that_comes_second_gives_up_what_it_sent(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 2, 2: 1})
    real = staging.stage_sub_split

    def outrun(*told: Any) -> Any:
        monkeypatch.setattr(staging, "stage_sub_split", real)
        place, storage = told[3], told[4]
        staging.stage_split(storage, place.plan_root, 0, "faster")
        return real(*told)

    monkeypatch.setattr(staging, "stage_sub_split", outrun)
    load(lake.pipeline(), interval(1))

    assert len(uploads(bucket)) == 2
    publish(lake.pipeline())
    assert bucket.rows() == {"dt=2026-02-01": [1, 2], "dt=2026-02-02": [3]}


def test_attempt_that_fails_gives_up_what_it_sent(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 2, 2: 1})
    real = S3Calls.upload_part

    def refuse(calls: S3Calls, path: str, *told: Any) -> str:
        if "dt=2026-02-02" in path:
            message = "no more"
            raise RuntimeError(message)
        return real(calls, path, *told)

    with monkeypatch.context() as failing:
        failing.setattr(S3Calls, "upload_part", refuse)
        with pytest.raises(RuntimeError, match="no more"):
            load(lake.pipeline(), interval(1))

    assert uploads(bucket) == []
    load(lake.pipeline(), interval(1))
    publish(lake.pipeline())
    assert bucket.rows() == {"dt=2026-02-01": [1, 2], "dt=2026-02-02": [3]}


def test_attempt_whose_message_cannot_be_written_gives_up_what_it_sent(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 2, 2: 1})
    real = S3Storage.write_once

    def refuse(storage: S3Storage, path: str, *told: Any, **options: Any) -> bool:
        if f"/{layout.MESSAGES}/" in path:
            raise StorageFull(path=path, problem="no space left")
        return real(storage, path, *told, **options)

    with monkeypatch.context() as failing:
        failing.setattr(S3Storage, "write_once", refuse)
        with pytest.raises(StorageFull):
            load(lake.pipeline(), interval(1))

    assert uploads(bucket) == []
    load(lake.pipeline(), interval(1))
    publish(lake.pipeline())
    assert bucket.rows() == {"dt=2026-02-01": [1, 2], "dt=2026-02-02": [3]}


def test_only_what_nobody_needs_is_swept(lake: SmallLake, bucket: Bucket) -> None:
    loaded(lake, {1: 2})
    needed = uploads(bucket)
    key = needed[0][0]
    lost = bucket.client.create_multipart_upload(Bucket=bucket.name, Key=key)["UploadId"]
    folder, _, name = key.rpartition("/")
    unknown = f"{folder}/{name.replace(name.split('-')[1], '0123456789abcdef')}"
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key=unknown)
    foreign = f"{folder}/spark-part"
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key=foreign)
    opened = lake.pipeline()

    swept = opened.sweep(opened.garbage(LATER, timedelta(0)))

    assert {(it.path.rpartition("/")[2], it.upload) for it in swept if it.upload} >= {(name, lost)}
    left = uploads(bucket)
    assert [it for it in left if it in needed] == needed
    assert [it for it, _ in left if it not in dict(needed)] == [foreign]
    publish(lake.pipeline())
    assert bucket.rows() == {"dt=2026-02-01": [1, 2]}


def test_upload_is_swept_once_it_is_old_enough(lake: SmallLake, bucket: Bucket) -> None:
    loaded(lake, {1: 2})
    ((key, needed),) = uploads(bucket)
    folder, _, name = key.rpartition("/")
    unknown = f"{folder}/{name.replace(name.split('-')[1], '0123456789abcdef')}"
    begin = bucket.client.create_multipart_upload
    of_nobody = begin(Bucket=bucket.name, Key=unknown)["UploadId"]
    lost = begin(Bucket=bucket.name, Key=key)["UploadId"]
    opened = lake.pipeline()
    begun = max(it.begun for it in opened.storage.unfinished(f"s3://{bucket.name}/{folder}"))

    def found(after: timedelta, older_than: timedelta) -> set[str]:
        garbage = opened.garbage(begun + after, older_than)
        return {it.upload for it in garbage if it.upload} - {needed}

    second, hour = timedelta(seconds=1), timedelta(hours=1)
    assert found(2 * hour, 2 * hour) == set()
    assert found(2 * hour + second, 2 * hour) == {of_nobody, lost}
    # What no window has may be of a run that is about to write its first file.
    assert found(hour, second) == {lost}
    assert found(hour + second, second) == {of_nobody, lost}


def test_upload_that_is_needed_since_is_kept_though_another_of_its_file_is_not(
    lake: SmallLake, bucket: Bucket
) -> None:
    loaded(lake, {1: 2})
    ((key, needed),) = uploads(bucket)
    lost = bucket.client.create_multipart_upload(Bucket=bucket.name, Key=key)["UploadId"]
    opened = lake.pipeline()
    (item,) = [it for it in opened.garbage(LATER, timedelta(0)) if it.upload == lost]

    swept = opened.sweep((replace(item, upload=needed), item))

    assert swept == (item,)
    assert uploads(bucket) == [(key, needed)]


def test_upload_that_a_begun_commit_completes_is_kept(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(lake, {1: 2})
    before = uploads(bucket)

    def die(*_told: Any, **_options: Any) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(S3Calls, "complete_upload", die)
        with pytest.raises(Killed):
            lake.pipeline().publish(day(1), "cli", NOW)
    rows = [{"name": "sane", "where": "amount > 0", "on_failure": "quarantine"}]
    replay(lake.pipeline(rows=rows), 1)
    assert len(uploads(bucket)) == 2
    opened = lake.pipeline()

    opened.sweep(opened.garbage(LATER, timedelta(0)))

    assert {*before} <= {*uploads(bucket)}
    assert lake.pipeline().publish(day(1), "cli", NOW).state == "committed"
    assert bucket.rows() == {"dt=2026-02-01": [1, 2]}
    assert list(lake.pipeline().findings()) == []


def test_uploads_of_a_window_that_was_given_up_are_swept(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 2})

    def die(*_told: Any, **_options: Any) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr("tidegate.ledger.windows.Windows.reserve", die)
        with pytest.raises(Killed):
            load(lake.pipeline(), interval(1))
    assert len(uploads(bucket)) == 1
    given_up = later(lake.pipeline(), timedelta(minutes=10))
    given_up.abandon(1, "cli", NOW, by="ada", comment="gone")
    opened = lake.pipeline()

    opened.sweep(opened.garbage(LATER, timedelta(0)))

    assert uploads(bucket) == []


def test_ledger_that_was_lost_knows_what_was_sent(lake: SmallLake, bucket: Bucket) -> None:
    loaded(lake, {1: 2})
    lake.pipeline().ledger.engine.dispose()
    (lake.root / "ledger.db").unlink()

    opened = lake.pipeline()
    opened.restore_ledger()
    opened.sweep(opened.garbage(LATER, timedelta(0)))
    publish(lake.pipeline())

    assert bucket.rows() == {"dt=2026-02-01": [1, 2]}
    assert list(lake.pipeline().findings()) == []


def test_erased_rows_that_were_sent_are_read_again_without_them(
    lake: SmallLake, bucket: Bucket
) -> None:
    loaded(lake, {1: 3, 2: 1})
    before = uploads(bucket)
    opened = lake.pipeline()

    report = opened.erase(opened.erasure("id = 2", "ada", NOW), Run("erase", "cli"), ADA, local)

    assert [file.done for file in report.left] == []
    assert {it for it in before if "dt=2026-02-01" in it[0]}.isdisjoint(uploads(bucket))
    publish(lake.pipeline())
    assert bucket.rows() == {"dt=2026-02-01": [1, 3], "dt=2026-02-02": [4]}
    again = lake.pipeline().erase(None, Run("erase", "cli"), ADA, local)
    assert (again.files, again.left) == ((), ())


def test_window_that_cannot_be_read_again_keeps_what_it_sent(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded(lake, {1: 3, 2: 1})
    before, opened = uploads(bucket), lake.pipeline()

    def full(*_: Any) -> Any:
        raise StorageFull(path="/spill", problem="no space left")

    with monkeypatch.context() as failing:
        failing.setattr(staging, "stage_sub_split", full)
        report = opened.erase(opened.erasure("id = 2", "ada", NOW), Run("erase", "cli"), ADA, local)

    assert report.left != ()
    assert {*before} <= {*uploads(bucket)}
    again = lake.pipeline().erase(None, Run("erase", "cli"), ADA, local)
    assert again.left == ()
    assert {*before}.isdisjoint(uploads(bucket))
    publish(lake.pipeline())
    assert bucket.rows() == {"dt=2026-02-01": [1, 3], "dt=2026-02-02": [4]}


def test_erasure_reaches_what_an_attempt_sent_that_died(lake: SmallLake, bucket: Bucket) -> None:
    loaded(lake, {1: 3})
    ((key, _),) = uploads(bucket)
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key=key)
    publish(lake.pipeline())
    opened = lake.pipeline()

    report = opened.erase(opened.erasure("id = 2", "ada", NOW), Run("erase", "cli"), ADA, local)

    assert f"s3://{bucket.name}/{key}" in {file.path for file in report.files}
    assert report.left == ()
    assert uploads(bucket) == []
    assert ids(bucket) == [1, 3]


def test_object_of_another_writer_is_not_published_in_place_of_what_was_sent(
    lake: SmallLake, bucket: Bucket
) -> None:
    loaded(lake, {1: 3})
    ((key, upload),) = uploads(bucket)
    (part,) = bucket.client.list_parts(Bucket=bucket.name, Key=key, UploadId=upload)["Parts"]
    bucket.client.put_object(Bucket=bucket.name, Key=key, Body=b"x" * part["Size"])

    (said,) = errors(lake.pipeline())

    assert "expected SHA-256" in said
    assert not [name for name in bucket.all() if name.endswith("_SUCCESS")]
    bucket.client.delete_object(Bucket=bucket.name, Key=key)
    publish(lake.pipeline())
    assert ids(bucket) == [1, 2, 3]


def test_undo_brings_back_what_was_sent(lake: SmallLake, bucket: Bucket) -> None:
    for _ in range(2):
        loaded(lake, {1: 1})
        publish(lake.pipeline())

    lake.pipeline().undo(day(1), 2, ADA, "cli", NOW)
    assert ids(bucket) == [1]
    lake.pipeline().reopen(day(1), NOW)
    publish(lake.pipeline())

    assert ids(bucket) == [1, 2]
    assert list(lake.pipeline().findings()) == []


@pytest.mark.parametrize("ends", ["reset", "retire"])
def test_pipeline_that_ends_gives_up_what_it_sent(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    loaded(lake, {1: 2})
    lake.found_by_name(monkeypatch)

    command = [ends, "orders", "--yes", *(["--drop-target"] if ends == "reset" else [])]
    done = CliRunner().invoke(app, command, catch_exceptions=False)

    assert done.exit_code == 0, done.output
    assert uploads(bucket) == []


def test_plan_says_which_way_files_go(
    lake: SmallLake, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    lake.commit({1: 1})

    def said(**keys: Any) -> str:
        lake.file(**keys)
        done = CliRunner().invoke(app, ["plan", "orders", "--dry-run"], catch_exceptions=False)
        return " ".join(done.output.split())

    assert "sent to where they are published, and completed by the commit" in said()
    assert "can be complete within 1d" in said(**WATCHED)
    copied = said(target={"layout": "revisions"})
    assert "copied inside the store: `target.layout: revisions`" in copied
    assert "`target.multipart_max_age` is 0s" in said(target={"multipart_max_age": "0s"})


def test_age_of_uploads_belongs_to_a_store(lake: SmallLake, tmp_path: Path) -> None:
    file = lake.file(target={"path": str(tmp_path / "out"), "multipart_max_age": "2d"})

    with pytest.raises(ConfigInvalid, match="is on a disk"):
        load_pipeline(file)
