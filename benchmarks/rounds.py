"""Do rounds of work when a file asks for one, and announce the end of each on standard output.

Runs in the contestants' processes, the peers' too: standard library alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.job import Job

Work = Callable[[Path], None]
"""Output folder of the round, which does not exist yet."""
Contestant = Callable[[Job], AbstractContextManager[Work]]
"""An engine: it starts on entering and does the job as often as it is called."""
Contestants = dict[str, Contestant]

END = "@end"
_POLL_SECONDS = 0.002


def go_file(out: Path, number: int | None) -> Path:
    """Name the file that begins a round; None ends the contestant."""
    return out / ("go-end" if number is None else f"go-{number}")


def do_rounds(contestants: Contestants, name: str, job: str, out: str) -> None:
    """Start one engine and do a round whenever one is asked for."""
    folder, number = Path(out), 0
    with contestants[name](Job.read(Path(job))) as work:
        while not go_file(folder, None).exists():
            if not go_file(folder, number).exists():
                time.sleep(_POLL_SECONDS)
                continue
            work(folder / str(number))
            print(END, number, flush=True)
            number += 1
