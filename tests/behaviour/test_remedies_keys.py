"""Keys of the pipeline file: what a message says to write there loads what the source has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_lake import NOW, SCHEMA, SmallLake, known, load, local, publish, published_ids
from tidegate import errors
from tidegate.model.run import Run
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.errors import TidegateError

FIRST = "dt=2026-02-01"


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


@dataclass(frozen=True)
class Wrong:
    """Keys that are refused, and what the message says to write instead."""

    error: type[TidegateError]
    keys: dict[str, Any]
    says: str
    right: dict[str, Any] = field(default_factory=dict)


CHANGES = ["id", "at", "_change_type"]
WRONG = [
    Wrong(errors.ColumnMissing, {"event_time": "when"}, "Correct the name in the pipeline file"),
    Wrong(
        errors.ColumnMissing,
        {"target": {"partition_by": {"dt": "day(att)"}}},
        "Correct the name in the pipeline file",
    ),
    Wrong(
        errors.PredicateInvalid,
        {"source": {"read": {"filter": "amuont > 0"}}},
        "Correct it in the pipeline file",
        {"source": {"read": {"filter": "amount > 0"}}},
    ),
    Wrong(
        errors.RefNotFound,
        {"source": {"branch": "nowhere"}},
        "Correct `source` in the pipeline file",
        {"source": {"branch": "main"}},
    ),
    Wrong(
        errors.SourceNotFound,
        {"source": {"table": "raw.nothing"}},
        "Correct `source` in the pipeline file",
    ),
    Wrong(
        errors.InstantTimeMissing,
        {"source": {"instant_time": {"summary": "nobody-sets-this"}}},
        "remove `source.instant_time`",
        {"source": {"instant_time": None}},
    ),
    Wrong(
        errors.LineageUnavailable,
        {"source": {"read": {"mode": "lineage_upserts", "columns": CHANGES}}},
        "Use `source.read.mode: changelog` or `snapshot_diff`",
        {"source": {"read": {"mode": "changelog", "columns": CHANGES}}},
    ),
    Wrong(
        errors.LineageUnavailable,
        {"source": {"read": {"mode": "lineage_upserts", "columns": CHANGES}}},
        "Use `source.read.mode: changelog` or `snapshot_diff`",
        {"source": {"read": {"mode": "snapshot_diff", "columns": CHANGES}}},
    ),
]


def _is_identity(wrong: Wrong) -> bool:
    """Say whether a pipeline that loaded before is refused for the change itself."""
    source = wrong.keys.get("source", {})
    return "target" in wrong.keys or "table" in source or "branch" in source


@pytest.mark.follows(
    "ColumnMissing",
    "InstantTimeMissing",
    "LineageUnavailable",
    "PredicateInvalid",
    "RefNotFound",
    "SourceNotFound",
)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.error.__name__)
@pytest.mark.parametrize("loads", [0, 1], ids=["first load", "later load"])
def test_key_that_was_refused_is_corrected_and_loads(
    lake: SmallLake, wrong: Wrong, loads: int
) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    for _ in range(loads):
        load(lake.pipeline(**wrong.right))
        publish(lake.pipeline(**wrong.right))
        ids += lake.commit({1: 2})

    expected = wrong.error if loads == 0 or not _is_identity(wrong) else errors.PipelineChanged
    with pytest.raises(expected) as refused:
        load(lake.pipeline(**wrong.keys))

    assert loads or wrong.says in str(refused.value)
    load(lake.pipeline(**wrong.right))
    publish(lake.pipeline(**wrong.right))
    assert lake.ids() == lake.listed_ids() == {FIRST: ids}


@pytest.mark.follows("EmptyTable")
def test_start_in_a_table_without_commits_is_full(lake: SmallLake) -> None:
    wrong = {"snapshot_id": 7}
    with pytest.raises(errors.EmptyTable, match="use `start: full`"):
        load(lake.pipeline(source=wrong))

    ids = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline(source={"start": "full"}))
    publish(lake.pipeline())

    assert lake.ids() == lake.listed_ids() == {FIRST: ids}


@pytest.mark.follows("SecretMissing")
def test_variable_that_was_missing_is_set_and_the_load_run_again(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    catalog = {**lake.source["catalog"], "uri": "${env:LAKE_URI}"}
    monkeypatch.delenv("LAKE_URI", raising=False)
    with pytest.raises(errors.SecretMissing, match="LAKE_URI"):
        load(lake.pipeline(source={"catalog": catalog}))

    monkeypatch.setenv("LAKE_URI", lake.source["catalog"]["uri"])
    load(lake.pipeline(source={"catalog": catalog}))
    publish(lake.pipeline(source={"catalog": catalog}))

    assert lake.ids() == lake.listed_ids() == {FIRST: ids}


@pytest.mark.follows("WorkUnknown")
def test_work_directory_that_was_spelled_wrong_is_corrected_and_restored_from(
    lake: SmallLake,
) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    load(lake.pipeline())
    publish(lake.pipeline())
    for path in lake.root.glob("ledger.db*"):
        path.unlink()
    nowhere = str(lake.root / "published" / "nowhere")
    with pytest.raises(errors.WorkUnknown, match=r"Check `target\.path` and"):
        lake.pipeline(target={"path": nowhere}).restore_ledger()

    lake.pipeline().restore_ledger()

    ids += lake.commit({1: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    assert lake.ids() == lake.listed_ids() == {FIRST: ids}


@pytest.mark.follows("TableIdentityChanged")
def test_table_that_was_made_again_is_read_by_a_pipeline_of_another_name(lake: SmallLake) -> None:
    lake.commit({1: 3, 2: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    stood = lake.ids()
    lake.catalog.drop_table("raw.orders")
    lake.table = lake.catalog.create_table("raw.orders", SCHEMA)
    ids = lake.commit({1: 2, 2: 1})[:2]
    with pytest.raises(errors.TableIdentityChanged) as refused:
        load(lake.pipeline())
    assert "Start a new pipeline" in str(refused.value)

    target = lake.root / "published" / "anew"
    anew = open_pipeline(
        lake.file("anew", name="anew", target={"path": str(target)}),
        ledger=f"sqlite:///{lake.root}/ledger.db",
    )
    load(anew)
    publish(anew)

    assert published_ids(target) == {FIRST: ids}
    assert lake.ids() == stood


@pytest.mark.follows("PartitionKeyIllegal")
def test_partition_whose_key_is_too_long_for_airflow_is_published_by_its_path(
    lake: SmallLake,
) -> None:
    drop = lake.root / "drop"
    drop.mkdir()
    value = "long " * 50
    at = [known(0.5)]
    pq.write_table(
        pa.table({"id": [1], "at": pa.array(at, pa.timestamp("us", "UTC")), "v": [value]}),
        drop / "a.parquet",
    )
    lake.source = {"kind": "files", "path": str(drop)}
    pipeline = lake.pipeline(
        target={"partition_by": {"dt": None, "v": "v"}}, commit={"trigger": "process-time"}
    )
    load(pipeline)
    (state,) = pipeline.ledger.partitions.all()
    with pytest.raises(errors.PartitionKeyIllegal, match="`tidegate publish PIPELINE PARTITION`"):
        _ = state.partition.key

    named = pipeline.parse_partition(state.partition.path)
    outcome = pipeline.publish(named, "cli", NOW)

    assert outcome.state == "committed"
    assert list(published_ids(lake.target).values()) == [[1]]


def test_run_that_planned_before_a_key_was_corrected_announces_nothing(lake: SmallLake) -> None:
    ids = lake.commit({1: 3, 2: 1})[:3]
    before = lake.pipeline(timezone="Asia/Tokyo")
    planned = before.plan(Run("slow", "cli"), NOW)

    load(lake.pipeline())
    with pytest.raises(errors.FenceLost):
        before.finish_load(planned, NOW, local)

    publish(lake.pipeline())
    assert lake.ids() == lake.listed_ids() == {FIRST: ids}
    with pytest.raises(errors.PipelineChanged):
        load(lake.pipeline(timezone="Asia/Tokyo"))


@pytest.mark.follows("InstantNotFound")
def test_instant_that_is_chosen_from_the_list_that_is_named_is_begun_after(
    lake: SmallLake,
) -> None:
    lake.commit({1: 3, 2: 1})
    drop = lake.root / "drop"
    drop.mkdir()
    lake.source = {"kind": "files", "path": str(drop)}
    for number in (1, 2, 3):
        at = pa.array([known(0.5), known(1.5)], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"id": [number, -number], "at": at}), drop / f"{number}.parquet")
        if number < 3:
            lake.pipeline().source.timeline.pin(NOW)
    wrong = {"source": {"start": {"after": "the-second"}}}
    with pytest.raises(errors.InstantNotFound, match="`tidegate instants PIPELINE`"):
        load(lake.pipeline(**wrong))

    listed = lake.pipeline(**wrong).instants(NOW)
    second = listed[1].report.instant.id
    load(lake.pipeline(source={"start": {"after": second}}))
    publish(lake.pipeline(source={"start": {"after": second}}))

    assert lake.ids() == lake.listed_ids() == {FIRST: [3]}
