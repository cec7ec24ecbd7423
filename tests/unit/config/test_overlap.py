"""A pipeline that would read what it publishes is refused, whatever links lead there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.config.overlap import place_outside, refuse_overlap_of
from tidegate.errors import PlacesOverlap

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("place", "source", "overlaps"),
    [
        ("lake/out", "lake/in", False),
        ("lake/in", "lake/in", True),
        ("lake/in/out", "lake/in", True),
        ("lake", "lake/in", True),
        ("lake/in2", "lake/in", False),
        ("link/out", "lake/in", True),
        ("lake/in/../out", "lake/in", False),
        ("lake/not/there", "lake/not/there/yet", True),
    ],
)
def test_places_overlap_if_one_lies_inside_the_other(
    tmp_path: Path, place: str, source: str, overlaps: bool
) -> None:
    (tmp_path / "lake" / "in").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "lake" / "in")
    known = {"target.path": f"{tmp_path}/{place}"}
    sources = [f"{tmp_path}/elsewhere", f"{tmp_path}/{source}"]

    if not overlaps:
        refuse_overlap_of("orders", known, sources)
        return
    with pytest.raises(PlacesOverlap) as refused:
        refuse_overlap_of("orders", known, sources)

    proposed = {"target.path": str(refused.value.values["proposal"])}
    refuse_overlap_of("orders", proposed, sources)


@pytest.mark.parametrize("key", ["target.path", "target.work"])
@pytest.mark.parametrize(
    "sources", [["/lake/in"], ["/lake/in", "/lake/published"], ["/in"], ["/lake/in", "/lake/work"]]
)
@pytest.mark.parametrize("target", [None, "/out/orders", "/lake/in/out"])
def test_place_that_is_proposed_lies_outside_of_every_source(
    key: str, sources: list[str], target: str | None
) -> None:
    proposed = place_outside("orders", key, sources, target)

    refuse_overlap_of("orders", {key: proposed}, sources)
    assert "orders" in proposed
