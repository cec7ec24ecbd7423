"""A pipeline as a table: made from any report, and says what matters."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import hypothesis
from hypothesis import given
from hypothesis import strategies as st

from strategies import values_of
from terminal import text_of
from tidegate.cli import status_view
from tidegate.model.file_sizes import FileSizes
from tidegate.model.message import RunSummary
from tidegate.model.partition import Partition
from tidegate.model.report import PartitionReport, PipelineReport
from tidegate.model.run import PublishOutcome
from tidegate.model.watermark import Evaluation, Reason

few = hypothesis.settings(max_examples=20)
DAY = Partition((("dt", "2013-02-09"),))


@few
@given(st.lists(values_of(PartitionReport), max_size=3))
def test_partition_table_of_any_reports_has_a_row_each(reports: list[PartitionReport]) -> None:
    assert status_view.partition_table(reports).row_count == len(reports)


@few
@given(st.lists(values_of(PublishOutcome), max_size=3))
def test_outcome_table_of_any_outcomes_has_a_row_each(outcomes: list[PublishOutcome]) -> None:
    assert status_view.outcome_table(outcomes).row_count == len(outcomes)


def test_outcome_table_cuts_nothing_off_what_is_to_be_typed() -> None:
    detail = f"`tidegate publish orders dt=__DEFAULT_PARTITION__/key={'Q' * 200}` publishes it"
    why = Evaluation(False, Reason.DEFAULT_PARTITION, detail, datetime(2013, 2, 9, tzinfo=UTC))

    said = text_of(status_view.outcome_table([PublishOutcome(DAY, "pending", 0, 0, why)]), 100)

    assert said.count("Q") == 200


def test_outcome_without_a_gate_shows_a_dash_for_its_verdict() -> None:
    table = status_view.outcome_table([PublishOutcome(DAY, "published", 1, 7, None)])

    assert [str(cell) for cell in table.columns[5].cells] == ["–"]


@few
@given(values_of(RunSummary))
def test_summary_line_of_any_summary_is_one_line(summary: RunSummary) -> None:
    # The names of rules have no line breaks.
    stages = replace(
        summary,
        seconds={"read": 1.25},
        rule_hits={"odd": 7, "none": 0, "even": 1_200},
        rows_aside=summary.rows_aside and {"late": sum(summary.rows_aside.values())},
    )

    line = status_view.summary_line(stages)

    assert "read 1.2 s" in line
    assert "7 fail odd, 1,200 fail even; " in line
    assert "\n" not in line


@few
@given(values_of(PipelineReport))
def test_pipeline_facts_of_any_report_name_every_note(report: PipelineReport) -> None:
    noted = replace(report, notes=("window 7 is open",))

    assert "window 7 is open" in text_of(status_view.pipeline_facts(noted, "America/New_York"))


@few
@given(st.lists(values_of(FileSizes), max_size=3))
def test_file_table_of_any_sizes_has_a_row_each(sizes: list[FileSizes]) -> None:
    assert status_view.file_table(sizes).row_count == len(sizes)


def test_files_are_told_with_what_merging_them_would_leave() -> None:
    sizes = [
        FileSizes.of(DAY, [5 << 20] * 4, 16 << 20, 128 << 20),
        FileSizes.of(DAY, [128 << 20, 1 << 20], 16 << 20, 128 << 20),
    ]

    row, other = (
        line.split("│")[1:-1] for line in text_of(status_view.file_table(sizes)).splitlines()[3:5]
    )

    assert [cell.strip() for cell in row[1:]] == [
        "4",
        "20.0 MiB",
        "5.0 MiB",
        "4",
        "20.0 MiB",
        "4 → 1",
    ]
    assert other[-1].strip() == ""
    assert status_view.file_total(sizes) == (
        "6 files in 2 partitions, 5 of them small; joining small ones would leave 3, and write "
        "20.0 MiB again in 1 partition."
    )
    assert status_view.file_total(sizes[1:]).endswith("joining small ones would leave as many.")
