"""Leave out of the log what Spark writes whenever it starts, and what tells nothing.

Warnings and errors stay. Whoever configures the log of Spark gets what is configured.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OPTIONS = "SPARK_SUBMIT_OPTS"
_SAID_IN = (_OPTIONS, "PYSPARK_SUBMIT_ARGS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
# Spark tells the level of its shell, as it sees Python, unless that is the level of all. The last
# three are as in its own file, which this one takes the place of.
_LOG = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = warn
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.handler.name = org.apache.hadoop.hive.metastore.RetryingHMSHandler
logger.handler.level = fatal
logger.objects.name = org.apache.hadoop.hive.metastore.ObjectStore
logger.objects.level = error
logger.statistics.name = org.apache.parquet.CorruptStatistics
logger.statistics.level = error
"""


@contextmanager
def quiet_start() -> Iterator[None]:
    """Let a JVM that is started inside begin quietly, unless its log is configured."""
    said = os.environ.get(_OPTIONS)
    if "PYSPARK_GATEWAY_PORT" in os.environ or is_configured(os.environ):
        yield
        return
    with TemporaryDirectory(prefix="tidegate-log-") as folder:
        file = Path(folder) / "log4j2.properties"
        file.write_text(_LOG)
        os.environ[_OPTIONS] = f"{said or ''} -Dlog4j2.configurationFile={file.as_uri()}".strip()
        try:
            yield
        finally:
            if said is None:
                del os.environ[_OPTIONS]
            else:
                os.environ[_OPTIONS] = said


def is_configured(variables: Mapping[str, str]) -> bool:
    """Return whether somebody configured the log of the JVM that these variables start."""
    if any("log4j" in variables.get(name, "") for name in _SAID_IN):
        return True
    home = variables.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)  # noqa: PTH120
    place = variables.get("SPARK_CONF_DIR") or f"{home}/conf"
    if not Path(place).is_dir():
        return False
    settings = Path(place, "spark-defaults.conf")
    return any(Path(place).glob("log4j2*")) or (
        settings.is_file() and "log4j" in settings.read_text(errors="replace")
    )
