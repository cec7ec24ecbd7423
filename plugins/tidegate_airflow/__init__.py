"""The DAGs, sensors and operators of the pipelines in Airflow. Decides nothing by itself."""
