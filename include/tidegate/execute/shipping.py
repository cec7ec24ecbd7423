"""Send this package to the workers of a cluster, which need not have it.

They need its requirements: those are too large to be sent with each job.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import re
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import tidegate
from tidegate.errors import EnvironmentIncomplete

if TYPE_CHECKING:
    from pyspark import SparkContext

_PACKAGE = Path(tidegate.__file__).parent
_BEGINNING = (1980, 1, 1, 0, 0, 0)
"""The time of each file of an archive; zip files know no earlier one."""
_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')


def ship_package(context: SparkContext) -> None:
    """Let the executors of a cluster import this very package, once per Spark context.

    It comes before one that is installed there, so that driver and tasks are of one version.
    Threads of a local master import it from where the driver does.
    """
    if re.match(r"local(\[|$)", context.master) or not _PACKAGE.is_dir():
        return
    archive = package_archive()
    if not any(Path(sent).name == archive.name for sent in context.listFiles):
        context.addPyFile(str(archive))


@functools.cache
def package_archive() -> Path:
    """Return this package as a zip file, made once per process.

    The same files give the same bytes, and a name of their own.
    """
    folder = TemporaryDirectory(prefix="tidegate-package-")
    # Until then, executors that start late ask the driver for it.
    atexit.register(folder.cleanup)
    unnamed = Path(folder.name, "package.zip")
    with zipfile.ZipFile(unnamed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(_PACKAGE.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                name = path.relative_to(_PACKAGE.parent).as_posix()
                entry = zipfile.ZipInfo(name, _BEGINNING)
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    digest = hashlib.sha256(unnamed.read_bytes()).hexdigest()[:12]
    return unnamed.rename(unnamed.with_name(f"tidegate-{digest}.zip"))


def incomplete_worker(failure: BaseException) -> EnvironmentIncomplete | None:
    """Return what the Python of a worker lacks, as an error; None if a job failed otherwise."""
    text = str(failure)
    module, program = _MODULE.search(text), _PROGRAM.search(text)
    if module is not None:
        return EnvironmentIncomplete(
            what=f"on a Spark worker, the Python package '{module[1]}'",
            remedy="Install the packages of requirements.txt in the Python of every worker, or "
            "name one that has them with PYSPARK_PYTHON or `spark.pyspark.python`.",
        )
    if program is not None:
        return EnvironmentIncomplete(
            what=f"on a Spark worker, the Python {program[1]}",
            remedy="Name one that every worker has with PYSPARK_PYTHON or `spark.pyspark.python`.",
        )
    return None
