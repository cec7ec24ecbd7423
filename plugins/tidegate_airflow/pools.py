"""Name the pools that the DAGs use, and create the missing ones.

A task in a pool that does not exist stays `scheduled` forever, without an error (AF-3.26).
"""

from __future__ import annotations

import contextlib
import logging
import sys

SPARK_POOL = "spark"
"""On every task that starts a Spark driver; slots = cores ÷ cores per driver."""

PLUGIN = "tidegate_plugin"
"""The file that registers the plugin; Airflow keeps it under this name of a module."""

_LOG = logging.getLogger(__name__)


def warn_without_plugin() -> None:
    """Log what may happen next if Airflow has not loaded the plugin that creates the pools.

    A task cannot ask for the pools, and a task in a missing one never starts, so that an earlier
    task has to say it.
    """
    if PLUGIN not in sys.modules:
        _LOG.warning(
            "Airflow has not loaded `plugins/%s.py`, which creates the pool '%s'. Without that "
            "pool the next task, `plan_splits`, stays `scheduled` forever and logs nothing. Put "
            "the file into Airflow's plugins folder, for the scheduler, too, and restart it, or "
            "create the pool: `airflow pools set %s 1 'Spark drivers'`.",
            PLUGIN,
            SPARK_POOL,
            SPARK_POOL,
        )


def make_missing_pools() -> tuple[str, ...]:
    """Create the pools that the DAGs name and Airflow does not have, with one slot each.

    *Runs on:* components with access to Airflow's database. *Failure:* if two start at once, both
    may try; one of them succeeds.

    Returns:
        The pools that were missing.
    """
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session
    from sqlalchemy.exc import IntegrityError

    with create_session() as session:
        if Pool.get_pool(SPARK_POOL, session=session) is not None:
            return ()
    with contextlib.suppress(IntegrityError), create_session() as session:
        Pool.create_or_update_pool(
            SPARK_POOL,
            slots=1,
            description="Spark drivers that may run at once (Tidegate)",
            include_deferred=False,
            session=session,
        )
    _LOG.warning(
        "The Airflow pool '%s' was missing, so no task with a Spark driver could have started. "
        "It has been created with 1 slot: one driver at a time. For more, divide the cores by "
        "the cores of one driver and run `airflow pools set %s SLOTS 'Spark drivers'`.",
        SPARK_POOL,
        SPARK_POOL,
    )
    return (SPARK_POOL,)
