"""A partition that failed to be published says so until it succeeds."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from small_lake import NOW, SmallLake, day, load
from tidegate.cli.app import app
from tidegate.errors import StagedFileMissing

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "dt=2026-02-01"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    """A loaded lake whose staged files were deleted."""
    made = SmallLake(tmp_path / "lake")
    made.found_by_name(monkeypatch)
    made.commit({1: 2, 9: 1})
    load(made.pipeline())
    for path in made.work.rglob("*.parquet"):
        path.unlink()
    return made


def said(command: str, *, as_json: bool = False) -> Any:
    found = CliRunner().invoke(app, [*shlex.split(command), *(["--json"] if as_json else [])])
    return json.loads(found.stdout) if as_json else found.stdout


def test_status_and_explain_name_the_failure_until_it_is_mended(lake: SmallLake) -> None:
    assert "complete: waits for the next publish" in said("status orders")

    said("publish orders")
    shown = {"status": said("status orders"), "explain": said(f"explain orders {FIRST}")}

    for text in shown.values():
        assert "StagedFileMissing" in text
    said("replay orders 1")
    said("publish orders")
    assert lake.ids() == {FIRST: [1, 2]}
    assert "StagedFileMissing" not in said("status orders")
    assert "StagedFileMissing" not in said(f"explain orders {FIRST}")


def test_failure_of_a_step_in_airflow_is_kept_too(lake: SmallLake) -> None:
    pipeline = lake.pipeline()
    proposal = pipeline.propose(day(1), "run", NOW)
    assert proposal is not None
    with pytest.raises(StagedFileMissing):
        pipeline.gate(day(1), proposal.digest, "run", NOW)

    why = said(f"explain orders {FIRST}", as_json=True)["report"]["why"]
    assert "StagedFileMissing" in why["failed"]


def test_partition_that_is_only_too_early_has_not_failed(lake: SmallLake) -> None:
    said("publish orders dt=2026-02-09")

    assert "failed" not in said("explain orders dt=2026-02-09")
