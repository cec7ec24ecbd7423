"""What every test stands on: a home of its own, UTC, this machine only, Hypothesis profiles."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from s3_servers import STORE, gateway_server
from skips import pytest_make_collect_report, pytest_runtest_makereport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport"]

ROOT = Path(__file__).resolve().parent.parent
MEMORY, ROOM = Path("/dev/shm"), 8 << 30

# Each forced write costs milliseconds on a disk, a test makes dozens of them, and none looks at the
# disk below: what must be forced is tested by `crash/test_power_cuts.py`.
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
HOME = Path(tempfile.mkdtemp("", "tidegate-tests-", os.environ.get("PYTEST_DEBUG_TEMPROOT")))

# Airflow reads its configuration when it is imported, so all of it stands before any test module
# is (AF-7.7). Tests that start processes of their own hand this environment on.
os.environ.update(
    TZ="UTC",
    TIDEGATE_HOME=str(HOME / "tidegate"),
    AIRFLOW_HOME=str(HOME / "airflow"),
    AIRFLOW__CORE__DAGS_FOLDER=str(ROOT / "dags"),
    AIRFLOW__CORE__PLUGINS_FOLDER=str(ROOT / "plugins"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__UNIT_TEST_MODE="False",
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{HOME / 'airflow' / 'airflow.db'}",
    AIRFLOW__API_AUTH__JWT_SECRET="for-tests-only-" * 5,
    AIRFLOW__LOGGING__LOGGING_LEVEL="WARNING",
    AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark", "host": "local[2]"}',
    PYTHONPATH=os.pathsep.join(str(ROOT / part) for part in ("include", "plugins", "tests")),
    PYSPARK_PYTHON=sys.executable,
    PYSPARK_DRIVER_PYTHON=sys.executable,
    SPARK_LOCAL_IP="127.0.0.1",
)
os.environ.pop("TIDEGATE_LEDGER", None)
time.tzset()

hypothesis.settings.register_profile(
    "default",
    deadline=None,  # a busy machine is no failure
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "thorough", hypothesis.settings.get_profile("default"), max_examples=1_000
)
# For `make test`; every run draws other examples.
hypothesis.settings.register_profile(
    "usual", hypothesis.settings.get_profile("default"), max_examples=30
)
# For `make test-unit`, which is run again and again while writing.
hypothesis.settings.register_profile(
    "quick", hypothesis.settings.get_profile("default"), max_examples=15
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


class NetworkRefused(OSError):
    """A test tried to reach another machine."""


def _is_local(address: Any) -> bool:
    if not isinstance(address, tuple):  # the path of a Unix socket
        return True
    host = address[0]
    if host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_elsewhere(connect: Any) -> Any:
    def connect_locally(self: socket.socket, address: Any) -> Any:
        # Connecting a datagram socket sends nothing: programs ask for their own address that way.
        if _is_local(address) or self.type == socket.SOCK_DGRAM:
            return connect(self, address)
        msg = f"a test reached for {address}; tests may connect to localhost only"
        raise NetworkRefused(msg)

    return connect_locally


@pytest.fixture(scope="session", autouse=True)
def _localhost_only() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", _refuse_elsewhere(socket.socket.connect))
        patch.setattr(socket.socket, "connect_ex", _refuse_elsewhere(socket.socket.connect_ex))
        yield


@pytest.fixture(scope="session", autouse=True)
def _targets_in_a_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let targets of small lakes be objects, if the variable asks for it (`make test-s3`)."""
    if os.environ.get(STORE) != "versitygw":
        yield
        return
    with gateway_server(tmp_path_factory.mktemp("store") / "gateway", beside=False) as found:
        os.environ[STORE] = f"{found.port}:{found.folder}"
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick_ledgers() -> None:
    from quick_ledgers import install

    install()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local session for the whole run: two cores, two shuffle partitions, no UI.

    Its catalog is a Hive metastore of its own, which is opened when a table is asked for.
    """
    from pyspark.sql import SparkSession

    warehouse = HOME / "spark-warehouse"
    session = (
        SparkSession.builder.master("local[2,4]")  # a lost task is tried again, as on a cluster
        .appName("tidegate-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.sql.catalogImplementation", "hive")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={HOME}")
        .getOrCreate()
    )
    yield session
    session.stop()


def pytest_unconfigure() -> None:
    """Remove the home of this run."""
    shutil.rmtree(HOME, ignore_errors=True)
