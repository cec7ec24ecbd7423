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

import duckdb
import psutil

from benchmarks.contestants import CORES, END, ON_SPARK, START

_SAMPLE_SECONDS = 0.03
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Round:
    """One round of one contestant."""

    wall: float
    cpu: float
    peak_bytes: int


@dataclass(frozen=True)
class Measured:
    """What a contestant took."""

    cold: Round
    """From the start of the process to the end of its first round."""
    warm: Round
    """The quickest of the later rounds by CPU; the only one if there is no other."""
    written_bytes: int
    files: int
    fingerprint: tuple[tuple[object, ...], ...]
    """Per day: rows, sums over the columns; equal for equal rows."""


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


def measure(name: str, source: Path, out: Path, rounds: int) -> Measured:
    """Run one contestant in a process of its own.

    Args:
        name: of the contestant.
        source: folder with the orders.
        out: emptied before, and left with what the last round wrote.
        rounds: the first is cold.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    started = time.perf_counter()
    log = (out / "log.txt").open("w")
    process = subprocess.Popen(
        _command(name, source, out, rounds), stdout=subprocess.PIPE, stderr=log, text=True
    )
    tree = _Tree(process.pid)
    done: list[Round] = []
    begun = (started, 0.0)
    for line in process.stdout or ():
        mark = line.split()
        if mark[:1] == [START] and mark[1] != "0":
            tree.peak_bytes = 0
            begun = (time.perf_counter(), tree.cpu())
        elif mark[:1] == [END]:
            wall, cpu = time.perf_counter() - begun[0], tree.cpu() - begun[1]
            done.append(Round(wall, cpu, tree.peak_bytes))
    code = process.wait()
    tree.close()
    log.close()
    if code or len(done) != rounds:
        sys.exit(f"{name} failed with {code}:\n{(out / 'log.txt').read_text()[-3000:]}")
    last = out / str(rounds - 1)
    files = _parts(last)
    return Measured(
        cold=done[0],
        warm=min(done[1:] or done, key=lambda item: item.cpu),
        written_bytes=sum(path.stat().st_size for path in files),
        files=len(files),
        fingerprint=_fingerprint(files),
    )


def _command(name: str, source: Path, out: Path, rounds: int) -> list[str]:
    script = [str(_HERE / "contestants.py"), name, str(source), str(out), str(rounds)]
    if name in ON_SPARK:
        return ["spark-submit", "--master", f"local[{CORES}]", "--driver-memory", "2g", *script]
    return [sys.executable, *script]


def _parts(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.parquet") if "dt=" in path.parent.name)


def _fingerprint(files: list[Path]) -> tuple[tuple[object, ...], ...]:
    """Sum up the rows of each day, the day taken from the path alone."""
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {CORES}")
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute(
            """
            SELECT regexp_extract(filename, 'dt=([^/]+)', 1) AS dt, count(*), sum(order_id),
                   sum(customer_id), round(sum(amount)), sum(length(note)), bit_xor(hash(note)),
                   min(region), max(region), min(ordered_at)::VARCHAR, max(ordered_at)::VARCHAR
            FROM read_parquet(?, filename = true, hive_partitioning = false)
            GROUP BY dt ORDER BY dt
            """,
            [[os.fspath(path) for path in files]],
        )
        return tuple(found.fetchall())
