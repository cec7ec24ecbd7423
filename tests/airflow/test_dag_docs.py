from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.config import load_pipeline
from tidegate_airflow.dag_docs import render
from tidegate_airflow.dag_factory import pipeline_dags

pytestmark = pytest.mark.airflow

ROOT = Path(__file__).resolve().parents[2]


def test_page_of_the_dags_is_what_make_dag_docs_writes() -> None:
    dags = pipeline_dags(load_pipeline(ROOT / "include" / "pipelines" / "flights.yaml"))

    written = (ROOT / "docs" / "DAGs.md").read_text("utf-8")

    assert written == render(dags), "run `make dag-docs`"
