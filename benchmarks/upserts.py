"""Compare an upsert of one row in a hundred with the one of a table format in its own Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import yaml

from benchmarks.changed_rows import CHANGED, ChangedRows, make_rows
from benchmarks.contest import Compared, contest, equality, ratios, table, unequal
from benchmarks.job import Job
from benchmarks.launching import launch
from benchmarks.pipelines import NOW
from benchmarks.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.measure import Launch
    from tidegate.pipeline import Pipeline

TIDEGATE = "tidegate-upsert"
COLUMNS = (
    "order_id",
    "customer_id",
    "amount",
    "quantity",
    "discount",
    "note",
    "region",
    "is_paid",
    "due_on",
    "epoch_us(ordered_at)",
)
_LONGEST_ROUND_SECONDS = 1_800.0
_SUMS = (
    "count(DISTINCT order_id)",
    f"sum(hash(concat_ws('|', {', '.join(COLUMNS)}))::HUGEINT)",
)


@dataclass(frozen=True)
class Peer:
    """What an upsert is compared with."""

    name: str
    """Of the contestant, and of the folder of its tables."""
    title: str
    launch: Launch
    make_table: Callable[[Path, Path], None]
    """Makes a table of the rows of a folder of Parquet files, in a second folder."""


def upserts(folder: Path, rows: int, rounds: int, peer: Peer) -> Iterator[str]:
    """Change a day of orders, Tidegate and a peer by turns; yields Markdown.

    Args:
        folder: for tables, copies and output.
        rows: that stand before.
        rounds: warm rounds of each.
        peer: the other one.
    """
    titles = {TIDEGATE: "Tidegate, loaded and published in one process", peer.name: peer.title}
    made = make_rows(folder / f"changed-{rows}", rows)
    job = _job(made, folder / f"standing-{rows}")
    makers = {TIDEGATE: _publish_before, peer.name: peer.make_table}
    for engine, make in makers.items():
        standing = Standing.of(job, engine)
        if not standing.is_made:
            standing.begin()
            make(made.before, standing.current)
            standing.finish()
        standing.copy(1 + rounds)
    launches = {TIDEGATE: launch(TIDEGATE), peer.name: peer.launch}
    found, failed = contest(job, launches, folder / "out", rounds, _LONGEST_ROUND_SECONDS)
    wrong = unequal(found)
    yield ""
    yield f"**Upsert**: {rows // CHANGED:,} changes into {rows:,} rows; MB and files of the table"
    yield ""
    yield from table(found, titles)
    yield ""
    yield from ratios(found, titles, (Compared(TIDEGATE, peer.name, warm_goal=3),))
    yield ""
    yield equality({engine: item for engine, item in found.items() if engine not in wrong})
    for engine, text in (failed | wrong).items():
        yield f"- {titles[engine]}: {text.strip().splitlines()[-1][:200]}"


def take_in(folder: Path, changes: Path | None) -> None:
    """Load what is new and publish it, in this process.

    Args:
        folder: of the pipeline and everything of it.
        changes: folder of files that arrive now; None: what is there already.
    """
    from tidegate.execute.local import LocalExecutor
    from tidegate.model.run import Run

    if changes is not None:
        for path in changes.glob("*.parquet"):
            (folder / "incoming" / path.name).hardlink_to(path)
    now = NOW + timedelta(hours=0 if changes is None else 1)
    pipeline = _opened(folder)
    pipeline.load(Run("bench", "bench"), now, lambda _: LocalExecutor())
    for outcome in pipeline.publish_all("bench", now):
        if outcome.state != "committed":
            raise SystemExit(str(outcome))


def published_files(folder: Path) -> list[Path]:
    """Return the files that the markers of a table name."""
    return [
        marker.parent / file["name"]
        for marker in (folder / "table").rglob("_SUCCESS")
        for file in json.loads(marker.read_bytes())["files"]
    ]


def _job(made: ChangedRows, standing: Path) -> Job:
    return Job(
        kind="files",
        source=str(made.changes),
        filter="",
        event_time="ordered_at",
        unit="day",
        sums=_SUMS,
        mode="upsert",
        warehouse=str(standing),
        partition_column="part",
    )


def _publish_before(rows: Path, folder: Path) -> None:
    (folder / "incoming").mkdir()
    for path in rows.glob("*.parquet"):
        (folder / "incoming" / path.name).hardlink_to(path)
    take_in(folder, None)


def _opened(folder: Path) -> Pipeline:
    from tidegate.pipeline import open_pipeline

    file = folder / "pipeline.yaml"
    file.write_text(yaml.safe_dump(_described(folder), sort_keys=False))
    return open_pipeline(file, ledger=f"sqlite:///{folder}/ledger.db")


def _described(folder: Path) -> dict[str, object]:
    return {
        "name": "bench_upserts",
        "source": {"kind": "files", "path": f"{folder}/incoming", "start": "full"},
        "event_time": "ordered_at",
        "target": {
            "path": f"{folder}/table",
            "write": "upsert",
            "keys": ["order_id"],
            "keys_stay": True,
            "partition_by": {"dt": "day(ordered_at)"},
        },
        "commit": {"trigger": "process-time"},
    }
