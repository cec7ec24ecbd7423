"""Airflow's view of the pipelines: DAGs, sensors, operators. Decides nothing by itself."""
