"""NULL has a directory of its own, whatever it is called: no two values ever share one."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, load, local, publish
from tidegate import read_committed
from tidegate.cli.app import app
from tidegate.errors import (
    PartitionFieldInvalid,
    PartitionValueReserved,
    PipelineChanged,
    RowsUnaccounted,
)
from tidegate.model.partition import DEFAULT_NAME
from tidegate.model.run import Run

if TYPE_CHECKING:
    from click.testing import Result

    from tidegate.pipeline import Pipeline

GIVEN = "none_given"


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    """A lake whose source is a directory of plain files, and whose target is split by region."""
    lake = SmallLake(tmp_path / "lake")
    (lake.root / "drop").mkdir()
    lake.source = {"kind": "files", "path": str(lake.root / "drop")}
    lake.keys = {
        "target": {"partition_by": {"dt": None, "region": "region"}},
        "commit": {"trigger": "process-time"},
    }
    return lake


def named(lake: SmallLake, default_name: str, **keys: Any) -> Pipeline:
    return lake.pipeline(**keys, target={"default_partition_name": default_name})


def drop(lake: SmallLake, file: str, regions: dict[int, str | None]) -> None:
    """Put rows into a file of their own, which is a sub-split of its own."""
    moment = datetime(2026, 2, 1, 1, tzinfo=UTC)
    table = pa.table(
        {
            "id": pa.array(regions, pa.int64()),
            "number": pa.array(regions, pa.int64()),
            "at": pa.array([moment] * len(regions), pa.timestamp("us", "UTC")),
            "region": pa.array(regions.values(), pa.string()),
        }
    )
    pq.write_table(table, lake.root / "drop" / f"{file}.parquet")


def by_marker(lake: SmallLake) -> dict[int, str | None]:
    rows = read_committed(lake.target).to_table(columns=["id", "region"]).to_pylist()
    assert len(rows) == len({row["id"] for row in rows})
    return {row["id"]: row["region"] for row in rows}


def by_listing(lake: SmallLake) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for path in sorted(lake.target.rglob("*.parquet")):
        ids = pq.read_table(path, columns=["id"], partitioning=None)["id"].to_pylist()
        found[path.parent.name] = sorted([*found.get(path.parent.name, []), *ids])
    return found


FIRST: dict[int, str | None] = {1: None, 2: DEFAULT_NAME, 3: "eu"}
SECOND: dict[int, str | None] = {4: DEFAULT_NAME, 5: None}
BY_LISTING = {
    f"region={GIVEN}": [1, 5],
    f"region={DEFAULT_NAME}": [2, 4],
    "region=eu": [3],
}


@pytest.mark.parametrize(
    "windows",
    [
        pytest.param([[{**FIRST, **SECOND}]], id="one sub-split"),
        pytest.param([[{1: None, 3: "eu"}, {2: DEFAULT_NAME}, SECOND]], id="sub-splits"),
        pytest.param([[FIRST], [SECOND]], id="two windows"),
        pytest.param([[{1: None, 3: "eu"}, {5: None}], [{2: DEFAULT_NAME}, {4: DEFAULT_NAME}]],
                     id="null first"),
    ],
)  # fmt: skip
def test_null_and_the_usual_name_as_text_stay_apart(
    lake: SmallLake, windows: list[list[dict[int, str | None]]]
) -> None:
    kept = 0
    lake.keys["source"] = {"split": {"target_size": "1KiB", "open_cost": "1B"}}
    pipeline = named(lake, GIVEN)
    for sequence, files in enumerate(windows):
        for number, rows in enumerate(files):
            drop(lake, f"{sequence}-{number}", rows)
        kept += load(pipeline).summary.rows_kept
        publish(pipeline)

    assert kept == 5
    assert by_listing(lake) == BY_LISTING
    assert by_marker(lake) == {**FIRST, **SECOND}


@pytest.mark.parametrize("spelling", [f"region={GIVEN}", "_null_"], ids=["path", "key"])
def test_partition_of_null_is_explained_and_published_by_each_spelling(
    lake: SmallLake, spelling: str
) -> None:
    drop(lake, "a", FIRST)
    pipeline = named(lake, GIVEN)
    load(pipeline)

    partition = pipeline.parse_partition(spelling)
    outcome = pipeline.publish(partition, "cli", NOW, by_command=True)
    found = pipeline.explain(partition, NOW)

    assert (outcome.state, found.report.state.rows) == ("committed", 1)
    assert by_listing(lake) == {f"region={GIVEN}": [1]}


@pytest.mark.parametrize("default_name", [DEFAULT_NAME, "none given"])
def test_partition_without_a_time_is_published_by_the_command_that_is_printed(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, default_name: str
) -> None:
    lake.found_by_name(monkeypatch)
    rows = {"id": [1], "at": pa.nulls(1, pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(rows), lake.root / "drop" / "a.parquet")
    partition_by = {"dt": "day(at)", "region": None}
    lake.keys = {"target": {"partition_by": partition_by, "default_partition_name": default_name}}
    load(lake.pipeline())

    published = typed("tidegate publish orders")
    (explain,) = re.findall("Next: (.*)", published.stdout)
    (line,) = re.findall("Next: (.*)", typed(explain).stdout)
    told = re.findall("`(tidegate [^`]*)`", typed("tidegate status orders --json").stdout)

    assert (published.exit_code, by_listing(lake)) == (3, {})
    assert set(told) == {line, line.replace("publish", "rebuild")}
    assert typed(line).exit_code == 0
    assert by_listing(lake) == {f"dt={default_name}": [1]}


@pytest.mark.parametrize("published", [False, True], ids=["never published", "asked for once"])
def test_rows_without_a_time_that_a_rule_puts_aside_leave_nothing_pending(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, *, published: bool
) -> None:
    lake.found_by_name(monkeypatch)
    moment = datetime(2026, 2, 1, 1, tzinfo=UTC)
    rows = {"id": [1, 2], "at": pa.array([None, moment], pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(rows), lake.root / "drop" / "a.parquet")
    lake.keys = {"target": {"partition_by": {"dt": "day(at)", "region": None}}}
    load(lake.pipeline())
    if published:
        assert typed("tidegate publish orders").exit_code == 3
    said = reported()["why"]["detail"]
    rule = re.search("row rule `(.*?)` is added to `rows`, `(.*?)`", said)
    assert rule, said
    lake.keys["rows"] = [{"name": "timed", "where": rule[1]}]
    lake.pipeline()
    assert "puts aside such rows that were read before the row rule" in reported()["why"]["detail"]

    assert typed(rule[2]).exit_code == 0

    state = reported()
    assert (state["name"], state["why"], state["rows_pending"]) == ("empty", None, 0)
    explained = typed(f"tidegate explain orders dt={DEFAULT_NAME}").stdout
    assert "proposed" not in explained
    assert "Next:" not in explained
    (lake.root / "ledger.db").unlink()
    again = lake.pipeline()
    again.restore_ledger()
    empty = again.ledger.partitions.get(again.parse_partition(f"dt={DEFAULT_NAME}"))
    assert empty.name == "empty"


def test_rebuild_of_published_rows_without_a_time_names_the_partition_to_publish(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.found_by_name(monkeypatch)
    rows = {"id": [1], "at": pa.nulls(1, pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(rows), lake.root / "drop" / "a.parquet")
    lake.keys = {"target": {"partition_by": {"dt": "day(at)", "region": None}}}
    load(lake.pipeline())
    assert typed(f"tidegate publish orders dt={DEFAULT_NAME}").exit_code == 0
    assert by_listing(lake) == {f"dt={DEFAULT_NAME}": [1]}
    lake.keys["rows"] = [{"name": "timed", "where": "at is not null"}]
    lake.pipeline()

    rebuilt = typed(f"tidegate rebuild orders dt={DEFAULT_NAME}")
    (line,) = re.findall("Next: (.*)", rebuilt.stdout)

    assert typed(line).exit_code == 0
    assert by_listing(lake) == {}


def reported() -> dict[str, Any]:
    """Return what `status` says of the partition of NULL."""
    status = json.loads(typed("tidegate status orders --json").stdout)
    (found,) = (item for item in status["partitions"] if item["state"]["start"] is None)
    return found


def test_partition_that_became_empty_is_pending_again_with_its_next_rows(
    lake: SmallLake,
) -> None:
    drop(lake, "a", {1: "eu", 2: "us"})
    pipeline = lake.pipeline()
    load(pipeline)
    pipeline = lake.pipeline(rows=[{"name": "some", "where": "id <> 1"}])
    europe = pipeline.parse_partition("region=eu")
    planned = pipeline.rebuild([europe], Run("again", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)
    assert pipeline.ledger.partitions.get(europe).name == "empty"

    drop(lake, "b", {3: "eu"})
    load(pipeline)
    assert pipeline.ledger.partitions.get(europe).name == "pending"
    publish(pipeline)

    assert by_listing(lake) == {"region=eu": [3], "region=us": [2]}
    assert list(pipeline.findings()) == []


def typed(line: str) -> Result:
    program, *words = shlex.split(line)
    assert program == "tidegate"
    return CliRunner().invoke(app, words, catch_exceptions=False)


def test_lost_ledger_is_restored_with_every_partition(lake: SmallLake) -> None:
    drop(lake, "a", FIRST)
    pipeline = named(lake, GIVEN)
    load(pipeline)
    publish(pipeline)
    standing = pipeline.ledger.partitions.all()
    (lake.root / "ledger.db").unlink()

    again = named(lake, GIVEN)
    again.restore_ledger()
    drop(lake, "b", SECOND)
    load(again)
    publish(again)

    assert [item.partition for item in again.ledger.partitions.all()] == [
        item.partition for item in standing
    ]
    assert list(again.findings()) == []
    assert by_listing(lake) == BY_LISTING
    assert by_marker(lake) == {**FIRST, **SECOND}


@pytest.mark.parametrize("windows", [1, 2], ids=["one window", "two windows"])
def test_text_like_the_configured_name_is_refused_and_nothing_is_staged(
    lake: SmallLake, windows: int
) -> None:
    pipeline = named(lake, GIVEN)
    if windows == 2:
        drop(lake, "a", FIRST)
        load(pipeline)
        publish(pipeline)
    before = lake.listed_ids()
    drop(lake, "b", {6: "us", 7: GIVEN})

    with pytest.raises(PartitionValueReserved, match=f"'region'.*'{GIVEN}'"):
        load(pipeline)

    assert lake.listed_ids() == before
    assert list((lake.work / "windows" / str(windows)).rglob("*.parquet")) == []
    assert list((lake.work / "windows" / str(windows)).rglob("messages/*")) == []


def test_integer_written_like_the_configured_name_is_refused(lake: SmallLake) -> None:
    drop(lake, "a", {5: "eu", 6: None})
    target = {"partition_by": {"region": None, "n": "number"}, "default_partition_name": "5"}

    with pytest.raises(PartitionValueReserved, match=r"'number'.*'5'"):
        load(lake.pipeline(target=target))


@pytest.mark.follows("PartitionValueReserved")
@pytest.mark.parametrize("loads", [0, 1], ids=["first load", "later load"])
def test_remedy_other_name_is_taken_while_no_partition_is_for_null(
    lake: SmallLake, loads: int
) -> None:
    if loads:
        drop(lake, "a", {3: "eu"})
        load(lake.pipeline())
        publish(lake.pipeline())
    drop(lake, "b", {1: None, 2: DEFAULT_NAME})
    with pytest.raises(PartitionValueReserved, match=r"`target\.default_partition_name`"):
        load(lake.pipeline())

    pipeline = named(lake, GIVEN)
    load(pipeline)
    publish(pipeline)

    wanted = {f"region={GIVEN}": [1], f"region={DEFAULT_NAME}": [2]}
    assert by_listing(lake) == ({**wanted, "region=eu": [3]} if loads else wanted)


@pytest.mark.follows("PartitionValueReserved")
@pytest.mark.parametrize(
    ("column", "value", "rows"),
    [
        pytest.param("region", DEFAULT_NAME, {1: None, 2: DEFAULT_NAME, 3: "eu"}, id="text"),
        pytest.param("region", "it's", {1: None, 2: "it's", 3: "eu"}, id="quote"),
        pytest.param("number", "2", {1: None, 2: "us", 3: "eu"}, id="integer"),
    ],
)
def test_remedy_row_rule_as_printed_puts_such_rows_aside(
    lake: SmallLake, column: str, value: str, rows: dict[int, str | None]
) -> None:
    drop(lake, "a", rows)
    keys = {"partition_by": {"region": None, "k": column}, "default_partition_name": value}
    with pytest.raises(PartitionValueReserved) as refused:
        load(lake.pipeline(target=keys))
    printed = re.search(r"`\{name: (\w+), where: (.*)\}`", str(refused.value))
    assert printed is not None

    rule = {"name": printed[1], "where": json.loads(printed[2])}
    pipeline = lake.pipeline(target=keys, rows=[rule])
    announced = load(pipeline)
    publish(pipeline)

    assert announced.summary.rows_quarantined == 1
    assert sorted(number for ids in by_listing(lake).values() for number in ids) == [1, 3]


def test_row_rule_as_printed_puts_texts_aside_that_are_too_long(lake: SmallLake) -> None:
    drop(lake, "a", {1: "eu", 2: "x" * 300, 3: "ü" * 130, 4: None})
    with pytest.raises(PartitionFieldInvalid) as refused:
        load(lake.pipeline())
    printed = re.search(r"\{name: (\w+), where: (\".*\")\}", str(refused.value))
    assert printed is not None

    rule = {"name": printed[1], "where": json.loads(printed[2])}
    pipeline = lake.pipeline(rows=[rule])
    announced = load(pipeline)
    publish(pipeline)

    assert announced.summary.rows_quarantined == 2
    assert by_listing(lake) == {"region=eu": [1], f"region={DEFAULT_NAME}": [4]}


def test_other_name_after_null_was_announced_is_refused_and_the_old_one_goes_on(
    lake: SmallLake,
) -> None:
    drop(lake, "a", {1: None})
    load(lake.pipeline())
    publish(lake.pipeline())
    drop(lake, "b", {2: None, 3: "eu"})

    with pytest.raises(PipelineChanged, match="Change it back") as refused:
        load(named(lake, GIVEN))
    load(lake.pipeline())
    publish(lake.pipeline())

    assert refused.value.key == "target.default_partition_name"
    assert by_listing(lake) == {f"region={DEFAULT_NAME}": [1, 2], "region=eu": [3]}


@pytest.mark.follows("PipelineChanged")
@pytest.mark.parametrize("region", [None, GIVEN], ids=["null", "the name as text"])
@pytest.mark.parametrize("first", [DEFAULT_NAME, "nothing"])
def test_restoration_by_another_name_says_which_one_to_change_it_back_to(
    lake: SmallLake, region: str | None, first: str
) -> None:
    drop(lake, "a", {1: region})
    load(named(lake, first))
    publish(named(lake, first))
    with pytest.raises(PipelineChanged) as loading:
        load(named(lake, GIVEN))
    (lake.root / "ledger.db").unlink()

    with pytest.raises(PipelineChanged) as restoring:
        named(lake, GIVEN).restore_ledger()
    again = named(lake, restoring.value.expected)
    again.restore_ledger()

    assert str(restoring.value) == str(loading.value)
    assert (restoring.value.expected, restoring.value.found) == (first, GIVEN)
    assert by_marker(lake) == {1: region}
    assert list(again.findings()) == []


def test_other_name_that_is_the_value_of_a_partition_is_refused(lake: SmallLake) -> None:
    drop(lake, "a", {1: GIVEN})
    load(lake.pipeline())

    with pytest.raises(PipelineChanged) as refused:
        load(named(lake, GIVEN))

    assert refused.value.key == "target.default_partition_name"


def test_plan_from_before_the_other_name_announces_nothing(lake: SmallLake) -> None:
    """Its rows for NULL would stand in a directory that the next window gives to a text."""
    drop(lake, "a", {1: None})
    before = lake.pipeline()
    planned = before.plan(Run("a", "cli"), NOW)
    after = named(lake, GIVEN)
    after.adopt(NOW)

    with pytest.raises(PipelineChanged):
        before.finish_load(planned, NOW, local)
    drop(lake, "b", {2: DEFAULT_NAME})
    for _ in range(2):
        load(after)
    publish(after)

    assert by_listing(lake) == {f"region={GIVEN}": [1], f"region={DEFAULT_NAME}": [2]}


@pytest.mark.on_disk
@pytest.mark.follows("RowsUnaccounted")
def test_rows_that_no_contribution_has_are_not_announced_and_the_remedy_helps(
    lake: SmallLake,
) -> None:
    drop(lake, "a", {1: None, 2: "eu"})
    pipeline = lake.pipeline()
    (planned,) = pipeline.plan(Run("a", "cli"), NOW)
    with local("local") as executor:
        pipeline.stage(planned, executor)
    (message,) = (path for path in Path(planned.uri, "messages").iterdir() if path.is_file())
    said = json.loads(message.read_text())
    message.write_text(
        json.dumps({**said, "staged": {**said["staged"], "parts": said["staged"]["parts"][:1]}})
    )

    with pytest.raises(RowsUnaccounted, match=r"expected 2 rows .* found 1") as refused:
        pipeline.announce([planned], NOW)
    state = pipeline.ledger.pipeline.find()
    assert state is not None
    assert (state.checkpoint, pipeline.ledger.partitions.all()) == (None, ())
    shutil.rmtree(refused.value.plan)
    load(pipeline)
    publish(pipeline)

    assert by_listing(lake) == {f"region={DEFAULT_NAME}": [1], "region=eu": [2]}
