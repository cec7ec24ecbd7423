"""Decide how Airflow handles an error: Terminal fails, Transient is retried (AF-4.15).

This is the only place for that. The retry policy is called in the worker, with the error itself; it
is not called after a lost heartbeat, for which Airflow counts plain retries.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

from tidegate.errors import ClaimHeld, PartitionBusy, TerminalError, TransientError, WindowOpen

RETRIES = 5
"""Upper limit for every task; a task that waits for another run is deferred and uses no retry."""

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
    """Return the arguments that every task of every DAG receives."""
    return {
        "retries": RETRIES,
        "retry_delay": timedelta(minutes=1),
        "retry_policy": RETRY_POLICY,
    }
