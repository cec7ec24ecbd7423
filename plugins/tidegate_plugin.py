"""Register Tidegate with Airflow; everything else is in the package beside this file.

Airflow executes each `.py` below `plugins/` that `.airflowignore` does not hide, so this is the
only one (AF-9.2).
"""

from airflow.plugins_manager import AirflowPlugin

from tidegate_airflow import listeners


class TidegatePlugin(AirflowPlugin):
    """Tidegate's place in Airflow."""

    name = "tidegate"
    listeners = [listeners]  # noqa: RUF012 (declared as an instance's in Airflow)
