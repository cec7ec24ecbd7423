"""DAGs of other teams wait for a partition by its marker alone."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow._shared.module_loading import import_string
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowSensorTimeout, AirflowSkipException, TaskDeferred

from airflow_runs import states, tries
from s3_servers import KEY, SECRET, moto_server
from small_lake import SmallLake, known, load, publish
from tidegate.errors import (
    MarkerInvalid,
    PartitionPathInvalid,
    PublishedTableMissing,
    StorageDenied,
    WaitInvalid,
)
from tidegate.storage import LocalStorage
from tidegate_airflow.marker_trigger import MarkerTrigger
from tidegate_airflow.wait_for_partition import WaitForPartition

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore:Using `httpx`:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::starlette.exceptions.StarletteDeprecationWarning"),
]

README = (Path(__file__).parents[2] / "README.md").read_text()
(EXAMPLE,) = [
    text
    for text in re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    if "WaitForPartition" in text
]


@pytest.fixture
def published(lake: SmallLake) -> SmallLake:
    """The first of February stands in revision 1 with three rows."""
    lake.commit({1: 3})
    lake.commit({2: 3})
    pipeline = lake.pipeline()
    load(pipeline, until=known(5))
    publish(pipeline)
    return lake


def sensor(table: Path, partition: str = "dt=2026-02-01", **given: Any) -> WaitForPartition:
    return WaitForPartition(task_id="wait", table=str(table), partition=partition, **given)


def deferred(waiting: WaitForPartition) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as caught:
        waiting.execute({})
    return caught.value


def revised(lake: SmallLake) -> None:
    """Publish revision 2 of the first of February."""
    lake.commit({1: 2})
    load(lake.pipeline(), until=known(9))
    publish(lake.pipeline())


def fired(trigger: MarkerTrigger) -> dict[str, Any]:
    async def first() -> dict[str, Any]:
        async for event in trigger.run():
            return dict(event.payload)
        raise AssertionError

    return asyncio.run(asyncio.wait_for(first(), 20))


def run_example(folder: Path, text: str) -> DagRun:
    """Run the DAG of the README, with some words changed, for the first of February."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import BundleDagBag, sync_bag_to_db

    folder.mkdir()
    # Airflow keeps each version of a DAG; those of other tests are no versions of this one.
    name = f"invoices_{folder.parent.name}"
    (folder / "team.py").write_text(text.replace('"invoices"', f'"{name}"'))
    DagBundlesManager().sync_bundles_to_db()
    bag = BundleDagBag(dag_folder=folder, bundle_path=folder, bundle_name="dags-folder")
    assert bag.import_errors == {}
    sync_bag_to_db(bag, "dags-folder", None)
    return bag.dags[name].test(logical_date=datetime(2026, 2, 1, tzinfo=UTC))


def test_partition_that_stands_releases_at_once_and_tells_what_stands(
    published: SmallLake,
) -> None:
    assert sensor(published.target).execute({}) == {
        "partition": "dt=2026-02-01",
        "revision": 1,
        "rows": 3,
        "files": 1,
    }


def test_partition_that_is_not_there_yet_is_waited_for_without_a_slot(
    published: SmallLake,
) -> None:
    waiting = deferred(sensor(published.target, "dt=2026-02-03", timeout=60, poke_interval=5))

    assert waiting.timeout == timedelta(seconds=60)
    path, arguments = waiting.trigger.serialize()
    assert arguments["poll_seconds"] == 5
    assert len(json.dumps([path, arguments])) < 400


def test_trigger_is_the_same_after_a_restart_of_the_triggerer(published: SmallLake) -> None:
    trigger = deferred(sensor(published.target, min_revision=2, poke_interval=0)).trigger
    path, arguments = trigger.serialize()
    again = import_string(path)(**json.loads(json.dumps(arguments)))
    assert again.look() is None

    revised(published)

    assert again.serialize() == trigger.serialize()
    assert again.look() == trigger.look()
    assert again.look()["standing"]["revision"] == 2


def test_later_revision_than_the_wanted_one_will_do(published: SmallLake) -> None:
    revised(published)

    assert sensor(published.target, min_revision="1").execute({})["revision"] == 2


def test_waiting_task_is_released_when_the_wanted_revision_is_published(
    published: SmallLake,
) -> None:
    waiting = sensor(published.target, min_revision=2, poke_interval=0.01)
    trigger = deferred(waiting).trigger
    revised(published)

    released = waiting.resume({}, fired(trigger))

    assert (released["revision"], released["rows"]) == (2, 5)


def test_commit_under_way_is_waited_for(published: SmallLake) -> None:
    """Its marker is retracted while files are moved."""
    marker = published.target / "dt=2026-02-01" / "_SUCCESS"
    content = marker.read_bytes()
    marker.unlink()
    trigger = deferred(sensor(published.target)).trigger
    assert trigger.look() is None

    marker.write_bytes(content)

    assert trigger.look()["standing"]["revision"] == 1


def test_look_of_the_trigger_reads_no_other_partition(
    published: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = deferred(sensor(published.target, min_revision=2)).trigger
    looked = []
    listing = LocalStorage.list_names
    monkeypatch.setattr(
        LocalStorage, "list_names", lambda self, root: looked.append(root) or listing(self, root)
    )

    trigger.look()

    partition = f"{published.target}/dt=2026-02-01"
    assert set(looked) <= {partition, f"{partition}/_revisions"}


def test_trigger_leaves_the_loop_to_others_while_a_disk_does_not_answer(
    published: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    trigger = deferred(sensor(published.target, min_revision=2, poke_interval=0)).trigger
    answered = threading.Event()
    monkeypatch.setattr(MarkerTrigger, "look", lambda _self: answered.wait(20) and {"error": {}})

    async def beside() -> int:
        waiting = asyncio.ensure_future(anext(aiter(trigger.run())))
        turns = 0
        for turns in range(1, 21):  # noqa: B007
            await asyncio.sleep(0.01)
        assert not waiting.done()
        answered.set()
        await waiting
        return turns

    assert asyncio.run(beside()) == 20


def test_trigger_waits_on_when_a_look_fails_for_a_moment(
    published: SmallLake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from tidegate.errors import StorageSilent

    trigger = deferred(sensor(published.target, min_revision=2)).trigger
    silent = StorageSilent(**dict.fromkeys(StorageSilent.value_names(), "x"))

    def fails(_self: LocalStorage, _root: str) -> list[str]:
        raise silent

    with monkeypatch.context() as patch, caplog.at_level(logging.INFO, "tidegate_airflow"):
        patch.setattr(LocalStorage, "list_names", fails)
        assert isinstance(deferred(sensor(published.target)).trigger, MarkerTrigger)
        assert trigger.look() is None
        assert trigger.look() is None

    assert caplog.messages == [str(silent)]
    revised(published)
    assert "standing" in (trigger.look() or {})


def test_damaged_marker_fails_the_task_and_so_does_one_that_is_damaged_later(
    published: SmallLake,
) -> None:
    waiting = sensor(published.target, min_revision=2, poke_interval=0.01, soft_fail=True)
    trigger = deferred(waiting).trigger
    (published.target / "dt=2026-02-01" / "_SUCCESS").write_text('{"pipeline": ')

    with pytest.raises(MarkerInvalid, match="no JSON"):
        sensor(published.target, soft_fail=True).execute({})
    with pytest.raises(MarkerInvalid, match="no JSON"):
        waiting.resume({}, fired(trigger))


def test_table_that_is_not_there_fails_at_once(tmp_path: Path) -> None:
    with pytest.raises(PublishedTableMissing, match="found nothing"):
        sensor(tmp_path / "lost").execute({})


@pytest.mark.parametrize("partition", ["day=2026-02-03", "dt=2026-02-03/hour=1", "all"])
def test_partition_that_the_table_cannot_have_fails_at_once(
    published: SmallLake, partition: str
) -> None:
    with pytest.raises(PartitionPathInvalid, match="expected dt=…"):
        sensor(published.target, partition).execute({})


def test_time_in_another_spelling_than_the_tables_fails_at_once(published: SmallLake) -> None:
    with pytest.raises(PartitionPathInvalid, match="a time written as in dt=2026-02-0"):
        sensor(published.target, "dt=2026-3-2").execute({})


def test_iceberg_target_fails_at_once_because_it_has_no_markers(tmp_path: Path) -> None:
    for name in ("metadata/v1.metadata.json", "data/.tidegate.owner"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("{}")

    with pytest.raises(WaitInvalid, match=r"`table`: expected a table with markers.*Iceberg"):
        sensor(tmp_path).execute({})


def test_partition_that_is_no_path_is_refused_when_the_dag_is_parsed() -> None:
    with pytest.raises(PartitionPathInvalid, match="partition path '2026-02-01'"):
        sensor(Path("/lake/orders"), "2026-02-01")


@pytest.mark.follows("WaitInvalid")
@pytest.mark.parametrize(
    ("argument", "wrong"),
    [("min_revision", 0), ("min_revision", "two"), ("table", "orders"), ("table", "")],
)
def test_argument_that_cannot_be_right_is_refused_and_a_corrected_one_works(
    published: SmallLake, argument: str, wrong: object
) -> None:
    right = {"table": str(published.target), "partition": "dt=2026-02-01", "min_revision": 1}

    with pytest.raises(WaitInvalid, match=f"wait: `{argument}`"):
        WaitForPartition(task_id="wait", **{**right, argument: wrong})

    assert WaitForPartition(task_id="wait", **right).execute({})["revision"] == 1


def test_template_that_makes_what_cannot_be_right_is_refused_when_the_task_runs(
    published: SmallLake,
) -> None:
    waiting = sensor(published.target, min_revision="{{ params.revision }}")
    waiting.min_revision = "none"

    with pytest.raises(WaitInvalid, match="found 'none'"):
        waiting.execute({})


def test_time_that_is_over_fails_the_task_or_skips_it(published: SmallLake) -> None:
    over = {"error": "Trigger timeout"}

    with pytest.raises(AirflowSensorTimeout):
        sensor(published.target).resume_execution("__fail__", over, {})
    with pytest.raises(AirflowSkipException):
        sensor(published.target, soft_fail=True).resume_execution("__fail__", over, {})


def test_never_fail_skips_what_is_wrong_as_well(tmp_path: Path) -> None:
    with pytest.raises(AirflowSkipException):
        sensor(tmp_path / "lost", never_fail=True).execute({})


def test_retry_policy_of_a_team_is_kept() -> None:
    from airflow.sdk import ExceptionRetryPolicy

    own = ExceptionRetryPolicy(rules=[])
    with DAG("team", schedule=None, default_args={"retry_policy": own}):
        waiting = sensor(Path("/lake/orders"))

    assert waiting.retry_policy is own


def test_right_that_is_missing_fails_with_its_name(
    published: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = StorageDenied(**dict.fromkeys(StorageDenied.value_names(), "x"))

    def fails(_self: LocalStorage, _root: str) -> list[str]:
        raise denied

    monkeypatch.setattr(LocalStorage, "list_names", fails)

    with pytest.raises(StorageDenied):
        sensor(published.target).execute({})


def test_dag_of_the_readme_waits_and_goes_on(
    published: SmallLake, airflow_database: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = EXAMPLE.replace("/lake/published/orders", str(published.target))

    run = run_example(tmp_path / "dags", text)

    assert states(run) == {"wait_for_orders": "success", "write_invoices": "success"}
    assert "dt=2026-02-01 1 3 1" in "".join(capfd.readouterr())


def test_dag_that_waits_is_released_by_the_trigger(
    published: SmallLake, airflow_database: None, tmp_path: Path
) -> None:
    """A task beside it publishes; the sensor is deferred until then, by Airflow itself."""
    marker = published.target / "dt=2026-02-01" / "_SUCCESS"
    hidden = marker.with_name("part-hidden")
    text = (
        EXAMPLE.replace("/lake/published/orders", str(published.target))
        .replace("poke_interval=60", "poke_interval=0.5")
        .replace(
            "    write_invoices(orders.output)",
            "    import threading, os\n"
            "    class Late(WaitForPartition):\n"
            "        def execute(self, context):\n"
            f"            names = {str(hidden)!r}, {str(marker)!r}\n"
            "            threading.Timer(2, os.rename, names).start()\n"
            "            return super().execute(context)\n"
            "    orders.__class__ = Late\n"
            "    write_invoices(orders.output)",
        )
    )
    marker.rename(hidden)

    run = run_example(tmp_path / "dags", text)

    assert states(run) == {"wait_for_orders": "success", "write_invoices": "success"}


def test_what_is_wrong_is_not_tried_again(
    lake: SmallLake, airflow_database: None, tmp_path: Path
) -> None:
    text = EXAMPLE.replace("/lake/published/orders", str(tmp_path / "lost")).replace(
        "poke_interval=60", "retries=3"
    )

    run = run_example(tmp_path / "dags", text)

    assert states(run)["wait_for_orders"] == "failed"
    assert tries(run)["wait_for_orders"] == 1


@pytest.mark.parametrize("layout", ["in_place", "revisions"])
def test_partition_in_a_store_is_waited_for_by_a_connection(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_KEY", KEY)
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    with moto_server() as server:
        said = {"conn_type": "aws", "login": KEY, "password": SECRET}
        more = {"endpoint_url": server.endpoint, "region_name": "us-east-1"}
        monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps({**said, "extra": more}))
        table = f"{server.bucket()}/published/orders"
        reached = {"connection": "lake"}
        lake = SmallLake(
            tmp_path / "lake",
            keys={"target": {"path": table, "layout": layout}, "s3": reached},
        )
        lake.commit({1: 3, 2: 1})
        load(lake.pipeline(), until=known(5))

        waiting = WaitForPartition(
            task_id="wait",
            table=table,
            partition="dt=2026-02-01",
            connection="lake",
            poke_interval=0.1,
        )
        asked = deferred(waiting)
        publish(lake.pipeline())
        path, given = asked.trigger.serialize()
        event = fired(import_string(path)(**given))

        assert waiting.resume({}, event)["rows"] == 3
        assert waiting.execute({})["revision"] == 1
