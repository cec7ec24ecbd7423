"""A partition that failed to be published says so until it succeeds."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from interrupting import Interrupting
from small_lake import NOW, SmallLake, day, decide, load, publish
from tidegate.cli.app import app
from tidegate.errors import StagedFileMissing
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

pytestmark = pytest.mark.on_disk

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


SUITE = {
    "name": "orders",
    "expectations": [{"type": "expect_column_to_exist", "kwargs": {"column": "id"}}],
}


def staged(lake: SmallLake) -> Path:
    """The only staged file of the first day."""
    (found,) = lake.work.rglob(f"staged/*/*/{FIRST}/*.parquet")
    return found


@pytest.fixture
def whole(tmp_path: Path) -> SmallLake:
    """A loaded lake."""
    made = SmallLake(tmp_path / "whole")
    made.commit({1: 2, 9: 1})
    load(made.pipeline())
    return made


def test_run_that_fails_before_it_commits_leaves_the_partition_to_others(whole: SmallLake) -> None:
    file = staged(whole)
    away = file.rename(whole.root / "away")
    with pytest.raises(StagedFileMissing):
        whole.pipeline().publish(day(1), "one", NOW)
    away.rename(file)

    assert whole.pipeline().publish(day(1), "other", NOW).state == "committed"
    assert whole.ids() == {FIRST: [1, 2]}


def test_file_that_is_lost_while_the_suite_runs_is_missed_before_the_commit_begins(
    whole: SmallLake,
) -> None:
    suite = whole.root / "suite.json"
    suite.write_text(json.dumps(SUITE))
    calls = Interrupting(pattern=r"\.gate\.json$", happens=[staged(whole).unlink])
    pipeline = whole.pipeline(LocalStorage(calls), gate={"suite": str(suite)})

    with pytest.raises(StagedFileMissing):
        pipeline.publish(day(1), "cli", NOW)

    assert not calls.happens
    assert pipeline.ledger.publications.unrecorded(day(1)) is None


def test_file_that_is_lost_after_the_approval_is_missed_before_the_commit_begins(
    whole: SmallLake,
) -> None:
    whole.keys = {"commit": {"require": ["approval"]}}
    publish(whole.pipeline())
    decide(whole.pipeline(), day(1), comment="known")
    staged(whole).unlink()

    with pytest.raises(StagedFileMissing):
        whole.pipeline().publish(day(1), "cli", NOW)

    assert whole.pipeline().ledger.publications.unrecorded(day(1)) is None


@dataclass(frozen=True)
class Looking(LocalStorage):
    """A disk that notes which files are looked for together."""

    looks: list[str] = field(default_factory=list, compare=False)

    def lengths(self, paths: Iterable[str]) -> Mapping[str, int | None]:
        found = super().lengths(paths)
        self.looks.extend(found)
        return found


def test_files_that_no_suite_reads_are_looked_for_once_before_the_commit_and_once_in_it(
    whole: SmallLake,
) -> None:
    file, storage = staged(whole), Looking()

    publish(whole.pipeline(storage))

    assert storage.looks.count(str(file)) == 2
