"""Spark begins without its preamble, and logs as it is configured where it is."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyspark
import pytest

from tidegate.execute.quiet_start import is_configured, quiet_start

if TYPE_CHECKING:
    from pathlib import Path

STARTS = """
from tidegate.execute.session import open_context
context = open_context("quiet", "local[1]")
logger = context._jvm.org.slf4j.LoggerFactory.getLogger("shop.orders")
logger.warn("a warning")
logger.error("an error")
context.stop()
"""


def started(**variables: str) -> str:
    said = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", STARTS], env=said, capture_output=True, text=True, check=True
    )
    return done.stderr


@pytest.mark.spark
def test_spark_starts_without_its_preamble_and_keeps_warnings_and_errors() -> None:
    said = started()

    for told in ("default log4j profile", "NativeCodeLoader", "default log level"):
        assert told not in said
    assert "WARN orders: a warning" in said
    assert "ERROR orders: an error" in said


@pytest.mark.spark
def test_spark_logs_as_its_own_files_say(tmp_path: Path) -> None:
    (tmp_path / "log4j2.properties").write_text(
        "rootLogger.level = error\nrootLogger.appenderRef.a.ref = a\nappender.a.type = Console\n"
        "appender.a.name = a\nappender.a.target = SYSTEM_ERR\n"
        "appender.a.layout.type = PatternLayout\nappender.a.layout.pattern = mine: %m%n\n"
    )

    said = started(SPARK_CONF_DIR=str(tmp_path))

    assert "mine: an error" in said
    assert "a warning" not in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("SPARK_SUBMIT_OPTS", "-Dlog4j2.configurationFile=a"),
        ("PYSPARK_SUBMIT_ARGS", "--driver-java-options -Dlog4j.configurationFile=a pyspark-shell"),
    ],
)
def test_log_that_a_variable_configures_is_left_alone(name: str, said: str) -> None:
    assert is_configured({name: said})


def test_log_that_settings_of_spark_configure_is_left_alone(tmp_path: Path) -> None:
    settings = tmp_path / "spark-defaults.conf"
    settings.write_text("spark.driver.memory 1g\n")
    assert not is_configured({"SPARK_CONF_DIR": str(tmp_path)})

    settings.write_text("spark.driver.extraJavaOptions -Dlog4j2.configurationFile=a\n")

    assert is_configured({"SPARK_CONF_DIR": str(tmp_path)})


def test_log_of_the_spark_that_python_finds_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__file__", str(tmp_path / "__init__.py"))
    assert not is_configured({})
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "log4j2.properties").touch()

    assert is_configured({})


def test_variable_is_as_before_once_spark_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Xmx1g")

    with quiet_start():
        inside = os.environ["SPARK_SUBMIT_OPTS"]

    assert inside.startswith("-Xmx1g -Dlog4j2.configurationFile=file:")
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Xmx1g"
