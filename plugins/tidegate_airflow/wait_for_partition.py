"""The sensor by which DAGs of other teams wait for a partition that Tidegate publishes (AF-3.29).

It knows the table by its path alone: the team that waits needs no pipeline file and no ledger.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseSensorOperator

from tidegate.config import ask_airflow
from tidegate.errors import TerminalError, TidegateError, TransientError, WaitInvalid
from tidegate.storage import is_object
from tidegate.target.standing import (
    StandingRevision,
    check_keys,
    is_iceberg,
    read_partition_path,
)
from tidegate_airflow.connections import find
from tidegate_airflow.failures import RETRY_POLICY
from tidegate_airflow.marker_trigger import Awaited, MarkerTrigger
from tidegate_airflow.skips import skipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context


class WaitForPartition(BaseSensorOperator):
    """Succeeds once a partition stands with at least a revision; returns what stands there.

    It looks once, and is then deferred: it occupies no slot, however long it waits (AF-4.7). What
    may come is waited for, for `timeout`; what can only be corrected fails at once and is not
    retried, also with `soft_fail`. A revision that is just replaced has no marker for a moment, and
    counts again when the next one stands.

    Args:
        table: the table root, as `target.path` in the pipeline file: a path, or the address of
            objects (`s3://bucket/prefix`); templated.
        partition: its path below the table, such as `dt={{ ds }}/region=eu`; `all` for a table
            without partitions; templated.
        min_revision: the first revision that will do, 1 or more; templated.
        marker: the only name that the marker may have, for a table that has others beside it;
            templated.
        connection: id of the Airflow connection of type `aws` by which a store is reached, if what
            AWS's own tools find does not; templated.
        kwargs: as for every sensor; `poke_interval` is the time between two looks.

    Returns:
        By XCom: `partition`, and `revision`, `rows` and `files` of what stands.

    Raises:
        WaitInvalid: an argument cannot be right.
        PartitionPathInvalid: the partition is none of this table.
        PublishedTableMissing: there is no table.
        MarkerInvalid: another program wrote the marker, or it is damaged.
        AirflowSensorTimeout: it did not come in time.
    """

    template_fields: Sequence[str] = ("table", "partition", "min_revision", "marker", "connection")
    ui_color = "#dbeaf7"

    def __init__(
        self,
        *,
        table: str,
        partition: str,
        min_revision: int | str = 1,
        marker: str | None = None,
        connection: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.retry_policy = self.retry_policy or RETRY_POLICY
        self.table = table
        self.partition = partition
        self.min_revision = min_revision
        self.marker = marker
        self.connection = connection
        if all(_is_known(value) for value in (table, partition, min_revision)):
            # Refused when the DAG is parsed; what templates make is known when the task runs.
            self._awaited()

    def execute(self, context: Context) -> dict[str, Any]:  # noqa: ARG002 (Airflow's signature)
        """Look, and wait if it is not there yet."""
        ask_airflow(find)
        try:
            awaited = self._awaited()
            found, reason = self._look(awaited)
        except TerminalError as wrong:
            self._fail(wrong)
        if found is None or not awaited.is_met(found):
            self.log.info("%s", reason)
            self.defer(
                trigger=MarkerTrigger(dict(vars(awaited)), self.poke_interval),
                method_name="resume",
                timeout=timedelta(seconds=self.timeout),
            )
        return self._released(found)

    def resume(self, _context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """End with what the Airflow trigger found."""
        if "error" in event:
            self._fail(TidegateError.from_json(event["error"]))
        return self._released(StandingRevision.from_json(event["standing"]))

    def _look(self, awaited: Awaited) -> tuple[StandingRevision | None, str]:
        """Return what stands, and why it may not do."""
        try:
            found = awaited.found()
            if found is None:
                if is_iceberg(awaited.storage, awaited.table):
                    what = f"{awaited.table}, an Iceberg table, in which each commit is a snapshot"
                    self._refuse("table", what, "a table with markers")
                partition = read_partition_path(awaited.partition)
                check_keys(awaited.storage, awaited.table, partition)
        except TransientError as silent:
            # It is looked at again, as anything else that may come.
            return None, str(silent)
        return found, awaited.not_yet(found)

    def _awaited(self) -> Awaited:
        table = str(self.table)
        if not (table.startswith("/") or is_object(table)):
            expected = "the absolute path of a published table, or its address `s3://…`"
            self._refuse("table", table, expected)
        revision = str(self.min_revision)
        if not revision.isdecimal() or int(revision) < 1:
            self._refuse("min_revision", revision, "a whole number, 1 or more")
        partition = str(read_partition_path(str(self.partition)))
        asked = Awaited(table.rstrip("/"), partition, int(revision), self.marker or None)
        return replace(asked, connection=self.connection or None)

    def _refuse(self, argument: str, found: str, expected: str) -> NoReturn:
        raise WaitInvalid(task=self.task_id, argument=argument, expected=expected, found=found)

    def _fail(self, wrong: TidegateError) -> NoReturn:
        if self.never_fail:
            raise skipped(str(wrong), noted=False) from wrong
        raise wrong

    def _released(self, found: StandingRevision) -> dict[str, Any]:
        self.log.info(
            "%s: %s: revision %d stands, %d rows in %d files",
            self.table,
            self.partition,
            found.revision,
            found.rows,
            found.files,
        )
        return {
            "partition": str(self.partition),
            "revision": found.revision,
            "rows": found.rows,
            "files": found.files,
        }


def _is_known(value: Any) -> bool:
    """Return whether an argument has its value when the DAG is parsed."""
    return isinstance(value, (str, int)) and not any(mark in str(value) for mark in ("{{", "{%"))
