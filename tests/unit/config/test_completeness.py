"""Conditions, counts and calendars in a pipeline file: read, kept, and refused (PC-C01 to C04)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tidegate.config import PipelineConfig, json_schema, load_pipeline
from tidegate.errors import ConfigInvalid

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, **commit: Any) -> Path:
    usual = {
        "name": "orders",
        "source": {"kind": "files", "path": "/in"},
        "event_time": "at",
        "target": {"path": "/out", "partition_by": {"dt": "day(at)", "region": "region"}},
        "commit": commit,
    }
    path = folder / "orders.yaml"
    path.write_text(json.dumps(usual, indent=1))
    return path


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "no condition": ({"require": []}, "require", "expected at least one of trigger, counts"),
    "unknown condition": ({"require": ["ttrigger"]}, "require", "did you mean 'trigger'?"),
    "condition alone": ({"require": "trigger"}, "require", "expected a list of trigger"),
    "condition twice": ({"require": ["trigger", "trigger"]}, "require", "stands there twice"),
    "counts without place": ({"require": ["counts"]}, "require", "'counts' needs `commit.counts`"),
    "gate without gate": ({"require": ["gate"]}, "require", "'gate' needs `gate`"),
    "counts left out": (
        {"require": ["trigger"], "counts": {"file": "c.csv"}}, "require", "leaves out 'counts'"),
    "no place of counts": ({"counts": {}}, "counts", "needs a `query`, a `file` or a `table`"),
    "no connection": ({"counts": {"query": "select 1"}}, "counts.connection", "is required"),
    "no address": (
        {"counts": {"query": "q", "connection": "hunter2"}}, "counts.connection",
        "expected the address of a database"),
    "connection alone": (
        {"counts": {"file": "c.csv", "connection": "x://"}}, "counts.connection",
        "belongs to `query`"),
    "two places": (
        {"counts": {"file": "c.csv", "table": "a.b.c"}}, "counts.table", "another place beside it"),
    "unknown ending": ({"counts": {"file": "c.txt"}}, "counts.file", "expected a file that ends"),
    "no table": ({"counts": {"table": "counts"}}, "counts.table", "'counts' names no table"),
    "catalog of a folder": (
        {"counts": {"table": "./x", "catalog": "lake"}}, "counts.catalog", "belongs to the name"),
    "misspelt key": ({"counts": {"file": "c.csv", "tthreshold": 1}}, "counts.tthreshold",
                     "did you mean 'threshold'?"),
    "more than all": ({"counts": {"file": "c.csv", "threshold": 1.01}}, "counts.threshold", "1.01"),
    "calendar without start": ({"expected": {}}, "expected.start", "is required"),
    "calendar without values": (
        {"expected": {"start": "2026-01-01"}}, "expected.values.region", "is required"),
    "values of no key": (
        {"expected": {"start": "2026-01-01", "values": {"rregion": "eu"}}},
        "expected.values.rregion", "did you mean 'region'?"),
    "values of the time": (
        {"expected": {"start": "2026-01-01", "values": {"dt": "x", "region": "eu"}}},
        "expected.values.dt", "is made from the time"),
    "value missing": (
        {"expected": {"start": "2026-01-01", "values": {"region": [None]}}}, "expected.values",
        "expected texts or whole numbers"),
    "value twice": (
        {"expected": {"start": "2026-01-01", "values": {"region": ["eu", "eu"]}}},
        "expected.values", "expected values that differ"),
    "start inside": (
        {"expected": {"start": "2026-01-01T05:00", "values": {"region": "eu"}}},
        "expected.start", "does not begin a partition"),
    "start with offset": (
        {"expected": {"start": "2026-01-01T00:00+01:00", "values": {"region": "eu"}}},
        "expected.start", "has an offset"),
    "no time": ({"expected": {"start": "soon", "values": {"region": "eu"}}}, "expected.start",
                "expected a date or time"),
    "end before start": (
        {"expected": {"start": "2026-01-02", "end": "2026-01-02", "values": {"region": "eu"}}},
        "expected.end", "does not lie after start"),
    "unknown effect": (
        {"expected": {"start": "2026-01-01", "values": {"region": "eu"}, "on_empty": "markk"}},
        "expected.on_empty", "did you mean 'mark'?"),
    "calendar by process time": (
        {"trigger": "process-time", "expected": {"start": "2026-01-01"}}, "expected",
        "needs the trigger 'partition-time'"),
    "unknown turn": ({"default_partition": "nevr"}, "default_partition", "did you mean 'never'?"),
    "turn without time": ({"default_partition": "after"}, "default_partition",
                          "is written {after: 2d}"),
    "turn at once": ({"default_partition": {"after": "0s"}}, "default_partition.after", "greater"),
    "misspelt turn": ({"default_partition": {"aftr": "1d"}}, "default_partition.aftr",
                      "did you mean 'after'?"),
    "turn by process time": (
        {"trigger": "process-time", "default_partition": "at_end"}, "default_partition",
        "decides nothing"),
    "class of made keys": ({"partition_time": {"class": "a:B"}}, "partition_time",
                           "is known from `dt: day(at)`"),
}  # fmt: skip


@pytest.mark.parametrize(("commit", "key", "said"), WRONG.values(), ids=WRONG)
def test_mistake_is_named_with_its_key(
    tmp_path: Path, commit: dict[str, Any], key: str, said: str
) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        load_pipeline(written(tmp_path, **commit))

    assert refused.value.key == f"commit.{key}"
    assert said in refused.value.problem.splitlines()[0]
    assert refused.value.line > 1


def test_password_in_the_wrong_place_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        load_pipeline(written(tmp_path, counts={"query": "q", "connection": "hunter2"}))

    assert "hunter2" not in str(refused.value)


def test_everything_that_is_said_survives_a_plan(tmp_path: Path) -> None:
    config = load_pipeline(
        written(
            tmp_path,
            require=["approval", "counts", "trigger"],
            counts={"query": "select 1", "connection": "${env:AUDIT}", "threshold": 0.5},
            expected={"start": "2026-01-01", "values": {"region": ["eu", 7]}, "on_empty": "mark"},
            default_partition={"after": "36h"},
        )
    )

    again = PipelineConfig.from_resolved(json.loads(json.dumps(config.resolved())))

    assert again == config
    assert again.commit.require == ("trigger", "counts", "approval")
    assert again.commit.expected is not None
    assert again.commit.expected.values == {"region": ("eu", "7")}
    assert config.resolved()["commit"]["default_partition"] == {"after": "36h"}
    assert config.plan_inputs() == load_pipeline(written(tmp_path)).plan_inputs()


def test_counts_file_and_folder_are_found_from_the_pipeline_file(tmp_path: Path) -> None:
    file = load_pipeline(written(tmp_path, counts={"file": "c.csv"})).commit.counts
    folder = load_pipeline(written(tmp_path, counts={"table": "./c"})).commit.counts

    assert file is not None
    assert folder is not None
    assert (file.file, folder.table) == (str(tmp_path / "c.csv"), str(tmp_path / "c"))
    assert (file.iceberg, folder.iceberg) == (None, None)


def test_table_is_opened_as_a_source_is(tmp_path: Path) -> None:
    said = {"table": "audit.counts", "catalog": {"name": "lake", "uri": "sqlite://"}}
    counts = load_pipeline(written(tmp_path, counts=said)).commit.counts

    assert counts is not None
    assert counts.iceberg is not None
    assert counts.iceberg.table == "audit.counts"


def test_address_in_plain_text_is_refused(tmp_path: Path) -> None:
    said = {"query": "q", "connection": "postgresql://u:hidden@db/audit"}

    with pytest.raises(ConfigInvalid, match="is written in plain text") as refused:
        load_pipeline(written(tmp_path, counts=said))

    assert "`commit.counts.connection`" in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_schema_offers_the_words() -> None:
    text = json.dumps(json_schema())

    assert all(f'"{word}"' in text for word in ("approval", "at_end", "on_empty", "alarm"))
