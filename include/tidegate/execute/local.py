"""Stage splits in threads of this process: no JVM starts, and Arrow works without the GIL."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.execute.protocol import StageTask
    from tidegate.model.message import CommitMessage


@dataclass(frozen=True)
class LocalExecutor:
    """Stages splits in threads, one split each at a time.

    *Runs on:* the calling process. *Failure:* when a split fails, no further ones begin, the
    running ones are waited for, and the first error is raised; staged files stay.
    """

    workers: int | None = None
    """The number of splits at a time; None: the number of cores that this process may use."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Release nothing: there is nothing between runs."""

    def run(
        self, task: StageTask, plan_uri: str, indexes: Sequence[int], attempt: str
    ) -> Iterator[CommitMessage]:
        """Run the task once per split; see `Executor`."""
        if not indexes:
            return
        workers = min(self.workers or len(os.sched_getaffinity(0)), len(indexes))
        turns = _Turns(task)
        pool = ThreadPoolExecutor(workers, thread_name_prefix="tidegate-split")
        try:
            splits = [
                pool.submit(turns.stage, plan_uri, index, f"{attempt}.t{index}")
                for index in indexes
            ]
            for split in splits:
                wait([split])
                if turns.failure is not None:
                    raise turns.failure
                yield from split.result()
        finally:
            # Also on Ctrl-C and when the caller stops iterating: nothing may continue unseen.
            turns.stop()
            pool.shutdown(wait=True, cancel_futures=True)


class _Turns:
    """Allows splits to begin until one fails, and keeps the error."""

    def __init__(self, task: StageTask) -> None:
        self._task = task
        self._stopped = threading.Event()
        self.failure: BaseException | None = None

    def stage(self, plan_uri: str, index: int, attempt: str) -> tuple[CommitMessage, ...]:
        if self._stopped.is_set():
            return ()
        try:
            return self._task(plan_uri, index, attempt)
        except BaseException as failure:
            if not self._stopped.is_set():
                self.failure = failure
            self.stop()
            raise

    def stop(self) -> None:
        self._stopped.set()
