"""Watch a contestant from outside: wall time, CPU and memory of its process tree, its output."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import psutil

from benchmarks.rounds import END, go_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SAMPLE_SECONDS = 0.03
LONGEST_ROUND_SECONDS = 300.0


@dataclass(frozen=True)
class Round:
    """One round of one contestant."""

    wall: float
    cpu: float
    peak_bytes: int


class ContestantEnded(Exception):
    """An engine ended before its round did; the text says what it last wrote."""


@dataclass(frozen=True)
class Launch:
    """How an engine's process is started; name, job and output folder are added to the command."""

    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)


class Contestant:
    """An engine in a process of its own, which does a round when it is told to.

    Args:
        name: of the contestant.
        launch: how it is started.
        job: file that says what it does.
        out: emptied before; each round writes into a folder of its own below it.
        longest_seconds: of a round; then it is ended.
    """

    def __init__(
        self,
        name: str,
        launch: Launch,
        job: Path,
        out: Path,
        longest_seconds: float = LONGEST_ROUND_SECONDS,
    ) -> None:
        self._name = name
        self._launch = launch
        self._job = job
        self._out = out
        self._longest = longest_seconds

    def __enter__(self) -> Self:
        shutil.rmtree(self._out, ignore_errors=True)
        self._out.mkdir(parents=True)
        self._log = (self._out / "log.txt").open("w")
        self._number = 0
        self._started = time.perf_counter()
        self._process = subprocess.Popen(
            [*self._launch.command, self._name, str(self._job), str(self._out)],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=self._launch.environment,
        )
        self._tree = Tree(self._process.pid)
        return self

    def __exit__(self, *exception: object) -> None:
        """End the process."""
        go_file(self._out, None).touch()
        self._process.communicate()
        self._log.close()

    def cold(self) -> Round:
        """Do the first round, measured from the start of the process."""
        with self._tree.watched():
            return self._round(self._started, 0.0)

    def warm(self) -> Round:
        """Do one more round."""
        with self._tree.watched():
            return self._round(time.perf_counter(), self._tree.cpu())

    def written(self) -> list[Path]:
        """Give the part files of the last round."""
        folder = self._out / str(self._number - 1)
        return sorted(path for path in folder.rglob("*.parquet") if "=" in path.parent.name)

    def forget(self) -> None:
        """Remove what the last round wrote."""
        shutil.rmtree(self._out / str(self._number - 1))

    def _round(self, started: float, cpu: float) -> Round:
        limit = threading.Timer(self._longest, self._process.kill)
        limit.start()
        try:
            go_file(self._out, self._number).touch()
            for line in self._process.stdout or ():
                if line.strip() == f"{END} {self._number}":
                    self._number += 1
                    wall, used = time.perf_counter() - started, self._tree.cpu() - cpu
                    return Round(wall, used, self._tree.peak_bytes)
        finally:
            limit.cancel()
        if time.perf_counter() - started >= self._longest:
            msg = f"a round took more than {self._longest:.0f} s"
            raise ContestantEnded(msg)
        log = (self._out / "log.txt").read_text()
        msg = f"{self._name} ended with {self._process.wait()}:\n{log[-3000:]}"
        raise ContestantEnded(msg)


class Tree:
    """CPU and memory of a process and all that it starts.

    Sampled only while it is watched: looking through all processes of the machine takes time, which
    the engine whose turn it is must not lack.
    """

    def __init__(self, root: int) -> None:
        self._root = psutil.Process(root)
        self._cpu: dict[tuple[int, float], float] = {}
        self._lock = threading.Lock()
        self.peak_bytes = 0

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Sample, and find a new peak, while the context lasts."""
        self.peak_bytes = 0
        done = threading.Event()
        watching = threading.Thread(target=self._watch, args=(done,), daemon=True)
        watching.start()
        try:
            yield
        finally:
            done.set()
            watching.join()

    def cpu(self) -> float:
        """CPU seconds so far, of ended processes as far as they were seen."""
        self._sample()
        with self._lock:
            return sum(self._cpu.values())

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(_SAMPLE_SECONDS):
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
