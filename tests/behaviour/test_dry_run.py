"""A dry run says what a load with the same arguments does, also where it only replays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from small_lake import SmallLake, interval, known, load, publish
from tidegate.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

FROM_TO = ("--from", known(0).isoformat(), "--until", known(2).isoformat())
"""The days of the first two windows; a third follows them."""
POSITIVE = [{"name": "positive", "where": "amount > 0", "on_failure": "quarantine"}]
LARGE = [{**POSITIVE[0], "where": "amount > 5"}]


def tidegate(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    """Three windows of a day each, loaded with a rule that all rows pass."""
    lake = SmallLake(tmp_path / "lake")
    lake.found_by_name(monkeypatch)
    for number in (1, 2, 3):
        lake.commit({number: 2}, amount=number * 3)
    pipeline = lake.pipeline(rows=POSITIVE)
    for number in (1, 2, 3):
        load(pipeline, interval(number))
    return lake


def dry_run_replays() -> dict[int, str | None]:
    """Window → how its plan differs."""
    said = json.loads(tidegate("plan", "--dry-run", "orders", *FROM_TO, "--json").stdout)
    assert said["plan"] is None
    return {item["window"]: item["differs"] for item in said["replays"]}


def planned_otherwise(said: Any) -> dict[int, bool]:
    return {item["sequence"]: not item["sealed"] for item in said["planned"]}


@pytest.mark.usefixtures("lake")
def test_dry_run_of_a_loaded_interval_names_the_windows_that_stay_unchanged() -> None:
    dry = tidegate("plan", "--dry-run", "orders", *FROM_TO)
    found = dry_run_replays()
    loaded = json.loads(tidegate("load", "orders", *FROM_TO, "--json").stdout)

    assert found == {1: None, 2: None}
    assert planned_otherwise(loaded) == {1: False, 2: False}
    assert dry.exit_code == 0
    assert "windows 1, 2: already taken in, same plan" in dry.stdout
    assert f"Next: tidegate load orders {' '.join(FROM_TO)}" in dry.stdout


def test_dry_run_of_a_loaded_interval_says_why_its_windows_are_replayed(lake: SmallLake) -> None:
    lake.file(rows=LARGE)

    dry = tidegate("plan", "--dry-run", "orders", *FROM_TO)
    found = dry_run_replays()
    loaded = json.loads(tidegate("load", "orders", *FROM_TO, "--json").stdout)

    assert found == dict.fromkeys((1, 2), "`rows` changed in the pipeline file")
    assert planned_otherwise(loaded) == {1: True, 2: True}
    assert "window 2: its plan differs: `rows` changed in the pipeline file" in dry.stdout
    assert "window 3" not in dry.stdout


def test_dry_run_after_a_replay_finds_only_the_other_windows_changed(lake: SmallLake) -> None:
    lake.file(rows=LARGE)
    tidegate("replay", "orders", "1")

    assert dry_run_replays() == {1: None, 2: "`rows` changed in the pipeline file"}


@pytest.mark.usefixtures("lake")
def test_dry_run_ahead_of_the_checkpoint_finds_nothing_to_replay() -> None:
    dry = tidegate("plan", "--dry-run", "orders", "--json")

    assert json.loads(dry.stdout) == {"plan": None, "replays": []}
    assert dry.exit_code == 3


@pytest.mark.parametrize(
    ("code", "keys"),
    [
        ("ColumnMissing", {"event_time": {"column": "att"}}),
        ("ColumnMissing", {"target": {"partition_by": {"region": "region"}}}),
        ("PredicateInvalid", {"rows": [{**POSITIVE[0], "where": "amounts > 0"}]}),
    ],
    ids=["event time", "partition key", "row rule"],
)
@pytest.mark.parametrize("asked", [["plan", "--dry-run"], ["plan"], ["load"]], ids=" ".join)
def test_what_no_task_could_stage_is_refused_before_a_window_is_taken(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: list[str],
    code: str,
    keys: dict[str, Any],
) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.found_by_name(monkeypatch)
    ids = lake.commit({1: 2, 9: 1})
    lake.pipeline(**keys)

    refused = json.loads(tidegate(*asked, "orders", "--json").stdout)

    assert refused["error"]["code"] == code, refused
    mended = lake.pipeline()
    assert mended.ledger.windows.all() == ()
    load(mended)
    publish(mended)
    assert lake.ids() == {"dt=2026-02-01": ids[:2]}
