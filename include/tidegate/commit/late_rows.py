"""Decide when late rows that are held count (PC-L03). Reads no clock, and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tidegate.commit.triggers import clock_text, span_text
from tidegate.config.late_data import HoldLate
from tidegate.model.aside import Aside
from tidegate.model.counting import counting, set_aside

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.model.message import Contribution


@dataclass(frozen=True)
class HeldRows:
    """Late rows of a partition that are held."""

    windows: tuple[int, ...]
    rows: int
    since: datetime | None
    """When the first of them were announced."""


@dataclass(frozen=True)
class LateLook:
    """What was found of them."""

    held: HeldRows
    released: str | None
    """Why they count from now on; None: they do not."""
    detail: str
    """The values compared, and what is missing."""


def held_rows(contributions: Sequence[Contribution]) -> HeldRows | None:
    """Return the late rows that are held; None if there are none."""
    found = [item for item in set_aside(contributions) if item.aside is Aside.LATE_HELD]
    if not found:
        return None
    return HeldRows(
        windows=tuple(item.window for item in found),
        rows=sum(item.rows for item in found),
        since=min((item.announced_at for item in found if item.announced_at), default=None),
    )


def look_at_held(
    config: PipelineConfig,
    contributions: Sequence[Contribution],
    *,
    revision: int,
    published_rows: int,
    now: datetime,
) -> LateLook | None:
    """Decide whether the late rows of a partition that are held count now: all, or none.

    Args:
        config: of the pipeline, as it is today.
        contributions: to the partition.
        revision: the partition's; 0: none, if its first commit was taken back.
        published_rows: rows of that revision.
        now: clock of the look.

    Returns:
        None if none are held.
    """
    held, late = held_rows(contributions), config.commit.late_data
    if held is None:
        return None
    rows = f"{held.rows:,} late {'row' if held.rows == 1 else 'rows'}"
    if late.policy != "hold":
        return LateLook(held, f"`commit.late_data` is '{late.policy}' now", rows)
    if not revision:
        return LateLook(held, "the partition has no revision", rows)
    thresholds = list(_thresholds(config, late.hold or HoldLate(), held, published_rows, now))
    reached = [text for text, is_reached in thresholds if is_reached]
    if reached:
        return LateLook(held, f"{' and '.join(reached)} reached", rows)
    missing = ", or ".join(text for text, _ in thresholds)
    what = missing or "only `tidegate reopen`"
    return LateLook(held, None, f"{rows} held; released by {what}")


def has_news(contributions: Sequence[Contribution], stood: Mapping[str, str]) -> bool:
    """Return whether something counts that a revision with these contributions does not have."""
    return any(stood.get(str(item.window)) != item.plan_digest for item in counting(contributions))


def _thresholds(
    config: PipelineConfig, said: HoldLate, held: HeldRows, published_rows: int, now: datetime
) -> Iterator[tuple[str, bool]]:
    """Yield each threshold in words, and whether it is reached."""
    if said.rows is not None:
        yield f"{said.rows:,} rows", held.rows >= said.rows
    if said.ratio is not None:
        text = f"{said.ratio:g} of {published_rows:,} published rows"
        yield text, held.rows >= said.ratio * published_rows
    if said.age is not None and held.since is not None:
        since = clock_text(held.since.replace(microsecond=0), ZoneInfo(config.timezone))
        yield f"{span_text(said.age)} since {since}", now >= held.since + said.age
