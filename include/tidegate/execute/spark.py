"""Stage splits in Spark tasks: Spark schedules and retries, rows never pass through the JVM."""

from __future__ import annotations

import functools
import gc
import pickle
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from tidegate.errors import TerminalError, TransientError
from tidegate.execute.errors_in_tasks import RetryTask, carried_error, error_of, error_text
from tidegate.execute.session import open_context, prepare_workers
from tidegate.execute.shipping import incomplete_worker, ship_package
from tidegate.importing import collector_at_rest
from tidegate.model.message import CommitMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark import SparkContext

    from tidegate.execute.protocol import StageTask

_MESSAGE = "message"
_ERROR = "error"


class SparkExecutor:
    """Runs one Spark task per split, in a job without a shuffle and without SQL.

    *Runs on:* the driver; the task function on executors. *Called:* a task at least once per split,
    more often when Spark retries or speculates: the first message of a sub-split wins. *Failure:* a
    Terminal error is returned as a row, so that Spark does not retry what cannot succeed; the other
    splits are staged completely, and the next attempt finds them. A Transient error is retried as
    often as the cluster retries tasks. A lost driver leaves messages, but no job.

    It is a plain job over positions: with a frame, each plan would take 0.2 seconds more, because
    Spark SQL plans and compiles each query.

    A Spark context of its own is opened in the background, so that the driver can open the pipeline
    and plan while the JVM starts: this saves a second of every cold run, as measured.

    Args:
        context: a context that is used and left open; None: one is opened on entering and stopped
            on leaving.
        master: for a context of its own, see `open_context`.
        name: for a context of its own.
    """

    def __init__(
        self,
        context: SparkContext | None = None,
        *,
        master: str | None = None,
        name: str = "tidegate",
    ) -> None:
        self._context = context
        self._master = master
        self._name = name
        self._opening: Future[SparkContext] | None = None

    def __enter__(self) -> Self:
        if self._context is None:
            opener = ThreadPoolExecutor(1, thread_name_prefix="open-spark")
            self._opening = opener.submit(open_context, self._name, self._master)
            opener.shutdown(wait=False)
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop Spark if it was opened here."""
        opening, self._opening = self._opening, None
        if opening is not None and not opening.cancel() and opening.exception() is None:
            opening.result().stop()

    @property
    def context(self) -> SparkContext:
        """The Spark context of the tasks; waits until it is open.

        Raises:
            RuntimeError: the executor was not entered, and has no context of the caller.
        """
        if self._context is not None:
            return self._context
        if self._opening is None:
            msg = "enter the executor before it is used: `with SparkExecutor() as executor:`"
            raise RuntimeError(msg)
        return self._opening.result()

    def run(
        self, task: StageTask, plan_uri: str, indexes: Sequence[int], attempt: str
    ) -> Iterator[CommitMessage]:
        """Run the task once per split; see `Executor`."""
        if not indexes:
            return
        from pyspark import cloudpickle

        context = self.context
        prepare_workers(context)
        ship_package(context)
        in_task = functools.partial(_run_in_task, cloudpickle.dumps(task), plan_uri, attempt)
        # Each split its own task, and no stage to spread them.
        splits = context.parallelize(indexes, len(indexes))
        try:
            results = splits.mapPartitions(in_task).collect()
        except Exception as failed:
            error = carried_error(failed) or incomplete_worker(failed)
            if error is None:
                raise
            raise error from failed
        for kind, content in results:
            if kind == _ERROR:
                raise error_of(content)
        for _, content in results:
            yield CommitMessage.from_text(content)


def _run_in_task(
    pickled: bytes, plan_uri: str, attempt: str, indexes: Iterable[int]
) -> Iterator[tuple[str, str]]:
    """Stage the splits of one Spark task; yields its messages or its Terminal error.

    The task comes pickled, because what it imports is most of what a new worker has to do.
    """
    from pyspark import TaskContext

    with collector_at_rest():
        task: StageTask = pickle.loads(pickled)
    # One thread per Spark core: the cores beside it belong to other tasks.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    context = TaskContext.get()
    named = f"{attempt}.t{context.taskAttemptId() if context else 0}"
    for index in indexes:
        try:
            messages = task(plan_uri, index, named)
        except TransientError as transient:
            raise RetryTask(transient) from transient
        except TerminalError as terminal:
            yield _ERROR, error_text(terminal)
        else:
            for message in messages:
                yield _MESSAGE, message.to_text()
    _spare_imported_objects()


@functools.cache
def _spare_imported_objects() -> None:
    """Exclude imported modules from later garbage collections, once per worker.

    Spark collects garbage after every task, which takes 30 to 70 ms for the modules alone, as
    measured.
    """
    gc.freeze()
