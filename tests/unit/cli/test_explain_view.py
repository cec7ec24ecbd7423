"""One partition explained: from any state, with failed checks first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import hypothesis
from hypothesis import given

from strategies import values_of
from terminal import text_of
from tidegate.cli.explain_view import explanation, verdict_table
from tidegate.model.publication import CheckResult, Outcome, Verdict
from tidegate.model.report import PartitionExplanation
from tidegate.model.watermark import WatermarkStep

NOON = datetime(2013, 2, 9, 12, tzinfo=UTC)


def test_verdict_table_lists_failed_checks_first() -> None:
    passed = CheckResult("passing", "critical", True, "1", "1")
    failed = CheckResult("failing", "critical", False, "0.49", ">= 0.8")

    text = text_of(verdict_table(Verdict(Outcome.HOLD, (passed, failed), 10, "pandas", NOON)))

    assert text.index("failing") < text.index("passing")
    assert "0.49" in text


@hypothesis.settings(max_examples=20)
@given(values_of(PartitionExplanation), values_of(WatermarkStep))
def test_explanation_of_any_partition_names_its_source_commits(
    found: PartitionExplanation, step: WatermarkStep
) -> None:
    source = {"10": {"after": "b", "to": "c"}, "9": {"after": None, "to": "b"}}
    revisions = tuple(
        replace(item, source_range=source, contributions={"9": "d", "10": "e"})
        for item in found.revisions
    )
    whole = replace(found, watermark=step.to_json(), revisions=revisions)

    text = text_of(explanation(whole, "America/New_York"))

    assert "lateness" in text
    assert ("(beginning, b]" in text) is bool(revisions)
