"""The Airflow DAGs of every pipeline file: `<pipeline>_load`, `_publish`, `_reconcile`."""

from tidegate_airflow.dag_factory import all_dags

globals().update(all_dags())
