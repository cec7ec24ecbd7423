from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tidegate_airflow import listeners
from tidegate_airflow.pools import PLUGIN, SPARK_POOL, make_missing_pools, warn_without_plugin

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


def test_first_task_says_what_hangs_without_the_plugin_and_how_to_mend_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, PLUGIN, raising=False)

    warn_without_plugin()

    assert "`plan_splits`, stays `scheduled` forever" in caplog.text
    assert "`airflow pools set spark 1" in caplog.text


def test_first_task_says_nothing_once_airflow_has_loaded_the_plugin() -> None:
    """As a task loads it, before it runs."""
    script = (
        "from airflow.sdk.plugins_manager import integrate_macros_plugins\n"
        "integrate_macros_plugins()\n"
        "from tidegate_airflow.pools import warn_without_plugin\n"
        "warn_without_plugin()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert "plan_splits" not in done.stderr + done.stdout


def test_plugin_has_the_name_that_the_first_task_looks_for() -> None:
    assert (Path(__file__).parents[2] / "plugins" / f"{PLUGIN}.py").is_file()
