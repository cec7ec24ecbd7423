"""Let engines do one job in turns, and set what they took side by side.

The engines stay alive and take turns, round by round, so that what else the machine does falls on
all of them; ratios are medians over rounds.
"""

from __future__ import annotations

import contextlib
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.fingerprint import Fingerprint, fingerprint, row_count
from benchmarks.measure import (
    LONGEST_ROUND_SECONDS,
    Contestant,
    ContestantEnded,
    Launch,
    Round,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.job import Job

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Result:
    """What one engine took."""

    cold: Round
    warm: list[Round]
    written_bytes: int
    files: int
    fingerprint: Fingerprint

    def median(self, value: str) -> float:
        """Give the median of a value over the warm rounds."""
        return float(statistics.median(getattr(item, value) for item in self.warm))


@dataclass(frozen=True)
class Compared:
    """Two engines, by the names of their results."""

    mine: str
    other: str
    warm_goal: float | None = None
    cold_goal: float | None = None


def contest(
    job: Job,
    launches: Mapping[str, Launch],
    folder: Path,
    rounds: int,
    longest_seconds: float = LONGEST_ROUND_SECONDS,
) -> tuple[dict[str, Result], dict[str, str]]:
    """Run engines side by side.

    Args:
        job: what all of them do.
        launches: how each engine is started, by name.
        folder: for the job and the output.
        rounds: warm rounds of each.
        longest_seconds: of a round; an engine that takes longer is ended.

    Returns:
        Results by engine, and why engines that could not do the job have none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.json"
    job.write(path)
    failed: dict[str, str] = {}
    with contextlib.ExitStack() as running:
        engines, cold = {}, {}
        for name, launch in launches.items():
            engine = running.enter_context(
                Contestant(name, launch, path, folder / name, longest_seconds)
            )
            try:
                cold[name] = engine.cold()
                engines[name] = engine
            except ContestantEnded as ended:
                failed[name] = str(ended)
        warm: dict[str, list[Round]] = {name: [] for name in engines}
        for _ in range(rounds):
            for name, engine in list(engines.items()):
                engine.forget()
                try:
                    warm[name].append(engine.warm())
                except ContestantEnded as ended:
                    failed[name] = str(ended)
                    del engines[name]
    # Ended engines may have handed over what they wrote on their way out.
    found = {
        name: Result(
            cold[name],
            warm[name],
            sum(path.stat().st_size for path in engine.written()),
            len(engine.written()),
            fingerprint(engine.written(), job),
        )
        for name, engine in engines.items()
    }
    return found, failed


def table(found: Mapping[str, Result], titles: Mapping[str, str]) -> list[str]:
    """Give the Markdown table of what each engine took."""
    head = "| engine | cold s | warm s | warm CPU s | peak MB | written MB | files |"
    return [
        head,
        "|---|---|---|---|---|---|---|",
        *(
            f"| {titles[name]} | {item.cold.wall:.1f} | {item.median('wall'):.2f} "
            f"| {item.median('cpu'):.2f} | {item.median('peak_bytes') / MEGABYTE:.0f} "
            f"| {item.written_bytes / MEGABYTE:.0f} | {item.files} |"
            for name, item in found.items()
        ),
    ]


def ratios(
    found: Mapping[str, Result], titles: Mapping[str, str], compared: Sequence[Compared]
) -> list[str]:
    """Give the Markdown table of how many times as fast one engine is as another."""
    lines = []
    for pair in compared:
        if not {pair.mine, pair.other} <= found.keys():
            continue
        mine, other = found[pair.mine], found[pair.other]
        turns = list(zip(mine.warm, other.warm, strict=True))
        wall = statistics.median(theirs.wall / ours.wall for ours, theirs in turns)
        cpu = statistics.median(theirs.cpu / ours.cpu for ours, theirs in turns)
        lines.append(
            f"| {titles[pair.mine]} as {titles[pair.other]} | {_goal(pair.warm_goal)} "
            f"| {wall:.2f} | {cpu:.2f} | {_goal(pair.cold_goal)} "
            f"| {other.cold.wall / mine.cold.wall:.2f} |"
        )
    head = "| how many times as fast, median of the rounds | goal | warm | by CPU | goal | cold |"
    return [head, "|---|---|---|---|---|---|", *lines] if lines else []


def unequal(found: Mapping[str, Result]) -> dict[str, str]:
    """Name the engines that wrote other rows than the first one, and how many."""
    first = next(iter(found.values())).fingerprint
    rows = row_count(first)
    return {
        name: f"{row_count(item.fingerprint):,} rows, other than the {rows:,} expected"
        for name, item in found.items()
        if item.fingerprint != first
    }


def equality(found: Mapping[str, Result]) -> str:
    """Say how many rows the engines agree on."""
    first = next(iter(found.values())).fingerprint
    return f"- Rows of all engines are equal: {row_count(first):,} in {len(first)} partitions."


def _goal(goal: float | None) -> str:
    return "–" if goal is None else f"{goal:g}"
