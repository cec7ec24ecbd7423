"""Write docs/DAGs.md from the DAGs of the demo's pipeline."""

import os
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

with tempfile.TemporaryDirectory() as home:
    # Airflow writes its configuration where AIRFLOW_HOME points as soon as it is imported.
    os.environ["AIRFLOW_HOME"] = home
    from tidegate.config import load_pipeline
    from tidegate_airflow.dag_docs import render
    from tidegate_airflow.dag_factory import pipeline_dags

    dags = pipeline_dags(load_pipeline(ROOT / "include" / "pipelines" / "flights.yaml"))
    (ROOT / "docs" / "DAGs.md").write_text(render(dags), "utf-8")
