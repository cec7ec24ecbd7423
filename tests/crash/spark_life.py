"""Live the scenario once with Spark, and die at one change of the driver if told to.

python -m crash.spark_life FOLDER [--at N]

Prints how many changes the driver made.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from contextlib import nullcontext
from pathlib import Path

from crash.faults import Stopper, stopping_storage, watch_database
from crash.scenario import Life
from tidegate.execute.spark import SparkExecutor


def main() -> None:
    """Live as the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--at", type=int)
    given = parser.parse_args()
    metadata, times = pickle.loads((given.folder / "source.pickle").read_bytes())
    life = Life(given.folder / "root", metadata, times)
    stopper = Stopper(given.at)
    with SparkExecutor(master="local[2]") as executor:
        life.live(
            stopping_storage(stopper),
            lambda engine: watch_database(engine, stopper),
            lambda _engine: nullcontext(executor),
        )
    sys.stdout.write(f"{len(stopper.made)}\n")


if __name__ == "__main__":
    main()
