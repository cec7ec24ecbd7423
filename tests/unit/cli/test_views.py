"""Tables are made from any value without an error, and say what matters."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from strategies import values_of
from tidegate.cli import changes_view, status_view
from tidegate.cli.explain_view import verdict_table
from tidegate.cli.plan_view import announced_facts, preview_facts
from tidegate.model.message import RunSummary
from tidegate.model.partition import Partition
from tidegate.model.plan import ScanPlan
from tidegate.model.publication import CheckResult, Outcome, Verdict
from tidegate.model.report import PartitionReport
from tidegate.model.run import Announced, PlannedWindow, PublishOutcome
from tidegate.pipeline.history import SourceInstant
from tidegate.source.protocol import InstantReport

if TYPE_CHECKING:
    from rich.console import RenderableType

few = hypothesis.settings(max_examples=20)
NOON = datetime(2013, 2, 9, 12, tzinfo=UTC)
DAY = Partition((("dt", "2013-02-09"),))


def text_of(renderable: RenderableType) -> str:
    """Print as into a wide file."""
    console = Console(width=400, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


@few
@given(st.lists(values_of(PartitionReport), max_size=3))
def test_partition_table_of_any_reports_has_a_row_each(reports: list[PartitionReport]) -> None:
    assert status_view.partition_table(reports).row_count == len(reports)


@few
@given(st.lists(values_of(PublishOutcome), max_size=3))
def test_outcome_table_of_any_outcomes_has_a_row_each(outcomes: list[PublishOutcome]) -> None:
    assert status_view.outcome_table(outcomes).row_count == len(outcomes)


def test_outcome_table_of_a_failed_partition_shows_the_error() -> None:
    outcome = PublishOutcome(DAY, "failed", 1, 10, error="the lake is dry")

    assert "the lake is dry" in text_of(status_view.outcome_table([outcome]))


@few
@given(values_of(RunSummary))
def test_summary_line_of_any_summary_is_one_line(summary: RunSummary) -> None:
    stages = replace(summary, seconds={"read": 1.25})

    line = status_view.summary_line(stages)

    assert "read 1.2 s" in line
    assert "\n" not in line


def test_verdict_table_lists_failed_checks_first() -> None:
    passed = CheckResult("passing", "critical", True, "1", "1")
    failed = CheckResult("failing", "critical", False, "0.49", ">= 0.8")

    text = text_of(verdict_table(Verdict(Outcome.HOLD, (passed, failed), 10, "pandas", NOON)))

    assert text.index("failing") < text.index("passing")
    assert "0.49" in text


@few
@given(values_of(ScanPlan))
def test_preview_of_any_plan_names_partitions_with_rows(plan: ScanPlan) -> None:
    text = text_of(preview_facts(plan, {DAY: 1234}, "America/New_York"))

    assert "dt=2013-02-09 with 1,234 rows" in text


@pytest.mark.parametrize(
    ("sealed", "said"), [(True, True), (False, False)], ids=["unchanged", "new"]
)
def test_announced_windows_that_were_sealed_are_called_unchanged(sealed: bool, said: bool) -> None:
    planned = PlannedWindow(3, 1, "d", "/w", 2, 0, 0, sealed)

    text = text_of(announced_facts([planned], Announced((), (3,), None, RunSummary()), "UTC"))

    assert ("already taken in, same plan" in text) is said


@pytest.mark.parametrize(
    ("added", "removed", "text"),
    [
        pytest.param(5, None, "+5", id="added"),
        pytest.param(5, 0, "+5", id="none-removed"),
        pytest.param(1200, 7, "+1,200 −7", id="both"),
        pytest.param(None, None, "", id="unknown"),
    ],
)
def test_difference_of_a_commit_is_signed(
    added: int | None, removed: int | None, text: str
) -> None:
    assert changes_view.difference(added, removed) == text


@few
@given(values_of(InstantReport), st.none() | st.integers(1, 9))
def test_instant_table_says_which_window_took_a_commit(
    report: InstantReport, window: int | None
) -> None:
    text = text_of(changes_view.instant_table([SourceInstant(report, window)], "UTC"))

    assert ("not yet" if window is None else f"window {window}") in text


@pytest.mark.parametrize(
    ("cell", "text"),
    [(None, "NULL"), ("[red]", "[red]"), (1.5, "1.5")],
    ids=["null", "markup", "number"],
)
def test_row_table_shows_cells_as_they_are(cell: Any, text: str) -> None:
    assert text in text_of(changes_view.row_table(["a"], [{"a": cell}]))
