"""Decide how Airflow handles an error: Terminal fails, Transient is retried (AF-4.15).

A task that has failed for good gives back what its run holds. This is the only place for both. The
retry policy is called in the worker, with the error itself; it is not called after a lost
heartbeat, for which Airflow counts plain retries.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

from tidegate.errors import ClaimHeld, PartitionBusy, TerminalError, TransientError, WindowOpen
from tidegate_airflow.notes import keep_failure
from tidegate_airflow.runs import run_owner
from tidegate_airflow.triggers import controlled

if TYPE_CHECKING:
    from airflow.sdk import Context

_LOG = logging.getLogger(__name__)

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


def failure_arguments() -> dict[str, Any]:
    """Return the arguments that every task of every DAG receives."""
    return {
        "on_failure_callback": give_back,
        "retries": RETRIES,
        "retry_delay": timedelta(minutes=1),
        "retry_policy": RETRY_POLICY,
    }


def give_back(context: Context) -> None:
    """Give back at once the windows and partitions of a run whose task has failed for good.

    The reason is handed on for the note of the run.

    *Runs on:* the task's process, after its last try; after a lost heartbeat Airflow's DAG
    processor. *Failure:* what could not be given back is free once Airflow lists the run as failed.
    """
    from tidegate.ledger.letting_go import let_go

    name = context["dag_run"].dag_id.rpartition("_")[0]
    for sequence in let_go(controlled(name).ledger, run_owner(context)):
        _LOG.info("this run has failed: window %d is left to the next run, or to a clear", sequence)
    keep_failure(context, name)
