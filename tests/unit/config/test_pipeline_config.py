"""What a whole configuration tells: identity, plan inputs, notes, secrets, places, schema."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tidegate.config import (
    PipelineConfig,
    environment,
    home,
    json_schema,
    ledger_url,
    pipelines_folder,
    resolve_secret,
)
from tidegate.errors import SecretMissing
from tidegate.model.sort_key import SortKey
from tidegate.model.wire import pretty


def config(**said: Any) -> PipelineConfig:
    """Make a pipeline that reads an Iceberg table and writes by day."""
    whole = {
        "name": "orders",
        "source": {"kind": "iceberg", "table": "lake.raw.orders"},
        "event_time": "at",
        "target": {"path": "/out", "partition_by": {"dt": "day(at)"}},
        **said,
    }
    return PipelineConfig.from_resolved(whole)


def test_identity_names_what_may_not_change() -> None:
    assert config().identity() == {
        "source": "iceberg lake.raw.orders",
        "target.path": "/out",
        "target.partition_by": "dt: day(at)",
        "target.default_partition_name": "__DEFAULT_PARTITION__",
        "timezone": "UTC",
        "target.write": "append",
    }


@pytest.mark.parametrize("keys", [["dt", "b", "a"], ["a", "b", "dt"]], ids=["file", "alphabet"])
def test_order_of_partition_keys_survives_json_with_sorted_keys(keys: list[str]) -> None:
    fields = {key: "day(at)" if key == "dt" else key for key in keys}
    made = config(target={"path": "/out", "partition_by": fields})

    raw = json.loads(pretty(made.resolved()))

    again = PipelineConfig.from_resolved(raw)
    assert [field.name for field in again.target.partition_by] == keys
    assert again.identity() == made.identity()
    assert again.resolved() == made.resolved()


@pytest.mark.parametrize(
    ("said", "is_read_back"),
    [
        ({"format": "orc"}, None),
        ({"format": "orc", "compaction": True}, None),
        ({"format": "orc", "write": "upsert", "keys": ["id"], "keys_stay": True}, True),
        ({"write": "upsert", "keys": ["id"], "keys_stay": True}, None),
    ],
    ids=["as staged", "joined", "merged", "format that is always read"],
)
def test_files_that_are_merged_later_are_written_so_that_they_are_read_again(
    said: dict[str, Any], is_read_back: bool | None
) -> None:
    made = config(target={"path": "/out", "partition_by": {"dt": "day(at)"}, **said})

    assert made.target.part_format.is_read_back is is_read_back


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ({"kind": "files", "path": "/in/"}, "files /in"),
        ({"kind": "iceberg", "metadata": "/t"}, "iceberg /t"),
        ({"kind": "iceberg", "metadata": "/t/metadata/v3.metadata.json"}, "iceberg /t"),
        (
            {"kind": "iceberg", "catalog": {"name": "c", "uri": "x"}, "table": "a.b"},
            "iceberg c.a.b",
        ),
    ],
    ids=["files", "table directory", "metadata file", "catalog"],
)
def test_identity_of_a_source_is_its_table(source: dict[str, Any], address: str) -> None:
    assert config(source=source).identity()["source"] == address


@pytest.mark.parametrize(
    "said",
    [
        {"timezone": "Europe/Berlin"},
        {"rows": [{"name": "r", "where": "x > 1"}]},
        {"event_time": {"column": "at", "future_tolerance": "1h"}},
        {"source": {"kind": "iceberg", "table": "lake.raw.orders", "read": {"filter": "x > 1"}}},
        {"source": {"kind": "iceberg", "table": "lake.raw.orders", "split": {"max_rows": 5}}},
        {"target": {"path": "/out", "partition_by": {"dt": "day(at)", "r": "r"}}},
        {"target": {"path": "/out", "partition_by": {"dt": "day(at)"}, "max_open_partitions": 2}},
        {"target": {"path": "/out", "partition_by": {"dt": "day(at)"}, "sort_by": ["x"]}},
        {"target": {"path": "/out", "partition_by": {"dt": "day(at)"}, "sort_by": ["-x"]}},
        {
            "target": {
                "path": "/out",
                "partition_by": {"dt": "day(at)"},
                "shuffle_by_partition": True,
            }
        },
    ],
    ids=[
        "zone",
        "rules",
        "tolerance",
        "filter",
        "split",
        "partitioning",
        "writers",
        "order",
        "other order",
        "shuffle",
    ],
)
def test_plan_inputs_hold_what_decides_staged_bytes(said: dict[str, Any]) -> None:
    assert config(**said).plan_inputs() != config().plan_inputs()


def test_plans_of_pipelines_without_an_order_of_rows_are_what_they_were() -> None:
    target = {"path": "/out", "partition_by": {"dt": "day(at)"}}
    said = config(target={**target, "sort_by": [], "shuffle_by_partition": False})

    assert said == config(target=target)
    assert {"sort_by", "shuffle_by_partition"}.isdisjoint(said.resolved()["target"])


def test_order_of_rows_survives_json() -> None:
    target = {"path": "/out", "partition_by": {"dt": "day(at)"}, "sort_by": ["r", "-x"]}
    said = config(target=target)

    again = PipelineConfig.from_resolved(json.loads(json.dumps(said.resolved())))

    assert again.target.sort_by == (SortKey("r"), SortKey("x", descending=True))
    assert again == said


@pytest.mark.parametrize(
    "said",
    [
        {"commit": {"delay": "1h"}},
        {"gate": {"suite": "s.json"}},
        {"execute": {"engine": "spark"}},
        {"dag": {"owner": "someone"}},
        {"retention": {"revisions": 5, "quarantine": "90d"}},
        {"event_time": {"column": "at", "lateness": "1h"}},
        {"target": {"path": "/elsewhere", "partition_by": {"dt": "day(at)"}}},
        {
            "source": {
                "kind": "iceberg",
                "table": "lake.raw.orders",
                "location_rewrite": {"/a": "/b"},
            }
        },
    ],
    ids=["commit", "gate", "execute", "dag", "retention", "lateness", "place", "rewrite"],
)
def test_plan_inputs_leave_out_what_comes_later(said: dict[str, Any]) -> None:
    assert config(**said).plan_inputs() == config().plan_inputs()


def test_retention_is_in_no_plan_so_that_plans_keep_their_bytes() -> None:
    made = config(retention={"revisions": 5, "age": "30d", "quarantine": "90d"})

    assert made.retention.revisions == 5
    assert made.resolved() == config().resolved()
    assert "retention" not in made.resolved()


TABLE = {"kind": "iceberg", "table": "lake.raw.orders"}
FOLDER = {"kind": "files", "path": "/in"}
CHANGELOG = {"columns": ["id", "at", "_change_type"], "mode": "changelog"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (FOLDER, {"on_changed_file": "ignore"}),
        (FOLDER, {"on_bad_path": "skip"}),
        (FOLDER, {"path_regex": ".*[.]parquet"}),
        (FOLDER, {"start": "latest"}),
        ({**TABLE, "start": "earliest"}, {"start": "latest"}),
    ],
    ids=["changed file", "bad path", "regex", "start of files", "start of a table"],
)
def test_plan_inputs_leave_out_what_decides_only_windows_and_refusals(
    source: dict[str, Any], said: dict[str, Any]
) -> None:
    other = config(source={**source, **said})

    assert other.resolved() != config(source=source).resolved()
    assert other.plan_inputs() == config(source=source).plan_inputs()


@pytest.mark.parametrize(
    "said",
    [
        {"start": "earliest"},
        {"on_expired_cursor": "from_oldest"},
        {"on_off_lineage": "snapshot_diff"},
        {"path_match": "exact"},
        {"read": {**CHANGELOG, "strict_identifiers": True}},
    ],
    ids=["start", "expired", "off lineage", "path match", "checked in tasks"],
)
def test_plan_inputs_hold_what_decides_how_a_window_is_read(said: dict[str, Any]) -> None:
    source = {**TABLE, "read": CHANGELOG}

    assert config(source={**source, **said}).plan_inputs() != config(source=source).plan_inputs()


def test_configurations_that_say_the_same_are_equal_wherever_they_stand() -> None:
    assert config() == config()
    assert config() != config(timezone="Europe/Berlin")
    assert config() != "orders"


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ({"commit": {"trigger": "process-time"}}, "at the first load that touches it"),
        (
            {"target": {"path": "/out", "partition_by": {"dt": "dt"}}},
            "does not wait for it), and its length is unknown: `commit.delay` must contain it",
        ),
        ({"event_time": "other"}, "partitions are made from `at`, but the watermark follows"),
        (
            {"target": {"path": "/out", "rolling": {"file_size": 128}}},
            "`target.rolling.file_size` is 128 bytes",
        ),
        ({"target": {"path": "/out"}, "commit": {"policies": []}}, "`[success-file]` publishes"),
    ],
    ids=[
        "process time at once",
        "length unknown",
        "other column",
        "size without its unit",
        "no policy",
    ],
)
def test_notes_say_what_may_surprise(said: dict[str, Any], note: str) -> None:
    notes = config(**said).notes()

    assert len(notes) == 1
    assert note in notes[0]
    assert "abc" not in notes[0]


@pytest.mark.parametrize(
    "said",
    [
        {"commit": {"trigger": "process-time", "delay": "1h"}},
        {
            "target": {"path": "/out", "partition_by": {"dt": "dt"}},
            "commit": {"partition_time": {"interval": "1 d"}},
        },
        {"target": {"path": "/out"}, "event_time": None},
        {"target": {"path": "/out", "rolling": {"file_size": "64KiB"}}},
        {
            "source": {
                "kind": "iceberg",
                "table": "raw.orders",
                "catalog": {"name": "c", "token": "${env:T}"},
            }
        },
    ],
    ids=["delay", "interval", "unpartitioned", "size", "secret of the environment"],
)
def test_notes_are_silent_where_all_is_said(said: dict[str, Any]) -> None:
    assert config(**said).notes() == ()


def test_secret_is_put_in_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER_NAME", "me")
    monkeypatch.setenv("PASS_WORD", "${env:USER_NAME}")

    resolved = resolve_secret("db://${env:USER_NAME}:${env:PASS_WORD}@host", "source.catalog.uri")

    assert resolved == "db://me:${env:USER_NAME}@host"


def test_secret_that_was_lent_is_used_where_the_process_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment, "_lent", {})
    monkeypatch.setenv("USER_NAME", "own")
    monkeypatch.delenv("PASS_WORD", raising=False)

    environment.lend_values({"USER_NAME": "lent", "PASS_WORD": "lent"})

    assert resolve_secret("${env:USER_NAME}:${env:PASS_WORD}", "source.uri") == "own:lent"
    assert "PASS_WORD" not in os.environ


def test_secret_that_is_not_set_names_variable_and_key() -> None:
    with pytest.raises(
        SecretMissing, match=r"`source\.catalog\.uri`: .* NOT_SET_ANYWHERE is not set"
    ):
        resolve_secret("${env:NOT_SET_ANYWHERE}", "source.catalog.uri")


def test_places_follow_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path))
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path / "p"))
    monkeypatch.delenv("TIDEGATE_LEDGER", raising=False)

    assert home() == tmp_path
    assert ledger_url() == f"sqlite:///{tmp_path}/ledger.db"
    assert pipelines_folder() == tmp_path / "p"


def test_places_without_environment_are_the_checkouts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TIDEGATE_HOME", "TIDEGATE_PIPELINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIDEGATE_LEDGER", "postgresql+psycopg://host/db")
    assert ledger_url() == "postgresql+psycopg://host/db"
    assert pipelines_folder() == Path(__file__).parents[3] / "include" / "pipelines"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("TIDEGATE_HOME", "TIDEGATE_PIPELINES", "TIDEGATE_LEDGER"):
        monkeypatch.delenv(name, raising=False)
    made = tmp_path / "project" / "pipelines"
    made.mkdir(parents=True)
    return made


@pytest.mark.parametrize(
    ("here", "expected"),
    [("project", "project"), ("project/pipelines", "project/pipelines"), (".", ".")],
)
def test_new_home_above_the_pipeline_files_is_here(
    monkeypatch: pytest.MonkeyPatch, folder: Path, here: str, expected: str
) -> None:
    root = folder.parent.parent
    monkeypatch.chdir(root / here)

    assert home(folder) == root / expected / ".tidegate"


def test_new_home_is_beside_the_pipeline_files_if_they_are_elsewhere(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    elsewhere = folder.parent.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    assert home(folder) == folder / ".tidegate"


@pytest.mark.parametrize("here", ["project", "project/pipelines", "elsewhere"])
@pytest.mark.parametrize("place", ["project", "project/pipelines"])
@pytest.mark.parametrize("kind", ["ledger.db", "postgres/has-ledger"])
def test_ledger_is_found_from_everywhere(
    monkeypatch: pytest.MonkeyPatch, folder: Path, here: str, place: str, kind: str
) -> None:
    root = folder.parent.parent
    (root / here).mkdir(exist_ok=True)
    (root / here / ".tidegate").mkdir(exist_ok=True)  # without a ledger
    known = root / place / ".tidegate" / kind
    known.parent.mkdir(parents=True, exist_ok=True)
    known.touch()
    monkeypatch.chdir(root / here)

    assert home(folder) == root / place / ".tidegate"
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(folder))
    assert home() == root / place / ".tidegate"


def test_schema_knows_every_key_and_the_shorthands() -> None:
    schema = json_schema()

    assert schema["required"] == ["name", "source", "target"]
    assert set(schema["properties"]) == {*PipelineConfig.model_fields, "schedule"}
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["CommitConfig"]["properties"]["trigger"]["enum"] == [
        "partition-time",
        "process-time",
    ]
    assert {"type": "string"} in schema["$defs"]["EventTimeConfig"]["anyOf"]


def test_schema_says_what_keys_are_for() -> None:
    schema = json_schema()

    assert schema["properties"]["name"]["description"] == (
        "The identity of the pipeline, and the prefix of its DAG ids."
    )
    interval = schema["$defs"]["PartitionTimeConfig"]["properties"]["interval"]
    assert interval["description"] == "The length of one partition in local time."


def test_schema_accepts_what_the_design_shows() -> None:
    jsonschema.validate(
        {
            "name": "orders",
            "schedule": "@hourly",
            "source": {
                "kind": "iceberg",
                "table": "lake.raw.orders",
                "catalog": "lake",
                "start": {"after": 5},
                "split": {"target_size": "128MiB"},
            },
            "event_time": "at",
            "target": {"path": "/out", "partition_by": {"dt": "day(at)"}},
            "commit": {"policies": ["success-file", {"custom": "a:B"}], "delay": "15 min"},
        },
        json_schema(),
    )
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "orders"}, json_schema())
