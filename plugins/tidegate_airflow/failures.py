"""Decide what Airflow does with an error: Terminal fails, Transient is tried again (AF-4.15).

The only place that does. A policy is asked in the worker, with the error itself; it is not asked
after a lost heartbeat, where Airflow counts plain retries.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

from tidegate.errors import ClaimHeld, PartitionBusy, TerminalError, TransientError, WindowOpen

RETRIES = 5
"""Upper limit for every task; what waits for another run is deferred and uses none up."""

RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(TerminalError, RetryAction.FAIL, reason="trying again would give the same"),
        RetryRule(
            [WindowOpen, ClaimHeld, PartitionBusy],
            RetryAction.RETRY,
            retry_delay=timedelta(seconds=20),
            reason="another run is at work",
        ),
        RetryRule(TransientError, RetryAction.RETRY, retry_delay=timedelta(minutes=1)),
    ]
)


def retry_arguments() -> dict[str, Any]:
    """Return the arguments that every task of every DAG takes."""
    return {
        "retries": RETRIES,
        "retry_delay": timedelta(minutes=1),
        "retry_policy": RETRY_POLICY,
    }
