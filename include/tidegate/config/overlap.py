"""Refuse a pipeline that would read what it publishes, by real path. Opens no file."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from tidegate.config.section import is_in_store, overlap, real_place
from tidegate.errors import PlacesOverlap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.config.pipeline import PipelineConfig
    from tidegate.config.sources import SourceConfig


def refuse_overlap(config: PipelineConfig) -> None:
    """Check source, target and work directory as the pipeline file names them.

    Paths that depend on the environment of this process are left to `refuse_overlap_of`.

    Raises:
        PlacesOverlap: the target or work directory is inside the source, or contains it.
    """
    side = config.commit.late_data.side
    known = {
        key: place
        for key, place in (
            ("target.path", config.target.path),
            ("target.work", config.target.work),
            ("commit.late_data.side.path", side.path if side else None),
        )
        if place is not None and "${env:" not in place
    }
    refuse_overlap_of(config.name, known, source_places(config.source))


def refuse_overlap_of(name: str, known: dict[str, str], sources: Sequence[str]) -> None:
    """Check target and work directory against the directories of the source.

    Args:
        name: of the pipeline, for the proposed path.
        known: key of the pipeline file → absolute path.
        sources: directories that hold files of the source.

    Raises:
        PlacesOverlap: one of them is inside another.
    """
    for key, place in known.items():
        for source in sources:
            if overlap(place, source):
                proposal = place_outside(name, key, sources, known.get("target.path"))
                raise PlacesOverlap(key=key, place=place, other=source, proposal=proposal)


def place_outside(name: str, key: str, sources: Sequence[str], target: str | None = None) -> str:
    """Propose a path where a pipeline may publish or work: beside the source, not inside it."""
    source = real_place(sources[0])
    above = posixpath.dirname(source)
    if is_in_store(source) and not is_in_store(above):
        # All of a bucket is read.
        above = "s3://another-bucket"
    places = [f"{above}/{folder}/{name}" for folder in ("published", "tidegate", f"{name}_out")]
    if key == "target.work":
        beside = [posixpath.dirname(target)] if target else []
        places = [f"{folder}/.tidegate-{name}" for folder in (*beside, above, f"{above}/work")]
    return next(place for place in places if not any(overlap(place, item) for item in sources))


def source_places(source: SourceConfig) -> tuple[str, ...]:
    """Return the source directories that a pipeline file names; none for a catalog's table."""
    return tuple(
        place
        for place in source.known_places
        if (place.startswith("/") or is_in_store(place)) and "${env:" not in place
    )
