"""Watch the days progress, give the one approval, and fail if the end cannot be reached."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.demo import plot
from tidegate.errors import DemoStuck

if TYPE_CHECKING:
    from datetime import date

    from rich.console import Console

    from tidegate.demo.airflow_client import AirflowClient, Question
    from tidegate.demo.airflow_server import AirflowServer
    from tidegate.demo.places import DagIds
    from tidegate.demo.screen import Board
    from tidegate.model.report import PipelineReport
    from tidegate.pipeline import Pipeline

PATIENCE_SECONDS = 15 * 60

_LOOK_SECONDS = 1.0
_QUIET_SECONDS = 60.0
_SETTLE_SECONDS = 20.0
_READING_SECONDS = 8.0
"""Airflow takes some seconds to register a task that waits for a person. An answer before that is
lost, and the task asks again; no person is that quick."""


class DemoWatch:
    """Polls ledger and Airflow until every day is in its final state.

    *Failure:* it only reads, except for the answer and the reconcile run, both of which may be
    repeated.
    """

    def __init__(
        self, console: Console, server: AirflowServer, pipeline: Pipeline, dags: DagIds
    ) -> None:
        self._console = console
        self._server = server
        self._pipeline = pipeline
        self._dags = dags
        self._started = time.monotonic()
        self._failed_before = self._failed_runs()
        self._asked: dict[str, float] = {}
        self._standing: object = None
        self._changed = self._started

    def until_end(self, board: Board) -> None:
        """Show the days until all are in their final state.

        Raises:
            DemoStuck: a run failed, or it took longer than `PATIENCE_SECONDS`.
            AirflowNotStarted: Airflow ended.
        """
        while True:
            report = self._pipeline.status(datetime.now(UTC))
            board.show(report)
            if plot.is_at_the_end(report):
                return
            self._server.check_running()
            self._answer(report)
            self._check_progress(report)
            self._push_when_quiet(report)
            time.sleep(_LOOK_SECONDS)

    def let_settle(self) -> None:
        """Wait for runs that find their partition published; those of two days stay open."""
        open_keys = {plot.HELD.isoformat(), plot.WAITING.isoformat()}
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            runs = [run for run in self._client.runs(self._dags.publish) if run.is_active]
            if all(run.partition_key in open_keys for run in runs) and not self._is_loading():
                return
            time.sleep(_LOOK_SECONDS)

    @property
    def _client(self) -> AirflowClient:
        return self._server.client

    def _answer(self, report: PipelineReport | None) -> None:
        """Approve the one day as a person would, once Airflow waits for it."""
        question = self._question() if _is_held(report, plot.APPROVED) else None
        if question is None:
            self._asked.clear()
            return
        asked = self._asked.setdefault(question.run_id, time.monotonic())
        if time.monotonic() - asked < _READING_SECONDS:
            return
        self._client.approve(self._dags.publish, question, plot.COMMENT)
        self._asked.clear()
        path = plot.partition_path(plot.APPROVED)
        self._console.print(f"{path}: approved in Airflow. {plot.COMMENT}", highlight=False)

    def _question(self) -> Question | None:
        runs = self._client.runs(self._dags.publish)
        keys = {run.run_id: run.partition_key for run in runs}
        wanted = plot.APPROVED.isoformat()
        asked = self._client.questions(self._dags.publish)
        return next((item for item in asked if keys.get(item.run_id) == wanted), None)

    def _check_progress(self, report: PipelineReport | None) -> None:
        seconds = time.monotonic() - self._started
        failed = sorted(self._failed_runs() - self._failed_before)
        if not failed and seconds < PATIENCE_SECONDS:
            return
        waiting = [day.path for day in plot.days(report) if not day.is_at_the_end]
        found = ", ".join([f"run {name} failed" for name in failed] or waiting)
        raise DemoStuck(minutes=round(seconds / 60), found=found, log=str(self._server.log))

    def _push_when_quiet(self, report: PipelineReport | None) -> None:
        """Announce pending partitions again: an interrupted call may have lost their runs."""
        now, standing = time.monotonic(), [_standing(day) for day in plot.days(report)]
        if standing != self._standing or self._asked or self._is_loading():
            self._changed, self._standing = now, standing
        if now - self._changed < _QUIET_SECONDS:
            return
        if _is_held(report, plot.APPROVED):
            path = plot.partition_path(plot.APPROVED)
            self._pipeline.reopen(self._pipeline.parse_partition(path), datetime.now(UTC))
        self._client.trigger(self._dags.reconcile)
        self._changed = now

    def _failed_runs(self) -> set[str]:
        dags = (self._dags.load, self._dags.publish)
        runs = [run for dag_id in dags for run in self._client.runs(dag_id)]
        return {run.run_id for run in runs if run.state == "failed"}

    def _is_loading(self) -> bool:
        return any(run.is_active for run in self._client.runs(self._dags.load))


def _is_held(report: PipelineReport | None, wanted: date) -> bool:
    states = {day.date: day.report.state.pending for day in plot.days(report) if day.report}
    return states.get(wanted) == "held"


def _standing(day: plot.Day) -> object:
    if day.report is None:
        return None
    return day.report.name, day.report.state.revision, day.report.rows_pending
