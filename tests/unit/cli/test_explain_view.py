"""One partition explained: from any state, with failed checks first."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import hypothesis
from hypothesis import given

from strategies import values_of
from terminal import text_of
from tidegate.cli.explain_view import checkpoint_facts, explanation, verdict_table
from tidegate.model.publication import CheckResult, Outcome, Verdict
from tidegate.model.report import CheckpointState, PartitionExplanation
from tidegate.model.watermark import WatermarkStep

NOON = datetime(2013, 2, 9, 12, tzinfo=UTC)


def test_verdict_table_lists_failed_checks_first() -> None:
    passed = CheckResult("passing", "critical", True, "1", "1")
    failed = CheckResult("failing", "critical", False, "0.49", ">= 0.8")

    text = text_of(verdict_table(Verdict(Outcome.HOLD, (passed, failed), 10, "pandas", NOON)))

    assert text.index("failing") < text.index("passing")
    assert "0.49" in text


@hypothesis.settings(max_examples=20)
@given(values_of(PartitionExplanation), values_of(CheckpointState), values_of(WatermarkStep))
def test_explanation_of_any_partition_names_its_source_commits(
    found: PartitionExplanation, checkpoint: CheckpointState, step: WatermarkStep
) -> None:
    source = {"10": {"after": "b", "to": "c"}, "9": {"after": None, "to": "b"}}
    revisions = tuple(
        replace(item, source_range=source, contributions={"9": "d", "10": "e"})
        for item in found.revisions
    )
    step = replace(step, lateness_seconds=5400.0)
    whole = replace(found, watermark=step.to_json(), revisions=revisions)

    text = text_of(explanation(whole, checkpoint, "America/New_York"))

    assert re.search(r"lateness +90m", text)
    assert ("(beginning, b]" in text) is bool(revisions)


def test_lost_checkpoint_is_shown_with_every_way_out() -> None:
    lost = CheckpointState(
        state="off lineage",
        detail="the table was rolled back",
        checkpoint="3",
        head="9",
        common_ancestor="2",
        oldest_kept="1",
        sequence_gap=-2,
        ways_out=("`source.on_off_lineage: reset`", "`source.on_off_lineage: snapshot_diff`"),
    )

    text = text_of(checkpoint_facts(lost))

    assert all(way in text for way in lost.ways_out)
    assert "common ancestor" in text
    assert "off lineage" in text


def test_checkpoint_that_joins_on_has_no_ways_out_to_show() -> None:
    text = text_of(checkpoint_facts(CheckpointState("caught up", "nothing to read", "9", "9")))

    assert "caught up" in text
    assert "ways out" not in text
