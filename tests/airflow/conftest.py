"""DAG bags over the pipelines of the Airflow tests; the environment stands in the root conftest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_pipelines import FLIGHTS, ORDERS, WHOLE, write_pipelines
from small_lake import SmallLake

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.dag_processing.dagbag import DagBag

    from airflow_supervisor import Supervisor

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipelines")
    return write_pipelines(folder, orders=ORDERS, flights=FLIGHTS, whole=WHOLE)


@pytest.fixture(scope="session")
def bag_of() -> Callable[[Path], DagBag]:
    from airflow.dag_processing.dagbag import DagBag

    def parse(folder: Path) -> DagBag:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TIDEGATE_PIPELINES", str(folder))
            return DagBag(str(ROOT / "dags"))

    return parse


@pytest.fixture(scope="session")
def bag(pipelines: Path, bag_of: Callable[[Path], DagBag]) -> DagBag:
    return bag_of(pipelines)


@pytest.fixture(scope="session")
def airflow_database() -> None:
    from airflow.utils.db import initdb

    Path(os.environ["AIRFLOW_HOME"]).mkdir(parents=True, exist_ok=True)
    initdb()


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    """Airflow, as tasks and triggers ask it."""
    from airflow.sdk.execution_time import task_runner

    from airflow_supervisor import Supervisor

    supervisor = Supervisor()
    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", supervisor, raising=False)
    return supervisor


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallLake:
    """A small table; the tasks of the pipeline `orders` find its file and its ledger."""
    lake = SmallLake(tmp_path / "lake")
    lake.file()
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(lake.root))
    monkeypatch.setenv("TIDEGATE_LEDGER", f"sqlite:///{lake.root}/ledger.db")
    return lake
