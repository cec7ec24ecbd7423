"""Run the demo from beginning to end: lake, Airflow, backfill, approval, results.

Every step continues from the state that an earlier call left, so that it may be interrupted and
called again.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rich.syntax import Syntax

from tidegate.demo import plot, screen
from tidegate.demo.airflow_server import START_SECONDS, AirflowServer
from tidegate.demo.databases import Reviver, airflow_database, databases
from tidegate.demo.flights import FIRST_DAY, LAST_DAY
from tidegate.demo.interrupts import ended_like_interrupted
from tidegate.demo.lake import build_lake
from tidegate.demo.places import PIPELINE, DagIds, DemoPlaces
from tidegate.demo.proof import MARKER, prove
from tidegate.demo.silences import Silences
from tidegate.demo.watch import DemoWatch
from tidegate.errors import AirflowNotStarted
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from rich.console import Console

    from tidegate.demo.lake import LakeReport
    from tidegate.pipeline import Pipeline

DAGS = DagIds.of(PIPELINE)
_LOOK_SECONDS = 2.0
_STARTS = 3
_RECENT_SECONDS = 15 * 60
_RECENT_ENDS = 3
"""So many ends of Airflow in so many seconds are not mended by one start more."""


def run_demo(console: Console, places: DemoPlaces | None = None) -> bool:
    """Publish a week of flights through Airflow and show the result.

    *Runs on:* one process per home. *Called:* again at any time; nothing is duplicated. *Failure:*
    even if interrupted, no process stays behind; lake, ledger and Airflow's home stay, and the next
    call continues from there.

    Returns:
        Whether every published day has each of its rows once.

    Raises:
        AirflowNotStarted: Airflow did not start.
        DemoStuck: the end state was not reached in time.
    """
    places = places or DemoPlaces.here()
    started = time.monotonic()
    with ended_like_interrupted(), databases(places) as notes, places.set_here():
        pipeline = open_pipeline(places.file)
        if plot.is_at_the_end(pipeline.status(_now())):
            console.print("Already published: nothing is done twice. This is what stands:")
        else:
            _print_notes(console, notes)
            _publish_with_restarts(console, places, pipeline)
            console.print(f"Done in {time.monotonic() - started:.0f} s.", highlight=False)
        return show_results(console, places, pipeline)


def run_ui(console: Console, places: DemoPlaces | None = None) -> None:
    """Start Airflow on the demo's home and keep it running until interrupted.

    A part that ends by itself is named and started again alone, on the same port. One that lives
    and sends no heartbeat is only named.

    Raises:
        AirflowNotStarted: it did not start, or ended again and again.
        AirflowRunning: another process runs it already.
    """
    places = places or DemoPlaces.here()
    with ended_like_interrupted(), databases(places) as notes:
        _print_notes(console, notes)
        ends: list[float] = []
        while True:
            try:
                # The machine may be slow: each try gets more time than the one before.
                _serve(console, places, START_SECONDS * 2 ** len(ends))
            except AirflowNotStarted as down:
                now = time.monotonic()
                ends = [end for end in ends if now - end < _RECENT_SECONDS]
                if len(ends) >= _RECENT_ENDS:
                    raise
                ends.append(now)
                _print(console, f"{down} Starting it again …")


def _serve(console: Console, places: DemoPlaces, seconds: float) -> NoReturn:
    with airflow_of(places, console) as server:
        with console.status("Starting Airflow …"):
            # Whatever pipelines there are: a broken or missing one is no reason to start anew.
            server.wait_until_ready((), seconds)
        console.print(f"Airflow is at [link]{server.client.url}[/link] (no login). Ctrl-C ends it.")
        silences = Silences()
        while True:
            server.check_running()
            for told in silences.look(server.client.unhealthy_parts(), time.monotonic()):
                _print(console, told)
            time.sleep(_LOOK_SECONDS)


def airflow_of(places: DemoPlaces, console: Console | None = None) -> AirflowServer:
    """Return a home's Airflow, on the database that it has.

    Args:
        places: of the home.
        console: is told what ended and is started again.
    """

    def tell(text: str) -> None:
        if console is not None:
            _print(console, text)

    return AirflowServer(
        places.airflow,
        places.variables() | airflow_database(places),
        tell=tell,
        revive=Reviver(places, tell).look,
    )


def show_results(console: Console, places: DemoPlaces, pipeline: Pipeline) -> bool:
    """Print partitions, a marker, the check and the next steps; return whether all is exact."""
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


def _publish_with_restarts(console: Console, places: DemoPlaces, pipeline: Pipeline) -> None:
    """Bring every day to its final state, even if Airflow ends in between.

    On SQLite, creating a backfill while the database is locked may terminate the scheduler
    (AF-2.9). Completed work is kept, so that a new start continues from there.
    """
    for starts_left in reversed(range(_STARTS)):
        try:
            _publish(console, places, pipeline)
        except AirflowNotStarted as down:
            if not starts_left:
                raise
            _print(console, f"{down} Starting it again …")
        else:
            return


def _publish(console: Console, places: DemoPlaces, pipeline: Pipeline) -> None:
    """Bring every day to its final state through Airflow."""
    with airflow_of(places, console) as server:
        # Airflow needs most of a minute to start; the lake is created in the meantime.
        with console.status("Starting Airflow, making the lake …"):
            _tell_of_lake(console, build_lake(places.lake))
            server.wait_until_ready(DAGS.all)
        console.print(f"Airflow is up at {server.client.url}", highlight=False)
        server.client.unpause(DAGS.load)
        if not server.client.is_backfilling(DAGS.load):
            first, last = plot.midnight(FIRST_DAY), plot.midnight(LAST_DAY)
            # Failed runs of an interrupted call are repeated; finished runs stay as they are.
            server.client.backfill(DAGS.load, first, last, reprocess="failed")
            console.print(f"Backfill of {DAGS.load}: {FIRST_DAY} to {LAST_DAY}")
        watch = DemoWatch(console, server, pipeline, DAGS)
        with screen.board(console) as shown:
            watch.until_end(shown)
        watch.let_settle()
        console.print("Stopping Airflow …")


def _print(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _print_notes(console: Console, notes: tuple[str, ...]) -> None:
    for note in notes:
        _print(console, note)


def _tell_of_lake(console: Console, lake: LakeReport) -> None:
    made = f"{lake.made_now} made now" if lake.made_now else "complete already"
    console.print(
        f"The lake {lake.root}: {lake.rows:,} flights in {lake.commits} commits, {made}.\n"
        f"Late on purpose: {lake.late_rows} flights of {lake.late_airline} on {plot.LATE} "
        f"are reported three days later.",
        highlight=False,
        soft_wrap=True,
    )


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
