"""Holds no DAG: its import error names the pipeline files that cannot be loaded.

Airflow takes every DAG of a file with an import error out of service, so the error stands apart
from the file that registers the healthy ones.
"""

from tidegate_airflow.dag_factory import check_files

check_files()
