"""A Spark of another version than ours, in an environment of its own, with one jar beside it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.launching import submit_options, with_package

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class ForeignSpark:
    """One environment; `make` installs it into `.venv` of its folder."""

    folder: Path
    artifact: str
    """Maven coordinates of the jar."""
    sha256: str
    """The digest of the jar."""

    def python(self) -> str:
        """Give the interpreter."""
        return str(self.folder / ".venv" / "bin" / "python")

    def submit(self) -> tuple[str, ...]:
        """Give the command that starts Spark with the jar."""
        program = str(self.folder / ".venv" / "bin" / "spark-submit")
        return (program, *submit_options(), "--jars", str(self.jar()))

    def run(self, script: str, *arguments: str) -> None:
        """Run one of the scripts of the folder on Spark, to its end."""
        command = [*self.submit(), str(self.folder / script), *arguments]
        subprocess.run(command, env=self.environment(), check=True)

    def environment(self) -> dict[str, str]:
        """Give the variables: ours without what leads to our packages and JVM options."""
        venv = str(self.folder / ".venv" / "bin")
        ours = {"PYTHONPATH", "SPARK_SUBMIT_OPTS", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV"}
        kept = {key: value for key, value in os.environ.items() if key not in ours}
        (home,) = (self.folder / ".venv").glob("lib/python3.*/site-packages/pyspark")
        return with_package(
            kept
            | {
                "PATH": os.pathsep.join([venv, kept.get("PATH", "")]),
                "PYSPARK_PYTHON": f"{venv}/python",
                "SPARK_HOME": str(home),
            }
        )

    def jar(self) -> Path:
        """Give the jar; Spark's own resolver fetches it from Maven Central once.

        Raises:
            SystemExit: what came is not the jar that was locked.
        """
        jar = self.folder / ".jars" / f"{self.artifact.split(':', 1)[1].replace(':', '-')}.jar"
        if not jar.exists():
            self._fetch(jar)
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
        if found != self.sha256:
            jar.unlink()
            sys.exit(f"{jar}: expected SHA-256 {self.sha256}, found {found}; removed, try again.")
        return jar

    def _fetch(self, jar: Path) -> None:
        cache = jar.parent / "ivy"
        cache.mkdir(parents=True, exist_ok=True)
        nothing = cache / "nothing.py"
        nothing.write_text("")
        submit = [str(self.folder / ".venv" / "bin" / "spark-submit"), "--packages", self.artifact]
        with (jar.parent / "fetch.log").open("w") as log:
            subprocess.run(
                [*submit, "--conf", f"spark.jars.ivy={cache}", str(nothing)],
                env=self.environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                check=True,
            )
        # What the jar depends on is in Spark itself.
        (found,) = cache.glob(f"jars/*{self.artifact.split(':')[1]}*.jar")
        found.rename(jar)
        shutil.rmtree(cache)
