"""Start processes in the peers' environment, and put the Iceberg jar beside it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.launching import submit_options, with_package
from benchmarks.measure import Launch

_HERE = Path(__file__).parent
_VENV = _HERE / ".venv"
_JARS = _HERE / ".jars"
ICEBERG = "1.11.0"
_ARTIFACT = f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}"
_SHA256 = "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242"
ON_SPARK = ("iceberg-spark",)


def peer_launch(name: str) -> Launch:
    """Give the command that starts a peer."""
    script = str(_HERE / "contestants.py")
    if name in ON_SPARK:
        return Launch((*_submit(), script), _environment())
    python, environment = peer_python()
    return Launch((python, script), environment)


def peer_python() -> tuple[str, dict[str, str]]:
    """Give the peers' interpreter and its variables."""
    return str(_VENV / "bin" / "python"), _environment()


def run_on_spark(script: str, *arguments: str) -> None:
    """Run one of the peers' scripts, which makes tables, to its end."""
    subprocess.run([*_submit(), str(_HERE / script), *arguments], env=_environment(), check=True)


def _submit() -> tuple[str, ...]:
    return (str(_VENV / "bin" / "spark-submit"), *submit_options(), "--jars", str(iceberg_jar()))


def _environment() -> dict[str, str]:
    """Give the variables of a peer: ours without what leads to our packages and JVM options."""
    venv = str(_VENV / "bin")
    ours = {"PYTHONPATH", "SPARK_SUBMIT_OPTS", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV"}
    kept = {key: value for key, value in os.environ.items() if key not in ours}
    (home,) = _VENV.glob("lib/python3.*/site-packages/pyspark")
    return with_package(
        kept
        | {
            "PATH": os.pathsep.join([venv, kept.get("PATH", "")]),
            "PYSPARK_PYTHON": f"{venv}/python",
            "SPARK_HOME": str(home),
        }
    )


def iceberg_jar() -> Path:
    """Give Iceberg's jar; Spark's own resolver fetches it from Maven Central once.

    Raises:
        SystemExit: what came is not the jar that was locked.
    """
    jar = _JARS / f"{_ARTIFACT.split(':', 1)[1].replace(':', '-')}.jar"
    if not jar.exists():
        _fetch(jar)
    found = hashlib.sha256(jar.read_bytes()).hexdigest()
    if found != _SHA256:
        jar.unlink()
        sys.exit(f"{jar}: expected SHA-256 {_SHA256}, found {found}; it was removed, try again.")
    return jar


def _fetch(jar: Path) -> None:
    cache = _JARS / "ivy"
    cache.mkdir(parents=True, exist_ok=True)
    nothing = cache / "nothing.py"
    nothing.write_text("")
    submit = [str(_VENV / "bin" / "spark-submit"), "--packages", _ARTIFACT]
    with (_JARS / "fetch.log").open("w") as log:
        subprocess.run(
            [*submit, "--conf", f"spark.jars.ivy={cache}", str(nothing)],
            env=_environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
            check=True,
        )
    (found,) = cache.glob("jars/*.jar")
    found.rename(jar)
    shutil.rmtree(cache)
