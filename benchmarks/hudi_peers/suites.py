"""The measurements on Hudi tables, each as Markdown."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.contest import MEGABYTE, Compared, contest, equality, ratios, table, unequal
from benchmarks.hudi_peers.environment import HERE, PEERS
from benchmarks.hudi_peers.jobs import merge_of, window_of
from benchmarks.hudi_peers.layout import LOG_SHARES, MANY_GROUPS, UPDATED, is_made, table_folder
from benchmarks.hudi_peers.timelines import make_timeline
from benchmarks.launching import launch, with_package
from benchmarks.measure import Launch
from benchmarks.peers.lone import run_alone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TITLES = {
    "tidegate-threads": "Tidegate, data path in one process",
    "tidegate-spark": "Tidegate on Spark",
    "hudi-spark": "Spark with Hudi",
}
_WORKS = {"tidegate": "Tidegate", "hudi-rs": "hudi-rs", "decode": "Tidegate, logs decoded only"}
_WRITES = 2_000
_ARCHIVED = 1_500


@dataclass(frozen=True)
class Settings:
    """What was asked for."""

    folder: Path
    rows: int
    """Of the merged tables."""
    rounds: int
    upserted_rows: int
    """Of the table that changes are upserted into."""

    def tables(self, *names: str) -> Path:
        """Give the folder of tables, made now where they are missing."""
        warehouse = self.folder / f"hudi-{self.rows}"
        missing = [name for name in names if not is_made(warehouse, name)]
        if missing:
            warehouse.mkdir(parents=True, exist_ok=True)
            PEERS.run("make_tables.py", str(warehouse), str(self.rows), *missing)
        return warehouse

    @property
    def out(self) -> Path:
        """The folder of what is written."""
        return self.folder / "out"


def merged(settings: Settings) -> Iterator[str]:
    """Merge a table with its logs and write it by day: every engine."""
    source = table_folder(settings.tables("logs"), "logs")
    job = merge_of(str(source))
    peer = Launch((*PEERS.submit(), str(HERE / "contestants.py")), PEERS.environment())
    found, failed = contest(
        job, {"tidegate-threads": launch("tidegate-threads")}, settings.out, settings.rounds
    )
    # Apart, because an idle Spark lets its Python workers go after a minute.
    on_spark = {"tidegate-spark": launch("tidegate-spark"), "hudi-spark": peer}
    others, problems = contest(job, on_spark, settings.out, settings.rounds)
    found |= others
    failed |= problems
    wrong = unequal(found)
    compared = (
        Compared("tidegate-spark", "hudi-spark", warm_goal=6, cold_goal=4),
        Compared("tidegate-threads", "hudi-spark"),
    )
    yield ""
    yield f"**Merge**: {settings.rows:,} rows, {settings.rows // UPDATED:,} records in Avro logs"
    yield ""
    yield from table(found, TITLES)
    yield ""
    yield from ratios(found, TITLES, compared)
    yield ""
    yield equality({name: item for name, item in found.items() if name not in wrong})
    for name, text in (failed | wrong).items():
        yield f"- {TITLES[name]}: {text.strip().splitlines()[-1][:200]}"


def alone(settings: Settings) -> Iterator[str]:
    """Merge on one core without writing, and decode logs alone; at one and ten times the logs."""
    warehouse = settings.tables(*LOG_SHARES)
    yield ""
    yield "**Merge alone**, on one core, CPU of the fastest round"
    yield ""
    yield "| reader | logs | first CPU s | CPU s | rows | rows per CPU s | peak MB |"
    yield "|---|---|---|---|---|---|---|"
    for name, commits in LOG_SHARES.items():
        source = str(table_folder(warehouse, name))
        for work, title in _WORKS.items():
            found = _lone(work, source, settings)
            yield (
                f"| {title} | {commits}× | {found['first']:.2f} | {found['cpu']:.2f} "
                f"| {found['rows']:,.0f} | {found['rows'] / found['cpu']:,.0f} "
                f"| {found['peak_bytes'] / MEGABYTE:.0f} |"
            )


def planning(settings: Settings) -> Iterator[str]:
    """Plan the window of one commit in a table of many groups, and one of a long timeline."""
    many = table_folder(settings.tables("many"), "many")
    commits = sorted(path.name for path in (many / ".hoodie" / "timeline").glob("*commit"))
    times = make_timeline(settings.folder / "timeline", _WRITES, _ARCHIVED)
    jobs = {
        f"one commit in {MANY_GROUPS:,} file groups (goal: < 0.5 s)": window_of(
            str(many), commits[0][:17]
        ),
        f"{_WRITES:,} writes, {_ARCHIVED:,} of them archived, from the 10th on (goal: < 2 s)": (
            window_of(str(settings.folder / "timeline"), times[9])
        ),
    }
    yield ""
    yield "**Planning**, in one process"
    yield ""
    yield "| window | splits | wall s | CPU s | peak MB |"
    yield "|---|---|---|---|---|"
    for title, job in jobs.items():
        found = run_alone("plan", job, settings.out)
        yield (
            f"| {title} | {found['splits']:,.0f} | {found['wall']:.2f} | {found['cpu']:.2f} "
            f"| {found['peak_bytes'] / MEGABYTE:.0f} |"
        )


def _lone(work: str, source: str, settings: Settings) -> dict[str, float]:
    """Do one work of `alone.py` in a fresh process; Tidegate's is done in this environment."""
    shutil.rmtree(settings.out, ignore_errors=True)
    settings.out.mkdir(parents=True)
    python, environment = sys.executable, with_package(os.environ)
    if work == "hudi-rs":
        python, environment = PEERS.python(), PEERS.environment()
    script = ("-m", "benchmarks.hudi_peers.alone", work, source, str(settings.out / "0"))
    done = subprocess.run(
        [python, *script, str(settings.rounds)],
        env=environment | {"POLARS_MAX_THREADS": "1", "TOKIO_WORKER_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found
