from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path

import pytest

from tidegate.demo.airflow_environment import Ports, airflow_environment


def test_environment_of_the_user_stays_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = {
        "AIRFLOW__API__PORT": "1",
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW_CONN_OTHER": "{}",
        "TIDEGATE_LEDGER": "postgresql://nowhere",
        "SPARK_CONF_DIR": "/nowhere",
        "PYTHONHOME": "/nowhere",
        "http_proxy": "http://nowhere.invalid",
    }
    for name, value in foreign.items():
        monkeypatch.setenv(name, value)

    found = airflow_environment(tmp_path, Ports(1001, 1002, 1003), {"TIDEGATE_HOME": "/here"})

    assert found["AIRFLOW__API__PORT"] == "1001"
    assert found["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:1001"  # AF-2.3
    assert found["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert found["AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT"] == "1002"
    assert found["AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT"] == "1003"
    assert found["TIDEGATE_HOME"] == "/here"
    assert found["PATH"].startswith(str(Path(sys.executable).parent))
    assert len(found["AIRFLOW__API_AUTH__JWT_SECRET"]) >= 64
    kept_out = ("AIRFLOW_CONN_OTHER", "TIDEGATE_LEDGER", "SPARK_CONF_DIR", "PYTHONHOME")
    assert not {*kept_out, "http_proxy"} & set(found)


def test_ports_are_free_and_differ() -> None:
    ports = Ports.free()

    numbers = {ports.api, ports.worker_logs, ports.trigger_logs}
    assert len(numbers) == 3
    for number in numbers:
        with socket.socket() as listener:
            listener.bind(("", number))


@pytest.mark.parametrize(("seconds", "is_same"), [(0.5, True), (10, False)])
def test_port_of_last_time_is_waited_for_a_moment(seconds: float, is_same: bool) -> None:
    before = Ports.free()
    listener = socket.socket()
    listener.bind(("", before.api))
    listener.listen()
    closing = threading.Timer(seconds, listener.close)
    closing.start()

    after = Ports.free({"api": before.api})

    closing.cancel()
    listener.close()
    assert (after.api == before.api) is is_same
