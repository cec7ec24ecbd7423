"""What failed checks mean for a partition is one table (AF-6.6)."""

from __future__ import annotations

from itertools import product

import pytest

from tidegate.gate.check import judge
from tidegate.model.publication import CheckResult, Outcome

SEVERITIES = ("critical", "warning", "info")


@pytest.mark.parametrize("on_failure", [Outcome.HOLD, Outcome.FAIL, Outcome.WARN])
@pytest.mark.parametrize("success", list(product([True, False], repeat=3)), ids=str)
def test_worst_failure_decides(on_failure: Outcome, success: tuple[bool, ...]) -> None:
    checks = [
        CheckResult(severity, severity, is_met, "", "")
        for severity, is_met in zip(SEVERITIES, success, strict=True)
    ]
    critical, warning, _ = success

    outcome = judge(checks, on_failure)

    assert outcome is (on_failure if not critical else Outcome.PASS if warning else Outcome.WARN)


def test_partition_without_checks_passes() -> None:
    assert judge([], Outcome.FAIL) is Outcome.PASS
