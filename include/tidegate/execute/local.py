"""Stage splits in threads of this process: no JVM starts, and Arrow works without the GIL."""

from __future__ import annotations

import os
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.execute.protocol import StageTask
    from tidegate.model.message import CommitMessage


@dataclass(frozen=True)
class LocalExecutor:
    """Threads, one split each at a time.

    *Runs on:* the calling process. *Failure:* when a split fails, those not begun never begin,
    those that run are waited for, and the first error is raised; what they staged stays.
    """

    workers: int | None = None
    """Splits at a time; None: as many as this process may use cores."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Hold nothing between runs."""

    def run(
        self, task: StageTask, plan_uri: str, indexes: Sequence[int], attempt: str
    ) -> Iterator[CommitMessage]:
        """Run the task once per split; see `Executor`."""
        if not indexes:
            return
        workers = min(self.workers or len(os.sched_getaffinity(0)), len(indexes))
        pool = ThreadPoolExecutor(workers, thread_name_prefix="tidegate-split")
        try:
            splits = [
                pool.submit(task, plan_uri, index, f"{attempt}.t{index}") for index in indexes
            ]
            for position in range(len(splits)):
                _raise_first_failure(splits, position)
                yield from splits[position].result()
        finally:
            # Also on Ctrl-C and when the caller stops asking: nothing may run on unseen.
            pool.shutdown(wait=True, cancel_futures=True)


def _raise_first_failure(
    splits: Sequence[Future[tuple[CommitMessage, ...]]], position: int
) -> None:
    """Wait for one split, but not longer than until any of them fails."""
    while not splits[position].done():
        pending = [split for split in splits if not split.done()]
        wait(pending, return_when=FIRST_EXCEPTION if len(pending) > 1 else "ALL_COMPLETED")
        failed = next((split for split in splits if split.done() and split.exception()), None)
        if failed is not None:
            failed.result()
