from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from small_lake import SmallLake
from tidegate.errors import PartitionBusy, PlanMissing, TidegateError
from tidegate.pipeline import submitted
from tidegate.pipeline.submitted import ORPHANED_EXIT, TERMINAL_EXIT, TRANSIENT_EXIT, run_job

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tidegate.pipeline import Pipeline

TERMINAL = PlanMissing(path="/lake/plan.json", window=1)
TRANSIENT = PartitionBusy(partition="dt=2026-02-01", holder="another")


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lake = SmallLake(tmp_path / "lake")
    monkeypatch.setenv("TIDEGATE_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.delenv(submitted.SUBMITTER, raising=False)
    request = json.dumps({"wanted": 3})
    report = f"{tmp_path}/errors/report.json"
    return ["--pipeline", str(lake.file()), "--request", request, "--report", report]


def test_job_gets_pipeline_and_request_and_ends_with_zero(
    arguments: list[str], tmp_path: Path
) -> None:
    seen: list[tuple[str, Any]] = []

    def step(pipeline: Pipeline, request: Mapping[str, Any]) -> None:
        seen.append((pipeline.config.name, request["wanted"]))

    assert run_job(step, arguments) == 0
    assert seen == [("orders", 3)]
    assert not (tmp_path / "errors").exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(TERMINAL, TERMINAL_EXIT, id="terminal"),
        pytest.param(TRANSIENT, TRANSIENT_EXIT, id="transient"),
    ],
)
def test_typed_error_is_left_for_the_submitter_and_told_by_the_exit_code(
    arguments: list[str], tmp_path: Path, error: TidegateError, code: int
) -> None:
    def step(pipeline: Pipeline, request: Mapping[str, Any]) -> None:
        raise error

    assert run_job(step, arguments) == code
    told = TidegateError.from_json(json.loads((tmp_path / "errors/report.json").read_text()))
    assert type(told) is type(error)
    assert told.values == error.values


def test_error_before_the_step_is_left_as_well(arguments: list[str], tmp_path: Path) -> None:
    arguments[1] = str(tmp_path / "missing.yaml")

    assert run_job(lambda *_: None, arguments) == TERMINAL_EXIT
    assert "PipelineNotFound" in (tmp_path / "errors/report.json").read_text()


def test_unknown_error_is_raised(arguments: list[str]) -> None:
    def step(pipeline: Pipeline, request: Mapping[str, Any]) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_job(step, arguments)


WAITER = """
import sys, time
from tidegate.pipeline.submitted import watch_submitter
watch_submitter(sys.argv[1])
print("watching", flush=True)
time.sleep(30)
"""


def test_job_ends_when_its_submitter_is_gone() -> None:
    script = (
        "from tidegate.pipeline.state.holders import process_owner; print(process_owner('task'))"
    )
    gone = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    job = subprocess.run(
        [sys.executable, "-c", WAITER, gone.stdout.strip()],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
        env=os.environ,
    )

    assert job.returncode == ORPHANED_EXIT
    assert "its successor goes on from here" in job.stderr
