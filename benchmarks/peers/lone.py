"""Start work in a fresh process of one of the two environments and read what it says it took."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.launching import with_package
from benchmarks.peers.environment import peer_python

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.job import Job


def run_alone(work: str, job: Job, folder: Path) -> dict[str, float]:
    """Do one work of `alone.py`.

    Args:
        work: name of the work; Tidegate's is done in this environment, else in the peers'.
        job: what it reads.
        folder: emptied before.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    job.write(folder / "job.json")
    if work == "pyiceberg":
        python, environment = peer_python()
    else:
        python, environment = sys.executable, with_package(os.environ)
    done = subprocess.run(
        [python, "-m", "benchmarks.peers.alone", work, str(folder / "job.json"), str(folder / "0")],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found
