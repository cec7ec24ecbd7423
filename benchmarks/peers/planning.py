"""Plan tables that are nothing but metadata: very many files, and very many compactions."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from benchmarks.contest import MEGABYTE
from benchmarks.job import Job
from benchmarks.metadata_tables import write_many_files, write_many_replaces
from benchmarks.peers.lone import run_alone

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.peers.settings import Settings

_FILES = 100_000
_REPLACES = 1_000


def planning(settings: Settings) -> list[str]:
    """Run all of it; gives Markdown."""
    place = settings.folder / "metadata"
    shutil.rmtree(place, ignore_errors=True)
    many = write_many_files(place / "files", _FILES)
    compacted = write_many_replaces(place / "replaces", _REPLACES)
    # Data files are named and do not exist, and here neither do manifests: opening one would fail.
    for manifest in (place / "replaces" / "metadata").glob("*-m0.avro"):
        manifest.unlink()
    works = {
        f"{_FILES:,} data files (goals: < 5 s, < 500 MB)": _job(many, None),
        f"a window of {_REPLACES:,} `replace` snapshots, whose manifests and data files are gone": (
            _job(compacted, 1)
        ),
    }
    lines = []
    for title, job in works.items():
        found = run_alone("plan", job, settings.folder / "out")
        lines.append(
            f"| {title} | {found['splits']:,.0f} | {found['wall']:.2f} | {found['cpu']:.2f} "
            f"| {found['peak_bytes'] / MEGABYTE:.0f} |"
        )
    return [
        "",
        "**Planning**, in one process",
        "",
        "| window | splits | wall s | CPU s | peak MB |",
        "|---|---|---|---|---|",
        *lines,
    ]


def _job(metadata: Path, start_after: int | None) -> Job:
    return Job(
        kind="iceberg",
        source=str(metadata),
        filter="",
        event_time="ordered_at",
        unit="day",
        sums=(),
        start_after=start_after,
    )
