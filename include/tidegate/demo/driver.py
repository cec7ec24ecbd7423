"""The demo from beginning to end: lake, Airflow, backfill, approval, results.

Every step finds what an earlier call left, so that it may be interrupted and called again.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from rich.syntax import Syntax

from tidegate.demo import plot, screen
from tidegate.demo.airflow_server import AirflowServer, ended_like_interrupted
from tidegate.demo.flights import FIRST_DAY, LAST_DAY
from tidegate.demo.lake import build_lake
from tidegate.demo.places import PIPELINE, DemoPlaces
from tidegate.demo.proof import MARKER, prove
from tidegate.errors import DemoStuck
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from datetime import date

    from rich.console import Console

    from tidegate.demo.airflow_client import AirflowClient
    from tidegate.demo.lake import LakeReport
    from tidegate.demo.screen import Board
    from tidegate.model.report import PipelineReport
    from tidegate.pipeline import Pipeline

LOAD, PUBLISH, RECONCILE = (f"{PIPELINE}_{kind}" for kind in ("load", "publish", "reconcile"))
PATIENCE_MINUTES = 15
_LOOK_SECONDS = 1.0
_READING_TIME = timedelta(seconds=4)
_QUIET_SECONDS = 45
_SETTLE_SECONDS = 20


def run_demo(console: Console, places: DemoPlaces | None = None) -> bool:
    """Publish a week of flights through Airflow and show what came out.

    *Runs on:* one process per home. *Called:* again at any time; nothing is doubled. *Failure:*
    also when interrupted, no process stays behind; lake, ledger and Airflow's home stay, and the
    next call goes on from there.

    Returns:
        Whether every published day has each of its rows once.

    Raises:
        AirflowNotStarted: Airflow did not come up.
        DemoStuck: the end state was not reached in time.
    """
    places = places or DemoPlaces.here()
    started = time.monotonic()
    with ended_like_interrupted(), places.set_here():
        pipeline = open_pipeline(places.file)
        if plot.is_at_the_end(pipeline.status(_now())):
            console.print("Already published: nothing is done twice. This is what stands:")
        else:
            _publish(console, places, pipeline)
            console.print(f"Done in {time.monotonic() - started:.0f} s.", highlight=False)
        return show_results(console, places, pipeline)


def run_ui(console: Console, places: DemoPlaces | None = None) -> None:
    """Start Airflow on the demo's home and keep it up until interrupted."""
    places = places or DemoPlaces.here()
    with ended_like_interrupted(), AirflowServer(places.airflow, places.variables()) as server:
        with console.status("Starting Airflow …"):
            server.wait_until_ready((LOAD, PUBLISH, RECONCILE))
        console.print(f"Airflow is at [link]{server.client.url}[/link] (no login). Ctrl-C ends it.")
        while True:
            server.check_running()
            time.sleep(_LOOK_SECONDS)


def show_results(console: Console, places: DemoPlaces, pipeline: Pipeline) -> bool:
    """Print partitions, a marker, the check and how to go on; whether the check found all exact."""
    report = pipeline.status(_now())
    target = Path(pipeline.roots.target)
    revisions = {
        day.date: pipeline.explain(day.report.state.partition, _now()).revisions[-1]
        for day in plot.days(report)
        if day.report is not None and day.report.state.revision
    }
    console.print(screen.day_table(report, revisions))
    marker = target / plot.partition_path(plot.LATE) / MARKER
    console.print(f"\nThe marker {marker}, written last:", soft_wrap=True)
    console.print(Syntax(marker.read_text().rstrip(), "json", word_wrap=True))
    proofs = prove(places.lake, target)
    console.print("\nChecked against the raw table and the package, row by row:")
    console.print(screen.proof_table(proofs))
    _show_next_steps(console, target)
    return all(item.is_exact for item in proofs)


def _publish(console: Console, places: DemoPlaces, pipeline: Pipeline) -> None:
    """Bring every day to its end through Airflow."""
    with AirflowServer(places.airflow, places.variables()) as server:
        # Airflow needs most of a minute to come up; the lake is made meanwhile.
        with console.status("Starting Airflow, making the lake …"):
            _tell_of_lake(console, build_lake(places.lake))
            server.wait_until_ready((LOAD, PUBLISH, RECONCILE))
        console.print(f"Airflow is up at {server.client.url}", highlight=False)
        server.client.unpause(LOAD)
        if not server.client.is_backfilling(LOAD):
            first, last = plot.midnight(FIRST_DAY), plot.midnight(LAST_DAY)
            # What an interrupted call left failed is done again; finished runs stay as they are.
            server.client.backfill(LOAD, first, last, reprocess="failed")
            console.print(f"Backfill of {LOAD}: {FIRST_DAY} to {LAST_DAY}")
        with screen.board(console) as shown:
            _watch(console, server, pipeline, shown)
        _let_settle(server.client)
        console.print("Stopping Airflow …")


def _tell_of_lake(console: Console, lake: LakeReport) -> None:
    made = f"{lake.made_now} made now" if lake.made_now else "complete already"
    console.print(
        f"The lake {lake.root}: {lake.rows:,} flights in {lake.commits} commits, {made}.\n"
        f"Late on purpose: {lake.late_rows} flights of {lake.late_airline} on {plot.LATE} "
        f"are reported three days later.",
        highlight=False,
        soft_wrap=True,
    )


def _watch(console: Console, server: AirflowServer, pipeline: Pipeline, shown: Board) -> None:
    """Show the days, answer the approval, until all are at their end.

    Raises:
        DemoStuck: a run failed, or the end was not reached in `PATIENCE_MINUTES`.
    """
    client, started = server.client, time.monotonic()
    changed_at, seen = started, None
    while True:
        report = pipeline.status(_now())
        shown.show(report)
        if plot.is_at_the_end(report):
            return
        server.check_running()
        now, standing = time.monotonic(), [str(day) for day in plot.days(report)]
        if standing != seen:
            changed_at, seen = now, standing
        if _answer(console, client, report):
            changed_at = now
        _check_progress(server, report, minutes=(now - started) / 60)
        if now - changed_at > _QUIET_SECONDS and not _is_loading(client):
            _push(client, pipeline, report)
            changed_at = now
        time.sleep(_LOOK_SECONDS)


def _answer(console: Console, client: AirflowClient, report: PipelineReport | None) -> bool:
    """Approve the one day as a person would; whether there was something to answer."""
    if not _is_held(report, plot.APPROVED):
        return False
    keys = {run.run_id: run.partition_key for run in client.runs(PUBLISH)}
    for question in client.questions(PUBLISH):
        is_ours = keys.get(question.run_id) == plot.APPROVED.isoformat()
        # Airflow needs a moment to park the task that asks; a person is never that quick.
        if is_ours and _now() - question.asked_at > _READING_TIME:
            client.approve(PUBLISH, question, plot.COMMENT)
            console.print(
                f"{plot.partition_path(plot.APPROVED)}: approved in Airflow. {plot.COMMENT}"
            )
            return True
    return False


def _check_progress(server: AirflowServer, report: PipelineReport | None, minutes: float) -> None:
    failed = [
        run
        for dag_id in (LOAD, PUBLISH)
        for run in server.client.runs(dag_id)
        if run.state == "failed"
    ]
    if failed or minutes > PATIENCE_MINUTES:
        waiting = [day.path for day in plot.days(report) if not day.is_at_the_end]
        found = [f"run {run.run_id} failed" for run in failed] or waiting
        raise DemoStuck(minutes=round(minutes), found=", ".join(found), log=str(server.log))


def _push(client: AirflowClient, pipeline: Pipeline, report: PipelineReport | None) -> None:
    """Have pending partitions announced again: an interrupted call may have lost runs."""
    if _is_held(report, plot.APPROVED):
        pipeline.reopen(pipeline.parse_partition(plot.partition_path(plot.APPROVED)))
    client.trigger(RECONCILE)


def _is_held(report: PipelineReport | None, wanted: date) -> bool:
    states = {day.date: day.report.state.pending for day in plot.days(report) if day.report}
    return states.get(wanted) == "held"


def _is_loading(client: AirflowClient) -> bool:
    return any(run.state in ("queued", "running") for run in client.runs(LOAD))


def _let_settle(client: AirflowClient) -> None:
    """Let runs end that find their partition published already; those of two days stay open."""
    open_keys = {plot.HELD.isoformat(), plot.WAITING.isoformat()}
    deadline = time.monotonic() + _SETTLE_SECONDS
    while time.monotonic() < deadline:
        runs = [run for run in client.runs(PUBLISH) if run.partition_key not in open_keys]
        if not _is_loading(client) and all(run.state not in ("queued", "running") for run in runs):
            return
        time.sleep(_LOOK_SECONDS)


def _show_next_steps(console: Console, target: Path) -> None:
    waiting = plot.partition_path(plot.WAITING)
    read = f"read_parquet('{target}/*/*.parquet')"
    lines = [
        f"The published table is {target}. To read it:",
        f'  pyarrow  pyarrow.dataset.dataset("{target}", partitioning="hive").to_table()',
        f"  DuckDB   SELECT dt, count(*) FROM {read} GROUP BY dt ORDER BY dt",
        f'  Spark    spark.read.parquet("{target}").groupBy("dt").count().show()',
        "",
        "To look at it in Airflow: make ui",
        f"To ask why a day is not out: tidegate explain {PIPELINE} {waiting}",
    ]
    console.print("\n" + "\n".join(lines), highlight=False, soft_wrap=True)


def _now() -> datetime:
    return datetime.now(UTC)
