"""Start processes in Flink's environment, with its Parquet format and what that needs of Hadoop."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.launching import with_package
from benchmarks.measure import Launch

HERE = Path(__file__).parent
FLINK = "2.3.0"
_ARTIFACT = f"org.apache.flink:flink-sql-parquet:{FLINK}"
_SHA256 = "f30617f4a5a6d437750f155ff72178ab34439aec91df64d96621c260559ba5fd"
_OF_SPARK = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "zstd-jni-*.jar")
"""What PySpark brings along; Flink's Parquet format leaves it to Hadoop."""
_OURS = {"PYTHONPATH", "SPARK_HOME", "SPARK_SUBMIT_OPTS", "VIRTUAL_ENV"}


def flink_launch() -> Launch:
    """Give the command that starts Flink."""
    python = HERE / ".venv" / "bin" / "python"
    kept = {key: value for key, value in os.environ.items() if key not in _OURS}
    jars = os.pathsep.join(map(str, (_parquet(), *_jars_of_spark())))
    environment = with_package(kept | {"HADOOP_CLASSPATH": jars})
    return Launch((str(python), str(HERE / "contestants.py")), environment)


def _jars_of_spark() -> list[Path]:
    jars = Path(os.environ["SPARK_HOME"]) / "jars"
    return [path for pattern in _OF_SPARK for path in jars.glob(pattern)]


def _parquet() -> Path:
    """Give the jar of the format; Spark's resolver fetches it from Maven Central once.

    Raises:
        SystemExit: what came is not the jar that was locked.
    """
    jar = HERE / ".jars" / f"flink-sql-parquet-{FLINK}.jar"
    if not jar.exists():
        _fetch(jar)
    found = hashlib.sha256(jar.read_bytes()).hexdigest()
    if found != _SHA256:
        jar.unlink()
        sys.exit(f"{jar}: expected SHA-256 {_SHA256}, found {found}; removed, try again.")
    return jar


def _fetch(jar: Path) -> None:
    cache = jar.parent / "ivy"
    cache.mkdir(parents=True, exist_ok=True)
    nothing = cache / "nothing.py"
    nothing.write_text("")
    command = ["spark-submit", "--packages", _ARTIFACT, "--conf", f"spark.jars.ivy={cache}"]
    with (jar.parent / "fetch.log").open("w") as log:
        subprocess.run([*command, str(nothing)], stdout=log, stderr=subprocess.STDOUT, check=True)
    (found,) = cache.glob("jars/*flink-sql-parquet*.jar")
    found.rename(jar)
    shutil.rmtree(cache)
