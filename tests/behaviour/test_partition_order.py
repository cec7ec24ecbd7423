"""Partition keys stand in the path as the pipeline file orders them, and are addressed by it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from small_lake import DAY, NOW, SmallLake, load, local, publish
from tidegate.cli.app import app
from tidegate.cli.output import MISUSED
from tidegate.config import PipelineConfig
from tidegate.errors import PartitionPathInvalid, PipelineChanged
from tidegate.ledger import open_engine
from tidegate.ledger.schema import pipeline as pipeline_table
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

BACKWARDS = {"dt": "day(at)", "amount": "amount"}
"""Not in the order of the alphabet."""
FORWARDS = {"amount": "amount", "dt": "day(at)"}
PUBLISHED = "dt=2026-02-01/amount=7"
SPELLINGS = [PUBLISHED, "2026-02-01~7"]
FAILS = {
    "type": "expect_table_row_count_to_be_between",
    "kwargs": {"min_value": 1000},
    "severity": "critical",
}


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path / "lake")
    lake.keys = {"target": {"partition_by": BACKWARDS}}
    return lake


@pytest.fixture
def held(lake: SmallLake) -> SmallLake:
    """Load a day whose gate holds it."""
    suite = lake.root / "suite.json"
    suite.write_text(json.dumps({"name": "orders", "expectations": [FAILS]}))
    lake.keys = {**lake.keys, "gate": {"suite": str(suite)}}
    lake.commit({1: 3, 2: 1}, amount=7)
    load(lake.pipeline())
    publish(lake.pipeline())
    return lake


def command(lake: SmallLake, monkeypatch: pytest.MonkeyPatch, *words: str) -> Any:
    lake.found_by_name(monkeypatch)
    return CliRunner().invoke(app, list(words))


def test_order_of_the_file_is_the_order_of_the_published_path(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1}, amount=7)
    load(lake.pipeline())

    publish(lake.pipeline())

    assert [path for path in lake.stamps() if path.endswith("_SUCCESS")] == [
        f"{PUBLISHED}/_SUCCESS"
    ]
    assert lake.ids() == {"amount=7": ids[:3]}


@pytest.mark.parametrize("spelling", SPELLINGS, ids=["path", "key"])
def test_partition_is_explained_by_the_spelling_that_is_published(
    lake: SmallLake, spelling: str
) -> None:
    lake.commit({1: 3, 2: 1}, amount=7)
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)

    found = pipeline.explain(pipeline.parse_partition(spelling), NOW)

    assert (found.report.state.revision, found.report.state.rows) == (1, 3)


@pytest.mark.parametrize("spelling", SPELLINGS, ids=["path", "key"])
def test_held_partition_is_approved_and_published_by_the_spelling_that_is_published(
    held: SmallLake, spelling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = held.pipeline()
    shown = pipeline.explain(pipeline.parse_partition(PUBLISHED), NOW).report.proposed_digest
    approved = command(held, monkeypatch, "approve", "orders", spelling, "--digest", str(shown))
    published = command(held, monkeypatch, "publish", "orders", spelling)

    assert (approved.exit_code, published.exit_code) == (0, 0), approved.output + published.output
    assert held.ids() == {"amount=7": [1, 2, 3]}


def test_rebuild_replaces_the_partition_of_the_published_spelling(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1}, amount=7)
    pipeline = lake.pipeline()
    load(pipeline)
    publish(pipeline)
    narrow = lake.pipeline(source={"read": {"filter": "id <= 2"}})

    named = [narrow.parse_partition(PUBLISHED)]
    narrow.finish_load(narrow.rebuild(named, Run("again", "cli"), NOW), NOW, local)
    publish(narrow)

    assert lake.ids() == {"amount=7": ids[:2]}


def test_rebuild_of_an_illegal_partition_is_refused_and_takes_no_window(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit({1: 3, 2: 1}, amount=7)
    load(lake.pipeline())

    done = command(lake, monkeypatch, "rebuild", "orders", "amount=7/dt=2026-02-01")

    assert done.exit_code == MISUSED, done.output
    assert PartitionPathInvalid.__name__ in done.output
    assert [item.window.sequence for item in lake.pipeline().ledger.windows.all()] == [1]


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("unknown", ["dt=2026-02-09/amount=7", "dt=9/amount=x"])
def test_rebuild_of_a_partition_without_rows_is_an_error_and_leaves_nothing_that_hurts(
    lake: SmallLake, unknown: str, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = lake.commit({1: 3, 2: 1}, amount=7)
    load(lake.pipeline())

    done = command(lake, monkeypatch, "rebuild", "orders", unknown, *options)

    assert done.exit_code == MISUSED, done.output
    text = json.loads(done.output)["error"]["message"] if options else done.output
    assert f"no partition '{unknown}', and the source was read: it has no rows" in text
    assert "are rebuilt" not in text
    assert list(lake.pipeline().findings()) == []
    publish(lake.pipeline())
    ids = [*ids[:3], *lake.commit({1: 1}, amount=7)]
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids() == lake.listed_ids() == {"amount=7": ids}


def test_rebuild_names_what_has_no_rows_and_rebuilds_the_others(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = lake.commit({1: 3, 2: 1}, amount=7)
    load(lake.pipeline())
    publish(lake.pipeline())
    lake.keys = {**lake.keys, "source": {"read": {"filter": "id <= 2"}}}
    lake.pipeline()

    unknown = [f"dt=2026-02-{number:02d}/amount=7" for number in (8, 9)]
    done = command(lake, monkeypatch, "rebuild", "orders", PUBLISHED, *unknown)
    publish(lake.pipeline())

    assert done.exit_code == MISUSED, done.output
    assert f"no partition '{', '.join(unknown)}'" in done.output
    assert "the other partitions are rebuilt; known are" in done.output
    assert lake.ids() == {"amount=7": ids[:2]}


def test_late_rows_of_a_second_window_join_the_partition(lake: SmallLake) -> None:
    first = lake.commit({1: 3, 2: 1}, amount=7)
    pipeline = lake.pipeline()
    load(pipeline, until=NOW - DAY)
    publish(pipeline)
    late = lake.commit({1: 2}, amount=7)
    load(pipeline)

    publish(pipeline)

    assert lake.ids() == {"amount=7": [*first[:3], *late]}


def registered_before(lake: SmallLake, keys: dict[str, str]) -> None:
    """Make the ledger that of a version which published keys in alphabetical order."""
    engine = open_engine(f"sqlite:///{lake.root}/ledger.db")
    with engine.begin() as connection:
        identity = dict(connection.scalars(sa.select(pipeline_table.c.identity)).one())
        del identity["target.default_partition_name"]
        identity["target.partition_by"] = ", ".join(f"{key}: {of}" for key, of in keys.items())
        connection.execute(sa.update(pipeline_table).values(identity=identity))


@pytest.mark.parametrize("keys", [FORWARDS, BACKWARDS], ids=["alphabetical", "other order"])
def test_pipeline_of_an_earlier_version_goes_on_in_the_order_that_it_published(
    lake: SmallLake, keys: dict[str, str]
) -> None:
    """It always published in alphabetical order, whatever its file said."""
    lake.keys = {"target": {"partition_by": [{key: of} for key, of in FORWARDS.items()]}}
    first = lake.commit({1: 3, 2: 1}, amount=7)
    load(lake.pipeline())
    publish(lake.pipeline())
    registered_before(lake, keys)
    late = lake.commit({1: 2}, amount=7)

    load(lake.pipeline())
    publish(lake.pipeline())

    assert lake.ids() == {"dt=2026-02-01": [*first[:3], *late]}


def test_pipeline_of_an_earlier_version_names_the_order_that_it_published(lake: SmallLake) -> None:
    lake.keys = {"target": {"partition_by": [{key: of} for key, of in FORWARDS.items()]}}
    lake.commit({1: 3, 2: 1}, amount=7)
    load(lake.pipeline())
    registered_before(lake, BACKWARDS)
    lake.keys = {"target": {"partition_by": BACKWARDS}}

    with pytest.raises(PipelineChanged, match="Change it back") as refused:
        load(lake.pipeline())

    assert (refused.value.key, refused.value.expected) == (
        "target.partition_by",
        "amount: amount, dt: day(at)",
    )


def test_order_changed_after_the_first_load_is_refused(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1}, amount=7)
    load(lake.pipeline())
    lake.keys = {"target": {"partition_by": [{key: of} for key, of in FORWARDS.items()]}}

    with pytest.raises(PipelineChanged) as refused:
        load(lake.pipeline())

    assert refused.value.key == "target.partition_by"


def test_plan_of_an_earlier_version_has_its_keys_as_a_mapping(lake: SmallLake) -> None:
    resolved = lake.pipeline().config.resolved()
    resolved["target"]["partition_by"] = FORWARDS

    fields = PipelineConfig.from_resolved(resolved).target.partition_by

    assert [(field.name, field.column) for field in fields] == [("amount", "amount"), ("dt", "at")]
