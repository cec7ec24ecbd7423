"""Skip a task, with the reason where its page shows it."""

from __future__ import annotations

import logging

from airflow.sdk.exceptions import AirflowSkipException

from tidegate_airflow.notes import keep_reason

_LOG = logging.getLogger(__name__)


def skipped(reason: str, *, noted: bool = True) -> AirflowSkipException:
    """Log why a task has nothing to do, and return the exception that skips it.

    Airflow shows the reason of a skip nowhere but among the details of a line of the log. It is
    handed on for the note of the run, too, unless the tasks before said more.
    """
    _LOG.info("Skipped: %s", reason)
    if noted:
        keep_reason(reason)
    return AirflowSkipException(reason)
