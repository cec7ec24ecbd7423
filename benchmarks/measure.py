"""Watch a contestant from outside: wall time, CPU and memory of its process tree, its output."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import duckdb
import psutil

from benchmarks.contestants import CORES, END, ON_SPARK, PLAIN_JVM, go_file

_SAMPLE_SECONDS = 0.03
_HERE = Path(__file__).parent

Fingerprint = tuple[tuple[object, ...], ...]
"""Per day: rows and sums over the columns; equal for equal rows."""


@dataclass(frozen=True)
class Round:
    """One round of one contestant."""

    wall: float
    cpu: float
    peak_bytes: int


class Contestant:
    """An engine in a process of its own, which does a round when it is told to.

    Args:
        name: of the contestant.
        source: folder with the orders.
        out: emptied before; each round writes into a folder of its own below it.
    """

    def __init__(self, name: str, source: Path, out: Path) -> None:
        self._name = name
        self._source = source
        self._out = out

    def __enter__(self) -> Self:
        shutil.rmtree(self._out, ignore_errors=True)
        self._out.mkdir(parents=True)
        self._log = (self._out / "log.txt").open("w")
        self._number = 0
        self._started = time.perf_counter()
        self._process = subprocess.Popen(
            self._command(),
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=self._environment(),
        )
        self._tree = _Tree(self._process.pid)
        return self

    def __exit__(self, *exception: object) -> None:
        """End the process."""
        go_file(self._out, None).touch()
        self._process.communicate()
        self._tree.close()
        self._log.close()

    def cold(self) -> Round:
        """Do the first round, measured from the start of the process."""
        return self._round(self._started, 0.0)

    def warm(self) -> Round:
        """Do one more round."""
        self._tree.peak_bytes = 0
        return self._round(time.perf_counter(), self._tree.cpu())

    def written(self) -> list[Path]:
        """Give the part files of the last round."""
        folder = self._out / str(self._number - 1)
        return sorted(path for path in folder.rglob("*.parquet") if "dt=" in path.parent.name)

    def forget(self) -> None:
        """Remove what the last round wrote."""
        shutil.rmtree(self._out / str(self._number - 1))

    def _round(self, started: float, cpu: float) -> Round:
        go_file(self._out, self._number).touch()
        for line in self._process.stdout or ():
            if line.strip() == f"{END} {self._number}":
                self._number += 1
                wall, used = time.perf_counter() - started, self._tree.cpu() - cpu
                return Round(wall, used, self._tree.peak_bytes)
        log = (self._out / "log.txt").read_text()
        sys.exit(f"{self._name} ended with {self._process.wait()}:\n{log[-3000:]}")

    def _command(self) -> list[str]:
        script = [str(_HERE / "contestants.py"), self._name, str(self._source), str(self._out)]
        if self._name in ON_SPARK:
            master = ["--master", f"local[{CORES}]", "--driver-memory", "2g"]
            return ["spark-submit", *master, *script]
        return [sys.executable, *script]

    def _environment(self) -> dict[str, str]:
        environment = dict(os.environ)
        if self._name in PLAIN_JVM:
            environment.pop("SPARK_SUBMIT_OPTS", None)
        return environment


class _Tree:
    """CPU and memory of a process and all that it starts, sampled until it is closed."""

    def __init__(self, root: int) -> None:
        self._root = psutil.Process(root)
        self._cpu: dict[tuple[int, float], float] = {}
        self._lock = threading.Lock()
        self._done = threading.Event()
        self.peak_bytes = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def cpu(self) -> float:
        """CPU seconds so far, of ended processes as far as they were seen."""
        self._sample()
        with self._lock:
            return sum(self._cpu.values())

    def close(self) -> None:
        """Stop watching."""
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        memory = 0
        with self._lock, contextlib.suppress(psutil.NoSuchProcess):
            for process in [self._root, *self._root.children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                    times = process.cpu_times()
                    self._cpu[process.pid, process.create_time()] = times.user + times.system
                    memory += process.memory_info().rss
        self.peak_bytes = max(self.peak_bytes, memory)


def fingerprint(files: list[Path]) -> Fingerprint:
    """Sum up the rows of each day, the day taken from the path alone."""
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {CORES}")
        found = connection.execute(
            """
            SELECT regexp_extract(filename, 'dt=([^/]+)', 1) AS dt, count(*), sum(order_id),
                   sum(customer_id), sum(round(amount * 100)::BIGINT), bit_xor(hash(note)),
                   min(region), max(region), min(epoch_us(ordered_at)), max(epoch_us(ordered_at)),
                   sum(epoch_us(ordered_at) % 1000003)
            FROM read_parquet(?, filename = true, hive_partitioning = false)
            GROUP BY dt ORDER BY dt
            """,
            [[os.fspath(path) for path in files]],
        )
        return tuple(found.fetchall())
