"""What a load would read, and what it changed."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import given

from strategies import values_of
from terminal import text_of
from tidegate.cli.plan_view import announced_facts, preview_facts
from tidegate.model.message import RunSummary
from tidegate.model.partition import Partition
from tidegate.model.plan import ScanPlan
from tidegate.model.run import Announced, PlannedWindow

DAY = Partition((("dt", "2013-02-09"),))


@hypothesis.settings(max_examples=20)
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
