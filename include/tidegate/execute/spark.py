"""Stage splits in Spark tasks: Spark gives places and retries, rows never pass through the JVM."""

from __future__ import annotations

import functools
import gc
import struct
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from tidegate.errors import TerminalError, TransientError
from tidegate.execute.errors_in_tasks import RetryTask, carried_error, error_of, error_text
from tidegate.execute.session import open_session, prepare_workers
from tidegate.model.message import CommitMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from tidegate.execute.protocol import StageTask

_MESSAGE = "message"
_ERROR = "error"
_ROWS = "position long, kind string, content string"


class SparkExecutor:
    """One Spark task per split, of a job without a shuffle.

    *Runs on:* the driver; the task function on executors. *Called:* a task at least once per split,
    more often when Spark retries or speculates: the first message of a sub-split wins. *Failure:* a
    Terminal error comes back as a row, so that Spark does not try four times what cannot succeed;
    the other splits are staged to their end, and the next attempt finds them. A Transient error is
    retried as often as the cluster retries tasks. A lost driver leaves messages and no job.

    A session of its own is opened in the background, because the driver can open the pipeline and
    plan while the JVM starts Spark: a second of every cold run, measured.

    Args:
        session: to use and leave open; None: one begins to open on entering and is stopped on
            leaving.
        master: for a session of its own, see `open_session`.
        name: for a session of its own.
    """

    def __init__(
        self,
        session: SparkSession | None = None,
        *,
        master: str | None = None,
        name: str = "tidegate",
    ) -> None:
        self._session = session
        self._master = master
        self._name = name
        self._opening: Future[SparkSession] | None = None

    def __enter__(self) -> Self:
        if self._session is None:
            opener = ThreadPoolExecutor(1, thread_name_prefix="open-spark")
            self._opening = opener.submit(open_session, self._name, self._master)
            opener.shutdown(wait=False)
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop the session if it is ours."""
        opening, self._opening = self._opening, None
        if opening is not None and not opening.cancel() and opening.exception() is None:
            opening.result().stop()

    @property
    def session(self) -> SparkSession:
        """The session that tasks run in; waits until it is open.

        Raises:
            RuntimeError: used before it was entered, and without a session of the caller's.
        """
        if self._session is not None:
            return self._session
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
        session = self.session
        prepare_workers(session)
        in_task = functools.partial(_run_in_task, task, plan_uri, tuple(indexes), attempt)
        # By index and not as rows of a frame: each split its own task, and no stage to spread them.
        positions = session.range(0, len(indexes), 1, len(indexes))
        try:
            rows = positions.mapInArrow(in_task, _ROWS).collect()
        except Exception as failed:
            error = carried_error(failed)
            if error is None:
                raise
            raise error from failed
        for row in rows:
            if row.kind == _ERROR:
                raise error_of(row.content)
        for row in rows:
            yield CommitMessage.from_text(row.content)


def _run_in_task(
    task: StageTask,
    plan_uri: str,
    indexes: tuple[int, ...],
    attempt: str,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Stage the splits of one Spark task; yields its messages or its Terminal error."""
    from pyspark import TaskContext

    # One thread per Spark core: the cores beside it belong to other tasks.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    context = TaskContext.get()
    named = f"{attempt}.t{context.taskAttemptId() if context else 0}"
    for batch in batches:
        for row in range(batch.num_rows):
            position = batch.column(0).slice(row, 1)
            try:
                messages = task(plan_uri, indexes[position[0].as_py()], named)
            except TransientError as transient:
                raise RetryTask(transient) from transient
            except TerminalError as terminal:
                yield _row(position, _ERROR, error_text(terminal))
            else:
                for message in messages:
                    yield _row(position, _MESSAGE, message.to_text())
    _spare_imported_objects()


@functools.cache
def _spare_imported_objects() -> None:
    """Leave what was imported out of later collections, once in each worker.

    Spark collects garbage after every task: 30 to 70 ms each time for the modules alone, measured.
    """
    gc.freeze()


def _row(position: pa.Int64Array, kind: str, content: str) -> pa.RecordBatch:
    columns = [position, _text_column(kind), _text_column(content)]
    return pa.RecordBatch.from_arrays(columns, names=["position", "kind", "content"])


def _text_column(text: str) -> pa.StringArray:
    """Make a column of one row; `pa.array` would import pandas, a second of each worker's start."""
    encoded = text.encode()
    offsets = struct.pack("ii", 0, len(encoded))
    return pa.StringArray.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(encoded))
