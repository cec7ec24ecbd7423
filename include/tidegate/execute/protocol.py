"""The protocol of executors, which return the same messages wherever they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.model.message import CommitMessage


class StageTask(Protocol):
    """Stages one split; a module-level callable that pickles by its name.

    *Runs on:* a thread or a Spark task. *Called:* at least once per split; several attempts at one
    split may run at the same time.
    """

    def __call__(
        self, plan_uri: str, split_index: int, attempt: str, /
    ) -> tuple[CommitMessage, ...]:
        """Stage the sub-splits of one split that have no message yet.

        Args:
            plan_uri: directory of the plan.
            split_index: position of the split in the plan.
            attempt: names this execution; the task completes it by a random word.
        """
        ...


class Executor(Protocol):
    """Runs a task for each of many splits; a context manager that releases its resources."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

    def run(
        self, task: StageTask, plan_uri: str, indexes: Sequence[int], attempt: str
    ) -> Iterator[CommitMessage]:
        """Run the task once per split.

        Args:
            task: stages one split.
            plan_uri: directory of the plan.
            indexes: positions of the splits in the plan.
            attempt: the window's attempt, which the names of the task's attempts begin with.

        Yields:
            The messages of all splits, in the order of `indexes`.

        Raises:
            TidegateError: the first error of a task; other splits may have written their messages
                by then, which the next attempt finds.
        """
        ...
