from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tidegate_airflow import listeners
from tidegate_airflow.pools import SPARK_POOL, make_missing_pools

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.airflow


@pytest.fixture(autouse=True)
def _no_pool(airflow_database: None) -> Iterator[None]:
    _remove_pool()
    yield
    _remove_pool()


def _remove_pool() -> None:
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session
    from sqlalchemy import delete

    with create_session() as session:
        session.execute(delete(Pool).where(Pool.pool == SPARK_POOL))


def _slots() -> int | None:
    from airflow.models.pool import Pool

    pool = Pool.get_pool(SPARK_POOL)
    return pool.slots if pool else None


def test_missing_pool_is_made_and_the_log_names_the_remedy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert make_missing_pools() == ("spark",)

    assert _slots() == 1
    assert "airflow pools set spark SLOTS" in caplog.text


def test_pool_that_is_there_stays_as_it_is() -> None:
    from airflow.models.pool import Pool

    Pool.create_or_update_pool(SPARK_POOL, slots=7, description="", include_deferred=False)

    assert make_missing_pools() == ()
    assert _slots() == 7


def test_component_of_airflow_makes_pools_when_it_starts() -> None:
    job = type("Job", (), {})()

    listeners.on_starting(job)

    assert _slots() == 1


def test_task_has_no_database_and_makes_none() -> None:
    listeners.on_starting(SimpleNamespace())

    assert _slots() is None
