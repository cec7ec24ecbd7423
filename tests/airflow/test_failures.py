from __future__ import annotations

from datetime import timedelta

import pytest
from airflow.sdk import RetryAction

from tidegate.errors import (
    FenceLost,
    LedgerUnreachable,
    PartitionBusy,
    SourceFileGone,
    TidegateError,
    WindowIncomplete,
    WindowOpen,
)
from tidegate_airflow.failures import RETRY_POLICY

pytestmark = pytest.mark.airflow

OPEN = WindowOpen(pipeline="orders", sequence=1, run="another", renewed="12:00", outlook="wait")
BUSY = PartitionBusy(partition="dt=2026-02-01", holder="another")
UNREACHABLE = LedgerUnreachable(ledger="postgresql://there", problem="refused")
GONE = SourceFileGone(path="/lake/a.parquet")
INCOMPLETE = WindowIncomplete(
    pipeline="orders", sequence=1, missing=1, expected=2, command="tidegate load orders"
)
FENCE = FenceLost(pipeline="orders", subject="window 1", held=1, found=2)


@pytest.mark.parametrize(
    "error",
    [GONE, FENCE, INCOMPLETE],
    ids=["source-file-gone", "fence-lost", "window-incomplete"],
)
def test_terminal_error_is_never_tried_again(error: TidegateError) -> None:
    assert RETRY_POLICY.evaluate(error, 1, 5).action is RetryAction.FAIL


@pytest.mark.parametrize(
    ("error", "delay"),
    [
        pytest.param(OPEN, timedelta(seconds=20), id="window-open"),
        pytest.param(BUSY, timedelta(seconds=20), id="partition-busy"),
        pytest.param(UNREACHABLE, timedelta(minutes=1), id="ledger-unreachable"),
    ],
)
def test_transient_error_is_tried_again_after_its_own_delay(
    error: TidegateError, delay: timedelta
) -> None:
    decision = RETRY_POLICY.evaluate(error, 1, 5)

    assert decision.action is RetryAction.RETRY
    assert decision.retry_delay == delay


def test_error_that_is_not_ours_is_left_to_airflow() -> None:
    assert RETRY_POLICY.evaluate(ZeroDivisionError(), 1, 5).action is RetryAction.DEFAULT
